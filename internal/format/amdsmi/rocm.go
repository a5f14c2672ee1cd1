package amdsmi

import (
	"strings"

	"github.com/inquest-dev/inquest/internal/format/textline"
)

// A rocm is rocm-smi as text: the concise table, whose columns changed with the
// releases and whose memory is a percentage, and the list of -a and the --show
// options, one value a line. One log may hold both; what it says of a device is
// handed over at its end.
//
//	=============== ROCm System Management Interface ===============
//	======================= Concise Info ==========================
//	Device  [Model : Revision]    Temp        Power     ...  PwrCap  VRAM%  GPU%
//	0       [0x74a1 : 0x00]       35.0°C      133.0W    ...  750.0W    0%   0%
//	        AMD Instinct MI300X
//	GPU[0]		: VRAM Total Used Memory (B): 296853504
type rocm struct {
	out     Out
	devices []*Device
	row     *Device  // of the concise table, whose second line gives its name
	concise bool     // below the head of the concise table
	util    int      // column of GPU% counted from the end, 0 before the header
	columns []string // of the table of processes, nil outside it
	ended   bool
}

func rocmText(text string, out Out) Table {
	if strings.HasPrefix(text, "=") && strings.Contains(text, "ROCm System Management Interface") {
		return &rocm{out: out}
	}
	return nil
}

func (t *rocm) device(index int, l textline.Line) *Device {
	for _, d := range t.devices {
		if d.Index == index {
			return d
		}
	}
	d := newDevice(index, l)
	if len(t.devices) < maxDevices {
		t.devices = append(t.devices, d)
	}
	return d
}

func (t *rocm) Line(l textline.Line) Class {
	text := strings.TrimSpace(l.Text)
	switch {
	case text == "":
		return Blank
	case strings.HasPrefix(text, "==="):
		return t.title(text)
	case t.ended:
		return Foreign
	case strings.Trim(text, "-") == "":
		return Rule
	}
	if rest, ok := strings.CutPrefix(text, "GPU["); ok {
		return t.value(rest, l)
	}
	if t.columns != nil {
		return t.process(l)
	}
	if v, ok := strings.CutPrefix(text, "Driver version: "); ok {
		t.out.Version("driver", v, l)
		return Field
	}
	if t.concise {
		return t.conciseLine(text, l)
	}
	if strings.HasPrefix(text, "PID ") && strings.Contains(text, "PROCESS NAME") {
		t.columns = tabbed(text)
		return Header
	}
	return t.words(text, l)
}

func (t *rocm) title(text string) Class {
	title := strings.TrimSpace(strings.Trim(text, "="))
	if title == "" {
		t.row = nil
		return Rule
	}
	if strings.Contains(title, "ROCm System Management Interface") && len(t.devices) > 0 && t.ended {
		return Foreign // another log
	}
	t.concise, t.columns, t.util = title == "Concise Info", nil, 0
	t.ended = strings.HasPrefix(title, "End of ROCm SMI Log")
	return Header
}

// words takes the lines that are neither of a device nor of a table.
func (t *rocm) words(text string, l textline.Line) Class {
	f := strings.Fields(text)
	switch {
	case len(f) == 4 && f[0] != "Block" && textline.Count(f[2]) != None && textline.Count(f[3]) != None && len(t.devices) > 0:
		// A block of --showrasinfo: its correctable and uncorrectable errors.
		d := t.devices[len(t.devices)-1]
		d.Uncorrectable = max(d.Uncorrectable, 0) + textline.Count(f[3])
		d.counter("ecc-volatile-uncorrectable", f[3], l)
		d.counter("ecc-volatile-correctable", f[2], l)
		return Row
	case len(f) == 6 && f[0] == "Block":
		return Header
	case strings.HasPrefix(text, "PID ") && strings.Contains(text, " is using "), strings.HasSuffix(text, "information:"):
		return Note
	case strings.Contains(text, "ot supported on the given system"), strings.HasPrefix(text, "WARNING:"), strings.HasPrefix(text, "ERROR:"), strings.HasPrefix(text, "No "):
		return Note
	case strings.Trim(text, "0123456789 ") == "":
		return Note // the devices of the process above
	}
	return Foreign
}

// conciseLine reads the head of the concise table, the row of a device, or the
// line below it with its name.
func (t *rocm) conciseLine(text string, l textline.Line) Class {
	f := strings.Fields(text)
	if strings.Contains(text, "GPU%") && (f[0] == "Device" || f[0] == "GPU") {
		for i, c := range f {
			if c == "GPU%" {
				t.util = len(f) - i
			}
		}
		return Header
	}
	if t.util == 0 {
		return t.words(text, l)
	}
	index := textline.Small(f[0])
	if index == None || len(f) < 7 || len(f) < t.util {
		if t.row != nil && !strings.Contains(text, "%") {
			t.row.Name = text
			t.row = nil
			return Row
		}
		if len(t.devices) == 0 {
			return Header // the second line of the head
		}
		return t.words(text, l)
	}
	d := t.device(index, l)
	watts := 0
	for _, c := range f[1:] {
		switch {
		case strings.HasSuffix(c, "W"):
			if watts++; watts == 1 {
				d.Power = number(c)
			} else {
				d.Cap = number(c)
			}
		case strings.HasSuffix(c, "C") || strings.HasSuffix(c, "c"):
			d.Temp = number(c)
		}
	}
	d.Util = percent(f[len(f)-t.util])
	if i := len(f) - t.util - 1; i > 0 && strings.HasSuffix(f[i], "%") {
		d.UsedPercent = percent(f[i])
	}
	t.row = d
	return Row
}

// value reads a line of a device; rest is what follows "GPU[".
func (t *rocm) value(rest string, l textline.Line) Class {
	index, rest, ok := strings.Cut(rest, "]")
	if !ok || textline.Small(index) == None {
		return Foreign
	}
	rest = strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(rest), ":"))
	d := t.device(textline.Small(index), l)
	key, v, ok := strings.Cut(rest, ": ")
	if !ok {
		return Note // "Not supported", the title of a list
	}
	d.field(keyOf(key), "", strings.TrimSpace(v), l)
	return Field
}

// process reads a row of the table of processes; its columns are parted by tabs.
func (t *rocm) process(l textline.Line) Class {
	f := tabbed(l.Text)
	if len(f) < 3 || textline.Small(f[0]) == None {
		return t.words(strings.TrimSpace(l.Text), l)
	}
	p := Process{GPU: None, PID: textline.Small(f[0]), Used: textline.NoBytes, At: l}
	for i, n := range t.columns {
		if i >= len(f) {
			break
		}
		switch n {
		case "PROCESS NAME":
			p.Name = f[i]
		case "VRAM USED":
			p.Used = size(f[i], 1)
		}
	}
	t.out.Process(p)
	return Row
}

// tabbed splits at tabs.
func tabbed(text string) []string {
	f := strings.Split(strings.Trim(text, "\t "), "\t")
	for i := range f {
		f[i] = strings.TrimSpace(f[i])
	}
	return f
}

func (t *rocm) End() {
	for _, d := range t.devices {
		t.out.Device(*d)
	}
	t.devices = nil
}

// A csvRows is the --csv form of rocm-smi (device,...; card0,...) and of amd-smi
// (gpu,...; 0,...). An amd-smi list of processes has a column pid.
type csvRows struct {
	out   Out
	names []string
	first bool
}

func csvTable(text string, out Out) Table {
	if !strings.Contains(text, ",") || len(text) > 16<<10 {
		return nil
	}
	names := strings.Split(text, ",")
	gpu, known := false, 0
	probe := newDevice(None, textline.Line{})
	for i, n := range names {
		names[i] = keyOf(n)
		switch names[i] {
		case "device", "gpu":
			gpu = true
		case "pid", "vram_mem":
			known++
		default:
			if probe.field(names[i], "", "0", textline.Line{}) {
				known++
			}
		}
	}
	if !gpu || known == 0 || known == 1 && names[0] == "timestamp" || names[0] != "device" && names[0] != "gpu" && names[0] != "timestamp" {
		return nil
	}
	return &csvRows{out: out, names: names, first: true}
}

func (t *csvRows) Line(l textline.Line) Class {
	text := strings.TrimSpace(l.Text)
	if text == "" {
		return Blank
	}
	if t.first {
		t.first = false
		return Header
	}
	cell := strings.Split(text, ",")
	if len(cell) != len(t.names) {
		return Foreign
	}
	d, p := newDevice(None, l), Process{GPU: None, PID: None, Used: textline.NoBytes, At: l}
	for i, n := range t.names {
		v := strings.TrimSpace(cell[i])
		switch n {
		case "device", "gpu":
			d.Index = textline.Small(strings.TrimPrefix(v, "card"))
		case "timestamp":
			d.Taken = v
		default:
			d.field(n, "", v, l)
			p.field(n, v, l)
		}
	}
	if cell[0] == "system" {
		return Field
	}
	if d.Index == None {
		return Foreign
	}
	if p.GPU = d.Index; p.PID != None {
		t.out.Process(p)
		return Row
	}
	t.out.Device(*d)
	return Row
}

func (t *csvRows) End() {}
