package ranklog

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/inquest-dev/inquest/internal/evidence"
	"github.com/inquest-dev/inquest/internal/format/textline"
	"github.com/inquest-dev/inquest/internal/lazyre"
)

// event starts an event of kind at message m.
func (s *session) event(kind evidence.Kind, m *message) *evidence.Event {
	e := &evidence.Event{Kind: kind, Who: m.who, Stamp: m.stamp, Step: s.stepOf(m.who.Rank), Text: textline.Cut(strings.TrimSpace(m.text), maxText), Span: m.span}
	if e.Stamp.Known() {
		return e
	}
	if i := strings.Index(m.text, " AT 20"); i > 0 { // slurmstepd: error: *** JOB 7 ON n1 CANCELLED AT 2026-01-02T03:04:05 …
		if st, n := parseStamp(m.text[i+len(" AT "):]); n > 0 {
			e.Stamp = st
			return e
		}
	}
	// A line without a time right below a logged error belongs to it. Below any
	// other line it may have been written much later.
	if r := s.recent; r.announces(m) {
		e.Stamp = r.stamp
		e.Stamp.Error += time.Second
	}
	return e
}

// stepOf is the last step logged by rank, or by the artifact where the rank
// logs none.
func (s *session) stepOf(rank int) int64 {
	if st, ok := s.steps[rank]; ok && rank != evidence.None {
		return *st
	}
	return s.lastStep
}

type groupKey struct {
	kind evidence.Kind
	line string
	rank int
}

// A group counts the events of one kind, wording and rank.
type group struct {
	n    int
	last *evidence.Event // the newest one that was over the bound
}

// emit hands an event over, within bounds.
func (s *session) emit(e *evidence.Event) {
	if e.Kind == evidence.ResumeMark && s.stopped { // who was stopped loads nothing: the job was started again
		step := e.Step
		s.newLaunch()
		if v, ok := e.Attrs["step"]; !ok || v.I != step {
			e.Step = evidence.None
		}
	}
	s.complete(e)
	spec := evidence.SpecOf(e.Kind)
	if spec == nil {
		return
	}
	switch spec.Role {
	case evidence.RoleExit, evidence.RoleStop:
		s.ended = true
		s.stopped = s.stopped || spec.Role == evidence.RoleStop && (s.base.Rank == evidence.None || ofScheduler(e.Kind))
	case evidence.RoleEffect:
		s.stopped = s.stopped || e.Kind == evidence.Cancelled
	case evidence.RoleFault:
		if len(e.Stack) > 0 || e.Kind == evidence.DeviceOOM {
			s.ended = true
		}
	}
	if e.Kind == evidence.CommCreated {
		p := procKey{e.Who.Host, e.Who.PID}
		if !s.creators[p] && len(s.creators) >= maxCreators {
			return
		}
		s.creators[p] = true
	}
	if s.repeats(e, spec) {
		e.Quoted = true
	}
	k := groupKey{e.Kind, e.Line, e.Who.Rank}
	g := s.groups[k]
	if g == nil {
		if len(s.groups) >= maxWriters {
			s.flushGroups()
		}
		g = &group{}
		s.groups[k] = g
	}
	g.n++
	if g.n > maxPerGroup {
		g.last = e
		return
	}
	s.sink.Event(*e)
	if spec.Role == evidence.RoleContext && e.Kind == evidence.RankInfo {
		s.mapRank(e)
	}
}

// ofScheduler reports whether a stop is told by who ends the whole job. In one rank's own file
// the words of a process that was signalled cut nothing: the other ranks may not have logged theirs, and
// launches of different files are matched by their number.
func ofScheduler(k evidence.Kind) bool {
	return k == evidence.Preempted || k == evidence.TimeLimit || k == evidence.NodeFailure
}

// flushGroups hands over the newest event of each group that was over its bound.
func (s *session) flushGroups() {
	var over []*evidence.Event
	for _, g := range s.groups {
		if g.last != nil {
			over = append(over, g.last)
		}
	}
	slices.SortFunc(over, func(a, b *evidence.Event) int {
		return cmp.Or(cmp.Compare(a.Span.Offset, b.Span.Offset), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Kind, b.Kind))
	})
	for _, e := range over {
		s.sink.Event(*e)
	}
	clear(s.groups)
}

// A sighting is one statement of a meaning.
type sighting struct {
	who        evidence.Who
	line, step int64
	written    string
}

// maxSightings is how many statements of one meaning are remembered.
const maxSightings = 8

// repeats reports whether e was printed a moment ago already: by a logger before
// Python raised it, as what() of the C++ exception, or by a wrapper. Events at
// another step or another written time, and those of another writer, are new.
func (s *session) repeats(e *evidence.Event, spec *evidence.Spec) bool {
	switch spec.Role {
	case evidence.RoleFault, evidence.RoleEffect, evidence.RoleStop, evidence.RoleExit:
	default:
		return false
	}
	id := meaning(e, spec)
	before := s.seen[id]
	for _, b := range before {
		if e.Span.Line != b.line && e.Span.Line-b.line <= repeatLines && e.Step == b.step && agree(e.Who, b.who) &&
			(e.Stamp.Written == "" || b.written == "" || e.Stamp.Written == b.written) {
			return true
		}
	}
	if len(s.seen) > 4096 {
		clear(s.seen)
	}
	if len(before) >= maxSightings {
		before = before[1:]
	}
	s.seen[id] = append(before, sighting{e.Who, e.Span.Line, e.Step, e.Stamp.Written})
	return false
}

// agree reports whether a and b can be the same writer.
func agree(a, b evidence.Who) bool {
	num := func(x, y int) bool { return x == y || x == evidence.None || y == evidence.None }
	return a.Launch == b.Launch && num(a.Rank, b.Rank) && num(a.LocalRank, b.LocalRank) && num(a.PID, b.PID) && num(a.Device, b.Device) &&
		(a.Host == b.Host || a.Host == "" || b.Host == "")
}

// meaning identifies what an event says, apart from who says it and where: kind
// and attributes, numbers kept, and the text where attributes are few.
func meaning(e *evidence.Event, spec *evidence.Spec) string {
	var b strings.Builder
	b.WriteString(string(e.Kind))
	n := 0
	for _, a := range spec.Attrs {
		if v, ok := e.Attrs[a.Name]; ok {
			fmt.Fprint(&b, "|", a.Name, "=", v.S, v.I, v.F, v.Lo, v.Hi)
			n++
		}
	}
	if n < 3 {
		b.WriteString("|" + said.ReplaceAllString(e.Text, ""))
	}
	return b.String()
}

// said is what stands before a message when it is printed in another way.
var said = lazyre.New(`^(?:\s*what\(\):\s*|[\w.]+(?:Error|Exception): )+`)

// complete fills in what the artifact knows about who wrote e.
func (s *session) complete(e *evidence.Event) {
	e.Who.Launch = s.launch
	if e.Who.Rank == evidence.None {
		e.Who.Rank = s.rankOf(e.Who)
	}
}
