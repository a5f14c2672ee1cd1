package gpu

import (
	"context"
	"encoding/binary"
	"strings"
	"unicode/utf16"

	"github.com/inquest-dev/inquest/internal/format/amdsmi"
	"github.com/inquest-dev/inquest/internal/format/nvsmi"
	"github.com/inquest-dev/inquest/internal/format/textline"
)

// Parse reads saved outputs of device tools of one machine, in any form that they print. Where
// there are several readings of the same kind, the last one counts; readings says how many
// there were.
func Parse(data []byte) (st *State, readings int) {
	p := &parser{}
	p.reset()
	text := decoded(data)
	if trimmed := strings.TrimLeft(text, " \t\r\n"); trimmed != "" && (trimmed[0] == '[' || trimmed[0] == '{') {
		p.a.json(text)
		p.readings = 1
	} else {
		p.lines(text)
	}
	st = p.st()
	if len(st.Unplaced) > 0 || p.hasList {
		for i := range st.Devices {
			d := &st.Devices[i]
			d.Listed = d.Listed || p.hasList
		}
	}
	st.place()
	if len(st.Devices) > 0 {
		st.Tool = p.tool
	}
	st.Taken = p.taken
	return st, p.readings
}

// A parser goes through lines and starts the tables that begin in them.
type parser struct {
	n        *nvidia
	a        *amd
	command  string
	taken    string
	tool     string
	hasList  bool // a list of processes, as a table of its own
	readings int
}

func (p *parser) reset() {
	p.n, p.a = &nvidia{st: &State{}, ctx: context.Background()}, &amd{st: &State{}}
}

// st joins what both vendors' tools said.
func (p *parser) st() *State {
	p.n.place()
	p.a.st.place()
	s := &State{}
	s.join(p.n.st)
	s.join(p.a.st)
	if p.n.st.Taken != "" {
		p.taken = p.n.st.Taken
	}
	return s
}

func (p *parser) lines(text string) {
	var cur interface {
		end()
		line(textline.Line) bool
	}
	finish := func() {
		if cur != nil {
			cur.end()
		}
		cur = nil
	}
	textline.Each(context.Background(), strings.NewReader(text), func(l textline.Line) {
		line := strings.TrimSpace(l.Text)
		if cmd, ok := textline.Command(line); ok {
			finish()
			p.command = cmd
			return
		}
		if m, cmd, ok := textline.Header(line); ok {
			finish()
			p.taken = textline.OneLine(m.Written, 60)
			if cmd != "" {
				p.command = cmd
			}
			return
		}
		if cur != nil && (line == "" || cur.line(l)) {
			return
		}
		finish()
		if line == "" {
			return
		}
		drivers := p.n.st.Driver
		if whole(line) && len(p.n.st.Devices)+len(p.n.st.Unplaced)+len(p.a.st.Devices) > 0 {
			p.reset()
			p.n.st.Driver = drivers
		}
		if t, class := nvsmi.Begin(l, p.command, p.n); class != nvsmi.Foreign {
			if t != nil {
				p.began("nvidia-smi", line)
				cur = nvTable{t}
			}
			return
		}
		if t, class := amdsmi.Begin(l, p.a); class != amdsmi.Foreign {
			p.began("rocm-smi or amd-smi", line)
			cur = amdTable{t}
		}
	}, func(textline.Line) {})
	finish()
}

// began notes that a table begins.
func (p *parser) began(tool, line string) {
	if whole(line) || p.readings == 0 {
		p.readings++
	}
	if p.tool == "" {
		p.tool = "a saved output of " + tool
	}
	p.hasList = p.hasList || strings.Contains(line, "pid") && strings.Contains(line, ",") || strings.Contains(line, "NVSMI LOG") || strings.HasPrefix(line, "<")
}

// whole reports whether a line begins a form that states everything at once, so that another
// one replaces what came before.
func whole(line string) bool {
	return strings.HasPrefix(line, "| NVIDIA-SMI ") || strings.Contains(line, "=NVSMI LOG=") || strings.HasPrefix(line, "<?xml") || strings.HasPrefix(line, "| AMD-SMI ")
}

type nvTable struct{ nvsmi.Table }

func (t nvTable) line(l textline.Line) bool { return t.Line(l) != nvsmi.Foreign }
func (t nvTable) end()                      { t.End() }

type amdTable struct{ amdsmi.Table }

func (t amdTable) line(l textline.Line) bool { return t.Line(l) != amdsmi.Foreign }
func (t amdTable) end()                      { t.End() }

// decoded is data as UTF-8: PowerShell saves outputs as UTF-16.
func decoded(data []byte) string {
	if len(data) < 2 {
		return string(data)
	}
	var order binary.ByteOrder
	switch {
	case data[0] == 0xff && data[1] == 0xfe:
		order = binary.LittleEndian
	case data[0] == 0xfe && data[1] == 0xff:
		order = binary.BigEndian
	default:
		return strings.TrimPrefix(string(data), "\xef\xbb\xbf")
	}
	units := make([]uint16, 0, len(data)/2)
	for i := 2; i+1 < len(data); i += 2 {
		units = append(units, order.Uint16(data[i:]))
	}
	return string(utf16.Decode(units))
}
