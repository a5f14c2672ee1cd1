package timeline

import (
	"fmt"
	"math"
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

// Assumed clock errors where no shared event bounds them. A cluster that keeps
// time agrees to milliseconds, one that does not differs by minutes; without
// evidence the larger is taken, because a wrong order is worse than none.
const (
	OtherHost = 60 * time.Second
	sameHost  = time.Second
)

// Compare is Order with its basis in words.
func (t *Timeline) Compare(a, b *Item) (Relation, string) {
	r, by := t.order(a, b)
	return r, t.words(by, r, a, b)
}

// Order says whether a came before b. The bases, in the order in which they are
// tried: the launch they belong to, one process's own file, steps of one counter,
// time with the clocks' errors, position in a merged file. A watchdog timeout
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
	byClock  // one clock, or those of one host
	byClocks // those of different hosts
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
	if sameFile {
		return byOffset(a, b), byMergedPlace
	}
	return Unknown, byNothing
}

// words are the basis by which r was found, or what an order would have needed.
func (t *Timeline) words(by basis, r Relation, a, b *Item) string {
	sides := [2]string{"before", "after"}
	if by == byClock || by == byClocks {
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
	case byClock, byClocks:
		gap, _ := Gap(a, b)
		clocks := "one clock"
		if by == byClocks {
			clocks = "clocks of different hosts, not known to agree better than 60 s"
		}
		return fmt.Sprintf("time: %s %s (%s)", gap.Abs().Round(time.Millisecond), side, clocks)
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
	return a.Who.Host == b.Who.Host
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
	sa, sb := began(a), began(b)
	gap, ok := between(sa, sb)
	if !ok {
		return Unknown, byNothing
	}
	bound, by := sa.Error+sb.Error+sameHost, byClock
	ha, hb := a.Who.Host, b.Who.Host
	if sa.Clock == "boot" && (a.Source != b.Source) {
		return Unknown, byNothing
	}
	if a.Source != b.Source && (ha != hb || ha == "" && t.multi) {
		bound, by = sa.Error+sb.Error+OtherHost, byClocks
	}
	if a.Source == b.Source && ha == hb {
		bound = sa.Error + sb.Error
	}
	switch {
	case gap > bound:
		return Before, by
	case -gap > bound:
		return After, by
	}
	return Unknown, byNothing
}

// between returns b - a, if the two stamps can be subtracted.
func between(a, b evidence.Stamp) (time.Duration, bool) {
	if !a.Known() || !b.Known() || a.Clock != b.Clock {
		return 0, false
	}
	if (a.Zone == "") != (b.Zone == "") {
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
	case (a.Stamp.Zone == "") != (b.Stamp.Zone == ""):
		return "one time has a zone and the other has none"
	}
	if gap, ok := between(a.Stamp, b.Stamp); ok {
		if gap < 0 {
			gap = -gap
		}
		return fmt.Sprintf("the times differ by %s, less than the clocks of different hosts may (60 s; no shared event bounds them)", gap.Round(time.Millisecond))
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

// Gap returns the time from a to b where both carry comparable times.
func Gap(a, b *Item) (time.Duration, bool) { return between(began(a), began(b)) }

// Written returns the time from a to b as their lines state it, where the two can
// be compared.
func Written(a, b *Item) (time.Duration, bool) { return between(a.Stamp, b.Stamp) }
