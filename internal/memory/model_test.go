package memory_test

import (
	"context"
	"testing"

	"github.com/inquest-dev/inquest/internal/evidence"
	"github.com/inquest-dev/inquest/internal/memory"
	"github.com/inquest-dev/inquest/internal/testkit/allocmodel"
)

// truth is what is active after each event of a run, as asked for, and what the stacks
// hold of it at the peak of the recorded part.
func truth(events []evidence.MemEvent, from int) (active []int64, peak int64, at int, byStack map[uint32]int64) {
	alive := map[uint64]evidence.MemEvent{}
	var sum int64
	peak, at = -1, -2
	for i, e := range events {
		if i == from {
			peak, at, byStack = sum, -1, stacksOf(alive)
		}
		switch e.Action {
		case evidence.MemAlloc:
			alive[e.Addr] = e
			sum += e.Size
		case evidence.MemFreeCompleted:
			sum -= alive[e.Addr].Size
			delete(alive, e.Addr)
		}
		active = append(active, sum)
		if i >= from && sum > peak {
			peak, at, byStack = sum, i-from, stacksOf(alive)
		}
	}
	return active, peak, at, byStack
}

func stacksOf(alive map[uint64]evidence.MemEvent) map[uint32]int64 {
	out := map[uint32]int64{}
	for _, e := range alive {
		out[e.Stack] += e.Size
	}
	return out
}

// TestModel holds the walk to a simple model of the allocator on random programs:
// peak, its stacks, the reserve, the curve, also where the ring lost the beginning.
func TestModel(t *testing.T) {
	for seed := range uint64(400) {
		c := allocmodel.New(seed, 300)
		m := c.Snapshot()
		device := c.Device.Index
		n := m.Traces[device].Len()
		if n <= 1 {
			continue
		}
		from := len(c.Run.Events) - n
		active, peak, at, byStack := truth(c.Run.Events, from)
		out, err := memory.Examine(context.Background(), m, memory.Options{Top: 1000, Buckets: 64, Largest: 32})
		if err != nil {
			t.Fatal(err)
		}
		if len(out.Devices) != 1 {
			t.Fatalf("seed %d: %d devices", seed, len(out.Devices))
		}
		d := &out.Devices[0]
		if d.Peak.Active != peak || d.Peak.Event != at {
			t.Fatalf("seed %d: peak %d at %d, want %d at %d", seed, d.Peak.Active, d.Peak.Event, peak, at)
		}
		reserved := c.Run.Reserved
		if at >= 0 && d.Peak.Reserved != reserved[from+at] {
			t.Fatalf("seed %d: reserved %d at the peak, want %d", seed, d.Peak.Reserved, reserved[from+at])
		}
		var sum int64
		for _, u := range d.Peak.Stacks {
			sum += u.Bytes
			if u.Stack == nil || c.Options.FreeStacks && from > 0 {
				continue // a free inside the ring tells where it was freed, not who made it
			}
			// A ring that begins between the two entries of a free has lost whose it was.
			if s := d.Stacks[*u.Stack].Index; byStack[uint32(s)] != u.Bytes && (from == 0 || u.Bytes > byStack[uint32(s)]) {
				t.Fatalf("seed %d: stack %d has %d at the peak, want %d", seed, s, u.Bytes, byStack[uint32(s)])
			}
		}
		if sum != peak {
			t.Fatalf("seed %d: the stacks at the peak add up to %d of %d", seed, sum, peak)
		}
		for _, b := range d.Timeline.Buckets {
			lo, hi, rlo, rhi := int64(1<<62), int64(-1), int64(1<<62), int64(-1)
			for i := b.From; i < b.To; i++ {
				lo, hi = min(lo, active[from+i]), max(hi, active[from+i])
				rlo, rhi = min(rlo, reserved[from+i]), max(rhi, reserved[from+i])
			}
			if b.ActiveMin != lo || b.ActiveMax != hi || b.ReservedMin != rlo || b.ReservedMax != rhi || active[from+b.PeakAt] != hi {
				t.Fatalf("seed %d: bucket %+v, want active %d..%d, reserved %d..%d", seed, b, lo, hi, rlo, rhi)
			}
		}
		if last := d.Timeline.Buckets[len(d.Timeline.Buckets)-1]; last.To != n || d.Timeline.Buckets[0].From != 0 {
			t.Fatalf("seed %d: the buckets end at %d of %d", seed, last.To, n)
		}
		checkOOMs(t, c, d.Pressure.OOMs, active, from)
	}
}
