package pickle

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"
)

// show writes a value as Python would; shared values are written again.
func show(v *Value, depth int) string {
	if v == nil {
		return "nil"
	}
	if depth > 20 {
		return "..."
	}
	list := func(open, end string) string {
		var parts []string
		for _, x := range v.Items {
			parts = append(parts, show(x, depth+1))
		}
		return open + strings.Join(parts, ", ") + end
	}
	switch v.Kind {
	case KindNone:
		return "None"
	case KindBool:
		return map[int64]string{0: "False", 1: "True"}[v.Int]
	case KindInt:
		return fmt.Sprint(v.Int)
	case KindBig:
		return v.Text
	case KindFloat:
		return fmt.Sprint(v.Float())
	case KindString:
		return fmt.Sprintf("%q", v.Text)
	case KindBytes:
		return fmt.Sprintf("b%q", v.Text)
	case KindList:
		return list("[", "]")
	case KindTuple:
		return list("(", ")")
	case KindSet:
		return list("set(", ")")
	case KindDict:
		var parts []string
		for i := 0; i < len(v.Items); i += 2 {
			parts = append(parts, show(v.Items[i], depth+1)+": "+show(v.Items[i+1], depth+1))
		}
		return "{" + strings.Join(parts, ", ") + "}"
	case KindGlobal:
		return "<" + v.Text + ">"
	case KindCall:
		return list("call(", ")")
	case KindState:
		return list("state(", ")")
	case KindPersID:
		return list("persistent(", ")")
	}
	return "<buffer>"
}

const plainShown = `{"none": None, "true": True, "false": False, "ints": [0, 1, 255, 256, 65535, 65536, -1, -2147483648, 2147483648, 9223372036854775807, -9223372036854775808], ` +
	`"big": [9223372036854775808, -9223372036854775809, 10000000000000000000000000000000000000000], "floats": [0, -1.5, 1e+300, +Inf], ` +
	`"text": ["", "plain", "häß 你好", "line\nend \\u0041", "%s"], "tuples": [(), (1), (1, 2), (1, 2, 3), (1, 2, 3, 4)], ` +
	`"nested": {"a": {"b": {"c": [[[]]]}}}, "shared": [{"name": "step", "line": 7}, {"name": "step", "line": 7}]}`

func TestReadData(t *testing.T) {
	want := map[string]string{
		"plain":  fmt.Sprintf(plainShown, strings.Repeat("x", 300)),
		"binary": `{"bytes": [b"", b"\x00\xff", b"` + strings.Repeat("y", 300) + `"]}`,
		"sets":   `{"set": set(5), "frozen": set(6)}`,
		"array":  `{"array": b"abc"}`,
	}
	files, _ := filepath.Glob("testdata/*.pkl")
	n := 0
	for _, name := range files {
		kind, _, _ := strings.Cut(filepath.Base(name), ".")
		if kind == "objects" {
			continue
		}
		n++
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		// One byte at a time: arguments cross every boundary of the window.
		v, err := Read(iotest.OneByteReader(bytes.NewReader(data)), Options{})
		if err != nil {
			t.Errorf("%s: %v", name, err)
		} else if got := show(v, 0); got != want[kind] {
			t.Errorf("%s:\n got %s\nwant %s", name, got, want[kind])
		}
	}
	if n != 12 {
		t.Errorf("%d files were read, want 12", n)
	}
}

func TestSharing(t *testing.T) {
	data, err := os.ReadFile("testdata/plain.2.pkl")
	if err != nil {
		t.Fatal(err)
	}
	v, err := Read(bytes.NewReader(data), Options{})
	if err != nil {
		t.Fatal(err)
	}
	if l := v.Get("shared").Items; l[0] != l[1] {
		t.Error("an object that the pickle shares became two")
	}
}

func TestObjects(t *testing.T) {
	for p := range 6 {
		data, err := os.ReadFile(fmt.Sprintf("testdata/objects.%d.pkl", p))
		if err != nil {
			t.Fatal(err)
		}
		_, err = Read(bytes.NewReader(data), Options{})
		var e *Error
		if !errors.As(err, &e) || !e.Op.Acts() || data[e.Offset] != byte(e.Op) {
			t.Errorf("protocol %d as data: %v, want a refusal that names opcode and offset", p, err)
		}
		v, err := Read(bytes.NewReader(data), Options{Mode: Inert})
		if err != nil {
			t.Errorf("protocol %d, inert: %v", p, err)
			continue
		}
		got := show(v, 0)
		for _, want := range []string{"<thing Thing>", `state({"field": 3})`, "<collections OrderedDict>"} {
			if !strings.Contains(got, want) {
				t.Errorf("protocol %d, inert: %s has no %s", p, got, want)
			}
		}
	}
}

// TestPrefixes reads every prefix of every file: an error with its place, and never more than
// the whole.
func TestPrefixes(t *testing.T) {
	files, _ := filepath.Glob("testdata/*.pkl")
	for _, name := range files {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for cut := range data {
			_, err := Read(bytes.NewReader(data[:cut]), Options{Mode: Inert})
			var e *Error
			if !errors.As(err, &e) || !errors.Is(err, io.ErrUnexpectedEOF) || e.Offset < 0 || e.Offset > int64(cut) {
				t.Fatalf("%s cut at %d: %v", name, cut, err)
			}
		}
	}
}

func TestSalvage(t *testing.T) {
	// {"a": [1, 2, {"b": 3, and the rest is gone
	v, err := Read(strings.NewReader("\x80\x02}(X\x01\x00\x00\x00a](K\x01K\x02}(X\x01\x00\x00\x00bK\x03X\x01\x00\x00"), Options{})
	if err == nil {
		t.Fatal("no error")
	}
	if got, want := show(v, 0), `{"a": [1, 2, {"b": 3}]}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestErrors(t *testing.T) {
	for in, want := range map[string]string{
		"":                                     "offset 0: no STOP",
		".":                                    "STOP at offset 0: 0 values",
		"K\x01K\x02.":                          "STOP at offset 4: 2 values",
		"\x80\x06.":                            "PROTO at offset 0: protocol 6 is unknown",
		"\xffN.":                               "offset 0: no opcode",
		"h\x05.":                               "BINGET at offset 0: memo 5 is empty",
		"a.":                                   "APPEND at offset 0: the stack is empty",
		"e.":                                   "APPENDS at offset 0: no MARK",
		"}(K\x01u.":                            "SETITEMS at offset 4: a key without a value",
		"K\x01(K\x02e.":                        "APPENDS at offset 5: the value below is no such container",
		"(K\x01](a":                            "APPEND at offset 5: the stack is empty", // a mark lies between
		"\x8d\xff\xff\xff\xff\xff\xff\xff\x7f": "over the limit",
		"B\xff\xff\xff\x0fabc":                 "fewer are left",
		"Iseven\n.":                            "INT at offset 0: no integer",
		"S'open\n.":                            "STRING at offset 0: no quoted string",
		"cos\nsystem\n(S'ls'\ntR.":             "GLOBAL at offset 0: would import",
		strings.Repeat("(", 1001) + "N":        "nested deeper",
		"\x97.":                                "NEXT_BUFFER at offset 0: would import, call or ask",
	} {
		_, err := Read(strings.NewReader(in), Options{})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", in[:min(len(in), 20)], err, want)
		}
	}
}

// TestListBuilders reads lists as PyTorch's C++ writer puts them down.
func TestListBuilders(t *testing.T) {
	for in, want := range map[string]string{
		"\x80\x02ctorch.jit._pickle\nbuild_intlist\nq\x00(](K\x01K\x02etR.":                         "[1, 2]",
		"\x80\x02ctorch.jit._pickle\nbuild_doublelist\n](K\x01e\x85R.":                              "[1]",
		"\x80\x02](ctorch.jit._pickle\nbuild_boollist\nq\x00(](\x88etRh\x00(]tRe.":                  "[[True], []]",
		"\x80\x02ctorch.jit._pickle\nbuild_tensorlist\n(](K\x01etR.":                                "GLOBAL at offset 2: would import",
		"\x80\x02ctorch.jit._pickle\nbuild_intlist\n(]]tR.":                                         "REDUCE at offset 39: would import",
		"\x80\x02ctorch.jit._pickle\nbuild_intlist\n]R.":                                            "REDUCE at offset 36: would import",
		"\x80\x02](K\x01eK\x02\x85R.":                                                               "REDUCE at offset 10: would import",
		"\x80\x04\x8c\x11torch.jit._pickle\x8c\x0dbuild_intlist\x93(](K\x01etR.":                    "STACK_GLOBAL at offset 36: would import",
		"\x80\x02ctorch.jit._pickle\nbuild_intlist\n(](K\x01et\x81.":                                "NEWOBJ at offset 42: would import",
		"\x80\x02ctorch.jit._pickle\nbuild_intlist\n}b.":                                            "BUILD at offset 36: would import",
		"\x80\x02](ctorch.jit._pickle\nbuild_intlist\nq\x00ctorch.jit._pickle\nrestore_type_tag\n.": "GLOBAL at offset 39: would import",
	} {
		v, err := Read(strings.NewReader(in), Options{})
		got := show(v, 0)
		if err != nil {
			got = err.Error()
		}
		if !strings.Contains(got, want) {
			t.Errorf("%q: %s, want %s", in, got, want)
		}
	}
}

func TestLimits(t *testing.T) {
	bomb := "\x80\x02]q\x00(" + strings.Repeat("h\x00", 1000) + "e."
	if _, err := Read(strings.NewReader(bomb), Options{Nodes: 100}); err == nil {
		t.Error("1000 references with a limit of 100 values were read")
	}
	many := "](" + strings.Repeat("K\x01", 200) + "e."
	if _, err := Read(strings.NewReader(many), Options{Nodes: 100}); err == nil {
		t.Error("200 values with a limit of 100 were read")
	}
	text := "](" + strings.Repeat("U\x09ninebytes", 20) + "e."
	if _, err := Read(strings.NewReader(text), Options{Bytes: 100}); err == nil {
		t.Error("180 bytes of text with a limit of 100 were read")
	}
	self := "]q\x00h\x00a."
	if v, err := Read(strings.NewReader(self), Options{}); err != nil || v.Items[0] != v {
		t.Errorf("a list that contains itself: %v", err)
	}
}

func TestLong(t *testing.T) {
	for in, want := range map[string]int64{"": 0, "\x00": 0, "\xff": -1, "\xff\x00": 255, "\x00\x80": -32768, "\xff\xff\xff\xff\xff\xff\xff\x7f": math.MaxInt64, "\x00\x00\x00\x00\x00\x00\x00\x80": math.MinInt64} {
		if got, big := long([]byte(in)); got != want || big {
			t.Errorf("long(%q) = %d, %v, want %d", in, got, big, want)
		}
	}
}

func FuzzRead(f *testing.F) {
	files, _ := filepath.Glob("testdata/*.pkl")
	for _, name := range files {
		if data, err := os.ReadFile(name); err == nil {
			f.Add(data)
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, m := range []Mode{Data, Inert} {
			v, err := Read(bytes.NewReader(data), Options{Mode: m, Nodes: 10_000, Bytes: 1 << 20})
			var e *Error
			if err != nil && (!errors.As(err, &e) || e.Offset < 0 || e.Offset > int64(len(data))) {
				t.Fatalf("error without a place: %v", err)
			}
			if err == nil && v == nil {
				t.Fatal("neither value nor error")
			}
		}
	})
}
