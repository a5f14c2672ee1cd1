// Package wandb reads what Weights & Biases leaves of a run on disk, whether it ran
// offline or online:
//
//	wandb/[offline-]run-<local time>-<id>/
//	  run-<id>.wandb        record log (format/leveldblog, format/wandblog): everything that was logged
//	  files/                config.yaml, wandb-metadata.json, wandb-summary.json, output.log, ...
//	  logs/                 debug.log, debug-internal.log, debug-core.log
//
// and, by versions before 0.10, in the run's own folder
//
//	wandb-history.jsonl   one row of metrics a line
//	wandb-events.jsonl    the same of the machine
//	config.yaml, wandb-metadata.json, wandb-summary.json, output.log
//
// The log is the run, and what lies beside it completes it. Where it is missing, each of the other
// files gives what it has under the id that the folder's name states.
//
// Sources: wandb 0.31 (core/internal, sdk/wandb_run.py), 0.16 (sdk/internal), 0.9 (run_manager.py);
// their messages in format/wandblog.
package wandb

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"

	"github.com/inquest-dev/inquest/internal/evidence"
	"github.com/inquest-dev/inquest/internal/format/textline"
	"github.com/inquest-dev/inquest/internal/format/wandblog"
	"github.com/inquest-dev/inquest/internal/reader"
)

const (
	tracker  = "wandb"
	maxText  = 1000 // bytes of a text that is quoted or noted
	maxNotes = 16   // alerts noted
	maxIndex = 1 << 16
)

// New returns the reader. log is the reader of logs, which reads the console output that a
// run keeps.
func New(log reader.Reader) reader.Reader { return wandb{log} }

type wandb struct{ log reader.Reader }

func (wandb) Name() string { return tracker }

// isRun reports whether a folder is called as W&B calls those of runs.
func isRun(name string) bool {
	_, id := wandblog.ParseFolder(name)
	return id != ""
}

// What lies beside the log of a run, by the folder that it lies in.
var (
	inFiles = []string{"config.yaml", "wandb-metadata.json", "wandb-summary.json", "output.log"}
	inLogs  = []string{"debug-internal.log", "debug.log", "debug-core.log"}
)

// Sniff claims logs by their header or name, and by their names the files that only W&B writes.
// A configuration is W&B's where it lies in a run's folder or states what W&B adds.
func (wandb) Sniff(a evidence.Artifact, head []byte) reader.Confidence {
	at := reader.PlaceOf(a.Path)
	switch base := path.Base(at); {
	case bytes.HasPrefix(head, []byte(wandblog.Ident)):
		return reader.Sure
	case strings.HasSuffix(base, ".wandb") && isRun(path.Base(path.Dir(at))):
		return reader.Sure
	case strings.HasSuffix(base, ".wandb"):
		return reader.Likely
	case base == "wandb-history.jsonl" || base == "wandb-events.jsonl" || base == "wandb-metadata.json" || base == "wandb-summary.json":
		return reader.Sure
	case isOutput(at) || isDebug(at) || isCopied(at):
		return reader.Sure
	case base == "config.yaml" && (ofRun(at) || bytes.Contains(head, []byte("\n_wandb:")) || bytes.HasPrefix(head, []byte("wandb_version:")) || bytes.HasPrefix(head, []byte("_wandb:"))):
		return reader.Sure
	}
	return reader.No
}

// ofRun reports whether a file lies in the folder of a run, or in files/ of one.
func ofRun(at string) bool {
	dir := path.Dir(at)
	if path.Base(dir) == "files" {
		dir = path.Dir(dir)
	}
	return isRun(path.Base(dir))
}

// isOutput recognises the files in which a run keeps its console output.
func isOutput(at string) bool {
	base, dir := path.Base(at), path.Dir(at)
	switch {
	case !strings.HasSuffix(base, ".log"):
		return false
	case path.Base(dir) == "logs" && path.Base(path.Dir(dir)) == "files": // in parts
		return isRun(path.Base(path.Dir(path.Dir(dir))))
	}
	return (base == "output.log" || strings.HasPrefix(base, "output_")) && ofRun(at)
}

// isDebug recognises what W&B notes of its own work.
func isDebug(at string) bool {
	dir := path.Dir(at)
	return slices.Contains(inLogs, path.Base(at)) && path.Base(dir) == "logs" && isRun(path.Base(path.Dir(dir)))
}

// isCopied recognises the rows that lie beside the log of a repaired copy, which the log has
// too.
func isCopied(at string) bool {
	return path.Base(at) == "history.jsonl" && isRun(path.Base(path.Dir(at)))
}

// Anchor implements reader.Gatherer.
func (wandb) Anchor(at string) (dir, pattern string, ok bool) {
	base, parent := path.Base(at), path.Dir(at)
	known := func(list []string) bool { return slices.Contains(list, base) }
	switch up := path.Dir(parent); {
	case path.Base(parent) == "files" && (known(inFiles) || strings.HasPrefix(base, "output_") && strings.HasSuffix(base, ".log")):
		return up, "*.wandb", true
	case path.Base(parent) == "logs" && path.Base(up) == "files" && strings.HasSuffix(base, ".log"): // console in parts
		return path.Dir(up), "*.wandb", true
	case path.Base(parent) == "logs" && known(inLogs):
		return up, "*.wandb", true
	case isCopied(at):
		return parent, "*.wandb", true
	case base == "wandb-events.jsonl" || isRun(path.Base(parent)) && known(inFiles):
		return parent, "wandb-history.jsonl", true
	}
	return "", "", false
}

// Read implements reader.Reader.
func (w wandb) Read(ctx context.Context, in reader.Input, s reader.Sink) error {
	r := newReading(ctx, w.log, in, s)
	at := reader.PlaceOf(in.Artifact.Path)
	if isOutput(at) {
		if err := w.log.Read(ctx, in, s); err != nil {
			return err
		}
		r.noLog()
		r.close()
		return nil
	}
	rc, err := in.Open()
	if err != nil {
		return fmt.Errorf("open W&B file: %w", err)
	}
	defer rc.Close()
	src := bufio.NewReaderSize(reader.Stopping(ctx, rc), 64<<10)
	head, err := src.Peek(len(wandblog.Ident))
	if err != nil && err != io.EOF {
		return err
	}
	base := path.Base(at)
	switch {
	case bytes.HasPrefix(head, []byte(wandblog.Ident)) || strings.HasSuffix(base, ".wandb"):
		err = r.readLog(src, len(head))
	case strings.HasSuffix(base, ".jsonl"):
		err = r.readLines(src)
	case strings.HasSuffix(base, ".yaml"):
		err = r.readAlone(src, r.config)
	case base == "wandb-metadata.json":
		err = r.readAlone(src, r.metadata)
	case base == "wandb-summary.json":
		err = r.readAlone(src, r.summary)
	case isDebug(at):
		if err = r.refusals(src); err == nil {
			r.noLog()
		}
	default:
		if _, err = io.Copy(io.Discard, src); err == nil {
			s.Damage(r.span(0, 0, 0), fmt.Errorf("nothing that W&B writes: the header of a record log is missing"))
		}
		return err
	}
	if err != nil {
		return err
	}
	r.close()
	return nil
}

// A reading is one reading of an artifact.
type reading struct {
	ctx  context.Context
	log  reader.Reader
	in   reader.Input
	s    reader.Sink
	rec  *reader.Recording
	rows *wandblog.Rows

	tracks   []*reader.Track // by Key.Index less 1
	console  console
	settings settings

	records int64 // that were read
	num     int64 // number that the last one states
	history int64 // records of history
	pending *evidence.RunDamage
	named   bool // the run record was met
	onHost  string
	labels  []string // of the writers that measured the machine, where several write a run
	exit    bool
	alerts  int
	order   []string      // what run.define_metric said of steps
	counted map[int]int64 // records by what they hold
	gpu     bool          // GPU memory was sampled
	sampled float64       // time of the last sample
	every   float64       // largest distance of two samples
	newest  float64
}

func newReading(ctx context.Context, log reader.Reader, in reader.Input, s reader.Sink) *reading {
	r := &reading{ctx: ctx, log: log, in: in, s: s, rows: wandblog.NewRows(), counted: map[int]int64{}}
	r.rec = reader.NewRecording(s, tracker, in.Artifact.Path)
	at := reader.PlaceOf(in.Artifact.Path)
	dir := path.Dir(at)
	r.rec.Run.Folder = reader.FolderOf(in.Artifact.Path)
	for range 2 {
		if base := path.Base(dir); base != "files" && base != "logs" {
			break
		}
		dir, r.rec.Run.Folder = path.Dir(dir), reader.FolderOf(r.rec.Run.Folder)
	}
	if _, id := wandblog.ParseFolder(path.Base(dir)); id != "" {
		r.rec.Run.ID = clean(id)
	} else if id, ok := strings.CutPrefix(strings.TrimSuffix(path.Base(at), ".wandb"), "run-"); ok && strings.HasSuffix(at, ".wandb") {
		r.rec.Run.ID = clean(id)
	}
	return r
}

// clean is a short text of the artifact for people.
func clean(s string) string { return textline.OneLine(s, maxText) }

func (r *reading) span(record, offset, length int64) evidence.Span {
	return evidence.Span{Artifact: r.in.Artifact.Path, Kind: "record", Record: record, Offset: offset, Length: length}
}

func (r *reading) note(format string, a ...any) {
	r.rec.Run.Notes = append(r.rec.Run.Notes, fmt.Sprintf(format, a...))
}

func (r *reading) cannot(format string, a ...any) {
	r.rec.Run.Cannot = append(r.rec.Run.Cannot, fmt.Sprintf(format, a...))
}

// close states the configuration and hands the run over.
func (r *reading) close() {
	r.settings.state(r.rec)
	if st := reader.StampAt(r.newest); st.Known() {
		r.rec.Run.Newest = st
	}
	r.rec.Close()
}

// add adds the values of a row, in their order.
func (r *reading) add(row *wandblog.Row, at reader.Place) {
	for i := range row.Values {
		v := &row.Values[i]
		var t *reader.Track
		if v.Index > 0 {
			t = r.tracks[v.Index-1]
		} else if v.Index == 0 {
			t = r.track(v)
		}
		if t != nil {
			t.Add(v.Step, row.Wall, v.V, at)
		}
	}
	if row.Wall > r.newest {
		r.newest = row.Wall
	}
}

// track is the series of a key that has no index yet; nil where there are too many.
func (r *reading) track(v *wandblog.Value) *reader.Track {
	if i := strings.LastIndex(v.Name, "/l:"); i >= 0 && v.System && len(r.labels) < maxIndex {
		r.labels = append(r.labels, v.Name[i+len("/l:"):])
	}
	t := r.rec.Track(v.Name, v.System, v.V)
	switch {
	case t == nil:
		v.Index = -1
	case len(r.tracks) < maxIndex:
		r.tracks = append(r.tracks, t)
		v.Index = len(r.tracks)
	}
	return t
}
