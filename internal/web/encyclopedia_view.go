package web

import (
	"fmt"
	"html/template"
	"strings"
	"sync"

	"github.com/inquest-dev/inquest/internal/catalog"
	"github.com/inquest-dev/inquest/internal/explain"
	"github.com/inquest-dev/inquest/internal/lazyre"
)

// A knowledge is the encyclopedia as pages show it. It does not change once it is made, and may
// be used concurrently.
type knowledge struct {
	*catalog.Catalog
	titles map[string]string // id of an entry -> its title
	// index and shorts read every entry, and are made when a page first needs them.
	index  func() (*explain.Index, error)
	shorts func() (map[string]string, error) // id -> the first sentence of its quick answer
}

// newKnowledge is of an empty encyclopedia where c is null.
func newKnowledge(c *catalog.Catalog) *knowledge {
	if c == nil {
		c = &catalog.Catalog{}
	}
	k := &knowledge{Catalog: c, titles: map[string]string{}}
	for _, h := range c.Entries() {
		k.titles[h.ID] = h.Title
	}
	k.index = sync.OnceValues(func() (*explain.Index, error) { return explain.NewIndex(c) })
	k.shorts = sync.OnceValues(func() (map[string]string, error) {
		out := map[string]string{}
		for id := range k.titles {
			e, err := c.Entry(id)
			if err != nil {
				return nil, err
			}
			out[id] = explain.Short(e)
		}
		return out, nil
	})
	return k
}

// A link leads to another page.
type link struct{ Href, Text string }

// to is the page of an entry, null where there is none.
func (k *knowledge) to(id string) *link {
	title, ok := k.titles[id]
	if !ok {
		return nil
	}
	return &link{"/encyclopedia/" + id, title}
}

// A pageView is a page of package explain with its links: the template "page" of
// encyclopedia.part.html writes it.
type pageView struct {
	ID, Title, About string
	Sections         []sectionView
}

// A sectionView is a section; its groups are the parts below headings of their own. Tabs says that
// a script may show one group at a time.
type sectionView struct {
	Anchor, Heading string
	Tabs            bool
	Groups          []groupView
}

type groupView struct {
	Heading, ID string // of the first one "", where blocks stand before any heading
	Blocks      []blockView
}

type blockView struct {
	Kind  explain.BlockKind
	Text  []explain.Piece
	Items []itemView
	Table *gridView
}

type itemView struct {
	Link         *link // stands before the text
	Text         []explain.Piece
	More         [][]explain.Piece
	When         string
	Code, CodeID string
	Effect       *effectView
	Level        string
	Check        string // id of its box, where it is to be ticked
}

type gridView struct {
	Label   string
	Columns []string
	Rows    [][]cellView
}

type cellView struct {
	Link  *link
	Texts [][]explain.Piece
}

// An effectView says what a step does to a run.
type effectView struct{ Tone, Word, Means string }

// effects are the effects that steps and changes have.
var effects = map[string]*effectView{
	"reads":      {"good", "reads", "It only looks: nothing is changed."},
	"reversible": {"open", "reversible", "It changes something that can be put back."},
	"changes":    {"bad", "changes", "It changes something for good."},
}

// view is p for the template. Table names the table that p has rows of, "" for any other page.
func (k *knowledge) view(p explain.Page, table string) pageView {
	v := pageView{ID: p.ID, Title: p.Title, About: p.About}
	codes, checks := 0, 0
	for _, s := range p.Sections {
		sec := sectionView{Anchor: s.Anchor, Heading: s.Heading}
		group := groupView{}
		flush := func() {
			if group.Heading != "" || len(group.Blocks) > 0 {
				sec.Groups = append(sec.Groups, group)
			}
		}
		for _, b := range s.Blocks {
			if b.Kind == explain.Subheading {
				flush()
				group = groupView{Heading: b.Text, ID: fmt.Sprintf("%s-%d", s.Anchor, len(sec.Groups)+1)}
				continue
			}
			bv := blockView{Kind: b.Kind, Text: inline(b.Text)}
			for _, it := range b.Items {
				iv := k.item(it, table)
				if it.Code != "" {
					codes++
					iv.CodeID = fmt.Sprintf("code-%d", codes)
				}
				if b.Kind == explain.Checks {
					checks++
					iv.Check = fmt.Sprintf("check-%d", checks)
				}
				bv.Items = append(bv.Items, iv)
			}
			if b.Table != nil {
				bv.Table = k.grid(b.Table, s.Heading)
			}
			group.Blocks = append(group.Blocks, bv)
		}
		flush()
		sec.Tabs = s.Anchor == "the-fix-by-stack" && len(sec.Groups) > 1
		v.Sections = append(v.Sections, sec)
	}
	return v
}

// placeholder is where a report of a run has the run's own value.
var placeholder = lazyre.New(`\{[a-z][a-z0-9_]*(?:\.[a-z0-9_]+)+\}`)

// inline cuts a text into prose and code. Where only a run could say a value, the fact is named.
func inline(text string) []explain.Piece {
	var out []explain.Piece
	for _, p := range explain.Pieces(text) {
		if p.Code {
			out = append(out, p)
			continue
		}
		rest := p.Text
		for _, m := range placeholder.FindAllString(p.Text, -1) {
			before, after, _ := strings.Cut(rest, m)
			if before != "" {
				out = append(out, explain.Piece{Text: before})
			}
			out = append(out, explain.Piece{Text: strings.Trim(m, "{}"), Code: true})
			rest = after
		}
		if rest != "" {
			out = append(out, explain.Piece{Text: rest})
		}
	}
	return out
}

// item is it with its link: to the entry or the row that it is about, or to where its source is.
func (k *knowledge) item(it explain.Item, table string) itemView {
	v := itemView{When: it.When, Code: strings.TrimRight(it.Code, "\n"), Level: it.Level, Effect: effects[it.Effect]}
	text := it.Text
	if it.Effect != "" { // said by the badges
		text = strings.TrimSuffix(text, " ("+it.Effect+", "+it.Level+")")
	}
	switch to := k.to(it.Entry); {
	case to != nil && strings.HasPrefix(text, it.Entry):
		v.Link, text = to, strings.TrimPrefix(text, it.Entry)
	case to != nil && strings.HasPrefix(text, "More: "):
		v.Link, text = to, ""
	case it.Row != "" && table != "":
		name, rest, _ := strings.Cut(text, ": ")
		v.Link, text = &link{tablePath(table, it.Row), name}, ": "+rest
	default:
		if l, rest := source(text); l != nil {
			v.Link, text = l, rest
		}
	}
	v.Text = inline(text)
	for _, m := range it.More {
		v.More = append(v.More, inline(m))
	}
	return v
}

func (k *knowledge) grid(g *explain.Grid, label string) *gridView {
	v := &gridView{Label: label, Columns: g.Columns}
	for _, row := range g.Rows {
		var cells []cellView
		for _, c := range row {
			cell := cellView{Link: k.to(c.Entry)}
			for _, t := range c.Texts {
				if cell.Link != nil && t == cell.Link.Text {
					continue
				}
				cell.Texts = append(cell.Texts, inline(t))
			}
			cells = append(cells, cell)
		}
		v.Rows = append(v.Rows, cells)
	}
	return v
}

var (
	issueRef = lazyre.New(`^([A-Za-z0-9][A-Za-z0-9_.-]{0,99}/[A-Za-z0-9_.-]{1,100})#([0-9]{1,9})\b`)
	address  = lazyre.New(`^https://[A-Za-z0-9.-]+(?:/[A-Za-z0-9._~/?#=&%+-]*)?$`)
)

// source is where the source that a text names can be read: an address, or an issue of a public
// repository as the encyclopedia cites it. Nothing is fetched: a reader follows the link or does not.
func source(text string) (to *link, rest string) {
	if m := issueRef.FindStringSubmatch(text); m != nil {
		return &link{"https://github.com/" + m[1] + "/issues/" + m[2], m[0]}, strings.TrimPrefix(text, m[0])
	}
	if address.MatchString(text) {
		return &link{text, text}, ""
	}
	return nil, text
}

// Away reports whether the link leaves inquest.
func (l link) Away() bool { return !strings.HasPrefix(l.Href, "/") }

// tablePath is the page of the rows of a table that a query selects, of the whole table where it
// is "".
func tablePath(table, query string) string {
	p := "/encyclopedia/" + table
	if query != "" {
		p += "?q=" + template.URLQueryEscaper(query)
	}
	return p
}
