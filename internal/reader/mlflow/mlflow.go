// Package mlflow reads what MLflow keeps of runs: the SQLite database of a tracking
// store (the default since 3.7), the folders of a file store (mlruns, the default before),
// and, where the user names its address, a tracking server.
//
// Sources: mlflow/store/tracking/dbmodels/models.py, mlflow/store/tracking/file_store.py
// and mlflow/protos/service.proto of MLflow 1.8 to 3.17.
package mlflow

import (
	"bytes"
	"context"
	"io"
	"math"
	"path"
	"slices"
	"strings"

	"github.com/inquest-dev/inquest/internal/evidence"
	"github.com/inquest-dev/inquest/internal/format/mlflowfile"
	"github.com/inquest-dev/inquest/internal/format/sqlitefile"
	"github.com/inquest-dev/inquest/internal/format/textline"
	"github.com/inquest-dev/inquest/internal/lazyre"
	"github.com/inquest-dev/inquest/internal/reader"
)

// New returns the reader.
func New() reader.Reader { return mlflow{} }

type mlflow struct{}

// Tracker is the tracker's name in tracked runs.
const Tracker = "mlflow"

func (mlflow) Name() string { return Tracker }

// Bounds of a store.
const (
	maxRuns      = 10_000   // runs of a store that are read, the newest
	maxListed    = 100_000  // runs that are looked at to find those
	maxAllTracks = 40_000   // series of all runs of a store
	maxSampled   = 1 << 18  // points kept of all series of a store
	maxText      = 64 << 20 // bytes of the settings and tags of a store
	maxNotes     = 64       // of one run
	maxNote      = 200      // bytes of a tag in a note
	maxNames     = 100_000  // experiments
)

// Clamp is what MLflow's databases hold in place of an infinity, with its sign
// (mlflow/store/tracking/sqlalchemy_store.py, sanitize_metric_value).
const Clamp = math.MaxFloat64

const clampReason = "MLflow's databases hold the largest finite number in place of an infinity"

var metricLine = lazyre.New(`^(?:\xef\xbb\xbf)?-?\d{1,19} (?:-?(?:\d[\d.e+-]*|inf)|nan)(?: -?\d{1,19})?\s`)

// Tables of which a database with three is MLflow's, and those that no other has.
var (
	usualTables = []string{"runs", "experiments", "params", "tags", "metrics", "experiment_tags", "alembic_version"}
	ownTables   = []string{"latest_metrics", "registered_models", "model_versions", "registered_model_tags", "model_version_tags", "registered_model_aliases", "logged_models"}
)

// Sniff knows a database by the tables that its first page shows. The list of a newer
// store fills several pages, none of which is the first: such a database is known by its
// name, as MLflow's default mlflow.db has it, or by Probe.
func (mlflow) Sniff(a evidence.Artifact, head []byte) reader.Confidence {
	name := strings.ToLower(slash(a.Path))
	base := path.Base(name)
	if bytes.HasPrefix(head, []byte(sqlitefile.Magic)) {
		tables, whole := sqlitefile.TablesIn(head)
		if known(tables) || !whole && len(tables) == 0 && (strings.Contains(base, "mlflow") || strings.Contains(base, "mlruns")) {
			return reader.Sure
		}
		return reader.No
	}
	if base == "meta.yaml" && isRunMeta(head) {
		return reader.Sure
	}
	if _, key, ok := mlflowfile.InRun(slash(a.Path)); ok && strings.HasPrefix(key, "metrics/") && metricLine.Match(head) {
		return reader.Sure
	}
	return reader.No
}

// known reports whether tables are those of a store: three usual ones, or one that
// nobody else has.
func known(tables map[string]bool) bool {
	n := 0
	for _, t := range usualTables {
		if tables[t] {
			n++
		}
	}
	return n >= 3 || slices.ContainsFunc(ownTables, func(t string) bool { return tables[t] })
}

// Probe knows a database of any name by its list of tables.
func (mlflow) Probe(a evidence.Artifact, r io.ReaderAt) reader.Confidence {
	f, err := sqlitefile.Open(context.Background(), sqlitefile.Source{DB: r, Size: max(a.Size, 0)})
	if err != nil {
		return reader.No
	}
	tables := map[string]bool{}
	for _, t := range f.Tables() {
		tables[strings.ToLower(t.Name)] = true
	}
	if tables["metrics"] && tables["runs"] && known(tables) {
		return reader.Sure
	}
	return reader.No
}

// isRunMeta reports whether the text is the description of a run.
func isRunMeta(head []byte) bool {
	has := func(key string) bool {
		return bytes.HasPrefix(head, []byte(key)) || bytes.Contains(head, []byte("\n"+key))
	}
	return has("artifact_uri:") && (has("run_id:") || has("run_uuid:")) && has("lifecycle_stage:")
}

// slash is a path with slashes; a member of an archive lies in it as in a folder.
func slash(p string) string {
	return strings.ReplaceAll(reader.PlaceOf(p), `\`, "/")
}

// Anchor gives the files beside a database to it, and those of a run's folder to its
// description.
func (mlflow) Anchor(p string) (dir, pattern string, ok bool) {
	if db, ok := sqlitefile.Companion(p); ok {
		return path.Dir(db), literal(path.Base(db)), true
	}
	if dir, _, ok := mlflowfile.Below(p); ok {
		return path.Clean(dir), "meta.yaml", true
	}
	return "", "", false
}

// literal is a name as a pattern of path.Match.
func literal(name string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(name)
}

// Read reads a database, a run's description with the files that belong to it, or one
// of those that has no description.
func (mlflow) Read(ctx context.Context, in reader.Input, s reader.Sink) error {
	switch name := slash(in.Artifact.Path); {
	case path.Base(name) == "meta.yaml":
		return readRun(ctx, in, s)
	default:
		if _, key, ok := mlflowfile.InRun(name); ok {
			return readMetric(ctx, in, s, key)
		}
		return readStore(ctx, in, s)
	}
}

// statusOf reads a status by its word.
func statusOf(word string) evidence.RunStatus {
	switch word {
	case "RUNNING", "SCHEDULED":
		return evidence.RunOpen
	case "FINISHED":
		return evidence.RunFinished
	case "FAILED":
		return evidence.RunFailed
	case "KILLED":
		return evidence.RunKilled
	}
	return evidence.RunUnknown
}

// note adds a line to a run's notes, within their bound.
func note(r *evidence.TrackedRun, text string) {
	if len(r.Notes) < maxNotes {
		r.Notes = append(r.Notes, textline.OneLine(text, maxNote))
	}
}

// tag notes a tag of a run. The name of a run, its user and what started it have a meaning
// of their own.
func tag(r *evidence.TrackedRun, key, value string) {
	switch key {
	case "mlflow.runName":
		if r.Name == "" {
			r.Name = textline.OneLine(value, maxNote)
		}
	case "mlflow.log-model.history", "mlflow.loggedArtifacts":
	default:
		note(r, "tag "+key+": "+value)
	}
}

// wall is a time in milliseconds since 1970 as seconds, 0 where it is none.
func wall(ms int64) float64 {
	if ms <= 0 {
		return 0
	}
	return float64(ms) / 1000
}

// system reports whether a metric is one of MLflow's own measurements of the machine,
// whose step counts samples.
func system(key string) bool { return strings.HasPrefix(key, "system/") }
