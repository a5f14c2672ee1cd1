package artifact

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/inquest-dev/inquest/internal/evidence"
)

// maxBeside bounds the files that belong to one.
const maxBeside = 20_000

// An anchorFunc says where the file lies that one of a kind at a place belongs to: folder
// and pattern of the base name. Kind "" asks whether any kind claims the place.
type anchorFunc = func(kind, place string) (dir, pattern string, ok bool)

// gather takes the files that belong to another one out of the list and puts them beside
// it. A file belongs to one of its own kind, or of a kind that claims its place where nobody is
// sure of the file itself; among several that match the first by place gets it. A companion
// whose file is not there is passed over.
func gather(f *found, anchor anchorFunc) {
	if anchor == nil {
		return
	}
	files := f.files
	slices.SortStableFunc(files, func(a, b File) int { return strings.Compare(a.Place, b.Place) })
	type folder struct{ kind, dir string }
	in := map[folder][]int{}
	var kinds []string
	for i := range files {
		f := &files[i]
		if f.Fate != "" || f.Kind == "" {
			continue
		}
		if _, _, ok := anchor(f.Kind, f.Place); !ok {
			at := folder{f.Kind, path.Dir(f.Place)}
			in[at] = append(in[at], i)
			if !slices.Contains(kinds, f.Kind) {
				kinds = append(kinds, f.Kind)
			}
		}
	}
	gone := make([]bool, len(files))
	take := func(i int, kind string) bool {
		f := &files[i]
		dir, pattern, ok := anchor(kind, f.Place)
		if !ok {
			return false
		}
		for _, j := range in[folder{kind, path.Clean(dir)}] {
			if match, _ := path.Match(pattern, path.Base(files[j].Place)); match && i != j && outer(files[j].Path) == outer(f.Path) && len(files[j].Beside) < maxBeside {
				c := *f
				c.Head = nil
				files[j].Beside = append(files[j].Beside, &c)
				return true
			}
		}
		return false
	}
	for i := range files {
		f := &files[i]
		if f.Fate != "" {
			continue
		}
		if f.Kind != "" {
			gone[i] = take(i, f.Kind)
		}
		if !gone[i] && f.Confidence < sure {
			gone[i] = slices.ContainsFunc(kinds, func(kind string) bool { return kind != f.Kind && take(i, kind) })
		}
	}
	kept := files[:0]
	for i := range files {
		switch {
		case gone[i]:
		case files[i].companion && !files[i].Named:
			f.pass(reason(files[i].Place, isText(files[i].Head)), files[i].Size)
		default:
			if files[i].companion {
				files[i].Fate, files[i].Note = fateNotRecognised, "belongs to a file that is not there"
			}
			kept = append(kept, files[i])
		}
	}
	f.files = kept
}

// Bounds of a look around a file that was named alone.
const (
	aroundEntries = 20_000
	aroundDepth   = 8
)

// around puts beside the files that were named one by one what lies in their folders and
// belongs to them: who names a database means what is in its log as well.
func (w *walker) around(ctx context.Context, f *found) error {
	anchor := w.o.Anchor
	if anchor == nil {
		return nil
	}
	for i := range f.files {
		of := &f.files[i]
		if !of.Named || of.disk == "" || of.Fate != "" || of.Kind == "" {
			continue
		}
		have := map[string]bool{}
		for _, b := range of.Beside {
			have[b.Place] = true
		}
		root, entries := filepath.Dir(of.disk), 0
		err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			rel, relErr := filepath.Rel(root, name)
			if err != nil || relErr != nil || rel == "." {
				return nil
			}
			rel = filepath.ToSlash(rel)
			if entries++; entries > aroundEntries {
				f.problem(of.Path, &LimitError{fmt.Sprintf("more than %d files in its folder: those that belong to it may not all have been found", aroundEntries)})
				return fs.SkipAll
			}
			if d.IsDir() {
				if strings.Count(rel, "/") >= aroundDepth || foreignFolders[d.Name()] {
					return fs.SkipDir
				}
				return nil
			}
			place := path.Join(path.Dir(of.Place), rel)
			dir, pattern, ok := anchor(of.Kind, place)
			if !ok || have[place] || !d.Type().IsRegular() || path.Clean(dir) != path.Dir(of.Place) || len(of.Beside) >= maxBeside {
				return nil
			}
			if match, _ := path.Match(pattern, path.Base(of.Place)); !match {
				return nil
			}
			info, err := d.Info()
			if err != nil {
				return nil
			}
			b := &File{ModTime: info.ModTime(), Place: place, disk: name,
				Open: func() (io.ReadCloser, error) { f, _, err := open(name); return f, err },
				At:   func() (io.ReaderAt, io.Closer, error) { f, _, err := open(name); return f, f, err }}
			b.Path, b.Kind, b.Size = path.Join(path.Dir(of.Path), printable(rel)), of.Kind, info.Size()
			b.Owner.Rank, b.Owner.LocalRank = evidence.None, evidence.None
			of.Beside = append(of.Beside, b)
			return nil
		})
		if err != nil {
			return err
		}
		// What was named as well and lies beside is there once.
		slices.SortFunc(of.Beside, func(a, b *File) int { return strings.Compare(a.Place, b.Place) })
	}
	return nil
}

// outer is the archive that a path leads into, "" for none.
func outer(p string) string {
	if i := strings.LastIndexByte(p, '!'); i >= 0 {
		return p[:i]
	}
	return ""
}

// Dir is the folder of f as far as it is f's: the files beside it, by their slash paths
// relative to that folder. Those that lie somewhere as they are can be read at any place
// (io.ReaderAt). It has no directories to list but its own root, which lists them all.
func (f *File) Dir() fs.FS {
	dir := path.Dir(f.Place) + "/"
	b := make(beside, len(f.Beside))
	for _, x := range f.Beside {
		b[strings.TrimPrefix(x.Place, dir)] = x
	}
	return b
}

// A beside has the files by their names.
type beside map[string]*File

func (b beside) Open(name string) (fs.File, error) {
	if name == "." {
		return &rootDir{b.entries()}, nil
	}
	f := b[name]
	if f == nil {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	about := info{name, f.Size, f.ModTime}
	if f.At != nil {
		at, closer, err := f.At()
		if err != nil {
			return nil, err
		}
		return located{io.NewSectionReader(at, 0, max(f.Size, 0)), closer, about}, nil
	}
	rc, err := f.Open()
	if err != nil {
		return nil, err
	}
	return opened{rc, about}, nil
}

// ReadDir lists the files, all of them at the root, by path.
func (b beside) ReadDir(name string) ([]fs.DirEntry, error) {
	if name != "." {
		return nil, &fs.PathError{Op: "readdir", Path: name, Err: fs.ErrNotExist}
	}
	return b.entries(), nil
}

func (b beside) entries() []fs.DirEntry {
	var out []fs.DirEntry
	for name, f := range b {
		out = append(out, fs.FileInfoToDirEntry(info{name, f.Size, f.ModTime}))
	}
	slices.SortFunc(out, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	return out
}

type opened struct {
	io.ReadCloser
	info info
}

func (o opened) Stat() (fs.FileInfo, error) { return o.info, nil }

// A located file can be read at any place.
type located struct {
	*io.SectionReader
	io.Closer
	info info
}

func (l located) Stat() (fs.FileInfo, error) { return l.info, nil }

type rootDir struct{ list []fs.DirEntry }

func (r *rootDir) Stat() (fs.FileInfo, error) { return info{".", 0, time.Time{}}, nil }
func (r *rootDir) Read([]byte) (int, error)   { return 0, errors.New("is a folder") }
func (r *rootDir) Close() error               { return nil }

type info struct {
	name string
	size int64
	mod  time.Time
}

func (i info) Name() string       { return i.name }
func (i info) Size() int64        { return i.size }
func (i info) Mode() fs.FileMode  { return 0o444 }
func (i info) ModTime() time.Time { return i.mod }
func (i info) IsDir() bool        { return i.name == "." }
func (i info) Sys() any           { return nil }
