package allocmodel

import (
	"slices"

	"github.com/inquest-dev/inquest/internal/evidence"
)

// newMemory gets a block of size bytes from the driver: a segment, or pages mapped into an
// expandable one. It returns nil if there is no room.
func (m *Model) newMemory(p *pool, size int64, stream uint64, stack uint32) *block {
	ask := Request(size)
	if m.dev.Limit > 0 && m.total+ask > m.dev.Limit {
		return nil
	}
	if m.set.Expandable {
		return m.expand(p, size, stream, stack)
	}
	if ask > m.deviceFree() {
		return nil
	}
	s := m.newSegment(segment{pool: p, stream: stream, stack: stack})
	b := m.newBlock(block{addr: m.place(ask), size: ask, seg: s, mapped: true, bornAt: p.lookups})
	s.blocks = []*block{b}
	m.segs = append(m.segs, s)
	m.total += ask
	m.recordSegment(evidence.MemSegmentAlloc, s, b.addr, ask, stack)
	return b
}

// place chooses the addresses of size bytes.
func (m *Model) place(size int64) uint64 {
	switch m.dev.Place {
	case Descending:
		m.low -= uint64(size)
		return m.low
	case FirstFit:
		at := uint64(baseAddr)
		for moved := true; moved; {
			moved = false
			for _, s := range m.segs {
				if end := s.base() + uint64(s.bytes()); s.base() < at+uint64(size) && at < end {
					at, moved = end, true
				}
			}
		}
		return at
	}
	at := m.next
	m.next += uint64(size)
	return at
}

// expand finds room in the addresses of p's reservations and maps what is not mapped of it. What was mapped
// before a page was refused stays mapped.
func (m *Model) expand(p *pool, size int64, stream uint64, stack uint32) *block {
	c := m.roomIn(p, size, stream)
	if !c.mapped {
		if !m.mapPages(c, min(c.size, size), stack) {
			return nil
		}
	}
	for c.size < size {
		i := slices.Index(c.seg.blocks, c)
		if i+1 == len(c.seg.blocks) {
			return nil
		}
		next := c.seg.blocks[i+1]
		if !m.mapPages(next, min(size-c.size, next.size), stack) {
			return nil
		}
		c = next // it took the mapped one before it in
	}
	return c
}

// roomIn returns the first of a run of free or unmapped blocks with size bytes of
// addresses: the unmapped block of lowest address with enough, or the free one before it. If there is
// none it reserves 9/8 of the device's memory in addresses.
func (m *Model) roomIn(p *pool, size int64, stream uint64) *block {
	var unmapped []*block
	for _, s := range m.segs {
		if s.pool == p && s.stream == stream && s.expandable {
			for _, b := range s.blocks {
				if !b.mapped {
					unmapped = append(unmapped, b)
				}
			}
		}
	}
	slices.SortFunc(unmapped, func(a, b *block) int {
		if a.addr < b.addr {
			return -1
		}
		return 1
	})
	for _, b := range unmapped {
		all := b.seg.blocks
		first := slices.Index(all, b)
		if first > 0 && all[first-1].free() {
			first--
		}
		room := int64(0)
		for i := first; i < len(all) && all[i].free() && room < size; i++ {
			room += all[i].size
		}
		if room >= size {
			return all[first]
		}
	}
	s := m.newSegment(segment{pool: p, stream: stream, expandable: true})
	span := m.dev.Capacity + m.dev.Capacity/8
	span = (span + s.page() - 1) / s.page() * s.page()
	b := m.newBlock(block{addr: m.place(span), size: span, seg: s})
	s.blocks = []*block{b}
	m.segs = append(m.segs, s)
	return b
}

// mapPages maps the whole pages that hold the first size bytes of b, all or none.
func (m *Model) mapPages(b *block, size int64, stack uint32) bool {
	page := b.seg.page()
	n := (size + page - 1) / page * page
	if n > m.deviceFree() {
		return false
	}
	if n < b.size {
		i := slices.Index(b.seg.blocks, b)
		rest := m.newBlock(block{addr: b.addr + uint64(n), size: b.size - n, seg: b.seg})
		b.seg.blocks = slices.Insert(b.seg.blocks, i+1, rest)
		b.size = n
	}
	at := b.addr
	b.mapped = true
	m.join(b)
	b.bornAt = b.seg.pool.lookups
	m.total += n
	if b.seg.blocks[0] == b && b.seg.stack == 0 {
		b.seg.stack = stack
	}
	m.recordSegment(evidence.MemSegmentMap, b.seg, at, n, stack)
	return true
}

// unmapPages unmaps the pages that lie in b whole.
func (m *Model) unmapPages(b *block, stack uint32) {
	page := uint64(b.seg.page())
	base := b.seg.base()
	from := base + (b.addr-base+page-1)/page*page
	to := base + (b.addr+uint64(b.size)-base)/page*page
	if from >= to {
		return
	}
	s := b.seg
	i := slices.Index(s.blocks, b)
	if from > b.addr {
		before := m.newBlock(block{addr: b.addr, size: int64(from - b.addr), seg: s, mapped: true, bornAt: s.pool.lookups})
		s.blocks = slices.Insert(s.blocks, i, before)
		i++
	}
	if end := b.addr + uint64(b.size); end > to {
		after := m.newBlock(block{addr: to, size: int64(end - to), seg: s, mapped: true, bornAt: s.pool.lookups})
		s.blocks = slices.Insert(s.blocks, i+1, after)
	}
	b.addr, b.size, b.mapped = from, int64(to-from), false
	m.total -= b.size
	at, n := b.addr, b.size
	m.join(b)
	m.recordSegment(evidence.MemSegmentUnmap, s, at, n, stack)
}

// releaseOversize is the first resort with a max_split_size: the smallest free block that is
// oversize and enough for the request is given back, or if none is, the largest ones until
// they add up to it. It reports whether they did.
func (m *Model) releaseOversize(p *pool, size int64, stream uint64, stack uint32) bool {
	need := max(size, m.set.MaxSplit)
	if c := m.freeBlocks(p, stream, need); len(c) > 0 && !c[0].seg.expandable && len(c[0].seg.blocks) == 1 {
		m.release(c[0], stack)
		return true
	}
	released := int64(0)
	all := m.freeBlocks(p, stream, 0)
	for _, b := range slices.Backward(all) {
		if b.size < m.set.MaxSplit || released >= need {
			break
		}
		if b.size >= need || b.seg.expandable || len(b.seg.blocks) != 1 {
			continue
		}
		released += b.size
		m.release(b, stack)
	}
	return released >= need
}

// releaseCached waits for the streams and gives back whatever is whole and free: segments of
// the large and the small pool, pages of expandable ones, then those of private pools that
// nothing refers to.
func (m *Model) releaseCached(stack uint32) {
	m.waitForMarks(stack)
	m.releaseFree(m.pools[1], stack)
	m.releaseFree(m.pools[0], stack)
	for _, p := range m.pools[2:] {
		if p.dropped {
			m.releaseFree(p, stack)
		}
	}
}

func (m *Model) releaseFree(p *pool, stack uint32) {
	var streams []uint64
	for _, s := range m.segs {
		if s.pool == p && !slices.Contains(streams, s.stream) {
			streams = append(streams, s.stream)
		}
	}
	slices.Sort(streams)
	var pages []*block
	for _, st := range streams {
		for _, b := range m.freeBlocks(p, st, 0) {
			if b.seg.expandable {
				pages = append(pages, b)
			} else if len(b.seg.blocks) == 1 {
				m.release(b, stack)
			}
		}
	}
	for _, b := range pages {
		m.unmapPages(b, stack)
		if len(b.seg.blocks) == 1 {
			m.segs = slices.DeleteFunc(m.segs, func(s *segment) bool { return s == b.seg })
		}
	}
}

// release gives the segment of b back.
func (m *Model) release(b *block, stack uint32) {
	if len(b.seg.blocks) != 1 {
		panic("allocmodel: a segment in use is given back")
	}
	m.total -= b.size
	m.segs = slices.DeleteFunc(m.segs, func(s *segment) bool { return s == b.seg })
	m.recordSegment(evidence.MemSegmentFree, b.seg, b.addr, b.size, stack)
}

// collect is the garbage collection: of the whole free segments of the default large
// pool, those that no lookup of the pool has used for at least the average time are given back, and so
// on until enough is.
func (m *Model) collect(stack uint32) {
	threshold := int64(m.set.GCThreshold * float64(m.dev.Limit))
	if m.total <= threshold {
		return
	}
	target, done := m.total-threshold, int64(0)
	for done < target {
		var whole []*block
		ages := 0
		p := m.pools[1]
		var streams []uint64
		for _, s := range m.segs {
			if s.pool == p && !slices.Contains(streams, s.stream) {
				streams = append(streams, s.stream)
			}
		}
		slices.Sort(streams)
		for _, st := range streams {
			for _, b := range m.freeBlocks(p, st, 0) {
				if len(b.seg.blocks) == 1 && !b.seg.expandable {
					whole = append(whole, b)
					ages += p.lookups - b.bornAt
				}
			}
		}
		if len(whole) == 0 {
			return
		}
		average := float64(ages) / float64(len(whole))
		for _, b := range whole {
			if float64(p.lookups-b.bornAt) >= average {
				done += b.size
				m.release(b, stack)
			}
		}
	}
}

func (m *Model) recordSegment(a evidence.MemAction, s *segment, addr uint64, size int64, stack uint32) {
	if stack == 0 {
		stack = s.stack
	}
	m.record(evidence.MemEvent{Action: a, Addr: addr, Size: size, Stream: m.stream(s.stream), Pool: m.poolIndex(s.pool), Stack: stack})
}

// State lists what a snapshot would show now: segments by address, with their blocks.
func (m *Model) State() ([]evidence.MemSegment, []evidence.MemBlock) {
	type run struct {
		seg    *segment
		blocks []*block
	}
	var runs []run
	for _, s := range m.segs {
		open := false
		for _, b := range s.blocks {
			switch {
			case !b.mapped:
				open = false
				continue
			case !open:
				runs = append(runs, run{seg: s})
				open = true
			}
			r := &runs[len(runs)-1]
			r.blocks = append(r.blocks, b)
		}
	}
	slices.SortFunc(runs, func(a, b run) int {
		if a.blocks[0].addr < b.blocks[0].addr {
			return -1
		}
		return 1
	})
	var segs []evidence.MemSegment
	var blocks []evidence.MemBlock
	for _, r := range runs {
		s := evidence.MemSegment{Device: m.dev.Index, Addr: r.blocks[0].addr, Stream: m.stream(r.seg.stream), Pool: m.poolIndex(r.seg.pool), Small: r.seg.pool.small, Expandable: r.seg.expandable, First: len(blocks), N: len(r.blocks)}
		if r.blocks[0] == r.seg.blocks[0] {
			s.Stack = r.seg.stack
		}
		for _, b := range r.blocks {
			k := evidence.MemBlock{Addr: b.addr, Size: b.size, Requested: b.requested, Stack: b.stack}
			s.Total += b.size
			if b.allocated {
				k.State = evidence.BlockActive
				s.Allocated += b.size
			} else if !b.free() {
				k.State = evidence.BlockPendingFree
			}
			if !b.free() {
				s.Active += b.size
				s.Requested += b.requested
			}
			blocks = append(blocks, k)
		}
		segs = append(segs, s)
	}
	return segs, blocks
}
