package protowire

import (
	"bytes"
	"encoding/hex"
	"errors"
	"math"
	"strings"
	"testing"
)

func unhex(t testing.TB, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.ReplaceAll(s, " ", ""))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestFields reads one field of each sort. The first cases are the examples of the
// encoding's own documentation.
func TestFields(t *testing.T) {
	f := func(in string, tag uint32, check func(m *Message) bool) {
		t.Helper()
		b := unhex(t, in)
		m := Decode(b)
		if !m.Next() || m.Tag != tag || !check(&m) {
			t.Errorf("%s: tag %d, err %v", in, m.Tag, m.Err())
		}
		if !bytes.Equal(m.Raw(), b) || m.Offset() != 0 {
			t.Errorf("%s: raw %x at %d", in, m.Raw(), m.Offset())
		}
		if m.Next() || m.Err() != nil {
			t.Errorf("%s: does not end: %v", in, m.Err())
		}
	}
	f("08 9601", 1<<3|Varint, func(m *Message) bool { return m.Uint() == 150 && m.Int() == 150 && m.Bool() && m.Bytes() == nil })
	f("12 07 74657374696e67", 2<<3|Bytes, func(m *Message) bool { return m.Text() == "testing" && m.Number() == 2 })
	f("08 feffffffffffffffff01", 1<<3|Varint, func(m *Message) bool { return m.Int() == -2 })
	f("08 03", 1<<3|Varint, func(m *Message) bool { return m.Zigzag() == -2 })
	f("09 000000000000f03f", 1<<3|Fixed64, func(m *Message) bool { return m.Double() == 1 })
	f("15 0000c07f", 2<<3|Fixed32, func(m *Message) bool { return math.IsNaN(float64(m.Float())) })
	f("8201 00", 16<<3|Bytes, func(m *Message) bool { return m.Text() == "" && m.Bytes() != nil })
	f("0b 1005 13 2000 14 0c", 1<<3|StartGroup, func(m *Message) bool { return m.Bytes() == nil })
	f("f8ffffff0f 01", 1<<32-8|Varint, func(m *Message) bool { return m.Number() == 1<<29-1 })
}

func TestNested(t *testing.T) {
	in := AppendVarint(nil, 1, 7)
	m := Decode(AppendBytes(AppendBytes(nil, 3, "x"), 4, in))
	for range 2 {
		if !m.Next() {
			t.Fatal(m.Err())
		}
	}
	s := m.Message()
	if !s.Next() || s.Uint() != 7 {
		t.Fatalf("inner field %d = %d", s.Tag, s.Uint())
	}
}

// TestMalformed: what was read before stays, and the error has the place.
func TestMalformed(t *testing.T) {
	f := func(in string, fields int, want error) {
		t.Helper()
		m := Decode(unhex(t, in))
		n := 0
		for m.Next() {
			n++
		}
		if n != fields || !errors.Is(m.Err(), want) {
			t.Errorf("%s: %d fields, %v; want %d, %v", in, n, m.Err(), fields, want)
		}
		if m.Next() {
			t.Errorf("%s: goes on after the error", in)
		}
	}
	f("", 0, nil)
	f("0801 08", 1, ErrCut)
	f("0801 0880", 1, ErrCut)
	f("80", 0, ErrCut)
	f("08 ffffffffffffffffff7f", 0, ErrVarint)
	f("09 00000000000000", 0, ErrCut)
	f("0d 000000", 0, ErrCut)
	f("12 02 41", 0, ErrLength)
	f("12 ffffffffffffffffff01", 0, ErrLength)
	f("00 01", 0, ErrTag)
	f("07", 0, ErrTag)
	f("0c", 0, ErrTag)
	f("8080808010 01", 0, ErrTag)
	f("0b 1005", 0, ErrGroup)
	f("0b 14", 0, ErrGroup)
	f("0b 07", 0, ErrTag)
	f("0b 12 05 41 0c", 0, ErrLength)
	f(strings.Repeat("0b", 40)+strings.Repeat("0c", 40), 0, ErrGroup)
}

func TestAppend(t *testing.T) {
	b := AppendVarint(nil, 2, 3)
	b = AppendDouble(b, 1, 1)
	b = AppendFloat(b, 2, 0.5)
	b = AppendBytes(b, 5, []byte("ab"))
	b = AppendBytes(b, 16, "")
	if want := unhex(t, "1003 09000000000000f03f 150000003f 2a026162 820100"); !bytes.Equal(b, want) {
		t.Errorf("got  %x\nwant %x", b, want)
	}
}

func TestUvarint(t *testing.T) {
	for _, c := range []struct {
		in string
		v  uint64
		n  int
	}{{"05", 5, 1}, {"960108", 150, 2}, {"", 0, 0}, {"80", 0, 0}, {"ffffffffffffffffff7f", 0, 0}} {
		if v, n := Uvarint(unhex(t, c.in)); n != c.n || n > 0 && v != c.v {
			t.Errorf("%s: %d, %d", c.in, v, n)
		}
	}
}

// FuzzMessage holds the walk to its promises on any bytes: the fields are adjacent, lie in
// the message, and together with the rest after an error make it up.
func FuzzMessage(f *testing.F) {
	f.Add(unhex(f, "0900008040fc54d94110022a0d0a0b0a046c6f7373150000c07f"))
	f.Add(unhex(f, "0b1005132000140c"))
	f.Fuzz(func(t *testing.T, b []byte) {
		at := 0
		m := Decode(b)
		for m.Next() {
			if m.Offset() != at || len(m.Raw()) == 0 || len(m.Bytes()) >= len(m.Raw()) {
				t.Fatalf("field at %d, expected %d: %x", m.Offset(), at, m.Raw())
			}
			if !bytes.Equal(m.Raw(), b[at:at+len(m.Raw())]) {
				t.Fatalf("raw is not the bytes at %d", at)
			}
			at += len(m.Raw())
		}
		if m.Err() == nil && at != len(b) {
			t.Fatalf("ends at %d of %d without an error", at, len(b))
		}
	})
}
