package mcp

import (
	"context"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

type checklistIn struct {
	Case string `json:"case" jsonschema:"id that diagnose returned"`
	From int    `json:"from,omitempty" jsonschema:"next of the answer before"`
}

type checklistOut struct {
	Case    string      `json:"case"`
	Yes     int         `json:"yes"`
	No      int         `json:"no"`
	Unknown int         `json:"unknown"`
	Items   []checkItem `json:"items"`
	Next    *int        `json:"next" jsonschema:"from of the next page; null on the last"`
}

type checkItem struct {
	Item  string `json:"quoted_item"`
	State string `json:"state" jsonschema:"yes, no or unknown: what the evidence answers"`
	How   string `json:"quoted_how,omitempty" jsonschema:"how to find out; shown, never run"`
	Ref   string `json:"ref,omitempty" jsonschema:"the line that answers it, for read_evidence"`
}

func addGetChecklist(s *server) {
	add(s, describe("get_checklist", "Checklist of the leading cause",
		"Show the list that confirms the leading cause of a case: what the evidence already answers, and what a person still has to look at.",
		"none.",
		"about 12 items an answer; next continues.",
		"items with state yes, no or unknown, the line that answers them, and how to find out the rest."),
		s.getChecklist)
}

func (s *server) getChecklist(ctx context.Context, _ *mcp.CallToolRequest, in checklistIn) (*checklistOut, string, error) {
	r, err := s.result(ctx, &in.Case)
	if err != nil {
		return nil, "", err
	}
	list, at := r.Incident.Checklist, placesOf(r.Incident)
	out := &checklistOut{Case: in.Case}
	for _, c := range list {
		switch c.State {
		case "yes":
			out.Yes++
		case "no":
			out.No++
		default:
			out.Unknown++
		}
	}
	items, text, next := fill(max(in.From, 0), len(list), 0, pageRoom, func(i int) (checkItem, string) {
		c := list[i]
		it := checkItem{Item: quote(c.Item, 400), State: word(c.State), How: quoteLines(c.How, 500)}
		for j := range c.Spans {
			if it.Ref = at.ref(&c.Spans[j]); it.Ref != "" {
				break
			}
		}
		line := it.State + ": " + it.Item + bracket(it.Ref)
		if c.State == "unknown" && it.How != "" {
			line += "\n  how: " + shorter(it.How, 300)
		}
		return it, line
	})
	out.Items = items
	if next < len(list) {
		out.Next = &next
	}
	var l lines
	l.add("Case %s: %d yes, %d no, %d unknown of %d.", in.Case, out.Yes, out.No, out.Unknown, len(list))
	for _, x := range text {
		l.add("%s", x)
	}
	if out.Next != nil {
		l.add("More: from %d.", next)
	}
	return out, l.String(), nil
}
