package history

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"
)

const (
	maxKey   = 256  // bytes of a key
	maxQuote = 512  // bytes of a pair kept as its quote
	maxCells = 2048 // values of one row
	maxDepth = 64   // nesting that is followed
)

var (
	errTorn   = errors.New("ends inside a record")
	errSyntax = errors.New("not JSON")
	errRow    = errors.New("over limit: a row has too many values")
)

// A cell is one value of a row and where it stands.
type cell struct {
	key    string
	text   string // as printed, quotes removed
	v      float64
	number bool // v holds: a number, NaN or infinity, quoted or not
	quote  string
	line   int64
	column int
	offset int64
}

// A row is one record of a file.
type row struct {
	cells []cell
	line  int64
}

// A scanner reads JSON as Python writes it: bare NaN, Infinity and -Infinity
// are numbers, and dicts printed with single quotes, nan, inf, None and True
// pass too. It keeps one row and follows offsets (bytes) and lines (1-based).
type scanner struct {
	r     *bufio.Reader
	off   int64
	line  int64
	start int64 // offset of the line
	row   row
	quote []byte
	keep  bool // bytes read go to quote
	over  bool // the last row had more values than are kept
}

func newScanner(r *bufio.Reader) *scanner { return &scanner{r: r, line: 1} }

func (s *scanner) next() (byte, error) {
	c, err := s.r.ReadByte()
	if err != nil {
		return 0, err
	}
	s.off++
	if c == '\n' {
		s.line++
		s.start = s.off
	}
	if s.keep && len(s.quote) < maxQuote {
		s.quote = append(s.quote, c)
	}
	return c, nil
}

func (s *scanner) peek() (byte, error) {
	b, err := s.r.Peek(1)
	if err != nil {
		return 0, err
	}
	return b[0], nil
}

// space skips white space, NUL bytes and a byte order mark, and returns the
// next byte without taking it.
func (s *scanner) space() (byte, error) {
	for {
		c, err := s.peek()
		if err != nil {
			return 0, err
		}
		switch c {
		case ' ', '\t', '\r', '\n', 0, 0xef, 0xbb, 0xbf:
			s.next()
		default:
			return c, nil
		}
	}
}

// object reads the next object from the stream as a row; nested keys are
// joined by '/'. It returns io.EOF at a clean end.
func (s *scanner) object() (*row, error) {
	c, err := s.space()
	if err != nil {
		return nil, err
	}
	if c != '{' {
		return nil, errSyntax
	}
	s.row.cells, s.row.line, s.over = s.row.cells[:0], s.line, false
	if err := s.members("", 0); err != nil {
		if err == io.EOF {
			err = errTorn
		}
		return nil, err
	}
	return &s.row, nil
}

// members reads an object whose '{' is next.
func (s *scanner) members(prefix string, depth int) error {
	if depth > maxDepth {
		return errSyntax
	}
	s.next()
	for {
		c, err := s.space()
		if err != nil {
			return err
		}
		switch c {
		case '}':
			s.next()
			return nil
		case ',':
			s.next()
			continue
		}
		if err := s.member(prefix, depth); err != nil {
			return err
		}
	}
}

// member reads one key and its value.
func (s *scanner) member(prefix string, depth int) error {
	line, col, off := s.line, int(s.off-s.start)+1, s.off
	s.quote, s.keep = s.quote[:0], true
	defer func() { s.keep = false }()
	c, err := s.peek()
	if err != nil {
		return err
	}
	if c != '"' && c != '\'' {
		return errSyntax
	}
	key, err := s.str(maxKey)
	if err != nil {
		return err
	}
	if c, err = s.space(); err != nil {
		return err
	}
	if c != ':' {
		return errSyntax
	}
	s.next()
	if c, err = s.space(); err != nil {
		return err
	}
	if prefix != "" {
		key = prefix + "/" + key
	}
	switch c {
	case '{':
		s.keep = false
		if len(key) > maxKey {
			key = key[:maxKey]
		}
		return s.members(key, depth+1)
	case '[':
		s.keep = false
		return s.skip(depth)
	}
	text, err := s.scalar(c)
	if err != nil && !(err == io.EOF && text != "") {
		return err
	}
	if len(s.row.cells) >= maxCells {
		s.over = true
		return nil
	}
	v, ok := parse(text)
	s.row.cells = append(s.row.cells, cell{key: key, text: text, v: v, number: ok, quote: string(s.quote), line: line, column: col, offset: off})
	return nil
}

// scalar reads a string or a bare token that begins with c.
func (s *scanner) scalar(c byte) (string, error) {
	if c == '"' || c == '\'' {
		return s.str(maxKey)
	}
	var b []byte
	for {
		c, err := s.peek()
		if err != nil {
			return string(b), err
		}
		if c == ',' || c == '}' || c == ']' || c <= ' ' {
			break
		}
		if c == '{' || c == '[' || c == '"' || c == ':' {
			return "", errSyntax
		}
		if len(b) < maxKey {
			b = append(b, c)
		}
		s.next()
	}
	if len(b) == 0 {
		return "", errSyntax
	}
	return string(b), nil
}

// str reads a quoted string whose quote is next; more than limit bytes are
// dropped. Escapes are kept as they stand except for the quote itself.
func (s *scanner) str(limit int) (string, error) {
	quote, err := s.next()
	if err != nil {
		return "", err
	}
	var b []byte
	for {
		c, err := s.next()
		if err != nil {
			return "", err
		}
		if c == quote {
			return string(b), nil
		}
		if c == '\\' {
			if c, err = s.next(); err != nil {
				return "", err
			}
		}
		if len(b) < limit {
			b = append(b, c)
		}
	}
}

// skip steps over the value that is next, whatever it holds.
func (s *scanner) skip(depth int) error {
	open := 0
	for {
		c, err := s.space()
		if err != nil {
			return err
		}
		switch c {
		case '"', '\'':
			if _, err := s.str(0); err != nil {
				return err
			}
		case '{', '[':
			open++
			if open+depth > 1<<16 {
				return errSyntax
			}
			s.next()
		case '}', ']':
			if open == 0 {
				return errSyntax
			}
			open--
			s.next()
		case ',', ':':
			if open == 0 {
				return nil
			}
			s.next()
		default:
			if _, err := s.scalar(c); err != nil {
				return err
			}
		}
		if open == 0 {
			return nil
		}
	}
}

// restOfLine drops the bytes up to the next newline.
func (s *scanner) restOfLine() error {
	line := s.line
	for s.line == line {
		if _, err := s.next(); err != nil {
			return err
		}
	}
	return nil
}

// parse reads a number as any of the sources print it. ok is false for
// anything else, among them the missing values "", null, None and NA.
func parse(text string) (v float64, ok bool) {
	switch text {
	case "", "null", "None", "NA", "true", "True", "false", "False":
		return 0, false
	}
	if len(text) > 64 || !utf8.ValidString(text) {
		return 0, false
	}
	if c := text[len(text)-1]; c == '_' || strings.ContainsAny(text, "xX_pP") {
		return 0, false
	}
	v, err := strconv.ParseFloat(text, 64)
	if err != nil && !errors.Is(err, strconv.ErrRange) {
		return 0, false
	}
	if errors.Is(err, strconv.ErrRange) {
		return 0, false
	}
	return v, true
}

// readState reads trainer_state.json: an object whose log_history is an array
// of flat rows, each with its step. Rows carry no time.
func readState(b *bufio.Reader, out *rows) error {
	out.source, out.filtered = "trainer_state", true
	s := newScanner(b)
	err := s.state(out)
	if err == io.EOF {
		err = errTorn
	}
	switch {
	case err == nil:
	case errors.Is(err, errTorn), errors.Is(err, errSyntax):
		out.damage(s.line, s.off, fmt.Errorf("reading trainer state: %w", err))
	default:
		return err
	}
	return nil
}

func (s *scanner) state(out *rows) error {
	if c, err := s.space(); err != nil {
		return err
	} else if c != '{' {
		return errSyntax
	}
	s.next()
	for {
		c, err := s.space()
		if err != nil {
			return err
		}
		if c == '}' {
			return nil
		}
		if c == ',' {
			s.next()
			continue
		}
		line, col, off := s.line, int(s.off-s.start)+1, s.off
		s.quote, s.keep = s.quote[:0], true
		key, err := s.str(maxKey)
		if err != nil {
			return err
		}
		if c, err = s.space(); err != nil {
			return err
		} else if c != ':' {
			return errSyntax
		}
		s.next()
		if c, err = s.space(); err != nil {
			return err
		}
		switch {
		case c == '[' && key == "log_history":
			s.keep = false
			err = s.rows(out)
		case c == '{' || c == '[':
			s.keep = false
			err = s.skip(0)
		default:
			var text string
			text, err = s.scalar(c)
			if v, ok := parse(text); ok {
				out.setting(cell{key: key, text: text, v: v, number: true, quote: string(s.quote), line: line, column: col, offset: off})
			}
			s.keep = false
		}
		if err != nil {
			return err
		}
	}
}

// rows reads an array of objects.
func (s *scanner) rows(out *rows) error {
	s.next()
	for {
		c, err := s.space()
		if err != nil {
			return err
		}
		switch c {
		case ']':
			s.next()
			return nil
		case ',':
			s.next()
			continue
		}
		r, err := s.object()
		if err != nil {
			return err
		}
		if s.over {
			out.damage(r.line, s.off, errRow)
		}
		out.add(r)
	}
}

// readLines reads JSON lines. A line that is no object is skipped and reported
// once; a torn last line is damage.
func readLines(b *bufio.Reader, out *rows) error {
	out.source = "jsonl"
	s := newScanner(b)
	told := false
	for {
		r, err := s.object()
		switch {
		case err == nil:
			if s.over {
				out.damage(r.line, s.off, errRow)
			}
			out.add(r)
			continue
		case err == io.EOF:
			return nil
		case errors.Is(err, errTorn):
			out.damage(s.line, s.off, fmt.Errorf("reading json lines: %w", err))
			return nil
		case errors.Is(err, errSyntax):
			if !told {
				told = true
				out.damage(s.line, s.off, fmt.Errorf("reading json lines: %w", err))
			}
			if err := s.restOfLine(); err == io.EOF {
				return nil
			} else if err != nil {
				return err
			}
		default:
			return err
		}
	}
}
