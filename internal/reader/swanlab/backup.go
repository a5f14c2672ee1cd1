package swanlab

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"github.com/inquest-dev/inquest/internal/evidence"
	"github.com/inquest-dev/inquest/internal/format/jsonline"
	"github.com/inquest-dev/inquest/internal/format/jsontree"
	"github.com/inquest-dev/inquest/internal/format/textline"
	"github.com/inquest-dev/inquest/internal/reader"
)

var errForm = errors.New("a record of another form")

// backup reads a record of version 1, a line {"model_type": type, "data": {...}}:
//
//	Header      create_time
//	Project     name, workspace
//	Experiment  id (from 0.6.8 on), name, description, tags
//	Column      key, cls: CUSTOM or SYSTEM, ...
//	Scalar      key, step, metric: {index: step, data: number, "NaN" or "INF", create_time}
//	Log         message (a line), level: INFO, WARN or ERROR, create_time
//	Footer      success, create_time
func (l *logFile) backup(data []byte, at reader.Place) error {
	n, _, err := jsontree.Parse(data, 0, nil)
	if err != nil {
		return err
	}
	run, d := &l.rec.Run, n.Get("data")
	if d == nil {
		return errForm
	}
	str := func(names ...string) string { return textline.OneLine(d.Str(names...), maxText) }
	switch n.Str("model_type") {
	case "Header":
		run.Started = reader.StampAt(stamp(d.Str("create_time")))
	case "Project":
		run.Project = str("name")
		l.note("workspace", d.Str("workspace"))
	case "Experiment":
		run.ID, run.Name = str("id"), str("name")
		l.note("experiment", run.ID)
		l.note("description", d.Str("description"))
		var tags []string
		for _, t := range d.List("tags") {
			tags = append(tags, t.Text)
		}
		l.note("tags", strings.Join(tags, ", "))
	case "Column":
		if d.Str("cls") == "SYSTEM" && len(l.system) < maxColumns {
			l.system[str("key")] = true
		}
	case "Scalar":
		v, err := number(d.Get("metric", "data"))
		if err != nil {
			return err
		}
		step, err := strconv.ParseInt(d.Str("step"), 10, 64)
		if err != nil {
			return errForm
		}
		l.add(str("key"), step, stamp(d.Str("metric", "create_time")), v, at)
	case "Media":
		l.media++
	case "Log":
		l.console.Add([]byte(d.Str("message")+"\n"), at, stamp(d.Str("create_time")))
	case "Footer":
		l.ended = true
		run.Ended = reader.StampAt(stamp(d.Str("create_time")))
		run.Status, run.StatusSaid = evidence.RunCrashed, "success: "+str("success")
		if d.Str("success") == "true" {
			run.Status = evidence.RunFinished
		}
		run.StatusSpan = l.span(at, textline.OneLine(string(data[:min(len(data), maxText)]), maxText))
	}
	return nil
}

// number is the value of a point.
func number(n *jsontree.Node) (float64, error) {
	if n == nil {
		return 0, errForm
	}
	switch n.Text {
	case "NaN":
		return math.NaN(), nil
	case "INF", "Infinity":
		return math.Inf(1), nil
	case "-Infinity":
		return math.Inf(-1), nil
	}
	v, err := strconv.ParseFloat(n.Text, 64)
	if err != nil && !errors.Is(err, strconv.ErrRange) || n.Sort != jsontree.Number {
		return 0, errForm
	}
	return v, nil
}

// readPoints reads a file of points of the dashboard, of a run that has no record log.
func readPoints(ctx context.Context, in reader.Input, src io.Reader, s reader.Sink) error {
	rec := reader.NewRecording(s, tracker, in.Artifact.Path)
	rec.Run.Folder = reader.FolderOf(reader.FolderOf(reader.FolderOf(in.Artifact.Path)))
	rec.Run.ID = folderID(rec.Run.Folder)
	rec.Run.Cannot = []string{"What was logged at a step that a series had already: the SDK drops it."}
	key := keyOf(in.Artifact.Path)
	err := jsonline.Each(ctx, src, maxPoint, func(l jsonline.Line) error {
		err := point(rec, key, bytes.TrimSpace(l.Text), reader.Place{Line: l.N, Offset: l.Offset, Length: int32(min(l.Size, math.MaxInt32))}, l.Long)
		if err == nil {
			return nil
		}
		kind := evidence.BadLine
		if !l.Ended {
			kind = evidence.TruncatedTail
		}
		rec.Damage(evidence.RunDamage{Kind: kind, Span: evidence.Span{Artifact: in.Artifact.Path, Kind: "record", Record: l.N, Offset: l.Offset, Length: l.Size}, Text: err.Error(), Bytes: l.Size, Records: 1})
		return nil
	})
	if err != nil {
		return err
	}
	rec.Close()
	return nil
}

// maxPoint bounds the bytes of a point, which may be a text or a list of files.
const maxPoint = 64 << 10

// point reads one line of a file of points.
func point(rec *reader.Recording, key string, line []byte, at reader.Place, long bool) error {
	if long {
		return fmt.Errorf("a line of more than 64 KiB")
	}
	d, _, err := jsontree.Parse(line, 0, nil)
	if err != nil {
		return err
	}
	v, err := number(d.Get("data"))
	if err != nil {
		if x := d.Get("data"); x != nil && x.Sort != jsontree.Null { // the file name of an image, a text
			return nil
		}
		return err
	}
	step, err := strconv.ParseInt(d.Str("index"), 10, 64)
	if err != nil {
		return errForm
	}
	if t := rec.Track(key, strings.HasPrefix(key, systemPrefix), v); t != nil {
		t.Add(step, stamp(d.Str("create_time")), v, at)
	}
	return nil
}
