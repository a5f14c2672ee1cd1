package reader

import (
	"cmp"
	"errors"
	"hash/fnv"
	"io"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/inquest-dev/inquest/internal/evidence"
)

// Tracked is a Sink that takes tracked runs whole, once their artifact was read. They
// belong to the sink from then on. It is asked for the series of every track, not only of
// those that the diagnosis has a use for, so that it decides how much is kept of each. A Sink
// that is none gets the series, events and facts of a run all the same.
type Tracked interface {
	TrackedRun(*evidence.TrackedRun)
}

// EveryPoint is a Sink that wants each point of tracked runs as it is read, in the order
// of the artifact. p must not be kept; wall is seconds since 1970, 0 where unknown.
type EveryPoint interface {
	Point(r *evidence.TrackedRun, t *evidence.Track, p *evidence.Point, wall float64)
}

// A Gatherer reads artifacts that other files belong to: the tables beside a database, the
// files of a run whose description is the artifact. Anchor says of the file at a slash
// path where the artifact that it belongs to lies: its folder and a pattern of its base
// name as path.Match has it. Files whose anchor was found are not artifacts of their
// own; Input.Dir holds them. A file whose anchor is not there is one.
type Gatherer interface {
	Reader
	Anchor(path string) (dir, pattern string, ok bool)
}

// Bounds of what a Recording keeps of one artifact.
const (
	maxTracks     = 4096
	maxRefused    = 1 << 16 // names beyond them that are counted
	maxSettings   = 2048
	maxSetting    = 4096 // bytes of one value
	maxRunDamages = 256
	maxRunEvents  = 5  // non-finite events of one series
	quietPoints   = 10 // finite points after which a non-finite one is news again
	fullTracks    = 128
	smallSample   = 64 // points kept of each series beyond fullTracks
)

var errTracks = errors.New("over limit: too many metric series, later ones are not kept")

// A Recording takes the points of one tracked run and makes of them what every later
// stage needs: the run with its tracks for a Tracked sink, and series, events and facts
// for the diagnosis. Readers of trackers fill in Run, ask for tracks, add points, and
// Close it. It is used by one goroutine.
type Recording struct {
	Run evidence.TrackedRun
	// File is the file beside the artifact in which the tracks stand that are asked for next, ""
	// where it is the artifact itself. Their places are those of that file.
	File string

	// Source is that of the series, "" for the tracker's name: runs of one artifact that are
	// recorded side by side have one each, so that their series stay apart.
	Source string

	// Quote, where it is set, gives the place and the text of the point that is being
	// added. Readers of text formats set it: it is called for the few points that become
	// an event.
	Quote func() evidence.Span

	s      Sink
	every  EveryPoint // or nil
	whole  Tracked    // or nil
	tracks map[string]*Track
	taken  map[evidence.SeriesKey]bool
	told   bool
	era    int // counts restarts

	refused map[uint64]bool // hashes of the names of series beyond the bound
	row     row

	settings *Settings
	launches launches
}

// A Track takes the points of one series.
type Track struct {
	*evidence.Track
	rec    *Recording
	file   string // Recording.File
	label  string // metric of its events
	scale  float64
	quiet  bool // a non-finite value is no news about the training
	finite int64
	events int
	step   int64 // of the last point that states one
	era    int   // of the recording when the last point came
	launch int
	known  bool // the diagnosis has a use for it
	p      evidence.Point
}

// NewRecording returns an empty recording of a run in an artifact.
func NewRecording(s Sink, tracker, artifact string) *Recording {
	r := &Recording{Run: evidence.TrackedRun{Tracker: tracker, Artifact: artifact, Status: evidence.RunUnknown, Keeps: evidence.KeepsAll},
		s: s, tracks: map[string]*Track{}, taken: map[evidence.SeriesKey]bool{}, settings: NewSettings(s)}
	r.every, _ = s.(EveryPoint)
	r.whole, _ = s.(Tracked)
	return r
}

// Apart is the sink for those runs of a store that are not its newest: a Tracked sink takes
// them whole and an EveryPoint sink their points, but the diagnosis hears nothing of
// them, whose series would be mixed with those of the newest. It is nil where s takes no runs.
func Apart(s Sink) Sink {
	whole, ok := s.(Tracked)
	if !ok {
		return nil
	}
	a := apart{s, whole}
	if every, ok := s.(EveryPoint); ok {
		return apartPoints{a, every}
	}
	return a
}

type apart struct {
	Sink
	whole Tracked
}

func (apart) Event(evidence.Event)                {}
func (apart) Fact(evidence.Fact)                  {}
func (a apart) TrackedRun(r *evidence.TrackedRun) { a.whole.TrackedRun(r) }

type apartPoints struct {
	apart
	EveryPoint
}

// A Place is where a point stands: a line, record or row, counted from 1, and its bytes.
type Place struct {
	Line, Offset int64
	Length       int32
}

// Track returns the track of a name, which is the tracker's own; nil when there are too
// many. The first value decides the unit of a size that states none.
func (r *Recording) Track(name string, system bool, first float64) *Track {
	if t := r.tracks[name]; t != nil {
		return t
	}
	if len(r.tracks) >= maxTracks {
		if !r.told {
			r.told, r.refused = true, map[uint64]bool{}
			r.Damage(evidence.RunDamage{Kind: evidence.OverBound, Span: evidence.Span{Artifact: r.Run.Artifact, Kind: "record"}, Text: errTracks.Error()})
		}
		h := fnv.New64a()
		io.WriteString(h, name)
		if sum := h.Sum64(); len(r.refused) < maxRefused && !r.refused[sum] {
			r.refused[sum] = true
			r.Run.MoreTracks++
		}
		return nil
	}
	m := MeaningOf(name, system, first)
	t := &Track{Track: &evidence.Track{Name: name, System: system, Axis: m.Axis, Unit: m.Unit}, rec: r, file: r.File, label: m.Name, scale: m.Scale, quiet: m.Quiet, known: m.Known}
	key := evidence.SeriesKey{Name: m.Name, Source: cmp.Or(r.Source, r.Run.Tracker), Artifact: r.Run.Artifact, Rank: evidence.None, Trust: evidence.Raw, Phase: m.Phase, Unit: m.Unit, Records: r.Quote == nil}
	if m.Device != "" {
		key.Source += " " + m.Device
	}
	if m.Peak {
		key.Source += " peak"
	}
	if r.Run.Keeps == evidence.Replaced && m.Name == "loss" {
		key.Trust = evidence.Filtered
	}
	if r.taken[key] || m.Name == "" {
		key.Name = strings.ToLower(name)
	}
	r.taken[key] = true
	if m.Known || r.whole != nil {
		t.Series = r.s.Series(key)
	} else {
		t.Series = evidence.NewSeries(key)
		t.Series.Reduce(2)
	}
	if len(r.tracks) >= fullTracks {
		t.Series.Reduce(smallSample)
	}
	if t.label == "" {
		t.label = key.Name
	}
	r.tracks[name] = t
	r.Run.Tracks = append(r.Run.Tracks, t.Track)
	return t
}

// Add appends the next point. step is evidence.None where none is stated, wall seconds
// since 1970 and 0 where unknown.
func (t *Track) Add(step int64, wall, v float64, at Place) {
	if (step < t.step || t.era != t.rec.era || len(t.Segments) == 0) && t.rec.whole == nil {
		t.resume(step, wall)
	}
	p := &t.p
	p.Step, p.Value, p.Line, p.Offset, p.Length, p.Stamp = step, v*t.scale, at.Line, at.Offset, at.Length, nil
	bad := false
	if t.Series.AppendDull(p) { // nearly all: finite, and no time is kept of it
		p.Ordinal = t.Series.Last.Ordinal
	} else {
		if bad = v-v != 0; bad || t.Series.WillSample() {
			p.Stamp = t.stamp(wall)
		}
		t.Series.Append(p)
	}
	if t.rec.every != nil {
		q := *p
		q.Value = v
		t.rec.every.Point(&t.rec.Run, t.Track, &q, wall)
	}
	if wall > 0 {
		if t.FirstWall == 0 {
			t.FirstWall = wall
		}
		t.LastWall = wall
	}
	if step == evidence.None || step <= t.step && t.Steps || t.era != t.rec.era || len(t.Segments) == 0 {
		t.segment(step, wall, at)
	} else { // nearly all: without a call, a fifteenth of the time of a point
		t.Steps, t.step = true, step
	}
	s := &t.Segments[len(t.Segments)-1]
	if t.rec.row.open {
		t.rec.row.note(t, v, bad)
	}
	if bad {
		t.bad(s, wall, v, p)
	} else {
		t.finite++
	}
	l := &s.Last
	l.Step, l.Ordinal, l.Line, l.Offset = step, p.Ordinal, at.Line, at.Offset
	s.LastWall = wall
	s.N++
}

// stamp is the time of a point that keeps it, nil where it is unknown.
func (t *Track) stamp(wall float64) *evidence.Stamp {
	st := StampAt(wall)
	if row := &t.rec.row; row.open && row.stamp.Known() {
		st = row.stamp
	}
	if !st.Known() {
		return nil
	}
	return &st
}

// Restart says that the writer took up the run anew: the next point of each track begins a
// segment, whatever its step.
func (r *Recording) Restart() { r.era++ }

// segment begins a segment with the next point where it has to.
func (t *Track) segment(step int64, wall float64, at Place) {
	n := len(t.Segments)
	fresh := n == 0 || t.era != t.rec.era
	if step != evidence.None {
		fresh = fresh || step <= t.step && t.Steps
		t.Steps, t.step = true, step
	}
	t.era = t.rec.era
	if fresh {
		if n < evidence.MaxSegments {
			first := evidence.Mark{Step: step, Ordinal: t.p.Ordinal, Line: at.Line, Offset: at.Offset}
			t.Segments = append(t.Segments, evidence.Segment{First: first, FirstWall: wall, Artifact: t.rec.Run.Artifact})
		} else {
			t.MoreSegments++
		}
	}
}

// bad notes a point of s that is not finite, and makes an event of it where it is news.
func (t *Track) bad(s *evidence.Segment, wall, v float64, p *evidence.Point) {
	switch {
	case math.IsNaN(v):
		t.NaN++
	case v > 0:
		t.PosInf++
	default:
		t.NegInf++
	}
	if s.Bad == 0 {
		s.FirstBad, s.BadWall, s.BadValue = evidence.Mark{Step: p.Step, Ordinal: p.Ordinal, Line: p.Line, Offset: p.Offset}, wall, v
		if s.N > 0 { // all of them finite
			s.LastFinite, s.FiniteWall, s.FiniteValue, s.HasFinite = s.Last, s.LastWall, t.Series.LastFinite().Value, true
		}
	}
	s.Bad++
	if (t.Series.Bad == 1 || t.finite >= quietPoints) && !t.quiet && !t.System && t.events < maxRunEvents {
		t.events++
		if row := &t.rec.row; !row.open {
			t.rec.s.Event(t.event(v, p, false))
		} else if rank := t.rank(); !row.visible || rank < row.rank {
			row.visible, row.rank, row.best = true, rank, t.event(v, p, false)
		}
	}
	t.finite = 0
}

// event says that a point is not finite, or, hidden, that its value stands for one that
// was not. Only an optimiser step is the step of an event.
func (t *Track) event(v float64, p *evidence.Point, hidden bool) evidence.Event {
	e := evidence.Event{Kind: evidence.NonfiniteValue, Who: t.who(), Stamp: p.When(), Step: evidence.None,
		Attrs: evidence.Attrs{"metric": evidence.TextOf(t.label), "value": evidence.TextOf(FormatValue(v)), "trust": evidence.TextOf(string(t.Series.Key.Trust)), "hidden": evidence.BoolOf(hidden), "tracker": evidence.TextOf(t.rec.Run.Tracker)}}
	if t.Axis == evidence.AxisStep {
		e.Step = p.Step
	}
	if t.rec.Quote != nil {
		e.Span = t.rec.Quote()
		e.Text = printable(e.Span.Quote)
		return e
	}
	e.Text = t.Name + " = " + FormatValue(v)
	e.Span = evidence.Span{Artifact: t.rec.Run.Artifact, Kind: "record", Record: p.Line, Offset: p.Offset, Length: int64(p.Length), Quote: e.Text}
	if t.file != "" { // the offset is none of the artifact's
		e.Span.Offset, e.Span.Length, e.Span.Pointer = 0, 0, t.file
	}
	return e
}

func (t *Track) who() evidence.Who {
	w := evidence.Nobody()
	w.Launch = t.launch
	return w
}

// Suspect notes that the last n points added may stand for values that were not
// finite.
func (t *Track) Suspect(n int64, reason string) {
	if len(t.Segments) == 0 || n <= 0 {
		return
	}
	last := t.Segments[len(t.Segments)-1].Last
	first := last
	first.Ordinal -= n - 1
	t.suspect(evidence.Suspect{Run: evidence.Run{First: first, Last: last}, Reason: reason})
}

// SuspectRun is Suspect for points whose places are known.
func (t *Track) SuspectRun(run evidence.Run, reason string) {
	t.suspect(evidence.Suspect{Run: run, Reason: reason})
}

func (t *Track) suspect(s evidence.Suspect) {
	if n := len(t.Suspects); n > 0 && s.First.Ordinal <= t.Suspects[n-1].Last.Ordinal {
		s.First = t.Suspects[n-1].Last // what is suspect already is counted once
		s.First.Ordinal++
		if s.Len() <= 0 {
			return
		}
	}
	if n := len(t.Suspects); n > 0 && t.Suspects[n-1].Reason == s.Reason && t.Suspects[n-1].Last.Ordinal+1 == s.First.Ordinal {
		t.Suspects[n-1].Last = s.Last
		return
	}
	if len(t.Suspects) >= evidence.MaxSuspects {
		t.MoreSuspects += s.Len()
		return
	}
	t.Suspects = append(t.Suspects, s)
}

// Setting notes one key of the configuration and states it as a fact.
func (r *Recording) Setting(name, value string, at evidence.Span) {
	if len(r.Run.Settings) >= maxSettings {
		r.Run.MoreSettings++
		return
	}
	if len(value) > maxSetting {
		value = strings.ToValidUTF8(value[:maxSetting], "") + "…"
	}
	r.Run.Settings = append(r.Run.Settings, evidence.RunSetting{Name: name, Value: value, Span: at})
	r.settings.Add(name, value, at)
}

// Damage notes a damaged part, for the run and for the sink.
func (r *Recording) Damage(d evidence.RunDamage) {
	if len(r.Run.Damage) < maxRunDamages {
		r.Run.Damage = append(r.Run.Damage, d)
	}
	r.s.Damage(d.Span, errors.New(string(d.Kind)+": "+d.Text))
}

// Close states what is known of the run as a whole and hands it over.
func (r *Recording) Close() {
	r.settings.Close()
	for _, t := range r.Run.Tracks {
		if w := t.LastWall; w > 0 && (!r.Run.Newest.Known() || StampAt(w).Time.After(r.Run.Newest.Time)) {
			r.Run.Newest = StampAt(w)
		}
	}
	r.s.Event(r.runEvent())
	if r.whole != nil {
		r.whole.TrackedRun(&r.Run)
	}
}

// StampAt is the stamp of a time in seconds since 1970, which trackers keep in UTC.
func StampAt(wall float64) evidence.Stamp {
	if !(wall > 0 && wall < 1e11) {
		return evidence.Stamp{}
	}
	whole, frac := math.Modf(wall)
	t := time.Unix(int64(whole), int64(math.Round(frac*1e6))*1e3).UTC()
	return evidence.Stamp{Time: t, Written: writtenAt(t), Zone: "Z", Error: time.Millisecond, Clock: "wall"}
}

// writtenAt is t.Format("2006-01-02T15:04:05.999999Z") of a time in UTC with whole
// microseconds before the year 10000, in a fifth of the time: many points have one.
func writtenAt(t time.Time) string {
	var b [27]byte
	year, month, day := t.Date()
	hour, minute, second := t.Clock()
	two := func(at, v int) { // a closure that is inlined
		b[at], b[at+1] = byte('0'+v/10), byte('0'+v%10)
	}
	two(0, year/100)
	two(2, year%100)
	b[4] = '-'
	two(5, int(month))
	b[7] = '-'
	two(8, day)
	b[10] = 'T'
	two(11, hour)
	b[13] = ':'
	two(14, minute)
	b[16] = ':'
	two(17, second)
	n := 19
	if micros := t.Nanosecond() / 1e3; micros > 0 {
		b[19] = '.'
		two(20, micros/10_000)
		two(22, micros/100%100)
		two(24, micros%100)
		for n = 26; b[n-1] == '0'; n-- {
		}
	}
	b[n] = 'Z'
	return string(b[:n+1])
}

// FormatValue writes a value the way all reports do: NaN, +Inf, -Inf, or the shortest
// number that reads back the same.
func FormatValue(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }
