package ranklog_test

import (
	"testing"

	"github.com/inquest-dev/inquest/internal/evidence"
)

// TestTitledPairs: a title before pairs is not a key whose value is the first
// pair.
func TestTitledPairs(t *testing.T) {
	c := read(t, "INFO config: batch_size=12 eval_batch_size=96 amp=bf16 max_len=640\nINFO setup: {'gradient_accumulation_steps': 3, 'num_workers': 2}\n")
	got := map[string]string{}
	for _, f := range c.Facts {
		got[f.Name] = f.Value.String()
	}
	for name, want := range map[string]string{"run.batch": "12", "run.eval_batch": "96", "run.precision": "bf16", "run.seq_len": "640", "run.accumulation": "3", "run.workers": "2"} {
		if got[name] != want {
			t.Errorf("%s is %q, want %q", name, got[name], want)
		}
	}
}

// TestCommands: only what was run is a command; a comment at the prompt and an
// empty prompt are none.
func TestCommands(t *testing.T) {
	c := read(t, "u@box:~/x$ python fit.py --lr 0.1\nstep 1 loss 2.0\nstep 2 loss 1.9\nValueError: no\nu@box:~/x$ # smaller steps\nu@box:~/x$ \nu@box:~/x$ python fit.py --lr 0.01\nstep 1 loss 2.0\nu@box:~/x$\n")
	var got []string
	for _, e := range c.Events {
		if e.Kind == evidence.LaunchMark {
			got = append(got, e.Attrs.Str("command"))
		}
	}
	for i, want := range []string{"python fit.py --lr 0.1", "", "python fit.py --lr 0.01"} {
		if i >= len(got) || got[i] != want {
			t.Fatalf("commands are %q", got)
		}
	}
}
