package amdsmi

import (
	"strings"

	"github.com/inquest-dev/inquest/internal/format/textline"
)

// A tree is amd-smi's text: one block for each device, sections by indentation.
//
//	GPU: 0
//	    MEM_USAGE:
//	        TOTAL_VRAM: 196592 MB
//	    PROCESS_INFO:
//	        NAME: python3
//	        PID: 4711
//	        MEMORY_USAGE:
//	            VRAM_MEM: 2.0 GB
type tree struct {
	out   Out
	cur   *Device
	proc  Process
	inPID bool
	path  []section
}

type section struct {
	indent int
	key    string
}

const maxDepth = 16

func treeText(text string, out Out) Table {
	if n, ok := strings.CutPrefix(text, "GPU: "); ok && textline.Small(n) != None {
		return &tree{out: out}
	}
	return nil
}

func (t *tree) Line(l textline.Line) Class {
	text := strings.TrimSpace(l.Text)
	if text == "" {
		return Blank
	}
	indent := len(l.Text) - len(strings.TrimLeft(l.Text, " "))
	if n, ok := strings.CutPrefix(text, "GPU: "); ok && indent == 0 && textline.Small(n) != None {
		t.End()
		t.cur, t.path = newDevice(textline.Small(n), l), nil
		return Header
	}
	if t.cur == nil || indent == 0 {
		return Foreign
	}
	for len(t.path) > 0 && t.path[len(t.path)-1].indent >= indent {
		t.path = t.path[:len(t.path)-1]
	}
	key, v, ok := strings.Cut(text, ":")
	if !ok {
		return Note
	}
	key, v = keyOf(key), strings.TrimSpace(v)
	above := ""
	if n := len(t.path); n > 0 {
		above = t.path[n-1].key
	}
	t.field(key, above, v, l)
	if v == "" {
		if len(t.path) < maxDepth {
			t.path = append(t.path, section{indent, key})
		}
		return Header
	}
	return Field
}

// field takes one value; an empty one opens a section.
func (t *tree) field(key, section, v string, l textline.Line) {
	if key == "process_info" {
		t.endProcess()
		if v == "" {
			t.proc, t.inPID = Process{GPU: t.cur.Index, PID: None, Used: textline.NoBytes, At: l}, true
		}
		return
	}
	if t.inPID {
		t.proc.field(key, v, l)
		return
	}
	switch section {
	case "ecc_blocks", "total_gtt":
		return
	case "vram":
		if key == "size" {
			t.cur.Total, t.cur.stated = size(v, mib), true
		}
	}
	t.cur.field(key, section, v, l)
}

func (t *tree) endProcess() {
	if t.inPID && t.proc.PID != None {
		t.out.Process(t.proc)
	}
	t.inPID = false
}

func (t *tree) End() {
	t.endProcess()
	if t.cur != nil && t.cur.stated { // a list of processes says nothing of the device
		t.out.Device(*t.cur)
	}
	t.cur = nil
}

// A watch is amd-smi monitor: names above columns, values with units behind a blank.
//
//	GPU  POWER   GPU_TEMP   MEM_TEMP   GFX_UTIL   VRAM_USED   VRAM_TOTAL
//	  0  133 W      35 °C      33 °C        0 %      283 MB    196300 MB
type watch struct {
	out   Out
	names []string
}

func monitor(text string, out Out) Table {
	f := strings.Fields(text)
	if len(f) < 3 {
		return nil
	}
	gpu, known := false, 0
	for _, n := range f {
		switch n {
		case "GPU":
			gpu = true
		case "POWER", "GPU_T", "GPU_TEMP", "MEM_T", "MEM_TEMP", "GFX_UTIL", "GFX%", "GFX_CLK", "VRAM_USED", "VRAM_TOTAL", "DOUBLE_ECC", "PCIE_REPLAY":
			known++
		}
	}
	if !gpu || known < 2 {
		return nil
	}
	return &watch{out: out}
}

func (t *watch) Line(l textline.Line) Class {
	text := strings.TrimSpace(l.Text)
	if text == "" {
		return Blank
	}
	f := strings.Fields(text)
	if t.names == nil || f[0] == t.names[0] {
		t.names = f
		return Header
	}
	var cell []string
	for _, w := range f {
		switch w {
		case "W", "°C", "C", "%", "MHz", "MB", "GB", "Mb/s", "Mbps", "GT/s", "MiB", "GiB":
			if n := len(cell); n > 0 {
				cell[n-1] += " " + w
				continue
			}
		}
		cell = append(cell, w)
	}
	if len(cell) != len(t.names) {
		return Foreign
	}
	d := newDevice(None, l)
	for i, n := range t.names {
		if n == "GPU" {
			d.Index = textline.Small(cell[i])
		} else {
			d.field(keyOf(n), "", cell[i], l)
		}
	}
	if d.Index == None {
		return Foreign
	}
	t.out.Device(*d)
	return Row
}

func (t *watch) End() {}

// A box is the table of plain amd-smi, two lines a device:
//
//	| BDF                        GPU-Name | Mem-Uti   Temp   UEC       Power-Usage |
//	| GPU  HIP-ID  OAM-ID  Partition-Mode | GFX-Uti    Fan               Mem-Usage |
//	| 0000:05:00.0    AMD Instinct MI300X | 0 %      40 °C   0          165/1000 W |
//	|   0       0       6        SPX/NPS1 | 0 %        N/A           285/196592 MB |
type box struct {
	out       Out
	cur       *Device
	body      bool
	processes bool
}

func summary(text string, out Out) Table {
	if strings.HasPrefix(text, "| AMD-SMI ") {
		return &box{out: out}
	}
	return nil
}

func (t *box) Line(l textline.Line) Class {
	text := strings.TrimSpace(l.Text)
	switch {
	case text == "":
		return Blank
	case text[0] == '+':
		return Rule
	case text[0] != '|':
		return Foreign
	case strings.HasPrefix(text, "| AMD-SMI "):
		for _, v := range [...]struct{ label, of string }{{"amdgpu version:", "driver"}, {"ROCm version:", "rocm"}} {
			if _, rest, ok := strings.Cut(text, v.label); ok {
				if f := strings.Fields(rest); len(f) > 0 && f[0] != "|" {
					t.out.Version(v.of, f[0], l)
				}
			}
		}
		return Header
	case strings.Contains(text, "==="):
		t.body = true
		return Rule
	case strings.Contains(text, "---"):
		return Rule
	case strings.Contains(text, "Processes:"):
		t.processes, t.body = true, false
		return Header
	case strings.Contains(text, "No running processes found"):
		return Note
	case !t.body:
		return Header
	case t.processes:
		return t.process(text, l)
	}
	cell := strings.Split(strings.Trim(text, "|"), "|")
	if len(cell) != 2 {
		return Foreign
	}
	left, right := strings.Fields(cell[0]), strings.Fields(cell[1])
	if len(left) < 2 || len(right) < 2 {
		return Foreign
	}
	if strings.Count(left[0], ":") == 2 {
		t.cur = newDevice(None, l)
		t.cur.BusID, t.cur.Name = left[0], strings.Join(left[1:], " ")
		t.first(right, l)
		return Row
	}
	if t.cur == nil || textline.Small(left[0]) == None {
		return Foreign
	}
	d := t.cur
	t.cur = nil
	d.Index, d.Partition = textline.Small(left[0]), left[len(left)-1]
	d.Util = percent(right[0])
	if used, total, ok := strings.Cut(right[len(right)-2], "/"); ok {
		unit := right[len(right)-1]
		d.Total = size(total+" "+unit, mib)
		d.used(size(used+" "+unit, mib), l)
	}
	t.out.Device(*d)
	return Row
}

// first reads temperature, uncorrectable errors and power.
func (t *box) first(right []string, l textline.Line) {
	d := t.cur
	for i, w := range right {
		switch w {
		case "°C", "C":
			d.Temp = number(right[i-min(i, 1)])
			if i+1 < len(right) {
				d.Uncorrectable = textline.Count(right[i+1])
				d.counter("ecc-volatile-uncorrectable", right[i+1], l)
			}
		case "W":
			if i > 0 {
				power, most, _ := strings.Cut(right[i-1], "/")
				d.Power, d.Cap = number(power), number(most)
			}
		}
	}
}

// process reads |  GPU        PID  Process Name   GTT_MEM  VRAM_MEM  MEM_USAGE  CU % |.
func (t *box) process(text string, l textline.Line) Class {
	f := strings.Fields(strings.Trim(text, "|"))
	if len(f) < 3 || textline.Small(f[0]) == None || textline.Small(f[1]) == None {
		return Header
	}
	t.out.Process(Process{GPU: textline.Small(f[0]), PID: textline.Small(f[1]), Name: f[2], Used: vram(f[3:]), At: l})
	return Row
}

// vram is the second size of a row: number and unit, after that of GTT.
func vram(f []string) textline.Bytes {
	n := 0
	for i := 0; i+1 < len(f); i++ {
		if b := size(f[i]+" "+f[i+1], 0); b.Known() {
			if n++; n == 2 {
				return b
			}
			i++
		}
	}
	return textline.NoBytes
}

func (t *box) End() {
	if t.cur != nil { // cut between its two lines
		t.out.Device(*t.cur)
	}
	t.cur = nil
}
