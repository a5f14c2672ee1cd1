package ranklog

import (
	"strings"

	"github.com/inquest-dev/inquest/internal/evidence"
	"github.com/inquest-dev/inquest/internal/format/textline"
	"github.com/inquest-dev/inquest/internal/lazyre"
)

// mark counts a launch. A banner alone begins another one only after a fault, an
// exit or logged losses: bars of data preparation stand before it too.
//
// The first mark of an artifact, and marks that follow
// another one before anything ran, belong to the launch that is beginning; so do
// the marks of the other ranks of a launch. But the same program started with
// other options is another launch (relaunched).
func (s *session) mark(e *evidence.Event) {
	rank := e.Who.Rank
	if rank == evidence.None {
		rank = e.Who.LocalRank
	}
	another := rank != evidence.None && !s.marked[rank] && len(s.marked) > 0 && !s.marked[evidence.None]
	banner := e.Attrs.Str("command") == "" && e.Attrs.Str("what") != "restart"
	switch {
	case another && !s.ended:
	case s.ended, s.ranSteps && !banner, s.learned && len(s.marked) > 0, s.relaunched(e):
		s.newLaunch()
		s.started = ""
		e.Step = evidence.None
	}
	s.marked[rank] = true
	if c := e.Attrs.Str("command"); c != "" {
		s.started, s.startedAt = c, e.Span.Line
	}
}

// setUpLines is how much a launch prints at least before the next one is taken
// for its successor: runs put into the background together stand closer.
const setUpLines = 20

// relaunched reports whether a command starts the same program as the last one,
// with other options, after that one had spoken: it ended before its first step,
// without a word.
func (s *session) relaunched(e *evidence.Event) bool {
	c := e.Attrs.Str("command")
	if c == "" || s.started == "" || e.Span.Line-s.startedAt <= setUpLines {
		return false
	}
	was, with := program(s.started)
	is, other := program(c)
	return is != "" && is == was && other != with
}

// ofNode are the options by which the nodes of one launch differ.
var ofNode = lazyre.New(`^--?(?:node[-_]?rank|machine[-_]rank|rank|master[-_](?:addr|port)|main[-_]process[-_](?:ip|port)|rdzv[-_]\w+|hostfile|host|port|nodelist|w)(=.*)?$`)

// program names what a command line runs (a script or a module) and the options
// it is given, without those of ofNode.
func program(command string) (name, options string) {
	words := shellWords(command)
	var rest []string
	for i := 0; i < len(words); i++ {
		w := words[i]
		switch f := ofNode.FindStringSubmatch(w); {
		case f != nil && f[1] == "":
			i++
			continue
		case f != nil, assignment.MatchString(w):
			continue
		}
		if name == "" {
			if w == "-m" && i+1 < len(words) && !strings.HasPrefix(words[i+1], "torch.distributed.") {
				name = words[i+1]
			} else if strings.HasSuffix(w, ".py") {
				name = w
			}
		}
		rest = append(rest, w)
	}
	return name, strings.Join(rest, " ")
}

var promptLine = lazyre.New(`^(?:\(\S+\) ?)?(?:[\w.@~:/\[\] -]{0,120}?[$#%]|\+{1,4}) (\S.*)$`)

// prompt reads a shell command line: "$ cmd", "user@host:~/x$ cmd", "+ cmd" of
// set -x. An assignment alone and a Python one-liner start no run.
func (m *message) prompt() {
	f := promptLine.FindStringSubmatch(m.text)
	if f == nil {
		return
	}
	m.command = textline.Cut(f[1], 2<<10)
	words := shellWords(m.command)
	for len(words) > 0 && assignment.MatchString(words[0]) {
		words = words[1:]
	}
	m.launched = len(words) == 0 || oneLiner.MatchString(strings.Join(words[:min(len(words), 4)], " "))
}

var (
	assignment = lazyre.New(`^[A-Za-z_]\w*=`)
	oneLiner   = lazyre.New(`^(?:exec )?(?:\S*/)?python[\d.]* (?:-c|-V|--version|-m pip|-m venv)(?: |$)`)
)

// launchOf makes the launch event of a command line that no wording took. A
// comment at the prompt is one without a command: people note there what they changed.
func (s *session) launchOf(m *message) {
	e := s.event(evidence.LaunchMark, m)
	what := "command"
	if strings.HasPrefix(m.command, "#") {
		what = "comment"
	}
	e.Attrs = evidence.Attrs{"what": evidence.TextOf(what)}
	s.launchMark(e, m)
}

// launchMark hands over a launch event and reads the settings of its command.
// Several wordings of one line are one launch.
func (s *session) launchMark(e *evidence.Event, m *message) {
	if m.launched {
		return
	}
	m.launched = true
	if m.command != "" && !strings.HasPrefix(m.command, "#") && e.Attrs.Str("command") == "" {
		if e.Attrs == nil {
			e.Attrs = evidence.Attrs{}
		}
		e.Attrs["command"] = evidence.TextOf(m.command)
	}
	s.mark(e)
	s.emit(e)
	s.setting.command(s, e.Attrs.Str("command"), m)
}
