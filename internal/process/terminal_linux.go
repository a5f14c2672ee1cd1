package process

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// Requests for the mode of a terminal.
const (
	getMode = unix.TCGETS
	setMode = unix.TCSETS
)

// handles reports whether a process has its own handler for sig, or ignores it.
func handles(pid int, sig syscall.Signal) bool {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return false
	}
	for _, name := range []string{"\nSigIgn:\t", "\nSigCgt:\t"} {
		_, rest, _ := bytes.Cut(status, []byte(name))
		line, _, _ := bytes.Cut(rest, []byte("\n"))
		if mask, err := strconv.ParseUint(string(line), 16, 64); err == nil && mask&(1<<(sig-1)) != 0 {
			return true
		}
	}
	return false
}
