package leveldblog

import (
	"encoding/binary"
	"hash/crc32"
	"io"
)

// A Writer writes a log, byte for byte as W&B's own writer does.
type Writer struct {
	dst   io.Writer
	block [Block]byte
	n     int // bytes of block in use
	sent  int // of them written out
	err   error
}

// NewWriter returns a writer of a log with the given header of HeaderSize bytes.
func NewWriter(dst io.Writer, header string) *Writer {
	w := &Writer{dst: dst}
	w.n = copy(w.block[:HeaderSize], header)
	return w
}

// Write appends one record. The error is that of the destination, and stays.
func (w *Writer) Write(rec []byte) error {
	for begun := false; ; begun = true {
		if Block-w.n < chunkHeader {
			clear(w.block[w.n:])
			w.n = Block
			if w.Flush(); w.err != nil {
				return w.err
			}
			w.n, w.sent = 0, 0
		}
		n := min(len(rec), Block-w.n-chunkHeader)
		kind := byte(full)
		switch ends := n == len(rec); {
		case begun && ends:
			kind = last
		case begun:
			kind = middle
		case !ends:
			kind = first
		}
		c := w.block[w.n : w.n+chunkHeader+n]
		c[6] = kind
		copy(c[chunkHeader:], rec[:n])
		binary.LittleEndian.PutUint16(c[4:], uint16(n))
		binary.LittleEndian.PutUint32(c, crc32.ChecksumIEEE(c[6:]))
		w.n += chunkHeader + n
		if rec = rec[n:]; kind == full || kind == last {
			return w.err
		}
	}
}

// Flush writes out what is held back of the present block. The end of a log needs it.
func (w *Writer) Flush() error {
	if w.err == nil && w.sent < w.n {
		_, w.err = w.dst.Write(w.block[w.sent:w.n])
		w.sent = w.n
	}
	return w.err
}
