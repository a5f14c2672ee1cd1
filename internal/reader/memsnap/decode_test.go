package memsnap

import (
	"context"
	"os"
	"path/filepath"
	"testing"
)

func TestQuick(t *testing.T) {
	files, _ := filepath.Glob("../../../../shared/data/memory_snapshots/*")
	for _, name := range files {
		f, err := os.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		s, err := Decode(context.Background(), f, Options{})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		var tr []int
		for i := range s.Traces {
			tr = append(tr, s.Traces[i].Len())
		}
		t.Logf("%s: %d segments %d blocks %v events %d stacks %d frames %d notes pools %v streams %v has %+v damage %v settings %+v", filepath.Base(name), len(s.Segments), len(s.Blocks), tr, len(s.Stacks), len(s.Frames), len(s.Notes), s.Pools, s.Streams, s.Has, s.Damage, s.Settings)
	}
}
