package wandb

import (
	"bufio"
	"encoding/json"
	"math"
	"strconv"

	"github.com/inquest-dev/inquest/internal/evidence"
	"github.com/inquest-dev/inquest/internal/format/leveldblog"
	"github.com/inquest-dev/inquest/internal/format/protowire"
	"github.com/inquest-dev/inquest/internal/format/wandblog"
	"github.com/inquest-dev/inquest/internal/repair"
)

const maxIndex = 1 << 16 // series that are found by their index

// A copying is one log while it is copied.
type copying struct {
	plan     *repair.Plan
	run      *repair.Run
	artifact string

	log   *leveldblog.Writer
	plain *bufio.Writer // history.jsonl
	rows  *wandblog.Rows

	series  []*repair.Series // by Key.Index less 1
	start   float64          // of the run, seconds since 1970
	step    int64            // largest step of W&B's own counter so far
	exit    bool
	told    bool // the notes before the exit record are written
	axis    bool // the marker's axis was looked for
	lost    int  // records left out
	buf     []byte
	message []byte
}

// record copies one record, or leaves it out.
func (c *copying) record(raw []byte) error {
	rec, err := wandblog.Decode(raw)
	if err != nil {
		c.lost++
		return nil
	}
	var body []byte // nil leaves the record as it is
	switch rec.Kind {
	case wandblog.History:
		if body, err = c.history(rec.Body); err == nil {
			err = c.markAxis(rec.Body, body)
		}
	case wandblog.Stats:
		row, failed := c.rows.Stats(rec.Body)
		if err = failed; err == nil {
			if edits := c.decide(row); edits != nil {
				body = edited(c.message[:0], rec.Body, 3, edits)
			}
		}
	case wandblog.Summary:
		body, err = summary(rec.Body)
	case wandblog.Run:
		body, err = c.runRecord(rec.Body)
	case wandblog.Artifact:
		body = c.artifactRecord(rec.Body)
	case wandblog.Metric:
		_, _, err = c.rows.Define(rec.Body)
	case wandblog.Exit:
		if err := c.tell(); err != nil {
			return err
		}
		c.exit = true
	}
	switch {
	case err != nil:
		c.lost++
		return nil
	case body == nil:
		return c.log.Write(raw)
	}
	c.buf = rec.Replace(c.buf[:0], raw, body)
	return c.log.Write(c.buf)
}

// An edit is what becomes of a number of a row.
type edit struct {
	item, leaf int
	drop       bool
	v          float64
}

// decide asks the plan about the values of a row, in their order. It returns nil where all
// stay.
func (c *copying) decide(row *wandblog.Row) []edit {
	var edits []edit
	for i := range row.Values {
		v := &row.Values[i]
		var s *repair.Series
		if v.Index > 0 {
			s = c.series[v.Index-1]
		} else if s = c.run.Series(c.artifact, v.Name); len(c.series) < maxIndex {
			c.series = append(c.series, s)
			v.Index = len(c.series)
		}
		switch action, held := s.Next(v.Step, row.Wall, v.V); action {
		case repair.Drop:
			edits = append(edits, edit{v.Item, v.Leaf, true, 0})
			v.V = math.NaN()
		case repair.Hold:
			edits = append(edits, edit{v.Item, v.Leaf, false, held})
			v.V = held
		}
	}
	return edits
}

// history is the body of a history record in the copy, nil where it is as it was. The row is
// written as a line of JSON as well.
func (c *copying) history(body []byte) ([]byte, error) {
	row, err := c.rows.History(body)
	if err != nil {
		return nil, err
	}
	if row.Step != wandblog.NoStep {
		c.step = max(c.step, row.Step)
	}
	edits := c.decide(row)
	mark, marked := c.mark(row)
	var line object
	if row.Step != wandblog.NoStep {
		line.add("_step", strconv.FormatInt(row.Step, 10))
	}
	if row.Wall > 0 {
		line.add("_timestamp", number(row.Wall))
	}
	for _, v := range row.Values {
		if v.V-v.V == 0 {
			line.add(v.Name, number(v.V))
		}
	}
	if marked {
		line.add(c.plan.Marker, number(mark))
	}
	if _, err := c.plain.Write(line.end()); err != nil {
		return nil, err
	}
	if edits == nil && !marked {
		return nil, nil
	}
	c.message = edited(c.message[:0], body, 1, edits)
	if marked {
		c.message = wandblog.AppendItem(c.message, 1, c.plan.Marker, number(mark))
	}
	return c.message, nil
}

// mark is the marker's value in a row: that of the steps which its series count.
func (c *copying) mark(row *wandblog.Row) (v float64, ok bool) {
	step := int64(evidence.None)
	for i := range row.Values {
		if s := row.Values[i].Step; s != step {
			step = s
			if m, is := c.run.Mark(s); is {
				v, ok = max(v, m), true
			}
		}
	}
	return v, ok
}

// markAxis defines, before the first row with a mark, in what the marker counts its steps, where the
// run defined that for the series beside it.
func (c *copying) markAxis(was, is []byte) error {
	if c.axis || is == nil || !c.run.Affected {
		return nil
	}
	step := c.rows.StepOf(was)
	if step == "" || c.rows.StepNamed(c.plan.Marker) == step {
		return nil
	}
	c.axis = true
	m := protowire.AppendBytes(nil, 1, c.plan.Marker)
	m = protowire.AppendBytes(m, 4, step)
	return c.log.Write(wandblog.Make(nil, 0, wandblog.Metric, m))
}

// edited appends a row with its edits, which are in the order of its items. Items stand in a field
// of the given number.
func edited(dst, body []byte, field int, edits []edit) []byte {
	n := -1
	m := protowire.Decode(body)
	for m.Next() {
		if m.Tag != uint32(field)<<3|protowire.Bytes {
			dst = append(dst, m.Raw()...)
			continue
		}
		n++
		from := 0
		for from < len(edits) && edits[from].item < n {
			from++
		}
		of := edits[from:]
		for i := range of {
			if of[i].item != n {
				of = of[:i]
				break
			}
		}
		if edits = edits[from:]; len(of) == 0 {
			dst = append(dst, m.Raw()...)
			continue
		}
		if of[0].leaf < 0 {
			if !of[0].drop {
				dst = protowire.AppendBytes(dst, field, withValue(m.Bytes(), []byte(number(of[0].v))))
			}
			continue
		}
		next := 0
		value := wandblog.EditObject(nil, valueOf(m.Bytes()), func(leaf int, _ float64) (bool, []byte) {
			if next == len(of) || of[next].leaf != leaf {
				return false, nil
			}
			next++
			return of[next-1].drop, []byte(number(of[next-1].v))
		})
		dst = protowire.AppendBytes(dst, field, withValue(m.Bytes(), value))
	}
	return dst
}

// valueOf is the value of an item in JSON.
func valueOf(item []byte) (value []byte) {
	m := protowire.Decode(item)
	for m.Next() {
		if m.Tag == 16<<3|protowire.Bytes {
			value = m.Bytes()
		}
	}
	return value
}

// withValue is an item with another value.
func withValue(item, value []byte) []byte {
	var b []byte
	m := protowire.Decode(item)
	for m.Next() {
		if m.Tag != 16<<3|protowire.Bytes {
			b = append(b, m.Raw()...)
		}
	}
	return protowire.AppendBytes(b, 16, value)
}

func number(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }

// summary is the body of a summary record in the copy, nil where all of it is finite.
func summary(body []byte) ([]byte, error) {
	var b []byte
	changed := false
	m := protowire.Decode(body)
	for m.Next() {
		if m.Tag != 1<<3|protowire.Bytes {
			b = append(b, m.Raw()...)
			continue
		}
		value := valueOf(m.Bytes())
		v, ok := wandblog.Number(value)
		if ok && v-v != 0 {
			changed = true
			continue
		}
		if !ok && len(value) > 0 {
			gone := false
			clean := wandblog.EditObject(nil, value, func(_ int, v float64) (bool, []byte) {
				gone = gone || v-v != 0
				return v-v != 0, nil
			})
			if gone {
				changed = true
				b = protowire.AppendBytes(b, 1, withValue(m.Bytes(), clean))
				continue
			}
		}
		b = append(b, m.Raw()...)
	}
	if m.Err() != nil || !changed {
		return nil, m.Err()
	}
	if b == nil {
		b = []byte{}
	}
	return b, nil
}

// runRecord is a run record of the copy: under the new id, and if the run failed with tag, note and
// a name that says what it is.
func (c *copying) runRecord(body []byte) ([]byte, error) {
	run, err := wandblog.DecodeRun(body)
	if err != nil {
		return nil, err
	}
	first := c.start == 0
	if first {
		c.rows.Start, c.start = run.Start, max(run.Start, 1)
	}
	told := c.run.Note != ""
	b := protowire.AppendBytes(nil, 1, c.run.NewID)
	m := protowire.Decode(body)
	for m.Next() {
		switch {
		case m.Tag == 1<<3|protowire.Bytes:
		case told && (m.Tag == 8<<3|protowire.Bytes || m.Tag == 9<<3|protowire.Bytes):
		case m.Tag == 5<<3|protowire.Bytes:
			clean, err := summary(m.Bytes())
			if err != nil {
				return nil, err
			}
			if clean == nil {
				clean = m.Bytes()
			}
			b = protowire.AppendBytes(b, 5, clean)
		default:
			b = append(b, m.Raw()...)
		}
	}
	if !told {
		return b, m.Err()
	}
	if run.DisplayName != "" || first {
		name := run.DisplayName
		if name == "" {
			name = run.ID
		}
		b = protowire.AppendBytes(b, 8, name+suffix)
	}
	if run.Notes != "" || first {
		notes := run.Notes
		if notes != "" {
			notes += "\n\n"
		}
		b = protowire.AppendBytes(b, 9, notes+c.run.Note)
	}
	if len(run.Tags) > 0 || first {
		b = protowire.AppendBytes(b, 10, tag)
	}
	return b, m.Err()
}

// artifactRecord is an artifact record of the copy: an artifact that the run made is made by the
// copy, and nothing is added to the original. nil where it names no run.
func (c *copying) artifactRecord(body []byte) []byte {
	var b []byte
	named := false
	m := protowire.Decode(body)
	for m.Next() {
		if m.Tag == 1<<3|protowire.Bytes && m.Text() == c.run.Read.ID {
			named = true
			b = protowire.AppendBytes(b, 1, c.run.NewID)
			continue
		}
		b = append(b, m.Raw()...)
	}
	if !named || m.Err() != nil {
		return nil
	}
	return b
}

// tell writes what stands before the exit record: marks of what has no step, the configuration key
// inquest, and an alert.
func (c *copying) tell() error {
	if c.told || c.run.Note == "" {
		return nil
	}
	c.told = true
	for _, m := range c.run.Marks() {
		if m.Step != evidence.None {
			continue
		}
		c.step++
		step := strconv.FormatInt(c.step, 10)
		var row []byte
		var line object
		line.add("_step", step)
		row = wandblog.AppendItem(row, 1, "_step", step)
		if m.Wall > 0 {
			row = wandblog.AppendItem(row, 1, "_timestamp", number(m.Wall))
			line.add("_timestamp", number(m.Wall))
		}
		row = wandblog.AppendItem(row, 1, c.plan.Marker, number(m.Value))
		line.add(c.plan.Marker, number(m.Value))
		row = protowire.AppendBytes(row, 2, protowire.AppendVarint(nil, 1, uint64(c.step)))
		if err := c.log.Write(wandblog.Make(nil, 0, wandblog.History, row)); err != nil {
			return err
		}
		if _, err := c.plain.Write(line.end()); err != nil {
			return err
		}
	}
	source, err := json.Marshal(c.run.Read.ID)
	if err != nil {
		return err
	}
	value := `{"source_run":` + string(source) + "," + c.run.JSON[1:]
	if err := c.log.Write(wandblog.Make(nil, 0, wandblog.Config, wandblog.AppendItem(nil, 1, "inquest", value))); err != nil {
		return err
	}
	alert := protowire.AppendBytes(nil, 1, "inquest: failed segment")
	alert = protowire.AppendBytes(alert, 2, c.run.Short)
	alert = protowire.AppendBytes(alert, 3, "ERROR")
	return c.log.Write(wandblog.Make(nil, 0, wandblog.Alert, alert))
}

// end completes a log that ended without an exit record.
func (c *copying) end() error {
	if err := c.tell(); err != nil {
		return err
	}
	if c.exit || !c.run.Dead { // also the log of a start that was killed, of a run that ended later
		return nil
	}
	body := protowire.AppendVarint(nil, 1, 1)
	if ran := c.run.Newest - c.start; c.start > 1 && ran >= 1 && ran < math.MaxInt32 {
		body = protowire.AppendVarint(body, 2, uint64(ran))
	}
	c.plan.Changes = append(c.plan.Changes, "The copy of "+c.artifact+" ends with exit code 1: the source has no exit record, and W&B would take the run for one that goes on.")
	return c.log.Write(wandblog.Make(nil, 0, wandblog.Exit, body))
}
