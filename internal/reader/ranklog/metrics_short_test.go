package ranklog

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/inquest-dev/inquest/internal/evidence"
)

// forget drops what m remembers of the lines before to read the next one quicker.
func forget(m *metrics) {
	m.form = dictForm{}
	m.ofDict = ofDicts
	m.fields, m.iterationAt, m.ofSkipped.track = nil, 0, nil
	m.lastHF, m.lastMegatron, m.lastCounter = nil, nil, nil
	m.desc = barDesc{}
	clear(m.recent[:])
}

// pointers are the times of points, which are another copy in each reading.
var pointers = regexp.MustCompile(`0x[0-9a-f]+`)

// states are the series of l in full, as text: NaN is NaN there.
func states(l *metricLog) map[evidence.SeriesKey]string {
	out := map[evidence.SeriesKey]string{}
	for k, s := range l.series {
		out[k] = pointers.ReplaceAllString(fmt.Sprintf("%+v", s.State()), "*")
	}
	return out
}

// alike compares the reading of a text with one that takes every line for the first
// of its kind.
func alike(t *testing.T, text string) {
	t.Helper()
	got, want := readMetrics(text), readMetricsSo(text, forget)
	if a, b := got.dump(), want.dump(); a != b {
		t.Fatalf("by the lines before:\n%s\nafresh:\n%s", a, b)
	}
	a, b := states(got), states(want)
	for k := range b {
		if a[k] != b[k] {
			t.Fatalf("%v by the lines before:\n%s\nafresh:\n%s", k, a[k], b[k])
		}
	}
	if len(a) != len(b) || fmt.Sprintf("%+v", got.facts) != fmt.Sprintf("%+v", want.facts) {
		t.Fatalf("%d series and facts %+v, afresh %d and %+v", len(a), got.facts, len(b), want.facts)
	}
}

// TestShortCuts: what is remembered of the lines before changes no value.
func TestShortCuts(t *testing.T) {
	logs, err := filepath.Glob("testdata/*.log")
	if err != nil || len(logs) == 0 {
		t.Fatal(logs, err)
	}
	for _, path := range logs {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		alike(t, string(data))
	}
	for seed := range uint64(60) {
		alike(t, mixedMetrics(rand.New(rand.NewPCG(seed, 6))))
	}
}

// mixedMetrics is a log of several writers and formats, some of whose lines are cut,
// changed, or begin again.
func mixedMetrics(r *rand.Rand) string {
	var b strings.Builder
	forms := 1 + r.IntN(len(metricForms))
	step, ranks := 0, r.IntN(4)
	for range 300 + r.IntN(600) {
		if step++; r.IntN(400) == 0 {
			step = 1
		}
		line := metricForms[r.IntN(forms)].line(r, step)
		switch r.IntN(30) {
		case 0:
			i := r.IntN(len(line))
			line = line[:i] + []string{"nan", "inf", "-", "0", ",", "e5", "'", " "}[r.IntN(8)] + line[i:]
		case 1:
			line = line[:r.IntN(len(line))]
		case 2:
			line = strings.ReplaceAll(line, fmt.Sprint(r.IntN(10)), "nan")
		case 3:
			line = strings.ReplaceAll(line, fmt.Sprint(r.IntN(10)), "0")
		case 4, 5:
			i := r.IntN(len(line))
			line = line[:i] + "x" + line[i+1:]
		case 6:
			line += "\r" + metricForms[r.IntN(forms)].line(r, step)
		}
		if ranks > 0 {
			line = fmt.Sprintf("[rank%d] ", r.IntN(ranks)) + line
		}
		b.WriteString(line + "\n")
	}
	return b.String()
}
