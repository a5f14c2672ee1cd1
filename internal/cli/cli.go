// Package cli holds the commands: one file each, one table, one place that maps
// an outcome to a process status. It wires the readers, the catalogue and the
// clock into the engine.
package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
	"unicode"

	"github.com/spf13/cobra"

	"github.com/inquest-dev/inquest/encyclopedia"
	"github.com/inquest-dev/inquest/internal/catalog"
	"github.com/inquest-dev/inquest/internal/early"
	"github.com/inquest-dev/inquest/internal/engine"
	"github.com/inquest-dev/inquest/internal/explain"
	"github.com/inquest-dev/inquest/internal/lazyre"
	"github.com/inquest-dev/inquest/internal/process"
	"github.com/inquest-dev/inquest/internal/reader/all"
)

// Version is set by the release script; a build from source says so.
var Version = ""

var (
	errUsage = errors.New("wrong usage")
	errFault = errors.New("a fault was found") // only with --fail-on fault
	// errUnread is for input that holds nothing to answer from; the report
	// that says so is written all the same.
	errUnread = errors.New("nothing readable in what was named")
	errNoRun  = errors.New("nothing of a training run was recognised")
	// errCutShort is for input that shows no failure as far as it could be read.
	errCutShort = errors.New("no failure found, but not all of what was named could be read")
	errWrite    = errors.New("write report")
	// errInconclusive is for trials that show neither yes nor no; the report that says why is
	// written all the same.
	errInconclusive = errors.New("inconclusive")
	errNotVerified  = errors.New("not verified") // the report says why
	errDamaged      = errors.New("part of an evidence file could not be read; the rest was written")
)

// exitCode is the only place that maps an outcome to a process status.
// docs/cli.md prints the same table.
func exitCode(err error) int {
	var child childStatus
	switch {
	case err == nil:
		return 0
	case errors.As(err, &child):
		return int(child)
	case errors.Is(err, errUsage):
		return 2
	case errors.Is(err, errFault), errors.Is(err, errNotVerified):
		return 3
	case errors.Is(err, errInconclusive):
		return 4
	case errors.Is(err, context.Canceled):
		return 130
	default:
		return 1
	}
}

// An app is one invocation.
type app struct {
	args     []string
	in       io.Reader
	out, err io.Writer
	rules    []string // --rules
	format   string   // --format of the command that ran, for errors

	started        *early.Start    // the command of run, where it runs already
	caught         *process.Caught // the signals that it is still to get
	keepInterrupts func()          // the command takes interrupts itself from now on
	trying         atomic.Bool     // trials are made: an interrupt ends the one that runs, and a report follows
}

// commands is the table of commands. Adding one is a row here and a file beside
// this one.
var commands = []func(*app) *cobra.Command{
	diagnoseCommand,
	scanCommand,
	boundaryCommand,
	memoryCommand,
	gpusCommand,
	trackerCommand,
	runCommand,
	verifyCommand,
	explainCommand,
	newCommand,
	incidentCommand,
	serveCommand,
	mcpCommand,
	debugCommand,
	versionCommand,
}

// Main runs one invocation and returns the process status.
func Main(args []string, in io.Reader, out, errw io.Writer) int {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	interrupts := make(chan os.Signal, 1)
	started := early.Take(args)
	var caught *process.Caught
	switch {
	case started != nil:
	case len(args) > 0 && args[0] == "run":
		// They are the command's, which is still to be started.
		caught = process.Catch()
		defer caught.Release()
	default:
		signal.Notify(interrupts, os.Interrupt)
	}
	stop := func() { signal.Stop(interrupts) }
	defer stop()
	if os.Getenv("GOGC") == "" && os.Getenv("GOMEMLIMIT") == "" {
		// A small log needs no collection at all; a folder of many is held near
		// the limit, to which the program itself adds some 15 MiB.
		debug.SetGCPercent(400)
		debug.SetMemoryLimit(memory)
		runtime.SetFinalizer(&collection{}, (*collection).ended)
	}
	a := &app{args: args, in: in, out: out, err: errw, keepInterrupts: stop, started: started, caught: caught}
	done := make(chan error, 1)
	go func() { done <- a.run(ctx, args) }()
	var err error
	select {
	case err = <-done:
	case <-interrupts:
		cancel()
		stop() // a second interrupt ends the process at once
		wait := grace
		if a.trying.Load() {
			wait = lastTrial
		}
		select {
		case err = <-done:
		case <-time.After(wait):
			// Nothing interrupts a read that waits for its bytes: standard input
			// that nobody writes to, a file on a server that does not answer.
			err = ctx.Err()
		}
	}
	a.complain(err)
	return exitCode(err)
}

// memory is what a run should do with. What is kept of a thousand ranks is half of
// that: a limit nearer to it costs more than their reading.
const memory = 80 << 20

// A collection is garbage, so that its finalizer runs once in each collection.
type collection struct{ _ [16]byte }

// ended raises the limit where what is in use comes near it: collecting without
// end would not make it less. It watches the next collection then.
func (c *collection) ended() {
	live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	if metrics.Read(live); live[0].Value.Kind() == metrics.KindUint64 {
		debug.SetMemoryLimit(max(memory, int64(live[0].Value.Uint64())*3/2))
	}
	runtime.SetFinalizer(c, (*collection).ended)
}

// grace is how long an interrupted run may take to notice it.
const grace = time.Second

// lastTrial is how long a series of trials may take to end the one that runs, to diagnose it
// and to say what was found until then.
const lastTrial = 90 * time.Second

func (a *app) run(ctx context.Context, args []string) error {
	root := a.root()
	root.SetArgs(withDefault(root, args))
	ran, err := root.ExecuteContextC(ctx)
	if f := ran.Flags().Lookup("format"); f != nil {
		a.format = f.Value.String()
	}
	return err
}

// root builds the command tree.
func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "inquest",
		Short: "What failed first in a GPU training run, why, and the one change to make",
		Long: `inquest reads what a failed or running GPU training job left behind (job logs of
one process or many ranks, and the machine's records beside them) and says what
failed first and what only followed, whether a memory failure or a non-finite
loss came first, why, and the one change to make with the command that checks it.

inquest PATH... is short for inquest diagnose PATH...

Everything runs on this machine. Nothing is uploaded, and nothing that is read is
executed or changed; run, boundary and verify start the command that they are given.`,
		Example: `  inquest diagnose logs/                 a folder of logs
  inquest logs/                          the same: a path alone is diagnosed
  inquest diagnose slurm-4711.out        one log
  kubectl logs my-job | inquest diagnose -
  inquest run -- python train.py         record a run, and diagnose it if it fails
  inquest tracker show wandb/            what an experiment tracker recorded, and where it broke
  inquest explain fragmentation          the encyclopedia, offline
  inquest explain "loss is nan after resume"`,
		SilenceErrors: true, SilenceUsage: true,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				if c := meant(cmd, args[0]); c != "" {
					return fmt.Errorf("%w: unknown command %s; did you mean %s?", errUsage, args[0], c)
				}
				return fmt.Errorf("%w: no command %q and no such file; see inquest --help", errUsage, args[0])
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error { return cmd.Help() },
	}
	root.Version = versionLine()
	root.SetVersionTemplate("{{.Version}}\n")
	root.SetIn(a.in)
	root.SetOut(a.out)
	root.SetErr(a.err)
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error {
		return fmt.Errorf("%w: %s", errUsage, parsed.ReplaceAllString(err.Error(), ": not a number"))
	})
	root.PersistentFlags().StringArrayVar(&a.rules, "rules", nil, "folder with your own entries and wordings (entries/**/*.yaml, lines/*.yaml); may be given more than once")
	for _, c := range commands {
		root.AddCommand(c(a))
	}
	root.InitDefaultCompletionCmd()
	if c, _, err := root.Find([]string{"completion"}); err == nil {
		needsCommand(c)
		c.Short, c.Long = "Print the completion script of a shell", "completion prints the script that completes inquest's commands and flags in a shell."
	}
	return root
}

// withDefault makes "inquest PATH…" mean "inquest diagnose PATH…": when a path
// (something that exists, "-", or a glob) stands where no command does, perhaps
// behind flags of diagnose.
func withDefault(root *cobra.Command, args []string) []string {
	for i, arg := range args {
		if arg != "-" && strings.HasPrefix(arg, "-") || i > 0 && args[i-1] == "--rules" {
			continue
		}
		if c, _, err := root.Find([]string{arg}); err == nil && c != root {
			return args
		}
		switch arg {
		case "help", cobra.ShellCompRequestCmd, cobra.ShellCompNoDescRequestCmd:
			return args
		}
		if _, err := os.Stat(arg); err == nil || arg == "-" || strings.ContainsAny(arg, "*?[") {
			return append([]string{"diagnose"}, args...)
		}
		if (i == 0 || !strings.HasPrefix(args[i-1], "-")) && meant(root, arg) != "" {
			return args
		}
	}
	return args
}

// meant is the command that a mistyped name is nearest to, "" where none is
// near.
func meant(root *cobra.Command, name string) string {
	var names []string
	for _, c := range root.Commands() {
		if !c.Hidden {
			names = append(names, c.Name())
		}
	}
	return explain.Nearest(name, names)
}

// catalogue loads the encyclopedia and the folders of --rules.
func (a *app) catalogue() (*catalog.Catalog, error) {
	var extra []fs.FS
	for _, dir := range a.rules {
		if st, err := os.Stat(dir); err != nil || !st.IsDir() {
			return nil, fmt.Errorf("%w: --rules %s is not a folder", errUsage, dir)
		}
		extra = append(extra, os.DirFS(dir))
	}
	c, err := catalog.Load(encyclopedia.FS, extra...)
	if err != nil {
		return nil, fmt.Errorf("load entries: %w", err)
	}
	return c, nil
}

// options are the engine's options for paths.
func (a *app) options(paths []string) (engine.Options, error) {
	c, err := a.catalogue()
	if err != nil {
		return engine.Options{}, err
	}
	return engine.Options{Paths: paths, Stdin: a.in, Catalog: c, Readers: all.Readers(c.Plan()), Version: version(), Workers: runtime.GOMAXPROCS(0)}, nil
}

func version() string {
	if Version != "" {
		return Version
	}
	if b, ok := debug.ReadBuildInfo(); ok && b.Main.Version != "" && b.Main.Version != "(devel)" {
		return b.Main.Version
	}
	return "source"
}

// versionLine names the program and its version for people. A build from a
// checkout says of which commit.
func versionLine() string {
	v := version()
	if v != "source" {
		return "inquest " + v
	}
	b, _ := debug.ReadBuildInfo()
	return "inquest, built from source" + commit(b)
}

// commit is the commit that a build is of, in parentheses, "" where it is not
// recorded.
func commit(b *debug.BuildInfo) string {
	if b == nil {
		return ""
	}
	id, changed := "", ""
	for _, s := range b.Settings {
		switch {
		case s.Key == "vcs.revision":
			id = s.Value[:min(len(s.Value), 12)]
		case s.Key == "vcs.modified" && s.Value == "true":
			changed = ", with changes"
		}
	}
	if id == "" {
		return ""
	}
	return " (commit " + id + changed + ")"
}

// parsed is how a flag that takes a number says that it did not get one.
var parsed = lazyre.New(`: strconv\.\w+: parsing .*: invalid syntax$`)

// complain writes an error for a person, or as JSON where the report is JSON.
func (a *app) complain(err error) {
	var child childStatus
	if err == nil || errors.Is(err, errFault) || errors.Is(err, errNotVerified) || errors.Is(err, errInconclusive) || errors.As(err, &child) {
		return
	}
	if errors.Is(err, context.Canceled) {
		fmt.Fprintln(a.err, "inquest: interrupted")
		return
	}
	if a.format == "json" {
		json.NewEncoder(a.err).Encode(map[string]any{"error": err.Error(), "status": exitCode(err)})
		return
	}
	fmt.Fprintf(a.err, "inquest: %s\n", printable(err.Error()))
	switch {
	case errors.Is(err, errUnread), errors.Is(err, errNoRun):
		fmt.Fprintln(a.err, "hint: name the job's own logs, every rank's and the launcher's, or pipe one into -")
	case errors.Is(err, fs.ErrNotExist) && !errors.Is(err, errWrite):
		fmt.Fprintln(a.err, "hint: name a file, a folder, an archive, or - for standard input")
	}
}

// printable escapes what a terminal or an editor would act on in text: an error
// repeats what the command line, a file name or a rule said.
func printable(text string) string {
	var b strings.Builder
	for _, r := range text {
		if r != '\n' && r != '\t' && !unicode.IsPrint(r) {
			fmt.Fprint(&b, strings.Trim(strconv.QuoteRune(r), "'"))
			continue
		}
		b.WriteRune(r)
	}
	return b.String()
}

// needsCommand is for commands that only hold others: alone they print their
// help, and a word that is none of the others is refused.
func needsCommand(cmd *cobra.Command) *cobra.Command {
	cmd.Args = func(_ *cobra.Command, args []string) error {
		if len(args) > 0 {
			return fmt.Errorf("%w: %s has no %q; see inquest %s --help", errUsage, cmd.Name(), args[0], cmd.Name())
		}
		return nil
	}
	cmd.RunE = func(*cobra.Command, []string) error { return cmd.Help() }
	return cmd
}

// noArgs refuses arguments.
func noArgs(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return fmt.Errorf("%w: %s takes no argument %q", errUsage, cmd.Name(), args[0])
	}
	return nil
}

// oneOf checks a flag's value.
func oneOf(flag, value string, of ...string) error {
	for _, v := range of {
		if v == value {
			return nil
		}
	}
	return fmt.Errorf("%w: --%s %q; one of %s", errUsage, flag, value, strings.Join(of, ", "))
}
