package memory

import (
	"cmp"
	"fmt"
	"math/bits"
	"slices"

	"github.com/inquest-dev/inquest/internal/evidence"
	"github.com/inquest-dev/inquest/internal/incident"
)

// smallMost is the largest request that the small pool serves.
const smallMost = 1 << 20

func class(small bool) string {
	if small {
		return "small"
	}
	return "large"
}

// pool names a pool: the default ones, or a private one by its id.
func (w *walk) pool(i uint16) string {
	if int(i) >= len(w.m.Pools) || w.m.Pools[i] == [2]int64{} {
		return "default"
	}
	return fmt.Sprintf("%d,%d", w.m.Pools[i][0], w.m.Pools[i][1])
}

func (w *walk) private(i uint16) bool { return w.pool(i) != "default" }

func (w *walk) stream(i uint16) uint64 {
	if int(i) >= len(w.m.Streams) {
		return 0
	}
	return w.m.Streams[i]
}

// totals are sums over the segments, blocks and entries of the device.
func (w *walk) totals() incident.MemoryTotals {
	t := incident.MemoryTotals{Events: w.t.Len()}
	for i := range w.m.Segments {
		s := &w.m.Segments[i]
		if s.Device != w.device {
			continue
		}
		t.Segments++
		t.Blocks += s.N
		t.Reserved += sane(s.Total)
		if w.private(s.Pool) {
			t.Private += sane(s.Total)
		}
		for n := range w.m.BlocksOf(s) {
			b := &w.m.Blocks[s.First+n]
			switch b.State {
			case evidence.BlockActive:
				t.Allocated += sane(b.Size)
				t.Active += sane(b.Size)
				t.Requested += requested(b)
			case evidence.BlockPendingFree:
				t.Active += sane(b.Size)
				t.Requested += requested(b)
			}
		}
	}
	t.Free = max(t.Reserved-t.Active, 0)
	return t
}

// settled is the refused request whose moment the segments of the file show, nil
// where they were changed since, or none was refused.
func (w *walk) settled() *refusal {
	if n := len(w.refused); n > 0 && !w.refused[n-1].changed {
		return &w.refused[n-1]
	}
	return nil
}

// decisive is the request whose refusal nothing followed, nil where none was.
func (w *walk) decisive() *refusal {
	if n := len(w.refused); n > 0 && !w.refused[n-1].survived() {
		return &w.refused[n-1]
	}
	return nil
}

// fragmentation says how the reserve is cut up at the end.
func (w *walk) fragmentation() incident.MemoryFragmentation {
	f := incident.MemoryFragmentation{Pools: []incident.MemoryPoolUse{}, Pinned: []incident.MemoryPinned{}, Histogram: []incident.MemoryFreeOfSizes{}}
	if w.m.Has.Profile {
		w.says(&f, 0)
		return f
	}
	type key struct {
		pool   string
		small  bool
		stream uint64
	}
	pools := map[key]*incident.MemoryPoolUse{}
	var sizes [64]incident.MemoryFreeOfSizes
	var pinned []incident.MemoryPinned
	free, largestAt := 0, -1
	for i := range w.m.Segments {
		s := &w.m.Segments[i]
		if s.Device != w.device {
			continue
		}
		k := key{w.pool(s.Pool), s.Small, w.stream(s.Stream)}
		p := pools[k]
		if p == nil {
			p = &incident.MemoryPoolUse{Pool: k.pool, Class: class(k.small), Stream: k.stream}
			pools[k] = p
		}
		p.Segments++
		p.Reserved += sane(s.Total)
		active, live := int64(0), -1
		for n := range w.m.BlocksOf(s) {
			at := s.First + n
			b := &w.m.Blocks[at]
			size := sane(b.Size)
			if b.State != evidence.BlockInactive {
				active += size
				if live < 0 || b.Size > w.m.Blocks[live].Size {
					live = at
				}
				continue
			}
			free++
			c := bits.Len64(uint64(max(size-1, 511)))
			sizes[c].UpTo = 1 << c
			sizes[c].Blocks++
			sizes[c].Bytes += size
			p.LargestFree = max(p.LargestFree, size)
			if size > f.LargestFree {
				f.LargestFree, largestAt = size, at
			}
		}
		p.Active += active
		p.Free += max(sane(s.Total)-active, 0)
		f.Free += max(sane(s.Total)-active, 0)
		if live >= 0 && !s.Small && 2*active < s.Total {
			pinned = append(pinned, incident.MemoryPinned{Segment: w.segment(i), Total: s.Total, Active: active, Block: live})
		}
	}
	if largestAt >= 0 {
		sp := w.block(largestAt)
		f.LargestFreeAt = &sp
	}
	for c := range sizes {
		if sizes[c].Blocks > 0 {
			f.Histogram = append(f.Histogram, sizes[c])
		}
	}
	for _, p := range pools {
		f.Pools = append(f.Pools, *p)
	}
	slices.SortFunc(f.Pools, func(a, b incident.MemoryPoolUse) int {
		return cmp.Or(cmp.Compare(b.Reserved, a.Reserved), cmp.Compare(a.Pool, b.Pool), cmp.Compare(a.Class, b.Class), cmp.Compare(a.Stream, b.Stream))
	})
	slices.SortStableFunc(pinned, func(a, b incident.MemoryPinned) int { return cmp.Compare(b.Total-b.Active, a.Total-a.Active) })
	for _, p := range pinned[:min(len(pinned), w.o.Top)] {
		stack := w.m.Blocks[p.Block].Stack
		p.Stack, p.Name = w.st.index(stack), w.st.name(stack)
		f.Pinned = append(f.Pinned, p)
	}
	w.says(&f, free)
	return f
}

// segment points at segment i of the file, by its first block.
func (w *walk) segment(i int) evidence.Span {
	s := &w.m.Segments[i]
	return evidence.Span{Artifact: w.m.Artifact, Kind: "block", Device: w.device, Index: int64(s.First),
		Quote: fmt.Sprintf("segment of %s at %#x", evidence.Bytes(sane(s.Total)), s.Addr)}
}

// fitting is the largest free block that a request could have had: of its class
// and stream, in the default pools, at the end.
func (w *walk) fitting(r *refusal) int64 {
	var n int64
	stream := w.t.At(r.event).Stream
	for i := range w.m.Segments {
		s := &w.m.Segments[i]
		if s.Device != w.device || w.private(s.Pool) || s.Stream != stream || s.Small != (r.request <= smallMost) {
			continue
		}
		for _, b := range w.m.BlocksOf(s) {
			if b.State == evidence.BlockInactive {
				n = max(n, sane(b.Size))
			}
		}
	}
	return n
}

// says puts the fragmentation at the end in words, and gives it a standing: it is
// decided only by what could not have fitted at all, or by a replay.
func (w *walk) says(f *incident.MemoryFragmentation, blocks int) {
	reserved := w.reservedAtEnd()
	if w.m.Has.Profile {
		f.Says, f.Standing, f.Missing = "what the file calls segments are ranges of addresses: a profile does not know the allocator's", incident.Undecidable, "segments: a memory snapshot holds them"
		return
	}
	if reserved == 0 {
		f.Says, f.Standing, f.Missing = "nothing is reserved at the end", incident.Undecidable, "segments"
		return
	}
	f.Says = fmt.Sprintf("%s of the %s reserved (%s) lie free in %s, the largest %s", evidence.Bytes(f.Free), evidence.Bytes(reserved), percent(f.Free, reserved), count(blocks, "block"), evidence.Bytes(f.LargestFree))
	if blocks == 0 {
		f.Says = fmt.Sprintf("%s of the %s reserved are in no block that the file lists", evidence.Bytes(f.Free), evidence.Bytes(reserved))
	}
	if f.Free == 0 {
		f.Says = fmt.Sprintf("all of the %s reserved is in use", evidence.Bytes(reserved))
	}
	r := w.decisive()
	if r == nil && w.m.Cut {
		f.Standing, f.Missing = incident.Undecidable, "the rest of the file: it is damaged, and whether a request was refused may stand there"
		return
	}
	if r == nil {
		f.Standing, f.Missing = incident.Undecidable, "a request that was refused: no oom entry ends the trace"
		if len(w.refused) > 0 {
			f.Missing = "a refused request that ended the run: the program went on after each"
		}
		return
	}
	f.Request = &r.request
	free := r.reserved - r.active // at most: blocks are rounded
	if r == w.settled() {
		free = f.Free
	}
	switch {
	case r.free >= evidence.DriverRequest(r.request):
		f.Standing, f.Missing = incident.Undecidable, fmt.Sprintf("why %s were refused while the device had %s free: a limit on this process (set_per_process_memory_fraction), or another process that took them meanwhile", evidence.Bytes(r.request), evidence.Bytes(r.free))
	case r.active+r.request > r.reserved+r.free: // at least: without what rounding takes
		f.Standing, f.Layout = incident.RuledOut, new(bool)
		f.Says += fmt.Sprintf("; the request of %s and the %s in use are more than the %s that there were in all, however they lie", evidence.Bytes(r.request), evidence.Bytes(r.active), evidence.Bytes(r.reserved+r.free))
	case free >= r.request:
		f.Standing, f.Missing = incident.Supported, "a replay of the trace under another setting (--replay auto)"
		if r == w.settled() {
			f.Says += fmt.Sprintf("; %s were asked for in one piece", evidence.Bytes(r.request))
		} else {
			f.Says += fmt.Sprintf("; about %s lay unused when %s were refused", evidence.Bytes(free), evidence.Bytes(r.request))
		}
	default:
		f.Standing, f.Missing = incident.Possible, "a replay of the trace under another setting (--replay auto)"
		f.Says += fmt.Sprintf("; the %s unused and the %s that the device had free would hold the %s only together", evidence.Bytes(free), evidence.Bytes(r.free), evidence.Bytes(r.request))
	}
}

func percent(part, of int64) string {
	if of <= 0 {
		return "0 %"
	}
	p := float64(part) / float64(of) * 100
	if p > 0 && p < 1 {
		return "<1 %"
	}
	return fmt.Sprintf("%.0f %%", p)
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return evidence.Count(n) + " " + what + "s"
}
