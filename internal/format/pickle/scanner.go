// Package pickle reads Python pickles, protocols 0 to 5, as data. Nothing is ever
// imported or called: the opcodes that would are refused, or become inert nodes.
//
// A pickle is a program for a stack machine: opcodes of one byte with their
// arguments, to STOP. Python's Lib/pickletools.py specifies all of them; the
// C++ writer of PyTorch (torch/csrc/jit/serialization/pickler.cpp) uses those of
// protocol 2. A Scanner splits the program into tokens, and knows no stack; Read
// runs it and returns the value.
package pickle

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"math"
)

// An Error is why a pickle cannot be read, and where.
type Error struct {
	Offset int64 // of the opcode, in bytes from the beginning
	Op     Op    // 0 where there is none
	Reason string
	Err    error // io.ErrUnexpectedEOF for a pickle that ends early, a read error, or nil
}

func (e *Error) Error() string {
	at := ""
	if e.Op != 0 {
		at = e.Op.String() + " "
	}
	if e.Err != nil {
		return fmt.Sprintf("pickle: %sat offset %d: %s: %v", at, e.Offset, e.Reason, e.Err)
	}
	return fmt.Sprintf("pickle: %sat offset %d: %s", at, e.Offset, e.Reason)
}

func (e *Error) Unwrap() error { return e.Err }

// A Token is one opcode with its argument.
type Token struct {
	Op     Op
	Offset int64   // of the opcode
	End    int64   // behind its argument
	Int    int64   // number behind BININT*, LONG*, BINGET, BINPUT, PROTO, EXT*; lines are left in Data
	Float  float64 // behind BINFLOAT
	// Data are the bytes behind an opcode that has some: of a string, of an integer
	// of more than 8 bytes, or the line of a text opcode without its end (two
	// lines: with the newline between them). They are valid until the next call.
	Data []byte
	Big  bool // LONG1 or LONG4 whose number does not fit Int
}

const window = 256 << 10 // bytes read at once

// A Scanner splits a pickle into tokens. It holds one window of the input and the
// argument at hand, whose memory grows only as its bytes arrive.
type Scanner struct {
	r        io.Reader
	buf      []byte
	pos, end int
	base     int64 // offset of buf[0]
	longest  int64
	err      error // sticky
	done     bool
}

// NewScanner returns a Scanner over r that refuses arguments of more than longest
// bytes; 0 means 64 MiB.
func NewScanner(r io.Reader, longest int64) *Scanner {
	if longest <= 0 {
		longest = 64 << 20
	}
	return &Scanner{r: r, buf: make([]byte, window), longest: longest}
}

// Offset is how many bytes have been taken.
func (s *Scanner) Offset() int64 { return s.base + int64(s.pos) }

// Next reads the next token into t. It returns io.EOF after STOP, and an *Error for
// everything that is no pickle, an input that ends before STOP included.
func (s *Scanner) Next(t *Token) error {
	if s.err != nil {
		return s.err
	}
	if s.done {
		return io.EOF
	}
	if err := s.next(t); err != nil {
		s.err = err
		return err
	}
	s.done = t.Op == Stop
	t.End = s.Offset()
	return nil
}

func (s *Scanner) next(t *Token) error {
	*t = Token{Offset: s.Offset()}
	b, err := s.take(1)
	if err != nil {
		return &Error{t.Offset, 0, "no STOP", err}
	}
	t.Op = Op(b[0])
	l := &layouts[t.Op]
	switch l.arg {
	case nothing:
		return nil
	case invalid:
		return &Error{t.Offset, t.Op, "no opcode", nil}
	case line1:
		t.Data, err = s.line(1)
	case line2:
		t.Data, err = s.line(2)
	default:
		b, err = s.take(int(l.size))
	}
	switch {
	case err != nil:
		return &Error{t.Offset, t.Op, "its argument is cut", err}
	case l.arg == fixed:
		t.Int = int64(unsigned(b))
	case l.arg == signed4:
		t.Int = int64(int32(binary.LittleEndian.Uint32(b)))
	case l.arg == float8:
		t.Float = math.Float64frombits(binary.BigEndian.Uint64(b))
	case l.arg == sized:
		return s.data(t, unsigned(b))
	}
	return nil
}

// data reads n bytes, the argument of t.
func (s *Scanner) data(t *Token, n uint64) error {
	if n > uint64(s.longest) {
		return &Error{t.Offset, t.Op, fmt.Sprintf("length %d is over the limit of %d", n, s.longest), nil}
	}
	b, err := s.take(int(n))
	if err != nil {
		return &Error{t.Offset, t.Op, fmt.Sprintf("%d bytes are stated, fewer are left", n), err}
	}
	t.Data = b
	if t.Op == Long1 || t.Op == Long4 {
		t.Int, t.Big = long(b)
	}
	return nil
}

// long reads a little-endian two's complement number; big if it needs more than
// 8 bytes.
func long(b []byte) (n int64, big bool) {
	if len(b) > 8 {
		return 0, true
	}
	for i := len(b) - 1; i >= 0; i-- {
		n = n<<8 | int64(b[i])
	}
	if len(b) > 0 && len(b) < 8 && b[len(b)-1]&0x80 != 0 {
		n -= 1 << (8 * len(b))
	}
	return n, false
}

func unsigned(b []byte) (n uint64) {
	for i := len(b) - 1; i >= 0; i-- {
		n = n<<8 | uint64(b[i])
	}
	return n
}

// take returns the next n bytes.
func (s *Scanner) take(n int) ([]byte, error) {
	if s.end-s.pos < n {
		if err := s.fill(n); err != nil {
			return nil, err
		}
	}
	b := s.buf[s.pos : s.pos+n : s.pos+n]
	s.pos += n
	return b, nil
}

// fill reads until n bytes lie in the window. The window grows by doubling, and
// only once it is full.
func (s *Scanner) fill(n int) error {
	s.end = copy(s.buf, s.buf[s.pos:s.end])
	s.base += int64(s.pos)
	s.pos = 0
	for idle := 0; s.end < n; {
		if s.end == len(s.buf) {
			s.buf = append(s.buf, make([]byte, min(len(s.buf), n-s.end))...)
		}
		k, err := s.r.Read(s.buf[s.end:])
		s.end += k
		switch {
		case s.end >= n:
			return nil
		case err == io.EOF:
			return io.ErrUnexpectedEOF
		case err != nil:
			return err
		case k > 0:
			idle = 0
		default:
			if idle++; idle > 100 {
				return io.ErrNoProgress
			}
		}
	}
	return nil
}

// line returns the next n lines without the last line end.
func (s *Scanner) line(n int) ([]byte, error) {
	from := 0
	for {
		if i := bytes.IndexByte(s.buf[s.pos+from:s.end], '\n'); i >= 0 {
			from += i + 1
			if n--; n == 0 {
				b := s.buf[s.pos : s.pos+from-1]
				s.pos += from
				return bytes.TrimSuffix(b, []byte("\r")), nil
			}
			continue
		}
		from = s.end - s.pos
		if int64(from) > s.longest {
			return nil, fmt.Errorf("a line of more than %d bytes", s.longest)
		}
		if err := s.fill(from + 1); err != nil {
			return nil, err
		}
	}
}
