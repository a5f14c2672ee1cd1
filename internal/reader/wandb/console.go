package wandb

import (
	"bytes"

	"github.com/inquest-dev/inquest/internal/evidence"
	"github.com/inquest-dev/inquest/internal/format/wandblog"
	"github.com/inquest-dev/inquest/internal/reader"
)

// maxPending bounds a line that is put together from several records.
const maxPending = 64 << 10

// A console puts the pieces that were printed together to lines, each stream by
// itself: a piece of one may stand in the middle of a line of the other.
type console struct {
	all     reader.Console
	streams [2]stream
	last    [2]string // the last two lines that say something, as output.log has them
}

type stream struct {
	text []byte // begin of a line
	at   reader.Place
	wall float64
}

func (c *console) add(kind int, line wandblog.Line, at reader.Place) {
	s := &c.streams[0]
	if line.Stdout {
		s = &c.streams[1]
	}
	text := line.Text
	if kind == wandblog.OutputLogger && !bytes.HasSuffix(text, []byte("\n")) {
		text = append(text[:len(text):len(text)], '\n')
	}
	if len(s.text) > 0 {
		end := bytes.IndexAny(text, "\r\n") + 1
		if end == 0 {
			end = len(text)
		}
		s.text = append(s.text, text[:end]...)
		if text = text[end:]; len(s.text) < maxPending && s.text[len(s.text)-1] != '\n' && s.text[len(s.text)-1] != '\r' {
			return
		}
		c.put(s.text, s.at, s.wall)
		s.text = s.text[:0]
	}
	whole := max(bytes.LastIndexByte(text, '\n'), bytes.LastIndexByte(text, '\r')) + 1
	if whole > 0 {
		c.put(text[:whole], at, line.Wall)
	}
	if rest := text[whole:]; len(rest) > 0 {
		s.text, s.at, s.wall = append(s.text[:0], rest...), at, line.Wall
	}
}

// put adds whole lines.
func (c *console) put(text []byte, at reader.Place, wall float64) {
	c.all.Add(text, at, wall)
	lines := text
	if len(lines) > 4<<10 {
		lines = lines[len(lines)-4<<10:]
	}
	for line := range bytes.Lines(lines) {
		if s := shown(line); s != "" {
			c.last[0], c.last[1] = c.last[1], s
		}
	}
}

// end adds the lines that have no end.
func (c *console) end() {
	for i := range c.streams {
		if s := &c.streams[i]; len(s.text) > 0 {
			c.put(append(s.text, '\n'), s.at, s.wall)
			s.text = nil
		}
	}
}

// shown is what a terminal is left with of a line: the last of what was written over each
// other, without colours.
func shown(line []byte) string {
	line = bytes.TrimRight(line, "\r\n\t ")
	if i := bytes.LastIndexByte(line, '\r'); i >= 0 {
		line = line[i+1:]
	}
	if len(line) > 1<<10 {
		line = line[:1<<10]
	}
	return string(bytes.TrimSpace(evidence.Escapes.ReplaceAll(line, nil)))
}
