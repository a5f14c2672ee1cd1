package record

import (
	"context"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/inquest-dev/inquest/internal/gpu"
	"github.com/inquest-dev/inquest/internal/incident"
)

// Environment is what a command runs in that is started in dir: the host, its limits, the
// variables that matter for training, the Python that the command would use and what is
// installed for it, the working tree, and the devices. None of the user's programs is run: git
// and the vendors' tools are asked, within ctx and for a short time. What could not be told is
// among the problems.
func Environment(ctx context.Context, dir string, command []string, tools gpu.Runner) (*incident.Environment, []string) {
	return environment(ctx, dir, command, os.Environ(), tools)
}

func environment(ctx context.Context, dir string, command, env []string, tools gpu.Runner) (*incident.Environment, []string) {
	var p problems
	if dir == "" {
		dir, _ = os.Getwd()
	}
	if abs, err := filepath.Abs(dir); err == nil {
		dir = abs
	}
	vars := variables{}
	for _, e := range env {
		if name, v, ok := strings.Cut(e, "="); ok {
			vars[name] = v
		}
	}
	e := &incident.Environment{System: runtime.GOOS, Kernel: kernel(), CPUs: runtime.NumCPU(), Memory: hostMemory(),
		Limits: limits(), Variables: telling(vars), Packages: map[string]string{}, Devices: []incident.TrialDevice{}, Allocator: allocator(vars)}
	if host, err := os.Hostname(); err == nil {
		e.Host = bounded(oneLine(host), maxValue)
	}
	interpreter, packages, problem := python(ctx, dir, command, vars)
	e.Python, e.Packages = interpreter, packages
	if problem != "" {
		p.add("%s", problem)
	}
	var gitProblem string
	if e.Git, gitProblem = gitState(ctx, dir); gitProblem != "" {
		p.add("%s", gitProblem)
	}
	if tools != nil {
		devices(ctx, e, tools, &p)
	}
	return e, p.list
}
