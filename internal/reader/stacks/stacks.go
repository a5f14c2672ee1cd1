// Package stacks reads where the threads of a process stood at a moment: py-spy
// dump (0.1 to 0.4, also with --native and --locals) and the thread lists of
// CPython's faulthandler (3.3 to 3.14), as files of their own and inside job logs.
//
//	Process 4711: python train.py --local-rank=3
//	Python v3.12.3 (/usr/bin/python3.12)
//
//	Thread 4711 (active): "MainThread"
//	    all_reduce (torch/distributed/distributed_c10d.py:2806)
//	    main (train.py:55)
//
//	Current thread 0x00007f6c3bfff640 (most recent call first):
//	  <no Python frame>
//	Thread 0x00007f6d1c0ee740 [python] (most recent call first):
//	  File "/opt/train/train.py", line 55 in main
//
// Both list the innermost frame first. py-spy names the thread that began the
// process MainThread; faulthandler lists it last.
package stacks

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/inquest-dev/inquest/internal/evidence"
	"github.com/inquest-dev/inquest/internal/format/textline"
	"github.com/inquest-dev/inquest/internal/reader"
)

const (
	maxQuote  = 1024 // bytes of a line kept as a quote
	mainDepth = 48   // innermost frames kept of a process's main thread
	sideDepth = 8    // and of another one

	maxThreads = 4096 // of one dump
	headFull   = 4000
)

var errLongLine = errors.New("over limit: line longer than 64 KiB")

// New returns the reader.
func New() reader.Reader { return stacks{} }

type stacks struct{}

func (stacks) Name() string { return "stacks" }

// Tabular marks the dumps as such that stand inside job logs too.
func (stacks) Tabular() {}

// Sniff claims a text that begins with a dump and holds little else. One that
// begins with a fatal error is the log of a process that crashed.
func (stacks) Sniff(_ evidence.Artifact, head []byte) reader.Confidence {
	if len(head) == 0 || bytes.IndexByte(head, 0) >= 0 || bytes.Contains(head, []byte("Fatal Python error")) {
		return reader.No
	}
	lines := strings.Split(strings.TrimPrefix(string(head), "\xef\xbb\xbf"), "\n")
	if len(head) >= headFull && len(lines) > 1 {
		lines = lines[:len(lines)-1] // the last one is cut
	}
	p := &parser{}
	known, all := 0, 0
	for i, s := range lines {
		if strings.TrimSpace(s) == "" {
			continue
		}
		all++
		if p.feed(textline.Line{Raw: s, Text: textline.Clean(s), Num: int64(i + 1)}) {
			known++
		}
		if p.threads == 0 && all > 8 {
			return reader.No
		}
	}
	if p.threads == 0 || known*10 < all*9 {
		return reader.No
	}
	return reader.Sure
}

// Read streams the text into s.
func (stacks) Read(ctx context.Context, in reader.Input, s reader.Sink) error {
	f, err := in.Open()
	if err != nil {
		return err
	}
	defer f.Close()
	p := &parser{s: s, artifact: in.Artifact.Path, pid: evidence.None, local: evidence.None}
	err = textline.Each(ctx, f, func(l textline.Line) { p.feed(l) }, func(l textline.Line) {
		s.Damage(p.span(l), fmt.Errorf("reading stacks: %w", errLongLine))
	})
	if err == nil {
		p.endDump()
	}
	return err
}

// A parser goes through the lines of dumps.
type parser struct {
	s        reader.Sink // nil in Sniff
	artifact string
	stamp    evidence.Stamp
	host     string
	pid      int // of the current process
	local    int // its local rank, where its command names one
	threads  int
	cur      *thread         // being read
	last     *thread         // of faulthandler, held back: the last one of a dump is the main thread
	seen     map[string]bool // threads of the current dump; one that comes again begins another
}

// A thread is the stack of one thread, innermost frame first.
type thread struct {
	at     textline.Line
	what   string // py-spy, faulthandler
	id     string
	name   string
	state  string
	main   bool
	frames []evidence.Frame
}

// feed takes one line and reports whether it belongs to a dump.
func (p *parser) feed(l textline.Line) bool {
	text := strings.TrimSpace(l.Text)
	if text == "" {
		return true
	}
	indented := l.Text[0] == ' ' || l.Text[0] == '\t'
	switch {
	case indented && p.cur != nil:
		return p.cur.frame(l.Text, text)
	case indented:
		return false
	}
	if m, _, ok := textline.Header(text); ok {
		p.endDump()
		p.stamp = evidence.Stamp{Time: m.Time, Written: m.Written, Zone: m.Zone, NoDate: m.NoDate, Error: m.Error, Clock: "wall", Host: m.Host}
		p.host = m.Host
		return true
	}
	if cmd, ok := textline.Command(text); ok {
		p.endDump()
		p.pid, p.local = evidence.None, evidence.None
		return strings.Contains(cmd, "py-spy")
	}
	if t := header(l, text); t != nil {
		p.begin(t)
		return true
	}
	return p.words(text)
}

// begin starts the stack of another thread.
func (p *parser) begin(t *thread) {
	p.endThread()
	if t.what == "py-spy" {
		p.flush(false)
	} else if p.seen[t.id] || len(p.seen) >= maxThreads {
		p.flush(true)
	}
	if p.seen == nil {
		p.seen = map[string]bool{}
	}
	if t.what != "py-spy" {
		p.seen[t.id] = true
	}
	p.cur = t
	p.threads++
}

// words takes the lines of a dump that are neither thread nor frame.
func (p *parser) words(text string) bool {
	if rest, ok := strings.CutPrefix(text, "Process "); ok {
		if id, cmd, ok := strings.Cut(rest, ": "); ok {
			if pid, err := strconv.ParseInt(id, 10, 32); err == nil && pid > 0 {
				p.endDump()
				p.pid, p.local = int(pid), localRank(cmd)
				return true
			}
		}
	}
	for _, w := range [...]string{"Python v", "Python runtime state:", "Timeout (", "Fatal Python error:", "Windows fatal exception:", "Extension modules:", "Current thread's C stack trace", "Parent Process:"} {
		if strings.HasPrefix(text, w) {
			if w == "Timeout (" || w == "Fatal Python error:" {
				p.endDump()
			} else {
				p.endThread()
			}
			return true
		}
	}
	p.endDump()
	return false
}

// localRank finds the local rank that old launchers hand over as an argument.
func localRank(cmd string) int {
	for _, flag := range [...]string{"--local_rank", "--local-rank"} {
		_, rest, ok := strings.Cut(cmd, flag)
		if !ok || rest == "" {
			continue
		}
		f := strings.Fields(strings.TrimPrefix(rest, "="))
		if len(f) == 0 {
			continue
		}
		if n, err := strconv.ParseInt(f[0], 10, 16); err == nil && n >= 0 {
			return int(n)
		}
	}
	return evidence.None
}

// header reads the line above a stack.
func header(l textline.Line, text string) *thread {
	if head, ok := strings.CutSuffix(text, " (most recent call first):"); ok {
		rest, current := strings.CutPrefix(head, "Current thread ")
		if !current {
			if rest, ok = strings.CutPrefix(head, "Thread "); !ok {
				return nil
			}
		}
		id, name, _ := strings.Cut(rest, " ")
		if !strings.HasPrefix(id, "0x") && !strings.HasPrefix(id, "[") {
			return nil
		}
		t := &thread{at: l, what: "faulthandler", id: id, name: strings.Trim(name, "[]")}
		if current {
			t.state = "current"
		}
		return t
	}
	rest, ok := strings.CutPrefix(text, "Thread ")
	if !ok {
		return nil
	}
	id, rest, ok := strings.Cut(rest, " (")
	state, name, closed := strings.Cut(rest, ")")
	if !ok || !closed || !isID(id) || !strings.HasPrefix(state, "active") && !strings.HasPrefix(state, "idle") {
		return nil
	}
	return &thread{at: l, what: "py-spy", id: id, state: state, name: strings.Trim(strings.TrimPrefix(name, ": "), `"`), main: name == `: "MainThread"`}
}

func isID(s string) bool {
	_, err := strconv.ParseUint(s, 0, 64)
	return err == nil
}

// frame reads one line of a stack; arguments and locals are passed over.
func (t *thread) frame(line, text string) bool {
	if t.what == "faulthandler" {
		rest, ok := strings.CutPrefix(text, `File "`)
		if !ok {
			return strings.HasPrefix(text, "<") || text == "..." || strings.HasPrefix(text, "Garbage-collecting") || strings.HasPrefix(text, "Binary file ")
		}
		file, rest, ok := strings.Cut(rest, `", line `)
		num, function, found := strings.Cut(rest, " in ")
		if !ok || !found {
			return false
		}
		t.push(file, num, function)
		return true
	}
	if len(line)-len(strings.TrimLeft(line, " \t")) > 4 {
		return true // arguments and locals
	}
	function, rest, ok := strings.Cut(text, " (")
	if !ok {
		t.push("", "", function)
		return true
	}
	file, num := strings.TrimSuffix(rest, ")"), ""
	if i := strings.LastIndexByte(file, ':'); i > 0 {
		file, num = file[:i], file[i+1:]
	}
	t.push(file, num, function)
	return true
}

func (t *thread) push(file, num, function string) {
	if len(t.frames) == mainDepth {
		return // what is left are the outermost
	}
	n, err := strconv.ParseInt(num, 10, 32)
	if err != nil || n < 0 {
		n = 0
	}
	t.frames = append(t.frames, evidence.Frame{File: clip(file, 400), Line: int(n), Function: clip(function, 200)})
}

// endThread files the current thread; faulthandler's last one is held back.
func (p *parser) endThread() {
	if p.cur == nil {
		return
	}
	if p.cur.what == "py-spy" {
		p.emit(p.cur)
	} else {
		p.flush(false)
		p.last = p.cur
	}
	p.cur = nil
}

// endDump files what is left of a dump.
func (p *parser) endDump() {
	p.endThread()
	p.flush(true)
}

// flush files the thread that was held back, as the main one at a dump's end.
func (p *parser) flush(end bool) {
	if p.last != nil {
		p.last.main = end
		p.emit(p.last)
	}
	p.last = nil
	if end {
		clear(p.seen)
	}
}

func (p *parser) emit(t *thread) {
	if p.s == nil {
		return
	}
	w := evidence.Nobody()
	w.Host, w.PID, w.LocalRank = p.host, p.pid, p.local
	if t.main && t.what == "py-spy" && w.PID == evidence.None {
		// On Linux the first thread has the number of its process.
		if n, err := strconv.ParseInt(t.id, 10, 32); err == nil && n > 0 {
			w.PID = int(n)
		}
	}
	a := evidence.Attrs{"what": evidence.TextOf(t.what), "main": evidence.BoolOf(t.main)}
	if t.name != "" {
		a["thread"] = evidence.TextOf(clip(t.name, 100))
	}
	if t.state != "" {
		a["state"] = evidence.TextOf(clip(t.state, 40))
	}
	frames := t.frames
	if !t.main {
		frames = frames[:min(len(frames), sideDepth)]
	}
	if len(frames) > 0 {
		a["top"] = evidence.TextOf(clip(frames[0].Function, 200))
	}
	frames = slices.Clone(frames)
	slices.Reverse(frames)
	p.s.Event(evidence.Event{Kind: evidence.ProcessStack, Who: w, Stamp: p.stamp, Step: evidence.None, Text: clip(strings.TrimSpace(t.at.Text), maxQuote), Attrs: a, Span: p.span(t.at), Stack: frames})
}

func (p *parser) span(l textline.Line) evidence.Span {
	q := l.Raw[:min(len(l.Raw), maxQuote)]
	return evidence.Span{Artifact: p.artifact, Kind: "text", Line: l.Num, Column: 1, Offset: l.Off, Length: int64(len(q)), Quote: q}
}

// clip bounds a text and keeps it valid.
func clip(s string, n int) string {
	s = strings.TrimSpace(s)
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[:n], "")
}
