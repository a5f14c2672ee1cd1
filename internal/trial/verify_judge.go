package trial

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/inquest-dev/inquest/internal/evidence"
	"github.com/inquest-dev/inquest/internal/incident"
)

// An Original is the failure that a verification is about.
type Original struct {
	Observed
	Fingerprint string
	// Failed and Made count the trials of the same command before: those that failed in this
	// way, and all that came to an end.
	Failed, Made int
}

// A Nearby is one try of a function beside the scenario.
type Nearby struct {
	Command []string
	Done    *Done // null where it was not started
	Error   string
}

// An Evaluated is the user's command run on a checkpoint.
type Evaluated struct {
	Checkpoint string
	Nearby
}

// VerifyEvidence is all that a verdict rests on.
type VerifyEvidence struct {
	Request     incident.VerificationRequest
	Runs        []Observed
	Original    *Original // null where no incident is named
	Reference   *Observed // null where none is named
	Nearby      []Nearby
	Checkpoints []incident.Checkpoint
	Evaluated   []Evaluated
	Stopped     string // why fewer runs were made than asked for
	// Recheck says that the scenario was verified before: then a failure of another kind says
	// nothing of whether the incident is back.
	Recheck bool
}

// A verifier makes one verdict.
type verifier struct {
	e   *VerifyEvidence
	out incident.Verification
}

// JudgeVerification says whether the scenario succeeds. It reads nothing but e.
func JudgeVerification(e VerifyEvidence) incident.Verification {
	v := &verifier{e: &e}
	v.out = incident.Verification{Request: e.Request, Runs: len(e.Runs), Checks: []incident.VerificationCheck{}, Missing: []incident.VerificationMissing{}, Memory: []incident.MemoryTrend{},
		Curves: []incident.VerifiedCurve{}, Checkpoints: e.Checkpoints}
	if v.out.Checkpoints == nil {
		v.out.Checkpoints = []incident.Checkpoint{}
	}
	v.out.Failure = failurePoint(e.Original)
	if len(e.Request.Command) > 0 {
		v.endedCheck()
		v.cleanCheck()
		v.pastCheck()
		v.peakCheck()
		v.slopeCheck()
		v.finiteCheck()
		v.referenceCheck()
		v.metricChecks()
	}
	v.checkpointChecks()
	v.evaluateChecks()
	if len(e.Request.Command) > 0 {
		v.throughputCheck()
	}
	v.nearbyChecks()
	if len(e.Request.Command) > 0 {
		v.enoughCheck()
	}
	v.conclude()
	return v.out
}

func (v *verifier) add(c incident.VerificationCheck) {
	if c.Figures == nil {
		c.Figures = []incident.Figure{}
	}
	if c.Trials == nil {
		c.Trials = []string{}
	}
	v.out.Checks = append(v.out.Checks, c)
}

func (v *verifier) miss(check, fact, how string) {
	m := incident.VerificationMissing{Check: check, Fact: fact, How: how}
	if !slices.Contains(v.out.Missing, m) {
		v.out.Missing = append(v.out.Missing, m)
	}
}

// class is that of the failure, "" where none is known.
func (v *verifier) class() string {
	if v.out.Failure == nil {
		return ""
	}
	return v.out.Failure.Class
}

// failurePoint is how far the failing run came.
func failurePoint(o *Original) *incident.FailurePoint {
	if o == nil {
		return nil
	}
	p := &incident.FailurePoint{}
	if s, ok := seconds(o.Trial); ok {
		p.Seconds = &s
	}
	if v := o.Trial.Verdict; v != nil {
		p.Class = v.Class
	}
	if inc := o.Diagnosis; inc != nil {
		if f := inc.FirstFault; f != nil {
			p.Class, p.Step = f.Class, f.Step
		}
		if inc.LastGood != nil {
			p.Good = inc.LastGood.Step
		}
	}
	if p.Step == nil && p.Good == nil {
		p.Good = o.LastStep
	}
	switch {
	case p.Step != nil:
		p.Says = fmt.Sprintf("it failed at step %d", *p.Step)
	case p.Good != nil:
		p.Says = fmt.Sprintf("it failed behind step %d", *p.Good)
	case p.Seconds != nil:
		p.Says = fmt.Sprintf("it failed after %.1f s, at a step that its log does not state", *p.Seconds)
	default:
		p.Says = "how far it came is not known"
	}
	return p
}

// ended reports whether a trial ended by itself with status 0.
func ended(t *incident.Trial) bool {
	return t.Exit != nil && t.Exit.Status == 0 && t.Exit.Stopped == "" && t.Exit.Error == ""
}

func result(t *incident.Trial) string {
	if t.Verdict == nil {
		return incident.TrialUnclear
	}
	return t.Verdict.Result
}

// endedCheck asks whether every run ended by itself with status 0, all ranks of it.
func (v *verifier) endedCheck() {
	check := incident.VerificationCheck{Name: incident.CheckEnded, Deciding: true, Figures: []incident.Figure{}, Trials: []string{}}
	var first, open string
	for i := range v.e.Runs {
		t := &v.e.Runs[i].Trial
		text := ""
		if t.Verdict != nil {
			text = strings.TrimSuffix(t.Verdict.Text, ".")
		}
		switch r := result(t); {
		case r == incident.Passed && ended(t):
			v.out.Passed++
		case r == incident.OutOfMemory, r == incident.TrialFailed:
			v.out.Failed++
			check.Trials = append(check.Trials, t.ID)
			if first == "" {
				first = text
			}
			if o := v.e.Original; o != nil && failedAsBefore(o, t.Verdict) {
				v.out.Same++
			}
		default:
			if open == "" {
				open = text
			}
		}
	}
	n := len(v.e.Runs)
	check.Figures = append(check.Figures, figure("passed", float64(v.out.Passed), "", fmt.Sprintf("%d of %d", v.out.Passed, n)))
	same := ""
	if v.out.Same > 0 {
		same = "; in the same way as before"
		if v.out.Same < v.out.Failed {
			same = fmt.Sprintf("; %d in the same way as before", v.out.Same)
		}
	}
	switch {
	case v.out.Failed > 0 && v.out.Passed > 0:
		check.State, check.Says = incident.No, fmt.Sprintf("%d of %d runs passed and %d failed%s: it fails now and then. %s.", v.out.Passed, n, v.out.Failed, same, first)
	case v.out.Failed > 0:
		check.State, check.Says = incident.No, fmt.Sprintf("%d of %d runs failed%s. %s.", v.out.Failed, n, same, first)
	case n == 0:
		check.State, check.Says = incident.Unknown, "No run was made."
	case v.out.Passed < n:
		check.State, check.Says = incident.Unknown, fmt.Sprintf("%d of %d runs ended by themselves with status 0. %s.", v.out.Passed, n, cmp.Or(open, "How the others ended is not known"))
		v.miss(incident.CheckEnded, "the end of each run", "give each run more time (--timeout), or let nothing stop it")
	default:
		check.State, check.Says = incident.Yes, fmt.Sprintf("%d of %d runs ended by themselves with status 0.", v.out.Passed, n)
		if n == 1 {
			check.Says = "The run ended by itself with status 0."
		}
	}
	v.add(check)
}

// failedAsBefore reports whether a run failed as the original did: by its fingerprint, or by what
// its first fault is.
func failedAsBefore(o *Original, v *incident.TrialVerdict) bool {
	if o.Fingerprint != "" && v.Fingerprint == o.Fingerprint {
		return true
	}
	was := o.Trial.Verdict
	return was != nil && was.Class != "" && sameFailure(was.Class, was.Kind, v)
}

// cleanCheck asks whether a run that ended well had no fault on the way.
func (v *verifier) cleanCheck() {
	check := incident.VerificationCheck{Name: incident.CheckClean, Deciding: true, State: incident.Yes, Figures: []incident.Figure{}, Trials: []string{}}
	allowed := ""
	if r := v.e.Reference; r != nil && r.Trial.Verdict != nil {
		allowed = r.Trial.Verdict.Survived
	}
	first, judged, meant := "", 0, false
	for i := range v.e.Runs {
		o := &v.e.Runs[i]
		if !ended(&o.Trial) {
			continue
		}
		if o.Diagnosis != nil {
			judged++
		}
		switch vd := o.Trial.Verdict; {
		case vd == nil || vd.Survived == "":
		case vd.Survived == allowed:
			meant = true
		default:
			check.Trials = append(check.Trials, o.Trial.ID)
			if first == "" {
				first = strings.TrimSuffix(vd.Survived, ".")
			}
		}
	}
	switch {
	case first != "":
		check.State = incident.No
		check.Says = fmt.Sprintf("In %d of %d runs that ended with status 0: %s.", len(check.Trials), len(v.e.Runs), lowerFirst(first))
	case judged == 0:
		check.State, check.Says = incident.Unknown, "What was printed could not be diagnosed."
		if v.out.Passed == 0 {
			check.Says = "No run ended well."
		}
	case meant:
		check.Says = "What happened on the way happened in the reference too."
	default:
		check.Says = "No fault on the way, and none survived in silence."
	}
	v.add(check)
}

func lowerFirst(s string) string {
	if s == "" {
		return s
	}
	return strings.ToLower(s[:1]) + s[1:]
}

// limiting are arguments that end a run early.
var limiting = []string{"step", "iter", "epoch", "max_", "max-", "limit", "duration", "samples", "subset", "dry", "smoke", "fast_dev", "overfit"}

// pastCheck asks whether each run came past the point at which it failed before.
func (v *verifier) pastCheck() {
	p := v.out.Failure
	if p == nil {
		return
	}
	check := incident.VerificationCheck{Name: incident.CheckPast, Deciding: true, State: incident.Unknown, Figures: []incident.Figure{}, Trials: []string{}}
	var short []string
	var reached []int64
	stated := 0
	for i := range v.e.Runs {
		o := &v.e.Runs[i]
		if !ended(&o.Trial) {
			continue
		}
		if o.LastStep == nil {
			continue
		}
		stated++
		reached = append(reached, *o.LastStep)
		if p.Step != nil && *o.LastStep < *p.Step || p.Good != nil && *o.LastStep <= *p.Good {
			short = append(short, o.Trial.ID)
		}
	}
	known := p.Step != nil || p.Good != nil
	if len(reached) > 0 {
		slices.Sort(reached)
		check.Figures = append(check.Figures, figure("last_step", float64(reached[0]), "steps", fmt.Sprintf("step %d", reached[0])))
	}
	whole, differs := v.whole()
	switch {
	case v.out.Passed == 0:
		check.Says = "No run ended well; " + p.Says + "."
	case known && stated == v.out.Passed && len(short) == 0:
		check.State, check.Says = incident.Yes, fmt.Sprintf("Every run that ended well came to step %d or beyond; before, %s.", reached[0], p.Says)
	case len(short) > 0 && whole:
		check.Says = fmt.Sprintf("The last step that is logged is %d, and %s; the run ended by itself, but steps may count otherwise now.", reached[0], p.Says)
		v.miss(incident.CheckPast, "steps beyond the failure", "let the run be as long as the one that failed, or log more often")
	case len(short) > 0:
		check.State, check.Trials = incident.No, short
		check.Says = fmt.Sprintf("A run ended at step %d, and %s: it did not come to the point that matters.", reached[0], p.Says)
	case whole:
		check.State, check.Says = incident.Yes, fmt.Sprintf("The whole command ended by itself with status 0, which is past any point of it; before, %s.", p.Says)
	default:
		check.Says = fmt.Sprintf("Whether the runs came past the failure is not known: %s, and the log states no step", p.Says)
		if differs != "" {
			check.Says += "; the command differs in " + differs
		}
		check.Says += "."
		v.miss(incident.CheckPast, "the step at which the run is", "print the step with each line of progress (step 120 loss 2.31)")
	}
	v.add(check)
}

// whole reports whether the end of the command is the end of the scenario that failed: it is the
// same program, and no argument that differs cuts it short. Else it says which does.
func (v *verifier) whole() (bool, string) {
	o := v.e.Original
	if o == nil || len(v.e.Runs) == 0 {
		return false, ""
	}
	now := &v.e.Runs[0].Trial
	if o.Trial.Scenario != "" && now.Scenario != "" && o.Trial.Scenario != now.Scenario {
		return false, "its program"
	}
	if o.Trial.Scenario == "" || now.Scenario == "" {
		if len(o.Trial.Command) == 0 || len(now.Command) == 0 || o.Trial.Command[0] != now.Command[0] {
			return false, "its program"
		}
	}
	was, is := map[string]bool{}, map[string]bool{}
	for _, a := range o.Trial.Command {
		was[a] = true
	}
	for _, a := range now.Command {
		is[a] = true
	}
	suspicious := func(list []string, other map[string]bool) string {
		for i, a := range list {
			if other[a] {
				continue
			}
			name := a
			if !strings.HasPrefix(a, "-") && !strings.Contains(a, "=") && i > 0 && strings.HasPrefix(list[i-1], "-") {
				name = list[i-1]
			}
			low := strings.ToLower(name)
			if slices.ContainsFunc(limiting, func(w string) bool { return strings.Contains(low, w) }) {
				return name
			}
		}
		return ""
	}
	if a := cmp.Or(suspicious(now.Command, was), suspicious(o.Trial.Command, is)); a != "" {
		return false, a
	}
	return true, ""
}

// checkpointChecks put down what was found in each checkpoint.
func (v *verifier) checkpointChecks() {
	want := v.e.Request.Checkpoint
	if want == "" {
		return
	}
	if len(v.e.Checkpoints) == 0 {
		v.add(incident.VerificationCheck{Name: incident.CheckCheckpoint, Of: want, Deciding: true, State: incident.Unknown, Says: "No checkpoint was inspected: no run ended well."})
		return
	}
	for i := range v.e.Checkpoints {
		c := &v.e.Checkpoints[i]
		check := incident.VerificationCheck{Name: incident.CheckCheckpoint, Of: c.Path, Deciding: true, State: c.State, Says: asSentence(c.Says)}
		check.Figures = []incident.Figure{figure("tensors", float64(c.Tensors), "", evidence.Count(c.Tensors)), figure("bytes", float64(c.Bytes), "bytes", bytesText(c.Bytes)), figure("nonfinite", float64(len(c.Nonfinite)+c.MoreNonfinite), "", fmt.Sprint(len(c.Nonfinite)+c.MoreNonfinite))}
		if c.Trial != "" {
			check.Of, check.Trials = want, []string{c.Trial}
		}
		if c.State == incident.Unknown {
			v.miss(incident.CheckCheckpoint, "whether "+c.Path+" can be used", "load it with --evaluate CMD, where {CHECKPOINT} stands for it")
		}
		v.add(check)
	}
}

// asSentence makes a sentence of text, which may begin with the name of a file.
func asSentence(text string) string {
	if first, _, _ := strings.Cut(text, " "); !strings.ContainsAny(first, "./_:") {
		text = upper(text)
	}
	return text + "."
}

// evaluateChecks put down whether the user's command could use the checkpoint.
func (v *verifier) evaluateChecks() {
	for i := range v.e.Evaluated {
		e := &v.e.Evaluated[i]
		check := command(incident.CheckEvaluate, e.Nearby)
		check.Of = v.e.Request.Checkpoint
		v.add(check)
	}
	if len(v.e.Request.Evaluate) > 0 && len(v.e.Evaluated) == 0 {
		v.add(incident.VerificationCheck{Name: incident.CheckEvaluate, Deciding: true, State: incident.Unknown, Says: "It was not run: there was no checkpoint to run it on."})
	}
}

// nearbyChecks put down whether the functions beside the scenario work.
func (v *verifier) nearbyChecks() {
	for _, n := range v.e.Nearby {
		v.add(command(incident.CheckNearby, n))
	}
	if len(v.e.Nearby) < len(v.e.Request.Nearby) {
		v.add(incident.VerificationCheck{Name: incident.CheckNearby, Deciding: true, State: incident.Unknown, Says: fmt.Sprintf("%d of %d were run.", len(v.e.Nearby), len(v.e.Request.Nearby))})
	}
}

// command is the check of a command that must succeed once.
func command(name string, n Nearby) incident.VerificationCheck {
	check := incident.VerificationCheck{Name: name, Of: strings.Join(n.Command, " "), Deciding: true, State: incident.Unknown, Says: "It could not be run: " + n.Error + "."}
	if n.Done == nil {
		return check
	}
	t := &n.Done.Trial
	check.Trials = []string{t.ID}
	if t.Verdict != nil {
		check.Says = t.Verdict.Text
	}
	switch r := result(t); {
	case r == incident.Passed && t.Verdict.Survived == "":
		check.State = incident.Yes
	case r == incident.Passed, r == incident.TrialFailed, r == incident.OutOfMemory:
		check.State = incident.No
	}
	return check
}

// luck is how likely it may be that all runs passed though nothing was mended.
const luck = 0.05

// enoughCheck asks whether so many successes are no chance.
func (v *verifier) enoughCheck() {
	n := v.out.Passed
	check := incident.VerificationCheck{Name: incident.CheckEnough, Deciding: true, State: incident.Yes, Figures: []incident.Figure{figure("runs", float64(n), "", fmt.Sprint(n))}}
	o := v.e.Original
	always := o != nil && o.Failed >= 2 && o.Failed == o.Made
	switch {
	case v.out.Failed > 0:
		return
	case n == 0:
		check.State, check.Says = incident.Unknown, "No run ended well."
	case o != nil && o.Failed > 0 && o.Failed < o.Made:
		rate := float64(o.Failed) / float64(o.Made)
		chance := math.Pow(1-rate, float64(n))
		check.Figures = append(check.Figures, figure("chance", chance, "", percentText(chance)))
		check.Says = fmt.Sprintf("Before the change %d of %d runs failed; that all %d would pass by chance has a probability of %s.", o.Failed, o.Made, n, percentText(chance))
		if chance > luck {
			check.State = incident.Unknown
			need := int(math.Ceil(math.Log(luck) / math.Log(1-rate)))
			v.miss(incident.CheckEnough, "more runs: it fails only now and then", fmt.Sprintf("--runs %d", need))
		}
	case always:
		check.Says = fmt.Sprintf("All %d runs failed before the change; %s.", o.Made, counted(n, "run passed behind it", "runs passed behind it"))
	case n < 2:
		check.State, check.Says = incident.Unknown, "One success proves little: whether it failed every time is not known."
		v.miss(incident.CheckEnough, "a second success", "--runs 2 or more")
	case n < v.e.Request.Runs:
		check.State, check.Says = incident.Unknown, fmt.Sprintf("%d of %d runs were made.", len(v.e.Runs), v.e.Request.Runs)
		if v.e.Stopped != "" {
			check.Says = fmt.Sprintf("%d of %d runs were made: %s.", len(v.e.Runs), v.e.Request.Runs, v.e.Stopped)
		}
		v.miss(incident.CheckEnough, "the runs that were not made", "let all of them be made, or ask for fewer with --runs")
	default:
		check.Says = fmt.Sprintf("%d runs passed, one behind the other.", n)
	}
	v.add(check)
}

// conclude makes the verdict of the checks.
func (v *verifier) conclude() {
	var no, open []string
	for _, c := range v.out.Checks {
		switch {
		case c.State == incident.No:
			no = append(no, c.Says)
		case c.State == incident.Unknown && c.Deciding && c.Name == incident.CheckEnough && v.out.Passed > 0 && v.out.Passed == v.out.Runs:
			open = slices.Insert(open, 0, c.Says) // more runs decide other checks too
		case c.State == incident.Unknown && c.Deciding:
			open = append(open, c.Says)
		}
	}
	switch {
	case len(v.out.Checks) == 0:
		v.out.Verdict, v.out.Says = incident.Inconclusive, "Nothing was checked."
	case len(no) > 0 && v.e.Recheck && v.out.Failed > 0 && v.out.Same == 0:
		v.out.Verdict, v.out.Says = incident.Inconclusive, "It failed in another way than the incident: "+lowerFirst(no[0])
	case len(no) > 0:
		v.out.Verdict, v.out.Says = incident.NotVerified, no[0]
	case len(open) > 0:
		v.out.Verdict, v.out.Says = incident.Inconclusive, open[0]
	default:
		v.out.Verdict = incident.Verified
		if len(v.e.Request.Command) == 0 {
			v.out.Says = v.out.Checks[0].Says
			return
		}
		v.out.Says = fmt.Sprintf("%d of %d runs passed", v.out.Passed, v.out.Runs)
		for _, c := range v.out.Checks {
			if c.State == incident.Yes && (c.Name == incident.CheckPast || c.Name == incident.CheckSlope) {
				v.out.Says += map[string]string{incident.CheckPast: ", past the point at which it failed", incident.CheckSlope: ", and memory does not grow"}[c.Name]
			}
		}
		v.out.Says += "."
	}
}
