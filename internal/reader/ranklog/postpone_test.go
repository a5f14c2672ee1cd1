package ranklog

import (
	"context"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/inquest-dev/inquest/internal/evidence"
	"github.com/inquest-dev/inquest/internal/reader"
)

// TestPostpone: of many lines that say that the run goes on, the first ones and
// the newest of each writer are read, and a failure between them is not lost.
func TestPostpone(t *testing.T) {
	plan := evidence.Plan{Wordings: []evidence.Wording{
		{ID: "t/phase", Kind: evidence.PhaseMark, Literal: "saving checkpoint to", Regexp: `saving checkpoint to \S+`, Attrs: evidence.Attrs{"phase": evidence.TextOf("checkpoint")}},
	}}
	var b strings.Builder
	const lines = 3 * maxPerGroup
	for i := range lines {
		for rank := range 2 {
			fmt.Fprintf(&b, "[rank%d]: saving checkpoint to /ckpt/%d\n", rank, i)
		}
		if i == lines/2 {
			b.WriteString("Traceback (most recent call last):\n  File \"t.py\", line 3, in <module>\n    go()\nValueError: bad shape\n")
		}
	}
	text := b.String()
	c := reader.NewCollector()
	in := reader.Input{Artifact: evidence.Artifact{Path: "job.log", Kind: "ranklog"}, Size: int64(len(text)), Open: func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(text)), nil }}
	if err := New(plan).Read(context.Background(), in, c); err != nil {
		t.Fatal(err)
	}
	var phases, others int
	last := map[int]string{}
	for _, e := range c.Events {
		if e.Kind != evidence.PhaseMark {
			others++
			continue
		}
		phases++
		last[e.Who.Rank] = e.Text
	}
	want := fmt.Sprintf("saving checkpoint to /ckpt/%d", lines-1)
	if others == 0 || phases > 2*maxPerGroup+2 || last[0] != want || last[1] != want {
		t.Errorf("%d phases, %d other events, last %v", phases, others, last)
	}
}

// TestCreators: communicators are told of the first processes only, all of
// theirs, and their ranks are not the job's.
func TestCreators(t *testing.T) {
	plan := evidence.Plan{Wordings: []evidence.Wording{{ID: "t/comm", Kind: evidence.CommCreated, Literal: "- Init COMPLETE"}}}
	var b strings.Builder
	for n := range 3 {
		for p := range 2 * maxCreators {
			fmt.Fprintf(&b, "n1:%d:%d [0] NCCL INFO comm 0x%d rank %d nranks %d cudaDev 0 nvmlDev 0 busId 1000 commId 0x1 - Init COMPLETE\n", 100+p, 900+p, n+1, p%2, 2+n)
		}
	}
	text := b.String()
	c := reader.NewCollector()
	in := reader.Input{Artifact: evidence.Artifact{Path: "job.log", Kind: "ranklog"}, Size: int64(len(text)), Open: func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(text)), nil }}
	if err := New(plan).Read(context.Background(), in, c); err != nil {
		t.Fatal(err)
	}
	events := map[int]int{}
	for _, e := range c.Events {
		if e.Kind == evidence.CommCreated {
			events[e.Who.PID]++
		}
	}
	if len(events) != maxCreators || events[100] != 3 {
		t.Errorf("%d processes, of the first %d", len(events), events[100])
	}
}
