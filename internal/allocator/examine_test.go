package allocator

import (
	"context"
	"strings"
	"testing"

	"github.com/inquest-dev/inquest/internal/evidence"
)

// A tape records what a program does to an allocator of the given room, as PyTorch
// would.
type tape struct {
	sim   *Sim
	snap  *evidence.MemSnapshot
	room  int64
	sizes map[Block]int64
}

func newTape(room int64) *tape {
	t := &tape{sim: New(Settings{}, &Bump{}, []uint64{0}, room), room: room, sizes: map[Block]int64{}}
	t.snap = &evidence.MemSnapshot{Form: "dict", Traces: make([]evidence.MemTrace, 1), Streams: []uint64{0}, Pools: [][2]int64{{0, 0}}}
	t.snap.Has = evidence.MemSections{Traces: true, Settings: true, BlockAddr: true, Requested: true, Expandable: true, SegmentPools: true}
	return t
}

func (t *tape) add(a evidence.MemAction, addr uint64, size int64) {
	t.snap.Traces[0].Append(evidence.MemEvent{Action: a, Addr: addr, Size: size})
}

func (t *tape) malloc(size int64) Block {
	b, ok := t.sim.Malloc(size, 0, 0)
	for _, e := range t.sim.Events() {
		t.add(e.Action, e.Addr, e.Size)
	}
	if !ok {
		t.add(evidence.MemOOM, uint64(t.room-t.sim.Reserved()), (&Settings{}).Round(size))
		return 0
	}
	t.add(evidence.MemAlloc, t.sim.Addr(b), size)
	t.sizes[b] = size
	return b
}

func (t *tape) free(b Block) {
	t.add(evidence.MemFreeRequested, t.sim.Addr(b), t.sizes[b])
	t.add(evidence.MemFreeCompleted, t.sim.Addr(b), t.sizes[b])
	t.sim.Complete(b)
}

func (t *tape) snapshot() *evidence.MemSnapshot {
	for _, g := range t.sim.Segments() {
		t.snap.Segments = append(t.snap.Segments, evidence.MemSegment{Addr: g.Addr, Total: g.Size, Small: g.Small, First: len(t.snap.Blocks), N: len(g.Blocks)})
		for _, b := range g.Blocks {
			t.snap.Blocks = append(t.snap.Blocks, evidence.MemBlock{Addr: b.Addr, Size: b.Size, Requested: b.Requested, State: b.State})
		}
	}
	return t.snap
}

func examine(t *testing.T, s *evidence.MemSnapshot, o Options) *Replay {
	t.Helper()
	r, err := Examine(context.Background(), s, 0, o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestFragmentation: each step leaves a small block in the segment of a large one, so
// that the next large one needs a segment of its own.
func TestFragmentation(t *testing.T) {
	tp := newTape(130 * m)
	for range 3 {
		big := tp.malloc(40 * m)
		tp.free(big)
		tp.malloc(2 * m)
		tp.malloc(37*m + 7) // fills the rest, so that nothing of it serves the next step
	}
	tp.malloc(40 * m)
	r := examine(t, tp.snapshot(), Options{Auto: true})
	if !r.Fidelity.OK || r.Fidelity.SameAddress != r.Fidelity.Allocs || r.Fidelity.OOMsSame != 1 {
		t.Fatalf("%+v", r.Fidelity)
	}
	if f := r.Fragment; !f.Known || f.Fits || r.Best >= 0 {
		t.Errorf("what is in use does not fit: %+v, best %d", f, r.Best)
	}
	for _, a := range r.Answers {
		if a.Verdict != NotAvoided || !strings.Contains(a.Why, "no layout helps") {
			t.Errorf("%v: %v, %s", a.Change, a.Verdict, a.Why)
		}
	}

	tp = newTape(130 * m)
	var fill []Block
	for range 3 {
		big := tp.malloc(40 * m)
		tp.free(big)
		tp.malloc(2 * m)
		fill = append(fill, tp.malloc(37*m+7))
	}
	for _, b := range fill {
		tp.free(b)
	}
	tp.malloc(39 * m)
	r = examine(t, tp.snapshot(), Options{Auto: true, Try: []Change{{Capacity: 200 * m}, {Capacity: 30 * m}}})
	if f := r.Fragment; !r.Fidelity.OK || !f.Known || !f.Fits || f.InUse != 6*m || f.Request != 39*m || f.Largest != 38*m {
		t.Fatalf("%+v %+v", r.Fragment, r.Fidelity)
	}
	if !r.Room.Known || r.Room.Bytes != 130*m || r.Recorded.Reserved != 120*m {
		t.Errorf("%+v %+v", r.Room, r.Recorded)
	}
	if r.Best < 0 || r.Answers[r.Best].Change.Conf != "expandable_segments:True" || r.Answers[r.Best].Peak.Reserved != 120*m || r.Answers[r.Best].Margin != 10*m {
		t.Errorf("best %d of %+v", r.Best, r.Answers)
	}
	if r.Answers[0].Verdict != Avoided || r.Answers[1].Verdict != NotAvoided || r.Answers[1].FailsAt != 1 || r.Answers[1].Margin != -10*m {
		t.Errorf("%+v", r.Answers[:2])
	}
}

func TestNothingToReplay(t *testing.T) {
	s := &evidence.MemSnapshot{Form: "segments", Segments: []evidence.MemSegment{{Addr: 1 << 30, Total: 2 * m}}}
	r := examine(t, s, Options{Auto: true, Try: []Change{{Conf: "expandable_segments:True"}}})
	if r.Fidelity.OK || len(r.Answers) > 0 || r.Best != -1 || !strings.Contains(strings.Join(r.Lacks, " "), "without a history") {
		t.Errorf("%+v", r)
	}
	if _, err := Examine(context.Background(), s, 1, Options{}); err == nil {
		t.Error("a device that is not there")
	}
	s = newTape(0).snapshot()
	s.Settings.Conf = "backend:cudaMallocAsync"
	if r := examine(t, s, Options{}); r.Fidelity.OK || !strings.Contains(r.Lacks[0], "cudaMallocAsync") {
		t.Errorf("%+v", r)
	}
}

// TestRoomUnknown: without a failure and a capacity no answer is definite.
func TestRoomUnknown(t *testing.T) {
	tp := newTape(0)
	tp.free(tp.malloc(40 * m))
	r := examine(t, tp.snapshot(), Options{Auto: true})
	if !r.Fidelity.OK || r.Room.Known || r.Best != -1 || len(r.Answers) == 0 {
		t.Fatalf("%+v", r)
	}
	for _, a := range r.Answers {
		if a.Verdict != CannotTell || a.HasMargin || a.Peak.Reserved < 40*m {
			t.Errorf("%+v", a)
		}
	}
}
