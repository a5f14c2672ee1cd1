package cli

import (
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/inquest-dev/inquest/internal/engine"
	"github.com/inquest-dev/inquest/internal/evidence"
	"github.com/inquest-dev/inquest/internal/reader"
	"github.com/inquest-dev/inquest/internal/reader/mlflow"
	"github.com/inquest-dev/inquest/internal/report"
	"github.com/inquest-dev/inquest/internal/tracker"
)

var errNoTracked = errors.New("no run of an experiment tracker in what was named")

// Points of each series' plot.
const (
	textPoints = 2048
	pagePoints = 8192
	jsonPoints = 512 // 8192 with --full
)

const trackerLong = `tracker reads what experiment trackers left on disk: TensorBoard event files, W&B
run folders, MLflow stores, Hugging Face's trainer_state.json, tables and lines of
metrics, and others. It reads them only: what it writes is a report, or a copy.`

const showLong = `show says what was recorded of each run: its series with their steps, where each
ceased to be finite (between which two logged steps), where writing began again
after a resume, what is damaged, how the run ended as far as its files prove it,
and what the format cannot show. Two trackers of one run that do not hold the
same are named.

A run that has no end on record is taken for dead only where its newest point is
older than --stale; the report names the rule.

--format csv writes every point, as the files have them.

RUN may be the address of an MLflow server, or of an experiment or run on its pages.
Nothing but that server is asked, and only for what it has; MLFLOW_TRACKING_USERNAME,
MLFLOW_TRACKING_PASSWORD and MLFLOW_TRACKING_TOKEN let in as they do for MLflow.

Status: 0 a run was read; 1 none could be; 2 wrong usage; 130 interrupted.`

const showExample = `  inquest tracker show runs/
  inquest tracker show wandb/run-20260801_101500-3k2j9x1p
  inquest tracker show --series '*loss*' mlruns/ mlflow.db
  inquest tracker show --format html -o curves.html runs/ output/trainer_state.json
  inquest tracker show http://mlflow.cluster:5000/#/experiments/3
  inquest tracker show --format csv --run 3k2j9x1p wandb/ > points.csv`

const alignLong = `align sets tracked runs against the job's own logs: which losses and gradient norms
both have, how the log's clock stands to the tracker's by the steps that they share,
what was not finite first and whether that was before memory ran out (and how that is
known: by start, by step, by time, or by place in one log), and what the tracker went on
recording after the run was dead. Console output that a tracker kept is a log as well.

The clocks are compared by at least three steps with the same value in both. An offset of
up to two minutes is taken for late writing, one near a multiple of a quarter of an hour
for a time zone; with any other, times are not compared.

Status: 0 runs were set against logs; 1 there was no run or no log; 2 wrong usage; 130
interrupted.`

const alignExample = `  inquest tracker align runs/exp1 slurm-4711.out
  inquest tracker align --run 3k2j9x1p wandb/ logs/
  inquest tracker align --format html -o timeline.html mlflow.db 'logs/rank_*.log'
  inquest tracker align wandb/run-20260801_101500-3k2j9x1p     its own console`

func trackerCommand(a *app) *cobra.Command {
	cmd := needsCommand(&cobra.Command{Use: "tracker", Short: "Read what experiment trackers recorded, and set it against the job's log", Long: trackerLong})
	cmd.AddCommand(trackerShowCommand(a), trackerAlignCommand(a), trackerRepairCommand(a))
	return cmd
}

// trackerFlags are the values of the flags that show and align share.
type trackerFlags struct {
	output
	run, series string
	stale       time.Duration
}

func (t *trackerFlags) flags(cmd *cobra.Command, formats []string) {
	f := cmd.Flags()
	t.fileFlag(cmd)
	t.reportFlags(cmd, "", formats, "")
	f.StringVar(&t.run, "run", "", "only runs with this id, name or folder; * and ? stand for any characters")
	f.StringVar(&t.series, "series", "", "only series with such a name; * and ? stand for any characters")
	f.DurationVar(&t.stale, "stale", tracker.DefaultStale, "how old the newest point of a run without an end must be for it to be taken for dead")
}

// none says that no run was read, and of which name where one was asked for.
func (t *trackerFlags) none() error {
	if t.run == "" {
		return errNoTracked
	}
	return fmt.Errorf("%w that --run %q names; without --run all are shown", errNoTracked, t.run)
}

// servers takes the addresses of MLflow servers out of the arguments. What they ask for
// to be let in stands in the variables that MLflow's own client reads.
func servers(args []string) (paths []string, out []engine.Server, err error) {
	for _, arg := range args {
		if !mlflow.IsAddress(arg) {
			paths = append(paths, arg)
			continue
		}
		from := mlflow.Remote{Address: arg, Username: os.Getenv("MLFLOW_TRACKING_USERNAME"), Password: os.Getenv("MLFLOW_TRACKING_PASSWORD"), Token: os.Getenv("MLFLOW_TRACKING_TOKEN")}
		if from.Name() == "" {
			return nil, nil, fmt.Errorf("%w: an MLflow server is named by an address like http://host:5000", errUsage)
		}
		out = append(out, engine.Server{Name: from.Name(), Kind: mlflow.New().Name(), Fetch: func(ctx context.Context, s reader.Sink) error { return mlflow.Fetch(ctx, from, s) }})
	}
	return paths, out, nil
}

// options checks the flags and says what they ask for.
func (t *trackerFlags) options(formats []string) (engine.TrackerOptions, error) {
	o := engine.TrackerOptions{Run: t.run}
	o.Series, o.Stale, o.Now = t.series, t.stale, time.Now()
	if err := t.checkWidth(); err != nil {
		return o, err
	}
	if err := t.checkReport(formats); err != nil {
		return o, err
	}
	if t.stale <= 0 {
		return o, fmt.Errorf("%w: --stale %s; it is a length of time, as 10m", errUsage, t.stale)
	}
	switch {
	case t.format == "html", t.format == "json" && t.full:
		o.Points = pagePoints
	case t.format == "json":
		o.Points = jsonPoints
	default:
		o.Points = textPoints
	}
	return o, nil
}

// trackerOptions are the options of a command that reads args.
func (a *app) trackerOptions(args []string, t *trackerFlags, formats []string) (engine.Options, engine.TrackerOptions, error) {
	to, err := t.options(formats)
	if err == nil {
		args, to.Servers, err = servers(args)
	}
	if err == nil {
		err = t.spares(args)
	}
	if err != nil {
		return engine.Options{}, to, err
	}
	o, err := a.options(args)
	if err != nil {
		return o, to, err
	}
	o.Progress = a.progress()
	a.warnMissing(args, t.format)
	return o, to, nil
}

func trackerShowCommand(a *app) *cobra.Command {
	var t trackerFlags
	formats := append(report.TrackerFormats(), "csv")
	cmd := &cobra.Command{
		Use:     "show RUN...",
		Short:   "Say what trackers recorded of a run: curves, where they broke, how it ended",
		Long:    showLong,
		Example: showExample,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return fmt.Errorf("%w: name what a tracker left: a folder, a file, an archive, or - for standard input", errUsage)
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error { return a.trackerShow(cmd, args, &t, formats) },
	}
	t.flags(cmd, formats)
	return cmd
}

// trackerShow runs the command.
func (a *app) trackerShow(cmd *cobra.Command, args []string, t *trackerFlags, formats []string) error {
	o, to, err := a.trackerOptions(args, t, formats)
	if err != nil {
		return err
	}
	runs := 0
	if t.format == "csv" {
		err = a.write(t.output, func(w io.Writer, _ report.Options) error {
			got, err := writePoints(cmd, o, to, w)
			if err == nil {
				runs = len(got.Runs)
			}
			return err
		})
	} else {
		var got *engine.TrackerReading
		if got, err = engine.ReadTrackers(cmd.Context(), o, to); err != nil {
			return err
		}
		runs = len(got.Runs)
		shown := got.Show(o.Version, to)
		err = a.write(t.output, func(w io.Writer, ro report.Options) error { return report.WriteTracker(w, t.format, shown, ro) })
	}
	if err == nil && runs == 0 {
		err = t.none()
	}
	return err
}

func trackerAlignCommand(a *app) *cobra.Command {
	var t trackerFlags
	formats := report.AlignmentFormats()
	cmd := &cobra.Command{
		Use:     "align RUN LOG...",
		Short:   "Set tracked runs against the job's logs: what came first, on which clock",
		Long:    alignLong,
		Example: alignExample,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return fmt.Errorf("%w: name what a tracker left, and the job's logs", errUsage)
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error { return a.trackerAlign(cmd, args, &t, formats) },
	}
	t.flags(cmd, formats)
	return cmd
}

// trackerAlign runs the command.
func (a *app) trackerAlign(cmd *cobra.Command, args []string, t *trackerFlags, formats []string) error {
	o, to, err := a.trackerOptions(args, t, formats)
	if err != nil {
		return err
	}
	got, err := engine.Align(cmd.Context(), o, to)
	if err != nil {
		return err
	}
	if err := a.write(t.output, func(w io.Writer, ro report.Options) error { return report.WriteAlignment(w, t.format, got, ro) }); err != nil {
		return err
	}
	if len(got.Runs) == 0 {
		return t.none()
	}
	return nil
}

// pointColumns are the columns of every point. The time is UTC; the class is finite, nan,
// +inf or -inf; the record is the line, row or record of the file, counted from 1.
var pointColumns = []string{"tracker", "run", "writer", "series", "step", "time", "value", "class", "file", "record"}

// writePoints writes every point as it is read. What does not print in a name is escaped,
// because tables are looked at on terminals too.
func writePoints(cmd *cobra.Command, o engine.Options, to engine.TrackerOptions, w io.Writer) (*engine.TrackerReading, error) {
	out := csv.NewWriter(w)
	if err := out.Write(pointColumns); err != nil {
		return nil, err
	}
	row := make([]string, len(pointColumns))
	got, err := engine.TrackerPoints(cmd.Context(), o, to, func(r *evidence.TrackedRun, t *evidence.Track, p *evidence.Point, wall float64) error {
		row[0], row[1], row[2], row[3], row[8] = r.Tracker, printable(runName(r)), printable(r.Writer), printable(t.Name), r.Artifact
		row[4], row[5], row[7] = "", "", "finite"
		if p.Step != evidence.None {
			row[4] = strconv.FormatInt(p.Step, 10)
		}
		if wall > 0 && wall < 1e11 {
			row[5] = time.UnixMicro(int64(wall*1e6 + .5)).UTC().Format("2006-01-02T15:04:05.000000Z")
		}
		row[6] = strconv.FormatFloat(p.Value, 'g', -1, 64)
		if p.Value-p.Value != 0 {
			row[7] = strings.ToLower(row[6])
		}
		row[9] = strconv.FormatInt(p.Line, 10)
		return out.Write(row)
	})
	if err != nil {
		return nil, err
	}
	out.Flush()
	return got, out.Error()
}

// runName is what a table calls a run.
func runName(r *evidence.TrackedRun) string {
	for _, s := range []string{r.ID, r.Name, r.Folder} {
		if s != "" {
			return s
		}
	}
	return r.Artifact
}
