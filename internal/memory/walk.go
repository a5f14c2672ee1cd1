package memory

import (
	"context"

	"github.com/inquest-dev/inquest/internal/evidence"
	"github.com/inquest-dev/inquest/internal/incident"
)

// A walk goes through the history of one device. What was alive before the trace
// began follows from what was freed in it without having been allocated, and from
// the blocks at the end that it does not know (torch/utils/viz/MemoryViz.js does the
// same). It takes two passes over the entries and one to each moment that is
// looked at, and memory for what is alive, not for what was.
type walk struct {
	m      *evidence.MemSnapshot
	device int
	t      *evidence.MemTrace
	st     *stacks
	o      *Options

	notes []interval
	steps steps
	seen  sighting
	ends  bool // allocations end with free_requested: completions were not recorded

	actions  [evidence.MemFree + 1]int
	start    int64 // reserved before the first entry
	refused  []refusal
	room     int64 // what the allocator could have had in all; 0 unknown
	timeFrom int64
	timeTo   int64

	live      *table    // at the end of the trace
	initial   []element // alive before it: those freed in it, in that order, then the others by address
	freed     int       // how many of them were freed in it
	base      int64     // their bytes
	after     tally     // blocks that were allocated after the trace ended
	ghosts    tally     // allocated in the trace, and no block at the end
	lost      tally     // allocations whose end the trace does not have: another took their place
	sameStack [2]int    // frees with the stack of their alloc, with another

	curve        []fine
	per          int
	peak         mark
	peakReserved mark
	floors       []mark // lowest active of each complete step
	tops         []mark // highest
	byStack      []usage
	flushes      []flush
	moreFlushes  incident.MemoryMoreFlushes
	nearUS       int64
	largest      largest
}

// A tally counts blocks and their bytes.
type tally struct {
	n     int
	bytes int64
}

// A mark is a value and the event after which it held.
type mark struct {
	value int64
	event int
}

// A refusal is an oom entry.
type refusal struct {
	event    int
	request  int64
	free     int64
	reserved int64
	active   int64 // less base, until the walk is done
	after    int   // allocations after it
	changed  bool  // the segments changed after it
	stack    uint32
	time     int64
}

// A flush is a run of segments given back.
type flush struct {
	event, segments int
	bytes           int64
	before          string
}

// A usage is what one stack did in the trace.
type usage struct {
	allocs  int
	first   int32 // event of its first alloc
	step    int32 // of its newest alloc
	here    int64 // largest of that step
	earlier int64 // largest of the steps before
}

// A fine is a stretch of the curve.
type fine struct {
	from, to       int
	time           int64
	min, max       int64
	minAt, maxAt   int
	resMin, resMax int64
}

const (
	fineBuckets = 4096
	maxRefusals = 1000
	maxFlushes  = 1000
)

// sane keeps hostile sizes from overflowing sums.
func sane(n int64) int64 { return min(max(n, 0), 1<<50) }

func newWalk(m *evidence.MemSnapshot, device int, st *stacks, o *Options) *walk {
	w := &walk{m: m, device: device, st: st, o: o, t: &evidence.MemTrace{}}
	if device < len(m.Traces) {
		w.t = &m.Traces[device]
	}
	return w
}

// run makes the two passes.
func (w *walk) run(ctx context.Context) error {
	w.survey()
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := w.follow(ctx); err != nil {
		return err
	}
	w.settle()
	if w.steps.known == byNothing {
		w.steps = minima(w.curve)
		w.valleys()
	}
	return nil
}

// survey is the first pass: what actions there are, the reserve before the first
// entry, the requests that were refused, and where steps begin.
func (w *walk) survey() {
	var net int64
	for i, e := range w.t.All() {
		w.actions[min(int(e.Action), len(w.actions)-1)]++
		if e.Time > 0 {
			if w.timeFrom == 0 || e.Time < w.timeFrom {
				w.timeFrom = e.Time
			}
			w.timeTo = max(w.timeTo, e.Time)
		}
		switch e.Action {
		case evidence.MemAlloc:
			w.seen.see(i, w.st.of(e.Stack))
		case evidence.MemSegmentAlloc, evidence.MemSegmentMap:
			net += sane(e.Size)
		case evidence.MemSegmentFree, evidence.MemSegmentUnmap:
			net -= sane(e.Size)
		case evidence.MemOOM:
			if len(w.refused) == maxRefusals {
				w.refused = w.refused[:maxRefusals-1] // the newest is the one that may have ended the run
			}
			w.refused = append(w.refused, refusal{event: i, request: sane(e.Size), free: sane(int64(min(e.Addr, 1<<50))), reserved: net, stack: e.Stack, time: e.Time})
		}
	}
	w.start = w.reservedAtEnd() - net
	for i := range w.refused {
		w.refused[i].reserved += w.start
	}
	w.ends = w.actions[evidence.MemFreeCompleted]+w.actions[evidence.MemFree] == 0
	w.notes = annotations(w.m, w.device, w.t)
	w.steps = findSteps(w.notes, &w.seen)
	if w.room = w.o.Capacity; len(w.refused) > 0 {
		if x := w.refused[len(w.refused)-1]; x.free < evidence.DriverRequest(x.request) {
			w.room = x.reserved + x.free
		}
	}
}

func (w *walk) reservedAtEnd() int64 {
	var n int64
	if w.m.Has.Profile {
		return 0
	}
	for i := range w.m.Segments {
		if s := &w.m.Segments[i]; s.Device == w.device {
			n += sane(s.Total)
		}
	}
	return n
}

// closes reports whether an action ends an allocation.
func (w *walk) closes(a evidence.MemAction) bool {
	return a == evidence.MemFreeCompleted || a == evidence.MemFree || w.ends && a == evidence.MemFreeRequested
}

// inUse calls fn for the blocks of the device that are in use at the end.
func (w *walk) inUse(fn func(i int, b *evidence.MemBlock)) {
	for i := range w.m.Segments {
		s := &w.m.Segments[i]
		if s.Device != w.device {
			continue
		}
		for n := range w.m.BlocksOf(s) {
			if b := &w.m.Blocks[s.First+n]; b.State != evidence.BlockInactive {
				fn(s.First+n, b)
			}
		}
	}
}

// requested is what was asked for of a block, as far as it is stated.
func requested(b *evidence.MemBlock) int64 {
	if b.Requested > 0 {
		return sane(b.Requested)
	}
	return sane(b.Size)
}

// freesTell reports whether frees carry the stack of their allocation, as they do
// unless the history was recorded with context="all".
func (w *walk) freesTell() bool { return w.sameStack[1]*50 <= w.sameStack[0] }

// settle turns what was relative to the beginning into bytes, and adds what is
// alive at the end to the largest allocations.
func (w *walk) settle() {
	w.peak.value += w.base
	for i := range w.refused {
		w.refused[i].active += w.base
	}
	for i := range w.curve {
		w.curve[i].min += w.base
		w.curve[i].max += w.base
	}
	for k := range w.floors {
		w.floors[k].value += w.base
		w.tops[k].value += w.base
	}
	w.live.all(func(x *element) { w.largest.offer(x, -1) })
	for i := w.freed; i < len(w.initial); i++ {
		w.largest.offer(&w.initial[i], -1)
	}
}

// activeAtEnd is what is alive when the trace ends.
func (w *walk) activeAtEnd() int64 {
	var n int64
	w.atEnd(func(x *element) { n += x.size })
	return n
}

// atEnd calls fn for what is alive when the trace ends, in no order that means
// anything.
func (w *walk) atEnd(fn func(*element)) {
	w.live.all(fn)
	for i := w.freed; i < len(w.initial); i++ {
		fn(&w.initial[i])
	}
}

// at calls fn with what is alive after each of the events, which ascend; -1 is
// before the first entry.
func (w *walk) at(ctx context.Context, events []int, fn func(n int, alive *table)) error {
	alive := newTable()
	for i := len(w.initial) - 1; i >= 0; i-- {
		alive.put(w.initial[i])
	}
	n := 0
	for ; n < len(events) && events[n] < 0; n++ {
		fn(n, alive)
	}
	if n == len(events) {
		return nil
	}
	for i, e := range w.t.All() {
		if i&0xffff == 0 {
			if err := ctx.Err(); err != nil {
				return err
			}
		}
		switch {
		case e.Action == evidence.MemAlloc:
			alive.put(element{e.Addr, sane(e.Size), int32(i), e.Stack, e.Note})
		case w.closes(e.Action):
			alive.take(e.Addr)
		}
		for ; n < len(events) && events[n] == i; n++ {
			fn(n, alive)
		}
		if n == len(events) {
			break
		}
	}
	return nil
}

// valleys takes floors and tops of steps that were found on the curve itself.
func (w *walk) valleys() {
	w.openSteps()
	for i := range w.curve {
		b := &w.curve[i]
		if k := w.steps.of(b.minAt); k >= 0 && k < len(w.floors) && b.min < w.floors[k].value {
			w.floors[k] = mark{b.min, b.minAt}
		}
		if k := w.steps.of(b.maxAt); k >= 0 && k < len(w.tops) && b.max > w.tops[k].value {
			w.tops[k] = mark{b.max, b.maxAt}
		}
	}
}

// A largest keeps the allocations with most bytes, of equals the earliest.
type largest struct {
	most int
	heap []life // the smallest on top
	all  int
}

// A life is one allocation from its alloc to the end of its free.
type life struct {
	element
	to int // -1: alive at the end
}

func (a *life) less(b *life) bool {
	if a.size != b.size {
		return a.size < b.size
	}
	if a.event != b.event {
		return a.event > b.event
	}
	return a.addr > b.addr
}

// offer puts an allocation among the largest if it is one of them.
func (l *largest) offer(x *element, to int) {
	l.all++
	if l.most <= 0 || len(l.heap) == l.most && x.size < l.heap[0].size {
		return
	}
	y := life{*x, to}
	if len(l.heap) < l.most {
		l.heap = append(l.heap, y)
		for i := len(l.heap) - 1; i > 0; {
			up := (i - 1) / 2
			if !l.heap[i].less(&l.heap[up]) {
				break
			}
			l.heap[i], l.heap[up] = l.heap[up], l.heap[i]
			i = up
		}
		return
	}
	if !l.heap[0].less(&y) {
		return
	}
	l.heap[0] = y
	for i := 0; ; {
		least := i
		for _, c := range [2]int{2*i + 1, 2*i + 2} {
			if c < len(l.heap) && l.heap[c].less(&l.heap[least]) {
				least = c
			}
		}
		if least == i {
			return
		}
		l.heap[i], l.heap[least] = l.heap[least], l.heap[i]
		i = least
	}
}
