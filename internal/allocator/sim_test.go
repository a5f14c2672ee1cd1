package allocator

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/inquest-dev/inquest/internal/evidence"
)

const base = bumpBase

// A desk runs operations on an allocator and checks its invariants after each.
type desk struct {
	t *testing.T
	*Sim
	log []string
}

func newDesk(t *testing.T, set Settings, capacity int64) *desk {
	t.Helper()
	return &desk{t: t, Sim: New(set, &Bump{}, []uint64{0, 7, 3}, capacity)}
}

func (d *desk) check() {
	d.t.Helper()
	if err := d.Check(); err != nil {
		d.t.Fatal(err)
	}
	for _, e := range d.Events() {
		d.log = append(d.log, fmt.Sprintf("%v %d+%d", e.Action, int64(e.Addr-base), e.Size))
	}
}

func (d *desk) malloc(size int64) Block { d.t.Helper(); return d.mallocOn(size, 0, 0) }

func (d *desk) mallocOn(size int64, stream, pool uint16) Block {
	d.t.Helper()
	b, ok := d.Malloc(size, stream, pool)
	d.check()
	if !ok {
		d.t.Fatalf("malloc %d failed with %d reserved", size, d.Reserved())
	}
	return b
}

func (d *desk) refused(size int64) {
	d.t.Helper()
	if _, ok := d.Malloc(size, 0, 0); ok {
		d.t.Fatalf("malloc %d was served", size)
	}
	d.check()
}

func (d *desk) free(bs ...Block) {
	d.t.Helper()
	for _, b := range bs {
		if !d.Free(b) {
			d.t.Fatal("free of a block that is not in use")
		}
		d.check()
		if !d.Complete(b) {
			d.t.Fatal("completion of a dead block")
		}
		d.check()
	}
}

func (d *desk) at(b Block, offset int64) {
	d.t.Helper()
	if got := int64(d.Addr(b) - base); got != offset {
		d.t.Errorf("block at %d, want %d", got, offset)
	}
}

func (d *desk) size(b Block, want int64) {
	d.t.Helper()
	if got := d.Size(b); got != want {
		d.t.Errorf("block of %d, want %d", got, want)
	}
}

func (d *desk) logged(want string) {
	d.t.Helper()
	if got := strings.Join(d.log, ", "); got != want {
		d.t.Errorf("driver: %s\nwant    %s", got, want)
	}
	d.log = nil
}

const m = 1 << 20

func TestSplit(t *testing.T) {
	for _, c := range []struct {
		name           string
		set            Settings
		size           int64
		block, reserve int64
	}{
		{"above 1 MiB is large", Settings{}, 2*m - 1024, 2*m - 1024, 20 * m},
		{"small", Settings{}, 1000, 1024, 2 * m},
		{"large, rest above 1 MiB", Settings{}, 1049088, 1049088, 20 * m},
		{"large, rest of exactly 1 MiB stays", Settings{}, 11534336, 12582912, 12582912},
		{"large, rest just above 1 MiB", Settings{}, 9 * m, 9 * m, 20 * m},
		{"oversize is not split", Settings{MaxSplit: 20 * m}, 21*m + 5, 22 * m, 22 * m},
		{"expandable splits from 512", Settings{Expandable: true}, 11534336, 11534336, 20 * m},
	} {
		d := newDesk(t, c.set, 0)
		b := d.malloc(c.size)
		if d.Size(b) != c.block || d.Reserved() != c.reserve {
			t.Errorf("%s: block %d of %d reserved, want %d of %d", c.name, d.Size(b), d.Reserved(), c.block, c.reserve)
		}
	}
}

func TestBestFit(t *testing.T) {
	d := newDesk(t, Settings{}, 0)
	a, b, c, e := d.malloc(30*m), d.malloc(40*m), d.malloc(30*m), d.malloc(34*m)
	d.free(c, b, a, e)
	d.at(d.malloc(30*m), 0)     // the lowest of equal size
	d.at(d.malloc(31*m), 100*m) // the smallest that is large enough: 34 MiB
	d.at(d.malloc(30*m), 70*m)
	x := d.malloc(25 * m) // split off 40 MiB
	d.at(x, 30*m)
	d.size(x, 25*m)
	d.at(d.malloc(14*m+m/2), 55*m)
	d.logged("segment_alloc 0+31457280, segment_alloc 31457280+41943040, segment_alloc 73400320+31457280, segment_alloc 104857600+35651584")
}

func TestOtherStreamsAndPoolsNeverServe(t *testing.T) {
	d := newDesk(t, Settings{}, 0)
	d.free(d.mallocOn(30*m, 1, 0), d.mallocOn(30*m, 0, 3))
	d.at(d.malloc(30*m), 60*m)
	d.at(d.mallocOn(30*m, 1, 0), 0)
	d.at(d.mallocOn(30*m, 0, 3), 30*m)
	d.at(d.mallocOn(30*m, 1, 3), 90*m)
	d.at(d.malloc(1*m), 120*m) // small pool
	d.at(d.malloc(1*m), 121*m)
}

func TestMerge(t *testing.T) {
	for _, order := range [][]int{{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}} {
		d := newDesk(t, Settings{}, 0)
		bs := []Block{d.malloc(5 * m), d.malloc(5 * m), d.malloc(5 * m)}
		for _, i := range order {
			d.free(bs[i])
		}
		d.at(d.malloc(19*m), 0)
		if len(d.Segments()) != 1 || d.Reserved() != 20*m {
			t.Errorf("order %v: %+v", order, d.Segments())
		}
	}
}

func TestPendingFreeIsNotUsedAgain(t *testing.T) {
	d := newDesk(t, Settings{}, 0)
	a := d.malloc(30 * m)
	d.Free(a)
	if d.Allocated() != 0 || d.Active() != 30*m || d.Requested() != 30*m {
		t.Errorf("allocated %d, active %d", d.Allocated(), d.Active())
	}
	d.at(d.malloc(30*m), 30*m)
	d.Complete(a)
	d.check()
	d.at(d.malloc(30*m), 0)
	if d.Free(a) || d.Complete(a) {
		t.Error("a dead block was freed")
	}
}

func TestReclaimBeforeOOM(t *testing.T) {
	t.Run("the whole cache goes, and pending frees complete", func(t *testing.T) {
		d := newDesk(t, Settings{}, 100*m)
		a, b, c := d.malloc(30*m), d.malloc(30*m), d.malloc(5*m)
		d.free(d.malloc(100))
		d.free(a)
		d.Free(b)
		d.log = nil
		x := d.malloc(70 * m)
		d.logged("segment_free 0+31457280, segment_free 31457280+31457280, segment_free 83886080+2097152, segment_alloc 85983232+73400320")
		if len(d.Completed()) != 1 || d.Completed()[0] != b || d.Complete(b) {
			t.Error("the pending free was not completed")
		}
		if d.Retries != 1 || d.OOMs != 0 || d.Size(x) != 70*m {
			t.Errorf("%d retries", d.Retries)
		}
		d.refused(70 * m)
		if d.Retries != 2 || d.OOMs != 1 || d.Refused != (Refusal{70 * m, 90 * m}) || d.Size(c) != 5*m {
			t.Errorf("%d retries, %+v", d.Retries, d.Refused)
		}
	})
	t.Run("partly used segments stay", func(t *testing.T) {
		d := newDesk(t, Settings{}, 100*m)
		a, b := d.malloc(40*m), d.malloc(40*m)
		d.free(a, b)
		d.malloc(5 * m)
		d.log = nil
		d.refused(80 * m)
		d.logged("segment_free 41943040+41943040")
	})
	t.Run("oversize blocks go first", func(t *testing.T) {
		d := newDesk(t, Settings{MaxSplit: 50 * m}, 200*m)
		d.free(d.malloc(60*m), d.malloc(30*m), d.malloc(90*m))
		d.log = nil
		// 60 MiB is the smallest that is at least max_split_size; releasing it is enough.
		d.malloc(40 * m)
		d.logged("segment_free 0+62914560, segment_alloc 188743680+41943040")
	})
	t.Run("several oversize blocks, largest first", func(t *testing.T) {
		d := newDesk(t, Settings{MaxSplit: 50 * m}, 200*m)
		d.free(d.malloc(60*m), d.malloc(30*m), d.malloc(90*m))
		d.log = nil
		d.malloc(150 * m)
		d.logged("segment_free 94371840+94371840, segment_free 0+62914560, segment_alloc 188743680+157286400")
	})
	t.Run("a capture forbids it", func(t *testing.T) {
		d := newDesk(t, Settings{}, 40*m)
		d.free(d.malloc(30 * m))
		d.Capturing = true
		d.refused(35 * m)
		if d.Reserved() != 30*m || d.Retries != 0 {
			t.Error("the cache was released")
		}
	})
	t.Run("a limit counts the segment", func(t *testing.T) {
		d := newDesk(t, Settings{Expandable: true, Limit: 11 * m}, 0)
		d.malloc(100)
		d.refused(2 * m) // would map 20 MiB
		d.free(d.malloc(m), d.malloc(m))
	})
}

func TestMaxSplit(t *testing.T) {
	d := newDesk(t, Settings{MaxSplit: 50 * m}, 0)
	a := d.malloc(60 * m)
	d.free(a)
	d.at(d.malloc(30*m), 60*m) // small ones do not get oversize blocks
	d.at(d.malloc(51*m), 0)    // up to 20 MiB more is taken
	d = newDesk(t, Settings{MaxSplit: 50 * m}, 0)
	d.free(d.malloc(80 * m))
	d.at(d.malloc(60*m), 80*m) // 20 MiB more and above is not
	d = newDesk(t, Settings{MaxSplit: 50 * m, NonSplit: 30 * m}, 0)
	d.free(d.malloc(80 * m))
	x := d.malloc(60 * m)
	d.at(x, 0)
	d.size(x, 80*m)
}

func TestEmptyCacheOrder(t *testing.T) {
	d := newDesk(t, Settings{}, 0)
	small, s2, s1 := d.malloc(100), d.mallocOn(40*m, 2, 0), d.mallocOn(30*m, 1, 0)
	big, pool := d.malloc(50*m), d.mallocOn(30*m, 0, 4)
	keep := d.malloc(30 * m)
	d.free(small, s2, s1, big, pool)
	d.log = nil
	d.EmptyCache()
	d.check()
	// Large pool by raw handle of the stream (0, then 3, then 7), then the small pool.
	d.logged("segment_free 75497472+52428800, segment_free 2097152+41943040, segment_free 44040192+31457280, segment_free 0+2097152")
	d.ReleasePool(4)
	d.EmptyCache()
	d.check()
	d.logged("segment_free 127926272+31457280")
	d.free(keep)
}

func TestGarbageCollection(t *testing.T) {
	d := newDesk(t, Settings{GCThreshold: 0.5, Limit: 400 * m}, 0)
	old, young, busy := d.malloc(60*m), d.malloc(70*m), d.malloc(80*m)
	d.free(old)
	for range 10 {
		d.free(busy)
		busy = d.malloc(80 * m)
	}
	d.free(young)
	d.log = nil
	d.malloc(90 * m)
	// 210 MiB are held, 200 allowed: the old one is of more than average age.
	d.logged("segment_free 0+62914560, segment_alloc 220200960+94371840")
	none := newDesk(t, Settings{GCThreshold: 0.5}, 0)
	none.free(none.malloc(60 * m))
	none.log = nil
	none.malloc(80 * m)
	none.logged("segment_alloc 62914560+83886080")
}

func TestExpandable(t *testing.T) {
	const gib = 1 << 30
	set := Settings{Expandable: true, Device: 8 * gib}
	t.Run("grows in pages at the end", func(t *testing.T) {
		d := newDesk(t, set, 0)
		d.at(d.malloc(5*m), 0)
		d.at(d.malloc(30*m), 5*m)
		d.logged("segment_map 0+20971520, segment_map 20971520+20971520")
		d.at(d.malloc(100), 9667870720) // 461 pages of 20 MiB hold 9 GiB
		d.logged("segment_map 9667870720+2097152")
		if n := len(d.Segments()); n != 2 {
			t.Errorf("%d segments", n)
		}
	})
	t.Run("whole free pages are unmapped, the rest stays", func(t *testing.T) {
		d := newDesk(t, set, 0)
		a, b, c := d.malloc(30*m), d.malloc(60*m), d.malloc(5*m)
		d.free(b)
		d.log = nil
		d.EmptyCache()
		d.check()
		d.logged("segment_unmap 41943040+41943040")
		segs := d.Segments()
		if len(segs) != 2 || segs[0].Size != 40*m || segs[1].Addr != base+80*m || segs[1].Size != 20*m {
			t.Errorf("%+v", segs)
		}
		// The hole is filled first: 10 MiB are free before it.
		d.at(d.malloc(25*m), 30*m)
		d.logged("segment_map 41943040+20971520")
		// 5 MiB free, 20 MiB unmapped, 10 MiB free: one range of 35 MiB.
		d.at(d.malloc(35*m), 55*m)
		d.logged("segment_map 62914560+20971520")
		d.free(a, c)
	})
	t.Run("a reservation without memory is dropped", func(t *testing.T) {
		d := newDesk(t, set, 0)
		d.free(d.malloc(30 * m))
		d.EmptyCache()
		d.check()
		if len(d.Segments()) != 0 || d.ranges.n != 0 {
			t.Error("something is left")
		}
		d.malloc(5 * m)
	})
	t.Run("mapping is all or nothing", func(t *testing.T) {
		d := newDesk(t, set, 50*m)
		a := d.malloc(15 * m)
		d.log = nil
		d.refused(50 * m)
		if d.Reserved() != 20*m || d.Refused.Need != 60*m {
			t.Errorf("reserved %d, %+v", d.Reserved(), d.Refused)
		}
		d.logged("")
		d.malloc(25 * m)
		d.free(a)
	})
	t.Run("best fit counts the room to grow", func(t *testing.T) {
		d := newDesk(t, set, 0)
		a := d.malloc(10 * m)
		d.malloc(8 * m) // 2 MiB are left at the end, which can grow
		d.free(a)
		d.at(d.malloc(2*m), 0) // the hole of 10 MiB rather
	})
	t.Run("switched off, such blocks are passed over", func(t *testing.T) {
		d := newDesk(t, set, 0)
		d.free(d.malloc(10 * m))
		d.Set(Settings{})
		d.at(d.malloc(10*m), 9667870720)
	})
}

// TestRandom drives all rules at once; the invariants are checked after every step.
func TestRandom(t *testing.T) {
	steps := 600
	if testing.Short() {
		steps = 100
	}
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 1))
		set := Settings{Expandable: r.IntN(2) == 0, Device: 1 << 30}
		if r.IntN(2) == 0 {
			set.MaxSplit = int64(20+r.IntN(100)) * m
		}
		if r.IntN(3) == 0 {
			set.GCThreshold, set.Limit = 0.6, 400*m
		}
		if r.IntN(3) == 0 {
			for i := range set.Roundup {
				set.Roundup[i] = 1 << r.IntN(5)
			}
		}
		d := newDesk(t, set, int64(r.IntN(600))*m)
		var live, wait []Block
		for range steps {
			switch k := r.IntN(20); {
			case k < 9:
				size := int64(1) << r.IntN(27)
				size += r.Int64N(size)
				if b, ok := d.Malloc(size, uint16(r.IntN(3)), uint16(max(0, r.IntN(6)-3))); ok {
					live = append(live, b)
				}
			case k < 15 && len(live) > 0:
				i := r.IntN(len(live))
				b := live[i]
				live = append(live[:i], live[i+1:]...)
				d.Free(b)
				if r.IntN(4) > 0 {
					d.Complete(b)
				} else {
					wait = append(wait, b)
				}
			case k < 17 && len(wait) > 0:
				d.Complete(wait[0])
				wait = wait[1:]
			case k == 17:
				d.EmptyCache()
			case k == 18:
				d.ReleasePool(uint16(r.IntN(3)))
			case k == 19 && r.IntN(20) == 0:
				set.Expandable = !set.Expandable
				d.Set(set)
			}
			d.check()
		}
		segs := d.Segments()
		again := New(set, NewBump(1<<50), []uint64{0, 7, 3}, 0)
		var res []Reservation
		for i := range d.spans {
			sp := d.spans[i]
			if n, ok := d.ranges.get(sp.base, 0); ok && int(n) == i && sp.page > 0 {
				b := d.blocks[sp.first]
				res = append(res, Reservation{sp.base, sp.size, b.stream, d.pools[b.pool].id, d.pools[b.pool].small})
			}
		}
		if err := again.Load(res, segs, nil); err != nil {
			t.Fatal(err)
		}
		if err := again.Check(); err != nil || fmt.Sprint(again.Segments()) != fmt.Sprint(segs) || again.Allocated() != d.Allocated() {
			t.Fatalf("loaded again it differs: %v", err)
		}
	}
}

func TestLoadRefuses(t *testing.T) {
	piece := func(addr uint64, size int64) Piece {
		return Piece{Addr: addr, Size: size, State: evidence.BlockActive}
	}
	for name, segs := range map[string][]Segment{
		"overlap":     {{Addr: 100, Size: 50, Blocks: []Piece{piece(100, 50)}}, {Addr: 149, Size: 50, Blocks: []Piece{piece(149, 50)}}},
		"gap":         {{Addr: 100, Size: 50, Blocks: []Piece{piece(100, 20), piece(130, 20)}}},
		"short":       {{Addr: 100, Size: 50, Blocks: []Piece{piece(100, 20)}}},
		"negative":    {{Addr: 100, Size: 50, Blocks: []Piece{piece(100, -20)}}},
		"no blocks":   {{Addr: 100, Size: 50}},
		"no space":    {{Addr: 100, Size: 50, Expandable: true, Blocks: []Piece{piece(100, 50)}}},
		"at the end":  {{Addr: ^uint64(0) - 10, Size: 50, Blocks: []Piece{piece(^uint64(0)-10, 50)}}},
		"whole world": {{Addr: 1, Size: 1<<63 - 1, Blocks: []Piece{piece(1, 1<<63-1)}}},
	} {
		s := New(Settings{}, &Bump{}, nil, 0)
		if err := s.Load(nil, segs, nil); err == nil {
			t.Errorf("%s: no error", name)
		}
		if err := s.Check(); name != "overlap" && err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
