package report

import (
	"fmt"
	"slices"
	"strings"

	"github.com/inquest-dev/inquest/internal/evidence"
	"github.com/inquest-dev/inquest/internal/incident"
)

// A memSketch is the curve as a drawing that needs no script: in a box of 1000 by 100.
type memSketch struct {
	Active, Reserved string // points; the first is closed along the ground
	OOMs             []string
	Top              int64
	Caption          string
}

// A memCurveRow is a stretch of the curve in figures.
type memCurveRow struct {
	From, To, PeakAt int
	Active, Reserved [2]int64 // lowest and highest
	Marks            string
}

const (
	sketchColumns = 500
	curveLength   = 24
)

// shrink cuts buckets down to at most n by joining neighbours. Extremes stay.
func shrink(buckets []incident.MemoryBucket, n int) []incident.MemoryBucket {
	if len(buckets) <= n {
		return buckets
	}
	k := (len(buckets) + n - 1) / n
	var out []incident.MemoryBucket
	for part := range slices.Chunk(buckets, k) {
		b := part[0]
		for _, next := range part[1:] {
			b.To = next.To
			if next.ActiveMax > b.ActiveMax {
				b.ActiveMax, b.PeakAt = next.ActiveMax, next.PeakAt
			}
			b.ActiveMin = min(b.ActiveMin, next.ActiveMin)
			b.ReservedMin = min(b.ReservedMin, next.ReservedMin)
			b.ReservedMax = max(b.ReservedMax, next.ReservedMax)
		}
		out = append(out, b)
	}
	return out
}

func topOf(buckets []incident.MemoryBucket) int64 {
	top := int64(1)
	for i := range buckets {
		top = max(top, buckets[i].ActiveMax, buckets[i].ReservedMax)
	}
	return top
}

// polyline draws one value of the buckets in a box of 1000 by 100, with top at its
// upper edge; closed, it goes back along the ground.
func polyline(buckets []incident.MemoryBucket, top int64, closed bool, value func(*incident.MemoryBucket) int64) string {
	var b strings.Builder
	if closed {
		b.WriteString("0,100 ")
	}
	n := float64(len(buckets))
	for i := range buckets {
		y := 100 - 100*float64(value(&buckets[i]))/float64(max(top, 1))
		fmt.Fprintf(&b, "%.5g,%.4g %.5g,%.4g ", 1000*float64(i)/n, y, 1000*float64(i+1)/n, y)
	}
	if closed {
		b.WriteString("1000,100")
	}
	return strings.TrimSpace(b.String())
}

func sketchOf(t *incident.MemoryTimeline) *memSketch {
	some := shrink(t.Buckets, sketchColumns)
	s := &memSketch{Top: topOf(some)}
	s.Active = polyline(some, s.Top, true, func(b *incident.MemoryBucket) int64 { return b.ActiveMax })
	s.Reserved = polyline(some, s.Top, false, func(b *incident.MemoryBucket) int64 { return b.ReservedMax })
	for _, m := range t.Marks {
		if m.Kind == "oom" && len(s.OOMs) < 20 {
			s.OOMs = append(s.OOMs, fmt.Sprintf("%.5g", 1000*float64(m.Event)/float64(max(t.Events, 1))))
		}
	}
	peak := slices.MaxFunc(some, func(a, b incident.MemoryBucket) int {
		switch {
		case a.ActiveMax < b.ActiveMax:
			return -1
		case a.ActiveMax > b.ActiveMax:
			return 1
		}
		return 0
	})
	reserved := int64(0)
	for i := range some {
		reserved = max(reserved, some[i].ReservedMax)
	}
	when := fmt.Sprintf("between events %s and %s", evidence.Count(peak.From), evidence.Count(peak.To-1))
	if inBucket(&peak) {
		when = "at event " + evidence.Count(peak.PeakAt)
	}
	s.Caption = fmt.Sprintf("Active and reserved bytes over %s events. Highest active: %s, %s; highest reserved: %s.", evidence.Count(t.Events), evidence.Bytes(peak.ActiveMax), when, evidence.Bytes(reserved))
	return s
}

// curveRows is the curve as a table, for those who cannot see a drawing.
func curveRows(t *incident.MemoryTimeline) []memCurveRow {
	var out []memCurveRow
	for _, b := range shrink(t.Buckets, curveLength) {
		r := memCurveRow{From: b.From, To: b.To - 1, PeakAt: b.PeakAt, Active: [2]int64{b.ActiveMin, b.ActiveMax}, Reserved: [2]int64{b.ReservedMin, b.ReservedMax}}
		if !inBucket(&b) {
			r.PeakAt = -1
		}
		kinds := map[string]int{}
		for _, m := range t.Marks {
			if m.Event >= b.From && m.Event < b.To {
				kinds[m.Kind]++
			}
		}
		var marks []string
		for _, k := range []string{"oom", "step", "snapshot", "annotation"} {
			if n := kinds[k]; n > 0 {
				marks = append(marks, fmt.Sprintf("%d %s", n, k))
			}
		}
		r.Marks = strings.Join(marks, ", ")
		out = append(out, r)
	}
	return out
}

// inBucket reports whether the bucket says at which of its events the peak was.
func inBucket(b *incident.MemoryBucket) bool { return b.PeakAt >= b.From && b.PeakAt < b.To }
