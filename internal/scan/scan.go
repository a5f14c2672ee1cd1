// Package scan finds many literals in whole buffers of log text at once, and
// the lines that hold them. It knows no literal's meaning.
//
// A literal of eight bytes or more is found by a sieve: at every offset of a
// grid of step four it holds one of the four consecutive five-byte grams of its
// rarest window, so only every fourth position is hashed and looked up in a
// bitmap that stays in the first-level cache, and only where a bit is set is a
// literal compared; hundreds of long literals cost little more than a few.
// Shorter ones are found by a teddy for each hundred of them where the
// processor has AVX2, and else by a denser sieve, which costs more than that of
// all the long ones. Both have kernels for AVX2 and, two to four times as quick,
// for AVX-512. So choose literals of eight bytes or more where there is a choice,
// and rare ones: each hit costs about 20 ns. Newlines are counted in bulk between
// the lines that are visited.
package scan

import (
	"bytes"
	"slices"
	"sync"
)

// An Atom is one literal to look for.
type Atom struct {
	Text string
	Fold bool // ASCII letters match in either case
	// Except takes occurrences out; nil takes none out. A literal that is common
	// in one well-known place costs little there.
	Except *Except
	// Behind an occurrence of an atom that leads, those of atoms that follow may be
	// left out, to the end of the line but for at most maxDim bytes. A progress bar
	// prints its frames, each with the same literals, into one line.
	Leads, Follows bool
}

// Except names the neighbours, in exact case, with which an atom doesn't count.
type Except struct {
	Behind []string // the occurrence stands right behind one of these
	Before []string // one of these follows
}

// A Hit is one occurrence of an atom.
type Hit struct {
	Off  int   // offset of the literal's first byte in the text searched
	Atom int32 // index into the atoms given to New
}

// A Matcher looks for a fixed set of atoms. It is safe for use by several
// goroutines at once.
type Matcher struct {
	atoms   []Atom
	filters []filter
	longest int // bytes of the longest atom
}

// longAtom is the least length, in bytes, of an atom that the sparse sieve finds.
const longAtom = 8

// A filter finds the occurrences of some of the atoms.
type filter interface {
	// scan adds the occurrences that positions from i on and before limit give
	// away, and returns the i of the call for the next limit.
	scan(p *pass, i, limit int) int
}

// A pass is one run of Scan over a text.
type pass struct {
	atoms []Atom
	buf   []byte
	hits  []Hit
	dim   int // before this offset atoms that follow don't count

	// Where the kernels for AVX-512 put the positions of one block that are worth
	// a look: written without a branch, because whether a position is one cannot
	// be predicted.
	list [scanBlock/4 + 16]uint32 // of a sieve: offsets
	sets [scanBlock / 64]uint64   // of a teddy: a bit for each position
}

var passes = sync.Pool{New: func() any { return new(pass) }}

// New compiles atoms. An empty atom never matches. It takes about two
// microseconds for each atom.
func New(atoms []Atom) *Matcher { return build(atoms, best) }

// A level says which instructions the kernels may use.
type level int

const (
	plainGo level = iota
	avx2
	avx512 // with BW, and VBMI for teddies
)

func build(atoms []Atom, use level) *Matcher {
	m := &Matcher{atoms: slices.Clone(atoms)}
	var long, short []int32
	for i, a := range m.atoms {
		switch n := len(a.Text); {
		case n == 0:
			continue
		case n >= longAtom:
			long = append(long, int32(i))
		default:
			short = append(short, int32(i))
		}
		m.longest = max(m.longest, len(a.Text))
	}
	if use > plainGo && len(short) <= maxTeddies*teddyAtoms {
		n := (len(short) + teddyAtoms - 1) / teddyAtoms // as few teddies as will do, of one size
		for k := range n {
			m.filters = append(m.filters, newTeddy(m.atoms, short[len(short)*k/n:len(short)*(k+1)/n], use))
		}
		short = nil
	}
	for _, ids := range [][]int32{long, short} {
		if len(ids) > 0 {
			m.filters = append(m.filters, newSieve(m.atoms, ids, use))
		}
	}
	return m
}

// scanBlock is how many bytes each filter runs over before the next one does: the
// text is then still in the first-level cache, and hits need little sorting.
const scanBlock = 8 << 10

// Scan appends every occurrence of every atom in buf to hits, overlapping ones
// too, ordered by Off and then by Atom, and returns the extended slice.
func (m *Matcher) Scan(buf []byte, hits []Hit) []Hit {
	var next [2 + maxTeddies]int // position of each filter
	base := len(hits)
	p := passes.Get().(*pass)
	p.atoms, p.buf, p.hits, p.dim = m.atoms, buf, hits, 0
	for at := 0; at < len(buf); at += scanBlock {
		limit := min(at+scanBlock, len(buf))
		found := len(p.hits)
		for k, f := range m.filters {
			next[k] = f.scan(p, next[k], limit)
		}
		if len(p.hits) > found {
			m.order(p.hits[base:], found-base, at)
		}
	}
	hits = p.hits
	p.atoms, p.buf, p.hits = nil, nil, nil
	passes.Put(p)
	return hits
}

// add adds the hit of the atom at buf[at:] if it is there.
func (p *pass) add(at int, atom int32) {
	a := &p.atoms[atom]
	if at < 0 || at+len(a.Text) > len(p.buf) || a.Follows && at < p.dim {
		return
	}
	text := p.buf[at : at+len(a.Text)]
	if string(text) == a.Text || a.Fold && equalFold(text, a.Text) {
		if a.Except != nil && a.Except.holds(p.buf[:at], p.buf[at+len(a.Text):]) {
			return
		}
		p.hits = append(p.hits, Hit{at, atom})
		if a.Leads {
			p.lead(at)
		}
	}
}

// maxDim is short enough that a window of a long line still lies around each hit.
const maxDim = leftContext

// lead notes that an atom which leads stands at buf[at:].
func (p *pass) lead(at int) {
	p.dim = min(at+maxDim, len(p.buf))
	if nl := bytes.IndexByte(p.buf[at:p.dim], '\n'); nl >= 0 {
		p.dim = at + nl
	}
}

// holds reports whether an occurrence between before and after is taken out.
func (e *Except) holds(before, after []byte) bool {
	for _, s := range e.Behind {
		if bytes.HasSuffix(before, []byte(s)) {
			return true
		}
	}
	for _, s := range e.Before {
		if bytes.HasPrefix(after, []byte(s)) {
			return true
		}
	}
	return false
}

// equalFold reports whether b and s, of equal length, differ in the case of
// ASCII letters only.
func equalFold(b []byte, s string) bool {
	for i, c := range b {
		d := s[i]
		if c != d && (c^d != 0x20 || c|0x20 < 'a' || c|0x20 > 'z') {
			return false
		}
	}
	return true
}

// order sorts hits, of which those before found are sorted already and the rest
// were found in the block that starts at byte at. A hit lies at most the longest
// atom before the position that gave it away, so it is nearly in place.
func (m *Matcher) order(hits []Hit, found, at int) {
	budget := 16 * (len(hits) - found)
	for i := max(found, 1); i < len(hits); i++ {
		h := hits[i]
		j := i
		for ; j > 0 && before(h, hits[j-1]); j-- {
			hits[j] = hits[j-1]
		}
		hits[j] = h
		if budget -= i - j; budget < 0 {
			lo := found
			for lo > 0 && hits[lo-1].Off >= at-m.longest {
				lo--
			}
			slices.SortFunc(hits[lo:], func(a, b Hit) int {
				if before(a, b) {
					return -1
				}
				return 1
			})
			return
		}
	}
}

func before(a, b Hit) bool { return a.Off < b.Off || a.Off == b.Off && a.Atom < b.Atom }
