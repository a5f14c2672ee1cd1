package repair

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/inquest-dev/inquest/internal/evidence"
	"github.com/inquest-dev/inquest/internal/incident"
)

// Result puts the accounts down once the copy is written. The error names a series whose
// points the format did not ask about as the readers met them.
func (p *Plan) Result() ([]incident.RepairedRun, error) {
	for _, r := range p.list {
		for _, s := range r.order {
			if err := s.account(); err != nil {
				return nil, err
			}
		}
	}
	for _, r := range p.runs {
		if r.Read.Tracker == "" && !r.Passive && len(r.order) > 0 {
			return nil, fmt.Errorf("the copy has points of a run that the readers did not meet: %+v", r.Key)
		}
	}
	return p.Read(), nil
}

// Read puts the accounts of the second reading down.
func (p *Plan) Read() []incident.RepairedRun {
	runs := []incident.RepairedRun{}
	for _, r := range p.list {
		out := incident.RepairedRun{ID: r.Read.ID, Name: r.Read.Name, Was: string(r.Read.Status), Status: string(r.Read.Status), Series: []incident.RepairedSeries{}, Clean: known(r.Clean), First: known(r.First), Since: known(r.Since)}
		for _, n := range r.byName() {
			a := &n.a
			out.Kept += a.kept
			out.Total += a.count
			if a.kept == a.count && len(n.suspicious) == 0 {
				continue
			}
			s := incident.RepairedSeries{Name: n.name, Count: a.count, Kept: a.kept, NaN: a.nan, PosInf: a.posInf, NegInf: a.negInf, Suspect: a.suspect,
				Dropped: a.dropped, Held: a.held, Superseded: a.superseded, Segments: []incident.FailedSegment{}, Suspicious: []incident.FailedSegment{}}
			for i := range n.failed {
				s.Segments = append(s.Segments, n.failed[i].segment())
			}
			for i := range n.suspicious {
				s.Suspicious = append(s.Suspicious, n.suspicious[i].segment())
			}
			out.Series = append(out.Series, s)
		}
		runs = append(runs, out)
	}
	return runs
}

// A Recount is the sink of the readers while the finished copy is read.
type Recount struct {
	Runs []*evidence.TrackedRun // that were counted

	keep   func(*evidence.TrackedRun) bool
	points map[string]*recounted
	open   map[*evidence.Track]*recounted
	last   *evidence.Track
	now    *recounted
}

type recounted struct {
	name               uint64
	count, bad, marked int64
	sum                uint64
}

// NewRecount returns an empty count of the runs that keep returns true for; nil keeps all.
func NewRecount(keep func(*evidence.TrackedRun) bool) *Recount {
	return &Recount{keep: keep, points: map[string]*recounted{}, open: map[*evidence.Track]*recounted{}}
}

// Point takes the next point of a track.
func (c *Recount) Point(_ *evidence.TrackedRun, t *evidence.Track, p *evidence.Point, _ float64) {
	if t != c.last {
		n := c.open[t]
		if n == nil {
			n = &recounted{name: nameSum(t.Name)}
			c.open[t] = n
		}
		c.last, c.now = t, n
	}
	n := c.now
	n.count++
	if p.Value-p.Value != 0 {
		n.bad++
		return
	}
	if p.Value == 1 {
		n.marked++
	}
	n.sum += pointSum(n.name, p.Step, p.Value)
}

// TrackedRun takes a run at its end.
func (c *Recount) TrackedRun(r *evidence.TrackedRun) {
	keep := c.keep == nil || c.keep(r)
	if keep {
		c.Runs = append(c.Runs, r)
	}
	for _, t := range r.Tracks {
		n := c.open[t]
		delete(c.open, t)
		if n == nil || !keep {
			continue
		}
		all := c.points[t.Name]
		if all == nil {
			c.points[t.Name] = n
			continue
		}
		all.count += n.count
		all.bad += n.bad
		all.marked += n.marked
		all.sum += n.sum
	}
	c.last, c.now = nil, nil
}

// Checks sets the finished copy against the account: no value that is not finite, the same
// points, every affected run marked. The marker series itself is no part of the account;
// formats whose columns are Python names call it by its name with underscores.
func (p *Plan) Checks(c *Recount) []incident.RepairCheck {
	want := map[string]*recounted{}
	var points int64
	for _, r := range p.list {
		for _, s := range r.order {
			a := &s.state.seen
			w := want[s.key.name]
			if w == nil {
				w = &recounted{}
				want[s.key.name] = w
			}
			w.count += a.kept + a.held
			w.sum += a.sum
			points += a.kept + a.held
		}
	}
	bad, first := int64(0), ""
	marked := map[string]bool{}
	var differ []string
	for _, name := range slices.Sorted(maps.Keys(c.points)) {
		n := c.points[name]
		if n.bad > 0 && first == "" {
			first = name
		}
		bad += n.bad
		w := want[name]
		switch {
		case w == nil && (name == p.Marker || strings.TrimPrefix(name, "val/") == MarkerKey(p.Marker)): // in rows of an evaluation as well
			marked[name] = n.marked > 0
		case w == nil:
			differ = append(differ, fmt.Sprintf("%q is new", name))
		case n.count != w.count:
			differ = append(differ, fmt.Sprintf("%q has %d points, %d were kept", name, n.count, w.count))
		case n.sum != w.sum:
			differ = append(differ, fmt.Sprintf("%q has other steps or values", name))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(want)) {
		if w := want[name]; w.count > 0 && c.points[name] == nil {
			differ = append(differ, fmt.Sprintf("%q is missing", name))
		}
	}
	checks := []incident.RepairCheck{{Name: "finite", Holds: bad == 0, Detail: "no value of the copy is not finite"}}
	if bad > 0 {
		checks[0].Detail = fmt.Sprintf("%d values of the copy are not finite, the first of them in %q", bad, first)
	}
	same := incident.RepairCheck{Name: "points", Holds: len(differ) == 0, Detail: fmt.Sprintf("the copy has the %d points that were kept or held, with their steps and values, and no others", points)}
	if n := len(differ); n > 0 {
		same.Detail = strings.Join(differ[:min(n, 5)], "; ")
		if n > 5 {
			same.Detail += fmt.Sprintf("; %d more series differ", n-5)
		}
	}
	checks = append(checks, same)
	runs := map[RunKey]bool{}
	for _, r := range c.Runs {
		for _, t := range r.Tracks {
			if marked[t.Name] {
				runs[KeyOf(r).home()] = true
			}
		}
	}
	affected := map[RunKey]bool{}
	for _, r := range p.list {
		if r.Affected && len(r.marks) > 0 {
			affected[r.Key.home()] = true
		}
	}
	return append(checks, incident.RepairCheck{Name: "marker", Holds: len(runs) >= len(affected), Detail: fmt.Sprintf("%d of %d affected runs have the marker series", min(len(runs), len(affected)), len(affected))})
}

// MarkerKey is the marker's name where names are columns or keys of a table: without the
// slashes that separate the parts of a name elsewhere.
func MarkerKey(marker string) string { return strings.ReplaceAll(marker, "/", "_") }
