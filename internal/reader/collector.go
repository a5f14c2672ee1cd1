package reader

import (
	"github.com/inquest-dev/inquest/internal/evidence"
)

// Limits of what a Collector keeps of one artifact. What goes beyond them is
// counted. An event takes about a kilobyte, so those of all artifacts together
// stay under 20 MB.
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

	// Dropped counts what was over a limit.
	Dropped struct{ Events, Series, Facts, Damages int64 }

	series            map[evidence.SeriesKey]*evidence.Series
	maxEvents, points int
}

// NewCollector returns an empty Collector of one artifact alone.
func NewCollector() *Collector { return NewShare(1) }

// NewShare returns an empty Collector of one of n artifacts whose collections are
// in memory at the same time: what one keeps of its events and of the points of
// its series shrinks as n grows.
func NewShare(n int) *Collector {
	share := func(all, least, most int) int { return min(max(all/max(n, 1), least), most) }
	return &Collector{
		series:    map[evidence.SeriesKey]*evidence.Series{},
		maxEvents: share(MaxEvents, 64, MaxEvents),
		points:    share(8<<10, 24, 512),
	}
}

// Event keeps e.
func (c *Collector) Event(e evidence.Event) {
	if len(c.Events) >= c.maxEvents {
		c.shed()
	}
	c.Events = append(c.Events, e)
}

// shed makes room: the first and the last quarter of the events stay, because
// causes stand early and ends late, and between them as many of those that can
// begin or end a failure.
func (c *Collector) shed() {
	n := len(c.Events)
	quarter := n / 4
	kept, middle := c.Events[:0], 0
	for i := range c.Events {
		e := &c.Events[i]
		switch {
		case i < quarter || i >= n-quarter:
		case middle < quarter && mayEnd(e.Kind):
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
		s = evidence.NewSeries(k)
		s.Keep(c.points)
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

// Damage keeps the span and the reason.
func (c *Collector) Damage(s evidence.Span, err error) {
	if len(c.Damages) >= MaxDamages {
		c.Dropped.Damages++
		return
	}
	c.Damages = append(c.Damages, Damage{s, err})
}
