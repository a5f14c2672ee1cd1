package jsontree

import "bytes"

// block is how many bytes are looked at for one line number.
const block = 16 << 10

// Lines numbers the lines of a document.
type Lines struct {
	data   []byte
	before []int // newlines before each block
}

// NewLines returns the numbering of data, which must not change.
func NewLines(data []byte) *Lines {
	l := &Lines{data: data}
	n := 0
	for at := 0; at < len(data); at += block {
		l.before = append(l.before, n)
		n += bytes.Count(data[at:min(at+block, len(data))], []byte("\n"))
	}
	l.before = append(l.before, n)
	return l
}

// At returns the line of an offset, counted from 1.
func (l *Lines) At(off int) int {
	i := min(off/block, len(l.before)-1)
	return l.before[i] + bytes.Count(l.data[min(i*block, off):off], []byte("\n")) + 1
}
