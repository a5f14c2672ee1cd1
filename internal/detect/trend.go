package detect

import (
	"math"
	"sort"

	"github.com/inquest-dev/inquest/internal/evidence"
)

// A Trend is a straight line through a series.
type Trend struct {
	Slope   float64 // per step (per point where the series has no steps)
	Error   float64 // half width of the slope: the middle half of the pairwise slopes
	Rising  float64 // share of neighbours that rise
	Rise    float64 // last minus first, on the line
	N       int
	PerStep bool // x is the step; else the ordinal
}

// TrendOf fits by the Theil–Sen estimator (median of the slopes of all pairs),
// which a few outliers do not move (P. K. Sen, J. Am. Stat. Assoc. 63, 1968).
// The first point is left out of long series: it is before the first step has
// filled the caches. It needs three finite points.
func TrendOf(points []evidence.Point) (Trend, bool) {
	var xs, ys []float64
	steps := true
	for _, p := range points {
		if p.Step == evidence.None {
			steps = false
		}
	}
	for _, p := range points {
		if math.IsNaN(p.Value) || math.IsInf(p.Value, 0) {
			continue
		}
		x := float64(p.Ordinal)
		if steps {
			x = float64(p.Step)
		}
		xs, ys = append(xs, x), append(ys, p.Value)
	}
	if len(xs) >= 6 {
		xs, ys = xs[1:], ys[1:]
	}
	if len(xs) < 3 {
		return Trend{}, false
	}
	if n := len(xs); n > 128 { // all pairs of a thinned copy are enough
		k := (n + 127) / 128
		var tx, ty []float64
		for i := 0; i < n; i += k {
			tx, ty = append(tx, xs[i]), append(ty, ys[i])
		}
		xs, ys = tx, ty
	}
	var slopes []float64
	rising := 0
	for i := range xs {
		if i > 0 && ys[i] > ys[i-1] {
			rising++
		}
		for j := i + 1; j < len(xs); j++ {
			if xs[j] != xs[i] {
				slopes = append(slopes, (ys[j]-ys[i])/(xs[j]-xs[i]))
			}
		}
	}
	if len(slopes) == 0 {
		return Trend{}, false
	}
	sort.Float64s(slopes)
	q := func(f float64) float64 { return slopes[int(f*float64(len(slopes)-1))] }
	t := Trend{Slope: median(slopes), Error: (q(.75) - q(.25)) / 2, N: len(xs), PerStep: steps}
	t.Rising = float64(rising) / float64(len(xs)-1)
	t.Rise = t.Slope * (xs[len(xs)-1] - xs[0])
	return t, true
}

// grows reports whether a series of bytes climbs steadily: most neighbours
// rise, the slope is clear of its error, and the whole rise is at least 5 per
// cent of the largest value.
//
// What was level at first and climbs at the end grows too: the second half, and
// the last dozen points, are judged by themselves, with twice the rise asked for.
func grows(s *evidence.Series) (Trend, bool) {
	points := s.Points()
	t, ok := TrendOf(points)
	if ok && t.steady() && t.Rise >= .05*s.Max.Value {
		return t, true
	}
	for _, from := range []int{len(points) / 2, len(points) - 12} {
		if from <= 0 || len(points)-from < 6 {
			continue
		}
		if tail, ok := TrendOf(points[from:]); ok && tail.steady() && tail.Rise >= .1*s.Max.Value {
			return tail, true
		}
	}
	return t, false
}

// steady reports whether most neighbours rise and the slope is clear of its error.
func (t Trend) steady() bool { return t.Slope > 0 && t.Rising >= .6 && t.Slope > 2*t.Error }

// flat reports whether a series stays within 3 per cent of its largest value.
func flat(s *evidence.Series) bool {
	return s.Count-s.Bad >= 3 && s.Max.Value > 0 && (s.Max.Value-s.Min.Value) <= .03*s.Max.Value
}
