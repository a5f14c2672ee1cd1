package evidence

import (
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
)

// randomPoints are points with ties, plateaus, climbs and non-finite runs.
func randomPoints(r *rand.Rand) []Point {
	points := make([]Point, r.IntN(1<<r.IntN(13)))
	bad, step := r.Float64()*r.Float64(), int64(r.IntN(50))
	if r.IntN(3) == 0 {
		bad = 0
	}
	shape := r.IntN(4)
	wasBad := false
	for i := range points {
		v := 0.0
		switch shape {
		case 0:
			v = float64(r.IntN(4))
		case 1:
			v = float64(i)
		case 2:
			v = -float64(i)
		case 3:
			v = r.NormFloat64()
		}
		if wasBad = r.Float64() < bad || wasBad && r.IntN(3) == 0; wasBad {
			v = []float64{math.NaN(), math.Inf(1), math.Inf(-1)}[r.IntN(3)]
		}
		step += int64(r.IntN(5))
		points[i] = Point{Step: step, Value: v, Line: int64(i + 1), Offset: int64(100 * i), Length: 99}
		if r.IntN(100) == 0 {
			points[i].Step = None
		}
	}
	return points
}

// seriesOf is the series of points that begin at an ordinal.
func seriesOf(most int, from int64, points []Point) *Series {
	s := NewSegment(SeriesKey{Name: "loss"}, from)
	s.Reduce(most)
	for _, p := range points {
		s.Add(p)
	}
	return s
}

// same compares states bit by bit: NaN is itself, an empty list no list.
func same(a, b *Series) bool {
	bits := func(s *Series) SeriesState {
		st := s.State()
		st.Sample = append([]Point{}, st.Sample...)
		st.Runs = append([]Run{}, st.Runs...)
		for _, p := range []*Point{&st.First, &st.Last, &st.FirstBad, &st.LastBeforeBad, &st.LastFinite} {
			unNaN(p)
		}
		for i := range st.Sample {
			unNaN(&st.Sample[i])
		}
		return st
	}
	return a.peaked == b.peaked && reflect.DeepEqual(bits(a), bits(b))
}

func unNaN(p *Point) {
	if p.Value != p.Value {
		p.Value = 4711.5
	}
}

// naive is the sample as its definition says it.
func naive(most int, points []Point) []Point {
	size := 2
	for (len(points)+size-1)/size > max(most/2, 1) {
		size *= 2
	}
	var out []Point
	for from := 0; from < len(points); from += size {
		bucket := points[from:min(from+size, len(points))]
		out = append(out, bucket[0])
		if len(bucket) == 1 {
			continue
		}
		peak := bucket[1]
		for _, p := range bucket[1:] {
			switch bad, isBad := peak.Value-peak.Value != 0, p.Value-p.Value != 0; {
			case bad:
			case isBad || p.Value > peak.Value:
				peak = p
			}
		}
		out = append(out, peak)
	}
	return out
}

// TestSeriesRule: the sample is the function of the points that it is said to be,
// and however a series comes about, it is the same.
func TestSeriesRule(t *testing.T) {
	for seed := range uint64(400) {
		r := rand.New(rand.NewPCG(seed, 1))
		points := randomPoints(r)
		most := 2 + r.IntN(130)
		want := seriesOf(most, 0, points)
		for i := range points {
			points[i].Ordinal = int64(i)
		}
		got, sample := slices.Clone(want.sample), naive(most, points)
		for i := range got {
			unNaN(&got[i])
		}
		for i := range sample {
			unNaN(&sample[i])
		}
		if !slices.Equal(got, sample) {
			t.Fatalf("seed %d: %d points, at most %d: sample\n%v\nwant\n%v", seed, len(points), most, got, sample)
		}
		reduced := seriesOf(MaxPoints, 0, points)
		for _, m := range []int{MaxPoints, most + r.IntN(MaxPoints-most), most} {
			reduced.Reduce(m)
		}
		if !same(reduced, want) {
			t.Fatalf("seed %d: %d points, reduced to %d:\n%+v\nread so:\n%+v", seed, len(points), most, reduced.State(), want.State())
		}
		grouped := grouping(r, most, 0, points)
		if !same(grouped, want) {
			t.Fatalf("seed %d: %d points, at most %d, in segments:\n%+v\nwhole:\n%+v", seed, len(points), most, grouped.State(), want.State())
		}
		back, err := Restore(want.Key, want.State())
		if err != nil || !same(back, want) {
			t.Fatalf("seed %d: restored: %v\n%+v\nwas\n%+v", seed, err, back, want.State())
		}
		exact(t, want, points)
	}
}

// grouping puts a series together from two parts, each whole or of parts itself.
func grouping(r *rand.Rand, most int, from int64, points []Point) *Series {
	if len(points) < 2 || r.IntN(4) == 0 {
		return seriesOf(most, from, points)
	}
	cut := r.IntN(len(points) + 1)
	a, b := grouping(r, most, from, points[:cut]), grouping(r, most, from+int64(cut), points[cut:])
	before := b.State()
	before.Sample, before.Runs = slices.Clone(before.Sample), slices.Clone(before.Runs)
	if !a.Extend(b) {
		panic("a segment is refused")
	}
	if c, err := Restore(b.Key, before); err != nil || !same(b, c) {
		panic("the later segment has changed")
	}
	return a
}

// exact compares what a series counts with its points.
func exact(t *testing.T, s *Series, points []Point) {
	t.Helper()
	bad, zeros := int64(0), int64(0)
	var runs []Run
	for i := range points {
		p := &points[i]
		if p.Value == 0 {
			zeros++
		}
		if p.Value-p.Value == 0 {
			continue
		}
		bad++
		if n := len(runs); n > 0 && runs[n-1].Last.Ordinal == p.Ordinal-1 {
			runs[n-1].Last = p.mark()
		} else {
			runs = append(runs, Run{p.mark(), p.mark()})
		}
	}
	kept := runs[:min(len(runs), MaxRuns)]
	if s.Count != int64(len(points)) || s.Bad != bad || s.Zeros != zeros || !slices.Equal(s.Runs, kept) || s.MoreRuns != int64(len(runs)-len(kept)) {
		t.Fatalf("count %d of %d, bad %d of %d, zeros %d of %d, runs %v and %d more of %v", s.Count, len(points), s.Bad, bad, s.Zeros, zeros, s.Runs, s.MoreRuns, runs)
	}
}

// TestSeriesRefused: what cannot be a later segment is left alone.
func TestSeriesRefused(t *testing.T) {
	s := seriesOf(64, 0, make([]Point, 100))
	for name, b := range map[string]*Series{
		"gap":     seriesOf(64, 101, make([]Point, 3)),
		"overlap": seriesOf(64, 99, make([]Point, 3)),
		"bound":   seriesOf(32, 100, make([]Point, 3)),
		"key":     NewSegment(SeriesKey{Name: "lr"}, 100),
	} {
		if s.Extend(b) || s.Count != 100 {
			t.Errorf("%s: extended to %d points", name, s.Count)
		}
	}
}

// TestRestoreRefused: no state that contradicts itself becomes a series.
func TestRestoreRefused(t *testing.T) {
	points := make([]Point, 1000)
	points[400].Value, points[401].Value, points[700].Value = math.NaN(), math.Inf(1), math.NaN()
	s := seriesOf(64, 0, points)
	for name, spoil := range map[string]func(*SeriesState){
		"count":         func(st *SeriesState) { st.Count++ },
		"huge count":    func(st *SeriesState) { st.Count = math.MaxInt64 },
		"from":          func(st *SeriesState) { st.From = -1 },
		"level":         func(st *SeriesState) { st.Level = 0 },
		"high level":    func(st *SeriesState) { st.Level = 200 },
		"low level":     func(st *SeriesState) { st.Level-- },
		"bound":         func(st *SeriesState) { st.Most = MaxPoints + 1 },
		"bad":           func(st *SeriesState) { st.Bad = 5000 },
		"fewer bad":     func(st *SeriesState) { st.Bad = 2; st.LongestBadRun = 2 },
		"zeros":         func(st *SeriesState) { st.Zeros = 1000 },
		"run":           func(st *SeriesState) { st.Runs = []Run{{st.Runs[1].First, st.Runs[0].Last}} },
		"runs":          func(st *SeriesState) { st.Runs = make([]Run, MaxRuns+1) },
		"more runs":     func(st *SeriesState) { st.MoreRuns = 1 },
		"negative runs": func(st *SeriesState) { st.MoreRuns = -1 },
		"sample":        func(st *SeriesState) { st.Sample = st.Sample[:len(st.Sample)-1] },
		"more sample":   func(st *SeriesState) { st.Sample = append(slices.Clip(st.Sample), Point{Ordinal: 999}) },
		"order":         func(st *SeriesState) { st.Sample = slices.Clone(st.Sample); slices.Reverse(st.Sample) },
		"no sample":     func(st *SeriesState) { st.Sample = nil },
		"no count":      func(st *SeriesState) { st.Count = 0 },
		"last":          func(st *SeriesState) { st.Last.Value = math.NaN() },
		"extremes":      func(st *SeriesState) { st.Min.Value = 7 },
		"first bad":     func(st *SeriesState) { st.FirstBad.Ordinal = 3 },
	} {
		st := s.State()
		spoil(&st)
		if _, err := Restore(s.Key, st); err == nil {
			t.Errorf("%s: restored", name)
		}
	}
}

// TestSeriesTimes: a reader that states the time only where it is asked for one gives
// it to the first point of every bucket.
func TestSeriesTimes(t *testing.T) {
	stamp := &Stamp{Written: "12:00"}
	for n := 0; n < 3000; n += 1 + n/100 {
		s := NewSeries(SeriesKey{})
		for i := range n {
			p := Point{Value: float64(i * 31 % 17)}
			if s.WillSample() {
				p.Stamp = stamp
			}
			s.Add(p)
		}
		for i, p := range s.sample {
			if (i%2 == 0 || n <= MaxPoints) && !p.When().Known() {
				t.Fatalf("%d points: no time at %d", n, p.Ordinal)
			}
		}
	}
}

// TestLossesBetween: left-out points between two that are kept count.
func TestLossesBetween(t *testing.T) {
	s := NewSeries(SeriesKey{Name: "loss", Artifact: "a"})
	for i := range 50_000 {
		s.Add(Point{Step: int64(i), Value: 1, Offset: int64(100 * i)})
	}
	for _, tt := range []struct {
		from, to    int64
		least, most int
	}{
		{0, 5_000_000, 49_900, 49_999}, {1_000_000, 3_000_000, 19_500, 20_000}, {-1, 1, 1, 1}, {5_000_000, 6_000_000, 0, 0},
	} {
		if n := LossesBetween([]*Series{s}, "a", tt.from, tt.to); n < tt.least || n > tt.most {
			t.Errorf("between %d and %d: %d losses, want %d to %d", tt.from, tt.to, n, tt.least, tt.most)
		}
	}
	if n := LossesBetween([]*Series{s}, "b", 0, 5_000_000); n != 0 {
		t.Errorf("%d losses of another artifact", n)
	}
}
