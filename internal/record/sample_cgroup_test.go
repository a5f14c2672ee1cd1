package record

import (
	"path/filepath"
	"testing"
)

// A layout is a host's cgroups as files: the two of the process below proc, the others where
// they are mounted.
type layout struct {
	cgroup, mountinfo string
	files             map[string]string
}

func (l layout) make(t *testing.T) (proc, base string) {
	t.Helper()
	base = t.TempDir()
	proc = filepath.Join(base, "proc")
	write(t, filepath.Join(proc, "7", "cgroup"), l.cgroup)
	write(t, filepath.Join(proc, "7", "mountinfo"), l.mountinfo)
	for name, text := range l.files {
		write(t, filepath.Join(base, name), text)
	}
	return proc, base
}

const (
	mount2 = "30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n"
	mount1 = "35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory\n36 31 0:33 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n"
	both   = mount1 + "41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw\n"
	none1  = "9223372036854771712\n"
)

var layouts = map[string]struct {
	layout
	name  string // of the cgroup that counts; "" is none
	limit int64
	usage int64
}{
	"version 2": {layout{"0::/user.slice/a.scope\n", mount2, map[string]string{
		"sys/fs/cgroup/user.slice/a.scope/memory.current": "1000\n", "sys/fs/cgroup/user.slice/a.scope/memory.max": "max\n",
		"sys/fs/cgroup/user.slice/memory.current": "5000\n", "sys/fs/cgroup/user.slice/memory.max": "max\n"}}, "/user.slice/a.scope", 0, 1000},
	"version 2, limited above": {layout{"0::/kube/pod1/c1\n", mount2, map[string]string{
		"sys/fs/cgroup/kube/pod1/c1/memory.current": "1000\n", "sys/fs/cgroup/kube/pod1/c1/memory.max": "max\n",
		"sys/fs/cgroup/kube/pod1/memory.current": "3000\n", "sys/fs/cgroup/kube/pod1/memory.max": "8192\n",
		"sys/fs/cgroup/kube/memory.current": "9000\n", "sys/fs/cgroup/kube/memory.max": "100000\n"}}, "/kube/pod1", 8192, 3000},
	"version 2, in a container": {layout{"0::/\n", mount2, map[string]string{
		"sys/fs/cgroup/memory.current": "700\n", "sys/fs/cgroup/memory.max": "4096\n"}}, "/", 4096, 700},
	"version 2, the root of the host": {layout{"0::/\n", mount2, map[string]string{"sys/fs/cgroup/memory.stat": "anon 1\n"}}, "", 0, 0},
	"version 2, seen from outside": {layout{"0::/../../other\n", mount2, map[string]string{
		"sys/fs/cgroup/memory.current": "700\n", "sys/fs/cgroup/memory.max": "max\n"}}, "/", 0, 700},
	"version 1": {layout{"4:memory:/slurm/uid_1/job_2/step_0\n0::/\n", mount1, map[string]string{
		"sys/fs/cgroup/memory/slurm/uid_1/job_2/step_0/memory.usage_in_bytes": "1000\n", "sys/fs/cgroup/memory/slurm/uid_1/job_2/step_0/memory.limit_in_bytes": none1,
		"sys/fs/cgroup/memory/slurm/uid_1/job_2/memory.usage_in_bytes": "2000\n", "sys/fs/cgroup/memory/slurm/uid_1/job_2/memory.limit_in_bytes": "65536\n"}}, "/slurm/uid_1/job_2", 65536, 2000},
	"version 1, in a container": {layout{"4:memory:/docker/abc\n", "35 31 0:32 /docker/abc /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n", map[string]string{
		"sys/fs/cgroup/memory/memory.usage_in_bytes": "1000\n", "sys/fs/cgroup/memory/memory.limit_in_bytes": "2048\n"}}, "/", 2048, 1000},
	"version 1, a part within a container": {layout{"4:memory:/docker/abc/inner\n", "35 31 0:32 /docker/abc /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n", map[string]string{
		"sys/fs/cgroup/memory/inner/memory.usage_in_bytes": "10\n", "sys/fs/cgroup/memory/inner/memory.limit_in_bytes": none1,
		"sys/fs/cgroup/memory/memory.usage_in_bytes": "1000\n", "sys/fs/cgroup/memory/memory.limit_in_bytes": "2048\n"}}, "/", 2048, 1000},
	"both, memory in version 1": {layout{"4:memory:/a\n0::/b\n", both, map[string]string{
		"sys/fs/cgroup/memory/a/memory.usage_in_bytes": "1000\n", "sys/fs/cgroup/memory/a/memory.limit_in_bytes": none1,
		"sys/fs/cgroup/unified/b/cgroup.procs": "7\n"}}, "/a", 0, 1000},
	"both, memory in version 2": {layout{"3:cpu,cpuacct:/a\n0::/b\n", both, map[string]string{
		"sys/fs/cgroup/unified/b/memory.current": "50\n", "sys/fs/cgroup/unified/b/memory.max": "60\n"}}, "/b", 60, 50},
	"a blank in the mount point": {layout{"0::/a\n", `30 23 0:26 / /my\040cgroup rw - cgroup2 cgroup2 rw` + "\n", map[string]string{
		"my cgroup/a/memory.current": "1\n", "my cgroup/a/memory.max": "2\n"}}, "/a", 2, 1},
	"not mounted":   {layout{"0::/a\n", "30 23 0:26 / /proc rw - proc proc rw\n", nil}, "", 0, 0},
	"no cgroups":    {layout{"", "", nil}, "", 0, 0},
	"odd lines":     {layout{"x\n::\n0:\n4:memory\n", " - cgroup\n- - -\n30 - cgroup2 a b\n", nil}, "", 0, 0},
	"a file is odd": {layout{"0::/a\n", mount2, map[string]string{"sys/fs/cgroup/a/memory.current": "many\n"}}, "", 0, 0},
}

func TestCgroupLayouts(t *testing.T) {
	for name, l := range layouts {
		t.Run(name, func(t *testing.T) {
			proc, base := l.make(t)
			c := findCgroup(proc, base, 7)
			if l.name == "" {
				if c != nil {
					t.Fatalf("%+v, want none", *c)
				}
				return
			}
			if c == nil {
				t.Fatal("none")
			}
			usage, _ := c.usage()
			if c.name != l.name || c.limit != l.limit || usage != l.usage {
				t.Errorf("%s, limit %d, usage %d; want %s, %d, %d", c.name, c.limit, usage, l.name, l.limit, l.usage)
			}
		})
	}
}

func TestCgroupCountsWhatFollows(t *testing.T) {
	for name, c := range map[string]struct {
		before, after  map[string]string
		peak           int64
		kills, atLimit int64 // -1 is unknown
	}{
		"killed": {
			map[string]string{"memory.peak": "500\n", "memory.events": "low 0\nhigh 0\nmax 9\noom 1\noom_kill 1\noom_group_kill 0\n"},
			map[string]string{"memory.peak": "900\n", "memory.events": "low 0\nhigh 0\nmax 20\noom 3\noom_kill 2\noom_group_kill 0\n"}, 900, 1, 2},
		"an older peak is not the command's": {
			map[string]string{"memory.peak": "900\n", "memory.events": "oom 0\noom_kill 0\n"},
			map[string]string{"memory.peak": "900\n", "memory.events": "oom 0\noom_kill 0\n"}, 0, 0, 0},
		"an old kernel":         {map[string]string{}, map[string]string{}, 0, -1, -1},
		"the cgroup was remade": {map[string]string{"memory.events": "oom 5\noom_kill 5\n"}, map[string]string{"memory.events": "oom 0\noom_kill 0\n"}, 0, -1, -1},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			set := func(files map[string]string) {
				for n, text := range files {
					write(t, filepath.Join(dir, n), text)
				}
			}
			set(c.before)
			g := &cgroup{name: "/a", dir: dir, files: cgroup2}
			g.begin()
			set(c.after)
			var e ending
			g.end(&e)
			known := func(n *int64) int64 {
				if n == nil {
					return -1
				}
				return *n
			}
			if e.cgroupPeak != c.peak || known(e.kills) != c.kills || known(e.atLimit) != c.atLimit {
				t.Errorf("peak %d, kills %d, at the limit %d", e.cgroupPeak, known(e.kills), known(e.atLimit))
			}
		})
	}
	// Version 1 counts kills in another file.
	dir := t.TempDir()
	write(t, filepath.Join(dir, "memory.oom_control"), "oom_kill_disable 0\nunder_oom 0\noom_kill 3\n")
	if kills, atLimit := (&cgroup{dir: dir, files: cgroup1}).events(); kills != 3 || atLimit != -1 {
		t.Errorf("version 1: %d, %d", kills, atLimit)
	}
}
