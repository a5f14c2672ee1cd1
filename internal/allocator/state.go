package allocator

import (
	"fmt"

	"github.com/inquest-dev/inquest/internal/evidence"
)

// A Segment is a range that is held from the driver: a segment, or one mapped run of
// an expandable one. Blocks tile it in the order of their addresses.
type Segment struct {
	Addr         uint64
	Size         int64
	Stream, Pool uint16
	Small        bool
	Expandable   bool
	Blocks       []Piece
}

// A Piece is one block of a Segment. State is evidence.BlockInactive, BlockActive or
// BlockPendingFree.
type Piece struct {
	Addr      uint64
	Size      int64
	Requested int64
	State     uint8
}

// A Reservation is the address space of one expandable segment.
type Reservation struct {
	Base         uint64
	Size         int64 // in whole pages
	Stream, Pool uint16
	Small        bool
}

// Load puts segments into an allocator that has none, and calls live, if it is not
// nil, for each block in use or pending. Expandable segments lie in one of the
// reservations. Overlapping segments and blocks that do not tile theirs are errors;
// what was loaded before stays.
func (s *Sim) Load(res []Reservation, segments []Segment, live func(addr uint64, b Block)) error {
	for _, r := range res {
		page := s.set.page(r.Small)
		if r.Size <= 0 || r.Size%page != 0 || !s.vacant(r.Base, r.Size) {
			return fmt.Errorf("load: the expandable segment at %#x overlaps another or is not whole pages", r.Base)
		}
		s.reserve(r.Base, r.Size, page, s.poolOf(r.Pool, r.Small), r.Stream)
	}
	for i := range segments {
		if err := s.load(&segments[i], live); err != nil {
			return err
		}
	}
	return nil
}

func (s *Sim) load(g *Segment, live func(addr uint64, b Block)) error {
	at := g.Addr
	for _, b := range g.Blocks {
		if b.Addr != at || b.Size <= 0 || b.Size > g.Size {
			return fmt.Errorf("load: the blocks of the segment at %#x do not tile it", g.Addr)
		}
		at += uint64(b.Size)
	}
	if g.Size <= 0 || at != g.Addr+uint64(g.Size) || g.Size > bytesMax-s.reserved {
		return fmt.Errorf("load: the blocks of the segment at %#x do not tile it", g.Addr)
	}
	var id int32
	if g.Expandable {
		if id = s.carve(g); id < 0 {
			return fmt.Errorf("load: the expandable segment at %#x has no address space", g.Addr)
		}
	} else {
		if !s.vacant(g.Addr, g.Size) {
			return fmt.Errorf("load: the segment at %#x overlaps another", g.Addr)
		}
		id = s.segment(g.Addr, g.Size, s.poolOf(g.Pool, g.Small), g.Stream)
	}
	for i, b := range g.Blocks {
		next := int32(-1)
		if i < len(g.Blocks)-1 {
			next = s.cut(id, b.Size)
		}
		s.loadBlock(id, b, live)
		id = next
	}
	return nil
}

// carve takes the range of g out of the unmapped part of its reservation.
func (s *Sim) carve(g *Segment) int32 {
	set := setOf(&s.pools[s.poolOf(g.Pool, g.Small)].unmapped, g.Stream)
	at, ok := set.floor(g.Addr, 0)
	if !ok {
		return -1
	}
	id := set.at(at).v
	if g.Addr+uint64(g.Size) > s.blocks[id].addr+uint64(s.blocks[id].size) {
		return -1
	}
	if low := g.Addr - s.blocks[id].addr; low > 0 {
		id = s.cut(id, int64(low))
	} else {
		set.remove(g.Addr, 0)
	}
	if s.blocks[id].size > g.Size {
		up := s.cut(id, g.Size)
		set.insert(s.blocks[up].addr, 0, up)
	}
	s.reserved += g.Size
	s.pools[s.blocks[id].pool].reserved += g.Size
	return id
}

func (s *Sim) loadBlock(id int32, p Piece, live func(addr uint64, b Block)) {
	b := &s.blocks[id]
	if p.State == evidence.BlockInactive {
		b.state = free
		if n := b.prev; n >= 0 && s.blocks[n].state == free {
			s.uncache(n)
			id = s.merge(n)
		}
		s.cache(id)
		return
	}
	b.requested = p.Requested
	b.state = used
	name := Block(b.gen)<<32 | Block(uint32(id))
	s.active += b.size
	s.requested += b.requested
	if p.State == evidence.BlockPendingFree {
		b.state = pending
		s.nWait++
		s.waiting = append(s.waiting, name)
	} else {
		s.allocated += b.size
	}
	if live != nil {
		live(p.Addr, name)
	}
}

// Segments returns what is held from the driver, by address, with its blocks.
func (s *Sim) Segments() []Segment {
	var out []Segment
	for at, ok := s.ranges.seek(0, 0); ok; at, ok = s.ranges.next(at) {
		open := false
		for id := s.spans[s.ranges.at(at).v].first; id >= 0; id = s.blocks[id].next {
			b := &s.blocks[id]
			if b.state == unmapped {
				open = false
				continue
			}
			if !open {
				p := s.pools[b.pool]
				out = append(out, Segment{Addr: b.addr, Stream: b.stream, Pool: p.id, Small: p.small, Expandable: b.res >= 0})
				open = true
			}
			g := &out[len(out)-1]
			g.Size += b.size
			p := Piece{Addr: b.addr, Size: b.size, State: stateOf(b.state)}
			if b.state != free {
				p.Requested = b.requested
			}
			g.Blocks = append(g.Blocks, p)
		}
	}
	return out
}

func stateOf(state uint8) uint8 {
	switch state {
	case used:
		return evidence.BlockActive
	case pending:
		return evidence.BlockPendingFree
	}
	return evidence.BlockInactive
}

// Check looks for a broken invariant and says which: blocks tile their segments and
// do not overlap, neighbours that are free are merged, every free block stands in its
// set, the counters are the sums.
func (s *Sim) Check() error {
	var reserved, allocated, active, requested int64
	nFree, nUnmapped, n := 0, 0, 0
	end := uint64(0)
	for at, ok := s.ranges.seek(0, 0); ok; at, ok = s.ranges.next(at) {
		r := s.spans[s.ranges.at(at).v]
		if r.base < end {
			return fmt.Errorf("the segment at %#x overlaps the one before it", r.base)
		}
		end = r.base
		prev := int32(-1)
		for id := r.first; id >= 0; id = s.blocks[id].next {
			b := &s.blocks[id]
			n++
			if b.addr != end || b.size <= 0 || b.prev != prev {
				return fmt.Errorf("the block at %#x does not follow the one before it, which ends at %#x", b.addr, end)
			}
			if prev >= 0 && s.blocks[prev].state == b.state && (b.state == free || b.state == unmapped) {
				return fmt.Errorf("the blocks that meet at %#x are not merged", b.addr)
			}
			p := s.pools[b.pool]
			var got int32
			var found bool
			switch b.state {
			case free:
				nFree++
				got, found = setOf(&p.free, b.stream).get(uint64(b.size), b.rank)
			case unmapped:
				nUnmapped++
				got, found = setOf(&p.unmapped, b.stream).get(b.addr, 0)
			case used:
				allocated += b.size
				fallthrough
			case pending:
				active += b.size
				requested += b.requested
				got, found = id, true
			}
			if !found || got != id {
				return fmt.Errorf("the block at %#x is not in its set", b.addr)
			}
			if b.state != unmapped {
				reserved += b.size
			}
			end += uint64(b.size)
			prev = id
		}
		if end != r.base+uint64(r.size) {
			return fmt.Errorf("the segment at %#x ends at %#x, its blocks at %#x", r.base, r.base+uint64(r.size), end)
		}
	}
	if n != len(s.blocks)-len(s.unused) {
		return fmt.Errorf("%d blocks are in segments, %d exist", n, len(s.blocks)-len(s.unused))
	}
	for _, p := range s.pools {
		if p == nil {
			continue
		}
		for i := range p.free {
			if p.free[i] != nil {
				nFree -= p.free[i].n
			}
		}
		for i := range p.unmapped {
			if p.unmapped[i] != nil {
				nUnmapped -= p.unmapped[i].n
			}
		}
	}
	switch {
	case nFree != 0 || nUnmapped != 0:
		return fmt.Errorf("the sets hold blocks that are not free: %d, %d too few", nFree, nUnmapped)
	case reserved != s.reserved || allocated != s.allocated || active != s.active || requested != s.requested:
		return fmt.Errorf("counters: reserved %d, allocated %d, active %d, requested %d; the sums are %d, %d, %d, %d",
			s.reserved, s.allocated, s.active, s.requested, reserved, allocated, active, requested)
	}
	return nil
}
