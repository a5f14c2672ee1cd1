package memory

import (
	"cmp"
	"context"
	"slices"

	"github.com/inquest-dev/inquest/internal/evidence"
)

// A pass is the second one over the entries: where it stands. Active bytes are relative
// to what was alive before the trace.
type pass struct {
	*walk
	final    *table // blocks in use at the end; event 0 where the trace touches their address
	asked    *table // frees asked for of what is older than the trace, by address
	requests bool   // frees are recorded when they are asked for

	active, reserved int64
	step             int // of the newest entry
	met              int // refused requests so far
	lastTime         int64
	burst            flush
	bursting         bool
}

// follow is the second pass: what is alive, the curve, and what each stack did.
func (w *walk) follow(ctx context.Context) error {
	n := w.t.Len()
	w.live = newTable()
	w.byStack = make([]usage, len(w.st.facts))
	w.largest.most = w.o.Largest
	w.per = max((n+max(fineBuckets, w.o.Buckets)-1)/max(fineBuckets, w.o.Buckets, 1), 1)
	w.curve = make([]fine, 0, n/w.per+1)
	w.openSteps()
	w.peak, w.peakReserved = mark{0, -1}, mark{w.start, -1}
	p := &pass{walk: w, final: newTable(), asked: newTable(), requests: w.actions[evidence.MemFreeRequested] > 0, reserved: w.start, step: -1}
	w.inUse(func(i int, b *evidence.MemBlock) {
		p.final.put(element{addr: b.Addr, size: requested(b), event: beforeTrace, stack: b.Stack})
	})
	for i, e := range w.t.All() {
		if i&0xffff == 0 {
			if err := ctx.Err(); err != nil {
				return err
			}
		}
		for p.step+1 < len(w.steps.bounds) && i >= w.steps.bounds[p.step+1] {
			p.step++
		}
		p.take(i, e)
		p.measure(i, e)
	}
	if p.bursting {
		p.endBurst("")
	}
	w.settleBlocks(p.final)
	return nil
}

// openSteps makes room for the lowest and the highest of each complete step.
func (w *walk) openSteps() {
	w.floors, w.tops = make([]mark, w.steps.complete()), make([]mark, w.steps.complete())
	for k := range w.floors {
		w.floors[k], w.tops[k] = mark{1 << 62, -1}, mark{-1 << 62, -1}
	}
}

// take changes what is alive and reserved by entry i.
func (p *pass) take(i int, e *evidence.MemEvent) {
	if e.Action == evidence.MemFreeRequested {
		if x := p.live.get(e.Addr); x != nil {
			p.compare(x, e)
		} else if !p.ends {
			p.asked.put(element{addr: e.Addr, stack: e.Stack})
		}
	}
	switch {
	case e.Action == evidence.MemAlloc:
		p.alloc(i, e)
	case p.closes(e.Action):
		p.free(i, e)
	case e.Action == evidence.MemSegmentAlloc || e.Action == evidence.MemSegmentMap:
		p.reserved += sane(e.Size)
		if p.bursting {
			p.endBurst("segment")
		}
	case e.Action == evidence.MemSegmentFree || e.Action == evidence.MemSegmentUnmap:
		p.reserved -= sane(e.Size)
		if !p.bursting {
			p.bursting, p.burst = true, flush{event: i}
		}
		p.burst.segments++
		p.burst.bytes += sane(e.Size)
	case e.Action == evidence.MemOOM:
		if p.bursting {
			p.endBurst("oom")
		}
		if p.met < len(p.refused) && p.refused[p.met].event == i {
			p.refused[p.met].active = p.active
			p.met++
		}
	}
	if p.met > 0 && e.Action != evidence.MemOOM && e.Action != evidence.MemFreeRequested && e.Action != evidence.MemSnapshotMark {
		p.refused[p.met-1].changed = true
	}
}

func (p *pass) alloc(i int, e *evidence.MemEvent) {
	size := sane(e.Size)
	if old, was := p.live.put(element{e.Addr, size, int32(i), e.Stack, e.Note}); was {
		p.lost.n++
		p.lost.bytes += old.size
		p.active -= old.size
		p.largest.offer(&old, i)
	}
	if f := p.final.get(e.Addr); f != nil {
		f.event = 0
	}
	p.active += size
	p.account(e.Stack, i, p.step, size)
	if p.met > 0 {
		p.refused[p.met-1].after++
	}
	if p.bursting {
		p.endBurst("")
	}
}

// free ends an allocation. One that the trace does not begin is older than it.
func (p *pass) free(i int, e *evidence.MemEvent) {
	if x, ok := p.live.take(e.Addr); ok {
		p.active -= x.size
		if !p.requests {
			p.compare(&x, e)
		}
		p.largest.offer(&x, i)
		return
	}
	if f := p.final.get(e.Addr); f != nil {
		f.event = 0
	}
	x := element{e.Addr, sane(e.Size), beforeTrace, e.Stack, e.Note}
	if p.requests && !p.ends {
		// A free that waited for another stream is completed by whatever
		// allocates next, and can carry the stack of that.
		a, _ := p.asked.take(e.Addr)
		x.stack = a.stack
	}
	p.active -= x.size
	p.initial = append(p.initial, x)
	p.largest.offer(&x, i)
}

// endBurst puts down a run of segments given back, and what it came before.
func (p *pass) endBurst(before string) {
	p.bursting = false
	if len(p.flushes) < maxFlushes {
		p.burst.before = before
		p.flushes = append(p.flushes, p.burst)
		return
	}
	m := &p.moreFlushes
	m.Flushes++
	m.Bytes += p.burst.bytes
	switch before {
	case "segment":
		m.Segment++
	case "oom":
		m.OOM++
	}
}

// measure keeps what stands after entry i: the peaks, the curve, the extremes of the
// step, and the time near the limit.
func (p *pass) measure(i int, e *evidence.MemEvent) {
	if p.active > p.peak.value {
		p.peak = mark{p.active, i}
	}
	if p.reserved > p.peakReserved.value {
		p.peakReserved = mark{p.reserved, i}
	}
	p.draw(i, e.Time, p.active, p.reserved)
	if k := p.step; k >= 0 && k < len(p.floors) {
		if p.active < p.floors[k].value {
			p.floors[k] = mark{p.active, i}
		}
		if p.active > p.tops[k].value {
			p.tops[k] = mark{p.active, i}
		}
	}
	if e.Time > 0 {
		if p.lastTime > 0 && e.Time > p.lastTime && p.room > 0 && p.reserved >= p.room-p.room/20 {
			p.nearUS += e.Time - p.lastTime
		}
		p.lastTime = max(p.lastTime, e.Time)
	}
}

// compare counts whether a free carries the stack of its allocation.
func (w *walk) compare(x *element, e *evidence.MemEvent) {
	if x.stack == e.Stack {
		w.sameStack[0]++
	} else {
		w.sameStack[1]++
	}
}

// account keeps what a stack allocated.
func (w *walk) account(stack uint32, i, step int, size int64) {
	if int(stack) >= len(w.byStack) {
		stack = 0
	}
	u := &w.byStack[stack]
	if u.allocs == 0 {
		u.first, u.step = int32(i), int32(step)
	}
	u.allocs++
	if u.step != int32(step) {
		u.earlier, u.here, u.step = max(u.earlier, u.here), 0, int32(step)
	}
	u.here = max(u.here, size)
}

// draw adds a point to the curve.
func (w *walk) draw(i int, time, active, reserved int64) {
	if i%w.per == 0 {
		w.curve = append(w.curve, fine{from: i, time: time, min: active, max: active, minAt: i, maxAt: i, resMin: reserved, resMax: reserved})
	}
	b := &w.curve[len(w.curve)-1]
	b.to = i + 1
	if active < b.min {
		b.min, b.minAt = active, i
	}
	if active > b.max {
		b.max, b.maxAt = active, i
	}
	b.resMin, b.resMax = min(b.resMin, reserved), max(b.resMax, reserved)
}

// settleBlocks sets the blocks at the end against what the trace leaves alive.
func (w *walk) settleBlocks(blocks *table) {
	w.freed = len(w.initial)
	blocks.all(func(b *element) {
		switch {
		case w.live.get(b.addr) != nil:
		case b.event == beforeTrace:
			w.initial = append(w.initial, *b)
		default:
			w.after.n++
			w.after.bytes += b.size
		}
	})
	rest := w.initial[w.freed:]
	slices.SortFunc(rest, func(a, b element) int { return cmp.Compare(a.addr, b.addr) })
	w.live.all(func(x *element) {
		if blocks.get(x.addr) == nil {
			w.ghosts.n++
			w.ghosts.bytes += x.size
		}
	})
	for i := range w.initial {
		if w.base += w.initial[i].size; i < w.freed && !w.freesTell() {
			w.initial[i].stack = 0 // where it was freed, not where it was made
		}
	}
}
