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

// callsFor reports whether a remedy changes what a change changed, under any of the spellings
// that options and settings have. That its command has the option as well, as the run's own
// command does, says nothing.
func callsFor(r *incident.Remedy, c incident.Change) bool {
	names := []string{c.Name}
	for _, p := range c.Parts {
		names = append(names, p.Name)
	}
	for _, name := range names {
		want := plainName(name)
		if len(want) < 3 {
			continue
		}
		if _, ok := behindName(r.Change, want); ok {
			return true
		}
		for _, e := range r.Edits {
			from, before := behindName(e.From, want)
			to, after := behindName(e.To, want)
			_, place := behindName(e.Where, want)
			if before != after || before && from != to || place {
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

// behindName finds a name as a word of its own in a text, and returns the word behind it.
func behindName(text, name string) (next string, ok bool) {
	words := strings.FieldsFunc(text, func(r rune) bool {
		return !(r == '_' || r == '-' || r == '.' || 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9')
	})
	for i, w := range words {
		if plainName(strings.Trim(w, ".")) != name {
			continue
		}
		if i+1 < len(words) {
			next = strings.TrimRight(words[i+1], ".")
		}
		return next, true
	}
	return "", false
}
