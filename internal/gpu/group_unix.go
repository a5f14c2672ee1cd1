//go:build unix

package gpu

import (
	"os/exec"
	"syscall"
)

// apart starts a tool in a process group of its own, which is killed as one.
func apart(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error {
		endGroup(cmd)
		return cmd.Process.Kill()
	}
}

// endGroup kills what is left of a tool's process group.
func endGroup(cmd *exec.Cmd) {
	if cmd.Process != nil && cmd.Process.Pid > 1 {
		syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
	}
}
