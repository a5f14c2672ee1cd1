package ranklog

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/inquest-dev/inquest/internal/evidence"
	"github.com/inquest-dev/inquest/internal/scan"
)

// benchLine reads one line over and over, as the reader would, and reports how
// many times longer the regular expression takes that finds the same values.
func benchLine(b *testing.B, text string, re *regexp.Regexp, groups int) {
	l := &metricLog{series: map[evidence.SeriesKey]*evidence.Series{}}
	m := newMetrics(l, "job.log")
	raw := []byte(text)
	hits := metricHits(raw, metricAtoms(), nil)
	line := &scan.Line{Number: 1, Length: int64(len(raw)), Text: raw}
	id := func() (evidence.Who, evidence.Stamp) { return evidence.Nobody(), evidence.Stamp{} }
	b.SetBytes(int64(len(raw)))
	b.ReportAllocs()
	for b.Loop() {
		line.Number++
		m.line(raw, line, hits, id, 0)
	}
	own := float64(b.Elapsed()) / float64(b.N)
	const rounds = 5000
	sum := 0.0
	start := time.Now()
	for range rounds {
		g := re.FindSubmatch(raw)
		for i := 1; i <= groups; i++ {
			v, _ := strconv.ParseFloat(string(g[i]), 64)
			sum += v
		}
	}
	b.ReportMetric(float64(time.Since(start))/rounds/own, "x-regexp")
}

func BenchmarkHF(b *testing.B) {
	benchLine(b, "{'loss': 1.6228, 'grad_norm': 0.305521011352539, 'learning_rate': 4.94e-06, 'epoch': 0.16}",
		regexp.MustCompile(`\{'loss': ([^,]+), 'grad_norm': ([^,]+), 'learning_rate': ([^,]+), 'epoch': ([^}]+)\}`), 4)
}

func BenchmarkMegatron(b *testing.B) {
	benchLine(b, " [2031-01-02 03:04:05.678901] iteration      120/  500000 | consumed samples:        30720 | elapsed time per iteration (ms): 812.3 | throughput per GPU (TFLOP/s/GPU): 431.2 | learning rate: 1.499000E-04 | global batch size:   256 | lm loss: 2.345678E+00 | loss scale: 1.0 | grad norm: 1.234 | number of skipped iterations:   0 | number of nan iterations:   0 |",
		regexp.MustCompile(`iteration +(\d+)/ *(\d+) .*learning rate: (\S+) .*lm loss: (\S+) .*loss scale: (\S+) .*grad norm: (\S+) .*skipped iterations: +(\d+)`), 7)
}

func BenchmarkTqdm(b *testing.B) {
	benchLine(b, "Epoch 3:  45%|████▌     | 450/1000 [01:23<01:41,  5.42it/s, v_num=12, train_loss=0.512]",
		regexp.MustCompile(`(?:([^|\r]{0,80}?): +)?(\d{1,3})%\|[^|]*\| *([\d.]+)/([\d.?]+) \[([^<\]]*)<([^,\]]*), *([^,\]]*)(?:, ([^\]]*))?`), 4)
}

func BenchmarkTitan(b *testing.B) {
	benchLine(b, "[titan] 2031-06-21 07:00:20,100 - root - INFO - step: 20  loss:  3.13018  grad_norm:  0.3130  memory: 21.50GiB(27.15%)  tps: 419,782  tflops: 390.53  mfu: 39.61%",
		regexp.MustCompile(`step: +(\d+) +loss: +(\S+) +grad_norm: +(\S+) +memory: +([\d.]+)GiB\(([\d.]+)%\)`), 5)
}

// metricForms make lines of the common formats, with values as their trainers
// print them.
var metricForms = []struct {
	name string
	line func(r *rand.Rand, step int) string
}{
	{"hf", func(r *rand.Rand, step int) string {
		return fmt.Sprintf("{'loss': %.4f, 'grad_norm': %v, 'learning_rate': %v, 'epoch': %.2f}", 2+r.Float64(), r.Float64()*3, r.Float64()*1e-5, float64(step)/5000)
	}},
	{"hf5", func(r *rand.Rand, step int) string {
		return fmt.Sprintf("{'loss': '%.4f', 'grad_norm': '%.4f', 'learning_rate': '%.4g', 'epoch': '%.4f'}", 2+r.Float64(), r.Float64()*3, r.Float64()*1e-5, float64(step)/5000)
	}},
	{"megatron", func(r *rand.Rand, step int) string {
		return fmt.Sprintf(" [2031-01-02 03:04:%02d.%06d] iteration %8d/  500000 | consumed samples: %12d | elapsed time per iteration (ms): %.1f | throughput per GPU (TFLOP/s/GPU): %.1f | learning rate: %.6E | global batch size:  1024 | lm loss: %.6E | loss scale: 1.0 | grad norm: %.3f | num zeros: 0 | number of skipped iterations:   0 | number of nan iterations:   0 |",
			step/100%60, r.IntN(1e6), step, 1024*step, 5000+999*r.Float64(), 380+30*r.Float64(), r.Float64()*1e-4, 1+2*r.Float64(), r.Float64())
	}},
	{"deepspeed", func(r *rand.Rand, step int) string {
		return fmt.Sprintf("[2031-01-02 03:04:%02d,%03d] [INFO] [timer.py:260:stop] epoch=0/micro_step=%d/global_step=%d, RunningAvgSamplesPerSec=%.6f, CurrSamplesPerSec=%.6f, MemAllocated=%.2fGB, MaxMemAllocated=%.2fGB",
			step/100%60, r.IntN(1000), 4*step, step, 90+r.Float64(), 90+r.Float64(), 30+9*r.Float64(), 60+r.Float64())
	}},
	{"tqdm", func(r *rand.Rand, step int) string {
		return fmt.Sprintf("Epoch 3:  %2d%%|████▌     | %d/9000 [01:23<01:41,  %.2fit/s, v_num=12, train_loss=%.3f]", step*100/9000%100, step%9000, 5+r.Float64(), r.Float64())
	}},
	{"titan", func(r *rand.Rand, step int) string {
		return fmt.Sprintf("[titan] 2031-06-21 07:00:%02d,%03d - root - INFO - step: %d  loss:  %.5f  grad_norm:  %.4f  memory: %.2fGiB(%.2f%%)  tps: 419,782  tflops: %.2f  mfu: %.2f%%",
			step/100%60, r.IntN(1000), step, 2+r.Float64(), r.Float64(), 20+2*r.Float64(), 27+r.Float64(), 390+r.Float64(), 39+r.Float64())
	}},
	{"lightning", func(r *rand.Rand, step int) string {
		return fmt.Sprintf("step %d: train_loss=%.4f, lr=%.6f, grad_norm=%.4f", step, 2+r.Float64(), r.Float64()*1e-3, r.Float64())
	}},
}

// A formLines is 4096 different lines of one format with their hits: less than the
// second-level cache holds, since the reader has a line there too.
type formLines struct {
	lines []scan.Line
	hits  [][]scan.Hit
	size  int64
}

var linesOf = map[string]*formLines{}

// BenchmarkMetricLine reads thousands of different lines of one format in turn, as
// the reader would once they are found. An op is one line.
func BenchmarkMetricLine(b *testing.B) {
	for _, form := range metricForms {
		of := linesOf[form.name]
		if of == nil {
			of = &formLines{lines: make([]scan.Line, 1<<12), hits: make([][]scan.Hit, 1<<12)}
			linesOf[form.name] = of
			r := rand.New(rand.NewPCG(1, 9))
			for i := range of.lines {
				raw := []byte(form.line(r, i+1))
				of.lines[i] = scan.Line{Length: int64(len(raw)), Ended: true, Text: raw}
				of.hits[i] = metricHits(raw, metricAtoms(), nil)
				of.size += of.lines[i].Length
			}
		}
		b.Run(form.name, func(b *testing.B) {
			m := newMetrics(&metricLog{series: map[evidence.SeriesKey]*evidence.Series{}}, "job.log")
			id := func() (evidence.Who, evidence.Stamp) { return evidence.Nobody(), evidence.Stamp{} }
			b.SetBytes(of.size / int64(len(of.lines)))
			b.ReportAllocs()
			offset := int64(0)
			for n := 0; b.Loop(); n++ {
				k := n % len(of.lines)
				l := &of.lines[k]
				l.Number, l.Offset = int64(n+1), offset
				offset += l.Length + 1
				m.line(l.Text, l, of.hits[k], id, n/len(of.lines))
			}
		})
	}
}

// BenchmarkNumber parses numbers of one form, different ones in turn.
func BenchmarkNumber(b *testing.B) {
	for _, form := range []string{"%.4f", "%v", "%.16f", "%.6E", "%d"} {
		b.Run(form, func(b *testing.B) {
			r := rand.New(rand.NewPCG(1, 9))
			texts := make([][]byte, 4096)
			for i := range texts {
				v := any(3 * r.Float64())
				if form == "%d" {
					v = r.IntN(100_000)
				}
				texts[i] = fmt.Appendf(nil, form+", 'learning_rate'", v)
			}
			for n := 0; b.Loop(); n++ {
				parseValue(texts[n%len(texts)], 0)
			}
		})
	}
}

func FuzzMetricLine(f *testing.F) {
	for _, s := range []string{
		"{'loss': '0.6647', 'grad_norm': 'nan', 'learning_rate': '3.333e-05', 'epoch': '0.08421'}",
		" iteration 10/ 1000 | consumed samples: 40 | elapsed time per iteration (ms): 2 | lm loss: NAN | number of skipped iterations:  10 |",
		"Steps:   2%|2         | 86/4000 [08:44<6:39:13,  6.12s/it, lr=1e-5, step_loss=nan]\rSteps: 3%|",
		"\x1b[31mstep: 20  \x1b[32mloss:      nan  \x1b[mgrad_norm:  0.3130 memory: 21.50GiB(27.15%)",
		"      Epoch    GPU_mem   box_loss   cls_loss\n      2/100      4.0G      1.25        nan: 100%|##########| 100/100 [00:30<00:00, 3.25it/s]",
		"[ep 1][it 30][loss nan thr nan] tensor(nan, device='cuda:0') loss: tensor(inf)", "1_train_20, nan, [nan, nan]", "a b c d e f g h i loss=-inf.",
		"'loss': {'x': [1, (2,", "loss: 1/ 2 / 3", "memory (MB) | allocated: 1 [Rank 3] loss: 1 [Rank 4] loss: 2",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > 1<<14 {
			return
		}
		l := readMetrics(text)
		for _, e := range l.events {
			if e.Span.Length < 0 || text[e.Span.Offset:e.Span.Offset+e.Span.Length] != e.Span.Quote {
				t.Fatalf("span %+v does not give its quote", e.Span)
			}
			spec := evidence.SpecOf(e.Kind)
			if spec == nil {
				t.Fatalf("kind %q is not declared", e.Kind)
			}
			for n, v := range e.Attrs {
				if a := spec.Attr(n); a == nil || a.Type != v.T {
					t.Fatalf("attribute %s of %s is not declared so", n, e.Kind)
				}
			}
		}
		if a, b := l.dump(), readMetrics(text).dump(); a != b {
			t.Fatalf("two readings differ:\n%s\n%s", a, b)
		}
		alike(t, text)
		alike(t, text+"\n"+text)
		if strings.Count(text, "\n") == 0 && len(l.events) > 64 {
			t.Fatalf("%d events from one line", len(l.events))
		}
	})
}
