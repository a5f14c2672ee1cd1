//go:build !unix

package process

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
)

// lookUp finds the program for name, as the system does.
func lookUp(name, dir string, env []string) (string, error) {
	path, err := exec.LookPath(name)
	if errors.Is(err, exec.ErrDot) {
		err = nil
	}
	return path, err
}

// shellFor is "": no shell runs files that the system does not.
func shellFor(err error, name, dir string) string { return "" }

// notStarted is the exit of a command that could not be started.
func notStarted(err error) Exit {
	e := Exit{Status: cannotRun, Error: err.Error()}
	if errors.Is(err, exec.ErrNotFound) || errors.Is(err, fs.ErrNotExist) {
		e.Status = notFound
	}
	return e
}

// exitOf is how the command ended; err is of the waiting for it.
func exitOf(ps *os.ProcessState, err error) Exit {
	if ps == nil {
		return Exit{Status: cannotRun, Error: fmt.Sprintf("wait for its end: %v", err)}
	}
	return Exit{Status: ps.ExitCode()}
}
