package pickle

import (
	"bytes"
	"encoding/binary"
	"io"
	"testing"
)

// events is a pickle of n dicts of the sort that recorders write: keys from the
// memo, small and large integers, short texts.
func events(n int) []byte {
	var b bytes.Buffer
	b.WriteString("\x80\x02](")
	for _, k := range []string{"action", "addr", "size", "stream", "alloc"} {
		b.WriteString("X")
		binary.Write(&b, binary.LittleEndian, uint32(len(k)))
		b.WriteString(k)
		b.WriteString("q")
		b.WriteByte(k[1])
		b.WriteString("0")
	}
	for i := range n {
		b.WriteString("}(hcX\x05\x00\x00\x00allochdM\x01\x02hi")
		b.WriteString("J")
		binary.Write(&b, binary.LittleEndian, uint32(i))
		b.WriteString("htK\x00hl\x8a\x06")
		b.Write([]byte{byte(i), byte(i >> 8), 3, 4, 5, 0x7f})
		b.WriteString("u")
	}
	b.WriteString("e.")
	return b.Bytes()
}

func BenchmarkScanner(b *testing.B) {
	data := events(100_000)
	b.SetBytes(int64(len(data)))
	for b.Loop() {
		s := NewScanner(bytes.NewReader(data), 0)
		var t Token
		for {
			if err := s.Next(&t); err == io.EOF {
				break
			} else if err != nil {
				b.Fatal(err)
			}
		}
	}
}

func BenchmarkRead(b *testing.B) {
	data := events(100_000)
	b.SetBytes(int64(len(data)))
	for b.Loop() {
		if _, err := Read(bytes.NewReader(data), Options{}); err != nil {
			b.Fatal(err)
		}
	}
}
