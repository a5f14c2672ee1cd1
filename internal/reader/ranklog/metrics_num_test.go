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
