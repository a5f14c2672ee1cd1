package engine

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/inquest-dev/inquest/internal/evidence"
	"github.com/inquest-dev/inquest/internal/incident"
	"github.com/inquest-dev/inquest/internal/timeline"
)

// slower is the ratio of step times from which one host counts as slower.
const slower = 1.1

// compareHost sets the host of the first fault beside one that is not suspected:
// what either's records say of versions, devices and faults, and how fast its
// ranks were. Only what both state, or a fault that one of them shows, is a row.
func (s *Study) compareHost(fresh string) *incident.HostComparison {
	c := s.Cases[s.Main]
	out := &incident.HostComparison{Fresh: fresh, Rows: []incident.HostRow{}}
	if c.Lead != nil {
		out.Suspect = c.Lead.Who.Host
	}
	switch {
	case !s.heardOf(fresh):
		out.Says = "No host named " + fresh + " is heard of in what was read: check the name, or put its nvidia-smi -q and dmesg into a folder with its name."
		return out
	case out.Suspect == "":
		out.Says = "The host of the first fault is not stated, so that there is nothing to compare " + fresh + " with."
		return out
	case out.Suspect == fresh:
		out.Says = "The first fault is on " + fresh + " itself: name a host that is not suspected."
		return out
	}
	a, b := s.stateOf(out.Suspect), s.stateOf(fresh)
	if len(a) == 0 || len(b) == 0 {
		which := out.Suspect
		if len(a) > 0 {
			which = fresh
		}
		out.Says = "No record of " + which + " is among what was read: put its nvidia-smi -q and dmesg into a folder with its name."
		return out
	}
	names := map[string]bool{}
	for n := range a {
		names[n] = true
	}
	for n := range b {
		names[n] = true
	}
	differ := 0
	for n := range names {
		x, y := a[n], b[n]
		fault := strings.HasPrefix(n, faultRow)
		if !fault && (x.text == "" || y.text == "") {
			continue
		}
		row := incident.HostRow{Name: strings.TrimPrefix(n, faultRow), Suspect: cmp.Or(x.text, "none"), Fresh: cmp.Or(y.text, "none"), Spans: append(slices.Clone(x.spans), y.spans...)}
		row.Differs = row.Suspect != row.Fresh
		if n == stepRow {
			row.Differs = x.number > slower*y.number || y.number > slower*x.number
		}
		if row.Differs {
			differ++
		}
		out.Rows = append(out.Rows, row)
	}
	slices.SortFunc(out.Rows, func(p, q incident.HostRow) int {
		if p.Differs != q.Differs {
			if p.Differs {
				return -1
			}
			return 1
		}
		return cmp.Compare(p.Name, q.Name)
	})
	onFresh := slices.ContainsFunc(out.Rows, func(r incident.HostRow) bool {
		return r.Fresh != "none" && r.Name == faultName(&c.Lead.Event)
	})
	switch {
	case onFresh:
		out.Says = fmt.Sprintf("%s shows the same kind of failure (%s): that speaks against a fault of %s alone.", fresh, faultName(&c.Lead.Event), out.Suspect)
	case differ == 0:
		out.Says = "What both hosts record is the same."
	default:
		out.Says = fmt.Sprintf("They differ in %d of %d things that were compared.", differ, len(out.Rows))
	}
	return out
}

const (
	faultRow = "fault: "
	stepRow  = "step time"
)

// faultName names a kind of failure, a driver's code by its number.
func faultName(e *evidence.Event) string {
	n := strings.ReplaceAll(string(e.Kind), "_", " ")
	for _, a := range []string{"xid", "sxid"} {
		if v, ok := e.Attrs[a]; ok {
			n += " " + v.String()
		}
	}
	return n
}

// consequence reports whether a driver's code only follows from another fault, or
// may be ignored until something else points at it.
func consequence(e *evidence.Event) bool {
	switch e.Attrs.Str("severity") {
	case "consequence", "notice", "nonfatal":
		return true
	}
	return false
}

// A hostValue is one thing that a host's records say.
type hostValue struct {
	text   string
	number float64
	spans  []evidence.Span
}

// stateOf gathers what the records of one host say.
func (s *Study) stateOf(host string) map[string]hostValue {
	out := map[string]hostValue{}
	note := func(name, text string, sp evidence.Span) {
		v := out[name]
		if v.text == "" {
			out[name] = hostValue{text: text, spans: []evidence.Span{sp}}
		} else if text != v.text && !slices.Contains(strings.Split(v.text, "; "), text) && strings.Count(v.text, "; ") < 8 {
			v.text, v.spans = v.text+"; "+text, append(v.spans, sp)
			out[name] = v
		}
	}
	faults := map[string]int{}
	at := map[string][]evidence.Span{}
	for i := range s.Reading.Sources {
		src := &s.Reading.Sources[i]
		whole := src.Artifact.Owner.Host == host
		for j := range src.Events {
			e := &src.Events[j]
			if hostOf(src, e) != host {
				continue
			}
			spec := evidence.SpecOf(e.Kind)
			if spec == nil {
				continue
			}
			switch spec.Role {
			case evidence.RoleFault, evidence.RoleStop:
				if consequence(e) {
					continue
				}
				n := faultName(e)
				faults[n]++
				at[n] = append(at[n], e.Span)
			case evidence.RoleContext:
				if e.Kind != evidence.GPUUsage {
					continue
				}
				for _, a := range spec.Attrs {
					v, ok := e.Attrs[a.Name]
					if !ok || slices.Contains(passing, a.Name) {
						continue
					}
					note("GPU "+strings.ReplaceAll(a.Name, "_", " "), v.String(), e.Span)
				}
			}
		}
		for _, f := range src.Facts {
			if (f.Who.Host == host || whole && f.Who.Host == "") && !strings.HasPrefix(f.Name, "setting.") {
				note(strings.TrimPrefix(f.Name, "run."), f.Value.String(), f.Span)
			}
		}
		s.stepTime(src, host, whole, out)
	}
	for n, count := range faults {
		sp := at[n]
		out[faultRow+n] = hostValue{text: times(int64(count)), spans: sp[:min(len(sp), 3)]}
	}
	return out
}

// passing are the attributes of a device that say what runs on it or which one it
// is, and nothing of its health.
var passing = []string{"gpu", "uuid", "bus_id", "used", "free", "util", "no_processes"}

// stepTime adds the median of the step times that the host's ranks logged.
func (s *Study) stepTime(src *timeline.Source, host string, whole bool, out map[string]hostValue) {
	on := map[int]bool{}
	for _, it := range s.Cases[s.Main].Attempt.Items {
		if it.Who.Host == host && it.Who.Rank != evidence.None {
			on[it.Who.Rank] = true
		}
	}
	for _, x := range src.Series {
		if x.Key.Name != "step_time" || !whole && !on[x.Key.Rank] {
			continue
		}
		var v []float64
		for p := range x.All() {
			if !math.IsNaN(p.Value) && !math.IsInf(p.Value, 0) {
				v = append(v, p.Value)
			}
		}
		if len(v) == 0 {
			continue
		}
		slices.Sort(v)
		if m := v[len(v)/2]; m > out[stepRow].number { // the slowest rank of the host
			out[stepRow] = hostValue{text: fmt.Sprintf("%.3g s", m), number: m, spans: []evidence.Span{x.Span(x.Last)}}
		}
	}
}

// heardOf reports whether anything that was read is of host or names it.
func (s *Study) heardOf(host string) bool {
	if len(s.stateOf(host)) > 0 {
		return true
	}
	for i := range s.Reading.Sources {
		src := &s.Reading.Sources[i]
		if src.Artifact.Owner.Host == host ||
			slices.ContainsFunc(src.Events, func(e evidence.Event) bool { return e.Who.Host == host }) ||
			slices.ContainsFunc(src.Facts, func(f evidence.Fact) bool { return f.Who.Host == host }) {
			return true
		}
	}
	return false
}
