package engine

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/inquest-dev/inquest/internal/artifact"
	"github.com/inquest-dev/inquest/internal/evidence"
	"github.com/inquest-dev/inquest/internal/incident"
	"github.com/inquest-dev/inquest/internal/redact"
)

// Bounds of a window of lines.
const (
	maxLines     = 1000
	maxLineText  = 4 << 10
	maxLinesText = 256 << 10
	lineSpan     = 256 << 20 // bytes that are read to find the ends of long lines
	keyLines     = 128       // lines before a window in which a private key may begin
	countBuffer  = 1 << 20
)

// A Place is a window that is asked for: lines Line-Before to Line+After of an artifact, named as
// the incident names it. Where Offset is not negative it says where a byte of line Line is, after
// decompression, and Line may be 0 where its number is not known.
type Place struct {
	Artifact      string
	Line, Offset  int64
	Before, After int
}

// ErrNoLines says that nothing among the paths has the name of the artifact that was asked for.
var ErrNoLines = artifact.ErrNoArtifact

// Lines opens the artifact of a place among o's paths again and shows its lines: at most 1000,
// none longer than 4 KiB, 256 KiB in all, secrets masked, control characters taken out. It reads no
// more of a large plain file than it must. An artifact that has no lines, or that cannot be opened
// again, gives an empty window with the reason among its limits; the error is ErrNoLines, or ctx's.
func Lines(ctx context.Context, o Options, p Place) (*incident.Lines, error) {
	p.Line, p.Offset = min(max(p.Line, 0), 1<<60), max(p.Offset, -1)
	if p.Line == 0 && p.Offset < 0 {
		p.Line = 1
	}
	p.Before = min(max(p.Before, 0), maxLines-1)
	p.After = min(max(p.After, 0), maxLines-1-p.Before)
	w := &window{Place: p, out: &incident.Lines{Schema: incident.LinesSchema, Artifact: visible(p.Artifact), Lines: []incident.Line{}, Limits: []string{}}}
	f, err := artifact.Find(ctx, o.Paths, p.Artifact, o.look())
	switch {
	case errors.Is(err, artifact.ErrGone):
		w.limit("%s: %v", w.out.Artifact, err)
		return w.out, nil
	case errors.Is(err, artifact.ErrNoArtifact):
		if kept, kerr := w.kept(ctx, o); kerr != nil || kept {
			return w.out, kerr
		}
		return nil, fmt.Errorf("show lines of %s: %w", visible(p.Artifact), err)
	case err != nil:
		return nil, err
	}
	defer f.Close()
	w.out.Kind = f.Kind
	if what := artifact.NotText(f.Head); what != "" && f.Fate != "read" {
		if f.Kind != "" {
			what += ", read as " + f.Kind
		}
		w.limit("%s is %s; it has no lines to show", w.out.Artifact, what)
		return w.out, nil
	}
	if err := w.read(ctx, &f.File); err != nil {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		w.limit("reading stopped: %s", redact.Text(visible(err.Error())))
	}
	w.show()
	return w.out, nil
}

// A window is one on its way.
type window struct {
	Place
	out   *incident.Lines
	lines []rawLine // in order; the first may be before the window, where a key can begin
	ended bool      // the artifact ends with the last of them
	total int64     // lines of the artifact, where it ends before the window
}

func (w *window) limit(format string, args ...any) {
	w.out.Limits = append(w.out.Limits, fmt.Sprintf(format, args...))
}

// read finds the lines of the window.
func (w *window) read(ctx context.Context, f *artifact.File) error {
	if f.At == nil {
		if w.Line == 0 {
			if err := w.number(ctx, f.Open); err != nil || w.Line == 0 {
				return err
			}
		}
		rc, err := f.Open()
		if err != nil {
			return err
		}
		defer rc.Close()
		return w.forward(ctx, rc, 1, 0)
	}
	at, closer, err := f.At()
	if err != nil {
		return err
	}
	defer closer.Close()
	size := max(f.Size, 0)
	whole := func() (io.ReadCloser, error) { return io.NopCloser(io.NewSectionReader(at, 0, size)), nil }
	n, start := int64(1), int64(0)
	if w.Offset >= 0 {
		if w.Line == 0 {
			if err := w.number(ctx, whole); err != nil || w.Line == 0 {
				return err
			}
		}
		if n, start, err = w.seek(ctx, at, size); err != nil {
			return err
		}
	}
	return w.forward(ctx, io.NewSectionReader(at, start, size-start), n, start)
}

// number counts up to the offset in which line it lies.
func (w *window) number(ctx context.Context, open func() (io.ReadCloser, error)) error {
	rc, err := open()
	if err != nil {
		return err
	}
	defer rc.Close()
	buf := make([]byte, countBuffer)
	n := int64(1)
	for left := w.Offset; left > 0; {
		if err := ctx.Err(); err != nil {
			return err
		}
		k, err := rc.Read(buf[:min(left, int64(len(buf)))])
		n += int64(bytes.Count(buf[:k], newline))
		left -= int64(k)
		if err == io.EOF && left > 0 {
			w.limit("%s has %d bytes; there is none at %d", w.out.Artifact, w.Offset-left, w.Offset)
			return nil
		}
		if err != nil && err != io.EOF {
			return err
		}
	}
	w.Line = n
	return nil
}

// seek returns the number and the start of a line at or before the begin of the window, which
// lies before the offset; those of the first line where the number that was given cannot be right.
func (w *window) seek(ctx context.Context, at io.ReaderAt, size int64) (n, start int64, err error) {
	if w.Offset >= size {
		return 1, 0, nil
	}
	start, back, err := startOf(ctx, at, w.Offset, w.Before+keyLines)
	if n = w.Line - int64(back); err != nil || start == 0 && n != 1 || n < 1 {
		return 1, 0, err
	}
	return n, start, nil
}

// startOf looks backwards from off for the start of the line that holds it, and of up to lines
// lines before it: the offset of the earliest found, and how many lines that is before. Where
// lines are long it ends at the last start that it found.
func startOf(ctx context.Context, at io.ReaderAt, off int64, lines int) (start int64, back int, err error) {
	buf := make([]byte, countBuffer/4)
	start = -1
	for end := off; end > 0 && (start < 0 || off-end < lineSpan); {
		if err := ctx.Err(); err != nil {
			return 0, 0, err
		}
		from := max(0, end-int64(len(buf)))
		b := buf[:end-from]
		if n, err := at.ReadAt(b, from); n < len(b) {
			if err == nil || err == io.EOF {
				err = io.ErrUnexpectedEOF // it became shorter meanwhile
			}
			return 0, 0, err
		}
		for i := bytes.LastIndexByte(b, '\n'); i >= 0; i = bytes.LastIndexByte(b, '\n') {
			if start >= 0 {
				back++
			}
			if start = from + int64(i) + 1; back == lines {
				return start, back, nil
			}
			b = b[:i]
		}
		end = from
		if end == 0 {
			if start >= 0 {
				back++
			}
			return 0, back, nil
		}
	}
	return max(start, 0), back, nil
}

var newline = []byte{'\n'}

// forward reads from the start of line n, at off, to the end of the window: what is before it is
// counted only.
func (w *window) forward(ctx context.Context, r io.Reader, n, off int64) error {
	first, last := w.Line-int64(w.Before)-keyLines, w.Line+int64(w.After)
	buf := make([]byte, countBuffer)
	begun, read := false, int64(0) // bytes of the current line are there; bytes read in the window
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		k, err := r.Read(buf)
		for b := buf[:k]; len(b) > 0; {
			if n > last {
				return nil // there is more
			}
			if n < first {
				skipped, ends := pass(b, first-n)
				n += ends
				off += int64(skipped)
				begun = b[skipped-1] != '\n'
				b = b[skipped:]
				continue
			}
			if len(w.lines) == 0 || w.lines[len(w.lines)-1].n != n {
				w.lines = append(w.lines, rawLine{n: n, offset: off, want: -1})
				if l := &w.lines[len(w.lines)-1]; n == w.Line && w.Offset-off > lineHead/2 {
					l.want = w.Offset - off
				}
			}
			piece, ends := b, false
			if i := bytes.IndexByte(b, '\n'); i >= 0 {
				piece, ends = b[:i], true
			}
			w.lines[len(w.lines)-1].add(piece)
			begun = true
			used := len(piece)
			if ends {
				used++
				n++
				begun = false
			}
			off += int64(used)
			read += int64(used)
			b = b[used:]
		}
		switch {
		case err == io.EOF:
			w.ended = true
			if w.total = n - 1; begun {
				w.total = n
			}
			return nil
		case err != nil:
			return err
		case read > lineSpan:
			w.lines[len(w.lines)-1].open = true
			w.limit("the lines are longer than %s together; the rest was not read", evidence.Bytes(lineSpan))
			return nil
		}
	}
}

// pass returns how many bytes of b, and how many ends of lines in them, come before the line that
// is lines lines further on: all of b where it does not reach so far.
func pass(b []byte, lines int64) (size int, ends int64) {
	if n := int64(bytes.Count(b, newline)); n < lines {
		return len(b), n
	}
	at, left := 0, lines
	// Halves are counted until few lines are left, so that short lines cost no more.
	for hi := len(b); left > 8 && hi-at > 1<<10; {
		mid := (at + hi) / 2
		if c := int64(bytes.Count(b[at:mid], newline)); c < left {
			left -= c
			at = mid
		} else {
			hi = mid
		}
	}
	for ; left > 0; left-- {
		at += bytes.IndexByte(b[at:], '\n') + 1
	}
	return at, lines
}
