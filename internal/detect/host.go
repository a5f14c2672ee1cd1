package detect

import (
	"strings"

	"github.com/inquest-dev/inquest/internal/evidence"
)

// nodeWide are the records of a kill that guards the node, not a job's limit.
var nodeWide = map[string]bool{"earlyoom": true, "systemd-oomd": true, "kubernetes-evicted": true, "kubernetes-node": true}

// hostMemory gathers what is recorded of host and shared memory.
func hostMemory(in Input, f evidence.Known) {
	if e := in.first(evidence.HostOOMKill, evidence.HostOOMSched, evidence.HostOOMRay); e != nil {
		f.Set("host.kill_recorded", evidence.BoolOf(true), e.Span)
		f.Set("host.who_killed", evidence.TextOf(string(e.Kind)), e.Span)
	}
	var victim *evidence.Event // whose resident size is known from the kernel
	for _, e := range in.Events {
		switch e.Kind {
		case evidence.HostOOMKill:
			if c := e.Attrs.Str("constraint"); c != "" {
				f.Set("host.constraint", evidence.TextOf(c), e.Span)
			}
			if v, ok := e.Attrs["limit"]; ok {
				f.Set("host.limit", v, e.Span)
			}
			if v, ok := e.Attrs["used"]; ok && v.Hi > f["host.used"].Value.Hi {
				f.Set("host.used", v, e.Span)
			}
			if v, ok := e.Attrs["rss"]; ok && (victim == nil || v.Hi > victim.Attrs["rss"].Hi) {
				victim = e
			}
		case evidence.HostOOMSched, evidence.HostOOMRay:
			if v, ok := e.Attrs["limit"]; ok {
				f.Set("host.limit", v, e.Span)
			}
			if v, ok := e.Attrs["used"]; ok {
				f.Set("host.used", v, e.Span)
			}
			if _, ok := f["host.constraint"]; !ok && e.Kind == evidence.HostOOMSched && !nodeWide[e.Attrs.Str("what")] {
				f.Set("host.constraint", evidence.TextOf("memcg"), e.Span)
			}
		case evidence.JobRecord:
			if v, ok := e.Attrs["req_mem"]; ok && v.Lo > 0 {
				f.Set("host.limit", v, e.Span)
				f.Set("host.limit_stated", evidence.BoolOf(true), e.Span)
			}
			if v, ok := e.Attrs["max_rss"]; ok && v.Hi > f["host.used"].Value.Hi {
				f.Set("host.used", v, e.Span)
			}
			if e.Attrs.Str("state") == "OUT_OF_MEMORY" {
				f.Set("host.kill_recorded", evidence.BoolOf(true), e.Span)
				f.Set("host.constraint", evidence.TextOf("memcg"), e.Span)
			}
		case evidence.HostMemReport:
			if in.elsewhere(e) {
				continue
			}
			if v, ok := e.Attrs["limit"]; ok && e.Attrs.Str("what") != "free" {
				f.Set("host.limit", v, e.Span)
				if by, ok := e.Attrs["by"]; ok {
					f.Set("host.limit_by", by, e.Span)
				}
			}
			if v, ok := e.Attrs["used"]; ok && v.Hi > f["host.used"].Value.Hi {
				f.Set("host.used", v, e.Span)
			}
			if v, ok := e.Attrs["free"]; ok {
				f.Set("host.free", v, e.Span)
			}
		case evidence.DiskUsage:
			if e.Attrs.Str("mount") == "/dev/shm" && !in.elsewhere(e) {
				if v, ok := e.Attrs["size"]; ok {
					f.Set("host.shm_size", v, e.Span)
				}
				if v, ok := e.Attrs["percent"]; ok {
					f.Set("host.shm_full", evidence.BoolOf(v.I >= 98), e.Span)
				}
			}
		case evidence.Exited, evidence.WorkerKilled, evidence.LauncherSummary:
			if s, ok := e.Attrs["signal"]; ok && s.I != 15 {
				if _, done := f["host.signal"]; !done {
					f.Set("host.signal", s, e.Span)
				}
			}
		}
	}
	// Pods of one job may have different limits: the lead's own record counts.
	if e := in.Lead; e != nil && e.Kind == evidence.HostOOMSched {
		if v, ok := e.Attrs["limit"]; ok {
			f.Set("host.limit", v, e.Span)
			f.Set("host.limit_stated", evidence.BoolOf(true), e.Span)
		}
	}
	// A logged series of the job's own memory is nearest to what the limit counts;
	// the victim's resident size is one process's share and stands in last.
	if s := in.longest("host_memory", ""); s != nil && s.HasFinite && int64(s.Max.Value) > f["host.used"].Value.Hi {
		f.Set("host.used", evidence.SizeOf(int64(s.Max.Value), int64(s.Max.Value)), s.Span(s.Max))
	}
	if _, ok := f["host.used"]; !ok && victim != nil {
		f.Set("host.used", victim.Attrs["rss"], victim.Span)
	}
	if l, ok := f["host.limit"]; ok && l.Value.Lo > 0 {
		if u, ok := f["host.used"]; ok {
			f.Set("host.near_limit", evidence.BoolOf(u.Value.Lo >= l.Value.Lo/100*95), append(u.Spans, l.Spans...)...)
		}
	}
	for _, s := range in.named("host_memory", "") {
		if s.Count < 3 || s.Key.Source == trialSource {
			continue
		}
		t, _ := grows(s)
		up := t.Rising >= .7 && t.Slope > 2*t.Error && t.Rise >= .03*s.Max.Value
		f.Set("host.grows", evidence.BoolOf(up), s.Span(s.First), s.Span(s.Last))
		if up {
			f.Set("host.growth_per_step", evidence.FloatOf(t.Slope), s.Span(s.First), s.Span(s.Last))
		}
		break
	}
	addressSpace(in, f)
	if e := in.Lead; e != nil {
		ph := phaseOf(in, e)
		f.Set("host.during_load", evidence.BoolOf(ph == "load" || ph == "resume"), e.Span)
	}
}

// trialSource is the source of what inquest itself sampled of a run: memory by the clock, which
// climbs while a program is loaded and is no growth over steps.
const trialSource = "trial"

// addressSpace says whether a limit of the address space leaves no room for what was refused. The
// largest address space that was seen is less than the largest that there was, so that room which
// seems left proves nothing, and the fact stays open.
func addressSpace(in Input, f evidence.Known) {
	limit, seen := f["host.address_limit"], f["host.address_space"]
	if in.Lead == nil || in.Lead.Kind != evidence.HostAllocFailed || limit.Value.Lo <= 0 || seen.Value.Lo <= 0 {
		return
	}
	room := limit.Value.Hi - seen.Value.Lo
	least := limit.Value.Hi / 20
	if v, ok := in.Lead.Attrs["requested"]; ok {
		least = max(least, v.Lo)
	}
	if room < least {
		f.Set("host.address_short", evidence.BoolOf(true), append(append([]evidence.Span{in.Lead.Span}, seen.Spans...), limit.Spans...)...)
	}
}

// storage gathers what df, quota and the error say about space: of the host of the fault,
// where both are named, and of the file system that holds the path, where the error states it.
func storage(in Input, f evidence.Known) {
	path := ""
	if in.Lead != nil {
		path = in.Lead.Attrs.Str("path")
	}
	holder := "" // the mount of path: the longest that is one of its folders
	in.each(evidence.DiskUsage, func(e *evidence.Event) {
		if m := e.Attrs.Str("mount"); path != "" && !in.elsewhere(e) && under(path, m) && len(m) > len(holder) {
			holder = m
		}
	})
	for _, e := range in.Events {
		if in.elsewhere(e) {
			continue
		}
		switch e.Kind {
		case evidence.DiskUsage:
			m := e.Attrs.Str("mount")
			if m == "/dev/shm" || path != "" && m != holder || path == "" && ofSystem(m) {
				continue
			}
			if a, ok := e.Attrs["avail"]; ok {
				if old, ok := f["disk.avail"]; !ok || a.Hi < old.Value.Hi {
					f.Set("disk.avail", a, e.Span)
				}
			}
			if e.Attrs["percent"].I >= 99 {
				f.Set("disk.full_shown", evidence.BoolOf(true), e.Span)
			}
		case evidence.QuotaUsage:
			if e.Attrs["exceeded"].True() {
				f.Set("disk.full_shown", evidence.BoolOf(true), e.Span)
			}
		case evidence.DiskFull, evidence.DiskQuota:
			if _, ok := f["disk.full_shown"]; !ok {
				f.Set("disk.full_shown", evidence.BoolOf(true), e.Span)
			}
		}
	}
}

// elsewhere reports whether e tells of another host than that of the leading fault.
func (in Input) elsewhere(e *evidence.Event) bool {
	return in.Lead != nil && in.Lead.Who.Host != "" && e.Who.Host != "" && !evidence.SameHost(in.Lead.Who.Host, e.Who.Host)
}

// under reports whether path lies in the folder m.
func under(path, m string) bool {
	rest, ok := strings.CutPrefix(path, m)
	return ok && (rest == "" || strings.HasSuffix(m, "/") || rest[0] == '/')
}

// ofSystem reports whether a mount holds the system itself, or an image that is full by
// nature, so that a job that does not say so writes nothing there.
func ofSystem(m string) bool {
	for _, x := range []string{"/snap", "/boot", "/dev", "/run", "/sys", "/proc", "/usr", "/cvmfs"} {
		if under(m, x) {
			return true
		}
	}
	return false
}

// workers says whether the kernel records the end of the loader worker that the lead tells of.
func workers(in Input, f evidence.Known) {
	if in.Lead == nil || in.Lead.Kind != evidence.WorkerKilled {
		return
	}
	in.each(evidence.NativeCrash, func(e *evidence.Event) {
		if evidence.SameCrash(in.Lead, e) {
			f.Set("worker.crash_recorded", evidence.BoolOf(true), e.Span, in.Lead.Span)
		}
	})
}

// exits gives code and signal of the first process that ended by itself.
func exits(in Input, f evidence.Known) {
	for _, e := range in.Events {
		if e.Kind != evidence.Exited && e.Kind != evidence.LauncherSummary && e.Kind != evidence.WorkerKilled {
			continue
		}
		if s, ok := e.Attrs["signal"]; ok && s.I != 15 {
			if _, done := f["exit.signal"]; !done {
				f.Set("exit.signal", s, e.Span)
			}
		}
		if c, ok := e.Attrs["code"]; ok && c.I != 0 && c.I != -15 && c.I != 143 {
			if _, done := f["exit.code"]; !done {
				f.Set("exit.code", c, e.Span)
				if c.I < 0 {
					if _, done := f["exit.signal"]; !done {
						f.Set("exit.signal", evidence.IntOf(-c.I), e.Span)
					}
				}
			}
		}
	}
	if s, ok := f["exit.signal"]; ok {
		if _, done := f["host.signal"]; !done {
			f["host.signal"] = s
		}
	}
}
