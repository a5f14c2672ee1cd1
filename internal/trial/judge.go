package trial

import (
	"fmt"
	"slices"
	"strings"

	"github.com/inquest-dev/inquest/internal/evidence"
	"github.com/inquest-dev/inquest/internal/incident"
)

// Judge says in short what came of a trial: how it ended, and what its diagnosis says of why.
// inc may be nil. The rules, the first that applies:
//
//  1. What this program ended itself is no failure of the command.
//  2. A command that did not start failed.
//  3. Status 0 is passed; what the diagnosis shows of memory or values on the way is Survived.
//     But a failure that ended the work, by its own words and with nothing behind it, is not
//     undone by a status that a shell or launcher lost: memory that ran out so is
//     out_of_memory, and anything else is unclear, because then nothing tells a lost status
//     from a message that did not matter.
//  4. Any other status is what its first fault is, as far as it is known to be first: memory
//     failures that only followed are not this trial's. Where a process was killed, the kernel's
//     count of kills for memory says by whom; a kill by nobody known is unclear.
func Judge(exit incident.Exit, inc *incident.Incident) incident.TrialVerdict {
	v := incident.TrialVerdict{}
	if inc != nil {
		v.Fingerprint = inc.Fingerprint
		if f := inc.FirstFault; f != nil {
			v.Class, v.Kind, v.Standing = f.Class, f.Kind, inc.FirstFaultStanding
			if len(inc.Hypotheses) > 0 && inc.Hypotheses[0].Standing != incident.RuledOut {
				v.Cause = inc.Hypotheses[0].Cause
			}
		}
	}
	switch {
	case exit.Stopped != "":
		v.Result, v.Text = stopped(exit.Stopped)
	case exit.Error != "":
		v.Result, v.Text = incident.TrialFailed, "It did not start: "+exit.Error+"."
	case exit.Status == 0:
		judgeEnded(&v, inc)
	default:
		judgeFailed(&v, exit, inc)
	}
	return v
}

// stopped is the result of a trial that this program ended.
func stopped(why string) (result, text string) {
	result = incident.TrialUnclear
	switch {
	case strings.Contains(why, "time"):
		result = incident.TimedOut
	case strings.Contains(why, "interrupt"):
		result = incident.TrialInterrupted
	}
	return result, "It was ended by this program: " + why + "."
}

// judgeEnded is rule 3.
func judgeEnded(v *incident.TrialVerdict, inc *incident.Incident) {
	v.Result, v.Text = incident.Passed, "It ended with status 0."
	if inc == nil {
		v.Text = "It ended with status 0; what it printed could not be diagnosed."
		return
	}
	f := inc.FirstFault
	var survived []string
	if n, ok := inc.Facts["oom.survived"]; ok {
		survived = append(survived, fmt.Sprintf("device memory ran out and was caught, %s in all", n.Text))
	}
	if n, ok := inc.Facts["oom.recovered_before"]; ok && n.Text != "0" && n.Text != "" {
		survived = append(survived, fmt.Sprintf("device memory ran out and was caught, %s in all", n.Text))
	}
	if e := inc.Order.NonfiniteEvent; e != nil {
		survived = append(survived, "values became non-finite"+atStep(e))
	}
	switch {
	case f == nil || evidence.Class(f.Class) == evidence.Nonfinite:
		if f != nil && inc.Order.NonfiniteEvent == nil {
			survived = append(survived, "values became non-finite"+atStep(f))
		}
	case inc.Outcome == incident.FinishedRun:
		survived = append(survived, fmt.Sprintf("a %s was reported and the run went on to its end", words(f.Kind)))
	case ranOut(v) && decided(inc):
		v.Result, v.Where = incident.OutOfMemory, v.Class
		v.Text = fmt.Sprintf("%s ran out%s and nothing of the run followed; the status 0 is of something around it that did not pass the failure on.", upper(words(v.Class)), onRank(f))
		return
	default:
		v.Result = incident.TrialUnclear
		v.Text = fmt.Sprintf("It ended with status 0, but what it printed shows a failure (%s%s) that nothing followed; which of the two holds is not known.", words(f.Kind), onRank(f))
		return
	}
	if left := unfinished(inc); f == nil && left != "" {
		v.Result, v.Text = incident.TrialUnclear, "It ended with status 0, but not all ranks did: "+left+"."
		return
	}
	if len(survived) > 0 {
		v.Survived = upper(strings.Join(survived, "; ")) + "."
		v.Text = "It ended with status 0, but on the way " + strings.Join(survived, "; ") + "."
	}
}

// judgeFailed is rule 4.
func judgeFailed(v *incident.TrialVerdict, exit incident.Exit, inc *incident.Incident) {
	how := fmt.Sprintf("with status %d", exit.Status)
	if exit.Signal != "" {
		how = "by " + exit.Signal
	}
	if kernelKilled(exit, inc) {
		v.Result, v.Where, v.Class, v.Kind, v.Standing = incident.OutOfMemory, string(evidence.HostMemory), string(evidence.HostMemory), string(evidence.HostOOMKill), incident.Supported
		v.Text = fmt.Sprintf("It ended %s, and the kernel counted %d killed for memory in its cgroup meanwhile.", how, *exit.OOMKills)
		return
	}
	if inc == nil || inc.FirstFault == nil {
		v.Result, v.Text = incident.TrialFailed, "It ended "+how+", and nothing that it printed says why."
		if killed(exit) {
			v.Result, v.Text = incident.TrialUnclear, "It ended "+how+"; by whom it was killed, nothing says."
		} else if asked(exit) {
			v.Result, v.Text = incident.TrialInterrupted, "It was told to stop from outside: it ended "+how+"."
		}
		return
	}
	f := inc.FirstFault
	switch {
	case evidence.Class(f.Class) == evidence.ExternalStop:
		v.Result, v.Text = incident.TrialInterrupted, fmt.Sprintf("It was stopped from outside: %s.", words(f.Kind))
	case ranOut(v) && f.Attrs["certain"] == false:
		v.Result = incident.TrialUnclear
		v.Text = fmt.Sprintf("A library reports a status that lack of memory gives, and other things too (%s).", words(f.Kind))
	case ranOut(v) && bogus(inc):
		v.Result = incident.TrialFailed
		v.Text = fmt.Sprintf("A request larger than any device was refused%s: its size is wrong, not the memory short.", onRank(f))
	case ranOut(v) && !decided(inc):
		v.Result = incident.TrialUnclear
		v.Text = fmt.Sprintf("%s ran out%s, but the evidence cannot order it against another failure (%s).", upper(words(v.Class)), onRank(f), words(otherRival(inc)))
	case ranOut(v):
		v.Result, v.Where = incident.OutOfMemory, v.Class
		v.Text = fmt.Sprintf("%s ran out%s: %s.", upper(words(v.Class)), onRank(f)+atStep(f), memoryWords(f.Kind))
	case killed(exit) && evidence.Class(f.Class) == evidence.ProcessExit && f.Kind != string(evidence.NativeCrash):
		v.Result, v.Text = incident.TrialUnclear, "It ended "+how+"; by whom it was killed, nothing says."
	case v.Cause == "killed-unknown":
		v.Result, v.Text = incident.TrialUnclear, "A process of it was killed; by whom, nothing says."
	case len(inc.FirstFaultRivals) > 0 && !decided(inc):
		v.Result = incident.TrialFailed
		v.Text = fmt.Sprintf("It ended %s: %s%s; whether another failure came first is not decided.", how, words(f.Kind), onRank(f))
		if len(inc.FirstFaultRivals) > 0 {
			v.Text = fmt.Sprintf("It ended %s: %s%s, or another failure that the evidence cannot order against it (%s).", how, words(f.Kind), onRank(f), words(inc.FirstFaultRivals[0].Kind))
		}
		if slices.ContainsFunc(inc.FirstFaultRivals, func(e incident.Event) bool { return memoryClass(e.Class) }) {
			v.Result = incident.TrialUnclear
		}
	default:
		v.Result = incident.TrialFailed
		v.Text = fmt.Sprintf("It ended %s: %s%s.", how, words(f.Kind), onRank(f)+atStep(f))
		if slices.ContainsFunc(inc.Collateral, func(c incident.Collateral) bool { return memoryClass(c.Event.Class) }) {
			v.Text += " Memory ran out too, as a consequence."
		}
	}
}

// kernelKilled reports whether the kernel counted kills for memory where nothing else is known than
// that a process ended.
func kernelKilled(exit incident.Exit, inc *incident.Incident) bool {
	if exit.OOMKills == nil || *exit.OOMKills < 1 {
		return false
	}
	if inc == nil || inc.FirstFault == nil {
		return true
	}
	f := inc.FirstFault
	return evidence.Class(f.Class) == evidence.ProcessExit && f.Kind != string(evidence.NativeCrash)
}

// ranOut reports whether the first fault is a failure of memory.
func ranOut(v *incident.TrialVerdict) bool { return memoryClass(v.Class) }

func memoryClass(class string) bool {
	switch evidence.Class(class) {
	case evidence.DeviceMemory, evidence.HostMemory, evidence.SharedMemory:
		return true
	}
	return false
}

// decided reports whether what came first is known, or what rivals it is of the same memory.
func decided(inc *incident.Incident) bool {
	return inc.FirstFaultStanding != incident.Undecidable || otherRival(inc) == "" && len(inc.FirstFaultRivals) > 0
}

// otherRival is the kind of the first rival of another class, "" where there is none.
func otherRival(inc *incident.Incident) string {
	for _, r := range inc.FirstFaultRivals {
		if r.Class != inc.FirstFault.Class {
			return r.Kind
		}
	}
	return ""
}

// bogus reports whether the request that was refused is known to be of a wrong size.
func bogus(inc *incident.Incident) bool {
	h := inc.Hypotheses
	return len(h) > 0 && h[0].Cause == "bogus-allocation-size" && (h[0].Standing == incident.Established || h[0].Standing == incident.Supported)
}

// unfinished says which ranks are stated not to have ended well, "" where none is.
func unfinished(inc *incident.Incident) string {
	var out []string
	for _, r := range inc.Ranks {
		switch r.Fate {
		case "timed out waiting", "failed", "failed first":
			out = append(out, fmt.Sprintf("rank %d %s", r.Rank, r.Fate))
		}
	}
	if n := len(out); n > 3 {
		out = append(out[:3], fmt.Sprintf("%d more", n-3))
	}
	return strings.Join(out, ", ")
}

// killed reports whether it ended by SIGKILL, or by a status that a shell gives for it.
func killed(exit incident.Exit) bool { return exit.Signal == "SIGKILL" || exit.Status == 137 }

// asked reports whether it ended by a signal that asks a process to end.
func asked(exit incident.Exit) bool {
	switch exit.Signal {
	case "SIGINT", "SIGTERM", "SIGHUP":
		return true
	}
	return exit.Signal == "" && (exit.Status == 130 || exit.Status == 143 || exit.Status == 129)
}

func onRank(e *incident.Event) string {
	if e.Rank == nil {
		return ""
	}
	return fmt.Sprintf(" on rank %d", *e.Rank)
}

func atStep(e *incident.Event) string {
	if e.Step == nil {
		return ""
	}
	return fmt.Sprintf(" at step %d", *e.Step)
}

// words makes a name of a kind or class readable.
// memoryWords says how memory ran out, as the kind's declaration does.
func memoryWords(kind string) string {
	spec := evidence.SpecOf(evidence.Kind(kind))
	if spec == nil {
		return words(kind)
	}
	if i := strings.IndexAny(spec.Doc, ",;("); i > 0 {
		return strings.TrimSpace(spec.Doc[:i])
	}
	return spec.Doc
}

func words(name string) string {
	if name == "" {
		return "unknown"
	}
	return strings.ReplaceAll(strings.ReplaceAll(name, "nonfinite", "non-finite"), "_", " ")
}

func upper(s string) string {
	if s == "" {
		return s
	}
	return strings.ToUpper(s[:1]) + s[1:]
}
