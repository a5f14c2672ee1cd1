package artifact

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/klauspost/compress/zstd"
	"github.com/ulikunitz/xz"

	"github.com/inquest-dev/inquest/internal/evidence"
)

func compress(t testing.TB, how string, b []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	var w io.WriteCloser
	var err error
	switch how {
	case "gzip":
		w = gzip.NewWriter(&out)
	case "zstd":
		w, err = zstd.NewWriter(&out)
	case "xz":
		w, err = xz.WriterConfig{BlockSize: 7_000 + int64(len(b))/3, DictCap: 1 << 16}.NewWriter(&out)
	case "bzip2": // the standard library only reads it
		cmd := exec.Command("bzip2", "-c")
		cmd.Stdin, cmd.Stdout = bytes.NewReader(b), &out
		if err := cmd.Run(); err != nil {
			t.Skipf("bzip2: %v", err)
		}
		return out.Bytes()
	}
	if err != nil {
		t.Fatal(err)
	}
	w.Write(b)
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// A member is one entry of an archive to be made.
type member struct {
	name, text string
	kind       byte // of tar; 0 is a plain file
}

func makeTar(t testing.TB, members ...member) []byte {
	t.Helper()
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for _, m := range members {
		h := &tar.Header{Name: m.name, Mode: 0o644, Size: int64(len(m.text)), Typeflag: m.kind, ModTime: at(1)}
		if m.kind != 0 {
			h.Linkname = "elsewhere"
		}
		if err := w.WriteHeader(h); err != nil {
			t.Fatal(err)
		}
		io.WriteString(w, m.text)
	}
	w.Close()
	return out.Bytes()
}

func makeZip(t testing.TB, method uint16, members ...member) []byte {
	t.Helper()
	var out bytes.Buffer
	w := zip.NewWriter(&out)
	w.RegisterCompressor(93, zstd.ZipCompressor())
	for _, m := range members {
		f, err := w.CreateHeader(&zip.FileHeader{Name: m.name, Method: method, Modified: at(1)})
		if err != nil {
			t.Fatal(err)
		}
		io.WriteString(f, m.text)
	}
	w.Close()
	return out.Bytes()
}

// big is a log of several spool blocks in which every line differs.
func big() string {
	var b strings.Builder
	for i := range 30_000 {
		fmt.Fprintf(&b, "log line %d of a long log\n", i)
	}
	return b.String()
}

func TestCompressedFiles(t *testing.T) {
	text := big()
	for _, how := range []string{"gzip", "zstd", "xz", "bzip2"} {
		t.Run(how, func(t *testing.T) {
			z := compress(t, how, []byte(text))
			twice := append(append([]byte(nil), z...), z...) // streams may follow each other
			dir := tree(t, map[string]string{"one.dat": string(z), "two.dat": string(twice), "cut.dat": string(z[:len(z)*3/4])})
			r := walk(t, Options{}, dir)
			if len(r.Files) != 3 {
				t.Fatal(show(r, dir))
			}
			cut, one, two := r.Files[0], r.Files[1], r.Files[2]
			if got, err := read(t, one); err != nil || got != text {
				t.Errorf("one: %d bytes, %v", len(got), err)
			}
			if one.Size != -1 || one.At != nil || one.Kind != "ranklog" {
				t.Errorf("one: %+v", one.Artifact)
			}
			if got, err := read(t, two); err != nil || got != text+text {
				t.Errorf("two: %d bytes, %v", len(got), err)
			}
			got, err := read(t, cut)
			if how == "bzip2" && cut.Fate == fateUnreadable { // its only block is lost
				return
			}
			if err == nil || !strings.Contains(err.Error(), how) || !strings.HasPrefix(text, got) || len(got) == 0 {
				t.Errorf("cut: %d bytes, %v", len(got), err)
			}
		})
	}
}

func TestXZRefuses(t *testing.T) {
	text := big()[:20_000]
	z := compress(t, "xz", []byte(text))
	huge := append([]byte(nil), z...)
	// Second block's dictionary cannot be found without decoding, so the first's:
	// 12 bytes of stream header, size, flags, [sizes], 0x21, 0x01, dictionary.
	i := bytes.Index(huge[12:], []byte{0x21, 0x01}) + 12
	huge[i+2] = 40
	size := (int(huge[12]) + 1) * 4
	binary.LittleEndian.PutUint32(huge[12+size-4:], crc32.ChecksumIEEE(huge[12:12+size-4]))
	_, err := io.ReadAll(newXZ(bytes.NewReader(huge)))
	if le := (*LimitError)(nil); !errors.As(err, &le) {
		t.Errorf("4 GiB dictionary: %v", err)
	}
	for i := 0; i < len(z); i += 1 + len(z)/300 {
		bad := append([]byte(nil), z...)
		bad[i] ^= 0x55
		if got, err := io.ReadAll(newXZ(bytes.NewReader(bad))); err == nil && string(got) != text {
			t.Errorf("byte %d changed: no error", i)
		}
		if _, err := io.ReadAll(newXZ(bytes.NewReader(z[:i]))); err == nil {
			t.Errorf("cut at %d: no error", i)
		}
	}
}

func TestArchives(t *testing.T) {
	text := big()
	members := []member{
		{"./logs/rank_0.log", text, 0},
		{"logs/rank_1.log", "log line 1", 0},
		{"logs/rank_2.log.gz", string(compress(t, "gzip", []byte("log line 2"))), 0},
		{"logs/rank_3.log", "", 0},
		{"weights.pt", "12345", 0},
		{"core", "\x7fELF\x00", 0},
		{"notes.json", "{}", 0},
	}
	want := `
	file R/a!logs/rank_0.log ranklog
	file R/a!logs/rank_1.log ranklog
	file R/a!logs/rank_2.log.gz ranklog
	file R/a!logs/rank_3.log [read] (empty)
	passed .json, text not recognised: 1, 2 bytes
	passed .pt: 1, 5 bytes
	passed no extension, binary: 1, 5 bytes
	`
	plain := makeTar(t, members...)
	for name, b := range map[string][]byte{
		"tar":         plain,
		"tar.gz":      compress(t, "gzip", plain),
		"tar.zst":     compress(t, "zstd", plain),
		"tar.xz":      compress(t, "xz", plain),
		"zip stored":  makeZip(t, zip.Store, members...),
		"zip deflate": makeZip(t, zip.Deflate, members...),
		"zip zstd":    makeZip(t, 93, members...),
		"zip.gz":      compress(t, "gzip", makeZip(t, zip.Deflate, members...)),
	} {
		t.Run(name, func(t *testing.T) {
			dir := tree(t, map[string]string{"a": string(b)})
			r := walk(t, Options{}, dir)
			w := want
			if name == "zip deflate" || name == "zip zstd" || name == "zip.gz" { // as stored
				got := show(r, dir)
				w = strings.NewReplacer("1, 2 bytes", "#", "binary: 1, 5 bytes", "binary#").Replace(w)
				i, j := strings.Index(got, "recognised: "), strings.Index(got, "binary: ")
				if i < 0 || j < 0 {
					t.Fatal(got)
				}
				got = got[:j] + "binary#\n"
				got = got[:i] + "recognised: #\n" + got[i+strings.IndexByte(got[i:], '\n')+1:]
				check(t, got, w)
			} else {
				check(t, show(r, dir), w)
			}
			for range 2 {
				if got, err := read(t, r.Files[0]); err != nil || got != text {
					t.Errorf("rank 0: %d bytes, %v", len(got), err)
				}
			}
			if got, err := read(t, r.Files[2]); err != nil || got != "log line 2" {
				t.Errorf("rank 2: %q, %v", got, err)
			}
			f := r.Files[0]
			if f.Size != int64(len(text)) || f.Owner.Rank != 0 || f.Owner.Basis != "file name rank_0.log" || !f.ModTime.Equal(at(1)) {
				t.Errorf("rank 0: %+v", f.Artifact)
			}
			if f.At != nil {
				a, closer, err := f.At()
				if err != nil {
					t.Fatal(err)
				}
				defer closer.Close()
				p := make([]byte, 1000)
				for _, off := range []int{0, 262_000, 500_000, len(text) - 1000} {
					if _, err := a.ReadAt(p, int64(off)); err != nil || string(p) != text[off:off+1000] {
						t.Errorf("at %d: %v", off, err)
					}
				}
			}
		})
	}
}

func TestArchiveNames(t *testing.T) {
	dir := tree(t, map[string]string{"a.tar.gz": string(compress(t, "gzip", makeTar(t,
		member{"../../etc/up.log", "log line", 0},
		member{"/abs/olute.log", "log line", 0},
		member{"same.log", "log line a", 0},
		member{"same.log", "log line b", 0},
		member{"new\nline.log", "log line", 0},
		member{"soft.log", "", tar.TypeSymlink},
		member{"hard.log", "", tar.TypeLink},
		member{"pipe.log", "", tar.TypeFifo},
		member{"dir/", "", tar.TypeDir},
	)))})
	check(t, show(walk(t, Options{}, dir), dir), `
	file R/a.tar.gz!"new\nline.log" ranklog
	file R/a.tar.gz!abs/olute.log ranklog
	file R/a.tar.gz!etc/up.log ranklog
	file R/a.tar.gz!same.log ranklog
	file R/a.tar.gz!same.log#2 ranklog
	passed device or pipe in an archive: 1, 0 bytes
	passed link in an archive: 2, 0 bytes
	`)
}

func TestDamagedArchives(t *testing.T) {
	text := big()
	// Noise keeps the compressed size near the plain one, so that half is half.
	noise := make([]byte, 300_000)
	x := uint32(1)
	for i := range noise {
		x = x*1664525 + 1013904223
		noise[i] = byte(x >> 24)
	}
	plain := makeTar(t, member{"a.log", "log line", 0}, member{"b.log", text, 0}, member{"noise", string(noise), 0}, member{"z.log", "log line", 0})
	gz := compress(t, "gzip", plain)
	for _, c := range []struct {
		name  string
		bytes []byte
		want  string
	}{
		{"cut tar.gz", gz[:len(gz)-200_000], `
			file R/x [partly read] (after 3 members: decompress gzip: unexpected EOF)
			file R/x!a.log ranklog
			file R/x!b.log ranklog
			passed no extension, binary: 1, 300000 bytes
			problem R/x: after 3 members: decompress gzip: unexpected EOF
			`},
		{"cut tar", plain[:400_000], `
			file R/x [partly read] (after 2 members: unexpected EOF)
			file R/x!a.log ranklog
			file R/x!b.log ranklog
			problem R/x: after 2 members: unexpected EOF
			`},
		{"cut gzip header", gz[:5], `
			file R/x [unreadable] (decompress gzip: unexpected EOF)
			problem R/x: decompress gzip: unexpected EOF
			`},
		{"cut zip", makeZip(t, zip.Deflate, member{"a.log", text, 0})[:50_000], `
			file R/x [unreadable] (zip without its directory (cut): unexpected EOF)
			problem R/x: zip without its directory (cut): unexpected EOF
			`},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := tree(t, map[string]string{"x": string(c.bytes)})
			r := walk(t, Options{}, dir)
			check(t, show(r, dir), c.want)
			if c.name == "cut tar" {
				got, err := read(t, r.Files[2])
				if !errors.Is(err, io.ErrUnexpectedEOF) || !strings.HasPrefix(text, got) || len(got) < 300_000 {
					t.Errorf("b.log: %d bytes, %v", len(got), err)
				}
			}
		})
	}

	z := makeZip(t, zip.Deflate, member{"a.log", text, 0}, member{"b.log", "log line", 0})
	z[20_000] ^= 0xff
	dir := tree(t, map[string]string{"x": string(z)})
	r := walk(t, Options{}, dir)
	if _, err := read(t, r.Files[0]); err == nil {
		t.Error("changed zip: no error")
	}
	if got, err := read(t, r.Files[1]); err != nil || got != "log line" {
		t.Errorf("its other member: %q, %v", got, err)
	}
}

func TestBombs(t *testing.T) {
	zeros := make([]byte, 1<<20)
	pour := func(w io.Writer, first string, n int) {
		io.WriteString(w, first)
		for range n {
			w.Write(zeros)
		}
	}
	var gz bytes.Buffer
	w, _ := gzip.NewWriterLevel(&gz, gzip.BestCompression)
	pour(w, "log line\n", 66)
	w.Close()

	t.Run("gzip over the ratio", func(t *testing.T) {
		dir := tree(t, map[string]string{"x.log.gz": gz.String()})
		r := walk(t, Options{}, dir)
		rc, err := r.Files[0].Open()
		if err != nil {
			t.Fatal(err)
		}
		defer rc.Close()
		n, err := io.Copy(io.Discard, rc)
		if le := (*LimitError)(nil); !errors.As(err, &le) || n > 66<<20 {
			t.Errorf("%d bytes, %v", n, err)
		}
	})
	t.Run("tar.gz over the bytes", func(t *testing.T) {
		var b bytes.Buffer
		w := gzip.NewWriter(&b)
		tw := tar.NewWriter(w)
		for i := range 3 {
			tw.WriteHeader(&tar.Header{Name: fmt.Sprintf("%d.log", i), Mode: 0o644, Size: 2<<20 + 9})
			pour(tw, "log line\n", 2)
		}
		tw.Close()
		w.Close()
		dir := tree(t, map[string]string{"x.tgz": b.String()})
		check(t, show(walk(t, Options{MaxArchiveBytes: 5 << 20}, dir), dir), `
		file R/x.tgz [over limit] (more than 5.00 MiB in one archive)
		file R/x.tgz!0.log ranklog
		file R/x.tgz!1.log ranklog
		file R/x.tgz!2.log ranklog
		problem R/x.tgz: over limit: more than 5.00 MiB in one archive
		`)
	})
	t.Run("zip in zip in zip", func(t *testing.T) {
		inner := makeZip(t, zip.Deflate, member{"a.log", "log line", 0})
		middle := makeZip(t, zip.Deflate, member{"inner.zip", string(inner), 0}, member{"b.log", "log line", 0})
		outer := makeZip(t, zip.Deflate, member{"middle.zip", string(middle), 0}, member{"c.log", "log line", 0})
		dir := tree(t, map[string]string{"x.zip": string(outer)})
		check(t, show(walk(t, Options{}, dir), dir), `
		file R/x.zip!c.log ranklog
		file R/x.zip!middle.zip!b.log ranklog
		file R/x.zip!middle.zip!inner.zip [over limit] (archives nested more than 2 deep)
		problem R/x.zip!middle.zip!inner.zip: over limit: archives nested more than 2 deep
		`)
	})
	t.Run("gzip of gzip of gzip", func(t *testing.T) {
		b := []byte("log line")
		for range 3 {
			b = compress(t, "gzip", b)
		}
		dir := tree(t, map[string]string{"x": string(b)})
		check(t, show(walk(t, Options{}, dir), dir), `
		file R/x [over limit] (compressed more than 2 times over)
		problem R/x: over limit: compressed more than 2 times over
		`)
	})
	t.Run("zip over the ratio", func(t *testing.T) {
		var b bytes.Buffer
		w := zip.NewWriter(&b)
		for i := range 2 {
			f, _ := w.Create(fmt.Sprintf("%d.log", i))
			pour(f, "log line\n", 34)
		}
		w.Close()
		dir := tree(t, map[string]string{"x.zip": b.String()})
		check(t, show(walk(t, Options{}, dir), dir), `
		file R/x.zip [over limit] (decompresses to more than 1000 times its size)
		file R/x.zip!0.log ranklog
		problem R/x.zip: over limit: decompresses to more than 1000 times its size
		`)
	})
	t.Run("zip that states too many members", func(t *testing.T) {
		z := makeZip(t, zip.Store, member{"a.log", "log line", 0})
		end := len(z) - 22
		rec := make([]byte, 56+20)
		copy(rec, "PK\x06\x06")
		binary.LittleEndian.PutUint64(rec[32:], 1<<40)
		copy(rec[56:], "PK\x06\x07")
		binary.LittleEndian.PutUint64(rec[64:], uint64(end))
		bomb := append(append(append([]byte(nil), z[:end]...), rec...), z[end:]...)
		dir := tree(t, map[string]string{"x.zip": string(bomb)})
		check(t, show(walk(t, Options{}, dir), dir), `
		file R/x.zip [over limit] (more than 100000 members in one archive)
		problem R/x.zip: over limit: more than 100000 members in one archive
		`)
	})
	t.Run("zstd window", func(t *testing.T) {
		// A frame header that asks for a window of 2 GiB (RFC 8878, 3.1.1.1.2).
		dir := tree(t, map[string]string{"x": "\x28\xb5\x2f\xfd\x00\xa8" + "\x01\x00\x00"})
		r := walk(t, Options{}, dir)
		if len(r.Files) != 1 || r.Files[0].Fate != fateOverLimit {
			t.Error(show(r, dir))
		}
	})
}

func TestTorchZip(t *testing.T) {
	dir := tree(t, map[string]string{"final": string(makeZip(t, zip.Store, member{"final/data.pkl", "log line", 0}, member{"final/data/0", "log line", 0}))})
	r := walk(t, Options{}, dir)
	if len(r.Files) != 0 || r.PassedOver[0].What != "torch archive" {
		t.Error(show(r, dir))
	}
}

func TestSpoolFile(t *testing.T) {
	s := newSpool(100, 1<<20)
	text := big()
	m, err := s.take(strings.NewReader(text))
	if err != nil || s.file == nil {
		t.Fatal(err)
	}
	rc, _ := m.content().open()
	if b, err := io.ReadAll(rc); err != nil || string(b) != text {
		t.Errorf("%d bytes, %v", len(b), err)
	}
	if err := s.close(); err != nil {
		t.Error(err)
	}
	rc, _ = m.content().open()
	if _, err := io.ReadAll(rc); err == nil {
		t.Error("read after close")
	}
	s = newSpool(100, 1000)
	m, err = s.take(strings.NewReader(text))
	if le := (*LimitError)(nil); !errors.As(err, &le) || m.err == nil {
		t.Errorf("over the space: %v", err)
	}
	s.close()
}

func TestUTF16(t *testing.T) {
	text := "log line é 😀\n" + strings.Repeat("log line\n", 3000)
	encode := func(order binary.AppendByteOrder, mark bool, text string) string {
		var b []byte
		if mark {
			b = order.AppendUint16(b, 0xfeff)
		}
		for _, u := range utf16.Encode([]rune(text)) {
			b = order.AppendUint16(b, u)
		}
		return string(b)
	}
	for name, in := range map[string]string{
		"little": encode(binary.LittleEndian, true, text),
		"big":    encode(binary.BigEndian, true, text),
		"bare":   encode(binary.LittleEndian, false, strings.Repeat("log line\n", 3000)),
		"gzip":   string(compress(t, "gzip", []byte(encode(binary.BigEndian, true, text)))),
		"odd":    encode(binary.LittleEndian, true, text) + "x",
	} {
		dir := tree(t, map[string]string{"x.log": in})
		r := walk(t, Options{}, dir)
		if len(r.Files) != 1 || r.Files[0].Kind != "ranklog" || r.Files[0].Note != "decoded from UTF-16" || r.Files[0].At != nil {
			t.Errorf("%s: %s", name, show(r, dir))
			continue
		}
		want := text
		switch name {
		case "bare":
			want = strings.Repeat("log line\n", 3000)
		case "odd":
			want += "\ufffd"
		}
		if got, err := read(t, r.Files[0]); err != nil || got != want {
			t.Errorf("%s: %d bytes %q, %v", name, len(got), got[:min(20, len(got))], err)
		}
	}
}

func TestHoles(t *testing.T) {
	text := strings.Repeat("log line\n", 1000)
	for name, c := range map[string]struct {
		in   string
		text bool
	}{
		"rotated": {strings.Repeat("\x00", 3<<20) + text, true},
		"lost":    {text[:1800] + strings.Repeat("\x00", 512) + text[1800:], true},
		"cut":     {text[:headLen-20] + strings.Repeat("\x00", 4096) + text, true},
		"numbers": {strings.Repeat("a field\x00\x01\x00\x00", 1000), false},
		"zeros":   {strings.Repeat("\x00", 3<<20), false},
	} {
		dir := tree(t, map[string]string{"x.log": c.in})
		r := walk(t, Options{}, dir)
		if c.text != (len(r.Files) == 1 && r.Files[0].Kind == "ranklog") {
			t.Errorf("%s: %s", name, show(r, dir))
			continue
		}
		if c.text {
			if got, err := read(t, r.Files[0]); err != nil || got != c.in {
				t.Errorf("%s: %d bytes, %v", name, len(got), err)
			}
		}
	}
}

// FuzzArchive opens arbitrary bytes and reads what comes out: no panic, no
// unbounded memory, and what was read once reads the same again.
func FuzzArchive(f *testing.F) {
	members := []member{{"a.log", "log line", 0}, {"b/rank_1.log", strings.Repeat("log line\n", 100), 0}}
	plain := makeTar(f, members...)
	for _, b := range [][]byte{plain, makeZip(f, zip.Deflate, members...), makeZip(f, zip.Store, members...), []byte("log line")} {
		f.Add(b)
		f.Add(compress(f, "gzip", b))
		f.Add(compress(f, "zstd", b))
		f.Add(compress(f, "xz", b))
		f.Add(b[:len(b)/2])
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		o := Options{Stdin: bytes.NewReader(b), All: true, MaxArchiveBytes: 1 << 20, Sniff: func(evidence.Artifact, []byte) (string, int) { return "", 0 }}
		r, err := look(context.Background(), []string{"-"}, o)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		for _, file := range r.Files {
			one, err1 := read(t, file)
			two, err2 := read(t, file)
			if one != two || (err1 == nil) != (err2 == nil) {
				t.Errorf("%s: %d bytes (%v), then %d (%v)", file.Path, len(one), err1, len(two), err2)
			}
			if len(one) > 2<<20 {
				t.Errorf("%s: %d bytes", file.Path, len(one))
			}
			// What needs no reading, as blanks, has its size and opens as nothing.
			settled := file.Fate == fateRead && len(one) == 0
			if file.Size >= 0 && err1 == nil && !settled && file.Size != int64(len(one)) {
				t.Errorf("%s: size %d, read %d", file.Path, file.Size, len(one))
			}
		}
	})
}

// BenchmarkTarOfRanks indexes and reads a tar.gz of 1000 rank logs.
func BenchmarkTarOfRanks(b *testing.B) {
	var members []member
	text := big()[:100_000]
	for i := range 1000 {
		members = append(members, member{fmt.Sprintf("rank_%d.log", i), text, 0})
	}
	dir := tree(b, map[string]string{"x.tgz": string(compress(b, "gzip", makeTar(b, members...)))})
	b.SetBytes(int64(len(text)) * 1000)
	for b.Loop() {
		r := walk(b, Options{}, filepath.Join(dir, "x.tgz"))
		for _, f := range r.Files {
			if _, err := read(b, f); err != nil {
				b.Fatal(err)
			}
		}
		r.Close()
	}
}
