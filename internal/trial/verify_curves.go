package trial

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/inquest-dev/inquest/internal/evidence"
	"github.com/inquest-dev/inquest/internal/incident"
)

// A Metric is one that the user names: its name, and the bound that its last value must keep.
type Metric struct {
	Name  string
	Op    string // <=, >= or ""
	Bound float64
}

// ParseMetric reads NAME, NAME<=V or NAME>=V.
func ParseMetric(text string) (Metric, error) {
	for _, op := range []string{"<=", ">="} {
		name, bound, ok := strings.Cut(text, op)
		if !ok {
			continue
		}
		v, err := strconv.ParseFloat(strings.TrimSpace(bound), 64)
		if name = strings.TrimSpace(name); err != nil || !isFinite(v) || name == "" {
			return Metric{}, fmt.Errorf("%q is no NAME%sNUMBER", text, op)
		}
		return Metric{name, op, v}, nil
	}
	name := strings.TrimSpace(text)
	if name == "" || strings.ContainsAny(name, "<>=") {
		return Metric{}, fmt.Errorf("%q is no metric: NAME, NAME<=NUMBER or NAME>=NUMBER", text)
	}
	return Metric{Name: name}, nil
}

func (m Metric) holds(v float64) bool {
	switch m.Op {
	case "<=":
		return v <= m.Bound
	case ">=":
		return v >= m.Bound
	}
	return true
}

// curveNames are the series that must stay finite.
var curveNames = []string{"loss", "grad_norm", "eval_loss"}

// curvesOf are the losses and gradient norms of a run.
func curvesOf(o *Observed) []incident.Series {
	var out []incident.Series
	for _, name := range curveNames {
		out = append(out, seriesNamed(o.Diagnosis, name)...)
	}
	return out
}

// curve puts a series of a run in short.
func curve(id string, s *incident.Series) incident.VerifiedCurve {
	c := incident.VerifiedCurve{Trial: id, Name: s.Name, Rank: s.Rank, Count: s.Count, Nonfinite: s.Bad, Trust: s.Trust}
	for i := range s.Points {
		if p := &s.Points[i]; p.Step != nil {
			if c.FirstStep == nil {
				c.FirstStep = p.Step
			}
			c.LastStep = p.Step
		}
	}
	if n := len(s.Points); n > 0 {
		c.Last = s.Points[n-1].Value
	}
	return c
}

// finiteCheck asks whether loss and gradient norm were finite all along.
func (v *verifier) finiteCheck() {
	class := v.class()
	check := incident.VerificationCheck{Name: incident.CheckFinite, Figures: []incident.Figure{}, Trials: []string{}, Deciding: evidence.Class(class) == evidence.Nonfinite}
	var points, bad int64
	runs, seen := 0, map[string]bool{}
	trusted, doubted := false, ""
	var first, worse string
	for i := range v.e.Runs {
		o := &v.e.Runs[i]
		has := false
		for _, s := range curvesOf(o) {
			c := curve(o.Trial.ID, &s)
			v.out.Curves = append(v.out.Curves, c)
			points, has, seen[s.Name] = points+s.Count, true, true
			if from, to, grew := diverged(&s); grew > diverges && first == "" {
				worse = fmt.Sprintf("%s goes from %s to %s: it diverges, though it is finite", words(s.Name), numberText(from), numberText(to))
				check.Trials = append(check.Trials, o.Trial.ID)
			}
			if s.Trust == "filtered" || s.Trust == "omitted" {
				doubted = s.Trust
			} else if s.Name != "eval_loss" {
				trusted = true
			}
			if s.Bad == 0 || s.Name == "grad_norm" && !v.nonfinite(o) {
				continue // what a loss scaler skips is finite again at the next step
			}
			bad += s.Bad
			check.Trials = append(check.Trials, o.Trial.ID)
			if first == "" {
				first = fmt.Sprintf("%s is not finite at %s of %s", words(s.Name), counted(int(min(s.Bad, math.MaxInt32)), "point", "points"), evidence.Count(int(s.Count)))
				if st := firstBadStep(&s); st != nil {
					first += fmt.Sprintf(", first at step %d", *st)
				}
			}
		}
		if has {
			runs++
		}
	}
	check.Trials = slices.Compact(check.Trials)
	names := strings.Join(sortedKeys(seen), ", ")
	check.Figures = append(check.Figures, figure("points", float64(points), "", evidence.Count(int(points))), figure("nonfinite", float64(bad), "", evidence.Count(int(bad))))
	switch {
	case bad > 0:
		check.State, check.Says = incident.No, fmt.Sprintf("%s (in %d of %d runs).", upper(first), len(check.Trials), len(v.e.Runs))
	case worse != "":
		check.State, check.Says = incident.No, fmt.Sprintf("%s (in %d of %d runs).", upper(worse), len(check.Trials), len(v.e.Runs))
	case points == 0:
		check.State, check.Says = incident.Unknown, "The log prints no loss or gradient norm."
		v.miss(incident.CheckFinite, "the loss", "print the loss with its step (step 120 loss 2.31)")
	case runs < len(v.e.Runs):
		check.State, check.Says = incident.Unknown, fmt.Sprintf("Only %d of %d runs print a loss or gradient norm.", runs, len(v.e.Runs))
	case !trusted && doubted == "filtered":
		check.State, check.Says = incident.Unknown, "The logged loss is finite, but this logger replaces values that are not."
		v.miss(incident.CheckFinite, "the loss as it is", "set logging_nan_inf_filter=False, or log the gradient norm")
	case !trusted && doubted == "omitted":
		check.State, check.Says = incident.Unknown, "The logged loss is finite, but this logger leaves out values that are not."
		v.miss(incident.CheckFinite, "the loss as it is", "print the loss in the loop itself")
	default:
		check.State, check.Says = incident.Yes, fmt.Sprintf("Finite at all %s points of %s: %s.", evidence.Count(int(points)), counted(len(v.e.Runs), "run", "runs"), names)
		if v.e.Reference == nil && v.e.Request.Reference == "" {
			check.Says += " Finite only: no reference says what the values should be."
		}
	}
	v.add(check)
}

// diverges is how many times its beginning a loss must end at to have diverged. A loss that only
// got worse is a matter for a reference.
const diverges = 1e6

// diverged returns what a loss begins and ends at, and how many times the one the other is: of
// each the median of three.
func diverged(s *incident.Series) (from, to, ratio float64) {
	var vals []float64
	for _, p := range s.Points {
		if p.Value != nil && isFinite(*p.Value) {
			vals = append(vals, math.Abs(*p.Value))
		}
	}
	if s.Name == "grad_norm" || len(vals) < 6 {
		return 0, 0, 0
	}
	middle := func(a []float64) float64 { return slices.Sorted(slices.Values(a))[1] }
	from, to = middle(vals[:3]), middle(vals[len(vals)-3:])
	return from, to, to / max(from, 1e-3)
}

// nonfinite reports whether the diagnosis of a run holds that values which are not finite were
// no healthy ones.
func (v *verifier) nonfinite(o *Observed) bool {
	inc := o.Diagnosis
	return inc != nil && (inc.Order.NonfiniteEvent != nil || inc.FirstFault != nil && evidence.Class(inc.FirstFault.Class) == evidence.Nonfinite)
}

func firstBadStep(s *incident.Series) *int64 {
	for _, p := range s.Points {
		if p.Value == nil {
			return p.Step
		}
	}
	return nil
}

// defaultTolerance is how far apart two curves may be, relative to the reference.
const defaultTolerance = 0.05

// referenceCheck compares the curves of each run with those of the reference, step by step.
func (v *verifier) referenceCheck() {
	ref := v.e.Reference
	if ref == nil {
		return
	}
	tol := v.e.Request.Tolerance
	if tol <= 0 {
		tol = defaultTolerance
	}
	check := incident.VerificationCheck{Name: incident.CheckReference, State: incident.Yes, Deciding: true, Figures: []incident.Figure{}, Trials: []string{}}
	compared := 0
	worst, worstText := 0.0, ""
	for i := range v.e.Runs {
		o := &v.e.Runs[i]
		for _, s := range curvesOf(o) {
			if s.Name == "grad_norm" {
				continue // it differs from run to run more than it says
			}
			for _, r := range seriesNamed(ref.Diagnosis, s.Name) {
				if !sameRank(r.Rank, s.Rank) {
					continue
				}
				d, at, n := apart(s.Points, r.Points)
				if n == 0 {
					continue
				}
				compared++
				if d > tol {
					check.Trials = append(check.Trials, o.Trial.ID)
				}
				if d >= worst {
					worst, worstText = d, fmt.Sprintf("%s is %s from the reference over the last %s up to step %d", words(s.Name), percentText(d), counted(n, "step that both have", "steps that both have"), at)
				}
			}
		}
	}
	check.Figures = append(check.Figures, figure("apart", worst, "ratio", percentText(worst)), figure("tolerance", tol, "ratio", percentText(tol)))
	switch {
	case compared == 0:
		check.State, check.Says = incident.Unknown, "No loss of a run has a step in common with the reference."
		v.miss(incident.CheckReference, "losses at the same steps as the reference's", "log the loss with its step, as often as the reference did")
	case worst > tol:
		check.State, check.Says = incident.No, fmt.Sprintf("%s, more than %s.", upper(worstText), percentText(tol))
	default:
		check.Says = fmt.Sprintf("%s, within %s.", upper(worstText), percentText(tol))
	}
	v.add(check)
}

func sameRank(a, b *int) bool { return a == nil || b == nil || *a == *b }

// apart is the median of the relative differences over the last quarter of the steps that both
// have, with the last of them and how many they are.
func apart(a, b []incident.Point) (median float64, last int64, n int) {
	at := map[int64]float64{}
	for _, p := range b {
		if p.Step != nil && p.Value != nil {
			at[*p.Step] = *p.Value
		}
	}
	var diffs []float64
	for _, p := range a {
		if p.Step == nil || p.Value == nil {
			continue
		}
		if w, ok := at[*p.Step]; ok {
			diffs = append(diffs, math.Abs(*p.Value-w)/max(math.Abs(w), 1e-8))
			last = *p.Step
		}
	}
	diffs = diffs[len(diffs)-(len(diffs)+3)/4:]
	if len(diffs) == 0 {
		return 0, 0, 0
	}
	slices.Sort(diffs)
	return diffs[len(diffs)/2], last, len(diffs)
}

// metricChecks ask for each metric that was named whether it is finite and in its bound.
func (v *verifier) metricChecks() {
	for _, text := range v.e.Request.Metrics {
		m, err := ParseMetric(text)
		if err != nil {
			continue // was refused before anything ran
		}
		check := incident.VerificationCheck{Name: incident.CheckMetric, Of: text, Deciding: true, Figures: []incident.Figure{}, Trials: []string{}}
		var lasts []float64
		wrong := ""
		for i := range v.e.Runs {
			o := &v.e.Runs[i]
			values := valuesOf(o, m.Name)
			if len(values) == 0 {
				continue
			}
			last := values[len(values)-1]
			lasts = append(lasts, last)
			bad := 0
			for _, x := range values {
				if !isFinite(x) {
					bad++
				}
			}
			switch {
			case bad > 0:
				wrong = fmt.Sprintf("%s is not finite at %d of %d points", m.Name, bad, len(values))
			case !m.holds(last):
				wrong = fmt.Sprintf("%s ends at %s, and %s %s was asked for", m.Name, numberText(last), m.Op, numberText(m.Bound))
			default:
				continue
			}
			check.Trials = append(check.Trials, o.Trial.ID)
		}
		for _, l := range lasts {
			check.Figures = append(check.Figures, figure("last", l, "", numberText(l)))
		}
		switch {
		case wrong != "":
			check.State, check.Says = incident.No, fmt.Sprintf("%s (in %d of %d runs).", upper(wrong), len(check.Trials), len(v.e.Runs))
		case len(lasts) < len(v.e.Runs) || len(lasts) == 0:
			check.State, check.Says = incident.Unknown, fmt.Sprintf("%d of %d runs print %s.", len(lasts), len(v.e.Runs), m.Name)
			v.miss(incident.CheckMetric, m.Name, fmt.Sprintf("print it at the end of the run, as %s=0.93", m.Name))
		default:
			slices.Sort(lasts)
			check.State, check.Says = incident.Yes, fmt.Sprintf("%s ends at %s to %s.", upper(m.Name), numberText(lasts[0]), numberText(lasts[len(lasts)-1]))
		}
		v.add(check)
	}
}

// valuesOf are the values of a metric in a run: as the diagnosis has the series, else as the log
// prints them.
func valuesOf(o *Observed, name string) []float64 {
	if v := o.Values[name]; len(v) > 0 {
		return v
	}
	var out []float64
	for _, s := range seriesNamed(o.Diagnosis, name) {
		for _, p := range s.Points {
			if p.Value != nil {
				out = append(out, *p.Value)
			} else {
				out = append(out, math.NaN())
			}
		}
	}
	return out
}

// stepSeconds is how long a step took: as the log states it, else by when steps were reached.
func stepSeconds(o *Observed) (float64, bool) {
	for _, s := range seriesNamed(o.Diagnosis, "step_time") {
		var vals []float64
		for _, p := range s.Points {
			if p.Value != nil && *p.Value > 0 {
				vals = append(vals, *p.Value)
			}
		}
		if len(vals) >= 3 {
			slices.Sort(vals)
			return vals[len(vals)/2], true
		}
	}
	if n := len(o.Steps); n >= 4 {
		a, b := o.Steps[n/5], o.Steps[n-1] // behind the warm-up
		if b.Step > a.Step && b.Seconds > a.Seconds {
			return (b.Seconds - a.Seconds) / (b.Step - a.Step), true
		}
	}
	return 0, false
}

// throughputCheck says what the change costs in time.
func (v *verifier) throughputCheck() {
	against, name := v.e.Reference, "the reference"
	if against == nil && v.e.Original != nil {
		against, name = &v.e.Original.Observed, "the run that failed"
	}
	most := v.e.Request.MaxSlowdown
	check := incident.VerificationCheck{Name: incident.CheckThroughput, Deciding: most > 0, State: incident.Unknown, Figures: []incident.Figure{}, Trials: []string{}}
	var times []float64
	for i := range v.e.Runs {
		if s, ok := stepSeconds(&v.e.Runs[i]); ok {
			times = append(times, s)
		}
	}
	slices.Sort(times)
	if len(times) == 0 {
		if most > 0 {
			check.Says = "How long a step takes is not known."
			v.miss(incident.CheckThroughput, "how long a step takes", "print step_time with each step, or the step itself without buffering")
			v.add(check)
		}
		return
	}
	median := times[len(times)/2]
	text := fmt.Sprintf("%s s for each step (%s to %s)", numberText(median), numberText(times[0]), numberText(times[len(times)-1]))
	check.Figures = append(check.Figures, figure("step_time", median, "seconds", text))
	base, ok := 0.0, false
	if against != nil {
		base, ok = stepSeconds(against)
	}
	if !ok {
		check.Says = upper(text) + "; that of " + name + " is not known."
		if against == nil {
			check.Says = upper(text) + "; there is nothing to compare it with."
		}
		if most > 0 {
			v.miss(incident.CheckThroughput, "how long a step took before", "name a run that has step times with --reference")
		}
		v.add(check)
		return
	}
	ratio, lo, hi := median/base, times[0]/base, times[len(times)-1]/base
	check.Figures = append(check.Figures, figure("ratio", ratio, "ratio", fmt.Sprintf("%.2f (%.2f to %.2f)", ratio, lo, hi)))
	check.State = incident.Yes
	check.Says = fmt.Sprintf("A step takes %.2f times as long as in %s (%.2f to %.2f): %s.", ratio, name, lo, hi, text)
	if most > 0 && ratio > most {
		check.State = incident.No
		check.Says = strings.TrimSuffix(check.Says, ".") + fmt.Sprintf("; %.2f was allowed.", most)
	}
	v.add(check)
}
