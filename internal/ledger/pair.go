package ledger

import (
	"errors"
	"fmt"
	"slices"

	"github.com/inquest-dev/inquest/internal/incident"
)

// ErrOneTrial is for an incident of which nothing was tried since it failed.
var ErrOneTrial = errors.New("nothing to compare with")

// ErrNoOriginal is for an incident whose first trial is gone: there is no side to compare from.
var ErrNoOriginal = errors.New("the trial of the failure is not on record")

// A NameError is for a name that means no trial, or more than one.
type NameError struct {
	Name string
	IDs  []string // of trials that begin with it; none, or two of them
}

func (e *NameError) Error() string {
	if len(e.IDs) > 1 {
		return fmt.Sprintf("more than one trial begins with %q: %s, %s", e.Name, e.IDs[0], e.IDs[1])
	}
	return fmt.Sprintf("no trial %q is kept; inquest incident show lists those of an incident", e.Name)
}

// TrialNamed is the trial with this id, else the one trial whose id begins with name, which has
// two characters at least. The error is a NameError.
func TrialNamed(all []incident.Trial, name string) (*incident.Trial, error) {
	var found *incident.Trial
	for i := range all {
		switch id := all[i].ID; {
		case id == name:
			return &all[i], nil
		case len(name) >= 2 && len(id) > len(name) && id[:len(name)] == name:
			if found != nil {
				return nil, &NameError{name, []string{found.ID, id}}
			}
			found = &all[i]
		}
	}
	if found == nil {
		return nil, &NameError{Name: name}
	}
	return found, nil
}

// BeforeAfter are the trial that failed and the one that tells most of what was tried since: the
// last that a verification or recheck made, else the last of all. Where there is no other the
// error is ErrOneTrial, and x is there all the same; ErrNoOriginal is that the first is gone.
func BeforeAfter(k *incident.Kept) (x, y *incident.Trial, err error) {
	siblings := Siblings(k.Trials, k.Original)
	for i := range k.Trials {
		t := &k.Trials[i]
		switch {
		case t.ID == k.Original:
			x = t
		case x == nil: // before the failure
		case y == nil, t.By == incident.ByVerify, t.By == incident.ByRecheck, y.By != incident.ByVerify && y.By != incident.ByRecheck:
			if !slices.Contains(siblings, t) {
				y = t
			}
		}
	}
	switch {
	case x == nil:
		return nil, nil, fmt.Errorf("compare trials of %s: %w", k.ID, ErrNoOriginal)
	case y == nil:
		return x, nil, fmt.Errorf("%w: %s has one trial; run it again with the change (inquest run, or inquest verify --incident %s)", ErrOneTrial, k.ID, k.ID)
	}
	return x, y, nil
}

// TriedSince is the newest of all trials that has the scenario of x and began after it, null
// where there is none: a run that passed is of no incident, and may be what was tried.
func TriedSince(x *incident.Trial, all []incident.Trial) *incident.Trial {
	var y *incident.Trial
	for i := range all {
		if t := &all[i]; t.Scenario != "" && t.Scenario == x.Scenario && t.ID != x.ID && t.Begun > x.Begun && (y == nil || t.Begun > y.Begun) {
			y = t
		}
	}
	return y
}
