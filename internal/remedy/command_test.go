package remedy

import (
	"testing"

	"github.com/inquest-dev/inquest/internal/evidence"
)

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
	values = map[string]evidence.Value{"run.eval_batch": evidence.IntOf(48), "fix.eval_batch": evidence.IntOf(6)}
	f("python fit.py --batch-size 48 --per_device_eval_batch_size=48", "python fit.py --batch-size 48 --per_device_eval_batch_size=6", true)
}
