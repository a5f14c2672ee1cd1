package diagnose

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/inquest-dev/inquest/internal/evidence"
	"github.com/inquest-dev/inquest/internal/incident"
	"github.com/inquest-dev/inquest/internal/timeline"
)

// A Group is what the dumps of the flight recorder show of one process group. Groups
// of one name and other members are others.
type Group struct {
	Name, Desc string
	Members    []int // nil where no dump names them
	Seq        int64 // of the collective that stands for it: the one waited in; None for sends and receives
	Op         string
	Waiting    []int // enqueued it and did not complete it
	Missing    []int // never enqueued it
	Behind     []int // enqueued it and did not complete it, which others did
	Mismatched []int // have another operation, sizes or types at this place
	NoDump     []int // members of whom no dump is in evidence
	Spans      []evidence.Span

	seats   map[int]*seat
	order   []int            // of seats
	ops     map[int64]string // operation of each collective that somebody recorded
	weight  int
	printed bool // its seats are from messages of the watchdog
	p2p     bool // some rank sends or receives in it
}

// A seat is where one rank is in one group.
type seat struct {
	rank           int
	item           *timeline.Item
	known          bool  // the next two are
	enqueued, done int64 // the last collective enqueued; completed up to this one
	calls          map[int64]called
	waits          []wait
	record         int64 // of the oldest call here that is not completed, None if there is none
	stated         bool  // the numbers are those that a watchdog printed
	stranger       bool  // its dump does not know the group; item is one of another group
}

// called is one collective as its rank issued it.
type called struct {
	op, in, dtype, state string
	ms                   float64 // how long it ran on this rank's device, -1 if that was not timed
}

// A wait is a send or receive that is not completed.
type wait struct {
	verb        string
	peer        int
	seq, record int64
}

// An edge says that one rank waits for another.
type edge struct {
	from, to int
	group    *Group
	seq      int64 // None for sends and receives without a number in common
	how      reason
}

type reason uint8

const (
	never    reason = iota // to has not enqueued the collective
	odd                    // to has enqueued another one in its place
	queued                 // to has enqueued it behind an older call that is not completed
	absent                 // to has no open receive for the send, or no send for the receive, and none of that number was made
	noAnswer               // the same, but it could be completed on its side
)

// mostMembers bounds the members of one group that are looked at.
const mostMembers = 1 << 16

// A hang is the state of all collectives at the time of the dumps.
type hang struct {
	groups  []*Group
	edges   []edge
	oldest  map[int]int64     // rank -> record number of its oldest call that is not completed
	stuck   map[int]*Group    // rank -> where it did not complete what others did
	waiting map[int]bool      // ranks with an open call
	dumped  map[int]*seat     // ranks of whom a dump is in evidence, with one of its seats
	open    map[*Group][]seat // where all that is known came, and nobody completed
}

func newHang() *hang {
	return &hang{oldest: map[int]int64{}, stuck: map[int]*Group{}, waiting: map[int]bool{}, dumped: map[int]*seat{}, open: map[*Group][]seat{}}
}

// recorded builds the state from the records of the attempt; nil if there are
// none. The rules follow from what the recorder's fields mean:
//
//   - Collectives of a group are matched by their number. Who has not enqueued a
//     number that another one waits in keeps it waiting.
//   - A collective in which all depend on all (all-reduce, all-gather,
//     reduce-scatter, barrier) is completed by one only if all had come. A rank whose
//     oldest open call others have completed is waiting for nobody: it is stuck itself. In
//     other collectives that is so once all the others have completed it.
//   - A rank that waits itself is explained by the one that it waits for.
//   - pg_status counts works of both sorts, so it counts only in groups without
//     sends and receives. What contradicts a completed collective does not count.
func (c *Case) recorded() *hang {
	h := newHang()
	h.seat(c.Attempt.Items)
	if len(h.dumped) == 0 {
		return nil
	}
	for _, g := range h.groups {
		h.strangers(g)
		h.look(g)
	}
	for _, g := range h.groups {
		h.mismatches(g)
		h.compare(g)
		h.pairs(g)
	}
	for r := range h.stuck {
		h.edges = slices.DeleteFunc(h.edges, func(e edge) bool { return e.from == r })
	}
	return h
}

// look notes who waits in g, and in what its oldest open call is.
func (h *hang) look(g *Group) {
	g.settle()
	for _, s := range g.seats {
		if _, open := s.open(); open || s.record != evidence.None {
			h.waiting[s.rank] = true
		}
		if s.record != evidence.None {
			if old, ok := h.oldest[s.rank]; !ok || s.record < old {
				h.oldest[s.rank] = s.record
			}
		}
	}
}

// seat reads the records into groups.
func (h *hang) seat(items []*timeline.Item) {
	type key struct{ name, members string }
	groups := map[key]*Group{}
	for _, it := range items {
		if it.Kind != evidence.CollRecord || it.Who.Rank < 0 {
			continue
		}
		if _, any := it.Attrs["group"]; !any { // a dump without any call
			h.dumped[it.Who.Rank] = newSeat(it)
			continue
		}
		k := key{it.Attrs.Str("group"), it.Attrs.Str("members")}
		g := groups[k]
		if g == nil {
			g = &Group{Name: k.name, Desc: it.Attrs.Str("desc"), Members: evidence.RanksOf(k.members, mostMembers), Seq: evidence.None, seats: map[int]*seat{}}
			groups[k] = g
			h.groups = append(h.groups, g)
		}
		s := newSeat(it)
		if old := g.seats[s.rank]; old == nil || s.last() > old.last() { // the later dump of the two
			g.seats[s.rank] = s
		}
		if h.dumped[s.rank] == nil {
			h.dumped[s.rank] = s
		}
		g.p2p = g.p2p || it.Attrs["p2p"].True()
	}
	h.sort()
}

func (h *hang) sort() {
	slices.SortFunc(h.groups, func(a, b *Group) int {
		return cmp.Or(evidence.Natural(a.Name, b.Name), strings.Compare(a.Name, b.Name), strings.Compare(a.Desc, b.Desc), slices.Compare(a.Members, b.Members))
	})
}

func newSeat(it *timeline.Item) *seat {
	s := &seat{rank: it.Who.Rank, item: it, record: evidence.None, calls: map[int64]called{}}
	if r, ok := it.Attrs["record"]; ok {
		s.record = r.I
	}
	if e, ok := it.Attrs["enqueued"]; ok {
		s.known, s.enqueued, s.done = true, e.I, it.Attrs["completed"].I
	}
	for f := range strings.SplitSeq(it.Attrs.Str("calls"), ";") {
		if p := strings.Fields(f); len(p) == 7 {
			n, _ := strconv.ParseInt(p[0], 10, 64)
			ms, err := strconv.ParseFloat(p[6], 64)
			if err != nil {
				ms = -1
			}
			s.calls[n] = called{p[1], p[2], p[4], p[5], ms}
		}
	}
	for f := range strings.SplitSeq(it.Attrs.Str("waits"), ";") {
		if p := strings.Fields(f); len(p) == 4 {
			w := wait{verb: p[0]}
			w.peer, _ = strconv.Atoi(p[1])
			w.seq, _ = strconv.ParseInt(p[2], 10, 64)
			w.record, _ = strconv.ParseInt(p[3], 10, 64)
			s.waits = append(s.waits, w)
		}
	}
	return s
}

// last is the highest number that the seat states, of whatever work.
func (s *seat) last() int64 { return max(s.item.Attrs["last_enqueued"].I, s.item.Attrs["enqueued"].I) }

// open is the collective that s has enqueued and not completed first.
func (s *seat) open() (int64, bool) { return s.done + 1, s.known && s.enqueued > s.done }

// settle decides what is known of each seat.
func (g *Group) settle() {
	for _, s := range g.seats {
		if s.stranger || g.printed {
			continue
		}
		cut := s.item.Attrs["cut"].True()
		last, stated := s.item.Attrs["last_enqueued"]
		switch {
		case g.p2p || !stated:
			s.known = s.known && !cut
		case cut || !s.known:
			s.known, s.enqueued, s.done = true, last.I, s.item.Attrs["last_completed"].I
		default:
			s.enqueued = max(s.enqueued, last.I)
		}
	}
	g.order, g.ops = slices.Sorted(maps.Keys(g.seats)), map[int64]string{}
	most := int64(-1)
	for _, r := range g.order {
		s := g.seats[r]
		for n, c := range s.calls {
			if g.ops[n] == "" {
				g.ops[n] = c.op
			}
		}
		if s.known {
			most = max(most, s.done)
		}
	}
	for _, s := range g.seats { // what somebody completed, everybody had enqueued
		if s.known && most > s.enqueued && !rooted(g.op(s.enqueued+1)) {
			s.known = false
		}
	}
}

// strangers seats the members of g whose own dump knows nothing of it. The recorder
// notes a group with its first call, so in a dump that is whole and lists its
// groups they made none.
func (h *hang) strangers(g *Group) {
	for _, m := range g.Members {
		d := h.dumped[m]
		switch {
		case g.seats[m] != nil:
		case d == nil:
			g.NoDump = append(g.NoDump, m)
		case !d.item.Attrs["cut"].True() && (d.item.Attrs.Str("members") != "" || d.item.Attrs.Str("group") == ""):
			g.seats[m] = &seat{rank: m, item: d.item, known: true, record: evidence.None, stranger: true}
		}
	}
}

// everyone reports whether the members of g are known: named, or, of the default
// group, all ranks.
func (g *Group) everyone() bool {
	return g.printed || g.Members != nil || g.Desc == "default_pg" || g.Name == "0" && g.Desc == ""
}

// op is the operation that the ranks have at n.
func (g *Group) op(n int64) string { return g.ops[n] }

func (g *Group) ranks() []int { return g.order }

// Label names g for people.
func (g *Group) Label() string {
	name := "process group " + g.Name
	if d := g.Desc; d != "" && d != "undefined" && d != g.Name {
		name = d + " (group " + g.Name + ")"
	}
	return name
}

// rooted reports whether an operation can be completed by some before all have
// come. Of an operation that is not known it is assumed.
func rooted(op string) bool {
	for _, all := range []string{"all_reduce", "allreduce", "all_gather", "_all_gather", "allgather", "_allgather", "reduce_scatter", "_reduce_scatter", "barrier", "all_barrier"} {
		if strings.HasPrefix(op, all) {
			return false
		}
	}
	return true
}

// compare finds who is missing from and behind in the collectives of g.
func (h *hang) compare(g *Group) {
	if !g.everyone() {
		return
	}
	for _, r := range g.ranks() {
		s := g.seats[r]
		n, waits := s.open()
		if !waits {
			continue
		}
		if q := g.completed(n); q != nil {
			switch held := h.heldHere(s, n); {
			case held && (!rooted(g.op(n)) || len(g.NoDump) == 0 && len(g.past(n)) == len(g.seats)-1):
				h.stuck[r] = g
				g.Behind = append(g.Behind, r)
				g.note(weighsBehind, n, g.op(n), s.item.Span, q.item.Span)
			case held:
				h.open[g] = append(h.open[g], *s)
			}
			continue
		}
		g.Waiting = append(g.Waiting, r)
		late := 0
		for _, m := range g.ranks() {
			o := g.seats[m]
			switch {
			case m == r || !o.known:
			case o.enqueued < n:
				h.edges = append(h.edges, edge{r, m, g, n, never})
				late++
			case h.heldHere(s, n) && o.record != evidence.None && h.oldest[m] < o.record:
				h.edges = append(h.edges, edge{r, m, g, n, queued})
				late++
			}
		}
		if late == 0 && h.heldHere(s, n) {
			h.open[g] = append(h.open[g], *s)
		}
		g.note(weighsWaiting, n, g.op(n), s.item.Span)
	}
	for _, e := range h.edges {
		if e.group == g && e.how == never && !slices.Contains(g.Missing, e.to) {
			g.Missing = append(g.Missing, e.to)
			g.note(weighsMissing, e.seq, g.op(e.seq), g.seats[e.to].item.Span)
		}
	}
	slices.Sort(g.Missing)
	g.Behind = slices.DeleteFunc(g.Behind, func(r int) bool { return slices.Contains(g.Missing, r) })
}

// note lets the collective n stand for g, unless one of more weight does: a
// mismatch, then one that somebody is missing from, then one that somebody did not
// complete, then one that ranks wait in.
func (g *Group) note(weight int, n int64, op string, spans ...evidence.Span) {
	if weight > g.weight || g.Op == "" {
		g.weight, g.Seq, g.Op = weight, n, op
	}
	g.Spans = append(g.Spans, spans...)
}

const (
	weighsWaiting = iota
	weighsBehind
	weighsMissing
	weighsMismatch
)

// completed returns a seat that has completed the collective n.
func (g *Group) completed(n int64) *seat {
	for _, r := range g.ranks() {
		if s := g.seats[r]; s.known && s.done >= n {
			return s
		}
	}
	return nil
}

// heldHere reports whether the collective n of s is the oldest open call of its
// rank, in any group.
func (h *hang) heldHere(s *seat, n int64) bool {
	if s.record == evidence.None { // no entries: the order of calls is not known
		return len(h.oldest) == 0
	}
	_, collective := s.calls[n]
	return collective && h.oldest[s.rank] == s.record
}

// mismatches finds the first collective of g at which ranks issued different
// calls, if somebody waits there or behind it.
func (h *hang) mismatches(g *Group) {
	at := map[int64]map[string][]int{} // number -> shape -> ranks
	waits := int64(-1)
	for _, r := range g.ranks() {
		s := g.seats[r]
		if _, ok := s.open(); ok {
			waits = max(waits, s.enqueued)
		}
		for n, call := range s.calls {
			if at[n] == nil {
				at[n] = map[string][]int{}
			}
			sh := call.shape()
			at[n][sh] = append(at[n][sh], r)
		}
	}
	for _, n := range slices.Sorted(maps.Keys(at)) {
		sides := at[n]
		if n > waits || len(sides) < 2 || sides[""] != nil {
			continue
		}
		h.part(g, n, sides)
		return
	}
}

// shape is what all ranks of a group must have in common at one number: "" where
// they may differ.
func (c called) shape() string {
	sized := false
	switch op := c.op; {
	case op == "" || strings.HasPrefix(op, "coalesced") || strings.HasPrefix(op, "gather") || strings.HasPrefix(op, "scatter"):
		return ""
	case strings.HasPrefix(op, "all_to_all") || strings.HasPrefix(op, "alltoall"), op == "all_gather", op == "reduce_scatter":
	default:
		sized = true
	}
	if sized {
		return c.op + " " + c.in + " " + c.dtype
	}
	return c.op
}

// part sets the ranks that differ from most apart; without a majority all differ.
func (h *hang) part(g *Group, n int64, sides map[string][]int) {
	all, most := 0, ""
	for _, sh := range slices.Sorted(maps.Keys(sides)) {
		all += len(sides[sh])
		if most == "" || len(sides[sh]) > len(sides[most]) {
			most = sh
		}
	}
	if 2*len(sides[most]) <= all {
		most = ""
	}
	op := ""
	for _, sh := range slices.Sorted(maps.Keys(sides)) {
		ranks := sides[sh]
		if op == "" || sh == most {
			op = g.seats[ranks[0]].calls[n].op
		}
		if sh == most {
			continue
		}
		for _, m := range ranks {
			g.Mismatched = append(g.Mismatched, m)
			g.Spans = append(g.Spans, g.seats[m].item.Span)
			for _, r := range g.ranks() {
				if r != m && !slices.Contains(ranks, r) {
					h.edges = append(h.edges, edge{r, m, g, n, odd})
				}
			}
		}
	}
	g.note(weighsMismatch, n, op)
	slices.Sort(g.Mismatched)
	g.Mismatched = slices.Compact(g.Mismatched)
}

// pairs finds sends and receives whose other end is missing.
func (h *hang) pairs(g *Group) {
	for _, r := range g.ranks() {
		seen := map[int]bool{}
		for _, w := range g.seats[r].waits {
			if seen[w.peer] || w.peer == r {
				continue
			}
			seen[w.peer] = true
			g.note(weighsWaiting, w.seq, w.verb)
			o := g.seats[w.peer]
			if o == nil || o.item.Attrs["cut"].True() || o.stranger {
				continue
			}
			if how, ok := h.answer(g, o, r, w); ok {
				h.edges = append(h.edges, edge{r, w.peer, g, w.seq, how})
				if how == absent && !slices.Contains(g.Missing, w.peer) {
					g.Missing = append(g.Missing, w.peer)
					g.note(weighsMissing, w.seq, w.verb, g.seats[r].item.Span, o.item.Span)
				}
			}
			if !slices.Contains(g.Waiting, r) {
				g.Waiting = append(g.Waiting, r)
			}
		}
	}
	slices.Sort(g.Missing)
	slices.Sort(g.Waiting)
}

// answer says whether the rank of o is what keeps w of rank r waiting. In a group
// of two without collectives both ends count the same sends and receives, so the
// numbers tell whether it was made at all.
func (h *hang) answer(g *Group, o *seat, r int, w wait) (reason, bool) {
	for _, x := range o.waits {
		if x.peer == r && x.verb != w.verb {
			return queued, h.oldest[o.rank] < x.record
		}
	}
	last, stated := o.item.Attrs["last_enqueued"]
	alone := len(g.Members) == 2 && len(o.calls) == 0 && len(g.seats[r].calls) == 0
	if alone && stated && last.I >= w.seq {
		return absent, false
	}
	if alone && stated && last.I == w.seq-1 { // further apart, the two count in different ways
		return absent, true
	}
	return noAnswer, true
}

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

// onlyBeside reports whether the attempt has no output of the run itself.
func (c *Case) onlyBeside() bool {
	for _, p := range c.Attempt.Parts {
		if !evidence.Beside(c.Timeline.Sources[p.Source].Artifact.Kind) {
			return false
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
