package evidence

import (
	"math"
	"testing"
)

// TestSeriesNonfinite: what is kept around non-finite values.
func TestSeriesNonfinite(t *testing.T) {
	s := NewSeries(SeriesKey{Name: "loss"})
	for i, v := range []float64{3, 2, math.NaN(), math.Inf(1), 5, 4, math.NaN()} {
		s.Add(Point{Step: int64(10 * i), Value: v})
	}
	switch {
	case s.Count != 7 || s.Bad != 3 || s.BadRun != 1 || s.LongestBadRun != 2 || !s.FiniteAfterBad:
		t.Errorf("counts: %+v", s)
	case s.FirstBad.Step != 20 || !s.HasBefore || s.LastBeforeBad.Step != 10:
		t.Errorf("first bad %+v after %+v", s.FirstBad, s.LastBeforeBad)
	case s.LastFinite().Step != 50 || s.Last.Step != 60:
		t.Errorf("last finite %+v, last %+v", s.LastFinite(), s.Last)
	case s.Min.Value != 2 || s.Max.Value != 5 || s.Stride != 10:
		t.Errorf("min %v, max %v, stride %d", s.Min.Value, s.Max.Value, s.Stride)
	}
	if s.Add(Point{Step: 70, Value: 1}); s.LastFinite().Step != 70 {
		t.Errorf("last finite %+v", s.LastFinite())
	}
}

// TestSeriesKeep: however many points, few are kept, the peak among them.
func TestSeriesKeep(t *testing.T) {
	for _, most := range []int{2, 24, 512} {
		s := NewSeries(SeriesKey{Name: "loss"})
		s.Reduce(most)
		for i := range 100_000 {
			v := 1.0
			if i == 77_777 {
				v = 9
			}
			s.Add(Point{Step: int64(i), Value: v})
		}
		peak := false
		points := s.Points()
		for i, p := range points {
			peak = peak || p.Value == 9
			if i > 0 && p.Ordinal <= points[i-1].Ordinal {
				t.Fatalf("points out of order at %d", i)
			}
		}
		if len(points) > most+2 || !peak && most > 2 || points[len(points)-1].Step != 99_999 {
			t.Errorf("keep %d: %d points, peak %v, last %+v", most, len(points), peak, points[len(points)-1])
		}
	}
}

// TestSeriesAll: no point of a series is copied to look at it.
func TestSeriesAll(t *testing.T) {
	s := NewSeries(SeriesKey{Name: "loss"})
	for i := range 1000 {
		s.Add(Point{Step: int64(i), Value: 1})
	}
	var last Point
	if n := testing.AllocsPerRun(10, func() {
		for p := range s.All() {
			last = p
		}
	}); n != 0 || last.Step != 999 {
		t.Errorf("%v allocations, last %+v", n, last)
	}
}

func BenchmarkSeriesAdd(b *testing.B) {
	s := NewSeries(SeriesKey{Name: "loss"})
	p := Point{Value: 2, Line: 7, Offset: 900, Length: 80}
	for b.Loop() {
		p.Step++
		s.Add(p)
	}
}
