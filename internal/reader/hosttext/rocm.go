package hosttext

import (
	"strconv"
	"strings"

	"github.com/inquest-dev/inquest/internal/evidence"
)

// rocm reads rocm-smi: the concise table, which states memory as a percentage
// only, and the lines of --showmeminfo vram:
//
//	GPU[0]		: VRAM Total Memory (B): 206141652992
//	GPU[0]		: VRAM Total Used Memory (B): 296853504
type rocm struct {
	util int // column of GPU% counted from the end, 0 before the header
	gpu  int64
	at   line
	size evidence.Attrs
}

func rocmHeader(_ *parser, text string) table {
	if strings.HasPrefix(text, "=") && strings.Contains(text, "ROCm System Management Interface") {
		return &rocm{gpu: evidence.None}
	}
	return nil
}

func (t *rocm) row(p *parser, l line) bool {
	text := strings.TrimSpace(l.text)
	if rest, ok := strings.CutPrefix(text, "GPU["); ok {
		t.memory(p, l, rest)
		return true
	}
	f := columns(text)
	switch {
	case strings.HasPrefix(text, "="):
	case (f[0] == "Device" || f[0] == "GPU") && strings.Contains(text, "GPU%"):
		for i, c := range f {
			if c == "GPU%" {
				t.util = len(f) - i
			}
		}
	case t.util > 0 && len(f) > 6:
		gpu, err := strconv.ParseInt(f[0], 10, 32)
		if err != nil {
			break
		}
		attrs := evidence.Attrs{"gpu": evidence.IntOf(gpu)}
		if n := len(f) - t.util; n > 0 {
			percent(attrs, f[n])
		}
		w := p.who()
		w.Device = int(gpu)
		p.s.Event(p.event(evidence.GPUUsage, l, w, attrs))
	}
	return true
}

// memory reads a line of --showmeminfo; rest is what follows "GPU[".
func (t *rocm) memory(p *parser, l line, rest string) {
	index, rest, ok := strings.Cut(rest, "]")
	gpu, err := strconv.ParseInt(index, 10, 32)
	if !ok || err != nil {
		return
	}
	name := ""
	switch {
	case strings.Contains(rest, "VRAM Total Memory (B):"):
		name = "total"
	case strings.Contains(rest, "VRAM Total Used Memory (B):"):
		name = "used"
	default:
		return
	}
	if gpu != t.gpu {
		t.flush(p)
		t.gpu, t.size = gpu, evidence.Attrs{"gpu": evidence.IntOf(gpu)}
	}
	set(t.size, name, rest[strings.LastIndexByte(rest, ':')+1:], 1)
	t.at = l
}

func (t *rocm) flush(p *parser) {
	if len(t.size) > 1 {
		w := p.who()
		w.Device = int(t.gpu)
		p.s.Event(p.event(evidence.GPUUsage, t.at, w, t.size))
	}
	t.size = nil
}

func (t *rocm) end(p *parser) { t.flush(p) }
