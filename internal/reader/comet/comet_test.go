package comet_test

import (
	"archive/zip"
	"bytes"
	"context"
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
	"github.com/inquest-dev/inquest/internal/reader/comet"
	"github.com/inquest-dev/inquest/internal/reader/ranklog"
	"github.com/inquest-dev/inquest/internal/reader/readertest"
)

func theReader() reader.Reader { return comet.New(ranklog.New(evidence.Plan{})) }

func TestReader(t *testing.T) {
	readertest.Run(t, theReader(), readertest.Folder{FS: os.DirFS("testdata"), Write: func(name string, data []byte) error {
		return os.WriteFile(filepath.Join("testdata", name), data, 0o644)
	}})
}

func read(t testing.TB, name string, data []byte, dir fs.FS) *readertest.Tracked {
	t.Helper()
	return readertest.ReadTracked(t, theReader(), name, data, dir)
}

// TestRun: values, the description, the name, and what was printed in pieces.
func TestRun(t *testing.T) {
	data, err := os.ReadFile("testdata/messages.json")
	if err != nil {
		t.Fatal(err)
	}
	s := read(t, "run.zip!messages.json", data, os.DirFS("testdata"))
	run := s.Runs[0]
	if len(run.ID) != 32 || run.Name != "nan-run" || run.Project != "toy" || run.Folder != "run.zip" || run.Status != evidence.RunUnknown || !run.Ended.Known() || run.Lines < 13 {
		t.Errorf("run %+v", run)
	}
	byName := map[string]*evidence.Track{}
	for _, x := range run.Tracks {
		byName[x.Name] = x
	}
	if x := byName["train_loss"]; x == nil || x.NaN != 4 || x.Segments[0].FirstBad.Step != 8 {
		t.Errorf("loss %+v", x)
	}
	if x := byName["grad_norm"]; x == nil || x.PosInf != 1 || x.NaN != 4 {
		t.Errorf("gradient norm %+v", x)
	}
	if x := byName["sys.gpu.0.used_memory"]; x == nil || !x.System || x.Unit != "bytes" {
		t.Errorf("memory %+v", x)
	}
	oom := 0
	for _, e := range s.Events {
		if e.Kind == evidence.DeviceOOM {
			oom++
		}
	}
	if oom != 1 {
		t.Errorf("%d out-of-memory errors", oom)
	}
	var names []string
	for _, x := range run.Settings {
		names = append(names, x.Name)
	}
	if got := strings.Join(names, " "); got != "batch_size lr" {
		t.Errorf("settings %s", got)
	}
}

// TestOld: messages of versions up to 3.31, and damaged ones.
func TestOld(t *testing.T) {
	text := "\ufeff" + `{"type": "ws_msg", "payload": {"metric": {"metricName": "loss", "metricValue": "0.5", "step": 1}, "local_timestamp": 1700000001000}}` + "\r\n\n" +
		`{"type": "ws_msg", "payload": {"param": {"paramName": "lr", "paramValue": "0.1"}, "log_other": {"key": "Name", "val": "old"}, "stdout": "hello\n"}}` + "\n" +
		`{"type": "ws_msg", "payload": {"metric": {"metricName": "loss", "metricValue": "-Infinity", "step": 2}, "local_timestamp": 1700000002000}}` + "\n" +
		`{"type": "ws_msg", "payload": {"metric": {"metricName": "text", "metricValue": "words", "step": 2}}}` + "\n" +
		"nonsense\n" + `{"type": "metric_msg", "payl`
	s := read(t, "a/messages.json", []byte(text), nil)
	if got, want := strings.Join(s.Points, "\n"), "loss[1] = 0.5 at 1700000001.000\nloss[2] = -Inf at 1700000002.000"; got != want {
		t.Errorf("points\n%s\nwant\n%s", got, want)
	}
	run := s.Runs[0]
	if run.Name != "old" || len(run.Settings) != 1 || run.Lines != 1 || len(run.Damage) != 2 || run.Damage[0].Kind != evidence.BadLine || run.Damage[1].Kind != evidence.TruncatedTail {
		t.Errorf("run %+v", run)
	}
}

// TestZip: the archive is read by its members.
func TestZip(t *testing.T) {
	name := filepath.Join(t.TempDir(), "1.zip")
	f, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	z := zip.NewWriter(f)
	for _, name := range []string{"tmp4cvwu2br", "experiment.json", "messages.json"} {
		data, err := os.ReadFile("testdata/" + name)
		if err != nil {
			data = []byte("import comet_ml\n")
		}
		w, err := z.Create(name)
		if err != nil {
			t.Fatal(err)
		}
		w.Write(data)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	got, err := engine.ReadTrackers(t.Context(), engine.Options{Paths: []string{name}, Readers: []reader.Reader{theReader()}}, engine.TrackerOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if len(got.Runs) != 1 || len(got.Runs[0].Tracks) < 3 || got.Runs[0].Project != "toy" {
		t.Errorf("runs %+v", got.Runs)
	}
}

func TestSniff(t *testing.T) {
	for _, c := range []struct{ path, head string }{
		{"messages.json", `[{"role": "user"}]`}, {"messages.json", `{"role": "user"}`}, {"experiment.json", `{"name": "x"}`}, {"other.json", `{"payload":{},"type":"metric_msg"}`}, {"messages.json", ""},
	} {
		if got := theReader().Sniff(evidence.Artifact{Path: c.path}, []byte(c.head)); got != reader.No {
			t.Errorf("%s: %v", c.path, got)
		}
	}
}

func FuzzRead(f *testing.F) {
	data, _ := os.ReadFile("testdata/messages.json")
	f.Add(data[:min(len(data), 4000)])
	data, _ = os.ReadFile("testdata/experiment.json")
	f.Add(data)
	r := theReader()
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, name := range []string{"messages.json", "experiment.json"} {
			in := reader.Input{Artifact: evidence.Artifact{Path: name}, Dir: fstest.MapFS{"experiment.json": {Data: data}},
				Open: func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(data)), nil }}
			if err := r.Read(context.Background(), in, reader.NewCollector()); err != nil {
				t.Fatal(err)
			}
		}
	})
}
