package clearml_test

import (
	"archive/zip"
	"bytes"
	"context"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/inquest-dev/inquest/internal/engine"
	"github.com/inquest-dev/inquest/internal/evidence"
	"github.com/inquest-dev/inquest/internal/reader"
	"github.com/inquest-dev/inquest/internal/reader/clearml"
	"github.com/inquest-dev/inquest/internal/reader/ranklog"
	"github.com/inquest-dev/inquest/internal/reader/readertest"
)

func theReader() reader.Reader { return clearml.New(ranklog.New(evidence.Plan{})) }

func TestReader(t *testing.T) {
	readertest.Run(t, theReader(), readertest.Folder{FS: os.DirFS("testdata"), Write: func(name string, data []byte) error {
		return os.WriteFile(filepath.Join("testdata", name), data, 0o644)
	}})
}

func read(t testing.TB, name string, data []byte, dir fs.FS) *readertest.Tracked {
	t.Helper()
	return readertest.ReadTracked(t, theReader(), name, data, dir)
}

// TestSuspects: the zeros that stand for what was not finite, by the witness of the log.
func TestSuspects(t *testing.T) {
	data, err := os.ReadFile("testdata/metrics.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	s := read(t, "offline-1/metrics.jsonl", data, os.DirFS("testdata"))
	run := s.Runs[0]
	if run.Keeps != evidence.Zeroed || !strings.HasPrefix(run.ID, "offline-") || run.Name != "nan-run" || run.Project != "toy" || run.Status != evidence.RunOpen || run.Lines < 12 {
		t.Errorf("run %+v", run)
	}
	got := map[string]string{}
	for _, x := range run.Tracks {
		for _, p := range x.Suspects {
			got[x.Name] += fmt.Sprintf("%d-%d %s; ", p.First.Step, p.Last.Step, p.Reason)
		}
		if x.Series.Bad > 0 {
			t.Errorf("%s has values that are not finite", x.Name)
		}
		if x.Name == ":monitor:gpu/gpu_0_mem_used_gb" && (!x.System || x.Unit != "bytes") {
			t.Errorf("memory %+v", x)
		}
	}
	if want := "8-11 exactly 0.0 after the log said that"; !strings.HasPrefix(got["train/loss"], want) {
		t.Errorf("loss: %q", got["train/loss"])
	}
	if want := "7-11 exactly 0.0"; !strings.HasPrefix(got["train/grad_norm"], want) {
		t.Errorf("gradient norm: %q", got["train/grad_norm"])
	}
	if got["train/skipped"] != "" {
		t.Errorf("a series that was 0 before: %q", got["train/skipped"])
	}
	// Without the log nothing speaks for it.
	for _, x := range read(t, "offline-1/metrics.jsonl", data, nil).Runs[0].Tracks {
		if len(x.Suspects) > 0 {
			t.Errorf("%s: %v", x.Name, x.Suspects)
		}
	}
}

// TestSubstitute: a value that the user set.
func TestSubstitute(t *testing.T) {
	log := `[{"timestamp": 1700000005000, "type": "log", "task": "offline-1", "msg": "x - NaN value encountered. Reporting it as '-1'. Use"}]`
	event := func(i int, v string) string {
		return fmt.Sprintf(`{"timestamp": %d, "type": "training_stats_scalar", "task": "offline-1", "iter": %d, "metric": "a", "variant": "loss", "value": %s}`, 1700000000000+i*1000, i, v)
	}
	text := "\ufeff[" + event(1, "0") + ", " + event(2, "0.5") + "]\r\n\n[" + event(6, "-1.0") + ", " + event(7, "NaN") + ", " + event(8, "null") + "]\nnonsense\n[" + event(9, "0.25") + ", {\"type\": \"training_st"
	s := read(t, "offline-1.zip!metrics.jsonl", []byte(text), fstest.MapFS{"log.jsonl": {Data: []byte(log)}, "task.json": {Data: []byte(`{"id": "offline-1", "status": "failed", "tags": ["x"], "status_reason": "boom"}`)}})
	run := s.Runs[0]
	want := "a/loss[1] = 0 at 1700000001.000\na/loss[2] = 0.5 at 1700000002.000\na/loss[6] = -1 at 1700000006.000\na/loss[7] = NaN at 1700000007.000\na/loss[9] = 0.25 at 1700000009.000"
	if got := strings.Join(s.Points, "\n"); got != want {
		t.Errorf("points\n%s\nwant\n%s", got, want)
	}
	if x := run.Tracks[0].Suspects; len(x) != 1 || x[0].First.Step != 6 || x[0].Len() != 1 {
		t.Errorf("suspects %v", x)
	}
	if run.Status != evidence.RunFailed || run.Folder != "offline-1.zip" || run.Writer != "offline-1.zip" || run.StatusSpan.Artifact != "offline-1.zip!task.json" {
		t.Errorf("run %+v", run)
	}
	var kinds []string
	for _, d := range run.Damage {
		kinds = append(kinds, fmt.Sprintf("%s at %d", d.Kind, d.Span.Record))
	}
	if got, want := strings.Join(kinds, ", "), "bad-record at 5, bad-line at 4, truncated-tail at 5"; got != want {
		t.Errorf("damage %s, want %s", got, want)
	}
}

// TestZip: the zip of a folder is read by its members, and is another writing than the folder.
func TestZip(t *testing.T) {
	dir := t.TempDir()
	f, err := os.Create(filepath.Join(dir, "offline-1.zip"))
	if err != nil {
		t.Fatal(err)
	}
	z := zip.NewWriter(f)
	for _, name := range []string{"metrics.jsonl", "task.json", "log.jsonl"} {
		data, err := os.ReadFile("testdata/" + name)
		if err != nil {
			t.Fatal(err)
		}
		w, err := z.Create(name)
		if err != nil {
			t.Fatal(err)
		}
		w.Write(data)
		if err := os.MkdirAll(filepath.Join(dir, "offline-1"), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "offline-1", name), data, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	got, err := engine.ReadTrackers(t.Context(), engine.Options{Paths: []string{dir}, Readers: []reader.Reader{theReader()}}, engine.TrackerOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if len(got.Runs) != 2 {
		t.Errorf("%d runs", len(got.Runs))
	}
	for _, r := range got.Runs {
		if len(r.Tracks) != 4 || r.Name != "nan-run" || len(r.Damage) > 0 {
			t.Errorf("run %s: %d series, damage %v", r.Artifact, len(r.Tracks), r.Damage)
		}
	}
}

func TestSniff(t *testing.T) {
	for _, c := range []struct{ path, head string }{
		{"metrics.jsonl", `{"loss": 1}`}, {"other.jsonl", `[{"task": "x", "metric": "a", "variant": "b"}]`}, {"log.jsonl", `{"msg": "x"}`}, {"task.json", `{"name": "x"}`}, {"metrics.jsonl", ""},
	} {
		if got := theReader().Sniff(evidence.Artifact{Path: c.path}, []byte(c.head)); got != reader.No {
			t.Errorf("%s: %v", c.path, got)
		}
	}
}

func FuzzRead(f *testing.F) {
	data, _ := os.ReadFile("testdata/metrics.jsonl")
	f.Add(data)
	data, _ = os.ReadFile("testdata/task.json")
	f.Add(data)
	r := theReader()
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, name := range []string{"metrics.jsonl", "task.json", "log.jsonl"} {
			in := reader.Input{Artifact: evidence.Artifact{Path: name}, Dir: fstest.MapFS{"log.jsonl": {Data: data}, "task.json": {Data: data}},
				Open: func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(data)), nil }}
			if err := r.Read(context.Background(), in, reader.NewCollector()); err != nil {
				t.Fatal(err)
			}
		}
	})
}
