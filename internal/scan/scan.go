// Package scan finds many literals in whole buffers of log text at once, and
// the lines that hold them. It knows no literal's meaning.
//
// With AVX2, and about twice as quick with AVX-512, a teddy looks at every position
// for all literals of any length, and marks the newlines on the way. On other
// processors a literal of eight bytes or more is found by a sieve: at every offset
// of a grid of step five it holds one of the five consecutive four-byte grams of
// its rarest window, so only every fifth position is hashed and looked up in a
// bitmap that stays in the first-level cache. Shorter ones are found by a denser
// sieve, which costs more than that of all the long ones. Hundreds of literals cost
// little more than a few, as long as the places where they are looked for are well
// chosen: plan.txt holds those of the program's own, found by Train; others are
// placed by tables of how often bytes occur. So choose rare literals of eight bytes
// or more where there is a choice: each hit costs about 15 ns.
package scan

import (
	"bytes"
	_ "embed"
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

// dims reports whether the order in which the atom is found matters: one filter
// finds all such atoms.
func (a *Atom) dims() bool { return a.Leads || a.Follows }

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
	longest int  // bytes of the longest atom
	marking bool // the filters see the newlines
}

// maxFilters is the greatest number of filters of a matcher.
const maxFilters = 2

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

	marks []uint64               // a bit for each byte of buf: the newlines, where teddies look
	list  [scanBlock + 64]uint32 // of a teddy: offsets worth a look in one block
	dense uint64                 // not zero if most blocks of 64 bytes have such offsets
	high  [64*halved + 32]byte   // what halve writes
	spare []uint64               // for marks
}

var passes = sync.Pool{New: func() any { return new(pass) }}

// New compiles atoms. An empty atom never matches. It takes a few microseconds
// for each atom, and more for one that plan.txt does not know.
func New(atoms []Atom) *Matcher { return build(atoms, trained(), best) }

// trained is the plan for the atoms of the program, made by TestPlanCurrent.
var trained = sync.OnceValue(func() Plan { return ParsePlan(trainedText) })

//go:embed plan.txt
var trainedText string

// A level says which instructions the kernels may use.
type level int

const (
	plainGo level = iota
	avx2          // with BMI1
	avx512        // with BW, VBMI and VBMI2
)

func build(atoms []Atom, plan Plan, use level) *Matcher {
	m := &Matcher{atoms: slices.Clone(atoms)}
	var long, short []int32
	for i, a := range m.atoms {
		switch n := len(a.Text); {
		case n == 0:
			continue
		case n >= longAtom && !a.dims():
			long = append(long, int32(i))
		default:
			short = append(short, int32(i))
		}
		m.longest = max(m.longest, len(a.Text))
	}
	if len(long)+len(short) == 0 {
		return m
	}
	if use > plainGo {
		m.teddies(plan, use, len(long)+len(short))
		return m
	}
	for _, ids := range [][]int32{long, short} {
		if len(ids) > 0 {
			m.filters = append(m.filters, newSieve(m.atoms, ids, plan))
		}
	}
	return m
}

// teddies makes the filters for n atoms.
func (m *Matcher) teddies(plan Plan, use level, n int) {
	buckets := teddyBuckets
	hint := plan.wide
	if use < avx512 {
		buckets = nibbleBuckets(n)
		hint = plan.nibble
	}
	at := places(m.atoms, buckets, hint)
	for first := 0; first < buckets; first += teddyBuckets {
		m.filters = append(m.filters, newTeddy(m.atoms, at, first, use))
	}
	m.marking = true
}

// scanBlock is how many bytes each filter runs over before the next one does: the
// text is then still in the first-level cache, and hits need little sorting.
const scanBlock = 16 << 10

// Scan appends every occurrence of every atom in buf to hits, overlapping ones
// too, ordered by Off and then by Atom, and returns the extended slice.
func (m *Matcher) Scan(buf []byte, hits []Hit) []Hit {
	p := passes.Get().(*pass)
	if words := len(buf)/64 + 1; m.marking && len(p.spare) < words {
		p.spare = make([]uint64, words)
	}
	hits = m.scan(p, buf, hits, p.spare)
	passes.Put(p)
	return hits
}

// scan is Scan. A matcher that is marking also leaves in marks a bit for each byte
// of buf that is a newline; there must be room for one word more than buf fills.
func (m *Matcher) scan(p *pass, buf []byte, hits []Hit, marks []uint64) []Hit {
	var next [maxFilters]int // position of each filter
	base := len(hits)
	p.atoms, p.buf, p.hits, p.dim, p.marks = m.atoms, buf, hits, 0, marks
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
	p.atoms, p.buf, p.hits, p.marks = nil, nil, nil, nil
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
