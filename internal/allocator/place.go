package allocator

// Bump places new memory at rising addresses, each segment after the last, as a
// driver that never gives an address twice would. The zero value begins at 2^44.
type Bump struct {
	next uint64
	down bool
}

const bumpBase = 1 << 44

// NewBump begins at base.
func NewBump(base uint64) *Bump { return &Bump{next: base} }

// newDrop places each segment below the last, and all below top.
func newDrop(top uint64) *Bump { return &Bump{next: top, down: true} }

func (b *Bump) take(size int64) (uint64, bool) {
	if b.next == 0 {
		b.next = bumpBase
	}
	if b.down {
		if size <= 0 || uint64(size) >= b.next-b.next%roundLarge {
			return 0, false
		}
		b.next = (b.next - uint64(size)) &^ (roundLarge - 1)
		return b.next, b.next > 0
	}
	at := (b.next + roundLarge - 1) &^ (roundLarge - 1)
	if size <= 0 || at < b.next || at > 1<<63 || uint64(size) > 1<<63-at {
		return 0, false
	}
	b.next = at + uint64(size)
	return at, true
}

// Segment implements Placer.
func (b *Bump) Segment(size int64, stream, pool uint16, small bool) (uint64, bool) {
	return b.take(size)
}

// Reserve implements Placer.
func (b *Bump) Reserve(size, page int64, stream, pool uint16, small bool) (uint64, int64, bool) {
	base, ok := b.take(size)
	return base, size, ok
}

// lowest places new memory at the lowest addresses from base on that are not in use.
type lowest struct {
	sim  *Sim
	base uint64
}

func (p *lowest) Segment(size int64, stream, pool uint16, small bool) (uint64, bool) {
	if size <= 0 || size > bytesMax {
		return 0, false
	}
	at := p.base
	for i, ok := p.sim.ranges.seek(0, 0); ok; i, ok = p.sim.ranges.next(i) {
		p.sim.work++
		r := &p.sim.spans[p.sim.ranges.at(i).v]
		if r.base >= at && r.base-at >= uint64(size) {
			break
		}
		at = max(at, (r.base+uint64(r.size)+roundLarge-1)&^(roundLarge-1))
	}
	return at, at <= 1<<63-uint64(size)
}

func (p *lowest) Reserve(size, page int64, stream, pool uint16, small bool) (uint64, int64, bool) {
	base, ok := p.Segment(size, stream, pool, small)
	return base, size, ok
}

// placer is one of the ways in which a driver may place new memory: at rising or
// falling addresses, or the lowest that are not in use.
func (h *history) placer(way int) Placer {
	switch {
	case way == 2:
		return &lowest{base: (h.bottom + roundLarge - 1) &^ (roundLarge - 1)}
	case way == 0:
		return NewBump(h.top + 1<<40)
	case h.bottom < 1<<46: // as on Windows: there is no room below
		return newDrop(h.top + 1<<60)
	}
	return newDrop(h.bottom)
}
