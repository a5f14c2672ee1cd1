package scan

import (
	"cmp"
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
	tables  teddyTables
	buckets [8][]entry // gram is not used
}

const (
	teddyWindow = 4
	teddyAtoms  = 32 // more make too many false alarms
	maxTeddies  = 4  // more cost as much as a sieve
)

// teddyTables holds, for each byte of the window, the table by the low half of
// the byte and then that by the high half.
type teddyTables [2 * teddyWindow][16]byte

func newTeddy(atoms []Atom, ids []int32) *teddy {
	t := &teddy{}
	type window struct {
		text string
		entry
	}
	windows := make([]window, len(ids))
	for i, id := range ids {
		text := atoms[id].Text
		n := min(len(text), teddyWindow)
		at := rarest(text, mesh{1, n})
		windows[i] = window{text[at : at+n], entry{atom: id, off: int32(at)}}
	}
	// Windows that start alike share a bucket, which lets the fewest others in.
	slices.SortFunc(windows, func(a, b window) int {
		return cmp.Or(cmp.Compare(a.text, b.text), cmp.Compare(a.atom, b.atom))
	})
	for i, w := range windows {
		bucket := i * 8 / len(windows)
		t.buckets[bucket] = append(t.buckets[bucket], w.entry)
		for k := range teddyWindow {
			for c := range 256 {
				if k >= len(w.text) || byte(c) == w.text[k] || atoms[w.atom].Fold && equalFold([]byte{byte(c)}, w.text[k:k+1]) {
					t.tables[2*k][c&15] |= 1 << bucket
					t.tables[2*k+1][c>>4] |= 1 << bucket
				}
			}
		}
	}
	return t
}

// scan appends the occurrences whose windows start in buf[from:limit] and
// returns limit, from where the next call goes on.
func (t *teddy) scan(atoms []Atom, buf []byte, from, limit int, hits []Hit) (int, []Hit) {
	i := from
	for i+32 <= limit {
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
	set := byte(0xff)
	for k, c := range buf[i:min(i+teddyWindow, len(buf))] {
		set &= t.tables[2*k][c&15] & t.tables[2*k+1][c>>4]
	}
	for ; set != 0; set &= set - 1 {
		for _, e := range t.buckets[bits.TrailingZeros8(set)] {
			hits = appendHit(hits, atoms, buf, i-int(e.off), e.atom)
		}
	}
	return hits
}
