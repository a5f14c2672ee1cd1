package mcp

import (
	"fmt"
	"strings"

	"github.com/inquest-dev/inquest/internal/desk"
	"github.com/inquest-dev/inquest/internal/incident"
)

// A verdict is an incident in what an answer has room for: the attempt that ended the job, its
// leading causes, the change to make, and how much there is of everything else.
type verdict struct {
	Outcome    string       `json:"outcome" jsonschema:"failed, finished, running, interrupted or unclear"`
	FirstFault *fault       `json:"first_fault" jsonschema:"what failed first; null where nothing did"`
	Rivals     []fault      `json:"rivals" jsonschema:"faults that the evidence cannot order against the first one"`
	Order      order        `json:"order"`
	Attempts   []attempt    `json:"attempts" jsonschema:"where there are several: the last six, oldest first; the verdict is of the one that ended the job"`
	LastGood   *lastGood    `json:"last_good" jsonschema:"the last good value before the failure"`
	Collateral []collateral `json:"collateral" jsonschema:"failures that another one explains"`
	Causes     []cause      `json:"causes" jsonschema:"best first; an entry's id is for explain_failure"`
	Remedy     *remedy      `json:"remedy" jsonschema:"the one change to make, or the measurement that decides"`
	Restart    string       `json:"restart_unchanged,omitempty" jsonschema:"what a restart without a change does: repeats, elsewhere, may_pass, safe or unknown"`
	Limits     []string     `json:"quoted_limits" jsonschema:"what could not be read or decided"`
	Counts     counts       `json:"counts"`
}

type fault struct {
	Event    string `json:"event,omitempty" jsonschema:"id within the case"`
	Kind     string `json:"kind"`
	Class    string `json:"class"`
	Rank     *int   `json:"rank" jsonschema:"global rank; null where none is stated"`
	Step     *int64 `json:"step"`
	Host     string `json:"quoted_host,omitempty"`
	Time     string `json:"quoted_time,omitempty"`
	Standing string `json:"standing,omitempty" jsonschema:"of being first: established, supported or undecidable"`
	Basis    string `json:"quoted_basis,omitempty" jsonschema:"how it is known to be first"`
	KnownBy  string `json:"known_by" jsonschema:"words, or elimination: all others were found waiting for it"`
	Text     string `json:"quoted_text" jsonschema:"the line itself"`
	At       *place `json:"at"`
	Frame    string `json:"quoted_frame,omitempty" jsonschema:"the user's own source line that led here"`
}

type order struct {
	Relation    string `json:"relation" jsonschema:"of memory failure and non-finite values: oom_first, nan_first, oom_only, nan_only, neither or undecidable"`
	SameAttempt bool   `json:"same_attempt"`
	Linked      string `json:"linked" jsonschema:"whether a mechanism links the two: yes, no or unknown"`
	Basis       string `json:"quoted_basis,omitempty"`
	Memory      *place `json:"memory_failure" jsonschema:"where the memory failure stands"`
	Nonfinite   *place `json:"nonfinite_value" jsonschema:"where the first value that is not finite stands"`
}

// An attempt is one start of the job, in short.
type attempt struct {
	ID      string `json:"id"`
	Outcome string `json:"outcome"`
	Fault   string `json:"first_fault" jsonschema:"kind of its first fault"`
	Cause   string `json:"cause" jsonschema:"its leading entry"`
	Changed int    `json:"changed" jsonschema:"settings that differ from the attempt before"`
	Ref     string `json:"ref,omitempty" jsonschema:"of its first fault"`
}

type lastGood struct {
	Rank *int     `json:"rank"`
	Step *int64   `json:"step"`
	Loss *float64 `json:"loss"`
	At   *place   `json:"at"`
}

type collateral struct {
	Kind  string `json:"kind"`
	Ranks string `json:"ranks" jsonschema:"as 0-3,5"`
	Count int    `json:"count"`
	Rule  string `json:"rule" jsonschema:"the rule that explains it"`
	Text  string `json:"quoted_text,omitempty"`
	At    *place `json:"at"`
}

type cause struct {
	Entry    string      `json:"entry"`
	Title    string      `json:"title"`
	Standing string      `json:"standing" jsonschema:"established, supported, possible or ruled_out"`
	For      []statement `json:"for"`
	Against  []statement `json:"against"`
	Missing  int         `json:"missing" jsonschema:"facts that would decide; suggest_measurement names them"`
}

type statement struct {
	Text string `json:"quoted_text"`
	Ref  string `json:"ref,omitempty" jsonschema:"the line that proves it, for read_evidence"`
}

type remedy struct {
	Entry    string   `json:"entry"`
	Scope    string   `json:"scope" jsonschema:"what it touches: code, config, environment, launcher, host, device, data, vendor, or measure"`
	Effect   string   `json:"effect" jsonschema:"reads, reversible or changes"`
	Change   string   `json:"quoted_change"`
	Why      string   `json:"quoted_why,omitempty"`
	Edits    []edit   `json:"edits"`
	Command  string   `json:"quoted_command,omitempty" jsonschema:"shown, never run"`
	Verify   string   `json:"quoted_verify,omitempty" jsonschema:"the command that shows that it worked"`
	Test     string   `json:"quoted_test,omitempty" jsonschema:"the run's own command with the change made"`
	Rollback string   `json:"quoted_rollback,omitempty"`
	Risks    []string `json:"quoted_risks"`
	Cost     string   `json:"quoted_cost,omitempty"`
	Next     string   `json:"quoted_next_failure,omitempty" jsonschema:"what fails next if this was not it"`
}

type edit struct {
	Stack string `json:"stack"`
	Where string `json:"quoted_where"`
	From  string `json:"quoted_from,omitempty"`
	To    string `json:"quoted_to"`
}

// counts are how much there is, also where it is not listed.
type counts struct {
	Attempts   int `json:"attempts"`
	Ranks      int `json:"ranks"`
	Events     int `json:"events" jsonschema:"of the timeline; get_timeline has them"`
	Collateral int `json:"collateral"`
	Causes     int `json:"causes"`
	Limits     int `json:"limits"`
	Artifacts  int `json:"artifacts"`
	Checked    int `json:"checklist_answered" jsonschema:"items of the checklist that the evidence answers; get_checklist has them"`
	Checklist  int `json:"checklist"`
}

// verdict fits a result into an answer: texts have so many percent of the length that they
// would have where there is little to say.
func (s *server) verdict(r *desk.Result, percent int) *verdict {
	inc, at := r.Incident, placesOf(r.Incident)
	long := func(n int) int { return max(n*percent/100, 60) }
	list := func(n int) int { return max(n*min(percent+20, 100)/100, 1) }
	v := &verdict{
		Outcome: word(inc.Outcome), Rivals: []fault{}, Collateral: []collateral{}, Causes: []cause{}, Limits: []string{}, Attempts: []attempt{},
		Order: order{word(inc.Order.Relation), inc.Order.SameAttempt, word(inc.Order.Linked), quote(inc.Order.Basis, long(300)),
			at.event(inc.Order.MemoryEvent, 120), at.event(inc.Order.NonfiniteEvent, 120)},
		Counts: counts{Attempts: len(inc.Attempts), Ranks: len(inc.Ranks), Collateral: len(inc.Collateral), Causes: len(inc.Hypotheses),
			Limits: len(inc.Limits), Artifacts: len(inc.Artifacts), Checklist: len(inc.Checklist)},
	}
	if r.Timeline != nil {
		v.Counts.Events = r.Timeline.Total
	}
	for _, c := range inc.Checklist {
		if c.State != "unknown" {
			v.Counts.Checked++
		}
	}
	if inc.FirstFault != nil {
		v.FirstFault = faultOf(inc.FirstFault, at, long(600))
		v.FirstFault.Standing, v.FirstFault.Basis = word(inc.FirstFaultStanding), quote(inc.FirstFaultBasis, long(400))
	}
	if n := len(inc.Attempts); n > 1 {
		for i := max(0, n-list(6)); i < n; i++ {
			v.Attempts = append(v.Attempts, attemptOf(&inc.Attempts[i], at))
		}
	}
	for i := range inc.FirstFaultRivals[:min(len(inc.FirstFaultRivals), list(3))] {
		v.Rivals = append(v.Rivals, *faultOf(&inc.FirstFaultRivals[i], at, long(160)))
	}
	if g := inc.LastGood; g != nil {
		v.LastGood = &lastGood{g.Rank, g.Step, g.Loss, at.of(g.Span, long(160))}
	}
	for _, c := range inc.Collateral[:min(len(inc.Collateral), list(5))] {
		v.Collateral = append(v.Collateral, collateral{word(c.Event.Kind), ranks(c.Ranks), c.Count, word(c.ExplainedBy.Rule),
			quote(c.Event.Text, long(140)), at.of(c.Event.Span, long(120))})
	}
	for i := range inc.Hypotheses[:min(len(inc.Hypotheses), list(4))] {
		h, n := &inc.Hypotheses[i], list(3)
		if i > 0 {
			n = 1
		}
		v.Causes = append(v.Causes, cause{word(h.Entry), s.title(h.Entry, h.Title), word(h.Standing),
			statements(h.For, at, n, long(260)), statements(h.Against, at, n, long(220)), len(h.Missing)})
	}
	if inc.Remedy != nil {
		v.Remedy = remedyOf(inc.Remedy, long, list)
	}
	if inc.OnCall != nil {
		v.Restart = word(inc.OnCall.Restart.Unchanged)
	}
	var limits []string
	for _, l := range inc.Limits {
		limits = append(limits, l.Text)
	}
	v.Limits = quoteAll(limits, list(5), long(180))
	return v
}

func attemptOf(a *incident.Attempt, at places) attempt {
	out := attempt{ID: word(a.ID), Outcome: word(a.Outcome)}
	if a.FirstFault != nil {
		out.Fault = word(a.FirstFault.Kind)
		if a.FirstFault.Span != nil {
			out.Ref = at.ref(a.FirstFault.Span)
		}
	}
	if len(a.Hypotheses) > 0 {
		out.Cause = word(a.Hypotheses[0].Entry)
	}
	if a.ChangedFrom != nil {
		out.Changed = len(a.ChangedFrom.Diffs)
	}
	return out
}

func faultOf(e *incident.Event, at places, max int) *fault {
	f := &fault{Event: word(e.ID), Kind: word(e.Kind), Class: word(e.Class), Rank: e.Rank, Step: e.Step, KnownBy: word(e.KnownBy),
		Host: quote(deref(e.Host, ""), 90), Text: quote(e.Text, max), At: at.of(e.Span, 200)}
	if e.Time != nil {
		f.Time = quote(e.Time.Written, 70)
	}
	if e.Frame != nil {
		f.Frame = quote(fmt.Sprintf("%s:%d in %s: %s", e.Frame.File, e.Frame.Line, e.Frame.Function, e.Frame.Source), max)
	}
	return f
}

func statements(of []incident.Statement, at places, n, max int) []statement {
	out := []statement{}
	for _, s := range of[:min(len(of), n)] {
		x := statement{Text: quote(s.Text, max)}
		for i := range s.Spans {
			if x.Ref = at.ref(&s.Spans[i]); x.Ref != "" {
				break
			}
		}
		out = append(out, x)
	}
	return out
}

func remedyOf(r *incident.Remedy, long, list func(int) int) *remedy {
	out := &remedy{Entry: word(r.Entry), Scope: word(r.Scope), Effect: word(r.Effect), Change: quote(r.Change, long(500)), Why: quote(r.Why, long(300)),
		Edits: []edit{}, Command: quoteLines(r.Command, long(400)), Verify: quoteLines(r.Verify, long(400)), Test: quoteLines(r.Test, long(300)),
		Rollback: quote(r.Rollback, long(200)), Risks: quoteAll(r.Risks, list(2), long(160)), Cost: quote(r.Cost, long(160)), Next: quote(r.NextFailure, long(160))}
	for _, e := range r.Edits[:min(len(r.Edits), list(3))] {
		out.Edits = append(out.Edits, edit{word(e.Stack), quote(e.Where, long(120)), quoteLines(e.From, long(160)), quoteLines(e.To, long(260))})
	}
	return out
}

// decided reports whether the evidence decides what failed first and why.
func (v *verdict) decided() bool {
	return v.FirstFault != nil && v.FirstFault.Standing != incident.Undecidable && len(v.Causes) > 0 && v.Causes[0].Standing == incident.Established
}

// next is what to call next.
func (v *verdict) next() string {
	switch {
	case v.FirstFault == nil && v.Outcome == incident.FinishedRun:
		return "no failure was found: nothing is to be changed. get_timeline has what was recognised"
	case v.FirstFault == nil:
		return "no fault was recognised. suggest_measurement says what is missing; look for logs that were not named (other ranks, launcher, scheduler, kernel)"
	case v.decided():
		return "read_evidence with first_fault.at.ref to cite the line; explain_failure with the leading entry for the fix by stack; then verify the original action"
	}
	return "the evidence does not decide: suggest_measurement names the cheapest fact that does. Say that the verdict is open"
}

// text is the verdict for a model that sees no structured content.
func (v *verdict) text(id string, percent int) string {
	var l lines
	short := func(s string, n int) string { return shorter(s, max(n*percent/100, 60)) }
	l.add("Case %s: outcome %s.", id, v.Outcome)
	if f := v.FirstFault; f != nil {
		where := f.Kind
		if r := rankWords(f.Rank); r != "" {
			where += ", " + r
		}
		if f.Step != nil {
			where += fmt.Sprintf(", step %d", *f.Step)
		}
		l.add("First fault (%s): %s%s", f.Standing, where, f.At.at())
		l.with("  %s", short(f.Text, 400))
		l.with("  How it is known to be first: %s", short(f.Basis, 260))
		if len(v.Rivals) > 0 {
			l.add("  %d rivals that the evidence cannot order against it.", len(v.Rivals))
		}
	} else {
		l.add("No first fault was found.")
	}
	if v.Order.Relation != "" && v.Order.Relation != incident.Neither {
		l.add("Memory failure and non-finite values: %s (linked: %s).", v.Order.Relation, v.Order.Linked)
	}
	for _, a := range v.Attempts {
		l.add("Attempt %s: %s, %s%s", a.ID, a.Outcome, first(a.Fault, "no fault"), bracket(a.Ref))
	}
	for i, c := range v.Causes {
		l.add("Cause %d: %s (%s): %s", i+1, c.Entry, c.Standing, c.Title)
		for _, x := range c.For {
			l.add("  for: %s%s", short(x.Text, 200), bracket(x.Ref))
		}
		for _, s := range c.Against {
			l.add("  against: %s%s", short(s.Text, 160), bracket(s.Ref))
		}
	}
	if r := v.Remedy; r != nil {
		l.add("The one change (%s, %s): %s", r.Scope, r.Effect, short(r.Change, 400))
		for _, e := range r.Edits {
			l.add("  %s, %s: %s", e.Stack, short(e.Where, 100), short(e.To, 200))
		}
		l.with("  Verify: %s", short(r.Verify, 260))
	}
	if n := v.Counts.Collateral; n > 0 {
		var kinds []string
		counts := map[string]int{}
		for _, c := range v.Collateral {
			k := c.Kind
			if c.Ranks != "" {
				k += " (ranks " + c.Ranks + ")"
			}
			if counts[k] == 0 {
				kinds = append(kinds, k)
			}
			counts[k] += c.Count
		}
		for i, k := range kinds {
			kind, ranks, _ := strings.Cut(k, " ")
			kinds[i] = strings.TrimSpace(fmt.Sprintf("%s ×%d %s", kind, counts[k], ranks))
		}
		l.add("Collateral, %d groups: %s", n, strings.Join(kinds, "; "))
	}
	if v.Restart != "" {
		l.add("A restart without a change: %s.", v.Restart)
	}
	if v.Counts.Limits > 0 {
		l.add("Not read or not decided: %d statements, in quoted_limits.", v.Counts.Limits)
	}
	l.add("Next: %s.", v.next())
	return l.String()
}

func bracket(ref string) string {
	if ref == "" {
		return ""
	}
	return " [" + ref + "]"
}

// shorter is a quoted text in at most max bytes of JSON.
func shorter(quoted string, max int) string {
	if jsonSize(quoted) <= max {
		return quoted
	}
	return openMark + cut(unquoted(quoted), max-len(openMark)-len(closeMark)) + closeMark
}
