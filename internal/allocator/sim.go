package allocator

import (
	"cmp"
	"slices"

	"github.com/inquest-dev/inquest/internal/evidence"
)

// A Block names a block in use. It is dead once its free is complete; a dead name is
// never given out again for another block until 2^32 have used its place.
type Block uint64

func (b Block) id() int32   { return int32(uint32(b)) }
func (b Block) gen() uint32 { return uint32(b >> 32) }

// States of a piece of address space.
const (
	free     uint8 = iota // cached
	used                  // allocated
	pending               // freed, waiting for other streams
	unmapped              // address space of an expandable segment without memory
	dead                  // a place in the slab that is not in use
)

// A block is one piece of a segment or reservation. The lower of two pieces keeps its
// place when they are split or merged, so that the first piece of a segment is the
// same as long as the segment lives.
type block struct {
	addr       uint64
	size       int64
	requested  int64
	gcBase     int64  // searches of its pool before it became free
	rank       uint64 // among free blocks of its size the least is taken first, see ranked
	prev, next int32  // -1: none
	pool       int32
	res        int32 // span of an expandable segment, else -1
	gen        uint32
	stream     uint16
	state      uint8
}

// A pool holds the free blocks of one size class of the default pools or of a
// private pool, by stream.
type pool struct {
	id       uint16
	small    bool
	free     []*index // by stream, of (size, rank)
	unmapped []*index // by stream, of (address, 0)
	searches int64    // counted only where garbage may be collected
	reserved int64
	released bool // a private pool that nobody uses any more
}

// A span is a segment, or the address space of one expandable segment.
type span struct {
	base  uint64
	size  int64
	page  int64 // of an expandable segment
	first int32
}

// A SegmentEvent is what the allocator did with the driver: Action is MemSegmentAlloc,
// MemSegmentFree, MemSegmentMap or MemSegmentUnmap.
type SegmentEvent struct {
	Action evidence.MemAction
	Addr   uint64
	Size   int64
	Stream uint16
	Pool   uint16
	Small  bool
}

// A Placer says where new memory lies: addresses decide which of several equally good
// blocks is taken.
type Placer interface {
	// Segment returns the address of a new segment. It is not ok where none is left.
	Segment(size int64, stream, pool uint16, small bool) (addr uint64, ok bool)
	// Reserve returns the address space of a new expandable segment of at least size
	// bytes; page is its unit.
	Reserve(size, page int64, stream, pool uint16, small bool) (base uint64, got int64, ok bool)
}

// A Refusal is the last request that the driver or the limit refused.
type Refusal struct {
	Need     int64 // bytes asked of the driver
	Reserved int64 // held when it refused for good
}

// A Sim is one device's caching allocator. Operations follow DeviceCachingAllocator
// of c10/cuda/CUDACachingAllocator.cpp; none of them panics, whatever the order in
// which they are called. A Sim serves one goroutine.
type Sim struct {
	set     Settings
	place   Placer
	streams []uint64 // raw handles
	// capacity is what the driver gives in all.
	capacity int64
	// Capturing forbids waiting for events and releasing the cache, as during the
	// capture of a CUDA graph.
	Capturing bool

	blocks  []block
	unused  []int32 // places in blocks
	pools   []*pool // by 2 * id + (1 for small)
	spans   []span
	noSpan  []int32 // places in spans that are not in use
	ranges  index   // spans by (address, 0)
	waiting []Block
	nWait   int

	events  []SegmentEvent
	forced  []Block
	scratch []int32

	reserved, allocated, active, requested int64

	Retries, OOMs int
	Refused       Refusal

	ranks uint64 // given out so far, see ranked

	refuse int // how many of the next attempts the driver refuses, whatever it has
	work   int // steps of those operations that take more with every block there is
}

// New returns an allocator without memory. streams are the raw handles by stream
// number; those beyond it have their number as handle. capacity is how many bytes the
// driver gives in all, 0 for no limit.
func New(set Settings, place Placer, streams []uint64, capacity int64) *Sim {
	s := &Sim{set: set, place: place, streams: streams}
	s.SetCapacity(capacity)
	return s
}

// SetCapacity changes what the driver gives in all; what is held already stays.
func (s *Sim) SetCapacity(bytes int64) {
	if bytes <= 0 || bytes > unlimited {
		bytes = unlimited
	}
	s.capacity = bytes
}

// allow is SetCapacity, where limited of a limit in place of the driver.
func (s *Sim) allow(bytes int64, limited bool) {
	s.set.Limit = 0
	if limited && bytes > 0 && bytes < unlimited {
		s.set.Limit, bytes = bytes, 0
	}
	s.SetCapacity(bytes)
}

// Set changes the settings, as _set_allocator_settings does.
func (s *Sim) Set(set Settings) { s.set = set }

// Reserved is what is held from the driver, in bytes.
func (s *Sim) Reserved() int64 { return s.reserved }

// Allocated is the size of the blocks in use, less those whose free is pending.
func (s *Sim) Allocated() int64 { return s.allocated }

// Active is Allocated and the blocks whose free is pending.
func (s *Sim) Active() int64 { return s.active }

// Requested is what was asked for of the active blocks.
func (s *Sim) Requested() int64 { return s.requested }

// Events returns what the last operation did with the driver, in order. The slice is
// used again by the next operation.
func (s *Sim) Events() []SegmentEvent { return s.events }

// Completed returns the blocks whose pending free the last operation completed of its
// own accord. The slice is used again by the next operation.
func (s *Sim) Completed() []Block { return s.forced }

// Addr returns where a live block lies, 0 for a dead one.
func (s *Sim) Addr(b Block) uint64 {
	if x := s.live(b); x != nil {
		return x.addr
	}
	return 0
}

// Size returns a live block's size in bytes, 0 for a dead one.
func (s *Sim) Size(b Block) int64 {
	if x := s.live(b); x != nil {
		return x.size
	}
	return 0
}

func (s *Sim) live(b Block) *block {
	id := b.id()
	if id < 0 || int(id) >= len(s.blocks) {
		return nil
	}
	x := &s.blocks[id]
	if x.gen != b.gen() || x.state != used && x.state != pending {
		return nil
	}
	return x
}

func (s *Sim) begin() {
	s.events = s.events[:0]
	s.forced = s.forced[:0]
}

// Malloc serves a request of size bytes on a stream, from a private pool or the
// default pools (0). It is not ok where memory ran out, which Refused describes.
//
//  1. best fit among the cached blocks
//  2. collect garbage, where a threshold and a limit are set
//  3. new memory
//  4. release cached oversize blocks and 3, where max_split_size is set
//  5. complete all pending frees, release the cache and 3
func (s *Sim) Malloc(size int64, stream, poolID uint16) (Block, bool) {
	s.begin()
	if size < 0 || size > bytesMax {
		s.OOMs++
		s.Refused = Refusal{Need: size, Reserved: s.reserved}
		return 0, false
	}
	need := s.set.Round(size)
	p := s.poolOf(poolID, need <= smallMax)
	id := s.fit(p, stream, need)
	if id < 0 {
		if s.set.GCThreshold > 0 && s.set.Limit > 0 {
			s.collect()
		}
		id = s.grow(p, stream, need)
	}
	if id < 0 && s.set.MaxSplit > 0 && s.releaseOversize(p, stream, need) {
		id = s.grow(p, stream, need)
	}
	if id < 0 && !s.Capturing {
		s.releaseAll()
		s.Retries++
		id = s.grow(p, stream, need)
	}
	if id < 0 {
		s.OOMs++
		return 0, false
	}
	return s.take(p, id, need, size), true
}

// MallocFlushed is Malloc from step 5 on: no cached block was found, and the driver
// refused. The order matters: frees that the flush completes are not searched for a
// block again.
func (s *Sim) MallocFlushed(size int64, stream, poolID uint16) (Block, bool) {
	s.begin()
	need := s.set.Round(min(max(size, 0), bytesMax))
	p := s.poolOf(poolID, need <= smallMax)
	s.releaseAll()
	s.Retries++
	id := s.grow(p, stream, need)
	if id < 0 {
		s.OOMs++
		return 0, false
	}
	return s.take(p, id, need, size), true
}

// poolIndex numbers pools.
func poolIndex(id uint16, small bool) int32 {
	n := int32(id) * 2
	if small {
		n++
	}
	return n
}

func (s *Sim) poolOf(id uint16, small bool) int32 {
	n := poolIndex(id, small)
	for int(n) >= len(s.pools) {
		s.pools = append(s.pools, nil)
	}
	if s.pools[n] == nil {
		s.pools[n] = &pool{id: id, small: small}
	}
	return n
}

func setOf(sets *[]*index, stream uint16) *index {
	for int(stream) >= len(*sets) {
		*sets = append(*sets, nil)
	}
	if (*sets)[stream] == nil {
		(*sets)[stream] = &index{}
	}
	return (*sets)[stream]
}

// fit takes the best cached block out of the pool and returns it, or -1
// (get_free_block): the smallest that is large enough, of several the one of the least
// rank.
func (s *Sim) fit(pi int32, stream uint16, need int64) int32 {
	p := s.pools[pi]
	if s.set.GCThreshold > 0 && s.set.Limit > 0 {
		p.searches++
	}
	if int(stream) >= len(p.free) || p.free[stream] == nil {
		return -1
	}
	set := p.free[stream]
	at, ok := set.seek(uint64(need), 0)
	if ok && s.blocks[set.at(at).v].res >= 0 {
		at, ok = s.fitExpandable(set, at)
	}
	if !ok {
		return -1
	}
	id := set.at(at).v
	size, most := s.blocks[id].size, s.set.maxSplit()
	if need < most && size >= most || need >= most && size >= need+s.set.nonSplit() {
		return -1
	}
	set.removeAt(at)
	return id
}

// fitExpandable goes on from a candidate in an expandable segment. Such a block
// counts as large as it could grow; where segments are not expandable any more, such
// blocks are passed over.
func (s *Sim) fitExpandable(set *index, at place) (place, bool) {
	if !s.set.Expandable {
		ok := true
		for ok && s.blocks[set.at(at).v].res >= 0 {
			s.work++
			at, ok = set.next(at)
		}
		return at, ok
	}
	for s.blocks[set.at(at).v].res >= 0 {
		next, ok := set.next(at)
		if !ok || s.room(set.at(next).v) >= s.room(set.at(at).v) {
			break
		}
		s.work++
		at = next
	}
	return at, true
}

func (s *Sim) room(id int32) int64 {
	b := &s.blocks[id]
	if b.next >= 0 && s.blocks[b.next].state == unmapped {
		return b.size + s.blocks[b.next].size
	}
	return b.size
}

// grow gets memory from the driver (alloc_block) and returns a block of at least need
// bytes that is in no set, or -1.
func (s *Sim) grow(pi int32, stream uint16, need int64) int32 {
	size := s.set.SegmentSize(need)
	s.Refused = Refusal{Need: size, Reserved: s.reserved}
	if s.refuse > 0 {
		s.refuse--
		return -1
	}
	if s.reserved > bytesMax-size || s.set.Limit > 0 && s.reserved+size > s.set.Limit {
		return -1
	}
	if s.set.Expandable {
		return s.expand(pi, stream, need)
	}
	if s.reserved+size > s.capacity {
		return -1
	}
	p := s.pools[pi]
	addr, ok := s.place.Segment(size, stream, p.id, p.small)
	if !ok || !s.giveWay(addr, size) || s.ranks > 1<<62 {
		return -1
	}
	id := s.segment(addr, size, pi, stream)
	s.event(evidence.MemSegmentAlloc, addr, size, id)
	return id
}

// segment makes a segment with one block, which is in no set.
func (s *Sim) segment(addr uint64, size int64, pi int32, stream uint16) int32 {
	id := s.newBlock(block{addr: addr, size: size, prev: -1, next: -1, pool: pi, res: -1, stream: stream, rank: s.ranked(addr, size)})
	s.newSpan(span{base: addr, size: size, first: id})
	s.reserved += size
	s.pools[pi].reserved += size
	return id
}

// vacant says whether no segment or reservation lies in the range.
func (s *Sim) vacant(addr uint64, size int64) bool {
	if size <= 0 || addr > addr+uint64(size)-1 {
		return false
	}
	at, ok := s.ranges.floor(addr+uint64(size)-1, 0)
	if !ok {
		return true
	}
	r := &s.spans[s.ranges.at(at).v]
	return r.base+uint64(r.size)-1 < addr
}

func (s *Sim) newSpan(r span) int32 {
	var n int32
	if k := len(s.noSpan); k > 0 {
		n = s.noSpan[k-1]
		s.noSpan = s.noSpan[:k-1]
		s.spans[n] = r
	} else {
		n = int32(len(s.spans))
		s.spans = append(s.spans, r)
	}
	s.ranges.insert(r.base, 0, n)
	return n
}

func (s *Sim) dropSpan(addr uint64) {
	if n, ok := s.ranges.remove(addr, 0); ok {
		s.noSpan = append(s.noSpan, n)
	}
}

func (s *Sim) newBlock(b block) int32 {
	if n := len(s.unused); n > 0 {
		id := s.unused[n-1]
		s.unused = s.unused[:n-1]
		b.gen = s.blocks[id].gen
		s.blocks[id] = b
		return id
	}
	b.gen = 1 // so that 0 names no block
	s.blocks = append(s.blocks, b)
	return int32(len(s.blocks) - 1)
}

func (s *Sim) drop(id int32) {
	b := &s.blocks[id]
	b.state = dead
	b.gen++
	s.unused = append(s.unused, id)
}

// take splits block id, which is in no set, and puts its low part into use
// (should_split, alloc_found_block).
func (s *Sim) take(pi, id int32, need, size int64) Block {
	p := s.pools[pi]
	b := &s.blocks[id]
	rest := b.size - need
	split := false
	if p.small || s.set.Expandable {
		split = rest >= minBlock
	} else {
		split = need < s.set.maxSplit() && rest > smallMax
	}
	if split {
		s.cut(id, need)
		s.cache(s.blocks[id].next)
		b = &s.blocks[id]
	}
	b.state = used
	b.requested = size
	s.allocated += b.size
	s.active += b.size
	s.requested += size
	return Block(b.gen)<<32 | Block(uint32(id))
}

// ranked returns the rank of the first block of a range that is new (BlockComparatorSize).
// Up to 2.11 it is the address. In 2.12 it is when the block was made, where a split
// makes a new one for the low part, and of blocks that are merged the one lives on whose
// free it was. From 2.13 on it is when the segment was made, then the address: a range
// takes as many ranks as it has bytes. No two blocks have the same rank.
func (s *Sim) ranked(addr uint64, size int64) uint64 {
	rank := s.ranks
	switch s.set.Version {
	case Torch212:
		s.ranks++
	case Torch213:
		s.ranks += uint64(size)
	default:
		return addr
	}
	return rank
}

// cut makes two pieces of block id; the upper one has the same state and is in no set.
func (s *Sim) cut(id int32, at int64) int32 {
	b := s.blocks[id]
	up := b
	up.addr += uint64(at)
	up.size -= at
	up.prev = id
	if s.set.Version == Torch212 {
		s.blocks[id].rank = s.ranked(0, 0)
	} else {
		up.rank += uint64(at)
	}
	n := s.newBlock(up)
	if b.next >= 0 {
		s.blocks[b.next].prev = n
	}
	s.blocks[id].size = at
	s.blocks[id].next = n
	return n
}

// cache puts a block among the free ones of its pool (insert_into_blocks).
func (s *Sim) cache(id int32) {
	b := &s.blocks[id]
	p := s.pools[b.pool]
	b.state = free
	b.gcBase = p.searches
	setOf(&p.free, b.stream).insert(uint64(b.size), b.rank, id)
}

func (s *Sim) uncache(id int32) {
	b := &s.blocks[id]
	s.pools[b.pool].free[b.stream].remove(uint64(b.size), b.rank)
}

func (s *Sim) event(a evidence.MemAction, addr uint64, size int64, id int32) {
	b := &s.blocks[id]
	p := s.pools[b.pool]
	s.events = append(s.events, SegmentEvent{Action: a, Addr: addr, Size: size, Stream: b.stream, Pool: p.id, Small: p.small})
}

// byHandle returns the streams of sets that have one, by raw handle.
func (s *Sim) byHandle(sets []*index) []uint16 {
	var out []uint16
	for i, x := range sets {
		if x != nil && x.n > 0 {
			out = append(out, uint16(i))
		}
	}
	slices.SortFunc(out, func(a, b uint16) int { return cmp.Compare(s.handle(a), s.handle(b)) })
	return out
}

func (s *Sim) handle(stream uint16) uint64 {
	if int(stream) < len(s.streams) {
		return s.streams[stream]
	}
	return uint64(stream)
}
