package memory_test

import (
	"context"
	"strings"
	"testing"

	"github.com/inquest-dev/inquest/internal/evidence"
	"github.com/inquest-dev/inquest/internal/memory"
)

// TestManyRefused checks that where more requests were refused than are kept, the last of
// them is the one that may have ended the run.
func TestManyRefused(t *testing.T) {
	const many = 1500
	m := &evidence.MemSnapshot{Artifact: "x.pickle", Form: "dict", Traces: make([]evidence.MemTrace, 1), Stacks: [][]uint32{nil}, Streams: []uint64{0}, Pools: [][2]int64{{}}, Notes: []evidence.MemNote{{}}}
	tr := &m.Traces[0]
	tr.Append(evidence.MemEvent{Action: evidence.MemSegmentAlloc, Addr: 1 << 30, Size: 20 << 20})
	for i := range many {
		tr.Append(evidence.MemEvent{Action: evidence.MemOOM, Addr: uint64(i), Size: int64(i+1) << 20})
		if i < many-1 {
			tr.Append(evidence.MemEvent{Action: evidence.MemAlloc, Addr: 1<<30 + uint64(i)*512, Size: 512})
		}
	}
	s, err := memory.Examine(context.Background(), m, memory.Options{})
	if err != nil {
		t.Fatal(err)
	}
	list := s.Devices[0].Pressure.OOMs
	if o := list[len(list)-1]; o.Request != many<<20 || o.Event != tr.Len()-1 || o.Survived || o.Active != (many-1)*512 {
		t.Errorf("the last refused request: %+v", o)
	}
	if o := list[0]; o.Request != 1<<20 || !o.Survived || o.After != 1 {
		t.Errorf("the first refused request: %+v", o)
	}
}

// TestBlocksBeyond checks that blocks which no segment can hold are said to be none that
// fit, and that nothing becomes less than nothing.
func TestBlocksBeyond(t *testing.T) {
	m := &evidence.MemSnapshot{Artifact: "x.pickle", Form: "dict", Stacks: [][]uint32{nil}, Streams: []uint64{0}, Pools: [][2]int64{{}}, Notes: []evidence.MemNote{{}},
		Segments: []evidence.MemSegment{{Addr: 1 << 30, Total: 20 << 20, N: 2}},
		Blocks:   []evidence.MemBlock{{Addr: 1 << 30, Size: 1 << 62, State: evidence.BlockActive}, {Addr: 1 << 30, Size: -1 << 63, State: evidence.BlockInactive}}}
	s, err := memory.Examine(context.Background(), m, memory.Options{Blocks: 10})
	if err != nil {
		t.Fatal(err)
	}
	d := &s.Devices[0]
	if d.Totals.Free != 0 || d.Fragmentation.Free != 0 || d.Fragmentation.Pools[0].Free != 0 {
		t.Errorf("free: %d, %d, %d", d.Totals.Free, d.Fragmentation.Free, d.Fragmentation.Pools[0].Free)
	}
	for _, b := range d.Segments[0].Blocks {
		if b.Size < 0 || b.Offset < 0 {
			t.Errorf("block %+v", b)
		}
	}
	if len(s.Lacks) == 0 || !strings.HasPrefix(s.Lacks[0], "segments that its blocks fit: 1.00 PiB are in use in segments of 20.00 MiB") {
		t.Errorf("lacks %q", s.Lacks)
	}
}

// TestManyFlushes checks that flushes and refused requests beyond those that are listed are
// counted.
func TestManyFlushes(t *testing.T) {
	const many = 1500
	m := &evidence.MemSnapshot{Artifact: "x.pickle", Form: "dict", Traces: make([]evidence.MemTrace, 1), Stacks: [][]uint32{nil}, Streams: []uint64{0}, Pools: [][2]int64{{}}, Notes: []evidence.MemNote{{}}}
	for range many {
		m.Traces[0].Append(evidence.MemEvent{Action: evidence.MemSegmentAlloc, Addr: 1 << 30, Size: 20 << 20})
		m.Traces[0].Append(evidence.MemEvent{Action: evidence.MemSegmentFree, Addr: 1 << 30, Size: 20 << 20})
		m.Traces[0].Append(evidence.MemEvent{Action: evidence.MemOOM, Size: 64 << 20})
	}
	s, err := memory.Examine(context.Background(), m, memory.Options{})
	if err != nil {
		t.Fatal(err)
	}
	p := &s.Devices[0].Pressure
	if len(p.OOMs)+p.MoreOOMs != many {
		t.Errorf("%d refused requests and %d more", len(p.OOMs), p.MoreOOMs)
	}
	if x := p.MoreFlushes; x == nil || len(p.Flushes)+x.Flushes != many || x.OOM != x.Flushes || x.Segment != 0 || x.Bytes != int64(x.Flushes)*20<<20 {
		t.Errorf("%d flushes and %+v", len(p.Flushes), x)
	}
}
