package slurm

import (
	"strconv"
	"strings"

	"github.com/inquest-dev/inquest/internal/evidence"
)

// script reads a job script: its #SBATCH options become settings, what it asks for
// in memory and time one job record, and the line that starts the run a setting.
type script struct {
	mem, perCPU, perGPU evidence.Value
	cpus, tasks, gpus   int64
	limit               string
	at                  line
	started             bool
	open                string // a command that goes on in the next line
	openAt              line
	ended               bool // sbatch reads options up to the first command
}

func scriptHeader(p *parser, text string) table {
	if strings.HasPrefix(text, "#!") && p.tables == 0 {
		return &script{cpus: 1, tasks: 1}
	}
	return nil
}

// shortOptions are the one-letter options of sbatch that matter here.
var shortOptions = map[string]string{"t": "time", "c": "cpus-per-task", "n": "ntasks", "N": "nodes", "p": "partition", "J": "job-name", "G": "gpus", "C": "constraint", "w": "nodelist", "x": "exclude", "o": "output", "e": "error", "a": "array", "q": "qos"}

// launchers begin the command of a run.
var launchers = []string{"srun ", "torchrun ", "python ", "python3 ", "accelerate launch ", "deepspeed ", "mpirun ", "mpiexec ", "horovodrun ", "apptainer ", "singularity "}

func (t *script) row(p *parser, l line) bool {
	text := strings.TrimSpace(l.text)
	if rest, ok := strings.CutPrefix(text, "#SBATCH"); ok && !t.ended && strings.TrimLeft(rest, " \t") != rest {
		t.option(p, strings.TrimSpace(rest), l)
		return true
	}
	if strings.HasPrefix(text, "#") {
		return true
	}
	t.ended = true
	t.command(p, text, l)
	return true
}

// command keeps the first line that starts a run.
func (t *script) command(p *parser, text string, l line) {
	if t.open != "" {
		text = t.open + " " + text
		l = t.openAt
	}
	starts := t.open != ""
	for _, s := range launchers {
		starts = starts || strings.HasPrefix(text, s) || strings.HasPrefix(text, "exec "+s)
	}
	t.open = ""
	if t.started || !starts || len(text) > 2000 {
		return
	}
	if rest, more := strings.CutSuffix(text, "\\"); more {
		t.open, t.openAt = strings.TrimSpace(rest), l
		return
	}
	t.started = true
	p.fact("setting.sbatch_command", evidence.TextOf(text), l)
}

func (t *script) option(p *parser, text string, l line) {
	f := strings.Fields(text)
	if len(f) == 0 {
		return
	}
	name, v, eq := strings.Cut(f[0], "=")
	long, isLong := strings.CutPrefix(name, "--")
	switch {
	case isLong:
		name = long
	case strings.HasPrefix(f[0], "-") && len(f[0]) >= 2: // -t 1:00 and -t1:00
		name = shortOptions[f[0][1:2]]
		v, eq = strings.TrimPrefix(f[0][2:], "="), len(f[0]) > 2
	default:
		return
	}
	if !eq && len(f) > 1 {
		v = f[1]
	}
	v = strings.Trim(v, `"'`)
	switch name {
	case "mem":
		t.take(&t.mem, v, l)
	case "mem-per-cpu":
		t.take(&t.perCPU, v, l)
	case "mem-per-gpu":
		t.take(&t.perGPU, v, l)
	case "time":
		t.limit = v
		if t.at.num == 0 {
			t.at = l
		}
	case "cpus-per-task":
		t.cpus = count(v, t.cpus)
	case "ntasks-per-node":
		t.tasks = count(v, t.tasks)
	case "gres", "gpus", "gpus-per-node":
		t.gpus = count(v[strings.LastIndexByte(v, ':')+1:], t.gpus)
	case "nodes", "ntasks", "partition", "gpus-per-task", "constraint", "exclusive", "requeue", "no-requeue", "signal", "job-name", "array", "qos", "nodelist", "exclude", "kill-on-bad-exit", "open-mode", "dependency":
	default:
		return
	}
	if len(v) < 200 {
		p.fact("setting.sbatch_"+strings.ReplaceAll(name, "-", "_"), evidence.TextOf(v), l)
	}
}

func (t *script) take(dst *evidence.Value, v string, l line) {
	if s, ok := size(v, mib, false); ok {
		*dst, t.at = s, l
	}
}

// count reads a small positive number, or returns the one it had.
func count(text string, had int64) int64 {
	if n, ok := number(text); ok && n > 0 {
		return n
	}
	return had
}

func number(text string) (int64, bool) {
	n, err := strconv.ParseInt(strings.TrimSpace(text), 10, 32)
	return n, err == nil
}

// end emits what the script asks for on one node. --mem=0 asks for all of it
// and is no limit of its own.
func (t *script) end(p *parser) {
	attrs := evidence.Attrs{}
	switch {
	case t.mem.Valid() && t.mem.Lo > 0:
		attrs["req_mem"] = t.mem
	case t.perCPU.Valid():
		attrs["req_mem"] = times(t.perCPU, t.cpus*t.tasks)
	case t.perGPU.Valid() && t.gpus > 0:
		attrs["req_mem"] = times(t.perGPU, t.gpus)
	}
	if t.limit != "" {
		attrs["limit"] = evidence.TextOf(t.limit)
	}
	if len(attrs) > 0 {
		p.s.Event(p.event(evidence.JobRecord, t.at, attrs))
	}
}

// times multiplies a size, saturating.
func times(v evidence.Value, n int64) evidence.Value {
	const most = 1 << 60
	if n <= 0 || v.Hi > most/n {
		return evidence.SizeOf(v.Lo, most)
	}
	return evidence.SizeOf(v.Lo*n, v.Hi*n)
}
