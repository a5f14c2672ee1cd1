package engine

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/inquest-dev/inquest/internal/diagnose"
	"github.com/inquest-dev/inquest/internal/evidence"
	"github.com/inquest-dev/inquest/internal/incident"
	"github.com/inquest-dev/inquest/internal/timeline"
	"github.com/inquest-dev/inquest/internal/tracker"
)

// Bounds of what is said of trackers in a diagnosis.
const (
	maxTrackersSaid = 6
	// slack is by how much a tracker's newest point must be later than the failure to be
	// said to be after it: what a tracker flushes at the end is no life.
	slack = time.Minute
)

// A trackedEnd is the end of one run as a tracker's files, all of them together, have it.
type trackedEnd struct {
	*timeline.Item        // the one with the newest point
	step           int64  // highest, evidence.None
	status, said   string // of the file that has one
	at             evidence.Span
}

// trackedEnds puts the files of each tracked run of an attempt together.
func trackedEnds(a *timeline.Attempt) []*trackedEnd {
	var out []*trackedEnd
	byRun := map[[4]string]*trackedEnd{}
	for _, it := range a.Items {
		if it.Kind != evidence.TrackerRun {
			continue
		}
		key := [4]string{it.Attrs.Str("tracker"), it.Attrs.Str("id"), it.Attrs.Str("folder"), it.Attrs.Str("writer")}
		if key[1] != "" {
			key[2] = ""
		}
		step := int64(evidence.None)
		if v, ok := it.Attrs["last_step"]; ok {
			step = v.I
		}
		e := byRun[key]
		if e == nil {
			e = &trackedEnd{Item: it, step: step, at: it.Span}
			byRun[key] = e
			out = append(out, e)
		} else {
			e.step = max(e.step, step)
			if it.Stamp.Known() && (!e.Stamp.Known() || it.Stamp.Time.After(e.Stamp.Time)) {
				e.Item = it
			}
		}
		if said := it.Attrs.Str("status"); said != string(evidence.RunUnknown) {
			e.status, e.said, e.at = said, it.Attrs.Str("said"), it.Span
		}
	}
	return out
}

// trackers says how what trackers record of the run stands to what the logs show: a
// status that the failure contradicts, points after the run was dead, and values that the
// tracker does not keep.
func (s *Study) trackers(c *diagnose.Case, add func(text string, spans ...evidence.Span)) {
	ends := trackedEnds(c.Attempt)
	if c.Lead == nil || len(ends) == 0 {
		return
	}
	slices.SortStableFunc(ends, func(a, b *trackedEnd) int { return cmp.Compare(a.Attrs.Str("tracker"), b.Attrs.Str("tracker")) })
	behindFirst(c, ends, add)
	for i, e := range ends {
		if i == maxTrackersSaid {
			add(fmt.Sprintf("Of %d more tracked runs inquest tracker show says what each has.", len(ends)-i))
			break
		}
		name := e.name()
		failed := s.Cases[s.Main].Outcome == incident.Failed || s.Cases[s.Main].Outcome == incident.Interrupted
		switch {
		case failed && e.status == string(evidence.RunOpen):
			add(fmt.Sprintf("%s has no end of the run on record%s; its page will show it as running. The logs show that it is dead.", name, saidWords(e.said)), e.at)
		case failed && e.status == string(evidence.RunFinished):
			add(fmt.Sprintf("%s says that the run finished%s, which a script that ends after a failure gives too.", name, saidWords(e.said)), e.at)
		}
		if text := recordedAfter(c, e, name); text != "" {
			add(text, e.Span, c.Lead.Span)
		}
		if c.NaN == nil {
			continue
		}
		switch evidence.Keeps(e.Attrs.Str("keeps")) {
		case evidence.Zeroed:
			add(name+" writes 0.0 where a value is not finite: its curve cannot show the failure.", e.at)
		case evidence.Dropped:
			add(name+" stores no value that is not finite: its curve has a hole where the failure is.", e.at)
		}
	}
}

// name is what a person calls the run: the tracker with its id, or the file.
func (e *trackedEnd) name() string {
	name := evidence.TrackerNames[e.Attrs.Str("tracker")].Full
	if name == "" {
		return path.Base(e.Span.Artifact)
	}
	if id := e.Attrs.Str("id"); id != "" {
		return name + " run " + id
	}
	return name
}

// behindFirst says once of all tracked runs what they recorded behind the first value that was not
// finite.
func behindFirst(c *diagnose.Case, ends []*trackedEnd, add func(text string, spans ...evidence.Span)) {
	if c.Lead.Kind != evidence.NonfiniteValue || c.Lead.Step == evidence.None {
		return
	}
	var names []string
	last, spans := int64(evidence.None), []evidence.Span{c.Lead.Span}
	for _, e := range ends {
		if e.step <= c.Lead.Step {
			continue
		}
		last = max(last, e.step)
		if n := e.name(); !slices.Contains(names, n) && len(names) < maxTrackersSaid {
			names, spans = append(names, n), append(spans, e.Span)
		}
	}
	if len(names) > 0 {
		add(fmt.Sprintf("What was recorded from step %d to step %d is of a run whose values were no longer finite (%s); inquest tracker repair marks it in a copy.",
			c.Lead.Step, last, strings.Join(names, ", ")), spans...)
	}
}

func saidWords(said string) string {
	if said == "" {
		return ""
	}
	return " (" + said + ")"
}

// recordedAfter says by how much the newest point of a tracked run is later than a failure
// that ends a process; "" where it is not.
func recordedAfter(c *diagnose.Case, e *trackedEnd, name string) string {
	lead := c.Lead
	if lead.Kind == evidence.NonfiniteValue || lead.Span.Artifact == e.Span.Artifact || !lead.Stamp.Known() || lead.Stamp.Zone == "" || lead.Stamp.NoYear || !e.Stamp.Known() {
		return ""
	}
	if d := e.Stamp.Time.Sub(lead.Stamp.Time); d > slack+lead.Stamp.Error {
		return fmt.Sprintf("%s holds points up to %s after the failure, by the clocks of both.", name, tracker.Lasting(d))
	}
	return ""
}
