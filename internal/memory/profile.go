package memory

import (
	"github.com/inquest-dev/inquest/internal/evidence"
	"github.com/inquest-dev/inquest/internal/incident"
)

// profile says what a memory timeline of the profiler shows: how much was alive by
// category, over time. It has neither addresses nor stacks nor the reserve.
func profile(m *evidence.MemSnapshot, o *Options) incident.MemoryDevice {
	t := m.Timeline
	d := incident.MemoryDevice{Trace: incident.MemoryTrace{Actions: map[string]int{}}, Live: []incident.MemoryUse{}, Causes: []incident.MemoryCause{}, Segments: []incident.MemorySegment{}, Stacks: []incident.MemoryStack{},
		Fragmentation: incident.MemoryFragmentation{Pools: []incident.MemoryPoolUse{}, Pinned: []incident.MemoryPinned{}, Histogram: []incident.MemoryFreeOfSizes{}, Says: "a memory timeline has no segments", Standing: incident.Undecidable, Missing: "a memory snapshot"},
		Pressure:      incident.MemoryPressure{OOMs: []incident.MemoryOOM{}, Flushes: []incident.MemoryFlush{}}}
	n := len(t.Points)
	d.Totals.Events = n
	if n == 0 {
		return d
	}
	w := &walk{m: m, t: &evidence.MemTrace{}}
	point := func(i int) *evidence.Span {
		return &evidence.Span{Artifact: m.Artifact, Kind: "event", Index: int64(i), Quote: evidence.Bytes(t.Points[i].Total()) + " alive"}
	}
	at := 0
	for i := range t.Points {
		if t.Points[i].Total() > t.Points[at].Total() {
			at = i
		}
	}
	categories := func(i int) []incident.MemoryUse {
		by := map[string]*share{}
		for c, b := range t.Points[i].Bytes {
			if b > 0 {
				by[evidence.MemCategories[c]] = &share{bytes: b}
			}
		}
		return uses(by, len(evidence.MemCategories), func(name string, s *share) incident.MemoryUse {
			return incident.MemoryUse{Name: name, Bytes: s.bytes, Span: point(i)}
		})
	}
	d.Peak = &incident.MemoryPeak{Event: at, Time: w.time(t.Points[at].Time), Active: t.Points[at].Total(), Stacks: []incident.MemoryUse{}, Frames: []incident.MemoryUse{}, StepsMade: []incident.MemoryUse{}, Category: categories(at), Spans: []evidence.Span{*point(at)}}
	d.Live = categories(n - 1)
	d.Totals.Active, d.Totals.Requested = t.Points[n-1].Total(), t.Points[n-1].Total()
	d.Trace.Start, d.Trace.End = w.time(t.Points[0].Time), w.time(t.Points[n-1].Time)
	d.Growth = &incident.MemoryGrowth{Basis: "from the beginning of the timeline to its end", From: 0, To: n - 1, Bytes: t.Points[n-1].Total() - t.Points[0].Total(),
		Says: "a timeline shows no steps, so that growth from step to step cannot be told", Suspects: []incident.MemoryGrown{}, Frames: []incident.MemoryUse{}, Others: []incident.MemoryGrown{}}
	if o.Buckets > 0 {
		d.Timeline = &incident.MemoryTimeline{Events: n, Buckets: []incident.MemoryBucket{}, Blocks: []incident.MemoryLife{}, Marks: []incident.MemoryMark{}}
		per := (n + o.Buckets - 1) / o.Buckets
		for from := 0; from < n; from += per {
			b := incident.MemoryBucket{From: from, To: min(from+per, n), Time: t.Points[from].Time, ActiveMin: t.Points[from].Total(), ActiveMax: t.Points[from].Total(), PeakAt: from}
			for i := from; i < b.To; i++ {
				v := t.Points[i].Total()
				b.ActiveMin = min(b.ActiveMin, v)
				if v > b.ActiveMax {
					b.ActiveMax, b.PeakAt = v, i
				}
			}
			d.Timeline.Buckets = append(d.Timeline.Buckets, b)
		}
	}
	return d
}
