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

	"github.com/inquest-dev/inquest/internal/evidence"
	"github.com/inquest-dev/inquest/internal/incident"
)

// newID is an id that cannot be guessed: 130 bits, in lower case because it names a folder.
func newID() string { return strings.ToLower(rand.Text()) }

// Begin opens a case in state receiving. The name is for people, and may be ""; it is cut
// to 200 bytes, and what does not print in it is dropped. ErrTooMany is that Limits.Open cases
// have not ended.
func (d *Desk) Begin(name string) (*incident.Case, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	id := newID()
	c, err := d.openCase(id, name)
	if err != nil {
		return nil, err
	}
	c.dir = d.folder.path(id)
	return c.snapshot(), nil
}

// Put writes one file of a case while it comes, and returns the bytes that came. When r or
// ctx ends it early the file stays, as not whole; the error is r's or ctx's. It may be put again
// then, in place of what came of it. A file for which there is no room is not kept at all:
// ErrTooLarge, where a limit does not allow it, and ErrSpace, where the disk is full. The case
// goes on without it, and says so.
//
// The name is checked by CheckName, and ErrTwice is that it, or one that differs only in
// capitals, is there. ErrState is that the case receives nothing any more.
func (d *Desk) Put(ctx context.Context, id, name string, r io.Reader) (int64, error) {
	if err := CheckName(name); err != nil {
		return 0, err
	}
	p := &putting{d: d, name: name}
	if err := p.begin(id); err != nil {
		return 0, err
	}
	n, err := p.copy(ctx, r)
	return n, p.finish(err)
}

// A putting is one file that is coming.
type putting struct {
	d    *Desk
	c    *held
	name string
	n    int64    // bytes that came
	file *os.File // nil until something is to be written
}

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
		return fmt.Errorf("take %q: %w", p.name, err)
	}
	c.own()
	if i, ok := c.at[p.name]; ok && !c.files[i].Whole && !c.coming[p.name] {
		c.bytes -= c.files[i].Bytes
		c.files[i].Bytes = 0
		c.limits = slices.DeleteFunc(c.limits, func(s string) bool { return s == cut(p.name) })
	} else {
		if e := c.clash(p.name); e != "" {
			return fmt.Errorf("take %q: %w: %q", p.name, ErrTwice, e)
		}
		if len(c.files) >= d.o.Limits.Files {
			text := fmt.Sprintf("only the first %d files were taken", d.o.Limits.Files)
			if !slices.Contains(c.limits, text) {
				c.limit(text)
			}
			return fmt.Errorf("take %q: %w: a case has at most %d files; an archive of them counts as one", p.name, ErrTooMany, d.o.Limits.Files)
		}
		c.take(p.name)
		c.at[p.name] = len(c.files)
		c.sorted = c.sorted && (len(c.files) == 0 || c.files[len(c.files)-1].Name < p.name)
		c.files = append(c.files, incident.CaseFile{Name: p.name})
	}
	if c.coming == nil {
		c.coming = map[string]bool{}
	}
	c.coming[p.name] = true
	c.puts++
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

// block is how much is written at once. What comes in smaller parts is gathered.
const block = 256 << 10

var blocks = sync.Pool{New: func() any { b := make([]byte, block); return &b }}

// copy writes what r gives until its end. Room is taken before anything is written.
func (p *putting) copy(ctx context.Context, r io.Reader) (int64, error) {
	if err := p.create(); err != nil {
		return 0, err
	}
	pooled := blocks.Get().(*[]byte)
	defer blocks.Put(pooled)
	buf, have := *pooled, 0
	for empty := 0; ; {
		if err := ctx.Err(); err != nil {
			return p.n, errors.Join(err, p.write(buf[:have]))
		}
		n, err := r.Read(buf[have:])
		if n > 0 {
			if err := p.room(int64(n)); err != nil {
				return p.n, err
			}
			p.n, have, empty = p.n+int64(n), have+n, 0
		} else if empty++; empty > 100 && err == nil {
			err = io.ErrNoProgress
		}
		if have == len(buf) || err != nil {
			if wrote := p.write(buf[:have]); wrote != nil {
				return p.n, wrote
			}
			have = 0
		}
		switch {
		case err == io.EOF:
			return p.n, p.close()
		case err != nil:
			return p.n, err
		}
	}
}

// create makes the file. The case's folder is its own and holds nothing but what was put
// there; a root keeps even a wrong name inside.
func (p *putting) create() error {
	root, err := p.d.folder.open(p.c.dir)
	if err != nil {
		return p.failed(err)
	}
	defer root.Close()
	if dir := path.Dir(p.name); dir != "." {
		if err := root.MkdirAll(dir, 0o700); err != nil {
			return p.failed(err)
		}
	}
	if err := p.forget(root); err != nil {
		return p.failed(err)
	}
	p.file, err = root.OpenFile(p.name, os.O_WRONLY|os.O_CREATE|os.O_EXCL|noFollow, 0o600)
	if err != nil {
		return p.failed(err)
	}
	return nil
}

// forget removes what came of the file before.
func (p *putting) forget(root *os.Root) error {
	err := root.Remove(p.name)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return err
}

// room takes room for n more bytes of the file: within the case's limit, and within that of all
// cases, for which the oldest of those that have ended give way.
func (p *putting) room(n int64) error {
	d, c := p.d, p.c
	d.mu.Lock()
	defer d.mu.Unlock()
	for {
		if d.closed {
			return ErrClosed
		}
		if err := c.receives(); err != nil {
			return fmt.Errorf("take %q: %w", p.name, err)
		}
		if c.bytes+n > d.o.Limits.CaseBytes {
			return fmt.Errorf("take %q: %w: a case has at most %s", p.name, ErrTooLarge, evidence.Bytes(d.o.Limits.CaseBytes))
		}
		if d.used+n <= d.o.Limits.AllBytes {
			break
		}
		old := d.giving()
		if old == nil {
			return fmt.Errorf("take %q: %w: all cases together have at most %s, and those that are there have not ended; remove or cancel one", p.name, ErrTooLarge, evidence.Bytes(d.o.Limits.AllBytes))
		}
		d.drop(old)
		d.mu.Unlock()
		<-old.clean
		d.mu.Lock()
	}
	d.used += n
	c.stored += n
	c.bytes += n
	c.came = d.o.Now()
	c.own()
	c.files[c.at[p.name]].Bytes += n
	c.changed()
	return nil
}

// giving is the case that gives way to another: the oldest that has ended, has files and is not
// being read. The mutex is held.
func (d *Desk) giving() *held {
	for _, c := range d.ended {
		if c.stored > 0 && c.reads == 0 && !c.drop {
			return c
		}
	}
	return nil
}

// write writes a block.
func (p *putting) write(b []byte) error {
	if len(b) == 0 {
		return nil
	}
	if _, err := p.file.Write(b); err != nil {
		return p.failed(err)
	}
	return nil
}

func (p *putting) close() error {
	f := p.file
	p.file = nil
	if f == nil {
		return nil
	}
	if err := f.Close(); err != nil {
		return p.failed(err)
	}
	return nil
}

// A diskError says that the desk's own disk did not take what came.
type diskError struct{ err error }

func (e *diskError) Error() string { return e.err.Error() }
func (e *diskError) Unwrap() error { return e.err }

// failed states an error of the disk, without the path of the desk's folder.
func (p *putting) failed(err error) error {
	if pe := (*os.PathError)(nil); errors.As(err, &pe) {
		err = pe.Err
	}
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		err = fmt.Errorf("%w: %w; make room there, or let the desk keep its files elsewhere", ErrSpace, err)
	}
	if errors.Is(err, os.ErrExist) {
		err = fmt.Errorf("%w: %w", ErrTwice, err)
	}
	return &diskError{fmt.Errorf("keep %q: %w", p.name, err)}
}

// cut says of a file that it is not whole.
func cut(name string) string {
	return fmt.Sprintf("%q is not whole: it ended early while it was handed over", name)
}

// finish puts down what became of the file, and returns why it ended early.
func (p *putting) finish(err error) error {
	d, c := p.d, p.c
	var disk *diskError
	lost := errors.As(err, &disk) || errors.Is(err, ErrTooLarge)
	if closed := p.close(); err == nil && closed != nil {
		err, lost = closed, true
	}
	if lost {
		if root, opened := d.folder.open(c.dir); opened == nil {
			root.Remove(p.name)
			root.Close()
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(c.coming, p.name)
	c.puts--
	i := c.at[p.name]
	c.own()
	switch {
	case lost:
		d.used -= p.n
		c.stored -= p.n
		c.bytes -= p.n
		c.lose(i)
		if c.state == incident.CaseReceiving {
			c.limit(fmt.Sprintf("%q was not taken: %v", p.name, err))
		}
	case err != nil:
		if c.state == incident.CaseReceiving {
			c.limit(cut(p.name))
		}
	default:
		c.files[i].Whole = true
	}
	c.changed()
	d.sweep(c)
	d.quiet.Broadcast()
	return err
}

// lose takes a file out of the case's. The mutex is held, and the files are the case's own.
func (c *held) lose(i int) {
	name := c.files[i].Name
	delete(c.at, name)
	delete(c.taken, folded(name))
	c.files = slices.Delete(c.files, i, i+1)
	for ; i < len(c.files); i++ {
		c.at[c.files[i].Name] = i
	}
}
