package cli

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/inquest-dev/inquest/internal/engine"
	"github.com/inquest-dev/inquest/internal/incident"
	"github.com/inquest-dev/inquest/internal/repair"
	repairs "github.com/inquest-dev/inquest/internal/repair/all"
	"github.com/inquest-dev/inquest/internal/report"
)

const repairLong = `repair writes a copy of a run, or of the store it lies in, for the tracker's own
pages: values that are not finite are taken out, the failed segment is marked with
a series and a note in the tracker's own way, and a run that is dead and still
said to be running is stated as failed. Everything else stays as it is.

The source is only read. It is compared with what it was when the copy is
complete, and the copy is read again and set against the account of every point,
before it gets its name: OUT is complete and checked, or it is not there. In it
lie inquest-repair.json, which accounts for every series and file, and
inquest-repair.md, which says the same for people and how to undo it.

OUT must not lie in RUN. Where a copy could be uploaded, its runs get new ids, so
that they overwrite nothing. Values that only look finite are listed and left,
unless --drop-suspect is given. Where there is nothing to repair, that is said and
nothing is written; --force writes a copy all the same.

Status: 0 the copy was written, or there is nothing to repair; 1 it could not be
written; 2 wrong usage; 130 interrupted.`

const repairExample = `  inquest tracker repair runs/lora -o runs-repaired
  inquest tracker repair --hold --marker failed wandb/offline-run-20260801_101500-3k2j9x1p -o copy
  inquest tracker repair --dedupe mlflow.db -o mlflow-repaired
  inquest tracker repair --only trainer_state output/ -o repaired`

// repairFlags are the values of the flags of inquest tracker repair.
type repairFlags struct {
	output
	out, marker, run, only                      string
	hold, suspects, dedupe, tensors, force, end bool
}

func trackerRepairCommand(a *app) *cobra.Command {
	var r repairFlags
	cmd := &cobra.Command{
		Use:     "repair RUN -o OUT",
		Short:   "Write a copy of a run without its non-finite values, the failed segment marked",
		Long:    repairLong,
		Example: repairExample,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return fmt.Errorf("%w: name one run, store or file to repair", errUsage)
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error { return a.trackerRepair(cmd, args[0], &r) },
	}
	f := cmd.Flags()
	f.StringVarP(&r.out, "output", "o", "", "folder for the copy; it must not exist, or be empty")
	f.BoolVar(&r.hold, "hold", false, "replace a non-finite value by the last finite one of its series; such values are synthetic")
	f.BoolVar(&r.suspects, "drop-suspect", false, "also take out finite values that may stand for ones that were not")
	f.BoolVar(&r.dedupe, "dedupe", false, "take out points whose step a later part of the run wrote again")
	f.BoolVar(&r.tensors, "include-tensors", false, "also take out tensors and histograms with non-finite elements")
	f.StringVar(&r.marker, "marker", repair.DefaultMarker, "name of the series that is 1 where values failed and 0 beside it")
	f.StringVar(&r.run, "run", "", "only runs with this id, name or folder; * and ? stand for any characters")
	f.StringVar(&r.only, "only", "", "only data of this format, where RUN has several: "+strings.Join(formatsWritten(), ", "))
	f.BoolVar(&r.force, "force", false, "write a copy also where there is nothing to repair")
	f.BoolVar(&r.end, "ended", false, "no process writes the run any more, also where it was written to in the last ten minutes")
	r.reportFlags(cmd, "of the report: ", report.RepairFormats(), "")
	return cmd
}

// formatsWritten names the formats of repaired copies.
func formatsWritten() []string {
	var names []string
	for _, f := range repairs.Formats() {
		names = append(names, f.Name())
	}
	return names
}

// check checks the flags.
func (r *repairFlags) check() error {
	if err := r.checkWidth(); err != nil {
		return err
	}
	if err := r.checkReport(report.RepairFormats()); err != nil {
		return err
	}
	switch {
	case r.out == "":
		return fmt.Errorf("%w: -o OUT is missing: the folder for the copy", errUsage)
	case r.out == "-":
		return fmt.Errorf("%w: -o - : a copy is a folder and cannot go to standard output", errUsage)
	case strings.TrimSpace(r.marker) == "" || len(r.marker) > 128 || printable(r.marker) != r.marker || strings.ContainsAny(r.marker, "\n\t"):
		return fmt.Errorf("%w: --marker %q; a name of at most 128 characters", errUsage, r.marker)
	case r.only != "" && !slices.Contains(formatsWritten(), r.only):
		return oneOf("only", r.only, formatsWritten()...)
	}
	return nil
}

// trackerRepair runs the command.
func (a *app) trackerRepair(cmd *cobra.Command, source string, r *repairFlags) error {
	if err := r.check(); err != nil {
		return err
	}
	if source == "-" {
		return fmt.Errorf("%w: standard input cannot be repaired: name a file or a folder", errUsage)
	}
	o, err := a.options([]string{source})
	if err != nil {
		return err
	}
	ro := engine.RepairOptions{Path: source, Output: r.out, Marker: r.marker, Run: r.run, Only: r.only, Force: r.force, Ended: r.end, Now: time.Now(),
		Policy:  incident.RepairPolicy{Nonfinite: repair.DropValues, Suspects: r.suspects, Dedupe: r.dedupe, Tensors: r.tensors},
		Formats: repairs.Formats(),
		Write: func(w io.Writer, format string, res *incident.Repair) error {
			return report.WriteRepair(w, format, res, report.Options{Full: true})
		},
		Notice: func(text string) { fmt.Fprintf(a.err, "inquest: %s\n", printable(text)) }}
	if r.hold {
		ro.Policy.Nonfinite = repair.HoldValues
	}
	res, err := engine.Repair(cmd.Context(), o, ro)
	if err != nil {
		return err
	}
	return a.write(r.output, func(w io.Writer, o report.Options) error { return report.WriteRepair(w, r.format, res, o) })
}
