package engine_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/inquest-dev/inquest/internal/evidence"
	"github.com/inquest-dev/inquest/internal/incident"
	"github.com/inquest-dev/inquest/internal/testkit/allocmodel"
)

const mib = 1 << 20

// A loop is a training loop of a small model, as the allocator sees it.
type loop struct {
	allocmodel.Program
	next int
}

var loopFrames = []evidence.MemFrame{
	{Name: "main", File: "/srv/tune/train.py", Line: 201},
	{Name: "forward", File: "/opt/venv/lib/python3.11/site-packages/torch/nn/modules/linear.py", Line: 125},
	{Name: "forward", File: "/srv/tune/model.py", Line: 64},
	{Name: "torch::autograd::Engine::thread_main(std::shared_ptr<torch::autograd::GraphTask> const&)", File: "??"},
	{Name: "_init_group", File: "/opt/venv/lib/python3.11/site-packages/torch/optim/adamw.py", Line: 176},
	{Name: "record", File: "/srv/tune/history.py", Line: 33},
	{Name: "_allocate_kv_cache", File: "/opt/venv/lib/python3.11/site-packages/vllm/worker/cache_engine.py", Line: 75},
	{Name: "sample", File: "/srv/tune/rollout.py", Line: 18},
}

const (
	inForward = 1 + iota
	inBackward
	inOptimizer
	inRecord
	inCache
	inSample
)

func newLoop() *loop {
	return &loop{Program: allocmodel.Program{Frames: loopFrames, Stacks: [][]uint32{nil, {1, 2, 0}, {3}, {4, 0}, {5, 0}, {6, 0}, {7, 0}}}}
}

func (l *loop) alloc(size int64, stack uint32) int {
	l.next++
	l.Ops = append(l.Ops, allocmodel.Op{Kind: allocmodel.Alloc, ID: l.next, Size: size, Stack: stack, Wait: 900})
	return l.next
}

func (l *loop) free(ids ...int) {
	for _, id := range ids {
		l.Ops = append(l.Ops, allocmodel.Op{Kind: allocmodel.Free, ID: id})
	}
}

// step trains once, keeps what the loop keeps, and lets go of what it lets go of.
func (l *loop) step(first bool, keep func()) {
	var acts []int
	for i := range 6 {
		acts = append(acts, l.alloc(int64(20+i)*mib, inForward))
	}
	for i := len(acts) - 1; i >= 0; i-- {
		g := l.alloc(12*mib, inBackward)
		l.free(acts[i], g)
	}
	if first {
		l.alloc(60*mib, inOptimizer)
	}
	l.free(l.alloc(8*mib, inOptimizer))
	if keep != nil {
		keep()
	}
}

// dump is the snapshot of the loop on a card of a size, in a folder of its own.
func (l *loop) dump(t *testing.T, capacity int64) string {
	t.Helper()
	run := allocmodel.Simulate(l.Ops, allocmodel.Default(), allocmodel.Device{Capacity: capacity}, allocmodel.Options{})
	var b bytes.Buffer
	if err := allocmodel.WritePickle(&b, run.Snapshot(&l.Program, allocmodel.SnapOptions{}), allocmodel.CPython); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "snapshot.pickle")
	if err := os.WriteFile(path, b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestKept: tensors that a loop keeps are the cause on every card on which they run out of room, also
// where another layout would have served the one request that was refused.
func TestKept(t *testing.T) {
	served := 0
	for capacity := int64(900 * mib); capacity < 1000*mib; capacity += 10 * mib {
		l := newLoop()
		for n := range 60 {
			l.step(n == 0, func() { l.alloc(15*mib, inRecord) })
		}
		inc := diagnose(t, l.dump(t, capacity))
		if len(inc.Hypotheses) == 0 || inc.Hypotheses[0].Cause != "metric-state-kept" || inc.Remedy == nil || inc.Remedy.Entry != "metric-state-kept" {
			t.Errorf("%d MiB: %+v, remedy %+v", capacity/mib, inc.Hypotheses, inc.Remedy)
		}
		if h := hypothesis(inc, "fragmentation"); h != nil && h.Standing == incident.Established {
			t.Errorf("%d MiB: fragmentation is established", capacity/mib)
		}
		if h := hypothesis(inc, "retained-graph"); h != nil && h.Standing == incident.Established {
			t.Errorf("%d MiB: a retained graph is established", capacity/mib)
		}
		if f, ok := inc.Facts["replay.avoided_by"]; ok && f.Text != "" {
			served++
		}
	}
	if served == 0 {
		t.Error("on no card expandable segments would have served the request")
	}
}

// TestNotKept: what a loop keeps for a while, or once, is no cause of anything, and no failure.
func TestNotKept(t *testing.T) {
	var held []int
	for what, keep := range map[string]func(l *loop, n int){
		"a queue of the newest": func(l *loop, n int) {
			held = append(held, l.alloc(15*mib, inRecord))
			if len(held) > 10 {
				l.free(held[0])
				held = held[1:]
			}
		},
		"a warm-up": func(l *loop, n int) {
			if n < 8 {
				l.alloc(15*mib, inRecord)
			}
		},
	} {
		l := newLoop()
		held = nil
		for n := range 40 {
			l.step(n == 0, func() { keep(l, n) })
		}
		if inc := diagnose(t, l.dump(t, 1<<40)); inc.FirstFault != nil || len(inc.Hypotheses) > 0 {
			t.Errorf("%s: %+v, %+v", what, inc.FirstFault, inc.Hypotheses)
		}
	}
}

// TestCache: where a KV cache fills the card, a smaller micro-batch is not what is advised.
func TestCache(t *testing.T) {
	l := newLoop()
	for range 8 {
		l.alloc(100*mib, inCache)
	}
	for range 5 {
		l.free(l.alloc(40*mib, inSample))
	}
	l.alloc(300*mib, inSample)
	inc := diagnose(t, l.dump(t, 1000*mib))
	if len(inc.Hypotheses) == 0 || inc.Hypotheses[0].Cause != "kv-cache-oversized" {
		t.Errorf("%+v", inc.Hypotheses)
	}
}
