package memory_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/inquest-dev/inquest/internal/evidence"
	"github.com/inquest-dev/inquest/internal/incident"
	"github.com/inquest-dev/inquest/internal/memory"
	"github.com/inquest-dev/inquest/internal/testkit/allocmodel"
)

// TestBeyond: that another setting serves the refused request does not make the layout the
// cause, where the run would have failed all the same a little later, or may have.
func TestBeyond(t *testing.T) {
	const path = "../../examples/fragmentation/snapshot.pickle"
	check := func(what string, m *evidence.MemSnapshot, standing, missing string) {
		t.Helper()
		d := examine(t, m, memory.Options{})
		r := d.Replay
		if r == nil || !r.Fidelity.OK || len(r.Answers) != 1 || r.Answers[0].Answer != incident.Avoided {
			t.Errorf("%s: expandable segments do not serve the request: %+v", what, r)
			return
		}
		if f := d.Fragmentation; f.Standing != standing || !strings.Contains(f.Missing, missing) || (f.Layout != nil && *f.Layout) != (standing == incident.Established) {
			t.Errorf("%s: fragmentation is %s, missing %q; want %s, missing %q", what, f.Standing, f.Missing, standing, missing)
		}
	}
	check("the run as it was", decode(t, path), incident.Established, "")

	// Free memory in pieces of 36 MiB; the step that fails asks for 60 MiB in one piece, and would ask for as much
	// again, as the steps before it did in small.
	for _, c := range []struct {
		again             int64
		standing, missing string
	}{{6 * mib, incident.Established, ""}, {20 * mib, incident.Supported, "proof that the rest of the step has room"}, {40 * mib, incident.Possible, "room for the rest of the step"}} {
		p := newProgram()
		var big []int
		for range 6 {
			big = append(big, p.alloc(80*mib, "plain", 1))
		}
		for _, b := range big {
			p.free(b)
			p.alloc(44*mib, "plain", 2)
		}
		for range 5 {
			p.train(true, func() {
				x := []int{p.alloc(20*mib, "forward", 40)}
				for left := c.again; left > 0; left -= 20 * mib {
					x = append(x, p.alloc(min(left, 20*mib), "forward", 41))
				}
				p.free(x...)
			}, nil)
		}
		p.Ops = append(p.Ops, allocmodel.Op{Kind: allocmodel.StepStart, Name: "ProfilerStep#5"})
		for l := range 5 {
			p.alloc(8*mib, "forward", 10+l)
		}
		p.alloc(60*mib, "forward", 40)
		check(fmt.Sprintf("%d MiB more are needed", 3*c.again/mib), p.snapshot(502*mib), c.standing, c.missing)
	}

	m := decode(t, path)
	for _, e := range m.Traces[0].All() {
		e.Stack = 0
	}
	check("no stacks: what the step needs further is not known", m, incident.Supported, "what the program needed after the refused request")

	for capacity := int64(150 * mib); capacity < 260*mib; capacity += 2 * mib {
		p := newProgram()
		for range 25 {
			p.train(true, nil, func() { p.alloc(12*mib, "plain", 200) })
		}
		d := examine(t, p.snapshot(capacity), memory.Options{})
		if r := d.Replay; r != nil && len(r.Answers) == 1 && r.Answers[0].Answer == incident.Avoided {
			if f := d.Fragmentation; f.Standing != incident.Possible && f.Standing != incident.Supported || !strings.Contains(f.Missing, "piles up") {
				t.Errorf("a leak on a card of %d MiB: fragmentation is %s, missing %q", capacity/mib, f.Standing, f.Missing)
			}
		}
	}
}

// TestSurvivedRequest: that an earlier request, which the program caught, was too large
// for the card rules nothing out for the one that ended the run.
func TestSurvivedRequest(t *testing.T) {
	p := newProgram()
	var big []int
	for range 6 {
		big = append(big, p.alloc(80*mib, "plain", 1))
	}
	for _, b := range big {
		p.free(b)
		p.alloc(44*mib, "plain", 2)
	}
	p.alloc(450*mib, "plain", 3)
	for range 3 {
		p.train(true, nil, nil)
	}
	p.alloc(60*mib, "forward", 40)
	run := allocmodel.Simulate(p.Ops, allocmodel.Default(), allocmodel.Device{Capacity: 502 * mib}, allocmodel.Options{Survive: true})
	d := examine(t, run.Snapshot(&p.Program, allocmodel.SnapOptions{}), memory.Options{})
	ooms, r := d.Pressure.OOMs, d.Replay
	if len(ooms) != 2 || !ooms[0].Survived || ooms[1].Survived || r == nil || !r.Fidelity.OK || r.Layout == nil || !r.Layout.Fits || r.Layout.Event != ooms[1].Event {
		t.Fatalf("the run is not what it was built to be: %+v, %+v", ooms, r)
	}
	if f := d.Fragmentation; f.Standing == incident.RuledOut || f.Layout != nil {
		t.Errorf("fragmentation is %s, layout %v: %s", f.Standing, f.Layout, f.Says)
	}
}

// TestCut: what a damaged file does not show is not ruled out, and nothing is replayed.
func TestCut(t *testing.T) {
	m := decode(t, "../../testdata/snapshots/retained-graph/snapshot.pickle")
	whole := examine(t, m, memory.Options{})
	m.Cut = true
	d := examine(t, m, memory.Options{})
	if whole.Replay == nil || d.Replay != nil {
		t.Error("a damaged history is replayed")
	}
	denied := func(d *incident.MemoryDevice) (n int) {
		for _, c := range d.Causes {
			if !c.Value {
				n++
			}
		}
		return n
	}
	if denied(whole) == 0 || denied(d) != 0 || cause(d, "graph_held") != "true" {
		t.Errorf("of a damaged history: %+v", d.Causes)
	}
}

// TestKeyValueCache: a cache that an engine made at its start is told from tensors of other code.
func TestKeyValueCache(t *testing.T) {
	for _, c := range []struct {
		name string
		size int64
		want string
	}{{"_allocate_kv_cache", 50 * mib, "true"}, {"_allocate_kv_cache", 4 * mib, "unknown"}, {"load_weights", 50 * mib, "unknown"}} {
		p := newProgram()
		p.Frames = append(p.Frames, evidence.MemFrame{Name: c.name, File: "/opt/engine/worker/cache_engine.py", Line: 75})
		p.Stacks = append(p.Stacks, []uint32{uint32(len(p.Frames) - 1)})
		made := uint32(len(p.Stacks) - 1)
		for i := range 8 {
			p.Ops = append(p.Ops, allocmodel.Op{Kind: allocmodel.Alloc, ID: 1000 + i, Size: c.size, Stack: made})
		}
		for range 4 {
			p.alloc(30*mib, "plain", 3)
		}
		p.free(p.alloc(16*mib, "forward", 10))
		p.alloc(900*mib, "forward", 11)
		if got := cause(examine(t, p.snapshot(600*mib), memory.Options{}), "kv_cache"); got != c.want {
			t.Errorf("%s of 8 x %d MiB: %s, want %s", c.name, c.size/mib, got, c.want)
		}
	}
}

// TestProfile: ranges of addresses are not reported as segments with free memory.
func TestProfile(t *testing.T) {
	d := examine(t, decode(t, "../reader/memsnap/testdata/torch/profile.pickle.gz"), memory.Options{})
	if f := d.Fragmentation; f.Standing != incident.Undecidable || f.Free != 0 || len(f.Pinned) > 0 || d.Replay != nil || d.Peak == nil || d.Peak.Reserved != 0 {
		t.Errorf("%+v, peak %+v", f, d.Peak)
	}
	if len(d.Peak.Frames) == 0 || !strings.HasPrefix(d.Peak.Frames[0].Name, "train (") {
		t.Errorf("who made the peak: %+v", d.Peak.Frames)
	}
}
