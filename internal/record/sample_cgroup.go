package record

import (
	"bytes"
	"iter"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
)

// A cgroup is the memory control group of a command: its own, or the nearest one around it
// that has a limit, because that is the one whose memory runs out. What is charged to it is
// of all processes in it and below it, and of the files that they read.
type cgroup struct {
	name  string // path as the kernel names it
	dir   string
	files cgroupFiles
	limit int64 // bytes; 0 is none

	peak           int64 // its mark when the command began
	kills, atLimit int64 // -1 is unknown
}

// cgroupFiles are the names that the two versions have for the same.
type cgroupFiles struct{ usage, peak, limit, events string }

var (
	cgroup1 = cgroupFiles{"memory.usage_in_bytes", "memory.max_usage_in_bytes", "memory.limit_in_bytes", "memory.oom_control"}
	cgroup2 = cgroupFiles{"memory.current", "memory.peak", "memory.max", "memory.events"}
)

// noLimit is where the limits of version 1 begin that mean none: the largest number of pages.
const noLimit = 1 << 60

// findCgroup returns the cgroup that counts the memory of process pid, null where none does.
// proc is the proc file system; base stands before the mount points that it names, "" outside
// of tests.
//
// Both versions may be mounted, each with some controllers (cgroups(7)): memory is of version 1
// where that has it. A mount may show only a part of the hierarchy, as in a container; paths of
// cgroups are then outside of it or start with the part's root.
func findCgroup(proc, base string, pid int) *cgroup {
	paths, err := os.ReadFile(filepath.Join(proc, strconv.Itoa(pid), "cgroup"))
	if err != nil {
		return nil
	}
	mounts, err := os.ReadFile(filepath.Join(proc, strconv.Itoa(pid), "mountinfo"))
	if err != nil {
		return nil
	}
	for _, version := range []int{1, 2} {
		name, ok := cgroupPath(string(paths), version, "memory")
		if !ok {
			continue
		}
		root, point, ok := cgroupMount(string(mounts), version, "memory")
		if !ok {
			continue
		}
		files := cgroup1
		if version == 2 {
			files = cgroup2
		}
		if c := nearest(base+point, root, name, files); c != nil {
			c.begin()
			return c
		}
	}
	return nil
}

// cgroupPath is the path of the cgroup of a controller in /proc/PID/cgroup: lines of hierarchy,
// controllers and path, version 2 as 0::PATH.
func cgroupPath(text string, version int, controller string) (string, bool) {
	for line := range strings.Lines(text) {
		f := strings.SplitN(strings.TrimSuffix(line, "\n"), ":", 3)
		if len(f) != 3 {
			continue
		}
		if version == 2 && f[0] == "0" && f[1] == "" || version == 1 && has(f[1], controller) {
			return strings.TrimSuffix(f[2], " (deleted)"), true
		}
	}
	return "", false
}

func has(list, name string) bool {
	for f := range strings.SplitSeq(list, ",") {
		if f == name {
			return true
		}
	}
	return false
}

// cgroupMount finds the mount of a controller in /proc/PID/mountinfo: the root of what
// it shows, and where (proc_pid_mountinfo(5)).
func cgroupMount(text string, version int, controller string) (root, point string, ok bool) {
	for line := range strings.Lines(text) {
		before, after, found := strings.Cut(line, " - ")
		f, g := strings.Fields(before), strings.Fields(after)
		if !found || len(f) < 5 || len(g) < 1 {
			continue
		}
		if version == 2 && g[0] == "cgroup2" || version == 1 && g[0] == "cgroup" && len(g) >= 3 && has(g[2], controller) {
			return unescape(f[3]), unescape(f[4]), true
		}
	}
	return "", "", false
}

// unescape turns the octal escapes of mountinfo back: \040 is a blank.
func unescape(s string) string {
	if !strings.Contains(s, `\`) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+3 < len(s) {
			if n, err := strconv.ParseUint(s[i+1:i+4], 8, 8); err == nil {
				b.WriteByte(byte(n))
				i += 3
				continue
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

// upwards gives the folders from the cgroup name up to the root of the mount at point, each
// with its name below the mount.
func upwards(point, root, name string) iter.Seq2[string, string] {
	root = strings.TrimSuffix(root, "/")
	rel := "/"
	if rest, ok := strings.CutPrefix(name, root); ok && (rest == "" || rest[0] == '/') {
		rel = rest
	}
	// A path outside of the namespace begins with /..; what is seen of it is the mount itself.
	if strings.HasPrefix(rel, "/..") {
		rel = "/"
	}
	return func(yield func(string, string) bool) {
		for rel := path.Clean("/" + rel); yield(filepath.Join(point, filepath.FromSlash(rel)), rel) && rel != "/"; {
			rel = path.Dir(rel)
		}
	}
}

// nearest is the first cgroup from name upwards that has a limit, else the lowest that counts
// memory.
func nearest(point, root, name string, files cgroupFiles) *cgroup {
	var lowest *cgroup
	for dir, rel := range upwards(point, root, name) {
		if _, ok := readCount(filepath.Join(dir, files.usage)); !ok {
			continue
		}
		c := &cgroup{name: rel, dir: dir, files: files}
		if n, ok := readCount(filepath.Join(dir, files.limit)); ok && n < noLimit {
			c.limit = n
			return c
		}
		if lowest == nil {
			lowest = c
		}
	}
	return lowest
}

// begin notes what the cgroup has counted before.
func (c *cgroup) begin() {
	c.peak, _ = readCount(filepath.Join(c.dir, c.files.peak))
	c.kills, c.atLimit = c.events()
}

// usage is what is charged to it now.
func (c *cgroup) usage() (int64, bool) { return readCount(filepath.Join(c.dir, c.files.usage)) }

// events are how many processes the kernel has killed in it for memory, and how often it was at
// its limit with nothing to reclaim; -1 where it does not count.
func (c *cgroup) events() (kills, atLimit int64) {
	kills, atLimit = -1, -1
	b, err := os.ReadFile(filepath.Join(c.dir, c.files.events))
	if err != nil {
		return kills, atLimit
	}
	for line := range bytes.Lines(b) {
		name, v, _ := bytes.Cut(bytes.TrimSpace(line), []byte(" "))
		n, err := strconv.ParseInt(string(v), 10, 64)
		if err != nil {
			continue
		}
		switch string(name) {
		case "oom_kill":
			kills = n
		case "oom": // version 2; what version 1 counts as failcnt is reclaimed as a rule
			atLimit = n
		}
	}
	return kills, atLimit
}

// end is what it counted since begin.
func (c *cgroup) end(e *ending) {
	e.cgroupName = c.name
	if n, ok := readCount(filepath.Join(c.dir, c.files.peak)); ok && n > c.peak {
		e.cgroupPeak = n
	}
	kills, atLimit := c.events()
	e.kills, e.atLimit = since(c.kills, kills), since(c.atLimit, atLimit)
}

func since(before, after int64) *int64 {
	if before < 0 || after < before {
		return nil
	}
	n := after - before
	return &n
}

// readCount reads a file that holds one number; "max" is no number.
func readCount(name string) (int64, bool) {
	f, err := os.Open(name)
	if err != nil {
		return 0, false
	}
	defer f.Close()
	var b [32]byte
	n, _ := f.Read(b[:])
	v, err := strconv.ParseUint(string(bytes.TrimSpace(b[:n])), 10, 64)
	if err != nil {
		return 0, false
	}
	return int64(min(v, 1<<62)), true
}
