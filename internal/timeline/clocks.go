package timeline

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/inquest-dev/inquest/internal/evidence"
	"github.com/inquest-dev/inquest/internal/lazyre"
)

// What is assumed of clocks, beside what the artifacts show.
const (
	// Skew is by how much the clocks of two hosts may disagree where no shared
	// event bounds them. Clusters that keep time agree to milliseconds; one whose
	// time service has failed drifts for months, and is off by minutes: ten on either side
	// are allowed for.
	Skew = 20 * time.Minute
	// Zones is by how much written times may differ beside that where they name no
	// zone: from UTC-12 to UTC+14.
	Zones = 26 * time.Hour
	// drift is how fast two clocks may move apart, in seconds per second: a time
	// service slews by at most 500 ppm, bare quartz is off by less than 100.
	drift = 5e-4
	// Ranks enter a collective within this unless one is missing from it.
	entered = time.Minute
	// A communicator is complete on all its ranks within this.
	joined = 30 * time.Second
	// The daemons of all hosts of a job record one cancellation within this.
	cancelled = 10 * time.Second
	sameHost  = time.Second
)

// A Tie is what shared events tell of two clocks.
type Tie struct {
	Offset time.Duration // how far the second clock is ahead of the first
	Error  time.Duration // the offset is known to this, at At
	At     time.Time     // by the first clock: of the last shared event
	Basis  string        // "37 shared steps"; empty where by holds those of two halves, over a third clock
	by     [2]string
}

// Words say from what the tie is known.
func (t *Tie) Words() string {
	if t.by[0] == "" {
		return t.Basis
	}
	return t.by[0] + " and, over another host, " + t.by[1]
}

// A clockName is whose times can be compared as they stand: those of one host that
// name a zone, or those of one host that name none. Where the host is not known, each
// rank of each artifact has a clock of its own.
type clockName struct {
	host         string
	source, rank int // None where the host is known
	zoned        bool
}

// clocks holds what was printed of events that several clocks saw.
type clocks struct {
	names []clockName
	index map[clockName]int
	marks []map[markKey]mark     // by clock
	steps []map[int][]stepSeen   // by clock and attempt, ascending
	ranks []map[int]map[int]bool // by clock and attempt: who printed them
	ties  map[[2]int]tied
	hubs  []int    // clocks that saw the most, at most maxHubs
	near  [][]tied // by hub: of each clock against it; nil until asked for
}

// maxHubs bounds the clocks over which two others are tied that share no event, and
// maxPaired the clocks that are compared each with each: beyond, all are compared with the
// hubs only, since failures of a thousand ranks ask for a million pairs.
const (
	maxHubs   = 8
	maxPaired = 256
)

type tied struct {
	Tie
	ok bool
}

// A markKey names one thing that happened for several hosts at once.
type markKey struct {
	kind    string
	attempt int
	id      string
}

// A mark is when a clock saw it: the first and the last of its processes.
type mark struct {
	first, last time.Time
	err         time.Duration
}

// A stepSeen is when the processes under one clock printed a step, first and last.
type stepSeen struct {
	step        int64
	first, last time.Time
	err         time.Duration
}

func usable(s evidence.Stamp) bool { return s.Known() && s.Clock == "wall" && !s.NoDate }

func (c *clocks) of(n clockName) int {
	i, ok := c.index[n]
	if !ok {
		i = len(c.names)
		c.names = append(c.names, n)
		c.index[n] = i
		c.marks = append(c.marks, map[markKey]mark{})
		c.steps = append(c.steps, map[int][]stepSeen{})
		c.ranks = append(c.ranks, map[int]map[int]bool{})
	}
	return i
}

// agentFolder matches the logs that one torchrun agent redirects: it makes the folder
// of the run itself, with a random name, on its own host.
var agentFolder = lazyre.New(`^(.*[^/]_[a-z0-9_]{8})/attempt_\d+/\d+/[^/]+$`)

// clockOf is the clock of a time of a rank on host in a source. Where the host has no
// name, the logs of one agent still are of one host.
func (t *Timeline) clockOf(host string, source, rank int, s evidence.Stamp) clockName {
	if host == "" {
		if m := agentFolder.FindStringSubmatch(t.Sources[source].Artifact.Path); m != nil {
			host = "agent " + m[1]
		}
	}
	if host != "" {
		source, rank = evidence.None, evidence.None
	}
	return clockName{host, source, rank, s.Zone != ""}
}

// compareClocks collects the events that several hosts saw:
//
//  1. steps whose loss different ranks of one attempt printed: in synchronous training a
//     collective stands between step n-1 of any rank and step n of any other, and a loss
//     is not printed before it is computed. Logs of no rank, or of the same rank, may be runs
//     of their own;
//  2. time-outs in one collective, moved back to when the wait began;
//  3. communicators that all ranks join;
//  4. records of one cancellation by the daemons of several hosts.
func (t *Timeline) compareClocks() {
	c := &clocks{index: map[clockName]int{}, ties: map[[2]int]tied{}}
	t.clocks = c
	year := t.year()
	for _, it := range t.Items {
		it.clock = -1
		s := began(it)
		if !s.Known() || s.Clock != "wall" {
			continue
		}
		it.clock = c.of(t.clockOf(it.Who.Host, it.Source, it.Who.Rank, s))
		if k, ok := markOf(it); ok && usable(s) && !it.Quoted {
			at := dated(s, year)
			m, have := c.marks[it.clock][k]
			if !have {
				m = mark{at, at, s.Error}
			}
			if at.Before(m.first) {
				m.first = at
			}
			if at.After(m.last) {
				m.last = at
			}
			m.err = max(m.err, s.Error)
			c.marks[it.clock][k] = m
		}
	}
	t.seeSteps(year)
	weight := func(i int) int {
		n := len(c.marks[i])
		for _, s := range c.steps[i] {
			n += len(s)
		}
		return n
	}
	for i := range c.names {
		c.hubs = append(c.hubs, i)
	}
	slices.SortStableFunc(c.hubs, func(a, b int) int { return cmp.Compare(weight(b), weight(a)) })
	c.hubs = c.hubs[:min(len(c.hubs), maxHubs)]
}

// markOf names the shared event that it tells of.
func markOf(it *Item) (markKey, bool) {
	switch it.Kind {
	case evidence.CollTimeout:
		if s, ok := it.Attrs["seq"]; ok && it.Attempt >= 0 && it.Who.Rank != evidence.None {
			return markKey{"time-outs of one collective", it.Attempt, fmt.Sprint(it.Attrs.Str("group"), "/", s.I, "/", it.Attrs.Str("op"))}, true
		}
	case evidence.RankInfo:
		if it.Attrs["joined"].True() && it.Attempt >= 0 {
			return markKey{"one communicator", it.Attempt, it.Attrs["world"].String()}, true
		}
	case evidence.TimeLimit, evidence.Preempted, evidence.Cancelled, evidence.NodeFailure:
		if id := StepID(it); id != "" {
			return markKey{"one cancellation", 0, id}, true
		}
	}
	return markKey{}, false
}

// StepID is the job or step that a record of a cancellation names, "" if it is none.
func StepID(it *Item) string {
	_, rest, ok := strings.Cut(it.Text, "*** ")
	if !ok {
		return ""
	}
	f := strings.Fields(rest)
	if len(f) < 2 || f[0] != "STEP" && f[0] != "JOB" {
		return ""
	}
	return f[0] + " " + f[1]
}

// year is the year of the first time that has one, 0 if none has.
func (t *Timeline) year() int {
	for _, it := range t.Items {
		if usable(it.Stamp) && !it.Stamp.NoYear {
			return it.Stamp.Time.Year()
		}
	}
	return 0
}

// dated gives a time without a year that of the others.
func dated(s evidence.Stamp, year int) time.Time {
	if s.NoYear && year > 0 {
		x := s.Time
		return time.Date(year, x.Month(), x.Day(), x.Hour(), x.Minute(), x.Second(), x.Nanosecond(), time.UTC)
	}
	return s.Time
}

// seeSteps files the times at which ranks printed the loss of a step. Lines of a rank
// that works on a host that is known count for that host; so do those of a host's own log
// that name no rank, for the ranks that it names elsewhere.
func (t *Timeline) seeSteps(year int) {
	c := t.clocks
	type seenBy struct{ clock, attempt int }
	all := map[seenBy]map[int64]stepSeen{}
	in := map[int]map[int]bool{} // by source: the ranks whose lines it has
	for _, it := range t.Items {
		if r := it.Who.Rank; r != evidence.None {
			if in[it.Source] == nil {
				in[it.Source] = map[int]bool{}
			}
			in[it.Source][r] = true
		}
	}
	for n, a := range t.Attempts {
		for _, x := range a.Series {
			src, ok := t.sourceOf(x.Key.Artifact)
			if !ok || x.Key.Phase == "eval" || x.Key.Name != "loss" && x.Key.Name != "grad_norm" || evidence.Beside(t.Sources[src].Artifact.Kind) {
				continue
			}
			rank := t.rankOf(src, x.Key.Rank)
			who := in[src]
			if rank != evidence.None {
				who = map[int]bool{rank: true}
			}
			if len(who) == 0 {
				continue
			}
			host := t.hostOf[rank]
			if host == "" {
				host = cmp.Or(t.said[src], t.named(t.Sources[src].Artifact.Owner.Host))
			}
			if host == "" && rank == evidence.None {
				continue // a log of several ranks, and of who knows which hosts
			}
			for p := range x.All() {
				s := p.When()
				if p.Step < 0 || !usable(s) {
					continue
				}
				at := dated(s, year)
				k := seenBy{c.of(t.clockOf(host, src, rank, s)), n}
				if all[k] == nil {
					all[k] = map[int64]stepSeen{}
					if c.ranks[k.clock][n] == nil {
						c.ranks[k.clock][n] = map[int]bool{}
					}
				}
				for r := range who {
					c.ranks[k.clock][n][r] = true
				}
				v, have := all[k][p.Step]
				if !have {
					v = stepSeen{p.Step, at, at, s.Error}
				}
				if at.Before(v.first) {
					v.first = at
				}
				if at.After(v.last) {
					v.last = at
				}
				v.err = max(v.err, s.Error)
				all[k][p.Step] = v
			}
		}
	}
	for k, seen := range all {
		var list []stepSeen
		for _, v := range seen {
			list = append(list, v)
		}
		slices.SortFunc(list, func(a, b stepSeen) int { return cmp.Compare(a.step, b.step) })
		c.steps[k.clock][k.attempt] = list
	}
}

// A limit says that the offset of the second clock is at most, or at least, so much.
type limit struct {
	value time.Duration
	at    time.Time // by the first clock
	upper bool
	what  string
}

// tie returns what is known of the offset of clock b against clock a.
func (c *clocks) tie(a, b int) (Tie, bool) {
	if a < 0 || b < 0 || a == b {
		return Tie{}, false
	}
	if len(c.names) > maxPaired && !slices.Contains(c.hubs, a) && !slices.Contains(c.hubs, b) {
		v := c.over(a, b)
		return v.Tie, v.ok
	}
	v := c.pair(a, b)
	if !v.ok {
		v = c.over(a, b)
	}
	return v.Tie, v.ok
}

// pair is direct, remembered.
func (c *clocks) pair(a, b int) tied {
	v, ok := c.ties[[2]int{min(a, b), max(a, b)}]
	if !ok {
		v.Tie, v.ok = c.direct(min(a, b), max(a, b))
		c.ties[[2]int{min(a, b), max(a, b)}] = v
	}
	if a > b {
		v.At = v.At.Add(v.Offset)
		v.Offset = -v.Offset
	}
	return v
}

// over ties two clocks by a third one that shares events with both.
func (c *clocks) over(a, b int) (best tied) {
	for len(c.near) < len(c.hubs) {
		h := c.hubs[len(c.near)]
		all := make([]tied, len(c.names))
		for i := range all {
			if i != h {
				all[i] = c.pair(h, i)
			}
		}
		c.near = append(c.near, all)
	}
	for i := range c.hubs {
		p, q := &c.near[i][a], &c.near[i][b]
		if !p.ok || !q.ok {
			continue
		}
		e := p.Error + q.Error + time.Duration(drift*float64(p.At.Sub(q.At).Abs()))
		if !best.ok || e < best.Error {
			best = tied{Tie{Offset: q.Offset - p.Offset, Error: e, At: p.At.Add(p.Offset), by: [2]string{p.Basis, q.Basis}}, true}
		}
	}
	return best
}

// direct ties two clocks by the events that both saw. Each event limits the offset from
// above or below, the more loosely the longer before the last one it was. What the most
// limits allow is the result; none, if more than one in ten contradict it or one of
// the last does: then a clock was set, or the events are not the same.
func (c *clocks) direct(a, b int) (Tie, bool) {
	var limits []limit
	shared := map[string]int{}
	for n, p := range c.steps[a] {
		q := c.steps[b][n]
		if share(c.ranks[a][n], c.ranks[b][n]) {
			continue
		}
		l, both := stepLimits(p, q)
		limits = append(limits, l...)
		shared["steps"] += both
	}
	for k, p := range c.marks[a] {
		q, ok := c.marks[b][k]
		if !ok {
			continue
		}
		width := map[string]time.Duration{"time-outs of one collective": entered, "one communicator": joined, "one cancellation": cancelled}[k.kind]
		e := p.err + q.err
		limits = append(limits, limit{q.first.Sub(p.last) + width + e, p.last, true, k.kind}, limit{q.last.Sub(p.first) - width - e, p.last, false, k.kind})
		shared[k.kind]++
	}
	if len(limits) == 0 {
		return Tie{}, false
	}
	end := limits[0].at
	for _, l := range limits {
		if l.at.After(end) {
			end = l.at
		}
	}
	for i := range limits {
		w := time.Duration(drift * float64(end.Sub(limits[i].at)))
		if !limits[i].upper {
			w = -w
		}
		limits[i].value += w
	}
	lo, hi, ok := agree(limits, end)
	if !ok || lo.Abs() > Zones+Skew { // such an offset is another year's or day's, not a clock's
		return Tie{}, false
	}
	return Tie{Offset: lo + (hi-lo)/2, Error: (hi - lo + 1) / 2, At: end, Basis: told(shared)}, true
}

// share reports whether the two have a rank in common.
func share(a, b map[int]bool) bool {
	for r := range a {
		if b[r] {
			return true
		}
	}
	return false
}

func told(shared map[string]int) string {
	var parts []string
	if n := shared["steps"]; n > 0 {
		parts = append(parts, fmt.Sprintf("%d shared steps", n))
	}
	for _, k := range []string{"time-outs of one collective", "one communicator", "one cancellation"} {
		if shared[k] > 0 {
			parts = append(parts, k)
		}
	}
	return strings.Join(parts, ", ")
}

// stepLimits gives what two lists of steps say: a step of one was printed after
// every earlier step of the other. both counts the steps that stand in both lists.
func stepLimits(p, q []stepSeen) (out []limit, both int) {
	for i, j := 0, 0; i < len(p) && j < len(q); {
		switch {
		case p[i].step == q[j].step:
			both++
			i++
			j++
		case p[i].step < q[j].step:
			i++
		default:
			j++
		}
	}
	if both < 2 {
		return nil, 0
	}
	after := func(list []stepSeen, step int64) *stepSeen {
		n, found := slices.BinarySearchFunc(list, step, func(s stepSeen, at int64) int { return cmp.Compare(s.step, at) })
		if found {
			n++
		}
		if n == len(list) {
			return nil
		}
		return &list[n]
	}
	for i := range p {
		if x := after(q, p[i].step); x != nil {
			out = append(out, limit{x.first.Sub(p[i].last) + x.err + p[i].err, p[i].last, true, "steps"})
		}
	}
	for i := range q {
		if x := after(p, q[i].step); x != nil {
			out = append(out, limit{q[i].last.Sub(x.first) - x.err - q[i].err, x.first, false, "steps"})
		}
	}
	return out, both
}

// agree finds the range of offsets that the most limits allow.
func agree(limits []limit, end time.Time) (lo, hi time.Duration, ok bool) {
	type edge struct {
		at    time.Duration
		upper bool
	}
	var edges []edge
	uppers, lowers := 0, 0
	for _, l := range limits {
		edges = append(edges, edge{l.value, l.upper})
		if l.upper {
			uppers++
		} else {
			lowers++
		}
	}
	if uppers == 0 || lowers == 0 {
		return 0, 0, false
	}
	slices.SortFunc(edges, func(a, b edge) int {
		if a.at != b.at {
			return cmp.Compare(a.at, b.at)
		}
		if a.upper != b.upper { // a lower limit begins where an upper one ends
			if a.upper {
				return 1
			}
			return -1
		}
		return 0
	})
	// From the left, all upper limits hold and no lower one does.
	holds, best := uppers, -1
	for i, e := range edges {
		if e.upper {
			holds--
			continue
		}
		holds++
		if holds > best && i+1 < len(edges) {
			best, lo, hi = holds, e.at, edges[i+1].at
		}
	}
	if best < 0 || (len(limits)-best)*10 > len(limits) {
		return 0, 0, false
	}
	for _, l := range limits {
		if !l.at.Before(end.Add(-time.Second)) && (l.upper && l.value < lo || !l.upper && l.value > hi) {
			return 0, 0, false
		}
	}
	return lo, hi, true
}

// A HostClock is what is known of the clock of one host.
type HostClock struct {
	Host string
	Zone string // as its times name it; "" where they name none, or several
	Tie
	Known     bool   // Offset and Error hold, against Reference
	Reference string // the host that the others are measured by
}

// HostClocks says for each host how its clock stands against that of the reference, the
// host that shares the most events with others.
func (t *Timeline) HostClocks() []HostClock {
	zones, of := map[string]map[string]bool{}, map[string]int{}
	for _, it := range t.Items {
		if it.Who.Host == "" || it.clock < 0 || t.clocks.names[it.clock].host != it.Who.Host {
			continue
		}
		if zones[it.Who.Host] == nil {
			zones[it.Who.Host] = map[string]bool{}
		}
		zones[it.Who.Host][it.Stamp.Zone] = true
	}
	for _, zoned := range []bool{false, true} { // a clock with a zone counts before one without
		for i, n := range t.clocks.names {
			if n.host != "" && n.zoned == zoned {
				of[n.host] = i
			}
		}
	}
	var hosts []string
	for _, h := range t.Hosts {
		if _, ok := of[h]; ok {
			hosts = append(hosts, h)
		}
	}
	ref, most := "", -1
	for _, h := range hosts[:min(len(hosts), maxHubs)] {
		n := 0
		for _, x := range hosts {
			if _, ok := t.clocks.tie(of[h], of[x]); ok && x != h {
				n++
			}
		}
		if n > most {
			ref, most = h, n
		}
	}
	var out []HostClock
	for _, h := range t.Hosts {
		c := HostClock{Host: h, Reference: ref}
		for z := range zones[h] {
			if len(zones[h]) == 1 {
				c.Zone = z
			}
		}
		if i, ok := of[h]; ok && most > 0 {
			if h == ref {
				c.Known = true
			} else {
				c.Tie, c.Known = t.clocks.tie(of[ref], i)
			}
		}
		out = append(out, c)
	}
	return out
}

// OtherZone returns the difference of time zones that an offset looks like: a multiple of
// a quarter of an hour, of at least half an hour, within what is known and two minutes; 0 if none.
func (c *HostClock) OtherZone() time.Duration {
	const quarter = 15 * time.Minute
	z := time.Duration(math.Round(float64(c.Offset)/float64(quarter))) * quarter
	if z.Abs() < 30*time.Minute || c.Error > 5*time.Minute || (c.Offset-z).Abs() > c.Error+2*time.Minute {
		return 0
	}
	return z
}
