package memsnap

// A memo is what PUT and MEMOIZE store: a word for each value, in chunks. Slots that are not
// the next are kept apart, since a pickle may name any number.
//
// Most of what a snapshot stores are strings, functions and stacks, of which few are
// distinct, and its entries, which are never fetched again. So a chunk holds codes of two bytes as long as
// that is enough: a code stands for a word, or for an entry or block, whose number follows from
// those before it in the chunk.
type memo struct {
	chunks []memoPart
	n      uint32 // of the dense part
	count  uint32 // of all slots in use
	apart  map[uint32]uint32

	// recent holds what was fetched last, by the slot's last bits.
	recent [256]struct{ not, word uint32 } // not is ^slot

	words []uint32           // by code
	codes [tOther][]uint16   // by tag and id; 0 is none
	fixed [tOther + 1]uint16 // of values that are alone of their tag
}

// A memoPart is one chunk: codes or, where they were not enough, words.
type memoPart struct {
	codes []uint16
	words []uint32
	of    tag    // tEvent or tBlock: what is numbered in this chunk
	first uint32 // number of the first
	count uint32 // how many
	last  uint32 // slot in the chunk of the newest
}

const (
	memoBits  = 13
	memoChunk = 1 << memoBits
	maxCodes  = 1<<16 - 2
	numbered  = 1<<16 - 1 // the code of an entry, or of a block
)

// get returns the word of slot i, 0 if nothing was stored.
func (m *memo) get(i uint32) uint32 {
	if r := &m.recent[uint8(i)]; r.not == ^i {
		return r.word
	}
	return m.fetch(i)
}

func (m *memo) fetch(i uint32) uint32 {
	if i >= m.n {
		return m.apart[i]
	}
	c, at := &m.chunks[i>>memoBits], i&(memoChunk-1)
	if c.words == nil && c.codes[at] == numbered {
		m.widen(c) // whoever fetches one may fetch many
	}
	var w uint32
	if c.words != nil {
		w = c.words[at]
	} else {
		w = m.words[c.codes[at]]
	}
	r := &m.recent[uint8(i)]
	r.not, r.word = ^i, w
	return w
}

// put stores w in slot i.
func (m *memo) put(i, w uint32) {
	switch {
	case i < m.n:
		m.recent[uint8(i)].not = 0 // of no slot that can be stored to
	case i == m.n:
		m.next()
		m.count++
		if len(m.apart) > 0 {
			if _, had := m.apart[i]; had {
				delete(m.apart, i)
				m.count--
			}
		}
	default:
		if _, had := m.apart[i]; !had {
			m.count++
			if m.apart == nil {
				m.apart = map[uint32]uint32{}
			}
		}
		m.apart[i] = w
		return
	}
	c, at := &m.chunks[i>>memoBits], i&(memoChunk-1)
	if c.words == nil {
		if k, ok := m.code(c, at, w); ok {
			c.codes[at] = k
			return
		}
		m.widen(c)
	}
	c.words[at] = w
}

// push puts w in the slot that is the next.
func (m *memo) push(w uint32) {
	if k := m.codeOf(w); k == 0 || !m.pushCodes(k) {
		m.put(m.n, w)
	}
}

// pushEvent puts entry n in the slot that is the next.
func (m *memo) pushEvent(n uint32) {
	if to := m.room(1); to != nil {
		if c := &m.chunks[len(m.chunks)-1]; c.of == tEvent && n == c.first+c.count {
			to[0] = numbered
			c.count++
			c.last = m.n & (memoChunk - 1)
			m.took(1)
			return
		}
	}
	m.put(m.n, pack(tEvent, uint64(n)))
}

// codeOf is the code of a string, function or stack, 0 if it has none yet.
func (m *memo) codeOf(w uint32) uint16 {
	t, n := tag(w>>idBits), w&maxID
	if t != tText && t != tFrame && t != tStack || int(n) >= len(m.codes[t]) {
		return 0
	}
	return m.codes[t][n]
}

// pushCodes puts what codes stand for in the next slots, if the newest chunk has codes and room.
func (m *memo) pushCodes(codes ...uint16) bool {
	to := m.room(len(codes))
	if to == nil {
		return false
	}
	copy(to, codes)
	m.took(len(codes))
	return true
}

// room is where the codes of the next n slots belong, nil if the newest chunk has words or no room.
func (m *memo) room(n int) []uint16 {
	at := int(m.n & (memoChunk - 1))
	if at == 0 || at+n > memoChunk || len(m.apart) > 0 {
		return nil
	}
	c := &m.chunks[len(m.chunks)-1]
	if c.words != nil {
		return nil
	}
	return c.codes[at : at+n]
}

// took says that n slots of the room have their codes.
func (m *memo) took(n int) {
	m.n += uint32(n)
	m.count += uint32(n)
}

// next makes room for one more slot of the dense part.
func (m *memo) next() {
	if m.n&(memoChunk-1) == 0 {
		if m.words == nil {
			m.words = make([]uint32, 1, 4096) // code 0: nothing was stored
		}
		c := memoPart{}
		if len(m.words) < maxCodes {
			c.codes = make([]uint16, memoChunk)
		} else {
			c.words = make([]uint32, memoChunk)
		}
		m.chunks = append(m.chunks, c)
	}
	m.n++
}

// code is the code of w at a slot of c, if it has one there.
func (m *memo) code(c *memoPart, at, w uint32) (uint16, bool) {
	if c.codes[at] == numbered {
		return 0, false
	}
	t, n := tag(w>>idBits), w&maxID
	switch t {
	case tEvent, tBlock:
		if c.count == 0 {
			c.of, c.first = t, n
		} else if t != c.of || n != c.first+c.count || at <= c.last {
			return 0, false
		}
		c.count++
		c.last = at
		return numbered, true
	case tText, tFrame, tStack, tBlocks, tSegment, tPair:
		codes := m.codes[t]
		if int(n) < len(codes) && codes[n] != 0 {
			return codes[n], true
		}
		return m.newCode(t, n, w)
	case tDict, tList, tOther, tNone, tBuilder:
		if n == 0 && m.fixed[t] == 0 && len(m.words) < maxCodes {
			m.fixed[t] = uint16(len(m.words))
			m.words = append(m.words, w)
		}
		return m.fixed[t], n == 0 && m.fixed[t] != 0
	}
	return 0, false
}

// newCode gives w a code, if there are any left.
func (m *memo) newCode(t tag, n, w uint32) (uint16, bool) {
	if len(m.words) >= maxCodes || n > 1<<18 {
		return 0, false
	}
	for int(n) >= len(m.codes[t]) {
		m.codes[t] = append(m.codes[t], make([]uint16, max(1024, len(m.codes[t])))...)
	}
	k := uint16(len(m.words))
	m.words = append(m.words, w)
	m.codes[t][n] = k
	return k, true
}

// widen makes words of the codes of c.
func (m *memo) widen(c *memoPart) {
	c.words = make([]uint32, memoChunk)
	n := c.first
	for i, k := range c.codes {
		if k == numbered {
			c.words[i] = pack(c.of, uint64(n))
			n++
			continue
		}
		c.words[i] = m.words[k]
	}
	c.codes = nil
}

// holds is the tag of what slot i has.
func (m *memo) holds(i uint32) tag {
	if i < m.n {
		if c := &m.chunks[i>>memoBits]; c.codes != nil && c.codes[i&(memoChunk-1)] == numbered {
			return c.of
		}
	}
	return tag(m.get(i) >> idBits)
}
