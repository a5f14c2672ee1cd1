//go:build !(linux || darwin || freebsd || netbsd || openbsd || dragonfly)

package process

import (
	"errors"
	"os"
	"syscall"
)

// A terminal is a pseudo-terminal; none is made on this system.
type terminal struct {
	master, inner *os.File
	typed         bool
}

func isTerminal(*os.File) bool { return false }

func openTerminal(in, shown *os.File) (*terminal, error) { return nil, errors.ErrUnsupported }

func (t *terminal) enter(int) {}

func (t *terminal) resize() {}

func (t *terminal) resume() {}

func (t *terminal) leave() {}

func (s *streams) attributes(group bool) *syscall.SysProcAttr { return nil }
