package ranklog

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/inquest-dev/inquest/internal/evidence"
	"github.com/inquest-dev/inquest/internal/format/textline"
	"github.com/inquest-dev/inquest/internal/reader"
)

const maxJoin = 6 // following lines that a message is joined with at most

// matchWords tries the wordings whose literals stand in m.
func (s *session) matchWords(m *message, words []*wording, tb *trace) {
	type found struct {
		w      *wording
		groups []string
	}
	var got []found
	for _, w := range words {
		if groups, ok := w.try(m); ok {
			got = append(got, found{w, groups})
		} else if w.Regexp != "" && w.Join > 0 && len(s.joins) < 64 {
			s.joins = append(s.joins, &join{m: m, left: min(w.Join, maxJoin), cands: []string{m.text}, w: w, tb: tb})
		}
	}
	for _, f := range got {
		if slices.ContainsFunc(got, func(o found) bool { return o.w != f.w && slices.Contains(o.w.Over, f.w.ID) }) {
			continue
		}
		s.word(m, f.w, f.groups, tb)
	}
}

// try matches w on the message: behind its prefixes, behind a progress bar that
// it is glued to, and with everything, which alone counts for raw wordings.
func (w *wording) try(m *message) ([]string, bool) {
	if w.Raw {
		return w.match(m.full)
	}
	if cut := afterBar(m.text); cut > 0 {
		if groups, ok := w.match(m.text[cut:]); ok {
			return groups, true
		}
	}
	if groups, ok := w.match(m.text); ok || len(m.text) == len(m.full) {
		return groups, ok
	}
	return w.match(m.full)
}

// word turns a matched wording into its event and facts.
func (s *session) word(m *message, w *wording, groups []string, tb *trace) {
	names := []string(nil)
	if w.re != nil {
		names = w.re.SubexpNames()
	}
	if w.spec != nil && w.spec.Kind == evidence.DeviceOOM && m.oom {
		return // the allocator's own message was read with all its figures
	}
	if w.spec != nil {
		s.matched[w]++
		e := s.event(w.spec.Kind, m)
		e.Line = w.ID
		if len(w.Attrs) > 0 || len(names) > 1 {
			e.Attrs = make(evidence.Attrs, len(w.Attrs)+len(names))
		}
		for k, v := range w.Attrs {
			e.Attrs[k] = v
		}
		for i, name := range names {
			if name != "" && i < len(groups) && groups[i] != "" {
				s.capture(e, w.spec, name, groups[i])
			}
		}
		for i := range w.Lookups {
			l := &w.Lookups[i]
			if g := slices.Index(names, l.Group); g > 0 && g < len(groups) && groups[g] != "" {
				if e.Attrs == nil {
					e.Attrs = evidence.Attrs{}
				}
				if v := l.Of(groups[g]); v != "" {
					e.Attrs[l.Attr] = evidence.TextOf(v)
				}
			}
		}
		s.send(e, m, tb, w.Exception)
	}
	for _, name := range sortedNames(w.Facts) {
		s.wordFact(m, w.Facts[name], name, names, groups)
	}
}

// capture stores one named group: an attribute, part of the identity, or both.
func (s *session) capture(e *evidence.Event, spec *evidence.Spec, name, text string) {
	if a := spec.Attr(name); a != nil {
		if v, ok := reader.ParseValue(text, a.Type); ok {
			e.Attrs[name] = v
		}
	}
	n, err := strconv.Atoi(strings.ReplaceAll(strings.TrimSpace(text), ",", ""))
	isInt := err == nil
	switch {
	case name == "host":
		e.Who.Host = textline.Cut(text, 253)
	case name == "epoch":
		if f, err := strconv.ParseFloat(text, 64); err == nil {
			e.Epoch = f
		}
	case name == "bus_id":
		e.Who.BusID = textline.Cut(text, 32)
	case !isInt:
	case name == "rank":
		if e.Who.Rank == evidence.None || e.Kind == evidence.RankInfo || e.Kind == evidence.LauncherSummary {
			e.Who.Rank = n
		}
	case name == "local_rank":
		if e.Kind != evidence.RankInfo && e.Kind != evidence.LauncherSummary && e.Who.LocalRank != n {
			e.Who.Rank = evidence.None // the launcher speaks of another process
		}
		e.Who.LocalRank = n
	case name == "pid":
		e.Who.PID = n
	case name == "gpu", name == "device":
		e.Who.Device = n
	case name == "step":
		e.Step = int64(n)
	}
}

// wordFact states one fact of a wording: its template filled from the groups. The
// same value again says nothing new in one launch.
func (s *session) wordFact(m *message, template, name string, names, groups []string) {
	text := template
	for i, g := range names {
		if g != "" && i < len(groups) {
			text = strings.ReplaceAll(text, "{"+g+"}", groups[i])
		}
	}
	t := evidence.Text
	if spec := evidence.FactOf(name); spec != nil {
		t = spec.Type
	} else if !strings.HasPrefix(name, "setting.") {
		return
	}
	v, ok := reader.ParseValue(text, t)
	if !ok {
		return
	}
	id := fmt.Sprint(name, "|", m.who.Rank, "|", text)
	if s.stated[id] || len(s.stated) >= maxStated {
		return
	}
	s.stated[id] = true
	s.fact(name, v, m)
}

// maxStated is how many different facts wordings may state in one launch.
const maxStated = 2000

// fact hands over a fact stated by m.
func (s *session) fact(name string, v evidence.Value, m *message) {
	f := evidence.Fact{Name: name, Value: v, Who: m.who, Span: m.span}
	f.Who.Launch = s.launch
	s.sink.Fact(f)
}

// send emits e, or leaves it to the traceback whose exception m is.
func (s *session) send(e *evidence.Event, m *message, tb *trace, exception bool) {
	if e.Kind == evidence.LaunchMark {
		s.launchMark(e, m)
		return
	}
	m.ranked = m.ranked || e.Kind == evidence.RankInfo
	e.Quoted = s.inQuote(m)
	if tb != nil && tb.claim(e, exception) {
		return
	}
	s.emit(e)
}

// A join is a message whose pattern needs following lines: a terminal cut it in
// the middle, or it goes on. Both ways of joining are tried, because terminals
// cut inside words and editors at blanks.
type join struct {
	m     *message
	w     *wording // nil for an allocator's message
	oom   *oomText
	tb    *trace
	left  int
	blank bool // the line before ends with a blank at the terminal's edge
	cands []string
}

// maxCands bounds the ways of joining that are kept.
const maxCands = 8

// extend adds a line to every candidate, both ways. A line as wide as a
// terminal was more likely cut inside a word, unless a blank is its last column.
func (j *join) extend(text string) {
	cut := len(j.m.raw) >= terminalWidth && !j.blank && !strings.Contains(j.m.text, asyncLead)
	var next []string
	for _, c := range j.cands {
		if len(c)+len(text) > 16<<10 {
			continue
		}
		with, without := c+" "+strings.TrimLeft(text, " "), c+text
		if cut {
			next = append(next, without, with)
		} else {
			next = append(next, with, without)
		}
	}
	if len(next) > maxCands {
		next = next[:maxCands]
	}
	j.cands = next
	j.left--
}

// feedJoins gives m to the joins of the same writer. It reports whether m held
// figures of an allocator's message.
func (s *session) feedJoins(m *message) (figures bool) {
	if len(s.joins) == 0 {
		return false
	}
	open := s.joins[:0]
	var done []*join
	for _, j := range s.joins {
		if j.m.key != m.key || m.span.Line == j.m.span.Line {
			open = append(open, j)
			continue
		}
		if strings.Contains(m.text, "Traceback (most recent") {
			done = append(done, j)
			continue
		}
		had := j.known()
		if m.span.Line == j.m.span.Line+1 {
			j.blank = endsBlank(j.m)
		}
		complete := j.step(s, m.text)
		j.blank = endsBlank(m)
		figures = figures || j.known() > had
		if complete {
			done = append(done, j)
		} else {
			open = append(open, j)
		}
	}
	s.joins = open
	for _, j := range done {
		j.end(s)
	}
	return figures
}

// endsBlank reports whether a line of a terminal's width has a blank as its last column,
// which its text has no more.
func endsBlank(m *message) bool {
	raw := bytes.TrimRight(m.raw, "\r\n")
	return len(raw) >= terminalWidth && raw[len(raw)-1] == ' '
}

// known is how many figures of an allocator's message were understood.
func (j *join) known() int {
	if j.oom == nil {
		return 0
	}
	return j.oom.fields
}

// step adds a line and reports whether j is complete or has run out of lines.
func (j *join) step(s *session, text string) bool {
	j.extend(text)
	if j.oom != nil {
		j.oom.best(j.cands)
		j.cands = j.oom.keep(j.cands)
		return j.oom.complete || j.left <= 0 || len(j.cands) == 0
	}
	for _, c := range j.cands {
		if groups, ok := j.w.match(c); ok {
			m := *j.m
			m.text = c
			s.word(&m, j.w, groups, j.tb)
			j.w = nil
			return true
		}
	}
	return j.left <= 0 || len(j.cands) == 0
}

// end settles a join that gets no more lines.
func (j *join) end(s *session) {
	if j.oom != nil {
		j.oom.settle(s)
	}
}
