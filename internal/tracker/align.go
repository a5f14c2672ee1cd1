package tracker

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/inquest-dev/inquest/internal/evidence"
	"github.com/inquest-dev/inquest/internal/incident"
)

// A Log is one of the job's logs.
type Log struct {
	Path   string
	Series []*evidence.Series // Key.Launch tells its launches apart
	// Attempt is the attempt of each launch, by its number.
	Attempt func(launch int) int
}

// A Happening is something that the logs tell, as the diagnosis sees it.
type Happening struct {
	Kind    string // as incident.AlignedRow has it
	Text    string
	Stamp   evidence.Stamp
	Span    evidence.Span
	Attempt int   // of the job, in the order of start
	Step    int64 // last step logged before it in its log, None if unknown
	// Next is the step logged after it by the same launch of the same log, where the run went
	// on; None otherwise.
	Next int64
}

// A Story is what the job's logs tell.
type Story struct {
	Logs     []Log
	Memory   *Happening // the failure of memory to be ordered, nil if there is none
	NaN      *Happening // the value that is not finite, nil if there is none
	NaNName  string     // what is not finite
	Relation string     // of the two by the logs alone: incident.OOMFirst, incident.NaNFirst or another
	Basis    string     // of Relation
	// Death is the leading fault of the attempt that ended the job, nil where nothing shows its
	// end.
	Death *Happening
	Rest  []Happening // what else belongs on a timeline
}

// A Pick is a point of a tracker at a step that a log has as well.
type Pick struct {
	Step, Ordinal int64
	Value         float64
	Wall          float64 // seconds since 1970, 0 unknown
	Line, Offset  int64   // of its place
}

// Picks are the picked points of each series as it was read.
type Picks map[*evidence.Track][]Pick

// Wanted are the steps of each canonical series that the logs have kept.
func (s *Story) Wanted() map[string]map[int64]bool {
	out := map[string]map[int64]bool{}
	for _, l := range s.Logs {
		for _, x := range l.Series {
			if !compared[x.Key.Name] {
				continue
			}
			m := out[x.Key.Name]
			if m == nil {
				m = map[int64]bool{}
				out[x.Key.Name] = m
			}
			for p := range x.All() {
				if p.Step != evidence.None && len(m) < maxWanted {
					m[p.Step] = true
				}
			}
		}
	}
	return out
}

// compared are the series by which a log and a tracker are known to be of one run: their
// values differ from run to run.
var compared = map[string]bool{"loss": true, "eval_loss": true, "grad_norm": true}

const (
	maxWanted    = 1 << 18
	maxClocks    = 256
	maxRows      = 200
	leastPairs   = 3
	flush        = 120.0 // seconds that lines and points may be late
	zone         = 900.0 // seconds, of which offsets of time zones are multiples
	widest       = 14 * 3600.0
	untied       = 1200.0    // seconds that clocks may differ where no shared step ties them, as the diagnosis has it
	interpolated = 2 * flush // seconds between the times around a line without one
)

// An Aligner sets tracked runs against the story of the logs.
type Aligner struct {
	runs  []*Run // in the order in which they are shown
	story *Story
	picks Picks
	out   *incident.Alignment
	ties  map[tieKey]*tie
	more  int

	stated map[disagreement]bool
}

type tieKey struct {
	run int
	log string
}

// A tie is what shared steps tell of a run and a log.
type tie struct {
	incident.RunClock
	votes map[[2]int]map[int]int // part, segment -> attempt -> pairs
}

// Align sets runs against the story of the logs, as far as their bounded samples and picks
// show it. What the trackers recorded after the end is added by After.
func Align(runs []*Run, picks Picks, s *Story, o Options) *Aligner {
	o.Points = 0
	a := &Aligner{runs: ordered(runs), story: s, picks: picks, ties: map[tieKey]*tie{}, stated: map[disagreement]bool{},
		out: &incident.Alignment{Schema: incident.AlignmentSchema, Runs: Show(runs, o), Logs: []string{}, Clocks: []incident.RunClock{}, After: []incident.AfterDeath{},
			Rows: []incident.AlignedRow{}, Disagree: Disagreements(runs), Limits: []incident.Statement{}}}
	for _, l := range s.Logs {
		if !slices.Contains(a.out.Logs, l.Path) {
			a.out.Logs = append(a.out.Logs, l.Path)
		}
	}
	for i, r := range a.runs {
		for j := range s.Logs {
			a.compare(i, r, &s.Logs[j])
		}
	}
	if a.more > 0 {
		a.out.Limits = append(a.out.Limits, incident.Statement{Text: fmt.Sprintf("%d more pairs of a run and a log share steps and are not listed.", a.more), Spans: []evidence.Span{}})
	}
	a.order()
	return a
}

// A pair is a step that a log and a tracker both have.
type pair struct {
	offset, err float64 // log less tracker, seconds
	timed       bool
	segment     [2]int
	attempt     int
}

// An anchor is a line of a log that prints a value at a step.
type anchor struct {
	evidence.Point
	wall, err float64 // 0 where unknown
	daily     bool    // only the time of day is known
}

// compare finds how a log's clock stands to a run's by the steps that both have.
func (a *Aligner) compare(i int, r *Run, log *Log) {
	var pairs []pair
	shared, finitePairs, alike := 0, 0, 0
	for _, x := range log.Series {
		if !compared[x.Key.Name] || x.Key.Phase == "eval" && x.Key.Name != "eval_loss" {
			continue
		}
		n := slices.IndexFunc(r.lines, func(l *line) bool {
			return l.meaning == x.Key.Name && l.tracks[0].Axis == evidence.AxisStep && (l.phase() == x.Key.Phase || x.Key.Phase == "")
		})
		if n < 0 {
			continue
		}
		l := r.lines[n]
		at := l.byStep(a.picks)
		tolerance := precision(x)
		anchors := anchorsOf(x, l.when())
		for k := range anchors {
			p := &anchors[k]
			var got []placed
			if got = at[p.Step]; len(got) == 0 {
				continue
			}
			shared++
			if !finite(p.Value) {
				a.visible(r, l, x, p, got)
				continue
			}
			finitePairs++
			a.unseen(r, l, x, p, got)
			for _, g := range got {
				if !finite(g.Value) || math.Abs(g.Value-p.Value) > tolerance(p.Value) {
					continue
				}
				alike++
				q := pair{segment: g.segment, attempt: log.Attempt(x.Key.Launch)}
				if p.wall != 0 && g.Wall != 0 {
					q.offset, q.err, q.timed = p.wall-g.Wall, p.err, true
					if p.daily {
						q.offset = math.Remainder(q.offset, 86400)
					}
				}
				pairs = append(pairs, q)
				break
			}
		}
	}
	if shared == 0 {
		return
	}
	if len(a.out.Clocks) >= maxClocks {
		a.more++
		return
	}
	t := &tie{RunClock: incident.RunClock{Run: i, Log: log.Path, Shared: shared, Means: "unknown"}, votes: map[[2]int]map[int]int{}}
	if alike*2 <= finitePairs {
		t.Basis = fmt.Sprintf("%d steps are in both, and %d of them have the same value: these are not known to be one run", shared, alike)
		a.out.Clocks = append(a.out.Clocks, t.RunClock)
		return
	}
	for _, p := range pairs {
		if t.votes[p.segment] == nil {
			t.votes[p.segment] = map[int]int{}
		}
		t.votes[p.segment][p.attempt]++
	}
	t.settle(pairs)
	a.ties[tieKey{i, log.Path}] = t
	a.out.Clocks = append(a.out.Clocks, t.RunClock)
}

// settle takes the offset from the pairs that have a time on both sides.
func (t *tie) settle(pairs []pair) {
	var offsets []float64
	worst := 0.0
	timed := slices.DeleteFunc(slices.Clone(pairs), func(p pair) bool { return !p.timed })
	slices.SortStableFunc(timed, func(a, b pair) int { return cmp.Compare(a.err, b.err) })
	for i, p := range timed {
		if i >= leastPairs && p.err > 2*worst+1 {
			break // times that are known much worse than enough others
		}
		offsets = append(offsets, p.offset)
		worst = max(worst, p.err)
	}
	t.Pairs = len(offsets)
	if t.Pairs < leastPairs {
		t.Basis = fmt.Sprintf("%d steps have the same value in both, and %d of them a time in both; at least %d are needed", len(pairs), t.Pairs, leastPairs)
		return
	}
	slices.Sort(offsets)
	n := len(offsets)
	t.Offset = round6((offsets[n/2] + offsets[(n-1)/2]) / 2)
	t.Bound = round6(max((offsets[n*3/4]-offsets[n/4])/2, worst))
	steps := fmt.Sprintf("the median over %d steps with the same value in both", n)
	multiple := math.Round(t.Offset/zone) * zone
	switch d := math.Abs(t.Offset); {
	case t.Bound > flush:
		t.Basis = steps + fmt.Sprintf(", of which the middle half differs by %s: the offset is not known", seconds(2*t.Bound))
	case d <= 2+t.Bound && d <= flush:
		t.Means, t.Applied, t.Basis = "same clock", true, steps
	case d <= flush:
		t.Means, t.Applied, t.Basis = "flush delay", true, steps+"; lines and points may be written as late"
	case multiple != 0 && math.Abs(t.Offset-multiple) <= flush && math.Abs(multiple) <= widest:
		t.Means, t.Applied = "time zone", true
		t.Basis = steps + fmt.Sprintf("; within %s of %s, as the offset of a time zone is", seconds(math.Abs(t.Offset-multiple)), clock(multiple))
	default:
		t.Means, t.Basis = "skew", steps+"; no time zone is so far off, so times are not compared"
	}
}

func round6(v float64) float64 { return math.Round(v*1e6) / 1e6 }

// clock is an offset in hours and minutes.
func clock(s float64) string {
	sign := "+"
	if s < 0 {
		sign, s = "-", -s
	}
	return fmt.Sprintf("%s%02d:%02d", sign, int(s)/3600, int(s)/60%60)
}

// seconds is a length of time for a sentence.
func seconds(s float64) string {
	d := time.Duration(math.Abs(s) * float64(time.Second))
	if d < 10*time.Second {
		return d.Round(10 * time.Millisecond).String()
	}
	return Lasting(d)
}

// placed is a point of a series with the segment it lies in.
type placed struct {
	Pick
	segment [2]int // part, and number within its track
	track   *evidence.Track
}

// byStep are the points of a series that are kept or picked, by step.
func (l *line) byStep(picks Picks) map[int64][]placed {
	out := map[int64][]placed{}
	for _, t := range l.tracks {
		part, first := 0, len(l.segments)
		for i := range l.segments {
			if l.segments[i].track == t {
				part, first = l.segments[i].part, min(first, i)
			}
		}
		in := func(ordinal int64) [2]int {
			n := 0
			for i := range t.Segments {
				if t.Segments[i].First.Ordinal <= ordinal {
					n = i
				}
			}
			return [2]int{part, n}
		}
		had := map[int64]bool{}
		for _, p := range picks[t] {
			had[p.Ordinal] = true
			out[p.Step] = append(out[p.Step], placed{Pick: p, segment: in(p.Ordinal), track: t})
		}
		for p := range t.Series.All() {
			if p.Step == evidence.None || had[p.Ordinal] {
				continue
			}
			q := placed{Pick: Pick{Step: p.Step, Ordinal: p.Ordinal, Value: p.Value, Line: p.Line, Offset: p.Offset}, segment: in(p.Ordinal), track: t}
			if s := p.When(); s.Known() {
				q.Wall = unix(s.Time)
			}
			out[p.Step] = append(out[p.Step], q)
		}
	}
	return out
}

func unix(t time.Time) float64 { return float64(t.UnixMicro()) / 1e6 }

// when is a time of the series, for logs that leave out the year; zero if there is none.
func (l *line) when() time.Time {
	for _, t := range l.tracks {
		if t.LastWall > 0 {
			return at(t.LastWall)
		}
	}
	return time.Time{}
}

// anchorsOf are the kept points of a log's series that state a step. One without a time
// that stands between two has a time between theirs, in the proportion of the lines, and
// is known to lie between them.
func anchorsOf(x *evidence.Series, near time.Time) []anchor {
	var out []anchor
	for p := range x.All() {
		if p.Step == evidence.None {
			continue
		}
		q := anchor{Point: p}
		q.wall, q.err, q.daily = wallOf(p.When(), near)
		out = append(out, q)
	}
	for i := range out {
		if out[i].wall != 0 || i == 0 {
			continue
		}
		j := i + 1
		for j < len(out) && j < i+4 && out[j].wall == 0 {
			j++
		}
		if j == len(out) || out[j].wall == 0 || out[i-1].wall == 0 {
			continue
		}
		a, b := &out[i-1], &out[j]
		if gap := b.wall - a.wall; gap >= 0 && gap <= interpolated {
			share := float64(out[i].Ordinal-a.Ordinal) / float64(b.Ordinal-a.Ordinal)
			out[i].wall, out[i].err, out[i].daily = a.wall+share*gap, max(share, 1-share)*gap+b.err, b.daily
		}
	}
	return out
}

// wallOf is a stamp in seconds since 1970 as its text states it, with half its resolution;
// 0 where it is no time of day. A year that is left out is the one that brings it nearest.
func wallOf(s evidence.Stamp, near time.Time) (wall, err float64, daily bool) {
	if !s.Known() || s.Clock != "wall" {
		return 0, 0, false
	}
	t := s.Time
	if s.NoYear {
		if near.IsZero() {
			return 0, 0, false
		}
		best := time.Time{}
		for y := near.Year() - 1; y <= near.Year()+1; y++ {
			c := time.Date(y, t.Month(), t.Day(), t.Hour(), t.Minute(), t.Second(), t.Nanosecond(), time.UTC)
			if best.IsZero() || c.Sub(near).Abs() < best.Sub(near).Abs() {
				best = c
			}
		}
		t = best
	}
	if s.NoDate {
		day := near.UTC()
		t = time.Date(day.Year(), day.Month(), day.Day(), t.Hour(), t.Minute(), t.Second(), t.Nanosecond(), time.UTC)
	}
	return unix(t), s.Error.Seconds(), s.NoDate
}

// precision says how far a printed value may be from the stored one: half of the last
// digit that the series prints, be it of so many places or of so many digits.
func precision(x *evidence.Series) func(float64) float64 {
	places, digits := 0, 1
	for p := range x.All() {
		if !finite(p.Value) {
			continue
		}
		text := value(math.Abs(p.Value))
		mantissa, exponent, _ := strings.Cut(text, "e")
		_, fraction, _ := strings.Cut(mantissa, ".")
		digits = max(digits, len(strings.TrimLeft(strings.Replace(mantissa, ".", "", 1), "0")))
		if exponent == "" {
			places = max(places, len(fraction))
		}
	}
	digits = min(digits, 17)
	return func(v float64) float64 {
		v = math.Abs(v)
		half := 0.0
		if v > 0 {
			half = 0.5001 * math.Pow(10, math.Floor(math.Log10(v))+1-float64(digits))
		}
		return max(half, 0.5001*math.Pow(10, -float64(places)), 1.2e-7*v)
	}
}

// visible states a value that a log shows not to be finite and a tracker has as finite.
func (a *Aligner) visible(r *Run, l *line, x *evidence.Series, p *anchor, got []placed) {
	if slices.ContainsFunc(got, func(g placed) bool { return !finite(g.Value) }) {
		return
	}
	a.disagree(r, l, x, p, got[0], because(r, known{evidence.Point{Ordinal: got[0].Ordinal, Value: got[0].Value}, got[0].track}))
}

// unseen states a value that a tracker has as not finite and a log prints as finite.
func (a *Aligner) unseen(r *Run, l *line, x *evidence.Series, p *anchor, got []placed) {
	if slices.ContainsFunc(got, func(g placed) bool { return finite(g.Value) }) {
		return
	}
	why := "what is known of the two does not explain it"
	switch x.Key.Trust {
	case evidence.Filtered:
		why = "what prints it may replace such a value"
	case evidence.Smoothed:
		why = "what prints it smooths its values"
	}
	a.disagree(r, l, x, p, got[0], why)
}

// disagree states what a tracker and a log say of one step, once for each series and log.
func (a *Aligner) disagree(r *Run, l *line, x *evidence.Series, p *anchor, g placed, why string) {
	key := disagreement{r, l.name, x.Key.Artifact, finite(g.Value)}
	if a.stated[key] || len(a.out.Disagree) >= maxDisagreements {
		return
	}
	a.stated[key] = true
	a.out.Disagree = append(a.out.Disagree, incident.Statement{
		Text:  fmt.Sprintf("%s has %s = %s at step %d, which %s prints as %s: %s.", r.label(), l.name, value(g.Value), p.Step, x.Key.Artifact, value(p.Value), why),
		Spans: []evidence.Span{span(g.track, evidence.Mark{Line: g.Line, Offset: g.Offset}, g.Value), x.Span(p.Point)}})
}

// A disagreement is stated once.
type disagreement struct {
	run       *Run
	name, log string
	finite    bool
}

// attemptOf is the attempt of the job in whose log a segment of run i was printed; ok is
// false where no shared step tells.
func (a *Aligner) attemptOf(i int, segment [2]int) (attempt int, ok bool) {
	sum := map[int]int{}
	for k, t := range a.ties {
		if k.run == i {
			for n, votes := range t.votes[segment] {
				sum[n] += votes
			}
		}
	}
	most := 0
	for n, votes := range sum {
		if votes > most || votes == most && ok && n < attempt {
			attempt, most, ok = n, votes, true
		}
	}
	return attempt, ok
}

// tracked is the time of a happening by the clock of run i, in seconds since 1970, and the
// bound to which the two are known to agree; ok is false where nothing ties the clocks.
func (a *Aligner) tracked(i int, h *Happening) (wall, bound float64, how string, ok bool) {
	r := a.runs[i]
	near := r.newest().Time
	wall, err, daily := wallOf(h.Stamp, near)
	if wall == 0 {
		return 0, 0, "", false
	}
	if slices.ContainsFunc(r.Parts, func(p *evidence.TrackedRun) bool { return p.Artifact == h.Span.Artifact }) {
		return wall, err, "the tracker's own clock", true
	}
	t := a.ties[tieKey{i, h.Span.Artifact}]
	if t == nil { // another log whose lines name the same zone, or none as this one
		for _, c := range a.out.Clocks {
			if x := a.ties[tieKey{i, c.Log}]; c.Run == i && x != nil && x.Applied && h.Stamp.Zone == "" {
				t = x
				err += untied
				break
			}
		}
	}
	switch {
	case t != nil && t.Applied:
		wall -= t.Offset
		if daily {
			if d := wall - unix(near); math.Abs(d) > 43200 {
				wall -= math.Copysign(86400, d)
			}
		}
		return wall, err + t.Bound, fmt.Sprintf("clocks tied by %d shared steps to %s", t.Pairs, seconds(err+t.Bound)), true
	case t == nil && h.Stamp.Zone != "" && !daily:
		return wall, err + untied, fmt.Sprintf("both clocks in UTC, tied by no shared step and taken to agree to %s", seconds(err+untied)), true
	}
	return 0, 0, "", false
}

// Deaths are the ends that runs may have gone on after, which a second reading counts.
func (a *Aligner) Deaths() []Death {
	h := a.story.Death
	if h == nil {
		return nil
	}
	var out []Death
	for i, r := range a.runs {
		wall, bound, how, ok := a.tracked(i, h)
		last := 0.0
		for _, l := range r.lines {
			if l.class != machineClass {
				for _, t := range l.tracks {
					last = max(last, t.LastWall)
				}
			}
		}
		if !ok || last <= wall+bound {
			continue
		}
		d := Death{Run: r, index: i, Wall: wall + bound, Until: math.Inf(1), how: how}
		for _, x := range a.out.Runs[i].Resumes { // writing that began again is of another start
			if x.Time == nil {
				continue
			}
			if t, err := time.Parse(timeLayout, *x.Time); err == nil && unix(t) > d.Wall {
				d.Until = min(d.Until, unix(t))
			}
		}
		out = append(out, d)
	}
	return out
}

// A Death is the end of a run by a log: what its tracker recorded between Wall and Until,
// seconds since 1970 by the tracker's clock, it recorded after the run was dead.
type Death struct {
	Run         *Run
	Wall, Until float64
	index       int
	how         string
}

// Of reports whether a run, as it was read, is a part of d's.
func (d *Death) Of(r *evidence.TrackedRun) bool {
	return slices.ContainsFunc(d.Run.Parts, func(p *evidence.TrackedRun) bool {
		return p.Artifact == r.Artifact && p.ID == r.ID && p.Folder == r.Folder && p.Writer == r.Writer
	})
}

// After states that n points were recorded after a death, the first of them p of a series.
func (a *Aligner) After(d Death, n int64, t *evidence.Track, p evidence.Point, wall float64) {
	if n == 0 {
		return
	}
	sp := span(t, evidence.Mark{Line: p.Line, Offset: p.Offset}, p.Value)
	sp.Length = int64(p.Length)
	h := a.story.Death
	a.out.After = append(a.out.After, incident.AfterDeath{Run: d.index, Points: n, First: incident.TrackedPoint{Step: stepOf(p.Step), Time: wallTime(wall), Value: incident.Number(p.Value), Span: &sp},
		Death: statement(h), Basis: "by time: " + d.how, Status: cmp.Or(a.out.Runs[d.index].Said, a.out.Runs[d.index].Status)})
}

func statement(h *Happening) incident.Statement {
	return incident.Statement{Text: h.Text, Spans: []evidence.Span{h.Span}}
}

// Result is the whole alignment.
func (a *Aligner) Result() *incident.Alignment {
	a.rows()
	for i := range a.out.Runs {
		for j := range a.out.Runs[i].Series {
			a.out.Runs[i].Series[j].Points = []incident.TrackedPoint{}
		}
	}
	return a.out
}
