package desk_test

import (
	"context"
	"errors"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/inquest-dev/inquest/internal/desk"
	"github.com/inquest-dev/inquest/internal/incident"
)

// TestWatch counts, on a clock of its own, what a busy second calls for.
func TestWatch(t *testing.T) {
	o := options(t)
	synctest.Test(t, func(t *testing.T) {
		d, err := desk.New(o)
		if err != nil {
			t.Fatal(err)
		}
		defer d.Close()
		c, err := d.Begin("")
		if err != nil {
			t.Fatal(err)
		}
		calls, last := []time.Time{}, (*incident.Case)(nil)
		ended := make(chan error, 1)
		go func() {
			ended <- d.Watch(t.Context(), c.ID, func(c *incident.Case) error {
				calls, last = append(calls, time.Now()), c
				return nil
			})
		}()
		synctest.Wait()
		if len(calls) != 1 {
			t.Fatalf("%d calls at the beginning", len(calls))
		}
		time.Sleep(time.Hour)
		synctest.Wait()
		if len(calls) != 1 {
			t.Fatalf("%d calls without a change", len(calls))
		}
		n := int64(5000)
		if _, err := d.Put(t.Context(), c.ID, "a.log", &parts{n: n, size: 1, end: io.EOF, each: func() { time.Sleep(time.Millisecond) }}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if len(calls) < 40 || len(calls) > 52 {
			t.Errorf("%d calls in five seconds", len(calls))
		}
		for i := 2; i < len(calls); i++ {
			if calls[i].Sub(calls[i-1]) < 100*time.Millisecond {
				t.Fatalf("call %d comes %v after the one before", i, calls[i].Sub(calls[i-1]))
			}
		}
		before := time.Now()
		if err := d.Cancel(c.ID); err != nil {
			t.Fatal(err)
		}
		if err := <-ended; err != nil || last.State != incident.CaseCancelled || last.Bytes != n || time.Since(before) > 0 {
			t.Errorf("watched to %+v, %v late (%v)", last, time.Since(before), err)
		}
		// Who comes behind the end sees it once.
		calls = nil
		if err := d.Watch(t.Context(), c.ID, func(*incident.Case) error { calls = append(calls, time.Now()); return nil }); err != nil || len(calls) != 1 {
			t.Errorf("%d calls of a case that has ended (%v)", len(calls), err)
		}
	})
}

// TestWatchEnds ends watching in every way but the case's end; synctest sees what stays.
func TestWatchEnds(t *testing.T) {
	o := options(t)
	synctest.Test(t, func(t *testing.T) {
		d, err := desk.New(o)
		if err != nil {
			t.Fatal(err)
		}
		c, err := d.Begin("")
		if err != nil {
			t.Fatal(err)
		}
		enough := errors.New("enough")
		if err := d.Watch(t.Context(), c.ID, func(*incident.Case) error { return enough }); err != enough {
			t.Errorf("fn's error: %v", err)
		}
		for _, after := range []time.Duration{time.Millisecond, time.Second} {
			ctx, stop := context.WithTimeout(t.Context(), after)
			if err := d.Watch(ctx, c.ID, func(*incident.Case) error { return nil }); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("ctx's error: %v", err)
			}
			stop()
		}
		if err := d.Watch(t.Context(), "x", nil); !errors.Is(err, desk.ErrNoCase) {
			t.Errorf("no case: %v", err)
		}
		ctx, stop := context.WithTimeout(t.Context(), time.Second)
		defer stop()
		if err := d.Close(); err != nil {
			t.Error(err)
		}
		if _, err := d.Result(ctx, c.ID); !errors.Is(err, desk.ErrClosed) {
			t.Errorf("result: %v", err)
		}
	})
}
