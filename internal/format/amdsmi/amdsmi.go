// Package amdsmi decodes what AMD's command-line tools print: rocm-smi as a table,
// as the long list of -a, as JSON and CSV (ROCm 4 to 6), and amd-smi's static,
// metric, list, process and monitor as text, JSON and CSV, with its table (ROCm 6
// and 7). It knows lines and types, and nothing of jobs.
//
// AMD calls both tools examples and changes their names of fields between
// releases, so a field is looked up under every name that it had.
package amdsmi

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
	maxDevices = 256
	maxStates  = 64
)

// A Class says what a line is to the table that it belongs to.
type Class uint8

const (
	Foreign Class = iota // not of this table
	Blank
	Rule   // borders
	Header // names of columns, titles
	Field  // a name and its value
	Row    // a device or process
	Note   // words that state no value
)

func (c Class) String() string {
	return [...]string{"foreign", "blank", "rule", "header", "field", "row", "note"}[c]
}

// A Table decodes the lines from its header on, as in package nvsmi.
type Table interface {
	Line(l textline.Line) Class
	End()
}

// An Out receives the rows of tables.
type Out interface {
	Version(of, text string, at textline.Line) // of: driver, rocm
	Device(Device)
	Process(Process)
}

// A Device is what one reading says of one GPU.
type Device struct {
	Index          int
	Name           string
	UUID, BusID    string
	Serial         string
	Used, Total    textline.Bytes
	Free           textline.Bytes
	UsedPercent    float64 // of the memory; NaN where not stated, as the next ones
	Util           float64 // per cent
	Temp, MemTemp  float64 // degrees Celsius
	Power, Cap     float64 // watts
	Uncorrectable  int64   // ECC errors that could not be corrected; None where not stated
	States         []State
	Partition      string // compute and memory partition as printed: SPX, NPS1
	Taken          string
	At             textline.Line // states the memory in use, else the first line of the device
	hotter, stated bool
}

// A State is a counter that is not zero, or a condition that is not as it should be.
type State struct {
	What  string
	Count int64 // None where it is no counter
	Text  string
	At    textline.Line
}

// A Process is a process that holds device memory.
type Process struct {
	GPU  int // None where not stated
	PID  int
	Name string
	Used textline.Bytes
	At   textline.Line
}

func newDevice(index int, l textline.Line) *Device {
	nan := math.NaN()
	return &Device{Index: index, Used: textline.NoBytes, Total: textline.NoBytes, Free: textline.NoBytes, UsedPercent: nan, Util: nan, Temp: nan, MemTemp: nan, Power: nan, Cap: nan, Uncorrectable: None, At: l}
}

func (d *Device) state(what string, n int64, text string, l textline.Line) {
	if len(d.States) < maxStates {
		d.States = append(d.States, State{what, n, text, l})
	}
}

// number reads a measure with whatever unit behind it.
func number(v string) float64 {
	v = strings.TrimSpace(v)
	i := 0
	for i < len(v) && (v[i] >= '0' && v[i] <= '9' || v[i] == '.' || v[i] == '-' && i == 0) {
		i++
	}
	f, err := strconv.ParseFloat(v[:i], 64)
	if err != nil || math.Abs(f) > 1e15 {
		return math.NaN()
	}
	return f
}

func percent(v string) float64 {
	if f := number(v); f >= 0 && f <= 100 {
		return f
	}
	return math.NaN()
}

// size reads a size; the tools write MB for 2^20 bytes, whole ones.
func size(v string, unit int64) textline.Bytes {
	v = strings.TrimSpace(v)
	if n, ok := strings.CutSuffix(v, "MB"); ok {
		v = n + "MiB"
	}
	b, _ := textline.Size(v, unit) // NoBytes where it is none
	return b
}

// field gives the value of one name its meaning, whatever tool and form it is from:
// the last name of the path, lower case and joined by "_", and the one above it.
// It reports whether the name is known.
func (d *Device) field(key, section, v string, l textline.Line) bool {
	if v == "" || v == "N/A" || strings.Contains(v, "ot supported") {
		return true
	}
	stated := d.stated
	d.stated = true
	switch key {
	case "unique_id", "uuid":
		d.UUID = v
	case "pci_bus", "bdf":
		d.BusID = v
	case "serial_number", "product_serial":
		d.Serial = v
	case "card_series", "market_name", "card_model", "product_name", "gpu_name":
		if d.Name == "" || key == "card_series" || key == "market_name" {
			d.Name = v
		}
	case "vram_total_memory_b":
		d.Total = size(v, 1)
	case "vram_total_used_memory_b":
		d.used(size(v, 1), l)
	case "total_vram", "vram_total":
		d.Total = size(v, mib)
	case "used_vram", "vram_used":
		d.used(size(v, mib), l)
	case "free_vram", "vram_free":
		d.Free = size(v, mib)
	case "gpu_memory_allocated_vram%", "gpu_memory_use_%", "vram%":
		d.UsedPercent = percent(v)
	case "gpu_use_%", "gfx_activity", "gfx_util", "gfx", "gfx%", "gpu%":
		d.Util = percent(v)
	case "temperature_sensor_junction_c", "hotspot", "gpu_temp", "gpu_t", "hotspot_temperature", "temperature_hotspot":
		d.Temp, d.hotter = number(v), true
	case "temperature_sensor_edge_c", "edge", "edge_temperature":
		if !d.hotter {
			d.Temp = number(v)
		}
	case "temperature_sensor_memory_c", "mem_temp", "mem_t", "mem_temperature":
		d.MemTemp = number(v)
	case "mem":
		if section == "temperature" {
			d.MemTemp = number(v)
		}
	case "current_socket_graphics_package_power_w", "average_graphics_package_power_w", "socket_power", "power", "current_socket_power", "power_usage":
		d.Power = number(v)
	case "max_graphics_package_power_w", "socket_power_limit", "pwr_cap":
		d.Cap = number(v)
	case "total_uncorrectable_count", "double_ecc":
		d.Uncorrectable = textline.Count(v)
		d.counter("ecc-volatile-uncorrectable", v, l)
	case "total_correctable_count", "single_ecc":
		d.counter("ecc-volatile-correctable", v, l)
	case "pcie_replay_count", "replay_count", "pcie_replay":
		d.counter("pcie-replays", v, l)
	case "xgmi_err":
		if !strings.HasSuffix(v, "NO_ERRORS") && v != "0" {
			d.state("xgmi-error", None, v, l)
		}
	case "throttle_status":
		if v == "THROTTLED" {
			d.state("throttle-hw", None, v, l)
		}
	case "compute_partition", "memory_partition", "accelerator_partition":
		d.Partition = strings.TrimSpace(d.Partition + " " + v)
	default:
		d.stated = stated
		return false
	}
	return true
}

func (d *Device) used(b textline.Bytes, l textline.Line) {
	d.Used, d.At = b, l
}

func (d *Device) counter(what, v string, l textline.Line) {
	if n := textline.Count(v); n > 0 {
		d.state(what, n, v, l)
	}
}

// processField is field for a process.
func (p *Process) field(key, v string, l textline.Line) {
	switch key {
	case "name", "process_name":
		p.Name = v
	case "pid", "process_id":
		p.PID = textline.Small(v)
	case "vram_mem", "vram_used":
		p.Used = size(v, 1)
		p.At = l
	}
}

// keyOf writes a name as field knows it: lower case, words joined by "_", without
// brackets.
func keyOf(s string) string {
	var b strings.Builder
	for _, c := range strings.ToLower(strings.TrimSpace(s)) {
		switch c {
		case '(', ')', ':', '.':
		case ' ', '-':
			b.WriteByte('_')
		default:
			b.WriteRune(c)
		}
	}
	return b.String()
}

// Begin returns the table that l begins and what l is in it; nil if it begins none.
func Begin(l textline.Line, out Out) (Table, Class) {
	text := strings.TrimSpace(l.Text)
	for _, f := range [...]func(string, Out) Table{rocmText, csvTable, treeText, monitor, summary} {
		if t := f(text, out); t != nil {
			return t, t.Line(l)
		}
	}
	return nil, Foreign
}
