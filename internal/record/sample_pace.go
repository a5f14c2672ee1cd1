package record

import (
	"cmp"
	"slices"
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
	// Of the looks since then, the one with the most memory, and those with the largest address
	// space and cgroup of all, where they were larger than ever before; nil where none was.
	top, space, charged *incident.Sample
	high                struct{ space, charged int64 }
}

const (
	step     = 512
	earliest = 400 * time.Millisecond // until then the looks are samples

	firstCost = 500 * time.Microsecond // as which a first look counts at most
)

// after is how long to wait after a look that took cost of a CPU.
func (p *pacer) after(cost time.Duration) time.Duration {
	if p.cost == 0 {
		// The first look is the dearest, and on a busy machine may be interrupted: it alone does
		// not decide that a command of a second is looked at once.
		p.cost = min(cost, firstCost)
	} else {
		p.cost += (cost - p.cost) / 4
	}
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
	if p.top == nil || x.Resident > p.top.Resident {
		p.top = &x
	}
	if x.AddressSpace > p.high.space {
		p.high.space, p.space = x.AddressSpace, &x
	}
	if x.Cgroup != nil && *x.Cgroup > p.high.charged {
		p.high.charged, p.charged = *x.Cgroup, &x
	}
}

// rest returns what is held, in the order of time.
func (p *pacer) rest() []incident.Sample {
	var out []incident.Sample
	for _, x := range [...]*incident.Sample{p.top, p.space, p.charged} {
		if x != nil && !slices.ContainsFunc(out, func(y incident.Sample) bool { return y.Seconds == x.Seconds }) {
			out = append(out, *x)
		}
	}
	slices.SortFunc(out, func(a, b incident.Sample) int { return cmp.Compare(a.Seconds, b.Seconds) })
	p.top, p.space, p.charged = nil, nil, nil
	p.given += len(out)
	return out
}
