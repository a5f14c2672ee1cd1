package kube

import (
	"bytes"
	"context"
	"errors"
	"strings"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"

	"github.com/inquest-dev/inquest/internal/format/jsontree"
)

// Bounds of one YAML object. A pod takes ten to thirty kilobytes.
const (
	maxObject = 256 << 10 // bytes
	maxNested = 48        // brackets, dashes or blanks divided by two
	maxTries  = 5         // at what is left of an object that is cut
	maxBroken = 16        // objects that are not YAML, before the rest is left alone
)

var (
	errYAML     = errors.New("not YAML as kubectl prints it")
	errYAMLCut  = errors.New("the object has no end: what stands before it was read")
	errYAMLMany = errors.New("over limit: too many objects that are not YAML; the rest was not read")
	errYAMLLong = errors.New("over limit: an object longer than 256 KiB or nested too deeply")
)

// objects splits YAML into its objects and calls each with what it is and where
// its text begins: the documents between lines of three dashes, and of a List the
// elements of items. Each is parsed by itself, so that memory does not grow with
// the list and damage to one costs no other. Anchors and aliases are not
// followed: kubectl prints none.
func objects(ctx context.Context, data []byte, each func(n *jsontree.Node), damage func(at int, err error)) {
	broken := 0
	report := func(at int, err error) {
		if broken++; broken <= maxBroken {
			damage(at, err)
		} else if broken == maxBroken+1 {
			damage(at, errYAMLMany)
		}
	}
	split(data, each, report, func() bool { return broken > maxBroken || ctx.Err() != nil })
}

// split calls object for each element of each document until stop says so.
func split(data []byte, each func(n *jsontree.Node), damage func(at int, err error), stop func() bool) {
	at := len(data) - len(bytes.TrimPrefix(data, []byte("\xef\xbb\xbf")))
	for at < len(data) && !stop() {
		if bytes.HasPrefix(data[at:], []byte("---")) {
			i := bytes.IndexByte(data[at:], '\n')
			if i < 0 {
				return
			}
			at += i + 1
			continue
		}
		end := len(data)
		if i := bytes.Index(data[at:], []byte("\n---")); i >= 0 {
			end = at + i + 1
		}
		document(data, at, end, each, damage, stop)
		at = end
	}
}

// document splits data[from:to] at the elements of items.
func document(data []byte, from, to int, each func(n *jsontree.Node), damage func(int, error), stop func() bool) {
	start, dash := from, -1
	in := false
	flush := func(end int) {
		if start < end && len(bytes.TrimSpace(data[start:end])) > 0 && !stop() {
			object(data, start, end, each, damage)
		}
	}
	for at := from; at < to; {
		end := to
		if i := bytes.IndexByte(data[at:to], '\n'); i >= 0 {
			end = at + i + 1
		}
		line := data[at:end]
		trimmed := bytes.TrimLeft(line, " ")
		indent := len(line) - len(trimmed)
		switch {
		case bytes.HasPrefix(line, []byte("items:")) && len(bytes.TrimSpace(line)) == len("items:"):
			flush(at)
			in, dash, start = true, -1, end
		case in && bytes.HasPrefix(trimmed, []byte("- ")) && (dash < 0 || indent == dash):
			if dash >= 0 {
				flush(at)
			}
			dash, start = indent, at
		case in && indent == 0 && len(bytes.TrimSpace(line)) > 0 && trimmed[0] != '-' && trimmed[0] != '#':
			flush(at)
			in, start = false, at
		}
		at = end
	}
	flush(to)
}

// object parses data[from:to]. What is cut inside a scalar does not parse: then
// lines are taken from its end.
func object(data []byte, from, to int, each func(n *jsontree.Node), damage func(int, error)) {
	text := bytes.ReplaceAll(data[from:to], []byte("\r\n"), []byte(" \n")) // as long; the parser counts \r as a line
	if i := bytes.Index(text, []byte("- ")); i >= 0 && len(bytes.TrimLeft(text[:i], " ")) == 0 {
		text[i] = ' ' // an element becomes a mapping
	}
	if len(text) > maxObject || !flat(text) {
		damage(from, errYAMLLong)
		return
	}
	c := converter{data: data, from: from}
	left, tries := len(text), 1
	if to == len(data) { // only what stands last can be cut
		tries = maxTries
	}
	for try := range tries {
		n := c.parse(text[:left])
		if n != nil {
			if try > 0 {
				damage(from+left, errYAMLCut)
			}
			each(n)
			return
		}
		for range 1 << try {
			left = bytes.LastIndexByte(text[:max(left-1, 0)], '\n') + 1
		}
		if left == 0 {
			break
		}
	}
	damage(from, errYAML)
}

// flat reports whether text is not nested beyond what the parser may be given.
func flat(text []byte) bool {
	for len(text) > 0 {
		line := text
		if i := bytes.IndexByte(text, '\n'); i >= 0 {
			line, text = text[:i], text[i+1:]
		} else {
			text = nil
		}
		body := bytes.TrimLeft(line, " -?:\t")
		if len(line)-len(body) > 2*maxNested {
			return false
		}
		if bytes.Count(line, []byte("["))+bytes.Count(line, []byte("{")) > maxNested || bytes.Count(line, []byte("- ")) > 512 {
			return false
		}
	}
	return true
}

// A converter makes nodes with places of a parsed object. The parser counts lines;
// the place of a value is the part of its line from the key on.
type converter struct {
	data  []byte
	from  int
	lines []int // offsets of line starts in data
	nodes int
}

func (c *converter) parse(text []byte) *jsontree.Node {
	f, err := parser.ParseBytes(text, 0)
	if err != nil || len(f.Docs) == 0 || f.Docs[0].Body == nil {
		return nil
	}
	c.lines = c.lines[:0]
	for at := 0; ; {
		c.lines = append(c.lines, c.from+at)
		i := bytes.IndexByte(text[at:], '\n')
		if i < 0 {
			break
		}
		at += i + 1
	}
	n := c.node(f.Docs[0].Body, 0)
	if n == nil || n.Sort != jsontree.Object {
		return nil
	}
	return n
}

// place is the part of line num (1-based) behind its blanks and dashes.
func (c *converter) place(n *jsontree.Node, num int) {
	num = min(max(num, 1), len(c.lines))
	at := c.lines[num-1]
	end := len(c.data)
	if i := bytes.IndexByte(c.data[at:], '\n'); i >= 0 {
		end = at + i
	}
	line := bytes.TrimRight(c.data[at:end], " \r")
	body := bytes.TrimLeft(line, " ")
	for bytes.HasPrefix(body, []byte("- ")) {
		body = bytes.TrimLeft(body[2:], " ")
	}
	n.From = at + len(line) - len(body)
	n.At, n.End = n.From, at+len(line)
}

func (c *converter) node(x ast.Node, depth int) *jsontree.Node {
	if c.nodes++; c.nodes > 1<<17 || depth > maxNested {
		return nil
	}
	n := &jsontree.Node{}
	if t := x.GetToken(); t != nil && t.Position != nil {
		c.place(n, t.Position.Line)
	}
	switch v := x.(type) {
	case *ast.MappingNode:
		n.Sort = jsontree.Object
		for _, m := range v.Values {
			c.pair(n, m, depth)
		}
	case *ast.MappingValueNode:
		n.Sort = jsontree.Object
		c.pair(n, v, depth)
	case *ast.SequenceNode:
		n.Sort = jsontree.Array
		for _, e := range v.Values {
			if y := c.node(e, depth+1); y != nil {
				n.Items = append(n.Items, y)
			}
		}
	case *ast.LiteralNode:
		n.Sort, n.Text = jsontree.String, v.Value.Value
	case *ast.StringNode:
		n.Sort, n.Text = jsontree.String, v.Value
	case *ast.NullNode:
	case *ast.BoolNode:
		n.Sort, n.Text = jsontree.Bool, v.Token.Value
	case *ast.TagNode:
		return c.node(v.Value, depth+1)
	case *ast.IntegerNode:
		n.Sort, n.Text = jsontree.Number, v.Token.Value
	case *ast.FloatNode:
		n.Sort, n.Text = jsontree.Number, v.Token.Value
	}
	return n
}

func (c *converter) pair(into *jsontree.Node, m *ast.MappingValueNode, depth int) {
	if m.Value == nil || m.Key == nil {
		return
	}
	y := c.node(m.Value, depth+1)
	if y == nil {
		return
	}
	key := m.Key.GetToken()
	if key == nil {
		return
	}
	y.Key = strings.TrimSpace(key.Value)
	c.place(y, key.Position.Line)
	into.Items = append(into.Items, y)
}
