package engine_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/inquest-dev/inquest/internal/incident"
)

// sizedOut is a time-out of rank in an all-reduce of size elements.
func sizedOut(rank, seq, size int) string {
	return fmt.Sprintf("[rank%[1]d]:[E519 14:10:0%[1]d.300000000 ProcessGroupNCCL.cpp:632] [Rank %[1]d] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=%[2]d, OpType=ALLREDUCE, NumelIn=%[3]d, NumelOut=%[3]d, Timeout(ms)=600000) ran for 600041 milliseconds before timing out.\n", rank, seq, size)
}

func cause(inc *incident.Incident) (string, string) {
	if len(inc.Hypotheses) == 0 {
		return "", ""
	}
	return inc.Hypotheses[0].Cause, inc.Hypotheses[0].Standing
}

// TestAllRanksWait says that no rank is asked for where all of them came.
func TestAllRanksWait(t *testing.T) {
	files := map[string]string{}
	for r := range 3 {
		files[fmt.Sprintf("rank%d.log", r)] = fmt.Sprintf("[rank%[1]d]: Process rank: %[1]d, world size: 3\n", r) + sizedOut(r, 640, 512)
	}
	ask := func(files map[string]string) string {
		inc := diagnose(t, job(t, files))
		h := inc.Hypotheses[0]
		if h.Cause != "undetermined" || len(h.Missing) == 0 {
			t.Fatalf("first hypothesis %s, missing %v", h.Cause, h.Missing)
		}
		var all []string
		for _, m := range h.Missing {
			all = append(all, m.Fact)
		}
		for _, s := range h.For {
			all = append(all, s.Text)
		}
		return strings.Join(all, "\n")
	}
	if s := ask(files); strings.Contains(s, "did not come") || strings.Contains(s, "left no words") || strings.Contains(s, "came first") || !strings.HasPrefix(s, "why the collective did not complete") {
		t.Errorf("all came, and it asks: %s", s)
	}
	delete(files, "rank2.log")
	if s := ask(files); strings.Contains(s, "did not complete although") || !strings.Contains(s, "did not come") {
		t.Errorf("one rank's log is not there, and it asks: %s", s)
	}
}

// TestRanOutOfBatches says that a rank with fewer batches is the cause only where it is the
// one at odds.
func TestRanOutOfBatches(t *testing.T) {
	for odd, want := range map[int]string{2: "uneven-work", 0: "collective-not-called-by-all"} {
		files := map[string]string{}
		for r := range 4 {
			batches, size := 818, 65536
			if r == 2 {
				batches--
			}
			if r == odd {
				size = 4
			}
			files[fmt.Sprintf("rank%d.log", r)] = fmt.Sprintf("rank %d: len(loader) = %d\n", r, batches) + sizedOut(r, 77, size)
		}
		inc := diagnose(t, job(t, files))
		if c, standing := cause(inc); c != want || standing != incident.Established {
			t.Errorf("rank %d at odds: %s (%s), want %s", odd, c, standing, want)
		}
		if r := inc.FirstFault.Rank; r == nil || *r != odd {
			t.Errorf("rank %d at odds: first fault of %v", odd, r)
		}
	}
}

// TestFolderNamedForItsStory says that the name of a folder does not make all logs in it one
// rank's.
func TestFolderNamedForItsStory(t *testing.T) {
	files := map[string]string{}
	for r := range 3 {
		var b strings.Builder
		for step := range 9 {
			fmt.Fprintf(&b, "[r%d] 14:00:%02d step %d loss 1.%d\n", r, step, step, step)
		}
		size := 2048
		if r == 1 {
			size = 1
		}
		files[filepath.Join("stuck-rank2", fmt.Sprintf("out_%c.txt", 'a'+r))] = b.String() + sizedOut(r, 31, size)
	}
	inc := diagnose(t, job(t, files))
	if f := inc.FirstFault; f == nil || f.Rank == nil || *f.Rank != 1 {
		t.Errorf("first fault %+v", f)
	}
}

// TestHostIsGone says that a host whose ranks all fall silent leads, and which cause is not
// known.
func TestHostIsGone(t *testing.T) {
	files := map[string]string{}
	for r := range 4 {
		host := fmt.Sprintf("node-%d", r/2)
		text := fmt.Sprintf("host=%s RANK=%d WORLD_SIZE=4\n", host, r)
		for step := range 6 {
			text += fmt.Sprintf("step %d loss 2.%d\n", step, step)
		}
		if r < 2 {
			text += fmt.Sprintf("[rank%[1]d]:[E519 14:10:00.300000000 ProcessGroupNCCL.cpp:552] [Rank %[1]d] Collective WorkNCCL(SeqNum=9, OpType=ALLREDUCE, NumelIn=8, NumelOut=8, Timeout(ms)=600000) raised the following async exception: NCCL error: remote process exited or there was a network error, NCCL version 2.21.5\n"+
				"Last error:\nsocketProgress: Connection closed by remote peer node-1<4100%[1]d>\n", r)
		}
		files[fmt.Sprintf("%s.rank%d.log", host, r)] = text
	}
	inc := diagnose(t, job(t, files))
	f := inc.FirstFault
	if f == nil || f.KnownBy != "elimination" || f.Rank != nil || f.Host == nil || *f.Host != "node-1" {
		t.Fatalf("first fault %+v (%s)", f, inc.FirstFaultBasis)
	}
	if c, standing := cause(inc); standing == incident.Established {
		t.Errorf("%s is established; nothing says what ended the host", c)
	}
}

// TestMemoryAndGuardWithoutClock says that two logs without times leave the order
// open, also where no metric but a guard's words tell of the value.
func TestMemoryAndGuardWithoutClock(t *testing.T) {
	inc := diagnose(t, job(t, map[string]string{
		"learner_a.log": "policy 0.10 | entropy 1.2\npolicy 0.11 | entropy 1.1\nnon-finite gradients after update, stopping\n",
		"learner_b.log": "policy 0.20 | entropy 1.0\nTraceback (most recent call last):\n  File \"/x/learn.py\", line 4, in <module>\n    y = net(x)\ntorch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.50 GiB. GPU 0 has a total capacity of 23.60 GiB of which 512.00 MiB is free. Including non-PyTorch memory, this process has 23.10 GiB memory in use. Of the allocated memory 22.00 GiB is allocated by PyTorch, and 700.00 MiB is reserved by PyTorch but unallocated.\n",
	}))
	if inc.Order.Relation != "undecidable" {
		t.Errorf("order %s (%s)", inc.Order.Relation, inc.Order.Basis)
	}
}

// TestBarsOfAHealthyRun says that progress bars of a data set on one rank accuse
// nobody.
func TestBarsOfAHealthyRun(t *testing.T) {
	text := ""
	for i := range 6 {
		text += fmt.Sprintf("Map:  %d%%|##        | %d/1000 [00:%02d<00:30, 22.00 examples/s]\n", 10*i+5, 100*i+50, 5*i)
	}
	for step := range 12 {
		text += fmt.Sprintf("step %d loss 2.%02d\n", step, step)
	}
	inc := diagnose(t, job(t, map[string]string{"rank0.log": text + "Training complete.\n", "rank1.log": "step 1 loss 2.1\nstep 2 loss 2.0\nTraining complete.\n"}))
	if inc.FirstFault != nil {
		t.Errorf("first fault %+v", inc.FirstFault)
	}
}
