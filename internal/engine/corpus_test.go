package engine_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/inquest-dev/inquest/internal/engine"
	"github.com/inquest-dev/inquest/internal/incident"
)

// outside returns a folder that lies beside the module where it is worked on,
// and skips the test elsewhere.
func outside(t *testing.T, folder string) string {
	t.Helper()
	dir := filepath.Join(root, "..", "shared", filepath.FromSlash(folder))
	if _, err := os.Stat(dir); err != nil {
		t.Skipf("%s is not here", folder)
	}
	return dir
}

// sound checks what every incident must be, whatever the input was.
func sound(t *testing.T, name string, inc *incident.Incident) {
	t.Helper()
	if inc.Schema != incident.Schema || inc.Outcome == "" || len(inc.Attempts) == 0 {
		t.Errorf("%s: schema %q, outcome %q, %d attempts", name, inc.Schema, inc.Outcome, len(inc.Attempts))
	}
	if inc.FirstFault != nil {
		if inc.FirstFaultBasis == "" || inc.FirstFaultStanding == "" {
			t.Errorf("%s: a first fault with basis %q and standing %q", name, inc.FirstFaultBasis, inc.FirstFaultStanding)
		}
		if sp := inc.FirstFault.Span; sp == nil && inc.FirstFault.KnownBy != "elimination" {
			t.Errorf("%s: a first fault without a span", name)
		} else if sp != nil && (sp.Artifact == "" || sp.Quote == "" || sp.Line < 1) {
			t.Errorf("%s: the first fault's span is %+v", name, *sp)
		}
		if len(inc.Hypotheses) == 0 || inc.Remedy == nil {
			t.Errorf("%s: %s has %d hypotheses, remedy %v", name, inc.FirstFault.Kind, len(inc.Hypotheses), inc.Remedy != nil)
		}
	}
	for _, h := range inc.Hypotheses {
		if h.Standing != incident.Possible && h.Standing != incident.RuledOut && len(h.For) == 0 {
			t.Errorf("%s: %s is %s for no reason", name, h.Cause, h.Standing)
		}
		for _, s := range h.For {
			if s.Text == "" || strings.Contains(s.Text, "{") && strings.Contains(s.Text, "}") && strings.Contains(s.Text, "oom.") {
				t.Errorf("%s: %s says %q", name, h.Cause, s.Text)
			}
		}
	}
	encode(t, inc)
}

// TestPublicLogs diagnoses logs of real runs, which are not part of the module.
func TestPublicLogs(t *testing.T) {
	if testing.Short() {
		t.Skip("reads eight megabytes of logs")
	}
	for _, file := range filesOf(t, outside(t, "data/logs")) {
		sound(t, filepath.Base(file), diagnose(t, file))
	}
}

// TestLabelledCases runs the labelled cases through the engine. How well they are
// answered is measured elsewhere; here nothing may go wrong.
func TestLabelledCases(t *testing.T) {
	dir := outside(t, "cases")
	inputs, _ := filepath.Glob(filepath.Join(dir, "*", "*", "input"))
	if len(inputs) == 0 {
		t.Skip("no cases")
	}
	for _, in := range inputs {
		sound(t, filepath.Base(filepath.Dir(in)), diagnose(t, in))
	}
}

// pieces are lines and parts of lines that random logs are made of.
var pieces = []string{
	"Traceback (most recent call last):", `  File "a.py", line 3, in f`, "    x = g()", "RuntimeError: CUDA out of memory. Tried to allocate 2.00 GiB", "CUDA out of memory. Tried to allocate 99999999999999999999.00 GiB",
	"torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 18446744073709551615 bytes.", "step 1 loss nan", "step 2 loss 1.5", "step -9223372036854775808 loss 1e309", "loss: inf", "{'loss': 0.0, 'grad_norm': nan, 'epoch': 0.1}",
	"[rank3]:", "[Rank 3] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=1, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=9223372036854775807) ran for 1 milliseconds before timing out.",
	"slurmstepd: error: Detected 1 oom_kill event in StepId=1.0", "NVRM: Xid (PCI:0000:41:00): 79, GPU has fallen off the bus.", "[12345.678901] Out of memory: Killed process 4 (python)", "+ torchrun train.py", "Training completed.",
	"2026-04-02 10:00:00,000 ", "0000-00-00 99:99:99 ", "batch_size=0", "num_workers: -1", "per_device_train_batch_size=999999999999", "\r", "\x1b[31m", "<script>", "\xff\xfe", "\x00", " ", "...", "Killed", "Signal 9 (SIGKILL) received by PID 1",
	"OVERFLOW! Rank 0 Skipping step. Attempted loss scale: 65536, reducing to 32768", "Current loss scale already at minimum", "Segmentation fault (core dumped)", "KeyboardInterrupt", "No space left on device", "rank_7", "world_size=1000000000",
}

// random makes a log of up to n pieces.
func random(rng *rand.Rand, n int) string {
	var b strings.Builder
	for range rng.IntN(n) {
		b.WriteString(pieces[rng.IntN(len(pieces))])
		if rng.IntN(3) > 0 {
			b.WriteByte('\n')
		}
	}
	return b.String()
}

// TestRandomLogs: whatever stands in a log, the incident is sound.
func TestRandomLogs(t *testing.T) {
	rng := rand.New(rand.NewPCG(9, 7))
	dir := t.TempDir()
	for range 120 {
		text := random(rng, 40)
		for _, name := range []string{"rank_0.log", "rank_1.log"}[:1+rng.IntN(2)] {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o666); err != nil {
				t.Fatal(err)
			}
			text = random(rng, 20)
		}
		sound(t, text, diagnose(t, dir))
	}
}

// FuzzDiagnose: no log makes the engine fail or panic.
func FuzzDiagnose(f *testing.F) {
	rng := rand.New(rand.NewPCG(7, 7))
	for range 40 {
		f.Add([]byte(random(rng, 30)))
	}
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > 64<<10 {
			return
		}
		file, err := os.CreateTemp(dir, "*.log")
		if err != nil {
			t.Fatal(err)
		}
		defer os.Remove(file.Name())
		if _, err := file.Write(data); err != nil {
			t.Fatal(err)
		}
		if err := file.Close(); err != nil {
			t.Fatal(err)
		}
		o := options(t, file.Name())
		o.All = true
		ctx, stop := context.WithTimeout(context.Background(), 20*time.Second)
		defer stop()
		inc, err := engine.Diagnose(ctx, o)
		if errors.Is(err, context.DeadlineExceeded) {
			t.Fatal("twenty seconds are not enough")
		}
		if err == nil {
			encode(t, inc)
		}
	})
}
