package allocator

import "github.com/inquest-dev/inquest/internal/evidence"

// expand is try_allocate_expandable_block: it maps as much as a request needs at the
// lowest place of the pool's address space that has room.
func (s *Sim) expand(pi int32, stream uint16, need int64) int32 {
	id := s.findExpandable(pi, stream, need)
	if id < 0 {
		return -1
	}
	if s.blocks[id].state == unmapped {
		if id = s.mapBlock(id, min(s.blocks[id].size, need)); id < 0 {
			return -1
		}
	}
	for s.blocks[id].size < need {
		next := s.blocks[id].next
		if next < 0 || s.blocks[next].state != unmapped {
			return -1
		}
		want := min(need-s.blocks[id].size, s.blocks[next].size)
		if id = s.mapBlock(next, want); id < 0 {
			return -1
		}
	}
	s.uncache(id)
	return id
}

// growable is the block with the lowest address at which need bytes of p's reservations
// can be had: an unmapped one that has room together with a free one before it and free or
// unmapped ones after it. It is -1 where there is none.
func (s *Sim) growable(p *pool, stream uint16, need int64) int32 {
	if int(stream) >= len(p.unmapped) || p.unmapped[stream] == nil {
		return -1
	}
	set := p.unmapped[stream]
	for at, ok := set.seek(0, 0); ok; at, ok = set.next(at) {
		s.work++
		id := set.at(at).v
		if prev := s.blocks[id].prev; prev >= 0 && s.blocks[prev].state == free {
			id = prev
		}
		if s.hasRoom(id, need) {
			return id
		}
	}
	return -1
}

// findExpandable is find_expandable_block: what is growable, and where there is none, a
// new reservation.
func (s *Sim) findExpandable(pi int32, stream uint16, need int64) int32 {
	p := s.pools[pi]
	if id := s.growable(p, stream, need); id >= 0 {
		return id
	}
	page := s.set.page(p.small)
	size := int64(reserveUnset)
	if s.set.Device > 0 {
		size = min(s.set.Device, bytesMax/2) // 1 1/8 of the device, in whole pages
		size += size / 8
	}
	size = (size + page - 1) / page * page
	base, got, ok := s.place.Reserve(size, page, stream, p.id, p.small)
	if !ok || !s.giveWay(base, page) {
		return -1
	}
	if at, ok := s.ranges.seek(base, 0); ok {
		got = int64(min(uint64(max(got, 0)), s.ranges.at(at).a-base))
	}
	got -= got % page
	if got <= 0 || !s.vacant(base, got) || s.ranks > 1<<62 {
		return -1
	}
	id := s.reserve(base, got, page, pi, stream)
	if s.blocks[id].size < need {
		return -1
	}
	return id
}

// giveWay says whether the range is vacant. Where an expandable segment's address
// space is only taken to reach that far, and has no memory there, it ends before.
func (s *Sim) giveWay(addr uint64, size int64) bool {
	if s.vacant(addr, size) {
		return true
	}
	at, ok := s.ranges.floor(addr, 0)
	if !ok || s.ranges.at(at).a == addr {
		return false
	}
	n := s.ranges.at(at).v
	r := &s.spans[n]
	end := r.base + uint64(r.size)
	keep := int64(addr-r.base) / max(r.page, 1) * r.page
	if r.page == 0 || keep <= 0 || keep >= r.size {
		return s.vacant(addr, size)
	}
	id := s.lastOf(n)
	if id < 0 || s.blocks[id].addr >= r.base+uint64(keep) {
		return false
	}
	b := &s.blocks[id]
	b.size -= int64(end - (r.base + uint64(keep)))
	r.size = keep
	return s.vacant(addr, size)
}

// lastOf returns the last block of an expandable segment where it has no memory, or -1.
func (s *Sim) lastOf(n int32) int32 {
	b := &s.blocks[s.spans[n].first]
	p := s.pools[b.pool]
	if int(b.stream) >= len(p.unmapped) || p.unmapped[b.stream] == nil {
		return -1
	}
	set := p.unmapped[b.stream]
	at, ok := set.floor(s.spans[n].base+uint64(s.spans[n].size)-1, 0)
	if !ok {
		return -1
	}
	id := set.at(at).v
	if s.blocks[id].res != n || s.blocks[id].next >= 0 {
		return -1
	}
	return id
}

func (s *Sim) hasRoom(id int32, need int64) bool {
	for n := int64(0); id >= 0; id = s.blocks[id].next {
		s.work++
		b := &s.blocks[id]
		if b.state != free && b.state != unmapped {
			return false
		}
		if n += b.size; n >= need {
			return true
		}
	}
	return false
}

// reserve makes an expandable segment without memory.
func (s *Sim) reserve(base uint64, size, page int64, pi int32, stream uint16) int32 {
	id := s.newBlock(block{addr: base, size: size, prev: -1, next: -1, pool: pi, stream: stream, state: unmapped, rank: s.ranked(base, size)})
	s.blocks[id].res = s.newSpan(span{base: base, size: size, page: page, first: id})
	setOf(&s.pools[pi].unmapped, stream).insert(base, 0, id)
	return id
}

// mapBlock maps the first size bytes of an unmapped block, up to the end of a page,
// and joins them with the free blocks beside them (map_block). It returns the free
// block, or -1 where the driver refuses, in which case nothing was mapped.
func (s *Sim) mapBlock(id int32, size int64) int32 {
	b := &s.blocks[id]
	r := &s.spans[b.res]
	end := int64(b.addr-r.base) + size
	got := min((end+r.page-1)/r.page*r.page-int64(b.addr-r.base), b.size)
	s.Refused = Refusal{Need: got, Reserved: s.reserved}
	if s.reserved+got > s.capacity {
		return -1
	}
	unmappedSet := s.pools[b.pool].unmapped[b.stream]
	unmappedSet.remove(b.addr, 0)
	if got < b.size {
		up := s.cutHigh(id, got)
		unmappedSet.insert(s.blocks[up].addr, 0, up)
		b = &s.blocks[id]
	}
	addr := b.addr
	b.state = free
	s.reserved += got
	s.pools[b.pool].reserved += got
	id = s.join(id, free)
	s.cache(id)
	s.event(evidence.MemSegmentMap, addr, got, id)
	return id
}

// cutHigh is cut where the upper piece is the new block.
func (s *Sim) cutHigh(id int32, at int64) int32 {
	up := s.cut(id, at)
	if s.set.Version == Torch212 {
		s.blocks[id].rank, s.blocks[up].rank = s.blocks[up].rank, s.blocks[id].rank
	}
	return up
}

// unmap gives the whole pages inside a free block back (unmap_block); what is left
// before and after them stays free. A reservation without memory is dropped.
func (s *Sim) unmap(id int32) {
	b := s.blocks[id]
	r := s.spans[b.res]
	from := (int64(b.addr-r.base) + r.page - 1) / r.page * r.page
	to := (int64(b.addr-r.base) + b.size) / r.page * r.page
	if from >= to {
		return
	}
	s.uncache(id)
	addr := r.base + uint64(from)
	if addr > b.addr {
		up := s.cut(id, int64(addr-b.addr))
		s.cache(id)
		id = up
	}
	if rest := b.addr + uint64(b.size) - (r.base + uint64(to)); rest > 0 {
		s.cache(s.cutHigh(id, to-from))
	}
	s.reserved -= to - from
	p := s.pools[b.pool]
	p.reserved -= to - from
	s.blocks[id].state = unmapped
	set := setOf(&p.unmapped, b.stream)
	id = s.join(id, unmapped)
	s.event(evidence.MemSegmentUnmap, addr, to-from, id)
	if m := &s.blocks[id]; m.prev < 0 && m.next < 0 {
		s.dropSpan(m.addr)
		s.drop(id)
		return
	}
	set.insert(s.blocks[id].addr, 0, id)
}
