// Package readertest is the contract of readers as a test: Run reads every
// artifact of a folder and checks what each reader must guarantee.
package readertest

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/inquest-dev/inquest/internal/evidence"
	"github.com/inquest-dev/inquest/internal/reader"
)

var update = flag.Bool("update", false, "rewrite the golden .events files")

// maxPrefixes is how many truncations of one artifact are tried.
const maxPrefixes = 60

// A Folder is where artifacts and golden files are: os.DirFS of it for reading,
// and how to write a file there with -update.
type Folder struct {
	FS    fs.FS
	Write func(name string, data []byte) error
}

// Run reads each file of dir with r, except golden files and notes (.events,
// .md), and checks that
//
//   - what it found is what the golden file beside it says (-update rewrites it),
//   - two runs agree,
//   - only declared kinds and attributes appear, with values of the declared type,
//   - every text span, read again, gives its quote,
//   - a shorter file gives a prefix of the events, and no panic,
//   - a cancelled context stops it.
func Run(t *testing.T, r reader.Reader, dir Folder) {
	t.Helper()
	entries, err := fs.ReadDir(dir.FS, ".")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, e := range entries {
		name := e.Name()
		if e.IsDir() || strings.HasSuffix(name, ".events") || strings.HasSuffix(name, ".md") {
			continue
		}
		n++
		t.Run(name, func(t *testing.T) { check(t, r, dir, name) })
	}
	if n == 0 {
		t.Fatal("no artifact in the folder")
	}
}

func check(t *testing.T, r reader.Reader, dir Folder, name string) {
	data, err := fs.ReadFile(dir.FS, name)
	if err != nil {
		t.Fatal(err)
	}
	if r.Sniff(evidence.Artifact{Path: name}, data[:min(len(data), 4096)]) == reader.No {
		t.Errorf("Sniff does not recognise the artifact")
	}
	c, err := Read(context.Background(), r, dir.FS, name, data)
	if err != nil {
		t.Fatalf("Read: %v", err)
	}
	got := Dump(c)
	golden := strings.TrimSuffix(name, path.Ext(name)) + ".events"
	if *update {
		if err := dir.Write(golden, got); err != nil {
			t.Fatal(err)
		}
	} else {
		want, err := fs.ReadFile(dir.FS, golden)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, want) {
			t.Errorf("differs from %s (rewrite with -update):\n%s", golden, firstDifference(string(got), string(want)))
		}
	}
	again, err := Read(context.Background(), r, dir.FS, name, data)
	if err != nil {
		t.Fatalf("second Read: %v", err)
	}
	if second := Dump(again); !bytes.Equal(got, second) {
		t.Errorf("two runs disagree:\n%s", firstDifference(string(second), string(got)))
	}
	for i := range c.Events {
		declared(t, &c.Events[i])
		quoted(t, c.Events[i].Span, data)
	}
	for _, f := range c.Facts {
		spec := evidence.FactOf(f.Name)
		if spec == nil && !strings.HasPrefix(f.Name, "setting.") {
			t.Errorf("fact %s is not declared", f.Name)
		}
		if spec != nil && spec.Type != f.Value.T {
			t.Errorf("fact %s is a %v, declared %v", f.Name, f.Value.T, spec.Type)
		}
		quoted(t, f.Span, data)
	}
	truncated(t, r, dir.FS, name, data, c)
	cancelled(t, r, name)
}

// Read reads data as the artifact name with r.
func Read(ctx context.Context, r reader.Reader, dir fs.FS, name string, data []byte) (*reader.Collector, error) {
	c := reader.NewCollector()
	err := r.Read(ctx, reader.Input{
		Artifact: evidence.Artifact{Path: name, Kind: r.Name(), Size: int64(len(data)), Owner: evidence.Owner{Rank: evidence.None, LocalRank: evidence.None}},
		Open:     func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(data)), nil },
		At:       bytes.NewReader(data),
		Size:     int64(len(data)),
		Dir:      dir,
	}, c)
	return c, err
}

// Dump is reader.Dump into memory.
func Dump(c *reader.Collector) []byte {
	var b bytes.Buffer
	reader.Dump(&b, c) // a bytes.Buffer does not fail
	return b.Bytes()
}

// declared checks an event against its kind.
func declared(t *testing.T, e *evidence.Event) {
	t.Helper()
	spec := evidence.SpecOf(e.Kind)
	if spec == nil {
		t.Errorf("event kind %s is not declared", e.Kind)
		return
	}
	for name, v := range e.Attrs {
		a := spec.Attr(name)
		if a == nil {
			t.Errorf("%s: attribute %s is not declared", e.Kind, name)
		} else if a.Type != v.T {
			t.Errorf("%s: attribute %s is a %v, declared %v", e.Kind, name, v.T, a.Type)
		}
	}
	if !utf8.ValidString(e.Text) || strings.ContainsRune(e.Text, 0x1b) {
		t.Errorf("%s: text %q is not clean", e.Kind, e.Text)
	}
}

// quoted reads a text span again.
func quoted(t *testing.T, s evidence.Span, data []byte) {
	t.Helper()
	if s.Kind != "text" {
		return
	}
	if s.Offset < 0 || s.Length < 0 || s.Offset+s.Length > int64(len(data)) {
		t.Errorf("span %+v lies outside the artifact of %d bytes", s, len(data))
		return
	}
	got := data[s.Offset : s.Offset+s.Length]
	if wide(data) {
		return // the quote is converted text
	}
	if string(got) != s.Quote {
		t.Errorf("span at line %d quotes %q, the artifact has %q", s.Line, s.Quote, got)
	}
	if line := int64(bytes.Count(data[:s.Offset], []byte("\n"))) + 1; s.Line != 0 && line != s.Line {
		t.Errorf("span at offset %d says line %d, it is line %d", s.Offset, s.Line, line)
	}
	if s.Column != 0 {
		start := int64(bytes.LastIndexByte(data[:s.Offset], '\n')) + 1
		if int64(s.Column) != s.Offset-start+1 {
			t.Errorf("span at offset %d says column %d, it is %d", s.Offset, s.Column, s.Offset-start+1)
		}
	}
}

// wide reports whether data is UTF-16.
func wide(data []byte) bool {
	return len(data) > 1 && (data[0] == 0xff && data[1] == 0xfe || data[0] == 0xfe && data[1] == 0xff)
}

// truncated checks that cutting the file loses only a suffix: an event whose
// proof and surroundings lie well before the cut is still there. The last lines
// before the cut may read differently, because what follows them is gone.
func truncated(t *testing.T, r reader.Reader, dir fs.FS, name string, data []byte, full *reader.Collector) {
	t.Helper()
	step := max(1, len(data)/maxPrefixes)
	for cut := 0; cut < len(data); cut += step {
		c, err := Read(context.Background(), r, dir, name, data[:cut])
		if err != nil {
			t.Errorf("cut at %d: %v", cut, err)
			continue
		}
		safe := int64(cut) - settle(data[:cut])
		have := map[string]bool{}
		for i := range c.Events {
			have[where(&c.Events[i])] = true
			if s := c.Events[i].Span; s.Artifact == name && s.Offset+s.Length > int64(cut) {
				t.Errorf("cut at %d: span %d+%d lies behind the cut", cut, s.Offset, s.Length)
			}
		}
		for i := range full.Events {
			e := &full.Events[i]
			if e.Span.Offset+e.Span.Length < safe && !have[where(e)] {
				t.Errorf("cut at %d: event %s is gone", cut, where(e))
			}
		}
	}
}

// settle is how many bytes before the end of data may still be waiting for
// lines that are cut off: the last twelve lines.
func settle(data []byte) int64 {
	end := len(data)
	for range 12 {
		i := bytes.LastIndexByte(data[:end], '\n')
		if i < 0 {
			return int64(len(data))
		}
		end = i
	}
	return int64(len(data) - end)
}

func where(e *evidence.Event) string {
	return fmt.Sprintf("%s at %d+%d", e.Kind, e.Span.Offset, e.Span.Length)
}

// cancelled checks that a reader stops when it is told to.
func cancelled(t *testing.T, r reader.Reader, name string) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	endless := &endless{cancel: cancel}
	err := r.Read(ctx, reader.Input{
		Artifact: evidence.Artifact{Path: name, Kind: r.Name(), Size: -1},
		Open:     func() (io.ReadCloser, error) { return io.NopCloser(endless), nil },
		Size:     -1,
	}, reader.NewCollector())
	if !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled Read returned %v", err)
	}
}

// An endless reader gives text for ever and cancels after 4 MiB. It ends at
// 1 GiB so that a reader that does not stop fails instead of hanging.
type endless struct {
	cancel context.CancelFunc
	n      int64
}

func (e *endless) Read(p []byte) (int, error) {
	if e.n > 1<<30 {
		return 0, io.EOF
	}
	if e.n > 4<<20 {
		e.cancel()
	}
	for i := range p {
		p[i] = "still working\n"[(e.n+int64(i))%14]
	}
	e.n += int64(len(p))
	return len(p), nil
}

// firstDifference shows the first line in which got and want differ.
func firstDifference(got, want string) string {
	g, w := strings.Split(got, "\n"), strings.Split(want, "\n")
	for i := range g {
		if i >= len(w) || g[i] != w[i] {
			have := "(nothing)"
			if i < len(w) {
				have = w[i]
			}
			return fmt.Sprintf("line %d\n got: %s\nwant: %s", i+1, g[i], have)
		}
	}
	if len(w) > len(g) {
		return fmt.Sprintf("line %d\n got: (nothing)\nwant: %s", len(g)+1, w[len(g)])
	}
	return "(no difference)"
}
