package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/inquest-dev/inquest/internal/engine"
	"github.com/inquest-dev/inquest/internal/incident"
	"github.com/inquest-dev/inquest/internal/report"
)

// output holds the flags that say how a result is written.
type output struct {
	format, reader, color, file string
	full                        bool
	width                       int
}

func (o *output) flags(cmd *cobra.Command) {
	o.fileFlag(cmd)
	o.reportFlags(cmd, "", report.Formats(), "")
	cmd.Flags().StringVar(&o.reader, "for", "engineer", "who reads it: engineer, on-call or executive")
}

func (o *output) fileFlag(cmd *cobra.Command) {
	cmd.Flags().StringVarP(&o.file, "output", "o", "", "write to this file; - is standard output")
}

// reportFlags are the flags of how a report is printed; of stands before the formats, more
// behind what --full does.
func (o *output) reportFlags(cmd *cobra.Command, of string, formats []string, more string) {
	f, last := cmd.Flags(), len(formats)-1
	f.StringVar(&o.format, "format", "text", of+strings.Join(formats[:last], ", ")+" or "+formats[last])
	f.BoolVar(&o.full, "full", false, "print everything, not only the first 40 lines' worth"+more)
	f.StringVar(&o.color, "color", "auto", "auto, always or never (NO_COLOR is respected)")
	o.widthFlag(cmd)
}

// checkReport checks those of them that take one of a few values.
func (o *output) checkReport(formats []string) error {
	return errors.Join(oneOf("format", o.format, formats...), oneOf("color", o.color, "auto", "always", "never"))
}

func (o *output) widthFlag(cmd *cobra.Command) {
	cmd.Flags().IntVar(&o.width, "width", 0, fmt.Sprintf("columns of text output, %d to %d; 0 is COLUMNS where that is set, else the terminal's width, else 100", report.MinWidth, report.MaxWidth))
}

func (o *output) checkWidth() error {
	if o.width != 0 && o.width < report.MinWidth {
		return fmt.Errorf("%w: --width %d; at least %d, or 0 for the terminal's", errUsage, o.width, report.MinWidth)
	}
	return nil
}

func (o *output) check() error {
	if err := o.checkWidth(); err != nil {
		return err
	}
	if err := oneOf("format", o.format, report.Formats()...); err != nil {
		return err
	}
	if err := oneOf("for", o.reader, "engineer", "on-call", "executive"); err != nil {
		return err
	}
	return oneOf("color", o.color, "auto", "always", "never")
}

// options fits the output to where it goes.
func (o *output) options(w io.Writer) report.Options {
	r := report.Options{Full: o.full, For: o.reader, Width: o.width}
	f, isFile := w.(*os.File)
	terminal := isFile && term.IsTerminal(int(f.Fd()))
	if r.Width == 0 {
		r.Width = 100
		if n, err := strconv.Atoi(os.Getenv("COLUMNS")); err == nil && n > 0 {
			r.Width = n
		} else if terminal {
			if n, _, err := term.GetSize(int(f.Fd())); err == nil && n > 0 {
				r.Width = n
			}
		}
	}
	r.Width = min(max(r.Width, report.MinWidth), report.MaxWidth)
	switch o.color {
	case "always":
		r.Color = true
	case "auto":
		r.Color = terminal && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
	}
	r.ASCII = !unicodeLocale(os.Getenv) || terminal && os.Getenv("TERM") == "linux" // whose font has no Braille
	return r
}

// unicodeLocale reports whether text beyond ASCII can be shown, by the first variable that
// names the locale; where none does nothing speaks against it.
func unicodeLocale(env func(string) string) bool {
	for _, name := range []string{"LC_ALL", "LC_CTYPE", "LANG"} {
		if v := strings.ToLower(env(name)); v != "" {
			return strings.Contains(v, "utf-8") || strings.Contains(v, "utf8")
		}
	}
	return true
}

func diagnoseCommand(a *app) *cobra.Command {
	var out output
	var baseline []string
	var compareHost string
	var everything bool
	var failOn string
	cmd := &cobra.Command{
		Use:   "diagnose PATH...",
		Short: "Say what failed first in a run, why, and what to change",
		Long: `diagnose reads files, folders, globs and archives (tar, zip; gzip, zstd, xz,
bzip2), or - for standard input, and prints one verdict. It finds the job's logs
by their content, reads nothing past 4 KiB of files that are no such records,
and says what it did not read.

Status: 0 the question was answered; 1 it could not be (nothing readable or
recognised, or no failure in a file that ends early);
2 wrong usage; 3 a fault was found and --fail-on fault asked for it; 130
interrupted.`,
		Example: `  inquest diagnose run-folder/
  inquest diagnose 'logs/rank_*.log' dmesg.txt nvidia-smi.txt
  inquest diagnose --format html -o verdict.html job.tar.zst
  inquest diagnose --format sarif -o verdict.sarif logs/
  inquest diagnose --baseline good-run/ bad-run/
  inquest diagnose --compare-host node-12 logs/ node-07/ node-12/
  inquest diagnose --for executive slurm-4711.out`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return fmt.Errorf("%w: name a log, a folder, an archive, or - for standard input", errUsage)
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := out.check(); err != nil {
				return err
			}
			if err := oneOf("fail-on", failOn, "never", "fault"); err != nil {
				return err
			}
			if cmd.Flags().Changed("compare-host") && strings.TrimSpace(compareHost) == "" {
				return fmt.Errorf("%w: --compare-host takes the name of a host, and it is empty", errUsage)
			}
			if err := out.spares(append(slices.Clone(args), baseline...)); err != nil {
				return err
			}
			o, err := a.options(args)
			if err != nil {
				return err
			}
			o.Baseline, o.All, o.CompareHost = baseline, everything, compareHost
			o.Progress = a.progress()
			a.warnMissing(args, out.format)
			inc, err := engine.Diagnose(cmd.Context(), o)
			if err != nil {
				return err
			}
			if err := a.write(out, func(w io.Writer, ro report.Options) error { return report.Write(w, out.format, inc, ro) }); err != nil {
				return err
			}
			switch {
			case failOn == "fault" && inc.FirstFault != nil:
				return errFault
			case report.Unanswered(inc) && unread(inc):
				return errUnread
			case report.Unanswered(inc):
				return errNoRun
			case cutShort(inc):
				return errCutShort
			}
			return nil
		},
	}
	out.flags(cmd)
	f := cmd.Flags()
	f.StringVar(&compareHost, "compare-host", "", "a host that is not suspected, whose records are among the paths: set the first fault's host beside it")
	f.StringArrayVar(&baseline, "baseline", nil, "a run that worked (file, folder or archive): list what differs from it")
	f.BoolVar(&everything, "all", false, "read every text file, not only recognised kinds")
	f.StringVar(&failOn, "fail-on", "never", "fault: exit with status 3 if a fault was found")
	return cmd
}

// warnMissing says at once which of several named paths do not exist. Where none
// does, the error that follows says so.
func (a *app) warnMissing(paths []string, format string) {
	var gone []string
	for _, p := range paths {
		if p == "-" {
			continue
		}
		if _, err := os.Stat(p); !errors.Is(err, os.ErrNotExist) {
			continue
		}
		if m, err := filepath.Glob(p); err != nil || len(m) == 0 {
			gone = append(gone, p)
		}
	}
	if len(gone) == len(paths) {
		return
	}
	for _, p := range gone {
		text := p + ": no such file; going on with the rest"
		if format == "json" {
			json.NewEncoder(a.err).Encode(map[string]any{"warning": text})
			continue
		}
		fmt.Fprintf(a.err, "inquest: %s\n", printable(text))
	}
}

// unread reports whether inc rests on no byte at all.
func unread(inc *incident.Incident) bool {
	for _, a := range inc.Artifacts {
		if a.Size != 0 && (a.Fate == "read" || a.Fate == "partly read") {
			return false
		}
	}
	return true
}

// cutShort reports whether inc found no failure and no end of the run while
// part of what was named could not be read: the answer may stand there.
func cutShort(inc *incident.Incident) bool {
	if inc.FirstFault != nil || inc.Outcome == incident.FinishedRun || inc.Outcome == incident.Interrupted {
		return false
	}
	return slices.ContainsFunc(inc.Artifacts, func(a incident.Artifact) bool {
		return a.Fate == "partly read" || a.Fate == "unreadable" || a.Fate == "over limit"
	})
}

// spares refuses an output file whose writing would destroy evidence: one that
// was named itself, or a file in a named folder that is no earlier report.
func (o *output) spares(inputs []string) error {
	st, err := os.Stat(o.file)
	if o.file == "" || o.file == "-" || err != nil || !st.Mode().IsRegular() {
		return nil
	}
	real, err := realPath(o.file)
	if err != nil {
		return nil
	}
	earlier := false
	if f, err := os.Open(real); err == nil {
		head, _ := io.ReadAll(io.LimitReader(f, 4<<10))
		f.Close()
		earlier = st.Size() == 0 || report.Began(head)
	}
	for _, in := range inputs {
		names := []string{in}
		if m, err := filepath.Glob(in); err == nil {
			names = append(names, m...)
		}
		for _, name := range names {
			is, err := os.Stat(name)
			if err != nil {
				continue
			}
			folder, err := realPath(name)
			switch {
			case os.SameFile(st, is):
			case err == nil && is.IsDir() && !earlier && strings.HasPrefix(real, strings.TrimSuffix(folder, string(filepath.Separator))+string(filepath.Separator)):
			default:
				continue
			}
			return fmt.Errorf("%w: --output %s would replace what is to be read; name another file", errUsage, o.file)
		}
	}
	return nil
}

// realPath is the absolute path without links.
func realPath(name string) (string, error) {
	abs, err := filepath.Abs(name)
	if err != nil {
		return "", err
	}
	return filepath.EvalSymlinks(abs)
}

// write sends a result to standard output or to the file asked for. A file
// appears only when it is complete; what is no file (a terminal, a pipe, a
// device) is written to as it is.
func (a *app) write(out output, fn func(io.Writer, report.Options) error) error {
	if out.file == "" || out.file == "-" {
		return fn(a.out, out.options(a.out))
	}
	name := out.file
	if real, err := filepath.EvalSymlinks(name); err == nil {
		name = real
	}
	mode := os.FileMode(0o666)
	st, err := os.Stat(name)
	switch {
	case err == nil && st.IsDir():
		return fmt.Errorf("%w: --output %s is a folder", errUsage, out.file)
	case err == nil && !st.Mode().IsRegular():
		f, err := os.OpenFile(name, os.O_WRONLY, 0)
		if err != nil {
			return fmt.Errorf("%w: %w", errWrite, err)
		}
		return errors.Join(fn(f, out.options(f)), f.Close())
	case err == nil:
		mode = st.Mode().Perm()
	}
	f, err := partial(name, mode)
	if err != nil {
		return fmt.Errorf("%w: %w", errWrite, err)
	}
	if err = fn(f, out.options(f)); err != nil {
		f.Close()
		os.Remove(f.Name())
		// What was to be written may be what failed: an input that is not there.
		if at := (*fs.PathError)(nil); !errors.As(err, &at) || at.Path != f.Name() {
			return err
		}
		return fmt.Errorf("%w: %w", errWrite, err)
	}
	if err = f.Close(); err == nil {
		err = os.Rename(f.Name(), name)
	}
	if err != nil {
		os.Remove(f.Name())
		return fmt.Errorf("%w: %w", errWrite, err)
	}
	return nil
}

// partial creates a file beside name that nothing else is called.
func partial(name string, mode os.FileMode) (*os.File, error) {
	for n := 0; ; n++ {
		tmp := name + ".partial"
		if n > 0 {
			tmp += fmt.Sprint(n)
		}
		f, err := os.OpenFile(tmp, os.O_RDWR|os.O_CREATE|os.O_EXCL, mode)
		if errors.Is(err, os.ErrExist) && n < 1000 {
			continue
		}
		return f, err
	}
}

// progress draws a line on a terminal for work of more than a second.
func (a *app) progress() func(done, total int) {
	f, ok := a.err.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return nil
	}
	start, last := time.Now(), time.Time{}
	return func(done, total int) {
		now := time.Now()
		if now.Sub(start) < time.Second || now.Sub(last) < 100*time.Millisecond && done < total {
			return
		}
		last = now
		fmt.Fprintf(f, "\r\x1b[Kreading %d of %d", done, total)
		if done == total {
			fmt.Fprint(f, "\r\x1b[K")
		}
	}
}
