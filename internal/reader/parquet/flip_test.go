package parquet_test

import (
	"context"
	"math/rand/v2"
	"os"
	"testing"
	"time"

	"github.com/inquest-dev/inquest/internal/reader/parquet"
	"github.com/inquest-dev/inquest/internal/reader/readertest"
)

// TestFlipped reads files in which some bytes were changed: whatever comes of it, it is no
// panic and takes no time.
func TestFlipped(t *testing.T) {
	for _, name := range []string{"testdata/wandb-history.parquet", "testdata/trackio-export.parquet"} {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		r := rand.New(rand.NewPCG(1, 2))
		for range 400 {
			b := append([]byte(nil), data...)
			for range 1 + r.IntN(4) {
				b[r.IntN(len(b))] = byte(r.Uint32())
			}
			began := time.Now()
			if _, err := readertest.Read(context.Background(), parquet.New(), nil, "x.parquet", b); err != nil {
				t.Fatal(err)
			}
			if d := time.Since(began); d > 5*time.Second {
				t.Fatalf("%v", d)
			}
		}
	}
}
