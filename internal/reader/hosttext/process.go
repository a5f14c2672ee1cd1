package hosttext

import (
	"strconv"
	"strings"

	"github.com/inquest-dev/inquest/internal/evidence"
)

// ps reads a table of ps (any -o list, aux, -ef) or of top -b: columns are known
// by their names, and the command is the rest of the line.
type ps struct {
	names []string
}

func psHeader(_ *parser, text string) table {
	if !strings.Contains(text, "PID") || !strings.HasSuffix(text, "CMD") && !strings.HasSuffix(text, "COMMAND") {
		return nil
	}
	f := columns(text)
	pid := false
	for _, c := range f {
		pid = pid || c == "PID"
		if c != strings.ToUpper(c) {
			return nil
		}
	}
	if last := f[len(f)-1]; !pid || last != "CMD" && last != "COMMAND" {
		return nil
	}
	return &ps{names: f}
}

func (t *ps) row(p *parser, l line) bool {
	rest := l.text
	attrs := evidence.Attrs{}
	w := p.who()
	for i, n := range t.names {
		rest = strings.TrimLeft(rest, " \t")
		v := rest
		if i < len(t.names)-1 {
			j := strings.IndexAny(rest, " \t")
			if j < 0 {
				return false
			}
			v, rest = rest[:j], rest[j:]
		}
		switch n {
		case "PID":
			pid, err := strconv.ParseInt(v, 10, 32)
			if err != nil {
				return false
			}
			attrs["pid"], w.PID = evidence.IntOf(pid), int(pid)
		case "PPID":
			setInt(attrs, "ppid", v)
		case "ELAPSED":
			if s, ok := elapsed(v); ok {
				attrs["elapsed"] = evidence.IntOf(s)
			}
		case "STAT", "S":
			attrs["state"] = evidence.TextOf(v)
		case "RSS", "RES":
			set(attrs, "rss", v, 1<<10)
		case "CMD", "COMMAND":
			attrs["command"] = evidence.TextOf(strings.TrimSpace(v))
		}
	}
	p.s.Event(p.event(evidence.HostProcess, l, w, attrs))
	return true
}

func (t *ps) end(*parser) {}

// elapsed reads seconds (etimes) or [[dd-]hh:]mm:ss (etime).
func elapsed(text string) (int64, bool) {
	days, rest, ok := strings.Cut(text, "-")
	total := int64(0)
	if ok {
		d, err := strconv.ParseInt(days, 10, 32)
		if err != nil {
			return 0, false
		}
		total = d
	} else {
		rest = text
	}
	part := strings.Split(rest, ":")
	if len(part) == 1 {
		s, err := strconv.ParseInt(rest, 10, 64)
		return s, err == nil && !ok && s >= 0
	}
	if len(part) > 3 {
		return 0, false
	}
	hms := int64(0)
	for _, s := range part {
		n, err := strconv.ParseInt(s, 10, 32)
		if err != nil || n < 0 {
			return 0, false
		}
		hms = hms*60 + n
	}
	return total*86400 + hms, true
}

// free reads free. Its header does not say the unit of bare numbers: the flag of
// the command does, where the command stands before; else numbers too large
// for anything else count KiB, and others are left out.
type free struct {
	names []string
	unit  int64
}

func freeHeader(p *parser, text string) table {
	if !strings.HasPrefix(text, "total") {
		return nil
	}
	f := columns(text)
	if len(f) < 3 || f[0] != "total" || f[1] != "used" || f[2] != "free" {
		return nil
	}
	t := &free{names: f}
	cmd := columns(p.command)
	if len(cmd) > 0 && cmd[0] == "free" {
		t.unit = 1 << 10
		for _, flag := range cmd[1:] {
			switch flag {
			case "-b", "--bytes":
				t.unit = 1
			case "-m", "--mebi", "--mega":
				t.unit = mib
			case "-g", "--gibi", "--giga":
				t.unit = 1 << 30
			}
		}
	}
	return t
}

func (t *free) row(p *parser, l line) bool {
	f := columns(l.text)
	if len(f) < 4 || !strings.HasSuffix(f[0], ":") {
		return false
	}
	if f[0] != "Mem:" {
		return true
	}
	unit := t.unit
	if n, err := strconv.ParseInt(f[1], 10, 64); unit == 0 && err == nil && n >= 1<<20 {
		unit = 1 << 10
	}
	attrs := evidence.Attrs{"what": evidence.TextOf("free")}
	set(attrs, "limit", f[1], unit)
	set(attrs, "used", f[2], unit)
	for i, n := range t.names {
		if n == "shared" && i+1 < len(f) {
			set(attrs, "shm", f[i+1], unit)
		}
	}
	if len(attrs) > 1 {
		p.s.Event(p.event(evidence.HostMemReport, l, p.who(), attrs))
	}
	return true
}

func (t *free) end(*parser) {}
