//go:build unix

package process

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// lookUp finds the program that a shell would run for name in dir with env: a name with a
// slash is a path, any other is sought in PATH. A file that may not be executed is the answer
// where no other is found.
func lookUp(name, dir string, env []string) (string, error) {
	if strings.Contains(name, "/") {
		return name, nil
	}
	var denied string
	for _, folder := range filepath.SplitList(variable(env, "PATH")) {
		if folder == "" {
			folder = "."
		}
		path := filepath.Join(folder, name)
		if !strings.Contains(path, "/") {
			path = "./" + path
		}
		st, err := os.Stat(Within(dir, path))
		if err != nil || st.IsDir() {
			continue
		}
		if unix.Faccessat(unix.AT_FDCWD, Within(dir, path), unix.X_OK, unix.AT_EACCESS) == nil && st.Mode()&0o111 != 0 {
			return path, nil
		}
		if denied == "" {
			denied = path
		}
	}
	if denied != "" {
		return "", &fs.PathError{Op: "run", Path: denied, Err: syscall.EACCES}
	}
	return "", &exec.Error{Name: name, Err: exec.ErrNotFound}
}

// shellFor is the shell that runs name, a script without an interpreter's line; "" where err,
// of starting it, says something else.
func shellFor(err error, name, dir string) string {
	if errors.Is(err, syscall.ENOEXEC) && isText(Within(dir, name)) {
		return "/bin/sh"
	}
	return ""
}

// notStarted is the exit of a command that could not be started, with a shell's status.
func notStarted(err error) Exit {
	e := Exit{Status: cannotRun, Error: err.Error()}
	for _, absent := range []error{exec.ErrNotFound, syscall.ENOENT, syscall.ENOTDIR, syscall.ENAMETOOLONG, syscall.ELOOP} {
		if errors.Is(err, absent) {
			e.Status = notFound
		}
	}
	return e
}

// exitOf is how the command ended; err is of the waiting for it.
func exitOf(ps *os.ProcessState, err error) Exit {
	var status syscall.WaitStatus
	if ps != nil {
		status, _ = ps.Sys().(syscall.WaitStatus)
	}
	switch {
	case ps == nil:
		return Exit{Status: cannotRun, Error: fmt.Sprintf("wait for its end: %v", err)}
	case status.Signaled():
		return Exit{Status: 128 + int(status.Signal()), Signal: signalName(status.Signal()), Core: status.CoreDump()}
	}
	return Exit{Status: status.ExitStatus()}
}

// signalName is SIGKILL, SIGRTMIN+3, …
func signalName(s syscall.Signal) string {
	if name := unix.SignalName(s); name != "" {
		return name
	}
	if s >= 34 && s <= 64 {
		return fmt.Sprintf("SIGRTMIN+%d", s-34)
	}
	return fmt.Sprintf("SIG%d", s)
}
