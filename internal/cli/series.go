package cli

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/inquest-dev/inquest/internal/evidence"
	"github.com/inquest-dev/inquest/internal/incident"
	"github.com/inquest-dev/inquest/internal/store"
	"github.com/inquest-dev/inquest/internal/trial"
)

// seriesFlags are the flags of commands that run the user's command more than once.
type seriesFlags struct {
	scratchFlags
	set, writes      []string
	online, clean    bool
	checkpoint, seed string
	timeout          time.Duration
}

// scratchFlags say where trials write, and what they only read.
type scratchFlags struct {
	reads      []string
	root, disk string
	keep       bool
}

// flags adds them; keep says which folders are kept.
func (f *scratchFlags) flags(cmd *cobra.Command, keep string) {
	fl := cmd.Flags()
	fl.StringArrayVar(&f.reads, "reads", nil, "the command only reads this folder; may be given more than once")
	fl.StringVar(&f.root, "scratch", "", "make the folders for {OUT} below this one (default: in the store)")
	fl.StringVar(&f.disk, "disk", "20GiB", "stop when all trials have written more than this into their folders; 0 is no bound")
	fl.BoolVar(&f.keep, "keep", false, keep)
}

// scratch is where the trials of the series of that id write.
func (f *scratchFlags) scratch(s *store.Store, id string, online bool) (*trial.Scratch, error) {
	root := f.root
	if root == "" {
		root = filepath.Join(s.Dir(), "scratch")
	}
	root, err := filepath.Abs(root)
	if err != nil {
		return nil, err
	}
	disk, err := evidence.ParseBytes(f.disk)
	if err != nil {
		return nil, fmt.Errorf("%w: --disk %w", errUsage, err)
	}
	return &trial.Scratch{Root: filepath.Join(root, id), Online: online, Keep: f.keep, Disk: disk}, nil
}

func (f *seriesFlags) flags(cmd *cobra.Command) {
	fl := cmd.Flags()
	fl.StringArrayVar(&f.set, "set", nil, "NAME=value to set for the command; {NAME} and {OUT} are replaced in it; may be given more than once")
	fl.StringArrayVar(&f.writes, "allow-writes", nil, "what is in this folder or file may be written over; may be given more than once")
	f.scratchFlags.flags(cmd, "keep the folders of trials that passed")
	fl.BoolVar(&f.online, "online", false, "let the command ask hubs for models and data")
	fl.BoolVar(&f.clean, "clean", false, "start every trial from the same checkpoint and seed")
	fl.StringVar(&f.checkpoint, "checkpoint", "", "file or folder of which each trial gets a fresh copy, {CHECKPOINT}")
	fl.StringVar(&f.seed, "seed", "", "whole number that stands for {SEED}")
	fl.DurationVar(&f.timeout, "timeout", 0, "end a trial after this time; it decides nothing then; 0 is no bound")
}

// check says what is wrong with the flags for a command.
func (f *seriesFlags) check(args []string) error {
	for _, v := range f.set {
		if name, _, ok := strings.Cut(v, "="); !ok || name == "" {
			return fmt.Errorf("%w: --set %q; as NAME=value", errUsage, v)
		}
	}
	if f.timeout < 0 {
		return fmt.Errorf("%w: --timeout is below 0", errUsage)
	}
	if f.seed != "" {
		if _, err := strconv.ParseUint(f.seed, 10, 32); err != nil {
			return fmt.Errorf("%w: --seed %q; a whole number from 0 to 4294967295", errUsage, f.seed)
		}
	}
	all := slices.Concat(args, f.set)
	if len(trial.Names(all, []string{"CHECKPOINT"})) > 0 && f.checkpoint == "" && !f.clean {
		return fmt.Errorf("%w: {CHECKPOINT} stands in the command; --checkpoint says of what it is a copy", errUsage)
	}
	if len(trial.Names(all, []string{"SEED"})) > 0 && f.seed == "" {
		return fmt.Errorf("%w: {SEED} stands in the command; --seed says which", errUsage)
	}
	return nil
}

// A series makes trials of one command, each in a folder of its own.
type series struct {
	flags   *seriesFlags
	guard   *trial.Guard
	scratch *trial.Scratch
	from    string // checkpoint that each trial gets a copy of, as the command may name it
	seed    string
	notes   []string
}

// series prepares the trials of the series of that id. original may be nil.
func (f *seriesFlags) series(s *store.Store, id string, args []string, original *incident.Incident) (*series, error) {
	scratch, err := f.scratch(s, id, f.online)
	if err != nil {
		return nil, err
	}
	x := &series{flags: f, seed: f.seed, from: f.checkpoint, scratch: scratch}
	if f.clean {
		x.cleanStart(args, original)
	}
	if x.from != "" {
		if _, err := os.Stat(x.from); err != nil {
			return nil, fmt.Errorf("copy checkpoint: %w", err)
		}
		if x.scratch.Checkpoint, err = filepath.Abs(x.from); err != nil {
			return nil, err
		}
	}
	x.guard = &trial.Guard{Own: []string{x.scratch.Root}, Writes: f.writes, Reads: f.reads}
	return x, nil
}

// cleanStart finds the checkpoint and seed of --clean.
func (x *series) cleanStart(args []string, original *incident.Incident) {
	if x.from == "" && original != nil && original.OnCall != nil && original.OnCall.Lost != nil {
		x.from = original.OnCall.Lost.Checkpoint
	}
	if x.from == "" {
		x.notes = append(x.notes, "No checkpoint is recorded and none was named (--checkpoint): each trial begins as the command itself does.")
	}
	for i, arg := range args {
		name, value, joined := strings.Cut(arg, "=")
		if x.seed != "" || strings.TrimLeft(name, "-+") != "seed" {
			continue
		}
		if !joined && i+1 < len(args) {
			value = args[i+1]
		}
		if _, err := strconv.ParseUint(value, 10, 32); err == nil {
			x.seed = value
		}
	}
	if x.seed == "" {
		x.notes = append(x.notes, "No seed is in the command and none was named (--seed): trials may draw other numbers each time.")
	}
}

// make makes one trial of the template of j with its values, in a new folder of that name.
func (x *series) make(ctx context.Context, run trial.Run, j trial.Job, template []string, name string) (*trial.Made, error) {
	// The command is checked before anything is made, with a folder that is not there.
	out := filepath.Join(x.scratch.Root, name)
	command, env := x.filled(template, j.Values, out)
	if err := x.guard.Check(command, env); err != nil {
		return nil, err
	}
	dir, err := x.scratch.New(name)
	if err != nil {
		return nil, err
	}
	j.Command, j.Env = x.filled(template, j.Values, dir)
	j.Out = dir
	watched, stop := x.scratch.Watch(ctx)
	d, err := run(watched, j)
	cause := context.Cause(watched)
	stop()
	if err != nil {
		x.scratch.Remove(dir)
		return nil, err
	}
	m := &trial.Made{Done: *d, Checkpoint: trial.HoldsCheckpoint(dir)}
	if errors.Is(cause, trial.ErrDisk) && m.Trial.Exit != nil {
		m.Trial.Exit.Stopped = incident.StoppedDisk
		v := trial.Judge(*m.Trial.Exit, m.Diagnosis)
		v.Text += fmt.Sprintf(" The trials wrote more than --disk %s.", x.flags.disk)
		m.Trial.Verdict = &v
	}
	size, _ := trial.TreeSize(context.WithoutCancel(ctx), dir)
	if v := m.Trial.Verdict; v != nil && v.Result == incident.Passed || size == 0 {
		if err := x.scratch.Remove(dir); err != nil {
			x.notes = append(x.notes, fmt.Sprintf("A scratch folder could not be removed: %s.", err))
		}
	}
	return m, nil
}

// filled is the command of one trial and what is set for it, out being its folder.
func (x *series) filled(template []string, values map[string]string, out string) (command, env []string) {
	r := trial.Replacements(values)
	r[trial.Out] = out
	copied := filepath.Join(out, trial.CheckpointCopy)
	if x.seed != "" {
		r["SEED"] = x.seed
	}
	if x.scratch.Checkpoint != "" {
		r["CHECKPOINT"] = copied
	}
	command = trial.Fill(template, r)
	if x.flags.clean && x.scratch.Checkpoint != "" {
		command = x.instead(command, copied)
	}
	env = trial.Variables(out, x.flags.online)
	if x.flags.clean && x.seed != "" {
		env = append(env, "PYTHONHASHSEED="+x.seed, "PL_GLOBAL_SEED="+x.seed)
	}
	return command, append(env, trial.Fill(x.flags.set, r)...)
}

// instead puts the copy of the checkpoint where the command names the original.
func (x *series) instead(command []string, copied string) []string {
	out := slices.Clone(command)
	for i, arg := range out {
		name, value, joined := strings.Cut(arg, "=")
		if !joined {
			name, value = "", arg
		}
		if value == "" {
			continue
		}
		abs, err := filepath.Abs(value)
		if err != nil || abs != x.scratch.Checkpoint {
			continue
		}
		if joined {
			out[i] = name + "=" + copied
		} else {
			out[i] = copied
		}
	}
	return out
}

// limits are what a reader of the result must know of how the trials were made.
func (x *series) limits() []string {
	out := slices.Clone(x.notes)
	for _, p := range x.guard.Shared() {
		out = append(out, fmt.Sprintf("More than one trial wrote into %s, which was not there before: a trial may have gone on from the one before. {OUT} gives each a folder of its own.", p))
	}
	return out
}

func sortedNames(values map[string]string) []string { return slices.Sorted(maps.Keys(values)) }
