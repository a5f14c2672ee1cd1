package cli

import (
	"fmt"
	"io"
	"path"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/inquest-dev/inquest/internal/engine"
	"github.com/inquest-dev/inquest/internal/evidence"
	"github.com/inquest-dev/inquest/internal/report"
)

func scanCommand(a *app) *cobra.Command {
	var out output
	var host, prefix string
	var everything bool
	cmd := &cobra.Command{
		Use:   "scan PATH... -o FILE",
		Short: "Reduce logs to a small evidence file, for jobs whose logs lie on many hosts",
		Long: `scan reads what diagnose reads, of every launch that lies there, and writes an
evidence file: all that a diagnosis needs of the logs, with secrets masked. Run it
on each host, bring the small files together, and diagnose them, alone or with
logs beside them. Evidence files among the paths are merged in; order and
grouping of merging make no difference. The diagnosis is the one of the logs
themselves, byte for byte.

Where several hosts have files of the same path, give each scan a --host: it
comes before the paths, and is whose the files are unless they say otherwise.
--prefix only comes before the paths.

Status: 0 something was read and written; 1 nothing of a training run was
recognised (an evidence file that says so is written all the same), or part of
an evidence file could not be read; 2 wrong usage; 130 interrupted.`,
		Example: `  inquest scan /var/log/train -o evidence.inq
  srun --ntasks-per-node=1 sh -c 'inquest scan /tmp/log --host "$(hostname -s)" -o "$SHARED/$(hostname -s).inq"'
  kubectl exec my-pod -- inquest scan /logs --host my-pod -o - > my-pod.inq
  inquest scan *.inq -o job.inq          merge
  inquest diagnose *.inq dmesg.txt       a mix of evidence and logs`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return fmt.Errorf("%w: name a log, a folder, an archive, an evidence file, or - for standard input", errUsage)
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if out.file == "" {
				return fmt.Errorf("%w: scan needs -o FILE; - is standard output", errUsage)
			}
			for flag, v := range map[string]string{"host": host, "prefix": prefix} {
				if v != "" && (printable(v) != v || strings.ContainsAny(v, "!\t\n") || slices.Contains(strings.Split(v, "/"), "..")) || len(v) > 1024 || strings.Contains(host, "/") {
					return fmt.Errorf("%w: --%s %q is no name", errUsage, flag, v)
				}
			}
			if err := out.spares(args); err != nil {
				return err
			}
			o, err := a.options(args)
			if err != nil {
				return err
			}
			o.All, o.Progress = everything, a.progress()
			a.warnMissing(args, "text")
			var got *engine.Scanned
			if err := a.write(out, func(w io.Writer, _ report.Options) error {
				var err error
				got, err = engine.Scan(cmd.Context(), o, path.Join(prefix, host), host, w)
				return err
			}); err != nil {
				return err
			}
			return a.scanned(got)
		},
	}
	f := cmd.Flags()
	f.StringVarP(&out.file, "output", "o", "", "write the evidence to this file; - is standard output")
	f.StringVar(&host, "host", "", "the host whose files these are; comes before their paths")
	f.StringVar(&prefix, "prefix", "", "comes before the paths, as a folder's name does")
	f.BoolVar(&everything, "all", false, "read every text file, not only recognised kinds")
	return cmd
}

// scanned says on standard error what a scan read.
func (a *app) scanned(got *engine.Scanned) error {
	for n, p := range got.Unread {
		if n == 10 {
			fmt.Fprintf(a.err, "inquest: %d more that could not be read\n", len(got.Unread)-n)
			break
		}
		text := p.Err.Error()
		if p.Span.Artifact != "" {
			text = p.Span.Artifact + ": " + text
		}
		fmt.Fprintf(a.err, "inquest: %s\n", printable(text))
	}
	fmt.Fprintf(a.err, "inquest: evidence of %d artifacts (%s), %d of them read now\n", got.Artifacts, evidence.Bytes(got.Bytes), got.Read)
	switch {
	case got.Damaged:
		return errDamaged
	case got.Recognised == 0:
		return errNoRun
	}
	return nil
}
