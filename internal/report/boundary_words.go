package report

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/inquest-dev/inquest/internal/evidence"
	"github.com/inquest-dev/inquest/internal/incident"
)

// A boundaryView is the result of a search as reports speak of it.
type boundaryView struct {
	*incident.Trials
	*incident.Boundary
}

func newBoundaryView(t *incident.Trials) *boundaryView { return &boundaryView{t, t.Boundary} }

// assignments are values as NAME=value, in the order of names.
func assignments(values map[string]string) string {
	var out []string
	for _, n := range slices.Sorted(maps.Keys(values)) {
		out = append(out, oneLine(n)+"="+oneLine(values[n]))
	}
	return strings.Join(out, " ")
}

func numbersOf(values map[string]int64) string {
	out := map[string]string{}
	for n, v := range values {
		out[n] = strconv.FormatInt(v, 10)
	}
	return assignments(out)
}

// tone is how the page colours the answer.
func (v *boundaryView) tone() string {
	switch v.Boundary.Answer {
	case incident.Found, incident.AllPass:
		return "good"
	case incident.NonePasses:
		return "bad"
	}
	return "plain"
}

// measureWords name a measure.
func measureWords(name string) string {
	switch name {
	case incident.DeviceMemory:
		return "device memory"
	case incident.AddressSpace:
		return "address space"
	case incident.CgroupMemory:
		return "memory of the cgroup"
	case incident.Resident:
		return "resident memory"
	case incident.Reserved:
		return "memory reserved on the device"
	case incident.Allocated:
		return "memory allocated on the device"
	}
	return kindWords(name)
}

// marginWords say what is left at the largest value that passes.
func (v *boundaryView) marginVariants() []string {
	if len(v.Edges) == 0 {
		return []string{"not known"}
	}
	least := -1
	for i := range v.Edges {
		if m := v.Edges[i].Margin; m != nil && m.Bytes != nil && (least < 0 || *m.Bytes < *v.Edges[least].Margin.Bytes) {
			least = i
		}
	}
	if least < 0 {
		for i := range v.Edges {
			if m := v.Edges[i].Margin; m != nil {
				s := "not known: " + m.Why
				if m.Peak != nil {
					return []string{fmt.Sprintf("%s; the peak of %s is %s", s, measureWords(m.Measure), evidence.Bytes(*m.Peak)), s}
				}
				return []string{s}
			}
		}
		return []string{"not known: no value passed each time"}
	}
	e := &v.Edges[least]
	return []string{marginWords(e), marginShort(e)}
}

func marginShort(e *incident.Edge) string {
	m := e.Margin
	most := ""
	if m.AtMost {
		most = "at most "
	}
	return fmt.Sprintf("%s%s of %s with %s=%d", most, evidence.Bytes(*m.Bytes), evidence.Bytes(*m.Limit), oneLine(e.Name), e.Largest.Value)
}

func marginWords(e *incident.Edge) string {
	m := e.Margin
	by := ""
	if m.LimitBy != "" {
		by = ", set by " + oneLine(m.LimitBy)
	}
	return fmt.Sprintf("%s (%s, peak %s%s)", marginShort(e), measureWords(m.Measure), evidence.Bytes(*m.Peak), by)
}

// sureVariants say on what the answer rests.
func (v *boundaryView) sureVariants() []string {
	switch v.Boundary.Answer {
	case incident.Found, incident.AllPass, incident.NonePasses:
		s := fmt.Sprintf("each value of the answer did the same %s, in fresh processes", timesOf(v.Repeats))
		if len(v.NotMonotone) > 0 {
			return []string{s + "; but more did not always need more memory, see below", s}
		}
		return []string{s}
	case incident.Flaky:
		return []string{"values at the edge pass at one time and fail at another"}
	case incident.OtherFailure:
		return []string{"not decided: a trial failed in another way", "not decided"}
	}
	if v.Stopped != "" {
		return []string{"not decided: the search ended before its end (" + oneLine(v.Stopped) + ")", "not decided: ended early"}
	}
	return []string{"not decided"}
}

func timesOf(n int) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d of %d times", n, n)
}

// trialsVariants count the trials.
func (v *boundaryView) trialsVariants() []string {
	repeats, reused := 0, 0
	for _, p := range v.Points {
		if p.Repeat {
			repeats++
		}
		if p.Reused {
			reused++
		}
	}
	s := fmt.Sprintf("%d of at most %d to find it", v.Boundary.Trials, v.Bound)
	long := s
	if repeats > 0 {
		long += fmt.Sprintf(", then %s", several(repeats, "repeat"))
	}
	if reused > 0 {
		long += fmt.Sprintf("; %d of all were made before the search was resumed", reused)
	}
	return []string{long, s}
}

// nextVariants say what to do with the answer.
func (v *boundaryView) nextVariants() []string {
	id := oneLine(v.ID)
	switch v.Boundary.Answer {
	case incident.Found, incident.AllPass:
		if v.Smallest != nil {
			if v.Boundary.Answer == incident.AllPass {
				return []string{"search a range in which the command fails"}
			}
			return []string{"look into the failure with " + assignments(v.Smallest.Values) + ", which is the cheapest run that shows it", "look into it with " + assignments(v.Smallest.Values)}
		}
		if len(v.Edges) == 1 && v.Edges[0].Largest != nil {
			set := assignments(v.Edges[0].Largest.Values)
			return []string{fmt.Sprintf("set %s, and let inquest verify repeat the whole run with it", set), "set " + set + ", then inquest verify"}
		}
		return []string{"choose a pair of the table, and let inquest verify repeat the whole run with it"}
	case incident.NonePasses:
		return []string{"nothing in the range fits: search smaller values, or change what the diagnosis of a trial proposes", "search smaller values"}
	case incident.Flaky:
		return []string{"make trials start alike (--clean, --seed), or take a value well below the edge", "--clean, or a value well below"}
	case incident.OtherFailure:
		return []string{"diagnose that trial: " + v.lastTrial(), "diagnose that trial"}
	}
	if v.Stopped == incident.StoppedDisk {
		return []string{"give the trials more room (--disk), or let the command write less; then go on with --resume=" + id, "more room: --disk"}
	}
	if v.Stopped != "" && id != "" {
		return []string{"go on with --resume=" + id + "; the trials that were made count", "--resume=" + id}
	}
	return []string{"diagnose the trial that decided nothing: " + v.lastTrial(), "diagnose the last trial"}
}

// lastTrial names the log of the last trial, or its id.
func (v *boundaryView) lastTrial() string {
	if n := len(v.Trials.Trials); n > 0 {
		t := &v.Trials.Trials[n-1]
		if t.Log != "" {
			return "inquest diagnose " + oneLine(t.Log)
		}
		return oneLine(t.ID)
	}
	return "none was made"
}

// lines are the first lines of a report, in full.
func (v *boundaryView) lines() []labelled {
	out := []labelled{{Label: "Answer", Text: sentence(upper(v.Says))}}
	if v.Smallest == nil {
		out = append(out, labelled{Label: "Margin", Text: sentence(upper(v.marginVariants()[0]))})
	}
	for _, l := range []struct {
		label string
		words []string
	}{{"Sure", v.sureVariants()}, {"Trials", v.trialsVariants()}, {"Next", v.nextVariants()}} {
		out = append(out, labelled{Label: l.label, Text: sentence(upper(l.words[0]))})
	}
	return out
}

// A valueRow is all trials with the same values.
type valueRow struct {
	values           map[string]string
	passed, oom, odd int
	result           string // of what decides nothing
	peak, limit      *int64
	atLeast          bool
	measure          string
}

// rows are the values that were tried, in the order of the numbers that stand for names.
func (v *boundaryView) rows() []valueRow {
	var out []valueRow
	at := map[string]int{}
	for i := range v.Points {
		p := &v.Points[i]
		key := assignments(p.Values)
		n, ok := at[key]
		if !ok {
			n = len(out)
			at[key] = n
			out = append(out, valueRow{values: p.Values})
		}
		r := &out[n]
		switch p.Result {
		case incident.Passed:
			r.passed++
		case incident.OutOfMemory:
			r.oom++
		default:
			r.odd++
			r.result = p.Result
		}
		if p.Peak != nil && (r.peak == nil || *p.Peak > *r.peak) {
			r.peak, r.limit, r.atLeast, r.measure = p.Peak, p.Limit, p.AtLeast, p.Measure
		}
	}
	slices.SortStableFunc(out, func(a, b valueRow) int { return v.compare(a.values, b.values) })
	return out
}

// compare orders values by the names that vary, the last of them first, so that each edge of a
// search of two names stands together.
func (v *boundaryView) compare(a, b map[string]string) int {
	names := slices.Sorted(maps.Keys(a))
	for i := len(v.Vary) - 1; i >= 0; i-- {
		names = append([]string{v.Vary[i].Name}, names...)
		if v.Keep != nil {
			names[0] = v.Keep.Name
		}
	}
	if len(v.Vary) > 1 && v.Keep == nil {
		names[0], names[1] = names[1], names[0]
	}
	for _, n := range names {
		x, errX := strconv.ParseInt(a[n], 10, 64)
		y, errY := strconv.ParseInt(b[n], 10, 64)
		switch {
		case errX == nil && errY == nil && x != y:
			if x < y {
				return -1
			}
			return 1
		case errX != nil || errY != nil:
			if c := strings.Compare(a[n], b[n]); c != 0 {
				return c
			}
		}
	}
	return 0
}

// came says what came of the trials of a row.
func (r *valueRow) came() string {
	var parts []string
	of := r.passed + r.oom + r.odd
	add := func(n int, what string) {
		switch {
		case n == 0:
		case n == of && of == 1:
			parts = append(parts, what)
		default:
			parts = append(parts, fmt.Sprintf("%s %d of %d", what, n, of))
		}
	}
	add(r.passed, "passed")
	add(r.oom, "out of memory")
	add(r.odd, kindWords(r.result))
	return strings.Join(parts, ", ")
}

// peakWords are the peak of a row.
func (r *valueRow) peakWords() string {
	switch {
	case r.peak == nil:
		return "-"
	case r.atLeast:
		return ">= " + evidence.Bytes(*r.peak)
	}
	return evidence.Bytes(*r.peak)
}

// fitWords say what the line through the peaks is.
func fitWords(e *incident.Edge) string {
	f := e.Fit
	if f == nil {
		return ""
	}
	s := fmt.Sprintf("peak %s = %s %s %s for each %s, by %s that passed", measureWords(f.Measure), evidence.Bytes(int64(f.A)), plusMinus(f.B), evidence.Bytes(int64(max(f.B, -f.B))), oneLine(e.Name), several(f.Points, "value"))
	if f.Points > 2 {
		s += fmt.Sprintf("; they lie within %s of it", evidence.Bytes(f.Residual))
	} else {
		s += ", so how well a line describes it is not known"
	}
	switch {
	case f.AtLeast:
		s += "; the peaks are the highest of samples, and the true ones may be higher"
	case f.Edge != nil:
		s += fmt.Sprintf("; it meets the limit behind %d", *f.Edge)
		if f.EdgeLow != nil && f.EdgeHigh != nil && *f.EdgeLow != *f.EdgeHigh {
			s += fmt.Sprintf(" (%d to %d)", *f.EdgeLow, *f.EdgeHigh)
		}
	}
	return s
}

func plusMinus(f float64) string {
	if f < 0 {
		return "-"
	}
	return "+"
}

// edgeCells are an edge as a row of a table.
func edgeCells(e *incident.Edge) []string {
	count := func(x *incident.EdgeValue, n int) string { return fmt.Sprintf("%d (%d of %d)", x.Value, n, x.Of) }
	largest, smallest, margin := "none", "none", "-"
	if e.Largest != nil {
		largest = count(e.Largest, e.Largest.Passed)
	}
	if e.Smallest != nil {
		smallest = count(e.Smallest, e.Smallest.Failed)
	}
	if e.Margin != nil && e.Margin.Bytes != nil {
		margin = evidence.Bytes(*e.Margin.Bytes)
		if e.Margin.AtMost {
			margin = "<= " + margin
		}
	}
	return []string{numbersOf(e.Fixed), largest, smallest, margin, kindWords(e.Answer)}
}

var edgeColumns = []string{"with", "largest passing", "smallest failing", "margin", "answer"}

// reducedWords say what became of one name of a smallest configuration.
func reducedWords(r *incident.ReducedValue) string {
	s := fmt.Sprintf("%s: %d", oneLine(r.Name), r.To)
	if r.To != r.From {
		s = fmt.Sprintf("%s: from %d to %d", oneLine(r.Name), r.From, r.To)
	}
	return s + "; " + r.Says
}

// pointWords are one trial in a line.
func pointWords(p *incident.BoundaryPoint) string {
	s := assignments(p.Values) + ": " + kindWords(p.Result)
	if p.Where != "" {
		s += " (" + kindWords(p.Where) + ")"
	}
	if len(p.Ranks) > 0 {
		s += " on " + ranksWords(p.Ranks)
	}
	if p.Repeat {
		s += ", repeat"
	}
	if p.Reused {
		s += ", made before"
	}
	if p.Seconds != nil {
		s += ", " + strconv.FormatFloat(*p.Seconds, 'f', 1, 64) + " s"
	}
	return s + ", trial " + oneLine(p.Trial)
}
