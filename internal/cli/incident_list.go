package cli

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/inquest-dev/inquest/internal/ledger"
	"github.com/inquest-dev/inquest/internal/report"
)

const incidentListLong = `list names the incidents of a store, those that failed last first, with how each stands:

  open        it failed, and nothing was tried since
  unresolved  something was tried since, and no verification succeeded after one known change
  confirmed   a verification succeeded, and one thing had changed since the failure
  regressed   it was confirmed, and failed in the same way again

Closed incidents are left out unless --all or --status asks for them. The list comes from an
index beside the records, which is brought up to date and may be removed at any time.

Status: 0 answered, also where there is none; 1 the store could not be read; 2 wrong usage; 130
interrupted.`

// incidentFilter are the flags that say what a list is asked for.
type incidentFilter struct {
	status, scenario, since string
	all                     bool
}

func incidentListCommand(a *app) *cobra.Command {
	var o output
	var s storeFlag
	var want incidentFilter
	rebuild := false
	cmd := &cobra.Command{
		Use:   "list",
		Short: "Name the incidents of a store, those that failed last first",
		Long:  incidentListLong,
		Example: `  inquest incident list
  inquest incident list --status regressed
  inquest incident list --scenario train.py --since 7d --format json`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.checkWidth(); err != nil {
				return err
			}
			if err := o.checkReport(report.IncidentsFormats()); err != nil {
				return err
			}
			filter, err := want.check(time.Now())
			if err != nil {
				return err
			}
			st, err := s.open()
			if err != nil {
				return err
			}
			if rebuild {
				if err := st.Rebuild(cmd.Context()); err != nil {
					return err
				}
			}
			l, err := st.List(cmd.Context())
			if err != nil {
				return err
			}
			filter.Apply(l)
			return a.write(o, func(w io.Writer, ro report.Options) error { return report.WriteIncidents(w, o.format, l, ro) })
		},
	}
	o.fileFlag(cmd)
	o.reportFlags(cmd, "", report.IncidentsFormats(), "")
	s.flag(cmd)
	f := cmd.Flags()
	f.StringVar(&want.status, "status", "", "only those that stand so: "+strings.Join(ledger.States, ", ")+"; several with commas")
	f.StringVar(&want.scenario, "scenario", "", "only those whose scenario has this in it")
	f.StringVar(&want.since, "since", "", "only those that failed since then: a length of time, as 36h or 7d, or a day, as 2026-08-01")
	f.BoolVar(&want.all, "all", false, "closed ones too")
	f.BoolVar(&rebuild, "rebuild", false, "make the index anew from the records first")
	return cmd
}

// check reads the flags.
func (w *incidentFilter) check(now time.Time) (*ledger.Filter, error) {
	f := &ledger.Filter{Scenario: w.scenario, All: w.all}
	if w.status != "" {
		f.States = strings.Split(w.status, ",")
		for _, s := range f.States {
			if err := oneOf("status", s, ledger.States...); err != nil {
				return nil, err
			}
		}
	}
	if w.since != "" {
		at, err := sinceTime(w.since, now)
		if err != nil {
			return nil, err
		}
		f.Since = at.UTC().Format(time.RFC3339Nano)
	}
	return f, nil
}

// sinceTime is the moment that a value of --since names.
func sinceTime(text string, now time.Time) (time.Time, error) {
	for _, layout := range []string{time.RFC3339, time.DateOnly} {
		if at, err := time.ParseInLocation(layout, text, time.Local); err == nil {
			return at, nil
		}
	}
	length := text
	days := 0
	if n, ok := strings.CutSuffix(text, "d"); ok {
		if _, err := fmt.Sscanf(n+";", "%d;", &days); err == nil && days > 0 && days < 1_000_000 {
			return now.AddDate(0, 0, -days), nil
		}
	}
	d, err := time.ParseDuration(length)
	if err != nil || d <= 0 {
		return time.Time{}, fmt.Errorf("%w: --since %q; a length of time, as 36h or 7d, or a day, as 2026-08-01", errUsage, text)
	}
	return now.Add(-d), nil
}
