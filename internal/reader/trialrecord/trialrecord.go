// Package trialrecord reads what inquest itself recorded of a command that it ran: record.jsonl in
// the folder of a trial, beside output.log, which the reader of logs reads.
//
//	STORE/trials/YYYY-MM/ID/record.jsonl
//
//	line = record in JSON, a tab, its CRC-32C (Castagnoli) in eight hexadecimal digits, a line end
//	record = {"seq":n,"at":"RFC 3339","kind":K,K:{…}}, seq counted from 0
//	K      begun        the command, its process and launch, when it began
//	       environment  host, limits, variables, packages, devices
//	       samples      memory of the process tree and the devices
//	       ended        exit, measures
//	       diagnosis, verdict   what was made of it: no evidence, and passed over
//
// A line is committed when it is complete: what stands behind the last complete line was being
// written when its writer ended. inquest.trial/v1; internal/store writes it, and
// internal/incident declares the records.
//
// The record says how the process ended, which its own log cannot, and under which limits it ran.
// It does not say why: a signal has a sender whom nothing here names, unless this program was it or
// the kernel counted a kill.
package trialrecord

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/inquest-dev/inquest/internal/evidence"
	"github.com/inquest-dev/inquest/internal/format/jsonline"
	"github.com/inquest-dev/inquest/internal/format/jsontree"
	"github.com/inquest-dev/inquest/internal/format/textline"
	"github.com/inquest-dev/inquest/internal/reader"
)

const (
	maxLine    = 8 << 20 // bytes of one record; a diagnosis takes some hundred kilobytes
	maxQuote   = 400     // bytes kept as a quote
	maxText    = 1024    // bytes of a text that is kept as a value
	maxWords   = 1024    // words of a command
	maxDamage  = 64      // damaged lines that are named one by one
	maxDevices = 64
	maxSize    = 1 << 60 // beyond this a number of bytes is none
)

var (
	errSum  = errors.New("a record whose checksum does not fit")
	errCut  = errors.New("the record ends within a line: it was being written when its writer ended")
	errLong = errors.New("over limit: a record longer than 8 MiB")
	errJSON = errors.New("a record that is not JSON")
	errMore = errors.New("over limit: more damaged records than are named")
)

// New returns the reader. log is the reader of logs, which says what the options of a command mean.
func New(log reader.Reader) reader.Reader { return trialRecord{log} }

type trialRecord struct{ log reader.Reader }

func (trialRecord) Name() string { return "trialrecord" }

// Sniff claims a file whose first line begins as the record of a trial does.
func (trialRecord) Sniff(a evidence.Artifact, head []byte) reader.Confidence {
	line, _, _ := bytes.Cut(head, []byte("\n"))
	if !bytes.HasPrefix(line, []byte(`{"seq":0,"at":"`)) {
		return reader.No
	}
	kind := []byte(`"kind":"begun"`)
	if !bytes.Contains(line[:min(len(line), 200)], kind) {
		return reader.No
	}
	if reader.BaseOf(a.Path) == "record.jsonl" || bytes.Contains(line, []byte(`"schema":"inquest.trial/`)) {
		return reader.Sure
	}
	return reader.No
}

// Read implements reader.Reader.
func (r trialRecord) Read(ctx context.Context, in reader.Input, s reader.Sink) error {
	rc, err := in.Open()
	if err != nil {
		return fmt.Errorf("open record of a trial: %w", err)
	}
	defer rc.Close()
	p := &pass{ctx: ctx, log: r.log, a: in.Artifact, s: s, who: evidence.Nobody()}
	return jsonline.Each(ctx, reader.Stopping(ctx, rc), maxLine, p.line)
}

// A pass is one reading.
type pass struct {
	ctx    context.Context
	log    reader.Reader
	a      evidence.Artifact
	s      reader.Sink
	who    evidence.Who
	began  time.Time
	memory int64 // bytes of the host, 0 unknown
	tree   int64 // most processes in a sample, 0 unknown
	bad    int

	data []byte // the record in hand: its JSON
	l    jsonline.Line
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// line takes one line of the file.
func (p *pass) line(l jsonline.Line) error {
	if l.Long {
		return p.damage(l, errLong)
	}
	if !l.Ended {
		return p.damage(l, errCut)
	}
	data, sum, ok := bytes.Cut(l.Text, []byte("\t"))
	want, err := strconv.ParseUint(string(sum), 16, 32)
	if !ok || err != nil || len(sum) != 8 || uint32(want) != crc32.Checksum(data, castagnoli) {
		return p.damage(l, errSum)
	}
	n, _, err := jsontree.Parse(data, 0, nil)
	if err != nil || n.Sort != jsontree.Object {
		return p.damage(l, errJSON)
	}
	p.data, p.l = data, l
	switch n.Str("kind") {
	case "begun":
		p.begun(n.Get("begun"))
	case "environment":
		p.environment(n.Get("environment"))
	case "samples":
		p.samples(n.List("samples"))
	case "ended":
		p.ended(n.Get("ended"))
	}
	return p.ctx.Err()
}

// damage names a line that cannot be used; what it says is lost and no more.
func (p *pass) damage(l jsonline.Line, err error) error {
	if p.bad++; p.bad <= maxDamage {
		p.s.Damage(evidence.Span{Artifact: p.a.Path, Kind: "text", Line: l.N, Offset: l.Offset}, err)
	} else if p.bad == maxDamage+1 {
		p.s.Damage(evidence.Span{Artifact: p.a.Path, Kind: "text", Line: l.N, Offset: l.Offset}, errMore)
	}
	return p.ctx.Err()
}

// span is the place of a value with its key, or of the part of it that is kept as a quote.
func (p *pass) span(n *jsontree.Node) evidence.Span {
	text := p.data[n.From:n.End]
	if len(text) > maxQuote {
		text = text[:maxQuote]
		for len(text) > 0 && !utf8.Valid(text) {
			text = text[:len(text)-1]
		}
	}
	return evidence.Span{Artifact: p.a.Path, Kind: "text", Line: p.l.N, Column: n.From + 1, Offset: p.l.Offset + int64(n.From), Length: int64(len(text)), Quote: string(text)}
}

// event is one with what all have. Its text is the quote.
func (p *pass) event(k evidence.Kind, n *jsontree.Node, at evidence.Stamp, attrs evidence.Attrs) evidence.Event {
	sp := p.span(n)
	return evidence.Event{Kind: k, Who: p.who, Stamp: at, Step: evidence.None, Attrs: attrs, Span: sp, Text: textline.OneLine(sp.Quote, maxText)}
}

func (p *pass) fact(name string, v evidence.Value, at *jsontree.Node) {
	p.s.Fact(evidence.Fact{Name: name, Value: v, Who: evidence.Nobody(), Span: p.span(at)})
}

// stamp reads the time that a value states.
func (p *pass) stamp(n *jsontree.Node) evidence.Stamp {
	text := n.Str()
	t, err := time.Parse(time.RFC3339Nano, text)
	if err != nil || len(text) > 40 || t.Year() < 1970 || t.Year() > 9999 {
		return evidence.Stamp{}
	}
	return evidence.Stamp{Time: t.UTC(), Written: text, Zone: "Z", Error: time.Millisecond, Clock: "wall", Host: p.who.Host}
}

// whole reads a whole number from 0 to most.
func whole(n *jsontree.Node, most int64) (int64, bool) {
	if n == nil || n.Sort != jsontree.Number {
		return 0, false
	}
	v, err := strconv.ParseInt(n.Text, 10, 64)
	return v, err == nil && v >= 0 && v <= most
}

// size reads a number of bytes above 0.
func size(n *jsontree.Node) (evidence.Value, bool) {
	v, ok := whole(n, maxSize)
	return evidence.SizeOf(v, v), ok && v > 0
}

// words reads a list of texts, as many as a command may have.
func words(n *jsontree.Node) []string {
	var out []string
	for _, x := range n.List() {
		if x.Sort != jsontree.String || len(out) == maxWords {
			break
		}
		out = append(out, x.Text)
	}
	return out
}

// commandLine writes words as a shell takes them, on one line.
func commandLine(words []string) string {
	var b strings.Builder
	for i, w := range words {
		if i > 0 {
			b.WriteByte(' ')
		}
		w = strings.Map(func(r rune) rune {
			if r < ' ' || r == 0x7f {
				return ' '
			}
			return r
		}, w)
		if w == "" || strings.ContainsAny(w, " \t\"'`$&|;<>()*?[]#~\\!{}") {
			w = "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
		}
		b.WriteString(w)
	}
	return textline.Cut(b.String(), 8<<10)
}
