// Package clearml reads what ClearML leaves of a task in offline mode: a folder offline-<id> or the zip that is
// made of it when the process exits by itself.
//
//	metrics.jsonl  a line for each flush: an array of events
//	               {"timestamp": ms, "type": "training_stats_scalar", "task", "iter", "metric", "variant", "value"}
//	log.jsonl      the same of console output: {"timestamp": ms, "type": "log", "level", "worker", "msg": lines}
//	task.json      the task: id, name, project_name, type, hyperparams by section, status where something set one
//
// A value that is not finite is replaced when it is reported, by 0.0 unless the user set another
// substitute; a line of the log, "NaN value encountered. Reporting it as '0.0'", is printed for the first and for
// every thousandth of each of the two sorts. Source: clearml 2.1.12, backend_interface/metrics/events.py
// and task.py.
package clearml

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"io/fs"
	"math"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/inquest-dev/inquest/internal/evidence"
	"github.com/inquest-dev/inquest/internal/format/jsonline"
	"github.com/inquest-dev/inquest/internal/format/jsontree"
	"github.com/inquest-dev/inquest/internal/format/textline"
	"github.com/inquest-dev/inquest/internal/lazyre"
	"github.com/inquest-dev/inquest/internal/reader"
)

const (
	tracker = "clearml"
	metrics = "metrics.jsonl"
	logFile = "log.jsonl"
	task    = "task.json"

	maxLine = 64 << 20
	maxTask = 16 << 20
	maxText = 512
	maxZero = 1 << 16 // series that are watched for substitutes
)

// New returns the reader. log is the reader of logs, which reads the console output.
func New(log reader.Reader) reader.Reader { return clearML{log} }

type clearML struct{ log reader.Reader }

func (clearML) Name() string { return tracker }

// Sniff implements reader.Reader.
func (clearML) Sniff(a evidence.Artifact, head []byte) reader.Confidence {
	has := func(words ...string) bool {
		return !slices.ContainsFunc(words, func(w string) bool { return !bytes.Contains(head, []byte(w)) })
	}
	text := bytes.TrimLeft(bytes.TrimPrefix(head, []byte("\ufeff")), " \t\r\n")
	switch reader.BaseOf(a.Path) {
	case metrics:
		if bytes.HasPrefix(text, []byte("[{")) && has(`"task": "`, `"metric": `, `"variant": `) {
			return reader.Sure
		}
	case logFile:
		if bytes.HasPrefix(text, []byte("[{")) && has(`"type": "log"`, `"task": "`, `"msg": `) {
			return reader.Sure
		}
	case task:
		if bytes.HasPrefix(text, []byte("{")) && (has(`"offline_folder": `) || has(`"execution": {`, `"hyperparams": {`)) {
			return reader.Sure
		}
	}
	return reader.No
}

// Anchor implements reader.Gatherer: task and log belong to the metrics.
func (clearML) Anchor(at string) (dir, pattern string, ok bool) {
	if base := path.Base(at); base == logFile || base == task {
		return path.Dir(at), metrics, true
	}
	return "", "", false
}

// Read implements reader.Reader.
func (r clearML) Read(ctx context.Context, in reader.Input, s reader.Sink) error {
	rc, err := in.Open()
	if err != nil {
		return fmt.Errorf("open ClearML file: %w", err)
	}
	defer rc.Close()
	src := reader.Stopping(ctx, rc)
	rec := reader.NewRecording(s, tracker, in.Artifact.Path)
	o := &offline{rec: rec, folder: reader.FolderOf(in.Artifact.Path), watched: map[string]*watch{}}
	run := &rec.Run
	run.Folder, run.Keeps, run.Status = o.folder, evidence.Zeroed, evidence.RunOpen
	if i := strings.LastIndexByte(in.Artifact.Path, '!'); i >= 0 { // beside the folder that it was made of
		run.Writer, run.Status = path.Base(in.Artifact.Path[:i]), evidence.RunUnknown
		run.Notes = append(run.Notes, "packed, which ClearML does when the process exits by itself")
	}
	run.Cannot = []string{"Which values were not finite: ClearML replaces each when it is reported, by 0.0 unless told otherwise, and tells of it in one line of the log and after every thousand more."}
	switch reader.BaseOf(in.Artifact.Path) {
	case task:
		if err := o.task(src, in.Artifact.Path); err != nil {
			return err
		}
	case logFile:
		if err := o.log(ctx, src, in.Artifact.Path); err != nil {
			return err
		}
	default:
		if err := o.beside(ctx, in.Dir); err != nil {
			return err
		}
		if err := o.metrics(ctx, src); err != nil {
			return err
		}
	}
	if err := o.console.Read(ctx, r.log, rec); err != nil {
		return err
	}
	rec.Close()
	return nil
}

// An offline is a task while it is read.
type offline struct {
	rec     *reader.Recording
	folder  string
	console reader.Console
	// Substitutes as the log states them, by the time from which on each is to be expected.
	witness []witness
	watched map[string]*watch
}

// A witness is the first line of the log that states a substitute.
type witness struct {
	sort  string // NaN or inf
	text  string // what it was reported as
	value float64
	wall  float64 // of the record that the line stands in: not later than the line
}

// A watch is what is known of a series' exact substitutes.
type watch struct{ before bool }

// beside reads the log and the task where they are at hand.
func (o *offline) beside(ctx context.Context, dir fs.FS) error {
	if dir == nil {
		return nil
	}
	for _, name := range []string{task, logFile} {
		f, err := dir.Open(name)
		if err != nil {
			continue
		}
		if name == task {
			err = o.task(reader.Stopping(ctx, f), o.at(name))
		} else {
			err = o.log(ctx, f, o.at(name))
		}
		if cerr := f.Close(); err == nil {
			err = cerr
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// at is how a file beside that of the run is called.
func (o *offline) at(name string) string {
	return strings.TrimSuffix(o.rec.Run.Artifact, metrics) + name
}

func (o *offline) bad(kind evidence.DamageKind, artifact string, l jsonline.Line, err error) {
	o.rec.Damage(evidence.RunDamage{Kind: kind, Span: evidence.Span{Artifact: artifact, Kind: "record", Record: l.N, Offset: l.Offset, Length: l.Size}, Bytes: l.Size, Text: err.Error()})
}

// events gives every event of a file of arrays to f, with its node's offset in the file.
func (o *offline) events(ctx context.Context, src io.Reader, artifact string, f func(n *jsontree.Node, at reader.Place)) error {
	ordinal := int64(0)
	return jsonline.Each(ctx, src, maxLine, func(l jsonline.Line) error {
		_, _, err := jsontree.Parse(l.Text, 0, func(key string, n *jsontree.Node) bool {
			if key != "" || n.Sort != jsontree.Object {
				return false
			}
			ordinal++
			f(n, reader.Place{Line: ordinal, Offset: l.Offset + int64(n.From), Length: int32(min(n.End-n.From, math.MaxInt32))})
			return true
		})
		switch {
		case l.Long:
			o.bad(evidence.OverBound, artifact, l, fmt.Errorf("a line of more than 64 MiB: what stands behind is not read"))
		case err != nil && !l.Ended:
			o.bad(evidence.TruncatedTail, artifact, l, fmt.Errorf("the file ends within a line: %w", err))
		case err != nil:
			o.bad(evidence.BadLine, artifact, l, err)
		}
		return nil
	})
}

// millis reads a time in milliseconds since 1970.
func millis(n *jsontree.Node) float64 {
	v, err := strconv.ParseFloat(n.Str("timestamp"), 64)
	if err != nil || !(v > 0 && v < 1e14) {
		return 0
	}
	return v / 1e3
}

var states = lazyre.New(`(NaN|inf) value encountered\. Reporting it as '([^']{1,40})'`)

// log reads the console output, and in it the lines that state substitutes.
func (o *offline) log(ctx context.Context, src io.Reader, artifact string) error {
	o.console.Artifact = artifact
	return o.events(ctx, src, artifact, func(n *jsontree.Node, at reader.Place) {
		msg, wall := n.Str("msg"), millis(n)
		if o.rec.Run.ID == "" {
			o.rec.Run.ID = textline.OneLine(n.Str("task"), maxText)
		}
		o.console.Add([]byte(strings.TrimRight(msg, "\n")+"\n"), at, wall)
		for _, g := range states.FindAllStringSubmatch(msg, 16) {
			v, err := strconv.ParseFloat(g[2], 64)
			if err != nil || slices.ContainsFunc(o.witness, func(w witness) bool { return w.sort == g[1] && w.value == v }) || len(o.witness) >= 16 {
				continue
			}
			o.witness = append(o.witness, witness{g[1], g[2], v, wall})
			o.rec.Run.Notes = append(o.rec.Run.Notes, fmt.Sprintf("the log says at %s: %s", reader.StampAt(wall).Written, textline.OneLine(g[0], maxText)))
		}
	})
}

// metrics reads the events of metrics.jsonl.
func (o *offline) metrics(ctx context.Context, src io.Reader) error {
	plots := int64(0)
	err := o.events(ctx, src, o.rec.Run.Artifact, func(n *jsontree.Node, at reader.Place) {
		if o.rec.Run.ID == "" {
			o.rec.Run.ID = textline.OneLine(n.Str("task"), maxText)
		}
		if n.Str("type") != "training_stats_scalar" {
			plots++
			return
		}
		o.point(n, at)
	})
	if plots > 0 {
		o.rec.Run.Notes = append(o.rec.Run.Notes, fmt.Sprintf("%d events of plots, images and the like", plots))
	}
	return err
}

// point reads one value.
func (o *offline) point(n *jsontree.Node, at reader.Place) {
	metric, variant := n.Str("metric"), n.Str("variant")
	x := n.Get("value")
	if x == nil {
		return
	}
	v, err := strconv.ParseFloat(x.Text, 64)
	if err != nil && !math.IsInf(v, 0) || x.Sort != jsontree.Number {
		o.rec.Damage(evidence.RunDamage{Kind: evidence.BadRecord, Span: evidence.Span{Artifact: o.rec.Run.Artifact, Kind: "record", Record: at.Line, Offset: at.Offset, Length: int64(at.Length)}, Records: 1, Text: "an event whose value is no number"})
		return
	}
	system := strings.HasPrefix(metric, ":monitor:")
	name := textline.OneLine(metric+"/"+variant, maxText)
	step := int64(evidence.None)
	if i, err := strconv.ParseInt(n.Str("iter"), 10, 64); err == nil && !system { // seconds or iterations: nobody says which
		step = i
	}
	wall := millis(n)
	t := o.rec.Track(name, system, v)
	if t == nil {
		return
	}
	t.Add(step, wall, v, at)
	if !system {
		o.suspect(name, t, wall, v)
	}
}

// suspect notes a point that is exactly what the log says values that are not finite were
// reported as. In a series that had this value before, it says nothing.
func (o *offline) suspect(name string, t *reader.Track, wall, v float64) {
	for _, w := range o.witness {
		if v != w.value && !(math.IsNaN(v) && math.IsNaN(w.value)) {
			continue
		}
		k := o.watched[name]
		if k == nil && len(o.watched) < maxZero {
			k = &watch{}
			o.watched[name] = k
		}
		switch {
		case k == nil || k.before:
		case wall > 0 && w.wall > 0 && wall < w.wall:
			k.before = true
		default:
			t.Suspect(1, fmt.Sprintf("exactly %s after the log said that %s is reported as %s", w.text, w.sort, w.text))
		}
		return
	}
}

// task reads task.json.
func (o *offline) task(src io.Reader, artifact string) error {
	data, err := io.ReadAll(io.LimitReader(src, maxTask))
	if err != nil {
		return err
	}
	at := func(n *jsontree.Node, pointer string) evidence.Span {
		return evidence.Span{Artifact: artifact, Kind: "pointer", Pointer: pointer, Offset: int64(n.From), Length: int64(n.End - n.From), Quote: textline.OneLine(string(data[n.From:min(n.End, n.From+maxText)]), maxText)}
	}
	n, _, err := jsontree.Parse(data, 0, nil)
	if err != nil && len(bytes.TrimSpace(data)) > 0 {
		o.rec.Damage(evidence.RunDamage{Kind: evidence.TruncatedTail, Span: evidence.Span{Artifact: artifact, Kind: "pointer", Offset: int64(len(data))}, Text: "the task: " + err.Error()})
	}
	run := &o.rec.Run
	word := func(names ...string) string { return textline.OneLine(n.Str(names...), maxText) }
	run.ID, run.Name, run.Project = word("id"), word("name"), word("project_name")
	for section, params := range n.Get("hyperparams").Pairs() {
		for name, p := range params.Pairs() {
			o.rec.Setting(textline.OneLine(section+"."+name, maxText), p.Str("value"), at(p, "/hyperparams/"+section+"/"+name))
		}
	}
	if tags := n.List("tags"); len(tags) > 0 {
		var list []string
		for _, t := range tags[:min(len(tags), 64)] {
			list = append(list, t.Text)
		}
		run.Notes = append(run.Notes, "tags: "+textline.OneLine(strings.Join(list, ", "), maxText))
	}
	s := n.Get("status")
	if s == nil || s.Sort != jsontree.String {
		return nil
	}
	run.StatusSaid, run.StatusSpan = textline.OneLine(s.Text, maxText), at(s, "/status")
	if why := word("status_reason"); why != "" {
		run.Notes = append(run.Notes, "status reason: "+why)
	}
	switch s.Text {
	case "completed", "closed", "published", "publishing":
		run.Status = evidence.RunFinished
	case "failed":
		run.Status = evidence.RunFailed
	case "stopped":
		run.Status = evidence.RunKilled
	case "created", "queued", "in_progress":
		run.Status = evidence.RunOpen
	default:
		run.Status = evidence.RunUnknown
	}
	return nil
}
