package explain

import (
	"strings"
	"testing"
)

// TestPhrases asks as people ask, in words that are not the entries' own: the right
// entry is the first for nine in ten, and among the first three for all.
func TestPhrases(t *testing.T) {
	x, err := NewIndex(full(t))
	if err != nil {
		t.Fatal(err)
	}
	phrases := []struct{ query, want string }{
		{"gpu fell off the bus", "hardware-fault"},
		{"why is my job hung", "undetermined"},
		{"training just hangs with no output", "undetermined"},
		{"CUDA out of memory. Tried to allocate", "batch-or-activation-too-large"},
		{"how do I make my batch fit on the card", "batch-or-activation-too-large"},
		{"loss went to nan overnight", "nan-unknown"},
		{"why did my loss become NaN", "nan-unknown"},
		{"nan after I raised the learning rate", "nan-lr-batch-mismatch"},
		{"nan with fp16 but fine with bf16", "nan-precision-overflow"},
		{"who killed my training job", "killed-unknown"},
		{"my pod got OOMKilled", "cgroup-limit"},
		{"slurm says OUT_OF_MEMORY", "cgroup-limit"},
		{"the node ran out of RAM", "host-ram"},
		{"host RAM keeps growing during training", "host-leak-per-step"},
		{"gpu memory keeps growing every step", "retained-graph"},
		{"validation runs out of memory but training is ok", "eval-without-no-grad"},
		{"job stopped because of the walltime", "time-limit"},
		{"my job got preempted", "preempted-or-requeued"},
		{"disk quota exceeded when saving a checkpoint", "disk-full"},
		{"device-side assert triggered", "label-out-of-range"},
		{"illegal memory access", "illegal-access"},
		{"someone else is using my gpu", "other-process-on-gpu"},
		{"gpu memory still full after I killed the run", "dead-process-holds-memory"},
		{"bus error in dataloader worker inside docker", "shm-exhausted"},
		{"can't load the checkpoint, it looks broken", "checkpoint-corrupt"},
		{"uncorrectable ecc error", "hardware-fault"},
		{"ranks waiting for rank 0 to tokenize the dataset", "rank0-long-preprocess"},
		{"address already in use when starting torchrun", "collective-config"},
		{"no kernel image is available for my gpu", "version-mismatch"},
		{"infiniband link went down", "network-fault"},
		{"nfs is slow and ranks wait for it", "slow-storage"},
		{"401 unauthorized when downloading the model", "access-denied"},
		{"oom at the first optimizer step", "optimizer-first-step"},
		{"memory fragmentation", "fragmentation"},
		{"module not found", "missing-dependency"},
		{"ctrl-c", "interrupted"},
		{"i pressed ctrl-c", "interrupted"},
		{"my gpu is overheating and dropped", "hardware-fault"},
		{"sigkill without traceback", "killed-unknown"},
		{"OOM while saving the model with fsdp", "save-gathers-full-state"},
		{"loss scale keeps dropping to zero", "nan-precision-overflow"},
		{"gradients explode", "nan-lr-batch-mismatch"},
		{"padding mask gives nan", "nan-attention-mask"},
		{"corrupted sample makes loss nan", "nan-bad-sample"},
		{"spot instance reclaimed", "preempted-or-requeued"},
		{"kubernetes evicted my pod", "preempted-or-requeued"},
		{"wrong cuda version", "version-mismatch"},
		{"port 29500 busy", "collective-config"},
		{"too many open files", "data-loader-died"},
		{"pinned memory allocation failed", "pinned-memory"},
		{"logits too big for vocabulary", "logits-materialised"},
		{"cuda graphs use a lot of memory", "cuda-graph-pool"},
		{"hf trainer shows loss 0.0", "nan-hidden-by-framework"},
		{"one rank has fewer batches", "uneven-work"},
		{"shared memory too small", "shm-exhausted"},
		{"long sequences cause oom", "sequence-spike"},
		{"shape mismatch in matmul", "code-error"},
		{"kv cache does not fit", "kv-cache-oversized"},
	}
	first := 0
	for _, p := range phrases {
		var got []string
		for _, m := range x.Find(p.query) {
			got = append(got, m.ID)
		}
		got = got[:min(3, len(got))]
		switch {
		case len(got) > 0 && got[0] == p.want:
			first++
		case strings.Contains(" "+strings.Join(got, " ")+" ", " "+p.want+" "):
			t.Logf("%q: %s is not the first of %v", p.query, p.want, got)
		default:
			t.Errorf("%q: %s is not among %v", p.query, p.want, got)
		}
	}
	if 10*first < 9*len(phrases) {
		t.Errorf("the right entry is the first for %d of %d", first, len(phrases))
	}
}
