package wandblog

import (
	"encoding/binary"
	"encoding/json"
	"math"
	"math/bits"
	"strconv"
)

const maxDepth = 32 // nesting of objects that are flattened

// number reads a JSON number, or NaN, Infinity or -Infinity. ok is false for anything else. A
// number beyond the range of float64 is an infinity.
func number(b []byte) (v float64, ok bool) {
	if len(b) == 0 {
		return 0, false
	}
	s, neg := b, false
	if s[0] == '-' {
		s, neg = s[1:], true
	}
	mant, whole := digits(s, 0)
	if whole == 0 {
		return named(b)
	}
	i, frac := whole, 0
	if i < len(s) && s[i] == '.' {
		mant, frac = digits(s[i+1:], mant)
		i += 1 + frac
	}
	// mant holds 19 digits whatever they are; zeros in front are none.
	over := whole+frac > 19 && whole+frac-zeros(s) > 19
	exp := 0
	if i < len(s) && (s[i] == 'e' || s[i] == 'E') {
		i++
		minus := false
		if i < len(s) && (s[i] == '+' || s[i] == '-') {
			minus = s[i] == '-'
			i++
		}
		from := i
		for ; i < len(s) && s[i]-'0' <= 9; i++ {
			exp = min(exp*10+int(s[i]-'0'), 1<<20)
		}
		if i == from {
			return 0, false
		}
		if minus {
			exp = -exp
		}
	}
	if i != len(s) {
		return 0, false
	}
	switch exp -= frac; {
	case mant == 0 || over:
		v, err := strconv.ParseFloat(string(b), 64)
		return v, err == nil || math.IsInf(v, 0)
	case exp == 0:
		v = float64(mant)
	case 0 < exp && exp <= 22 && mant < 1<<53: // both are exact, and their product is rounded once
		v = float64(mant) * tens[exp]
	case -22 <= exp && exp < 0 && mant < 1<<53:
		v = float64(mant) / tens[-exp]
	case -len(fives) < exp && exp < 0:
		v = ratio(mant, fives[-exp], -exp)
	default:
		v, err := strconv.ParseFloat(string(b), 64)
		return v, err == nil || math.IsInf(v, 0)
	}
	if neg {
		v = -v
	}
	return v, true
}

// digits appends the decimal digits at the front of s to the number mant, modulo 2^64, and
// returns how many there are. It takes eight at a time: numbers of 17 digits are most of what
// a log has, and digit by digit each waits for the one before it.
func digits(s []byte, mant uint64) (uint64, int) {
	i := 0
	for ; len(s)-i >= 8; i += 8 {
		w := binary.LittleEndian.Uint64(s[i:])
		if w&0xf0f0f0f0f0f0f0f0|(w+0x0606060606060606)&0xf0f0f0f0f0f0f0f0>>4 != 0x3333333333333333 {
			break
		}
		w = (w & 0x0f0f0f0f0f0f0f0f) * (1 + 10<<8) >> 8       // four pairs, in every other byte
		w = (w & 0x00ff00ff00ff00ff) * (1 + 100<<16) >> 16    // two fours
		w = (w & 0x0000ffff0000ffff) * (1 + 10_000<<32) >> 32 // eight
		mant = mant*1e8 + w
	}
	for ; i < len(s) && s[i]-'0' <= 9; i++ {
		mant = mant*10 + uint64(s[i]-'0')
	}
	return mant, i
}

// zeros counts those that a number begins with, whether or not a point stands among them.
func zeros(s []byte) int {
	n := 0
	for _, c := range s {
		if c == '0' {
			n++
		} else if c != '.' {
			break
		}
	}
	return n
}

// ratio is m/(d·2^k), rounded to the nearest float64, ties to even. Neither m nor d is 0, and the
// result is within the normal numbers.
func ratio(m, d uint64, k int) float64 {
	up, down := bits.LeadingZeros64(m), bits.LeadingZeros64(d)
	m, d = m<<up, d<<down
	exp := down - up - k
	var q, rest uint64 // the highest bit of q is set
	if m < d {
		q, rest = bits.Div64(m, 0, d)
		exp--
	} else {
		q, rest = bits.Div64(m>>1, m<<63, d)
	}
	const half = 1 << 10
	low := q & (2*half - 1)
	q >>= 11
	if low > half || low == half && (rest != 0 || q&1 != 0) {
		q++
	}
	return math.Float64frombits(uint64(exp+1023)<<52 + q - 1<<52)
}

var tens = [...]float64{1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22}

// fives are the powers of 5 that fit 64 bits. Those of 10 differ by powers of 2, which cost
// nothing.
var fives = [...]uint64{
	1, 5, 25, 125, 625, 3125, 15625, 78125, 390625, 1953125, 9765625, 48828125, 244140625, 1220703125,
	6103515625, 30517578125, 152587890625, 762939453125, 3814697265625, 19073486328125, 95367431640625,
	476837158203125, 2384185791015625, 11920928955078125, 59604644775390625, 298023223876953125, 1490116119384765625, 7450580596923828125,
}

func named(b []byte) (float64, bool) {
	switch string(b) {
	case "NaN":
		return math.NaN(), true
	case "Infinity":
		return math.Inf(1), true
	case "-Infinity":
		return math.Inf(-1), true
	}
	return 0, false
}

// Number reads a JSON number as W&B writes it; ok is false for anything else.
func Number(b []byte) (v float64, ok bool) { return number(trim(b)) }

func trim(b []byte) []byte {
	for len(b) > 0 && space(b[0]) {
		b = b[1:]
	}
	for len(b) > 0 && space(b[len(b)-1]) {
		b = b[:len(b)-1]
	}
	return b
}

func space(c byte) bool { return c == ' ' || c == '\t' || c == '\n' || c == '\r' }

// value returns the end of the JSON value that begins at i, or -1.
func value(b []byte, i int) int {
	depth := 0
	for i < len(b) {
		switch b[i] {
		case '"':
			if i = text(b, i); i < 0 {
				return -1
			}
		case '{', '[':
			depth++
			i++
		case '}', ']':
			depth--
			i++
		default:
			for from := i; ; i++ {
				if i == len(b) || b[i] == ',' || b[i] == '}' || b[i] == ']' || b[i] == '"' || b[i] == ':' || space(b[i]) {
					if i == from {
						i++
					}
					break
				}
			}
		}
		if depth == 0 {
			return i
		}
		if depth < 0 {
			return -1
		}
	}
	return -1
}

// text returns the end of the string that begins at i, or -1.
func text(b []byte, i int) int {
	for i++; i < len(b); i++ {
		switch b[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return -1
}

// A member is one of an object, by its offsets.
type member struct{ start, nameEnd, value, end int }

// members calls fn for each member of the object b, which begins with its brace. It reports
// whether b is a whole object and fn always returned true.
func members(b []byte, fn func(member) bool) bool {
	if len(b) == 0 || b[0] != '{' {
		return false
	}
	skip := func(i int) int {
		for i < len(b) && space(b[i]) {
			i++
		}
		return i
	}
	i := skip(1)
	if i < len(b) && b[i] == '}' {
		return true
	}
	for i < len(b) && b[i] == '"' {
		m := member{start: i}
		if m.nameEnd = text(b, i); m.nameEnd < 0 {
			return false
		}
		if i = skip(m.nameEnd); i >= len(b) || b[i] != ':' {
			return false
		}
		m.value = skip(i + 1)
		if m.end = value(b, m.value); m.end < 0 {
			return false
		}
		if !fn(m) {
			return false
		}
		if i = skip(m.end); i >= len(b) {
			return false
		}
		if b[i] == '}' {
			return true
		}
		if b[i] != ',' {
			return false
		}
		i = skip(i + 1)
	}
	return false
}

// media reports whether an object is one of W&B's own types, as a histogram or an image, whose
// numbers are no series.
func media(b []byte) bool {
	found := false
	members(b, func(m member) bool {
		found = string(b[m.start:m.nameEnd]) == `"_type"`
		return !found
	})
	return found
}

// leaves calls fn for each number in the object b, in order, with its name below prefix.
func leaves(b []byte, prefix string, depth int, fn func(name string, v float64)) {
	if depth > maxDepth || media(b) {
		return
	}
	members(b, func(m member) bool {
		in := b[m.value:m.end]
		if in[0] == '{' {
			leaves(in, prefix+"."+unquote(b[m.start:m.nameEnd]), depth+1, fn)
		} else if v, ok := number(in); ok {
			fn(prefix+"."+unquote(b[m.start:m.nameEnd]), v)
		}
		return true
	})
}

// An Edit says what becomes of the n-th number of an object, counted from 0: it stays, it is taken
// out with its name, or it is replaced.
type Edit func(n int, v float64) (drop bool, replace []byte)

// EditObject appends the object b to dst with its numbers edited. They are counted in the order in
// which Rows finds them. An object that loses all its members stays as {}.
func EditObject(dst, b []byte, edit Edit) []byte {
	n := 0
	return editObject(dst, trim(b), 0, &n, edit)
}

func editObject(dst, b []byte, depth int, n *int, edit Edit) []byte {
	if depth > maxDepth || media(b) {
		return append(dst, b...)
	}
	at, none := 0, true // b is copied up to at; no member was written
	members(b, func(m member) bool {
		in := b[m.value:m.end]
		if in[0] == '{' {
			dst = append(dst, b[at:m.value]...)
			dst = editObject(dst, in, depth+1, n, edit)
			at, none = m.end, false
			return true
		}
		v, ok := number(in)
		if !ok {
			dst = append(dst, b[at:m.end]...)
			at, none = m.end, false
			return true
		}
		drop, replace := edit(*n, v)
		*n++
		switch {
		case drop && none: // with the comma behind it
			dst = append(dst, b[at:m.start]...)
			at = m.end
			for at < len(b) && (space(b[at]) || b[at] == ',') {
				at++
			}
		case drop: // with the comma before it
			at = m.end
		case replace != nil:
			dst = append(append(dst, b[at:m.value]...), replace...)
			at, none = m.end, false
		default:
			dst = append(dst, b[at:m.end]...)
			at, none = m.end, false
		}
		return true
	})
	return append(dst, b[at:]...)
}

func unquote(b []byte) string {
	inner := b[1 : len(b)-1]
	for _, c := range inner {
		if c == '\\' {
			var s string
			if json.Unmarshal(b, &s) == nil {
				return s
			}
			break
		}
	}
	return string(inner)
}

// Scalar is a configuration value as people write it: a string without its quotes, anything
// else as it stands.
func Scalar(b []byte) string {
	b = trim(b)
	if len(b) >= 2 && b[0] == '"' && text(b, 0) == len(b) {
		return unquote(b)
	}
	return string(b)
}

// Flatten calls fn for each value of a configuration that is no object, with its name below
// name; lists are one value.
func Flatten(name string, b []byte, fn func(name, value string)) {
	flatten(name, trim(b), 0, fn)
}

func flatten(name string, b []byte, depth int, fn func(name, value string)) {
	if len(b) == 0 || b[0] != '{' || depth > maxDepth {
		fn(name, Scalar(b))
		return
	}
	members(b, func(m member) bool {
		flatten(name+"."+unquote(b[m.start:m.nameEnd]), b[m.value:m.end], depth+1, fn)
		return true
	})
}
