package slurm

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/inquest-dev/inquest/internal/evidence"
	"github.com/inquest-dev/inquest/internal/format/jsontree"
	"github.com/inquest-dev/inquest/internal/format/textline"
	"github.com/inquest-dev/inquest/internal/reader"
)

var errLongJSON = errors.New("over limit: JSON longer than 64 MiB")

// isJSON reports whether text begins the JSON of a command of Slurm: an object
// whose first keys are meta and plugin data, or jobs.
func isJSON(text string) bool {
	text = strings.TrimLeft(text, " \t\r\n")
	if !strings.HasPrefix(text, "{") {
		return false
	}
	jobs := strings.Contains(text, `"jobs"`) && (strings.Contains(text, `"job_id"`) || strings.Contains(text, `"association"`))
	meta := strings.Contains(text, `"meta"`) && (strings.Contains(text, `"Slurm"`) || strings.Contains(text, `"slurm"`))
	return jobs || meta
}

// readJSON reads sacct --json, squeue --json and scontrol show job --json
// (data_parser v0.0.37 to v0.0.43): {"jobs": [...]} with steps in sacct's. Numbers
// are plain or {"set": true, "infinite": false, "number": 5}, states a word or a
// list of words.
func readJSON(ctx context.Context, in reader.Input, r io.Reader, s reader.Sink) error {
	data := make([]byte, 0, max(min(in.Size, maxJSON), 0)+1) // as stated; pages that are not written take no memory
	buf := make([]byte, 64<<10)
	over := false
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		n, err := r.Read(buf)
		keep := min(n, maxJSON-len(data))
		data = append(data, buf[:keep]...)
		over = over || keep < n
		if err == io.EOF {
			break
		}
		if err != nil {
			return fmt.Errorf("read: %w", err)
		}
	}
	p := newParser(s, in.Artifact)
	b := book{}
	at := len(data) - len(bytes.TrimPrefix(data, []byte("\xef\xbb\xbf")))
	lines := &place{data: data, lines: jsontree.NewLines(data)}
	_, end, err := jsontree.Parse(data, at, func(key string, n *jsontree.Node) bool {
		if key == "jobs" {
			jsonJob(p, &b, lines, n)
		}
		return true
	})
	b.close(p)
	switch {
	case over:
		s.Damage(p.span(lines.at(len(data), len(data))), errLongJSON)
	case err != nil:
		s.Damage(p.span(lines.at(end, end)), err)
	}
	return nil
}

// A place makes lines of parts of a document.
type place struct {
	data  []byte
	lines *jsontree.Lines
}

// at is the part of the document from offset from to offset to.
func (c *place) at(from, to int) line {
	raw := string(c.data[from:min(to, from+maxQuote)])
	return line{raw: raw, text: textline.Clean(strings.Join(strings.Fields(raw), " ")), num: int64(c.lines.At(from)), off: int64(from), column: from - bytes.LastIndexByte(c.data[:from], '\n')}
}

// num is a number that may be wrapped.
func num(n *jsontree.Node, names ...string) string {
	x := n.Get(names...)
	if x == nil {
		return ""
	}
	if x.Sort == jsontree.Object {
		if x.Str("set") == "false" || x.Str("infinite") == "true" {
			return ""
		}
		return x.Str("number")
	}
	if x.Sort == jsontree.Number || x.Sort == jsontree.String {
		return x.Text
	}
	return ""
}

// stateIn is the first word of a state that is known, and where it stands.
func stateIn(n *jsontree.Node) (string, *jsontree.Node) {
	if n == nil {
		return "", nil
	}
	if n.Sort == jsontree.String {
		s, _ := stateOf(n.Text)
		return s, n
	}
	for _, x := range n.Items {
		if s, at := stateIn(x); s != "" {
			if at == x && n.Key != "" {
				at = n
			}
			return s, at
		}
	}
	return "", nil
}

func jsonJob(p *parser, b *book, lines *place, n *jsontree.Node) {
	id := num(n, "job_id")
	if id == "" {
		return
	}
	if task := num(n, "array", "task_id"); task != "" && num(n, "array", "job_id") != "" && num(n, "array", "job_id") != "0" {
		id = num(n, "array", "job_id") + "_" + task
	} else if of := num(n, "array_job_id"); of != "" && of != "0" && num(n, "array_task_id") != "" {
		id = of + "_" + num(n, "array_task_id")
	}
	r := record{job: id, attrs: evidence.Attrs{}}
	at := n.Get("job_id")
	states := n.Get("state", "current")
	if states == nil {
		states = n.Get("job_state")
	}
	if states == nil {
		states = n.Get("state")
	}
	if s, where := stateIn(states); s != "" {
		r.state, at = s, where
	}
	r.at = lines.at(at.From, at.End)
	jsonExit(r.attrs, n)
	for _, v := range []string{n.Str("state", "reason"), n.Str("state_reason")} {
		if v != "" && v != "None" {
			r.attrs["reason"] = evidence.TextOf(textline.Cut(textline.Clean(v), 128))
		}
	}
	if v := num(n, "required", "memory_per_node"); v != "" {
		jsonSize(r.attrs, "req_mem", v, mib)
	} else if v := num(n, "memory_per_node"); v != "" {
		jsonSize(r.attrs, "req_mem", v, mib)
	}
	if nodes := textline.Clean(n.Str("nodes")); nodes != "" && nodes != "None assigned" {
		r.attrs["nodes"] = evidence.TextOf(textline.Cut(nodes, 256))
		r.host = onlyHost(nodes)
	}
	if r.state != "RUNNING" && r.state != "PENDING" {
		r.end = epoch(num(n, "time", "end") + num(n, "end_time"))
	}
	b.add(p, r)
	for _, s := range n.List("steps") {
		jsonStep(p, b, lines, id, s)
	}
}

func jsonSize(attrs evidence.Attrs, name, text string, unit int64) {
	if v, ok := size(text, unit, false); ok && v.Hi > 0 {
		attrs[name] = v
	}
}

// jsonExit reads {"return_code": …, "signal": {"id": …}}, with older names.
func jsonExit(attrs evidence.Attrs, n *jsontree.Node) {
	e := n.Get("exit_code")
	if v, ok := number(num(e, "return_code")); ok {
		attrs["code"] = evidence.IntOf(v)
	}
	for _, name := range []string{"id", "signal_id"} {
		if v, ok := number(num(e, "signal", name)); ok && v > 0 {
			attrs["signal"] = evidence.IntOf(v)
		}
	}
}

// jsonStep reads one step of sacct --json. The largest memory of a task is among
// the tres with node and task.
func jsonStep(p *parser, b *book, lines *place, job string, n *jsontree.Node) {
	name := n.Str("step", "id")
	if x := n.Get("step", "id"); x != nil && x.Sort == jsontree.Object {
		name = x.Str("step_id")
	}
	if name == "" {
		return
	}
	if !strings.Contains(name, ".") {
		name = job + "." + name
	}
	r := record{job: name, attrs: evidence.Attrs{}}
	at := n
	if s, where := stateIn(n.Get("state")); s != "" {
		r.state, at = s, where
	}
	r.at = lines.at(at.From, at.End)
	jsonExit(r.attrs, n)
	for _, x := range n.List("tres", "requested", "max") {
		if x.Str("type") != "mem" {
			continue
		}
		jsonSize(r.attrs, "max_rss", num(x, "count"), 1)
		r.host = textline.Clean(x.Str("node"))
		if v, ok := number(num(x, "task")); ok && v >= 0 {
			r.attrs["task"] = evidence.IntOf(v)
		}
	}
	if r.host == "" {
		if l := n.List("nodes", "list"); len(l) == 1 {
			r.host = textline.Clean(l[0].Text)
		}
	}
	r.end = epoch(num(n, "time", "end"))
	b.add(p, r)
}
