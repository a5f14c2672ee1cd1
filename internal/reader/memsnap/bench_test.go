package memsnap

import (
	"context"
	"os"
	"testing"
)

// TestDecodeFile decodes the file that SNAPSHOT names and nothing else: scripts/bench
// measures its process.
func TestDecodeFile(t *testing.T) {
	name := os.Getenv("SNAPSHOT")
	if name == "" {
		t.Skip("SNAPSHOT names no file")
	}
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	s, err := Decode(context.Background(), f, Options{})
	if err != nil || len(s.Damage) > 0 {
		t.Fatal(err, s.Damage)
	}
	n := 0
	for i := range s.Traces {
		n += s.Traces[i].Len()
	}
	t.Logf("%d segments, %d blocks, %d entries, %d stacks, %d frames", len(s.Segments), len(s.Blocks), n, len(s.Stacks), len(s.Frames))
}
