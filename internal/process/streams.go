package process

import (
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

const (
	// chunk is how much is read from the command at once.
	chunk = 256 << 10
	// silence ends the reading of what outlived the command, and so does waiting survivors
	// long for it in all.
	silence   = time.Second
	survivors = 5 * time.Second
)

// streams are the command's three standard streams, and the copying of what it prints to the
// user and to the log. A stream that is a terminal for the user is the pseudo-terminal for the
// command; any other is a pipe, or what it was.
type streams struct {
	in, out, err *os.File // the command's ends
	terminal     *terminal
	close        []*os.File // what the command has now, and this process has no more use for
	pumps        []*pump
	running      sync.WaitGroup
	over         atomic.Bool // the command has ended
	notes        *notes
}

// openStreams makes them. One pipe stands for both outputs where both go to the same place:
// what is printed keeps its order.
func openStreams(o Options, log *logWriter, n *notes) (*streams, error) {
	s := &streams{in: o.In, notes: n}
	if s.in == nil {
		null, err := os.Open(os.DevNull)
		if err != nil {
			return nil, err
		}
		s.in, s.close = null, append(s.close, null)
	}
	outTerminal, errTerminal := isTerminal(o.Out), isTerminal(o.Err)
	if outTerminal || errTerminal {
		shown := o.Err
		if outTerminal {
			shown = o.Out
		}
		in := o.In
		if !outTerminal || !isTerminal(in) {
			in = nil
		}
		t, err := openTerminal(in, shown)
		if err != nil {
			n.add("no pseudo-terminal could be made, so that the command writes to pipes: " + err.Error())
			outTerminal, errTerminal = false, false
		} else {
			s.terminal = t
			s.close = append(s.close, t.inner)
			if t.typed {
				s.in = t.inner
			}
			s.pumps = append(s.pumps, &pump{s: s, from: t.master, to: shown, name: "the terminal", log: log, lasting: true})
		}
	}
	var err error
	pipe := func(read func(from *os.File)) (w *os.File) {
		if err != nil {
			return nil
		}
		var r *os.File
		if r, w, err = os.Pipe(); err != nil {
			return nil
		}
		s.close = append(s.close, w)
		read(r)
		return w
	}
	switch {
	case outTerminal:
		s.out = s.terminal.inner
	default:
		s.out = pipe(func(from *os.File) { s.output(from, o.Out, log) })
	}
	switch {
	case errTerminal:
		s.err = s.terminal.inner
	case !outTerminal && sameFile(o.Out, o.Err):
		s.err = s.out
	default:
		s.err = pipe(func(from *os.File) { s.errors(from, o.Err, log) })
	}
	if err != nil {
		s.abandon()
		return nil, err
	}
	return s, nil
}

// output copies what stands in a pipe for standard output to it.
func (s *streams) output(from, to *os.File, log *logWriter) {
	widen(from)
	s.pumps = append(s.pumps, &pump{s: s, from: from, to: to, name: "standard output", log: log})
}

// errors is output for standard error.
func (s *streams) errors(from, to *os.File, log *logWriter) {
	widen(from)
	s.pumps = append(s.pumps, &pump{s: s, from: from, to: to, name: "standard error", log: log, lasting: true})
}

// session reports whether the command has a session of its own, on the pseudo-terminal.
func (s *streams) session() bool { return s.terminal != nil && s.terminal.typed }

// sameFile reports whether two streams go to the same place, which none is too.
func sameFile(a, b *os.File) bool {
	if a == nil || b == nil {
		return a == b
	}
	x, err := a.Stat()
	if err != nil {
		return false
	}
	y, err := b.Stat()
	return err == nil && os.SameFile(x, y)
}

// follow begins the copying, once the command has its ends.
func (s *streams) follow(command int) {
	s.release()
	if s.terminal != nil {
		s.terminal.enter(command)
	}
	for _, p := range s.pumps {
		s.running.Go(p.run)
	}
}

// release closes the command's ends here.
func (s *streams) release() {
	for _, f := range s.close {
		f.Close()
	}
	s.close = nil
}

// restore gives the user's terminal back.
func (s *streams) restore() {
	if s != nil && s.terminal != nil {
		s.terminal.leave()
	}
}

// abandon closes everything: the command did not start.
func (s *streams) abandon() {
	s.release()
	for _, p := range s.pumps {
		p.from.Close()
	}
}

// finish reads what the command left, gives the terminal back and ends the copying. A process
// that outlived the command may hold its outputs open for ever: it is read while it prints
// something every second, for five seconds.
func (s *streams) finish() (midLine bool) {
	s.over.Store(true)
	bounded := true
	for _, p := range s.pumps {
		bounded = p.from.SetReadDeadline(time.Now().Add(silence)) == nil && bounded
	}
	read := make(chan struct{})
	go func() {
		s.running.Wait()
		close(read)
	}()
	if bounded {
		<-read
	} else {
		// On some systems nothing ends the reading of a pseudo-terminal.
		select {
		case <-read:
		case <-time.After(silence):
			s.notes.add("a process that the command started holds the terminal after its end; what it prints later is not kept")
		}
	}
	s.restore()
	for _, p := range s.pumps {
		midLine = midLine || p.midLine.Load()
		p.from.Close()
	}
	return midLine
}

// A pump copies one output of the command to the log and to the user.
type pump struct {
	s       *streams
	from    *os.File
	to      *os.File // nil shows nothing
	name    string
	log     *logWriter
	lasting bool        // the command goes on where the user's end is closed
	midLine atomic.Bool // of a terminal: the last line that it shows is not finished
}

// run copies until the command's end is closed by all who have it, or is silent after the
// command's end. Where nobody reads standard output any more the command learns it at its next
// write, as it would without this program.
func (p *pump) run() {
	buf := make([]byte, chunk)
	var lost int64
	var waited time.Duration // for survivors of the command
	var why error
	defer func() {
		if lost > 0 {
			p.s.notes.unshown(fmt.Sprintf("%d bytes of what was printed did not reach %s: %v", lost, p.name, why))
		}
	}()
	for {
		over := p.s.over.Load()
		if over {
			if waited > survivors {
				p.outlived()
				return
			}
			p.from.SetReadDeadline(time.Now().Add(silence))
		}
		begun := time.Now()
		n, err := p.from.Read(buf)
		if over {
			waited += time.Since(begun)
		}
		if n > 0 {
			p.log.write(buf[:n])
			if p.to != nil {
				m, werr := p.to.Write(buf[:n])
				if p.s.terminal != nil && p.from == p.s.terminal.master {
					p.midLine.Store(buf[n-1] != '\n')
				}
				if werr != nil {
					lost, why = lost+int64(n-m), werr
				}
				if broken(werr) {
					if !p.lasting {
						p.s.notes.add(p.name + " was closed by its reader")
						lost = 0
						p.from.Close()
						return
					}
					p.to = nil
				}
			}
		}
		switch {
		case err == nil:
		case errors.Is(err, os.ErrDeadlineExceeded) && p.s.over.Load():
			if !over {
				continue // it ended while this was waiting
			}
			p.outlived()
			return
		case errors.Is(err, io.EOF), errors.Is(err, syscall.EIO):
			// A pseudo-terminal whose other end is closed by all reads so.
			return
		default:
			p.s.notes.add("read what the command prints: " + err.Error())
			return
		}
	}
}

// outlived notes that somebody holds the output open.
func (p *pump) outlived() {
	p.s.notes.add("a process that the command started holds " + p.name + " open after its end; what it prints later is not kept")
}

// broken reports whether nobody will ever read what is written.
func broken(err error) bool { return errors.Is(err, syscall.EPIPE) }
