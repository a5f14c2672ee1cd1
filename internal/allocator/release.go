package allocator

import "github.com/inquest-dev/inquest/internal/evidence"

// Free begins to free a block (free, trace entry free_requested). Its memory can be
// used again only after Complete. It is not ok where b is not in use.
func (s *Sim) Free(b Block) bool {
	s.begin()
	x := s.live(b)
	if x == nil || x.state != used {
		return false
	}
	x.state = pending
	s.allocated -= x.size
	s.nWait++
	if len(s.waiting) > 2*s.nWait+64 {
		s.sweep()
	}
	s.waiting = append(s.waiting, b)
	return true
}

// sweep forgets those that are not waiting any more.
func (s *Sim) sweep() {
	kept := s.waiting[:0]
	for _, b := range s.waiting {
		if s.live(b) != nil {
			kept = append(kept, b)
		}
	}
	s.waiting = kept
}

// Complete ends a free (free_block, trace entry free_completed): the block joins the
// free ones beside it. A block that is still in use is freed first. It is not ok where
// b is dead.
func (s *Sim) Complete(b Block) bool {
	s.begin()
	x := s.live(b)
	if x == nil {
		return false
	}
	if x.state == used {
		s.allocated -= x.size
		s.nWait++
	}
	s.complete(b.id())
	return true
}

func (s *Sim) complete(id int32) {
	b := &s.blocks[id]
	s.nWait--
	s.active -= b.size
	s.requested -= b.requested
	b.gen++
	b.state = free
	s.cache(s.join(id, free))
}

// join merges a block, which is in no set, with those beside it that are in the given
// state, out of whose set it takes them (try_merge_blocks).
func (s *Sim) join(id int32, state uint8) int32 {
	rank := s.blocks[id].rank
	if p := s.blocks[id].prev; p >= 0 && s.blocks[p].state == state {
		s.remove(p)
		id = s.merge(p)
	}
	if n := s.blocks[id].next; n >= 0 && s.blocks[n].state == state {
		s.remove(n)
		s.merge(id)
	}
	if s.set.Version == Torch212 {
		s.blocks[id].rank = rank
	}
	return id
}

// remove takes a free or unmapped block out of its set.
func (s *Sim) remove(id int32) {
	b := &s.blocks[id]
	if b.state == unmapped {
		s.pools[b.pool].unmapped[b.stream].remove(b.addr, 0)
		return
	}
	s.uncache(id)
}

// merge joins a block with the next one, neither of them in a set, and returns it.
func (s *Sim) merge(id int32) int32 {
	b := &s.blocks[id]
	n := b.next
	up := &s.blocks[n]
	b.size += up.size
	b.next = up.next
	if up.next >= 0 {
		s.blocks[up.next].prev = id
	}
	s.drop(n)
	return id
}

// EmptyCache completes all pending frees and gives the driver back what it can
// (emptyCache).
func (s *Sim) EmptyCache() {
	s.begin()
	s.releaseAll()
}

// ReleasePool says that nothing uses a private pool any more, so that its cached
// memory can go back (releasePool). The pool is in use again once memory comes to it
// after it had none.
func (s *Sim) ReleasePool(id uint16) {
	s.begin()
	if id == 0 {
		return
	}
	s.pools[s.poolOf(id, false)].released = true
	s.poolOf(id, true)
}

// releaseAll is release_cached_blocks: pending frees, the large and the small default
// pool, then the private pools that nobody uses.
func (s *Sim) releaseAll() {
	for _, b := range s.waiting {
		if x := s.live(b); x != nil && x.state == pending {
			s.forced = append(s.forced, b)
			s.complete(b.id())
		}
	}
	s.waiting = s.waiting[:0]
	s.releasePool(poolIndex(0, false))
	s.releasePool(poolIndex(0, true))
	for n := int32(2); int(n) < len(s.pools); n += 2 {
		p := s.pools[n]
		if p == nil || !p.released {
			continue
		}
		s.releasePool(n + 1)
		s.releasePool(n)
		if p.reserved == 0 && s.pools[n+1].reserved == 0 {
			p.released = false
		}
	}
}

// releasePool is release_blocks: whole segments first, in the order of the free
// blocks, then the free pages of expandable ones.
func (s *Sim) releasePool(n int32) {
	if int(n) >= len(s.pools) || s.pools[n] == nil {
		return
	}
	p := s.pools[n]
	s.scratch = s.scratch[:0]
	for _, stream := range s.byHandle(p.free) {
		set := p.free[stream]
		for at, ok := set.seek(0, 0); ok; at, ok = set.next(at) {
			s.scratch = append(s.scratch, set.at(at).v)
		}
	}
	s.work += len(s.scratch)
	for _, id := range s.scratch {
		if s.whole(id) {
			s.releaseSegment(id)
		}
	}
	for _, id := range s.scratch {
		if b := &s.blocks[id]; b.state == free && b.res >= 0 {
			s.unmap(id)
		}
	}
}

// whole says whether a free block is a segment of its own.
func (s *Sim) whole(id int32) bool {
	b := &s.blocks[id]
	return b.state == free && b.res < 0 && b.prev < 0 && b.next < 0
}

// releaseSegment gives a segment that is one free block back to the driver
// (release_block).
func (s *Sim) releaseSegment(id int32) {
	b := &s.blocks[id]
	s.uncache(id)
	s.dropSpan(b.addr)
	s.reserved -= b.size
	s.pools[b.pool].reserved -= b.size
	s.event(evidence.MemSegmentFree, b.addr, b.size, id)
	s.drop(id)
}

// releaseOversize gives back cached blocks of at least max_split_size
// (release_available_cached_blocks): the smallest that is large enough, or else the
// largest ones until their sum is. It is not ok where that does not reach.
func (s *Sim) releaseOversize(pi int32, stream uint16, need int64) bool {
	ids, enough := s.oversize(pi, stream, need)
	for _, id := range ids {
		s.releaseSegment(id)
	}
	return enough
}

// oversize lists what releaseOversize gives back. The list holds until the next call.
func (s *Sim) oversize(pi int32, stream uint16, need int64) ([]int32, bool) {
	p := s.pools[pi]
	s.scratch = s.scratch[:0]
	if int(stream) >= len(p.free) || p.free[stream] == nil {
		return nil, false
	}
	set := p.free[stream]
	most := s.set.maxSplit()
	need = max(need, most)
	if at, ok := set.seek(uint64(need), 0); ok {
		if id := set.at(at).v; s.whole(id) {
			s.scratch = append(s.scratch, id)
		}
		return s.scratch, true
	}
	released := int64(0)
	for at, ok := set.last(); ok && released < need; at, ok = set.prev(at) {
		s.work++
		e := set.at(at)
		if int64(e.a) < most {
			break
		}
		if s.whole(e.v) { // others stay: expandable ones, or split under another setting
			released += int64(e.a)
			s.scratch = append(s.scratch, e.v)
		}
	}
	return s.scratch, released >= need
}

// collect gives back unsplit blocks of the large default pool that have not been
// wanted for long (garbage_collect_cached_blocks): again and again those of at least
// average age, until what is held is below the threshold.
func (s *Sim) collect() {
	threshold := int64(s.set.GCThreshold * float64(s.set.Limit))
	if s.reserved <= threshold {
		return
	}
	target := s.reserved - threshold
	p := s.pools[s.poolOf(0, false)]
	s.scratch = s.scratch[:0]
	var ages int64
	for _, stream := range s.byHandle(p.free) {
		set := p.free[stream]
		for at, ok := set.seek(0, 0); ok; at, ok = set.next(at) {
			s.work++
			if id := set.at(at).v; s.whole(id) {
				s.scratch = append(s.scratch, id)
				ages += p.searches - s.blocks[id].gcBase
			}
		}
	}
	left := s.scratch
	for reclaimed := int64(0); reclaimed < target && len(left) > 0; {
		average := float64(ages) / float64(len(left))
		kept := left[:0]
		for _, id := range left {
			age := p.searches - s.blocks[id].gcBase
			if float64(age) < average {
				kept = append(kept, id)
				continue
			}
			ages -= age
			reclaimed += s.blocks[id].size
			s.releaseSegment(id)
		}
		if len(kept) == len(left) {
			return
		}
		left = kept
	}
}

// Release gives one segment, or the pages of an expandable one, in [addr, addr+size)
// back whatever the rules say; it is not ok where they are not free or not there.
func (s *Sim) Release(addr uint64, size int64) bool {
	s.begin()
	at, ok := s.ranges.floor(addr, 0)
	if !ok {
		return false
	}
	id := s.spans[s.ranges.at(at).v].first
	if s.blocks[id].res < 0 {
		if !s.whole(id) || s.blocks[id].addr != addr || s.blocks[id].size != size {
			return false
		}
		s.releaseSegment(id)
		return true
	}
	for n := 0; id >= 0 && s.blocks[id].addr+uint64(s.blocks[id].size) <= addr; n++ {
		s.work++
		if id = s.blocks[id].next; n == 1<<16 {
			return false
		}
	}
	if id < 0 || s.blocks[id].state != free {
		return false
	}
	s.unmap(id)
	return len(s.events) > 0
}
