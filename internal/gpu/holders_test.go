package gpu_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/inquest-dev/inquest/internal/gpu"
	"github.com/inquest-dev/inquest/internal/incident"
)

const node0 = "/dev/nvidia0"

// TestWhoseAndWhat: each process of one layout, and what is said and advised of it.
func TestWhoseAndWhat(t *testing.T) {
	python := []string{"/usr/bin/python", "train.py"}
	worker := []string{"/usr/bin/python", "-c", "from multiprocessing.spawn import spawn_main; spawn_main(tracker_fd=5)", "--multiprocessing-fork"}
	for _, c := range []struct {
		name                       string
		p                          proc
		others                     []proc
		whose, state, kind, advice string
		orphan                     bool
	}{
		{"your training, its launcher alive", proc{args: python, parent: 40, session: 40, uid: 1000, env: []string{"RANK=3", "LOCAL_RANK=3", "TORCHELASTIC_RUN_ID=x"}, open: []string{node0}}, []proc{{pid: 40, parent: 1, uid: 1000, comm: "torchrun"}},
			incident.HolderYours, incident.HolderRunning, incident.HolderTraining, "leave 4711", false},
		{"your rank, its launcher gone", proc{args: python, parent: 1, session: 40, uid: 1000, env: []string{"RANK=3", "TORCHELASTIC_RUN_ID=x"}, open: []string{node0}}, nil,
			incident.HolderYours, incident.HolderRunning, incident.HolderTraining, "end 4711; kill 4711", true},
		{"the same, stopped", proc{args: python, parent: 1, session: 40, uid: 1000, state: 'T', env: []string{"TORCHELASTIC_RUN_ID=x"}, open: []string{node0}}, nil,
			incident.HolderYours, incident.HolderStopped, incident.HolderTraining, "end 4711; kill 4711; kill -CONT 4711", true},
		{"the same, in the driver", proc{args: python, parent: 1, session: 40, uid: 1000, state: 'D', env: []string{"TORCHELASTIC_RUN_ID=x"}, open: []string{node0}}, nil,
			incident.HolderYours, incident.HolderWaiting, incident.HolderTraining, "look 4711", true},
		{"the same, which has no device open any more", proc{args: python, parent: 1, session: 40, uid: 1000, env: []string{"TORCHELASTIC_RUN_ID=x"}}, nil,
			incident.HolderYours, incident.HolderRunning, incident.HolderTraining, "leave 4711", true},
		{"started by nohup, and its shell gone", proc{args: python, parent: 1, session: 40, uid: 1000, nohup: true, open: []string{node0}}, nil,
			incident.HolderYours, incident.HolderRunning, incident.HolderTraining, "leave 4711", false},
		{"its shell gone", proc{args: python, parent: 1, session: 40, uid: 1000, open: []string{node0}}, nil,
			incident.HolderYours, incident.HolderRunning, incident.HolderTraining, "end 4711; kill 4711", true},
		{"by itself from the start", proc{args: python, parent: 1, uid: 1000, open: []string{node0}}, nil,
			incident.HolderYours, incident.HolderRunning, incident.HolderTraining, "leave 4711", false},
		{"a service", proc{args: python, parent: 1, session: 40, uid: 1000, env: []string{"TORCHELASTIC_RUN_ID=x"}, cgroup: "0::/system.slice/trainer.service\n", open: []string{node0}}, nil,
			incident.HolderYours, incident.HolderRunning, incident.HolderTraining, "leave 4711", false},
		{"a worker whose parent is gone", proc{args: worker, parent: 1, session: 40, uid: 1000, open: []string{node0}}, nil,
			incident.HolderYours, incident.HolderRunning, incident.HolderWorker, "end 4711; kill 4711", true},
		{"a notebook", proc{args: []string{"python", "-m", "ipykernel_launcher", "-f", "/run/kernel-0a1b.json"}, parent: 40, uid: 1000, open: []string{node0}}, []proc{{pid: 40, parent: 1, uid: 1000, comm: "jupyter-lab"}},
			incident.HolderYours, incident.HolderRunning, incident.HolderNotebook, "shut 4711; kill 4711", false},
		{"a server", proc{args: []string{"VLLM::EngineCore"}, parent: 40, uid: 1000, open: []string{node0}}, nil,
			incident.HolderYours, incident.HolderRunning, incident.HolderInference, "leave 4711", false},
		{"a training that is told to use a server", proc{args: []string{"python", "train.py", "--teacher", "vllm"}, parent: 40, uid: 1000, open: []string{node0}}, nil,
			incident.HolderYours, incident.HolderRunning, incident.HolderTraining, "leave 4711", false},
		{"yours, ended", proc{args: python, parent: 40, uid: 1000, state: 'Z'}, nil,
			incident.HolderYours, incident.HolderZombie, incident.HolderTraining, "look 4711", false},
		{"yours, stopped", proc{args: python, parent: 40, uid: 1000, state: 'T', open: []string{node0}}, []proc{{pid: 40, parent: 1, uid: 1000, comm: "bash"}},
			incident.HolderYours, incident.HolderStopped, incident.HolderTraining, "look 4711; kill -CONT 4711", false},
		{"another's", proc{args: python, parent: 1, session: 40, uid: 1001, hidden: true}, nil,
			incident.HolderOthers, incident.HolderRunning, incident.HolderTraining, "ask 4711", true},
		{"a worker of a pool that its first process leads", proc{args: python, parent: 1, uid: 1000, env: []string{"RANK=0"}, open: []string{node0}}, nil,
			incident.HolderYours, incident.HolderRunning, incident.HolderTraining, "leave 4711", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := newMachine(t)
			c.p.pid = 4711
			m.process(c.p)
			for _, o := range c.others {
				o.hidden = o.uid != 1000
				m.process(o)
			}
			m.smi([]int{20010}, "0 4711 20000 python")
			r := m.look(t)
			h := holder(t, r, 4711)
			if h.Whose != c.whose || h.State != c.state || h.Kind != c.kind || (h.Orphan != "") != c.orphan {
				t.Errorf("whose %s, state %s, kind %s, orphan %q; basis %q", h.Whose, h.State, h.Kind, h.Orphan, h.Basis)
			}
			if got := advice(r); len(got) != 1 || got[0] != c.advice {
				t.Errorf("advice %q, want %q", got, c.advice)
			}
			if h.Started != "2027-01-15T09:23:20Z" {
				t.Errorf("started %s", h.Started)
			}
		})
	}
}

// TestLauncherThatIsInit: in a container the launcher may be process 1, and is alive then.
func TestLauncherThatIsInit(t *testing.T) {
	m := newMachine(t)
	m.link("proc/self/ns/pid", "pid:[4026532000]")
	m.process(proc{pid: 1, args: []string{"/usr/bin/python", "/usr/bin/torchrun"}, comm: "torchrun", uid: 1000})
	m.process(proc{pid: 7, args: []string{"python", "train.py"}, parent: 1, uid: 1000, env: []string{"TORCHELASTIC_RUN_ID=x"}, open: []string{node0}})
	m.smi([]int{20010}, "0 7 20000 python")
	r := m.look(t)
	if got := advice(r); len(got) != 1 || got[0] != "leave 7" {
		t.Errorf("%q", got)
	}
	if r.Place.Container == "" || r.Place.Processes != gpu.SeesNamespace {
		t.Errorf("%+v", r.Place)
	}
}

// TestNumbersOfAnotherNamespace: the driver counts the machine's processes, and inside a
// container other processes have the same numbers. Nobody is blamed for them, and nothing is
// to be ended.
func TestNumbersOfAnotherNamespace(t *testing.T) {
	for _, c := range []struct {
		name string
		p    *proc
	}{
		{"no such process", nil},
		{"one of yours without a device", &proc{args: []string{"python", "train.py"}, parent: 1, session: 2, uid: 1000, env: []string{"TORCHELASTIC_RUN_ID=x"}}},
		{"one that cannot be looked at", &proc{args: []string{"python", "train.py"}, parent: 1, session: 2, uid: 1001, hidden: true}},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := newMachine(t)
			m.link("proc/self/ns/pid", "pid:[4026532000]")
			if c.p != nil {
				c.p.pid = 4711
				m.process(*c.p)
			}
			m.smi([]int{20010}, "0 4711 20000 [Not.Found]")
			r := m.look(t)
			h := holder(t, r, 4711)
			if h.Whose != incident.HolderNobodys || h.State != incident.HolderNotShown || h.Command != "" {
				t.Errorf("%+v", h)
			}
			if got := advice(r); len(got) != 1 || got[0] != "look 4711" {
				t.Errorf("%q", got)
			}
			if len(r.Limits) == 0 {
				t.Error("no limit says that the machine's processes cannot be seen")
			}
		})
	}
}

// TestWhomToAsk: the owner's job, pod or container, and the command that shows more.
func TestWhomToAsk(t *testing.T) {
	id := strings.Repeat("0a", 32)
	for _, c := range []struct{ cgroup, says, command string }{
		{"12:devices:/slurm/uid_1001/job_812/step_0/task_0\n0::/\n", "ben (slurm job 812)", "squeue -j 812"},
		{"0::/system.slice/slurmstepd.scope/job_812/step_batch/user/task_0\n", "ben (slurm job 812)", "squeue -j 812"},
		{"0::/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod0a1b2c3d_1111_2222_3333_444455556666.slice/cri-containerd-" + id + ".scope\n", "ben (pod 0a1b2c3d-1111-2222-3333-444455556666)", "0a1b2c3d-1111-2222-3333-444455556666"},
		{"5:memory:/kubepods/besteffort/pod0a1b2c3d-1111-2222-3333-444455556666/" + id + "\n", "ben (pod 0a1b2c3d-1111-2222-3333-444455556666)", "0a1b2c3d-1111-2222-3333-444455556666"},
		{"0::/system.slice/docker-" + id + ".scope\n", "ben (docker container 0a0a0a0a0a0a)", "docker ps --filter id=0a0a0a0a0a0a"},
		{"4:cpu:/docker/" + id + "\n", "ben (docker container 0a0a0a0a0a0a)", "docker ps --filter id=0a0a0a0a0a0a"},
		{"0::/user.slice/user-1001.slice/user@1001.service/user.slice/libpod-" + id + ".scope/container\n", "ben (podman container 0a0a0a0a0a0a)", "podman ps --filter id=0a0a0a0a0a0a"},
		{"0::/machine.slice/crio-" + id + ".scope\n", "ben (container 0a0a0a0a0a0a)", "sudo crictl ps --id 0a0a0a0a0a0a"},
		{"3:cpuset:/lsf/cluster1/job.77.12.1700000000\n", "ben (lsf job 77)", "bjobs -l '77'"},
		{"0::/pbs_jobs.service/jobid/123.head\n", "ben (pbs job 123.head)", "qstat -f '123.head'"},
		{"0::/user.slice/user-1001.slice/session-3.scope\n", "ask ben: process 4711", "ps -o pid,user,stat,lstart,args -p 4711"},
		{"0::/system.slice/slurmstepd.scope/job_8;rm -rf x/step_0\n", "ask ben", "ps -o pid,user,stat,lstart,args -p 4711"},
	} {
		m := newMachine(t)
		m.process(proc{pid: 4711, args: []string{"python", "train.py"}, parent: 40, uid: 1001, hidden: true, cgroup: c.cgroup})
		m.smi([]int{20010}, "0 4711 20000 python")
		r := m.look(t)
		if len(r.Acts) != 1 || r.Acts[0].Kind != incident.HolderActAsk || !strings.Contains(r.Acts[0].Says, c.says) {
			t.Errorf("%s: %+v", c.cgroup, r.Acts)
			continue
		}
		found := false
		for _, k := range r.Acts[0].Check {
			found = found || strings.HasSuffix(k.Command, c.command)
			if strings.Contains(k.Command, ";") {
				t.Errorf("%s gives the command %q", c.cgroup, k.Command)
			}
		}
		if !found {
			t.Errorf("%s: no command %q in %+v", c.cgroup, c.command, r.Acts[0].Check)
		}
	}
}

// TestSeveralOfOne: one sentence for all that one owner is to be asked about, or that is yours
// and runs, and it names each.
func TestSeveralOfOne(t *testing.T) {
	m := newMachine(t)
	for i := range 12 {
		uid := 1000 + i%2
		m.process(proc{pid: 100 + i, args: []string{"python", "train.py"}, parent: 40, uid: uid, hidden: uid != 1000, cgroup: "0::/system.slice/slurmstepd.scope/job_5/step_0/user/task_0\n", open: []string{node0}})
	}
	var rows []string
	for i := range 12 {
		rows = append(rows, fmt.Sprintf("0 %d 1000 python", 100+i))
	}
	m.smi([]int{12040}, rows...)
	r := m.look(t)
	if len(r.Acts) != 2 || !slices.Equal(r.Acts[0].PIDs, []int{101, 103, 105, 107, 109, 111}) || *r.Acts[0].Bytes != 6000<<20 || !strings.HasSuffix(r.Acts[0].Says, "the same goes for 5 processes: 103, 105, 107, 109, 111") {
		t.Errorf("%+v", r.Acts)
	}
	if len(r.Acts) == 2 && (r.Acts[1].Kind != incident.HolderActLeave || len(r.Acts[1].PIDs) != 6) {
		t.Errorf("%+v", r.Acts[1])
	}
}

// TestUnseen: what no process accounts for, as an interval, with the reasons that are left.
func TestUnseen(t *testing.T) {
	m := newMachine(t)
	m.file("proc/driver/nvidia/gpus/0000:01:00.0/information", "Model: \t\t NVIDIA H100\nGPU UUID: \t GPU-0\nDevice Minor: \t 3\n")
	m.process(proc{pid: 4711, args: []string{"python", "train.py"}, parent: 40, uid: 1000, open: []string{"/dev/nvidia3"}})
	m.process(proc{pid: 4712, args: []string{"python", "left.py"}, parent: 40, uid: 1000, open: []string{"/dev/nvidia3", "/dev/nvidiactl"}})
	m.process(proc{pid: 4713, args: []string{"python", "else.py"}, parent: 40, uid: 1000, open: []string{"/dev/nvidia0"}})
	m.smi([]int{30000}, "0 4711 20000 python")
	r := m.look(t)
	u := r.Devices[0].Unseen
	if u == nil || u.Lo < 9900<<20 || u.Lo > 10000<<20 || u.Hi < 10000<<20 || u.Hi > 10002<<20 {
		t.Fatalf("%+v", u)
	}
	if len(r.Devices[0].Opened) != 1 || r.Devices[0].Opened[0].PID != 4712 {
		t.Errorf("%+v", r.Devices[0].Opened)
	}
	if !strings.Contains(strings.Join(u.Reasons, "\n"), "4712 (python left.py) has the device open") {
		t.Errorf("%q", u.Reasons)
	}
	if want := "device 0: 29.3 of 79.6 GiB used; 19.5 GiB by your process 4711 (python train.py), 9.7 to 9.8 GiB by nobody that is seen"; r.Says != want {
		t.Errorf("%q", r.Says)
	}
	if got := advice(r); !slices.Equal(got, []string{"look 0", "leave 4711"}) {
		t.Errorf("%q", got)
	}

	// A driver that takes a little, and nothing else.
	m = newMachine(t)
	m.smi([]int{12})
	r = m.look(t)
	if u := r.Devices[0].Unseen; u == nil || u.Lo != 0 || len(r.Acts) > 0 || len(u.Reasons) > 0 {
		t.Errorf("%+v %+v", u, r.Acts)
	}

	// A process that the driver does not account for: nothing is said of the rest.
	m = newMachine(t)
	m.process(proc{pid: 4711, args: []string{"python", "train.py"}, parent: 40, uid: 1000, open: []string{node0}})
	for _, size := range []string{"[N/A]", "0"} {
		m.smi([]int{30000}, "0 4711 "+size+" python")
		r = m.look(t)
		if r.Devices[0].Unseen != nil || r.Devices[0].Holders[0].Bytes != nil || len(r.Limits) == 0 {
			t.Errorf("%s: %+v, %q", size, r.Devices[0].Unseen, r.Limits)
		}
	}

	// A process that is no more.
	m = newMachine(t)
	m.smi([]int{20010}, "0 4711 20000 python")
	r = m.look(t)
	if h := holder(t, r, 4711); h.State != incident.HolderDead || h.Whose != incident.HolderNobodys {
		t.Errorf("%+v", h)
	}
	if got := advice(r); !slices.Equal(got, []string{"look 0"}) && !slices.Equal(got, []string{"look 4711"}) {
		t.Errorf("%q", got)
	}
}

// TestStrays: contexts of other ranks on one device are a pattern among processes, not a size.
func TestStrays(t *testing.T) {
	for _, c := range []struct {
		name      string
		used      []int
		processes []string
		device    int
		pids      []int
		bytes     int64
	}{
		{"four ranks", []int{41500, 40010, 40010, 40010}, []string{"0 10 40000 python", "1 11 39000 python", "0 11 480 python", "2 12 39000 python", "0 12 484 python", "3 13 39000 python", "0 13 480 python"}, 0, []int{11, 12, 13}, 1444},
		{"on the first device of the job", []int{1, 41500, 40010, 40010}, []string{"1 10 40000 python", "2 11 39000 python", "1 11 1400 python", "3 12 39000 python", "1 12 1402 python"}, 1, []int{11, 12}, 2802},
		{"one model on two devices", []int{40010, 40010}, []string{"0 10 40000 python", "1 10 40000 python"}, 0, nil, 0},
		{"one process alone", []int{40010, 40010}, []string{"0 10 40000 python", "1 11 39000 python", "0 11 480 python"}, 0, nil, 0},
		{"of different sizes", []int{60010, 40010, 40010}, []string{"1 11 39000 python", "0 11 480 python", "2 12 39000 python", "0 12 9000 python"}, 0, nil, 0},
		{"of different programs", []int{60010, 40010, 40010}, []string{"1 11 39000 python", "0 11 480 python", "2 12 39000 python", "0 12 480 vllm"}, 0, nil, 0},
		{"pipelines of two devices each", []int{40010, 40010, 1010, 1010}, []string{"0 11 20000 python", "2 11 300 python", "0 12 20000 python", "3 12 300 python"}, 0, nil, 0},
	} {
		m := newMachine(t)
		m.smi(c.used, c.processes...)
		r := m.look(t)
		if c.pids == nil {
			if len(r.Strays) > 0 {
				t.Errorf("%s: %+v", c.name, r.Strays)
			}
			continue
		}
		if len(r.Strays) != 1 || r.Strays[0].Device != c.device || !slices.Equal(r.Strays[0].PIDs, c.pids) || r.Strays[0].Bytes == nil || *r.Strays[0].Bytes != c.bytes<<20 {
			t.Errorf("%s: %+v", c.name, r.Strays)
		}
	}
}

// TestNoAnswer: each way in which no tool names a device is told apart.
func TestNoAnswer(t *testing.T) {
	const noDriver = "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. Make sure that the latest NVIDIA driver is installed and running.\n"
	pci := func(m *machine, vendor string) {
		m.file("sys/bus/pci/devices/0000:01:00.0/class", "0x030200\n")
		m.file("sys/bus/pci/devices/0000:01:00.0/vendor", vendor+"\n")
	}
	exit := fmt.Errorf("exit status 9")
	for _, c := range []struct {
		name, status, says string
		do                 func(m *machine)
	}{
		{"nothing at all", incident.HoldersNoDevice, "there is no GPU here", func(m *machine) {}},
		{"another's graphics", incident.HoldersNoDevice, "there is no GPU here", func(m *machine) { pci(m, "0x8086") }},
		{"a device and no tool", incident.HoldersNoTool, "1 of NVIDIA on the PCI bus (0000:01:00.0)", func(m *machine) { pci(m, "0x10de") }},
		{"device files and no tool", incident.HoldersNoTool, "/dev/nvidia0", func(m *machine) { m.file("dev/nvidia0", "") }},
		{"Windows below", incident.HoldersNoTool, "/usr/lib/wsl/lib", func(m *machine) { m.file("dev/dxg", "") }},
		{"no driver", incident.HoldersNoDriver, "the NVIDIA driver is not loaded; devices are there", func(m *machine) {
			pci(m, "0x10de")
			m.says["nvidia-smi"], m.errs["nvidia-smi"] = noDriver, exit
		}},
		{"no driver and no device", incident.HoldersNoDriver, "the system shows no device", func(m *machine) { m.says["nvidia-smi"], m.errs["nvidia-smi"] = noDriver, exit }},
		{"a driver that does not answer", incident.HoldersNoDriver, "though its module is loaded", func(m *machine) {
			m.file("proc/driver/nvidia/version", "NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.54.15  Tue Mar  5\n")
			m.says["nvidia-smi"], m.errs["nvidia-smi"] = noDriver, exit
		}},
		{"after an update", incident.HoldersNoDriver, "of another version than its library", func(m *machine) {
			m.says["nvidia-smi"], m.errs["nvidia-smi"] = "Failed to initialize NVML: Driver/library version mismatch\nNVML library version: 550.54\n", exit
		}},
		{"a container that lost its devices", incident.HoldersNoDriver, "Failed to initialize NVML: Unknown Error", func(m *machine) {
			m.says["nvidia-smi"], m.errs["nvidia-smi"] = "Failed to initialize NVML: Unknown Error\n", exit
		}},
		{"a tool that finds none", incident.HoldersNoDevice, "no GPU that can be used", func(m *machine) { m.says["nvidia-smi"] = "No devices were found\n" }},
		{"a tool that hangs", incident.HoldersNoAnswer, "did not answer in time", func(m *machine) {
			m.file("proc/driver/nvidia/gpus/0000:01:00.0/information", "Model: NVIDIA L4\n")
			m.says["nvidia-smi"], m.errs["nvidia-smi"] = "", context.DeadlineExceeded
		}},
		{"a tool that fails", incident.HoldersNoAnswer, "exit status 9", func(m *machine) { m.says["nvidia-smi"], m.errs["nvidia-smi"] = "", exit }},
		{"garbage", incident.HoldersNoAnswer, "nothing that was understood", func(m *machine) { m.says["nvidia-smi"] = "\x00\x01\x02<<<<\n,,,,\n" }},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := newMachine(t)
			c.do(m)
			r := m.look(t)
			if r.Status != c.status || !strings.Contains(r.Says, c.says) {
				t.Errorf("%s: %s", r.Status, r.Says)
			}
			if len(r.Acts) > 0 {
				t.Errorf("%+v", r.Acts)
			}
		})
	}
}

// TestHungWithOpenDevices: where the tool hangs, the processes that have a device open are
// named all the same.
func TestHungWithOpenDevices(t *testing.T) {
	m := newMachine(t)
	m.file("proc/driver/nvidia/gpus/0000:01:00.0/information", "Model: NVIDIA L4\nDevice Minor: 0\n")
	m.process(proc{pid: 4711, args: []string{"python", "train.py"}, parent: 40, uid: 1000, open: []string{node0}})
	m.says["nvidia-smi"], m.errs["nvidia-smi"] = "", context.DeadlineExceeded
	r := m.look(t)
	if r.Status != incident.HoldersNoAnswer || len(r.Devices) != 1 || len(r.Devices[0].Opened) != 1 || r.Devices[0].Opened[0].PID != 4711 || r.Devices[0].Opened[0].Whose != incident.HolderYours {
		t.Errorf("%+v", r)
	}
}

// TestHiddenProcesses: /proc that hides others' processes leaves open whose they are.
func TestHiddenProcesses(t *testing.T) {
	m := newMachine(t)
	if err := os.RemoveAll(filepath.Join(m.root, "proc", "1")); err != nil {
		t.Fatal(err)
	}
	m.smi([]int{20010}, "0 4711 20000 python")
	r := m.look(t)
	if h := holder(t, r, 4711); h.State != incident.HolderNotShown || h.Whose != incident.HolderNobodys || r.Place.Processes != gpu.SeesOwn {
		t.Errorf("%+v, %+v", h, r.Place)
	}
	if got := advice(r); !slices.Equal(got, []string{"look 4711"}) {
		t.Errorf("%q", got)
	}
}

// TestFilesOfAMDGPU: where no tool is installed, what the driver's own files say counts.
func TestFilesOfAMDGPU(t *testing.T) {
	m := newMachine(t)
	for name, text := range map[string]string{"class": "0x120000", "vendor": "0x1002", "mem_info_vram_total": "206141652992", "mem_info_vram_used": "103070826496", "unique_id": "0xabc"} {
		m.file("sys/bus/pci/devices/0000:26:00.0/"+name, text+"\n")
	}
	r := m.look(t)
	if r.Status != incident.HoldersAnswered || len(r.Devices) != 1 || r.Devices[0].Used == nil || *r.Devices[0].Used != 103070826496 || r.Devices[0].Unseen != nil {
		t.Errorf("%+v", r)
	}
}

// TestToolsOfAMD: amd-smi's three parts, and rocm-smi where it is not there.
func TestToolsOfAMD(t *testing.T) {
	m := newMachine(t)
	m.process(proc{pid: 4711, args: []string{"python", "train.py"}, parent: 40, uid: 1000, open: []string{"/dev/kfd"}})
	m.says["amd-smi static"] = `[{"gpu":0,"asic":{"market_name":"AMD Instinct MI300X"},"bus":{"bdf":"0000:05:00.0"},"vram":{"size":{"value":196592,"unit":"MB"}},"driver":{"version":"6.8.5"}}]`
	m.says["amd-smi metric"] = "WARNING: something\n" + `[{"gpu":0,"mem_usage":{"total_vram":{"value":196592,"unit":"MB"},"used_vram":{"value":60000,"unit":"MB"},"free_vram":{"value":136592,"unit":"MB"}}}]`
	m.says["amd-smi process"] = `[{"gpu":0,"process_list":[{"process_info":{"name":"python","pid":4711,"memory_usage":{"vram_mem":{"value":62000000000,"unit":"B"}}}}]}]`
	r := m.look(t)
	if r.Status != incident.HoldersAnswered || len(r.Devices) != 1 || r.Devices[0].Name != "AMD Instinct MI300X" {
		t.Fatalf("%+v", r)
	}
	if h := holder(t, r, 4711); h.Whose != incident.HolderYours || h.Bytes == nil || *h.Bytes != 62000000000 {
		t.Errorf("%+v", h)
	}
	m = newMachine(t)
	m.says["rocm-smi"] = `{"card0": {"Unique ID": "0x1", "VRAM Total Memory (B)": "206141652992", "VRAM Total Used Memory (B)": "62100000000", "PCI Bus": "0000:26:00.0"}, "system": {"Driver version": "6.7.0", "PID4711": "python, 1, 62000000000, 0, 0"}}`
	r = m.look(t)
	if len(r.Devices) != 1 || len(r.Devices[0].Holders) != 1 || r.Devices[0].Holders[0].PID != 4711 {
		t.Errorf("%+v", r)
	}
}

// TestInstances: a divided device, whose instances and processes only -q -x states.
func TestInstances(t *testing.T) {
	m := newMachine(t)
	m.says["nvidia-smi --query-gpu"] = "index, uuid, pci.bus_id, name, driver_version, memory.total [MiB], memory.used [MiB], memory.free [MiB], memory.reserved [MiB], mig.mode.current\n0, GPU-a, 00000000:1B:00.0, NVIDIA A100, 550.54.15, 81920 MiB, 39001 MiB, 42313 MiB, 606 MiB, Enabled\n"
	m.says["nvidia-smi --query-compute-apps"] = "gpu_uuid, gpu_bus_id, pid, process_name, used_gpu_memory [MiB]\n"
	m.says["nvidia-smi -q -x"] = `<?xml version="1.0" ?>
<nvidia_smi_log><driver_version>550.54.15</driver_version><attached_gpus>1</attached_gpus>
<gpu id="00000000:1B:00.0"><product_name>NVIDIA A100</product_name><mig_mode><current_mig>Enabled</current_mig></mig_mode>
<mig_devices><mig_device><index>0</index><gpu_instance_id>1</gpu_instance_id><compute_instance_id>0</compute_instance_id><fb_memory_usage><total>40192 MiB</total><used>39000 MiB</used></fb_memory_usage></mig_device>
<mig_device><index>1</index><gpu_instance_id>2</gpu_instance_id><compute_instance_id>0</compute_instance_id><fb_memory_usage><total>40192 MiB</total><used>1 MiB</used></fb_memory_usage></mig_device></mig_devices>
<uuid>GPU-a</uuid><fb_memory_usage><total>81920 MiB</total><reserved>606 MiB</reserved><used>39001 MiB</used><free>42313 MiB</free></fb_memory_usage>
<processes><process_info><gpu_instance_id>1</gpu_instance_id><compute_instance_id>0</compute_instance_id><pid>4711</pid><type>C</type><process_name>python3</process_name><used_memory>38890 MiB</used_memory></process_info>
<process_info><gpu_instance_id>N/A</gpu_instance_id><compute_instance_id>N/A</compute_instance_id><pid>50</pid><type>G</type><process_name>/usr/lib/xorg/Xorg</process_name><used_memory>60 MiB</used_memory></process_info></processes></gpu></nvidia_smi_log>
`
	r := m.look(t)
	d := r.Devices[0]
	if len(d.Slices) != 2 || *d.Slices[0].GPUInstance != 1 || *d.Slices[0].Used != 39000<<20 {
		t.Errorf("%+v", d.Slices)
	}
	if h := holder(t, r, 4711); h.Slice != "gi 1 ci 0" {
		t.Errorf("%+v", h)
	}
	if h := holder(t, r, 50); h.Slice != "" || h.Kind != incident.HolderGraphics {
		t.Errorf("%+v", h)
	}
	if d.Unseen == nil || d.Unseen.Lo != 0 {
		t.Errorf("%+v", d.Unseen)
	}
}

// TestDriverWithoutNewFields: an old driver refuses the query for a field that it does not know.
func TestDriverWithoutNewFields(t *testing.T) {
	m := newMachine(t)
	m.says["nvidia-smi --query-gpu"] = "index, uuid, pci.bus_id, name, driver_version, memory.total [MiB], memory.used [MiB], memory.free [MiB]\n0, GPU-a, 00000000:1B:00.0, Tesla V100, 440.33.01, 32510 MiB, 100 MiB, 32410 MiB\n"
	const all = "nvidia-smi --query-gpu=index,uuid,pci.bus_id,name,driver_version,memory.total,memory.used,memory.free,memory.reserved"
	m.says[all] = "Field \"memory.reserved\" is not a valid field to query.\n"
	m.errs[all] = fmt.Errorf("exit status 2")
	m.says["nvidia-smi --query-compute-apps"] = "gpu_uuid, gpu_bus_id, pid, process_name, used_gpu_memory [MiB]\n"
	r := m.look(t)
	if len(r.Devices) != 1 || r.Driver != "440.33.01" || r.Devices[0].Unseen == nil || r.Devices[0].Unseen.Lo != 0 {
		t.Errorf("%+v", r)
	}
}

// TestSaved: every saved output of the collection, and what each must and must not say.
func TestSaved(t *testing.T) {
	dir := filepath.Join("..", "..", "..", "shared", "data", "nvidia_smi")
	files, err := os.ReadDir(dir)
	if err != nil {
		t.Skip("no collection of device tools' outputs beside the repository")
	}
	devices := map[string]int{"A40x10_0.txt": 10, "A40x10_1.txt": 10, "H100SXMx8_0.txt": 8, "H100SXMx8_1.txt": 8, "MI300X_x4_0.txt": 4, "MI300X_x4_1.txt": 4, "RTX3090_0.txt": 2, "RTX3090_1.txt": 2}
	for _, f := range files {
		if !strings.HasSuffix(f.Name(), ".txt") {
			continue
		}
		data, err := os.ReadFile(filepath.Join(dir, f.Name()))
		if err != nil {
			t.Fatal(err)
		}
		h := gpu.Saved(data, "1.0", f.Name(), nil)
		if h.Status != incident.HoldersAnswered || len(h.Devices) == 0 {
			t.Errorf("%s: %s: %s", f.Name(), h.Status, h.Says)
			continue
		}
		if n := devices[f.Name()]; n > 0 && len(h.Devices) != n {
			t.Errorf("%s: %d devices, want %d", f.Name(), len(h.Devices), n)
		}
		again, _ := json.Marshal(gpu.Saved(data, "1.0", f.Name(), nil))
		once, _ := json.Marshal(h)
		if string(once) != string(again) {
			t.Errorf("%s: two readings differ", f.Name())
		}
		idle := strings.HasSuffix(f.Name(), "_0.txt") || strings.HasSuffix(f.Name(), "_1.txt")
		for _, d := range h.Devices {
			if idle && (len(d.Holders) > 0 || d.Unseen != nil && d.Unseen.Lo > 0) {
				t.Errorf("%s: an idle device: %s", f.Name(), d.Says)
			}
			for _, x := range d.Holders {
				if x.Whose != incident.HolderNobodys || x.State != incident.HolderNotShown {
					t.Errorf("%s: a saved output cannot tell of %+v", f.Name(), x)
				}
			}
			if f.Name() == "nvidia-smi_565.57.01.txt" && (d.Unseen == nil || d.Unseen.Lo < 1<<30) {
				t.Errorf("%s: 1518 MiB in use and an empty list: %s", f.Name(), d.Says)
			}
			if f.Name() == "nvidia-smi_560.35.03.txt" && d.Unseen != nil {
				t.Errorf("%s: processes of 0 MiB are not accounted for: %s", f.Name(), d.Says)
			}
			if f.Name() == "nvidia-smi_580.126.09.txt" && (d.Unseen == nil || d.Unseen.Lo > 0 || len(d.Holders) != 1) {
				t.Errorf("%s: one process holds all: %s", f.Name(), d.Says)
			}
		}
		for _, a := range h.Acts {
			if len(a.Do) > 0 {
				t.Errorf("%s: a saved output leads to %q", f.Name(), a.Do)
			}
		}
	}
}

// FuzzSaved: whatever was saved, there is an answer, and what is said fits what is stated.
func FuzzSaved(f *testing.F) {
	f.Add([]byte("index, memory.used [MiB], memory.total [MiB]\n0, 5 MiB, 9 MiB\npid, gpu_uuid, used_memory [MiB]\n4, GPU-1, 3 MiB\n"))
	f.Add([]byte("| NVIDIA-SMI 550.1  Driver Version: 550.1  CUDA Version: 12.4 |\n|===|\n|   0  NVIDIA L4   On | 00000000:01:00.0 Off | 0 |\n| N/A 40C P0 10W / 72W | 1000MiB / 23034MiB | 0% Default |\n| Processes: |\n|===|\n|    0   N/A  N/A     47031      C   /usr/bin/python3     900MiB |\n"))
	f.Add([]byte("\xff\xfe|\x00"))
	f.Add([]byte(`[{"gpu":0,"mem_usage":{"used_vram":{"value":283,"unit":"MB"}}}]`))
	f.Fuzz(func(t *testing.T, data []byte) {
		h := gpu.Saved(data, "1.0", "x", nil)
		for _, d := range h.Devices {
			if u := d.Unseen; u != nil && (u.Lo < 0 || u.Hi < u.Lo) {
				t.Errorf("unseen %d to %d", u.Lo, u.Hi)
			}
		}
		if _, err := json.Marshal(h); err != nil {
			t.Error(err)
		}
	})
}

// TestLoopsAndRepeats: the last reading of a loop counts, and a process is not counted twice.
func TestLoopsAndRepeats(t *testing.T) {
	table := func(used, own int) string {
		return fmt.Sprintf("Sat Apr  4 05:20:19 2026\n| NVIDIA-SMI 550.1  Driver Version: 550.1  CUDA Version: 12.4 |\n|===+===+===|\n|   0  NVIDIA L4   On | 00000000:01:00.0 Off | 0 |\n| N/A 40C P0 10W / 72W | %dMiB / 23034MiB | 0%% Default |\n+---+\n| Processes: |\n|===|\n|    0   N/A  N/A     47031      C   /usr/bin/python3     %dMiB |\n+---+\n", used, own)
	}
	h := gpu.Saved([]byte(table(1000, 990)+"\n"+table(9000, 8990)), "1.0", "x", nil)
	if len(h.Devices) != 1 || len(h.Devices[0].Holders) != 1 || *h.Devices[0].Used != 9000<<20 || *h.Devices[0].Holders[0].Bytes != 8990<<20 {
		t.Errorf("%+v", h.Devices)
	}
	if len(h.Limits) != 2 {
		t.Errorf("%q", h.Limits)
	}
	csv := "gpu_uuid, pid, used_gpu_memory [MiB]\nGPU-1, 5, 10 MiB\nGPU-1, 5, 700 MiB\n"
	h = gpu.Saved([]byte("index, uuid, memory.used [MiB], memory.total [MiB]\n0, GPU-1, 10 MiB, 23034 MiB\n0, GPU-1, 710 MiB, 23034 MiB\n"+csv), "1.0", "x", nil)
	if len(h.Devices) != 1 || len(h.Devices[0].Holders) != 1 || *h.Devices[0].Used != 710<<20 || *h.Devices[0].Holders[0].Bytes != 700<<20 {
		t.Errorf("%+v", h.Devices)
	}
}

// TestMemoryOfASample is what a sampler gets.
func TestMemoryOfASample(t *testing.T) {
	m := newMachine(t)
	m.smi([]int{20010, 1}, "0 7 20000 python")
	use, err := gpu.Memory(context.Background(), m.run)
	if err != nil || len(use) != 2 || use[0].Used != 20010<<20 || use[0].Own[7] != 20000<<20 || use[1].Own == nil || len(use[1].Own) != 0 {
		t.Errorf("%+v, %v", use, err)
	}
	if _, err := gpu.Memory(context.Background(), newMachine(t).run); err != gpu.ErrNoTool {
		t.Errorf("%v", err)
	}
}
