package memsnap

import (
	"bytes"
	"encoding/binary"

	"github.com/inquest-dev/inquest/internal/format/pickle"
)

// What a snapshot says it has mostly said before, so that most lists of frames need not be
// taken apart, nor hashed: a guess names a run, and its bytes are compared. A guess may
// be wrong or stale, and then costs that comparison, which ends with the bytes that are equal.

// A hint is the run that a sample of its bytes meant last.
type hint struct {
	run
	age uint32
}

const (
	hintBits  = 13
	hintEnds  = 4       // bytes that may end a list, that are tried
	hintMost  = 4 << 10 // bytes of a list that is looked for this way
	hintLeast = 8
)

// hints are those of lists of references. What was stored at another age has been forgotten.
type hints struct {
	list []hint
	age  uint32
}

// sample is a number made of some bytes of raw, however long it is.
func sample(raw []byte) uint32 {
	k := len(raw) - 8
	a, b, c := binary.LittleEndian.Uint64(raw), binary.LittleEndian.Uint64(raw[k/2:]), binary.LittleEndian.Uint64(raw[k:])
	return uint32(((a*3+b)*0x9e3779b97f4a7c15 + c + uint64(k)) * 0xd6e8feb86659fd93 >> (64 - hintBits))
}

// set makes x the meaning of raw, its bytes.
func (h *hints) set(raw []byte, x *run) {
	if len(raw) < hintLeast {
		return
	}
	if h.list == nil {
		h.list = make([]hint, 1<<hintBits)
		h.age = 1
	}
	h.list[sample(raw)] = hint{*x, h.age}
}

// forget goes with that of the runs.
func (h *hints) forget() { h.age += uint32(min(len(h.list), 1)) }

// known is the list of references at the beginning of w, if it is likely: nil otherwise. The
// opcode that ends it may be part of a reference as well, so that some ends are tried.
func (h *hints) known(r *runs, w []byte) *run {
	n := 0
	for range hintEnds {
		k := bytes.IndexByte(w[n:min(len(w), hintMost)], byte(pickle.Appends))
		if k < 0 || len(h.list) == 0 {
			return nil
		}
		if n += k; n >= hintLeast {
			if x := &h.list[sample(w[:n])]; x.age == h.age && r.begins(w, &x.run) && w[x.n] == byte(pickle.Appends) {
				return &x.run
			}
		}
		n++
	}
	return nil
}

// A trail is the frames that are not shared, in the order in which they came where that was
// not foreseen. A stack that was there before is found by its first frames, and then
// follows the trail.
type trail struct {
	list []uint32 // numbers of runs
	at   uint32   // of the frame that is expected
	end  uint32   // where the next one goes, round and round
	by   []uint32 // where the trail went on, by the last bits of two frames
}

const trailBits = 18

// set lets frame i follow those that before was made of.
func (t *trail) set(before, i uint32) {
	if t.by == nil {
		t.by = make([]uint32, 1<<(trailBits-2))
	}
	if t.end == 1<<trailBits {
		t.end = 0
	}
	if int(t.end) == len(t.list) {
		t.list = append(t.list, 0)
	}
	t.list[t.end] = i
	t.by[before>>(32-trailBits+2)] = t.end
	t.end++
	t.at = t.end
}

// next is the frame at the beginning of w, if it is the one that is expected at a place of the
// trail; what follows is expected there then.
func (t *trail) next(r *runs, at uint32, w []byte) *run {
	if int(at) >= len(t.list) || int(t.list[at]) >= len(r.list) {
		return nil
	}
	x := &r.list[t.list[at]]
	if !r.begins(w, x) {
		return nil
	}
	t.at = at + 1
	return x
}

// fork is where the trail went on after before.
func (t *trail) fork(before uint32) uint32 {
	if t.by == nil {
		return 0
	}
	return t.by[before>>(32-trailBits+2)]
}
