package trial

import (
	"errors"
	"fmt"
	"time"
)

// ErrBudget is why a series of trials ended before its end.
var ErrBudget = errors.New("budget")

// A Budget bounds a series of trials. What is 0 is not bounded.
type Budget struct {
	Trials  int           // how many may be made
	Time    time.Duration // of the whole series
	Timeout time.Duration // of one trial
}

// Next says how long the next trial may take, 0 for any time, after so many were made in so
// much time. The error is an ErrBudget that says which bound was reached.
func (b Budget) Next(made int, spent time.Duration) (time.Duration, error) {
	if b.Trials > 0 && made >= b.Trials {
		return 0, fmt.Errorf("%w: %d trials were made (--trials)", ErrBudget, made)
	}
	limit := b.Timeout
	if b.Time > 0 {
		left := b.Time - spent
		if left <= 0 {
			return 0, fmt.Errorf("%w: %s are over (--time)", ErrBudget, b.Time)
		}
		if limit == 0 || left < limit {
			limit = left
		}
	}
	return limit, nil
}
