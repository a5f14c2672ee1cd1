package artifact

import (
	"bufio"
	"bytes"
	"compress/bzip2"
	"errors"
	"fmt"
	"io"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"github.com/inquest-dev/inquest/internal/evidence"
)

// A content is bytes that can be read again from the start.
type content struct {
	open func() (io.ReadCloser, error)
	at   func() (io.ReaderAt, io.Closer, error) // nil if only in order
	size int64                                  // -1 if unknown
}

// A codec is one compression, recognised by its first bytes and never by a name.
type codec struct {
	name string
	is   func(head []byte) bool
	open func(io.Reader) (io.ReadCloser, error)
}

var codecs = []codec{
	{"gzip", prefix("\x1f\x8b\x08"), func(r io.Reader) (io.ReadCloser, error) { return gzip.NewReader(r) }},
	{"zstd", isZstd, openZstd},
	{"xz", prefix("\xfd7zXZ\x00"), func(r io.Reader) (io.ReadCloser, error) { return io.NopCloser(newXZ(r)), nil }},
	{"bzip2", isBzip2, func(r io.Reader) (io.ReadCloser, error) { return io.NopCloser(bzip2.NewReader(r)), nil }},
}

func prefix(p string) func([]byte) bool {
	return func(head []byte) bool { return bytes.HasPrefix(head, []byte(p)) }
}

// isZstd knows a zstd frame and a skippable frame (RFC 8878, section 3.1).
func isZstd(h []byte) bool {
	return len(h) >= 4 && (string(h[:4]) == "\x28\xb5\x2f\xfd" || h[0]&0xf0 == 0x50 && string(h[1:4]) == "\x2a\x4d\x18")
}

func openZstd(r io.Reader) (io.ReadCloser, error) {
	d, err := zstd.NewReader(r, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
		zstd.WithDecoderMaxWindow(maxWindow), zstd.WithDecoderMaxMemory(maxWindow))
	if err != nil {
		return nil, err
	}
	return d.IOReadCloser(), nil
}

// isBzip2 wants the block magic as well: "BZh9" alone could be text.
func isBzip2(h []byte) bool {
	return len(h) >= 10 && string(h[:3]) == "BZh" && h[3] >= '1' && h[3] <= '9' &&
		(string(h[4:10]) == "\x31\x41\x59\x26\x53\x59" || string(h[4:10]) == "\x17\x72\x45\x38\x50\x90")
}

func codecOf(head []byte) *codec {
	for i := range codecs {
		if codecs[i].is(head) {
			return &codecs[i]
		}
	}
	return nil
}

// decoded returns c behind k, at most max bytes of it and at most maxRatio
// times what was read to get them.
func (c content) decoded(k *codec, max int64) content {
	return content{size: -1, open: func() (io.ReadCloser, error) {
		rc, err := c.open()
		if err != nil {
			return nil, err
		}
		return newDecoded(k, rc, max)
	}}
}

// newDecoded owns raw: it closes it, also on error.
func newDecoded(k *codec, raw io.ReadCloser, max int64) (io.ReadCloser, error) {
	d := &decoder{name: k.name, raw: raw, in: &counter{r: raw}, max: max}
	var err error
	if d.dec, err = k.open(bufio.NewReaderSize(d.in, 64<<10)); err != nil {
		raw.Close()
		return nil, d.wrap(noEOF(err))
	}
	return d, nil
}

// noEOF turns an end inside a header into what it is.
func noEOF(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}

// A decoder decompresses within limits.
type decoder struct {
	name string
	raw  io.Closer
	in   *counter
	dec  io.ReadCloser
	out  int64
	max  int64
	err  error
}

type counter struct {
	r io.Reader
	n int64
}

func (c *counter) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n += int64(n)
	return n, err
}

func (d *decoder) wrap(err error) error {
	if errors.Is(err, zstd.ErrWindowSizeExceeded) || errors.Is(err, zstd.ErrDecoderSizeExceeded) {
		return &LimitError{"zstd window above " + evidence.Bytes(maxWindow)}
	}
	if le := (*LimitError)(nil); errors.As(err, &le) {
		return err
	}
	return fmt.Errorf("decompress %s: %w", d.name, err)
}

func (d *decoder) Read(p []byte) (int, error) {
	if d.err != nil {
		return 0, d.err
	}
	left := d.max - d.out
	if int64(len(p)) > left+1 {
		p = p[:left+1]
	}
	n, err := d.dec.Read(p)
	if err != nil && err != io.EOF {
		err = d.wrap(err)
	}
	if int64(n) > left {
		n, err = int(left), &LimitError{"more than " + evidence.Bytes(d.max) + " after decompression"}
	}
	d.out += int64(n)
	if d.out > ratioFloor && d.out/maxRatio > d.in.n {
		err = &LimitError{fmt.Sprintf("decompresses to more than %d times its size", maxRatio)}
	}
	d.err = err
	return n, err
}

func (d *decoder) Close() error {
	d.dec.Close()
	d.err = errors.New("read after close")
	return d.raw.Close()
}

// readHead returns up to n bytes from the start of c.
func (c content) readHead(n int) ([]byte, error) {
	rc, err := c.open()
	if err != nil {
		return nil, err
	}
	defer rc.Close()
	return readUpTo(rc, n)
}

// readUpTo reads n bytes or to the end, which is no error.
func readUpTo(r io.Reader, n int) ([]byte, error) {
	buf := make([]byte, n)
	n, err := readInto(r, buf)
	if err == io.EOF {
		err = nil
	}
	return buf[:n], err
}

// readInto fills buf. Unlike io.ReadFull it gives io.EOF for a short read at
// the end, so that a stream that is cut (io.ErrUnexpectedEOF) stays apart.
func readInto(r io.Reader, buf []byte) (n int, err error) {
	for n < len(buf) && err == nil {
		var k int
		k, err = r.Read(buf[n:])
		n += k
	}
	if n == len(buf) && err == io.EOF {
		err = nil
	}
	return n, err
}
