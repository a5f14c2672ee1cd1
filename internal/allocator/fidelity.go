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
	// unsure says that a request came right after it, so that it may have been the
	// allocator's own flush for it.
	unsure bool
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
	near     []int32 // others that may have been, which completed right after they were requested
	early    []int32 // frees that a flush may have completed before their time
	doubts   []int   // allocs whose flush only its shape tells from a call of empty_cache
	captures []int   // oom entries during which cached memory could not be released
	peak     Peak
	version  Version
	capacity int64 // what the driver gives in this run
	limited  bool  // or a limit allows

	open     []int32 // recorded segment events that wait for what comes after them
	late     []int32 // frees that completed since, not right after they were requested
	last     []int32 // one that did so right after, where others waited for streams
	held     []Block // frees that wait until it is known what they belong to
	asked    uint64  // address of the free that was requested just before
	reserved int64   // as recorded
	sum      float64
}

// recordPlacer hands out the addresses that the record shows, or fresh ones above
// them all.
type recordPlacer struct {
	h    *history
	sim  *Sim
	want []SegmentEvent // recorded, of the operation that runs
	bump *Bump
	at   int // event that runs
}

func (p *recordPlacer) Segment(size int64, stream, pool uint16, small bool) (uint64, bool) {
	for i, e := range p.want {
		if e.Action == evidence.MemSegmentAlloc && e.Size == size {
			p.want = p.want[i+1:]
			return e.Addr, true
		}
	}
	return p.bump.Segment(size, stream, pool, small)
}

// lookAhead bounds how far on in the trace an address is looked for.
const lookAhead = 1 << 16

// Reserve places an expandable segment where the record shows its first memory. A
// request that fails makes one too; its memory comes later, or never.
func (p *recordPlacer) Reserve(size, page int64, stream, pool uint16, small bool) (uint64, int64, bool) {
	for _, e := range p.want {
		if e.Action == evidence.MemSegmentMap {
			return e.Addr, size, true
		}
	}
	for i := p.at; i < min(p.h.n, p.at+lookAhead); i++ {
		e := p.h.trace.At(i)
		if e.Action == evidence.MemSegmentMap && e.Stream == stream && small == (e.Size == smallBuffer) && !p.sim.holds(e.Addr) {
			return e.Addr, size, true
		}
	}
	return p.bump.Reserve(size, page, stream, pool, small)
}

// newRecorded prepares the run; it is an error where the initial state cannot be.
func newRecorded(h *history, set Settings, capacity int64, limited bool) (*recorded, error) {
	r := &recorded{h: h, blocks: make([]Block, h.nSlots), capacity: capacity, limited: limited}
	r.place = &recordPlacer{h: h, bump: NewBump(h.top + 1<<30)}
	r.sim = New(set, r.place, h.snap.Streams, 0)
	r.place.sim = r.sim
	r.allow(capacity)
	if err := loadInitial(h, r.sim, r.blocks); err != nil {
		return nil, err
	}
	r.reserved = h.count.initReserved
	r.peak = Peak{Reserved: r.reserved}
	r.fid = Fidelity{Events: h.n, Tolerance: toleranceText, Contradict: h.count.contradictions()}
	return r, nil
}

// allow sets what may be held, unless the settings have a limit of their own.
func (r *recorded) allow(bytes int64) {
	if r.h.set.Limit > 0 {
		r.sim.SetCapacity(bytes)
		return
	}
	r.sim.allow(bytes, r.limited)
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

var errWork = errors.New("replay: the trace asks for more searching than a program's would")

// check ends a run that was cancelled, or whose steps grow out of proportion, as no
// program's do.
func check(ctx context.Context, i int, s *Sim) error {
	if i%ctxEvery != 0 {
		return nil
	}
	if s.work > 1<<28+256*i {
		return errWork
	}
	return ctx.Err()
}

func (r *recorded) run(ctx context.Context) error {
	for i, e := range r.h.trace.All() {
		if err := check(ctx, i, r.sim); err != nil {
			return err
		}
		r.place.at = i
		switch {
		case isSegment(e.Action):
			r.open = append(r.open, int32(i))
		case e.Action == evidence.MemAlloc:
			r.alloc(i, e)
		case e.Action == evidence.MemOOM:
			r.oom(i, e)
		case e.Action == evidence.MemFreeCompleted && len(r.open) > 0 && (r.sim.set.MaxSplit > 0 || r.sim.set.GCThreshold > 0):
			r.hold(i)
		case e.Action == evidence.MemFreeCompleted && len(r.open) > 0:
			r.flush(i)
			fallthrough
		case e.Action == evidence.MemFreeCompleted || e.Action == evidence.MemFree:
			if e.Addr != r.asked {
				r.late = append(r.late, int32(i))
			} else if r.h.deferred {
				r.last = append(r.last[:0], int32(i))
			}
			if s := r.h.slots[i]; s >= 0 {
				r.sim.Complete(r.blocks[s])
			}
		case e.Action == evidence.MemFreeRequested:
			r.flush(i)
			r.late, r.last = r.late[:0], r.last[:0]
			if s := r.h.slots[i]; s >= 0 {
				r.sim.Free(r.blocks[s])
			}
		default:
			r.flush(i)
		}
		r.asked = 0
		if e.Action == evidence.MemFreeRequested {
			r.asked = e.Addr
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

// take turns the open events into what they say and accounts for them: what was
// released first, and all of it in order.
func (r *recorded) take() (released, all []SegmentEvent) {
	for _, i := range r.open {
		e := r.h.trace.At(int(i))
		s := SegmentEvent{Action: e.Action, Addr: e.Addr, Size: e.Size, Stream: e.Stream, Small: e.Size == smallBuffer}
		if r.h.snap.Has.EventPools {
			s.Pool = e.Pool
		}
		all = append(all, s)
		if s.releases() {
			r.reserved -= plausible(e.Size)
		} else {
			r.reserved += plausible(e.Size)
		}
	}
	n := 0
	for n < len(all) && all[n].releases() {
		n++
	}
	r.fid.Segments += len(r.open)
	r.open = r.open[:0]
	return all[:n], all
}

func (e *SegmentEvent) releases() bool {
	return e.Action == evidence.MemSegmentFree || e.Action == evidence.MemSegmentUnmap
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
	released, all := r.take()
	r.release(i, released)
	r.settle()
	r.fid.Forced += len(all) - len(released) // without an alloc, nothing explains them
	r.compare(i)
}

// hold keeps a free from completing before it is known what it belongs to: after the
// release of oversize blocks, a flush completes pending frees.
func (r *recorded) hold(i int) {
	r.late = append(r.late, int32(i))
	if s := r.h.slots[i]; s >= 0 {
		r.held = append(r.held, r.blocks[s])
	}
}

// settle completes the frees that were held.
func (r *recorded) settle() {
	for _, b := range r.held {
		r.sim.Complete(b)
	}
	r.held = r.held[:0]
}

// alloc repeats a recorded allocation.
func (r *recorded) alloc(i int, e *evidence.MemEvent) {
	r.fid.Allocs++
	slot := r.h.slots[i]
	r.sim.Complete(r.blocks[slot]) // where its end is not in the record
	var all []SegmentEvent
	flushed := false
	if len(r.open) > 0 {
		var released []SegmentEvent
		released, all = r.take()
		grown := len(all) > len(released)
		if len(released) > 0 || grown && r.tight(e) {
			r.wait()
		}
		if len(released) > 0 && !r.own(i, e, r.h.poolAt(i), released, grown) {
			flushed = true
			n := len(r.releases)
			r.release(i, released)
			if len(r.releases) > n {
				r.releases[n].unsure = true
			}
			all = all[len(released):]
		}
		if grown && r.reserved > r.capacity {
			// The driver gave more than at the oom: others held less then.
			r.allow(r.reserved + largeBuffer)
		}
	}
	if len(all) == 0 && !flushed && r.tight(e) {
		r.wait()
	}
	r.place.want = all
	b, ok := r.serve(i, e, flushed, len(all) > 0)
	r.match(all)
	r.settle()
	if !ok {
		r.fid.OOMsExtra++
		r.fid.Forced++
		r.allow(unlimited)
		b, ok = r.sim.Malloc(e.Size, e.Stream, r.h.poolAt(i))
		r.fid.Extra += len(r.sim.Events())
	}
	if len(all) > 0 || !ok {
		r.allow(r.capacity)
		r.sim.refuse = 0
	}
	r.blocks[slot] = 0
	if ok {
		r.blocks[slot] = b
		if r.sim.Addr(b) == e.Addr {
			r.fid.SameAddress++
		}
	}
	r.compare(i)
}

// serve runs a request. Where the record shows that memory went back, or late frees
// completed, and yet a cached block would fit now that the record does not use, the
// allocator was in the middle of the request: it had found none before.
func (r *recorded) serve(i int, e *evidence.MemEvent, flushed, grown bool) (Block, bool) {
	late := len(r.late) > 0 && e.Action == evidence.MemOOM
	if late || len(r.last) > 0 && e.Action == evidence.MemOOM {
		r.wait()
	}
	r.late, r.last = r.late[:0], r.last[:0]
	if flushed || late {
		if at, ok := r.sim.wouldFitAt(r.sim.set.Round(e.Size), e.Stream, r.h.poolAt(i)); ok && (grown || at != e.Addr) {
			if n := len(r.releases); flushed && n > 0 && r.releases[n-1].event == i {
				r.releases = r.releases[:n-1] // no call of empty_cache
				r.fid.Refused++
			}
			return r.sim.MallocFlushed(e.Size, e.Stream, r.h.poolAt(i))
		}
	}
	return r.sim.Malloc(e.Size, e.Stream, r.h.poolAt(i))
}

// wait notes that the flush which comes now may have completed the frees before it.
func (r *recorded) wait() {
	r.early = append(r.early, r.late...)
	r.near = append(r.near, r.last...)
	r.last = r.last[:0]
}

// tight says whether memory may have run out for a request of expandable segments that
// was then served from what late frees had left beside it: a flush that gave nothing back
// leaves no other entry.
func (r *recorded) tight(e *evidence.MemEvent) bool {
	s := &r.sim.set
	need := s.Round(min(max(e.Size, 0), bytesMax))
	page := s.page(need <= smallMax)
	return s.Expandable && len(r.late)+len(r.last) > 0 && r.sim.reserved+(need+page-1)/page*page > r.capacity
}

// own says whether the allocator itself gave memory back for a request: no cached
// block fits, and the driver refuses what it would ask for. That it refused follows
// from the room; or from what went back, where only a refusal explains it: then the
// refusal is taken from the record.
func (r *recorded) own(i int, e *evidence.MemEvent, pool uint16, released []SegmentEvent, grown bool) bool {
	s := &r.sim.set
	need := s.Round(min(max(e.Size, 0), bytesMax))
	if !grown || r.sim.wouldFit(need, e.Stream, pool) {
		r.settle()
		return false
	}
	if s.GCThreshold > 0 && s.Limit > 0 || r.sim.wouldRefuse(need, e.Stream, pool) {
		return true
	}
	if s.MaxSplit == 0 {
		r.settle()
		return false
	}
	ids, enough := r.sim.oversize(r.sim.poolOf(pool, need <= smallMax), e.Stream, need)
	same := len(ids) > 0 && len(ids) <= len(released)
	for k := 0; same && k < len(ids); k++ {
		same = r.sim.blocks[ids[k]].addr == released[k].Addr
	}
	if !same {
		r.settle()
		return false
	}
	r.fid.Refused++
	r.doubts = append(r.doubts, i)
	r.sim.refuse = 1
	if enough && len(released) > len(ids) {
		r.sim.refuse = 2
	}
	return true
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
		r.match(released)
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

// unsure is how many releases may have been the allocator's own flushes.
func (r *recorded) unsure() int {
	n := 0
	for i := range r.releases {
		if r.releases[i].unsure {
			n++
		}
	}
	return n
}

// match counts how much of what the simulation did with the driver is recorded, in
// the same order.
func (r *recorded) match(want []SegmentEvent) {
	got := r.sim.Events()
	if len(got) == 0 && len(want) == 0 {
		return
	}
	matched := 0
	i := 0
	for k := range want {
		w := &want[k]
		for j := i; j < len(got) && j < i+64; j++ {
			if got[j].Action == w.Action && got[j].Size == w.Size && (!w.releases() || got[j].Addr == w.Addr) {
				matched++
				i = j + 1
				break
			}
		}
	}
	r.fid.Matched += matched
	r.fid.Extra += len(got) - matched
}

// oom repeats a recorded failure.
func (r *recorded) oom(i int, e *evidence.MemEvent) {
	_, all := r.take()
	r.place.want = all
	o := &r.ooms[r.fid.OOMs]
	limited := r.limited
	r.limited = o.limited
	r.allow(o.room)
	if !slices.ContainsFunc(all, func(s SegmentEvent) bool { return s.releases() }) && r.sim.releasable() > 0 {
		r.capture(i, e)
	}
	b, ok := r.serve(i, e, false, false)
	r.limited = limited
	r.allow(r.capacity)
	r.sim.Capturing = false
	r.settle()
	r.match(all)
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

// capture notes that a failure left cached memory where it was, which only the capture
// of a graph does. What was captured goes to a private pool; where the record does not
// say to which one, it is the one that the stream used last.
func (r *recorded) capture(i int, e *evidence.MemEvent) {
	r.sim.Capturing = true
	r.captures = append(r.captures, i)
	if r.h.pools == nil || r.h.snap.Has.EventPools || !r.sim.wouldFit(r.sim.set.Round(e.Size), e.Stream, 0) {
		return
	}
	r.h.pools[i] = r.h.poolBefore(i)
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
		return false, fmt.Sprintf("reserved is off by %s at worst, %s is tolerated", evidence.Bytes(f.CurveWorst), evidence.Bytes(limit))
	case abs(f.FinalBytes) > limit:
		return false, fmt.Sprintf("reserved at the end is off by %s, %s is tolerated", evidence.Bytes(f.FinalBytes), evidence.Bytes(limit))
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
