package catalog

import (
	"path"
	"slices"
	"strings"

	"github.com/inquest-dev/inquest/internal/evidence"
)

// lintCodes checks the tables of codes and errors.
func (l *linter) lintCodes() {
	for i := range l.k.codes {
		l.lintCodeTable(&l.k.codes[i])
	}
	for i := range l.k.errors {
		l.lintErrorTable(&l.k.errors[i])
	}
}

// tableHead checks what both forms of table begin with.
func (l *linter) tableHead(d *document, table, title, doc string, sources []string) {
	if file := strings.TrimSuffix(path.Base(d.name), ".yaml"); table != file {
		l.add(d, d.line("table"), "table %q differs from the file name %q", table, file)
	}
	l.filled(d, title, "title")
	l.filled(d, doc, "doc")
	l.list(d, sources, 1, "sources")
}

func (l *linter) entryRef(d *document, id string, at ...any) {
	if id != "" && !l.entries[id] {
		l.add(d, d.line(at...), "%s names %q, which is not an entry", fieldName(at), id)
	}
}

func (l *linter) lintCodeTable(x *codeDoc) {
	d, t := x.document, &x.table
	l.tableHead(d, t.Table, t.Title, t.Doc, t.Sources)
	severities, ok := codeSeverities[t.Table]
	if !ok {
		l.add(d, d.line("table"), "no event has codes of table %q", t.Table)
		return
	}
	if evidence.FactOf(t.Table+".code") == nil {
		l.add(d, d.line("table"), "no fact %s.code is declared", t.Table)
	}
	if t.Unlisted != "" {
		l.one(d, t.Unlisted, severities, "unlisted")
	}
	if len(t.Codes) == 0 {
		l.add(d, d.line("codes"), "codes needs at least 1")
	}
	for i := range t.Codes {
		c := &t.Codes[i]
		if i > 0 && c.Code <= t.Codes[i-1].Code {
			l.add(d, d.line("codes", i, "code"), "codes[%d]: %d does not ascend", i, c.Code)
		}
		l.one(d, c.Severity, severities, "codes", i, "severity")
		if c.Nonfatal != "" {
			l.one(d, c.Nonfatal, severities, "codes", i, "nonfatal")
		}
		if c.Family != "" {
			l.one(d, c.Family, families, "codes", i, "family")
		}
		if c.Certain && c.Severity != "hardware" {
			l.add(d, d.line("codes", i, "certain"), "codes[%d] is certain, and its severity is not hardware", i)
		}
		l.one(d, c.Action, sortedKeys(Actions), "codes", i, "action")
		l.one(d, c.Who, actors, "codes", i, "who")
		l.filled(d, c.Meaning, "codes", i, "meaning")
		l.entryRef(d, c.Entry, "codes", i, "entry")
	}
	for i, r := range t.Ranges {
		if r.From > r.To || i > 0 && r.From <= t.Ranges[i-1].To {
			l.add(d, d.line("ranges", i), "ranges[%d] does not ascend", i)
		}
		l.filled(d, r.Name, "ranges", i, "name")
		l.filled(d, r.Meaning, "ranges", i, "meaning")
	}
}

func (l *linter) lintErrorTable(x *errorDoc) {
	d, t := x.document, &x.table
	l.tableHead(d, t.Table, t.Title, t.Doc, t.Sources)
	var ways []string
	for i, h := range t.Honest {
		if !ValidID(h.ID) || slices.Contains(ways, h.ID) {
			l.add(d, d.line("honest", i, "id"), "honest[%d].id %q is no id, or repeated", i, h.ID)
		}
		ways = append(ways, h.ID)
		l.filled(d, h.How, "honest", i, "how")
		l.filled(d, h.What, "honest", i, "what")
	}
	used := map[string]bool{}
	names := map[string]bool{}
	for i := range t.Errors {
		e := &t.Errors[i]
		l.filled(d, e.Library, "errors", i, "library")
		l.filled(d, e.Name, "errors", i, "name")
		if names[e.Name] {
			l.add(d, d.line("errors", i, "name"), "errors[%d].name %q is already listed", i, e.Name)
		}
		names[e.Name] = true
		l.list(d, e.Texts, 1, "errors", i, "texts")
		l.one(d, e.Sticky, stickiness, "errors", i, "sticky")
		l.one(d, e.Reported, reportings, "errors", i, "reported")
		l.filled(d, e.Proves, "errors", i, "proves")
		l.filled(d, e.Not, "errors", i, "proves_not")
		if len(e.Causes) == 0 {
			l.add(d, d.line("errors", i), "errors[%d].causes needs at least 1", i)
		}
		for j, c := range e.Causes {
			l.filled(d, c.Text, "errors", i, "causes", j, "text")
			l.entryRef(d, c.Entry, "errors", i, "causes", j, "entry")
		}
		l.list(d, e.Honest, 1, "errors", i, "honest")
		for j, h := range e.Honest {
			used[h] = true
			l.one(d, h, ways, "errors", i, "honest", j)
		}
		l.entryRef(d, e.Entry, "errors", i, "entry")
	}
	for i, h := range ways {
		if !used[h] {
			l.add(d, d.line("honest", i, "id"), "honest[%d]: no error names %q", i, h)
		}
	}
}
