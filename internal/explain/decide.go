package explain

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/inquest-dev/inquest/internal/catalog"
	"github.com/inquest-dev/inquest/internal/evidence"
)

// A Decision is the decision table of one event kind: what can be behind it, the most
// common first.
type Decision struct {
	Kind   string   `json:"kind"`
	Class  string   `json:"class"`
	Means  string   `json:"means"` // what the kind says
	Causes []Choice `json:"causes"`
}

// A Choice is one cause: what to look for, and what to do next that harms nothing.
type Choice struct {
	Entry   string   `json:"entry"`
	Title   string   `json:"title"`
	Area    string   `json:"area"`
	Look    []string `json:"look"`    // evidence that decides or supports it, the strongest first
	Against []string `json:"against"` // evidence that closes it or speaks strongly against it
	Next    Next     `json:"next"`
	Change  string   `json:"change"` // the one change, when it is confirmed
	Effect  string   `json:"effect"` // of the change: reads, reversible, changes
	Restart string   `json:"restart"`
}

// Next is the safer next action: of what tells more or mends, the one that risks least.
type Next struct {
	Do     string `json:"do"`
	Code   string `json:"code,omitempty"`
	Lang   string `json:"lang,omitempty"`
	Effect string `json:"effect"` // reads, reversible, changes
}

// Kinds are the event kinds that some entry is about, as evidence.Specs orders them.
func Kinds(c *catalog.Catalog) []string {
	known := map[string]bool{}
	for _, h := range c.Entries() {
		for _, k := range h.About {
			known[k] = true
		}
	}
	var out []string
	for i := range evidence.Specs {
		if k := string(evidence.Specs[i].Kind); known[k] {
			out = append(out, k)
		}
	}
	return out
}

// Decide returns the decision table of an event kind; found is false if no entry is
// about it.
func Decide(c *catalog.Catalog, kind string) (d Decision, found bool) {
	s := evidence.SpecOf(evidence.Kind(kind))
	entries := c.Candidates(kind)
	if s == nil || len(entries) == 0 {
		return Decision{}, false
	}
	d = Decision{Kind: kind, Class: string(s.Class), Means: s.Doc}
	slices.SortStableFunc(entries, func(a, b *catalog.Entry) int { return cmp.Compare(b.Prior, a.Prior) })
	for _, e := range entries {
		d.Causes = append(d.Causes, choice(e))
	}
	return d, true
}

// Decisions returns the tables of all kinds, or of those given; a kind that no entry is
// about is left out.
func Decisions(c *catalog.Catalog, kinds ...string) []Decision {
	if len(kinds) == 0 {
		kinds = Kinds(c)
	}
	var out []Decision
	for _, k := range kinds {
		if d, ok := Decide(c, k); ok {
			out = append(out, d)
		}
	}
	return out
}

// KindsOf returns the event kinds that a text means: a kind itself, a class, an entry's
// id, a line of a log that words one of them, or words by which an entry is found; none
// when it means nothing here.
func KindsOf(c *catalog.Catalog, text string) []string {
	text = strings.TrimSpace(text[:min(len(text), maxQuery)])
	name := strings.NewReplacer("-", "_", " ", "_").Replace(strings.ToLower(text))
	all := Kinds(c)
	if slices.Contains(all, name) {
		return []string{name}
	}
	var out []string
	add := func(kinds ...string) {
		for _, k := range kinds {
			if slices.Contains(all, k) && !slices.Contains(out, k) {
				out = append(out, k)
			}
		}
	}
	for _, k := range all {
		if s := evidence.SpecOf(evidence.Kind(k)); string(s.Class) == name {
			add(k)
		}
	}
	if e, err := c.Entry(strings.ToLower(text)); err == nil {
		add(e.About...)
	}
	if len(out) == 0 {
		for _, r := range c.Recognise(text) {
			add(string(r.Kind))
		}
		if r, ok := requestRefused(text); ok {
			add(string(r.Kind))
		}
	}
	if len(out) == 0 {
		if found := Find(c, text); len(found) > 0 && found[0].Sure {
			if e, err := c.Entry(found[0].ID); err == nil {
				add(e.About...)
			}
		}
	}
	return out
}

// Named reports whether a word names event kinds: it is one, a class of them, or an
// entry's id.
func Named(c *catalog.Catalog, word string) bool {
	if _, err := c.Entry(strings.ToLower(word)); err == nil {
		return true
	}
	name := strings.ReplaceAll(strings.ToLower(word), "-", "_")
	return slices.ContainsFunc(evidence.Specs[:], func(s evidence.Spec) bool { return string(s.Kind) == name || s.Class != "" && string(s.Class) == name })
}

func choice(e *catalog.Entry) Choice {
	ch := Choice{Entry: e.ID, Title: plain(e.Title), Area: e.Area, Next: next(e), Change: plain(e.Remedy.Change), Effect: e.Remedy.Effect, Restart: rerunWords(e.Rerun)}
	for _, weight := range []string{"decisive", "strong", "weak"} {
		if weight == "weak" && len(ch.Look) > 0 {
			break // what only makes it likelier is worth a look where nothing better is known
		}
		for _, x := range e.For {
			if x.Weight == weight {
				ch.Look = another(ch.Look, plain(x.Says))
			}
		}
	}
	for _, x := range e.Against {
		if x.RulesOut {
			ch.Against = another(ch.Against, plain(x.Says))
		}
	}
	for _, x := range e.Against {
		if x.Weight == "strong" {
			ch.Against = another(ch.Against, plain(x.Says))
		}
	}
	return ch
}

// another is list with text, if it is not there yet: several conditions may say the same.
func another(list []string, text string) []string {
	if slices.Contains(list, text) {
		return list
	}
	return append(list, text)
}

// next is the action of e that risks least: a step of its fix that only reads, what
// would decide and only reads, a step that can be undone, what would decide and can be
// undone, else the change.
func next(e *catalog.Entry) Next {
	for _, effect := range []string{"reads", "reversible"} {
		for _, f := range e.Fix {
			for _, s := range f.Steps {
				if s.Effect == effect && (f.Stack == "any" || f.Stack == "pytorch") {
					return Next{plain(s.Do), strings.TrimSpace(clean(catalog.Plain(s.Code))), s.Lang, effect}
				}
			}
		}
		for i := range e.Decides {
			if d := obtain(&e.Decides[i]); d.Effect == effect {
				return Next{Do: "Find out " + plain(d.Asks) + ": " + plain(d.How), Effect: effect}
			}
		}
	}
	return Next{Do: plain(e.Remedy.Change), Effect: e.Remedy.Effect}
}

// DecisionPage lays tables out for every format.
func DecisionPage(tables []Decision) Page {
	p := Page{ID: "decide", Title: "Decision tables: from a symptom to the safer next action", About: evidence.Several(int64(len(tables)), "symptom")}
	p.add("How to read them", Block{Text: "The most common cause stands first. The action beside it risks least of all that tells more or mends: what only reads comes before what can be undone, and that before a lasting change. Letters such as N and names in ‹ › stand for values of the run at hand."})
	for _, d := range tables {
		g := &Grid{Columns: []string{"Cause", "Evidence to look for", "Evidence against it", "Safer next action"}}
		for _, ch := range d.Causes {
			g.Rows = append(g.Rows, []Cell{
				{Entry: ch.Entry, Texts: []string{ch.Title}},
				{Texts: first(ch.Look, 3)},
				{Texts: first(ch.Against, 2)},
				{Texts: ch.Next.words()},
			})
		}
		p.add(d.Kind, Block{Text: upperFirst(plain(d.Means)) + "."}, Block{Kind: Tabular, Table: g})
	}
	return p
}

// first are the first n statements of a list, and how many more the entry has.
func first(of []string, n int) []string {
	if len(of) <= n+1 {
		return of
	}
	return append(slices.Clone(of[:n]), fmt.Sprintf("and %d more in the entry", len(of)-n))
}

// words are the action as statements; code of several lines is left to the entry.
func (n Next) words() []string {
	out := []string{n.Do + " (" + n.Effect + ")"}
	if n.Code != "" && !strings.Contains(n.Code, "\n") && !strings.Contains(n.Code, "`") {
		out = append(out, "`"+n.Code+"`")
	}
	return out
}

// WriteDecisions writes tables in format text, markdown, json or html.
func WriteDecisions(w io.Writer, tables []Decision, format string, width int) error {
	if format == "json" {
		return JSON(w, tables)
	}
	if _, err := io.WriteString(w, DecisionPage(tables).Write(format, width)); err != nil {
		return fmt.Errorf("write decision tables: %w", err)
	}
	return nil
}
