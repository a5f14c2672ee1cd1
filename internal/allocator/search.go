package allocator

import (
	"fmt"
	"slices"

	"github.com/inquest-dev/inquest/internal/evidence"
)

// searchEvents bounds what a search may take: events that are simulated.
const searchEvents = 100_000_000

// search lists the changes that matter for a trace, the most standard first: as many
// as the length of the trace allows.
func (r *Replay) search(h *history, runs []*recorded, p *profile) []Change {
	var out []Change
	if !r.Settings.Expandable {
		out = append(out, Change{Conf: "expandable_segments:True"})
	}
	for _, n := range r.splits(h) {
		out = append(out, Change{Conf: fmt.Sprintf("max_split_size_mb:%d", n)})
	}
	for _, n := range []int{4, 8, 16} {
		if c := (Change{Conf: fmt.Sprintf("roundup_power2_divisions:%d", n)}); r.Settings.RoundupText() != fmt.Sprint(n) {
			out = append(out, c)
		}
	}
	if at := h.stepBefore(p); at >= 0 {
		at := Change{EmptyCache: true, Event: at}
		out = slices.Insert(out, min(1, len(out)), at)
	}
	q := question{h: h, runs: runs, set: r.Settings}
	times := len(q.assumptions(false))
	if len(h.initial) > 0 {
		times = 2 * len(q.assumptions(true)) // once more with less room, or more
	}
	return out[:min(len(out), max(1, searchEvents/(times*h.n)))]
}

// splits are sizes for max_split_size_mb, in MiB: between the sizes that the trace
// asks for, where a limit makes a difference. It must keep the failed request from
// being served by halves, so it lies at or below it.
func (r *Replay) splits(h *history) []int64 {
	const most = 5
	top := int64(0)
	for i := range r.OOMs {
		top = max(top, r.OOMs[i].Request)
	}
	seen := map[int64]int{}
	for _, e := range h.trace.All() {
		if e.Action == evidence.MemAlloc && e.Size >= largeBuffer && e.Size < 1<<50 {
			seen[(e.Size+mib-1)/mib]++
			if top == 0 || len(r.OOMs) == 0 {
				top = max(top, e.Size)
			}
		}
	}
	var sizes []int64
	for n := range seen {
		if n*mib <= top+mib {
			sizes = append(sizes, n)
		}
	}
	slices.Sort(sizes)
	var out []int64
	for i := range most {
		if len(sizes) == 0 {
			break
		}
		n := max(sizes[i*(len(sizes)-1)/max(most-1, 1)], 20)
		if !slices.Contains(out, n) && n*mib != r.Settings.MaxSplit {
			out = append(out, n)
		}
	}
	return out
}

// stepBefore is the event at which the step of the first failed request begins: as
// annotated, or else where least was in use before it. -1 where there is none.
func (h *history) stepBefore(p *profile) int {
	if len(p.ooms) == 0 {
		return -1
	}
	first := p.ooms[0].Event
	at := h.trace.At(first).Time
	start := int64(0)
	for _, a := range h.snap.Annotations {
		if a.Start && a.Time <= at && a.Time > start && (a.Device == h.device || a.Device < 0) {
			start = a.Time
		}
	}
	if start > 0 {
		for i := first - 1; i >= 0; i-- {
			if t := h.trace.At(i).Time; t > 0 && t < start {
				return i + 1
			}
		}
	}
	return p.valley
}

// best is the change to make: expandable segments where they avoid the failure, else
// of the other settings the one with the largest margin, else the first call of
// empty_cache that does. Another capacity is no setting.
func best(answers []Answer) int {
	pick, rank := -1, 0
	for i := range answers {
		a := &answers[i]
		if a.Verdict != Avoided || a.Change.Capacity > 0 {
			continue
		}
		k := 2
		switch {
		case a.Change == Change{Conf: "expandable_segments:True"}:
			k = 3
		case a.Change.EmptyCache:
			k = 1
		}
		if k > rank || k == rank && a.Margin > answers[pick].Margin {
			pick, rank = i, k
		}
	}
	return pick
}
