package trackio_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/inquest-dev/inquest/internal/evidence"
	"github.com/inquest-dev/inquest/internal/reader"
	"github.com/inquest-dev/inquest/internal/reader/readertest"
	"github.com/inquest-dev/inquest/internal/reader/trackio"
)

func TestReader(t *testing.T) {
	readertest.Run(t, trackio.New(), readertest.Folder{FS: os.DirFS("testdata"), Write: func(name string, data []byte) error {
		return os.WriteFile(filepath.Join("testdata", name), data, 0o644)
	}})
}

// A tracked sink keeps runs and points.
type tracked struct {
	*reader.Collector
	runs   []*evidence.TrackedRun
	points []string
}

func (s *tracked) TrackedRun(r *evidence.TrackedRun) { s.runs = append(s.runs, r) }
func (s *tracked) Point(r *evidence.TrackedRun, t *evidence.Track, p *evidence.Point, wall float64) {
	s.points = append(s.points, fmt.Sprintf("%s %s[%d] = %v at %.3f in row %d", r.Name, t.Name, p.Step, p.Value, wall, p.Line))
}

// read reads a database, as a stream where plain is false.
func read(t testing.TB, name string, data []byte, dir fs.FS, plain bool) (*tracked, error) {
	t.Helper()
	s := &tracked{Collector: reader.NewCollector()}
	in := reader.Input{Artifact: evidence.Artifact{Path: name}, Dir: dir, Size: int64(len(data)),
		Open: func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(data)), nil }}
	if plain {
		in.At = bytes.NewReader(data)
	} else {
		in.Size = -1
	}
	return s, trackio.New().Read(context.Background(), in, s)
}

func file(t testing.TB, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// TestRuns: two runs without ids, the newest one for the diagnosis, and the same of a
// stream.
func TestRuns(t *testing.T) {
	data := file(t, "testdata/old.db")
	s, err := read(t, "trackio/old.db", data, nil, true)
	if err != nil {
		t.Fatal(err)
	}
	if len(s.runs) != 2 || s.runs[0].ID != "a" || s.runs[1].ID != "b" || s.runs[0].Project != "old" {
		t.Fatalf("runs %+v", s.runs)
	}
	if a := s.runs[0].Tracks; len(a) != 1 || a[0].NaN != 2 || a[0].Segments[0].FirstBad.Step != 8 || a[0].Segments[0].LastFinite.Step != 7 {
		t.Errorf("tracks of a: %+v", a[0])
	}
	if len(s.Events) != 1 || s.Events[0].Kind != evidence.TrackerRun || s.Events[0].Attrs["id"].S != "b" {
		t.Errorf("events %v", s.Events)
	}
	if got, want := s.points[9], "a loss[9] = NaN at 1756720809.500 in row 10"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	again, err := read(t, "trackio/old.db", data, nil, false)
	if err != nil || strings.Join(again.points, "\n") != strings.Join(s.points, "\n") {
		t.Errorf("as a stream: %v, %d points", err, len(again.points))
	}
}

// TestLog: rows that stand in the write-ahead log only.
func TestLog(t *testing.T) {
	data := file(t, "testdata/wal/toy.db")
	for _, c := range []struct {
		dir  fs.FS
		want int
	}{{nil, 10}, {os.DirFS("testdata/wal"), 14}} {
		for _, plain := range []bool{true, false} {
			s, err := read(t, "x/toy.db", data, c.dir, plain)
			if err != nil || len(s.points) != c.want {
				t.Errorf("%d points, want %d, %v", len(s.points), c.want, err)
			}
		}
	}
}

// TestResumed: steps that were written again make a second segment.
func TestResumed(t *testing.T) {
	s, err := read(t, "trackio/toy.db", file(t, "testdata/real/toy.db"), nil, true)
	if err != nil {
		t.Fatal(err)
	}
	run := s.runs[0]
	if len(run.Tracks[0].Segments) != 2 || run.Tracks[0].Segments[1].First.Step != 6 || run.Tracks[0].NaN != 4 {
		t.Errorf("loss %+v", run.Tracks[0])
	}
	for _, x := range run.Tracks {
		if x.Name == "gpu/0/allocated_memory" && (x.Unit != "bytes" || !x.System || x.Series.First.Value != 27<<30) {
			t.Errorf("memory %+v", x)
		}
	}
	if len(run.Notes) != 2 || !strings.Contains(run.Notes[1], "alert warn at step 11: watch out: the loss is odd") {
		t.Errorf("notes %q", run.Notes)
	}
	if run.Status != evidence.RunOpen || len(run.Settings) != 3 || run.Settings[2].Name != "model.hidden" {
		t.Errorf("run %+v", run)
	}
}

func TestSniff(t *testing.T) {
	toy, old := file(t, "testdata/real/toy.db")[:4096], file(t, "testdata/old.db")[:4096]
	plain := bytes.Clone(toy)
	plain[63] = 0 // no version of the schema
	for _, c := range []struct {
		path string
		head []byte
		want reader.Confidence
	}{
		{"x/toy.db", toy, reader.Likely + 1}, {"x/old.db", old, reader.Sure}, {"huggingface/trackio/p.db", plain, reader.Sure},
		{"x/p.db", plain, reader.No}, {"mlflow.db", toy, reader.No}, {"x/toy.sqlite", toy, reader.No}, {"x/toy.db", []byte("SQLite format 3\x00"), reader.No},
	} {
		if got := trackio.New().Sniff(evidence.Artifact{Path: c.path}, c.head); got != c.want {
			t.Errorf("%s: %v, want %v", c.path, got, c.want)
		}
	}
	g := trackio.New().(reader.Gatherer)
	if dir, pattern, ok := g.Anchor("a/b[1].db-wal"); dir != "a" || pattern != `b\[1].db` || !ok {
		t.Errorf("anchor %s %s", dir, pattern)
	}
}

// TestForeign: another program's database is refused in words.
func TestForeign(t *testing.T) {
	data := bytes.ReplaceAll(file(t, "testdata/old.db"), []byte("run_name"), []byte("run_nome"))
	if _, err := read(t, "x.db", data, nil, true); err == nil || !strings.Contains(err.Error(), "without Trackio's tables") {
		t.Errorf("got %v", err)
	}
}

func FuzzRead(f *testing.F) {
	for _, name := range []string{"testdata/old.db", "testdata/wal/toy.db"} {
		f.Add(file(f, name))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		read(t, "x.db", data, nil, true) // only must not panic
	})
}
