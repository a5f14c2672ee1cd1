package cli

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/inquest-dev/inquest/internal/explain"
	"github.com/inquest-dev/inquest/internal/report"
)

func explainCommand(a *app) *cobra.Command {
	var out output
	var list bool
	cmd := &cobra.Command{
		Use:   "explain [ENTRY | TABLE [WORD...] | TEXT]",
		Short: "Look a failure up in the encyclopedia, by id or in your own words",
		Long: `explain prints an entry of the encyclopedia, or finds entries for free text: an
error message, or what you saw, in your own words. Without an argument it lists
all entries.

Three tables stand beside the entries: xid and sxid, the fault codes of NVIDIA
devices and switches, and cuda-errors, the errors of CUDA, cuBLAS, cuDNN and NCCL
with what each proves. Words behind a table's name select its rows: a code, a
library, sticky, asynchronous, who acts.`,
		Example: `  inquest explain
  inquest explain sequence-spike
  inquest explain "gpu training oom loss became nan tracked run"
  inquest explain --format markdown host-ram
  inquest explain xid 79
  inquest explain xid hardware operator
  inquest explain cuda-errors 700
  inquest explain cuda-errors sticky nccl`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := oneOf("format", out.format, "text", "markdown", "json"); err != nil {
				return err
			}
			if err := out.checkWidth(); err != nil {
				return err
			}
			c, err := a.catalogue()
			if err != nil {
				return err
			}
			return a.write(out, func(w io.Writer, ro report.Options) error {
				if len(args) == 0 || list {
					if out.format == "json" {
						return explain.JSON(w, c.Entries())
					}
					return explain.List(w, c)
				}
				query := strings.Join(args, " ")
				if table, rest, ok := explain.Topic(c, query); ok {
					if found, err := explain.Table(w, c, table, rest, out.format, ro.Width); found || err != nil {
						return err
					}
				}
				if e, err := c.Entry(query); err == nil {
					if out.format == "json" {
						return explain.JSON(w, e)
					}
					_, err := io.WriteString(w, explain.Render(e, out.format, ro.Width))
					return err
				}
				found := explain.Find(c, query)
				rows := explain.Rows(c, query)
				if out.format == "json" && len(found) > 0 {
					return explain.JSON(w, found)
				}
				if id := explain.Meant(c, strings.ToLower(query)); id != "" {
					if _, err := fmt.Fprintf(w, "no entry %s; did you mean %s?\n\n", printable(query), id); err != nil {
						return err
					}
				} else if len(found) == 0 && len(rows) == 0 {
					return fmt.Errorf("no entry fits %q; inquest explain lists all", query)
				}
				if err := explain.Results(w, query, found); err != nil {
					return err
				}
				for _, r := range rows {
					if _, err := fmt.Fprintf(w, "%s prints what it stands for\n", r); err != nil {
						return err
					}
				}
				return nil
			})
		},
	}
	f := cmd.Flags()
	f.StringVar(&out.format, "format", "text", "text, markdown or json")
	f.StringVarP(&out.file, "output", "o", "", "write to this file; - is standard output")
	out.widthFlag(cmd)
	f.BoolVar(&list, "list", false, "list all entries")
	out.color = "auto"
	return cmd
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
