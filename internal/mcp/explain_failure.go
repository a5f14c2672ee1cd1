package mcp

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/inquest-dev/inquest/internal/catalog"
	"github.com/inquest-dev/inquest/internal/explain"
)

// maxQuery is the most of a query that is looked at, in bytes.
const maxQuery = 4 << 10

type explainIn struct {
	Query    string   `json:"query" jsonschema:"id of an entry as diagnose names it; or an error message or what was seen, in any words; or a code, as xid 79 or cuda-errors 700. At most 4 KiB are looked at"`
	Sections []string `json:"sections,omitempty" jsonschema:"sections of the entry, by the names that an answer lists under available; all stands for all. Without it: the short ones that decide what to do"`
	Cursor   int      `json:"cursor,omitempty" jsonschema:"next of the answer before, with the same query and sections"`
}

type explainOut struct {
	Entry     string       `json:"entry" jsonschema:"id of the entry; empty where a search or a table answered"`
	Title     string       `json:"title"`
	Area      string       `json:"area"`
	Sections  []section    `json:"sections"`
	Available []string     `json:"available" jsonschema:"names of the sections that the entry has"`
	Found     []foundEntry `json:"found" jsonschema:"what a search found, best first"`
	Codes     []string     `json:"codes" jsonschema:"queries for rows of the tables of codes that fit"`
	Next      *int         `json:"next" jsonschema:"cursor of the next page; null on the last"`
}

type section struct {
	Name     string `json:"name"`
	Markdown string `json:"markdown" jsonschema:"of the encyclopedia, not of a log"`
	Partial  bool   `json:"partial,omitempty" jsonschema:"its beginning or its end is on another page"`
}

type foundEntry struct {
	Entry string `json:"entry"`
	Title string `json:"title"`
	Why   string `json:"quoted_why" jsonschema:"which words stand where; repeats words of the query"`
}

func addExplainFailure(s *server) {
	add(s, describe("explain_failure", "Look a failure up in the encyclopedia",
		"Explain a kind of failure: by the id of an entry, by an error message or free text in any language, or by a code of a device or library. Works without a case.",
		"none.",
		"sections are paged; next continues. A query has 4 KiB. Free text gives a list of entries to choose from, not a diagnosis.",
		"the entry's sections as Markdown (quick answer, look-alikes, what to confirm, the one change, how to verify; others on request), or the entries that a search found."),
		s.explainFailure)
}

// brief are the sections that answer what to do, by anchor.
var brief = []string{"quick-answer", "what-looks-alike", "to-confirm", "the-one-change", "how-to-verify"}

func (s *server) explainFailure(_ context.Context, _ *mcp.CallToolRequest, in explainIn) (*explainOut, string, error) {
	query := strings.TrimSpace(bounded(unquoted(in.Query), maxQuery))
	if query == "" {
		return nil, "", failed(nil, "query is empty. Give the id of an entry, an error message, or a code such as xid 79.")
	}
	if in.Cursor < 0 {
		return nil, "", failed(nil, "cursor is next of the answer before, or 0.")
	}
	if table, rest, ok := explain.Topic(s.Catalog, query); ok {
		var b strings.Builder
		if found, err := explain.Table(&b, s.Catalog, table, rest, "markdown", 0); err == nil && found {
			out := emptyExplain()
			out.Title = own(table, 80)
			return s.pages(out, []section{{Name: own(table, 80), Markdown: b.String()}}, in.Cursor)
		}
	}
	e, err := s.Catalog.Entry(query)
	if err != nil {
		return s.searched(query)
	}
	return s.entry(e, &in)
}

func emptyExplain() *explainOut {
	return &explainOut{Sections: []section{}, Available: []string{}, Found: []foundEntry{}, Codes: []string{}}
}

// entry answers with sections of an entry.
func (s *server) entry(e *catalog.Entry, in *explainIn) (*explainOut, string, error) {
	page := explain.Layout(e)
	out := emptyExplain()
	out.Entry, out.Title, out.Area = word(e.ID), own(e.Title, 200), word(e.Area)
	var all []section
	wanted := in.Sections
	everything := slices.Contains(wanted, "all")
	if len(wanted) == 0 {
		wanted = brief
	}
	for _, sec := range page.Sections {
		name := own(sec.Anchor, 120)
		if len(out.Available) < 40 {
			out.Available = append(out.Available, name)
		}
		if everything || slices.Contains(wanted, name) {
			all = append(all, section{Name: name, Markdown: markdown(&page, sec)})
		}
	}
	for _, w := range in.Sections {
		if w != "all" && !slices.ContainsFunc(page.Sections, func(x explain.Section) bool { return own(x.Anchor, 120) == w }) {
			return nil, "", failed(nil, "The entry %s has no section of one of these names. It has: %s.", out.Entry, cut(strings.Join(out.Available, ", "), errorRoom-200))
		}
	}
	return s.pages(out, all, in.Cursor)
}

// markdown is one section without the head of its page.
func markdown(page *explain.Page, sec explain.Section) string {
	one := explain.Page{ID: page.ID, Title: page.Title, About: page.About, Sections: []explain.Section{sec}}
	text := one.Write("markdown", 0)
	if i := strings.Index(text, "\n## "); i >= 0 {
		text = text[i+1:]
	}
	return strings.TrimSpace(text)
}

// pages cuts sections into pages, at ends of lines where that is possible, and answers with the
// one that cursor names. A page is half of what an answer may have, because it stands in it
// twice.
func (s *server) pages(out *explainOut, all []section, cursor int) (*explainOut, string, error) {
	data := Budget - 1_200 - 2*jsonSize(out.Title) - sumSizes(out.Available)
	cuts := paged(all, data/2)
	if cursor >= len(cuts) && cursor > 0 {
		return nil, "", failed(nil, "There are %d pages; cursor counts from 0.", len(cuts))
	}
	if len(cuts) > 0 {
		out.Sections = cuts[cursor]
	}
	var l lines
	head := out.Title
	if out.Entry != "" {
		head = out.Entry + ": " + out.Title
	}
	l.add("%s", head)
	for _, x := range out.Sections {
		l.add("%s", x.Markdown)
	}
	if cursor+1 < len(cuts) {
		next := cursor + 1
		out.Next = &next
		l.add("More: cursor %d.", next)
	}
	return out, l.String(), nil
}

func sumSizes(of []string) int {
	n := 0
	for _, s := range of {
		n += jsonSize(s) + 3
	}
	return n
}

// paged puts sections on pages of at most room bytes of JSON each.
func paged(all []section, room int) [][]section {
	const frame = 60 // around a section
	var out [][]section
	var page []section
	left := room
	turn := func() {
		if len(page) > 0 {
			out, page, left = append(out, page), nil, room
		}
	}
	for _, sec := range all {
		rest := own(sec.Markdown, 1<<20)
		for first := true; rest != ""; first = false {
			if left < frame+len(sec.Name)+400 && jsonSize(rest) > left-frame-len(sec.Name) {
				turn()
			}
			part, more := split(rest, left-frame-len(sec.Name))
			page = append(page, section{Name: sec.Name, Markdown: part, Partial: !first || more != ""})
			left -= jsonSize(part) + frame + len(sec.Name)
			if rest = more; rest != "" {
				turn()
			}
		}
	}
	turn()
	return out
}

// split cuts a text behind the last line that has room, or within a line where none has.
func split(text string, room int) (part, rest string) {
	n, end, line := 0, -1, -1
	for i, r := range text {
		if n += runeSize(r); n > room {
			end = i
			break
		}
		if r == '\n' {
			line = i
		}
	}
	switch {
	case end < 0:
		return text, ""
	case line > 0:
		return text[:line], strings.TrimLeft(text[line:], "\n")
	}
	return text[:max(end, 1)], text[max(end, 1):]
}

// searched answers with what a search finds.
func (s *server) searched(query string) (*explainOut, string, error) {
	x, err := s.index()
	if err != nil {
		return nil, "", failed(err, "The encyclopedia could not be searched. Name an entry by its id.")
	}
	out := emptyExplain()
	var l lines
	for _, m := range x.Find(query) {
		if len(out.Found) == 10 {
			break
		}
		f := foundEntry{word(m.ID), own(m.Title, 200), quote(m.Why, 200)}
		out.Found = append(out.Found, f)
		l.add("%s: %s", f.Entry, f.Title)
	}
	for _, r := range explain.Rows(s.Catalog, query) {
		if len(out.Codes) == 6 {
			break
		}
		c := own(r.Table+" "+r.Key, 80)
		out.Codes = append(out.Codes, c)
		l.add("query %q: %s", c, own(r.Title, 160))
	}
	if len(out.Found)+len(out.Codes) == 0 {
		near := ""
		if id := explain.Meant(s.Catalog, strings.ToLower(query)); id != "" {
			near = fmt.Sprintf(" Did you mean %s?", id)
		}
		return nil, "", failed(nil, "No entry fits.%s Use the very words of the error message, or diagnose the log.", near)
	}
	var head lines
	head.add("Found, best first; pass the id of one as query to read it. This is a search, not a diagnosis: a log decides.")
	head.add("%s", l.String())
	return out, head.String(), nil
}
