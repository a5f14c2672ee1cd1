package wandb_test

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/fstest"

	"github.com/inquest-dev/inquest/internal/catalog"
	"github.com/inquest-dev/inquest/internal/evidence"
	"github.com/inquest-dev/inquest/internal/format/leveldblog"
	"github.com/inquest-dev/inquest/internal/format/protowire"
	"github.com/inquest-dev/inquest/internal/format/wandblog"
	"github.com/inquest-dev/inquest/internal/reader"
	"github.com/inquest-dev/inquest/internal/reader/ranklog"
	"github.com/inquest-dev/inquest/internal/reader/readertest"
	"github.com/inquest-dev/inquest/internal/reader/wandb"
)

// theReader is the reader with the wordings of the encyclopedia for console output.
var theReader = sync.OnceValue(func() reader.Reader {
	c, err := catalog.Load(os.DirFS("../../../encyclopedia"))
	if err != nil {
		panic(err)
	}
	return wandb.New(ranklog.New(c.Plan()))
})

func TestReader(t *testing.T) {
	readertest.Run(t, theReader(), readertest.Folder{FS: os.DirFS("testdata"), Write: func(name string, data []byte) error {
		return os.WriteFile(filepath.Join("testdata", name), data, 0o644)
	}})
}

func read(t testing.TB, name string, data []byte, dir fs.FS) *readertest.Tracked {
	t.Helper()
	return readertest.ReadTracked(t, theReader(), name, data, dir)
}

func file(t testing.TB, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func TestGolden(t *testing.T) {
	s := read(t, "wandb/run-20231114_221320-abcd1234/run-abcd1234.wandb", file(t, "golden.wandb"), nil)
	want := []string{"loss[0] = 0.5 at 1700000000.000", "loss[1] = NaN at 1700000001.000", "gpu.0.memoryAllocatedBytes[-1] = 8.4825604096e+10 at 1700000003.000"}
	if !slices.Equal(s.Points, want) {
		t.Errorf("points %q, want %q", s.Points, want)
	}
	r := s.Runs[0]
	if r.ID != "abcd1234" || r.Project != "proj" || r.Folder != "wandb/run-20231114_221320-abcd1234" || r.Status != evidence.RunFailed || r.Exit != 1 || r.Lines != 1 {
		t.Errorf("run %+v", r)
	}
	nan, oom := s.EventsOf(evidence.NonfiniteValue), s.EventsOf(evidence.DeviceOOM)
	if len(nan) != 1 || len(oom) == 0 {
		t.Fatalf("%d values that are not finite and %d failures to allocate", len(nan), len(oom))
	}
	if nan[0].Step != 1 || !nan[0].Stamp.Time.Before(oom[0].Stamp.Time) || oom[0].Span.Record != 6 || oom[0].Span.Offset >= int64(len(file(t, "golden.wandb"))) {
		t.Errorf("NaN %+v, out of memory %+v", nan[0], oom[0])
	}
	if f := s.Facts; !slices.ContainsFunc(f, func(f evidence.Fact) bool { return f.Name == "setting.batch_size" }) {
		t.Errorf("no batch size among %v", f)
	}
}

func TestLogs(t *testing.T) {
	for _, c := range []struct {
		name, id, label string
		status          evidence.RunStatus
		series          string
		count, bad      int64
		first           int64 // step of the first point
		broke           int64 // step of the first that is not finite; -1 none
		last            int64
		note, cannot    string
		settings        int
	}{
		{name: "run-nan1.wandb", id: "nan1", label: "nan", status: evidence.RunFinished, series: "loss", count: 12, bad: 3, first: 1, broke: 10, last: 12, note: "alert WARN slow: the loader is behind", settings: 7},
		{name: "run-nan1.wandb", id: "nan1", label: "nan", status: evidence.RunFinished, series: "eval.bad", count: 12, bad: 1, first: 1, broke: 11, last: 12, note: "tags: small", settings: 7},
		{name: "run-oom1.wandb", id: "oom1", label: "oom", status: evidence.RunFailed, series: "grad_norm", count: 12, bad: 4, first: 1, broke: 9, last: 12, settings: 7},
		{name: "run-metric1.wandb", id: "metric1", label: "metric", status: evidence.RunFinished, series: "train/loss", count: 6, bad: 2, first: 10, broke: 50, last: 60, note: "* in train/global_step", settings: 7},
		{name: "run-killed1.wandb", id: "killed1", label: "killed", status: evidence.RunOpen, series: "loss", count: 85, first: 1, broke: -1, last: 85, cannot: "no exit record", settings: 7},
		{name: "run-resumed1.wandb", id: "killed1", label: "resumed", status: evidence.RunFinished, series: "loss", count: 20, first: 80, broke: -1, last: 99, settings: 7},
	} {
		s := read(t, c.name, file(t, c.name), nil)
		r, tr := s.Runs[0], s.Track(c.series)
		if r.ID != c.id || r.Name != c.label || r.Project != "demo" || r.Status != c.status || len(r.Settings) != c.settings || len(r.Damage) > 0 || !r.Started.Known() {
			t.Errorf("%s: run %+v", c.name, r)
		}
		if tr == nil {
			t.Errorf("%s: no series %s", c.name, c.series)
			continue
		}
		broke := int64(-1)
		if tr.Series.Bad > 0 {
			broke = tr.Series.FirstBad.Step
		}
		if tr.Series.Count != c.count || tr.Series.Bad != c.bad || tr.Series.First.Step != c.first || broke != c.broke || tr.Series.Last.Step != c.last || len(tr.Segments) != 1 {
			t.Errorf("%s: %s has %d points from %d to %d, %d not finite from %d, %d segments", c.name, c.series, tr.Series.Count, tr.Series.First.Step, tr.Series.Last.Step, tr.Series.Bad, broke, len(tr.Segments))
		}
		if all := strings.Join(r.Notes, "\n"); !strings.Contains(all, c.note) {
			t.Errorf("%s: notes %q lack %q", c.name, all, c.note)
		}
		if all := strings.Join(r.Cannot, "\n"); !strings.Contains(all, c.cannot) {
			t.Errorf("%s: %q lacks %q", c.name, all, c.cannot)
		}
		for _, name := range []string{"flag", "text", "hist.bins", "_step", "_runtime", "_wandb.runtime"} {
			if s.Track(name) != nil {
				t.Errorf("%s: %s is no series", c.name, name)
			}
		}
	}
	s := read(t, "run-oom1.wandb", file(t, "run-oom1.wandb"), nil)
	if oom := s.EventsOf(evidence.DeviceOOM); len(oom) != 1 || oom[0].Span.Kind != "record" || !oom[0].Stamp.Known() || s.Runs[0].Lines < 14 {
		t.Errorf("failures to allocate %+v of %d lines", oom, s.Runs[0].Lines)
	}
}

// TestFolder: the files beside a log complete it, and the console is read once.
func TestFolder(t *testing.T) {
	const oom = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 79.15 GiB of which 1.20 GiB is free.\n"
	dir := fstest.MapFS{
		"files/config.yaml":         {Data: []byte("_wandb:\n    value:\n        cli_version: 0.31.0\nbatch_size:\n    value: 64\nseed:\n    value: 7\n")},
		"files/wandb-metadata.json": {Data: []byte(`{"host":"node9","args":["--depth","24","--fast"],"program":"other.py","gpu":"NVIDIA H100","gpu_count":8,"state":"running","startedAt":"2026-12-01T05:00:00.5Z"}`)},
		"files/output.log":          {Data: []byte("step 1 loss 2.5\n" + oom)},
		"logs/debug-internal.log": {Data: []byte(`{"level":"WARN","msg":"handler: ignoring partial history record","step":3,"current":5}` + "\n" +
			"2024-01-01 WARNING HandlerThread:1 Tried to log to step 4 that is less than the current step 6. Steps must be monotonically increasing.\n" + strings.Repeat("x", 200000) + "\n" +
			"Step must only increase in log calls.  Step 1 < 9; dropping {'a': 1}.")},
	}
	value := func(r *evidence.TrackedRun, name string) string {
		for _, s := range r.Settings {
			if s.Name == name {
				return s.Value + " in " + s.Span.Artifact
			}
		}
		return ""
	}
	s := read(t, "w/offline-run-20261201_051556-oom1/run-oom1.wandb", file(t, "run-oom1.wandb"), dir)
	r := s.Runs[0]
	for name, want := range map[string]string{
		"batch_size": "32 in w/offline-run-20261201_051556-oom1/run-oom1.wandb", "seed": "7 in w/offline-run-20261201_051556-oom1/files/config.yaml", "program": "/tmp/train/train.py in " + s.Runs[0].Artifact,
		"depth": "24 in w/offline-run-20261201_051556-oom1/files/wandb-metadata.json", "gpu_count": "8 in w/offline-run-20261201_051556-oom1/files/wandb-metadata.json", "fast": "", "cli_version": "", "model.layers": "[1,2] in " + s.Runs[0].Artifact,
	} {
		if got := value(r, name); got != want {
			t.Errorf("setting %s is %q, want %q", name, got, want)
		}
	}
	if got := len(s.EventsOf(evidence.DeviceOOM)); got != 1 {
		t.Errorf("%d failures to allocate: the records hold the console, and output.log does", got)
	}
	if want := "W&B refused 3 rows whose step was behind the run's, the first at step 3 when the run was at step 5. Their values are not in the log."; !slices.Contains(r.Cannot, want) {
		t.Errorf("%q lacks %q", r.Cannot, want)
	}
	if r.StatusSaid != "exit code 1" {
		t.Errorf("status %q", r.StatusSaid)
	}

	// A log that holds nothing: the console is read from output.log, its losses too.
	s = read(t, "w/run-20261201_051556-x/run-x.wandb", []byte(wandblog.Header), dir)
	e := s.EventsOf(evidence.DeviceOOM)
	if len(e) != 1 || e[0].Span.Artifact != "w/run-20261201_051556-x/files/output.log" || e[0].Span.Line != 2 || e[0].Span.Offset != 16 {
		t.Errorf("failures to allocate %+v", e)
	}
	if r := s.Runs[0]; r.ID != "x" || r.Status != evidence.RunOpen || r.StatusSaid != "running" || r.Lines != 2 {
		t.Errorf("run %+v", r)
	}
	if !slices.ContainsFunc(s.Metrics, func(m *evidence.Series) bool { return m.Key.Name == "loss" }) {
		t.Error("the printed loss is lost")
	}

	// A log without its end: what output.log has behind its last line is read.
	var b bytes.Buffer
	w := leveldblog.NewWriter(&b, wandblog.Header)
	for i, line := range []string{"step 1 loss", " 2.5", "\n", "step 2 loss 2.4\n"} {
		out := protowire.AppendBytes(protowire.AppendVarint(nil, 1, 1), 3, line)
		w.Write(wandblog.Make(nil, int64(i+1), wandblog.OutputRaw, out))
	}
	w.Flush()
	dir["files/output.log"] = &fstest.MapFile{Data: []byte("step 1 loss 2.5\nstep 2 loss 2.4\nstep 3 loss 2.3\n" + oom)}
	s = read(t, "w/run-20261201_051556-y/run-y.wandb", b.Bytes(), dir)
	e = s.EventsOf(evidence.DeviceOOM)
	if len(e) != 1 || e[0].Span.Line != 4 || e[0].Span.Offset != 48 || s.Runs[0].Lines != 4 {
		t.Errorf("failures to allocate %+v, %d lines", e, s.Runs[0].Lines)
	}
}

// TestAlone: what lies beside a log that is missing.
func TestAlone(t *testing.T) {
	const folder = "wandb/offline-run-20210216_154407-g9dv"
	for name, want := range map[string]string{
		"files/config.yaml":         "unknown [] 4 settings",
		"files/wandb-metadata.json": "running-or-dead [] 5 settings",
		"files/wandb-summary.json":  "unknown [grad_norm loss val.acc] 0 settings",
	} {
		s := read(t, folder+"/"+name, file(t, name[6:]), nil)
		r := s.Runs[0]
		var names []string
		for _, t := range r.Tracks {
			names = append(names, t.Name)
		}
		slices.Sort(names)
		if got := fmt.Sprintf("%s %s %d settings", r.Status, names, len(r.Settings)); got != want || r.ID != "g9dv" || r.Folder != folder || len(r.Cannot) == 0 {
			t.Errorf("%s: %s, want %s; %+v", name, got, want, r)
		}
	}
	s := read(t, folder+"/files/output.log", []byte("torch.OutOfMemoryError: CUDA out of memory.\n"), nil)
	if len(s.EventsOf(evidence.DeviceOOM)) != 1 || s.Runs[0].ID != "g9dv" {
		t.Errorf("events %v", s.Events)
	}
	s = read(t, folder+"/logs/debug-internal.log", []byte("Tried to log to step 4 that is less than the current step 6.\n"), nil)
	if r := s.Runs[0]; r.ID != "g9dv" || r.Folder != folder || len(r.Cannot) != 2 {
		t.Errorf("%+v", r)
	}
}

// TestOld: a run of version 0.8, with what belongs to it.
func TestOld(t *testing.T) {
	dir := os.DirFS("testdata")
	s := read(t, "wandb/run-20200126_005320-old1/wandb-history.jsonl", file(t, "wandb-history.jsonl"), dir)
	if len(s.Runs) != 2 || s.Runs[0].ID != "old1" || s.Runs[1].ID != "old1" {
		t.Fatalf("runs %+v", s.Runs)
	}
	events, r := s.Runs[0], s.Runs[1]
	if len(r.Settings) == 0 || len(r.Damage) != 1 || r.Damage[0].Kind != evidence.TruncatedTail || r.StatusSaid != "running" {
		t.Errorf("run %+v", r)
	}
	loss := s.Track("loss")
	if loss.Series.Count != 8 || loss.Series.FirstBad.Step != 30 || s.Track("val.acc") == nil || s.Track("hist.n") != nil {
		t.Errorf("loss %+v", loss.Series)
	}
	gpu := s.Track("system.gpu.0.memoryAllocated")
	if gpu == nil || !gpu.System || gpu.Series.Count != 4 || gpu.Steps || events.Artifact != "wandb/run-20200126_005320-old1/wandb-events.jsonl" {
		t.Errorf("GPU memory %+v of %s", gpu, events.Artifact)
	}
}

func TestDamage(t *testing.T) {
	whole := file(t, "run-killed1.wandb")
	for _, c := range []struct {
		name string
		data []byte
		want string
	}{
		{"empty", nil, "truncated-tail: the file is empty, 0 records"},
		{"header cut", whole[:3], "truncated-tail: the file ends within its header, 0 records"},
		{"other", []byte("PK\x03\x04 something else"), "bad-record: the header of a W&B log is missing, 0 records"},
		{"zeros", append(bytes.Clone(file(t, "golden.wandb")), make([]byte, 500)...), "zero-fill: zeros where records should stand, 0 records"},
		{"no message", log([]byte{0xff, 0xff, 0xff}), "bad-record: protobuf field at byte 0: ends within a field, 1 records"},
		{"no item", log(wandblog.Make(nil, 1, wandblog.History, []byte{0x0a, 0x02, 0x0a, 0x7f})), "bad-record: protobuf field at byte 0: length is more than what is left, 1 records"},
	} {
		s := read(t, "run-x.wandb", c.data, nil)
		var got []string
		for _, d := range s.Runs[0].Damage {
			got = append(got, fmt.Sprintf("%s: %s, %d records", d.Kind, d.Text, d.Records))
		}
		if strings.Join(got, "; ") != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
	// Of a damaged block as many records are lost as their numbers say.
	many := make([][]byte, 21)
	for i := range many {
		many[i] = wandblog.Make(nil, int64(i+1), wandblog.Telemetry, make([]byte, 5000))
	}
	data := log(many...)
	data[40000] ^= 1
	s := read(t, "run-x.wandb", data, nil)
	if d := s.Runs[0].Damage; len(d) != 1 || d[0].Kind != evidence.BadChecksum || d[0].Records != 7 {
		t.Errorf("damage %+v", d)
	}
}

// log makes a log of the records.
func log(records ...[]byte) []byte {
	var b bytes.Buffer
	w := leveldblog.NewWriter(&b, wandblog.Header)
	for _, r := range records {
		w.Write(r)
	}
	w.Flush()
	return b.Bytes()
}

func TestSniff(t *testing.T) {
	for _, c := range []struct {
		path, head string
		want       reader.Confidence
	}{
		{"anything", wandblog.Header, reader.Sure},
		{"wandb/run-20260101_000000-ab/run-ab.wandb", "", reader.Sure},
		{"x.tar!wandb/run-20260101_000000-ab/run-ab.wandb", "garbage", reader.Sure},
		{"x.wandb", "garbage", reader.Likely},
		{"x/wandb-history.jsonl", "{}", reader.Sure},
		{"x/files/wandb-metadata.json", "{", reader.Sure},
		{"run-20260101_000000-ab/files/config.yaml", "a:\n  value: 1\n", reader.Sure},
		{"x/config.yaml", "lr:\n  value: 1\n_wandb:\n  value: {}\n", reader.Sure},
		{"x/config.yaml", "lr: 1\n", reader.No},
		{"run-20260101_000000-ab/files/output.log", "hello", reader.Sure},
		{"run-20260101_000000-ab/files/logs/20260101.log", "hello", reader.Sure},
		{"run-20260101_000000-ab/logs/debug.log", "hello", reader.Sure},
		{"x/files/output.log", "hello", reader.No},
		{"x/logs/debug.log", "hello", reader.No},
		{"run-20260101_000000-ab/files/requirements.txt", "torch", reader.No},
		{"run-x.swanlab", ":SWL\xd6\xe1\x02", reader.No},
	} {
		if got := theReader().Sniff(evidence.Artifact{Path: c.path}, []byte(c.head)); got != c.want {
			t.Errorf("%s: %d, want %d", c.path, got, c.want)
		}
	}
	for at, want := range map[string]string{
		"w/run-1/files/config.yaml": "w/run-1 *.wandb", "w/run-1/files/output_rank1.log": "w/run-1 *.wandb", "w/run-1/files/logs/a.log": "w/run-1 *.wandb", "w/run-1/logs/debug.log": "w/run-1 *.wandb",
		"w/run-20200126_005320-a/config.yaml": "w/run-20200126_005320-a wandb-history.jsonl", "w/wandb-events.jsonl": "w wandb-history.jsonl",
		"w/config.yaml": "", "w/run-1/run-a.wandb": "", "w/wandb-history.jsonl": "", "w/run-1/files/requirements.txt": "", "logs/train.log": "",
	} {
		dir, pattern, ok := theReader().(reader.Gatherer).Anchor(at)
		if got := strings.TrimSpace(dir + " " + pattern); got != want || ok != (want != "") {
			t.Errorf("%s belongs to %q, want %q", at, got, want)
		}
	}
}

// TestShared reads the logs of other people's runs.
func TestShared(t *testing.T) {
	folders, _ := filepath.Glob("../../../../shared/data/wandb/*")
	if len(folders) == 0 {
		t.Skip("no shared/data/wandb beside the repository")
	}
	points := map[string]int64{"rv0d9uzo": 0, "l69sfsyk": 1, "clnzftry": 78, "eucfu6fn": 1, "ldm4qyxq": 48}
	for _, folder := range folders {
		logs, _ := filepath.Glob(folder + "/*.wandb")
		if len(logs) == 0 {
			continue
		}
		data, err := os.ReadFile(logs[0])
		if err != nil {
			t.Fatal(err)
		}
		s := read(t, filepath.ToSlash(logs[0]), data, nil)
		r := s.Runs[0]
		var most int64
		for _, t := range r.Tracks {
			if !t.System {
				most = max(most, t.Series.Count)
			}
		}
		if want, ok := points[r.ID]; !ok || most != want {
			t.Errorf("%s: at most %d points of a series, want %d", r.ID, most, want)
		}
		if oom := len(s.EventsOf(evidence.DeviceOOM)); (r.ID == "eucfu6fn") != (oom > 0) {
			t.Errorf("%s: %d failures to allocate", r.ID, oom)
		}
	}
}

// silent stands for the reader of logs: it finds nothing.
type silent struct{}

func (silent) Name() string                                          { return "silent" }
func (silent) Sniff(evidence.Artifact, []byte) reader.Confidence     { return reader.No }
func (silent) Read(context.Context, reader.Input, reader.Sink) error { return nil }

// FuzzRead: whatever the bytes, reading ends, twice with the same points.
func FuzzRead(f *testing.F) {
	for _, name := range []string{"golden.wandb", "run-metric1.wandb", "run-nan1.wandb"} {
		f.Add(file(f, name), uint8(0))
	}
	for i, name := range []string{"wandb-history.jsonl", "wandb-summary.json", "wandb-metadata.json", "config.yaml"} {
		f.Add(file(f, name), uint8(i+1))
	}
	names := []string{"run-20260101_000000-a/run-a.wandb", "wandb-history.jsonl", "wandb-summary.json", "wandb-metadata.json", "config.yaml", "run-20260101_000000-a/logs/debug-internal.log"}
	f.Fuzz(func(t *testing.T, data []byte, as uint8) {
		name := names[int(as)%len(names)]
		dir := fstest.MapFS{"files/config.yaml": {Data: data}, "files/output.log": {Data: data}, "logs/debug-internal.log": {Data: data}}
		r := wandb.New(silent{})
		a, b := readertest.ReadTracked(t, r, name, data, dir), readertest.ReadTracked(t, r, name, data, dir)
		if !slices.Equal(a.Points, b.Points) {
			t.Fatal("two readings differ")
		}
	})
}
