package explain

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/inquest-dev/inquest/internal/catalog"
	"github.com/inquest-dev/inquest/internal/lazyre"
)

const (
	shownRows = 3
	leastText = 17 // bytes of a printed text that is told from other words
	// leastPrinted is the least of a text behind the name of its library: "CUDA out
	// of memory" is said of CUDA, "out of memory" of anything.
	leastPrinted = 12
)

// A Row is a row of a table in short, for the answer to a text that is about it.
type Row struct {
	Table, Key string // inquest explain Table Key prints the whole row
	Title      string
	Lines      []string
	// Near: the text is akin to what the row is about, as PyTorch's own "CUDA out of
	// memory" is to the driver's; the row is to be named, not to lead the answer.
	Near bool
}

// Command prints the whole row.
func (r Row) Command() string { return "inquest explain " + r.Table + " " + r.Key }

// Rows returns the rows of tables that a text is about: the code of an Xid or SXid
// line, a code in the words of one ("fell off the bus"), a number alone, an error
// whose text or name stands in it.
func Rows(c *catalog.Catalog, query string) []Row {
	if len(query) > maxQuery {
		query = query[:maxQuery]
	}
	var out []Row
	add := func(rows ...Row) {
		for _, r := range rows {
			if len(out) < shownRows && !slices.ContainsFunc(out, func(o Row) bool { return o.Table == r.Table && o.Key == r.Key }) {
				out = append(out, r)
			}
		}
	}
	add(codesIn(c, query)...)
	if n := strings.TrimSpace(query); number(n) && len(n) <= 5 {
		rows := numbered(c, strings.TrimLeft(n, "0"))
		for i := range rows {
			rows[i].Near = endsProcess(n)
		}
		add(rows...)
	}
	if len(out) == 0 {
		add(inWords(c, query)...)
	}
	add(errorsIn(c, strings.ToLower(query))...)
	return out
}

var codeLine = lazyre.New(`(?i)\b(s?xid)s?\b(?: \([^)]{0,64}\))?(?: codes?| errors?)?:? ?#?0*(\d{1,5})\b`)

// codesIn are the codes that text names.
func codesIn(c *catalog.Catalog, text string) []Row {
	var out []Row
	for _, m := range codeLine.FindAllStringSubmatch(text, shownRows) {
		if r, ok := codeRow(c, strings.ToLower(m[1]), m[2]); ok {
			out = append(out, r)
		}
	}
	return out
}

func codeRow(c *catalog.Catalog, table, digits string) (Row, bool) {
	t := c.Codes(table)
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil || t == nil {
		return Row{}, false
	}
	row, ok := t.Find(n)
	if !ok {
		return Row{}, false
	}
	r := Row{Table: table, Key: strconv.Itoa(row.Code), Title: strings.TrimSpace(fmt.Sprintf("%s %d %s", label(t), row.Code, plain(row.Name)))}
	r.Lines = append(r.Lines, plain(row.Meaning))
	if does := catalog.Actions[row.Action]; does != "" {
		r.Lines = append(r.Lines, fmt.Sprintf("What to do: %s. Who acts: %s.", plain(does), plain(row.Who)))
	}
	return r, true
}

func errorRow(t *catalog.ErrorTable, e *catalog.CallError) Row {
	return Row{Table: t.Table, Key: strings.Join(strings.Fields(e.Name), " "), Title: errorName(e),
		Lines: []string{"Proves: " + plain(e.Proves), "Does not prove: " + plain(e.Not)}}
}

// endsProcess reports whether a bare number is rather the status or the signal that
// a process ended with.
func endsProcess(n string) bool {
	v, err := strconv.Atoi(n)
	return err == nil && (v < 32 || v >= 124 && v < 160 || v == 255)
}

// numbered are the rows of all tables that have the number n.
func numbered(c *catalog.Catalog, n string) []Row {
	var out []Row
	for _, table := range c.Tables() {
		if r, ok := codeRow(c, table, n); ok {
			out = append(out, r)
		}
	}
	if t := c.Errors(); t != nil {
		for i := range t.Errors {
			if strconv.Itoa(t.Errors[i].Number) == n && n != "0" {
				out = append(out, errorRow(t, &t.Errors[i]))
			}
		}
	}
	return out
}

// inWords are the codes that text names by what they say: of a search key that
// names a code ("Xid 79 GPU has fallen off the bus") all words behind it stand
// in it.
func inWords(c *catalog.Catalog, text string) []Row {
	said := map[string]bool{}
	for _, t := range terms(words(text)) {
		said[t] = true
	}
	var out []Row
	for _, h := range c.Entries() {
		e, err := c.Entry(h.ID)
		if err != nil {
			continue
		}
		for _, key := range e.SearchKeys {
			m := codeKey.FindStringSubmatch(key)
			if m == nil {
				continue
			}
			of := terms(words(m[3]))
			if len(of) == 0 || slices.ContainsFunc(of, func(t string) bool { return !said[t] }) {
				continue
			}
			if r, ok := codeRow(c, strings.ToLower(m[1]), m[2]); ok {
				out = append(out, r)
			}
		}
	}
	return out
}

var codeKey = lazyre.New(`\b(S?Xid) (\d{1,5}) (.+)$`)

// errorsIn are the errors whose name or printed text stands in low, which is in
// lower case.
func errorsIn(c *catalog.Catalog, low string) []Row {
	t := c.Errors()
	if t == nil {
		return nil
	}
	var out []Row
	for i := range t.Errors {
		e := &t.Errors[i]
		holds := func(is func(low, library, text string) bool) bool {
			return slices.ContainsFunc(e.Texts, func(s string) bool { return is(low, e.Library, strings.ToLower(s)) })
		}
		r := errorRow(t, e)
		switch {
		case named(low, e.Name) || named(low, e.Driver) || holds(printed):
		case holds(akin):
			r.Near = true
		default:
			continue
		}
		out = append(out, r)
	}
	return out
}

func named(low, name string) bool { return name != "" && strings.Contains(low, strings.ToLower(name)) }

// printed reports whether low holds a text that a library prints.
func printed(low, _, text string) bool {
	return len(text) >= leastText && strings.Contains(low, text)
}

// akin reports whether low holds the words of a text behind the library's name
// alone.
func akin(low, library, text string) bool {
	text = strings.TrimPrefix(text, library+" error: ")
	return len(text) >= leastPrinted && strings.Contains(low, library+" "+text)
}

// WriteRows writes rows in short, at most width columns wide.
func WriteRows(w io.Writer, rows []Row, width int) error {
	if width < 20 {
		width = 80
	}
	var b strings.Builder
	for _, r := range rows {
		wrap(&b, r.Title, "", "", width)
		for _, l := range r.Lines {
			wrap(&b, l, "  ", "  ", width)
		}
		fmt.Fprintf(&b, "  %s prints the whole row\n\n", r.Command())
	}
	_, err := io.WriteString(w, b.String())
	return err
}
