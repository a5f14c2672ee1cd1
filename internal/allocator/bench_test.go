package allocator

import (
	"context"
	"math/rand/v2"
	"testing"

	"github.com/inquest-dev/inquest/internal/evidence"
)

// traceOf makes a history of about n events: steps that allocate activations of many
// sizes and free them in reverse, beside blocks that live for long, as training does.
// It is what the simulation itself records, so that the replay is exact.
func traceOf(n int, set Settings) *evidence.MemSnapshot {
	r := rand.New(rand.NewPCG(1, 2))
	sim := New(set, &Bump{}, []uint64{0, 7}, 0)
	snap := &evidence.MemSnapshot{Form: "dict", Traces: make([]evidence.MemTrace, 1), Streams: []uint64{0, 7}, Pools: [][2]int64{{0, 0}}}
	snap.Has = evidence.MemSections{Traces: true, Settings: true, BlockAddr: true, Requested: true, Expandable: true, SegmentPools: true}
	snap.Settings.Expandable = set.Expandable
	t := &snap.Traces[0]
	type held struct {
		b    Block
		size int64
	}
	var keep []held
	record := func(e SegmentEvent) {
		t.Append(evidence.MemEvent{Action: e.Action, Addr: e.Addr, Size: e.Size, Stream: e.Stream})
	}
	alloc := func() held {
		size := int64(512 + r.IntN(1<<(9+r.IntN(17))))
		b, _ := sim.Malloc(size, 0, 0)
		for _, e := range sim.Events() {
			record(e)
		}
		t.Append(evidence.MemEvent{Action: evidence.MemAlloc, Addr: sim.Addr(b), Size: size})
		return held{b, size}
	}
	free := func(h held) {
		addr := sim.Addr(h.b)
		t.Append(evidence.MemEvent{Action: evidence.MemFreeRequested, Addr: addr, Size: h.size})
		t.Append(evidence.MemEvent{Action: evidence.MemFreeCompleted, Addr: addr, Size: h.size})
		sim.Complete(h.b)
	}
	for t.Len() < n {
		var step []held
		for range 2000 {
			h := alloc()
			if r.IntN(100) == 0 {
				keep = append(keep, h)
			} else {
				step = append(step, h)
			}
		}
		for i := len(step) - 1; i >= 0; i-- {
			free(step[i])
		}
		for len(keep) > 3000 {
			i := r.IntN(len(keep))
			free(keep[i])
			keep = append(keep[:i], keep[i+1:]...)
		}
	}
	for _, g := range sim.Segments() {
		m := evidence.MemSegment{Addr: g.Addr, Total: g.Size, Stream: g.Stream, Small: g.Small, Expandable: g.Expandable, First: len(snap.Blocks), N: len(g.Blocks)}
		for _, b := range g.Blocks {
			snap.Blocks = append(snap.Blocks, evidence.MemBlock{Addr: b.Addr, Size: b.Size, Requested: b.Requested, State: b.State})
		}
		snap.Segments = append(snap.Segments, m)
	}
	return snap
}

func BenchmarkReplay(b *testing.B) {
	for name, set := range map[string]Settings{"segments": {}, "expandable": {Expandable: true}} {
		b.Run(name, func(b *testing.B) {
			snap := traceOf(1_000_000, set)
			n := snap.Traces[0].Len()
			h := newHistory(snap, 0, set)
			b.ReportAllocs()
			b.ResetTimer()
			for b.Loop() {
				r, err := newRecorded(h, set, 0, false)
				if err != nil {
					b.Fatal(err)
				}
				if err := r.run(context.Background()); err != nil || !r.fid.OK || r.fid.SameAddress != r.fid.Allocs {
					b.Fatal(r.fid, err)
				}
			}
			b.ReportMetric(float64(n)*float64(b.N)/b.Elapsed().Seconds(), "events/s")
		})
	}
}

// BenchmarkExamine is all of it: the walk back, the replay, and one other setting.
func BenchmarkExamine(b *testing.B) {
	snap := traceOf(1_000_000, Settings{})
	n := snap.Traces[0].Len()
	b.ReportAllocs()
	for b.Loop() {
		r, err := Examine(context.Background(), snap, 0, Options{Try: []Change{{Conf: "expandable_segments:True"}}})
		if err != nil || !r.Fidelity.OK || len(r.Answers) != 1 {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(n)*float64(b.N)/b.Elapsed().Seconds(), "events/s")
}
