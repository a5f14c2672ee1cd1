package allocmodel

import (
	"slices"

	"github.com/inquest-dev/inquest/internal/evidence"
)

// A block is one piece of a segment, or of an expandable reservation.
type block struct {
	addr      uint64
	size      int64
	requested int64 // of a free one what it was the last time
	seg       *segment
	allocated bool
	mapped    bool
	uses      []uint64 // other streams that were recorded
	waits     int      // for so many marks in other streams
	leaving   bool     // freed by the program, not yet completed
	bornAt    int      // lookups of its pool when it became free
	stack     uint32
	made      int // how many blocks there had been before
}

// free says that b can be given out: it is neither in use nor awaited.
func (b *block) free() bool { return !b.allocated && !b.leaving }

// A segment is one cudaMalloc, or one reservation of addresses that pages are mapped to.
type segment struct {
	blocks     []*block // by address, without gaps
	pool       *pool
	stream     uint64
	expandable bool
	stack      uint32
	made       int // how many segments there had been before
}

func (s *segment) page() int64 {
	if s.pool.small {
		return smallSegment
	}
	return largeSegment
}

func (s *segment) base() uint64 { return s.blocks[0].addr }

func (s *segment) bytes() int64 {
	n := int64(0)
	for _, b := range s.blocks {
		n += b.size
	}
	return n
}

// A pool is a set of segments of one size class.
type pool struct {
	id      [2]int64
	small   bool
	lookups int
	dropped bool // private, and nothing refers to it
}

// A mark is an event that was put into a stream when a block was freed.
type mark struct {
	stream  uint64
	block   *block
	reached bool
}

type capture struct {
	pool   [2]int64
	stream uint64
}

// A Model is the allocator of one device.
type Model struct {
	set      Settings
	dev      Device
	segs     []*segment
	pools    []*pool // small and large of the default, then of each private one
	captures []capture
	marks    []*mark  // oldest first
	deferred []*block // freed in a capture with other streams' uses
	total    int64
	live     map[int]*block
	next     uint64
	low      uint64
	nBlocks  int
	nSegs    int

	o        Options
	op       int
	flushing bool // all pending frees are being waited for
	time     int64
	run      Run
}

const (
	baseAddr = 0x7f2a00000000
	baseTime = 1_771_000_000_000_000
)

func (m *Model) newBlock(b block) *block {
	b.made = m.nBlocks
	m.nBlocks++
	return &b
}

func (m *Model) newSegment(s segment) *segment {
	s.made = m.nSegs
	m.nSegs++
	return &s
}

func newModel(set Settings, dev Device, o Options) *Model {
	return &Model{
		set: set, dev: dev, o: o,
		pools: []*pool{{small: true}, {}},
		live:  map[int]*block{},
		next:  baseAddr, low: baseAddr,
		time: baseTime,
		run:  Run{PeakEvent: -1},
	}
}

// do carries out op and reports whether it did not fail for want of memory.
func (m *Model) do(op Op) bool {
	m.time += 7 + op.Wait
	switch op.Kind {
	case Alloc:
		return m.malloc(op)
	case Free:
		if b := m.live[op.ID]; b != nil {
			delete(m.live, op.ID)
			m.freeBlock(b, op.Stack)
		}
	case Use:
		if b := m.live[op.ID]; b != nil && b.seg.stream != op.Stream && !slices.Contains(b.uses, op.Stream) {
			b.uses = append(b.uses, op.Stream)
		}
	case Done:
		for _, k := range m.marks {
			if k.stream == op.Stream {
				k.reached = true
			}
		}
	case EmptyCache:
		before := len(m.run.Events)
		m.releaseCached(0)
		if len(m.run.Events) == before {
			m.run.Unseen++
		}
	case BeginPool:
		m.captures = append(m.captures, capture{op.Pool, op.Stream})
		if m.private(op.Pool, true) == nil {
			m.pools = append(m.pools, &pool{id: op.Pool, small: true}, &pool{id: op.Pool})
		}
	case EndPool:
		m.captures = slices.DeleteFunc(m.captures, func(c capture) bool { return c.pool == op.Pool })
	case DropPool:
		for _, p := range m.pools {
			if p.id == op.Pool && p.id != [2]int64{} {
				p.dropped = true
			}
		}
	case Snapshot:
		m.record(evidence.MemEvent{Action: evidence.MemSnapshotMark, Size: m.activeBytes()})
	case StepStart, StepEnd:
		m.run.Annotations = append(m.run.Annotations, evidence.MemAnnotation{
			Name: op.Name, Start: op.Kind == StepStart, Device: m.dev.Index, Time: m.time})
	}
	return true
}

func (m *Model) private(id [2]int64, small bool) *pool {
	for _, p := range m.pools[2:] {
		if p.id == id && p.small == small {
			return p
		}
	}
	return nil
}

// poolFor is where a block of size bytes for stream comes from.
func (m *Model) poolFor(size int64, stream uint64) *pool {
	small := size <= smallMax
	for _, c := range m.captures {
		if c.stream == stream {
			return m.private(c.pool, small)
		}
	}
	if small {
		return m.pools[0]
	}
	return m.pools[1]
}

func (m *Model) malloc(op Op) bool {
	if len(m.captures) == 0 {
		m.processMarks(op.Stack)
	} else {
		m.run.Captured++
	}
	size := m.set.Round(op.Size)
	p := m.poolFor(size, op.Stream)
	b := m.bestFit(p, size, op.Stream)
	if b == nil {
		if m.dev.Limit > 0 && m.set.GCThreshold > 0 {
			m.collect(op.Stack)
		}
		b = m.newMemory(p, size, op.Stream, op.Stack)
	}
	if b == nil && m.set.MaxSplit >= 0 && m.releaseOversize(p, size, op.Stream, op.Stack) {
		b = m.newMemory(p, size, op.Stream, op.Stack)
	}
	if b == nil && len(m.captures) == 0 {
		m.releaseCached(op.Stack)
		m.run.Retries++
		b = m.newMemory(p, size, op.Stream, op.Stack)
	}
	if b == nil {
		m.report(size)
		m.record(evidence.MemEvent{Action: evidence.MemOOM, Addr: uint64(m.deviceFree()), Size: size, Stream: m.stream(op.Stream), Pool: m.poolIndex(p), Stack: op.Stack})
		return false
	}
	m.take(b, size, op)
	return true
}

// freeBlocks lists the free mapped blocks of p in stream with at least size bytes, by
// size, then by the rule for ties.
func (m *Model) freeBlocks(p *pool, stream uint64, size int64) []*block {
	var out []*block
	for _, s := range m.segs {
		if s.pool != p || s.stream != stream {
			continue
		}
		for _, b := range s.blocks {
			if b.free() && b.mapped && b.size >= size {
				out = append(out, b)
			}
		}
	}
	slices.SortFunc(out, func(a, b *block) int {
		if a.size != b.size {
			return int(min(max(a.size-b.size, -1), 1))
		}
		switch {
		case m.set.Ties == ByBlock:
			return a.made - b.made
		case m.set.Ties == BySegment && a.seg != b.seg:
			return a.seg.made - b.seg.made
		case a.addr < b.addr:
			return -1
		}
		return 1
	})
	return out
}

func (m *Model) bestFit(p *pool, size int64, stream uint64) *block {
	p.lookups++
	c := m.freeBlocks(p, stream, size)
	if len(c) == 0 {
		return nil
	}
	i := 0
	if c[0].seg.expandable && m.set.Expandable {
		for c[i].seg.expandable && i+1 < len(c) && stretch(c[i+1]) < stretch(c[i]) {
			i++
		}
	} else if c[0].seg.expandable {
		for i < len(c) && c[i].seg.expandable {
			i++
		}
		if i == len(c) {
			return nil
		}
	}
	b := c[i]
	if m.set.MaxSplit >= 0 {
		if size < m.set.MaxSplit && b.size >= m.set.MaxSplit {
			return nil
		}
		if size >= m.set.MaxSplit && b.size >= size+largeSegment {
			return nil
		}
	}
	return b
}

// stretch is the size to which b could be extended in place.
func stretch(b *block) int64 {
	n := b.size
	if i := slices.Index(b.seg.blocks, b); i+1 < len(b.seg.blocks) && !b.seg.blocks[i+1].mapped {
		n += b.seg.blocks[i+1].size
	}
	return n
}

// take gives b out for op, cutting off what is not needed.
func (m *Model) take(b *block, size int64, op Op) {
	rest := b.size - size
	split := rest >= minBlock
	if !b.seg.pool.small && !m.set.Expandable {
		split = rest > smallMax && (m.set.MaxSplit < 0 || size < m.set.MaxSplit)
	}
	if split {
		i := slices.Index(b.seg.blocks, b)
		head := m.newBlock(block{addr: b.addr, size: size, seg: b.seg, mapped: true})
		b.addr += uint64(size)
		b.size = rest
		b.bornAt = b.seg.pool.lookups
		b.seg.blocks = slices.Insert(b.seg.blocks, i, head)
		b = head
	}
	b.allocated = true
	b.requested = op.Size
	b.stack = op.Stack
	m.live[op.ID] = b
	m.record(evidence.MemEvent{Action: evidence.MemAlloc, Addr: b.addr, Size: op.Size, Stream: m.stream(op.Stream), Pool: m.poolIndex(b.seg.pool), Stack: op.Stack})
}

// freeBlock takes b back, at once or when the streams that used it have gone on.
func (m *Model) freeBlock(b *block, stack uint32) {
	if !m.o.FreeStacks {
		stack = 0
	}
	b.allocated, b.leaving = false, true
	m.recordBlock(evidence.MemFreeRequested, b, stack)
	switch {
	case len(b.uses) == 0:
		m.complete(b, stack)
	case len(m.captures) > 0:
		m.deferred = append(m.deferred, b)
	default:
		m.putMarks(b)
	}
}

func (m *Model) putMarks(b *block) {
	slices.Sort(b.uses)
	for _, s := range b.uses {
		m.marks = append(m.marks, &mark{stream: s, block: b})
		b.waits++
	}
	b.uses = nil
}

func (m *Model) putDeferred() {
	for _, b := range m.deferred {
		m.putMarks(b)
	}
	m.deferred = nil
}

// streamsWaited lists the streams with marks, lowest handle first.
func (m *Model) streamsWaited() []uint64 {
	var out []uint64
	for _, k := range m.marks {
		if !slices.Contains(out, k.stream) {
			out = append(out, k.stream)
		}
	}
	slices.Sort(out)
	return out
}

// processMarks completes the frees whose marks are reached, each stream in its order up to the
// first that is not.
func (m *Model) processMarks(stack uint32) {
	m.putDeferred()
	for _, s := range m.streamsWaited() {
		for {
			i := slices.IndexFunc(m.marks, func(k *mark) bool { return k.stream == s })
			if i < 0 || !m.marks[i].reached {
				break
			}
			m.passMark(i, stack)
		}
	}
}

func (m *Model) passMark(i int, stack uint32) {
	b := m.marks[i].block
	m.marks = slices.Delete(m.marks, i, i+1)
	b.waits--
	if b.waits == 0 {
		m.complete(b, stack)
	}
}

// waitForMarks completes all frees that wait.
func (m *Model) waitForMarks(stack uint32) {
	m.flushing = true
	defer func() { m.flushing = false }()
	m.putDeferred()
	for _, s := range m.streamsWaited() {
		for {
			i := slices.IndexFunc(m.marks, func(k *mark) bool { return k.stream == s })
			if i < 0 {
				break
			}
			if !m.marks[i].reached {
				m.run.Waited++
			}
			m.passMark(i, stack)
		}
	}
}

// complete makes b free and joins it with its free neighbours.
func (m *Model) complete(b *block, stack uint32) {
	if stack == 0 {
		stack = b.stack
	}
	was := *b
	b.stack, b.leaving = 0, false
	m.join(b)
	b.bornAt = b.seg.pool.lookups
	m.recordBlock(evidence.MemFreeCompleted, &was, stack)
}

// join merges the block before and the one after into b where both sides are free and in
// the same state of mapping.
func (m *Model) join(b *block) {
	s := b.seg
	i := slices.Index(s.blocks, b)
	if i > 0 && s.blocks[i-1].free() && s.blocks[i-1].mapped == b.mapped {
		b.addr = s.blocks[i-1].addr
		b.size += s.blocks[i-1].size
		s.blocks = slices.Delete(s.blocks, i-1, i)
		i--
	}
	if i+1 < len(s.blocks) && s.blocks[i+1].free() && s.blocks[i+1].mapped == b.mapped {
		b.size += s.blocks[i+1].size
		s.blocks = slices.Delete(s.blocks, i+1, i+2)
	}
}

func (m *Model) recordBlock(a evidence.MemAction, b *block, stack uint32) {
	if stack == 0 {
		stack = b.stack
	}
	m.record(evidence.MemEvent{Action: a, Addr: b.addr, Size: b.requested, Stream: m.stream(b.seg.stream), Pool: m.poolIndex(b.seg.pool), Stack: stack})
}

// record adds e to the history. What it speaks of has happened.
func (m *Model) record(e evidence.MemEvent) {
	n := len(m.run.Events)
	m.time += 3 + int64(n%5)
	e.Time = m.time
	m.run.Events = append(m.run.Events, e)
	m.run.Reserved = append(m.run.Reserved, m.total)
	m.run.Active = append(m.run.Active, m.activeBytes())
	m.run.OpOf = append(m.run.OpOf, m.op)
	m.run.Flushed = append(m.run.Flushed, m.flushing && e.Action == evidence.MemFreeCompleted)
	if m.total > m.run.Peak {
		m.run.Peak, m.run.PeakEvent = m.total, n
	}
	if m.o.Watch != nil {
		m.o.Watch(n, m)
	}
}

// report keeps what the message of a failure says.
func (m *Model) report(size int64) {
	r := Report{Asked: Request(size), Free: m.deviceFree(), Reserved: m.total}
	for _, s := range m.segs {
		for _, b := range s.blocks {
			if b.allocated {
				r.Allocated += b.size
			} else if b.mapped && b.free() && s.pool.id != [2]int64{} {
				r.PrivateFree += b.size
			}
		}
	}
	m.run.At = r
}

func (m *Model) activeBytes() int64 {
	n := int64(0)
	for _, s := range m.segs {
		for _, b := range s.blocks {
			if !b.free() {
				n += b.size
			}
		}
	}
	return n
}

func (m *Model) deviceFree() int64 { return max(0, m.dev.Capacity-m.dev.Other-m.total) }

// stream is the index of a stream in the snapshots that this package writes.
func (m *Model) stream(handle uint64) uint16 { return streamIndex(handle) }

// poolIndex is the index of a pool in the snapshots that this package writes.
func (m *Model) poolIndex(p *pool) uint16 { return uint16(p.id[0] + p.id[1]) }
