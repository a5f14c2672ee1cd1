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
