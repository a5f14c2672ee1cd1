package evidence

import (
	"math"
	"testing"
)

func TestRoundedSize(t *testing.T) {
	f := func(at, half float64, lo, hi int64) {
		t.Helper()
		if v := RoundedSize(at, half); v.Lo != lo || v.Hi != hi {
			t.Errorf("%v give or take %v is %d..%d, want %d..%d", at, half, v.Lo, v.Hi, lo, hi)
		}
	}
	f(512, 0, 512, 512)
	f(1.5*(1<<30), .005*(1<<30), 1605244027, 1615981445)
	f(0, .5, 0, 0)
	f(.1, .05, 0, 1) // a fraction of a byte is no whole number of bytes
	f(1.2, .05, 1, 2)
	f(-3, 1, 0, 0)
	f(math.Inf(1), 0, math.MaxInt64, math.MaxInt64)
	f(1e30, 1, math.MaxInt64, math.MaxInt64)
}

func TestParseBytes(t *testing.T) {
	for text, want := range map[string]int64{"80GiB": 80 << 30, " 79.5 gib ": 79<<30 + 1<<29, "84987740160": 84987740160, "24 GB": 24e9, "512b": 512, "1TiB": 1 << 40,
		"": 0, "lots": 0, "0": 0, "-1GiB": 0, "inf": 0, "nan": 0, "1e300": 0, "0.5": 0, "2000TiB": 0, "GiB": 0, "12GiBB": 0} {
		if n, err := ParseBytes(text); n != want || (err == nil) != (want > 0) {
			t.Errorf("%q: %d, %v, want %d", text, n, err, want)
		}
	}
}

func TestCount(t *testing.T) {
	for n, want := range map[int]string{0: "0", 999: "999", 1000: "1,000", -1234: "-1,234", 1234567: "1,234,567"} {
		if got := Count(n); got != want {
			t.Errorf("%d is %q, want %q", n, got, want)
		}
	}
}
