package repair

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/inquest-dev/inquest/internal/incident"
)

// maxEntries bounds the files and folders of a source.
const maxEntries = 1 << 20

// ErrChanged is wrapped by the error of a source that did not stay as it was.
var ErrChanged = errors.New("the source changed while it was copied")

// A Source is what is copied: a folder, or a file in one. It can only be read, and what is
// opened through it is watched: its digest, size and time are compared when the copy
// is complete.
type Source struct {
	Path string // as the user named it, slash-separated
	File string // base name where the source is one file, "" for a folder
	// FS is the folder. It has what was there when the source was opened: folders and plain
	// files; links are neither listed nor followed. Of a source that is one file it has that
	// file, those that SQLite keeps beside a database of that name, and what else readers
	// found to belong to it. Files are io.ReaderAt and io.Seeker too.
	FS fs.FS

	real string // the folder or file, links resolved
	root *os.Root
	list map[string]fs.FileInfo // by slash path below the root
	in   map[string][]fs.DirEntry
	// added are the files and folders that were included in a source of one file.
	added []string
	sums  map[string]string // SHA-256 by path, of the files that were opened
}

// companions are what SQLite keeps beside a database file of some name.
var companions = []string{"-wal", "-shm", "-journal"}

// OpenSource opens a folder or a file for copying, and lists what is in it. The caller
// closes it.
func OpenSource(ctx context.Context, name string) (*Source, error) {
	info, err := os.Stat(name)
	if err != nil {
		return nil, err
	}
	s := &Source{Path: filepath.ToSlash(filepath.Clean(name)), sums: map[string]string{}}
	if s.real, err = filepath.Abs(name); err == nil {
		s.real, err = filepath.EvalSymlinks(s.real)
	}
	if err != nil {
		return nil, err
	}
	dir := s.real
	switch {
	case info.Mode().IsRegular():
		dir, s.File = filepath.Dir(s.real), filepath.Base(s.real)
	case !info.IsDir():
		return nil, fmt.Errorf("%s is neither a folder nor a plain file", printable(s.Path))
	}
	if s.root, err = os.OpenRoot(dir); err != nil {
		return nil, err
	}
	if s.list, err = s.look(ctx); err != nil {
		s.root.Close()
		return nil, err
	}
	s.index()
	s.FS = sourceFS{s}
	return s, nil
}

func (s *Source) index() {
	s.in = map[string][]fs.DirEntry{}
	for _, name := range slices.Sorted(maps.Keys(s.list)) {
		d := path.Dir(name)
		s.in[d] = append(s.in[d], fs.FileInfoToDirEntry(s.list[name]))
	}
}

// Include makes files that a reader found around a source of one file part of it, by their
// slash paths below its folder. Of a folder all files are part.
func (s *Source) Include(names ...string) error {
	if s.File == "" {
		return nil
	}
	for _, name := range names {
		for at := name; at != "." && s.list[at] == nil; at = path.Dir(at) {
			info, err := s.root.Lstat(at)
			if err != nil {
				return err
			}
			if !info.IsDir() && !info.Mode().IsRegular() {
				return fmt.Errorf("%s is no plain file", printable(at))
			}
			s.list[at] = info
			s.added = append(s.added, at)
		}
	}
	s.index()
	return nil
}

// Close releases the folder.
func (s *Source) Close() error { return s.root.Close() }

// Artifact is how readers name the file at a path below the source.
func (s *Source) Artifact(name string) string {
	if s.File != "" && name == s.File {
		return printable(s.Path)
	}
	if s.File != "" {
		return printable(path.Join(path.Dir(s.Path), name))
	}
	return printable(path.Join(s.Path, name))
}

// Artifacts maps what readers call the files below the source to their paths.
func (s *Source) Artifacts() map[string]string {
	m := make(map[string]string, len(s.list))
	for name, info := range s.list {
		if !info.IsDir() {
			m[s.Artifact(name)] = name
		}
	}
	return m
}

// NameOf is the path below the source of the file that readers call artifact, "" where there is
// none or it does not begin with head.
func (s *Source) NameOf(artifact, head string) string {
	name := s.Artifacts()[artifact]
	if name == "" {
		return ""
	}
	f, err := s.FS.Open(name)
	if err != nil {
		return ""
	}
	defer f.Close()
	had := make([]byte, len(head))
	if _, err := io.ReadFull(f, had); err != nil || string(had) != head {
		return ""
	}
	return name
}

// Stopping returns r as long as ctx is not done, and ctx's error then.
func Stopping(ctx context.Context, r io.Reader) io.Reader { return stopping{ctx, r} }

type stopping struct {
	ctx context.Context
	r   io.Reader
}

func (s stopping) Read(p []byte) (int, error) {
	if err := s.ctx.Err(); err != nil {
		return 0, err
	}
	return s.r.Read(p)
}

// printable is a path as the walk of artifacts shows it: quoted in Go's manner if it holds
// anything that does not print.
func printable(p string) string {
	for _, r := range p {
		if !strconv.IsPrint(r) || r == '\ufffd' {
			return strconv.Quote(p)
		}
	}
	return p
}

// look lists the source as it is now.
func (s *Source) look(ctx context.Context) (map[string]fs.FileInfo, error) {
	list := map[string]fs.FileInfo{}
	if s.File != "" {
		names := append([]string{s.File}, s.added...)
		for _, c := range companions {
			names = append(names, s.File+c)
		}
		for _, name := range names {
			info, err := s.root.Lstat(name)
			if name != s.File && errors.Is(err, fs.ErrNotExist) {
				continue
			}
			if err != nil {
				return nil, err
			}
			if info.IsDir() || info.Mode().IsRegular() {
				list[name] = info
			}
		}
		return list, nil
	}
	err := fs.WalkDir(s.root.FS(), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		if len(list) >= maxEntries {
			return fmt.Errorf("over limit: %s has more than %d files and folders", printable(s.Path), maxEntries)
		}
		if name == "." || !d.IsDir() && !d.Type().IsRegular() {
			return nil
		}
		info, err := d.Info()
		if err == nil {
			list[name] = info
		}
		return err
	})
	return list, err
}

// Names are the slash paths of the plain files, sorted.
func (s *Source) Names() []string {
	var names []string
	for name, info := range s.list {
		if !info.IsDir() {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// Watch takes the digest of a file before it is read by somebody else than FS.
func (s *Source) Watch(ctx context.Context, name string) error {
	if _, ok := s.sums[name]; ok {
		return nil
	}
	f, err := s.open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	sum, err := digest(ctx, f, nil)
	if err != nil {
		return fmt.Errorf("read %s: %w", printable(name), err)
	}
	s.sums[name] = sum
	return nil
}

// open opens a plain file. Should the name have become a pipe since it was listed, it
// neither blocks nor is read.
func (s *Source) open(name string) (*os.File, error) {
	f, err := s.root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%w: %s is no longer a plain file", ErrChanged, printable(name))
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// digest reads r to its end, writing it to w where that is not nil.
func digest(ctx context.Context, r io.Reader, w io.Writer) (string, error) {
	h := sha256.New()
	buf := make([]byte, 256<<10)
	for {
		if err := ctx.Err(); err != nil {
			return "", err
		}
		n, err := r.Read(buf)
		h.Write(buf[:n])
		if w != nil && n > 0 {
			if _, err := w.Write(buf[:n]); err != nil {
				return "", err
			}
		}
		if err == io.EOF {
			return hex.EncodeToString(h.Sum(nil)), nil
		}
		if err != nil {
			return "", err
		}
	}
}

// Verify looks at the source again. It returns every file that was read with its digest
// before, by path. The error wraps ErrChanged and names what is no longer as it was: a
// file that was read by its digest, size or time, any other by size and time, the
// folders by their names.
func (s *Source) Verify(ctx context.Context) ([]incident.RepairFile, error) {
	now, err := s.look(ctx)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrChanged, err)
	}
	var wrong []string
	differ := map[string]bool{}
	for _, name := range slices.Sorted(maps.Keys(s.list)) {
		was, is := s.list[name], now[name]
		switch {
		case is == nil:
			wrong = append(wrong, printable(name)+" is gone")
		case was.IsDir() && is.IsDir():
			continue
		case was.Mode() != is.Mode() || was.Size() != is.Size() || !was.ModTime().Equal(is.ModTime()):
			wrong = append(wrong, printable(name)+" was written to")
		default:
			continue
		}
		differ[name] = true
	}
	for _, name := range slices.Sorted(maps.Keys(now)) {
		if s.list[name] == nil {
			wrong = append(wrong, printable(name)+" is new")
		}
	}
	files := []incident.RepairFile{}
	for _, name := range slices.Sorted(maps.Keys(s.sums)) {
		was := s.list[name]
		if was == nil {
			continue
		}
		if !differ[name] {
			sum, err := s.again(ctx, name)
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}
			if err != nil || sum != s.sums[name] {
				differ[name] = true
				wrong = append(wrong, printable(name)+" has other bytes")
			}
		}
		files = append(files, incident.RepairFile{Path: name, Size: was.Size(), SHA256: s.sums[name],
			ModTime: was.ModTime().UTC().Format(time.RFC3339Nano), Same: !differ[name]})
	}
	if n := len(wrong); n > 0 {
		if n > 5 {
			wrong = append(wrong[:5], fmt.Sprintf("and %d more", n-5))
		}
		return files, fmt.Errorf("%w: %s", ErrChanged, strings.Join(wrong, ", "))
	}
	return files, nil
}

func (s *Source) again(ctx context.Context, name string) (string, error) {
	f, err := s.open(name)
	if err != nil {
		return "", err
	}
	defer f.Close()
	return digest(ctx, f, nil)
}

// sourceFS is the source as it was listed.
type sourceFS struct{ s *Source }

// Open takes the digest of a file the first time that it is opened.
func (f sourceFS) Open(name string) (fs.File, error) {
	if !fs.ValidPath(name) {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrInvalid}
	}
	info := f.s.list[name]
	switch {
	case name == ".":
		st, err := f.s.root.Stat(".")
		if err != nil {
			return nil, err
		}
		return &folder{info: st, list: f.s.in["."]}, nil
	case info == nil:
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	case info.IsDir():
		return &folder{info: info, list: f.s.in[name]}, nil
	}
	if err := f.s.Watch(context.Background(), name); err != nil {
		return nil, err
	}
	return f.s.open(name)
}

// ReadDir lists a folder, sorted by name.
func (f sourceFS) ReadDir(name string) ([]fs.DirEntry, error) {
	if info := f.s.list[name]; name != "." && (info == nil || !info.IsDir()) {
		return nil, &fs.PathError{Op: "readdir", Path: name, Err: fs.ErrNotExist}
	}
	return slices.Clone(f.s.in[name]), nil
}

// Stat does not open the file.
func (f sourceFS) Stat(name string) (fs.FileInfo, error) {
	if name == "." {
		return f.s.root.Stat(".")
	}
	if info := f.s.list[name]; info != nil {
		return info, nil
	}
	return nil, &fs.PathError{Op: "stat", Path: name, Err: fs.ErrNotExist}
}

// A folder is a listed folder, opened.
type folder struct {
	info fs.FileInfo
	list []fs.DirEntry
	at   int
}

func (d *folder) Stat() (fs.FileInfo, error) { return d.info, nil }
func (d *folder) Close() error               { return nil }
func (d *folder) Read([]byte) (int, error) {
	return 0, &fs.PathError{Op: "read", Path: d.info.Name(), Err: errors.New("is a folder")}
}

func (d *folder) ReadDir(n int) ([]fs.DirEntry, error) {
	left := d.list[d.at:]
	if n > 0 && len(left) == 0 {
		return nil, io.EOF
	}
	if n > 0 && n < len(left) {
		left = left[:n]
	}
	d.at += len(left)
	return slices.Clone(left), nil
}
