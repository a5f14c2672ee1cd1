package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/inquest-dev/inquest/internal/catalog"
	"github.com/inquest-dev/inquest/internal/gpu"
	"github.com/inquest-dev/inquest/internal/incident"
	"github.com/inquest-dev/inquest/internal/ledger"
	"github.com/inquest-dev/inquest/internal/report"
	"github.com/inquest-dev/inquest/internal/store"
	"github.com/inquest-dev/inquest/internal/trial"
)

// A childStatus is the status of a command that was run, which is this program's own.
type childStatus int

func (s childStatus) Error() string { return fmt.Sprintf("the command ended with status %d", int(s)) }

// runFlags are the flags of inquest run.
type runFlags struct {
	store       storeFlag
	diagnose    bool
	noDiagnose  bool
	every       float64
	incident    string
	termination string
}

func runCommand(a *app) *cobra.Command {
	var f runFlags
	cmd := &cobra.Command{
		Use:   "run [--] CMD [ARG...]",
		Short: "Run a command unchanged, keep its log and its memory, and diagnose it if it fails",
		Long: `run starts CMD and stays out of its way: it reads, prints, is signalled and ends as
without inquest, and its status is returned. Its output passes through as it
comes; on a terminal it runs on a pseudo-terminal, as with script(1).

Beside it are kept, in the store: all that it prints, from before it starts;
memory of its processes and devices, once a second; the command, its
environment, versions and the state of its code, secrets masked; and how it
ended. If it fails, it is diagnosed at once, on standard error, and kept as an
incident. A store that cannot be written never keeps it from running.

Status: that of CMD; 128 and the signal's number where a signal ended it; 126
where it could not be executed, 127 where it was not found; 2 wrong usage.`,
		Example: `  inquest run python train.py --batch-size 64
  inquest run torchrun --nproc-per-node 8 train.py
  srun inquest run python train.py
  inquest run --sample 0.2 -- accelerate launch train.py`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return fmt.Errorf("%w: name the command to run", errUsage)
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if f.every < 0 || f.every != 0 && f.every < 0.01 || f.every > 3600 {
				return fmt.Errorf("%w: --sample %g; 0, or from 0.01 to 3600 seconds", errUsage, f.every)
			}
			return a.runUnchanged(cmd.Context(), f, args)
		},
	}
	fl := cmd.Flags()
	fl.SetInterspersed(false)
	f.store.flag(cmd)
	fl.BoolVar(&f.diagnose, "diagnose", false, "diagnose it also when it succeeds")
	fl.BoolVar(&f.noDiagnose, "no-diagnose", false, "only keep it")
	fl.Float64Var(&f.every, "sample", 1, "seconds between two samples of memory; 0 takes none")
	fl.StringVar(&f.incident, "incident", "", "the incident that this run is about")
	fl.StringVar(&f.termination, "termination-log", "", "write what failed first, at most 4096 bytes, to this file (default /dev/termination-log, in a container of Kubernetes)")
	cmd.MarkFlagsMutuallyExclusive("diagnose", "no-diagnose")
	return cmd
}

// runUnchanged runs args in the place of this process, and says on standard error what came of
// it where it failed.
func (a *app) runUnchanged(ctx context.Context, f runFlags, args []string) error {
	// From here on no signal ends this process: the command gets them, also those that came
	// before it was started, and after its end they end the diagnosis. Nor does a standard error that nobody reads: see record.Run.
	stops := make(chan os.Signal, 16)
	for _, s := range []os.Signal{os.Interrupt, syscall.SIGTERM, syscall.SIGHUP} {
		if !signal.Ignored(s) {
			signal.Notify(stops, s)
		}
	}
	a.keepInterrupts()
	if a.started == nil && ctx.Err() != nil {
		return ctx.Err() // nobody waits for a command any more
	}

	var s *store.Store
	if dir, err := storeDir(f.store.dir); err == nil {
		s = store.Open(dir)
	}
	r, err := a.record(context.Background(), recording{
		job:   trial.Job{By: incident.ByRun, Incident: f.incident, Command: args},
		store: s, in: stream(a.in), out: stream(a.out), er: stream(a.err), forward: true,
		started: a.started, caught: a.caught,
		every: time.Duration(f.every * float64(time.Second)), tools: gpu.Tools,
		diagnose: func(e incident.Exit) bool {
			return !f.noDiagnose && (f.diagnose || e.Status != 0) && e.Error == ""
		},
		diagnosing: func() (context.Context, func()) {
			for len(stops) > 0 {
				<-stops // it was for the command
			}
			ctx, cancel := context.WithCancel(context.Background())
			go func() {
				select {
				case <-stops:
					cancel()
				case <-ctx.Done():
				}
			}()
			return ctx, cancel
		},
	})
	if err != nil {
		return err
	}
	var b bytes.Buffer
	a.told(&b, f, args, r)
	if b.Len() > 0 && r.midLine {
		io.WriteString(a.err, "\n")
	}
	a.err.Write(b.Bytes())
	a.terminationLog(f.termination, r)
	if st := r.trial.Exit.Status; st != 0 {
		return childStatus(st)
	}
	return nil
}

// stream is v as an open file, nil where it is none.
func stream(v any) *os.File {
	f, _ := v.(*os.File)
	return f
}

// told writes what a person at the terminal is told: nothing of a success that could be kept.
func (a *app) told(w io.Writer, f runFlags, args []string, r *recorded) {
	t := r.trial
	if t.Exit.Status != 0 || f.diagnose {
		name, end := printable(oneLine(args[0])), printable(oneLine(endWords(*t.Exit)))
		head := fmt.Sprintf("inquest: %s %s", name, end)
		if l := t.Launch; l != nil && l.WorldSize != nil && *l.WorldSize > 1 {
			// Each of many ranks says one line.
			who := ""
			if l.Rank != nil {
				who = fmt.Sprintf("rank %d: ", *l.Rank)
			}
			fmt.Fprintf(w, "inquest: %s%s %s; %s; trial %s\n", who, name, end, printable(strings.TrimSuffix(oneLine(t.Verdict.Text), ".")), t.ID)
		} else {
			if t.Exit.Error == "" {
				head += " after " + r.took.Round(time.Millisecond).String()
			}
			fmt.Fprintln(w, head)
			a.toldDiagnosis(w, r)
			fmt.Fprintf(w, "  trial     %s\n", t.ID)
			if t.Log != "" {
				fmt.Fprintf(w, "  log       %s\n", printable(t.Log))
			}
			if k := ledger.Keep([]incident.Trial{t}, nil); len(k) == 1 && r.folder != "" {
				fmt.Fprintf(w, "  incident  inquest incident show %s%s\n", k[0].ID, f.store.words())
				fmt.Fprintf(w, "  prove     inquest verify --incident %s%s -- %s\n", k[0].ID, f.store.words(), printable(changed(r.diagnosis)))
			}
		}
	}
	for _, u := range r.unshown {
		fmt.Fprintf(w, "inquest: %s\n", printable(oneLine(u)))
	}
	if r.kept != nil {
		where := "nothing of what it printed is kept"
		if t.Log != "" {
			where = "what it printed is in " + t.Log
		}
		fmt.Fprintf(w, "inquest: the run could not be kept in full: %s; %s\n", printable(oneLine(r.kept.Error())), printable(where))
	}
}

// reportHead is how many lines of the report stand for it.
const reportHead = 5

// toldDiagnosis writes the head of the report.
func (a *app) toldDiagnosis(w io.Writer, r *recorded) {
	switch {
	case errors.Is(r.undone, context.Canceled):
		fmt.Fprintln(w, "  the diagnosis was interrupted")
	case r.undone != nil:
		fmt.Fprintf(w, "  it could not be diagnosed: %s\n", printable(oneLine(r.undone.Error())))
	}
	if r.diagnosis == nil {
		return
	}
	var out output
	out.color = "auto"
	var b bytes.Buffer
	if err := report.Write(&b, "text", r.diagnosis, out.options(a.err)); err != nil {
		return
	}
	lines := strings.SplitAfter(b.String(), "\n")
	for _, l := range lines[:min(len(lines), reportHead)] {
		io.WriteString(w, l)
	}
}

// changed is the command to verify: that of the proposed change where it is complete.
func changed(inc *incident.Incident) string {
	if inc != nil && inc.Remedy != nil {
		if _, command, ok := strings.Cut(inc.Remedy.Test, "inquest verify -- "); ok && len(command) <= maxShown && !strings.Contains(command, "\n") {
			return command
		}
	}
	return "CMD (with one thing changed)"
}

// maxShown bounds a command that is shown on a line of its own, in bytes.
const maxShown = 240

// words is the flag as it was given, behind a space; "" where it was not.
func (f *storeFlag) words() string {
	if f.dir == "" {
		return ""
	}
	return " --store " + catalog.ShellWord(f.dir)
}

// oneLine is text on one line.
func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

// terminationLog writes how the command ended and what failed first where a container's message is
// read from. A message that the command left there itself is left alone.
func (a *app) terminationLog(path string, r *recorded) {
	if r.trial.Exit.Status == 0 {
		return
	}
	flags := os.O_WRONLY | os.O_CREATE
	if path == "" {
		if os.Getenv("KUBERNETES_SERVICE_HOST") == "" {
			return
		}
		path, flags = "/dev/termination-log", os.O_WRONLY
	}
	file, err := os.OpenFile(path, flags, 0o644)
	if err != nil {
		return
	}
	defer file.Close()
	if st, err := file.Stat(); err != nil || st.Size() > 0 {
		return
	}
	how := fmt.Sprintf("%s (inquest trial %s)", endWords(*r.trial.Exit), r.trial.ID)
	if r.diagnosis == nil {
		how = fmt.Sprintf("%s: %s (inquest trial %s)", endWords(*r.trial.Exit), r.trial.Verdict.Text, r.trial.ID)
	}
	io.WriteString(file, report.Termination(r.diagnosis, how))
}
