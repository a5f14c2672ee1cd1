package engine_test

import (
	"strings"
	"testing"
)

const illegalAccess = `step 40 loss 3.002
[rank5]: Traceback (most recent call last):
[rank5]:   File "/srv/lm/pretrain.py", line 88, in <module>
[rank5]:     loss.backward()
[rank5]: RuntimeError: CUDA error: an illegal memory access was encountered
`

// TestConsequenceNeverLeads: an Xid that only follows another fault (43, 45) leads
// neither over the fault of the program nor, alone, at all, in whatever shape the
// kernel log is.
func TestConsequenceNeverLeads(t *testing.T) {
	xids := []string{
		"NVRM: Xid (PCI:0000:c1:00): 43, pid=8123, name=python, Ch 00000010",
		"NVRM: Xid (PCI:0000:c1:00): 45, pid=8123, name=python, Ch 00000011 caused by previous Xid 43",
		"NVRM: Xid (PCI:0000:c1:00): 154, pid=8123, name=python, GPU recovery action changed from 0x0 (None) to 0x1 (GPU Reset Required)",
	}
	for name, frame := range map[string]string{
		"seconds since boot": "[ 7712.000411] ", "a date": "[Wed Jul  8 08:40:12 2026] ", "syslog": "Jul  8 08:40:12 trn-31 kernel: ",
		"the journal": "2026-07-08T08:40:12+0000 trn-31 kernel: ", "kmsg": "3,77,7712000411,-;",
	} {
		log := frame + strings.Join(xids, "\n"+frame) + "\n"
		inc := diagnose(t, job(t, map[string]string{"job.log": illegalAccess, "dmesg.txt": log}))
		if f := inc.FirstFault; f == nil || f.Kind != "cuda_fault" || f.Rank == nil || *f.Rank != 5 {
			t.Errorf("%s: first fault %+v", name, f)
		}
		if h := inc.Hypotheses[0]; h.Cause != "illegal-access" {
			t.Errorf("%s: leading cause %s, %s", name, h.Cause, h.Standing)
		}
		if inc := diagnose(t, job(t, map[string]string{"dmesg.txt": log})); inc.FirstFault != nil {
			t.Errorf("%s alone: first fault %+v", name, inc.FirstFault)
		}
	}
}

// TestXidNeedsEvidenceForItsRank: a fault code in a kernel log belongs to a rank only
// where something in evidence says so; without it the rank stays open.
func TestXidNeedsEvidenceForItsRank(t *testing.T) {
	xid := "Jul  8 08:40:12 trn-31 kernel: NVRM: Xid (PCI:0000:c1:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.\n"
	inc := diagnose(t, job(t, map[string]string{"kern.log": xid, "node0.log": timedOut(0, 77, "08:50:13.208453123"), "node1.log": timedOut(1, 77, "08:50:13.218453123")}))
	f := inc.FirstFault
	if f == nil || f.Kind != "xid" || f.Host == nil || *f.Host != "trn-31" {
		t.Fatalf("first fault %+v", f)
	}
	if f.Rank != nil {
		t.Errorf("the Xid is given to rank %d, which nothing says", *f.Rank)
	}
}

// TestHardwareFaultSaysWhatItsCodeCallsFor: meaning, action and who acts, for the
// code of this run.
func TestHardwareFaultSaysWhatItsCodeCallsFor(t *testing.T) {
	inc := diagnose(t, job(t, map[string]string{
		"rank5.log": strings.Replace(illegalAccess, "an illegal memory access was encountered", "unknown error", 1),
		"dmesg.txt": "[ 7712.000418] NVRM: Xid (PCI:0000:c1:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.\n",
	}))
	if h := inc.Hypotheses[0]; h.Cause != "hardware-fault" || len(h.For) == 0 || !strings.Contains(h.For[0].Text, "fell off the bus") {
		t.Fatalf("leading hypothesis %+v", h)
	}
	if inc.Remedy == nil || !strings.Contains(inc.Remedy.Change, "power-cycles") {
		t.Errorf("remedy %+v", inc.Remedy)
	}
}
