package allocator

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/inquest-dev/inquest/internal/evidence"
)

// Examine replays the recorded history of one device: first under the recorded
// settings, which shows how far the simulation can be trusted, then, where it can be,
// with the changes that o asks for. A history that cannot be replayed is a Replay
// whose fidelity says why. An error is a device that the snapshot does not have, a
// change that cannot be read, or the end of ctx.
func Examine(ctx context.Context, s *evidence.MemSnapshot, device int, o Options) (*Replay, error) {
	if device < 0 || device >= s.Devices() {
		return nil, fmt.Errorf("replay: the snapshot has no device %d", device)
	}
	r := &Replay{Device: device, Best: -1, Stated: s.Has.Settings, Room: Room{Event: -1}}
	r.Fidelity.Tolerance = toleranceText
	set := r.recordedSettings(s)
	if set.Async {
		r.Lacks = append(r.Lacks, "the backend is cudaMallocAsync, which records no history: it cannot be replayed")
		r.Fidelity.Why = "another allocator"
		return r, nil
	}
	h := newHistory(s, device, set)
	r.Fidelity.Events = h.n
	if h.n == 0 || h.count.allocs+h.count.ooms == 0 {
		r.Lacks = append(r.Lacks, noTrace(s))
		r.Fidelity.Why = "there is no history to repeat"
		return r, nil
	}
	runs, p, err := r.repeat(ctx, h, o)
	if err != nil {
		return nil, err
	}
	var run *recorded
	if len(runs) > 0 {
		run = runs[0]
	}
	r.Lacks = append(r.Lacks, h.lacks(run)...)
	if run == nil {
		return r, nil
	}
	r.fragment(h, runs)
	if r.Fidelity.OK {
		err = r.questions(ctx, h, runs, p, o)
	}
	return r, err
}

// recordedSettings are those that the snapshot states, or else the defaults.
func (r *Replay) recordedSettings(s *evidence.MemSnapshot) Settings {
	if s.Has.Settings {
		set, err := FromSnapshot(s.Settings)
		if err != nil {
			r.Lacks = append(r.Lacks, fmt.Sprintf("the text of the settings cannot be read (%v): the numbers that the snapshot states beside it are used", err))
		}
		r.Settings = set
		return set
	}
	for i := range s.Segments {
		r.Settings.Expandable = r.Settings.Expandable || s.Segments[i].Expandable
	}
	r.Lacks = append(r.Lacks, "the settings of the allocator are not stated: the defaults are assumed, which the fidelity tests")
	return r.Settings
}

func noTrace(s *evidence.MemSnapshot) string {
	if s.Form == "segments" {
		return "the file is a list of segments without a history: record one with torch.cuda.memory._record_memory_history()"
	}
	return "the history of this device has no allocation: record one with torch.cuda.memory._record_memory_history()"
}

// repeat runs the record under its own settings and puts the result into r. It returns
// those runs that explain the record best, the likeliest first, and none where the
// initial state cannot be.
func (r *Replay) repeat(ctx context.Context, h *history, o Options) ([]*recorded, *profile, error) {
	p := h.profile()
	r.Room = h.room(&p, o)
	r.OOMs = p.ooms
	c := &h.count
	r.Initial = Initial{Segments: len(h.initial), Blocks: c.initBlocks, Reserved: c.initReserved, Active: c.initActive, Guessed: c.guessed}
	var best []*recorded
	for _, w := range h.ways(&p, o) {
		if !w.limited && slices.ContainsFunc(best, func(o *recorded) bool { return o.version == w.version && !o.limited && o.perfect() }) {
			continue
		}
		set := h.set
		set.Version = w.version
		run, err := newRecorded(h, set, w.capacity, w.limited)
		if err != nil {
			r.Fidelity.Why = "the state before the trace contradicts itself: " + err.Error()
			return nil, &p, nil
		}
		run.ooms = append([]OOM(nil), p.ooms...)
		if err := run.run(ctx); err != nil {
			if errors.Is(err, ctx.Err()) && ctx.Err() != nil {
				return nil, nil, err
			}
			r.Fidelity.Why = err.Error()
			return nil, &p, nil
		}
		run.version, run.sim, run.blocks = w.version, nil, nil
		switch n := 0; {
		case len(best) > 0:
			if n = run.compareWith(best[0]); n < 0 {
				continue
			} else if n == 0 {
				best = append(best, run)
				continue
			}
			fallthrough
		default:
			best = append(best[:0], run)
		}
	}
	first := best[0]
	r.Version, r.Settings = first.version, h.set
	r.Settings.Version = first.version
	if o.Capacity > 0 {
		r.Room.Limited = first.limited
	}
	r.Fidelity, r.OOMs, r.Recorded = first.fid, first.ooms, first.peak
	if p.peak.Reserved > r.Recorded.Reserved { // between two events that are compared
		r.Recorded = p.peak
	}
	return h.either(best, &p, o), &p, nil
}

// either adds to the runs that explain the record best those that do so as well with a
// limit in place of the driver: where a capacity was given, neither expandable segments
// nor a threshold shows which of the two it is, and no oom entry does.
func (h *history) either(runs []*recorded, p *profile, o Options) []*recorded {
	if h.telling() || o.Capacity <= 0 || len(p.ooms) > 0 && (o.Capacity == p.ooms[0].room || p.ooms[0].limited) {
		return runs
	}
	for _, run := range runs[:len(runs):len(runs)] {
		other := *run
		other.limited = !other.limited
		runs = append(runs, &other)
	}
	return runs
}

// telling says whether a limit does something else than a driver that has no more.
func (h *history) telling() bool { return h.set.Expandable || h.set.GCThreshold > 0 }

// versions are those that may have written the snapshot and whose rules differ under
// the settings, likeliest first: entries state their pool from 2.12 on, and settings the
// largest block that is cached of host memory from 2.13 on.
func versions(m *evidence.MemSnapshot, set Settings) []Version {
	switch {
	case m.Has.EventPools && m.Settings.HasMaxCached:
		return []Version{Torch213, Torch212, Torch22}
	case m.Has.EventPools:
		return []Version{Torch212, Torch213, Torch22}
	}
	if slices.Contains(set.Roundup[:], 1) {
		return []Version{Torch22, Torch21}
	}
	return []Version{Torch22}
}

// A way is how the record may have come about.
type way struct {
	version  Version
	capacity int64 // what the driver gives in all
	limited  bool  // or rather a limit allows
}

// ways lists what the record is tried with, likeliest first: what the oom entries show
// that there was, and what was given, as the driver's and as a limit. The first one
// that explains everything is taken, or else the best.
func (h *history) ways(p *profile, o Options) []way {
	shown := way{capacity: unlimited}
	for _, f := range p.ooms {
		if f.room < shown.capacity {
			shown.capacity, shown.limited = f.room, f.limited
		}
	}
	rooms := []way{shown}
	if h.set.GCThreshold > 0 && shown.capacity < unlimited && !shown.limited {
		rooms = append(rooms, way{capacity: shown.capacity, limited: true})
	}
	if o.Capacity > 0 && o.Capacity != shown.capacity {
		rooms = append(rooms, way{capacity: o.Capacity})
		if h.telling() {
			rooms = append(rooms, way{capacity: o.Capacity, limited: true})
		}
	}
	var out []way
	for _, w := range rooms {
		for _, v := range versions(h.snap, h.set) {
			w.version = v
			out = append(out, w)
		}
	}
	return out
}

// compareWith is positive where r explains more than o, 0 where it explains as much.
func (r *recorded) compareWith(o *recorded) int {
	f, g := &r.fid, &o.fid
	return cmp.Or(
		cmp.Compare(b2i(f.OK), b2i(g.OK)), cmp.Compare(f.SameAddress, g.SameAddress), cmp.Compare(g.Forced, f.Forced),
		cmp.Compare(f.Matched, g.Matched), cmp.Compare(g.Extra, f.Extra), cmp.Compare(g.CurveWorst, f.CurveWorst),
		cmp.Compare(b2i(f.FinalSame), b2i(g.FinalSame)), cmp.Compare(f.FinalPlaced, g.FinalPlaced), cmp.Compare(o.unsure(), r.unsure()))
}

// perfect says that r is the record, and that nothing remains to be explained.
func (r *recorded) perfect() bool {
	f := &r.fid
	return f.OK && f.SameAddress == f.Allocs && f.Matched == f.Segments && f.Extra+f.Forced == 0 && f.CurveWorst == 0 && r.unsure() == 0
}

// lacks says what the record does not hold or contradicts.
func (h *history) lacks(run *recorded) []string {
	var out []string
	add := func(n int, text string) {
		if n > 0 {
			out = append(out, fmt.Sprintf(text, n))
		}
	}
	c := &h.count
	add(c.initBlocks, "%d blocks were there before the first event: the history does not begin with the program, or older entries were lost")
	add(c.guessed, "%d of the blocks that were there before the first event may have been larger than what was asked for, rounded")
	if h.noRequested {
		out = append(out, "the history has no free_requested entry: when a block waits for other streams cannot be told")
	}
	if c.segmentEvents == 0 && c.initReserved > 0 {
		out = append(out, "the history has no segment event: either nothing was asked of the driver, or they were not recorded")
	}
	add(c.afterAlloc+c.afterFree, "%d blocks differ between the end of the history and the segments: entries are missing, as where threads go on while the two are copied, or where kinds of entries were left out")
	add(c.doubleAlloc, "%d allocations lie on a block that is in use: the end of its life was not recorded")
	add(c.unknownFree, "%d frees name no block that is known")
	add(c.segmentMissing, "%d segment events name memory that is not held then")
	add(c.segmentTwice, "%d segment events overlap memory that is held then")
	add(c.orphans, "%d blocks lie in no segment that is known")
	add(c.squeezed, "%d blocks have no room before the next one")
	add(c.badSizes, "%d entries have addresses or sizes that cannot be")
	add(c.unknownPool, "%d entries do not show which pool they used: the default one is assumed")
	add(c.unknownClass, "%d unmapped ranges do not show whether they were of the small or the large pool")
	if run != nil {
		add(run.unsure(), "%d releases of the cache came right before an allocation: they may be calls of empty_cache, or flushes for it; the room as known did not call for them")
	}
	return out
}

// fragment says whether the last failed request would have fitted without waste. It
// needs the record alone, but one that is of a piece.
func (r *Replay) fragment(h *history, runs []*recorded) {
	if len(r.OOMs) == 0 || !r.Room.Known || !r.Fidelity.OK && h.count.contradictions()+h.count.afterAlloc+h.count.afterFree > 0 {
		return
	}
	o := &r.OOMs[len(r.OOMs)-1]
	f := &r.Fragment
	f.Event, f.InUse, f.Request, f.Free, f.Largest = o.Event, o.Least, o.Request, o.Reserved-o.Active, o.Largest
	need := o.Least + least512(h.leastRequest(o.Request))
	f.Fits = need <= r.Room.Bytes
	f.Known = f.Fits || need > r.Room.Most+over(runs, &r.Settings)
}

// over is by how much more than a limit expandable segments may hold: it is held against
// whole segments, not against the pages that are mapped. It is 0 where no run has one.
func over(runs []*recorded, set *Settings) int64 {
	if slices.ContainsFunc(runs, func(r *recorded) bool { return r.limited }) {
		return set.large()
	}
	return 0
}

// questions answers what o asks for, then searches.
func (r *Replay) questions(ctx context.Context, h *history, runs []*recorded, p *profile, o Options) error {
	changes := append([]Change(nil), o.Try...)
	asked := len(changes)
	if o.Auto {
		changes = append(changes, r.search(h, runs, p)...)
	}
	for i, c := range changes {
		q := &question{h: h, runs: runs, change: c, set: r.Settings, room: r.Room}
		if err := q.set.Apply(c.Conf); err != nil {
			return err
		}
		if c.Capacity > 0 {
			q.room = Room{Known: true, Bytes: c.Capacity, Most: c.Capacity, Event: -1, Basis: "as asked"}
		}
		if r.Settings.GCThreshold == 0 && q.set.GCThreshold > 0 && q.set.Limit == 0 && q.room.Known {
			q.set.Limit = q.room.Bytes
		}
		a, err := r.answer(ctx, q)
		if err != nil {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			a.Verdict, a.Why = CannotTell, err.Error()
		}
		a.Searched = i >= asked
		r.Answers = append(r.Answers, a)
	}
	if len(r.OOMs) > 0 || r.Room.Known && r.Recorded.Reserved > r.Room.Bytes {
		r.Best = best(r.Answers)
	}
	return nil
}
