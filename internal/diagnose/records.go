package diagnose

import (
	"slices"

	"github.com/inquest-dev/inquest/internal/evidence"
	"github.com/inquest-dev/inquest/internal/timeline"
)

// ledger reports whether it is what a scheduler keeps of how a job or pod ended.
func (c *Case) ledger(it *timeline.Item) bool {
	switch c.Timeline.Sources[it.Source].Artifact.Kind {
	case "kube", "slurm":
		return true
	}
	return false
}

// recorded returns the index of the one of cands that a scheduler's record tells of
// once more: the same kind of end, of a process that can be the same. It is -1
// where there is none.
func (c *Case) recorded(it *timeline.Item, cands []*timeline.Item) int {
	if !c.ledger(it) {
		return -1
	}
	return slices.IndexFunc(cands, func(x *timeline.Item) bool {
		return x.Kind == it.Kind && agree(x, it) && (x.Source != it.Source || x.Who == it.Who || x.Who.Host != "" && x.Who.Host == it.Who.Host)
	})
}

// agree reports whether two events can be about one process: a record of a
// whole job names no rank, and pods and hosts may be named in different ways.
func agree(a, b *timeline.Item) bool {
	if a.Who.Rank != evidence.None && b.Who.Rank != evidence.None {
		return a.Who.Rank == b.Who.Rank
	}
	return a.Who.Host == "" || b.Who.Host == "" || a.Who.Host == b.Who.Host
}

// recordedEnds are the exits and cancellations that a scheduler keeps. They count
// where the run's own logs show no end: a record of one process, or records that
// say which rank each is of.
func (c *Case) recordedEnds() []*timeline.Item {
	var exits, cancelled []*timeline.Item
	for _, it := range c.Attempt.Items {
		if it.Attempt >= 0 || it.Quoted || !c.ledger(it) {
			continue
		}
		switch {
		case it.Kind == evidence.Cancelled:
			cancelled = append(cancelled, it)
		case role(it) == evidence.RoleExit && !stopped(it):
			if !slices.ContainsFunc(exits, func(x *timeline.Item) bool { return x.Kind == it.Kind && agree(x, it) }) {
				exits = append(exits, it)
			}
		}
	}
	if len(exits) > 1 && slices.ContainsFunc(exits, func(it *timeline.Item) bool { return it.Who.Rank == evidence.None }) {
		exits = nil
	}
	if len(exits) == 0 && len(cancelled) > 0 {
		return cancelled[:1]
	}
	return exits
}

// unexpected reports whether a supervisor says of a process that it is gone and
// should not be, without a code or signal: Ray of its workers, vLLM of its own.
func unexpected(it *timeline.Item) bool {
	_, coded := it.Attrs["code"]
	_, signalled := it.Attrs["signal"]
	if coded || signalled {
		return false
	}
	switch it.Attrs.Str("what") {
	case "ray-worker", "ray-raylet", "vllm-worker", "vllm-engine":
		return true
	}
	return false
}
