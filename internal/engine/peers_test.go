package engine_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/inquest-dev/inquest/internal/incident"
)

// timedOut is what a rank's watchdog prints when it gives up.
func timedOut(rank, seq int, at string) string {
	return fmt.Sprintf("[rank%[1]d]:[E708 %[3]s ProcessGroupNCCL.cpp:616] [Rank %[1]d] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=%[2]d, OpType=ALLREDUCE, NumelIn=4096, NumelOut=4096, Timeout(ms)=600000) ran for 600021 milliseconds before timing out.\n"+
		"[rank%[1]d]:[E708 %[3]s ProcessGroupNCCL.cpp:636] [Rank %[1]d] To avoid data inconsistency, we are taking the entire process down.\n", rank, seq, at)
}

// agent is what torchrun prints when a worker of its node ended.
func agent(host string, rank, code, pid int, at string) string {
	signal := map[int]string{-9: "9 (SIGKILL)", -6: "6 (SIGABRT)"}[code]
	return fmt.Sprintf("E0708 %[5]s.100000 811 torch/distributed/elastic/multiprocessing/api.py:869] failed (exitcode: %[3]d) local_rank: 0 (pid: %[4]d) of binary: /usr/bin/python3\n"+
		"torch.distributed.elastic.multiprocessing.errors.ChildFailedError: \n"+
		"============================================================\ntrain.py FAILED\n------------------------------------------------------------\nFailures:\n  <NO_OTHER_FAILURES>\n------------------------------------------------------------\n"+
		"Root Cause (first observed failure):\n[0]:\n  time      : 2026-07-08_%[5]s\n  host      : %[1]s\n  rank      : %[2]d (local_rank: 0)\n  exitcode  : %[3]d (pid: %[4]d)\n  error_file: <N/A>\n  traceback : Signal %[6]s received by PID %[4]d\n"+
		"============================================================\n", host, rank, code, pid, at, signal)
}

// TestKilledBeforePeersTimedOut says that the peers' time-outs, and the exits
// that they end in, take nothing from the verdict on a killed process.
func TestKilledBeforePeersTimedOut(t *testing.T) {
	killed := agent("trn-31", 4, -9, 9310, "08:40:12")
	waited := timedOut(0, 77, "08:50:13.208453123") + timedOut(1, 77, "08:50:13.218453123") + agent("trn-30", 0, -6, 7140, "08:50:15")
	for name, files := range map[string]map[string]string{
		"alone":          {"node1.log": killed},
		"with its peers": {"node0.log": waited, "node1.log": killed},
	} {
		inc := diagnose(t, job(t, files))
		f := inc.FirstFault
		if f == nil || f.Rank == nil || *f.Rank != 4 || f.Host == nil || *f.Host != "trn-31" {
			t.Fatalf("%s: first fault %+v", name, f)
		}
		h := inc.Hypotheses[0]
		if h.Cause != "host-ram" || h.Standing != incident.Possible {
			t.Errorf("%s: leading cause %s, %s", name, h.Cause, h.Standing)
		}
		for _, want := range []string{"host-ram", "cgroup-limit", "killed-unknown"} {
			if !slices.ContainsFunc(inc.Hypotheses, func(h incident.Hypothesis) bool {
				return h.Cause == want && h.Standing == incident.Possible
			}) {
				t.Errorf("%s: %s is not possible", name, want)
			}
		}
		if inc.Remedy == nil || !strings.Contains(inc.Remedy.Command, "dmesg -T") || !strings.Contains(inc.Remedy.Command, "trn-31") {
			t.Errorf("%s: remedy %+v", name, inc.Remedy)
		}
		for _, h := range inc.Hypotheses {
			for _, s := range h.For {
				if h.Cause == "undetermined" {
					t.Errorf("%s: for undetermined: %s", name, s.Text)
				}
			}
		}
	}
}

// TestOnlyWaitersInEvidence says that ranks that waited in one collective are not
// blamed for it, and that the logs of the others are asked for.
func TestOnlyWaitersInEvidence(t *testing.T) {
	inc := log(t, timedOut(0, 77, "08:50:13.208453123")+timedOut(1, 77, "08:50:13.218453123"))
	if inc.FirstFaultStanding != "undecidable" || !strings.Contains(inc.FirstFaultBasis, "ranks 0-1 waited in the same collective") {
		t.Errorf("first fault is %s: %s", inc.FirstFaultStanding, inc.FirstFaultBasis)
	}
	for _, c := range inc.Collateral {
		if strings.Contains(c.ExplainedBy.Text, "rank 0 ") || strings.Contains(c.ExplainedBy.Text, "rank 1 ") {
			t.Errorf("a rank that waited is blamed: %s", c.ExplainedBy.Text)
		}
	}
	if h := inc.Hypotheses[0]; h.Cause != "undetermined" || len(h.Missing) == 0 || h.Missing[0].Name != "dist.other_fault" {
		t.Errorf("leading cause %s, missing %+v", h.Cause, h.Missing)
	}
	for _, m := range inc.Hypotheses[0].Missing {
		if strings.Contains(m.How, "rank 0 ") || strings.Contains(m.How, "rank 1 ") {
			t.Errorf("a rank that waited is asked: %s", m.How)
		}
	}
	if !states(inc, "logs of the other ranks are missing") {
		t.Errorf("limits are %+v", inc.Limits)
	}
}

// TestNumberOfRanks says that a number that no line states is the least one.
func TestNumberOfRanks(t *testing.T) {
	killed := agent("trn-31", 4, -9, 9310, "08:40:12")
	if inc := log(t, killed); !states(inc, "at least 5 ranks; words of 1") {
		t.Errorf("limits are %+v", inc.Limits)
	}
	stated := log(t, "trn-31:9310:9310 [0] NCCL INFO ncclCommInitRank comm 0x55d0c0 rank 4 nranks 8 cudaDev 0 busId 1000 commId 0x1 - Init COMPLETE\n"+killed)
	if !states(stated, "The job has 8 ranks; words of 1") {
		t.Errorf("limits are %+v", stated.Limits)
	}
}

// TestChangesOfTheFirstAttempt says that what was changed since an attempt is
// asked only where there is one.
func TestChangesOfTheFirstAttempt(t *testing.T) {
	diverged := ""
	for n, loss := range []string{"2.10", "2.08", "2.11", "2.09", "2.10", "5.90", "19.40", "88.10", "nan", "nan"} {
		diverged += fmt.Sprintf("step %d loss %s\n", 101+n, loss)
	}
	asked := func(inc *incident.Incident) bool {
		return slices.ContainsFunc(inc.Hypotheses, func(h incident.Hypothesis) bool {
			return slices.ContainsFunc(h.Missing, func(m incident.Missing) bool { return strings.HasPrefix(m.Name, "changed.") })
		})
	}
	if inc := log(t, diverged); standing(inc, "nan-lr-batch-mismatch") != incident.Supported || asked(inc) {
		t.Errorf("the only attempt: %s, asked for a change: %t", standing(inc, "nan-lr-batch-mismatch"), asked(inc))
	}
	again := diagnose(t, job(t, map[string]string{"run/attempt_0/train.log": diverged, "run/attempt_1/train.log": diverged}))
	if len(again.Attempts) != 2 || !asked(again) {
		t.Errorf("%d attempts, asked for a change: %t", len(again.Attempts), asked(again))
	}
}

// TestTwoRunsInOneInput says that two logs that each have a loss of their own over
// the same steps are called what they look like.
func TestTwoRunsInOneInput(t *testing.T) {
	curve := func(from float64, end string) string {
		text := ""
		for n := range 8 {
			text += fmt.Sprintf("step %d loss %.4f\n", 10*(n+1), from-0.1*float64(n))
		}
		return text + end
	}
	oom := "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 23.69 GiB of which 1.00 GiB is free.\n"
	other := "Traceback (most recent call last):\n  File \"/srv/a.py\", line 3, in <module>\n    f()\nKeyError: 'x'\n"
	two := diagnose(t, job(t, map[string]string{"a.log": curve(4, oom), "b.log": curve(2.5, other)}))
	if two.FirstFaultStanding != "undecidable" || !states(two, "as two runs do") {
		t.Errorf("%s; limits %+v", two.FirstFaultStanding, two.Limits)
	}
	one := diagnose(t, job(t, map[string]string{"a.log": curve(4, oom), "b.log": curve(4, other)}))
	if states(one, "as two runs do") {
		t.Errorf("one curve in two files: limits %+v", one.Limits)
	}
}
