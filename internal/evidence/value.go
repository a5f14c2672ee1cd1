package evidence

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// A Type is the type of an attribute or fact.
type Type uint8

const (
	Text  Type = iota + 1 // S
	Int                   // I
	Float                 // F
	Size                  // Lo..Hi bytes, both ends included
	Bool                  // I != 0
	Ints                  // L, sorted
)

func (t Type) String() string {
	return [...]string{"invalid", "text", "int", "float", "size", "bool", "ints"}[t]
}

// A Value is one typed value. A Size is an interval because logs print sizes
// with two decimals: "2.00 GiB" stands for every byte count that prints so.
type Value struct {
	T      Type
	S      string
	I      int64
	F      float64
	Lo, Hi int64
	L      []int64
}

func TextOf(s string) Value   { return Value{T: Text, S: s} }
func IntOf(i int64) Value     { return Value{T: Int, I: i} }
func FloatOf(f float64) Value { return Value{T: Float, F: f} }
func BoolOf(b bool) Value {
	if b {
		return Value{T: Bool, I: 1}
	}
	return Value{T: Bool}
}
func SizeOf(lo, hi int64) Value     { return Value{T: Size, Lo: lo, Hi: hi} }
func IntsOf(l []int64) Value        { return Value{T: Ints, L: l} }
func (v Value) True() bool          { return v.T == Bool && v.I != 0 }
func (v Value) Mid() int64          { return v.Lo + (v.Hi-v.Lo)/2 }
func (v Value) Valid() bool         { return v.T != 0 }
func (a Attrs) Str(n string) string { return a[n].S }

// RoundedSize is a size that was printed rounded to the nearest, of which at bytes were
// read: half is half the last printed digit. Where no whole number of bytes lies
// in between, because a fraction of a byte was printed, it is the two beside at.
func RoundedSize(at, half float64) Value {
	lo, hi := math.Ceil(at-half), math.Floor(at+half)
	if lo > hi {
		lo, hi = math.Floor(at), math.Ceil(at)
	}
	return SizeOf(clampBytes(lo), clampBytes(hi))
}

// clampBytes is f as a number of bytes: not negative, and no more than fit.
func clampBytes(f float64) int64 {
	switch {
	case !(f > 0):
		return 0
	case f >= math.MaxInt64:
		return math.MaxInt64
	}
	return int64(f)
}

// String prints v for people: sizes in binary units, floats with up to five
// significant digits.
func (v Value) String() string {
	switch v.T {
	case Text:
		return v.S
	case Int:
		return strconv.FormatInt(v.I, 10)
	case Float:
		if math.IsNaN(v.F) || math.IsInf(v.F, 0) {
			return fmt.Sprint(v.F)
		}
		return strconv.FormatFloat(v.F, 'g', 5, 64)
	case Size:
		return Bytes(v.Mid())
	case Bool:
		return strconv.FormatBool(v.I != 0)
	case Ints:
		s := ""
		for i, x := range v.L {
			if i > 0 {
				s += ", "
			}
			s += strconv.FormatInt(x, 10)
		}
		return s
	}
	return ""
}

// Count prints n with its thousands apart: 1,942.
func Count(n int) string {
	s := strconv.Itoa(n)
	sign := ""
	if n < 0 {
		sign, s = "-", s[1:]
	}
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return sign + s
}

// Several prints n things by the name of one: 1 file, 3 files.
func Several(n int64, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return strconv.FormatInt(n, 10) + " " + what + "s"
}

// Bytes prints a byte count in the unit in which it has two to four digits
// before the point: 512 bytes, 20.00 MiB, 79.15 GiB.
func Bytes(n int64) string {
	neg := ""
	if n < 0 {
		neg, n = "-", -n
	}
	switch f := float64(n); {
	case n == 1:
		return neg + "1 byte"
	case n < 1<<10:
		return fmt.Sprintf("%s%d bytes", neg, n)
	case n < 1<<20:
		return fmt.Sprintf("%s%.2f KiB", neg, f/(1<<10))
	case n < 1<<30:
		return fmt.Sprintf("%s%.2f MiB", neg, f/(1<<20))
	case n < 1<<50:
		return fmt.Sprintf("%s%.2f GiB", neg, f/(1<<30))
	default:
		return fmt.Sprintf("%s%.2f PiB", neg, f/(1<<50))
	}
}

// byteUnits are what a size may end in, in any case. GB and the like are powers of 1000.
var byteUnits = []struct {
	name string
	of   float64
}{
	{"kib", 1 << 10}, {"mib", 1 << 20}, {"gib", 1 << 30}, {"tib", 1 << 40},
	{"kb", 1e3}, {"mb", 1e6}, {"gb", 1e9}, {"tb", 1e12}, {"b", 1}, {"", 1},
}

// ParseBytes reads a size as people write it: 80GiB, 79.15 GiB, 84987740160. It is more
// than zero and at most 2^50 bytes, which no device has.
func ParseBytes(text string) (int64, error) {
	s := strings.ToLower(strings.TrimSpace(text))
	for _, u := range byteUnits {
		num, ok := strings.CutSuffix(s, u.name)
		if !ok {
			continue
		}
		n, err := strconv.ParseFloat(strings.TrimSpace(num), 64)
		if err != nil || !(n > 0) || n*u.of > 1<<50 || int64(n*u.of) == 0 {
			break
		}
		return int64(n * u.of), nil
	}
	return 0, fmt.Errorf("%q is no size: bytes, or a number with KiB, MiB, GiB, TiB, KB, MB, GB or TB", text)
}
