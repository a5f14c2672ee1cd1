package reader

import (
	"cmp"
	"slices"

	"github.com/inquest-dev/inquest/internal/evidence"
)

// Limits of what a Collector keeps of one artifact. What goes beyond them is
// counted. An event takes about a kilobyte, so those of all artifacts together
// stay under 20 MB, and those of one that is being read.
const (
	MaxEvents  = 16_000
	MaxFacts   = 20_000
	MaxSeries  = 20_000
	MaxDamages = 1_000
)

// A Damage is a part of an artifact that could not be read.
type Damage struct {
	Span evidence.Span
	Err  error
}

// A Collector is a Sink that keeps everything, in order and within limits.
type Collector struct {
	Events  []evidence.Event
	Metrics []*evidence.Series // in the order in which they were asked for
	Facts   []evidence.Fact
	Owners  []evidence.Owner
	Damages []Damage
	Tallies []Count // what the reader met of each sort

	// Dropped counts what was over a limit.
	Dropped struct{ Events, Series, Facts, Damages int64 }

	series    map[evidence.SeriesKey]*evidence.Series
	maxEvents int
	points    int // of a series
	dense     int // of a series, however many collections there are
}

// A Count is how many of a sort a reader met.
type Count struct {
	What string
	N    int64
}

// NewCollector returns an empty Collector of one artifact alone.
func NewCollector() *Collector { return NewShare(1) }

// NewShare returns an empty Collector of one of n artifacts whose collections are
// in memory at the same time, which is to be settled for as many.
func NewShare(n int) *Collector {
	return &Collector{series: map[evidence.SeriesKey]*evidence.Series{}, maxEvents: MaxEvents, points: share(8<<10, 24, evidence.MaxPoints, n)}
}

// Densely makes c keep at least so many points of each series that it is asked for from
// now on, whatever its share is.
func (c *Collector) Densely(points int) { c.dense = points }

// share is what one of n artifacts gets of a limit.
func share(all, least, most, n int) int { return min(max(all/max(n, 1), least), most) }

// Settle is called after the artifact was read. It puts the events in the order of
// the artifact and reduces them and the series to what one of n artifacts keeps.
// Whether the Collector was made, and settled before, for as many or for fewer makes no
// difference.
func (c *Collector) Settle(n int) {
	c.maxEvents = min(c.maxEvents, share(MaxEvents, 64, MaxEvents, n))
	c.shed()
	for _, s := range c.Metrics {
		s.Reduce(max(share(8<<10, 24, evidence.MaxPoints, n), c.dense))
	}
}

// Event keeps e.
func (c *Collector) Event(e evidence.Event) {
	c.Events = append(c.Events, e)
	if len(c.Events) >= c.maxEvents+c.maxEvents/4 {
		c.shed()
	}
}

// shed sorts the events and lets those over the limit go: the first and the last
// quarter stay, because causes stand early and ends late, and between them the
// first of those that can begin or end a failure. An event that goes would
// go under each lower limit as well, and whatever else is read.
func (c *Collector) shed() {
	slices.SortStableFunc(c.Events, func(a, b evidence.Event) int { return cmp.Compare(a.Span.Offset, b.Span.Offset) })
	n := len(c.Events)
	if int64(n)+c.Dropped.Events <= int64(c.maxEvents) {
		return
	}
	quarter := c.maxEvents / 4
	kept, middle := c.Events[:0], 0
	for i := range c.Events {
		e := &c.Events[i]
		switch {
		case i < quarter || i >= n-quarter:
		case middle < 2*quarter && mayEnd(e.Kind):
			middle++
		default:
			c.Dropped.Events++
			continue
		}
		kept = append(kept, *e)
	}
	clear(c.Events[len(kept):])
	c.Events = kept
}

func mayEnd(k evidence.Kind) bool {
	spec := evidence.SpecOf(k)
	return spec != nil && (spec.Role == evidence.RoleFault || spec.Role == evidence.RoleStop || spec.Role == evidence.RoleExit)
}

// Series returns the series of k. One over the limit is returned all the same,
// so that a reader need not care, but it is not kept.
func (c *Collector) Series(k evidence.SeriesKey) *evidence.Series {
	s := c.series[k]
	if s == nil {
		s = evidence.NewDense(k, max(c.points, c.dense))
		if len(c.Metrics) >= MaxSeries {
			c.Dropped.Series++
			return s
		}
		c.series[k] = s
		c.Metrics = append(c.Metrics, s)
	}
	return s
}

// Fact keeps f.
func (c *Collector) Fact(f evidence.Fact) {
	if len(c.Facts) >= MaxFacts {
		c.Dropped.Facts++
		return
	}
	c.Facts = append(c.Facts, f)
}

// Owner keeps o.
func (c *Collector) Owner(o evidence.Owner) {
	if len(c.Owners) < 64 {
		c.Owners = append(c.Owners, o)
	}
}

// Tally keeps a count.
func (c *Collector) Tally(what string, n int64) {
	if len(c.Tallies) < 64 {
		c.Tallies = append(c.Tallies, Count{what, n})
	}
}

// Damage keeps the span and the reason.
func (c *Collector) Damage(s evidence.Span, err error) {
	if len(c.Damages) >= MaxDamages {
		c.Dropped.Damages++
		return
	}
	c.Damages = append(c.Damages, Damage{s, err})
}
