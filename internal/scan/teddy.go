package scan

import (
	"cmp"
	"encoding/binary"
	"math/bits"
	"slices"
)

// A teddy finds a few atoms of any length, looking at every position with
// vector instructions. After the algorithm of the same name in Hyperscan (Wang
// et al., NSDI 2019): the atoms are dealt out to eight buckets, one bit each. For
// each of the first four bytes of an atom's window two tables, by the byte's low
// and high half, say which buckets have such a byte there; where the and of all
// eight look-ups is not zero, the atoms of the buckets left are compared.
type teddy struct {
	use     level
	tables  teddyTables
	wide    *wideTables // for AVX-512
	buckets [8][]short
}

// A short says that an occurrence of atom may start off bytes before a window
// whose bytes, letters folded by fold, are those of text.
type short struct {
	text, fold, mask uint32
	atom, off        int32
}

const (
	teddyWindow = 4
	teddyAtoms  = 32 // more make too many false alarms
	maxTeddies  = 4  // more cost as much as a sieve
)

// teddyTables holds, for each byte of the window, the table by the low half of
// the byte and then that by the high half.
type teddyTables [2 * teddyWindow][16]byte

// wideTables holds, for each byte of the window, the table by the low seven bits
// of the byte: letters of one bucket don't mix as they do by halves.
type wideTables [teddyWindow][128]byte

func newTeddy(atoms []Atom, ids []int32, use level) *teddy {
	t := &teddy{use: use}
	if use >= avx512 {
		t.wide = new(wideTables)
	}
	type window struct {
		text string
		atom int32
		off  int32
	}
	windows := make([]window, len(ids))
	for i, id := range ids {
		text := atoms[id].Text
		n := min(len(text), teddyWindow)
		at := rarest(text, mesh{1, n})
		windows[i] = window{text[at : at+n], id, int32(at)}
	}
	// Windows that start alike share a bucket, which lets the fewest others in.
	slices.SortFunc(windows, func(a, b window) int {
		return cmp.Or(cmp.Compare(a.text, b.text), cmp.Compare(a.atom, b.atom))
	})
	for i, w := range windows {
		bucket := i * 8 / len(windows)
		e := short{atom: w.atom, off: w.off}
		for k := range len(w.text) {
			c, shift := w.text[k], 8*k
			e.mask |= 0xff << shift
			if atoms[w.atom].Fold && c|0x20 >= 'a' && c|0x20 <= 'z' {
				e.fold |= 0x20 << shift
			}
			e.text |= uint32(c) << shift
		}
		e.text |= e.fold
		t.buckets[bucket] = append(t.buckets[bucket], e)
		for k := range teddyWindow {
			for c := range 256 {
				if k >= len(w.text) || byte(c) == w.text[k] || atoms[w.atom].Fold && equalFold([]byte{byte(c)}, w.text[k:k+1]) {
					t.tables[2*k][c&15] |= 1 << bucket
					t.tables[2*k+1][c>>4] |= 1 << bucket
					if t.wide != nil {
						t.wide[k][c&127] |= 1 << bucket
					}
				}
			}
		}
	}
	return t
}

// scan appends the occurrences whose windows start in buf[from:limit] and
// returns limit, from where the next call goes on.
func (t *teddy) scan(atoms []Atom, buf []byte, from, limit int, hits []Hit, found *candidates) (int, []Hit) {
	i := from
	if t.wide != nil {
		// The kernel loads 67 bytes for 64 positions.
		if n := (min(limit, len(buf)-teddyWindow+1) - i) / 64; n > 0 {
			teddyList(&buf[i], n, t.wide, &found.sets)
			for _, set := range found.sets[:n] {
				for ; set != 0; set &= set - 1 {
					hits = t.verify(atoms, buf, i+bits.TrailingZeros64(set), hits)
				}
				i += 64
			}
		}
	}
	for t.use == avx2 && i+32 <= limit {
		n, set := teddyFind(buf[i:min(limit+teddyWindow-1, len(buf))], &t.tables)
		i += n
		if set == 0 {
			break
		}
		for ; set != 0; set &= set - 1 {
			hits = t.verify(atoms, buf, i+bits.TrailingZeros32(set), hits)
		}
		i += 32
	}
	for ; i < limit; i++ {
		hits = t.verify(atoms, buf, i, hits)
	}
	return limit, hits
}

// verify appends the occurrences whose windows start at i.
func (t *teddy) verify(atoms []Atom, buf []byte, i int, hits []Hit) []Hit {
	var window uint32
	if i+4 <= len(buf) {
		window = binary.LittleEndian.Uint32(buf[i:])
	} else {
		for k, c := range buf[i:] {
			window |= uint32(c) << (8 * k)
		}
	}
	set := byte(0xff)
	for k := range teddyWindow {
		c := byte(window >> (8 * k))
		set &= t.tables[2*k][c&15] & t.tables[2*k+1][c>>4]
	}
	for ; set != 0; set &= set - 1 {
		for _, e := range t.buckets[bits.TrailingZeros8(set)] {
			if (window|e.fold)&e.mask == e.text {
				hits = appendHit(hits, atoms, buf, i-int(e.off), e.atom)
			}
		}
	}
	return hits
}
