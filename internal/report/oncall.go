package report

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/inquest-dev/inquest/internal/evidence"
	"github.com/inquest-dev/inquest/internal/incident"
)

// A decision is one line of what the person on call has to decide.
type decision struct {
	Label string
	Text  string
	Code  string // a command, to be read and run by a person
	Spans []evidence.Span
}

// decisions say whether to restart, what to take out of service, what is lost and
// how the failure shows again.
func (w *words) decisions() []decision {
	oc := w.inc.OnCall
	if oc == nil {
		return nil
	}
	out := []decision{{Label: "restart", Text: restartWords(oc.Restart), Spans: oc.Restart.Spans}}
	for _, c := range oc.Cordon {
		verb := "cordon"
		if c.Standing != incident.Established {
			verb = "suspect"
		}
		what := c.Host
		switch {
		case c.BusID != "":
			what += " (GPU " + c.BusID + ")"
		case c.Device != nil:
			what += fmt.Sprintf(" (GPU %d)", *c.Device)
		}
		out = append(out, decision{Label: verb, Text: what + ": " + c.Why, Spans: c.Spans}, decision{Label: "compare", Code: c.Compare})
	}
	if l := oc.Lost; l != nil {
		out = append(out, decision{Label: "lost", Text: lostWords(l), Spans: l.Spans})
	}
	if r := oc.Reproduce; r != nil {
		out = append(out, decision{Label: "reproduce", Text: reproduceWords(r), Code: r.Command})
	}
	return out
}

// restartWords begin with the answer.
func restartWords(r incident.Restart) string {
	answer := map[string]string{
		"repeats":   "not without the change",
		"elsewhere": "yes, on another host",
		"may_pass":  "possible as a stopgap",
		"safe":      "yes, unchanged",
	}[r.Unchanged]
	switch {
	case answer == "":
		answer = "not yet"
	case r.Standing == incident.Possible:
		answer = "probably " + answer
	}
	s := answer + ": " + r.Why
	if r.Unchanged != "unknown" && r.Standing != incident.Established {
		s += " (if the likeliest cause is the true one)"
	}
	switch r.From {
	case "before":
		s += "; resume from a checkpoint older than the damage, not from the newest"
	case "start":
		s += "; start over, from none of this run's checkpoints"
	}
	return s
}

// lostWords are steps, time and the checkpoint from which they count.
func lostWords(l *incident.Lost) string {
	var parts []string
	switch {
	case l.Steps != nil:
		parts = append(parts, fmt.Sprintf("%s (%d to %d)", plural(int(*l.Steps), "step"), *l.FromStep, *l.ToStep))
	case l.ToStep != nil:
		parts = append(parts, fmt.Sprintf("up to step %d", *l.ToStep))
	default:
		parts = append(parts, "no step is stated")
	}
	if l.Seconds != nil {
		parts = append(parts, "about "+(time.Duration(math.Round(*l.Seconds))*time.Second).String())
	}
	s := strings.Join(parts, ", ") + ", " + l.Why
	if l.Checkpoint != "" {
		s += ": " + l.Checkpoint
	}
	return s
}

// reproduceWords name the smallest part of the job and the steps to run.
func reproduceWords(r *incident.Reproduce) string {
	var size string
	switch {
	case r.Ranks != nil && r.Hosts != nil && *r.Hosts > 1:
		size = fmt.Sprintf("%s on %s", plural(*r.Ranks, "rank"), plural(*r.Hosts, "host"))
	case r.Ranks != nil:
		size = fmt.Sprintf("%s, 1 GPU each", plural(*r.Ranks, "rank"))
		if *r.Ranks == 1 {
			size = "1 rank on 1 GPU"
		}
	case r.Needs == "one_host":
		size = "the ranks of one host"
	default:
		size = "the whole job"
	}
	s := size
	switch {
	case r.FromStep != nil && r.ToStep != nil && *r.ToStep >= *r.FromStep:
		s += fmt.Sprintf(", steps %d to %d", *r.FromStep, *r.ToStep)
	case r.ToStep != nil:
		s += fmt.Sprintf(", to step %d", *r.ToStep)
	}
	return s + ": " + r.Why
}

// hostsTitle names the two hosts in the order of their columns.
func hostsTitle(c *incident.HostComparison) string {
	if c.Suspect == "" {
		return "Hosts compared"
	}
	return "Hosts compared: " + c.Suspect + " | " + c.Fresh
}

// onCall is the reading for the person on call. Entries state it as if their cause
// were certain; where it is not proved, the reading says so. An entry that says
// that the cause is not known presupposes none.
func onCall(h incident.Hypothesis) string {
	r := h.Readings["on_call"]
	if r == "" || h.Standing == incident.Established || h.Entry == "undetermined" || strings.HasSuffix(h.Entry, "-unknown") {
		return r
	}
	return "If " + lower(h.Title) + " (" + h.Cause + "), which is not proved: " + r
}
