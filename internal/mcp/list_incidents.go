package mcp

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/inquest-dev/inquest/internal/incident"
	"github.com/inquest-dev/inquest/internal/ledger"
)

type incidentsIn struct {
	Status   []string `json:"status,omitempty" jsonschema:"only those that stand so: open, unresolved, confirmed, regressed, closed"`
	Scenario string   `json:"scenario,omitempty" jsonschema:"only those whose scenario has this in it"`
	All      bool     `json:"all,omitempty" jsonschema:"closed ones too"`
	From     int      `json:"from,omitempty" jsonschema:"next of the answer before"`
}

type incidentsOut struct {
	Incidents []incidentLine `json:"incidents" jsonschema:"those that failed last first"`
	Total     int            `json:"total"`
	Hidden    int            `json:"hidden" jsonschema:"incidents that were not asked for"`
	Next      *int           `json:"next" jsonschema:"from of the next page; null on the last"`
	Problems  []string       `json:"quoted_problems" jsonschema:"what of the store could not be read"`
}

type incidentLine struct {
	ID       string `json:"id"`
	Status   string `json:"status" jsonschema:"open, unresolved, confirmed or regressed; only a verification confirms"`
	Closed   bool   `json:"closed"`
	Cause    string `json:"cause" jsonschema:"leading entry"`
	Title    string `json:"quoted_title"`
	Scenario string `json:"quoted_scenario"`
	Says     string `json:"quoted_says" jsonschema:"why it stands so"`
	First    string `json:"first"`
	Last     string `json:"last"`
	Trials   int    `json:"trials"`
	Failed   int    `json:"failed"`
}

func addListIncidents(s *server) {
	add(s, describe("list_incidents", "List kept incidents",
		"List the failures that inquest run, boundary and verify recorded on this machine, those that failed last first: to see whether this failure is known, what was tried, and what is confirmed.",
		"none on incidents; an index beside them may be brought up to date.",
		"about 12 incidents an answer; next continues.",
		"incidents with id, status, leading cause, title, scenario, when they failed and how often."),
		s.listIncidents)
}

func (s *server) kept() error {
	if s.store == nil {
		return failed(nil, "No incidents are kept here. inquest run -- COMMAND records runs; diagnose works without.")
	}
	return nil
}

func (s *server) listIncidents(ctx context.Context, _ *mcp.CallToolRequest, in incidentsIn) (*incidentsOut, string, error) {
	if err := s.kept(); err != nil {
		return nil, "", err
	}
	for _, x := range in.Status {
		if !slices.Contains(ledger.States, x) {
			return nil, "", failed(nil, "There is no such status. status has some of %s.", strings.Join(ledger.States, ", "))
		}
	}
	list, err := s.store.List(ctx)
	if err != nil {
		return nil, "", failed(err, "The incidents could not be read. inquest incident list --rebuild makes their index anew.")
	}
	f := ledger.Filter{States: in.Status, Scenario: unquoted(in.Scenario), All: in.All}
	f.Apply(list)
	out := &incidentsOut{Total: len(list.Incidents), Hidden: list.Hidden, Problems: quoteAll(list.Problems, 4, 200)}
	var text []string
	next := 0
	out.Incidents, text, next = fill(max(in.From, 0), len(list.Incidents), 0, pageRoom-900, func(i int) (incidentLine, string) {
		k := &list.Incidents[i]
		it := incidentLineOf(k)
		return it, fmt.Sprintf("%s %s%s, %d trials, %d failed, last %s, cause %s: %s", it.ID, it.Status, closedWord(k.Closed), it.Trials, it.Failed, it.Last, it.Cause, shorter(it.Title, 160))
	})
	if next < len(list.Incidents) {
		out.Next = &next
	}
	var l lines
	l.add("%d incidents, %d not shown by the filters.", out.Total, out.Hidden)
	for _, x := range text {
		l.add("%s", x)
	}
	if out.Next != nil {
		l.add("More: from %d.", next)
	}
	return out, l.String(), nil
}

func incidentLineOf(k *incident.KeptLine) incidentLine {
	return incidentLine{ID: word(k.ID), Status: word(k.Status), Closed: k.Closed, Cause: word(k.Cause), Title: quote(k.Title, 260), Scenario: quote(k.Scenario, 160),
		Says: quote(k.Says, 260), First: word(k.First), Last: word(k.Last), Trials: k.Trials, Failed: k.Failed}
}

func closedWord(closed bool) string {
	if closed {
		return ", closed"
	}
	return ""
}
