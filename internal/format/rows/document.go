package rows

import (
	"bytes"
	"errors"
	"io"
)

// Closing is what closes a document that ends where the decoder is; ok is false where it is
// within a value that is no row.
func (d *Decoder) Closing() (text string, ok bool) {
	switch d.state {
	case inRows:
		return "]}", true
	case inDocument:
		return "}", true
	case inValue:
		return "", false
	}
	return "", true
}

// Where a decoder is in a document.
const (
	outside = iota
	inDocument
	inRows
	inValue
)

func ended(err error) bool { return errors.Is(err, io.EOF) }

// peek passes over space from the next byte on and returns where the byte behind it
// stands; ok is false at the end.
func (d *Decoder) peek(also string) (n int, ok bool) {
	for {
		b := d.left()
		for n < len(b) && (b[n] <= ' ' || b[n] >= 0x80 || bytes.IndexByte([]byte(also), b[n]) >= 0) {
			n++
		}
		if n < len(b) {
			return n, true
		}
		if n >= MaxRecord || !d.fill() {
			return n, false
		}
	}
}

// open is Next at the beginning of a document.
func (d *Decoder) open() (*Piece, error) {
	n, ok := d.peek("")
	if !ok {
		return d.torn(n)
	}
	if d.left()[n] != '{' {
		d.next = (*Decoder).rest
		return d.take(Bad, len(d.left()), ErrSyntax), nil
	}
	d.next, d.state = (*Decoder).around, inDocument
	return d.take(Between, n+1, nil), nil
}

// torn is Next where a document ends too early.
func (d *Decoder) torn(n int) (*Piece, error) {
	d.next = (*Decoder).rest
	if d.end != nil && !ended(d.end) {
		return d.done()
	}
	return d.take(Bad, n, ErrTorn), nil
}

// around is Next among the members of a document.
func (d *Decoder) around() (*Piece, error) {
	n, ok := d.peek(",")
	if !ok {
		return d.torn(n)
	}
	switch c := d.left()[n]; {
	case c == '}':
		d.next, d.state = (*Decoder).rest, outside
		return d.take(Between, n+1, nil), nil
	case n > 0:
		return d.take(Between, n, nil), nil
	case c != '"':
		d.next = (*Decoder).rest
		return d.take(Bad, len(d.left()), ErrSyntax), nil
	}
	for {
		key, at, err := d.key()
		switch {
		case err == nil:
			return d.value(key, at)
		case err != errShort || len(d.left()) > MaxRecord:
			d.next = (*Decoder).rest
			return d.take(Bad, len(d.left()), ErrSyntax), nil
		case !d.fill():
			return d.torn(len(d.left()))
		}
	}
}

// key reads the key of a member and finds where its value begins. A scalar value must be
// there whole.
func (d *Decoder) key() (key []byte, at int, err error) {
	p := &d.p
	p.b, p.i, p.line, p.start = d.left(), 0, d.line, int(d.start-d.off)
	if key, err = p.str(); err != nil {
		return nil, 0, err
	}
	c, err := p.space()
	if err == nil && c != ':' {
		err = ErrSyntax
	}
	if err != nil {
		return nil, 0, err
	}
	p.i++
	if c, err = p.space(); err != nil {
		return nil, 0, err
	}
	at = p.i
	if c != '[' && c != '{' {
		_, _, err = p.scalar()
	}
	return key, at, err
}

// value makes a piece of a member: a cell of a scalar, the opening of the rows, or the
// first bytes of another value, which is passed over.
func (d *Decoder) value(key []byte, at int) (*Piece, error) {
	switch c := d.left()[at]; {
	case c == '[' && string(key) == d.member:
		d.next, d.state = (*Decoder).within, inRows
		return d.take(Between, at+1, nil), nil
	case c == '[' || c == '{':
		d.next, d.depth, d.quote, d.escape = (*Decoder).pass, 1, false, false
		d.state = inValue
		return d.take(Between, at+1, nil), nil
	}
	p := &d.p
	end := p.i
	p.cells, p.i = d.piece.Cells[:0], at
	column := int(d.off-d.start) + 1
	text, quoted, err := p.scalar()
	if err != nil {
		return nil, err
	}
	p.cell(Cell{Name: p.names.of(cut(key, MaxName)), Text: text, Quoted: quoted, Line: d.line, Column: column, To: end, Key: at})
	d.piece.Cells = p.cells
	return d.take(Member, end, nil), nil
}

// pass is Next within a value that is no row.
func (d *Decoder) pass() (*Piece, error) {
	if len(d.left()) == 0 && !d.fill() {
		return d.torn(0)
	}
	for i, c := range d.left() {
		switch {
		case d.escape:
			d.escape = false
		case d.quote:
			d.escape, d.quote = c == '\\', c != '"'
		case c == '"':
			d.quote = true
		case c == '[' || c == '{':
			d.depth++
		case c == ']' || c == '}':
			if d.depth--; d.depth == 0 {
				d.next, d.state = (*Decoder).around, inDocument
				return d.take(Between, i+1, nil), nil
			}
		}
	}
	return d.take(Between, len(d.left()), nil), nil
}

// within is Next within the array of rows.
func (d *Decoder) within() (*Piece, error) {
	n, ok := d.peek(",")
	if !ok {
		return d.torn(n)
	}
	switch c := d.left()[n]; {
	case c == ']':
		d.next, d.state = (*Decoder).around, inDocument
		return d.take(Between, n+1, nil), nil
	case n > 0:
		return d.take(Between, n, nil), nil
	case c != '{':
		d.next = (*Decoder).rest
		return d.take(Bad, len(d.left()), ErrSyntax), nil
	}
	p, err := d.row((*parser).object)
	if err == nil && p.Kind == Bad {
		d.next = (*Decoder).rest // where the next row would begin is not known
	}
	return p, err
}

// rest is Next behind a document, or behind what cannot be read of one.
func (d *Decoder) rest() (*Piece, error) {
	if len(d.left()) == 0 && !d.fill() {
		return d.done()
	}
	return d.take(Between, len(d.left()), nil), nil
}
