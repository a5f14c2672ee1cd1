package desk

import (
	"slices"
)

// A line is who waits for a diagnosis, first come first served, and how many are at it.
// A large case never takes the last place: with several workers one is left to small cases,
// and with a single one a small case is read beside a large one. So a small case waits for
// small ones only, and a large one for those before it.
type line struct {
	workers        int
	waiting        []*held
	running, heavy int // heavy of those that are running are large
}

// next takes the first case out of the line that may be read now; nil is none.
func (l *line) next() *held {
	for i, c := range l.waiting {
		if l.may(c.large) {
			l.waiting = slices.Delete(l.waiting, i, i+1)
			l.running++
			if c.large {
				l.heavy++
			}
			return c
		}
	}
	return nil
}

// may reports whether a case may be read beside those that are.
func (l *line) may(large bool) bool {
	switch {
	case large:
		return l.running < l.workers && l.heavy < max(l.workers-1, 1)
	case l.workers == 1:
		return l.running-l.heavy < 1
	}
	return l.running < l.workers
}

// done says that a case is read no more.
func (l *line) done(c *held) {
	l.running--
	if c.large {
		l.heavy--
	}
}

// leave takes a case out of the line, if it is there.
func (l *line) leave(c *held) {
	if i := slices.Index(l.waiting, c); i >= 0 {
		l.waiting = slices.Delete(l.waiting, i, i+1)
	}
}
