package memory_test

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"testing"

	"github.com/inquest-dev/inquest/internal/evidence"
	"github.com/inquest-dev/inquest/internal/memory"
)

// longTrace is a training run of n entries: steps of a few thousand allocations of which
// a few hundred are alive at once, and parameters that stay.
func longTrace(n int) *evidence.MemSnapshot {
	m := &evidence.MemSnapshot{Form: "dict", Traces: make([]evidence.MemTrace, 1), Streams: []uint64{0}, Pools: [][2]int64{{}}, Notes: []evidence.MemNote{{}}}
	m.Has = evidence.MemSections{Traces: true, Settings: true, Annotations: true, BlockAddr: true, BlockFrames: true, Requested: true, Times: true}
	m.Settings.MaxSplit, m.Settings.HasMaxSplit = -1, true
	m.Stacks = [][]uint32{nil}
	for i := range 4000 {
		m.Frames = append(m.Frames, evidence.MemFrame{Name: "forward", File: "/home/u/run/model.py", Line: i})
		stack := []uint32{}
		for k := range 40 {
			stack = append(stack, uint32((i*7+k*13)%(len(m.Frames))))
		}
		m.Stacks = append(m.Stacks, stack)
	}
	t := &m.Traces[0]
	seed := uint64(7)
	random := func(n uint64) uint64 {
		seed ^= seed << 13
		seed ^= seed >> 7
		seed ^= seed << 17
		return seed % n
	}
	const perStep = 3000
	var live []evidence.MemEvent
	addr := uint64(0x7f0000000000)
	for step := 0; t.Len() < n; step++ {
		m.Annotations = append(m.Annotations, evidence.MemAnnotation{Name: fmt.Sprintf("ProfilerStep#%d", step), Start: true, Time: 1_700_000_000_000_000 + int64(t.Len())})
		for range perStep {
			e := evidence.MemEvent{Action: evidence.MemAlloc, Addr: addr + random(1<<22)*512, Size: int64(512 + random(4<<20)), Time: 1_700_000_000_000_000 + int64(t.Len()), Stack: 1 + uint32(random(4000))}
			t.Append(e)
			live = append(live, e)
			if len(live) > 600 {
				i := random(uint64(len(live)))
				f := live[i]
				live[i] = live[len(live)-1]
				live = live[:len(live)-1]
				f.Time = e.Time
				f.Action = evidence.MemFreeRequested
				t.Append(f)
				f.Action = evidence.MemFreeCompleted
				t.Append(f)
			}
		}
	}
	for i := range 100_000 {
		m.Segments = append(m.Segments, evidence.MemSegment{Addr: 1<<40 + uint64(i)<<21, Total: 2 << 20, First: i, N: 1})
		m.Blocks = append(m.Blocks, evidence.MemBlock{Addr: 1<<40 + uint64(i)<<21, Size: 2 << 20, Requested: 2<<20 - 12, State: evidence.BlockActive, Stack: uint32(i % 4000)})
	}
	return m
}

// BenchmarkExamine is the analysis without reading and without replay, in entries a
// second. INQUEST_EVENTS sets how many entries there are; a million if it is not set.
func BenchmarkExamine(b *testing.B) {
	n := 1_000_000
	if v, err := strconv.Atoi(os.Getenv("INQUEST_EVENTS")); err == nil {
		n = v
	}
	m := longTrace(n)
	o := memory.Options{Buckets: 2048, Largest: 2048, Blocks: 20_000, Replay: memory.Replay{Off: true}}
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	for b.Loop() {
		if _, err := memory.Examine(context.Background(), m, o); err != nil {
			b.Fatal(err)
		}
	}
	runtime.ReadMemStats(&after)
	b.ReportMetric(float64(m.Traces[0].Len())*float64(b.N)/b.Elapsed().Seconds()/1e6, "Mentries/s")
	b.ReportMetric(float64(after.TotalAlloc-before.TotalAlloc)/float64(b.N)/(1<<20), "MiB/op")
}
