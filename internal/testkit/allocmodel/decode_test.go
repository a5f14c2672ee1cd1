package allocmodel_test

import (
	"bytes"
	"context"
	"fmt"
	"testing"

	"github.com/inquest-dev/inquest/internal/evidence"
	"github.com/inquest-dev/inquest/internal/reader/memsnap"
	"github.com/inquest-dev/inquest/internal/testkit/allocmodel"
)

// TestDecodeGivesWhatWasWritten writes snapshots as both picklers do, reads them again and
// compares all of it with the snapshot that was never a file.
func TestDecodeGivesWhatWasWritten(t *testing.T) {
	n := uint64(100)
	if testing.Short() {
		n = 60
	}
	for seed := range n {
		c := allocmodel.New(seed, 120)
		c.Snap.Old = seed%7 == 0
		if seed%5 == 0 {
			c.Snap.Skip = []evidence.MemAction{evidence.MemFreeRequested}
		}
		want := c.Snapshot()
		want.Notes = append(want.Notes, evidence.MemNote{Context: "Torch-Compiled Region: 1/0", User: "caf\u00e9"}, evidence.MemNote{Category: "gradient"})
		for i, e := range want.Traces[0].All() {
			e.Note = uint32(i % 3)
		}
		for _, p := range []allocmodel.Pickler{allocmodel.CPython, allocmodel.Torch} {
			var b bytes.Buffer
			if err := allocmodel.WritePickle(&b, want, p); err != nil {
				t.Fatal(err)
			}
			got, err := memsnap.Decode(context.Background(), &b, memsnap.Options{})
			if err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
			if err := sameSnapshot(got, want); err != nil {
				t.Fatalf("seed %d, pickler %d: %v", seed, p, err)
			}
		}
	}
}

// sameSnapshot compares contents: numbers of stacks, frames, streams, pools and notes may differ.
func sameSnapshot(got, want *evidence.MemSnapshot) error {
	if len(got.Damage) > 0 || got.Form != want.Form || got.Has != want.Has {
		return fmt.Errorf("form %q, has %+v, damage %v; want %q, %+v", got.Form, got.Has, got.Damage, want.Form, want.Has)
	}
	if g, w := fmt.Sprintf("%+v", got.Settings), fmt.Sprintf("%+v", want.Settings); g != w {
		return fmt.Errorf("settings %s, want %s", g, w)
	}
	if g, w := fmt.Sprint(got.Annotations), fmt.Sprint(want.Annotations); g != w {
		return fmt.Errorf("annotations %s, want %s", g, w)
	}
	if len(got.Segments) != len(want.Segments) || len(got.Blocks) != len(want.Blocks) || got.Devices() != want.Devices() {
		return fmt.Errorf("%d segments, %d blocks, %d devices; want %d, %d, %d", len(got.Segments), len(got.Blocks), got.Devices(), len(want.Segments), len(want.Blocks), want.Devices())
	}
	for i := range want.Segments {
		if g, w := segment(got, i), segment(want, i); g != w {
			return fmt.Errorf("segment %d:\n%s, want\n%s", i, g, w)
		}
	}
	for i := range want.Blocks {
		if g, w := block(got, i), block(want, i); g != w {
			return fmt.Errorf("block %d:\n%s, want\n%s", i, g, w)
		}
	}
	for d := range want.Traces {
		if got.Traces[d].Len() != want.Traces[d].Len() {
			return fmt.Errorf("device %d: %d events, want %d", d, got.Traces[d].Len(), want.Traces[d].Len())
		}
		for i := range want.Traces[d].Len() {
			if g, w := event(got, d, i), event(want, d, i); g != w {
				return fmt.Errorf("event %d:\n%s, want\n%s", i, g, w)
			}
		}
	}
	return nil
}

func stack(s *evidence.MemSnapshot, i uint32) string {
	out := ""
	for _, f := range s.Stacks[i] {
		out += fmt.Sprintf("%+v;", s.Frames[f])
	}
	return out
}

func segment(s *evidence.MemSnapshot, i int) string {
	g := s.Segments[i]
	stream, pool, st := s.Streams[g.Stream], s.Pools[g.Pool], stack(s, g.Stack)
	g.Stream, g.Pool, g.Stack = 0, 0, 0
	return fmt.Sprintf("%+v %d %v %s", g, stream, pool, st)
}

func block(s *evidence.MemSnapshot, i int) string {
	b := s.Blocks[i]
	st := stack(s, b.Stack)
	b.Stack = 0
	return fmt.Sprintf("%+v %s", b, st)
}

func event(s *evidence.MemSnapshot, d, i int) string {
	e := *s.Traces[d].At(i)
	stream, pool, st, note := s.Streams[e.Stream], s.Pools[e.Pool], stack(s, e.Stack), s.Notes[e.Note]
	e.Stream, e.Pool, e.Stack, e.Note = 0, 0, 0, 0
	return fmt.Sprintf("%+v %d %v %s %+v", e, stream, pool, st, note)
}
