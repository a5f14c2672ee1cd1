package web

import (
	"fmt"
	"net/http"
	"strings"
	"unicode/utf8"

	"github.com/inquest-dev/inquest/internal/explain"
)

var searchRoutes = []route{{"GET /search", (*site).search}}

const (
	// maxQuery bounds what is searched for, in bytes: enough for the end of a traceback, and
	// within what browsers put into an address.
	maxQuery = 8 << 10
	// maxFound bounds the entries that a search shows.
	maxFound = 15
)

// bounded is a query without blanks around it and valid, cut to maxQuery.
func bounded(q string) (_ string, cut bool) {
	q = strings.TrimSpace(strings.ToValidUTF8(q, "?"))
	if len(q) <= maxQuery {
		return q, false
	}
	n := maxQuery
	for !utf8.RuneStart(q[n]) {
		n--
	}
	return q[:n], true
}

func codeID(n int) string { return fmt.Sprintf("code-%d", n) }

type searchPage struct {
	Query   string
	Cut     bool
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

// found shows what a search for query finds, with a notice before it.
func (s *site) found(w http.ResponseWriter, r *http.Request, status int, query, notice string) error {
	p := searchPage{Notice: notice}
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
