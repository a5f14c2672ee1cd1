package ranklog

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/inquest-dev/inquest/internal/evidence"
	"github.com/inquest-dev/inquest/internal/format/textline"
	"github.com/inquest-dev/inquest/internal/lazyre"
	"github.com/inquest-dev/inquest/internal/scan"
)

// Bounds of one traceback.
const (
	maxTraceLines = 400
	keepFirst     = 8  // frames kept from the outer end
	keepLast      = 56 // and from the inner end
	maxForeign    = 8  // lines of somebody else in between, where lines name no writer
	maxMessage    = 2 << 10
	terminalWidth = 78 // a line this wide may go on in the next one
)

// A traceStyle is one way of printing a stack.
type traceStyle uint8

const (
	stylePython  traceStyle = iota
	styleGroup              // ExceptionGroup: lines begin with "  | "
	styleRich               // box drawing of rich
	styleIPython            // "Cell In[3], line 9", "----> 9 code"
	styleFatal              // faulthandler, innermost first
)

type traceState uint8

const (
	inFrames  traceState = iota
	inMessage            // behind the exception line, the message may go on
	inGap                // blank line behind that: a chain may go on
	wantStart            // a chain sentence was read
)

// A traceRole is what a line is to the traceback that it belongs to.
type traceRole uint8

const (
	roleNone   traceRole = iota // not part of a traceback
	roleInside                  // part of it, nothing to look for
	roleCode                    // quoted source code: its text means nothing
	roleHeader                  // the exception line
	roleMore                    // the message goes on
)

// A trace is a Python traceback being read. Lines of other
// writers are told apart by their prefixes; without prefixes its grammar is
// followed and a few foreign lines are tolerated.
type trace struct {
	key    key
	style  traceStyle
	state  traceState
	start  *message // the line that opened it
	lines  int
	at     int64 // last line of it
	gap    int
	alien  int
	frames []evidence.Frame
	source bool
	last   string // previous line, to collapse lines that several ranks wrote in step
	wide   bool   // it may have been cut by a terminal

	stamp   evidence.Stamp // of the line that opened or announced it
	rank    int            // rank and host that this line names
	host    string
	local   int    // local rank that the wrapper names, None if unknown
	chain   string // how the block before this one was linked to it
	head    *message
	typ     string
	text    string
	claimed bool
	events  []*evidence.Event
}

// follow gives m to the traceback of its writer, opens one where it starts one,
// and says what m is to it.
func (s *session) follow(m *message) (*trace, traceRole) {
	t := s.traces[m.key]
	if t != nil {
		if style, ok := traceStart(m.text); ok {
			s.restart(t, m, style)
			return nil, roleInside
		}
		role := t.feed(s, m)
		if role != roleNone {
			return t, role
		}
		if s.traces[m.key] == t {
			return nil, roleNone // a foreign line in between
		}
	}
	if s.afterFile > 0 && s.afterFile == m.span.Line-1 && strings.HasPrefix(m.text, "   ") {
		s.forward.source(m)
		return nil, roleCode
	}
	if len(m.hits) == 0 {
		return nil, roleNone
	}
	switch style, ok := traceStart(m.text); {
	case ok:
		s.open(m, style)
		return nil, roleInside
	case strings.HasPrefix(m.text, "Fatal Python error: "):
		t := s.open(m, styleFatal)
		t.header(s, m)
		t.state = inFrames
		return t, roleMore
	case m.span.Line <= 3 && isFrame(m.text): // the start was rotated away
		s.open(m, stylePython).feed(s, m)
		return nil, roleCode
	case isFrame(m.text):
		s.afterFile = m.span.Line
		s.forward.add(m)
		return nil, roleCode
	case isCode(m.text):
		return nil, roleCode
	}
	return nil, roleNone
}

// traceStart recognises the first line of a traceback, in whatever style.
func traceStart(text string) (traceStyle, bool) {
	i := strings.Index(text, "Traceback (most recent call last)")
	switch {
	case i < 0:
		return 0, false
	case strings.Contains(text[:i], "Exception Group "):
		return styleGroup, true
	case strings.ContainsAny(text[:i], "╭─"):
		return styleRich, true
	case i > 0 && ipythonHead.MatchString(text):
		return styleIPython, true
	}
	return stylePython, true
}

var (
	richLine    = lazyre.New(`^│\s*(?:in )?(\S+?):(\d+)(?: in (\S+))?`)
	richIn      = lazyre.New(`^│\s*in (\S+?):(\d+)`)
	richSource  = lazyre.New(`^│\s*❱\s*\d+[\s│|]*(.*?)\s*│?$`)
	ipythonHead = lazyre.New(`^[A-Za-z_][\w.]* {2,}Traceback`)
	cellLine    = lazyre.New(`^(?:Cell |File )?(In ?\[\d+\]|<ipython-input-[^>]*>|[\w./~<>-]+\.py)(?::(\d+))?(?:, line (\d+))?(?:,? in (.*))?`)
	arrowLine   = lazyre.New(`^-+> *(\d+) ?(.*)$`)
	excLine     = lazyre.New(`^([A-Za-z_][\w]*(?:\.[\w<>]+)*(?:\([\w.]+\))?)(?:: ?(.*))?$`)
	caretLine   = lazyre.New(`^[\s~^]+$`)
	spawnLine   = lazyre.New(`^-- Process (\d+) terminated with the following error`)
	startsRun   = lazyre.New(`^Command .*(?:torchrun|torch\.distributed|accelerate|deepspeed|mpirun|srun|python)`)
	replica     = lazyre.New(`^Caught \w+ in `)
)

// frameLine takes a line of a stack apart: File "PATH", line N, in NAME, behind
// blanks and the marks of exception groups. NAME may be missing. By hand, because
// a regular expression takes a microsecond, and dense logs have millions of them.
func frameLine(text string) (path, line, in string, ok bool) {
	rest, ok := strings.CutPrefix(strings.TrimLeft(text, " \t\n\f\r|+-"), `File "`)
	end := strings.IndexByte(rest, '"')
	if !ok || end < 0 {
		return "", "", "", false
	}
	path = rest[:end]
	if rest, ok = strings.CutPrefix(rest[end:], `", line `); !ok {
		return "", "", "", false
	}
	n := 0
	for n < len(rest) && isDigit(rest[n]) {
		n++
	}
	line, rest = rest[:n], rest[n:]
	if rest != "" {
		in, ok = strings.CutPrefix(strings.TrimPrefix(rest, ","), " in ")
	}
	return path, line, in, ok && n > 0 && !strings.Contains(in, "\n")
}

func isFrame(text string) bool {
	_, _, _, ok := frameLine(text)
	return ok
}

// isCode recognises lines that are source code whatever stands around them.
func isCode(text string) bool {
	t := strings.TrimLeft(text, " \t│❱>0123456789-")
	return strings.HasPrefix(t, "except ") && strings.HasSuffix(t, ":") || strings.HasPrefix(t, "raise ") && len(t) < len(text)-3
}

// open begins a traceback at m.
func (s *session) open(m *message, style traceStyle) *trace {
	if len(s.traces) >= 4096 { // hostile: as many writers as lines
		for _, t := range s.openTraces() {
			t.close(s)
		}
	}
	t := &trace{key: m.key, style: style, start: m, at: m.span.Line, local: evidence.None, stamp: m.stamp, rank: evidence.None}
	// A log line right above ("ERROR … rank 8: uncaught exception") announces it.
	if r := s.recent; r.announces(m) && !t.stamp.Known() {
		t.stamp, t.rank, t.host = r.stamp, r.who.Rank, r.who.Host
		t.stamp.Error += time.Second
	}
	s.traces[m.key] = t
	return t
}

// restart handles the start of another block while t is open: the next of a
// chain, the original behind a re-raise, or simply another traceback.
func (s *session) restart(t *trace, m *message, style traceStyle) {
	if t.state == inFrames && len(t.frames) == 0 && t.lines < 16 {
		t.lines++
		t.at = m.span.Line
		return // the same first line by several ranks
	}
	chain, local := "", t.local
	switch {
	case t.state == wantStart:
		chain = t.chain
	case t.state != inFrames && (replica.MatchString(t.text) || t.local != evidence.None || strings.Contains(m.text, "Original Traceback")):
		// What comes is the error itself; the one above only passes it on.
		for _, e := range t.events {
			e.Quoted = true
		}
		t.quote(s)
		chain = "wrapped"
	}
	t.finish(s, chain)
	if t.style == styleGroup && style == stylePython {
		style = styleGroup
	}
	next := s.open(m, style)
	next.local = local
	switch chain {
	case "wrapped":
		next.chain = "cause"
	case "cause", "context":
		next.chain = "final"
	}
}

// quote emits the exception line of a wrapper as what it is: a copy.
func (t *trace) quote(s *session) {
	if t.head == nil || t.claimed {
		return
	}
	if e := t.exception(s); e != nil {
		e.Quoted = true
		t.events = append(t.events, e)
	}
	t.claimed = true
}

// feed gives a line to an open traceback.
func (t *trace) feed(s *session, m *message) traceRole {
	t.lines++
	t.at = m.span.Line
	text := m.text
	trimmed := strings.TrimSpace(text)
	if t.lines > maxTraceLines {
		t.close(s)
		return roleNone
	}
	switch t.state {
	case inFrames:
		return t.frame(s, m, text, trimmed)
	case inMessage:
		switch {
		case trimmed == "" || trimmed == "|":
			t.state, t.gap = inGap, 0
			return roleInside
		case t.linked(trimmed):
			return roleInside
		case t.goesOn(s, m, text):
			if len(t.text) < maxMessage && !(t.style == styleGroup && strings.HasPrefix(trimmed, "+")) {
				t.text += "\n" + textline.Cut(trimmed, 512)
			}
			return roleMore
		}
	case inGap, wantStart:
		t.gap++
		switch {
		case trimmed == "" && t.gap < 4, caretLine.MatchString(text) && trimmed != "":
			return roleInside
		case t.linked(trimmed):
			return roleInside
		case t.state == wantStart && t.gap < 4 && strings.HasPrefix(trimmed, `"""`):
			return roleInside
		}
	}
	t.close(s)
	return roleNone
}

// linked reads the sentences that join the blocks of a chain.
func (t *trace) linked(text string) bool {
	text = strings.TrimLeft(text, "| ")
	switch {
	case strings.HasPrefix(text, "The above exception was the direct cause of the following exception"):
		t.chain = "cause"
	case strings.HasPrefix(text, "During handling of the above exception, another exception occurred"):
		t.chain = "context"
	default:
		f := spawnLine.FindStringSubmatch(text)
		if f == nil {
			return false
		}
		t.local, _ = strconv.Atoi(f[1])
		t.state, t.gap = inGap, 0
		return true
	}
	t.state, t.gap = wantStart, 0
	return true
}

// goesOn reports whether m continues the message of the exception: it is
// indented, the message so far calls for more, or it is known to follow one.
func (t *trace) goesOn(s *session, m *message, text string) bool {
	if slices.ContainsFunc(s.joins, func(j *join) bool { return j.tb == t && j.left > 0 }) {
		return true
	}
	if !t.logged(m) || m.stamp.Known() && !t.start.stamp.Known() || isBar(text) {
		return false
	}
	if text[0] == ' ' || text[0] == '\t' || text[0] == '|' {
		return strings.Count(t.text, "\n") < 40
	}
	if m.met || strings.Count(t.text, "\n") >= 8 {
		return false
	}
	if said := strings.TrimSpace(t.text); said == "" || said[len(said)-1] == ':' {
		return !strings.HasPrefix(text, "=====")
	}
	for _, lead := range continuations {
		if strings.HasPrefix(text, lead) {
			return true
		}
	}
	return false
}

// continuations begin the further lines of messages that are known to have
// several.
var continuations = []string{
	"CUDA kernel errors might", "For debugging consider", "Compile with", "Device-side assert", "Search for `cuda", "For more detailed error",
	"nccl", "Last error", "Cuda failure", "Error: failed to extend", "Currently allocated", "Requested  ", "Device limit", "Free (according to", "PyTorch limit",
	"Memory on the node", "Exception raised from", "This may indicate a possible application crash", "If you suspect this is an IPython",
}

// frame reads a line while the frames of the stack are printed.
func (t *trace) frame(s *session, m *message, text, trimmed string) traceRole {
	if trimmed == "" {
		if t.style == styleFatal && len(t.frames) > 0 {
			t.close(s)
		}
		return roleInside
	}
	if text == t.last && t.style != styleIPython {
		return roleCode
	}
	last, wide := t.last, t.wide
	t.last, t.wide = text, len(m.raw) >= terminalWidth
	if path, line, in, ok := frameLine(text); ok {
		t.push(path, line, in)
		t.source, t.alien = true, 0
		return roleCode
	}
	switch t.style {
	case styleRich:
		return t.rich(s, m, text, trimmed)
	case styleIPython:
		if role, ok := t.ipython(text); ok {
			return role
		}
	case styleFatal:
		if strings.HasPrefix(text, "Extension modules:") || strings.HasPrefix(text, "Thread 0x") && len(t.frames) > 0 {
			t.close(s)
			return roleNone
		}
		if strings.HasPrefix(text, "Current thread") || strings.HasPrefix(text, "Thread 0x") || strings.HasPrefix(text, "Python runtime state") || strings.HasPrefix(trimmed, "<no Python frame>") {
			return roleInside
		}
	}
	body := text
	if t.style == styleGroup {
		body = strings.TrimLeft(text, " ")
		body = strings.TrimPrefix(strings.TrimPrefix(body, "|"), "+")
		body = strings.TrimPrefix(body, " ")
		if body == "" || body[0] == '-' || strings.HasPrefix(body, "+-") {
			return roleInside
		}
	}
	if body[0] == ' ' || body[0] == '\t' {
		if t.source && len(t.frames) > 0 && !caretLine.MatchString(body) {
			last := &t.frames[len(t.frames)-1]
			if last.Source == "" {
				last.Source = textline.Cut(strings.TrimSpace(body), 400)
			}
			t.source = false
		}
		return roleCode
	}
	if f := excLine.FindStringSubmatch(body); f != nil && t.plausible(f, last) && t.logged(m) && (!m.met || strings.Contains(f[1], "Error")) {
		t.typ, t.text = f[1], f[2]
		return roleHeader
	}
	if cut := afterBar(body); cut > 0 {
		if f := excLine.FindStringSubmatch(body[cut:]); f != nil && t.plausible(f, last) {
			t.typ, t.text = f[1], f[2]
			return roleHeader
		}
	}
	if wide { // a terminal cut the line above
		if path, line, in, ok := frameLine(last + body); ok {
			t.push(path, line, in)
			t.source = true
		}
		return roleCode
	}
	// Somebody else's line between ours: bars, logs, other ranks.
	if t.alien++; t.alien > maxForeign || !(isBar(body) || m.level != 0 || m.stamp.Known() || m.met || m.text != m.full) {
		t.close(s)
	}
	return roleNone
}

// logged reports whether m was written as the traceback itself was: bare, or
// line by line through a logger of the same level.
func (t *trace) logged(m *message) bool { return m.level == 0 || m.level == t.start.level }

// plausible reports whether a line that looks like "name: text" can be the
// exception of this traceback. Names without a message must look like one.
func (t *trace) plausible(f []string, above string) bool {
	usual := false
	for _, part := range []string{"Error", "Exception", "Exit", "Interrupt", "Warning", "Timeout", "Stop", "Failure", "Group", "error"} {
		usual = usual || strings.Contains(f[1], part)
	}
	if !usual && (above == "" || above[0] != ' ' && t.style == stylePython) {
		return false // only right below the frames
	}
	if len(t.frames) == 0 && t.style == stylePython && !strings.Contains(f[1], "Error") && !strings.Contains(f[1], "Exception") {
		return false
	}
	name := f[1]
	if i := strings.LastIndexByte(name, '.'); i >= 0 {
		name = name[i+1:]
	}
	if f[2] != "" || strings.HasSuffix(name, ")") {
		return name[0] >= 'A' && name[0] <= 'Z' || strings.Contains(f[1], ".") || strings.HasSuffix(name, "error")
	}
	return name[0] >= 'A' && name[0] <= 'Z' && len(name) > 3
}

// rich reads the lines inside rich's box and the exception below it.
func (t *trace) rich(s *session, m *message, text, trimmed string) traceRole {
	if strings.HasPrefix(trimmed, "╰") {
		t.source = false
		t.alien = -1 // the box is closed
		return roleInside
	}
	if strings.HasPrefix(trimmed, "│") {
		if f := richIn.FindStringSubmatch(trimmed); f != nil {
			t.push("", f[2], f[1])
		} else if f := richSource.FindStringSubmatch(trimmed); f != nil {
			if n := len(t.frames); n > 0 && t.frames[n-1].Source == "" {
				t.frames[n-1].Source = textline.Cut(f[1], 400)
			}
		} else if f := richLine.FindStringSubmatch(trimmed); f != nil {
			t.push(f[1], f[2], f[3])
		}
		return roleCode
	}
	if f := excLine.FindStringSubmatch(text); f != nil && t.plausible(f, "") {
		t.typ, t.text = f[1], f[2]
		return roleHeader
	}
	t.close(s)
	return roleNone
}

// ipython reads the lines of a notebook traceback.
func (t *trace) ipython(text string) (traceRole, bool) {
	if f := arrowLine.FindStringSubmatch(text); f != nil {
		if n := len(t.frames); n > 0 && t.frames[n-1].Source == "" {
			t.frames[n-1].Source = textline.Cut(strings.TrimSpace(f[2]), 400)
			if t.frames[n-1].Line == 0 {
				t.frames[n-1].Line, _ = strconv.Atoi(f[1])
			}
		}
		return roleCode, true
	}
	if len(text) > 0 && (text[0] == ' ' || isDigit(text[0])) {
		return roleCode, true
	}
	if strings.Contains(text, ": ") && !strings.HasPrefix(text, "Cell ") && !strings.HasPrefix(text, "File ") && !strings.HasPrefix(text, "<") {
		return 0, false
	}
	if f := cellLine.FindStringSubmatch(text); f != nil && f[0] != "" {
		t.push(f[1], cmp.Or(f[2], f[3]), f[4])
		return roleCode, true
	}
	return 0, false
}

// push adds a frame, keeping the outer and inner ends of a deep stack.
func (t *trace) push(file, line, function string) {
	n, _ := strconv.Atoi(line)
	if i := strings.IndexByte(function, '('); i > 0 {
		function = function[:i]
	}
	t.frames = append(t.frames, evidence.Frame{File: textline.Cut(file, 400), Line: n, Function: textline.Cut(strings.TrimSpace(function), 200)})
	if len(t.frames) > keepFirst+keepLast {
		t.frames = append(t.frames[:keepFirst], t.frames[keepFirst+1:]...)
	}
}

// header is called behind the matching of the exception line.
func (t *trace) header(s *session, m *message) {
	t.head, t.state = m, inMessage
	if t.style == styleFatal {
		t.typ, t.text = "Fatal Python error", strings.TrimPrefix(m.text, "Fatal Python error: ")
	}
}

// claim takes an event that was read from the exception line or its message, so
// that it gets the stack. Of the message only failures count.
func (t *trace) claim(e *evidence.Event, exception bool) bool {
	spec := evidence.SpecOf(e.Kind)
	if !exception && spec.Role != evidence.RoleFault && spec.Role != evidence.RoleEffect && spec.Role != evidence.RoleStop {
		return false
	}
	if len(t.events) >= 16 {
		return false
	}
	t.events = append(t.events, e)
	t.claimed = true
	return true
}

// close ends a traceback that is complete, or that the text does not continue.
func (t *trace) close(s *session) { t.finish(s, "") }

// finish emits what t is about. link says how the next block relates to it.
func (t *trace) finish(s *session, link string) {
	if s.traces[t.key] == t {
		delete(s.traces, t.key)
	}
	for _, j := range s.joins { // a message that was still being joined
		if j.tb == t {
			j.left = 0
		}
	}
	if t.head != nil && !t.claimed {
		if e := t.exception(s); e != nil {
			t.events = append(t.events, e)
		}
	}
	chain := t.chain
	switch link {
	case "cause", "context":
		chain = link
	case "wrapped":
		chain = "final"
	}
	frames := t.frames
	if t.style == styleFatal {
		slices.Reverse(frames)
	}
	for _, e := range t.events {
		e.Stack, e.Chain = frames, chain
		if e.Kind == evidence.NonfiniteNamed && e.Attrs.Str("what") == "anomaly-mode" {
			e.Stack = s.forward.behind(t, frames)
		}
		if !e.Stamp.Known() {
			e.Stamp = t.stamp
		}
		if e.Who.Rank == evidence.None && e.Who.LocalRank == evidence.None {
			e.Who.Rank = t.rank
		}
		if e.Who.Rank == t.rank {
			e.Who.Host = cmp.Or(e.Who.Host, t.host)
		}
		if t.local != evidence.None && e.Who.LocalRank == evidence.None {
			e.Who.LocalRank = t.local
		}
		s.emit(e)
	}
}

// exception is the event of an exception that no wording claimed; nil where the
// exception says nothing.
func (t *trace) exception(s *session) *evidence.Event {
	short := t.typ[strings.LastIndexByte(t.typ, '.')+1:]
	text := strings.TrimSpace(t.text)
	kind, attrs := evidence.Exception, evidence.Attrs{"type": evidence.TextOf(t.typ), "message": evidence.TextOf(textline.Cut(text, maxMessage))}
	switch {
	case t.style == styleFatal:
		kind, attrs = evidence.NativeCrash, evidence.Attrs{"what": evidence.TextOf(strings.ToLower(strings.ReplaceAll(textline.Cut(text, 64), " ", "_")))}
	case short == "KeyboardInterrupt":
		kind, attrs = evidence.Interrupted, evidence.Attrs{"what": evidence.TextOf("keyboard")}
	case short == "SystemExit":
		code, err := strconv.Atoi(text)
		if err != nil && text != "" {
			code = 1
		}
		kind, attrs = evidence.Exited, evidence.Attrs{"code": evidence.IntOf(int64(code)), "what": evidence.TextOf("system_exit")}
	case short == "SimplifiedTraceback":
		return nil // JAX's placeholder
	case short == "ChildFailedError":
		kind, attrs = evidence.WrapperError, evidence.Attrs{"what": evidence.TextOf("child_failed")}
	case short == "CalledProcessError" && startsRun.MatchString(text):
		kind, attrs = evidence.WrapperError, evidence.Attrs{"what": evidence.TextOf("called_process")}
	case short == "ExceptionGroup" || short == "BaseExceptionGroup":
		kind, attrs = evidence.WrapperError, evidence.Attrs{"what": evidence.TextOf("exception_group")}
	}
	if kind == evidence.Exception {
		if e := t.whole(s, text); e != nil {
			return e
		}
	}
	e := s.event(kind, t.head)
	e.Attrs = attrs
	e.Quoted = s.inQuote(t.head)
	return e
}

// cutOff emits what a traceback says that the end of the text cut off before its
// exception: that something failed there, and not what. A last line with an end
// counts only if it is the traceback's own, which was then cut between two lines.
func (t *trace) cutOff(s *session, stats scan.Stats) {
	if t.head != nil || t.claimed || len(t.frames) == 0 || t.style == styleFatal || t.at < stats.Lines-1 || s.inQuote(t.start) {
		return
	}
	e := s.event(evidence.WrapperError, t.start)
	e.Attrs = evidence.Attrs{"what": evidence.TextOf("traceback-cut")}
	t.events = append(t.events, e)
	t.claimed = true
}

// whole tries the wordings of exceptions on the message put together again: its
// literal may stand on a later line than the exception's name, or across a cut.
// A message of one line was tried when it was read.
func (t *trace) whole(s *session, text string) *evidence.Event {
	if !strings.Contains(text, "\n") {
		return nil
	}
	for _, sep := range []string{"", " "} {
		m := *t.head
		m.text = textline.Cut(t.typ+": "+strings.ReplaceAll(text, "\n", sep), maxMessage)
		m.full = m.text
		for _, w := range s.want.words {
			if !w.Exception || w.spec == nil || w.Literal == "" || !strings.Contains(m.text, w.Literal) || !w.on(s.art.Kind) {
				continue
			}
			groups, ok := w.match(m.text)
			if !ok {
				continue
			}
			e := s.event(w.spec.Kind, t.head)
			e.Line, e.Attrs = w.ID, make(evidence.Attrs, len(w.Attrs))
			for k, v := range w.Attrs {
				e.Attrs[k] = v
			}
			if w.re != nil {
				for i, name := range w.re.SubexpNames() {
					if name != "" && i < len(groups) && groups[i] != "" {
						s.capture(e, w.spec, name, groups[i])
					}
				}
			}
			e.Quoted = s.inQuote(t.head)
			return e
		}
	}
	return nil
}

// expire ends the tracebacks whose writer has said nothing for long: in a log of
// many writers it may never say anything again.
func (s *session) expire(line int64) {
	if len(s.traces) == 0 || line-s.expired < 32 { // looking at all of them has its price
		return
	}
	s.expired = line
	for _, t := range s.openTraces() {
		if silent := line - t.at; silent > 40 && t.state != inFrames || silent > 2000 {
			t.close(s)
		}
	}
}

// openTraces lists the open tracebacks in the order of their first lines.
func (s *session) openTraces() []*trace {
	return slices.SortedFunc(maps.Values(s.traces), func(a, b *trace) int {
		return cmp.Or(cmp.Compare(a.start.span.Line, b.start.span.Line), cmp.Compare(a.start.span.Column, b.start.span.Column))
	})
}
