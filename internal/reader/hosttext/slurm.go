package hosttext

import (
	"strconv"
	"strings"

	"github.com/inquest-dev/inquest/internal/evidence"
)

// states are the job states of Slurm in full; sacct cuts them to its column and
// marks the cut with '+'.
var states = [...]string{"BOOT_FAIL", "CANCELLED", "COMPLETED", "CONFIGURING", "COMPLETING", "DEADLINE", "FAILED", "NODE_FAIL", "OUT_OF_MEMORY", "PENDING", "PREEMPTED",
	"RUNNING", "REQUEUED", "RESIZING", "REVOKED", "SUSPENDED", "TIMEOUT"}

// stateOf returns the full word of a state, "" for no state. "CANCELLED by 1000"
// is CANCELLED.
func stateOf(text string) string {
	word, _, _ := strings.Cut(strings.TrimSpace(text), " ")
	cut := strings.HasSuffix(word, "+")
	word = strings.TrimSuffix(word, "+")
	for _, s := range states {
		if word == s || cut && len(word) >= 2 && strings.HasPrefix(s, word) {
			return s
		}
	}
	switch word {
	case "OOM":
		return "OUT_OF_MEMORY"
	case "CA":
		return "CANCELLED"
	case "CD":
		return "COMPLETED"
	case "TO":
		return "TIMEOUT"
	case "NF":
		return "NODE_FAIL"
	case "PR":
		return "PREEMPTED"
	}
	return ""
}

// sacct reads a table of sacct: columns whose widths a line of dashes gives, or
// columns between bars (-P, -p).
type sacct struct {
	names  []string
	bars   bool
	widths [][2]int // byte ranges of the columns
}

func sacctHeader(_ *parser, text string) table {
	if !strings.Contains(text, "JobID") || !strings.Contains(text, "State") {
		return nil
	}
	t := &sacct{bars: strings.Contains(text, "|")}
	if t.bars {
		t.names = strings.Split(strings.TrimSuffix(text, "|"), "|")
	} else {
		t.names = columns(text)
	}
	id := false
	for i, n := range t.names {
		t.names[i] = strings.TrimSpace(n)
		id = id || strings.HasPrefix(t.names[i], "JobID")
	}
	if !id || strings.ContainsAny(text, "=:,") {
		return nil
	}
	return t
}

func (t *sacct) row(p *parser, l line) bool {
	text := l.text
	if !t.bars && strings.Trim(text, "- ") == "" {
		t.widths = t.widths[:0]
		for i := 0; i < len(text); {
			if text[i] != '-' {
				i++
				continue
			}
			j := i
			for j < len(text) && text[j] == '-' {
				j++
			}
			t.widths = append(t.widths, [2]int{i, j})
			i = j
		}
		return true
	}
	cell := t.cells(text)
	if cell == nil {
		return false
	}
	attrs := evidence.Attrs{}
	w := p.who()
	for i, n := range t.names {
		if i >= len(cell) || cell[i] == "" {
			continue
		}
		v := cell[i]
		switch n {
		case "JobID", "JobIDRaw":
			if !attrs["job"].Valid() {
				attrs["job"] = evidence.TextOf(v)
			}
		case "State":
			if s := stateOf(v); s != "" {
				attrs["state"] = evidence.TextOf(s)
			}
		case "ExitCode":
			exitCode(attrs, v)
		case "MaxRSS":
			set(attrs, "max_rss", v, 1)
		case "ReqMem":
			setExact(attrs, "req_mem", v, mib)
		case "Timelimit", "TimeLimit":
			attrs["limit"] = evidence.TextOf(v)
		case "NodeList":
			if v != "None" && !strings.ContainsAny(v, "[, +") {
				w.Host = v
			}
		}
	}
	if !attrs["job"].Valid() || !attrs["state"].Valid() && !attrs["code"].Valid() {
		return false
	}
	p.s.Event(p.event(evidence.JobRecord, l, w, attrs))
	return true
}

// cells splits a row: at bars, by the columns of the dashes, or at blanks when
// every column has a value.
func (t *sacct) cells(text string) []string {
	var out []string
	switch {
	case t.bars:
		if !strings.Contains(text, "|") {
			return nil
		}
		out = strings.Split(text, "|")
	case len(t.widths) == len(t.names):
		out = make([]string, len(t.names))
		for i := 0; i < len(text); {
			if text[i] == ' ' || text[i] == '\t' {
				i++
				continue
			}
			j := i
			for j < len(text) && text[j] != ' ' && text[j] != '\t' {
				j++
			}
			c := t.column(i, j)
			out[c] += " " + text[i:j]
			i = j
		}
	default:
		if out = columns(text); len(out) != len(t.names) {
			return nil
		}
	}
	for i := range out {
		out[i] = strings.TrimSpace(out[i])
	}
	return out
}

// column returns the column that the word at [from, to) lies in: values may
// reach a little over the dashes on either side.
func (t *sacct) column(from, to int) int {
	best, most := 0, -1<<31
	for c, w := range t.widths {
		if n := min(to, w[1]) - max(from, w[0]); n > most {
			best, most = c, n
		}
	}
	return best
}

func (t *sacct) end(*parser) {}

// exitCode files Slurm's "code:signal".
func exitCode(attrs evidence.Attrs, text string) {
	code, signal, ok := strings.Cut(text, ":")
	if !ok {
		return
	}
	setInt(attrs, "code", code)
	if n, err := strconv.ParseInt(signal, 10, 32); err == nil && n > 0 {
		attrs["signal"] = evidence.IntOf(n)
	}
}

// scontrol reads scontrol show job: words of key=value over several lines, one
// record for each JobId.
type scontrol struct {
	attrs evidence.Attrs
	at    line
	host  string
}

func scontrolHeader(_ *parser, text string) table {
	if strings.HasPrefix(text, "JobId=") && strings.Contains(text, " ") {
		return &scontrol{}
	}
	return nil
}

func (t *scontrol) first(p *parser, l line) { t.row(p, l) }

func (t *scontrol) row(p *parser, l line) bool {
	known := false
	for _, word := range columns(l.text) {
		k, v, ok := strings.Cut(word, "=")
		if !ok {
			continue
		}
		known = true
		if t.attrs == nil {
			t.attrs, t.at = evidence.Attrs{}, l
		}
		switch k {
		case "JobId":
			t.attrs["job"] = evidence.TextOf(v)
		case "JobState":
			if s := stateOf(v); s != "" {
				t.attrs["state"] = evidence.TextOf(s)
				t.at = l
			}
		case "ExitCode":
			exitCode(t.attrs, v)
		case "TimeLimit":
			t.attrs["limit"] = evidence.TextOf(v)
		case "MinMemoryNode":
			setExact(t.attrs, "req_mem", v, mib)
		case "TRES", "ReqTRES":
			for _, r := range strings.Split(v, ",") {
				if m, ok := strings.CutPrefix(r, "mem="); ok && !t.attrs["req_mem"].Valid() {
					setExact(t.attrs, "req_mem", m, mib)
				}
			}
		case "BatchHost":
			t.host = v
		}
	}
	return known
}

func (t *scontrol) end(p *parser) {
	if t.attrs["job"].Valid() {
		w := p.who()
		if t.host != "" {
			w.Host = t.host
		}
		p.s.Event(p.event(evidence.JobRecord, t.at, w, t.attrs))
	}
}

// script reads a job script: its #SBATCH options become settings, and what it
// asks for in memory and time one job record.
type script struct {
	mem, perCPU, perGPU evidence.Value
	cpus, tasks, gpus   int64
	limit               string
	at                  line
}

func scriptHeader(p *parser, text string) table {
	if strings.HasPrefix(text, "#!") && p.tables == 0 {
		return &script{cpus: 1, tasks: 1}
	}
	return nil
}

// shortOptions are the one-letter options of sbatch that matter here.
var shortOptions = map[string]string{"-t": "time", "-c": "cpus-per-task", "-n": "ntasks", "-N": "nodes", "-p": "partition", "-J": "job-name", "-G": "gpus"}

func (t *script) row(p *parser, l line) bool {
	text := strings.TrimSpace(l.text)
	rest, ok := strings.CutPrefix(text, "#SBATCH ")
	if !ok {
		return true
	}
	f := columns(rest)
	if len(f) == 0 {
		return true
	}
	name, v, eq := strings.Cut(strings.TrimPrefix(f[0], "--"), "=")
	if short, known := shortOptions[f[0]]; known {
		name, eq = short, false
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
	case "nodes", "ntasks", "partition", "gpus-per-task", "constraint", "exclusive", "requeue", "signal", "job-name":
	default:
		return true
	}
	if len(v) < 200 {
		p.fact("setting.sbatch_"+strings.ReplaceAll(name, "-", "_"), evidence.TextOf(v), l)
	}
	return true
}

func (t *script) take(dst *evidence.Value, v string, l line) {
	if s, ok := exact(v, mib); ok {
		*dst, t.at = s, l
	}
}

// count reads a small positive number, or returns the one it had.
func count(text string, had int64) int64 {
	if n, err := strconv.ParseInt(text, 10, 32); err == nil && n > 0 {
		return n
	}
	return had
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
		p.s.Event(p.event(evidence.JobRecord, t.at, p.who(), attrs))
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
