package stacks_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/inquest-dev/inquest/internal/evidence"
	"github.com/inquest-dev/inquest/internal/reader"
	"github.com/inquest-dev/inquest/internal/reader/readertest"
	"github.com/inquest-dev/inquest/internal/reader/stacks"
)

func TestReader(t *testing.T) {
	readertest.Run(t, stacks.New(), readertest.Folder{FS: os.DirFS("testdata"), Write: func(name string, data []byte) error {
		return os.WriteFile(filepath.Join("testdata", name), data, 0o644)
	}})
}

// TestStack: frames are the innermost ones, outermost first.
func TestStack(t *testing.T) {
	data, err := os.ReadFile("testdata/deep.txt")
	if err != nil {
		t.Fatal(err)
	}
	c, err := readertest.Read(context.Background(), stacks.New(), nil, "deep.txt", data)
	if err != nil || len(c.Events) != 1 {
		t.Fatalf("%d events, %v", len(c.Events), err)
	}
	s := c.Events[0].Stack
	if n := len(s); n != 48 || s[n-1].Function != "f0" || s[0].Function != "f47" || s[0].Line != 47 || s[0].File != "deep.py" {
		t.Errorf("%d frames, from %+v to %+v", n, s[0], s[n-1])
	}
	if e := c.Events[0]; e.Who.PID != 7 || !e.Attrs["main"].True() {
		t.Errorf("%+v", e)
	}
}

func TestSniff(t *testing.T) {
	const dump = "Process 7: python x.py\nPython v3.12.3 (/usr/bin/python3.12)\n\nThread 7 (idle): \"MainThread\"\n    f (x.py:3)\n"
	for _, c := range []struct {
		head string
		want reader.Confidence
	}{
		{dump, reader.Sure},
		{"$ py-spy dump --pid 7\n" + dump, reader.Sure},
		{dump + strings.Repeat("step 1 loss 2\n", 20), reader.No},
		{"Fatal Python error: Aborted\n\nCurrent thread 0x00007f (most recent call first):\n  File \"x.py\", line 3 in f\n", reader.No},
		{"Traceback (most recent call last):\n  File \"x.py\", line 3, in f\nValueError\n", reader.No},
		{"Thread 1 (of 5) started\n", reader.No},
		{"", reader.No},
	} {
		if got := stacks.New().Sniff(evidence.Artifact{Path: "x.txt"}, []byte(c.head)); got != c.want {
			t.Errorf("%.60q: got %d, want %d", c.head, got, c.want)
		}
	}
}

func FuzzRead(f *testing.F) {
	files, _ := filepath.Glob("testdata/*.txt")
	for _, name := range files {
		if data, err := os.ReadFile(name); err == nil {
			f.Add(string(data))
		}
	}
	f.Fuzz(func(t *testing.T, text string) {
		r := stacks.New()
		r.Sniff(evidence.Artifact{Path: "x.txt"}, []byte(text[:min(len(text), 4096)]))
		c, err := readertest.Read(context.Background(), r, nil, "x.txt", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range c.Events {
			if s := e.Span; text[s.Offset:s.Offset+s.Length] != s.Quote {
				t.Fatalf("span %+v does not give its quote", s)
			}
			if len(e.Stack) > 48 {
				t.Fatalf("%d frames", len(e.Stack))
			}
		}
	})
}
