package trial

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sort"
	"strconv"
	"strings"
	"time"

	"github.com/inquest-dev/inquest/internal/incident"
)

// A Plan says what a search is to find, and within which bounds.
type Plan struct {
	Series   string
	Incident string
	Template []string // with {NAME} of each name of Vary, Keep and Also
	Set      []string // NAME=value, also with {NAME}
	Vary     []incident.Varied
	Keep     *incident.KeptProduct // null keeps none
	Also     []incident.Also
	Find     string
	// Repeats is how often each value of the answer must do the same; at least 1.
	Repeats    int
	AnyFailure bool // a failure that is not of memory counts as one
	Budget     Budget
	// Original is the failure for which the search is made; null where none is known.
	Original *incident.Incident
	Now      func() time.Time
}

// A Made is a trial of a search.
type Made struct {
	Done
	Checkpoint bool // it wrote something into its scratch folder that looks like a checkpoint
}

// Make makes one trial with these values, within this time where it is not 0. An error ends the
// search: nothing was started.
type Make func(ctx context.Context, values map[string]string, limit time.Duration) (*Made, error)

// Search makes trials until it knows where the command begins to fail, or what is smallest and
// still fails. The trials of known were made before, with the same template, and are not made again. told is called
// after each trial, in their order. The result is never null; with an error it holds what was
// found until then: the context's error where it was cancelled, else why no trial could be made.
//
// The search, for one name:
//
//  1. Halve the range, or go where the peaks of those that passed say that the edge is; at most
//     ⌈log2(values+1)⌉ trials tell all edges apart, also those at the ends (ladder).
//  2. Repeat the largest that passed until it passed Repeats times. Where it fails meanwhile, it
//     does not count as passing, and the nearest smaller one that does is looked for.
//  3. The same for the smallest that failed, upwards.
//
// For two names, 1 to 3 for each value of the second, the middle ones first: what passes with
// more of the second passes with less, so each row bounds the others.
func Search(ctx context.Context, p Plan, run Make, known []incident.Trial, told func(incident.BoundaryPoint)) (*incident.Trials, error) {
	h := newHunt(ctx, p, run, known, told)
	var err error
	if p.Find == incident.SmallestFailing {
		err = h.smallest()
	} else {
		err = h.edges()
	}
	return h.out, h.finish(err)
}

// A hunt is a search that is being made.
type hunt struct {
	Plan
	ctx    context.Context
	run    Make
	told   func(incident.BoundaryPoint)
	queue  map[string][]incident.Trial // made before, by their values, oldest first
	combos []map[string]string
	begun  time.Time
	made   int
	repeat bool // trials are repeats now

	out   *incident.Trials
	b     *incident.Boundary
	where string // memory that ran out in the latest trial that did
	reach map[string]reached

	rowsMade []madeRow
}

// A madeRow is a row that was searched, and its largest rung that passes.
type madeRow struct {
	*row
	good int
}

// reached says which phases a trial came to.
type reached struct{ evaluation, checkpoint, known bool }

// A stop is why a search ends before its end, in terms of its answer.
type stop struct{ answer, text string }

func (s *stop) Error() string { return s.text }

func newHunt(ctx context.Context, p Plan, run Make, known []incident.Trial, told func(incident.BoundaryPoint)) *hunt {
	if p.Find == "" {
		p.Find = incident.LargestPassing
	}
	p.Repeats = max(p.Repeats, 1)
	h := &hunt{Plan: p, ctx: ctx, run: run, told: told, queue: map[string][]incident.Trial{}, combos: combinations(p.Also), begun: p.Now(), reach: map[string]reached{}}
	for _, t := range known {
		if t.Verdict != nil {
			switch t.Verdict.Result {
			case incident.Passed, incident.OutOfMemory, incident.TrialFailed:
				h.queue[keyOf(t.Values)] = append(h.queue[keyOf(t.Values)], t)
			}
		}
	}
	h.b = &incident.Boundary{Find: p.Find, Vary: p.Vary, Keep: p.Keep, Also: p.Also, Repeats: p.Repeats, AnyFailure: p.AnyFailure,
		Edges: []incident.Edge{}, Points: []incident.BoundaryPoint{}, Skipped: []incident.SkippedValue{}, NotMonotone: []string{}, Phases: []incident.BoundaryPhase{}}
	if h.b.Also == nil {
		h.b.Also = []incident.Also{}
	}
	h.out = &incident.Trials{Schema: incident.TrialsSchema, ID: p.Series, By: incident.ByBoundary, Incident: p.Incident, Template: p.Template, Trials: []incident.Trial{}, Boundary: h.b, Limits: []string{}}
	return h
}

// keyOf is the same for the same values.
func keyOf(values map[string]string) string {
	var b strings.Builder
	for _, n := range slices.Sorted(maps.Keys(values)) {
		fmt.Fprintf(&b, "%s=%q ", n, values[n])
	}
	return b.String()
}

// one makes one trial, or takes one that was made before.
func (h *hunt) one(values map[string]string) (*incident.Trial, error) {
	key := keyOf(values)
	var t incident.Trial
	var inc *incident.Incident
	reused := len(h.queue[key]) > 0
	if reused {
		t = h.queue[key][0]
		h.queue[key] = h.queue[key][1:]
	} else {
		if err := h.ctx.Err(); err != nil {
			return nil, err
		}
		limit, err := h.Budget.Next(h.made, h.Now().Sub(h.begun))
		if err != nil {
			return nil, err
		}
		m, err := h.run(h.ctx, values, limit)
		if err != nil {
			return nil, err
		}
		h.made++
		t, inc = m.Trial, m.Diagnosis
		h.reach[t.ID] = reached{evaluation: evaluated(inc), checkpoint: m.Checkpoint, known: true}
	}
	t.Samples = nil
	if t.Verdict == nil {
		v := incident.TrialVerdict{Result: incident.TrialUnclear, Text: "What came of it was not recorded."}
		t.Verdict = &v
	}
	if t.Verdict.Result == incident.OutOfMemory {
		h.where = t.Verdict.Where
	}
	h.out.Trials = append(h.out.Trials, t)
	pt := pointOf(&t, values, bindOf(h.out.Trials, h.where))
	pt.Repeat, pt.Reused = h.repeat, reused
	pt.Ranks = ranksOut(inc)
	h.b.Points = append(h.b.Points, pt)
	if h.told != nil {
		h.told(pt)
	}
	if t.Verdict.Result == incident.TrialInterrupted && h.ctx.Err() != nil {
		return &t, h.ctx.Err()
	}
	if t.Verdict.Result == incident.TimedOut && !reused {
		// The time of the whole search may have ended it, not that of one trial.
		if _, err := (Budget{Time: h.Budget.Time}).Next(0, h.Now().Sub(h.begun)); err != nil {
			return &t, err
		}
	}
	return &t, nil
}

// pointOf is a trial as a point of the search.
func pointOf(t *incident.Trial, values map[string]string, b bind) incident.BoundaryPoint {
	p := incident.BoundaryPoint{Trial: t.ID, Values: values, Result: t.Verdict.Result, Where: t.Verdict.Where, Text: t.Verdict.Text, Survived: t.Verdict.Survived, Ranks: []int{}}
	measured(&p, b.of(t))
	if t.Ended != nil {
		a, err := time.Parse(time.RFC3339Nano, t.Begun)
		b, err2 := time.Parse(time.RFC3339Nano, *t.Ended)
		if err == nil && err2 == nil {
			s := b.Sub(a).Seconds()
			p.Seconds = &s
		}
	}
	return p
}

// measured writes down what was used of the memory that binds; m may be nil.
func measured(p *incident.BoundaryPoint, m *incident.Measure) {
	if m != nil {
		n := m.Peak
		p.Measure, p.Peak, p.Limit, p.LimitBy, p.AtLeast, p.Basis = m.Name, &n, m.Limit, m.LimitBy, m.AtLeast, m.Basis
	}
}

// ranksOut are the ranks that ran out of memory, ascending.
func ranksOut(inc *incident.Incident) []int {
	out := []int{}
	if inc == nil {
		return out
	}
	add := func(e *incident.Event) {
		if e != nil && e.Rank != nil && memoryClass(e.Class) {
			out = append(out, *e.Rank)
		}
	}
	add(inc.FirstFault)
	for i := range inc.FirstFaultRivals {
		add(&inc.FirstFaultRivals[i])
	}
	for _, c := range inc.Collateral {
		if memoryClass(c.Event.Class) {
			out = append(out, c.Ranks...)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// with are the values of a rung and of a shape, in words.
func with(values map[string]int64, combo map[string]string) map[string]string {
	out := maps.Clone(combo)
	for n, v := range values {
		out[n] = strconv.FormatInt(v, 10)
	}
	return out
}

// tryAll makes a trial of each shape, until one fails: then that shape is the first of the next
// value, because it is likely to show first what fails there.
func (h *hunt) tryAll(values map[string]int64) (outcome, []incident.Trial, error) {
	var made []incident.Trial
	for i := range h.combos {
		t, err := h.one(with(values, h.combos[i]))
		if t != nil {
			made = append(made, *t)
		}
		if err != nil {
			return undecided, made, err
		}
		r, err := h.decide(t)
		if err != nil {
			return undecided, made, err
		}
		if r == fails {
			worst := h.combos[i]
			h.combos = append([]map[string]string{worst}, slices.Delete(slices.Clone(h.combos), i, i+1)...)
			return fails, made, nil
		}
	}
	return passes, made, nil
}

// decide says what a trial tells a search for memory.
func (h *hunt) decide(t *incident.Trial) (outcome, error) {
	v := t.Verdict
	at := valueWords(t.Values)
	switch {
	case v.Result == incident.Passed:
		return passes, nil
	case v.Result == incident.OutOfMemory:
		return fails, nil
	case v.Result == incident.TrialFailed && h.AnyFailure:
		return fails, nil
	case v.Result == incident.TrialFailed:
		what := v.Kind
		if what == "" {
			what = "unknown"
		}
		return undecided, &stop{incident.OtherFailure, fmt.Sprintf("with %s it failed, but not for memory (%s): this is another failure. %s --any-failure searches for the edge of any failure.", at, words(what), v.Text)}
	case v.Result == incident.TimedOut:
		return undecided, &stop{incident.NotDecided, fmt.Sprintf("with %s it did not end within its time, which decides nothing; --timeout gives more. %s", at, v.Text)}
	}
	if t.Exit != nil && t.Exit.Stopped == incident.StoppedDisk {
		h.out.Stopped = incident.StoppedDisk
		return undecided, &stop{incident.NotDecided, fmt.Sprintf("with %s it was ended, because the trials wrote more than they may (--disk), which decides nothing", at)}
	}
	return undecided, &stop{incident.NotDecided, fmt.Sprintf("with %s it cannot be told whether it passed or failed. %s", at, v.Text)}
}

// valueWords are values as NAME=value, in the order of names.
func valueWords(values map[string]string) string {
	var out []string
	for _, n := range slices.Sorted(maps.Keys(values)) {
		out = append(out, n+"="+values[n])
	}
	return strings.Join(out, " ")
}

// edges is the search for the largest value that passes.
func (h *hunt) edges() error {
	rs, skipped := h.rungs()
	h.b.Skipped = skipped
	if len(h.Vary) == 1 || h.Keep != nil {
		h.b.Bound = mostTrials(len(rs)) * len(h.combos)
		_, _, err := h.row(rs, nil, 0, len(rs))
		return err
	}
	other := h.Vary[1]
	values := ladderOf(other)
	h.b.Bound = len(values) * mostTrials(len(rs)) * len(h.combos)
	err := h.rows(rs, other.Name, values, 0, len(rs))
	slices.SortFunc(h.b.Edges, func(a, b incident.Edge) int {
		return int(a.Fixed[other.Name] - b.Fixed[other.Name])
	})
	return err
}

// rows searches a row for each of values, the middle one first; edges are between low and high.
func (h *hunt) rows(rs []rung, name string, values []int64, low, high int) error {
	if len(values) == 0 {
		return nil
	}
	mid := len(values) / 2
	good, bad, err := h.row(rs, map[string]int64{name: values[mid]}, low, high)
	if err != nil {
		return err
	}
	// What passed here passes with less of the other name, what failed fails with more of it.
	if err := h.rows(rs, name, values[:mid], max(low, good+1), high); err != nil {
		return err
	}
	return h.rows(rs, name, values[mid+1:], low, min(high, bad))
}

// A row is the search of one edge.
type row struct {
	*hunt
	rungs  []rung
	fixed  map[string]int64
	seen   *tally
	trials [][]incident.Trial // of each rung
	ladder *ladder
}

// row finds one edge, between low and high: the largest rung that passed each time, -1 for none,
// and the smallest that failed each time, len(rs) for none.
func (h *hunt) row(rs []rung, fixed map[string]int64, low, high int) (good, bad int, err error) {
	r := &row{hunt: h, rungs: rs, fixed: fixed, seen: newTally(len(rs)), trials: make([][]incident.Trial, len(rs))}
	r.ladder = newLadder(len(rs), low, high)
	r.ladder.try, r.ladder.guess = r.try, r.guess
	before := len(h.b.Points)
	err = r.ladder.search()
	trials := len(h.b.Points) - before
	h.b.Trials += trials
	edge := incident.Edge{Name: h.name(), Fixed: fixed, Answer: incident.NotDecided, Flaky: []incident.EdgeValue{}, Trials: trials, Bound: r.ladder.bound * len(h.combos)}
	if fixed == nil {
		edge.Fixed = map[string]int64{}
	}
	if err == nil {
		h.repeat = true
		good, bad, err = r.confirm()
		h.repeat = false
	}
	if err == nil {
		edge.Answer = answerOf(good, bad, len(rs))
	} else {
		good, bad = r.soFar()
		var s *stop
		if errors.As(err, &s) {
			edge.Answer = s.answer
		}
	}
	if good >= 0 {
		edge.Largest = r.value(good)
	}
	if bad < len(rs) {
		edge.Smallest = r.value(bad)
	}
	for i := range rs {
		if r.seen.passed[i] > 0 && r.seen.failed[i] > 0 {
			edge.Flaky = append(edge.Flaky, *r.value(i))
		}
	}
	for _, c := range r.seen.crossed() {
		h.b.NotMonotone = append(h.b.NotMonotone, fmt.Sprintf("%s failed and %s passed%s", r.says(c[0]), r.says(c[1]), fixedWords(fixed)))
	}
	h.b.Edges = append(h.b.Edges, edge)
	h.rowsMade = append(h.rowsMade, madeRow{r, good})
	return good, bad, err
}

// name is the name whose edge is looked for.
func (h *hunt) name() string {
	if h.Keep != nil {
		return h.Keep.Name
	}
	return h.Vary[0].Name
}

// answerOf is the answer that two ends of n values give.
func answerOf(good, bad, n int) string {
	switch {
	case good == n-1 && bad == n:
		return incident.AllPass
	case bad == 0 && good < 0:
		return incident.NonePasses
	case good >= 0 && bad < n:
		return incident.Found
	}
	return incident.Flaky
}

// try asks about one rung.
func (r *row) try(i int) (outcome, error) {
	got, made, err := r.tryAll(r.all(i))
	r.trials[i] = append(r.trials[i], made...)
	if err == nil {
		r.seen.add(i, got)
	}
	return got, err
}

// all are the values of a rung, with those of the other names.
func (r *row) all(i int) map[string]int64 {
	out := maps.Clone(r.rungs[i].values)
	maps.Copy(out, r.fixed)
	return out
}

// confirm repeats at both sides of the edge.
func (r *row) confirm() (good, bad int, err error) {
	n := len(r.rungs)
	good, bad = r.ladder.low-1, r.ladder.high
	if good >= 0 {
		good, err = settle(good, -1, n, func(i int) (bool, error) { return r.seen.confirmed(i, r.Repeats, passes, r.try) })
	}
	if err == nil && bad < n {
		bad, err = settle(bad, 1, n, func(i int) (bool, error) { return r.seen.confirmed(i, r.Repeats, fails, r.try) })
	}
	return good, bad, err
}

// soFar are the nearest values of an edge that is not known: the largest that passed and never
// failed, below all that failed, and the smallest that failed and never passed.
func (r *row) soFar() (good, bad int) {
	good, bad = -1, len(r.rungs)
	for i := range r.rungs {
		if r.seen.failed[i] > 0 && r.seen.passed[i] == 0 {
			bad = i
			break
		}
	}
	for i := range bad {
		if r.seen.passed[i] > 0 && r.seen.failed[i] == 0 {
			good = i
		}
	}
	return good, bad
}

// value counts what a rung did.
func (r *row) value(i int) *incident.EdgeValue {
	v := &incident.EdgeValue{Value: r.rungs[i].value, Values: with(r.all(i), map[string]string{}), Passed: r.seen.passed[i], Failed: r.seen.failed[i], Trials: []string{}}
	v.Of = v.Passed + v.Failed
	for _, t := range r.trials[i] {
		v.Trials = append(v.Trials, t.ID)
	}
	return v
}

// says names a rung.
func (r *row) says(i int) string { return valueWords(with(r.rungs[i].values, map[string]string{})) }

func fixedWords(fixed map[string]int64) string {
	if len(fixed) == 0 {
		return ""
	}
	return " with " + valueWords(with(fixed, map[string]string{}))
}

// peaks are what the trials that passed used of the memory that binds, the highest of each rung,
// and the measure that came nearest to its limit; null where none was measured.
func (r *row) peaks() (nearest *incident.Measure, all []peak) {
	b := bindOf(r.out.Trials, r.where)
	for i := range r.rungs {
		most, atLeast := int64(0), false
		for j := range r.trials[i] {
			t := &r.trials[i][j]
			if t.Verdict.Result != incident.Passed {
				continue
			}
			if m := b.of(t); m != nil {
				if m.Peak > most {
					most, atLeast = m.Peak, m.AtLeast
				}
				if nearest == nil || nearer(m, nearest) {
					nearest = m
				}
			}
		}
		if most > 0 {
			all = append(all, peak{r.rungs[i].value, most, atLeast})
		}
	}
	return nearest, all
}

func (r *row) fit() *incident.Fit {
	m, all := r.peaks()
	if m == nil {
		return nil
	}
	return fitOf(m.Name, all, m.Limit)
}

// guess is the edge that the fit puts the limit at. With one peak alone it is behind the value
// that surely passes where peaks are a line that begins at 0 or above: that gives a second peak.
func (r *row) guess(low, high int) (int, bool) {
	m, all := r.peaks()
	if m == nil || m.Limit == nil {
		return 0, false
	}
	last := float64(0) // the largest value that is thought to pass
	f := fitOf(m.Name, all, m.Limit)
	switch {
	case f != nil && f.Edge != nil:
		last = float64(*f.Edge)
	case f == nil && len(all) == 1 && all[0].bytes > 0:
		last = float64(all[0].x) * float64(*m.Limit) / float64(all[0].bytes)
		if last < float64(all[0].x)+1 {
			return 0, false
		}
	default:
		return 0, false
	}
	edge := sort.Search(len(r.rungs), func(i int) bool { return float64(r.rungs[i].value) > last })
	return min(max(edge, low), high), true
}

// margin is what is left at the largest value that passes, by the trial that left least.
func (r *row) margin(good int) *incident.Margin {
	if good < 0 {
		return nil
	}
	b := bindOf(r.out.Trials, r.where)
	out := &incident.Margin{}
	var most *incident.Measure
	for j := range r.trials[good] {
		t := &r.trials[good][j]
		if t.Verdict.Result != incident.Passed {
			continue
		}
		if m := b.of(t); m != nil && (most == nil || nearer(m, most)) {
			most = m
		}
	}
	if most == nil {
		out.Why = "no peak of the memory in question was measured"
		return out
	}
	n := most.Peak
	out.Measure, out.Peak, out.Limit, out.LimitBy, out.Basis, out.AtMost = most.Name, &n, most.Limit, most.LimitBy, most.Basis, most.AtLeast
	if most.Limit == nil {
		out.Why = cmp.Or(b.why, "no limit of this memory is known")
		return out
	}
	left := *most.Limit - n
	out.Bytes = &left
	return out
}

// finish puts the answer of the whole together. It returns err where that is for the caller.
func (h *hunt) finish(err error) error {
	var s *stop
	switch {
	case errors.As(err, &s):
		h.b.Answer = s.answer
		h.out.Limits = append(h.out.Limits, upper(s.text))
		err = nil
	case errors.Is(err, ErrBudget):
		h.b.Answer, h.out.Stopped = incident.NotDecided, strings.TrimPrefix(err.Error(), ErrBudget.Error()+": ")
		h.out.Limits = append(h.out.Limits, "The search ended before its end: "+h.out.Stopped+".")
		err = nil
	case err != nil:
		h.b.Answer, h.out.Stopped = incident.NotDecided, "interrupt"
		if h.ctx.Err() == nil {
			h.out.Stopped = "no trial could be made"
		}
	case h.b.Answer == "":
		h.b.Answer = together(h.b.Edges)
	}
	h.alike()
	for _, m := range h.rowsMade {
		for i := range h.b.Edges {
			if e := &h.b.Edges[i]; maps.Equal(e.Fixed, m.fixed) {
				e.Margin, e.Fit = m.margin(m.good), m.fit()
			}
		}
	}
	h.phases()
	h.notes()
	h.b.Says = h.says()
	return err
}

// alike makes all points speak of one measure and limit: which one binds, later trials tell.
func (h *hunt) alike() {
	b := bindOf(h.out.Trials, h.where)
	for i := range h.b.Points {
		measured(&h.b.Points[i], b.of(&h.out.Trials[i]))
	}
}

// together is the answer of several edges.
func together(edges []incident.Edge) string {
	answer := ""
	for _, e := range edges {
		switch {
		case e.Answer == incident.NotDecided || e.Answer == incident.OtherFailure || e.Answer == incident.Flaky:
			return e.Answer
		case answer == "":
			answer = e.Answer
		case answer != e.Answer:
			answer = incident.Found
		}
	}
	return answer
}
