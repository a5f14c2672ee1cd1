package remedy

import (
	"testing"

	"github.com/inquest-dev/inquest/internal/evidence"
)

func TestWithoutOutput(t *testing.T) {
	for in, want := range map[string]string{
		"python fit.py --lr 1 2>&1 | tee fit.log":   "python fit.py --lr 1",
		"python fit.py |& tee -a logs/fit.log":      "python fit.py",
		"nohup python fit.py > fit.log 2>&1 &":      "nohup python fit.py",
		"python fit.py &> fit.log":                  "python fit.py",
		"python fit.py >> fit.log 2> fit.err":       "python fit.py",
		"python fit.py &":                           "python fit.py &",
		"python -c 'print(2 > 1)'":                  "python -c 'print(2 > 1)'",
		"python fit.py --name \"a > b\"":            "python fit.py --name \"a > b\"",
		"cat list.txt | python fit.py --from-stdin": "cat list.txt | python fit.py --from-stdin",
	} {
		if got := withoutOutput(in); got != want {
			t.Errorf("withoutOutput(%q) is %q, want %q", in, got, want)
		}
	}
}

func TestWithChange(t *testing.T) {
	values := map[string]evidence.Value{
		"run.batch": evidence.IntOf(8), "run.accumulation": evidence.IntOf(2),
		"fix.micro_batch": evidence.IntOf(4), "fix.accumulation": evidence.IntOf(4),
	}
	f := func(in, want string, complete bool) {
		t.Helper()
		if got, ok := withChange(in, values); got != want || ok != complete {
			t.Errorf("withChange(%q)\n got %q %v\nwant %q %v", in, got, ok, want, complete)
		}
	}
	f("python fit.py --batch-size 8 --accum-steps 2", "python fit.py --batch-size 4 --accum-steps 4", true)
	f("torchrun fit.py --per_device_train_batch_size=8 --gradient_accumulation_steps=2 --lr 8", "torchrun fit.py --per_device_train_batch_size=4 --gradient_accumulation_steps=4 --lr 8", true)
	f("python fit.py --batch_size 16 --gradient_accumulation_steps 2", "python fit.py --batch_size 16 --gradient_accumulation_steps 4", false)
	f("torchrun fit.py --device-batch-size 8 --accum 2", "torchrun fit.py --device-batch-size 4 --accum 4", true)
	f("python fit.py --config a.yaml", "python fit.py --config a.yaml", false)
	f("python fit.py --eval-batch-size 8", "python fit.py --eval-batch-size 8", false)
	values = map[string]evidence.Value{"run.lr": evidence.FloatOf(2e-3), "fix.lr": evidence.FloatOf(2e-4)}
	f("python fit.py --lr 2e-3 --min-lr 2e-3", "python fit.py --lr 0.0002 --min-lr 2e-3", true)
	f("python fit.py --learning_rate=0.004", "python fit.py --learning_rate=0.004", false) // the rate of a schedule, not of that step
	values = map[string]evidence.Value{"fix.precision": evidence.TextOf("bf16")}
	f("python fit.py --precision fp16 --lr 1", "python fit.py --precision bf16 --lr 1", true)
	f("python fit.py --fp16", "python fit.py --bf16", true)
	f("accelerate launch --mixed_precision=fp16 fit.py --precision 16-mixed", "accelerate launch --mixed_precision=bf16 fit.py --precision bf16-mixed", true)
	f("python fit.py --batch 16 --fp16_opt_level O1", "python fit.py --batch 16 --fp16_opt_level O1", false)
	values = map[string]evidence.Value{"run.eval_batch": evidence.IntOf(48), "fix.eval_batch": evidence.IntOf(6)}
	f("python fit.py --batch-size 48 --per_device_eval_batch_size=48", "python fit.py --batch-size 48 --per_device_eval_batch_size=6", true)
}
