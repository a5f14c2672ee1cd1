package record

import (
	"encoding/binary"
	"syscall"
)

// kernel is the system's name and release.
func kernel() string {
	release, err := syscall.Sysctl("kern.osrelease")
	if err != nil {
		return ""
	}
	return "Darwin " + bounded(oneLine(release), maxValue)
}

// hostMemory is the memory of the host, in bytes; 0 is unknown.
func hostMemory() int64 {
	// Sysctl reads text, and takes a last NUL for its end.
	s, err := syscall.Sysctl("hw.memsize")
	if err != nil || len(s) > 8 {
		return 0
	}
	var b [8]byte
	copy(b[:], s)
	return int64(binary.LittleEndian.Uint64(b[:]))
}

// limits are those of this process, which its command inherits, and of the disk that dir is on;
// what is not limited is left out.
func limits(dir string) map[string]int64 {
	out := map[string]int64{}
	for name, which := range map[string]int{"address_space": syscall.RLIMIT_AS, "data": syscall.RLIMIT_DATA, "stack": syscall.RLIMIT_STACK, "open_files": syscall.RLIMIT_NOFILE, "file_size": syscall.RLIMIT_FSIZE, "core_size": syscall.RLIMIT_CORE, "cpu_seconds": syscall.RLIMIT_CPU} {
		var r syscall.Rlimit
		if err := syscall.Getrlimit(which, &r); err == nil && r.Cur < 1<<62 {
			out[name] = int64(r.Cur)
		}
	}
	var s syscall.Statfs_t
	if err := syscall.Statfs(dir, &s); err == nil {
		out["disk_free"] = int64(s.Bavail) * int64(s.Bsize)
	}
	return out
}
