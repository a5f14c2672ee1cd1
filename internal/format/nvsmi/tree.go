package nvsmi

import (
	"math"
	"strings"

	"github.com/inquest-dev/inquest/internal/format/textline"
)

// A tree gives the fields of -q, from text or XML, their meaning. The two differ
// in names: what is one section in both is looked up by its words, lower case and
// joined by "_".
//
// The index of a device is its place among all devices; the text does not state
// it. It is known only where as many blocks follow as devices are attached: -i
// picks some, and a device that is lost has none.
type tree struct {
	out      Out
	attached int64
	devices  []Device // without their slices
	slices   []Device
	procs    []Process
	cur      Device
	open     bool
	slice    Device // the MIG instance that is being read
	inSlice  bool
	proc     Process
	inPID    bool
	gi, ci   int  // of the process that comes next
	dropped  bool // more than could be held back, so that no index is known
}

func newTree(out Out) tree { return tree{out: out, attached: None, gi: None, ci: None} }

// device begins the block of one device.
func (t *tree) device(bus string, l textline.Line) {
	t.close()
	if len(t.devices)+len(t.slices)+len(t.procs) >= maxPending {
		t.dropped = true
		t.release()
	}
	t.cur, t.open = newDevice(), true
	t.cur.Index, t.cur.BusID, t.cur.At = len(t.devices), bus, l
}

// close ends the block of the current device.
func (t *tree) close() {
	t.endProcess()
	t.endSlice()
	if t.open {
		t.devices = append(t.devices, t.cur)
	}
	t.open = false
}

func (t *tree) endProcess() {
	if t.inPID && len(t.procs) < maxPending {
		t.procs = append(t.procs, t.proc)
	}
	t.inPID = false
}

func (t *tree) endSlice() {
	if t.inSlice && len(t.slices) < maxPending {
		t.slices = append(t.slices, t.slice)
	}
	t.inSlice = false
}

// flush hands over everything at the end of the log.
func (t *tree) flush() {
	t.close()
	t.release()
}

func (t *tree) release() {
	known := !t.dropped && (t.attached == None || t.attached == int64(len(t.devices)))
	index := func(i int) int {
		if known {
			return i
		}
		return None
	}
	for _, list := range [...][]Device{t.devices, t.slices} {
		for _, d := range list {
			d.Index = index(d.Index)
			t.out.Device(d)
		}
	}
	for _, p := range t.procs {
		p.GPU = index(p.GPU)
		t.out.Process(p)
	}
	t.devices, t.slices, t.procs = nil, nil, nil
}

// field takes one value with the names of its sections, outermost first.
func (t *tree) field(path []string, v string, l textline.Line) {
	key := path[len(path)-1]
	if !t.open {
		switch key {
		case "timestamp":
			t.out.Taken(v, l)
		case "driver_version", "kmd_version":
			t.version("driver", v, l)
		case "cuda_version", "cuda_umd_version":
			t.version("cuda", v, l)
		case "attached_gpus":
			t.attached = textline.Count(v)
		}
		return
	}
	d := &t.cur
	if within(path, "mig_device") {
		t.sliceField(path, key, v, l)
		return
	}
	d.bad(strings.Join(path, "/"), v, l)
	if within(path, "processes") {
		t.processField(key, v, l)
		return
	}
	switch key {
	case "processes":
		if v == "None" {
			d.Empty = true
		}
	case "product_name":
		d.Name = v
	case "uuid", "gpu_uuid":
		if len(path) == 1 {
			d.UUID = v
		}
	case "serial", "serial_number":
		if len(path) == 1 && v != "N/A" {
			d.Serial = v
		}
	case "minor_number":
		d.Minor = textline.Small(v)
	case "persistence_mode":
		d.Persistence = map[string]string{"Enabled": "On", "Disabled": "Off"}[v]
	case "performance_state":
		d.PState = v
	case "gpu_recovery_action":
		if v != "None" && v != "N/A" {
			d.state("recovery-action", None, v, l)
		}
	case "reset_required":
		d.yes("reset-required", v, l)
	case "drain_and_reset_recommended":
		d.yes("drain-recommended", v, l)
	case "channel_repair_pending", "tpc_repair_pending":
		d.yes("repair-pending", v, l)
	case "unrepairable_memory":
		d.yes("unrepairable-memory", v, l)
	case "sram_threshold_exceeded":
		d.yes("sram-threshold-exceeded", v, l)
	}
	if len(path) > 1 {
		t.inSection(path, path[len(path)-2], key, v, l)
	}
}

func (t *tree) version(of, v string, l textline.Line) {
	if v != "" && v != "N/A" && unreadable(v) == "" {
		t.out.Version(Version{of, v, l})
	}
}

func within(path []string, section string) bool {
	for _, p := range path[:len(path)-1] {
		if p == section {
			return true
		}
	}
	return false
}

func (d *Device) yes(what, v string, l textline.Line) {
	if v == "Yes" || v == "Active" {
		d.state(what, None, v, l)
	}
}

// inSection reads what has its meaning only with the section above.
func (t *tree) inSection(path []string, section, key, v string, l textline.Line) {
	d := &t.cur
	switch section {
	case "fb_memory_usage":
		t.memory(key, v, l)
	case "mig_mode":
		if strings.HasPrefix(key, "current") && v != "N/A" {
			d.MIG = v
		}
	case "utilization":
		if key == "gpu" || key == "gpu_util" {
			d.Util = percent(v)
		}
	case "temperature":
		switch key {
		case "gpu_current_temp", "gpu_temp":
			d.Temp = number(v, "C")
		case "memory_current_temp", "memory_temp":
			d.MemTemp = number(v, "C")
		}
	case "power_readings", "gpu_power_readings":
		switch key {
		case "power_draw", "average_power_draw", "instantaneous_power_draw", "instant_power_draw":
			if w := number(v, "W"); math.IsNaN(d.Power) {
				d.Power = w
			}
		case "power_limit", "current_power_limit":
			d.Cap = number(v, "W")
		}
	case "remapped_rows":
		t.remapped(key, v, l)
	case "retired_pages":
		t.retired(key, v, l)
	case "single_bit_retirement", "multiple_single_bit_retirement", "double_bit_retirement":
		if key == "retired_count" {
			d.counter("retired-"+map[bool]string{true: "double-bit", false: "single-bit"}[section == "double_bit_retirement"], v, l)
		}
	case "clocks_throttle_reasons", "clocks_event_reasons", "hw_slowdown":
		t.throttle(key, v, l)
	case "pci":
		if key == "replays_since_reset" || key == "replay_counter" {
			d.counter("pcie-replays", v, l)
		}
	case "fabric":
		if key == "state" && v != "Completed" && v != "N/A" && v != "Not Supported" {
			d.state("fabric-state", None, v, l)
		}
		if key == "status" && v != "Success" && v != "N/A" && v != "Not Supported" {
			d.state("fabric-status", None, v, l)
		}
	}
	if within(path, "ecc_errors") || within(path, "volatile") || within(path, "aggregate") {
		t.ecc(path, key, v, l)
	}
}

func (t *tree) memory(key, v string, l textline.Line) {
	d := &t.cur
	switch key {
	case "total":
		d.Total = sizeOf(v, mib)
	case "reserved":
		d.Reserved = sizeOf(v, mib)
	case "used":
		d.Used = sizeOf(v, mib)
		d.At = l
	case "free":
		d.Free = sizeOf(v, mib)
	}
}

// ecc counts errors that could not be corrected. Boards from Ampere on list SRAM
// and DRAM; older ones, single and double bit, by unit with a total.
func (t *tree) ecc(path []string, key, v string, l textline.Line) {
	n := textline.Count(v)
	if n < 0 {
		return
	}
	double := within(path, "double_bit")
	uncorrectable := strings.Contains(key, "uncorrectable") || double && key == "total"
	correctable := !uncorrectable && strings.Contains(key, "correctable") && !strings.Contains(key, "uncorrectable") || within(path, "single_bit") && key == "total"
	sum, since := &t.cur.Volatile, "volatile"
	if within(path, "aggregate") {
		sum, since = &t.cur.Aggregate, "aggregate"
	} else if !within(path, "volatile") {
		return // sources of the aggregate
	}
	if uncorrectable {
		*sum = max(*sum, 0) + n
		t.cur.counter("ecc-"+since+"-uncorrectable", v, l)
	} else if correctable {
		t.cur.counter("ecc-"+since+"-correctable", v, l)
	}
}

func (t *tree) remapped(key, v string, l textline.Line) {
	d := &t.cur
	switch key {
	case "uncorrectable_error", "remapped_row_unc":
		d.counter("remapped-uncorrectable", v, l)
	case "correctable_error", "remapped_row_corr":
		d.counter("remapped-correctable", v, l)
	case "pending", "remapped_row_pending":
		d.yes("remap-pending", v, l)
	case "remapping_failure_occurred", "remapped_row_failure":
		d.yes("remap-failure", v, l)
	}
}

func (t *tree) retired(key, v string, l textline.Line) {
	d := &t.cur
	switch key {
	case "single_bit_ecc":
		d.counter("retired-single-bit", v, l)
	case "double_bit_ecc":
		d.counter("retired-double-bit", v, l)
	case "pending_page_blacklist", "pending", "pending_retirement", "pending_blacklist":
		d.yes("retire-pending", v, l)
	}
}

// throttles are the reasons that hold the clocks down against the will of the
// user: the board is too hot or gets too little power. Idle, application clocks
// and the software power cap are the normal life of a device.
var throttles = map[string]string{
	"hw_slowdown": "throttle-hw", "hw_thermal_slowdown": "throttle-hw-thermal", "hw_power_brake_slowdown": "throttle-power-brake", "sw_thermal_slowdown": "throttle-sw-thermal",
}

func (t *tree) throttle(key, v string, l textline.Line) {
	key = strings.TrimPrefix(strings.TrimPrefix(key, "clocks_event_reason_"), "clocks_throttle_reason_")
	if what := throttles[key]; what != "" && v == "Active" {
		t.cur.state(what, None, v, l)
	}
}

func (t *tree) processField(key, v string, l textline.Line) {
	switch key {
	case "gpu_instance_id": // both stand before the number of their process
		t.endProcess()
		t.gi = textline.Small(v)
	case "compute_instance_id":
		t.endProcess()
		t.ci = textline.Small(v)
	case "process_id", "pid":
		t.endProcess()
		if pid := textline.Small(v); pid != None {
			t.proc = newProcess(l)
			t.proc.GPU, t.proc.UUID, t.proc.BusID, t.proc.PID = t.cur.Index, t.cur.UUID, t.cur.BusID, pid
			t.proc.GI, t.proc.CI = t.gi, t.ci
			t.gi, t.ci = None, None
			t.inPID = true
			t.cur.Listed = true
		}
	case "type":
		t.proc.Type = v
	case "name", "process_name":
		t.proc.Name = v
	case "used_gpu_memory", "used_memory":
		if t.inPID {
			t.proc.Used, t.proc.At = sizeOf(v, mib), l
		}
	}
}

// sliceField reads a MIG instance; its index comes first.
func (t *tree) sliceField(path []string, key, v string, l textline.Line) {
	section := path[len(path)-2]
	switch {
	case key == "index" && section == "mig_device":
		t.endSlice()
		t.slice, t.inSlice = newDevice(), true
		t.slice.Index, t.slice.BusID, t.slice.Slice, t.slice.At = t.cur.Index, t.cur.BusID, "dev "+v, l
	case !t.inSlice:
	case key == "gpu_instance_id":
		t.slice.Slice = "gi " + v + " " + t.slice.Slice
		t.slice.GI = textline.Small(v)
	case key == "compute_instance_id":
		t.slice.CI = textline.Small(v)
	case section == "fb_memory_usage" && key == "total":
		t.slice.Total = sizeOf(v, mib)
	case section == "fb_memory_usage" && key == "used":
		t.slice.Used, t.slice.At = sizeOf(v, mib), l
	case section == "fb_memory_usage" && key == "free":
		t.slice.Free = sizeOf(v, mib)
	case strings.Contains(key, "uncorrectable") && within(path, "volatile"):
		if n := textline.Count(v); n >= 0 {
			t.slice.Volatile = max(t.slice.Volatile, 0) + n
			t.slice.counter("ecc-volatile-uncorrectable", v, l)
		}
	}
}
