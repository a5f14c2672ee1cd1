package cli

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/inquest-dev/inquest/internal/catalog"
	"github.com/inquest-dev/inquest/internal/explain"
	"github.com/inquest-dev/inquest/internal/report"
)

// decideCommand prints decision tables: causes, what to look for, the safer next action.
func decideCommand(a *app) *cobra.Command {
	var out output
	cmd := &cobra.Command{
		Use:   "decide [SYMPTOM...]",
		Short: "From a symptom to its causes, the evidence to look for and the safer next action",
		Long: `decide prints a table for each symptom: what can be behind it, the most common
first; which evidence speaks for each and which closes it; the next action that
risks least; and the change to make once the cause is confirmed.

A symptom is an event kind (device_oom, nonfinite_value), a class of them
(device_memory, host_memory, collective), an entry's id, a line of a log, or words.
Without one, all tables are printed.`,
		Example: `  inquest explain decide device_oom
  inquest explain decide "torch.OutOfMemoryError: CUDA out of memory"
  inquest explain decide --format html collective > collective.html`,
		RunE: func(_ *cobra.Command, args []string) error {
			if err := explainFormat(&out); err != nil {
				return err
			}
			c, err := a.catalogue()
			if err != nil {
				return err
			}
			kinds, err := symptoms(c, args)
			if err != nil {
				return err
			}
			return a.write(out, func(w io.Writer, ro report.Options) error {
				return explain.WriteDecisions(w, explain.Decisions(c, kinds...), out.format, ro.Width)
			})
		},
	}
	explainFlags(cmd, &out)
	return cmd
}

// symptoms are the event kinds that args mean: each for itself, where it is a name, or
// all of them as one line.
func symptoms(c *catalog.Catalog, args []string) ([]string, error) {
	var kinds []string
	for _, arg := range args {
		if len(args) > 1 && !explain.Named(c, arg) {
			kinds = nil
			break
		}
		of := explain.KindsOf(c, arg)
		if len(of) == 0 {
			kinds = nil
			break
		}
		for _, k := range of {
			if !slices.Contains(kinds, k) {
				kinds = append(kinds, k)
			}
		}
	}
	text := strings.Join(args, " ")
	if len(kinds) == 0 && len(args) > 1 {
		kinds = explain.KindsOf(c, text)
	}
	if len(kinds) == 0 && len(args) > 0 {
		return nil, fmt.Errorf("no table for %q: it is no event kind, class or entry, no line of a log that inquest knows, and no entry is about it; the kinds are %s", printable(text), strings.Join(explain.Kinds(c), ", "))
	}
	return kinds, nil
}

// compareEntries prints two entries side by side.
func (a *app) compareEntries(w io.Writer, c *catalog.Catalog, ids []string, format string, width int) error {
	if len(ids) != 2 {
		return fmt.Errorf("%w: --compare takes the ids of two entries", errUsage)
	}
	var of [2]*catalog.Entry
	for i, id := range ids {
		e, err := c.Entry(strings.ToLower(id))
		if err != nil {
			if near := explain.Meant(c, strings.ToLower(id)); near != "" {
				return fmt.Errorf("no entry %s; did you mean %s?", printable(id), near)
			}
			return fmt.Errorf("no entry %s; inquest explain lists all", printable(id))
		}
		of[i] = e
	}
	if of[0] == of[1] {
		return fmt.Errorf("%w: --compare takes two different entries", errUsage)
	}
	return explain.WriteComparison(w, explain.Compare(of[0], of[1]), format, width)
}

func explainFormat(out *output) error {
	if err := oneOf("format", out.format, append(explain.Formats(), "json")...); err != nil {
		return err
	}
	return out.checkWidth()
}

func explainFlags(cmd *cobra.Command, out *output) {
	cmd.Flags().StringVar(&out.format, "format", "text", "text, markdown, html or json")
	out.fileFlag(cmd)
	out.widthFlag(cmd)
	out.color = "auto"
}
