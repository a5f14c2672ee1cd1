package ranklog

import (
	"cmp"
	"slices"
	"strings"

	"github.com/inquest-dev/inquest/internal/evidence"
	"github.com/inquest-dev/inquest/internal/scan"
)

// maxPostponed bounds the writers whose newest line of a wording is kept.
const maxPostponed = 1024

// A quietKey is a wording and the prefix that names its writer.
type quietKey struct {
	w      *wording
	writer string
}

// A postponed is the newest line of a quietKey that was not read yet.
type postponed struct {
	text   []byte
	line   scan.Line
	hits   []scan.Hit
	step   int64
	number int // lines of this key so far
}

// postpone puts the line in hand off if it can only say once more what its writer
// has said many times in this launch: that the run goes on, or that the same
// assertion failed in one more thread. One wording is all that it may hold, and
// nothing in it names another writer. Only the newest such line is read, when the
// launch or the artifact ends; emit would keep no more. A log that saves
// a checkpoint every few lines otherwise costs as much as all of its steps
// together, and one of device assertions thirty times that.
func (s *session) postpone(l *scan.Line) bool {
	if len(s.whits) != 1 || len(s.mhits) > 0 || len(l.Text) > 4<<10 || !l.Ended {
		return false
	}
	of := s.want.of[s.whits[0].Atom]
	if len(of) != 1 || s.want.what[s.whits[0].Atom] != aWording {
		return false
	}
	w := of[0]
	if w.spec == nil || len(w.Facts) > 0 {
		return false
	}
	switch {
	case w.spec.Kind == evidence.PhaseMark && w.Join == 0:
	case w.spec.Role == evidence.RoleFault && s.matched[w] >= maxPerGroup && !w.namesWriter():
	default:
		return false
	}
	writer := rankPrefix(l.Text)
	p := s.quiet[quietKey{w, string(writer)}]
	if p == nil {
		if len(s.quiet) < maxPostponed {
			s.quiet[quietKey{w, string(writer)}] = &postponed{number: 1}
		}
		return false
	}
	if p.number++; p.number <= maxPerGroup {
		return false
	}
	p.text = append(p.text[:0], l.Text...)
	p.line, p.hits, p.step = *l, append(p.hits[:0], s.whits...), s.lastStep
	return true
}

// namesWriter reports whether groups of the expression say who wrote a line.
func (w *wording) namesWriter() bool {
	for _, name := range []string{"rank", "local_rank", "host", "pid", "gpu", "device", "bus_id"} {
		if strings.Contains(w.Regexp, "(?P<"+name+">") {
			return true
		}
	}
	return false
}

// resume reads the postponed lines, in order.
func (s *session) resume() {
	var all []*postponed
	for _, p := range s.quiet {
		if len(p.text) > 0 {
			all = append(all, p)
		}
	}
	clear(s.quiet)
	if len(all) == 0 {
		return
	}
	slices.SortFunc(all, func(a, b *postponed) int { return cmp.Compare(a.line.Offset, b.line.Offset) })
	// The line in hand may be half read.
	line, mhits, whits, parts, head, ok, step, steps := s.line, s.mhits, s.whits, s.parts, s.idHead, s.idOK, s.lastStep, s.steps
	s.parts, s.steps = nil, nil
	for _, p := range all {
		p.line.Text = p.text
		s.line, s.mhits, s.whits, s.lastStep, s.idOK = &p.line, nil, p.hits, p.step, false
		s.slow(&p.line)
	}
	s.line, s.mhits, s.whits, s.parts, s.idHead, s.idOK, s.lastStep, s.steps = line, mhits, whits, parts, head, ok, step, steps
}
