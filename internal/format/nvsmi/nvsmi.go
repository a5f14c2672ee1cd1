// Package nvsmi decodes what NVIDIA's command-line tools print: nvidia-smi as a
// table, -q as text and as XML, --query-gpu and --query-compute-apps as CSV,
// dmon, pmon, topo -m, -L, nvlink, its one-line errors, the result table of dcgmi
// diag, and lspci, which tells of NVIDIA's devices what they cannot. It knows lines and types, and nothing of jobs.
//
// The forms are those of drivers from 390 to 610. NVIDIA documents the fields of
// -q and of the queries in the manual page of nvidia-smi, the XML in
// nvsmi_device_v12.dtd; the tables are documented nowhere.
package nvsmi

import (
	"math"
	"strconv"
	"strings"

	"github.com/inquest-dev/inquest/internal/format/textline"
)

// None is an index, pid or count that is not stated.
const None = -1

const (
	mib        = 1 << 20
	maxValue   = 1 << 10
	maxPending = 1024 // devices of one table that wait for its end
	maxStates  = 64   // states kept of one device
)

// A Class says what a line is to the table that it belongs to.
type Class uint8

const (
	Foreign Class = iota // not of this table
	Blank
	Rule   // borders
	Header // names of columns, titles
	Field  // a name and its value
	Row    // a device, process, link or test
	Note   // words that state no value: a legend, a hint
)

func (c Class) String() string {
	return [...]string{"foreign", "blank", "rule", "header", "field", "row", "note"}[c]
}

// A Table decodes the lines from its header on. Line reports what the line is;
// Foreign means that the table ended before it. End hands over what was held
// back until the table's end.
type Table interface {
	Line(l textline.Line) Class
	End()
}

// An Out receives the rows of tables.
type Out interface {
	Version(Version)
	Device(Device)
	Process(Process)
	Trouble(Trouble)
	Test(Test)
	// Taken is the time that a table states for itself, as printed.
	Taken(written string, at textline.Line)
}

// A Version is a version of the driver, the CUDA that it supports, or a tool.
type Version struct {
	Of   string // driver, cuda, dcgm
	Text string
	At   textline.Line
}

// A Device is what one reading says of one GPU, or of one MIG instance of it.
type Device struct {
	Index         int // as the driver counts, None where not stated
	Slice         string
	Name          string
	UUID, BusID   string
	Serial        string
	Minor         int
	Persistence   string // On, Off
	MIG           string // Enabled, Disabled
	PState        string
	GI, CI        int // of a MIG instance: its GPU instance and compute instance, None where not stated
	Used, Total   textline.Bytes
	Free          textline.Bytes
	Reserved      textline.Bytes // by driver and firmware, as drivers from 510 on state it
	Util          float64        // per cent; NaN where not stated, as the next ones
	Temp, MemTemp float64        // degrees Celsius
	Power, Cap    float64        // watts
	// ECC errors that could not be corrected: since the driver was loaded, and
	// over the life of the board. None where not stated.
	Volatile, Aggregate int64
	Links               string // how it reaches the other devices: "GPU1:NV18 GPU2:SYS"
	CPUs, NUMA          string
	States              []State
	Taken               string // the row's own time, as printed
	Listed, Empty       bool   // the table has a list of processes; it is said to be empty
	// At is the line that states the memory in use, else the first one of the device.
	At textline.Line
}

// A State is a counter that is not zero, or a condition that is not as it should
// be, of one device.
type State struct {
	What  string // ecc-volatile-uncorrectable, remap-pending, throttle-hw-thermal, unreadable, ...
	Count int64  // None where it is no counter
	Text  string // the value as printed
	At    textline.Line
}

// A Process is a process that holds a device.
type Process struct {
	GPU         int // None where not stated
	UUID, BusID string
	PID         int
	GI, CI      int // MIG instance, None where it is in none
	Type, Name  string
	Used        textline.Bytes
	Taken       string
	At          textline.Line
}

// A Trouble is a message that stands for a whole device or the whole tool.
type Trouble struct {
	What  string // gpu-lost, no-device-handle, no-devices, no-driver, driver-library-mismatch, nvml-init, inforom-corrupt
	BusID string
	GPU   int
	At    textline.Line
}

// A Test is one result of dcgmi diag.
type Test struct {
	Name, Result string // Result is pass, fail, warn or skip
	GPU          int    // None where the row speaks of all
	Detail       string // the text of its errors and warnings
	At           textline.Line
}

func newDevice() Device {
	nan := math.NaN()
	return Device{Index: None, Minor: None, GI: None, CI: None, Used: textline.NoBytes, Total: textline.NoBytes, Free: textline.NoBytes, Reserved: textline.NoBytes, Util: nan, Temp: nan, MemTemp: nan, Power: nan, Cap: nan, Volatile: None, Aggregate: None}
}

// newProcess is a process of which only the line is known.
func newProcess(at textline.Line) Process {
	return Process{GPU: None, PID: None, GI: None, CI: None, Used: textline.NoBytes, At: at}
}

// state adds s, within the bound.
func (d *Device) state(what string, count int64, text string, at textline.Line) {
	if len(d.States) < maxStates {
		d.States = append(d.States, State{what, count, text, at})
	}
}

// unreadable are the values that stand where reading a sensor failed
// (nvmlErrorString of the NVML errors, and the table's ERR!).
func unreadable(v string) string {
	switch s := strings.ToLower(strings.Trim(v, "[] .")); {
	case s == "gpu is lost":
		return "gpu-lost"
	case s == "err!" || s == "unknown error" || s == "gpu requires reset":
		return "unreadable"
	}
	return ""
}

// number reads a count, a percentage or a measure with one of the units after it.
func number(v string, units ...string) float64 {
	v = strings.TrimSpace(v)
	for _, u := range units {
		v = strings.TrimSpace(strings.TrimSuffix(v, u))
	}
	f, err := strconv.ParseFloat(v, 64)
	if err != nil || math.IsInf(f, 0) || math.Abs(f) > 1e15 {
		return math.NaN()
	}
	return f
}

func sizeOf(v string, unit int64) textline.Bytes {
	b, _ := textline.Size(v, unit) // NoBytes where it is none
	return b
}

// IsBus reports whether v is a PCI bus id: domain, bus, device and function.
func IsBus(v string) bool {
	if len(v) < 7 || len(v) > 20 {
		return false
	}
	dot := strings.LastIndexByte(v, '.')
	if dot < 0 || strings.Count(v, ":") != 2 {
		return false
	}
	for i := range len(v) {
		if c := v[i]; c != ':' && c != '.' && (c < '0' || c > '9') && (c < 'a' || c > 'f') && (c < 'A' || c > 'F') {
			return false
		}
	}
	return true
}

// Begin returns the table that l begins and what l is in it; nil if it begins
// none. command is the command line that stands before, "" if there is none: the
// rows of a query without its header mean nothing without it.
func Begin(l textline.Line, command string, out Out) (Table, Class) {
	text := strings.TrimSpace(l.Text)
	for _, f := range [...]func(textline.Line, string, Out) Table{smiTable, smiLog, smiXML, query, monitor, topology, list, diag, lspci} {
		if t := f(l, text, out); t != nil {
			return t, t.Line(l)
		}
	}
	if t := headless(text, command, out); t != nil {
		if c := t.Line(l); c != Foreign {
			return t, c
		}
	}
	if message(l, text, out) {
		return nil, Row
	}
	return nil, Foreign
}
