package record

import (
	"context"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"

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
		Limits: limits(dir), Variables: telling(vars), Packages: map[string]string{}, Devices: []incident.TrialDevice{}, Allocator: allocator(vars)}
	if host, err := os.Hostname(); err == nil {
		e.Host = bounded(oneLine(host), maxValue)
	}
	var all sync.WaitGroup
	var ofPython, ofGit string
	var ofDevices problems
	all.Go(func() { e.Python, e.Packages, ofPython = python(ctx, dir, command, vars) })
	all.Go(func() { e.Git, ofGit = gitState(ctx, dir) })
	if tools != nil {
		all.Go(func() { devices(ctx, e, tools, &ofDevices) })
	}
	all.Wait()
	for _, text := range append([]string{ofPython, ofGit}, ofDevices.list...) {
		if text != "" {
			p.add("%s", text)
		}
	}
	return e, p.list
}
