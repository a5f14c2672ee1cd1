package trial

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// ErrOverwrite is why a command is refused: it would write over what is there.
var ErrOverwrite = errors.New("a trial would write over what is there")

// An Overwrite names the argument for which a command is refused.
type Overwrite struct {
	Argument string // as it stands in the command
	Path     string // what it names
	Holds    string // what is there, in words
	Name     string // the option, "" for an argument without one
}

func (o *Overwrite) Error() string {
	way := fmt.Sprintf("put {OUT} in its place, and each trial has a folder of its own, or allow it with --allow-writes %q", o.Path)
	if o.Name == "" {
		way += "; if it is only read, --reads says so"
	}
	return fmt.Sprintf("%s: %q names %s, %s; %s", ErrOverwrite, o.Argument, o.Path, o.Holds, way)
}

func (o *Overwrite) Unwrap() error { return ErrOverwrite }

// A Guard refuses commands that would write over what a user has. It looks at what the
// command itself says: options that by their names take output, and every argument that
// names a folder with checkpoints in it. What a script or a configuration file names,
// it cannot see.
type Guard struct {
	Dir    string   // from which relative paths count; "" is this process's
	Own    []string // scratch folders: what lies in them may be written
	Writes []string // what the user allows to be written, and all below
	Reads  []string // what the user says is only read, and all below

	fresh map[string]bool // outputs that were not there when they were first asked about
	again map[string]bool // those of them that a later command named too
}

// Check refuses a command, with the variables that are set for it, by an *Overwrite. A folder
// that was not there when the guard first saw it named is a trial's own: later trials may name
// it again, and Shared tells of it.
func (g *Guard) Check(command, env []string) error {
	all := slices.Clone(command)
	for _, v := range env {
		if name, _, _ := strings.Cut(v, "="); !ours(name) {
			all = append(all, v)
		}
	}
	for i := 0; i < len(all); i++ {
		if i == 0 && len(command) > 0 {
			continue // the program
		}
		if strings.ContainsAny(all[i], " \t\n") {
			if err := g.Check(append([]string{""}, shellWords(all[i])...), nil); err != nil {
				return err
			}
		}
		name, value, joined := optionOf(all[i])
		next := ""
		if name != "" && !joined && i+1 < len(all) && !strings.HasPrefix(all[i+1], "-") {
			next = all[i+1]
			value = next
		}
		if name == "" {
			value = all[i]
		}
		if err := g.argument(all[i], name, value); err != nil {
			var o *Overwrite
			if errors.As(err, &o) && next != "" {
				o.Argument += " " + next
			}
			return err
		}
		if next != "" && (writes(name) || reads(name)) {
			i++
		}
	}
	return nil
}

// Shared are the outputs outside the scratch folders that more than one trial wrote into.
func (g *Guard) Shared() []string {
	var out []string
	for p := range g.again {
		out = append(out, p)
	}
	slices.Sort(out)
	return out
}

// argument looks at one argument: name is its option, "" where it has none.
func (g *Guard) argument(arg, name, value string) error {
	if hub(name) && !off(value) {
		return &Overwrite{arg, "a repository of a hub", "where every trial would put its model", name}
	}
	if value == "" || reads(name) {
		return nil
	}
	output := writes(name)
	if i := strings.Index(value, "://"); i > 0 && !strings.HasPrefix(value, "file://") {
		if output && !slices.Contains(g.Writes, value) && !harmless(value) {
			return &Overwrite{arg, value, "which cannot be looked into from here", name}
		}
		return nil
	}
	path := g.real(strings.TrimPrefix(value, "file://"))
	if within(path, g.Own, g.real) || within(path, g.Writes, g.real) {
		return nil
	}
	if !output && within(path, g.Reads, g.real) {
		return nil
	}
	holds, checkpoints := lookInto(path)
	switch {
	case holds == "":
		if output {
			g.first(path)
		}
		return nil
	case output && g.fresh[path]:
		if g.again == nil {
			g.again = map[string]bool{}
		}
		g.again[path] = true
		return nil
	case output, checkpoints:
		return &Overwrite{arg, path, "which holds " + holds, name}
	}
	return nil
}

func (g *Guard) first(path string) {
	if g.fresh == nil {
		g.fresh = map[string]bool{}
	}
	g.fresh[path] = true
}

// real is where a path leads: absolute, and without links as far as it exists.
func (g *Guard) real(path string) string {
	if rest, ok := strings.CutPrefix(path, "~/"); ok {
		if home, err := os.UserHomeDir(); err == nil {
			path = filepath.Join(home, rest)
		}
	}
	if strings.Contains(path, "$") {
		path = os.ExpandEnv(path)
	}
	if !filepath.IsAbs(path) && g.Dir != "" {
		path = filepath.Join(g.Dir, path)
	}
	if abs, err := filepath.Abs(path); err == nil {
		path = abs
	}
	// A part that does not exist yet cannot be a link.
	for dir, rest := path, ""; ; {
		if real, err := filepath.EvalSymlinks(dir); err == nil {
			return filepath.Join(real, rest)
		}
		up := filepath.Dir(dir)
		if up == dir {
			return path
		}
		dir, rest = up, filepath.Join(filepath.Base(dir), rest)
	}
}

// within reports whether path is one of dirs or lies below one.
func within(path string, dirs []string, real func(string) string) bool {
	return slices.ContainsFunc(dirs, func(d string) bool {
		if d == "" {
			return false
		}
		rel, err := filepath.Rel(real(d), path)
		return err == nil && rel != ".." && !strings.HasPrefix(rel, ".."+string(filepath.Separator))
	})
}

// mostLooked bounds how many names of a folder are looked at.
const mostLooked = 10_000

// lookInto says what a path holds, "" where nothing is there or nothing in it, and whether
// that are checkpoints or the files of a tracker.
func lookInto(path string) (holds string, checkpoints bool) {
	st, err := os.Stat(path)
	if err != nil {
		return "", false
	}
	if !st.IsDir() {
		if st.Mode().IsRegular() && st.Size() > 0 {
			return fmt.Sprintf("a file of %d bytes", st.Size()), false
		}
		return "", false
	}
	names, more := namesIn(path)
	if len(names) == 0 {
		return "", false
	}
	var found []string
	for _, n := range names {
		if checkpointLike(n) {
			found = append(found, n)
		}
	}
	for _, n := range names {
		if len(found) > 0 || strings.HasPrefix(n, ".") {
			continue
		}
		// lightning_logs/version_0/checkpoints, runs/NAME: one folder further down.
		inner, _ := namesIn(filepath.Join(path, n))
		for _, m := range inner {
			if checkpointLike(m) {
				found = append(found, filepath.Join(n, m))
			}
		}
	}
	count := fmt.Sprintf("%d names", len(names))
	if len(names) == 1 {
		count = "1 name"
	}
	if more {
		count = fmt.Sprintf("more than %d names", mostLooked)
	}
	if len(found) == 0 {
		return fmt.Sprintf("%s, as %q", count, names[0]), false
	}
	return fmt.Sprintf("%s, as %q", count, found[0]), true
}

// namesIn are the names in a folder in their order, as many as are looked at; none where it
// is no folder or cannot be read.
func namesIn(dir string) (names []string, more bool) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, false
	}
	defer f.Close()
	names, err = f.Readdirnames(mostLooked + 1)
	if err != nil && err != io.EOF {
		return nil, false
	}
	slices.Sort(names)
	if len(names) > mostLooked {
		return names[:mostLooked], true
	}
	return names, false
}

// checkpointLike reports whether a name is one that checkpoints and trackers give.
func checkpointLike(name string) bool {
	low := strings.ToLower(name)
	for _, end := range []string{".ckpt", ".pt", ".pth", ".safetensors", ".distcp", ".index.json"} {
		if strings.HasSuffix(low, end) {
			return true
		}
	}
	for _, begin := range []string{"checkpoint-", "checkpoint_", "events.out.tfevents", "global_step", "pytorch_model", "iter_", "epoch=", "step_"} {
		if strings.HasPrefix(low, begin) {
			return true
		}
	}
	switch low {
	case "checkpoint", "checkpoints", "latest_checkpointed_iteration.txt", "trainer_state.json", "optimizer.bin", "adapter_model.bin":
		return true
	}
	return false
}

// optionOf takes an argument apart: --name=value, --name, -o, name=value, +name=value. The
// name is in lower case with _ for -, and without the dashes.
func optionOf(arg string) (name, value string, joined bool) {
	dashes := len(arg) - len(strings.TrimLeft(arg, "-"))
	name, value, joined = strings.Cut(strings.TrimLeft(arg, "-+~"), "=")
	if dashes == 0 && !joined || name == "" || strings.ContainsAny(name, "/\\ ") {
		return "", "", false
	}
	return strings.ReplaceAll(strings.ToLower(name), "-", "_"), value, joined
}

// readNames begin the names of options whose value is only read, and readWords stand in them.
var (
	readNames = []string{"resume", "load", "data", "model_name_or_path", "model_path", "pretrained", "tokenizer", "config", "train_file", "train_data", "valid", "test_", "eval_", "init_", "from_", "ckpt_path", "restore", "deepspeed", "teacher", "base_model", "vocab"}
	readWords = []string{"_from_", "resume", "pretrained", "dataset", "data_dir", "data_path", "restore_from", "load_"}
)

// reads reports whether the value of an option is only read, by its name.
func reads(name string) bool {
	if name == "" {
		return false
	}
	last := name[strings.LastIndexByte(name, '.')+1:]
	switch last {
	case "model", "model_name", "reward_model", "ref_model", "draft_model", "reference_model", "input", "input_dir", "source":
		return true
	}
	return slices.ContainsFunc(readNames, func(p string) bool { return strings.HasPrefix(last, p) }) && !strings.HasSuffix(last, "output_dir") ||
		slices.ContainsFunc(readWords, func(p string) bool { return strings.Contains(last, p) })
}

// writeNames begin the names of options that take output, and writeWords stand in them.
var (
	writeNames = []string{"output", "out_", "outdir", "save", "checkpoint", "ckpt", "logdir", "log_dir", "logging_dir", "log_path", "exp", "default_root_dir", "work_dir", "workdir", "run_dir", "rundir", "result", "project_dir", "dump", "tensorboard", "tb_", "artifact", "snapshot", "model_dir", "weights_save_path", "store_dir", "train_dir", "serialization_dir"}
	writeWords = []string{"output_dir", "out_dir", "save_dir", "save_path", "checkpoint_dir", "ckpt_dir", "log_dir", "root_dir", "results_dir"}
)

// writes reports whether an option takes output, by its name.
func writes(name string) bool {
	switch name {
	case "":
		return false
	case "o", "out", "hydra.run.dir", "hydra.sweep.dir":
		return true
	}
	last := name[strings.LastIndexByte(name, '.')+1:]
	return !reads(name) && (slices.ContainsFunc(writeNames, func(p string) bool { return strings.HasPrefix(last, p) }) ||
		slices.ContainsFunc(writeWords, func(p string) bool { return strings.Contains(last, p) }))
}

// hub reports whether an option asks to upload the model.
func hub(name string) bool { return name == "push_to_hub" || strings.HasSuffix(name, ".push_to_hub") }

// off reports whether a value of a switch means no.
func off(value string) bool {
	switch strings.ToLower(value) {
	case "false", "0", "no", "off", "none":
		return true
	}
	return false
}

// harmless reports whether an address holds nothing that a trial could write over.
func harmless(url string) bool {
	return strings.HasPrefix(url, "tcp://") || strings.HasPrefix(url, "env://") || strings.HasPrefix(url, "http://127.") || strings.HasPrefix(url, "http://localhost")
}

// shellWords are the words of a command that stands in one argument, as of bash -c, near
// enough to find paths in them: quotes are taken away, separators part words.
func shellWords(text string) []string {
	return strings.FieldsFunc(strings.NewReplacer(`"`, "", `'`, "", ";", " ", "&", " ", "|", " ", "(", " ", ")", " ", ">", " -o ", "\\\n", " ").Replace(text), func(r rune) bool { return r == ' ' || r == '\t' || r == '\n' })
}
