package catalog

import (
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/inquest-dev/inquest/internal/evidence"
)

// lintEntry checks one entry.
func (l *linter) lintEntry(d *entryDoc) {
	e, doc := &d.entry, d.document
	l.lintIdentity(doc, e)
	l.lintRecognition(doc, e)
	l.lintExplanation(doc, e)
	l.lintRemedy(doc, e)
	l.lintExamples(doc, e)
	for _, t := range e.Texts() {
		for _, n := range TemplateNames(t.Text) {
			if !insertable(n) {
				l.add(doc, doc.line(t.At...), "%s names %q, which is not a declared fact", fieldName(t.At), n)
			}
			if strings.HasPrefix(n, "fix.") && !computing(e, t.At) {
				l.add(doc, doc.line(t.At...), "%s names %q, but remedy.compute fills nothing in", fieldName(t.At), n)
			}
		}
	}
}

// computing reports whether the remedy that the text at at belongs to works out
// values: that of a case for its own texts, the entry's for all others.
func computing(e *Entry, at []any) bool {
	c := e.Remedy.Compute
	if at[0] == "remedy_when" {
		c = e.Cases[at[1].(int)].Remedy.Compute
	}
	return c != "" && c != "none"
}

func (l *linter) lintIdentity(doc *document, e *Entry) {
	file := strings.TrimSuffix(path.Base(doc.name), ".yaml")
	if e.ID != file {
		l.add(doc, doc.line("id"), "id %q differs from the file name %q", e.ID, file)
	}
	if !ValidID(e.ID) {
		l.add(doc, doc.line("id"), "id %q is not lower-case words joined by hyphens", e.ID)
	}
	if l.one(doc, e.Area, Areas, "area") {
		if folder := path.Base(path.Dir(doc.name)); folder != e.Area {
			l.add(doc, doc.line("area"), "area %q differs from the folder %q", e.Area, folder)
		}
	}
	l.filled(doc, e.Title, "title")
	key := strings.ToLower(e.Title)
	if other, taken := l.titles[key]; taken && key != "" {
		l.add(doc, doc.line("title"), "title is already that of %s", other)
	}
	l.titles[key] = doc.name
	l.filled(doc, e.Since, "since")
	l.list(doc, e.About, 1, "about")
	for i, k := range e.About {
		s := evidence.SpecOf(evidence.Kind(k))
		switch {
		case s == nil:
			l.add(doc, doc.line("about", i), "about names %q, which is not a declared event kind", k)
		case s.Role == evidence.RoleNotice && s.Class != "": // one of many alike can begin a failure: an overflow that never ends
		case !slices.Contains([]evidence.Role{evidence.RoleFault, evidence.RoleStop, evidence.RoleEffect, evidence.RoleExit}, s.Role):
			l.add(doc, doc.line("about", i), "about names %q, a %s, which never leads a failure", k, s.Role)
		}
	}
	if e.Prior < 0 || e.Prior > 9 {
		l.add(doc, doc.line("prior"), "prior %d is not 0 to 9", e.Prior)
	}
}

func (l *linter) lintRecognition(doc *document, e *Entry) {
	if e.Needs != "" {
		l.lintWhen(doc, e.Needs, "needs")
	}
	if len(e.For) == 0 {
		l.add(doc, doc.line("for"), "for needs at least one condition")
	}
	for i, c := range e.For {
		if c.RulesOut {
			l.add(doc, doc.line("for", i, "rules_out"), "for[%d] rules out; that belongs under against", i)
		}
		l.one(doc, c.Weight, weightsFor, "for", i, "weight")
		l.lintCondition(doc, c, c.Weight != "weak", "for", i)
	}
	for i, c := range e.Against {
		switch {
		case c.RulesOut && c.Weight != "":
			l.add(doc, doc.line("against", i, "weight"), "against[%d] has a weight and rules out; one of them", i)
		case !c.RulesOut:
			l.one(doc, c.Weight, weightsAgainst, "against", i, "weight")
		}
		l.lintCondition(doc, c, true, "against", i)
	}
	for i, x := range e.Decides {
		l.filled(doc, x.Asks, "decides", i, "asks")
		if _, ok := declared(x.Fact); !ok {
			l.add(doc, doc.line("decides", i, "fact"), "decides[%d] names %q, which is not a declared fact", i, x.Fact)
			continue
		}
		if f := evidence.FactOf(x.Fact); x.How == "" && (f == nil || f.How == "") {
			l.add(doc, doc.line("decides", i), "decides[%d]: neither the entry nor the declaration of %s says how to obtain it", i, x.Fact)
		}
		if x.Effect != "" {
			l.one(doc, x.Effect, effects, "decides", i, "effect")
		}
	}
}

// lintWhen checks one expression and reports whether it compiles.
func (l *linter) lintWhen(doc *document, expr string, at ...any) bool {
	if err := CheckExpr(expr); err != nil {
		l.add(doc, doc.line(at...), "%s does not compile: %s", fieldName(at), firstLine(err.Error()))
		return false
	}
	return true
}

// lintCondition checks a condition with its statement. asking demands that it
// asks for a fact at all: a constant may only be weak.
func (l *linter) lintCondition(doc *document, c Condition, asking bool, at ...any) {
	under := func(n string) []any { return append(slices.Clone(at), n) }
	l.filled(doc, c.Says, under("says")...)
	for i, n := range c.Proof {
		if _, ok := declared(n); !ok {
			l.add(doc, doc.line(append(under("proof"), i)...), "%s names %q, which is not a declared fact", fieldName(under("proof")), n)
		}
	}
	if !l.lintWhen(doc, c.When, under("when")...) {
		return
	}
	a, err := compile(c.When)
	if err != nil {
		return // reported by lintWhen
	}
	used := names(a)
	if len(used) == 0 && asking {
		l.add(doc, doc.line(under("when")...), "%s asks for no fact; a constant can only be weak evidence", fieldName(under("when")))
	}
	known := certain(a.Expr(), a.ReferenceMap(), true)
	for _, s := range slots(c.Says) {
		f := evidence.FactOf(s.name)
		switch {
		case s.hasFallback || known[s.name] || strings.HasPrefix(s.name, seenPrefix) || strings.HasPrefix(s.name, "fault.") || !insertable(s.name):
		case slices.Contains(used, s.name):
			l.add(doc, doc.line(under("says")...), "%s names {%s}, which need not be known when the condition holds (one side of an || decides); give a fallback {%s|…}", fieldName(under("says")), s.name, s.name)
		case f == nil || f.How != "":
			l.add(doc, doc.line(under("says")...), "%s names {%s}, which the condition does not ask for; give a fallback {%s|…}", fieldName(under("says")), s.name, s.name)
		}
	}
}

func (l *linter) lintExplanation(doc *document, e *Entry) {
	l.filled(doc, e.Quick, "quick")
	l.filled(doc, e.Mechanism, "mechanism")
	l.filled(doc, e.Systems, "systems")
	l.filled(doc, e.Verify, "verify")
	l.filled(doc, e.Rollback, "rollback")
	l.filled(doc, e.Escalate, "escalate")
	l.list(doc, e.SearchKeys, 1, "search")
	l.list(doc, e.Risks, 1, "risks")
	l.list(doc, e.Prevention, 1, "prevention")
	l.list(doc, e.Related, 1, "related")
	l.list(doc, e.Sources, 1, "sources")
	for i, id := range e.Related {
		l.reference(doc, e, id, "related", i)
	}
	if len(e.Symptoms) == 0 {
		l.add(doc, doc.line("symptoms"), "symptoms needs at least 1")
	}
	for i, s := range e.Symptoms {
		l.filled(doc, s.What, "symptoms", i, "what")
		l.filled(doc, s.Why, "symptoms", i, "why")
	}
	if len(e.LookAlikes) == 0 {
		l.add(doc, doc.line("look_alikes"), "look_alikes needs at least 1")
	}
	for i, a := range e.LookAlikes {
		l.reference(doc, e, a.Entry, "look_alikes", i, "entry")
		l.filled(doc, a.Tell, "look_alikes", i, "tell")
	}
	if len(e.Checklist) == 0 {
		l.add(doc, doc.line("checklist"), "checklist needs at least 1")
	}
	for i, c := range e.Checklist {
		l.filled(doc, c.Item, "checklist", i, "item")
		l.filled(doc, c.How, "checklist", i, "how")
		if l.lintWhen(doc, c.When, "checklist", i, "when") {
			if a, err := compile(c.When); err == nil && len(names(a)) == 0 {
				l.add(doc, doc.line("checklist", i, "when"), "checklist[%d].when asks for no fact, so no evidence can tick it", i)
			}
		}
	}
	l.one(doc, e.Rerun.Unchanged, []string{RerunRepeats, RerunElsewhere, RerunMayPass, RerunSafe, RerunUnknown}, "rerun", "unchanged")
	l.one(doc, e.Rerun.From, []string{FromLatest, FromBefore, FromStart}, "rerun", "from")
	l.one(doc, e.Rerun.Needs, []string{NeedsNothing, NeedsOneRank, NeedsDevice, NeedsOneHost, NeedsTwoRanks, NeedsTwoHosts, NeedsJob}, "rerun", "needs")
	l.one(doc, e.Rerun.Suspect, []string{"", "host"}, "rerun", "suspect")
	l.filled(doc, e.Readings.Executive, "readings", "executive")
	l.filled(doc, e.Readings.Engineer, "readings", "engineer")
	l.filled(doc, e.Readings.OnCall, "readings", "on_call")
}

func (l *linter) reference(doc *document, e *Entry, id string, at ...any) {
	switch {
	case id == e.ID:
		l.add(doc, doc.line(at...), "%s is the entry itself", fieldName(at))
	case !l.entries[id]:
		l.add(doc, doc.line(at...), "%s names %q, which is not an entry", fieldName(at), id)
	}
}

func (l *linter) lintRemedy(doc *document, e *Entry) {
	var stacks []string
	for i, f := range e.Fix {
		l.one(doc, f.Stack, Stacks, "fix", i, "stack")
		if slices.Contains(stacks, f.Stack) {
			l.add(doc, doc.line("fix", i, "stack"), "fix has stack %q twice", f.Stack)
		}
		stacks = append(stacks, f.Stack)
		l.filled(doc, f.Why, "fix", i, "why")
		l.lintFix(doc, &f, i)
	}
	if !slices.ContainsFunc(e.Fix, func(f Fix) bool { return slices.ContainsFunc(f.Steps, func(s Step) bool { return s.Code != "" }) }) {
		l.add(doc, doc.line("fix"), "fix has no step with code")
	}
	if !slices.Contains(stacks, "any") && !slices.Contains(stacks, "pytorch") {
		l.add(doc, doc.line("fix"), "fix needs a stack any or pytorch")
	}
	l.lintChange(doc, &e.Remedy, "remedy")
	for i, c := range e.Cases {
		at := []any{"remedy_when", i}
		l.lintWhen(doc, c.When, append(slices.Clone(at), "when")...)
		l.filled(doc, c.In, append(slices.Clone(at), "in")...)
		l.lintChange(doc, &c.Remedy, append(slices.Clone(at), "remedy")...)
		l.filled(doc, c.Rollback, append(slices.Clone(at), "rollback")...)
		l.list(doc, c.Risks, 0, append(slices.Clone(at), "risks")...)
	}
}

// lintChange checks one remedy, which stands at at.
func (l *linter) lintChange(doc *document, r *Remedy, at ...any) {
	under := func(n ...any) []any { return append(slices.Clone(at), n...) }
	l.one(doc, r.Scope, scopes, under("scope")...)
	l.one(doc, r.Compute, computes, under("compute")...)
	l.one(doc, r.Effect, effects, under("effect")...)
	l.filled(doc, r.Change, under("change")...)
	l.filled(doc, r.Why, under("why")...)
	l.filled(doc, r.Verify, under("verify")...)
	l.filled(doc, r.Expected, under("expected")...)
	l.filled(doc, r.Cost, under("cost")...)
	l.filled(doc, r.NextFailure, under("next_failure")...)
	l.list(doc, r.Options, 0, under("alternatives")...)
	if len(r.Edits) == 0 && slices.Contains([]string{"code", "config", "environment", "launcher"}, r.Scope) {
		l.add(doc, doc.line(at...), "remedy of scope %s needs an edit that says where", r.Scope)
	}
	for i, x := range r.Edits {
		l.one(doc, x.Stack, Stacks, under("edits", i, "stack")...)
		l.filled(doc, x.Where, under("edits", i, "where")...)
		l.filled(doc, x.To, under("edits", i, "to")...)
	}
}

func (l *linter) lintExamples(doc *document, e *Entry) {
	for _, g := range []struct {
		name string
		list []Example
	}{{"match", e.Examples.Match}, {"no_match", e.Examples.NoMatch}} {
		if len(g.list) == 0 {
			l.add(doc, doc.line("examples", g.name), "examples.%s needs at least 1", g.name)
		}
		for i, x := range g.list {
			at := []any{"examples", g.name, i}
			if (strings.TrimSpace(x.Log) == "") == (len(x.Files) == 0) {
				l.add(doc, doc.line(at...), "%s needs either log or files", fieldName(at))
			}
			for _, n := range sortedKeys(x.Files) {
				if !fs.ValidPath(n) || n == "." {
					l.add(doc, doc.line(at...), "%s has file name %q, which is not a relative path", fieldName(at), n)
				}
				l.filled(doc, x.Files[n], append(slices.Clone(at), "files", n)...)
			}
			l.one(doc, x.Standing, standings, append(slices.Clone(at), "standing")...)
			if g.name == "no_match" && x.Standing != "" {
				l.add(doc, doc.line(append(slices.Clone(at), "standing")...), "%s has a standing; it says only that the entry must not be named above possible", fieldName(at))
			}
		}
	}
}

// A PlacedText is one text of an entry and the path of the field it stands in:
// keys and indexes.
type PlacedText struct {
	At   []any
	Text string
}

// Texts returns the texts of e that may hold placeholders, in the order of the
// fields, without the statements of its conditions' says being checked further.
func (e *Entry) Texts() []PlacedText {
	var out []PlacedText
	add := func(text string, at ...any) {
		if text != "" {
			out = append(out, PlacedText{at, text})
		}
	}
	list := func(texts []string, at ...any) {
		for i, t := range texts {
			add(t, append(slices.Clone(at), i)...)
		}
	}
	for i, c := range e.For {
		add(c.Says, "for", i, "says")
	}
	for i, c := range e.Against {
		add(c.Says, "against", i, "says")
	}
	for i, x := range e.Decides {
		add(x.Asks, "decides", i, "asks")
		add(x.How, "decides", i, "how")
		add(x.Cost, "decides", i, "cost")
	}
	add(e.Quick, "quick")
	for i, s := range e.Symptoms {
		add(s.What, "symptoms", i, "what")
		add(s.Why, "symptoms", i, "why")
	}
	add(e.Mechanism, "mechanism")
	add(e.Systems, "systems")
	for i, a := range e.LookAlikes {
		add(a.Tell, "look_alikes", i, "tell")
	}
	for i, c := range e.Checklist {
		add(c.Item, "checklist", i, "item")
		add(c.How, "checklist", i, "how")
	}
	for i, f := range e.Fix {
		add(f.Why, "fix", i, "why")
		for j, s := range f.Steps {
			add(s.Do, "fix", i, "steps", j, "do")
			add(s.Code, "fix", i, "steps", j, "code")
		}
	}
	remedy := func(r *Remedy, at ...any) {
		put := func(text string, more ...any) { add(text, append(slices.Clone(at), more...)...) }
		put(r.Change, "change")
		put(r.Why, "why")
		for i, x := range r.Edits {
			put(x.Where, "edits", i, "where")
			put(x.From, "edits", i, "from")
			put(x.To, "edits", i, "to")
		}
		put(r.Command, "command")
		put(r.Verify, "verify")
		put(r.Expected, "expected")
		put(r.Cost, "cost")
		put(r.NextFailure, "next_failure")
		list(r.Options, append(slices.Clone(at), "alternatives")...)
	}
	remedy(&e.Remedy, "remedy")
	for i, c := range e.Cases {
		remedy(&c.Remedy, "remedy_when", i, "remedy")
		list(c.Risks, "remedy_when", i, "risks")
		add(c.Rollback, "remedy_when", i, "rollback")
	}
	add(e.Verify, "verify")
	list(e.Risks, "risks")
	add(e.Rollback, "rollback")
	add(e.Escalate, "escalate")
	list(e.Prevention, "prevention")
	add(e.Readings.Executive, "readings", "executive")
	add(e.Readings.Engineer, "readings", "engineer")
	add(e.Readings.OnCall, "readings", "on_call")
	return out
}

func firstLine(s string) string {
	s, _, _ = strings.Cut(s, "\n")
	return s
}
