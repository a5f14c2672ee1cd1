package hosttext_test

import (
	"context"
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
	const df = "Filesystem      Size  Used Avail Use% Mounted on\nshm              64M   64M     0 100% /dev/shm\n/dev/sda1       100G   50G   50G  50% /\n"
	r := hosttext.New(evidence.Plan{})
	for _, c := range []struct {
		name, head string
		want       reader.Confidence
	}{
		{"df.txt", df, reader.Sure},
		{"job.out", df + strings.Repeat("step 1 loss 2\n", 400), reader.No},
		{"job.out", df + strings.Repeat("step 1 loss 2\n", 10), reader.No},
		{"df.log", df, reader.Sure},
		{"smi.txt", "| NVIDIA-SMI 550.54.15  Driver Version: 550.54.15  CUDA Version: 12.4 |\n", reader.No},
		{"mixed.txt", df + "$ nvidia-smi -L\n" + strings.Repeat("GPU 0: NVIDIA L4 (UUID: GPU-1)\n", 9), reader.Sure},
		{"x.sh", "#!/bin/bash\n#SBATCH --mem=4G\nsrun x\n", reader.No},
		{"x.sh", "#!/bin/bash\npython x.py\n", reader.No},
		{"job.log", "+ nvidia-smi\nEpoch 1\nloss 2\n", reader.No},
		{"metrics.csv", "step,loss\n1,2\n", reader.No},
		{"a.csv", "name, index\nx, 1\n", reader.No},
		{"notes.txt", "# notes\n\n$ ls\nfile\n", reader.No},
		{"ps.txt", "USER PID %CPU %MEM VSZ RSS TTY STAT START TIME COMMAND\nada 7 0.0 0.1 10 20 ? S 10:00 0:00 sleep 5\n", reader.Sure},
		{"hosts.txt", "c1: Filesystem 1K-blocks Used Available Use% Mounted on\nc1: /dev/sda1 100 50 50 50% /\n", reader.Sure},
		{"log.txt", "c1: step 1 loss 2\nc2: step 1 loss 2\n", reader.No},
		{"empty", "", reader.No},
	} {
		if got := r.Sniff(evidence.Artifact{Path: c.name}, []byte(c.head)); got != c.want {
			t.Errorf("%s %.40q: got %d, want %d", c.name, c.head, got, c.want)
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
