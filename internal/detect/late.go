package detect

import (
	"slices"
	"strings"

	"github.com/inquest-dev/inquest/internal/evidence"
)

// lateDepth is how many of the innermost functions say where a rank stood: what
// lies further out is the same for all ranks.
const lateDepth = 6

// lateRank says where the rank that the others waited for stood, from stack dumps
// beside the run or in its log.
//
//  1. It is one that no time-out names, or that lags behind in its group.
//  2. Without such a rank, it is one that stands elsewhere while most others stand in
//     a collective: at least three ranks have to be seen, and three in four of them waiting.
func lateRank(in Input, f evidence.Known) {
	at := map[int]*evidence.Event{} // main threads
	loads := map[int]*evidence.Event{}
	in.each(evidence.ProcessStack, func(e *evidence.Event) {
		if e.Attrs["main"].True() && e.Who.Rank != evidence.None && len(e.Stack) > 0 {
			at[e.Who.Rank] = e // the newest counts
			if inLoader(e.Stack) {
				loads[e.Who.Rank] = e
			}
		}
	})
	if len(at) == 0 {
		return
	}
	late := slices.Concat(f["dist.missing_ranks"].Value.L, f["dist.lagging_ranks"].Value.L)
	if len(late) == 0 {
		waiting := 0
		for _, r := range sorted(at) {
			if inCollective(at[r].Stack) {
				waiting++
			} else {
				late = append(late, int64(r))
			}
		}
		if len(at) < 3 || waiting*4 < len(at)*3 {
			return
		}
	}
	for _, r := range late {
		if e := at[int(r)]; e != nil {
			f.Set("dist.stack_of_missing", evidence.TextOf(innermost(e.Stack)), e.Span)
			if l := loads[int(r)]; l != nil && (l == e || inWorker(e.Stack)) {
				f.Set("dist.data_wait", evidence.BoolOf(true), l.Span)
			}
			blocked(in, f, int(r))
			return
		}
	}
}

// inCollective reports whether a stack is that of a rank that waits for its peers.
func inCollective(stack []evidence.Frame) bool {
	for _, fr := range stack[max(0, len(stack)-lateDepth):] {
		if strings.Contains(fr.File, "distributed_c10d") || strings.Contains(fr.File, "torch/distributed/") || strings.HasPrefix(fr.Function, "nccl") {
			return true
		}
	}
	return false
}

// inLoader reports whether a stack is that of a rank that waits for its workers'
// data (torch/utils/data/dataloader.py).
func inLoader(stack []evidence.Frame) bool {
	return slices.ContainsFunc(stack, func(fr evidence.Frame) bool {
		return strings.HasSuffix(fr.File, "dataloader.py") && (fr.Function == "_try_get_data" || fr.Function == "_get_data" || fr.Function == "_next_data")
	})
}

// inWorker reports whether a stack is that of a loader's worker, which prepares data for
// its rank (torch/utils/data/_utils/worker.py).
func inWorker(stack []evidence.Frame) bool {
	return slices.ContainsFunc(stack, func(fr evidence.Frame) bool { return fr.Function == "_worker_loop" })
}

// blocked says whether the kernel reports a process of the late rank as blocked: one of
// the processes whose stack is known, or one that is tied to the rank.
func blocked(in Input, f evidence.Known, rank int) {
	own := map[int]*evidence.Event{}
	in.each(evidence.ProcessStack, func(e *evidence.Event) {
		if e.Who.Rank == rank && e.Who.PID > 0 {
			own[e.Who.PID] = e
		}
	})
	in.each(evidence.Stall, func(e *evidence.Event) {
		_, kernel := e.Attrs["name"]
		if p := own[e.Who.PID]; kernel && (p != nil || e.Who.Rank == rank) {
			spans := []evidence.Span{e.Span}
			if p != nil {
				spans = append(spans, p.Span)
			}
			f.Set("dist.late_blocked", evidence.BoolOf(true), spans...)
		}
	})
}

// innermost names the innermost functions, the innermost one first.
func innermost(stack []evidence.Frame) string {
	var names []string
	for i := len(stack) - 1; i >= 0 && len(names) < lateDepth; i-- {
		names = append(names, stack[i].Function)
	}
	return strings.Join(names, " < ")
}
