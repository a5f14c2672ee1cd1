package memsnap

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"testing"

	"github.com/inquest-dev/inquest/internal/evidence"
	"github.com/inquest-dev/inquest/internal/testkit/allocmodel"
)

// testdata/torch was written by PyTorch 2.15's own code (scripts/make-memory-files.py), from
// snapshot.pickle where it shows a snapshot. Snapshot.pickle is by allocmodel, and is written anew with
// INQUEST_WRITE=1; the script must run after it.
const torchDir = "testdata/torch"

type torchTruth struct {
	Torch            string
	Entries          int
	Peak, End        int64
	Events           []int
	Segments, Blocks int
	Reserved, Active int64
}

func readTruth(t *testing.T, key string) (w torchTruth) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(torchDir, "truth.json"))
	if err != nil {
		t.Fatal(err)
	}
	var all map[string]json.RawMessage
	if err := json.Unmarshal(data, &all); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(all[key], &w); err != nil {
		t.Fatalf("%s: %v", key, err)
	}
	return w
}

func decodeTorch(t *testing.T, name string) *evidence.MemSnapshot {
	t.Helper()
	f, err := os.Open(filepath.Join(torchDir, name))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	s, err := Decode(context.Background(), f, Options{})
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	if len(s.Damage) > 0 {
		t.Errorf("%s: damage %v", name, s.Damage)
	}
	return s
}

func TestTorchTimelines(t *testing.T) {
	for _, name := range []string{"timeline.json.gz", "timeline.raw.json.gz"} {
		want := readTruth(t, name)
		s := decodeTorch(t, name)
		if s.Form != "timeline" || s.Timeline == nil {
			t.Errorf("%s: form %q, timeline %v", name, s.Form, s.Timeline != nil)
			continue
		}
		peak, end := int64(0), int64(0)
		for i := range s.Timeline.Points {
			end = s.Timeline.Points[i].Total()
			peak = max(peak, end)
		}
		if peak != want.Peak || end != want.End || len(s.Timeline.Points) == 0 || len(s.Timeline.Points) > want.Entries {
			t.Errorf("%s: peak %d, end %d, %d points; want %d, %d, at most %d", name, peak, end, len(s.Timeline.Points), want.Peak, want.End, want.Entries)
		}
	}
}

// The page of export_memory_timeline is a picture: there is nothing to read.
func TestTorchTimelinePicture(t *testing.T) {
	f, err := os.Open(filepath.Join(torchDir, "timeline.html"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if s, err := Decode(context.Background(), f, Options{}); err == nil {
		t.Errorf("read as a snapshot: %+v", s)
	}
}

func checkTotals(t *testing.T, name string, s *evidence.MemSnapshot, want torchTruth) {
	t.Helper()
	var events []int
	for i := range s.Traces {
		events = append(events, s.Traces[i].Len())
	}
	var reserved, active int64
	for _, g := range s.Segments {
		reserved += g.Total
	}
	for _, b := range s.Blocks {
		if b.State != evidence.BlockInactive {
			active += b.Size
		}
	}
	if !reflect.DeepEqual(events, want.Events) || len(s.Segments) != want.Segments || len(s.Blocks) != want.Blocks || reserved != want.Reserved || active != want.Active {
		t.Errorf("%s: events %v, %d segments, %d blocks, reserved %d, active %d; want %+v", name, events, len(s.Segments), len(s.Blocks), reserved, active, want)
	}
}

// A profile made into a snapshot (profile_plot) has categories, and few keys.
func TestTorchProfile(t *testing.T) {
	want := readTruth(t, "profile")
	for name, form := range map[string]string{"profile.pickle.gz": "dict", "profile.html.gz": "trace_plot"} {
		s := decodeTorch(t, name)
		checkTotals(t, name, s, want)
		if s.Form != form {
			t.Errorf("%s: form %q, want %q", name, s.Form, form)
		}
		if !s.Has.Profile {
			t.Errorf("%s: not known as a profile's", name)
		}
		if !slices.ContainsFunc(s.Frames, func(f evidence.MemFrame) bool {
			return f.Name == "train" && f.File == "make-memory-files.py" && f.Line > 0
		}) {
			t.Errorf("%s: the frames have no places", name)
		}
		seen := map[string]bool{}
		for _, n := range s.Notes {
			seen[n.Category] = true
		}
		for _, c := range []string{"parameter", "gradient", "activation", "optimizer_state"} {
			if !seen[c] {
				t.Errorf("%s: no category %s in %v", name, c, seen)
			}
		}
	}
}

func TestTorchPages(t *testing.T) {
	c := allocmodel.New(912, 160)
	if os.Getenv("INQUEST_WRITE") != "" {
		var b bytes.Buffer
		if err := allocmodel.WritePickle(&b, c.Snapshot(), allocmodel.CPython); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(torchDir, "snapshot.pickle"), b.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if decodeTorch(t, "snapshot.pickle").Has.Profile {
		t.Error("a snapshot is taken for a profile's")
	}
	checkTotals(t, "snapshot.pickle", decodeTorch(t, "snapshot.pickle"), readTruth(t, "snapshot"))
	for _, name := range []string{"trace_plot.html", "segment_plot.html"} {
		got, want := decodeTorch(t, name), decodeTorch(t, "snapshot.pickle")
		if got.Form != "trace_plot" {
			t.Errorf("%s: form %q", name, got.Form)
		}
		got.Form = want.Form
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s: not what snapshot.pickle holds", name)
		}
	}
	checkTotals(t, "filtered.html", decodeTorch(t, "filtered.html"), readTruth(t, "filtered"))
}
