package record

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// kernel is the system's name and release.
func kernel() string {
	b, err := os.ReadFile("/proc/sys/kernel/osrelease")
	if err != nil {
		return ""
	}
	return "Linux " + bounded(oneLine(string(b)), maxValue)
}

// hostMemory is the memory of the host, in bytes; 0 is unknown.
func hostMemory() int64 {
	b, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return 0
	}
	return field(b, "MemTotal:")
}

// limitNames are ours for those of the kernel's limits that end trainings.
var limitNames = map[string]string{
	"Max address space": "address_space", "Max data size": "data", "Max stack size": "stack", "Max open files": "open_files", "Max processes": "processes",
	"Max locked memory": "locked_memory", "Max file size": "file_size", "Max core file size": "core_size", "Max resident set": "resident", "Max cpu time": "cpu_seconds",
}

// limits are those of this process, which its command inherits, of its cgroup, of shared
// memory and of the disk that dir is on, in bytes, counts, or seconds; what is not limited is left out.
func limits(dir string) map[string]int64 { return limitsBelow("/proc", "", os.Getpid(), dir) }

func limitsBelow(proc, base string, pid int, dir string) map[string]int64 {
	out := map[string]int64{}
	for name, n := range softLimits(proc, pid) {
		if ours, ok := limitNames[name]; ok {
			out[ours] = n
		}
	}
	if c := findCgroup(proc, base, pid); c != nil && c.limit > 0 {
		out["cgroup_memory"] = c.limit
	}
	if n, ok := cgroupCPUs(proc, base, pid); ok {
		out["cgroup_cpu_permille"] = n
	}
	if _, size, _, ok := fileSystem(base + "/dev/shm"); ok {
		out["shared_memory"] = size
	}
	if _, _, free, ok := fileSystem(os.TempDir()); ok {
		out["temporary_free"] = free
	}
	if _, _, free, ok := fileSystem(dir); ok {
		out["disk_free"] = free
	}
	return out
}

// cgroupCPUs is how much of the CPUs the cgroup of pid, or one around it, may use, in
// thousandths of one CPU (cpu.max; cpu.cfs_quota_us in version 1).
func cgroupCPUs(proc, base string, pid int) (int64, bool) {
	paths, err1 := os.ReadFile(filepath.Join(proc, strconv.Itoa(pid), "cgroup"))
	mounts, err2 := os.ReadFile(filepath.Join(proc, strconv.Itoa(pid), "mountinfo"))
	if err1 != nil || err2 != nil {
		return 0, false
	}
	least, found := int64(0), false
	for _, version := range []int{1, 2} {
		name, ok := cgroupPath(string(paths), version, "cpu")
		if !ok {
			continue
		}
		root, point, ok := cgroupMount(string(mounts), version, "cpu")
		if !ok {
			continue
		}
		for dir := range upwards(base+point, root, name) {
			quota, period := int64(0), int64(0)
			if version == 2 {
				b, _ := os.ReadFile(filepath.Join(dir, "cpu.max"))
				q, p, _ := strings.Cut(string(bytes.TrimSpace(b)), " ")
				quota, _ = strconv.ParseInt(q, 10, 64)
				period, _ = strconv.ParseInt(p, 10, 64)
			} else {
				quota, _ = readCount(filepath.Join(dir, "cpu.cfs_quota_us"))
				period, _ = readCount(filepath.Join(dir, "cpu.cfs_period_us"))
			}
			if quota > 0 && quota < 1<<40 && period > 0 {
				if n := quota * 1000 / period; !found || n < least {
					least, found = n, true
				}
			}
		}
	}
	return least, found
}
