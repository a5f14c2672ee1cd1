package store

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/inquest-dev/inquest/internal/incident"
)

var began = time.Date(2026, 11, 30, 10, 0, 0, 0, time.UTC)

// failedTrial is a trial that failed with a fingerprint, the n-th of its scenario.
func failedTrial(n int, fingerprint string) (incident.Trial, []incident.Record) {
	begun := began.Add(time.Duration(n) * time.Minute).Format(time.RFC3339Nano)
	t := incident.Trial{Schema: incident.TrialSchema, ID: fmt.Sprintf("t20261130-1000-%06d", n), By: incident.ByRun, Command: []string{"python", "train.py", "--batch-size", "64"},
		Dir: "/w", Scenario: "demo train.py", Begun: begun}
	return t, []incident.Record{
		{At: begun, Kind: incident.RecordEnvironment, Environment: &incident.Environment{Host: "node1", System: "linux", Packages: map[string]string{"torch": "2.9.0"}}},
		{At: begun, Kind: incident.RecordSamples, Samples: []incident.Sample{{Seconds: 1, Processes: 1, Resident: 1 << 20}}},
		{At: begun, Kind: incident.RecordEnded, Ended: &incident.Ended{At: begun, Exit: incident.Exit{Status: 1}, LogBytes: 10}},
		{At: begun, Kind: incident.RecordVerdict, Verdict: &incident.TrialVerdict{Result: incident.OutOfMemory, Class: "host_memory", Kind: "host_out_of_memory", Standing: incident.Established, Fingerprint: fingerprint, Text: "Memory ran out."}},
	}
}

func put(t testing.TB, s *Store, tr incident.Trial, records []incident.Record) {
	t.Helper()
	w, err := s.Begin(tr)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range records {
		if err := w.Put(r); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestRoundTrip stores a trial and an act and reads them.
func TestRoundTrip(t *testing.T) {
	s := Open(filepath.Join(t.TempDir(), "new", "store"))
	if l, err := s.List(t.Context()); err != nil || len(l.Incidents) > 0 || len(l.Problems) > 0 {
		t.Fatalf("a store that does not exist: %+v, %v", l, err)
	}
	tr, records := failedTrial(1, "f1")
	put(t, s, tr, records)
	r, err := s.Trial(tr.ID)
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Trial.Samples) != 1 || r.Trial.Verdict.Fingerprint != "f1" || r.Trial.Exit.Status != 1 || r.Trial.Environment.Host != "node1" || len(r.Trial.Problems) > 0 {
		t.Errorf("read %+v", r.Trial)
	}
	k, err := s.Find(t.Context(), tr.ID)
	if err != nil {
		t.Fatal(err)
	}
	a, err := s.Act(incident.Act{Incident: k.ID, Kind: incident.ActNote, Text: "password=hunter2hunter2"})
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(a.Text, "hunter2") {
		t.Errorf("a secret was stored: %q", a.Text)
	}
	if _, err := s.Act(a); !errors.Is(err, os.ErrExist) {
		t.Errorf("the same act twice: %v", err)
	}
	for _, name := range []string{k.ID, k.ID[:6], k.ID[2:7], tr.ID, Latest} {
		k, err := s.Find(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		if len(k.Acts) != 1 || k.Acts[0].Text != a.Text || len(k.Trials) != 1 || k.Status != incident.Open {
			t.Errorf("%s: %+v", name, k)
		}
	}
	if _, err := s.Find(t.Context(), k.ID[:len(k.ID)-1]+"!"); !errors.Is(err, ErrNotFound) || !strings.Contains(err.Error(), k.ID) {
		t.Errorf("a name that is near: %v", err)
	}
	filepath.WalkDir(s.Dir(), func(name string, d os.DirEntry, err error) error {
		info, _ := d.Info()
		if want := os.FileMode(0o600); !d.IsDir() && info.Mode().Perm() != want || d.IsDir() && info.Mode().Perm() != 0o700 {
			t.Errorf("%s has mode %v", name, info.Mode())
		}
		return nil
	})
}

// TestIndexEqual compares what the index says with what is read without it, after each change
// of the store, and its rows with those of one made anew.
func TestIndexEqual(t *testing.T) {
	s := Open(t.TempDir())
	check := func(step string) {
		t.Helper()
		old, err := s.List(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		oldRows := dump(t, s)
		again, err := s.List(t.Context()) // from the index alone
		if err != nil || !reflect.DeepEqual(old, again) {
			t.Errorf("%s: from the index\n%+v\nwant\n%+v, %v", step, again, old, err)
		}
		have, err := s.Contents(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Rebuild(t.Context()); err != nil {
			t.Fatal(err)
		}
		if rows := dump(t, s); rows != oldRows {
			t.Errorf("%s: rows\n%s\nafter a rebuild\n%s", step, oldRows, rows)
		}
		anew, err := s.Contents(t.Context())
		if err != nil || !reflect.DeepEqual(have, anew) {
			t.Errorf("%s: contents differ after a rebuild: %v", step, err)
		}
		if again, _ := s.List(t.Context()); !reflect.DeepEqual(old, again) {
			t.Errorf("%s: the list differs after a rebuild", step)
		}
	}
	for n := range 20 {
		tr, records := failedTrial(n, fmt.Sprint("f", n%3))
		put(t, s, tr, records[:n%5])
		check(fmt.Sprint("trial ", n))
	}
	l, err := s.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range l.Incidents {
		if _, err := s.Act(incident.Act{Incident: k.ID, Kind: incident.ActClose, Text: "done"}); err != nil {
			t.Fatal(err)
		}
		check("closed " + k.ID)
	}
	if err := os.RemoveAll(filepath.Join(s.Dir(), "trials", "2026-11", "t20261130-1000-000004")); err != nil {
		t.Fatal(err)
	}
	check("a trial was removed")
}

// dump is all rows of the index as text.
func dump(t *testing.T, s *Store) string {
	t.Helper()
	ix, err := s.openIndex(context.Background())
	if err != nil {
		t.Fatalf("no index: %v", err)
	}
	defer ix.close()
	var b strings.Builder
	for _, table := range []string{"meta", "files", "trials", "incidents"} {
		stmt, _, err := ix.conn.PrepareTransient("SELECT * FROM " + table)
		if err != nil {
			t.Fatal(err)
		}
		for {
			row, err := stmt.Step()
			if err != nil {
				t.Fatal(err)
			}
			if !row {
				break
			}
			for i := range stmt.ColumnCount() {
				fmt.Fprintf(&b, "%x\t", stmt.ColumnText(i))
			}
			b.WriteByte('\n')
		}
		stmt.Finalize()
	}
	return b.String()
}

// TestManyTrials makes 1024 trials at once, as the processes of one launch do.
func TestManyTrials(t *testing.T) {
	s := Open(t.TempDir())
	var wg sync.WaitGroup
	for n := range 1024 {
		wg.Go(func() {
			tr, records := failedTrial(n%7, "f")
			tr.ID = fmt.Sprintf("t20261130-100000-%05d", n)
			tr.Launch = &incident.Launch{ID: "slurm-1", Launcher: "slurm", Rank: &n}
			put(t, s, tr, records)
		})
	}
	wg.Wait()
	all, problems, err := s.Incidents(t.Context())
	if err != nil || len(problems) > 0 || len(all) != 1 || len(all[0].Trials) != 1024 {
		t.Fatalf("%d incidents, problems %q, %v", len(all), problems, err)
	}
}
