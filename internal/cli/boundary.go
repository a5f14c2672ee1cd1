package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/inquest-dev/inquest/internal/early"
	"github.com/inquest-dev/inquest/internal/evidence"
	"github.com/inquest-dev/inquest/internal/incident"
	"github.com/inquest-dev/inquest/internal/report"
	"github.com/inquest-dev/inquest/internal/trial"
)

const boundaryLong = `boundary finds where a command begins to run out of memory. --vary names a word of the
command that stands there as {NAME}, and its values; every trial is a fresh process with one
of them, recorded and diagnosed as inquest run does. The answer is the largest value that
passed, and the smallest that failed, each as often as --repeats says, with the margin in
bytes and the peak memory of every trial.

  --vary BATCH=1..64          each whole number
  --vary SEQ=512..8192:512    in steps
  --vary BATCH=1..1024:pow2   powers of two

The search halves the range, or goes at once where the measured peaks say that the limit is;
it makes at most log2(values+1) trials, rounded up, before it repeats. It assumes that more
needs more memory, and says where that does not hold. A failure that is not of memory stops
it, unless --any-failure counts it; a trial that ran into --timeout decides nothing. All
ranks must agree: a value passes when all of them do.

With two names, the answer is the largest of the first for each value of the second.
--keep-product MICRO*ACCUM=64 derives the second from the first instead, so that the
effective batch stays; values that do not divide are left out. --also SEQ=4096,512 tries
each value with all of these, the largest first; it passes only where all do.

--find smallest-failing makes each name as small as the failure stays the same: ranks,
GPUs, steps. {NAME:list} stands for 0,1,...,NAME-1, as CUDA_VISIBLE_DEVICES has it.

Trials destroy no work. {OUT} in the command is a folder of the trial's own. A command that
names an output that is there already, or a folder with checkpoints in it, is refused: put
{OUT} in its place, allow it with --allow-writes, or say with --reads that it is only read.
What a script or a configuration file names cannot be seen. Trackers record into {OUT} and
upload nothing; hubs of models are not asked, unless --online. --disk bounds what trials
write, and folders of trials that passed are removed, unless --keep.

--clean starts every trial from the same state: from a fresh copy of the checkpoint of
--checkpoint (or of the one that the incident names), which stands for {CHECKPOINT} and
wherever the command names the original, and with the seed of --seed (or of the command's
--seed), which stands for {SEED} and in PYTHONHASHSEED and PL_GLOBAL_SEED.

An interrupted search is continued with --resume: trials that were made are not made again.

Status: 0 found, also where all values pass or none does; 1 no trial could be made, or one
was refused; 2 wrong usage; 4 not decided: another failure, values that pass at one time and
fail at another, the end of a budget; 130 interrupted, with what was found until then.`

const boundaryExample = `  inquest boundary --vary BATCH=1..64 -- python train.py --batch-size {BATCH} --max_steps 20
  inquest boundary --vary MICRO=1..64 --keep-product 'MICRO*ACCUM=64' -- torchrun --nproc_per_node 8 train.py --micro {MICRO} --accum {ACCUM} --output_dir {OUT}
  inquest boundary --vary BATCH=1..256:pow2 --also SEQ=512,8192 -- python train.py --batch {BATCH} --seq {SEQ}
  inquest boundary --find smallest-failing --vary GPUS=1..8 --vary STEPS=1..1000 --set 'CUDA_VISIBLE_DEVICES={GPUS:list}' -- torchrun --nproc_per_node {GPUS} train.py --max_steps {STEPS}`

// boundaryFlags are the values of the flags of inquest boundary.
type boundaryFlags struct {
	output
	seriesFlags
	storeFlag
	vary, also       []string
	product, find    string
	repeats, trials  int
	time             time.Duration
	anyFailure       bool
	resume, incident string
}

func boundaryCommand(a *app) *cobra.Command {
	var b boundaryFlags
	cmd := &cobra.Command{
		Use:     "boundary --vary NAME=LO..HI [flags] -- CMD...",
		Short:   "Find the largest value with which a command passes, and the smallest with which it fails",
		Long:    boundaryLong,
		Example: boundaryExample,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return fmt.Errorf("%w: name the command to try, behind --", errUsage)
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error { return a.boundary(cmd.Context(), args, &b) },
	}
	f := cmd.Flags()
	f.SetInterspersed(false)
	b.fileFlag(cmd)
	b.reportFlags(cmd, "", report.TrialsFormats(), "")
	b.storeFlag.flag(cmd)
	b.seriesFlags.flags(cmd)
	f.StringArrayVar(&b.vary, "vary", nil, "NAME=LO..HI, NAME=LO..HI:STEP or NAME=LO..HI:pow2; may be given more than once")
	f.StringArrayVar(&b.also, "also", nil, "NAME=V1,V2: each value is tried with all of these, the largest first")
	f.StringVar(&b.product, "keep-product", "", "NAME*OTHER=N: OTHER is what keeps the product")
	f.StringVar(&b.find, "find", incident.LargestPassing, "what to look for: largest-passing or smallest-failing")
	f.IntVar(&b.repeats, "repeats", 3, "how often the values of the answer must do the same")
	f.BoolVar(&b.anyFailure, "any-failure", false, "count every failure, not only those of memory")
	f.StringVar(&b.incident, "incident", "", "the kept incident that the search is for: its id, or last")
	f.StringVar(&b.resume, "resume", "", "go on with the newest search of the same command, or with the one of this id (--resume=ID)")
	f.Lookup("resume").NoOptDefVal = newestSeries
	f.IntVar(&b.trials, "trials", 0, "make at most so many trials; 0 is no bound")
	f.DurationVar(&b.time, "time", 0, "end after this time; 0 is no bound")
	return cmd
}

// newestSeries is the value of --resume without one.
const newestSeries = "newest"

// plan checks the flags and says what is to be searched.
func (b *boundaryFlags) plan(args []string) (trial.Plan, error) {
	p := trial.Plan{Template: args, Set: b.set, Find: b.find, Repeats: b.repeats, AnyFailure: b.anyFailure, Budget: trial.Budget{Trials: b.trials, Time: b.time, Timeout: b.timeout}, Now: time.Now}
	usage := func(err error) error { return fmt.Errorf("%w: %w", errUsage, err) }
	if err := errors.Join(b.checkWidth(), b.checkReport(report.TrialsFormats()), oneOf("find", b.find, incident.LargestPassing, incident.SmallestFailing)); err != nil {
		return p, err
	}
	if b.repeats < 1 || b.repeats > 100 {
		return p, fmt.Errorf("%w: --repeats %d; 1 to 100", errUsage, b.repeats)
	}
	if b.trials < 0 || b.time < 0 {
		return p, fmt.Errorf("%w: a budget is below 0", errUsage)
	}
	for _, v := range b.vary {
		x, err := trial.ParseVary(v)
		if err != nil {
			return p, usage(fmt.Errorf("--vary: %w", err))
		}
		p.Vary = append(p.Vary, x)
	}
	for _, v := range b.also {
		x, err := trial.ParseAlso(v)
		if err != nil {
			return p, usage(fmt.Errorf("--also: %w", err))
		}
		p.Also = append(p.Also, x)
	}
	if b.product != "" {
		k, err := trial.ParseKeep(b.product)
		if err != nil {
			return p, usage(fmt.Errorf("--keep-product: %w", err))
		}
		p.Keep = k
	}
	if len(p.Vary) == 0 {
		return p, fmt.Errorf("%w: nothing varies: --vary NAME=LO..HI, and {NAME} in the command", errUsage)
	}
	if err := p.Check(); err != nil {
		return p, usage(err)
	}
	return p, b.seriesFlags.check(args)
}

// boundary runs the command.
func (a *app) boundary(ctx context.Context, args []string, b *boundaryFlags) error {
	p, err := b.plan(args)
	if err != nil {
		return err
	}
	s, err := b.open()
	if err != nil {
		return err
	}
	now := time.Now()
	p.Series = "s" + strings.TrimPrefix(early.NewID(now), "t")
	if b.incident != "" {
		k, err := s.Find(ctx, b.incident)
		if err != nil {
			return fmt.Errorf("%w; inquest incident list shows them", err)
		}
		p.Incident, p.Original = k.ID, k.Diagnosis
	}
	var known []incident.Trial
	if b.resume != "" {
		if p.Series, known, err = madeBefore(ctx, s, b.resume, args); err != nil {
			return err
		}
		fmt.Fprintf(a.err, "inquest: going on with %s; %d trials were made before\n", p.Series, len(known))
	}
	series, err := b.series(s, p.Series, args, p.Original)
	if err != nil {
		return err
	}
	defer series.scratch.Close()
	run := a.trials(s)
	n := 0
	made := func(ctx context.Context, values map[string]string, limit time.Duration) (*trial.Made, error) {
		n++
		j := trial.Job{By: incident.ByBoundary, Series: p.Series, Incident: p.Incident, Template: args, Values: values, Timeout: limit}
		return series.make(ctx, run, j, args, fmt.Sprintf("%03d", len(known)+n))
	}
	got, err := trial.Search(ctx, p, made, known, func(pt incident.BoundaryPoint) { a.toldPoint(&pt) })
	got.Tool = incident.Tool{Name: "inquest", Version: version()}
	got.Limits = append(got.Limits, series.limits()...)
	if len(got.Trials) == 0 && err != nil {
		return err
	}
	if kept := keepSearch(ctx, s, got); kept != nil {
		got.Limits = append(got.Limits, "The result could not be stored: "+kept.Error()+".")
	}
	if werr := a.write(b.output, func(w io.Writer, ro report.Options) error { return report.WriteTrials(w, b.format, got, ro) }); werr != nil {
		return werr
	}
	switch {
	case err != nil:
		return err
	case got.Boundary.Answer == incident.Found, got.Boundary.Answer == incident.AllPass, got.Boundary.Answer == incident.NonePasses:
		return nil
	}
	return errInconclusive
}

// toldPoint says on standard error what came of a trial.
func (a *app) toldPoint(p *incident.BoundaryPoint) {
	var b strings.Builder
	b.WriteString("inquest: ")
	for i, n := range sortedNames(p.Values) {
		if i > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(n + "=" + p.Values[n])
	}
	fmt.Fprintf(&b, ": %s", strings.ReplaceAll(p.Result, "_", " "))
	if p.Peak != nil {
		fmt.Fprintf(&b, ", peak %s", evidence.Bytes(*p.Peak))
		if p.Limit != nil {
			fmt.Fprintf(&b, " of %s", evidence.Bytes(*p.Limit))
		}
	}
	if p.Seconds != nil {
		fmt.Fprintf(&b, ", %s s", strconv.FormatFloat(*p.Seconds, 'f', 1, 64))
	}
	if p.Repeat {
		b.WriteString(", repeated")
	}
	if p.Reused {
		b.WriteString(", made before")
	}
	fmt.Fprintln(a.err, printable(b.String()))
}
