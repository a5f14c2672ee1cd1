package tracker

import (
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/inquest-dev/inquest/internal/evidence"
	"github.com/inquest-dev/inquest/internal/incident"
)

// onset is the first value of a series that is not finite, in the order of writing; nil if
// all are finite.
func (l *line) onset() *incident.Onset {
	for i, t := range l.tracks {
		s := t.Series
		if s.Bad == 0 {
			continue
		}
		out := &incident.Onset{Series: l.name, At: *l.point(t, &s.FirstBad)}
		n := l.segmentOf(t, s.FirstBad.Ordinal)
		if n >= 0 {
			if x := l.segments[n].Segment; x.FirstBad.Ordinal == s.FirstBad.Ordinal {
				stamp(&out.At, x.BadWall)
			}
			out.Stride = l.stride(n)
		}
		out.Before = l.before(n, s.FirstBad.Step, false)
		if out.Before == nil && s.FirstBad.Step == evidence.None { // in the order of writing alone
			if s.HasBefore {
				out.Before = l.point(t, &s.LastBeforeBad)
			} else if i > 0 && l.tracks[i-1].Series.HasFinite {
				p := l.tracks[i-1].Series.LastFinite()
				out.Before = l.point(l.tracks[i-1], &p)
			}
		}
		return out
	}
	return nil
}

// later is the first value that is not finite where only the latest writing of each step
// counts, nil if there is none or more was written again than is kept.
func (l *line) later() *incident.Onset {
	best := -1
	for i := range l.segments {
		s := &l.segments[i]
		if s.Bad == 0 || s.FirstBad.Step == evidence.None || s.superseded && s.FirstBad.Step >= s.from {
			continue
		}
		if best < 0 || s.FirstBad.Step < l.segments[best].FirstBad.Step {
			best = i
		}
	}
	if best < 0 || l.more > 0 {
		return nil
	}
	s := &l.segments[best]
	sp := span(s.track, s.FirstBad, s.BadValue)
	return &incident.Onset{Series: l.name, Stride: l.stride(best), Before: l.before(best, s.FirstBad.Step, true),
		At: incident.TrackedPoint{Step: stepOf(s.FirstBad.Step), Time: wallTime(s.BadWall), Value: incident.Number(s.BadValue), Span: &sp}}
}

// segmentOf finds the segment that a point of a track lies in, -1 if it is not kept.
func (l *line) segmentOf(t *evidence.Track, ordinal int64) int {
	for i := range l.segments {
		if s := &l.segments[i]; s.track == t && s.First.Ordinal <= ordinal && ordinal <= s.Last.Ordinal {
			return i
		}
	}
	return -1
}

// before finds the last finite value before a step, which is not finite in segment n: that
// segment's own, else the one of the highest step below in segments before it, of those
// points that were not written again if latest is set. It is nil where none is known.
func (l *line) before(n int, step int64, latest bool) *incident.TrackedPoint {
	if n < 0 || step == evidence.None {
		return nil
	}
	s := &l.segments[n]
	if s.HasFinite && s.FirstBad.Step == step {
		sp := span(s.track, s.LastFinite, s.FiniteValue)
		return &incident.TrackedPoint{Step: stepOf(s.LastFinite.Step), Time: wallTime(s.FiniteWall), Value: incident.Number(s.FiniteValue), Span: &sp}
	}
	var best *evidence.Point
	var of *evidence.Track
	for i := range l.segments[:n] {
		x := &l.segments[i]
		for p := range x.track.Series.All() {
			if p.Ordinal < x.First.Ordinal || p.Ordinal > x.Last.Ordinal || p.Step == evidence.None || p.Step >= step || math.IsNaN(p.Value) || math.IsInf(p.Value, 0) {
				continue
			}
			if latest && x.superseded && p.Step >= x.from {
				continue
			}
			if best == nil || p.Step >= best.Step {
				best, of = &p, x.track
			}
		}
	}
	if best == nil {
		return nil
	}
	return l.point(of, best)
}

// stride is every how many steps segment n was logged, as far as that is known: where its
// steps are evenly spaced, else the largest distance of the series.
func (l *line) stride(n int) int64 {
	s := &l.segments[n]
	if steps := s.Last.Step - s.First.Step; s.N > 1 && s.First.Step != evidence.None && steps > 0 && steps%(s.N-1) == 0 {
		return steps / (s.N - 1)
	}
	return s.track.Series.Stride
}

// first is the earliest value of the training that is not finite: of a loss or gradient
// norm where one has any, by step where both have one. Of other series it is not a
// quantity that is not measured at first or may be undefined in a healthy run.
func (r *Run) first() *incident.Onset {
	var best *incident.Onset
	var of *line
	for _, l := range r.lines {
		if l.class == machineClass {
			break
		}
		if best != nil && l.class == restClass && of.class < restClass {
			break
		}
		o := l.onset()
		if o != nil && l.class == restClass && (l.benign() || o.Before == nil && l.recovers()) {
			continue // of no sign of a failure, or not measured yet at first
		}
		if o != nil && (best == nil || sooner(o, l, best, of)) {
			best, of = o, l
		}
	}
	return best
}

// benign reports whether a value of l that is not finite says nothing of the training.
func (l *line) benign() bool {
	switch l.meaning {
	case "lr", "loss_scale", "perplexity", "seq_len", "step_time", "skipped", "host_memory":
		return true
	}
	if strings.HasPrefix(l.meaning, "memory_") {
		return true
	}
	for part := range strings.FieldsFuncSeq(strings.ToLower(l.name), func(r rune) bool { return strings.ContainsRune("_/.-@ ", r) }) {
		if evidence.SeriesBenign[part] {
			return true
		}
	}
	return false
}

// recovers reports whether a finite value follows one that is not.
func (l *line) recovers() bool {
	bad := false
	for _, t := range l.tracks {
		if t.Series.FiniteAfterBad || bad && t.Series.HasFinite {
			return true
		}
		bad = bad || t.Series.Bad > 0
	}
	return false
}

// sooner reports whether a value that is not finite is earlier than another: steps of
// different axes are compared by time alone.
func sooner(a *incident.Onset, la *line, b *incident.Onset, lb *line) bool {
	if la.tracks[0].Axis == lb.tracks[0].Axis && a.At.Step != nil && b.At.Step != nil {
		return *a.At.Step < *b.At.Step
	}
	if a.At.Time != nil && b.At.Time != nil {
		return *a.At.Time < *b.At.Time
	}
	return false
}

// value writes a value the way all reports do.
func value(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }

// wallTime is a time in seconds since 1970, nil where it is unknown.
func wallTime(wall float64) *string {
	if !(wall > 0 && wall < 1e11) {
		return nil
	}
	s := at(wall).Format(timeLayout)
	return &s
}

// at is a time in seconds since 1970.
func at(wall float64) time.Time {
	whole, frac := math.Modf(wall)
	return time.Unix(int64(whole), int64(math.Round(frac*1e6))*1e3).UTC()
}

// timeLayout has a fixed width, so that times compare as texts.
const timeLayout = "2006-01-02T15:04:05.000000Z"

func timeOf(s evidence.Stamp) *string {
	if !s.Known() || s.NoDate || s.NoYear || s.Clock != "wall" {
		return nil
	}
	text := s.Time.UTC().Format(timeLayout)
	return &text
}
