package ranklog_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/inquest-dev/inquest/internal/evidence"
)

// printed returns what PyTorch printed for one set of counters: the lines of a file of
// format/memtext (scripts/make-memory-text.py).
func printed(t *testing.T, name string) []string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("..", "..", "format", "memtext", "testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimRight(string(b), "\n"), "\n")
}

// woven puts the lines of several writers in turn, each behind its prefix.
func woven(prefix string, lists ...[]string) string {
	var b strings.Builder
	for i := range lists[0] {
		for n, l := range lists {
			if i < len(l) {
				if prefix != "" {
					fmt.Fprintf(&b, prefix, n)
				}
				fmt.Fprintln(&b, l[i])
			}
		}
	}
	return b.String()
}

// cut breaks lines as a terminal of that width does.
func cut(text string, width int) string {
	var b strings.Builder
	for l := range strings.SplitSeq(text, "\n") {
		for ; len(l) > width; l = l[width:] {
			fmt.Fprintln(&b, l[:width])
		}
		fmt.Fprintln(&b, l)
	}
	return b.String()
}

// TestMemoryFigures: what processes print of their allocator, however it stands in
// the log, gives the counters that were printed, each to its writer.
func TestMemoryFigures(t *testing.T) {
	two, four := printed(t, "summary-2.9.0-2.txt"), printed(t, "summary-2.9.0-4.txt")
	old := printed(t, "summary-1.13.1-4.txt")
	join := func(l ...[]string) string {
		var out []string
		for _, x := range l {
			out = append(out, x...)
		}
		return strings.Join(out, "\n") + "\n"
	}
	inJSON, _ := json.Marshal(map[string]string{"msg": join(two)})
	const (
		s2 = "rank=-1 gpu=2 summary"
		s4 = "rank=-1 gpu=4 summary"
	)
	for _, c := range []struct{ name, text, want string }{
		{"one", join(two), s2},
		{"in KB", join(old), s4},
		{"of two devices back to back", join(two, four), s2 + "; " + s4},
		{"behind the ranks", woven("[rank%d]: ", two, four), "rank=0 gpu=2 summary; rank=1 gpu=4 summary"},
		{"behind srun's labels", woven("%d: ", two, four), "rank=0 gpu=2 summary; rank=1 gpu=4 summary"},
		{"with other lines between", woven("", two, []string{"step 1", "saving", "", "loss: 3"}), s2},
		{"in one another", woven("", two, four), ""},
		{"cut by a terminal", cut(join(two, four), 60), s2 + "; " + s4},
		{"behind a rank, cut by a terminal", cut(woven("[rank%d]: ", two), 80), "rank=0 gpu=2 summary"},
		{"behind a logger on the first line", "2026-05-05 09:00:01,400 - mem - INFO - " + join(two), s2},
		{"on one line, escaped", string(inJSON) + "\n", s2},
		{"the first cut off", join(two[:9], four), s2 + "; " + s4},
		{"with no end", join(two[:9]), s2},
		{"a dictionary", join(printed(t, "stats-0.txt")), "rank=-1 gpu=-1 stats"},
		{"a dictionary cut by a terminal", cut(join(printed(t, "stats-1.txt")), 120), "rank=-1 gpu=-1 stats"},
		{"pprint", join(printed(t, "stats-2.txt")), "rank=-1 gpu=-1 stats"},
		{"JSON", join(printed(t, "stats-3.txt")), "rank=-1 gpu=-1 stats"},
		{"plain lines", join(printed(t, "stats-4.txt")), "rank=-1 gpu=-1 stats"},
		{"two dumps", join(printed(t, "stats-4.txt"), printed(t, "stats-4.txt")), "rank=-1 gpu=-1 stats; rank=-1 gpu=-1 stats"},
		{"dumps behind the ranks", woven("[rank%d]: ", printed(t, "stats-4.txt"), printed(t, "stats-4.txt")), "rank=0 gpu=-1 stats; rank=1 gpu=-1 stats"},
		{"the code that prints it", "    print(torch.cuda.memory_stats()['num_ooms'])\n# cudaMalloc retries: see memory_summary\n", ""},
		{"one counter a step", "step 1 num_alloc_retries: 0\nstep 2 num_alloc_retries: 4\n", "rank=-1 gpu=-1 stats; rank=-1 gpu=-1 stats"},
	} {
		var got []string
		col := read(t, "srun: job 7 queued\n0: start\n1: start\n"+c.text)
		if c.name != "behind srun's labels" {
			col = read(t, c.text)
		}
		for _, e := range col.Events {
			if e.Kind != evidence.MemSummary {
				continue
			}
			gpu := int64(evidence.None)
			if v, ok := e.Attrs["gpu"]; ok {
				gpu = v.I
			}
			got = append(got, fmt.Sprintf("rank=%d gpu=%d %s", e.Who.Rank, gpu, e.Attrs.Str("what")))
			if !strings.Contains(c.name, "cut off") && !strings.Contains(c.name, "no end") && !strings.Contains(c.name, "counter") {
				for _, name := range []string{"retries", "ooms", "allocated", "peak_reserved", "inactive"} {
					if !e.Attrs[name].Valid() {
						t.Errorf("%s: no %s", c.name, name)
					}
				}
			}
		}
		if s := strings.Join(got, "; "); s != c.want {
			t.Errorf("%s: %s, want %s", c.name, s, c.want)
		}
	}
}

// The figures of tables that stand in one another are missed, not invented.
func TestMixedFigures(t *testing.T) {
	c := read(t, woven("", printed(t, "stats-2.txt"), printed(t, "stats-2.txt")))
	for _, e := range c.Events {
		if e.Kind == evidence.MemSummary && len(e.Attrs) > 2 {
			t.Errorf("%v of dumps that stand in one another", e.Attrs)
		}
	}
	if len(c.Damages) == 0 {
		t.Error("nothing says that figures were passed over")
	}
}
