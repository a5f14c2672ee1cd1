package artifact

import (
	"bytes"
	"context"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/inquest-dev/inquest/internal/evidence"
)

// stores is a walk in which *.db is a store to which -wal and rows/ belong, and text anybody's.
func stores() Options {
	return Options{Sniff: func(a evidence.Artifact, head []byte) (string, int) {
		switch {
		case bytes.HasPrefix(head, []byte("STORE")):
			return "store", 90
		case isText(head):
			return "text", 10
		}
		return "", 0
	}, Anchor: func(kind, place string) (string, string, bool) {
		if kind != "" && kind != "store" {
			return "", "", false
		}
		if db, ok := strings.CutSuffix(place, "-wal"); ok {
			return path.Dir(db), path.Base(db), true
		}
		if dir := path.Dir(place); path.Base(dir) == "rows" {
			return path.Dir(dir), "*.db", true
		}
		return "", "", false
	}}
}

func TestBeside(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"a/x.db": "STORE", "a/x.db-wal": "\x00\x01log", "a/rows/loss": "0.5\n", "a/rows/val.map": "0.25\n", "a/rows/empty": "", "a/note.txt": "words\n",
		"b/y.db-wal": "\x00\x01an orphan", "b/rows/z": "1\n"} {
		name = filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		paths      []string
		files      string
		belonging  string
		passedOver string
	}{
		{[]string{"a", "b"}, "note.txt x.db z", "rows/empty rows/loss rows/val.map x.db-wal", ".db-wal"},
		{[]string{"a/x.db"}, "x.db", "rows/empty rows/loss rows/val.map x.db-wal", ""},
		{[]string{"a/x.db", "a/x.db-wal"}, "x.db", "rows/empty rows/loss rows/val.map x.db-wal", ""},
		{[]string{"b/y.db-wal"}, "y.db-wal", "", ""},
	} {
		paths := slices.Clone(c.paths)
		for i := range paths {
			paths[i] = filepath.Join(dir, paths[i])
		}
		seen, err := Look(context.Background(), paths, stores())
		if err != nil {
			t.Fatal(err)
		}
		var files, beside []string
		for i := range seen.Files {
			f := &seen.Files[i]
			files = append(files, path.Base(f.Path))
			if f.Kind != "store" {
				continue
			}
			list, err := fs.ReadDir(f.Dir(), ".")
			if err != nil {
				t.Fatal(err)
			}
			for _, e := range list {
				beside = append(beside, e.Name())
			}
			b, err := fs.ReadFile(f.Dir(), "rows/loss")
			if err != nil || string(b) != "0.5\n" {
				t.Errorf("%v: rows/loss is %q, %v", c.paths, b, err)
			}
			in, err := f.Dir().Open("x.db-wal")
			if err != nil {
				t.Fatal(err)
			}
			var two [2]byte
			if at, ok := in.(io.ReaderAt); !ok {
				t.Errorf("%v: the log cannot be read at any place", c.paths)
			} else if _, err := at.ReadAt(two[:], 3); err != nil || string(two[:]) != "og" {
				t.Errorf("%v: %q %v", c.paths, two, err)
			}
			in.Close()
		}
		slices.Sort(files)
		var passed []string
		for _, p := range seen.Passed {
			passed = append(passed, p.What)
		}
		if got := strings.Join(files, " "); got != c.files {
			t.Errorf("%v: files %s, want %s", c.paths, got, c.files)
		}
		if got := strings.Join(beside, " "); got != c.belonging {
			t.Errorf("%v: beside %s, want %s", c.paths, got, c.belonging)
		}
		if got := strings.Join(passed, " "); !strings.Contains(got, c.passedOver) || got != "" && c.passedOver == "" {
			t.Errorf("%v: passed over %q, want %q", c.paths, got, c.passedOver)
		}
		seen.Close()
	}
}
