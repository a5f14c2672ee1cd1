package nvsmi

import (
	"strings"

	"github.com/inquest-dev/inquest/internal/format/textline"
)

// A samples is nvidia-smi dmon or pmon: columns under two lines of names and
// units, which repeat after every page; rows are devices, or processes of one.
// With -o the date and the time stand before; with --format csv commas between.
//
//	# gpu    pwr  gtemp     sm    mem     fb        # gpu         pid   type     sm    mem     fb   command
//	# Idx      W      C      %      %     MB        # Idx           #    C/G      %      %     MB   name
//	    0    120     45     98     40  79000            0        7372      C      2      0    136   python
type samples struct {
	out       Out
	names     []string
	processes bool
}

func monitor(_ textline.Line, text string, out Out) Table {
	if !strings.HasPrefix(text, "#") {
		return nil
	}
	if names := sampleNames(text); names != nil {
		return &samples{out: out}
	}
	return nil
}

// sampleNames returns the columns that a line names, nil if it names none.
func sampleNames(text string) []string {
	names := cells(strings.ReplaceAll(text, "#", " "))
	gpu, known := false, 0
	for i, n := range names {
		names[i] = strings.ToLower(n)
		switch names[i] {
		case "gpu":
			gpu = true
		case "pid", "sm", "pwr", "gtemp", "mtemp", "fb", "mclk", "sbecc", "rxpci", "pviol":
			known++
		}
	}
	if !gpu || known == 0 || len(names) < 3 {
		return nil
	}
	return names
}

func cells(text string) []string {
	return strings.FieldsFunc(text, func(r rune) bool { return r == ' ' || r == '\t' || r == ',' })
}

func (t *samples) Line(l textline.Line) Class {
	text := strings.TrimSpace(l.Text)
	if text == "" {
		return Blank
	}
	if text[0] == '#' {
		if names := sampleNames(text); names != nil {
			t.names = names
			for _, n := range names {
				t.processes = t.processes || n == "pid"
			}
			return Header
		}
		if len(cells(strings.TrimPrefix(text, "#"))) == len(t.names) {
			return Header // units
		}
		return Foreign
	}
	f := cells(text)
	if len(f) < len(t.names) || !t.processes && len(f) != len(t.names) {
		return Foreign
	}
	d, p := newDevice(), Process{GPU: None, PID: None, Used: textline.NoBytes, At: l}
	d.At = l
	var date, clock string
	for i, n := range t.names {
		v := f[i]
		switch n {
		case "date":
			date = v
		case "time":
			clock = v
		case "gpu":
			d.Index = textline.Small(v)
		case "pid":
			p.PID = textline.Small(v)
		case "type":
			p.Type = v
		case "command":
			p.Name = strings.Join(f[i:], " ")
		case "fb":
			d.Used = sizeOf(v, mib)
		case "sm":
			d.Util = percent(v)
		case "pwr":
			d.Power = number(v)
		case "gtemp":
			d.Temp = number(v)
		case "mtemp":
			d.MemTemp = number(v)
		case "dbecc":
			d.Volatile = textline.Count(v)
			d.counter("ecc-volatile-uncorrectable", v, l)
		case "tviol":
			d.counter("throttle-thermal-time", v, l)
		}
	}
	if d.Index == None {
		return Foreign
	}
	taken := ""
	if len(date) == 8 && clock != "" {
		taken = date[:4] + "/" + date[4:6] + "/" + date[6:] + " " + clock
	}
	if !t.processes {
		d.Taken = taken
		t.out.Device(d)
		return Row
	}
	if p.PID != None { // "-" where the device has no process
		p.GPU, p.Used, p.Taken = d.Index, d.Used, taken
		t.out.Process(p)
	}
	return Row
}

func (t *samples) End() {}
func (t *csv) End()     {}
