package scan

import (
	"encoding/binary"
)

// A sieve passes over text in steps of stride bytes and looks up the hash of
// the gram, the next few bytes, at each. An atom of stride+gram-1 bytes or more
// has exactly one of its stride consecutive grams on that grid, so each
// occurrence gives itself away exactly once.
type sieve struct {
	mesh
	mask uint32 // or-ed to the four bytes loaded: folds case, blanks what is beyond the gram
	bits bitmap
	// entries are the grams of every atom, by bucket, which is the low bits of
	// the hash; those of bucket b are entries[first[b]:first[b+1]].
	entries []gram
	first   [1<<bucketBits + 1]uint32
}

// A mesh is the grid of a sieve. It holds atoms of stride+gram-1 bytes.
type mesh struct{ stride, gram int }

// meshes are those that a sieve may have, by the least length of its atoms. A
// wide step is quick, a long gram has few false alarms.
var meshes = [...]mesh{1: {1, 1}, 2: {1, 2}, 3: {2, 2}, 4: {2, 3}, 5: {3, 3}, 6: {3, 4}, 7: {4, 4}, 8: {5, 4}}

const hashBits = 18 // a bitmap of 32 KiB, which stays in the first-level cache

type bitmap [1 << (hashBits - 6)]uint64

// hash spreads a masked gram over hashBits bits.
func hash(gram uint32) uint32 { return gram * 0x9E3779B1 >> (32 - hashBits) }

func sieveBucket(gram uint32) uint32 { return hash(gram) & (1<<bucketBits - 1) }

// newSieve makes the sieve for the atoms with the given ids, which are not empty.
func newSieve(atoms []Atom, ids []int32, plan Plan) *sieve {
	shortest, fold := len(meshes)-1, false
	for _, id := range ids {
		shortest = min(shortest, len(atoms[id].Text))
		fold = fold || atoms[id].Fold
	}
	s := &sieve{mesh: meshes[shortest], mask: uint32(0xffffffff << (8 * meshes[shortest].gram) & 0xffffffff)}
	if fold {
		s.mask |= 0x20202020
	}
	grams := make([]gram, 0, len(ids)*s.stride)
	for _, id := range ids {
		at, text := plan.window(atoms[id], s.mesh), []byte(atoms[id].Text)
		for off := at; off < at+s.stride; off++ {
			g := newGram(atoms[id], id, off)
			g.text = s.load(text, off)
			grams = append(grams, g)
		}
	}
	for _, g := range grams {
		h := hash(g.text)
		s.bits[h/64] |= 1 << (h % 64)
		s.first[sieveBucket(g.text)+1]++
	}
	for b := range s.first[1:] {
		s.first[b+1] += s.first[b]
	}
	// Into their buckets, by atom and offset in each: the order they have.
	s.entries = make([]gram, len(grams))
	next := s.first
	for _, g := range grams {
		b := sieveBucket(g.text)
		s.entries[next[b]] = g
		next[b]++
	}
	return s
}

// next returns the first grid position in buf, from i on and before limit, whose
// gram is in the bitmap, or else the first one at or after limit.
func (s *sieve) next(buf []byte, i, limit int) int {
	set, mask := &s.bits, s.mask
	end := min(limit, len(buf)-3) // before it all loads are inside buf
	// Written out for the usual strides, because constant offsets need no bounds
	// checks.
	switch s.stride {
	case 5:
		for ; i < end-35; i += 40 {
			w := (*[39]byte)(buf[i:])
			if set.has(binary.LittleEndian.Uint32(w[0:]) | mask) {
				return i
			}
			if set.has(binary.LittleEndian.Uint32(w[5:]) | mask) {
				return i + 5
			}
			if set.has(binary.LittleEndian.Uint32(w[10:]) | mask) {
				return i + 10
			}
			if set.has(binary.LittleEndian.Uint32(w[15:]) | mask) {
				return i + 15
			}
			if set.has(binary.LittleEndian.Uint32(w[20:]) | mask) {
				return i + 20
			}
			if set.has(binary.LittleEndian.Uint32(w[25:]) | mask) {
				return i + 25
			}
			if set.has(binary.LittleEndian.Uint32(w[30:]) | mask) {
				return i + 30
			}
			if set.has(binary.LittleEndian.Uint32(w[35:]) | mask) {
				return i + 35
			}
		}
	case 3:
		for ; i < end-9; i += 12 {
			w := (*[13]byte)(buf[i:])
			if set.has(binary.LittleEndian.Uint32(w[0:]) | mask) {
				return i
			}
			if set.has(binary.LittleEndian.Uint32(w[3:]) | mask) {
				return i + 3
			}
			if set.has(binary.LittleEndian.Uint32(w[6:]) | mask) {
				return i + 6
			}
			if set.has(binary.LittleEndian.Uint32(w[9:]) | mask) {
				return i + 9
			}
		}
	case 2:
		for ; i < end-6; i += 8 {
			w := (*[10]byte)(buf[i:])
			if set.has(binary.LittleEndian.Uint32(w[0:]) | mask) {
				return i
			}
			if set.has(binary.LittleEndian.Uint32(w[2:]) | mask) {
				return i + 2
			}
			if set.has(binary.LittleEndian.Uint32(w[4:]) | mask) {
				return i + 4
			}
			if set.has(binary.LittleEndian.Uint32(w[6:]) | mask) {
				return i + 6
			}
		}
	}
	for ; i < end; i += s.stride {
		if set.has(binary.LittleEndian.Uint32(buf[i:]) | mask) {
			return i
		}
	}
	for ; i < limit; i += s.stride {
		if set.has(s.load(buf, i)) {
			return i
		}
	}
	return i
}

// has reports whether the masked gram is in the bitmap.
func (b *bitmap) has(gram uint32) bool {
	h := hash(gram)
	return b[h/64]&(1<<(h%64)) != 0
}

// load returns the masked gram at i. Beyond the end of buf the bytes read as
// zero; what that lets through, the comparison refuses.
func (s *sieve) load(buf []byte, i int) uint32 {
	if i+4 <= len(buf) {
		return binary.LittleEndian.Uint32(buf[i:]) | s.mask
	}
	var b [4]byte
	copy(b[:], buf[i:])
	return binary.LittleEndian.Uint32(b[:]) | s.mask
}

// scan adds the occurrences that grid positions from i on and before limit give
// away and returns the grid position from where the next call goes on.
func (s *sieve) scan(p *pass, i, limit int) int {
	buf := p.buf
	for i = s.next(buf, i, limit); i < limit; i = s.next(buf, i+s.stride, limit) {
		s.verify(p, i)
	}
	return i
}

// verify adds the occurrences that the gram at position i gives away.
func (s *sieve) verify(p *pass, i int) {
	text := s.load(p.buf, i)
	b := sieveBucket(text)
	entries := s.entries[s.first[b]:s.first[b+1]]
	for k := range entries {
		if e := &entries[k]; e.text == text {
			p.check(e, i-int(e.off))
		}
	}
}
