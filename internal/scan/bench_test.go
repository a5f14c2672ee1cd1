package scan

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
)

// benchLiterals returns the atoms of the benchmarks: the lines of the file that
// INQUEST_BENCH_LITERALS names, or about 400 made of words that failures use.
func benchLiterals(b *testing.B) []Atom {
	if name := os.Getenv("INQUEST_BENCH_LITERALS"); name != "" {
		text, err := os.ReadFile(name)
		if err != nil {
			b.Fatal(err)
		}
		return literals(strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")...)
	}
	what := []string{"CUDA error: ", "NCCL failure: ", "RuntimeError: ", "Xid event ", "srun: failed ", "torch.cuda.", "slurmstepd: ", "Kernel panic "}
	how := []string{"illegal address", "out of memory", "timed out", "unreachable peer", "bad_alloc", "not initialized", "aborted", "worker lost", "size mismatch", "corrupted"}
	where := []string{"", " in backward", " on rank", " at step", ", giving up"}
	var out []string
	for _, a := range what {
		for _, b := range how {
			for _, c := range where {
				out = append(out, a+b+c)
			}
		}
	}
	return literals(out...)
}

// benchMatcher compiles atoms for the kernels that INQUEST_BENCH_KERNEL names (go,
// avx2 or avx512; the best by default), by the plan in the file that
// INQUEST_BENCH_PLAN names or else by that of the program.
func benchMatcher(b *testing.B, atoms []Atom) *Matcher {
	use, plan := best, trained()
	if name := os.Getenv("INQUEST_BENCH_KERNEL"); name != "" {
		i := slices.Index([]string{"go", "avx2", "avx512"}, name)
		if i < 0 || level(i) > best {
			b.Skipf("no kernel %q on this processor", name)
		}
		use = level(i)
	}
	if name := os.Getenv("INQUEST_BENCH_PLAN"); name != "" {
		text, err := os.ReadFile(name)
		if err != nil {
			b.Fatal(err)
		}
		plan = ParsePlan(string(text))
	}
	return build(atoms, plan, use)
}

func literals(texts ...string) []Atom {
	out := make([]Atom, len(texts))
	for i, s := range texts {
		out[i].Text = s
	}
	return out
}

// metricAnchors stand on the lines that trainers repeat for every step.
var metricAnchors = literals("'loss': ", "lm loss: ", "grad norm: ", "iteration ", "it/s, ", "global_step=")

// benchLog returns n bytes of a log of metric lines, collective chatter, and
// progress bars.
func benchLog(n int) []byte {
	r := rand.New(rand.NewPCG(1, 2))
	var b bytes.Buffer
	for step := 0; b.Len() < n; step++ {
		switch r.IntN(5) {
		case 0:
			fmt.Fprintf(&b, "{'loss': %.4f, 'grad_norm': %.16f, 'learning_rate': %.12g, 'epoch': %.2f}\n", 2+r.Float64(), r.Float64(), r.Float64()*1e-5, float64(step)/5000)
		case 1:
			fmt.Fprintf(&b, " iteration %8d/  500000 | consumed samples: %12d | elapsed time per iteration (ms): %.1f | lm loss: %.6E | grad norm: %.3f |\n", step, step*1024, 5000*r.Float64(), r.Float64(), r.Float64())
		case 2, 3:
			fmt.Fprintf(&b, "node-%02d:%d:%d [%d] NCCL INFO Channel %02d/0 : %d[%d] -> %d[%d] via P2P/IPC\n", r.IntN(64), 4000+r.IntN(8), 5000+r.IntN(8), r.IntN(8), r.IntN(16), r.IntN(8), r.IntN(8), r.IntN(8), r.IntN(8))
		case 4:
			for i := range 1 + r.IntN(8) {
				fmt.Fprintf(&b, "\rEpoch 1:  %2d%%|%s| %d/9000 [%02d:%02d<1:02:03, %5.2fit/s, loss=%.3g]", i, strings.Repeat("\u2588", i), step, r.IntN(60), r.IntN(60), 3+r.Float64(), 2+r.Float64())
			}
			b.WriteByte('\n')
		}
	}
	return b.Bytes()[:n]
}

// benchWords returns n bytes of text with many words: the Go sources of this
// package, repeated, with the words of each copy in another order.
func benchWords(b *testing.B, n int) []byte {
	r := rand.New(rand.NewPCG(3, 4))
	var words [][]byte
	names, _ := os.ReadDir(".")
	for _, name := range names {
		if text, err := os.ReadFile(name.Name()); err == nil {
			words = append(words, bytes.SplitAfter(text, []byte(" "))...)
		}
	}
	if len(words) == 0 {
		b.Fatal("no sources to take words from")
	}
	out := make([]byte, 0, n+1024)
	for len(out) < n {
		out = append(out, words[r.IntN(len(words))]...)
	}
	return out[:n]
}

func BenchmarkNew(b *testing.B) {
	atoms := benchLiterals(b)
	for b.Loop() {
		New(atoms)
	}
	b.ReportMetric(float64(len(atoms)), "atoms")
}

func BenchmarkScan(b *testing.B) {
	short := literals("Xid", "nan,", "Killed")
	for _, text := range []struct {
		name string
		data []byte
	}{{"log", benchLog(16 << 20)}, {"words", benchWords(b, 16<<20)}} {
		for _, set := range []struct {
			name  string
			atoms []Atom
		}{
			{"signatures", benchLiterals(b)},
			{"metrics", append(benchLiterals(b), metricAnchors...)},
			{"program", ProgramAtoms()},
			{"short", append(benchLiterals(b), short...)},
			{"fold", append(benchLiterals(b), Atom{Text: "segmentation fault", Fold: true})},
		} {
			b.Run(text.name+"/"+set.name, func(b *testing.B) {
				m := benchMatcher(b, set.atoms)
				var hits []Hit
				n := 0
				b.SetBytes(int64(len(text.data)))
				for b.Loop() {
					n = 0
					for at := 0; at < len(text.data); at += readSize {
						hits = m.Scan(text.data[at:min(at+readSize, len(text.data))], hits[:0])
						n += len(hits)
					}
				}
				b.ReportMetric(float64(n), "hits")
			})
		}
	}
}

// BenchmarkLines reads a generated log or the file that INQUEST_BENCH_FILE
// names: without atoms (counting lines only), for signatures, for signatures and
// metric anchors, which stand on most lines, and for all that inquest looks for.
func BenchmarkLines(b *testing.B) {
	var open func() io.ReadCloser
	if name := os.Getenv("INQUEST_BENCH_FILE"); name != "" {
		open = func() io.ReadCloser {
			f, err := os.Open(name)
			if err != nil {
				b.Fatal(err)
			}
			return f
		}
	} else {
		data := benchLog(64 << 20)
		open = func() io.ReadCloser { return io.NopCloser(bytes.NewReader(data)) }
	}
	for _, set := range []struct {
		name  string
		atoms func() []Atom
	}{
		{"count", func() []Atom { return nil }},
		{"signatures", func() []Atom { return benchLiterals(b) }},
		{"metrics", func() []Atom { return append(benchLiterals(b), metricAnchors...) }},
		{"program", ProgramAtoms},
	} {
		b.Run(set.name, func(b *testing.B) {
			m := benchMatcher(b, set.atoms())
			var stats Stats
			hits := 0
			for b.Loop() {
				r := open()
				var err error
				stats, err = m.Lines(context.Background(), r, func(l *Line) bool {
					hits += len(l.Hits)
					return false
				})
				if err != nil {
					b.Fatal(err)
				}
				r.Close()
				b.SetBytes(stats.Bytes)
			}
			b.ReportMetric(float64(stats.Lines), "lines")
			b.ReportMetric(float64(stats.Visited), "visited")
			b.ReportMetric(float64(hits/b.N), "hits")
		})
	}
}
