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
	run    *recorded
	change Change
	set    Settings
	room   Room
}

// An assumption is about what the record does not say. Each field is one thing; its
// zero value is the likelier way.
type assumption struct {
	fresh bool // what was there before the trace is allocated anew, by address; else it lies as recorded
	down  bool // the driver places new memory at falling addresses; else at rising ones
	own   bool // releases right before a request were its own flush, and so were the frees that they completed
	hold  bool // a capture forbids every flush; else those of private pools
	least bool // the failed request asked for the least that was rounded to what its entry says
	limit bool // a memory fraction allows exactly the room, so that a threshold works; else none is set
	other bool // a failed request that a capture made had a new private pool; else the one that its stream used last
}

// assumptions lists the ways that make a difference for q: all combinations of up to
// four things, or else each thing alone and all together.
func (q *question) assumptions(layout bool) []assumption {
	h := q.h
	var dims []func(*assumption)
	add := func(on bool, f func(*assumption)) {
		if on {
			dims = append(dims, f)
		}
	}
	add(layout, func(a *assumption) { a.fresh = true })
	add(true, func(a *assumption) { a.down = true })
	add(len(q.run.early) > 0 || q.run.unsure() > 0, func(a *assumption) { a.own = true })
	add(h.pools != nil || len(q.run.captures) > 0, func(a *assumption) { a.hold = true })
	add(q.set.Roundup != h.set.Roundup && h.set.Roundup != [16]int64{}, func(a *assumption) { a.least = true })
	add(q.set.GCThreshold != h.set.GCThreshold && q.set.Limit == 0, func(a *assumption) { a.limit = true })
	add(!h.snap.Has.EventPools && len(q.run.captures) > 0, func(a *assumption) { a.other = true })
	var out []assumption
	all := 1<<len(dims) - 1
	for n := range all + 1 {
		if len(dims) > 4 && n&(n-1) != 0 && n != all {
			continue
		}
		var a assumption
		for i, f := range dims {
			if n&(1<<i) != 0 {
				f(&a)
			}
		}
		out = append(out, a)
	}
	return out
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
	place := NewBump(h.top + 1<<40)
	if as.down {
		place = newDrop(h.bottom)
		if h.bottom < 1<<46 { // as on Windows: there is no room below
			place = newDrop(h.top + 1<<60)
		}
	}
	set := q.set
	if as.limit && capacity > 0 {
		set.Limit = capacity
	}
	sim := New(set, place, h.snap.Streams, 0)
	if set.Limit > 0 {
		sim.SetCapacity(capacity)
	} else {
		sim.allow(capacity, q.room.Limited)
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
	releases, early := q.run.releases, q.run.early
	for i, e := range h.trace.All() {
		if err := check(ctx, i, sim); err != nil {
			return out, err
		}
		for len(releases) > 0 && releases[0].event == i {
			for _, p := range releases[0].pools {
				sim.ReleasePool(p)
			}
			if !as.own || !releases[0].unsure {
				sim.EmptyCache()
			}
			releases = releases[1:]
		}
		if q.change.EmptyCache && q.change.Event == i {
			sim.EmptyCache()
		}
		switch e.Action {
		case evidence.MemAlloc, evidence.MemOOM:
			slot := h.slots[i]
			if slot >= 0 {
				sim.Complete(blocks[slot]) // where its end is not in the record
				blocks[slot] = 0
			}
			size, pool := e.Size, h.poolAt(i)
			captured := slices.Contains(q.run.captures, i)
			sim.Capturing = pool != 0 || as.hold || captured
			if as.least && e.Action == evidence.MemOOM {
				size = h.leastRequest(size)
			}
			if as.other && captured {
				pool = uint16(min(len(h.snap.Pools), 1<<16-1))
			}
			b, ok := sim.Malloc(size, e.Stream, pool)
			if !ok {
				out.fail(sim, i, size)
				return out, nil
			}
			if r := sim.Reserved(); r > out.peak.Reserved {
				out.peak = Peak{r, i}
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
			switch {
			case s < 0:
			case as.own && len(early) > 0 && int(early[0]) == i:
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
	served, all, err := q.assume(ctx, capacity, layout, &a)
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
	case served == all && q.slack(layout) > 0 && !q.fits(ctx, capacity-q.slack(layout), layout):
		a.Why = r.unsure(q, layout)
	case served == all:
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
	case served > 0:
		a.Why = r.unsure(q, layout)
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
	n := q.run.fid.CurveWorst
	if layout {
		c := &q.h.count
		n += max(c.initReserved-c.initActive, q.set.large())
	}
	return n
}

// fits says whether everything is served within capacity under every assumption.
func (q *question) fits(ctx context.Context, capacity int64, layout bool) bool {
	if capacity <= 0 {
		return false
	}
	served, all, err := q.assume(ctx, capacity, layout, &Answer{})
	return err == nil && served == all
}

// assume serves the requests under every assumption, and says under how many of them
// all are served. What is put into a is of the likeliest that fails, or else of the
// likeliest.
func (q *question) assume(ctx context.Context, capacity int64, layout bool, a *Answer) (served, all int, err error) {
	var first outcome
	for _, as := range q.assumptions(layout) {
		out, err := q.serve(ctx, capacity, as)
		if err != nil {
			return 0, 0, err
		}
		if out.served {
			served++
		}
		if all++; all == 1 || first.served && !out.served {
			first = out
		}
	}
	a.fill(&first, q.room)
	return served, all, nil
}

// unsure says what is missing where the assumptions lead to different ends.
func (r *Replay) unsure(q *question, layout bool) string {
	switch {
	case layout:
		return fmt.Sprintf("it hangs on how the %d blocks that were there before the trace would lie under this setting, which is not recorded: start recording before the model is built", r.Initial.Blocks)
	case q.h.pools != nil || len(q.run.captures) > 0:
		return "it hangs on when captures of CUDA graphs ran, in which cached memory cannot be released; that is not recorded"
	case q.set.GCThreshold != r.Settings.GCThreshold && q.set.Limit == 0:
		return "it hangs on whether a memory fraction is set, without which garbage_collection_threshold does nothing; that is not recorded"
	case q.run.fid.CurveWorst > 0:
		return fmt.Sprintf("the margin is smaller than what the replay is off by under the recorded settings, up to %d bytes", q.run.fid.CurveWorst)
	case len(q.run.early) > 0 || q.run.unsure() > 0:
		return "it hangs on when the frees that a flush of the cache completed would have completed without it, which is not recorded"
	}
	return "it hangs on where the driver places new memory, which is not known"
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
	served, _, err := q.assume(ctx, most, layout, &Answer{})
	if served > 0 && q.room.Most <= q.room.Bytes {
		a.Verdict, a.Why = CannotTell, r.unsure(q, layout)
	} else if served > 0 {
		a.Verdict = CannotTell
		a.Why = fmt.Sprintf("it hangs on the room, which is known only to lie between %d and %d bytes", q.room.Bytes, q.room.Most)
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
		if least := o.Least + least512(q.h.leastRequest(o.Request)); least > q.room.Most {
			return fmt.Sprintf("at event %d %d bytes are in use and %d are asked for, together more than the room of %d bytes: no layout helps", o.Event, o.Least, o.Request, q.room.Most)
		}
	}
	return ""
}
