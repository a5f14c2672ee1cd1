package nvsmi

import (
	"slices"
	"strings"

	"github.com/inquest-dev/inquest/internal/format/textline"
)

// A csv is the output of --query-gpu and --query-compute-apps. The header repeats
// the request, with the unit in brackets; rows keep the order:
//
//	index, name, memory.used [MiB], utilization.gpu [%]
//	0, NVIDIA H100 80GB HBM3, 79123 MiB, 98 %
//
// nounits leaves the unit out of the rows, noheader the header: then the command
// line before says what the columns are. With -l the rows of all devices repeat.
type csv struct {
	out   Out
	names []string
	units []int64
	apps  bool
	first bool // the header itself comes next
}

// queryNames are the fields that make a header sure (nvidia-smi --help-query-gpu
// and --help-query-compute-apps); some groups are known by their prefix.
var queryNames = map[string]bool{
	"timestamp": true, "index": true, "name": true, "gpu_name": true, "uuid": true, "gpu_uuid": true, "pci.bus_id": true, "gpu_bus_id": true, "gpu_serial": true, "serial": true, "count": true, "driver_version": true,
	"pid": true, "process_name": true, "used_gpu_memory": true, "used_memory": true, "pstate": true, "fan.speed": true, "compute_mode": true, "persistence_mode": true, "display_active": true, "display_mode": true,
	"vbios_version": true, "compute_cap": true, "pci.bus": true, "pci.domain": true, "pci.device": true, "pci.device_id": true, "pci.sub_device_id": true, "accounting.mode": true, "gpu_operation_mode.current": true, "protected_memory.used": true,
}

var queryGroups = [...]string{"ecc.", "clocks.", "clocks_", "remapped_rows.", "retired_pages.", "pcie.", "power.", "temperature.", "memory.", "utilization.", "mig.", "gpu_recovery_action", "gom.", "encoder.", "fabric.", "inforom.", "enforced.power.", "module.power."}

func isQueryName(name string) bool {
	if queryNames[name] {
		return true
	}
	for _, g := range queryGroups {
		if strings.HasPrefix(name, g) {
			return true
		}
	}
	return false
}

// telling are the fields that other tables do not have.
func telling(name string) bool {
	return strings.HasPrefix(name, "memory.") || strings.HasPrefix(name, "used_") || strings.HasPrefix(name, "utilization.") || name == "pci.bus_id" || strings.HasPrefix(name, "ecc.") || strings.HasPrefix(name, "remapped_rows.") ||
		name == "uuid" || name == "gpu_uuid" || strings.HasPrefix(name, "clocks_") || strings.HasPrefix(name, "temperature.") || strings.HasPrefix(name, "power.")
}

func query(_ textline.Line, text string, out Out) Table {
	if !strings.Contains(text, ",") || len(text) > 4096 {
		return nil
	}
	if t := columns(text, out); t != nil {
		t.first = true
		return t
	}
	return nil
}

// columns reads a header, or the list of fields of a command.
func columns(text string, out Out) *csv {
	t := &csv{out: out}
	sure := false
	for _, c := range strings.Split(text, ",") {
		name, unit, _ := strings.Cut(strings.TrimSpace(c), " ")
		if !isQueryName(name) {
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
		sure = sure || telling(name)
		t.apps = t.apps || name == "pid"
	}
	if !sure || len(t.names) < 2 {
		return nil
	}
	return t
}

// headless returns the table whose header the command before asked to leave out.
func headless(text, command string, out Out) Table {
	if !strings.Contains(command, "nvidia-smi") || !strings.Contains(text, ",") {
		return nil
	}
	for _, flag := range [...]string{"--query-gpu=", "--query-compute-apps=", "--query-gpu ", "--query-compute-apps "} {
		if _, rest, ok := strings.Cut(command, flag); ok {
			f := strings.Fields(rest)
			if len(f) == 0 {
				return nil
			}
			if t := columns(strings.Trim(f[0], `"'`), out); t != nil {
				return t
			}
		}
	}
	return nil
}

func (t *csv) Line(l textline.Line) Class {
	text := strings.TrimSpace(l.Text)
	if text == "" {
		return Blank
	}
	if t.first {
		t.first = false
		return Header
	}
	cell := strings.Split(text, ",")
	if extra := len(cell) - len(t.names); extra > 0 {
		cell = t.rejoin(cell, extra)
	}
	if len(cell) != len(t.names) {
		return Foreign
	}
	for i := range cell {
		cell[i] = strings.TrimSpace(cell[i])
	}
	if cell[0] == t.names[0] {
		if again := columns(text, t.out); again != nil && slices.Equal(again.names, t.names) {
			return Header // after each sample of a loop
		}
		return Foreign
	}
	if t.apps {
		return t.process(cell, l)
	}
	return t.device(cell, l)
}

// rejoin gives a process name its commas back; no other field has any.
func (t *csv) rejoin(cell []string, extra int) []string {
	for i, n := range t.names {
		if n != "process_name" && n != "name" && n != "gpu_name" {
			continue
		}
		out := append([]string{}, cell[:i]...)
		out = append(out, strings.Join(cell[i:i+extra+1], ","))
		return append(out, cell[i+extra+1:]...)
	}
	return cell
}

// stated reports whether a cell holds a value.
func stated(v string) bool { return v != "" && v[0] != '[' && v != "N/A" }

func (t *csv) process(cell []string, l textline.Line) Class {
	p := newProcess(l)
	for i, n := range t.names {
		if v := cell[i]; stated(v) {
			switch n {
			case "timestamp":
				p.Taken = v
			case "index":
				p.GPU = textline.Small(v)
			case "pid":
				p.PID = textline.Small(v)
			case "pci.bus_id", "gpu_bus_id":
				p.BusID = v
			case "gpu_uuid", "uuid":
				p.UUID = v
			case "process_name", "name":
				p.Name = v
			case "used_gpu_memory", "used_memory":
				p.Used = sizeOf(v, t.units[i])
			}
		}
	}
	if p.PID == None {
		return Foreign
	}
	t.out.Process(p)
	return Row
}

func (t *csv) device(cell []string, l textline.Line) Class {
	d := newDevice()
	d.At = l
	known := 0
	for i, n := range t.names {
		v := cell[i]
		if d.bad(n, v, l) || v != "" && v[0] == '[' && strings.HasSuffix(v, "]") {
			known++
		}
		if stated(v) && d.set(n, v, t.units[i], l, t.out) {
			known++
		}
	}
	if known == 0 {
		return Foreign
	}
	t.out.Device(d)
	return Row
}

// set fills in one field of a query; it reports whether v is of the field's type.
func (d *Device) set(name, v string, unit int64, l textline.Line, out Out) bool {
	switch name {
	case "timestamp":
		d.Taken = v
	case "index":
		d.Index = textline.Small(v)
		return d.Index != None
	case "pci.bus_id", "gpu_bus_id":
		d.BusID = v
		return IsBus(v)
	case "gpu_uuid", "uuid":
		d.UUID = v
	case "serial", "gpu_serial":
		d.Serial = v
	case "name", "gpu_name":
		d.Name = v
	case "driver_version":
		out.Version(Version{"driver", v, l})
	case "persistence_mode":
		d.Persistence = map[string]string{"Enabled": "On", "Disabled": "Off"}[v]
	case "mig.mode.current":
		d.MIG = v
	case "pstate":
		d.PState = v
	case "memory.used", "used_memory", "used_gpu_memory":
		d.Used = sizeOf(v, unit)
		return d.Used.Known()
	case "memory.total":
		d.Total = sizeOf(v, unit)
		return d.Total.Known()
	case "memory.free":
		d.Free = sizeOf(v, unit)
		return d.Free.Known()
	case "memory.reserved":
		d.Reserved = sizeOf(v, unit)
		return d.Reserved.Known()
	case "utilization.gpu":
		d.Util = percent(v)
		return d.Util == d.Util
	case "temperature.gpu":
		d.Temp = number(v, "C")
		return d.Temp == d.Temp
	case "temperature.memory":
		d.MemTemp = number(v, "C")
	case "power.draw", "power.draw.instant", "power.draw.average":
		d.Power = number(v, "W")
		return d.Power == d.Power
	case "power.limit", "enforced.power.limit":
		d.Cap = number(v, "W")
	case "ecc.errors.uncorrected.volatile.total":
		d.Volatile = textline.Count(v)
		d.counter("ecc-volatile-uncorrectable", v, l)
	case "ecc.errors.uncorrected.aggregate.total":
		d.Aggregate = textline.Count(v)
		d.counter("ecc-aggregate-uncorrectable", v, l)
	case "ecc.errors.corrected.volatile.total":
		d.counter("ecc-volatile-correctable", v, l)
	case "ecc.errors.corrected.aggregate.total":
		d.counter("ecc-aggregate-correctable", v, l)
	case "remapped_rows.uncorrectable":
		d.counter("remapped-uncorrectable", v, l)
	case "remapped_rows.correctable":
		d.counter("remapped-correctable", v, l)
	case "remapped_rows.pending":
		d.yes("remap-pending", yesOf(v), l)
	case "remapped_rows.failure":
		d.yes("remap-failure", yesOf(v), l)
	case "retired_pages.pending":
		d.yes("retire-pending", yesOf(v), l)
	case "retired_pages.double_bit.count", "retired_pages.dbe":
		d.counter("retired-double-bit", v, l)
	case "retired_pages.single_bit_ecc.count", "retired_pages.sbe":
		d.counter("retired-single-bit", v, l)
	case "gpu_recovery_action":
		if v != "None" {
			d.state("recovery-action", None, v, l)
		}
	default:
		reason := strings.TrimPrefix(strings.TrimPrefix(name, "clocks_event_reasons."), "clocks_throttle_reasons.")
		if what := throttles[reason]; what != "" && v == "Active" {
			d.state(what, None, v, l)
		}
		return true
	}
	return v != ""
}

func yesOf(v string) string {
	if v == "1" {
		return "Yes"
	}
	return v
}
