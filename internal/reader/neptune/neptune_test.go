package neptune_test

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/inquest-dev/inquest/internal/evidence"
	"github.com/inquest-dev/inquest/internal/reader"
	"github.com/inquest-dev/inquest/internal/reader/neptune"
	"github.com/inquest-dev/inquest/internal/reader/ranklog"
	"github.com/inquest-dev/inquest/internal/reader/readertest"
)

func theReader() reader.Reader { return neptune.New(ranklog.New(evidence.Plan{})) }

func TestReader(t *testing.T) {
	readertest.Run(t, theReader(), readertest.Folder{FS: os.DirFS("testdata"), Write: func(name string, data []byte) error {
		return os.WriteFile(filepath.Join("testdata", name), data, 0o644)
	}})
}

func read(t testing.TB, name, data string) *readertest.Tracked {
	t.Helper()
	return readertest.ReadTracked(t, theReader(), name, []byte(data), nil)
}

func TestRun(t *testing.T) {
	data, err := os.ReadFile("testdata/data-1.log")
	if err != nil {
		t.Fatal(err)
	}
	s := read(t, "x/.neptune/async/run__0f3a__123__abcdefgh/exec-1/partition-0/data-1.log", string(data))
	run := s.Runs[0]
	if run.ID != "0f3a" || run.Folder != "x/.neptune/async/run__0f3a__123__abcdefgh" || run.Name != "nan-run" || run.Status != evidence.RunFailed || run.Keeps != evidence.Dropped || !run.Started.Known() || run.Lines != 13 || len(run.Cannot) != 3 {
		t.Errorf("run %+v", run)
	}
	want := []string{
		"sys/tags: a, b",
		"train/loss has no value between steps 7 and 11, and one every 1 before: values that are not finite are dropped",
		"grad_norm ends at step 6, and other series go on to step 11: values that are not finite are dropped",
	}
	if got := strings.Join(run.Notes, "\n"); got != strings.Join(want, "\n") {
		t.Errorf("notes\n%s", got)
	}
	if len(run.Settings) != 2 || run.Settings[0].Name != "parameters.lr" {
		t.Errorf("settings %+v", run.Settings)
	}
	oom := 0
	for _, e := range s.Events {
		if e.Kind == evidence.DeviceOOM && e.Stamp.Written == "2023-11-14T22:13:50Z" {
			oom++
		}
	}
	if oom != 1 || len(s.Points) != 9+7+24 {
		t.Errorf("%d out-of-memory errors, %d points", oom, len(s.Points))
	}
}

// TestDamage: line ends of Windows, an operation that is cut, one that is none.
func TestDamage(t *testing.T) {
	op := func(step string, v string) string {
		return `{"obj": {"type": "LogFloats", "path": ["loss"], "values": [{"value": ` + v + `, "step": ` + step + `, "ts": 1700000001.5}]}, "version": 1}`
	}
	s := read(t, "run__a/data-1.log", "\ufeff"+op("1", "0.5")+"\r\n\r\n"+op("2.5", "0.25")+"\r\nnonsense\n{\"a\": 1}\n"+op("3", "\"x\"")+"\n"+op("4", "0.1")[:60])
	if got, want := strings.Join(s.Points, "; "), "loss[1] = 0.5 at 1700000001.500; loss[-1] = 0.25 at 1700000001.500"; got != want {
		t.Errorf("points %s, want %s", got, want)
	}
	var kinds []string
	for _, d := range s.Runs[0].Damage {
		kinds = append(kinds, string(d.Kind))
	}
	if got := strings.Join(kinds, " "); got != "bad-line bad-line bad-record truncated-tail" {
		t.Errorf("damage %s", got)
	}
	if s.Runs[0].ID != "a" || s.Runs[0].Folder != "run__a" {
		t.Errorf("run %+v", s.Runs[0])
	}
}

func TestSniff(t *testing.T) {
	head := `{"obj": {"type": "AssignInt", "path": ["a"], "value": 1}, "version": 1}`
	for path, want := range map[string]reader.Confidence{"x/data-1.log": reader.Sure, "x/data-.log": reader.No, "x/data-a.log": reader.No, "x/log-1.log": reader.No} {
		if got := theReader().Sniff(evidence.Artifact{Path: path}, []byte(head)); got != want {
			t.Errorf("%s: %v", path, got)
		}
	}
	if got := theReader().Sniff(evidence.Artifact{Path: "data-1.log"}, []byte("step 1 loss 2\n")); got != reader.No {
		t.Errorf("a log: %v", got)
	}
}

func FuzzRead(f *testing.F) {
	data, _ := os.ReadFile("testdata/data-1.log")
	f.Add(data[:min(len(data), 3000)])
	r := theReader()
	f.Fuzz(func(t *testing.T, data []byte) {
		in := reader.Input{Artifact: evidence.Artifact{Path: "run__a/data-1.log"}, Open: func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(data)), nil }}
		if err := r.Read(context.Background(), in, reader.NewCollector()); err != nil {
			t.Fatal(err)
		}
	})
}
