package trial

import (
	"math"

	"github.com/inquest-dev/inquest/internal/incident"
)

// A peak is the highest use of one kind of memory by a trial that passed.
type peak struct {
	x     int64 // the value
	bytes int64
}

// fitOf is the line of least squares through peaks; null with fewer than two values.
func fitOf(measure string, peaks []peak, limit *int64) *incident.Fit {
	var n, sx, sy float64
	for _, p := range peaks {
		n, sx, sy = n+1, sx+float64(p.x), sy+float64(p.bytes)
	}
	if n < 2 {
		return nil
	}
	mx, my := sx/n, sy/n
	var xx, xy float64
	for _, p := range peaks {
		dx := float64(p.x) - mx
		xx, xy = xx+dx*dx, xy+dx*(float64(p.bytes)-my)
	}
	if xx == 0 {
		return nil
	}
	f := &incident.Fit{Measure: measure, B: xy / xx, Points: len(peaks)}
	f.A = my - f.B*mx
	var far float64
	for _, p := range peaks {
		far = max(far, math.Abs(float64(p.bytes)-f.A-f.B*float64(p.x)))
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

// binding is the measure that comes nearest to its limit, of those that count for the memory that
// ran out (where, "" for any). Without limits it is the first in the order of this list.
func binding(all []incident.Measure, where string) *incident.Measure {
	var best *incident.Measure
	for i := range all {
		m := &all[i]
		if m.Peak <= 0 || !countsFor(m.Name, where) {
			continue
		}
		if best == nil || nearer(m, best) {
			best = m
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
