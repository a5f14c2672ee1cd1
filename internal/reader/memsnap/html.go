package memsnap

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"io"

	"github.com/inquest-dev/inquest/internal/evidence"
)

// The page that trace_plot and its like write (torch/cuda/_memory_viz.py, _format_viz) holds
// its snapshots in a line of JavaScript:
//
//	const local_files = [{"name": "snapshot.pickle", "base64": "gASV..."}]
//
// Behind the STOP of each pickle stand one to three NULs.

// isHTML reports whether head begins as a page does.
func isHTML(head []byte) bool {
	head = bytes.TrimLeft(bytes.TrimPrefix(head, []byte("\xef\xbb\xbf")), " \t\r\n")
	return len(head) > 0 && head[0] == '<'
}

// An inPage reads a page and knows where it is.
type inPage struct {
	*bufio.Reader
	at int64
}

func (p *inPage) ReadByte() (byte, error) {
	c, err := p.Reader.ReadByte()
	if err == nil {
		p.at++
	}
	return c, err
}

// seek reads until behind word; false at the end.
func (p *inPage) seek(word string) (bool, error) {
	n := 0
	for n < len(word) {
		c, err := p.ReadByte()
		switch {
		case err == io.EOF:
			return false, nil
		case err != nil:
			return false, err
		case c == word[n]:
			n++
		case c == word[0]: // no word that is looked for begins a second time within itself
			n = 1
		default:
			n = 0
		}
	}
	return true, nil
}

// open reads what stands between the key and the string: a colon, blanks, the quote.
func (p *inPage) open() bool {
	for {
		c, err := p.ReadByte()
		switch {
		case err != nil:
			return false
		case c == '"':
			return true
		case c != ':' && c != ' ' && c != '\t' && c != '\n' && c != '\r':
			return false
		}
	}
}

// A quoted reads a string of the page up to its quote, without what base64 has none of.
type quoted struct {
	p    *inPage
	done bool
	cut  bool // the page ends within it
}

func (q *quoted) Read(b []byte) (int, error) {
	for !q.done {
		if _, err := q.p.Peek(1); err != nil {
			q.done, q.cut = true, true
			if err != io.EOF {
				return 0, err
			}
			break
		}
		w, _ := q.p.Peek(min(q.p.Buffered(), len(b)))
		if i := bytes.IndexByte(w, '"'); i >= 0 {
			w, q.done = w[:i], true
		}
		n := 0
		for _, c := range w {
			if c != '\\' && c > ' ' {
				b[n] = c
				n++
			}
		}
		k := len(w)
		if q.done {
			k++
		}
		q.p.Discard(k)
		q.p.at += int64(k)
		if n > 0 {
			return n, nil
		}
	}
	return 0, io.EOF
}

// maxInPage is how many snapshots of one page are counted.
const maxInPage = 1 << 10

// fromHTML reads the first snapshot of a page, and looks how many follow.
func fromHTML(r io.Reader, o Options) (*result, error) {
	p := &inPage{Reader: bufio.NewReaderSize(r, 64<<10)}
	var got *result
	var failed error
	for n := range maxInPage {
		found, err := p.seek(`"base64"`)
		if err != nil {
			return nil, err
		}
		if !found {
			break
		}
		if !p.open() {
			continue
		}
		start := p.at
		q := &quoted{p: p}
		body := base64.NewDecoder(base64.StdEncoding, q)
		if got == nil {
			got, err = runPickle(body, o)
			if got != nil {
				got.html, got.start, got.Form = true, start, "trace_plot"
			} else if failed == nil {
				failed = fmt.Errorf("the snapshot at offset %d of the page: %w", start, err)
			}
		} else if n == maxInPage-1 {
			break
		} else {
			got.more++
		}
		if _, err := io.Copy(io.Discard, q); err != nil {
			return nil, err
		}
	}
	switch {
	case got != nil && got.more > 0:
		got.Damage = append(got.Damage, evidence.SnapDamage{Offset: got.end, Text: fmt.Sprintf("%d more in this page: only the first snapshot is read", got.more)})
	case got == nil && failed != nil:
		return nil, failed
	case got == nil:
		return nil, errors.New("a page without a snapshot; if it shows a memory timeline, it holds only its picture: export it as .json or .raw.json.gz")
	}
	return got, nil
}
