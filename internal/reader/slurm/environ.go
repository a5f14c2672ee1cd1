package slurm

import (
	"strconv"
	"strings"

	"github.com/inquest-dev/inquest/internal/evidence"
	"github.com/inquest-dev/inquest/internal/lazyre"
)

// environ reads the environment of a job or step as env or export -p prints it.
// Which task runs on which host follows from it only where it states all of: the
// hosts (SLURM_STEP_NODELIST, SLURM_JOB_NODELIST), the tasks of each
// (SLURM_STEP_TASKS_PER_NODE, SLURM_TASKS_PER_NODE: "8(x4),2"), their number
// (SLURM_NTASKS) and a block distribution (SLURM_DISTRIBUTION). A task is a rank
// where there are as many tasks on a host as GPUs, or one GPU for each task.
type environ struct {
	vars map[string]string
	at   line // of the tasks of each host
}

var assignment = lazyre.New(`^(?:export |declare -x )?([A-Za-z_]\w*)=(.*)$`)

func environHeader(p *parser, text string) table {
	if _, open := p.cur.(*environ); open {
		return nil
	}
	if m := assignment.FindStringSubmatch(text); m == nil || !strings.HasPrefix(m[1], "SLURM_") {
		return nil
	}
	return &environ{vars: map[string]string{}}
}

func (t *environ) first(p *parser, l line) { t.row(p, l) }

func (t *environ) row(_ *parser, l line) bool {
	m := assignment.FindStringSubmatch(strings.TrimSpace(l.text))
	if m == nil {
		return false
	}
	if strings.HasPrefix(m[1], "SLURM_") && len(t.vars) < 256 && len(m[2]) < 1<<14 {
		t.vars[m[1]] = strings.Trim(m[2], `"'`)
		if strings.HasSuffix(m[1], "TASKS_PER_NODE") && !strings.HasPrefix(m[1], "SLURM_NTASKS") {
			t.at = l
		}
	}
	return true
}

// either is the first of the variables that is set.
func (t *environ) either(names ...string) string {
	for _, n := range names {
		if v := t.vars[n]; v != "" {
			return v
		}
	}
	return ""
}

func (t *environ) end(p *parser) {
	if t.at.num == 0 {
		return
	}
	nodes, ok := hosts(t.either("SLURM_STEP_NODELIST", "SLURM_JOB_NODELIST", "SLURM_NODELIST"))
	counts := tasksPerNode(t.either("SLURM_STEP_TASKS_PER_NODE", "SLURM_TASKS_PER_NODE"))
	total, stated := number(t.either("SLURM_STEP_NUM_TASKS", "SLURM_NTASKS", "SLURM_NPROCS"))
	dist, _, _ := strings.Cut(t.vars["SLURM_DISTRIBUTION"], ":")
	if !ok || !stated || len(counts) != len(nodes) || dist != "block" && dist != "block,Pack" && dist != "block,NoPack" || !p.ours(t.either("SLURM_JOB_ID", "SLURM_JOBID")) {
		return
	}
	sum, even := 0, true
	for _, n := range counts {
		sum += n
		even = even && n == counts[0]
	}
	if int64(sum) != total {
		return
	}
	perNode, _ := number(t.either("SLURM_GPUS_ON_NODE", "SLURM_GPUS_PER_NODE"))
	if t.vars["SLURM_GPUS_PER_TASK"] != "1" && !(even && perNode == int64(counts[0])) {
		return
	}
	rank := 0
	for i, host := range nodes {
		for local := range counts[i] {
			x := p.event(evidence.RankInfo, t.at, evidence.Attrs{"rank": evidence.IntOf(int64(rank)), "local_rank": evidence.IntOf(int64(local)), "host": evidence.TextOf(host), "world": evidence.IntOf(total)})
			x.Who.Rank, x.Who.LocalRank, x.Who.Host = rank, local, host
			p.s.Event(x)
			rank++
		}
	}
}

// tasksPerNode reads "8(x4),2": the tasks of each host, in the order of the list;
// nil where it is no such list or names more than maxHosts tasks.
func tasksPerNode(text string) (out []int) {
	sum := 0
	for _, part := range strings.Split(text, ",") {
		n, times, repeated := strings.Cut(part, "(x")
		tasks, err := strconv.Atoi(n)
		count := 1
		if repeated && err == nil {
			count, err = strconv.Atoi(strings.TrimSuffix(times, ")"))
		}
		if err != nil || tasks < 1 || count < 1 || tasks > maxHosts || count > maxHosts {
			return nil
		}
		if sum += tasks * count; sum > maxHosts {
			return nil
		}
		for range count {
			out = append(out, tasks)
		}
	}
	return out
}
