package desk

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/inquest-dev/inquest/internal/engine"
	"github.com/inquest-dev/inquest/internal/evidence"
	"github.com/inquest-dev/inquest/internal/incident"
)

// A Result is what a diagnosis gave.
type Result struct {
	Incident *incident.Incident
	Timeline *incident.Timeline
}

// A Handling is what is asked of the diagnosis of a case.
type Handling struct {
	Baseline    string // another case, of a run that worked; "" compares with none
	CompareHost string
	All         bool // read every text
}

const (
	maxEvents = 5000     // of a timeline
	smallCase = 32 << 20 // bytes handed over, up to which a case is small
	smallTree = 4096     // files, up to which it is
)

// Diagnose ends the receiving and puts the case in line. ErrState is that files of it are still
// coming, that there is nothing to diagnose, or that it was called before; ErrNoCase is the
// baseline's too.
func (d *Desk) Diagnose(id string, h Handling) error {
	d.mu.Lock()
	c, err := d.find(id)
	if err != nil {
		d.mu.Unlock()
		return err
	}
	paths := c.paths
	d.mu.Unlock()
	large := paths != nil && isLarge(paths) // what lies where it lies is not known yet

	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case d.closed:
		return ErrClosed
	case c.gone:
		return ErrNoCase
	case c.state != incident.CaseReceiving:
		return fmt.Errorf("diagnose: %w: the case is %s", ErrState, c.state)
	case len(c.coming) > 0:
		return fmt.Errorf("diagnose: %w: %d of its files are still coming", ErrState, len(c.coming))
	case len(c.files) == 0:
		return fmt.Errorf("diagnose: %w: the case has no file", ErrState)
	}
	if h.Baseline != "" {
		b, err := d.find(h.Baseline)
		if err != nil {
			return fmt.Errorf("compare with case %q: %w", shortened(h.Baseline), err)
		}
		if err := b.readable(); err != nil {
			return fmt.Errorf("compare with case %q: %w", b.id, err)
		}
	}
	c.handling = h
	c.large = large || paths == nil && (c.bytes > smallCase || len(c.files) > smallTree)
	c.state = incident.CaseWaiting
	d.line.waiting = append(d.line.waiting, c)
	c.changed()
	d.begin()
	return nil
}

// isLarge reports whether more lies at the paths than a small case has.
func isLarge(paths []string) bool {
	var bytes int64
	files := 0
	for _, p := range paths {
		names := []string{p}
		if _, err := os.Lstat(p); err != nil {
			names, _ = filepath.Glob(p)
		}
		for _, name := range names {
			err := filepath.WalkDir(name, func(_ string, e fs.DirEntry, err error) error {
				if err != nil || e.IsDir() {
					return nil
				}
				if info, err := e.Info(); err == nil && info.Mode().IsRegular() {
					bytes += info.Size()
				}
				if files++; files > smallTree || bytes > smallCase {
					return fs.SkipAll
				}
				return nil
			})
			if err != nil || files > smallTree || bytes > smallCase {
				return true
			}
		}
	}
	return false
}

// readable reports whether the case has all its files and they may be read. The mutex is held.
func (c *held) readable() error {
	switch {
	case c.state == incident.CaseReceiving && c.paths == nil:
		return fmt.Errorf("%w: its files are still coming", ErrState)
	case c.drop:
		return fmt.Errorf("%w: the case is %s and its files are removed", ErrState, c.state)
	}
	return nil
}

// begin starts the diagnosis of those whose turn it is. The mutex is held.
func (d *Desk) begin() {
	for c := d.line.next(); c != nil; c = d.line.next() {
		c.state = incident.CaseReading
		c.changed()
		done := d.use(c)
		go func() {
			defer done()
			r, err := d.diagnose(c)
			title := ""
			if err == nil {
				title = label(d.o.Title(r.Incident))
			}
			d.mu.Lock()
			defer d.mu.Unlock()
			d.line.done(c)
			d.conclude(c, r, title, err)
			d.begin()
		}()
	}
}

// conclude puts down what came of a diagnosis. The mutex is held.
func (d *Desk) conclude(c *held, r *Result, title string, err error) {
	switch {
	case c.isEnded(): // cancelled meanwhile
	case err != nil:
		c.err = d.told(err).Error()
		d.finish(c, incident.CaseFailed)
	default:
		c.result, c.title, c.outcome, c.inc = r, title, r.Incident.Outcome, r.Incident.ID
		d.finish(c, incident.CaseDone)
	}
}

// diagnose reads a case.
func (d *Desk) diagnose(c *held) (r *Result, err error) {
	defer func() {
		if x := recover(); x != nil { // the other cases go on
			r, err = nil, fmt.Errorf("inquest itself failed while it read the case: %v", x)
		}
	}()
	o := d.options(c)
	o.Limits = c.lacks()
	o.CompareHost, o.All = c.handling.CompareHost, c.handling.All
	o.Progress = func(done, total int) {
		d.mu.Lock()
		defer d.mu.Unlock()
		c.done, c.total = done, total
		c.changed()
	}
	if c.handling.Baseline != "" {
		return d.compare(c, o)
	}
	return study(c.ctx, o)
}

// compare is diagnose with a baseline, which is in use as long.
func (d *Desk) compare(c *held, o engine.Options) (*Result, error) {
	d.mu.Lock()
	b, err := d.find(c.handling.Baseline)
	if err == nil {
		err = b.readable()
	}
	if err != nil {
		d.mu.Unlock()
		return nil, fmt.Errorf("compare with case %s: %w", c.handling.Baseline, err)
	}
	done := d.use(b)
	d.mu.Unlock()
	defer done()
	ctx, stop := both(c.ctx, b.kept)
	defer stop()
	of := d.options(b)
	o.Baseline, o.Roots = of.Paths, append(o.Roots, of.Roots...)
	r, err := study(ctx, o)
	if err != nil && b.kept.Err() != nil && c.ctx.Err() == nil {
		return nil, fmt.Errorf("compare with case %s: it was removed meanwhile", b.id)
	}
	return r, err
}

func study(ctx context.Context, o engine.Options) (*Result, error) {
	inc, events, err := engine.DiagnoseTimeline(ctx, o, maxEvents)
	if err != nil {
		return nil, err
	}
	return &Result{inc, events}, nil
}

// both is a context that ends with either.
func both(a, b context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(a)
	stop := context.AfterFunc(b, cancel)
	return ctx, func() { stop(); cancel() }
}

// options are what the engine reads a case with.
func (d *Desk) options(c *held) engine.Options {
	d.mu.Lock()
	defer d.mu.Unlock()
	o := d.o.Engine
	o.Stdin, o.Progress, o.Baseline, o.Roots = nil, nil, nil, nil
	o.Paths = c.paths
	if c.dir != "" {
		o.Paths, o.Roots = c.tops(), []string{c.dir}
	}
	return o
}

// tops are the files and folders at the top of what was handed over: who hands over single
// files has named each.
func (c *held) tops() []string {
	var out []string
	for _, f := range c.files {
		top, _, _ := strings.Cut(f.Name, "/")
		out = append(out, filepath.Join(c.dir, top))
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// lacks states in the incident what of the case was not taken, or is not whole.
func (c *held) lacks() (out []incident.Statement) {
	for _, text := range c.limits { // nothing comes any more that could change them
		out = append(out, incident.Statement{Text: text + ".", Spans: []evidence.Span{}})
	}
	return out
}

// headline is the words of the first fault, where there is one.
func headline(inc *incident.Incident) string {
	if inc.FirstFault != nil {
		return label(inc.FirstFault.Text)
	}
	return "No failure was found"
}
