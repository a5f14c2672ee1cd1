// Package jsontree reads JSON (RFC 8259) as a tree in which every value knows
// where it stands, so that a statement can be proved by bytes of the document. It
// reads a document that is cut as far as it goes, and hands the elements of a long
// list over one by one.
package jsontree

import (
	"encoding/json"
	"errors"
	"iter"
	"strings"
	"unicode/utf8"
)

// Limits of one value. What goes beyond them ends the reading with ErrLimit.
const (
	maxDepth = 100
	maxNodes = 1 << 20
)

var (
	// ErrCut says that the document ends inside a value.
	ErrCut = errors.New("the document has no end")
	// ErrSyntax says that a byte stands where it cannot.
	ErrSyntax = errors.New("not JSON")
	// ErrLimit says that a value is nested or split beyond the limits.
	ErrLimit = errors.New("over limit: a value of too many parts")
)

// A Sort is the sort of a value.
type Sort uint8

const (
	Null Sort = iota
	Bool
	Number
	String
	Array
	Object
)

// A Node is one value. At and End are its byte range in the document; for the
// value of a key, Key is the name and From the offset of the name's quotation
// mark, else From is At.
type Node struct {
	Sort          Sort
	Key           string
	Text          string // of a string, decoded; of a number, true, false as written
	Items         []*Node
	From, At, End int
}

// Get returns the value that the names lead to, nil if there is none. A nil Node
// has no values.
func (n *Node) Get(names ...string) *Node {
	for _, name := range names {
		if n == nil || n.Sort != Object {
			return nil
		}
		var found *Node
		for _, x := range n.Items {
			if x.Key == name {
				found = x
			}
		}
		n = found
	}
	return n
}

// Str is the text of the value that the names lead to, "" if there is none.
func (n *Node) Str(names ...string) string {
	if x := n.Get(names...); x != nil && x.Sort != Array && x.Sort != Object && x.Sort != Null {
		return x.Text
	}
	return ""
}

// List is the elements of the array that the names lead to.
func (n *Node) List(names ...string) []*Node {
	if x := n.Get(names...); x != nil && x.Sort == Array {
		return x.Items
	}
	return nil
}

// Pairs yields the keys of an object and their values, in order.
func (n *Node) Pairs() iter.Seq2[string, *Node] {
	return func(yield func(string, *Node) bool) {
		if n == nil || n.Sort != Object {
			return
		}
		for _, x := range n.Items {
			if !yield(x.Key, x) {
				return
			}
		}
	}
}

// Parse reads one value of data from at on and returns it with the offset behind
// it. With an error the value holds what stands before it. each, where it is not
// nil, is given the elements of the value if it is an array, and of the arrays
// that are values of its keys if it is an object; what each returns true for is
// not kept.
func Parse(data []byte, at int, each func(key string, n *Node) bool) (*Node, int, error) {
	p := &parser{data: data, at: at, each: each}
	n, err := p.value(0, "")
	return n, p.at, err
}

type parser struct {
	data  []byte
	at    int
	nodes int
	each  func(string, *Node) bool
}

func (p *parser) space() {
	for p.at < len(p.data) {
		switch p.data[p.at] {
		case ' ', '\t', '\r', '\n':
			p.at++
		default:
			return
		}
	}
}

func (p *parser) value(depth int, key string) (*Node, error) {
	p.space()
	n := &Node{From: p.at, At: p.at, End: p.at}
	if p.at >= len(p.data) {
		return n, ErrCut
	}
	if p.nodes++; p.nodes > maxNodes || depth > maxDepth {
		return n, ErrLimit
	}
	var err error
	switch c := p.data[p.at]; {
	case c == '{':
		n.Sort = Object
		err = p.object(n, depth)
	case c == '[':
		n.Sort = Array
		err = p.array(n, depth, key)
	case c == '"':
		n.Sort = String
		n.Text, err = p.text()
	default:
		err = p.word(n)
	}
	n.End = p.at
	return n, err
}

// more goes to the next item of a list or object, past the comma before it where it
// is not the first, and reports false at the end.
func (p *parser) more(end byte, first bool) (bool, error) {
	p.space()
	switch {
	case p.at >= len(p.data):
		return false, ErrCut
	case p.data[p.at] == end:
		p.at++
		return false, nil
	case first:
		return true, nil
	case p.data[p.at] != ',':
		return false, ErrSyntax
	}
	p.at++
	return true, nil
}

func (p *parser) object(n *Node, depth int) error {
	p.at++
	for first := true; ; first = false {
		if more, err := p.more('}', first); !more {
			return err
		}
		p.space()
		if p.at >= len(p.data) {
			return ErrCut
		}
		if p.data[p.at] != '"' {
			return ErrSyntax
		}
		from := p.at
		key, err := p.text()
		if err != nil {
			return err
		}
		p.space()
		if p.at >= len(p.data) {
			return ErrCut
		}
		if p.data[p.at] != ':' {
			return ErrSyntax
		}
		p.at++
		x, err := p.value(depth+1, key)
		x.Key, x.From = key, from
		if err == nil || x.Sort == Object || x.Sort == Array { // half a text or number says something else
			n.Items = append(n.Items, x)
		}
		if err != nil {
			return err
		}
	}
}

func (p *parser) array(n *Node, depth int, key string) error {
	p.at++
	streams := p.each != nil && depth <= 1
	for first := true; ; first = false {
		if more, err := p.more(']', first); !more {
			return err
		}
		had := p.nodes
		x, err := p.value(depth+1, "")
		if err == nil || x.Sort == Object || x.Sort == Array {
			if streams && p.each(key, x) {
				p.nodes = had
			} else {
				n.Items = append(n.Items, x)
			}
		}
		if err != nil {
			return err
		}
	}
}

// text reads a string. What is not valid UTF-8 becomes U+FFFD.
func (p *parser) text() (string, error) {
	start := p.at
	plain := true
	for p.at++; p.at < len(p.data); p.at++ {
		switch c := p.data[p.at]; {
		case c == '\\':
			plain = false
			p.at++
		case c == '"':
			p.at++
			raw := p.data[start:p.at]
			if plain && utf8.Valid(raw) {
				return string(raw[1 : len(raw)-1]), nil
			}
			var s string
			if json.Unmarshal(raw, &s) != nil {
				return strings.ToValidUTF8(string(raw[1:len(raw)-1]), "\uFFFD"), nil
			}
			return s, nil
		}
	}
	p.at = len(p.data)
	return "", ErrCut
}

// word reads a number, true, false or null. NaN, Infinity and -Infinity, which Python's json
// writes, are numbers.
func (p *parser) word(n *Node) error {
	start := p.at
	for p.at < len(p.data) && strings.IndexByte("+-.0123456789abcdefghijklmnopqrstuvwxyzEIN", p.data[p.at]) >= 0 && p.at-start < 64 {
		p.at++
	}
	n.Text = string(p.data[start:p.at])
	switch {
	case n.Text == "true" || n.Text == "false":
		n.Sort = Bool
	case n.Text == "null":
		n.Sort, n.Text = Null, ""
	case n.Text == "NaN" || n.Text == "Infinity" || n.Text == "-Infinity":
		n.Sort = Number
	case n.Text != "" && strings.IndexByte("-0123456789", n.Text[0]) >= 0 && strings.Trim(n.Text, "+-.0123456789eE") == "":
		n.Sort = Number
		if p.at == len(p.data) { // a longer number may have stood here
			return ErrCut
		}
	case p.at == len(p.data):
		return ErrCut
	default:
		p.at = start
		return ErrSyntax
	}
	return nil
}
