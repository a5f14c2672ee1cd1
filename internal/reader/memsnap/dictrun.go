package memsnap

import (
	"encoding/binary"
	"hash/maphash"

	"github.com/inquest-dev/inquest/internal/evidence"
	"github.com/inquest-dev/inquest/internal/format/pickle"
)

// pairsMin is how many bytes must lie in the window for another pair of a dict.
const pairsMin = 600

// dictRun takes a dict that lies in the window w, MARK read: its pairs go straight to m.vals.
// It returns how many bytes it took. The dict at the top of the stack is filled then, or
// what was read lies on the stack, above a mark, and the bytes from there on are for
// others.
func (m *machine) dictRun(w []byte, base int64) int {
	var order [32]uint8 // known keys, as they came
	have, none, i, k := set(0), set(0), 0, 0
	at := 0 // behind the last pair
	m.powers = 0
	for len(w)-i >= pairsMin && k < len(order) {
		var slot uint32
		j := i
		switch pickle.Op(w[i]) {
		case pickle.BinGet:
			slot, j = uint32(w[i+1]), i+2
		case pickle.LongBinGet:
			slot, j = binary.LittleEndian.Uint32(w[i+1:]), i+5
		case pickle.SetItems:
			m.at = base + int64(i) + 1
			memo := m.top1().slot != noSlot
			if e := m.finish(have&^none, w[i+1]); e != nil {
				m.learn(w, memo, e)
			}
			return i + 1
		}
		if j == i {
			break
		}
		key := m.memo.get(slot) - pack(tText, 0)
		if key == 0 || key >= keys {
			break
		}
		v := &m.vals[key]
		switch pickle.Op(w[j]) {
		case pickle.LongBinGet:
			slot = binary.LittleEndian.Uint32(w[j+1:])
			x := m.memo.get(slot)
			v.n, v.slot, v.tag = uint64(x&maxID), slot, tag(x>>idBits)
			if i = j + 5; v.tag == tUnset || v.tag == tBoxed || v.tag == tPart {
				i = 0
			}
		case pickle.BinInt:
			v.n, v.slot, v.tag = uint64(int64(int32(binary.LittleEndian.Uint32(w[j+1:])))), noSlot, tInt
			i = j + 5
		case pickle.BinInt1:
			v.n, v.slot, v.tag = uint64(w[j+1]), noSlot, tInt
			i = j + 2
		default:
			i = m.simple(v, w, j, base)
		}
		if i == 0 { // of another sort: back to before the key
			i = at
			break
		}
		if have |= 1 << key; v.tag == tNone {
			none |= 1 << key
		} else {
			none &^= 1 << key
		}
		order[k&31] = uint8(key)
		k++
		at = i
	}
	m.marks = append(m.marks, open{height: len(m.stack)})
	for _, key := range order[:k] {
		m.stack = append(m.stack, value{n: uint64(key), slot: noSlot, tag: tText}, m.vals[key])
	}
	return i
}

// finish makes of the dict at the top of the stack what the values of its keys say. An entry
// goes to its list at once, unless next, the opcode that follows, may want it, and is returned.
func (m *machine) finish(have set, next byte) *evidence.MemEvent {
	d := m.top1()
	if have.has(kAction) && (next == byte(pickle.EmptyDict) || next == byte(pickle.Appends)) && m.events < maxEvents && len(m.pend) == 0 {
		if t := m.open(); t != nil {
			number := uint32(m.events)
			if t.Len() == 0 {
				t.first = m.at
			}
			m.placed(number, t)
			e := t.New()
			m.entry(e, number, have)
			if d.slot != noSlot {
				m.memo.put(d.slot, pack(tEvent, uint64(number)))
			}
			m.stack = m.stack[:len(m.stack)-1]
			m.marks[len(m.marks)-1].ate = true
			return e
		}
	}
	m.become(d, m.make(have))
	return nil
}

// open is the list that the dict at the top of the stack will be added to, if that is one
// of entries and nothing else lies between.
func (m *machine) open() *trace {
	k := len(m.marks)
	if k == 0 {
		return nil
	}
	h := m.marks[k-1].height
	if h == 0 || len(m.stack) != h+1 || m.stack[h-1].tag != tTrace {
		return nil
	}
	return m.traces[m.stack[h-1].n]
}

// simple reads a value into v that needs no more than the window: a number, a string, what
// the memo has, a list of frames from the memo. It returns what is behind it, or 0 if it
// is another, and then nothing has happened.
func (m *machine) simple(v *value, w []byte, i int, base int64) int {
	v.slot = noSlot
	switch op := pickle.Op(w[i]); op {
	case pickle.BinGet, pickle.LongBinGet:
		slot, n := uint32(w[i+1]), 2
		if op == pickle.LongBinGet {
			slot, n = binary.LittleEndian.Uint32(w[i+1:]), 5
		}
		x := m.memo.get(slot)
		switch t := tag(x >> idBits); t {
		case tUnset, tBoxed, tPart:
			return 0
		default:
			v.n, v.slot, v.tag = uint64(x&maxID), slot, t
		}
		return i + n
	case pickle.BinInt1:
		v.n, v.tag = uint64(w[i+1]), tInt
		return i + 2
	case pickle.BinInt2:
		v.n, v.tag = uint64(binary.LittleEndian.Uint16(w[i+1:])), tInt
		return i + 3
	case pickle.BinInt:
		v.n, v.tag = uint64(int64(int32(binary.LittleEndian.Uint32(w[i+1:])))), tInt
		return i + 5
	case pickle.Long1:
		k := int(w[i+1])
		if k > 8 {
			return 0
		}
		v.n, v.tag = long8(w[i+2:], k), tInt
		return i + 2 + k
	case pickle.NewTrue, pickle.NewFals:
		v.n, v.tag = uint64(pickle.NewFals-op), tInt
		return i + 1
	case pickle.None:
		v.tag = tNone
		return i + 1
	case pickle.ShortBinUnicode:
		k := int(w[i+1])
		if len(m.texts.list) >= maxTexts {
			return 0
		}
		v.n, v.tag = uint64(m.texts.id(m.seed, w[i+2:i+2+k])), tText
		if i += 2 + k; w[i] == byte(pickle.Memoize) && m.memo.n == m.memo.count {
			m.memo.put(m.memo.n, pack(tText, v.n))
			i++
		}
		return i
	case pickle.EmptyList:
		return m.frameList(v, w, i+1, base)
	}
	return 0
}

// long8 is the two's complement number in the first k bytes of b, which has 8.
func long8(b []byte, k int) uint64 {
	if k == 0 {
		return 0
	}
	s := uint(64 - 8*k)
	return uint64(int64(binary.LittleEndian.Uint64(b)<<s) >> s)
}

// frameList reads a list of frames from the memo, or of dicts that were such a list before,
// EMPTY_LIST read.
func (m *machine) frameList(v *value, w []byte, i int, base int64) int {
	mem := w[i] == byte(pickle.Memoize)
	if mem {
		if i++; m.memo.n != m.memo.count {
			return 0
		}
	}
	if w[i] != byte(pickle.Mark) {
		return 0
	}
	m.at = base + int64(i)
	id, n, dicts := uint32(0), 0, w[i+1] == byte(pickle.EmptyDict) && m.memo.n == m.memo.count
	if dicts {
		id, n = m.dictList(w[i+1:])
	} else {
		id, n = m.frameRun(w[i+1:])
	}
	if n == 0 {
		return 0
	}
	v.n, v.tag = uint64(id), tStack
	if mem {
		v.slot = m.memo.n
		m.memo.put(v.slot, pack(tStack, v.n))
	}
	if dicts {
		m.framesAgain(m.stacks.list[id])
	}
	return i + 1 + n
}

// frameRun takes a list's items, MARK read, if they are references to frames and nothing
// else, up to APPENDS: it returns their stack and how many bytes that is, or 0.
func (m *machine) frameRun(w []byte) (stack uint32, end int) {
	if len(w) == 0 || behindGet(w, 0) == 0 {
		return 0, 0
	}
	const long = byte(pickle.LongBinGet)
	if id, n := m.knownRefs(w); n > 0 {
		return id, n + 1
	}
	n := 0
	for n+10 < len(w) {
		if w[n] == long && w[n+5] == long {
			n += 10
		} else if w[n] == long {
			n += 5
		} else if w[n] == byte(pickle.BinGet) {
			n += 2
		} else {
			break
		}
	}
	if n == 0 || w[n] != byte(pickle.Appends) {
		return 0, 0
	}
	raw := w[:n]
	h := fold(maphash.Bytes(m.seed, raw))
	if i, ok := m.runs.find(h, raw); ok {
		if n >= hintLeast {
			m.runHints.set(sampleRefs(raw), i)
		}
		return m.runs.list[i].id, n + 1
	}
	id, ok := m.resolve(raw)
	if !ok {
		return 0, 0
	}
	m.runs.add(h, raw, id)
	return id, n + 1
}

// frameDicts takes frames that are not shared: dicts with their own strings, as MEMOIZE names no
// slots the same bytes each time. It returns how many bytes it took, 0 if another dict
// begins here.
func (m *machine) frameDicts(w []byte, base int64) int {
	at := 0
	for len(w)-at >= 2*pairsMin && m.memo.n == m.memo.count {
		d := frameShape(w[at:])
		if d.end == 0 {
			break
		}
		r, ok := m.dictOf(w[at:], d)
		if !ok {
			return at + m.newFrame(w[at:], base+int64(at), d.end)
		}
		id := m.dicts.list[r].id
		m.stack = append(m.stack, value{n: uint64(id), slot: m.memo.n, tag: tFrame})
		m.frameAgain(id)
		at += d.end
	}
	return at
}

// dictOf is the number of the run that the dict of frameShape d at the beginning of w is.
func (m *machine) dictOf(w []byte, d frameEnds) (r uint32, ok bool) {
	raw := w[:d.end]
	sample := sample(raw, d.name, d.file, d.end)
	if r, ok = m.dictHints.is(&m.dicts, sample, raw); ok {
		return r, true
	}
	if r, ok = m.dicts.find(fold(maphash.Bytes(m.seed, raw)), raw); ok {
		m.dictHints.set(sample, r)
	}
	return r, ok
}

// A frameEnds tells where in a frame's dict its strings end, and the dict.
type frameEnds struct{ name, file, end int }

// frameShape finds out whether w begins with a dict of two strings and a number, as frames
// are: whose strings are stored, under keys that the memo has.
func frameShape(w []byte) (d frameEnds) {
	if w[1] != byte(pickle.Memoize) || w[2] != byte(pickle.Mark) {
		return d
	}
	i := 3
	for k := range 2 {
		if i = behindGet(w, i); w[i] != byte(pickle.ShortBinUnicode) {
			return d
		}
		if i += 2 + int(w[i+1]); w[i] != byte(pickle.Memoize) {
			return d
		}
		if i++; k == 0 {
			d.name = i
		}
	}
	d.file = i
	switch i = behindGet(w, i); pickle.Op(w[i]) {
	case pickle.BinInt1:
		i += 2
	case pickle.BinInt2:
		i += 3
	case pickle.BinInt:
		i += 5
	default:
		return d
	}
	if w[0] == byte(pickle.EmptyDict) && w[i] == byte(pickle.SetItems) && d.name > 8 {
		d.end = i + 1
	}
	return d
}

// framesAgain stores the frames of a list whose dicts were known by their bytes.
func (m *machine) framesAgain(frames []uint32) {
	to, n := m.memo.room(3*len(frames)), 0
	for _, f := range frames {
		if len(to) < n+3 || int(f) >= len(m.frameCodes) || m.frameCodes[f][0] == 0 {
			for _, f := range frames {
				m.frameAgain(f)
			}
			return
		}
		c := &m.frameCodes[f]
		to[n], to[n+1], to[n+2] = c[0], c[1], c[2]
		n += 3
	}
	m.memo.took(n)
}

// frameAgain stores a frame whose dict was known by its bytes, and its strings.
func (m *machine) frameAgain(id uint32) {
	for int(id) >= len(m.frameCodes) {
		m.frameCodes = append(m.frameCodes, make([][3]uint16, len(m.frames)-len(m.frameCodes))...)
	}
	c := &m.frameCodes[id]
	if c[0] != 0 && m.memo.pushCodes(c[:]...) {
		return
	}
	f := &m.frames[id]
	for k, w := range [3]uint32{pack(tFrame, uint64(id)), pack(tText, uint64(f.name)), pack(tText, uint64(f.file))} {
		m.memo.push(w)
		c[k] = m.memo.codeOf(w)
	}
	if c[1] == 0 || c[2] == 0 {
		c[0] = 0
	}
}

// newFrame takes a frame of frameShape, the first n bytes, that is not known by its bytes.
func (m *machine) newFrame(w []byte, base int64, n int) int {
	first := m.memo.n
	m.stack = append(m.stack, value{slot: first, tag: tDict})
	m.memo.put(first, pack(tDict, 0))
	took := 3 + m.dictRun(w[3:], base+3)
	if v := m.top1(); took == n && v.tag == tFrame && v.slot == first {
		// The strings must be the name and the file, in this order, to be put again.
		f := &m.frames[v.n]
		if m.memo.n == first+3 && m.memo.get(first+1) == pack(tText, uint64(f.name)) && m.memo.get(first+2) == pack(tText, uint64(f.file)) {
			r := uint32(len(m.dicts.list))
			if m.dicts.add(fold(maphash.Bytes(m.seed, w[:n])), w[:n], uint32(v.n)); len(m.dicts.list) > int(r) {
				m.tree.known(uint32(v.n), r)
			}
		}
	}
	return took
}

// behindGet is what follows a fetch from the memo at i, or i.
func behindGet(w []byte, i int) int {
	switch w[i] {
	case byte(pickle.BinGet):
		return i + 2
	case byte(pickle.LongBinGet):
		return i + 5
	}
	return i
}
