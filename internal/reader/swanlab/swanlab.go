// Package swanlab reads what SwanLab leaves on disk.
//
// Since version 0.7 of the SDK a run is a folder run-<local time>-<id>[-<host>-<pid>] with one log
//
//	run-<id>.swanlab   record log (format/leveldblog) of version 2, payloads are protocol buffers
//	files/             config.yaml, swanlab-metadata.json, requirements.txt, conda.yaml
//
// From 0.6 on it held backup.swanlab, the same log of version 1, whose payloads are JSON; the local dashboard
// kept, before and beside that, a SQLite database and a file of JSON lines for each 1000 points:
//
//	runs.swanlab                   tables project, experiment, tag, chart, ...
//	<run>/logs/<key, percent-encoded>/<n>000.log   {"index": step, "data": value, "create_time": UTC}
//
// Sources: swanlab 0.10.3 (sdk/internal/core_python/store, proto/swanlab/*/v1), 0.6.8 (data/porter, proto/v0.py,
// data/run/key.py), 0.2.3 (db/models/experiments.py, data/run/exp.py). What version 2 drops when a
// step is logged twice is said in core_python/core.py (try_accept_step).
package swanlab

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"path"
	"strings"
	"time"

	"github.com/inquest-dev/inquest/internal/evidence"
	"github.com/inquest-dev/inquest/internal/format/plainyaml"
	"github.com/inquest-dev/inquest/internal/format/sqlitefile"
	"github.com/inquest-dev/inquest/internal/format/swanrecord"
	"github.com/inquest-dev/inquest/internal/reader"
)

const (
	ident     = swanrecord.Ident
	tracker   = "swanlab"
	storeName = "runs.swanlab" // the dashboard's database
	maxConfig = 256 << 10      // bytes of config.yaml

	// systemPrefix begins the keys of measurements of the machine, which users cannot take
	// (pkg/helper/metric.py).
	systemPrefix = "__swanlab__."
)

// New returns the reader. log is the reader of logs, which reads the console output that a
// record log holds.
func New(log reader.Reader) reader.Reader { return swan{log} }

type swan struct{ log reader.Reader }

func (swan) Name() string { return tracker }

// Sniff implements reader.Reader. Of what is no record log it claims the database of the
// dashboard by its name, and configurations and points by name and form.
func (swan) Sniff(a evidence.Artifact, head []byte) reader.Confidence {
	at := reader.PlaceOf(a.Path)
	switch {
	case bytes.HasPrefix(head, []byte(ident)):
		return reader.Sure
	case isConfig(at, head) || isPoints(at, head):
		return reader.Sure
	case bytes.HasPrefix(head, []byte(sqlitefile.Magic)) && path.Base(at) == storeName:
		return reader.Sure
	}
	return reader.No
}

// isConfig recognises files/config.yaml: every key has desc, sort and value.
func isConfig(at string, head []byte) bool {
	return path.Base(at) == "config.yaml" && path.Base(path.Dir(at)) == "files" &&
		bytes.Contains(head, []byte("\n  desc:")) && bytes.Contains(head, []byte("\n  sort:")) && bytes.Contains(head, []byte("\n  value:"))
}

// isPoints recognises logs/<key>/<n>000.log.
func isPoints(at string, head []byte) bool {
	number, ok := strings.CutSuffix(path.Base(at), ".log")
	return ok && number != "" && strings.Trim(number, "0123456789") == "" && path.Base(path.Dir(path.Dir(at))) == "logs" &&
		bytes.HasPrefix(head, []byte(`{"index":`)) && bytes.Contains(head, []byte(`"create_time":`))
}

// Anchor implements reader.Gatherer: the configuration, and the dashboard's points where the
// run has a record log that holds them too.
func (swan) Anchor(at string) (dir, pattern string, ok bool) {
	switch parent := path.Dir(at); {
	case strings.HasPrefix(path.Base(at), storeName+"-"):
		if of, ok := sqlitefile.Companion(at); ok {
			return path.Dir(of), storeName, true
		}
	case path.Base(at) == "config.yaml" && path.Base(parent) == "files":
		return path.Dir(parent), "*.swanlab", true
	case strings.HasSuffix(at, ".log") && path.Base(path.Dir(parent)) == "logs":
		return path.Dir(path.Dir(parent)), "backup.swanlab", true
	}
	return "", "", false
}

// Read implements reader.Reader.
func (r swan) Read(ctx context.Context, in reader.Input, s reader.Sink) error {
	rc, err := in.Open()
	if err != nil {
		return fmt.Errorf("open SwanLab file: %w", err)
	}
	defer rc.Close()
	src := bufio.NewReaderSize(reader.Stopping(ctx, rc), 64<<10)
	head, err := src.Peek(4 << 10)
	if err != nil && err != io.EOF && len(head) == 0 {
		return err
	}
	at := reader.PlaceOf(in.Artifact.Path)
	switch {
	case len(head) == 0:
		return nil
	case bytes.HasPrefix(head, []byte(sqlitefile.Magic)):
		return r.readStore(ctx, in, s)
	case len(head) > len(ident) && bytes.HasPrefix(head, []byte(ident)):
		return r.readLog(ctx, in, src, s)
	case isConfig(at, head):
		return readConfig(in, src, s)
	case isPoints(at, head):
		return readPoints(ctx, in, src, s)
	}
	if strings.HasPrefix(ident, string(head)) {
		s.Damage(evidence.Span{Artifact: in.Artifact.Path, Kind: "record"}, fmt.Errorf("%s: the file ends within its header", evidence.TruncatedTail))
		return nil
	}
	if _, err := io.Copy(io.Discard, src); err != nil {
		return err
	}
	s.Damage(evidence.Span{Artifact: in.Artifact.Path, Kind: "record"}, fmt.Errorf("nothing that SwanLab writes: the header of a record log is missing"))
	return nil
}

// folderID is the run id of the dashboard: the name of the run's folder, "" where that is
// none of SwanLab's making.
func folderID(folder string) string {
	if name := reader.BaseOf(folder); strings.HasPrefix(name, "run-") {
		return name
	}
	return ""
}

// settings reads files/config.yaml beside a run's log.
func settings(dir fs.FS, folder string, rec *reader.Recording) {
	if dir == nil {
		return
	}
	f, err := dir.Open("files/config.yaml")
	if err != nil {
		return
	}
	defer f.Close()
	if err := config(f, folder+"/files/config.yaml", rec); err != nil {
		rec.Damage(evidence.RunDamage{Kind: evidence.BadLine, Span: evidence.Span{Artifact: folder + "/files/config.yaml", Kind: "pointer"}, Text: err.Error()})
	}
}

// config states the keys of a configuration: each has desc, sort and value, and of those the
// value counts.
func config(src io.Reader, artifact string, rec *reader.Recording) error {
	data, err := io.ReadAll(io.LimitReader(src, maxConfig+1))
	if err != nil {
		return err
	}
	if len(data) > maxConfig {
		rec.Damage(evidence.RunDamage{Kind: evidence.OverBound, Span: evidence.Span{Artifact: artifact, Kind: "pointer", Offset: maxConfig}, Text: "configuration beyond 256 KiB is not read"})
		data = data[:maxConfig]
	}
	items, passed := plainyaml.Parse(data)
	for _, i := range items {
		if len(i.Path) < 2 || i.Path[1] != "value" {
			continue
		}
		name := strings.Join(append([]string{i.Path[0]}, i.Path[2:]...), ".")
		rec.Setting(name, i.Value, evidence.Span{Artifact: artifact, Kind: "pointer", Pointer: i.Name(), Line: int64(i.Line), Offset: int64(i.Offset), Length: int64(i.Length),
			Quote: string(data[i.Offset : i.Offset+i.Length])})
	}
	if passed > 0 {
		rec.Damage(evidence.RunDamage{Kind: evidence.BadLine, Span: evidence.Span{Artifact: artifact, Kind: "pointer"}, Records: int64(passed), Text: fmt.Sprintf("%d lines of the configuration are not understood", passed)})
	}
	return nil
}

// readConfig reads a configuration whose run has no log.
func readConfig(in reader.Input, src io.Reader, s reader.Sink) error {
	rec := reader.NewRecording(s, tracker, in.Artifact.Path)
	rec.Run.Folder = reader.FolderOf(reader.FolderOf(in.Artifact.Path))
	rec.Run.ID = folderID(rec.Run.Folder)
	if err := config(src, in.Artifact.Path, rec); err != nil {
		return err
	}
	rec.Close()
	return nil
}

// stamp reads a time as SwanLab writes it: ISO 8601 in UTC, with or without its offset.
func stamp(text string) (wall float64) {
	for _, layout := range []string{"2006-01-02T15:04:05.999999999Z07:00", "2006-01-02T15:04:05.999999999"} {
		if t, err := time.Parse(layout, text); err == nil {
			return float64(t.Unix()) + float64(t.Nanosecond())/1e9
		}
	}
	return 0
}

// keyOf is the key of a file of points.
func keyOf(artifact string) string {
	name := path.Base(path.Dir(reader.PlaceOf(artifact)))
	if key, err := url.PathUnescape(name); err == nil {
		return key
	}
	return name
}
