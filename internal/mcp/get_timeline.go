package mcp

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/inquest-dev/inquest/internal/evidence"
	"github.com/inquest-dev/inquest/internal/incident"
)

type timelineIn struct {
	Case    string `json:"case" jsonschema:"id that diagnose returned"`
	From    int    `json:"from,omitempty" jsonschema:"place of the first event in what the filters leave, 0 is the first; next of an answer continues"`
	Count   int    `json:"count,omitempty" jsonschema:"events at most; 0 is as many as an answer holds"`
	Rank    *int   `json:"rank,omitempty" jsonschema:"only events of this global rank"`
	Kind    string `json:"kind,omitempty" jsonschema:"only events of this kind, as device_oom"`
	Role    string `json:"role,omitempty" jsonschema:"only events of this role: first, rival, followed, recovered, last_good or other"`
	Attempt string `json:"attempt,omitempty" jsonschema:"only events of this attempt"`
}

type timelineOut struct {
	Case     string            `json:"case"`
	Total    int               `json:"total" jsonschema:"events of the whole timeline"`
	Matched  int               `json:"matched" jsonschema:"events that the filters leave"`
	Dropped  int               `json:"dropped" jsonschema:"events that a bound took out of the timeline: repeats first"`
	From     int               `json:"from"`
	Next     *int              `json:"next" jsonschema:"from of the next page; null on the last"`
	Attempts []timelineAttempt `json:"attempts" jsonschema:"at most 8"`
	Events   []timelineEvent   `json:"events" jsonschema:"in the order that is known"`
}

type timelineAttempt struct {
	ID      string `json:"id"`
	Outcome string `json:"outcome"`
	Ranks   string `json:"ranks"`
	Events  int    `json:"events"`
}

type timelineEvent struct {
	N     int    `json:"n" jsonschema:"place in the whole timeline"`
	Event string `json:"event"`
	Kind  string `json:"kind"`
	Role  string `json:"role" jsonschema:"first, rival, followed, recovered, last_good or other"`
	Rank  *int   `json:"rank"`
	Step  *int64 `json:"step"`
	Time  string `json:"time,omitempty" jsonschema:"UTC where date and zone are known"`
	Host  string `json:"quoted_host,omitempty"`
	Text  string `json:"quoted_text"`
	Why   string `json:"quoted_why,omitempty" jsonschema:"why it has its role"`
	Apart bool   `json:"apart,omitempty" jsonschema:"the order to the event before it is not known"`
	Ref   string `json:"ref,omitempty" jsonschema:"for read_evidence"`
}

func addGetTimeline(s *server) {
	add(s, describe("get_timeline", "Window of a case's timeline",
		"Show what happened in a diagnosed job, event by event across all ranks, in the order that is known. Filter by rank, kind, role or attempt.",
		"none.",
		"about 20 to 40 events an answer; next continues. Very long timelines keep what says most and count the rest as dropped.",
		"events with kind, role (first, rival, followed, recovered, last_good, other), rank, step, time, the line as data, and a ref for read_evidence; how many there are in all."),
		s.getTimeline)
}

func (s *server) getTimeline(ctx context.Context, _ *mcp.CallToolRequest, in timelineIn) (*timelineOut, string, error) {
	r, err := s.result(ctx, &in.Case)
	if err != nil {
		return nil, "", err
	}
	switch {
	case in.From < 0 || in.Count < 0:
		return nil, "", failed(nil, "from and count are 0 or more.")
	case in.Role != "" && !slices.Contains(incident.Roles, in.Role):
		return nil, "", failed(nil, "There is no such role. role is one of first, rival, followed, recovered, last_good, other.")
	case in.Kind != "" && evidence.SpecOf(evidence.Kind(in.Kind)) == nil:
		return nil, "", failed(nil, "There is no such kind of event. Leave kind out to see which there are.")
	}
	t := r.Timeline
	if t == nil {
		t = &incident.Timeline{}
	}
	at, found, filter := placesOf(r.Incident), []int{}, in.filter()
	for i := range t.Events {
		if filter.Keeps(&t.Events[i]) {
			found = append(found, i)
		}
	}
	out := &timelineOut{Case: in.Case, Total: t.Total, Matched: len(found), From: in.From, Attempts: []timelineAttempt{}}
	for _, n := range t.Dropped {
		out.Dropped += n
	}
	for _, a := range t.Attempts[:min(len(t.Attempts), 8)] {
		out.Attempts = append(out.Attempts, timelineAttempt{word(a.ID), word(a.Outcome), ranks(a.Ranks), a.Events})
	}
	events, text, next := fill(in.From, len(found), in.Count, pageRoom, func(i int) (timelineEvent, string) {
		e := eventOf(&t.Events[found[i]], at)
		return e, e.line()
	})
	out.Events = events
	if next < len(found) {
		out.Next = &next
	}
	var l lines
	l.add("Case %s: %d events, %d match, %d shown from %d.", in.Case, out.Total, out.Matched, len(events), in.From)
	for _, x := range text {
		l.add("%s", x)
	}
	if out.Next != nil {
		l.add("More: from %d.", next)
	}
	return out, l.String(), nil
}

func (in *timelineIn) filter() incident.EventFilter {
	var f incident.EventFilter
	if in.Rank != nil {
		f.Ranks = []incident.RankRange{{Low: *in.Rank, High: *in.Rank}}
	}
	if in.Kind != "" {
		f.Kinds = []string{in.Kind}
	}
	if in.Role != "" {
		f.Roles = []string{in.Role}
	}
	if in.Attempt != "" {
		f.Attempts = []string{in.Attempt}
	}
	return f
}

func eventOf(e *incident.TimelineEvent, at places) timelineEvent {
	out := timelineEvent{N: e.N, Event: word(e.ID), Kind: word(e.Kind), Role: word(e.Role), Rank: e.Rank, Step: e.Step, Host: quote(deref(e.Host, ""), 80),
		Text: quote(e.Text, 220), Why: quote(e.Why, 160), Apart: e.Apart}
	if e.Time != nil && e.Time.UTC != nil {
		out.Time = word(*e.Time.UTC)
	}
	if e.Span != nil {
		out.Ref = at.ref(e.Span)
	}
	return out
}

// line is the event for a reader of text.
func (e *timelineEvent) line() string {
	s := fmt.Sprintf("%d %s %s", e.N, e.Role, e.Kind)
	if e.Rank != nil {
		s += " rank " + strconv.Itoa(*e.Rank)
	}
	if e.Step != nil {
		s += fmt.Sprintf(" step %d", *e.Step)
	}
	return s + bracket(e.Ref) + " " + shorter(e.Text, 130)
}
