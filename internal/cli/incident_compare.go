package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

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

var errOneTrial = errors.New("nothing to compare with")

// pair are the two trials that args name, the earlier one first where one incident names them.
func (a *app) pair(ctx context.Context, st *store.Store, args []string) (x, y *incident.Trial, err error) {
	if len(args) == 2 {
		all, _, err := st.Trials(ctx)
		if err != nil {
			return nil, nil, err
		}
		for i, name := range args {
			t, err := trialNamed(all, name)
			if err != nil {
				return nil, nil, err
			}
			if i == 0 {
				x = t
			} else {
				y = t
			}
		}
		return x, y, nil
	}
	k, err := a.incident(ctx, st, args[0])
	if err != nil {
		return nil, nil, err
	}
	x, y, err = beforeAfter(k)
	if y != nil || x == nil {
		return x, y, err
	}
	// A run that passed is of no incident: the newest one of the same program may be what was
	// tried.
	all, _, readErr := st.Trials(ctx)
	if readErr != nil {
		return nil, nil, readErr
	}
	for i := range all {
		if t := &all[i]; t.Scenario != "" && t.Scenario == x.Scenario && t.ID != x.ID && t.Begun > x.Begun && (y == nil || t.Begun > y.Begun) {
			y = t
		}
	}
	if y == nil {
		return nil, nil, err
	}
	return x, y, nil
}

// trialNamed is the one trial whose id begins with name.
func trialNamed(all []incident.Trial, name string) (*incident.Trial, error) {
	var found *incident.Trial
	for i := range all {
		switch id := all[i].ID; {
		case id == name:
			return &all[i], nil
		case len(name) >= 2 && len(id) > len(name) && id[:len(name)] == name:
			if found != nil {
				return nil, fmt.Errorf("more than one trial begins with %q: %s, %s", name, found.ID, id)
			}
			found = &all[i]
		}
	}
	if found == nil {
		return nil, fmt.Errorf("no trial %q is kept; inquest incident show lists those of an incident", name)
	}
	return found, nil
}

// beforeAfter are the trial that failed and the one that tells most of what was tried since: the
// last that a verification or recheck made, else the last of all.
func beforeAfter(k *incident.Kept) (x, y *incident.Trial, err error) {
	siblings := ledger.Siblings(k.Trials, k.Original)
	for i := range k.Trials {
		t := &k.Trials[i]
		switch {
		case t.ID == k.Original:
			x = t
		case x == nil: // before the failure
		case y == nil, t.By == incident.ByVerify, t.By == incident.ByRecheck, y.By != incident.ByVerify && y.By != incident.ByRecheck:
			if !slices.Contains(siblings, t) {
				y = t
			}
		}
	}
	switch {
	case x == nil:
		return nil, nil, fmt.Errorf("the trial of the failure of %s is not on record", k.ID)
	case y == nil:
		return x, nil, fmt.Errorf("%w: %s has one trial; run it again with the change (inquest run, or inquest verify --incident %s)", errOneTrial, k.ID, k.ID)
	}
	return x, y, nil
}
