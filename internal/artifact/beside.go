package artifact

import (
	"errors"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"
)

// maxBeside bounds the files that belong to one.
const maxBeside = 20_000

// gather takes the files that belong to another one out of the list and puts them beside
// it. The anchor is a file of the same kind; among several that match the first by place
// gets it.
func gather(files []File, anchor func(kind, place string) (dir, pattern string, ok bool)) []File {
	if anchor == nil {
		return files
	}
	slices.SortStableFunc(files, func(a, b File) int { return strings.Compare(a.Place, b.Place) })
	type folder struct{ kind, dir string }
	in := map[folder][]int{}
	for i := range files {
		f := &files[i]
		if f.Fate == "" && f.Kind != "" {
			if _, _, ok := anchor(f.Kind, f.Place); !ok {
				at := folder{f.Kind, path.Dir(f.Place)}
				in[at] = append(in[at], i)
			}
		}
	}
	gone := make([]bool, len(files))
	taken := make([]*File, len(files))
	for i := range files {
		f := &files[i]
		if f.Fate != "" || f.Kind == "" {
			continue
		}
		dir, pattern, ok := anchor(f.Kind, f.Place)
		if !ok {
			continue
		}
		for _, j := range in[folder{f.Kind, path.Clean(dir)}] {
			if match, _ := path.Match(pattern, path.Base(files[j].Place)); match && outer(files[j].Path) == outer(f.Path) && len(files[j].Beside) < maxBeside {
				c := *f
				c.Head = nil
				taken[i], gone[i] = &c, true
				files[j].Beside = append(files[j].Beside, &c)
				break
			}
		}
	}
	kept := files[:0]
	for i := range files {
		if !gone[i] {
			kept = append(kept, files[i])
		}
	}
	return kept
}

// outer is the archive that a path leads into, "" for none.
func outer(p string) string {
	if i := strings.LastIndexByte(p, '!'); i >= 0 {
		return p[:i]
	}
	return ""
}

// Dir is the folder of f as far as it is f's: the files beside it, by their slash paths
// relative to that folder. It has no directories to list but its own root, which lists
// them all.
func (f *File) Dir() fs.FS { return beside{f} }

type beside struct{ of *File }

func (b beside) names() map[string]*File {
	dir := path.Dir(b.of.Place) + "/"
	m := make(map[string]*File, len(b.of.Beside))
	for _, f := range b.of.Beside {
		m[strings.TrimPrefix(f.Place, dir)] = f
	}
	return m
}

func (b beside) Open(name string) (fs.File, error) {
	if name == "." {
		return &rootDir{b.entries()}, nil
	}
	f := b.names()[name]
	if f == nil {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	rc, err := f.Open()
	if err != nil {
		return nil, err
	}
	return opened{rc, info{name, f.Size, f.ModTime}}, nil
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
	for name, f := range b.names() {
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
