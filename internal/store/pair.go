package store

import (
	"context"

	"github.com/inquest-dev/inquest/internal/incident"
	"github.com/inquest-dev/inquest/internal/ledger"
)

// Pair are the trials that two names mean, ids or their beginnings, in the order of the names,
// without their samples. The error is a ledger.NameError where one means none.
func (s *Store) Pair(ctx context.Context, a, b string) (x, y *incident.Trial, err error) {
	all, _, err := s.Trials(ctx)
	if err != nil {
		return nil, nil, err
	}
	if x, err = ledger.TrialNamed(all, a); err != nil {
		return nil, nil, err
	}
	if y, err = ledger.TrialNamed(all, b); err != nil {
		return nil, nil, err
	}
	return x, y, nil
}

// PairOf are the two trials that tell most of an incident: the one that failed and what was tried
// since, as ledger.BeforeAfter has it, else the newest of the same scenario, as
// ledger.TriedSince has it. The error is ledger.ErrOneTrial or ledger.ErrNoOriginal where there is
// nothing to compare.
func (s *Store) PairOf(ctx context.Context, k *incident.Kept) (x, y *incident.Trial, err error) {
	x, y, err = ledger.BeforeAfter(k)
	if y != nil || x == nil {
		return x, y, err
	}
	all, _, readErr := s.Trials(ctx)
	if readErr != nil {
		return nil, nil, readErr
	}
	if y = ledger.TriedSince(x, all); y == nil {
		return nil, nil, err
	}
	return x, y, nil
}
