package trial

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/bits"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/inquest-dev/inquest/internal/incident"
)

// A program is a simulated command: what one run of it does with these values, n being how often
// it was run with them before.
type program func(values map[string]int64, n int) behaviour

type behaviour struct {
	result      string
	class, kind string
	peak, limit int64 // 0: not measured, not known
	took        time.Duration
}

var (
	good = behaviour{result: incident.Passed}
	oom  = behaviour{result: incident.OutOfMemory, class: "host_memory", kind: "host_alloc_failed"}
)

// A lab runs a simulated program for a search.
type lab struct {
	run   program
	runs  map[string]int
	now   time.Time
	made  int
	after func(n int) error // called before each trial
}

func newLab(run program) *lab {
	return &lab{run: run, runs: map[string]int{}, now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
}

func (l *lab) make(_ context.Context, values map[string]string, _ time.Duration) (*Made, error) {
	l.made++
	if l.after != nil {
		if err := l.after(l.made); err != nil {
			return nil, err
		}
	}
	numbers := map[string]int64{}
	for n, v := range values {
		numbers[n], _ = strconv.ParseInt(v, 10, 64)
	}
	key := keyOf(values)
	b := l.run(numbers, l.runs[key])
	l.runs[key]++
	t := incident.Trial{ID: fmt.Sprintf("t%d", l.made), Values: values, Begun: l.now.Format(time.RFC3339Nano)}
	l.now = l.now.Add(max(b.took, time.Second))
	ended := l.now.Format(time.RFC3339Nano)
	t.Ended = &ended
	t.Verdict = &incident.TrialVerdict{Result: b.result, Class: b.class, Kind: b.kind, Where: b.class, Text: "as simulated."}
	if b.peak > 0 {
		m := incident.Measure{Name: incident.AddressSpace, Peak: b.peak, Basis: "simulated"}
		if b.limit > 0 {
			m.Limit, m.LimitBy = &b.limit, "ulimit -v"
		}
		t.Measures = []incident.Measure{m}
	}
	return &Made{Done: Done{Trial: t}}, nil
}

// search makes a search of the program with these ranges.
func (l *lab) search(t *testing.T, change func(*Plan), vary ...string) (*incident.Trials, error) {
	t.Helper()
	p := Plan{Series: "s", Repeats: 3, Now: func() time.Time { return l.now }}
	for _, v := range vary {
		x, err := ParseVary(v)
		if err != nil {
			t.Fatal(err)
		}
		p.Vary = append(p.Vary, x)
		p.Template = append(p.Template, "{"+x.Name+"}")
	}
	if change != nil {
		change(&p)
	}
	if err := p.Check(); err != nil {
		t.Fatal(err)
	}
	got, err := Search(t.Context(), p, l.make, nil, nil)
	if got.Boundary.Trials > got.Boundary.Bound {
		t.Errorf("%v: %d trials, bound %d", vary, got.Boundary.Trials, got.Boundary.Bound)
	}
	return got, err
}

// memory models: what a value needs, in bytes.
var models = map[string]func(x int64) int64{
	"linear":         func(x int64) int64 { return 1<<30 + x*37<<20 },
	"powers of two":  func(x int64) int64 { return 1<<28 + int64(1)<<bits.Len64(uint64(x*33<<20-1)) },
	"quadratic":      func(x int64) int64 { return 1<<30 + x*x<<16 },
	"plateau":        func(x int64) int64 { return 1<<30 + max(x, 20)*37<<20 },
	"steps of eight": func(x int64) int64 { return 1<<30 + (x+7)/8*300<<20 },
	"not measured":   nil,
	"no limit known": func(x int64) int64 { return 1<<30 + x },
	"misleading":     func(x int64) int64 { return 1<<40 - x<<30 },
}

// Every range from 1 to 64 values, every edge of it, every model: the right edge, in no more than
// ⌈log2(HI-LO+2)⌉ trials before the repeats.
func TestEdgeOfEveryRange(t *testing.T) {
	for name, need := range models {
		t.Run(name, func(t *testing.T) {
			for n := int64(1); n <= 64; n++ {
				lo := 1 + n%5
				hi := lo + n - 1
				bound := bits.Len64(uint64(hi - lo + 1)) // ⌈log2(hi-lo+2)⌉
				for edge := lo; edge <= hi+1; edge++ {   // values below edge pass
					l := newLab(func(values map[string]int64, _ int) behaviour {
						x := values["N"]
						b := good
						if x >= edge {
							b = oom
						}
						if need != nil {
							b.peak = need(x)
							if name != "no limit known" {
								b.limit = need(edge) - 1 // as far as the model is monotone
							}
						}
						return b
					})
					got, err := l.search(t, nil, fmt.Sprintf("N=%d..%d", lo, hi))
					if err != nil {
						t.Fatal(err)
					}
					b := got.Boundary
					if b.Trials > bound || b.Bound != bound {
						t.Fatalf("%d..%d, edge %d: %d trials, bound %d; want at most %d", lo, hi, edge, b.Trials, b.Bound, bound)
					}
					checkEdge(t, &b.Edges[0], b.Answer, lo, hi, edge)
					if t.Failed() {
						t.Fatalf("%d..%d, edge %d", lo, hi, edge)
					}
				}
			}
		})
	}
}

// checkEdge compares an answer with the truth: values from lo to below edge pass.
func checkEdge(t *testing.T, e *incident.Edge, answer string, lo, hi, edge int64) {
	t.Helper()
	want := incident.Found
	switch {
	case edge > hi:
		want = incident.AllPass
	case edge == lo:
		want = incident.NonePasses
	}
	if answer != want || e.Answer != want {
		t.Errorf("answer %s, edge says %s; want %s", answer, e.Answer, want)
	}
	if edge == lo != (e.Largest == nil) || e.Largest != nil && (e.Largest.Value != edge-1 || e.Largest.Passed != 3 || e.Largest.Of != 3 || len(e.Largest.Trials) != 3) {
		t.Errorf("largest %+v, want %d", e.Largest, edge-1)
	}
	if edge > hi != (e.Smallest == nil) || e.Smallest != nil && (e.Smallest.Value != edge || e.Smallest.Failed != 3 || e.Smallest.Of != 3) {
		t.Errorf("smallest %+v, want %d", e.Smallest, edge)
	}
}

// Where peaks grow in a line, the search goes to the edge at once, as far as the bound leaves
// room for a guess that is wrong: of 600 values, whose edges take ten trials as up to 1023 do.
func TestFitSavesTrials(t *testing.T) {
	for _, edge := range []int64{2, 3, 100, 317, 450, 599, 601} {
		limit := int64(1<<30 + edge*37<<20 - 1)
		l := newLab(func(values map[string]int64, _ int) behaviour {
			b := good
			b.peak, b.limit = 1<<30+values["N"]*37<<20, limit
			if b.peak > limit {
				b = oom
			}
			return b
		})
		got, err := l.search(t, nil, "N=1..600")
		if err != nil {
			t.Fatal(err)
		}
		e := &got.Boundary.Edges[0]
		if e.Largest.Value != edge-1 && edge <= 600 {
			t.Errorf("edge %d: %+v", edge, e.Largest)
		}
		t.Logf("edge %d: %d trials of at most %d", edge, e.Trials, e.Bound)
		if edge > 300 && edge < 600 && e.Trials > 6 {
			t.Errorf("edge %d: %d trials", edge, e.Trials)
		}
		if f := e.Fit; edge > 3 && edge < 600 {
			if f == nil || f.Edge == nil || *f.Edge != edge-1 || f.Residual > 1 {
				t.Errorf("fit %+v", f)
			}
			if m := e.Margin; m == nil || m.Bytes == nil || *m.Bytes != 37<<20-1 || m.AtMost {
				t.Errorf("margin %+v", m)
			}
		}
	}
}

// Whatever peaks say, the bound holds and the edge is right.
func TestPeaksThatLie(t *testing.T) {
	for seed := range uint64(3000) {
		r := rand.New(rand.NewPCG(seed, 1))
		n := 1 + r.Int64N(300)
		edge := 1 + r.Int64N(n+1)
		l := newLab(func(values map[string]int64, _ int) behaviour {
			b := good
			if values["N"] >= edge {
				b = oom
			}
			if r.IntN(4) > 0 {
				b.peak = 1 + r.Int64N(1<<40)
			}
			if r.IntN(2) == 0 {
				b.limit = 1 + r.Int64N(1<<40)
			}
			return b
		})
		got, err := l.search(t, nil, fmt.Sprintf("N=1..%d", n))
		if err != nil {
			t.Fatal(err)
		}
		checkEdge(t, &got.Boundary.Edges[0], got.Boundary.Answer, 1, n, edge)
		if b := got.Boundary; b.Bound != bits.Len64(uint64(n)) {
			t.Errorf("bound %d of %d values", b.Bound, n)
		}
		if t.Failed() {
			t.Fatalf("seed %d: 1..%d, edge %d", seed, n, edge)
		}
	}
}

// Values of a band pass at one time and fail at another: none of them is said to pass or to
// fail, and what is said was seen each time.
func TestFlakyBand(t *testing.T) {
	for seed := range uint64(2000) {
		r := rand.New(rand.NewPCG(seed, 2))
		n := 2 + r.Int64N(64)
		low := 1 + r.Int64N(n)              // the first that may fail
		high := low + r.Int64N(n-low+1) + 1 // the first that always fails
		l := newLab(func(values map[string]int64, _ int) behaviour {
			x := values["N"]
			if x < low || x < high && r.IntN(2) == 0 {
				return good
			}
			return oom
		})
		got, err := l.search(t, nil, fmt.Sprintf("N=1..%d", n))
		if err != nil {
			t.Fatal(err)
		}
		b, e := got.Boundary, &got.Boundary.Edges[0]
		if e.Largest != nil && (e.Largest.Passed != e.Largest.Of || e.Largest.Of < 3 || e.Largest.Value >= high) {
			t.Errorf("largest %+v", e.Largest)
		}
		if e.Smallest != nil && (e.Smallest.Failed != e.Smallest.Of || e.Smallest.Of < 3 || e.Smallest.Value < low) {
			t.Errorf("smallest %+v", e.Smallest)
		}
		if e.Largest == nil && low > 1 {
			t.Errorf("nothing found below %d, where all passes: %+v", low, e)
		}
		for _, f := range e.Flaky {
			if f.Passed == 0 || f.Failed == 0 || !slices.ContainsFunc(got.Limits, func(s string) bool { return strings.Contains(s, fmt.Sprintf("N=%d is flaky", f.Value)) }) && len(e.Flaky) < 4 {
				t.Errorf("flaky %+v, limits %q", f, got.Limits)
			}
		}
		if e.Largest != nil && e.Smallest != nil && b.Answer != incident.Found {
			t.Errorf("answer %s", b.Answer)
		}
		if e.Largest == nil && e.Smallest == nil && b.Answer != incident.Flaky {
			t.Errorf("answer %s of nothing", b.Answer)
		}
		if t.Failed() {
			t.Fatalf("seed %d: 1..%d, band %d to %d", seed, n, low, high)
		}
	}
}

// A value that passes only at first is not one that passes.
func TestFlakyEdge(t *testing.T) {
	l := newLab(func(values map[string]int64, n int) behaviour {
		if x := values["N"]; x < 12 || x == 12 && n == 0 {
			return good
		}
		return oom
	})
	got, err := l.search(t, nil, "N=1..32")
	if err != nil {
		t.Fatal(err)
	}
	e := &got.Boundary.Edges[0]
	if e.Answer != incident.Found || e.Largest.Value != 11 || e.Smallest.Value != 13 || len(e.Flaky) != 1 || e.Flaky[0].Value != 12 || e.Flaky[0].Passed != 1 || e.Flaky[0].Of != 2 {
		t.Errorf("%+v, flaky %+v, largest %+v, smallest %+v", e, e.Flaky, e.Largest, e.Smallest)
	}
}

// What passes above what fails is said.
func TestNotMonotone(t *testing.T) {
	l := newLab(func(values map[string]int64, n int) behaviour {
		// 9 fails at its first run only because of something else; 10 always passes.
		if x := values["N"]; x == 9 && n == 0 || x > 12 {
			return oom
		}
		return good
	})
	got, err := l.search(t, nil, "N=1..16")
	if err != nil {
		t.Fatal(err)
	}
	b := got.Boundary
	if len(b.NotMonotone) == 0 || !strings.Contains(strings.Join(got.Limits, " "), "More does not always need more memory") {
		t.Errorf("%q, %q", b.NotMonotone, got.Limits)
	}
}

func TestOtherFailure(t *testing.T) {
	for _, c := range []struct {
		name   string
		b      behaviour
		any    bool
		answer string
		says   string
	}{
		{"a failure of the code", behaviour{result: incident.TrialFailed, class: "code", kind: "shape_mismatch"}, false, incident.OtherFailure, "this is another failure"},
		{"any failure", behaviour{result: incident.TrialFailed, class: "code", kind: "shape_mismatch"}, true, incident.Found, ""},
		{"a time limit", behaviour{result: incident.TimedOut}, false, incident.NotDecided, "decides nothing"},
		{"a time limit, any failure", behaviour{result: incident.TimedOut}, true, incident.NotDecided, "decides nothing"},
		{"nothing is known", behaviour{result: incident.TrialUnclear}, false, incident.NotDecided, "cannot be told"},
		{"stopped from outside", behaviour{result: incident.TrialInterrupted}, false, incident.NotDecided, "cannot be told"},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := newLab(func(values map[string]int64, _ int) behaviour {
				if values["N"] > 20 {
					return c.b
				}
				return good
			})
			got, err := l.search(t, func(p *Plan) { p.AnyFailure = c.any }, "N=1..64")
			if err != nil {
				t.Fatal(err)
			}
			if got.Boundary.Answer != c.answer || !strings.Contains(strings.Join(got.Limits, " "), c.says) {
				t.Errorf("answer %s, limits %q", got.Boundary.Answer, got.Limits)
			}
			if e := &got.Boundary.Edges[0]; c.answer == incident.Found && (e.Largest.Value != 20 || e.Smallest.Value != 21) {
				t.Errorf("%+v", e)
			}
			if c.answer != incident.Found && got.Boundary.Edges[0].Smallest != nil {
				t.Error("a trial that decides nothing counts as a failure of memory")
			}
		})
	}
}

func TestKeepProduct(t *testing.T) {
	var tried []int64
	l := newLab(func(values map[string]int64, _ int) behaviour {
		if values["MICRO"]*values["ACCUM"] != 48 {
			t.Errorf("%v", values)
		}
		tried = append(tried, values["MICRO"])
		if values["MICRO"] > 12 {
			return oom
		}
		return good
	})
	got, err := l.search(t, func(p *Plan) {
		p.Keep = &incident.KeptProduct{Name: "MICRO", Other: "ACCUM", Product: 48}
		p.Template = append(p.Template, "{ACCUM}")
	}, "MICRO=1..32")
	if err != nil {
		t.Fatal(err)
	}
	e := &got.Boundary.Edges[0]
	if e.Largest.Value != 12 || e.Largest.Values["ACCUM"] != "4" || e.Smallest.Value != 16 {
		t.Errorf("%+v %+v", e.Largest, e.Smallest)
	}
	if n := len(got.Boundary.Skipped); n != 32-9 { // 1 2 3 4 6 8 12 16 24
		t.Errorf("%d skipped", n)
	}
	if got.Boundary.Bound != 4 {
		t.Errorf("bound %d for 9 values", got.Boundary.Bound)
	}
}

// Of two names the largest of the first is found for each value of the second.
func TestTwoNames(t *testing.T) {
	for _, budget := range []int64{1, 40, 64, 500, 1 << 20} {
		l := newLab(func(values map[string]int64, _ int) behaviour {
			if values["B"]*values["S"] > budget {
				return oom
			}
			return good
		})
		got, err := l.search(t, nil, "B=1..32", "S=1..16")
		if err != nil {
			t.Fatal(err)
		}
		if len(got.Boundary.Edges) != 16 {
			t.Fatalf("%d edges", len(got.Boundary.Edges))
		}
		for i := range got.Boundary.Edges {
			e := &got.Boundary.Edges[i]
			s := e.Fixed["S"]
			if s != int64(i+1) {
				t.Errorf("edge %d is of S=%d", i, s)
			}
			checkEdge(t, e, e.Answer, 1, 32, min(budget/s, 32)+1)
		}
		if got.Boundary.Bound != 16*6 || got.Boundary.Trials > 60 {
			t.Errorf("budget %d: %d trials, bound %d", budget, got.Boundary.Trials, got.Boundary.Bound)
		}
	}
}

// A value passes only where all shapes do; the largest is tried first.
func TestAlso(t *testing.T) {
	var order []int64
	l := newLab(func(values map[string]int64, _ int) behaviour {
		order = append(order, values["SEQ"])
		if values["N"]*values["SEQ"] > 10_000 {
			return oom
		}
		return good
	})
	got, err := l.search(t, func(p *Plan) {
		a, err := ParseAlso("SEQ=128,4096,512")
		if err != nil {
			t.Fatal(err)
		}
		p.Also = append(p.Also, a)
		p.Template = append(p.Template, "{SEQ}")
	}, "N=1..16")
	if err != nil {
		t.Fatal(err)
	}
	e := &got.Boundary.Edges[0]
	if e.Largest.Value != 2 || e.Smallest.Value != 3 || len(e.Largest.Trials) != 9 || len(e.Smallest.Trials) != 3 {
		t.Errorf("%+v %+v", e.Largest, e.Smallest)
	}
	if order[0] != 4096 {
		t.Errorf("tried in the order %v", order)
	}
}

func TestBudgetAndResume(t *testing.T) {
	prog := func(values map[string]int64, _ int) behaviour {
		if values["N"] > 41 {
			return oom
		}
		return good
	}
	whole, err := newLab(prog).search(t, nil, "N=1..64")
	if err != nil {
		t.Fatal(err)
	}
	for stop := 1; stop <= len(whole.Trials); stop++ {
		l := newLab(prog)
		part, err := l.search(t, func(p *Plan) { p.Budget.Trials = stop }, "N=1..64")
		if err != nil {
			t.Fatal(err)
		}
		if len(part.Trials) != stop || stop < len(whole.Trials) && (part.Boundary.Answer != incident.NotDecided || part.Stopped == "") {
			t.Errorf("stopped at %d: %d trials, %s, %q", stop, len(part.Trials), part.Boundary.Answer, part.Stopped)
		}
		again := newLab(prog)
		p := Plan{Series: "s", Repeats: 3, Now: func() time.Time { return l.now }, Template: []string{"{N}"}, Vary: whole.Boundary.Vary}
		got, err := Search(t.Context(), p, again.make, part.Trials, nil)
		if err != nil {
			t.Fatal(err)
		}
		if again.made != len(whole.Trials)-stop {
			t.Errorf("stopped at %d: %d made again", stop, again.made)
		}
		if got.Boundary.Says != whole.Boundary.Says || len(got.Boundary.Points) != len(whole.Boundary.Points) {
			t.Errorf("stopped at %d: %q, want %q", stop, got.Boundary.Says, whole.Boundary.Says)
		}
	}
	l := newLab(prog)
	part, _ := l.search(t, func(p *Plan) { p.Budget.Time = 3 * time.Second }, "N=1..64")
	if len(part.Trials) != 3 || !strings.Contains(part.Stopped, "--time") {
		t.Errorf("%d trials, %q", len(part.Trials), part.Stopped)
	}
	// What the end of the search cut off is not a trial that took too long.
	l = newLab(func(map[string]int64, int) behaviour {
		return behaviour{result: incident.TimedOut, took: 10 * time.Second}
	})
	part, _ = l.search(t, func(p *Plan) { p.Budget.Time = 3 * time.Second }, "N=1..64")
	if !strings.Contains(part.Stopped, "--time") {
		t.Errorf("stopped %q, limits %q", part.Stopped, part.Limits)
	}
}

// An interrupt leaves what was found until then.
func TestInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	l := newLab(func(values map[string]int64, _ int) behaviour {
		if values["N"] > 41 {
			return oom
		}
		return good
	})
	l.after = func(n int) error {
		if n == 4 {
			cancel()
		}
		return nil
	}
	v, _ := ParseVary("N=1..64")
	got, err := Search(ctx, Plan{Repeats: 3, Now: func() time.Time { return l.now }, Template: []string{"{N}"}, Vary: []incident.Varied{v}}, l.make, nil, nil)
	if !errors.Is(err, context.Canceled) || len(got.Trials) != 4 || got.Boundary.Answer != incident.NotDecided || got.Stopped != "interrupt" {
		t.Errorf("%v, %d trials, %s, %q", err, len(got.Trials), got.Boundary.Answer, got.Stopped)
	}
	if e := &got.Boundary.Edges[0]; e.Largest == nil || e.Smallest == nil || e.Largest.Value > 41 || e.Smallest.Value < 42 {
		t.Errorf("%+v", e)
	}
	// No trial can be made at all.
	l = newLab(nil)
	refused := errors.New("refused")
	l.after = func(int) error { return refused }
	got, err = Search(t.Context(), Plan{Now: func() time.Time { return l.now }, Template: []string{"{N}"}, Vary: []incident.Varied{v}}, l.make, nil, nil)
	if !errors.Is(err, refused) || got == nil {
		t.Errorf("%v", err)
	}
}

// The smallest configuration that fails in the same way, for failures that need some of each.
func TestSmallestFailing(t *testing.T) {
	hang := behaviour{result: incident.TrialFailed, class: "collective", kind: "collective_timeout"}
	other := behaviour{result: incident.TrialFailed, class: "code", kind: "exception"}
	for seed := range uint64(500) {
		r := rand.New(rand.NewPCG(seed, 3))
		ranks, gpus, steps := 1+r.Int64N(8), 1+r.Int64N(8), 1+r.Int64N(1000)
		l := newLab(func(values map[string]int64, _ int) behaviour {
			switch {
			case values["RANKS"] < ranks:
				return good
			case values["GPUS"] < gpus:
				return other
			case values["STEPS"] < steps:
				return good
			}
			return hang
		})
		got, err := l.search(t, func(p *Plan) { p.Find = incident.SmallestFailing }, "RANKS=1..8", "GPUS=1..8", "STEPS=1..1000")
		if err != nil {
			t.Fatal(err)
		}
		s := got.Boundary.Smallest
		want := map[string]string{"RANKS": fmt.Sprint(ranks), "GPUS": fmt.Sprint(gpus), "STEPS": fmt.Sprint(steps)}
		if got.Boundary.Answer != incident.Found || !maps.Equal(s.Values, want) || s.Failed != 3 || s.Of != 3 || s.Kind != "collective_timeout" {
			t.Fatalf("seed %d: %s %+v, want %v", seed, got.Boundary.Answer, s, want)
		}
		for _, x := range s.Reduced {
			if x.Below != nil && x.Says == "" {
				t.Errorf("%+v", x)
			}
		}
	}
	// Nothing fails, or not as the incident did.
	l := newLab(func(map[string]int64, int) behaviour { return good })
	got, err := l.search(t, func(p *Plan) { p.Find = incident.SmallestFailing }, "STEPS=1..10")
	if err != nil || got.Boundary.Answer != incident.AllPass || l.made != 1 {
		t.Errorf("%v %s", err, got.Boundary.Answer)
	}
	l = newLab(func(map[string]int64, int) behaviour { return other })
	got, err = l.search(t, func(p *Plan) {
		p.Find = incident.SmallestFailing
		p.Original = &incident.Incident{Findings: incident.Findings{FirstFault: &incident.Event{Class: "collective", Kind: "collective_timeout"}}}
	}, "STEPS=1..10")
	if err != nil || got.Boundary.Answer != incident.OtherFailure || l.made != 1 {
		t.Errorf("%v %s", err, got.Boundary.Answer)
	}
	// It fails only now and then.
	l = newLab(func(values map[string]int64, n int) behaviour {
		if values["STEPS"] >= 5 && n%2 == 0 {
			return hang
		}
		return good
	})
	got, err = l.search(t, func(p *Plan) { p.Find = incident.SmallestFailing }, "STEPS=1..10")
	if err != nil || got.Boundary.Answer != incident.Flaky {
		t.Errorf("%v %s", err, got.Boundary.Answer)
	}
}

func TestParseVary(t *testing.T) {
	for text, n := range map[string]int{"A=1..64": 64, "A=1..64:4": 16, "A=1..64:pow2": 7, "A=3..70:pow2": 5, "A=5..5": 1, "A=0..3": 4, "B_2=9..9223372036854775807:4611686018427387904": 2} {
		v, err := ParseVary(text)
		if err != nil || len(ladderOf(v)) != n {
			t.Errorf("%s: %v, %v", text, ladderOf(v), err)
		}
	}
	for _, text := range []string{"", "A", "A=", "A=1", "A=1..", "A=..4", "A=4..1", "A=1..4:0", "A=1..4:x", "A=-1..4", "A=1..x", "=1..4", "a b=1..4", "1A=1..4", "OUT=1..4", "A=5..7:pow2", "A=0..9223372036854775807", "A=1..2097153"} {
		if v, err := ParseVary(text); err == nil {
			t.Errorf("%q is read as %+v", text, v)
		}
	}
}

func TestFill(t *testing.T) {
	r := Replacements(map[string]string{"N": "4", "SEQ": "512", "OUT": "/o"})
	for in, want := range map[string]string{
		"{N}": "4", "--batch={N}": "--batch=4", `{"a": {"N": {N}}}`: `{"a": {"N": 4}}`, "{{N}}": "{4}", "{n}": "{n}", "{N": "{N", "N}": "N}", "{}": "{}", "{M}{SEQ}": "{M}512",
		"{N:list}": "0,1,2,3", "%{http_code}": "%{http_code}", "{OUT}/x": "/o/x", "${N}": "$4",
	} {
		if got := Fill([]string{in}, r)[0]; got != want {
			t.Errorf("%s: %s, want %s", in, got, want)
		}
	}
}

func TestPlanCheck(t *testing.T) {
	v := func(s string) incident.Varied {
		x, err := ParseVary(s)
		if err != nil {
			t.Fatal(err)
		}
		return x
	}
	for name, p := range map[string]Plan{
		"no command":          {Vary: []incident.Varied{v("A=1..2")}},
		"nothing varies":      {Template: []string{"a"}},
		"not in the command":  {Template: []string{"a"}, Vary: []incident.Varied{v("A=1..2")}},
		"twice":               {Template: []string{"{A}"}, Vary: []incident.Varied{v("A=1..2"), v("A=1..3")}},
		"three names":         {Template: []string{"{A}{B}{C}"}, Vary: []incident.Varied{v("A=1..2"), v("B=1..2"), v("C=1..2")}},
		"too many rows":       {Template: []string{"{A}{B}"}, Vary: []incident.Varied{v("A=1..2"), v("B=1..65")}},
		"nothing divides":     {Template: []string{"{A}{B}"}, Vary: []incident.Varied{v("A=5..7")}, Keep: &incident.KeptProduct{Name: "A", Other: "B", Product: 64}},
		"product of nothing":  {Template: []string{"{A}{B}"}, Vary: []incident.Varied{v("A=5..7")}, Keep: &incident.KeptProduct{Name: "C", Other: "B", Product: 64}},
		"shapes not in place": {Template: []string{"{A}"}, Vary: []incident.Varied{v("A=1..2")}, Also: []incident.Also{{Name: "S", Values: []string{"1"}}}},
	} {
		if err := p.Check(); err == nil {
			t.Errorf("%s is accepted", name)
		}
	}
	p := Plan{Template: []string{"x"}, Set: []string{"D={A:list}"}, Vary: []incident.Varied{v("A=1..2")}}
	if err := p.Check(); err != nil {
		t.Error(err)
	}
}
