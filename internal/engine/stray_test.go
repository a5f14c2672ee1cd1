package engine_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/inquest-dev/inquest/internal/incident"
)

// ranksOf are the logs of two ranks that say where they work and train for a while; the
// second one then fails as given.
func ranksOf(failure string) map[string]string {
	files := map[string]string{}
	for r, bus := range []string{"0000:1a:00.0", "0000:2b:00.0"} {
		var b strings.Builder
		fmt.Fprintf(&b, "host trn-31 rank %d pid %d device cuda:%d bus %s\n", r, 7400+r, r, bus)
		for i := range 60 {
			fmt.Fprintf(&b, "2026-07-08 08:%02d:00 step %d loss %.4f\n", i%40, i, 3.2-float64(i)/100)
			if i == 39 {
				break
			}
		}
		if r == 1 {
			b.WriteString(failure)
		}
		files[fmt.Sprintf("r%d.log", r)] = b.String()
	}
	return files
}

const badRow = `Traceback (most recent call last):
  File "/srv/asr/run.py", line 60, in <module>
    total += rows[key]
KeyError: 'duration'
`

// TestXidOfAnotherMatter: an Xid on a device, host or day that the job had nothing to do
// with leads nothing and is no cause; the reader is told why it was left out.
func TestXidOfAnotherMatter(t *testing.T) {
	for name, line := range map[string]string{
		"device": "Jul  8 08:38:50 trn-31 kernel: NVRM: Xid (PCI:0000:c4:00): 95, pid=90112, name=relion, Uncontained: LTC TAG (0x1, 0x0). RST: Yes, D-RST: No\n",
		"host":   "Jul  8 08:38:50 trn-77 kernel: NVRM: Xid (PCI:0000:2b:00): 95, pid=90112, name=relion, Uncontained: LTC TAG (0x1, 0x0). RST: Yes, D-RST: No\n",
		"day":    "Jul  2 08:38:50 trn-31 kernel: NVRM: Xid (PCI:0000:2b:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.\n",
	} {
		files := ranksOf(badRow)
		files["kern.log"] = line
		inc := diagnose(t, job(t, files))
		if f := inc.FirstFault; f == nil || f.Kind != "exception" || f.Rank == nil || *f.Rank != 1 {
			t.Errorf("%s: first fault %+v", name, f)
		}
		for _, h := range inc.Hypotheses {
			if h.Cause == "hardware-fault" && h.Standing != incident.RuledOut {
				t.Errorf("%s: %s is %s", name, h.Cause, h.Standing)
			}
		}
		if !strings.Contains(fmt.Sprint(inc.Limits), "not held against the run") {
			t.Errorf("%s: no word of it under limits", name)
		}
	}
}

// TestXidOfTheRank: the same record of the rank's own device, at that time, leads.
func TestXidOfTheRank(t *testing.T) {
	files := ranksOf("RuntimeError: CUDA error: unknown error\n")
	files["kern.log"] = "Jul  8 08:39:30 trn-31 kernel: NVRM: Xid (PCI:0000:2b:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.\n"
	inc := diagnose(t, job(t, files))
	if f := inc.FirstFault; f == nil || f.Kind != "xid" || f.Rank == nil || *f.Rank != 1 {
		t.Fatalf("first fault %+v", f)
	}
	if h := inc.Hypotheses[0]; h.Cause != "hardware-fault" || h.Standing != incident.Established {
		t.Errorf("leading cause %s, %s", h.Cause, h.Standing)
	}
}

// TestXidUntied: an Xid on a device that nothing ties to the job leaves open which of two
// independent failures was the first, and does not take the job's own for its consequence.
func TestXidUntied(t *testing.T) {
	inc := diagnose(t, job(t, map[string]string{
		"train.log": "2026-07-08 08:39:00 step 1 loss 3.1\n2026-07-08 08:39:30 step 2 loss 3.0\n" + badRow,
		"dmesg.txt": "[Wed Jul  8 08:39:20 2026] NVRM: Xid (PCI:0000:c4:00): 48, pid=90112, name=relion, DBE (double bit error) ECC\n",
	}))
	if f := inc.FirstFault; f == nil || f.Kind != "exception" {
		t.Errorf("first fault %+v", f)
	}
	if h := inc.Hypotheses[0]; h.Cause == "hardware-fault" && h.Standing == incident.Established {
		t.Error("the hardware fault is established")
	}
}

// TestXidOfACompletedJob: a job that the scheduler saw complete was ended by no fault of a
// device, whatever the kernel wrote meanwhile.
func TestXidOfACompletedJob(t *testing.T) {
	inc := diagnose(t, job(t, map[string]string{
		"sacct.txt": "JobID             State ExitCode    Elapsed   NodeList\n------------ ---------- -------- ---------- ----------\n7710          COMPLETED      0:0   01:10:00     trn-31\n",
		"kern.log":  "Jul  8 08:38:50 trn-31 kernel: NVRM: Xid (PCI:0000:2b:00): 94, pid=7401, name=python, Contained: CE User Channel (0x9). RST: No, D-RST: No\n",
	}))
	if inc.FirstFault != nil {
		t.Errorf("first fault %+v", inc.FirstFault)
	}
}
