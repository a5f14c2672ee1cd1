package allocmodel

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"github.com/inquest-dev/inquest/internal/evidence"
)

const mib = 1 << 20

func TestRound(t *testing.T) {
	div := func(d int64) Settings {
		s := Default()
		for i := range s.Roundup {
			s.Roundup[i] = d
		}
		return s
	}
	for _, c := range []struct {
		size, div, block, request int64
	}{
		{1, 0, 512, 2 * mib}, {513, 0, 1024, 2 * mib}, {mib, 0, mib, 2 * mib}, {mib + 1, 0, mib + 512, 20 * mib},
		{10485759, 0, 10485760, 10485760}, {10485761, 0, 10486272, 12582912}, {104857601, 0, 104858112, 106954752},
		{1200, 4, 1536, 2 * mib}, {3000, 4, 3072, 2 * mib}, {5242881, 4, 6291456, 20 * mib}, {5242881, 8, 5767168, 20 * mib},
		{1074790400, 16, 1140850688, 1140850688}, {10 << 20, 4, 10 << 20, 10 << 20}, {8 << 20, 4, 8 << 20, 20 * mib},
	} {
		got := div(c.div).Round(c.size)
		if got != c.block || Request(got) != c.request {
			t.Errorf("%d with %d divisions: block %d, request %d; want %d, %d", c.size, c.div, got, Request(got), c.block, c.request)
		}
	}
}

// run gives the events of ops in short.
func run(ops []Op, s Settings, d Device, o Options) (*Run, []string) {
	if d.Capacity == 0 {
		d.Capacity = 1 << 40
	}
	r := Simulate(ops, s, d, o)
	var out []string
	for _, e := range r.Events {
		at := fmt.Sprintf("+%d", (e.Addr-baseAddr)/512)
		if e.Action == evidence.MemOOM {
			at = fmt.Sprint(e.Addr)
		}
		out = append(out, fmt.Sprintf("%v %s %d", e.Action, at, e.Size))
	}
	return r, out
}

func TestRules(t *testing.T) {
	a := func(id int, size int64) Op { return Op{Kind: Alloc, ID: id, Size: size} }
	f := func(id int) Op { return Op{Kind: Free, ID: id} }
	split := func(m int64) Settings { s := Default(); s.MaxSplit = m; return s }
	exp := Default()
	exp.Expandable = true
	for _, c := range []struct {
		name string
		ops  []Op
		set  Settings
		dev  Device
		want []string
	}{
		{"a remainder of exactly 1 MiB stays whole", []Op{a(1, 12582912), f(1), a(2, 11534336), a(3, 512+mib)}, Default(), Device{}, []string{
			"segment_alloc +0 12582912", "alloc +0 12582912", "free_requested +0 12582912", "free_completed +0 12582912",
			"alloc +0 11534336", "segment_alloc +24576 20971520", "alloc +24576 1049088"}},
		{"the smallest that fits, the lowest of equals", []Op{a(1, 14*mib), a(2, 12*mib), a(3, 12*mib), f(1), f(2), f(3), a(4, 11*mib)}, Default(), Device{}, []string{
			"segment_alloc +0 14680064", "alloc +0 14680064", "segment_alloc +28672 12582912", "alloc +28672 12582912", "segment_alloc +53248 12582912", "alloc +53248 12582912",
			"free_requested +0 14680064", "free_completed +0 14680064", "free_requested +28672 12582912", "free_completed +28672 12582912", "free_requested +53248 12582912", "free_completed +53248 12582912",
			"alloc +28672 11534336"}},
		{"an oversize block serves no small request", []Op{a(1, 64*mib), f(1), a(2, 12*mib), a(3, 50*mib)}, split(32 * mib), Device{}, []string{
			"segment_alloc +0 67108864", "alloc +0 67108864", "free_requested +0 67108864", "free_completed +0 67108864",
			"segment_alloc +131072 12582912", "alloc +131072 12582912", "alloc +0 52428800"}},
		{"retry gives back whole segments, large before small", []Op{a(1, 30*mib), a(2, 1000), a(3, 20*mib), f(2), f(1), a(4, 40*mib)}, Default(), Device{Capacity: 60 * mib}, []string{
			"segment_alloc +0 31457280", "alloc +0 31457280", "segment_alloc +61440 2097152", "alloc +61440 1000", "segment_alloc +65536 20971520", "alloc +65536 20971520",
			"free_requested +61440 1000", "free_completed +61440 1000", "free_requested +0 31457280", "free_completed +0 31457280",
			"segment_free +0 31457280", "segment_free +61440 2097152", "segment_alloc +106496 41943040", "alloc +106496 41943040"}},
		{"an OOM states what is free and the block's size", []Op{a(1, 30*mib), a(2, 40*mib+1)}, Default(), Device{Capacity: 60 * mib}, []string{
			"segment_alloc +0 31457280", "alloc +0 31457280", "oom 31457280 41943552"}},
		{"pages are mapped at the end of the free part", []Op{a(1, 15*mib), a(2, 15*mib), f(2), a(3, 30*mib)}, exp, Device{}, []string{
			"segment_map +0 20971520", "alloc +0 15728640", "segment_map +40960 20971520", "alloc +30720 15728640",
			"free_requested +30720 15728640", "free_completed +30720 15728640", "segment_map +81920 20971520", "alloc +30720 31457280"}},
		{"whole pages of a free block are unmapped", []Op{a(1, 15*mib), a(2, 50*mib), a(3, mib*2), f(2), {Kind: EmptyCache}}, exp, Device{}, []string{
			"segment_map +0 20971520", "alloc +0 15728640", "segment_map +40960 62914560", "alloc +30720 52428800", "alloc +133120 2097152",
			"free_requested +30720 52428800", "free_completed +30720 52428800", "segment_unmap +40960 41943040"}},
		{"another stream's use delays a free", []Op{a(1, 12*mib), {Kind: Use, ID: 1, Stream: Stream(1)}, f(1), a(2, 12*mib), {Kind: Done, Stream: Stream(1)}, a(3, 12*mib)}, Default(), Device{}, []string{
			"segment_alloc +0 12582912", "alloc +0 12582912", "free_requested +0 12582912", "segment_alloc +24576 12582912", "alloc +24576 12582912",
			"free_completed +0 12582912", "alloc +0 12582912"}},
	} {
		if _, got := run(c.ops, c.set, c.dev, Options{}); !slices.Equal(got, c.want) {
			t.Errorf("%s:\n got %q\nwant %q", c.name, got, c.want)
		}
	}
}

// TestHistoryTellsTheState goes through the events of many runs without knowing the
// allocator: what they say happened must lead to the segments and blocks at the end.
func TestHistoryTellsTheState(t *testing.T) {
	n := uint64(400)
	if testing.Short() {
		n = 100
	}
	ooms, kinds := 0, map[evidence.MemAction]int{}
	for seed := range n {
		c := New(seed, 150)
		r := c.Run
		if len(r.Failed) > 0 {
			ooms++
		}
		mapped := map[uint64]bool{} // by 2 MiB page, relative to the low end
		active := map[uint64]evidence.MemBlock{}
		total := int64(0)
		for i, e := range r.Events {
			kinds[e.Action]++
			pages := func(on bool) {
				for a := e.Addr; a < e.Addr+uint64(e.Size); a += segmentStep {
					if mapped[a] == on {
						t.Fatalf("seed %d, event %d: page %x is %v already", seed, i, a, on)
					}
					mapped[a] = on
				}
				if on {
					total += e.Size
				} else {
					total -= e.Size
				}
			}
			switch e.Action {
			case evidence.MemSegmentAlloc, evidence.MemSegmentMap:
				pages(true)
			case evidence.MemSegmentFree, evidence.MemSegmentUnmap:
				pages(false)
			case evidence.MemAlloc:
				if _, ok := active[e.Addr]; ok {
					t.Fatalf("seed %d, event %d: %x is in use", seed, i, e.Addr)
				}
				active[e.Addr] = evidence.MemBlock{Requested: e.Size, State: evidence.BlockActive}
			case evidence.MemFreeRequested:
				active[e.Addr] = evidence.MemBlock{Requested: e.Size, State: evidence.BlockPendingFree}
			case evidence.MemFreeCompleted:
				if active[e.Addr].State != evidence.BlockPendingFree {
					t.Fatalf("seed %d, event %d: completed without a request", seed, i)
				}
				delete(active, e.Addr)
			}
			if total != r.Reserved[i] || total > c.Device.Capacity-c.Device.Other {
				t.Fatalf("seed %d, event %d: reserved %d, by the events %d, room %d", seed, i, r.Reserved[i], total, c.Device.Capacity-c.Device.Other)
			}
			if c.Device.Limit > 0 && !r.Settings.Expandable && total > c.Device.Limit {
				t.Fatalf("seed %d, event %d: over the limit", seed, i)
			}
		}
		sum := int64(0)
		for _, s := range r.Segments {
			at := s.Addr
			for _, b := range r.Blocks[s.First : s.First+s.N] {
				if b.Addr != at || b.Size <= 0 {
					t.Fatalf("seed %d: block at %x, want %x", seed, b.Addr, at)
				}
				at += uint64(b.Size)
				want, ok := active[b.Addr]
				if ok != (b.State != evidence.BlockInactive) || ok && (want.State != b.State || want.Requested != b.Requested) {
					t.Fatalf("seed %d: block %+v, by the events %+v", seed, b, want)
				}
				delete(active, b.Addr)
			}
			if at != s.Addr+uint64(s.Total) || !mapped[s.Addr] {
				t.Fatalf("seed %d: segment %+v", seed, s)
			}
			sum += s.Total
		}
		if sum != total || len(active) > 0 {
			t.Fatalf("seed %d: %d bytes in segments, %d by the events; %d blocks in none", seed, sum, total, len(active))
		}
	}
	for a := evidence.MemAlloc; a <= evidence.MemSnapshotMark; a++ {
		if kinds[a] == 0 {
			t.Errorf("no %v in %d runs", a, n)
		}
	}
	if ooms < int(n)/10 || ooms > int(n)*9/10 {
		t.Errorf("%d of %d runs ran out of memory", ooms, n)
	}
	t.Logf("%d runs, %d with OOM, %v", n, ooms, kinds)
}

// TestCasesDiffer holds the generator to programs for which the settings decide.
func TestCasesDiffer(t *testing.T) {
	better, worse, same := 0, 0, 0
	for seed := range uint64(200) {
		c := New(seed, 120)
		for _, s := range c.Settings.Alternatives() {
			r := c.Under(s, c.Device)
			switch failed := len(r.Failed) > 0; {
			case failed && len(c.Run.Failed) == 0:
				worse++
			case !failed && len(c.Run.Failed) > 0:
				better++
			default:
				same++
			}
		}
	}
	t.Logf("another setting avoids the failure %d times, brings one %d times, changes nothing in that %d times", better, worse, same)
	if better < 60 || worse < 25 {
		t.Error("the devices are such that settings hardly matter")
	}
}

func TestSameSeedSameCase(t *testing.T) {
	for seed := range uint64(20) {
		var a, b bytes.Buffer
		if err := WritePickle(&a, New(seed, 120).Snapshot(), CPython); err != nil {
			t.Fatal(err)
		}
		if err := WritePickle(&b, New(seed, 120).Snapshot(), CPython); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(a.Bytes(), b.Bytes()) {
			t.Fatalf("seed %d: two runs differ", seed)
		}
	}
}

// dump is the tree as JSON, the long way round: it knows nothing of pickles.
func dump(v any) any {
	switch v := v.(type) {
	case *dict:
		out := map[string]any{}
		for i, k := range v.keys {
			out[k.s] = dump(v.vals[i])
		}
		return out
	case *list:
		out := []any{}
		for _, x := range v.items {
			out = append(out, dump(x))
		}
		return out
	case *tuple:
		return map[string]any{"tuple": dump(&list{v.items})}
	case *text:
		return v.s
	}
	return v
}

const check = `
import json, pickle, sys
def flat(v):
    if isinstance(v, dict): return {k: flat(x) for k, x in v.items()}
    if isinstance(v, tuple): return {"tuple": [flat(x) for x in v]}
    if isinstance(v, list): return [flat(x) for x in v]
    return v
for name in sys.argv[1:]:
    raw = open(name, "rb").read()
    v = pickle.loads(raw)
    if flat(v) != json.load(open(name + ".json")): sys.exit(name + ": another object")
    stacks = {id(e["frames"]) for t in v["device_traces"] for e in t if "frames" in e}
    texts = {json.dumps(e["frames"]) for t in v["device_traces"] for e in t if "frames" in e}
    if len(stacks) != len(texts): sys.exit(name + ": stacks are not shared")
    if raw[1] == 4 and pickle.dumps(v, 4) != raw: sys.exit(name + ": CPython writes other bytes")
    if raw[1] != 4 and raw[:2] != b"\x80\x02": sys.exit(name + ": protocol")
print("ok")
`

func TestPythonReadsPickles(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("no python3")
	}
	dir := t.TempDir()
	args := []string{"-c", check}
	for seed, size := range []int{60, 150, 400, 3000} {
		c := New(uint64(seed)+40, size)
		if size == 3000 {
			c.Device.Capacity, c.Device.Limit, c.Snap.Ring = 1<<42, 0, 0
			c.Run = Simulate(c.Program.Ops, c.Settings, c.Device, c.Options)
		}
		s := c.Snapshot()
		s.Notes = append(s.Notes, evidence.MemNote{Context: "N/A", User: "caf\u00e9"}, evidence.MemNote{Category: "gradient"})
		for i, e := range s.Traces[0].All() {
			e.Note = uint32(i % 3)
		}
		js, err := json.Marshal(dump(compose(s)))
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range []Pickler{CPython, Torch} {
			name := filepath.Join(dir, fmt.Sprintf("%d-%d.pickle", seed, p))
			var b bytes.Buffer
			if err := WritePickle(&b, s, p); err != nil {
				t.Fatal(err)
			}
			for ext, data := range map[string][]byte{"": b.Bytes(), ".json": js} {
				if err := os.WriteFile(name+ext, data, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			args = append(args, name)
		}
	}
	if out, err := exec.Command(python, args...).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}
