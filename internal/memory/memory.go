// Package memory says what memory snapshots show: what made the peak, what grew, how
// the reserve is cut up, where requests were refused, what that proves of known
// causes, and how ranks differ. It reads no file.
//
// Sizes are bytes as asked for where a trace or a block states them (active), and as
// the allocator rounded them where blocks are added up (allocated, reserved).
package memory

import (
	"context"
	"fmt"
	"slices"

	"github.com/inquest-dev/inquest/internal/allocator"
	"github.com/inquest-dev/inquest/internal/evidence"
	"github.com/inquest-dev/inquest/internal/incident"
)

// Options say what to look at. The zero value looks at everything and draws nothing.
type Options struct {
	Top     int // rows of each table; 0 is 10
	Buckets int // of the timeline; 0: none is drawn
	Largest int // allocations that the timeline lists one by one
	Blocks  int // of segments that are listed, in all; 0: none is
	Devices []int
	// Capacity is the device's memory in bytes, as a person or a log states it; 0 unknown.
	Capacity int64
	// From and To are events between which growth is asked for; nil: the trace decides.
	From, To *int
	Replay   Replay
}

// Examine says what a snapshot shows, of each device that it speaks of. The error
// is ctx's.
func Examine(ctx context.Context, m *evidence.MemSnapshot, o Options) (*incident.MemorySnapshot, error) {
	if o.Top <= 0 {
		o.Top = 10
	}
	out := &incident.MemorySnapshot{Artifact: m.Artifact, Form: m.Form, Settings: settings(m), Lacks: []string{}, Devices: []incident.MemoryDevice{}}
	if m.Timeline != nil {
		out.Devices = append(out.Devices, profile(m, &o))
		out.Lacks = append(out.Lacks, "addresses, stacks, segments and the reserve: a memory timeline holds bytes by category only; a memory snapshot holds them")
		return out, nil
	}
	used := Devices(m)
	for _, d := range used {
		if len(o.Devices) > 0 && !slices.Contains(o.Devices, d) {
			continue
		}
		dev, lacks, err := examine(ctx, m, d, &o)
		if err != nil {
			return nil, err
		}
		for _, l := range lacks {
			if len(used) > 1 {
				l = fmt.Sprintf("GPU %d: %s", d, l)
			}
			out.Lacks = append(out.Lacks, l)
		}
		out.Devices = append(out.Devices, *dev)
	}
	if len(used) == 0 {
		out.Lacks = append(out.Lacks, "neither segments nor entries: nothing of the GPU was in use, or nothing was recorded")
	}
	switch {
	case m.Cut:
		out.Lacks = append(out.Lacks, "what follows where it is damaged: the end of its history and what it led to, so that nothing is replayed and nothing ruled out")
	case m.Has.Profile:
		out.Lacks = append(out.Lacks, "segments and the reserve: it was made of a profile, whose segments are only ranges of addresses")
	case !m.Has.Settings:
		out.Lacks = append(out.Lacks, "the allocator's settings: PyTorch before 2.1, or a tool, wrote the file without them")
	}
	return out, nil
}

// Devices are the numbers of the devices that have segments or entries, ascending.
func Devices(m *evidence.MemSnapshot) []int {
	var out []int
	has := map[int]bool{}
	for i := range m.Segments {
		has[m.Segments[i].Device] = true
	}
	for d := range m.Devices() {
		if has[d] || d < len(m.Traces) && m.Traces[d].Len() > 0 {
			out = append(out, d)
		}
	}
	return out
}

func settings(m *evidence.MemSnapshot) incident.MemorySettings {
	s := &m.Settings
	out := incident.MemorySettings{Stated: m.Has.Settings, Conf: bounded(s.Conf, 1000), Expandable: s.Expandable, GCThreshold: s.GCThreshold,
		Roundup: allocator.Settings{Roundup: s.Roundup}.RoundupText()}
	if s.HasMaxSplit && s.MaxSplit >= 0 {
		n := s.MaxSplit
		out.MaxSplit = &n
	}
	return out
}

// examine says what a snapshot shows of one device.
func examine(ctx context.Context, m *evidence.MemSnapshot, device int, o *Options) (*incident.MemoryDevice, []string, error) {
	w := newWalk(m, device, newStacks(m), o)
	if err := w.run(ctx); err != nil {
		return nil, nil, err
	}
	d := &incident.MemoryDevice{Device: device, Totals: w.totals(), Trace: w.trace(), Live: w.alive()}
	var err error
	if d.Peak, err = w.peakOf(ctx); err != nil {
		return nil, nil, err
	}
	now, err := w.last(ctx)
	if err != nil {
		return nil, nil, err
	}
	if d.Growth, err = w.growth(ctx, now); err != nil {
		return nil, nil, err
	}
	d.Fragmentation, d.Pressure, d.Outside = w.fragmentation(), w.pressure(), w.outside()
	if d.Causes, err = w.causes(ctx, now); err != nil {
		return nil, nil, err
	}
	if err := w.replay(ctx, d); err != nil {
		return nil, nil, err
	}
	d.Timeline = w.timeline()
	d.Segments, d.More = w.segments()
	d.Stacks = append([]incident.MemoryStack{}, w.st.list...)
	return d, w.lacks(d), nil
}

// trace says what history there is.
func (w *walk) trace() incident.MemoryTrace {
	t := incident.MemoryTrace{Actions: map[string]int{}, Start: w.time(w.timeFrom), End: w.time(w.timeTo), Truncated: w.truncated(), Cut: w.m.Cut}
	if w.steps.program() {
		t.Steps, t.StepBasis = w.steps.complete(), w.steps.basis
	}
	for a, n := range w.actions {
		if n > 0 {
			t.Actions[evidence.MemAction(a).String()] = n
		}
	}
	if w.timeFrom > 0 {
		s := float64(w.timeTo-w.timeFrom) / 1e6
		t.Seconds = &s
	}
	return t
}

// truncated says how it is known that older entries were lost, "" where it is not.
func (w *walk) truncated() string {
	n := w.t.Len()
	switch {
	case n <= 1:
		return ""
	case w.m.Has.Overflowed:
		return "the file says that older entries were overwritten"
	case w.m.Settings.MaxEntries > 0 && int64(n) >= w.m.Settings.MaxEntries:
		return fmt.Sprintf("the %s entries are as many as the ring held", evidence.Count(n))
	case n >= 1000 && (n%10_000 == 0 || n&(n-1) == 0) || n >= 100_000 && n%1000 == 0:
		return fmt.Sprintf("there are exactly %s entries, as in a ring that is full", evidence.Count(n))
	}
	return ""
}

// alive lists by stack what is in use at the end, by the blocks of the file.
func (w *walk) alive() []incident.MemoryUse {
	by := map[uint32]*share{}
	w.inUse(func(i int, b *evidence.MemBlock) {
		into(by, b.Stack, &element{addr: uint64(i), size: requested(b), event: beforeTrace, stack: b.Stack})
	})
	return uses(by, w.o.Top, func(stack uint32, s *share) incident.MemoryUse {
		sp := w.block(int(s.big.addr))
		return incident.MemoryUse{Name: w.st.name(stack), Stack: w.st.index(stack), Bytes: s.bytes, Blocks: s.blocks, Span: &sp}
	})
}

// lacks says what the file does not hold of a device, and what cannot be said for
// want of it.
func (w *walk) lacks(d *incident.MemoryDevice) []string {
	var out []string
	add := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	if t := &d.Totals; t.Active > t.Reserved && !w.m.Has.Profile {
		add("segments that its blocks fit: %s are in use in segments of %s", evidence.Bytes(t.Active), evidence.Bytes(t.Reserved))
	}
	if w.bare() {
		add("a history: what made the peak, what grew and what another setting would change cannot be told; torch.cuda.memory._record_memory_history() before the part in question records it")
		return out
	}
	if w.truncated() != "" {
		add("older entries (%s): the peak and the growth are those of the rest", w.truncated())
	}
	if len(w.initial) > 0 {
		add("the history of %s, %s, that are older than the trace: they were allocated before the recording began, or their entries were lost", count(len(w.initial), "block"), evidence.Bytes(w.base))
	}
	if w.ends && w.actions[evidence.MemFreeRequested] > 0 {
		add("completed frees: blocks count as gone when their free was asked for")
	}
	if w.lost.n > 0 {
		add("the free of %s (%s): another was made at the same address later", count(w.lost.n, "allocation"), evidence.Bytes(w.lost.bytes))
	}
	if w.after.n > 0 {
		add("the history of %s (%s) that were allocated after the trace ended", count(w.after.n, "block"), evidence.Bytes(w.after.bytes))
	}
	if w.ghosts.n > 0 {
		add("the end of %s (%s) that no block at the end holds: the history ends before the segments were listed", count(w.ghosts.n, "allocation"), evidence.Bytes(w.ghosts.bytes))
	}
	if w.start < 0 {
		add("segments: more were given back than the file accounts for, so that reserved memory is too low by %s", evidence.Bytes(-w.start))
	}
	if d.Peak != nil && d.Peak.Active > 0 {
		var none int64
		for _, u := range d.Peak.Frames {
			if u.Name == noStack || u.Name == olderNoStack {
				none += u.Bytes
			}
		}
		if 10*none >= d.Peak.Active {
			add("the stacks of %s of what was active at the peak", percent(none, d.Peak.Active))
		}
	}
	if d.Peak != nil && d.Peak.Active > d.Peak.Reserved && !w.m.Has.Profile {
		add("segments that its history fits: at the peak %s are active and %s reserved", evidence.Bytes(d.Peak.Active), evidence.Bytes(d.Peak.Reserved))
	}
	if !w.m.Has.Times {
		add("times: annotations cannot be placed")
	}
	return out
}
