package gpu_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/inquest-dev/inquest/internal/gpu"
	"github.com/inquest-dev/inquest/internal/incident"
)

// A machine is composed below a folder: its /proc, /dev and /sys, and what its tools print.
type machine struct {
	t    *testing.T
	root string
	says map[string]string // command -> output; a command begins with its key
	errs map[string]error
}

const boot = 1_800_000_000 // of every machine

var asked = time.Unix(boot+100_000, 0).UTC()

// newMachine has the first namespace of process numbers, and an init that can be seen.
func newMachine(t *testing.T) *machine {
	m := &machine{t: t, root: t.TempDir(), says: map[string]string{}, errs: map[string]error{}}
	m.file("proc/stat", fmt.Sprintf("cpu 1 2 3\nbtime %d\n", boot))
	m.file("etc/passwd", "root:x:0:0::/root:/bin/sh\nana:x:1000:1000::/:/bin/sh\nben:x:1001:1001::/:/bin/sh\n")
	m.link("proc/self/ns/pid", "pid:[4026531836]")
	m.process(proc{pid: 1, comm: "systemd", uid: 0, hidden: true})
	return m
}

func (m *machine) file(name, text string) {
	m.t.Helper()
	path := filepath.Join(m.root, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		m.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		m.t.Fatal(err)
	}
}

func (m *machine) link(name, to string) {
	m.t.Helper()
	path := filepath.Join(m.root, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		m.t.Fatal(err)
	}
	os.Remove(path)
	if err := os.Symlink(to, path); err != nil {
		m.t.Skip("no symbolic links here: ", err)
	}
}

// A proc is a process of a machine. Its files can be read where it is not hidden.
type proc struct {
	pid, parent, session, uid int
	comm                      string
	state                     byte
	args                      []string
	env                       []string
	cgroup                    string
	open                      []string
	nohup, hidden             bool
}

func (m *machine) process(p proc) {
	dir := fmt.Sprintf("proc/%d/", p.pid)
	if p.state == 0 {
		p.state = 'S'
	}
	if p.session == 0 {
		p.session = p.pid
	}
	if p.comm == "" {
		p.comm = filepath.Base(p.args[0])
	}
	m.file(dir+"stat", fmt.Sprintf("%d (%s) %c %d %d %d 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 %d 0 0", p.pid, p.comm, p.state, p.parent, p.session, p.session, 5000*100))
	ignored := 0
	if p.nohup {
		ignored = 1
	}
	m.file(dir+"status", fmt.Sprintf("Name:\t%s\nUid:\t%d\t%d\t%d\t%d\nSigIgn:\t%016x\n", p.comm, p.uid, p.uid, p.uid, p.uid, ignored))
	m.file(dir+"cmdline", strings.Join(p.args, "\x00")+"\x00")
	m.file(dir+"cgroup", p.cgroup)
	if p.hidden {
		return
	}
	m.file(dir+"environ", strings.Join(p.env, "\x00"))
	m.link(dir+"fd/0", "/dev/null")
	for i, o := range p.open {
		m.link(fmt.Sprintf("%sfd/%d", dir, i+3), o)
	}
}

// run is the machine's runner: a tool that says nothing is not installed.
func (m *machine) run(_ context.Context, tool string, args ...string) ([]byte, error) {
	command := strings.Join(append([]string{tool}, args...), " ")
	best := ""
	for k := range m.says {
		if strings.HasPrefix(command, k) && len(k) > len(best) {
			best = k
		}
	}
	for k, err := range m.errs {
		if strings.HasPrefix(command, k) && len(k) >= len(best) {
			return []byte(m.says[best]), err
		}
	}
	if best == "" {
		return nil, fmt.Errorf("%s: %w", tool, exec.ErrNotFound)
	}
	return []byte(m.says[best]), nil
}

func (m *machine) look(t *testing.T) *incident.Holders {
	t.Helper()
	self := gpu.Self{Host: "node-3", User: "ana", UID: 1000, PID: 1 << 30, Now: asked}
	h, err := gpu.Look(context.Background(), m.run, m.root, self, "1.0", nil)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// smi lets nvidia-smi name devices of 80 GiB with so many MiB in use, and processes:
// "DEVICE PID MIB NAME".
func (m *machine) smi(used []int, processes ...string) {
	var gpus, apps strings.Builder
	gpus.WriteString("index, uuid, pci.bus_id, name, driver_version, memory.total [MiB], memory.used [MiB], memory.free [MiB], memory.reserved [MiB], mig.mode.current\n")
	for i, u := range used {
		fmt.Fprintf(&gpus, "%d, GPU-%d, 00000000:0%d:00.0, NVIDIA H100 80GB HBM3, 550.54.15, 81559 MiB, %d MiB, %d MiB, 551 MiB, Disabled\n", i, i, i+1, u, 81559-551-u)
	}
	apps.WriteString("gpu_uuid, gpu_bus_id, pid, process_name, used_gpu_memory [MiB]\n")
	for _, p := range processes {
		var device, pid int
		var size, name string
		if _, err := fmt.Sscan(p, &device, &pid, &size, &name); err != nil {
			m.t.Fatal(err)
		}
		if size[0] != '[' {
			size += " MiB"
		}
		fmt.Fprintf(&apps, "GPU-%d, 00000000:0%d:00.0, %d, %s, %s\n", device, device+1, pid, name, size)
	}
	m.says["nvidia-smi --query-gpu"] = gpus.String()
	m.says["nvidia-smi --query-compute-apps"] = apps.String()
}

// holder is the first one of a process.
func holder(t *testing.T, h *incident.Holders, pid int) *incident.Holder {
	t.Helper()
	for i := range h.Devices {
		for j := range h.Devices[i].Holders {
			if x := &h.Devices[i].Holders[j]; x.PID == pid {
				return x
			}
		}
	}
	t.Fatalf("process %d is no holder in %+v", pid, h.Devices)
	return nil
}

// advice are the acts of a result in short: kind, process and what is to be run.
func advice(h *incident.Holders) []string {
	var out []string
	for _, a := range h.Acts {
		s := fmt.Sprintf("%s %d", a.Kind, a.PID)
		for _, c := range a.Do {
			s += "; " + c.Command
		}
		out = append(out, s)
	}
	return out
}
