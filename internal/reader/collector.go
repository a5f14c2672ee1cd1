package reader

import (
	"github.com/inquest-dev/inquest/internal/evidence"
)

// Limits of what a Collector keeps of one artifact. What goes beyond them is
// counted.
const (
	MaxEvents  = 200_000
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

	series map[evidence.SeriesKey]*evidence.Series
}

// NewCollector returns an empty Collector.
func NewCollector() *Collector {
	return &Collector{series: map[evidence.SeriesKey]*evidence.Series{}}
}

// Event keeps e.
func (c *Collector) Event(e evidence.Event) {
	if len(c.Events) >= MaxEvents {
		c.Dropped.Events++
		return
	}
	c.Events = append(c.Events, e)
}

// Series returns the series of k. One over the limit is returned all the same,
// so that a reader need not care, but it is not kept.
func (c *Collector) Series(k evidence.SeriesKey) *evidence.Series {
	s := c.series[k]
	if s == nil {
		s = evidence.NewSeries(k)
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
