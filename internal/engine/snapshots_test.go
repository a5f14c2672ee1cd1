package engine_test

import (
	"bytes"
	"context"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/inquest-dev/inquest/internal/evidence"
	"github.com/inquest-dev/inquest/internal/incident"
	"github.com/inquest-dev/inquest/internal/reader/memsnap"
	"github.com/inquest-dev/inquest/internal/testkit/allocmodel"
)

// pair is the folder of a generated run that ended for want of device memory
// (testdata/snapshots/README.md).
func pair(name string) string {
	if name == "fragmentation" {
		return filepath.Join(root, "examples", name)
	}
	return filepath.Join(root, "testdata", "snapshots", name)
}

var pairs = []string{"fragmentation", "does-not-fit", "retained-graph", "optimizer-first-step", "eval-outputs"}

// laid copies files of pairs to a folder, by the name that they get there.
func laid(t *testing.T, files map[string]string) string {
	t.Helper()
	texts := map[string]string{}
	for name, from := range files {
		b, err := os.ReadFile(from)
		if err != nil {
			t.Fatal(err)
		}
		texts[name] = string(b)
	}
	return job(t, texts)
}

func file(name, what string) string {
	return filepath.Join(pair(name), map[string]string{"log": "train.log", "snapshot": "snapshot.pickle"}[what])
}

// hypothesis returns that of a cause, nil where it is no candidate.
func hypothesis(inc *incident.Incident, cause string) *incident.Hypothesis {
	for i := range inc.Hypotheses {
		if inc.Hypotheses[i].Cause == cause {
			return &inc.Hypotheses[i]
		}
	}
	return nil
}

// TestSnapshotPairs: a log and the snapshot of its failure. What is proved is proved by
// places in the snapshot.
func TestSnapshotPairs(t *testing.T) {
	for _, c := range []struct {
		name, cause, standing string
		facts                 map[string]string
		fragmentation         string // its standing
		remedy                string
	}{
		{"fragmentation", "fragmentation", incident.Established, map[string]string{"replay.faithful": "true", "replay.fits": "true", "replay.expandable_avoids": "true", "replay.avoided_by": "expandable_segments:True", "snapshot.grows": "false", "snapshot.layout": "true"}, incident.Established, "Start with PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True"},
		{"does-not-fit", "sequence-spike", incident.Supported, map[string]string{"replay.faithful": "true", "replay.fits": "false", "replay.expandable_avoids": "false", "snapshot.sequence_spike": "true"}, incident.RuledOut, "length"},
		{"retained-graph", "retained-graph", incident.Established, map[string]string{"snapshot.graph_held": "true", "replay.fits": "false"}, incident.RuledOut, "detach"},
		// The unused reserve alone is smaller than the request, but with what the device
		// had free it is not: another layout serves this request, if none after it.
		{"optimizer-first-step", "optimizer-first-step", incident.Established, map[string]string{"snapshot.optimizer_states": "true", "replay.expandable_avoids": "false", "snapshot.outside_allocator": "false"}, incident.Possible, "optimizer"},
		// The logits that evaluation keeps grow on: that expandable segments serve the
		// recorded requests is true, and no cause.
		{"eval-outputs", "eval-outputs-on-gpu", incident.Supported, map[string]string{"snapshot.eval_outputs_kept": "true", "replay.expandable_avoids": "true", "snapshot.grows": "true"}, incident.Supported, "outputs"},
	} {
		t.Run(c.name, func(t *testing.T) {
			inc := diagnose(t, file(c.name, "log"), file(c.name, "snapshot"))
			sound(t, c.name, inc)
			h := inc.Hypotheses[0]
			if h.Cause != c.cause || h.Standing != c.standing {
				t.Errorf("%s, %s; want %s, %s", h.Cause, h.Standing, c.cause, c.standing)
			}
			if inc.FirstFault.Span.Artifact != file(c.name, "log") {
				t.Errorf("the first fault is in %s; the log tells of it", inc.FirstFault.Span.Artifact)
			}
			for name, want := range c.facts {
				f := inc.Facts[name]
				in := false
				for _, sp := range f.Spans {
					in = in || sp.Artifact == file(c.name, "snapshot") && (sp.Kind == "event" || sp.Kind == "block") && sp.Quote != ""
				}
				if f.Text != want || !in {
					t.Errorf("%s is %q, proved by %+v; want %q, proved by the snapshot", name, f.Text, f.Spans, want)
				}
			}
			if f := hypothesis(inc, "fragmentation"); f == nil && c.fragmentation != incident.RuledOut || f != nil && f.Standing != c.fragmentation {
				t.Errorf("fragmentation is %v, want %s", f, c.fragmentation)
			}
			if !strings.Contains(inc.Remedy.Change, c.remedy) {
				t.Errorf("the remedy is %q", inc.Remedy.Change)
			}
			if c.cause != "fragmentation" && strings.Contains(inc.Remedy.Change, "expandable_segments") {
				t.Errorf("expandable segments are advised: %q", inc.Remedy.Change)
			}
		})
	}
}

// TestGuessedSetting: without a snapshot expandable segments are called a guess.
func TestGuessedSetting(t *testing.T) {
	inc := diagnose(t, file("fragmentation", "log"))
	if h := inc.Hypotheses[0]; h.Cause == "fragmentation" && h.Standing == incident.Established {
		t.Errorf("fragmentation is established by the log alone")
	}
	for _, text := range append(inc.Remedy.Alternatives, inc.Remedy.Change) {
		if strings.Contains(text, "expandable_segments") && !strings.Contains(text, "guess") {
			t.Errorf("advised without a proof and not called a guess: %q", text)
		}
	}
}

// later writes the snapshot of a pair with other times, or of another device.
func rewritten(t *testing.T, name string, change func(*evidence.MemSnapshot)) string {
	t.Helper()
	f, err := os.Open(file(name, "snapshot"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	m, err := memsnap.Decode(context.Background(), f, memsnap.Options{})
	if err != nil {
		t.Fatal(err)
	}
	change(m)
	out := filepath.Join(t.TempDir(), "snapshot.pickle")
	var b bytes.Buffer
	if err := allocmodel.WritePickle(&b, m, allocmodel.CPython); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(out, b.Bytes(), 0o666); err != nil {
		t.Fatal(err)
	}
	return out
}

// TestSnapshotApart: a snapshot of another failure, rank, time or device decides nothing,
// and is listed under limits.
func TestSnapshotApart(t *testing.T) {
	shifted := func(by time.Duration) func(*evidence.MemSnapshot) {
		return func(m *evidence.MemSnapshot) {
			for d := range m.Traces {
				for i := range m.Traces[d].Len() {
					m.Traces[d].At(i).Time += by.Microseconds()
				}
			}
		}
	}
	for i, name := range pairs {
		other := pairs[(i+2)%len(pairs)]
		alone := laid(t, map[string]string{"rank3.log": file(name, "log")})
		want := diagnose(t, alone)
		for what, files := range map[string]map[string]string{
			"of another failure": {"rank3.log": file(name, "log"), "oom.pickle": file(other, "snapshot")},
			"of another rank":    {"rank3.log": file(name, "log"), "snapshot_rank0.pickle": file(name, "snapshot")},
			"of another day":     {"rank3.log": file(name, "log"), "oom.pickle": rewritten(t, name, shifted(-72*time.Hour))},
			"of a later day":     {"rank3.log": file(name, "log"), "oom.pickle": rewritten(t, name, shifted(72*time.Hour))},
		} {
			t.Run(name+" "+what, func(t *testing.T) {
				if name == "optimizer-first-step" && strings.Contains(what, "day") {
					files["rank3.log"] = dated(t, files["rank3.log"])
				}
				got := diagnose(t, laid(t, files))
				if len(got.Hypotheses) != len(want.Hypotheses) || got.FirstFault.Kind != want.FirstFault.Kind || got.Remedy.Change != want.Remedy.Change {
					t.Fatalf("the snapshot changed the verdict: %d hypotheses, %q; without it %d, %q", len(got.Hypotheses), got.Remedy.Change, len(want.Hypotheses), want.Remedy.Change)
				}
				for i, h := range got.Hypotheses {
					if w := want.Hypotheses[i]; h.Cause != w.Cause || h.Standing != w.Standing || len(h.For) != len(w.For) || len(h.Against) != len(w.Against) {
						t.Errorf("%s, %s with the snapshot; %s, %s without", h.Cause, h.Standing, w.Cause, w.Standing)
					}
				}
				for fact := range got.Facts {
					if strings.HasPrefix(fact, "snapshot.") || strings.HasPrefix(fact, "replay.") {
						t.Errorf("%s is taken from it", fact)
					}
				}
				said := false
				for _, l := range got.Limits {
					said = said || strings.Contains(l.Text, "decides nothing here")
				}
				if !said {
					t.Error("no limit says that a snapshot decides nothing")
				}
			})
		}
	}
}

// dated writes a log with a line above all others whose time is read: this one has no step
// that carries one.
func dated(t *testing.T, log string) string {
	t.Helper()
	b, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(t.TempDir(), "train.log")
	first, _, _ := strings.Cut(string(b), " INFO")
	if err := os.WriteFile(out, append([]byte(first+" INFO train: step 0 loss 9.9\n"), b...), 0o666); err != nil {
		t.Fatal(err)
	}
	return out
}

// TestSnapshotAlone: a snapshot without a log tells of the failure itself.
func TestSnapshotAlone(t *testing.T) {
	for name, cause := range map[string]string{"fragmentation": "fragmentation", "retained-graph": "retained-graph", "optimizer-first-step": "optimizer-first-step", "eval-outputs": "eval-outputs-on-gpu", "does-not-fit": "sequence-spike"} {
		inc := diagnose(t, file(name, "snapshot"))
		f := inc.FirstFault
		if inc.Outcome != "failed" || f == nil || f.Kind != "device_oom" || f.Span.Kind != "event" || f.Span.Quote == "" || f.Span.Index == 0 {
			t.Errorf("%s: outcome %s, first fault %+v", name, inc.Outcome, f)
			continue
		}
		if h := inc.Hypotheses[0]; h.Cause != cause {
			t.Errorf("%s: the leading cause is %s, want %s", name, h.Cause, cause)
		}
		said := false
		for _, l := range inc.Limits {
			said = said || strings.Contains(l.Text, "from the memory snapshot alone")
		}
		if !said {
			t.Errorf("%s: no limit says that there was no log", name)
		}
	}
}

// TestSnapshotNotFailed: a snapshot without a refused request is no failure.
func TestSnapshotNotFailed(t *testing.T) {
	path := rewritten(t, "fragmentation", func(m *evidence.MemSnapshot) {
		for d := range m.Traces {
			var kept evidence.MemTrace
			for _, e := range m.Traces[d].All() {
				if e.Action != evidence.MemOOM {
					kept.Append(*e)
				}
			}
			m.Traces[d] = kept
		}
	})
	if inc := diagnose(t, path); inc.FirstFault != nil || inc.Outcome == "failed" {
		t.Errorf("outcome %s, first fault %+v", inc.Outcome, inc.FirstFault)
	}
}

// TestSnapshotEvidence: evidence files hold what a snapshot shows.
func TestSnapshotEvidence(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 9))
	var all [][]string
	for _, name := range pairs {
		dir := laid(t, map[string]string{"train.log": file(name, "log"), "snapshot.pickle": file(name, "snapshot")})
		all = append(all, []string{filepath.Join(dir, "train.log"), filepath.Join(dir, "snapshot.pickle")})
	}
	elsewhere(t)
	for _, files := range all {
		agree(t, r, files)
	}
}

// TestHostileSnapshots: damaged and contradictory snapshots are read and examined to an
// end, and never decide against the log.
func TestHostileSnapshots(t *testing.T) {
	r := rand.New(rand.NewPCG(11, 3))
	rounds := 15
	if testing.Short() {
		rounds = 2
	}
	for _, name := range pairs {
		whole, err := os.ReadFile(file(name, "snapshot"))
		if err != nil {
			t.Fatal(err)
		}
		log, err := os.ReadFile(file(name, "log"))
		if err != nil {
			t.Fatal(err)
		}
		for range rounds {
			b := bytes.Clone(whole)
			for range 1 + r.IntN(8) {
				b[r.IntN(len(b))] = byte(r.Uint32())
			}
			if r.IntN(4) == 0 {
				b = b[:r.IntN(len(b))]
			}
			inc := diagnose(t, job(t, map[string]string{"train.log": string(log), "snapshot.pickle": string(b)}))
			if inc.FirstFault == nil || inc.FirstFault.Kind != "device_oom" {
				t.Fatalf("%s: the first fault is %+v", name, inc.FirstFault)
			}
		}
		// Numbers that contradict each other.
		for range rounds / 2 {
			path := rewritten(t, name, func(m *evidence.MemSnapshot) { contradict(r, m) })
			diagnose(t, file(name, "log"), path)
		}
	}
}

// contradict changes a few numbers of a snapshot.
func contradict(r *rand.Rand, m *evidence.MemSnapshot) {
	odd := func() int64 { return []int64{0, -1, 1, 1 << 62, -1 << 62, 511, 1 << 40}[r.IntN(7)] }
	for range 1 + r.IntN(6) {
		switch r.IntN(5) {
		case 0:
			if len(m.Segments) > 0 {
				m.Segments[r.IntN(len(m.Segments))].Total = odd()
			}
		case 1:
			if len(m.Blocks) > 0 {
				b := &m.Blocks[r.IntN(len(m.Blocks))]
				b.Size, b.State = odd(), uint8(r.IntN(3))
			}
		default:
			if t := &m.Traces[0]; t.Len() > 0 {
				e := t.At(r.IntN(t.Len()))
				switch r.IntN(4) {
				case 0:
					e.Size = odd()
				case 1:
					e.Addr = uint64(odd())
				case 2:
					e.Action = evidence.MemAction(r.IntN(12))
				default:
					e.Time = odd()
				}
			}
		}
	}
}

// TestPrintedCounters: what a handler prints of the allocator stands in for what the
// failure's own message does not state.
func TestPrintedCounters(t *testing.T) {
	table, err := os.ReadFile(filepath.Join(root, "internal", "format", "memtext", "testdata", "summary-2.9.0-4.txt"))
	if err != nil {
		t.Fatal(err)
	}
	var log strings.Builder
	log.WriteString("step 1 loss 3.5\nstep 2 loss 3.4\nTraceback (most recent call last):\n  File \"/w/train.py\", line 9, in step\n    y = self.proj(x)\n" +
		"RuntimeError: CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`\n")
	for line := range strings.SplitSeq(strings.TrimSpace(string(table)), "\n") {
		log.WriteString("[rank0]: " + line + "\n")
	}
	inc := diagnose(t, job(t, map[string]string{"rank0.log": log.String()}))
	for _, name := range []string{"memory.retries", "memory.ooms", "memory.inactive_split", "memory.rounding_waste", "memory.pending_free", "oom.reserved", "oom.allocated", "oom.reserved_unallocated"} {
		f, ok := inc.Facts[name]
		if !ok || len(f.Spans) == 0 || !strings.Contains(f.Spans[0].Quote, "|") {
			t.Errorf("%s is %+v, want it from the table", name, f)
		}
	}
	if n := inc.Facts["memory.retries"].Text; n != "8" {
		t.Errorf("%s retries, the table says 8", n)
	}
}
