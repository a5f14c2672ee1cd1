// Package plainyaml reads the YAML that programs write of a configuration (PyYAML's dump,
// ruamel's, OmegaConf's) as the flat list of its scalars, each with its keys and its place.
//
// It is no reader of YAML at large. It knows block mappings and sequences, plain, quoted and
// block scalars, comments and document marks. A flow collection ({a: 1}, [1, 2]) is the text of one
// value. Tags are left out; anchors and aliases are text, so that no document becomes
// larger than it is. Nothing is an error: a line that fits nowhere is passed over and counted.
package plainyaml

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
)

// Bounds of one document. Lines beyond them are passed over and counted.
const (
	maxDepth = 64
	maxItems = 1 << 16
)

// An Item is one scalar, or a sequence of scalars as [a, b].
type Item struct {
	Path   []string // keys from the outermost on; elements of a sequence of mappings by their index
	Value  string   // decoded; "" for a key without a value
	Line   int      // from 1, on which key or sequence begins
	Offset int      // of that line's first byte that is not blank
	Length int      // up to the end of that line
}

// Name is the path with dots between its keys.
func (i *Item) Name() string { return strings.Join(i.Path, ".") }

// Parse returns the scalars of data in the order in which their values end, and how many
// lines fit nowhere.
func Parse(data []byte) (items []Item, passed int) {
	p := parser{rest: bytes.TrimPrefix(data, []byte("\ufeff"))}
	p.off = len(data) - len(p.rest)
	for p.next() {
		if !p.line() {
			p.passed++
		}
	}
	p.pop(0)
	return p.items, p.passed
}

type parser struct {
	rest []byte
	off  int // of rest

	n      int    // line number
	at     int    // offset of the first byte of text
	indent int    // of the present line
	text   string // without indent and line end

	stack  []frame
	items  []Item
	passed int
	plain  bool // the last item is a plain scalar that may go on
}

// A frame is an open key or sequence.
type frame struct {
	indent int
	name   string // of a key
	seq    bool
	index  int      // of the present element, from 0
	values []string // scalar elements
	open   bool     // a key that has no value yet
	item   Item     // place
}

// next goes to the next line that is not blank.
func (p *parser) next() bool {
	for len(p.rest) > 0 {
		line, rest, _ := bytes.Cut(p.rest, []byte("\n"))
		start := p.off
		p.off += len(p.rest) - len(rest)
		p.rest = rest
		p.n++
		trimmed := strings.TrimLeft(string(line), " ")
		p.indent = len(line) - len(trimmed)
		p.at = start + p.indent
		p.text = strings.TrimRight(trimmed, " \t\r")
		switch {
		case p.text == "" || p.text[0] == '#':
		case p.indent == 0 && (p.text == "---" || p.text == "..." || p.text[0] == '%'):
		case p.indent == 0 && strings.HasPrefix(p.text, "--- "):
			p.text = strings.TrimLeft(p.text[4:], " ")
			return true
		default:
			return true
		}
	}
	return false
}

func isElement(text string) bool { return text == "-" || strings.HasPrefix(text, "- ") }

// line takes the present line. It reports false where the line fits nowhere.
func (p *parser) line() bool {
	place := Item{Line: p.n, Offset: p.at, Length: len(p.text)}
	element := isElement(p.text)
	if _, _, key := cutKey(p.text); !element && !key && p.goesOn() {
		return true
	}
	p.plain = false
	p.close(p.indent, element)
	for element {
		if len(p.stack) >= maxDepth {
			return false
		}
		if n := len(p.stack); n == 0 || !p.stack[n-1].seq || p.stack[n-1].indent != p.indent {
			if n > 0 {
				p.stack[n-1].open = false
			}
			p.stack = append(p.stack, frame{indent: p.indent, seq: true, index: -1, item: place})
		}
		p.stack[len(p.stack)-1].index++
		inner := strings.TrimLeft(p.text[1:], " ")
		p.indent += len(p.text) - len(inner)
		p.text = inner
		element = isElement(inner)
	}
	if p.text == "" {
		return true // what follows is the element
	}
	name, value, ok := cutKey(p.text)
	if !ok {
		n := len(p.stack) - 1
		if n < 0 || !p.stack[n].seq {
			return false
		}
		v, _ := p.scalar(p.text)
		p.stack[n].values = append(p.stack[n].values, v)
		return true
	}
	if len(p.stack) >= maxDepth {
		return false
	}
	if n := len(p.stack); n > 0 {
		p.stack[n-1].open = false
	}
	f := frame{indent: p.indent, name: name, item: place}
	if value = untagged(value); value == "" {
		f.open = true
		p.stack = append(p.stack, f)
		return true
	}
	p.stack = append(p.stack, f)
	v, plain := p.scalar(value)
	p.emit(place, v)
	p.plain = plain
	return true
}

// goesOn appends the present line to a plain scalar that began on a line before.
func (p *parser) goesOn() bool {
	n := len(p.stack)
	if !p.plain || n == 0 || p.indent <= p.stack[n-1].indent || len(p.items) == 0 || len(p.items[len(p.items)-1].Value) > maxFolded {
		return false
	}
	p.items[len(p.items)-1].Value += " " + p.text
	return true
}

// close ends the frames that a line at an indent does not belong to.
func (p *parser) close(indent int, element bool) {
	for n := len(p.stack); n > 0; n = len(p.stack) {
		f := &p.stack[n-1]
		if f.indent < indent || f.indent == indent && element && (f.seq || f.open) {
			return
		}
		p.pop(n - 1)
	}
}

// pop ends frames until n are left.
func (p *parser) pop(n int) {
	for len(p.stack) > n {
		f := p.stack[len(p.stack)-1]
		switch {
		case f.seq && len(f.values) > 0:
			p.stack = p.stack[:len(p.stack)-1]
			p.emit(f.item, "["+strings.Join(f.values, ", ")+"]")
			continue
		case f.open:
			p.emit(f.item, "")
		}
		p.stack = p.stack[:len(p.stack)-1]
	}
}

// emit adds an item at the keys that are open.
func (p *parser) emit(place Item, value string) {
	if len(p.items) >= maxItems {
		p.passed++
		return
	}
	place.Value = value
	for i := range p.stack {
		f := &p.stack[i]
		switch {
		case !f.seq:
			place.Path = append(place.Path, f.name)
		case i < len(p.stack)-1 || len(f.values) == 0:
			place.Path = append(place.Path, strconv.Itoa(max(f.index, 0)))
		}
	}
	p.items = append(p.items, place)
}

// cutKey splits a line at its key.
func cutKey(text string) (key, value string, ok bool) {
	if text == "" {
		return "", "", false
	}
	if q := text[0]; q == '"' || q == '\'' {
		end := closing(text, q)
		if end < 0 {
			return "", "", false
		}
		after := strings.TrimLeft(text[end+1:], " ")
		if after == ":" || strings.HasPrefix(after, ": ") {
			return unquote(text[:end+1]), strings.TrimLeft(after[1:], " "), true
		}
		return "", "", false
	}
	if strings.IndexByte("[{|>#", text[0]) >= 0 {
		return "", "", false
	}
	if i := strings.Index(text, ": "); i >= 0 {
		return text[:i], strings.TrimLeft(text[i+2:], " "), true
	}
	if k, found := strings.CutSuffix(text, ":"); found {
		return k, "", true
	}
	return "", "", false
}

// untagged drops a tag before a value, and a comment that is all of it.
func untagged(value string) string {
	for strings.HasPrefix(value, "!") {
		_, rest, _ := strings.Cut(value, " ")
		value = strings.TrimLeft(rest, " ")
	}
	if strings.HasPrefix(value, "#") {
		return ""
	}
	return value
}

// scalar decodes a value that begins on the present line, and takes further lines where it
// does not end there. plain says that it may go on on the next one.
func (p *parser) scalar(text string) (value string, plain bool) {
	switch text[0] {
	case '"', '\'':
		return p.quoted(text), false
	case '|', '>':
		return p.block(text), false
	case '[', '{':
		return p.flow(text), false
	}
	if i := strings.Index(text, " #"); i >= 0 {
		return strings.TrimRight(text[:i], " "), false
	}
	return text, true
}

// closing is the index of the quote that ends text, -1 where it does not end.
func closing(text string, q byte) int {
	for i := 1; i < len(text); i++ {
		switch {
		case q == '"' && text[i] == '\\':
			i++
		case text[i] != q:
		case q == '\'' && i+1 < len(text) && text[i+1] == '\'':
			i++
		default:
			return i
		}
	}
	return -1
}

// quoted takes lines until the quote ends.
func (p *parser) quoted(text string) string {
	q := text[0]
	for {
		if end := closing(text, q); end >= 0 {
			return unquote(text[:end+1])
		}
		if len(text) > maxFolded || !p.next() {
			return text[1:]
		}
		if strings.HasSuffix(text, `\`) && q == '"' {
			text = strings.TrimSuffix(text, `\`) + strings.TrimPrefix(p.text, `\`)
			continue
		}
		text += " " + p.text
	}
}

// maxFolded bounds a value of several lines.
const maxFolded = 16 << 10

func unquote(text string) string {
	inner := text[1 : len(text)-1]
	if text[0] == '\'' {
		return strings.ReplaceAll(inner, "''", "'")
	}
	var s string
	if json.Unmarshal([]byte(text), &s) == nil {
		return s
	}
	if u, err := strconv.Unquote(text); err == nil {
		return u
	}
	return inner
}

// block takes the lines of a literal or folded scalar: those that stand deeper than its
// key.
func (p *parser) block(mark string) string {
	under := -1
	if n := len(p.stack); n > 0 {
		under = p.stack[n-1].indent
	}
	var lines []string
	size := 0
	for len(p.rest) > 0 {
		line, _, _ := bytes.Cut(p.rest, []byte("\n"))
		trimmed := bytes.TrimLeft(line, " ")
		if len(bytes.TrimSpace(line)) > 0 && len(line)-len(trimmed) <= under {
			break
		}
		p.off += min(len(line)+1, len(p.rest))
		p.rest = p.rest[min(len(line)+1, len(p.rest)):]
		p.n++
		if size += len(trimmed) + 1; size <= maxFolded {
			lines = append(lines, strings.TrimRight(string(trimmed), "\r"))
		}
	}
	by := "\n"
	if mark[0] == '>' {
		by = " "
	}
	return strings.TrimRight(strings.Join(lines, by), " \n")
}

// flow takes lines until the brackets of a flow collection are closed.
func (p *parser) flow(text string) string {
	var open []byte
	for done := 0; ; {
		for i := done; i < len(text); i++ {
			switch c := text[i]; c {
			case '"', '\'':
				end := closing(text[i:], c)
				if end < 0 {
					i = len(text)
					continue
				}
				i += end
			case '[', '{':
				open = append(open, c)
			case ']', '}':
				if len(open) > 0 {
					open = open[:len(open)-1]
				}
				if len(open) == 0 {
					return text[:i+1]
				}
			}
		}
		done = len(text)
		if len(text) > maxFolded || len(open) > maxFolded || !p.next() {
			return text
		}
		text += " " + p.text
	}
}

// Get returns the item of a path, nil where there is none.
func Get(items []Item, path ...string) *Item {
	for i := range items {
		if slices.Equal(items[i].Path, path) {
			return &items[i]
		}
	}
	return nil
}
