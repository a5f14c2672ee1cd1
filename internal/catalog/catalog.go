// Package catalog loads, lints and compiles the encyclopedia: the wordings that
// say how each source words an event, and the entries that say what a failure
// means. It opens nothing but the file systems handed to it.
package catalog

import (
	"cmp"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"sync"

	"cel.dev/cel-go/common/ast"

	"github.com/inquest-dev/inquest/internal/evidence"
)

// A Catalog is the knowledge of one run of the program. It is immutable after
// Load and may be used concurrently.
type Catalog struct {
	base       fs.FS
	heads      []Head // by id
	slots      map[string]*entrySlot
	matchers   []*matcher
	tables     tables
	conditions sync.Map // expression -> *lazyCondition
}

// A Head is what the catalogue knows of an entry without decoding it.
type Head struct {
	ID     string   `json:"id"`
	Title  string   `json:"title"`
	Area   string   `json:"area"`
	About  []string `json:"about"`
	Prior  int      `json:"prior"`
	Search []string `json:"search"`
}

func headOf(e *Entry) Head {
	return Head{e.ID, e.Title, e.Area, e.About, e.Prior, e.SearchKeys}
}

// An entrySlot holds an entry, decoded when it is first asked for.
type entrySlot struct {
	once  sync.Once
	entry *Entry
	err   error
}

type lazyCondition struct {
	once    sync.Once
	checked string // compiled form in base64, "" when the expression must be parsed
	cond    *condition
}

// Load makes a catalogue of fsys, which holds the encyclopedia (lines, entries
// and, as the program embeds it, compiled), and of extra folders with
// lines/*.yaml, codes/*.yaml and entries/**/*.yaml, which add to it or replace by id, later
// folders winning. Folders that are read from YAML must pass the lint: the
// error then names the first problems by file, line and reason.
func Load(fsys fs.FS, extra ...fs.FS) (*Catalog, error) {
	c := &Catalog{base: fsys, slots: map[string]*entrySlot{}}
	err := c.loadCompiled()
	if errors.Is(err, fs.ErrNotExist) {
		err = c.add(fsys)
	}
	if err != nil {
		return nil, fmt.Errorf("load encyclopedia: %w", err)
	}
	for _, f := range extra {
		if err := c.add(f); err != nil {
			return nil, fmt.Errorf("load rules: %w", err)
		}
	}
	return c, nil
}

// add reads a folder of YAML and merges it into c.
func (c *Catalog) add(fsys fs.FS) error {
	k, err := readYAML(fsys)
	if err != nil {
		return err
	}
	if len(k.lines)+len(k.entries)+len(k.codes)+len(k.errors)+len(k.problems) == 0 {
		return errors.New("no lines/*.yaml and no entries/**/*.yaml")
	}
	if problems := lint(k, c); len(problems) > 0 {
		return problemsError(problems)
	}
	c.tables = c.tables.with(k)
	if len(k.codes) > 0 { // a table that is replaced counts for the wordings that were there
		for i, m := range c.matchers {
			if len(m.lookup) == 0 {
				continue
			}
			w := m.w
			if w.Lookups, err = c.tables.lookups(m.lookup); err != nil {
				return fmt.Errorf("wording %s: %w", w.ID, err)
			}
			c.matchers[i] = newMatcher(w, m.lookup)
		}
	}
	for _, d := range k.lines {
		for i := range d.file.Lines {
			w, err := wording(&d.file, &d.file.Lines[i], &c.tables)
			if err != nil {
				return fmt.Errorf("wording %s: %w", w.ID, err)
			}
			m := newMatcher(w, d.file.Lines[i].Lookup)
			if at := slices.IndexFunc(c.matchers, func(x *matcher) bool { return x.w.ID == w.ID }); at >= 0 {
				c.matchers[at] = m
			} else {
				c.matchers = append(c.matchers, m)
			}
		}
	}
	for i := range k.entries {
		e := &k.entries[i].entry
		s := &entrySlot{entry: e}
		s.once.Do(func() {})
		c.slots[e.ID] = s
		at, found := slices.BinarySearchFunc(c.heads, e.ID, func(h Head, id string) int { return cmp.Compare(h.ID, id) })
		if found {
			c.heads[at] = headOf(e)
		} else {
			c.heads = slices.Insert(c.heads, at, headOf(e))
		}
	}
	return nil
}

// shownProblems bounds how many problems one error names.
const shownProblems = 20

func problemsError(problems []Problem) error {
	var msgs []string
	for _, p := range problems[:min(len(problems), shownProblems)] {
		msgs = append(msgs, p.String())
	}
	if n := len(problems) - shownProblems; n > 0 {
		msgs = append(msgs, fmt.Sprintf("and %d more", n))
	}
	return errors.New(strings.Join(msgs, "\n"))
}

// Plan returns what the text readers shall look for.
func (c *Catalog) Plan() evidence.Plan {
	p := evidence.Plan{Wordings: make([]evidence.Wording, len(c.matchers))}
	for i, m := range c.matchers {
		p.Wordings[i] = m.w
	}
	return p
}

// Entries returns the heads of all entries by id.
func (c *Catalog) Entries() []Head { return slices.Clone(c.heads) }

// Entry returns the entry of that id. The caller must not change it.
func (c *Catalog) Entry(id string) (*Entry, error) {
	s := c.slots[id]
	if s == nil {
		return nil, fmt.Errorf("no entry %q", id)
	}
	s.once.Do(func() { s.entry, s.err = c.decodeEntry(id) })
	return s.entry, s.err
}

// Candidates returns the entries that are about any of the kinds, by id. An
// embedded entry that does not decode is a broken build, and panics.
func (c *Catalog) Candidates(kinds ...string) []*Entry {
	var out []*Entry
	for _, h := range c.heads {
		if !slices.ContainsFunc(h.About, func(k string) bool { return slices.Contains(kinds, k) }) {
			continue
		}
		e, err := c.Entry(h.ID)
		if err != nil {
			panic(err)
		}
		out = append(out, e)
	}
	return out
}

// Eval evaluates a condition over the facts of one attempt. Facts that are not
// in the map are unknown, which does not spread through an && or || that the
// rest decides; counts (seen.*) that are not in the map are 0. Expressions
// compile when first met and are kept.
func (c *Catalog) Eval(expr string, facts map[string]evidence.Value) Outcome {
	v, ok := c.conditions.Load(expr)
	if !ok {
		v, _ = c.conditions.LoadOrStore(expr, &lazyCondition{})
	}
	l := v.(*lazyCondition)
	l.once.Do(func() {
		var checked *ast.AST
		if data, err := base64.StdEncoding.DecodeString(l.checked); err == nil && len(data) > 0 {
			checked, _ = decodeChecked(data) // parsed from its text when the stored form does not decode
		}
		l.cond = newCondition(expr, checked)
	})
	return l.cond.eval(facts)
}

// A Recognised is one wording that takes a text.
type Recognised struct {
	Wording string        // its id
	Kind    evidence.Kind // "" when it only states facts
	Literal string
	Attrs   evidence.Attrs // what the wording states of the event, and what it captured in the text
}

// Recognise tries the wordings on a text that somebody pasted, as a whole, line
// by line and without common prefixes, in the order of the plan. A wording that
// another one found takes precedence over is left out.
func (c *Catalog) Recognise(text string) []Recognised {
	forms := variants(text)
	type taken struct {
		*matcher
		groups map[string]string
	}
	var found []taken
	over := map[string]bool{}
	for _, m := range c.matchers {
		if got, ok := m.take(forms); ok {
			found = append(found, taken{m, got})
			for _, id := range m.w.Over {
				over[id] = true
			}
		}
	}
	var out []Recognised
	for _, m := range found {
		if !over[m.w.ID] {
			out = append(out, Recognised{m.w.ID, m.w.Kind, m.w.Literal, m.attrs(m.groups)})
		}
	}
	return out
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
