package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/inquest-dev/inquest/internal/incident"
	"github.com/inquest-dev/inquest/internal/ledger"
	"github.com/inquest-dev/inquest/internal/record"
	"github.com/inquest-dev/inquest/internal/report"
	"github.com/inquest-dev/inquest/internal/store"
)

const recheckLong = `recheck runs the stored test of an incident again: the command, the number of runs and the
checks of the verification that confirmed it (of the newest one, where none did), in the
folder where it ran. It says what changed since then: versions, code, machine. A failure in
the same way is a regression, and the incident says so from then on.

--all does this for every confirmed incident, one after the other: after a dependency was
changed, or in continuous integration.

Status: 0 still solved; 1 it could not be run; 2 wrong usage; 3 a regression; 4
inconclusive, as after a failure of another kind; 130 interrupted. With --all the worst of
them.`

// recheckFlags are the values of the flags of inquest incident recheck.
type recheckFlags struct {
	output
	storeFlag
	scratchFlags
	all     bool
	runs    int
	timeout time.Duration
}

func incidentRecheckCommand(a *app) *cobra.Command {
	var r recheckFlags
	cmd := &cobra.Command{
		Use:   "recheck ID | --all",
		Short: "Run the stored test of a solved incident again",
		Long:  recheckLong,
		Example: `  inquest incident recheck 3f9a
  inquest incident recheck --all --format json`,
		Args: func(_ *cobra.Command, args []string) error {
			switch {
			case len(args) > 1 || r.all && len(args) > 0:
				return fmt.Errorf("%w: one incident, or --all", errUsage)
			case len(args) == 0 && !r.all:
				return fmt.Errorf("%w: name the incident, or --all", errUsage)
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error { return a.recheck(cmd.Context(), args, &r) },
	}
	f := cmd.Flags()
	r.fileFlag(cmd)
	r.reportFlags(cmd, "", report.VerificationFormats(), "")
	r.storeFlag.flag(cmd)
	f.BoolVar(&r.all, "all", false, "every confirmed incident")
	f.IntVar(&r.runs, "runs", 0, "how often the scenario is run; 0 is as often as then")
	f.DurationVar(&r.timeout, "timeout", 0, "end a run after this time; 0 is as then")
	r.scratchFlags.flags(cmd, keepRuns)
	return cmd
}

// errNoTest is for an incident that no verification belongs to.
var errNoTest = errors.New("no verification of it is on record: inquest verify --incident makes one")

// recheck runs the command.
func (a *app) recheck(ctx context.Context, args []string, r *recheckFlags) error {
	if err := errors.Join(r.checkWidth(), r.checkReport(report.VerificationFormats())); err != nil {
		return err
	}
	switch {
	case r.runs < 0 || r.runs > 100 || r.timeout < 0:
		return fmt.Errorf("%w: --runs 1 to 100, --timeout a length of time; 0 is as then", errUsage)
	case r.all && r.format == "html":
		return fmt.Errorf("%w: --all with --format html: a page shows one; text, json or markdown show all", errUsage)
	}
	s, err := r.open()
	if err != nil {
		return err
	}
	var list []incident.Kept
	if r.all {
		all, _, err := s.Incidents(ctx)
		if err != nil {
			return err
		}
		for i := range all {
			if all[i].Status == incident.Confirmed && !all[i].Closed {
				list = append(list, all[i])
			}
		}
	} else {
		k, err := s.Find(ctx, args[0])
		if err != nil {
			return err
		}
		list = append(list, *k)
	}
	var done []*incident.Trials
	var worst error
	for i := range list {
		k := &list[i]
		if r.all {
			if full, err := s.Find(ctx, k.ID); err == nil { // with its diagnosis
				k = full
			}
		}
		t, err := a.recheckOne(ctx, s, k, r)
		if err == nil {
			done = append(done, t)
			err = verdictError(ctx, t)
		} else if r.all {
			err = fmt.Errorf("incident %s: %w", k.ID, err)
			a.complain(err)
		}
		if worst == nil || exitRank(err) > exitRank(worst) {
			worst = err
		}
		if ctx.Err() != nil {
			break
		}
	}
	if len(done) == 0 && worst != nil {
		return worst
	}
	if len(list) == 0 {
		fmt.Fprintln(a.err, "inquest: no incident is confirmed: there is nothing to recheck")
	}
	return errors.Join(worst, a.write(r.output, func(w io.Writer, o report.Options) error { return writeRechecks(w, r.format, r.all, done, o) }))
}

// exitRank orders outcomes, the worst last.
func exitRank(err error) int {
	return slices.Index([]int{0, 4, 1, 3, 130}, exitCode(err))
}

// writeRechecks writes the result of one recheck, or of all that were made: as JSON a list.
func writeRechecks(w io.Writer, format string, all bool, done []*incident.Trials, o report.Options) error {
	if all && format == "json" {
		if done == nil {
			done = []*incident.Trials{}
		}
		e := json.NewEncoder(w)
		e.SetEscapeHTML(false)
		e.SetIndent("", " ")
		return e.Encode(done)
	}
	for i, t := range done {
		if i > 0 {
			if _, err := io.WriteString(w, "\n"); err != nil {
				return err
			}
		}
		if all && format == "text" {
			if _, err := fmt.Fprintf(w, "Incident %s\n", t.Incident); err != nil {
				return err
			}
		}
		if err := report.WriteVerification(w, format, t, o); err != nil {
			return err
		}
	}
	return nil
}

// recheckOne runs the stored test of one incident.
func (a *app) recheckOne(ctx context.Context, s *store.Store, k *incident.Kept, r *recheckFlags) (*incident.Trials, error) {
	act := storedTest(k)
	if act == nil {
		return nil, errNoTest
	}
	req := act.Result.Verification.Request
	if r.runs > 0 {
		req.Runs = r.runs
	}
	if r.timeout > 0 {
		req.Timeout = r.timeout.Seconds()
	}
	if st, err := os.Stat(req.Dir); err != nil || !st.IsDir() {
		return nil, fmt.Errorf("the folder of its test, %s, is not there", req.Dir)
	}
	for _, c := range append([][]string{req.Command, req.Evaluate}, req.Nearby...) {
		if record.HasMasked(c) {
			return nil, errors.New("its command had a secret, which is not kept: inquest verify --incident with the command behind -- tests it again")
		}
	}
	t, err := a.verified(ctx, s, k, verifying{by: incident.ByRecheck, request: req, scratch: r.scratchFlags, since: testedTrial(s, act)})
	if err != nil {
		return nil, err
	}
	return t, nil
}

// storedTest is the verification that is repeated: the newest that succeeded, else the newest
// that ran anything.
func storedTest(k *incident.Kept) *incident.Act {
	var any, good *incident.Act
	for i := range k.Acts {
		x := &k.Acts[i]
		if x.Kind != incident.ActVerified || x.Result == nil || x.Result.Verification == nil || len(x.Result.Verification.Request.Command) == 0 {
			continue
		}
		any = x
		if x.Result.Verification.Verdict == incident.Verified {
			good = x
		}
	}
	if good != nil {
		return good
	}
	return any
}

// testedTrial is the first trial of a stored verification, null where it is gone.
func testedTrial(s *store.Store, act *incident.Act) *incident.Trial {
	for _, id := range act.Trials {
		if r, err := s.Trial(id); err == nil {
			return &r.Trial
		}
	}
	return nil
}

// changedSince compares the first run of a recheck with the trial that was verified then.
func changedSince(then *incident.Trial, t *incident.Trials, runs []string) *incident.Comparison {
	if then == nil || len(runs) == 0 {
		return nil
	}
	for i := range t.Trials {
		if t.Trials[i].ID == runs[0] {
			c := ledger.Compare(*then, t.Trials[i])
			c.A.Samples, c.B.Samples = []incident.Sample{}, []incident.Sample{}
			return &c
		}
	}
	return nil
}
