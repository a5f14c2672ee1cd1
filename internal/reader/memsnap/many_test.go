package memsnap

import (
	"bytes"
	"context"
	"encoding/binary"
	"strings"
	"testing"

	"github.com/inquest-dev/inquest/internal/evidence"
	"github.com/inquest-dev/inquest/internal/reader"
)

// refusedEntries is a pickle of one history: of each request that was refused its size.
func refusedEntries(sizes ...int32) []byte {
	var b bytes.Buffer
	text := func(s string) {
		b.WriteByte('X')
		binary.Write(&b, binary.LittleEndian, uint32(len(s)))
		b.WriteString(s)
	}
	number := func(n int32) {
		b.WriteByte('J')
		binary.Write(&b, binary.LittleEndian, n)
	}
	b.WriteString("\x80\x02}(")
	text("device_traces")
	b.WriteString("](](")
	for _, n := range sizes {
		b.WriteString("}(")
		text("action")
		text("oom")
		text("device_free")
		number(512)
		text("size")
		number(n)
		b.WriteString("u")
	}
	b.WriteString("eeu.")
	return b.Bytes()
}

// TestManyRefused checks that of more refused requests than have events of their own the
// newest, which may have ended the run, is one.
func TestManyRefused(t *testing.T) {
	sizes := make([]int32, maxOOMs+1000)
	for i := range sizes {
		sizes[i] = int32(i + 1)
	}
	in := refusedEntries(sizes...)
	got, err := decode(context.Background(), bytes.NewReader(in), Options{})
	if err != nil {
		t.Fatal(err)
	}
	c := reader.NewCollector()
	say(got, evidence.Artifact{Path: "x.pickle"}, c)
	n, last := 0, int64(-1)
	for _, e := range c.Events {
		if e.Kind == evidence.MemSnapshotOOM {
			n++
			last = e.Span.Index
		}
	}
	if n != maxOOMs || last != int64(len(sizes)-1) {
		t.Errorf("%d events of refused requests, the last entry %d", n, last)
	}
	if len(got.Damage) != 1 || !strings.HasPrefix(got.Damage[0].Text, "1000 entries of refused requests") {
		t.Errorf("damage %v", got.Damage)
	}
}

// TestRefusals checks what the entries behind each refused request tell of it, over
// several in one history.
func TestRefusals(t *testing.T) {
	var trace evidence.MemTrace
	for _, e := range []evidence.MemEvent{
		{Action: evidence.MemSegmentAlloc, Size: 100},
		{Action: evidence.MemOOM},
		{Action: evidence.MemSegmentFree, Size: 30},
		{Action: evidence.MemOOM},
		{Action: evidence.MemOOM},
		{Action: evidence.MemAlloc, Size: 1},
		{Action: evidence.MemOOM},
		{Action: evidence.MemFreeCompleted, Size: 1},
	} {
		trace.Append(e)
	}
	r := &result{MemSnapshot: &evidence.MemSnapshot{Traces: []evidence.MemTrace{{}, trace}, Segments: []evidence.MemSegment{{Device: 1, Total: 70}}},
		ooms: []place{{1, 6, 0}, {1, 1, 0}, {1, 3, 0}, {1, 4, 0}}}
	want := []refusal{{70, true}, {100, false}, {70, false}, {70, false}}
	for i, got := range r.refusals() {
		if got != want[i] {
			t.Errorf("oom at entry %d: %+v, want %+v", r.ooms[i].index, got, want[i])
		}
	}
}

// TestSharedTrace checks that one history that is named as that of many devices does not
// become as many entries as a small file has no room for.
func TestSharedTrace(t *testing.T) {
	const each = 40_000
	entry := "}(X\x06\x00\x00\x00actionX\x05\x00\x00\x00allocu"
	in := "\x80\x02}(X\x0d\x00\x00\x00device_traces](](" + strings.Repeat(entry, each) + "eq\x05" + strings.Repeat("h\x05", 1000) + "eu."
	got, err := Decode(context.Background(), strings.NewReader(in), Options{})
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for i := range got.Traces {
		n += got.Traces[i].Len()
	}
	if n <= each || n > each+aliases || len(got.Damage) != 1 || !strings.Contains(got.Damage[0].Text, "traces are the list of another device over again") {
		t.Errorf("%d entries; damage %v", n, got.Damage)
	}
}
