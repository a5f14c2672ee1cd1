package allocator

import (
	"fmt"

	"github.com/inquest-dev/inquest/internal/evidence"
)

// A profile is what the record alone says, without a simulation.
type profile struct {
	ooms   []OOM
	peak   Peak  // of reserved
	passed int64 // the most that a limit let pass: held, and asked for as a segment
	valley int   // the last event before the first failure at which least was in use
}

// profile goes through the record once.
func (h *history) profile() profile {
	p := profile{valley: -1}
	reserved := h.count.initReserved
	p.peak = Peak{Reserved: reserved}
	least := int64(0)
	sizes := make([]int64, h.nSlots)
	at := make(map[uint64]int64)
	for i := range h.initial {
		for _, b := range h.initial[i].Blocks {
			if b.State == evidence.BlockActive {
				at[b.Addr] = least512(b.Requested)
			}
		}
	}
	for _, s := range h.initSlots {
		sizes[s.slot] = at[s.addr]
		least += at[s.addr]
	}
	first := h.firstOOM()
	grown := int64(-1) // reserved before the memory that came right before an alloc
	lowest := int64(-1)
	for i, e := range h.trace.All() {
		switch e.Action {
		case evidence.MemSegmentAlloc, evidence.MemSegmentMap:
			grown = reserved
			reserved += plausible(e.Size)
			if reserved > p.peak.Reserved {
				p.peak = Peak{reserved, i}
			}
		case evidence.MemSegmentFree, evidence.MemSegmentUnmap:
			reserved -= plausible(e.Size)
		case evidence.MemAlloc:
			if grown >= 0 {
				p.passed = max(p.passed, grown+h.set.SegmentSize(h.set.Round(plausible(e.Size))))
			}
			s := h.slots[i]
			least += least512(e.Size) - sizes[s]
			sizes[s] = least512(e.Size)
		case evidence.MemFreeRequested, evidence.MemFreeCompleted, evidence.MemFree:
			if s := h.slots[i]; s >= 0 {
				least -= sizes[s]
				sizes[s] = 0
			}
		case evidence.MemOOM:
			p.ooms = append(p.ooms, OOM{Event: i, Request: e.Size, DeviceFree: int64(min(e.Addr, bytesMax)), Reserved: reserved, Least: least})
		}
		if !isSegment(e.Action) {
			grown = -1
		}
		if i >= first/2 && i < first && (lowest < 0 || least <= lowest) {
			lowest, p.valley = least, i
		}
	}
	for i := range p.ooms {
		h.roomAt(&p.ooms[i], max(p.peak.Reserved, p.passed))
	}
	return p
}

func (h *history) firstOOM() int {
	for i, e := range h.trace.All() {
		if e.Action == evidence.MemOOM {
			return i
		}
	}
	return h.n
}

// least512 is the least size of the block for a request, whatever the settings.
func least512(size int64) int64 {
	if size > 1<<50 {
		return 1 << 50
	}
	return (max(size, 1) + minBlock - 1) &^ (minBlock - 1)
}

// roomAt says what the allocator had at a failure: what it held and what the device had
// free. Where more was free than was asked for, a limit refused, or the driver could
// not use what it had; then only what was ever let pass is proved.
func (h *history) roomAt(o *OOM, passed int64) {
	o.room = min(o.Reserved+o.DeviceFree, unlimited)
	if o.DeviceFree >= h.needed(o.Request) {
		o.limited = true
		o.most = o.Reserved + h.set.SegmentSize(h.set.Round(min(max(o.Request, 1), bytesMax))) - 1
		o.room = min(max(o.Reserved, passed), o.most)
	}
	o.room = max(o.room, 1) // 0 stands for no limit
}

// needed is the most that a request makes the allocator ask of the driver.
func (h *history) needed(request int64) int64 {
	need := h.set.Round(min(max(request, 1), bytesMax))
	if h.set.Expandable {
		page := h.set.page(need <= smallMax)
		return (need + page - 1) / page * page
	}
	return h.set.SegmentSize(need)
}

// room is what the allocator may have in all.
func (h *history) room(p *profile, o Options) Room {
	r := Room{Event: -1}
	if o.Capacity > 0 {
		r.Known, r.Bytes, r.Most = true, o.Capacity, o.Capacity
		r.Basis = "as given: what the allocator may have in all"
		for i := range p.ooms {
			r.Limited = r.Limited || p.ooms[i].limited
		}
		return r
	}
	for i := range p.ooms {
		if f := &p.ooms[i]; !r.Known || f.room < r.Bytes {
			r.Known, r.Limited, r.Bytes, r.Most, r.Event = true, false, f.room, f.room, f.Event
			r.Basis = fmt.Sprintf("the oom entry at event %d: reserved then, %s, and what the device had free, %s; what other processes use is taken to stay the same, and no memory fraction to allow less", f.Event, evidence.Bytes(f.Reserved), evidence.Bytes(f.DeviceFree))
			if f.limited {
				r.Limited, r.Most = true, f.most
				r.Basis = fmt.Sprintf("the oom entry at event %d, although the device had %s free and at most %s were wanted: a limit refused, or memory that the driver could not use; only what the allocator was once given is proved", f.Event, evidence.Bytes(f.DeviceFree), evidence.Bytes(h.needed(f.Request)))
			}
		}
	}
	if !r.Known {
		r.Basis = "not known: no request failed in the trace, and no capacity was given"
	} else if len(p.ooms) > 1 {
		r.Basis += fmt.Sprintf("; the smallest of %d oom entries", len(p.ooms))
	}
	return r
}
