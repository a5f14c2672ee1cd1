package memtext

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// truth is what scripts/make-memory-text.py let PyTorch print.
func truth(t *testing.T) []map[string]int64 {
	t.Helper()
	text, err := os.ReadFile("testdata/truth.json")
	if err != nil {
		t.Fatal(err)
	}
	var byName map[string]map[string]int64
	if err := json.Unmarshal(text, &byName); err != nil {
		t.Fatal(err)
	}
	out := make([]map[string]int64, len(byName))
	for i := range out {
		out[i] = byName[fmt.Sprint(i)]
	}
	return out
}

// check compares figures with the counters that were printed. exact is for dumps,
// which print every digit.
func check(t *testing.T, got *Stats, want map[string]int64, requested, exact bool) {
	t.Helper()
	if got.Retries != want["num_alloc_retries"] || got.OOMs != want["num_ooms"] {
		t.Errorf("%d retries, %d failures; want %d, %d", got.Retries, got.OOMs, want["num_alloc_retries"], want["num_ooms"])
	}
	for key, figure := range figureOf {
		for stat, name := range map[string]string{"current": figure, "peak": Peak + figure} {
			n := want[key+"_bytes.all."+stat]
			r, ok := got.Bytes[name]
			if figure == Requested && !requested {
				if ok {
					t.Errorf("%s: %v, which this version does not print", name, r)
				}
				continue
			}
			if !ok || n < r.Lo || n > r.Hi || exact && r.Lo != r.Hi || r.Hi-r.Lo > max(n/700, 1) && !exact {
				t.Errorf("%s is %v (%v); it was %d", name, r, ok, n)
			}
		}
	}
}

// summaries calls f for each table that PyTorch printed.
func summaries(t *testing.T, f func(t *testing.T, n int, text string, want map[string]int64, requested bool)) {
	files, _ := filepath.Glob("testdata/summary-*.txt")
	if len(files) < 12 {
		t.Fatalf("%d tables", len(files))
	}
	all := truth(t)
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		n := int(file[len(file)-5] - '0')
		t.Run(filepath.Base(file), func(t *testing.T) { f(t, n, string(text), all[n], strings.Contains(file, "2.9.0")) })
	}
}

func feed(table *Table, lines []string) {
	for _, l := range lines {
		table.Line(l)
	}
}

func TestSummary(t *testing.T) {
	summaries(t, func(t *testing.T, n int, text string, want map[string]int64, requested bool) {
		table := NewTable()
		feed(table, strings.Split(text, "\n"))
		if table.Device != n || table.Mixed || !table.Ended {
			t.Errorf("device %d, mixed %v, ended %v", table.Device, table.Mixed, table.Ended)
		}
		check(t, &table.Stats, want, requested, false)
	})
}

// TestCutLines: terminals of any width cut lines in pieces, with and without the
// blanks at their ends.
func TestCutLines(t *testing.T) {
	summaries(t, func(t *testing.T, n int, text string, want map[string]int64, requested bool) {
		for width := 20; width < lineWidth; width++ {
			for _, trim := range []bool{false, true} {
				var lines []string
				for l := range strings.SplitSeq(text, "\n") {
					for ; len(l) > width; l = l[width:] {
						lines = append(lines, l[:width])
					}
					lines = append(lines, l)
				}
				table := NewTable()
				for _, l := range lines {
					if trim {
						l = strings.TrimRight(l, " ")
					}
					table.Line(l)
				}
				if table.Mixed || table.Device != n {
					t.Fatalf("width %d: mixed %v, device %d", width, table.Mixed, table.Device)
				}
				check(t, &table.Stats, want, requested, false)
				if t.Failed() {
					t.Fatalf("width %d, trimmed %v", width, trim)
				}
			}
		}
	})
}

// TestMixedTables: two tables line by line in each other give nothing.
func TestMixedTables(t *testing.T) {
	a, _ := os.ReadFile("testdata/summary-2.9.0-2.txt")
	b, _ := os.ReadFile("testdata/summary-2.9.0-4.txt")
	table := NewTable()
	mixed := false
	x, y := strings.Split(string(a), "\n"), strings.Split(string(b), "\n")
	for i := range x {
		for _, l := range []string{x[i], y[i]} {
			if table.Line(l) == Next {
				mixed = !table.Continues()
				table = NewTable()
				table.Line(l)
			}
		}
	}
	if !mixed || !table.Mixed {
		t.Errorf("told by the title: %v, by the rows: %v", mixed, table.Mixed)
	}
}

// TestCutTable: every prefix of a table gives figures that are true.
func TestCutTable(t *testing.T) {
	summaries(t, func(t *testing.T, n int, text string, want map[string]int64, _ bool) {
		for end := range len(text) {
			table := NewTable()
			feed(table, strings.Split(text[:end], "\n"))
			for name, r := range table.Bytes {
				stat, figure := "current", name
				if f, ok := strings.CutPrefix(name, Peak); ok {
					stat, figure = "peak", f
				}
				if figure == Inactive {
					figure = "inactive_split"
				}
				if v := want[figure+"_bytes.all."+stat]; v < r.Lo || v > r.Hi {
					t.Fatalf("cut at %d: %s is %v; it was %d", end, name, r, v)
				}
			}
		}
	})
}

func TestDumps(t *testing.T) {
	all := truth(t)
	files, _ := filepath.Glob("testdata/stats-*.txt")
	if len(files) != 5 {
		t.Fatalf("%d dumps", len(files))
	}
	for n, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		text := strings.TrimRight(string(data), "\n")
		whole := strings.Split(text, "\n")
		check(t, dump(t, whole, 0), all[n], true, true)
		if len(whole) > 1 {
			continue
		}
		// One line, as a terminal cuts it, and inside a JSON string.
		for width := 78; width < 260; width++ {
			var lines []string
			l := text
			for ; len(l) > width; l = l[width:] {
				lines = append(lines, strings.TrimRight(l[:width], " "))
			}
			check(t, dump(t, append(lines, l), width), all[n], true, true)
			if t.Failed() {
				t.Fatalf("%s at width %d", file, width)
			}
		}
		quoted, _ := json.Marshal(map[string]string{"stats": text})
		check(t, dump(t, []string{string(quoted)}, 0), all[n], true, true)
	}
}

// dump reads lines of one dump that a terminal of that width cut.
func dump(t *testing.T, lines []string, width int) *Stats {
	t.Helper()
	d, sc := NewDump(), Scanner{}
	for i, l := range lines {
		for _, e := range sc.Line(l, width > 0 && i < len(lines)-1) {
			if got := d.Add(e); got != Own {
				t.Fatalf("%v is not of the dump: %d", e, got)
			}
		}
	}
	return &d.Stats
}

// TestNextDump: the first entry again begins the next dump, another one again shows
// that two stand in each other.
func TestNextDump(t *testing.T) {
	d := NewDump()
	for i, want := range []Added{Own, Own, Strays, Begins} {
		if got := d.Add([]Entry{{Active, 1}, {Allocated, 2}, {Allocated, 3}, {Active, 4}}[i]); got != want {
			t.Errorf("entry %d: %d, want %d", i, got, want)
		}
	}
}

// A number at the end of a line that fills the terminal may go on.
func TestCutNumber(t *testing.T) {
	line := "{'allocated_bytes.all.current': 12"
	for _, c := range []struct {
		next string
		want int64
	}{{"34, 'x': 1}", 1234}, {", 'x': 1}", 12}, {"# cut off", -1}} {
		var sc Scanner
		got := append(sc.Line(line, true), sc.Line(c.next, false)...)
		if c.want < 0 && len(got) > 0 || c.want >= 0 && (len(got) != 1 || got[0].Value != c.want) {
			t.Errorf("%q: %v, want %d", c.next, got, c.want)
		}
	}
}

func FuzzLines(f *testing.F) {
	for _, name := range []string{"testdata/summary-2.9.0-3.txt", "testdata/stats-2.txt"} {
		b, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(b), true)
	}
	f.Fuzz(func(t *testing.T, text string, wide bool) {
		table, d := NewTable(), NewDump()
		var sc Scanner
		for l := range strings.SplitSeq(text, "\n") {
			table.Line(l)
			for _, e := range sc.Line(l, wide) {
				d.Add(e)
			}
			if len(table.held) > lineWidth || len(sc.tail) > 96 {
				t.Fatalf("%d and %d bytes are held", len(table.held), len(sc.tail))
			}
		}
		for name, r := range table.Bytes {
			if r.Lo < 0 || r.Hi < r.Lo {
				t.Errorf("%s is %v", name, r)
			}
		}
	})
}
