package scan

import (
	"encoding/binary"
	"math"
	"math/bits"
)

// A sieve passes over text in steps of stride bytes and looks up the hash of
// the gram, the next few bytes, at each. An atom of stride+gram-1 bytes or more
// has exactly one of its stride consecutive grams on that grid, so each
// occurrence gives itself away exactly once.
type sieve struct {
	mesh
	use  level  // kernels that may be used where the stride is four
	mask uint64 // or-ed to the eight bytes loaded: folds case, blanks what is beyond the gram
	bits bitmap
	// entries are the grams of every atom, by bucket, which is the low bits of
	// the hash; those of bucket b are entries[first[b]:first[b+1]].
	entries []entry
	first   [1<<bucketBits + 1]uint32
	fold    uint64                      // or-ed to the eight bytes at an entry's probe
	near    [1 << bucketBits]neighbours // of the grams of each bucket, of five bytes
}

// A mesh is the grid of a sieve. It holds atoms of stride+gram-1 bytes.
type mesh struct{ stride, gram int }

// meshes are those that a sieve may have, by the least length of its atoms. A
// wide step is quick, a long gram has few false alarms.
var meshes = [...]mesh{1: {1, 1}, 2: {1, 2}, 3: {2, 2}, 4: {2, 3}, 5: {3, 3}, 6: {3, 4}, 7: {3, 5}, 8: {4, 5}}

const (
	hashBits   = 18 // a bitmap of 32 KiB, which stays in the first-level cache
	bucketBits = 12
)

type bitmap [1 << (hashBits - 6)]uint64

// An entry says that an occurrence of atom may start off bytes before gram.
type entry struct {
	gram uint64 // as loaded and masked
	// check is what stands in the atom, folded, probe bytes from its start: eight
	// bytes that share as few as possible with the gram. Most grams in the text
	// that are some atom's belong to another word, which this tells without a
	// call. An atom too short for it has probe noProbe.
	check uint64
	atom  int32
	off   int16
	probe int16
}

const noProbe = -1

// probe returns the place and the text of an entry's check.
func probe(text []byte, off, gram int, fold uint64) (at int16, check uint64) {
	last := len(text) - 8
	if last < 0 || last > math.MaxInt16 {
		return noProbe, 0
	}
	if off+gram-last < 8-off { // fewer shared bytes at the end than at the start
		return int16(last), binary.LittleEndian.Uint64(text[last:]) | fold
	}
	return 0, binary.LittleEndian.Uint64(text) | fold
}

// hash spreads the first five bytes of a masked gram over hashBits bits:
// multiplicative hashing in 32-bit lanes, as sieveFind does it.
func hash(gram uint64) uint32 {
	return (uint32(gram)*0x9E3779B1 + uint32(gram>>8)*0x85EBCA77) >> (32 - hashBits)
}

func bucket(gram uint64) uint32 { return hash(gram) & (1<<bucketBits - 1) }

// newSieve makes the sieve for the atoms with the given ids, which are not empty.
func newSieve(atoms []Atom, ids []int32, use level) *sieve {
	shortest, fold := len(meshes)-1, false
	for _, id := range ids {
		shortest = min(shortest, len(atoms[id].Text))
		fold = fold || atoms[id].Fold
	}
	s := &sieve{use: use, mesh: meshes[shortest], mask: ^uint64(0) << (8 * meshes[shortest].gram)}
	if fold {
		s.fold = 0x2020202020202020
		s.mask |= s.fold
	}
	entries := make([]entry, 0, len(ids)*s.stride)
	for _, id := range ids {
		text := []byte(atoms[id].Text)
		at := rarest(atoms[id].Text[:min(len(text), 1<<12)], s.mesh) // a window there is as good
		for off := at; off < at+s.stride; off++ {
			e := entry{gram: s.load(text, off), atom: id, off: int16(off)}
			e.probe, e.check = probe(text, off, s.gram, s.fold)
			entries = append(entries, e)
		}
	}
	for _, e := range entries {
		h := hash(e.gram)
		s.bits[h/64] |= 1 << (h % 64)
		s.first[bucket(e.gram)+1]++
		s.near[bucket(e.gram)].add(atoms[e.atom].Text, int(e.off))
	}
	for b := range s.first[1:] {
		s.first[b+1] += s.first[b]
	}
	// Into their buckets, by atom and offset in each: the order they have.
	s.entries = make([]entry, len(entries))
	next := s.first
	for _, e := range entries {
		b := bucket(e.gram)
		s.entries[next[b]] = e
		next[b]++
	}
	return s
}

// next returns the first grid position in buf, from i on and before limit, whose
// gram is in the bitmap, or else the first one at or after limit.
func (s *sieve) next(buf []byte, i, limit int) int {
	// Several positions at a time while all loads are inside buf. Written out for
	// each stride, because constant offsets need no bounds checks.
	fast := min(limit, len(buf)-7) - 3*s.stride
	set, mask := &s.bits, s.mask
	switch s.stride {
	case 4:
		for ; i < fast-16; i += 32 {
			w := (*[36]byte)(buf[i:])
			if set.has(binary.LittleEndian.Uint64(w[0:]) | mask) {
				return i
			}
			if set.has(binary.LittleEndian.Uint64(w[4:]) | mask) {
				return i + 4
			}
			if set.has(binary.LittleEndian.Uint64(w[8:]) | mask) {
				return i + 8
			}
			if set.has(binary.LittleEndian.Uint64(w[12:]) | mask) {
				return i + 12
			}
			if set.has(binary.LittleEndian.Uint64(w[16:]) | mask) {
				return i + 16
			}
			if set.has(binary.LittleEndian.Uint64(w[20:]) | mask) {
				return i + 20
			}
			if set.has(binary.LittleEndian.Uint64(w[24:]) | mask) {
				return i + 24
			}
			if set.has(binary.LittleEndian.Uint64(w[28:]) | mask) {
				return i + 28
			}
		}
	case 3:
		for ; i < fast; i += 12 {
			w := (*[17]byte)(buf[i:])
			if set.has(binary.LittleEndian.Uint64(w[0:]) | mask) {
				return i
			}
			if set.has(binary.LittleEndian.Uint64(w[3:]) | mask) {
				return i + 3
			}
			if set.has(binary.LittleEndian.Uint64(w[6:]) | mask) {
				return i + 6
			}
			if set.has(binary.LittleEndian.Uint64(w[9:]) | mask) {
				return i + 9
			}
		}
	case 2:
		for ; i < fast; i += 8 {
			w := (*[14]byte)(buf[i:])
			if set.has(binary.LittleEndian.Uint64(w[0:]) | mask) {
				return i
			}
			if set.has(binary.LittleEndian.Uint64(w[2:]) | mask) {
				return i + 2
			}
			if set.has(binary.LittleEndian.Uint64(w[4:]) | mask) {
				return i + 4
			}
			if set.has(binary.LittleEndian.Uint64(w[6:]) | mask) {
				return i + 6
			}
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
func (b *bitmap) has(gram uint64) bool {
	h := hash(gram)
	return b[h/64]&(1<<(h%64)) != 0
}

// load returns the masked gram at i. Beyond the end of buf the bytes read as
// zero; what that lets through, the comparison refuses.
func (s *sieve) load(buf []byte, i int) uint64 {
	if i+8 <= len(buf) {
		return binary.LittleEndian.Uint64(buf[i:]) | s.mask
	}
	var b [8]byte
	copy(b[:], buf[i:])
	return binary.LittleEndian.Uint64(b[:]) | s.mask
}

// scan adds the occurrences that grid positions from i on and before limit give
// away and returns the grid position from where the next call goes on.
func (s *sieve) scan(p *pass, i, limit int) int {
	buf := p.buf
	if s.use >= avx512 && s.stride == 4 {
		// The kernel loads 65 bytes for 16 positions.
		if n := (min(limit, len(buf)-1) - i) / 64; n > 0 {
			count := sieveList(&buf[i], n, &s.bits, s.mask, &p.list)
			for _, off := range s.likely(buf, i, p.list[:count]) {
				s.verify(p, i+int(off))
			}
			i += 64 * n
		}
	}
	for s.use == avx2 && s.stride == 4 && i < limit {
		n, set := sieveFind(buf[i:min(limit+8, len(buf))], &s.bits, s.mask)
		i += n
		if set == 0 {
			break
		}
		for ; set != 0; set &= set - 1 {
			s.verify(p, i+4*bits.TrailingZeros32(set))
		}
		i += 32
	}
	for i = s.next(buf, i, limit); i < limit; i = s.next(buf, i+s.stride, limit) {
		s.verify(p, i)
	}
	return i
}

// likely keeps those of the offsets from base whose gram has the neighbours of one
// of its bucket's. Most grams in the text that are some atom's belong to another
// word, and this tells without a branch that nothing could predict.
func (s *sieve) likely(buf []byte, base int, list []uint32) []uint32 {
	n := 0
	for _, off := range list {
		list[n] = off
		i := base + int(off)
		if i < 2 || i+8 > len(buf) {
			n++
			continue
		}
		w := (*[10]byte)(buf[i-2:])
		near := &s.near[bucket(binary.LittleEndian.Uint64(w[2:])|s.mask)]
		n += int(near[0] >> (w[0] & 31) & (near[1] >> (w[1] & 31)) & (near[2] >> (w[7] & 31)) & (near[3] >> (w[8] & 31)) & 1)
	}
	return list[:n]
}

// neighbours says which bytes, by their low five bits, may stand two before, one
// before, one behind and two behind a gram; the case of letters is none of them.
type neighbours [4]uint32

// add lets the neighbours of the gram text[off:off+5] through.
func (n *neighbours) add(text string, off int) {
	for k, at := range [...]int{off - 2, off - 1, off + 5, off + 6} {
		if at < 0 || at >= len(text) {
			n[k] = math.MaxUint32
		} else {
			n[k] |= 1 << (text[at] & 31)
		}
	}
}

// verify adds the occurrences that the gram at position i gives away.
func (s *sieve) verify(p *pass, i int) {
	gram := s.load(p.buf, i)
	b := bucket(gram)
	entries := s.entries[s.first[b]:s.first[b+1]]
	for k := range entries {
		e := &entries[k]
		if e.gram != gram {
			continue
		}
		at := i - int(e.off)
		if e.probe != noProbe {
			w := at + int(e.probe)
			if w < 0 || w+8 > len(p.buf) || binary.LittleEndian.Uint64(p.buf[w:])|s.fold != e.check {
				continue
			}
		}
		p.add(at, e.atom)
	}
}
