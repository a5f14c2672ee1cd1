package wandblog

import (
	"math"
	"math/rand/v2"
	"strconv"
	"testing"
)

func TestNumber(t *testing.T) {
	for _, c := range []struct {
		in string
		v  float64
		ok bool
	}{
		{"0", 0, true}, {"-0", math.Copysign(0, -1), true}, {"0.0", 0, true}, {"1", 1, true}, {"-1.5", -1.5, true}, {"1e3", 1000, true}, {"1E+3", 1000, true}, {"25e-1", 2.5, true},
		{"NaN", math.NaN(), true}, {"Infinity", math.Inf(1), true}, {"-Infinity", math.Inf(-1), true}, {"1e999", math.Inf(1), true}, {"-1e999", math.Inf(-1), true}, {"1e-999", 0, true},
		{"18446744073709551615", 18446744073709551615, true}, {"123456789012345678901234567890", 1.2345678901234568e29, true}, {"9007199254740993", 9007199254740992, true},
		{"0.1234567890123456789012345", 0.12345678901234568, true}, {"4.9e-324", 5e-324, true}, {"1.7976931348623157e308", math.MaxFloat64, true},
		{"", 0, false}, {"-", 0, false}, {".5", 0, false}, {"1e", 0, false}, {"1e+", 0, false}, {"0x10", 0, false}, {"1_0", 0, false}, {"nan", 0, false}, {"inf", 0, false}, {"true", 0, false},
		{`"1"`, 0, false}, {"null", 0, false}, {"1 2", 0, false}, {"[1]", 0, false}, {"1,", 0, false},
	} {
		v, ok := Number([]byte(c.in))
		if ok != c.ok || ok && math.Float64bits(v) != math.Float64bits(c.v) && !(math.IsNaN(v) && math.IsNaN(c.v)) {
			t.Errorf("%q: %v %v, want %v %v", c.in, v, ok, c.v, c.ok)
		}
	}
}

// TestNumberRounds sets numbers of every length and size against strconv.
func TestNumberRounds(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 300000 {
		var in string
		switch r.IntN(4) {
		case 0:
			in = strconv.FormatFloat(math.Float64frombits(r.Uint64()), "gef"[r.IntN(3)], -1, 64)
		case 1:
			in = strconv.FormatFloat(r.NormFloat64(), 'g', 1+r.IntN(19), 64)
		case 2: // between two neighbours, or near
			a := r.Float64()
			in = strconv.FormatFloat(a, 'f', 16+r.IntN(4), 64)
		default:
			in = strconv.FormatUint(r.Uint64()>>r.IntN(64), 10)
			if i := r.IntN(len(in)); i > 0 {
				in = in[:i] + "." + in[i:]
			}
			if r.IntN(3) == 0 {
				in += "e" + strconv.Itoa(r.IntN(50)-25)
			}
		}
		want, err := strconv.ParseFloat(in, 64)
		if err != nil || math.IsNaN(want) || math.IsInf(want, 0) {
			continue
		}
		if got, ok := number([]byte(in)); !ok || got != want {
			t.Fatalf("%s: %v %v, want %v", in, got, ok, want)
		}
	}
}
