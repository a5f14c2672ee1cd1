package scan

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"math/bits"
	"sync"
)

// MaxLine is how many bytes of a line are handed over at most.
const MaxLine = 64 << 10

const (
	readSize = 256 << 10 // bytes asked for at once: they stay in the second-level cache
	// keepLine is how much of a line that has not ended is kept. A longer one is
	// handed over before its end is known.
	keepLine = 1 << 20
	// leftContext is how many bytes before a hit are given of a long line.
	leftContext = MaxLine / 4
)

// A Line is a line that was visited. It is valid until visit returns. A \r ends
// no line: the frames of a progress bar are one line.
type Line struct {
	Number int64 // 1-based
	Offset int64 // of the line's first byte in the stream
	// Length is that of the whole line without the \n, and may exceed that of
	// Text. Of a line longer than 1 MiB it is what had been read when the
	// line was visited, and exact only where Ended is set.
	Length int64
	Ended  bool // the end of the line was seen: Length is exact
	// Text is the line without \n and without one final \r. Of a line longer than
	// MaxLine it is a window around the hits, and the line is visited once for
	// each window; windows may overlap, but each hit is in one of them only.
	Text     []byte
	WindowAt int64 // offset of Text in the line
	Hits     []Hit // Off relative to Text; none for a line that was only asked for
	Last     bool  // the stream ended without a \n after it
}

// Stats counts what Lines went through.
type Stats struct {
	Bytes         int64
	Lines         int64 // a last one without \n included
	Visited       int64 // calls of visit
	LongLines     int64 // lines longer than MaxLine
	EndsInNewline bool  // the last byte was \n
}

// scratch is the working memory of one run of Lines.
type scratch struct {
	buf  []byte
	hits []Hit
	// marks has a bit for each newline of what was scanned last, if the matcher is
	// marking; it is nil otherwise.
	marks []uint64
	pass  pass
}

var scratches = sync.Pool{New: func() any { return &scratch{buf: make([]byte, readSize+MaxLine)} }}

// scan looks for the atoms in text, a part of buf.
func (w *walk) scan(text []byte) {
	if words := len(text)/64 + 1; w.m.marking && len(w.marks) < words {
		w.marks = make([]uint64, len(w.buf)/64+1)
	}
	w.hits = w.m.scan(&w.pass, text, w.hits[:0], w.marks)
}

// Lines reads r to its end and calls visit for each line with a hit, and for
// each line after one for which visit returned true; of a line with several
// windows one true is enough. Hits that reach over the end of a line don't
// count. It stops between two reads when ctx is done and returns ctx.Err().
// When r fails, what was read before is visited and the error, with its
// position, returned.
func (m *Matcher) Lines(ctx context.Context, r io.Reader, visit func(*Line) (more bool)) (Stats, error) {
	work := scratches.Get().(*scratch)
	defer scratches.Put(work)
	w := &walk{m: m, visit: visit, scratch: work, number: 1}
	var failed error
	held, empty := 0, 0 // bytes of buf in use; reads in turn that gave nothing
	for failed == nil {
		if err := ctx.Err(); err != nil {
			return w.stats, err
		}
		if held+readSize > len(w.buf) {
			w.buf = append(w.buf, make([]byte, len(w.buf))...)
		}
		n, err := r.Read(w.buf[held : held+readSize])
		if n > 0 {
			w.stats.Bytes += int64(n)
			w.stats.EndsInNewline = w.buf[held+n-1] == '\n'
			held = w.take(held, held+n)
			empty = 0
		} else if empty++; empty == 100 && err == nil {
			err = io.ErrNoProgress
		}
		failed = err
	}
	w.stats.Lines = w.number - 1
	if held > 0 {
		w.stats.Lines++
		w.finish(held)
	}
	if failed == io.EOF {
		return w.stats, nil
	}
	return w.stats, fmt.Errorf("reading after byte %d: %w", w.stats.Bytes, failed)
}

// A walk is the state of Lines between two reads. buf starts with the line
// that has not ended yet or, inside a line too long to keep, with a part of it.
type walk struct {
	m     *Matcher
	visit func(*Line) bool
	*scratch
	stats  Stats
	line   Line  // what is handed to visit, reused
	number int64 // of the line that buf starts in
	offset int64 // of buf in the stream
	want   bool  // the line that buf starts in was asked for

	// Inside a line too long to keep: where it starts in the stream, up to where
	// in the stream its hits were handed over, and whether the next line was
	// asked for.
	inside bool
	start  int64
	done   int64
	more   bool
}

// take goes through buf[:end], of which the bytes before fresh hold no newline,
// and returns how many bytes it has kept at the start of buf.
func (w *walk) take(fresh, end int) int {
	from := 0
	if w.inside {
		nl := bytes.IndexByte(w.buf[fresh:end], '\n')
		if nl < 0 {
			return w.hold(end)
		}
		from = fresh + nl
		w.endLong(from, false)
		from++
		fresh = from
	}
	if nl := bytes.LastIndexByte(w.buf[fresh:end], '\n'); nl >= 0 {
		last := fresh + nl + 1
		w.whole(from, last)
		from = last
	}
	if from > 0 {
		w.offset += int64(from)
		end = copy(w.buf, w.buf[from:end])
	}
	return w.hold(end)
}

// hold lets buf grow to keepLine bytes of an unfinished line. Then it hands over
// the hits in them and keeps the end only: MaxLine for those whose surroundings
// are not read yet, and what stands before these.
func (w *walk) hold(end int) int {
	if end < keepLine {
		return end
	}
	if !w.inside {
		w.inside, w.start, w.done, w.more = true, w.offset, w.offset, false
		w.stats.LongLines++
	}
	w.windows(end, end-MaxLine, false, false)
	cut := end - MaxLine - leftContext
	w.offset += int64(cut)
	return copy(w.buf, w.buf[cut:end])
}

// endLong ends the line that was too long to keep at buf[end].
func (w *walk) endLong(end int, last bool) {
	w.windows(end, end, true, last)
	w.inside = false
	w.want = w.more
	w.number++
}

// finish visits the last line, buf[:end], which no newline ends.
func (w *walk) finish(end int) {
	if w.inside {
		w.endLong(end, true)
		return
	}
	w.scan(w.buf[:end])
	if end > MaxLine {
		w.stats.LongLines++
	}
	if w.want || len(w.hits) > 0 {
		w.one(0, end, w.hits, true)
	}
}

// windows hands over the hits of the long line that buf[:end] belongs to which
// start before limit and were not handed over yet. ended says that the line's
// end is known to be at end.
func (w *walk) windows(end, limit int, ended, last bool) {
	w.scan(w.buf[:end])
	done := int(w.done - w.offset)
	hits := w.hits
	for len(hits) > 0 && hits[0].Off < done {
		hits = hits[1:]
	}
	for n := len(hits); n > 0 && hits[n-1].Off >= limit; n-- {
		hits = hits[:n-1]
	}
	w.done = w.offset + int64(limit)
	w.line = Line{Number: w.number, Offset: w.start, Length: w.offset + int64(end) - w.start, Ended: ended, Last: last}
	if w.long(0, end, hits) {
		w.more = true
	}
}

// whole goes through buf[from:to], which holds whole lines, each with its \n.
// The first is line w.number.
func (w *walk) whole(from, to int) {
	b := w.buf[from:to]
	w.scan(b)
	text := lines{text: b}
	if w.m.marking {
		text.marks = w.marks
	}
	number := w.number
	hits := w.hits
	at := 0 // start of line number in b
	for at < len(b) {
		if !w.want {
			if len(hits) == 0 {
				break
			}
			start, skipped := text.of(at, hits[0].Off)
			number += skipped
			at = start
		}
		w.number = number
		end := text.end(at)
		n := 0
		for n < len(hits) && hits[n].Off <= end {
			hits[n].Off += from
			n++
		}
		w.one(from+at, from+end, hits[:n], false)
		hits = hits[n:]
		at = end + 1
		number++
	}
	w.number = number + text.count(at, len(b))
	w.stats.LongLines += longLines(b)
}

var newline = []byte{'\n'}

// one visits the line buf[at:end] with those of the hits that lie inside it.
// It visits nothing when none does, unless the line was asked for.
func (w *walk) one(at, end int, hits []Hit, last bool) {
	l := &w.line // set field by field: the pointers in it change seldom
	l.Number, l.Offset, l.Length, l.Ended, l.WindowAt, l.Last = w.number, w.offset+int64(at), int64(end-at), true, 0, last
	if end-at > MaxLine {
		w.start = w.line.Offset
		w.want = w.long(at, end, hits)
		return
	}
	text := chomp(w.buf[at:end])
	n := 0
	for _, h := range hits {
		h.Off -= at
		if h.Off+len(w.m.atoms[h.Atom].Text) <= len(text) {
			hits[n] = h
			n++
		}
	}
	if n == 0 && !w.want {
		return
	}
	w.line.Text, w.line.Hits = text, hits[:n]
	w.stats.Visited++
	w.want = w.visit(&w.line)
}

// long visits the windows of the line w.line, of which buf[at:end] is there,
// that the hits need, and its start first if the line was asked for. It reports
// whether a visit asked for the next line.
func (w *walk) long(at, end int, hits []Hit) (more bool) {
	text := w.buf[at:end]
	if w.line.Ended {
		text = chomp(text)
	}
	before := w.offset + int64(at) - w.start // bytes of the line before buf[at]
	for w.want || len(hits) > 0 {
		lo := 0
		if !w.want {
			size := len(w.m.atoms[hits[0].Atom].Text)
			off := hits[0].Off - at
			lo = min(max(off-leftContext, off+size-MaxLine, 0), off)
		}
		hi := min(lo+MaxLine, len(text))
		n, inside := 0, 0
		for ; n < len(hits); n++ {
			h := hits[n]
			h.Off -= at + lo
			if h.Off+len(w.m.atoms[h.Atom].Text) > hi-lo {
				if n > 0 || w.want {
					break
				}
				continue
			}
			hits[inside] = h
			inside++
		}
		if inside > 0 || w.want {
			w.want = false
			w.line.Text, w.line.WindowAt, w.line.Hits = text[lo:hi], before+int64(lo), hits[:inside]
			w.stats.Visited++
			if w.visit(&w.line) {
				more = true
			}
		}
		hits = hits[n:]
	}
	return more
}

// chomp cuts one final \r off.
func chomp(line []byte) []byte {
	if n := len(line); n > 0 && line[n-1] == '\r' {
		return line[:n-1]
	}
	return line
}

// lines is text whose last byte is a \n, with its newlines: a bit for each byte,
// or nil where no kernel has left them.
type lines struct {
	text  []byte
	marks []uint64
}

// end returns the place of the first newline from at on.
func (l lines) end(at int) int {
	if l.marks == nil {
		return at + bytes.IndexByte(l.text[at:], '\n')
	}
	k := at / 64
	set := l.marks[k] >> (at % 64) << (at % 64)
	for set == 0 {
		k++
		set = l.marks[k]
	}
	return 64*k + bits.TrailingZeros64(set)
}

// of returns the start of the line that holds text[off], where a line starts at
// from <= off, and how many lines lie between.
func (l lines) of(from, off int) (start int, skipped int64) {
	if l.marks != nil {
		return l.marked(from, off)
	}
	// The next lines are walked along; over a longer gap counting in bulk and
	// looking back is quicker.
	const near = 1 << 10
	if off-from > near {
		n := bytes.Count(l.text[from:off], newline)
		return from + lastNewline(l.text[from:off]) + 1, int64(n)
	}
	for {
		nl := bytes.IndexByte(l.text[from:off], '\n')
		if nl < 0 {
			return from, skipped
		}
		from += nl + 1
		skipped++
	}
}

// marked is of by the marks.
func (l lines) marked(from, off int) (start int, skipped int64) {
	k, first := off/64, from/64
	set := l.marks[k] & (1<<(off%64) - 1) // the newlines before off
	start = from
	for {
		if k == first {
			set &= ^uint64(0) << (from % 64)
		}
		if set != 0 && skipped == 0 {
			start = 64*k + bits.Len64(set)
		}
		skipped += int64(bits.OnesCount64(set))
		if k == first {
			return start, skipped
		}
		k--
		set = l.marks[k]
	}
}

// count returns the number of newlines in text[from:to].
func (l lines) count(from, to int) int64 {
	if l.marks == nil {
		return int64(bytes.Count(l.text[from:to], newline))
	}
	return countMarks(l.marks, from, to)
}

// countMarks counts the marks of the bytes from from on and before to.
func countMarks(marks []uint64, from, to int) (n int64) {
	if from >= to {
		return 0
	}
	first, last := from/64, (to-1)/64
	head, tail := ^uint64(0)<<(from%64), ^uint64(0)>>(63-(to-1)%64)
	if first == last {
		return int64(bits.OnesCount64(marks[first] & head & tail))
	}
	n = int64(bits.OnesCount64(marks[first]&head) + bits.OnesCount64(marks[last]&tail))
	for _, m := range marks[first+1 : last] {
		n += int64(bits.OnesCount64(m))
	}
	return n
}

// lastNewline returns the index of the last \n in b or -1, eight bytes at a time.
func lastNewline(b []byte) int {
	const low, high = 0x0101010101010101, 0x8080808080808080
	for len(b) >= 8 {
		x := binary.LittleEndian.Uint64(b[len(b)-8:]) ^ '\n'*low
		// The highest marked byte is exact only when no lower byte borrows, so
		// zero bytes are marked without borrowing.
		if zero := ^((x&^high + ^uint64(high)) | x | ^uint64(high)); zero != 0 {
			return len(b) - 1 - bits.LeadingZeros64(zero)/8
		}
		b = b[:len(b)-8]
	}
	return bytes.LastIndexByte(b, '\n')
}

// longLines counts the lines in b, each ended by \n, that are longer than
// MaxLine. It looks at few bytes when there is none.
func longLines(b []byte) (n int64) {
	for len(b) > MaxLine {
		if nl := lastNewline(b[:MaxLine+1]); nl >= 0 {
			b = b[nl+1:]
			continue
		}
		n++
		b = b[MaxLine+1:]
		b = b[bytes.IndexByte(b, '\n')+1:]
	}
	return n
}
