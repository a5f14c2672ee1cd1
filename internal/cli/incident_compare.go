package cli

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/inquest-dev/inquest/internal/incident"
	"github.com/inquest-dev/inquest/internal/ledger"
	"github.com/inquest-dev/inquest/internal/report"
	"github.com/inquest-dev/inquest/internal/store"
)

const incidentCompareLong = `compare says what changed between two trials, and what came of it: in the command (argument by
argument, a launcher's apart from the script's), in environment variables, in the settings of the
allocator, in versions, in the code, in the data that it was given, and in the machine. What any
two runs have apart (names of hosts and jobs, ports, scratch folders, times) is no change.

Differences that belong together are one change: a micro-batch that was cut while accumulation
rose as much. When more than one thing changed it is not shown which of them helped, and compare
says so; when nothing on record changed it says that as well.

A and B are ids of trials or their beginnings, B made after A. One id of an incident, of one of
its trials, or last, compares the trial that failed with the newest one that a verification made,
and where there is none with the newest of the incident, or of the same program.

Status: 0 answered; 1 there is no such trial, or nothing to compare it with; 2 wrong usage.`

func incidentCompareCommand(a *app) *cobra.Command {
	var o output
	var s storeFlag
	cmd := &cobra.Command{
		Use:   "compare A [B]",
		Short: "Say what changed between two trials, and whether it helped",
		Long:  incidentCompareLong,
		Example: `  inquest incident compare last
  inquest incident compare i-3f0c
  inquest incident compare t20260102-030405-1f t20260102-040506-2e --format markdown`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) < 1 || len(args) > 2 {
				return fmt.Errorf("%w: inquest incident compare takes two trials, or one incident; inquest incident show names its trials", errUsage)
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.checkWidth(); err != nil {
				return err
			}
			if err := o.checkReport(report.ComparisonFormats()); err != nil {
				return err
			}
			st, err := s.open()
			if err != nil {
				return err
			}
			x, y, err := a.pair(cmd.Context(), st, args)
			if err != nil {
				return err
			}
			c := ledger.Compare(*x, *y)
			return a.write(o, func(w io.Writer, ro report.Options) error { return report.WriteComparison(w, o.format, &c, ro) })
		},
	}
	o.fileFlag(cmd)
	o.reportFlags(cmd, "", report.ComparisonFormats(), "")
	s.flag(cmd)
	return cmd
}

// pair are the two trials that args name, the earlier one first where one incident names them.
func (a *app) pair(ctx context.Context, st *store.Store, args []string) (x, y *incident.Trial, err error) {
	if len(args) == 2 {
		return st.Pair(ctx, args[0], args[1])
	}
	k, err := a.incident(ctx, st, args[0])
	if err != nil {
		return nil, nil, err
	}
	return st.PairOf(ctx, k)
}
