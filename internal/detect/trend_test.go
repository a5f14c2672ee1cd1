package detect_test

import (
	"math"
	"testing"

	"github.com/inquest-dev/inquest/internal/detect"
	"github.com/inquest-dev/inquest/internal/testkit"
)

func TestTrend(t *testing.T) {
	repeat := func(n int, f func(i int) float64) []float64 {
		out := make([]float64, n)
		for i := range out {
			out[i] = f(i)
		}
		return out
	}
	nan := math.NaN()
	tests := []struct {
		name   string
		values []float64
		ok     bool
		slope  float64
		within float64 // tolerance of the slope
		clear  bool    // the slope is more than twice its error from 0
	}{
		{"none", nil, false, 0, 0, false},
		{"two points", []float64{1, 2}, false, 0, 0, false},
		{"two finite points", []float64{1, nan, 2, math.Inf(1)}, false, 0, 0, false},
		{"three points", []float64{1, 2, 3}, true, 1, 0, true},
		{"constant", repeat(50, func(int) float64 { return 7 }), true, 0, 0, false},
		{"linear", repeat(50, func(i int) float64 { return 3 + 2*float64(i) }), true, 2, 1e-9, true},
		{"falling", repeat(50, func(i int) float64 { return -2 * float64(i) }), true, -2, 1e-9, false},
		{"with holes", repeat(50, func(i int) float64 {
			if i%7 == 3 {
				return nan
			}
			return 2 * float64(i)
		}), true, 2, 1e-9, true},
		{"two outliers of fifty", repeat(50, func(i int) float64 {
			if i == 10 || i == 30 {
				return 1e6
			}
			return 2 * float64(i)
		}), true, 2, .1, true},
		{"first point before the caches fill", append([]float64{-1e9}, repeat(20, func(i int) float64 { return float64(i) })...), true, 1, 1e-9, true},
		{"alternating noise without a trend", repeat(60, func(i int) float64 { return float64(i % 2) }), true, 0, .05, false},
		{"noise on a slope", repeat(100, func(i int) float64 { return float64(i) + 10*math.Sin(float64(i*i)) }), true, 1, .1, true},
		{"one step in the middle", repeat(40, func(i int) float64 { return float64(i / 20) }), true, .025, .03, false},
		{"a long series is thinned", repeat(20000, func(i int) float64 { return 5 * float64(i) }), true, 5, 1e-6, true},
	}
	for _, tt := range tests {
		got, ok := detect.TrendOf(testkit.Series("memory_allocated", tt.values...).Points())
		if ok != tt.ok {
			t.Errorf("%s: known is %t, want %t", tt.name, ok, tt.ok)
			continue
		}
		if math.Abs(got.Slope-tt.slope) > tt.within {
			t.Errorf("%s: slope %g, want %g", tt.name, got.Slope, tt.slope)
		}
		if isClear := got.Slope > 2*got.Error; isClear != tt.clear && ok {
			t.Errorf("%s: slope %g ± %g, clear is %t, want %t", tt.name, got.Slope, got.Error, isClear, tt.clear)
		}
	}
}

// TestTrendWithoutSteps counts points where a series has no steps.
func TestTrendWithoutSteps(t *testing.T) {
	points := testkit.Series("memory_allocated", 0, 10, 20, 30).Points()
	for i := range points {
		points[i].Step *= 100
	}
	if tr, _ := detect.TrendOf(points); tr.Slope != .1 || !tr.PerStep {
		t.Errorf("with steps: %+v", tr)
	}
	points[2].Step = -1
	if tr, _ := detect.TrendOf(points); tr.Slope != 10 || tr.PerStep {
		t.Errorf("without: %+v", tr)
	}
}
