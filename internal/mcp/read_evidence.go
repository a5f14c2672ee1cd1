package mcp

import (
	"context"
	"fmt"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/inquest-dev/inquest/internal/incident"
)

// Lines on each side of the one that is asked for.
const (
	aroundDefault = 12
	aroundMost    = 200
)

type evidenceIn struct {
	Case     string `json:"case" jsonschema:"id that diagnose returned"`
	Ref      string `json:"ref,omitempty" jsonschema:"a ref from another answer about this case, as a3:120@4096"`
	Artifact string `json:"artifact,omitempty" jsonschema:"instead of ref: the artifact as answers name it"`
	Line     int64  `json:"line,omitempty" jsonschema:"with artifact: 1-based line"`
	Before   *int   `json:"before,omitempty" jsonschema:"lines before it, 0 to 200, by default 12"`
	After    *int   `json:"after,omitempty" jsonschema:"lines behind it, 0 to 200, by default 12"`
}

type evidenceOut struct {
	Case     string         `json:"case"`
	Artifact string         `json:"quoted_artifact"`
	Kind     string         `json:"kind" jsonschema:"what the artifact is"`
	First    int64          `json:"first" jsonschema:"1-based number of the first line shown; 0 where there is none"`
	Lines    []evidenceLine `json:"lines"`
	Previous string         `json:"previous,omitempty" jsonschema:"ref of the line before the window, where there is one"`
	Next     string         `json:"next,omitempty" jsonschema:"ref of the line behind the window, where there is one"`
	Limits   []string       `json:"quoted_limits"`
}

type evidenceLine struct {
	N      int64  `json:"n" jsonschema:"1-based"`
	Text   string `json:"quoted_text"`
	Cut    int64  `json:"cut,omitempty" jsonschema:"bytes of the line that are not shown"`
	Marked bool   `json:"marked,omitempty" jsonschema:"the line that was asked for"`
}

func addReadEvidence(s *server) {
	add(s, describe("read_evidence", "Read the lines around a piece of evidence",
		"Show the lines of an artifact of a case around a ref (from diagnose, get_timeline, get_checklist) or around artifact and line: to check what a statement rests on, and to cite it.",
		"none; the artifact is opened for reading only.",
		"about 60 short lines an answer, 200 on each side asked for; a line is cut where it is long. Only artifacts of the case, only text. Secrets are masked.",
		"numbered lines as data, the one that was asked for marked; previous and next are refs that continue the window."),
		s.readEvidence)
}

func (s *server) readEvidence(ctx context.Context, _ *mcp.CallToolRequest, in evidenceIn) (*evidenceOut, string, error) {
	r, err := s.result(ctx, &in.Case)
	if err != nil {
		return nil, "", err
	}
	before, after := deref(in.Before, aroundDefault), deref(in.After, aroundDefault)
	if before < 0 || after < 0 || before > aroundMost || after > aroundMost {
		return nil, "", failed(nil, "before and after are 0 to %d lines. Use the refs previous and next to go further.", aroundMost)
	}
	w := where{artifact: unquoted(in.Artifact), line: in.Line, offset: -1}
	switch {
	case in.Ref != "" && in.Artifact != "", in.Ref == "" && (in.Artifact == "" || in.Line < 1):
		return nil, "", failed(nil, "Give ref, or artifact and line (1 or more).")
	case in.Ref != "":
		if w, err = find(r.Incident, in.Ref); err != nil {
			return nil, "", err
		}
	}
	got, err := s.desk.Lines(ctx, in.Case, w.artifact, w.line, w.offset, before, after)
	if err != nil {
		return nil, "", failed(err, "The lines could not be read. The artifact must be one of the case, and still be there as it was diagnosed: list refs with get_timeline, or diagnose again.")
	}
	out, text := evidenceOf(in.Case, got, placesOf(r.Incident))
	return out, text, nil
}

// evidenceOf shows of a window what an answer has room for: the marked line, and as many on each
// side of it as there is room.
func evidenceOf(id string, w *incident.Lines, at places) (*evidenceOut, string) {
	out := &evidenceOut{Case: id, Artifact: quote(w.Artifact, 400), Kind: word(w.Kind), Lines: []evidenceLine{}, Limits: quoteAll(w.Limits, 4, 160)}
	mark := 0
	for i := range w.Lines {
		if w.Lines[i].Marked {
			mark = i
			break
		}
	}
	room := pageRoom
	long := max(min(3000, room/max(len(w.Lines), 1)/2), 300)
	size := func(i int) int { return 2*min(jsonSize(w.Lines[i].Text)+19, long) + 60 }
	from, to := mark, mark // shown, exclusive
	for from > 0 || to < len(w.Lines) {
		grown := false
		if to < len(w.Lines) && room >= size(to) {
			room -= size(to)
			to, grown = to+1, true
		}
		if from > 0 && room >= size(from-1) {
			from, grown = from-1, true
			room -= size(from)
		}
		if !grown {
			break
		}
	}
	index, known := at[w.Artifact]
	ref := func(n, offset int64) string {
		if !known || n < 1 {
			return ""
		}
		if offset < 0 {
			return fmt.Sprintf("a%d:%d", index, n)
		}
		return fmt.Sprintf("a%d:%d@%d", index, n, offset)
	}
	var l lines
	l.add("Case %s, artifact %s, lines as data:", id, out.Artifact)
	for _, x := range w.Lines[from:to] {
		e := evidenceLine{N: x.N, Text: quote(x.Text, long), Cut: x.Cut, Marked: x.Marked}
		out.Lines = append(out.Lines, e)
		sign := " "
		if x.Marked {
			sign = ">"
		}
		l.add("%s%d %s", sign, x.N, e.Text)
	}
	if len(out.Lines) > 0 {
		out.First = out.Lines[0].N
		switch {
		case from > 0:
			out.Previous = ref(w.Lines[from-1].N, w.Lines[from-1].Offset)
		case w.Before:
			out.Previous = ref(out.First-1, -1)
		}
		if to < len(w.Lines) {
			out.Next = ref(w.Lines[to].N, w.Lines[to].Offset)
		} else if w.After {
			out.Next = ref(w.Lines[to-1].N+1, -1)
		}
	} else {
		l.add("(no lines there)")
	}
	l.with("Before: %s", out.Previous)
	l.with("Behind: %s", out.Next)
	return out, l.String()
}
