package desk

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

const (
	folderPrefix = "inquest-desk-"
	lockName     = "lock"
)

// A folder is the desk's own on the disk: one folder for each case, and a file that this process
// holds locked for as long as it lives.
type folder struct {
	dir  string
	lock *os.File
}

// newFolder makes a folder in parent, after it has removed those there whose owner is gone.
func newFolder(parent string) (*folder, error) {
	if parent == "" {
		parent = os.TempDir()
	}
	parent, err := filepath.Abs(parent)
	if err != nil {
		return nil, fmt.Errorf("make the desk's folder: %w", err)
	}
	removeLeft(parent)
	for range 100 {
		f, err := tryFolder(parent)
		if err != nil {
			return nil, fmt.Errorf("make the desk's folder: %w", err)
		}
		if f != nil {
			return f, nil
		}
	}
	return nil, fmt.Errorf("make the desk's folder in %s: others take each away again", parent)
}

// tryFolder makes a folder; nil where another desk, which saw it before it was locked, took it
// for one that was left.
func tryFolder(parent string) (*folder, error) {
	dir, err := os.MkdirTemp(parent, folderPrefix) // mode 0700
	if err != nil {
		return nil, err
	}
	name := filepath.Join(dir, lockName)
	lock, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		os.RemoveAll(dir)
		return nil, err
	}
	locked, err := tryLock(lock)
	if err == nil && locked && is(lock, name) {
		return &folder{dir, lock}, nil
	}
	lock.Close()
	if err != nil {
		os.RemoveAll(dir)
		return nil, fmt.Errorf("lock %s: %w", name, err)
	}
	return nil, nil
}

// is reports whether an open file is the one of the name.
func is(f *os.File, name string) bool {
	a, err := f.Stat()
	if err != nil {
		return false
	}
	b, err := os.Lstat(name)
	return err == nil && os.SameFile(a, b)
}

// removeLeft removes the folders of desks in parent whose process is gone: those of the same
// user whose lock can be had. What is no such folder, or has no lock, stays.
func removeLeft(parent string) {
	entries, err := os.ReadDir(parent)
	if err != nil {
		return
	}
	for _, e := range entries {
		if !e.IsDir() || !strings.HasPrefix(e.Name(), folderPrefix) {
			continue
		}
		dir := filepath.Join(parent, e.Name())
		if info, err := os.Lstat(dir); err != nil || !info.IsDir() || !mine(info) {
			continue
		}
		name := filepath.Join(dir, lockName)
		lock, err := os.OpenFile(name, os.O_RDWR|noFollow, 0)
		if err != nil {
			continue
		}
		info, err := lock.Stat()
		if err != nil || !info.Mode().IsRegular() || !mine(info) {
			lock.Close()
			continue
		}
		locked, err := tryLock(lock)
		if err == nil && locked && is(lock, name) {
			removeLocked(dir, lock)
			continue
		}
		lock.Close()
	}
}

// removeLocked removes a folder whose lock is held: what is in it first, the lock last, so that
// what is left when this is interrupted is recognised again.
func removeLocked(dir string, lock *os.File) error {
	entries, err := os.ReadDir(dir)
	errs := []error{err}
	for _, e := range entries {
		if e.Name() != lockName {
			errs = append(errs, os.RemoveAll(filepath.Join(dir, e.Name())))
		}
	}
	if lockedFilesStay {
		errs = append(errs, lock.Close(), os.RemoveAll(dir))
	} else {
		errs = append(errs, os.RemoveAll(dir), lock.Close())
	}
	return errors.Join(errs...)
}

// path is the folder of a case.
func (f *folder) path(id string) string { return filepath.Join(f.dir, id) }

// make makes the folder of a case where it is not there.
func (f *folder) make(dir string) error {
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return nil
}

// clear removes the folder of a case; "" is none.
func (f *folder) clear(dir string) {
	if dir != "" {
		os.RemoveAll(dir) // what cannot be removed now goes with the desk's folder
	}
}

func (f *folder) remove() error {
	if err := removeLocked(f.dir, f.lock); err != nil {
		return fmt.Errorf("remove the desk's folder %s: %w", f.dir, err)
	}
	return nil
}
