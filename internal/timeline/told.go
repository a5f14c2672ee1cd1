package timeline

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/inquest-dev/inquest/internal/evidence"
)

// unplaced is the place of what carries no time and stands in a file that has none.
const unplaced = int64(math.MinInt64)

// maxBack bounds how far an event moves forward to stand before one that it is known to precede.
const maxBack = 256

// PointItem is a logged value as an event of the attempt that its series belongs to, so that it
// can stand among the events; nil where its artifact is none of the timeline's.
func (t *Timeline) PointItem(s *evidence.Series, p evidence.Point, attempt int) *Item {
	src, ok := t.sourceOf(s.Key.Artifact)
	if !ok {
		return nil
	}
	it := &Item{Source: src, Attempt: attempt, clock: evidence.None}
	it.Who = evidence.Nobody()
	it.Who.Launch, it.Who.Rank = s.Key.Launch, t.rankOf(src, s.Key.Rank)
	if it.Who.Host = t.hostOf[it.Who.Rank]; it.Who.Host == "" {
		it.Who.Host = t.said[src]
	}
	it.Stamp, it.Step, it.Span = p.When(), p.Step, s.Span(p)
	if it.Stamp.Known() {
		if i, ok := t.clocks.index[t.clockOf(it.Who.Host, src, it.Who.Rank, it.Stamp)]; ok {
			it.clock = i
		}
	}
	return it
}

// Told orders the events of one attempt as they were told: by the time of their lines,
// corrected by what ties the clocks of the hosts, each file's lines of one process as they
// stand. A line without a time stands with the one before it in its file, be that an event or a
// logged value. Where nothing orders two of them, they stand by artifact and place; files that
// carry no time come first.
func (t *Timeline) Told(items []*Item) []*Item {
	type spot struct {
		at, from int64 // its time, and its place in the file
		it       *Item
	}
	out := make([]spot, len(items))
	for i, it := range items {
		out[i] = spot{unplaced, 0, it}
	}
	slices.SortStableFunc(out, func(a, b spot) int {
		return cmp.Or(cmp.Compare(a.it.Source, b.it.Source), inFile(a.it, b.it))
	})
	told := t.tellers(items)
	for from := 0; from < len(out); {
		src := out[from].it.Source
		to := from + 1
		for to < len(out) && out[to].it.Source == src {
			to++
		}
		last := map[Process]int64{}
		file := unplaced // the time of the line before
		values := told.values(src, out[from].it.Attempt)
		for i := from; i < to; i++ {
			x := &out[i]
			x.from = int64(i)
			for len(values) > 0 && values[0].offset < x.it.Span.Offset {
				file = max(file, values[0].at)
				values = values[1:]
			}
			p := x.it.Process()
			before, ok := last[p]
			if !ok {
				before = unplaced
			}
			if at, ok := told.time(x.it.Stamp, x.it.clock); ok {
				x.at = max(before, at)
				file = x.at
			} else {
				x.at = max(before, file)
			}
			last[p] = x.at
		}
		next, behind := map[Process]int64{}, unplaced
		for i := to - 1; i >= from; i-- { // what stands before the first time
			x := &out[i]
			if x.at == unplaced {
				x.at = behind
				if at, ok := next[x.it.Process()]; ok {
					x.at = min(x.at, at)
				}
			}
			next[x.it.Process()], behind = x.at, x.at
		}
		from = to
	}
	slices.SortStableFunc(out, func(a, b spot) int {
		return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.it.Source, b.it.Source), cmp.Compare(a.from, b.from))
	})
	order := make([]*Item, len(out))
	for i := range out {
		order[i] = out[i].it
	}
	for i := range order { // steps, and counts of a tracker, order what times do not
		for j := i; j > 0 && i-j < maxBack && t.toldBefore(order[j], order[j-1]) == Before; j-- {
			order[j], order[j-1] = order[j-1], order[j]
		}
	}
	return order
}

// A Process tells the processes apart whose lines stand in one file.
type Process struct{ Source, Rank, Local int }

// Process is the one whose line it is; the local rank counts only where no rank is known.
func (it *Item) Process() Process {
	p := Process{it.Source, it.Who.Rank, evidence.None}
	if it.Who.Rank == evidence.None {
		p.Local = it.Who.LocalRank
	}
	return p
}

// inFile orders two events of one file by place.
func inFile(a, b *Item) int {
	if x, y := a.Span.Index, b.Span.Index; x > 0 && y > 0 && x != y {
		return cmp.Compare(x, y)
	}
	return cmp.Or(cmp.Compare(a.Span.Offset, b.Span.Offset), cmp.Compare(a.Span.Record, b.Span.Record), cmp.Compare(a.Span.Row, b.Span.Row))
}

// Apart reports whether nothing tells which of two events was told first.
func (t *Timeline) Apart(a, b *Item) bool { return t.toldBefore(a, b) == Unknown }

// toldBefore is Order, but a time-out counts from when it was reported, not from when the wait
// began.
func (t *Timeline) toldBefore(a, b *Item) Relation {
	r, by := t.order(a, b)
	if by == byLaunch || by == byPlace || by == byMergedPlace || a.Kind != evidence.CollTimeout && b.Kind != evidence.CollTimeout {
		return r
	}
	x := t.measure(a, b, a.Stamp, b.Stamp)
	switch {
	case x.ok && x.gap > x.bound:
		return Before
	case x.ok && -x.gap > x.bound:
		return After
	case a.Source == b.Source && !t.listing(a) && !interleaved(a, b):
		return byOffset(a, b)
	case by == byClock || by == byTie || by == byClocks:
		return Unknown
	}
	return r
}

// A teller reads times as they can be compared.
type teller struct {
	t     *Timeline
	clock string // of the stamps that count
	dates bool   // they have one
	year  int    // of those that name none
	shift []time.Duration
}

// tellers chooses the sort of times that is compared: dates where there are any, else times of
// the day; another clock than the wall's only where all events are of one file.
func (t *Timeline) tellers(items []*Item) *teller {
	x := &teller{t: t, clock: "wall", year: t.year(), shift: t.shifts()}
	one, seen := true, map[int]bool{}
	days, other := false, ""
	see := func(s evidence.Stamp) {
		switch {
		case usable(s):
			x.dates = true
			if x.year == 0 && !s.NoYear {
				x.year = s.Time.Year()
			}
		case s.Known() && s.Clock == "wall":
			days = true
		case s.Known():
			other = s.Clock
		}
	}
	for _, it := range items {
		one = one && it.Source == items[0].Source
		see(it.Stamp)
		if !seen[it.Source] && it.Source >= 0 {
			seen[it.Source] = true
			for _, s := range t.Sources[it.Source].Series {
				if s.Count > 0 {
					see(s.First.When())
					see(s.Last.When())
				}
			}
		}
	}
	if !x.dates && !days && one {
		x.clock = other
	}
	return x
}

// time is when a stamp was, in microseconds by the clock that saw the most.
func (x *teller) time(s evidence.Stamp, clock int) (int64, bool) {
	if !s.Known() || s.Clock != x.clock || x.clock == "wall" && s.NoDate == x.dates {
		return 0, false
	}
	at := dated(s, x.year)
	if clock >= 0 {
		at = at.Add(-x.shift[clock])
	}
	return at.UnixMicro(), true
}

// A timed is the place of a logged value, and when it was.
type timed struct{ offset, at int64 }

// maxTimed bounds the series of a file whose values lend their times to events without one.
const maxTimed = 16

// values are the places and times of a file's logged values, in order.
func (x *teller) values(src, attempt int) []timed {
	if src < 0 {
		return nil
	}
	var out []timed
	for n, s := range x.t.Sources[src].Series {
		if n == maxTimed {
			break
		}
		first := true
		clock := evidence.None
		for p := range s.All() {
			st := p.When()
			if !st.Known() {
				continue
			}
			if first {
				first = false
				if it := x.t.PointItem(s, p, attempt); it != nil {
					clock = it.clock
				}
			}
			if at, ok := x.time(st, clock); ok {
				out = append(out, timed{p.Offset, at})
			}
		}
	}
	slices.SortFunc(out, func(a, b timed) int { return cmp.Or(cmp.Compare(a.offset, b.offset), cmp.Compare(a.at, b.at)) })
	return out
}

// shifts says of each clock how far it is ahead of that which saw the most, 0 where nothing
// ties the two, or no more closely than they may be equal.
func (t *Timeline) shifts() []time.Duration {
	out := make([]time.Duration, len(t.clocks.names))
	if len(t.clocks.hubs) == 0 {
		return out
	}
	for i := range out {
		if tie, ok := t.clocks.tie(t.clocks.hubs[0], i); ok && tie.Offset.Abs() > tie.Error {
			out[i] = tie.Offset
		}
	}
	return out
}
