package bundle

import (
	"fmt"
	"strings"

	"github.com/inquest-dev/inquest/internal/incident"
	"github.com/inquest-dev/inquest/internal/redact"
)

// Check says in what the diagnosis of the bundle differs from that of the originals, taking each
// name for its token.
func Check(n *redact.Names, was, now *incident.Incident) incident.BundleCheck {
	c := incident.BundleCheck{Fingerprint: was.Fingerprint, Bundled: now.Fingerprint, Differs: []string{}}
	differ := func(what string, x, y any) {
		if p, q := fmt.Sprint(x), fmt.Sprint(y); p != q {
			c.Differs = append(c.Differs, fmt.Sprintf("%s: %s, and %s from the bundle", what, clip(n.Text(p), 200), clip(q, 200)))
		}
	}
	differ("outcome", was.Outcome, now.Outcome)
	differ("first fault", place(was.FirstFault), place(now.FirstFault))
	text := ""
	if was.FirstFault != nil && now.FirstFault != nil {
		text = now.FirstFault.Text
		if n.Text(was.FirstFault.Text) != text && was.FirstFault.Text != text {
			differ("words of the first fault", n.Text(was.FirstFault.Text), text)
		}
	}
	differ("how sure it is that it was first", was.FirstFaultStanding, now.FirstFaultStanding)
	differ("faults that may as well have been first", len(was.FirstFaultRivals), len(now.FirstFaultRivals))
	differ("order of memory failure and non-finite values", was.Order.Relation+", linked "+was.Order.Linked, now.Order.Relation+", linked "+now.Order.Linked)
	differ("hypotheses", hypotheses(was), hypotheses(now))
	differ("remedy", remedy(was), remedy(now))
	differ("failures that only followed", len(was.Collateral), len(now.Collateral))
	differ("attempts", len(was.Attempts), len(now.Attempts))
	differ("ranks", len(was.Ranks), len(now.Ranks))
	if len(c.Differs) == 0 && was.Fingerprint != now.Fingerprint && (was.FirstFault == nil || was.FirstFault.Text == text) {
		differ("fingerprint", was.Fingerprint, now.Fingerprint)
	}
	c.Unchanged = len(c.Differs) == 0
	return c
}

// place is an event without names.
func place(e *incident.Event) string {
	if e == nil {
		return "none"
	}
	var b strings.Builder
	b.WriteString(e.Kind + ", " + e.Class)
	number := func(name string, v *int) {
		if v != nil {
			fmt.Fprintf(&b, ", %s %d", name, *v)
		}
	}
	number("rank", e.Rank)
	number("local rank", e.LocalRank)
	number("device", e.Device)
	if e.Step != nil {
		fmt.Fprintf(&b, ", step %d", *e.Step)
	}
	if e.Span != nil {
		fmt.Fprintf(&b, ", line %d", e.Span.Line)
	}
	return b.String()
}

func hypotheses(d *incident.Incident) string {
	var out []string
	for i := range d.Hypotheses {
		out = append(out, d.Hypotheses[i].Cause+" "+d.Hypotheses[i].Standing)
	}
	return strings.Join(out, ", ")
}

func remedy(d *incident.Incident) string {
	if d.Remedy == nil {
		return "none"
	}
	return d.Remedy.Entry + ", " + d.Remedy.Scope
}
