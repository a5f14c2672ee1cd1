package tfevents_test

import (
	"bytes"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/inquest-dev/inquest/internal/engine"
	"github.com/inquest-dev/inquest/internal/format/protowire"
	"github.com/inquest-dev/inquest/internal/format/tfevent"
	"github.com/inquest-dev/inquest/internal/format/tfrecord"
	"github.com/inquest-dev/inquest/internal/reader/tfevents"
	"github.com/inquest-dev/inquest/internal/repair/repairtest"
	mended "github.com/inquest-dev/inquest/internal/repair/tfevents"
)

const recorded = "../../reader/tfevents/testdata"

// logs makes a log folder of the reader's own files: by name below it, the host in the name
// of a recorded one.
func logs(t testing.TB, files map[string]string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "logs")
	for to, host := range files {
		found, err := filepath.Glob(filepath.Join(recorded, "events.out.tfevents.1700000000."+host+".42.*"))
		if err != nil {
			t.Fatal(err)
		}
		for _, from := range found {
			if filepath.Ext(from) == ".events" {
				continue
			}
			data, err := os.ReadFile(from)
			if err != nil {
				t.Fatal(err)
			}
			put(t, filepath.Join(dir, to), data)
		}
	}
	return dir
}

func put(t testing.TB, name string, data []byte) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, data, 0o666); err != nil {
		t.Fatal(err)
	}
}

// project is a log folder with runs of all sorts.
func project(t testing.TB) string {
	dir := logs(t, map[string]string{
		"train/events.out.tfevents.1700000000.node7.42.0":      "torch",
		"train/events.out.tfevents.1700000100.node7.77.0":      "tensorboardx",
		"train/events.out.tfevents.1700000000.node8.42.0":      "empty",
		"styles/events.out.tfevents.1700000000.node7.42.0":     "torch-styles",
		"tensors/events.out.tfevents.1700000000.node7.42.0.v2": "tensors",
		"texts/events.out.tfevents.1700000000.node7.42.0":      "texts",
		"hparams/events.out.tfevents.1700000000.node7.42.1":    "hparams",
		"damaged/a.events.out.tfevents.1700000000.node7.42.0":  "flipped",
		"damaged/b.events.out.tfevents.1700000000.node7.43.0":  "zeros",
		"damaged/c.events.out.tfevents.1700000000.node7.44.0":  "cut",
		"hostile/events.out.tfevents.1700000000.node7.42.0":    "hostile",
		"none/events.out.tfevents.1700000000.node7.42.0":       "version-only",
	})
	put(t, filepath.Join(dir, "train/hparams.yaml"), []byte("lr: 0.1\n"))
	put(t, filepath.Join(dir, "train/plugins/profile/x.xplane.pb"), []byte("x"))
	return dir
}

func TestSuite(t *testing.T) {
	repairtest.Run(t, tfevents.New(), mended.New(), project(t))
}

// records are the events of a file of a copy.
func records(t testing.TB, name string) (all [][]byte) {
	t.Helper()
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r := tfrecord.NewReader(f)
	for {
		data, err := r.Next()
		if err == io.EOF {
			return all
		}
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		all = append(all, bytes.Clone(data))
	}
}

func file(events ...[]byte) (b []byte) {
	for _, e := range events {
		b = tfrecord.Append(b, e)
	}
	return b
}

// value encodes a scalar as TensorFlow 2 does: a tensor, with metadata where plugin is not "".
func value(tag string, v float32, plugin string) []byte {
	b := protowire.AppendBytes(nil, 1, tag)
	b = protowire.AppendBytes(b, 8, protowire.AppendFloat(protowire.AppendVarint(nil, 1, 1), 5, v))
	if plugin != "" {
		b = protowire.AppendBytes(b, 9, protowire.AppendBytes(nil, 1, protowire.AppendBytes(nil, 1, plugin)))
	}
	return b
}

func event(wall float64, step int64, values ...[]byte) []byte {
	var s []byte
	for _, v := range values {
		s = protowire.AppendBytes(s, 1, v)
	}
	return protowire.AppendBytes(protowire.AppendVarint(protowire.AppendDouble(nil, 1, wall), 2, uint64(step)), 5, s)
}

var nan = float32(math.NaN())

const t0 = 1700000000.0

func same(t *testing.T, what string, got, want [][]byte) {
	t.Helper()
	for i := range max(len(got), len(want)) {
		if i >= len(got) || i >= len(want) || !bytes.Equal(got[i], want[i]) {
			t.Errorf("%s: event %d of %d, want %d:\ngot  %x\nwant %x", what, i, len(got), len(want), got[min(i, len(got)):], want[min(i, len(want)):])
			return
		}
	}
}

// TestMarker: the events that stay are the same bytes, and the file beside them has the version,
// the marker and the note.
func TestMarker(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "logs")
	const name = "events.out.tfevents.1700000000.node7.42.0"
	was := [][]byte{tfevent.VersionEvent(t0)}
	for step := range int64(6) {
		v := float32(step)
		if step == 2 || step == 3 {
			v = nan
		}
		was = append(was, tfevent.ScalarEvent(t0+float64(step), step, "loss", v), tfevent.ScalarEvent(t0+float64(step), step, "lr", .5))
	}
	put(t, filepath.Join(dir, "run", name), file(was...))
	res, out := repairtest.Copy(t, tfevents.New(), mended.New(), dir, nil)
	same(t, "events", records(t, filepath.Join(out, "run", name)), append(append([][]byte{}, was[:5]...), was[6], was[8], was[9], was[10], was[11], was[12]))
	got := records(t, filepath.Join(out, "run", "events.out.tfevents.1700000001.inquest.0.0"))
	const m = "inquest/failed_segment"
	want := [][]byte{tfevent.VersionEvent(t0 + 5), tfevent.ScalarEvent(t0+1, 1, m, 0), tfevent.ScalarEvent(t0+2, 2, m, 1), tfevent.ScalarEvent(t0+3, 3, m, 1), tfevent.ScalarEvent(t0+4, 4, m, 0)}
	same(t, "marker", got[:5], want)
	var e tfevent.Event
	var v tfevent.Value
	if err := e.Decode(got[5]); err != nil || e.Step != 2 || e.Wall != t0+2 || len(got) != 6 {
		t.Fatalf("%v %+v", err, e)
	}
	vs := e.Values()
	vs.Next(&v)
	if text := v.Tensor.Strings(); string(v.Tag) != mended.NoteTag || len(text) != 1 || !strings.Contains(string(text[0]), "loss") {
		t.Errorf("%s: %q", v.Tag, text)
	}
	if len(res.Left)+len(res.Changes) > 0 {
		t.Errorf("%q %q", res.Left, res.Changes)
	}
}

// TestMetadata: that of a value which goes stands with the next one that stays, also of the
// next file, and fields that are not known stay.
func TestMetadata(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "logs")
	b := append(value("b", 1, ""), protowire.AppendVarint(nil, 99, 7)...)
	first := [][]byte{tfevent.VersionEvent(t0), event(t0, 1, value("a", nan, "scalars"), value("b", nan, "scalars"), value("c", 2, "scalars")), event(t0, 2, value("a", nan, ""), b)}
	put(t, filepath.Join(dir, "events.out.tfevents.1700000000.node7.42.0"), file(first...))
	second := [][]byte{tfevent.VersionEvent(t0), event(t0+9, 3, value("a", 5, "")), event(t0+9, 4, value("a", 6, ""))}
	put(t, filepath.Join(dir, "events.out.tfevents.1700000050.node7.42.1"), file(second...))
	res, out := repairtest.Copy(t, tfevents.New(), mended.New(), dir, nil)
	same(t, "first file", records(t, filepath.Join(out, "events.out.tfevents.1700000000.node7.42.0")), [][]byte{first[0], event(t0, 1, value("c", 2, "scalars")),
		event(t0, 2, append(b, value("", 0, "scalars")[len(value("", 0, "")):]...))})
	same(t, "second file", records(t, filepath.Join(out, "events.out.tfevents.1700000050.node7.42.1")), [][]byte{second[0], event(t0+9, 3, value("a", 5, "scalars")), second[2]})
	if len(res.Changes) != 1 || !strings.Contains(res.Changes[0], "for 2 series") {
		t.Errorf("%q", res.Changes)
	}
}

// TestResumed: steps that another process wrote again are taken out on request.
func TestResumed(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "logs")
	run := func(from, to int64, wall float64) (b []byte) {
		b = file(tfevent.VersionEvent(wall))
		for step := from; step < to; step++ {
			b = append(b, file(tfevent.ScalarEvent(wall+float64(step), step, "loss", float32(wall-t0)))...)
		}
		return b
	}
	put(t, filepath.Join(dir, "events.out.tfevents.1700000000.node7.42.0"), run(0, 10, t0))
	put(t, filepath.Join(dir, "events.out.tfevents.1700000100.node9.77.0"), run(6, 12, t0+100))
	res, out := repairtest.Copy(t, tfevents.New(), mended.New(), dir, func(o *engine.RepairOptions) { o.Policy.Dedupe = true })
	if n, m := len(records(t, filepath.Join(out, "events.out.tfevents.1700000000.node7.42.0"))), len(records(t, filepath.Join(out, "events.out.tfevents.1700000100.node9.77.0"))); n != 1+6 || m != 1+6 {
		t.Errorf("%d and %d events: %+v", n, m, res.Runs)
	}
	if names := repairtest.Names(t, out); len(names) != 4 {
		t.Errorf("a run of which nothing failed is marked: %q", names)
	}
	// Two processes at the same time are two ranks.
	put(t, filepath.Join(dir, "events.out.tfevents.1700000100.node9.77.0"), run(0, 10, t0+1))
	_, out = repairtest.Copy(t, tfevents.New(), mended.New(), dir, func(o *engine.RepairOptions) { o.Policy.Dedupe = true })
	if n, m := len(records(t, filepath.Join(out, "events.out.tfevents.1700000000.node7.42.0"))), len(records(t, filepath.Join(out, "events.out.tfevents.1700000100.node9.77.0"))); n != 11 || m != 11 {
		t.Errorf("%d and %d events", n, m)
	}
}

// TestSession: a session of the hparams plugin that has no end fails in the copy.
func TestSession(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "logs")
	session := func(content []byte) []byte {
		data := protowire.AppendBytes(protowire.AppendBytes(nil, 1, tfevent.HParams), 2, content)
		return event(t0, 0, protowire.AppendBytes(protowire.AppendBytes(nil, 1, tfevent.SessionStartTag), 9, protowire.AppendBytes(nil, 1, data)))
	}
	start := session(protowire.AppendBytes(nil, 3, ""))
	put(t, filepath.Join(dir, "a/events.out.tfevents.1700000000.node7.42.0"), file(tfevent.VersionEvent(t0), start, tfevent.ScalarEvent(t0, 1, "loss", nan)))
	put(t, filepath.Join(dir, "b/events.out.tfevents.1700000000.node7.42.0"), file(tfevent.VersionEvent(t0), start, tfevent.ScalarEvent(t0, 1, "loss", nan), tfevent.SessionEndEvent(t0, tfevent.StatusSuccess)))
	res, out := repairtest.Copy(t, tfevents.New(), mended.New(), dir, nil)
	last := func(run string) []byte {
		all := records(t, filepath.Join(out, run, "events.out.tfevents.1700000001.inquest.0.0"))
		return all[len(all)-1]
	}
	if !bytes.Equal(last("a"), tfevent.SessionEndEvent(t0, tfevent.StatusFailure)) {
		t.Errorf("a ends with %x", last("a"))
	}
	if !bytes.Contains(last("b"), []byte(mended.NoteTag)) || len(res.Left) != 1 || !strings.Contains(res.Left[0], "hparams") {
		t.Errorf("b ends with %x; left %q", last("b"), res.Left)
	}
}

// TestChosen: of runs that are not repaired no file is in the copy, and one file can be a
// source.
func TestChosen(t *testing.T) {
	dir := project(t)
	_, out := repairtest.Copy(t, tfevents.New(), mended.New(), dir, func(o *engine.RepairOptions) { o.Run = "styles" })
	want := []string{"inquest-repair.json", "inquest-repair.md", "styles/events.out.tfevents.1700000000.node7.42.0", "styles/events.out.tfevents.1700000001.inquest.0.0"}
	if names := repairtest.Names(t, out); !slices.Equal(names, want) {
		t.Errorf("the copy has %q", names)
	}
	_, out = repairtest.Copy(t, tfevents.New(), mended.New(), filepath.Join(dir, "train/events.out.tfevents.1700000000.node7.42.0"), nil)
	want = []string{"events.out.tfevents.1700000000.node7.42.0", "events.out.tfevents.1700000001.inquest.0.0", "inquest-repair.json", "inquest-repair.md"}
	if names := repairtest.Names(t, out); !slices.Equal(names, want) {
		t.Errorf("the copy has %q", names)
	}
}

// TestTensors: what is no scalar is counted, and taken out on request.
func TestTensors(t *testing.T) {
	dir := logs(t, map[string]string{"events.out.tfevents.1700000000.node7.42.0.v2": "tensors"})
	for _, with := range []bool{false, true} {
		res, out := repairtest.Copy(t, tfevents.New(), mended.New(), dir, func(o *engine.RepairOptions) { o.Policy.Tensors = with })
		n := 0
		for _, r := range records(t, filepath.Join(out, "events.out.tfevents.1700000000.node7.42.0.v2")) {
			if bytes.Contains(r, []byte("embedding")) {
				n++
			}
		}
		if with && (n != 1 || len(res.Changes) == 0) || !with && (n != 3 || len(res.Left) != 1) {
			t.Errorf("include tensors %v: %d are left; %q %q", with, n, res.Changes, res.Left)
		}
	}
}

// FuzzCopy copies files of any events: the reader and the writer meet the same points, and the
// engine finds the copy as it should be.
func FuzzCopy(f *testing.F) {
	f.Add(event(t0, 1, value("a", nan, "scalars"), value("b", 1, "")), event(t0, 2, value("a", 2, "")), tfevent.ScalarEvent(t0, 3, "a", nan))
	f.Add(tfevent.TextEvent(t0, 1, "a", "x"), event(t0, 2, value("a", nan, "")), tfevent.SessionEndEvent(t0, tfevent.StatusRunning))
	f.Add([]byte{0x2a, 4, 0x0a, 2, 0x0a, 9}, []byte{}, []byte("\x3a\x02\x08\x01"))
	f.Fuzz(func(t *testing.T, a, b, c []byte) {
		dir := t.TempDir()
		put(t, filepath.Join(dir, "src", "events.out.tfevents.1700000000.node7.42.0"), file(tfevent.VersionEvent(t0), a, b, c, b))
		for name, policy := range repairtest.Policies {
			_, err := repairtest.Repair(t.Context(), tfevents.New(), mended.New(), filepath.Join(dir, "src"), filepath.Join(dir, name), func(o *engine.RepairOptions) { o.Policy = policy })
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
		}
	})
}
