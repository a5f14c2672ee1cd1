package memsnap

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/inquest-dev/inquest/internal/evidence"
	"github.com/inquest-dev/inquest/internal/format/pickle"
)

// wellFormed checks what every consumer relies on.
func wellFormed(t *testing.T, s *evidence.MemSnapshot, size int) {
	t.Helper()
	for i := range s.Segments {
		g := &s.Segments[i]
		if g.First < 0 || g.N < 0 || g.First+g.N > len(s.Blocks) || int(g.Stack) >= len(s.Stacks) || int(g.Stream) >= len(s.Streams) || int(g.Pool) >= len(s.Pools) || g.Device < 0 || g.Device >= maxDevices {
			t.Fatalf("segment %d: %+v", i, *g)
		}
	}
	for i := range s.Blocks {
		if int(s.Blocks[i].Stack) >= len(s.Stacks) || s.Blocks[i].State > evidence.BlockPendingFree {
			t.Fatalf("block %d: %+v", i, s.Blocks[i])
		}
	}
	for d := range s.Traces {
		for i, e := range s.Traces[d].All() {
			if int(e.Stack) >= len(s.Stacks) || int(e.Note) >= len(s.Notes) || int(e.Stream) >= len(s.Streams) || int(e.Pool) >= len(s.Pools) {
				t.Fatalf("entry %d of %d: %+v", i, d, *e)
			}
		}
	}
	for i, st := range s.Stacks {
		for _, f := range st {
			if int(f) >= len(s.Frames) {
				t.Fatalf("stack %d: %v", i, st)
			}
		}
	}
	if s.Timeline == nil && (len(s.Stacks) == 0 || len(s.Stacks[0]) != 0 || s.Streams[0] != 0 || s.Pools[0] != [2]int64{} || s.Notes[0] != (evidence.MemNote{})) {
		t.Fatal("index 0 of a table is not the empty one")
	}
	for _, d := range s.Damage {
		if d.Offset < 0 || d.Offset > int64(size) && s.Form != "timeline" {
			t.Fatalf("damage at %d of %d bytes: %s", d.Offset, size, d.Text)
		}
	}
}

// TestPrefixes cuts snapshots everywhere: what was complete is kept, in order, and the place is
// told.
func TestPrefixes(t *testing.T) {
	names := map[string]int{"testdata/snapshot_rank3.pickle": 1, "testdata/cpp.pickle": 1, "testdata/old.pkl": 1, "../../../../shared/data/memory_snapshots/cs336_small_97events.pickle": 97}
	for name, step := range names {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Logf("%s is not there", name)
			continue
		}
		full, err := Decode(context.Background(), bytes.NewReader(data), Options{})
		if err != nil {
			t.Fatal(err)
		}
		events, blocks, segments := 0, 0, 0
		for cut := 0; cut < len(data); cut += step {
			s, err := Decode(context.Background(), bytes.NewReader(data[:cut]), Options{})
			var at *pickle.Error
			if err != nil {
				if errors.As(err, &at) && (at.Offset < 0 || at.Offset > int64(cut)) || events > 0 {
					t.Fatalf("%s cut at %d: %v", name, cut, err)
				}
				continue
			}
			wellFormed(t, s, cut)
			if len(s.Damage) == 0 {
				t.Fatalf("%s cut at %d: no damage", name, cut)
			}
			if len(s.Segments) < segments || len(s.Blocks) < blocks {
				t.Fatalf("%s cut at %d: %d segments and %d blocks, there were %d and %d", name, cut, len(s.Segments), len(s.Blocks), segments, blocks)
			}
			segments, blocks = len(s.Segments), len(s.Blocks)
			n := 0
			for d := range s.Traces {
				for i, e := range s.Traces[d].All() {
					if f := full.Traces[d].At(i); f.Addr != e.Addr || f.Size != e.Size || f.Time != e.Time || f.Action != e.Action {
						t.Fatalf("%s cut at %d: entry %d is %+v, whole %+v", name, cut, i, *e, *f)
					}
					n++
				}
			}
			if n < events {
				t.Fatalf("%s cut at %d: %d entries, there were %d", name, cut, n, events)
			}
			events = n
		}
		if want := full.Traces; len(want) > 0 && events < want[0].Len() {
			t.Errorf("%s: the last cut had %d entries of %d", name, events, want[0].Len())
		}
	}
}

// TestRefused puts opcodes that act where an entry stands.
func TestRefused(t *testing.T) {
	head := "\x80\x02}(X\x0d\x00\x00\x00device_traces]]((X\x01\x00\x00\x00a00}(X\x06\x00\x00\x00actionX\x05\x00\x00\x00allocX\x04\x00\x00\x00sizeK\x07u"
	head = strings.Replace(head, "((X\x01\x00\x00\x00a00", "(", 1)
	for op, want := range map[string]string{
		"cos\nsystem\n": "GLOBAL", "\x8c\x02os\x8c\x06system\x93": "STACK_GLOBAL", "NNR": "REDUCE", "}}b": "BUILD", "(ios\nsystem\n": "INST", "(No": "OBJ", "NN\x81": "NEWOBJ",
		"NNN\x92": "NEWOBJ_EX", "P5\n": "PERSID", "NQ": "BINPERSID", "\x82\x05": "EXT1", "\x97": "NEXT_BUFFER", "ctorch.jit._pickle\nbuild_tensorlist\n": "GLOBAL", "\xff": "no opcode",
		"\x8d\xff\xff\xff\xff\xff\xff\xff\x7f": "over the limit", "X\xff\xff\xff\x00abc": "fewer are left", "h\xf0": "memo 240 is empty", "j\xf0\xf0\xf0\xf0": "memo 4042322160 is empty",
		strings.Repeat("(", 1<<20): "nested deeper", "u": "no container or a pair", "}t": "taken for something else", "\x80\x06": "protocol 6", "a": "APPEND", "ps\n": "no memo number", "r\xff\xff\xff\xff": "memo number over the limit",
	} {
		s, err := Decode(context.Background(), strings.NewReader(head+op+"."), Options{})
		if err != nil {
			t.Errorf("%.20q: %v", op, err)
			continue
		}
		if len(s.Traces) != 1 || s.Traces[0].Len() != 1 || s.Traces[0].At(0).Size != 7 {
			t.Errorf("%.20q: the entry before it is gone: %+v", op, s.Traces)
		}
		if len(s.Damage) == 0 {
			t.Errorf("%.20q: no damage", op)
			continue
		}
		d := s.Damage[len(s.Damage)-1]
		if want != "no container or a pair" && !strings.Contains(d.Text, want) || d.Offset < int64(len(head)) || d.Offset > int64(len(head)+1<<20) {
			t.Errorf("%.20q: damage %v, want %s", op, d, want)
		}
	}
}

// TestBounded gives input that would take far more memory than it has bytes.
func TestBounded(t *testing.T) {
	repeat := strings.Repeat
	frame := "}(X\x04\x00\x00\x00nameX\x01\x00\x00\x00fu"
	event := "}(X\x06\x00\x00\x00actionX\x05\x00\x00\x00allocu"
	block := "}(X\x05\x00\x00\x00stateX\x08\x00\x00\x00inactiveu"
	var memo bytes.Buffer
	for i := range uint32(200_000) {
		memo.WriteString("r")
		binary.Write(&memo, binary.LittleEndian, i*20_000+7)
	}
	for name, in := range map[string]string{
		"huge memo numbers":          "\x80\x02]" + memo.String() + ".",
		"two stacks that grow":       "\x80\x02" + frame + "q\x00]q\x01]q\x02" + repeat("h\x01h\x00a0h\x02h\x00a0", 40_000) + ".",
		"many values":                "\x80\x02]q\x00(" + repeat("h\x00", 1<<20) + "e.",
		"a list that has itself":     "\x80\x02]q\x00(" + repeat("h\x00h\x00e(", 50_000) + "e.",
		"one entry a million times":  "\x80\x02}(X\x0d\x00\x00\x00device_traces](](" + event + "q\x05" + repeat("h\x05", 1<<20) + "eeu.",
		"one list of blocks, shared": "\x80\x02](" + repeat("", 1) + "](" + repeat(block, 3000) + "eq\x07" + repeat("0}(X\x06\x00\x00\x00blocksh\x07u", 1) + repeat("}(X\x06\x00\x00\x00blocksh\x07u", 20_000) + "e.",
		"one trace on many devices":  "\x80\x02}(X\x0d\x00\x00\x00device_traces](](" + event + "eq\x05" + repeat("h\x05", 1<<20) + "eu.",
		"marks":                      "\x80\x02" + repeat("(", 1<<20) + ".",
		"dicts filled one by one":    "\x80\x02](" + repeat("}X\x01\x00\x00\x00aNs", 100_000) + "e.",
		"frames that are forgotten":  "\x80\x04\x8c\x04name\x94\x8c\x08filename\x94\x8c\x04line\x94(" + repeat("}\x94(h\x00\x8c\x08function\x94h\x01\x8c\x01g\x94h\x02K\x05u0\x8c\x01zq\x040", 20_000) + "1.",
		"shapes of entries":          string(alike(50_000, func(i int) string { return fmt.Sprintf("}(h\x01\x8c\x06%06dh\x02K\x01u", i) }, func(int) string { return "" })),
		"duplicates":                 "\x80\x02]" + repeat("2", 1<<20) + ".",
		"memoized again":             "\x80\x04]" + repeat("\x94", 1<<20) + ".",
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		s, err := Decode(context.Background(), strings.NewReader(in), Options{})
		runtime.ReadMemStats(&after)
		if used, most := int64(after.TotalAlloc-before.TotalAlloc), int64(192*len(in)+32<<20); used > most { // of all allocations, what growing left behind too
			t.Errorf("%s: %d bytes for %d of input", name, used, len(in))
		}
		if err == nil {
			wellFormed(t, s, len(in))
			if len(s.Traces) > maxDevices {
				t.Errorf("%s: %d devices", name, len(s.Traces))
			}
		}
	}
}

// TestSlowly reads through one-byte reads: every window boundary falls everywhere.
func TestSlowly(t *testing.T) {
	for _, name := range []string{"snapshot_rank3.pickle", "cpp.pickle", "old.pkl", "page.html"} {
		data := read(t, name)
		s, err := Decode(context.Background(), iotest.OneByteReader(bytes.NewReader(data)), Options{})
		if err != nil {
			t.Fatal(err)
		}
		if got, want := dumped(s), dumped(decodeBytes(t, data)); !bytes.Equal(got, want) {
			t.Errorf("%s: %s", name, difference(string(got), string(want)))
		}
	}
}

// TestStops checks that a context that is done ends a reading.
func TestStops(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := Decode(ctx, bytes.NewReader(read(t, "old.pkl")), Options{}); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	s, err := Decode(context.Background(), bytes.NewReader(read(t, "snapshot_rank3.pickle")), Options{Bytes: 1000})
	if err != nil || len(s.Damage) < 2 || !strings.Contains(s.Damage[len(s.Damage)-1].Text, "more than 1000 bytes") {
		t.Errorf("limited: %v %v", s, err)
	}
}

func FuzzDecode(f *testing.F) {
	for _, name := range []string{"snapshot_rank3.pickle", "cpp.pickle", "old.pkl", "refused.pickle", "hostile.pickle", "page.html", "timeline_memory.json", "timeline_raw_memory.json"} {
		if data, err := os.ReadFile("testdata/" + name); err == nil {
			f.Add(data)
		}
	}
	f.Add(alike(20, func(i int) string { return fmt.Sprintf("}\x94(h\x01h\x04h\x02M%c\x02h\x03K\x05u", byte(i)) }, func(int) string { return "" }))
	f.Add(history(3))
	f.Fuzz(func(t *testing.T, data []byte) {
		if isPickle(data) {
			if d := bothWays(data, nil); d != "" {
				t.Fatalf("opcode by opcode it is read in another way: %s", d)
			}
		}
		s, err := Decode(context.Background(), bytes.NewReader(data), Options{})
		var at *pickle.Error
		switch {
		case err == nil:
			if s.Form != "trace_plot" && data[0] != 0x1f {
				wellFormed(t, s, len(data))
			}
		case isPickle(data) && !errors.As(err, &at):
			t.Fatalf("error without a place: %v", err)
		case errors.As(err, &at) && isPickle(data) && (at.Offset < 0 || at.Offset > int64(len(data))):
			t.Fatalf("error outside: %v", err)
		}
	})
}
