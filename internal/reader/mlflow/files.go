package mlflow

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strconv"
	"strings"

	"github.com/inquest-dev/inquest/internal/evidence"
	"github.com/inquest-dev/inquest/internal/format/mlflowfile"
	"github.com/inquest-dev/inquest/internal/format/plainyaml"
	"github.com/inquest-dev/inquest/internal/format/textline"
	"github.com/inquest-dev/inquest/internal/reader"
)

// A run of a file store is a folder EXPERIMENT/RUN:
//
//	meta.yaml     run_id, run_name, status (1 running ... 5 killed), start_time, end_time, ...
//	metrics/KEY   package mlflowfile
//	params/KEY    the value
//	tags/KEY      the value

// Bounds of the files of a run.
const (
	maxMeta  = 1 << 20
	maxParam = 64 << 10
	maxTorn  = 16 // damaged lines of a file that are named one by one
)

// fileStatus are the numbers of statuses (mlflow/protos/service.proto, RunStatus).
var fileStatus = map[string]string{"1": "RUNNING", "2": "SCHEDULED", "3": "FINISHED", "4": "FAILED", "5": "KILLED"}

// readRun reads a run by its description.
func readRun(ctx context.Context, in reader.Input, s reader.Sink) error {
	rc, err := in.Open()
	if err != nil {
		return err
	}
	text := reader.Stopping(ctx, rc)
	data, err := io.ReadAll(io.LimitReader(text, maxMeta+1))
	if err == nil { // what follows is only counted
		_, err = io.Copy(io.Discard, text)
	}
	if err = errors.Join(err, rc.Close()); err != nil {
		return err
	}
	rec := reader.NewRecording(s, Tracker, in.Artifact.Path)
	run := &rec.Run
	run.Folder = path.Dir(slash(in.Artifact.Path))
	run.StatusSpan = evidence.Span{Artifact: in.Artifact.Path, Kind: "record"}
	run.Cannot = append(run.Cannot, "Console output is not kept.")
	if len(data) > maxMeta {
		data = data[:maxMeta]
		rec.Damage(evidence.RunDamage{Kind: evidence.OverBound, Span: evidence.Span{Artifact: in.Artifact.Path, Kind: "text", Offset: maxMeta}, Text: "the description of the run is longer than 1 MiB"})
	}
	describe(run, data)
	if run.ID == "" {
		if base := path.Base(run.Folder); mlflowfile.RunFolder.MatchString(base) {
			run.ID = base
		}
		rec.Damage(evidence.RunDamage{Kind: evidence.TruncatedTail, Span: evidence.Span{Artifact: in.Artifact.Path, Kind: "text", Offset: int64(len(data))}, Text: "the description of the run names no run"})
	}
	if in.Dir != nil {
		if err := readFolder(ctx, in.Dir, rec); err != nil {
			return err
		}
	}
	rec.Close()
	return nil
}

// describe reads the description of a run.
func describe(run *evidence.TrackedRun, data []byte) {
	items, _ := plainyaml.Parse(data)
	get := func(key string) string {
		if it := plainyaml.Get(items, key); it != nil && it.Value != "null" {
			return textline.OneLine(it.Value, maxNote)
		}
		return ""
	}
	millis := func(key string) evidence.Stamp {
		ms, err := strconv.ParseInt(get(key), 10, 64)
		if err != nil {
			return evidence.Stamp{}
		}
		return reader.StampAt(wall(ms))
	}
	run.ID = get("run_id")
	if run.ID == "" {
		run.ID = get("run_uuid")
	}
	run.Name, run.Project = get("run_name"), get("experiment_id")
	run.Started, run.Ended = millis("start_time"), millis("end_time")
	if get("lifecycle_stage") == "deleted" {
		note(run, "deleted in MLflow, and still in the store")
	}
	it := plainyaml.Get(items, "status")
	if it == nil {
		return
	}
	run.StatusSaid = get("status")
	if word := fileStatus[run.StatusSaid]; word != "" {
		run.StatusSaid = word
	}
	run.Status = statusOf(run.StatusSaid)
	quote := bytes.TrimRight(data[it.Offset:min(it.Offset+it.Length, len(data))], "\r\n")
	if len(quote) <= maxNote {
		run.StatusSpan = evidence.Span{Artifact: run.Artifact, Kind: "text", Line: int64(it.Line), Offset: int64(it.Offset), Length: int64(len(quote)), Quote: string(quote)}
	}
}

// readFolder reads the files of a run.
func readFolder(ctx context.Context, dir fs.FS, rec *reader.Recording) error {
	return fs.WalkDir(dir, ".", func(name string, d fs.DirEntry, err error) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err != nil || d.IsDir() {
			return nil
		}
		group, key, _ := strings.Cut(name, "/")
		switch group {
		case "metrics":
			f, err := dir.Open(name)
			if err != nil {
				rec.Damage(evidence.RunDamage{Kind: evidence.BadRecord, Span: evidence.Span{Artifact: rec.Run.Artifact, Kind: "record", Pointer: name}, Text: "cannot be opened: " + err.Error()})
				return nil
			}
			rec.File = name
			err = points(ctx, f, rec, key)
			return errors.Join(err, f.Close())
		case "params", "tags":
			value, err := small(dir, name)
			switch {
			case err != nil:
				rec.Damage(evidence.RunDamage{Kind: evidence.BadRecord, Span: evidence.Span{Artifact: rec.Run.Artifact, Kind: "record", Pointer: name}, Text: "cannot be read: " + err.Error()})
			case group == "tags":
				tag(&rec.Run, key, value)
			default:
				value = textline.OneLine(value, maxSetting)
				rec.Setting(textline.OneLine(key, maxNote), value, evidence.Span{Artifact: rec.Run.Artifact, Kind: "record", Pointer: name, Quote: textline.OneLine(value, maxNote)})
			}
		}
		return nil
	})
}

// small reads the value of a param or tag.
func small(dir fs.FS, name string) (string, error) {
	f, err := dir.Open(name)
	if err != nil {
		return "", err
	}
	b, err := io.ReadAll(io.LimitReader(f, maxParam))
	return strings.TrimRight(strings.ToValidUTF8(string(b), "\ufffd"), "\r\n"), errors.Join(err, f.Close())
}

// readMetric reads a metric file whose run has no description.
func readMetric(ctx context.Context, in reader.Input, s reader.Sink, key string) error {
	rec := reader.NewRecording(s, Tracker, in.Artifact.Path)
	dir, _, _ := mlflowfile.InRun(slash(in.Artifact.Path))
	rec.Run.Folder = dir
	if base := path.Base(dir); mlflowfile.RunFolder.MatchString(base) {
		rec.Run.ID = base
	}
	rec.Run.StatusSpan = evidence.Span{Artifact: in.Artifact.Path, Kind: "record"}
	note(&rec.Run, "the description of the run, meta.yaml, is not there: its name, status and settings are unknown")
	key, ok := strings.CutPrefix(key, "metrics/")
	if !ok {
		return errors.New("is a param or tag of an MLflow run whose meta.yaml is not there")
	}
	rc, err := in.Open()
	if err != nil {
		return err
	}
	err = points(ctx, reader.Stopping(ctx, rc), rec, key)
	if err = errors.Join(err, rc.Close()); err != nil {
		return err
	}
	rec.Close()
	return nil
}

// points reads the lines of a metric file into a track.
func points(ctx context.Context, f io.Reader, rec *reader.Recording, key string) error {
	in := mlflowfile.NewReader(f)
	var t *reader.Track
	torn := int64(0)
	for {
		l, err := in.Next()
		if err == io.EOF {
			break
		}
		if l != nil && l.Number&1023 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			rec.Damage(evidence.RunDamage{Kind: evidence.TruncatedTail, Span: evidence.Span{Artifact: rec.Run.Artifact, Kind: "record", Pointer: rec.File}, Text: "metric " + textline.OneLine(key, maxNote) + ": " + err.Error()})
			break
		}
		if l.Err != nil {
			if len(bytes.TrimSpace(l.Raw)) == 0 {
				continue
			}
			if torn++; torn <= maxTorn {
				rec.Damage(broken(rec, key, l))
			}
			continue
		}
		if t == nil {
			if t = rec.Track(mlflowfile.Key(key), system(key), l.Value); t == nil {
				return nil
			}
		}
		t.Add(l.Step, wall(l.Millis), l.Value, reader.Place{Line: l.Number, Offset: l.Offset, Length: int32(l.Length)})
	}
	if n := torn - maxTorn; n > 0 {
		rec.Damage(evidence.RunDamage{Kind: evidence.BadLine, Records: n, Span: evidence.Span{Artifact: rec.Run.Artifact, Kind: "record", Pointer: rec.File}, Text: fmt.Sprintf("metric %s: %d more lines that are no values", textline.OneLine(key, maxNote), n)})
	}
	return nil
}

// broken says what is wrong with a line.
func broken(rec *reader.Recording, key string, l *mlflowfile.Line) evidence.RunDamage {
	d := evidence.RunDamage{Kind: evidence.BadLine, Bytes: l.Length, Records: 1, Text: fmt.Sprintf("line %d of metric %s %v: %q", l.Number, textline.OneLine(key, maxNote), l.Err, textline.OneLine(string(l.Raw), 80)),
		Span: evidence.Span{Artifact: rec.Run.Artifact, Kind: "record", Record: l.Number, Pointer: rec.File}}
	switch {
	case errors.Is(l.Err, mlflowfile.ErrTorn):
		d.Kind = evidence.TruncatedTail
	case errors.Is(l.Err, mlflowfile.ErrZeros):
		d.Kind = evidence.ZeroFill
	}
	if rec.File == "" {
		d.Span.Offset, d.Span.Length = l.Offset, l.Length
	}
	return d
}
