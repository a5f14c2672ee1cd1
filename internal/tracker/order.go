package tracker

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/inquest-dev/inquest/internal/evidence"
	"github.com/inquest-dev/inquest/internal/incident"
)

// Answers of an order.
const (
	nonfiniteFirst = "nonfinite first"
	memoryFirst    = "memory first"
	onlyNonfinite  = "only nonfinite"
	onlyMemory     = "only memory"
	neither        = "neither"
	unknownOrder   = "unknown"
)

// faithful orders trackers by how well they show a value that is not finite.
var faithful = []evidence.Keeps{evidence.KeepsAll, evidence.Clamped, evidence.Replaced, evidence.Zeroed, evidence.Dropped}

// brokenRun is the run by which the first value that is not finite is told: of those known to be
// the log's the one whose tracker shows such values best; -1 if no run shows one.
func (a *Aligner) brokenRun() int {
	best := -1
	var by [3]int64
	for i, r := range a.runs {
		o := a.out.Runs[i].First
		if o == nil {
			continue
		}
		is := [3]int64{1, int64(slices.Index(faithful, r.keeps())), math.MaxInt64}
		if len(a.ties) == 0 || slices.ContainsFunc(a.out.Clocks, func(c incident.RunClock) bool { return c.Run == i && a.ties[tieKey{i, c.Log}] != nil }) {
			is[0] = 0
		}
		if o.At.Step != nil {
			is[2] = *o.At.Step
		}
		if best < 0 || slices.Compare(is[:], by[:]) < 0 {
			best, by = i, is
		}
	}
	return best
}

// order sets the first value that is not finite against the failure of memory: by the
// starts they are of, by step, by time, and by place in one log.
func (a *Aligner) order() {
	o := &a.out.Order
	i := a.brokenRun()
	m, v := a.story.Memory, a.story.NaN
	if m != nil {
		s := statement(m)
		o.Memory = &s
	}
	if i >= 0 {
		o.Nonfinite, o.Run = a.out.Runs[i].First, &i
	} else if v != nil {
		o.Nonfinite = &incident.Onset{Series: a.story.NaNName, At: incident.TrackedPoint{Step: stepOf(v.Step), Value: incident.Number(math.NaN()), Span: &v.Span}}
	}
	switch {
	case o.Nonfinite == nil && m == nil:
		o.Answer, o.Basis = neither, "no value that is not finite and no failure of memory is on record"
		return
	case m == nil:
		o.Answer, o.Basis = onlyNonfinite, "no log shows a failure of memory"
		return
	case o.Nonfinite == nil:
		o.Answer, o.Basis = onlyMemory, "every value that a log or tracker shows is finite"
		if why := a.cannot(); why != "" {
			o.Missing = why
		}
		return
	}
	var lacks []string
	if i >= 0 {
		for _, by := range []func(int, *Happening) (string, string, string){a.byStart, a.byStep, a.byClock} {
			answer, basis, missing := by(i, m)
			if answer != "" {
				o.Answer, o.Basis = answer, basis
				return
			}
			if missing != "" {
				lacks = append(lacks, missing)
			}
		}
	}
	if v != nil && (a.story.Relation == incident.OOMFirst || a.story.Relation == incident.NaNFirst) {
		o.Answer, o.Basis = nonfiniteFirst, "the logs show both: "+a.story.Basis
		if a.story.Relation == incident.OOMFirst {
			o.Answer = memoryFirst
		}
		return
	}
	o.Answer = unknownOrder
	o.Basis = "neither starts, steps, times nor a place in one log order the two"
	if v == nil {
		lacks = append(lacks, "the logs show no value that is not finite, so places in one log tell nothing")
	} else if a.story.Basis != "" {
		lacks = append(lacks, a.story.Basis)
	}
	o.Missing = strings.Join(lacks, "; ")
}

// cannot says why the trackers may not show a value that is not finite, "" where they
// would.
func (a *Aligner) cannot() string {
	for _, r := range a.runs {
		if k := r.keeps(); k != evidence.KeepsAll {
			return fmt.Sprintf("what %s makes of values that are not finite (%s) may hide one", r.Tracker, k)
		}
	}
	return ""
}

// broken finds the series and segment of run i's first value that is not finite.
func (a *Aligner) broken(i int) (*line, int) {
	o := a.out.Runs[i].First
	for _, l := range a.runs[i].lines {
		if l.name != o.Series {
			continue
		}
		for _, t := range l.tracks {
			if s := t.Series; s.Bad > 0 {
				return l, l.segmentOf(t, s.FirstBad.Ordinal)
			}
		}
	}
	return nil, -1
}

// place is a segment as ties name it.
func (l *line) place(n int) [2]int {
	first := n
	for first > 0 && l.segments[first-1].track == l.segments[n].track {
		first--
	}
	return [2]int{l.segments[n].part, n - first}
}

// byStart orders by the starts of the job: that whose log has the steps of the segment in
// which the value stands, and that in which memory ran out.
func (a *Aligner) byStart(i int, m *Happening) (answer, basis, missing string) {
	l, n := a.broken(i)
	if n < 0 || m.Attempt < 0 {
		return "", "", ""
	}
	in, ok := a.attemptOf(i, l.place(n))
	if !ok || in == m.Attempt {
		return "", "", ""
	}
	if in < m.Attempt {
		return nonfiniteFirst, "by start: the log of an earlier start has the steps in which the value stands", ""
	}
	return memoryFirst, "by start: the log of a later start has the steps in which the value stands", ""
}

// byStep orders by steps of one start.
func (a *Aligner) byStep(i int, m *Happening) (answer, basis, missing string) {
	o := a.out.Runs[i].First
	l, n := a.broken(i)
	switch {
	case o.At.Step == nil || n < 0:
		return "", "", "the tracker states no step for the value"
	case m.Step == evidence.None:
		return "", "", "no line before the failure of memory in its log states a step"
	case l.tracks[0].Axis != evidence.AxisStep:
		return "", "", fmt.Sprintf("the tracker counts %s and the log steps", l.tracks[0].Axis)
	}
	if in, ok := a.attemptOf(i, l.place(n)); ok && in != m.Attempt || !ok && len(l.segments) > 1 {
		return "", "", "the steps of the tracker were written more than once, and no shared step tells which of the writings is of the start in which memory ran out"
	}
	step := *o.At.Step
	switch {
	case step <= m.Step:
		return nonfiniteFirst, fmt.Sprintf("by step: %s is not finite at step %d, and memory ran out after step %d was logged", l.name, step, m.Step), ""
	case m.Next != evidence.None && o.Before != nil && o.Before.Step != nil && *o.Before.Step >= m.Next:
		return memoryFirst, fmt.Sprintf("by step: memory ran out before step %d was logged, and %s was finite at step %d still", m.Next, l.name, *o.Before.Step), ""
	}
	return "", "", fmt.Sprintf("the value stands at step %d, and the last step logged before memory ran out is %d", step, m.Step)
}

// byClock orders by time.
func (a *Aligner) byClock(i int, m *Happening) (answer, basis, missing string) {
	o := a.out.Runs[i].First
	at, ok := instant(o.At.Time)
	if !ok {
		return "", "", "the tracker has no time for the value"
	}
	wall, bound, how, ok := a.tracked(i, m)
	if !ok {
		if !m.Stamp.Known() {
			return "", "", "the line of the failure of memory carries no time"
		}
		return "", "", "nothing ties the clock of the log to that of the tracker"
	}
	if at < wall-bound {
		return nonfiniteFirst, fmt.Sprintf("by time: it was recorded %s before memory ran out; %s", seconds(wall-at), how), ""
	}
	if at <= wall+bound {
		return "", "", fmt.Sprintf("the two are %s apart, less than the clocks are known to (%s)", seconds(math.Abs(at-wall)), seconds(bound))
	}
	l, n := a.broken(i)
	if n >= 0 && l.segments[n].FirstWall > wall+bound {
		return memoryFirst, fmt.Sprintf("by time: what it stands in was begun %s after memory ran out; %s", seconds(l.segments[n].FirstWall-wall), how), ""
	}
	if o.Before != nil {
		if b, ok := instant(o.Before.Time); ok && b > wall+bound {
			return memoryFirst, fmt.Sprintf("by time: the last finite value was recorded %s after memory ran out; %s", seconds(b-wall), how), ""
		}
		return "", "", fmt.Sprintf("memory ran out between the last finite value and the first that is not: those between (%s) were not logged", steps(o))
	}
	return "", "", "no finite value was logged before"
}

// steps names the steps between the points of an onset.
func steps(o *incident.Onset) string {
	if o.Before == nil || o.Before.Step == nil || o.At.Step == nil {
		return "of unknown steps"
	}
	return fmt.Sprintf("steps %d to %d", *o.Before.Step+1, *o.At.Step-1)
}

// instant reads a time of a result.
func instant(t *string) (float64, bool) {
	if t == nil {
		return 0, false
	}
	at, err := time.Parse(timeLayout, *t)
	if err != nil {
		return 0, false
	}
	return unix(at), true
}

// A row is a line of the timeline with what it is sorted by.
type row struct {
	incident.AlignedRow
	wall  float64
	known bool
}

// rows puts together the common timeline, by the clock of the trackers; what has no time
// stands where its step was recorded, or, where no step was either, at the end.
func (a *Aligner) rows() {
	var all []row
	for i := range a.runs {
		all = append(all, a.runRows(i)...)
	}
	for _, h := range a.happenings() {
		x := row{AlignedRow: incident.AlignedRow{Step: stepOf(h.Step), Source: "log", Text: h.Text, Kind: h.Kind, Span: h.Span}}
		for i := range a.runs {
			if wall, _, _, ok := a.tracked(i, h); ok {
				x.wall, x.known, x.Time = wall, true, wallTime(wall)
				break
			}
		}
		for i := range a.runs {
			if !x.known && h.Step != evidence.None {
				x.wall, x.known = a.runs[i].wallAt(h.Step)
			}
		}
		all = append(all, x)
	}
	slices.SortStableFunc(all, func(x, y row) int {
		switch {
		case x.known != y.known:
			if x.known {
				return -1
			}
			return 1
		case x.known && x.wall != y.wall:
			return cmp.Compare(x.wall, y.wall)
		case x.Step != nil && y.Step != nil:
			return cmp.Compare(*x.Step, *y.Step)
		}
		return 0
	})
	if n := len(all) - maxRows; n > 0 {
		a.out.Limits = append(a.out.Limits, incident.Statement{Text: fmt.Sprintf("%d rows of the timeline are left out.", n), Spans: []evidence.Span{}})
		all = all[:maxRows]
	}
	for _, x := range all {
		a.out.Rows = append(a.out.Rows, x.AlignedRow)
	}
}

// happenings are what the logs tell, each once.
func (a *Aligner) happenings() (out []*Happening) {
	add := func(h *Happening) {
		if h != nil && !slices.ContainsFunc(out, func(o *Happening) bool { return o.Span == h.Span }) {
			out = append(out, h)
		}
	}
	add(a.story.Memory)
	add(a.story.NaN)
	add(a.story.Death)
	for i := range a.story.Rest {
		add(&a.story.Rest[i])
	}
	return out
}

// runRows are the lines of one run.
func (a *Aligner) runRows(i int) (out []row) {
	r, s := a.runs[i], &a.out.Runs[i]
	put := func(kind, text string, p *incident.TrackedPoint) {
		x := row{AlignedRow: incident.AlignedRow{Time: p.Time, Step: p.Step, Source: r.label(), Text: text, Kind: kind}}
		if p.Span != nil {
			x.Span = *p.Span
		}
		x.wall, x.known = instant(p.Time)
		if !x.known && p.Step != nil {
			x.wall, x.known = r.wallAt(*p.Step)
		}
		out = append(out, x)
	}
	if l := r.clearest(); l != nil {
		t := l.tracks[0]
		p := l.point(t, &t.Series.First)
		stamp(p, t.FirstWall)
		put("start", fmt.Sprintf("first %s: %s", l.name, short(t.Series.First.Value)), p)
		t = l.tracks[len(l.tracks)-1]
		q := l.point(t, &t.Series.Last)
		stamp(q, t.LastWall)
		put("end", fmt.Sprintf("last %s: %s", l.name, short(t.Series.Last.Value)), q)
	}
	n := 0
	for j := range s.Series {
		x := &s.Series[j]
		if x.Bad == nil || x.System || n == 8 {
			continue
		}
		n++
		if x.Bad.Before != nil {
			put("finite", fmt.Sprintf("last finite %s: %s", x.Name, short(float64(x.Bad.Before.Value))), x.Bad.Before)
		}
		put("nonfinite", fmt.Sprintf("%s is %s", x.Name, value(float64(x.Bad.At.Value))), &x.Bad.At)
	}
	for _, x := range s.Resumes {
		sp := x.Span
		put("resume", "writing began again: "+x.Basis, &incident.TrackedPoint{Step: x.From, Time: x.Time, Span: &sp})
	}
	for _, x := range a.out.After {
		if x.Run == i {
			first := x.First
			put("after-death", fmt.Sprintf("first of %d points recorded after the run was dead", x.Points), &first)
		}
	}
	return out
}

// short is a value for a line of a table.
func short(v float64) string { return strconv.FormatFloat(v, 'g', 5, 64) }

// wallAt is about when a step was recorded, to put what has only a step in its place.
func (r *Run) wallAt(step int64) (wall float64, ok bool) {
	l := r.clearest()
	if l == nil {
		return 0, false
	}
	for _, t := range l.tracks {
		for p := range t.Series.All() {
			if s := p.When(); s.Known() && p.Step != evidence.None && p.Step <= step {
				wall, ok = unix(s.Time), true
			}
		}
	}
	return wall, ok
}
