package report

import (
	"bytes"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/inquest-dev/inquest/internal/gpu"
	"github.com/inquest-dev/inquest/internal/incident"
)

const holdersGiB = 1 << 30

func bytesOf(n int64) gpu.Bytes { return gpu.Bytes{Lo: n, Hi: n + 1<<20 - 1} }

// holdersShapes are results of every sort, made as inquest gpus makes them.
func holdersShapes() map[string]*incident.Holders {
	unstated := gpu.Bytes{Lo: 0, Hi: -1}
	now := time.Date(2027, 3, 4, 12, 0, 0, 0, time.UTC)
	device := func(i int, used int64, p ...gpu.Process) gpu.Device {
		return gpu.Device{Vendor: "nvidia", Index: i, UUID: "GPU-" + string(rune('a'+i)), BusID: "00000000:0" + string(rune('1'+i)) + ":00.0", Name: "NVIDIA H100 80GB HBM3", Total: bytesOf(80 * holdersGiB), Used: bytesOf(used), Free: unstated, Reserved: unstated, Listed: true, Processes: p}
	}
	process := func(pid int, n int64, name string) gpu.Process {
		return gpu.Process{PID: pid, Type: "C", Name: name, Used: bytesOf(n), GI: gpu.None, CI: gpu.None}
	}
	st := &gpu.State{
		Tool: "nvidia-smi --query-gpu=index", Driver: "550.54.15", Asked: []gpu.Asked{{Tool: "nvidia-smi", Command: "nvidia-smi --query-gpu=index", Answer: gpu.Answered}, {Tool: "amd-smi", Command: "amd-smi", Answer: gpu.NotInstalled}},
		Devices: []gpu.Device{
			device(0, 72*holdersGiB, process(4711, 60*holdersGiB, "python"), process(4712, 500<<20, "python"), process(4713, 520<<20, "python"), process(99, 3*holdersGiB, "python")),
			device(1, 41*holdersGiB, process(4712, 40*holdersGiB, "python"), process(700, holdersGiB/2, "python")),
			device(2, 41*holdersGiB, process(4713, 40*holdersGiB, "python"), process(800, holdersGiB/4, "python")),
			device(3, 1<<20),
			device(4, 30*holdersGiB, gpu.Process{PID: 900, Type: "C", Used: unstated, GI: 1, CI: 0}),
		},
		Unplaced: []gpu.Process{process(1, 5, "x")},
	}
	st.Devices[4].MIG = true
	st.Devices[4].Slices = []gpu.Slice{{GI: 1, CI: 0, Total: bytesOf(40 * holdersGiB), Used: bytesOf(30 * holdersGiB)}, {GI: gpu.None, CI: gpu.None, Total: unstated, Used: unstated}}
	open := []string{"/dev/nvidia0"}
	host := &gpu.Host{
		Self: gpu.Self{Host: "node-3", User: "ana", UID: 1000, Now: now}, Sees: gpu.SeesAll, Users: map[int]string{1000: "ana", 1001: "ben"}, Openers: []int{555}, Searched: true,
		Presence: gpu.Presence{PCI: map[string][]string{}},
		Procs: map[int]*gpu.Proc{
			1:    {PID: 1, Comm: "systemd", State: 'S'},
			4711: {PID: 4711, Parent: 4000, Session: 4000, Comm: "python", State: 'R', UID: 1000, Args: []string{"python", "train.py", "--lr", "1e-4", "--api-key=abcdef123456"}, Started: now.Add(-26 * time.Hour), Open: open, OpenRead: true, Env: map[string]string{"RANK": "0", "LOCAL_RANK": "0"}, Cgroup: "0::/system.slice/slurmstepd.scope/job_812/step_0/user/task_0\n"},
			4712: {PID: 4712, Parent: 4000, Session: 4000, Comm: "python", State: 'D', UID: 1000, Args: []string{"python", "train.py"}, Open: open, OpenRead: true},
			4713: {PID: 4713, Parent: 1, Session: 4001, Comm: "python", State: 'S', UID: 1000, Args: []string{"python", "train.py"}, Started: now.Add(-90 * time.Minute), Open: open, OpenRead: true, Env: map[string]string{"TORCHELASTIC_RUN_ID": "x", "RANK": "2"}},
			4000: {PID: 4000, Parent: 1, Comm: "torchrun", State: 'S', UID: 1000},
			700:  {PID: 700, Parent: 1, Comm: "python", State: 'S', UID: 1001, Args: []string{"python", "-m", "ipykernel_launcher", "-f", "/x/kernel-1f2e.json"}, Cgroup: "0::/kubepods.slice/kubepods-pod0a1b2c3d_1111_2222_3333_444455556666.slice/cri-containerd-" + strings.Repeat("ab", 32) + ".scope\n"},
			800:  {PID: 800, Parent: 801, Comm: "python", State: 'S', UID: 1000, Args: []string{"python", "-m", "ipykernel_launcher", "-f", "/x/kernel-1f2e.json"}, Open: open, OpenRead: true},
			555:  {PID: 555, Parent: 1, Comm: "python", State: 'T', UID: 1000, Args: []string{"python", "debug.py"}, Open: open, OpenRead: true},
		},
	}
	hostile := *st
	hostile.Devices = []gpu.Device{device(0, 10*holdersGiB, process(7, holdersGiB, "\x1b]0;x\x07<script>alert(1)</script> | `x` \u202e"+strings.Repeat("w", 500)))}
	hostile.Devices[0].Name = "\x1b[2J<b>bad</b>"
	saved, _ := gpu.Parse([]byte("index, name, memory.used [MiB], memory.total [MiB]\n0, NVIDIA L4, 20000 MiB, 23034 MiB\npid, gpu_uuid, used_gpu_memory [MiB]\n5, GPU-x, 10 MiB\n"))
	empty := &gpu.Host{Self: gpu.Self{Host: "node-3", UID: 1000, Now: now}, Sees: gpu.SeesAll, Presence: gpu.Presence{PCI: map[string][]string{}}, Procs: map[int]*gpu.Proc{}}
	hung := &gpu.State{Asked: []gpu.Asked{{Tool: "nvidia-smi", Command: "nvidia-smi", Answer: gpu.DidNotAnswer}}}
	driver := *empty
	driver.Openers, driver.Searched = []int{555}, true
	driver.Procs = map[int]*gpu.Proc{555: host.Procs[555]}
	driver.Presence.DriverDevices = []gpu.DriverDevice{{BusID: "0000:01:00.0", Name: "NVIDIA L4", UUID: "GPU-1", Minor: 0}}
	return map[string]*incident.Holders{
		"all":     gpu.Holders(st, host, nil, "1.0", ""),
		"hostile": gpu.Holders(&hostile, host, nil, "1.0", "\x1b[31m<i>"),
		"saved":   gpu.Holders(saved, nil, nil, "1.0", "nvidia-smi.txt"),
		"none":    gpu.Holders(&gpu.State{}, empty, gpu.ErrNoTool, "1.0", ""),
		"hung":    gpu.Holders(hung, &driver, gpu.ErrNoAnswer, "1.0", ""),
	}
}

func renderHolders(t testing.TB, h *incident.Holders, format string, o Options) string {
	t.Helper()
	var b bytes.Buffer
	if err := WriteHolders(&b, format, h, o); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestHoldersReports(t *testing.T) {
	for name, h := range holdersShapes() {
		for _, f := range []struct{ format, ext string }{{"text", "txt"}, {"markdown", "md"}} {
			compare(t, filepath.Join("testdata", "holders", name+"."+f.ext), []byte(renderHolders(t, h, f.format, Options{Width: 100})))
		}
		full := renderHolders(t, h, "text", Options{Width: 100, Full: true})
		compare(t, filepath.Join("testdata", "holders", name+"-full.txt"), []byte(full))
	}
}

func TestHoldersTextFits(t *testing.T) {
	for name, h := range holdersShapes() {
		for _, width := range []int{40, 60, 80, 120, 200} {
			text := renderHolders(t, h, "text", Options{Width: width})
			lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
			if len(lines) > 40 {
				t.Errorf("%s at %d: %d lines", name, width, len(lines))
			}
			for _, l := range lines {
				if columns(l) > width {
					t.Errorf("%s: %d columns of %d: %q", name, columns(l), width, l)
				}
			}
		}
	}
}

func TestHoldersReportsAreHarmless(t *testing.T) {
	h := holdersShapes()["hostile"]
	for _, format := range []string{"text", "markdown", "html"} {
		out := renderHolders(t, h, format, Options{Width: 100, Full: true})
		for _, r := range out {
			if r != '\n' && r != '\t' && (unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r)) {
				t.Errorf("%s: %U", format, r)
			}
		}
		if format == "markdown" {
			out = regexp.MustCompile("`+[^`]*`+").ReplaceAllString(out, "") // code shows what it holds
		}
		if format != "text" && (strings.Contains(out, "<script>alert") || strings.Contains(out, "<b>bad") || strings.Contains(out, "<i>")) {
			t.Errorf("%s holds markup of the tool's", format)
		}
	}
	all := renderHolders(t, holdersShapes()["all"], "json", Options{})
	if strings.Contains(all, "abcdef123456") {
		t.Error("a secret of a command line is in the result")
	}
}

func TestHoldersFormats(t *testing.T) {
	if err := WriteHolders(&bytes.Buffer{}, "yaml", &incident.Holders{}, Options{}); err == nil {
		t.Error("a format that there is not")
	}
}
