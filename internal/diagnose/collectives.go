package diagnose

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/inquest-dev/inquest/internal/evidence"
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

// standstill builds the state from the records of the attempt; nil if there are
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
func (c *Case) standstill() *hang {
	h := newHang()
	h.seat(oneJob(c.Attempt.Items))
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

// oneJob returns the records, of one folder only where a rank has dumps in several: they
// are of several launches, which must not be held against each other. It is the
// folder with the latest call.
func oneJob(items []*timeline.Item) []*timeline.Item {
	var out []*timeline.Item
	in := map[int]string{} // rank -> folder
	latest, several := map[string]time.Time{}, false
	for _, it := range items {
		if it.Kind != evidence.CollRecord || it.Who.Rank < 0 {
			continue
		}
		out = append(out, it)
		dir := folder(it.Span.Artifact)
		if old, ok := in[it.Who.Rank]; ok && old != dir {
			several = true
		}
		in[it.Who.Rank] = dir
		if at, ok := latest[dir]; !ok || it.Stamp.Time.After(at) {
			latest[dir] = it.Stamp.Time
		}
	}
	if !several {
		return out
	}
	last := ""
	for _, dir := range slices.Sorted(maps.Keys(latest)) {
		if last == "" || latest[dir].After(latest[last]) {
			last = dir
		}
	}
	return slices.DeleteFunc(out, func(it *timeline.Item) bool { return folder(it.Span.Artifact) != last })
}

// folder is where an artifact lies; an archive counts as one.
func folder(path string) string { return path[:strings.LastIndexAny(path, "/!")+1] }

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
