package rows

import (
	"bytes"
	"errors"
	"unicode/utf16"
	"unicode/utf8"
)

// errShort says that the bytes end within a value.
var errShort = errors.New("more is needed")

// A parser reads one object as Python's json or repr writes it: bare NaN, Infinity and
// -Infinity are numbers, single quotes, nan, inf, None and True pass too. Nested objects
// give cells of their own, arrays none.
type parser struct {
	b     []byte
	i     int
	line  int64
	start int // index of the first byte of the line, negative where it lies before b
	cells []Cell
	over  bool
	path  []byte
	names intern
}

// object reads the object that begins at b[0].
func (p *parser) object(b []byte, line int64, start int, cells []Cell) error {
	p.b, p.i, p.line, p.start, p.cells, p.over, p.path = b, 0, line, start, cells[:0], false, p.path[:0]
	return p.members(0)
}

// space passes over white space, NUL bytes and byte order marks and returns the byte after
// them.
func (p *parser) space() (byte, error) {
	for p.i < len(p.b) {
		switch c := p.b[p.i]; c {
		case '\n':
			p.line++
			p.start = p.i + 1
		case ' ', '\t', '\r', 0, 0xef, 0xbb, 0xbf:
		default:
			return c, nil
		}
		p.i++
	}
	return 0, errShort
}

func (p *parser) members(depth int) error {
	if depth > maxDepth {
		return ErrSyntax
	}
	p.i++
	for {
		c, err := p.space()
		switch {
		case err != nil:
			return err
		case c == '}':
			p.i++
			return nil
		case c == ',':
			p.i++
			continue
		case c != '"' && c != '\'':
			return ErrSyntax
		}
		if err := p.member(depth); err != nil {
			return err
		}
	}
}

// member reads a key and its value.
func (p *parser) member(depth int) error {
	from, line, column := p.i, p.line, p.i-p.start+1
	key, err := p.str()
	if err != nil {
		return err
	}
	if c, err := p.space(); err != nil {
		return err
	} else if c != ':' {
		return ErrSyntax
	}
	p.i++
	c, err := p.space()
	if err != nil {
		return err
	}
	outer := len(p.path)
	if outer > 0 {
		p.path = append(p.path, '/')
	}
	p.path = append(p.path, key...)
	if len(p.path) > MaxName {
		p.path = p.path[:MaxName]
	}
	defer func() { p.path = p.path[:outer] }()
	switch c {
	case '{':
		return p.members(depth + 1)
	case '[':
		return p.skip(depth)
	}
	at := p.i
	text, quoted, err := p.scalar()
	if err != nil {
		return err
	}
	p.cell(Cell{Name: p.names.of(p.path), Text: text, Quoted: quoted, Line: line, Column: column, From: from, To: p.i, Key: at})
	return nil
}

// cell keeps a cell as far as there is room.
func (p *parser) cell(c Cell) {
	if len(p.cells) >= MaxCells {
		p.over = true
		return
	}
	c.Value, c.Number = Number(c.Text)
	p.cells = append(p.cells, c)
}

// scalar reads a string or a bare token.
func (p *parser) scalar() (text []byte, quoted bool, err error) {
	if c := p.b[p.i]; c == '"' || c == '\'' {
		text, err = p.str()
		return text, true, err
	}
	from := p.i
	for ; p.i < len(p.b); p.i++ {
		switch c := p.b[p.i]; {
		case c == ',' || c == '}' || c == ']' || c <= ' ':
			if p.i == from {
				return nil, false, ErrSyntax
			}
			return p.b[from:p.i], false, nil
		case c == '{' || c == '[' || c == '"' || c == ':' || p.i-from > maxNumber:
			return nil, false, ErrSyntax
		}
	}
	return nil, false, errShort
}

// str reads a quoted string.
func (p *parser) str() ([]byte, error) {
	quote := p.b[p.i]
	from, escapes := p.i+1, false
	for i := from; i < len(p.b); i++ {
		switch p.b[i] {
		case quote:
			p.i = i + 1
			if escapes {
				return unescape(p.b[from:i]), nil
			}
			return p.b[from:i], nil
		case '\\':
			escapes = true
			i++
		case '\n':
			return nil, ErrSyntax
		}
	}
	return nil, errShort
}

// unescape resolves the escapes of a JSON string; what is none stands as it is.
func unescape(b []byte) []byte {
	out := make([]byte, 0, len(b))
	for i := 0; i < len(b); i++ {
		if b[i] != '\\' || i+1 >= len(b) {
			out = append(out, b[i])
			continue
		}
		i++
		switch c := b[i]; c {
		case 'n', 'r', 't', 'b', 'f':
			out = append(out, ' ')
		case 'u':
			r, n := hex4(b[i+1:])
			if n == 0 {
				out = append(out, 'u')
				break
			}
			i += n
			if utf16.IsSurrogate(r) && bytes.HasPrefix(b[i+1:], []byte(`\u`)) {
				if low, m := hex4(b[i+3:]); m > 0 {
					r = utf16.DecodeRune(r, low)
					i += 2 + m
				}
			}
			out = utf8.AppendRune(out, r)
		default:
			out = append(out, c)
		}
	}
	return out
}

func hex4(b []byte) (r rune, n int) {
	if len(b) < 4 {
		return 0, 0
	}
	for _, c := range b[:4] {
		switch {
		case c >= '0' && c <= '9':
			r = r<<4 | rune(c-'0')
		case c|0x20 >= 'a' && c|0x20 <= 'f':
			r = r<<4 | rune(c|0x20-'a'+10)
		default:
			return 0, 0
		}
	}
	return r, 4
}

// skip steps over the value that begins here, whatever it holds.
func (p *parser) skip(depth int) error {
	for open := 0; ; {
		c, err := p.space()
		if err != nil {
			return err
		}
		switch c {
		case '"', '\'':
			if _, err := p.str(); err != nil {
				return err
			}
		case '{', '[':
			if open++; open+depth > 1<<16 {
				return ErrSyntax
			}
			p.i++
		case '}', ']':
			open--
			p.i++
		case ',', ':':
			p.i++
		default:
			if _, _, err := p.scalar(); err != nil {
				return err
			}
		}
		if open == 0 {
			return nil
		}
	}
}

// triple reads an array of scalars that begins at b[0] as a row of TensorBoard's JSON
// download: [wall time, step, value].
func (p *parser) triple(b []byte, line int64, start int, cells []Cell) error {
	p.b, p.i, p.line, p.start, p.cells, p.over = b, 1, line, start, cells[:0], false
	for {
		c, err := p.space()
		switch {
		case err != nil:
			return err
		case c == ']':
			p.i++
			if len(p.cells) != len(tripleNames) {
				return ErrSyntax
			}
			return nil
		case c == ',':
			p.i++
			continue
		case c == '{' || c == '[' || len(p.cells) == len(tripleNames):
			return ErrSyntax
		}
		from, line, column := p.i, p.line, p.i-p.start+1
		text, quoted, err := p.scalar()
		if err != nil {
			return err
		}
		p.cell(Cell{Name: tripleNames[len(p.cells)], Text: text, Quoted: quoted, Line: line, Column: column, From: from, To: p.i, Key: from})
	}
}

var tripleNames = [...]string{"Wall time", "Step", "Value"}

// lines is Next for objects one after another, and for arrays of them.
func (d *Decoder) lines() (*Piece, error) {
	n := 0
	for {
		b := d.left()
		for n < len(b) && isBetween(b[n]) {
			n++
		}
		if n < len(b) || n >= chunk {
			break
		}
		if !d.fill() {
			if n == 0 {
				return d.done()
			}
			break
		}
	}
	b := d.left()
	// A '[' before an object or another '[' begins an array of rows.
	if n < len(b) && b[n] == '[' {
		if row, ok := d.array(n); !ok {
			return d.lines()
		} else if !row {
			return d.take(Between, n+1, nil), nil
		}
	}
	if n > 0 {
		return d.take(Between, n, nil), nil
	}
	switch b[0] {
	case '{':
		return d.row((*parser).object)
	case '[':
		return d.row((*parser).triple)
	}
	return d.bad(0, ErrSyntax)
}

// isBetween reports whether a byte may stand between rows.
func isBetween(c byte) bool {
	switch c {
	case ' ', '\t', '\r', '\n', ',', ']', 0, bom[0], bom[1], bom[2]:
		return true
	}
	return false
}

// array reports whether the '[' at n begins a row of scalars rather than an array of
// rows; ok is false where more was read and it is to be asked again.
func (d *Decoder) array(n int) (row, ok bool) {
	for i := n + 1; i < len(d.left()); i++ {
		switch c := d.left()[i]; {
		case c == '{', c == '[', c == ']':
			return false, true
		case c > ' ':
			return true, true
		case i-n > chunk:
			return false, true
		}
	}
	return false, !d.fill()
}

// row reads a row with the given rule.
func (d *Decoder) row(read func(*parser, []byte, int64, int, []Cell) error) (*Piece, error) {
	for {
		err := read(&d.p, d.left(), d.line, int(d.start-d.off), d.piece.Cells)
		switch {
		case err == nil:
			d.piece.Cells = d.p.cells
			if d.p.over {
				err = ErrCells
			}
			return d.take(Row, d.p.i, err), nil
		case err != errShort:
			return d.bad(d.p.i, err)
		case len(d.left()) > MaxRecord:
			return d.bad(0, ErrLong)
		case !d.fill():
			if d.end != nil && !ended(d.end) {
				return d.done()
			}
			return d.take(Bad, len(d.left()), ErrTorn), nil
		}
	}
}
