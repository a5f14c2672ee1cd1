package allocator

// wouldFit says whether a cached block serves a request of need bytes, rounded.
func (s *Sim) wouldFit(need int64, stream, poolID uint16) bool {
	_, ok := s.wouldFitAt(need, stream, poolID)
	return ok
}

// wouldFitAt returns the address of the cached block that serves a request.
func (s *Sim) wouldFitAt(need int64, stream, poolID uint16) (uint64, bool) {
	pi := s.poolOf(poolID, need <= smallMax)
	p := s.pools[pi]
	searches := p.searches
	id := s.fit(pi, stream, need)
	p.searches = searches
	if id < 0 {
		return 0, false
	}
	b := &s.blocks[id]
	p.free[b.stream].insert(uint64(b.size), b.rank, id)
	return b.addr, true
}

// wouldRefuse says whether the driver, or the limit, refuses new memory for a request
// of need bytes that no cached block fits.
func (s *Sim) wouldRefuse(need int64, stream, poolID uint16) bool {
	size := s.set.SegmentSize(need)
	if s.set.Limit > 0 && s.reserved+size > s.set.Limit {
		return true
	}
	if s.set.Expandable {
		size = s.wouldMap(need, stream, poolID)
	}
	return s.reserved+size > s.capacity
}

// wouldMap returns how many bytes an expandable segment would map for a request.
func (s *Sim) wouldMap(need int64, stream, poolID uint16) int64 {
	p := s.pools[s.poolOf(poolID, need <= smallMax)]
	page := s.set.page(p.small)
	pages := func(n int64) int64 { return (n + page - 1) / page * page }
	id := s.growable(p, stream, need)
	if id < 0 {
		return pages(need)
	}
	mapped := int64(0)
	for left := need; left > 0; id = s.blocks[id].next {
		b := &s.blocks[id]
		if b.state == unmapped {
			mapped += min(pages(min(left, b.size)), b.size)
		}
		left -= b.size
	}
	return mapped
}

// releasable counts the segments, and runs of whole pages, that a release of the
// cache would give back.
func (s *Sim) releasable() int {
	n := 0
	for _, p := range s.pools {
		if p == nil || p.id != 0 && !s.isReleased(p.id) {
			continue
		}
		for _, set := range p.free {
			if set == nil {
				continue
			}
			for at, ok := set.seek(0, 0); ok; at, ok = set.next(at) {
				s.work++
				id := set.at(at).v
				if s.whole(id) || s.pagesIn(id) {
					n++
				}
			}
		}
	}
	return n
}

func (s *Sim) isReleased(id uint16) bool {
	n := poolIndex(id, false)
	return int(n) < len(s.pools) && s.pools[n] != nil && s.pools[n].released
}

func (s *Sim) pagesIn(id int32) bool {
	b := &s.blocks[id]
	if b.res < 0 {
		return false
	}
	r := &s.spans[b.res]
	from := (int64(b.addr-r.base) + r.page - 1) / r.page
	return from < (int64(b.addr-r.base)+b.size)/r.page
}

// poolAt returns the pool of the segment that holds addr, 0 where there is none.
func (s *Sim) poolAt(addr uint64) uint16 {
	at, ok := s.ranges.floor(addr, 0)
	if !ok {
		return 0
	}
	r := &s.spans[s.ranges.at(at).v]
	if addr-r.base >= uint64(r.size) {
		return 0
	}
	return s.pools[s.blocks[r.first].pool].id
}

// holds says whether addr lies in a segment or reservation.
func (s *Sim) holds(addr uint64) bool { return !s.vacant(addr, 1) }

// largestFree is the largest cached block of a stream's pool for a request of need
// bytes.
func (s *Sim) largestFree(need int64, stream, poolID uint16) int64 {
	p := s.pools[s.poolOf(poolID, need <= smallMax)]
	if int(stream) >= len(p.free) || p.free[stream] == nil {
		return 0
	}
	at, ok := p.free[stream].last()
	if !ok {
		return 0
	}
	return int64(p.free[stream].at(at).a)
}
