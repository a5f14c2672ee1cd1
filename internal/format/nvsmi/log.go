package nvsmi

import (
	"strings"

	"github.com/inquest-dev/inquest/internal/format/textline"
)

// A logText is nvidia-smi -q, all of it or the parts that -d asks for: a tree by
// indentation, one block for each device.
//
//	==============NVSMI LOG==============
//
//	Timestamp                     : Thu Nov 12 15:13:11 2026
//	Attached GPUs                 : 1
//	GPU 00000000:4F:00.0
//	    FB Memory Usage
//	        Used                  : 20000 MiB
type logText struct {
	tree  tree
	path  []section
	begun bool
}

type section struct {
	indent int
	key    string
}

const maxDepth = 16

func smiLog(_ textline.Line, text string, out Out) Table {
	if strings.HasPrefix(text, "==") && strings.Contains(text, "=NVSMI LOG=") {
		return &logText{tree: newTree(out)}
	}
	return nil
}

func (t *logText) Line(l textline.Line) Class {
	text := strings.TrimSpace(l.Text)
	if text == "" {
		return Blank
	}
	if strings.HasPrefix(text, "==") {
		if t.begun {
			return Foreign
		}
		t.begun = true
		return Header
	}
	indent := len(l.Text) - len(strings.TrimLeft(l.Text, " \t"))
	if bus, ok := strings.CutPrefix(text, "GPU "); ok && indent == 0 && IsBus(bus) {
		t.path = nil
		t.tree.device(bus, l)
		return Header
	}
	for len(t.path) > 0 && t.path[len(t.path)-1].indent >= indent {
		t.path = t.path[:len(t.path)-1]
	}
	key, value, ok := strings.Cut(text, " : ")
	if !ok {
		if key, ok = strings.CutSuffix(text, " :"); !ok && strings.Contains(text, ":") {
			if message(l, text, t.tree.out) {
				return Row
			}
		}
	}
	if !ok && indent == 0 {
		return Foreign // every section belongs to a device
	}
	key = keyOf(key)
	if len(t.path) < maxDepth {
		t.path = append(t.path, section{indent, key})
	}
	if !ok {
		return Header
	}
	names := make([]string, len(t.path))
	for i, s := range t.path {
		names[i] = s.key
	}
	t.tree.field(names, strings.TrimSpace(value), l)
	return Field
}

func (t *logText) End() { t.tree.flush() }

// keyOf writes a key of the text as the XML writes it: lower case, joined by "_".
func keyOf(s string) string {
	s = strings.ToLower(strings.TrimSpace(s))
	return strings.NewReplacer(" ", "_", ".", "_", "-", "_").Replace(s)
}
