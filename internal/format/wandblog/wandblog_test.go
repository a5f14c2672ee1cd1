package wandblog

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"github.com/inquest-dev/inquest/internal/format/protowire"
)

func TestNumber(t *testing.T) {
	for _, c := range []struct {
		in string
		v  float64
		ok bool
	}{
		{"0", 0, true}, {"-0", math.Copysign(0, -1), true}, {"0.0", 0, true}, {"1", 1, true}, {"-1.5", -1.5, true}, {"1e3", 1000, true}, {"1E+3", 1000, true}, {"25e-1", 2.5, true},
		{"NaN", math.NaN(), true}, {"Infinity", math.Inf(1), true}, {"-Infinity", math.Inf(-1), true}, {"1e999", math.Inf(1), true}, {"-1e999", math.Inf(-1), true}, {"1e-999", 0, true},
		{"18446744073709551615", 18446744073709551615, true}, {"123456789012345678901234567890", 1.2345678901234568e29, true}, {"9007199254740993", 9007199254740992, true},
		{"0.1234567890123456789012345", 0.12345678901234568, true}, {"4.9e-324", 5e-324, true}, {"1.7976931348623157e308", math.MaxFloat64, true},
		{"", 0, false}, {"-", 0, false}, {".5", 0, false}, {"1e", 0, false}, {"1e+", 0, false}, {"0x10", 0, false}, {"1_0", 0, false}, {"nan", 0, false}, {"inf", 0, false}, {"true", 0, false},
		{`"1"`, 0, false}, {"null", 0, false}, {"1 2", 0, false}, {"[1]", 0, false}, {"1,", 0, false},
	} {
		v, ok := Number([]byte(c.in))
		if ok != c.ok || ok && math.Float64bits(v) != math.Float64bits(c.v) && !(math.IsNaN(v) && math.IsNaN(c.v)) {
			t.Errorf("%q: %v %v, want %v %v", c.in, v, ok, c.v, c.ok)
		}
	}
}

// TestNumberRounds sets numbers of every length and size against strconv.
func TestNumberRounds(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 300000 {
		var in string
		switch r.IntN(4) {
		case 0:
			in = strconv.FormatFloat(math.Float64frombits(r.Uint64()), "gef"[r.IntN(3)], -1, 64)
		case 1:
			in = strconv.FormatFloat(r.NormFloat64(), 'g', 1+r.IntN(19), 64)
		case 2: // between two neighbours, or near
			a := r.Float64()
			in = strconv.FormatFloat(a, 'f', 16+r.IntN(4), 64)
		default:
			in = strconv.FormatUint(r.Uint64()>>r.IntN(64), 10)
			if i := r.IntN(len(in)); i > 0 {
				in = in[:i] + "." + in[i:]
			}
			if r.IntN(3) == 0 {
				in += "e" + strconv.Itoa(r.IntN(50)-25)
			}
		}
		want, err := strconv.ParseFloat(in, 64)
		if err != nil || math.IsNaN(want) || math.IsInf(want, 0) {
			continue
		}
		if got, ok := number([]byte(in)); !ok || got != want {
			t.Fatalf("%s: %v %v, want %v", in, got, ok, want)
		}
	}
}

// TestEditObject: numbers are counted as Rows counts them, and what is taken out goes with its
// comma.
func TestEditObject(t *testing.T) {
	for _, c := range []struct{ in, drop, want string }{ // drop: the numbers taken out, - for one that becomes 7
		{`{"a": 1}`, "0", `{}`},
		{`{"a": 1, "b": 2}`, "0", `{"b": 2}`},
		{`{"a": 1, "b": 2}`, "1", `{"a": 1}`},
		{`{"a": 1, "b": 2}`, "01", `{}`},
		{`{"a":1,"b":2,"c":3}`, "1", `{"a":1,"c":3}`},
		{`{"a":1,"b":2,"c":3}`, "02", `{"b":2}`},
		{` { "a" : 1 , "s" : "NaN, }" , "b" : NaN } `, "1", `{ "a" : 1 , "s" : "NaN, }" }`},
		{`{"a":{"x":NaN,"y":[NaN,1]},"b":Infinity}`, "0", `{"a":{"y":[NaN,1]},"b":Infinity}`},
		{`{"a":{"x":NaN},"b":Infinity}`, "01", `{"a":{}}`},
		{`{"h":{"_type":"histogram","n":1},"b":2}`, "0", `{"h":{"_type":"histogram","n":1}}`},
		{`{"a":1,"b":2}`, "-", `{"a":7,"b":2}`},
		{`[1, 2]`, "0", `[1, 2]`},
		{`{"a":1`, "", `{"a":1`},
	} {
		got := EditObject(nil, []byte(c.in), func(n int, _ float64) (bool, []byte) {
			if c.drop == "-" && n == 0 {
				return false, []byte("7")
			}
			return strings.Contains(c.drop, strconv.Itoa(n)), nil
		})
		if string(got) != c.want {
			t.Errorf("%s without %s is %s, want %s", c.in, c.drop, got, c.want)
		}
	}
}

func flat(key, value string) []byte { return AppendItem(nil, 1, key, value) }

func nested(value string, keys ...string) []byte {
	var b []byte
	for _, k := range keys {
		b = protowire.AppendBytes(b, 2, k)
	}
	return protowire.AppendBytes(nil, 1, protowire.AppendBytes(b, 16, value))
}

// shown writes the values of a row.
func shown(r *Row) string {
	var parts []string
	for _, v := range r.Values {
		parts = append(parts, fmt.Sprintf("%s[%d]=%v", v.Name, v.Step, v.V))
	}
	return strings.Join(parts, " ") + fmt.Sprintf(" at %v, %d others", r.Wall, r.Other)
}

func TestRows(t *testing.T) {
	r := NewRows()
	r.Start = 1000
	step := protowire.AppendBytes(nil, 2, protowire.AppendVarint(nil, 1, 9))
	late := append(protowire.AppendBytes(nil, 16, "5"), protowire.AppendBytes(nil, 1, "late")...) // the value before the key
	for _, c := range []struct {
		what string
		body [][]byte
		want string
	}{
		{"a step of its own", [][]byte{flat("loss", "0.5"), flat("_step", "3"), flat("_timestamp", "1700000000.5"), step}, "loss[3]=0.5 at 1.7000000005e+09, 0 others"},
		{"the record's step", [][]byte{flat("loss", "NaN"), step}, "loss[9]=NaN at 0, 0 others"},
		{"step 0 is not written", [][]byte{flat("loss", "1"), protowire.AppendBytes(nil, 2, "")}, "loss[0]=1 at 0, 0 others"},
		{"no step", [][]byte{flat("loss", "1")}, "loss[-1]=1 at 0, 0 others"},
		{"the time from the start on", [][]byte{flat("loss", "1"), flat("_runtime", "2.5"), step}, "loss[9]=1 at 1002.5, 0 others"},
		{"no time", [][]byte{flat("loss", "1"), flat("_timestamp", "Infinity"), flat("_step", "-4")}, "loss[-1]=1 at 0, 0 others"},
		{"nested", [][]byte{nested("1", "eval", "acc"), nested("2", "eval", "f.1"), flat("o", `{"a": {"b": 3, "c": "4"}, "d\"": -Infinity}`), step}, `eval.acc[9]=1 eval.f.1[9]=2 o.a.b[9]=3 o.d"[9]=-Inf at 0, 0 others`},
		{"a type behind its numbers", [][]byte{nested("5", "img", "size"), nested(`"image-file"`, "img", "_type"), flat("loss", "1"), step}, "loss[9]=1 at 0, 2 others"},
		{"no numbers", [][]byte{flat("s", `"NaN"`), flat("b", "true"), flat("n", "null"), flat("l", "[1]"), flat("_wandb", `{"runtime":1}`), nested("1", "_wandb", "x"), flat("e", ""), step}, " at 0, 6 others"},
		{"the value first", [][]byte{protowire.AppendBytes(nil, 1, late), step}, "late[9]=5 at 0, 0 others"},
		{"space", [][]byte{flat("loss", " 2 "), step}, "loss[9]=2 at 0, 0 others"},
	} {
		row, err := r.History(bytes.Join(c.body, nil))
		if err != nil {
			t.Errorf("%s: %v", c.what, err)
		} else if got := shown(row); got != c.want {
			t.Errorf("%s: %s, want %s", c.what, got, c.want)
		}
	}
	if _, err := r.History([]byte{0x0a, 5, 1}); err == nil {
		t.Error("a row that is cut is read")
	}
}

func TestDefine(t *testing.T) {
	define := func(r *Rows, field int, name, step string) {
		m := protowire.AppendBytes(nil, field, name)
		if step != "" {
			m = protowire.AppendBytes(m, 4, step)
		}
		if _, _, err := r.Define(m); err != nil {
			t.Fatal(err)
		}
	}
	r := NewRows()
	row := func(items ...string) string {
		var body []byte
		for _, i := range items {
			k, v, _ := strings.Cut(i, " ")
			body = append(body, flat(k, v)...)
		}
		got, err := r.History(body)
		if err != nil {
			t.Fatal(err)
		}
		return shown(got)
	}
	for _, c := range []struct{ got, want string }{
		{row("train/loss 1", "_step 4", "train/global_step 40"), "train/loss[4]=1 train/global_step[4]=40 at 0, 0 others"},
		{func() string {
			define(r, 2, "train/*", "train/global_step")
			define(r, 1, "train/epoch", "epoch")
			return ""
		}(), ""},
		{row("train/loss 1", "_step 5", "train/global_step 50"), "train/loss[50]=1 train/global_step[50]=50 at 0, 0 others"},
		{row("train/lr 1", "_step 6"), "train/lr[6]=1 at 0, 0 others"}, // the row does not have it
		{row("val/loss 1", "_step 7", "train/global_step 70"), "val/loss[7]=1 train/global_step[70]=70 at 0, 0 others"},
		{row("train/loss 1", "_step 8", "train/global_step 8.5"), "train/loss[8]=1 train/global_step[8]=8.5 at 0, 0 others"},
		{func() string { define(r, 1, "val/loss", "train/global_step"); return "" }(), ""},
		{row("val/loss 1", "_step 9", "train/global_step 90"), "val/loss[90]=1 train/global_step[90]=90 at 0, 0 others"},
	} {
		if c.got != c.want {
			t.Errorf("got %s, want %s", c.got, c.want)
		}
	}
	if r.StepNamed("train/x") != "train/global_step" || r.StepNamed("other") != "" || r.StepOf(flat("train/x", "1")) != "train/global_step" {
		t.Error("the axis of a name is not found")
	}
}

// FuzzRows: whatever the record, it is read or refused, twice the same, and an object is edited
// number by number as Rows counts them.
func FuzzRows(f *testing.F) {
	f.Add(bytes.Join([][]byte{flat("loss", "0.5"), nested("1", "a", "b"), flat("o", `{"a": {"b": 3}, "d": -Infinity}`)}, nil))
	f.Add([]byte(`{"a": {"x": NaN, "y": [1, {"z": 2}]}, "b": "s\"", "_step": 3}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		a, errA := NewRows().History(data)
		b, errB := NewRows().History(data)
		if (errA == nil) != (errB == nil) || errA == nil && shown(a) != shown(b) {
			t.Fatal("two readings differ")
		}
		NewRows().Stats(data)
		if rec, err := Decode(data); err == nil && rec.Kind != 0 {
			if again, err := Decode(rec.Replace(nil, data, []byte("x"))); err != nil || again.Kind != rec.Kind || string(again.Body) != "x" {
				t.Fatalf("replaced: %+v, %v", again, err)
			}
		}
		row, ok := NewRows().Object(data, false)
		if !ok {
			return
		}
		nan := 0
		for _, v := range row.Values {
			if v.V != v.V {
				nan++
			}
		}
		clean := EditObject(nil, data, func(_ int, v float64) (bool, []byte) { return v != v, nil })
		row, ok = NewRows().Object(clean, false)
		if !ok {
			t.Fatalf("%q is no object any more: %q", data, clean)
		}
		for _, v := range row.Values {
			if v.V != v.V && nan > 0 {
				t.Fatalf("%q keeps NaN: %q", data, clean)
			}
		}
	})
}
