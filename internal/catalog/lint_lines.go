package catalog

import (
	"path"
	"slices"
	"strings"

	"github.com/inquest-dev/inquest/internal/evidence"
	"github.com/inquest-dev/inquest/internal/lazyre"
)

const (
	minLiteral = 4    // bytes
	maxRegexp  = 2000 // bytes
	maxJoin    = 20   // lines
)

var lineID = lazyre.New(`^[a-z0-9][a-z0-9_-]*$`)

// factSlot is {group} in the template of a wording's fact.
var factSlot = lazyre.New(`\{([A-Za-z_][A-Za-z0-9_]*)\}`)

// A wordingDoc is one wording with where it stands.
type wordingDoc struct {
	doc  *document
	file *LineFile
	line *Line
	at   int // index in the file
	m    *matcher
}

// lintLines checks every wording, then all of them on all samples.
func (l *linter) lintLines() {
	var all []*wordingDoc
	first := map[string]string{}
	for i := range l.k.lines {
		d := &l.k.lines[i]
		file := strings.TrimSuffix(path.Base(d.name), ".yaml")
		if d.file.Source != file {
			l.add(d.document, d.line("source"), "source %q differs from the file name %q", d.file.Source, file)
		}
		l.filled(d.document, d.file.Doc, "doc")
		if len(d.file.Lines) == 0 {
			l.add(d.document, d.line("lines"), "lines needs at least 1")
		}
		for j := range d.file.Lines {
			w := &wordingDoc{doc: d.document, file: &d.file, line: &d.file.Lines[j], at: j}
			if other, dup := first[w.line.ID]; dup {
				l.add(w.doc, w.doc.line("lines", j, "id"), "id %q is already in %s", w.line.ID, other)
			}
			first[w.line.ID] = d.name
			if l.lintWording(w) {
				all = append(all, w)
			}
		}
	}
	known := map[string]bool{}
	for id := range first {
		known[id] = true
	}
	for _, m := range l.base.matchers {
		known[m.w.ID] = true
	}
	for _, w := range all {
		for i, id := range w.line.Over {
			if !known[id] || id == w.line.ID {
				l.add(w.doc, w.doc.line("lines", w.at, "over", i), "%s: over names %q, which is not another wording", w.line.ID, id)
			}
		}
		for i, s := range w.line.Samples {
			for _, id := range s.Also {
				if !known[id] || id == w.line.ID {
					l.add(w.doc, w.doc.line("lines", w.at, "samples", i, "also"), "%s: also names %q, which is not another wording", w.line.ID, id)
				}
			}
		}
	}
	l.crossMatrix(all, first)
}

// lintWording checks one wording by itself and reports whether it is sound
// enough to be tried on samples.
func (l *linter) lintWording(w *wordingDoc) bool {
	x := w.line
	at := func(more ...any) int { return w.doc.line(append([]any{"lines", w.at}, more...)...) }
	bad := func(line int, format string, args ...any) {
		l.add(w.doc, line, "%s: "+format, append([]any{x.ID}, args...)...)
	}
	if short, ok := strings.CutPrefix(x.ID, w.file.Source+"/"); !ok || !lineID.MatchString(short) {
		bad(at("id"), "id is not %s/<short-name>", w.file.Source)
	}
	kind := evidence.Kind(x.Event)
	if x.Event == factEvent {
		kind = ""
		if len(x.Facts) == 0 {
			bad(at("event"), "event is fact and no facts are given")
		}
	} else if evidence.SpecOf(kind) == nil {
		bad(at("event"), "event %q is not a declared kind", x.Event)
		return false
	}
	if len(x.Literal) < minLiteral || strings.TrimSpace(x.Literal) == "" {
		bad(at("literal"), "literal %q is shorter than %d bytes", x.Literal, minLiteral)
	}
	if strings.Contains(x.Literal, "\n") {
		bad(at("literal"), "literal spans lines")
	}
	if len(x.Regexp) > maxRegexp || len(x.Not) > maxRegexp {
		bad(at("regexp"), "regular expression is longer than %d bytes", maxRegexp)
		return false
	}
	if x.Join < 0 || x.Join > maxJoin {
		bad(at("join"), "join %d is not 0 to %d", x.Join, maxJoin)
	}
	typed, err := wording(w.file, x, &l.tables)
	if err != nil {
		bad(at("attrs"), "%s", err)
	}
	w.m = newMatcher(typed, x.Lookup)
	if err := w.m.compile(); err != nil {
		bad(at("regexp"), "%s", err)
		return false
	}
	if w.m.re != nil && w.m.re.MatchString("") {
		bad(at("regexp"), "regexp matches the empty text")
	}
	l.lintGroups(w, kind, bad, at)
	for _, look := range typed.Lookups {
		switch {
		case w.m.re == nil || !slices.Contains(w.m.re.SubexpNames(), look.Group):
			bad(at("lookup", look.Attr), "lookup goes by group %s, which the regexp does not have", look.Group)
		case x.Attrs[look.Attr] != "" || slices.Contains(w.m.re.SubexpNames(), look.Attr):
			bad(at("lookup", look.Attr), "attribute %s is looked up and given otherwise", look.Attr)
		}
	}
	if len(x.Samples) == 0 {
		bad(at("samples"), "samples needs at least 1")
	}
	for i := range x.Samples {
		l.lintSample(w, i, kind, bad, at)
	}
	if w.m.re != nil {
		for _, n := range w.m.re.SubexpNames() {
			if _, isAttr := attrType(kind, n); isAttr && !slices.ContainsFunc(x.Samples, func(s Sample) bool { _, said := s.Gives[n]; return said }) {
				bad(at("samples"), "no sample says what group %s gives", n)
			}
		}
	}
	return true
}

// lintGroups checks that captures are attributes, and facts are declared and
// filled from captures.
func (l *linter) lintGroups(w *wordingDoc, kind evidence.Kind, bad func(int, string, ...any), at func(...any) int) {
	var captured []string
	if w.m.re != nil {
		for i, n := range w.m.re.SubexpNames() {
			if n == "" {
				continue
			}
			if slices.Contains(w.m.re.SubexpNames()[:i], n) {
				bad(at("regexp"), "group %s stands twice", n)
			}
			captured = append(captured, n)
		}
	}
	inFact := map[string]bool{}
	for _, name := range sortedKeys(w.line.Facts) {
		template := w.line.Facts[name]
		t, ok := declared(name)
		switch {
		case strings.HasPrefix(name, "setting."):
			t = evidence.Text
		case !ok || strings.HasPrefix(name, seenPrefix):
			bad(at("facts", name), "facts names %q, which is not a declared fact", name)
			continue
		}
		slots := factSlot.FindAllStringSubmatch(template, -1)
		for _, s := range slots {
			inFact[s[1]] = true
			if !slices.Contains(captured, s[1]) {
				bad(at("facts", name), "fact %s is filled from group %s, which the regexp does not have", name, s[1])
			}
		}
		if len(slots) == 0 {
			if _, err := Convert(t, template); err != nil {
				bad(at("facts", name), "fact %s: %s", name, err)
			}
		}
	}
	for _, n := range captured {
		if _, ok := attrType(kind, n); !ok && !inFact[n] {
			bad(at("regexp"), "group %s is not an attribute of %s, an identity or part of a fact", n, w.line.Event)
		}
		if _, ok := w.line.Attrs[n]; ok {
			bad(at("attrs", n), "attribute %s is a constant and a group", n)
		}
	}
}

// lintSample checks that the wording takes its sample and gives exactly what
// the sample says of it.
func (l *linter) lintSample(w *wordingDoc, i int, kind evidence.Kind, bad func(int, string, ...any), at func(...any) int) {
	s := &w.line.Samples[i]
	line := at("samples", i)
	forms := variants(s.Text)
	if !w.m.hasLiteral(forms[0]) {
		bad(line, "literal %q does not stand in sample %q", w.line.Literal, clip(s.Text))
		return
	}
	got, ok := w.m.take(forms)
	if !ok {
		bad(line, "sample %q is not taken", clip(s.Text))
		return
	}
	for _, n := range sortedKeys(s.Gives) {
		want, t := s.Gives[n], evidence.Text
		have, ok := got[n]
		if kt, known := attrType(kind, n); known {
			t = kt
		}
		if !ok {
			have, ok = w.line.Attrs[n]
		}
		for _, look := range w.m.w.Lookups {
			if look.Attr == n && !ok {
				have, ok = look.Of(got[look.Group]), true
			}
		}
		if template, isFact := w.line.Facts[n]; !ok && isFact {
			have, ok = factSlot.ReplaceAllStringFunc(template, func(g string) string { return got[g[1:len(g)-1]] }), true
			if ft, known := declared(n); known {
				t = ft
			}
		}
		switch {
		case !ok:
			bad(line, "sample %q gives no %s", clip(s.Text), n)
		case !same(t, have, want):
			bad(line, "sample %q gives %s %q, not %q", clip(s.Text), n, have, want)
		}
	}
}

// same compares two texts as values of type t, or as texts where they do not
// convert (the reader then leaves the attribute out).
func same(t evidence.Type, a, b string) bool {
	if a == b || strings.TrimSpace(a) == strings.TrimSpace(b) {
		return true
	}
	x, errA := Convert(t, a)
	y, errB := Convert(t, b)
	return errA == nil && errB == nil && x.T == y.T && x.String() == y.String()
}

// crossMatrix tries every wording on the samples of every other one. A wording
// may take another's sample only when the sample's wording takes precedence
// over it or the sample says that it is also taken.
func (l *linter) crossMatrix(all []*wordingDoc, own map[string]string) {
	others := make([]*matcher, 0, len(all)+len(l.base.matchers))
	for _, w := range all {
		others = append(others, w.m)
	}
	for _, m := range l.base.matchers {
		if _, replaced := own[m.w.ID]; !replaced {
			others = append(others, m)
		}
	}
	for _, w := range all {
		for i, s := range w.line.Samples {
			forms := variants(s.Text)
			for _, m := range others {
				id := m.w.ID
				if id == w.line.ID || slices.Contains(w.line.Over, id) || slices.Contains(s.Also, id) || apart(w.m.w.Kinds, m.w.Kinds) {
					continue
				}
				if _, ok := m.take(forms); ok {
					l.add(w.doc, w.doc.line("lines", w.at, "samples", i), "%s: sample %q is also taken by %s; say over or also, or make one narrower", w.line.ID, clip(s.Text), id)
				}
			}
		}
	}
}

// apart reports whether two wordings can never meet the same artifact.
func apart(a, b []string) bool {
	return len(a) > 0 && len(b) > 0 && !slices.ContainsFunc(a, func(k string) bool { return slices.Contains(b, k) })
}

// clip shortens a sample for a message.
func clip(s string) string {
	if r := []rune(s); len(r) > 80 {
		return string(r[:80]) + "…"
	}
	return s
}
