package ranklog

import (
	"slices"
	"strconv"
	"strings"

	"github.com/inquest-dev/inquest/internal/evidence"
	"github.com/inquest-dev/inquest/internal/format/textline"
)

// A forwardStack holds the last frames that stood outside a traceback. Anomaly
// mode prints such ones in a warning, above the traceback of the backward call:
// where the forward operation was called, which is the line to look at
// (torch/csrc/autograd/python_anomaly_mode.cpp).
type forwardStack struct {
	key    key
	at     int64 // line of the last frame
	frames []evidence.Frame
}

// warningTail is how many lines stand between the last frame of the warning and
// the traceback: the source line, where it was triggered, and the line that warned.
const warningTail = 6

// add takes a frame; one that does not follow the last begins another stack.
func (s *forwardStack) add(m *message) {
	path, line, in, ok := frameLine(m.text)
	if !ok {
		return
	}
	if s.key != m.key || m.span.Line-s.at > 3 {
		s.frames = nil
	}
	s.key, s.at = m.key, m.span.Line
	if len(s.frames) < keepLast {
		n, _ := strconv.Atoi(line)
		s.frames = append(s.frames, evidence.Frame{File: textline.Cut(path, 400), Line: n, Function: textline.Cut(strings.TrimSpace(in), 200)})
	}
}

// source takes the source line of the last frame.
func (s *forwardStack) source(m *message) {
	if n := len(s.frames); n > 0 && s.key == m.key && s.at == m.span.Line-1 && s.frames[n-1].Source == "" {
		s.frames[n-1].Source = textline.Cut(strings.TrimSpace(m.text), 400)
	}
}

// behind returns stack with the forward frames behind it, so that the innermost
// frame is where the operation was called, if the warning stood right above t.
func (s *forwardStack) behind(t *trace, stack []evidence.Frame) []evidence.Frame {
	if len(s.frames) == 0 || s.key != t.key || t.start.span.Line <= s.at || t.start.span.Line-s.at > warningTail {
		return stack
	}
	return slices.Concat(stack, s.frames)
}
