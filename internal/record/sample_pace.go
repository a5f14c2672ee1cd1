package record

import (
	"cmp"
	"time"

	"github.com/inquest-dev/inquest/internal/incident"
)

// A pacer decides how often to look, by what a look costs, and which looks become samples.
//
// The time between two samples doubles after each step samples, so that a run of a month
// leaves a few thousand of them and its first minutes keep their detail. Of the looks between
// two samples the one with the most memory in use is given, and beside it those that were the
// highest ever in an address space or a cgroup: no peak is lost.
type pacer struct {
	share float64       // of one CPU that looks may take; 0 is the default
	cost  time.Duration // of a look, as it comes out in the end

	given int
	since time.Duration // when a sample was given last
	held  []incident.Sample
	top   int // which of held has the most memory
	high  [2]int64
}

const (
	step     = 512
	earliest = 400 * time.Millisecond // until then the looks are samples
)

// after is how long to wait after a look that took cost of a CPU.
func (p *pacer) after(cost time.Duration) time.Duration {
	if p.cost == 0 {
		p.cost = cost
	}
	p.cost += (cost - p.cost) / 4
	return min(time.Duration(float64(p.cost)/cmp.Or(p.share, share)), slowest)
}

// due takes a look into account and returns the samples to be given away now, in the order of
// time.
func (p *pacer) due(x incident.Sample, at, every time.Duration) []incident.Sample {
	p.hold(x)
	if at >= earliest && at-p.since < every<<min(p.given/step, 20) {
		return nil
	}
	p.since = at
	return p.rest()
}

// hold keeps x if it is the highest of its kind.
func (p *pacer) hold(x incident.Sample) {
	record := false
	if x.AddressSpace > p.high[0] {
		p.high[0], record = x.AddressSpace, true
	}
	if x.Cgroup != nil && *x.Cgroup > p.high[1] {
		p.high[1], record = *x.Cgroup, true
	}
	switch {
	case len(p.held) == 0:
		p.held, p.top = append(p.held, x), 0
	case x.Resident > p.held[p.top].Resident:
		p.put(x)
		p.top = len(p.held) - 1
	case record:
		p.put(x)
	}
}

// put appends x. A look that x surpasses in everything is no peak any more.
func (p *pacer) put(x incident.Sample) {
	if n := len(p.held) - 1; n >= 0 && surpasses(x, p.held[n]) {
		p.held[n] = x
		return
	}
	p.held = append(p.held, x)
}

func surpasses(a, b incident.Sample) bool {
	return a.Resident >= b.Resident && a.AddressSpace >= b.AddressSpace && (b.Cgroup == nil || a.Cgroup != nil && *a.Cgroup >= *b.Cgroup)
}

// rest returns what is held.
func (p *pacer) rest() []incident.Sample {
	out := p.held
	p.held = nil
	p.given += len(out)
	return out
}
