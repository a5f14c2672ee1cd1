package elastic_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/inquest-dev/inquest/internal/catalog"
	"github.com/inquest-dev/inquest/internal/evidence"
	"github.com/inquest-dev/inquest/internal/reader"
	"github.com/inquest-dev/inquest/internal/reader/elastic"
	"github.com/inquest-dev/inquest/internal/reader/ranklog"
	"github.com/inquest-dev/inquest/internal/reader/readertest"
)

var newReader = sync.OnceValues(func() (reader.Reader, error) {
	c, err := catalog.Load(os.DirFS("../../../encyclopedia"))
	if err != nil {
		return nil, err
	}
	return elastic.New(ranklog.New(c.Plan())), nil
})

func theReader(t testing.TB) reader.Reader {
	t.Helper()
	r, err := newReader()
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestReader(t *testing.T) {
	readertest.Run(t, theReader(t), readertest.Folder{FS: os.DirFS("testdata"), Write: func(name string, data []byte) error {
		return os.WriteFile(filepath.Join("testdata", name), data, 0o644)
	}})
}

func TestSniff(t *testing.T) {
	r := theReader(t)
	for _, c := range []struct {
		name, head string
		want       reader.Confidence
	}{
		{"attempt_0/3/error.json", `{"message": "killed"}`, reader.Sure},
		{"attempt_0/3/error.json", "\xef\xbb\xbf{\r\n  \"message\" : {\"message\"", reader.Sure},
		{"reply.json", `{"message": {"message": "E: x", "extraInfo": {"py_callstack": "`, reader.Sure},
		{"x.json", `{"message": "a log line", "@timestamp": "2026-01-02T03:04:05Z"}`, reader.No},
		{"x.log", `{"message": {"text": "hello"}}`, reader.No},
		{"error.json", `{"error": {"message": "x"}}`, reader.No},
		{"error.json", `[]`, reader.No},
		{"error.json", ``, reader.No},
	} {
		if got := r.Sniff(evidence.Artifact{Path: c.name}, []byte(c.head)); got != c.want {
			t.Errorf("%s %q: got %d, want %d", c.name, c.head, got, c.want)
		}
	}
}

// TestLong: what stands behind the bound is said not to have been read.
func TestLong(t *testing.T) {
	text := `{"message": {"message": "ValueError: x", "extraInfo": {"py_callstack": "` + strings.Repeat("a", 5<<20) + `"}}}`
	c, err := readertest.Read(context.Background(), theReader(t), nil, "error.json", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	if len(c.Events) != 1 || c.Events[0].Kind != evidence.Exception || len(c.Damages) != 1 || !strings.Contains(c.Damages[0].Err.Error(), "over limit") {
		t.Errorf("events %+v, damages %+v", c.Events, c.Damages)
	}
}

func FuzzRead(f *testing.F) {
	files, _ := filepath.Glob("testdata/*.json")
	for _, name := range files {
		if data, err := os.ReadFile(name); err == nil {
			f.Add(string(data))
		}
	}
	f.Add(`{"message": "\\\"x\": y"}`)
	f.Add("{\"message\":\"\xff\xfe: \\u0000\"}")
	r := theReader(f)
	f.Fuzz(func(t *testing.T, text string) {
		r.Sniff(evidence.Artifact{Path: "error.json"}, []byte(text))
		c, err := readertest.Read(context.Background(), r, nil, "error.json", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range c.Events {
			if s := e.Span; text[s.Offset:s.Offset+s.Length] != s.Quote {
				t.Fatalf("span %+v does not give its quote", s)
			}
		}
	})
}
