// Package jsonline cuts files that hold a record a line (JSON lines, tables of a tracker) into their lines, each
// with its place and whether it is whole, in bounded memory.
package jsonline

import (
	"bufio"
	"bytes"
	"context"
	"io"
)

// A Line is one line without its end, blanks around it included. Text is valid until the
// function that was given it returns.
type Line struct {
	Text   []byte
	N      int64 // from 1
	Offset int64 // of its first byte in the file
	Size   int64 // bytes with the line end
	Ended  bool  // a line end follows: without one the file may have been cut here
	Long   bool  // longer than the bound: Text is its beginning
}

// Each gives every line of r that is not blank to f. Of a line of more than max bytes f gets the
// first max. A byte order mark before the first line and zero bytes around lines are left out of Text,
// and counted. Each ends with the error of f, or ctx's, or that of r; nil at the end.
func Each(ctx context.Context, r io.Reader, max int, f func(Line) error) error {
	in := bufio.NewReaderSize(r, 64<<10)
	var text []byte
	off := int64(0)
	for n := int64(1); ; n++ {
		if err := ctx.Err(); err != nil {
			return err
		}
		l := Line{N: n, Offset: off}
		text = text[:0]
		var err error
		for chunks := 0; ; chunks++ {
			if chunks%64 == 63 && ctx.Err() != nil {
				return ctx.Err()
			}
			var part []byte
			part, err = in.ReadSlice('\n')
			l.Size += int64(len(part))
			if room := max - len(text); len(part) > room {
				l.Long = l.Long || len(bytes.TrimRight(part[room:], "\r\n")) > 0
				part = part[:room]
			}
			text = append(text, part...)
			if err != bufio.ErrBufferFull {
				break
			}
		}
		if err != nil && err != io.EOF {
			return err
		}
		off += l.Size
		l.Ended = err == nil
		l.Text = bytes.Trim(bytes.TrimRight(text, "\r\n"), "\x00")
		if n == 1 {
			l.Text = bytes.TrimPrefix(l.Text, []byte("\ufeff"))
		}
		// Place of the text: what was left out before it.
		if i := bytes.Index(text, l.Text); len(l.Text) > 0 && i > 0 {
			l.Offset += int64(i)
			l.Size -= int64(i)
		}
		if len(bytes.TrimSpace(l.Text)) > 0 {
			if err := f(l); err != nil {
				return err
			}
		}
		if err == io.EOF {
			return nil
		}
	}
}
