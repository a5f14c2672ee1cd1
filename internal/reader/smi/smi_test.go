package smi

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/inquest-dev/inquest/internal/evidence"
	"github.com/inquest-dev/inquest/internal/format/textline"
	"github.com/inquest-dev/inquest/internal/reader"
	"github.com/inquest-dev/inquest/internal/reader/readertest"
)

func TestReader(t *testing.T) {
	readertest.Run(t, New(), readertest.Folder{FS: os.DirFS("testdata"), Write: func(name string, data []byte) error {
		return os.WriteFile(filepath.Join("testdata", name), data, 0o644)
	}})
}

// TestSniff: what is claimed, and what is left to the readers of logs and series.
func TestSniff(t *testing.T) {
	smi, err := os.ReadFile("testdata/smi_550.txt")
	if err != nil {
		t.Fatal(err)
	}
	steps := strings.Repeat("step 1 loss 2\n", 200)
	for _, c := range []struct {
		name, head string
		want       reader.Confidence
	}{
		{"smi.txt", string(smi), reader.Sure},
		{"smi.log", string(smi), reader.Sure},
		{"smi.txt", string(smi) + "$ ps -o pid,cmd\n" + strings.Repeat("  41877 python\n", 30), reader.Sure},
		{"job.out", string(smi) + steps, reader.No},
		{"job.out", string(smi) + steps[:140], reader.No},
		{"job.log", "+ nvidia-smi\nEpoch 1\nloss 2\n", reader.No},
		{"job.log", "$ nvidia-smi -L\n" + steps, reader.No},
		{"job.log", "PyTorch version: 2.6.0\nepoch: 1\nloss: 2\nlr: 0.1\n", reader.No},
		{"job.log", "GPU: 0\n    lr: 0.1\nepoch: 1\nloss: 2\n", reader.No},
		{"job.log", "No devices were found in the list\n", reader.No},
		{"smi.txt", "No devices were found\n", reader.Sure},
		{"metrics.csv", "step,loss\n1,2\n", reader.No},
		{"system.csv", "timestamp,gpu,power,loss\n1,0,3,2\n", reader.No},
		{"a.csv", "name, index\nx, 1\n", reader.No},
		{"notes.txt", "# notes\n\n$ ls\nfile\n", reader.No},
		{"config.json", `{"gpu": 4, "power": "on"}`, reader.No},
		{"metrics.jsonl", `{"step": 1, "loss": 2}` + "\n", reader.No},
		{"pom.xml", `<?xml version="1.0"?>` + "\n<project>\n<a>1</a>\n</project>\n", reader.No},
		{"df.txt", "Filesystem      Size  Used Avail Use% Mounted on\nshm              64M   64M     0 100% /dev/shm\n", reader.No},
		{"empty", "", reader.No},
	} {
		if got := New().Sniff(evidence.Artifact{Path: c.name}, []byte(c.head[:min(len(c.head), 4096)])); got != c.want {
			t.Errorf("%s %.50q: got %d, want %d", c.name, c.head, got, c.want)
		}
	}
}

// TestLinesKnown: of the artifacts here no line is passed over without a class.
func TestLinesKnown(t *testing.T) {
	files, err := filepath.Glob("testdata/*.*")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, name := range files {
		switch filepath.Ext(name) {
		case ".events", ".md", ".json":
			continue
		}
		if strings.HasPrefix(filepath.Base(name), "hostile") {
			continue
		}
		n++
		for _, l := range classes(t, name).Unknown {
			t.Errorf("%s: line %q is unknown", name, l)
		}
	}
	if n == 0 {
		t.Fatal("no artifact")
	}
}

// TestLineEnds: a byte order mark and Windows line ends change nothing of what is
// found.
func TestLineEnds(t *testing.T) {
	files, _ := filepath.Glob("testdata/*.*")
	for _, name := range files {
		if ext := filepath.Ext(name); ext == ".events" || ext == ".md" {
			continue
		}
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		found := func(data string) (out []string) {
			c, err := readertest.Read(context.Background(), New(), nil, "x", []byte(data))
			if err != nil {
				t.Fatal(err)
			}
			for i := range c.Events {
				e := &c.Events[i]
				out = append(out, fmt.Sprint(e.Kind, e.Who, e.Span.Line, e.Text, e.Attrs))
			}
			for _, f := range c.Facts {
				out = append(out, fmt.Sprint(f.Name, f.Value, f.Span.Line))
			}
			return out
		}
		want := found(string(data))
		windows := "\xef\xbb\xbf" + strings.ReplaceAll(string(data), "\n", "\r\n")
		if got := found(windows); !slices.Equal(got, want) {
			t.Errorf("%s: got\n%s\nwant\n%s", name, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}
}

// A summary is what a file was read as: how many lines of which class, and the
// sums of the typed values. It holds no text of the file.
type summary struct {
	Lines   map[string]int     `json:"lines"`
	Events  map[string]int     `json:"events"`
	Facts   int                `json:"facts"`
	Values  map[string]float64 `json:"values"`
	Digest  string             `json:"digest"` // of the whole dump
	Unknown []string           `json:"-"`
}

// classes reads a file line by line and counts.
func classes(t *testing.T, name string) summary {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	c := reader.NewCollector()
	p := newParser(c, evidence.Artifact{Path: filepath.Base(name)})
	sum := summary{Lines: map[string]int{}, Events: map[string]int{}, Values: map[string]float64{}}
	total := 0
	err = textline.Each(context.Background(), strings.NewReader(string(data)), func(l textline.Line) {
		total++
		class := p.feed(l)
		sum.Lines[class]++
		if class == "unknown" {
			sum.Unknown = append(sum.Unknown, l.Text)
		}
	}, func(l textline.Line) { t.Errorf("%s: line %d is too long", name, l.Num) })
	if err != nil {
		t.Fatal(err)
	}
	p.close()
	if want := strings.Count(string(data), "\n"); total != want && total != want+1 {
		t.Errorf("%s: %d lines were looked at, the file has %d", name, total, want)
	}
	for i := range c.Events {
		e := &c.Events[i]
		sum.Events[string(e.Kind)]++
		for n, v := range e.Attrs {
			switch v.T {
			case evidence.Int:
				sum.Values[n] += float64(v.I)
			case evidence.Float:
				sum.Values[n] += v.F
			case evidence.Size:
				sum.Values[n] += float64(v.Lo)
			case evidence.Bool:
				sum.Values[n] += float64(v.I)
			case evidence.Text:
				sum.Values["texts of "+n]++
			}
		}
		if e.Who.BusID != "" {
			sum.Values["bus ids"]++
		}
		if e.Stamp.Known() {
			sum.Values["times"]++
		}
	}
	sum.Facts = len(c.Facts)
	sum.Digest = fmt.Sprintf("%x", sha256.Sum256(readertest.Dump(c)))[:16]
	return sum
}

var updatePublic = flag.Bool("update-public", false, "rewrite testdata/public/summary.json")

// TestPublicFiles: outputs of real machines are read to the last line. What is
// compared is counts and sums, so that nothing of the files is kept here.
func TestPublicFiles(t *testing.T) {
	files, _ := filepath.Glob(filepath.Join("..", "..", "..", "..", "shared", "data", "nvidia_smi", "*.txt"))
	if len(files) == 0 {
		t.Skip("no folder of public files beside the repository")
	}
	const golden = "testdata/public/summary.json"
	want := map[string]summary{}
	if data, err := os.ReadFile(golden); err == nil {
		if err := json.Unmarshal(data, &want); err != nil {
			t.Fatal(err)
		}
	}
	got := map[string]summary{}
	for _, f := range files {
		name := filepath.Base(f)
		s := classes(t, f)
		for _, l := range s.Unknown {
			t.Errorf("%s: line %q is unknown", name, l)
		}
		got[name] = s
		head, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		if c := New().Sniff(evidence.Artifact{Path: name}, head[:min(len(head), 4096)]); c != reader.Sure {
			t.Errorf("%s: confidence %d", name, c)
		}
	}
	if *updatePublic {
		data, err := json.MarshalIndent(got, "", "\t")
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(golden, append(data, '\n'), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	for name, s := range got {
		g, _ := json.Marshal(s)
		w, _ := json.Marshal(want[name])
		if string(g) != string(w) {
			t.Errorf("%s: read as\n%s\nwant\n%s", name, g, w)
		}
	}
}

func FuzzRead(f *testing.F) {
	files, _ := filepath.Glob("testdata/*")
	for _, name := range files {
		if data, err := os.ReadFile(name); err == nil && !strings.HasSuffix(name, ".events") {
			f.Add(string(data))
		}
	}
	f.Fuzz(func(t *testing.T, text string) {
		r := New()
		r.Sniff(evidence.Artifact{Path: "x.txt"}, []byte(text[:min(len(text), 4096)]))
		c, err := readertest.Read(context.Background(), r, nil, "x.txt", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range c.Events {
			if s := e.Span; text[s.Offset:s.Offset+s.Length] != s.Quote {
				t.Fatalf("span %+v does not give its quote", s)
			}
			for n, v := range e.Attrs {
				if v.T == evidence.Size && (v.Lo < 0 || v.Hi < v.Lo) {
					t.Fatalf("%s is %d..%d", n, v.Lo, v.Hi)
				}
				if spec := evidence.SpecOf(e.Kind).Attr(n); spec == nil || spec.Type != v.T {
					t.Fatalf("%s has an undeclared %s", e.Kind, n)
				}
			}
		}
	})
}
