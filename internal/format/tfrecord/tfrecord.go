// Package tfrecord reads and writes the record framing of TensorFlow, in which TensorBoard's
// event files are written (tensorflow/core/lib/io/record_writer.h, unchanged since 2015;
// torch and tensorboardX write the same). A file is a sequence of records and nothing
// else:
//
//	8 bytes   length of the data, little endian
//	4 bytes   masked CRC-32C of those 8 bytes, little endian
//	n bytes   data
//	4 bytes   masked CRC-32C of the data, little endian
//
// The mask turns the checksum c into (c>>15 | c<<17) + 0xa282ead8, modulo 2^32.
//
// TensorBoard's own loaders end a file at the first record that fails its checksum. The
// Reader goes on behind it.
package tfrecord

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"
)

const (
	// HeaderSize is the length with its checksum, FooterSize the checksum of the data.
	HeaderSize = 12
	FooterSize = 4
	// MaxRecord is the most data of one record that a Reader returns, in bytes.
	MaxRecord = 64 << 20

	window = 256 << 10 // buffer, which grows for longer records only
	// What looking for the next record may cost in checksums that turn out not to
	// match, before only short records are still looked for.
	maxTrial   = 1 << 30
	shortTrial = 4 << 10
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Checksum is the masked CRC-32C of b.
func Checksum(b []byte) uint32 {
	c := crc32.Checksum(b, castagnoli)
	return (c>>15 | c<<17) + 0xa282ead8
}

// Header reads the length that a record begins with; ok is false where its checksum
// does not match or b has less than HeaderSize bytes.
func Header(b []byte) (length uint64, ok bool) {
	if len(b) < HeaderSize {
		return 0, false
	}
	return binary.LittleEndian.Uint64(b), Checksum(b[:8]) == binary.LittleEndian.Uint32(b[8:])
}

// Append adds data as one record to dst.
func Append(dst, data []byte) []byte {
	at := len(dst)
	dst = binary.LittleEndian.AppendUint64(dst, uint64(len(data)))
	dst = binary.LittleEndian.AppendUint32(dst, Checksum(dst[at:]))
	dst = append(dst, data...)
	return binary.LittleEndian.AppendUint32(dst, Checksum(data))
}

// A Kind is what is wrong with a part of a file.
type Kind uint8

const (
	Cut     Kind = iota // the file ends within a record
	Data                // the data of one record fails its checksum
	Framing             // no record begins here
	Zeros               // a hole, or space that was set aside and never written
	TooLong             // an intact record of more than MaxRecord
)

// A Damage is a stretch of a file that gives no record. Reading can go on behind it.
type Damage struct {
	Kind           Kind
	Offset, Length int64 // in bytes
	Records        int64 // lost, 0 if unknown
}

// Error implements error.
func (d *Damage) Error() string {
	switch d.Kind {
	case Cut:
		return fmt.Sprintf("the file ends within a record: %d bytes of it are there", d.Length)
	case Data:
		return fmt.Sprintf("a record of %d bytes fails the checksum of its data", d.Length)
	case Framing:
		return fmt.Sprintf("%d bytes are no records: the checksum of the length fails", d.Length)
	case Zeros:
		return fmt.Sprintf("%d zero bytes where records should be", d.Length)
	default:
		return fmt.Sprintf("over limit: a record of %d bytes was not read", d.Length)
	}
}

// A Reader returns the records of a file one after the other. Its memory is a window of
// 256 KiB, and as much as the longest record up to MaxRecord.
type Reader struct {
	r      io.Reader
	buf    []byte
	lo, hi int   // what was read and not passed over
	off    int64 // of lo in the file
	err    error // of r

	size   int   // of the present record, framing included
	number int64 // of the present record
	head   [HeaderSize]byte
	spent  int64 // bytes of checksums that found no record
}

// NewReader returns a Reader of the file r, which it reads in large pieces.
func NewReader(r io.Reader) *Reader { return &Reader{r: r, buf: make([]byte, window)} }

// Next returns the data of the next record, valid until the following call. The error is a
// *Damage where a part of the file holds no intact record, and calling Next again goes
// on behind it; io.EOF at the end; otherwise that of the underlying reader.
func (r *Reader) Next() ([]byte, error) {
	r.pass(r.size)
	r.size = 0
	if r.hi-r.lo < HeaderSize && !r.fill(HeaderSize) {
		return nil, r.tail()
	}
	b := r.buf[r.lo:r.hi]
	if !r.known(b) {
		length, ok := Header(b)
		switch {
		case !ok && zeros(b[:HeaderSize]) == HeaderSize:
			return nil, r.zeros()
		case !ok:
			return nil, r.resync(&Damage{Kind: Framing, Offset: r.off}, 1)
		case length > MaxRecord:
			return nil, r.long(length)
		}
		copy(r.head[:], b)
	}
	n := int(binary.LittleEndian.Uint64(b))
	size := HeaderSize + n + FooterSize
	if len(b) < size {
		if !r.fill(size) {
			if r.err != io.EOF {
				return nil, r.err
			}
			return nil, r.resync(&Damage{Kind: Cut, Offset: r.off, Records: 1}, HeaderSize)
		}
		b = r.buf[r.lo:r.hi]
	}
	data := b[HeaderSize : HeaderSize+n : HeaderSize+n]
	if Checksum(data) != binary.LittleEndian.Uint32(b[HeaderSize+n:]) {
		return nil, r.bad(size)
	}
	r.size = size
	r.number++
	return data, nil
}

// Number counts the intact records up to the one that Next returned last, from 1.
func (r *Reader) Number() int64 { return r.number }

// Offset is where that record begins in the file, in bytes, and Size how many bytes it has
// there.
func (r *Reader) Offset() int64 { return r.off }

// Size is the length of the present record with its framing.
func (r *Reader) Size() int { return r.size }

// Raw is the present record with its framing, valid as long as its data.
func (r *Reader) Raw() []byte { return r.buf[r.lo : r.lo+r.size] }

// known reports whether b begins with the header that was checked last: a series of events
// is one of equal lengths.
func (r *Reader) known(b []byte) bool {
	return binary.LittleEndian.Uint64(b) == binary.LittleEndian.Uint64(r.head[:]) &&
		binary.LittleEndian.Uint32(b[8:]) == binary.LittleEndian.Uint32(r.head[8:]) && r.number > 0
}

// pass goes n bytes on, which are in the window.
func (r *Reader) pass(n int) {
	r.lo += n
	r.off += int64(n)
}

// fill reads until n bytes are in the window, and reports whether they are. The buffer
// grows with what was read, never by what a length states.
func (r *Reader) fill(n int) bool {
	for r.hi-r.lo < n {
		if r.err != nil {
			return false
		}
		if r.lo > 0 {
			r.hi = copy(r.buf, r.buf[r.lo:r.hi])
			r.lo = 0
		}
		if r.hi == len(r.buf) {
			r.buf = append(r.buf, make([]byte, len(r.buf))...)
		}
		for tries := 0; ; tries++ {
			k, err := r.r.Read(r.buf[r.hi:])
			r.hi += k
			if r.err = err; k == 0 && err == nil && tries == 100 {
				r.err = io.ErrNoProgress
			}
			if k > 0 || r.err != nil {
				break
			}
		}
	}
	return true
}

// tail ends the file: less than a header is left.
func (r *Reader) tail() error {
	n := r.hi - r.lo
	if n == 0 || r.err != io.EOF {
		return r.err
	}
	d := &Damage{Kind: Cut, Offset: r.off, Length: int64(n), Records: 1}
	if zeros(r.buf[r.lo:r.hi]) == n {
		d.Kind, d.Records = Zeros, 0
	}
	r.pass(n)
	return d
}

// bad passes over a record whose data fails its checksum: as a whole where a record or
// the end follows it, and otherwise to wherever one begins, since then bytes are
// missing.
func (r *Reader) bad(size int) error {
	d := &Damage{Kind: Data, Offset: r.off, Length: int64(size), Records: 1}
	if !r.fill(size + HeaderSize) {
		if r.err != io.EOF {
			return r.err
		}
		if r.hi-r.lo == size {
			r.pass(size)
			return d
		}
	} else if _, ok := Header(r.buf[r.lo+size : r.hi]); ok {
		r.pass(size)
		return d
	}
	return r.resync(d, HeaderSize)
}

// resync goes to the next intact record, at least from bytes on, or to the end, and
// returns d with its length.
func (r *Reader) resync(d *Damage, from int) error {
	r.pass(from)
	for r.fill(HeaderSize) {
		for ahead := 0; ahead <= r.hi-r.lo-HeaderSize; ahead++ {
			b := r.buf[r.lo+ahead : r.hi]
			// No length that is looked for has any of its upper bits.
			if binary.LittleEndian.Uint32(b[4:]) == 0 && b[3] <= MaxRecord>>24 && r.begins(ahead) {
				r.pass(ahead)
				d.Length = r.off - d.Offset
				return d
			}
		}
		r.pass(r.hi - r.lo - HeaderSize + 1)
	}
	if r.err != io.EOF {
		return r.err
	}
	r.pass(r.hi - r.lo)
	d.Length = r.off - d.Offset
	return d
}

// begins reports whether an intact record begins so many bytes ahead. It may move the
// window.
func (r *Reader) begins(ahead int) bool {
	b := r.buf[r.lo+ahead : r.hi]
	length := binary.LittleEndian.Uint64(b)
	if length == 0 && binary.LittleEndian.Uint32(b[8:]) == 0 { // zeros, of which there may be many
		return false
	}
	if length, ok := Header(b); !ok || length > MaxRecord || length > shortTrial && r.spent > maxTrial {
		return false
	}
	n := HeaderSize + int(length)
	if !r.fill(ahead + n + FooterSize) {
		return false
	}
	b = r.buf[r.lo+ahead : r.hi]
	if Checksum(b[HeaderSize:n]) == binary.LittleEndian.Uint32(b[n:]) {
		return true
	}
	r.spent += int64(length)
	return false
}

// zeros passes over a hole. The length of the record behind it may begin with zeros as
// well.
func (r *Reader) zeros() error {
	d := &Damage{Kind: Zeros, Offset: r.off}
	for {
		n := zeros(r.buf[r.lo:r.hi])
		if n < r.hi-r.lo {
			r.pass(n - 7)
			break
		}
		r.pass(n - 7)
		if !r.fill(8) {
			if r.err != io.EOF {
				return r.err
			}
			r.pass(r.hi - r.lo)
			d.Length = r.off - d.Offset
			return d
		}
	}
	ahead := 0
	for ahead < 7 && !(r.fill(ahead+HeaderSize) && r.begins(ahead)) {
		ahead++
	}
	r.pass(ahead)
	d.Length = r.off - d.Offset
	return d
}

// long passes over an intact record that is too long to be returned.
func (r *Reader) long(length uint64) error {
	d := &Damage{Kind: TooLong, Offset: r.off, Records: 1}
	r.pass(HeaderSize)
	sum := uint32(0)
	for length > 0 && r.fill(1) {
		n := int(min(length, uint64(r.hi-r.lo)))
		sum = crc32.Update(sum, castagnoli, r.buf[r.lo:r.lo+n])
		r.pass(n)
		length -= uint64(n)
	}
	if !r.fill(FooterSize) {
		if r.err != io.EOF {
			return r.err
		}
		d.Kind = Cut
		r.pass(r.hi - r.lo)
	} else {
		if (sum>>15|sum<<17)+0xa282ead8 != binary.LittleEndian.Uint32(r.buf[r.lo:]) {
			d.Kind = Data
		}
		r.pass(FooterSize)
	}
	d.Length = r.off - d.Offset
	return d
}

// zeros counts the zero bytes at the front of b.
func zeros(b []byte) int {
	n := 0
	for len(b)-n >= len(block) && bytes.Equal(b[n:n+len(block)], block[:]) {
		n += len(block)
	}
	for n < len(b) && b[n] == 0 {
		n++
	}
	return n
}

var block [64]byte
