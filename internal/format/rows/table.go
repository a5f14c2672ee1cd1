package rows

import (
	"bytes"
	"path"
	"strconv"
	"strings"
)

// A table is what a decoder remembers of one.
type table struct {
	delim  byte
	header [2]string // first two cells
	names  []string
	rows   bool // there was a header
	next   []Cell
}

// Delimiter returns the delimiter of a header: the one of comma, tab and semicolon that
// occurs most, 0 where there is none.
func Delimiter(line []byte) byte {
	best, most := byte(0), 0
	for _, d := range []byte{',', '\t', ';'} {
		if n := bytes.Count(line, []byte{d}); n > most {
			best, most = d, n
		}
	}
	return best
}

// Delimiter returns the delimiter of the table that is being read, 0 before its header
// and where it has one column.
func (d *Decoder) Delimiter() byte { return d.t.delim }

// record is Next for a table. A quoted cell may hold line ends. A header in the middle,
// of a resumed run that appended, begins a new table.
func (d *Decoder) record() (*Piece, error) {
	n, err := d.recordEnd()
	if n == 0 {
		return d.done()
	}
	raw := d.left()[:n]
	if err != nil {
		d.next = (*Decoder).longTail
		return d.take(Bad, n, err), nil
	}
	if d.off == 0 && bytes.HasPrefix(raw, []byte(bom)) {
		return d.take(Between, len(bom), nil), nil
	}
	text := bytes.TrimRight(raw, "\r\n")
	if len(bytes.Trim(text, " \t\x00")) == 0 {
		return d.take(Between, n, nil), nil
	}
	if !d.t.rows {
		d.t.delim = Delimiter(text)
	}
	d.t.next = fields(d.t.next[:0], text, d.t.delim, d.line)
	cells := d.t.next
	if !d.t.rows || d.again(cells) {
		d.names(cells)
		d.piece.Cells = append(d.piece.Cells, cells...)
		for i := range d.piece.Cells {
			d.piece.Cells[i].Name = d.t.names[i]
		}
		return d.take(Header, n, nil), nil
	}
	for i := range cells {
		c := &cells[i]
		if i < len(d.t.names) {
			c.Name = d.t.names[i]
		}
		c.Value, c.Number = Number(c.Text)
	}
	d.piece.Cells = append(d.piece.Cells, cells...)
	p := d.take(Row, n, nil)
	if len(cells) > MaxCells {
		p.Cells, p.Err = p.Cells[:MaxCells], ErrCells
	}
	return p, nil
}

// recordEnd finds the end of the next record: a line end that is in no quoted cell. A quote that
// is never closed closes at its line's end.
func (d *Decoder) recordEnd() (n int, err error) {
	for {
		b := d.left()
		first := bytes.IndexByte(b, '\n') + 1
		if first > 0 {
			if bytes.IndexByte(b[:first], '"') < 0 {
				return first, nil
			}
			if n := d.unquoted(b); n > 0 {
				return n, nil
			}
		}
		switch {
		case len(b) > MaxLine && first == 0:
			return len(b), ErrLong
		case len(b) <= MaxLine && d.fill():
		case first > 0:
			return first, nil
		default:
			return len(d.left()), nil
		}
	}
}

// unquoted returns what is before and with the first line end outside quotes, 0 where there
// is none.
func (d *Decoder) unquoted(b []byte) int {
	const begin, plain, quoted = 0, 1, 2
	state := begin
	for i, c := range b {
		switch {
		case c == '"' && state == begin:
			state = quoted
		case c == '"' && state == quoted:
			state = plain
		case c == '"' && b[i-1] == '"':
			state = quoted // a doubled quote
		case state == quoted:
		case c == '\n':
			return i + 1
		case d.isDelimiter(c):
			state = begin
		case c != ' ':
			state = plain
		}
	}
	return 0
}

// isDelimiter reports whether c parts cells, before the header is known as far as it may.
func (d *Decoder) isDelimiter(c byte) bool {
	if d.t.delim == 0 {
		return c == ',' || c == '\t' || c == ';'
	}
	return c == d.t.delim
}

// longTail passes over the rest of a line that is too long.
func (d *Decoder) longTail() (*Piece, error) {
	if len(d.left()) == 0 && !d.fill() {
		return d.done()
	}
	if i := bytes.IndexByte(d.left(), '\n'); i >= 0 {
		d.next = (*Decoder).record
		return d.take(Between, i+1, nil), nil
	}
	return d.take(Between, len(d.left()), nil), nil
}

// fields splits a line; a cell that begins with a double quote may hold the delimiter.
func fields(dst []Cell, text []byte, delim byte, line int64) []Cell {
	for from := 0; ; {
		to := fieldEnd(text, from, delim)
		c := Cell{Text: bytes.Trim(text[from:to], " \t\r\n\x00"), Line: line, From: from, To: to}
		if n := len(c.Text); n > 1 && c.Text[0] == '"' && c.Text[n-1] == '"' {
			c.Text, c.Quoted = c.Text[1:n-1], true
			if bytes.Contains(c.Text, []byte(`""`)) {
				c.Text = bytes.ReplaceAll(c.Text, []byte(`""`), []byte(`"`))
			}
		}
		dst = append(dst, c)
		if to >= len(text) || len(dst) > MaxCells {
			return dst
		}
		from = to + 1
	}
}

// fieldEnd returns where the cell that begins at from ends.
func fieldEnd(text []byte, from int, delim byte) int {
	at := from
	for at < len(text) && text[at] == ' ' {
		at++
	}
	if at < len(text) && text[at] == '"' {
		for at++; at < len(text); at++ {
			if text[at] != '"' {
				continue
			}
			if at+1 >= len(text) || text[at+1] != '"' {
				break
			}
			at++
		}
	}
	if delim != 0 && at < len(text) {
		if i := bytes.IndexByte(text[at:], delim); i >= 0 {
			return at + i
		}
	}
	return len(text)
}

// again reports whether a row is a header once more.
func (d *Decoder) again(cells []Cell) bool {
	return len(cells) > 1 && string(cells[0].Text) == d.t.header[0] && string(cells[1].Text) == d.t.header[1] && d.t.header[0] != ""
}

// names takes the names of columns from a header; a name that is there twice gets a number,
// as pandas gives it.
func (d *Decoder) names(cells []Cell) {
	t := &d.t
	t.rows, t.names = true, t.names[:0]
	seen := map[string]int{}
	for i := range cells {
		name := strings.ToValidUTF8(string(cut(cells[i].Text, MaxName)), "\uFFFD")
		if i < len(t.header) {
			t.header[i] = string(cells[i].Text)
		}
		if n := seen[name]; n > 0 && name != "" {
			seen[name]++
			name += "." + strconv.Itoa(n)
		}
		seen[name]++
		t.names = append(t.names, name)
	}
}

// tagOf is the series of a TensorBoard download, which has it in its file's name:
// run-RUN-tag-TAG.csv.
func tagOf(file string) (run, tag string) {
	base := baseOf(file)
	base = strings.TrimSuffix(base, path.Ext(base))
	if i := strings.LastIndex(base, "-tag-"); i >= 0 {
		return strings.TrimPrefix(base[:i], "run-"), base[i+5:]
	}
	if i := strings.LastIndex(base, "tag-"); i >= 0 {
		base = base[i+4:]
	}
	return "", base
}
