package repair

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// An Out is the copy while it is written: a folder beside the final one, which it becomes
// when everything is there and checked, and that is removed otherwise.
type Out struct {
	dir   string // <final>.partial-<random>
	final string
	src   *Source
	root  *os.Root
	left  []string
	// wrap is put around every file that is written, by tests of full disks.
	wrap func(io.Writer) io.Writer
}

const partial = ".partial-"

// ErrOutput is wrapped by the error of an output that is refused.
var ErrOutput = errors.New("cannot write the copy there")

// Begin makes the folder that becomes the copy of src at name. It refuses a name that is the source, lies in
// it or contains it, also by way of links, and one that exists and is anything but an
// empty folder. The caller ends it with Finish or Discard.
func Begin(src *Source, name string) (*Out, error) {
	if err := Refused(src, name); err != nil {
		return nil, err
	}
	final, err := place(src, name)
	if err != nil {
		return nil, err
	}
	o := &Out{final: final, src: src, left: leftovers(final)}
	for tries := 0; ; tries++ {
		var b [4]byte
		rand.Read(b[:])
		o.dir = final + partial + hex.EncodeToString(b[:])
		err := os.Mkdir(o.dir, 0o777)
		if err == nil {
			break
		}
		if !errors.Is(err, fs.ErrExist) || tries > 16 {
			return nil, fmt.Errorf("%w: %w", ErrOutput, err)
		}
	}
	if o.root, err = os.OpenRoot(o.dir); err != nil {
		os.Remove(o.dir)
		return nil, err
	}
	return o, nil
}

// Dir is where the copy lies while it is written.
func (o *Out) Dir() string { return o.dir }

// Leftovers are the folders beside the copy that earlier repairs to the same place left when
// they were killed. Nothing reads them.
func (o *Out) Leftovers() []string { return o.left }

// LeftOver says in words that there are leftovers.
func LeftOver(left []string) string {
	names := make([]string, 0, len(left))
	for i, l := range left {
		if i == 3 {
			names = append(names, fmt.Sprintf("and %d more", len(left)-i))
			break
		}
		names = append(names, printable(filepath.Base(l)))
	}
	return "beside it lies what an earlier repair left that was ended in the middle: " + strings.Join(names, ", ") + "; nothing uses it, and it can be removed"
}

// leftovers lists what unfinished repairs to the same place left.
func leftovers(final string) []string {
	if final == "" {
		return nil
	}
	entries, err := os.ReadDir(filepath.Dir(final))
	if err != nil {
		return nil
	}
	var left []string
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), filepath.Base(final)+partial) {
			left = append(left, filepath.Join(filepath.Dir(final), e.Name()))
		}
	}
	return left
}

// place resolves where the copy is to lie, and refuses what could touch the source.
func place(src *Source, name string) (string, error) {
	refuse := func(why string) (string, error) {
		return "", fmt.Errorf("%w: %s %s", ErrOutput, printable(filepath.ToSlash(name)), why)
	}
	if name == "" {
		return refuse("is no name")
	}
	abs, err := filepath.Abs(name)
	if err != nil {
		return "", fmt.Errorf("%w: %w", ErrOutput, err)
	}
	final := abs
	there, err := os.Lstat(abs)
	switch {
	case err == nil:
		if final, err = filepath.EvalSymlinks(abs); err != nil {
			return refuse("is a link that leads nowhere")
		}
		if there, err = os.Stat(final); err != nil {
			return "", fmt.Errorf("%w: %w", ErrOutput, err)
		}
	case errors.Is(err, fs.ErrNotExist):
		dir, err := filepath.EvalSymlinks(filepath.Dir(abs))
		if errors.Is(err, fs.ErrNotExist) {
			return refuse("lies in a folder that does not exist; make it first")
		}
		if err != nil {
			return "", fmt.Errorf("%w: %w", ErrOutput, err)
		}
		final = filepath.Join(dir, filepath.Base(abs))
	default:
		return "", fmt.Errorf("%w: %w", ErrOutput, err)
	}
	source, err := os.Stat(src.real)
	if err != nil {
		return "", fmt.Errorf("%w: %w", ErrOutput, err)
	}
	if there != nil && os.SameFile(there, source) {
		return refuse("is the source")
	}
	for dir := filepath.Dir(final); ; dir = filepath.Dir(dir) {
		if info, err := os.Stat(dir); err == nil && os.SameFile(info, source) {
			return refuse("lies in the source")
		}
		if dir == filepath.Dir(dir) {
			break
		}
	}
	if there == nil {
		return final, nil
	}
	for dir := filepath.Dir(src.real); ; dir = filepath.Dir(dir) {
		if info, err := os.Stat(dir); err == nil && os.SameFile(info, there) {
			return refuse("contains the source")
		}
		if dir == filepath.Dir(dir) {
			break
		}
	}
	if !there.IsDir() {
		return refuse("exists and is no folder")
	}
	entries, err := os.ReadDir(final)
	if err != nil {
		return "", fmt.Errorf("%w: %w", ErrOutput, err)
	}
	if len(entries) > 0 {
		return final, fmt.Errorf("%w: %s exists and is not empty", ErrOutput, printable(filepath.ToSlash(name)))
	}
	return final, nil
}

// Refused is the error that Begin would return, nil for none.
func Refused(src *Source, name string) error {
	final, err := place(src, name)
	if err != nil {
		if left := leftovers(final); len(left) > 0 {
			return fmt.Errorf("%w; %s", err, LeftOver(left))
		}
	}
	return err
}

// at checks a name of a file in the copy and makes its folder.
func (o *Out) at(name string) (string, error) {
	if !fs.ValidPath(name) || name == "." || runtime.GOOS == "windows" && strings.ContainsAny(name, `\:`) {
		return "", fmt.Errorf("write %s: %w", printable(name), fs.ErrInvalid)
	}
	if name == ManifestName || name == NoteName {
		name = "source-" + name // the source is a repaired copy itself
	}
	if d := path.Dir(name); d != "." {
		if err := o.root.MkdirAll(filepath.FromSlash(d), 0o777); err != nil {
			return "", err
		}
	}
	return filepath.FromSlash(name), nil
}

func (o *Out) create(name string) (io.WriteCloser, error) {
	at, err := o.at(name)
	if err != nil {
		return nil, err
	}
	return o.open(at, o.perm(name))
}

// perm are the permissions of a file of the source, so that a copy shows nothing to those
// who could not read it; its owner may write to the copy.
func (o *Out) perm(name string) fs.FileMode {
	if info := o.src.list[name]; info != nil {
		return info.Mode().Perm() | 0o200
	}
	return 0o666
}

func (o *Out) open(at string, perm fs.FileMode) (*outFile, error) {
	f, err := o.root.OpenFile(at, os.O_WRONLY|os.O_CREATE|os.O_EXCL, perm)
	if err != nil {
		return nil, err
	}
	w := io.Writer(f)
	if o.wrap != nil {
		w = o.wrap(f)
	}
	return &outFile{f, w}, nil
}

// Beside writes one of the files that lie beside the copy.
func (o *Out) Beside(name string, text []byte) error {
	f, err := o.open(name, 0o666)
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	return errors.Join(err, f.Close())
}

func (o *Out) path(name string) (string, error) {
	at, err := o.at(name)
	if err != nil {
		return "", err
	}
	if _, err := o.root.Lstat(at); err == nil {
		return "", fmt.Errorf("write %s: %w", printable(name), fs.ErrExist)
	}
	return filepath.Join(o.dir, at), nil
}

func (o *Out) copyFile(ctx context.Context, src *Source, name string) error {
	info := src.list[name]
	if info == nil || info.IsDir() {
		return fmt.Errorf("copy %s: %w", printable(name), fs.ErrNotExist)
	}
	at, err := o.at(name)
	if err != nil {
		return err
	}
	in, err := src.open(name)
	if err != nil {
		return err
	}
	defer in.Close()
	f, err := o.open(at, o.perm(name))
	if err != nil {
		return err
	}
	sum, err := digest(ctx, in, f)
	if err = errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("copy %s: %w", printable(name), err)
	}
	if was, ok := src.sums[name]; ok && was != sum {
		return fmt.Errorf("%w: %s has other bytes", ErrChanged, printable(name))
	}
	src.sums[name] = sum
	return o.root.Chtimes(at, info.ModTime(), info.ModTime())
}

// An outFile is a file of the copy; Close brings it to the disk.
type outFile struct {
	f *os.File
	w io.Writer
}

func (f *outFile) Write(p []byte) (int, error) { return f.w.Write(p) }
func (f *outFile) Close() error                { return errors.Join(f.f.Sync(), f.f.Close()) }

// Finish brings everything to the disk and gives the copy its name, all at once. On an
// error the copy is removed.
func (o *Out) Finish() error {
	err := o.settle()
	o.root.Close()
	if err == nil {
		// An empty folder of that name makes room; one that was filled since stays.
		if err = os.Remove(o.final); errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
	}
	if err == nil {
		err = os.Rename(o.dir, o.final)
	}
	if err != nil {
		os.RemoveAll(o.dir)
		return fmt.Errorf("finish the copy: %w", err)
	}
	settleDir(filepath.Dir(o.final))
	return nil
}

// settle brings folders to the disk, and the files that libraries wrote.
func (o *Out) settle() error {
	var dirs []string
	err := filepath.WalkDir(o.dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			dirs = append(dirs, name)
			return nil
		}
		f, err := os.OpenFile(name, os.O_RDWR, 0)
		if err != nil {
			return err
		}
		return errors.Join(f.Sync(), f.Close())
	})
	for _, d := range slices.Backward(dirs) {
		settleDir(d)
	}
	return err
}

// settleDir brings a folder's list to the disk, where the system can.
func settleDir(name string) {
	if d, err := os.Open(name); err == nil {
		_ = d.Sync()
		d.Close()
	}
}

// Discard removes what was written.
func (o *Out) Discard() error {
	o.root.Close()
	return os.RemoveAll(o.dir)
}
