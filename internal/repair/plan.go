package repair

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/inquest-dev/inquest/internal/evidence"
	"github.com/inquest-dev/inquest/internal/incident"
)

// A fate is why a point is kept or not.
type fate uint8

const (
	real       fate = iota
	nonfinite       // NaN or an infinity
	suspect         // finite, and taken out as suspect
	superseded      // its step was written again later
)

// An account counts the points of a series by what became of them.
type account struct {
	count, kept, dropped, held, superseded int64
	nan, posInf, negInf, suspect           int64
	sum                                    uint64 // of the points that the copy has, see mark
}

// balances reports whether each point has one fate.
func (a *account) balances() bool {
	return a.count == a.kept+a.dropped+a.held+a.superseded && a.nan+a.posInf+a.negInf+a.suspect == a.dropped+a.held
}

func (a *account) add(b *account) {
	a.count += b.count
	a.kept += b.kept
	a.dropped += b.dropped
	a.held += b.held
	a.superseded += b.superseded
	a.nan += b.nan
	a.posInf += b.posInf
	a.negInf += b.negInf
	a.suspect += b.suspect
	a.sum += b.sum
}

// nameSum and pointSum make a sum of points that does not depend on their order: two
// collections of finite points have the same count and sum only if they are the same,
// but for one case in 2^64. Zero has no sign: text formats need not keep it.
func nameSum(name string) uint64 {
	h := uint64(14695981039346656037) // FNV-1a
	for i := range len(name) {
		h = (h ^ uint64(name[i])) * 1099511628211
	}
	return scramble(h)
}

func pointSum(name uint64, step int64, v float64) uint64 {
	if v == 0 {
		v = 0
	}
	return scramble(scramble(name+uint64(step)) ^ math.Float64bits(v))
}

// scramble is the finaliser of SplitMix64.
func scramble(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// decisions are what is known of a series before its points are decided. Points are named
// by their ordinals in the file.
type decisions struct {
	// starts are the segments whose first step is below that of all later ones, by rising
	// ordinal and step: a point is superseded if the first of them behind it begins at its step
	// or below. Empty unless superseded points are taken out.
	starts []start
	// again is the lowest step of later files in which the series goes on; math.MaxInt64 for none.
	again    int64
	suspects []evidence.Suspect // taken out or only listed, by rising ordinal
	// clamped: the tracker stored the largest finite number in place of an infinity. Pages draw
	// it as they would an infinity, so that it is always taken out; it counts as suspect.
	clamped bool
}

type start struct{ ordinal, step int64 }

// A seriesState decides about the points of a series, one after the other.
type seriesState struct {
	known   *decisions // nil where the readers did not keep the series
	want    *account   // what the second reading gave; nil while it is being made
	policy  incident.RepairPolicy
	name    uint64
	passive bool // all points are kept

	at       int64 // ordinal of the next point
	nextCut  int   // first of known.starts behind it
	nextSus  int   // first of known.suspects that does not lie before it
	last     float64
	has      bool // some finite value was kept
	seen     account
	lastFate fate
}

// next decides about a point and accounts for it.
func (s *seriesState) next(step int64, _, v float64) (Action, float64) {
	if s.passive {
		return Keep, v
	}
	a := &s.seen
	a.count++
	s.lastFate = s.decide(step, v)
	s.at++
	switch s.lastFate {
	case superseded:
		a.superseded++
		return Drop, v
	case nonfinite:
		switch {
		case math.IsNaN(v):
			a.nan++
		case v > 0:
			a.posInf++
		default:
			a.negInf++
		}
		if s.policy.Nonfinite == HoldValues && s.has {
			a.held++
			a.sum += pointSum(s.name, step, s.last)
			return Hold, s.last
		}
		a.dropped++
		return Drop, v
	case suspect:
		a.suspect++
		a.dropped++
		return Drop, v
	}
	s.last, s.has = v, true
	a.kept++
	a.sum += pointSum(s.name, step, v)
	return Keep, v
}

func (s *seriesState) decide(step int64, v float64) fate {
	if k := s.known; k != nil {
		for s.nextCut < len(k.starts) && k.starts[s.nextCut].ordinal <= s.at {
			s.nextCut++
		}
		if step != evidence.None && (step >= k.again || s.nextCut < len(k.starts) && step >= k.starts[s.nextCut].step) {
			return superseded
		}
	}
	switch {
	case v-v != 0:
		return nonfinite
	case s.known != nil && s.known.clamped && math.Abs(v) == math.MaxFloat64:
		return suspect
	case s.policy.Suspects && s.suspected() != nil:
		return suspect
	}
	return real
}

// suspected returns the suspects among which the point to be decided is, nil for none.
func (s *seriesState) suspected() *evidence.Suspect {
	if s.known == nil {
		return nil
	}
	list := s.known.suspects
	for s.nextSus < len(list) && list[s.nextSus].Last.Ordinal < s.at {
		s.nextSus++
	}
	if s.nextSus < len(list) && list[s.nextSus].First.Ordinal <= s.at {
		return &list[s.nextSus]
	}
	return nil
}

func (p *Plan) run(key RunKey) *Run {
	if r := p.runs[key]; r != nil {
		return r
	}
	return p.newRun(key, &evidence.TrackedRun{})
}

func (p *Plan) newRun(key RunKey, read *evidence.TrackedRun) *Run {
	r := &Run{Key: key, Read: read, Clean: evidence.None, First: evidence.None, Since: evidence.None, plan: p, series: map[seriesKey]*Series{}}
	p.runs[key] = r
	return r
}

// Passive reports whether a run was read and is not repaired.
func (p *Plan) Passive(key RunKey) bool { return p.runs[key] != nil && p.runs[key].Passive }

func (r *Run) get(artifact, name string) *Series {
	key := seriesKey{artifact, name}
	s := r.series[key]
	if s == nil {
		s = &Series{key: key, state: seriesState{policy: r.plan.Policy, name: nameSum(name), passive: r.Passive}}
		r.series[key] = s
		r.order = append(r.order, s)
	}
	return s
}

func (r *Run) mark(step int64) (float64, bool) {
	if step == evidence.None {
		return 0, false
	}
	i, ok := slices.BinarySearchFunc(r.marks, step, func(m Mark, step int64) int {
		if m.Step == evidence.None {
			return 1
		}
		return cmp.Compare(m.Step, step)
	})
	if !ok {
		return 0, false
	}
	return r.marks[i].Value, true
}

// Untouched reports whether every point of every series of a file is kept, so that the file
// may be copied as it is; its points then count as asked about.
func (p *Plan) Untouched(artifact string) bool {
	var of []*Series
	for _, r := range p.list {
		for _, s := range r.order {
			if s.key.artifact != artifact {
				continue
			}
			if w := s.state.want; w == nil || w.kept != w.count {
				return false
			}
			of = append(of, s)
		}
	}
	for _, s := range of {
		s.state.seen = *s.state.want
	}
	return true
}

// Artifacts are the files of the runs that are repaired, in the order in which they were
// first met.
func (p *Plan) Artifacts() []string {
	var list []string
	seen := map[string]bool{}
	add := func(artifact string) {
		if !seen[artifact] {
			seen[artifact] = true
			list = append(list, artifact)
		}
	}
	for _, r := range p.list {
		add(r.Read.Artifact)
		for _, s := range r.order {
			add(s.key.artifact)
		}
	}
	return list
}

// In reports whether the run has points in a file.
func (r *Run) In(artifact string) bool {
	return slices.ContainsFunc(r.order, func(s *Series) bool { return s.key.artifact == artifact })
}

// Changed reports whether anything at all is to be done: a point taken out or replaced, or
// a status that the source states and that is not true.
func (p *Plan) Changed() bool {
	for _, r := range p.list {
		if r.Status != "" && r.Read.StatusSaid != "" {
			return true
		}
		for _, s := range r.order {
			if w := s.state.want; w != nil && w.kept != w.count {
				return true
			}
		}
	}
	return false
}

// account checks what the format asked against the second reading.
func (s *Series) account() error {
	seen, want := &s.state.seen, s.state.want
	switch {
	case !seen.balances():
		return fmt.Errorf("series %q of %s: %d points are not %d kept, %d dropped, %d held and %d superseded", s.key.name, s.key.artifact, seen.count, seen.kept, seen.dropped, seen.held, seen.superseded)
	case want == nil || *seen == *want:
		return nil
	case seen.count != want.count:
		return fmt.Errorf("series %q of %s: the readers met %d points, the copy was made of %d", s.key.name, s.key.artifact, want.count, seen.count)
	}
	return fmt.Errorf("series %q of %s: the points of the copy are not those that the readers met", s.key.name, s.key.artifact)
}
