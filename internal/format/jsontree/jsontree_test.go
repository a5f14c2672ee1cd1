package jsontree

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
)

func TestParse(t *testing.T) {
	text := ` {"a": [1, {"b": "x\u00e9\"y"}], "c": null, "d": true, "e": -1.5e3}  tail`
	n, end, err := Parse([]byte(text), 0, nil)
	if err != nil || text[end:] != "  tail" {
		t.Fatalf("end %q, %v", text[end:], err)
	}
	if got := n.List("a")[1].Str("b"); got != `xé"y` {
		t.Errorf("b is %q", got)
	}
	if n.Str("c") != "" || n.Get("c").Sort != Null || n.Str("d") != "true" || n.Str("e") != "-1.5e3" || n.Get("a", "b") != nil || n.Str("no", "such") != "" {
		t.Errorf("got %+v", n)
	}
	if d := n.Get("d"); text[d.From:d.End] != `"d": true` || text[d.At:d.End] != "true" {
		t.Errorf("d stands at %q", text[d.From:d.End])
	}
}

func TestNotFinite(t *testing.T) {
	n, _, err := Parse([]byte(`{"a":NaN,"b":[-Infinity,Infinity],"c":"NaN"}`), 0, nil)
	if err != nil || n.Str("a") != "NaN" || n.Get("a").Sort != Number || n.List("b")[0].Text != "-Infinity" || n.Get("c").Sort != String {
		t.Errorf("got %+v, %v", n, err)
	}
	if _, _, err := Parse([]byte(`{"a":Nan}`), 0, nil); !errors.Is(err, ErrSyntax) {
		t.Errorf("Nan: %v", err)
	}
}

// TestCut: every prefix gives what stands whole before its end.
func TestCut(t *testing.T) {
	text := `{"items":[{"k":"one"},{"k":"two","n":12}]}`
	for i := range text {
		n, _, err := Parse([]byte(text[:i]), 0, nil)
		if err == nil {
			t.Errorf("%q: no error", text[:i])
		}
		if i > strings.Index(text, "},") && n.List("items")[0].Str("k") != "one" {
			t.Errorf("%q: the first item is lost", text[:i])
		}
		if i < len(text)-3 && len(n.List("items")) > 1 && n.List("items")[1].Str("n") != "" {
			t.Errorf("%q: half a number", text[:i])
		}
	}
}

func TestEach(t *testing.T) {
	for text, want := range map[string]string{
		`{"kind":"List","items":[{"a":1},{"a":2}],"x":{"items":[3]}}`: "items a=1 items a=2 ",
		`[{"a":1},{"a":2}]`:     " a=1  a=2 ",
		`{"items":[{"a":1},{"a`: "items a=1 items a= ",
	} {
		got := ""
		n, _, _ := Parse([]byte(text), 0, func(key string, n *Node) bool {
			got += key + " a=" + n.Str("a") + " "
			return true
		})
		if got != want || len(n.List("items")) > 0 {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
}

func TestLimits(t *testing.T) {
	if _, _, err := Parse([]byte(strings.Repeat("[", 1000)), 0, nil); !errors.Is(err, ErrLimit) {
		t.Errorf("deep: %v", err)
	}
	if _, _, err := Parse([]byte("["+strings.Repeat("1,", maxNodes+10)), 0, nil); !errors.Is(err, ErrLimit) {
		t.Errorf("long: %v", err)
	}
	if _, _, err := Parse([]byte(`{"a" 1}`), 0, nil); !errors.Is(err, ErrSyntax) {
		t.Errorf("syntax: %v", err)
	}
}

func TestLines(t *testing.T) {
	for _, n := range []int{0, 1, 7, block - 1, block, block + 1, 3*block + 5} {
		data := []byte(strings.Repeat("abc\n\n", n/5+1))[:n]
		l := NewLines(data)
		for off := 0; off <= n; off += 1 + n/97 {
			if got, want := l.At(off), strings.Count(string(data[:off]), "\n")+1; got != want {
				t.Fatalf("%d bytes: offset %d is on line %d, want %d", n, off, got, want)
			}
		}
		if got, want := l.At(n), strings.Count(string(data), "\n")+1; got != want {
			t.Fatalf("%d bytes: the end is on line %d, want %d", n, got, want)
		}
	}
}

// FuzzParse: what encoding/json takes is taken, with the same strings, and every
// value lies inside its parent.
func FuzzParse(f *testing.F) {
	for _, s := range []string{`{"a":[1,2,{"b":"c"}]}`, `[]`, `"\ud800"`, `{"a":1,"a":2}`, `{`, `[1,`, "\"\xff\""} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		n, _, err := Parse([]byte(text), 0, nil)
		if json.Valid([]byte(text)) && err != nil && !errors.Is(err, ErrLimit) && !errors.Is(err, ErrCut) {
			t.Fatalf("%q: %v", text, err)
		}
		var s string
		if json.Unmarshal([]byte(text), &s) == nil && n.Sort == String && n.Text != s {
			t.Fatalf("%q: %q, want %q", text, n.Text, s)
		}
		inside(t, n, len(text))
	})
}

func inside(t *testing.T, n *Node, end int) {
	if n.From < 0 || n.From > n.At || n.At > n.End || n.End > end {
		t.Fatalf("%+v does not lie before %d", n, end)
	}
	for _, x := range n.Items {
		if x.From < n.At {
			t.Fatalf("%+v begins before its parent", x)
		}
		inside(t, x, n.End)
	}
}
