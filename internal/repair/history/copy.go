package history

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"

	"github.com/inquest-dev/inquest/internal/evidence"
	"github.com/inquest-dev/inquest/internal/format/rows"
	"github.com/inquest-dev/inquest/internal/repair"
)

// A writing is the copy of one file while it is written.
type writing struct {
	ctx      context.Context
	plan     *repair.Plan
	artifact string
	form     rows.Form
	layout   *rows.Layout
	w        io.Writer
	strict   *strict // around w, for documents
	marker   string  // key or column
	series   map[string]map[string]*repair.Series
	runs     map[string]*repair.Run
	rows     int64            // so far
	marked   map[string]place // last place of a mark, by run

	edits []edit
	marks []mark // of the present row
	buf   []byte
	held  []byte // bytes between rows that are written with the next piece

	// Of a table.
	delim   byte
	columns int
	added   []string // runs that have a marker column, "" for one of all
	quoted  bool

	removed, bad, rest int64
	torn               bool // the end was left out
}

// An edit replaces a cell of a row; without a text it takes it out.
type edit struct {
	cell rows.Cell
	text string
}

type place struct{ step, row int64 }

type mark struct {
	run   string
	value float64
}

func newCopy(ctx context.Context, plan *repair.Plan, artifact string, form rows.Form, member string, w io.Writer) *writing {
	c := &writing{ctx: ctx, plan: plan, artifact: artifact, form: form, layout: rows.NewLayout(artifact, form, member), w: w, marker: repair.MarkerKey(plan.Marker),
		series: map[string]map[string]*repair.Series{}, runs: map[string]*repair.Run{}, marked: map[string]place{}}
	if form == rows.Document {
		c.strict = &strict{w: w}
		c.w = c.strict
	}
	return c
}

// all writes the pieces of the file.
func (c *writing) all(d *rows.Decoder) error {
	for {
		if err := c.ctx.Err(); err != nil {
			return err
		}
		p, err := d.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			return err
		}
		if err := c.piece(d, p); err != nil {
			return err
		}
	}
	if err := c.flush(); err != nil {
		return err
	}
	if c.strict != nil {
		return c.strict.end()
	}
	return nil
}

// flush writes what was held back.
func (c *writing) flush() error {
	if len(c.held) == 0 {
		return nil
	}
	_, err := c.w.Write(c.held)
	c.held = c.held[:0]
	return err
}

func (c *writing) write(b []byte) error {
	if err := c.flush(); err != nil {
		return err
	}
	_, err := c.w.Write(b)
	return err
}

func (c *writing) piece(d *rows.Decoder, p *rows.Piece) error {
	switch p.Kind {
	case rows.Header:
		c.layout.Header(p.Cells)
		return c.header(d.Delimiter(), p)
	case rows.Row:
		return c.row(p)
	case rows.Member:
		if m := &p.Cells[0]; m.Number && !m.Quoted && !rows.Finite(m.Value) {
			c.plan.Changes = append(c.plan.Changes, fmt.Sprintf("%s: %s, which was %s, is null.", c.artifact, m.Name, m.Text))
		}
		return c.write(p.Raw) // strict makes it null
	case rows.Bad:
		return c.lost(d, p)
	}
	if c.form == rows.Table || len(p.Raw) > 1<<12 {
		return c.write(p.Raw)
	}
	if err := c.flush(); err != nil {
		return err
	}
	c.held = append(c.held, p.Raw...)
	return nil
}

// lost writes what cannot be read: a line as it is, and of what ends in the middle nothing.
func (c *writing) lost(d *rows.Decoder, p *rows.Piece) error {
	if !errors.Is(p.Err, rows.ErrTorn) {
		if c.form == rows.Document {
			return fmt.Errorf("what stands behind byte %d cannot be read: %w", p.Offset, p.Err)
		}
		c.bad++
		return c.write(p.Raw)
	}
	c.torn = true
	if c.form != rows.Document {
		return c.flush()
	}
	closing, ok := d.Closing()
	if !ok {
		return fmt.Errorf("the document %w, behind its rows", p.Err)
	}
	c.held = bytes.TrimRight(c.held, " \t\r\n,")
	return c.write([]byte("\n" + closing + "\n"))
}

// tell says what was done beside the points, and what was left.
func (c *writing) tell(artifact string) {
	say := func(to *[]string, n int64, form string) {
		if n > 0 {
			*to = append(*to, artifact+": "+fmt.Sprintf(form, n))
		}
	}
	say(&c.plan.Changes, c.removed, "%d rows whose steps were written again later are left out.")
	if c.torn {
		c.plan.Changes = append(c.plan.Changes, artifact+": the end, which breaks off in a record, is left out.")
	}
	say(&c.plan.Left, c.bad, "%d lines that are not records of the format are copied as they are.")
	say(&c.plan.Left, c.rest, "%d numbers that are not finite and are no values of a series (in settings and lists) are copied as they are.")
	if c.strict != nil {
		say(&c.plan.Changes, c.strict.n, "%d numbers that were not finite and are no values of a series are null.")
	}
}

// run returns the plan of one of the file's runs.
func (c *writing) run(name string) *repair.Run {
	r := c.runs[name]
	if r == nil {
		id := c.layout.Identity(name)
		key := repair.RunKey{ID: id.ID}
		if key.ID == "" {
			key.Folder = id.Folder
		}
		r = c.plan.Run(key)
		c.runs[name] = r
		c.series[name] = map[string]*repair.Series{}
	}
	return r
}

// row asks about the points of a row and writes it.
func (c *writing) row(p *rows.Piece) error {
	g := c.layout.Row(p.Cells)
	c.rows++
	c.edits, c.marks = c.edits[:0], c.marks[:0]
	wall, again := g.Time.Wall(), c.plan.Policy.Dedupe && len(g.Points) > 0
	for i := range g.Points {
		pt := &g.Points[i]
		run := c.run(pt.Run)
		s := c.series[pt.Run][pt.Name]
		if s == nil {
			s = run.Series(c.artifact, pt.Name)
			c.series[pt.Run][pt.Name] = s
		}
		cell := p.Cells[pt.Cell]
		action, v := s.Next(pt.Step, wall, cell.Value)
		lost := true
		switch action {
		case repair.Keep:
			again, lost = false, false
		case repair.Drop:
			again = again && rows.Finite(cell.Value)
			c.edits = append(c.edits, edit{cell: cell})
		case repair.Hold:
			again = false
			c.edits = append(c.edits, edit{cell: cell, text: number(v)})
		}
		c.mark(run, pt, lost)
	}
	if again && !c.plan.Policy.Suspects && c.layout.Tracker != "mmcv" {
		c.removed++
		return c.drop()
	}
	if c.form == rows.Table {
		return c.line(p)
	}
	if len(c.edits) == 0 && len(c.marks) == 0 {
		c.rest += loose(p, nil)
		return c.write(p.Raw)
	}
	c.rest += loose(p, c.edits)
	c.buf = object(c.buf[:0], p, c.edits, c.marks, c.marker)
	return c.write(c.buf)
}

// drop leaves a row out, with what separates it from the one before.
func (c *writing) drop() error {
	c.held = c.held[:0]
	return nil
}

// mark notes the marker's value for a point's run, once a row.
func (c *writing) mark(run *repair.Run, pt *rows.Point, lost bool) {
	if !run.Affected {
		return
	}
	v, ok := run.Mark(pt.Step)
	if pt.Step == evidence.None && lost {
		v, ok = 1, true
	}
	if last, was := c.marked[pt.Run]; !ok || was && last.step == pt.Step && pt.Step != evidence.None && last.row != c.rows {
		return // a step that has several rows is marked once
	}
	c.marked[pt.Run] = place{pt.Step, c.rows}
	name := ""
	if c.layout.Panels() {
		name = pt.Run
	}
	for i := range c.marks {
		if c.marks[i].run == name {
			c.marks[i].value = math.Max(c.marks[i].value, v)
			return
		}
	}
	c.marks = append(c.marks, mark{name, v})
}

// number writes a value so that it reads back the same.
func number(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }
