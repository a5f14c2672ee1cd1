package artifact

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"hash/crc32"
	"hash/crc64"
	"io"

	"github.com/ulikunitz/xz/lzma"

	"github.com/inquest-dev/inquest/internal/evidence"
)

// An xzReader reads the .xz container (format 1.0.4, one LZMA2 filter) around
// the lzma package's decoder. The container is read here because that module's
// own reader allocates whatever dictionary a block header asks for, up to 4 GiB.
//
//	stream header  fd '7zXZ' 00, flags (00, check), CRC32
//	blocks         size/4-1, flags, [sizes], filter 21 01 dict, padding, CRC32; LZMA2 data, padding, check
//	index          00, count, {unpadded size, size}..., padding, CRC32
//	footer         CRC32, index size, flags, 'YZ'
//
// Streams may follow each other, with zeros in between. Of the index only the
// checksum and the number of blocks are checked. The decoder gives a chunk (at
// most 2 MiB of text, 64 KiB compressed) or nothing of it, so that much is lost
// at the end of a file that is cut.
type xzReader struct {
	in     *xzInput
	check  byte
	sum    hash.Hash // nil for none or unknown
	block  io.Reader // nil between blocks
	blocks uint64
	inside bool // in a stream
	any    bool // a stream was seen
	err    error
}

// An xzInput counts what is consumed and sums it for the checks of headers.
type xzInput struct {
	r   *bufio.Reader
	n   int64
	crc hash.Hash32 // nil outside headers
}

func (x *xzInput) Read(p []byte) (int, error) {
	n, err := x.r.Read(p)
	x.took(p[:n])
	return n, err
}

func (x *xzInput) ReadByte() (byte, error) {
	b, err := x.r.ReadByte()
	if err == nil {
		x.n++
		if x.crc != nil {
			x.crc.Write([]byte{b})
		}
	}
	return b, err
}

func (x *xzInput) took(p []byte) {
	x.n += int64(len(p))
	if x.crc != nil {
		x.crc.Write(p)
	}
}

// full reads n bytes, n being small and ours.
func (x *xzInput) full(n int) ([]byte, error) {
	b := make([]byte, n)
	_, err := io.ReadFull(x, b)
	return b, noEOF(err)
}

var errXZ = errors.New("damaged container")

func newXZ(r io.Reader) *xzReader {
	return &xzReader{in: &xzInput{r: bufio.NewReaderSize(r, 64<<10)}}
}

func (x *xzReader) Read(p []byte) (int, error) {
	for x.err == nil {
		if x.block == nil {
			x.err = x.next()
			continue
		}
		n, err := x.block.Read(p)
		if x.sum != nil {
			x.sum.Write(p[:n])
		}
		switch {
		case err == io.EOF:
			x.block = nil
			x.err = x.endBlock()
		case err != nil:
			x.err = err
		}
		if n > 0 {
			return n, nil
		}
	}
	return 0, x.err
}

// next goes to the next block, over the ends of streams; io.EOF at the end.
func (x *xzReader) next() error {
	if !x.inside {
		if err := x.streamHeader(); err != nil {
			return err
		}
	}
	x.in.crc = crc32.NewIEEE()
	size, err := x.in.ReadByte()
	if err != nil {
		return noEOF(err)
	}
	if size == 0 {
		return x.endStream()
	}
	return x.blockHeader(size)
}

func (x *xzReader) streamHeader() error {
	for {
		b, err := x.in.r.Peek(4)
		if len(b) == 0 && err == io.EOF && x.any {
			return io.EOF
		}
		if err != nil {
			return noEOF(err)
		}
		if !x.any || !bytes.Equal(b, make([]byte, 4)) {
			break
		}
		x.in.r.Discard(4)
	}
	h, err := x.in.full(12)
	if err != nil {
		return err
	}
	if string(h[:6]) != "\xfd7zXZ\x00" || h[6] != 0 || h[7] > 15 || crc32.ChecksumIEEE(h[6:8]) != binary.LittleEndian.Uint32(h[8:]) {
		return fmt.Errorf("stream header: %w", errXZ)
	}
	x.check, x.blocks, x.inside, x.any = h[7], 0, true, true
	return nil
}

func (x *xzReader) blockHeader(size byte) error {
	body, err := x.in.full(int(size)*4 - 1) // after the size byte, before the CRC
	if err != nil {
		return err
	}
	want := x.in.crc.Sum32()
	x.in.crc = nil
	crc, err := x.in.full(4)
	if err != nil {
		return err
	}
	if binary.LittleEndian.Uint32(crc) != want {
		return fmt.Errorf("block header: %w", errXZ)
	}
	flags, r := body[0], bytes.NewReader(body[1:])
	if flags&0x3f != 0 {
		return errors.New("a filter other than LZMA2")
	}
	for _, present := range []bool{flags&0x40 != 0, flags&0x80 != 0} {
		if present {
			if _, err := binary.ReadUvarint(r); err != nil {
				return fmt.Errorf("block header: %w", errXZ)
			}
		}
	}
	var filter [3]byte
	if _, err := io.ReadFull(r, filter[:]); err != nil || filter[1] != 1 || filter[2] > 40 {
		return fmt.Errorf("block header: %w", errXZ)
	}
	if filter[0] != 0x21 {
		return errors.New("a filter other than LZMA2")
	}
	dict := int64(2|filter[2]&1) << (filter[2]/2 + 11)
	if dict > maxWindow {
		return &LimitError{"xz dictionary of " + evidence.Bytes(dict)}
	}
	x.blocks++
	x.sum = nil
	switch x.check {
	case 1:
		x.sum = crc32.NewIEEE()
	case 4:
		x.sum = crc64.New(crc64.MakeTable(crc64.ECMA))
	case 10:
		x.sum = sha256.New()
	}
	x.in.n = 0
	x.block, err = lzma.Reader2Config{DictCap: int(dict)}.NewReader2(x.in)
	return err
}

// endBlock reads the padding and the check of a block.
func (x *xzReader) endBlock() error {
	if _, err := x.in.full(int(-x.in.n & 3)); err != nil {
		return err
	}
	size := [16]int{0, 4, 4, 4, 8, 8, 8, 16, 16, 16, 32, 32, 32, 64, 64, 64}[x.check]
	got, err := x.in.full(size)
	if err != nil || x.sum == nil {
		return err
	}
	want := x.sum.Sum(nil)
	if x.check != 10 { // Go sums print big-endian, xz stores little-endian
		for i, j := 0, len(want)-1; i < j; i, j = i+1, j-1 {
			want[i], want[j] = want[j], want[i]
		}
	}
	if !bytes.Equal(got, want) {
		return errors.New("checksum does not match")
	}
	return nil
}

// endStream reads the index, whose first byte is taken, and the footer.
func (x *xzReader) endStream() error {
	x.in.n = 1
	count, err := binary.ReadUvarint(x.in)
	if err != nil {
		return noEOF(err)
	}
	if count != x.blocks {
		return fmt.Errorf("index: %w", errXZ)
	}
	for range 2 * count {
		if _, err := binary.ReadUvarint(x.in); err != nil {
			return noEOF(err)
		}
	}
	if _, err := x.in.full(int(-x.in.n & 3)); err != nil {
		return err
	}
	want := x.in.crc.Sum32()
	x.in.crc = nil
	tail, err := x.in.full(4 + 12)
	if err != nil {
		return err
	}
	if binary.LittleEndian.Uint32(tail) != want || string(tail[14:]) != "YZ" {
		return fmt.Errorf("index: %w", errXZ)
	}
	x.inside = false
	return nil
}
