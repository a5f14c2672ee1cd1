package trial

import (
	"math"
	"slices"

	"github.com/inquest-dev/inquest/internal/incident"
)

// A peak is the highest use of one kind of memory by a trial that passed.
type peak struct {
	x       int64 // the value
	bytes   int64
	atLeast bool // the highest of samples
}

// fitOf is a line through peaks; null with fewer than two values. It is that of least squares,
// but where a peak may be too low, because it was missed between two samples: then it is the line
// of Theil and Sen (the median of the slopes between any two peaks, and the median of what is left
// by it), which a few such peaks do not bend, and those that lie below it say nothing against it.
func fitOf(measure string, peaks []peak, limit *int64) *incident.Fit {
	if len(peaks) < 2 {
		return nil
	}
	f := &incident.Fit{Measure: measure, Points: len(peaks)}
	for _, p := range peaks {
		f.AtLeast = f.AtLeast || p.atLeast
	}
	line := leastSquares
	if f.AtLeast {
		line = medians
	}
	var ok bool
	if f.A, f.B, ok = line(peaks); !ok {
		return nil
	}
	var far float64
	for _, p := range peaks {
		d := float64(p.bytes) - f.A - f.B*float64(p.x)
		if d > 0 || !p.atLeast {
			far = max(far, math.Abs(d))
		}
	}
	f.Residual = int64(math.Ceil(far))
	if limit == nil || f.B <= 0 {
		return f
	}
	within := func(more float64) *int64 {
		v := math.Floor((float64(*limit) - f.A - more) / f.B)
		if math.Abs(v) > 1<<53 || math.IsNaN(v) {
			return nil
		}
		i := int64(v)
		return &i
	}
	f.Edge, f.EdgeLow, f.EdgeHigh = within(0), within(far), within(-far)
	return f
}

// leastSquares is the line a + b·x of least squares; not ok where all x are equal.
func leastSquares(peaks []peak) (a, b float64, ok bool) {
	var n, sx, sy float64
	for _, p := range peaks {
		n, sx, sy = n+1, sx+float64(p.x), sy+float64(p.bytes)
	}
	mx, my := sx/n, sy/n
	var xx, xy float64
	for _, p := range peaks {
		dx := float64(p.x) - mx
		xx, xy = xx+dx*dx, xy+dx*(float64(p.bytes)-my)
	}
	if xx == 0 {
		return 0, 0, false
	}
	b = xy / xx
	return my - b*mx, b, true
}

// medians is the line a + b·x of Theil and Sen; not ok where all x are equal.
func medians(peaks []peak) (a, b float64, ok bool) {
	var slopes, rest []float64
	for i, p := range peaks {
		for _, q := range peaks[:i] {
			if p.x != q.x {
				slopes = append(slopes, float64(p.bytes-q.bytes)/float64(p.x-q.x))
			}
		}
	}
	if len(slopes) == 0 {
		return 0, 0, false
	}
	b = middle(slopes)
	for _, p := range peaks {
		rest = append(rest, float64(p.bytes)-b*float64(p.x))
	}
	return middle(rest), b, true
}

func middle(v []float64) float64 {
	slices.Sort(v)
	n := len(v)
	return (v[(n-1)/2] + v[n/2]) / 2
}

// A bind is the memory that binds: the measure that came nearest to its limit.
type bind struct {
	name  string // of the measure; "" where none was taken
	limit *int64 // that a trial was seen to have where others do not show it; null where none is known
	by    string
	why   string // why no limit of this memory can be what it ran out of; "" where it can
}

// nearEnough is how much of its limit a memory must have been seen to use, in any trial, to be the
// one that ran out.
const nearEnough = 0.5

// bindOf tells which memory binds, from all trials, also those that failed: they come nearest to
// the limit. where is the memory that ran out, "" where none did.
func bindOf(trials []incident.Trial, where string) bind {
	var best *incident.Measure
	var b bind
	for i := range trials {
		for j := range trials[i].Measures {
			m := &trials[i].Measures[j]
			if m.Peak > 0 && countsFor(m.Name, where) && (best == nil || nearer(m, best)) {
				best = m
			}
		}
	}
	if best == nil {
		return b
	}
	b.name = best.Name
	if f := fraction(best); where != "" && f >= 0 && f < nearEnough {
		b.why = "memory ran out while no measured memory was near a limit of it"
	}
	if b.name == incident.AddressSpace {
		// A command that sets the limit itself may be seen with it in one trial and not in another.
		for i := range trials {
			for _, m := range trials[i].Measures {
				if m.Name == b.name && m.Limit != nil && (b.limit == nil || *m.Limit < *b.limit) {
					b.limit, b.by = m.Limit, m.LimitBy
				}
			}
		}
	}
	return b
}

// of is what a trial used of it, null where that was not measured; of several devices or
// processes the one nearest to its limit.
func (b bind) of(t *incident.Trial) *incident.Measure {
	var best *incident.Measure
	for _, m := range t.Measures {
		if m.Name != b.name || m.Peak <= 0 {
			continue
		}
		if m.Limit == nil || b.limit != nil && *b.limit < *m.Limit {
			m.Limit, m.LimitBy = b.limit, b.by
		}
		if b.why != "" {
			m.Limit, m.LimitBy = nil, ""
		}
		if best == nil || nearer(&m, best) {
			best = &m
		}
	}
	return best
}

// order of measures where no limit tells them apart: what names the device's memory first.
var measureOrder = []string{incident.DeviceMemory, incident.Reserved, incident.AddressSpace, incident.CgroupMemory, incident.Resident, incident.Allocated}

func nearer(m, best *incident.Measure) bool {
	a, b := fraction(m), fraction(best)
	switch {
	case a >= 0 && b >= 0 && a != b:
		return a > b
	case (a >= 0) != (b >= 0):
		return a >= 0
	case rankOf(m.Name) != rankOf(best.Name):
		return rankOf(m.Name) < rankOf(best.Name)
	}
	return m.Peak > best.Peak
}

func rankOf(name string) int {
	for i, n := range measureOrder {
		if n == name {
			return i
		}
	}
	return len(measureOrder)
}

// fraction is how much of its limit a measure used, -1 where no limit is known.
func fraction(m *incident.Measure) float64 {
	if m.Limit == nil || *m.Limit <= 0 {
		return -1
	}
	return float64(m.Peak) / float64(*m.Limit)
}

// countsFor reports whether a measure is of the memory that ran out.
func countsFor(name, where string) bool {
	device := name == incident.DeviceMemory || name == incident.Reserved || name == incident.Allocated
	switch where {
	case "device_memory":
		return device
	case "host_memory":
		return !device
	case "shared_memory":
		return name == incident.CgroupMemory
	}
	return true
}
