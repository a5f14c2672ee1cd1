package tracker

import (
	"cmp"
	"fmt"
	"math"
	"path"
	"slices"
	"strings"

	"github.com/inquest-dev/inquest/internal/evidence"
	"github.com/inquest-dev/inquest/internal/incident"
)

const (
	maxCompared      = 64    // runs that are held against each other
	maxDisagreements = 64    // that are stated
	oneRun           = 600.0 // seconds that trackers of one run may record a step apart
	same             = 1e-4  // share of a value to which text forms are printed at least
)

// Disagreements says where two trackers of one run do not hold the same. That two are of
// one run is taken from their losses and gradient norms: finite values of at least three
// steps that both have, nine in ten of them the same, recorded at the same time where both
// have times. Of long series the steps are compared whose points both have kept.
//
// Where several trackers show what one does not keep, that is one statement.
func Disagreements(runs []*Run) []incident.Statement {
	runs = ordered(runs)
	runs = runs[:min(len(runs), maxCompared)]
	var found []dispute
	for i, a := range runs {
		for _, b := range runs[i+1:] {
			if a.Tracker == b.Tracker || !a.same(b) {
				continue
			}
			found = append(found, a.against(b)...)
		}
	}
	at := map[string]int{} // by rest: index into out
	var out []dispute
	for _, d := range found {
		i, ok := at[d.rest]
		switch {
		case !ok || d.rest == "":
			at[d.rest] = len(out)
			out = append(out, d)
		case !slices.Contains(out[i].who, d.who[0]):
			out[i].who = append(out[i].who, d.who[0])
		}
	}
	statements := []incident.Statement{}
	for _, d := range out[:min(len(out), maxDisagreements)] {
		if d.rest != "" {
			d.Text = d.who[0]
			switch n := len(d.who) - 1; {
			case n == 1:
				d.Text += " and " + d.who[1]
			case n > 1:
				d.Text += fmt.Sprintf(" and %d more (%s, …)", n, d.who[1])
			}
			if len(d.who) > 1 {
				d.Text += " have" + d.rest
			} else {
				d.Text += " has" + d.rest
			}
		}
		statements = append(statements, d.Statement)
	}
	return statements
}

// A dispute is a statement; where rest is not empty, its text is who has it, and rest.
type dispute struct {
	incident.Statement
	who  []string
	rest string
}

// label names a run in a sentence.
func (r *Run) label() string {
	name := cmp.Or(r.Name, r.ID, path.Base(r.Folder))
	if name == "." || name == "/" || name == "" {
		name = r.Parts[0].Artifact
	}
	if r.Writer != "" {
		name += " by " + r.Writer
	}
	return fmt.Sprintf("%s (%s)", r.Tracker, name)
}

// A couple is a series that two runs have.
type couple struct {
	a, b  *line
	steps []int64 // that both have, rising
	x, y  map[int64]known
}

// known is a point that is kept, of a step the last one that was written.
type known struct {
	evidence.Point
	track *evidence.Track
}

// couples are the series up to a class that two runs both have by steps of the training.
func (r *Run) couples(o *Run, most class) (out []couple) {
	for _, a := range r.lines {
		if a.class > most || a.tracks[0].Axis != evidence.AxisStep {
			continue
		}
		i := slices.IndexFunc(o.lines, func(b *line) bool {
			return b.class == a.class && b.tracks[0].Axis == evidence.AxisStep && b.meaning == a.meaning && (a.meaning != "" || plain(a.name) == plain(b.name)) && b.phase() == a.phase()
		})
		if i < 0 {
			continue
		}
		c := couple{a: a, b: o.lines[i]}
		c.x, c.y = a.points(), c.b.points()
		for step := range c.x {
			if _, ok := c.y[step]; ok {
				c.steps = append(c.steps, step)
			}
		}
		slices.Sort(c.steps)
		if len(c.steps) > 0 {
			out = append(out, c)
		}
	}
	return out
}

func (l *line) phase() string { return l.tracks[0].Series.Key.Phase }

// plain is a name without what trackers write differently.
func plain(name string) string {
	return strings.TrimPrefix(strings.NewReplacer(".", "/", "-", "_", " ", "_").Replace(strings.ToLower(name)), "train/")
}

// points are the kept points of a series by step.
func (l *line) points() map[int64]known {
	if l.known != nil {
		return l.known
	}
	m := map[int64]known{}
	l.known = m
	for _, t := range l.tracks {
		for p := range t.Series.All() {
			if p.Step != evidence.None {
				m[p.Step] = known{p, t}
			}
		}
	}
	return m
}

func finite(v float64) bool { return v-v == 0 }

// same reports whether two records are of one run.
func (r *Run) same(o *Run) bool {
	both, alike, away := 0, 0, []float64{}
	for _, c := range r.couples(o, gradClass) {
		for _, step := range c.steps {
			x, y := c.x[step], c.y[step]
			if !finite(x.Value) || !finite(y.Value) {
				continue
			}
			both++
			if equal(x.Value, y.Value, same) {
				alike++
			}
			if s, t := x.When(), y.When(); s.Known() && t.Known() {
				away = append(away, math.Abs(s.Time.Sub(t.Time).Seconds()))
			}
		}
	}
	if both < 3 || alike*10 < both*9 {
		return false
	}
	slices.Sort(away)
	return len(away) == 0 || away[len(away)/2] <= oneRun
}

// against states what differs between two records of one run.
func (r *Run) against(o *Run) (out []dispute) {
	for _, c := range r.couples(o, restClass) {
		out = append(out, c.differ(r, o)...)
		for _, d := range []struct {
			has, lacks *Run
			l, other   *line
		}{{r, o, c.a, c.b}, {o, r, c.b, c.a}} {
			if s := lacking(d.has, d.lacks, d.l, d.other); s != nil {
				out = append(out, dispute{Statement: *s})
			}
		}
	}
	for _, s := range []*incident.Statement{r.ends(o), r.reach(o)} {
		if s != nil {
			out = append(out, dispute{Statement: *s})
		}
	}
	return out
}

// differ states the steps at which a series has other values.
func (c *couple) differ(r, o *Run) (out []dispute) {
	type sort struct {
		n           int
		first, last int64
	}
	var broken [2]sort // the first, the second is not finite where the other is
	var other sort
	note := func(s *sort, step int64) {
		if s.n == 0 {
			s.first = step
		}
		s.n, s.last = s.n+1, step
	}
	for _, step := range c.steps {
		x, y := c.x[step].Value, c.y[step].Value
		switch {
		case equal(x, y, 1e-3):
		case !finite(x) && finite(y):
			note(&broken[0], step)
		case finite(x) && !finite(y):
			note(&broken[1], step)
		default:
			note(&other, step)
		}
	}
	say := func(s sort, a, b *Run, la, lb *line, x, y known, why string) {
		where := fmt.Sprintf("at step %d", s.first)
		if s.n > 1 {
			where = fmt.Sprintf("at %d of %d shared steps, first %d, last %d", s.n, len(c.steps), s.first, s.last)
		}
		out = append(out, dispute{who: []string{a.label()},
			rest: fmt.Sprintf(" %s = %s where %s has %s = %s, %s: %s.", la.name, value(x.Value), b.label(), lb.name, value(y.Value), where, why),
			Statement: incident.Statement{Spans: []evidence.Span{span(x.track, evidence.Mark{Line: x.Line, Offset: x.Offset}, x.Value),
				span(y.track, evidence.Mark{Line: y.Line, Offset: y.Offset}, y.Value)}}})
	}
	if s := broken[0]; s.n > 0 {
		y := c.y[s.first]
		say(s, r, o, c.a, c.b, c.x[s.first], y, because(o, y))
	}
	if s := broken[1]; s.n > 0 {
		x := c.x[s.first]
		say(s, o, r, c.b, c.a, c.y[s.first], x, because(r, x))
	}
	if s := other; s.n > 0 {
		x, y := c.x[s.first], c.y[s.first]
		why := "what the two keep of a value does not explain it"
		if !finite(x.Value) {
			why = "both say that it is not finite, and differ in how"
		}
		say(s, r, o, c.a, c.b, x, y, why)
	}
	return out
}

// because says what explains that a run has a finite value where another has one that is
// not.
func because(r *Run, p known) string {
	for _, s := range p.track.Suspects {
		if p.Ordinal >= s.First.Ordinal && p.Ordinal <= s.Last.Ordinal {
			return "the finite one may stand for it, as " + strings.TrimSuffix(s.Reason, ".")
		}
	}
	switch k := r.keeps(); {
	case k == evidence.Zeroed && p.Value == 0:
		return r.Tracker + " stores 0 for what is not finite"
	case k == evidence.Clamped && math.Abs(p.Value) >= math.MaxFloat64:
		return r.Tracker + " stores the largest finite number for an infinity"
	case k == evidence.Replaced:
		return "the trainer may replace such a value before it logs to " + r.Tracker
	}
	return "what the two keep of such values does not explain it"
}

// keeps is what the tracker of r makes of values that are not finite.
func (r *Run) keeps() evidence.Keeps {
	for _, p := range r.Parts {
		if p.Keeps != evidence.KeepsAll && p.Keeps != "" {
			return p.Keeps
		}
	}
	return evidence.KeepsAll
}

// lacking states that a tracker that never stores values that are not finite has no points
// at the steps at which another has such ones.
func lacking(has, lacks *Run, l, other *line) *incident.Statement {
	if lacks.keeps() != evidence.Dropped {
		return nil
	}
	held := other.points()
	n, first := 0, known{}
	for _, t := range l.tracks {
		for p := range t.Series.All() {
			if _, ok := held[p.Step]; !ok && p.Step != evidence.None && !finite(p.Value) {
				if n++; n == 1 {
					first = known{p, t}
				}
			}
		}
	}
	if n == 0 {
		return nil
	}
	return &incident.Statement{Text: fmt.Sprintf("%s has %s = %s at step %d, and %s has no value at %d such steps: %s never stores what is not finite.", has.label(), l.name, value(first.Value), first.Step, lacks.label(), n, lacks.Tracker),
		Spans: []evidence.Span{span(first.track, evidence.Mark{Line: first.Line, Offset: first.Offset}, first.Value)}}
}

// ends states that two trackers say different things of the end.
func (r *Run) ends(o *Run) *incident.Statement {
	x, y := r.end(Options{}), o.end(Options{})
	silent := func(r *Run, e End) bool { // Trackio has no word for an end
		return e.Status == evidence.RunUnknown || r.Tracker == "trackio" && e.Status == evidence.RunOpen
	}
	if x.Status == y.Status || silent(r, x) || silent(o, y) {
		return nil
	}
	s := &incident.Statement{Text: fmt.Sprintf("%s says %s of the run's end, and %s says %s.", r.label(), said(x), o.label(), said(y)), Spans: []evidence.Span{}}
	for _, p := range []*evidence.TrackedRun{r.Parts[len(r.Parts)-1], o.Parts[len(o.Parts)-1]} {
		if p.StatusSpan.Artifact != "" {
			s.Spans = append(s.Spans, p.StatusSpan)
		}
	}
	return s
}

func said(e End) string {
	if e.Said != "" {
		return fmt.Sprintf("%s (%q)", strings.ReplaceAll(string(e.Status), "-", " "), e.Said)
	}
	return strings.ReplaceAll(string(e.Status), "-", " ")
}

// reach states that one comes further than the other by more than it logs.
func (r *Run) reach(o *Run) *incident.Statement {
	x, y := r.lastStep(), o.lastStep()
	if x < y {
		r, o, x, y = o, r, y, x
	}
	stride := int64(0)
	for _, l := range append(slices.Clone(r.lines), o.lines...) {
		if l.class <= gradClass {
			for i := range l.segments {
				stride = max(stride, l.stride(i))
			}
		}
	}
	if y == evidence.None || x-y <= stride || stride == 0 {
		return nil
	}
	return &incident.Statement{Text: fmt.Sprintf("%s comes to step %d, and %s only to step %d; what a process has not yet written to disk is lost when it is killed.", r.label(), x, o.label(), y), Spans: []evidence.Span{}}
}
