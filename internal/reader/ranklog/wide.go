package ranklog

import (
	"bufio"
	"encoding/binary"
	"io"
	"unicode/utf16"
	"unicode/utf8"
)

// wideOrder reports whether head is UTF-16 text (PowerShell redirection): by
// its byte order mark, or by NULs in every other byte.
func wideOrder(head []byte) (binary.ByteOrder, bool) {
	if len(head) < 4 {
		return nil, false
	}
	switch {
	case head[0] == 0xff && head[1] == 0xfe && (head[2] != 0 || head[3] != 0):
		return binary.LittleEndian, true
	case head[0] == 0xfe && head[1] == 0xff:
		return binary.BigEndian, true
	}
	n := min(len(head), 1024) &^ 1
	if n < 16 {
		return nil, false
	}
	var zero [2]int
	for i := 0; i < n; i++ {
		if head[i] == 0 {
			zero[i&1]++
		}
	}
	switch half := n / 2; {
	case zero[1]*10 >= half*9 && zero[0] == 0:
		return binary.LittleEndian, true
	case zero[0]*10 >= half*9 && zero[1] == 0:
		return binary.BigEndian, true
	}
	return nil, false
}

// A wideReader turns UTF-16 into UTF-8 and remembers where recent lines began
// in the original, so that spans can speak of the original's bytes.
type wideReader struct {
	in      *bufio.Reader
	order   binary.ByteOrder
	pending []byte // converted, not yet handed out
	inPos   int64
	outPos  int64
	lines   []linePos // starts of lines not yet asked past
}

type linePos struct{ out, in int64 }

func newWideReader(in *bufio.Reader, order binary.ByteOrder) *wideReader {
	w := &wideReader{in: in, order: order}
	if b, err := in.Peek(2); err == nil && order.Uint16(b) == 0xfeff {
		in.Discard(2)
		w.inPos = 2
	}
	w.lines = append(w.lines, linePos{0, w.inPos})
	return w
}

func (w *wideReader) Read(p []byte) (int, error) {
	for len(w.pending) < len(p) && len(w.pending) < 32<<10 {
		u, err := w.unit()
		if err != nil {
			if len(w.pending) > 0 {
				break
			}
			return 0, err
		}
		r := rune(u)
		if utf16.IsSurrogate(r) {
			r = utf8.RuneError
			if b, err := w.in.Peek(2); err == nil {
				if pair := utf16.DecodeRune(rune(u), rune(w.order.Uint16(b))); pair != utf8.RuneError {
					r = pair
					w.in.Discard(2)
					w.inPos += 2
				}
			}
		}
		before := len(w.pending)
		w.pending = utf8.AppendRune(w.pending, r)
		w.outPos += int64(len(w.pending) - before)
		if r == '\n' {
			w.lines = append(w.lines, linePos{w.outPos, w.inPos})
		}
	}
	n := copy(p, w.pending)
	w.pending = w.pending[:copy(w.pending, w.pending[n:])]
	return n, nil
}

func (w *wideReader) unit() (uint16, error) {
	var b [2]byte
	if _, err := io.ReadFull(w.in, b[:]); err != nil {
		return 0, io.EOF // half a unit at the end is nothing
	}
	w.inPos += 2
	return w.order.Uint16(b[:]), nil
}

// original maps a range of the line that begins at out (UTF-8 offset) to the
// bytes of the original: skip and length are UTF-8 text within that line. Calls
// come in the order of lines.
func (w *wideReader) original(out int64, skip, text []byte) (offset, length int64) {
	i := 0
	for i+1 < len(w.lines) && w.lines[i+1].out <= out {
		i++
	}
	// Messages that were joined from several lines look back a little.
	if keep := i - 64; keep > 0 {
		w.lines = append(w.lines[:0], w.lines[keep:]...)
		i -= keep
	}
	return w.lines[i].in + units(skip), units(text)
}

// units is the length in bytes of b as UTF-16.
func units(b []byte) int64 {
	n := int64(0)
	for len(b) > 0 {
		r, size := utf8.DecodeRune(b)
		n += 2 * int64(max(1, utf16.RuneLen(r)))
		b = b[size:]
	}
	return n
}
