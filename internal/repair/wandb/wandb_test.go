package wandb_test

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/inquest-dev/inquest/internal/engine"
	"github.com/inquest-dev/inquest/internal/evidence"
	"github.com/inquest-dev/inquest/internal/format/leveldblog"
	"github.com/inquest-dev/inquest/internal/format/protowire"
	"github.com/inquest-dev/inquest/internal/format/wandblog"
	"github.com/inquest-dev/inquest/internal/reader/ranklog"
	reader "github.com/inquest-dev/inquest/internal/reader/wandb"
	"github.com/inquest-dev/inquest/internal/repair/repairtest"
	"github.com/inquest-dev/inquest/internal/repair/wandb"
)

const testdata = "../../reader/wandb/testdata/"

var logs = ranklog.New(evidence.Plan{})

// folder makes the folder of a run.
func folder(t *testing.T, log string) string {
	t.Helper()
	data, err := os.ReadFile(testdata + log)
	if err != nil {
		t.Fatal(err)
	}
	return run(t, filepath.Join(t.TempDir(), "wandb", "run-20261201_050000-x"), data)
}

func run(t *testing.T, dir string, log []byte) string {
	t.Helper()
	for name, data := range map[string][]byte{
		"run-x.wandb":              log,
		"files/wandb-summary.json": []byte(`{"loss": NaN, "lr": 0.0003, "eval": {"bad": -Infinity, "acc": 1}, "text": "NaN"}`),
		"files/media/a.txt":        []byte("a\n"),
		"logs/debug.log":           []byte("nothing\n"),
		"run-x.wandb.synced":       nil,
	} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestFormat(t *testing.T) {
	t.Run("folder", func(t *testing.T) { repairtest.Run(t, reader.New(logs), wandb.New(), folder(t, "run-nan1.wandb")) })
	for _, log := range []string{"run-metric1.wandb", "run-killed1.wandb", "golden.wandb"} {
		for name, policy := range repairtest.Policies {
			t.Run(log+" "+name, func(t *testing.T) {
				repairtest.Copy(t, reader.New(logs), wandb.New(), testdata+log, func(o *engine.RepairOptions) { o.Policy = policy })
			})
		}
	}
}

// A record is one of a log, with its bytes.
type record struct {
	wandblog.Record
	raw []byte
}

func records(t *testing.T, name string) (list []record) {
	t.Helper()
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r := leveldblog.NewReader(f, wandblog.Ident)
	for {
		x, err := r.Next()
		var d *leveldblog.Damage
		if err == io.EOF {
			return list
		}
		if errors.As(err, &d) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		raw := bytes.Clone(x.Data)
		rec, err := wandblog.Decode(raw)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, record{rec, raw})
	}
}

// the is the log of a copy.
func the(t *testing.T, out string) string {
	t.Helper()
	logs, _ := filepath.Glob(filepath.Join(out, "offline-run-*", "run-*.wandb"))
	if len(logs) != 1 {
		t.Fatalf("logs %v", logs)
	}
	return logs[0]
}

// TestRecords: what is changed, and that all else is as it was.
func TestRecords(t *testing.T) {
	src := folder(t, "run-nan1.wandb")
	res, out := repairtest.Copy(t, reader.New(logs), wandb.New(), src, nil)
	id := res.Runs[0].NewID
	log := the(t, out)
	if want := filepath.Join(out, "offline-run-20261201_050000-"+id, "run-"+id+".wandb"); log != want || id == "nan1" || !strings.HasPrefix(id, "nan1-fx") {
		t.Fatalf("log %s, want %s", log, want)
	}
	was, is := records(t, filepath.Join(src, "run-x.wandb")), records(t, log)
	rows, old := wandblog.NewRows(), wandblog.NewRows()
	i, ones, zeros := 0, 0, 0
	for _, r := range was {
		x := is[i]
		for r.Kind == wandblog.Exit && x.Kind != wandblog.Exit { // what was added before it
			switch x.Kind {
			case wandblog.Config:
				wandblog.Items(x.Body, 1, func(it wandblog.Item) bool {
					var v map[string]any
					if err := json.Unmarshal(it.JSON, &v); err != nil || it.Name != "inquest" || v["source_run"] != "nan1" || v["last_clean_step"] != 8.0 {
						t.Errorf("configuration %s: %s", it.Name, it.JSON)
					}
					return true
				})
			case wandblog.Alert:
				if a, _ := wandblog.DecodeAlert(x.Body); a.Level != "ERROR" || !strings.Contains(a.Text, "last clean step 8") {
					t.Errorf("alert %+v", a)
				}
			default:
				t.Errorf("a new record of %s", wandblog.NameOf(x.Kind))
			}
			i++
			x = is[i]
		}
		i++
		if x.Kind != r.Kind || x.Num != r.Num {
			t.Fatalf("record %d is one of %s, want %s", x.Num, wandblog.NameOf(x.Kind), wandblog.NameOf(r.Kind))
		}
		switch r.Kind {
		case wandblog.History:
			a, err := old.History(r.Body)
			if err != nil {
				t.Fatal(err)
			}
			b, err := rows.History(x.Body)
			if err != nil {
				t.Fatal(err)
			}
			want := map[string]float64{}
			for _, v := range a.Values {
				if v.V-v.V == 0 {
					want[v.Name] = v.V
				}
			}
			for _, v := range b.Values {
				switch w, ok := want[v.Name]; {
				case v.Name == "inquest/failed_segment":
					ones += int(v.V)
					zeros += 1 - int(v.V)
				case !ok || w != v.V || v.Step != a.Step:
					t.Errorf("step %d: %s is %v, want %v", v.Step, v.Name, v.V, w)
				}
				delete(want, v.Name)
			}
			if len(want) > 0 || b.Wall != a.Wall || b.Step != a.Step || b.Other != a.Other {
				t.Errorf("step %d lacks %v", b.Step, want)
			}
		case wandblog.Run:
			m, _ := wandblog.DecodeRun(x.Body)
			if m.ID != id || m.DisplayName != "nan (repaired copy)" || len(m.Tags) != 2 || m.Tags[1] != "inquest:repaired" || !strings.Contains(m.Notes, "Repaired copy") || m.Project != "demo" {
				t.Errorf("run %+v", m)
			}
		case wandblog.Summary:
			if bytes.Contains(x.Body, []byte("\x03NaN")) || bytes.Contains(x.Body, []byte("\x08Infinity")) || bytes.Contains(x.Body, []byte("-Infinity")) {
				t.Errorf("summary %q", x.Body)
			}
		default:
			if !bytes.Equal(x.raw, r.raw) {
				t.Errorf("record %d of %s differs", r.Num, wandblog.NameOf(r.Kind))
			}
		}
	}
	if i != len(is) || ones != 4 || zeros != 1 {
		t.Errorf("%d of %d records, %d marks of 1 and %d of 0", i, len(is), ones, zeros)
	}
	for name, want := range map[string]string{
		"files/wandb-summary.json": `{"lr": 0.0003, "eval": {"acc": 1}, "text": "NaN"}`, "files/media/a.txt": "a\n", "logs/debug.log": "nothing\n", "run-x.wandb.synced": "", "run-" + id + ".wandb.synced": "",
	} {
		got, err := os.ReadFile(filepath.Join(filepath.Dir(log), name))
		if string(got) != want || (err == nil) != (want != "") {
			t.Errorf("%s is %q, %v", name, got, err)
		}
	}
	plain, err := os.ReadFile(filepath.Join(filepath.Dir(log), "history.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	lines := bytes.Split(bytes.TrimSuffix(plain, []byte("\n")), []byte("\n"))
	var last map[string]any
	if err := json.Unmarshal(lines[len(lines)-1], &last); err != nil || len(lines) != 12 || last["_step"] != 12.0 || last["inquest/failed_segment"] != 1.0 || last["loss"] != nil || last["lr"] != 0.0003 {
		t.Errorf("%d lines, the last is %s", len(lines), lines[len(lines)-1])
	}
}

// TestLeft: runs of a folder that have no log are named.
func TestLeft(t *testing.T) {
	src := filepath.Dir(folder(t, "run-nan1.wandb"))
	if err := os.CopyFS(filepath.Join(src, "run-20210216_154407-old1"), os.DirFS(filepath.Join(src, "run-20261201_050000-x"))); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(src, "run-20210216_154407-old1", "run-x.wandb")); err != nil {
		t.Fatal(err)
	}
	res, out := repairtest.Copy(t, reader.New(logs), wandb.New(), src, nil)
	if len(res.Left) != 1 || !strings.Contains(res.Left[0], "run-20210216_154407-old1 is not in the copy") {
		t.Errorf("left %q", res.Left)
	}
	the(t, out)
}

// TestIdentical: of a run in which nothing is to be done the copy has another id, and nothing else
// is changed.
func TestIdentical(t *testing.T) {
	src := folder(t, "run-resumed1.wandb")
	res, out := repairtest.Copy(t, reader.New(logs), wandb.New(), src, nil)
	was, is := records(t, filepath.Join(src, "run-x.wandb")), records(t, the(t, out))
	if len(was) != len(is) {
		t.Fatalf("%d records, want %d", len(is), len(was))
	}
	for i := range was {
		want := was[i].raw
		if was[i].Kind == wandblog.Run {
			old, id := protowire.AppendBytes(nil, 1, "killed1"), protowire.AppendBytes(nil, 1, res.Runs[0].NewID)
			want = was[i].Replace(nil, want, bytes.Replace(was[i].Body, old, id, 1))
		}
		if !bytes.Equal(is[i].raw, want) {
			t.Errorf("record %d of %s differs", i+1, wandblog.NameOf(was[i].Kind))
		}
	}
}

// TestGolden is the shape of a repaired log that W&B's own reader accepts.
func TestGolden(t *testing.T) {
	const golden = "3a572642e1be00c2fe553f42000108018a013d0a0b61626364313233342d66781a0470726f6a4a0d726570616972656420636f70795210696e71756573743a72657061697265648a01060880e2cfaa06d18437c42300010802121f0a0c12046c6f7373820103302e350a0b12055f737465708201013012020800"
	data, err := hex.DecodeString(golden)
	if err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(t.TempDir(), "run-x.wandb")
	if err := os.WriteFile(name, data, 0o666); err != nil {
		t.Fatal(err)
	}
	list := records(t, name)
	m, _ := wandblog.DecodeRun(list[0].Body)
	row, _ := wandblog.NewRows().History(list[1].Body)
	if len(list) != 2 || m.ID != "abcd1234-fx" || m.Tags[0] != "inquest:repaired" || m.Notes != "repaired copy" || row.Values[0].V != 0.5 {
		t.Errorf("%+v, %+v", m, row)
	}
	// The golden log of a run is copied into that shape.
	_, out := repairtest.Copy(t, reader.New(logs), wandb.New(), testdata+"golden.wandb", nil)
	var kinds []string
	for _, r := range records(t, the(t, out)) {
		kinds = append(kinds, wandblog.NameOf(r.Kind))
	}
	if got := strings.Join(kinds, " "); got != "run config history history stats output_raw config alert exit" {
		t.Error(got)
	}
	if base := filepath.Base(filepath.Dir(the(t, out))); !strings.HasPrefix(base, "offline-run-20231114_221320-abcd1234-fx") {
		t.Error(base)
	}
}

// TestOdd: what other writers, and trackers of the machine, may have put into a log.
func TestOdd(t *testing.T) {
	item := func(key, value string) []byte { return wandblog.AppendItem(nil, 1, key, value) }
	row := func(step uint64, items ...[]byte) []byte {
		return append(bytes.Join(items, nil), protowire.AppendBytes(nil, 2, protowire.AppendVarint(nil, 1, step))...)
	}
	var b bytes.Buffer
	w := leveldblog.NewWriter(&b, wandblog.Header)
	stat := protowire.AppendBytes(nil, 2, protowire.AppendVarint(nil, 1, 1700000000))
	made := protowire.AppendBytes(protowire.AppendBytes(nil, 1, "odd1"), 5, "model")
	for _, r := range []struct {
		kind int
		body []byte
	}{
		{wandblog.Run, protowire.AppendBytes(nil, 1, "odd1")},
		{wandblog.Metric, protowire.AppendBytes(protowire.AppendBytes(nil, 2, "train/*"), 4, "global_step")},
		{wandblog.History, row(0, item("train/loss", "1"), item("global_step", "10"))},
		{wandblog.History, row(1, item("train/loss", `NaN`), item("global_step", "20"), item("o", `{"a": NaN, "b": {"c": Infinity, "d": 2}, "s": "NaN", "e": 1e999}`))},
		{wandblog.History, []byte{0x0a, 0x02, 0x0a, 0x7f}},
		{wandblog.History, row(2, item("train/loss", " 0.5 "), item("global_step", "30"), item("h", `{"_type": "histogram", "bins": [NaN], "n": NaN}`))},
		{wandblog.Stats, append(stat, wandblog.AppendItem(nil, 3, "gpu.0.temp", "NaN")...)},
		{wandblog.Artifact, made},
		{99, []byte("unknown")},
	} {
		w.Write(wandblog.Make(nil, 0, r.kind, r.body))
	}
	w.Write([]byte{0xff})
	w.Flush()
	src := run(t, filepath.Join(t.TempDir(), "x"), b.Bytes())
	res, out := repairtest.Copy(t, reader.New(logs), wandb.New(), src, func(o *engine.RepairOptions) { o.Ended = true })
	var got []string
	rows := wandblog.NewRows()
	for _, r := range records(t, the(t, out)) {
		line := wandblog.NameOf(r.Kind)
		switch r.Kind {
		case wandblog.Metric:
			pattern, step, _ := rows.Define(r.Body)
			line += " " + pattern + " " + step
		case wandblog.History:
			x, err := rows.History(r.Body)
			if err != nil {
				t.Fatal(err)
			}
			for _, v := range x.Values {
				b, _ := json.Marshal(v.V)
				line += " " + v.Name + "=" + string(b)
			}
		case wandblog.Artifact:
			line += " " + string(bytes.Replace(r.Body[2:], []byte(res.Runs[0].NewID), []byte("NEW"), 1))
		}
		got = append(got, line)
	}
	want := []string{
		"run", "metric train/* global_step", "metric inquest/failed_segment global_step",
		"history train/loss=1 global_step=10 inquest/failed_segment=0",
		"history global_step=20 o.b.d=2 inquest/failed_segment=1",
		"history train/loss=0.5 global_step=30 inquest/failed_segment=0",
		"stats", "artifact NEW*\x05model", "field 99",
		"config", "alert", "exit",
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	// Where the machine's series alone have such values, rows of their own hold the marks.
	b.Reset()
	w = leveldblog.NewWriter(&b, wandblog.Header)
	w.Write(wandblog.Make(nil, 1, wandblog.Run, protowire.AppendBytes(nil, 1, "odd2")))
	w.Write(wandblog.Make(nil, 2, wandblog.History, row(7, item("loss", "1"))))
	w.Write(wandblog.Make(nil, 3, wandblog.Stats, append(stat, wandblog.AppendItem(nil, 3, "gpu.0.temp", "NaN")...)))
	w.Flush()
	_, out = repairtest.Copy(t, reader.New(logs), wandb.New(), run(t, filepath.Join(t.TempDir(), "x"), b.Bytes()), nil)
	list := records(t, the(t, out))
	if x, err := wandblog.NewRows().History(list[3].Body); err != nil || x.Step != 8 || x.Wall != 1700000000 || x.Values[0].Name != "inquest/failed_segment" {
		t.Errorf("marks %+v, %v", x, err)
	}
	if text := strings.Join(res.Changes, " "); !strings.Contains(text, "2 records of") || !strings.Contains(text, "exit code 1") {
		t.Errorf("changes %q", res.Changes)
	}
}
