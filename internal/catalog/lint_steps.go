package catalog

import (
	"slices"
	"strings"
)

// lintFix checks the steps of one stack: each says what it does to the run and who can
// take it, what reads comes before what can be undone, and that before what cannot.
func (l *linter) lintFix(doc *document, f *Fix, i int) {
	if len(f.Steps) == 0 {
		l.add(doc, doc.line("fix", i), "fix[%d] has no steps", i)
	}
	gravest := 0
	for j, s := range f.Steps {
		at := func(field string) []any { return []any{"fix", i, "steps", j, field} }
		l.filled(doc, s.Do, at("do")...)
		l.one(doc, s.Level, levels, at("level")...)
		if l.one(doc, s.Effect, effects, at("effect")...) {
			grave := slices.Index(effects, s.Effect)
			if grave < gravest {
				l.add(doc, doc.line(at("effect")...), "fix[%d].steps[%d] %s, behind a step that %s; steps that risk less come first", i, j, does(s.Effect), does(effects[gravest]))
			}
			gravest = max(gravest, grave)
		}
		l.lintCode(doc, &s, i, j)
	}
}

// does is an effect as a verb.
func does(effect string) string {
	if effect == "reversible" {
		return "can be undone"
	}
	return effect
}

// lintCode checks the code of a step, and what tests run around it.
func (l *linter) lintCode(doc *document, s *Step, i, j int) {
	at := func(field string) []any { return []any{"fix", i, "steps", j, field} }
	switch {
	case s.Code == "" && s.Lang != "":
		l.add(doc, doc.line(at("lang")...), "fix[%d].steps[%d] has a lang and no code", i, j)
	case s.Code != "" && strings.TrimSpace(s.Code) == "":
		l.add(doc, doc.line(at("code")...), "fix[%d].steps[%d].code is blank", i, j)
	case s.Code != "":
		l.one(doc, s.Lang, langs, at("lang")...)
	}
	if s.Runs == "" {
		if s.Given != "" || s.Then != "" {
			l.add(doc, doc.line(at("do")...), "fix[%d].steps[%d] has given or then, and runs nowhere", i, j)
		}
		return
	}
	l.one(doc, s.Runs, []string{"cpu"}, at("runs")...)
	if s.Lang != "python" {
		l.add(doc, doc.line(at("runs")...), "fix[%d].steps[%d] runs, but its lang is %q; only python does", i, j, s.Lang)
	}
}
