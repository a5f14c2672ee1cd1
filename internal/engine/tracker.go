package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"sort"
	"strings"
	"time"

	"github.com/inquest-dev/inquest/internal/artifact"
	"github.com/inquest-dev/inquest/internal/evidence"
	"github.com/inquest-dev/inquest/internal/incident"
	"github.com/inquest-dev/inquest/internal/reader"
	"github.com/inquest-dev/inquest/internal/redact"
	"github.com/inquest-dev/inquest/internal/tracker"
)

// TrackerOptions say which tracked runs are looked at, and how.
type TrackerOptions struct {
	tracker.Options
	// Run is a pattern, as of Series, for the id, name, folder or last element of the folder of
	// the runs that are wanted; "" is all.
	Run string
	// Points is how many points of a series a plot gets; 0 is 512.
	Points int
	// Servers are read behind what lies at the paths, of which there may be none then.
	Servers []Server
}

// A Server is a tracker's server from which runs are read.
type Server struct {
	Name  string // its address as reports name it, without credentials
	Kind  string // name of the reader of the same tracker's files
	Fetch func(context.Context, reader.Sink) error
}

// served makes files of servers, to be read like others.
func served(servers []Server) (out []*artifact.File) {
	for i := range servers {
		s := &servers[i]
		f := &artifact.File{Artifact: evidence.Artifact{Path: s.Name, Kind: s.Kind, Size: -1, Owner: evidence.Owner{Rank: evidence.None, LocalRank: evidence.None}}, Named: true, Held: serverReader{s},
			Open: func() (io.ReadCloser, error) { return nil, errors.New("a server is asked, not opened") }}
		out = append(out, f)
	}
	return out
}

// A serverReader reads from a server what a reader reads from a file.
type serverReader struct{ of *Server }

func (s serverReader) Name() string                                      { return s.of.Kind }
func (s serverReader) Sniff(evidence.Artifact, []byte) reader.Confidence { return reader.No }

// Read asks the server; the input tells it nothing.
func (s serverReader) Read(ctx context.Context, _ reader.Input, to reader.Sink) error {
	return s.of.Fetch(ctx, to)
}

// look looks at the paths, which may be none where servers are named.
func (to *TrackerOptions) look(ctx context.Context, o Options) (*artifact.Seen, error) {
	if len(o.Paths) == 0 && len(to.Servers) > 0 {
		return &artifact.Seen{}, nil
	}
	return artifact.Look(ctx, o.Paths, o.exports())
}

// Bounds of what a reading of trackers keeps.
const (
	maxTrackedRuns = 4096
	// trackedPoints bounds the points kept of all series of all runs, some 60 bytes each;
	// leastPoints is kept of each series however many there are.
	trackedPoints = 1 << 19
	leastPoints   = 8
	densePoints   = 1 << 13 // most that is kept of one series
)

// A TrackerReading is what the artifacts of experiment trackers among some paths hold.
type TrackerReading struct {
	// Runs are the runs as each artifact holds them, artifacts in the order of their paths
	// and runs in the order of the artifact. Secrets in them are masked.
	Runs      []*evidence.TrackedRun
	Modified  map[string]time.Time // when each artifact was written last; missing where unknown
	Artifacts []incident.Artifact
	Limits    []incident.Statement
	NotFound  []string

	more int // runs beyond maxTrackedRuns
	// console takes what else an artifact gave, beside its runs; may be nil.
	console func(*artifact.File, *reader.Collector, []*evidence.TrackedRun)
}

// ReadTrackers reads the artifacts of experiment trackers among the paths, one after the
// other in the order of their paths, each series with a sample of at most 8192 points.
// What is none is named under Limits, as is what could not be read. The error is ctx's,
// or says why nothing could be looked at.
func ReadTrackers(ctx context.Context, o Options, to TrackerOptions) (*TrackerReading, error) {
	return readTrackers(ctx, o, to, nil)
}

// A PointFunc is given a point of a run as it is read. p is not to be kept; its value is as the
// tracker states it. wall is seconds since 1970, 0 where unknown. An error ends the
// reading.
type PointFunc func(r *evidence.TrackedRun, t *evidence.Track, p *evidence.Point, wall float64) error

// TrackerPoints reads as ReadTrackers does and hands over every point in the order of the
// artifacts. What fn returns is returned.
func TrackerPoints(ctx context.Context, o Options, to TrackerOptions, fn PointFunc) (*TrackerReading, error) {
	return readTrackers(ctx, o, to, fn)
}

// Tracker says what the experiment trackers among the paths recorded. The error is as of
// ReadTrackers.
func Tracker(ctx context.Context, o Options, to TrackerOptions) (*incident.Tracker, error) {
	got, err := ReadTrackers(ctx, o, to)
	if err != nil {
		return nil, err
	}
	return got.Show(o.Version, to), nil
}

// Show says what was recorded.
func (t *TrackerReading) Show(version string, to TrackerOptions) *incident.Tracker {
	out := &incident.Tracker{Schema: incident.TrackerSchema, Tool: incident.Tool{Name: "inquest", Version: version},
		Limits: t.Limits, Artifacts: t.Artifacts, NotFound: t.NotFound}
	runs := tracker.Merge(t.Runs)
	out.Runs = tracker.Show(runs, to.shown(t))
	out.Disagree = tracker.Disagreements(runs)
	mask(out)
	return out
}

// shown completes the options of what is shown.
func (to TrackerOptions) shown(t *TrackerReading) tracker.Options {
	o := to.Options
	o.Points = cmp.Or(to.Points, evidence.MaxPoints)
	o.Modified = t.Modified
	return o
}

// tracked reports whether artifacts of a kind hold tracked runs: those that are neither the
// run's own output nor a record of the machine.
func tracked(kind string) bool {
	return kind != "" && kind != logKind && kind != evidenceKind && !evidence.Beside(kind)
}

// logKind is the kind of the run's own output.
const logKind = "ranklog"

func readTrackers(ctx context.Context, o Options, to TrackerOptions, fn PointFunc) (*TrackerReading, error) {
	seen, err := to.look(ctx, o)
	if err != nil {
		return nil, err
	}
	defer seen.Close()
	seen.Reduce()
	sort.SliceStable(seen.Files, func(i, j int) bool { return seen.Files[i].Path < seen.Files[j].Path })
	out := newTrackerReading()
	var files []*artifact.File
	others := 0
	for i := range seen.Files {
		switch f := &seen.Files[i]; {
		case tracked(f.Kind):
			files = append(files, f)
		case f.Named && others < maxNamed:
			others++
			out.limit(evidence.Span{Artifact: f.Path, Kind: "record"}, "%s is of no experiment tracker and was not read%s.", f.Path, reason(f))
		default:
			others++
		}
	}
	if n := others - len(out.Limits); n > 0 && (len(out.Limits) > 0 || len(files) == 0) {
		what := "%d other files are of no experiment tracker and were not read."
		if n == 1 {
			what = "%d other file is of no experiment tracker and was not read."
		}
		out.limit(evidence.Span{}, what, n)
	}
	if err := out.read(ctx, o, to, append(files, served(to.Servers)...), fn); err != nil {
		return nil, err
	}
	out.problems(seen)
	return out, nil
}

func newTrackerReading() *TrackerReading {
	return &TrackerReading{Modified: map[string]time.Time{}, Artifacts: []incident.Artifact{}, Limits: []incident.Statement{}, NotFound: []string{}}
}

// limit states something that was not read. A zero span is none.
func (t *TrackerReading) limit(sp evidence.Span, format string, args ...any) {
	s := incident.Statement{Text: fmt.Sprintf(format, args...), Spans: []evidence.Span{}}
	if sp.Artifact != "" {
		s.Spans = append(s.Spans, sp)
	}
	t.Limits = append(t.Limits, s)
}

// problems states what could not be looked at.
func (t *TrackerReading) problems(seen *artifact.Seen) {
	limits, notFound := unseen(seen)
	t.Limits, t.NotFound = append(t.Limits, limits...), notFound
}

// read reads the files one after the other.
func (t *TrackerReading) read(ctx context.Context, o Options, to TrackerOptions, files []*artifact.File, fn PointFunc) error {
	byName, _ := o.readers()
	points := max(min(densePoints, trackedPoints/32/max(len(files), 1)), leastPoints)
	kept := 0
	for n, f := range files {
		sink := &runSink{Collector: reader.NewCollector(), points: points, take: func(r *evidence.TrackedRun) {
			if !wanted(to.Run, r) {
				return
			}
			if len(t.Runs) >= maxTrackedRuns {
				t.more++
				return
			}
			unsecretRun(r)
			t.Runs = append(t.Runs, r)
			for _, x := range r.Tracks {
				kept += x.Series.Sampled()
			}
			for kept > trackedPoints && points > leastPoints {
				points = max(points/2, leastPoints)
				kept = t.reduce(points)
			}
		}}
		r := byName[f.Kind]
		if s, ok := f.Held.(serverReader); ok {
			r = s
		}
		if err := t.readOne(ctx, f, r, sink, fn, to.Run); err != nil {
			return err
		}
		if o.Progress != nil {
			o.Progress(n+1, len(files))
		}
	}
	if t.more > 0 {
		t.limit(evidence.Span{}, "%d more runs were only counted; --run names the wanted ones.", t.more)
	}
	return nil
}

// reduce lowers the samples of all runs and returns how many points they have then.
func (t *TrackerReading) reduce(points int) (kept int) {
	for _, r := range t.Runs {
		for _, x := range r.Tracks {
			x.Series.Reduce(points)
			kept += x.Series.Sampled()
		}
	}
	return kept
}

// readOne reads one file into sink. The error is ctx's or fn's; what is wrong with the
// file is put down.
func (t *TrackerReading) readOne(ctx context.Context, f *artifact.File, r reader.Reader, sink *runSink, fn PointFunc, run string) error {
	a := artifactOf(&f.Artifact)
	defer func() { t.Artifacts = append(t.Artifacts, a) }()
	if f.Fate != "" || r == nil || f.Open == nil {
		return nil
	}
	if !f.ModTime.IsZero() {
		t.Modified[f.Path] = f.ModTime
	}
	had, before := len(t.Runs), len(t.Runs)+t.more
	n, digest, err := readInto(ctx, f, r, sink, fn, run)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if fe := (*pointError)(nil); errors.As(err, &fe) {
		return fe.error
	}
	a.Fate = "read"
	if n >= 0 {
		a.Size, a.Digest = n, digest
	}
	for i, d := range sink.Damages {
		if a.Fate, a.Note = "partly read", d.Err.Error(); i < maxNamed {
			t.limit(d.Span, "%s: %s", f.Path, d.Err.Error())
		}
	}
	if n := len(sink.Damages) - maxNamed; n > 0 {
		t.limit(evidence.Span{Artifact: f.Path, Kind: "record"}, "%s: %d more damaged parts", f.Path, int64(n)+sink.Dropped.Damages)
	}
	if err != nil {
		a.Fate, a.Note = "partly read", err.Error()
		var over *artifact.LimitError
		switch {
		case errors.As(err, &over):
			a.Fate = "over limit"
		case len(t.Runs)+t.more == before:
			a.Fate = "unreadable"
		}
		t.limit(evidence.Span{Artifact: f.Path, Kind: "record", Offset: max(a.Size, 0)}, "%s: %s", f.Path, err.Error())
	}
	a.Recognised = sink.count
	if t.console != nil {
		t.console(f, sink.Collector, t.Runs[min(had, len(t.Runs)):])
	}
	return nil
}

// readInto runs r over f. It returns how many bytes were read in order, -1 where none were, and
// their digest.
func readInto(ctx context.Context, f *artifact.File, r reader.Reader, sink *runSink, fn PointFunc, run string) (int64, string, error) {
	file := openArtifact(f)
	defer file.Close()
	var err error
	if fn == nil {
		err = r.Read(ctx, file.in, sink)
	} else {
		pctx, stop := context.WithCancelCause(ctx)
		defer stop(nil)
		err = r.Read(pctx, file.in, &pointSink{sink, run, func(r *evidence.TrackedRun, t *evidence.Track, p *evidence.Point, wall float64) {
			if pctx.Err() == nil {
				if err := fn(r, t, p, wall); err != nil {
					stop(&pointError{err})
				}
			}
		}})
		if cause := (*pointError)(nil); errors.As(context.Cause(pctx), &cause) {
			err = cause
		}
	}
	if file.sum == nil {
		return -1, "", err
	}
	return file.sum.n, file.sum.String(), err
}

// A pointError is one of who takes the points, not of the file.
type pointError struct{ error }

// A runSink takes whole runs. Events, facts and series for the diagnosis are bounded by
// the Collector; the series of the runs are its own.
type runSink struct {
	*reader.Collector
	points int
	count  int64 // points of all runs
	take   func(*evidence.TrackedRun)
}

// Series returns a new series with the sink's bound.
func (s *runSink) Series(k evidence.SeriesKey) *evidence.Series {
	return evidence.NewDense(k, s.points)
}

// TrackedRun counts and takes a run.
func (s *runSink) TrackedRun(r *evidence.TrackedRun) {
	for _, t := range r.Tracks {
		s.count += t.Series.Count
	}
	s.take(r)
}

// A pointSink is a runSink that is handed every point.
type pointSink struct {
	*runSink
	run   string
	every func(*evidence.TrackedRun, *evidence.Track, *evidence.Point, float64)
}

// Point hands on a point of a wanted run.
func (s *pointSink) Point(r *evidence.TrackedRun, t *evidence.Track, p *evidence.Point, wall float64) {
	if wanted(s.run, r) {
		s.every(r, t, p, wall)
	}
}

// wanted reports whether a pattern names a run.
func wanted(pattern string, r *evidence.TrackedRun) bool {
	if pattern == "" {
		return true
	}
	return slices.ContainsFunc([]string{r.ID, r.Name, r.Folder, path.Base(r.Folder)}, tracker.Glob(pattern))
}

// unsecretRun masks the secrets of a run: values by the name of their setting as well as by
// their own shape.
func unsecretRun(r *evidence.TrackedRun) {
	for i := range r.Settings {
		s := &r.Settings[i]
		s.Value, s.Span.Quote = redact.Text(s.Value), redact.Text(s.Span.Quote)
		if s.Value == "" {
			continue
		}
		if named := s.Name + "=" + s.Value; redact.Text(named) != named {
			_, s.Value, _ = strings.Cut(redact.Text(named), "=")
			s.Span.Quote = ""
		}
	}
	r.StatusSaid, r.StatusSpan.Quote = redact.Text(r.StatusSaid), redact.Text(r.StatusSpan.Quote)
	for i := range r.Notes {
		r.Notes[i] = redact.Text(r.Notes[i])
	}
	for i := range r.Damage {
		r.Damage[i].Text, r.Damage[i].Span.Quote = redact.Text(r.Damage[i].Text), redact.Text(r.Damage[i].Span.Quote)
	}
}
