// Package hosttext reads the small texts that a machine prints about itself and
// that people save beside a log: df, quota, ps and free. One file may hold
// several of them, one after the other, each perhaps behind the command that made
// it, or those of many hosts with the name of its host before each line (pdsh, clush).
package hosttext

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/inquest-dev/inquest/internal/evidence"
	"github.com/inquest-dev/inquest/internal/format/textline"
	"github.com/inquest-dev/inquest/internal/reader"
)

const (
	maxQuote = 1024 // bytes of a line kept as a quote
	headFull = 4000 // a head of this length means that more follows
)

var errLongLine = errors.New("over limit: line longer than 64 KiB")

// New returns the reader. It needs nothing of the plan: what kernel logs and
// job logs say in words is the business of their own reader.
func New(evidence.Plan) reader.Reader { return hostText{} }

type hostText struct{}

func (hostText) Name() string { return "hosttext" }

// Tabular marks the tables here as such that stand inside job logs too.
func (hostText) Tabular() {}

// Sniff claims a text whose first line of substance is the header of a known
// table and whose head holds little else, but for what other commands printed of
// the machine. Job logs often begin with such a table: a long file named like a
// log is left to the log reader.
func (hostText) Sniff(a evidence.Artifact, head []byte) reader.Confidence {
	if len(head) == 0 || strings.IndexByte(string(head), 0) >= 0 {
		return reader.No
	}
	text := strings.TrimPrefix(string(head), "\xef\xbb\xbf")
	full := len(head) >= headFull
	switch strings.ToLower(path.Ext(a.Path)) {
	case ".log", ".out", ".err":
		if full {
			return reader.No
		}
	}
	if strings.HasPrefix(text, "#!") {
		return reader.No
	}
	lines := strings.Split(text, "\n")
	if full {
		lines = lines[:len(lines)-1] // the last one is cut
	}
	p := newParser(discard{}, a.Path)
	taken, all := 0, 0
	for i, s := range lines {
		if strings.TrimSpace(s) == "" {
			continue
		}
		all++
		if p.feed(line{raw: s, text: textline.Clean(s), num: int64(i + 1)}) || textline.HostTool(p.command) {
			taken++
		}
		if p.tables == 0 && all > 8 {
			return reader.No
		}
	}
	if p.tables == 0 || taken*10 < all*9 {
		return reader.No
	}
	return reader.Sure
}

// Read streams the text into s.
func (hostText) Read(ctx context.Context, in reader.Input, s reader.Sink) error {
	f, err := in.Open()
	if err != nil {
		return err
	}
	defer f.Close()
	p := newParser(s, in.Artifact.Path)
	err = textline.Each(ctx, f, p.take, func(l textline.Line) {
		s.Damage(p.span(lineOf(l)), fmt.Errorf("reading host text: %w", errLongLine))
	})
	if err == nil {
		p.finish()
	}
	return err
}

// A line is one line: as it stands, without escapes, and where it stands.
type line struct {
	raw, text string
	num, off  int64
}

func lineOf(l textline.Line) line { return line{l.Raw, l.Text, l.Num, l.Off} }

// A table reads the lines below its header. row reports whether the line was
// part of it.
type table interface {
	row(p *parser, l line) bool
	end(p *parser)
}

// A parser goes through the lines and knows what stands around a table.
type parser struct {
	s        reader.Sink
	artifact string
	cur      table
	tables   int
	stamp    evidence.Stamp
	host     string
	command  string             // of the command line before, "" if none
	one      bool               // of one host before the lines, see hosts
	hosts    map[string]*parser // by the host that stands before each line (pdsh, clush); nil without
}

// maxHosts is how many hosts may speak in one file.
const maxHosts = 4096

// of finds the parser of the host before l and takes the host off. A table's header is what
// shows that there is one; lines of several hosts stand as they came.
func (p *parser) of(l line) (*parser, line, bool) {
	name, rest, ok := strings.Cut(l.text, ": ")
	if !ok || p.one || !hostName(name) {
		return nil, l, false
	}
	l.text = rest
	if q := p.hosts[name]; q != nil {
		return q, l, true
	}
	if !begins(p, strings.TrimSpace(rest)) || len(p.hosts) >= maxHosts {
		return nil, l, false
	}
	if p.hosts == nil {
		p.hosts = map[string]*parser{}
	}
	q := &parser{s: p.s, artifact: p.artifact, host: name, stamp: p.stamp, one: true}
	p.hosts[name] = q
	return q, l, true
}

// hostName reports whether s can be the name or address of a host.
func hostName(s string) bool {
	for i, c := range []byte(s) {
		switch {
		case c >= '0' && c <= '9', c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z':
		case i > 0 && (c == '-' || c == '_' || c == '.'):
		default:
			return false
		}
	}
	return len(s) > 1 && len(s) < 64
}

// take is feed for what comes from a file.
func (p *parser) take(l textline.Line) {
	if l.Raw != "" {
		p.feed(lineOf(l))
	}
}

func newParser(s reader.Sink, artifact string) *parser { return &parser{s: s, artifact: artifact} }

// feed takes one line that is not empty and reports whether it knew what to do
// with it.
func (p *parser) feed(l line) bool {
	if q, own, ok := p.of(l); ok {
		before := q.tables
		took := q.feed(own)
		p.tables += q.tables - before
		return took
	}
	text := strings.TrimSpace(l.text)
	if text == "" {
		return true
	}
	if cmd, ok := textline.Command(text); ok {
		p.close()
		p.command = cmd
		return true
	}
	if m, _, ok := textline.Header(text); ok {
		p.close()
		p.stamp = stamp(m)
		if m.Host != "" {
			p.host = m.Host
		}
		return true
	}
	if t := header(p, l); t != nil {
		p.close()
		p.cur = t
		p.tables++
		return true
	}
	if p.cur != nil && p.cur.row(p, l) {
		return true
	}
	if text[0] == '#' {
		p.close()
		if m, ok := textline.TimeOfDay(text); ok {
			p.stamp = stamp(m)
		}
		return true
	}
	return false
}

func (p *parser) close() {
	if p.cur != nil {
		p.cur.end(p)
		p.cur = nil
	}
}

func (p *parser) finish() {
	p.close()
	for _, name := range slices.Sorted(maps.Keys(p.hosts)) {
		p.hosts[name].close()
	}
}

var headers = [...]func(*parser, string) table{dfHeader, quotaHeader, psHeader, freeHeader}

// begins reports whether text is the header of a table.
func begins(p *parser, text string) bool {
	return slices.ContainsFunc(headers[:], func(f func(*parser, string) table) bool { return f(p, text) != nil })
}

// header returns the table that l begins, nil if it begins none.
func header(p *parser, l line) table {
	text := strings.TrimSpace(l.text)
	for _, f := range headers {
		if t := f(p, text); t != nil {
			if h, ok := t.(interface{ first(p *parser, l line) }); ok {
				h.first(p, l)
			}
			return t
		}
	}
	return nil
}

func (p *parser) who() evidence.Who {
	w := evidence.Nobody()
	w.Host = p.host
	return w
}

func (p *parser) span(l line) evidence.Span {
	q := l.raw[:min(len(l.raw), maxQuote)]
	return evidence.Span{Artifact: p.artifact, Kind: "text", Line: l.num, Column: 1, Offset: l.off, Length: int64(len(q)), Quote: q}
}

func (p *parser) event(kind evidence.Kind, l line, w evidence.Who, attrs evidence.Attrs) evidence.Event {
	return evidence.Event{Kind: kind, Who: w, Stamp: p.stamp, Step: evidence.None, Text: strings.TrimSpace(l.text[:min(len(l.text), maxQuote)]), Attrs: attrs, Span: p.span(l)}
}

// discard is the sink of Sniff.
type discard struct{}

func (discard) Event(evidence.Event)                         {}
func (discard) Series(k evidence.SeriesKey) *evidence.Series { return evidence.NewSeries(k) }
func (discard) Fact(evidence.Fact)                           {}
func (discard) Owner(evidence.Owner)                         {}
func (discard) Damage(evidence.Span, error)                  {}
