package memsnap

import (
	"encoding/binary"

	"github.com/inquest-dev/inquest/internal/format/pickle"
)

// pairsMin is how many bytes must lie in the window for another pair of a dict.
const pairsMin = 600

// dictRun takes a dict that lies in the window w, MARK read: its pairs go straight to m.vals.
// It returns how many bytes it took. With done, the dict at the top of the stack is
// filled; else what was read lies on the stack, above a mark, and the bytes from there
// on are for others.
func (m *machine) dictRun(w []byte, base int64) (n int, done bool) {
	var order [24]uint8 // known keys, as they came
	have, i, k := set(0), 0, 0
	m.powers = 0
	for {
		if len(w)-i < pairsMin || k == len(order) {
			break
		}
		if w[i] == byte(pickle.SetItems) {
			m.at = base + int64(i) + 1
			for _, key := range order[:k] {
				if m.vals[key].tag == tNone {
					have &^= 1 << key
				}
			}
			m.finish(m.make(have))
			return i + 1, true
		}
		key, j := m.key(w, i)
		if j == 0 {
			break
		}
		v, e := m.simple(w, j, base)
		if e == 0 {
			break
		}
		m.vals[key] = v
		have |= 1 << key
		order[k] = uint8(key)
		k++
		i = e
	}
	m.marks = append(m.marks, open{height: len(m.stack)})
	for _, key := range order[:k] {
		m.stack = append(m.stack, value{n: uint64(key), slot: noSlot, tag: tText}, m.vals[key])
	}
	return i, false
}

// finish makes v of the dict at the top of the stack. An entry goes to its list at
// once, unless it may still be put into the memo.
func (m *machine) finish(v value) {
	m.become(m.top1(), v)
}

// key reads a key that is fetched from the memo; end is 0 if it is none of those known.
func (m *machine) key(w []byte, i int) (key uint32, end int) {
	var slot uint32
	switch pickle.Op(w[i]) {
	case pickle.BinGet:
		slot, i = uint32(w[i+1]), i+2
	case pickle.LongBinGet:
		slot, i = binary.LittleEndian.Uint32(w[i+1:]), i+5
	default:
		return 0, 0
	}
	x := m.memo.get(slot)
	if tag(x>>idBits) != tText || x&maxID >= keys {
		return 0, 0
	}
	return x & maxID, i
}

// simple reads a value that needs no more than the window: a number, a string, what
// the memo has, a list of frames from the memo. end is 0 if it is another, and
// nothing has happened.
func (m *machine) simple(w []byte, i int, base int64) (v value, end int) {
	v.slot = noSlot
	switch op := pickle.Op(w[i]); op {
	case pickle.BinGet, pickle.LongBinGet:
		slot, n := uint32(w[i+1]), 2
		if op == pickle.LongBinGet {
			slot, n = binary.LittleEndian.Uint32(w[i+1:]), 5
		}
		v = unpack(m.memo.get(slot), slot)
		if v.tag == tUnset || v.tag == tBoxed || v.tag == tPart {
			return v, 0
		}
		return v, i + n
	case pickle.BinInt1:
		return value{n: uint64(w[i+1]), slot: noSlot, tag: tInt}, i + 2
	case pickle.BinInt2:
		return value{n: uint64(binary.LittleEndian.Uint16(w[i+1:])), slot: noSlot, tag: tInt}, i + 3
	case pickle.BinInt:
		return value{n: uint64(int64(int32(binary.LittleEndian.Uint32(w[i+1:])))), slot: noSlot, tag: tInt}, i + 5
	case pickle.Long1:
		k := int(w[i+1])
		if k > 8 {
			return v, 0
		}
		return value{n: long8(w[i+2:], k), slot: noSlot, tag: tInt}, i + 2 + k
	case pickle.NewTrue, pickle.NewFals:
		return value{n: uint64(pickle.NewFals - op), slot: noSlot, tag: tInt}, i + 1
	case pickle.None:
		return value{slot: noSlot, tag: tNone}, i + 1
	case pickle.ShortBinUnicode:
		k := int(w[i+1])
		if len(m.texts.list) >= maxTexts {
			return v, 0
		}
		v = value{n: uint64(m.texts.id(m.seed, w[i+2:i+2+k])), slot: noSlot, tag: tText}
		return v, m.memoized(w, i+2+k, v)
	case pickle.EmptyList:
		return m.frameList(w, i+1, base)
	}
	return v, 0
}

// long8 is the two's complement number in the first k bytes of b, which has 8.
func long8(b []byte, k int) uint64 {
	if k == 0 {
		return 0
	}
	s := uint(64 - 8*k)
	return uint64(int64(binary.LittleEndian.Uint64(b)<<s) >> s)
}

// memoized runs a MEMOIZE of v, if one stands at i, and returns what is behind it.
func (m *machine) memoized(w []byte, i int, v value) int {
	if w[i] == byte(pickle.Memoize) && m.memo.n == m.memo.count {
		m.memo.put(m.memo.n, pack(v.tag, v.n))
		return i + 1
	}
	return i
}

// frameList reads a list of frames from the memo, EMPTY_LIST read.
func (m *machine) frameList(w []byte, i int, base int64) (v value, end int) {
	v.slot = noSlot
	mem := w[i] == byte(pickle.Memoize)
	if mem {
		if i++; m.memo.n != m.memo.count {
			return v, 0
		}
	}
	if w[i] != byte(pickle.Mark) {
		return v, 0
	}
	m.at = base + int64(i)
	id, n := m.frameRun(w[i+1:])
	if n == 0 {
		return v, 0
	}
	v.n, v.tag = uint64(id), tStack
	if mem {
		v.slot = m.memo.n
		m.memo.put(v.slot, pack(tStack, v.n))
	}
	return v, i + 1 + n
}
