package allocator

// An index is a sorted list of keys (a, b) with a value each, in two levels: chunks
// of at most chunkMax entries, and the first key of each. Against a tree of pointers
// it has neither garbage nor pointer chasing: a search reads the heads, which lie
// together, and one chunk. Free blocks are kept by (size, address), ranges by
// (address, 0).
type index struct {
	heads  []key
	chunks [][]entry
	n      int
	spare  [][]entry
}

const chunkMax = 64

type key struct{ a, b uint64 }

type entry struct {
	key
	v int32
}

// A place is where an entry stands; it holds until the next insert or remove.
type place struct{ chunk, i int }

func (k key) less(o key) bool { return k.a < o.a || k.a == o.a && k.b < o.b }

// chunkOf returns the last chunk whose first key is not above k, or 0.
func (x *index) chunkOf(k key) int {
	lo, hi := 0, len(x.heads)
	for lo < hi {
		m := int(uint(lo+hi) >> 1)
		if k.less(x.heads[m]) {
			hi = m
		} else {
			lo = m + 1
		}
	}
	return max(lo-1, 0)
}

// lowerIn returns the first place in c whose key is not below k.
func lowerIn(c []entry, k key) int {
	lo, hi := 0, len(c)
	for lo < hi {
		m := int(uint(lo+hi) >> 1)
		if c[m].less(k) {
			lo = m + 1
		} else {
			hi = m
		}
	}
	return lo
}

// seek returns the place of the first entry whose key is not below (a, b); it is not
// ok where there is none.
func (x *index) seek(a, b uint64) (place, bool) {
	if x.n == 0 {
		return place{}, false
	}
	k := key{a, b}
	c := x.chunkOf(k)
	i := lowerIn(x.chunks[c], k)
	if i == len(x.chunks[c]) {
		c, i = c+1, 0
	}
	return place{c, i}, c < len(x.chunks)
}

func (x *index) at(p place) *entry { return &x.chunks[p.chunk][p.i] }

func (x *index) next(p place) (place, bool) {
	p.i++
	if p.i == len(x.chunks[p.chunk]) {
		p = place{p.chunk + 1, 0}
	}
	return p, p.chunk < len(x.chunks)
}

func (x *index) prev(p place) (place, bool) {
	if p.i > 0 {
		return place{p.chunk, p.i - 1}, true
	}
	if p.chunk == 0 {
		return p, false
	}
	return place{p.chunk - 1, len(x.chunks[p.chunk-1]) - 1}, true
}

// last returns the place of the greatest entry.
func (x *index) last() (place, bool) {
	if x.n == 0 {
		return place{}, false
	}
	c := len(x.chunks) - 1
	return place{c, len(x.chunks[c]) - 1}, true
}

// floor returns the place of the last entry whose key is not above (a, b).
func (x *index) floor(a, b uint64) (place, bool) {
	p, ok := x.seek(a, b)
	if ok && x.at(p).key == (key{a, b}) {
		return p, true
	}
	if !ok {
		return x.last()
	}
	return x.prev(p)
}

// insert adds a key that is not in x.
func (x *index) insert(a, b uint64, v int32) {
	k := key{a, b}
	x.n++
	if len(x.chunks) == 0 {
		x.chunks = append(x.chunks, append(x.fresh(), entry{k, v}))
		x.heads = append(x.heads, k)
		return
	}
	c := x.chunkOf(k)
	if len(x.chunks[c]) == chunkMax {
		x.split(c)
		if !k.less(x.heads[c+1]) {
			c++
		}
	}
	ch := x.chunks[c]
	i := lowerIn(ch, k)
	ch = append(ch, entry{})
	copy(ch[i+1:], ch[i:])
	ch[i] = entry{k, v}
	x.chunks[c] = ch
	x.heads[c] = ch[0].key
}

func (x *index) fresh() []entry {
	if n := len(x.spare); n > 0 {
		c := x.spare[n-1]
		x.spare = x.spare[:n-1]
		return c
	}
	return make([]entry, 0, chunkMax)
}

func (x *index) split(c int) {
	old := x.chunks[c]
	at := chunkMax / 2
	if c == len(x.chunks)-1 {
		at = chunkMax - chunkMax/8 // keys often come in rising order
	}
	high := append(x.fresh(), old[at:]...)
	x.chunks[c] = old[:at]
	x.chunks = append(x.chunks, nil)
	copy(x.chunks[c+2:], x.chunks[c+1:])
	x.chunks[c+1] = high
	x.heads = append(x.heads, key{})
	copy(x.heads[c+2:], x.heads[c+1:])
	x.heads[c+1] = high[0].key
}

// remove takes (a, b) out and returns its value; it is not ok where x has no such key.
func (x *index) remove(a, b uint64) (int32, bool) {
	p, ok := x.seek(a, b)
	if !ok || x.at(p).key != (key{a, b}) {
		return 0, false
	}
	v := x.at(p).v
	x.removeAt(p)
	return v, true
}

func (x *index) removeAt(p place) {
	x.n--
	ch := x.chunks[p.chunk]
	copy(ch[p.i:], ch[p.i+1:])
	ch = ch[:len(ch)-1]
	x.chunks[p.chunk] = ch
	if len(ch) > 0 {
		x.heads[p.chunk] = ch[0].key
		return
	}
	if len(x.spare) < 8 {
		x.spare = append(x.spare, ch)
	}
	x.chunks = append(x.chunks[:p.chunk], x.chunks[p.chunk+1:]...)
	x.heads = append(x.heads[:p.chunk], x.heads[p.chunk+1:]...)
}

// get returns the value of (a, b).
func (x *index) get(a, b uint64) (int32, bool) {
	p, ok := x.seek(a, b)
	if !ok || x.at(p).key != (key{a, b}) {
		return 0, false
	}
	return x.at(p).v, true
}
