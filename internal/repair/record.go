package repair

import (
	"cmp"
	"math"
	"slices"

	"github.com/inquest-dev/inquest/internal/evidence"
	"github.com/inquest-dev/inquest/internal/incident"
)

// Reasons of failed segments whose values show it themselves.
const (
	notFinite  = "not finite"
	wasClamped = "the largest finite number, which the tracker stores for an infinity"
)

type spot struct {
	step int64
	wall float64
}

// A record is what the second reading notes of a series beside its account.
type record struct {
	all        uint64 // sum of all points, in their order
	failed     []stretch
	suspicious []stretch         // left in
	now        *stretch          // the failed segment that the last point was in, of failed
	sus        *evidence.Suspect // the suspects left in that the last point was among
	prev       spot              // last kept point, if had
	had        bool
	step       int64 // of the last point that states one
	first      int64 // lowest affected step
	clean      int64 // finite step before it
	since      int64 // step from which on all values were affected up to the last one; evidence.None after a kept one
}

// decide takes a point of the second reading.
func (p *Planner) decide(k *track, step int64, wall, v float64) {
	s, r := &k.state, &k.rec
	r.all = scramble(scramble(r.all+uint64(step)) ^ scramble(math.Float64bits(v)^math.Float64bits(wall)))
	sus := s.suspected()
	s.next(step, wall, v)
	back := step != evidence.None && r.step != evidence.None && step <= r.step
	if step != evidence.None {
		r.step = step
	}
	at := spot{step, wall}
	switch s.lastFate {
	case nonfinite, suspect:
		if r.now == nil || back {
			p.fails(k, at)
		}
		r.now.extend(at, s.lastFate, v, sus)
		if r.since == evidence.None || step != evidence.None && step < r.since {
			r.since = r.step
		}
		k.mark(at, 1)
		r.sus = nil
	case real:
		if r.now != nil {
			k.mark(at, 0)
			r.now, r.since = nil, evidence.None
		}
		if sus != nil {
			if r.sus != sus || len(r.suspicious) == 0 {
				r.suspicious = p.segment(r.suspicious, at, sus.Reason)
			}
			r.suspicious[len(r.suspicious)-1].extend(at, suspect, v, sus)
		}
		r.sus = sus
		r.prev, r.had = at, true
	}
}

// fails begins a failed segment.
func (p *Planner) fails(k *track, at spot) {
	r := &k.rec
	if r.had {
		k.mark(r.prev, 0)
	}
	if at.step != evidence.None && (r.first == evidence.None || at.step < r.first) {
		r.first, r.clean = at.step, evidence.None
		if r.had && r.prev.step < at.step {
			r.clean = r.prev.step
		}
	}
	r.failed = p.segment(r.failed, at, notFinite)
	r.now = &r.failed[len(r.failed)-1]
}

// A stretch is a failed segment while it is read.
type stretch struct {
	first, last              spot
	nan, posInf, negInf, sus int64
	reason                   string
	more                     bool // further ones behind it were added to it
}

// segment adds a segment to a list; where there are too many, the last one goes on.
func (p *Planner) segment(list []stretch, at spot, reason string) []stretch {
	if n := len(list); n > 0 && (n >= maxStretches || p.failed >= maxAllFailed) {
		list[n-1].more = true
		return list
	}
	p.failed++
	return append(list, stretch{first: at, last: at, reason: reason})
}

// extend adds a point.
func (f *stretch) extend(at spot, why fate, v float64, sus *evidence.Suspect) {
	f.last = at
	switch {
	case why == suspect:
		if f.reason == notFinite && f.nan+f.posInf+f.negInf == 0 {
			f.reason = wasClamped
			if sus != nil {
				f.reason = sus.Reason
			}
		}
		f.sus++
	case math.IsNaN(v):
		f.nan++
	case v > 0:
		f.posInf++
	default:
		f.negInf++
	}
}

func (f *stretch) points() int64 { return f.nan + f.posInf + f.negInf + f.sus }

// segment puts it down for the manifest.
func (f *stretch) segment() incident.FailedSegment {
	s := incident.FailedSegment{FirstStep: known(f.first.step), LastStep: known(f.last.step), FirstWall: since(f.first.wall), LastWall: since(f.last.wall),
		NaN: f.nan, PosInf: f.posInf, NegInf: f.negInf, Suspect: f.sus, Reason: f.reason}
	if f.more {
		s.Reason += "; further segments behind it are put together with it, because there are so many"
	}
	return s
}

func known(step int64) *int64 {
	if step == evidence.None {
		return nil
	}
	return &step
}

func since(wall float64) *float64 {
	if wall == 0 {
		return nil
	}
	return &wall
}

// marks are the marks of one run, or those of its series that have no steps of the training.
type marks struct {
	at       map[markKey]*Mark
	more     int64
	affected bool
}

type markKey struct {
	step int64
	wall float64 // where no step is stated
}

// mark notes the marker's value at a point; 1 counts before 0.
func (k *track) mark(at spot, v float64) {
	m := k.of.main
	if k.system || k.axis != evidence.AxisStep {
		m = k.of.other
	}
	key := markKey{step: at.step}
	if at.step == evidence.None {
		key.wall = at.wall
	}
	m.affected = m.affected || v == 1
	if old := m.at[key]; old != nil {
		old.Value = max(old.Value, v)
		if at.wall > 0 && (old.Wall == 0 || at.wall < old.Wall) {
			old.Wall = at.wall
		}
		return
	}
	if len(m.at) >= maxMarks {
		m.more++
		return
	}
	m.at[key] = &Mark{Step: at.step, Wall: at.wall, Value: v}
}

// list sorts the marks by step, those without one behind the others by time.
func (m *marks) list() []Mark {
	if !m.affected {
		return nil
	}
	list := make([]Mark, 0, len(m.at))
	for _, x := range m.at {
		list = append(list, *x)
	}
	slices.SortFunc(list, func(a, b Mark) int {
		if none := a.Step == evidence.None; none != (b.Step == evidence.None) {
			if none {
				return 1
			}
			return -1
		}
		return cmp.Or(cmp.Compare(a.Step, b.Step), cmp.Compare(a.Wall, b.Wall))
	})
	return list
}
