// Package leveldblog reads and writes the record log that W&B and SwanLab keep of a run: the
// log format of LevelDB behind a header of seven bytes, with another checksum.
//
//	file    header  4 bytes name ":W&B" or ":SWL" · 2 bytes magic · 1 byte version
//	        chunks  in blocks of 32768 bytes, counted from the first byte of the file
//	chunk   uint32  checksum: CRC-32 IEEE over type and payload, little-endian, not masked
//	        uint16  bytes of payload, little-endian
//	        uint8   1 full, 2 first, 3 middle, 4 last
//	        payload
//
// No chunk crosses the end of a block; where fewer than seven bytes are left they are zero. Where
// exactly seven are left, writers put the header of a first chunk without payload, or
// zeros. A record is a full chunk, or a first one, any number in the middle, and a last.
//
// Sources: wandb core/pkg/leveldb (record.go, wandb 0.28), wandb/sdk/internal/datastore.py (0.12 to
// 0.19), swanlab/data/porter/datastore.py (0.6).
package leveldblog

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
)

const (
	// HeaderSize is the length of a file's header, Block that of its blocks.
	HeaderSize = 7
	Block      = 32 << 10
	// MaxRecord bounds the records that are put together; a longer one is damage.
	MaxRecord = 64 << 20

	chunkHeader = 7
)

const (
	full = 1 + iota
	first
	middle
	last
)

// ErrHeader: the file does not begin with the name and magic asked for.
var ErrHeader = errors.New("not a record log: its header is missing")

// A Kind is what is wrong with a stretch of a log.
type Kind string

const (
	TruncatedTail Kind = "truncated-tail" // the file ends within a record
	BadChecksum   Kind = "bad-crc"        // a chunk is not what was written
	BadRecord     Kind = "bad-record"     // chunks that make no record, or a record over the bound
	ZeroFill      Kind = "zero-fill"      // zeros where a chunk should stand
)

// A Damage is a stretch of a log that gives no record. It is no end: reading
// goes on behind it.
type Damage struct {
	Kind          Kind
	Offset, Bytes int64 // of the stretch in the file
	Text          string
}

func (d *Damage) Error() string {
	return fmt.Sprintf("%s: %s (%d bytes from byte %d on)", d.Kind, d.Text, d.Bytes, d.Offset)
}

// A Record is one record of a log.
type Record struct {
	Data   []byte // valid until the next call of Next
	Offset int64  // of its first chunk in the file
	Length int64  // up to the end of its last chunk, headers included
}

// A Reader reads the records of a log in order. After damage it goes on with the first
// record that begins in a later block, as W&B's own reader does when it recovers.
type Reader struct {
	src   io.Reader
	ident string
	err   error // of src, once the present block is used up

	buf     []byte // one block
	block   []byte // what of it the file has
	pos     int    // next chunk in block
	base    int64  // offset of block in the file
	started bool

	rec    []byte // record of several chunks
	recAt  int64
	inside bool // a record has begun

	harm    *Damage // being skipped
	version byte
	limit   int    // MaxRecord
	hold    Record // found behind harm, to be returned next
	held    bool
}

// NewReader returns a reader of a log whose header begins with ident, which is name and magic.
func NewReader(src io.Reader, ident string) *Reader {
	return &Reader{src: src, ident: ident, buf: make([]byte, Block), limit: MaxRecord}
}

// Version is the header's last byte. It is known after the first call of Next.
func (r *Reader) Version() byte { return r.version }

// Next returns the next record. A *Damage as error is not the end: call Next again. io.EOF is the
// clean end, ErrHeader says that the file is no such log, and any other error comes from the source.
func (r *Reader) Next() (Record, error) {
	if !r.started {
		if err := r.start(); err != nil {
			return Record{}, err
		}
	}
	if r.held {
		r.held = false
		return r.hold, nil
	}
	for {
		rec, ok, err := r.chunk()
		switch {
		case err != nil:
			if d := r.lost(r.end()); d != nil {
				return Record{}, d
			}
			return Record{}, err
		case !ok:
			continue
		}
		if d := r.lost(rec.Offset); d != nil {
			r.hold, r.held = rec, true
			return Record{}, d
		}
		return rec, nil
	}
}

// start reads the first block and its header.
func (r *Reader) start() error {
	r.fill()
	if len(r.block) < HeaderSize || string(r.block[:len(r.ident)]) != r.ident {
		if r.err != nil && r.err != io.EOF {
			return r.err
		}
		return ErrHeader
	}
	r.started, r.version, r.pos = true, r.block[HeaderSize-1], HeaderSize
	return nil
}

// fill reads the next block into buf.
func (r *Reader) fill() {
	r.base += int64(len(r.block))
	n := 0
	for n < Block && r.err == nil {
		var m int
		m, r.err = r.src.Read(r.buf[n:])
		n += m
	}
	r.block, r.pos = r.buf[:n], 0
}

func (r *Reader) end() int64 { return r.base + int64(len(r.block)) }

// chunk takes the next chunk. ok is true where it completes a record.
func (r *Reader) chunk() (rec Record, ok bool, err error) {
	left := r.block[r.pos:]
	at := r.base + int64(r.pos)
	if len(left) < chunkHeader {
		if len(r.block) < Block {
			return rec, false, r.finish(left, at)
		}
		r.fill()
		if len(r.block) == 0 {
			return rec, false, r.finish(nil, r.base)
		}
		return rec, false, nil
	}
	sum, n, kind := binary.LittleEndian.Uint32(left), int(binary.LittleEndian.Uint16(left[4:])), left[6]
	switch {
	case sum == 0 && n == 0 && kind == 0:
		if Block-r.pos > chunkHeader { // padding otherwise
			r.damage(ZeroFill, at, "zeros where records should stand")
		}
		r.skip()
		return rec, false, nil
	case chunkHeader+n > Block-r.pos:
		r.damage(BadChecksum, at, fmt.Sprintf("a length of %d bytes reaches beyond its block", n))
		r.skip()
		return rec, false, nil
	case chunkHeader+n > len(left): // only in the last block
		r.damage(TruncatedTail, at, "the file ends within a record")
		r.skip()
		return rec, false, nil
	}
	body := left[chunkHeader : chunkHeader+n]
	if crc32.ChecksumIEEE(left[6:chunkHeader+n]) != sum {
		r.damage(BadChecksum, at, "the checksum does not match")
		r.skip()
		return rec, false, nil
	}
	r.pos += chunkHeader + n
	switch kind {
	case full, first:
		if r.inside {
			r.damage(BadRecord, r.recAt, "a record has no end: another begins")
		}
		if r.inside = kind == first; r.inside {
			r.rec, r.recAt = append(r.rec[:0], body...), at
			return rec, false, nil
		}
		return Record{Data: body, Offset: at, Length: int64(chunkHeader + n)}, true, nil
	case middle, last:
		if !r.inside {
			if r.harm == nil {
				r.damage(BadRecord, at, "a record has no beginning")
			}
			return rec, false, nil
		}
		if len(r.rec)+n > r.limit {
			r.damage(BadRecord, r.recAt, "over limit: a record longer than 64 MiB")
			return rec, false, nil
		}
		r.rec = append(r.rec, body...)
		if kind == middle {
			return rec, false, nil
		}
		r.inside = false
		return Record{Data: r.rec, Offset: r.recAt, Length: r.base + int64(r.pos) - r.recAt}, true, nil
	}
	r.damage(BadRecord, at, fmt.Sprintf("a chunk of unknown type %d", kind))
	return rec, false, nil
}

// finish notes what the end of the file cuts off, and returns the source's error.
func (r *Reader) finish(left []byte, at int64) error {
	switch {
	case r.inside:
		r.damage(TruncatedTail, r.recAt, "the file ends within a record")
	case !zero(left):
		r.damage(TruncatedTail, at, "the file ends within a record")
	}
	r.skip()
	return r.err
}

// damage notes that nothing is to be had from at on. The record that has begun is lost
// with it.
func (r *Reader) damage(kind Kind, at int64, text string) {
	if r.inside {
		r.inside, at = false, min(at, r.recAt)
	}
	if r.harm == nil {
		r.harm = &Damage{Kind: kind, Offset: at, Text: text}
	}
}

// skip leaves the rest of the block.
func (r *Reader) skip() { r.pos = len(r.block) }

// lost returns the damage before a place at which reading goes on.
func (r *Reader) lost(until int64) *Damage {
	d := r.harm
	r.harm = nil
	if d != nil {
		d.Bytes = until - d.Offset
	}
	return d
}

func zero(b []byte) bool {
	for _, c := range b {
		if c != 0 {
			return false
		}
	}
	return true
}
