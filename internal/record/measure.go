package record

import (
	"fmt"
	"os"
	"time"

	"github.com/inquest-dev/inquest/internal/incident"
)

// measures are the peaks of a command that ended as ps says.
func (s *sampler) measures(ps *os.ProcessState, e ending) []incident.Measure {
	s.peaks.kills, s.peaks.atLimit = e.kills, e.atLimit
	out := []incident.Measure{}
	if m, ok := residentMeasure(s.peaks, e, ps); ok {
		out = append(out, m)
	}
	if p := s.peaks; p.spaceMark > 0 {
		out = append(out, withLimit(incident.Measure{Name: incident.AddressSpace, Peak: p.spaceMark, AtLeast: true,
			Basis: "the kernel's own mark of the largest process, last read before it ended"}, e.spaceLimit, "ulimit -v"))
	}
	if m, ok := cgroupMeasure(s.peaks, e); ok {
		out = append(out, m)
	}
	if p := s.peaks; p.shared > 0 {
		out = append(out, withLimit(incident.Measure{Name: incident.SharedMemory, Peak: p.shared, AtLeast: true,
			Basis: "what was in use in /dev/shm, by whomever; " + looked(p)}, e.sharedMemory, "/dev/shm"))
	}
	if s.devices != nil {
		devices, problem := s.devices.end()
		out = append(out, devices...)
		if problem != "" {
			s.problem.add("%s", problem)
		}
	}
	return out
}

// residentMeasure is the highest memory of the process tree. Of one process the kernel's mark is
// exact. Of several it is what they had together at one look, or the mark of the largest where
// that is more.
func residentMeasure(p peaks, e ending, ps *os.ProcessState) (incident.Measure, bool) {
	m := incident.Measure{Name: incident.Resident, Peak: p.memory.resident, AtLeast: true}
	child, own := ownMark(ps)
	if child <= own {
		// A process begins as a copy of this one, and its mark with what this one has: it says
		// nothing of a command that stays below.
		child = 0
	}
	mark := max(p.residentMark, child)
	switch {
	case p.processes == 0 && mark > 0:
		m.Peak, m.Basis = mark, "the kernel's own mark of the largest of its processes; it ended before a look at them"
	case p.processes == 1 && mark > 0:
		m.Peak, m.Basis = mark, "the kernel's own mark of the process"
		m.AtLeast = child == 0
		if m.AtLeast {
			m.Basis += ", last read before it ended"
		}
	case mark > m.Peak:
		m.Peak, m.Basis = mark, fmt.Sprintf("the kernel's own mark of the largest of up to %d processes; together they had more", p.processes)
	case m.Peak > 0:
		m.Basis = fmt.Sprintf("up to %d processes together; %s; pages of files that they share count once, other shared pages once for each process, but never more than the host has in use", p.processes, looked(p))
	default:
		return m, false
	}
	return withLimit(m, e.hostMemory, "host"), true
}

func cgroupMeasure(p peaks, e ending) (incident.Measure, bool) {
	m := incident.Measure{Name: incident.CgroupMemory, Peak: p.cgroup, AtLeast: true}
	switch {
	case e.cgroupPeak >= m.Peak && e.cgroupPeak > 0:
		m.Peak, m.AtLeast, m.Basis = e.cgroupPeak, false, "the kernel's own mark, set while the command ran"
	case m.Peak > 0:
		m.Basis = looked(p)
	default:
		return m, false
	}
	m.Basis += "; all processes and files charged to " + bounded(e.cgroupName, 128)
	return withLimit(m, e.cgroupLimit, "cgroup"), true
}

func looked(p peaks) string {
	if p.looks == 1 {
		return "looked at once"
	}
	return fmt.Sprintf("looked at %d times, the last ones %s apart", p.looks, p.apart.Round(time.Millisecond))
}

func withLimit(m incident.Measure, bytes int64, by string) incident.Measure {
	if bytes > 0 {
		m.Limit, m.LimitBy = &bytes, by
	}
	return m
}
