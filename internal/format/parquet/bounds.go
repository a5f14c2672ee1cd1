package parquet

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// Bounds of what is read of one file. The library trusts the lengths that a file states,
// so that they are looked at before it sees them.
const (
	maxFooter   = 8 << 20
	maxElements = 1 << 18   // of all lists of the footer
	maxPage     = 64 << 20  // bytes of a page, compressed and not
	maxValues   = 1 << 24   // values of a page
	maxPages    = 1 << 20   // of a file
	maxOpen     = 512 << 20 // bytes of the largest pages of all columns
	pageHeader  = 64 << 10  // bytes of a page's header that are looked at
)

var errBound = errors.New("over limit")

// errFormat says that a file is not as the format has it.
var errFormat = errors.New("not a whole Parquet file")

// A compact reads the values of Thrift's compact protocol:
//
//	field    delta of the id (4 bits), type (4 bits); delta 0: the id follows as zigzag varint
//	integer  zigzag varint
//	binary   length as varint, bytes
//	list     size (4 bits, 15: a varint follows), type of elements (4 bits)
//
// It follows a value only to learn where it ends and which integers it holds.
type compact struct {
	b        []byte
	i        int
	elements int
	// ints is called with the ids of the fields that lead to an integer.
	ints func(path []int16, v int64)
	path []int16
}

func (c *compact) byte() (byte, error) {
	if c.i >= len(c.b) {
		return 0, io.ErrUnexpectedEOF
	}
	c.i++
	return c.b[c.i-1], nil
}

func (c *compact) varint() (uint64, error) {
	v, n := binary.Uvarint(c.b[c.i:])
	if n <= 0 {
		return 0, io.ErrUnexpectedEOF
	}
	c.i += n
	return v, nil
}

// structure reads a struct to its end.
func (c *compact) structure(depth int) error {
	if depth > 32 {
		return fmt.Errorf("%w: nested too deep", errFormat)
	}
	id := int16(0)
	for {
		b, err := c.byte()
		if err != nil || b == 0 {
			return err
		}
		if d := b >> 4; d > 0 {
			id += int16(d)
		} else {
			v, err := c.varint()
			if err != nil {
				return err
			}
			id = int16(zigzag(v))
		}
		c.path = append(c.path, id)
		err = c.value(b&15, depth, false)
		c.path = c.path[:len(c.path)-1]
		if err != nil {
			return err
		}
	}
}

func zigzag(v uint64) int64 { return int64(v>>1) ^ -int64(v&1) }

func (c *compact) value(kind byte, depth int, element bool) error {
	switch kind {
	case 1, 2: // a boolean is its type, and a byte in lists
		if element {
			c.i++
		}
	case 3:
		c.i++
	case 4, 5, 6:
		v, err := c.varint()
		if err != nil {
			return err
		}
		if c.ints != nil {
			c.ints(c.path, zigzag(v))
		}
	case 7:
		c.i += 8
	case 8:
		n, err := c.varint()
		if err != nil {
			return err
		}
		if n > uint64(len(c.b)-c.i) {
			return io.ErrUnexpectedEOF
		}
		c.i += int(n)
	case 9, 10:
		return c.list(depth)
	case 12:
		return c.structure(depth + 1)
	default:
		return fmt.Errorf("%w: a value of type %d", errFormat, kind)
	}
	if c.i > len(c.b) {
		return io.ErrUnexpectedEOF
	}
	return nil
}

func (c *compact) list(depth int) error {
	b, err := c.byte()
	if err != nil {
		return err
	}
	n := uint64(b >> 4)
	if n == 15 {
		if n, err = c.varint(); err != nil {
			return err
		}
	}
	if n > uint64(len(c.b)-c.i) {
		return io.ErrUnexpectedEOF
	}
	if c.elements += int(n); c.elements > maxElements {
		return fmt.Errorf("%w: more than %d parts in its description", errBound, maxElements)
	}
	for range n {
		if err := c.value(b&15, depth+1, true); err != nil {
			return err
		}
	}
	return nil
}

// footer checks the description at the end of a file: its length, 4 bytes, and the magic
// bytes PAR1 follow it.
func footer(r io.ReaderAt, size int64) error {
	var tail [8]byte
	if size < 12 {
		return errFormat
	}
	if _, err := r.ReadAt(tail[:], size-8); err != nil {
		return err
	}
	n := int64(binary.LittleEndian.Uint32(tail[:4]))
	switch {
	case string(tail[4:]) != "PAR1" || n > size-12:
		return errFormat
	case n > maxFooter:
		return fmt.Errorf("%w: its description has more than %d bytes", errBound, maxFooter)
	}
	b := make([]byte, n)
	if _, err := r.ReadAt(b, size-8-n); err != nil {
		return err
	}
	c := compact{b: b}
	if err := c.structure(0); err != nil {
		return fmt.Errorf("%w: its description: %w", errFormat, err)
	}
	return nil
}

// A page is the header of one.
type page struct {
	compressed, size, values int64
	levels                   int64 // bytes before the compressed ones, in pages of the second version
}

// pages checks the pages of a column chunk and returns the size of its largest.
func pages(r io.ReaderAt, from, length int64, codec int32, count *int) (largest int64, err error) {
	buf := make([]byte, pageHeader)
	for at, end := from, from+length; at < end; {
		if *count++; *count > maxPages {
			return 0, fmt.Errorf("%w: more than %d pages", errBound, maxPages)
		}
		b := buf[:min(int64(len(buf)), end-at)]
		if _, err := r.ReadAt(b, at); err != nil && err != io.EOF {
			return 0, err
		}
		var p page
		c := compact{b: b, ints: func(path []int16, v int64) {
			switch {
			case len(path) == 1 && path[0] == 2:
				p.size = v
			case len(path) == 1 && path[0] == 3:
				p.compressed = v
			case len(path) == 2 && path[1] == 1 && (path[0] == 5 || path[0] == 7 || path[0] == 8):
				p.values = v
			case len(path) == 2 && path[0] == 8 && (path[1] == 5 || path[1] == 6):
				p.levels += v
			}
		}}
		if err := c.structure(0); err != nil {
			return 0, fmt.Errorf("%w: the page at byte %d: %w", errFormat, at, err)
		}
		body := at + int64(c.i)
		switch {
		case p.compressed < 0 || p.size < 0 || p.values < 0 || p.levels < 0 || p.levels > p.compressed || p.compressed > end-body:
			return 0, fmt.Errorf("%w: the page at byte %d is longer than its column", errFormat, at)
		case p.compressed > maxPage || p.size > maxPage || p.values > maxValues:
			return 0, fmt.Errorf("%w: the page at byte %d has more than %d bytes or %d values", errBound, at, maxPage, maxValues)
		}
		if err := expands(r, body, p, codec); err != nil {
			return 0, fmt.Errorf("the page at byte %d: %w", at, err)
		}
		largest = max(largest, p.size+p.compressed+8*p.values)
		at = body + p.compressed
	}
	return largest, nil
}

// Compression codecs by the numbers of the format.
const (
	uncompressed = 0
	snappy       = 1
	gzip         = 2
	zstd         = 6
)

// gzipRatio is how many bytes one byte of deflate can become.
const gzipRatio = 1032

// expands checks that the bytes of a page do not become more than it states, by what their
// compression says of it.
func expands(r io.ReaderAt, at int64, p page, codec int32) error {
	switch codec {
	case uncompressed:
		return nil
	case gzip:
		if p.compressed*gzipRatio > 4*maxPage {
			return fmt.Errorf("%w: %d bytes of gzip may be too many to unpack", errBound, p.compressed)
		}
		return nil
	case snappy, zstd:
	default:
		return fmt.Errorf("%w: compression %d is not read", errBound, codec)
	}
	b := make([]byte, p.compressed-p.levels)
	if _, err := r.ReadAt(b, at+p.levels); err != nil {
		return err
	}
	if codec == snappy {
		if n, k := binary.Uvarint(b); (k <= 0 || n > maxPage) && len(b) > 0 {
			return fmt.Errorf("%w: its snappy block states %d bytes", errFormat, n)
		}
		return nil
	}
	return frames(b)
}

// frames counts the blocks of Zstandard frames (RFC 8878, 3.1.1), each of which becomes at
// most 128 KiB.
func frames(b []byte) error {
	magic := []byte{0x28, 0xb5, 0x2f, 0xfd}
	blocks := 0
	for len(b) > 4 {
		if string(b[:4]) != string(magic) {
			return fmt.Errorf("%w: not a Zstandard frame", errFormat)
		}
		flags := b[4]
		head := 5 + [4]int{0, 1, 2, 4}[flags&3] + [4]int{0, 2, 4, 8}[flags>>6]
		if flags&0x20 == 0 {
			head++ // window
		} else if flags>>6 == 0 {
			head++ // size of one byte
		}
		if head > len(b) {
			return io.ErrUnexpectedEOF
		}
		b = b[head:]
		for last := false; !last; {
			if len(b) < 3 {
				return io.ErrUnexpectedEOF
			}
			h := uint32(b[0]) | uint32(b[1])<<8 | uint32(b[2])<<16
			n := int(h >> 3)
			if h>>1&3 == 1 {
				n = 1
			}
			if last = h&1 == 1; n > len(b)-3 {
				return io.ErrUnexpectedEOF
			}
			b = b[3+n:]
			if blocks++; blocks > 2*maxPage>>17 {
				return fmt.Errorf("%w: its Zstandard frames may become more than %d bytes", errBound, 2*maxPage)
			}
		}
		if flags&4 != 0 {
			b = b[min(4, len(b)):]
		}
	}
	return nil
}
