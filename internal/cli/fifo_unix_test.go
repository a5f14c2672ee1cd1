//go:build unix

package cli

import "syscall"

// makeFIFO makes a named pipe; nil where the system has none.
var makeFIFO = func(name string) error { return syscall.Mkfifo(name, 0o600) }
