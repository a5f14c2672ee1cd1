package detect

import (
	"cmp"
	"slices"

	"github.com/inquest-dev/inquest/internal/evidence"
)

// afterFailure is how many lines behind a failure what its handler prints of the
// allocator still speaks of it.
const afterFailure = 400

// allocatorCounters states what PyTorch's allocator counted in the failing process:
// memory_summary and memory_stats, printed by it. The counters only grow, so the
// largest is the last; sizes are taken from what its handler printed right behind the failure, else
// from what it printed last before.
func allocatorCounters(in Input, f evidence.Known) {
	own := ownCounters(in)
	if len(own) == 0 {
		return
	}
	count := func(fact, attr string) {
		var best *evidence.Event
		for _, e := range own {
			if v, ok := e.Attrs[attr]; ok && (best == nil || v.I > best.Attrs[attr].I) {
				best = e
			}
		}
		if best == nil {
			return
		}
		if old, ok := f[fact]; ok && old.Value.I >= best.Attrs[attr].I {
			return
		}
		f.Set(fact, best.Attrs[attr], best.Span)
	}
	count("memory.retries", "retries")
	count("memory.ooms", "ooms")
	e, after := atFailure(in, own)
	if e == nil {
		return
	}
	if v, ok := e.Attrs["inactive"]; ok {
		f.Set("memory.inactive_split", v, e.Span)
	}
	between := func(fact, whole, part string) {
		a, ok1 := e.Attrs[whole]
		b, ok2 := e.Attrs[part]
		if ok1 && ok2 && a.Hi >= b.Lo {
			f.Set(fact, floor0(a.Minus(b)), e.Span)
		}
	}
	between("memory.rounding_waste", "allocated", "requested")
	between("memory.pending_free", "active", "allocated")
	if after {
		fillMessage(e, f)
	}
}

// ownCounters are those of the failing process, in the order of its artifact: of its
// rank where one is stated, of its artifact where none is, and of no other device.
// Without a memory failure they are all.
func ownCounters(in Input) []*evidence.Event {
	var own []*evidence.Event
	in.each(evidence.MemSummary, func(e *evidence.Event) {
		if m := in.Memory; m != nil {
			if e.Who.Rank != m.Who.Rank || e.Who.Rank == evidence.None && e.Span.Artifact != m.Span.Artifact {
				return
			}
			a, ok1 := e.Attrs["gpu"]
			b, ok2 := m.Attrs["gpu"]
			if ok1 && ok2 && a.I != b.I {
				return
			}
		}
		own = append(own, e)
	})
	return own
}

// atFailure picks the counters that speak of the failure: those printed right behind
// it, before any further training line; else the last before it.
func atFailure(in Input, own []*evidence.Event) (e *evidence.Event, after bool) {
	if in.Memory == nil {
		return nil, false
	}
	at := in.Memory.Span
	var last *evidence.Event
	ordered := slices.Clone(own)
	slices.SortStableFunc(ordered, func(a, b *evidence.Event) int { return cmp.Compare(a.Span.Offset, b.Span.Offset) })
	for _, x := range ordered {
		switch {
		case x.Span.Artifact != at.Artifact:
		case x.Span.Offset < at.Offset:
			last = x
		case x.Span.Line-at.Line <= afterFailure && evidence.LossesBetween(in.Series, at.Artifact, at.Offset, x.Span.Offset) == 0:
			return x, true
		}
	}
	return last, false
}

// fillMessage takes what the failure's own message does not state from counters that
// its handler printed behind it. What is reserved did not change in between, unless
// the handler emptied the cache; live tensors may have been freed, so what was
// allocated lies between what it is now and its peak.
func fillMessage(e *evidence.Event, f evidence.Known) {
	reserved, ok := e.Attrs["reserved"]
	if !ok {
		return
	}
	if peak, ok := e.Attrs["peak_reserved"]; ok && reserved.Hi < peak.Lo {
		reserved = evidence.SizeOf(reserved.Lo, peak.Hi) // some of it was given back, before or after
	}
	if _, known := f["oom.reserved"]; known {
		return
	}
	f.Set("oom.reserved", reserved, e.Span)
	now, ok1 := e.Attrs["allocated"]
	peak, ok2 := e.Attrs["peak_allocated"]
	if !ok1 || !ok2 || peak.Hi < now.Lo {
		return
	}
	allocated := evidence.SizeOf(now.Lo, peak.Hi)
	if _, known := f["oom.allocated"]; !known {
		f.Set("oom.allocated", allocated, e.Span)
	}
	if _, known := f["oom.reserved_unallocated"]; !known {
		f.Set("oom.reserved_unallocated", floor0(reserved.Minus(allocated)), e.Span)
	}
	if this, ok := f["oom.this_process"]; ok {
		if _, known := f["oom.outside_allocator"]; !known {
			f.Set("oom.outside_allocator", floor0(this.Value.Minus(reserved)), append(slices.Clone(this.Spans), e.Span)...)
		}
	}
}
