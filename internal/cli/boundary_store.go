package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/inquest-dev/inquest/internal/incident"
	"github.com/inquest-dev/inquest/internal/record"
	"github.com/inquest-dev/inquest/internal/store"
)

var errResume = errors.New("nothing to go on with")

// madeBefore returns the trials of a search that was begun before: of the series of that name,
// or of the newest with the same command in the same folder. The oldest is the first.
func madeBefore(ctx context.Context, s *store.Store, name string, args []string) (string, []incident.Trial, error) {
	all, _, err := s.Trials(ctx)
	if err != nil {
		return "", nil, err
	}
	dir, err := os.Getwd()
	if err != nil {
		return "", nil, err
	}
	template := record.MaskCommand(args)
	same := func(t *incident.Trial) bool {
		return t.By == incident.ByBoundary && t.Dir == dir && slices.Equal(t.Template, template)
	}
	if name == newestSeries {
		name = ""
		for i := range all {
			if same(&all[i]) {
				name = all[i].Series
			}
		}
		if name == "" {
			return "", nil, fmt.Errorf("%w: no search of this command in this folder is in %s", errResume, s.Dir())
		}
	}
	var out []incident.Trial
	for i := range all {
		t := &all[i]
		switch {
		case t.Series != name:
		case !same(t):
			return "", nil, fmt.Errorf("%w: %s is a search of another command, or in another folder", errResume, name)
		default:
			out = append(out, *t)
		}
	}
	if len(out) == 0 {
		return "", nil, fmt.Errorf("%w: no trial of %s is in %s", errResume, name, s.Dir())
	}
	return name, out, nil
}

// keepSearch stores what a search showed as an act of the incident that it was for, or of that
// of the first trial that failed. The trials are in the store, so the act names them only.
func keepSearch(ctx context.Context, s *store.Store, got *incident.Trials) error {
	ctx = context.WithoutCancel(ctx) // what was found until an interrupt is kept too
	if got.Incident == "" {
		for i := range got.Trials {
			if v := got.Trials[i].Verdict; v == nil || v.Result != incident.OutOfMemory && v.Result != incident.TrialFailed {
				continue
			}
			if k, err := s.Find(ctx, got.Trials[i].ID); err == nil {
				got.Incident = k.ID
			}
			break
		}
	}
	result := *got
	result.Trials = []incident.Trial{}
	act := incident.Act{Incident: got.Incident, Kind: incident.ActBoundary, Text: got.Boundary.Says, Result: &result}
	for i := range got.Trials {
		act.Trials = append(act.Trials, got.Trials[i].ID)
	}
	_, err := s.Act(act)
	return err
}
