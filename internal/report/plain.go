package report

import (
	"fmt"
	"strings"

	"github.com/inquest-dev/inquest/internal/incident"
	"github.com/inquest-dev/inquest/internal/lazyre"
)

// executive is the incident in at most six sentences: what was lost, why, how
// sure that is, what is to be done, how one will know, what is not known.
func (w *words) executive(v verdict) []string {
	inc := w.inc
	f := inc.FirstFault
	if f == nil {
		if v.Sure == nil {
			return []string{sentence(v.First[0])}
		}
		return []string{sentence(upper(v.First[0])), sentence(upper(v.Sure[0]))}
	}
	lost := "The run failed: " + w.classes()
	if inc.Outcome == incident.Interrupted {
		lost = "The run was ended early: " + w.classes()
	}
	if g := inc.LastGood; g != nil && g.Step != nil {
		lost += fmt.Sprintf("; the last good step on record is %d", *g.Step)
	}
	out := []string{lost + "."}
	sure := "It is not known which failure came first."
	if inc.FirstFaultStanding != incident.Undecidable {
		sure = "Which failure came first is " + inc.FirstFaultStanding
		if len(inc.Hypotheses) > 0 {
			sure += "; why it happened is " + map[string]string{
				incident.Established: "established", incident.Supported: "supported by the evidence but not proved",
			}[inc.Hypotheses[0].Standing]
			if s := inc.Hypotheses[0].Standing; s != incident.Established && s != incident.Supported {
				sure += "not yet known"
			}
		}
		sure += "."
	}
	if len(inc.Hypotheses) > 0 {
		if r := inc.Hypotheses[0].Readings["executive"]; r != "" {
			if inc.Hypotheses[0].Standing != incident.Established {
				r = "The likeliest explanation: " + lower(r)
			}
			out = append(out, sentence(r))
		}
	}
	do, check := w.plainRemedy()
	out = append(out, sure, "Next: "+sentence(do), sentence(check))
	if n := len(inc.Collateral); n > 0 {
		only := "Everything else in the logs (%s of message) only followed from it."
		out = append(out, fmt.Sprintf(only, plural(n, "kind")))
	}
	return out
}

// technical are the marks of text for a keyboard: environment variables, paths,
// flags, calls, tools.
var technical = lazyre.New("[A-Z][A-Z0-9]*_[A-Z0-9_]+|(?:^|[\\s(])/[a-z]+/|(?:^|\\s)--?[a-zA-Z][\\w-]*|\\w\\(|`|\\w=\\w|\\b\\w+_\\w+\\b|" +
	`\b(?:py-spy|dmesg|sacct|scontrol|squeue|journalctl|nvidia-smi|dcgmi|grep|kubectl|torchrun|df|findmnt|ibstat|namei|strace|gdb)\b`)

// aside is a remark in parentheses.
var aside = lazyre.New(` ?\([^()]*\)`)

// plainly is s without what only a keyboard understands, "" where that is the
// point of it.
func plainly(s string) string {
	s = strings.TrimSpace(s)
	if !technical.MatchString(s) {
		return s
	}
	s = aside.ReplaceAllStringFunc(s, func(p string) string {
		if technical.MatchString(p) {
			return ""
		}
		return p
	})
	if technical.MatchString(s) {
		return ""
	}
	return s
}

// plainRemedy says what is to be done and when it is settled to somebody who
// will not type it.
func (w *words) plainRemedy() (do, check string) {
	r := w.inc.Remedy
	if r == nil {
		return "No change is known for this", "It is settled when the same run passes the point where it failed"
	}
	if r.Scope == "measure" {
		if do = plainly(r.Change); do == "" {
			do = "Measure before changing anything: one missing fact tells the possible causes apart"
		}
		check = "One measurement decides it"
		if c := plainly(r.Cost); c != "" {
			check += "; it takes " + strings.TrimSuffix(lower(c), ".")
		}
		return do, check + ". The report for engineers has the command"
	}
	if do = plainly(r.Change); do == "" {
		do = "Make the one change that this cause calls for; the report for engineers has it word for word"
	}
	if s := expected(r); s != "" && !typed.MatchString(s) {
		return do, "It is settled when this holds: " + s
	}
	if s := plainly(r.Verify); s != "" && !asksFor.MatchString(s) {
		return do, "It is settled when this holds: " + s
	}
	return do, "It is settled when the same run passes the point where it failed"
}

// typed marks what only stands in a command: an environment variable, a flag, a
// stack dumper.
var typed = lazyre.New(`[A-Z][A-Z0-9]*_[A-Z0-9_]+|(?:^|\s)--[a-z]|py-spy`)

// asksFor begins a sentence that tells somebody to do something.
var asksFor = lazyre.New(`^(?i:run|rerun|resume|repeat|start|restart|compare|check|look|watch|print|train|load|read|set|use|take|log|try|measure)\b`)

// plainVerdict is a verdict with what to do and to check in plain words.
func (w *words) plainVerdict() verdict {
	v := w.verdictOf()
	if w.inc.FirstFault != nil {
		do, check := w.plainRemedy()
		v.Do, v.Check = []string{do}, []string{strings.TrimPrefix(strings.TrimPrefix(check, "It is settled when this holds: "), "It is settled when ")}
	}
	return v
}

// verdictFor is the verdict as one reader gets it.
func (w *words) verdictFor(reader string) verdict {
	if reader == Executive {
		return w.plainVerdict()
	}
	return w.verdictOf()
}

// classes names the class of the first fault and, where it is undecided, those
// of its rivals.
func (w *words) classes() string {
	f := w.inc.FirstFault
	s := faultWords(f)
	if w.inc.FirstFaultStanding != incident.Undecidable {
		return s
	}
	seen := map[string]bool{f.Class: true}
	for _, r := range w.inc.FirstFaultRivals {
		if !seen[r.Class] {
			seen[r.Class] = true
			s += " or " + faultWords(&r)
		}
	}
	return s
}
