package history

import (
	"bytes"
	"slices"
	"strings"

	"github.com/inquest-dev/inquest/internal/format/rows"
	"github.com/inquest-dev/inquest/internal/repair"
)

// header writes a header with the columns of the marker. A panel export has one for each
// run that failed, any other table one.
func (c *writing) header(delim byte, p *rows.Piece) error {
	c.delim, c.columns, c.added = delim, len(p.Cells), c.added[:0]
	if c.delim == 0 {
		c.delim = ','
	}
	if c.layout.Panels() {
		for _, name := range c.layout.Panel() {
			if c.run(name).Affected {
				c.added = append(c.added, name)
			}
		}
	} else if slices.ContainsFunc(c.plan.Runs(), func(r *repair.Run) bool { return r.Affected && r.In(c.artifact) }) {
		c.added = append(c.added, "")
	}
	c.quoted = len(p.Cells) > 0 && p.Cells[len(p.Cells)-1].Quoted
	text, end := lineEnd(p.Raw)
	c.buf = append(c.buf[:0], text...)
	for _, name := range c.added {
		if name != "" {
			name += " - "
		}
		c.buf = append(append(c.buf, c.delim), c.cell(name+c.marker)...)
	}
	return c.write(append(c.buf, end...))
}

// cell writes a text as a cell.
func (c *writing) cell(text string) string {
	if c.quoted || strings.ContainsAny(text, "\"\r\n,;\t") || strings.TrimSpace(text) != text {
		return `"` + strings.ReplaceAll(text, `"`, `""`) + `"`
	}
	return text
}

// lineEnd parts a record of a table from its line end.
func lineEnd(raw []byte) (text, end []byte) {
	text = bytes.TrimRight(raw, "\r\n")
	return text, raw[len(text):]
}

// line writes a row of a table. A row with fewer cells than the header is filled up where
// it has a mark; cells beyond those of the header stay behind the marker's.
func (c *writing) line(p *rows.Piece) error {
	if len(c.edits) == 0 && len(c.added) == 0 {
		return c.write(p.Raw)
	}
	text, end := lineEnd(p.Raw)
	b, at := c.buf[:0], 0
	for i := range c.edits {
		x := &c.edits[i].cell
		b = append(b, text[at:x.From]...)
		if new := c.edits[i].text; new != "" {
			field := text[x.From:x.To]
			b = append(b, bytes.Replace(field, bytes.Trim(field, " \t\""), []byte(new), 1)...)
		}
		at = x.To
	}
	cells := len(p.Cells)
	switch {
	case len(c.added) == 0 || cells < c.columns && len(c.marks) == 0:
		b = append(b, text[at:]...)
	case cells > c.columns:
		split := max(p.Cells[c.columns-1].To, at)
		b = append(b, text[at:split]...)
		b = c.withMarks(b)
		b = append(b, text[split:]...)
	default:
		b = append(b, text[at:]...)
		for ; cells < c.columns; cells++ {
			b = append(b, c.delim)
		}
		b = c.withMarks(b)
	}
	c.buf = b
	return c.write(append(b, end...))
}

// withMarks appends the cells of the marker.
func (c *writing) withMarks(b []byte) []byte {
	for _, name := range c.added {
		b = append(b, c.delim)
		for _, m := range c.marks {
			if m.run == name {
				b = append(b, number(m.value)...)
			}
		}
	}
	return b
}
