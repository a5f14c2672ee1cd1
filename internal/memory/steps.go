package memory

import (
	"cmp"
	"fmt"
	"slices"
	"sort"
	"strings"

	"github.com/inquest-dev/inquest/internal/evidence"
)

// How the steps of a trace are known, the surest first.
const (
	byNothing    = iota
	byMinima     // lowest points of the active memory between its peaks
	byPasses     // forward code after backward code, in the stacks
	byOptimizer  // forward code after the optimizer's, in the stacks
	byAnnotation // marks of the program: a profiler's steps, the optimizer's record
)

// steps cuts a trace where the program's steps begin. Step k of the complete ones
// is [bounds[k], bounds[k+1]).
type steps struct {
	bounds []int
	names  []string // of the complete ones, and of the one after them that did not end
	known  int
	basis  string
}

func (s *steps) complete() int { return max(len(s.bounds)-1, 0) }

// program reports whether they are steps of the program, and not only of the curve.
func (s *steps) program() bool { return s.known >= byPasses }

// of is the step of an event: -1 before the first one, complete() after the last.
func (s *steps) of(event int) int {
	return sort.SearchInts(s.bounds, event+1) - 1
}

// name is a step for people.
func (s *steps) name(k int) string {
	switch n := s.complete(); {
	case n == 0:
		return "the trace"
	case k < 0:
		return "the part before " + s.names[0]
	case k >= len(s.names):
		return "the part after " + s.names[n-1]
	}
	return s.names[k]
}

// span names a run of steps.
func (s *steps) span(from, to int) string {
	if from == to {
		return s.name(from)
	}
	last := s.name(to)
	for _, kind := range []string{"trace step ", "step ", "wave "} {
		last = strings.TrimPrefix(last, kind)
	}
	return s.name(from) + " to " + last
}

// An interval is an annotation as events: [from, to).
type interval struct {
	name     string
	from, to int
	begun    bool // its start is in the file
	ended    bool // so is its end
}

// annotations places the marks of one device between the events of its trace, by
// their times. They are in the order in which they began.
func annotations(m *evidence.MemSnapshot, device int, t *evidence.MemTrace) []interval {
	var marks []evidence.MemAnnotation
	for _, a := range m.Annotations {
		if a.Device == device && a.Time > 0 {
			marks = append(marks, a)
		}
	}
	if len(marks) == 0 || t.Len() == 0 || !m.Has.Times {
		return nil
	}
	slices.SortStableFunc(marks, func(a, b evidence.MemAnnotation) int { return cmp.Compare(a.Time, b.Time) })
	var out []interval
	open := map[string][]int{}
	next := 0
	put := func(i int, a evidence.MemAnnotation) {
		if a.Start {
			open[a.Name] = append(open[a.Name], len(out))
			out = append(out, interval{name: a.Name, from: i, to: t.Len(), begun: true})
			return
		}
		if o := open[a.Name]; len(o) > 0 {
			x := &out[o[len(o)-1]]
			x.to, x.ended = i, true
			open[a.Name] = o[:len(o)-1]
			return
		}
		out = append(out, interval{name: a.Name, to: i, ended: true})
	}
	for i, e := range t.All() {
		for next < len(marks) && e.Time >= marks[next].Time {
			put(i, marks[next])
			next++
		}
		if next == len(marks) {
			break
		}
	}
	for ; next < len(marks); next++ {
		put(t.Len(), marks[next])
	}
	slices.SortStableFunc(out, func(a, b interval) int { return cmp.Compare(a.from, b.from) })
	return out
}

// around is the innermost annotation that holds an event, "" where none does.
func around(list []interval, event int) string {
	name, from := "", -1
	for _, x := range list {
		if x.from <= event && event < x.to && x.from >= from {
			name, from = x.name, x.from
		}
	}
	return name
}

// A sighting counts how the stacks of a trace change from one part of the program
// to the next.
type sighting struct {
	passes, optimizers []int // events at which forward code begins after backward code, after the optimizer's
	last               phase
	stepped            bool // the optimizer allocated since forward code last did
}

func (s *sighting) see(i int, x *stackFacts) {
	switch x.phase {
	case forward:
		if x.again || x.eval {
			return
		}
		if s.last == backward || s.last == optimizer {
			s.passes = append(s.passes, i)
		}
		if s.stepped {
			s.optimizers = append(s.optimizers, i)
		}
		s.stepped, s.last = false, forward
	case backward:
		s.last = backward
	case optimizer:
		s.stepped, s.last = true, optimizer
	}
}

// fewest is how many step boundaries a basis must show.
const fewest = 3

// findSteps chooses the surest way that shows enough steps.
func findSteps(list []interval, s *sighting) steps {
	profiler := map[int]string{}
	optim := map[string][]int{}
	scopes := map[string][]int{}
	last := -1
	for _, x := range list {
		if n, ok := strings.CutPrefix(x.name, "ProfilerStep#"); ok && x.begun {
			profiler[x.from] = "step " + bounded(n, 20)
			if x.ended {
				last = max(last, x.to)
			}
		}
		if strings.HasPrefix(x.name, "Optimizer.step#") && x.ended {
			optim[x.name] = append(optim[x.name], x.to)
		} else if l := strings.ToLower(x.name); x.begun && (strings.Contains(l, "step") || strings.Contains(l, "iter") || strings.Contains(l, "batch")) {
			scopes[x.name] = append(scopes[x.name], x.from)
		}
	}
	if len(profiler) >= fewest {
		out := steps{known: byAnnotation, basis: "the profiler's steps that the file records"}
		for at := range profiler {
			out.bounds = append(out.bounds, at)
		}
		slices.Sort(out.bounds)
		if last > out.bounds[len(out.bounds)-1] {
			out.bounds = append(out.bounds, last)
		}
		for _, at := range out.bounds {
			if name, ok := profiler[at]; ok {
				out.names = append(out.names, name)
			}
		}
		return out
	}
	if name, at := most(optim); len(at) >= fewest {
		return numbered(at, "trace step", byAnnotation, "the ends of "+strings.Replace(bounded(name, 60), "Optimizer.step#", "", 1)+" that the file records")
	}
	if name, at := most(scopes); len(at) >= fewest {
		return numbered(at, "trace step", byAnnotation, "the starts of "+bounded(name, 60)+" that the file records")
	}
	if at := s.optimizers; len(at) >= fewest {
		return numbered(at, "trace step", byOptimizer, "where forward code follows the optimizer's in the stacks")
	}
	if at := s.passes; len(at) >= fewest {
		return numbered(at, "trace step", byPasses, "where forward code follows backward code in the stacks")
	}
	return steps{}
}

// most is the name that occurs most often, by name where several do.
func most(of map[string][]int) (string, []int) {
	best := ""
	for name, at := range of {
		if len(at) > len(of[best]) || len(at) == len(of[best]) && (best == "" || name < best) {
			best = name
		}
	}
	return best, of[best]
}

func numbered(at []int, kind string, known int, basis string) steps {
	out := steps{bounds: slices.Compact(slices.Sorted(slices.Values(at))), known: known, basis: basis}
	for k := range out.bounds {
		out.names = append(out.names, fmt.Sprintf("%s %d", kind, k+1))
	}
	return out
}

// minima cuts a trace at the lowest points of its curve: those between two rises
// of at least a third of its whole range.
func minima(curve []fine) steps {
	lo, hi := int64(1<<62), int64(-1<<62)
	for i := range curve {
		lo, hi = min(lo, curve[i].min), max(hi, curve[i].max)
	}
	swing := (hi - lo) / 3
	if swing <= 0 {
		return steps{}
	}
	var at []int
	low, lowAt, high := int64(1<<62), 0, int64(-1<<62)
	up := true // the curve is on its way up: the next turn is a peak
	for i := range curve {
		b := &curve[i]
		first, second := b.min, b.max
		if b.minAt > b.maxAt {
			first, second = b.max, b.min
		}
		for _, v := range [2]int64{first, second} {
			switch {
			case up:
				if high = max(high, v); high-v >= swing {
					up, low, lowAt = false, v, b.minAt
				}
			case v < low:
				low = v
				if v == b.min {
					lowAt = b.minAt
				}
			case v-low >= swing:
				at = append(at, lowAt)
				up, high = true, v
			}
		}
	}
	if len(at) < fewest {
		return steps{}
	}
	return numbered(at, "wave", byMinima, "cut at the lowest points between the peaks of active memory")
}
