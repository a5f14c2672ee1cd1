package ranklog

import (
	"encoding/binary"
	"math"
	"math/bits"
	"strconv"
)

var pow10 = [...]float64{1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22}

// parseNumber reads the decimal number that begins at b[i] and returns its value and
// the offset behind it; end == i means that there is none. A sign, thousands
// commas (groups of three digits), a fraction and an exponent are read. The value
// is the nearest float64: by one division for up to 15 digits, by quotient for up
// to 19, which Python prints; strconv does the rest.
func parseNumber(b []byte, i int) (v float64, end int) {
	if v, end = commonNumber(b, i); end > i {
		return v, end
	}
	return anyNumber(b, i)
}

// commonNumber is parseNumber for what nearly all numbers are: up to seven digits,
// perhaps with a point and more digits, up to 19 in all, and an exponent of one or two
// digits. It returns i for all others. It may look at the bytes behind b, whose memory
// holds them, but what they are makes no difference.
func commonNumber(b []byte, i int) (v float64, end int) {
	start, most := i, len(b)
	b = b[:cap(b)]
	neg := false
	if i < most && b[i] == '-' {
		neg = true
		i++
	}
	if i < 0 || i+8 > len(b) {
		return 0, start
	}
	x := word(b, i) ^ 0x3030303030303030
	whole := bits.TrailingZeros64((x+0x7676767676767676|x)&0x8080808080808080) &^ 7 // bits of the digits before the point
	if whole == 64 || whole == 0 {
		return 0, start
	}
	if c := b[i+whole/8]; c != '.' {
		if c == ',' || c|0x20 == 'e' {
			return 0, start
		}
		v = float64(int64(digitsOf(x << ((64 - whole) & 63))))
		if neg {
			v = -v
		}
		if i += whole / 8; i > most {
			return 0, start
		}
		return v, i
	}
	// Take the point out; no digit stands behind the last one.
	low := uint64(1)<<(whole&63) - 1
	x = x&low | x>>8&^low | 0x11<<56
	all := bits.TrailingZeros64((x+0x7676767676767676|x)&0x8080808080808080) &^ 7
	mant := digitsOf(x << ((64 - all) & 63))
	digits, scale := all/8, all/8-whole/8
	i += digits + 1
	if all == 56 || i >= len(b) || b[i]|0x20 == 'e' {
		if v, i = longNumber(b, i, mant, digits, scale); i < 0 {
			return 0, start
		}
	} else {
		v = float64(int64(mant)) / pow10[scale]
	}
	if i > most {
		return 0, start
	}
	if neg {
		v = -v
	}
	return v, i
}

// longNumber goes on with a number of which digits, the last scale of them behind
// the point, are read, where more digits or an exponent may stand at b[i]. It
// returns -1 where it cannot tell.
func longNumber(b []byte, i int, mant uint64, digits, scale int) (v float64, end int) {
	if digits == 7 {
		for i+8 <= len(b) && scale <= 18 {
			x := word(b, i) ^ 0x3030303030303030
			n := bits.TrailingZeros64((x+0x7676767676767676|x)&0x8080808080808080) / 8
			mant = mant*intPow10[n] + digitsOf(x<<(64-8*n))
			i += n
			digits += n
			scale += n
			if n < 8 {
				break
			}
		}
		if digits > 19 {
			return 0, -1
		}
	}
	if i+5 > len(b) || b[i]-'0' <= 9 {
		return 0, -1
	}
	if b[i]|0x20 == 'e' {
		j := i + 1
		sign := b[j]
		if sign == '-' || sign == '+' {
			j++
		}
		e := int(b[j] - '0')
		if e > 9 {
			return 0, -1
		}
		j++
		if c := b[j] - '0'; c <= 9 {
			e = 10*e + int(c)
			j++
			if j == len(b) || b[j]-'0' <= 9 {
				return 0, -1
			}
		}
		if sign == '-' {
			e = -e
		}
		scale -= e
		i = j
	}
	// By the digits, not by the value: those of one format differ less.
	switch exact := digits <= 15; {
	case scale == 0 && exact:
		return float64(int64(mant)), i
	case exact && scale > 0 && scale <= 22:
		return float64(int64(mant)) / pow10[scale], i
	case scale > 0 && scale < len(pow5):
		return quotient(mant, scale), i
	}
	return 0, -1
}

// word returns the eight bytes at b[i], the first one lowest.
func word(b []byte, i int) uint64 { return binary.LittleEndian.Uint64(b[i : i+8 : i+8]) }

// anyNumber is parseNumber without a short cut.
func anyNumber(b []byte, i int) (v float64, end int) {
	start := i
	neg := false
	if i < len(b) && (b[i] == '-' || b[i] == '+') {
		neg = b[i] == '-'
		i++
	}
	var mant uint64
	digits, scale := 0, 0
	commas := false
	first := i
	if i+8 <= len(b) {
		n, w := leadingDigits(binary.LittleEndian.Uint64(b[i:]))
		mant, digits, i = w, n, i+n
	}
	for i < len(b) {
		if c := b[i] - '0'; c <= 9 {
			mant = mant*10 + uint64(c)
			digits++
			i++
			continue
		}
		if b[i] == ',' && i > first && i-first <= 15 && isThousands(b, i) && (commas || i-first <= 3) {
			commas = true
			i++
			continue
		}
		break
	}
	if i < len(b) && b[i] == '.' {
		j := i + 1
		for j+8 <= len(b) {
			n, w := leadingDigits(binary.LittleEndian.Uint64(b[j:]))
			mant = mant*intPow10[n] + w
			if j += n; n < 8 {
				break
			}
		}
		for j < len(b) {
			c := b[j] - '0'
			if c > 9 {
				break
			}
			mant = mant*10 + uint64(c)
			j++
		}
		if n := j - i - 1; n > 0 || digits > 0 {
			digits += n
			scale -= n
			i = j
		}
	}
	if digits == 0 {
		return 0, start
	}
	if i+1 < len(b) && b[i]|0x20 == 'e' {
		j := i + 1
		eneg := false
		if b[j] == '-' || b[j] == '+' {
			eneg = b[j] == '-'
			j++
		}
		e, from := 0, j
		for j < len(b) && b[j]-'0' <= 9 && j-from < 5 {
			e = e*10 + int(b[j]-'0')
			j++
		}
		if j > from {
			if eneg {
				e = -e
			}
			scale += e
			i = j
		}
	}
	if digits <= 19 {
		// By the digits, not by the value: those of one format differ less.
		switch exact := digits <= 15; {
		case scale == 0:
			v = float64(mant)
		case exact && scale < 0 && scale >= -22:
			v = float64(mant) / pow10[-scale]
		case exact && scale > 0 && scale <= 22:
			v = float64(mant) * pow10[scale]
		case scale < 0 && scale > -len(pow5):
			v = quotient(mant, -scale)
		default:
			return parseSlowNumber(b, start, i, commas)
		}
		if neg {
			v = -v
		}
		return v, i
	}
	return parseSlowNumber(b, start, i, commas)
}

// leadingDigits returns how many of the eight bytes of x, the first lowest, are
// digits before one that is none, and the number that they spell.
func leadingDigits(x uint64) (n int, v uint64) {
	x ^= 0x3030303030303030
	none := (x + 0x7676767676767676 | x) & 0x8080808080808080 // exact up to the first
	n = bits.TrailingZeros64(none) / 8
	return n, digitsOf(x << (64 - 8*n))
}

// digitsOf returns the number that eight digits spell, the first one lowest, each as
// its value.
func digitsOf(x uint64) uint64 {
	// Pairs, fours and eights are put together by one multiplication each.
	x = x*10 + x>>8 // pairs, in the even bytes
	const mask = 0x000000ff000000ff
	return ((x&mask)*(100+1000000<<32) + (x>>16&mask)*(1+10000<<32)) >> 32
}

var intPow10 = [...]uint64{1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8}

// pow5 holds the powers of five that fit, recip5 their reciprocals: that of 5^k times
// 2^(63+its bits), rounded down.
var pow5, recip5 = func() (p, r [28]uint64) {
	p[0] = 1
	for k := range p[1:] {
		p[k+1] = 5 * p[k]
		r[k+1], _ = bits.Div64(1<<(bits.Len64(p[k+1])-1), 0, p[k+1])
	}
	return p, r
}()

// quotient returns the float64 nearest to mant/10^k, for 0 < k < len(pow5). One
// multiplication with the reciprocal of 5^k gives 63 bits or more, the last of which may be
// too low by one; that decides the rounding only where the bits behind the 53rd are
// a half or just below it. Then slowQuotient divides.
func quotient(mant uint64, k int) float64 {
	s := bits.LeadingZeros64(mant)
	q, _ := bits.Mul64(mant<<(s&63), recip5[k])
	half := uint64(1) << (9 + q>>63) // of the bits that are rounded off
	if low := q & (2*half - 1); low == half || low == half-1 || mant == 0 {
		return slowQuotient(mant, k)
	}
	return float64(int64(q>>1|1)) * math.Float64frombits(uint64(1023+2-bits.Len64(pow5[k])-s-k)<<52)
}

// slowQuotient is quotient by an integer division, which says whether something is
// left: all that rounding needs.
func slowQuotient(mant uint64, k int) float64 {
	if mant == 0 {
		return 0
	}
	s := bits.LeadingZeros64(mant)
	t := bits.LeadingZeros64(pow5[k])
	mant <<= s
	q, rest := bits.Div64(mant>>1, mant<<63, pow5[k]<<t)
	if rest != 0 {
		q |= 1 // far below the last of 53 bits
	}
	return float64(q) * math.Float64frombits(uint64(1023+t-s-k-63)<<52)
}

// isThousands reports whether the comma at b[i] is followed by exactly three digits.
func isThousands(b []byte, i int) bool {
	if i+3 >= len(b) || b[i+1]-'0' > 9 || b[i+2]-'0' > 9 || b[i+3]-'0' > 9 {
		return false
	}
	return i+4 >= len(b) || b[i+4]-'0' > 9
}

// slowNumber parses b[start:end] with strconv. Overlong digit strings are cut
// at 64 bytes: they are no metric.
func parseSlowNumber(b []byte, start, end int, commas bool) (float64, int) {
	var buf [64]byte
	n := 0
	for i := start; i < end && n < len(buf); i++ {
		if b[i] == ',' && commas {
			continue
		}
		buf[n] = b[i]
		n++
	}
	v, err := strconv.ParseFloat(string(buf[:n]), 64)
	if err != nil && v == 0 {
		return 0, start
	}
	if math.IsInf(v, 0) { // 1e999 is a number, not a printed infinity
		v = math.Copysign(math.MaxFloat64, v)
	}
	return v, end
}

// parseNonfinite reads one of nan, inf, infinity (any case, signed, with Lightning's
// ".0" or "." behind) as a whole token at b[i]. end == i means that there is
// none. Whole means: no letter, digit, '_' or '%' follows, so that "nanms",
// "(+nanz)" and "info" are not taken.
func parseNonfinite(b []byte, i int) (v float64, end int) {
	start := i
	neg := false
	if i < len(b) && (b[i] == '-' || b[i] == '+') {
		neg = b[i] == '-'
		i++
	}
	if i+3 > len(b) {
		return 0, start
	}
	switch b[i] | 0x20 {
	case 'n':
		if b[i+1]|0x20 != 'a' || b[i+2]|0x20 != 'n' {
			return 0, start
		}
		v = math.NaN()
		i += 3
	case 'i':
		if b[i+1]|0x20 != 'n' || b[i+2]|0x20 != 'f' {
			return 0, start
		}
		v = math.Inf(1)
		if neg {
			v = math.Inf(-1)
		}
		i += 3
		const rest = "inity"
		if i+len(rest) <= len(b) {
			n := 0
			for n < len(rest) && b[i+n]|0x20 == rest[n] {
				n++
			}
			if n == len(rest) {
				i += n
			}
		}
	default:
		return 0, start
	}
	if i+1 < len(b) && b[i] == '.' && b[i+1] == '0' {
		i += 2
	} else if i < len(b) && b[i] == '.' {
		i++
	}
	if i < len(b) {
		if c := b[i]; isLetter(c) || c-'0' <= 9 || c == '_' || c == '%' || c == '/' {
			return 0, start
		}
	}
	return v, i
}

// parseValue reads a number or a non-finite literal at b[i].
func parseValue(b []byte, i int) (v float64, end int) {
	if v, end = commonNumber(b, i); end > i {
		return v, end
	}
	if v, end = anyNumber(b, i); end > i {
		return v, end
	}
	return parseNonfinite(b, i)
}

// parseInteger reads plain digits at b[i], thousands commas allowed. end == i means
// that there are none or more than fit.
func parseInteger(b []byte, i int) (n int64, end int) {
	start := i
	if i+8 <= len(b) {
		k, w := leadingDigits(binary.LittleEndian.Uint64(b[i:]))
		n, i = int64(w), i+k
	}
	for i < len(b) {
		c := b[i] - '0'
		if c <= 9 {
			if n > (1<<62)/10 {
				return 0, start
			}
			n = n*10 + int64(c)
		} else if !(b[i] == ',' && i > start && isThousands(b, i)) {
			break
		}
		i++
	}
	return n, i
}

func isLetter(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' }

// asCount returns v as an integer if it is one that a counter could hold.
func asCount(v float64) (int64, bool) {
	if v < 0 || v > 1<<53 || v != math.Trunc(v) {
		return 0, false
	}
	return int64(v), true
}

func notFinite(v float64) bool { return v-v != 0 }
