package explain

import (
	"strings"
	"unicode"

	"github.com/inquest-dev/inquest/internal/catalog"
	"github.com/inquest-dev/inquest/internal/evidence"
)

// A page is an entry laid out once, for every format to write.
type page struct {
	id, title, about string
	sections         []section
}

type section struct {
	heading string
	blocks  []block
}

// A block is one of: a paragraph, a list, a heading below the section's.
type block struct {
	kind  blockKind
	text  string
	items []item
}

type blockKind uint8

const (
	paragraph blockKind = iota
	bullets
	numbers
	checks
	subheading
)

// An item of a list: what it says, more on lines of its own, the condition on
// which it holds, code under it.
type item struct {
	text string
	more []string
	when string
	code string
	lang string
}

// add appends a section of the blocks that hold something, if one does.
func (p *page) add(heading string, blocks ...block) {
	var kept []block
	for _, b := range blocks {
		if b.text != "" || len(b.items) > 0 {
			kept = append(kept, b)
		}
	}
	if len(kept) > 0 {
		p.sections = append(p.sections, section{heading, kept})
	}
}

// layout arranges e for a reader without a run at hand: placeholders give their
// fallback or the fact's name.
func layout(e *catalog.Entry) page {
	p := page{id: e.ID, title: plain(e.Title), about: strings.Join(append([]string{e.Area, "since " + e.Since}, e.About...), " · ")}
	add := p.add
	add("Quick answer", paragraphs(e.Quick)...)
	add("Symptoms", list(bullets, e.Symptoms, func(s catalog.Symptom) item {
		return item{text: plain(s.What), more: more("Why: ", s.Why)}
	}))
	add("What happens", paragraphs(e.Mechanism)...)
	add("Where it is seen", paragraphs(e.Systems)...)
	add("Evidence for it", list(bullets, e.For, statement))
	add("Evidence against it", list(bullets, e.Against, statement))
	add("What would decide", list(bullets, e.Decides, func(d catalog.Decider) item {
		how := d.How
		if f := evidence.FactOf(d.Fact); how == "" && f != nil {
			how = f.How
		}
		return item{text: plain(d.Asks) + " (" + d.Fact + ")", more: more("How: ", how)}
	}))
	add("What looks alike", list(bullets, e.LookAlikes, func(a catalog.LookAlike) item {
		return item{text: a.Entry + ": " + plain(a.Tell)}
	}))
	add("To confirm", list(checks, e.Checklist, func(c catalog.Check) item {
		return item{text: plain(c.Item), more: more("How: ", c.How)}
	}))
	add("The one change", change(&e.Remedy)...)
	for _, c := range e.Cases {
		add("The one change "+plain(c.In), change(&c.Remedy)...)
	}
	var fix []block
	for _, f := range e.Fix {
		fix = append(fix, block{kind: subheading, text: stackName(f.Stack)}, block{text: plain(f.Why)},
			list(numbers, f.Steps, func(s catalog.Step) item {
				return item{text: plain(s.Do) + " (" + s.Effect + ", " + s.Level + ")", code: clean(catalog.Plain(s.Code)), lang: s.Lang}
			}))
	}
	add("The fix, by stack", fix...)
	add("How to verify", paragraphs(e.Verify)...)
	add("Risks", texts(e.Risks))
	add("How to undo it", paragraphs(e.Rollback)...)
	add("When to ask the administrator or vendor", paragraphs(e.Escalate)...)
	add("Prevention", texts(e.Prevention))
	add("A restart without the change", paragraphs(rerunWords(e.Rerun))...)
	for _, r := range []struct{ who, text string }{
		{"For executives", e.Readings.Executive}, {"For engineers", e.Readings.Engineer}, {"For the person on call", e.Readings.OnCall},
	} {
		add(r.who, paragraphs(catalog.ExpandSentences(r.text, nil))...) // what only a run can fill in is left out
	}
	add("Related entries", texts(e.Related))
	add("Sources", texts(e.Sources))
	return p
}

func statement(c catalog.Condition) item {
	weight := c.Weight
	if c.RulesOut {
		weight = "rules it out"
	}
	return item{text: plain(c.Says) + " (" + weight + ")", when: strings.Join(strings.Fields(clean(c.When)), " ")}
}

// change lays out the remedy.
func change(r *catalog.Remedy) []block {
	blocks := paragraphs(r.Change + "\n\n" + r.Why)
	blocks = append(blocks, list(bullets, r.Edits, func(x catalog.Edit) item {
		it := item{text: stackName(x.Stack) + ", " + plain(x.Where)}
		it.more = append(it.more, more("From: ", x.From)...)
		it.more = append(it.more, more("To: ", x.To)...)
		return it
	}))
	var facts []item
	for _, f := range []struct{ name, text string }{
		{"Scope", r.Scope}, {"Effect", r.Effect}, {"Cost", r.Cost}, {"Verify", r.Verify}, {"Expected", r.Expected}, {"If it fails next", r.NextFailure},
	} {
		if f.text != "" {
			facts = append(facts, item{text: f.name + ": " + plain(f.text)})
		}
	}
	blocks = append(blocks, block{kind: bullets, items: facts})
	if len(r.Options) > 0 {
		blocks = append(blocks, block{kind: subheading, text: "Other ways"}, texts(r.Options))
	}
	return blocks
}

func stackName(s string) string {
	if s == "any" {
		return "any stack"
	}
	return s
}

func list[T any](kind blockKind, of []T, to func(T) item) block {
	b := block{kind: kind}
	for _, x := range of {
		b.items = append(b.items, to(x))
	}
	return b
}

func texts(of []string) block {
	return list(bullets, of, func(s string) item { return item{text: plain(s)} })
}

func more(label, text string) []string {
	if text == "" {
		return nil
	}
	return []string{label + plain(text)}
}

func paragraphs(text string) []block {
	var out []block
	for _, p := range strings.Split(text, "\n\n") {
		out = append(out, block{text: plain(p)})
	}
	return out
}

// plain is one line of prose: placeholders resolved, white space single.
func plain(text string) string { return strings.Join(strings.Fields(clean(catalog.Plain(text))), " ") }

// clean removes control characters but newline and tab; entries may come from a
// folder that somebody sent.
func clean(text string) string {
	return strings.Map(func(r rune) rune {
		if r != '\n' && r != '\t' && (unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r)) {
			return -1
		}
		return r
	}, text)
}
