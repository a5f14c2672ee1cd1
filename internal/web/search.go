package web

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"unicode/utf8"

	"github.com/inquest-dev/inquest/internal/explain"
	"github.com/inquest-dev/inquest/internal/report"
)

var searchRoutes = []route{{"GET /search", (*site).search}, {"POST /search", (*site).searchText}}

const (
	// maxQuery bounds what is searched for, in bytes: enough for a long traceback. A whole log is
	// diagnosed, not searched for.
	maxQuery = 16 << 10
	// maxAddress is up to which length, escaped, a text becomes part of an address that can be
	// passed on. The guard takes none longer than maxURL.
	maxAddress = 2 << 10
	// maxFound bounds the entries that a search shows.
	maxFound = 15
)

// bounded is what of a query is looked at: its first maxQuery bytes, without what cannot be seen
// (a terminal's colours come with what is copied from it) and blanks around it.
func bounded(q string) (_ string, cut bool) {
	q = strings.TrimSpace(q)
	if cut = len(q) > maxQuery; cut {
		n := maxQuery
		for n > 0 && !utf8.RuneStart(q[n]) {
			n--
		}
		q = q[:n]
	}
	return strings.TrimSpace(report.Clean(q)), cut
}

func codeID(n int) string { return fmt.Sprintf("code-%d", n) }

type searchPage struct {
	Query   string
	Cut     bool
	Most    int64  // bytes that are looked at
	Notice  string // what is to be said first
	Rows    []rowLine
	Found   []foundLine
	Perhaps []foundLine // in which only a word or two stand
	Near    []rowLine
	More    int // found, and not shown
}

type foundLine struct {
	entryLine
	Why string
}

type rowLine struct {
	link
	Lines []string
}

// search finds entries and rows of tables for words, or for error text that was pasted.
func (s *site) search(w http.ResponseWriter, r *http.Request) error {
	return s.found(w, r, http.StatusOK, r.URL.Query().Get("q"), "")
}

// searchText searches for a text that may be too long for an address. It changes nothing.
func (s *site) searchText(w http.ResponseWriter, r *http.Request) error {
	r.Body = http.MaxBytesReader(w, r.Body, 3*maxQuery+64)
	if err := r.ParseForm(); err != nil {
		return &failure{status: http.StatusRequestEntityTooLarge, title: "The text is too long to be searched for", todo: fmt.Sprintf("At most %d KiB are taken here: the lines of the error are enough. A whole log can be diagnosed on the first page.", maxQuery>>10), err: err}
	}
	q, cut := bounded(r.PostForm.Get("q"))
	if escaped := url.QueryEscape(q); !cut && len(escaped) <= maxAddress {
		return see(w, r, "/search?q="+escaped)
	}
	return s.found(w, r, http.StatusOK, r.PostForm.Get("q"), "")
}

// found shows what a search for query finds, with a notice before it.
func (s *site) found(w http.ResponseWriter, r *http.Request, status int, query, notice string) error {
	p := searchPage{Notice: notice, Most: maxQuery}
	p.Query, p.Cut = bounded(query)
	if p.Query != "" {
		if err := s.know.search(&p); err != nil {
			return err
		}
	}
	return s.page(w, r, status, "Search", "search", p)
}

func (k *knowledge) search(p *searchPage) error {
	x, err := k.index()
	if err != nil {
		return err
	}
	shorts, err := k.shorts()
	if err != nil {
		return err
	}
	// "Xid 79" and its like name rows of a table outright.
	if table, rest, ok := explain.Topic(k.Catalog, p.Query); ok {
		if _, has := explain.TablePage(k.Catalog, table, rest); has {
			p.Rows = append(p.Rows, rowLine{link: link{tablePath(table, rest), table + " " + rest}, Lines: []string{"The rows of this table that hold these words."}})
		}
	}
	for _, row := range explain.Rows(k.Catalog, p.Query) {
		l := rowLine{link{tablePath(row.Table, row.Key), row.Title}, row.Lines}
		switch {
		case row.Near:
			p.Near = append(p.Near, l)
		case len(p.Rows) == 1 && p.Rows[0].Href == l.Href:
			p.Rows[0] = l
		default:
			p.Rows = append(p.Rows, l)
		}
	}
	for i, m := range x.Find(p.Query) {
		if i >= maxFound {
			p.More++
			continue
		}
		l := foundLine{entryLine{*k.to(m.ID), m.ID, shorts[m.ID]}, m.Why}
		if m.Sure {
			p.Found = append(p.Found, l)
		} else {
			p.Perhaps = append(p.Perhaps, l)
		}
	}
	return nil
}
