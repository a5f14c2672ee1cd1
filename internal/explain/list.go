package explain

import (
	"bufio"
	"fmt"
	"io"
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
	const shownQuery = 60
	q := plain(query)
	if r := []rune(q); len(r) > shownQuery {
		q = string(r[:shownQuery]) + "…"
	}
	entries := "entries"
	if len(found) == 1 {
		entries = "entry"
	}
	fmt.Fprintf(b, "%d %s for %q, best first\n", len(found), entries, q)
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
