package kernlog

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/inquest-dev/inquest/internal/format/textline"
)

// A source gives lines and, for the journal's export form, counted bytes.
type source struct {
	ctx  context.Context
	b    *bufio.Reader
	num  int64 // lines begun
	off  int64 // bytes taken
	cut  bool  // the last line had no end
	seen int64
}

func newSource(ctx context.Context, r io.Reader) *source {
	return &source{ctx: ctx, b: bufio.NewReaderSize(r, maxLine)}
}

// A line is one line without its end, and where it stands.
type line struct {
	raw      string
	num, off int64
	column   int
	long     bool // cut at maxLine
}

// line returns the next line. At the end it returns io.EOF, perhaps with a last
// line without an end.
func (s *source) line() (line, error) {
	if s.seen++; s.seen%256 == 1 {
		if err := s.ctx.Err(); err != nil {
			return line{}, err
		}
	}
	part, err := s.b.ReadSlice('\n')
	if len(part) == 0 && err != nil {
		return line{}, err
	}
	s.num++
	l := line{num: s.num, off: s.off, column: 1, raw: strings.TrimRight(string(part), "\r\n")}
	s.off += int64(len(part))
	if l.off == 0 && strings.HasPrefix(l.raw, "\xef\xbb\xbf") {
		l.raw, l.off, l.column = l.raw[3:], 3, 4
	}
	for errors.Is(err, bufio.ErrBufferFull) {
		l.long = true
		if e := s.ctx.Err(); e != nil {
			return line{}, e
		}
		part, err = s.b.ReadSlice('\n')
		s.off += int64(len(part))
	}
	s.cut = err == io.EOF
	return l, err
}

// bytes returns the next n bytes and the newline behind them, as the journal's
// export form has binary fields.
func (s *source) bytes(n int) ([]byte, error) {
	out := make([]byte, 0, min(n, 4<<10))
	for len(out) < n {
		chunk := min(n-len(out), 4<<10)
		at := len(out)
		out = append(out, make([]byte, chunk)...)
		m, err := io.ReadFull(s.b, out[at:])
		s.off += int64(m)
		if err != nil {
			s.cut = true
			return out[:at+m], io.EOF
		}
	}
	s.num += int64(bytes.Count(out, []byte{'\n'}))
	return out, nil
}

// skip passes over n bytes.
func (s *source) skip(n int64) error {
	for n > 0 {
		if err := s.ctx.Err(); err != nil {
			return err
		}
		b, err := s.bytes(int(min(n, 64<<10)))
		if err != nil {
			return err
		}
		n -= int64(len(b))
	}
	return nil
}

var errField = fmt.Errorf("over limit: journal field longer than %d KiB", maxField>>10)

// clean returns s without escape sequences, control bytes and blanks at its end.
func clean(s string) string { return strings.TrimRight(textline.Clean(s), " \t") }
