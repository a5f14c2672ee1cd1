// Package tfevents reads the event files of TensorBoard: a folder of files whose names contain
// "tfevents" is a run. TensorFlow, torch, tensorboardX and everything built on them write
// these (Lightning, transformers, Megatron-LM, fairseq, MMEngine, Keras). Framing and
// messages are those of the packages tfrecord and tfevent.
//
// Values that are not finite are kept as they were logged. The format has no word for how
// a run ended, no console output and no measurements of the machine. TensorBoard's own
// loaders end a file at its first damaged record; this one goes on behind it.
package tfevents

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"
	"unicode/utf8"

	"github.com/inquest-dev/inquest/internal/evidence"
	"github.com/inquest-dev/inquest/internal/format/textline"
	"github.com/inquest-dev/inquest/internal/format/tfevent"
	"github.com/inquest-dev/inquest/internal/format/tfrecord"
	"github.com/inquest-dev/inquest/internal/reader"
)

// New returns the reader.
func New() reader.Reader { return tfevents{} }

type tfevents struct{}

func (tfevents) Name() string { return "tfevents" }

// maxSniffed is the longest first record of a file that is looked at: files of training data
// have the same framing.
const maxSniffed = 256 << 20

func (tfevents) Sniff(a evidence.Artifact, head []byte) reader.Confidence {
	_, named := tfevent.ParseName(a.Path)
	length, framed := tfrecord.Header(head)
	switch {
	case named && framed && length < maxSniffed:
		return reader.Sure
	case named && len(head) == 0:
		return reader.Likely
	case named && !printed(head):
		return reader.Likely // damaged from its beginning
	case framed && length <= uint64(len(head)-tfrecord.HeaderSize):
		var e tfevent.Event
		if e.Decode(head[tfrecord.HeaderSize:tfrecord.HeaderSize+int(length)]) == nil && bytes.HasPrefix(e.Version, []byte("brain.Event:")) {
			return reader.Sure
		}
	}
	return reader.No
}

// printed reports whether head is text, which may be cut within a character.
func printed(head []byte) bool {
	if bytes.IndexByte(head, 0) >= 0 {
		return false
	}
	for cut := range min(len(head), utf8.UTFMax) {
		if utf8.Valid(head[:len(head)-cut]) {
			return true
		}
	}
	return false
}

const maxBroken = 8 // records that are named one by one

// A file is one event file while it is read.
type file struct {
	rec  *reader.Recording
	in   *tfrecord.Reader
	tags tfevent.Tags[series]

	version bool // the file begins with a version record
	events  int64
	broken  int64 // records that are no events
	histos  odd
	tensors odd
	texts   texts
}

type tag = tfevent.Tag[series]

// A series is that of a tag, once it has a scalar.
type series struct {
	track *reader.Track
	full  bool // there are too many of them
}

// odd counts values that are no scalars, and those of them with elements that are not finite.
type odd struct {
	n, bad       int64
	first        string // name of the first bad one
	step, record int64
}

func (tfevents) Read(ctx context.Context, in reader.Input, s reader.Sink) error {
	src, err := in.Open()
	if err != nil {
		return err
	}
	defer src.Close()
	f := &file{rec: reader.NewRecording(s, "tensorboard", in.Artifact.Path), in: tfrecord.NewReader(reader.Stopping(ctx, src))}
	f.describe(in.Artifact.Path)
	err = f.read()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	f.close()
	return err
}

// describe fills in what the path of the file says of the run.
func (f *file) describe(p string) {
	run := &f.rec.Run
	if run.Folder = path.Dir(p); run.Folder != "." {
		run.Name = path.Base(run.Folder)
	}
	n, _ := tfevent.ParseName(p)
	run.Started = reader.StampAt(float64(n.Start))
	run.Writer = n.Writer()
}

// read reads all records.
func (f *file) read() error {
	var (
		p tfevent.Plain
		e tfevent.Event
	)
	for {
		data, err := f.in.Next()
		if err != nil {
			var d *tfrecord.Damage
			if errors.As(err, &d) {
				f.damaged(d)
				continue
			}
			if err == io.EOF {
				return nil
			}
			return err
		}
		f.events++
		if p.Decode(data) && f.plain(&p) {
			continue
		}
		if err := e.Decode(data); err != nil {
			f.odd(err)
			continue
		}
		switch {
		case e.Summary != nil:
			f.values(&e)
		case e.Version != nil:
			f.version = f.version || f.events == 1
		case e.Session != nil && tfevent.SessionStatus(e.Session) == tfevent.SessionStart:
			f.restart(&e)
		}
	}
}

// plain takes an event with one scalar. It reports false where the tag's plugin shows something
// else than scalars.
func (f *file) plain(p *tfevent.Plain) bool {
	t := f.tags.Find(p.Tag)
	t.Learn(p.Metadata)
	if !p.Scalar(t.Plugin) {
		return false
	}
	f.scalar(t, p.Step, p.Wall, float64(p.Value))
	return true
}

// scalar takes the value of a tag.
func (f *file) scalar(t *tag, step int64, wall, v float64) {
	if t.Of.track == nil {
		if t.Of.full {
			return
		}
		if t.Of.track = f.rec.Track(t.Name, strings.HasPrefix(t.Name, deviceStats), v); t.Of.track == nil {
			t.Of.full = true
			return
		}
	}
	t.Of.track.Add(step, wall, v, reader.Place{Line: f.in.Number(), Offset: f.in.Offset(), Length: int32(f.in.Size())})
}

// deviceStats is what the tags of Lightning's DeviceStatsMonitor begin with.
const deviceStats = "DeviceStatsMonitor."

// values takes all values of an event.
func (f *file) values(e *tfevent.Event) {
	var v tfevent.Value
	vs := e.Values()
	for vs.Next(&v) {
		t := f.tags.Find(v.Tag)
		t.Learn(v.Metadata)
		if x, ok := v.Scalar(t.Plugin); ok {
			f.scalar(t, e.Step, e.Wall, x)
		} else {
			f.other(e, &v, t)
		}
	}
	if err := vs.Err(); err != nil {
		f.odd(err)
	}
}

// other takes a value that is no scalar.
func (f *file) other(e *tfevent.Event, v *tfevent.Value, t *tag) {
	switch {
	case t.Plugin == tfevent.HParams:
		f.session(v)
	case v.Form == tfevent.Tensored && v.Tensor.Type == tfevent.String && (t.Plugin == tfevent.Text || t.Plugin == ""):
		f.texts.add(v, e.Step, f.span())
	case v.Form == tfevent.Histogram:
		f.histos.add(f, e, v)
	case v.Form == tfevent.Tensored && v.Tensor.Type != tfevent.String:
		f.tensors.add(f, e, v)
	}
}

func (o *odd) add(f *file, e *tfevent.Event, v *tfevent.Value) {
	o.n++
	if v.Nonfinite() == 0 {
		return
	}
	if o.bad++; o.bad == 1 {
		o.first, o.step, o.record = tfevent.Name(v.Tag), e.Step, f.in.Number()
	}
}

func (o *odd) note(f *file, what string) {
	switch {
	case o.bad > 0:
		f.note("%s, of which %d with elements that are not finite: %s at step %d (record %d) first", evidence.Several(o.n, what), o.bad, textline.OneLine(o.first, 80), o.step, o.record)
	case o.n > 0:
		f.note("%s, all finite", evidence.Several(o.n, what))
	}
}

// restart notes that a writer took up an earlier run.
func (f *file) restart(e *tfevent.Event) {
	f.rec.Restart()
	f.note("SessionLog START at step %d (record %d): the writer took up an earlier run there", e.Step, f.in.Number())
}

// session takes a value of the hparams plugin, whose content is its own metadata.
func (f *file) session(v *tfevent.Value) {
	_, content := tfevent.Plugin(v.Metadata)
	var s tfevent.Session
	if err := s.Decode(content); err != nil {
		f.odd(err)
	}
	for _, p := range s.Params {
		sp := f.span()
		sp.Quote = textline.OneLine(p.Name+" = "+p.Value, maxQuote)
		f.rec.Setting(p.Name, p.Value, sp)
	}
	run := &f.rec.Run
	if s.Start > 0 {
		run.Started = reader.StampAt(s.Start)
	}
	if !s.HasEnd {
		return
	}
	said := map[int64]string{tfevent.StatusSuccess: "SUCCESS", tfevent.StatusFailure: "FAILURE", tfevent.StatusRunning: "RUNNING"}[s.Status]
	run.StatusSaid = said
	run.StatusSpan = f.span()
	run.StatusSpan.Quote = "hparams session_end_info: " + said
	run.Status = evidence.RunUnknown
	switch s.Status {
	case tfevent.StatusFailure:
		run.Status = evidence.RunFailed
	case tfevent.StatusRunning:
		run.Status = evidence.RunOpen
	case tfevent.StatusSuccess:
		f.note("the hparams session says SUCCESS (record %d), which torch writes with the parameters, before training: no evidence of how the run ended", f.in.Number())
	}
}

// damaged notes a stretch that gave no record.
func (f *file) damaged(d *tfrecord.Damage) {
	kind := map[tfrecord.Kind]evidence.DamageKind{tfrecord.Cut: evidence.TruncatedTail, tfrecord.Data: evidence.BadChecksum,
		tfrecord.Framing: evidence.BadChecksum, tfrecord.Zeros: evidence.ZeroFill, tfrecord.TooLong: evidence.OverBound}[d.Kind]
	sp := evidence.Span{Artifact: f.rec.Run.Artifact, Kind: "record", Record: f.in.Number() + 1, Offset: d.Offset, Length: d.Length}
	f.rec.Damage(evidence.RunDamage{Kind: kind, Span: sp, Text: d.Error(), Bytes: d.Length, Records: d.Records})
}

// odd notes an intact record that is no event.
func (f *file) odd(err error) {
	if f.broken++; f.broken <= maxBroken {
		f.rec.Damage(evidence.RunDamage{Kind: evidence.BadRecord, Span: f.span(), Text: "no event, or not all of one: " + err.Error(), Records: 1})
	}
}

func (f *file) span() evidence.Span {
	return evidence.Span{Artifact: f.rec.Run.Artifact, Kind: "record", Record: f.in.Number(), Offset: f.in.Offset(), Length: int64(f.in.Size())}
}

func (f *file) note(format string, args ...any) {
	f.rec.Run.Notes = append(f.rec.Run.Notes, fmt.Sprintf(format, args...))
}

// close says what the file as a whole shows and cannot show.
func (f *file) close() {
	f.texts.settings(f)
	f.histos.note(f, "histogram")
	f.tensors.note(f, "larger tensor")
	run := &f.rec.Run
	if f.broken > maxBroken {
		f.note("%d intact records are no events, of which the first %d are named", f.broken, maxBroken)
	}
	switch {
	case f.in.Offset() == 0 && f.events == 0 && len(run.Damage) == 0:
		run.Cannot = append(run.Cannot, "The file is empty: a process opened it and wrote nothing, as ranks do that never log.")
	case f.events == 1 && f.version && len(run.Damage) == 0:
		run.Cannot = append(run.Cannot, "The file has its version record alone: the process ended before its first values reached the disk.")
	case f.events > 0 && !f.version:
		f.note("the file does not begin with a version record: TensorBoard then drops, at each step that is lower than the one before, what was logged from that step on")
	}
	run.Cannot = append(run.Cannot,
		"Writers keep events in memory (120 seconds by default): what was logged in the last two minutes before a process was killed may be missing.",
		"Event files have no word for how a run ended.")
	f.rec.Close()
}
