package ranklog

import (
	"bytes"
	"cmp"
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/inquest-dev/inquest/internal/evidence"
	"github.com/inquest-dev/inquest/internal/format/memtext"
	"github.com/inquest-dev/inquest/internal/format/textline"
)

// Bounds of what a process prints of its allocator.
const (
	maxTableLines = 400 // of the log, from the first line of a table to its last
	maxTablePass  = 40  // lines of its writer that stand among a table's own
	maxMemWriters = 256 // whose tables or dumps are open at once
	dumpGap       = 60  // lines between two entries of a dump where writers can't be told apart
	dumpGapOwn    = 1000
)

var errMixedTables = errors.New("allocator figures of several writers stand line by line in each other: none of them was taken")

// A memText is a memory_summary table or memory_stats dump of one writer being read.
type memText struct {
	key   key
	event *evidence.Event // at the line that proves most
	at    int64           // first line
	last  int64           // last line that was its own

	table  *memtext.Table
	passed int

	dump    *memtext.Dump
	scanner memtext.Scanner
	before  int  // entries of the dump right before this one, 0 without
	mixed   bool // with another writer's
}

// memory takes what m holds of the allocator's figures.
func (s *session) memory(m *message) {
	table, stats := false, false
	for _, h := range m.hits {
		switch s.want.what[h.Atom] {
		case aMemTable:
			table = true
		case aMemStats:
			stats = true
		}
	}
	if !table && !stats && len(s.tables) == 0 && len(s.dumps) == 0 {
		return
	}
	for _, text := range tableLines(m.text) {
		s.tableLine(m, text, table)
	}
	s.statsLine(m, stats)
}

// tableLines splits a table that was printed in quotes, on one line.
func tableLines(text string) []string {
	if strings.Contains(text, `|\n|`) {
		return strings.Split(text, `\n`)
	}
	if strings.Contains(text, "=||") {
		return strings.Split(strings.ReplaceAll(text, "||", "|\n|"), "\n")
	}
	return []string{text}
}

// tableOf finds the table that m goes on: that of its writer or, for a line without
// any prefix, the one that the line before was of. Loggers name the writer once.
func (s *session) tableOf(m *message) *memText {
	if t := s.tables[m.key]; t != nil || m.key != noKey {
		return t
	}
	for _, t := range s.tables {
		if t.last == m.span.Line-1 {
			return t
		}
	}
	return nil
}

func (s *session) tableLine(m *message, text string, announced bool) {
	t := s.tableOf(m)
	opens := announced && memtext.Opens(text)
	if t == nil {
		if !opens || len(s.tables) >= maxMemWriters {
			return
		}
		t = s.openTable(m)
	}
	got := t.table.Line(text)
	if got == memtext.Next {
		mixed := !t.table.Continues() && t.key == m.key
		s.closeTable(t)
		t = s.openTable(m)
		t.table.Mixed = mixed
		got = t.table.Line(text)
	}
	switch got {
	case memtext.Figure:
		if e := t.event; len(t.table.Bytes) == 2 || t.table.Retries > 0 && len(t.table.Bytes) == 0 {
			e.Span, e.Text = m.span, textline.Cut(strings.TrimSpace(m.text), maxText)
		}
	case memtext.Passed:
		t.passed++
	}
	if got != memtext.Passed {
		t.last = m.span.Line
	}
	if t.table.Ended || t.passed > maxTablePass || m.span.Line-t.at > maxTableLines {
		s.closeTable(t)
	}
}

func (s *session) openTable(m *message) *memText {
	t := &memText{key: m.key, event: s.event(evidence.MemSummary, m), at: m.span.Line, last: m.span.Line, table: memtext.NewTable()}
	s.tables[m.key] = t
	return t
}

func (s *session) closeTable(t *memText) {
	delete(s.tables, t.key)
	s.figures(t, "summary", &t.table.Stats, t.table.Mixed)
}

// statsLine takes the entries of a memory_stats dump in m.
func (s *session) statsLine(m *message, announced bool) {
	d := s.dumps[m.key]
	if d == nil && m.key == noKey {
		for _, o := range s.dumps {
			if o.scanner.Open() && o.last == m.span.Line-1 {
				d = o
			}
		}
	}
	goesOn := d != nil && d.scanner.Open() && d.last == m.span.Line-1
	if !announced && !goesOn {
		return
	}
	gap := int64(dumpGapOwn)
	if m.key == noKey {
		gap = dumpGap
	}
	if d != nil && m.span.Line-d.last > gap {
		s.closeDump(d)
		d = nil
	}
	if d == nil {
		if len(s.dumps) >= maxMemWriters {
			return
		}
		d = s.openDump(m)
	}
	if !goesOn {
		d.scanner = memtext.Scanner{}
	}
	wide := len(bytes.TrimRight(m.raw, "\r\n")) >= terminalWidth
	for _, e := range d.scanner.Line(m.text, wide) {
		switch d.dump.Add(e) {
		case memtext.Begins:
			next := s.openDump(m)
			next.scanner, next.before, next.mixed = d.scanner, d.dump.Len(), d.mixed
			s.closeDump(d)
			d = next
			s.dumps[d.key] = d
			d.dump.Add(e)
		case memtext.Strays:
			d.mixed = true
		}
		if e.Key == memtext.Allocated {
			d.event.Span, d.event.Text = m.span, textline.Cut(strings.TrimSpace(m.text), maxText)
		}
	}
	d.last = m.span.Line
	// Dumps of one writer are alike: one with more entries than the one right before
	// it has taken those of another writer.
	if d.before > 0 && d.dump.Len() > d.before {
		d.mixed = true
	}
}

func (s *session) openDump(m *message) *memText {
	d := &memText{key: m.key, event: s.event(evidence.MemSummary, m), at: m.span.Line, last: m.span.Line, dump: memtext.NewDump()}
	s.dumps[m.key] = d
	return d
}

func (s *session) closeDump(d *memText) {
	if s.dumps[d.key] == d {
		delete(s.dumps, d.key)
	}
	s.figures(d, "stats", &d.dump.Stats, d.mixed)
}

// figures hands over what t gave.
func (s *session) figures(t *memText, what string, got *memtext.Stats, mixed bool) {
	if !got.Any() {
		return
	}
	if mixed {
		s.sink.Damage(t.event.Span, errMixedTables)
		return
	}
	e := t.event
	e.Attrs = evidence.Attrs{"what": evidence.TextOf(what)}
	if got.Device >= 0 {
		e.Attrs["gpu"] = evidence.IntOf(int64(got.Device))
	}
	if got.Retries >= 0 {
		e.Attrs["retries"] = evidence.IntOf(got.Retries)
	}
	if got.OOMs >= 0 {
		e.Attrs["ooms"] = evidence.IntOf(got.OOMs)
	}
	for name, r := range got.Bytes {
		e.Attrs[name] = evidence.SizeOf(r.Lo, r.Hi)
	}
	s.emit(e)
}

// closeMemory ends what is open, in order.
func (s *session) closeMemory() {
	for _, group := range []map[key]*memText{s.tables, s.dumps} {
		for _, t := range slices.SortedFunc(maps.Values(group), func(a, b *memText) int { return cmp.Compare(a.at, b.at) }) {
			if t.table != nil {
				s.closeTable(t)
			} else {
				s.closeDump(t)
			}
		}
	}
}

// inMemory reports whether the next line may belong to a table or a dump that a
// terminal cut.
func (s *session) inMemory() bool {
	if len(s.tables) > 0 {
		return true
	}
	for _, d := range s.dumps {
		if d.scanner.Open() && d.last == s.line.Number {
			return true
		}
	}
	return false
}
