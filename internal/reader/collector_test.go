package reader

import (
	"bytes"
	"errors"
	"math"
	"math/rand/v2"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/inquest-dev/inquest/internal/evidence"
)

func TestCollector(t *testing.T) {
	c := NewCollector()
	k := evidence.SeriesKey{Name: "loss", Source: "hf", Rank: evidence.None, Trust: evidence.Raw}
	s := c.Series(k)
	s.Add(evidence.Point{Step: 1, Value: 2.5, Line: 1})
	c.Series(k).Add(evidence.Point{Step: 2, Value: math.NaN(), Line: 2})
	if len(c.Metrics) != 1 || s.Count != 2 {
		t.Errorf("one key gave %d series of %d points", len(c.Metrics), s.Count)
	}
	for range MaxFacts + 5 {
		c.Fact(evidence.Fact{Name: "run.batch", Value: evidence.IntOf(1)})
	}
	if len(c.Facts) != MaxFacts || c.Dropped.Facts != 5 {
		t.Errorf("%d facts kept, %d dropped", len(c.Facts), c.Dropped.Facts)
	}
}

func TestDump(t *testing.T) {
	c := NewCollector()
	who := evidence.Nobody()
	who.Rank, who.Host = 3, "h\x1b[31m"
	c.Owner(evidence.Owner{Host: "h", Rank: 3, LocalRank: evidence.None, Basis: "its name"})
	c.Event(evidence.Event{
		Kind: evidence.DeviceOOM, Who: who, Step: 7, Text: "out\x1b]0;x\x07", Line: "a/b", Chain: "final", Quoted: true,
		Stamp: evidence.Stamp{Time: time.Date(0, 1, 2, 3, 4, 5, 0, time.UTC), Written: "01/02 03:04:05", NoYear: true, Error: time.Second / 2, Clock: "wall"},
		Attrs: evidence.Attrs{"requested": evidence.SizeOf(10, 20), "gpu": evidence.IntOf(1)},
		Span:  evidence.Span{Kind: "text", Line: 4, Column: 2, Offset: 30, Length: 9},
		Stack: []evidence.Frame{{File: "a.py", Line: 1, Function: "f", Source: "g()"}},
	})
	c.Series(evidence.SeriesKey{Name: "loss", Source: "hf", Rank: evidence.None, Trust: evidence.Raw}).Add(evidence.Point{Step: evidence.None, Value: 1, Line: 9})
	c.Fact(evidence.Fact{Name: "run.torch", Value: evidence.TextOf("2.9"), Who: evidence.Nobody(), Span: evidence.Span{Kind: "row", Table: "t", Row: 2}})
	c.Damage(evidence.Span{Kind: "record", Record: 5}, errors.New("torn"))
	var b strings.Builder
	if err := Dump(&b, c); err != nil {
		t.Fatal(err)
	}
	want := `owner host=h rank=3 by its name
event device_oom 4:2+30[9] host=h\x1b[31m rank=3 step=7 at 01-02T03:04:05 ±500ms by a/b chain=final quoted
	text "out\x1b]0;x\a"
	gpu = 1
	requested = 10..20 bytes (15 bytes)
	stack "a.py":1 in f | "g()"
series loss source=hf trust=raw launch=0 points=1 bad=0 first=1@line 9 last=1@line 9
fact run.torch = "2.9"  row t 2 +0[0]
damage record 5 +0[0]: torn
`
	if got := b.String(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if strings.ContainsRune(b.String(), 0x1b) {
		t.Error("a control sequence reached the dump")
	}
}

// TestShed: over the limit the first and last events stay, and those between
// that can end a run.
func TestShed(t *testing.T) {
	c := NewCollector()
	for i := range 10_000 {
		kind := evidence.PhaseMark
		if i == 5_000 {
			kind = evidence.DeviceOOM
		}
		c.Event(evidence.Event{Kind: kind, Step: int64(i), Span: evidence.Span{Offset: int64(i)}})
	}
	c.Settle(1 << 20)
	if len(c.Events) > 64 || c.Events[0].Step != 0 || c.Events[len(c.Events)-1].Step != 9_999 {
		t.Fatalf("%d events, steps %d to %d", len(c.Events), c.Events[0].Step, c.Events[len(c.Events)-1].Step)
	}
	fault := false
	for i, e := range c.Events {
		fault = fault || e.Kind == evidence.DeviceOOM
		if i > 0 && e.Step <= c.Events[i-1].Step {
			t.Fatal("events are out of order")
		}
	}
	if !fault || c.Dropped.Events != int64(10_000-len(c.Events)) {
		t.Errorf("fault kept: %v; %d dropped of 10000, %d kept", fault, c.Dropped.Events, len(c.Events))
	}
}

// TestSettle: what is left of any events and points does not depend on the steps
// in which they were reduced, nor on when their reader handed them out.
func TestSettle(t *testing.T) {
	for seed := range uint64(12) {
		r := rand.New(rand.NewPCG(seed, 3))
		n := r.IntN(60_000)
		faults := r.Float64() * r.Float64()
		events := make([]evidence.Event, n)
		for i := range events {
			events[i] = evidence.Event{Kind: evidence.PhaseMark, Step: int64(i), Span: evidence.Span{Offset: int64(i)}}
			if r.Float64() < faults {
				events[i].Kind = evidence.DeviceOOM
			}
		}
		files := 1 + r.IntN(2000)
		read := func(late bool) *Collector {
			c := NewShare(files)
			if late {
				c = NewCollector()
			}
			var held []evidence.Event
			for _, e := range events {
				if late && r.IntN(4) == 0 {
					held = append(held, e)
					continue
				}
				c.Event(e)
				if len(held) > 0 && r.IntN(10) == 0 {
					c.Event(held[len(held)-1])
					held = held[:len(held)-1]
				}
			}
			for _, e := range held {
				c.Event(e)
			}
			s := c.Series(evidence.SeriesKey{Name: "loss"})
			for i := range n {
				p := evidence.Point{Step: int64(i), Value: float64(i * 7919 % 1013)}
				if s.WillSample() {
					p.Stamp = &evidence.Stamp{Written: strconv.Itoa(i)}
				}
				s.Add(p)
			}
			return c
		}
		once, steps := read(false), read(true)
		once.Settle(files)
		for _, k := range []int{1, 1 + r.IntN(files), files} {
			steps.Settle(k)
		}
		if once.Dropped != steps.Dropped || !reflect.DeepEqual(once.Events, steps.Events) || !reflect.DeepEqual(once.Metrics, steps.Metrics) {
			t.Fatalf("seed %d: %d events for %d files: %d and %d are left", seed, n, files, len(once.Events), len(steps.Events))
		}
	}
}

// A function's name comes from a log as well.
func TestDumpEscapes(t *testing.T) {
	c := NewCollector()
	c.Event(evidence.Event{Kind: evidence.DeviceOOM, Stack: []evidence.Frame{{File: "a.py", Line: 1, Function: "f\u202e\x1b[31m", Source: "g()"}}})
	var b bytes.Buffer
	if err := Dump(&b, c); err != nil {
		t.Fatal(err)
	}
	if strings.ContainsAny(b.String(), "\u202e\x1b") {
		t.Errorf("not escaped: %q", b.String())
	}
}
