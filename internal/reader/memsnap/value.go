package memsnap

import "math"

// A tag says what a value of the stack machine is.
type tag uint8

const (
	tUnset    tag = iota // of a memo slot: nothing was stored
	tNone                // None
	tInt                 // n: an int64; True and False are 1 and 0
	tUint                // n: beyond an int64
	tBeyond              // beyond 64 bits; n: 0 below, 1 above
	tFloat               // n: the bits
	tText                // n: index of texts
	tDict                // empty, to be filled
	tList                // empty, to be filled
	tPart                // n: index of parts: a dict that is not known to be complete
	tFrame               // n: index of frames
	tStack               // n: index of stacks
	tEvent               // n: number of the event, in the order in which they were made
	tTrace               // n: index of traces
	tTraces              // n: index of lists
	tBlock               // n: index of blocks
	tBlocks              // n: index of ranges of blocks
	tSegment             // n: index of segments
	tSegments            // n: index of lists
	tPast                // n: index of pasts: an item of a block's history
	tHistory             // n: index of pasts: a history's first item
	tPair                // n: index of pairs: two integers
	tSolo                // n: index of solos: a list of one integer
	tMark                // n: index of annotations
	tMarks               // n: index of lists
	tSettings            // n: index of settings
	tRoundup             // n: index of roundups
	tTop                 // n: index of tops
	tBuilder             // a function that returns its argument
	tBoxed               // n: index of boxes: a value of which 27 bits do not tell all
	tOther               // harmless, and of no meaning here
)

// idBits is how many bits of a memo slot hold the n of its value.
const idBits = 27

const (
	maxID  = 1<<idBits - 1
	noSlot = uint32(math.MaxUint32)
)

// A value is what the stack holds. Slot is where in the memo it stands, so that a
// container that is filled later becomes there what it became.
type value struct {
	n    uint64
	slot uint32
	tag  tag
}

// number returns v as an integer: floats are cut, what is beyond 64 bits becomes the
// nearest. ok is false for what is no number.
func (v value) number() (n int64, ok bool) {
	switch v.tag {
	case tInt:
		return int64(v.n), true
	case tUint:
		return math.MaxInt64, true
	case tBeyond:
		if v.n == 0 {
			return math.MinInt64, true
		}
		return math.MaxInt64, true
	case tFloat:
		switch f := math.Float64frombits(v.n); {
		case f != f:
			return 0, false
		case f >= math.MaxInt64:
			return math.MaxInt64, true
		case f <= math.MinInt64:
			return math.MinInt64, true
		default:
			return int64(f), true
		}
	}
	return 0, false
}

// address returns v as an unsigned number. PyTorch's C++ writer puts addresses and
// handles down as signed ones.
func (v value) address() uint64 {
	switch v.tag {
	case tInt, tUint:
		return v.n
	case tBeyond:
		return -v.n // 0 or the largest
	}
	n, _ := v.number()
	return uint64(n)
}

func (v value) float() float64 {
	switch v.tag {
	case tFloat:
		return math.Float64frombits(v.n)
	case tInt:
		return float64(int64(v.n))
	}
	return 0
}

func pack(t tag, n uint64) uint32 { return uint32(t)<<idBits | uint32(n) }

func unpack(w, slot uint32) value {
	return value{n: uint64(w & maxID), slot: slot, tag: tag(w >> idBits)}
}
