package ledger

import (
	"slices"
	"strings"

	"github.com/inquest-dev/inquest/internal/incident"
)

// Closed stands beside the states of an incident in a Filter: those that nobody works on any
// more, however they stand.
const Closed = "closed"

// States are what a Filter can ask for, in the order in which they are told.
var States = []string{incident.Open, incident.Unresolved, incident.Confirmed, incident.Regressed, Closed}

// A Filter is what a list of incidents is asked for. Its zero value asks for all that are not
// closed.
type Filter struct {
	States   []string // of States; none is all
	Scenario string   // what the scenario has in it, in any case
	Since    string   // a time in RFC 3339, UTC: those that failed then or later; "" is all
	All      bool     // closed ones too
}

// Apply leaves in the list what was asked for, and counts the rest as hidden.
func (f *Filter) Apply(l *incident.Incidents) {
	kept := l.Incidents[:0]
	for _, k := range l.Incidents {
		if f.wants(&k) {
			kept = append(kept, k)
		}
	}
	l.Hidden = len(l.Incidents) - len(kept)
	l.Incidents = kept
}

func (f *Filter) wants(k *incident.KeptLine) bool {
	state, closed := slices.Contains(f.States, k.Status), slices.Contains(f.States, Closed)
	switch {
	case len(f.States) > 0 && !(state && (!k.Closed || f.All || closed) || closed && k.Closed):
		return false
	case len(f.States) == 0 && k.Closed && !f.All:
		return false
	case !strings.Contains(strings.ToLower(k.Scenario), strings.ToLower(f.Scenario)):
		return false
	}
	return f.Since == "" || strings.TrimSuffix(k.Last, "Z") >= strings.TrimSuffix(f.Since, "Z")
}
