package cli

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/inquest-dev/inquest/internal/engine"
	"github.com/inquest-dev/inquest/internal/incident"
	"github.com/inquest-dev/inquest/internal/ledger"
	"github.com/inquest-dev/inquest/internal/report"
	"github.com/inquest-dev/inquest/internal/store"
)

const incidentShowLong = `show tells the whole story of an incident: what failed, the likeliest cause and how sure it is,
what was tried since and what changed in each trial, what solved it and how that is taken back,
what did not help, and what people noted. With --full the diagnosis of the failure follows, with
its evidence.

ID is that of an incident or its beginning, of one of its trials, of a launch (as its launcher
names it), or last for the one that failed last.

Where several processes of one launch failed, all of their logs are diagnosed together once, and
the result is kept: only then it is known which of them failed first.

Status: 0 answered; 1 there is no such incident; 2 wrong usage; 130 interrupted.`

func incidentShowCommand(a *app) *cobra.Command {
	var o output
	var s storeFlag
	cmd := &cobra.Command{
		Use:   "show ID",
		Short: "Tell the whole story of an incident",
		Long:  incidentShowLong,
		Example: `  inquest incident show last
  inquest incident show i-3f0c --full
  inquest incident show i-3f0c --format html -o incident.html`,
		Args: oneIncident("show"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.checkWidth(); err != nil {
				return err
			}
			if err := o.checkReport(report.KeptFormats()); err != nil {
				return err
			}
			st, err := s.open()
			if err != nil {
				return err
			}
			k, err := a.incident(cmd.Context(), st, args[0])
			if err != nil {
				return err
			}
			return a.write(o, func(w io.Writer, ro report.Options) error { return report.WriteKept(w, o.format, k, ro) })
		},
	}
	o.fileFlag(cmd)
	o.reportFlags(cmd, "", report.KeptFormats(), "; and the diagnosis of the failure")
	s.flag(cmd)
	return cmd
}

// oneIncident takes the id of one incident.
func oneIncident(name string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) != 1 {
			return fmt.Errorf("%w: inquest incident %s takes the id of one incident; inquest incident list names them", errUsage, name)
		}
		return nil
	}
}

// incident is the incident that a name means. Launches of which several processes failed and
// were not yet diagnosed together are so now; where that cannot be kept, it is done again each
// time.
func (a *app) incident(ctx context.Context, st *store.Store, name string) (*incident.Kept, error) {
	k, err := st.Find(ctx, name)
	if err != nil {
		return nil, err
	}
	launches := ledger.Unjoined(k)
	var unkept []incident.Act
	for _, launch := range launches {
		act, err := a.joint(ctx, st, launch)
		if err != nil {
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}
			k.Problems = append(k.Problems, fmt.Sprintf("the processes of launch %s could not be diagnosed together: %v", launch.Key, err))
			continue
		}
		if _, err := st.Act(*act); err != nil && !errors.Is(err, fs.ErrExist) {
			unkept = append(unkept, *act)
		}
	}
	if problems := k.Problems; len(launches) > 0 {
		// The failure that stands for the launch may be another's now, and so its incident's id.
		again, err := st.Find(ctx, k.Original, unkept...)
		if err != nil {
			return nil, err
		}
		if len(again.Problems) < len(problems) {
			again.Problems = problems
		}
		k = again
	}
	return k, nil
}

// joint diagnoses the logs of all processes of a launch together.
func (a *app) joint(ctx context.Context, st *store.Store, l ledger.Launch) (*incident.Act, error) {
	var paths, ids []string
	for _, t := range l.Trials {
		ids = append(ids, t.ID)
		if t.Log != "" {
			paths = append(paths, filepath.Dir(t.Log))
		} else {
			paths = append(paths, st.TrialDir(t))
		}
	}
	o, err := a.options(paths)
	if err != nil {
		return nil, err
	}
	o.Progress = a.progress()
	d, err := engine.Diagnose(ctx, o)
	if err != nil {
		return nil, err
	}
	// The same logs give the same act: of several who diagnose them at once one is kept.
	sum := sha256.Sum256([]byte(strings.Join(ids, " ")))
	return &incident.Act{ID: "j" + hex.EncodeToString(sum[:10]), Launch: l.Key, Kind: incident.ActJoint, Trials: ids, Diagnosis: d}, nil
}
