package ledger

import (
	"slices"
	"time"

	"github.com/inquest-dev/inquest/internal/incident"
)

// Tabulate fills the table of an incident's trials.
func Tabulate(k *incident.Kept) {
	var original *incident.Trial
	for i := range k.Trials {
		if k.Trials[i].ID == k.Original {
			original = &k.Trials[i]
		}
	}
	verdicts := map[string]string{}
	for _, a := range k.Acts {
		if a.Kind == incident.ActVerified && a.Result != nil && a.Result.Verification != nil {
			for _, id := range a.Trials {
				verdicts[id] = a.Result.Verification.Verdict
			}
		}
	}
	k.Table = []incident.KeptRow{}
	for _, u := range unitsOf(k.Trials, k.Acts) {
		t := u.lead()
		row := incident.KeptRow{Trial: t.ID, Launch: u.launch, Processes: len(u.trials), By: t.By, Begun: u.begun(), Seconds: seconds(t), Peak: peak(t), Changes: []incident.Change{}, Verdict: verdicts[t.ID]}
		for _, x := range u.trials {
			if HasFailed(x) {
				row.Failed++
			}
		}
		if v := t.Verdict; v != nil {
			row.Result, row.Text = v.Result, v.Text
		}
		if t.Exit != nil {
			row.Status, row.Signal = &t.Exit.Status, t.Exit.Signal
		}
		if original != nil && !slices.ContainsFunc(u.trials, func(x *incident.Trial) bool { return x.ID == original.ID }) {
			c := Compare(*original, *t)
			row.Changes, row.Compared, row.Unknown = append(row.Changes, c.Changes...), true, len(c.Unknown)
		}
		k.Table = append(k.Table, row)
	}
}

// seconds is how long a trial took.
func seconds(t *incident.Trial) *float64 {
	if t.Ended == nil {
		return nil
	}
	from, err := time.Parse(time.RFC3339Nano, t.Begun)
	if err != nil {
		return nil
	}
	to, err := time.Parse(time.RFC3339Nano, *t.Ended)
	if err != nil || to.Before(from) {
		return nil
	}
	s := to.Sub(from).Seconds()
	return &s
}

// peak is the measure that says most of a trial's memory: of the kind that ran out, else the
// one nearest to its limit, else what its processes had in memory.
func peak(t *incident.Trial) *incident.Measure {
	where := ""
	if t.Verdict != nil {
		where = t.Verdict.Where
	}
	best, score := -1, -1.0
	for i, m := range t.Measures {
		s := 0.0
		if m.Limit != nil && *m.Limit > 0 {
			s = min(1, float64(m.Peak)/float64(*m.Limit))
		}
		device := m.Name == incident.DeviceMemory || m.Name == incident.Reserved || m.Name == incident.Allocated
		switch {
		case where == "device_memory" && device, where == "host_memory" && !device:
			s += 2
		case device:
			s++
		}
		if m.Name == incident.Resident {
			s += 0.01
		}
		if s > score {
			best, score = i, s
		}
	}
	if best < 0 {
		return nil
	}
	m := t.Measures[best]
	return &m
}

// A Launch is one start of a job, with the trials of its processes.
type Launch struct {
	Key    string
	Trials []incident.Trial // oldest first
}

// Unjoined returns the launches of an incident of which several processes failed, and whose
// logs have not all been diagnosed together.
func Unjoined(k *incident.Kept) []Launch {
	var out []Launch
	for _, u := range unitsOf(k.Trials, k.Acts) {
		failed, apart := 0, 0
		for _, t := range u.trials {
			if !HasFailed(t) {
				continue
			}
			if failed++; u.joint == nil || !slices.Contains(u.joint.Trials, t.ID) {
				apart++
			}
		}
		if u.launch == "" || failed < 2 || apart == 0 {
			continue
		}
		l := Launch{Key: u.launch}
		for _, t := range u.trials {
			l.Trials = append(l.Trials, *t)
		}
		out = append(out, l)
	}
	return out
}
