package process

import (
	"errors"
	"fmt"
	"io"
	"sync"
	"time"
)

const (
	// logAhead is how much output waits for the log to take it.
	logAhead = 4 << 20
	// logPatience is how long the output waits, once, for a log that takes nothing.
	logPatience = 250 * time.Millisecond
	// logClosing is how long the end of a run waits for a log that takes nothing.
	logClosing = 5 * time.Second
)

// A logWriter is the log of a run. It writes behind the output, from one goroutine: a log that
// is slow holds the output up as long as it takes something every logPatience, and one that
// stands still, once for that time; from then on, and where writing fails, what it cannot take
// is left out, counted, and its place marked in the log. Its methods may be called concurrently.
type logWriter struct {
	w io.Writer // nil keeps nothing

	mu       sync.Mutex
	changed  sync.Cond
	waiting  []byte // not yet given to w
	spare    []byte
	writing  bool  // w is being written to
	given    int64 // bytes that were given to it and not left out
	taken    int64 // bytes that w took
	overflow int64 // bytes left out behind waiting, their place not yet marked
	refused  int64 // bytes that w did not take, their place not yet marked
	lost     int64 // bytes of output left out in all
	late     bool  // w stood still: nothing waits for it any more
	closed   bool
	err      error // the first
}

func newLog(w io.Writer) *logWriter {
	l := &logWriter{w: w}
	l.changed.L = &l.mu
	if w != nil {
		go l.drain()
	}
	return l
}

// write gives p to the log; p is the caller's again when it returns.
func (l *logWriter) write(p []byte) {
	if l.w == nil || len(p) == 0 {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	fits := func() bool { return len(l.waiting) == 0 || len(l.waiting)+len(p) <= logAhead }
	if !l.late && !l.wait(fits, logPatience) {
		l.late = true
	}
	if !fits() || l.closed {
		l.overflow += int64(len(p))
		l.lost += int64(len(p))
		return
	}
	if l.overflow > 0 {
		l.waiting = append(l.waiting, missing(l.overflow)...)
		l.overflow = 0
	}
	l.waiting = append(l.waiting, p...)
	l.given += int64(len(p))
	l.changed.Broadcast()
}

// position is where in the log the next output goes.
func (l *logWriter) position() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.given
}

// missing says in the log that n bytes are not there.
func missing(n int64) []byte {
	return fmt.Appendf(nil, "\n[inquest: %d bytes of output are missing here: the log could not be written]\n", n)
}

// say writes a line of this program's own.
func (l *logWriter) say(line string) { l.write([]byte(line + "\n")) }

// wait waits until ok holds, as long as w takes something every patience, and reports whether
// it holds.
func (l *logWriter) wait(ok func() bool, patience time.Duration) bool {
	for !ok() {
		before, over := l.taken, false
		t := time.AfterFunc(patience, func() {
			l.mu.Lock()
			defer l.mu.Unlock()
			over = true
			l.changed.Broadcast()
		})
		for !ok() && !over {
			l.changed.Wait()
		}
		t.Stop()
		if !ok() && l.taken == before {
			return false
		}
	}
	return true
}

// drain gives what waits to w until the log is closed.
func (l *logWriter) drain() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for {
		for len(l.waiting) == 0 && !l.closed {
			l.changed.Wait()
		}
		if len(l.waiting) == 0 {
			return
		}
		p := l.waiting
		l.waiting, l.spare = l.spare[:0], nil
		refused := l.refused
		l.writing = true
		l.mu.Unlock()
		var err error
		if refused > 0 {
			_, err = l.w.Write(missing(refused))
		}
		n := 0
		if err == nil {
			n, err = l.w.Write(p)
			refused = 0
		}
		l.mu.Lock()
		l.writing, l.spare = false, p[:0]
		l.taken += int64(n)
		l.lost += int64(len(p) - n)
		l.refused = refused + int64(len(p)-n)
		if l.err == nil {
			l.err = err
		}
		l.changed.Broadcast()
	}
}

// close waits for the log to take what there is, and returns how much it took in all and what
// was wrong.
func (l *logWriter) close() (int64, error) {
	if l.w == nil {
		return 0, nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	l.changed.Broadcast()
	idle := func() bool { return len(l.waiting) == 0 && !l.writing }
	switch all := l.wait(idle, logClosing); {
	case !all:
		return l.taken, errors.Join(l.err, fmt.Errorf("%d bytes are missing, and the rest was not taken within %s", l.lost, logClosing))
	case l.err != nil:
		return l.taken, fmt.Errorf("%d bytes are missing: %w", l.lost, l.err)
	case l.lost > 0:
		return l.taken, fmt.Errorf("%d bytes are missing: it was written too slowly", l.lost)
	}
	return l.taken, nil
}
