package artifact

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"unicode/utf8"
)

// ErrNoArtifact says that nothing among the paths has the name that was asked for.
var ErrNoArtifact = errors.New("no artifact of this name")

// ErrGone says that an artifact was read from standard input, which cannot be read again.
var ErrGone = errors.New("it was read from standard input, which cannot be read again")

// A Found is one artifact that Find opened again.
type Found struct {
	File
	spool *spool
}

// Close releases what a member of an archive was kept in. The file may not be opened
// afterwards.
func (f *Found) Close() error { return f.spool.close() }

// maxBangs bounds the places at which a name may be divided into an archive and its members.
const maxBangs = 32

// Find looks up the one artifact that a report names so, among the same paths and under the
// same rules: it walks straight to it, follows no link on the way, never leaves a named folder,
// and of an archive keeps only the member that is asked for. The error is ErrNoArtifact where
// nothing has the name or what has it would not be read, ErrGone for standard input, or ctx's.
func Find(ctx context.Context, paths []string, name string, o Options) (*Found, error) {
	if name == "-" || strings.HasPrefix(name, "-!") {
		return nil, ErrGone
	}
	if o.MaxArchiveBytes <= 0 {
		o.MaxArchiveBytes = 64 << 30
	}
	w := &walker{o: o, spool: newSpool(spoolMemory, spoolDisk), named: map[string]bool{}, only: name}
	f := &found{}
	file, err := w.find(ctx, paths, name, f)
	if err != nil {
		w.spool.close()
		return nil, err
	}
	return &Found{*file, w.spool}, nil
}

func (w *walker) find(ctx context.Context, paths []string, name string, f *found) (*File, error) {
	var roots []root
	for _, p := range paths {
		if p == "-" || !w.mayHold(p, name) {
			continue
		}
		r, err := w.roots([]string{p}, f)
		if err == nil { // of several paths one may be gone
			roots = append(roots, r...)
		}
	}
	l := &looker{walker: w, found: f, head: make([]byte, headLen)}
	for _, r := range roots {
		list := []candidate{{r.real, r.path, r.place, r.named}}
		if r.dir {
			list = below(r, name)
		} else if !leadsTo(r.path, name) {
			continue
		}
		for _, c := range list {
			l.file(ctx, c)
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			for i := range f.files {
				if f.files[i].Path == name {
					return &f.files[i], nil
				}
			}
			f.files = nil
		}
	}
	return nil, ErrNoArtifact
}

// leadsTo reports whether an artifact of the path is, or as an archive may hold, the one of the
// name.
func leadsTo(path, name string) bool {
	return path == name || strings.HasPrefix(name, path) && name[len(path)] == '!'
}

// mayHold reports whether what a named path leads to can have an artifact of the name: it saves
// resolving thousands of paths for one.
func (w *walker) mayHold(p, name string) bool {
	if strings.ContainsAny(p, "*?[") {
		return true
	}
	shown := filepath.ToSlash(filepath.Clean(w.o.Name(p)))
	return leadsTo(printable(shown), name) || strings.HasPrefix(unquoted(name), inFolder(shown))
}

// inFolder is how the names of what lies in a folder begin.
func inFolder(shown string) string {
	switch {
	case shown == ".":
		return ""
	case strings.HasSuffix(shown, "/"):
		return shown
	}
	return shown + "/"
}

// unquoted is an artifact's name as it is on the disk, as far as the file goes; "" where it can be
// none.
func unquoted(name string) string {
	if !strings.HasPrefix(name, `"`) {
		return name
	}
	q, err := strconv.QuotedPrefix(name)
	if err != nil {
		return name
	}
	raw, err := strconv.Unquote(q)
	if err != nil {
		return ""
	}
	return raw
}

// below lists the regular files in a named folder by which an artifact can have the name: the
// name may hold a ! that belongs to the file, and one that leads into an archive.
func below(r root, name string) []candidate {
	shown := inFolder(filepath.ToSlash(r.path))
	rest, ok := strings.CutPrefix(unquoted(name), shown)
	if !ok || rest == "" {
		return nil
	}
	var out []candidate
	for n, end := 0, 0; n < maxBangs && end < len(rest); n++ {
		if i := strings.IndexByte(rest[end:], '!'); i < 0 {
			end = len(rest)
		} else {
			end += i
		}
		if rel := rest[:end]; plainFile(r.real, rel) {
			c := candidate{full: filepath.Join(r.real, filepath.FromSlash(rel)), path: printable(shown + rel), place: r.place + "/" + rel}
			if leadsTo(c.path, name) {
				out = append(out, c)
			}
		}
		end++
	}
	return out
}

// plainFile reports whether rel, a slash path, is a regular file below dir that is reached
// through folders alone, none of them one that a walk passes over.
func plainFile(dir, rel string) bool {
	if !fs.ValidPath(rel) || runtime.GOOS == "windows" && strings.ContainsAny(rel, `\:`) || !filepath.IsLocal(filepath.FromSlash(rel)) {
		return false
	}
	parts := strings.Split(rel, "/")
	for i, part := range parts {
		dir = filepath.Join(dir, part)
		info, err := os.Lstat(dir)
		switch {
		case err != nil:
			return false
		case i == len(parts)-1:
			return info.Mode().IsRegular()
		case !info.IsDir() || foreignFolders[part]:
			return false
		}
	}
	return false
}

// unasked reports whether an artifact's path leads to none that Find looks for. A Look wants
// all.
func (w *walker) unasked(path string) bool { return w.only != "" && !leadsTo(path, w.only) }

// had reports whether what Find looks for is found.
func (l *looker) had() bool { return l.only != "" && len(l.files) > 0 }

// straysOnly reports whether head is UTF-8 text but for single zeros, as few as the control characters
// that a text may have. Formats with numbers in them are no such text: a short one that is, is
// shown as what it looks like.
func straysOnly(head []byte) bool {
	text := bytes.ReplaceAll(head, []byte{0}, nil)
	return (len(head)-len(text))*20 <= len(head) && utf8.Valid(trimRune(text)) && isText(text)
}

// NotText says what an artifact is that has no lines, by its first bytes; "" where it is text, or
// text with holes of zeros or a stray zero here and there, as readers of logs read it.
func NotText(head []byte) string {
	switch {
	case isText(withoutHoles(head)):
		return ""
	case bytes.HasPrefix(head, []byte(database)):
		return "a database (SQLite)"
	case bytes.HasPrefix(head, []byte("PAR1")):
		return "a table (Parquet)"
	case isZip(head), isTar(head):
		return "an archive"
	case straysOnly(head):
		return ""
	}
	return fmt.Sprintf("binary data (it begins with the bytes % x)", head[:min(len(head), 8)])
}
