// Package repair writes a repaired copy of what an experiment tracker recorded: a copy in
// which the values that are not finite are gone and the failed segment is marked, beside
// which everything else stays as it was. The source is only ever read. What is done
// to which point is decided here, once, for all formats; a folder below writes each.
//
// The source is read three times. A Planner sees two complete readings: the first finds
// what decides about a point only behind it (suspects, steps that are written again), the
// second decides, accounts and finds the marks. The Format reads it the third time, asks
// the Plan about every point, and writes. The copy is then read by the same readers, and
// a Recount of it is set against the account.
package repair

import (
	"context"
	"io"

	"github.com/inquest-dev/inquest/internal/evidence"
	"github.com/inquest-dev/inquest/internal/incident"
)

// A Format writes the repaired copy of one tracker's data.
type Format interface {
	// Name is the manifest's format.
	Name() string
	// Claims reports whether runs of the source are of this format, from what was read of
	// them. It is asked about one run at a time where several formats lie in one source.
	Claims(src *Source, runs []*evidence.TrackedRun) bool
	// Copy writes the whole copy into out, asking plan about every point in the order in
	// which the reader of the format met it. It returns an error without having to clean up:
	// out is given up then.
	Copy(ctx context.Context, src *Source, out *Out, plan *Plan) error
}

// The files that lie beside what a Format writes, at the root of the copy.
const (
	ManifestName = "inquest-repair.json"
	NoteName     = "inquest-repair.md"
)

// Create makes a file of the copy at a slash path, and the folders it lies in. It has the
// permissions of the file of that name in the source, where there is one. It fails where the
// file is there already. What is written is on disk once Close has returned nil.
func (o *Out) Create(name string) (io.WriteCloser, error) { return o.create(name) }

// Path is where a file of the copy lies while it is written, for libraries that open a
// database by name; its folder exists afterwards.
func (o *Out) Path(name string) (string, error) { return o.path(name) }

// CopyFile copies a file of the source as it is, with its permissions and time.
func (o *Out) CopyFile(ctx context.Context, src *Source, name string) error {
	return o.copyFile(ctx, src, name)
}

// An Action is what becomes of a point.
type Action uint8

const (
	Keep Action = iota
	Drop        // taken out
	Hold        // its value is replaced by the one returned with it
)

// A RunKey names a run of the source: the tracker's id, or the folder where it has none,
// and the writer.
type RunKey struct{ ID, Folder, Writer string }

// KeyOf is the key of a run as it was read.
func KeyOf(r *evidence.TrackedRun) RunKey {
	if r.ID != "" {
		return RunKey{ID: r.ID, Writer: r.Writer}
	}
	return RunKey{Folder: r.Folder, Writer: r.Writer}
}

// A Plan says what becomes of every point, how each run is marked, and keeps the account.
// It is made by a Planner from two complete readings of the source.
type Plan struct {
	Policy incident.RepairPolicy
	Marker string // series name, inquest/failed_segment by default
	// Changes and Left take what a format did beside its points, and what it had to leave;
	// one sentence each.
	Changes, Left []string

	runs map[RunKey]*Run
	list []*Run // those that are repaired
}

// A Run is what the plan says of one run.
type Run struct {
	Key  RunKey
	Read *evidence.TrackedRun // as it was read; of several files the first
	// Affected: some point is dropped or held for its value, so that the run is to be
	// marked. A run that is not affected may lose points that were written again later.
	Affected bool
	// Passive: the run is not among those that are repaired. A format with a file or folder
	// for each run leaves it out; in a file of many runs it stays as it is.
	Passive bool
	NewID   string // under which a copy that can be uploaded goes
	// Status is what the copy is to state where the source says that a dead run is running,
	// or has no word for its end; "" where it is to be left.
	Status evidence.RunStatus
	// Dead: no process writes the run any more, by a word for its end in one of its files or
	// by their age.
	Dead   bool
	Newest float64 // seconds since 1970 of the newest point, 0 unknown
	Clean  int64   // last step before the first affected one at which the curve is real; evidence.None where none is known
	First  int64   // that first affected step; evidence.None where none states a step
	// Since is the step from which on some series of the training is affected up to its last
	// value; evidence.None where each has finite values again.
	Since int64
	Note  string // for people, Markdown, a few lines; "" where nothing was done to a point
	Short string // the same in one line
	JSON  string // for machines: segments by series, at most 4000 bytes

	plan   *Plan
	series map[seriesKey]*Series
	order  []*Series
	marks  []Mark
}

type seriesKey struct{ artifact, name string }

// A Mark is a point of the marker series: 1 within a failed segment, 0 at the finite step
// before and after it.
type Mark struct {
	Step  int64 // evidence.None where none is stated
	Wall  float64
	Value float64
}

// A Series decides about the points of one series of one file.
type Series struct {
	key                seriesKey
	state              seriesState
	failed, suspicious []stretch
}

// Run returns what the plan says of a run; an empty one for a run that was not read.
func (p *Plan) Run(key RunKey) *Run { return p.run(key) }

// Runs returns the runs that are repaired in the order in which they were read.
func (p *Plan) Runs() []*Run { return p.list }

// Series returns the decisions about a series of a file (Source.Artifact). A series that
// the readers did not keep has its points decided by their values alone.
func (r *Run) Series(artifact, name string) *Series { return r.get(artifact, name) }

// Next decides about the next point in the order of the file, and accounts for it. The
// value is what to write: v, or the last finite one for Hold.
func (s *Series) Next(step int64, wall, v float64) (Action, float64) {
	return s.state.next(step, wall, v)
}

// Marks returns the marker series of a run by rising step; none where nothing failed. Marks
// without a step come last, by time.
func (r *Run) Marks() []Mark { return r.marks }

// Mark returns the marker's value at a logged step, for formats that have one row a step;
// ok is false where the row needs no mark. Of rows that state no step (evidence.None)
// the format marks those that lose a value.
func (r *Run) Mark(step int64) (v float64, ok bool) { return r.mark(step) }
