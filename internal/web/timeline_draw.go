package web

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/inquest-dev/inquest/internal/evidence"
	"github.com/inquest-dev/inquest/internal/incident"
)

// Bounds of one drawing of a timeline.
const (
	timelineLanes = 48   // the ranks beyond share one
	timelineMarks = 1600 // events that stand closer share one
	laneStep      = 22   // pixels from lane to lane
	laneTop       = 16   // of the first
	timelineTicks = 6
	laneCells     = 400 // of one lane, for those that have cells of their own
)

// timelineColumns are the widths, in columns, that a drawing may be cut into: the finest whose
// marks keep the bound is taken.
var timelineColumns = []int{240, 160, 120, 80, 48, 24, 12}

// A drawing is a part of a timeline as lanes with marks on them. Vertical measures are pixels,
// horizontal ones per cent.
type drawing struct {
	Lanes  []drawnLane
	Ticks  []drawnTick
	Height int
	Zero   string // where the axis has its 0, "" outside the window
	Folded int    // ranks that share a lane with others because the same happened on them
	Rest   int    // ranks in the lane of the rest
}

type drawnTick struct {
	X, Label string
	Y        int
}

type drawnLane struct {
	Label, Full string
	Y           int
	Bad         bool
	Marks       []drawnMark
}

// A drawnMark is one event, or several that stand too close to be told apart.
type drawnMark struct {
	X     string
	Y     int
	Role  string
	Many  bool
	Href  string
	Title string
	Main  bool // worth a stop of the keyboard
}

// weights order roles by what they say for the verdict.
var weights = map[string]int{incident.RoleFirst: 6, incident.RoleRival: 5, incident.RoleLastGood: 4, incident.RoleFollowed: 3, incident.RoleRecovered: 2, incident.RoleOther: 1}

// A drawer lays events out. One is made for each drawing.
type drawer struct {
	axis     *axis
	from, to float64
	line     func(*incident.TimelineEvent) string // address of its line
	zoom     func(from, to float64) string        // address of the timeline with this window
	words    func(*incident.TimelineEvent) string
}

// A laneKey is what a lane is about: a rank, else a host, else the job.
type laneKey struct {
	rank int // -1 for none
	host string
}

func laneOf(e *incident.TimelineEvent) laneKey {
	switch {
	case e.Rank != nil:
		return laneKey{rank: *e.Rank}
	case e.Host != nil && *e.Host != "":
		return laneKey{-1, *e.Host}
	}
	return laneKey{rank: -1}
}

func compareLanes(a, b laneKey) int {
	if (a.rank < 0) != (b.rank < 0) {
		return cmp.Compare(b.rank, a.rank) // ranks before hosts
	}
	if (a.host == "") != (b.host == "") {
		return cmp.Compare(b.host, a.host) // the job last
	}
	return cmp.Or(cmp.Compare(a.rank, b.rank), cmp.Compare(a.host, b.host))
}

// A cell is what stands in one column of one lane.
type cell struct {
	column int
	event  *incident.TimelineEvent // that says most
	at     float64
	count  int
}

// A row is the content of one lane.
type row struct {
	key   laneKey
	cells []cell
}

// draw lays out the events of a window. Events are in the order of the timeline.
//
//  1. Events go into the cells of their lane: columns as fine as the bound on marks allows.
//     The first fault, its rivals and the last good value have cells of their own.
//  2. Lanes with the same cells become one.
//  3. Lanes beyond the bound, those that say least, become one.
func (d *drawer) draw(events []*incident.TimelineEvent) *drawing {
	var kept, rest []group
	for _, columns := range timelineColumns {
		kept, rest = choose(fold(d.rows(events, columns)))
		if marksOf(kept)+len(rest) <= timelineMarks {
			break
		}
	}
	out := &drawing{}
	for _, g := range kept {
		if len(g.keys) > 1 {
			out.Folded += len(g.keys)
		}
		d.lane(out, g, laneLabel(g.keys), laneWords(g.keys))
	}
	if len(rest) > 0 {
		g := d.merged(rest)
		out.Rest = len(g.keys)
		d.lane(out, g, fmt.Sprintf("%d more", len(g.keys)), laneWords(g.keys))
	}
	out.Height = laneTop + laneStep*len(out.Lanes) + 14
	for _, t := range d.axis.ticks(d.from, d.to, timelineTicks) {
		out.Ticks = append(out.Ticks, drawnTick{d.percent(t.at), t.label, out.Height - 18})
	}
	if !d.axis.byOrder && d.from <= 0 && 0 <= d.to {
		out.Zero = d.percent(0)
	}
	return out
}

// percent is where a place stands, with room for a mark at both ends.
func (d *drawer) percent(at float64) string {
	return strconv.FormatFloat(1.5+97*(at-d.from)/(d.to-d.from), 'f', 2, 64) + "%"
}

// rows puts events into cells, lane by lane.
func (d *drawer) rows(events []*incident.TimelineEvent, columns int) []row {
	var all []row
	index := map[laneKey]int{}
	for _, e := range events {
		at, ok := d.axis.at(e)
		if !ok || at < d.from || at > d.to {
			continue
		}
		key := laneOf(e)
		n, ok := index[key]
		if !ok {
			n = len(all)
			index[key] = n
			all = append(all, row{key: key})
		}
		column := int(float64(columns) * (at - d.from) / (d.to - d.from))
		cells := all[n].cells
		if own := weights[e.Role] >= weights[incident.RoleLastGood]; !own && len(cells) > 0 {
			// Events come in order, but times of one rank may run backwards by a little.
			found := false
			for i := len(cells) - 1; i >= max(0, len(cells)-8); i-- {
				if c := &cells[i]; c.column == column && weights[c.event.Role] < weights[incident.RoleLastGood] {
					c.count++
					if weights[e.Role] > weights[c.event.Role] {
						c.event, c.at = e, at
					}
					found = true
					break
				}
			}
			if found {
				continue
			}
		}
		if len(cells) < laneCells {
			all[n].cells = append(cells, cell{column, e, at, 1})
		}
	}
	slices.SortFunc(all, func(a, b row) int { return compareLanes(a.key, b.key) })
	return all
}

// A group is lanes that are drawn as one.
type group struct {
	keys  []laneKey
	cells []cell
}

func marksOf(groups []group) int {
	n := 0
	for _, g := range groups {
		n += len(g.cells)
	}
	return n
}

// fold makes lanes of ranks with the same cells one. What failed first keeps a lane of its own,
// and so do hosts and the job.
func fold(rows []row) []group {
	var out []group
	at := map[string]int{}
	for _, r := range rows {
		var b strings.Builder
		own := r.key.rank < 0
		for _, c := range r.cells {
			own = own || weights[c.event.Role] >= weights[incident.RoleRival]
			fmt.Fprintf(&b, "%d %s %s %t;", c.column, c.event.Kind, c.event.Role, c.count > 1)
		}
		if n, ok := at[b.String()]; ok && !own {
			out[n].keys = append(out[n].keys, r.key)
			continue
		}
		if !own {
			at[b.String()] = len(out)
		}
		out = append(out, group{[]laneKey{r.key}, r.cells})
	}
	return out
}

// choose keeps the lanes that say most, in order; rest are the others.
func choose(groups []group) (kept, rest []group) {
	if len(groups) <= timelineLanes {
		return groups, nil
	}
	worth := func(g group) int {
		w := 0
		for _, c := range g.cells {
			w = max(w, weights[c.event.Role])
		}
		if g.keys[0].rank < 0 {
			w = max(w, weights[incident.RoleLastGood])
		}
		return w*1000 + min(len(g.cells), 999)
	}
	order := make([]int, len(groups))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(worth(groups[b]), worth(groups[a])) })
	keep := map[int]bool{}
	for _, i := range order[:timelineLanes-1] {
		keep[i] = true
	}
	for i, g := range groups {
		if keep[i] {
			kept = append(kept, g)
		} else {
			rest = append(rest, g)
		}
	}
	return kept, rest
}

// merged is the lane of the rest: each column once.
func (d *drawer) merged(rest []group) group {
	var out group
	at := map[int]int{}
	for _, g := range rest {
		out.keys = append(out.keys, g.keys...)
		for _, c := range g.cells {
			c.count *= len(g.keys)
			n, ok := at[c.column]
			if !ok {
				at[c.column] = len(out.cells)
				out.cells = append(out.cells, c)
				continue
			}
			have := &out.cells[n]
			count := have.count + c.count
			if weights[c.event.Role] > weights[have.event.Role] {
				*have = c
			}
			have.count = count
		}
	}
	return out
}

// lane adds a group to the drawing.
func (d *drawer) lane(out *drawing, g group, label, full string) {
	l := drawnLane{Label: label, Full: full, Y: laneTop + laneStep*len(out.Lanes)}
	width := (d.to - d.from) / float64(timelineColumns[0])
	for _, c := range g.cells {
		m := drawnMark{X: d.percent(c.at), Y: l.Y, Role: c.event.Role, Many: c.count > 1, Main: weights[c.event.Role] >= weights[incident.RoleLastGood]}
		if weights[m.Role] == 0 {
			m.Role = incident.RoleOther
		}
		l.Bad = l.Bad || c.event.Role == incident.RoleFirst
		m.Title = full + ", " + d.words(c.event)
		if c.count > 1 {
			m.Title = fmt.Sprintf("%s: %d events that stand close together, one of them %s", full, c.count, d.words(c.event))
			m.Href = d.zoom(c.at-4*width, c.at+4*width)
		} else {
			m.Href = d.line(c.event)
		}
		l.Marks = append(l.Marks, m)
	}
	out.Lanes = append(out.Lanes, l)
}

// laneLabel fits beside a lane, laneWords says all of it.
func laneLabel(keys []laneKey) string {
	switch k := keys[0]; {
	case len(keys) == 1 && k.rank >= 0:
		return fmt.Sprintf("rank %d", k.rank)
	case len(keys) == 1 && k.host != "":
		return shortened(k.host, 16)
	case len(keys) == 1:
		return "job"
	}
	if s := laneWords(keys); len(s) <= 16 {
		return s
	}
	return fmt.Sprintf("%d ranks", len(keys))
}

func laneWords(keys []laneKey) string {
	var ranks []int
	var names []string
	for _, k := range keys {
		switch {
		case k.rank >= 0:
			ranks = append(ranks, k.rank)
		case k.host != "":
			names = append(names, "host "+k.host)
		default:
			names = append(names, "the job")
		}
	}
	if len(ranks) > 0 {
		names = slices.Insert(names, 0, rankWords(ranks))
	}
	if len(names) > 8 {
		names = append(names[:8], fmt.Sprintf("%d more", len(names)-8))
	}
	return strings.Join(names, ", ")
}

// rankWords names ranks, runs of them as ranges. It sorts them.
func rankWords(ranks []int) string {
	slices.Sort(ranks)
	list := strings.ReplaceAll(evidence.RankRanges(ranks), ",", ", ")
	if len(ranks) == 1 {
		return "rank " + list
	}
	return "ranks " + cutTo(list, 120)
}

// shortened is at most n characters of s, cut in its middle.
func shortened(s string, n int) string {
	r := []rune(s)
	if len(r) <= n {
		return s
	}
	return string(r[:n/2]) + "…" + string(r[len(r)-(n-n/2-1):])
}
