package desk

import (
	"context"
	"fmt"
	"time"

	"github.com/inquest-dev/inquest/internal/incident"
)

// often is the time between two calls of who watches.
const often = 100 * time.Millisecond

// Watch calls fn with the case as it is, and again whenever it has changed, at most ten
// times a second and always with its end, at once; it returns nil when the case has ended, fn's
// error, or ctx's. The case that fn is given is a copy of its own, without its files.
func (d *Desk) Watch(ctx context.Context, id string, fn func(*incident.Case) error) error {
	d.mu.Lock()
	c, err := d.find(id)
	d.mu.Unlock()
	if err != nil {
		return err
	}
	for {
		d.mu.Lock()
		now := c.snapshot()
		if c.change == nil {
			c.change = make(chan struct{})
		}
		change := c.change
		d.mu.Unlock()
		if err := fn(now); err != nil {
			return err
		}
		if now.Ended() {
			return nil
		}
		wait := time.NewTimer(often)
		select {
		case <-c.end:
		case <-ctx.Done():
		case <-wait.C:
			select {
			case <-change: // its end is one
			case <-ctx.Done():
			}
		}
		wait.Stop()
		if err := ctx.Err(); err != nil {
			return err
		}
	}
}

// Result waits for the end of the case. ErrState is that its diagnosis was not asked for yet, or
// that it was cancelled; ErrFailed that it failed, with the reason.
func (d *Desk) Result(ctx context.Context, id string) (*Result, error) {
	d.mu.Lock()
	c, err := d.find(id)
	if err == nil && c.state == incident.CaseReceiving {
		err = fmt.Errorf("result: %w: the case is still receiving", ErrState)
	}
	d.mu.Unlock()
	if err != nil {
		return nil, err
	}
	select {
	case <-c.end:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	switch c.state {
	case incident.CaseFailed:
		return nil, fmt.Errorf("%w: %s", ErrFailed, c.err)
	case incident.CaseCancelled:
		return nil, fmt.Errorf("result: %w: the case was cancelled", ErrState)
	}
	return c.result, nil
}
