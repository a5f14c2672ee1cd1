package report

import (
	"fmt"
	"math"
	"sort"
	"strconv"
	"time"

	"github.com/inquest-dev/inquest/internal/incident"
)

// maxLanes bounds the lanes of the timeline; the ranks beyond share one.
const maxLanes = 64

// laneHeight is in pixels, as all vertical measures here; horizontal ones are
// per cent, so that the drawing fits any width and its words keep their size.
const laneHeight = 24

// tickGap is the least distance between two ticks, in per cent: their labels
// must not meet on a telephone.
const tickGap = 14

// A lanes drawing is the timeline: one lane per rank, what happened on it as
// marks.
type lanes struct {
	Scaled bool // by time; otherwise by order only
	Note   string
	Ticks  []tick
	Lanes  []lane
	Height int
	Rows   []laneRow // the same as a table, in order
	Shapes []shape   // for the legend
}

type tick struct {
	X     string
	Label string
	Y2    int
}

type lane struct {
	Label, Full string
	Y           int
	Bad         bool
	Marks       []laneMark
}

type laneMark struct {
	X     string
	Y     int
	Shape string
	Href  string
	Title string
}

type laneRow struct{ When, Who, What, Href string }

type shape struct{ Name, Title string }

// shapes are the marks of the timeline. Each has a form of its own, so that
// colour is never needed.
var shapes = []shape{{"good", "last good value"}, {"first", "first fault"}, {"rival", "candidate, not decided"}, {"plain", "only followed"}}

// A happening is what the timeline draws.
type happening struct {
	ranks []int // nil: no rank is stated
	time  *incident.Time
	step  *int64
	stage int  // order where there are no times: 0 last good, 1 first fault and rivals, 2 followed
	zero  bool // the first fault, from which time counts
	shape string
	what  string
	href  string
	at    time.Time
	x     float64
}

// timelineOf draws what happened, or returns nil where there is nothing to draw.
func timelineOf(v *view) *lanes {
	if v.FirstFault == nil {
		return nil
	}
	var all []*happening
	ranksOf := func(e *incident.Event) []int {
		if e.Rank != nil {
			return []int{*e.Rank}
		}
		return nil
	}
	f := v.FirstFault
	if g := v.LastGood; g != nil {
		var of []int
		if g.Rank != nil {
			of = []int{*g.Rank}
		}
		all = append(all, &happening{ranks: of, time: g.Time, step: g.Step, shape: "good", what: "last good value, " + v.w.goodWords(g), href: v.href(g.Span)})
	}
	what := class(f.Class)
	if f.KnownBy == "elimination" {
		what += ", found by elimination: no words of its own"
	}
	lead := &happening{ranks: ranksOf(f), time: f.Time, step: f.Step, stage: 1, zero: true, shape: "first", what: "first fault: " + what, href: v.href(f.Span)}
	if v.undecided() {
		lead.shape, lead.what = "rival", "candidate for the first fault: "+what
	}
	all = append(all, lead)
	for i := range v.FirstFaultRivals {
		e := &v.FirstFaultRivals[i]
		all = append(all, &happening{ranks: ranksOf(e), time: e.Time, step: e.Step, stage: 1, shape: "rival", what: "candidate for the first fault: " + class(e.Class), href: v.href(e.Span)})
	}
	for _, c := range v.Collateral {
		h := &happening{ranks: c.Ranks, time: c.Event.Time, step: c.Event.Step, stage: 2, shape: "plain", what: "followed: " + kindWords(c.Event.Kind), href: v.href(c.Event.Span)}
		if len(h.ranks) == 0 {
			h.ranks = ranksOf(&c.Event)
		}
		if c.Count > 1 {
			h.what += fmt.Sprintf(" (%d alike, drawn at the time of the one quoted)", c.Count)
		}
		all = append(all, h)
	}
	out := &lanes{}
	out.place(all)
	if v.undecided() {
		out.lay(all, v.Ranks, nil)
	} else {
		out.lay(all, v.Ranks, f)
	}
	for _, s := range shapes {
		for _, h := range all {
			if h.shape == s.Name {
				out.Shapes = append(out.Shapes, s)
				break
			}
		}
	}
	return out
}

// place gives every happening its horizontal position. By time if the first
// fault and something else have comparable times: the distance from the first
// fault grows with the logarithm of the seconds, so that both the second around
// it and the half hour of a watchdog can be read. What has no time then stands
// where its stage begins. Without times, by order.
func (l *lanes) place(all []*happening) {
	var zero time.Time
	timed := 0
	for _, h := range all {
		if h.time == nil || h.time.UTC == nil {
			continue
		}
		t, err := time.Parse(time.RFC3339Nano, *h.time.UTC)
		if err != nil {
			continue
		}
		h.at = t
		timed++
		if h.zero {
			zero = t
		}
	}
	if zero.IsZero() || timed < 2 {
		l.byOrder(all)
		return
	}
	l.Scaled = true
	lo, hi := 0.0, 0.0
	for _, h := range all {
		if !h.at.IsZero() {
			d := squash(h.at.Sub(zero).Seconds())
			lo, hi = min(lo, d), max(hi, d)
		}
	}
	lo, hi = lo-.35, hi+.35
	x := func(seconds float64) float64 { return 3 + 94*(squash(seconds)-lo)/(hi-lo) }
	untimed := 0
	for _, h := range all {
		switch {
		case !h.at.IsZero():
			h.x = x(h.at.Sub(zero).Seconds())
		default:
			untimed++
			h.x = []float64{1, x(0), 98}[h.stage]
		}
	}
	l.Ticks = []tick{{X: percent(x(0)), Label: "0"}}
	for _, sign := range []float64{-1, 1} {
		last := x(0)
		for _, s := range []float64{1, 10, 60, 600, 3600, 86400} {
			if p := x(sign * s); p >= 3 && p <= 97 && math.Abs(p-last) >= tickGap {
				l.Ticks = append(l.Ticks, tick{X: percent(p), Label: duration(sign * s)})
				last = p
			}
		}
	}
	l.Note = "By time, on a logarithmic scale; 0 is the first fault."
	if untimed > 0 {
		l.Note += fmt.Sprintf(" %s without a comparable time: before, at or after it by order only.", upper(plural(untimed, "mark")))
	}
}

// squash maps seconds to a signed logarithm.
func squash(s float64) float64 {
	if s < 0 {
		return -math.Log10(1 - s)
	}
	return math.Log10(1 + s)
}

func duration(s float64) string {
	sign := "+"
	switch {
	case s < 0:
		sign, s = "−", -s
	}
	switch {
	case s < 60:
		return fmt.Sprintf("%s%.0f s", sign, s)
	case s < 3600:
		return fmt.Sprintf("%s%.0f min", sign, s/60)
	}
	return fmt.Sprintf("%s%.0f h", sign, s/3600)
}

func (l *lanes) byOrder(all []*happening) {
	l.Note = "By order only, not to scale: the evidence holds no comparable times for these."
	n := 0
	for _, h := range all {
		if h.stage == 2 {
			n++
		}
	}
	i := 0
	for _, h := range all {
		switch h.stage {
		case 0:
			h.x = 12
		case 1:
			h.x = 40
		default:
			h.x = 62 + 33*float64(i)/float64(max(n, 1))
			i++
		}
	}
	l.Ticks = []tick{{X: "12%", Label: "before"}, {X: "40%", Label: "first"}, {X: "62%", Label: "after"}}
}

func percent(x float64) string { return strconv.FormatFloat(x, 'f', 2, 64) + "%" }

// lay distributes the happenings over the lanes, which are in the order of the
// ranks, the job's own last. Where there are too many ranks, those that did
// something of their own keep their lanes. The lane of f, where it is given,
// stands out.
func (l *lanes) lay(all []*happening, ranks []incident.Rank, f *incident.Event) {
	busy := map[int]int{}
	fate := map[int]string{}
	for _, r := range ranks {
		busy[r.Rank] = 0
		fate[r.Rank] = r.Fate
	}
	jobs := false
	for _, h := range all {
		jobs = jobs || len(h.ranks) == 0
		for _, r := range h.ranks {
			busy[r] += map[bool]int{true: 4, false: 1}[len(h.ranks) <= 2]
		}
	}
	order := make([]int, 0, len(busy))
	for r := range busy {
		order = append(order, r)
	}
	sort.Ints(order)
	var rest []int
	if len(order) > maxLanes {
		sort.SliceStable(order, func(i, j int) bool { return busy[order[i]] > busy[order[j]] })
		rest = append(rest, order[maxLanes-1:]...)
		order = order[:maxLanes-1]
		sort.Ints(order)
		sort.Ints(rest)
	}
	laneOf := map[int]int{}
	add := func(label, full string, bad bool) int {
		l.Lanes = append(l.Lanes, lane{Label: label, Full: full, Bad: bad, Y: 14 + laneHeight*len(l.Lanes)})
		return len(l.Lanes) - 1
	}
	for _, r := range order {
		full := fmt.Sprintf("rank %d", r)
		if s := fate[r]; s != "" {
			full += ": " + s
		}
		laneOf[r] = add(fmt.Sprintf("rank %d", r), full, f != nil && f.Rank != nil && *f.Rank == r)
	}
	if len(rest) > 0 {
		n := add(fmt.Sprintf("%d more", len(rest)), ranksWords(rest), false)
		for _, r := range rest {
			laneOf[r] = n
		}
	}
	job := -1
	if jobs {
		name := "job"
		if len(l.Lanes) == 0 {
			name = "process"
		}
		job = add(name, name, f != nil && f.Rank == nil)
	}
	for _, h := range all {
		on := map[int]bool{}
		for _, r := range h.ranks {
			on[laneOf[r]] = true
		}
		if len(h.ranks) == 0 {
			on[job] = true
		}
		for i := range l.Lanes {
			if on[i] {
				l.Lanes[i].put(h)
			}
		}
		when := timeWords(h.time)
		if when == "" && h.step != nil {
			when = fmt.Sprintf("step %d", *h.step)
		}
		who := ranksWords(h.ranks)
		if who == "" {
			who = "not stated"
		}
		l.Rows = append(l.Rows, laneRow{when, who, h.what, h.href})
	}
	l.Height = 14 + laneHeight*len(l.Lanes) + 14
	for i := range l.Ticks {
		l.Ticks[i].Y2 = l.Height - 18
	}
}

// put draws h on the lane, beside what is already there.
func (l *lane) put(h *happening) {
	x := h.x
	for _, m := range l.Marks {
		if at, _ := strconv.ParseFloat(m.X[:len(m.X)-1], 64); math.Abs(at-x) < 1.6 {
			x = at + 1.8
		}
	}
	l.Marks = append(l.Marks, laneMark{X: percent(min(x, 99)), Y: l.Y, Shape: h.shape, Href: h.href, Title: l.Label + ", " + h.what})
}
