package scan

import (
	"cmp"
	"encoding/binary"
	"math"
	"math/bits"
	"slices"
)

// A teddy finds a few atoms of any length, looking at every position with
// vector instructions. After the algorithm of the same name in Hyperscan (Wang
// et al., NSDI 2019): the atoms are dealt out to eight buckets, one bit each. For
// each of the first four bytes of an atom's window two tables, by the byte's low
// and high half, say which buckets have such a byte there; where the and of all
// eight look-ups is not zero, the atoms with the hash of the window are compared.
type teddy struct {
	use    level
	tables teddyTables
	wide   *wideTables // for AVX-512
	// shorts are the atoms by the hash of their window: those of hash h are
	// shorts[first[h]:first[h+1]]. Atoms shorter than a window are in tiny.
	shorts, tiny []short
	first        [257]uint16
}

// A short is an atom whose window starts off bytes from its start. An occurrence
// is the eight bytes there, or-ed with fold, and-ed with mask, that equal text: an
// atom of up to eight bytes is compared at once.
type short struct {
	text, fold, mask uint64
	hash             uint8
	follows          bool // as the atom
	simple           bool // nothing else about the atom is to be looked at
	atom, off        int32
}

func newShort(a Atom, id int32, off int) short {
	e := short{atom: id, off: int32(off), follows: a.Follows, simple: len(a.Text) <= 8 && a.Except == nil && !a.Leads}
	for k := range min(len(a.Text), 8) {
		c, shift := a.Text[k], 8*k
		e.mask |= 0xff << shift
		if a.Fold && c|0x20 >= 'a' && c|0x20 <= 'z' {
			e.fold |= 0x20 << shift
		}
		e.text |= uint64(c) << shift
	}
	e.text |= e.fold
	if off+teddyWindow <= len(a.Text) {
		var window uint32
		for k := range teddyWindow {
			window |= uint32(a.Text[off+k]) << (8 * k)
		}
		e.hash = windowHash(window)
	}
	return e
}

// windowHash is the same for both cases of a window's letters.
func windowHash(window uint32) uint8 { return uint8((window | 0x20202020) * 0x9E3779B1 >> 24) }

const (
	teddyWindow = 4
	teddyAtoms  = 96 // more make too many false alarms
	maxTeddies  = 2  // more cost as much as a sieve
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
	slices.SortFunc(windows, func(a, b window) int {
		return cmp.Or(cmp.Compare(a.text, b.text), cmp.Compare(a.atom, b.atom))
	})
	var deal dealer
	for _, w := range windows {
		bucket := deal.bucket(w.text, atoms[w.atom].Fold)
		if e := newShort(atoms[w.atom], w.atom, int(w.off)); len(w.text) < teddyWindow {
			t.tiny = append(t.tiny, e)
		} else {
			t.shorts = append(t.shorts, e)
		}
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
	slices.SortStableFunc(t.shorts, func(a, b short) int { return int(a.hash) - int(b.hash) })
	for _, e := range t.shorts {
		t.first[int(e.hash)+1]++
	}
	for h := range t.first[1:] {
		t.first[h+1] += t.first[h]
	}
	return t
}

// A dealer deals windows out to buckets. A bucket lets through every text that at
// each place has a byte of one of its windows there, so it takes windows that are
// alike; how many other texts it lets through is the product over the places of
// how often their bytes occur.
type dealer struct {
	has   [8][teddyWindow][256]bool
	often [8][teddyWindow]float64 // sum over the bytes of has
}

// bucket takes the window into the bucket that lets the fewest texts more through
// for it, and returns that.
func (d *dealer) bucket(text string, fold bool) int {
	var sets [teddyWindow][]byte
	for k := range sets {
		switch {
		case k >= len(text):
			for c := range 256 {
				sets[k] = append(sets[k], byte(c))
			}
		case fold && text[k]|0x20 >= 'a' && text[k]|0x20 <= 'z':
			sets[k] = []byte{text[k] | 0x20, text[k] &^ 0x20}
		default:
			sets[k] = []byte{text[k]}
		}
	}
	best, least := 0, math.Inf(1)
	for b := range d.has {
		before, after := 1.0, 1.0
		for k, set := range sets {
			sum := d.often[b][k]
			before *= sum
			for _, c := range set {
				if !d.has[b][k][c] {
					sum += byteOften[c]
				}
			}
			after *= sum
		}
		if more := after - before; more < least {
			best, least = b, more
		}
	}
	for k, set := range sets {
		for _, c := range set {
			if !d.has[best][k][c] {
				d.has[best][k][c] = true
				d.often[best][k] += byteOften[c]
			}
		}
	}
	return best
}

// byteOften is how often each byte occurs, by the table of classes.
var byteOften = func() (p [256]float64) {
	var size [classes]float64
	for _, class := range classOf {
		size[class]++
	}
	for c, class := range classOf {
		p[c] = math.Exp2(-float64(frequency[class]-'0')/2) / size[class]
		switch {
		case c >= 'a' && c <= 'z':
			p[c] *= 1.8 // most letters are small
		case c >= 'A' && c <= 'Z':
			p[c] *= 0.2
		}
	}
	return p
}()

// scan adds the occurrences whose windows start in buf[i:limit] and returns limit,
// from where the next call goes on.
func (t *teddy) scan(p *pass, i, limit int) int {
	buf := p.buf
	if t.wide != nil {
		// The kernel loads 67 bytes for 64 positions.
		if n := (min(limit, len(buf)-teddyWindow+1) - i) / 64; n > 0 {
			teddyList(&buf[i], n, t.wide, &p.sets)
			for _, set := range p.sets[:n] {
				for ; set != 0; set &= set - 1 {
					t.verify(p, i+bits.TrailingZeros64(set))
				}
				i += 64
			}
		}
		if n := limit - i; n > 0 && n < 64 {
			var end [64 + teddyWindow]byte // zeros behind the text
			copy(end[:], buf[i:])
			teddyList(&end[0], 1, t.wide, &p.sets)
			for set := p.sets[0] & (1<<n - 1); set != 0; set &= set - 1 {
				t.verify(p, i+bits.TrailingZeros64(set))
			}
			return limit
		}
	}
	for t.use == avx2 && i+32 <= limit {
		n, set := teddyFind(buf[i:min(limit+teddyWindow-1, len(buf))], &t.tables)
		i += n
		if set == 0 {
			break
		}
		for ; set != 0; set &= set - 1 {
			t.verify(p, i+bits.TrailingZeros32(set))
		}
		i += 32
	}
	for ; i < limit; i++ {
		t.verify(p, i)
	}
	return limit
}

// verify adds the occurrences whose windows start at i.
func (t *teddy) verify(p *pass, i int) {
	if len(t.tiny) > 0 {
		p.shorts(t.tiny, i)
	}
	if i+teddyWindow > len(p.buf) {
		return
	}
	h := int(windowHash(binary.LittleEndian.Uint32(p.buf[i:])))
	p.shorts(t.shorts[t.first[h]:t.first[h+1]], i)
}

// shorts adds those of list whose windows start at i.
func (p *pass) shorts(list []short, i int) {
	for k := range list {
		e := &list[k]
		at := i - int(e.off)
		if at < 0 || at+8 > len(p.buf) {
			p.add(at, e.atom)
		} else if (binary.LittleEndian.Uint64(p.buf[at:])|e.fold)&e.mask == e.text && !(e.follows && at < p.dim) {
			if e.simple {
				p.hits = append(p.hits, Hit{at, e.atom})
			} else {
				p.add(at, e.atom)
			}
		}
	}
}
