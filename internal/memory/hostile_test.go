package memory_test

import (
	"context"
	"encoding/json"
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/inquest-dev/inquest/internal/evidence"
	"github.com/inquest-dev/inquest/internal/memory"
)

// nonsense is a snapshot in which nothing fits: entries in no order, addresses and sizes
// that cannot be, indices of what is not there.
func nonsense(r *rand.Rand) *evidence.MemSnapshot {
	m := &evidence.MemSnapshot{Artifact: "x.pickle", Form: "dict"}
	m.Has = evidence.MemSections{Traces: true, Settings: r.IntN(2) == 0, Annotations: true, BlockFrames: true, Times: r.IntN(4) > 0, Overflowed: r.IntN(2) == 0}
	number := func() int64 {
		switch r.IntN(5) {
		case 0:
			return r.Int64() - r.Int64()
		case 1:
			return int64(r.IntN(3)) - 1
		}
		return r.Int64N(1 << 26)
	}
	addr := func() uint64 {
		if r.IntN(20) == 0 {
			return r.Uint64()
		}
		return uint64(r.IntN(30)) * 512
	}
	for range r.IntN(20) {
		m.Frames = append(m.Frames, evidence.MemFrame{Name: []string{"forward", "step", "", "torch::autograd::Engine::x", "evaluate\x1b[31m"}[r.IntN(5)], File: []string{"??", "/a/b.py", "torch/optim/adam.py", "torch/nn/modules/module.py"}[r.IntN(4)], Line: r.IntN(9) - 1})
	}
	m.Stacks = [][]uint32{nil}
	for range r.IntN(6) {
		var s []uint32
		for range r.IntN(5) {
			s = append(s, uint32(r.IntN(25)))
		}
		m.Stacks = append(m.Stacks, s)
	}
	m.Notes = []evidence.MemNote{{}, {Category: "ACTIVATION"}}
	m.Streams, m.Pools = []uint64{0, 77}, [][2]int64{{}, {0, 1}}
	for d := range 1 + r.IntN(3) {
		m.Traces = append(m.Traces, evidence.MemTrace{})
		for range r.IntN(200) {
			m.Traces[d].Append(evidence.MemEvent{Addr: addr(), Size: number(), Time: number(), Stack: uint32(r.IntN(9)), Note: uint32(r.IntN(4)), Stream: uint16(r.IntN(4)), Pool: uint16(r.IntN(4)), Action: evidence.MemAction(r.IntN(12))})
		}
		for range r.IntN(5) {
			s := evidence.MemSegment{Device: d, Addr: addr(), Total: number(), Stream: uint16(r.IntN(4)), Pool: uint16(r.IntN(4)), Small: r.IntN(2) == 0, Expandable: r.IntN(2) == 0, Stack: uint32(r.IntN(9)), First: len(m.Blocks), N: r.IntN(5)}
			for range s.N {
				m.Blocks = append(m.Blocks, evidence.MemBlock{Addr: addr(), Size: number(), Requested: number(), Stack: uint32(r.IntN(9)), State: uint8(r.IntN(3))})
			}
			m.Segments = append(m.Segments, s)
		}
		for range r.IntN(12) {
			m.Annotations = append(m.Annotations, evidence.MemAnnotation{Name: []string{"ProfilerStep#1", "ProfilerStep#2", "Optimizer.step#A", "my step", ""}[r.IntN(5)], Start: r.IntN(2) == 0, Device: d, Time: number()})
		}
	}
	return m
}

// TestNonsense: whatever a snapshot holds is examined without a panic, twice with the same
// result, and the result can be written down.
func TestNonsense(t *testing.T) {
	for seed := range uint64(400) {
		r := rand.New(rand.NewPCG(seed, 9))
		m := nonsense(r)
		o := memory.Options{Buckets: 1 + r.IntN(50), Largest: r.IntN(20), Blocks: r.IntN(20), Capacity: r.Int64N(1 << 30)}
		if r.IntN(3) == 0 {
			from, to := r.IntN(300), r.IntN(300)
			o.From, o.To = &from, &to
		}
		a, err := memory.Examine(context.Background(), m, o)
		if err != nil {
			t.Fatal(err)
		}
		b, _ := memory.Examine(context.Background(), m, o)
		if !reflect.DeepEqual(a, b) {
			t.Fatalf("seed %d: two examinations differ", seed)
		}
		if _, err := json.Marshal(a); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		p := memory.PrintOf(m, nil, nil)
		memory.Change([]*memory.Print{p, memory.PrintOf(nonsense(r), nil, nil)}, 10)
	}
}

// TestCancelled: the end of ctx ends the work.
func TestCancelled(t *testing.T) {
	ctx, stop := context.WithCancel(context.Background())
	stop()
	if _, err := memory.Examine(ctx, newProgramOf(3).snapshot(0), memory.Options{}); err != context.Canceled {
		t.Errorf("got %v", err)
	}
}

// TestEmpty: nothing is there, and that is said.
func TestEmpty(t *testing.T) {
	a, err := memory.Examine(context.Background(), &evidence.MemSnapshot{}, memory.Options{})
	if err != nil || len(a.Devices) != 0 || len(a.Lacks) == 0 {
		t.Errorf("%+v, %v", a, err)
	}
	m := newProgramOf(1).snapshot(0)
	m.Traces = nil
	d := examine(t, m, memory.Options{Buckets: 10})
	if d.Peak != nil || d.Growth != nil || d.Timeline != nil || d.Replay != nil || d.Totals.Active == 0 || len(d.Live) == 0 {
		t.Errorf("%+v", d)
	}
}
