package desk_test

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/inquest-dev/inquest/internal/desk"
	"github.com/inquest-dev/inquest/internal/engine"
	"github.com/inquest-dev/inquest/internal/report"
)

// hand hands a folder over, each file with its time.
func hand(t *testing.T, d *desk.Desk, dir string) string {
	t.Helper()
	id := begin(t, d)
	err := filepath.WalkDir(dir, func(name string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		rel, err := filepath.Rel(dir, name)
		if err != nil {
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		f, err := os.Open(name)
		if err != nil {
			return err
		}
		defer f.Close()
		_, err = d.PutDated(t.Context(), id, filepath.ToSlash(rel), info.ModTime(), f)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// TestAlike says of what was handed over what is said of the same files in the current folder,
// to the letter.
func TestAlike(t *testing.T) {
	examples, err := filepath.Glob("../../examples/*/README.md")
	if err != nil || len(examples) == 0 {
		t.Fatalf("examples %v (%v)", examples, err)
	}
	for i := range examples {
		if examples[i], err = filepath.Abs(filepath.Dir(examples[i])); err != nil {
			t.Fatal(err)
		}
	}
	o := options(t)
	d := open(t, o)
	for _, dir := range append(examples, hostile(t)) {
		t.Run(filepath.Base(dir), func(t *testing.T) {
			id := hand(t, d, dir)
			r := diagnose(t, d, id, desk.Handling{})
			memory, memErr := d.Memory(t.Context(), id)
			tracker, trackErr := d.Tracker(t.Context(), id)
			said := []string{text(t, r), text(t, memory), text(t, tracker), fmt.Sprint(memErr, trackErr)}
			for _, format := range report.Formats() {
				var b bytes.Buffer
				if err := report.Write(&b, format, r.Incident, report.Options{Full: true}); err != nil {
					t.Fatal(err)
				}
				said = append(said, b.String())
			}
			for _, a := range r.Incident.Artifacts {
				l, err := d.Lines(t.Context(), id, a.Path, 1, -1, 0, 5)
				said = append(said, text(t, l), fmt.Sprint(err))
			}
			_, err := d.Lines(t.Context(), id, "nothing.log", 1, -1, 0, 5)
			said = append(said, fmt.Sprint(err))
			for _, s := range said {
				for _, secret := range []string{o.Dir, id, "inquest-desk-"} {
					if i := strings.Index(s, secret); i >= 0 {
						t.Errorf("the desk's folder is told: %s", s[max(0, i-200):min(len(s), i+200)])
					}
				}
			}

			var paths []string
			entries, err := os.ReadDir(dir)
			if err != nil {
				t.Fatal(err)
			}
			for _, e := range entries {
				paths = append(paths, e.Name())
			}
			t.Chdir(dir)
			own := o.Engine
			own.Paths = paths
			inc, err := engine.Diagnose(t.Context(), own)
			if err != nil {
				t.Fatal(err)
			}
			if a, b := text(t, r.Incident), text(t, inc); a != b {
				i := 0
				for i < min(len(a), len(b)) && a[i] == b[i] {
					i++
				}
				t.Errorf("handed over:\n…%s\nwhere it lies:\n…%s", a[max(0, i-200):min(len(a), i+300)], b[max(0, i-200):min(len(b), i+300)])
			}
		})
	}
}

// hostile is a folder of what should not come.
func hostile(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	write := func(name string, data []byte) {
		t.Helper()
		name = filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	evil := []string{"../../etc/rank_0.log", "/etc/rank_1.log", `..\..\rank_2.log`, `C:\rank_3.log`, "logs/rank_4.log", "logs/rank_4.log", "a/../../rank_5.log", strings.Repeat("deep/", 700) + "rank_6.log", "nul", "rank_7.log\x00"}
	var z, g bytes.Buffer
	zw := zip.NewWriter(&z)
	gz := gzip.NewWriter(&g)
	tw := tar.NewWriter(gz)
	for _, name := range evil {
		w, err := zw.Create(name)
		if err != nil {
			t.Fatal(err)
		}
		w.Write([]byte(oom))
		if tw.WriteHeader(&tar.Header{Name: name, Mode: 0o600, Size: int64(len(oom))}) == nil {
			tw.Write([]byte(oom))
		}
	}
	tw.WriteHeader(&tar.Header{Name: "link.log", Typeflag: tar.TypeSymlink, Linkname: "/etc/passwd"})
	tw.WriteHeader(&tar.Header{Name: "hard.log", Typeflag: tar.TypeLink, Linkname: "../../../etc/passwd"})
	tw.Close()
	gz.Close()
	zw.Close()
	write("evil.zip", z.Bytes())
	write("evil.tar.gz", g.Bytes())
	write("cut.tar.gz", g.Bytes()[:g.Len()/2])
	write("cut.zip", z.Bytes()[:z.Len()/2])
	write("logs/bomb.log.gz", bomb(t))
	write("logs/rank_0.log", []byte(oom+"<script>alert(1)</script>\x1b[31m\u202e"))
	write("logs/long.log", []byte(strings.Repeat("x", 4<<20)))
	write("mlflow.db", append([]byte("SQLite format 3\x00"), make([]byte, 4096)...))
	write("snapshot.pickle", []byte("\x80\x04\x95\xff\xff\xff\x00\x00\x00\x00\x00}"))
	write("wandb/run-20260801_101500-3k2j9x1p/run-3k2j9x1p.wandb", []byte(":W&B\xe1\xbe\x00broken"))
	write("wandb/run-20260801_101500-3k2j9x1p/files/config.yaml", []byte("a: [b"))
	return dir
}

// bomb is a gzip stream that grows a thousandfold.
func bomb(t *testing.T) []byte {
	t.Helper()
	var b bytes.Buffer
	w, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err != nil {
		t.Fatal(err)
	}
	zeros := make([]byte, 1<<20)
	for range 128 {
		if _, err := w.Write(zeros); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}
