package explain

import (
	"bufio"
	"fmt"
	"io"
	"slices"
	"unicode/utf8"

	"github.com/inquest-dev/inquest/internal/catalog"
)

// List writes the id and title of every entry, by area and id, and of the tables.
func List(w io.Writer, c *catalog.Catalog) error {
	b := bufio.NewWriter(w)
	heads := c.Entries()
	width := 0
	for _, h := range heads {
		width = max(width, utf8.RuneCountInString(h.ID))
	}
	first := true
	for _, area := range catalog.Areas {
		started := false
		for _, h := range heads {
			if h.Area != area {
				continue
			}
			if !started {
				if !first {
					b.WriteByte('\n')
				}
				fmt.Fprintln(b, area)
				started, first = true, false
			}
			fmt.Fprintf(b, "  %-*s  %s\n", width, h.ID, plain(h.Title))
		}
	}
	if names := c.Tables(); len(names) > 0 {
		if !first {
			b.WriteByte('\n')
		}
		fmt.Fprintln(b, "tables")
		for _, n := range names {
			fmt.Fprintf(b, "  %-*s  %s\n", width, n, plain(title(c, n)))
		}
	}
	return b.Flush()
}

// WriteList writes what List does, in format text, markdown or html.
func WriteList(w io.Writer, c *catalog.Catalog, format string) error {
	if format == "text" {
		return List(w, c)
	}
	_, err := io.WriteString(w, ListPage(c).Write(format, 0))
	return err
}

// ListPage lays the list of entries and tables out, a section for each area.
func ListPage(c *catalog.Catalog) Page {
	heads := c.Entries()
	p := Page{ID: "encyclopedia", Title: "Why GPU training runs die", About: severalEntries(len(heads))}
	for _, area := range catalog.Areas {
		var items []Item
		for _, h := range heads {
			if h.Area == area {
				items = append(items, Item{Text: h.ID + ": " + plain(h.Title), Entry: h.ID})
			}
		}
		p.add(area, Block{Kind: Bullets, Items: items})
	}
	p.add("tables", list(Bullets, c.Tables(), func(n string) Item { return Item{Text: n + ": " + plain(title(c, n))} }))
	return p
}

// FoundPage lays out what a search found: the rows of tables that the text is about,
// and the entries, best first, each with why.
func FoundPage(query string, found []Match, rows []Row) Page {
	p := Page{ID: "search", Title: "Found for “" + shortQuery(query) + "”", About: severalEntries(len(found))}
	p.add("Codes and errors", list(Bullets, rows, func(r Row) Item { return Item{Text: r.Title, More: append(slices.Clone(r.Lines), "`"+r.Command()+"`")} }))
	p.add("Entries, best first", list(Numbers, found[:min(len(found), shownResults)], func(m Match) Item {
		return Item{Text: m.ID + ": " + plain(m.Title), More: []string{m.Why}, Entry: m.ID}
	}))
	return p
}

func severalEntries(n int) string {
	if n == 1 {
		return "1 entry"
	}
	return fmt.Sprintf("%d entries", n)
}

// shortQuery is a query as one line of a heading.
func shortQuery(query string) string {
	const shownQuery = 60
	q := plain(query)
	if r := []rune(q); len(r) > shownQuery {
		q = string(r[:shownQuery]) + "…"
	}
	return q
}

// title is what a table calls itself.
func title(c *catalog.Catalog, table string) string {
	if t := c.Codes(table); t != nil {
		return t.Title
	}
	if t := c.Errors(); t != nil && t.Table == table {
		return t.Title
	}
	return ""
}

// shownResults bounds how many matches Results writes.
const shownResults = 10

// Results writes what a search for query found, best first, each with why.
func Results(w io.Writer, query string, found []Match) error {
	b := bufio.NewWriter(w)
	fmt.Fprintf(b, "%s for %q, best first\n", severalEntries(len(found)), shortQuery(query))
	for _, m := range found[:min(len(found), shownResults)] {
		fmt.Fprintf(b, "\n%s\n  %s\n  %s\n", m.ID, plain(m.Title), m.Why)
	}
	if n := len(found) - shownResults; n > 0 {
		fmt.Fprintf(b, "\nand %d more\n", n)
	}
	if len(found) > 0 {
		fmt.Fprintf(b, "\ninquest explain %s prints the whole entry\n", found[0].ID)
	}
	return b.Flush()
}
