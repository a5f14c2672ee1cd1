package allocator

import (
	"context"
	"encoding/binary"
	"testing"

	"github.com/inquest-dev/inquest/internal/evidence"
)

// nonsense makes a snapshot out of bytes: events and segments that contradict each
// other, at few addresses, so that they meet.
func nonsense(data []byte) *evidence.MemSnapshot {
	s := &evidence.MemSnapshot{Form: "dict", Traces: make([]evidence.MemTrace, 1), Streams: []uint64{0, 9, 3}, Pools: [][2]int64{{0, 0}, {0, 1}}}
	s.Has = evidence.MemSections{Traces: true, Settings: true, Requested: true, Expandable: true}
	if len(data) < 2 {
		return s
	}
	flags := data[0]
	s.Settings.Expandable = flags&1 != 0
	s.Has.EventPools = flags&2 != 0
	if flags&4 != 0 {
		s.Settings.MaxSplit, s.Settings.HasMaxSplit = 22<<20, true
	}
	if flags&8 != 0 {
		s.Settings.GCThreshold, s.Settings.HasThreshold = .5, true
	}
	if flags&16 == 0 {
		s.Pools = s.Pools[:1]
	}
	segments := int(data[1] % 8)
	data = data[2:]
	sizes := []int64{0, 1, 512, 1000, 1 << 20, 2 << 20, 3 << 20, 20 << 20, 40 << 20, -1, 1 << 62, 1<<63 - 1}
	addr := func(b byte) uint64 {
		switch {
		case b > 250:
			return ^uint64(0) - uint64(b)
		case b > 245:
			return 0
		}
		return 1<<40 + uint64(b)*(1<<20)
	}
	for ; len(data) >= 4; data = data[4:] {
		n := binary.LittleEndian.Uint32(data)
		size := sizes[int(data[2])%len(sizes)]
		if segments > 0 {
			segments--
			g := evidence.MemSegment{Addr: addr(data[1]), Total: size, Stream: uint16(data[3] % 3), Pool: uint16(data[3] / 4 % 2), Small: data[0]&1 != 0, Expandable: data[0]&2 != 0, First: len(s.Blocks)}
			for k := range int(data[0] / 4 % 4) {
				s.Blocks = append(s.Blocks, evidence.MemBlock{Addr: g.Addr + uint64(k)<<19, Size: 1 << 19, Requested: 77, State: data[3] % 3})
				g.N++
			}
			s.Segments = append(s.Segments, g)
			continue
		}
		e := evidence.MemEvent{Action: evidence.MemAction(data[0] % 12), Addr: addr(data[1]), Size: size, Stream: uint16(n >> 24 % 3), Pool: uint16(n >> 28 % 2)}
		s.Traces[0].Append(e)
	}
	return s
}

// FuzzExamine runs contradictory histories: nothing panics, and what is answered keeps
// to its own terms.
func FuzzExamine(f *testing.F) {
	f.Add([]byte{0, 1, 4, 10, 7, 0, 1, 10, 2, 0, 8, 1, 8, 0, 2, 10, 2, 0, 3, 10, 2, 0})
	f.Add([]byte{1, 0, 6, 10, 7, 0, 1, 10, 6, 0, 2, 10, 6, 0, 3, 10, 6, 0, 7, 10, 7, 0, 1, 10, 6, 0})
	f.Add([]byte{31, 3, 2, 10, 7, 0, 5, 40, 8, 4, 9, 90, 5, 1, 5, 10, 7, 0, 4, 12, 7, 0, 1, 12, 4, 0, 8, 0, 3, 0})
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > 4000 {
			return
		}
		s := nonsense(data)
		for _, o := range []Options{{}, {Capacity: 60 << 20, Auto: true}, {Try: []Change{{Conf: "expandable_segments:True"}, {Capacity: 1}, {EmptyCache: true, Event: 3}}}} {
			r, err := Examine(context.Background(), s, 0, o)
			if err != nil {
				t.Fatal(err)
			}
			if !r.Fidelity.OK && len(r.Answers) > 0 {
				t.Fatal("answers without fidelity")
			}
			if r.Best >= len(r.Answers) || r.Best >= 0 && r.Answers[r.Best].Verdict != Avoided {
				t.Fatalf("best is %d", r.Best)
			}
			for _, a := range r.Answers {
				if a.Verdict != CannotTell && !a.HasMargin || a.Why == "" {
					t.Fatalf("%+v", a)
				}
			}
		}
		h := newHistory(s, 0, Settings{Expandable: s.Settings.Expandable})
		if h.n == 0 {
			return
		}
		run, err := newRecorded(h, h.set, 100<<20, false)
		if err != nil {
			return
		}
		p := h.profile()
		run.ooms = p.ooms
		if err := run.run(context.Background()); err != nil {
			t.Fatal(err)
		}
		if err := run.sim.Check(); err != nil {
			t.Fatal(err)
		}
	})
}
