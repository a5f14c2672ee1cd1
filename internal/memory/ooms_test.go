package memory_test

import (
	"testing"

	"github.com/inquest-dev/inquest/internal/evidence"
	"github.com/inquest-dev/inquest/internal/incident"
	"github.com/inquest-dev/inquest/internal/testkit/allocmodel"
)

func checkOOMs(t *testing.T, c *allocmodel.Case, got []incident.MemoryOOM, active []int64, from int) {
	t.Helper()
	var want []int
	for i, e := range c.Run.Events {
		if i >= from && e.Action == evidence.MemOOM {
			want = append(want, i)
		}
	}
	if len(got) != len(want) && len(want) <= 200 {
		t.Fatalf("seed %d: %d refused requests, want %d", c.Seed, len(got), len(want))
	}
	for n := range got {
		i := want[n]
		if len(want) > 200 {
			break
		}
		e := c.Run.Events[i]
		o := got[n]
		if o.Event != i-from || o.Request != e.Size || o.DeviceFree != int64(e.Addr) || o.Reserved != c.Run.Reserved[i] || o.Active != active[i] {
			t.Fatalf("seed %d: refused %+v, want event %d, request %d, free %d, reserved %d, active %d", c.Seed, o, i-from, e.Size, e.Addr, c.Run.Reserved[i], active[i])
		}
	}
}
