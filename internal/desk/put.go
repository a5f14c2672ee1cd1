package desk

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/inquest-dev/inquest/internal/evidence"
	"github.com/inquest-dev/inquest/internal/incident"
)

// newID is an id that cannot be guessed: 130 bits, in lower case because it names a folder.
func newID() string { return strings.ToLower(rand.Text()) }

// Begin opens a case in state receiving. The name is for people, and may be ""; it is cut
// to 200 bytes, and what does not print in it is dropped. ErrTooMany is that Limits.Open cases
// have not ended, and that for none of them nothing has come for an hour: that one is cancelled.
func (d *Desk) Begin(name string) (*incident.Case, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	c, err := d.open(name)
	if err != nil {
		return nil, err
	}
	c.dir = d.folder.path(c.id)
	return c.snapshot(), nil
}

// Put writes one file of a case while it comes, and returns the bytes that came. When r or
// ctx ends it early the file stays, as not whole; the error is r's or ctx's. It may be put again
// then, in place of what came of it. A file for which there is no room is not kept at all:
// ErrTooLarge, where a limit does not allow it, and ErrSpace, where the disk is full. The case
// goes on without it, and says so.
//
// The name is checked by CheckName, and ErrTwice is that it, or one that differs only in
// capitals, is there. ErrTooMany is that the case has Limits.Files, ErrState that it receives
// nothing any more.
func (d *Desk) Put(ctx context.Context, id, name string, r io.Reader) (int64, error) {
	return d.PutDated(ctx, id, name, time.Time{}, r)
}

// PutDated is Put of a file that was written last at a time, where that is known: which of
// several launches is the newest, and whether a run still goes on, can depend on it. A file that
// ends early has it as well.
func (d *Desk) PutDated(ctx context.Context, id, name string, written time.Time, r io.Reader) (int64, error) {
	if err := CheckName(name); err != nil {
		return 0, err
	}
	p := &putting{d: d, name: name, written: written}
	if err := p.begin(id); err != nil {
		return 0, fmt.Errorf("take %q: %w", name, err)
	}
	why := p.take(ctx, r)
	p.finish(why)
	if _, ours := errors.AsType[*refused](why); ours {
		return p.came, fmt.Errorf("take %q: %w", name, why)
	}
	return p.came, why
}

// A putting is one file that is coming.
type putting struct {
	d       *Desk
	c       *held
	name    string
	written time.Time
	again   bool  // part of it came before
	came    int64 // bytes, for all of which room was taken
	file    *os.File
}

// A refused file is one that the desk does not keep; the error says why.
type refused struct{ err error }

func (r *refused) Error() string { return r.err.Error() }
func (r *refused) Unwrap() error { return r.err }

// begin puts the file down among the case's.
func (p *putting) begin(id string) error {
	d := p.d
	d.mu.Lock()
	defer d.mu.Unlock()
	c, err := d.find(id)
	if err != nil {
		return err
	}
	if err := c.receives(); err != nil {
		return err
	}
	if i, ok := c.at[p.name]; ok && !c.files[i].Whole && !c.coming[p.name] {
		p.again = true
		d.free(c, c.files[i].Bytes)
		c.files[i].Bytes = 0
		c.limits = slices.DeleteFunc(c.limits, func(s string) bool { return s == cut(p.name) })
	} else {
		if there := c.clash(p.name); there != "" {
			return fmt.Errorf("%w: %q", ErrTwice, there)
		}
		if most := d.o.Limits.Files; len(c.files) >= most {
			if text := fmt.Sprintf("only the first %d files were taken", most); !slices.Contains(c.limits, text) {
				c.limit(text)
			}
			return fmt.Errorf("%w: a case has at most %d files; an archive of them is one file", ErrTooMany, most)
		}
		c.add(p.name)
	}
	c.coming[p.name] = true
	c.changed()
	p.c = c
	return nil
}

// receives reports whether files may come for the case. The mutex is held.
func (c *held) receives() error {
	switch {
	case c.gone:
		return ErrNoCase
	case c.state != incident.CaseReceiving:
		return fmt.Errorf("%w: the case is %s and takes no more files", ErrState, c.state)
	case c.dir == "":
		return fmt.Errorf("%w: the case is of paths of this machine", ErrState)
	}
	return nil
}

// free gives back room that files of the case had. The mutex is held.
func (d *Desk) free(c *held, n int64) {
	d.used -= n
	c.stored -= n
	c.bytes -= n
}

// block is how much is written at once. What comes in smaller parts is gathered.
const block = 256 << 10

var blocks = sync.Pool{New: func() any { return new([block]byte) }}

// maxEmpty bounds the reads in a row that give nothing and no error.
const maxEmpty = 100

// take writes what r gives until its end, and returns why that was early. Room is taken before
// anything is written.
func (p *putting) take(ctx context.Context, r io.Reader) error {
	if err := p.create(); err != nil {
		return p.refuse(err)
	}
	buf := blocks.Get().(*[block]byte)
	defer blocks.Put(buf)
	have, empty := 0, 0
	var end error
	for end == nil {
		if end = ctx.Err(); end == nil {
			var n int
			n, end = r.Read(buf[have:])
			if empty++; n > 0 {
				switch err := p.room(ctx, int64(n)); {
				case err == nil:
					have, empty = have+n, 0
				case ctx.Err() != nil && err == ctx.Err():
					end = err // what had room is written, these bytes are not
				default:
					return err
				}
			} else if empty > maxEmpty && end == nil {
				end = io.ErrNoProgress
			}
		}
		if have == len(buf) || end != nil {
			if _, err := p.file.Write(buf[:have]); err != nil {
				return p.refuse(err)
			}
			have = 0
		}
	}
	err := p.close()
	switch {
	case end != io.EOF:
		return end
	case err != nil:
		return p.refuse(err)
	}
	return nil
}

// close ends the writing, and gives the file its time.
func (p *putting) close() error {
	err := p.file.Close()
	p.file = nil
	if err == nil && !p.written.IsZero() {
		err = p.within(func(dir *os.Root) error { return dir.Chtimes(p.name, p.written, p.written) })
	}
	return err
}

// within calls fn with the case's folder, through which nothing can be reached that lies outside.
func (p *putting) within(fn func(*os.Root) error) error {
	root, err := os.OpenRoot(p.c.dir)
	if err != nil {
		return err
	}
	defer root.Close()
	return fn(root)
}

// create makes the file anew.
func (p *putting) create() error {
	if err := p.d.folder.make(p.c.dir); err != nil {
		return err
	}
	return p.within(func(root *os.Root) error {
		if p.again {
			if err := root.Remove(p.name); err != nil && !errors.Is(err, os.ErrNotExist) {
				return err
			}
		}
		const mode = os.O_WRONLY | os.O_CREATE | os.O_EXCL | noFollow
		var err error
		if p.file, err = root.OpenFile(p.name, mode, 0o600); errors.Is(err, os.ErrNotExist) { // the first of its folder
			if err = root.MkdirAll(path.Dir(p.name), 0o700); err == nil {
				p.file, err = root.OpenFile(p.name, mode, 0o600)
			}
		}
		return err
	})
}

// room takes room for n more bytes of the file: within the case's limit, and within that of all
// cases, for which the oldest of those that have ended give way. It waits for their files to go,
// but no longer than ctx; its error then is ctx's, and nothing was taken.
func (p *putting) room(ctx context.Context, n int64) error {
	d, c := p.d, p.c
	d.mu.Lock()
	defer d.mu.Unlock()
	for {
		if d.closed {
			return &refused{ErrClosed}
		}
		if err := c.receives(); err != nil {
			return &refused{err}
		}
		if most := d.o.Limits.CaseBytes; c.bytes+n > most {
			return &refused{fmt.Errorf("%w: the files of a case have at most %s together", ErrTooLarge, evidence.Bytes(most))}
		}
		if d.used+n <= d.o.Limits.AllBytes {
			break
		}
		old := d.giving()
		if old == nil {
			return &refused{fmt.Errorf("%w: all cases together have at most %s, and no case that has ended can give way; remove or cancel one", ErrTooLarge, evidence.Bytes(d.o.Limits.AllBytes))}
		}
		d.mu.Unlock()
		select {
		case <-old.clean:
		case <-ctx.Done():
		}
		d.mu.Lock()
		if err := ctx.Err(); err != nil {
			return err
		}
	}
	d.used += n
	c.stored += n
	c.bytes += n
	c.came = d.o.Now()
	c.files[c.at[p.name]].Bytes += n
	p.came += n
	c.changed()
	return nil
}

// giving is a case that gives way to another: one whose files go anyway, else the oldest that
// has ended, has files and is not being read. The mutex is held.
func (d *Desk) giving() *held {
	for c := range d.leaving {
		if c.stored > 0 {
			return c
		}
	}
	for _, c := range d.ended {
		if c.stored > 0 && c.reads == 0 && !c.drop {
			d.drop(c)
			return c
		}
	}
	return nil
}

// refuse states an error of the disk, without the path of the desk's folder. Where the case
// receives nothing any more that is the reason.
func (p *putting) refuse(err error) error {
	p.d.mu.Lock()
	over := p.c.receives()
	p.d.mu.Unlock()
	switch err = plain(err); {
	case over != nil:
		err = over
	case full(err):
		err = fmt.Errorf("%w (%w); make room there, or let the desk keep its files elsewhere", ErrSpace, err)
	case errors.Is(err, syscall.EFBIG): // of the file system, as FAT has one, or of the process
		err = fmt.Errorf("%w: %w where the desk keeps its files; let it keep them elsewhere", ErrTooLarge, err)
	case errors.Is(err, os.ErrExist):
		err = fmt.Errorf("%w: %w", ErrTwice, err)
	}
	return &refused{err}
}

// cut says of a file that it is not whole.
func cut(name string) string {
	return fmt.Sprintf("%q is not whole: it ended early while it was handed over", name)
}

// finish puts down what became of the file; why is nil where it is whole.
func (p *putting) finish(why error) {
	c := p.c
	_, lost := errors.AsType[*refused](why)
	if p.file != nil {
		p.file.Close() // what was written stands, or is removed
	}
	if lost {
		p.within(func(dir *os.Root) error { return dir.Remove(p.name) }) // else it goes with its case
	}
	if p.settle(why, lost) {
		p.d.folder.clear(c.dir) // what was made behind the removal goes as well
	}
}

// settle is finish for what is known of the case. It reports whether the case's files are to go.
func (p *putting) settle(why error, lost bool) bool {
	d, c := p.d, p.c
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(c.coming, p.name)
	if c.drop {
		return true
	}
	switch i := c.at[p.name]; {
	case lost:
		d.free(c, p.came)
		c.lose(i)
		c.limit(fmt.Sprintf("%q was not taken: %v", p.name, why))
	case why != nil:
		c.limit(cut(p.name))
	default:
		c.files[i].Whole = true
	}
	c.changed()
	return false
}
