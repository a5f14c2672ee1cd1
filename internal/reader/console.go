package reader

import (
	"bytes"
	"context"
	"fmt"
	"sort"

	"github.com/inquest-dev/inquest/internal/evidence"
)

// Bounds of the console output of one run: what does not fit is left out of the middle.
const (
	maxConsole       = 32 << 20 // bytes of the first part, and of each half of the last
	maxConsoleLines  = 1 << 20  // the same in lines
	maxConsoleRecord = 1 << 20  // bytes of one record
)

// A Console collects the console output that a tracker keeps in pieces, each at a place of
// its own and with its own time, so that the reader of logs can read it as the one text that
// it was. The zero value is empty. It belongs to one goroutine.
type Console struct {
	// Artifact is the file that the pieces stand in, "" for that of the run.
	Artifact string

	head, last, late consoleText // late follows last, and takes its place when it is full
	left             int64       // bytes between head and last that were left out
	lines            int64
}

// A consoleText is a stretch of the output. A piece is noted from the first line that begins
// in it.
type consoleText struct {
	text   []byte
	pieces []consolePiece
}

type consolePiece struct {
	from int // offset in the text of its first line
	at   Place
	wall float64
}

func (t *consoleText) full(n int) bool {
	return len(t.text)+n > maxConsole || len(t.pieces) >= maxConsoleLines
}

func (t *consoleText) add(text []byte, at Place, wall float64) {
	begins, n := 0, len(t.text)
	if n > 0 && t.text[n-1] != '\n' && t.text[n-1] != '\r' {
		begins = bytes.IndexByte(text, '\n') + 1
		if begins == 0 {
			begins = len(text)
		}
	}
	if begins < len(text) {
		t.pieces = append(t.pieces, consolePiece{n + begins, at, wall})
	}
	t.text = append(t.text, text...)
}

// Add appends what stands in one record, as it was printed: whole lines with their ends, or
// a part of one. wall is seconds since 1970, 0 where unknown.
func (c *Console) Add(text []byte, at Place, wall float64) {
	if len(text) > maxConsoleRecord {
		c.left += int64(len(text) - maxConsoleRecord)
		text = text[:maxConsoleRecord]
	}
	c.lines += int64(bytes.Count(text, []byte("\n")))
	if c.left == 0 && len(c.last.text) == 0 && len(c.late.text) == 0 && !c.head.full(len(text)) {
		c.head.add(text, at, wall)
		return
	}
	if c.late.full(len(text)) {
		c.left += int64(len(c.last.text))
		c.last, c.late = c.late, consoleText{text: c.last.text[:0], pieces: c.last.pieces[:0]}
	}
	c.late.add(text, at, wall)
}

// Lines is how many lines were added.
func (c *Console) Lines() int64 { return c.lines }

// Read reads the output with log, as output of the run of r: its events and facts go to the
// sink of r with the records that they stand in as spans, and their times where the output
// has none of a known zone. Series that were printed are left to the tracker's own. Read
// returns ctx's error once it is done.
func (c *Console) Read(ctx context.Context, log Reader, r *Recording) error {
	r.Run.Lines += c.lines
	if c.lines == 0 && len(c.head.text) == 0 {
		return nil
	}
	parts := []*consoleText{&c.head, &c.last, &c.late}
	var text []byte
	var pieces []consolePiece
	for _, p := range parts {
		if n := len(text); n > 0 && len(p.text) > 0 && text[n-1] != '\n' {
			text = append(text, '\n')
		}
		for _, x := range p.pieces {
			x.from += len(text)
			pieces = append(pieces, x)
		}
		if text == nil {
			text = p.text
		} else {
			text = append(text, p.text...)
		}
	}
	artifact := c.Artifact
	if artifact == "" {
		artifact = r.Run.Artifact
	}
	if c.left > 0 {
		at := evidence.Span{Artifact: artifact, Kind: "record"}
		if len(c.last.pieces) > 0 {
			at.Record, at.Offset = c.last.pieces[0].at.Line, c.last.pieces[0].at.Offset
		}
		r.Damage(evidence.RunDamage{Kind: evidence.OverBound, Span: at, Bytes: c.left, Text: fmt.Sprintf("%d bytes of console output in the middle are not read", c.left)})
	}
	found, err := Within(ctx, log, evidence.Artifact{Path: artifact, Owner: evidence.Owner{Rank: evidence.None, LocalRank: evidence.None}}, text)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		return fmt.Errorf("read console output: %w", err)
	}
	place := func(s evidence.Span) (evidence.Span, float64) {
		i := sort.Search(len(pieces), func(i int) bool { return pieces[i].from > int(s.Offset) }) - 1
		if i < 0 {
			i = 0
		}
		p := &pieces[i]
		return evidence.Span{Artifact: artifact, Kind: "record", Record: p.at.Line, Offset: p.at.Offset, Length: int64(p.at.Length), Quote: s.Quote}, p.wall
	}
	for i := range found.Events {
		e := found.Events[i]
		var wall float64
		if e.Span, wall = place(e.Span); wall > 0 && (!e.Stamp.Known() || e.Stamp.Zone == "") {
			e.Stamp = StampAt(wall)
		}
		r.s.Event(e)
	}
	for _, f := range found.Facts {
		f.Span, _ = place(f.Span)
		r.s.Fact(f)
	}
	return nil
}
