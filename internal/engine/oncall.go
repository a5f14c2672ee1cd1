package engine

import (
	"cmp"
	"slices"

	"github.com/inquest-dev/inquest/internal/diagnose"
	"github.com/inquest-dev/inquest/internal/evidence"
	"github.com/inquest-dev/inquest/internal/incident"
	"github.com/inquest-dev/inquest/internal/remedy"
	"github.com/inquest-dev/inquest/internal/timeline"
)

// onCall gathers what the person on call decides on: the causes that stand
// equally high, the checkpoints before the fault and how far the run came.
func (s *Study) onCall(ranks []incident.Rank) *incident.OnCall {
	c, known, weighed := s.Cases[s.Main], s.Known[s.Main], s.Weighed[s.Main]
	if c.Lead == nil || len(weighed) == 0 {
		return nil
	}
	var causes []remedy.Cause
	for _, h := range weighed {
		if h.Standing == weighed[0].Standing {
			causes = append(causes, remedy.Cause{Entry: h.Entry, Standing: h.Standing})
		}
	}
	fault := s.event(c.Lead, c)
	locate(&fault, c.Lead, ranks)
	r := remedy.Run{Fault: &fault, Undecided: c.Undecided(), Command: c.Attempt.Command, World: int(known["run.world"].Value.I),
		Began: evidence.None, Reached: evidence.None, Good: evidence.None}
	hosts := map[string]bool{}
	for _, it := range c.Attempt.Items {
		if it.Attempt == c.Index && it.Who.Host != "" {
			hosts[it.Who.Host] = true
		}
		switch it.Kind {
		case evidence.ResumeMark:
			if v, ok := it.Attrs["step"]; ok {
				r.Began = v.I
			} else if n := remedy.StepOfPath(it.Attrs.Str("path")); n != evidence.None {
				r.Began = n
			}
		case evidence.CheckpointSaved, evidence.PhaseMark:
			if (it.Kind == evidence.CheckpointSaved || s.wentOn(c, it)) && c.Timeline.Order(it, c.Lead) != timeline.After {
				r.Saved = append(r.Saved, saved(it, c.Lead))
			}
		}
	}
	r.Hosts = len(hosts)
	for _, x := range c.Attempt.Series {
		if x.Key.Phase != "eval" && x.Count > 0 {
			r.Reached = max(r.Reached, x.Last.Step)
			if r.Began == evidence.None && x.First.Step == 1 {
				r.Began = 0
			}
		}
	}
	r.Reached = max(r.Reached, c.Lead.Step)
	if _, p := diagnose.LastGood(c); p != nil {
		r.Good = p.Step
	}
	if r.Saved = inOrder(r.Saved); r.Good == evidence.None && c.NaN == nil {
		r.Good = r.Reached
	}
	return remedy.OnCall(causes, weighed[0].Missing, known, r)
}

// wentOn reports whether a phase is the writing of a named checkpoint after which
// the same file has training lines: then the writing was over.
func (s *Study) wentOn(c *diagnose.Case, it *timeline.Item) bool {
	if it.Attrs.Str("phase") != "checkpoint" || it.Attrs.Str("path") == "" {
		return false
	}
	return slices.ContainsFunc(c.Attempt.Series, func(x *evidence.Series) bool {
		return x.Key.Artifact == it.Span.Artifact && x.Key.Launch == it.Who.Launch && x.Key.Phase != "eval" && x.Count > 0 && x.Last.Offset > it.Span.Offset
	})
}

// saved is one checkpoint with the time from it to the fault.
func saved(it, lead *timeline.Item) remedy.Saved {
	out := remedy.Saved{Step: evidence.None, Path: it.Attrs.Str("path"), Span: it.Span}
	if v, ok := it.Attrs["step"]; ok {
		out.Step = v.I
	} else if n := remedy.StepOfPath(out.Path); n != evidence.None {
		out.Step = n
	}
	if d, ok := timeline.Written(it, lead); ok && d >= 0 {
		n := d.Seconds()
		out.Seconds = &n
	}
	return out
}

// inOrder puts the checkpoints of all files in the order of their steps; those of
// no stated step keep their place before them, since nothing says how new they are.
func inOrder(all []remedy.Saved) []remedy.Saved {
	slices.SortStableFunc(all, func(a, b remedy.Saved) int { return cmp.Compare(a.Step, b.Step) })
	return all
}

// locate fills in the device of a fault from what is known of its rank.
func locate(fault *incident.Event, lead *timeline.Item, ranks []incident.Rank) {
	if lead.Who.BusID != "" {
		fault.Attrs["bus_id"] = lead.Who.BusID
	}
	for i := range ranks {
		r := &ranks[i]
		if fault.Rank == nil || r.Rank != *fault.Rank {
			continue
		}
		if fault.Device == nil {
			fault.Device = r.Device
		}
		if fault.Host == nil {
			fault.Host = r.Host
		}
		if _, ok := fault.Attrs["bus_id"]; !ok && r.BusID != nil {
			fault.Attrs["bus_id"] = *r.BusID
		}
	}
}
