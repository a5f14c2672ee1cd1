package allocator

import (
	"context"
	"fmt"
	"slices"

	"github.com/inquest-dev/inquest/internal/evidence"
)

// An outcome is what came of running the requests once.
type outcome struct {
	served  bool
	peak    Peak
	failsAt int // event; -1: none, or the state before the trace
	request int64
	short   int64 // bytes beyond the room where it fails
	flushes int
}

// A question is one change, with everything that a run of it needs.
type question struct {
	h      *history
	runs   []*recorded // those that explain the record
	change Change
	set    Settings
	room   Room
	work   int // steps of all runs so far
}

// mostWork bounds the steps of the runs for one answer beyond those that a program's take.
const mostWork = 1 << 27

// An assumption is about what the record does not say. Each field is one thing; its
// zero value is the likelier way.
type assumption struct {
	fresh bool // what was there before the trace is allocated anew, by address; else it lies as recorded
	place int  // the driver places new memory at 0 rising, 1 falling addresses, 2 the lowest that are not in use
	run   int  // which of the runs that explain the record holds: a version, with or without a memory fraction
	own   int  // releases right before a request were its own flush, and so were the frees that they completed: 1 all, 2 those, which come later, 3 the first half, 4 the second
	near  bool // so were those that completed right after they were requested
	call  bool // flushes that only their shape shows were calls of empty_cache
	hold  bool // a capture forbids every flush; else those of private pools
	drop  bool // private pools are given up after their last request; else where the record shows it
	other int  // the pool of a failed request that a capture made, where it is not recorded: 1 a new one, 2 the one that its stream used last, 3 the default one
	limit bool // a memory fraction allows more than there is, so that a threshold works, but not before it did; else none is set
	ask   int  // which sizes the failed requests asked for that were rounded to what their entries say: see asked
}

// A dimension is one thing that may be assumed, in so many ways beside the likeliest.
type dimension struct {
	ways int
	set  func(*assumption, int)
}

// dimensions lists the things that make a difference for q.
func (q *question) dimensions(layout bool) []dimension {
	h, run := q.h, q.runs[0]
	var dims []dimension
	add := func(ways int, f func(*assumption, int)) {
		if ways > 0 {
			dims = append(dims, dimension{ways, f})
		}
	}
	b := func(on bool) int { return int(b2i(on)) }
	add(b(layout), func(a *assumption, _ int) { a.fresh = true })
	add(2, func(a *assumption, n int) { a.place = n })
	add(len(q.runs)-1, func(a *assumption, n int) { a.run = n })
	switch {
	case len(run.early) > 1:
		add(4, func(a *assumption, n int) { a.own = n })
	case len(run.early) > 0:
		add(2, func(a *assumption, n int) { a.own = n })
	default:
		add(b(run.unsure() > 0), func(a *assumption, n int) { a.own = n })
	}
	add(b(len(run.near) > 0), func(a *assumption, _ int) { a.near = true })
	add(b(len(run.doubts) > 0), func(a *assumption, _ int) { a.call = true })
	add(b(h.pools != nil || len(run.captures) > 0), func(a *assumption, _ int) { a.hold = true })
	add(b(h.pools != nil), func(a *assumption, _ int) { a.drop = true })
	add(3*b(!h.snap.Has.EventPools && len(run.ooms) > 0 && (len(run.captures) > 0 || h.pools != nil)), func(a *assumption, n int) { a.other = n })
	add(b(h.set.GCThreshold > 0 && q.set.Limit == 0), func(a *assumption, _ int) { a.limit = true })
	if q.set.Roundup != h.set.Roundup && h.set.Roundup != [16]int64{} {
		add(asks(len(run.ooms)), func(a *assumption, n int) { a.ask = n })
	}
	return dims
}

// assumptions lists the ways that make a difference for q: all combinations of few
// things, or else each alone, each two together and all. The first is the likeliest.
func (q *question) assumptions(layout bool) []assumption {
	dims := q.dimensions(layout)
	all := 1
	for _, d := range dims {
		all *= d.ways + 1
	}
	if all > fewAssumptions {
		return sparse(dims, q.h.n)
	}
	out := []assumption{{}}
	for _, d := range dims {
		for _, a := range out {
			for n := 1; n <= d.ways; n++ {
				b := a
				d.set(&b, n)
				out = append(out, b)
			}
		}
	}
	return out
}

// fewAssumptions is how many combinations are tried before they are thinned out, and
// pairEvents how many events those of two things may take.
const (
	fewAssumptions = 24
	pairEvents     = 20_000_000
)

func sparse(dims []dimension, events int) []assumption {
	out := []assumption{{}}
	last := assumption{}
	for _, d := range dims {
		for n := 1; n <= d.ways; n++ {
			var a assumption
			d.set(&a, n)
			out = append(out, a)
		}
		d.set(&last, 1)
	}
	out = append(out, last)
	for i, d := range dims {
		for _, e := range dims[:i] {
			for k := range d.ways * e.ways {
				if len(out)*events > pairEvents {
					return out
				}
				var a assumption
				d.set(&a, k/e.ways+1)
				e.set(&a, k%e.ways+1)
				out = append(out, a)
			}
		}
	}
	return out
}

// Sizes that failed requests are tried with where the recorded settings round them:
// the rounded one, the least, and between them; of several, each as well against the others.
const (
	asBetween = 3
	asSingles = 6
)

func asks(ooms int) int {
	switch {
	case ooms == 0:
		return 0
	case ooms == 1:
		return 1 + asBetween
	}
	return 1 + asBetween + 2*min(ooms, asSingles)
}

// asked is what the nth failed request may have asked for, in the given way of asks.
func (h *history) asked(way, n int, rounded int64) int64 {
	least := h.leastRequest(rounded)
	switch k := way - 1 - asBetween; {
	case way == 0 || k > 0 && (k-1)/2 == n && k%2 == 0 || k > 0 && (k-1)/2 != n && k%2 == 1:
		return rounded
	case way <= 1 || k > 0:
		return least
	default:
		return least + (rounded-least)/(asBetween+1)*int64(way-1)
	}
}

// waiting are the frees that wait, under an assumption about them, until the simulation
// flushes or until before an event.
func (r *recorded) waiting(own int) (early []int32, until int) {
	n := len(r.early)
	switch {
	case own == 0 || n == 0:
		return nil, -1
	case own == 2:
		return r.early, (int(r.early[n-1]) + r.h.firstOOM()) / 2
	case own == 3:
		return r.early[:n/2], -1
	case own == 4:
		return r.early[n/2:], -1
	}
	return r.early, -1
}

// leastRequest is the smallest request that the recorded settings round to rounded.
func (h *history) leastRequest(rounded int64) int64 {
	lo, hi := int64(1), max(rounded, 1)
	for lo < hi {
		if m := lo + (hi-lo)/2; h.set.Round(m) >= rounded {
			hi = m
		} else {
			lo = m + 1
		}
	}
	return lo
}

// serve runs all recorded requests within capacity.
func (q *question) serve(ctx context.Context, capacity int64, as assumption) (outcome, error) {
	h := q.h
	out := outcome{failsAt: -1}
	run := q.runs[as.run]
	set := q.set
	set.Version = run.version
	place := h.placer(as.place)
	sim := New(set, place, h.snap.Streams, 0)
	defer func() { q.work += sim.work }()
	if p, ok := place.(*lowest); ok {
		p.sim = sim
	}
	switch {
	case set.Limit > 0:
		sim.SetCapacity(capacity)
		if h.set.Limit == 0 && capacity > 0 { // taken from the room
			sim.set.Limit = capacity
			if run.limited && q.change.Capacity == 0 {
				sim.SetCapacity(0)
			}
		}
	case as.limit && !run.limited:
		sim.set.Limit = max(capacity, int64(float64(run.peak.Reserved)/h.set.GCThreshold)+1)
		sim.SetCapacity(capacity)
	default:
		sim.allow(capacity, run.limited && (q.change.Capacity == 0 || h.set.GCThreshold > 0))
	}
	blocks := make([]Block, h.nSlots)
	if as.fresh {
		if !q.refill(sim, blocks, &out) {
			return out, nil
		}
	} else if err := loadInitial(h, sim, blocks); err != nil {
		return out, err
	}
	out.peak = Peak{Reserved: sim.Reserved()}
	releases, doubts, failed := run.releases, run.doubts, 0
	early, late := run.waiting(as.own)
	var near []int32
	if as.near {
		near = run.near
	}
	var delayed []Block
	var last map[uint16]int
	if as.drop {
		last = h.lastOf()
	}
	for i, e := range h.trace.All() {
		if err := check(ctx, i, sim); err != nil {
			return out, err
		}
		for len(releases) > 0 && releases[0].event == i {
			for _, p := range releases[0].pools {
				sim.ReleasePool(p)
			}
			if as.own == 0 || !releases[0].unsure {
				sim.EmptyCache()
			}
			releases = releases[1:]
		}
		for len(doubts) > 0 && doubts[0] <= i {
			if as.call {
				sim.EmptyCache()
			}
			doubts = doubts[1:]
		}
		if q.change.EmptyCache && q.change.Event == i {
			sim.EmptyCache()
		}
		if i == late {
			for _, b := range delayed {
				sim.Complete(b)
			}
		}
		switch e.Action {
		case evidence.MemAlloc, evidence.MemOOM:
			slot := h.slots[i]
			if slot >= 0 {
				sim.Complete(blocks[slot]) // where its end is not in the record
				blocks[slot] = 0
			}
			size, pool := e.Size, h.poolAt(i)
			captured := slices.Contains(run.captures, i)
			sim.Capturing = pool != 0 || as.hold || captured
			if e.Action == evidence.MemOOM {
				if as.ask > 0 {
					size = h.asked(as.ask, failed, size)
				}
				failed++
			}
			if captured || as.other > 0 && e.Action == evidence.MemOOM {
				pool = h.otherPool(as.other, i, pool)
			}
			b, ok := sim.Malloc(size, e.Stream, pool)
			if !ok {
				out.fail(sim, i, size)
				return out, nil
			}
			if r := sim.Reserved(); r > out.peak.Reserved {
				out.peak = Peak{r, i}
			}
			if p := h.poolAt(i); as.drop && p != 0 && last[p] == i {
				sim.ReleasePool(p)
			}
			if slot >= 0 {
				blocks[slot] = b
			} else { // the program did not get it then, so nothing says how long it would live
				sim.Complete(b)
			}
		case evidence.MemFreeRequested:
			if s := h.slots[i]; s >= 0 {
				sim.Free(blocks[s])
			}
		case evidence.MemFreeCompleted, evidence.MemFree:
			s := h.slots[i]
			for len(early) > 0 && int(early[0]) < i {
				early = early[1:]
			}
			for len(near) > 0 && int(near[0]) < i {
				near = near[1:]
			}
			switch {
			case s < 0:
			case len(near) > 0 && int(near[0]) == i:
				blocks[s] = 0
			case len(early) > 0 && int(early[0]) == i:
				delayed = append(delayed, blocks[s])
				blocks[s] = 0 // it waits until the simulation flushes
			default:
				sim.Complete(blocks[s])
			}
		}
	}
	out.served = true
	out.flushes = sim.Retries
	return out, nil
}

func (o *outcome) fail(sim *Sim, event int, size int64) {
	o.failsAt = event
	o.request = sim.set.Round(min(max(size, 0), bytesMax))
	o.short = sim.Refused.Reserved + sim.Refused.Need - sim.capacity
	if sim.set.Limit > 0 {
		o.short = max(o.short, sim.Refused.Reserved+sim.Refused.Need-sim.set.Limit)
	}
	o.flushes = sim.Retries
}

// refill allocates what was there before the trace.
func (q *question) refill(sim *Sim, blocks []Block, out *outcome) bool {
	slot := 0
	for i := range q.h.initial {
		g := &q.h.initial[i]
		for _, p := range g.Blocks {
			if p.State == evidence.BlockInactive {
				continue
			}
			b, ok := sim.Malloc(p.Requested, g.Stream, g.Pool)
			if !ok {
				out.fail(sim, -1, p.Requested)
				return false
			}
			blocks[q.h.initSlots[slot].slot] = b
			if p.State == evidence.BlockPendingFree {
				sim.Free(b)
			}
			slot++
		}
	}
	return true
}

// answer runs the change under each assumption about the state before the trace that
// cannot be told, and answers only where they agree.
func (r *Replay) answer(ctx context.Context, q *question) (Answer, error) {
	a := Answer{Change: q.change, Settings: q.set, FailsAt: -1}
	capacity := int64(0)
	if q.room.Known {
		capacity = q.room.Bytes
	}
	layout := q.change.Conf != "" && len(q.h.initial) > 0
	end, err := q.assume(ctx, capacity, layout, &a)
	if err != nil {
		return a, err
	}
	if !q.room.Known {
		a.Why = "what the allocator may have is not known: no oom entry and no capacity was given"
		return a, nil
	}
	if w := r.bound(q); w != "" {
		a.Verdict, a.Why = NotAvoided, w
		return a, nil
	}
	switch {
	case end.mixed:
		a.Why = r.unsure(q, end.why)
	case end.served:
		if slack := q.slack(layout); slack > 0 {
			if least, err := q.assume(ctx, max(capacity-slack, 1), layout, &Answer{}); err != nil || least.mixed || !least.served {
				a.Why = r.offBy(q, layout)
				break
			}
		}
		a.Verdict = Avoided
		a.Why = "every recorded request is served within the room"
		if len(r.OOMs) > 0 {
			a.Why += ", the failed one included; what the program would have asked for after it is not known"
		} else if q.change.Capacity == 0 && r.Recorded.Reserved <= q.room.Bytes {
			a.Why += "; so it was as recorded, where none failed"
		}
		if layout {
			a.Why += "; so it is whether what was there before the trace lies as recorded or is placed anew, and takes up as much more as it had free"
		}
	default:
		if err := r.refuse(ctx, q, &a, layout); err != nil {
			return a, err
		}
	}
	if r.Settings.GCThreshold == 0 && a.Settings.GCThreshold > 0 {
		a.Why += "; garbage_collection_threshold works only with a memory fraction (torch.cuda.set_per_process_memory_fraction), taken to allow exactly the room"
	}
	return a, nil
}

// slack is how many bytes an answer may be off: as far as the replay under the recorded
// settings is; and where what was there before the trace lies in an unknown way, by
// what was free in it, at least one segment.
func (q *question) slack(layout bool) int64 {
	n := q.runs[0].fid.CurveWorst
	if layout {
		c := &q.h.count
		n += max(c.initReserved-c.initActive, q.set.large())
	}
	return n
}

// An ending is what becomes of the requests under all assumptions.
type ending struct {
	served bool
	mixed  bool       // under some all are served, under others not
	why    assumption // that makes the difference
}

// assume serves the requests under every assumption, until two lead to different ends.
// What is put into a is of the likeliest that fails, or else of the likeliest.
func (q *question) assume(ctx context.Context, capacity int64, layout bool, a *Answer) (ending, error) {
	var end ending
	var first outcome
	calm := map[assumption]bool{} // all was served, and memory never ran out
	for i, as := range q.assumptions(layout) {
		same := as
		same.hold, same.drop = false, as.drop && len(q.runs[as.run].releases) > 0
		if same != as && calm[same] {
			continue // no flush that a capture could forbid, or that could give a pool back
		}
		if q.work > mostWork+256*(i+1)*q.h.n {
			return end, errWork
		}
		out, err := q.serve(ctx, capacity, as)
		if err != nil {
			return end, err
		}
		calm[as] = out.served && out.flushes == 0
		if i == 0 || first.served && !out.served {
			end.mixed, first = i > 0, out
		} else {
			end.mixed = out.served != first.served
		}
		if end.mixed {
			end.why = as
			break
		}
	}
	end.served = first.served
	a.fill(&first, q.room)
	return end, nil
}

// unsure says what is missing where an assumption makes the difference.
func (r *Replay) unsure(q *question, as assumption) string {
	run := q.runs[as.run]
	switch {
	case as.fresh:
		return r.missingLayout()
	case as.hold:
		return "it hangs on when captures of CUDA graphs ran, in which cached memory cannot be released; that is not recorded"
	case as.drop:
		return "it hangs on when the graphs and private pools of the program were given up, from when on their cached memory can be released; that is not recorded"
	case as.other > 0:
		return "it hangs on which private pool a request of a captured graph was for that failed; that is not recorded"
	case as.limit || run.limited != q.runs[0].limited:
		return "it hangs on whether a memory fraction is set, and on what it allows, which garbage_collection_threshold and expandable segments are held against; that is not recorded"
	case as.run > 0:
		return fmt.Sprintf("it hangs on the version of PyTorch, whose rules of %v and of %v explain the record equally well", q.runs[0].version, run.version)
	case as.ask > 0:
		return "it hangs on how much the failed request asked for: its entry states the size as rounded under the recorded settings"
	case as.own > 0 || as.near || as.call:
		return "it hangs on when the frees that a flush of the cache completed would have completed without it, and on which releases were calls of empty_cache; neither is recorded"
	}
	return "it hangs on where the driver places new memory, which is not known"
}

func (r *Replay) missingLayout() string {
	return fmt.Sprintf("it hangs on how the %d blocks that were there before the trace would lie under this setting, which is not recorded: start recording before the model is built", r.Initial.Blocks)
}

// offBy says that the margin is too small.
func (r *Replay) offBy(q *question, layout bool) string {
	if layout {
		return r.missingLayout()
	}
	return fmt.Sprintf("the margin is smaller than what the replay is off by under the recorded settings, up to %s", evidence.Bytes(q.runs[0].fid.CurveWorst))
}

// refuse words the answer where no run served everything.
func (r *Replay) refuse(ctx context.Context, q *question, a *Answer, layout bool) error {
	a.Verdict = NotAvoided
	a.Why = fmt.Sprintf("the request at event %d fails", a.FailsAt)
	if a.FailsAt < 0 {
		a.Why = "what was there before the trace does not fit"
	} else if len(r.OOMs) > 0 && a.FailsAt > r.OOMs[0].Event {
		a.Verdict = CannotTell
		a.Why = fmt.Sprintf("the request that failed at event %d is served, but of those recorded after it, when the program had taken another way, the one at event %d is not", r.OOMs[0].Event, a.FailsAt)
		return nil
	}
	if layout && slices.Contains(q.runs[0].captures, a.FailsAt) {
		a.Verdict = CannotTell
		a.Why = fmt.Sprintf("the request at event %d fails if a capture forbids to release cached memory then, and what would be cached from before the trace is not recorded: start recording before the model is built", a.FailsAt)
		return nil
	}
	if layout {
		a.Why += ", whether what was there before the trace lies as recorded or is placed anew"
	}
	if a.FailsAt >= 0 && q.h.poolAt(a.FailsAt) != 0 && q.h.trace.At(a.FailsAt).Action == evidence.MemAlloc {
		a.Verdict = CannotTell
		a.Why = fmt.Sprintf("the request at event %d, of a private pool, fails if a capture forbids to release cached memory then; when captures ran is not recorded", a.FailsAt)
		return nil
	}
	if q.change.Capacity == 0 && r.Recorded.Reserved > q.room.Bytes && (len(r.OOMs) == 0 || a.FailsAt < r.OOMs[0].Event) {
		a.Verdict = CannotTell
		a.Why = fmt.Sprintf("the request at event %d exceeds the room, but at event %d the allocator held more than that: the room was not always the same", a.FailsAt, r.Recorded.Event)
		return nil
	}
	most := q.room.Most + q.slack(layout)
	if most <= q.room.Bytes {
		return nil
	}
	end, err := q.assume(ctx, most, layout, &Answer{})
	if (end.served || end.mixed) && q.room.Most <= q.room.Bytes {
		a.Verdict, a.Why = CannotTell, r.offBy(q, layout)
	} else if end.served || end.mixed {
		a.Verdict = CannotTell
		a.Why = fmt.Sprintf("it hangs on the room, which is known only to lie between %s and %s", evidence.Bytes(q.room.Bytes), evidence.Bytes(q.room.Most))
	}
	return err
}

func (a *Answer) fill(o *outcome, room Room) {
	a.Peak, a.Flushes, a.FailsAt, a.Request = o.peak, o.flushes, o.failsAt, o.request
	if room.Known {
		a.HasMargin = true
		a.Margin = room.Bytes - o.peak.Reserved
		if !o.served {
			a.Margin = -max(o.short, 0)
		}
	}
}

// bound says why no setting serves a failed request: what is in use and the request
// are more than the room, however they lie.
func (r *Replay) bound(q *question) string {
	if len(r.OOMs) > 0 {
		o := &r.OOMs[0]
		if least := o.Least + least512(q.h.leastRequest(o.Request)); least > q.room.Most+q.over() {
			return fmt.Sprintf("at event %d %s are in use and %s are asked for, together more than the room of %s: no layout helps", o.Event, evidence.Bytes(o.Least), evidence.Bytes(o.Request), evidence.Bytes(q.room.Most))
		}
	}
	return ""
}

// over is by how much more than the room may be held.
func (q *question) over() int64 {
	if !q.set.Expandable {
		return 0
	}
	return over(q.runs, &q.set)
}
