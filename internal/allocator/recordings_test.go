package allocator_test

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/inquest-dev/inquest/internal/allocator"
	"github.com/inquest-dev/inquest/internal/evidence"
	"github.com/inquest-dev/inquest/internal/reader/memsnap"
)

var recordingsDir = flag.String("recordings", "../../testdata/allocator", "where the recordings of PyTorch's allocator are")

// A recording is what scripts/allocator-recordings/record.py writes beside a snapshot.
type recording struct {
	Torch   string
	Allowed int64 // bytes that the allocator may have in all
	Job     struct {
		Conf     string
		Fraction float64
		Entries  int // of the ring, 0: all
		Workload string
	}
	Recorded truth
	WhatIf   []struct {
		Change struct {
			Conf string
			Room int64
		}
		Allowed int64
		truth
	} `json:"what_if"`
}

// A truth is what really happened.
type truth struct {
	Requests     int
	Failed       []int
	PeakReserved int64 `json:"peak_reserved"`
	Retries      int
}

func (t *truth) verdict() allocator.Verdict {
	if len(t.Failed) > 0 {
		return allocator.NotAvoided
	}
	return allocator.Avoided
}

// The allocators that PyTorch ships, run over a stand-in for the driver, are repeated
// exactly; and what another setting is said to change is what it did change.
func TestRecordings(t *testing.T) {
	names, err := filepath.Glob(filepath.Join(*recordingsDir, "*", "*.json"))
	if err != nil || len(names) == 0 {
		t.Fatalf("no recordings: %v", err)
	}
	for _, name := range names {
		base := strings.TrimSuffix(name, ".json")
		t.Run(filepath.Base(filepath.Dir(name))+"/"+filepath.Base(base), func(t *testing.T) {
			rec := readRecording(t, name)
			snap := readSnapshot(t, base+".pickle.gz")
			r := examine(t, snap, &rec, rec.Allowed)
			checkFidelity(t, &rec, r)
			checkAnswers(t, &rec, r)
			checkWithout(t, snap, &rec)
		})
	}
}

func readRecording(t *testing.T, name string) (rec recording) {
	t.Helper()
	text, err := os.ReadFile(name)
	if err == nil {
		err = json.Unmarshal(text, &rec)
	}
	if err != nil {
		t.Fatal(err)
	}
	return rec
}

func readSnapshot(t *testing.T, path string) *evidence.MemSnapshot {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	s, err := memsnap.Decode(context.Background(), f, memsnap.Options{Artifact: filepath.Base(path)})
	if err != nil {
		t.Fatal(err)
	}
	if len(s.Damage) > 0 {
		t.Fatalf("damaged: %v", s.Damage)
	}
	return s
}

func examine(t *testing.T, snap *evidence.MemSnapshot, rec *recording, capacity int64) *allocator.Replay {
	t.Helper()
	o := allocator.Options{Capacity: capacity}
	for _, w := range rec.WhatIf {
		c := allocator.Change{Conf: w.Change.Conf}
		if w.Change.Room > 0 {
			c.Capacity = w.Allowed
		}
		o.Try = append(o.Try, c)
	}
	r, err := allocator.Examine(context.Background(), snap, 0, o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// checkFidelity requires every block where it was and every segment event. Of a ring
// that begins later it does not: which of two equal free blocks came first is lost.
func checkFidelity(t *testing.T, rec *recording, r *allocator.Replay) {
	t.Helper()
	f := r.Fidelity
	t.Logf("torch %s %q, rules of %v: ok %v (%s); allocs %d/%d in place, segment events %d/%d +%d, reserved off by %d, end %d, ooms %d/%d +%d, forced %d, contradictions %d, lacks %q",
		rec.Torch, rec.Job.Conf, r.Version, f.OK, f.Why, f.SameAddress, f.Allocs, f.Matched, f.Segments, f.Extra, f.CurveWorst, f.FinalBytes, f.OOMsSame, f.OOMs, f.OOMsExtra, f.Forced, f.Contradict, r.Lacks)
	if !f.OK || f.Matched != f.Segments || f.Extra != 0 || f.CurveWorst != 0 || f.FinalBytes != 0 || !f.FinalSame || f.OOMsExtra != 0 || f.Forced != 0 || f.Contradict != 0 {
		t.Errorf("not repeated exactly")
	}
	if f.SameAddress != f.Allocs && rec.Job.Entries == 0 {
		t.Errorf("%d of %d allocations are not where they were", f.Allocs-f.SameAddress, f.Allocs)
	}
	if f.OOMs != len(rec.Recorded.Failed) || f.OOMsSame != f.OOMs {
		t.Errorf("%d oom entries, %d repeated; %d requests failed", f.OOMs, f.OOMsSame, len(rec.Recorded.Failed))
	}
}

// checkAnswers compares with what happened when the setting was really changed. An
// answer may be left open where the record lacks what decides it: how blocks from
// before a ring would lie, and when the requests of a private pool were captured.
func checkAnswers(t *testing.T, rec *recording, r *allocator.Replay) {
	t.Helper()
	if len(r.Answers) != len(rec.WhatIf) {
		t.Fatalf("%d answers to %d questions", len(r.Answers), len(rec.WhatIf))
	}
	for i, a := range r.Answers {
		w := &rec.WhatIf[i]
		said := fmt.Sprintf("%s within %d: %v, peak %d, flushes %d; in truth %v, peak %d, retries %d (%s)",
			a.Change, w.Allowed, a.Verdict, a.Peak.Reserved, a.Flushes, w.verdict(), w.PeakReserved, w.Retries, a.Why)
		t.Log(said)
		open := rec.Job.Entries > 0 && strings.Contains(a.Why, "before the trace") || strings.Contains(a.Why, "capture") && usesPools(rec)
		switch {
		case a.Verdict == allocator.CannotTell && !open:
			t.Errorf("left open: %s", said)
		case a.Verdict != allocator.CannotTell && a.Verdict != w.verdict():
			t.Errorf("wrong: %s", said)
		case a.Verdict == allocator.Avoided && rec.Job.Entries == 0 && (a.Peak.Reserved != w.PeakReserved || a.Flushes != w.Retries):
			t.Errorf("in another way: %s", said)
		}
	}
}

func usesPools(rec *recording) bool {
	return rec.Job.Workload == "private_pools" || rec.Job.Workload == "pool_for_use"
}

// checkWithout gives no capacity: then an oom entry shows it, or a change of settings
// has no answer but an open one.
func checkWithout(t *testing.T, snap *evidence.MemSnapshot, rec *recording) {
	t.Helper()
	r := examine(t, snap, rec, 0)
	if len(rec.Recorded.Failed) > 0 && rec.Job.Fraction == 0 && r.Room.Bytes != rec.Allowed {
		t.Errorf("room %d is taken from the record, it was %d", r.Room.Bytes, rec.Allowed)
	}
	for i, a := range r.Answers {
		if w := &rec.WhatIf[i]; a.Verdict != allocator.CannotTell && a.Verdict != w.verdict() {
			t.Errorf("wrong without a capacity: %s: %v, in truth %v (%s)", a.Change, a.Verdict, w.verdict(), a.Why)
		}
	}
}
