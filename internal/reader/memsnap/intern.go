package memsnap

import (
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

// runs remember which bytes were which stack or frame: all bytes are compared, not only their
// hash. They hold only as long as no slot of the memo that they name is stored to again.
type runs struct {
	index table
	list  []run
	raw   [][]byte // chunks
	bytes int
}

type run struct {
	at uint32 // its chunk and, in 16 bits, where in it
	n  uint32 // bytes
	id uint32 // of the stack or frame
}

const (
	runChunk = 64 << 10
	maxRuns  = 16 << 20 // bytes of runs that are remembered
)

func (r *runs) bytesOf(x *run) []byte {
	from := x.at % runChunk
	return r.raw[x.at/runChunk][from : from+x.n]
}

// find returns the number of the run raw, whose hash is h.
func (r *runs) find(h uint32, raw []byte) (i uint32, ok bool) {
	return r.index.find(h, func(i uint32) bool { return string(r.bytesOf(&r.list[i])) == string(raw) })
}

// add remembers raw, unless there is too much already.
func (r *runs) add(h uint32, raw []byte, id uint32) {
	if r.bytes+len(raw) > maxRuns || len(raw) > runChunk {
		return
	}
	last := len(r.raw) - 1
	if last < 0 || len(r.raw[last])+len(raw) > cap(r.raw[last]) {
		r.raw = append(r.raw, make([]byte, 0, runChunk))
		last++
	}
	r.index.add(h, uint32(len(r.list)))
	r.list = append(r.list, run{uint32(last*runChunk + len(r.raw[last])), uint32(len(raw)), id})
	r.raw[last] = append(r.raw[last], raw...)
	r.bytes += len(raw)
}

// forget drops all runs. A chunk and a small index serve again, so that a file that makes it
// forget each run does not cost much.
func (r *runs) forget() {
	if len(r.list) == 0 {
		return
	}
	kept := runs{list: r.list[:0], raw: append([][]byte(nil), r.raw[0][:0])}
	if len(r.index.slots) <= 256 {
		clear(r.index.slots)
		kept.index.slots = r.index.slots
	}
	*r = kept
}
