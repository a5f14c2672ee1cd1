package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/inquest-dev/inquest/internal/catalog"
	"github.com/inquest-dev/inquest/internal/engine"
	"github.com/inquest-dev/inquest/internal/reader"
	"github.com/inquest-dev/inquest/internal/timeline"
)

// debugCommand prints each stage's intermediate form, as the golden files show
// it.
func debugCommand(a *app) *cobra.Command {
	cmd := needsCommand(&cobra.Command{Use: "debug", Short: "Print what each stage makes of the input"})
	stage := func(name, short string, run func(*cobra.Command, engine.Options) error) {
		cmd.AddCommand(&cobra.Command{Use: name + " PATH...", Short: short,
			Args: func(_ *cobra.Command, args []string) error {
				if len(args) == 0 {
					return fmt.Errorf("%w: debug %s needs a path", errUsage, name)
				}
				return nil
			},
			RunE: func(c *cobra.Command, args []string) error {
				o, err := a.options(args)
				if err != nil {
					return err
				}
				return run(c, o)
			}})
	}
	stage("read", "events, series and facts of each artifact", a.debugRead)
	stage("timeline", "attempts, and each attempt's events in order", a.debugTimeline)
	stage("match", "facts, and each candidate entry's conditions with their verdicts", a.debugMatch)
	return cmd
}

func (a *app) debugRead(cmd *cobra.Command, o engine.Options) error {
	r, err := engine.Read(cmd.Context(), o)
	if err != nil {
		return err
	}
	defer r.Close()
	for i := range r.Sources {
		s := &r.Sources[i]
		fmt.Fprintf(a.out, "artifact %s kind=%s fate=%q\n", s.Artifact.Path, s.Artifact.Kind, s.Artifact.Fate)
		if r.Raw[i] == nil {
			continue
		}
		if err := reader.Dump(a.out, r.Raw[i]); err != nil {
			return err
		}
	}
	for _, p := range r.Problem {
		fmt.Fprintf(a.out, "problem %s: %v\n", p.Span.Artifact, p.Err)
	}
	return nil
}

func (a *app) debugTimeline(cmd *cobra.Command, o engine.Options) error {
	r, err := engine.Read(cmd.Context(), o)
	if err != nil {
		return err
	}
	defer r.Close()
	s := engine.Examine(r)
	for i, t := range s.Timeline.Attempts {
		c := s.Cases[i]
		fmt.Fprintf(a.out, "attempt %s: outcome %s, ranks %v of %d", t.ID, c.Outcome, c.Ranks, c.World)
		if t.Command != "" {
			fmt.Fprintf(a.out, ", command %q", t.Command)
		}
		fmt.Fprintln(a.out)
		for _, it := range t.Items {
			mark := " "
			switch {
			case it == c.Lead:
				mark = "*"
			case c.Recovered(&it.Event):
				mark = "~"
			}
			fmt.Fprintf(a.out, "%s %-5s %s\n", mark, it.ID, describe(it))
		}
		if c.Lead != nil {
			fmt.Fprintf(a.out, "  lead %s (%s): %s\n", c.Lead.ID, c.Standing, c.Basis)
		}
		for _, x := range c.Rivals {
			rel, basis := s.Timeline.Compare(c.Lead, x)
			fmt.Fprintf(a.out, "  rival %s: %s (%s)\n", x.ID, rel, basis)
		}
		for _, l := range c.Links {
			fmt.Fprintf(a.out, "  %s x%d follows %s by %s\n", l.Item.ID, l.Count, l.By.ID, l.Rule)
		}
	}
	return nil
}

func describe(it *timeline.Item) string {
	s := fmt.Sprintf("%s:%d %s", it.Span.Artifact, it.Span.Line, it.Kind)
	if it.Who.Rank >= 0 {
		s += fmt.Sprintf(" rank=%d", it.Who.Rank)
	}
	if it.Who.Host != "" {
		s += " host=" + it.Who.Host
	}
	if it.Stamp.Known() {
		s += fmt.Sprintf(" at=%q", it.Stamp.Written)
	}
	if it.Step >= 0 {
		s += fmt.Sprintf(" step=%d", it.Step)
	}
	if it.Quoted {
		s += " quoted"
	}
	return s + " " + fmt.Sprintf("%.140q", it.Text)
}

func (a *app) debugMatch(cmd *cobra.Command, o engine.Options) error {
	r, err := engine.Read(cmd.Context(), o)
	if err != nil {
		return err
	}
	defer r.Close()
	s := engine.Examine(r)
	c, known := s.Cases[s.Main], s.Known[s.Main]
	fmt.Fprintf(a.out, "attempt %s\n", c.Attempt.ID)
	for _, n := range known.Names() {
		fmt.Fprintf(a.out, "fact %s = %.120q\n", n, catalog.Show(n, known[n].Value))
	}
	if c.Lead == nil {
		fmt.Fprintln(a.out, "no fault leads this attempt; no entry is asked")
		return nil
	}
	values := known.Values()
	for _, e := range o.Catalog.Candidates(c.Asked()...) {
		fmt.Fprintf(a.out, "entry %s prior=%d\n", e.ID, e.Prior)
		show := func(what, when string) {
			if when == "" {
				return
			}
			v := o.Catalog.Eval(when, values)
			fmt.Fprintf(a.out, "  %-8s %-7s %s", what, v.Verdict, when)
			if len(v.Unknown) > 0 {
				fmt.Fprintf(a.out, "  hangs on %v", v.Unknown)
			}
			if v.Err != nil {
				fmt.Fprintf(a.out, "  error: %v", v.Err)
			}
			fmt.Fprintln(a.out)
		}
		show("needs", e.Needs)
		for _, x := range e.For {
			show("for/"+x.Weight, x.When)
		}
		for _, x := range e.Against {
			w := x.Weight
			if x.RulesOut {
				w = "rules out"
			}
			show("not/"+w, x.When)
		}
	}
	return nil
}
