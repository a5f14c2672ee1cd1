package allocmodel

import (
	"math/rand/v2"
	"slices"

	"github.com/inquest-dev/inquest/internal/evidence"
)

// A Case is a program with what it was recorded under, and what happened.
type Case struct {
	Seed     uint64
	Program  *Program
	Settings Settings
	Device   Device
	Options  Options
	Snap     SnapOptions
	Run      *Run
}

// New makes the case of a seed. The same seed gives the same case. About size Ops are
// drawn; a failure for want of memory may end the program before. Of the programs
// about half resemble training and half are random; devices are chosen so that settings
// matter.
func New(seed uint64, size int) *Case {
	r := rand.New(rand.NewPCG(seed, 0x1d9a))
	c := &Case{Seed: seed}
	b := newBuilder(r, size)
	if chance(r, .5) {
		b.train(size)
	} else {
		b.random(size)
	}
	c.Program = &Program{Ops: b.ops, Frames: genericFrames(), Stacks: genericStacks()}
	c.Settings = drawSettings(r)
	if c.Settings.MaxSplit > 0 && seed%3 == 0 {
		c.Settings.MaxSplit = []int64{20, 32, 64}[seed/3%3] << 20 // sizes of requests, too
	}
	c.Options = Options{Survive: chance(r, .15), FreeStacks: chance(r, .5)}
	c.Device = c.drawDevice(r)
	if chance(r, .3) {
		c.Snap.Ring = 2 + r.IntN(size)
	}
	c.Snap.EventPools = chance(r, .3)
	c.Run = Simulate(c.Program.Ops, c.Settings, c.Device, c.Options)
	return c
}

// Snapshot is what was recorded.
func (c *Case) Snapshot() *evidence.MemSnapshot { return c.Run.Snapshot(c.Program, c.Snap) }

// Requests is the program as its record shows it: up to the failure that ended it, and with what
// failed before freed at once, since nothing says how long the program would have kept it.
func (c *Case) Requests() []Op {
	var out []Op
	failed := c.Run.Failed
	for i, op := range c.Program.Ops {
		out = append(out, op)
		if len(failed) == 0 || failed[0] != i {
			continue
		}
		if failed = failed[1:]; len(failed) == 0 && c.Run.Ended {
			break
		}
		out = append(out, Op{Kind: Free, ID: op.ID})
	}
	return out
}

// Under is what happens if the recorded requests meet other settings, or another device, from the start.
func (c *Case) Under(set Settings, dev Device) *Run {
	return Simulate(c.Requests(), set, dev, Options{FreeStacks: c.Options.FreeStacks})
}

// EventOf is the event with which r recorded the request of op, whether it was granted or
// not; -1 if there is none.
func (r *Run) EventOf(op int) int {
	for i, o := range r.OpOf {
		if o == op && (r.Events[i].Action == evidence.MemAlloc || r.Events[i].Action == evidence.MemOOM) {
			return i
		}
	}
	return -1
}

func chance(r *rand.Rand, p float64) bool { return r.Float64() < p }

func between(r *rand.Rand, lo, hi int64) int64 { return lo + r.Int64N(hi-lo+1) }

func drawSettings(r *rand.Rand) Settings {
	s := Default()
	s.Expandable = chance(r, .35)
	if chance(r, .25) {
		s.MaxSplit = between(r, 20, 200) << 20
	}
	if chance(r, .2) {
		d := int64(1) << r.IntN(5)
		for i := range s.Roundup {
			s.Roundup[i] = d
			if chance(r, .1) {
				s.Roundup[i] = int64(1) << r.IntN(6)
			}
		}
	}
	if chance(r, .2) {
		s.GCThreshold = float64(between(r, 30, 95)) / 100
	}
	return s
}

// Alternatives lists other settings to try, none equal to s. Each can be stated as a
// change of s in PYTORCH_CUDA_ALLOC_CONF.
func (s Settings) Alternatives() []Settings {
	other := s
	other.Expandable = !s.Expandable
	out := []Settings{other}
	for _, mib := range []int64{20, 64, 256, 1 << 20} {
		t := s
		t.MaxSplit = mib << 20
		out = append(out, t)
	}
	for _, d := range []int64{1, 4, 16} {
		t := s
		for i := range t.Roundup {
			t.Roundup[i] = d
		}
		out = append(out, t)
	}
	t := s
	t.GCThreshold = .8
	out = append(out, t)
	n := 0
	for _, o := range out {
		if o != s {
			out[n] = o
			n++
		}
	}
	return out[:n]
}

// drawDevice chooses a device between the least that can hold what the program has in use at once
// and what it reserves if nothing is scarce, or a smaller or a roomy one.
func (c *Case) drawDevice(r *rand.Rand) Device {
	d := Device{Capacity: 1 << 42}
	limited := chance(r, .2)
	s := c.Settings
	s.GCThreshold = 0
	free := Simulate(c.Program.Ops, s, d, Options{})
	lo, hi := slices.Max(free.Active), free.Peak
	room := int64(0)
	switch p := r.Float64(); {
	case p < .15:
		room = hi + between(r, 0, hi/4+largeSegment)
	case p < .35:
		room = between(r, lo/2, lo)
	default:
		room = between(r, lo, lo+(hi-lo)*2/3)
	}
	if chance(r, .7) {
		room = (room + segmentStep - 1) / segmentStep * segmentStep
	}
	d.Place = Placement(r.IntN(3))
	d.Other = between(r, 0, 2<<30)
	if limited {
		d.Limit = room
		room += room / 4
	}
	if c.Seed%4 != 0 {
		// The card is larger than what is left of it, as most are: else the addresses of an
		// expandable segment, 9/8 of the card, become scarce.
		d.Other += 2*room + 8<<30
	}
	d.Capacity = room + d.Other
	return d
}

// A builder writes programs.
type builder struct {
	r       *rand.Rand
	ops     []Op
	next    int
	streams int
	uses    bool
	pools   bool
	palette []int64
	npools  int
}

func newBuilder(r *rand.Rand, size int) *builder {
	b := &builder{r: r, streams: 1}
	if chance(r, .4) {
		b.streams = 2 + r.IntN(2)
		b.uses = chance(r, .7)
	}
	b.pools = chance(r, .15)
	for range 3 + r.IntN(6) {
		b.palette = append(b.palette, b.freshSize())
	}
	return b
}

var edges = []int64{512, 1 << 20, 10 << 20, 12 << 20, 20 << 20, 32 << 20, 64 << 20}

func (b *builder) freshSize() int64 {
	r := b.r
	switch r.IntN(12) {
	case 0, 1:
		return between(r, 1, 4096)
	case 2, 3:
		return between(r, 4096, 1<<20)
	case 4, 5:
		return max(1, edges[r.IntN(len(edges))]+between(r, -1, 1)*between(r, 0, 600))
	case 6, 7, 8:
		return between(r, 1<<20, 10<<20)
	case 9, 10:
		return between(r, 10<<20, 60<<20)
	}
	return between(r, 60<<20, 300<<20)
}

func (b *builder) size() int64 {
	if chance(b.r, .6) {
		return b.palette[b.r.IntN(len(b.palette))]
	}
	return b.freshSize()
}

func (b *builder) do(op Op) { b.ops = append(b.ops, op) }

func (b *builder) alloc(size int64, stream int, stack uint32) int {
	b.next++
	b.do(Op{Kind: Alloc, ID: b.next, Size: size, Stream: Stream(stream), Stack: stack})
	return b.next
}

func (b *builder) free(id int, stack uint32) { b.do(Op{Kind: Free, ID: id, Stack: stack}) }

func (b *builder) done(stream int) { b.do(Op{Kind: Done, Stream: Stream(stream)}) }

// random writes allocations and frees without any plan.
func (b *builder) random(n int) {
	r := b.r
	var live []int
	want := 5 + r.IntN(40)
	flush := chance(r, .3)
	for len(b.ops) < n {
		stack := uint32(1 + r.IntN(6))
		switch p := r.Float64(); {
		case p < .02 && flush:
			b.do(Op{Kind: EmptyCache})
		case p < .03:
			b.do(Op{Kind: Snapshot})
		case p < .05 && b.pools:
			b.capture(stack)
		case p < .12 && b.streams > 1:
			b.done(r.IntN(b.streams))
		case p < .2 && b.uses && len(live) > 0:
			b.do(Op{Kind: Use, ID: live[r.IntN(len(live))], Stream: Stream(r.IntN(b.streams))})
		case p < .25 && len(live) > 3:
			// many at once, as when a function returns
			for k := between(r, 2, int64(len(live))); k > 0; k-- {
				i := r.IntN(len(live))
				b.free(live[i], 7)
				live[i] = live[len(live)-1]
				live = live[:len(live)-1]
			}
		case len(live) == 0 || r.IntN(2*want) > len(live):
			stream := 0
			if b.streams > 1 && chance(r, .3) {
				stream = r.IntN(b.streams)
			}
			live = append(live, b.alloc(b.size(), stream, stack))
		default:
			i := r.IntN(len(live))
			b.free(live[i], 7)
			live[i] = live[len(live)-1]
			live = live[:len(live)-1]
		}
	}
}

// capture records a graph: its allocations come from a pool of its own, in a stream of its
// own, and stay there.
func (b *builder) capture(stack uint32) {
	r := b.r
	b.npools++
	id, stream := Pool(b.npools), 3
	b.do(Op{Kind: BeginPool, Pool: id, Stream: Stream(stream)})
	var kept []int
	for range 2 + r.IntN(6) {
		x := b.alloc(b.size(), stream, stack)
		if chance(r, .6) {
			b.free(x, 7)
		} else {
			kept = append(kept, x)
		}
	}
	b.do(Op{Kind: EndPool, Pool: id})
	if chance(r, .4) {
		for _, x := range kept {
			b.free(x, 7)
		}
		b.do(Op{Kind: DropPool, Pool: id})
	}
}

// Stacks of generated programs: of allocations in the model, the forward and backward pass, the
// optimizer, the evaluation, communication, and of a free.
const (
	stackLoad = 1 + iota
	stackForward
	stackBackward
	stackOptimizer
	stackEval
	stackComm
	stackFree
)

func genericFrames() []evidence.MemFrame {
	return []evidence.MemFrame{
		{Name: "<module>", File: "/workspace/run/train.py", Line: 88},
		{Name: "build", File: "/workspace/run/train.py", Line: 21},
		{Name: "train_step", File: "/workspace/run/train.py", Line: 47},
		{Name: "forward", File: "/opt/env/lib/python3.11/site-packages/torch/nn/modules/linear.py", Line: 125},
		{Name: "backward", File: "/opt/env/lib/python3.11/site-packages/torch/_tensor.py", Line: 581},
		{Name: "step", File: "/opt/env/lib/python3.11/site-packages/torch/optim/adamw.py", Line: 220},
		{Name: "evaluate", File: "/workspace/run/train.py", Line: 63},
		{Name: "all_reduce", File: "/opt/env/lib/python3.11/site-packages/torch/distributed/distributed_c10d.py", Line: 2501},
		{Name: "zero_grad", File: "/opt/env/lib/python3.11/site-packages/torch/optim/optimizer.py", Line: 963},
	}
}

func genericStacks() [][]uint32 {
	return [][]uint32{nil, {1, 0}, {3, 2, 0}, {4, 2, 0}, {5, 2, 0}, {3, 6, 0}, {7, 2, 0}, {8, 2, 0}}
}
