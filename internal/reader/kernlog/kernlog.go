// Package kernlog reads kernel logs in the shapes in which people save them, and
// the log of NVIDIA's fabric manager:
//
//   - dmesg (util-linux 2.20 to 2.41): seconds since boot, -T, -H, -d, -x, -r,
//     --time-format iso, with or without colour and the caller field
//   - /dev/kmsg records "prio,seq,usec,flags;text" (Documentation/ABI/testing/dev-kmsg)
//   - syslog files (kern.log, messages; RFC 3164 and 5424), with seconds since boot
//     in the text or without
//   - journalctl: short in its variants, -o verbose, -o export, -o json, json-pretty,
//     json-sse, json-seq
//   - crash dumps of pstore ("Oops#1 Part1"), whose parts may stand newest first
//   - /var/log/fabricmanager.log
//
// The package does the framing: records, who wrote them and when, blocks of
// several lines (the OOM killer's, a crash dump's). What a message means is said by
// the wordings of the plan.
package kernlog

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"

	"github.com/inquest-dev/inquest/internal/evidence"
	"github.com/inquest-dev/inquest/internal/lazyre"
	"github.com/inquest-dev/inquest/internal/reader"
)

const (
	maxLine   = 64 << 10 // bytes of a line that are looked at
	maxQuote  = 1024     // bytes of a line kept as a quote
	maxHeld   = 4096     // events held back until the clocks may be tied
	maxField  = 1 << 20  // bytes of a binary journal field
	headLines = 200      // lines of the head that Sniff looks at
)

// New returns the reader. It uses the wordings of plan that the kernel, the
// machine's memory and its file systems word.
func New(plan evidence.Plan) reader.Reader { return &kernLog{newWords(plan)} }

type kernLog struct{ words *words }

func (*kernLog) Name() string { return "kernlog" }

var (
	// kernelName are names under which kernel logs are saved.
	kernelName = lazyre.New(`(?i)(?:^|[^a-z])(?:dmesg|kmsg|kern|kernel|syslog|messages|journal(?:ctl)?|pstore|xid|fabricmanager)(?:[^a-z]|$)`)
	// kernelWord stands in messages of the kernel and hardly elsewhere.
	kernelWord = lazyre.New(`NVRM: |nvidia-nvswitch|oom-kill|oom_reaper|\bCPU: \d+ PID: |Call Trace:|mlx5_core |pcieport |EXT4-fs|XFS \(|IPv6: |ACPI: |usb \d|systemd\[1\]:|Linux version |audit: |mce: |EDAC |nvme|segfault at |blocked for more than|Command line: |BIOS-`)
	// jobWord stands in logs of training jobs.
	jobWord = lazyre.New(`Traceback \(most recent call last\)|\bit/s\]|\bloss\b|torchrun|\[rank\d`)
)

// Sniff claims a text whose lines are framed as one of the shapes. The shapes that
// other programs share (a bare date in brackets, syslog) need a name or a word of
// the kernel beside.
func (*kernLog) Sniff(a evidence.Artifact, head []byte) reader.Confidence {
	if len(head) == 0 {
		return reader.No
	}
	text := strings.TrimPrefix(string(head), "\xef\xbb\xbf")
	if strings.HasPrefix(text, "__CURSOR=") {
		return reader.Sure
	}
	if strings.IndexByte(text, 0) >= 0 {
		return reader.No
	}
	named := kernelName.MatchString(path.Base(a.Path))
	if strings.HasPrefix(text, "{\n") && strings.Contains(text, "\"__REALTIME_TIMESTAMP\" : \"") {
		return reader.Sure
	}
	lines := strings.Split(text, "\n")
	if verboseHead.MatchString(lines[0]) || separator.MatchString(lines[0]) && len(lines) > 1 && verboseHead.MatchString(lines[1]) {
		return reader.Sure
	}
	if len(lines) > 1 {
		lines = lines[:len(lines)-1] // the last one may be cut
	}
	var f framer
	var ties clocks
	dated := false
	framed, own, all, kernel := 0, 0, 0, 0
	var texts []string // of the records
	for _, s := range lines[:min(len(lines), headLines)] {
		s = clean(s)
		if strings.TrimSpace(s) == "" {
			continue
		}
		r, what := f.frame(s)
		switch what {
		case isContinuation, isHeader:
			continue
		case isRecord:
			framed++
			if r.shape.kernelOnly() {
				own++
			}
			texts = append(texts, r.text)
			if r.kernel && r.shape == syslog {
				kernel++
			}
			dated = dated || r.shape != syslog
		default:
			if ties.header(s, &f) { // the date or uptime beside it
				continue
			}
		}
		all++
	}
	if framed == 0 || framed*10 < all*8 {
		return reader.No // most job logs, before their words are looked at
	}
	worded := slices.ContainsFunc(texts, kernelWord.MatchString)
	switch {
	case jobWord.MatchString(text) && !worded: // a program that counts its seconds
		return reader.No
	case own*10 >= framed*8:
		return reader.Sure
	case jobWord.MatchString(text):
		return reader.No
	case named || kernel*2 >= framed || worded && dated: // what a service wrote, with a kernel line in it, may be a job's
		return reader.Sure
	}
	return reader.No
}

// Read implements reader.Reader.
func (k *kernLog) Read(ctx context.Context, in reader.Input, s reader.Sink) error {
	rc, err := in.Open()
	if err != nil {
		return fmt.Errorf("open kernel log: %w", err)
	}
	defer rc.Close()
	p := newPass(k.words, in.Artifact, s)
	src := newSource(ctx, rc)
	err = p.run(src)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	p.finish(src)
	if !errors.Is(err, io.EOF) {
		return fmt.Errorf("read kernel log: %w", err)
	}
	return nil
}

// A pass is one reading of one artifact.
type pass struct {
	words    *words
	sink     reader.Sink
	artifact string
	owner    evidence.Owner
	frame    framer
	held     []held
	clocks   clocks
	oom      oomBlock
	entry    blockEntry
	order    int64  // of the last record in a crash dump, 0 outside
	host     string // that all records named, "" or several
	hosts    int
	tally    tally
	longLine bool
}

// held is an event that waits for the clocks to be tied.
type held struct {
	e    evidence.Event
	boot int // ordinal of the boot in the file
}

// tally accounts for every line of the artifact.
type tally struct {
	lines, blank, headers, continued, unframed int64
	records, told, detail                      int64 // records; those that gave an event; those that are part of one
}

func newPass(w *words, a evidence.Artifact, s reader.Sink) *pass {
	return &pass{words: w, sink: s, artifact: a.Path, owner: a.Owner}
}

// run reads src to its end, and returns io.EOF there.
func (p *pass) run(src *source) error {
	for first := true; ; first = false {
		l, err := src.line()
		if l.raw != "" || err == nil {
			if first && strings.HasPrefix(l.raw, "__CURSOR=") {
				return p.export(src, l)
			}
			p.line(l)
		}
		if err != nil {
			return err
		}
	}
}

// line takes one line of a text shape.
func (p *pass) line(l line) {
	p.tally.lines++
	if l.long && !p.longLine {
		p.longLine = true
		p.sink.Damage(p.span(l), fmt.Errorf("over limit: line longer than %d KiB", maxLine>>10))
	}
	text := clean(l.raw)
	if strings.TrimSpace(text) == "" {
		p.tally.blank++
		return
	}
	if p.block(l, text) {
		return
	}
	r, what := p.frame.frame(text)
	switch what {
	case isHeader:
		p.tally.headers++
		p.clocks.header(text, &p.frame)
	case isContinuation:
		if p.clocks.header(text, &p.frame) {
			p.tally.headers++
			return
		}
		p.tally.continued++
		p.continued(strings.TrimSpace(text))
	case isRecord:
		r.span = p.span(l)
		r.line = text
		p.record(r)
	default:
		if p.clocks.header(text, &p.frame) {
			p.tally.headers++
			return
		}
		p.tally.unframed++
	}
}

func (p *pass) span(l line) evidence.Span {
	q := l.raw[:min(len(l.raw), maxQuote)]
	return evidence.Span{Artifact: p.artifact, Kind: "text", Line: l.num, Column: l.column, Offset: l.off, Length: int64(len(q)), Quote: q}
}

// continued takes a line that goes on with the record before. Those of /dev/kmsg
// name the device.
func (p *pass) continued(text string) {
	if at, ok := strings.CutPrefix(text, "DEVICE=+pci:"); ok && len(p.held) > 0 {
		if e := &p.held[len(p.held)-1].e; e.Who.BusID == "" && e.Span.Line == p.frame.lastLine {
			e.Who.BusID = busID(at)
		}
	}
}

// record takes one record of any shape.
func (p *pass) record(r record) {
	p.tally.records++
	p.frame.lastLine = r.span.Line
	if r.host != "" && r.host != p.host {
		p.host = r.host
		p.hosts++
	}
	p.clocks.note(&r)
	if p.order = r.order; r.order != 0 {
		r.span.Index = r.order
	}
	events := p.words.match(&r)
	if events = p.oom.take(&r, events); len(events) > 0 {
		p.tally.told++
	} else if p.oom.inside || detail(&r) {
		p.tally.detail++
		p.process(&r)
	}
	for _, e := range events {
		p.hold(e, r.boot)
	}
}

// process gives the event before r the process that r, of the same crash or
// warning, names.
func (p *pass) process(r *record) {
	if len(p.held) == 0 || !strings.HasPrefix(r.text, "CPU: ") {
		return
	}
	m := processLine.FindStringSubmatch(r.text)
	if m == nil {
		return
	}
	e := &p.held[len(p.held)-1].e
	if d := r.span.Line - e.Span.Line; e.Who.PID == evidence.None && d > 0 && d <= processWithin && e.Kind == evidence.NodeFailure {
		e.Who.PID = number(m[1])
	}
}

// processWithin is how many lines behind a crash its process is named.
const processWithin = 20

var processLine = lazyre.New(`^CPU: \d+ (?:UID: \d+ )?PID: (\d+) Comm: `)

// detail reports whether a record only says more of one before: the registers of a
// switch's fault, what the NVIDIA driver prints around an Xid, the body of a crash or
// warning.
func detail(r *record) bool {
	t := r.text
	if t == "" {
		return false
	}
	switch t[0] {
	case ' ', '\t': // a stack or a dump of memory
		t = strings.TrimLeft(t, " \t")
		return strings.Contains(t, "+0x") || strings.HasPrefix(t, "<TASK>") || strings.HasPrefix(t, "</TASK>") || strings.HasPrefix(t, "RSP") || words16.MatchString(t)
	case 'N':
		return strings.HasPrefix(t, "NVRM: ") && driverLines.MatchString(t)
	case 'n':
		return strings.HasPrefix(t, "nvidia-nvswitch") && switchLines.MatchString(t)
	case 'R', 'C', 'D', 'E', 'F':
		if registers.MatchString(t) {
			return true
		}
	}
	for _, p := range crashLines {
		if strings.HasPrefix(t, p) {
			return true
		}
	}
	return false
}

// crashLines begin the lines of a crash or warning that are the same in all.
var crashLines = []string{"CPU: ", "Hardware name: ", "Call Trace:", "<TASK>", "</TASK>", "Code: ", "---[ end trace", "Modules linked in", "task: ", "Stack:", "PGD ", "Oops: ", "IP: ", "unwind stack type", "WARNING: kernel stack frame pointer"}

var (
	switchLines = lazyre.New(`^nvidia-nvswitch\d+: SXid \(PCI:[^)]*\): \d+, (?:Severity|Data) `)
	driverLines = lazyre.New(`^NVRM: (?:GPU (?:at PCI:|Board Serial|\w+:\w+:\w+\.\d: GPU serial)|GPU\d+ (?:GSP RPC buffer|RPC (?:event )?history)|\s+(?:entry +function|-?\d+ +\d+ +\w)|Rate limiting GSP RPC)`)
	registers   = lazyre.New(`^(?:RIP|R[A-Z0-9]{2}: |CR\d: |[CDEFS]S: )`)
	words16     = lazyre.New(`^[0-9a-f]{16}\b`)
)

// hold keeps an event until the end, so that a tie of the clocks found later counts
// for it too.
func (p *pass) hold(e evidence.Event, boot int) {
	if len(p.held) >= maxHeld {
		p.flush()
	}
	p.held = append(p.held, held{e, boot})
}

func (p *pass) flush() {
	for i := range p.held {
		e := p.held[i].e
		p.clocks.tie(&e.Stamp, p.held[i].boot)
		p.sink.Event(e)
	}
	p.held = p.held[:0]
}

// finish hands over what was held and says whose log it is.
func (p *pass) finish(src *source) {
	p.endEntry()
	if e, boot, ok := p.oom.end(); ok {
		p.hold(e, boot)
	}
	p.flush()
	if p.hosts == 1 {
		p.sink.Owner(evidence.Owner{Host: p.host, Rank: evidence.None, LocalRank: evidence.None, Basis: "its lines name the host"})
	}
	if src.cut {
		p.sink.Damage(evidence.Span{Artifact: p.artifact, Kind: "text", Line: src.num, Offset: src.off}, errCut)
	}
	t, ok := p.sink.(reader.Tallier)
	if !ok {
		return
	}
	for _, n := range []struct {
		what string
		n    int64
	}{
		{"lines", p.tally.lines}, {"blank", p.tally.blank}, {"headers", p.tally.headers}, {"continued", p.tally.continued}, {"unframed", p.tally.unframed},
		{"records", p.tally.records}, {"records with an event", p.tally.told}, {"records that say more of one", p.tally.detail},
		{"records of no known meaning", p.tally.records - p.tally.told - p.tally.detail},
	} {
		t.Tally(n.what, n.n)
	}
}

var errCut = errors.New("last line has no end: the text may be cut off here")
