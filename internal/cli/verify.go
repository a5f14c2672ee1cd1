package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/inquest-dev/inquest/internal/early"
	"github.com/inquest-dev/inquest/internal/incident"
	"github.com/inquest-dev/inquest/internal/ledger"
	"github.com/inquest-dev/inquest/internal/record"
	"github.com/inquest-dev/inquest/internal/report"
	"github.com/inquest-dev/inquest/internal/store"
	"github.com/inquest-dev/inquest/internal/trial"
)

const verifyLong = `verify repeats the original scenario, each time in a fresh process that is recorded and
diagnosed as inquest run does, and judges what came of it: that every run ended by itself
with status 0 and without a fault that was survived in silence; that it came past the
point at which it failed before; that the peak of memory is the same in every run and
that memory does not grow over the steps; that loss and gradient norm are finite, and as
the reference's where one is named. What is not known is said, with how to get it.

Memory over the steps needs a log that says at which step the run is (step 120 loss 2.31).
One success proves little: at least two are asked for, unless the failure is on record as
certain.

--incident names the kept incident that is to be solved; the verdict is kept with it, and
only a verification that succeeded makes it confirmed. Behind -- stands the original command
with the one change that is to be tried. In its place, --apply runs the command of the
diagnosis's remedy, and --original the command that failed, unchanged.

--checkpoint PATH is looked at without executing anything in it: safetensors, the archives of
torch.save, folders of shards, of DeepSpeed and of torch.distributed.checkpoint. All of it
must be there and every number finite. --evaluate CMD then runs on it; {CHECKPOINT} stands
for it there. Without a command only the checkpoint is verified, before it is promoted.

Trials destroy no work. {OUT} in a command is a folder of the trial's own; a command that
names an output that is there already, or a folder with checkpoints in it, is refused, unless
--allow-writes or --reads names it. Trackers upload nothing; hubs are not asked, unless --online.

Status: 0 verified; 1 nothing could be run, or a command was refused; 2 wrong usage;
3 not verified; 4 inconclusive; 130 interrupted, with what was run until then.`

const verifyExample = `  inquest verify --incident last -- python train.py --batch-size 16
  inquest verify --incident 3f9a --runs 5 --apply
  inquest verify --metric 'eval_accuracy>=0.9' --reference t20260801-101500-0a1b2c3d4e --tolerance 0.02 -- python train.py
  inquest verify --checkpoint '{OUT}/final' --evaluate 'python eval.py --model {CHECKPOINT}' -- python train.py --output_dir {OUT}
  inquest verify --checkpoint outputs/checkpoint-2000`

// keepRuns is the help of --keep where the folders of runs go when they have been judged.
const keepRuns = "keep the folders of the runs"

// verifyFlags are the values of the flags of inquest verify.
type verifyFlags struct {
	output
	storeFlag
	scratchFlags
	req                 incident.VerificationRequest
	incident            string
	timeout, budget     time.Duration
	evaluate            string
	nearby              []string
	failFast            bool
	original, apply     bool
	tolerance, slowdown float64
}

func verifyCommand(a *app) *cobra.Command {
	var v verifyFlags
	cmd := &cobra.Command{
		Use:     "verify [flags] [-- CMD...]",
		Short:   "Repeat the original scenario and say whether it succeeds now, or whether a checkpoint can be used",
		Long:    verifyLong,
		Example: verifyExample,
		RunE:    func(cmd *cobra.Command, args []string) error { return a.verify(cmd.Context(), args, &v) },
	}
	f := cmd.Flags()
	f.SetInterspersed(false)
	v.fileFlag(cmd)
	v.reportFlags(cmd, "", report.VerificationFormats(), "")
	v.storeFlag.flag(cmd)
	f.StringVar(&v.incident, "incident", "", "the kept incident that is to be solved; last is the newest")
	f.BoolVar(&v.apply, "apply", false, "run the command of the incident's remedy")
	f.BoolVar(&v.original, "original", false, "run the command that failed, unchanged")
	f.IntVar(&v.req.Runs, "runs", trial.DefaultRuns, "how often the scenario is run")
	f.BoolVar(&v.failFast, "fail-fast", false, "make no more runs when one has failed")
	f.DurationVar(&v.timeout, "timeout", 0, "end a run after this time; it proves nothing then; 0 is no bound")
	f.DurationVar(&v.budget, "time", 0, "end after this time; 0 is no bound")
	f.StringArrayVar(&v.req.Metrics, "metric", nil, "NAME, NAME<=VALUE or NAME>=VALUE: a metric that the log prints must be finite, and its last value so; may be given more than once")
	f.StringVar(&v.req.Reference, "reference", "", "a trial that worked, by its id: losses must be as its, step by step")
	f.Float64Var(&v.tolerance, "tolerance", 0, "how far from the reference, as a share (default 0.05); without --reference, from the run that failed, up to its failure")
	f.StringVar(&v.req.Checkpoint, "checkpoint", "", "file or folder that must be a whole and finite checkpoint; {OUT} stands for the run's own folder")
	f.StringVar(&v.evaluate, "evaluate", "", "command that must succeed on the checkpoint; {CHECKPOINT} stands for it")
	f.StringArrayVar(&v.nearby, "nearby", nil, "another command that must succeed as well; may be given more than once")
	f.Float64Var(&v.slowdown, "max-slowdown", 0, "refuse where a step takes more than so many times as long as before; 0 refuses none")
	f.Float64Var(&v.req.MaxGrowth, "max-growth", trial.DefaultMaxGrowth, "refuse where memory grows steadily by more than this share over a run")
	f.Float64Var(&v.req.MaxSpread, "max-spread", trial.DefaultMaxSpread, "how far apart the peaks of the runs may be, as a share")
	f.StringArrayVar(&v.req.AllowWrites, "allow-writes", nil, "what is in this folder or file may be written over; may be given more than once")
	v.scratchFlags.flags(cmd, keepRuns)
	f.BoolVar(&v.req.Online, "online", false, "let the command ask hubs for models and data")
	return cmd
}

// check checks the flags and puts them into the request.
func (v *verifyFlags) check(args []string) error {
	if err := errors.Join(v.checkWidth(), v.checkReport(report.VerificationFormats())); err != nil {
		return err
	}
	r := &v.req
	switch {
	case r.Runs < 1 || r.Runs > 100:
		return fmt.Errorf("%w: --runs %d; 1 to 100", errUsage, r.Runs)
	case v.timeout < 0 || v.budget < 0:
		return fmt.Errorf("%w: --timeout and --time are lengths of time, as 10m", errUsage)
	case v.tolerance < 0 || v.slowdown < 0 || r.MaxGrowth <= 0 || r.MaxSpread <= 0:
		return fmt.Errorf("%w: --tolerance, --max-slowdown, --max-growth and --max-spread are not below 0", errUsage)
	case v.apply && v.original:
		return fmt.Errorf("%w: --apply and --original are two commands; give one", errUsage)
	case (v.apply || v.original) && v.incident == "":
		return fmt.Errorf("%w: --apply and --original need --incident, which knows the command", errUsage)
	case (v.apply || v.original) && len(args) > 0:
		return fmt.Errorf("%w: --apply and --original take the place of a command; one stands behind --", errUsage)
	case len(args) == 0 && v.incident == "" && r.Checkpoint == "":
		return fmt.Errorf("%w: name the command to verify, behind --, or a checkpoint with --checkpoint", errUsage)
	case v.evaluate != "" && r.Checkpoint == "":
		return fmt.Errorf("%w: --evaluate runs on the checkpoint that --checkpoint names", errUsage)
	}
	for _, m := range r.Metrics {
		if _, err := trial.ParseMetric(m); err != nil {
			return fmt.Errorf("%w: --metric %w", errUsage, err)
		}
	}
	var err error
	if v.evaluate != "" {
		if r.Evaluate, err = trial.SplitCommand(v.evaluate); err != nil {
			return fmt.Errorf("%w: --evaluate: %w", errUsage, err)
		}
	}
	for _, n := range v.nearby {
		c, err := trial.SplitCommand(n)
		if err != nil {
			return fmt.Errorf("%w: --nearby: %w", errUsage, err)
		}
		r.Nearby = append(r.Nearby, c)
	}
	r.Timeout, r.Budget, r.Tolerance, r.MaxSlowdown = v.timeout.Seconds(), v.budget.Seconds(), v.tolerance, v.slowdown
	r.Command = args
	return nil
}

// verify runs the command.
func (a *app) verify(ctx context.Context, args []string, v *verifyFlags) error {
	if err := v.check(args); err != nil {
		return err
	}
	s, err := v.open()
	if err != nil {
		return err
	}
	var kept *incident.Kept
	if v.incident != "" {
		if kept, err = s.Find(ctx, v.incident); err != nil {
			return err
		}
		if err := a.chosenCommand(v, kept); err != nil {
			return err
		}
	}
	if v.req.Dir == "" {
		if v.req.Dir, err = os.Getwd(); err != nil {
			return err
		}
	}
	t, err := a.verified(ctx, s, kept, verifying{by: incident.ByVerify, request: v.req, scratch: v.scratchFlags, failFast: v.failFast})
	if err != nil {
		return err
	}
	if err := a.write(v.output, func(w io.Writer, o report.Options) error { return report.WriteVerification(w, v.format, t, o) }); err != nil {
		return err
	}
	return verdictError(ctx, t)
}

// verdictError is the outcome of a verification.
func verdictError(ctx context.Context, t *incident.Trials) error {
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case t.Verification.Verdict == incident.NotVerified:
		return errNotVerified
	case t.Verification.Verdict == incident.Inconclusive:
		return errInconclusive
	}
	return nil
}

// chosenCommand puts the command of an incident into the request where none stands behind --.
func (a *app) chosenCommand(v *verifyFlags, k *incident.Kept) error {
	if len(v.req.Command) > 0 {
		return nil
	}
	failed := failedTrial(k)
	if failed == nil {
		return fmt.Errorf("%w: incident %s has no failed trial on record; name the command behind --", errUsage, k.ID)
	}
	var remedy []string
	if k.Diagnosis != nil && k.Diagnosis.Remedy != nil && k.Diagnosis.Remedy.Scope != "measure" {
		if c, err := trial.SplitCommand(k.Diagnosis.Remedy.Command); err == nil && trial.CompleteCommand(k.Diagnosis.Remedy.Command) {
			if remedy = c; strings.Contains(c[0], "=") { // variables before the command
				remedy = append([]string{"env"}, c...)
			}
		}
	}
	shown := func(c []string) string { return printable(strings.Join(c, " ")) }
	switch {
	case v.original:
		v.req.Command = failed.Command
	case v.apply && remedy == nil:
		return fmt.Errorf("%w: the remedy of incident %s has no command that is complete; make its change and name the command behind --", errUsage, k.ID)
	case v.apply:
		v.req.Command = remedy
	case v.req.Checkpoint != "":
		return nil
	default:
		way := "--original runs what failed: " + shown(failed.Command)
		if remedy != nil {
			way = "--apply runs the remedy: " + shown(remedy) + "; " + way
		}
		return fmt.Errorf("%w: name the command to verify, behind --; %s", errUsage, way)
	}
	if record.HasMasked(v.req.Command) {
		return fmt.Errorf("%w: the command had a secret, which is not kept; name the command behind --", errUsage)
	}
	v.req.Dir = failed.Dir
	if !v.original {
		fmt.Fprintf(a.err, "inquest: running %s\n", shown(v.req.Command))
	}
	return nil
}

// failedTrial is the first trial of an incident that failed, nil where none is on record.
func failedTrial(k *incident.Kept) *incident.Trial {
	for i := range k.Trials {
		if t := &k.Trials[i]; ledger.HasFailed(t) && len(t.Command) > 0 {
			return t
		}
	}
	return nil
}

// A verifying is a verification to be made.
type verifying struct {
	by       string
	request  incident.VerificationRequest
	scratch  scratchFlags
	failFast bool
	// since is the trial with which the runs are compared; null is the failure's.
	since *incident.Trial
}

// sampling is the time between two samples of memory. Runs are short where they are repeated.
const sampling = 40 * time.Millisecond

// verified makes a verification, and keeps its verdict with the incident, which may be null.
func (a *app) verified(ctx context.Context, s *store.Store, k *incident.Kept, x verifying) (*incident.Trials, error) {
	now := time.Now()
	series := "v" + early.NewID(now)[1:]
	scratch, err := x.scratch.scratch(s, series, x.request.Online)
	if err != nil {
		return nil, err
	}
	o := trial.VerifyOptions{
		Request: x.request, Tool: incident.Tool{Name: "inquest", Version: version()}, By: x.by, Series: series,
		Scratch: scratch,
		Guard:   &trial.Guard{Dir: x.request.Dir, Writes: x.request.AllowWrites, Reads: x.scratch.reads},
		Every:   sampling, FailFast: x.failFast, Now: time.Now,
		Notice: func(text string) { fmt.Fprintf(a.err, "inquest: %s\n", printable(text)) },
	}
	defer o.Scratch.Close()
	if k != nil {
		o.Incident = k.ID
		o.Original = originalOf(s, k, x.request.Metrics)
	}
	switch {
	case x.request.Reference != "":
		r, err := s.Trial(x.request.Reference)
		if err != nil {
			return nil, fmt.Errorf("--reference: %w", err)
		}
		ref := trial.Observe(trial.Done{Trial: r.Trial, Diagnosis: r.Diagnosis}, nil)
		o.Reference = &ref
	case x.request.Tolerance > 0 && o.Original != nil:
		o.Reference = &o.Original.Observed
	case x.request.Tolerance > 0:
		return nil, fmt.Errorf("%w: --tolerance is from what --reference names, or from the run that failed (--incident)", errUsage)
	}
	t, err := trial.Verify(ctx, o, a.trials(s))
	if err != nil {
		return nil, err
	}
	runs := scenarioRuns(t)
	if x.since == nil && o.Original != nil {
		x.since = &o.Original.Trial
	}
	t.Verification.Original = changedSince(x.since, t, runs)
	maskRequest(t)
	if k != nil && len(runs) > 0 {
		act := incident.Act{Incident: k.ID, At: time.Now().UTC().Format(time.RFC3339Nano), Kind: incident.ActVerified, Text: t.Verification.Says, Trials: runs, Result: t}
		if _, err := s.Act(act); err != nil {
			t.Limits = append(t.Limits, "The verdict could not be kept with the incident: "+err.Error())
		}
	}
	return t, nil
}

// scenarioRuns are the ids of the trials that ran the scenario itself.
func scenarioRuns(t *incident.Trials) []string {
	out := []string{}
	for i := range t.Trials {
		if x := &t.Trials[i]; slices.Equal(x.Template, record.MaskCommand(t.Template)) {
			out = append(out, x.ID)
		}
	}
	return out
}

// maskRequest takes the secrets out of what is kept of a request.
func maskRequest(t *incident.Trials) {
	r := &t.Verification.Request
	t.Template, r.Command, r.Evaluate = record.MaskCommand(t.Template), record.MaskCommand(r.Command), record.MaskCommand(r.Evaluate)
	nearby := make([][]string, len(r.Nearby))
	for i, n := range r.Nearby {
		nearby[i] = record.MaskCommand(n)
	}
	r.Nearby = nearby
	for _, l := range []*[]string{&r.Metrics, &r.AllowWrites} {
		if *l == nil {
			*l = []string{}
		}
	}
}

// originalOf is the failure that an incident is about, nil where no failed trial is on record.
func originalOf(s *store.Store, k *incident.Kept, metrics []string) *trial.Original {
	f := failedTrial(k)
	if f == nil {
		return nil
	}
	o := &trial.Original{Fingerprint: k.Fingerprint}
	d := trial.Done{Trial: *f, Diagnosis: k.Diagnosis}
	if r, err := s.Trial(f.ID); err == nil {
		d.Trial = r.Trial
		if r.Diagnosis != nil {
			d.Diagnosis = r.Diagnosis
		}
	}
	o.Observed = trial.Observe(d, metrics)
	for i := range k.Trials {
		t := &k.Trials[i]
		if !slices.Equal(t.Command, f.Command) || t.Exit == nil {
			continue
		}
		switch {
		case ledger.HasFailed(t):
			o.Failed, o.Made = o.Failed+1, o.Made+1
		case t.Verdict != nil && t.Verdict.Result == incident.Passed:
			o.Made++
		}
	}
	return o
}
