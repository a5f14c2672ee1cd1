package slurm

import (
	"strings"

	"github.com/inquest-dev/inquest/internal/evidence"
	"github.com/inquest-dev/inquest/internal/format/textline"
	"github.com/inquest-dev/inquest/internal/lazyre"
)

// scontrol reads scontrol show job: words of key=value over several lines, one
// record for each JobId.
type scontrol struct {
	book
	cur    record
	nodes  string
	batch  string
	memory bool // the limit of a node is known
}

func jobHeader(_ *parser, text string) table {
	if strings.HasPrefix(text, "JobId=") && strings.Contains(text, " ") {
		return &scontrol{}
	}
	return nil
}

func (t *scontrol) first(p *parser, l line) { t.row(p, l) }

// words splits "A=1 B=two words C=3": a value goes on to the next word with a
// sign of equality.
var pair = lazyre.New(`(?:^|\s)([A-Za-z][\w/:]*)=`)

func words(text string) (out [][2]string) {
	at := pair.FindAllStringSubmatchIndex(text, 512)
	for i, m := range at {
		end := len(text)
		if i+1 < len(at) {
			end = at[i+1][0]
		}
		out = append(out, [2]string{text[m[2]:m[3]], strings.TrimSpace(text[m[1]:end])})
	}
	return out
}

func (t *scontrol) row(p *parser, l line) bool {
	known := false
	for _, w := range words(l.text) {
		known = true
		if t.cur.attrs == nil {
			t.cur.attrs, t.cur.at = evidence.Attrs{}, l
		}
		switch k, v := w[0], w[1]; k {
		case "JobId":
			t.cur.job = v
		case "JobState":
			if s, _ := stateOf(v); s != "" {
				t.cur.state, t.cur.at = s, l
			}
		case "Reason":
			if v != "None" {
				t.cur.attrs["reason"] = evidence.TextOf(textline.Cut(v, 128))
			}
		case "ExitCode":
			setExit(t.cur.attrs, v)
		case "TimeLimit":
			t.cur.attrs["limit"] = evidence.TextOf(v)
		case "MinMemoryNode":
			if s, ok := size(v, mib, false); ok && s.Lo > 0 {
				t.cur.attrs["req_mem"], t.memory = s, true
			}
		case "TRES", "ReqTRES":
			for _, r := range strings.Split(v, ",") {
				m, ok := strings.CutPrefix(r, "mem=")
				if s, sized := size(m, mib, false); ok && sized && !t.memory {
					t.cur.attrs["req_mem"] = s
				}
			}
		case "EndTime":
			t.cur.end = when(v)
		case "NodeList":
			t.nodes = v
		case "BatchHost":
			t.batch = v
		}
	}
	return known
}

func (t *scontrol) end(p *parser) {
	if t.cur.job == "" {
		return
	}
	if t.cur.state == "RUNNING" || t.cur.state == "PENDING" { // when it is to end
		t.cur.end = evidence.Stamp{}
	}
	if t.nodes != "" && t.nodes != "(null)" {
		t.cur.attrs["nodes"] = evidence.TextOf(textline.Cut(t.nodes, 256))
	}
	t.cur.host = onlyHost(t.nodes)
	if t.nodes == "" {
		t.cur.host = t.batch
	}
	t.add(p, t.cur)
	t.close(p)
}

// nodeInfo reads scontrol show node.
type nodeInfo struct {
	attrs evidence.Attrs
	host  string
	since evidence.Stamp
	at    line
}

func nodeHeader(_ *parser, text string) table {
	if strings.HasPrefix(text, "NodeName=") && strings.Contains(text, " ") {
		return &nodeInfo{attrs: evidence.Attrs{}}
	}
	return nil
}

func (t *nodeInfo) first(p *parser, l line) { t.at = l; t.row(p, l) }

// reasonAt matches who gave a reason, and when: [slurm@2026-01-02T03:04:05].
var reasonAt = lazyre.New(`\s*\[\w[^@\]]*@(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)\]$`)

func (t *nodeInfo) row(_ *parser, l line) bool {
	list := words(l.text)
	for _, w := range list {
		switch k, v := w[0], w[1]; k {
		case "NodeName":
			t.host = v
		case "State":
			t.attrs["state"] = evidence.TextOf(textline.Cut(v, 128))
			t.at = l
		case "Reason":
			if m := reasonAt.FindStringSubmatch(v); m != nil {
				t.since = when(m[1])
			}
			t.attrs["reason"] = evidence.TextOf(textline.Cut(reasonAt.ReplaceAllString(v, ""), 256))
			t.at = l
		}
	}
	return len(list) > 0
}

func (t *nodeInfo) end(p *parser) {
	x := p.event(evidence.NodeState, t.at, t.attrs)
	x.Who.Host, x.Stamp = t.host, t.since
	p.s.Event(x)
}

// isDaemon reports whether a line begins like one of slurmctld or slurmd.
func isDaemon(text string) bool { return daemonLine.MatchString(text) }

// Lines of slurmctld and slurmd: a local time in brackets, then perhaps the step
// in brackets, then perhaps the severity (src/common/log.c).
var daemonLine = lazyre.New(`^(?:slurmctld: |slurmd: )?\[(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{3}|\.\d{6})?)\] (?:\[([\d_+.a-z]+)\] )?(?:(fatal|error|debug\d?|verbose|info): )?(.*)$`)

// A daemonRule says what a line of a daemon means for the job that it names.
type daemonRule struct {
	re    *lazyre.Regexp // with the groups job, node, code, signal
	kind  evidence.Kind
	what  string
	whose bool // only of a job that the line names
}

// daemonRules, by src/slurmctld/job_mgr.c, node_mgr.c, ping_nodes.c, proc_req.c,
// preempt.c and src/slurmd/slurmd/req.c. %pJ prints JobId=4410, JobId=4410_7(4417)
// or JobId=4410+1(4411).
var daemonRules = []daemonRule{
	{lazyre.New(`Time limit exhausted for JobId=(?P<job>[\d_+]+)`), evidence.TimeLimit, "slurm", true},
	{lazyre.New(`requeue (?:job )?(?:JobId=)?(?P<job>[\d_+]+)(?:\((?P<raw>\d+)\))? due to failure of node (?P<node>[\w.-]+)`), evidence.NodeFailure, "slurm", true},
	{lazyre.New(`Killing (?:job_id )?(?:JobId=)?(?P<job>[\d_+]+)(?:\((?P<raw>\d+)\))? on failed node (?P<node>[\w.-]+)`), evidence.NodeFailure, "slurm", true},
	{lazyre.New(`preempted JobId=(?P<job>[\d_+]+)(?:\((?P<raw>\d+)\))? has been (?:requeued|killed|checkpointed|suspended)`), evidence.Preempted, "slurm-preemption", true},
	{lazyre.New(`_job_complete: JobId=(?P<job>[\d_+]+)(?:\((?P<raw>\d+)\))? OOM failure`), evidence.HostOOMSched, "slurm-state", true},
	{lazyre.New(`_job_complete: JobId=(?P<job>[\d_+]+)(?:\((?P<raw>\d+)\))? WTERMSIG (?P<signal>[1-9]\d*)`), evidence.Exited, "slurm", true},
	{lazyre.New(`_job_complete: JobId=(?P<job>[\d_+]+)(?:\((?P<raw>\d+)\))? WEXITSTATUS (?P<code>[1-9]\d*)`), evidence.Exited, "slurm", true},
	{lazyre.New(`REQUEST_KILL_JOB (?:job |JobId=)(?P<job>[\d_+]+)(?:\((?P<raw>\d+)\))? uid \d+`), evidence.Cancelled, "slurm-user", true},
	{lazyre.New(`(?:Prolog launch failure,? |[Pp]rolog failed for )JobId=(?P<job>[\d_+]+)`), evidence.NodeFailure, "slurm-prolog", true},
	{lazyre.New(`\[job (?P<job>\d+)\] prolog failed`), evidence.NodeFailure, "slurm-prolog", true},
	{lazyre.New(`Detected \d+ oom[-_]kill events? in (?:StepId=|step )(?P<job>[\d_+]+)`), evidence.HostOOMSched, "slurm", true},
	{lazyre.New(`Nodes? (?P<node>\S+) not responding`), evidence.NodeState, "", false},
	{lazyre.New(`update_node: node (?P<node>\S+) reason set to: `), evidence.NodeState, "", false},
	{lazyre.New(`[Ee]pilog failed|error running epilog|drain_nodes: node (?P<node>\S+)`), evidence.NodeState, "", false},
}

// daemon reads a line of a daemon's log. Lines that mean nothing for a job are
// read and pass.
func (p *parser) daemon(l line) bool {
	m := daemonLine.FindStringSubmatch(l.text)
	if m == nil {
		return false
	}
	p.close()
	for i := range daemonRules {
		r := &daemonRules[i]
		g := r.re.FindStringSubmatch(m[4])
		if g == nil {
			continue
		}
		get := func(name string) string {
			if n := r.re.SubexpIndex(name); n >= 0 {
				return g[n]
			}
			return ""
		}
		if r.whose && p.job == "" || !p.ours(get("job")) && (get("raw") == "" || !p.ours(get("raw"))) {
			break // the log of a cluster tells of every job
		}
		p.s.Event(p.daemonEvent(r, l, m, get))
		break
	}
	return true
}

func (p *parser) daemonEvent(r *daemonRule, l line, m []string, get func(string) string) evidence.Event {
	attrs := evidence.Attrs{}
	if r.what != "" {
		attrs["what"] = evidence.TextOf(r.what)
	}
	both := map[string]string{"code": get("code"), "signal": get("signal")}
	for n, v := range both {
		if v == "" {
			continue
		}
		if x, ok := number(v); ok {
			attrs[n] = evidence.IntOf(x)
		}
	}
	if r.kind == evidence.NodeState {
		attrs["reason"] = evidence.TextOf(textline.Cut(m[4], 256))
		if n := get("node"); n != "" {
			attrs["nodes"] = evidence.TextOf(textline.Cut(n, 256))
		}
	}
	x := p.event(r.kind, l, attrs)
	x.Stamp, x.Who.Host = when(m[1]), onlyHost(get("node"))
	return x
}
