package bundle

import (
	"archive/tar"
	"compress/gzip"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// IsArchive reports whether a name is that of an archive, and not of a folder.
func IsArchive(name string) bool {
	return strings.HasSuffix(name, ".tar.gz") || strings.HasSuffix(name, ".tgz")
}

// Write writes the files as an archive or into a new folder. What is there already is never
// touched, and what could not be written whole is taken away.
func Write(name string, files []File, at time.Time) error {
	if IsArchive(name) {
		return writeArchive(name, files, at)
	}
	if err := os.Mkdir(name, 0o700); err != nil {
		return fmt.Errorf("write bundle: %w", err)
	}
	if err := WriteTree(name, files); err != nil {
		os.RemoveAll(name)
		return err
	}
	return nil
}

// WriteTree writes the files below a folder that is there.
func WriteTree(dir string, files []File) error {
	for _, f := range files {
		to := filepath.Join(dir, filepath.FromSlash(f.Path))
		if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
			return fmt.Errorf("write bundle: %w", err)
		}
		if err := os.WriteFile(to, f.Data, 0o600); err != nil {
			return fmt.Errorf("write bundle: %w", err)
		}
	}
	return nil
}

func writeArchive(name string, files []File, at time.Time) (err error) {
	out, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return fmt.Errorf("write bundle: %w", err)
	}
	defer func() {
		if e := out.Close(); err == nil && e != nil {
			err = fmt.Errorf("write bundle: %w", e)
		}
		if err != nil {
			os.Remove(name)
		}
	}()
	base := filepath.Base(name)
	return archive(out, strings.TrimSuffix(strings.TrimSuffix(base, ".tgz"), ".tar.gz"), files, at)
}

// archive writes the files in the order of their names, all of them of one time and of nobody.
func archive(w io.Writer, top string, files []File, at time.Time) error {
	files = slices.Clone(files)
	slices.SortFunc(files, func(a, b File) int { return strings.Compare(a.Path, b.Path) })
	z := gzip.NewWriter(w)
	t := tar.NewWriter(z)
	for _, f := range files {
		h := &tar.Header{Name: path.Join(top, f.Path), Mode: 0o644, Size: int64(len(f.Data)), ModTime: at.UTC().Truncate(time.Second), Typeflag: tar.TypeReg, Format: tar.FormatPAX}
		if err := t.WriteHeader(h); err != nil {
			return fmt.Errorf("write bundle: %w", err)
		}
		if _, err := t.Write(f.Data); err != nil {
			return fmt.Errorf("write bundle: %w", err)
		}
	}
	if err := t.Close(); err != nil {
		return fmt.Errorf("write bundle: %w", err)
	}
	if err := z.Close(); err != nil {
		return fmt.Errorf("write bundle: %w", err)
	}
	return nil
}
