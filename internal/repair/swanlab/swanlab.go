// Package swanlab writes repaired copies of SwanLab runs: record logs of version 2.
//
// A copy is a run folder under its old name whose log has a new id, so that swanlab sync makes a new
// experiment of it and never touches the original. Points that are taken out are scalar records that are not
// written; everything else passes through byte for byte, but for the start record (id, tag, description)
// and, where it is missing, a finish record. What SwanLab itself skips, damaged records, is not in the
// copy. Source of the record's layout: swanlab 0.10.3, swanlab/proto/swanlab/*/v1.
package swanlab

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"

	"github.com/inquest-dev/inquest/internal/evidence"
	"github.com/inquest-dev/inquest/internal/format/leveldblog"
	"github.com/inquest-dev/inquest/internal/format/protowire"
	"github.com/inquest-dev/inquest/internal/format/swanrecord"
	"github.com/inquest-dev/inquest/internal/repair"
)

const (
	tracker = "swanlab"
	tag     = "inquest:repaired"
)

// New returns the format.
func New() repair.Format { return format{} }

type format struct{}

func (format) Name() string { return tracker }

// Claims implements repair.Format: runs of which all files are logs of version 2.
func (format) Claims(src *repair.Source, runs []*evidence.TrackedRun) bool {
	for _, r := range runs {
		if r.Tracker != tracker || src.NameOf(r.Artifact, version2) == "" {
			return false
		}
	}
	return len(runs) > 0
}

// version2 is how a record log of version 2 begins.
const version2 = swanrecord.Ident + string(rune(swanrecord.Version))

// Copy implements repair.Format.
func (format) Copy(ctx context.Context, src *repair.Source, out *repair.Out, plan *repair.Plan) error {
	saved := int64(0)
	for _, run := range plan.Runs() {
		name := src.NameOf(run.Read.Artifact, version2)
		if name == "" {
			return fmt.Errorf("%s is no longer a SwanLab log of version 2", run.Read.Artifact)
		}
		folder := path.Dir(name)
		n, err := copyLog(ctx, src, out, plan, run, name, path.Join(folder, "run-"+run.NewID+".swanlab"))
		if err != nil {
			return fmt.Errorf("copy %s: %w", run.Read.Artifact, err)
		}
		saved += n
		if src.File != "" {
			continue
		}
		for _, other := range src.Names() {
			rest, ok := strings.CutPrefix(other, folder+"/")
			if folder == "." {
				rest, ok = other, true
			}
			if !ok || !belongs(rest) {
				continue
			}
			if err := out.CopyFile(ctx, src, other); err != nil {
				return err
			}
		}
	}
	if saved > 0 {
		plan.Left = append(plan.Left, fmt.Sprintf("%d save records name files of the original folders by their absolute path, from where swanlab sync takes them.", saved))
	}
	return nil
}

// belongs reports whether a file of a run's folder is part of the run.
func belongs(name string) bool {
	top, _, deep := strings.Cut(name, "/")
	return deep && (top == "files" || top == "media" || top == "debug")
}

// A copying is one log while it is copied.
type copying struct {
	plan   *repair.Plan
	run    *repair.Run
	log    *leveldblog.Writer
	num    int64 // largest number of a record
	saved  int64
	ended  bool
	marked bool
	series map[string]*repair.Series
}

// copyLog copies one log, and returns how many records name files by their path.
func copyLog(ctx context.Context, src *repair.Source, out *repair.Out, plan *repair.Plan, run *repair.Run, name, to string) (saved int64, err error) {
	f, err := src.FS.Open(name)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	w, err := out.Create(to)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, w.Close()) }()
	c := &copying{plan: plan, run: run, log: leveldblog.NewWriter(w, swanrecord.Ident+string(rune(swanrecord.Version))), series: map[string]*repair.Series{}}
	records := leveldblog.NewReader(f, swanrecord.Ident)
	for n := 0; ; n++ {
		if n%256 == 0 {
			if err := ctx.Err(); err != nil {
				return 0, err
			}
		}
		x, err := records.Next()
		var d *leveldblog.Damage
		switch {
		case err == io.EOF:
			if err := c.end(); err != nil {
				return 0, err
			}
			return c.saved, c.log.Flush()
		case errors.As(err, &d):
			continue // listed with the run's damage
		case err != nil:
			return 0, err
		}
		if err := c.record(x.Data); err != nil {
			return 0, err
		}
	}
}

// record copies one record, or leaves it out.
func (c *copying) record(data []byte) error {
	x, err := swanrecord.Decode(data)
	if err != nil {
		return nil // no reader makes anything of it
	}
	c.num = max(c.num, x.Num)
	switch x.Kind {
	case swanrecord.Start:
		data = swap(data, swanrecord.Start, c.start(x.Body))
	case swanrecord.Finish:
		if err := c.mark(); err != nil {
			return err
		}
		if c.run.Status != "" && !c.ended {
			data = swap(data, swanrecord.Finish, c.finished(x.Body))
		}
		c.ended = true
	case swanrecord.Save:
		c.saved++
	case swanrecord.Scalar:
		p, err := x.Point()
		if err != nil {
			return nil
		}
		switch action, v := c.of(swanrecord.Name(p.Key)).Next(p.Step, p.Wall, p.Value); action {
		case repair.Drop:
			return nil
		case repair.Hold:
			data = swap(data, swanrecord.Scalar, swanrecord.EncodePoint(string(p.Key), p.Step, p.Wall, v))
		}
	}
	return c.log.Write(data)
}

func (c *copying) of(name string) *repair.Series {
	s := c.series[name]
	if s == nil {
		s = c.run.Series(c.run.Read.Artifact, name)
		if len(c.series) < 1<<16 {
			c.series[name] = s
		}
	}
	return s
}

// swap replaces a field of a record, and keeps all others as they are.
func swap(data []byte, field int, body []byte) []byte {
	var b []byte
	m := protowire.Decode(data)
	for m.Next() {
		if m.Tag == uint32(field<<3|protowire.Bytes) {
			b = protowire.AppendBytes(b, field, body)
		} else {
			b = append(b, m.Raw()...)
		}
	}
	return b
}

// start is the start record of the copy: 10 id, 6 tags and 5 description.
func (c *copying) start(body []byte) []byte {
	var b []byte
	var description []byte
	m := protowire.Decode(body)
	for m.Next() {
		switch m.Tag {
		case 10<<3 | protowire.Bytes:
		case 5<<3 | protowire.Bytes:
			description = m.Bytes()
		default:
			b = append(b, m.Raw()...)
		}
	}
	text := string(description)
	if note := c.run.Short; note != "" {
		if text != "" {
			text += "\n\n"
		}
		text += note
	}
	if text != "" {
		b = protowire.AppendBytes(b, 5, text)
	}
	b = protowire.AppendBytes(b, 6, tag)
	return protowire.AppendBytes(b, 10, c.run.NewID)
}

// States of a finish record.
const (
	finished = 1
	crashed  = 2
	aborted  = 3
)

// finished is a finish record with the state that the plan gives the run: 1 state, 2 error, 3 finished_at.
func (c *copying) finished(body []byte) []byte {
	state := uint64(crashed)
	switch c.run.Status {
	case evidence.RunFinished:
		state = finished
	case evidence.RunKilled:
		state = aborted
	}
	b := protowire.AppendVarint(nil, 1, state)
	at, why := false, false
	m := protowire.Decode(body)
	for m.Next() {
		if m.Number() == 1 {
			continue
		}
		why = why || m.Number() == 2
		at = at || m.Number() == 3
		b = append(b, m.Raw()...)
	}
	if !why {
		b = protowire.AppendBytes(b, 2, "inquest: the run's log has no end; it is taken for dead")
	}
	if !at {
		b = swanrecord.AppendTime(b, 3, c.run.Newest)
	}
	return b
}

// mark writes the marker series: its column, of class custom in a section of its own, and its
// points by rising step.
func (c *copying) mark() error {
	if c.marked {
		return nil
	}
	c.marked = true
	marks := c.run.Marks()
	if len(marks) == 0 {
		return nil
	}
	column := protowire.AppendVarint(nil, 1, 1)
	column = protowire.AppendVarint(column, 2, 1)
	column = protowire.AppendBytes(column, 3, c.plan.Marker)
	section, _, _ := strings.Cut(c.plan.Marker, "/")
	column = protowire.AppendBytes(column, 5, section)
	column = protowire.AppendVarint(column, 6, 3)
	if err := c.log.Write(swanrecord.Encode(c.next(), c.run.Newest, swanrecord.Column, column)); err != nil {
		return err
	}
	for _, m := range marks {
		if m.Step == evidence.None {
			continue
		}
		if err := c.log.Write(swanrecord.Encode(c.next(), c.run.Newest, swanrecord.Scalar, swanrecord.EncodePoint(c.plan.Marker, m.Step, m.Wall, m.Value))); err != nil {
			return err
		}
	}
	return nil
}

func (c *copying) next() int64 {
	c.num++
	return c.num
}

// end completes a log that ended without a finish record.
func (c *copying) end() error {
	if err := c.mark(); err != nil {
		return err
	}
	if c.ended || c.run.Status == "" {
		return nil
	}
	const finishNum = -2 // as SwanLab numbers it
	return c.log.Write(swanrecord.Encode(finishNum, c.run.Newest, swanrecord.Finish, c.finished(nil)))
}
