package reader

import (
	"math/rand/v2"
	"testing"
	"time"
)

func TestWrittenAt(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	for range 20_000 {
		at := time.UnixMicro(rnd.Int64N(1e17)).UTC()
		if rnd.IntN(2) == 0 {
			at = at.Truncate([]time.Duration{time.Second, time.Millisecond, 100 * time.Microsecond}[rnd.IntN(3)])
		}
		if got, want := writtenAt(at), at.Format("2006-01-02T15:04:05.999999Z"); got != want {
			t.Fatalf("%s, want %s", got, want)
		}
	}
}

func BenchmarkStampAt(b *testing.B) {
	for b.Loop() {
		StampAt(1700000000.123)
	}
}
