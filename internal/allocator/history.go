package allocator

import (
	"cmp"
	"slices"

	"github.com/inquest-dev/inquest/internal/evidence"
)

// A history is one device's record, made ready for being run: the state before the
// first event, and for each event which block it is about.
type history struct {
	snap   *evidence.MemSnapshot
	device int
	trace  *evidence.MemTrace
	n      int
	set    Settings // recorded

	initial      []Segment
	reservations []Reservation
	top, bottom  uint64 // around every recorded address

	// slots says for each event which block it is about; -1: none that is known. Each
	// block has a slot from its alloc to the end of its free.
	slots     []int32
	nSlots    int
	initSlots []initSlot
	pools     []uint16 // of alloc events; nil: all of the default pools

	deferred    bool // some frees waited for other streams
	noRequested bool // free_requested entries are missing altogether
	count       counts
}

type initSlot struct {
	addr uint64
	slot int32
}

// counts are of what the file lacks or contradicts.
type counts struct {
	initBlocks, guessed                 int
	initReserved, initActive            int64
	segmentEvents, allocs, ooms         int
	afterAlloc, afterFree               int // in the trace and in the segments differ: events are missing at the end
	doubleAlloc, unknownFree            int
	segmentMissing, segmentTwice        int
	orphans, squeezed                   int
	unknownPool, unknownClass, badSizes int
}

// contradictions is how many events cannot follow from those before them.
func (c *counts) contradictions() int {
	return c.doubleAlloc + c.unknownFree + c.segmentMissing + c.segmentTwice + c.orphans + c.squeezed + c.badSizes
}

// A memRange is a range held from the driver during the walk back.
type memRange struct {
	addr         uint64
	size         int64
	stream, pool uint16
	small, exp   bool
}

// A memLive is a block in use during the walk back. end is the lowest address at which
// another block was seen to begin while this one was in use.
type memLive struct {
	addr, end uint64
	size      int64 // as stated; 0: it was freed in the trace
	requested int64
	state     uint8
}

// A walk undoes the events from the last on, which leads from the segments of the
// snapshot, the state at the end, to the state before the first one.
type walk struct {
	h      *history
	ranges index
	rslab  []memRange
	live   index
	lslab  []memLive
	lfree  []int32 // places in lslab that are not in use
	maps   index   // of segment_map events by address: 1 where small
	seen   []memRange
}

// newHistory reads the record of one device. It has no trace where there is none.
func newHistory(m *evidence.MemSnapshot, device int, set Settings) *history {
	h := &history{snap: m, device: device, set: set}
	if device < len(m.Traces) {
		h.trace = &m.Traces[device]
		h.n = h.trace.Len()
	}
	if h.n == 0 {
		return h
	}
	h.bottom = 1 << 62
	w := &walk{h: h}
	w.scan()
	w.final()
	if len(m.Pools) > 1 {
		h.pools = make([]uint16, h.n)
	}
	for i := h.n - 1; i >= 0; i-- {
		w.undo(i, h.trace.At(i))
	}
	w.assemble()
	h.assignSlots()
	return h
}

// scan goes forward once for what the walk back must know beforehand.
func (w *walk) scan() {
	var requested, completed int
	asked := uint64(0)
	for _, e := range w.h.trace.All() {
		switch e.Action {
		case evidence.MemAlloc:
			w.h.count.allocs++
		case evidence.MemFreeRequested:
			requested++
			asked = e.Addr
		case evidence.MemFreeCompleted:
			completed++
			w.h.deferred = w.h.deferred || requested > 0 && e.Addr != asked
		case evidence.MemOOM:
			w.h.count.ooms++
			continue
		case evidence.MemSegmentMap:
			w.maps.remove(e.Addr, 0)
			w.maps.insert(e.Addr, 0, b2i(e.Size == smallBuffer))
		}
		if isSegment(e.Action) {
			w.h.count.segmentEvents++
		}
		if e.Size > 0 && e.Size < bytesMax && e.Addr < 1<<62 && e.Addr > 0 {
			w.h.top = max(w.h.top, e.Addr+uint64(e.Size))
			w.h.bottom = min(w.h.bottom, e.Addr)
		}
	}
	w.h.noRequested = requested == 0 && completed > 0
}

func b2i(b bool) int32 {
	if b {
		return 1
	}
	return 0
}

func isSegment(a evidence.MemAction) bool {
	return a >= evidence.MemSegmentAlloc && a <= evidence.MemSegmentUnmap
}

// final puts in the state that the snapshot states.
func (w *walk) final() {
	m := w.h.snap
	for i := range m.Segments {
		g := &m.Segments[i]
		if g.Device != w.h.device {
			continue
		}
		if !goodRange(g.Addr, g.Total) {
			w.h.count.badSizes++
			continue
		}
		w.h.top = max(w.h.top, g.Addr+uint64(g.Total))
		w.h.bottom = min(w.h.bottom, g.Addr)
		w.addRange(memRange{addr: g.Addr, size: g.Total, stream: g.Stream, pool: g.Pool, small: g.Small, exp: g.Expandable})
		for _, b := range m.BlocksOf(g) {
			if b.State == evidence.BlockInactive {
				continue
			}
			if !goodRange(b.Addr, b.Size) {
				w.h.count.badSizes++
				continue
			}
			req := b.Requested
			if !m.Has.Requested || req <= 0 || req > b.Size {
				req = b.Size
			}
			w.addLive(memLive{addr: b.Addr, size: b.Size, requested: req, state: b.State})
		}
	}
}

// goodRange says whether a range could be one: not empty, and far from the ends of
// the address space.
func goodRange(addr uint64, size int64) bool {
	return size > 0 && size <= 1<<50 && addr > 0 && addr < 1<<62
}

func (w *walk) addRange(r memRange) {
	if w.overlaps(r.addr, r.size) {
		w.h.count.segmentTwice++
		return
	}
	w.rslab = append(w.rslab, r)
	w.ranges.insert(r.addr, 0, int32(len(w.rslab)-1))
	w.seen = append(w.seen, r)
}

func (w *walk) overlaps(addr uint64, size int64) bool {
	at, ok := w.ranges.floor(addr+uint64(size)-1, 0)
	if !ok {
		return false
	}
	r := &w.rslab[w.ranges.at(at).v]
	return r.addr+uint64(r.size) > addr
}

// rangeOf returns the range that holds addr, or nil.
func (w *walk) rangeOf(addr uint64) *memRange {
	at, ok := w.ranges.floor(addr, 0)
	if !ok {
		return nil
	}
	r := &w.rslab[w.ranges.at(at).v]
	if r.addr+uint64(r.size) <= addr {
		return nil
	}
	return r
}

// addLive adds a block in use and keeps the bounds of it and of the one before it. A
// second one at the same address takes the place of the first.
func (w *walk) addLive(b memLive) bool {
	b.end = ^uint64(0)
	at, ok := w.live.seek(b.addr, 0)
	if ok && w.live.at(at).a == b.addr {
		b.end = w.lslab[w.live.at(at).v].end
		w.lslab[w.live.at(at).v] = b
		return false
	}
	if ok {
		b.end = w.live.at(at).a
	}
	if before, ok := w.live.floor(b.addr, 0); ok {
		p := &w.lslab[w.live.at(before).v]
		p.end = min(p.end, b.addr)
	}
	if n := len(w.lfree); n > 0 {
		v := w.lfree[n-1]
		w.lfree = w.lfree[:n-1]
		w.lslab[v] = b
		w.live.insert(b.addr, 0, v)
		return true
	}
	w.lslab = append(w.lslab, b)
	w.live.insert(b.addr, 0, int32(len(w.lslab)-1))
	return true
}

func (w *walk) liveAt(addr uint64) *memLive {
	if v, ok := w.live.get(addr, 0); ok {
		return &w.lslab[v]
	}
	return nil
}

// undo takes event i back.
func (w *walk) undo(i int, e *evidence.MemEvent) {
	if e.Action != evidence.MemOOM && e.Action != evidence.MemSnapshotMark && e.Action != evidence.MemUserDefined && e.Action != evidence.MemOther &&
		!goodRange(e.Addr, max(e.Size, 1)) {
		w.h.count.badSizes++
		return
	}
	switch e.Action {
	case evidence.MemAlloc:
		w.undoAlloc(i, e)
	case evidence.MemOOM:
		if w.h.pools != nil && w.h.snap.Has.EventPools {
			w.h.pools[i] = e.Pool
		}
	case evidence.MemFreeCompleted, evidence.MemFree:
		b := memLive{addr: e.Addr, requested: max(e.Size, 1), state: evidence.BlockPendingFree}
		if e.Action == evidence.MemFree || w.h.noRequested {
			b.state = evidence.BlockActive
		}
		if !w.addLive(b) {
			w.h.count.afterAlloc++
		}
	case evidence.MemFreeRequested:
		if b := w.liveAt(e.Addr); b != nil {
			b.state = evidence.BlockActive
			break
		}
		w.h.count.afterFree++
		w.addLive(memLive{addr: e.Addr, requested: max(e.Size, 1), state: evidence.BlockActive})
	case evidence.MemSegmentAlloc:
		w.undoSegmentAlloc(e)
	case evidence.MemSegmentFree:
		w.addRange(memRange{addr: e.Addr, size: max(e.Size, 1), stream: e.Stream, pool: w.poolOf(e), small: e.Size == smallBuffer})
	case evidence.MemSegmentMap:
		w.undoMap(e)
	case evidence.MemSegmentUnmap:
		w.addRange(w.unmapped(e))
	}
}

func (w *walk) undoAlloc(i int, e *evidence.MemEvent) {
	if w.h.pools != nil {
		if w.h.snap.Has.EventPools {
			w.h.pools[i] = e.Pool
		} else if r := w.rangeOf(e.Addr); r != nil {
			w.h.pools[i] = r.pool
		} else {
			w.h.count.unknownPool++
		}
	}
	if v, ok := w.live.remove(e.Addr, 0); ok {
		w.lfree = append(w.lfree, v)
		return
	}
	w.h.count.afterFree++
}

func (w *walk) undoSegmentAlloc(e *evidence.MemEvent) {
	v, ok := w.ranges.get(e.Addr, 0)
	if !ok || w.rslab[v].size != e.Size || w.rslab[v].exp {
		w.h.count.segmentMissing++
		return
	}
	w.ranges.remove(e.Addr, 0)
}

// undoMap takes the pages out of the ranges that hold them.
func (w *walk) undoMap(e *evidence.MemEvent) {
	lo, hi := e.Addr, e.Addr+uint64(max(e.Size, 1))
	for lo < hi {
		r := w.rangeOf(lo)
		if r == nil || !r.exp {
			w.h.count.segmentMissing++
			return
		}
		whole := *r
		end := whole.addr + uint64(whole.size)
		w.ranges.remove(whole.addr, 0)
		if whole.addr < lo {
			w.piece(whole, whole.addr, lo)
		}
		if end > hi {
			w.piece(whole, hi, end)
		}
		lo = end
	}
}

func (w *walk) piece(r memRange, lo, hi uint64) {
	r.addr, r.size = lo, int64(hi-lo)
	w.rslab = append(w.rslab, r)
	w.ranges.insert(lo, 0, int32(len(w.rslab)-1))
}

// unmapped is the range of a segment_unmap entry. Its size class follows from the
// entry that mapped it, or the pages beside it, or its size.
func (w *walk) unmapped(e *evidence.MemEvent) memRange {
	r := memRange{addr: e.Addr, size: max(e.Size, 1), stream: e.Stream, pool: w.poolOf(e), exp: true}
	near := w.rangeOf(e.Addr - 1)
	if near == nil || !near.exp || near.stream != e.Stream {
		near = w.rangeOf(e.Addr + uint64(r.size))
	}
	if v, ok := w.maps.get(e.Addr, 0); ok {
		r.small = v == 1
	} else if near != nil && near.exp && near.stream == e.Stream {
		r.small = near.small
	} else if at, ok := w.maps.floor(e.Addr, 0); ok && e.Addr-w.maps.at(at).a < 1<<32 {
		r.small = w.maps.at(at).v == 1
	} else {
		w.h.count.unknownClass++
		r.small = r.size%w.h.set.large() != 0
	}
	if !w.h.snap.Has.EventPools && near != nil && near.exp && near.stream == e.Stream && near.small == r.small {
		r.pool = near.pool
	}
	return r
}

func (w *walk) poolOf(e *evidence.MemEvent) uint16 {
	if w.h.snap.Has.EventPools {
		return e.Pool
	}
	if w.h.pools != nil {
		w.h.count.unknownPool++
	}
	return 0
}

// assemble makes the segments before the first event.
func (w *walk) assemble() {
	h := w.h
	w.cluster()
	inside := 0
	for at, ok := w.ranges.seek(0, 0); ok; at, ok = w.ranges.next(at) {
		r := w.rslab[w.ranges.at(at).v]
		var g *Segment
		if n := len(h.initial); n > 0 && r.exp {
			if last := &h.initial[n-1]; last.Expandable && last.Addr+uint64(last.Size) == r.addr && last.Stream == r.stream && last.Pool == r.pool && last.Small == r.small {
				g = last
			}
		}
		if g == nil {
			h.initial = append(h.initial, Segment{Addr: r.addr, Stream: r.stream, Pool: r.pool, Small: r.small, Expandable: r.exp})
			g = &h.initial[len(h.initial)-1]
		}
		g.Size += r.size
		h.count.initReserved += r.size
	}
	for i := range h.initial {
		inside += w.fill(&h.initial[i])
	}
	h.count.orphans += w.live.n - inside
}

// fill tiles a segment with the blocks in use and what is free between them.
func (w *walk) fill(g *Segment) int {
	h := w.h
	end := g.Addr + uint64(g.Size)
	next := g.Addr
	n := 0
	for at, ok := w.live.seek(g.Addr, 0); ok && w.live.at(at).a < end; at, ok = w.live.next(at) {
		b := &w.lslab[w.live.at(at).v]
		n++
		size := w.sizeOf(b, g)
		if b.addr < next || size <= 0 {
			h.count.squeezed++
			continue
		}
		if b.addr > next {
			g.Blocks = append(g.Blocks, Piece{Addr: next, Size: int64(b.addr - next)})
		}
		g.Blocks = append(g.Blocks, Piece{Addr: b.addr, Size: size, Requested: min(b.requested, size), State: b.state})
		h.count.initBlocks++
		h.count.initActive += size
		next = b.addr + uint64(size)
	}
	if next < end {
		g.Blocks = append(g.Blocks, Piece{Addr: next, Size: int64(end - next)})
	}
	return n
}

// sizeOf is the size of a block that was there before the trace. Where the snapshot
// does not state it, the block was freed in the trace, and its size is what was asked
// for, rounded, or more: up to the next block, where the rest would not have been
// split off. In the large pool a free block is never 1 MiB or less, so such a rest
// belongs to the block before it.
func (w *walk) sizeOf(b *memLive, g *Segment) int64 {
	end := min(b.end, g.Addr+uint64(g.Size))
	if b.addr >= end {
		return 0
	}
	most := int64(end - b.addr)
	if b.size > 0 {
		return min(b.size, most)
	}
	set := &w.h.set
	size := set.Round(b.requested)
	if size > most {
		w.h.count.squeezed++
		return most
	}
	switch {
	case g.Small || set.Expandable || g.Expandable:
		return size
	case size >= set.maxSplit() && most < size+set.nonSplit(), most-size <= smallMax:
		return most
	}
	w.h.count.guessed++
	return size
}

// cluster finds the reservations of expandable segments: ranges of one pool and
// stream with no other between them share one. It begins at the lowest range ever
// mapped in it; where it ends is not known.
func (w *walk) cluster() {
	h := w.h
	slices.SortFunc(w.seen, func(a, b memRange) int { return cmp.Compare(a.addr, b.addr) })
	type group struct{ first, last memRange }
	var groups []group
	for _, r := range w.seen {
		if n := len(groups); n > 0 && r.exp {
			l := &groups[n-1]
			if l.first.exp && l.first.stream == r.stream && l.first.pool == r.pool && l.first.small == r.small && r.addr-l.first.addr < reserveUnset {
				if r.addr+uint64(r.size) > l.last.addr+uint64(l.last.size) {
					l.last = r
				}
				continue
			}
		}
		groups = append(groups, group{r, r})
	}
	for i, g := range groups {
		if !g.first.exp {
			continue
		}
		limit := uint64(1 << 62)
		if i+1 < len(groups) {
			limit = groups[i+1].first.addr
		}
		page := h.set.page(g.first.small)
		want := max(uint64(reserveUnset), g.last.addr+uint64(g.last.size)-g.first.addr)
		size := int64(min(want, limit-g.first.addr)) / page * page
		res := Reservation{Base: g.first.addr, Size: size, Stream: g.first.stream, Pool: g.first.pool, Small: g.first.small}
		if w.rangesIn(res.Base, res.Base+uint64(size)) {
			h.reservations = append(h.reservations, res)
		}
	}
}

func (w *walk) rangesIn(lo, hi uint64) bool {
	at, ok := w.ranges.seek(lo, 0)
	return ok && w.ranges.at(at).a < hi
}

// assignSlots names the block that each event is about.
func (h *history) assignSlots() {
	h.slots = make([]int32, h.n)
	live := make(map[uint64]int32)
	var unused []int32
	take := func() int32 {
		if n := len(unused); n > 0 {
			s := unused[n-1]
			unused = unused[:n-1]
			return s
		}
		h.nSlots++
		return int32(h.nSlots - 1)
	}
	for i := range h.initial {
		for _, b := range h.initial[i].Blocks {
			if b.State != evidence.BlockInactive {
				s := take()
				live[b.Addr] = s
				h.initSlots = append(h.initSlots, initSlot{b.Addr, s})
			}
		}
	}
	for i, e := range h.trace.All() {
		h.slots[i] = -1
		switch e.Action {
		case evidence.MemAlloc:
			s, twice := live[e.Addr]
			if twice {
				h.count.doubleAlloc++
			} else {
				s = take()
				live[e.Addr] = s
			}
			h.slots[i] = s
		case evidence.MemFreeRequested:
			if s, ok := live[e.Addr]; ok {
				h.slots[i] = s
			} else {
				h.count.unknownFree++
			}
		case evidence.MemFreeCompleted, evidence.MemFree:
			if s, ok := live[e.Addr]; ok {
				h.slots[i] = s
				delete(live, e.Addr)
				unused = append(unused, s)
			} else {
				h.count.unknownFree++
			}
		}
	}
}

// poolAt is the pool of the alloc or oom entry i.
func (h *history) poolAt(i int) uint16 {
	if h.pools == nil {
		return 0
	}
	return h.pools[i]
}

// lastOf returns the last alloc or oom entry of each private pool.
func (h *history) lastOf() map[uint16]int {
	out := map[uint16]int{}
	for i, p := range h.pools {
		if p != 0 {
			out[p] = i
		}
	}
	return out
}

// otherPool is the pool that the failed request i may have been for beside pool: 1 a new
// private one, 2 the one of the alloc before it on its stream, 3 the default one.
func (h *history) otherPool(way, i int, pool uint16) uint16 {
	switch way {
	case 1:
		return uint16(min(len(h.snap.Pools), 1<<16-1))
	case 2:
		return h.poolBefore(i)
	case 3:
		return 0
	}
	return pool
}

// poolBefore is the pool of the last alloc before event i on the same stream.
func (h *history) poolBefore(i int) uint16 {
	stream := h.trace.At(i).Stream
	for k := i - 1; k >= 0; k-- {
		if b := h.trace.At(k); b.Action == evidence.MemAlloc && b.Stream == stream {
			return h.poolAt(k)
		}
	}
	return 0
}
