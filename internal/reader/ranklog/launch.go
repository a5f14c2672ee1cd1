package ranklog

import (
	"regexp"
	"strings"

	"github.com/inquest-dev/inquest/internal/evidence"
)

// mark counts a launch. A banner alone begins another one only after a fault, an
// exit or logged losses: bars of data preparation stand before it too.
//
// The first mark of an artifact, and marks that follow
// another one before anything ran, belong to the launch that is beginning; so do
// the marks of the other ranks of a launch.
func (s *session) mark(e *evidence.Event) {
	rank := e.Who.Rank
	if rank == evidence.None {
		rank = e.Who.LocalRank
	}
	another := rank != evidence.None && !s.marked[rank] && len(s.marked) > 0 && !s.marked[evidence.None]
	banner := e.Attrs.Str("command") == "" && e.Attrs.Str("what") != "restart"
	switch {
	case another && !s.ended:
	case s.ended, s.ranSteps && !banner, s.learned && len(s.marked) > 0:
		s.newLaunch()
		e.Step = evidence.None
	}
	s.marked[rank] = true
}

var promptLine = regexp.MustCompile(`^(?:\(\S+\) ?)?(?:[\w.@~:/\[\] -]{0,120}?[$#%]|\+{1,4}) (\S.*)$`)

// prompt reads a shell command line: "$ cmd", "user@host:~/x$ cmd", "+ cmd" of
// set -x. An assignment alone and a Python one-liner start no run.
func (m *message) prompt() {
	f := promptLine.FindStringSubmatch(m.text)
	if f == nil {
		return
	}
	m.command = bounded(f[1], 2<<10)
	words := shellWords(m.command)
	for len(words) > 0 && assignment.MatchString(words[0]) {
		words = words[1:]
	}
	m.launched = len(words) == 0 || oneLiner.MatchString(strings.Join(words[:min(len(words), 4)], " "))
}

var (
	assignment = regexp.MustCompile(`^[A-Za-z_]\w*=`)
	oneLiner   = regexp.MustCompile(`^(?:exec )?(?:\S*/)?python[\d.]* (?:-c|-V|--version|-m pip|-m venv)(?: |$)`)
)

// launchOf makes the launch event of a command line that no wording took. A
// comment at the prompt is one too: people note there what they changed.
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
	if m.command != "" && e.Attrs.Str("command") == "" {
		if e.Attrs == nil {
			e.Attrs = evidence.Attrs{}
		}
		e.Attrs["command"] = evidence.TextOf(m.command)
	}
	s.mark(e)
	s.emit(e)
	if !strings.HasPrefix(m.command, "#") {
		s.setting.command(s, e.Attrs.Str("command"), m)
	}
}
