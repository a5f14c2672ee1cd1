package allocmodel

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/inquest-dev/inquest/internal/evidence"
)

// torchTools runs each pickle through all that torch/cuda/_memory_viz.py does with one, and prints what
// adds up: bytes of blocks in use as asked for, of all blocks, entries.
const torchTools = `
import importlib.util, json, os, pickle, re, sys, contextlib, io
torch = importlib.util.find_spec("torch")
if torch is None or not torch.origin: print("no torch"); sys.exit()
at = os.path.join(os.path.dirname(torch.origin), "cuda", "_memory_viz.py")
spec = importlib.util.spec_from_file_location("memory_viz", at)
viz = importlib.util.module_from_spec(spec); spec.loader.exec_module(viz)
lines = lambda s: s
total = lambda text: sum(int(l.rsplit(" ", 1)[1]) for l in text.splitlines())
got = []
for name in sys.argv[1:]:
    load = lambda: pickle.load(open(name, "rb"))
    s = load()
    active = "".join(l + "\n" for l in viz.memory(s, format_flamegraph=lines).splitlines() if ";active_allocated;" in l and ";<gaps> " not in l)
    head = viz.segsum(s)
    n = [int(x) for x in re.findall(r"^(\d+) entries$", viz.trace(s), re.M)]
    with contextlib.redirect_stdout(io.StringIO()):
        viz.compare([], s["segments"], format_flamegraph=lines)
    for html in [viz.trace_plot(s), viz.trace_plot(s, plot_segments=True), viz.segment_plot(s)]:
        assert "base64" in html
    got.append({"requested": total(active), "reserved": total(viz.segments(s, format_flamegraph=lines)), "segments": int(re.search(r"^segments: (\d+)$", head, re.M)[1]), "entries": sum(n)})
print(json.dumps(got))
`

// What the generator writes must be what PyTorch's own tools take, with the sums that they make of it.
func TestTorchToolsTakePickles(t *testing.T) {
	python, err := exec.LookPath(cmp.Or(os.Getenv("TORCH_PYTHON"), "python3"))
	if err != nil {
		t.Skip("no python3")
	}
	type sums struct{ Requested, Reserved, Segments, Entries int64 }
	var want []sums
	dir := t.TempDir()
	args := []string{"-c", torchTools}
	for seed := range 24 {
		c := New(uint64(seed)+900, 40+seed*30)
		s := c.Snapshot()
		var b bytes.Buffer
		if err := WritePickle(&b, s, Pickler(seed%2)); err != nil {
			t.Fatal(err)
		}
		name := filepath.Join(dir, fmt.Sprintf("%d.pickle", seed))
		if err := os.WriteFile(name, b.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
		args = append(args, name)
		w := sums{Segments: int64(len(s.Segments)), Entries: int64(s.Traces[c.Device.Index].Len())}
		for _, seg := range s.Segments {
			w.Reserved += seg.Total
		}
		for _, k := range s.Blocks {
			if k.State == evidence.BlockActive {
				w.Requested += k.Requested
			}
		}
		want = append(want, w)
	}
	out, err := exec.Command(python, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if string(out) == "no torch\n" {
		t.Skip("python3 has no torch; TORCH_PYTHON names an interpreter that has")
	}
	var got []sums
	if err := json.Unmarshal(out, &got); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for i, w := range want {
		if got[i] != w {
			t.Errorf("case %d: %+v, want %+v", i, got[i], w)
		}
	}
}
