package explain

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/inquest-dev/inquest/internal/catalog"
	"github.com/inquest-dev/inquest/internal/evidence"
	"github.com/inquest-dev/inquest/internal/lazyre"
)

// A Comparison sets two entries side by side.
type Comparison struct {
	A Side `json:"a"`
	B Side `json:"b"`
	// Tell is how to tell them apart: what each entry says of the other.
	Tell []Tell `json:"tell"`
	// Shared are the event kinds that both can be behind.
	Shared []string `json:"shared"`
	// Facts are what the evidence of both depends on, with what each makes of it.
	Facts []SharedFact `json:"facts"`
	Rows  []Contrast   `json:"rows"`
}

// A Side is one of the two entries.
type Side struct {
	ID    string `json:"id"`
	Title string `json:"title"`
	Area  string `json:"area"`
}

// A Tell is what an entry says of how the other differs from it.
type Tell struct {
	Entry string `json:"entry"` // that says it
	Of    string `json:"of"`    // of which it is said
	Text  string `json:"text"`
}

// A SharedFact is a fact that conditions of both entries ask for.
type SharedFact struct {
	Fact  string   `json:"fact"`
	Means string   `json:"means"`
	How   string   `json:"how,omitempty"` // how it is obtained
	A     []string `json:"a"`
	B     []string `json:"b"`
}

// A Contrast is one aspect, with what each entry says of it.
type Contrast struct {
	Aspect string   `json:"aspect"`
	A      []string `json:"a"`
	B      []string `json:"b"`
}

// Compare sets a and b side by side: what they are, what they show, the evidence, how to
// tell them apart, the change, and the safer next action.
func Compare(a, b *catalog.Entry) Comparison {
	c := Comparison{A: Side{a.ID, plain(a.Title), a.Area}, B: Side{b.ID, plain(b.Title), b.Area}}
	for _, pair := range [][2]*catalog.Entry{{a, b}, {b, a}} {
		for _, l := range pair[0].LookAlikes {
			if l.Entry == pair[1].ID {
				c.Tell = append(c.Tell, Tell{pair[0].ID, pair[1].ID, plain(l.Tell)})
			}
		}
	}
	for _, k := range a.About {
		if slices.Contains(b.About, k) {
			c.Shared = append(c.Shared, k)
		}
	}
	c.Facts = sharedFacts(a, b)
	row := func(aspect string, of func(*catalog.Entry) []string) {
		if x, y := of(a), of(b); len(x)+len(y) > 0 {
			c.Rows = append(c.Rows, Contrast{aspect, x, y})
		}
	}
	row("In short", one(func(e *catalog.Entry) string { return e.Quick }))
	row("What is seen", each(func(e *catalog.Entry) []catalog.Symptom { return e.Symptoms }, func(s catalog.Symptom) string { return s.What + " " + s.Why }))
	row("What happens", one(func(e *catalog.Entry) string { return e.Mechanism }))
	row("Evidence for it", func(e *catalog.Entry) []string { return weighed(e.For) })
	row("Evidence against it", func(e *catalog.Entry) []string { return weighed(e.Against) })
	row("What would decide", each(func(e *catalog.Entry) []catalog.Decider { return e.Decides }, func(d catalog.Decider) string {
		return upperFirst(d.Asks) + ": " + obtain(&d).How
	}))
	row("Safer next action", func(e *catalog.Entry) []string { return next(e).words() })
	row("The one change", func(e *catalog.Entry) []string {
		return []string{plain(e.Remedy.Change) + " (" + e.Remedy.Effect + ")"}
	})
	row("What it costs", one(func(e *catalog.Entry) string { return e.Remedy.Cost }))
	row("How to verify", one(func(e *catalog.Entry) string { return e.Verify }))
	row("A restart without the change", func(e *catalog.Entry) []string { return []string{rerunWords(e.Rerun)} })
	return c
}

func one(of func(*catalog.Entry) string) func(*catalog.Entry) []string {
	return func(e *catalog.Entry) []string {
		if t := plain(of(e)); t != "" {
			return []string{t}
		}
		return nil
	}
}

func each[T any](list func(*catalog.Entry) []T, say func(T) string) func(*catalog.Entry) []string {
	return func(e *catalog.Entry) []string {
		var out []string
		for _, x := range list(e) {
			out = append(out, plain(say(x)))
		}
		return out
	}
}

// weighed are conditions as statements, the weightiest first.
func weighed(of []catalog.Condition) []string {
	var out []string
	for _, w := range []string{"", "decisive", "strong", "weak"} { // what rules out has no weight
		for _, c := range of {
			if c.Weight == w {
				out = append(out, statement(c).Text)
			}
		}
	}
	return out
}

var factName = lazyre.New(`\b[a-z][a-z0-9_]*\.[a-z][a-z0-9_]*\b`)

// factsIn are the declared facts that an expression asks for.
func factsIn(expr string) []string {
	var out []string
	for _, n := range factName.FindAllString(expr, -1) {
		if evidence.FactOf(n) != nil && !slices.Contains(out, n) {
			out = append(out, n)
		}
	}
	return out
}

// sharedFacts are the facts that conditions of both ask for, in the order of a's.
func sharedFacts(a, b *catalog.Entry) []SharedFact {
	said := func(e *catalog.Entry) (order []string, by map[string][]string) {
		by = map[string][]string{}
		for _, side := range []struct {
			list []catalog.Condition
			word string
		}{{e.For, "for it"}, {e.Against, "against it"}} {
			for _, c := range side.list {
				weight := c.Weight
				if c.RulesOut {
					weight = "rules it out"
				}
				for _, f := range factsIn(c.When) {
					if by[f] == nil {
						order = append(order, f)
					}
					by[f] = append(by[f], upperFirst(side.word)+" ("+weight+"): "+plain(c.Says))
				}
			}
		}
		return order, by
	}
	order, ofA := said(a)
	_, ofB := said(b)
	var out []SharedFact
	for _, f := range order {
		if ofB[f] != nil {
			s := evidence.FactOf(f)
			out = append(out, SharedFact{f, s.Doc, plain(s.How), ofA[f], ofB[f]})
		}
	}
	return out
}

// Page lays c out for every format.
func (c Comparison) Page() Page {
	p := Page{ID: c.A.ID + "-or-" + c.B.ID, Title: c.A.Title + " — or: " + c.B.Title, About: c.A.ID + " · " + c.B.ID}
	var tell []Item
	for _, t := range c.Tell {
		tell = append(tell, Item{Text: t.Of + ": " + t.Text, Entry: t.Of})
	}
	p.add("How to tell them apart", Block{Kind: Bullets, Items: tell})
	if len(c.Shared) > 0 {
		p.add("Where both are candidates", Block{Text: "Both can be behind " + strings.Join(c.Shared, ", ") + "."})
	} else {
		p.add("Where both are candidates", Block{Text: "Nowhere: no event kind can have both behind it."})
	}
	sides := []string{"", c.A.ID, c.B.ID}
	g := &Grid{Columns: sides}
	for _, r := range c.Rows {
		g.Rows = append(g.Rows, []Cell{{Texts: []string{r.Aspect}}, {Texts: r.A}, {Texts: r.B}})
	}
	p.add("Side by side", Block{Kind: Tabular, Table: g})
	if len(c.Facts) > 0 {
		f := &Grid{Columns: sides}
		for _, s := range c.Facts {
			f.Rows = append(f.Rows, []Cell{{Texts: []string{s.Fact + ": " + s.Means}}, {Texts: s.A}, {Texts: s.B}})
		}
		p.add("Facts that both ask for", Block{Kind: Tabular, Table: f})
	}
	return p
}

// WriteComparison writes c in format text, markdown, json or html.
func WriteComparison(w io.Writer, c Comparison, format string, width int) error {
	if format == "json" {
		return JSON(w, c)
	}
	if _, err := io.WriteString(w, c.Page().Write(format, width)); err != nil {
		return fmt.Errorf("write comparison: %w", err)
	}
	return nil
}
