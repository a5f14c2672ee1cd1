package hosttext

import (
	"strconv"
	"strings"

	"github.com/inquest-dev/inquest/internal/evidence"
)

const (
	mib     = 1 << 20
	maxGPUs = 256 // devices of one table that wait for its process list
)

// smi reads the table of plain nvidia-smi, in the widths and labels of drivers
// from 3xx to 6xx. A device takes two or three lines:
//
//	|   0  NVIDIA H100 80GB HBM3          On  |   00000000:3B:00.0 Off |                    0 |
//	| N/A   45C    P0             412W /  700W |   79123MiB /  81559MiB |     98%      Default |
//	|                                         |                        |             Disabled |
//
// and a process one: |    0   N/A  N/A   208585      C   python      79104MiB |. The
// devices are held back until the process list says whether it is empty.
type smi struct {
	gpus      []evidence.Event
	index     int64
	name, bus string
	processes bool // inside the process list
	none      bool // it says that there are none
	listed    bool // it was there
}

func smiHeader(_ *parser, text string) table {
	if strings.HasPrefix(text, "|") && strings.Contains(text, "NVIDIA-SMI ") && strings.Contains(text, "Version:") {
		return &smi{index: evidence.None}
	}
	return nil
}

// first files the versions of the header line.
func (t *smi) first(p *parser, l line) {
	for _, v := range [...]struct{ label, fact string }{{"Driver Version:", "setting.driver_version"}, {"KMD Version:", "setting.driver_version"}, {"CUDA Version:", "setting.driver_cuda"}, {"CUDA UMD Version:", "setting.driver_cuda"}} {
		if _, rest, ok := strings.Cut(l.text, v.label); ok {
			if f := columns(rest); len(f) > 0 && len(f[0]) < 24 && f[0] != "|" {
				p.fact(v.fact, evidence.TextOf(f[0]), l)
			}
		}
	}
}

func (t *smi) row(p *parser, l line) bool {
	text := strings.TrimSpace(l.text)
	switch {
	case text == "" || text[0] == '+':
		return true
	case text[0] != '|':
		return false
	case strings.Contains(text, "===") || strings.Contains(text, "---"):
		return true
	case strings.Contains(text, "Processes:"):
		t.processes, t.listed = true, true
		return true
	case strings.Contains(text, "No running processes found"):
		t.none = true
		return true
	}
	if t.processes {
		t.process(p, l, text)
		return true
	}
	cell := strings.Split(strings.Trim(text, "|"), "|")
	if len(cell) < 3 {
		return true
	}
	first := columns(cell[0])
	if len(first) >= 2 && isBus(cell[1]) {
		if n, err := strconv.ParseInt(first[0], 10, 32); err == nil {
			t.index, t.bus = n, columns(cell[1])[0]
			last := first[len(first)-1]
			if last == "On" || last == "Off" || last == "N/A" {
				first = first[:len(first)-1]
			}
			t.name = strings.Join(first[1:], " ")
			return true
		}
	}
	used, total, ok := strings.Cut(cell[1], "/")
	if t.index < 0 || !ok || !strings.Contains(cell[2], "%") && !strings.Contains(cell[2], "N/A") && !strings.Contains(cell[2], "Default") {
		return true
	}
	attrs := evidence.Attrs{"gpu": evidence.IntOf(t.index), "name": evidence.TextOf(t.name)}
	set(attrs, "used", used, mib)
	set(attrs, "total", total, mib)
	if util := columns(cell[2]); len(util) > 0 {
		percent(attrs, util[0])
	}
	w := p.who()
	w.Device, w.BusID = int(t.index), t.bus
	if len(t.gpus) < maxGPUs {
		t.gpus = append(t.gpus, p.event(evidence.GPUUsage, l, w, attrs))
	}
	t.index = evidence.None
	return true
}

// isBus reports whether a cell begins with a PCI bus id.
func isBus(cell string) bool {
	f := columns(cell)
	return len(f) > 0 && strings.Count(f[0], ":") == 2 && strings.Contains(f[0], ".")
}

func percent(attrs evidence.Attrs, text string) {
	if v, err := strconv.ParseFloat(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(text), "%")), 64); err == nil && v >= 0 && v <= 100 {
		attrs["util"] = evidence.FloatOf(v)
	}
}

// process reads a row of the process list; drivers before 450 have no GI and CI.
func (t *smi) process(p *parser, l line, text string) {
	f := columns(strings.Trim(text, "|"))
	if len(f) < 4 {
		return
	}
	gpu, err := strconv.ParseInt(f[0], 10, 32)
	if err != nil {
		return
	}
	f = f[1:]
	if len(f) > 4 && (f[0] == "N/A" || f[1] == "N/A" || len(f[2]) > 0 && isType(f[3])) && !isType(f[1]) {
		f = f[2:]
	}
	pid, err := strconv.ParseInt(f[0], 10, 32)
	if err != nil || len(f) < 3 || !isType(f[1]) {
		return
	}
	attrs := evidence.Attrs{"gpu": evidence.IntOf(gpu), "pid": evidence.IntOf(pid)}
	name := f[2:]
	if n := len(name); n > 1 {
		if v, ok := size(name[n-1], 0); ok {
			attrs["used"] = v
			name = name[:n-1]
		} else if name[n-1] == "N/A" {
			name = name[:n-1]
		}
	}
	attrs["name"] = evidence.TextOf(strings.Join(name, " "))
	w := p.who()
	w.Device, w.PID = int(gpu), int(pid)
	p.s.Event(p.event(evidence.GPUProcess, l, w, attrs))
}

// isType reports whether s is the type of a process: compute, graphics, MPS.
func isType(s string) bool { return s == "C" || s == "G" || s == "C+G" || s == "M+C" }

func (t *smi) end(p *parser) {
	for _, e := range t.gpus {
		if t.listed {
			e.Attrs["no_processes"] = evidence.BoolOf(t.none)
		}
		p.s.Event(e)
	}
}

// smiLog reads nvidia-smi -q: a tree by indentation, one block for each device.
type smiLog struct {
	bus, name string
	index     int64
	section   string
	attrs     evidence.Attrs
	at        line
	pid       int64
	process   string
}

func smiLogHeader(_ *parser, text string) table {
	if strings.Contains(text, "=NVSMI LOG=") {
		return &smiLog{index: evidence.None, pid: evidence.None}
	}
	return nil
}

func (t *smiLog) row(p *parser, l line) bool {
	text := strings.TrimSpace(l.text)
	if strings.HasPrefix(text, "GPU ") && isBus(text[4:]) && !strings.Contains(text, " : ") {
		t.flush(p)
		t.index++
		t.bus, t.section = text[4:], ""
		return true
	}
	key, value, ok := strings.Cut(text, " : ")
	if !ok {
		if !strings.HasSuffix(text, ":") {
			t.section = text
		}
		return true
	}
	key, value = strings.TrimSpace(key), strings.TrimSpace(value)
	switch {
	case key == "Timestamp":
		if st, ok := date(value); ok {
			p.stamp = st
		}
	case key == "Driver Version":
		p.fact("setting.driver_version", evidence.TextOf(value), l)
	case key == "CUDA Version":
		p.fact("setting.driver_cuda", evidence.TextOf(value), l)
	case key == "Product Name":
		t.name = value
	case t.section == "FB Memory Usage" && (key == "Total" || key == "Used" || key == "Free"):
		if t.attrs == nil {
			t.attrs = evidence.Attrs{"gpu": evidence.IntOf(t.index), "name": evidence.TextOf(t.name)}
		}
		set(t.attrs, strings.ToLower(key), value, mib)
		if key == "Used" {
			t.at = l
		}
	case t.section == "Utilization" && (key == "Gpu" || key == "GPU") && t.attrs != nil:
		percent(t.attrs, value)
	case key == "Processes" && value == "None" && t.attrs != nil:
		t.attrs["no_processes"] = evidence.BoolOf(true)
	case key == "Process ID":
		if n, err := strconv.ParseInt(value, 10, 32); err == nil {
			t.pid, t.process = n, ""
		}
	case key == "Name" && t.pid >= 0:
		t.process = value
	case key == "Used GPU Memory" && t.pid >= 0:
		attrs := evidence.Attrs{"gpu": evidence.IntOf(t.index), "pid": evidence.IntOf(t.pid), "name": evidence.TextOf(t.process)}
		set(attrs, "used", value, mib)
		w := p.who()
		w.Device, w.BusID, w.PID = int(t.index), t.bus, int(t.pid)
		p.s.Event(p.event(evidence.GPUProcess, l, w, attrs))
		t.pid = evidence.None
	}
	return true
}

func (t *smiLog) flush(p *parser) {
	if t.attrs != nil && t.at.num > 0 {
		w := p.who()
		w.Device, w.BusID = int(t.index), t.bus
		p.s.Event(p.event(evidence.GPUUsage, t.at, w, t.attrs))
	}
	t.attrs, t.at, t.pid = nil, line{}, evidence.None
}

func (t *smiLog) end(p *parser) { t.flush(p) }

// smiQuery reads the output of --query-gpu and --query-compute-apps as CSV. The
// header repeats the request, with the unit in brackets, and rows keep the
// order; several such tables may follow each other.
type smiQuery struct {
	names []string
	units []int64
	apps  bool
}

// queryNames are the fields that make a header sure.
var queryNames = map[string]bool{
	"timestamp": true, "index": true, "name": true, "gpu_name": true, "uuid": true, "gpu_uuid": true, "pci.bus_id": true, "gpu_bus_id": true, "gpu_serial": true, "serial": true, "count": true, "driver_version": true,
	"pid": true, "process_name": true, "used_gpu_memory": true, "used_memory": true, "pstate": true, "temperature.gpu": true, "temperature.memory": true, "power.draw": true, "power.limit": true, "fan.speed": true,
	"memory.total": true, "memory.used": true, "memory.free": true, "memory.reserved": true, "utilization.gpu": true, "utilization.memory": true, "compute_mode": true, "mig.mode.current": true,
	"clocks.sm": true, "clocks.mem": true, "clocks.gr": true, "clocks.current.sm": true, "clocks.current.memory": true,
}

func smiQueryHeader(_ *parser, text string) table {
	if !strings.Contains(text, ",") || len(text) > 4096 {
		return nil
	}
	t := &smiQuery{}
	memory := false
	for _, c := range strings.Split(text, ",") {
		name, unit, _ := strings.Cut(strings.TrimSpace(c), " ")
		if !queryNames[name] && !strings.HasPrefix(name, "ecc.") && !strings.HasPrefix(name, "clocks_") && !strings.HasPrefix(name, "remapped_rows.") && !strings.HasPrefix(name, "pcie.") {
			return nil
		}
		u := int64(mib)
		switch strings.Trim(unit, "[]") {
		case "KiB":
			u = 1 << 10
		case "B":
			u = 1
		}
		t.names, t.units = append(t.names, name), append(t.units, u)
		memory = memory || strings.HasPrefix(name, "memory.") || strings.HasPrefix(name, "used_") || strings.HasPrefix(name, "utilization.") || name == "pci.bus_id"
		t.apps = t.apps || name == "pid"
	}
	if !memory || len(t.names) < 2 {
		return nil
	}
	return t
}

func (t *smiQuery) row(p *parser, l line) bool {
	cell := strings.Split(l.text, ",")
	if len(cell) != len(t.names) {
		return false
	}
	attrs := evidence.Attrs{}
	w := p.who()
	stamp := p.stamp
	for i, n := range t.names {
		v := strings.TrimSpace(cell[i])
		if v == "" || v[0] == '[' || v == "N/A" {
			continue
		}
		switch n {
		case "timestamp":
			if st, ok := date(v); ok {
				st.Host = p.host
				stamp = st
			}
		case "index":
			setInt(attrs, "gpu", v)
			if g, ok := attrs["gpu"]; ok && g.I >= 0 && g.I < 1<<16 {
				w.Device = int(g.I)
			}
		case "pid":
			setInt(attrs, "pid", v)
			if g, ok := attrs["pid"]; ok && g.I >= 0 && g.I < 1<<31 {
				w.PID = int(g.I)
			}
		case "pci.bus_id", "gpu_bus_id":
			w.BusID = v
		case "process_name":
			attrs["name"] = evidence.TextOf(v)
		case "name", "gpu_name":
			if !t.apps {
				attrs["name"] = evidence.TextOf(v)
			}
		case "used_gpu_memory", "used_memory", "memory.used":
			set(attrs, "used", v, t.units[i])
		case "memory.total":
			if !t.apps {
				set(attrs, "total", v, t.units[i])
			}
		case "memory.free":
			if !t.apps {
				set(attrs, "free", v, t.units[i])
			}
		case "utilization.gpu":
			if !t.apps {
				percent(attrs, v)
			}
		}
	}
	kind := evidence.GPUUsage
	if t.apps {
		kind = evidence.GPUProcess
		if !attrs["pid"].Valid() {
			return false
		}
	}
	if len(attrs) == 0 {
		return false
	}
	e := p.event(kind, l, w, attrs)
	e.Stamp = stamp
	p.s.Event(e)
	return true
}

func (t *smiQuery) end(*parser) {}
