package scan

import (
	"math"
	"strconv"
	"strings"
)

// A place is where a filter looks for an atom: at the window that starts off
// bytes from the atom's start, which is dealt to a bucket.
type place struct{ off, bucket int }

// A Plan says where the filters look for each of some atoms, as Train found it.
// Its text form has a line for each atom; see String.
type Plan struct {
	of map[planKey]planned
}

type planKey struct {
	text string
	fold bool
}

// planned are the places of one atom: for teddies with wideTables, for those with
// nibbleTables, and in a sieve, which has no buckets.
type planned struct {
	wide, nibble place
	sieve        int
}

// ParsePlan reads the text form of a plan. What it does not understand, or what
// does not fit an atom, it leaves out: atoms without a place are given one.
func ParsePlan(text string) Plan {
	p := Plan{of: make(map[planKey]planned, strings.Count(text, "\n"))}
	for line := range strings.Lines(text) {
		var n [5]int
		rest, ok := line, true
		for i := range n {
			var field string
			field, rest, _ = strings.Cut(rest, " ")
			var err error
			n[i], err = strconv.Atoi(field)
			ok = ok && err == nil && n[i] >= 0
		}
		quoted, fold := strings.CutPrefix(strings.TrimRight(rest, "\n"), "fold ")
		literal, err := strconv.Unquote(quoted)
		if !ok || err != nil {
			continue
		}
		p.of[planKey{literal, fold}] = planned{place{n[0], n[1]}, place{n[2], n[3]}, n[4]}
	}
	return p
}

func (p Plan) wide(a Atom) (place, bool) {
	at, ok := p.of[planKey{a.Text, a.Fold}]
	return at.wide, ok
}

func (p Plan) nibble(a Atom) (place, bool) {
	at, ok := p.of[planKey{a.Text, a.Fold}]
	return at.nibble, ok
}

// window returns where the window of an atom starts in a sieve.
func (p Plan) window(a Atom, m mesh) int {
	text := a.Text[:min(len(a.Text), 1<<12)] // a window there is as good
	if at, ok := p.of[planKey{a.Text, a.Fold}]; ok && at.sieve+m.stride+m.gram-1 <= len(text) {
		return at.sieve
	}
	return rarest(text, m)
}

// windowsOf returns how many windows an atom of n bytes has.
func windowsOf(n int) int { return max(n-window, 0) + 1 }

// buckets returns how many of n buckets the atom may be dealt to.
func (a *Atom) buckets(n int) int {
	if a.dims() {
		return teddyBuckets // those of one teddy
	}
	return n
}

// places returns the place of each atom in one of the buckets. Those that hint
// knows are taken from it, the others are dealt out by how often their bytes and
// grams occur in ordinary text.
func places(atoms []Atom, buckets int, hint func(Atom) (place, bool)) []place {
	out := make([]place, len(atoms))
	d := make(dealer, buckets)
	var left []int
	for i, a := range atoms {
		if a.Text == "" {
			continue
		}
		at, ok := hint(a)
		if !ok || at.off >= windowsOf(len(a.Text)) || at.bucket >= a.buckets(buckets) {
			left = append(left, i)
			continue
		}
		out[i] = at
		d[at.bucket].take(a, at.off)
	}
	for _, i := range left {
		out[i] = d.place(atoms[i])
		d[out[i].bucket].take(atoms[i], out[i].off)
	}
	return out
}

// A dealer deals windows out to buckets. A bucket lets through every text that at
// each place has a byte of one of its windows there, so it takes windows that are
// alike; how many texts it lets through is the product over the places of how
// often their bytes occur.
type dealer []dealt

type dealt struct {
	has   [window][256]bool
	often [window]float64 // sum over the bytes of has
}

// maxTried bounds how many windows of a long atom are tried.
const maxTried = 16

// place returns the window and the bucket for which the fewest texts more are let
// through.
func (d dealer) place(a Atom) place {
	best, least := place{}, math.Inf(1)
	for off := range min(windowsOf(len(a.Text)), maxTried) {
		var own float64
		if off+window <= len(a.Text) {
			own = float64(weight(a.Text[off:off+window])) / (1 << 56)
		}
		for b := range a.buckets(len(d)) {
			if more := own + d[b].more(a, off); more < least {
				best, least = place{off, b}, more
			}
		}
	}
	return best
}

// more estimates how many texts more the bucket lets through with the window.
func (d *dealt) more(a Atom, off int) float64 {
	before, after := 1.0, 1.0
	for k := range window {
		sum := d.often[k]
		before *= sum
		if off+k >= len(a.Text) {
			sum = 1
		} else {
			c := a.Text[off+k]
			if !d.has[k][c] {
				sum += byteOften[c]
			}
			if a.Fold && letter(c) && !d.has[k][c^0x20] {
				sum += byteOften[c^0x20]
			}
		}
		after *= sum
	}
	return after - before
}

// take puts the window into the bucket.
func (d *dealt) take(a Atom, off int) {
	for k := range window {
		if off+k >= len(a.Text) {
			for c := range 256 {
				d.add(k, byte(c))
			}
			continue
		}
		for _, c := range a.reads(off + k) {
			d.add(k, c)
		}
	}
}

func (d *dealt) add(k int, c byte) {
	if !d.has[k][c] {
		d.has[k][c] = true
		d.often[k] += byteOften[c]
	}
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
