package memory_test

import (
	"context"
	"strings"
	"testing"

	"github.com/inquest-dev/inquest/internal/evidence"
	"github.com/inquest-dev/inquest/internal/incident"
	"github.com/inquest-dev/inquest/internal/memory"
)

func snapshots(t *testing.T, ranks []int, all ...*evidence.MemSnapshot) []incident.MemorySnapshot {
	t.Helper()
	var out []incident.MemorySnapshot
	for i, m := range all {
		s, err := memory.Examine(context.Background(), m, memory.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if ranks != nil {
			s.Rank = &ranks[i]
		}
		out = append(out, *s)
	}
	return out
}

func TestRanks(t *testing.T) {
	heavy := newProgramOf(4)
	for range 10 {
		heavy.alloc(20*mib, "plain", 333)
	}
	even := newProgramOf(4).snapshot(0)
	r := memory.Ranks(snapshots(t, []int{0, 1, 2, 3}, even, even, heavy.snapshot(0), even))
	if len(r.Rows) != 4 || len(r.Differs) != 1 || !strings.HasPrefix(r.Differs[0].Text, "rank 2, GPU 0 peaks at") || !strings.Contains(r.Differs[0].Text, ":333)") {
		t.Errorf("%+v", r)
	}
	if r.Cause == nil || !r.Cause.Value || len(r.Cause.Spans) == 0 {
		t.Errorf("out of balance: %+v", r.Cause)
	}
	r = memory.Ranks(snapshots(t, []int{0, 1}, even, even))
	if len(r.Differs) != 0 || r.Cause == nil || r.Cause.Value {
		t.Errorf("in balance: %+v", r)
	}
	if r = memory.Ranks(snapshots(t, nil, even, heavy.snapshot(0))); r.Cause != nil {
		t.Errorf("whether files without a rank are of one job is not known: %+v", r.Cause)
	}
	if r = memory.Ranks(snapshots(t, nil, even)); r != nil {
		t.Errorf("one snapshot beside itself: %+v", r)
	}
}

func TestChange(t *testing.T) {
	p := newProgramOf(3)
	before := p.snapshot(0)
	before.Artifact = "z-before"
	for range 5 {
		p.alloc(3*mib, "plain", 444)
	}
	after := p.snapshot(0)
	after.Artifact = "a-after"
	one, two := 1, 2
	prints := []*memory.Print{memory.PrintOf(after, nil, nil), memory.PrintOf(before, nil, nil)}
	c := memory.Change(prints, 10)
	if c == nil || c.From != "z-before" || c.To != "a-after" || c.Active != 15*mib || len(c.Grown) != 1 || c.Grown[0].Bytes != 15*mib || c.Grown[0].Blocks != 5 || len(c.Shrunk) != 0 {
		t.Errorf("%+v", c)
	}
	if c := memory.Change([]*memory.Print{memory.PrintOf(before, &one, nil), memory.PrintOf(after, &two, nil)}, 10); c != nil {
		t.Errorf("two ranks are no two moments: %+v", c)
	}
	other := newProgram()
	for i := range int64(30) {
		other.alloc((1+i)*mib, "plain", 1)
	}
	if c := memory.Change([]*memory.Print{memory.PrintOf(before, nil, nil), memory.PrintOf(other.snapshot(0), nil, nil)}, 10); c != nil {
		t.Errorf("two programs are no two moments: %+v", c)
	}
}
