package memsnap

import (
	"encoding/binary"
	"hash/maphash"
	"slices"
)

// A table finds ids by hash: open addressing, 32 bits of hash beside each id. Its
// seed is random, so that no file can be made to fill one chain; ids are given in
// the order of the file, so that nothing that is seen depends on it.
type table struct {
	slots []uint64 // hash<<32 | id+1; 0 is free
	n     int
}

// find returns the id of hash h for which same holds.
func (t *table) find(h uint32, same func(id uint32) bool) (id uint32, ok bool) {
	if len(t.slots) == 0 {
		return 0, false
	}
	mask := uint32(len(t.slots) - 1)
	for i := h & mask; ; i = (i + 1) & mask {
		s := t.slots[i]
		if s == 0 {
			return 0, false
		}
		if uint32(s>>32) == h && same(uint32(s)-1) {
			return uint32(s) - 1, true
		}
	}
}

// add enters id under h.
func (t *table) add(h, id uint32) {
	if t.n*4 >= len(t.slots)*3 {
		old := t.slots
		t.slots = make([]uint64, max(256, 2*len(old)))
		for _, s := range old {
			if s != 0 {
				t.enter(s)
			}
		}
	}
	t.enter(uint64(h)<<32 | uint64(id+1))
	t.n++
}

func (t *table) enter(s uint64) {
	mask := uint32(len(t.slots) - 1)
	i := uint32(s>>32) & mask
	for t.slots[i] != 0 {
		i = (i + 1) & mask
	}
	t.slots[i] = s
}

func fold(h uint64) uint32 { return uint32(h>>32) ^ uint32(h) }

// texts are the distinct strings.
type texts struct {
	list  []string
	index table
	bytes int64
}

// id returns the index of the string b.
func (t *texts) id(seed maphash.Seed, b []byte) uint32 {
	h := fold(maphash.Bytes(seed, b))
	if id, ok := t.index.find(h, func(id uint32) bool { return t.list[id] == string(b) }); ok {
		return id
	}
	id := uint32(len(t.list))
	t.list = append(t.list, string(b))
	t.index.add(h, id)
	t.bytes += int64(len(b))
	return id
}

// A frame is a function of a stack, by the indices of its strings.
type frame struct {
	name, file uint32
	line       int64
}

// mix is a hash of small keys.
func mix(seed uint64, a, b uint64) uint32 {
	const k1, k2 = 0x9e3779b97f4a7c15, 0xd6e8feb86659fd93
	h := (seed ^ a) * k1
	h ^= h >> 32
	h = (h ^ b) * k2
	h ^= h >> 29
	return fold(h * k1)
}

// stacks are the distinct lists of frames, in chunks of words.
type stacks struct {
	list  [][]uint32
	index table
	chunk []uint32 // the rest of the newest
	words int64
}

const stackChunk = 16 << 10

// keep copies frames into the chunks.
func (s *stacks) keep(frames []uint32) []uint32 {
	if len(frames) > len(s.chunk) {
		s.chunk = make([]uint32, max(stackChunk, len(frames)))
	}
	out := s.chunk[:len(frames):len(frames)]
	copy(out, frames)
	s.chunk = s.chunk[len(frames):]
	s.words += int64(len(frames))
	return out
}

// id returns the index of the stack with these frames.
func (s *stacks) id(seed uint64, frames []uint32) uint32 {
	h := uint64(len(frames))
	for _, f := range frames {
		h = (h ^ seed ^ uint64(f)) * 0x9e3779b97f4a7c15
		h ^= h >> 31
	}
	k := fold(h)
	if id, ok := s.index.find(k, func(id uint32) bool { return slices.Equal(s.list[id], frames) }); ok {
		return id
	}
	id := uint32(len(s.list))
	s.list = append(s.list, s.keep(frames))
	s.index.add(k, id)
	return id
}

// runs remember which bytes, references to the memo up to APPENDS, were which stack. They hold
// only as long as no slot of the memo is stored to a second time.
//
// They are found by some of the bytes before the first that is an APPENDS or looks like one, and all
// bytes are compared then.
type runs struct {
	index table
	list  []run
	raw   [][]byte // chunks
	bytes int
}

type run struct {
	chunk, from, n uint32
	stack          uint32
}

const (
	runChunk = 64 << 10
	maxRuns  = 16 << 20 // bytes of runs that are remembered
	maxAlike = 8        // runs that are compared for one
)

// sample is a hash of some of the first n bytes of w, which has 8 more.
func sample(seed uint64, w []byte, n int) uint32 {
	at := func(i int) uint64 { return binary.LittleEndian.Uint64(w[i:]) }
	if n < 8 {
		return mix(seed, uint64(n), at(0)<<(64-8*n))
	}
	h := mix(seed, uint64(n)^at(0)*3, at(n-8))
	if n < 64 {
		return h
	}
	return mix(seed^uint64(h)<<32, at(n/2)^at(n/4)*5, at(n/4+n/2)^at(n/8+n/4+n/2)*7)
}

// begins returns the run with which w begins, nil if none is known.
func (r *runs) begins(seed uint64, w []byte, first int) *run {
	if len(r.index.slots) == 0 || len(w) < first+8 {
		return nil
	}
	h, alike := sample(seed, w, first), 0
	mask := uint32(len(r.index.slots) - 1)
	for i := h & mask; alike < maxAlike; i = (i + 1) & mask {
		s := r.index.slots[i]
		if s == 0 {
			return nil
		}
		if uint32(s>>32) != h {
			continue
		}
		x := &r.list[uint32(s)-1]
		if int(x.n) <= len(w) && string(w[:x.n]) == string(r.raw[x.chunk][x.from:x.from+x.n]) {
			return x
		}
		alike++
	}
	return nil
}

// add remembers raw, unless there is too much already.
func (r *runs) add(seed uint64, raw []byte, first int, stack uint32) {
	if r.bytes+len(raw) > maxRuns || len(raw) > runChunk || first+8 > cap(raw) {
		return
	}
	last := len(r.raw) - 1
	if last < 0 || len(r.raw[last])+len(raw) > cap(r.raw[last]) {
		r.raw = append(r.raw, make([]byte, 0, runChunk))
		last++
	}
	r.index.add(sample(seed, raw[:first+8], first), uint32(len(r.list)))
	r.list = append(r.list, run{uint32(last), uint32(len(r.raw[last])), uint32(len(raw)), stack})
	r.raw[last] = append(r.raw[last], raw...)
	r.bytes += len(raw)
}
