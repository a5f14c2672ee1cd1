package repair

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"
)

// source makes a folder with files and opens it.
func source(t *testing.T, files map[string]string) *Source {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "src")
	for name, text := range files {
		at := filepath.Join(dir, filepath.FromSlash(name))
		if err := errors.Join(os.MkdirAll(filepath.Dir(at), 0o777), os.WriteFile(at, []byte(text), 0o640)); err != nil {
			t.Fatal(err)
		}
	}
	s, err := OpenSource(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func begin(t *testing.T, s *Source) (*Out, string) {
	t.Helper()
	final := filepath.Join(t.TempDir(), "copy")
	o, err := Begin(s, final)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { o.Discard() })
	return o, final
}

func TestSourceFS(t *testing.T) {
	s := source(t, map[string]string{"a": "1", "b/c": "22", "b/d/e": "333"})
	if err := fstest.TestFS(s.FS, "a", "b/c", "b/d/e"); err != nil {
		t.Error(err)
	}
	f, err := s.FS.Open("b/c")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, ok := f.(io.ReaderAt); !ok {
		t.Error("files are no io.ReaderAt")
	}
	if got := s.Names(); !slices.Equal(got, []string{"a", "b/c", "b/d/e"}) {
		t.Errorf("names %q", got)
	}
	files, err := s.Verify(t.Context())
	if err != nil || len(files) != 3 || files[1].SHA256 != "785f3ec7eb32f30b90cd0fcf3657d388b5ff4297f2f9716ff66e9b69c05ddd09" || files[1].Size != 2 || !files[1].Same {
		t.Errorf("%+v, %v", files, err)
	}
}

// Links are not there; names that lead out are no names.
func TestSourceLinks(t *testing.T) {
	s := source(t, map[string]string{"a": "1"})
	if err := os.Symlink("a", filepath.Join(s.real, "link")); err != nil {
		t.Skip(err)
	}
	s, err := OpenSource(t.Context(), s.real)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for _, name := range []string{"link", "../src/a", "/etc/passwd", "", "a/", "./a", "b"} {
		if _, err := s.FS.Open(name); err == nil {
			t.Errorf("%q opens", name)
		}
	}
	// A file that becomes a link behind the listing stays inside, and is found out.
	outside := filepath.Join(t.TempDir(), "secret")
	if err := errors.Join(os.WriteFile(outside, []byte("x"), 0o600), os.Remove(filepath.Join(s.real, "a")), os.Symlink(outside, filepath.Join(s.real, "a"))); err != nil {
		t.Fatal(err)
	}
	if _, err := s.FS.Open("a"); err == nil {
		t.Error("a link out of the source opens")
	}
	if _, err := s.Verify(t.Context()); !errors.Is(err, ErrChanged) {
		t.Errorf("a file that became a link: %v", err)
	}
}

func TestSourceArtifact(t *testing.T) {
	s := &Source{Path: "runs/x"}
	for name, want := range map[string]string{"a/b": "runs/x/a/b", "a\nb": `"runs/x/a\nb"`} {
		if got := s.Artifact(name); got != want {
			t.Errorf("%q is %q, want %q", name, got, want)
		}
	}
	if got := (&Source{Path: "."}).Artifact("a"); got != "a" {
		t.Errorf("got %q", got)
	}
	one := &Source{Path: "runs/x.db", File: "x.db"}
	if a, b := one.Artifact("x.db"), one.Artifact("x.db-wal"); a != "runs/x.db" || b != "runs/x.db-wal" {
		t.Errorf("%q %q", a, b)
	}
}

// A source of one file has what SQLite keeps beside it, and what is included.
func TestSourceFile(t *testing.T) {
	dir := source(t, map[string]string{"x.db": "1", "x.db-wal": "2", "x.db-shm": "3", "y.db": "4", "f/config": "5", "f/other": "6"})
	s, err := OpenSource(t.Context(), filepath.Join(dir.real, "x.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if got := s.Names(); !slices.Equal(got, []string{"x.db", "x.db-shm", "x.db-wal"}) {
		t.Errorf("names %q", got)
	}
	if err := s.Include("f/config"); err != nil {
		t.Fatal(err)
	}
	if err := fstest.TestFS(s.FS, "x.db", "x.db-wal", "f/config"); err != nil {
		t.Error(err)
	}
	if _, err := s.FS.Open("f/other"); err == nil {
		t.Error("a stranger opens")
	}
	for _, name := range []string{"../src/y.db", "none", "/etc/passwd"} {
		if err := s.Include(name); err == nil {
			t.Errorf("%q is included", name)
		}
	}
	if _, err := s.Verify(t.Context()); err != nil {
		t.Error(err)
	}
	if err := os.WriteFile(filepath.Join(dir.real, "x.db-journal"), nil, 0o666); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Verify(t.Context()); !errors.Is(err, ErrChanged) {
		t.Errorf("a new journal: %v", err)
	}
}

func TestOut(t *testing.T) {
	s := source(t, map[string]string{"a/b": "text", "a/c": "2", ManifestName: "old"})
	then := time.Unix(1_700_000_000, 0)
	if err := os.Chtimes(filepath.Join(s.real, "a", "b"), then, then); err != nil {
		t.Fatal(err)
	}
	s, err := OpenSource(t.Context(), s.real)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	o, final := begin(t, s)
	for _, name := range []string{"", ".", "..", "../x", "/x", "x/../y", "a//b"} {
		if _, err := o.Create(name); err == nil {
			t.Errorf("create %q", name)
		}
		if _, err := o.Path(name); err == nil {
			t.Errorf("path %q", name)
		}
	}
	if err := errors.Join(o.CopyFile(t.Context(), s, "a/b"), o.CopyFile(t.Context(), s, ManifestName)); err != nil {
		t.Fatal(err)
	}
	if err := o.CopyFile(t.Context(), s, "a/b"); !errors.Is(err, fs.ErrExist) {
		t.Errorf("copied twice: %v", err)
	}
	if err := o.CopyFile(t.Context(), s, "a"); err == nil {
		t.Error("a folder was copied")
	}
	w, err := o.Create("a/c")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write([]byte("new")); err != nil || w.Close() != nil {
		t.Fatal(err)
	}
	at, err := o.Path("deep/x.db")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(at, []byte("db"), 0o666); err != nil {
		t.Fatal(err)
	}
	if _, err := o.Path("deep/x.db"); !errors.Is(err, fs.ErrExist) {
		t.Errorf("the same path twice: %v", err)
	}
	if err := o.Beside(ManifestName, []byte("new")); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Lstat(final); err == nil {
		t.Error("the copy has its name before the end")
	}
	if err := o.Finish(); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"a/b": "text", "a/c": "new", "deep/x.db": "db", ManifestName: "new", "source-" + ManifestName: "old"} {
		if got, err := os.ReadFile(filepath.Join(final, name)); err != nil || string(got) != want {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
	info, err := os.Stat(filepath.Join(final, "a", "b"))
	if err != nil || !info.ModTime().Equal(then) || info.Mode().Perm() != 0o640 {
		t.Errorf("%v %v %v", info.ModTime(), info.Mode(), err)
	}
	if info, err := os.Stat(filepath.Join(final, "a", "c")); err != nil || info.Mode().Perm() != 0o640 {
		t.Errorf("a file that was written anew: %v %v", info.Mode(), err)
	}
}

// fullDisk fails once n bytes were written.
type fullDisk struct {
	w io.Writer
	n *int
}

func (f fullDisk) Write(p []byte) (int, error) {
	if *f.n -= len(p); *f.n < 0 {
		return 0, errors.New("no space left on device")
	}
	return f.w.Write(p)
}

func TestOutFullDisk(t *testing.T) {
	s := source(t, map[string]string{"a": strings.Repeat("x", 1<<20)})
	o, final := begin(t, s)
	left := 300 << 10
	o.wrap = func(w io.Writer) io.Writer { return fullDisk{w, &left} }
	if err := o.CopyFile(t.Context(), s, "a"); err == nil || !strings.Contains(err.Error(), "no space left") {
		t.Errorf("%v", err)
	}
	if err := o.Discard(); err != nil {
		t.Error(err)
	}
	if entries, _ := os.ReadDir(filepath.Dir(final)); len(entries) > 0 {
		t.Errorf("left: %v", entries)
	}
}

func TestOutCancelled(t *testing.T) {
	s := source(t, map[string]string{"a": "x"})
	o, _ := begin(t, s)
	ctx, stop := context.WithCancel(t.Context())
	stop()
	if err := o.CopyFile(ctx, s, "a"); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	if _, err := s.Verify(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	if _, err := OpenSource(ctx, s.real); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

// A folder that was filled meanwhile is not replaced, and the copy is given up.
func TestOutTaken(t *testing.T) {
	s := source(t, map[string]string{"a": "x"})
	o, final := begin(t, s)
	if err := errors.Join(os.Mkdir(final, 0o777), os.WriteFile(filepath.Join(final, "mine"), nil, 0o666)); err != nil {
		t.Fatal(err)
	}
	if err := o.Finish(); err == nil {
		t.Error("the folder was replaced")
	}
	if entries, _ := os.ReadDir(filepath.Dir(final)); len(entries) != 1 {
		t.Errorf("left: %v", entries)
	}
}

// A file that changes between two readings is found out while it is copied.
func TestCopyChanged(t *testing.T) {
	s := source(t, map[string]string{"a": "x"})
	if err := s.Watch(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(s.real, "a"), bytes.Repeat([]byte("y"), 10), 0o666); err != nil {
		t.Fatal(err)
	}
	o, _ := begin(t, s)
	if err := o.CopyFile(t.Context(), s, "a"); !errors.Is(err, ErrChanged) {
		t.Errorf("%v", err)
	}
}
