//go:build darwin || freebsd || netbsd || openbsd || dragonfly

package process

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// Requests for the mode of a terminal.
const (
	getMode = unix.TIOCGETA
	setMode = unix.TIOCSETA
)

// handles is not known on these systems.
func handles(pid int, sig syscall.Signal) bool { return false }
