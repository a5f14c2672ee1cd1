package tfevent

import (
	"bytes"
	"encoding/hex"
	"math"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/inquest-dev/inquest/internal/format/protowire"
	"github.com/inquest-dev/inquest/internal/format/tfrecord"
)

func unhex(t testing.TB, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(s)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// Records that TensorBoard's loaders accept.
const (
	version   = "1800000000000000a37f4b220900000040fc54d9411a0d627261696e2e4576656e743a32eced8f9d"
	lossNaN   = "1a00000000000000129bd82d0900008040fc54d94110022a0d0a0b0a046c6f7373150000c07fe61ffe9d"
	lossInf   = "1a00000000000000129bd82d090000c040fc54d94110032a0d0a0b0a046c6f7373150000807f0bec573e"
	doubleNaN = "34000000000000005e33175c090000c040fc54d94110032a270a250a046c6f73734a0d0a090a077363616c6172732001420e080212002208000000000000f87fa089e207"
	noteX     = "36000000000000004f578cef0900008040fc54d94110022a290a270a0c696e71756573742f6e6f74654a0a0a060a04746578742002420b0807120412020801420178ff3ee33c"
	marker    = "2c00000000000000f4aecc450900008040fc54d94110022a1f0a1d0a16696e71756573742f6661696c65645f7365676d656e74150000803ffdf10fdb"
	start2    = "0f000000000000006d532b09090000c058fc54d94110023a0208011b5796d8"
)

// data is what a record holds.
func data(t testing.TB, record string) []byte {
	t.Helper()
	b, err := tfrecord.NewReader(bytes.NewReader(unhex(t, record))).Next()
	if err != nil {
		t.Fatal(err)
	}
	return bytes.Clone(b)
}

func TestGolden(t *testing.T) {
	var e Event
	var v Value
	decode := func(record string, wall float64, step int64) {
		t.Helper()
		if err := e.Decode(data(t, record)); err != nil || e.Wall != wall || e.Step != step {
			t.Fatalf("%v: wall %v step %d", err, e.Wall, e.Step)
		}
		vs := e.Values()
		if vs.Next(&v) != (e.Summary != nil) || vs.Err() != nil {
			t.Fatal(vs.Err())
		}
	}
	decode(version, 1.7e9, 0)
	if string(e.Version) != "brain.Event:2" {
		t.Errorf("version %q", e.Version)
	}
	decode(lossNaN, 1.7e9+2, 2)
	if x, ok := v.Scalar(""); !ok || !math.IsNaN(x) || string(v.Tag) != "loss" {
		t.Errorf("%s = %v", v.Tag, x)
	}
	decode(lossInf, 1.7e9+3, 3)
	if x, ok := v.Scalar("whatever"); !ok || !math.IsInf(x, 1) {
		t.Errorf("%s = %v", v.Tag, x)
	}
	decode(doubleNaN, 1.7e9+3, 3)
	if x, ok := v.Scalar(Scalars); !ok || !math.IsNaN(x) || v.Tensor.Type != Float64 || v.Nonfinite() != 1 {
		t.Errorf("%s = %v %v", v.Tag, x, ok)
	}
	if name, _ := Plugin(v.Metadata); name != Scalars {
		t.Errorf("plugin %q", name)
	}
	if _, ok := v.Scalar(Text); ok {
		t.Error("a scalar of the text plugin")
	}
	decode(noteX, 1.7e9+2, 2)
	if s := v.Tensor.Strings(); len(s) != 1 || string(s[0]) != "x" {
		t.Errorf("text %q", s)
	}
	decode(start2, 1700000099, 2)
	if SessionStatus(e.Session) != SessionStart {
		t.Errorf("session %x", e.Session)
	}
	for _, c := range []struct {
		want string
		got  []byte
	}{
		{version, VersionEvent(1.7e9)},
		{marker, ScalarEvent(1.7e9+2, 2, "inquest/failed_segment", 1)},
		{noteX, TextEvent(1.7e9+2, 2, "inquest/note", "x")},
	} {
		if got := tfrecord.Append(nil, c.got); !bytes.Equal(got, unhex(t, c.want)) {
			t.Errorf("wrote %x\nwant  %s", got, c.want)
		}
	}
}

func packed(field int, b ...byte) []byte { return protowire.AppendBytes(nil, field, b) }

// TestScalars reads one element of every type, in each encoding.
func TestScalars(t *testing.T) {
	f := func(name string, dtype DType, fields []byte, want float64, ok bool) {
		t.Helper()
		var x Tensor
		if err := x.decode(append(protowire.AppendVarint(nil, 1, uint64(dtype)), fields...)); err != nil {
			t.Fatal(err)
		}
		got, is := x.Scalar()
		if is != ok || got != want && !(math.IsNaN(got) && math.IsNaN(want)) {
			t.Errorf("%s: %v %v, want %v %v", name, got, is, want, ok)
		}
		if ok && (x.Nonfinite() == 1) != (want-want != 0) {
			t.Errorf("%s: %d elements are not finite", name, x.Nonfinite())
		}
	}
	nan, inf := math.NaN(), math.Inf(1)
	one := packed(2, 0x12, 2, 8, 1)
	f("float", Float32, packed(5, 0, 0, 0xc0, 0x3f), 1.5, true)
	f("float, unpacked", Float32, protowire.AppendFloat(nil, 5, 1.5), 1.5, true)
	f("float, unpacked twice", Float32, protowire.AppendFloat(protowire.AppendFloat(nil, 5, 1.5), 5, 2), 1.5, true)
	f("float, content", Float32, packed(4, 0, 0, 0x80, 0xff), -inf, true)
	f("float of one dimension", Float32, append(one, packed(5, 0, 0, 0xc0, 0x7f)...), nan, true)
	f("nothing written is zero", Float32, one, 0, true)
	f("content of another size", Float64, packed(4, 0, 0, 0xc0, 0x7f), 0, false)
	f("double", Float64, packed(6, 0, 0, 0, 0, 0, 0, 0xf0, 0x7f), inf, true)
	f("double, unpacked", Float64, protowire.AppendDouble(nil, 6, -2), -2, true)
	f("half", Half, packed(13, 0x80, 0x7c), 1.5, true)
	f("half, unpacked", Half, protowire.AppendVarint(nil, 13, 0xfc00), -inf, true)
	f("half, content", Half, packed(4, 0x01, 0x00), math.Ldexp(1, -24), true)
	f("half, content NaN", Half, packed(4, 0x00, 0x7e), nan, true)
	f("bfloat16", BFloat16, packed(13, 0xc0, 0x7f), 1.5, true)
	f("bfloat16, content", BFloat16, packed(4, 0x80, 0xff), -inf, true)
	f("float8_e5m2 largest", Float8E5M2, packed(18, 0x7b), 57344, true)
	f("float8_e5m2 inf", Float8E5M2, packed(18, 0x7c), inf, true)
	f("float8_e5m2 NaN", Float8E5M2, packed(4, 0x7d), nan, true)
	f("float8_e4m3fn largest", Float8E4M3FN, packed(18, 0x7e), 448, true)
	f("float8_e4m3fn smallest", Float8E4M3FN, packed(18, 0x01), math.Ldexp(1, -9), true)
	f("float8_e4m3fn NaN", Float8E4M3FN, packed(18, 0xff), nan, true)
	f("float8_e4m3fnuz largest", Float8E4M3FNUZ, packed(18, 0x7f), 240, true)
	f("float8_e4m3fnuz NaN", Float8E4M3FNUZ, packed(18, 0x80), nan, true)
	f("float8_e4m3b11fnuz largest", Float8E4M3B11Fnz, packed(18, 0x7f), 30, true)
	f("float8_e5m2fnuz largest", Float8E5M2FNUZ, packed(18, 0x7f), 57344, true)
	f("float8_e5m2fnuz NaN", Float8E5M2FNUZ, packed(18, 0x80), nan, true)
	f("int64", Int64, protowire.AppendVarint(nil, 10, 1<<64-5), -5, true)
	f("int64, packed", Int64, packed(10, 0x96, 1), 150, true)
	f("int32, content", Int32, packed(4, 0xff, 0xff, 0xff, 0xff), -1, true)
	f("int16, content", Int16, packed(4, 0xfe, 0xff), -2, true)
	f("int8, content", Int8, packed(4, 0xfd), -3, true)
	f("int8", Int8, protowire.AppendVarint(nil, 7, 1<<64-3), -3, true)
	f("uint8, content", Uint8, packed(4, 0xfd), 253, true)
	f("uint16, content", Uint16, packed(4, 0xff, 0xff), 65535, true)
	f("uint32", Uint32, packed(16, 0xff, 0xff, 0xff, 0xff, 0x0f), 1<<32-1, true)
	f("uint64, content", Uint64, packed(4, 0, 0, 0, 0, 0, 0, 0, 0x80), 1<<63, true)
	f("bool", Bool, packed(11, 1), 1, true)
	f("string", String, packed(8, 'x'), 0, false)
	f("unknown type", 99, packed(4, 0, 0, 0xc0, 0x7f), 0, false)
	f("complex", 8, packed(9, 0, 0, 0xc0, 0x7f, 0, 0, 0, 0), 0, false)
	f("two elements", Float32, append(packed(2, 0x12, 2, 8, 2), packed(5, 0, 0, 0xc0, 0x7f)...), 0, false)
	f("no element", Float32, packed(2, 0x12, 0), 0, false)
	f("unknown rank", Float32, append(packed(2, 0x18, 1), packed(5, 0, 0, 0xc0, 0x7f)...), 0, false)
	f("negative size", Float32, append(packed(2, append([]byte{0x12, 11, 8}, bytes.Repeat([]byte{0xff}, 9)...)...)[:0], packed(2, 0x12, 0x0b, 8, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1)...), 0, false)
}

// TestNonfinite: the last of too few elements stands for the rest.
func TestNonfinite(t *testing.T) {
	tensor := func(size byte, last ...byte) *Value {
		v := &Value{Form: Tensored}
		b := append([]byte{8, 1}, packed(2, 0x12, 2, 8, size)...)
		if err := v.Tensor.decode(append(b, packed(5, last...)...)); err != nil {
			t.Fatal(err)
		}
		return v
	}
	for _, c := range []struct {
		v    *Value
		want int64
	}{
		{tensor(3, 0, 0, 0x80, 0x3f, 0, 0, 0xc0, 0x7f, 0, 0, 0x80, 0x3f), 1},
		{tensor(3, 0, 0, 0xc0, 0x7f), 3},
		{tensor(3, 0, 0, 0x80, 0x3f), 0},
		{&Value{Form: Histogram, Histo: protowire.AppendDouble(protowire.AppendDouble(nil, 1, math.NaN()), 2, math.Inf(1))}, 2},
		{&Value{Form: Histogram, Histo: append(protowire.AppendDouble(nil, 1, 1), packed(6, 0, 0, 0, 0, 0, 0, 0xf0, 0x7f)...)}, 0},
		{&Value{Form: Simple, Simple: float32(math.NaN())}, 0},
	} {
		if got := c.v.Nonfinite(); got != c.want {
			t.Errorf("got %d, want %d", got, c.want)
		}
	}
}

// TestRewrite takes one of three values out of an event and puts a number and metadata
// into another.
func TestRewrite(t *testing.T) {
	value := func(tag string, v float32) []byte {
		return protowire.AppendFloat(protowire.AppendBytes(nil, 1, tag), 2, v)
	}
	summary := protowire.AppendBytes(nil, 1, value("a", 1))
	summary = protowire.AppendBytes(summary, 1, value("b", float32(math.NaN())))
	summary = protowire.AppendVarint(summary, 77, 5) // unknown
	summary = protowire.AppendBytes(summary, 1, append(value("c", 3), protowire.AppendVarint(nil, 99, 1)...))
	event := protowire.AppendVarint(protowire.AppendDouble(nil, 1, 2), 2, 9)
	event = protowire.AppendBytes(protowire.AppendBytes(event, 5, summary), 10, "source")

	same, left := Rewrite(nil, event, func(dst []byte, v *Value) []byte { return append(dst, v.Raw...) })
	if !bytes.Equal(same, event) || left != 3 {
		t.Errorf("%d values\ngot  %x\nwant %x", left, same, event)
	}
	x := 7.5
	got, left := Rewrite(nil, event, func(dst []byte, v *Value) []byte {
		switch string(v.Tag) {
		case "b":
			return dst
		case "c":
			return v.Append(dst, Edit{Number: &x, Metadata: []byte("\x0a\x00")})
		}
		return append(dst, v.Raw...)
	})
	summary = protowire.AppendBytes(nil, 1, value("a", 1))
	summary = protowire.AppendVarint(summary, 77, 5)
	summary = protowire.AppendBytes(summary, 1, append(append(value("c", 7.5), protowire.AppendVarint(nil, 99, 1)...), packed(9, 0x0a, 0)...))
	want := protowire.AppendVarint(protowire.AppendDouble(nil, 1, 2), 2, 9)
	want = protowire.AppendBytes(protowire.AppendBytes(want, 5, summary), 10, "source")
	if !bytes.Equal(got, want) || left != 2 {
		t.Errorf("%d values\ngot  %x\nwant %x", left, got, want)
	}
	if out, left := Rewrite(nil, append([]byte{0x2a, 4, 0x0a, 2, 0x0a, 9}, 0x10, 1), func(dst []byte, v *Value) []byte { return append(dst, v.Raw...) }); left != 0 || !bytes.Equal(out, []byte{0x2a, 0, 0x10, 1}) {
		t.Errorf("of a value that is not well formed %x is left", out)
	}
}

// TestHeld: a number takes the place of one of a small type.
func TestHeld(t *testing.T) {
	for _, c := range []struct{ from, to DType }{{Float32, Float32}, {Float64, Float64}, {BFloat16, Float32}, {Half, Float32}} {
		tensor := append(protowire.AppendVarint(nil, 1, uint64(c.from)), packed(2, 0x12, 2, 8, 1)...)
		tensor = append(tensor, packed(13, 0xc0, 0xff, 1)...)
		raw := protowire.AppendBytes(nil, 1, protowire.AppendBytes(protowire.AppendBytes(nil, 1, "x"), 8, tensor))
		event := protowire.AppendBytes(nil, 5, raw)
		x := 0.1
		out, _ := Rewrite(nil, event, func(dst []byte, v *Value) []byte { return v.Append(dst, Edit{Number: &x}) })
		var e Event
		var v Value
		if err := e.Decode(out); err != nil {
			t.Fatal(err)
		}
		vs := e.Values()
		if !vs.Next(&v) || v.Tensor.Type != c.to || v.Tensor.Rank != 1 {
			t.Fatalf("type %d: %+v", c.from, v.Tensor)
		}
		if got, ok := v.Tensor.Scalar(); !ok || math.Abs(got-x) > 1e-8 {
			t.Errorf("type %d: %v", c.from, got)
		}
	}
}

func TestName(t *testing.T) {
	for in, want := range map[string]string{
		"train/loss": "train/loss", "Verlust/größte": "Verlust/größte", "": "", "a\x00b\nc": "ab c",
	} {
		if got := Name([]byte(in)); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
	if got := Name([]byte("\x1b[31m\xff")); strings.Contains(got, "\x1b") || !utf8.ValidString(got) {
		t.Errorf("%q", got)
	}
	if got := Name(bytes.Repeat([]byte("x"), 5000)); len(got) > MaxName+4 {
		t.Errorf("%d bytes", len(got))
	}
}

func TestParseName(t *testing.T) {
	for name, want := range map[string]FileName{
		"events.out.tfevents.1700000000.node7.4242.0":           {1700000000, "node7", "4242"},
		"runs/a.b/events.out.tfevents.1700000000.n7.lab.4242.3": {1700000000, "n7.lab", "4242"},
		"events.out.tfevents.1664082589.host.4004.1.v2":         {1664082589, "host", "4004"},
		"events.out.tfevents.1541809092.host":                   {1541809092, "host", ""},
		"events.out.tfevents.1541809092.10.0.0.7":               {1541809092, "10.0.0.7", ""},
		"events.out.tfevents.1541809092.10.0.0.7.99.0":          {1541809092, "10.0.0.7", "99"},
		"events.out.tfevents.0000000012.host.1.0":               {12, "host", "1"},
		"events.out.tfevents.1700000000.host.7.0.profile-empty": {1700000000, "host", "7"},
		"tfevents":                    {},
		"my-tfevents.copy":            {},
		"events.out.tfevents.yes.h":   {},
		"events.out.tfevents.1.a\x1b": {1, "a", ""},
	} {
		if got, ok := ParseName(name); got != want || !ok {
			t.Errorf("%q: %+v %v", name, got, ok)
		}
	}
	if _, ok := ParseName("tfevents/loss.csv"); ok {
		t.Error("the folder's name counts")
	}
}

func TestSession(t *testing.T) {
	// As torch's add_hparams writes it.
	content := unhex(t, "1a2b"+"22060a026c721203"+"0a") // cut
	var s Session
	if s.Decode(content) == nil {
		t.Error("no error")
	}
	end := SessionEndEvent(5, StatusFailure)
	var e Event
	var v Value
	if err := e.Decode(end); err != nil {
		t.Fatal(err)
	}
	vs := e.Values()
	vs.Next(&v)
	plugin, c := Plugin(v.Metadata)
	if err := s.Decode(c); err != nil || plugin != HParams || !s.HasEnd || s.HasStart || s.Status != StatusFailure || s.End != 5 || string(v.Tag) != SessionEndTag {
		t.Errorf("%v %q %+v", err, plugin, s)
	}
	entry := func(name string, value []byte) []byte {
		return protowire.AppendBytes(nil, 1, protowire.AppendBytes(protowire.AppendBytes(nil, 1, name), 2, value))
	}
	in := entry("lr", protowire.AppendDouble(nil, 2, 0.1))
	in = append(in, entry("opt", protowire.AppendBytes(nil, 3, "adam\x1b"))...)
	in = append(in, entry("amp", protowire.AppendVarint(nil, 4, 1))...)
	in = append(in, entry("none", protowire.AppendVarint(nil, 1, 0))...)
	in = protowire.AppendDouble(in, 5, 17)
	if err := s.Decode(protowire.AppendBytes(nil, 3, in)); err != nil || !s.HasStart || s.Start != 17 || len(s.Params) != 4 {
		t.Fatalf("%v %+v", err, s)
	}
	for i, want := range []Param{{"lr", "0.1"}, {"opt", "adam"}, {"amp", "true"}, {"none", "null"}} {
		if s.Params[i] != want {
			t.Errorf("%+v, want %+v", s.Params[i], want)
		}
	}
}

func TestTags(t *testing.T) {
	var tags Tags[int]
	for i := range 3 {
		for j, name := range []string{"a", "b", "c"} {
			n := tags.Find([]byte(name))
			if n.Name != name || i > 0 && n.Of != j+1 {
				t.Fatalf("round %d: %+v for %s", i, n, name)
			}
			n.Of = j + 1
			n.Learn(nil)
			n.Learn(unhex(t, "0a060a0474657874")) // text
			n.Learn(unhex(t, "0a030a0178"))       // too late
			if n.Plugin != Text {
				t.Fatalf("plugin %q", n.Plugin)
			}
		}
	}
	for i := range maxTags + 10 {
		tags.Find([]byte{byte(i), byte(i >> 8), byte(i >> 16), 'x'})
	}
	if len(tags.byName) != maxTags {
		t.Errorf("%d tags are remembered", len(tags.byName))
	}
	if n := tags.Find([]byte("late")); n.Name != "late" || n.Of != 0 {
		t.Errorf("%+v", n)
	}
}

// FuzzEvent decodes any bytes: nothing panics, the short way agrees with the general one, and
// a rewriting that changes nothing gives the same bytes.
func FuzzEvent(f *testing.F) {
	for _, r := range []string{version, lossNaN, lossInf, doubleNaN, noteX, marker, start2} {
		f.Add(data(f, r))
	}
	f.Add(unhex(f, "0900008040fc54d94110022a1a0a180a046c6f7373420c080112002a04000040404a021200"))
	f.Fuzz(func(t *testing.T, b []byte) {
		var p Plain
		var e Event
		var v Value
		err := e.Decode(b)
		n := 0
		vs := e.Values()
		for err == nil && vs.Next(&v) {
			n++
			plugin, content := Plugin(v.Metadata)
			var s Session
			_ = s.Decode(content)
			v.Scalar(plugin)
			v.Nonfinite()
			v.Tensor.Strings()
			Name(v.Tag)
		}
		SessionStatus(e.Session)
		if p.Decode(b) {
			x, ok := v.Scalar("")
			if err != nil || vs.Err() != nil || n != 1 || !ok || math.Float32bits(float32(x)) != math.Float32bits(p.Value) && !(x != x && p.Value != p.Value) ||
				math.Float64bits(e.Wall) != math.Float64bits(p.Wall) || e.Step != p.Step || !bytes.Equal(v.Tag, p.Tag) || !bytes.Equal(v.Metadata, p.Metadata) || p.Tensor != (v.Form == Tensored) {
				t.Fatalf("%v %v: %d values, %v %v\n%+v\n%+v\n%+v", err, vs.Err(), n, x, ok, p, e, v)
			}
		}
		if err == nil && vs.Err() == nil {
			out, left := Rewrite(nil, b, func(dst []byte, v *Value) []byte { return v.Append(dst, Edit{}) })
			again, same := Rewrite(nil, out, func(dst []byte, v *Value) []byte { return append(dst, v.Raw...) })
			if left != n || same != n || !bytes.Equal(out, again) {
				t.Fatalf("%d values, %d and %d written", n, left, same)
			}
		}
	})
}
