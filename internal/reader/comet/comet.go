// Package comet reads the archives of Comet's offline experiments, .cometml-runs/<id>.zip, by their members, and the
// same members unpacked:
//
//	messages.json    a line for each message: {"type": type, "payload": {...}}
//	                 metric_msg       metric {metricName, metricValue, step, epoch}, local_timestamp ms
//	                 parameter_msg    param {paramName, paramValue, source, step}
//	                 standard_output  output: a piece of what was printed, stderr, local_timestamp
//	                 log_other        key, value; the key Name is the experiment's name
//	                 system_details   hostname, pid, ...
//	                 ws_msg           up to 3.31 in place of the others: the sections metric, param, stdout, log_other {key, val}
//	experiment.json  offline_id, project_name, workspace, start_time and stop_time ms, tags
//
// A value that is not finite is the text "NaN", "Infinity" or "-Infinity". The archive is made when the experiment ends
// by itself. Source: comet_ml 3.58.8, messages.py and offline.py.
package comet

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"path"
	"strconv"
	"strings"

	"github.com/inquest-dev/inquest/internal/evidence"
	"github.com/inquest-dev/inquest/internal/format/jsonline"
	"github.com/inquest-dev/inquest/internal/format/jsontree"
	"github.com/inquest-dev/inquest/internal/format/textline"
	"github.com/inquest-dev/inquest/internal/reader"
)

const (
	tracker    = "comet"
	messages   = "messages.json"
	experiment = "experiment.json"

	maxLine       = 64 << 20
	maxExperiment = 16 << 20
	maxText       = 512
	maxOthers     = 64
)

// New returns the reader. log is the reader of logs, which reads the console output.
func New(log reader.Reader) reader.Reader { return archive{log} }

type archive struct{ log reader.Reader }

func (archive) Name() string { return tracker }

// Sniff implements reader.Reader.
func (archive) Sniff(a evidence.Artifact, head []byte) reader.Confidence {
	has := func(words ...string) bool {
		for _, w := range words {
			if !bytes.Contains(head, []byte(w)) {
				return false
			}
		}
		return true
	}
	text := bytes.TrimLeft(bytes.TrimPrefix(head, []byte("\ufeff")), " \t\r\n")
	if !bytes.HasPrefix(text, []byte("{")) {
		return reader.No
	}
	switch reader.BaseOf(a.Path) {
	case messages:
		if has(`"payload"`) && (has(`"type"`) || len(head) >= 4<<10) {
			return reader.Sure
		}
	case experiment:
		if has(`"offline_id"`) {
			return reader.Sure
		}
	}
	return reader.No
}

// Anchor implements reader.Gatherer: the description belongs to the messages.
func (archive) Anchor(at string) (dir, pattern string, ok bool) {
	if path.Base(at) == experiment {
		return path.Dir(at), messages, true
	}
	return "", "", false
}

// Read implements reader.Reader.
func (r archive) Read(ctx context.Context, in reader.Input, s reader.Sink) error {
	rc, err := in.Open()
	if err != nil {
		return fmt.Errorf("open Comet file: %w", err)
	}
	defer rc.Close()
	src := reader.Stopping(ctx, rc)
	rec := reader.NewRecording(s, tracker, in.Artifact.Path)
	e := &offline{rec: rec}
	run := &rec.Run
	run.Folder = reader.FolderOf(in.Artifact.Path)
	run.Status = evidence.RunUnknown
	run.Cannot = []string{"How the run ended: Comet's offline archive has no status and no exit code, and after a kill there is none."}
	if reader.BaseOf(in.Artifact.Path) == experiment {
		if err := e.experiment(src, in.Artifact.Path); err != nil {
			return err
		}
		rec.Close()
		return nil
	}
	if err := e.beside(ctx, in.Dir); err != nil {
		return err
	}
	if err := e.messages(ctx, src); err != nil {
		return err
	}
	if err := e.console.Read(ctx, r.log, rec); err != nil {
		return err
	}
	rec.Close()
	return nil
}

// An offline is an experiment while it is read.
type offline struct {
	rec     *reader.Recording
	console reader.Console
	others  int
}

// beside reads the description where it is at hand.
func (e *offline) beside(ctx context.Context, dir fs.FS) error {
	if dir == nil {
		return nil
	}
	f, err := dir.Open(experiment)
	if err != nil {
		return nil
	}
	return errors.Join(e.experiment(reader.Stopping(ctx, f), strings.TrimSuffix(e.rec.Run.Artifact, messages)+experiment), f.Close())
}

// experiment reads experiment.json.
func (e *offline) experiment(src io.Reader, artifact string) error {
	data, err := io.ReadAll(io.LimitReader(src, maxExperiment))
	if err != nil {
		return err
	}
	n, _, err := jsontree.Parse(data, 0, nil)
	if err != nil && len(bytes.TrimSpace(data)) > 0 {
		e.rec.Damage(evidence.RunDamage{Kind: evidence.TruncatedTail, Span: evidence.Span{Artifact: artifact, Kind: "pointer", Offset: int64(len(data))}, Text: "the description of the experiment: " + err.Error()})
	}
	run := &e.rec.Run
	word := func(name string) string { return textline.OneLine(n.Str(name), maxText) }
	run.ID, run.Project = word("offline_id"), word("project_name")
	run.Started, run.Ended = reader.StampAt(millis(n.Str("start_time"))), reader.StampAt(millis(n.Str("stop_time")))
	if run.Ended.Known() {
		run.Notes = append(run.Notes, "packed when the experiment ended by itself")
	}
	var tags []string
	for _, t := range n.List("tags") {
		if len(tags) < maxOthers {
			tags = append(tags, t.Text)
		}
	}
	for _, x := range []struct{ name, text string }{{"workspace", word("workspace")}, {"tags", textline.OneLine(strings.Join(tags, ", "), maxText)}} {
		if x.text != "" {
			run.Notes = append(run.Notes, x.name+": "+x.text)
		}
	}
	return nil
}

// millis reads a time in milliseconds since 1970.
func millis(text string) float64 {
	v, err := strconv.ParseFloat(text, 64)
	if err != nil || !(v > 0 && v < 1e14) {
		return 0
	}
	return v / 1e3
}

// messages reads messages.json.
func (e *offline) messages(ctx context.Context, src io.Reader) error {
	return jsonline.Each(ctx, src, maxLine, func(l jsonline.Line) error {
		at := reader.Place{Line: l.N, Offset: l.Offset, Length: int32(min(l.Size, math.MaxInt32))}
		n, _, err := jsontree.Parse(l.Text, 0, nil)
		if err == nil && n.Get("payload") == nil {
			err = errors.New("no message")
		}
		switch {
		case l.Long:
			e.bad(evidence.OverBound, at, "a line of more than 64 MiB is not read")
		case err != nil && !l.Ended:
			e.bad(evidence.TruncatedTail, at, "the file ends within a message")
		case err != nil:
			e.bad(evidence.BadLine, at, err.Error())
		default:
			e.message(n.Str("type"), n.Get("payload"), at)
		}
		return nil
	})
}

func (e *offline) bad(kind evidence.DamageKind, at reader.Place, text string) {
	e.rec.Damage(evidence.RunDamage{Kind: kind, Span: e.span(at, ""), Text: text, Bytes: int64(at.Length), Records: 1})
}

func (e *offline) span(at reader.Place, quote string) evidence.Span {
	return evidence.Span{Artifact: e.rec.Run.Artifact, Kind: "record", Record: at.Line, Offset: at.Offset, Length: int64(at.Length), Quote: quote}
}

func (e *offline) message(kind string, p *jsontree.Node, at reader.Place) {
	wall := millis(p.Str("local_timestamp"))
	switch kind {
	case "metric_msg":
		e.metric(p.Get("metric"), wall, at)
	case "parameter_msg":
		e.param(p.Get("param"), at)
	case "standard_output":
		e.console.Add([]byte(p.Str("output")), at, wall)
	case "log_other":
		e.other(p.Str("key"), p.Str("value"))
	case "system_details":
		if h := p.Str("hostname"); h != "" {
			e.note("host", h)
		}
	case "ws_msg":
		e.metric(p.Get("metric"), wall, at)
		e.param(p.Get("param"), at)
		if out := p.Str("stdout"); out != "" {
			e.console.Add([]byte(out), at, wall)
		}
		if o := p.Get("log_other"); o != nil {
			e.other(o.Str("key"), o.Str("val"))
		}
	}
}

// metric adds a point.
func (e *offline) metric(m *jsontree.Node, wall float64, at reader.Place) {
	x := m.Get("metricValue")
	if x == nil {
		return
	}
	var v float64
	switch x.Text {
	case "NaN":
		v = math.NaN()
	case "Infinity":
		v = math.Inf(1)
	case "-Infinity":
		v = math.Inf(-1)
	default:
		var err error
		if v, err = strconv.ParseFloat(x.Text, 64); err != nil && !math.IsInf(v, 0) || x.Sort != jsontree.Number && x.Sort != jsontree.String {
			return // a text, which Comet keeps as a metric too
		}
	}
	step := int64(evidence.None)
	if i, err := strconv.ParseInt(m.Str("step"), 10, 64); err == nil {
		step = i
	}
	name := textline.OneLine(m.Str("metricName"), maxText)
	if t := e.rec.Track(name, strings.HasPrefix(name, "sys."), v); t != nil {
		t.Add(step, wall, v, at)
	}
}

// param states a parameter. What the client counts along, curr_step and curr_epoch, is none.
func (e *offline) param(p *jsontree.Node, at reader.Place) {
	name := textline.OneLine(p.Str("paramName"), maxText)
	if name == "" || p.Str("source") == "auto-logged" && strings.HasPrefix(name, "curr_") {
		return
	}
	value := p.Str("paramValue")
	e.rec.Setting(name, value, e.span(at, textline.OneLine(name+" = "+value, maxText)))
}

func (e *offline) other(key, value string) {
	if key == "Name" {
		e.rec.Run.Name = textline.OneLine(value, maxText)
		return
	}
	e.note(key, value)
}

func (e *offline) note(key, value string) {
	if e.others++; e.others <= maxOthers {
		e.rec.Run.Notes = append(e.rec.Run.Notes, textline.OneLine(key+": "+value, maxText))
	}
}
