package web

import (
	"fmt"
	"slices"
	"strings"

	"github.com/inquest-dev/inquest/internal/evidence"
	"github.com/inquest-dev/inquest/internal/incident"
	"github.com/inquest-dev/inquest/internal/report"
)

// timelineRows is how many events stand on one page of the table.
const timelineRows = 100

// A timelinePage is what the template of the timeline sees.
type timelinePage struct {
	casePage
	Here     string // path of the page
	Query    timelineQuery
	From, To string // the window as the form has it, "" for the whole
	Problems []string
	Note     string
	Drawing  *drawing
	Moves    []timelineMove
	Attempts []filterChoice
	Kinds    []filterChoice
	Classes  []filterChoice
	Roles    []filterChoice
	ByOrder  bool
	Sum      string // what is shown of what there is, in a sentence
	Limits   []string
	Rows     []timelineRow
	First    int // number of the first row in what is asked for, 1-based
	Last     int
	Of       int
	Earlier  string // addresses of the pages of the table, "" where there is none
	Later    string
	Window   [4]string // from, to, low, high of the axis, for the script
	Fault    bool      // 0 is the first fault, and in the window
}

// A timelineMove is a link that shows another window.
type timelineMove struct {
	Key, Label string // what the script calls it; what stands on it
	Href       string
}

// A filterChoice is one value of a filter and how many events have it.
type filterChoice struct {
	Value, Label string
	Count        int
	Chosen       bool
}

type timelineRow struct {
	When, Attempt, Who, What, Role, RoleWords, Why string
	Text, Place, Href                              string
	Apart                                          bool
}

// newTimelinePage makes the page of a timeline. It is one pass over the events, and what it gives
// is bounded.
func newTimelinePage(c *incident.Case, t *incident.Timeline, q timelineQuery, problems []string) *timelinePage {
	p := &timelinePage{casePage: casePage{Case: c}, Here: casePath(c.ID, "timeline"), Query: q, Problems: problems}
	a := axisOf(t.Events, q.View)
	if q.View == "time" && a.byOrder {
		p.Problems = append(p.Problems, "There are no times in this timeline that can be compared, so it is drawn by order.")
	}
	from, to := a.window(&q)
	whole := q.From == nil && q.To == nil
	p.ByOrder, p.Note = a.byOrder, a.note()
	kinds, classes, attempts, roles := map[string]int{}, map[string]int{}, map[string]int{}, map[string]int{}
	var asked, shown []*incident.TimelineEvent // by the filters; in the window too
	without, filter := 0, q.filter()
	for i := range t.Events {
		e := &t.Events[i]
		kinds[e.Kind]++
		classes[e.Class]++
		roles[e.Role]++
		attempts[e.Attempt]++
		if !filter.Keeps(e) {
			continue
		}
		asked = append(asked, e)
		at, ok := a.at(e)
		if !ok {
			without++
		}
		if whole || ok && from <= at && at <= to {
			shown = append(shown, e)
		}
	}
	d := &drawer{axis: a, from: from, to: to, words: eventWords,
		line: func(e *incident.TimelineEvent) string { return p.line(e) },
		zoom: func(from, to float64) string { return p.address(q.window(from, to)) }}
	p.Drawing = d.draw(asked)
	if !a.byOrder {
		slices.SortStableFunc(shown, func(x, y *incident.TimelineEvent) int { return a.compare(x, y) })
	}
	p.moves(a, from, to)
	p.choices(t, kinds, classes, roles, attempts)
	p.table(shown)
	p.sum(t, len(asked), len(shown), without, a, from, to)
	if !whole {
		p.From, p.To = axisNumber(from), axisNumber(to)
	}
	p.Window = [4]string{axisNumber(from), axisNumber(to), axisNumber(a.low), axisNumber(a.high)}
	return p
}

func (p *timelinePage) address(q timelineQuery) string {
	if s := q.values().Encode(); s != "" {
		return p.Here + "?" + s
	}
	return p.Here
}

// line is where the line of an event can be read, "" for one without a line.
func (p *timelinePage) line(e *incident.TimelineEvent) string { return spanPath(p.Case.ID, e.Span) }

// moves are the links that zoom and go along the axis.
func (p *timelinePage) moves(a *axis, from, to float64) {
	q := p.Query
	put := func(key, label string, from, to float64) {
		if to-from >= a.high-a.low {
			from, to = a.low, a.high
		}
		if from < a.low {
			from, to = a.low, to+a.low-from
		}
		if to > a.high {
			from, to = max(a.low, from-to+a.high), a.high
		}
		p.Moves = append(p.Moves, timelineMove{key, label, p.address(q.window(from, to))})
	}
	width, at := to-from, (from+to)/2
	if p.Fault = a.first && from < 0 && 0 < to; p.Fault {
		at = 0 // what one looks for stays where it is
	}
	put("in", "Zoom in", at-(at-from)/2, at+(to-at)/2)
	put("out", "Zoom out", at-2*(at-from), at+2*(to-at))
	put("earlier", "Earlier", from-width/2, to-width/2)
	put("later", "Later", from+width/2, to+width/2)
	if a.first {
		put("minute", "A minute around the first fault", -30, 30)
	}
	all := q
	all.From, all.To, all.Page = nil, nil, 1
	p.Moves = append(p.Moves, timelineMove{"all", "All", p.address(all)})
}

// choices fill the filters, the most frequent first.
func (p *timelinePage) choices(t *incident.Timeline, kinds, classes, roles, attempts map[string]int) {
	list := func(counts map[string]int, chosen string) []filterChoice {
		var out []filterChoice
		for v, n := range counts {
			if v != "" {
				out = append(out, filterChoice{v, words(v), n, v == chosen})
			}
		}
		slices.SortFunc(out, func(a, b filterChoice) int {
			if a.Count != b.Count {
				return b.Count - a.Count
			}
			return strings.Compare(a.Value, b.Value)
		})
		return out
	}
	p.Kinds, p.Classes = list(kinds, p.Query.Kind), list(classes, p.Query.Class)
	for _, r := range timelineRoles {
		if roles[r.Name] > 0 {
			p.Roles = append(p.Roles, filterChoice{r.Name, r.Title, roles[r.Name], r.Name == p.Query.Role})
		}
	}
	if len(t.Attempts) > 1 {
		for _, at := range t.Attempts {
			label := at.ID
			if at.Outcome != "" {
				label += ", " + at.Outcome
			}
			p.Attempts = append(p.Attempts, filterChoice{at.ID, label, attempts[at.ID], at.ID == p.Query.Attempt})
		}
	}
}

// table takes the page of rows that is asked for, or the last there is.
func (p *timelinePage) table(shown []*incident.TimelineEvent) {
	p.Of = len(shown)
	pages := max(1, (p.Of+timelineRows-1)/timelineRows)
	n := min(p.Query.Page, pages)
	start := (n - 1) * timelineRows
	end := min(start+timelineRows, p.Of)
	p.First, p.Last = start+1, end
	for _, e := range shown[start:end] {
		p.Rows = append(p.Rows, p.row(e))
	}
	at := func(n int) string {
		q := p.Query
		q.Page = n
		return p.address(q) + "#events"
	}
	if n > 1 {
		p.Earlier = at(n - 1)
	}
	if n < pages {
		p.Later = at(n + 1)
	}
}

func (p *timelinePage) row(e *incident.TimelineEvent) timelineRow {
	r := timelineRow{Attempt: e.Attempt, Who: "–", What: words(e.Kind), Role: e.Role, Why: e.Why, Text: cutTo(report.OneLine(e.Text), 300), Href: p.line(e), Apart: e.Apart && p.ByOrder}
	if t := e.Time; t != nil {
		r.When = t.Written
	}
	if e.Step != nil {
		r.When = strings.TrimPrefix(fmt.Sprintf("%s, step %d", r.When, *e.Step), ", ")
	}
	var who []string
	if e.Rank != nil {
		who = append(who, fmt.Sprintf("rank %d", *e.Rank))
	}
	if e.Host != nil && *e.Host != "" {
		who = append(who, *e.Host)
	}
	if e.Device != nil {
		who = append(who, fmt.Sprintf("GPU %d", *e.Device))
	}
	if len(who) > 0 {
		r.Who = strings.Join(who, ", ")
	}
	for _, role := range timelineRoles {
		if role.Name == e.Role && e.Role != incident.RoleOther {
			r.RoleWords = role.Title
		}
	}
	r.Place = placeWords(e.Span)
	return r
}

// sum says what is shown.
func (p *timelinePage) sum(t *incident.Timeline, asked, shown, without int, a *axis, from, to float64) {
	step := (to - from) / 100
	p.Sum = fmt.Sprintf("%s of %s", evidence.Several(int64(shown), "event"), evidence.Count(len(t.Events)))
	if p.Query.From != nil || p.Query.To != nil {
		p.Sum += fmt.Sprintf(", from %s to %s", a.label(from, step), a.label(to, step))
	}
	p.Sum += "."
	if without > 0 && !a.byOrder {
		p.Limits = append(p.Limits, evidence.Several(int64(without), "event")+" without a time that can be compared with the first fault's: not drawn here, but by order.")
	}
	if d := p.Drawing; d.Rest > 0 {
		p.Limits = append(p.Limits, fmt.Sprintf("%d lanes that say least share the last lane; ask for their ranks to see them apart.", d.Rest))
	}
	if d := p.Drawing; d.Folded > 0 {
		p.Limits = append(p.Limits, fmt.Sprintf("%d ranks share lanes with others on which the same happened.", d.Folded))
	}
	if t.Total > len(t.Events) {
		var parts []string
		for kind, n := range t.Dropped {
			parts = append(parts, fmt.Sprintf("%s %s", evidence.Count(n), words(kind)))
		}
		slices.Sort(parts)
		s := evidence.Several(int64(t.Total-len(t.Events)), "event") + " that say least were left out"
		if len(parts) > 0 {
			s += ": " + strings.Join(parts[:min(len(parts), 8)], ", ")
		}
		p.Limits = append(p.Limits, s+".")
	}
}

// eventWords are an event in a few words.
func eventWords(e *incident.TimelineEvent) string {
	s := words(e.Kind)
	for _, role := range timelineRoles {
		if role.Name == e.Role && e.Role != incident.RoleOther {
			s = role.Title + ": " + s
		}
	}
	if e.Step != nil {
		s += fmt.Sprintf(", step %d", *e.Step)
	}
	if e.Time != nil && e.Time.Written != "" {
		s += ", " + report.OneLine(e.Time.Written)
	}
	return s
}

// words are a name of ours as people read it.
func words(name string) string {
	return strings.ReplaceAll(strings.ReplaceAll(name, "nonfinite", "non-finite"), "_", " ")
}

// placeWords are where an event stands: the file's own name and the line.
func placeWords(sp *evidence.Span) string {
	if sp == nil {
		return ""
	}
	name := sp.Artifact[strings.LastIndexByte(sp.Artifact, '/')+1:]
	switch {
	case sp.Line > 0:
		return fmt.Sprintf("%s:%d", name, sp.Line)
	case sp.Row > 0:
		return fmt.Sprintf("%s row %d", name, sp.Row)
	case sp.Record > 0:
		return fmt.Sprintf("%s record %d", name, sp.Record)
	}
	return name
}
