package web

import (
	"cmp"
	"net/http"
	"slices"
	"strings"

	"github.com/inquest-dev/inquest/internal/catalog"
	"github.com/inquest-dev/inquest/internal/evidence"
	"github.com/inquest-dev/inquest/internal/explain"
)

// encyclopediaRoutes are the pages of the encyclopedia.
var encyclopediaRoutes = []route{
	{"GET /encyclopedia", (*site).encyclopedia},
	{"GET /encyclopedia/{entry}", (*site).entry},
	{"GET /encyclopedia/decide", (*site).decide},
	{"GET /encyclopedia/compare", (*site).compareEntries},
}

// areaNames are the areas as people call them.
var areaNames = map[string]string{
	"device-memory": "Device memory", "host-memory": "Host memory", "numerics": "Numerics", "distributed": "Distributed", "device": "Devices", "outside": "Outside the program",
}

func areaName(area string) string { return cmp.Or(areaNames[area], area) }

// An option is one value of a choice in a form.
type option struct {
	Value, Text string
	Chosen      bool
}

// A choice is an option group of a form.
type choice struct {
	Name    string
	Options []option
}

// An areaView is an area with the entries of it that are shown.
type areaView struct {
	ID, Name string
	Entries  []entryLine
}

// An entryLine is an entry in short.
type entryLine struct {
	link
	ID, Short string
}

type tableLine struct{ Href, Title, Doc string }

type encyclopediaPage struct {
	Areas       []areaView
	AreaOptions []option
	Kinds       []choice
	Filtered    bool
	Shown, All  int
	Tables      []tableLine
}

// encyclopedia lists all entries, or those of an area or about a kind of event.
func (s *site) encyclopedia(w http.ResponseWriter, r *http.Request) error {
	area, kind := r.URL.Query().Get("area"), r.URL.Query().Get("kind")
	shorts, err := s.know.shorts()
	if err != nil {
		return err
	}
	heads := s.know.Entries()
	p := encyclopediaPage{Filtered: area != "" || kind != "", All: len(heads), Kinds: s.know.kinds(kind)}
	for _, a := range catalog.Areas {
		p.AreaOptions = append(p.AreaOptions, option{a, areaName(a), a == area})
		v := areaView{ID: a, Name: areaName(a)}
		for _, h := range heads {
			if h.Area != a || area != "" && a != area || kind != "" && !slices.Contains(h.About, kind) {
				continue
			}
			v.Entries = append(v.Entries, entryLine{*s.know.to(h.ID), h.ID, shorts[h.ID]})
			p.Shown++
		}
		if len(v.Entries) > 0 {
			p.Areas = append(p.Areas, v)
		}
	}
	for _, name := range s.know.Tables() {
		l := tableLine{Href: tablePath(name, "")}
		if t := s.know.Codes(name); t != nil {
			l.Title, l.Doc = t.Title, t.Doc
		} else if t := s.know.Errors(); t != nil {
			l.Title, l.Doc = t.Title, t.Doc
		}
		l.Doc, _, _ = strings.Cut(l.Doc, "\n\n")
		p.Tables = append(p.Tables, l)
	}
	return s.page(w, r, http.StatusOK, "Encyclopedia", "encyclopedia", p)
}

// kinds are the kinds of event that some entry is about, by class, in the order of
// evidence.Specs.
func (k *knowledge) kinds(chosen string) []choice {
	var out []choice
	for _, kind := range explain.Kinds(k.Catalog) {
		class := string(evidence.SpecOf(evidence.Kind(kind)).Class)
		name := strings.ReplaceAll(class, "_", " ")
		i := slices.IndexFunc(out, func(c choice) bool { return c.Name == name })
		if i < 0 {
			i, out = len(out), append(out, choice{Name: name})
		}
		out[i].Options = append(out[i].Options, option{kind, strings.ReplaceAll(kind, "_", " "), kind == chosen})
	}
	return out
}

type entryPage struct {
	Page    pageView
	Table   string // the table's name, for rows of one
	Query   string // that selects its rows
	Missing string // what of it has no row
	Compare []link // comparisons with entries that look alike
	Decide  string // path of the decision tables of its kinds
}

// entry shows an entry, or a table of codes or errors.
func (s *site) entry(w http.ResponseWriter, r *http.Request) error {
	name := r.PathValue("entry")
	if slices.Contains(s.know.Tables(), name) {
		return s.table(w, r, name)
	}
	e, err := s.know.Entry(name)
	if _, ok := s.know.titles[name]; !ok {
		return s.found(w, r, http.StatusNotFound, name, "There is no entry of that name. What comes nearest:")
	}
	if err != nil {
		return err
	}
	p := entryPage{Page: s.know.view(explain.Layout(e), ""), Decide: "/encyclopedia/decide?q=" + e.ID}
	for _, l := range e.LookAlikes {
		if to := s.know.to(l.Entry); to != nil {
			p.Compare = append(p.Compare, link{"/encyclopedia/compare?a=" + e.ID + "&b=" + l.Entry, to.Text})
		}
	}
	return s.page(w, r, http.StatusOK, p.Page.Title, "entry", p)
}

// table shows rows of a table.
func (s *site) table(w http.ResponseWriter, r *http.Request, name string) error {
	query, _ := bounded(r.URL.Query().Get("q"))
	page, found := explain.TablePage(s.know.Catalog, name, query)
	p := entryPage{Table: name, Query: query}
	status := http.StatusOK
	if found {
		p.Page = s.know.view(page, name)
		if absent, _ := explain.Missing(s.know.Catalog, name, query); len(absent) > 0 {
			p.Missing = "There is no row for " + strings.Join(absent[:min(len(absent), 20)], ", ") + "."
		}
	} else {
		status = http.StatusNotFound
		all, _ := explain.TablePage(s.know.Catalog, name, "")
		p.Page = pageView{ID: name, Title: all.Title, About: all.About}
		p.Missing = "No row holds all of that."
	}
	return s.page(w, r, status, p.Page.Title, "entry", p)
}

type decidePage struct {
	Query   string
	Cut     bool
	Kinds   []decideClass  // all that there are, where none is asked for
	Tables  []decisionView // those that are asked for
	Nothing bool           // what was asked means no kind of event
}

type decideClass struct {
	Name  string
	Kinds []decideKind
}

type decideKind struct {
	Href, Name, Means string
	Causes            int
}

type decisionView struct {
	Kind, Name, Means string
	Causes            []causeView
}

type causeView struct {
	Link          link
	Look, Against statements
	Next          stepView
	Change        stepView
}

// statements are what a cell of a decision table says: the weightiest first, the others behind
// a summary that opens.
type statements struct{ First, More [][]explain.Piece }

func newStatements(texts []string) statements {
	const first = 3
	all := pieces(texts)
	if len(all) <= first+1 {
		return statements{First: all}
	}
	return statements{all[:first], all[first:]}
}

// sentence is text with a capital and a full stop.
func sentence(text string) string {
	if text == "" {
		return ""
	}
	return strings.ToUpper(text[:1]) + strings.TrimSuffix(text[1:], ".") + "."
}

// A stepView is something to do.
type stepView struct {
	Do           []explain.Piece
	Code, CodeID string
	Effect       *effectView
}

// decide shows decision tables: from a symptom to its causes, what to look for, and what to do
// next that risks least. Without a question it lists the symptoms.
func (s *site) decide(w http.ResponseWriter, r *http.Request) error {
	p := decidePage{}
	p.Query, p.Cut = bounded(r.URL.Query().Get("q"))
	kinds := explain.KindsOf(s.know.Catalog, p.Query)
	if p.Query == "" || len(kinds) == 0 {
		p.Nothing = p.Query != ""
		for _, c := range s.know.kinds("") {
			class := decideClass{Name: c.Name}
			for _, o := range c.Options {
				d, _ := explain.Decide(s.know.Catalog, o.Value)
				class.Kinds = append(class.Kinds, decideKind{"/encyclopedia/decide?q=" + o.Value, o.Text, sentence(d.Means), len(d.Causes)})
			}
			p.Kinds = append(p.Kinds, class)
		}
		return s.page(w, r, http.StatusOK, "From a symptom to what to do", "decide", p)
	}
	codes := 0
	for _, d := range explain.Decisions(s.know.Catalog, kinds...) {
		v := decisionView{Kind: d.Kind, Name: strings.ReplaceAll(d.Kind, "_", " "), Means: sentence(d.Means)}
		for _, c := range d.Causes {
			cv := causeView{Link: *s.know.to(c.Entry), Look: newStatements(c.Look), Against: newStatements(c.Against),
				Next:   stepView{Do: inline(c.Next.Do), Code: c.Next.Code, Effect: effects[c.Next.Effect]},
				Change: stepView{Do: inline(c.Change), Effect: effects[c.Effect]}}
			if cv.Next.Code != "" {
				codes++
				cv.Next.CodeID = codeID(codes)
			}
			v.Causes = append(v.Causes, cv)
		}
		p.Tables = append(p.Tables, v)
	}
	return s.page(w, r, http.StatusOK, "From a symptom to what to do", "decide", p)
}

func pieces(texts []string) [][]explain.Piece {
	var out [][]explain.Piece
	for _, t := range texts {
		out = append(out, inline(t))
	}
	return out
}
