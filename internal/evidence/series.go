package evidence

import (
	"iter"
	"math"
	"slices"
)

// Trust says what a printed value can be believed for (the emitter
// may replace, omit or smooth non-finite values).
type Trust string

const (
	Raw      Trust = "raw"      // the value of that step, NaN visible
	Filtered Trust = "filtered" // the emitter may replace NaN and Inf: finite does not mean finite
	Omitted  Trust = "omitted"  // the emitter drops the key when it is NaN: absence is evidence
	Smoothed Trust = "smoothed" // mean, median or running average
)

// A SeriesKey names one series: one quantity, as one source printed it, for one
// rank and one launch.
type SeriesKey struct {
	Name     string // loss, grad_norm, lr, eval_loss, memory_allocated, memory_reserved, loss_scale, host_memory, seq_len, ... see SeriesNames
	Source   string // the emitting format: hf, megatron, titan, tqdm, generic, csv, jsonl, ...
	Artifact string
	Rank     int
	Launch   int
	Unit     string // "", bytes, steps, fraction
	Trust    Trust
	Phase    string // train, eval, ""
}

// A Point is one printed value. Step is None where the line carries no step;
// Ordinal always counts the points of the series from 0.
type Point struct {
	Step    int64
	Ordinal int64
	Value   float64
	Line    int64 // 1-based line of the artifact
	Offset  int64 // byte offset of that line
	Length  int32 // bytes of that line (its frame, for carriage-return bars)
	// Stamp is filled only for points that are sampled or not finite; a pointer,
	// because every point of a log passes through Add and few have one.
	Stamp *Stamp
}

// When returns the time of p, the zero Stamp if it has none.
func (p *Point) When() Stamp {
	if p.Stamp == nil {
		return Stamp{}
	}
	return *p.Stamp
}

// maxPoints bounds the sampled points of a series unless Keep says otherwise.
const maxPoints = 512

// A Series is what is kept of a SeriesKey's points, in bounded memory however
// long the log is: exact counts, the first and last points, the last finite
// point before the first non-finite one, runs of non-finite values, the
// extremes, and a thinned sample for plots and slopes. Thinning keeps every
// 2^k-th point and, between them, the extreme of each gap, so that no peak is
// hidden.
type Series struct {
	Key SeriesKey

	Count          int64 // all points
	Bad            int64 // non-finite points
	Zeros          int64 // points exactly 0
	First, Last    Point
	FirstBad       Point // first non-finite point; valid if Bad > 0
	LastBeforeBad  Point // last finite point before FirstBad; valid if HasBefore
	HasBefore      bool
	HasFinite      bool  // some point was finite
	BadRun         int64 // length of the non-finite run at the end of the series
	LongestBadRun  int64
	FiniteAfterBad bool  // a finite value followed a non-finite one
	Min, Max       Point // over finite points
	Stride         int64 // largest step distance seen between neighbours, 0 if unknown

	lastFinite Point // last finite point, while Last is not it

	sample []Point
	every  int64 // keep each every-th point; a power of two
	most   int   // bound on sample
	gapMax Point // extreme since the last kept point
	gapSet bool
}

// NewSeries returns an empty series.
func NewSeries(k SeriesKey) *Series { return &Series{Key: k, every: 1, most: maxPoints} }

// Keep bounds the sampled points from here on, so that the series of a thousand
// ranks fit in memory together. It is at least 2.
func (s *Series) Keep(points int) { s.most = max(points, 2) }

// WillSample reports whether the next point will be kept in the sample, so that
// a reader can fill in what is costly (its time) only then.
func (s *Series) WillSample() bool { return s.Count&(s.every-1) == 0 }

// LastFinite returns the last finite point of all; valid if HasFinite.
func (s *Series) LastFinite() Point {
	if s.BadRun == 0 {
		return s.Last
	}
	return s.lastFinite
}

// Add appends the next point in the order of the artifact.
func (s *Series) Add(p Point) { s.Append(&p) }

// Append is Add for a reader with millions of points: it sets the Ordinal of p
// and keeps copies only.
func (s *Series) Append(p *Point) {
	p.Ordinal = s.Count
	if s.Count == 0 {
		s.First = *p
	} else if p.Step != None && s.Last.Step != None {
		if d := p.Step - s.Last.Step; d > s.Stride {
			s.Stride = d
		}
	}
	finite := p.Value-p.Value == 0
	if finite {
		if s.BadRun > 0 {
			s.FiniteAfterBad = true
		}
		s.BadRun = 0
		if !s.HasFinite || p.Value < s.Min.Value {
			s.Min = *p
		}
		if !s.HasFinite || p.Value > s.Max.Value {
			s.Max = *p
		}
		s.HasFinite = true
		if p.Value == 0 {
			s.Zeros++
		}
	} else {
		if s.BadRun == 0 {
			s.lastFinite = s.Last
		}
		if s.Bad == 0 {
			s.FirstBad = *p
			s.LastBeforeBad, s.HasBefore = s.lastFinite, s.HasFinite
		}
		s.Bad++
		s.BadRun++
		if s.BadRun > s.LongestBadRun {
			s.LongestBadRun = s.BadRun
		}
	}
	if s.WillSample() {
		if s.gapSet && (s.gapMax.Value > p.Value || !finite) {
			s.sample = append(s.sample, s.gapMax)
		}
		s.gapSet = false
		s.sample = append(s.sample, *p)
		if len(s.sample) >= s.most {
			s.thin()
		}
	} else if finite && (!s.gapSet || p.Value > s.gapMax.Value) {
		s.gapMax, s.gapSet = *p, true
	}
	s.Last = *p
	s.Count++
}

// thin halves the sample, keeping of each pair of neighbours the larger value
// and always a non-finite one.
func (s *Series) thin() {
	out := s.sample[:1]
	for i := 1; i < len(s.sample); i += 2 {
		p := s.sample[i]
		if i+1 < len(s.sample) {
			q := s.sample[i+1]
			if math.IsNaN(q.Value) || !math.IsNaN(p.Value) && q.Value > p.Value {
				p = q
			}
		}
		out = append(out, p)
	}
	s.sample = out
	s.every *= 2
}

// All yields the kept points in order, the last one included, without a copy of
// them all.
func (s *Series) All() iter.Seq[Point] {
	return func(yield func(Point) bool) {
		for i := range s.sample {
			if !yield(s.sample[i]) {
				return
			}
		}
		if n := len(s.sample); s.Count == 0 || n > 0 && s.sample[n-1].Ordinal == s.Last.Ordinal {
			return
		}
		if s.gapSet && s.gapMax.Ordinal != s.Last.Ordinal && !yield(s.gapMax) {
			return
		}
		yield(s.Last)
	}
}

// Points is All as a slice of its own.
func (s *Series) Points() []Point {
	return slices.AppendSeq(make([]Point, 0, len(s.sample)+2), s.All())
}

// Span returns the line of a point of s.
func (s *Series) Span(p Point) Span {
	return Span{Artifact: s.Key.Artifact, Kind: "text", Line: p.Line, Offset: p.Offset, Length: int64(p.Length)}
}

// LossesBetween counts the logged losses of an artifact between two offsets, in
// the series that has the most of them there.
func LossesBetween(series []*Series, artifact string, from, to int64) int {
	most := 0
	for _, s := range series {
		if s.Key.Artifact != artifact || s.Key.Name != "loss" {
			continue
		}
		n := 0
		for p := range s.All() {
			if p.Offset > from && p.Offset < to {
				n++
			}
		}
		most = max(most, n)
	}
	return most
}
