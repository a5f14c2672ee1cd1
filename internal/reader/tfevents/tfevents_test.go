package tfevents_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/inquest-dev/inquest/internal/evidence"
	"github.com/inquest-dev/inquest/internal/format/protowire"
	"github.com/inquest-dev/inquest/internal/format/tfevent"
	"github.com/inquest-dev/inquest/internal/format/tfrecord"
	"github.com/inquest-dev/inquest/internal/reader"
	"github.com/inquest-dev/inquest/internal/reader/readertest"
	"github.com/inquest-dev/inquest/internal/reader/tfevents"
)

func TestReader(t *testing.T) {
	readertest.Run(t, tfevents.New(), readertest.Folder{FS: os.DirFS("testdata"), Write: func(name string, data []byte) error {
		return os.WriteFile(filepath.Join("testdata", name), data, 0o644)
	}})
}

// whole is a sink that takes runs whole.
type whole struct {
	*reader.Collector
	run *evidence.TrackedRun
}

func (s *whole) TrackedRun(r *evidence.TrackedRun) { s.run = r }

// read reads data as the event file at a path.
func read(t testing.TB, path string, data []byte) *evidence.TrackedRun {
	t.Helper()
	s := &whole{Collector: reader.NewCollector()}
	err := tfevents.New().Read(t.Context(), reader.Input{
		Artifact: evidence.Artifact{Path: path},
		Open:     func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(data)), nil },
		Size:     -1,
	}, s)
	if err != nil {
		t.Fatal(err)
	}
	return s.run
}

func recorded(t testing.TB, host string) *evidence.TrackedRun {
	t.Helper()
	path := "testdata/events.out.tfevents.1700000000." + host
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return read(t, "runs/a/"+filepath.Base(path), data)
}

func TestSniff(t *testing.T) {
	version := tfrecord.Append(nil, tfevent.VersionEvent(1.7e9))
	example := tfrecord.Append(nil, []byte("\x0a\x10\x0a\x0e\x0a\x05image\x12\x05\x0a\x03\x0a\x01x")) // tf.train.Example
	damaged := append([]byte{1}, version[1:]...)
	const name = "runs/a/events.out.tfevents.1700000000.h.1.0"
	for _, c := range []struct {
		name string
		head []byte
		want reader.Confidence
	}{
		{name, version, reader.Sure},
		{name, tfrecord.Append(nil, bytes.Repeat([]byte("x"), 5000))[:4096], reader.Sure},
		{name, nil, reader.Likely},
		{name, damaged, reader.Likely},
		{name, make([]byte, 4096), reader.Likely},
		{name, []byte("no events, but words about tfevents\n"), reader.No},
		{"notes-on-tfevents.md", []byte("# größer\n"), reader.No},
		{"renamed.bin", version, reader.Sure},
		{"renamed.bin", version[:30], reader.No},
		{"train-00000-of-00128.tfrecord", example, reader.No},
		{"train-00000-of-00128", bytes.Repeat([]byte{0}, 4096), reader.No},
		{"x.log", []byte("step 1 loss 2\n"), reader.No},
		{"empty", nil, reader.No},
	} {
		if got := tfevents.New().Sniff(evidence.Artifact{Path: c.name}, c.head); got != c.want {
			t.Errorf("%s %.20q: got %d, want %d", c.name, c.head, got, c.want)
		}
	}
}

// TestRun: what is known of a run beside its points.
func TestRun(t *testing.T) {
	r := recorded(t, "torch.42.0")
	if r.Tracker != "tensorboard" || r.Folder != "runs/a" || r.Name != "a" || r.Writer != "torch.42" || r.Status != evidence.RunUnknown || r.Keeps != evidence.KeepsAll || r.Started.Time.Unix() != 1700000000 {
		t.Errorf("%+v", r)
	}
	if len(r.Tracks) != 3 || r.Tracks[0].Name != "train/loss" || r.Tracks[0].PosInf != 1 || r.Tracks[0].NaN != 2 || r.Tracks[0].Segments[0].FirstBad.Step != 45 || r.Tracks[1].Segments[0].FirstBad.Step != 40 {
		t.Errorf("%+v", r.Tracks)
	}
	for host, want := range map[string]string{
		"torch.42.0":        "1 histogram, all finite",
		"tensors.42.0.v2":   "3 larger tensors, of which 2 with elements that are not finite: embedding at step 1 (record 35) first",
		"texts.42.0":        "3 texts besides the settings",
		"hparams.42.1":      "the hparams session says SUCCESS (record 4), which torch writes with the parameters, before training: no evidence of how the run ended",
		"purge.42.0":        "SessionLog START at step 20 (record 3): the writer took up an earlier run there",
		"version-only.42.0": "",
	} {
		if notes := strings.Join(recorded(t, host).Notes, "\n"); !strings.Contains(notes, want) {
			t.Errorf("%s: notes %q", host, notes)
		}
	}
	for host, want := range map[string]string{"empty.42.0": "The file is empty", "version-only.42.0": "version record alone", "torch.42.0": "last two minutes"} {
		if cannot := strings.Join(recorded(t, host).Cannot, " "); !strings.Contains(cannot, want) {
			t.Errorf("%s: cannot %q", host, cannot)
		}
	}
	if r := recorded(t, "hparams.42.1"); r.Status != evidence.RunUnknown || r.StatusSaid != "SUCCESS" || r.StatusSpan.Record != 4 {
		t.Errorf("%+v", r)
	}
}

// TestRestart: START begins a segment also where no step is written again.
func TestRestart(t *testing.T) {
	start := protowire.AppendVarint(protowire.AppendDouble(nil, 1, 1.7e9), 2, 5)
	start = protowire.AppendBytes(start, 7, protowire.AppendVarint(nil, 1, tfevent.SessionStart))
	b := tfrecord.Append(nil, tfevent.VersionEvent(1.7e9))
	for step := range int64(3) {
		b = tfrecord.Append(b, tfevent.ScalarEvent(1.7e9, step, "loss", 1))
	}
	b = tfrecord.Append(b, start)
	b = tfrecord.Append(b, tfevent.ScalarEvent(1.7e9, 5, "loss", 1))
	b = tfrecord.Append(b, tfevent.ScalarEvent(1.7e9, 4, "loss", 1))
	var first []int64
	for _, s := range read(t, "events.out.tfevents.1.h", b).Tracks[0].Segments {
		first = append(first, s.First.Step)
	}
	if !slices.Equal(first, []int64{0, 5, 4}) {
		t.Errorf("segments begin at %v", first)
	}
}

// TestMetadataOnce: a tag whose first value is one of another plugin shows no scalars, whatever
// follows.
func TestMetadataOnce(t *testing.T) {
	event := func(step int64, plugin string, v float32) []byte {
		tensor := protowire.AppendFloat(protowire.AppendVarint(nil, 1, 1), 5, v)
		value := protowire.AppendBytes(protowire.AppendBytes(nil, 1, "x"), 8, tensor)
		if plugin != "" {
			value = protowire.AppendBytes(value, 9, protowire.AppendBytes(nil, 1, protowire.AppendBytes(nil, 1, plugin)))
		}
		e := protowire.AppendVarint(protowire.AppendDouble(nil, 1, 1.7e9), 2, uint64(step))
		return tfrecord.Append(nil, protowire.AppendBytes(e, 5, protowire.AppendBytes(nil, 1, value)))
	}
	for plugin, want := range map[string]int{"scalars": 2, "mesh": 0, "": 2} {
		r := read(t, "events.out.tfevents.1.h", append(event(1, plugin, 1), event(2, "", 2)...))
		got := 0
		if len(r.Tracks) > 0 {
			got = int(r.Tracks[0].Series.Count)
		}
		if got != want {
			t.Errorf("plugin %q: %d points, want %d", plugin, got, want)
		}
	}
}

// TestManyTags: series beyond the bound are counted, and memory stays bounded.
func TestManyTags(t *testing.T) {
	var b []byte
	for i := range 70_000 {
		b = tfrecord.Append(b, tfevent.ScalarEvent(1.7e9, 1, fmt.Sprint("tag ", i), 1))
	}
	r := read(t, "events.out.tfevents.1.h", b)
	if len(r.Tracks) < 1000 || int64(len(r.Tracks))+r.MoreTracks < 65_536 {
		t.Errorf("%d tracks and %d more", len(r.Tracks), r.MoreTracks)
	}
}

// TestMemory: a long file takes no more memory than its window and the series.
func TestMemory(t *testing.T) {
	pr, pw := io.Pipe()
	go func() { pw.CloseWithError(generate(pw, 600_000, false)) }()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	s := &whole{Collector: reader.NewCollector()}
	err := tfevents.New().Read(t.Context(), reader.Input{Artifact: evidence.Artifact{Path: "events.out.tfevents.1.h"}, Open: func() (io.ReadCloser, error) { return pr, nil }, Size: -1}, s)
	runtime.ReadMemStats(&after)
	if err != nil || s.run.Tracks[0].Series.Count != 30_000 {
		t.Fatalf("%v: %d points", err, s.run.Tracks[0].Series.Count)
	}
	// The generator's own events are in this, about 400 bytes of garbage each.
	if grown := int64(after.HeapAlloc) - int64(before.HeapAlloc); grown > 64<<20 {
		t.Errorf("the heap grew by %d MB", grown>>20)
	}
}

// TestReadError: what was read before stays, and the error is returned.
func TestReadError(t *testing.T) {
	b := tfrecord.Append(nil, tfevent.ScalarEvent(1.7e9, 1, "loss", 1))
	broken := errors.New("broken disk")
	s := &whole{Collector: reader.NewCollector()}
	err := tfevents.New().Read(context.Background(), reader.Input{Artifact: evidence.Artifact{Path: "events.out.tfevents.1.h"},
		Open: func() (io.ReadCloser, error) {
			return io.NopCloser(io.MultiReader(bytes.NewReader(b), fails{broken})), nil
		}}, s)
	if !errors.Is(err, broken) || s.run == nil || s.run.Tracks[0].Series.Count != 1 {
		t.Errorf("%v, %+v", err, s.run)
	}
}

type fails struct{ err error }

func (f fails) Read([]byte) (int, error) { return 0, f.err }

// TestPublic reads public files, with the counts that TensorBoard's own loader gives.
func TestPublic(t *testing.T) {
	root := filepath.Join("..", "..", "..", "..", "shared", "data", "tfevents")
	if _, err := os.Stat(root); err != nil {
		t.Skip("no public event files here: ", err)
	}
	for folder, want := range map[string]string{
		"ray_impala_pong_nan":  "39 series, 895 points, 8 not finite, ray/tune/episode_reward_mean at 69750 first",
		"ray_sac_tbx_nan":      "41 series, 24007 points, 30 not finite, ray/tune/info/replay_time_ms at 1000 first",
		"tf1_simple_kwt1":      "1 series, 2608 points, 0 not finite",
		"tf2_keras_train":      "2 series, 2 points, 0 not finite",
		"tf2_keras_validation": "4 series, 4 points, 0 not finite",
		"wandb_asset":          "6 series, 102 points, 0 not finite",
	} {
		files, _ := filepath.Glob(filepath.Join(root, folder, "*tfevents*"))
		if len(files) != 1 {
			t.Errorf("%s: %d files", folder, len(files))
			continue
		}
		data, err := os.ReadFile(files[0])
		if err != nil {
			t.Fatal(err)
		}
		r := read(t, files[0], data)
		var points, bad int64
		first, name := int64(math.MaxInt64), ""
		for _, tr := range r.Tracks {
			points += tr.Series.Count
			bad += tr.NaN + tr.PosInf + tr.NegInf
			if tr.Series.Bad > 0 && tr.Series.FirstBad.Line < first {
				first, name = tr.Series.FirstBad.Line, fmt.Sprintf(", %s at %d first", tr.Name, tr.Series.FirstBad.Step)
			}
		}
		if got := fmt.Sprintf("%d series, %d points, %d not finite%s", len(r.Tracks), points, bad, name); got != want || len(r.Damage) > 0 {
			t.Errorf("%s: %s, want %s; damage %+v", folder, got, want, r.Damage)
		}
	}
}

func FuzzRead(f *testing.F) {
	files, _ := filepath.Glob("testdata/*tfevents*")
	for _, name := range files {
		if data, err := os.ReadFile(name); err == nil && !strings.HasSuffix(name, ".events") && len(data) < 4096 {
			f.Add(data)
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		const name = "runs/events.out.tfevents.1.h"
		tfevents.New().Sniff(evidence.Artifact{Path: name}, data[:min(len(data), 4096)])
		// With sound checksums everything behind the framing is met.
		for _, b := range [][]byte{data, tfrecord.Append(nil, data)} {
			r := read(t, name, b)
			for _, d := range r.Damage {
				if d.Span.Offset < 0 || d.Span.Offset+d.Span.Length > int64(len(b)) {
					t.Fatalf("damage %+v of a file of %d bytes", d, len(b))
				}
			}
			for _, s := range r.Settings {
				if strings.ContainsAny(s.Name+s.Value, "\x1b\n\r\x00") {
					t.Fatalf("setting %q = %q", s.Name, s.Value)
				}
			}
		}
	})
}
