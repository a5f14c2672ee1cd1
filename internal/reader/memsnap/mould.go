package memsnap

import (
	"encoding/binary"

	"github.com/inquest-dev/inquest/internal/evidence"
	"github.com/inquest-dev/inquest/internal/format/pickle"
)

// A writer puts one entry down like the next: the same keys in the same order, the same action
// and context, other numbers and another stack. A mould is made of an entry that the
// general way has read; an entry whose bytes are those of a mould, save for the numbers
// and the stack, is the mould's entry with these. Every byte is compared or read, so that
// what takes this way is what the general way would have made of it, and whatever
// does not fit goes there, with nothing done yet.
type mould struct {
	entry evidence.MemEvent
	raw   [mouldBytes]byte // what must stand there, without numbers and stack
	parts [mouldParts]mouldPart
	n     int  // of parts; 0 is no mould
	memo  bool // its dict is memoized

	stores bool // some of its strings are, so that their order matters
}

// A mouldPart are bytes that must stand there, up to end in raw, and what follows.
type mouldPart struct {
	head uint64 // the first 8 of them, 0 for those that are not there
	mask uint64 // with ones for those that are
	end  uint8
	then uint8  // a key whose number or stack follows, or one of those below
	word uint32 // of thenStored: what a MEMOIZE, the last of the bytes, stores
}

const (
	thenEnd    = keys // nothing
	thenStored = keys + 1

	mouldBytes = 192
	mouldParts = 16
	moulds     = 16
)

// A foundry has some moulds. Those that fit move to the front; the last one gives way to a new one.
type foundry struct {
	list  []mould
	order []uint8 // indices of list
	made  int     // moulds; a file that has no use for them gets no more
	used  int     // entries that fitted one
}

// forget drops the moulds: a string or pair that one of them names may be another now.
func (f *foundry) forget() { f.list, f.order = f.list[:0], f.order[:0] }

// entries takes the entries at the beginning of w that fit moulds; they belong to t. It returns
// how many bytes that is.
func (m *machine) entries(w []byte, base int64, t *trace) int {
	at := 0
	for len(w)-at >= runMin && m.events < maxEvents {
		n := m.cast(w[at:], base+int64(at), t)
		if n == 0 {
			break
		}
		at += n
	}
	if at > 0 {
		m.marks[len(m.marks)-1].ate = true
	}
	return at
}

// cast takes one entry.
func (m *machine) cast(w []byte, base int64, t *trace) int {
	for k, i := range m.foundry.order {
		d := &m.foundry.list[i]
		lead := int(d.parts[0].end)
		if string(w[:lead]) != string(d.raw[:lead]) {
			continue
		}
		n, vain := m.fit(d, w, base, t)
		if n == 0 && !vain {
			continue
		}
		if n > 0 && k > 0 { // one place towards the front
			o := m.foundry.order
			o[k], o[k-1] = o[k-1], o[k]
		}
		m.foundry.used += min(n, 1)
		return n
	}
	return 0
}

// fit takes the entry at the beginning of w if it fits d, whose first bytes have been
// compared. It must be one that goes to its list at once. Vain says that it does not fit, and
// that finding that out took the reading of a stack.
func (m *machine) fit(d *mould, w []byte, base int64, t *trace) (n int, vain bool) {
	e := d.entry
	stream, streamed, own := uint64(0), false, false
	i, from := 0, 0
	for k := range d.parts[:d.n] {
		p := &d.parts[k]
		to := int(p.end)
		if k > 0 && (binary.LittleEndian.Uint64(w[i:])&p.mask != p.head || to-from > 8 && string(w[i:i+to-from]) != string(d.raw[from:to])) {
			return 0, vain
		}
		i += to - from
		from = to
		switch p.then {
		case thenStored, thenEnd:
			continue
		case kFrames:
			e.Stack, n, own = m.castStack(w[i:], base+int64(i))
			if vain = true; n == 0 || len(w)-i-n < pairsMin {
				return 0, vain
			}
		default:
			var x uint64
			if x, n = castNumber(w[i:]); n == 0 {
				return 0, vain
			}
			switch p.then {
			case kAddr, kDeviceFree:
				e.Addr = x
			case kSize:
				e.Size = int64(x)
			case kTime:
				e.Time = int64(x)
			case kStream:
				stream, streamed = x, true
			}
		}
		i += n
	}
	if next := w[i]; next != byte(pickle.EmptyDict) && next != byte(pickle.Appends) {
		return 0, vain
	}
	m.at = base + int64(i)
	if streamed {
		e.Stream = m.streamOf(stream)
	}
	m.keep(d, &e, t, own)
	return i, false
}

// keep adds e, of mould d, to its list, and what its MEMOIZEs store to the memo.
func (m *machine) keep(d *mould, e *evidence.MemEvent, t *trace, listed bool) {
	number := uint32(m.events)
	m.events++
	m.placed(number, t)
	*t.New() = *e
	if d.memo {
		m.memo.pushEvent(number)
	}
	if !d.stores {
		if listed {
			m.memo.push(pack(tStack, uint64(e.Stack)))
		}
		return
	}
	for k := range d.parts[:d.n] {
		switch p := &d.parts[k]; {
		case p.then == thenStored:
			m.memo.push(p.word)
		case p.then == kFrames && listed:
			m.memo.push(pack(tStack, uint64(e.Stack)))
		}
	}
}

// castStack is the stack at the beginning of w: a list in the memo, or a list of frames that
// are there; own if the list takes a slot of its own.
func (m *machine) castStack(w []byte, at int64) (id uint32, n int, own bool) {
	var slot uint32
	switch pickle.Op(w[0]) {
	case pickle.BinGet:
		slot, n = uint32(w[1]), 2
	case pickle.LongBinGet:
		slot, n = binary.LittleEndian.Uint32(w[1:]), 5
	case pickle.EmptyList:
		i := 1
		if own = w[1] == byte(pickle.Memoize); own {
			i = 2
		}
		if w[i] != byte(pickle.Mark) {
			return 0, 0, false
		}
		m.at = at + int64(i)
		if id, n = m.frameRun(w[i+1:]); n == 0 {
			return 0, 0, false
		}
		return id, i + 1 + n, own
	default:
		return 0, 0, false
	}
	x := m.memo.get(slot)
	if tag(x>>idBits) != tStack {
		return 0, 0, false
	}
	return x & maxID, n, false
}

// castNumber is the integer at the beginning of w.
func castNumber(w []byte) (x uint64, n int) {
	switch pickle.Op(w[0]) {
	case pickle.Long1:
		if k := int(w[1]); k <= 8 {
			return long8(w[2:], k), 2 + k
		}
	case pickle.BinInt:
		return uint64(int64(int32(binary.LittleEndian.Uint32(w[1:])))), 5
	case pickle.BinInt1:
		return uint64(w[1]), 2
	case pickle.BinInt2:
		return uint64(binary.LittleEndian.Uint16(w[1:])), 3
	}
	return 0, 0
}

// mouldNumbers are the keys whose numbers differ from entry to entry.
var mouldNumbers = keyed(kAddr, kDeviceFree, kSize, kStream, kTime)

// learn makes a mould of the entry that was read last, whose bytes from behind MARK to SETITEMS
// are the first of w. Memo says that the dict is memoized.
func (m *machine) learn(w []byte, memo bool, e *evidence.MemEvent) {
	f := &m.foundry
	if f.made > 256+f.used || e.Action == evidence.MemOOM || len(m.notes) >= maxNotes || len(m.pools) > maxSmall {
		return
	}
	var k int
	if len(f.order) < moulds {
		k = len(f.list)
		f.list = append(f.list, mould{})
		f.order = append(f.order, uint8(k))
	} else {
		k = int(f.order[moulds-1])
	}
	d := &f.list[k]
	*d = mould{entry: *e, memo: memo}
	f.made++
	if !m.shape(d, w) { // of no use: the first to go
		*d = mould{}
		d.parts[0].end = mouldBytes
	}
}

// shape puts into d what w must be. It is false for an entry that makes no mould.
func (m *machine) shape(d *mould, w []byte) bool {
	c := caster{m: m, d: d}
	c.lit([]byte{byte(pickle.EmptyDict)})
	if d.memo {
		c.lit([]byte{byte(pickle.Memoize)})
	}
	c.lit([]byte{byte(pickle.Mark)})
	var have set
	for w[0] != byte(pickle.SetItems) {
		n := behindGet(w, 0)
		if n == 0 {
			return false
		}
		key := m.slotAt(w) - pack(tText, 0)
		if key == 0 || key >= keys || have.has(uint(key)) {
			return false
		}
		have |= 1 << key
		c.lit(w[:n])
		if w = c.value(uint8(key), w[n:]); w == nil {
			return false
		}
	}
	c.lit(w[:1])
	c.then(thenEnd, 0)
	return !c.full && !(have.has(kAddr) && have.has(kDeviceFree))
}

// slotAt is what the memo has in the slot that is fetched at the beginning of w.
func (m *machine) slotAt(w []byte) uint32 {
	if w[0] == byte(pickle.BinGet) {
		return m.memo.get(uint32(w[1]))
	}
	return m.memo.get(binary.LittleEndian.Uint32(w[1:]))
}

// A caster puts the parts of a mould together.
type caster struct {
	m    *machine
	d    *mould
	at   int // behind what stands in raw
	from int // where the next part begins
	full bool
}

func (c *caster) lit(b []byte) {
	if c.full = c.full || c.at+len(b) > mouldBytes-8; !c.full {
		c.at += copy(c.d.raw[c.at:], b)
	}
}

func (c *caster) then(what uint8, word uint32) {
	if c.full = c.full || c.d.n == mouldParts; !c.full {
		p := mouldPart{end: uint8(c.at), then: what, word: word}
		n := min(c.at-c.from, 8)
		p.mask = ^uint64(0) >> (64 - 8*n) // a shift by 64 leaves 0
		p.head = binary.LittleEndian.Uint64(c.d.raw[c.from:]) & p.mask
		c.d.parts[c.d.n] = p
		c.d.n++
		c.from = c.at
	}
}

// value takes the value of key at the beginning of w and returns what is behind it, nil if it
// is of a sort that makes no mould.
func (c *caster) value(key uint8, w []byte) []byte {
	switch op := pickle.Op(w[0]); op {
	case pickle.BinGet, pickle.LongBinGet:
		n := behindGet(w, 0)
		switch t := tag(c.m.slotAt(w) >> idBits); {
		case key == kFrames && t == tStack:
			c.then(key, 0)
		case key != kFrames && (t == tText || t == tPair):
			c.lit(w[:n])
		default:
			return nil
		}
		return w[n:]
	case pickle.BinInt1, pickle.BinInt2, pickle.BinInt, pickle.Long1:
		if !mouldNumbers.has(uint(key)) {
			return nil
		}
		c.then(key, 0)
		_, n := castNumber(w)
		return w[n:]
	case pickle.None, pickle.NewTrue, pickle.NewFals:
		c.lit(w[:1])
		return w[1:]
	case pickle.ShortBinUnicode:
		n := 2 + int(w[1])
		if w[n] == byte(pickle.Memoize) {
			c.lit(w[:n+1])
			c.d.stores = true
			c.then(thenStored, pack(tText, uint64(c.m.texts.id(c.m.seed, w[2:n]))))
			return w[n+1:]
		}
		c.lit(w[:n])
		return w[n:]
	case pickle.EmptyList:
		if end := runEnd(w); key == kFrames && end > 0 {
			c.then(key, 0)
			return w[end:]
		}
	}
	return nil
}

// runEnd is what follows a list of references to the memo at the beginning of w.
func runEnd(w []byte) int {
	i := 1
	if w[i] == byte(pickle.Memoize) {
		i++
	}
	if w[i] != byte(pickle.Mark) {
		return 0
	}
	for i++; ; {
		n := behindGet(w, i)
		if n == i {
			break
		}
		i = n
	}
	if w[i] != byte(pickle.Appends) {
		return 0
	}
	return i + 1
}

// next is the list that entries may be added to from the bytes that follow: the top of the
// stack is a mark above it, and what was stored so far lies in order.
func (m *machine) next() *trace {
	k := len(m.marks) - 1
	if k < 0 || len(m.foundry.order) == 0 || len(m.pend) > 0 || m.memo.n != m.memo.count {
		return nil
	}
	h := m.marks[k].height
	if h == 0 || len(m.stack) != h || m.stack[h-1].tag != tTrace {
		return nil
	}
	if t := m.traces[m.stack[h-1].n]; t.Len() > 0 {
		return t
	}
	return nil
}
