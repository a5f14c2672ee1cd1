package engine_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/inquest-dev/inquest/internal/engine"
	"github.com/inquest-dev/inquest/internal/evidence"
)

func TestEmbeddedTable(t *testing.T) {
	text := `step 10 loss 2.5
step 20 loss 2.4
RuntimeError: CUDA out of memory. Tried to allocate 2.00 GiB (GPU 0; 23.69 GiB total capacity; 3.10 GiB already allocated; 1.02 GiB free; 3.30 GiB reserved in total by PyTorch)
$ nvidia-smi
Tue Mar  3 10:11:12 2026
+-----------------------------------------------------------------------------+
| NVIDIA-SMI 515.65.01    Driver Version: 515.65.01    CUDA Version: 11.7     |
|-------------------------------+----------------------+----------------------+
| GPU  Name        Persistence-M| Bus-Id        Disp.A | Volatile Uncorr. ECC |
| Fan  Temp  Perf  Pwr:Usage/Cap|         Memory-Usage | GPU-Util  Compute M. |
|===============================+======================+======================|
|   0  NVIDIA RTX A5000    On   | 00000000:3B:00.0 Off |                  Off |
| 30%   33C    P8    18W / 230W |  18991MiB / 24256MiB |      0%      Default |
+-------------------------------+----------------------+----------------------+
+-----------------------------------------------------------------------------+
| Processes:                                                                  |
|  GPU   GI   CI        PID   Type   Process name                  GPU Memory |
|=============================================================================|
|    0   N/A  N/A      7012      C   python3                         18989MiB |
+-----------------------------------------------------------------------------+
$ echo done
`
	r, err := engine.Read(context.Background(), options(t, job(t, map[string]string{"train.log": text})))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	found := map[evidence.Kind]int64{}
	for _, e := range r.Sources[0].Events {
		found[e.Kind] = e.Span.Line
	}
	if found[evidence.GPUUsage] != 13 || found[evidence.GPUProcess] != 19 {
		t.Errorf("device rows at lines %d and %d, want 13 and 19", found[evidence.GPUUsage], found[evidence.GPUProcess])
	}
}

// TestEmbeddedLog: what stands in a job log is read to its end, versions too.
func TestEmbeddedLog(t *testing.T) {
	var b strings.Builder
	b.WriteString("step 1 loss 2.5\n+ nvidia-smi -q\n==============NVSMI LOG==============\n\nDriver Version : 570.86.15\nAttached GPUs : 8\n")
	for i := range 8 {
		fmt.Fprintf(&b, "GPU 00000000:%02X:00.0\n    FB Memory Usage\n        Used : %d MiB\n", i+1, i)
		for j := range 180 {
			fmt.Fprintf(&b, "    Field %d : 0\n", j)
		}
	}
	b.WriteString("step 2 loss 2.4\n")
	r, err := engine.Read(context.Background(), options(t, job(t, map[string]string{"train.log": b.String()})))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	devices := 0
	for _, e := range r.Sources[0].Events {
		if e.Kind == evidence.GPUUsage {
			devices++
		}
	}
	driver := ""
	for _, f := range r.Sources[0].Facts {
		if f.Name == "setting.driver_version" {
			driver = f.Value.S
		}
	}
	if devices != 8 || driver != "570.86.15" {
		t.Errorf("%d devices, driver %q", devices, driver)
	}
}

// TestTablesOfSeveralTools: one file holds the output of two readers' tools, in
// either order.
func TestTablesOfSeveralTools(t *testing.T) {
	const smi = "$ nvidia-smi --query-gpu=index,memory.used --format=csv\nindex, memory.used [MiB]\n0, 5 MiB\n1, 6 MiB\n"
	const ps = "$ ps -o pid,ppid,cmd\n    PID    PPID CMD\n  41877       1 python\n  41878       1 python\n"
	for name, text := range map[string]string{"smi first": smi + ps, "ps first": ps + smi} {
		r, err := engine.Read(context.Background(), options(t, job(t, map[string]string{"gpus.txt": text})))
		if err != nil {
			t.Fatal(err)
		}
		found := map[evidence.Kind]int{}
		for _, e := range r.Sources[0].Events {
			found[e.Kind]++
		}
		if found[evidence.GPUUsage] != 2 || found[evidence.HostProcess] != 2 || !evidence.Beside(r.Sources[0].Artifact.Kind) {
			t.Errorf("%s: %v, read as %s", name, found, r.Sources[0].Artifact.Kind)
		}
		r.Close()
	}
}

// TestBugReport: the sections of an NVIDIA bug report are read each by its reader,
// and what nvidia-smi says of a device meets the Xid of the same bus id.
func TestBugReport(t *testing.T) {
	const rule = "\n____________________________________________\n\n"
	text := rule + "Start of NVIDIA bug report log file.\n\nuname: Linux node-17 5.15.0\n" +
		rule + "/usr/bin/nvidia-smi --query\n\n==============NVSMI LOG==============\n\nAttached GPUs : 2\n" +
		"GPU 00000000:1B:00.0\n    ECC Errors\n        Volatile\n            DRAM Uncorrectable : 3\n" +
		"GPU 00000000:43:00.0\n    ECC Errors\n        Volatile\n            DRAM Uncorrectable : 0\n" +
		rule + "dmesg:\n\n[   10.500000] NVRM: Xid (PCI:0000:1b:00): 48, pid=4711, name=python3, An uncorrectable double bit error\n"
	inc := diagnose(t, job(t, map[string]string{"nvidia-bug-report.log": text, "train.log": "step 1 loss 2.5\nstep 2 loss 2.4\n"}))
	if f, ok := inc.Facts["gpu.ecc_uncorrectable"]; !ok || f.Value != int64(3) {
		t.Errorf("uncorrectable errors of the device: %+v", f)
	}
	if inc.FirstFault == nil || inc.FirstFault.Host == nil || *inc.FirstFault.Host != "node-17" {
		t.Errorf("first fault %+v", inc.FirstFault)
	}
}
