package memory_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/inquest-dev/inquest/internal/evidence"
	"github.com/inquest-dev/inquest/internal/incident"
	"github.com/inquest-dev/inquest/internal/memory"
	"github.com/inquest-dev/inquest/internal/reader/memsnap"
)

// TestGraphHeld: activations of past steps that are alive; a list of losses is not the
// same.
func TestGraphHeld(t *testing.T) {
	for _, marked := range []bool{true, false} {
		p := newProgram()
		for range 8 {
			p.train(marked, func() {
				for l := range 5 {
					p.alloc(mib, "forward", 10+l)
				}
			}, nil)
		}
		d := examine(t, p.snapshot(0), memory.Options{})
		if c := cause(d, "graph_held"); c != "true" {
			t.Errorf("marked %v: activations of every step are alive, and a held graph is %s", marked, c)
		}
		if len(d.Growth.Suspects) < 5 || d.Growth.Common == "" {
			t.Errorf("marked %v: %d suspects with %q in common", marked, len(d.Growth.Suspects), d.Growth.Common)
		}
		p = newProgram()
		for range 8 {
			p.train(marked, func() { p.alloc(4*mib, "forward", 14) }, nil)
		}
		if c := cause(examine(t, p.snapshot(0), memory.Options{}), "graph_held"); c == "true" {
			t.Errorf("marked %v: one output of each step is kept, and is called a held graph", marked)
		}
	}
}

// TestEvaluation: outputs that are kept, and evaluations that let go of theirs.
func TestEvaluation(t *testing.T) {
	run := func(places int, keep, freed bool) *incident.MemoryDevice {
		p := newProgram()
		var kept []int
		for range 4 {
			p.train(true, nil, nil)
		}
		for range 16 {
			var batch []int
			for l := range places {
				batch = append(batch, p.alloc(4*mib, "eval", 70+l))
			}
			for range 6 {
				p.free(p.alloc(2*mib, "eval", 60))
			}
			if keep {
				kept = append(kept, batch...)
			} else {
				p.free(batch...)
			}
		}
		if freed {
			p.free(kept...)
		}
		return examine(t, p.snapshot(0), memory.Options{})
	}
	if c := cause(run(1, true, false), "eval_outputs_kept"); c != "true" {
		t.Errorf("kept outputs: %s", c)
	}
	if c := cause(run(1, true, true), "eval_outputs_kept"); c != "true" {
		t.Errorf("outputs kept until the peak: %s", c)
	}
	if c := cause(run(1, false, false), "eval_outputs_kept"); c != "unknown" {
		t.Errorf("outputs that are let go: %s", c)
	}
	d := run(12, true, false)
	if c := cause(d, "eval_outputs_kept"); c != "unknown" {
		t.Errorf("activations at twelve places are called outputs: %s", c)
	}
	if c := cause(d, "graph_held"); c != "true" {
		t.Errorf("activations of evaluation batches: %s", c)
	}
}

// TestFailures: what the refused request says of the optimizer and of a spike.
func TestFailures(t *testing.T) {
	p := newProgram()
	p.alloc(100*mib, "plain", 1)
	p.free(p.alloc(20*mib, "forward", 10))
	p.free(p.alloc(20*mib, "backward", 0))
	for range 10 {
		p.alloc(10*mib, "optimizer", 50)
	}
	d := examine(t, p.snapshot(160*mib), memory.Options{})
	if len(d.Pressure.OOMs) != 1 || cause(d, "optimizer_states") != "true" {
		t.Errorf("the optimizer's first step fails: %+v, states %s", d.Pressure.OOMs, cause(d, "optimizer_states"))
	}

	p = newProgram()
	for range 5 {
		p.train(true, nil, nil)
	}
	p.Ops = append(p.Ops, p.Ops[len(p.Ops)-1])
	for l := range 5 {
		p.alloc(24*mib, "forward", 10+l)
	}
	d = examine(t, p.snapshot(140*mib), memory.Options{})
	if len(d.Pressure.OOMs) != 1 || cause(d, "sequence_spike") != "true" || cause(d, "optimizer_states") != "false" {
		t.Errorf("a batch of three times the size: %+v, spike %s, states %s", d.Pressure.OOMs, cause(d, "sequence_spike"), cause(d, "optimizer_states"))
	}

	p = newProgram()
	for range 5 {
		p.train(true, nil, func() { p.alloc(12*mib, "plain", 200) })
	}
	for range 20 {
		p.train(true, nil, func() { p.alloc(12*mib, "plain", 200) })
	}
	d = examine(t, p.snapshot(200*mib), memory.Options{})
	if len(d.Pressure.OOMs) != 1 || cause(d, "sequence_spike") == "true" {
		t.Errorf("a leak is called a spike: %+v", d.Causes)
	}
}

// TestCheckpoint: what was read lies beside tensors of the same sizes, or is the model.
func TestCheckpoint(t *testing.T) {
	p := newProgram()
	for i := range int64(10) {
		p.alloc((10+i)*mib, "plain", 1)
	}
	for i := range int64(10) {
		p.alloc((10+i)*mib, "load", 2)
	}
	p.train(true, nil, nil)
	if c := cause(examine(t, p.snapshot(0), memory.Options{}), "checkpoint_copy"); c != "true" {
		t.Errorf("a checkpoint beside the model: %s", c)
	}
	p = newProgram()
	for i := range int64(10) {
		p.alloc((10+i)*mib, "load", 2)
	}
	p.train(true, nil, nil)
	if c := cause(examine(t, p.snapshot(0), memory.Options{}), "checkpoint_copy"); c != "unknown" {
		t.Errorf("a model that was loaded once: %s", c)
	}
	p = newProgram()
	p.train(true, nil, nil)
	if c := cause(examine(t, p.snapshot(0), memory.Options{}), "checkpoint_copy"); c != "false" {
		t.Errorf("no checkpoint: %s", c)
	}
}

// TestOutside: device memory beyond the allocator's needs a refused request and a
// capacity that somebody states.
func TestOutside(t *testing.T) {
	p := newProgram()
	p.alloc(100*mib, "plain", 1)
	p.alloc(100*mib, "plain", 2)
	m := p.snapshot(150 * mib)
	if d := examine(t, m, memory.Options{}); d.Outside != nil || cause(d, "outside_allocator") != "unknown" {
		t.Errorf("without a capacity: %+v", d.Outside)
	}
	if d := examine(t, m, memory.Options{Capacity: 200 * mib}); d.Outside == nil || d.Outside.Bytes != 50*mib || cause(d, "outside_allocator") != "false" {
		t.Errorf("50 MiB outside: %+v", d.Outside)
	}
	if d := examine(t, m, memory.Options{Capacity: 400 * mib}); d.Outside == nil || d.Outside.Bytes != 250*mib || cause(d, "outside_allocator") != "true" {
		t.Errorf("250 MiB outside: %+v", d.Outside)
	}
	if d := examine(t, m, memory.Options{Capacity: 100 * mib}); d.Outside == nil || !strings.Contains(d.Outside.Basis, "cannot be told") || cause(d, "outside_allocator") != "unknown" {
		t.Errorf("a capacity that cannot be: %+v", d.Outside)
	}
}

// TestRuns holds what is said of the generated runs to what happened in them.
func TestRuns(t *testing.T) {
	for _, c := range []struct {
		path, standing, answer string
		causes                 map[string]string
	}{
		{"../../examples/fragmentation", incident.Established, incident.Avoided, map[string]string{"graph_held": "false", "optimizer_states": "false", "sequence_spike": "false", "eval_outputs_kept": "unknown"}},
		{"../../testdata/snapshots/does-not-fit", incident.RuledOut, incident.NotAvoided, map[string]string{"sequence_spike": "true", "graph_held": "false"}},
		{"../../testdata/snapshots/retained-graph", incident.RuledOut, incident.NotAvoided, map[string]string{"graph_held": "true", "sequence_spike": "false"}},
		{"../../testdata/snapshots/optimizer-first-step", incident.Possible, incident.NotAvoided, map[string]string{"optimizer_states": "true", "graph_held": "unknown"}},
		{"../../testdata/snapshots/eval-outputs", incident.Supported, incident.Avoided, map[string]string{"eval_outputs_kept": "true", "optimizer_states": "unknown", "graph_held": "unknown"}},
	} {
		m := decode(t, filepath.Join(c.path, "snapshot.pickle"))
		d := examine(t, m, memory.Options{})
		if d.Fragmentation.Standing != c.standing {
			t.Errorf("%s: fragmentation is %s, want %s: %s; missing %s", c.path, d.Fragmentation.Standing, c.standing, d.Fragmentation.Says, d.Fragmentation.Missing)
		}
		if r := d.Replay; r == nil || !r.Fidelity.OK || len(r.Answers) != 1 || r.Answers[0].Answer != c.answer {
			t.Errorf("%s: replay %+v, want %s", c.path, r, c.answer)
		}
		for fact, want := range c.causes {
			if got := cause(d, fact); got != want {
				t.Errorf("%s: %s is %s, want %s", c.path, fact, got, want)
			}
		}
		for _, x := range d.Causes {
			if x.Value && len(x.Spans) == 0 {
				t.Errorf("%s: %s has no span", c.path, x.Fact)
			}
		}
	}
}

func decode(t *testing.T, path string) *evidence.MemSnapshot {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	m, err := memsnap.Decode(context.Background(), f, memsnap.Options{Artifact: path})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// TestPublic: public snapshots are examined; none of them has a leak or a refused request.
func TestPublic(t *testing.T) {
	files, _ := filepath.Glob("../../../shared/data/memory_snapshots/*.pickle")
	if len(files) == 0 {
		t.Skip("no public snapshots beside the repository")
	}
	for _, path := range files {
		d := examine(t, decode(t, path), memory.Options{Buckets: 100, Largest: 100})
		if g := d.Growth; g != nil && len(g.Suspects) > 0 {
			t.Errorf("%s: suspects %+v", path, g.Suspects)
		}
		for _, c := range d.Causes {
			if c.Value {
				t.Errorf("%s: %s: %s", path, c.Fact, c.Why)
			}
		}
		if len(d.Pressure.OOMs) > 0 || d.Fragmentation.Standing != incident.Undecidable {
			t.Errorf("%s: %+v, %s", path, d.Pressure.OOMs, d.Fragmentation.Standing)
		}
	}
}
