//go:build !unix

package gpu

import "os/exec"

// There are no process groups to kill: a tool is ended alone, and what holds its output is
// not waited for.
func apart(*exec.Cmd) {}

func endGroup(*exec.Cmd) {}
