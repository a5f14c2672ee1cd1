package trial

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/inquest-dev/inquest/internal/incident"
)

// A play is a run that was never made: what its trial would hold.
type play struct {
	status  int
	class   string // of its failure
	stopped string
	survive string
	steps   int64
	peak    int64
	leak    int64 // bytes for each step
	nan     int64 // step from which the loss is not finite; 0 is never
	scale   float64
}

// done makes the trial and the diagnosis of a play.
func (p play) done(id string) Done {
	at := func(s float64) string {
		return time.Date(2026, 12, 1, 10, 0, 0, 0, time.UTC).Add(time.Duration(s * 1e9)).Format(time.RFC3339Nano)
	}
	end := at(60)
	t := incident.Trial{ID: id, Command: []string{"python", "train.py"}, Scenario: "x train.py", Begun: at(0), Ended: &end, Exit: &incident.Exit{Status: p.status, Stopped: p.stopped}}
	v := incident.TrialVerdict{Result: incident.Passed, Class: p.class, Text: "It ended.", Survived: p.survive}
	switch {
	case p.stopped != "":
		v.Result = incident.TimedOut
	case p.class == "host_memory":
		v.Result, v.Kind, v.Fingerprint = incident.OutOfMemory, "host_alloc_failed", "f1"
	case p.status != 0:
		v.Result, v.Fingerprint = incident.TrialFailed, "f2"
	}
	t.Verdict = &v
	limit := int64(4 << 30)
	t.Measures = []incident.Measure{{Name: incident.Resident, Peak: max(p.peak, 1<<30), Limit: &limit}}
	inc := &incident.Incident{Outcome: incident.FinishedRun}
	loss, memory := incident.Series{Name: "loss", Trust: "raw"}, incident.Series{Name: "host_memory", Trust: "raw"}
	for s := int64(1); s <= p.steps; s++ {
		step, value, used := s, max(p.scale, 1)*(2-float64(s)/float64(2*p.steps)), float64(1<<30+s*p.leak)
		loss.Count++
		pt := incident.Point{Step: &step, Ordinal: s, Value: &value}
		if p.nan > 0 && s >= p.nan {
			pt.Value, loss.Bad = nil, loss.Bad+1
		}
		loss.Points = append(loss.Points, pt)
		memory.Points = append(memory.Points, incident.Point{Step: &step, Ordinal: s, Value: &used})
	}
	if p.steps > 0 {
		inc.Series = []incident.Series{loss, memory}
	}
	if p.class != "" {
		step := p.steps
		inc.FirstFault = &incident.Event{Class: p.class, Kind: v.Kind, Step: &step}
	}
	return Done{Trial: t, Diagnosis: inc}
}

func observed(plays ...play) []Observed {
	var out []Observed
	for i, p := range plays {
		out = append(out, Observe(p.done(fmt.Sprintf("t%d", i)), nil))
	}
	return out
}

func stateOf(v incident.Verification, name string) string {
	for _, c := range v.Checks {
		if c.Name == name {
			return c.State
		}
	}
	return ""
}

func TestJudgeVerification(t *testing.T) {
	good := play{steps: 100}
	oom := &Original{Observed: observed(play{status: 1, class: "host_memory", steps: 50})[0], Fingerprint: "f1", Failed: 1, Made: 1}
	silent := &Original{Observed: observed(play{status: 1, class: "host_memory"})[0], Fingerprint: "f1", Failed: 1, Made: 1}
	silent.Diagnosis.FirstFault.Step, silent.LastStep = nil, nil
	flaky, sure := *oom, *oom
	flaky.Failed, flaky.Made = 1, 4
	sure.Failed, sure.Made = 3, 3
	f := func(name string, e VerifyEvidence, verdict, says string, states ...string) {
		t.Helper()
		e.Request.Command, e.Request.MaxGrowth, e.Request.MaxSpread = []string{"python", "train.py"}, DefaultMaxGrowth, DefaultMaxSpread
		if e.Request.Runs == 0 {
			e.Request.Runs = len(e.Runs)
		}
		v := JudgeVerification(e)
		if v.Verdict != verdict || !strings.Contains(v.Says, says) {
			t.Errorf("%s: %s %q, want %s %q", name, v.Verdict, v.Says, verdict, says)
		}
		for _, s := range states {
			check, want, _ := strings.Cut(s, "=")
			if got := stateOf(v, check); got != want {
				t.Errorf("%s: %s is %q, want %q", name, check, got, want)
			}
		}
		if verdict == incident.Inconclusive && len(v.Missing) == 0 && v.Passed == v.Runs {
			t.Errorf("%s: inconclusive, and nothing is said to be missing", name)
		}
	}
	two := observed(good, good)
	f("all well", VerifyEvidence{Runs: two, Original: oom}, incident.Verified, "2 of 2 runs passed, past the point", "past=yes", "slope=yes", "peak=yes", "finite=yes")
	f("no incident", VerifyEvidence{Runs: two}, incident.Verified, "2 of 2", "past=")
	f("one success", VerifyEvidence{Runs: two[:1], Original: oom}, incident.Inconclusive, "One success proves little")
	f("one of a certain failure", VerifyEvidence{Runs: two[:1], Original: &sure}, incident.Inconclusive, "peak", "enough_runs=yes")
	f("now and then before", VerifyEvidence{Runs: two, Original: &flaky}, incident.Inconclusive, "by chance", "enough_runs=unknown")
	f("fails as before", VerifyEvidence{Runs: observed(play{status: 1, class: "host_memory", steps: 50}, play{status: 1, class: "host_memory", steps: 50}), Original: oom}, incident.NotVerified, "in the same way as before", "ended=no")
	f("now and then", VerifyEvidence{Runs: observed(good, play{status: 1, steps: 20}), Original: oom}, incident.NotVerified, "1 of 2 runs passed and 1 failed")
	f("a leak", VerifyEvidence{Runs: observed(play{steps: 100, leak: 8 << 20}, play{steps: 100, leak: 8 << 20}), Original: oom}, incident.NotVerified, "8.00 MiB ± 0 bytes for each step; at this rate it would not fit from step 384 on", "ended=yes", "slope=no")
	f("a leak in one of three", VerifyEvidence{Runs: observed(play{steps: 100, leak: 8 << 20}, good, good), Original: oom}, incident.Inconclusive, "grows", "slope=unknown")
	f("not far enough", VerifyEvidence{Runs: observed(play{steps: 40}, play{steps: 40}), Original: oom}, incident.Inconclusive, "steps may count otherwise", "past=unknown")
	f("no steps, the whole command", VerifyEvidence{Runs: two, Original: silent}, incident.Verified, "", "past=yes")
	f("not finite", VerifyEvidence{Runs: observed(play{steps: 100, nan: 60}, play{steps: 100, nan: 60}), Original: oom}, incident.NotVerified, "first at step 60", "finite=no")
	f("survived", VerifyEvidence{Runs: observed(play{steps: 100, survive: "Device memory ran out and was caught."}, good), Original: oom}, incident.NotVerified, "device memory ran out and was caught", "clean=no")
	f("peaks apart", VerifyEvidence{Runs: observed(play{steps: 100, peak: 1 << 30}, play{steps: 100, peak: 3 << 30}), Original: oom}, incident.NotVerified, "more apart than", "peak=no")
	f("peaks apart, far from the limit", VerifyEvidence{Runs: observed(play{steps: 100, peak: 1 << 30}, play{steps: 100, peak: 5 << 28}), Original: oom}, incident.Verified, "", "peak=yes")
	f("out of time", VerifyEvidence{Runs: observed(good, play{steps: 100, stopped: incident.StoppedTime}), Original: oom}, incident.Inconclusive, "1 of 2 runs ended by themselves", "ended=unknown")
	f("nothing logged, memory failed", VerifyEvidence{Runs: observed(play{}, play{}), Original: silent}, incident.Inconclusive, "No kind of memory", "slope=unknown", "finite=unknown")
	ref := observed(play{steps: 100})[0]
	f("as the reference", VerifyEvidence{Runs: two, Reference: &ref}, incident.Verified, "", "reference=yes")
	f("not as the reference", VerifyEvidence{Runs: observed(play{steps: 100, scale: 1.2}, good), Reference: &ref}, incident.NotVerified, "from the reference", "reference=no")
	f("stopped", VerifyEvidence{Runs: two, Request: incident.VerificationRequest{Runs: 5}, Stopped: "time budget", Original: oom}, incident.Inconclusive, "time budget", "enough_runs=unknown")
	f("a recheck that fails in another way", VerifyEvidence{Runs: observed(play{status: 1, steps: 3}, play{status: 1, steps: 3}), Original: oom, Recheck: true}, incident.Inconclusive, "in another way")
	f("a recheck that fails as before", VerifyEvidence{Runs: observed(play{status: 1, class: "host_memory", steps: 50}), Original: oom, Recheck: true}, incident.NotVerified, "in the same way")
	f("nothing was run", VerifyEvidence{Original: oom, Request: incident.VerificationRequest{Runs: 3}}, incident.Inconclusive, "")
}

// options are those of a verification whose scratch folders lie in a folder of the test.
func verifyOptions(t *testing.T, req incident.VerificationRequest) VerifyOptions {
	req.MaxGrowth, req.MaxSpread, req.Dir = DefaultMaxGrowth, DefaultMaxSpread, t.TempDir()
	return VerifyOptions{Request: req, By: incident.ByVerify, Series: "v1", Scratch: &Scratch{Root: filepath.Join(t.TempDir(), "v1")}, Guard: &Guard{Dir: req.Dir}, Now: func() time.Time { return time.Time{} }}
}

func TestVerify(t *testing.T) {
	var jobs []Job
	run := func(_ context.Context, j Job) (*Done, error) {
		jobs = append(jobs, j)
		if j.Out != "" && j.Command[0] == "python" {
			if err := os.WriteFile(filepath.Join(j.Out, "w.safetensors"), tensors("w", 1, 2), 0o666); err != nil {
				t.Fatal(err)
			}
		}
		d := play{steps: 100}.done(fmt.Sprintf("t%d", len(jobs)))
		d.Trial.Begun = time.Now().UTC().Format(time.RFC3339Nano)
		return &d, nil
	}
	o := verifyOptions(t, incident.VerificationRequest{Command: []string{"python", "train.py", "--output_dir", "{OUT}"}, Runs: 2, Checkpoint: "{OUT}/w.safetensors", Evaluate: []string{"load", "{CHECKPOINT}"}, Nearby: [][]string{{"beside"}}})
	got, err := Verify(context.Background(), o, run)
	if err != nil {
		t.Fatal(err)
	}
	v := got.Verification
	if v.Verdict != incident.Verified || len(v.Checkpoints) != 2 || len(jobs) != 5 || len(got.Trials) != 5 {
		t.Errorf("%s %q; %d checkpoints, %d jobs", v.Verdict, v.Says, len(v.Checkpoints), len(jobs))
	}
	if jobs[0].Out == jobs[2].Out || !strings.HasPrefix(jobs[1].Command[1], jobs[0].Out) {
		t.Errorf("folders %q and %q, evaluated %q", jobs[0].Out, jobs[2].Out, jobs[1].Command)
	}
	if _, err := os.Stat(jobs[0].Out); err == nil {
		t.Error("a scratch folder was left")
	}
}

func TestVerifyRefuses(t *testing.T) {
	o := verifyOptions(t, incident.VerificationRequest{Command: []string{"python", "train.py", "--output_dir", "kept"}, Runs: 2})
	put(t, filepath.Join(o.Request.Dir, "kept", "checkpoint-1", "model.safetensors"), tensors("w", 1))
	run := func(context.Context, Job) (*Done, error) {
		t.Error("a refused command was run")
		return nil, errors.New("run")
	}
	if _, err := Verify(context.Background(), o, run); !errors.Is(err, ErrOverwrite) {
		t.Errorf("%v, want ErrOverwrite", err)
	}
}

func TestVerifyInterrupted(t *testing.T) {
	ctx, stop := context.WithCancel(context.Background())
	n := 0
	run := func(context.Context, Job) (*Done, error) {
		n++
		stop()
		d := play{steps: 100}.done("t1")
		return &d, nil
	}
	got, err := Verify(ctx, verifyOptions(t, incident.VerificationRequest{Command: []string{"python"}, Runs: 5}), run)
	if err != nil || n != 1 || got.Stopped != incident.StoppedInterrupt || got.Verification.Verdict != incident.Inconclusive {
		t.Errorf("%v, %d runs, %+v", err, n, got)
	}
}

func TestObserveLog(t *testing.T) {
	log := filepath.Join(t.TempDir(), "output.log")
	text := "loading\nstep 1 loss 2.0\nstep 2 loss 1.5\r\nepoch 2\n{\"step\": 1, \"acc\": 0.5}\nGlobal step=2 acc=0.75\n 7/10 [00:01<00:02, 3it/s]\nacc: nan\nacc=.9"
	put(t, log, []byte(text))
	d := Done{Trial: incident.Trial{Log: log, Samples: []incident.Sample{{Seconds: 1, Log: 8}, {Seconds: 2, Log: 25}, {Seconds: 3, Log: 42}, {Seconds: 4, Log: 90}, {Seconds: 5, Log: int64(len(text))}}}}
	o := Observe(d, []string{"acc", "none"})
	if o.LastStep == nil || *o.LastStep != 7 {
		t.Errorf("last step %v", o.LastStep)
	}
	if got := fmt.Sprint(o.Values["acc"]); got != "[0.5 0.75 NaN 0.9]" {
		t.Errorf("acc %s", got)
	}
	if got := fmt.Sprint(o.Steps); got != "[{2 1} {3 2} {4 3} {5 9}]" {
		t.Errorf("steps %s", got)
	}
	if s, ok := stepOf(o.Steps, 2.5); !ok || s != 1.5 {
		t.Errorf("between: %g %v", s, ok)
	}
}

func TestSplitCommand(t *testing.T) {
	for _, c := range []struct{ line, want string }{
		{`python eval.py --model x`, `["python" "eval.py" "--model" "x"]`},
		{`  a 'b c' "d e" f\ g "" `, `["a" "b c" "d e" "f g" ""]`},
		{`a "x\"y" 'it''s'`, `["a" "x\"y" "its"]`},
		{`a | b`, ""}, {`a $HOME`, ""}, {`a 'open`, ""}, {``, ""}, {`a > f`, ""}, {`sh -c 'a | b'`, `["sh" "-c" "a | b"]`},
	} {
		got, err := SplitCommand(c.line)
		if s := fmt.Sprintf("%q", got); (err == nil) != (c.want != "") || err == nil && s != c.want {
			t.Errorf("%q: %s %v, want %s", c.line, s, err, c.want)
		}
	}
}
