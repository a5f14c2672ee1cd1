package nvsmi

import (
	"strings"

	"github.com/inquest-dev/inquest/internal/format/textline"
)

// A listing is nvidia-smi -L, or nvlink -s, -e and -c: devices, and below each its
// MIG instances or its links.
//
//	GPU 0: NVIDIA A100-SXM4-80GB (UUID: GPU-5c89852c-...)
//	  MIG 3g.40gb     Device  0: (UUID: MIG-2cd1c1a1-...)
//		 Link 0: 25 GB/s
//		 Link 0: CRC Errors: 0
type listing struct {
	out      Out
	cur      Device
	open     bool
	inactive int64
	at       textline.Line
}

func list(_ textline.Line, text string, out Out) Table {
	if _, ok := listed(text); ok {
		return &listing{out: out}
	}
	return nil
}

// listed reads the line of a device.
func listed(text string) (Device, bool) {
	rest, ok := strings.CutPrefix(text, "GPU ")
	if !ok {
		return Device{}, false
	}
	index, rest, ok := strings.Cut(rest, ": ")
	name, uuid, has := strings.Cut(rest, " (UUID: ")
	if !ok || !has || textline.Small(index) == None || !strings.HasSuffix(uuid, ")") {
		return Device{}, false
	}
	d := newDevice()
	d.Index, d.Name, d.UUID = textline.Small(index), name, strings.TrimSuffix(uuid, ")")
	return d, true
}

func (t *listing) Line(l textline.Line) Class {
	text := strings.TrimSpace(l.Text)
	if text == "" {
		return Blank
	}
	if d, ok := listed(text); ok {
		t.End()
		t.cur, t.open, t.inactive = d, true, 0
		t.cur.At = l
		return Row
	}
	if !t.open {
		return Foreign
	}
	if rest, ok := strings.CutPrefix(text, "MIG "); ok {
		return t.slice(rest, l)
	}
	rest, ok := strings.CutPrefix(text, "Link ")
	if !ok {
		if strings.HasPrefix(text, "NVML: Unable to retrieve NVLink information") {
			t.cur.state("nvlink-inactive", None, "all", l)
			return Note
		}
		return Foreign
	}
	number, value, ok := strings.Cut(rest, ": ")
	if !ok {
		number, value, ok = strings.Cut(rest, ", ")
	}
	if !ok || textline.Small(number) == None {
		return Foreign
	}
	if value == "<inactive>" {
		t.inactive++
		t.at = l
		return Row
	}
	if kind, n, ok := strings.Cut(value, ": "); ok && strings.HasSuffix(kind, "Errors") && textline.Count(n) > 0 {
		t.cur.state("nvlink-"+strings.ToLower(strings.TrimSuffix(kind, " Errors")), textline.Count(n), "link "+number+": "+n, l)
	}
	return Row
}

func (t *listing) slice(rest string, l textline.Line) Class {
	profile, rest, ok := strings.Cut(rest, " ")
	_, uuid, has := strings.Cut(rest, "(UUID: ")
	if !ok || !has {
		return Foreign
	}
	d := newDevice()
	d.Index, d.Slice, d.UUID, d.Name, d.At = t.cur.Index, profile, strings.TrimSuffix(uuid, ")"), t.cur.Name, l
	t.out.Device(d)
	return Row
}

func (t *listing) End() {
	if !t.open {
		return
	}
	if t.inactive > 0 {
		t.cur.state("nvlink-inactive", t.inactive, "<inactive>", t.at)
	}
	t.out.Device(t.cur)
	t.open = false
}

// A matrix is nvidia-smi topo -m: how each device reaches each other one. Columns
// are parted by tabs; a legend follows.
//
//		GPU0	GPU1	NIC0	CPU Affinity	NUMA Affinity
//	GPU0	 X 	NV18	PIX	0-55	0
type matrix struct {
	out    Out
	names  []string
	legend bool
}

func topology(_ textline.Line, text string, out Out) Table {
	if strings.HasPrefix(text, "GPU0") && (strings.Contains(text, "CPU Affinity") || strings.HasPrefix(text, "GPU0\tGPU1")) && !strings.Contains(text, " X ") {
		return &matrix{out: out}
	}
	return nil
}

// tabbed splits at tabs, or, where an editor replaced those, at runs of two blanks.
func tabbed(text string) []string {
	text = strings.TrimSpace(text)
	if strings.Contains(text, "\t") {
		f := strings.Split(text, "\t")
		out := f[:0]
		for _, c := range f {
			if c = strings.TrimSpace(c); c != "" {
				out = append(out, c)
			}
		}
		return out
	}
	var out []string
	for _, c := range strings.Split(text, "  ") {
		if c = strings.TrimSpace(c); c != "" {
			out = append(out, c)
		}
	}
	return out
}

func (t *matrix) Line(l textline.Line) Class {
	text := strings.TrimSpace(l.Text)
	switch {
	case text == "":
		return Blank
	case t.names == nil:
		t.names = tabbed(text)
		return Header
	case text == "Legend:" || text == "NIC Legend:":
		t.legend = true
		return Header
	case t.legend:
		if strings.Contains(text, " = ") || strings.HasPrefix(text, "NIC") && strings.Contains(text, ": ") {
			return Note
		}
		return Foreign
	}
	f := tabbed(text)
	if len(f) < 2 {
		return Foreign
	}
	gpu, ok := strings.CutPrefix(f[0], "GPU")
	if !ok || textline.Small(gpu) == None {
		for _, n := range t.names {
			if n == f[0] {
				return Row // a network card's row: the column says it too
			}
		}
		return Foreign
	}
	d := newDevice()
	d.Index, d.At = textline.Small(gpu), l
	var links []string
	for i, n := range t.names {
		if i+1 >= len(f) {
			break
		}
		switch v := f[i+1]; {
		case v == "X":
		case n == "CPU Affinity":
			d.CPUs = v
		case n == "NUMA Affinity":
			d.NUMA = v
		case n == "GPU NUMA ID":
		case len(links) < 64:
			links = append(links, n+":"+v)
		}
	}
	d.Links = strings.Join(links, " ")
	t.out.Device(d)
	return Row
}

func (t *matrix) End() {}

// messages are the one-line errors of nvidia-smi, and of the NVML below it.
var messages = [...]struct{ text, what string }{
	{"GPU is lost", "gpu-lost"},
	{"Unable to determine the device handle for", "no-device-handle"},
	{"No devices were found", "no-devices"},
	{"couldn't communicate with the NVIDIA driver", "no-driver"},
	{"Driver/library version mismatch", "driver-library-mismatch"},
	{"Failed to initialize NVML", "nvml-init"},
	{"infoROM is corrupted at gpu", "inforom-corrupt"},
}

// message hands over a one-line error.
func message(l textline.Line, text string, out Out) bool {
	if strings.HasPrefix(text, "NVML library version:") {
		return true // the second line of a mismatch
	}
	for _, m := range messages {
		i := strings.Index(text, m.text)
		if i < 0 || len(text) > 400 {
			continue
		}
		switch m.what {
		case "no-devices":
			if strings.TrimSuffix(text, ".") != m.text {
				continue
			}
		case "nvml-init", "no-device-handle":
			if i != 0 {
				continue
			}
		case "gpu-lost":
			if !strings.HasPrefix(text, "Unable to determine the device handle for") && i != 0 {
				continue
			}
		case "no-driver":
			if !strings.HasPrefix(text, "NVIDIA-SMI has failed") {
				continue
			}
		case "driver-library-mismatch":
			if !strings.HasPrefix(text, "Failed to initialize NVML") {
				continue
			}
		}
		out.Trouble(trouble(m.what, text, l))
		return true
	}
	return false
}

// trouble reads the device that a message names: "GPU0000:5D:00.0", "GPU2:
// 0000:5D:00.0", "gpu 0000:3B:00.0".
func trouble(what, text string, l textline.Line) Trouble {
	t := Trouble{What: what, GPU: None, At: l}
	for _, w := range strings.Fields(text) {
		w = strings.TrimRight(w, ":,.")
		rest, named := strings.CutPrefix(w, "GPU")
		switch {
		case IsBus(rest):
			t.BusID = rest
			return t
		case named && textline.Small(rest) != None:
			t.GPU = textline.Small(rest)
		}
	}
	return t
}
