package smi

import (
	"strings"

	"github.com/inquest-dev/inquest/internal/evidence"
	"github.com/inquest-dev/inquest/internal/format/amdsmi"
	"github.com/inquest-dev/inquest/internal/format/nvsmi"
	"github.com/inquest-dev/inquest/internal/format/textline"
	"github.com/inquest-dev/inquest/internal/reader"
)

// A table reads the lines below its header; line says what a line is to it,
// "foreign" that it ended before.
type table interface {
	line(l textline.Line) string
	end()
}

// A parser goes through the lines and knows what stands around a table.
type parser struct {
	s        reader.Sink
	artifact string
	embedded bool // in a job log, whose own reader knows the messages
	cur      table
	tables   int
	whole    bool // the table is of a sort that nobody prints into a log that goes on
	stamp    evidence.Stamp
	host     string
	command  string            // of the command line before, "" if none
	index    map[string]int    // of devices that a table named by UUID and index
	states   map[string]string // of devices in their last sample
}

const maxDevices = 4096

func newParser(s reader.Sink, a evidence.Artifact) *parser {
	return &parser{s: s, artifact: a.Path, embedded: a.Kind != "" && !evidence.Beside(a.Kind)}
}

// feed takes one line and says what it is: the class of a table's line, "date",
// "command", "comment", or "unknown".
func (p *parser) feed(l textline.Line) string {
	text := strings.TrimSpace(l.Text)
	if text == "" {
		if p.cur != nil {
			p.cur.line(l)
		}
		return "blank"
	}
	if cmd, ok := textline.Command(text); ok {
		p.close()
		p.command = cmd
		return "command"
	}
	if m, cmd, ok := textline.Header(text); ok {
		p.close()
		p.stamp = stampOf(m)
		if m.Host != "" {
			p.host = m.Host
		}
		if cmd != "" {
			p.command = cmd
		}
		return "date"
	}
	if p.cur != nil {
		if class := p.cur.line(l); class != "foreign" {
			return class
		}
		p.close()
	}
	if class := p.begin(l, text); class != "foreign" {
		return class
	}
	if text[0] == '#' {
		if m, ok := textline.TimeOfDay(text); ok {
			p.stamp = stampOf(m)
		}
		return "comment"
	}
	return "unknown"
}

// begin starts the table that l is the header of.
func (p *parser) begin(l textline.Line, text string) string {
	if t, class := nvsmi.Begin(l, p.command, (*nvidia)(p)); class != nvsmi.Foreign {
		if t != nil {
			p.cur = nvTable{t}
		}
		p.tables++
		p.whole = p.whole || strings.HasPrefix(text, "<") || strings.Contains(text, "=NVSMI LOG=")
		return class.String()
	}
	if t, class := amdsmi.Begin(l, (*amd)(p)); class != amdsmi.Foreign {
		p.cur = amdTable{t}
		p.tables++
		return class.String()
	}
	if t := environment(p, text); t != nil {
		p.cur = t
		p.tables++
		return t.line(l)
	}
	if strings.Trim(text, "+-=") == "" {
		return "rule" // above a table
	}
	for _, a := range announcements {
		if strings.HasPrefix(text, a) {
			return "note"
		}
	}
	return "foreign"
}

// announcements are lines that the tools print before a table.
var announcements = [...]string{"Successfully ran diagnostic for group.", "WARNING: AMD GPU device(s)", "WARNING: Unlocked monitor_devices lock"}

type nvTable struct{ nvsmi.Table }

func (t nvTable) line(l textline.Line) string { return t.Line(l).String() }
func (t nvTable) end()                        { t.End() }

type amdTable struct{ amdsmi.Table }

func (t amdTable) line(l textline.Line) string { return t.Line(l).String() }
func (t amdTable) end()                        { t.End() }

func (p *parser) close() {
	if p.cur != nil {
		p.cur.end()
		p.cur = nil
	}
}

func stampOf(m textline.Moment) evidence.Stamp {
	return evidence.Stamp{Time: m.Time, Written: m.Written, Zone: m.Zone, NoDate: m.NoDate, Error: m.Error, Clock: "wall", Host: m.Host}
}

// taken is the time of a row: its own, else that of the table.
func (p *parser) taken(written string) evidence.Stamp {
	if m, ok := textline.Date(written); ok {
		m.Host = p.host
		return stampOf(m)
	}
	return p.stamp
}

func (p *parser) span(l textline.Line) evidence.Span {
	q := l.Raw[:min(len(l.Raw), maxQuote)]
	return evidence.Span{Artifact: p.artifact, Kind: "text", Line: l.Num, Column: 1, Offset: l.Off, Length: int64(len(q)), Quote: q}
}

func (p *parser) event(kind evidence.Kind, l textline.Line, w evidence.Who, st evidence.Stamp, attrs evidence.Attrs) {
	w.Host = p.host
	p.s.Event(evidence.Event{Kind: kind, Who: w, Stamp: st, Step: evidence.None, Text: clip(strings.TrimSpace(l.Text), maxQuote), Attrs: attrs, Span: p.span(l)})
}

func (p *parser) fact(name, text string, l textline.Line) {
	w := evidence.Nobody()
	w.Host = p.host
	p.s.Fact(evidence.Fact{Name: name, Value: evidence.TextOf(clip(text, 200)), Who: w, Span: p.span(l)})
}

// clip bounds a text and keeps it valid.
func clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[:n], "")
}
