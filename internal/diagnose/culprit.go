package diagnose

import (
	"fmt"
	"maps"
	"slices"
	"sort"
	"strings"

	"github.com/inquest-dev/inquest/internal/evidence"
	"github.com/inquest-dev/inquest/internal/incident"
	"github.com/inquest-dev/inquest/internal/timeline"
)

// withoutWords finds the initiating event when no fault has words of its own.
func (c *Case) withoutWords() {
	var exits, effects, phases, states []*timeline.Item
	effectOf := map[int]*timeline.Item{}
	for _, it := range c.Attempt.Items {
		if it.Quoted || c.afterFinish(it) || it.Attempt < 0 {
			continue
		}
		switch role(it) {
		case evidence.RoleExit:
			exits = append(exits, it)
		case evidence.RoleEffect:
			effects = append(effects, it)
			if it.Kind != evidence.LauncherStop && it.Kind != evidence.WrapperError && it.Who.Rank != evidence.None && effectOf[it.Who.Rank] == nil {
				effectOf[it.Who.Rank] = it
			}
		case evidence.RoleNotice:
			switch it.Kind {
			case evidence.RankPhase:
				phases = append(phases, it)
			case evidence.CollState:
				states = append(states, it)
			}
		}
	}
	timeouts := slices.DeleteFunc(slices.Clone(effects), func(it *timeline.Item) bool { return it.Kind != evidence.CollTimeout })
	if len(timeouts) > 0 && c.alone(phases, timeouts) {
		return
	}
	if !slices.ContainsFunc(exits, func(it *timeline.Item) bool { return !stopped(it) }) && !c.Complete() {
		exits = append(exits, c.recordedEnds()...)
	}
	exits = slices.DeleteFunc(exits, func(it *timeline.Item) bool {
		if stopped(it) && it.Kind != evidence.Cancelled && !unexpected(it) {
			return true
		}
		// A watchdog that gives up waiting ends its process by an abort.
		if len(timeouts) > 0 && aborted(it) {
			return true
		}
		// A rank that said why it gave up waiting ended because of that.
		e := effectOf[it.Who.Rank]
		return it.Who.Rank != evidence.None && e != nil
	})
	// A launcher's summary restates exits that have lines of their own.
	if own := slices.DeleteFunc(slices.Clone(exits), func(it *timeline.Item) bool { return it.Kind == evidence.LauncherSummary }); len(own) > 0 {
		exits = own
	}
	if c.hung(append(slices.Clone(exits), effects...)) {
		return
	}
	if len(exits) > 0 {
		c.choose(exits)
		if c.Standing == incident.Established {
			c.Standing = incident.Supported
		}
		switch {
		case len(exits) > 1:
		case c.ledger(c.Lead):
			c.Basis = "the scheduler's record is the only word of an end that is in evidence"
		default:
			c.Basis = "the only process that ended by itself; the rest were stopped or gave up waiting"
		}
		return
	}
	if odd, text := c.oddOnes(timeouts); len(odd) > 0 {
		c.Lead, c.Rivals, c.SameKind = odd[0], odd[1:], len(odd) > 1
		c.LeadClass, c.Standing, c.Basis = evidence.Collective, incident.Supported, text
		if len(odd) > 1 {
			c.Standing = incident.Undecidable
		}
		return
	}
	if e := c.eliminate(timeouts); e != nil {
		c.eliminated(e, evidence.Hang)
		return
	}
	if e := c.lost(effects); e != nil {
		c.eliminated(e, evidence.Collective)
		return
	}
	if len(timeouts) > 0 && (c.barred(timeouts) || c.states(append(slices.Clone(timeouts), states...))) {
		return
	}
	effects = slices.DeleteFunc(effects, func(it *timeline.Item) bool {
		return it.Kind == evidence.LauncherStop
	})
	if words := slices.DeleteFunc(slices.Clone(effects), func(it *timeline.Item) bool { return it.Kind == evidence.WrapperError }); len(words) > 0 {
		effects = words
	}
	if len(effects) > 0 {
		c.choose(effects)
		c.Standing = incident.Undecidable
		c.OnlyEffects = true
		c.Basis = "only effects are in evidence; the process that caused them left no words here"
		if c.Lead.Kind == evidence.CollTimeout {
			c.waiting(timeouts)
		}
		return
	}
	// A handled failure that keeps coming back in a run that never finished.
	if len(c.finishedAt) == 0 {
		var again []*timeline.Item
		for _, it := range c.Attempt.Items {
			if it.Kind == evidence.OOMRecovered || it.Kind.DeviceMemory() && c.recovered[it] {
				again = append(again, it)
			}
		}
		if len(again) >= 2 {
			c.Lead, c.LeadClass, c.Standing = again[0], evidence.DeviceMemory, incident.Supported
			for _, it := range again {
				if it.Kind == evidence.DeviceOOM && it.Span.Line-c.Lead.Span.Line <= 3 {
					c.Lead = it
					break
				}
			}
			c.Basis = "it was caught, came back, and the run shows no end"
		}
	}
}

// eliminated lets the rank or host that e finds lead.
func (c *Case) eliminated(e *Elimination, class evidence.Class) {
	c.Elimination, c.Standing, c.LeadClass = e, incident.Supported, class
	c.Lead, c.Basis = c.silent(e.Rank, 0), "by elimination: "+e.Why
	c.Lead.Who.Host = e.Host
	c.Eliminations[c.Lead] = e
}

// alone finds the rank that was in work of its own when the others timed out: by
// its own lines, else by those of ranks that say that they wait for the main
// process. Who timed out himself, or trained on, was not in it any more, and
// where several ranks are in such work none is alone.
func (c *Case) alone(phases, timeouts []*timeline.Item) bool {
	gaveUp := map[int]*timeline.Item{}
	for _, it := range timeouts {
		if gaveUp[it.Who.Rank] == nil {
			gaveUp[it.Who.Rank] = it
		}
	}
	first, last, waits := map[int]*timeline.Item{}, map[int]*timeline.Item{}, map[int]*timeline.Item{}
	for _, p := range phases {
		r := p.Who.Rank
		switch {
		case p.Attrs["waits"].True():
			waits[r] = p
		case p.Attrs["ends"].True():
			delete(first, r)
			delete(last, r)
		default:
			if first[r] == nil {
				first[r] = p
			}
			last[r] = p
		}
	}
	var ranks []int
	for r, p := range last {
		if (r == evidence.None || gaveUp[r] == nil) && c.pointsAfter(p) == 0 && (p.Attrs["elapsed"].S == "" || r != evidence.None) {
			ranks = append(ranks, r)
		}
	}
	ranks = slices.DeleteFunc(ranks, func(r int) bool { return r == evidence.None && len(ranks) > 1 })
	if len(ranks) == 1 {
		open, text := first[ranks[0]], "rank %d began work of its own here and had not ended it when the others' collective timed out (line %d)"
		if p := last[ranks[0]]; p.Attrs["elapsed"].S != "" { // of a progress bar the last state says most
			open, text = p, "rank %d was still in work of its own here, and shows no end of it, when the others' collective timed out (line %d)"
		}
		c.Lead, c.LeadClass, c.Standing = open, evidence.Hang, incident.Supported
		c.Basis = fmt.Sprintf(text, open.Who.Rank, timeouts[0].Span.Line)
		return true
	}
	delete(waits, 0)
	delete(waits, evidence.None)
	if len(ranks) > 0 || len(waits) == 0 || gaveUp[0] != nil {
		return false
	}
	e := &Elimination{Rank: 0}
	for _, r := range slices.Sorted(maps.Keys(waits)) {
		if gaveUp[r] != nil && c.pointsAfter(waits[r]) == 0 {
			e.Ranks, e.Spans = append(e.Ranks, r), append(e.Spans, waits[r].Span)
		}
	}
	if len(e.Ranks) == 0 {
		return false
	}
	e.Why = fmt.Sprintf("%s %s of waiting for the main process and then timed out; rank 0 reports no time-out", RankList(e.Ranks), plural(len(e.Ranks), "tells", "tell"))
	e.Spans = clipSpans(e.Spans)
	c.eliminated(e, evidence.Hang)
	return true
}

// lost finds who is gone where every other rank reports that a peer is, or that it
// waited: the one rank that reports nothing, or the ranks of the one host that
// the others name. Who lost a neighbour tears down his own connections, so which
// peer is named counts only against a rank on another host than all that are named.
func (c *Case) lost(effects []*timeline.Item) *Elimination {
	if c.World < 2 || c.Complete() {
		return nil
	}
	seen, named := map[int]bool{}, map[string]bool{}
	e := &Elimination{Rank: evidence.None, Lost: true}
	for _, it := range effects {
		if it.Who.Rank < 0 || it.Kind != evidence.PeerClosed && it.Kind != evidence.CollTimeout {
			continue
		}
		if p := it.Attrs.Str("peer"); p != "" && it.Attrs.Str("what") != "local-peer" {
			named[p] = true
		}
		if !seen[it.Who.Rank] && it.Kind == evidence.PeerClosed {
			e.Spans = append(e.Spans, it.Span)
		}
		seen[it.Who.Rank] = true
	}
	if len(e.Spans) == 0 || len(seen) < 2 || c.World-len(seen) > len(seen) {
		return nil
	}
	e.Ranks, e.Spans = slices.Sorted(maps.Keys(seen)), clipSpans(e.Spans)
	host := c.hosts()
	var silent []int
	for r := range c.World {
		if seen[r] {
			continue
		}
		// Ranks count from 0 without gaps: one below the highest exists.
		if !c.Stated && !slices.Contains(c.Ranks, r) && r > e.Ranks[len(e.Ranks)-1] {
			return nil
		}
		silent = append(silent, r)
	}
	if len(silent) == 0 {
		return nil
	}
	on := host[silent[0]]
	for _, r := range silent {
		if len(silent) > 1 && (host[r] == "" || host[r] != on) {
			return nil
		}
	}
	match, others := false, len(named) > 0
	for p := range named {
		match = match || sameHost(p, on)
		known := false
		for _, r := range e.Ranks {
			known = known || sameHost(p, host[r])
		}
		others = others && known
	}
	if len(silent) == 1 {
		if on != "" && others && !match {
			return nil
		}
		e.Rank, e.Host = silent[0], on
		e.Why = fmt.Sprintf("%s %s that a peer is gone; rank %d reports nothing", RankList(e.Ranks), plural(len(e.Ranks), "reports", "report"), e.Rank)
		return e
	}
	if !match || len(named) > 1 {
		return nil
	}
	e.Host = on
	e.Why = fmt.Sprintf("%s %s that a peer is gone and %s the host %s, whose ranks (%s) report nothing", RankList(e.Ranks), plural(len(e.Ranks), "reports", "report"), plural(len(e.Ranks), "names", "name"), on, RankList(silent))
	return e
}

// hosts is where each rank ran, as its lines or the owner of its file say.
func (c *Case) hosts() map[int]string {
	out := map[int]string{}
	for _, p := range c.Attempt.Parts {
		if o := c.Timeline.Sources[p.Source].Artifact.Owner; o.Rank >= 0 && o.Host != "" {
			out[o.Rank] = o.Host
		}
	}
	for _, it := range c.Attempt.Items {
		if it.Who.Rank >= 0 && it.Who.Host != "" {
			out[it.Who.Rank] = it.Who.Host
		}
	}
	return out
}

// sameHost compares host names of which one may be fully qualified.
func sameHost(a, b string) bool {
	short := func(s string) string {
		name, _, _ := strings.Cut(s, ".")
		return strings.ToLower(name)
	}
	return a != "" && b != "" && (strings.EqualFold(a, b) || strings.Trim(a+b, "0123456789.") != "" && short(a) == short(b))
}

// eliminate names the one rank that is not among those that timed out, or the
// one that is behind all others of its process group: groups count for themselves.
func (c *Case) eliminate(timeouts []*timeline.Item) *Elimination {
	seen := map[int]bool{}
	var spans []evidence.Span
	for _, it := range timeouts {
		if r := it.Who.Rank; r >= 0 && !seen[r] {
			spans = append(spans, it.Span)
			seen[r] = true
		}
	}
	lowest := lowest(timeouts)
	ranks := slices.Sorted(maps.Keys(seen))
	if c.World > 1 && len(seen) == c.World-1 {
		for r := 0; r < c.World; r++ {
			// Ranks count from 0 without gaps: one below the highest exists.
			if !seen[r] && (c.Stated || slices.Contains(c.Ranks, r) || len(ranks) > 0 && r < ranks[len(ranks)-1]) {
				n := fmt.Sprint(c.World)
				if !c.Stated {
					n = "at least " + n
				}
				return &Elimination{Rank: r, Ranks: ranks, Spans: clipSpans(spans),
					Why: fmt.Sprintf("%d of %s ranks report that they waited in a collective; rank %d does not", len(seen), n, r)}
			}
		}
	}
	for _, g := range slices.Sorted(maps.Keys(lowest)) {
		of := lowest[g]
		if len(of) <= 2 {
			continue
		}
		members := slices.Sorted(maps.Keys(of))
		lo, at, n := int64(1)<<62, -1, 0
		var proof []evidence.Span
		for _, r := range members {
			proof = append(proof, of[r].Span)
			switch s := of[r].Attrs["seq"].I; {
			case s < lo:
				lo, at, n = s, r, 1
			case s == lo:
				n++
			}
		}
		if n != 1 {
			continue
		}
		where := ""
		if len(lowest) > 1 && g != "" {
			where = fmt.Sprintf(" in group %s", g)
		}
		return &Elimination{Rank: at, Ranks: slices.DeleteFunc(members, func(r int) bool { return r == at }), Spans: clipSpans(proof),
			Why: fmt.Sprintf("rank %d is at sequence number %d, behind every other rank that reports%s", at, lo, where)}
	}
	return nil
}

// lowest is the table of time-outs with the lowest sequence number, by group and rank.
func lowest(timeouts []*timeline.Item) map[string]map[int]*timeline.Item {
	out := map[string]map[int]*timeline.Item{}
	for _, it := range timeouts {
		s, ok := it.Attrs["seq"]
		if !ok || it.Who.Rank < 0 {
			continue
		}
		of := out[it.Attrs.Str("group")]
		if of == nil {
			of = map[int]*timeline.Item{}
			out[it.Attrs.Str("group")] = of
		}
		if old := of[it.Who.Rank]; old == nil || s.I < old.Attrs["seq"].I {
			of[it.Who.Rank] = it
		}
	}
	return out
}

// barred accuses the ranks of which a monitored barrier says that they did not
// come to it, unless one of them says itself that it waited elsewhere.
func (c *Case) barred(timeouts []*timeline.Item) bool {
	late := map[int][]evidence.Span{}
	for _, f := range c.Attempt.Facts {
		if f.Name == "dist.missing_ranks" {
			for _, r := range f.Value.L {
				late[int(r)] = append(late[int(r)], f.Span)
			}
		}
	}
	var waited []int
	for _, it := range timeouts {
		if it.Who.Rank >= 0 && late[it.Who.Rank] != nil {
			return false
		}
		if it.Who.Rank >= 0 && !slices.Contains(waited, it.Who.Rank) {
			waited = append(waited, it.Who.Rank)
		}
	}
	sort.Ints(waited)
	for i, r := range slices.Sorted(maps.Keys(late)) {
		it := c.silent(r, i)
		e := &Elimination{Rank: r, Ranks: waited, Spans: clipSpans(late[r]), Why: fmt.Sprintf("a monitored barrier names rank %d as one that did not come to it in time", r)}
		c.Eliminations[it] = e
		if i > 0 {
			c.Rivals, c.SameKind, c.Standing = append(c.Rivals, it), true, incident.Undecidable
			c.Basis = fmt.Sprintf("by elimination: a monitored barrier names %s as those that did not come to it in time", RankList(slices.Sorted(maps.Keys(late))))
			continue
		}
		c.Lead, c.LeadClass, c.Standing, c.Elimination = it, evidence.Hang, incident.Supported, e
		c.Basis = "by elimination: " + e.Why
	}
	return len(late) > 0
}

// waiting notes the ranks that timed out where all of them did so in the same
// collective: who waits is not the one that is waited for. A rank with an earlier
// number or another operation than its peers may be.
func (c *Case) waiting(timeouts []*timeline.Item) {
	type place struct {
		group, op, size string
		seq             int64
	}
	first := map[int]*timeline.Item{}
	table := lowest(timeouts)
	for _, g := range slices.Sorted(maps.Keys(table)) {
		for r, it := range table[g] {
			if x := first[r]; x == nil || it.Attrs["seq"].I < x.Attrs["seq"].I {
				first[r] = it
			}
		}
	}
	var at place
	var ranks []int
	for r, it := range first {
		p := place{it.Attrs.Str("group"), it.Attrs.Str("op"), it.Attrs["numel_in"].String(), it.Attrs["seq"].I}
		if len(ranks) > 0 && p != at {
			return
		}
		at = p
		ranks = append(ranks, r)
	}
	if len(ranks) == 0 {
		return
	}
	sort.Ints(ranks)
	c.Waiting = ranks
	name := fmt.Sprintf("sequence number %d", at.seq)
	if at.op != "" {
		name = at.op + ", " + name
	}
	c.Basis = fmt.Sprintf("only effects are in evidence: rank %d waited in a collective (%s) until its time-out", ranks[0], name)
	if len(ranks) > 1 {
		c.Basis = fmt.Sprintf("only effects are in evidence: %s waited in the same collective (%s), which sets none of them apart", RankList(ranks), name)
	}
	silent := c.World - len(ranks)
	switch {
	case c.Stated && silent > len(ranks): // too many to name, whatever number a log states
		c.Basis += fmt.Sprintf("; the other %d ranks report no time-out here", silent)
	case c.Stated && silent > 0:
		var absent []int
		for r := range c.World {
			if first[r] == nil {
				absent = append(absent, r)
			}
		}
		c.Basis += fmt.Sprintf("; %s %s no time-out here", RankList(absent), plural(len(absent), "reports", "report"))
	case c.Stated:
		c.Basis += "; they are all ranks of the job, so each came to it and it did not complete"
	default:
		c.Basis += fmt.Sprintf("; the rank that %s waited for left no words here", plural(len(ranks), "it", "they"))
	}
}

// AllCame reports whether all ranks that the job is known to have wait in the same
// collective.
func (c *Case) AllCame() bool {
	return c.OnlyEffects && c.Stated && c.World > 0 && len(c.Waiting) == c.World
}

// RankList names ranks with runs drawn together: ranks 0-3, 6.
func RankList(n []int) string {
	return plural(len(n), "rank ", "ranks ") + strings.ReplaceAll(evidence.RankRanges(n), ",", ", ")
}

func clipSpans(s []evidence.Span) []evidence.Span {
	if len(s) > 8 {
		return s[:8]
	}
	return s
}

// attribute gives the lead the rank that it does not state: the only rank in
// the same failure's other lines, else the only rank that ended with an error
// while the launcher stopped the rest.
func (c *Case) attribute() {
	l := c.Lead
	if l == nil || l.Source < 0 || l.Who.Rank != evidence.None {
		return
	}
	only := func(match func(*timeline.Item) bool) (int, *timeline.Item) {
		rank, by := evidence.None, (*timeline.Item)(nil)
		for _, it := range c.Attempt.Items {
			if it == l || it.Who.Rank == evidence.None || !match(it) {
				continue
			}
			if rank != evidence.None && rank != it.Who.Rank {
				return evidence.None, nil
			}
			if by == nil {
				rank, by = it.Who.Rank, it
			}
		}
		return rank, by
	}
	r, by := only(func(it *timeline.Item) bool {
		d := it.Span.Line - l.Span.Line
		return it.Kind == l.Kind && it.Source == l.Source && d >= 0 && d <= 20
	})
	if by == nil && role(l) == evidence.RoleFault && l.Attempt >= 0 {
		r, by = only(func(it *timeline.Item) bool {
			if it.Kind != evidence.Exited && it.Kind != evidence.LauncherSummary {
				return false
			}
			elsewhere := it.Who.Host != "" && l.Who.Host != "" && it.Who.Host != l.Who.Host
			return !stopped(it) && !elsewhere && (!aborted(it) || l.Kind == evidence.NativeCrash)
		})
		if other := c.sameFailureOf(l, r); other != nil { // the launcher noticed one of several
			return
		}
	}
	if by == nil {
		return
	}
	l.Who.Rank = r
	if l.Who.Host == "" && by.Kind == l.Kind {
		l.Who.Host = by.Who.Host
	}
	c.Basis += fmt.Sprintf("; its rank is known from line %d", by.Span.Line)
}

// sameFailureOf returns a failure of l's class that another rank than r reports.
func (c *Case) sameFailureOf(l *timeline.Item, r int) *timeline.Item {
	for _, it := range c.Attempt.Items {
		if role(it) == evidence.RoleFault && classOf(it) == classOf(l) && it.Who.Rank != evidence.None && it.Who.Rank != r && !it.Quoted && !c.recovered[it] {
			return it
		}
	}
	return nil
}

// launcherHint notes where a launcher's first observed failure names another
// rank than the evidence does.
func (c *Case) launcherHint() {
	if c.Lead == nil || c.Lead.Who.Rank < 0 {
		return
	}
	for _, it := range c.Attempt.Items {
		if it.Kind == evidence.LauncherSummary && it.Attrs["first_observed"].True() && it.Who.Rank >= 0 && it.Who.Rank != c.Lead.Who.Rank {
			proof := []evidence.Span{it.Span}
			if c.Lead.Source >= 0 {
				proof = append(proof, c.Lead.Span)
			} else if c.Elimination != nil { // no line is the lead's own
				proof = append(proof, c.Elimination.Spans...)
			}
			c.Notes = append(c.Notes, Note{
				Text:  fmt.Sprintf("The launcher names rank %d as first observed failure; the evidence puts rank %d first. The launcher reports what it noticed first.", it.Who.Rank, c.Lead.Who.Rank),
				Spans: proof})
			return
		}
	}
}

// stops weighs the stops whose sender is not named. A signal that comes after a
// process had ended by itself is how the rest was told to stop. Slurm's bare word
// that it cancelled a step stands for a stop from outside when there is no
// other candidate but signals, and everything else that could have led to it
// (the end of a process, a peer that waits or is gone) comes after it.
func (c *Case) stops(cands []*timeline.Item) []*timeline.Item {
	var own, effects []*timeline.Item
	for _, it := range c.Attempt.Items {
		switch {
		case it.Quoted || it.Attempt < 0:
		case role(it) == evidence.RoleExit && !stopped(it):
			own = append(own, it)
		case role(it) == evidence.RoleEffect && it.Kind != evidence.LauncherStop && it.Kind != evidence.WrapperError && it.Kind != evidence.Cancelled:
			effects = append(effects, it)
		}
	}
	cands = slices.DeleteFunc(cands, func(it *timeline.Item) bool {
		return it.Kind == evidence.SignalReceived && slices.ContainsFunc(own, func(x *timeline.Item) bool { return before(c.Timeline, x, it) })
	})
	if slices.ContainsFunc(cands, func(it *timeline.Item) bool { return it.Kind != evidence.SignalReceived }) {
		return cands
	}
	rest := append(own, effects...)
	for _, it := range c.Attempt.Items {
		if it.Kind != evidence.Cancelled || it.Quoted || it.Attempt < 0 || it.Attrs.Str("what") == "slurm-task-failure" || c.afterFinish(it) {
			continue
		}
		if !slices.ContainsFunc(rest, func(x *timeline.Item) bool { return !before(c.Timeline, it, x) }) {
			cands = append(cands, it)
		}
	}
	return cands
}

// stopped reports whether a process ended well or because it was told to stop.
func stopped(it *timeline.Item) bool {
	code, signal := it.Attrs["code"].I, it.Attrs["signal"].I
	return signal == 15 || code == -15 || code == 143 || code == 0 && signal == 0
}

// aborted reports whether a process ended by an abort, as the one does whose
// watchdog gave up waiting.
func aborted(it *timeline.Item) bool {
	code, signal := it.Attrs["code"].I, it.Attrs["signal"].I
	return signal == 6 || code == -6 || code == 134
}
