package report

import (
	"fmt"
	"io"
	"reflect"
	"strings"

	"github.com/inquest-dev/inquest/internal/evidence"
	"github.com/inquest-dev/inquest/internal/incident"
)

// verificationFormats lists every format of the result of inquest verify and of inquest incident
// recheck. Adding one is a row here and a file beside this one.
var verificationFormats = []format[*incident.Trials]{
	{"text", writeVerificationText},
	{"json", writeJSON[*incident.Trials]},
	{"markdown", writeVerificationMarkdown},
	{"html", writeVerificationHTML},
}

// VerificationFormats returns the names of the formats of WriteVerification, the default first.
func VerificationFormats() []string { return formatNames(verificationFormats) }

// WriteVerification renders what a verification showed in the named format.
func WriteVerification(w io.Writer, format string, t *incident.Trials, o Options) error {
	return writeIn(verificationFormats, w, format, t, o)
}

// A verifyView is a verification as reports speak of it.
type verifyView struct {
	*incident.Trials
	v *incident.Verification
}

// viewOf is the view of a clean copy of t.
func verifyViewOf(t *incident.Trials) *verifyView {
	t = copyClean(reflect.ValueOf(t)).Interface().(*incident.Trials)
	v := t.Verification
	if v == nil {
		v = &incident.Verification{Verdict: incident.Inconclusive, Says: "Nothing was verified."}
	}
	return &verifyView{t, v}
}

// verdictWords are the verdicts as people read them.
func verdictWords(verdict string) string {
	switch verdict {
	case incident.Verified:
		return "verified"
	case incident.NotVerified:
		return "NOT verified"
	}
	return "inconclusive"
}

func verdictTone(verdict string) string {
	switch verdict {
	case incident.Verified:
		return "good"
	case incident.NotVerified:
		return "bad"
	}
	return "plain"
}

// subject is what was verified: the command, or the checkpoint.
func (v *verifyView) subject() string {
	if len(v.Template) > 0 {
		return oneLine(strings.Join(v.Template, " "))
	}
	return oneLine(v.v.Request.Checkpoint)
}

func (v *verifyView) title() string {
	what := "Verification"
	if v.By == incident.ByRecheck {
		what = "Recheck"
	}
	return what + ": " + verdictWords(v.v.Verdict)
}

func (v *verifyView) verdictVariants() []string {
	says := strings.TrimSuffix(lower(v.v.Says), ".")
	out := []string{verdictWords(v.v.Verdict) + ": " + says}
	for _, end := range []string{". ", " (in ", "; at this rate", "; ", " ("} { // the rest stands with the check
		if i := strings.Index(says, end); i > 0 {
			out = append(out, verdictWords(v.v.Verdict)+": "+says[:i])
		}
	}
	return append(out, verdictWords(v.v.Verdict))
}

func (v *verifyView) runsVariants() []string {
	x := v.v
	out := fmt.Sprintf("%d of %d passed", x.Passed, x.Runs)
	if x.Failed > 0 {
		out += fmt.Sprintf(", %d failed", x.Failed)
		if x.Same > 0 {
			out += fmt.Sprintf(" (%d in the same way as before)", x.Same)
		}
	}
	short := out
	if x.Runs < x.Request.Runs {
		out += fmt.Sprintf("; %d were asked for", x.Request.Runs)
		if v.Stopped != "" {
			out += " (" + oneLine(v.Stopped) + ")"
		}
	}
	return []string{out + ": " + v.subject(), out, short}
}

func (v *verifyView) beforeVariants() []string {
	if v.v.Failure == nil {
		return []string{"no failure is named (--incident), so there is no point that had to be passed", "no failure is named"}
	}
	s := oneLine(v.v.Failure.Says)
	if c := v.v.Failure.Class; c != "" {
		return []string{s + " (" + class(c) + ")", s}
	}
	return []string{s}
}

// state of the check of that name, nil where it was not made.
func (v *verifyView) check(name string) *incident.VerificationCheck {
	for i := range v.v.Checks {
		if v.v.Checks[i].Name == name {
			return &v.v.Checks[i]
		}
	}
	return nil
}

func (v *verifyView) memoryVariants() []string {
	c := v.check(incident.CheckSlope)
	if c == nil {
		return []string{"was not looked at"}
	}
	return []string{strings.TrimSuffix(lower(oneLine(c.Says)), ".")}
}

func (v *verifyView) lacksVariants() []string {
	if len(v.v.Missing) == 0 {
		return []string{"nothing that would decide more"}
	}
	m := v.v.Missing[0]
	out := []string{fmt.Sprintf("%s; %s", oneLine(m.Fact), oneLine(m.How)), oneLine(m.How)}
	if n := len(v.v.Missing) - 1; n > 0 {
		out[0] += fmt.Sprintf(" (and %d more)", n)
	}
	return out
}

// lines are the first lines of a report.
func (v *verifyView) lines() []labelled {
	var out []labelled
	for _, l := range v.headed() {
		out = append(out, labelled{Label: l.label, Text: sentence(l.variants[0])})
	}
	return out
}

// A headLine is a labelled line in several lengths.
type headLine struct {
	label    string
	variants []string
}

// headed are the first lines, each in several lengths.
func (v *verifyView) headed() []headLine {
	result, lacks := headLine{"Result", v.verdictVariants()}, headLine{"Lacks", v.lacksVariants()}
	switch {
	case len(v.v.Request.Command) == 0:
		return []headLine{result, {"Runs", []string{"none: only the checkpoint was looked at"}}, {"Holds", v.holdsVariants()}, lacks}
	case v.By == incident.ByRecheck:
		return []headLine{result, {"Since", v.sinceVariants()}, {"Runs", v.runsVariants()}, {"Memory", v.memoryVariants()}, lacks}
	}
	return []headLine{result, {"Runs", v.runsVariants()}, {"Before", v.beforeVariants()}, {"Memory", v.memoryVariants()}, lacks}
}

// holdsVariants say what is in the checkpoint.
func (v *verifyView) holdsVariants() []string {
	if len(v.v.Checkpoints) == 0 {
		return []string{"nothing that was looked at"}
	}
	c := &v.v.Checkpoints[0]
	s := fmt.Sprintf("%s in %s (%s), %s", several(c.Tensors, "tensor"), several(len(c.Files), "file"), oneLine(c.Format), evidence.Bytes(c.Bytes))
	return []string{s + ": " + oneLine(c.Path), s}
}

// sinceVariants say what changed since the last verification.
func (v *verifyView) sinceVariants() []string {
	o := v.v.Original
	switch {
	case o == nil:
		return []string{"what changed since the last verification is not known"}
	case len(o.Changes) == 0:
		return []string{"nothing that is on record changed since the last verification", "nothing on record changed"}
	}
	var parts []string
	for _, c := range o.Changes {
		parts = append(parts, oneLine(c.Text))
	}
	return []string{"changed since the last verification: " + listed(parts, 6), listed(parts, 3), several(len(parts), "change") + " since the last verification"}
}

// checkNames are the checks as people read them.
var checkNames = map[string]string{
	incident.CheckEnded: "ends well", incident.CheckClean: "no fault on the way", incident.CheckPast: "past the failure", incident.CheckPeak: "peak memory", incident.CheckSlope: "memory over steps",
	incident.CheckFinite: "finite values", incident.CheckReference: "as the reference", incident.CheckMetric: "metric", incident.CheckCheckpoint: "checkpoint", incident.CheckEvaluate: "evaluation",
	incident.CheckThroughput: "time", incident.CheckNearby: "beside it", incident.CheckEnough: "enough runs",
}

// verifyCheckWords are a check's name and its sentence. What decides nothing says so.
func verifyCheckWords(c *incident.VerificationCheck) (name, says string) {
	name = checkNames[c.Name]
	if name == "" {
		name = oneLine(c.Name)
	}
	if c.Of != "" {
		name += " " + oneLine(c.Of)
	}
	says = oneLine(c.Says)
	if c.State == incident.Unknown && !c.Deciding {
		says += " (decides nothing)"
	}
	return name, says
}

// verifiedColumns head the table of trials, verifiedCells fill it.
var verifiedColumns = []gridColumn{{"run", false, 0}, {"result", false, 1}, {"status", true, 3}, {"took", true, 4}, {"peak memory", true, 2}}

func verifiedCells(t *incident.Trial) []string {
	cells := []string{oneLine(t.ID), "–", "–", "–", "–"}
	if t.Verdict != nil {
		cells[1] = strings.ReplaceAll(oneLine(t.Verdict.Result), "_", " ")
	}
	if t.Exit != nil {
		cells[2] = fmt.Sprint(t.Exit.Status)
		if t.Exit.Signal != "" {
			cells[2] = oneLine(t.Exit.Signal)
		}
	}
	if t.Ended != nil {
		if d := trialSeconds(t.Begun, *t.Ended); d >= 0 {
			cells[3] = fmt.Sprintf("%.1f s", d)
		}
	}
	for _, m := range t.Measures {
		if m.Name == incident.Resident && cells[4] == "–" || m.Name == incident.DeviceMemory {
			cells[4] = evidence.Bytes(m.Peak)
		}
	}
	return cells
}

// changedTitle heads what differs.
func (v *verifyView) changedTitle() string {
	if v.By == incident.ByRecheck {
		return "Since the last verification"
	}
	return "Against the run that failed"
}

// changedLines say what differs from the trial that failed, or from what was verified last.
func (v *verifyView) changedLines() []string {
	o := v.v.Original
	if o == nil {
		return nil
	}
	out := []string{oneLine(o.Says)}
	for _, c := range o.Changes {
		if s := oneLine(c.Text); s != "" {
			out = append(out, s)
		} else {
			out = append(out, fmt.Sprintf("%s %s: %q became %q", oneLine(c.Of), oneLine(c.Name), oneLine(c.From), oneLine(c.To)))
		}
	}
	return out
}

// checkpointLines say what was found in a checkpoint.
func checkpointLines(c *incident.Checkpoint) []string {
	out := []string{fmt.Sprintf("%s: %s; %s, %s, %s of numbers looked at", oneLine(c.Path), oneLine(c.Says), oneLine(c.Format), several(c.Tensors, "tensor"), evidence.Bytes(c.Scanned))}
	for _, t := range c.Nonfinite {
		what := "refused"
		if !t.Refuses {
			what = "may be meant"
		}
		out = append(out, fmt.Sprintf("%s %q in %s: %s of %s elements (%s, %s)", oneLine(t.Role), oneLine(t.Name), oneLine(t.File), countWords(t.NaN, t.PosInf, t.NegInf), thousands(t.Elements), oneLine(t.DType), what))
	}
	if c.MoreNonfinite > 0 {
		out = append(out, fmt.Sprintf("%s more that are not finite", several(c.MoreNonfinite, "tensor")))
	}
	for _, s := range c.Problems {
		out = append(out, "problem: "+oneLine(s))
	}
	for _, s := range c.Unchecked {
		out = append(out, "not looked into: "+oneLine(s))
	}
	for _, s := range c.Notes {
		out = append(out, oneLine(s))
	}
	return out
}
