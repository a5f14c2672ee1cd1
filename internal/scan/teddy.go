package scan

import (
	"encoding/binary"
	"math"
	"slices"
)

// A teddy finds atoms of any length, looking at every position with vector
// instructions. After the algorithm of the same name in Hyperscan (Wang et al.,
// NSDI 2019): the atoms are dealt out to eight buckets, one bit each. For each of
// the first bytes of an atom's window a table says which buckets have such a byte
// there; where the and of the look-ups is not zero, one of the atoms may be.
// Such a position is kept if a hash of the window is that of an atom's, and only
// then are atoms compared. Which window and which bucket an atom has decides how
// many positions that are: see places.
type teddy struct {
	use    level
	wide   *wideTables   // for AVX-512
	nibble *nibbleTables // for AVX2
	grams  gramTable
}

const (
	window       = 4 // bytes that are hashed, and looked up in wideTables
	reach        = 6 // bytes that are looked up in nibbleTables
	teddyBuckets = 8
)

// nibbleBuckets returns how many buckets n atoms have with nibbleTables, which let
// more through than wideTables.
func nibbleBuckets(n int) int {
	if n > 500 {
		return 2 * teddyBuckets
	}
	return teddyBuckets
}

// wideTables holds, for each byte of the window, the table by the low seven bits
// of the byte.
type wideTables [window][128]byte

// nibbleTables holds, for each byte from the window's start, the table by the low
// half of the byte and then that by the high half; their bits say which buckets
// have no such byte.
type nibbleTables [2 * reach][16]byte

// newTeddy makes the teddy of those atoms that places deals to the buckets from
// first on.
func newTeddy(atoms []Atom, places []place, first int, use level) *teddy {
	t := &teddy{use: use, wide: new(wideTables), nibble: new(nibbleTables)}
	for k := range t.nibble {
		for c := range t.nibble[k] {
			t.nibble[k][c] = math.MaxUint8
		}
	}
	var grams []gram
	for id, a := range atoms {
		at := places[id]
		bit := int(at.bucket) - first
		if a.Text == "" || bit < 0 || bit >= teddyBuckets {
			continue
		}
		t.deal(a, at.off, 1<<bit)
		grams = appendGrams(grams, a, int32(id), at.off)
	}
	t.grams.fill(atoms, grams)
	return t
}

// deal lets the window of a at off through the bucket of the bit.
func (t *teddy) deal(a Atom, off int, bit byte) {
	for k := range reach {
		if off+k >= len(a.Text) { // anything may follow the atom
			for c := range 128 {
				if k < window {
					t.wide[k][c] |= bit
				}
			}
			for c := range 16 {
				t.nibble[2*k][c] &^= bit
				t.nibble[2*k+1][c] &^= bit
			}
			continue
		}
		for _, c := range a.reads(off + k) {
			if k < window {
				t.wide[k][c&127] |= bit
			}
			t.nibble[2*k][c&15] &^= bit
			t.nibble[2*k+1][c>>4] &^= bit
		}
	}
}

// reads returns what byte i of the atom may read in the text; twice the same where
// it is one byte only.
func (a *Atom) reads(i int) [2]byte {
	c := a.Text[i]
	if a.Fold && letter(c) {
		return [2]byte{c, c ^ 0x20}
	}
	return [2]byte{c, c}
}

func letter(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' }

// scan adds the occurrences whose windows start in buf[i:limit] and returns from
// where the next call goes on. i is a multiple of 64.
func (t *teddy) scan(p *pass, i, limit int) int {
	buf := p.buf
	// The kernels load some bytes past the last block.
	if n := (min(limit, len(buf)-reach+1) - i) / 64; n > 0 {
		t.blocks(p, buf[i:], i, n)
		i += 64 * n
	}
	for ; i < limit && limit == len(buf); i += 64 {
		var end [64 + reach]byte // zeros behind the text
		copy(end[:], buf[i:])
		t.blocks(p, end[:], i, 1)
	}
	return i
}

// blocks looks at n blocks of text, which starts at buf[i].
func (t *teddy) blocks(p *pass, text []byte, i, n int) {
	var count int
	if t.use >= avx512 {
		count = teddyWide(&text[0], n, t.wide, &p.list[0], &p.marks[i/64], p.dense)
	} else {
		for at := 0; at < n; at += halved {
			part := min(n-at, halved)
			halve(&text[64*at], part, &p.high[0], &p.marks[i/64+at])
			count += teddyNibble(&text[64*at], part, t.nibble, &p.high[0], &p.list[count], 64*at, p.dense)
		}
	}
	p.dense = 0
	if count > n/8 {
		p.dense = 1
	}
	if count == 0 {
		return
	}
	if t.use >= avx512 {
		count = siftWide(&text[0], &p.list[0], count, &t.grams.set)
	} else {
		count = t.grams.set.sift(text, p.list[:count])
	}
	// A few at a time, because what is found may make later ones not count.
	for list := p.list[:count]; len(list) > 0; {
		part := list[:min(len(list), 32)]
		list = list[len(part):]
		if len(t.grams.tiny) == 0 {
			part = t.grams.likely(p, i, part)
		}
		for _, off := range part {
			t.grams.verify(p, i+int(off))
		}
	}
}

// halved is how many blocks are halved before they are looked at: they stay in
// the first-level cache.
const halved = 64

// A gramSet holds the hashes of grams, a bit each.
type gramSet [1 << (gramBits - 5)]uint32

const gramBits = 16 // 8 KiB, which stay in the first-level cache beside the text

func gramHash(text uint32) uint32 { return text * 0x9E3779B1 >> (32 - gramBits) }

// sift keeps those of the offsets into text at which a gram of the set may stand.
func (s *gramSet) sift(text []byte, list []uint32) int {
	n := 0
	for _, off := range list {
		list[n] = off
		h := gramHash(binary.LittleEndian.Uint32(text[off:]))
		n += int(s[h/32] >> (h % 32) & 1)
	}
	return n
}

// A gramTable finds the atoms by the grams that their windows may read.
type gramTable struct {
	set gramSet
	// entries by bucket, which is the low bits of the hash; those of bucket b are
	// entries[first[b]:first[b+1]].
	entries []gram
	first   [1<<bucketBits + 1]uint32
	heads   [1 << bucketBits]head
	tiny    []gram // of atoms shorter than a window
}

const bucketBits = 12

// A gram says that an occurrence of atom may start off bytes before text, which is
// four bytes as a filter loads them.
type gram struct {
	text uint32
	atom int32
	off  int32
	// The occurrence reads check in the eight bytes at probe from its start, or-ed
	// with fold and and-ed with mask.
	probe             int32
	check, fold, mask uint64
	whole             bool // that is the whole atom, and nothing else about it is to be looked at
	follows           bool // as the atom
}

// newGram returns the gram of an atom at off, without its text.
func newGram(a Atom, id int32, off int) gram {
	g := gram{atom: id, off: int32(off), probe: int32(probe(len(a.Text), off))}
	for k := range min(len(a.Text), 8) {
		c, shift := a.Text[int(g.probe)+k], 8*k
		g.mask |= 0xff << shift
		if a.Fold && letter(c) {
			g.fold |= 0x20 << shift
		}
		g.check |= uint64(c) << shift
	}
	g.check |= g.fold
	g.whole, g.follows = len(a.Text) <= 8 && a.Except == nil && !a.Leads, a.Follows
	return g
}

// appendGrams adds the grams of an atom's window at off: one for each way to write
// its letters. The rest of a window that reaches over the atom's end may be
// anything.
func appendGrams(grams []gram, a Atom, id int32, off int) []gram {
	g := newGram(a, id, off)
	first := len(grams)
	grams = append(grams, g)
	for k := range window {
		if off+k >= len(a.Text) {
			break
		}
		c := a.Text[off+k]
		for i := range grams[first:] {
			grams[first+i].text |= uint32(c) << (8 * k)
		}
		if a.Fold && letter(c) {
			for _, g := range grams[first:] {
				g.text ^= 0x20 << (8 * k)
				grams = append(grams, g)
			}
		}
	}
	return grams
}

// probe returns which eight bytes of an atom of n bytes are checked: those that
// share as few as possible with the window at off.
func probe(n, off int) int {
	last := n - 8
	if last <= 0 {
		return 0
	}
	if off+window-last < 8-off { // fewer at the end than at the start
		return last
	}
	return 0
}

// fill makes the table of grams.
func (t *gramTable) fill(atoms []Atom, grams []gram) {
	for _, g := range grams {
		n := len(atoms[g.atom].Text) - int(g.off) // bytes of the gram that are the atom's
		if n < window {
			t.tiny = append(t.tiny, g)
			t.set.addAll(g.text, n)
			continue
		}
		t.set.add(g.text)
		b := bucket(g.text)
		t.first[b+1]++
		t.heads[b].add(atoms[g.atom].Text, g)
	}
	for b := range t.first[1:] {
		t.first[b+1] += t.first[b]
	}
	// Into their buckets, by atom in each: the order they have.
	t.entries = make([]gram, len(grams)-len(t.tiny))
	next := t.first
	for _, g := range grams {
		if len(atoms[g.atom].Text)-int(g.off) < window {
			continue
		}
		b := bucket(g.text)
		t.entries[next[b]] = g
		next[b]++
	}
	t.tiny = slices.CompactFunc(t.tiny, func(a, b gram) bool { return a.atom == b.atom }) // their check knows the case
}

func bucket(text uint32) uint32 { return gramHash(text) & (1<<bucketBits - 1) }

func (s *gramSet) add(text uint32) {
	h := gramHash(text)
	s[h/32] |= 1 << (h % 32)
}

// addAll adds every gram that starts with the n bytes of text.
func (s *gramSet) addAll(text uint32, n int) {
	if n < 2 { // too many to go through
		for i := range s {
			s[i] = math.MaxUint32
		}
		return
	}
	for rest := range uint32(1) << (8 * (window - n)) {
		s.add(text | rest<<(8*n))
	}
}

// likely keeps those of the offsets from base where the text around the gram is
// that of one of its bucket's that counts there. Most grams in the text that are
// some atom's belong to another word, and this tells without a branch that nothing
// could predict.
func (t *gramTable) likely(p *pass, base int, list []uint32) []uint32 {
	n, buf := 0, p.buf
	for _, off := range list {
		list[n] = off
		i := base + int(off)
		if i < 2 || i+window+2 > len(buf) {
			n++
			continue
		}
		w := (*[window + 4]byte)(buf[i-2:])
		h := &t.heads[bucket(binary.LittleEndian.Uint32(w[2:]))]
		at := i + int(h.at)
		if at < 0 || at+8 > len(buf) {
			n++
			continue
		}
		other := (binary.LittleEndian.Uint64(buf[at:])|h.fold)&h.mask ^ h.check
		same := uint32((other|-other)>>63) ^ 1
		dim := uint32(uint64(i-p.dim)>>63) & h.follow // before p.dim
		n += int(same &^ dim & (h.near[0] >> (w[0] & 31)) & (h.near[1] >> (w[1] & 31)) & (h.near[2] >> (w[6] & 31)) & (h.near[3] >> (w[7] & 31)))
	}
	return list[:n]
}

// A head says what the text around the grams of a bucket is like.
type head struct {
	// near says which bytes, by their low five bits, may stand two before, one
	// before, one behind and two behind a gram; the case of letters is none of them.
	near [4]uint32
	// The eight bytes at from the gram, or-ed with fold and and-ed with mask, are
	// check: that of the gram if the bucket has but one.
	at                int32
	grams             int32
	check, fold, mask uint64
	follow            uint32 // 1 if all atoms of the bucket follow
}

// add lets what stands around the gram g of an atom through.
func (h *head) add(text string, g gram) {
	for k, at := range [...]int{int(g.off) - 2, int(g.off) - 1, int(g.off) + window, int(g.off) + window + 1} {
		if at < 0 || at >= len(text) {
			h.near[k] = math.MaxUint32
		} else {
			h.near[k] |= 1 << (text[at] & 31)
		}
	}
	h.grams++
	if h.grams == 1 {
		h.at, h.check, h.fold, h.mask, h.follow = g.probe-g.off, g.check, g.fold, g.mask, 1
	} else {
		h.at, h.check, h.fold, h.mask = 0, 0, 0, 0
	}
	if !g.follows {
		h.follow = 0
	}
}

// verify adds the occurrences whose windows start at i.
func (t *gramTable) verify(p *pass, i int) {
	for k := range t.tiny {
		p.check(&t.tiny[k], i-int(t.tiny[k].off))
	}
	if i+window > len(p.buf) {
		return
	}
	text := binary.LittleEndian.Uint32(p.buf[i:])
	b := bucket(text)
	entries := t.entries[t.first[b]:t.first[b+1]]
	for k := range entries {
		if e := &entries[k]; e.text == text {
			p.check(e, i-int(e.off))
		}
	}
}

// check adds the occurrence of e's atom at buf[at:], if it is one.
func (p *pass) check(e *gram, at int) {
	w := at + int(e.probe)
	switch {
	case at < 0 || w+8 > len(p.buf):
		p.add(at, e.atom)
	case (binary.LittleEndian.Uint64(p.buf[w:])|e.fold)&e.mask != e.check || e.follows && at < p.dim:
	case e.whole:
		p.hits = append(p.hits, Hit{at, e.atom})
	default:
		p.add(at, e.atom)
	}
}
