package evidence

import (
	"cmp"
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
	Name     string // loss, grad_norm, lr, eval_loss, memory_allocated, memory_reserved, device_memory (all processes), loss_scale, host_memory, seq_len, ...
	Source   string // the emitting format: hf, megatron, titan, tqdm, generic, csv, jsonl, ...
	Artifact string
	Rank     int
	Launch   int
	Unit     string // "", bytes, steps, fraction
	Trust    Trust
	Phase    string // train, eval, ""
	Records  bool   // the artifact is no text: the lines of its points are numbers of records
}

// A Point is one printed value. Step is None where the line carries no step;
// Ordinal always counts the points of the series from 0.
type Point struct {
	Step    int64
	Ordinal int64
	Value   float64
	Line    int64 // 1-based line of the artifact, or number of the record
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

// MaxPoints bounds the sample of a series that nobody reduces.
const MaxPoints = 512

// MaxRuns bounds the runs of non-finite points of a series whose ends are kept.
const MaxRuns = 256

// A Run is an unbroken run of non-finite points, by its first and last point.
type Run struct{ First, Last Mark }

// Len returns how many points the run has.
func (r Run) Len() int64 { return r.Last.Ordinal - r.First.Ordinal + 1 }

// A Mark is the place of a point without its value.
type Mark struct{ Step, Ordinal, Line, Offset int64 }

func (p *Point) mark() Mark { return Mark{p.Step, p.Ordinal, p.Line, p.Offset} }

// A Series is what is kept of a SeriesKey's points, in bounded memory however
// long the log is: exact counts, the first and last points, the last finite
// point before the first non-finite one, runs of non-finite values, the
// extremes, and a thinned sample for plots and slopes.
//
// The sample is a function of the points and of its bound alone. The points are cut
// into buckets of 2^k ordinals, with the smallest k that needs no more buckets than half the
// bound. A bucket keeps its first point and the peak of the others: a non-finite
// one before any finite one, then the larger value, then the earlier point. Both
// rules are associative, so it makes no difference whether a series was read with a
// bound, reduced to it at once or step by step, or put together from segments.
//
// While all points fit, each keeps its time; after that the first ones of the
// buckets and the non-finite ones do.
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
	Min, Max       Point // over finite points, the earliest of equal ones
	Stride         int64 // largest step distance seen between neighbours, 0 if unknown
	Runs           []Run // of non-finite points, the first MaxRuns of them
	MoreRuns       int64 // runs beyond those

	lastFinite Point // last finite point, while Last is not it

	from   int64 // ordinal of the first point: 0 but for a later segment
	sample []Point
	level  uint8 // k
	peaked bool  // the last bucket has a second point
	most   int   // bound on sample

	dull dull
}

// dull bounds the points that change nothing but Last and counts: finite ones
// within the extremes that begin no bucket and are no peak of one, at no greater
// step distance than before. It is empty behind a non-finite point.
type dull struct {
	low, high float64
	mask      int64 // 2^k-1
}

// bound sets the bounds of dull points anew.
func (s *Series) bound() {
	s.dull = dull{low: math.Inf(1), high: math.Inf(-1), mask: 1<<s.level - 1}
	if !s.HasFinite || s.BadRun > 0 || !s.peaked {
		return
	}
	s.dull.low, s.dull.high = s.Min.Value, s.Max.Value
	if p := &s.sample[len(s.sample)-1]; p.finite() && p.Value < s.dull.high {
		s.dull.high = p.Value
	}
}

// AppendDull is Append for the points that nearly all are: no new extreme and not
// sampled. It reports false, and does nothing, for all others. It leaves p alone.
func (s *Series) AppendDull(p *Point) bool {
	at, v := s.from+s.Count, p.Value
	if !(v >= s.dull.low && v <= s.dull.high) || at&s.dull.mask == 0 || p.Step-s.Last.Step > s.Stride {
		return false
	}
	// Field by field: p was just written so, and the processor waits where wider
	// loads span narrower stores.
	l := &s.Last
	l.Step, l.Ordinal, l.Value, l.Line, l.Offset, l.Length = p.Step, at, v, p.Line, p.Offset, p.Length
	if l.Stamp != p.Stamp {
		l.Stamp = p.Stamp
	}
	if v == 0 {
		s.Zeros++
	}
	s.Count++
	return true
}

// NewSeries returns an empty series.
func NewSeries(k SeriesKey) *Series { return NewSegment(k, 0) }

// NewSegment returns an empty series for the points of k from the ordinal from on,
// which Extend appends to a series of those before.
func NewSegment(k SeriesKey, from int64) *Series {
	s := &Series{Key: k, from: from, level: 1, most: MaxPoints}
	s.bound()
	return s
}

// NewDense returns an empty series whose sample has up to most points, which may be more
// than MaxPoints: for plots and comparisons step by step. No evidence file holds one.
func NewDense(k SeriesKey, most int) *Series {
	s := NewSegment(k, 0)
	s.most = max(most, 2)
	return s
}

// Reduce lowers the bound of the sample, so that the series of a thousand ranks
// fit in memory together; one over the present bound leaves it, and it is at least
// 2. The points outside the sample have their times behind it as far as the
// sample has them.
func (s *Series) Reduce(most int) {
	if most < s.most {
		s.most = max(most, 2)
		s.settle(s.level)
		s.bound()
		s.sample = slices.Clone(s.sample) // gives the memory back
	}
	for _, p := range []*Point{&s.First, &s.Last, &s.Min, &s.Max, &s.LastBeforeBad, &s.lastFinite} {
		if !p.finite() {
			continue
		}
		p.Stamp = nil
		if i, ok := slices.BinarySearchFunc(s.sample, p.Ordinal, func(q Point, at int64) int { return cmp.Compare(q.Ordinal, at) }); ok {
			p.Stamp = s.sample[i].Stamp
		}
	}
}

// WillSample reports whether the next point is the first of its bucket, or no
// point is left out yet, so that a reader can fill in what is costly (its time)
// only then.
func (s *Series) WillSample() bool {
	return s.level == 1 && s.Count < int64(s.most) || (s.from+s.Count)&(1<<s.level-1) == 0
}

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
	if s.AppendDull(p) {
		p.Ordinal = s.Last.Ordinal
		return
	}
	p.Ordinal = s.from + s.Count
	if s.Count == 0 {
		s.First = *p
	} else if p.Step != None && s.Last.Step != None {
		if d := p.Step - s.Last.Step; d > s.Stride {
			s.Stride = d
		}
	}
	if p.Value-p.Value == 0 {
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
		s.bad(p)
	}
	s.Last = *p
	s.Count++
	switch {
	case p.Ordinal&(1<<s.level-1) == 0 || s.Count == 1:
		s.sample, s.peaked = append(s.sample, *p), false
		s.settle(s.level)
	default:
		s.peak(p)
	}
	s.bound()
}

// peak adds a point of the last bucket that is not its first.
func (s *Series) peak(p *Point) {
	if !s.peaked {
		s.sample, s.peaked = append(s.sample, *p), true
	} else if q := &s.sample[len(s.sample)-1]; p.over(q) {
		*q = *p
	} else {
		return
	}
	if s.level > 1 && p.finite() {
		s.sample[len(s.sample)-1].Stamp = nil
	}
}

// bad notes a non-finite point behind the present last one.
func (s *Series) bad(p *Point) {
	if s.BadRun == 0 {
		s.lastFinite = s.Last
	}
	if s.Bad == 0 {
		s.FirstBad = *p
		s.LastBeforeBad, s.HasBefore = s.lastFinite, s.HasFinite
	}
	switch at := p.mark(); {
	case s.BadRun > 0 && s.MoreRuns == 0:
		s.Runs[len(s.Runs)-1].Last = at
	case s.BadRun > 0:
	case len(s.Runs) < MaxRuns:
		s.Runs = append(s.Runs, Run{at, at})
	default:
		s.MoreRuns++
	}
	s.Bad++
	s.BadRun++
	s.LongestBadRun = max(s.LongestBadRun, s.BadRun)
}

// over reports whether p rather than the earlier q is the peak of a bucket.
func (p *Point) over(q *Point) bool {
	if q.Value-q.Value != 0 {
		return false
	}
	return p.Value > q.Value || p.Value-p.Value != 0
}

// settle makes buckets of 2^level ordinals, or of more until there are no more
// than fit.
func (s *Series) settle(level uint8) {
	end := s.from + s.Count - 1
	for level < 62 && end>>level-s.from>>level+1 > int64(max(s.most/2, 1)) {
		level++
	}
	if level == s.level || s.Count == 0 {
		return
	}
	s.level = level
	all := s.sample
	s.sample = all[:0]
	bucket := int64(-1)
	for i := range all {
		bucket = s.put(&all[i], bucket)
	}
}

// put adds a point of a finer sample and returns the bucket that it fell into;
// last is that of the point before.
func (s *Series) put(p *Point, last int64) (bucket int64) {
	if bucket = p.Ordinal >> s.level; bucket != last {
		s.sample, s.peaked = append(s.sample, *p), false
	} else {
		s.peak(p)
	}
	return bucket
}

// Extend appends a later segment, of which it keeps copies only. It returns
// false, and does nothing, where b has another key or bound or does not begin right behind the last
// point of s.
func (s *Series) Extend(b *Series) bool {
	if b.Key != s.Key || b.from != s.from+s.Count || b.most != s.most {
		return false
	}
	if b.Count == 0 {
		return true
	}
	if s.Count == 0 {
		runs, sample := slices.Clone(b.Runs), slices.Clone(b.sample)
		*s = *b
		s.Runs, s.sample = runs, sample
		return true
	}
	if b.First.Step != None && s.Last.Step != None {
		s.Stride = max(s.Stride, b.First.Step-s.Last.Step)
	}
	s.Stride = max(s.Stride, b.Stride)
	s.extendBad(b)
	if b.HasFinite {
		if !s.HasFinite || b.Min.Value < s.Min.Value {
			s.Min = b.Min
		}
		if !s.HasFinite || b.Max.Value > s.Max.Value {
			s.Max = b.Max
		}
		s.HasFinite = true
	}
	s.Zeros += b.Zeros
	s.Count += b.Count
	s.Last = b.Last
	s.settle(max(s.level, b.level))
	last := s.sample[len(s.sample)-1].Ordinal >> s.level
	for i := range b.sample {
		last = s.put(&b.sample[i], last)
	}
	s.bound()
	return true
}

// extendBad appends what a later segment with points says of non-finite ones.
func (s *Series) extendBad(b *Series) {
	if b.Bad == 0 {
		s.FiniteAfterBad = s.FiniteAfterBad || s.Bad > 0
		s.BadRun = 0
		return
	}
	if s.Bad == 0 {
		s.FirstBad, s.LastBeforeBad, s.HasBefore = b.FirstBad, b.LastBeforeBad, true
		if !b.HasBefore {
			s.LastBeforeBad = s.Last
		}
	}
	s.FiniteAfterBad = s.FiniteAfterBad || b.FiniteAfterBad || s.Bad > 0 && b.HasFinite
	runs, lead := b.Runs, int64(0)
	if runs[0].First.Ordinal == b.from {
		lead = runs[0].Len()
	}
	switch alone := len(runs) == 1 && b.MoreRuns == 0; {
	case lead == 0 || !alone:
		s.lastFinite = b.lastFinite
	case s.BadRun == 0:
		s.lastFinite = s.Last
	}
	s.LongestBadRun = max(s.LongestBadRun, b.LongestBadRun)
	if s.BadRun > 0 && lead > 0 { // one run across the seam
		s.LongestBadRun = max(s.LongestBadRun, s.BadRun+lead)
		if s.MoreRuns == 0 {
			s.Runs[len(s.Runs)-1].Last = runs[0].Last
		}
		runs = runs[1:]
	}
	fit := min(MaxRuns-len(s.Runs), len(runs))
	s.Runs = append(s.Runs, runs[:fit]...)
	s.MoreRuns += int64(len(runs)-fit) + b.MoreRuns
	if b.HasFinite {
		s.BadRun = 0
	}
	s.BadRun += b.BadRun
	s.Bad += b.Bad
}

// Sampled returns how many points the sample has.
func (s *Series) Sampled() int { return len(s.sample) }

// All yields the kept points in order, the last one included, without a copy of
// them all.
func (s *Series) All() iter.Seq[Point] {
	return func(yield func(Point) bool) {
		for i := range s.sample {
			if !yield(s.sample[i]) {
				return
			}
		}
		if n := len(s.sample); n > 0 && s.sample[n-1].Ordinal != s.Last.Ordinal {
			yield(s.Last)
		}
	}
}

// Points is All as a slice of its own.
func (s *Series) Points() []Point {
	return slices.AppendSeq(make([]Point, 0, len(s.sample)+1), s.All())
}

// Span returns the line, or the record, of a point of s.
func (s *Series) Span(p Point) Span {
	if s.Key.Records {
		return Span{Artifact: s.Key.Artifact, Kind: "record", Record: p.Line, Offset: p.Offset, Length: int64(p.Length)}
	}
	return Span{Artifact: s.Key.Artifact, Kind: "text", Line: p.Line, Offset: p.Offset, Length: int64(p.Length)}
}

// LossesBetween counts the logged losses of an artifact between two offsets, in
// the series that has the most of them there. Of a series whose points are
// not all kept it counts those from the first to the last one that is.
func LossesBetween(series []*Series, artifact string, from, to int64) int {
	most := int64(0)
	for _, s := range series {
		if s.Key.Artifact != artifact || s.Key.Name != "loss" {
			continue
		}
		first, last := int64(-1), int64(-2)
		for p := range s.All() {
			if p.Offset > from && p.Offset < to {
				if first < 0 {
					first = p.Ordinal
				}
				last = p.Ordinal
			}
		}
		most = max(most, last-first+1)
	}
	return int(most)
}
