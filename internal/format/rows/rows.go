// Package rows decodes the files of metrics that hold one row after another as text: lines
// of JSON objects, JSON documents with an array of rows, and tables with a header. It says
// what the cells of a row are for (Layout) by the conventions of those who write such
// files: transformers' TrainerState, Lightning's and Keras' CSVLogger, MMEngine and mmcv,
// Ray Tune, and the exports of TensorBoard, W&B and MLflow.
//
// A file is given as pieces that together are all of its bytes, so that one who writes a
// changed copy can pass on what is not changed, byte for byte.
package rows

import (
	"bytes"
	"errors"
	"io"
	"path"
	"strings"
)

// Bounds of what is kept of a file.
const (
	MaxCells  = 2048     // values of one row
	MaxName   = 256      // bytes of a name
	MaxRecord = 16 << 20 // bytes of one row of JSON
	MaxLine   = 1 << 20  // bytes of one record of a table

	maxDepth = 64       // nesting that is followed
	maxNames = 16 << 10 // names that are remembered
	chunk    = 64 << 10
)

// What may be wrong with a piece.
var (
	ErrTorn   = errors.New("ends inside a record")
	ErrSyntax = errors.New("not a record of the format")
	ErrLong   = errors.New("over limit: record too long")
	ErrCells  = errors.New("over limit: a row has too many values")
)

// A Form is how rows are written down.
type Form uint8

const (
	None     Form = iota
	Lines         // objects one after another, commonly a line each; an array of them as well
	Document      // an object of which one member is an array of rows
	Table         // a header and lines
)

// A Cell is one value of a row.
type Cell struct {
	Name   string // the key, nested ones joined by '/', or the column's; "" for one without
	Text   []byte // as written, without quotes and spaces around; belongs to the decoder
	Value  float64
	Number bool // Value holds: a number, NaN or an infinity, quoted or not
	Quoted bool // it was written as a string
	Line   int64
	Column int // in bytes, from 1
	// From and To are what stands for the cell in the piece: the pair of key and value, or
	// what is between two delimiters.
	From, To int
	// Key is where the pair's value begins, after From; 0 for tables.
	Key int
}

// A Kind is what a piece is.
type Kind uint8

const (
	Between Kind = iota // what is no row: space, brackets, what stands around the rows
	Row
	Header // of a table
	Member // of the document around the rows: one cell
	Bad    // what cannot be read: Err says why
)

// A Piece is a stretch of a file. It and all it holds are valid until the next one is
// asked for.
type Piece struct {
	Kind   Kind
	Raw    []byte
	Offset int64 // of Raw in the file
	Line   int64 // of its first byte, from 1
	Cells  []Cell
	// Err says of a row that it has more cells than are kept (ErrCells), and of a bad
	// piece what is wrong.
	Err error
}

// Place returns where the quote of a cell stands: its pair of key and value, or for tables
// its line; at most about two kilobytes of it.
func (p *Piece) Place(c *Cell) (offset, line int64, column int, quote []byte) {
	if c.Key > 0 {
		return p.Offset + int64(c.From), c.Line, c.Column, cut(p.Raw[c.From:c.To], 512)
	}
	return p.Offset, p.Line, 1, cut(bytes.TrimRight(p.Raw, "\r\n"), 2048)
}

func cut(b []byte, n int) []byte { return b[:min(len(b), n)] }

// baseOf is a file's name without the folders and archives (outer!inner) that it lies in.
func baseOf(file string) string { return path.Base(strings.ReplaceAll(file, "!", "/")) }

// FormOf says by a file's name and first bytes how its rows are written, as far as the
// bytes can be rows at all, and which member of a document holds them.
func FormOf(name string, head []byte) (f Form, member string) {
	base := strings.ToLower(baseOf(name))
	text := bytes.TrimLeft(bytes.TrimPrefix(head, []byte(bom)), " \t\r\n\x00")
	switch {
	case len(text) == 0:
		return None, ""
	case text[0] == '{' && (bytes.Contains(text, []byte(`"log_history"`)) || base == "trainer_state.json" && bytes.Contains(text, []byte(`"global_step"`))):
		return Document, "log_history"
	case text[0] == '{' && metricsMember(text):
		return Document, "metrics"
	case text[0] == '{', text[0] == '[':
		return Lines, ""
	}
	return Table, ""
}

// metricsMember reports whether an object begins with a member "metrics" that is an array:
// an answer of MLflow's metrics/get-history.
func metricsMember(text []byte) bool {
	for _, want := range []string{"{", `"metrics"`, ":", "[", "{"} {
		text = bytes.TrimLeft(text, " \t\r\n")
		if !bytes.HasPrefix(text, []byte(want)) {
			return false
		}
		text = text[len(want):]
	}
	return true
}

const bom = "\xef\xbb\xbf"

// A Decoder gives the pieces of one file.
type Decoder struct {
	r      io.Reader
	buf    []byte // what is read and not yet passed by
	pos    int    // of the next piece in buf
	end    error  // of r
	off    int64  // of buf[pos]
	line   int64
	start  int64 // offset of that line
	piece  Piece
	next   func(*Decoder) (*Piece, error)
	member string
	p      parser
	t      table
	state  int
	depth  int // of the value that is being passed over
	quote  bool
	escape bool
}

// NewDecoder returns a decoder of a file of a form; member names the array of a document.
func NewDecoder(r io.Reader, f Form, member string) *Decoder {
	d := &Decoder{r: r, line: 1, member: member}
	d.p.names.seen = map[string]string{}
	switch f {
	case Document:
		d.next = (*Decoder).open
	case Table:
		d.next = (*Decoder).record
	default:
		d.next = (*Decoder).lines
	}
	return d
}

// Next returns the next piece, io.EOF behind the last one, or the error of the file's
// reader.
func (d *Decoder) Next() (*Piece, error) {
	d.piece = Piece{Cells: d.piece.Cells[:0]}
	return d.next(d)
}

// fill reads more; false says that there is no more.
func (d *Decoder) fill() bool {
	if d.end != nil {
		return false
	}
	if d.pos > 0 {
		d.buf = d.buf[:copy(d.buf, d.buf[d.pos:])]
		d.pos = 0
	}
	n := len(d.buf)
	want := max(chunk, n) // twice as much as before, so that reading again costs no more
	if cap(d.buf)-n < want {
		d.buf = append(make([]byte, 0, n+want), d.buf...)
	}
	for empty := 0; d.end == nil; empty++ {
		m, err := d.r.Read(d.buf[n : n+want])
		d.buf = d.buf[:n+m]
		if d.end = err; m > 0 {
			return true
		}
		if empty > 100 && err == nil {
			d.end = io.ErrNoProgress
		}
	}
	return false
}

// left returns what was read and not yet passed by.
func (d *Decoder) left() []byte { return d.buf[d.pos:] }

// take makes a piece of the next n bytes.
func (d *Decoder) take(k Kind, n int, err error) *Piece {
	p := &d.piece
	p.Kind, p.Raw, p.Offset, p.Line, p.Err = k, d.buf[d.pos:d.pos+n:d.pos+n], d.off, d.line, err
	if i := bytes.LastIndexByte(p.Raw, '\n'); i >= 0 {
		d.line += int64(bytes.Count(p.Raw, []byte{'\n'}))
		d.start = d.off + int64(i) + 1
	}
	d.pos += n
	d.off += int64(n)
	return p
}

// done is what Next returns where nothing is left.
func (d *Decoder) done() (*Piece, error) {
	if d.end == nil {
		return nil, io.EOF
	}
	return nil, d.end
}

// bad takes the rest of the line in which the next bytes are not what they should be, from
// the byte at on.
func (d *Decoder) bad(at int, err error) (*Piece, error) {
	for {
		if i := bytes.IndexByte(d.left()[at:], '\n'); i >= 0 {
			return d.take(Bad, at+i+1, err), nil
		}
		at = len(d.left())
		if at > MaxLine || !d.fill() {
			return d.take(Bad, at, err), nil
		}
	}
}

// intern keeps one copy of each name.
type intern struct{ seen map[string]string }

func (n *intern) of(b []byte) string {
	if s, ok := n.seen[string(b)]; ok {
		return s
	}
	s := strings.ToValidUTF8(string(b), "\uFFFD")
	if len(n.seen) < maxNames {
		n.seen[string(b)] = s
	}
	return s
}
