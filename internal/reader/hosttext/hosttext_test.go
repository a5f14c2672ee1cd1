package hosttext_test

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/inquest-dev/inquest/internal/evidence"
	"github.com/inquest-dev/inquest/internal/reader"
	"github.com/inquest-dev/inquest/internal/reader/hosttext"
	"github.com/inquest-dev/inquest/internal/reader/readertest"
)

func TestReader(t *testing.T) {
	readertest.Run(t, hosttext.New(evidence.Plan{}), readertest.Folder{FS: os.DirFS("testdata"), Write: func(name string, data []byte) error {
		return os.WriteFile(filepath.Join("testdata", name), data, 0o644)
	}})
}

func TestSniff(t *testing.T) {
	smi, err := os.ReadFile("testdata/smi_550.txt")
	if err != nil {
		t.Fatal(err)
	}
	r := hosttext.New(evidence.Plan{})
	for _, c := range []struct {
		name, head string
		want       reader.Confidence
	}{
		{"smi.txt", string(smi), reader.Sure},
		{"job.out", string(smi) + strings.Repeat("step 1 loss 2\n", 200), reader.No},
		{"job.out", string(smi) + strings.Repeat("step 1 loss 2\n", 10), reader.No},
		{"smi.log", string(smi), reader.Sure},
		{"x.sh", "#!/bin/bash\n#SBATCH --mem=4G\nsrun x\n", reader.Sure},
		{"x.sh", "#!/bin/bash\npython x.py\n", reader.No},
		{"job.log", "+ nvidia-smi\nEpoch 1\nloss 2\n", reader.No},
		{"metrics.csv", "step,loss\n1,2\n", reader.No},
		{"a.csv", "name, index\nx, 1\n", reader.No},
		{"notes.txt", "# notes\n\n$ ls\nfile\n", reader.No},
		{"ps.txt", "USER PID %CPU %MEM VSZ RSS TTY STAT START TIME COMMAND\nada 7 0.0 0.1 10 20 ? S 10:00 0:00 sleep 5\n", reader.Sure},
		{"empty", "", reader.No},
	} {
		if got := r.Sniff(evidence.Artifact{Path: c.name}, []byte(c.head)); got != c.want {
			t.Errorf("%s %.40q: got %d, want %d", c.name, c.head, got, c.want)
		}
	}
}

// Public outputs of real machines: each is claimed, read without damage and
// gives as many devices as its name says.
func TestPublicFiles(t *testing.T) {
	files, _ := filepath.Glob(filepath.Join("..", "..", "..", "..", "shared", "data", "nvidia_smi", "*.txt"))
	if len(files) == 0 {
		t.Skip("no folder of public files beside the repository")
	}
	r := hosttext.New(evidence.Plan{})
	for _, f := range files {
		data, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		a := evidence.Artifact{Path: filepath.Base(f)}
		if got := r.Sniff(a, data[:min(len(data), 4096)]); got != reader.Sure {
			t.Errorf("%s: confidence %d", f, got)
		}
		c := reader.NewCollector()
		if err := r.Read(context.Background(), reader.Input{Artifact: a, Open: func() (io.ReadCloser, error) { return os.Open(f) }, Size: int64(len(data))}, c); err != nil {
			t.Errorf("%s: %v", f, err)
		}
		want := 8
		for part, n := range map[string]int{"A40x10": 10, "MI300X": 4, "RTX3090": 2} {
			if strings.Contains(f, part) {
				want = n
			}
		}
		if strings.Contains(f, "MI300X_x4_1") { // states no memory
			want = 0
		}
		got := 0
		for _, e := range c.Events {
			if e.Kind == evidence.GPUUsage {
				got++
			}
		}
		if got != want {
			t.Errorf("%s: %d devices, want %d", f, got, want)
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
	r := hosttext.New(evidence.Plan{})
	f.Fuzz(func(t *testing.T, text string) {
		r.Sniff(evidence.Artifact{Path: "x.txt"}, []byte(text))
		c, err := readertest.Read(context.Background(), r, nil, "x.txt", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range c.Events {
			if s := e.Span; text[s.Offset:s.Offset+s.Length] != s.Quote {
				t.Fatalf("span %+v does not give its quote", s)
			}
			for _, v := range e.Attrs {
				if v.T == evidence.Size && (v.Lo < 0 || v.Hi < v.Lo) {
					t.Fatalf("size %d..%d", v.Lo, v.Hi)
				}
			}
		}
	})
}
