package repair

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/inquest-dev/inquest/internal/evidence"
	"github.com/inquest-dev/inquest/internal/incident"
)

// What becomes of values that are not finite, as incident.RepairPolicy states it.
const (
	DropValues = "drop"
	HoldValues = "hold"
)

// DefaultMarker is the name of the marker series where none is asked for.
const DefaultMarker = "inquest/failed_segment"

// Bounds of what a plan keeps.
const (
	maxStarts    = 1 << 22 // segments of all series together, where superseded points are taken out
	maxStretches = 4096    // failed segments of one series that are listed one by one
	maxAllFailed = 1 << 18 // the same of all series together
	maxMarks     = 1 << 20 // marks of one run
	maxWall      = 1e11    // seconds since 1970 that are a time
)

// PlanOptions say how a plan is made.
type PlanOptions struct {
	Policy incident.RepairPolicy
	Marker string // "" for DefaultMarker
	// Alive: the source was written to so lately that a run of which it says that it runs may
	// do so.
	Alive bool
}

// A Planner is the sink of the readers while a plan is made. It takes every point and
// every run of two complete readings of the same bytes, in the same order, from one
// goroutine: first all of the source, then, after Again, once more. Of points it keeps
// runs of ordinals only.
type Planner struct {
	o      PlanOptions
	second bool
	err    error
	plan   *Plan

	readings []*reading // in the order in which they began
	byPlace  map[readingKey]*reading
	began    map[string]int // readings by artifact, in the present pass
	open     map[*evidence.TrackedRun]*reading
	tracks   map[*evidence.Track]*track
	starts   int
	failed   int

	lastRun   *evidence.TrackedRun // of the last point
	lastOpen  *reading
	lastTrack *evidence.Track
	lastKnown *track
}

type readingKey struct {
	artifact string
	n        int
}

// A reading is one run in one artifact.
type reading struct {
	read   *evidence.TrackedRun // of the first pass; nil until it was handed over
	names  []*track
	byName map[string]*track
	left   bool // not repaired, or never ended
	run    *Run
	main   *marks
	other  *marks
}

// A track is one series of a reading.
type track struct {
	decisions
	name      string
	axis      evidence.Axis
	system    bool
	count     int64
	step      int64 // of the last point that states one
	firstWall float64
	lastWall  float64

	series *Series
	of     *reading
	got    account
	state  seriesState
	rec    record
}

// NewPlanner returns a planner before the first reading.
func NewPlanner(o PlanOptions) *Planner {
	if o.Marker == "" {
		o.Marker = DefaultMarker
	}
	if o.Policy.Nonfinite == "" {
		o.Policy.Nonfinite = DropValues
	}
	return &Planner{o: o, byPlace: map[readingKey]*reading{}, began: map[string]int{}, open: map[*evidence.TrackedRun]*reading{}, tracks: map[*evidence.Track]*track{}}
}

func (p *Planner) fail(err error) {
	if p.err == nil {
		p.err = err
	}
}

// begin finds the reading of a run, which begins with its first point or its end.
func (p *Planner) begin(r *evidence.TrackedRun) *reading {
	if r == p.lastRun {
		return p.lastOpen
	}
	g := p.open[r]
	if g == nil {
		key := readingKey{r.Artifact, p.began[r.Artifact]}
		p.began[r.Artifact]++
		g = p.byPlace[key]
		switch {
		case !p.second:
			g = &reading{byName: map[string]*track{}}
			p.byPlace[key] = g
			p.readings = append(p.readings, g)
		case g == nil:
			p.fail(fmt.Errorf("%w: %s has a run that it had not when it was read first", ErrChanged, r.Artifact))
			g = &reading{left: true}
		}
		p.open[r] = g
	}
	p.lastRun, p.lastOpen = r, g
	return g
}

// Point takes the next point of a track.
func (p *Planner) Point(r *evidence.TrackedRun, t *evidence.Track, pt *evidence.Point, wall float64) {
	if !(wall > 0 && wall < maxWall) {
		wall = 0
	}
	k := p.lastKnown
	if t != p.lastTrack {
		if k = p.tracks[t]; k == nil {
			g := p.begin(r)
			if k = g.byName[t.Name]; k == nil {
				if p.second && !g.left {
					p.fail(fmt.Errorf("%w: series %q of %s was not there when it was read first", ErrChanged, t.Name, r.Artifact))
				}
				k = &track{name: t.Name, axis: t.Axis, system: t.System, of: g}
				k.again, k.step = math.MaxInt64, evidence.None
				if !p.second {
					g.byName[t.Name] = k
					g.names = append(g.names, k)
				}
			}
			p.tracks[t] = k
		}
		p.lastTrack, p.lastKnown = t, k
	}
	switch {
	case !p.second:
		p.first(k, pt.Step, wall)
	case !k.of.left && k.series != nil:
		p.decide(k, pt.Step, wall, pt.Value)
	}
}

// first takes a point of the first reading.
func (p *Planner) first(k *track, step int64, wall float64) {
	if p.o.Policy.Dedupe && step != evidence.None {
		if k.step == evidence.None || step <= k.step {
			for n := len(k.starts); n > 0 && k.starts[n-1].step >= step; n-- {
				k.starts = k.starts[:n-1]
				p.starts--
			}
			if p.starts++; p.starts > maxStarts {
				p.fail(fmt.Errorf("over limit: more than %d places where steps begin again; superseded points cannot be told exactly", maxStarts))
				p.starts, k.starts = 0, nil
			}
			k.starts = append(k.starts, start{k.count, step})
		}
	}
	if step != evidence.None {
		k.step = step
	}
	if wall > 0 {
		if k.firstWall == 0 {
			k.firstWall = wall
		}
		k.lastWall = wall
	}
	k.count++
}

// TrackedRun takes a run at its end.
func (p *Planner) TrackedRun(r *evidence.TrackedRun) {
	g := p.begin(r)
	if !p.second {
		g.read = r
		for _, t := range r.Tracks {
			if k := p.tracks[t]; k != nil {
				k.suspects = t.Suspects
				slices.SortStableFunc(k.suspects, func(a, b evidence.Suspect) int { return cmp.Compare(a.First.Ordinal, b.First.Ordinal) })
			}
		}
	}
	for _, t := range r.Tracks {
		delete(p.tracks, t)
	}
	delete(p.open, r)
	p.lastRun, p.lastOpen, p.lastTrack, p.lastKnown = nil, nil, nil, nil
}

// Read returns the runs of the first reading in the order in which they began.
func (p *Planner) Read() []*evidence.TrackedRun {
	var list []*evidence.TrackedRun
	for _, g := range p.readings {
		if g.read != nil {
			list = append(list, g.read)
		}
	}
	return list
}

// Again ends the first reading and begins the second. The runs that keep returns true for
// are repaired, nil for all; artifacts without any of them need not be read again.
func (p *Planner) Again(keep func(*evidence.TrackedRun) bool) error {
	if p.err != nil {
		return p.err
	}
	p.second = true
	clear(p.open)
	clear(p.tracks)
	clear(p.began)
	p.lastRun, p.lastOpen, p.lastTrack, p.lastKnown = nil, nil, nil, nil
	p.plan = &Plan{Policy: p.o.Policy, Marker: p.o.Marker, runs: map[RunKey]*Run{}}
	parts := map[*Run][]*reading{}
	for _, g := range p.readings {
		g.left = g.read == nil || keep != nil && !keep(g.read)
		if g.read == nil {
			continue
		}
		key := KeyOf(g.read)
		run := p.plan.runs[key]
		if run == nil || run.Passive && !g.left {
			run = p.plan.newRun(key, g.read)
			if run.Passive = g.left; !g.left {
				p.plan.list = append(p.plan.list, run)
			}
		}
		if g.left {
			continue
		}
		g.run = run
		parts[run] = append(parts[run], g)
		for _, k := range g.names {
			if k.name == p.o.Marker || k.name == MarkerKey(p.o.Marker) {
				return fmt.Errorf("%s has a series %q already: it may be a repaired copy itself; name the marker otherwise", g.read.Artifact, k.name)
			}
			at := seriesKey{g.read.Artifact, k.name}
			if run.series[at] != nil {
				return fmt.Errorf("%s: two runs of the same name have a series %q; they cannot be told apart", g.read.Artifact, k.name)
			}
			k.series = run.get(at.artifact, k.name)
		}
	}
	homes := map[RunKey][]*reading{}
	for _, run := range p.plan.list {
		homes[run.Key.home()] = append(homes[run.Key.home()], parts[run]...)
	}
	for _, run := range p.plan.list {
		p.share(run, parts[run], homes[run.Key.home()])
	}
	return nil
}

// home is the key of a run whoever wrote it.
func (k RunKey) home() RunKey {
	k.Writer = ""
	return k
}

// span are the times of the first and last point of a reading, 0 where unknown.
func (g *reading) span() (first, last float64) {
	for _, k := range g.names {
		if k.firstWall > 0 && (first == 0 || k.firstWall < first) {
			first = k.firstWall
		}
		last = max(last, k.lastWall)
	}
	return first, last
}

// share settles what the files of one run have to do with each other: the marks are those of
// the run, and a file that was begun after another had ended, by whichever writer, goes on
// with its series.
func (p *Planner) share(run *Run, parts, home []*reading) {
	main, other := &marks{at: map[markKey]*Mark{}}, &marks{at: map[markKey]*Mark{}}
	type begun struct {
		wall float64
		step int64
	}
	later := map[string][]begun{}
	open, closed := false, false
	for _, g := range parts {
		g.main, g.other = main, other
		open = open || g.read.Status == evidence.RunOpen
		closed = closed || g.read.Status != evidence.RunOpen && g.read.Status != evidence.RunUnknown
		for _, k := range g.names {
			run.Newest = max(run.Newest, k.lastWall)
		}
	}
	if p.o.Policy.Dedupe && len(home) > 1 {
		for _, g := range home {
			first, _ := g.span()
			for _, k := range g.names {
				if len(k.starts) > 0 && first > 0 {
					later[k.name] = append(later[k.name], begun{first, k.starts[0].step})
				}
			}
		}
	}
	run.Dead = closed || !p.o.Alive
	if open && !closed && !p.o.Alive {
		run.Status = evidence.RunFailed
	}
	for _, g := range parts {
		_, last := g.span()
		for _, k := range g.names {
			k.clamped = g.read.Keeps == evidence.Clamped
			for _, b := range later[k.name] {
				if b.wall > last && last > 0 {
					k.again = min(k.again, b.step)
				}
			}
			k.state = seriesState{known: &k.decisions, policy: p.o.Policy, name: nameSum(k.name)}
			k.rec = record{step: evidence.None, first: evidence.None, clean: evidence.None, since: evidence.None}
		}
	}
}

// Plan ends the second reading. The planner is used up.
func (p *Planner) Plan() (*Plan, error) {
	if p.err != nil {
		return nil, p.err
	}
	if !p.second {
		return nil, errors.New("a plan needs two readings")
	}
	sums := map[*Run]uint64{}
	for _, g := range p.readings {
		if g.left {
			continue
		}
		for _, k := range g.names {
			k.got = k.state.seen
			if k.got.count != k.count {
				return nil, fmt.Errorf("%w: series %q of %s had %d points when it was read first, and then %d", ErrChanged, k.name, g.read.Artifact, k.count, k.got.count)
			}
			if !k.got.balances() {
				return nil, fmt.Errorf("series %q of %s: the account does not balance", k.name, g.read.Artifact)
			}
			k.series.state = seriesState{known: &k.decisions, want: &k.got, policy: p.o.Policy, name: nameSum(k.name)}
			k.series.failed, k.series.suspicious = k.rec.failed, k.rec.suspicious
			sums[g.run] = scramble(sums[g.run] + k.rec.all)
			if k.got.dropped+k.got.held > 0 {
				g.run.Affected = true
			}
		}
	}
	for _, g := range p.readings {
		if g.left || g.run.NewID != "" {
			continue
		}
		run := g.run
		run.marks = g.main.list()
		if !g.main.affected {
			run.marks = g.other.list()
		}
		if g.main.more+g.other.more > 0 {
			p.plan.Left = append(p.plan.Left, fmt.Sprintf("Of run %s only the first %d steps are marked; %d more are not.", label(run), maxMarks, g.main.more+g.other.more))
		}
		run.NewID = newID(run.Read, p.o, sums[run])
	}
	for _, run := range p.plan.list {
		p.clean(run)
		run.describe()
	}
	return p.plan, nil
}

// clean finds the first affected step with the last one before it, over the series of the
// training that have one, and the step from which on one of them is affected to its end.
func (p *Planner) clean(run *Run) {
	ends := map[string]*track{} // by name, what was written last
	for _, g := range p.readings {
		if g.run != run {
			continue
		}
		for _, k := range g.names {
			if k.system || k.axis != evidence.AxisStep {
				continue
			}
			if e := ends[k.name]; e == nil || k.after(e) {
				ends[k.name] = k
			}
			switch {
			case k.rec.first == evidence.None:
			case run.First == evidence.None || k.rec.first < run.First:
				run.First, run.Clean = k.rec.first, k.rec.clean
			case k.rec.first == run.First:
				run.Clean = max(run.Clean, k.rec.clean)
			}
		}
	}
	for _, k := range ends {
		if since := k.rec.since; since != evidence.None && (run.Since == evidence.None || since < run.Since) {
			run.Since = since
		}
	}
}

// after reports whether a part of a series ends after another one: by time where both state
// one, else by step; of those that end alike the one that failed does.
func (k *track) after(o *track) bool {
	if k.lastWall > 0 && o.lastWall > 0 && k.lastWall != o.lastWall {
		return k.lastWall > o.lastWall
	}
	if k.rec.step != o.rec.step {
		return k.rec.step > o.rec.step
	}
	return k.rec.since != evidence.None && (o.rec.since == evidence.None || k.rec.since < o.rec.since)
}
