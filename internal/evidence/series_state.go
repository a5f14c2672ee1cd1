package evidence

import "errors"

// A SeriesState is all that a Series holds beside its key, for whoever stores
// one. Restore makes the same series of it.
type SeriesState struct {
	Count, Bad, Zeros       int64
	First, Last             Point
	FirstBad, LastBeforeBad Point
	HasBefore, HasFinite    bool
	BadRun, LongestBadRun   int64
	FiniteAfterBad          bool
	Min, Max                Point
	Stride                  int64
	Runs                    []Run
	MoreRuns                int64
	LastFinite              Point // of those before the last non-finite run
	From                    int64 // ordinal of the first point
	Sample                  []Point
	Level                   uint8 // buckets have 2^Level ordinals
	Most                    int   // bound on Sample
}

// State returns what s holds. Its slices are those of s.
func (s *Series) State() SeriesState {
	return SeriesState{
		Count: s.Count, Bad: s.Bad, Zeros: s.Zeros, First: s.First, Last: s.Last,
		FirstBad: s.FirstBad, LastBeforeBad: s.LastBeforeBad, HasBefore: s.HasBefore, HasFinite: s.HasFinite,
		BadRun: s.BadRun, LongestBadRun: s.LongestBadRun, FiniteAfterBad: s.FiniteAfterBad,
		Min: s.Min, Max: s.Max, Stride: s.Stride, Runs: s.Runs, MoreRuns: s.MoreRuns,
		LastFinite: s.lastFinite, From: s.from, Sample: s.sample, Level: s.level, Most: s.most,
	}
}

var errSeriesState = errors.New("a series whose parts contradict each other")

// Restore returns the series of k that st was taken of. Its error says that no
// series has such a state.
func Restore(k SeriesKey, st SeriesState) (*Series, error) {
	if !st.consistent() {
		return nil, errSeriesState
	}
	s := &Series{
		Key: k, Count: st.Count, Bad: st.Bad, Zeros: st.Zeros, First: st.First, Last: st.Last,
		FirstBad: st.FirstBad, LastBeforeBad: st.LastBeforeBad, HasBefore: st.HasBefore, HasFinite: st.HasFinite,
		BadRun: st.BadRun, LongestBadRun: st.LongestBadRun, FiniteAfterBad: st.FiniteAfterBad,
		Min: st.Min, Max: st.Max, Stride: st.Stride, Runs: st.Runs, MoreRuns: st.MoreRuns,
		lastFinite: st.LastFinite, from: st.From, sample: st.Sample, level: st.Level, most: st.Most,
	}
	s.peaked = s.Count > 0 && s.sample[len(s.sample)-1].Ordinal != max(s.from, s.Last.Ordinal>>s.level<<s.level)
	s.bound()
	return s, nil
}

func (st *SeriesState) consistent() bool {
	const most = 1 << 60
	end := st.From + st.Count
	switch {
	case st.From < 0 || st.From > most || st.Count < 0 || st.Count > most || st.Level < 1 || st.Level > 62 || st.Most < 2 || st.Most > MaxPoints:
		return false
	case st.Bad < 0 || st.Bad > st.Count || st.Zeros < 0 || st.Zeros > st.Count-st.Bad:
		return false
	case st.BadRun < 0 || st.LongestBadRun < st.BadRun || st.LongestBadRun > st.Bad || st.MoreRuns < 0:
		return false
	case st.Count == 0:
		return len(st.Sample) == 0 && len(st.Runs) == 0 && st.MoreRuns == 0
	case st.HasFinite != (st.Bad < st.Count) || (st.Bad == 0) != (len(st.Runs) == 0) || st.MoreRuns > 0 && len(st.Runs) != MaxRuns:
		return false
	case st.First.Ordinal != st.From || st.Last.Ordinal != end-1 || (st.BadRun > 0) == st.Last.finite():
		return false
	case st.HasFinite && !(st.Min.finite() && st.Max.finite() && st.Min.Value <= st.Max.Value):
		return false
	case st.Bad > 0 && (st.FirstBad.finite() || st.FirstBad.Ordinal != st.Runs[0].First.Ordinal):
		return false
	}
	return st.runsConsistent(end) && st.sampleConsistent(end)
}

func (st *SeriesState) runsConsistent(end int64) bool {
	if len(st.Runs) > MaxRuns {
		return false
	}
	n, next := st.MoreRuns, st.From // of points, at least one in each run that is not kept
	for _, r := range st.Runs {
		if r.First.Ordinal < next || r.Last.Ordinal < r.First.Ordinal || r.Last.Ordinal >= end {
			return false
		}
		n += r.Len()
		next = r.Last.Ordinal + 2
	}
	return n == st.Bad || n < st.Bad && st.MoreRuns > 0
}

// sampleConsistent reports whether each bucket has its first point and, if it has
// more, one of the others.
func (st *SeriesState) sampleConsistent(end int64) bool {
	if (end-1)>>st.Level-st.From>>st.Level+1 > int64(st.Most/2) {
		return false
	}
	rest := st.Sample
	for from := st.From; from < end; {
		to := min((from>>st.Level+1)<<st.Level, end)
		if len(rest) == 0 || rest[0].Ordinal != from {
			return false
		}
		rest = rest[1:]
		if to-from > 1 {
			if len(rest) == 0 || rest[0].Ordinal <= from || rest[0].Ordinal >= to {
				return false
			}
			rest = rest[1:]
		}
		from = to
	}
	return len(rest) == 0
}

func (p *Point) finite() bool { return p.Value-p.Value == 0 }
