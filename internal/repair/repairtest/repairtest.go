// Package repairtest is the suite that every format of repaired copies must pass. It is
// imported by tests only.
package repairtest

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/inquest-dev/inquest/internal/engine"
	"github.com/inquest-dev/inquest/internal/incident"
	"github.com/inquest-dev/inquest/internal/reader"
	"github.com/inquest-dev/inquest/internal/repair"
	"github.com/inquest-dev/inquest/internal/report"
)

// Policies are those with which the suite makes copies.
var Policies = map[string]incident.RepairPolicy{
	"drop":    {Nonfinite: repair.DropValues},
	"hold":    {Nonfinite: repair.HoldValues},
	"dedupe":  {Nonfinite: repair.DropValues, Dedupe: true},
	"suspect": {Nonfinite: repair.DropValues, Suspects: true, Dedupe: true, Tensors: true},
}

// Copy repairs the file or folder at source and returns the manifest and the folder of the
// copy. It fails where the source is not as it was: bytes, lists of folders, permissions, times of
// modification and of change. The engine has then read the copy with r, and found
// every finite point that was to be kept, no other value and the marks. change may set
// other options; it may be nil.
func Copy(t testing.TB, r reader.Reader, f repair.Format, source string, change func(*engine.RepairOptions)) (*incident.Repair, string) {
	t.Helper()
	out := filepath.Join(t.TempDir(), "copy")
	before := State(t, source)
	res, err := Repair(t.Context(), r, f, source, out, change)
	if err != nil {
		t.Fatalf("repair %s: %v", source, err)
	}
	Unchanged(t, source, before)
	return res, out
}

// Repair is engine.Repair with one reader and one format, forced, so that there is always a
// copy.
func Repair(ctx context.Context, r reader.Reader, f repair.Format, source, out string, change func(*engine.RepairOptions)) (*incident.Repair, error) {
	ro := engine.RepairOptions{Path: source, Output: out, Policy: Policies["drop"], Force: true, Formats: []repair.Format{f}, Write: Write}
	if change != nil {
		change(&ro)
	}
	return engine.Repair(ctx, engine.Options{Readers: []reader.Reader{r}, Version: "test"}, ro)
}

// Write renders the files beside the copy.
func Write(w io.Writer, format string, r *incident.Repair) error {
	return report.WriteRepair(w, format, r, report.Options{})
}

// Run makes copies of the file or folder at source in every way: with each policy, twice
// with the same bytes, of a source that may only be read, cancelled at many moments, killed
// in the middle, on a full disk. The source is copied to a folder of the test first, so that
// it may lie in testdata.
func Run(t *testing.T, r reader.Reader, f repair.Format, source string) {
	at := own(t, source)
	for _, name := range slices.Sorted(maps.Keys(Policies)) {
		t.Run(name, func(t *testing.T) {
			with := func(o *engine.RepairOptions) { o.Policy = Policies[name] }
			first, a := Copy(t, r, f, at, with)
			for _, run := range first.Runs {
				balanced(t, run)
			}
			second, b := Copy(t, r, f, at, with)
			same(t, a, b)
			first.Output, second.Output, first.Undo, second.Undo = "", "", "", ""
			if !reflect.DeepEqual(first, second) {
				t.Error("two manifests of the same source differ")
			}
			data, err := os.ReadFile(filepath.Join(a, repair.ManifestName))
			if err != nil || !json.Valid(data) {
				t.Errorf("the manifest: %v", err)
			}
			// The copy has nothing left to repair.
			res, err := Repair(t.Context(), r, f, a, filepath.Join(t.TempDir(), "again"), func(o *engine.RepairOptions) {
				with(o)
				o.Force, o.Marker = false, "second marker"
			})
			if err != nil {
				t.Errorf("repair the copy: %v", err)
			} else if res.Output != "" && name != "suspect" {
				t.Errorf("the copy was repaired again: %+v", res.Runs)
			}
		})
	}
	t.Run("read only", func(t *testing.T) { readOnly(t, r, f, own(t, source)) })
	t.Run("cancelled", func(t *testing.T) { cancelled(t, r, f, at) })
	t.Run("killed", func(t *testing.T) { killed(t, r, f, at) })
	t.Run("marker", func(t *testing.T) {
		Copy(t, r, f, at, func(o *engine.RepairOptions) { o.Marker = "my/marker" })
	})
}

func balanced(t *testing.T, run incident.RepairedRun) {
	t.Helper()
	for _, s := range run.Series {
		if s.Count != s.Kept+s.Dropped+s.Held+s.Superseded || s.Dropped+s.Held != s.NaN+s.PosInf+s.NegInf+s.Suspect {
			t.Errorf("run %s: the account does not balance: %+v", run.ID, s)
		}
	}
}

// readOnly repairs a source in which nothing may be written.
func readOnly(t *testing.T, r reader.Reader, f repair.Format, at string) {
	var dirs []string
	err := filepath.WalkDir(at, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.Type()&fs.ModeSymlink != 0 {
			return err
		}
		mode := fs.FileMode(0o444)
		if d.IsDir() {
			dirs = append(dirs, name)
			mode = 0o555
		}
		return os.Chmod(name, mode)
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for _, d := range dirs {
			os.Chmod(d, 0o777)
		}
	})
	Copy(t, r, f, at, nil)
}

// cancelled cancels repairs at many moments.
func cancelled(t *testing.T, r reader.Reader, f repair.Format, at string) {
	before := State(t, at)
	for n := int64(1); n < 1<<40; n += n/3 + 1 {
		ctx := &countdown{Context: t.Context(), done: make(chan struct{})}
		ctx.left.Store(n)
		to := t.TempDir()
		_, err := Repair(ctx, r, f, at, filepath.Join(to, "copy"), nil)
		if err == nil {
			break
		}
		if !errors.Is(err, context.Canceled) {
			t.Errorf("cancelled after %d questions: %v", n, err)
		}
		if left, _ := os.ReadDir(to); len(left) > 0 {
			t.Errorf("cancelled after %d questions, and %v is left", n, left)
		}
	}
	Unchanged(t, at, before)
}

// A countdown is a context that is done once it was asked a number of times.
type countdown struct {
	context.Context
	left atomic.Int64
	done chan struct{}
}

func (c *countdown) Done() <-chan struct{} { return c.done }

func (c *countdown) Err() error {
	switch n := c.left.Add(-1); {
	case n == 0:
		close(c.done)
		return context.Canceled
	case n < 0:
		return context.Canceled
	}
	return nil
}

// own copies a source to a folder of the test.
func own(t testing.TB, source string) string {
	t.Helper()
	info, err := os.Stat(source)
	if err != nil {
		t.Fatal(err)
	}
	at := filepath.Join(t.TempDir(), "src")
	if info.IsDir() {
		err = os.CopyFS(at, os.DirFS(source))
	} else {
		var data []byte
		if data, err = os.ReadFile(source); err == nil {
			err = os.Mkdir(at, 0o777)
			at = filepath.Join(at, filepath.Base(source))
			err = errors.Join(err, os.WriteFile(at, data, 0o666))
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	return at
}

// State is all that can be seen of a file or folder: names, kinds, permissions, sizes,
// digests, times of modification and, where the system has it, of change.
func State(t testing.TB, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		text := fmt.Sprint(info.Mode(), " modified ", info.ModTime().UnixNano(), " changed ", changed(info))
		if info.Mode().IsRegular() {
			data, err := os.ReadFile(name)
			if err != nil {
				return err
			}
			text += fmt.Sprintf(" %d bytes %x", len(data), sha256.Sum256(data))
		}
		all[strings.TrimPrefix(name, dir)] = text
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// Unchanged compares a file or folder with what it was.
func Unchanged(t testing.TB, dir string, before map[string]string) {
	t.Helper()
	after := State(t, dir)
	for _, name := range slices.Sorted(maps.Keys(before)) {
		if after[name] != before[name] {
			t.Errorf("the source changed: %q was %s, is %s", name, before[name], after[name])
		}
	}
	for _, name := range slices.Sorted(maps.Keys(after)) {
		if _, ok := before[name]; !ok {
			t.Errorf("the source changed: %q is new", name)
		}
	}
}

// same compares two copies, but for where they lie.
func same(t testing.TB, a, b string) {
	t.Helper()
	names := Names(t, a)
	if other := Names(t, b); !slices.Equal(names, other) {
		t.Errorf("two copies have other files: %q and %q", names, other)
		return
	}
	for _, name := range names {
		x, _ := os.ReadFile(filepath.Join(a, name))
		y, _ := os.ReadFile(filepath.Join(b, name))
		x, y = bytes.ReplaceAll(x, []byte(filepath.ToSlash(a)), nil), bytes.ReplaceAll(y, []byte(filepath.ToSlash(b)), nil)
		if !bytes.Equal(x, y) {
			t.Errorf("%s differs between two copies of the same source", name)
		}
	}
}

// Names are the slash paths of the files below a folder, sorted.
func Names(t testing.TB, dir string) (names []string) {
	t.Helper()
	err := fs.WalkDir(os.DirFS(dir), ".", func(name string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			names = append(names, name)
		}
		return err
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	return names
}
