package memory

import (
	"cmp"
	"slices"

	"github.com/inquest-dev/inquest/internal/evidence"
	"github.com/inquest-dev/inquest/internal/incident"
)

// Bounds of what a report draws.
const (
	maxMarks        = 2000
	maxSegments     = 2000
	maxSegmentParts = 4000 // of one
)

// timeline is the history in buckets of equally many entries; each keeps its
// extremes, so that a peak of one entry is as high in the picture as it was.
func (w *walk) timeline() *incident.MemoryTimeline {
	if w.bare() || w.o.Buckets <= 0 {
		return nil
	}
	t := &incident.MemoryTimeline{Events: w.t.Len(), Buckets: []incident.MemoryBucket{}, Blocks: []incident.MemoryLife{}, Marks: []incident.MemoryMark{}}
	step := (len(w.curve) + w.o.Buckets - 1) / w.o.Buckets
	for i := 0; i < len(w.curve); i += step {
		c := &w.curve[i]
		b := incident.MemoryBucket{From: c.from, Time: c.time, ActiveMin: c.min, ActiveMax: c.max, PeakAt: c.maxAt, ReservedMin: c.resMin, ReservedMax: c.resMax}
		for _, c := range w.curve[i:min(i+step, len(w.curve))] {
			b.To = c.to
			b.ActiveMin = min(b.ActiveMin, c.min)
			if c.max > b.ActiveMax {
				b.ActiveMax, b.PeakAt = c.max, c.maxAt
			}
			b.ReservedMin, b.ReservedMax = min(b.ReservedMin, c.resMin), max(b.ReservedMax, c.resMax)
		}
		t.Buckets = append(t.Buckets, b)
	}
	lives := slices.Clone(w.largest.heap)
	slices.SortFunc(lives, func(a, b life) int {
		return cmp.Or(cmp.Compare(b.size, a.size), cmp.Compare(a.event, b.event), cmp.Compare(a.addr, b.addr))
	})
	for _, x := range lives {
		l := incident.MemoryLife{From: int(x.event), To: x.to, Addr: x.addr, Bytes: x.size, Stack: -1}
		if n := w.st.index(x.stack); n != nil {
			l.Stack = *n
		}
		t.Blocks = append(t.Blocks, l)
	}
	t.Rest = w.largest.all - len(lives)
	t.Marks = w.marks()
	return t
}

// marks are what the timeline points out, in order.
func (w *walk) marks() []incident.MemoryMark {
	out := []incident.MemoryMark{}
	put := func(event int, kind, text string) {
		if len(out) < maxMarks {
			out = append(out, incident.MemoryMark{Event: event, Kind: kind, Text: text})
		}
	}
	for i := range w.refused {
		if i < maxListed {
			put(w.refused[i].event, "oom", "refused: "+evidence.Bytes(w.refused[i].request))
		}
	}
	snapshots := 0
	if w.actions[evidence.MemSnapshotMark] > 0 {
		for i, e := range w.t.All() {
			if e.Action == evidence.MemSnapshotMark && snapshots < maxListed {
				put(i, "snapshot", "a snapshot was taken")
				snapshots++
			}
		}
	}
	if n := len(w.steps.bounds); n > 0 && n <= maxMarks/2 {
		for k, at := range w.steps.bounds[:min(n, len(w.steps.names))] {
			if w.steps.program() {
				put(at, "step", w.steps.names[k])
			}
		}
	}
	for i, x := range w.notes {
		if i < maxMarks/4 && x.from < w.t.Len() {
			put(x.from, "annotation", bounded(x.name, 80))
		}
	}
	slices.SortStableFunc(out, func(a, b incident.MemoryMark) int { return cmp.Compare(a.Event, b.Event) })
	return out
}

// segments lists the segments at the end, the largest first, and how many more
// there are.
func (w *walk) segments() ([]incident.MemorySegment, int) {
	var all []int
	for i := range w.m.Segments {
		if w.m.Segments[i].Device == w.device {
			all = append(all, i)
		}
	}
	slices.SortStableFunc(all, func(a, b int) int { return cmp.Compare(w.m.Segments[b].Total, w.m.Segments[a].Total) })
	out := []incident.MemorySegment{}
	left := w.o.Blocks
	for _, i := range all {
		if len(out) == maxSegments || left <= 0 {
			break
		}
		s := &w.m.Segments[i]
		x := incident.MemorySegment{Span: w.segment(i), Addr: s.Addr, Total: s.Total, Stream: w.stream(s.Stream), Pool: w.pool(s.Pool), Class: class(s.Small), Expandable: s.Expandable, Blocks: []incident.MemorySegmentPart{}}
		at := int64(0)
		for n := range w.m.BlocksOf(s) {
			b := &w.m.Blocks[s.First+n]
			if len(x.Blocks) == maxSegmentParts || left == 0 {
				x.More++
				continue
			}
			left--
			part := incident.MemorySegmentPart{Offset: at, Size: sane(b.Size), State: [...]string{"free", "active", "pending"}[min(int(b.State), 2)], Stack: -1}
			if b.State != evidence.BlockInactive {
				if n := w.st.index(b.Stack); n != nil {
					part.Stack = *n
				}
			}
			x.Blocks = append(x.Blocks, part)
			at += part.Size
		}
		out = append(out, x)
	}
	return out, len(all) - len(out)
}
