// Package mlflow writes repaired copies of MLflow's stores: databases and file stores as
// reader/mlflow reads them. Run ids stay, since a copy is a store of its own.
//
// Sources: mlflow/store/tracking/sqlalchemy_store.py, mlflow/store/tracking/file_store.py of MLflow 3.17.
package mlflow

import (
	"errors"
	"math"
	"path"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/inquest-dev/inquest/internal/evidence"
	"github.com/inquest-dev/inquest/internal/format/mlflowfile"
	"github.com/inquest-dev/inquest/internal/repair"
)

const tracker = "mlflow"

// Tags that a repaired run gets. The first is what MLflow shows as the description of a
// run, in Markdown.
const (
	tagNote     = "mlflow.note.content"
	tagRepaired = "inquest.repaired"
	tagSegment  = "inquest.failed_segment"
	maxTag      = 5000 // bytes of a tag before MLflow 2.13, 8000 since
)

// ours reports whether the runs are MLflow's, from files of a file store or not.
func ours(runs []*evidence.TrackedRun, files bool) bool {
	return len(runs) > 0 && !slices.ContainsFunc(runs, func(r *evidence.TrackedRun) bool {
		return r.Tracker != tracker || inStore(r.Artifact) != files
	})
}

// inStore reports whether an artifact is a file of a file store.
func inStore(artifact string) bool {
	if path.Base(artifact) == "meta.yaml" {
		return true
	}
	_, _, ok := mlflowfile.InRun(artifact)
	return ok
}

// described is the description of a run with the note behind it.
func described(had, note string) string {
	if had == "" {
		return cut(note, maxTag)
	}
	const between = "\n\n---\n\n"
	return had + between + cut(note, max(maxTag-len(had)-len(between), 200))
}

// cut shortens a text to at most n bytes.
func cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	s = s[:n]
	for !utf8.ValidString(s) {
		s = s[:len(s)-1]
	}
	return s
}

// statusWord is a status as databases have it, and its number in file stores.
func statusWord(s evidence.RunStatus) (word, number string) {
	if s == evidence.RunKilled {
		return "KILLED", "5"
	}
	return "FAILED", "4"
}

// millis is a time in seconds in milliseconds.
func millis(wall float64) int64 { return int64(math.Round(wall * 1000)) }

// stepOf is the step of a mark; MLflow's steps are never missing.
func stepOf(m repair.Mark) int64 { return max(m.Step, 0) }

// wallOf is the time of a mark in milliseconds.
func wallOf(run *repair.Run, m repair.Mark) int64 {
	if m.Wall > 0 {
		return millis(m.Wall)
	}
	return millis(run.Newest)
}

var errGone = errors.New("is no longer there")

// isArtifact reports whether a file lies in a folder of artifacts, which are not copied.
func isArtifact(name string) bool {
	return strings.Contains("/"+name, "/artifacts/")
}
