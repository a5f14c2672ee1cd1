package ledger

import (
	"slices"
	"strconv"
	"time"

	"github.com/inquest-dev/inquest/internal/incident"
)

// launchKey names one start of a job as its launcher does, which numbers the restarts. It is ""
// where no launcher named itself.
func launchKey(l *incident.Launch) string {
	if l == nil || l.ID == "" {
		return ""
	}
	if l.Restart > 0 {
		return l.ID + "#" + strconv.Itoa(l.Restart)
	}
	return l.ID
}

// startsWithin is how far the processes of one launch may miss each other where its name is weak: a
// process that fails at once may have ended before another host has started its own.
const startsWithin = 10 * time.Second

// launches groups trials into units: those that run recorded of one launch, oldest first, and
// any other by itself. A weak name may be a later launch's as well, as the address of rank 0 is
// in the next try by hand: of a unit with such a name all ran at the same time, and no rank is
// in it twice. Its key has its first trial behind the name.
func launches(trials []incident.Trial) []*unit {
	ordered := make([]*incident.Trial, len(trials))
	for i := range trials {
		ordered[i] = &trials[i]
	}
	slices.SortFunc(ordered, func(a, b *incident.Trial) int { return byTime(a.Begun, b.Begun, a.ID, b.ID) })
	named := map[string][]*unit{}
	var units []*unit
	for _, t := range ordered {
		name := ""
		if t.By == incident.ByRun {
			name = launchKey(t.Launch)
		}
		// The first that fits: so the trials of some of the units make the same units again.
		at := slices.IndexFunc(named[name], func(u *unit) bool { return !t.Launch.Weak || u.fits(t) })
		if name != "" && at >= 0 {
			u := named[name][at]
			u.trials = append(u.trials, t)
			continue
		}
		u := &unit{launch: name, trials: []*incident.Trial{t}}
		if units = append(units, u); name != "" {
			named[name] = append(named[name], u)
			if t.Launch.Weak {
				u.launch += "@" + t.ID
			}
		}
	}
	return units
}

// fits reports whether t, which began after the trials of u, can be a process of the same start.
func (u *unit) fits(t *incident.Trial) bool {
	begun, err := time.Parse(time.RFC3339Nano, t.Begun)
	if err != nil {
		return false
	}
	near := false
	for _, o := range u.trials {
		if o.Launch.Rank != nil && t.Launch.Rank != nil && *o.Launch.Rank == *t.Launch.Rank {
			return false
		}
		// Of one whose end is not on record only its begin is known.
		end := o.Begun
		if o.Ended != nil {
			end = *o.Ended
		}
		if e, err := time.Parse(time.RFC3339Nano, end); err == nil && begun.Sub(e) <= startsWithin {
			near = true
		}
	}
	return near
}

// Siblings returns the trials that failed or passed as one with the trial of this id, itself
// among them: all processes of its launch, oldest first. It is empty where trials has none of
// this id.
func Siblings(trials []incident.Trial, id string) []*incident.Trial {
	for _, u := range launches(trials) {
		if slices.ContainsFunc(u.trials, func(t *incident.Trial) bool { return t.ID == id }) {
			return u.trials
		}
	}
	return nil
}
