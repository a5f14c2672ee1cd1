package ledger

import (
	"fmt"
	"strings"

	"github.com/inquest-dev/inquest/internal/incident"
)

// resultOf is the result of a trial, "" where it has none.
func resultOf(t incident.Trial) string {
	if t.Verdict == nil {
		return ""
	}
	return t.Verdict.Result
}

// failed reports whether a result is a failure of the command itself.
func failed(result string) bool {
	switch result {
	case incident.OutOfMemory, incident.TrialFailed, incident.TimedOut:
		return true
	}
	return false
}

// effect is what the results of a and of b after it say.
func effect(a, b incident.Trial) string {
	x, y := resultOf(a), resultOf(b)
	switch {
	case x == incident.Passed && y == incident.Passed:
		return incident.BothPassed
	case x == incident.Passed && failed(y):
		return incident.MadeWorse
	case failed(x) && y == incident.Passed:
		if b.Verdict.Survived != "" {
			return incident.EffectUnknown
		}
		return incident.Helped
	case failed(x) && failed(y):
		if alike(a.Verdict, b.Verdict) {
			return incident.DidNotHelp
		}
		return incident.AnotherFailure
	}
	return incident.EffectUnknown
}

// alike reports whether two failures are the same one, as far as their verdicts say.
func alike(x, y *incident.TrialVerdict) bool {
	if x.Fingerprint != "" && x.Fingerprint == y.Fingerprint {
		return true
	}
	return x.Result == y.Result && x.Where == y.Where && x.Class == y.Class && x.Kind == y.Kind
}

// says puts a comparison in words: how many things changed, which, and what came of it.
func says(c incident.Comparison) string {
	var b strings.Builder
	switch n := len(c.Changes); {
	case n == 0 && len(c.Unknown) == 0:
		b.WriteString("nothing that is recorded changed; if the result differs, it is not deterministic or something unrecorded changed")
	case n == 0:
		b.WriteString("nothing that both trials record changed; if the result differs, it is not deterministic or something unrecorded changed")
	case n == 1:
		b.WriteString("one thing changed: " + c.Changes[0].Text)
	default:
		const most = 4
		var list []string
		for _, ch := range c.Changes[:min(n, most)] {
			list = append(list, ch.Text)
		}
		if n > most {
			list = append(list, fmt.Sprintf("and %d more", n-most))
		}
		fmt.Fprintf(&b, "%d things changed: %s; more than one thing changed: which of them ", n, strings.Join(list, "; "))
		switch c.Effect {
		case incident.Helped:
			b.WriteString("helped is not shown")
		case incident.MadeWorse:
			b.WriteString("did harm is not shown")
		default:
			b.WriteString("did what is not shown")
		}
	}
	b.WriteString(". " + outcome(c))
	if len(c.Unknown) > 0 && len(c.Changes) > 0 {
		b.WriteString(" Not everything could be compared.")
	}
	return b.String()
}

// outcome says what the two results show.
func outcome(c incident.Comparison) string {
	it := "It"
	if len(c.Changes) > 1 {
		it = "Together they"
	}
	if len(c.Changes) == 0 {
		switch c.Effect {
		case incident.Helped:
			return "The first failed and the second passed: one pass without a change is no fix."
		case incident.MadeWorse:
			return "The first passed and the second failed."
		case incident.DidNotHelp:
			return "Both failed in the same way."
		case incident.AnotherFailure:
			return "Both failed, not in the same way."
		case incident.BothPassed:
			return "Both passed."
		}
		return "Their results do not tell more: " + words(resultOf(c.A)) + ", then " + words(resultOf(c.B)) + "."
	}
	switch c.Effect {
	case incident.Helped:
		return it + " helped: " + words(resultOf(c.A)) + " before, passed after; only a verification shows that it lasts."
	case incident.DidNotHelp:
		return it + " did not help: " + words(resultOf(c.A)) + " before and after, in the same way; take it back."
	case incident.AnotherFailure:
		return "The first failure did not come back, but another did: " + words(resultOf(c.A)) + ", then " + words(resultOf(c.B)) + "; whether it helped cannot be told from that."
	case incident.MadeWorse:
		return it + " made it worse: passed before, " + words(resultOf(c.B)) + " after."
	case incident.BothPassed:
		return "Both passed: there was nothing to help."
	}
	if resultOf(c.B) == incident.Passed && c.B.Verdict.Survived != "" {
		return "Whether it helped cannot be told: the second ended well, but " + c.B.Verdict.Survived + "."
	}
	return "Whether it helped cannot be told: " + words(resultOf(c.A)) + ", then " + words(resultOf(c.B)) + "."
}

// words is a result as people say it.
func words(result string) string {
	switch result {
	case "":
		return "no result"
	case incident.OutOfMemory:
		return "out of memory"
	}
	return strings.ReplaceAll(result, "_", " ")
}
