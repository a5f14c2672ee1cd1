package allocator

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/inquest-dev/inquest/internal/evidence"
)

// What the fidelity must be for an answer. Reserved is what an answer is about, so it
// may be off by no more than the larger of one segment of the large pool and one
// percent: the smallest margin that is then worth stating. Everything else is
// counted in events, of which one in a hundred may differ: threads that allocate
// while the trace is copied leave a few out.
const (
	toleranceBytes = largeBuffer
	toleranceShare = 0.01

	toleranceText = "reserved is never off by more than 20 MiB or 1 % of its peak, whichever is larger; every oom is reproduced at its event and there is none beside them; " +
		"at least 99 % of the segment events are matched in action, size and order, with at most 1 % extra; at most 1 % of the events contradict those before them or had to be set right by the record"
)

// A release is cached memory that went back although no request needed it: a call of
// empty_cache, or of what calls it.
type release struct {
	event int // before which
	pools []uint16
}

// A recorded run puts the trace through the simulation under the recorded settings
// and compares.
type recorded struct {
	h      *history
	sim    *Sim
	place  *recordPlacer
	blocks []Block // by slot

	fid      Fidelity
	ooms     []OOM
	releases []release
	bursts   int // releases that may have been the allocator's own flush
	peak     Peak
	capacity int64 // what the driver gives in this run

	open     []int32 // recorded segment events that wait for what comes after them
	reserved int64   // as recorded
	sum      float64
}

// recordPlacer hands out the addresses that the record shows, or fresh ones above
// them all.
type recordPlacer struct {
	h    *history
	want []SegmentEvent // recorded, of the operation that runs
	bump *Bump
}

func (p *recordPlacer) Segment(size int64, stream, pool uint16, small bool) (uint64, bool) {
	for i, e := range p.want {
		if e.Action == evidence.MemSegmentAlloc && e.Size == size {
			p.want = slices.Delete(p.want, i, i+1)
			return e.Addr, true
		}
	}
	return p.bump.Segment(size, stream, pool, small)
}

func (p *recordPlacer) Reserve(size, page int64, stream, pool uint16, small bool) (uint64, int64, bool) {
	for _, e := range p.want {
		if e.Action != evidence.MemSegmentMap {
			continue
		}
		limit := uint64(1 << 62)
		if i, found := slices.BinarySearch(p.h.floors, e.Addr+1); found || i < len(p.h.floors) {
			limit = p.h.floors[i]
		}
		return e.Addr, min(size, int64(limit-e.Addr)), true
	}
	return p.bump.Reserve(size, page, stream, pool, small)
}

// newRecorded prepares the run; it is an error where the initial state cannot be.
func newRecorded(h *history, set Settings, capacity int64) (*recorded, error) {
	r := &recorded{h: h, blocks: make([]Block, h.nSlots), capacity: capacity}
	r.place = &recordPlacer{h: h, bump: NewBump(h.top + 1<<30)}
	r.sim = New(set, r.place, h.snap.Streams, capacity)
	if err := loadInitial(h, r.sim, r.blocks); err != nil {
		return nil, err
	}
	r.reserved = h.count.initReserved
	r.peak = Peak{Reserved: r.reserved}
	r.fid = Fidelity{Events: h.n, Tolerance: toleranceText, Contradict: h.count.contradictions()}
	return r, nil
}

func loadInitial(h *history, sim *Sim, blocks []Block) error {
	names := make(map[uint64]Block, len(h.initSlots))
	if err := sim.Load(h.reservations, h.initial, func(addr uint64, b Block) { names[addr] = b }); err != nil {
		return err
	}
	for _, s := range h.initSlots {
		blocks[s.slot] = names[s.addr]
	}
	return nil
}

// ctxEvery is how many events pass between two looks at the context.
const ctxEvery = 1 << 14

// check ends a run that was cancelled, or whose steps grow out of proportion, as no
// program's do.
func check(ctx context.Context, i int, s *Sim) error {
	if i%ctxEvery != 0 {
		return nil
	}
	if s.work > 1<<28+256*i {
		return errors.New("replay: the trace asks for more searching than a program's would")
	}
	return ctx.Err()
}

func (r *recorded) run(ctx context.Context) error {
	for i, e := range r.h.trace.All() {
		if err := check(ctx, i, r.sim); err != nil {
			return err
		}
		switch {
		case isSegment(e.Action):
			r.open = append(r.open, int32(i))
		case e.Action == evidence.MemAlloc:
			r.alloc(i, e)
		case e.Action == evidence.MemOOM:
			r.oom(i, e)
		case e.Action == evidence.MemFreeCompleted && len(r.open) > 0 && r.sim.set.MaxSplit == 0 && r.sim.set.GCThreshold == 0:
			r.flush(i)
			fallthrough
		case e.Action == evidence.MemFreeCompleted || e.Action == evidence.MemFree:
			if s := r.h.slots[i]; s >= 0 {
				r.sim.Complete(r.blocks[s])
			}
		case e.Action == evidence.MemFreeRequested:
			r.flush(i)
			if s := r.h.slots[i]; s >= 0 {
				r.sim.Free(r.blocks[s])
			}
		default:
			r.flush(i)
		}
		r.sum += float64(abs(r.sim.Reserved() - r.reserved))
	}
	r.flush(r.h.n)
	r.finish()
	return nil
}

func abs(n int64) int64 {
	if n < 0 {
		return -n
	}
	return n
}

// take turns the open events into what they say, in order, and accounts for them.
func (r *recorded) take() (released, grown []SegmentEvent) {
	for _, i := range r.open {
		e := r.h.trace.At(int(i))
		s := SegmentEvent{Action: e.Action, Addr: e.Addr, Size: e.Size, Stream: e.Stream, Small: e.Size == smallBuffer}
		if r.h.snap.Has.EventPools {
			s.Pool = e.Pool
		}
		switch e.Action {
		case evidence.MemSegmentFree, evidence.MemSegmentUnmap:
			released = append(released, s)
			r.reserved -= plausible(e.Size)
		default:
			grown = append(grown, s)
			r.reserved += plausible(e.Size)
		}
	}
	r.fid.Segments += len(r.open)
	r.open = r.open[:0]
	return released, grown
}

// plausible is a size that can be added up.
func plausible(size int64) int64 {
	if size < 0 || size > 1<<50 {
		return 0
	}
	return size
}

// flush settles open events that no request came after: they were a release.
func (r *recorded) flush(i int) {
	if len(r.open) == 0 {
		return
	}
	released, grown := r.take()
	r.release(i, released)
	for range grown { // without an alloc: nothing explains it
		r.fid.Forced++
	}
	r.compare(i)
}

// alloc repeats a recorded allocation.
func (r *recorded) alloc(i int, e *evidence.MemEvent) {
	r.fid.Allocs++
	slot := r.h.slots[i]
	r.sim.Complete(r.blocks[slot]) // where its end is not in the record
	var released, grown []SegmentEvent
	if len(r.open) > 0 {
		released, grown = r.take()
		if len(released) > 0 && !r.own(e, r.h.poolAt(i), len(grown) > 0) {
			r.release(i, released)
			if len(grown) > 0 {
				r.bursts++
			}
			released = nil
		}
		if r.reserved > r.capacity {
			// The driver gave more than at the oom: others held less then.
			r.sim.SetCapacity(r.reserved)
		}
	}
	r.place.want = append(r.place.want[:0], grown...)
	b, ok := r.sim.Malloc(e.Size, e.Stream, r.h.poolAt(i))
	r.match(released, grown)
	if !ok {
		r.fid.OOMsExtra++
		r.fid.Forced++
		r.sim.SetCapacity(0)
		b, ok = r.sim.Malloc(e.Size, e.Stream, r.h.poolAt(i))
		r.fid.Extra += len(r.sim.Events())
	}
	r.sim.SetCapacity(r.capacity)
	r.blocks[slot] = 0
	if ok {
		r.blocks[slot] = b
		if r.sim.Addr(b) == e.Addr {
			r.fid.SameAddress++
		}
	}
	r.compare(i)
}

// own says whether the allocator itself flushes its cache for a request: no cached
// block fits, and the driver refuses what it would ask for.
func (r *recorded) own(e *evidence.MemEvent, pool uint16, grown bool) bool {
	if !grown {
		return false
	}
	s := &r.sim.set
	need := s.Round(e.Size)
	if r.sim.wouldFit(need, e.Stream, pool) {
		return false
	}
	if s.GCThreshold > 0 && s.Limit > 0 {
		return true
	}
	return r.sim.wouldRefuse(need, e.Stream, pool)
}

// release repeats a release that the program asked for. Where much less went back
// than could, it was something else; then exactly that goes back, and is counted.
func (r *recorded) release(i int, released []SegmentEvent) {
	if len(released) == 0 {
		return
	}
	rel := release{event: i}
	for _, e := range released {
		if p := r.sim.poolAt(e.Addr); p != 0 && !slices.Contains(rel.pools, p) {
			rel.pools = append(rel.pools, p)
			r.sim.ReleasePool(p)
		}
	}
	if could := r.sim.releasable(); could <= 2*len(released) {
		r.sim.EmptyCache()
		r.match(released, nil)
		r.releases = append(r.releases, rel)
		return
	}
	for _, e := range released {
		r.fid.Forced++
		if r.sim.Release(e.Addr, e.Size) {
			r.fid.Matched++
		}
	}
}

// match counts how much of what the simulation did with the driver is recorded, in
// the same order.
func (r *recorded) match(released, grown []SegmentEvent) {
	got := r.sim.Events()
	if len(got) == 0 && len(released)+len(grown) == 0 {
		return
	}
	matched := 0
	i := 0
	for k := range len(released) + len(grown) {
		want := pick(released, grown, k)
		for j := i; j < len(got) && j < i+64; j++ {
			if got[j].Action == want.Action && got[j].Size == want.Size && (k >= len(released) || got[j].Addr == want.Addr) {
				matched++
				i = j + 1
				break
			}
		}
	}
	r.fid.Matched += matched
	r.fid.Extra += len(got) - matched
}

func pick(a, b []SegmentEvent, i int) *SegmentEvent {
	if i < len(a) {
		return &a[i]
	}
	return &b[i-len(a)]
}

// oom repeats a recorded failure.
func (r *recorded) oom(i int, e *evidence.MemEvent) {
	released, grown := r.take()
	r.place.want = append(r.place.want[:0], grown...)
	o := &r.ooms[r.fid.OOMs]
	r.sim.SetCapacity(o.room)
	b, ok := r.sim.Malloc(e.Size, e.Stream, r.h.poolAt(i))
	r.sim.SetCapacity(r.capacity)
	r.match(released, grown)
	r.fid.OOMs++
	o.Allocated, o.Active, o.Reproduced = r.sim.Allocated(), r.sim.Active(), !ok
	o.Largest = r.sim.largestFree(r.sim.set.Round(e.Size), e.Stream, r.h.poolAt(i))
	if ok {
		o.Allocated -= r.sim.Size(b)
		o.Active -= r.sim.Size(b)
		r.sim.Complete(b)
	} else {
		r.fid.OOMsSame++
	}
	r.compare(i)
}

// compare sets reserved against the record, after an operation.
func (r *recorded) compare(i int) {
	r.fid.CurveWorst = max(r.fid.CurveWorst, abs(r.sim.Reserved()-r.reserved))
	if r.reserved > r.peak.Reserved {
		r.peak = Peak{Reserved: r.reserved, Event: i}
	}
}

// finish compares the end and judges.
func (r *recorded) finish() {
	f := &r.fid
	if f.Events > 0 {
		f.CurveMean = r.sum / float64(f.Events)
	}
	var want []Segment
	m := r.h.snap
	for i := range m.Segments {
		if g := &m.Segments[i]; g.Device == r.h.device {
			want = append(want, Segment{Addr: g.Addr, Size: g.Total})
			f.FinalBytes -= g.Total
		}
	}
	got := r.sim.Segments()
	f.Final = len(want)
	f.FinalBytes += r.sim.Reserved()
	byAddr := make(map[uint64]int64, len(got))
	var sizes, have []int64
	for _, g := range got {
		byAddr[g.Addr] = g.Size
		have = append(have, g.Size)
	}
	for _, g := range want {
		sizes = append(sizes, g.Size)
		if byAddr[g.Addr] == g.Size {
			f.FinalPlaced++
		}
	}
	slices.SortFunc(sizes, cmp.Compare)
	slices.SortFunc(have, cmp.Compare)
	f.FinalSame = slices.Equal(sizes, have)
	f.OK, f.Why = f.judge(r.peak.Reserved)
}

// judge holds the fidelity against the tolerance.
func (f *Fidelity) judge(peak int64) (bool, string) {
	limit := max(int64(toleranceBytes), int64(toleranceShare*float64(peak)))
	share := func(n, of int) bool { return float64(n) > toleranceShare*float64(of) }
	switch {
	case f.OOMsSame < f.OOMs:
		return false, fmt.Sprintf("%d of %d oom entries are not reproduced", f.OOMs-f.OOMsSame, f.OOMs)
	case f.OOMsExtra > 0:
		return false, fmt.Sprintf("the simulation runs out of memory %d times where the record does not", f.OOMsExtra)
	case f.CurveWorst > limit:
		return false, fmt.Sprintf("reserved is off by %d bytes at worst, %d are tolerated", f.CurveWorst, limit)
	case abs(f.FinalBytes) > limit:
		return false, fmt.Sprintf("reserved at the end is off by %d bytes, %d are tolerated", f.FinalBytes, limit)
	case share(f.Segments-f.Matched, f.Segments):
		return false, fmt.Sprintf("%d of %d segment events are not matched", f.Segments-f.Matched, f.Segments)
	case share(f.Extra, max(f.Segments, 1)):
		return false, fmt.Sprintf("the simulation has %d segment events that are not recorded", f.Extra)
	case share(f.Forced, max(f.Segments, 1)):
		return false, fmt.Sprintf("the simulation was set right by the record %d times", f.Forced)
	case share(f.Contradict, f.Events):
		return false, fmt.Sprintf("%d of %d events contradict those before them", f.Contradict, f.Events)
	}
	return true, "nothing is out of tolerance"
}
