package cli

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/inquest-dev/inquest/internal/catalog"
	"github.com/inquest-dev/inquest/internal/explain"
	"github.com/inquest-dev/inquest/internal/report"
)

func explainCommand(a *app) *cobra.Command {
	var out output
	var list, compare bool
	cmd := &cobra.Command{
		Use:   "explain [ENTRY | TABLE [WORD...] | TEXT]",
		Short: "Look a failure up in the encyclopedia, by id or in your own words",
		Long: `explain prints an entry of the encyclopedia, or finds entries for free text: an
error message, or what you saw, in your own words. Without an argument it lists
all entries.

Three tables stand beside the entries: xid and sxid, the fault codes of NVIDIA
devices and switches, and cuda-errors, the errors of CUDA, cuBLAS, cuDNN and NCCL
with what each proves. Words behind a table's name select its rows: a code, a
library, sticky, asynchronous, who acts.

"decide" goes from a symptom to its causes, and --compare sets two entries side
by side.`,
		Example: `  inquest explain
  inquest explain sequence-spike
  inquest explain "gpu training oom loss became nan tracked run"
  inquest explain --format markdown host-ram
  inquest explain --compare retained-graph fragmentation
  inquest explain xid 79
  inquest explain xid hardware operator
  inquest explain cuda-errors 700
  inquest explain cuda-errors sticky nccl`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := explainFormat(&out); err != nil {
				return err
			}
			c, err := a.catalogue()
			if err != nil {
				return err
			}
			return a.write(out, func(w io.Writer, ro report.Options) error {
				if compare {
					return a.compareEntries(w, c, args, out.format, ro.Width)
				}
				if len(args) == 0 || list {
					if out.format == "json" {
						return explain.JSON(w, c.Entries())
					}
					return explain.WriteList(w, c, out.format)
				}
				query := strings.Join(args, " ")
				return a.explain(w, c, query, out.format, ro.Width)
			})
		},
	}
	explainFlags(cmd, &out)
	f := cmd.Flags()
	f.BoolVar(&list, "list", false, "list all entries")
	f.BoolVar(&compare, "compare", false, "set two entries side by side: how to tell them apart, evidence, change")
	cmd.AddCommand(decideCommand(a))
	return cmd
}

// explain answers query: rows of a table, an entry, or what a search finds.
func (a *app) explain(w io.Writer, c *catalog.Catalog, query, format string, width int) error {
	if table, rest, ok := explain.Topic(c, query); ok {
		if done, err := a.table(w, c, table, rest, format, width); done || err != nil {
			return err
		}
	}
	if e, err := c.Entry(query); err == nil {
		if format == "json" {
			return explain.JSON(w, e)
		}
		_, err := io.WriteString(w, explain.Render(e, format, width))
		return err
	}
	found, rows := explain.Find(c, query), explain.Rows(c, query)
	if format == "json" && len(found) > 0 {
		return explain.JSON(w, found)
	}
	if format == "json" && len(rows) > 0 {
		_, err := explain.Table(w, c, rows[0].Table, rows[0].Key, format, width)
		return err
	}
	if format != "text" && len(found)+len(rows) > 0 {
		_, err := io.WriteString(w, explain.FoundPage(query, found, rows).Write(format, width))
		return err
	}
	if id := explain.Meant(c, strings.ToLower(query)); id != "" {
		if _, err := fmt.Fprintf(w, "no entry %s; did you mean %s?\n\n", printable(query), id); err != nil {
			return err
		}
	} else if len(found) == 0 && len(rows) == 0 {
		return fmt.Errorf("no entry fits %q; inquest explain lists all", query)
	}
	var near []explain.Row
	rows = slices.DeleteFunc(rows, func(r explain.Row) bool {
		if r.Near {
			near = append(near, r)
		}
		return r.Near
	})
	if err := explain.WriteRows(w, rows, width); err != nil {
		return err
	}
	if len(found) > 0 {
		if err := explain.Results(w, query, found); err != nil {
			return err
		}
	}
	for _, r := range near {
		if _, err := fmt.Fprintf(w, "See also: %s (%s)\n", r.Command(), r.Title); err != nil {
			return err
		}
	}
	return nil
}

// table prints the rows of table that rest selects. Where none is meant by it, the
// answer is an error, or, where rest is a text of several words, left to the search.
func (a *app) table(w io.Writer, c *catalog.Catalog, table, rest, format string, width int) (done bool, err error) {
	found, err := explain.Table(w, c, table, rest, format, width)
	if err != nil {
		return found, err
	}
	absent, words := explain.Missing(c, table, rest)
	switch {
	case found:
		if len(absent) > 0 {
			fmt.Fprintf(a.err, "inquest: %s\n", explain.Absent(c, table, absent))
		}
		return true, nil
	case len(words) == 0 && len(absent) > 0:
		return true, errors.New(explain.Absent(c, table, absent))
	case len(words) == 1 && len(absent) == 0 || strings.Contains(table, "-"):
		return true, fmt.Errorf("no row of the table %s holds %q; inquest explain %s lists all", table, rest, table)
	}
	if format == "text" {
		fmt.Fprintf(a.err, "inquest: no row of the table %s holds all of %q; searching the entries\n", table, printable(rest))
	}
	return false, nil
}

func newCommand(a *app) *cobra.Command {
	cmd := needsCommand(&cobra.Command{Use: "new", Short: "Write the stub of something new"})
	cmd.AddCommand(&cobra.Command{
		Use:     "entry ID",
		Short:   "Print the stub of an encyclopedia entry",
		Example: "  inquest new entry my-failure > my-rules/entries/outside/my-failure.yaml",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return fmt.Errorf("%w: new entry takes one id", errUsage)
			}
			return nil
		},
		RunE: func(_ *cobra.Command, args []string) error {
			s, err := explain.Stub(args[0])
			if err != nil {
				return fmt.Errorf("%w: %v", errUsage, err)
			}
			_, err = io.WriteString(a.out, s)
			return err
		},
	})
	return cmd
}

func versionCommand(a *app) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{Use: "version", Short: "Print the version", Args: noArgs, RunE: func(*cobra.Command, []string) error {
		if asJSON {
			_, err := fmt.Fprintf(a.out, "{\"name\":\"inquest\",\"version\":%q,\"schema\":\"inquest.incident/v1\"}\n", version())
			return err
		}
		_, err := fmt.Fprintln(a.out, versionLine())
		return err
	}}
	cmd.Flags().BoolVar(&asJSON, "json", false, "as JSON")
	return cmd
}
