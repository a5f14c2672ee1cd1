package desk

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/inquest-dev/inquest/internal/incident"
)

// Local opens a case of paths of this machine, which are read where they lie and never
// removed: files, folders, archives, and patterns as diagnose takes them. Relative ones are made
// absolute. One that does not exist is an error that names it. Diagnose is still to be called.
func (d *Desk) Local(name string, paths []string) (*incident.Case, error) {
	if len(paths) == 0 {
		return nil, errors.New("name a log, a folder or an archive of this machine")
	}
	files := make([]incident.CaseFile, len(paths))
	abs := make([]string, len(paths))
	for i, p := range paths {
		var err error
		if abs[i], err = filepath.Abs(p); err != nil {
			return nil, fmt.Errorf("find %q: %w", p, err)
		}
		files[i] = incident.CaseFile{Name: filepath.ToSlash(abs[i]), Whole: true}
		info, err := os.Stat(abs[i])
		switch {
		case err == nil && info.Mode().IsRegular():
			files[i].Bytes = info.Size()
		case err == nil && info.IsDir(), matches(abs[i]):
		case err == nil:
			return nil, fmt.Errorf("%s is neither a file nor a folder", p)
		case errors.Is(err, fs.ErrNotExist):
			return nil, fmt.Errorf("%s: %w", p, fs.ErrNotExist)
		default:
			return nil, fmt.Errorf("%s: %w", p, plain(err))
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	c, err := d.open(name)
	if err != nil {
		return nil, err
	}
	c.paths, c.files, c.sorted = abs, files, false
	for _, f := range files {
		c.bytes += f.Bytes
	}
	return c.snapshot(), nil
}

// matches reports whether a pattern names something.
func matches(pattern string) bool {
	if !strings.ContainsAny(pattern, "*?[") {
		return false
	}
	m, err := filepath.Glob(pattern)
	return err == nil && len(m) > 0
}

// plain is an error without the path that it names.
func plain(err error) error {
	if pe := (*fs.PathError)(nil); errors.As(err, &pe) {
		return pe.Err
	}
	return err
}
