package memsnap

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"os"
	"testing"
)

// TestDecodeFile decodes the file that SNAPSHOT names and nothing else: scripts/bench
// measures its process.
func TestDecodeFile(t *testing.T) {
	name := os.Getenv("SNAPSHOT")
	if name == "" {
		t.Skip("SNAPSHOT names no file")
	}
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	s, err := Decode(context.Background(), f, Options{})
	if err != nil || len(s.Damage) > 0 {
		t.Fatal(err, s.Damage)
	}
	n := 0
	for i := range s.Traces {
		n += s.Traces[i].Len()
	}
	t.Logf("%d segments, %d blocks, %d entries, %d stacks, %d frames", len(s.Segments), len(s.Blocks), n, len(s.Stacks), len(s.Frames))
}

// history is a snapshot of n entries, as CPython would pickle them: each alloc with a stack
// of 40 functions that the memo has.
func history(n int) []byte {
	var b bytes.Buffer
	memo := uint32(0)
	text := func(s string) uint32 {
		b.WriteString("\x8c" + string(rune(len(s))) + s + "\x94")
		memo++
		return memo - 1
	}
	get := func(slot uint32) {
		b.WriteByte('j')
		b.Write(binary.LittleEndian.AppendUint32(nil, slot))
	}
	b.WriteString("\x80\x04}(")
	text("device_traces")
	b.WriteString("](](") // not memoized
	keys := map[string]uint32{}
	for _, k := range []string{"name", "filename", "line", "action", "addr", "size", "stream", "time_us", "frames", "alloc"} {
		keys[k] = text(k)
		b.WriteByte('0')
	}
	frames := memo
	for i := range 200 {
		b.WriteString("}\x94(")
		memo++
		get(keys["name"])
		b.WriteString("\x8c\x04fn" + fmt.Sprintf("%02d", i%100))
		get(keys["filename"])
		b.WriteString("\x8c\x08train.py")
		get(keys["line"])
		b.WriteString("K" + string([]byte{byte(i)}) + "u0")
	}
	for i := range n {
		b.WriteString("}\x94(")
		memo++
		get(keys["action"])
		get(keys["alloc"])
		get(keys["addr"])
		b.WriteString("\x8a\x06\x00" + string([]byte{byte(i), byte(i >> 8), 0x40, 0x7f, 0}))
		get(keys["size"])
		b.WriteString("J\x00\x10\x02\x00")
		get(keys["stream"])
		b.WriteString("K\x00")
		get(keys["time_us"])
		b.WriteString("\x8a\x07" + string([]byte{1, byte(i), byte(i >> 8), byte(i >> 16), 0x1b, 6, 0}))
		get(keys["frames"])
		b.WriteString("]\x94(")
		memo++
		for k := range 40 {
			get(frames + uint32((i%97*7+k*(1+i%5))%200))
		}
		b.WriteString("eu")
	}
	b.WriteString("eeu.")
	return b.Bytes()
}

func BenchmarkDecode(b *testing.B) {
	data := history(100_000)
	b.SetBytes(int64(len(data)))
	for b.Loop() {
		s, err := Decode(context.Background(), bytes.NewReader(data), Options{})
		if err != nil || s.Traces[0].Len() != 100_000 || len(s.Damage) > 0 {
			b.Fatal(err, s)
		}
	}
	b.ReportMetric(float64(b.N)*100_000/b.Elapsed().Seconds()/1e6, "Mentries/s")
}
