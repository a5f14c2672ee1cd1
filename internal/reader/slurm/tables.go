package slurm

import (
	"strconv"
	"strings"

	"github.com/inquest-dev/inquest/internal/evidence"
	"github.com/inquest-dev/inquest/internal/format/textline"
)

const mib = 1 << 20

// sacct reads a table of sacct: columns whose widths a line of dashes gives, or
// columns between bars (-P, -p).
type sacct struct {
	book
	names  []string
	bars   bool
	widths [][2]int // byte ranges of the columns
}

func sacctHeader(_ *parser, text string) table {
	if !strings.Contains(text, "JobID") || !strings.Contains(text, "State") || strings.ContainsAny(text, "=:,") {
		return nil
	}
	t := &sacct{bars: strings.Contains(text, "|")}
	if t.bars {
		t.names = strings.Split(strings.TrimSuffix(text, "|"), "|")
	} else {
		t.names = strings.Fields(text)
	}
	id := false
	for i, n := range t.names {
		t.names[i] = strings.TrimSpace(n)
		id = id || strings.HasPrefix(t.names[i], "JobID")
	}
	if !id {
		return nil
	}
	return t
}

func (t *sacct) row(p *parser, l line) bool {
	if !t.bars && strings.Trim(l.text, "- ") == "" {
		t.widths = dashes(l.text)
		return true
	}
	cell := t.cells(l.text)
	if cell == nil {
		return false
	}
	r := record{attrs: evidence.Attrs{}, at: l}
	nodes := ""
	for i, n := range t.names {
		if i >= len(cell) || cell[i] == "" {
			continue
		}
		switch v := cell[i]; n {
		case "JobID":
			r.job = v
		case "JobIDRaw":
			if r.job == "" {
				r.job = v
			}
		case "State":
			r.state, r.by = stateOf(v)
		case "ExitCode":
			setExit(r.attrs, v)
		case "MaxRSS":
			if s, ok := size(v, 1, true); ok {
				r.attrs["max_rss"] = s
			}
		case "MaxRSSNode":
			r.host = v
		case "MaxRSSTask":
			if n, err := strconv.ParseInt(v, 10, 32); err == nil && n >= 0 {
				r.attrs["task"] = evidence.IntOf(n)
			}
		case "ReqMem":
			if s, ok := size(v, mib, false); ok && !strings.HasSuffix(v, "c") {
				r.attrs["req_mem"] = s
			}
		case "Timelimit", "TimeLimit":
			r.attrs["limit"] = evidence.TextOf(v)
		case "NodeList":
			nodes = v
		case "Reason":
			r.attrs["reason"] = evidence.TextOf(textline.Cut(v, 128))
		case "End":
			r.end = when(v)
		}
	}
	r.job = stepName(r.job)
	if r.job == "" || r.job[0] < '0' || r.job[0] > '9' || r.state == "" && !r.attrs["code"].Valid() {
		return false
	}
	if nodes != "" {
		r.attrs["nodes"] = evidence.TextOf(textline.Cut(nodes, 256))
		if r.host == "" {
			r.host = onlyHost(nodes)
		}
	}
	t.add(p, r)
	return true
}

func (t *sacct) end(p *parser) { t.close(p) }

// stepName completes the step that a narrow column cut.
func stepName(job string) string {
	head, step, ok := strings.Cut(job, ".")
	if cut, is := strings.CutSuffix(step, "+"); ok && is && cut != "" {
		for _, full := range []string{"batch", "extern", "interactive"} {
			if strings.HasPrefix(full, cut) {
				return head + "." + full
			}
		}
	}
	return job
}

// dashes are the columns of a line of dashes.
func dashes(text string) (out [][2]int) {
	for i := 0; i < len(text); {
		if text[i] != '-' {
			i++
			continue
		}
		j := i
		for j < len(text) && text[j] == '-' {
			j++
		}
		out = append(out, [2]int{i, j})
		i = j
	}
	return out
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
			out[t.column(i, j)] += " " + text[i:j]
			i = j
		}
	default:
		if out = strings.Fields(text); len(out) != len(t.names) {
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

// squeue reads the default and long columns of squeue. Job names with blanks
// shift what stands behind them, so that columns count from the state on.
type squeue struct {
	book
	names []string
	state int
}

func squeueHeader(_ *parser, text string) table {
	f := strings.Fields(text)
	if len(f) < 5 || f[0] != "JOBID" || !strings.HasPrefix(f[len(f)-1], "NODELIST") {
		return nil
	}
	for i, n := range f {
		if n == "ST" || n == "STATE" {
			return &squeue{names: f, state: i}
		}
	}
	return nil
}

func (t *squeue) row(p *parser, l line) bool {
	f := strings.Fields(l.text)
	if len(f) < len(t.names)-1 || f[0][0] < '0' || f[0][0] > '9' {
		return false
	}
	at := t.state
	for ; at < len(f); at++ {
		if s, _ := stateOf(f[at]); s != "" {
			break
		}
	}
	if at == len(f) {
		return false
	}
	r := record{job: f[0], attrs: evidence.Attrs{}, at: l}
	r.state, _ = stateOf(f[at])
	if behind := at + len(t.names) - 1 - t.state; behind < len(f) {
		if last := strings.Join(f[behind:], " "); strings.HasPrefix(last, "(") {
			r.attrs["reason"] = evidence.TextOf(textline.Cut(strings.Trim(last, "()"), 128))
		} else {
			r.attrs["nodes"] = evidence.TextOf(textline.Cut(last, 256))
			r.host = onlyHost(last)
		}
	}
	for i, n := range t.names {
		if k := at + i - t.state; n == "TIME_LIMIT" && k < len(f) && k > at {
			r.attrs["limit"] = evidence.TextOf(f[k])
		}
	}
	t.add(p, r)
	return true
}

func (t *squeue) end(p *parser) { t.close(p) }

// sinfo reads sinfo -R: the reasons for which nodes are out of service. The rest of
// sinfo counts idle nodes and says nothing of a job.
type sinfo struct{}

func sinfoHeader(_ *parser, text string) table {
	f := strings.Fields(text)
	if len(f) == 4 && f[0] == "REASON" && f[1] == "USER" && f[2] == "TIMESTAMP" && f[3] == "NODELIST" {
		return sinfo{}
	}
	return nil
}

func (sinfo) row(p *parser, l line) bool {
	f := strings.Fields(l.text)
	n := len(f)
	if n < 4 || !when(f[n-2]).Known() {
		return false
	}
	attrs := evidence.Attrs{"reason": evidence.TextOf(textline.Cut(strings.Join(f[:n-3], " "), 256)), "nodes": evidence.TextOf(textline.Cut(f[n-1], 256))}
	x := p.event(evidence.NodeState, l, attrs)
	x.Stamp, x.Who.Host = when(f[n-2]), onlyHost(f[n-1])
	p.s.Event(x)
	return true
}

func (sinfo) end(*parser) {}

// seff reads the lines of seff about one job.
type seff struct {
	record
	any bool
}

func seffHeader(_ *parser, text string) table {
	if id, ok := strings.CutPrefix(text, "Job ID: "); ok && id != "" && id[0] >= '0' && id[0] <= '9' {
		return &seff{record: record{job: strings.Fields(id)[0], attrs: evidence.Attrs{}}}
	}
	return nil
}

func (t *seff) first(_ *parser, l line) { t.at = l }

func (t *seff) row(_ *parser, l line) bool {
	name, v, ok := strings.Cut(strings.TrimSpace(l.text), ": ")
	if !ok {
		return strings.HasPrefix(l.text, "WARNING") || strings.HasPrefix(l.text, "Efficiency")
	}
	switch name {
	case "State":
		word, rest, _ := strings.Cut(v, " ")
		if t.state, _ = stateOf(word); t.state == "" {
			return false
		}
		t.at, t.any = l, true
		if code, ok := strings.CutPrefix(rest, "(exit code "); ok {
			if n, err := strconv.ParseInt(strings.TrimSuffix(code, ")"), 10, 32); err == nil {
				t.attrs["code"] = evidence.IntOf(n)
			}
		}
	case "Memory Utilized":
		text, _, _ := strings.Cut(v, " (")
		if s, ok := size(text, mib, true); ok {
			t.attrs["max_rss"] = s
		}
	case "Memory Efficiency":
		if _, of, ok := strings.Cut(v, "% of "); ok {
			of, _, _ = strings.Cut(of, " (")
			if s, ok := size(of, mib, false); ok {
				t.attrs["req_mem"] = s
			}
		}
	}
	return true
}

func (t *seff) end(p *parser) {
	if t.any {
		b := book{}
		b.add(p, t.record)
		b.close(p)
	}
}
