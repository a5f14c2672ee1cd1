// Package detect turns numbers into facts: byte reconciliation of an
// out-of-memory message, growth of memory over steps, when and how a series
// stopped being finite, who holds a device, what the stack was doing. Every
// fact carries the spans that prove it. A fact that the evidence does not hold
// is left out, which means unknown.
package detect

import (
	"sort"

	"github.com/inquest-dev/inquest/internal/evidence"
)

// An Input is one attempt as the detectors see it.
type Input struct {
	Lead   *evidence.Event   // the leading fault; nil when there is none
	Memory *evidence.Event   // the device-memory failure to explain, Lead or another; nil when there is none
	NaN    *evidence.Event   // the non-finite value to explain; nil when there is none
	Events []*evidence.Event // all of the attempt, artifact order, machine records last
	Series []*evidence.Series
	Stated []evidence.Fact // settings and versions that the log states
	World  int             // ranks of the job, 0 if unknown
	Before *Previous       // the attempt before this one; nil if there is none

	// After reports whether a is known to come after b (timeline order).
	After func(a, b *evidence.Event) bool
	// Recovered reports whether a fault was survived: the run went on after it.
	Recovered func(*evidence.Event) bool
}

// Previous is what matters of the attempt before.
type Previous struct {
	Facts     evidence.Known
	Class     evidence.Class // class of its leading fault
	Nonfinite bool           // it ended with non-finite values
	Memory    bool           // it ended out of device memory
	Points    int64          // training lines that it logged
	Opening   *evidence.Span // its line of step 0 or 1, where it logged that
}

// detectors is the list; order matters where one reads what another set.
var detectors = []struct {
	name string
	run  func(Input, evidence.Known)
}{
	{"settings", settings},
	{"counts", counts},
	{"stack", stack},
	{"batch", batch},
	{"device memory", deviceMemory},
	{"memory over time", memoryOverTime},
	{"allocator counters", allocatorCounters},
	{"memory snapshots", snapshots},
	{"reserve", reserve},
	{"devices", devices},
	{"device health", deviceHealth},
	{"non-finite values", nonfinite},
	{"host memory", hostMemory},
	{"collectives", collectives},
	{"late rank", lateRank},
	{"device faults", deviceFaults},
	{"storage", storage},
	{"loader workers", workers},
	{"exits", exits},
	{"outside stops", outsideStops},
	{"scheduler", scheduler},
	{"changes", changes},
}

// Run computes all facts of one attempt.
func Run(in Input) evidence.Known {
	f := evidence.Known{}
	for _, d := range detectors {
		d.run(in, f)
	}
	return f
}

// counts sets seen.<kind> for every kind that occurred; the others are 0 by
// definition of the name.
func counts(in Input, f evidence.Known) {
	for _, e := range in.Events {
		n := "seen." + string(e.Kind)
		x := f[n]
		x.Value = evidence.IntOf(x.Value.I + 1)
		if len(x.Spans) < 3 {
			x.Spans = append(x.Spans, e.Span)
		}
		f[n] = x
	}
}

func (in Input) each(k evidence.Kind, fn func(*evidence.Event)) {
	for _, e := range in.Events {
		if e.Kind == k {
			fn(e)
		}
	}
}

func (in Input) first(kinds ...evidence.Kind) *evidence.Event {
	for _, e := range in.Events {
		for _, k := range kinds {
			if e.Kind == k {
				return e
			}
		}
	}
	return nil
}

// named returns the series of a canonical name in the given phase ("" any),
// longest first.
func (in Input) named(name, phase string) []*evidence.Series {
	var out []*evidence.Series
	for _, s := range in.Series {
		if s.Key.Name == name && (phase == "" || s.Key.Phase == phase || phase == "train" && s.Key.Phase == "") && s.Count > 0 {
			out = append(out, s)
		}
	}
	sort.SliceStable(out, func(i, j int) bool { return out[i].Count > out[j].Count })
	return out
}

// longest returns the series of a name and phase with the most points, or nil.
func (in Input) longest(name, phase string) *evidence.Series {
	if list := in.named(name, phase); len(list) > 0 {
		return list[0]
	}
	return nil
}

func median(v []float64) float64 {
	if len(v) == 0 {
		return 0
	}
	s := append([]float64(nil), v...)
	sort.Float64s(s)
	if n := len(s); n%2 == 0 {
		return (s[n/2-1] + s[n/2]) / 2
	}
	return s[len(s)/2]
}
