package explain

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/inquest-dev/inquest/internal/catalog"
	"github.com/inquest-dev/inquest/internal/evidence"
	"github.com/inquest-dev/inquest/internal/lazyre"
)

// fullRows is up to how many rows of a table are written out in full.
const fullRows = 12

// Topic splits a query that begins with the name of a table of codes or errors off
// the words that select its rows. Codes may stand at the name as people write them:
// xid79, Xid: 79, 94, SXID #20034, CUDA error 700.
func Topic(c *catalog.Catalog, query string) (table, rest string, ok bool) {
	query = strings.ToLower(strings.TrimSpace(query))
	if m := namedCodes.FindStringSubmatch(query); m != nil {
		table, rest = m[1], m[2]
		if strings.HasPrefix(table, "cuda") {
			table = "cuda-errors"
		}
		if slices.Contains(c.Tables(), table) {
			return table, rest, true
		}
	}
	table, rest, _ = strings.Cut(query, " ")
	return table, strings.TrimSpace(rest), slices.Contains(c.Tables(), table)
}

var namedCodes = lazyre.New(`^(s?xid|cuda[ -]?errors?)[\s:#=-]*(?:(?:codes?|errors?|numbers?|no\.?)[\s:#=-]*)?(\d{1,9}(?:[\s,;/&+]+(?:(?:and|or)\s+)?\d{1,9})*)$`)

// Missing lists the numbers of query that stand in no row of table. words holds the
// query's other words.
func Missing(c *catalog.Catalog, table, query string) (numbers, words []string) {
	for _, w := range wordsOf(query) {
		if !number(w) {
			words = append(words, w)
			continue
		}
		found := false
		if t := c.Codes(table); t != nil {
			n, err := strconv.ParseInt(w, 10, 64)
			_, has := t.Find(n)
			found = err == nil && has
		} else if t := c.Errors(); t != nil && t.Table == table {
			found = slices.ContainsFunc(t.Errors, func(e catalog.CallError) bool { return slices.Contains(numbersOf(&e), w) })
		}
		if !found {
			numbers = append(numbers, w)
		}
	}
	return numbers, words
}

// Absent says that table has no row for numbers.
func Absent(c *catalog.Catalog, table string, numbers []string) string {
	what := "error"
	if t := c.Codes(table); t != nil {
		what = label(t)
	}
	return fmt.Sprintf("no %s %s in the table; inquest explain %s lists all", what, strings.Join(numbers, ", "), table)
}

// label is what the codes of a table are called.
func label(t *catalog.CodeTable) string { return plain(strings.SplitN(t.Title, ",", 2)[0]) }

// Table writes the rows of a table that hold every word of query, in format text,
// markdown, html or json: a few in full, many as a list. A number selects by code, several
// numbers the row of each. found is false, and nothing is written, if no row does.
func Table(w io.Writer, c *catalog.Catalog, table, query, format string, width int) (found bool, err error) {
	p, result, found := tableRows(c, table, query)
	switch {
	case !found:
		return false, nil
	case format == "json":
		return true, JSON(w, result)
	}
	return true, write(w, p, format, width)
}

// TablePage is what Table writes, laid out for every format.
func TablePage(c *catalog.Catalog, table, query string) (p Page, found bool) {
	p, _, found = tableRows(c, table, query)
	return p, found
}

// tableRows are the rows of a table that query selects, laid out and as JSON has them.
func tableRows(c *catalog.Catalog, table, query string) (p Page, result any, found bool) {
	words := wordsOf(query)
	if t := c.Codes(table); t != nil {
		rows := codeRows(t, words)
		if len(rows) == 0 {
			return Page{}, nil, false
		}
		return codePage(t, rows), codesResult{t.Table, t.Title, t.Sources, rows}, true
	}
	t := c.Errors()
	if t == nil || t.Table != table {
		return Page{}, nil, false
	}
	var rows []catalog.CallError
	for i := range t.Errors {
		if holds(errorText(&t.Errors[i]), numbersOf(&t.Errors[i]), words) {
			rows = append(rows, t.Errors[i])
		}
	}
	if len(rows) == 0 {
		return Page{}, nil, false
	}
	return errorPage(t, rows), errorsResult{t.Table, t.Title, t.Sources, t.Honest, rows}, true
}

type codesResult struct {
	Table   string         `json:"table"`
	Title   string         `json:"title"`
	Sources []string       `json:"sources"`
	Codes   []catalog.Code `json:"codes"`
}

type errorsResult struct {
	Table   string              `json:"table"`
	Title   string              `json:"title"`
	Sources []string            `json:"sources"`
	Honest  []catalog.Honest    `json:"honest"`
	Errors  []catalog.CallError `json:"errors"`
}

// JSON writes v, indented, with a newline at its end.
func JSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(v)
}

func write(w io.Writer, p Page, format string, width int) error {
	_, err := io.WriteString(w, p.Write(format, width))
	return err
}

// codeRows are the rows of t that hold every word. A code without a row of its own
// is that of its range.
func codeRows(t *catalog.CodeTable, words []string) []catalog.Code {
	var rows []catalog.Code
	for i := range t.Codes {
		if holds(codeText(&t.Codes[i]), []string{strconv.Itoa(t.Codes[i].Code)}, words) {
			rows = append(rows, t.Codes[i])
		}
	}
	for _, w := range words {
		n, err := strconv.ParseInt(w, 10, 64)
		if err != nil {
			return rows // other words: what a range says of all its codes is too little to select by
		}
		row, ok := t.Find(n)
		if ok && !slices.ContainsFunc(rows, func(c catalog.Code) bool { return c.Code == row.Code }) {
			rows = append(rows, row)
		}
	}
	slices.SortFunc(rows, func(a, b catalog.Code) int { return cmp.Compare(a.Code, b.Code) })
	return rows
}

// wordsOf are the words of a query in lower case; those that say nothing here are
// left out, and leading zeros of a number.
func wordsOf(query string) []string {
	var out []string
	for w := range strings.FieldsFuncSeq(strings.ToLower(query), func(r rune) bool { return unicode.IsSpace(r) || r == ',' || r == ';' }) {
		if trimmed := strings.TrimLeft(w, "0"); trimmed != w && number(w) {
			w = trimmed
		}
		if w != "" && !stop[w] && len(out) < maxTerms {
			out = append(out, w)
		}
	}
	return out
}

func number(s string) bool {
	return s != "" && strings.TrimLeft(s, "0123456789") == ""
}

// holds reports whether every word stands in text, and one of the numbers among
// the words, if there are any, is one of numbers.
func holds(text string, numbers, words []string) bool {
	asked, met := false, false
	for _, w := range words {
		if number(w) {
			asked, met = true, met || slices.Contains(numbers, w)
		} else if !strings.Contains(text, w) {
			return false
		}
	}
	return met || !asked
}

func codeText(c *catalog.Code) string {
	return strings.ToLower(strings.Join([]string{c.Name, c.Severity, c.Family, c.Action, catalog.Actions[c.Action], c.Who, c.Meaning, c.Note, c.Drivers, c.Entry}, " "))
}

func errorText(e *catalog.CallError) string {
	parts := []string{e.Library, e.Name, e.Driver, strings.Join(e.Texts, " "), e.Proves, e.Not, e.Xids, e.Entry, e.Note, strings.Join(e.Honest, " ")}
	for _, c := range e.Causes {
		parts = append(parts, c.Text, c.Entry)
	}
	if e.Sticky == "process" || e.Sticky == "communicator" {
		parts = append(parts, "sticky", e.Sticky)
	}
	if e.Reported != "at-once" {
		parts = append(parts, "asynchronous", e.Reported)
	}
	return strings.ToLower(strings.Join(parts, " "))
}

func numbersOf(e *catalog.CallError) []string {
	out := strings.FieldsFunc(e.Xids, func(r rune) bool { return r < '0' || r > '9' })
	if e.Number != 0 {
		out = append(out, strconv.Itoa(e.Number))
	}
	return out
}

// severityWords say what a severity means for a job.
var severityWords = map[string]string{
	"hardware":    "the device's own fault",
	"application": "normally the program's",
	"consequence": "follows another fault; never the first",
	"notice":      "no failure by itself",
	"driver":      "the driver's or its firmware's",
	"link":        "a link's fault",
}

// severityText is a severity with what it means, said once.
func severityText(severity string) string {
	switch severity {
	case "fatal":
		return "fatal for the jobs whose traffic it carries"
	case "nonfatal":
		return "not fatal by itself"
	}
	return severity + ", " + severityWords[severity]
}

func codePage(t *catalog.CodeTable, rows []catalog.Code) Page {
	if len(rows) == 1 {
		c := &rows[0]
		p := Page{ID: t.Table, Title: strings.TrimSpace(fmt.Sprintf("%s %d %s", label(t), c.Code, plain(c.Name))), About: plain(t.Title)}
		p.add("What it means", paragraphs(c.Meaning+"\n\n"+c.Note)...)
		var facts []Item
		fact := func(name, text string) {
			if text != "" {
				facts = append(facts, Item{Text: name + ": " + plain(text)})
			}
		}
		if c.Severity != "" {
			fact("What it is", severityText(c.Severity))
		}
		if c.Certain {
			fact("What it proves", "that hardware failed; no program and no driver can cause it")
		}
		if c.Nonfatal != "" {
			fact("Where the line says Nonfatal", severityText(c.Nonfatal))
		}
		fact("What to do", catalog.Actions[c.Action])
		fact("Who acts", c.Who)
		fact("Drivers and devices", c.Drivers)
		if c.Entry != "" {
			facts = append(facts, Item{Text: "More: inquest explain " + c.Entry, Entry: c.Entry})
		}
		p.add("What follows from it", Block{Kind: Bullets, Items: facts})
		p.add("Sources", texts(t.Sources))
		return p
	}
	p := Page{ID: t.Table, Title: plain(t.Title), About: evidence.Several(int64(len(rows)), "code")}
	about := paragraphs(t.Doc)
	if len(rows) > fullRows {
		p.add("How to read it", about...)
	}
	p.add("Codes", list(Bullets, rows, func(c catalog.Code) Item {
		return Item{Text: strings.TrimSpace(fmt.Sprintf("%d %s", c.Code, plain(c.Name))) + ": " + plain(c.Meaning),
			More: []string{fmt.Sprintf("%s; %s; %s", c.Severity, catalog.Actions[c.Action], c.Who)}, Row: strconv.Itoa(c.Code)}
	}))
	if len(rows) <= fullRows {
		p.add("How to read it", about...)
	}
	p.add("Sources", texts(t.Sources))
	return p
}

func errorPage(t *catalog.ErrorTable, rows []catalog.CallError) Page {
	p := Page{ID: t.Table, Title: plain(t.Title), About: evidence.Several(int64(len(rows)), "error")}
	if len(rows) > 1 {
		p.add("How to read it", paragraphs(t.Doc)...)
	}
	if len(rows) > fullRows {
		p.add("Errors", list(Bullets, rows, func(e catalog.CallError) Item {
			return Item{Text: errorName(&e) + ": " + plain(e.Texts[0]), More: []string{reach(&e)}, Row: plain(e.Name)}
		}))
	} else {
		for i := range rows {
			p.add(errorName(&rows[i]), errorBlocks(&rows[i])...)
		}
	}
	var ways []Item
	for _, h := range t.Honest {
		if slices.ContainsFunc(rows, func(e catalog.CallError) bool { return slices.Contains(e.Honest, h.ID) }) {
			ways = append(ways, Item{Text: h.ID + ": " + plain(h.What), Code: clean(h.How), Lang: "shell"})
		}
	}
	p.add("How to make them report honestly", Block{Kind: Bullets, Items: ways})
	p.add("Sources", texts(t.Sources))
	return p
}

func errorName(e *catalog.CallError) string {
	if e.Number == 0 {
		return fmt.Sprintf("%s %s", e.Library, plain(e.Name))
	}
	return fmt.Sprintf("%s %d %s", e.Library, e.Number, plain(e.Name))
}

// reach says how far an error goes and when it is reported.
func reach(e *catalog.CallError) string {
	sticky := map[string]string{
		"process":      "sticky: every later CUDA call of the process fails",
		"communicator": "sticky for the communicator",
		"no":           "not sticky",
		"unclear":      "whether it is sticky depends on what failed",
	}[e.Sticky]
	when := map[string]string{
		"later":   "asynchronous: reported at a later call than the one that caused it",
		"at-once": "reported by the call itself",
		"either":  "reported at once or at a later call",
	}[e.Reported]
	return sticky + "; " + when
}

func errorBlocks(e *catalog.CallError) []Block {
	facts := []Item{{Text: "Printed: " + strings.Join(e.Texts, " / ")}}
	if e.Driver != "" {
		facts = append(facts, Item{Text: "In the driver: " + plain(e.Driver)})
	}
	facts = append(facts, Item{Text: upperFirst(reach(e))}, Item{Text: "Proves: " + plain(e.Proves)}, Item{Text: "Does not prove: " + plain(e.Not)})
	var causes []string
	for _, c := range e.Causes {
		if c.Entry != "" {
			causes = append(causes, plain(c.Text)+" ("+c.Entry+")")
		} else {
			causes = append(causes, plain(c.Text))
		}
	}
	facts = append(facts, Item{Text: "Usual causes:", More: causes})
	if e.Xids != "" {
		facts = append(facts, Item{Text: "Xid beside it: " + plain(e.Xids)})
	}
	facts = append(facts, Item{Text: "To make it honest: " + strings.Join(e.Honest, ", ")})
	if e.Entry != "" {
		facts = append(facts, Item{Text: "More: inquest explain " + e.Entry, Entry: e.Entry})
	}
	if e.Note != "" {
		facts = append(facts, Item{Text: plain(e.Note)})
	}
	return []Block{{Kind: Bullets, Items: facts}}
}

func upperFirst(s string) string { return strings.ToUpper(s[:1]) + s[1:] }
