package memsnap

import (
	"bytes"
	"compress/gzip"
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/inquest-dev/inquest/internal/evidence"
	"github.com/inquest-dev/inquest/internal/reader"
	"github.com/inquest-dev/inquest/internal/reader/readertest"
)

func TestReader(t *testing.T) {
	readertest.Run(t, New(), readertest.Folder{FS: os.DirFS("testdata"), Write: func(name string, data []byte) error {
		return os.WriteFile(filepath.Join("testdata", name), data, 0o644)
	}})
}

func TestSniff(t *testing.T) {
	for _, x := range []struct {
		path, head string
		want       reader.Confidence
	}{
		{"a.pickle", "\x80\x04\x95\x0c\x00\x01\x00\x00\x00\x00\x00}\x94(\x8c\x08segments\x94]\x94(}\x94(\x8c\x06device\x94K\x00\x8c\x07address\x94\x8a\x06\x00\x00\x00\x00\x00\x7f\x8c\ntotal_size\x94", reader.Sure},
		{"a.pickle", "\x80\x04\x95\x0c\x00\x01\x00\x00\x00\x00\x00}\x94(\x8c\x0ddevice_traces\x94]\x94]\x94a", reader.Sure},
		{"a.bin", "\x80\x02}(X\x08\x00\x00\x00segmentsq\x00](}(X\x06\x00\x00\x00deviceq\x01K\x00", reader.Likely},
		{"a.pkl", "\x80\x04\x95\x0c\x00\x01\x00\x00\x00\x00\x00]\x94(}\x94(\x8c\x06device\x94K\x00\x8c\x0atotal_size\x94J\x8c\x0csegment_type\x94", reader.Sure},
		{"x.html", "<!DOCTYPE html>\n<script>import {add_local_files} from \"https://x/MemoryViz.js\"\n", reader.Sure},
		{"rank0.memory.json", "[[1690000000, 1690000005], [[0, 1,", reader.Likely},
		{"timeline.raw.json", "[[-1, 1, 512, 0], [100, 2, 4096, 4]", reader.Likely},

		{"weights.json", "[[1.5, 2.5], [3.5, 4.5]]", reader.No},
		{"memory.json", `[{"a": 1}]`, reader.No},
		{"memory.json", "[1, 2, 3]", reader.No},
		{"page.html", "<html><body>memory</body></html>", reader.No},
		// A flight recorder's dump, a checkpoint, any other pickle, text.
		{"d_0", "\x80\x02}q\x00(X\x07\x00\x00\x00versionq\x01X\x03\x00\x00\x002.9q\x02X\x09\x00\x00\x00pg_configq\x03", reader.No},
		{"c.pt", "\x80\x02ccollections\nOrderedDict\nq\x00)Rq\x01(X\x0c\x00\x00\x00layer.weightq\x02ctorch._utils\n_rebuild_tensor_v2\n", reader.No},
		{"o.pkl", "\x80\x04\x95\x10\x00\x00\x00\x00\x00\x00\x00}\x94\x8c\x04size\x94K\x05s.", reader.No},
		{"t.log", "device_traces segments total_size segment_type", reader.No},
		{"z", "", reader.No},
		{"z", "\x80", reader.No},
	} {
		if got := New().Sniff(evidence.Artifact{Path: x.path}, []byte(x.head)); got != x.want {
			t.Errorf("%s %.60q: %d, want %d", x.path, x.head, got, x.want)
		}
	}
}

// A taker is a sink that takes snapshots.
type taker struct {
	*reader.Collector
	got []*evidence.MemSnapshot
}

func (t *taker) MemSnapshot(s *evidence.MemSnapshot) { t.got = append(t.got, s) }

func TestSnapshots(t *testing.T) {
	data, err := os.ReadFile("testdata/snapshot_rank3.pickle")
	if err != nil {
		t.Fatal(err)
	}
	to := &taker{Collector: reader.NewCollector()}
	in := reader.Input{Artifact: evidence.Artifact{Path: "s.pickle"}, Open: func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(data)), nil }}
	if err := New().Read(context.Background(), in, to); err != nil {
		t.Fatal(err)
	}
	if len(to.got) != 1 || to.got[0].Artifact != "s.pickle" || to.got[0].Traces[0].Len() != 6 {
		t.Fatalf("the sink got %+v", to.got)
	}
}

func read(t *testing.T, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func decodeBytes(t *testing.T, data []byte) *evidence.MemSnapshot {
	t.Helper()
	s, err := Decode(context.Background(), bytes.NewReader(data), Options{})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestForms reads one snapshot in every wrapping.
func TestForms(t *testing.T) {
	plain := read(t, "snapshot_rank3.pickle")
	want := dumped(decodeBytes(t, plain))
	zip := func(b []byte) []byte {
		var to bytes.Buffer
		z := gzip.NewWriter(&to)
		z.Write(b)
		z.Close()
		return to.Bytes()
	}
	page := read(t, "page.html")
	for name, data := range map[string][]byte{
		"gzip": zip(plain), "gzip twice": zip(zip(plain)), "NULs behind": append(bytes.Clone(plain), 0, 0, 0), "C++": read(t, "cpp.pickle"),
		"page": page, "page in gzip": zip(page), "base64 with escapes": bytes.ReplaceAll(page, []byte("/"), []byte(`\/`)),
	} {
		if got := dumped(decodeBytes(t, data)); !bytes.Equal(got, want) {
			t.Errorf("%s: %s", name, difference(string(got), string(want)))
		}
	}
	s := decodeBytes(t, page)
	if s.Form != "trace_plot" || len(s.Damage) != 1 || !strings.Contains(s.Damage[0].Text, "1 more in this page") {
		t.Errorf("page: form %s, damage %v", s.Form, s.Damage)
	}
	for in, want := range map[string]string{
		"": "no memory snapshot", "text": "no memory snapshot", "<html>": "a page without a snapshot", "\x1f\x8b": "no memory snapshot", "\x1f\x8bxx": "EOF",
		"\x80\x04K\x05.": "no memory snapshot", "\x80\x04}.": "no memory snapshot", "\x80\x04": "no STOP", `<p>{"base64": "gASVCg=="}`: "of the page",
		"[[1, 2], [[0, 1": "timeline",
	} {
		if _, err := Decode(context.Background(), strings.NewReader(in), Options{}); err == nil || !strings.Contains(err.Error()+" timeline", want) {
			t.Errorf("%.20q: %v, want %s", in, err, want)
		}
	}
	if s := decodeBytes(t, []byte("\x80\x04].")); s.Form != "segments" || len(s.Segments) != 0 {
		t.Errorf("an empty list: %+v", s)
	}
}

func TestTimeline(t *testing.T) {
	s := decodeBytes(t, read(t, "timeline_memory.json"))
	p := s.Timeline.Points
	if s.Form != "timeline" || s.Timeline.Form != "coalesced" || len(p) != 3 || p[1].Time != 250 || p[1].Bytes != [8]int64{512, 1024, 0, 0, 4096, 0, 0, 7} {
		t.Errorf("coalesced: %+v", s.Timeline)
	}
	s = decodeBytes(t, read(t, "timeline_raw_memory.json"))
	p = s.Timeline.Points
	want := []evidence.MemPoint{{Time: -1, Bytes: [8]int64{512}}, {Time: 100, Bytes: [8]int64{0, 512, 0, 0, 4096}}, {Time: 300, Bytes: [8]int64{0, 512}}}
	if s.Timeline.Form != "raw" || len(p) != 3 || p[0] != want[0] || p[1] != want[1] || p[2] != want[2] {
		t.Errorf("raw: %+v", s.Timeline)
	}
	for in, want := range map[string]string{
		"[[1, 2], [[0, 5], [0":          "ends early",
		"[[1, 2], [[0, 5]]]":            "2 times, but 1 states",
		"[[-1, 1, 5, 0], [5, 9, 5, 0]]": "no memory timeline",
	} {
		s, err := Decode(context.Background(), strings.NewReader(in), Options{})
		if err != nil || len(s.Timeline.Points) != 1 || len(s.Damage) != 1 || !strings.Contains(s.Damage[0].Text, want) {
			t.Errorf("%s: %+v, %v, want %s", in, s, err, want)
		}
	}
}

func FuzzRead(f *testing.F) {
	files, _ := filepath.Glob("testdata/*.*")
	for _, name := range files {
		if data, err := os.ReadFile(name); err == nil && !strings.HasSuffix(name, ".events") && !strings.HasSuffix(name, ".md") {
			f.Add(data)
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := readertest.Read(context.Background(), New(), nil, "memory.json", data)
		if err != nil {
			t.Fatal(err)
		}
		for i := range c.Events {
			e := &c.Events[i]
			if strings.ContainsAny(e.Text+e.Span.Quote, "\x1b\n\x00") {
				t.Fatalf("control characters in %q", e.Text)
			}
			for _, x := range e.Stack {
				if strings.ContainsAny(x.File+x.Function, "\x1b\n\x00") {
					t.Fatalf("control characters in %q of %q", x.Function, x.File)
				}
			}
		}
	})
}
