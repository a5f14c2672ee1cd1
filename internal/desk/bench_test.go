package desk_test

import (
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/inquest-dev/inquest/internal/desk"
)

// BenchmarkPut hands over a gibibyte: what it costs beside the stream itself.
func BenchmarkPut(b *testing.B) {
	const size = 1 << 30
	for _, part := range []int{4 << 10, 32 << 10, 1 << 20} {
		b.Run(fmt.Sprintf("by%dKiB", part>>10), func(b *testing.B) {
			d := open(b, options(b))
			b.SetBytes(size)
			b.ReportAllocs()
			for b.Loop() {
				c, err := d.Begin("")
				if err != nil {
					b.Fatal(err)
				}
				if _, err := d.Put(b.Context(), c.ID, "a.log", &still{size, part}); err != nil {
					b.Fatal(err)
				}
				if err := d.Remove(c.ID); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// still gives n bytes in parts and spends nothing on them.
type still struct{ n, part int }

func (s *still) Read(p []byte) (int, error) {
	n := min(len(p), s.part, s.n)
	if s.n -= n; n == 0 {
		return 0, io.EOF
	}
	return n, nil
}

// BenchmarkPutSmall hands over as many small files as a case may have.
func BenchmarkPutSmall(b *testing.B) {
	d := open(b, options(b))
	for b.Loop() {
		c, err := d.Begin("")
		if err != nil {
			b.Fatal(err)
		}
		for i := range desk.DefaultLimits.Files {
			if _, err := d.Put(b.Context(), c.ID, fmt.Sprintf("logs/node-%d/rank_%d.log", i%64, i), strings.NewReader(oom)); err != nil {
				b.Fatal(err)
			}
			if i%1000 == 0 { // as who watches does
				if _, err := d.Case(c.ID); err != nil {
					b.Fatal(err)
				}
			}
		}
		if err := d.Remove(c.ID); err != nil {
			b.Fatal(err)
		}
	}
}

// smallLog is a log of a few thousand lines.
var smallLog = sync.OnceValue(func() string {
	var s strings.Builder
	for i := range 4000 {
		fmt.Fprintf(&s, "2026-08-01 10:%02d:%02d,000 INFO trainer: step %d loss %.4f lr 1e-4 tokens/s 12345\n", i/60%60, i%60, i, 2.5-float64(i)/4000)
	}
	return s.String() + oom
})

// whole takes a small case the whole way and returns how long that took.
func whole(b *testing.B, d *desk.Desk) time.Duration {
	start := time.Now()
	c, err := d.Begin("")
	if err == nil {
		_, err = d.Put(b.Context(), c.ID, "train.log", strings.NewReader(smallLog()))
	}
	if err == nil {
		err = d.Diagnose(c.ID, desk.Handling{})
	}
	if err == nil {
		_, err = d.Result(b.Context(), c.ID)
	}
	took := time.Since(start)
	if err == nil {
		err = d.Remove(c.ID)
	}
	if err != nil {
		b.Error(err)
	}
	return took
}

// forCases has so many diagnose one small case after the other, n in all, and returns the cases a second.
func forCases(b *testing.B, d *desk.Desk, at, n int) float64 {
	work := make(chan struct{}, n)
	for range n {
		work <- struct{}{}
	}
	close(work)
	start := time.Now()
	var wg sync.WaitGroup
	for range at {
		wg.Go(func() {
			for range work {
				whole(b, d)
			}
		})
	}
	wg.Wait()
	return float64(n) / time.Since(start).Seconds()
}

// forBench is a desk as inquest serve has it.
func forBench(b *testing.B) *desk.Desk {
	o := options(b)
	o.Workers, o.Engine.Workers = runtime.GOMAXPROCS(0), runtime.GOMAXPROCS(0)
	return open(b, o)
}

// BenchmarkFifty sets the throughput of fifty who hand over small cases at once against that
// of two: the medians of alternating rounds, as fifty/two.
func BenchmarkFifty(b *testing.B) {
	d := forBench(b)
	forCases(b, d, 2, 20)
	var two, fifty []float64
	for b.Loop() {
		two, fifty = append(two, forCases(b, d, 2, 200)), append(fifty, forCases(b, d, 50, 200))
	}
	b.ReportMetric(median(fifty)/median(two), "fifty/two")
	b.ReportMetric(median(two), "two/s")
}

// BenchmarkHalfRate lets small cases come at half the rate that two at a time reach, and sets
// the 99th percentile of how long they take against the median of one alone: p99/one.
func BenchmarkHalfRate(b *testing.B) {
	d := forBench(b)
	forCases(b, d, 2, 20)
	var ratio []float64
	for b.Loop() {
		var alone []float64
		for range 50 {
			alone = append(alone, whole(b, d).Seconds())
		}
		rate := forCases(b, d, 2, 200) / 2
		took := make([]float64, 500)
		every := time.NewTicker(time.Duration(float64(time.Second) / rate))
		var wg sync.WaitGroup
		for i := range took {
			<-every.C
			wg.Go(func() { took[i] = whole(b, d).Seconds() })
		}
		every.Stop()
		wg.Wait()
		slices.Sort(took)
		ratio = append(ratio, took[len(took)*99/100]/median(alone))
	}
	b.ReportMetric(median(ratio), "p99/one")
}

func median(x []float64) float64 {
	x = slices.Clone(x)
	slices.Sort(x)
	return x[len(x)/2]
}
