//go:build darwin || freebsd || netbsd || openbsd || dragonfly

package record

import (
	"os"
	"runtime"
	"syscall"
)

// maxResident is the largest memory of one process of those that ps waited for, as getrusage(2)
// has it: in bytes on darwin, else in KiB.
func maxResident(ps *os.ProcessState) int64 {
	if ps == nil {
		return 0
	}
	r, ok := ps.SysUsage().(*syscall.Rusage)
	if !ok {
		return 0
	}
	if runtime.GOOS == "darwin" {
		return int64(r.Maxrss)
	}
	return int64(r.Maxrss) << 10
}
