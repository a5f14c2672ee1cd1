package diagnose

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/inquest-dev/inquest/internal/evidence"
	"github.com/inquest-dev/inquest/internal/incident"
	"github.com/inquest-dev/inquest/internal/timeline"
)

// culprits are the ranks that others wait for and that wait for nobody, and those
// that did not complete what others did.
func (h *hang) culprits() []int {
	out := slices.Collect(maps.Keys(h.stuck))
	for pass := range 2 { // sure reasons first
		for _, e := range h.edges {
			sure := e.how == never || e.how == odd || e.how == absent
			waits := h.waiting[e.to] && e.how != odd
			if sure == (pass == 0) && e.how != queued && !waits && !slices.Contains(out, e.to) && h.stuck[e.to] == nil {
				out = append(out, e.to)
			}
		}
		if len(out) > 0 {
			break
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// why says what speaks against rank r, and who is ruled out by it.
func (h *hang) why(r int) (text string, sure bool, waiters []int, spans []evidence.Span) {
	best := -1
	for i, e := range h.edges {
		if e.to != r || e.how == queued {
			continue
		}
		if e.how != noAnswer {
			sure = true
		}
		if best < 0 || h.better(e, h.edges[best]) {
			best = i
		}
	}
	if best >= 0 {
		e := h.edges[best]
		for _, x := range h.edges {
			if x.to == r && x.group == e.group && x.how == e.how && x.seq == e.seq && !slices.Contains(waiters, x.from) {
				waiters = append(waiters, x.from)
				spans = append(spans, e.group.seats[x.from].item.Span)
			}
		}
		slices.Sort(waiters)
		spans = append([]evidence.Span{e.group.seats[r].item.Span}, spans...)
		text = e.accuse(r, waiters)
	}
	if g := h.stuck[r]; g != nil {
		s := g.seats[r]
		n, _ := s.open()
		q := g.completed(n)
		stuck := fmt.Sprintf("did not complete %s of %s, which it had enqueued and %s completed", callText(g, n), g.Label(), RankList(g.past(n)))
		spans = append(spans, s.item.Span, q.item.Span)
		if text == "" {
			return fmt.Sprintf("rank %d ", r) + stuck, true, g.past(n), spans
		}
		return text + "; it also " + stuck, true, waiters, spans
	}
	return text, sure, waiters, spans
}

// past lists who completed the collective n.
func (g *Group) past(n int64) []int {
	var out []int
	for _, r := range g.ranks() {
		if s := g.seats[r]; s.known && s.done >= n {
			out = append(out, r)
		}
	}
	return out
}

// better prefers, to tell of a rank, another call in the place, then a collective
// before a send or receive, then the call that holds who waits in it.
func (h *hang) better(a, b edge) bool {
	order := map[reason]int{odd: 0, never: 1, absent: 2, noAnswer: 3}
	if a.how != b.how {
		return order[a.how] < order[b.how]
	}
	held := func(e edge) bool {
		s := e.group.seats[e.from]
		return s.record != evidence.None && h.oldest[e.from] == s.record
	}
	return held(a) && !held(b)
}

func callText(g *Group, n int64) string {
	if op := g.op(n); op != "" {
		return fmt.Sprintf("%s, sequence number %d,", op, n)
	}
	return fmt.Sprintf("the collective with sequence number %d", n)
}

// accuse says what e shows of rank r.
func (e edge) accuse(r int, waiters []int) string {
	g := e.group
	switch e.how {
	case odd:
		mine, theirs := g.seats[r].calls[e.seq], g.seats[waiters[0]].calls[e.seq]
		return fmt.Sprintf("at sequence number %d of %s rank %d issued %s, %s %s", e.seq, g.Label(), r, mine.text(), RankList(waiters), theirs.text())
	case never:
		return fmt.Sprintf("rank %d never enqueued %s of %s, in which %s %s", r, callText(g, e.seq), g.Label(), RankList(waiters), plural(len(waiters), "waits", "wait"))
	}
	verb, other := "send", "receive"
	for _, w := range g.seats[waiters[0]].waits {
		if w.peer == r {
			verb = w.verb
			break
		}
	}
	if verb == "recv" {
		verb, other = "receive", "send"
	}
	end := fmt.Sprintf("never enqueued the %s", other)
	if e.how == noAnswer {
		end = fmt.Sprintf("has no open %s", other)
	}
	return fmt.Sprintf("rank %d %s that %s %s for in a %s of %s", r, end, RankList(waiters), plural(len(waiters), "waits", "wait"), verb, g.Label())
}

func (c called) text() string {
	t := c.op
	if c.in != "-" {
		t += " " + c.in
	}
	if c.dtype != "-" {
		t += " " + c.dtype
	}
	return t
}

// stragglers notes, for each group with timed calls, the collective for which the
// others waited longest: it runs from a rank's arrival to its end, so who came last ran it
// shortest. That rank came, which tells it from one that is missing.
func (h *hang) stragglers() []Note {
	const least, times = 1000.0, 10.0 // milliseconds, and by how much the others ran longer
	var out []Note
	for _, g := range h.groups {
		var best Note
		longest := 0.0
		for _, n := range slices.Sorted(maps.Keys(g.ops)) {
			last, shortest, next := -1, 0.0, 0.0
			timed := 0
			for _, r := range g.ranks() {
				c, ok := g.seats[r].calls[n]
				if !ok || c.ms < 0 || c.state != "completed" || rooted(c.op) {
					continue
				}
				timed++
				switch {
				case last < 0 || c.ms < shortest:
					last, shortest, next = r, c.ms, shortest
				case timed == 2 || c.ms < next:
					next = c.ms
				}
			}
			if timed < 3 || timed < len(g.Members) || next-shortest < max(least, times*shortest, longest) || next-shortest == longest {
				continue
			}
			longest = next - shortest
			best = Note{Text: fmt.Sprintf("Rank %d was slow, not missing: the others waited %.1f s at least for it in %s of %s, which all completed.", last, longest/1000, callText(g, n), g.Label()),
				Spans: []evidence.Span{g.seats[last].item.Span}}
		}
		if longest > 0 {
			out = append(out, best)
		}
	}
	return out[:min(len(out), maxNamed)]
}

// hung finds the initiating event by the dumps of the flight recorder: which ranks the others
// wait for. It reports whether it did.
func (c *Case) hung(ended []*timeline.Item) bool {
	h := c.hang
	if h == nil || len(ended) == 0 && !c.onlyBeside() || len(c.finishedAt) > 0 || c.closed {
		return false
	}
	culprits := h.culprits()
	if len(culprits) == 0 {
		return c.stalled()
	}
	c.accuse(h, culprits, "which of them failed first the dumps do not say")
	return true
}

// accuse lets the culprits of h lead: the first, with the others as its rivals.
func (c *Case) accuse(h *hang, culprits []int, several string) {
	for i, r := range culprits {
		why, sure, waiters, spans := h.why(r)
		it := c.silent(r, i)
		c.Eliminations[it] = &Elimination{Rank: r, Why: why, Spans: clipSpans(spans), Ranks: waiters}
		if i == 0 {
			c.Lead, c.LeadClass, c.Elimination = it, evidence.Hang, c.Eliminations[it]
			c.Standing, c.Basis = incident.Supported, "by elimination: "+why
		} else {
			c.Rivals = append(c.Rivals, it)
		}
		if !sure {
			c.Standing = incident.Undecidable
		}
	}
	if len(culprits) > 1 {
		c.SameKind, c.Standing = true, incident.Undecidable
		c.Basis = fmt.Sprintf("by elimination: %s hold up the others and wait for nobody themselves; %s", RankList(culprits), several)
	}
}

// states finds the initiating event by what the watchdogs print of each rank's last
// enqueued and completed work, where that sets ranks apart. Only groups with a name of their own
// count, "0(default_pg)" since PyTorch 2.5: before, the number of a group is one of
// the process, and others may have another group by it.
func (c *Case) states(items []*timeline.Item) bool {
	h := newHang()
	groups := map[string]*Group{}
	for _, it := range items {
		name, desc, own := strings.Cut(strings.TrimSuffix(it.Attrs.Str("group"), ")"), "(")
		if it.Who.Rank < 0 || !own || it.Quoted {
			continue
		}
		g := groups[it.Attrs.Str("group")]
		if g == nil {
			g = &Group{Name: name, Desc: desc, Seq: evidence.None, seats: map[int]*seat{}, printed: true}
			groups[it.Attrs.Str("group")] = g
			h.groups = append(h.groups, g)
		}
		g.print(it)
	}
	h.sort()
	for _, g := range h.groups {
		if !g.p2p {
			h.look(g)
		}
	}
	for _, g := range h.groups {
		if !g.p2p {
			h.compare(g)
		}
	}
	culprits := h.culprits()
	if len(culprits) == 0 || 2*len(culprits) > len(h.waiting) { // who is ahead of many is no proof against them
		return false
	}
	c.accuse(h, culprits, "which of them failed first their messages do not say")
	return true
}

// print adds what a message of the watchdog says to the seat of its rank: the
// latest is the one with the highest numbers.
func (g *Group) print(it *timeline.Item) {
	s := g.seats[it.Who.Rank]
	if s == nil {
		s = &seat{rank: it.Who.Rank, item: it, record: evidence.None, calls: map[int64]called{}}
		g.seats[it.Who.Rank] = s
	}
	if last, ok := it.Attrs["last_enqueued"]; ok && last.I >= 0 {
		done := it.Attrs["last_completed"].I
		if s.stated {
			done = max(done, s.done)
		}
		s.known, s.stated, s.enqueued, s.done = true, true, max(s.enqueued, last.I), done
	}
	if seq, ok := it.Attrs["seq"]; ok {
		if !s.stated && (!s.known || seq.I <= s.done) { // it gave up in this one
			s.done = seq.I - 1
		}
		s.known, s.enqueued = true, max(s.enqueued, seq.I)
		op := strings.ToLower(it.Attrs.Str("op"))
		s.calls[seq.I] = called{op: op, in: "-", dtype: "-", state: "scheduled", ms: -1}
		g.p2p = g.p2p || op == "send" || op == "recv" || op == "coalesced"
	}
}

// maxNamed is how many ranks of a circle are named.
const maxNamed = 4

// silent makes the item of a rank that left no words.
func (c *Case) silent(rank, n int) *timeline.Item {
	it := &timeline.Item{ID: "e0", Source: -1, Attempt: c.Index, Event: evidence.Event{Kind: "unknown", Who: evidence.Nobody(), Step: evidence.None}}
	if n > 0 {
		it.ID = fmt.Sprintf("e0.%d", n)
	}
	it.Who.Rank = rank
	if c.Eliminations == nil {
		c.Eliminations = map[*timeline.Item]*Elimination{}
	}
	return it
}

// onlyBeside reports whether the attempt has no output of the run itself: whatever is
// not a record beside it says nothing of training, of its course or its end.
func (c *Case) onlyBeside() bool {
	for _, p := range c.Attempt.Parts {
		src := &c.Timeline.Sources[p.Source]
		if evidence.Beside(src.Artifact.Kind) {
			continue
		}
		if len(src.Series) > 0 {
			return false
		}
		for i := range src.Events {
			if spec := evidence.SpecOf(src.Events[i].Kind); spec != nil && spec.Role != evidence.RoleContext {
				return false
			}
		}
	}
	return true
}

// stalled states what is open where ranks wait and the dumps set none of them
// apart: in a circle, for a rank without a dump, or all in one collective.
func (c *Case) stalled() bool {
	h := c.hang
	why, spans := h.circle()
	for _, g := range h.groups {
		if s := h.open[g]; why == "" && len(s) > 0 {
			why, spans = h.unanswered(g, s)
		}
	}
	if why == "" && len(h.waiting) > 0 {
		why, spans = h.anyOpen()
	}
	if why == "" {
		return false
	}
	it := c.silent(evidence.None, 0)
	c.Lead, c.LeadClass, c.Standing, c.Basis = it, evidence.Hang, incident.Undecidable, "no rank is set apart: "+why
	c.Elimination = &Elimination{Rank: evidence.None, Why: why, Spans: clipSpans(spans), Ranks: slices.Sorted(maps.Keys(h.waiting))}
	c.Eliminations[it] = c.Elimination
	return true
}

// anyOpen names the ranks with open calls, and proves it by one of each.
func (h *hang) anyOpen() (string, []evidence.Span) {
	ranks := slices.Sorted(maps.Keys(h.waiting))
	var spans []evidence.Span
	for _, g := range h.groups {
		for _, r := range g.Waiting {
			spans = append(spans, g.seats[r].item.Span)
		}
	}
	return fmt.Sprintf("%s %s calls that are not completed, and nothing in the dumps says for whom", RankList(ranks), plural(len(ranks), "has", "have")), spans
}

// unanswered says of a group in which everybody whose dump tells has come who is
// left.
func (h *hang) unanswered(g *Group, s []seat) (string, []evidence.Span) {
	var ranks, damaged []int
	var spans []evidence.Span
	for i := range s {
		ranks = append(ranks, s[i].rank)
		spans = append(spans, s[i].item.Span)
	}
	for _, r := range g.ranks() {
		if !g.seats[r].known {
			damaged = append(damaged, r)
			spans = append(spans, g.seats[r].item.Span)
		}
	}
	n, _ := s[0].open()
	text := fmt.Sprintf("%s %s in %s of %s", RankList(ranks), plural(len(ranks), "waits", "wait"), callText(g, n), g.Label())
	if past := g.past(n); len(past) > 0 {
		text += fmt.Sprintf("; %s completed it, which does not tell whether all that the others need had come", RankList(past))
	} else if len(g.NoDump)+len(damaged) == 0 {
		return text + "; all of its members whose dumps are here came to it, and none completed it", spans
	}
	if len(g.NoDump) > 0 {
		text += fmt.Sprintf("; whether %s came is not known, %s left no dump", RankList(g.NoDump), plural(len(g.NoDump), "it", "they"))
	}
	if len(damaged) > 0 {
		text += fmt.Sprintf("; whether %s came is not known, what %s of the group does not tell", RankList(damaged), plural(len(damaged), "its dump has", "their dumps have"))
	}
	return text, spans
}

// circle names the ranks that wait for each other.
func (h *hang) circle() (string, []evidence.Span) {
	next := map[int][]edge{}
	for _, e := range h.edges {
		if e.how == never || e.how == absent {
			next[e.from] = append(next[e.from], e)
		}
	}
	for _, from := range slices.Sorted(maps.Keys(next)) {
		reached, todo := map[int]edge{}, []int{from}
		for len(todo) > 0 {
			r := todo[0]
			todo = todo[1:]
			for _, e := range next[r] {
				if _, ok := reached[e.to]; !ok {
					reached[e.to] = e
					todo = append(todo, e.to)
				}
			}
		}
		if _, round := reached[from]; !round {
			continue
		}
		var parts []string
		var spans []evidence.Span
		for at, n := from, 0; n < maxNamed; n++ {
			e := reached[at]
			parts = append(parts, fmt.Sprintf("rank %d waits for rank %d in %s of %s", e.from, e.to, callText(e.group, e.seq), e.group.Label()))
			spans = append(spans, e.group.seats[e.from].item.Span)
			if at = e.from; at == from {
				break
			}
		}
		slices.Reverse(parts)
		return "ranks wait for each other: " + strings.Join(parts, "; "), spans
	}
	return "", nil
}

// Groups returns the process groups of which dumps tell, those first in which somebody is
// missing, behind or mismatched, then those in which ranks wait; nil without dumps.
func (c *Case) Groups() []*Group {
	if c.hang == nil {
		return nil
	}
	var first, rest []*Group
	for _, g := range c.hang.groups {
		switch {
		case len(g.Missing)+len(g.Behind)+len(g.Mismatched) > 0:
			first = append(first, g)
		case len(g.Waiting) > 0:
			rest = append(rest, g)
		}
	}
	return append(first, rest...)
}

// Late lists the ranks that the dumps accuse because they never enqueued what others
// wait in, and those that did not complete what others did; proof are the
// records that show it.
func (c *Case) Late() (lagging, stuck []int, proof []evidence.Span) {
	if c.hang == nil {
		return nil, nil, nil
	}
	for _, r := range c.hang.culprits() {
		_, sure, _, spans := c.hang.why(r)
		switch {
		case !sure:
			continue
		case c.hang.stuck[r] != nil:
			stuck = append(stuck, r)
		case slices.ContainsFunc(c.hang.edges, func(e edge) bool { return e.to == r && (e.how == never || e.how == absent) }):
			lagging = append(lagging, r)
		}
		proof = append(proof, spans...)
	}
	return lagging, stuck, clipSpans(proof)
}

// Mismatch says whether ranks issued different calls at one number of a group, as far as dumps
// tell: known is false where no two ranks recorded one number.
func (c *Case) Mismatch() (differ, known bool, proof []evidence.Span) {
	if c.hang == nil {
		return false, false, nil
	}
	for _, g := range c.hang.groups {
		if len(g.Mismatched) > 0 {
			return true, true, clipSpans(g.Spans)
		}
		known = known || g.compared()
	}
	return false, known, nil
}

// compared reports whether two ranks recorded the collective that one of them waits in.
func (g *Group) compared() bool {
	for _, r := range g.Waiting {
		n, ok := g.seats[r].open()
		for _, o := range g.seats {
			if _, both := o.calls[n]; ok && both && o.rank != r {
				return true
			}
		}
	}
	return false
}

// Recorded reports whether dumps of the flight recorder are in evidence.
func (c *Case) Recorded() bool { return c.hang != nil }

// NoDump lists the ranks that dumps of others name and that left none.
func (c *Case) NoDump() []int {
	if c.hang == nil {
		return nil
	}
	out := map[int]bool{}
	for _, g := range c.hang.groups {
		for _, r := range g.NoDump {
			if c.hang.dumped[r] == nil {
				out[r] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(out))
}
