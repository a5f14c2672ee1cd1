package reader

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/inquest-dev/inquest/internal/evidence"
)

// booms is a reader of logs that knows one word.
type booms struct{}

func (booms) Name() string                               { return "booms" }
func (booms) Sniff(evidence.Artifact, []byte) Confidence { return No }
func (booms) Read(ctx context.Context, in Input, s Sink) error {
	rc, err := in.Open()
	if err != nil {
		return err
	}
	defer rc.Close()
	lines := bufio.NewScanner(rc)
	lines.Buffer(nil, 1<<26)
	at := int64(0)
	for lines.Scan() {
		if err := ctx.Err(); err != nil {
			return err
		}
		if strings.Contains(lines.Text(), "boom") {
			sp := evidence.Span{Artifact: in.Artifact.Path, Kind: "text", Offset: at, Length: int64(len(lines.Text())), Quote: lines.Text()}
			s.Event(evidence.Event{Kind: evidence.Exited, Who: evidence.Nobody(), Step: evidence.None, Text: lines.Text(), Span: sp})
			s.Fact(evidence.Fact{Name: "setting.boom", Value: evidence.TextOf("yes"), Who: evidence.Nobody(), Span: sp})
		}
		at += int64(len(lines.Text())) + 1
	}
	return lines.Err()
}

func TestConsole(t *testing.T) {
	var c Console
	c.Add([]byte("hello\n"), Place{Line: 1, Offset: 10, Length: 20}, 1700000000)
	c.Add([]byte("half of "), Place{Line: 2, Offset: 30, Length: 21}, 1700000001)
	c.Add([]byte("boom\nboom again\n"), Place{Line: 3, Offset: 51, Length: 22}, 1700000002)
	c.Add([]byte("boom at last"), Place{Line: 4, Offset: 73, Length: 23}, 0)
	s := NewCollector()
	r := NewRecording(s, "x", "run.x")
	if err := c.Read(context.Background(), booms{}, r); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range s.Events {
		got = append(got, fmt.Sprintf("%s in record %d at %d+%d, %s", e.Text, e.Span.Record, e.Span.Offset, e.Span.Length, e.Stamp.Written))
	}
	want := []string{
		"half of boom in record 2 at 30+21, 2023-11-14T22:13:21Z",
		"boom again in record 3 at 51+22, 2023-11-14T22:13:22Z",
		"boom at last in record 4 at 73+23, ",
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if len(s.Facts) != 3 || s.Facts[0].Span.Record != 2 || r.Run.Lines != 3 {
		t.Errorf("facts %v, %d lines", s.Facts, r.Run.Lines)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := c.Read(ctx, booms{}, r); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled Read returned %v", err)
	}
}

// TestConsoleMiddle checks that of too much output the first and the last are read, each at
// its own place, and that the rest is stated.
func TestConsoleMiddle(t *testing.T) {
	var c Console
	line := []byte(strings.Repeat("x", 1<<19-1) + "\n")
	add := func(text []byte, n int64) { c.Add(text, Place{Line: n, Offset: n * 100, Length: 7}, 0) }
	add([]byte("boom first\n"), 1)
	n := int64(2)
	for ; n < 400; n++ {
		add(line, n)
	}
	add([]byte("boom last\n"), n)
	s := NewCollector()
	r := NewRecording(s, "x", "run.x")
	if err := c.Read(context.Background(), booms{}, r); err != nil {
		t.Fatal(err)
	}
	if len(s.Events) != 2 || s.Events[0].Span.Record != 1 || s.Events[1].Span.Record != 400 {
		t.Errorf("events %v", s.Events)
	}
	if len(r.Run.Damage) != 1 || r.Run.Damage[0].Bytes < 90<<20 || r.Run.Damage[0].Span.Record == 0 {
		t.Errorf("damage %+v", r.Run.Damage)
	}
	if r.Run.Lines != 400 {
		t.Errorf("%d lines", r.Run.Lines)
	}
}
