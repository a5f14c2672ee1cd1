// Package remedy turns the leading hypothesis into one scoped change with this
// run's own values, the command that verifies it, what it costs and how to undo
// it. For an undecided cause the remedy is the measurement that decides.
package remedy

import (
	"fmt"
	"strings"

	"github.com/inquest-dev/inquest/internal/catalog"
	"github.com/inquest-dev/inquest/internal/evidence"
	"github.com/inquest-dev/inquest/internal/incident"
	"github.com/inquest-dev/inquest/internal/lazyre"
)

// A Leading is the hypothesis to act on.
type Leading struct {
	Entry    *catalog.Entry
	Standing string
	Missing  []incident.Missing
	Rival    string // title of the next hypothesis, "" if there is none
	// Holds reports whether a condition of the entry is known to hold; nil: none does.
	Holds func(when string) bool
}

// Choose returns the remedy for the leading hypothesis, or nil where there is
// none. KeptLogging says that non-finite or stale values went on being logged
// after the fault; then the change to the logging is added.
func Choose(l *Leading, known evidence.Known, command string, keptLogging bool) *incident.Remedy {
	if l == nil {
		return nil
	}
	values := known.Values()
	if command != "" {
		values["run.command"] = evidence.TextOf(withoutOutput(command))
	}
	var r *incident.Remedy
	if l.Standing == incident.Possible && len(l.Missing) > 0 {
		r = measure(l, values)
	} else {
		r = change(l.Entry, l.fitting(), known, values)
	}
	if keptLogging {
		r.Logging = loggingEdit(values)
	}
	return r
}

// fitting is the entry's remedy for the situation of this run.
func (l *Leading) fitting() catalog.Case {
	for _, c := range l.Entry.Cases {
		if l.Holds != nil && l.Holds(c.When) {
			return c
		}
	}
	return catalog.Case{Remedy: l.Entry.Remedy, Risks: l.Entry.Risks, Rollback: l.Entry.Rollback}
}

// measure is the remedy of an undecided cause.
func measure(l *Leading, values map[string]evidence.Value) *incident.Remedy {
	m := l.Missing[0]
	r := &incident.Remedy{
		Entry: l.Entry.ID, Scope: "measure", Effect: m.Effect, Cost: m.Cost,
		Change:   "Measure before changing anything: find out " + lowerFirst(strings.TrimSuffix(m.Fact, ".")) + ".",
		Why:      fmt.Sprintf("The evidence does not decide the cause. %q is the likeliest of several, and this is the cheapest fact that tells them apart.", l.Entry.Title),
		Command:  m.How,
		Verify:   "Run inquest again on the new log: the answer moves a hypothesis up or rules it out.",
		Rollback: "Nothing to undo.",
		Risks:    []string{}, Edits: []incident.Edit{}, Expected: map[string]any{}, Alternatives: []string{},
	}
	if l.Rival != "" {
		r.Why = fmt.Sprintf("The evidence does not decide between %q and %q; this is the cheapest fact that tells them apart.", l.Entry.Title, l.Rival)
	}
	if c := catalog.ExpandSentences(l.fitting().Remedy.Change, values); c != "" {
		r.Alternatives = append(r.Alternatives, "If the answer confirms it: "+c)
	}
	return r
}

// change is one of the entry's remedies with values filled in.
func change(e *catalog.Entry, c catalog.Case, known evidence.Known, values map[string]evidence.Value) *incident.Remedy {
	compute(c.Remedy.Compute, known, values)
	test, find := "", ""
	if own, ok := values["run.command"]; ok {
		find = edge(own.S, values)
		was, complete := own.S, false
		own.S, complete = withChange(own.S, values)
		test = tried(own.S, complete && own.S != was)
		values["run.command"] = own
	}
	x := func(s string) string { return catalog.ExpandSentences(s, values) }
	r := &incident.Remedy{
		Entry: e.ID, Scope: c.Remedy.Scope, Change: x(c.Remedy.Change), Why: x(c.Remedy.Why),
		Command: command(c.Remedy.Command, values), Verify: x(c.Remedy.Verify), Test: test, Rollback: x(c.Rollback), Cost: x(c.Remedy.Cost), Effect: c.Remedy.Effect,
		NextFailure: x(c.Remedy.NextFailure), Edits: edits(c.Remedy.Edits, values), Risks: []string{}, Alternatives: []string{}, Expected: map[string]any{},
	}
	for _, s := range c.Risks {
		if s = x(s); s != "" {
			r.Risks = append(r.Risks, s)
		}
	}
	for _, s := range c.Remedy.Options {
		if s = x(s); s != "" {
			r.Alternatives = append(r.Alternatives, s)
		}
	}
	if find != "" {
		r.Alternatives = append(r.Alternatives, "The largest that passes is found by: "+find)
	}
	if s := x(c.Remedy.Expected); s != "" {
		r.Expected["shows"] = s
	}
	for name, key := range map[string]string{"oom.requested": "observed_requested_bytes", "oom.allocated": "observed_allocated_bytes", "oom.capacity": "observed_capacity_bytes"} {
		if v, ok := values[name]; ok {
			r.Expected[key] = map[string]int64{"lo": v.Lo, "hi": v.Hi}
		}
	}
	for name, v := range values {
		if k, ok := strings.CutPrefix(name, "fix."); ok && v.T == evidence.Int {
			r.Expected[k] = v.I
		}
	}
	return r
}

func command(text string, values map[string]evidence.Value) string {
	s, unknown := catalog.ExpandCommand(text, values)
	if len(unknown) > 0 {
		return ""
	}
	return s
}

// ofTrainer are the places of edits that only a run under transformers' Trainer has.
var ofTrainer = lazyre.New(`Trainer|TrainingArguments|Config`)

// edits picks those of the stack that the log shows: the framework whose
// settings the person changes first, then the ones below it, then plain PyTorch,
// then any.
func edits(all []catalog.Edit, values map[string]evidence.Value) []incident.Edit {
	order := strings.Fields(values["run.frameworks"].S)
	where := values["run.scheduler"].S
	if where != "" {
		order = append(order, where)
	}
	if values["run.container"].True() && !values["run.shm_of_host"].True() {
		if where == "" {
			order = append(order, "kubernetes")
		}
		order = append(order, "docker")
	}
	order = append(order, "pytorch", "any")
	out := []incident.Edit{}
	for _, stack := range order {
		for _, ed := range all {
			if ed.Stack != stack && !(stack == "transformers" && ed.Stack == "hf" && !ofTrainer.MatchString(ed.Where)) {
				continue
			}
			to, unknown := catalog.Expand(ed.To, values)
			if len(unknown) > 0 {
				continue
			}
			from, unknown := catalog.Expand(ed.From, values)
			if len(unknown) > 0 {
				from = "the present value"
			}
			where, _ := catalog.Expand(ed.Where, values)
			out = append(out, incident.Edit{Stack: ed.Stack, Where: where, From: from, To: to})
		}
		if len(out) > 0 {
			return out
		}
	}
	return out
}

func lowerFirst(s string) string {
	if len(s) > 1 && s[0] >= 'A' && s[0] <= 'Z' && (s[1] < 'A' || s[1] > 'Z') {
		return string(s[0]+'a'-'A') + s[1:]
	}
	return s
}

// loggings says, per stack, how to log finite values only and to mark the
// failed segment.
var loggings = map[string]incident.Edit{
	"hf":         {Where: "TrainingArguments and a TrainerCallback", From: "logging_nan_inf_filter=True (replaces NaN and Inf losses, so that the curve goes on)", To: "logging_nan_inf_filter=False, and in on_log: if not math.isfinite(logs.get('loss', 0.0)) or not math.isfinite(logs.get('grad_norm', 0.0)): log {'failed_segment': 1} and set control.should_training_stop = True"},
	"lightning":  {Where: "LightningModule.training_step", From: "self.log('train_loss', loss)", To: "if not torch.isfinite(loss): self.log('failed_segment', 1.0); self.trainer.should_stop = True; return None\nself.log('train_loss', loss)"},
	"megatron":   {Where: "launch arguments", From: "a step line that leaves out a non-finite loss", To: "--log-interval 1 without --no-check-for-nan-in-loss-and-grad (the check stops at the rank and iteration where it begins)"},
	"deepspeed":  {Where: "the training loop", From: "logging engine.get_global_grad_norm() as it is (a broken norm prints as a finite constant)", To: "log the loss before backward, and stop when it is not finite: if not torch.isfinite(loss): tracker.log({'failed_segment': 1}); break"},
	"keras":      {Where: "model.fit(callbacks=...)", From: "no guard", To: "callbacks=[keras.callbacks.TerminateOnNaN()] before the tracker's callback"},
	"jax":        {Where: "the training loop", From: "logging metrics unchecked", To: "if not jnp.isfinite(loss): tracker.log({'failed_segment': 1}, step=step); raise FloatingPointError(f'loss not finite at step {step}')"},
	"torchtitan": {Where: "the metrics hook", From: "logging the loss unchecked", To: "if not torch.isfinite(loss): log {'failed_segment': 1} and stop"},
	"pytorch":    {Where: "where the tracker is called", From: "tracker.log({'loss': loss.item()}, step=step)", To: "v = loss.item()\nif math.isfinite(v): tracker.log({'loss': v}, step=step)\nelse: tracker.log({'failed_segment': 1}, step=step); raise FloatingPointError(f'loss not finite at step {step}')"},
}

func loggingEdit(values map[string]evidence.Value) *incident.Edit {
	for _, s := range append(strings.Fields(values["run.frameworks"].S), "pytorch") {
		if e, ok := loggings[s]; ok {
			e.Stack = s
			return &e
		}
	}
	return nil
}
