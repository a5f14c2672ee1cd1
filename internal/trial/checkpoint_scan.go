package trial

import (
	"encoding/binary"
	"io"
	"math"
)

// A floatType says how the bits of one element tell that it is not finite.
type floatType struct {
	size int // bytes of an element
	// An element is suspicious where adding to its masked bits carries into its top bit: mask
	// selects the exponent (and, where infinities do not exist, the mantissa), add is its lowest
	// bit. Both are repeated over eight bytes; no carry leaves an element.
	mask, add, top uint64
	nan, inf       func(bits uint64) bool
}

func floats(size int, exponent, mantissa uint64) floatType {
	spread := func(x uint64) uint64 {
		for n := size; n < 8; n *= 2 {
			x |= x << (8 * n)
		}
		return x
	}
	low := exponent & -exponent
	return floatType{size: size, mask: spread(exponent), add: spread(low), top: spread(1 << (8*size - 1)),
		nan: func(b uint64) bool { return b&exponent == exponent && b&mantissa != 0 },
		inf: func(b uint64) bool { return b&exponent == exponent && b&mantissa == 0 }}
}

// floatTypes are the types whose elements are looked at. F8_E4M3 (the FN form) has no
// infinities: all bits but the sign's set are NaN. In the FNUZ forms only 0x80 is NaN.
var floatTypes = map[string]floatType{
	"F64":     floats(8, 0x7ff0_0000_0000_0000, 0x000f_ffff_ffff_ffff),
	"F32":     floats(4, 0x7f80_0000, 0x007f_ffff),
	"F16":     floats(2, 0x7c00, 0x03ff),
	"BF16":    floats(2, 0x7f80, 0x007f),
	"F8_E5M2": floats(1, 0x7c, 0x03),
	"F8_E4M3": {size: 1, mask: 0x7f7f_7f7f_7f7f_7f7f, add: 0x0101_0101_0101_0101, top: 0x8080_8080_8080_8080,
		nan: func(b uint64) bool { return b&0x7f == 0x7f }, inf: func(uint64) bool { return false }},
	"C64":  floats(4, 0x7f80_0000, 0x007f_ffff), // two halves each
	"C128": floats(8, 0x7ff0_0000_0000_0000, 0x000f_ffff_ffff_ffff),
}

// wholeTypes are the types whose every value is finite. What is neither among these nor among
// floatTypes was not judged.
var wholeTypes = map[string]bool{
	"BOOL": true, "U8": true, "I8": true, "U16": true, "I16": true, "U32": true, "I32": true, "U64": true, "I64": true,
}

// isFloat reports whether the elements of a type are looked at.
func isFloat(dtype string) bool { _, ok := floatTypes[dtype]; return ok }

// A nonfinite counts the values of a tensor that are not finite; half a complex number counts
// as one.
type nonfinite struct{ elements, nan, pos, neg int64 }

func (n nonfinite) any() bool { return n.nan+n.pos+n.neg > 0 }

// scanFloats reads r to its end and counts the values of type dtype that are not finite. buf is
// what it reads through; its length is a multiple of 64. The bytes are little-endian, or
// big-endian with big.
func scanFloats(r io.Reader, dtype string, big bool, buf []byte) (nonfinite, error) {
	t := floatTypes[dtype]
	var n nonfinite
	for {
		got, err := io.ReadFull(r, buf)
		n.elements += int64(got / t.size)
		b := buf[:got]
		for !big && len(b) >= 64 {
			x := binary.LittleEndian.Uint64(b)&t.mask + t.add
			x |= binary.LittleEndian.Uint64(b[8:])&t.mask + t.add
			x |= binary.LittleEndian.Uint64(b[16:])&t.mask + t.add
			x |= binary.LittleEndian.Uint64(b[24:])&t.mask + t.add
			x |= binary.LittleEndian.Uint64(b[32:])&t.mask + t.add
			x |= binary.LittleEndian.Uint64(b[40:])&t.mask + t.add
			x |= binary.LittleEndian.Uint64(b[48:])&t.mask + t.add
			x |= binary.LittleEndian.Uint64(b[56:])&t.mask + t.add
			if x&t.top != 0 {
				t.count(b[:64], false, &n)
			}
			b = b[64:]
		}
		t.count(b, big, &n)
		switch err {
		case nil:
		case io.EOF, io.ErrUnexpectedEOF:
			return n, nil
		default:
			return n, err
		}
	}
}

// count looks at each element of b.
func (t *floatType) count(b []byte, big bool, n *nonfinite) {
	for ; len(b) >= t.size; b = b[t.size:] {
		var x uint64
		for i := range t.size {
			if at := i; big {
				x = x<<8 | uint64(b[at])
			} else {
				x |= uint64(b[at]) << (8 * i)
			}
		}
		switch {
		case t.nan(x):
			n.nan++
		case !t.inf(x):
		case x>>(8*t.size-1) != 0:
			n.neg++
		default:
			n.pos++
		}
	}
}

// isFinite reports whether v is a number.
func isFinite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }
