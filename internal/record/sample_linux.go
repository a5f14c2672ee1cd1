package record

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"
)

// procWatcher watches a command through the proc file system and its memory cgroup.
type procWatcher struct {
	tree   *tree
	cgroup *cgroup
	begun  bool
	full   bool // there were more processes than are kept
	shm    string
	looks  int
	search time.Time // when processes are looked for again
	space  int64     // highest address space so far, and the limit of whoever had it
	limit  int64
}

func watch(pid int) watcher { return watchBelow("/proc", "", pid) }

// watchBelow is watch with other file systems than this host's. The cgroup is looked at at once:
// its counts are of what follows.
func watchBelow(proc, base string, pid int) *procWatcher {
	return &procWatcher{tree: newTree(proc, pid), cgroup: findCgroup(proc, base, pid), shm: base + "/dev/shm"}
}

func (w *procWatcher) look(cancelled func() bool) (look, bool) {
	if !w.begun {
		if w.begun = w.tree.begin(); !w.begun {
			return look{}, false
		}
	}
	// Looking for processes takes half of the share at most, so that those that are known are
	// looked at no less often on a host with thousands of others.
	if now := time.Now(); !now.Before(w.search) {
		before := busy()
		w.tree.find(cancelled)
		cost := min(max(busy()-before, 0), time.Since(now))
		w.search = now.Add(min(time.Duration(float64(cost)/(share/2)), slowest))
	}
	l := w.tree.memory(cancelled)
	// The limit that counts is that of the process with the largest address space, which may set
	// it when it has grown already.
	w.looks++
	if grown := l.spaceMark > w.space; grown || l.spaceMark == w.space && (w.looks < 10 || w.looks%10 == 0) {
		w.space = l.spaceMark
		if limits := softLimits(w.tree.root, l.spacePID); limits != nil {
			w.limit = limits["Max address space"]
		}
	}
	w.full = w.full || len(w.tree.members) >= maxMembers
	if w.cgroup != nil {
		if n, ok := w.cgroup.usage(); ok {
			l.cgroup = &n
		}
	}
	if used, _, _, ok := fileSystem(w.shm); ok {
		l.shared = used
	}
	return l, len(l.pids) > 0
}

func (w *procWatcher) end() ending {
	e := ending{spaceLimit: w.limit}
	if m, err := os.ReadFile(filepath.Join(w.tree.root, "meminfo")); err == nil {
		e.hostMemory = field(m, "MemTotal:")
	}
	_, e.sharedMemory, _, _ = fileSystem(w.shm)
	if w.cgroup != nil {
		w.cgroup.end(&e)
		e.cgroupLimit = w.cgroup.limit
	}
	if w.full {
		e.problems = append(e.problems, "memory: the command had more than "+strconv.Itoa(maxMembers)+" processes; the rest was not counted")
	}
	w.tree.close()
	return e
}

// fileSystem is how much of the file system of dir is in use, its size, and how much of it this
// user may still take, in bytes.
func fileSystem(dir string) (used, size, free int64, ok bool) {
	var s syscall.Statfs_t
	if err := syscall.Statfs(dir, &s); err != nil || s.Blocks == 0 {
		return 0, 0, 0, false
	}
	block := int64(s.Frsize)
	return int64(s.Blocks-s.Bfree) * block, int64(s.Blocks) * block, int64(s.Bavail) * block, true
}

// rusageThread is RUSAGE_THREAD of getrusage(2).
const rusageThread = 1

// busy is the time that this thread has kept a CPU busy. A goroutine may move to another thread
// between two calls: then their difference means nothing.
func busy() time.Duration {
	var r syscall.Rusage
	if err := syscall.Getrusage(rusageThread, &r); err != nil {
		return 0
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}

// childrenBusy is the time that processes which this one started, and has waited for, kept CPUs
// busy.
func childrenBusy() time.Duration {
	var r syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_CHILDREN, &r); err != nil {
		return 0
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}

// ownMark is the highest memory of this process: that of a child begins with it, because the
// kernel counts what the child had before it became another program.
func ownMark(ps *os.ProcessState) (child, own int64) {
	if ps != nil {
		if r, ok := ps.SysUsage().(*syscall.Rusage); ok {
			child = r.Maxrss << 10
		}
	}
	b, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return child, 0
	}
	return child, parseStatus(b).hwm
}

// softLimits reads the soft limits of a process from /proc/PID/limits, by the name that the
// kernel gives each; unlimited ones are left out.
func softLimits(proc string, pid int) map[string]int64 {
	b, err := os.ReadFile(filepath.Join(proc, strconv.Itoa(pid), "limits"))
	if err != nil {
		return nil
	}
	out := map[string]int64{}
	for line := range bytes.Lines(b) {
		if len(line) < 47 {
			continue
		}
		name := string(bytes.TrimSpace(line[:26]))
		soft := string(bytes.TrimSpace(line[26:47]))
		if n, err := strconv.ParseInt(soft, 10, 64); err == nil {
			out[name] = n
		}
	}
	return out
}
