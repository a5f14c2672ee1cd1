package catalog

import (
	"encoding/base64"
	"fmt"
	"io/fs"
	"slices"
	"strings"
)

// The compiled form of the encyclopedia is generated from its YAML so that the
// program starts in milliseconds: parsing YAML takes a hundred times longer
// than decoding this, and parsing a condition ten times longer than planning
// its checked form.
//
//	compiled/index.txt         heads of all entries, by id
//	compiled/lines.txt         wordings without samples, in the order of the files
//	compiled/codes.txt         tables of codes
//	compiled/entries/<id>.txt  one entry with its checked conditions
//
// They are written by pack.
const (
	indexFile = "compiled/index.txt"
	linesFile = "compiled/lines.txt"
	codesFile = "compiled/codes.txt"
)

func entryFile(id string) string { return "compiled/entries/" + id + ".txt" }

// A compiledLine is a Line as the program needs it.
type compiledLine struct {
	ID, Event, Literal, Regexp, Not string
	Kinds, Over                     []string
	Attrs, Facts, Lookup            map[string]string
	Join                            int
	Fold, Raw, Exception, Weak      bool
}

// A compiledEntry is an entry with the checked forms of its conditions (see
// encodeChecked) in base64, by expression.
type compiledEntry struct {
	Entry      Entry
	Conditions map[string]string
}

// Compile generates the compiled form of the YAML in fsys: contents by path.
// The same YAML gives the same bytes. A file that does not parse and a condition
// that does not compile are left out, for the lint to report.
func Compile(fsys fs.FS) (map[string][]byte, error) {
	k, err := readYAML(fsys)
	if err != nil {
		return nil, err
	}
	out := map[string][]byte{}
	var lines []compiledLine
	for _, d := range k.lines {
		for _, l := range d.file.Lines {
			lines = append(lines, compiledLine{ID: l.ID, Event: l.Event, Literal: l.Literal, Regexp: l.Regexp, Not: l.Not, Kinds: d.file.Kinds,
				Over: l.Over, Attrs: l.Attrs, Facts: l.Facts, Lookup: l.Lookup, Join: l.Join, Fold: l.Fold, Raw: l.Raw, Exception: l.Exception, Weak: l.Weak})
		}
	}
	if out[linesFile], err = pack(lines); err != nil {
		return nil, err
	}
	if out[codesFile], err = pack(tables{}.with(k)); err != nil {
		return nil, err
	}
	var heads []Head
	for i := range k.entries {
		e := &k.entries[i].entry
		heads = append(heads, headOf(e))
		ce := compiledEntry{*e, map[string]string{}}
		for _, expr := range e.conditions() {
			a, err := compile(expr)
			if err != nil {
				continue
			}
			if data, err := encodeChecked(a); err == nil {
				ce.Conditions[expr] = base64.StdEncoding.EncodeToString(data)
			}
		}
		if out[entryFile(e.ID)], err = pack(ce); err != nil {
			return nil, fmt.Errorf("entry %s: %w", e.ID, err)
		}
	}
	slices.SortFunc(heads, func(a, b Head) int { return strings.Compare(a.ID, b.ID) })
	if out[indexFile], err = pack(heads); err != nil {
		return nil, err
	}
	return out, nil
}

// conditions returns the distinct conditions of e in the order of the file.
func (e *Entry) conditions() []string {
	var out []string
	add := func(expr string) {
		if expr != "" && !slices.Contains(out, expr) {
			out = append(out, expr)
		}
	}
	add(e.Needs)
	for _, c := range e.For {
		add(c.When)
	}
	for _, c := range e.Against {
		add(c.When)
	}
	for _, c := range e.Checklist {
		add(c.When)
	}
	for _, c := range e.Cases {
		add(c.When)
	}
	return out
}

// loadCompiled fills c from the compiled form. The error is fs.ErrNotExist when
// the file system has none.
func (c *Catalog) loadCompiled() error {
	data, err := fs.ReadFile(c.base, indexFile)
	if err != nil {
		return err
	}
	if err := unpack(string(data), &c.heads); err != nil {
		return fmt.Errorf("read %s: %w", indexFile, err)
	}
	for _, h := range c.heads {
		c.slots[h.ID] = &entrySlot{}
	}
	if data, err = fs.ReadFile(c.base, linesFile); err != nil {
		return fmt.Errorf("incomplete compiled form: %s is missing", linesFile)
	}
	codes, err := fs.ReadFile(c.base, codesFile)
	if err != nil {
		return fmt.Errorf("incomplete compiled form: %s is missing", codesFile)
	}
	if err := unpack(string(codes), &c.tables); err != nil {
		return fmt.Errorf("read %s: %w", codesFile, err)
	}
	var lines []compiledLine
	if err := unpack(string(data), &lines); err != nil {
		return fmt.Errorf("read %s: %w", linesFile, err)
	}
	c.matchers = make([]*matcher, len(lines))
	for i, l := range lines {
		w, err := wording(&LineFile{Kinds: l.Kinds}, &Line{ID: l.ID, Event: l.Event, Literal: l.Literal, Fold: l.Fold, Regexp: l.Regexp,
			Not: l.Not, Attrs: l.Attrs, Facts: l.Facts, Lookup: l.Lookup, Join: l.Join, Raw: l.Raw, Exception: l.Exception, Weak: l.Weak, Over: l.Over}, &c.tables)
		if err != nil {
			return fmt.Errorf("wording %s: %w", l.ID, err)
		}
		c.matchers[i] = newMatcher(w, l.Lookup)
	}
	return nil
}

// decodeEntry reads one compiled entry and takes over its checked conditions.
func (c *Catalog) decodeEntry(id string) (*Entry, error) {
	data, err := fs.ReadFile(c.base, entryFile(id))
	if err != nil {
		return nil, fmt.Errorf("read entry: %w", err)
	}
	var ce compiledEntry
	if err := unpack(string(data), &ce); err != nil {
		return nil, fmt.Errorf("read entry %s: %w", id, err)
	}
	for expr, checked := range ce.Conditions {
		c.conditions.LoadOrStore(expr, &lazyCondition{checked: checked})
	}
	return &ce.Entry, nil
}
