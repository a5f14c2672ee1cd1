package catalog

import (
	"bytes"
	"flag"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "regenerate encyclopedia/compiled")

const encyclopediaDir = "../../encyclopedia"

// TestLint reports everything that is wrong with the encyclopedia.
func TestLint(t *testing.T) {
	for _, p := range Lint(os.DirFS(encyclopediaDir)) {
		t.Errorf("encyclopedia/%s", p)
	}
}

// TestCompiledCurrent compares the generated files with what would be generated
// now, and with -update writes them.
func TestCompiledCurrent(t *testing.T) {
	want, err := Compile(os.DirFS(encyclopediaDir))
	if err != nil {
		t.Fatal(err)
	}
	have := map[string][]byte{}
	err = filepath.WalkDir(filepath.Join(encyclopediaDir, "compiled"), func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		rel, err := filepath.Rel(encyclopediaDir, name)
		if err != nil {
			return err
		}
		have[filepath.ToSlash(rel)], err = os.ReadFile(name)
		return err
	})
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	for _, name := range sortedKeys(want) {
		file := filepath.Join(encyclopediaDir, filepath.FromSlash(name))
		switch {
		case bytes.Equal(have[name], want[name]):
		case !*update:
			t.Errorf("%s is not current; run go test ./internal/catalog -run TestCompiledCurrent -update", name)
		default:
			if err := os.MkdirAll(filepath.Dir(file), 0o777); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(file, want[name], 0o666); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, name := range sortedKeys(have) {
		if _, ok := want[name]; ok {
			continue
		}
		if !*update {
			t.Errorf("%s is left over; run with -update", name)
		} else if err := os.Remove(filepath.Join(encyclopediaDir, filepath.FromSlash(name))); err != nil {
			t.Fatal(err)
		}
	}
}

// required are the entries that must exist: programs rely on these ids.
var required = map[string]string{
	"device-memory": `batch-or-activation-too-large model-states-too-large missing-activation-checkpointing optimizer-first-step
		sequence-spike outlier-sample logits-materialised kv-cache-oversized retained-graph metric-state-kept eval-without-no-grad
		eval-outputs-on-gpu eval-beside-training checkpoint-on-gpu resume-spike save-gathers-full-state load-before-sharding
		all-ranks-on-gpu0 rank-imbalance other-process-on-gpu dead-process-holds-memory fragmentation outside-torch-allocator
		cuda-graph-pool memory-fraction-limit alloc-config-conflict exception-holds-tensors grad-accumulation-unsharded
		bogus-allocation-size anomaly-mode-leak nan-skip-leaks-graph kernel-resource-limit`,
	"host-memory": `host-ram host-leak-per-step cgroup-limit shm-exhausted pinned-memory`,
	"numerics": `nan-lr-batch-mismatch nan-precision-overflow nan-bad-sample nan-empty-labels nan-attention-mask nan-kernel-bug
		nan-comm-race nan-after-oom-recovery nan-hidden-by-framework nan-unknown`,
	"distributed": `uneven-work rank0-long-preprocess collective-not-called-by-all oom-recovery-desync rendezvous-failed network-fault
		collective-config data-loader-stall slow-storage`,
	"device": `hardware-fault illegal-access label-out-of-range version-mismatch`,
	"outside": `missing-dependency access-denied preempted-or-requeued time-limit killed-unknown interrupted disk-full checkpoint-corrupt
		data-loader-died code-error undetermined`,
}

func TestRequiredEntries(t *testing.T) {
	c, err := Load(os.DirFS(encyclopediaDir))
	if err != nil {
		t.Fatal(err)
	}
	heads := c.Entries()
	for _, area := range Areas {
		for _, id := range strings.Fields(required[area]) {
			at := slices.IndexFunc(heads, func(h Head) bool { return h.ID == id })
			switch {
			case at < 0:
				t.Errorf("entry %s/%s is missing", area, id)
			case heads[at].Area != area:
				t.Errorf("entry %s is in area %s, not %s", id, heads[at].Area, area)
			}
		}
	}
}

// TestIDs compares encyclopedia/ids.txt, which holds every id ever published, with the
// entries: an id exists, or names the entry that took its place.
func TestIDs(t *testing.T) {
	c, err := Load(os.DirFS(encyclopediaDir))
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(filepath.Join(encyclopediaDir, "ids.txt"))
	if err != nil {
		t.Fatal(err)
	}
	listed := map[string]bool{}
	for line := range strings.Lines(string(data)) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		id, successor, retired := strings.Cut(line, " -> ")
		if listed[id] {
			t.Errorf("ids.txt lists %s twice", id)
		}
		listed[id] = true
		_, err := c.Entry(id)
		switch {
		case retired && err == nil:
			t.Errorf("ids.txt retires %s, which exists", id)
		case retired:
			if _, err := c.Entry(successor); err != nil {
				t.Errorf("ids.txt: %s has the successor %s, which does not exist", id, successor)
			}
		case err != nil:
			t.Errorf("%s is gone; ids.txt must name its successor", id)
		}
	}
	for _, h := range c.Entries() {
		if !listed[h.ID] {
			t.Errorf("ids.txt lacks %s", h.ID)
		}
	}
}
