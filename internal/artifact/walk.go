package artifact

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/inquest-dev/inquest/internal/evidence"
)

// A walker is one Look.
type walker struct {
	o     Options
	spool *spool
	named map[string]bool // real paths of files that the user named one by one
	seen  map[string]bool // real paths taken; nil if only one path was named
	list  []candidate
	only  string // the one artifact that Find looks for; "" for all
}

// A candidate is a regular file that was listed and not yet looked at.
type candidate struct {
	full  string // to open
	path  string // as the report names it
	place string // for attribution
	named bool
}

// found collects what looking at files yields. It belongs to one goroutine.
type found struct {
	files    []File
	passed   map[string]tally
	problems []Problem
	missing  []Problem
	alike    map[string]tally // by extension: files that dropData drops, not kept
	doubts   map[string]int   // by extension: doubtful files seen
}

type tally struct{ count, bytes int64 }

// pass counts something that is not read. size is -1 where it is unknown.
func (f *found) pass(what string, size int64) {
	if f.passed == nil {
		f.passed = make(map[string]tally)
	}
	t := f.passed[what]
	t.count++
	t.bytes += max(size, 0)
	f.passed[what] = t
}

func (f *found) problem(path string, err error) {
	f.problems = append(f.problems, Problem{path, err})
}

func (f *found) addAlike(ext string, t tally) {
	if f.alike == nil {
		f.alike = make(map[string]tally)
	}
	u := f.alike[ext]
	f.alike[ext] = tally{u.count + t.count, u.bytes + t.bytes}
}

func (f *found) merge(g *found) {
	f.files = append(f.files, g.files...)
	f.problems = append(f.problems, g.problems...)
	for ext, t := range g.alike {
		f.addAlike(ext, t)
	}
	for what, t := range g.passed {
		f.pass(what, t.bytes)
		u := f.passed[what]
		u.count += t.count - 1
		f.passed[what] = u
	}
}

// walk lists the paths and then looks at what was listed with a few workers.
func (w *walker) walk(ctx context.Context, paths []string, f *found) error {
	roots, err := w.roots(paths, f)
	if err != nil {
		return err
	}
	if len(roots) > 1 {
		w.seen = make(map[string]bool)
		for _, r := range roots {
			if r.named {
				w.named[r.real] = true
			}
		}
	}
	for _, r := range roots {
		switch {
		case r.stdin:
			if err := w.stdin(ctx, f); err != nil {
				return err
			}
		case r.dir:
			if err := w.folder(ctx, r.real, r.real, r.path, r.place, f); err != nil {
				return err
			}
		default:
			w.add(candidate{r.real, r.path, r.place, r.named}, r.real)
		}
	}
	return w.lookAll(ctx, f)
}

// A root is one path that the user named, or one match of a glob.
type root struct {
	path, place, real string
	dir, stdin, named bool
}

// roots resolves the paths. What does not exist is a problem, and an error if
// nothing else was named.
func (w *walker) roots(paths []string, f *found) ([]root, error) {
	var roots []root
	var missing []Problem
	stdin := false
	for _, p := range paths {
		if p == "-" {
			if !stdin {
				roots = append(roots, root{stdin: true, named: true})
			}
			stdin = true
			continue
		}
		matches, named := []string{p}, true
		if _, err := os.Lstat(p); errors.Is(err, fs.ErrNotExist) && strings.ContainsAny(p, "*?[") {
			m, err := filepath.Glob(p)
			switch {
			case err != nil:
				missing = append(missing, Problem{printable(w.o.Name(p)), err})
				continue
			case len(m) == 0:
				missing = append(missing, Problem{printable(w.o.Name(p)), errors.New("nothing matches")})
				continue
			}
			matches, named = m, false
		}
		for _, m := range matches {
			r, err := resolve(m, w.o.Name(m))
			if err != nil {
				missing = append(missing, Problem{printable(w.o.Name(m)), plainError(err)})
				continue
			}
			r.named = named && !r.dir
			roots = append(roots, r)
		}
	}
	if len(roots) == 0 {
		errs := make([]error, len(missing))
		for i, m := range missing {
			errs[i] = fmt.Errorf("%s: %w", m.Path, m.Err)
		}
		return nil, errors.Join(errs...)
	}
	f.problems, f.missing = append(f.problems, missing...), missing
	return roots, nil
}

// Name is the path p as reports name it: relative to the root that it lies in, else as it is.
func (o *Options) Name(p string) string {
	for _, r := range o.Roots {
		if rel, err := filepath.Rel(r, p); err == nil && filepath.IsLocal(rel) {
			return rel
		}
	}
	return p
}

// resolve follows p, which the user named, to what it is. It is said as name.
func resolve(p, name string) (root, error) {
	info, err := os.Stat(p)
	if err != nil {
		return root{}, err
	}
	r := root{path: printable(filepath.ToSlash(filepath.Clean(name)))}
	if k := special(info.Mode()); k != "" {
		return root{}, fmt.Errorf("is a %s; not read", k)
	}
	if r.real, err = filepath.Abs(p); err == nil {
		r.real, err = filepath.EvalSymlinks(r.real)
	}
	if err != nil {
		return root{}, err
	}
	r.dir = info.IsDir()
	// The name and the last folders tell whose it is; what lies far above says
	// nothing about this job in particular.
	clean := filepath.ToSlash(filepath.Clean(name))
	if parts := strings.Split(clean, "/"); parts[0] != "." && parts[0] != ".." {
		r.place = strings.Join(parts[max(0, len(parts)-4):], "/")
	} else {
		r.place = filepath.Base(r.real)
	}
	if r.dir {
		r.path = filepath.Clean(name)
	}
	return r, nil
}

// special names what may block or never end when opened; "" for the rest.
func special(m fs.FileMode) string {
	switch {
	case m&fs.ModeNamedPipe != 0:
		return "named pipe"
	case m&fs.ModeSocket != 0:
		return "socket"
	case m&(fs.ModeDevice|fs.ModeCharDevice) != 0:
		return "device"
	case m&fs.ModeIrregular != 0:
		return "file of an unknown sort"
	}
	return ""
}

// add lists a file unless it was listed under another named path.
func (w *walker) add(c candidate, real string) {
	if w.seen != nil {
		if w.seen[real] {
			return
		}
		w.seen[real] = true
		c.named = c.named || w.named[real]
	}
	w.list = append(w.list, c)
}

// folder lists what is in dir. tree is the real path of the named folder, shown
// is dir as the user would write it, place its slash path for attribution.
// Links are not followed: a link inside the tree leads to what is listed
// anyway, so each file is read once and no loop is possible.
func (w *walker) folder(ctx context.Context, tree, dir, shown, place string, f *found) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		f.problem(printable(filepath.ToSlash(shown)), plainError(err))
	}
	for _, e := range entries {
		if dir != tree && (e.Name() == "pyvenv.cfg" || e.Name() == "conda-meta") {
			f.pass("Python environment", 0)
			return nil
		}
	}
	for _, e := range entries {
		name := e.Name()
		full, sub := filepath.Join(dir, name), filepath.Join(shown, name)
		switch mode := e.Type(); {
		case mode.IsDir():
			if foreignFolders[name] {
				f.pass("folder "+name, 0)
				continue
			}
			if err := w.folder(ctx, tree, full, sub, place+"/"+name, f); err != nil {
				return err
			}
		case mode&fs.ModeSymlink != 0:
			f.pass(link(tree, full), 0)
		case mode.IsRegular():
			if len(w.list) >= maxEntries {
				f.pass(fmt.Sprintf("beyond the first %d entries", maxEntries), 0)
				continue
			}
			w.add(candidate{full: full, path: printable(filepath.ToSlash(sub)), place: place + "/" + name}, full)
		default:
			f.problem(printable(filepath.ToSlash(sub)), fmt.Errorf("is a %s; not read", special(mode)))
		}
	}
	return nil
}

// link says what a link is passed over as.
func link(tree, full string) string {
	target, err := filepath.EvalSymlinks(full)
	if err != nil {
		return "link that leads nowhere"
	}
	if rel, err := filepath.Rel(tree, target); err != nil || rel == ".." || strings.HasPrefix(rel, ".."+string(filepath.Separator)) {
		return "link out of the folder"
	}
	return "link to what is read under its own name"
}

// lookAll looks at the listed files. Results do not depend on who looked first:
// counts add up, and files and problems are sorted later.
func (w *walker) lookAll(ctx context.Context, f *found) error {
	const chunk = 64
	workers := min(max(2, runtime.GOMAXPROCS(0)), 8, (len(w.list)+chunk-1)/chunk)
	if len(w.list) > 1 && workers < 2 {
		workers = 2
	}
	per := max(1, min(chunk, len(w.list)/max(1, workers)))
	var next atomic.Int64
	var wg sync.WaitGroup
	parts := make([]found, workers)
	for i := range parts {
		wg.Add(1)
		go func() {
			defer wg.Done()
			l := &looker{walker: w, found: &parts[i], head: make([]byte, headLen)}
			for {
				from := int(next.Add(int64(per))) - per
				for j := from; j < min(from+per, len(w.list)); j++ {
					if ctx.Err() != nil {
						return
					}
					l.file(ctx, w.list[j])
				}
				if from+per >= len(w.list) {
					return
				}
			}
		}()
	}
	wg.Wait()
	for i := range parts {
		f.merge(&parts[i])
	}
	return ctx.Err()
}

// stdin reads standard input: in place if it is a plain file, else to its end
// into the spool.
func (w *walker) stdin(ctx context.Context, f *found) error {
	if w.o.Stdin == nil {
		f.problem("-", errors.New("standard input is not at hand"))
		return nil
	}
	it := item{path: "-", place: "-", named: true}
	l := &looker{walker: w, found: f, head: make([]byte, headLen)}
	if file, ok := w.o.Stdin.(*os.File); ok {
		if info, err := file.Stat(); err == nil && info.Mode().IsRegular() {
			size := info.Size()
			section := func() *io.SectionReader { return io.NewSectionReader(file, 0, size) }
			it.stored = size
			l.look(ctx, it, content{
				size: size,
				open: func() (io.ReadCloser, error) { return io.NopCloser(section()), nil },
				at:   func() (io.ReaderAt, io.Closer, error) { return section(), io.NopCloser(nil), nil },
			})
			return ctx.Err()
		}
	}
	m, err := w.spool.take(ctxReader{ctx, w.o.Stdin})
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		f.problem("-", err)
	}
	it.stored = m.size
	l.look(ctx, it, m.content())
	return ctx.Err()
}

// A ctxReader stops between reads when ctx is done.
type ctxReader struct {
	ctx context.Context
	r   io.Reader
}

func (c ctxReader) Read(p []byte) (int, error) {
	if err := c.ctx.Err(); err != nil {
		return 0, err
	}
	return c.r.Read(p)
}

// open opens a regular file. Should the name have become a pipe since it was
// listed, it neither blocks nor is read.
func open(name string) (*os.File, fs.FileInfo, error) {
	f, err := os.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, nil, plainError(err)
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = errors.New("is no longer a plain file; not read")
	}
	if err != nil {
		f.Close()
		return nil, nil, plainError(err)
	}
	return f, info, nil
}

// plainError drops operation and path from an error of package os: a Problem
// names the path.
func plainError(err error) error {
	if pe := (*fs.PathError)(nil); errors.As(err, &pe) {
		return pe.Err
	}
	return err
}

// printable returns p as it is, or quoted in Go's manner if it is not valid
// UTF-8 or holds anything that does not print (control characters, line ends,
// marks that reverse the direction of writing).
func printable(p string) string {
	for _, r := range p {
		if !strconv.IsPrint(r) || r == '\ufffd' {
			return strconv.Quote(p)
		}
	}
	return p
}

// artifact returns what Sniff is given.
func (it item) artifact(size int64) evidence.Artifact {
	return evidence.Artifact{Path: it.path, Size: size, Owner: evidence.Owner{Rank: evidence.None, LocalRank: evidence.None}}
}

// An item is one file or member on its way to being looked at.
type item struct {
	path   string // as the report names it
	place  string
	mod    time.Time
	stored int64 // bytes as stored, -1 if unknown
	named  bool
	depth  int // how many archives it lies in
	budget *budget
	disk   string // name on disk, "" for members of archives
}
