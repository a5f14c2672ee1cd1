package detect

import (
	"slices"
	"sort"
	"strconv"
	"strings"

	"github.com/inquest-dev/inquest/internal/evidence"
)

// collectives says who is missing from, behind in or at odds with the others in
// the collectives that timed out.
//
//  1. Group the timeouts by process group.
//  2. A rank of the job that no timeout names, while at least half of the ranks
//     do, is missing.
//  3. Within a group, ranks whose last enqueued work or sequence number is the
//     lowest, if the numbers differ, are lagging.
//  4. Different operations or sizes at one sequence number of a group are a
//     mismatch. Where the lines name no group, only if every rank of the job is at
//     that number: groups count for themselves, and two of them may meet by chance.
//  5. Ranks that differ so from most, and those that lag, are apart. One of them that
//     had caught an out-of-memory before left the order of collectives there.
func collectives(in Input, f evidence.Known) {
	type group struct {
		seq  map[int]int64
		op   map[int64]map[int]string // by sequence number and rank
		span map[int]evidence.Span
	}
	groups := map[string]*group{}
	ranks := map[int]bool{}
	var timeout float64
	var spans []evidence.Span
	in.each(evidence.CollTimeout, func(e *evidence.Event) {
		if ms := e.Attrs["timeout_ms"].I; ms > 0 {
			timeout = float64(ms) / 1000
		}
		spans = append(spans, e.Span)
		r := e.Who.Rank
		if r == evidence.None {
			return
		}
		ranks[r] = true
		g := groups[e.Attrs.Str("group")]
		if g == nil {
			g = &group{map[int]int64{}, map[int64]map[int]string{}, map[int]evidence.Span{}}
			groups[e.Attrs.Str("group")] = g
		}
		if s, ok := e.Attrs["seq"]; ok {
			g.seq[r] = s.I
			if g.op[s.I] == nil {
				g.op[s.I] = map[int]string{}
			}
			g.op[s.I][r] = shape(e)
			g.span[r] = e.Span
		}
	})
	in.each(evidence.CollState, func(e *evidence.Event) {
		g := groups[e.Attrs.Str("group")]
		if g == nil || e.Who.Rank == evidence.None {
			return
		}
		if s, ok := e.Attrs["last_enqueued"]; ok && s.I >= 0 {
			if old, have := g.seq[e.Who.Rank]; !have || s.I < old {
				g.seq[e.Who.Rank], g.span[e.Who.Rank] = s.I, e.Span
			}
		}
	})
	if timeout > 0 {
		f.Set("dist.timeout_s", evidence.FloatOf(timeout), clip(spans)...)
	}
	if in.World > 1 && len(ranks) > 0 && len(ranks)*2 >= in.World {
		var missing []int64
		for r := 0; r < in.World; r++ {
			if !ranks[r] {
				missing = append(missing, int64(r))
			}
		}
		f.Set("dist.missing_ranks", evidence.IntsOf(missing), clip(spans)...)
	}
	names := make([]string, 0, len(groups))
	for n := range groups {
		names = append(names, n)
	}
	sort.Strings(names)
	lagging, behind := map[int]bool{}, []evidence.Span(nil)
	apart := map[int]bool{}
	for _, n := range names {
		g := groups[n]
		lo, hi := int64(1)<<62, int64(-1)
		for _, s := range g.seq {
			lo, hi = min(lo, s), max(hi, s)
		}
		if len(g.seq) > 1 && lo < hi {
			for _, r := range sorted(g.seq) {
				if g.seq[r] == lo {
					lagging[r], apart[r] = true, true
					behind = append(behind, g.span[r])
				}
			}
		}
		for _, ops := range g.op {
			if mismatched(ops, n != "", in.World) {
				f.Set("dist.op_mismatch", evidence.BoolOf(true), clip(spans)...)
				for _, r := range minority(ops) {
					apart[r] = true
				}
			}
		}
	}
	if len(lagging) > 0 {
		var lag []int64
		for _, r := range sorted(lagging) {
			lag = append(lag, int64(r))
		}
		f.Set("dist.lagging_ranks", evidence.IntsOf(lag), clip(behind)...)
	}
	if x := in.first(evidence.CollDesync); x != nil {
		f.Set("dist.op_mismatch", evidence.BoolOf(true), x.Span)
	}
	aloneRank(in, f, timeout)
	train := trainingOf(in)
	if in.Lead != nil {
		if n, sp, ok := train.stepsBefore(in.Lead); ok {
			f.Set("dist.at_start", evidence.BoolOf(n == 0), sp...)
		}
		fn := f["trace.functions"].Value.S
		if strings.Contains(fn, "_next_data") || strings.Contains(fn, "_try_get_data") {
			f.Set("dist.data_wait", evidence.BoolOf(true), in.Lead.Span)
		}
	}
	if x := in.first(evidence.NetworkFault, evidence.LinkError); x != nil {
		f.Set("dist.network_named", evidence.BoolOf(true), x.Span)
	}
	for _, e := range in.Events {
		spec := evidence.SpecOf(e.Kind)
		went := wentOn(in, e)
		if spec.Role == evidence.RoleFault && e.Kind != evidence.Stall && !in.Recovered(e) && !e.Quoted && went == nil {
			f.Set("dist.other_fault", evidence.BoolOf(true), e.Span)
			break
		}
		if (e.Kind.DeviceMemory() && (in.Recovered(e) || went != nil) || e.Kind == evidence.OOMRecovered) && len(spans) > 0 {
			f.Set("dist.oom_skipped_rank", evidence.BoolOf(true), e.Span)
			if went != nil && apart[e.Who.Rank] && 2*len(apart) < in.World {
				f.Set("dist.oom_rank_apart", evidence.BoolOf(true), e.Span, went.Span)
			}
		}
	}
	if _, ok := f["dist.other_fault"]; !ok && len(spans) > 0 {
		f.Set("dist.other_fault", evidence.BoolOf(false))
	}
	shares(in, f)
	communicators(in, f)
}

// wentOn returns the time-out in a collective by which the process that reports e,
// out of device memory, shows that it had caught it: it wrote it below in the same
// log. After a traceback that proves nothing, because the watchdog has its own thread.
func wentOn(in Input, e *evidence.Event) *evidence.Event {
	if !e.Kind.DeviceMemory() && e.Kind != evidence.OOMRecovered || e.Quoted || e.Who.Rank == evidence.None || len(e.Stack) > 0 || e.Chain != "" {
		return nil
	}
	for _, x := range in.Events {
		if x.Kind == evidence.CollTimeout && !x.Quoted && x.Who.Rank == e.Who.Rank && x.Who.Launch == e.Who.Launch && x.Span.Artifact == e.Span.Artifact && x.Span.Offset > e.Span.Offset {
			return x
		}
	}
	return nil
}

// minority returns the ranks that say another thing than most; nil where there is no
// majority.
func minority(ops map[int]string) []int {
	n := map[string]int{}
	for _, s := range ops {
		n[s]++
	}
	var out []int
	for _, r := range sorted(ops) {
		if 2*n[ops[r]] <= len(ops) {
			out = append(out, r)
		}
	}
	if len(out) == len(ops) {
		return nil
	}
	return out
}

// shares says which ranks state fewer batches for an epoch than others; none where all
// state as many. Below half of the ranks nothing is said.
func shares(in Input, f evidence.Known) {
	of := map[int]evidence.Fact{}
	for _, s := range in.Stated {
		if s.Name == "run.batches" && s.Who.Rank != evidence.None && s.Value.I > 0 {
			of[s.Who.Rank] = s
		}
	}
	if len(of) < 2 || 2*len(of) < in.World {
		return
	}
	most := int64(0)
	for _, s := range of {
		most = max(most, s.Value.I)
	}
	fewer := []int64{}
	var few, rest []evidence.Span
	for _, r := range sorted(of) {
		if of[r].Value.I < most {
			fewer, few = append(fewer, int64(r)), append(few, of[r].Span)
		} else {
			rest = append(rest, of[r].Span)
		}
	}
	f.Set("batch.fewer_ranks", evidence.IntsOf(fewer), clip(append(few, rest...))...)
}

// communicators counts the communicators that each process created, and says
// whether one process went on creating them (two at least: one may be the first
// use of a lazy group) below the first training values of its own log. Where
// others' logs hold the training values, that is unknown.
func communicators(in Input, f evidence.Known) {
	type log struct {
		artifact string
		launch   int
	}
	began := map[log]int64{} // offset of the first training value
	for _, s := range in.Series {
		if s.Key.Phase == "eval" || s.Count == 0 || !progress(s) || beforeTraining(s) {
			continue
		}
		k := log{s.Key.Artifact, s.Key.Launch}
		if at, ok := began[k]; !ok || s.First.Offset < at {
			began[k] = s.First.Offset
		}
	}
	type process struct {
		rank, pid int
		host      string
	}
	all, late := map[process]int64{}, map[process]int64{}
	most, growing, known := int64(0), false, false
	var spans, lateSpans []evidence.Span
	in.each(evidence.CommCreated, func(e *evidence.Event) {
		p := process{rank: e.Who.Rank, pid: evidence.None}
		if p.rank == evidence.None {
			p.pid, p.host = e.Who.PID, e.Who.Host
		}
		if e.Quoted || p.rank == evidence.None && p.pid == evidence.None {
			return
		}
		all[p]++
		most = max(most, all[p])
		spans = append(spans, e.Span)
		at, ok := began[log{e.Span.Artifact, e.Who.Launch}]
		known = known || ok
		if ok && e.Span.Offset > at {
			late[p]++
			growing = growing || late[p] > 1
			lateSpans = append(lateSpans, e.Span)
		}
	})
	if most == 0 {
		return
	}
	f.Set("dist.comms", evidence.IntOf(most), clip(spans)...)
	if growing {
		f.Set("dist.comms_growing", evidence.BoolOf(true), clip(lateSpans)...)
	} else if known {
		f.Set("dist.comms_growing", evidence.BoolOf(false), clip(spans)...)
	}
}

// shape is the operation and size of a timed-out collective as far as all ranks
// of a group must have the same: "" for point-to-point and rooted operations,
// whose sides differ by nature, the operation alone where sizes may differ.
func shape(e *evidence.Event) string {
	switch op := strings.ToUpper(e.Attrs.Str("op")); {
	case op == "", op == "SEND", op == "RECV", op == "RECVANYSOURCE", op == "COALESCED", op == "UNKNOWN", strings.HasPrefix(op, "GATHER"), strings.HasPrefix(op, "SCATTER"):
		return ""
	case strings.HasPrefix(op, "ALLTOALL"):
		return op
	default:
		return op + "/" + e.Attrs["numel_in"].String()
	}
}

// mismatched reports whether the ranks at one sequence number wait in different
// collectives. world is the number of ranks of the job, 0 if unknown.
func mismatched(ops map[int]string, named bool, world int) bool {
	if !named && (world == 0 || len(ops) < world) {
		return false
	}
	seen := map[string]bool{}
	for _, s := range ops {
		if s == "" {
			return false
		}
		seen[s] = true
	}
	return len(seen) > 1
}

// aloneRank looks for work that one rank does alone and that has begun and not
// ended when the others give up waiting, and how long it takes: as stated, or
// from the pace of its progress lines. The pace gives an interval, from the
// shortest to the longest gap between lines; only an interval that lies wholly on
// one side of the time-out says on which side the work is. Ranks that say that they
// wait for the main process tell of rank 0's work. Who timed out was in no such
// work any more, and where several ranks are in it none is alone.
func aloneRank(in Input, f evidence.Known, timeout float64) {
	type work struct {
		open     *evidence.Event
		progress []*evidence.Event
	}
	at, gaveUp := map[int]*work{}, map[int]bool{}
	in.each(evidence.CollTimeout, func(e *evidence.Event) { gaveUp[e.Who.Rank] = true })
	in.each(evidence.RankPhase, func(e *evidence.Event) {
		r, waits := e.Who.Rank, e.Attrs["waits"].True()
		if waits {
			if r == 0 || r == evidence.None && len(gaveUp) == 0 {
				return
			}
			r = 0
		}
		w := at[r]
		switch {
		case e.Attrs["ends"].True():
			delete(at, r)
		case w == nil || w.open.Attrs["waits"].True() && !waits:
			at[r] = &work{open: e}
		case !waits:
			w.progress = append(w.progress, e)
		}
	})
	for r, w := range at {
		if r != evidence.None && gaveUp[r] || r == evidence.None && (w.open.Attrs["elapsed"].S != "" || len(at) > 1) || trainedAfter(in, w.open, w.progress) {
			delete(at, r)
		}
	}
	if len(at) != 1 {
		return
	}
	for _, w := range at {
		spans := []evidence.Span{w.open.Span}
		for _, e := range w.progress[max(0, len(w.progress)-8):] {
			spans = append(spans, e.Span)
		}
		f.Set("dist.rank0_alone", evidence.BoolOf(true), spans...)
		total, lo, hi := aloneSeconds(w.open, w.progress)
		if total <= 0 {
			return
		}
		f.Set("dist.alone_seconds", evidence.FloatOf(total), spans...)
		if lo > timeout && stalledBar(w.open, w.progress, timeout) {
			return
		}
		if timeout > 0 && (lo > timeout || hi <= timeout) {
			f.Set("dist.alone_over_timeout", evidence.BoolOf(lo > timeout), spans...)
		}
	}
}

// trainedAfter reports whether the process logged training below its work: then
// that was over.
func trainedAfter(in Input, open *evidence.Event, progress []*evidence.Event) bool {
	last := open
	if len(progress) > 0 {
		last = progress[len(progress)-1]
	}
	for _, s := range in.Series {
		if progressOf(s, last) && s.Last.Offset > last.Span.Offset {
			return true
		}
	}
	return false
}

func progressOf(s *evidence.Series, e *evidence.Event) bool {
	return s.Key.Artifact == e.Span.Artifact && s.Key.Launch == e.Who.Launch && max(s.Key.Rank, 0) == max(e.Who.Rank, 0) && s.Key.Phase != "eval" && s.Count > 0 && progress(s)
}

// aloneSeconds returns the length of the work that open begins, in seconds, with
// its bounds; zeros if nothing tells it.
func aloneSeconds(open *evidence.Event, progress []*evidence.Event) (total, lo, hi float64) {
	if s := open.Attrs["seconds"].F; s > 0 {
		return s, s, s
	}
	if open.Attrs["elapsed"].S != "" {
		return barSeconds(append([]*evidence.Event{open}, progress...))
	}
	items := float64(open.Attrs["count"].I)
	var per float64
	var gaps []float64
	last := open
	for _, e := range progress {
		if n := e.Attrs["count"].I; items == 0 && n > 0 {
			items = float64(n)
		}
		if s := e.Attrs["seconds"].F; s > 0 {
			per = s
		}
		if last.Stamp.Known() && e.Stamp.Known() && last.Stamp.Clock == e.Stamp.Clock && last.Span.Artifact == e.Span.Artifact {
			if d := e.Stamp.Time.Sub(last.Stamp.Time).Seconds(); d > 0 {
				gaps = append(gaps, d)
			}
		}
		last = e
	}
	switch {
	case items == 0:
		return 0, 0, 0
	case per > 0:
		return items * per, items * per, items * per
	case len(gaps) < 3 || len(gaps) != len(progress):
		return 0, 0, 0
	}
	return items * median(gaps), items * slices.Min(gaps), items * slices.Max(gaps)
}

// barSeconds returns the same of the last progress bar among states of bars: what it
// counts to have passed, and what is left at the pace between its states. What ran before
// that bar began is not in it.
func barSeconds(states []*evidence.Event) (total, lo, hi float64) {
	var pace []float64
	var passed, done, items float64
	for i, e := range states {
		at, n := clockSeconds(e.Attrs.Str("elapsed")), float64(e.Attrs["done"].I)
		if at < 0 {
			continue
		}
		if i > 0 && (n < done || at < passed || float64(e.Attrs["count"].I) != items) {
			pace = nil
		} else if n > done && at > passed {
			pace = append(pace, (at-passed)/(n-done))
		}
		passed, done, items = at, n, float64(e.Attrs["count"].I)
	}
	left := items - done
	if len(pace) < 3 || left < 0 {
		return 0, 0, 0
	}
	return passed + left*median(pace), passed + left*slices.Min(pace), passed + left*slices.Max(pace)
}

// stalledBar reports whether a progress bar was last drawn so long before the others
// gave up that it may have stopped: more than three times the longest gap between two
// of its states.
func stalledBar(open *evidence.Event, progress []*evidence.Event, timeout float64) bool {
	if open.Attrs["elapsed"].S == "" {
		return false
	}
	passed, longest := clockSeconds(open.Attrs.Str("elapsed")), 0.0
	for _, e := range progress {
		at := clockSeconds(e.Attrs.Str("elapsed"))
		longest = max(longest, at-passed)
		passed = at
	}
	return passed+3*longest < timeout
}

// clockSeconds reads 01:30 or 1:01:30, -1 if it is neither.
func clockSeconds(s string) float64 {
	out := 0
	for p := range strings.SplitSeq(s, ":") {
		n, err := strconv.Atoi(p)
		if err != nil || n < 0 || n > 1e6 {
			return -1
		}
		out = 60*out + n
	}
	return float64(out)
}

// deviceFaults restates the leading device fault.
func deviceFaults(in Input, f evidence.Known) {
	order := map[string]int{"hardware": 0, "link": 1, "driver": 2, "application": 3, "": 4, "notice": 5, "consequence": 6}
	var best *evidence.Event
	in.each(evidence.Xid, func(e *evidence.Event) {
		if best == nil || order[e.Attrs.Str("severity")] < order[best.Attrs.Str("severity")] {
			best = e
		}
	})
	var sxid *evidence.Event
	in.each(evidence.SXid, func(e *evidence.Event) {
		if sxid == nil || sxid.Attrs.Str("severity") != "fatal" && e.Attrs.Str("severity") == "fatal" {
			sxid = e
		}
	})
	if sxid != nil && sxid.Attrs["sxid"].Valid() {
		f.Set("sxid.code", sxid.Attrs["sxid"], sxid.Span)
	}
	if best != nil {
		for fact, attr := range map[string]string{"xid.code": "xid", "xid.severity": "severity"} {
			if v, ok := best.Attrs[attr]; ok {
				f.Set(fact, v, best.Span)
			}
		}
		if l := in.Lead; l != nil && l.Who.Rank != evidence.None && best.Who.Rank != evidence.None {
			f.Set("xid.on_fault_device", evidence.BoolOf(best.Who.Rank == l.Who.Rank), best.Span, l.Span)
		}
	}
	if e := in.first(evidence.CUDAFault, evidence.CUDAAssert); e != nil {
		f.Set("cuda.what", evidence.TextOf(e.Attrs.Str("what")), e.Span)
	}
	in.each(evidence.CUDAAssert, func(e *evidence.Event) {
		c := e.Attrs.Str("condition")
		if c == "" {
			return
		}
		if _, done := f["cuda.assert_index"]; !done {
			f.Set("cuda.assert_index", evidence.BoolOf(rangeCheck(c)), e.Span)
		}
	})
}

// rangeCheck reports whether an asserted expression compares an index or a
// class with a bound.
func rangeCheck(c string) bool {
	l := strings.ToLower(c)
	for _, w := range []string{"index", "idx", "n_classes", "num_classes", "dimsize", "target", "t >= 0", "numel"} {
		if strings.Contains(l, w) && strings.ContainsAny(c, "<>") {
			return true
		}
	}
	return false
}
