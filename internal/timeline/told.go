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
// stand. A line without a time stands with the one before it in its file. Where nothing orders
// two of them, they stand by artifact and place; files that carry no time come first.
func (t *Timeline) Told(items []*Item) []*Item {
	type spot struct {
		at, from int64 // its time, and its place in the file
		it       *Item
	}
	form := t.form(items)
	out := make([]spot, len(items))
	for i, it := range items {
		out[i] = spot{unplaced, 0, it}
	}
	slices.SortStableFunc(out, func(a, b spot) int {
		return cmp.Or(cmp.Compare(a.it.Source, b.it.Source), inFile(a.it, b.it))
	})
	shift := t.shifts()
	type process struct{ rank, local int }
	for from := 0; from < len(out); {
		to := from + 1
		for to < len(out) && out[to].it.Source == out[from].it.Source {
			to++
		}
		last := map[process]int64{}
		file := unplaced // the time of the line before
		for i := from; i < to; i++ {
			x := &out[i]
			x.from = int64(i)
			p := process{x.it.Who.Rank, x.it.Who.LocalRank}
			before, ok := last[p]
			if !ok {
				before = unplaced
			}
			switch s := x.it.Stamp; {
			case form.fits(s):
				at := s.Time
				if x.it.clock >= 0 {
					at = at.Add(-shift[x.it.clock])
				}
				x.at = max(before, at.UnixMicro())
				file = x.at
			default:
				x.at = max(before, file)
			}
			last[p] = x.at
		}
		for i := to - 2; i >= from; i-- { // what stands before the first time
			if out[i].at == unplaced {
				out[i].at = out[i+1].at
			}
		}
		from = to
	}
	slices.SortStableFunc(out, func(a, b spot) int {
		return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.it.Source, b.it.Source), cmp.Compare(a.from, b.from))
	})
	told := make([]*Item, len(out))
	for i := range out {
		told[i] = out[i].it
	}
	for i := range told { // steps and counts of the tracker order what times do not
		for j := i; j > 0 && i-j < maxBack && t.toldBefore(told[j], told[j-1]) == Before; j-- {
			told[j], told[j-1] = told[j-1], told[j]
		}
	}
	return told
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

// A stampForm is how times are written that can be compared as they stand.
type stampForm struct {
	clock          string
	noDate, noYear bool
}

func (f stampForm) fits(s evidence.Stamp) bool {
	return s.Known() && f == (stampForm{s.Clock, s.NoDate, s.NoYear})
}

// form is the commonest one among the events; of a clock that is no wall clock only where all
// events are of one file.
func (t *Timeline) form(items []*Item) stampForm {
	count := map[stampForm]int{}
	one := true
	for _, it := range items {
		one = one && it.Source == items[0].Source
		if it.Stamp.Known() {
			count[stampForm{it.Stamp.Clock, it.Stamp.NoDate, it.Stamp.NoYear}]++
		}
	}
	var best stampForm
	less := func(a, b stampForm) bool {
		order := func(f stampForm) int {
			n := 0
			if f.noDate {
				n += 2
			}
			if f.noYear {
				n++
			}
			return n
		}
		return cmp.Or(cmp.Compare(count[a], count[b]), cmp.Compare(order(b), order(a)), cmp.Compare(b.clock, a.clock)) < 0
	}
	for f := range count {
		if (f.clock == "wall" || one) && less(best, f) {
			best = f
		}
	}
	return best
}

// shifts says of each clock how far it is ahead of that which saw the most, 0 where nothing
// ties the two.
func (t *Timeline) shifts() []time.Duration {
	out := make([]time.Duration, len(t.clocks.names))
	if len(t.clocks.hubs) == 0 {
		return out
	}
	for i := range out {
		if tie, ok := t.clocks.tie(t.clocks.hubs[0], i); ok {
			out[i] = tie.Offset
		}
	}
	return out
}
