package dvclive_test

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

	"github.com/inquest-dev/inquest/internal/engine"
	"github.com/inquest-dev/inquest/internal/evidence"
	"github.com/inquest-dev/inquest/internal/reader"
	"github.com/inquest-dev/inquest/internal/reader/dvclive"
	"github.com/inquest-dev/inquest/internal/reader/readertest"
)

// placed is the reader of files in the folder of tables.
type placed struct{ reader.Reader }

func (p placed) Sniff(a evidence.Artifact, head []byte) reader.Confidence {
	a.Path = "dvclive/plots/metrics/" + a.Path
	return p.Reader.Sniff(a, head)
}

func (p placed) Read(ctx context.Context, in reader.Input, s reader.Sink) error {
	in.Artifact.Path = "dvclive/plots/metrics/" + in.Artifact.Path
	return p.Reader.Read(ctx, in, s)
}

func TestReader(t *testing.T) {
	const dir = "testdata/dvclive/plots/metrics"
	readertest.Run(t, placed{dvclive.New()}, readertest.Folder{FS: os.DirFS(dir), Write: func(name string, data []byte) error {
		return os.WriteFile(filepath.Join(dir, name), data, 0o644)
	}})
}

func read(t testing.TB, name string, data string, dir fs.FS) *readertest.Tracked {
	t.Helper()
	return readertest.ReadTracked(t, dvclive.New(), name, []byte(data), dir)
}

// TestTable: line ends of Windows, times in some rows, a table begun anew, texts, damaged rows.
func TestTable(t *testing.T) {
	text := "\ufeffstep\tloss\r\n0\t1.0\r\n\r\n1700000001000\t1\tnan\r\nstep\tloss\r\n1\t-inf\r\n2\tgood\r\n3\t4\t5\t6\r\nx\t1\r\n4\t0.25\r\n5\t0.1"
	s := read(t, "a/live/plots/metrics/train/loss.tsv", text, nil)
	want := "train/loss[0] = 1 at 0.000\ntrain/loss[1] = NaN at 1700000001.000\ntrain/loss[1] = -Inf at 0.000\ntrain/loss[4] = 0.25 at 0.000"
	if got := strings.Join(s.Points, "\n"); got != want {
		t.Errorf("points\n%s\nwant\n%s", got, want)
	}
	run := s.Runs[0]
	if run.Folder != "a/live" || run.Status != evidence.RunUnknown || len(run.Damage) != 3 || run.Damage[0].Span.Record != 8 || run.Damage[2].Kind != evidence.TruncatedTail {
		t.Errorf("run %+v", run)
	}
	if x := run.Tracks[0]; len(x.Segments) != 2 {
		t.Errorf("segments %+v", x.Segments)
	}
	if x := read(t, "a.zip!plots/metrics/system/vram/usage (GB)/0.tsv", "step\t0\n0\t10.5\n", nil).Runs[0]; x.Folder != "a.zip" || x.Tracks[0].Unit != "bytes" || !x.Tracks[0].System || x.Tracks[0].Series.First.Value != 10.5e9 {
		t.Errorf("memory %+v of %+v", x.Tracks[0], x)
	}
}

// TestFolder: a folder as the walk gathers it.
func TestFolder(t *testing.T) {
	got, err := engine.ReadTrackers(t.Context(), engine.Options{Paths: []string{"testdata/dvclive"}, Readers: []reader.Reader{dvclive.New()}}, engine.TrackerOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var names, settings []string
	for _, r := range got.Runs {
		if r.Folder != "testdata/dvclive" {
			t.Errorf("%s: folder %s", r.Artifact, r.Folder)
		}
		for _, x := range r.Tracks {
			names = append(names, fmt.Sprintf("%s %d", x.Name, x.Series.Count))
		}
		for _, x := range r.Settings {
			settings = append(settings, x.Name+"="+x.Value)
		}
		if strings.HasSuffix(r.Artifact, "metrics.json") && strings.Join(r.Notes, "; ") != "last step 11; at the end train/loss is nan; at the end grad_norm is nan" {
			t.Errorf("notes %q", r.Notes)
		}
	}
	if got := strings.Join(names, ", "); got != "grad_norm 12, system/vram/usage (GB)/0 12, train/loss 12" {
		t.Errorf("series %s", got)
	}
	if got := strings.Join(settings, " "); got != "lr=0.001 batch_size=32 model.hidden=64" {
		t.Errorf("settings %s", got)
	}
}

func TestSniff(t *testing.T) {
	for _, c := range []struct {
		path, head string
		want       reader.Confidence
	}{
		{"x/plots/metrics/loss.tsv", "timestamp\tstep\tloss\r\n", reader.Sure},
		{"x/plots/metrics/a/b.tsv", "step\tb\n", reader.Sure},
		{"x/plots/metrics/a/b.tsv", "step\tc\n", reader.No},
		{"x/metrics/loss.tsv", "step\tloss\n", reader.No},
		{"x/plots/metrics/loss.csv", "step,loss\n", reader.No},
		{"dvclive/metrics.json", "{\n    \"step\": 3\n}\n", reader.Sure},
		{"out/metrics.json", "{\n    \"step\": 3\n}\n", reader.No},
	} {
		if got := dvclive.New().Sniff(evidence.Artifact{Path: c.path}, []byte(c.head)); got != c.want {
			t.Errorf("%s: %v", c.path, got)
		}
	}
}

func FuzzRead(f *testing.F) {
	f.Add([]byte("timestamp\tstep\tloss\n1700000001000\t1\tnan\n"))
	f.Add([]byte("{\"a\": {\"b\": \"nan\"}, \"step\": 1}"))
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, name := range []string{"plots/metrics/loss.tsv", "dvclive/metrics.json"} {
			err := dvclive.New().Read(context.Background(), reader.Input{Artifact: evidence.Artifact{Path: name},
				Open: func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(data)), nil }}, reader.NewCollector())
			if err != nil {
				t.Fatal(err)
			}
		}
	})
}
