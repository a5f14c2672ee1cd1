package memory_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/inquest-dev/inquest/internal/incident"
	"github.com/inquest-dev/inquest/internal/memory"
)

func suspect(g *incident.MemoryGrowth, place string) *incident.MemoryGrown {
	i := slices.IndexFunc(g.Suspects, func(x incident.MemoryGrown) bool { return strings.Contains(x.Name, place) })
	if i < 0 {
		return nil
	}
	return &g.Suspects[i]
}

func other(g *incident.MemoryGrowth, place string) string {
	for _, x := range g.Others {
		if strings.Contains(x.Name, place) {
			return x.Why
		}
	}
	return ""
}

// TestGrowth: what piles up is a suspect, what only stays is not.
func TestGrowth(t *testing.T) {
	for _, marked := range []bool{true, false} {
		var window []int
		p := newProgram()
		for step := range 60 {
			p.train(marked, nil, func() {
				p.alloc(2*mib, "plain", 100) // each step
				if step%3 == 0 {             // now and then
					p.alloc(3*mib, "plain", 110)
				}
				if step < 3 { // a cache that fills
					p.alloc(5*mib, "plain", 120)
				}
				window = append(window, p.alloc(1*mib, "plain", 130)) // the newest four
				if len(window) > 4 {
					p.free(window[0])
					window = window[1:]
				}
				if step == 5 { // once
					p.alloc(7*mib, "plain", 140)
				}
			})
		}
		d := examine(t, p.snapshot(0), memory.Options{Replay: memory.Replay{Off: true}})
		g := d.Growth
		if d.Trace.Steps < 50 {
			t.Fatalf("marked %v: %d steps", marked, d.Trace.Steps)
		}
		x := suspect(g, ":100)")
		if x == nil || x.PerStep == nil || *x.PerStep < 1.9*mib || *x.PerStep > 2.1*mib {
			t.Errorf("marked %v: what grows each step is judged %+v", marked, x)
		}
		if x := suspect(g, ":110)"); x == nil || x.Steps < 3 {
			t.Errorf("marked %v: what grows now and then is judged %+v; %s", marked, x, other(g, ":110)"))
		}
		for place, why := range map[string]string{":120)": "full", ":130)": "newest", ":140)": "once", ":50)": "its states"} {
			if s := suspect(g, place); s != nil {
				t.Errorf("marked %v: %s is a suspect: %s", marked, place, s.Why)
			}
			if got := other(g, place); got != "" && !strings.Contains(got, why) {
				t.Errorf("marked %v: %s is none because %q", marked, place, got)
			}
		}
		if g.PerStep == nil || *g.PerStep < 2.5*mib || *g.PerStep > 3.5*mib {
			t.Errorf("marked %v: grows by %v a step: %s", marked, g.PerStep, g.Says)
		}
		if c := cause(d, "graph_held"); c != "false" {
			t.Errorf("marked %v: a held graph is %s", marked, c)
		}
	}
}

// TestSteady: a run that holds its states and nothing else grows by nothing, and has
// no suspect.
func TestSteady(t *testing.T) {
	p := newProgram()
	for range 9 {
		p.train(true, nil, nil)
	}
	g := examine(t, p.snapshot(0), memory.Options{}).Growth
	if len(g.Suspects) > 0 || g.Bytes != 0 || g.PerStep != nil || !strings.HasPrefix(g.Says, "nothing grows") {
		t.Errorf("%+v", g)
	}
	if why := other(g, ":50)"); !strings.Contains(why, "its states") {
		t.Errorf("the optimizer's states are there because %q", why)
	}
}

// TestNoSteps: without three steps nothing is a suspect.
func TestNoSteps(t *testing.T) {
	p := newProgram()
	for range 40 {
		p.alloc(mib, "plain", 7)
	}
	g := examine(t, p.snapshot(0), memory.Options{}).Growth
	if len(g.Suspects) > 0 || g.Bytes != 40*mib || !strings.Contains(g.Says, "cannot be told") {
		t.Errorf("%+v", g)
	}
}

// TestBetween: growth between two events that were asked for.
func TestBetween(t *testing.T) {
	p := newProgram()
	a := p.alloc(4*mib, "plain", 1)
	p.alloc(8*mib, "plain", 2)
	p.free(a)
	p.alloc(3*mib, "plain", 3)
	m := p.snapshot(0)
	from, to := 1, m.Traces[0].Len()-1 // after the first allocation, at the end
	g := examine(t, m, memory.Options{From: &from, To: &to}).Growth
	if g.Bytes != 7*mib || len(g.Others) != 2 || g.Others[0].Bytes != 8*mib || g.Others[1].Bytes != 3*mib {
		t.Errorf("%+v", g)
	}
}

// TestUneven: growth a step is told only of what goes on growing.
func TestUneven(t *testing.T) {
	for what, c := range map[string]struct {
		hold   func(step int, held []int) (drop int) // how many of the oldest are let go
		says   string
		steady bool
	}{
		"a list":             {func(int, []int) int { return 0 }, "a step", true},
		"a queue, then full": {func(_ int, held []int) int { return max(len(held)-14, 0) }, "it settles", false},
		"a collector":        {func(step int, held []int) int { return map[bool]int{true: len(held)}[step%7 == 6] }, "rises and falls", false},
	} {
		p := newProgram()
		var held []int
		for step := range 20 {
			p.train(true, nil, func() {
				held = append(held, p.alloc(10*mib, "plain", 200))
				n := c.hold(step, held)
				p.free(held[:n]...)
				held = held[n:]
			})
		}
		g := examine(t, p.snapshot(0), memory.Options{}).Growth
		if g == nil || (g.PerStep != nil) != c.steady || !strings.Contains(g.Says, c.says) {
			t.Errorf("%s: %+v", what, g)
		}
	}
}

// TestAfterwards: that steps do not grow is not all that is said where evaluation after them does.
func TestAfterwards(t *testing.T) {
	p := newProgramOf(5)
	for range 40 {
		p.alloc(10*mib, "eval", 300)
		p.free(p.alloc(2*mib, "eval", 301))
	}
	g := examine(t, p.snapshot(300*mib), memory.Options{}).Growth
	if g == nil || !strings.HasPrefix(g.Says, "nothing grows") || !strings.Contains(g.Says, "; in the part after step 4 ") {
		t.Errorf("%+v", g)
	}
}
