package scan

import (
	"cmp"
	"fmt"
	"math"
	"math/bits"
	"math/rand/v2"
	"slices"
	"strings"
)

// Train finds the places of the atoms for which searching texts like the given
// ones costs least. Each text weighs the same and must be longer than 64 bytes.
// It takes seconds for hundreds of atoms, and the same input gives the same plan.
func Train(atoms []Atom, texts ...[]byte) Plan {
	atoms = slices.Clone(atoms)
	slices.SortFunc(atoms, func(a, b Atom) int { // short ones have the least choice
		return cmp.Or(cmp.Compare(len(a.Text), len(b.Text)), cmp.Compare(a.Text, b.Text))
	})
	atoms = slices.DeleteFunc(atoms, func(a Atom) bool { return a.Text == "" })
	counts := countGrams(atoms, window, texts)
	n := len(atoms)
	wide := newTrainer(atoms, teddyBuckets, wideColumns(), counts, texts).train()
	nibble := newTrainer(atoms, nibbleBuckets(n), nibbleColumns(), counts, texts).train()
	mesh := meshes[len(meshes)-1]
	counts = countGrams(atoms, mesh.gram, texts)
	plan := Plan{of: make(map[planKey]planned, n)}
	for i, a := range atoms {
		plan.of[planKey{a.Text, a.Fold}] = planned{wide[i], nibble[i], counts.rarest(a, mesh)}
	}
	return plan
}

// String is the text form of the plan: for each atom a line of the window and the
// bucket for wideTables, those for nibbleTables, the window in a sieve, the word
// fold where case doesn't count, and the literal, quoted as in Go.
func (p Plan) String() string {
	keys := make([]planKey, 0, len(p.of))
	for k := range p.of {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, func(a, b planKey) int {
		if c := cmp.Compare(a.text, b.text); c != 0 || a.fold == b.fold {
			return c
		} else if b.fold {
			return -1
		}
		return 1
	})
	var out strings.Builder
	for _, k := range keys {
		at, fold := p.of[k], ""
		if k.fold {
			fold = "fold "
		}
		fmt.Fprintf(&out, "%d %d %d %d %d %s%q\n", at.wide.off, at.wide.bucket, at.nibble.off, at.nibble.bucket, at.sieve, fold, k.text)
	}
	return out.String()
}

// A column is one look-up of a teddy: of the byte k behind the window's start.
type column struct {
	k       int
	symbol  func(c byte) int // what the look-up tells apart
	symbols int
}

func wideColumns() (out []column) {
	for k := range window {
		out = append(out, column{k, func(c byte) int { return int(c & 127) }, 128})
	}
	return out
}

func nibbleColumns() (out []column) {
	for k := range reach {
		out = append(out, column{k, func(c byte) int { return int(c & 15) }, 16}, column{k, func(c byte) int { return int(c >> 4) }, 16})
	}
	return out
}

const (
	trainSamples = 1 << 16 // positions of the texts that a trainer looks at
	trainSweeps  = 16
	trainHeat    = 40
	trainTried   = 16 // windows of an atom that are tried
	// verifyCost is how much more a position costs where an atom's window stands
	// than one that only the tables let through.
	verifyCost = 4
)

// A trainer deals windows out to buckets by local search: it takes one atom after
// another out and puts it where it costs least. The cost is how many of the sampled
// positions the buckets let through.
type trainer struct {
	atoms   []Atom
	columns []column
	windows [][]trainWindow
	has     [][]sample // by column and symbol: the positions that have it there
	all     sample
	buckets []trainBucket
}

// A sample is a set of the sampled positions.
type sample []uint64

type trainWindow struct {
	off int
	own int // what it costs whatever the bucket
	// by column: the symbols that the atom may have there; none for any
	symbols [][]int
}

type trainBucket struct {
	through int      // sampled positions let through
	has     []sample // by column: the positions let through there
	uses    [][]int  // by column and symbol: how many windows have it
	any     []int    // by column: how many windows take every symbol
}

func newTrainer(atoms []Atom, buckets int, columns []column, counts gramCounts, texts [][]byte) *trainer {
	t := &trainer{atoms: atoms, columns: columns, windows: make([][]trainWindow, len(atoms))}
	t.sample(texts)
	total := 0
	for _, text := range texts {
		total += len(text)
	}
	for i, a := range atoms {
		for off := range windowsOf(len(a.Text)) {
			often := float64(counts.of(a, off)) / float64(total)
			w := trainWindow{off: off, own: int(verifyCost * often * trainSamples), symbols: make([][]int, len(columns))}
			for c, col := range columns {
				w.symbols[c] = col.of(a, off)
			}
			t.windows[i] = append(t.windows[i], w)
		}
		slices.SortStableFunc(t.windows[i], func(a, b trainWindow) int { return cmp.Compare(t.alone(a), t.alone(b)) })
		t.windows[i] = t.windows[i][:min(len(t.windows[i]), trainTried)]
	}
	for range buckets {
		b := trainBucket{has: make([]sample, len(columns)), uses: make([][]int, len(columns)), any: make([]int, len(columns))}
		for c, col := range columns {
			b.has[c] = make(sample, len(t.all))
			b.uses[c] = make([]int, col.symbols)
		}
		t.buckets = append(t.buckets, b)
	}
	return t
}

// of returns the symbols that the column may read of the atom's window at off.
func (col column) of(a Atom, off int) []int {
	i := off + col.k
	if i >= len(a.Text) {
		return nil
	}
	out := []int{col.symbol(a.Text[i])}
	if a.Fold && letter(a.Text[i]) {
		if s := col.symbol(a.Text[i] ^ 0x20); s != out[0] {
			out = append(out, s)
		}
	}
	return out
}

// sample draws positions, the same for every trainer.
func (t *trainer) sample(texts [][]byte) {
	r := rand.New(rand.NewPCG(1, 2))
	t.all = make(sample, trainSamples/64)
	t.has = make([][]sample, len(t.columns))
	for c, col := range t.columns {
		t.has[c] = make([]sample, col.symbols)
		for s := range t.has[c] {
			t.has[c][s] = make(sample, len(t.all))
		}
	}
	for i := range trainSamples {
		text := texts[i%len(texts)]
		at := r.IntN(len(text) - reach)
		t.all[i/64] |= 1 << (i % 64)
		for c, col := range t.columns {
			t.has[c][col.symbol(text[at+col.k])][i/64] |= 1 << (i % 64)
		}
	}
}

// alone estimates how many positions a window lets through in a bucket of its own.
func (t *trainer) alone(w trainWindow) float64 {
	p := 1.0
	for c, symbols := range w.symbols {
		n := 0
		for _, s := range symbols {
			for _, x := range t.has[c][s] {
				n += bits.OnesCount64(x)
			}
		}
		if symbols != nil {
			p *= (float64(n) + 1) / trainSamples
		}
	}
	return float64(w.own) + float64(p*trainSamples)
}

// train returns the place of each atom.
func (t *trainer) train() []place {
	at := make([]place, len(t.atoms)) // off counts windows
	r := rand.New(rand.NewPCG(3, 4))
	for sweep := range trainSweeps {
		// Places somewhat dearer than the cheapest are taken too at first, which
		// leads out of arrangements that no single move makes better.
		heat := trainHeat * float64(trainSweeps-sweep-4) / trainSweeps
		order := r.Perm(len(at))
		if sweep == 0 {
			slices.Sort(order) // those with the least choice first
			heat = 0
		}
		for _, i := range order {
			if sweep > 0 {
				t.buckets[at[i].bucket].change(t, &t.windows[i][at[i].off], -1)
			}
			at[i] = t.cheapest(i, max(heat, 0), r)
			t.buckets[at[i].bucket].change(t, &t.windows[i][at[i].off], 1)
		}
	}
	for i := range at {
		at[i].off = t.windows[i][at[i].off].off
	}
	return at
}

// cheapest returns where the atom costs least, give or take heat.
func (t *trainer) cheapest(i int, heat float64, r *rand.Rand) place {
	windows := t.windows[i]
	var best place
	least := math.Inf(1)
	for k := range windows {
		for b := range t.atoms[i].buckets(len(t.buckets)) {
			noise := float64(heat * r.ExpFloat64()) // rounded: the same on every processor
			if price := float64(t.buckets[b].price(t, &windows[k], least-noise)) + noise; price < least {
				best, least = place{k, b}, price
			}
		}
	}
	return best
}

// price returns what the window would cost in the bucket, or something above
// limit if that is more.
func (b *trainBucket) price(t *trainer, w *trainWindow, limit float64) int {
	if float64(w.own) > limit {
		return w.own
	}
	var have, one, two [2 * reach]sample
	for c, symbols := range w.symbols {
		have[c] = b.has[c]
		one[c], two[c] = have[c], have[c]
		switch {
		case symbols == nil:
			one[c] = t.all
		case len(symbols) == 2:
			two[c] = t.has[c][symbols[1]]
			fallthrough
		default:
			one[c] = t.has[c][symbols[0]]
		}
	}
	n := w.own - b.through
	for i := range t.all {
		x := ^uint64(0)
		for c := range w.symbols {
			x &= have[c][i] | one[c][i] | two[c][i]
		}
		n += bits.OnesCount64(x)
		if float64(n) > limit {
			break
		}
	}
	return n
}

// change puts a window into the bucket (by 1) or takes it out (by -1).
func (b *trainBucket) change(t *trainer, w *trainWindow, by int) {
	for c, symbols := range w.symbols {
		if symbols == nil {
			b.any[c] += by
		}
		for _, s := range symbols {
			b.uses[c][s] += by
		}
		clear(b.has[c])
		if b.any[c] > 0 {
			copy(b.has[c], t.all)
			continue
		}
		for s, n := range b.uses[c] {
			if n > 0 {
				for i, x := range t.has[c][s] {
					b.has[c][i] |= x
				}
			}
		}
	}
	b.through = 0
	for i := range t.all {
		x := ^uint64(0)
		for c := range b.has {
			x &= b.has[c][i]
		}
		b.through += bits.OnesCount64(x)
	}
}

// gramCounts says how often the grams of some atoms occur, letters without case.
type gramCounts struct {
	size int
	n    map[uint64]int
}

// countGrams counts the grams of size bytes of all atoms in the texts.
func countGrams(atoms []Atom, size int, texts [][]byte) gramCounts {
	g := gramCounts{size, map[uint64]int{}}
	var bits [1 << 16]bool // most grams of the texts are none of the atoms'
	short := func(x uint64) uint16 { return uint16(x * 0x9E3779B97F4A7C15 >> 48) }
	for _, a := range atoms {
		for off := range len(a.Text) - size + 1 {
			x := packFold(a.Text[off : off+size])
			g.n[x] = 0
			bits[short(x)] = true
		}
	}
	mask := uint64(1)<<(8*size) - 1
	for _, text := range texts {
		var x uint64
		for i, c := range text {
			x = (x<<8 | uint64(c|0x20)) & mask
			if i >= size-1 && bits[short(x)] {
				if n, ok := g.n[x]; ok {
					g.n[x] = n + 1
				}
			}
		}
	}
	return g
}

// of returns how often the gram of the atom at off occurs; 0 where it has none.
func (g gramCounts) of(a Atom, off int) int {
	if off+g.size > len(a.Text) {
		return 0
	}
	return g.n[packFold(a.Text[off:off+g.size])]
}

// rarest returns where the window of m starts whose grams are together the rarest;
// 0 for an atom too short for m.
func (g gramCounts) rarest(a Atom, m mesh) int {
	best, least := 0, math.MaxInt
	for off := range len(a.Text) - m.stride - m.gram + 2 {
		sum := 0
		for k := range m.stride {
			sum += g.of(a, off+k)
		}
		if sum < least {
			best, least = off, sum
		}
	}
	return best
}
