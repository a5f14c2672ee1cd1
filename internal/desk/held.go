package desk

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/inquest-dev/inquest/internal/incident"
)

// A held case is a case as the desk has it. Its fields belong to the desk's mutex, but for those
// that never change: id, seq, begun, dir, paths, contexts.
type held struct {
	id    string
	seq   int // order of beginning
	begun time.Time
	dir   string   // of its own, below the desk's; "" for paths of this machine
	paths []string // of this machine, absolute; nil for what was handed over

	name    string
	called  string // by its files, where it has no name; "" where that is to be found out anew
	state   string
	files   []incident.CaseFile
	sorted  bool               // files stand in the order of their names
	coming  map[string]bool    // files that are coming
	at      map[string]int     // place of a name in files
	taken   map[string]element // folded paths of files and folders
	came    time.Time          // when something came last
	bytes   int64              // received
	stored  int64              // on the disk, for which room is taken; not changed once it is swept
	done    int
	total   int
	title   string
	outcome string
	inc     string
	err     string
	limits  []string
	more    int // limits beyond maxLimits

	handling Handling
	large    bool
	result   *Result

	ctx    context.Context // ends with the case, and what works towards its end with it
	stop   context.CancelFunc
	kept   context.Context // ends when its files are to go, and what reads them with it
	unkeep context.CancelFunc
	reads  int  // a diagnosis, windows, snapshots
	drop   bool // its files are to go as soon as nobody uses them
	swept  bool // they go, or are gone
	gone   bool // the desk knows it no longer
	clean  chan struct{}
	end    chan struct{} // closed when it has ended
	change chan struct{} // closed at the next change; nil while nobody waits
}

// maxLimits bounds the limits of a case that are kept one by one.
const maxLimits = 100

// open makes a case, which counts as not ended. The mutex is held.
func (d *Desk) open(name string) (*held, error) {
	if d.closed {
		return nil, ErrClosed
	}
	if d.going >= d.o.Limits.Open && !d.abandon() {
		return nil, fmt.Errorf("%w: %d cases have not ended; wait for one, or cancel it", ErrTooMany, d.going)
	}
	now := d.o.Now()
	c := &held{id: newID(), seq: d.begun, begun: now, came: now, name: label(name), state: incident.CaseReceiving, at: map[string]int{}, coming: map[string]bool{}, taken: map[string]element{}, sorted: true,
		clean: make(chan struct{}), end: make(chan struct{})}
	c.kept, c.unkeep = context.WithCancel(context.Background())
	c.ctx, c.stop = context.WithCancel(c.kept)
	d.begun++
	d.going++
	d.cases[c.id] = c
	d.clear.Add(1)
	return c, nil
}

// abandoned is for how long nothing has come for a case that gives way to another.
const abandoned = time.Hour

// abandon cancels the case for which nothing has come for the longest time, where that is
// long, and reports whether there was one. The mutex is held.
func (d *Desk) abandon() bool {
	var oldest *held
	for _, c := range d.cases {
		if c.state == incident.CaseReceiving && len(c.coming) == 0 && (oldest == nil || c.came.Before(oldest.came)) {
			oldest = c
		}
	}
	if oldest == nil || d.o.Now().Sub(oldest.came) < abandoned {
		return false
	}
	oldest.limit("nothing came for it for an hour, and others were waiting")
	d.finish(oldest, incident.CaseCancelled)
	d.empty(oldest)
	return true
}

// find is the case of an id. The mutex is held.
func (d *Desk) find(id string) (*held, error) {
	if d.closed {
		return nil, ErrClosed
	}
	c := d.cases[id]
	if c == nil {
		return nil, ErrNoCase
	}
	return c, nil
}

// changed tells those who watch. The mutex is held.
func (c *held) changed() {
	if c.change != nil {
		close(c.change)
		c.change = nil
	}
}

// limit states what was not taken. The mutex is held.
func (c *held) limit(text string) {
	if len(c.limits) < maxLimits {
		c.limits = append(c.limits, text)
	} else {
		c.more++
	}
	c.changed()
}

// isEnded reports whether nothing more will happen to the case. The mutex is held.
func (c *held) isEnded() bool { return (&incident.Case{State: c.state}).Ended() }

// Listed is how many files Case gives at most; Files gives those behind them.
const Listed = 1000

// snapshot is the case as it is now, without its files. The mutex is held.
func (c *held) snapshot() *incident.Case {
	out := &incident.Case{Schema: incident.CaseSchema, ID: c.id, Name: c.label(), State: c.state, Begun: c.begun.UTC().Format(time.RFC3339),
		Files: []incident.CaseFile{}, FileCount: len(c.files), Bytes: c.bytes, Done: c.done, Total: c.total, Title: c.title, Outcome: c.outcome, Incident: c.inc,
		Error: c.err, Limits: append([]string{}, c.limits...)}
	if c.more > 0 {
		out.Limits = append(out.Limits, fmt.Sprintf("and %d more", c.more))
	}
	return out
}

// page is a copy of at most n files from the one at place from, in the order of their names. The
// mutex is held.
func (c *held) page(from, n int) []incident.CaseFile {
	if !c.sorted {
		slices.SortFunc(c.files, func(a, b incident.CaseFile) int { return strings.Compare(a.Name, b.Name) })
		for i := range c.files {
			c.at[c.files[i].Name] = i
		}
		c.sorted = true
	}
	from = min(max(from, 0), len(c.files))
	return append([]incident.CaseFile{}, c.files[from:min(from+max(n, 0), len(c.files))]...)
}

// label is what the case is called: its name, else by what was handed over. The mutex is held.
func (c *held) label() string {
	if c.name != "" {
		return c.name
	}
	if c.called == "" {
		c.called = called(c.files)
	}
	return c.called
}

// called is what a case of these files, in any order, is called.
func called(files []incident.CaseFile) string {
	if len(files) == 0 {
		return "case"
	}
	first := slices.MinFunc(files, func(a, b incident.CaseFile) int { return strings.Compare(a.Name, b.Name) }).Name
	if len(files) == 1 {
		return label(path.Base(first))
	}
	if top, _, ok := strings.Cut(first, "/"); ok && top != "" && !slices.ContainsFunc(files, func(f incident.CaseFile) bool { return !strings.HasPrefix(f.Name, top+"/") }) {
		return label(top)
	}
	return fmt.Sprintf("%s and %d more", label(path.Base(first)), len(files)-1)
}

// maxLabel bounds the name of a case, in bytes.
const maxLabel = 200

// label is a name that can be shown: one line, nothing in it that does not print.
func label(name string) string {
	name = strings.Join(strings.Fields(visible(name)), " ")
	if len(name) > maxLabel {
		name = strings.ToValidUTF8(name[:maxLabel], "") + "…"
	}
	return name
}

// visible drops what does not print.
func visible(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) && !unicode.IsSpace(r) || unicode.Is(unicode.Bidi_Control, r) {
			return -1
		}
		return r
	}, strings.ToValidUTF8(s, "\uFFFD"))
}

// finish ends a case. The mutex is held.
func (d *Desk) finish(c *held, state string) {
	c.state = state
	d.going--
	c.stop()
	close(c.end)
	c.changed()
	if c.gone {
		return
	}
	d.ended = append(d.ended, c)
	for len(d.ended) > d.o.Limits.Cases {
		d.drop(d.ended[0])
	}
}

// drop forgets a case, cancels it where it has not ended, and has its files removed as soon as
// nobody uses them. The mutex is held.
func (d *Desk) drop(c *held) {
	if c.gone {
		return
	}
	c.gone = true
	delete(d.cases, c.id)
	if i := slices.Index(d.ended, c); i >= 0 {
		d.ended = slices.Delete(d.ended, i, i+1)
	}
	if !c.isEnded() {
		d.line.leave(c)
		d.finish(c, incident.CaseCancelled)
	}
	d.empty(c)
}

// empty has the files of a case removed as soon as nobody uses them. The mutex is held.
func (d *Desk) empty(c *held) {
	if c.drop {
		return
	}
	c.drop = true
	d.leaving[c] = true
	c.unkeep()
	d.sweep(c)
}

// sweep removes the files of a case that is to be emptied and that nobody reads. The mutex is
// held; the removal goes on without it. What a stream that does not end keeps open goes with
// that.
func (d *Desk) sweep(c *held) {
	if !c.drop || c.swept || c.reads > 0 {
		return
	}
	c.swept = true
	go func() {
		defer d.clear.Done()
		d.folder.clear(c.dir)
		d.mu.Lock()
		defer d.mu.Unlock()
		d.used -= c.stored
		delete(d.leaving, c)
		close(c.clean)
	}()
}

// use marks the case as read until the function that it returns is called. The mutex is held.
func (d *Desk) use(c *held) (done func()) {
	c.reads++
	return func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		c.reads--
		d.sweep(c)
	}
}

// Case is a copy of the case as it is now, with its first Listed files.
func (d *Desk) Case(id string) (*incident.Case, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	c, err := d.find(id)
	if err != nil {
		return nil, err
	}
	out := c.snapshot()
	out.Files = c.page(0, Listed)
	return out, nil
}

// Files is a copy of at most n files of the case, in the order of their names, from the one at
// place from, and how many it has. A place changes when files of smaller names come.
func (d *Desk) Files(id string, from, n int) (files []incident.CaseFile, all int, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	c, err := d.find(id)
	if err != nil {
		return nil, 0, err
	}
	return c.page(from, n), len(c.files), nil
}

// Cases are all, the newest first, without their files.
func (d *Desk) Cases() []incident.Case {
	d.mu.Lock()
	defer d.mu.Unlock()
	all := make([]*held, 0, len(d.cases))
	for _, c := range d.cases {
		all = append(all, c)
	}
	slices.SortFunc(all, func(a, b *held) int { return b.seq - a.seq })
	out := make([]incident.Case, len(all))
	for i, c := range all {
		out[i] = *c.snapshot()
	}
	return out
}

// Cancel ends a case that has not ended; its files go, and it stays among the cases. One that
// has ended is ErrState.
func (d *Desk) Cancel(id string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	c, err := d.find(id)
	if err != nil {
		return err
	}
	if c.isEnded() {
		return fmt.Errorf("cancel: %w: the case is %s", ErrState, c.state)
	}
	d.line.leave(c)
	d.finish(c, incident.CaseCancelled)
	d.empty(c)
	return nil
}

// Remove forgets a case, whatever its state, waits until what reads its files has stopped, and
// returns when they are removed. A file that is still coming is not waited for: its Put ends
// when the stream gives something, or ends.
func (d *Desk) Remove(id string) error {
	d.mu.Lock()
	c, err := d.find(id)
	if err != nil {
		d.mu.Unlock()
		return err
	}
	d.drop(c)
	d.mu.Unlock()
	<-c.clean
	return nil
}
