// Package tracker says what the runs that experiment trackers recorded show: which
// artifacts are of one run and in which order they were written, where writing began again,
// where each series ceased to be finite, how the run ended as far as its files prove it,
// where two trackers of one run disagree, and how all of it stands to the job's logs. It opens
// no file and reads no clock.
package tracker

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/inquest-dev/inquest/internal/evidence"
	"github.com/inquest-dev/inquest/internal/incident"
	"github.com/inquest-dev/inquest/internal/lazyre"
)

// Options say how runs are shown.
type Options struct {
	Now time.Time // against which the age of the newest point is held; zero: it is not judged
	// Stale is how old the newest point of a run without an end must be for it to be taken
	// for dead; 0 is DefaultStale.
	Stale time.Duration
	// Series is a pattern for the names of the series to show, in which * stands for any text
	// and ? for one character; "" is all.
	Series   string
	Points   int                  // most points of a series' sample; 0: none
	Modified map[string]time.Time // when each artifact was written last, where known
}

// DefaultStale is the threshold of Options.Stale.
const DefaultStale = 10 * time.Minute

// Bounds of what is shown of a run; what is beyond them is counted.
const (
	maxShownSettings = 2048
	maxShownDamage   = 256
	maxResumes       = 64
	maxDoubts        = 64
	maxReasons       = 8
	maxNotes         = 64
)

// Show puts down what is known of each run, the newest first, then by tracker and name.
func Show(runs []*Run, o Options) []incident.TrackedRun {
	out := make([]incident.TrackedRun, 0, len(runs))
	for _, r := range ordered(runs) {
		out = append(out, r.show(o))
	}
	changed(out)
	return out
}

// ordered is the order in which runs are shown.
func ordered(runs []*Run) []*Run {
	runs = slices.Clone(runs)
	slices.SortStableFunc(runs, func(a, b *Run) int {
		x, y := a.newest(), b.newest()
		switch {
		case x.Known() != y.Known():
			if x.Known() {
				return -1
			}
			return 1
		case x.Known() && !x.Time.Equal(y.Time):
			return y.Time.Compare(x.Time)
		}
		return cmp.Or(strings.Compare(a.Tracker, b.Tracker), evidence.Natural(a.Name, b.Name), strings.Compare(a.Name, b.Name),
			evidence.Natural(a.Folder, b.Folder), strings.Compare(a.Writer, b.Writer), strings.Compare(a.ID, b.ID))
	})
	return runs
}

// newest is the time of the newest point of r.
func (r *Run) newest() (at evidence.Stamp) {
	for _, p := range r.Parts {
		if p.Newest.Known() && (!at.Known() || p.Newest.Time.After(at.Time)) {
			at = p.Newest
		}
	}
	return at
}

// show puts down one run.
func (r *Run) show(o Options) incident.TrackedRun {
	out := incident.TrackedRun{Tracker: r.Tracker, ID: r.ID, Name: r.Name, Project: r.Project, Folder: r.Folder, Writer: r.Writer,
		Cannot: []string{}, Settings: []incident.RunSetting{}, Series: []incident.TrackedSeries{}, Resumes: r.resumes(), Damage: []incident.RunDamage{}, Notes: []string{}, Files: []string{}}
	end := r.end(o)
	out.Status, out.Said, out.Basis = string(end.Status), end.Said, end.Basis
	out.Exit = end.Exit
	out.Newest = timeOf(r.newest())
	for i, p := range r.Parts {
		if p.Started.Known() && out.Started == nil {
			out.Started = timeOf(p.Started)
		}
		if i == len(r.Parts)-1 {
			out.Ended = timeOf(p.Ended)
		}
		if out.Keeps == "" || out.Keeps == string(evidence.KeepsAll) {
			out.Keeps = string(p.Keeps)
		}
		out.Lines += p.Lines
		out.Cannot = union(out.Cannot, p.Cannot, maxNotes)
		out.Notes = union(out.Notes, p.Notes, maxNotes)
	}
	notes := slices.Clone(r.notes)
	out.Settings, out.More, notes = r.settings(notes)
	out.Notes = union(out.Notes, notes, maxNotes)
	for _, p := range slices.Concat(r.Parts, r.Repeats) {
		if !slices.Contains(out.Files, p.Artifact) {
			out.Files = append(out.Files, p.Artifact)
		}
		out.MoreSeries += p.MoreTracks
		for _, d := range p.Damage {
			if len(out.Damage) < maxShownDamage {
				out.Damage = append(out.Damage, incident.RunDamage{Kind: string(d.Kind), Text: d.Text, Bytes: d.Bytes, Records: d.Records, Span: d.Span})
			}
		}
	}
	slices.Sort(out.Files)
	out.First = r.first()
	match := Glob(o.Series)
	for _, l := range r.lines {
		if !match(l.name) {
			continue
		}
		out.Series = append(out.Series, l.show(o.Points))
	}
	return out
}

// union appends what is not there yet.
func union(to, more []string, most int) []string {
	for _, s := range more {
		if len(to) < most && !slices.Contains(to, s) {
			to = append(to, s)
		}
	}
	return to
}

// Glob makes a test of a pattern in which * stands for any text and ? for one character; "" is
// met by every text.
func Glob(pattern string) func(string) bool {
	if pattern == "" {
		return func(string) bool { return true }
	}
	re := regexp.QuoteMeta(pattern)
	re = strings.ReplaceAll(strings.ReplaceAll(re, `\*`, ".*"), `\?`, ".")
	compiled := lazyre.New("(?s)^" + re + "$")
	return compiled.MatchString
}

// settings are those of all parts, the latest value of each, and what changed from one to
// the next.
func (r *Run) settings(notes []string) ([]incident.RunSetting, int64, []string) {
	out := []incident.RunSetting{}
	at := map[string]int{}
	changed, more := 0, int64(0)
	for _, p := range r.Parts {
		more += p.MoreSettings
		for _, s := range p.Settings {
			i, ok := at[s.Name]
			switch {
			case !ok && len(out) >= maxShownSettings:
				more++
			case !ok:
				at[s.Name] = len(out)
				out = append(out, incident.RunSetting{Name: s.Name, Value: s.Value, Span: s.Span})
			default:
				if old := out[i].Value; old != s.Value && out[i].Span.Artifact != s.Span.Artifact {
					if changed++; changed <= 8 {
						notes = append(notes, fmt.Sprintf("%s was %s, and is %s in %s.", s.Name, brief(old), brief(s.Value), p.Artifact))
					}
				}
				out[i] = incident.RunSetting{Name: s.Name, Value: s.Value, Span: s.Span}
			}
		}
	}
	if changed > 8 {
		notes = append(notes, fmt.Sprintf("%d more settings differ from one start to the next.", changed-8))
	}
	return out, more, notes
}

// brief is a value short enough for a sentence.
func brief(s string) string {
	if r := []rune(s); len(r) > 60 {
		s = string(r[:60]) + "…"
	}
	if s == "" {
		return `""`
	}
	return s
}

// show puts down one series.
func (l *line) show(points int) incident.TrackedSeries {
	t := l.tracks[0]
	out := incident.TrackedSeries{Name: l.name, Meaning: l.meaning, System: t.System, Axis: axisName(t.Axis), Unit: t.Unit,
		Why: []string{}, Doubtful: []incident.Doubt{}, Segments: []incident.Segment{}, Points: []incident.TrackedPoint{}, More: l.more}
	var low, high *evidence.Point
	out.Recovers = l.recovers()
	for _, t := range l.tracks {
		s := t.Series
		out.Count += s.Count
		out.NaN, out.PosInf, out.NegInf = out.NaN+t.NaN, out.PosInf+t.PosInf, out.NegInf+t.NegInf
		out.Zeros += s.Zeros
		out.Stride = max(out.Stride, s.Stride)
		if s.HasFinite {
			if low == nil || s.Min.Value < low.Value {
				low, out.Min = &s.Min, l.point(t, &s.Min)
			}
			if high == nil || s.Max.Value > high.Value {
				high, out.Max = &s.Max, l.point(t, &s.Max)
			}
		}
		out.Suspects += t.MoreSuspects
		for _, x := range t.Suspects {
			out.Suspects += x.Len()
			out.Why = union(out.Why, []string{x.Reason}, maxReasons)
			if len(out.Doubtful) < maxDoubts {
				out.Doubtful = append(out.Doubtful, incident.Doubt{First: stepOf(x.First.Step), Last: stepOf(x.Last.Step), Count: x.Len(), Reason: x.Reason})
			}
		}
	}
	first, last := l.tracks[0], l.tracks[len(l.tracks)-1]
	out.First, out.Last = l.point(first, &first.Series.First), l.point(last, &last.Series.Last)
	stamp(out.First, first.FirstWall)
	stamp(out.Last, last.LastWall)
	out.Bad, out.Later = l.onset(), l.later()
	if out.Later != nil && out.Later.At.Span.Artifact == out.Bad.At.Span.Artifact && out.Later.At.Span.Record == out.Bad.At.Span.Record && out.Later.At.Span.Offset == out.Bad.At.Span.Offset {
		out.Later = nil // the same point
	}
	for i := range l.segments {
		s := &l.segments[i]
		x := incident.Segment{First: incident.TrackedPoint{Step: stepOf(s.First.Step), Time: wallTime(s.FirstWall)}, Last: incident.TrackedPoint{Step: stepOf(s.Last.Step), Time: wallTime(s.LastWall)},
			Count: s.N, Nonfinite: s.Bad, File: s.Artifact}
		if s.superseded {
			x.Superseded = stepOf(s.from)
		}
		out.Segments = append(out.Segments, x)
	}
	if n := len(out.Segments) - evidence.MaxSegments; n > 0 {
		out.Segments, out.More = out.Segments[:evidence.MaxSegments], out.More+int64(n)
	}
	for _, p := range l.sample(points) {
		out.Points = append(out.Points, incident.TrackedPoint{Step: stepOf(p.Step), Time: timeOf(p.When()), Value: incident.Number(p.Value)})
	}
	return out
}

func axisName(a evidence.Axis) string {
	if a == evidence.AxisStep {
		return "step"
	}
	return string(a)
}

// sample thins the points of all parts to at most most.
func (l *line) sample(most int) []evidence.Point {
	if most <= 0 {
		return nil
	}
	all := 0
	for _, t := range l.tracks {
		all += t.Series.Sampled() + 1
	}
	if all <= most {
		var out []evidence.Point
		for _, t := range l.tracks {
			out = append(out, t.Series.Points()...)
		}
		return out
	}
	thin := evidence.NewDense(l.tracks[0].Series.Key, most-1)
	for _, t := range l.tracks {
		for p := range t.Series.All() {
			thin.Append(&p)
		}
	}
	return thin.Points()
}

// point puts down a point of a track with its place.
func (l *line) point(t *evidence.Track, p *evidence.Point) *incident.TrackedPoint {
	sp := span(t, evidence.Mark{Step: p.Step, Ordinal: p.Ordinal, Line: p.Line, Offset: p.Offset}, p.Value)
	sp.Length = int64(p.Length)
	return &incident.TrackedPoint{Step: stepOf(p.Step), Time: timeOf(p.When()), Value: incident.Number(p.Value), Span: &sp}
}

// span is the place of a point.
func span(t *evidence.Track, m evidence.Mark, v float64) evidence.Span {
	return evidence.Span{Artifact: t.Series.Key.Artifact, Kind: "record", Record: m.Line, Offset: m.Offset, Quote: t.Name + " = " + value(v)}
}

// stamp fills in the time of a point that was not sampled.
func stamp(p *incident.TrackedPoint, wall float64) {
	if p.Time == nil {
		p.Time = wallTime(wall)
	}
}

// stepOf is a step that may be unknown.
func stepOf(step int64) *int64 {
	if step == evidence.None {
		return nil
	}
	return &step
}
