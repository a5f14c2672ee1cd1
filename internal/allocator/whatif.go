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
	h        *history
	releases []release
	captures []int // events at which cached memory could not be released
	change   Change
	set      Settings
	room     Room
}

// run serves all recorded requests within capacity. Where fresh is set, what was there
// before the trace is allocated anew in the order of addresses; else it lies as
// recorded.
func (q *question) run(ctx context.Context, capacity int64, fresh bool) (outcome, error) {
	h := q.h
	out := outcome{failsAt: -1}
	sim := New(q.set, NewBump(h.top+1<<40), h.snap.Streams, capacity)
	blocks := make([]Block, h.nSlots)
	if fresh {
		if !q.refill(sim, blocks, &out) {
			return out, nil
		}
	} else if err := loadInitial(h, sim, blocks); err != nil {
		return out, err
	}
	out.peak = Peak{Reserved: sim.Reserved()}
	releases := q.releases
	for i, e := range h.trace.All() {
		if err := check(ctx, i, sim); err != nil {
			return out, err
		}
		for len(releases) > 0 && releases[0].event == i {
			for _, p := range releases[0].pools {
				sim.ReleasePool(p)
			}
			sim.EmptyCache()
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
			sim.Capturing = h.poolAt(i) != 0 || slices.Contains(q.captures, i)
			b, ok := sim.Malloc(e.Size, e.Stream, h.poolAt(i))
			if !ok {
				out.fail(sim, i, e.Size)
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
			if s := h.slots[i]; s >= 0 {
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
	recorded, err := q.run(ctx, capacity, false)
	if err != nil {
		return a, err
	}
	fresh := recorded
	layout := q.change.Conf != "" && len(q.h.initial) > 0
	if layout {
		if fresh, err = q.run(ctx, capacity, true); err != nil {
			return a, err
		}
	}
	a.fill(&recorded, q.room)
	if layout && !fresh.served && recorded.served {
		a.fill(&fresh, q.room)
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
	case recorded.served && fresh.served:
		a.Verdict = Avoided
		a.Why = "every recorded request is served within the room"
		if len(r.OOMs) > 0 {
			a.Why += ", the failed one included; what the program would have asked for after it is not known"
		}
		if layout {
			a.Why += "; so it is whether what was there before the trace lies as recorded or is placed anew"
			if m := q.room.Bytes - fresh.peak.Reserved; m < a.Margin {
				a.fill(&fresh, q.room)
			}
		}
	case recorded.served != fresh.served:
		a.Why = fmt.Sprintf("it hangs on how the %d blocks that were there before the trace would lie under this setting, which is not recorded: start recording before the model is built", r.Initial.Blocks)
	default:
		if err := r.refuse(ctx, q, &a, layout); err != nil {
			return a, err
		}
	}
	if a.Settings.GCThreshold > 0 && q.change.Conf != "" {
		a.Why += "; garbage_collection_threshold works only with a memory fraction (torch.cuda.set_per_process_memory_fraction), taken to allow exactly the room"
	}
	return a, nil
}

// refuse words the answer where no run served everything.
func (r *Replay) refuse(ctx context.Context, q *question, a *Answer, layout bool) error {
	a.Verdict = NotAvoided
	a.Why = fmt.Sprintf("the request at event %d fails", a.FailsAt)
	if a.FailsAt < 0 {
		a.Why = "what was there before the trace does not fit"
	} else if len(r.OOMs) > 0 && a.FailsAt > r.OOMs[0].Event {
		a.Why += "; the first failed request is served, but what was recorded after it is not"
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
	if q.room.Most <= q.room.Bytes {
		return nil
	}
	for _, fresh := range []bool{false, layout} {
		out, err := q.run(ctx, q.room.Most, fresh)
		if err != nil {
			return err
		}
		if out.served {
			a.Verdict = CannotTell
			a.Why = fmt.Sprintf("it hangs on the room, which is known only to lie between %d and %d bytes", q.room.Bytes, q.room.Most)
			return nil
		}
	}
	return nil
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
	for i := range r.OOMs {
		o := &r.OOMs[i]
		if least := o.Least + least512(o.Request); least > q.room.Most {
			return fmt.Sprintf("at event %d %d bytes are in use and %d are asked for, together more than the room of %d bytes: no layout helps", o.Event, o.Least, o.Request, q.room.Most)
		}
	}
	return ""
}
