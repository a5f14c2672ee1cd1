package ranklog

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"testing"
)

// TestParseNumberExact compares parseNumber with strconv bit by bit, on numbers
// as Python, C and Megatron print them.
func TestParseNumberExact(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	forms := []func() string{
		func() string {
			return strconv.FormatFloat(r.Float64()*math.Pow(10, float64(r.IntN(16)-10)), 'g', -1, 64)
		},
		func() string { return strconv.FormatFloat(r.NormFloat64(), 'f', -1, 64) },
		func() string { return fmt.Sprintf("%d.%d", r.IntN(1000), r.Uint64()>>(1+r.IntN(40))) },
		func() string {
			return fmt.Sprintf("%.*e", r.IntN(18), r.NormFloat64()*math.Pow(10, float64(r.IntN(20)-12)))
		},
		func() string {
			return fmt.Sprintf("%d.%0*de-%d", r.IntN(10), 1+r.IntN(18), r.IntN(1e9), r.IntN(30))
		},
	}
	for range 20000 {
		for _, form := range forms {
			s := form()
			want, err := strconv.ParseFloat(s, 64)
			if err != nil {
				t.Fatal(err)
			}
			if got, end := parseNumber([]byte(s+", "), 0); got != want || end != len(s) {
				t.Fatalf("%s: got %v, %d bytes; want %v", s, got, end, want)
			}
		}
	}
}

// TestCommonNumber: the short cut says what the long way does, or nothing.
func TestCommonNumber(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 8))
	const letters = "00123456789999..,eE+-n }'|"
	took := 0
	for range 1_000_000 {
		b := make([]byte, r.IntN(40))
		for i := range b {
			b[i] = letters[r.IntN(10+r.IntN(len(letters)-9))]
		}
		took += commonAgrees(t, b)
		took += commonAgrees(t, b[:r.IntN(len(b)+1)])
	}
	for _, s := range []string{"1.5e5", "1.5e5 ", "1.5e5     ", "1.5e-05    ", "1.5e-105    ", "1.5e+    ", "1.    ", "1.e5    ", "-.5    ", "-0.0     ", "1,234.5     ",
		"1234567.1234567890120    ", "1234567.12345678901234    ", "0.0000000000000000001    ", "9999999.999999999999e-30    ", "9007199254740993.0   ", "0.1e99      ", "1.7976931348623157e308    "} {
		took += commonAgrees(t, []byte(s))
	}
	if took < 100_000 {
		t.Errorf("only %d numbers took the short cut", took)
	}
}

func commonAgrees(t *testing.T, b []byte) (took int) {
	t.Helper()
	v, end := commonNumber(b, 0)
	if end == 0 {
		return 0
	}
	if want, to := anyNumber(b, 0); math.Float64bits(v) != math.Float64bits(want) || end != to {
		t.Fatalf("%q: %v, %d bytes; the long way %v, %d", b, v, end, want, to)
	}
	return 1
}

// TestQuotient compares one multiplication with the division.
func TestQuotient(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for k := 1; k < len(pow5); k++ {
		for range 100_000 {
			mant := r.Uint64() >> r.IntN(64)
			switch r.IntN(4) {
			case 0: // near a tie: a float64 and a half
				mant = uint64(float64(mant>>11)*(1+1.0/(1<<53))) * 2
			case 1:
				mant = pow5[k] * (mant % (math.MaxUint64/pow5[k] + 1)) // exact
			}
			if got, want := quotient(mant, k), slowQuotient(mant, k); got != want {
				t.Fatalf("%d/10^%d: %b, want %b", mant, k, got, want)
			}
		}
	}
}
