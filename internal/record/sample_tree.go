package record

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
)

// A tree is the processes of one command, as the proc file system below root shows them: the
// command, what descends from it, and the members of every session that one of those leads.
// Whoever was seen in it stays in it when its parent ends and init adopts it.
//
// Processes are found by listing the proc file system and looking at the parents of those that
// were not there before. The kernel's list of children would cost more: it is kept for each
// thread, and a training process has hundreds. Nothing is listed while the kernel has given no
// new process number away.
type tree struct {
	root     string
	pid      int
	members  []*member
	sessions map[int]bool // that members lead
	foreign  map[int]bool // processes that are none of ours
	begun    uint64       // start of the command, in ticks since the boot
	last     []byte       // last process number given away, as the kernel writes it
	scans    int
	buf      []byte
}

// A member is one process of a tree. Its open status is tied to this process: when its number
// is given to another, reading it fails.
type member struct {
	pid    int
	status *os.File
}

// Bounds of a tree.
const (
	maxMembers = 4096
	rescan     = 64 // lists after which all processes are looked at again: their numbers may have been given to others
)

func newTree(root string, pid int) *tree {
	return &tree{root: root, pid: pid, sessions: map[int]bool{}, foreign: map[int]bool{}, buf: make([]byte, 8<<10)}
}

func (t *tree) close() {
	for _, m := range t.members {
		m.status.Close()
	}
	t.members = nil
}

// begin takes the command itself in. It returns false where it has ended.
func (t *tree) begin() bool {
	st, ok := t.stat(t.pid)
	if !ok {
		return false
	}
	t.begun = st.start
	return t.add(t.pid, st)
}

// add takes a process in.
func (t *tree) add(pid int, st stat) bool {
	if len(t.members) >= maxMembers {
		return false
	}
	f, err := os.Open(t.path(pid, "status"))
	if err != nil {
		return false
	}
	// It may have ended, and its number be another's, between the two files.
	if again, ok := t.stat(pid); !ok || again.start != st.start {
		f.Close()
		return false
	}
	t.members = append(t.members, &member{pid: pid, status: f})
	if st.session == pid {
		t.sessions[pid] = true
	}
	return true
}

// find takes in the processes that are new. It asks cancelled between two of them.
func (t *tree) find(cancelled func() bool) {
	if last := t.lastPID(); last != nil && bytes.Equal(last, t.last) {
		return
	} else if last != nil {
		t.last = append(t.last[:0], last...)
	}
	dir, err := os.Open(t.root)
	if err != nil {
		return
	}
	names, _ := dir.Readdirnames(-1)
	dir.Close()
	t.scans++
	known := t.foreign
	if t.scans%rescan == 0 {
		known = nil
	}
	t.foreign = make(map[int]bool, len(names))
	for _, m := range t.members {
		t.foreign[m.pid] = true
	}
	fresh := map[int]stat{}
	for _, name := range names {
		pid, ok := number(name)
		if !ok || t.foreign[pid] {
			continue
		}
		if known[pid] {
			t.foreign[pid] = true
			continue
		}
		if cancelled() {
			t.last = t.last[:0]
			return
		}
		st, ok := t.stat(pid)
		if ok && st.start >= t.begun {
			fresh[pid] = st
			continue
		}
		t.foreign[pid] = ok
	}
	t.adopt(fresh)
	for pid := range fresh {
		t.foreign[pid] = true
	}
	for _, m := range t.members {
		delete(t.foreign, m.pid)
	}
}

// adopt takes in those of fresh that belong to the tree, parents before their children, and
// removes them from fresh.
func (t *tree) adopt(fresh map[int]stat) {
	ours := make(map[int]bool, len(t.members))
	for _, m := range t.members {
		ours[m.pid] = true
	}
	pids := make([]int, 0, len(fresh))
	for pid := range fresh {
		pids = append(pids, pid)
	}
	slices.Sort(pids)
	for again := true; again; {
		again = false
		for _, pid := range pids {
			st, ok := fresh[pid]
			if !ok || !ours[st.parent] && !t.sessions[st.session] {
				continue
			}
			delete(fresh, pid)
			// A process that ended in between may have left children, which are ours.
			ours[pid], again = true, true
			t.add(pid, st)
		}
	}
}

// memory reads all members and drops those that have ended. The look has what can be said of
// them together.
func (t *tree) memory(cancelled func() bool) look {
	l := look{shared: -1}
	var sum, most used
	live := t.members[:0]
	for i, m := range t.members {
		if i > 0 && cancelled() {
			live = append(live, t.members[i:]...)
			l.partial = true
			break
		}
		n, err := m.status.ReadAt(t.buf, 0)
		if n == 0 {
			if err != nil && !gone(err) {
				live = append(live, m)
				continue
			}
			m.status.Close()
			continue
		}
		s := parseStatus(t.buf[:n])
		if s.ended {
			m.status.Close()
			continue
		}
		live = append(live, m)
		l.pids = append(l.pids, m.pid)
		if s.session == m.pid {
			t.sessions[m.pid] = true
		}
		sum.resident += s.rss
		sum.anon, sum.file, sum.shmem = sum.anon+s.anon, sum.file+s.file, sum.shmem+s.shmem
		most.file, most.shmem = max(most.file, s.file), max(most.shmem, s.shmem)
		l.space = max(l.space, s.size)
		l.residentMark = max(l.residentMark, s.hwm, s.rss)
		if mark := max(s.peak, s.size); mark > l.spaceMark {
			l.spaceMark, l.spacePID = mark, m.pid
		}
	}
	clear(t.members[len(live):])
	t.members = live
	l.memory = t.together(sum, most, len(l.pids))
	return l
}

// together is the memory of n processes of which sum adds the parts up and most has the
// largest. Pages of files that several map are counted once, in the largest of them. Anonymous
// pages that a fork shares and shared memory are summed, but the host has no more of them than
// it says: that bounds what is counted twice.
func (t *tree) together(sum, most used, n int) used {
	if n < 2 || sum.anon+sum.file+sum.shmem == 0 {
		return sum
	}
	u := used{anon: sum.anon, file: most.file, shmem: sum.shmem}
	if m, err := os.ReadFile(filepath.Join(t.root, "meminfo")); err == nil {
		if host := field(m, "AnonPages:"); host > 0 {
			u.anon = min(u.anon, host)
		}
		if host := field(m, "Shmem:"); host > 0 {
			u.shmem = max(most.shmem, min(u.shmem, host))
		}
	}
	u.resident = u.anon + u.file + u.shmem
	return u
}

func gone(err error) bool {
	return errors.Is(err, syscall.ESRCH) || errors.Is(err, fs.ErrNotExist)
}

func (t *tree) path(pid int, name string) string {
	return filepath.Join(t.root, strconv.Itoa(pid), name)
}

// lastPID is the process number that the kernel gave away last, nil where it does not say.
func (t *tree) lastPID() []byte {
	b, ok := t.read(filepath.Join(t.root, "loadavg"))
	if !ok {
		return nil
	}
	b = bytes.TrimSpace(b)
	return b[bytes.LastIndexByte(b, ' ')+1:]
}

// read reads a short file into the buffer of the tree.
func (t *tree) read(name string) ([]byte, bool) {
	f, err := os.Open(name)
	if err != nil {
		return nil, false
	}
	defer f.Close()
	n, _ := f.Read(t.buf)
	return t.buf[:n], n > 0
}

// A stat is what /proc/PID/stat says of where a process comes from (proc_pid_stat(5)).
type stat struct {
	parent, session int
	start           uint64 // ticks since the boot
}

func (t *tree) stat(pid int) (stat, bool) {
	b, ok := t.read(t.path(pid, "stat"))
	if !ok {
		return stat{}, false
	}
	return parseStat(b)
}

// parseStat reads the fields behind the name of the program, which stands in brackets and may
// hold any character: state (field 3), parent (4), session (6), start (22).
func parseStat(b []byte) (stat, bool) {
	i := bytes.LastIndexByte(b, ')')
	if i < 0 {
		return stat{}, false
	}
	f := bytes.Fields(b[i+1:])
	if len(f) < 20 {
		return stat{}, false
	}
	parent, ok1 := number(string(f[1]))
	session, ok2 := number(string(f[3]))
	start, err := strconv.ParseUint(string(f[19]), 10, 64)
	return stat{parent, session, start}, ok1 && ok2 && err == nil
}

// A status is what /proc/PID/status says of a process's memory, in bytes (proc_pid_status(5)).
type status struct {
	size, peak, rss, hwm int64
	anon, file, shmem    int64 // parts of rss; Linux before 4.5 does not say
	session              int
	ended                bool // a zombie, or dead
}

func parseStatus(b []byte) status {
	var s status
	for len(b) > 0 {
		line := b
		if i := bytes.IndexByte(b, '\n'); i >= 0 {
			line, b = b[:i], b[i+1:]
		} else {
			b = nil
		}
		i := bytes.IndexByte(line, ':')
		if i < 0 {
			continue
		}
		v := line[i+1:]
		switch string(line[:i]) {
		case "State":
			v = bytes.TrimLeft(v, " \t")
			s.ended = len(v) > 0 && (v[0] == 'Z' || v[0] == 'X' || v[0] == 'x')
		case "NSsid": // of this and of inner namespaces
			f := bytes.Fields(v)
			if len(f) > 0 {
				s.session, _ = number(string(f[0]))
			}
		case "VmPeak":
			s.peak = kibibytes(v)
		case "VmSize":
			s.size = kibibytes(v)
		case "VmHWM":
			s.hwm = kibibytes(v)
		case "VmRSS":
			s.rss = kibibytes(v)
		case "RssAnon":
			s.anon = kibibytes(v)
		case "RssFile":
			s.file = kibibytes(v)
		case "RssShmem":
			s.shmem = kibibytes(v)
			return s
		}
	}
	return s
}

// field is the value of one line of a file like /proc/meminfo, in bytes; 0 where it has none.
func field(b []byte, name string) int64 {
	for line := range bytes.Lines(b) {
		if v, ok := bytes.CutPrefix(line, []byte(name)); ok {
			return kibibytes(v)
		}
	}
	return 0
}

// kibibytes reads "   1234 kB". What is no number is 0, what is too large the largest.
func kibibytes(b []byte) int64 {
	var n int64
	for _, c := range bytes.TrimLeft(b, " \t") {
		if c < '0' || c > '9' {
			break
		}
		if n > (1<<53-10)/10 {
			return 1 << 62
		}
		n = n*10 + int64(c-'0')
	}
	return n << 10
}

// number reads a process number.
func number(s string) (int, bool) {
	if s == "" || len(s) > 10 {
		return 0, false
	}
	n := 0
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return 0, false
		}
		n = n*10 + int(s[i]-'0')
	}
	return n, true
}
