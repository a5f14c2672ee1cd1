package ranklog

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/inquest-dev/inquest/internal/evidence"
	"github.com/inquest-dev/inquest/internal/format/textline"
	"github.com/inquest-dev/inquest/internal/lazyre"
)

// A summary is torchrun's block of failed workers being read
// (torch/distributed/elastic/multiprocessing/errors/__init__.py):
// one entry of six fields for each, those under "Root Cause" being what
// this node's agent observed first, which proves nothing.
type summary struct {
	at      int64
	lines   int
	first   bool // below "Root Cause (first observed failure)"
	borders int
	event   *evidence.Event
	fields  int
	inTrace bool // inside the traceback field
}

const maxSummaryLines = 4000

var (
	summaryField = lazyre.New(`^\s+(time|host|rank|exitcode|error_file|traceback)\s*: ?(.*)$`)
	summaryTrace = lazyre.New(`^\s+traceback\s*: Traceback`)
	summaryRank  = lazyre.New(`^(-?\d+) \(local_rank: (-?\d+)\)`)
	summaryExit  = lazyre.New(`^(-?\d+) \(pid: (\d+)\)`)
	summaryItem  = lazyre.New(`^\s*\[\d+\]:\s*$`)
	summaryDeath = lazyre.New(`^Signal (\d+) \(`)
)

// inQuote reports whether m stands in the traceback field of a summary.
func (s *session) inQuote(m *message) bool {
	b := s.summary[m.key]
	return b != nil && b.inTrace
}

// startSummary begins at the launcher's exception or, where that is missing, at
// the second part of the block.
func (s *session) startSummary(m *message) {
	if s.summary[m.key] != nil || len(s.summary) > 1024 {
		return
	}
	s.summary[m.key] = &summary{at: m.span.Line, first: strings.Contains(m.text, "Root Cause")}
}

// feedSummary gives m to the summary of its writer.
func (s *session) feedSummary(m *message) {
	b := s.summary[m.key]
	if b == nil || b.at == m.span.Line {
		return
	}
	b.lines++
	text := m.text
	switch {
	case b.lines > maxSummaryLines || b.borders == 0 && b.event == nil && b.lines > 12 && !b.first:
		b.end(s)
	case strings.HasPrefix(text, "======"):
		if b.borders++; b.borders >= 2 || b.first && b.event != nil {
			b.end(s)
			delete(s.summary, m.key)
		}
		return
	case strings.HasPrefix(text, "------"):
		b.end(s)
		b.inTrace = false
		return
	case strings.HasPrefix(text, "Root Cause (first observed failure)"):
		b.end(s)
		b.first = true
		return
	case summaryItem.MatchString(text):
		b.end(s)
		return
	default:
		if f := summaryField.FindStringSubmatch(text); f != nil && (!b.inTrace || f[1] == "time") {
			b.field(s, m, f[1], f[2])
		}
		return
	}
	delete(s.summary, m.key)
}

// field reads one field of an entry.
func (b *summary) field(s *session, m *message, name, value string) {
	if b.event == nil || name == "time" && b.fields > 0 {
		b.end(s)
		b.event = s.event(evidence.LauncherSummary, m)
		b.event.Stamp = evidence.Stamp{}
		b.event.Attrs = evidence.Attrs{"first_observed": evidence.BoolOf(b.first)}
		b.inTrace = false
	}
	b.fields++
	e := b.event
	switch name {
	case "time":
		if st, n := parseStamp(strings.TrimSpace(value)); n > 0 {
			e.Stamp = st
		}
	case "host":
		if h := strings.TrimSpace(value); h != "" {
			e.Who.Host = textline.Cut(h, 253)
			e.Stamp.Host = e.Who.Host
		}
	case "rank":
		if f := summaryRank.FindStringSubmatch(value); f != nil {
			setInt(e.Attrs, "rank", f[1])
			setInt(e.Attrs, "local_rank", f[2])
			e.Who.Rank, _ = strconv.Atoi(f[1])
			e.Who.LocalRank, _ = strconv.Atoi(f[2])
		}
	case "exitcode":
		if f := summaryExit.FindStringSubmatch(value); f != nil {
			code, _ := strconv.Atoi(f[1])
			e.Attrs["code"] = evidence.IntOf(int64(code))
			if code < 0 {
				e.Attrs["signal"] = evidence.IntOf(int64(-code))
			}
			setInt(e.Attrs, "pid", f[2])
			e.Who.PID, _ = strconv.Atoi(f[2])
			e.Span, e.Text = m.span, strings.TrimSpace(m.text)
		}
	case "error_file":
		e.Attrs["has_error_file"] = evidence.BoolOf(!strings.HasPrefix(strings.TrimSpace(value), "<N/A>"))
	case "traceback":
		b.inTrace = true
		if f := summaryDeath.FindStringSubmatch(value); f != nil {
			setInt(e.Attrs, "signal", f[1])
		}
	}
}

// end emits the entry being read.
func (b *summary) end(s *session) {
	if e := b.event; e != nil && (e.Who.Rank != evidence.None || len(e.Attrs) > 1) {
		s.emit(e)
		if e.Who.PID != evidence.None && e.Who.Rank != evidence.None {
			s.pids[procKey{e.Who.Host, e.Who.PID}] = e.Who.Rank
		}
	}
	b.event, b.fields = nil, 0
}

// openSummaries lists the summaries being read, in order.
func (s *session) openSummaries() []*summary {
	return slices.SortedFunc(maps.Values(s.summary), func(a, b *summary) int { return cmp.Compare(a.at, b.at) })
}
