// Package neptune reads the queues of operations that the legacy Neptune client keeps on disk:
//
//	.neptune/{offline,async,sync}/<container>__<id>[__<pid>__<random>]/[exec-.../[partition-<k>/]]data-<version>.log
//
// A line is {"obj": {"type", "path": [...], ...}, "version": n, "at": s}; a file goes on in the next after 64 MiB. Of the
// operations
//
//	LogFloats, LogStrings                  values [{value, step: number or null, ts: seconds}]
//	AssignFloat, AssignInt, AssignBool, AssignString, AssignDatetime (ms)   value
//	AddStrings                             values
//
// are read. The console output is in the series monitoring/<hash>/stdout, stderr and traceback. The client drops
// values that are not finite with a warning, before they reach the queue; files of acknowledged operations are deleted
// in asynchronous mode. Source: neptune-client 1.x, src/neptune/internal/operation.py and disk_queue.py.
package neptune

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/inquest-dev/inquest/internal/evidence"
	"github.com/inquest-dev/inquest/internal/format/jsonline"
	"github.com/inquest-dev/inquest/internal/format/jsontree"
	"github.com/inquest-dev/inquest/internal/format/textline"
	"github.com/inquest-dev/inquest/internal/reader"
)

const (
	tracker  = "neptune"
	maxLine  = 64 << 20
	maxText  = 512
	maxNotes = 64
	maxHoles = 16 // that are noted of a file
	sure     = 3  // steps of one distance before a larger one is a hole
)

// New returns the reader. log is the reader of logs, which reads the console output.
func New(log reader.Reader) reader.Reader { return queue{log} }

type queue struct{ log reader.Reader }

func (queue) Name() string { return tracker }

// Sniff implements reader.Reader.
func (queue) Sniff(a evidence.Artifact, head []byte) reader.Confidence {
	name, ok := strings.CutPrefix(reader.BaseOf(a.Path), "data-")
	number, log := strings.CutSuffix(name, ".log")
	if !ok || !log || number == "" || strings.Trim(number, "0123456789") != "" {
		return reader.No
	}
	text := bytes.TrimLeft(bytes.TrimPrefix(head, []byte("\ufeff")), " \t\r\n")
	if bytes.HasPrefix(text, []byte(`{"obj":`)) && bytes.Contains(text, []byte(`"path": [`)) && bytes.Contains(text, []byte(`"type": "`)) {
		return reader.Sure
	}
	return reader.No
}

// Read implements reader.Reader.
func (r queue) Read(ctx context.Context, in reader.Input, s reader.Sink) error {
	rc, err := in.Open()
	if err != nil {
		return fmt.Errorf("open Neptune queue: %w", err)
	}
	defer rc.Close()
	rec := reader.NewRecording(s, tracker, in.Artifact.Path)
	o := &operations{rec: rec, strides: map[string]*stride{}}
	run := &rec.Run
	mode := ""
	run.Folder, run.ID, mode = place(in.Artifact.Path)
	run.Keeps, run.Status = evidence.Dropped, evidence.RunUnknown
	run.Cannot = []string{"Values that were not finite: the client drops each before it is stored; a hole between steps is the only sign.",
		"How the run ended, unless sys/failed was set: the queue has no status and no exit code."}
	if mode == "async" {
		run.Cannot = append(run.Cannot, "What the server had acknowledged: those files are deleted, and the rest of the history is there alone.")
	}
	if err := o.read(ctx, reader.Stopping(ctx, rc)); err != nil {
		return err
	}
	o.holes()
	if err := o.console.Read(ctx, r.log, rec); err != nil {
		return err
	}
	rec.Close()
	return nil
}

// place finds the folder of the run above a file, its id, and the mode that the client worked in.
func place(artifact string) (folder, id, mode string) {
	at := artifact
	for range 4 {
		i := strings.LastIndexAny(at, "/!")
		if i <= 0 {
			break
		}
		at = at[:i]
		base := at[strings.LastIndexAny(at, "/!")+1:]
		if kind, rest, ok := strings.Cut(base, "__"); ok && slices.Contains([]string{"run", "model", "model_version", "project"}, kind) {
			id, _, _ = strings.Cut(rest, "__")
			if i := strings.LastIndexAny(at, "/!"); i > 0 {
				mode = at[strings.LastIndexAny(at[:i], "/!")+1 : i]
			}
			return at, id, mode
		}
	}
	return reader.FolderOf(artifact), "", ""
}

// Operations of one file while they are read.
type operations struct {
	rec     *reader.Recording
	console reader.Console
	notes   int
	strides map[string]*stride
	names   []string // of strides, in order
	last    int64    // highest step of all series of the training
}

// A stride is how the steps of a series follow each other.
type stride struct {
	last, first int64
	step        int64 // the usual distance, 0 unknown
	times       int64 // it was seen in a row
	holes       []hole
	more        int64
}

type hole struct{ before, after int64 }

func (o *operations) span(l jsonline.Line, quote string) evidence.Span {
	return evidence.Span{Artifact: o.rec.Run.Artifact, Kind: "record", Record: l.N, Offset: l.Offset, Length: l.Size, Quote: textline.OneLine(quote, maxText)}
}

func (o *operations) read(ctx context.Context, src io.Reader) error {
	return jsonline.Each(ctx, src, maxLine, func(l jsonline.Line) error {
		n, _, err := jsontree.Parse(l.Text, 0, nil)
		if err == nil && n.Get("obj") == nil {
			err = errors.New("no operation")
		}
		kind := evidence.BadLine
		switch {
		case l.Long:
			kind, err = evidence.OverBound, errors.New("an operation of more than 64 MiB is not read")
		case err != nil && !l.Ended:
			kind, err = evidence.TruncatedTail, errors.New("the file ends within an operation")
		}
		if err != nil {
			o.rec.Damage(evidence.RunDamage{Kind: kind, Span: o.span(l, ""), Bytes: l.Size, Records: 1, Text: err.Error()})
			return nil
		}
		o.operation(n.Get("obj"), l)
		return nil
	})
}

// operation reads one operation.
func (o *operations) operation(n *jsontree.Node, l jsonline.Line) {
	var parts []string
	for _, p := range n.List("path") {
		parts = append(parts, p.Text)
	}
	name := textline.OneLine(strings.Join(parts, "/"), maxText)
	switch kind := n.Str("type"); kind {
	case "LogFloats":
		o.floats(n, name, l)
	case "LogStrings":
		if len(parts) > 1 && parts[0] == "monitoring" {
			for _, v := range n.List("values") {
				o.console.Add([]byte(v.Str("value")), reader.Place{Line: l.N, Offset: l.Offset, Length: int32(min(l.Size, math.MaxInt32))}, seconds(v.Str("ts")))
			}
		}
	case "AssignFloat", "AssignInt", "AssignBool", "AssignString", "AssignDatetime":
		o.assign(kind, parts, name, n.Str("value"), l)
	case "AddStrings":
		var list []string
		for _, v := range n.List("values") {
			list = append(list, v.Text)
		}
		slices.Sort(list) // a set, in no order
		o.note(name, strings.Join(list[:min(len(list), maxNotes)], ", "))
	}
}

func seconds(text string) float64 {
	v, err := strconv.ParseFloat(text, 64)
	if err != nil || !(v > 0 && v < 1e11) {
		return 0
	}
	return v
}

func (o *operations) note(name, text string) {
	if o.notes++; o.notes <= maxNotes && text != "" {
		o.rec.Run.Notes = append(o.rec.Run.Notes, textline.OneLine(name+": "+text, maxText))
	}
}

// floats reads the values of a series.
func (o *operations) floats(n *jsontree.Node, name string, l jsonline.Line) {
	system := strings.HasPrefix(name, "monitoring/")
	for _, x := range n.List("values") {
		v, err := strconv.ParseFloat(x.Str("value"), 64)
		if err != nil && !math.IsInf(v, 0) {
			o.rec.Damage(evidence.RunDamage{Kind: evidence.BadRecord, Span: o.span(l, ""), Records: 1, Text: "a value that is no number"})
			continue
		}
		step := int64(evidence.None)
		if f, err := strconv.ParseFloat(x.Str("step"), 64); err == nil && f == math.Trunc(f) && math.Abs(f) < 1<<53 {
			step = int64(f)
		}
		at := reader.Place{Line: l.N, Offset: l.Offset + int64(x.From), Length: int32(min(x.End-x.From, math.MaxInt32))}
		if t := o.rec.Track(name, system, v); t != nil {
			t.Add(step, seconds(x.Str("ts")), v, at)
			if !system && step != evidence.None {
				o.steps(name, step)
			}
		}
	}
}

// steps follows the steps of a series, and notes where its usual distance is exceeded.
func (o *operations) steps(name string, step int64) {
	o.last = max(o.last, step)
	s := o.strides[name]
	if s == nil {
		o.strides[name] = &stride{last: step, first: step}
		o.names = append(o.names, name)
		return
	}
	d := step - s.last
	switch {
	case d <= 0: // resumed
		s.step, s.times = 0, 0
	case d == s.step:
		s.times++
	case s.times >= sure && d > s.step && d%s.step == 0:
		if len(s.holes) < maxHoles {
			s.holes = append(s.holes, hole{s.last, step})
		} else {
			s.more++
		}
	default:
		s.step, s.times = d, 1
	}
	s.last = step
}

// holes notes the holes of all series, and series that end before the others.
func (o *operations) holes() {
	noted := 0
	note := func(format string, args ...any) {
		if noted++; noted <= maxHoles {
			o.rec.Run.Notes = append(o.rec.Run.Notes, fmt.Sprintf(format, args...))
		}
	}
	for _, name := range o.names {
		s := o.strides[name]
		for _, h := range s.holes {
			note("%s has no value between steps %d and %d, and one every %d before: values that are not finite are dropped", name, h.before, h.after, s.step)
		}
		if s.times >= sure && o.last-s.last >= 2*s.step {
			note("%s ends at step %d, and other series go on to step %d: values that are not finite are dropped", name, s.last, o.last)
		}
	}
	if noted > maxHoles {
		o.rec.Run.Notes = append(o.rec.Run.Notes, fmt.Sprintf("%d more holes between steps", noted-maxHoles))
	}
}

// assign reads a single value: what the client states of the run, or a setting.
func (o *operations) assign(kind string, parts []string, name, value string, l jsonline.Line) {
	run := &o.rec.Run
	switch {
	case len(parts) == 0:
	case name == "sys/name":
		run.Name = textline.OneLine(value, maxText)
	case name == "sys/failed":
		run.StatusSaid, run.StatusSpan = "sys/failed "+textline.OneLine(value, maxText), o.span(l, "sys/failed = "+value)
		if run.Status = evidence.RunUnknown; value == "true" {
			run.Status = evidence.RunFailed
		}
	case name == "sys/creation_time":
		if ms, err := strconv.ParseFloat(value, 64); err == nil {
			run.Started = reader.StampAt(ms / 1e3)
		}
	case parts[0] == "sys":
		o.note(name, value)
	case parts[0] == "monitoring" || kind == "AssignDatetime":
	default:
		o.rec.Setting(textline.OneLine(strings.Join(parts, "."), maxText), value, o.span(l, name+" = "+value))
	}
}
