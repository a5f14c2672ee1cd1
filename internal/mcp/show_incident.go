package mcp

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/inquest-dev/inquest/internal/incident"
	"github.com/inquest-dev/inquest/internal/store"
)

type incidentIn struct {
	ID   string `json:"id" jsonschema:"of an incident or its beginning, of one of its trials, or last"`
	From int    `json:"from,omitempty" jsonschema:"first trial; next of the answer before"`
}

type incidentOut struct {
	ID        string      `json:"id"`
	Status    string      `json:"status" jsonschema:"open, unresolved, confirmed or regressed"`
	Closed    bool        `json:"closed"`
	Title     string      `json:"quoted_title"`
	Says      string      `json:"quoted_says" jsonschema:"why it stands so"`
	Symptom   string      `json:"quoted_symptom"`
	Scenario  string      `json:"quoted_scenario"`
	Cause     *keptCause  `json:"cause"`
	Fix       *keptFix    `json:"fix" jsonschema:"what had changed when a verification succeeded; null until one did"`
	Rollback  string      `json:"quoted_rollback,omitempty"`
	FollowUp  string      `json:"quoted_follow_up,omitempty" jsonschema:"the command that tests it again; shown, never run"`
	NotHelped []string    `json:"quoted_not_helped" jsonschema:"changes that were tried and are to be taken back"`
	Notes     []string    `json:"quoted_notes" jsonschema:"what people noted, newest last"`
	Trials    []keptTrial `json:"trials" jsonschema:"oldest first"`
	Total     int         `json:"trials_total"`
	Next      *int        `json:"next" jsonschema:"from of the next page; null on the last"`
	Problems  []string    `json:"quoted_problems"`
}

type keptCause struct {
	Entry     string `json:"entry"`
	Title     string `json:"title"`
	Standing  string `json:"standing"`
	Confirmed bool   `json:"confirmed" jsonschema:"by a verification"`
}

type keptFix struct {
	Changes []string `json:"quoted_changes"`
	Single  bool     `json:"single" jsonschema:"one thing changed: only then it is confirmed"`
	Trial   string   `json:"trial"`
}

type keptTrial struct {
	Trial   string   `json:"trial"`
	By      string   `json:"by" jsonschema:"run, boundary, verify or recheck"`
	Begun   string   `json:"begun"`
	Result  string   `json:"result"`
	Text    string   `json:"quoted_text"`
	Changes []string `json:"quoted_changes" jsonschema:"from the original trial"`
}

func addShowIncident(s *server) {
	add(s, describe("show_incident", "Show a kept incident",
		"Tell the story of one kept incident: what failed, the cause and whether it is confirmed, what was tried and what came of it, what solved it and how that is taken back, what people noted.",
		"none on the incident; an index beside it may be brought up to date.",
		"about 10 trials an answer; next continues. Notes and lists are cut where they are long.",
		"status, cause, fix, changes that did not help, notes, and the trials with what changed in each."),
		s.showIncident)
}

func (s *server) showIncident(ctx context.Context, _ *mcp.CallToolRequest, in incidentIn) (*incidentOut, string, error) {
	if err := s.kept(); err != nil {
		return nil, "", err
	}
	id := strings.TrimSpace(unquoted(in.ID))
	if id == "" {
		return nil, "", failed(nil, "id is empty. list_incidents names them; last stands for the one that failed last.")
	}
	k, err := s.store.Find(ctx, bounded(id, 200))
	switch {
	case errors.Is(err, store.ErrNotFound):
		return nil, "", failed(nil, "There is no such incident. list_incidents names them; the beginning of an id must fit one only.")
	case err != nil:
		return nil, "", failed(err, "The incident could not be read. list_incidents says what of the store is damaged.")
	}
	out := &incidentOut{ID: word(k.ID), Status: word(k.Status), Closed: k.Closed, Title: quote(k.Title, 300), Says: quote(k.Says, 300), Symptom: quote(k.Symptom, 400),
		Scenario: quote(k.Scenario, 200), Rollback: quote(k.Rollback, 200), FollowUp: quote(strings.Join(k.FollowUp, " "), 300),
		NotHelped: []string{}, Notes: []string{}, Total: len(k.Table), Problems: quoteAll(k.Problems, 3, 160)}
	var l lines
	l.add("Incident %s: %s%s. %s", out.ID, out.Status, closedWord(k.Closed), out.Title)
	l.with("%s", out.Says)
	if c := k.Cause; c != nil {
		out.Cause = &keptCause{word(c.Entry), s.title(c.Entry, c.Title), word(c.Standing), c.Confirmed}
		l.add("Cause: %s (%s%s)", out.Cause.Entry, out.Cause.Standing, confirmedWord(c.Confirmed))
	}
	if f := k.Fix; f != nil {
		out.Fix = &keptFix{quoteAll(changeTexts(f.Changes), 4, 200), f.Single, word(f.Trial)}
		l.add("Verified after: %s", strings.Join(out.Fix.Changes, "; "))
	}
	for _, n := range k.NotHelped {
		out.NotHelped = append(out.NotHelped, n.Text)
	}
	out.NotHelped = quoteAll(out.NotHelped, 4, 200)
	for _, a := range k.Acts {
		if a.Text != "" {
			out.Notes = append(out.Notes, a.Text)
		}
	}
	out.Notes = quoteAll(out.Notes[max(0, len(out.Notes)-4):], 4, 240)
	for _, n := range out.NotHelped {
		l.add("Tried: %s", shorter(n, 160))
	}
	for _, n := range out.Notes {
		l.add("Note: %s", shorter(n, 200))
	}
	var text []string
	next := 0
	out.Trials, text, next = fill(max(in.From, 0), len(k.Table), 0, Budget-2_000-jsonSize(l.String())-headSize(out), func(i int) (keptTrial, string) {
		row := &k.Table[i]
		t := keptTrial{word(row.Trial), word(row.By), word(row.Begun), word(row.Result), quote(row.Text, 160), quoteAll(changeTexts(row.Changes), 3, 160)}
		return t, fmt.Sprintf("%s %s %s: %s", t.Begun, t.By, t.Result, strings.Join(t.Changes, "; "))
	})
	for _, x := range text {
		l.add("%s", x)
	}
	if next < len(k.Table) {
		out.Next = &next
		l.add("More: from %d.", next)
	}
	return out, l.String(), nil
}

// title is the encyclopedia's own title of an entry; what a stored incident says where it has
// none.
func (s *server) title(entry, stored string) string {
	if e, err := s.Catalog.Entry(entry); err == nil {
		return own(e.Title, 160)
	}
	return quote(stored, 160)
}

func confirmedWord(yes bool) string {
	if yes {
		return ", confirmed by a verification"
	}
	return ", not confirmed"
}

func changeTexts(of []incident.Change) []string {
	var out []string
	for _, c := range of {
		out = append(out, c.Text)
	}
	return out
}
