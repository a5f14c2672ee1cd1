package sqlitefile

import (
	"bytes"
	"context"
	"fmt"
	"strconv"
	"strings"
)

// A Table is a table of the database.
type Table struct {
	Name    string
	Columns []Column
	Err     error // why it cannot be scanned; wraps ErrUnsupported where SQLite can

	root  uint32
	rowid int // column that is another name of the rowid, -1 for none
}

// A Column is a column of a table, under its name as it was declared.
type Column struct {
	Name string
	Type string // in upper case, "" where none is declared

	missing value // in rows that were written before the column was added
}

// A value is a constant.
type value struct {
	kind Kind
	num  int64
	real float64
	text []byte
}

func (v value) integer() int64 {
	if v.kind == Real {
		return whole(v.real)
	}
	return v.num
}

// NewTable is a table whose rows are made by Row.Begin, with the columns of those names.
func NewTable(name string, columns []string) *Table {
	t := &Table{Name: name, rowid: -1}
	for _, c := range columns {
		t.Columns = append(t.Columns, Column{Name: c})
	}
	return t
}

// Column returns the index of a column by its name in any case, -1 where there is none.
func (t *Table) Column(name string) int {
	if t == nil {
		return -1
	}
	for i := range t.Columns {
		if strings.EqualFold(t.Columns[i].Name, name) {
			return i
		}
	}
	return -1
}

func find(tables []*Table, name string) *Table {
	for _, t := range tables {
		if strings.EqualFold(t.Name, name) {
			return t
		}
	}
	return nil
}

// schema reads the table of tables: type, name, table, root page, SQL.
func (f *File) schema(ctx context.Context) error {
	list := NewTable("sqlite_schema", []string{"type", "name", "tbl_name", "rootpage", "sql"})
	list.root = 1
	more := 0
	err := f.Scan(ctx, list, func(r *Row) error {
		if !bytes.EqualFold(r.Bytes(0), []byte("table")) || r.Int(3) <= 0 || r.Int(3) > int64(f.pages) {
			return nil
		}
		if len(f.tables) >= maxTables {
			more++
			return nil
		}
		t := &Table{Name: r.Text(1), root: uint32(r.Int(3)), rowid: -1}
		t.declare(r.Text(4))
		f.tables = append(f.tables, t)
		return nil
	}, func(d Damage) {
		d.Text = "list of tables: " + d.Text
		f.damage = append(f.damage, d)
	})
	if more > 0 {
		f.damage = append(f.damage, Damage{Page: 1, Text: fmt.Sprintf("over limit: more than %d tables", maxTables)})
	}
	return err
}

// declare reads the columns from the SQL that made the table: the list in parentheses,
// in which each item is a column or, behind one of a few words, a constraint.
func (t *Table) declare(sql string) {
	w := words{rest: sql}
	for w.next() && w.text != "(" {
		if strings.EqualFold(w.text, "virtual") && !w.quoted {
			t.Err = fmt.Errorf("table %s is virtual: %w", t.Name, ErrUnsupported)
			return
		}
	}
	type item struct{ words []word }
	var items []item
	depth := 0
	var cur []word
	for w.next() {
		switch {
		case w.quoted:
		case w.text == "(":
			depth++
		case w.text == ")":
			depth--
		case w.text == "," && depth == 0:
			items, cur = append(items, item{cur}), nil
			continue
		}
		if depth < 0 {
			break
		}
		cur = append(cur, w.word)
		if len(items) > maxColumns {
			break
		}
	}
	if cur != nil {
		items = append(items, item{cur})
	}
	for w.next() {
		if strings.EqualFold(w.text, "without") {
			t.Err = fmt.Errorf("table %s is WITHOUT ROWID: %w", t.Name, ErrUnsupported)
		}
	}
	key := ""
	for _, it := range items {
		first := it.words
		if len(first) == 0 {
			continue
		}
		if !first[0].quoted {
			switch strings.ToUpper(first[0].text) {
			case "CONSTRAINT", "PRIMARY", "UNIQUE", "CHECK", "FOREIGN":
				if k := primary(first); k != "" {
					key = k
				}
				continue
			}
		}
		t.column(first)
	}
	if i := t.Column(key); key != "" && i >= 0 && t.Columns[i].Type == "INTEGER" {
		t.rowid = i
	}
	switch {
	case len(t.Columns) == 0:
		t.Err = fmt.Errorf("no columns in the declaration of table %s: %w", t.Name, ErrUnsupported)
	case len(t.Columns) > maxColumns:
		t.Err = fmt.Errorf("table %s has more than %d columns: %w", t.Name, maxColumns, ErrUnsupported)
	}
}

// primary returns the column of a constraint PRIMARY KEY (column), "" for any other.
func primary(w []word) string {
	for i := range w {
		if w[i].is("primary") && i+4 < len(w) && w[i+1].is("key") && w[i+2].is("(") && w[i+4].is(")") {
			return w[i+3].text
		}
	}
	return ""
}

// column adds a column from its declaration: name, words of the type, constraints.
func (t *Table) column(w []word) {
	c := Column{Name: w[0].text}
	i := 1
	var typ []string
types:
	for ; i < len(w); i++ {
		switch strings.ToUpper(w[i].text) {
		case "CONSTRAINT", "PRIMARY", "NOT", "NULL", "UNIQUE", "CHECK", "DEFAULT", "COLLATE", "REFERENCES", "GENERATED", "AS", "ON", "DEFERRABLE", "INITIALLY":
			if !w[i].quoted {
				break types
			}
		}
		typ = append(typ, strings.ToUpper(w[i].text))
	}
	c.Type = strings.Join(typ, " ")
	depth := 0
	for ; i < len(w); i++ {
		switch {
		case w[i].is("("):
			depth++
		case w[i].is(")"):
			depth--
		case depth > 0:
		case w[i].is("as"):
			t.Err = fmt.Errorf("column %s of table %s is computed: %w", c.Name, t.Name, ErrUnsupported)
		case w[i].is("primary") && c.Type == "INTEGER" && !(i+2 < len(w) && w[i+2].is("desc")):
			t.rowid = len(t.Columns)
		case w[i].is("default") && i+1 < len(w):
			c.missing = constant(w[i+1:], c.Type)
		}
	}
	t.Columns = append(t.Columns, c)
}

// constant reads a default: a number, a text, TRUE or FALSE, also in parentheses. Any other
// counts as NULL: SQLite adds a column to a table with rows only with a constant.
func constant(w []word, typ string) value {
	for len(w) > 1 && w[0].is("(") {
		w = w[1:]
	}
	minus := false
	for len(w) > 1 && !w[0].quoted && (w[0].text == "-" || w[0].text == "+") {
		minus = minus != (w[0].text == "-")
		w = w[1:]
	}
	if len(w) == 0 {
		return value{}
	}
	text := w[0].text
	switch {
	case w[0].is("true"):
		return value{kind: Integer, num: 1}
	case w[0].is("false"):
		return value{kind: Integer}
	case w[0].is("null"):
		return value{}
	}
	numeric := !w[0].quoted || !strings.Contains(typ, "CHAR") && !strings.Contains(typ, "CLOB") && !strings.Contains(typ, "TEXT") && typ != "" && !strings.Contains(typ, "BLOB")
	if minus {
		text = "-" + text
	}
	if n, err := strconv.ParseInt(text, 10, 64); err == nil && numeric {
		return value{kind: Integer, num: n}
	}
	if v, err := strconv.ParseFloat(text, 64); err == nil && numeric {
		return value{kind: Real, real: v}
	}
	if !w[0].quoted {
		return value{}
	}
	return value{kind: Text, text: []byte(text)}
}

// A word of SQL: a name, a number, the inside of quotes, or one other character.
type word struct {
	text   string
	quoted bool
}

// is reports whether the word is that keyword, in lower case.
func (w word) is(keyword string) bool { return !w.quoted && strings.EqualFold(w.text, keyword) }

type words struct {
	word
	rest string
}

// next goes to the next word, over blanks and comments.
func (w *words) next() bool {
	s := w.rest
	for {
		s = strings.TrimLeft(s, " \t\r\n\f")
		if strings.HasPrefix(s, "--") {
			_, s, _ = strings.Cut(s, "\n")
			continue
		}
		if strings.HasPrefix(s, "/*") {
			_, s, _ = strings.Cut(s[2:], "*/")
			continue
		}
		break
	}
	if s == "" {
		w.rest = ""
		return false
	}
	end := byte(0)
	switch s[0] {
	case '"', '`', '\'':
		end = s[0]
	case '[':
		end = ']'
	}
	if end != 0 {
		var b strings.Builder
		i := 1
		for ; i < len(s); i++ {
			if s[i] == end {
				if end != ']' && i+1 < len(s) && s[i+1] == end {
					i++
				} else {
					break
				}
			}
			b.WriteByte(s[i])
		}
		w.word, w.rest = word{b.String(), true}, s[min(i+1, len(s)):]
		return true
	}
	i := 0
	for i < len(s) && (s[i] == '_' || s[i] == '.' || s[i] == '$' || s[i] >= 0x80 || s[i] >= '0' && s[i] <= '9' || s[i]|0x20 >= 'a' && s[i]|0x20 <= 'z') {
		i++
	}
	i = max(i, 1)
	w.word, w.rest = word{s[:i], false}, s[i:]
	return true
}
