package engine_test

import (
	"strings"
	"testing"
)

// TestRemedyFits: the change fits the situation, and says no more than the
// evidence does.
func TestRemedyFits(t *testing.T) {
	const evalOOM = `config: batch_size=6 %smax_len=512
epoch 0 step 10 loss 2.9 mem 30.1GiB
epoch 0 step 20 loss 2.8 mem 30.1GiB
epoch 0 step 30 loss 2.7 mem 30.1GiB
Traceback (most recent call last):
  File "/home/u/lm/fit.py", line 88, in <module>
    score = evaluate(model, held)
  File "/home/u/lm/fit.py", line 51, in evaluate
    out = model(ids)
  File "/opt/py/lib/python3.11/site-packages/transformers/models/opt/modeling_opt.py", line 900, in forward
    logits = self.lm_head(h)
torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 9.20 GiB. GPU 0 has a total capacity of 39.39 GiB of which 4.10 GiB is free. Including non-PyTorch memory, this process has 35.20 GiB memory in use. Of the allocated memory 34.00 GiB is allocated by PyTorch, and 700.00 MiB is reserved by PyTorch but unallocated.
`
	for _, tt := range []struct {
		name  string
		files map[string]string
		has   []string
		not   []string
	}{
		{"evaluation batch", map[string]string{"train.log": strings.Replace(evalOOM, "%s", "eval_batch_size=48 ", 1)},
			[]string{"from 48 to 6"}, []string{"liger", "TrainingArguments"}},
		{"evaluation batch unknown", map[string]string{"train.log": strings.Replace(evalOOM, "%s", "", 1)},
			[]string{"evaluation batch"}, []string{"liger", "TrainingArguments"}},
		{"limit unknown", map[string]string{"dmesg.txt": `[77.1] oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=/,mems_allowed=0,oom_memcg=/job9,task_memcg=/job9/0,task=python,pid=411,uid=9
[77.2] Memory cgroup out of memory: Killed process 411 (python) total-vm:90000000kB, anon-rss:60000000kB, file-rss:0kB, shmem-rss:0kB, UID:9 pgtables:9000kB oom_score_adj:0
`}, []string{"memory.max", "a quarter more"}, []string{"GiB", "G "}},
	} {
		inc := diagnose(t, job(t, tt.files))
		if inc.Remedy == nil {
			t.Errorf("%s: no remedy", tt.name)
			continue
		}
		all := inc.Remedy.Change
		for _, e := range inc.Remedy.Edits {
			all += "\n" + e.Where + ": " + e.From + " -> " + e.To
		}
		for _, s := range tt.has {
			if !strings.Contains(all, s) {
				t.Errorf("%s: no %q in %s", tt.name, s, all)
			}
		}
		for _, s := range tt.not {
			if strings.Contains(all, s) {
				t.Errorf("%s: %q in %s", tt.name, s, all)
			}
		}
	}
}

// TestChangedOnce: what differs from the launch before is listed once, under the
// fact's name where the key sets one.
func TestChangedOnce(t *testing.T) {
	inc := diagnose(t, job(t, map[string]string{"s.log": `u@h:~/x$ python fit.py --precision fp32 --batch-size 8
step 1 loss 3.0
step 2 loss 2.9
Traceback (most recent call last):
  File "fit.py", line 9, in <module>
    loss.backward()
torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.00 GiB. GPU 0 has a total capacity of 23.69 GiB of which 0.50 GiB is free. Including non-PyTorch memory, this process has 23.00 GiB memory in use. Of the allocated memory 22.00 GiB is allocated by PyTorch, and 100.00 MiB is reserved by PyTorch but unallocated.
u@h:~/x$ # again
u@h:~/x$ python fit.py --precision fp16 --batch-size 4
step 1 loss 3.0
step 2 loss nan
step 3 loss nan
`}))
	if len(inc.Attempts) != 2 || inc.Attempts[1].ChangedFrom == nil {
		t.Fatalf("%d attempts", len(inc.Attempts))
	}
	if got := inc.Attempts[1].Command; got != "python fit.py --precision fp16 --batch-size 4" {
		t.Errorf("command is %q", got)
	}
	var names []string
	for _, d := range inc.Attempts[1].ChangedFrom.Diffs {
		names = append(names, d.Name)
	}
	if got := strings.Join(names, " "); got != "batch precision" {
		t.Errorf("differences are %q", got)
	}
}
