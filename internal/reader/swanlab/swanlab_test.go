package swanlab_test

import (
	"bytes"
	"context"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/fstest"

	"github.com/inquest-dev/inquest/internal/catalog"
	"github.com/inquest-dev/inquest/internal/evidence"
	"github.com/inquest-dev/inquest/internal/reader"
	"github.com/inquest-dev/inquest/internal/reader/ranklog"
	"github.com/inquest-dev/inquest/internal/reader/readertest"
	"github.com/inquest-dev/inquest/internal/reader/swanlab"
)

// theReader is the reader with the wordings of the encyclopedia for console output.
var theReader = sync.OnceValue(func() reader.Reader {
	c, err := catalog.Load(os.DirFS("../../../encyclopedia"))
	if err != nil {
		panic(err)
	}
	return swanlab.New(ranklog.New(c.Plan()))
})

func TestReader(t *testing.T) {
	readertest.Run(t, theReader(), readertest.Folder{FS: os.DirFS("testdata"), Write: func(name string, data []byte) error {
		return os.WriteFile(filepath.Join("testdata", name), data, 0o644)
	}})
}

// golden is three records of version 2 that SwanLab's own reader accepts: loss 0.5 at step
// 1, NaN at step 2, and a finish record of a crash.
const golden = "3a53574cd6e1026a514cdd290001080112060881e2cfaa066a1d0a046c6f73731001180122060881e2cfaa062a0909000000000000e03f675a6777290001080212060882e2cfaa066a1d0a046c6f73731002180122060882e2cfaa062a0909000000000000f87f7e6a9f0610000108035a0c0802120843554441204f4f4d"

func read(t testing.TB, name string, data []byte, dir fs.FS) *readertest.Tracked {
	t.Helper()
	return readertest.ReadTracked(t, theReader(), name, data, dir)
}

func TestGolden(t *testing.T) {
	data, _ := hex.DecodeString(golden)
	s := read(t, "logs/run-20231114_221321-x/run-x.swanlab", data, nil)
	if got, want := strings.Join(s.Points, "\n"), "loss[1] = 0.5 at 1700000001.000\nloss[2] = NaN at 1700000002.000"; got != want {
		t.Errorf("points\n%s\nwant\n%s", got, want)
	}
	run := s.Runs[0]
	if run.Status != evidence.RunCrashed || run.StatusSaid != "CRASHED" || run.Folder != "logs/run-20231114_221321-x" || run.Lines != 1 {
		t.Errorf("run %+v", run)
	}
	seg := run.Tracks[0].Segments[0]
	if seg.FirstBad.Step != 2 || seg.LastFinite.Step != 1 || seg.FirstBad.Line != 2 || seg.FirstBad.Offset != 55 {
		t.Errorf("segment %+v", seg)
	}
	for i := range data {
		read(t, "run-x.swanlab", data[:i], nil)
	}
}

// TestMachine: columns of class SYSTEM are of the machine, and a sensor without a value is
// no sign about the training.
func TestMachine(t *testing.T) {
	data, err := os.ReadFile("testdata/killed.swanlab")
	if err != nil {
		t.Fatal(err)
	}
	s := read(t, "killed.swanlab", data, nil)
	for _, e := range s.Events {
		if e.Kind == evidence.NonfiniteValue && strings.Contains(e.Text, "npu") {
			t.Errorf("a sensor's NaN is news: %s", e.Text)
		}
	}
	byName := map[string]*evidence.Track{}
	for _, x := range s.Runs[0].Tracks {
		byName[x.Name] = x
	}
	if n := byName["npu.0.temp"]; n == nil || !n.System || n.NaN == 0 {
		t.Errorf("npu.0.temp: %+v", n)
	}
	if g := byName["__swanlab__.gpu.0.mem.value"]; g == nil || !g.System || g.Unit != "bytes" || g.Series.First.Value != 20000<<20 {
		t.Errorf("memory: %+v", g)
	}
	if r := s.Runs[0]; r.Status != evidence.RunOpen || len(r.Damage) != 1 || r.Damage[0].Kind != evidence.TruncatedTail {
		t.Errorf("run %v, damage %v", r.Status, r.Damage)
	}
}

// TestDashboard: the files of the local dashboard.
func TestDashboard(t *testing.T) {
	lines := "{\"index\": 0, \"data\": 0.5, \"create_time\": \"2024-03-16T15:26:07.371643\"}\r\n\n" +
		"{\"index\": 1, \"data\": \"NaN\", \"create_time\": \"2024-03-16T15:26:08.371643\"}\n" +
		"{\"index\": 2, \"data\": Infinity, \"create_time\": \"2024-03-16T15:26:09.5+00:00\"}\n" +
		"{\"index\": 3, \"data\": \"image.png\", \"create_time\": \"2024-03-16T15:26:09.5+00:00\"}\n" +
		"nonsense\n{\"index\": 4, \"da"
	name := "swanlog/run-20240316_232607-dd5f2d1c/logs/train%2Floss/1000.log"
	if c := theReader().Sniff(evidence.Artifact{Path: name}, []byte(lines)); c != reader.Sure {
		t.Errorf("Sniff: %v", c)
	}
	s := read(t, name, []byte(lines), nil)
	if got, want := strings.Join(s.Points, "\n"), "train/loss[0] = 0.5 at 1710602767.372\ntrain/loss[1] = NaN at 1710602768.372\ntrain/loss[2] = +Inf at 1710602769.500"; got != want {
		t.Errorf("points\n%s\nwant\n%s", got, want)
	}
	run := s.Runs[0]
	if run.ID != "run-20240316_232607-dd5f2d1c" || run.Folder != "swanlog/run-20240316_232607-dd5f2d1c" || len(run.Damage) != 2 || run.Damage[1].Kind != evidence.TruncatedTail {
		t.Errorf("run %+v", run)
	}
	config, err := os.ReadFile("testdata/files/config.yaml")
	if err != nil {
		t.Fatal(err)
	}
	name = "swanlog/run-20240316_232607-dd5f2d1c/files/config.yaml"
	if c := theReader().Sniff(evidence.Artifact{Path: name}, config); c != reader.Sure {
		t.Errorf("Sniff: %v", c)
	}
	run = read(t, name, config, nil).Runs[0]
	if got := fmt.Sprint(run.ID, " ", len(run.Settings), " ", run.Settings[2].Name, " ", run.Settings[2].Value); got != "run-20240316_232607-dd5f2d1c 3 model.hidden 64" {
		t.Errorf("configuration: %s", got)
	}
}

func TestAnchor(t *testing.T) {
	g := theReader().(reader.Gatherer)
	for _, c := range []struct{ path, dir, pattern string }{
		{"a/run-1-x/files/config.yaml", "a/run-1-x", "*.swanlab"},
		{"a/run-1-x/logs/loss/1000.log", "a/run-1-x", "backup.swanlab"},
		{"a/run-1-x/run-x.swanlab", "", ""},
	} {
		if dir, pattern, _ := g.Anchor(c.path); dir != c.dir || pattern != c.pattern {
			t.Errorf("%s: %s %s", c.path, dir, pattern)
		}
	}
}

func TestSniff(t *testing.T) {
	for _, c := range []struct{ path, head string }{
		{"run-x.wandb", ":W&B\xe1\xbe\x00"},
		{"config.yaml", "lr:\n  desc: null\n  sort: 1\n  value: 1\n"},
		{"files/config.yaml", "lr:\n  desc: null\n  value: 1\n"}, // W&B's
		{"logs/rank0/1000.log", "step 1\n"},
		{"runs.swanlab", "text"},
		{"x.swanlab", ""},
	} {
		if got := theReader().Sniff(evidence.Artifact{Path: c.path}, []byte(c.head)); got != reader.No {
			t.Errorf("%s: %v", c.path, got)
		}
	}
}

// TestVersion: an unknown version is refused in words.
func TestVersion(t *testing.T) {
	data, _ := hex.DecodeString(golden)
	data[6] = 3
	err := theReader().Read(context.Background(), reader.Input{Open: func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(data)), nil }}, reader.NewCollector())
	if err == nil || !strings.Contains(err.Error(), "version 3") {
		t.Errorf("got %v", err)
	}
}

// TestPublic reads runs of other people where they are at hand.
func TestPublic(t *testing.T) {
	dir := "../../../../shared/data/swanlab"
	data, err := os.ReadFile(dir + "/adsft/run-20260531_085436/backup.swanlab")
	if err != nil {
		t.Skip("no public runs beside the project")
	}
	s := read(t, "swanlog/run-20260531_085436/backup.swanlab", data, nil)
	run := s.Runs[0]
	if len(s.Points) != 1056 || len(run.Tracks) != 27 || run.Status != evidence.RunFinished || run.Lines != 128 || len(run.Damage) > 0 {
		t.Errorf("%d points, %d series, %s, %d lines, damage %v", len(s.Points), len(run.Tracks), run.Status, run.Lines, run.Damage)
	}
	data, err = os.ReadFile(dir + "/kohya/run-20240316_232607-dd5f2d1c/files/config.yaml")
	if err != nil {
		t.Fatal(err)
	}
	run = read(t, "kohya/run-20240316_232607-dd5f2d1c/files/config.yaml", data, nil).Runs[0]
	if len(run.Settings) < 100 || len(run.Damage) > 0 {
		t.Errorf("%d settings, damage %v", len(run.Settings), run.Damage)
	}
}

// TestStore: the database of other people's dashboard, which lists one run.
func TestStore(t *testing.T) {
	data, err := os.ReadFile("../../../../shared/data/swanlab/kohya/runs.swanlab")
	if err != nil {
		t.Skip("no public runs beside the project")
	}
	if c := theReader().Sniff(evidence.Artifact{Path: "swanlog/runs.swanlab"}, data[:4096]); c != reader.Sure {
		t.Errorf("Sniff: %v", c)
	}
	run := read(t, "swanlog/runs.swanlab", data, nil).Runs[0]
	if run.ID != "run-20240316_232607-dd5f2d1c" || run.Folder != "swanlog/run-20240316_232607-dd5f2d1c" || run.Status != evidence.RunOpen || run.Project != "kohya_ss" || !run.Started.Known() {
		t.Errorf("run %+v", run)
	}
	for i := 0; i < len(data); i += 997 {
		read(t, "swanlog/runs.swanlab", data[:max(i, 4096)], nil)
	}
}

func FuzzRead(f *testing.F) {
	data, _ := hex.DecodeString(golden)
	f.Add(data)
	if b, err := os.ReadFile("testdata/backup.swanlab"); err == nil {
		f.Add(b[:3000])
	}
	f.Add([]byte(`{"index": 0, "data": "INF", "create_time": "2024-03-16T15:26:07.371643"}`))
	r := theReader()
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, name := range []string{"run-x.swanlab", "run-x/logs/loss/1000.log"} {
			s := &readertest.Tracked{Collector: reader.NewCollector()}
			in := reader.Input{Artifact: evidence.Artifact{Path: name}, Dir: fstest.MapFS{"files/config.yaml": {Data: data}},
				Open: func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(data)), nil }}
			r.Read(context.Background(), in, s) // only must not panic
		}
	})
}
