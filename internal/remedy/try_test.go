package remedy

import (
	"testing"

	"github.com/inquest-dev/inquest/internal/evidence"
)

func TestTried(t *testing.T) {
	for command, want := range map[string]string{
		"python train.py --batch-size 8":         "inquest verify -- python train.py --batch-size 8",
		"torchrun --nproc-per-node=8 train.py":   "inquest verify -- torchrun --nproc-per-node=8 train.py",
		"srun python train.py":                   "inquest verify -- srun python train.py",
		"sbatch job.sh --batch-size 8":           "", // returns before the job begins
		"/usr/bin/qsub job.sh":                   "",
		"kubectl apply -f job.yaml":              "",
		"CUDA_VISIBLE_DEVICES=0 python train.py": "", // the shell's to do
		"python train.py | tee out.log":          "",
		"cd /srv && python train.py":             "",
		"python train.py --data $DATA":           "",
		"python train.py --name $(date)":         "",
		"python train.py --glob data/*.bin":      "",
		"python train.py --template '{BATCH}'":   "", // would be taken for a name of inquest's
		"":                                       "",
		"python train.py \\\n  --batch-size 8":   "",
		"python train.py --name 'my run' --bs 8": "inquest verify -- python train.py --name 'my run' --bs 8",
		"export A=1":                             "",
	} {
		if got := tried(command, true); got != want {
			t.Errorf("%q: %q, want %q", command, got, want)
		}
		if got := tried(command, false); got != "" {
			t.Errorf("%q with a change that is not in it: %q", command, got)
		}
	}
}

func TestEdge(t *testing.T) {
	batch := func(now, acc int64) map[string]evidence.Value {
		v := map[string]evidence.Value{"run.batch": evidence.IntOf(now), "fix.micro_batch": evidence.IntOf(now / 2)}
		if acc > 0 {
			v["run.accumulation"] = evidence.IntOf(acc)
		}
		return v
	}
	for _, c := range []struct {
		command string
		values  map[string]evidence.Value
		want    string
	}{
		{"python train.py --batch-size 16 --lr 0.1", batch(16, 0), "inquest boundary --vary BATCH=1..16 -- python train.py --batch-size {BATCH} --lr 0.1"},
		{"python train.py --batch-size 16 --grad-accum 1", batch(16, 0), "inquest boundary --vary BATCH=1..16 --keep-product 'BATCH*ACCUM=16' -- python train.py --batch-size {BATCH} --grad-accum {ACCUM}"},
		{"python train.py --batch-size=16 --gradient_accumulation_steps=4", batch(16, 4), "inquest boundary --vary BATCH=1..16 --keep-product 'BATCH*ACCUM=64' -- python train.py --batch-size={BATCH} --gradient_accumulation_steps={ACCUM}"},
		{"python train.py --config c.yaml", batch(16, 0), ""}, // the batch stands elsewhere
		{"python train.py --batch-size 16", batch(2, 0), ""},  // not the value that is known
		{"python train.py --batch-size 2", batch(2, 0), ""},   // 1 is left, and is the change itself
		{"python train.py --batch-size 16", map[string]evidence.Value{"run.batch": evidence.IntOf(16)}, ""},
		{"python train.py --batch-size 16 > out.log", batch(16, 0), ""},
	} {
		if got := edge(c.command, c.values); got != c.want {
			t.Errorf("%q: %q, want %q", c.command, got, c.want)
		}
	}
}
