package record

import (
	"path/filepath"
	"testing"
)

func TestLimits(t *testing.T) {
	l := layout{"4:memory:/a/b\n3:cpu,cpuacct:/a/b\n0::/\n", both, map[string]string{
		"sys/fs/cgroup/memory/a/b/memory.usage_in_bytes": "1\n", "sys/fs/cgroup/memory/a/b/memory.limit_in_bytes": none1,
		"sys/fs/cgroup/memory/a/memory.usage_in_bytes": "1\n", "sys/fs/cgroup/memory/a/memory.limit_in_bytes": "4096\n",
		"sys/fs/cgroup/cpu,cpuacct/a/b/cpu.cfs_quota_us": "250000\n", "sys/fs/cgroup/cpu,cpuacct/a/b/cpu.cfs_period_us": "100000\n",
		"sys/fs/cgroup/cpu,cpuacct/a/cpu.cfs_quota_us": "150000\n", "sys/fs/cgroup/cpu,cpuacct/a/cpu.cfs_period_us": "100000\n",
		"sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us": "-1\n", "sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us": "100000\n"}}
	proc, base := l.make(t)
	write(t, filepath.Join(proc, "7", "limits"), `Limit                     Soft Limit           Hard Limit           Units     
Max cpu time              unlimited            unlimited            seconds   
Max address space         4096000000           4096000000           bytes     
Max open files            1024                 524288               files     
Max realtime timeout      unlimited            unlimited            us        
short
`)
	got := limitsBelow(proc, base, 7, t.TempDir())
	for name, want := range map[string]int64{"address_space": 4096000000, "open_files": 1024, "cgroup_memory": 4096, "cgroup_cpu_permille": 1500} {
		if got[name] != want {
			t.Errorf("%s: %d, want %d", name, got[name], want)
		}
	}
	if _, ok := got["cpu_seconds"]; ok {
		t.Error("a limit where none is")
	}
	if got["disk_free"] <= 0 {
		t.Error("no room on the disk")
	}
	l = layout{"0::/a\n", mount2, map[string]string{"sys/fs/cgroup/a/cpu.max": "max 100000\n", "sys/fs/cgroup/cpu.max": "50000 100000\n"}}
	proc, base = l.make(t)
	if n, ok := cgroupCPUs(proc, base, 7); !ok || n != 500 {
		t.Errorf("%d %v", n, ok)
	}
}
