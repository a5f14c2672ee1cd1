package ledger

import (
	"strings"

	"github.com/inquest-dev/inquest/internal/incident"
)

// Explain adds to an incident what the diagnosis of its failure says: its symptom, the title of
// its cause, how a fix is taken back, and whether the change that was verified is the one that
// the cause calls for. Only then a verification confirms the cause as well: another change that
// helped shows that it helped, not why the run failed.
func Explain(k *incident.Kept, d *incident.Incident) {
	if d == nil {
		return
	}
	k.Diagnosis = d
	if f := d.FirstFault; f != nil {
		k.Symptom = f.Text
	}
	if len(d.Hypotheses) > 0 && d.Hypotheses[0].Standing != incident.RuledOut {
		h := d.Hypotheses[0]
		if k.Cause == nil {
			k.Cause = &incident.KeptCause{Entry: h.Entry, Standing: h.Standing}
		}
		for _, h := range d.Hypotheses {
			if h.Entry == k.Cause.Entry || h.Cause == k.Cause.Entry {
				k.Cause.Title, k.Cause.Standing = h.Title, h.Standing
				break
			}
		}
	}
	if k.Fix == nil {
		return
	}
	r := d.Remedy
	if r == nil {
		return
	}
	called := k.Fix.Single && k.Cause != nil && r.Entry == k.Cause.Entry && callsFor(r, k.Fix.Changes[0])
	if called && k.Status == incident.Confirmed {
		k.Cause.Confirmed = true
	}
	if called && r.Rollback != "" && !strings.Contains(k.Rollback, r.Rollback) {
		if k.Rollback != "" {
			k.Rollback += ". "
		}
		k.Rollback += r.Rollback
	}
}

// callsFor reports whether a remedy names what a change changed, under any of the spellings
// that options and settings have.
func callsFor(r *incident.Remedy, c incident.Change) bool {
	names := []string{c.Name}
	for _, p := range c.Parts {
		names = append(names, p.Name)
	}
	texts := []string{r.Change, r.Command}
	for _, e := range r.Edits {
		texts = append(texts, e.Where, e.From, e.To)
	}
	for _, name := range names {
		want := plainName(name)
		if len(want) < 3 {
			continue
		}
		for _, t := range texts {
			if hasWord(t, want) {
				return true
			}
		}
	}
	return false
}

// plainName is a name of an option or setting without its spelling: --per-device-batch and
// per_device_batch are one.
func plainName(s string) string {
	return strings.Trim(strings.ReplaceAll(strings.ToLower(strings.TrimSpace(s)), "-", "_"), "_")
}

// hasWord reports whether text has a name as a word of its own.
func hasWord(text, name string) bool {
	words := strings.FieldsFunc(text, func(r rune) bool {
		return !(r == '_' || r == '-' || 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9')
	})
	for _, w := range words {
		if plainName(w) == name {
			return true
		}
	}
	return false
}
