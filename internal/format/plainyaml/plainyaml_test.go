package plainyaml

import (
	"fmt"
	"strings"
	"testing"
)

// flat writes the items one a line: line, name and value.
func flat(items []Item) string {
	var b strings.Builder
	for _, i := range items {
		fmt.Fprintf(&b, "%d %s = %q\n", i.Line, i.Name(), i.Value)
	}
	return b.String()
}

func TestParse(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"scalars", "a: 1\nb: x y # note\n'c d': \"e\\u00e9\\n\"\nf: 'it''s'\ng:\nh: null\n", `1 a = "1"
2 b = "x y"
3 c d = "eé\n"
4 f = "it's"
5 g = ""
6 h = "null"
`},
		{"nested", "# c\n---\nlr:\n  desc: null\n  sort: 77\n  value: 0.001\nm:\n  value:\n    hidden: 64\n    deep:\n      x: 1\nz: 2\n", `4 lr.desc = "null"
5 lr.sort = "77"
6 lr.value = "0.001"
9 m.value.hidden = "64"
11 m.value.deep.x = "1"
12 z = "2"
`},
		{"lists", "betas:\n- 0.9\n- 0.999\nopts:\n  - name: a\n    v: 1\n  - name: b\nempty: []\nflow: {a: 1, b: [2, \"}\"]}\nlong: [1,\n  2]\nlast: 3\n", `2 betas = "[0.9, 0.999]"
5 opts.0.name = "a"
6 opts.0.v = "1"
7 opts.1.name = "b"
8 empty = "[]"
9 flow = "{a: 1, b: [2, \"}\"]}"
10 long = "[1, 2]"
12 last = "3"
`},
		{"several lines", "a: one\n  two\nb: \"three\n  four\"\nc: |\n  five\n  # six\nd: >-\n  seven\n  eight\ne: 9\n", `1 a = "one two"
3 b = "three four"
5 c = "five\n# six"
8 d = "seven eight"
11 e = "9"
`},
		{"tags", "a: !!python/tuple\n- 1\n- 2\nb: !!int 3\nc: &id001\n  d: 4\ne: *id001\n", `2 a = "[1, 2]"
4 b = "3"
5 c = "&id001"
6 c.d = "4"
7 e = "*id001"
`},
		{"windows", "\ufeffa: 1\r\nb:\r\n  c: 2\r\n\r\n", `1 a = "1"
3 b.c = "2"
`},
		{"urls", "u: http://x:1/y\nv: a:b\n", `1 u = "http://x:1/y"
2 v = "a:b"
`},
		{"empty", "", ""},
		{"nested lists", "a:\n- - 1\n  - 2\n- - 3\n", `2 a.0 = "[1, 2]"
4 a.1 = "[3]"
`},
	} {
		items, passed := Parse([]byte(c.text))
		if got := flat(items); got != c.want || passed > 0 {
			t.Errorf("%s: %d lines passed over, got\n%swant\n%s", c.name, passed, got, c.want)
		}
		for _, i := range items {
			if i.Offset+i.Length > len(c.text) || i.Line != strings.Count(c.text[:i.Offset], "\n")+1 {
				t.Errorf("%s: %s is said to stand at %d+%d on line %d", c.name, i.Name(), i.Offset, i.Length, i.Line)
			}
		}
	}
	if items, passed := Parse([]byte("not yaml at all\n\x00\x01\n")); len(items) != 0 || passed != 2 {
		t.Errorf("words: %v, %d passed over", items, passed)
	}
	items, _ := Parse([]byte("a:\n  b: 1\n"))
	if i := Get(items, "a", "b"); i == nil || i.Value != "1" || Get(items, "a") != nil {
		t.Errorf("Get: %v", i)
	}
	deep := strings.Repeat("- ", 100000) + "1"
	if items, passed := Parse([]byte(deep)); len(items) > 1 || passed == 0 {
		t.Errorf("deep nesting: %d items, %d passed over", len(items), passed)
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte("a: 1\nb:\n  - c: [1, 2\n  - \"d\n"))
	f.Add([]byte("a: |\n x\n  y\nb: >\n"))
	f.Add([]byte("- - a: b\n  -\n  : \n? x\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		items, _ := Parse(data)
		for _, i := range items {
			if i.Offset < 0 || i.Length < 0 || i.Offset+i.Length > len(data) || i.Line < 1 {
				t.Fatalf("item %+v of %d bytes", i, len(data))
			}
		}
	})
}
