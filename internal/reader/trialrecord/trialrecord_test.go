package trialrecord_test

import (
	"context"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/inquest-dev/inquest/internal/evidence"
	"github.com/inquest-dev/inquest/internal/incident"
	"github.com/inquest-dev/inquest/internal/reader"
	"github.com/inquest-dev/inquest/internal/reader/ranklog"
	"github.com/inquest-dev/inquest/internal/reader/readertest"
	"github.com/inquest-dev/inquest/internal/reader/trialrecord"
	"github.com/inquest-dev/inquest/internal/store"
)

func newReader() reader.Reader { return trialrecord.New(ranklog.New(evidence.Plan{})) }

func TestReader(t *testing.T) {
	readertest.Run(t, newReader(), readertest.Folder{FS: os.DirFS("testdata"), Write: func(name string, data []byte) error {
		return os.WriteFile(filepath.Join("testdata", name), data, 0o644)
	}})
}

func TestSniff(t *testing.T) {
	begun := `{"seq":0,"at":"2026-12-01T10:00:00Z","kind":"begun","begun":{"schema":"inquest.trial/v1","id":"t1"}}` + "\t00000000\n"
	for _, c := range []struct {
		path, head string
		want       reader.Confidence
	}{
		{"t1/record.jsonl", begun, reader.Sure},
		{"kept/that-run.txt", begun, reader.Sure},
		{"record.jsonl", `{"seq":0,"at":"2026-12-01T10:00:00Z","kind":"act","act":{}}`, reader.No},
		{"record.jsonl", `{"loss": 2.1, "step": 1}` + "\n", reader.No},
		{"record.jsonl", "", reader.No},
		{"job.log", "saw " + begun, reader.No},
	} {
		if got := newReader().Sniff(evidence.Artifact{Path: c.path}, []byte(c.head)); got != c.want {
			t.Errorf("%s %.40q: %v, want %v", c.path, c.head, got, c.want)
		}
	}
}

// read reads a record with the reader.
func read(t *testing.T, dir, name string) *reader.Collector {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	c, err := readertest.Read(context.Background(), newReader(), os.DirFS(dir), name, data)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestStore reads what the store writes, so that the two cannot part.
func TestStore(t *testing.T) {
	rank, n := 2, int64(2)
	trial := incident.Trial{Schema: incident.TrialSchema, ID: "t20261201-100000-0011223344", By: incident.ByRun, Command: []string{"python", "train.py", "--batch-size", "12"},
		Begun: "2026-12-01T10:00:00.5Z", PID: 771, Launch: &incident.Launch{ID: "x", Launcher: "slurm", Rank: &rank}}
	w, err := store.Open(t.TempDir()).Begin(trial)
	if err != nil {
		t.Fatal(err)
	}
	limit := int64(4 << 30)
	for _, r := range []incident.Record{
		{Kind: incident.RecordEnvironment, Environment: &incident.Environment{Host: "node-3", Memory: 1 << 36, Limits: map[string]int64{"address_space": limit}}},
		{Kind: incident.RecordSamples, Samples: []incident.Sample{{Seconds: 1, Resident: 1 << 28}, {Seconds: 2, Resident: 1 << 29}}},
		{Kind: incident.RecordEnded, Ended: &incident.Ended{At: "2026-12-01T10:00:04Z", Exit: incident.Exit{Status: 137, Signal: "SIGKILL", OOMKills: &n},
			Measures: []incident.Measure{{Name: incident.Resident, Peak: 1 << 29}, {Name: incident.AddressSpace, Peak: 1 << 31, Limit: &limit}}}},
		{Kind: incident.RecordDiagnosis, Diagnosis: &incident.Incident{}},
	} {
		if err := w.Put(r); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	c := read(t, w.Dir(), "record.jsonl")
	if len(c.Damages) > 0 {
		t.Errorf("damage: %v", c.Damages)
	}
	kinds := map[evidence.Kind]evidence.Event{}
	for _, e := range c.Events {
		kinds[e.Kind] = e
	}
	if e := kinds[evidence.Exited]; e.Attrs["signal"].I != 9 || e.Who.Rank != 2 || e.Who.Host != "node-3" {
		t.Errorf("exit %+v", e)
	}
	if e := kinds[evidence.HostOOMSched]; e.Attrs["count"].I != 2 {
		t.Errorf("kill %+v", e)
	}
	facts := map[string]evidence.Value{}
	for _, f := range c.Facts {
		facts[f.Name] = f.Value
	}
	if facts["run.batch"].I != 12 || facts["host.address_limit"].Lo != limit || facts["host.address_space"].Lo != 1<<31 || facts["host.memory"].Lo != 1<<36 {
		t.Errorf("facts %v", facts)
	}
}

// FuzzRead reads whatever there may be; that it ends and panics nowhere is what is asked.
func FuzzRead(f *testing.F) {
	names, err := fs.Glob(os.DirFS("testdata"), "*.jsonl")
	if err != nil {
		f.Fatal(err)
	}
	for _, name := range names {
		data, err := os.ReadFile(filepath.Join("testdata", name))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	r := newReader()
	f.Fuzz(func(t *testing.T, data []byte) {
		c := reader.NewCollector()
		err := r.Read(context.Background(), reader.Input{Artifact: evidence.Artifact{Path: "record.jsonl"}, Size: int64(len(data)),
			Open: func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(string(data))), nil }}, c)
		if err != nil {
			t.Error(err)
		}
		for _, e := range c.Events {
			if evidence.SpecOf(e.Kind) == nil {
				t.Errorf("kind %q is not declared", e.Kind)
			}
		}
	})
}
