package record

import (
	"time"

	"github.com/inquest-dev/inquest/internal/incident"
)

// A look is what was seen of a command's memory at one moment, in bytes.
type look struct {
	pids    []int // of the processes that live
	partial bool  // the command ended meanwhile: not all were looked at
	memory  used
	// Of one process, the largest: its address space now, and the kernel's marks of its highest
	// memory and address space since it began.
	space, residentMark, spaceMark int64
	spacePID                       int    // who has spaceMark
	cgroup                         *int64 // charged to the memory cgroup
	shared                         int64  // in use in /dev/shm, whoever uses it; -1 is unknown
}

// used is the memory of processes by its kind.
type used struct {
	resident          int64 // pages in memory, those that processes share once
	anon, file, shmem int64
}

func (l look) sample(at time.Duration) incident.Sample {
	return incident.Sample{Seconds: at.Seconds(), Processes: len(l.pids), Resident: l.memory.resident, AddressSpace: l.space, Cgroup: l.cgroup, Devices: []incident.DeviceSample{}}
}

// An ending is what the kernel says when the command has ended.
type ending struct {
	spaceLimit     int64 // of the process with the largest address space; 0 is none, as below
	hostMemory     int64
	sharedMemory   int64 // size of /dev/shm
	cgroupLimit    int64
	cgroupPeak     int64  // its own mark, where that was set while the command ran; else 0
	cgroupName     string // path of the cgroup
	kills, atLimit *int64 // counted by the cgroup while the command ran
	problems       []string
}

// peaks are the highest of all looks.
type peaks struct {
	looks                   int
	apart                   time.Duration // time between the last looks
	processes               int           // most at one moment
	memory                  used
	residentMark, spaceMark int64
	cgroup, shared          int64
	kills, atLimit          *int64
}

func (p *peaks) add(l look) {
	p.looks++
	p.processes = max(p.processes, len(l.pids))
	if l.memory.resident >= p.memory.resident {
		p.memory = l.memory
	}
	p.residentMark = max(p.residentMark, l.residentMark)
	p.spaceMark = max(p.spaceMark, l.spaceMark, l.space)
	if l.cgroup != nil {
		p.cgroup = max(p.cgroup, *l.cgroup)
	}
	p.shared = max(p.shared, l.shared)
}
