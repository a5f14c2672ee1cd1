package gpu

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A Self is who asks, and when.
type Self struct {
	Host, User string
	UID        int // None where the system has none
	PID        int
	Now        time.Time
}

// How much of the machine's processes can be seen.
const (
	SeesAll       = "all"
	SeesNamespace = "own_namespace"
	SeesOwn       = "own_user"
	SeesNone      = "none"
)

// A Host is what the system says of the machine's devices and of the processes that were
// asked for. It is read below a root, so that a composed tree stands for a machine.
type Host struct {
	Self      Self
	Sees      string
	Why       string // why it does not see all
	Container string // how it is known that this is a container; "" where it is not
	Presence  Presence
	Procs     map[int]*Proc
	Users     map[int]string
	Around    map[string]string // the job's variables of the process that asks
	// Openers are processes that have a device open, in ascending order, where they were
	// searched for; OpenersAll says that every process could be looked at.
	Openers    []int
	OpenersAll bool
	Searched   bool
}

// A Proc is one process as /proc has it.
type Proc struct {
	PID, Parent, Group, Session int
	Comm                        string
	State                       byte // R, S, D, T, t, Z, X, I; 0 where not known
	Started                     time.Time
	UID                         int // None where not known
	Args                        []string
	Cgroup                      string
	Env                         map[string]string // those of keptEnv; nil where they cannot be read
	HangupIgnored               bool              // SIGHUP: it was started to outlive its terminal
	Open                        []string          // device nodes that it has open
	OpenRead                    bool              // Open could be read
}

// Bounds of what is read of a process.
const (
	maxFile      = 64 << 10
	maxEnviron   = 256 << 10
	maxFDs       = 4096
	maxAncestors = 16
	maxScanned   = 1 << 16
)

// initNamespace is the inode of the first namespace of process numbers, by which the
// machine's own is known (PROC_PID_INIT_INO of the kernel).
const initNamespace = "pid:[4026531836]"

// Survey reads what the system below root says of the devices and of the processes pids and
// their ancestors. Where search is set, it also looks for processes that have a device open;
// it ends that search when ctx is done.
func Survey(ctx context.Context, root string, self Self, pids []int, search bool) *Host {
	h := &Host{Self: self, Procs: map[int]*Proc{}, Sees: SeesNone, Why: "this system has no /proc"}
	h.Presence = presence(root)
	s := &surveyor{root: root, host: h}
	if _, err := os.Stat(s.path("stat")); err != nil {
		return h
	}
	s.boot = s.bootTime()
	h.Users = s.users()
	h.Container = s.container()
	h.Around = environment(readFile(s.path("self", "environ"), maxEnviron))
	s.sees()
	for _, pid := range pids {
		s.follow(pid)
	}
	if search {
		s.search(ctx)
	}
	return h
}

// A surveyor reads below a root.
type surveyor struct {
	root string
	host *Host
	boot time.Time
}

func (s *surveyor) path(parts ...string) string {
	return filepath.Join(append([]string{s.root, "proc"}, parts...)...)
}

// read is the begin of a file below root, "" where it cannot be read.
func readFile(path string, most int) string {
	f, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer f.Close()
	buf := make([]byte, most)
	n := 0
	for n < most {
		k, err := f.Read(buf[n:])
		n += k
		if err != nil || k == 0 {
			break
		}
	}
	return string(buf[:n])
}

func (s *surveyor) bootTime() time.Time {
	for line := range strings.Lines(readFile(s.path("stat"), 1<<20)) {
		if v, ok := strings.CutPrefix(line, "btime "); ok {
			if n, err := strconv.ParseInt(strings.TrimSpace(v), 10, 64); err == nil && n > 0 {
				return time.Unix(n, 0)
			}
		}
	}
	return time.Time{}
}

// users are the names of /etc/passwd. Those of a directory service are not in it.
func (s *surveyor) users() map[int]string {
	out := map[int]string{}
	for line := range strings.Lines(readFile(filepath.Join(s.root, "etc", "passwd"), 1<<20)) {
		f := strings.Split(line, ":")
		if len(f) < 3 || f[0] == "" {
			continue
		}
		if uid, err := strconv.Atoi(f[2]); err == nil {
			if _, twice := out[uid]; !twice {
				out[uid] = f[0]
			}
		}
	}
	if s.host.Self.User != "" && s.host.Self.UID >= 0 {
		out[s.host.Self.UID] = s.host.Self.User
	}
	return out
}

// container says how it is known that this is a container.
func (s *surveyor) container() string {
	for _, mark := range []string{".dockerenv", "run/.containerenv", ".singularity.d"} {
		if _, err := os.Stat(filepath.Join(s.root, filepath.FromSlash(mark))); err == nil {
			return "/" + mark + " exists"
		}
	}
	if c := containerOf(readFile(s.path("self", "cgroup"), maxFile)); c != nil {
		return c.Basis
	}
	if ns, err := os.Readlink(s.path("self", "ns", "pid")); err == nil && ns != initNamespace {
		return "its process numbers are of a namespace of their own"
	}
	return ""
}

// sees finds how much of the machine's processes /proc shows here.
func (s *surveyor) sees() {
	ns, err := os.Readlink(s.path("self", "ns", "pid"))
	switch {
	case err != nil:
		s.host.Sees, s.host.Why = SeesNamespace, "whose process numbers these are cannot be read (/proc/self/ns/pid)"
	case ns != initNamespace:
		s.host.Sees, s.host.Why = SeesNamespace, "processes outside of this container, or of this namespace of process numbers, are not visible from inside"
	case readFile(s.path("1", "stat"), maxFile) == "":
		s.host.Sees, s.host.Why = SeesOwn, "/proc hides the processes of other users here (hidepid)"
	default:
		s.host.Sees, s.host.Why = SeesAll, ""
	}
}

// follow reads a process and its ancestors.
func (s *surveyor) follow(pid int) {
	for range maxAncestors {
		if pid <= 0 {
			return
		}
		if _, done := s.host.Procs[pid]; done {
			return
		}
		p := s.process(pid)
		if p == nil {
			return
		}
		s.host.Procs[pid] = p
		if p.Session > 0 && p.Session != pid {
			if _, done := s.host.Procs[p.Session]; !done {
				if l := s.process(p.Session); l != nil {
					s.host.Procs[p.Session] = l
				}
			}
		}
		pid = p.Parent
	}
}

// process reads one process, nil where there is none that can be seen.
func (s *surveyor) process(pid int) *Proc {
	dir := s.path(strconv.Itoa(pid))
	stat := readFile(filepath.Join(dir, "stat"), maxFile)
	p, ticks := parseStat(stat)
	if p == nil || p.PID != pid {
		return nil
	}
	if !s.boot.IsZero() && ticks > 0 {
		p.Started = s.boot.Add(time.Duration(ticks) * (time.Second / userHZ)).UTC().Truncate(time.Second)
	}
	for line := range strings.Lines(readFile(filepath.Join(dir, "status"), maxFile)) {
		key, v, _ := strings.Cut(line, ":")
		f := strings.Fields(v)
		switch {
		case key == "Uid" && len(f) > 0:
			if n, err := strconv.Atoi(f[0]); err == nil {
				p.UID = n
			}
		case key == "SigIgn" && len(f) > 0:
			if n, err := strconv.ParseUint(f[0], 16, 64); err == nil {
				p.HangupIgnored = n&1 != 0
			}
		}
	}
	if line := readFile(filepath.Join(dir, "cmdline"), maxFile); line != "" {
		p.Args = strings.Split(strings.TrimRight(line, "\x00"), "\x00")
	}
	p.Cgroup = readFile(filepath.Join(dir, "cgroup"), maxFile)
	p.Env = environment(readFile(filepath.Join(dir, "environ"), maxEnviron))
	p.Open, p.OpenRead = openDevices(filepath.Join(dir, "fd"))
	return p
}

// userHZ is the unit in which the kernel gives times to programs, on every architecture that
// a GPU is put into.
const userHZ = 100

// parseStat reads /proc/PID/stat; the name may hold anything, so what counts follows the
// last bracket.
func parseStat(stat string) (*Proc, int64) {
	open, end := strings.IndexByte(stat, '('), strings.LastIndexByte(stat, ')')
	if open < 1 || end < open {
		return nil, 0
	}
	pid, err := strconv.Atoi(strings.TrimSpace(stat[:open]))
	f := strings.Fields(stat[end+1:])
	if err != nil || len(f) < 20 {
		return nil, 0
	}
	num := func(i int) int {
		n, err := strconv.Atoi(f[i])
		if err != nil || n < 0 {
			return 0
		}
		return n
	}
	ticks, _ := strconv.ParseInt(f[19], 10, 64)
	return &Proc{PID: pid, Comm: stat[open+1 : end], State: f[0][0], Parent: num(1), Group: num(2), Session: num(3), UID: None}, ticks
}

// keptEnv are the variables that say which job a process is of; no other is looked at.
var keptEnv = []string{
	"RANK", "LOCAL_RANK", "WORLD_SIZE", "TORCHELASTIC_RUN_ID", "MASTER_ADDR", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK",
	"SLURM_JOB_ID", "SLURM_STEP_ID", "SLURM_PROCID", "SLURM_ARRAY_JOB_ID", "SLURM_ARRAY_TASK_ID",
	"PBS_JOBID", "LSB_JOBID", "FLUX_JOB_ID", "SGE_ROOT", "JOB_ID", "KUBERNETES_SERVICE_HOST", "HOSTNAME",
	"CUDA_VISIBLE_DEVICES", "APPTAINER_CONTAINER", "SINGULARITY_CONTAINER",
}

func environment(text string) map[string]string {
	if text == "" {
		return nil
	}
	out := map[string]string{}
	for v := range strings.SplitSeq(text, "\x00") {
		name, value, ok := strings.Cut(v, "=")
		if ok && slices.Contains(keptEnv, name) && len(value) <= 256 {
			out[name] = value
		}
	}
	return out
}

// openDevices are the device nodes of GPUs among what a process has open.
func openDevices(dir string) ([]string, bool) {
	d, err := os.Open(dir)
	if err != nil {
		return nil, false
	}
	defer d.Close()
	names, err := d.Readdirnames(maxFDs)
	if err != nil && len(names) == 0 {
		_, err := os.ReadDir(dir) // an empty folder has no names, a forbidden one an error
		return nil, err == nil
	}
	var out []string
	for _, n := range names {
		to, err := os.Readlink(filepath.Join(dir, n))
		if err == nil && gpuNode(to) && !slices.Contains(out, to) {
			out = append(out, to)
		}
	}
	slices.Sort(out)
	return out, true
}

// gpuNode reports whether a path is the node of a device: NVIDIA's devices and their
// instances, AMD's compute node and renderers.
func gpuNode(path string) bool {
	if n, ok := strings.CutPrefix(path, "/dev/nvidia"); ok {
		_, err := strconv.Atoi(n)
		return err == nil
	}
	return path == "/dev/kfd" || path == "/dev/dxg" || strings.HasPrefix(path, "/dev/dri/renderD")
}

// search looks at what every process has open.
func (s *surveyor) search(ctx context.Context) {
	d, err := os.Open(s.path())
	if err != nil {
		return
	}
	defer d.Close()
	names, _ := d.Readdirnames(maxScanned)
	var pids []int
	for _, n := range names {
		if pid, err := strconv.Atoi(n); err == nil && pid > 0 {
			pids = append(pids, pid)
		}
	}
	slices.Sort(pids)
	s.host.Searched, s.host.OpenersAll = true, s.host.Sees == SeesAll && len(names) < maxScanned
	for _, pid := range pids {
		if ctx.Err() != nil {
			s.host.OpenersAll = false
			break
		}
		if pid == s.host.Self.PID {
			continue
		}
		var open []string
		read := false
		if p := s.host.Procs[pid]; p != nil {
			open, read = p.Open, p.OpenRead
		} else {
			open, read = openDevices(s.path(strconv.Itoa(pid), "fd"))
		}
		s.host.OpenersAll = s.host.OpenersAll && read
		if len(open) > 0 {
			s.follow(pid)
			s.host.Openers = append(s.host.Openers, pid)
		}
	}
}
