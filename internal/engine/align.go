package engine

import (
	"context"
	"errors"
	"math"
	"slices"
	"sort"
	"strings"

	"github.com/inquest-dev/inquest/internal/artifact"
	"github.com/inquest-dev/inquest/internal/diagnose"
	"github.com/inquest-dev/inquest/internal/evidence"
	"github.com/inquest-dev/inquest/internal/incident"
	"github.com/inquest-dev/inquest/internal/reader"
	"github.com/inquest-dev/inquest/internal/timeline"
	"github.com/inquest-dev/inquest/internal/tracker"
)

// ErrNoLog says that nothing but tracked runs was found to align them with.
var ErrNoLog = errors.New("no log to set the runs against")

// Bounds of what an alignment takes from the logs.
const (
	maxAligned    = 64 // logs that print losses or gradient norms, the lowest ranks first
	maxHappenings = 120
	maxHappening  = 300 // bytes of its text
)

// Align sets the tracked runs among the paths against the job's logs among them: the newest
// job's, as Diagnose reads them. Console output that a tracker keeps is a log as well. The
// error is ctx's, or says why nothing could be looked at; it is ErrNoLog where there is no
// log.
func Align(ctx context.Context, o Options, to TrackerOptions) (*incident.Alignment, error) {
	seen, err := to.look(ctx, o)
	if err != nil {
		return nil, err
	}
	var files, logs []artifact.File
	for _, f := range seen.Files {
		if tracked(f.Kind) {
			files = append(files, f)
		} else {
			logs = append(logs, f)
		}
	}
	seen.Files = logs
	got := newTrackerReading()
	got.problems(seen)
	progress := o.Progress
	o.Progress = nil
	r, err := readSeen(ctx, o, seen, densePoints/max(len(logs), 1))
	if err != nil {
		return nil, err
	}
	defer r.Close() // holds members of archives for files as well
	sort.SliceStable(files, func(i, j int) bool { return files[i].Path < files[j].Path })
	named := make([]*artifact.File, len(files))
	for i := range files {
		named[i] = &files[i]
	}
	named = append(named, served(to.Servers)...)
	story := &tracker.Story{Logs: logsOf(r)}
	p := &picking{wanted: story.Wanted(), picks: tracker.Picks{}}
	o.Progress = progress
	got.console = func(f *artifact.File, c *reader.Collector, runs []*evidence.TrackedRun) {
		if addConsole(r, f, c, runs) {
			story.Logs = append(story.Logs, tracker.Log{Path: f.Path})
		}
	}
	if err := got.read(ctx, o, to, named, p.take); err != nil {
		return nil, err
	}
	if len(got.Runs) > 0 && !readable(r) {
		return nil, ErrNoLog
	}
	Examine(r).tell(story)
	a := tracker.Align(tracker.Merge(got.Runs), p.picks, story, to.shown(got))
	if err := after(ctx, o, to, named, a); err != nil {
		return nil, err
	}
	out := a.Result()
	out.Tool = incident.Tool{Name: "inquest", Version: o.Version}
	out.Limits = append(out.Limits, got.Limits...)
	for _, x := range r.Problem {
		if !slices.ContainsFunc(got.Limits, func(l incident.Statement) bool { return strings.HasPrefix(l.Text, x.Span.Artifact+": ") }) && len(out.Limits) < maxSettings {
			out.Limits = append(out.Limits, incident.Statement{Text: x.Span.Artifact + ": " + x.Err.Error(), Spans: []evidence.Span{x.Span}})
		}
	}
	out.Artifacts, out.NotFound = got.Artifacts, got.NotFound
	for i := range r.Files {
		if r.Raw[i] == nil || tracked(r.Files[i].Kind) {
			continue
		}
		a := artifactOf(&r.Sources[i].Artifact)
		a.Recognised = int64(len(r.Sources[i].Events))
		out.Artifacts = append(out.Artifacts, a)
	}
	sort.SliceStable(out.Artifacts, func(i, j int) bool { return out.Artifacts[i].Path < out.Artifacts[j].Path })
	mask(out)
	return out, nil
}

// readable reports whether anything was read beside tracked runs.
func readable(r *Reading) bool {
	return slices.ContainsFunc(r.Sources, func(s timeline.Source) bool { return s.Artifact.Fate == "read" || s.Artifact.Fate == "partly read" })
}

// A picking keeps the points of trackers at steps that the logs have.
type picking struct {
	wanted map[string]map[int64]bool
	picks  tracker.Picks
	n      int
}

// maxPicks bounds the points that are picked.
const maxPicks = 1 << 18

func (p *picking) take(_ *evidence.TrackedRun, t *evidence.Track, q *evidence.Point, wall float64) error {
	if p.n < maxPicks && q.Step != evidence.None && p.wanted[t.Series.Key.Name][q.Step] {
		p.n++
		p.picks[t] = append(p.picks[t], tracker.Pick{Step: q.Step, Ordinal: q.Ordinal, Value: q.Value, Wall: wall, Line: q.Line, Offset: q.Offset})
	}
	return nil
}

// logsOf are the logs of a reading that print what is compared.
func logsOf(r *Reading) []tracker.Log {
	out := []tracker.Log{}
	for i := range r.Sources {
		s := &r.Sources[i]
		if s.Artifact.Kind == "" || evidence.Beside(s.Artifact.Kind) || len(s.Events)+len(s.Series) == 0 {
			continue
		}
		out = append(out, tracker.Log{Path: s.Artifact.Path, Series: s.Series, Attempt: func(launch int) int { return launch }})
	}
	rank := func(l tracker.Log) int {
		for i := range r.Sources {
			if r.Sources[i].Artifact.Path == l.Path && r.Sources[i].Artifact.Owner.Rank > 0 {
				return r.Sources[i].Artifact.Owner.Rank
			}
		}
		return 0
	}
	sort.SliceStable(out, func(i, j int) bool { return rank(out[i]) < rank(out[j]) })
	return out[:min(len(out), maxAligned)]
}

// addConsole makes a source of the console output that a tracker kept: of what its
// artifact gave, what is not of the run's own points. It reports whether there is any.
func addConsole(r *Reading, f *artifact.File, c *reader.Collector, runs []*evidence.TrackedRun) bool {
	lines := int64(0)
	for _, x := range runs {
		lines += x.Lines
	}
	if lines == 0 {
		return false
	}
	c.Settle(1)
	s := timeline.Source{Artifact: f.Artifact, Facts: c.Facts, Lines: lines}
	s.Artifact.Fate = "read"
	for _, e := range c.Events {
		if e.Kind == evidence.TrackerRun || e.Attrs.Str("tracker") != "" { // of the run's own points
			continue
		}
		s.Events = append(s.Events, e)
	}
	r.Sources, r.Raw, r.Files = append(r.Sources, s), append(r.Raw, c), append(r.Files, *f)
	return true
}

// tell puts down what the logs tell.
func (s *Study) tell(out *tracker.Story) {
	type part struct {
		path   string
		launch int
	}
	parts := map[part]int{}
	for n, a := range s.Timeline.Attempts {
		for _, p := range a.Parts {
			parts[part{s.Timeline.Sources[p.Source].Artifact.Path, p.Launch}] = n
		}
	}
	for i := range out.Logs {
		path := out.Logs[i].Path
		out.Logs[i].Attempt = func(launch int) int { return parts[part{path, launch}] }
	}
	o := s.relate(s.Main)
	out.Relation, out.Basis = o.Relation, o.Basis
	if o.Memory != nil {
		h := s.happening("memory", o.Memory)
		out.Memory = &h
	}
	if o.NaN != nil {
		h := s.happening("nonfinite", o.NaN)
		out.NaN, out.NaNName = &h, o.NaN.Attrs.Str("metric")
	}
	for i := len(s.Cases) - 1; i >= 0 && out.Memory == nil; i-- { // the host's memory
		if c := s.Cases[i]; c.Lead != nil && c.Lead.Source >= 0 && c.LeadClass == evidence.HostMemory {
			h := s.happening("memory", c.Lead)
			out.Memory = &h
		}
	}
	if it := fatal(s.Cases[s.Ended]); it != nil {
		h := s.happening("fault", it)
		out.Death = &h
	} else if it := exitOf(s.Cases[s.Ended]); it != nil {
		h := s.happening("end", it)
		out.Death = &h
	}
	for _, c := range s.Cases {
		if len(out.Rest) >= maxHappenings {
			break
		}
		for _, it := range c.Attempt.Items {
			if it.Kind == evidence.LaunchMark && it.Attempt >= 0 && it.Attrs.Str("what") != "note" {
				out.Rest = append(out.Rest, s.happening("start", it))
				break
			}
		}
		if c.Lead != nil && c.Lead.Source >= 0 {
			out.Rest = append(out.Rest, s.happening("fault", c.Lead))
		}
		for n, x := range c.Rivals {
			if n < maxRivals && x.Source >= 0 {
				out.Rest = append(out.Rest, s.happening("fault", x))
			}
		}
		if c.NaN != nil && c.NaN.Source >= 0 {
			out.Rest = append(out.Rest, s.happening("nonfinite", c.NaN))
		}
		if c.Memory != nil && c.Memory.Source >= 0 {
			out.Rest = append(out.Rest, s.happening("memory", c.Memory))
		}
		if e := exitOf(c); e != nil {
			out.Rest = append(out.Rest, s.happening("end", e))
		}
	}
}

// fatal is the fault that ended an attempt: the leading one, but for a value that is not
// finite, which ends nothing by itself; then the latest other one that was not survived. It is
// nil if there is none.
func fatal(c *diagnose.Case) *timeline.Item {
	ends := func(it *timeline.Item) bool {
		sp := evidence.SpecOf(it.Kind)
		return it.Source >= 0 && sp != nil && sp.Class != evidence.Nonfinite && !c.Recovered(&it.Event)
	}
	if c.Lead != nil && c.LeadClass != evidence.Nonfinite && ends(c.Lead) {
		return c.Lead
	}
	var last *timeline.Item
	for _, it := range c.Attempt.Items {
		if sp := evidence.SpecOf(it.Kind); sp != nil && sp.Role == evidence.RoleFault && it.Attempt >= 0 && !it.Quoted && ends(it) {
			if last == nil || c.Timeline.Order(last, it) == timeline.Before {
				last = it
			}
		}
	}
	return last
}

// exitOf is the latest exit that an attempt's logs tell of, nil if there is none.
func exitOf(c *diagnose.Case) (last *timeline.Item) {
	for _, it := range c.Attempt.Items {
		if sp := evidence.SpecOf(it.Kind); sp == nil || sp.Role != evidence.RoleExit && it.Kind != evidence.Finished || it.Attempt < 0 {
			continue
		}
		if last == nil || c.Timeline.Order(last, it) == timeline.Before {
			last = it
		}
	}
	return last
}

// happening puts down an item.
func (s *Study) happening(kind string, it *timeline.Item) tracker.Happening {
	text, _, _ := strings.Cut(strings.TrimSpace(it.Text), "\n")
	if len(text) > maxHappening {
		text = strings.ToValidUTF8(text[:maxHappening], "") + "…"
	}
	h := tracker.Happening{Kind: kind, Text: text, Stamp: it.Stamp, Span: it.Span, Attempt: it.Attempt, Step: it.Step, Next: evidence.None}
	h.Span.Quote = text
	if it.Source < 0 {
		return h
	}
	at := int64(-1)
	for _, x := range s.Timeline.Sources[it.Source].Series {
		if x.Key.Launch != it.Who.Launch || x.Key.Name != "loss" && x.Key.Name != "grad_norm" {
			continue
		}
		for p := range x.All() {
			switch {
			case p.Step == evidence.None:
			case p.Offset < it.Span.Offset && p.Offset > at:
				if at = p.Offset; !stepOwn(it) {
					h.Step = p.Step
				}
			case p.Offset > it.Span.Offset && (h.Next == evidence.None || p.Step < h.Next):
				h.Next = p.Step
			}
		}
	}
	return h
}

// stepOwn reports whether an item states a step of its own, not the last one before it.
func stepOwn(it *timeline.Item) bool {
	return it.Kind == evidence.NonfiniteValue || it.Kind == evidence.NonfiniteNamed || it.Kind == evidence.LossOmitted
}

// after reads again the artifacts of runs that may have gone on after the end, and counts
// what they recorded then.
func after(ctx context.Context, o Options, to TrackerOptions, files []*artifact.File, a *tracker.Aligner) error {
	for _, d := range a.Deaths() {
		var n int64
		var track *evidence.Track
		var first evidence.Point
		began := math.Inf(1)
		for _, f := range files {
			if !slices.ContainsFunc(d.Run.Parts, func(p *evidence.TrackedRun) bool { return p.Artifact == f.Path }) {
				continue
			}
			again := newTrackerReading()
			o.Progress = nil
			err := again.read(ctx, o, to, []*artifact.File{f}, func(r *evidence.TrackedRun, t *evidence.Track, p *evidence.Point, wall float64) error {
				if wall <= d.Wall || wall >= d.Until || t.System || t.Axis == evidence.AxisOwn || !d.Of(r) {
					return nil
				}
				if n++; wall < began {
					began, track, first = wall, t, *p
				}
				return nil
			})
			if err != nil {
				return err
			}
		}
		if n > 0 {
			a.After(d, n, track, first, began)
		}
	}
	return nil
}
