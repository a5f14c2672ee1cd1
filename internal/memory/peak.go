package memory

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/inquest-dev/inquest/internal/evidence"
	"github.com/inquest-dev/inquest/internal/incident"
)

// A share adds up allocations of one kind, and remembers the largest of them.
type share struct {
	bytes  int64
	blocks int
	big    element
}

func (s *share) add(x *element) {
	s.bytes += x.size
	if s.blocks++; s.blocks == 1 || x.size > s.big.size || x.size == s.big.size && (x.event < s.big.event || x.event == s.big.event && x.addr < s.big.addr) {
		s.big = *x
	}
}

// uses lists shares by their bytes, the largest first; of equals by name.
func uses[K cmp.Ordered](of map[K]*share, top int, use func(K, *share) incident.MemoryUse) []incident.MemoryUse {
	keys := make([]K, 0, len(of))
	for k := range of {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, func(a, b K) int {
		return cmp.Or(cmp.Compare(of[b].bytes, of[a].bytes), cmp.Compare(of[b].blocks, of[a].blocks), cmp.Compare(a, b))
	})
	out := []incident.MemoryUse{}
	for _, k := range keys[:min(len(keys), top)] {
		out = append(out, use(k, of[k]))
	}
	return out
}

func into[K comparable](of map[K]*share, k K, x *element) {
	s := of[k]
	if s == nil {
		s = &share{}
		of[k] = s
	}
	s.add(x)
}

// span points at entry i of the trace; nil where there is none.
func (w *walk) span(i int) *evidence.Span {
	if i < 0 || i >= w.t.Len() {
		return nil
	}
	e := w.t.At(i)
	quote := e.Action.String()
	switch e.Action {
	case evidence.MemOOM:
		quote += " of " + evidence.Bytes(sane(e.Size)) + ", device free " + evidence.Bytes(int64(min(e.Addr, 1<<62)))
	case evidence.MemSnapshotMark, evidence.MemOther, evidence.MemUserDefined:
	default:
		quote += " of " + evidence.Bytes(sane(e.Size))
	}
	if e.Stack != 0 {
		quote += ", " + w.st.name(e.Stack)
	}
	return &evidence.Span{Artifact: w.m.Artifact, Kind: "event", Device: w.device, Index: int64(i), Quote: quote}
}

// block points at block i of the file.
func (w *walk) block(i int) evidence.Span {
	b := &w.m.Blocks[i]
	state := [...]string{"free block", "block", "block whose free is pending"}[min(int(b.State), 2)]
	quote := state + " of " + evidence.Bytes(sane(b.Size))
	if b.Stack != 0 && b.State != evidence.BlockInactive {
		quote += ", " + w.st.name(b.Stack)
	}
	return evidence.Span{Artifact: w.m.Artifact, Kind: "block", Device: w.device, Index: int64(i), Quote: quote}
}

// where points at what made an element: its alloc, or nothing before the trace.
func (w *walk) where(x *element) *evidence.Span { return w.span(int(x.event)) }

// stackUse is a share of one stack as a line of a table.
func (w *walk) stackUse(stack uint32, s *share) incident.MemoryUse {
	return incident.MemoryUse{Name: w.st.name(stack), Stack: w.st.index(stack), Bytes: s.bytes, Blocks: s.blocks, Span: w.where(&s.big)}
}

// named is a share of something that has a name.
func (w *walk) named(name string, s *share) incident.MemoryUse {
	return incident.MemoryUse{Name: name, Stack: w.st.index(s.big.stack), Bytes: s.bytes, Blocks: s.blocks, Span: w.where(&s.big)}
}

// olderNoStack is what is known of blocks that are older than the trace, and whose
// stack is not in the file.
const olderNoStack = "older than the trace, no stack recorded"

// noCategory is what a profiler could not tell.
const noCategory = "not categorised"

func (w *walk) category(note uint32) string {
	if int(note) < len(w.m.Notes) && w.m.Notes[note].Category != "" {
		return strings.ToLower(bounded(w.m.Notes[note].Category, 40))
	}
	return noCategory
}

// makes says who made what is alive.
func (w *walk) makes(alive func(fn func(*element)), p *incident.MemoryPeak) {
	byStack, byLabel, byCategory, byStep := map[uint32]*share{}, map[string]*share{}, map[string]*share{}, map[int]*share{}
	const before = -2
	alive(func(x *element) {
		into(byStack, x.stack, x)
		if label := w.st.labels[w.st.of(x.stack).label]; x.event < 0 && label == noStack {
			into(byLabel, olderNoStack, x)
		} else {
			into(byLabel, label, x)
		}
		into(byCategory, w.category(x.note), x)
		if x.event < 0 {
			p.Before += x.size
			into(byStep, before, x)
		} else {
			k := 0
			if w.steps.program() {
				k = w.steps.of(int(x.event))
			}
			into(byStep, k, x)
		}
	})
	p.Stacks = uses(byStack, w.o.Top, w.stackUse)
	p.Frames = uses(byLabel, w.o.Top, w.named)
	p.Category, p.StepsMade = []incident.MemoryUse{}, []incident.MemoryUse{}
	if _, none := byCategory[noCategory]; !none || len(byCategory) > 1 {
		p.Category = uses(byCategory, w.o.Top, w.named)
	}
	p.StepsMade = uses(byStep, w.o.Top, func(k int, s *share) incident.MemoryUse {
		if k == before {
			return w.named("before the trace began", s)
		}
		if !w.steps.program() {
			return w.named("in the trace", s)
		}
		return w.named(w.steps.name(k), s)
	})
}

// peakOf is the moment at which most was active; nil without a trace.
func (w *walk) peakOf(ctx context.Context) (*incident.MemoryPeak, error) {
	if w.bare() {
		return nil, nil
	}
	p := &incident.MemoryPeak{Event: w.peak.event, Active: w.peak.value, Reserved: w.reservedAt(w.peak.event), Spans: []evidence.Span{}}
	if sp := w.span(p.Event); sp != nil {
		p.Spans = append(p.Spans, *sp)
		p.Time = w.time(w.t.At(p.Event).Time)
		p.Step = around(w.notes, p.Event)
		if w.steps.program() {
			p.Step = w.steps.name(w.steps.of(p.Event))
		}
	}
	if n := len(w.tops); n >= fewest && w.steps.program() {
		tops := make([]int64, n)
		for k := range w.tops {
			tops[k] = w.tops[k].value
		}
		slices.Sort(tops)
		p.Typical = &tops[n/2]
	}
	err := w.at(ctx, []int{p.Event}, func(_ int, alive *table) { w.makes(alive.all, p) })
	return p, err
}

// bare reports whether there is no history: memory that is not recorded leaves
// at most one entry.
func (w *walk) bare() bool { return w.t.Len() <= 1 }

// reservedAt is what the allocator had after event i.
func (w *walk) reservedAt(at int) int64 {
	n := w.start
	for i, e := range w.t.All() {
		if i > at {
			break
		}
		switch e.Action {
		case evidence.MemSegmentAlloc, evidence.MemSegmentMap:
			n += sane(e.Size)
		case evidence.MemSegmentFree, evidence.MemSegmentUnmap:
			n -= sane(e.Size)
		}
	}
	return n
}
