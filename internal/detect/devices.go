package detect

import (
	"sort"
	"strings"
	"time"

	"github.com/inquest-dev/inquest/internal/evidence"
)

// devices says who holds the failing device, from nvidia-smi and ps output
// beside the run.
//
//  1. The job's own pids are those that its logs name.
//  2. A pid that holds another device as well belongs to the job (a rank with a
//     stray context), if the job has more than one rank.
//  3. A table taken while the job was down counts what it shows as not the
//     job's.
func devices(in Input, f evidence.Known) {
	gpu := evidence.None
	if in.Memory != nil {
		gpu = in.Memory.Who.Device
		if v, ok := in.Memory.Attrs["gpu"]; ok {
			gpu = int(v.I)
		}
	}
	own := map[int]bool{}
	for _, e := range in.Events {
		switch e.Kind {
		case evidence.GPUProcess, evidence.HostProcess:
			continue
		}
		if e.Who.PID != evidence.None {
			own[e.Who.PID] = true
		}
		if v, ok := e.Attrs["pid"]; ok {
			own[int(v.I)] = true
		}
	}
	holds := map[int]map[int]evidence.Value{} // pid -> device -> bytes
	spanOf := map[[2]int]evidence.Span{}
	in.each(evidence.GPUProcess, func(e *evidence.Event) {
		pid, dev := int(e.Attrs["pid"].I), evidence.None
		if v, ok := e.Attrs["gpu"]; ok {
			dev = int(v.I)
		}
		if holds[pid] == nil {
			holds[pid] = map[int]evidence.Value{}
		}
		holds[pid][dev] = e.Attrs["used"]
		spanOf[[2]int{pid, dev}] = e.Span
	})
	relevant := func(dev int) bool { return gpu == evidence.None || dev == evidence.None || dev == gpu }

	if len(holds) > 0 {
		n, only, several := int64(0), int64(0), false
		var spans []evidence.Span
		for _, pid := range sorted(holds) {
			if _, on0 := holds[pid][0]; !on0 {
				continue
			}
			spans = append(spans, spanOf[[2]int{pid, 0}])
			if len(holds[pid]) > 1 {
				n++
				several = true
			} else {
				only++
			}
		}
		if several {
			f.Set("gpu.stray_pids", evidence.IntOf(n), clip(spans)...)
			f.Set("gpu.job_pids_on_device0", evidence.IntOf(n+only), clip(spans)...)
		} else if mine := onFirst(in, own); len(mine) > 1 {
			f.Set("gpu.job_pids_on_device0", evidence.IntOf(int64(len(mine))), clip(mine)...)
		} else if only == 1 {
			f.Set("gpu.job_pids_on_device0", evidence.IntOf(1), clip(spans)...)
		}
	}
	crowded(in, f, own)
	if v, ok := f["oom.other_processes"]; ok && len(own) == 0 && in.World <= 1 {
		// One process, and the message itself tells it from the others.
		if _, ok := f["oom.this_process"]; ok {
			f.Set("gpu.foreign_listed", evidence.BoolOf(v.Value.Hi > 0), v.Spans...)
			f.Set("gpu.foreign_bytes", v.Value, v.Spans...)
		}
	}
	parent := map[int]*evidence.Event{}
	in.each(evidence.HostProcess, func(e *evidence.Event) { parent[int(e.Attrs["pid"].I)] = e })
	if len(own) > 0 {
		foreign, known := evidence.SizeOf(0, 0), false
		var spans []evidence.Span
		for _, pid := range sorted(holds) {
			if own[pid] || len(holds[pid]) > 1 {
				continue
			}
			for dev, b := range holds[pid] {
				if !relevant(dev) || !stranger(in.World, own, holds, dev) {
					continue
				}
				known = true
				foreign = evidence.SizeOf(foreign.Lo+b.Lo, foreign.Hi+b.Hi)
				spans = append(spans, spanOf[[2]int{pid, dev}])
			}
		}
		if !known {
			for pid := range holds {
				known = known || own[pid]
			}
		}
		if known {
			f.Set("gpu.foreign_listed", evidence.BoolOf(foreign.Hi > 0), clip(spans)...)
			f.Set("gpu.foreign_bytes", foreign, clip(spans)...)
		}
	}
	if _, ok := f["gpu.foreign_listed"]; !ok && len(own) == 0 {
		if e := oddHolder(in, f); e != nil {
			f.Set("gpu.foreign_listed", evidence.BoolOf(true), e.Span)
			f.Set("gpu.foreign_bytes", e.Attrs["used"], e.Span)
		}
	}
	var orphans []evidence.Span
	for _, pid := range sorted(holds) {
		p := parent[pid]
		if p == nil || own[pid] {
			continue
		}
		if p.Attrs["ppid"].I == 1 && p.Attrs["ppid"].Valid() {
			orphans = append(orphans, p.Span)
			for _, dev := range sorted(holds[pid]) {
				orphans = append(orphans, spanOf[[2]int{pid, dev}])
			}
		}
	}
	if len(orphans) > 0 {
		f.Set("gpu.orphan_holder", evidence.BoolOf(true), clip(orphans)...)
	}
	in.each(evidence.MemReport, func(e *evidence.Event) {
		// TensorFlow sizes its pool by what it finds free, less a reserve of up to
		// a gibibyte (gpu_device.cc, MinSystemMemory).
		if v, ok := e.Attrs["capacity"]; ok && e.Attrs.Str("what") == "pool" {
			f.Set("gpu.free_at_start", evidence.SizeOf(v.Lo, v.Hi+v.Hi/10+1<<30), e.Span)
		}
	})
	in.each(evidence.GPUUsage, func(e *evidence.Event) {
		if e.Attrs.Str("slice") != "" {
			return // of a MIG instance; the device's own row counts
		}
		dev := evidence.None
		if v, ok := e.Attrs["gpu"]; ok {
			dev = int(v.I)
		}
		if !relevant(dev) {
			return
		}
		used, total := e.Attrs["used"], e.Attrs["total"]
		if _, ok := f["oom.capacity"]; !ok && total.Valid() && in.Memory != nil && e.Attrs.Str("mig") != "Enabled" {
			f.Set("oom.capacity", total, e.Span) // the message names no capacity; the table does
		}
		listed := evidence.SizeOf(0, 0)
		mine := evidence.SizeOf(0, 0)
		for pid, devs := range holds {
			for d, b := range devs {
				if d == dev || d == evidence.None && len(holds) == 1 {
					listed = evidence.SizeOf(listed.Lo+b.Lo, listed.Hi+b.Hi)
				}
				if own[pid] && (d == dev || d == evidence.None) {
					mine = evidence.SizeOf(max(mine.Lo, b.Lo), max(mine.Hi, b.Hi))
				}
			}
		}
		if used.Valid() && total.Valid() && mine.Lo > 0 && mine.Lo >= total.Lo/100*95 {
			f.Set("gpu.full_by_job", evidence.BoolOf(true), e.Span)
		}
		if fr, ok := e.Attrs["free"]; ok && near(in.Memory, e, 2*time.Minute) {
			f.Set("gpu.free_at_fault", fr, e.Span)
		}
		if in.Memory == nil || !used.Valid() {
			return
		}
		switch {
		case before(e, firstOfRun(in)):
			f.Set("gpu.used_before_launch", used, e.Span)
		case after(e, in.Memory, time.Second):
			rest := floor0(used.Minus(listed))
			f.Set("gpu.unlisted_bytes", rest, e.Span)
		case e.Attrs["no_processes"].True() && !e.Stamp.Known():
			f.Set("gpu.unlisted_bytes", used, e.Span)
		}
	})
}

// onFirst finds where a table of one host lists the job's own pids on device 0: of the host
// where memory ran out, of any where the two are not both named.
func onFirst(in Input, own map[int]bool) []evidence.Span {
	type table struct{ artifact, host string }
	on := map[table]map[int]bool{}
	spans := map[table][]evidence.Span{}
	var most table
	in.each(evidence.GPUProcess, func(e *evidence.Event) {
		dev, ok := e.Attrs["gpu"]
		pid := int(e.Attrs["pid"].I)
		if !ok || dev.I != 0 || !own[pid] {
			return
		}
		if in.Memory != nil && in.Memory.Who.Host != "" && e.Who.Host != "" && !evidence.SameHost(in.Memory.Who.Host, e.Who.Host) {
			return
		}
		t := table{e.Span.Artifact, e.Who.Host}
		if on[t] == nil {
			on[t] = map[int]bool{}
		}
		if !on[t][pid] {
			on[t][pid] = true
			spans[t] = append(spans[t], e.Span)
		}
		if len(on[t]) > len(on[most]) {
			most = t
		}
	})
	return spans[most]
}

// oddHolder finds a stranger where no log names pids: a table has on each other device one
// process, all of one program, and on the failing device one of another program, which holds what
// the message says that another process holds.
func oddHolder(in Input, f evidence.Known) *evidence.Event {
	others, ok := f["oom.other_processes"]
	if !ok || others.Value.Hi == 0 || in.Memory == nil || in.Memory.Attrs["processes"].I != 2 || in.World < 3 {
		return nil
	}
	failing, known := in.Memory.Attrs["gpu"]
	if !known {
		return nil
	}
	var odd *evidence.Event
	program, on, table := "", map[int64]bool{}, ""
	for _, e := range in.Events {
		if e.Kind != evidence.GPUProcess {
			continue
		}
		dev, ok := e.Attrs["gpu"]
		name := e.Attrs.Str("name")
		if !ok || name == "" || on[dev.I] || table != "" && table != e.Span.Artifact || in.elsewhere(e) {
			return nil // not one for each device, or tables of several hosts
		}
		table, on[dev.I] = e.Span.Artifact, true
		switch {
		case dev.I == failing.I:
			odd = e
		case program != "" && program != name:
			return nil
		default:
			program = name
		}
	}
	if odd == nil || len(on) < 3 || odd.Attrs.Str("name") == program {
		return nil
	}
	for _, part := range []string{"ray::", "vllm", "sglang"} { // a job may have such a server or actor beside its ranks
		if strings.Contains(strings.ToLower(odd.Attrs.Str("name")), part) {
			return nil
		}
	}
	const rounding = 64 << 20
	used := odd.Attrs["used"]
	if used.Lo > others.Value.Hi+rounding || used.Hi < others.Value.Lo-rounding {
		return nil
	}
	return odd
}

// crowded counts the job's own pids on the device that most of them share, where
// a table names devices by bus id only: ranks that never chose a device of their
// own all sit on the first one, and ranks with a stray context sit on it as well as
// on their own.
func crowded(in Input, f evidence.Known, own map[int]bool) {
	if _, ok := f["gpu.job_pids_on_device0"]; ok || in.World < 2 {
		return
	}
	on := map[string]map[int]bool{}
	spans := map[string][]evidence.Span{}
	in.each(evidence.GPUProcess, func(e *evidence.Event) {
		pid := int(e.Attrs["pid"].I)
		if e.Who.BusID == "" || !own[pid] {
			return
		}
		if on[e.Who.BusID] == nil {
			on[e.Who.BusID] = map[int]bool{}
		}
		on[e.Who.BusID][pid] = true
		spans[e.Who.BusID] = append(spans[e.Who.BusID], e.Span)
	})
	devices := map[int]int{} // pid -> devices that it holds
	for _, pids := range on {
		for pid := range pids {
			devices[pid]++
		}
	}
	first := in.Memory == nil || !in.Memory.Attrs["gpu"].Valid() || in.Memory.Attrs["gpu"].I == 0
	for bus, pids := range on {
		// On one device alone, or all on one and the most on their own as well.
		if len(pids) < 2 || len(on) > 1 && !(first && len(pids) == len(devices) && len(pids) > 2) {
			continue
		}
		stray := int64(0)
		for _, n := range devices {
			if n > 1 {
				stray++
			}
		}
		if len(on) > 1 {
			f.Set("gpu.stray_pids", evidence.IntOf(stray), clip(spans[bus])...)
		}
		f.Set("gpu.job_pids_on_device0", evidence.IntOf(int64(len(pids))), clip(spans[bus])...)
	}
}

// stranger reports whether a pid on dev that is not among the known ones can be
// called foreign: the job's pids are all known, or its own process on that very
// device is listed beside it.
func stranger(world int, own map[int]bool, holds map[int]map[int]evidence.Value, dev int) bool {
	if world <= 1 || len(own) >= world {
		return true
	}
	if dev == evidence.None {
		return false
	}
	for pid := range holds {
		if _, on := holds[pid][dev]; on && own[pid] {
			return true
		}
	}
	return false
}

// firstOfRun is the first dated event of the run itself.
func firstOfRun(in Input) *evidence.Event {
	for _, e := range in.Events {
		if e.Stamp.Known() && e.Stamp.Clock == "wall" && evidence.SpecOf(e.Kind).Role != evidence.RoleContext {
			return e
		}
	}
	return nil
}

func comparableStamps(a, b *evidence.Event) bool {
	return a != nil && b != nil && a.Stamp.Known() && b.Stamp.Known() && a.Stamp.Clock == b.Stamp.Clock && a.Stamp.NoYear == b.Stamp.NoYear && a.Stamp.NoDate == b.Stamp.NoDate
}

func before(a, b *evidence.Event) bool {
	if a != nil && b != nil && a.Span.Artifact == b.Span.Artifact {
		return a.Span.Offset < b.Span.Offset // printed into the log itself
	}
	return comparableStamps(a, b) && a.Stamp.Time.Before(b.Stamp.Time)
}

func after(a, b *evidence.Event, by time.Duration) bool {
	if a != nil && b != nil && a.Span.Artifact == b.Span.Artifact {
		return a.Span.Offset > b.Span.Offset
	}
	return comparableStamps(a, b) && a.Stamp.Time.Sub(b.Stamp.Time) >= by
}

func near(a, b *evidence.Event, within time.Duration) bool {
	if !comparableStamps(a, b) {
		return false
	}
	d := a.Stamp.Time.Sub(b.Stamp.Time)
	return d <= within && d >= -within
}

func sorted[V any](m map[int]V) []int {
	out := make([]int, 0, len(m))
	for k := range m {
		out = append(out, k)
	}
	sort.Ints(out)
	return out
}
