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
