package report

import (
	"strings"
	"testing"

	"github.com/inquest-dev/inquest/internal/incident"
)

// TestExecutiveGetsNoCommands gives executives remedies made of commands and
// looks for what only a keyboard understands.
func TestExecutiveGetsNoCommands(t *testing.T) {
	for _, c := range []struct {
		remedy incident.Remedy
		want   string
	}{
		{incident.Remedy{Scope: "config", Change: "Raise the job's host-memory limit from 200.00 GiB to 250.00 GiB.", Verify: "cat /sys/fs/cgroup/memory.peak and memory.max inside the job.",
			Expected: map[string]any{"shows": "memory.peak stays below the limit."}}, "It is settled when this holds: memory.peak stays below the limit."},
		{incident.Remedy{Scope: "config", Change: "Start with PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True in the environment.", Verify: "df -h /dev/shm"}, "the same run passes the point where it failed."},
		{incident.Remedy{Scope: "measure", Change: "Measure before changing anything: find out where the rank was that did not come.", Cost: "minutes",
			Command: "rerun with TORCH_NCCL_TRACE_BUFFER_SIZE=2000, or py-spy dump --pid PID"}, "One measurement decides it; it takes minutes."},
		{incident.Remedy{Scope: "measure", Change: "Measure before changing anything: find out whether the kernel names a limit (CONSTRAINT_MEMCG).", Command: "dmesg -T"}, "find out whether the kernel names a limit."},
	} {
		inc := load(t, "oom")
		inc.Remedy = &c.remedy
		for _, f := range []string{"text", "markdown"} {
			out := render(t, f, inc, Options{For: Executive, Width: 200})
			if !strings.Contains(out, c.want) {
				t.Errorf("%s: %q is missing from\n%s", f, c.want, out)
			}
			for _, bad := range []string{"/sys/", "/dev/", "CONF", "NCCL", "py-spy", "dmesg", "MEMCG"} {
				if strings.Contains(out, bad) {
					t.Errorf("%s holds %s:\n%s", f, bad, out)
				}
			}
		}
		page, _, _ := strings.Cut(render(t, "html", inc, Options{For: Executive}), `<script type="application/json"`)
		for _, bad := range []string{"/sys/", "/dev/", "CONF=", "py-spy", "dmesg"} {
			if strings.Contains(page, bad) {
				t.Errorf("html holds %s", bad)
			}
		}
	}
}
