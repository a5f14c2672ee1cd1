package memory

import (
	"github.com/inquest-dev/inquest/internal/evidence"
	"github.com/inquest-dev/inquest/internal/incident"
)

// pressure says where memory ran short.
func (w *walk) pressure() incident.MemoryPressure {
	p := incident.MemoryPressure{OOMs: []incident.MemoryOOM{}, Flushes: []incident.MemoryFlush{}, Reserved: w.peakReserved.value}
	for i := range w.refused {
		r := &w.refused[i]
		if i >= maxListed && i < len(w.refused)-1 {
			continue // the last one is always listed
		}
		o := incident.MemoryOOM{Event: r.event, Time: w.time(r.time), Request: r.request, DeviceFree: r.free, Reserved: r.reserved, Active: r.active,
			Stack: w.st.index(r.stack), Name: w.st.name(r.stack), Survived: r.survived(), After: r.after, AtEnd: !r.changed && i == len(w.refused)-1, Spans: []evidence.Span{*w.span(r.event)}}
		if o.AtEnd {
			n := w.fitting(r)
			o.LargestFree = &n
		}
		p.OOMs = append(p.OOMs, o)
	}
	p.MoreOOMs = w.actions[evidence.MemOOM] - len(p.OOMs)
	if w.moreFlushes.Flushes > 0 {
		p.MoreFlushes = &w.moreFlushes
	}
	for _, f := range w.flushes {
		p.Flushes = append(p.Flushes, incident.MemoryFlush{Event: f.event, Segments: f.segments, Bytes: f.bytes, Before: f.before})
	}
	if span := w.timeTo - w.timeFrom; w.room > 0 && span > 0 {
		f := min(float64(w.nearUS)/float64(span), 1)
		p.Near, p.NearBasis = &f, "share of the time with at least 95 % of "+evidence.Bytes(w.room)+" reserved: "+w.roomBasis()
	}
	return p
}

// maxListed bounds the refused requests and flushes that are listed one by one.
const maxListed = 200

// roomBasis says how the room is known.
func (w *walk) roomBasis() string {
	switch {
	case w.room == 0:
		return ""
	case w.room == w.o.Capacity:
		return "the capacity that was stated"
	}
	return "what was reserved and what the device had free when a request was refused"
}

// outside is device memory beyond the allocator's at the last refused request;
// nil where the capacity is not known.
func (w *walk) outside() *incident.MemoryOutside {
	n := len(w.refused)
	if n == 0 || w.o.Capacity <= 0 {
		return nil
	}
	r := &w.refused[n-1]
	bytes := w.o.Capacity - r.free - r.reserved
	if bytes < 0 {
		return &incident.MemoryOutside{Bytes: 0, Basis: "cannot be told: the capacity stated, " + evidence.Bytes(w.o.Capacity) + ", is less than the " + evidence.Bytes(r.reserved) + " reserved and the " + evidence.Bytes(r.free) + " free together: it is not that of this device", Spans: []evidence.Span{*w.span(r.event)}}
	}
	return &incident.MemoryOutside{Bytes: bytes, Spans: []evidence.Span{*w.span(r.event)},
		Basis: evidence.Bytes(w.o.Capacity) + " of the device less " + evidence.Bytes(r.free) + " free and " + evidence.Bytes(r.reserved) + " reserved when the request was refused; other processes are part of it"}
}
