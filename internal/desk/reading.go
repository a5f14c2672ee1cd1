package desk

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/inquest-dev/inquest/internal/engine"
	"github.com/inquest-dev/inquest/internal/incident"
)

// What a page can be zoomed into; of memory, for all snapshots together.
const (
	pageBuckets = 1 << 17 // of the timeline
	pageLargest = 1 << 15 // allocations that it lists one by one
	pageBlocks  = 20_000  // of segments
	pagePoints  = 8192    // of a series
)

// Lines is the window of lines from line n-before to n+after of an artifact, named as the
// incident names it; offset, where it is not negative, says which line is n. The files are
// there as soon as the case receives no more, and ErrState is that they are not, or no longer;
// ErrNothing is that there is no artifact of this name.
func (d *Desk) Lines(ctx context.Context, id, artifact string, n, offset int64, before, after int) (*incident.Lines, error) {
	return read(ctx, d, id, func(ctx context.Context, o engine.Options) (*incident.Lines, error) {
		l, err := engine.Lines(ctx, o, engine.Place{Artifact: artifact, Line: n, Offset: offset, Before: before, After: after})
		if errors.Is(err, engine.ErrNoLines) {
			err = fmt.Errorf("%w: %w", err, ErrNothing)
		}
		return l, err
	})
}

// Memory is what inquest memory shows of the case's files, as much as a page can be zoomed
// into, with the replays that it makes unasked. ErrNothing is that no memory snapshot is among
// them.
func (d *Desk) Memory(ctx context.Context, id string) (*incident.Memory, error) {
	return read(ctx, d, id, func(ctx context.Context, o engine.Options) (*incident.Memory, error) {
		if err := d.turn(ctx); err != nil {
			return nil, err
		}
		defer func() { <-d.heavy }()
		o.All = true
		m, err := engine.Memory(ctx, o, engine.MemoryOptions{Top: 10, Buckets: pageBuckets, Largest: pageLargest, Blocks: pageBlocks})
		if err == nil && len(m.Snapshots) == 0 {
			err = fmt.Errorf("memory snapshots: %w", ErrNothing)
		}
		return m, err
	})
}

// Tracker is what inquest tracker show says of the case's files, with the points of a page.
// ErrNothing is that no run of an experiment tracker is among them.
func (d *Desk) Tracker(ctx context.Context, id string) (*incident.Tracker, error) {
	return read(ctx, d, id, func(ctx context.Context, o engine.Options) (*incident.Tracker, error) {
		if err := d.turn(ctx); err != nil {
			return nil, err
		}
		defer func() { <-d.heavy }()
		to := engine.TrackerOptions{Points: pagePoints}
		to.Now = d.o.Now()
		t, err := engine.Tracker(ctx, o, to)
		if err == nil && len(t.Runs) == 0 {
			err = fmt.Errorf("runs of an experiment tracker: %w", ErrNothing)
		}
		return t, err
	})
}

// turn waits until one more reading of snapshots or trackers may go on.
func (d *Desk) turn(ctx context.Context) error {
	select {
	case d.heavy <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// read calls fn with what the engine reads a case with. The context that fn gets ends with ctx
// and when the case is removed, which waits for fn to return; the error is ErrNoCase then.
func read[T any](ctx context.Context, d *Desk, id string, fn func(context.Context, engine.Options) (*T, error)) (*T, error) {
	d.mu.Lock()
	c, err := d.find(id)
	if err == nil {
		err = c.readable()
	}
	if err != nil {
		d.mu.Unlock()
		return nil, err
	}
	done := d.use(c)
	d.mu.Unlock()
	defer done()
	ctx, stop := both(ctx, c.kept)
	defer stop()
	out, err := fn(ctx, d.options(c))
	if err == nil {
		return out, nil
	}
	if c.kept.Err() != nil {
		return nil, ErrNoCase
	}
	return nil, d.told(err)
}

// unplaced is a text without the path of the desk's folder.
func (d *Desk) unplaced(s string) string {
	return strings.ReplaceAll(s, d.folder.dir+string(filepath.Separator), "")
}

// told is an error whose text names nothing of the desk's folder and holds nothing that does
// not print; what it wraps stays.
func (d *Desk) told(err error) error {
	was := err.Error()
	if text := visible(d.unplaced(was)); text != was {
		return &reworded{text, err}
	}
	return err
}

// A reworded error is another with a text of its own.
type reworded struct {
	text string
	err  error
}

func (r *reworded) Error() string { return r.text }
func (r *reworded) Unwrap() error { return r.err }
