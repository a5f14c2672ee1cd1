package artifact

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/bzip2"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"hash/crc32"
	"io"
	"math"
	"path"
	"strings"
	"time"

	"github.com/klauspost/compress/flate"

	"github.com/inquest-dev/inquest/internal/evidence"
)

// A budget is what one outermost archive and all in it may still cost.
type budget struct {
	bytes   int64 // decompressed
	members int
	max     int64 // what bytes began with
}

func (b *budget) overBytes() *LimitError {
	return &LimitError{"more than " + evidence.Bytes(b.max) + " in one archive"}
}

// member counts one more.
func (b *budget) member() error {
	if b.members--; b.members < 0 {
		return &LimitError{fmt.Sprintf("more than %d members in one archive", maxMembers)}
	}
	return nil
}

// A budgetReader charges what is read; seeking over a member is free.
type budgetReader struct {
	r io.Reader
	b *budget
}

func (r *budgetReader) Read(p []byte) (int, error) {
	if r.b.bytes <= 0 {
		return 0, r.b.overBytes()
	}
	n, err := r.r.Read(p[:min(int64(len(p)), r.b.bytes)])
	r.b.bytes -= int64(n)
	return n, err
}

// A budgetSeeker is a budgetReader for tar, which seeks over what it skips.
type budgetSeeker struct {
	*budgetReader
	io.Seeker
}

// enter returns the item that the members of archive it descend from.
func (l *looker) enter(it item) (item, bool) {
	if it.depth == maxDepth {
		l.overLimit(it, fmt.Sprintf("archives nested more than %d deep", maxDepth))
		return it, false
	}
	it.depth++
	it.named = false
	if it.budget == nil {
		it.budget = &budget{l.o.MaxArchiveBytes, maxMembers, l.o.MaxArchiveBytes}
	}
	return it, true
}

// names tells members of the same name in one archive apart.
type names map[string]int

// member returns the item of one member.
func (n names) member(in item, name string, mod time.Time, size int64) item {
	it := in
	it.disk = ""
	it.path = in.path + "!" + printable(name)
	it.place = in.place + "/" + name
	n[name]++
	if k := n[name]; k > 1 {
		it.path += fmt.Sprintf("#%d", k)
	}
	it.mod, it.stored = mod, size
	if mod.Unix() <= 0 || mod.Year() <= 1980 {
		it.mod = time.Time{}
	}
	return it
}

// memberName drops what would lead out of the archive. Nothing is ever written
// under that name, but others may join it to a folder.
func memberName(name string) string { return strings.TrimPrefix(path.Clean("/"+name), "/") }

// broken records that an archive was left before its end.
func (l *looker) broken(ctx context.Context, it item, members int, err error) {
	if ctx.Err() != nil {
		return
	}
	if le := (*LimitError)(nil); errors.As(err, &le) {
		l.overLimit(it, le.What)
		return
	}
	fate := "partly read"
	if members == 0 {
		fate = fateUnreadable
	}
	err = fmt.Errorf("after %d members: %w", members, err)
	l.settled(it, -1, fate, err.Error(), err)
	l.problem(it.path, err)
}

// tar looks at the members of a tar in one pass. Where the tar lies open in a
// file, members stay there; else what a reader may want is spooled, whatever
// its size, and the rest is decompressed and dropped.
func (l *looker) tar(ctx context.Context, it item, c content) {
	in, ok := l.enter(it)
	if !ok {
		return
	}
	var r io.Reader
	var section *io.SectionReader
	if c.at != nil {
		at, closer, err := c.at()
		if err != nil {
			l.unreadable(it, err)
			return
		}
		defer closer.Close()
		section = io.NewSectionReader(at, 0, c.size)
		r = budgetSeeker{&budgetReader{ctxReader{ctx, section}, in.budget}, section}
	} else {
		rc, err := c.open()
		if err != nil {
			l.unreadable(it, err)
			return
		}
		defer rc.Close()
		r = &budgetReader{ctxReader{ctx, rc}, in.budget}
	}
	tr := tar.NewReader(r)
	seen := make(names)
	for n := 0; ; n++ {
		h, err := tr.Next()
		if err == io.EOF {
			return
		}
		if err == nil || errors.Is(err, tar.ErrInsecurePath) {
			err = in.budget.member()
		}
		if err == nil {
			err = l.tarMember(ctx, in, c, tr, h, section, seen)
		}
		if err != nil {
			l.broken(ctx, it, n, err)
			return
		}
		if l.had() {
			return
		}
	}
}

// tarMember looks at one member. An error means that the archive ends here.
func (l *looker) tarMember(ctx context.Context, in item, c content, tr *tar.Reader, h *tar.Header, section *io.SectionReader, seen names) error {
	sparse := h.Typeflag == tar.TypeGNUSparse
	for k := range h.PAXRecords {
		sparse = sparse || strings.HasPrefix(k, "GNU.sparse.")
	}
	switch h.Typeflag {
	case tar.TypeReg, tar.TypeGNUSparse:
	case tar.TypeDir, tar.TypeXGlobalHeader:
		return nil
	case tar.TypeLink, tar.TypeSymlink:
		l.pass("link in an archive", 0)
		return nil
	default:
		l.pass("device or pipe in an archive", 0)
		return nil
	}
	name := memberName(h.Name)
	if len(name) > maxName {
		return &LimitError{fmt.Sprintf("a member's name of more than %d bytes", maxName)}
	}
	if ext, skip := isForeign(name); skip && !l.belongs(in.place+"/"+name) {
		l.pass(ext, h.Size)
		return nil
	}
	it := seen.member(in, name, h.ModTime, h.Size)
	if l.unasked(it.path) {
		return nil
	}
	if section != nil && !sparse {
		off, err := section.Seek(0, io.SeekCurrent)
		if err != nil {
			return err
		}
		l.look(ctx, it, c.section(off, h.Size))
		return nil
	}
	head := make([]byte, headLen)
	n, err := readInto(tr, head)
	head = head[:n]
	if n == 0 {
		if err == nil || err == io.EOF {
			l.silent(it, 0, 0, "empty")
			return nil
		}
		return err
	}
	if !l.wanted(it, head) {
		l.pass(reason(it.place, isText(head)), h.Size)
		if err == io.EOF {
			err = nil
		}
		return err
	}
	m, err := l.spool.take(io.MultiReader(bytes.NewReader(head), tr))
	l.look(ctx, it, m.content())
	return err
}

// wanted reports whether something that can be read only once is worth keeping.
func (l *looker) wanted(it item, head []byte) bool {
	if codecOf(head) != nil || isTar(head) || utf16Of(head) != nil {
		return true
	}
	if kind, _ := l.claim(it, it.stored, head); kind != "" {
		return true
	}
	return isZip(head) && !isTorchZip(head) || l.o.All && isText(head) || l.belongs(it.place)
}

// section returns size bytes of c, which has at, from off on. What lies beyond
// the end of c is an unexpected end.
func (c content) section(off, size int64) content {
	cut := off+size > c.size
	if cut {
		size = max(0, c.size-off)
	}
	s := content{
		size: size,
		open: func() (io.ReadCloser, error) {
			at, closer, err := c.at()
			if err != nil {
				return nil, err
			}
			r := io.Reader(io.NewSectionReader(at, off, size))
			if cut {
				r = &thenError{r, io.ErrUnexpectedEOF}
			}
			return readCloser{r, closer}, nil
		},
	}
	s.at = func() (io.ReaderAt, io.Closer, error) {
		at, closer, err := c.at()
		if err != nil {
			return nil, nil, err
		}
		return io.NewSectionReader(at, off, size), closer, nil
	}
	return s
}

type readCloser struct {
	io.Reader
	io.Closer
}

// zip looks at the members of a zip, each of which stays where it is. A zip
// that lies inside a compressed stream is spooled first.
func (l *looker) zip(ctx context.Context, it item, c content) {
	in, ok := l.enter(it)
	if !ok {
		return
	}
	if c.at == nil {
		rc, err := c.open()
		if err != nil {
			l.unreadable(it, err)
			return
		}
		m, err := l.spool.take(&budgetReader{ctxReader{ctx, rc}, in.budget})
		rc.Close()
		if err != nil {
			l.broken(ctx, it, 0, err)
			return
		}
		c = m.content()
	}
	at, closer, err := c.at()
	if err != nil {
		l.unreadable(it, err)
		return
	}
	defer closer.Close()
	if err := zipSize(at, c.size); err != nil {
		l.unreadable(it, err)
		return
	}
	directory := &limitedAt{at, maxZipDirectory}
	zr, err := zip.NewReader(directory, c.size)
	if err != nil && !errors.Is(err, zip.ErrInsecurePath) {
		l.unreadable(it, err)
		return
	}
	directory.left = math.MaxInt64 // local headers are read one by one
	seen := make(names)
	encrypted := 0
	var sum int64
	for n, f := range zr.File {
		if ctx.Err() != nil {
			return
		}
		name := memberName(f.Name)
		size := int64(f.UncompressedSize64)
		err := in.budget.member()
		ext, skip := isForeign(name)
		skip = skip && !l.belongs(in.place+"/"+name)
		switch mode := f.Mode(); {
		case err != nil:
			l.broken(ctx, it, n, err)
			return
		case mode.IsDir() || strings.HasSuffix(f.Name, "/"):
			continue
		case !mode.IsRegular():
			l.pass("link or device in an archive", 0)
			continue
		case skip:
			l.pass(ext, size)
			continue
		case f.Flags&1 != 0:
			encrypted++
			l.pass("encrypted member", size)
			continue
		case len(name) > maxName:
			l.broken(ctx, it, n, &LimitError{fmt.Sprintf("a member's name of more than %d bytes", maxName)})
			return
		}
		m := seen.member(in, name, f.Modified, size)
		if l.unasked(m.path) {
			continue
		}
		m.stored = int64(min(f.CompressedSize64, uint64(c.size)))
		member, err := zipMember(c, f)
		if err != nil {
			l.unreadable(m, err)
			continue
		}
		kept := len(l.files)
		l.look(ctx, m, member)
		if len(l.files) == kept || member.at != nil {
			continue
		}
		// What will be read of it later counts now, so that members that share
		// their compressed bytes do not add up to more than a limit.
		sum += size
		switch {
		case in.budget.bytes < size:
			err = in.budget.overBytes()
		case sum > ratioFloor && sum/maxRatio > c.size:
			err = &LimitError{fmt.Sprintf("decompresses to more than %d times its size", maxRatio)}
		}
		if err != nil {
			l.files = l.files[:kept]
			l.broken(ctx, it, n, err)
			return
		}
		in.budget.bytes -= size
	}
	if encrypted > 0 {
		l.problem(it.path, fmt.Errorf("%d members are encrypted", encrypted))
	}
}

// A limitedAt allows so many bytes to be read. archive/zip allocates for every
// directory entry it finds, so this bounds its memory.
type limitedAt struct {
	r    io.ReaderAt
	left int64
}

func (l *limitedAt) ReadAt(p []byte, off int64) (int, error) {
	if l.left -= int64(len(p)); l.left < 0 {
		return 0, &LimitError{"zip directory larger than " + evidence.Bytes(maxZipDirectory)}
	}
	return l.r.ReadAt(p, off)
}

// zipSize refuses a zip whose end record states more members than we read:
// archive/zip allocates from that count. The record (PKWARE APPNOTE 6.3.10,
// section 4.3.16) lies in the last 64 KiB; its 64-bit form (4.3.14) is found
// through the locator (4.3.15), 20 bytes before it.
func zipSize(at io.ReaderAt, size int64) error {
	tail := make([]byte, min(size, 22+1<<16))
	start := size - int64(len(tail))
	if _, err := at.ReadAt(tail, start); err != nil && err != io.EOF {
		return err
	}
	i := bytes.LastIndex(tail, []byte("PK\x05\x06"))
	if i < 0 || len(tail)-i < 22 {
		return fmt.Errorf("zip without its directory (cut): %w", io.ErrUnexpectedEOF)
	}
	count := uint64(binary.LittleEndian.Uint16(tail[i+10:]))
	if i >= 20 && string(tail[i-20:i-16]) == "PK\x06\x07" {
		var end [56]byte
		off := int64(binary.LittleEndian.Uint64(tail[i-12:]))
		if off < 0 || off > size-int64(len(end)) {
			return zip.ErrFormat
		}
		if _, err := at.ReadAt(end[:], off); err != nil {
			return err
		}
		if string(end[:4]) == "PK\x06\x06" {
			count = max(count, binary.LittleEndian.Uint64(end[32:]))
		}
	}
	if count > maxMembers {
		return &LimitError{fmt.Sprintf("more than %d members in one archive", maxMembers)}
	}
	return nil
}

// zipMethods are the compression methods of members (APPNOTE 4.4.5).
var zipMethods = map[uint16]codec{
	8:  {name: "deflate", open: func(r io.Reader) (io.ReadCloser, error) { return flate.NewReader(r), nil }},
	12: {name: "bzip2", open: func(r io.Reader) (io.ReadCloser, error) { return io.NopCloser(bzip2.NewReader(r)), nil }},
	93: {name: "zstd", open: openZstd},
	95: {name: "xz", open: func(r io.Reader) (io.ReadCloser, error) { return io.NopCloser(newXZ(r)), nil }},
}

// zipMember returns member f of the zip c. It reads the member's local header.
func zipMember(c content, f *zip.File) (content, error) {
	size, stored := int64(f.UncompressedSize64), int64(f.CompressedSize64)
	off, err := f.DataOffset()
	if err != nil {
		return content{}, err
	}
	if size < 0 || stored < 0 || off < 0 || off > c.size {
		return content{}, zip.ErrFormat
	}
	raw := c.section(off, stored)
	if f.Method == zip.Store {
		if size != stored {
			return content{}, zip.ErrFormat
		}
		return raw, nil
	}
	k, ok := zipMethods[f.Method]
	if !ok {
		return content{}, fmt.Errorf("zip compression method %d is not known", f.Method)
	}
	sum := f.CRC32
	return content{size: size, open: func() (io.ReadCloser, error) {
		rc, err := raw.open()
		if err != nil {
			return nil, err
		}
		d, err := newDecoded(&k, rc, size)
		if err != nil {
			return nil, err
		}
		return readCloser{&checked{r: d, left: size, sum: crc32.NewIEEE(), want: sum}, d}, nil
	}}, nil
}

// checked verifies size and checksum at the end.
type checked struct {
	r    io.Reader
	left int64
	sum  hash.Hash32
	want uint32
}

func (c *checked) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.sum.Write(p[:n])
	c.left -= int64(n)
	if err == io.EOF {
		switch {
		case c.left > 0:
			err = io.ErrUnexpectedEOF
		case c.sum.Sum32() != c.want:
			err = zip.ErrChecksum
		}
	}
	return n, err
}
