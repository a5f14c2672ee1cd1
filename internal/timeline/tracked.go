package timeline

import (
	"math"
	"time"

	"github.com/inquest-dev/inquest/internal/evidence"
)

// trackedSlack is by how much the times of a tracker and of a log may miss each other and still
// be of one launch: trackers write late, and logs begin before the first step.
const trackedSlack = 2 * time.Minute

// tracked reports whether a source is what an experiment tracker recorded of runs. Its pieces,
// one for each time that the run was taken up, begin no launch where logs show the
// launches: each is set beside the one that it is of.
func tracked(s *Source) bool {
	for i := range s.Events {
		if s.Events[i].Kind == evidence.TrackerRun {
			return true
		}
	}
	return false
}

// placeTracked returns the attempt that a piece of a tracked source is of, by what both say:
// the values at the steps that both have; then the time, then the range of steps. What
// cannot be told is of the last attempt. logs are the series of the attempts' logs.
func (t *Timeline) placeTracked(src, launch int, logs [][]*evidence.Series) int {
	last := len(t.Attempts) - 1
	if last <= 0 {
		return last
	}
	var piece []*evidence.Series
	for _, x := range t.Sources[src].Series {
		if x.Key.Launch == launch && x.Count > 0 {
			piece = append(piece, x)
		}
	}
	best, at := 0, -1
	for n := range t.Attempts {
		if m := matches(piece, logs[n]); m > best || m == best && m > 0 {
			best, at = m, n
		}
	}
	if at >= 0 {
		return at
	}
	if n := t.aroundTime(piece); n >= 0 {
		return n
	}
	most := int64(0)
	for n := range t.Attempts {
		if o := overlap(piece, logs[n]); o >= most && o > 0 {
			most, at = o, n
		}
	}
	if at >= 0 {
		return at
	}
	return last
}

// logged returns the series of the attempts' logs, and gives the attempts the times that those
// show. of says of which attempt a piece of a log is.
func (t *Timeline) logged(beside []bool, of func(src, launch int) int) [][]*evidence.Series {
	out := make([][]*evidence.Series, len(t.Attempts))
	for _, it := range t.Items {
		if n := -1; !beside[it.Source] && it.Who.Attempt != evidence.Earlier {
			if n = of(it.Source, it.Who.Launch); n >= 0 {
				t.Attempts[n].span(it.Stamp)
			}
		}
	}
	for i := range t.Sources {
		if beside[i] {
			continue
		}
		for _, x := range t.Sources[i].Series {
			n := of(i, x.Key.Launch)
			if n < 0 {
				continue
			}
			out[n] = append(out[n], x)
			first, last := ends(x)
			t.Attempts[n].span(first)
			t.Attempts[n].span(last)
		}
	}
	return out
}

// matches counts the steps at which series of one name have the same value in both, less
// those at which they differ.
func matches(piece, log []*evidence.Series) int {
	n := 0
	for _, x := range piece {
		var at map[int64]float64
		for _, y := range log {
			if !alikeNamed(x, y) {
				continue
			}
			if at == nil {
				at = valuesOf(x, true)
			}
			for p := range y.All() {
				v, ok := at[p.Step]
				switch {
				case !ok:
				case alike(v, p.Value):
					n++
				default:
					n--
				}
			}
		}
	}
	return n
}

// alikeNamed reports whether two series are of one quantity.
func alikeNamed(x, y *evidence.Series) bool {
	return x.Key.Name == y.Key.Name && x.Key.Phase == y.Key.Phase
}

// valuesOf are the kept values of a series by step, with or without NaN; the last of a step counts.
func valuesOf(x *evidence.Series, nan bool) map[int64]float64 {
	at := map[int64]float64{}
	for p := range x.All() {
		if p.Step != evidence.None && (nan || !math.IsNaN(p.Value)) {
			at[p.Step] = p.Value
		}
	}
	return at
}

// alike reports whether one of two values can be the other one printed with three digits.
func alike(a, b float64) bool {
	if math.IsNaN(a) || math.IsNaN(b) {
		return math.IsNaN(a) == math.IsNaN(b)
	}
	return a == b || math.Abs(a-b) <= 5e-3*math.Max(math.Abs(a), math.Abs(b))
}

// aroundTime is the one attempt in whose time the piece lies, -1 where it is none or several.
func (t *Timeline) aroundTime(piece []*evidence.Series) int {
	var first, last evidence.Stamp
	for _, x := range piece {
		f, l := ends(x)
		if f.Known() && (!first.Known() || f.Time.Before(first.Time)) {
			first = f
		}
		if l.Known() && (!last.Known() || l.Time.After(last.Time)) {
			last = l
		}
	}
	at := -1
	for n, a := range t.Attempts {
		if !first.Known() || !a.Start.Known() || !a.End.Known() || !sameClock(a.Start, first) || !sameClock(a.End, last) {
			continue
		}
		if first.Time.After(a.End.Time.Add(trackedSlack)) || last.Time.Before(a.Start.Time.Add(-trackedSlack)) {
			continue
		}
		if at >= 0 {
			return -1
		}
		at = n
	}
	return at
}

// overlap is how many steps the ranges of both have in common.
func overlap(piece, log []*evidence.Series) int64 {
	lo, hi, ok := stepRange(piece)
	from, to, known := stepRange(log)
	if !ok || !known {
		return 0
	}
	return max(min(hi, to)-max(lo, from)+1, 0)
}

// stepRange is the range of the optimiser steps of series of the training.
func stepRange(list []*evidence.Series) (lo, hi int64, ok bool) {
	for _, x := range list {
		if x.Key.Name != "loss" && x.Key.Name != "grad_norm" && x.Key.Name != "lr" && x.Key.Name != "eval_loss" {
			continue
		}
		for p := range x.All() {
			if p.Step == evidence.None {
				continue
			}
			if !ok {
				lo, hi, ok = p.Step, p.Step, true
			}
			lo, hi = min(lo, p.Step), max(hi, p.Step)
		}
	}
	return lo, hi, ok
}

// recordAndLine tells two events apart of which one is a value that a tracker recorded at a
// step, and the other stands in a log of the same launch.
func (t *Timeline) recordAndLine(a, b *Item) (value, line *Item, ok bool) {
	if a.Source < 0 || b.Source < 0 || a.Source == b.Source || a.Attempt < 0 || a.Attempt != b.Attempt {
		return nil, nil, false
	}
	of := func(it *Item) bool { return it.Attrs.Str("tracker") != "" && stated(it) && it.Step >= 0 }
	switch x, y := of(a), of(b); {
	case x && !y:
		value, line = a, b
	case y && !x:
		value, line = b, a
	default:
		return nil, nil, false
	}
	return value, line, !t.tracked[line.Source] && !evidence.Beside(t.Sources[line.Source].Artifact.Kind) && !t.listing(line) && !stated(line)
}

// byCount orders a value that a tracker recorded at a step and a line of a log that carries no
// step of its own, where both count the same steps: the value comes before the line if the log
// had gone past its step there, and after it if the log gets to that step only later.
func (t *Timeline) byCount(a, b *Item) Relation {
	value, line, ok := t.recordAndLine(a, b)
	if !ok || line.Step < 0 || !t.oneCount(value, line) {
		return Unknown
	}
	r := Unknown
	switch {
	case value.Step < line.Step:
		r = Before
	case t.reaches(line, value.Step):
		r = After
	}
	if value != a && r != Unknown {
		r = Before + After - r
	}
	return r
}

// reaches reports whether the log of a line prints, after it, a step that it had not
// reached before, up to the one given.
func (t *Timeline) reaches(line *Item, step int64) bool {
	for _, x := range t.Sources[line.Source].Series {
		if x.Key.Phase == "eval" || x.Key.Launch != line.Who.Launch {
			continue
		}
		for p := range x.All() {
			if p.Offset > line.Span.Offset && p.Step > line.Step && p.Step <= step {
				return true
			}
		}
	}
	return false
}

// sameValues is how many different values at the same steps make two counts one.
const sameValues = 3

// oneCount reports whether a tracker's steps and those of a log are shown to be of one count:
// series of one name have the same values at the same steps. That both end at one step shows
// nothing: an earlier run that failed at the same place does too.
func (t *Timeline) oneCount(value, line *Item) bool {
	of := func(it *Item) (list []*evidence.Series) {
		for _, x := range t.Sources[it.Source].Series {
			if x.Key.Launch == it.Who.Launch && x.Key.Phase != "eval" && x.Count > 0 {
				list = append(list, x)
			}
		}
		return list
	}
	return sameSteps(of(value), of(line))
}

// sameSteps reports whether series of one name have the same values at most of the steps
// that both have, and enough different ones: a learning rate that stays tells nothing.
func sameSteps(piece, log []*evidence.Series) bool {
	for _, x := range piece {
		var at map[int64]float64
		for _, y := range log {
			if !alikeNamed(x, y) {
				continue
			}
			if at == nil {
				at = valuesOf(x, false)
			}
			alikes, others := 0, 0
			values := map[float64]bool{}
			for p := range y.All() {
				v, ok := at[p.Step]
				if !ok || math.IsNaN(p.Value) {
					continue
				}
				if alike(v, p.Value) {
					alikes++
					values[p.Value] = true
				} else {
					others++
				}
			}
			if len(values) >= sameValues && alikes > others {
				return true
			}
		}
	}
	return false
}
