package trial

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/inquest-dev/inquest/internal/evidence"
	"github.com/inquest-dev/inquest/internal/incident"
)

// evaluated reports whether a run printed values of an evaluation.
func evaluated(inc *incident.Incident) bool {
	return inc != nil && slices.ContainsFunc(inc.Series, func(s incident.Series) bool { return strings.HasPrefix(s.Name, "eval") && s.Count > 0 })
}

// phases says whether the largest value that passed came to the parts of the run in which memory
// is often highest, where the command or the original failure shows that it has them.
func (h *hunt) phases() {
	var passed []string
	for _, e := range h.b.Edges {
		if e.Largest != nil {
			passed = append(passed, e.Largest.Trials...)
		}
	}
	if len(passed) == 0 {
		return
	}
	for _, ph := range []struct {
		name, how string
		options   []string
		seen      func(reached) bool
		original  bool
	}{
		{"evaluation", "values of an evaluation in what it printed", []string{"eval_steps", "eval_strategy", "evaluation_strategy", "do_eval", "val_check_interval", "check_val_every_n_epoch", "eval_interval", "eval_every", "validate", "eval_iters", "val_interval"}, func(r reached) bool { return r.evaluation }, evaluated(h.Original)},
		{"checkpoint", "a checkpoint in its scratch folder", []string{"save_steps", "save_strategy", "save_interval", "save_every", "checkpoint_every", "ckpt_every", "save_freq", "checkpoint_interval", "save_checkpoint", "every_n_train_steps"}, func(r reached) bool { return r.checkpoint }, h.Original != nil && h.Original.OnCall != nil && h.Original.OnCall.Lost != nil && h.Original.OnCall.Lost.Checkpoint != ""},
	} {
		wanted := ""
		if arg := phaseOption(h.Template, ph.options); arg != "" {
			wanted = fmt.Sprintf("the command has %s", arg)
		} else if ph.original {
			wanted = "the run that failed came to it"
		}
		if wanted == "" {
			continue
		}
		p := incident.BoundaryPhase{Name: ph.name, Wanted: wanted, How: ph.how}
		known := false
		for _, id := range passed {
			known = known || h.reach[id].known
			p.Reached = p.Reached || ph.seen(h.reach[id])
		}
		h.b.Phases = append(h.b.Phases, p)
		switch {
		case p.Reached:
		case !known:
			h.out.Limits = append(h.out.Limits, fmt.Sprintf("Whether the trials that passed came to their %s is not known: they were made before the search was resumed.", ph.name))
		default:
			h.out.Limits = append(h.out.Limits, fmt.Sprintf("The largest value that passed was not seen to come to its %s (%s; looked for: %s): memory there is not tested. Let the trials run long enough to include it.", ph.name, wanted, ph.how))
		}
	}
}

// phaseOption is the first argument of a command that asks for a phase, "" where none does.
func phaseOption(command, options []string) string {
	for i, arg := range command {
		name, value, joined := optionOf(arg)
		if name == "" || !slices.Contains(options, name[strings.LastIndexByte(name, '.')+1:]) {
			continue
		}
		if !joined && i+1 < len(command) && !strings.HasPrefix(command[i+1], "-") {
			value = command[i+1]
		}
		if !off(value) {
			return arg
		}
	}
	return ""
}

// notes adds to the limits what a reader must know to take the answer for what it is.
func (h *hunt) notes() {
	add := func(format string, args ...any) { h.out.Limits = append(h.out.Limits, fmt.Sprintf(format, args...)) }
	for i, s := range h.b.NotMonotone {
		if i == 3 {
			add("%d more pairs of values are the wrong way round.", len(h.b.NotMonotone)-i)
			break
		}
		add("More does not always need more memory here: %s. The search assumes that it does.", s)
	}
	for _, e := range h.b.Edges {
		for i, f := range e.Flaky {
			if i == 3 {
				add("%d more values at that edge pass at one time and fail at another.", len(e.Flaky)-i)
				break
			}
			add("%s is flaky: it passed %d of %d times, so it does not count as passing.", valueWords(f.Values), f.Passed, f.Of)
		}
		if e.Margin != nil && e.Margin.AtMost && e.Margin.Bytes != nil {
			add("The margin is at most what is said: how its peak is known (%s) leaves room for a higher one.", cmp.Or(e.Margin.Basis, "samples"))
			break
		}
	}
	survived := map[string]bool{}
	for _, p := range h.b.Points {
		if p.Survived != "" && !survived[p.Survived] && len(survived) < 4 {
			survived[p.Survived] = true
			add("With %s the command ended well, but: %s", valueWords(p.Values), p.Survived)
		}
	}
	if n := len(h.b.Skipped); n > 0 {
		s := h.b.Skipped[0]
		add("%d of the values were not tried, because the product is kept: as %s=%d (%s).", n, s.Name, s.Value, s.Why)
	}
}

// says is the answer in one sentence.
func (h *hunt) says() string {
	if h.Find == incident.SmallestFailing {
		return h.saysSmallest()
	}
	if len(h.b.Edges) == 1 {
		return h.saysEdge(&h.b.Edges[0])
	}
	if len(h.b.Edges) == 0 {
		return "Nothing was found: no trial decided anything."
	}
	var parts []string
	for i := range h.b.Edges {
		e := &h.b.Edges[i]
		largest := "none"
		if e.Largest != nil {
			largest = fmt.Sprint(e.Largest.Value)
		}
		if i == 6 {
			parts = append(parts, fmt.Sprintf("%d more", len(h.b.Edges)-i))
			break
		}
		parts = append(parts, fmt.Sprintf("%s%s", largest, fixedWords(e.Fixed)))
	}
	s := fmt.Sprintf("The largest %s that passes: %s.", h.name(), strings.Join(parts, ", "))
	if h.b.Answer == incident.NotDecided || h.b.Answer == incident.OtherFailure {
		s = "The search ended before its end. As far as it came: " + s
	}
	return s
}

func (h *hunt) saysEdge(e *incident.Edge) string {
	name := func(v *incident.EdgeValue) string { return valueWords(v.Values) }
	times := func(n int, v *incident.EdgeValue) string { return fmt.Sprintf("%d of %d", n, v.Of) }
	why := "failed"
	if !h.AnyFailure && h.where != "" {
		why = "ran out of " + words(h.where)
	}
	switch e.Answer {
	case incident.Found:
		return fmt.Sprintf("%s is the largest that passes (%s); %s %s (%s).", name(e.Largest), times(e.Largest.Passed, e.Largest), name(e.Smallest), why, times(e.Smallest.Failed, e.Smallest))
	case incident.AllPass:
		return fmt.Sprintf("Every value passes: the largest asked for, %s, passed %s.", name(e.Largest), times(e.Largest.Passed, e.Largest))
	case incident.NonePasses:
		return fmt.Sprintf("No value passes: the smallest asked for, %s, %s (%s).", name(e.Smallest), why, times(e.Smallest.Failed, e.Smallest))
	case incident.Flaky:
		switch {
		case e.Largest != nil:
			return fmt.Sprintf("%s is the largest that passed each time (%s); above it no value failed each time.", name(e.Largest), times(e.Largest.Passed, e.Largest))
		case e.Smallest != nil:
			return fmt.Sprintf("No value passed each time; %s is the smallest that %s each time (%s).", name(e.Smallest), why, times(e.Smallest.Failed, e.Smallest))
		}
		return "No value passed each time, and none failed each time."
	}
	s := "Not decided"
	if e.Answer == incident.OtherFailure {
		s = "Not decided, because of another failure"
	}
	if e.Largest != nil {
		s += fmt.Sprintf("; %s passed (%s)", name(e.Largest), times(e.Largest.Passed, e.Largest))
	}
	if e.Smallest != nil {
		s += fmt.Sprintf("; %s %s (%s)", name(e.Smallest), why, times(e.Smallest.Failed, e.Smallest))
	}
	return s + "."
}

func (h *hunt) saysSmallest() string {
	s := h.b.Smallest
	if s == nil {
		return "Nothing was found: no trial decided anything."
	}
	kind := words(s.Kind)
	if s.Kind == "" {
		kind = "the failure"
	}
	switch h.b.Answer {
	case incident.Found:
		return fmt.Sprintf("%s still fails in the same way (%s, %d of %d), and nothing smaller that was tried does.", valueWords(s.Values), kind, s.Failed, s.Of)
	case incident.AllPass:
		return fmt.Sprintf("Nothing fails: the whole, %s, passed.", valueWords(s.From))
	case incident.Flaky:
		return fmt.Sprintf("%s fails in the same way (%s) %d of %d times: the failure does not come each time.", valueWords(s.Values), kind, s.Failed, s.Of)
	}
	if s.Failed == 0 {
		return "Not decided: the failure was not seen."
	}
	return fmt.Sprintf("Not decided; as far as it came, %s still fails in the same way (%s).", valueWords(s.Values), kind)
}

// sameFailure reports whether a trial failed as the original did: the same class, and the same
// kind, where memory is one kind.
func sameFailure(class, kind string, v *incident.TrialVerdict) bool {
	switch {
	case v.Result == incident.Passed || v.Class == "":
		return false
	case v.Class != class:
		return false
	}
	return v.Kind == kind || memoryClass(class) || evidence.Class(class) == evidence.Nonfinite
}
