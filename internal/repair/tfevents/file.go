package tfevents

import (
	"bufio"
	"errors"
	"io"
	"path"
	"slices"

	"github.com/inquest-dev/inquest/internal/format/tfevent"
	"github.com/inquest-dev/inquest/internal/format/tfrecord"
	"github.com/inquest-dev/inquest/internal/repair"
)

// A file is one event file while it is copied.
type file struct {
	*copier
	dir      *folder
	artifact string
	run      *repair.Run
	in       *tfrecord.Reader
	w        *bufio.Writer
	tags     tfevent.Tags[*repair.Series]
	buf, ev  []byte
	does     []decision
}

type tag = tfevent.Tag[*repair.Series]

// A decision is what becomes of one value of an event.
type decision struct {
	drop     bool
	hold     bool
	value    float64 // in place of the old one
	metadata []byte  // of an earlier value
}

// file copies an event file.
func (c *copier) file(d *folder, name string) error {
	artifact := c.src.Artifact(name)
	n, _ := tfevent.ParseName(name)
	i := slices.IndexFunc(d.runs, func(r *repair.Run) bool {
		return r.Key == repair.RunKey{Folder: path.Dir(artifact), Writer: n.Writer()}
	})
	if i < 0 { // an empty file
		return c.out.CopyFile(c.ctx, c.src, name)
	}
	src, err := c.src.FS.Open(name)
	if err != nil {
		return err
	}
	defer src.Close()
	dst, err := c.out.Create(name)
	if err != nil {
		return err
	}
	f := &file{copier: c, dir: d, artifact: artifact, run: d.runs[i], in: tfrecord.NewReader(src), w: bufio.NewWriterSize(dst, 256<<10)}
	err = f.records()
	if err == nil {
		err = f.w.Flush()
	}
	return errors.Join(err, dst.Close())
}

// records copies all records.
func (f *file) records() error {
	var (
		p tfevent.Plain
		e tfevent.Event
	)
	for {
		if f.in.Number()%4096 == 0 {
			if err := f.ctx.Err(); err != nil {
				return err
			}
		}
		data, err := f.in.Next()
		if err == io.EOF {
			return nil
		}
		var d *tfrecord.Damage
		if errors.As(err, &d) {
			f.damaged++
			continue
		}
		if err != nil {
			return err
		}
		if !f.plain(&p, data) {
			if data = f.event(&e, data); data == nil {
				continue
			}
			f.buf = tfrecord.Append(f.buf[:0], data)
			_, err = f.w.Write(f.buf)
		} else {
			_, err = f.w.Write(f.in.Raw())
		}
		if err != nil {
			return err
		}
	}
}

// plain reports whether a record has one value that stays as it is. It decides about none
// that has to be changed.
func (f *file) plain(p *tfevent.Plain, data []byte) bool {
	if !p.Decode(data) || p.Value-p.Value != 0 || f.plan.Policy.Dedupe || f.plan.Policy.Suspects {
		return false
	}
	t := f.tags.Find(p.Tag)
	t.Learn(p.Metadata)
	if !p.Scalar(t.Plugin) || p.Metadata != nil || len(f.dir.pending) > 0 {
		return false
	}
	f.series(t).Next(p.Step, p.Wall, float64(p.Value)) // finite values are kept
	return true
}

func (f *file) series(t *tag) *repair.Series {
	if t.Of == nil {
		t.Of = f.run.Series(f.artifact, t.Name)
	}
	return t.Of
}

// event returns what is written for an event: itself where nothing of it changes, nil for
// nothing.
func (f *file) event(e *tfevent.Event, data []byte) []byte {
	if e.Decode(data) != nil {
		f.broken++
		return nil
	}
	if e.Summary == nil {
		return data
	}
	f.does = f.does[:0]
	changed, kept := false, 0
	var v tfevent.Value
	vs := e.Values()
	for vs.Next(&v) {
		d := f.decide(e, &v)
		changed = changed || d != nil
		if d == nil {
			d = &decision{}
		}
		if !d.drop {
			kept++
		}
		f.does = append(f.does, *d)
	}
	if vs.Err() != nil {
		f.broken++
		changed = true
	}
	switch {
	case !changed:
		return data
	case kept == 0:
		return nil
	}
	i := -1
	f.ev, _ = tfevent.Rewrite(f.ev[:0], data, func(dst []byte, v *tfevent.Value) []byte {
		i++
		d := &f.does[i]
		edit := tfevent.Edit{Metadata: d.metadata}
		switch {
		case d.drop:
			return dst
		case d.hold:
			edit.Number = &d.value
		case d.metadata == nil:
			return append(dst, v.Raw...)
		}
		return v.Append(dst, edit)
	})
	return f.ev
}

// decide says what becomes of a value; nil where it stays as it is.
func (f *file) decide(e *tfevent.Event, v *tfevent.Value) *decision {
	t := f.tags.Find(v.Tag)
	t.Learn(v.Metadata)
	var d decision
	if x, ok := v.Scalar(t.Plugin); ok {
		switch act, to := f.series(t).Next(e.Step, e.Wall, x); act {
		case repair.Drop:
			d.drop = true
		case repair.Hold:
			d.hold, d.value = true, to
		}
	} else {
		if t.Plugin == tfevent.HParams {
			f.dir.hparams(v)
		}
		if v.Nonfinite() > 0 {
			f.histos++
			if d.drop = f.plan.Policy.Tensors; d.drop {
				f.dropped++
			}
		}
	}
	f.metadata(v, &d)
	if d.drop || d.hold || d.metadata != nil {
		return &d
	}
	return nil
}

// metadata keeps that of a tag for its next value where the first one goes.
func (f *file) metadata(v *tfevent.Value, d *decision) {
	dir := f.dir
	if v.Metadata == nil && len(dir.pending) == 0 {
		return
	}
	key := string(v.Tag)
	switch was := dir.pending[key]; {
	case d.drop:
		if v.Metadata != nil && was == nil && !dir.shown[key] && len(dir.pending) < maxPending {
			dir.pending[key] = append([]byte{}, v.Metadata...)
		}
	case v.Metadata != nil:
		delete(dir.pending, key)
		if len(dir.shown) < maxPending {
			dir.shown[key] = true
		}
	case was != nil:
		d.metadata = was
		delete(dir.pending, key)
		dir.shown[key] = true
		f.moved++
	}
}

// maxPending bounds the tags of a run whose metadata is followed.
const maxPending = 1 << 16

// hparams notes what a value of the plugin says of its session.
func (d *folder) hparams(v *tfevent.Value) {
	_, content := tfevent.Plugin(v.Metadata)
	var s tfevent.Session
	_ = s.Decode(content) // what stands before an error counts
	d.session = d.session || s.HasStart
	d.ended = d.ended || s.HasEnd
}
