package allocmodel

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"testing"
)

var update = flag.Bool("update", false, "rewrite examples/fragmentation and testdata/snapshots")

const root = "../../.."

func TestScenarios(t *testing.T) {
	for _, s := range Scenarios() {
		r := s.Case.Run
		if !r.Ended {
			t.Errorf("%s: memory does not run out: %d of %d MiB", s.Name, r.Peak>>20, (r.Device.Capacity-r.Device.Other)>>20)
			continue
		}
		set := Default()
		set.Expandable = true
		other := s.Case.Under(set, s.Case.Device)
		idle := float64(r.At.Reserved-r.At.Allocated) / float64(r.At.Reserved)
		if avoided := len(other.Failed) == 0; avoided != s.Holds {
			t.Errorf("%s: with expandable segments avoided: %v", s.Name, avoided)
		}
		if whole := Simulate(s.Case.Program.Ops, set, s.Case.Device, s.Case.Options); whole.Ended == s.Saved {
			t.Errorf("%s: with expandable segments the program comes to its end: %v", s.Name, !whole.Ended)
		}
		if (s.Name == "fragmentation" || s.Name == "does-not-fit") && (idle < .169 || idle > .22) {
			t.Errorf("%s: %.1f %% of what is reserved lies idle", s.Name, idle*100)
		}
		var b bytes.Buffer
		if err := WritePickle(&b, s.Snapshot(), CPython); err != nil {
			t.Fatal(err)
		}
		t.Logf("%s: %d events, %d bytes, asked %d MiB, free %d, allocated %d, idle %d (%.1f %%), expandable peak %d of %d", s.Name, len(r.Events), b.Len(), r.At.Asked>>20, r.At.Free>>20, r.At.Allocated>>20,
			(r.At.Reserved-r.At.Allocated)>>20, idle*100, other.Peak>>20, (r.Device.Capacity-r.Device.Other)>>20)
		dir := filepath.Join(root, "testdata/snapshots", s.Name)
		if s.Name == "fragmentation" {
			dir = filepath.Join(root, "examples", s.Name)
			if b.Len() > 150<<10 {
				t.Errorf("%s: %d bytes are too many for an example", s.Name, b.Len())
			}
		}
		keep(t, filepath.Join(dir, "snapshot.pickle"), b.Bytes())
		keep(t, filepath.Join(dir, "train.log"), []byte(s.Log))
	}
}

// keep compares a file with what it must hold, or rewrites it.
func keep(t *testing.T, name string, want []byte) {
	t.Helper()
	if *update {
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, want, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	got, err := os.ReadFile(name)
	if err != nil {
		t.Error(err)
	} else if !bytes.Equal(got, want) {
		t.Errorf("%s is not what the generator writes now: run this test with -update", name)
	}
}
