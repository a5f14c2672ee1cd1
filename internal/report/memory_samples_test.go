package report

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/inquest-dev/inquest/internal/evidence"
	"github.com/inquest-dev/inquest/internal/incident"
)

// A trainer makes the history of a training run that never was: parameters, then steps
// of a forward pass that keeps activations and a backward pass that frees them, an
// optimizer that appears in the first step, and a list that keeps something of every
// step until nothing is left.
type trainer struct {
	seed             uint64
	events, per      int
	active, reserved int64
	at               int
	bucket           incident.MemoryBucket
	out              incident.MemoryTimeline
	lives            []incident.MemoryLife
	brief            int // allocations that are freed at once and not kept in lives
	peak             incident.MemoryBucket
}

var trainerStacks = []string{
	"train.py:41 build_model", "model.py:88 Attention.forward", "model.py:102 MLP.forward", "model.py:61 Embedding.forward", "loss.py:17 cross_entropy", "train.py:97 backward",
	"optim.py:55 AdamW.step", "train.py:112 losses.append", "data.py:30 to_device", "model.py:140 LayerNorm.forward", "model.py:155 lm_head", "metrics.py:9 accuracy", "ema.py:21 update", "parallel.py:203 all_gather",
}

func (g *trainer) random(n int64) int64 {
	g.seed ^= g.seed << 13
	g.seed ^= g.seed >> 7
	g.seed ^= g.seed << 17
	return int64(g.seed % uint64(n))
}

// tick closes an event.
func (g *trainer) tick() {
	b := &g.bucket
	if b.To == b.From {
		*b = incident.MemoryBucket{From: g.at, Time: 1_700_000_000_000_000 + int64(g.at)*13, ActiveMin: g.active, ActiveMax: -1, ReservedMin: g.reserved}
	}
	if g.active > b.ActiveMax {
		b.ActiveMax, b.PeakAt = g.active, g.at
	}
	if g.active > g.peak.ActiveMax {
		g.peak = incident.MemoryBucket{ActiveMax: g.active, ReservedMax: g.reserved, PeakAt: g.at}
	}
	b.ActiveMin, b.ReservedMin, b.ReservedMax = min(b.ActiveMin, g.active), min(b.ReservedMin, g.reserved), max(b.ReservedMax, g.reserved)
	g.at++
	b.To = g.at
	if b.To-b.From == g.per {
		g.flush()
	}
}

func (g *trainer) flush() {
	if g.bucket.To > g.bucket.From {
		g.out.Buckets = append(g.out.Buckets, g.bucket)
	}
	g.bucket = incident.MemoryBucket{From: g.at, To: g.at}
}

func (g *trainer) alloc(size int64, stack int) int {
	g.active += size
	if want := g.active + g.active/12; want > g.reserved {
		g.reserved = (want + 20<<20 - 1) / (20 << 20) * (20 << 20)
	}
	g.lives = append(g.lives, incident.MemoryLife{From: g.at, To: -1, Addr: 0x7f3a00000000 + uint64(g.random(1<<34))&^511, Bytes: size, Stack: stack})
	g.tick()
	return len(g.lives) - 1
}

func (g *trainer) free(i int) {
	g.lives[i].To = g.at
	g.active -= g.lives[i].Bytes
	g.tick()
}

// scratch is an allocation that is freed at once.
func (g *trainer) scratch(size int64) {
	g.active += size
	g.tick()
	g.active -= size
	g.tick()
	g.brief++
}

// step runs one step of so many layers, each of so many small allocations.
func (g *trainer) step(n, layers, small int) {
	g.out.Marks = append(g.out.Marks, incident.MemoryMark{Event: g.at, Kind: "step", Text: fmt.Sprintf("step %d", n)})
	batch := g.alloc(96<<20, 8)
	var kept []int
	for l := range layers {
		for range small {
			g.scratch(g.random(2<<20) + 512)
		}
		kept = append(kept, g.alloc(150<<20+g.random(90<<20), 1+l%2), g.alloc(40<<20+g.random(20<<20), 9))
	}
	kept = append(kept, g.alloc(700<<20, 10))
	if n%9 == 4 { // a long batch
		kept = append(kept, g.alloc(1800<<20, 4))
	}
	slices.Reverse(kept)
	for _, k := range kept {
		t := g.alloc(60<<20+g.random(30<<20), 5)
		for range small / 2 {
			g.scratch(g.random(1<<20) + 512)
		}
		g.free(k)
		g.free(t)
	}
	if n == 0 {
		for range 40 {
			g.alloc(130<<20, 6)
		}
	}
	g.alloc(45<<20, 7)
	g.free(batch)
}

// trainingRun is a device with a history of at least so many events, in buckets of per,
// with the largest blocks one by one.
func trainingRun(events, per, blocks int, seed uint64) incident.MemoryDevice {
	g := &trainer{seed: seed, events: events, per: per}
	for range 40 {
		g.alloc(65<<20, 0)
	}
	steps := 45
	small := max(2, events/steps/100)
	for n := 0; g.at < events; n++ {
		g.step(n, 30, small)
	}
	g.out.Marks = append(g.out.Marks, incident.MemoryMark{Event: g.at, Kind: "oom", Text: "2.00 GiB asked for"})
	g.tick()
	g.flush()
	g.out.Events = g.at
	d := incident.MemoryDevice{Timeline: &g.out, Trace: incident.MemoryTrace{Actions: map[string]int{"alloc": len(g.lives), "oom": 1}, Steps: steps}}
	for i, s := range trainerStacks {
		d.Stacks = append(d.Stacks, incident.MemoryStack{Index: 3*i + 1, Own: s, Frames: []string{s, "torch/nn/modules/module.py:1751 _call_impl", "train.py:88 main", "train.py:120 <module>"}})
	}
	g.describe(&d)
	slices.SortStableFunc(g.lives, func(a, b incident.MemoryLife) int { return cmp.Compare(b.Bytes, a.Bytes) })
	n := min(blocks, len(g.lives))
	g.out.Blocks, g.out.Rest = g.lives[:n], g.brief+len(g.lives)-n
	return d
}

// describe fills in what is said of the history.
func (g *trainer) describe(d *incident.MemoryDevice) {
	step := "step 40"
	p := &incident.MemoryPeak{Event: g.peak.PeakAt, Step: step, Active: g.peak.ActiveMax, Reserved: g.peak.ReservedMax, Before: 0}
	held, blocks := make([]int64, len(trainerStacks)), make([]int, len(trainerStacks))
	for _, l := range g.lives {
		if l.From <= p.Event && (l.To < 0 || l.To > p.Event) {
			held[l.Stack] += l.Bytes
			blocks[l.Stack]++
		}
	}
	for i, s := range trainerStacks {
		if held[i] > 0 {
			p.Stacks = append(p.Stacks, incident.MemoryUse{Name: s, Stack: &i, Bytes: held[i], Blocks: blocks[i]})
		}
	}
	slices.SortStableFunc(p.Stacks, func(a, b incident.MemoryUse) int { return cmp.Compare(b.Bytes, a.Bytes) })
	p.Frames = p.Stacks
	p.Category = []incident.MemoryUse{{Name: "activation", Bytes: p.Active / 2}, {Name: "optimizer state", Bytes: p.Active / 4}, {Name: "parameter", Bytes: p.Active / 8}}
	d.Peak = p
	grown, perStep, near := 7, 45.0*(1<<20), 0.31
	request := int64(2 << 30)
	d.Growth = &incident.MemoryGrowth{Basis: "ends of the first and last whole step", From: 9000, To: g.at - 1, Bytes: 44 * 45 << 20, PerStep: &perStep,
		Suspects: []incident.MemoryGrown{{MemoryUse: incident.MemoryUse{Name: trainerStacks[7], Stack: &grown, Bytes: 45 * 45 << 20, Blocks: 45}, First: 12000, Last: g.at - 30, Steps: 45, PerStep: &perStep, Why: "it left one block behind in every step"}}}
	d.Totals = incident.MemoryTotals{Segments: 240, Blocks: 900, Events: g.at, Reserved: g.reserved, Allocated: g.active, Active: g.active, Requested: g.active - 9<<20, Free: g.reserved - g.active}
	largest := int64(900 << 20)
	d.Pressure = incident.MemoryPressure{Near: &near, NearBasis: "free plus reserved at the out of memory entry", Reserved: g.reserved, Flushes: []incident.MemoryFlush{{Event: g.at - 3, Segments: 4, Bytes: 80 << 20, Before: "oom"}, {Event: 40, Segments: 1, Bytes: 2 << 20}},
		OOMs: []incident.MemoryOOM{{Event: g.at - 1, Request: request, DeviceFree: 512 << 20, Reserved: g.reserved, Active: g.active, LargestFree: &largest, Stack: &grown, Name: trainerStacks[10]}}}
	d.Fragmentation = incident.MemoryFragmentation{Free: d.Totals.Free, LargestFree: largest, Request: &request, Says: "2.00 GiB were asked for; 2.31 GiB lay reserved and free, in pieces of at most 900.00 MiB", Standing: "supported",
		Pools:  []incident.MemoryPoolUse{{Pool: "default", Class: "large", Segments: 200, Reserved: g.reserved - 400<<20, Active: g.active - 100<<20, Free: 2 << 30, LargestFree: largest}, {Pool: "default", Class: "small", Segments: 40, Reserved: 80 << 20, Active: 61 << 20, Free: 19 << 20, LargestFree: 1 << 20}},
		Pinned: []incident.MemoryPinned{{Segment: evidence.Span{Artifact: "rank0.pickle", Kind: "block", Pointer: "segments[17]"}, Total: 1 << 30, Active: 2 << 20, Stack: &grown, Name: trainerStacks[7]}}}
	room, margin, fails := int64(80<<30), int64(3<<30), g.at-1
	d.Replay = &incident.MemoryReplay{Version: "2.5", Recorded: incident.MemoryReplayPeak{Reserved: g.reserved, Event: g.at - 10}, Room: incident.MemoryRoom{Bytes: &room, Basis: "free plus reserved at the out of memory entry"},
		Fidelity: incident.MemoryFidelity{OK: true, Why: "every segment event is reproduced", Events: g.at, Allocs: len(g.lives), SameAddress: len(g.lives) - 12, Segments: 300, Matched: 300, FinalSame: true, OOMs: 1, OOMsSame: 1, Tolerance: "reserved within 1 % of its peak, out of memory at the same event"},
		Answers: []incident.MemoryAnswer{
			{Setting: "expandable_segments:True", Answer: incident.Avoided, Why: "the pieces join", PeakReserved: room - margin, PeakEvent: p.Event, Margin: &margin},
			{Setting: "max_split_size_mb:128", Answer: incident.NotAvoided, Why: "the request is larger than every free block", PeakReserved: room, PeakEvent: fails, FailsAt: &fails, Request: &request, Flushes: 4},
			{Setting: "garbage_collection_threshold:0.8", Answer: incident.CannotTell, Why: "the fidelity does not cover it", PeakReserved: room},
		}}
	d.Replay.Layout = &incident.MemoryLayout{Fits: true, Event: fails, InUse: g.active, Request: request, Free: 2300 << 20, Largest: largest}
	best := 0
	d.Replay.Best = &best
	d.Causes = []incident.MemoryCause{{Fact: "snapshot.graph_held", Value: true, Why: "45 blocks of one stack, one for every step"}}
	g.segments(d)
}

func (g *trainer) segments(d *incident.MemoryDevice) {
	for i := range 120 {
		s := incident.MemorySegment{Addr: 0x7f3a00000000 + uint64(i)<<30, Total: int64(2<<20) << (g.random(10)), Class: "large", Pool: "default"}
		if i%7 == 3 {
			s.Stream, s.Pool = 7, "(0, 3)"
		}
		for at := int64(0); at < s.Total; {
			size := min(s.Total-at, (g.random(s.Total/3)+1)&^511+512)
			stack := int(g.random(int64(len(trainerStacks))))
			s.Blocks = append(s.Blocks, incident.MemorySegmentPart{Offset: at, Size: size, State: []string{"active", "free", "active", "pending", "free"}[g.random(5)], Stack: stack})
			at += size
		}
		d.Segments = append(d.Segments, s)
	}
	slices.SortStableFunc(d.Segments, func(a, b incident.MemorySegment) int { return cmp.Compare(b.Total, a.Total) })
	d.More = 120
}

// memorySample is a job with so many ranks, each with a history of so many events.
func memorySample(ranks, events, per int) *incident.Memory {
	m := &incident.Memory{Schema: incident.MemorySchema, Tool: incident.Tool{Name: "inquest", Version: "source"}}
	for r := range ranks {
		path := fmt.Sprintf("rank%d.pickle", r)
		d := trainingRun(events, per, 6000, 77+uint64(r))
		host := "node-1"
		m.Snapshots = append(m.Snapshots, incident.MemorySnapshot{Artifact: path, Form: "dict", Rank: &r, Host: &host, Settings: incident.MemorySettings{Stated: true, Conf: "max_split_size_mb:256"},
			Lacks: []string{"categories of allocations"}, Devices: []incident.MemoryDevice{d}})
		m.Artifacts = append(m.Artifacts, incident.Artifact{Path: path, Kind: "memory snapshot", Size: 200 << 20, Fate: "read"})
		if ranks > 1 {
			if m.Ranks == nil {
				m.Ranks = &incident.MemoryRanks{Differs: []incident.Statement{{Text: "rank 1 holds most at its peak"}}}
			}
			m.Ranks.Rows = append(m.Ranks.Rows, incident.MemoryRank{Artifact: path, Rank: &r, Peak: d.Peak.Active, Reserved: d.Pressure.Reserved, Active: d.Totals.Active, Largest: d.Peak.Stacks[0].Name, OOMs: 1})
		}
	}
	return m
}
