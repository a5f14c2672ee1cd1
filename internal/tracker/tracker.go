// Package tracker says what the runs that experiment trackers recorded show: which
// artifacts are of one run and in which order they were written, where writing began again,
// where each series ceased to be finite, how the run ended as far as its files prove it,
// and where two trackers of one run disagree. It opens no file and reads no clock.
package tracker

import (
	"time"

	"github.com/inquest-dev/inquest/internal/evidence"
	"github.com/inquest-dev/inquest/internal/incident"
)

// Options say how runs are shown.
type Options struct {
	Now time.Time // against which the age of the newest point is held; zero: it is not judged
	// Stale is how old the newest point of a run without an end must be for it to be taken
	// for dead; 0 is DefaultStale.
	Stale time.Duration
	// Series is a pattern as path.Match has it, for the names of the series to show; "" is all.
	// A * matches / as well.
	Series   string
	Points   int                  // of a series' sample
	Modified map[string]time.Time // when each artifact was written last, where known
}

// DefaultStale is the threshold of Options.Stale.
const DefaultStale = 10 * time.Minute

// A Run is one run with all artifacts that hold parts of it.
type Run struct {
	Tracker, ID, Name, Project, Folder, Writer string
	// Parts are what the artifacts hold, in the order of writing.
	Parts []*evidence.TrackedRun
}

// Merge puts together the artifacts of each run.
func Merge(read []*evidence.TrackedRun) []*Run { return nil }

// Show puts down what is known of each run.
func Show(runs []*Run, o Options) []incident.TrackedRun { return []incident.TrackedRun{} }

// Disagreements says where two trackers of one run do not hold the same.
func Disagreements(runs []*Run) []incident.Statement { return []incident.Statement{} }
