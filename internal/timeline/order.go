package timeline

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/inquest-dev/inquest/internal/evidence"
)

// A Relation says which of two events came first.
type Relation int

const (
	Unknown Relation = iota
	Before
	After
)

func (r Relation) String() string { return [...]string{"unknown", "before", "after"}[r] }

// Compare is Order with its basis in words.
func (t *Timeline) Compare(a, b *Item) (Relation, string) {
	r, by := t.order(a, b)
	return r, t.words(by, r, a, b)
}

// Order says whether a came before b. The bases, in the order in which they are
// tried: the launch they belong to, one process's own file, steps of one counter,
// time with the clocks' errors, position in a merged file, a tracker's step against
// how far a log of the same count had come. A watchdog timeout
// counts from when its wait began.
func (t *Timeline) Order(a, b *Item) Relation {
	r, _ := t.order(a, b)
	return r
}

// A basis is how an order is known.
type basis int

const (
	byNothing basis = iota
	byLaunch
	byPlace
	byStep
	byCount  // a tracker's step, and the step that a log of the same count had reached
	byClock  // one clock, or those of one host
	byTie    // those of two hosts that shared events tie
	byClocks // those of different hosts, further apart than clocks and zones may be
	byMergedPlace
)

// order makes no text: thousands of failures are held against each other, and few
// of the answers are quoted.
func (t *Timeline) order(a, b *Item) (Relation, basis) {
	if a.Attempt >= 0 && b.Attempt >= 0 && a.Attempt != b.Attempt {
		if a.Attempt < b.Attempt {
			return Before, byLaunch
		}
		return After, byLaunch
	}
	sameFile := a.Source == b.Source && !t.listing(a)
	if sameFile && sameProcess(a, b) {
		return byOffset(a, b), byPlace
	}
	if a.Step >= 0 && b.Step >= 0 && a.Step != b.Step && stated(a) && stated(b) {
		if a.Step < b.Step {
			return Before, byStep
		}
		return After, byStep
	}
	if r, by := t.byTime(a, b); r != Unknown {
		return r, by
	}
	if sameFile && !interleaved(a, b) {
		return byOffset(a, b), byMergedPlace
	}
	if r := t.byCount(a, b); r != Unknown {
		return r, byCount
	}
	return Unknown, byNothing
}

// interleaved reports whether two lines of one log are of processes of different ranks:
// who merged their output wrote what it got when it got it, and buffers come late. What a
// launcher says of a rank it writes itself.
func interleaved(a, b *Item) bool {
	other := a.Who.Rank != b.Who.Rank && a.Who.Rank != evidence.None && b.Who.Rank != evidence.None || a.Who.Rank == b.Who.Rank && a.Who.Rank == evidence.None && otherLocal(a, b)
	return other && !byLauncher(a) && !byLauncher(b)
}

func byLauncher(it *Item) bool {
	switch it.Kind {
	case evidence.Exited, evidence.LauncherSummary, evidence.LauncherStop, evidence.Cancelled:
		return true
	}
	return false
}

// words are the basis by which r was found, or what an order would have needed.
func (t *Timeline) words(by basis, r Relation, a, b *Item) string {
	sides := [2]string{"before", "after"}
	if by == byClock || by == byTie || by == byClocks {
		sides = [2]string{"earlier", "later"}
	}
	side := sides[0]
	if r == After {
		side = sides[1]
	}
	switch by {
	case byLaunch:
		if r == Before {
			return "an earlier launch"
		}
		return "a later launch"
	case byPlace:
		return "position in the same log"
	case byStep:
		return fmt.Sprintf("step %d %s step %d", a.Step, side, b.Step)
	case byCount:
		value, line, _ := t.recordAndLine(a, b)
		if line.Step > value.Step {
			return fmt.Sprintf("the tracker's step %d is before step %d, which the log had reached (both have the same values at the same steps)", value.Step, line.Step)
		}
		return fmt.Sprintf("the log comes to the tracker's step %d only after the line (both have the same values at the same steps)", value.Step)
	case byClock, byTie, byClocks:
		x := t.apart(a, b)
		return fmt.Sprintf("time: %s %s (%s)", round(x.gap), side, x.clocks())
	case byMergedPlace:
		return "position in the same merged log"
	}
	return t.why(a, b)
}

// listing reports whether it stands in a list of what a scheduler keeps of pods or
// jobs: such a list is sorted by name, not by time.
func (t *Timeline) listing(it *Item) bool {
	if it.Source < 0 {
		return false
	}
	kind := t.Sources[it.Source].Artifact.Kind
	return kind == "kube" || kind == "slurm"
}

// stated reports whether the event's step is its own, not the last one seen
// before it in the file.
func stated(it *Item) bool {
	return it.Kind == evidence.NonfiniteValue || it.Kind == evidence.NonfiniteNamed || it.Kind == evidence.LossOmitted
}

func sameProcess(a, b *Item) bool {
	if a.Who.Rank != b.Who.Rank {
		return false
	}
	if a.Who.Rank == evidence.None && otherLocal(a, b) {
		return false
	}
	return a.Who.Host == b.Who.Host
}

// otherLocal reports whether two lines are of different local ranks.
func otherLocal(a, b *Item) bool {
	return a.Who.LocalRank != b.Who.LocalRank && a.Who.LocalRank != evidence.None && b.Who.LocalRank != evidence.None
}

// byOffset goes by place in the artifact. Where its parts stand out of order, the
// spans are numbered.
func byOffset(a, b *Item) Relation {
	if x, y := a.Span.Index, b.Span.Index; x > 0 && y > 0 && x != y {
		if x < y {
			return Before
		}
		return After
	}
	switch {
	case a.Span.Offset < b.Span.Offset:
		return Before
	case a.Span.Offset > b.Span.Offset:
		return After
	}
	return Unknown
}

// began is the instant at which an event's cause was at work: a watchdog
// timeout reports a wait that began earlier.
func began(it *Item) evidence.Stamp {
	s := it.Stamp
	if it.Kind == evidence.CollTimeout && s.Known() {
		ms := it.Attrs["ran_ms"].I
		if ms == 0 {
			ms = it.Attrs["timeout_ms"].I
		}
		s.Time = s.Time.Add(-time.Duration(ms) * time.Millisecond)
		s.Error += time.Second
	}
	return s
}

func (t *Timeline) byTime(a, b *Item) (Relation, basis) {
	x := t.apart(a, b)
	switch {
	case !x.ok:
		return Unknown, byNothing
	case x.gap > x.bound:
		return Before, x.by
	case -x.gap > x.bound:
		return After, x.by
	}
	return Unknown, byNothing
}

// A distance is the time from one event to another with what is known of the clocks.
type distance struct {
	gap   time.Duration // corrected by the offset of the clocks where it is known
	bound time.Duration // the gap is known to this
	by    basis
	tie   Tie
	hosts [2]string
	ok    bool
}

// apart measures from a to b. Times of one clock are as far apart as they say; those
// of two clocks are corrected by what shared events tell of the two, and where none
// do, they may be off by Skew, and by Zones if they name no zone.
func (t *Timeline) apart(a, b *Item) distance { return t.measure(a, b, began(a), began(b)) }

func (t *Timeline) measure(a, b *Item, sa, sb evidence.Stamp) distance {
	x := distance{bound: sa.Error + sb.Error, by: byClock, hosts: [2]string{a.Who.Host, b.Who.Host}}
	if sa.Clock == "boot" && a.Source != b.Source {
		return x
	}
	one := a.clock == b.clock
	if a.Source == b.Source && a.Who.Host == b.Who.Host && (one || t.single || (sa.Zone == "") == (sb.Zone == "") && !interleaved(a, b)) || sa.Clock != "wall" {
		x.gap, x.ok = between(sa, sb)
		return x
	}
	if one && a.clock >= 0 && t.clocks.names[a.clock].host != "" {
		x.bound += sameHost
		x.gap, x.ok = between(sa, sb)
		return x
	}
	if tie, ok := t.clocks.tie(a.clock, b.clock); ok {
		if x.gap, x.ok = subtract(sa, sb); x.ok {
			x.gap -= tie.Offset
			x.tie, x.by = tie, byTie
			away := time.Duration(math.MaxInt64)
			if usable(sa) && !sa.NoYear {
				away = sa.Time.Sub(tie.At).Abs()
			} else if d, ok := subtract(sa, evidence.Stamp{Time: tie.At, Written: "x", Clock: "wall"}); ok {
				away = d.Abs()
			}
			x.bound += tie.Error + time.Duration(drift*min(float64(away), float64(30*24*time.Hour)))
			return x
		}
	}
	x.gap, x.ok = between(sa, sb)
	if a.Who.Host == "" && b.Who.Host == "" && t.single {
		x.bound += sameHost
		return x
	}
	x.by = byClocks
	x.bound += Skew
	if sa.Zone == "" {
		x.bound += Zones
	}
	return x
}

// clocks says what is known of the clocks.
func (x distance) clocks() string {
	switch x.by {
	case byTie:
		who := "the two clocks"
		if x.hosts[0] != "" && x.hosts[1] != "" && x.hosts[0] != x.hosts[1] {
			who = "clocks of " + x.hosts[0] + " and " + x.hosts[1]
		}
		return fmt.Sprintf("%s agree to %s, from %s", who, round(x.bound), x.tie.Words())
	case byClocks:
		return fmt.Sprintf("more than clocks of different hosts may differ by, %s", long(x.bound))
	}
	return "one clock"
}

func round(d time.Duration) time.Duration {
	d = d.Abs()
	if d < 10*time.Second {
		return d.Round(time.Millisecond)
	}
	return d.Round(100 * time.Millisecond)
}

func long(d time.Duration) string { return strings.TrimSuffix(d.Round(time.Minute).String(), "0s") }

// between returns b - a, if the two stamps can be subtracted.
func between(a, b evidence.Stamp) (time.Duration, bool) {
	if (a.Zone == "") != (b.Zone == "") {
		return 0, false
	}
	return subtract(a, b)
}

// subtract returns b - a as they are written: the difference of two zones, or
// of a zone and none, is in it.
func subtract(a, b evidence.Stamp) (time.Duration, bool) {
	if !a.Known() || !b.Known() || a.Clock != b.Clock {
		return 0, false
	}
	ta, tb := a.Time, b.Time
	switch {
	case a.NoDate || b.NoDate:
		day := func(t time.Time) time.Time {
			return time.Date(2000, 1, 1, t.Hour(), t.Minute(), t.Second(), t.Nanosecond(), time.UTC)
		}
		d := day(tb).Sub(day(ta))
		if d > 6*time.Hour || d < -6*time.Hour {
			return 0, false // midnight may lie between
		}
		return d, true
	case a.NoYear != b.NoYear:
		y := ta.Year()
		if a.NoYear {
			y = tb.Year()
		}
		year := func(t time.Time) time.Time {
			return time.Date(y, t.Month(), t.Day(), t.Hour(), t.Minute(), t.Second(), t.Nanosecond(), time.UTC)
		}
		ta, tb = year(ta), year(tb)
	}
	d := tb.Sub(ta)
	if (a.NoYear || b.NoYear) && (d > 180*24*time.Hour || d < -180*24*time.Hour) {
		return 0, false // a new year may lie between
	}
	return d, true
}

// why says what an order would have needed.
func (t *Timeline) why(a, b *Item) string {
	counts := a.Step >= 0 || b.Step >= 0
	switch {
	case a.Source == b.Source && !t.listing(a) && (!a.Stamp.Known() || !b.Stamp.Known()):
		return "they are lines of two ranks in one merged log, which has them as its writer got them, and not both carry a time"
	case a.Source == b.Source && (!a.Stamp.Known() || !b.Stamp.Known()):
		return "they stand in one list of records, which is not sorted by time, and not both carry a time"
	case !a.Stamp.Known() && !b.Stamp.Known() && counts:
		return "they stand in different files, neither line carries a time, and " + steps(a, b)
	case !a.Stamp.Known() && !b.Stamp.Known():
		return "they stand in different files and neither line carries a time or a step"
	case (!a.Stamp.Known() || !b.Stamp.Known()) && counts:
		return "they stand in different files, one of the lines carries no time, and " + steps(a, b)
	case !a.Stamp.Known() || !b.Stamp.Known():
		return "they stand in different files and one of the lines carries no time and no step"
	case a.Stamp.Clock != b.Stamp.Clock:
		return "one time counts from the boot of the host and the other is a date; no shared event ties the clocks"
	}
	switch x := t.apart(a, b); {
	case x.ok && x.by == byTie:
		return fmt.Sprintf("the times differ by %s, and %s", round(x.gap), x.clocks())
	case x.ok && x.by == byClock:
		return fmt.Sprintf("the times differ by %s, less than they are known to (%s)", round(x.gap), round(x.bound))
	case x.ok:
		return fmt.Sprintf("the times differ by %s, and no shared event tells how far the clocks of the two hosts do", round(x.gap))
	case (a.Stamp.Zone == "") != (b.Stamp.Zone == ""):
		return "one time has a zone and the other has none; no shared event ties the clocks"
	}
	return "no time, step or position orders them"
}

// steps says why the steps of a and b, of which at least one is known, do not
// order them.
func steps(a, b *Item) string {
	switch {
	case a.Step < 0 || b.Step < 0:
		return fmt.Sprintf("only one has a step (%d)", max(a.Step, b.Step))
	case a.Step == b.Step:
		return fmt.Sprintf("both have step %d", a.Step)
	}
	return fmt.Sprintf("steps %d and %d of different files are not known to be of one count", a.Step, b.Step)
}

// TwoRuns reports whether the files of a and b look like logs of two runs: neither
// is a rank's, and both log a loss of their own over the same steps, with other
// values at most of the steps that both have.
func (t *Timeline) TwoRuns(a, b *Item) bool {
	if a.Source < 0 || b.Source < 0 || a.Source == b.Source {
		return false
	}
	losses := func(it *Item) map[int64]float64 {
		s := &t.Sources[it.Source]
		if s.Artifact.Owner.Rank != evidence.None || s.Artifact.Owner.LocalRank != evidence.None {
			return nil
		}
		m := map[int64]float64{}
		for _, x := range s.Series {
			if x.Key.Name != "loss" || x.Key.Phase == "eval" || x.Key.Launch != it.Who.Launch || x.Key.Rank > 0 {
				continue
			}
			for _, p := range x.Points() {
				if p.Step >= 0 {
					m[p.Step] = p.Value
				}
			}
		}
		return m
	}
	la, lb := losses(a), losses(b)
	both, other := 0, 0
	for step, x := range la {
		y, ok := lb[step]
		if !ok {
			continue
		}
		both++
		if d := math.Abs(x - y); d > 0.02*max(math.Abs(x), math.Abs(y)) {
			other++
		}
	}
	return both >= 3 && other*2 > both
}

// Gap returns the time from a to b, corrected by what is known of the clocks, and the
// bound to which it is known; ok is false where nothing tells.
func (t *Timeline) Gap(a, b *Item) (gap, bound time.Duration, ok bool) {
	x := t.apart(a, b)
	return x.gap, x.bound, x.ok
}

// Written returns the time from a to b as their lines state it, where the two can
// be compared.
func Written(a, b *Item) (time.Duration, bool) { return between(a.Stamp, b.Stamp) }

// Reported is Gap between the times that the lines state, with no wait taken off.
func (t *Timeline) Reported(a, b *Item) (gap, bound time.Duration, ok bool) {
	x := t.measure(a, b, a.Stamp, b.Stamp)
	return x.gap, x.bound, x.ok
}
