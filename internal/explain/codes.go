package explain

import (
	"encoding/json"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/inquest-dev/inquest/internal/catalog"
)

// fullRows is up to how many rows of a table are written out in full.
const fullRows = 12

// Topic splits a query that begins with the name of a table of codes or errors off
// the words that select its rows.
func Topic(c *catalog.Catalog, query string) (table, rest string, ok bool) {
	table, rest, _ = strings.Cut(strings.TrimSpace(query), " ")
	table = strings.ToLower(table)
	return table, strings.TrimSpace(rest), slices.Contains(c.Tables(), table)
}

// Table writes the rows of a table that hold every word of query, in format text,
// markdown or json: a few in full, many as a list. A number selects by code. found
// is false, and nothing is written, if no row does.
func Table(w io.Writer, c *catalog.Catalog, table, query, format string, width int) (found bool, err error) {
	words := wordsOf(query)
	if t := c.Codes(table); t != nil {
		rows := codeRows(t, words)
		if len(rows) == 0 {
			return false, nil
		}
		if format == "json" {
			return true, JSON(w, codesResult{t.Table, t.Title, t.Sources, rows})
		}
		return true, write(w, codePage(t, rows), format, width)
	}
	t := c.Errors()
	if t == nil || t.Table != table {
		return false, nil
	}
	var rows []catalog.CallError
	for i := range t.Errors {
		if holds(errorText(&t.Errors[i]), numbersOf(&t.Errors[i]), words) {
			rows = append(rows, t.Errors[i])
		}
	}
	if len(rows) == 0 {
		return false, nil
	}
	if format == "json" {
		return true, JSON(w, errorsResult{t.Table, t.Title, t.Sources, t.Honest, rows})
	}
	return true, write(w, errorPage(t, rows), format, width)
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

func write(w io.Writer, p page, format string, width int) error {
	text := writeText
	for _, x := range writers {
		if x.name == format {
			text = x.write
		}
	}
	_, err := io.WriteString(w, text(p, width))
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
	if len(rows) == 0 && len(words) == 1 {
		if n, err := strconv.ParseInt(words[0], 10, 64); err == nil {
			if row, ok := t.Find(n); ok {
				rows = append(rows, row)
			}
		}
	}
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

// holds reports whether every word stands in text, or, if it is a number, is one of
// numbers.
func holds(text string, numbers, words []string) bool {
	for _, w := range words {
		if number(w) {
			if !slices.Contains(numbers, w) {
				return false
			}
		} else if !strings.Contains(text, w) {
			return false
		}
	}
	return true
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

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// severityWords say what a severity means for a job.
var severityWords = map[string]string{
	"hardware":    "the device's own fault",
	"application": "normally the program's",
	"consequence": "follows another fault; never the first",
	"notice":      "no failure by itself",
	"driver":      "the driver's or its firmware's",
	"link":        "a link's fault",
	"fatal":       "fatal for the jobs whose traffic it carries",
	"nonfatal":    "not fatal by itself",
}

func codePage(t *catalog.CodeTable, rows []catalog.Code) page {
	label := strings.SplitN(t.Title, ",", 2)[0]
	if len(rows) == 1 {
		c := &rows[0]
		p := page{id: t.Table, title: strings.TrimSpace(fmt.Sprintf("%s %d %s", label, c.Code, plain(c.Name))), about: plain(t.Title)}
		p.add("What it means", paragraphs(c.Meaning+"\n\n"+c.Note)...)
		var facts []item
		fact := func(name, text string) {
			if text != "" {
				facts = append(facts, item{text: name + ": " + plain(text)})
			}
		}
		if c.Severity != "" {
			fact("What it is", c.Severity+", "+severityWords[c.Severity])
		}
		if c.Certain {
			fact("What it proves", "that hardware failed; no program and no driver can cause it")
		}
		if c.Nonfatal != "" {
			fact("Where the line says Nonfatal", c.Nonfatal+", "+severityWords[c.Nonfatal])
		}
		fact("What to do", catalog.Actions[c.Action])
		fact("Who acts", c.Who)
		fact("Drivers and devices", c.Drivers)
		if c.Entry != "" {
			fact("More", "inquest explain "+c.Entry)
		}
		p.add("What follows from it", block{kind: bullets, items: facts})
		p.add("Sources", texts(t.Sources))
		return p
	}
	p := page{id: t.Table, title: plain(t.Title), about: count(len(rows), "code")}
	p.add("How to read it", paragraphs(t.Doc)...)
	p.add("Codes", list(bullets, rows, func(c catalog.Code) item {
		return item{text: strings.TrimSpace(fmt.Sprintf("%d %s", c.Code, plain(c.Name))) + ": " + plain(c.Meaning),
			more: []string{fmt.Sprintf("%s; %s; %s", c.Severity, catalog.Actions[c.Action], c.Who)}}
	}))
	p.add("Sources", texts(t.Sources))
	return p
}

func errorPage(t *catalog.ErrorTable, rows []catalog.CallError) page {
	p := page{id: t.Table, title: plain(t.Title), about: count(len(rows), "error")}
	if len(rows) > 1 {
		p.add("How to read it", paragraphs(t.Doc)...)
	}
	if len(rows) > fullRows {
		p.add("Errors", list(bullets, rows, func(e catalog.CallError) item {
			return item{text: errorName(&e) + ": " + plain(e.Texts[0]), more: []string{reach(&e)}}
		}))
	} else {
		for i := range rows {
			p.add(errorName(&rows[i]), errorBlocks(&rows[i])...)
		}
	}
	var ways []item
	for _, h := range t.Honest {
		if slices.ContainsFunc(rows, func(e catalog.CallError) bool { return slices.Contains(e.Honest, h.ID) }) {
			ways = append(ways, item{text: h.ID + ": " + plain(h.What), code: clean(h.How), lang: "shell"})
		}
	}
	p.add("How to make them report honestly", block{kind: bullets, items: ways})
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

func errorBlocks(e *catalog.CallError) []block {
	facts := []item{{text: "Printed: " + strings.Join(e.Texts, " / ")}}
	if e.Driver != "" {
		facts = append(facts, item{text: "In the driver: " + plain(e.Driver)})
	}
	facts = append(facts, item{text: upperFirst(reach(e))}, item{text: "Proves: " + plain(e.Proves)}, item{text: "Does not prove: " + plain(e.Not)})
	var causes []string
	for _, c := range e.Causes {
		if c.Entry != "" {
			causes = append(causes, plain(c.Text)+" ("+c.Entry+")")
		} else {
			causes = append(causes, plain(c.Text))
		}
	}
	facts = append(facts, item{text: "Usual causes:", more: causes})
	if e.Xids != "" {
		facts = append(facts, item{text: "Xid beside it: " + plain(e.Xids)})
	}
	facts = append(facts, item{text: "To make it honest: " + strings.Join(e.Honest, ", ")})
	if e.Entry != "" {
		facts = append(facts, item{text: "More: inquest explain " + e.Entry})
	}
	if e.Note != "" {
		facts = append(facts, item{text: plain(e.Note)})
	}
	return []block{{kind: bullets, items: facts}}
}

func upperFirst(s string) string { return strings.ToUpper(s[:1]) + s[1:] }

// Rows names the rows of tables that a pasted text is about, as commands that print
// them: the code of an Xid or SXid line, an error whose text or name stands in it.
func Rows(c *catalog.Catalog, query string) []string {
	var out []string
	add := func(row string) {
		if row = "inquest explain " + row; !slices.Contains(out, row) && len(out) < shownRows {
			out = append(out, row)
		}
	}
	if len(query) > maxQuery {
		query = query[:maxQuery]
	}
	for _, m := range codeLine.FindAllStringSubmatch(query, shownRows) {
		table := strings.ToLower(m[1])
		n, err := strconv.ParseInt(m[2], 10, 64)
		if t := c.Codes(table); err == nil && t != nil {
			if _, ok := t.Find(n); ok {
				add(fmt.Sprintf("%s %d", table, n))
			}
		}
	}
	t := c.Errors()
	if t == nil {
		return out
	}
	low := strings.ToLower(query)
	for i := range t.Errors {
		e := &t.Errors[i]
		named := strings.Contains(low, strings.ToLower(e.Name)) || e.Driver != "" && strings.Contains(low, strings.ToLower(e.Driver))
		if named || slices.ContainsFunc(e.Texts, func(s string) bool { return len(s) >= leastText && strings.Contains(low, strings.ToLower(s)) }) {
			add(t.Table + " " + strings.Join(strings.Fields(e.Name), " "))
		}
	}
	return out
}

const (
	shownRows = 3
	leastText = 17 // bytes of a printed text that is told from other words
)

var codeLine = regexp.MustCompile(`\b(S?Xid)\b(?: \([^)]{0,64}\))?:? ?0*(\d{1,5})\b`)
