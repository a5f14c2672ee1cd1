package nvsmi

import (
	"strings"

	"github.com/inquest-dev/inquest/internal/format/textline"
)

// A table is plain nvidia-smi. Its widths and labels changed with the drivers;
// what a cell holds did not, so cells are read by what is in them:
//
//	| NVIDIA-SMI 550.54.15    Driver Version: 550.54.15    CUDA Version: 12.4 |
//	|   0  NVIDIA H100 80GB HBM3          On  |   00000000:3B:00.0 Off |                    0 |
//	| N/A   45C    P0             412W /  700W |   79123MiB /  81559MiB |     98%      Default |
//	|                                         |                        |             Disabled |
//
// The third line of a device came with 450 (MIG), the wide form with 53x; from
// 610 on the labels are KMD Version and CUDA UMD Version. A process row is
// |    0   N/A  N/A   208585      C   python      79104MiB |, before 450 without the
// two MIG columns. Devices are held back until the list of processes says whether
// it is empty.
type table struct {
	out     Out
	devices []Device
	cur     Device
	rows    int // lines of the current device so far
	part    int // head, devices, slices, processes
	listed  bool
	empty   bool
}

const (
	inHead = iota
	inDevices
	inSlices
	inProcesses
)

func smiTable(_ textline.Line, text string, out Out) Table {
	if strings.HasPrefix(text, "|") && strings.Contains(text, "NVIDIA-SMI ") && strings.Contains(text, "Version:") {
		return &table{out: out, cur: newDevice()}
	}
	return nil
}

func (t *table) Line(l textline.Line) Class {
	text := strings.TrimSpace(l.Text)
	switch {
	case text == "":
		return Blank
	case text[0] == '+':
		t.finish()
		return Rule
	case text[0] != '|':
		return Foreign
	case strings.Contains(text, "==="):
		if t.part == inHead {
			t.part = inDevices
		}
		return Rule
	case strings.Contains(text, "---"):
		return Rule
	case strings.Contains(text, "NVIDIA-SMI "):
		if t.part != inHead {
			return Foreign // another table begins
		}
		t.versions(l)
		return Header
	case strings.Contains(text, "Processes:"):
		t.finish()
		t.part, t.listed = inProcesses, true
		return Header
	case strings.Contains(text, "No running processes found"):
		t.empty = true
		return Note
	case strings.Contains(text, "MIG devices:"):
		t.finish()
		t.part = inSlices
		return Header
	case strings.Contains(text, "No MIG devices found"):
		return Note
	}
	cell := strings.Split(strings.Trim(text, "|"), "|")
	switch t.part {
	case inDevices:
		return t.device(l, cell)
	case inSlices:
		return t.slice(l, cell)
	case inProcesses:
		return t.process(l, text)
	}
	return Header
}

func (t *table) versions(l textline.Line) {
	for _, v := range [...]struct{ label, of string }{{"Driver Version:", "driver"}, {"KMD Version:", "driver"}, {"CUDA Version:", "cuda"}, {"CUDA UMD Version:", "cuda"}} {
		if _, rest, ok := strings.Cut(l.Text, v.label); ok {
			if f := strings.Fields(rest); len(f) > 0 && len(f[0]) < 24 && f[0] != "|" && f[0] != "N/A" && unreadable(f[0]) == "" {
				t.out.Version(Version{v.of, f[0], l})
			}
		}
	}
}

// device takes one of the lines of a device.
func (t *table) device(l textline.Line, cell []string) Class {
	if len(cell) < 3 {
		return Foreign
	}
	if t.first(l, cell) {
		return Row
	}
	if t.rows == 0 {
		return Foreign
	}
	t.rows++
	d := &t.cur
	if t.rows == 2 {
		t.second(l, cell)
		return Row
	}
	if mode := strings.TrimSpace(cell[2]); t.rows == 3 && strings.TrimSpace(cell[0]) == "" {
		if mode == "Enabled" || mode == "Disabled" {
			d.MIG = mode
		}
		d.bad("mig mode", mode, l)
		return Row
	}
	return Foreign
}

// first reads index, name, persistence mode, bus id and volatile ECC errors.
func (t *table) first(l textline.Line, cell []string) bool {
	left, mid := strings.Fields(cell[0]), strings.Fields(cell[1])
	if len(left) < 2 || len(mid) == 0 || !IsBus(mid[0]) || textline.Small(left[0]) == None {
		return false
	}
	t.finish()
	t.cur, t.rows = newDevice(), 1
	d := &t.cur
	d.Index, d.BusID, d.At = textline.Small(left[0]), mid[0], l
	name := left[1:]
	switch last := name[len(name)-1]; last {
	case "On", "Off":
		d.Persistence = last
		name = name[:len(name)-1]
	case "N/A", "ERR!", "WDDM", "TCC", "MCDM": // Windows has the driver model there
		name = name[:len(name)-1]
	}
	d.Name = strings.Join(name, " ")
	if d.bad("name", d.Name, l) {
		d.Name = ""
	}
	ecc := strings.TrimSpace(cell[2])
	d.Volatile = textline.Count(ecc)
	d.counter("ecc-volatile-uncorrectable", ecc, l)
	d.bad("ecc errors", ecc, l)
	return true
}

// leftNames are the values of the second line's first cell, in order.
var leftNames = [...]string{"fan", "temperature", "performance state", "power"}

// second reads fan, temperature, power, memory and utilisation.
func (t *table) second(l textline.Line, cell []string) {
	d := &t.cur
	d.At = l
	used, total, _ := strings.Cut(cell[1], "/")
	d.Used, d.Total = sizeOf(used, mib), sizeOf(total, mib)
	d.bad("memory", strings.TrimSpace(used), l)
	left, power, _ := strings.Cut(cell[0], " /")
	d.Cap = number(power, "W")
	f := strings.Fields(left)
	for i, v := range f {
		switch {
		case strings.HasSuffix(v, "C") && i < 3:
			d.Temp = number(v, "C")
		case i == 2 && len(v) < 4 && v[0] == 'P':
			d.PState = v
		case strings.HasSuffix(v, "W"):
			d.Power = number(v, "W")
		case i < len(leftNames):
			d.bad(leftNames[i], v, l)
		}
	}
	d.bad("power limit", strings.TrimSpace(power), l)
	if u := strings.Fields(cell[2]); len(u) > 0 {
		d.Util = percent(u[0])
		d.bad("utilization", u[0], l)
	}
}

// bad notes a value that could not be read, one state for all of a device.
func (d *Device) bad(what, v string, l textline.Line) bool {
	kind := unreadable(v)
	if kind == "" {
		return false
	}
	for i := range d.States {
		if s := &d.States[i]; s.What == kind {
			s.Count++
			if len(s.Text) < maxValue {
				s.Text += ", " + what
			}
			return true
		}
	}
	d.state(kind, 1, v+": "+what, l)
	return true
}

// counter notes a count above zero.
func (d *Device) counter(what, v string, l textline.Line) {
	if n := textline.Count(v); n > 0 {
		d.state(what, n, v, l)
	}
}

func percent(v string) float64 {
	f := number(v, "%")
	if f < 0 || f > 100 {
		return newDevice().Util
	}
	return f
}

// slice reads the first line of a MIG instance:
//
//	|  0    1   0   0  |     11MiB / 20096MiB | 42      0 |  3   0    2    0    0 |
func (t *table) slice(l textline.Line, cell []string) Class {
	if len(cell) < 3 {
		return Header
	}
	f := strings.Fields(cell[0])
	if len(f) == 0 && strings.Contains(cell[1], "/") {
		return Row // the BAR1 memory of the instance above
	}
	if len(f) != 4 || textline.Small(f[0]) == None || textline.Small(f[3]) == None {
		return Header
	}
	used, total, _ := strings.Cut(cell[1], "/")
	d := newDevice()
	d.Index, d.Slice, d.At = textline.Small(f[0]), "gi "+f[1]+" ci "+f[2]+" dev "+f[3], l
	d.GI, d.CI = textline.Small(f[1]), textline.Small(f[2])
	d.Used, d.Total = sizeOf(used, mib), sizeOf(total, mib)
	if v := strings.Fields(cell[2]); len(v) > 1 {
		d.Volatile = textline.Count(v[1])
		d.counter("ecc-volatile-uncorrectable", v[1], l)
	}
	t.keep(d)
	return Row
}

func (t *table) process(l textline.Line, text string) Class {
	f := strings.Fields(strings.Trim(text, "|"))
	if len(f) < 4 || textline.Small(f[0]) == None {
		return Header
	}
	p := newProcess(l)
	p.GPU = textline.Small(f[0])
	f = f[1:]
	if len(f) > 4 && !isType(f[1]) && isType(f[3]) {
		p.GI, p.CI = textline.Small(f[0]), textline.Small(f[1])
		f = f[2:]
	}
	p.PID = textline.Small(f[0])
	if p.PID == None || len(f) < 3 || !isType(f[1]) {
		return Foreign
	}
	p.Type = f[1]
	name := f[2:]
	if n := len(name); n > 1 {
		if b, ok := textline.Size(name[n-1], 0); ok {
			p.Used, name = b, name[:n-1]
		} else if name[n-1] == "N/A" {
			name = name[:n-1]
		}
	}
	p.Name = strings.Join(name, " ")
	t.out.Process(p)
	return Row
}

// isType reports whether s is the type of a process: compute, graphics, MPS.
func isType(s string) bool { return s == "C" || s == "G" || s == "C+G" || s == "M+C" || s == "M" }

// finish puts the current device with the others.
func (t *table) finish() {
	if t.rows > 0 {
		t.keep(t.cur)
	}
	t.rows = 0
}

func (t *table) keep(d Device) {
	if len(t.devices) == maxPending {
		t.flush()
	}
	t.devices = append(t.devices, d)
}

func (t *table) flush() {
	for _, d := range t.devices {
		d.Listed, d.Empty = t.listed, t.empty
		t.out.Device(d)
	}
	t.devices = nil
}

func (t *table) End() {
	t.finish()
	t.flush()
}
