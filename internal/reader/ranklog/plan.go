package ranklog

import (
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/inquest-dev/inquest/internal/evidence"
	"github.com/inquest-dev/inquest/internal/format/memtext"
	"github.com/inquest-dev/inquest/internal/reader"
	"github.com/inquest-dev/inquest/internal/scan"
)

// A wanted is everything that the log reader looks for, compiled once: the
// literals of the plan's wordings, of the structures that this package parses
// itself, and of metric lines, in one matcher.
type wanted struct {
	matcher *scan.Matcher
	words   []*wording
	of      [][]*wording // by atom: the wordings with that literal
	what    []structure  // by atom: the structure that it announces
	metrics int32        // first atom of metric lines; those before are ours
}

// A wording is one line pattern with its expressions, compiled at first use.
type wording struct {
	evidence.Wording
	spec    *evidence.Spec // nil when the line only states facts
	once    sync.Once
	re, not *regexp.Regexp

	needs, notNeeds demand     // of re and not
	notWords        []bareWord // not, if it is nothing else
}

// A structure is a form of text that this package parses itself.
type structure uint8

const (
	aWording   structure = iota // the atom is a wording's literal
	aTrace                      // a Python traceback of any style
	aFrame                      // a line of one, where its start is not in the artifact
	aFatal                      // faulthandler
	aDeviceOOM                  // an allocator's out-of-memory message
	aSummary                    // torchrun's summary of failed workers
	aPrompt                     // a shell command line
	aSetting                    // a configuration key
	aMemTable                   // a table of memory_summary
	aMemStats                   // an entry of memory_stats
	aTime                       // a line that is worth its time and identity only
)

// structures lists the literals of the built-in structures. Prompts are found by
// the command behind them, because "$ " alone is in every other line of code.
var structures = []struct {
	what  structure
	texts []string
}{
	{aTrace, []string{"Traceback (most recent call last)"}},
	{aFrame, []string{`  File "`}},
	{aFatal, []string{"Fatal Python error: "}},
	{aDeviceOOM, []string{"CUDA out of memory", "HIP out of memory", "XPU out of memory", "NPU out of memory", "MUSA out of memory", "MLU out of memory", "MPS backend out of memory", "would exceed allowed memory"}},
	{aSummary, []string{"ChildFailedError:", "Root Cause (first observed failure)"}},
	{aMemTable, []string{"PyTorch CUDA memory", "PyTorch NPU memory", "cudaMalloc retries:", "npuMalloc retries:"}},
	{aMemStats, memtext.Keys},
	{aPrompt, []string{"$ # ", "$ python", "$ torchrun", "$ accelerate ", "$ srun ", "$ sbatch ", "$ deepspeed ", "$ mpirun ", "$ mpiexec ", "$ bash ", "$ sh ",
		"$ ./", "$ CUDA_", "$ PYTORCH_", "$ NCCL_", "$ TORCH_", "$ XLA_", "$ TF_", "$ OMP_", "$ WORLD_SIZE=", "$ nohup ", "$ env ", "$ docker run", "$ ray job", "$ uv run", "$ poetry run", "$ fairseq-train", "$ llamafactory-cli", "$ axolotl ", "$ litgpt ", "$ vllm ",
		"+ python", "+ torchrun", "+ accelerate ", "+ srun ", "+ deepspeed ", "+ mpirun ", "+ exec python", "+ exec torchrun", "+ CUDA_", "+ PYTORCH_", "+ NCCL_", "+ uv run", "+ llamafactory-cli"}},
	{aTime, []string{"uncaught exception", "Uncaught exception", "Unhandled exception", "xception in ", "xception during ", "xception occurred", "Error executing job", " ERROR", "[ERROR", "[NeMo E", "CRITICAL", " cudaDev ", "rocess rank: ", "world_rank=", "WORLD_SIZE", "world_size", "world size", "RANK=", "device=cuda:", "device cuda:", "device: cuda:", "bus=0000", "bus 0000", "bus_id=0000"}},
}

// Atoms returns what the reader looks for, for the plan of package scan.
func Atoms(plan evidence.Plan) []scan.Atom {
	_, atoms := wantedAtoms(plan)
	return atoms
}

func newWanted(plan evidence.Plan) *wanted {
	w, atoms := wantedAtoms(plan)
	w.matcher = scan.New(atoms)
	return w
}

// wantedAtoms returns a wanted without its matcher, and the matcher's atoms.
func wantedAtoms(plan evidence.Plan) (*wanted, []scan.Atom) {
	w := &wanted{}
	index := map[scan.Atom]int{}
	var atoms []scan.Atom
	add := func(a scan.Atom) int {
		i, ok := index[a]
		if !ok {
			i = len(atoms)
			index[a] = i
			atoms = append(atoms, a)
			w.of = append(w.of, nil)
			w.what = append(w.what, aWording)
		}
		return i
	}
	for _, p := range plan.Wordings {
		if p.Literal == "" {
			continue
		}
		word := &wording{Wording: p, spec: evidence.SpecOf(p.Kind)}
		i := add(scan.Atom{Text: p.Literal, Fold: p.Fold})
		w.of[i] = append(w.of[i], word)
		w.words = append(w.words, word)
	}
	for _, s := range structures {
		for _, text := range s.texts {
			w.what[add(scan.Atom{Text: text})] = s.what
		}
	}
	for _, k := range settingAtoms() {
		if i := add(scan.Atom{Text: k}); w.what[i] == aWording {
			w.what[i] = aSetting
		}
	}
	w.metrics = int32(len(atoms))
	return w, append(atoms, metricAtoms()...)
}

// compile prepares the expressions. The catalogue has checked them; one that
// does not compile all the same never matches.
func (w *wording) compile() {
	w.once.Do(func() {
		if w.Regexp != "" {
			re, err := regexp.Compile(w.Regexp)
			if err != nil {
				re = never
			}
			w.re, w.needs = re, demandOf(w.Regexp, w.Literal)
		}
		if w.Not != "" {
			if re, err := regexp.Compile(w.Not); err == nil {
				w.not, w.notNeeds, w.notWords = re, demandOf(w.Not, ""), bareWords(w.Not)
			}
		}
	})
}

var never = regexp.MustCompile(`^\b$`)

// match tries w on text. groups is nil when it does not match.
func (w *wording) match(text string) (groups []string, ok bool) {
	w.compile()
	if w.re == nil {
		literal := strings.TrimRight(w.Literal, " ") // text has no blanks at its end
		if w.Fold {
			ok = strings.Contains(strings.ToLower(text), strings.ToLower(literal))
		} else {
			ok = strings.Contains(text, literal)
		}
	} else if !w.needs.metBy(text) {
		return nil, false
	} else if groups = w.re.FindStringSubmatch(text); groups != nil {
		ok = true
	}
	if ok && w.not != nil && w.refuses(text) {
		return nil, false
	}
	return groups, ok
}

// refuses reports whether w.not matches text.
func (w *wording) refuses(text string) bool {
	if len(w.notWords) == 0 || !isASCII(text) {
		return w.notNeeds.metBy(text) && w.not.MatchString(text)
	}
	low := strings.ToLower(text)
	return slices.ContainsFunc(w.notWords, func(b bareWord) bool { return b.in(low) })
}

// on reports whether w applies to artifacts of this kind. An artifact without a
// kind is read as a job log.
func (w *wording) on(kind string) bool {
	return len(w.Kinds) == 0 || slices.Contains(w.Kinds, "ranklog") || kind != "" && slices.Contains(w.Kinds, kind)
}

// settingAtoms are the literals that lead to a line with settings.
func settingAtoms() []string {
	out := []string{"Namespace(", "Arguments(", ".........", "TrainingArguments", "json = {", "atch size per device", "radient ", "otal train batch size", "otal batch size", "otal optimization steps", "rainable parameters", "Config {", "Config(", "onfiguration:"}
	for k, v := range reader.SettingKeys {
		if !v.Atom {
			continue
		}
		out = append(out, k)
		if up := strings.ToUpper(k); v.Fact == "run.alloc_conf" || v.Fact == "cuda.blocking" || k == "world_size" || k == "slurm_ntasks" || strings.HasPrefix(k, "xla_") {
			out = append(out, up)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}
