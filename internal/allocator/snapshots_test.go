package allocator

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/inquest-dev/inquest/internal/reader/memsnap"
)

// TestPublicSnapshots prints what the replay makes of snapshots from the wild, kept
// beside the project. Few of them hold a whole history.
func TestPublicSnapshots(t *testing.T) {
	files, _ := filepath.Glob("../../../shared/data/memory_snapshots/*")
	if len(files) == 0 {
		t.Skip("no snapshots beside the project")
	}
	for _, file := range files {
		f, err := os.Open(file)
		if err != nil {
			t.Fatal(err)
		}
		s, err := memsnap.Decode(context.Background(), f, memsnap.Options{})
		f.Close()
		if err != nil {
			t.Fatal(err)
		}
		for d := range s.Devices() {
			r, err := Examine(context.Background(), s, d, Options{Capacity: 80 << 30, Auto: true})
			if err != nil {
				t.Fatal(err)
			}
			g := r.Fidelity
			t.Logf("%s device %d: %v, %s; %d events, %d of %d allocs at their address, %d of %d segment events, %d extra, reserved off by %d at most, final %d of %d placed, same sizes %v, %d contradict, %d forced",
				filepath.Base(file), d, g.OK, g.Why, g.Events, g.SameAddress, g.Allocs, g.Matched, g.Segments, g.Extra, g.CurveWorst, g.FinalPlaced, g.Final, g.FinalSame, g.Contradict, g.Forced)
			for _, l := range r.Lacks {
				t.Log("   lacks: ", l)
			}
			for _, a := range r.Answers {
				t.Logf("   %v: %v, peak %d, %s", a.Change, a.Verdict, a.Peak.Reserved, a.Why)
			}
			if !g.OK && len(r.Answers) > 0 {
				t.Errorf("%s: answers without fidelity", file)
			}
		}
	}
}
