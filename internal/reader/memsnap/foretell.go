package memsnap

import (
	"bytes"
	"encoding/binary"

	"github.com/inquest-dev/inquest/internal/format/pickle"
)

// What a snapshot says it has mostly said before, so that most lists of frames, and most
// frames, need not be taken apart, nor hashed: few of their bytes hint at a run, whose bytes are
// compared. A hint may be wrong, and has cost that comparison then.

const (
	hintBits  = 14
	hintEnds  = 8       // bytes that may end a list, that are tried
	hintMost  = 4 << 10 // bytes of a list that is looked for this way
	hintLeast = 8
)

// hints are the runs that samples of their bytes were last: numbers of runs, counted from 1. What
// is said of runs that have been forgotten does no harm.
type hints []uint32

// sample is a number made of the 8 bytes before each of three places of w.
func sample(w []byte, i, j, k int) uint32 {
	a, b, c := binary.LittleEndian.Uint64(w[i-8:]), binary.LittleEndian.Uint64(w[j-8:]), binary.LittleEndian.Uint64(w[k-8:])
	return uint32(((a*3+b)*0x9e3779b97f4a7c15 + c + uint64(k)) * 0xd6e8feb86659fd93 >> (64 - hintBits))
}

// sampleRefs is the sample of a list of references.
func sampleRefs(raw []byte) uint32 { return sample(raw, 8, len(raw)/2+4, len(raw)) }

// set makes run i the meaning of a sample.
func (h *hints) set(sample, i uint32) {
	if *h == nil {
		*h = make(hints, 1<<hintBits)
	}
	(*h)[sample] = i + 1
}

// is returns the number of the run raw, if that is what its sample was last.
func (h hints) is(r *runs, sample uint32, raw []byte) (i uint32, ok bool) {
	if len(h) == 0 {
		return 0, false
	}
	i = h[sample] - 1
	if int64(i) >= int64(len(r.list)) || int(r.list[i].n) != len(raw) {
		return 0, false
	}
	return i, string(raw) == string(r.bytesOf(&r.list[i]))
}

// knownRefs is the list of references at the beginning of w, if a hint tells, and how many bytes
// they take; 0 otherwise. The opcode that ends them may be part of one as well, so that some
// ends are tried.
func (m *machine) knownRefs(w []byte) (id uint32, n int) {
	most := min(len(w)-1, hintMost)
	for range hintEnds {
		k := bytes.IndexByte(w[n:max(most, n)], byte(pickle.Appends))
		if k < 0 {
			return 0, 0
		}
		n += k
		if n >= hintLeast && w[n+1] >= leastOp {
			if i, ok := m.runHints.is(&m.runs, sampleRefs(w[:n]), w[:n]); ok {
				return m.runs.list[i].id, n
			}
		}
		n++
	}
	return 0, 0
}

// leastOp is the least byte that is an opcode of the protocols that are read.
const leastOp = byte(pickle.Mark)
