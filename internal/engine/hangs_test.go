package engine_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/inquest-dev/inquest/internal/incident"
)

// A fakeJob runs programs of collectives on a machine of its own: processors
// enqueue in order and wait for the device at a sync; the calls of one group run in
// order, those of different groups in order too (one stream) or not. It knows
// nothing of inquest's rules: whose fault a hang is it knows from having
// injected it.
type fakeJob struct {
	groups  []fakeGroup
	oneLine bool // one stream for all groups
	queue   map[int][]*fakeCall
	never   map[int]int // rank -> calls after which its processor stops
	hung    map[int]int // rank -> index of the call in which its device stops; the others get its part
}

type fakeGroup struct {
	name, desc string
	members    []int
}

type fakeCall struct {
	group       int // -1 is a sync
	op          string
	size        int
	seq         int
	done, given bool
}

// run lets all ranks go on until nothing moves.
func (j *fakeJob) run(programs map[int][]fakeCall, order []int) {
	at, count := map[int]int{}, map[[2]int]int{}
	for moved := true; moved; {
		moved = false
		for _, r := range order {
			for at[r] < len(programs[r]) {
				c := programs[r][at[r]]
				if c.group < 0 {
					if slices.ContainsFunc(j.queue[r], func(c *fakeCall) bool { return !c.done }) {
						break
					}
				} else if n, ok := j.never[r]; ok && len(j.queue[r]) >= n {
					break
				} else {
					count[[2]int{r, c.group}]++
					c.seq = count[[2]int{r, c.group}]
					j.queue[r] = append(j.queue[r], &c)
				}
				at[r]++
				moved = true
			}
		}
		for g := range j.groups {
			moved = j.complete(g) || moved
		}
	}
}

// head is the next call of group g on rank r that its device could run.
func (j *fakeJob) head(r, g int) *fakeCall {
	for i, c := range j.queue[r] {
		if n, ok := j.hung[r]; ok && i > n {
			return nil // the device stands
		}
		if !c.done && !c.given {
			if c.group == g {
				return c
			}
			if j.oneLine {
				return nil
			}
		}
		if c.given { // in which it stopped
			return nil
		}
	}
	return nil
}

func (j *fakeJob) complete(g int) bool {
	var heads []*fakeCall
	for _, r := range j.groups[g].members {
		c := j.head(r, g)
		if c == nil || len(heads) > 0 && (c.op != heads[0].op || c.size != heads[0].size) {
			return false
		}
		heads = append(heads, c)
	}
	for i, r := range j.groups[g].members {
		if n, ok := j.hung[r]; ok && n < len(j.queue[r]) && j.queue[r][n] == heads[i] {
			heads[i].given = true
			continue
		}
		heads[i].done = true
	}
	return true
}

// dump is rank r's in the JSON form; ring is how many calls it holds.
func (j *fakeJob) dump(r, ring int, active, status bool) string {
	config, state, entries := map[string]any{}, map[string]any{}, []any{}
	for g, x := range j.groups {
		if !slices.Contains(x.members, r) {
			continue
		}
		enqueued, done := -1, -1
		for _, c := range j.queue[r] {
			if c.group == g {
				enqueued = c.seq
				if c.done {
					done = c.seq
				}
			}
		}
		if enqueued < 0 {
			continue
		}
		config[x.name] = map[string]string{"name": x.name, "desc": x.desc, "ranks": strings.ReplaceAll(fmt.Sprint(x.members), " ", ", ")}
		state[strconv.Itoa(2*g)] = map[string]string{"last_enqueued_collective": strconv.Itoa(enqueued), "last_started_collective": "-1", "last_completed_collective": strconv.Itoa(done)}
	}
	for i, c := range j.queue[r] {
		if i < len(j.queue[r])-ring || active && c.done {
			continue
		}
		s := "scheduled"
		if c.done {
			s = "completed"
		}
		x := j.groups[c.group]
		entries = append(entries, map[string]any{"record_id": i, "pg_id": 2 * c.group, "process_group": []string{x.name, x.desc}, "collective_seq_id": c.seq, "p2p_seq_id": 0, "op_id": i,
			"profiling_name": "nccl:" + c.op, "time_created_ns": 1_800_000_000_000_000_000 + int64(i)*1000, "input_sizes": [][]int{{c.size}}, "input_dtypes": []string{"Float"},
			"output_sizes": [][]int{{c.size}}, "output_dtypes": []string{"Float"}, "state": s, "retired": c.done, "is_p2p": false, "timeout_ms": 600000})
	}
	top := map[string]any{"version": "2.10", "pg_config": config}
	if len(entries) > 0 {
		top["entries"] = entries
	}
	if status {
		top["pg_status"] = state
	}
	b, err := json.Marshal(top)
	if err != nil {
		panic(err)
	}
	return string(b)
}

// newFakeJob lays ranks out in tensor-, data- and pipeline-like groups and gives each the
// same program as far as its groups go.
func newFakeJob(rnd *rand.Rand) (*fakeJob, map[int][]fakeCall, []int) {
	tp, dp := 1+rnd.IntN(4), 2+rnd.IntN(3)
	n := tp * dp
	j := &fakeJob{oneLine: rnd.IntN(2) == 0, queue: map[int][]*fakeCall{}, never: map[int]int{}, hung: map[int]int{}}
	var all []int
	for r := range n {
		all = append(all, r)
	}
	j.groups = append(j.groups, fakeGroup{"0", "default_pg", all})
	for d := range dp {
		var m []int
		for t := range tp {
			m = append(m, d*tp+t)
		}
		if tp > 1 {
			j.groups = append(j.groups, fakeGroup{strconv.Itoa(len(j.groups)), "TENSOR", m})
		}
	}
	for t := range tp {
		var m []int
		for d := range dp {
			m = append(m, d*tp+t)
		}
		j.groups = append(j.groups, fakeGroup{strconv.Itoa(len(j.groups)), "DATA", m})
	}
	programs := map[int][]fakeCall{}
	ops := []string{"all_reduce", "_all_gather_base", "_reduce_scatter_base", "broadcast", "all_to_all"}
	for range 6 + rnd.IntN(10) { // each round: one sort of group, one call
		desc := []string{"default_pg", "TENSOR", "DATA", "TENSOR"}[rnd.IntN(4)]
		op, size, sync := ops[rnd.IntN(len(ops))], 4*(1+rnd.IntN(3)), rnd.IntN(3) == 0
		for g, x := range j.groups {
			if x.desc != desc {
				continue
			}
			for _, r := range x.members {
				programs[r] = append(programs[r], fakeCall{group: g, op: op, size: size})
				if sync {
					programs[r] = append(programs[r], fakeCall{group: -1})
				}
			}
		}
	}
	return j, programs, all
}

func callsOf(p []fakeCall) int {
	n := 0
	for _, c := range p {
		if c.group >= 0 {
			n++
		}
	}
	return n
}

// TestHangsWithKnownFault diagnoses dumps of random jobs with one or two ranks at fault. A
// rank that is named with standing "supported" must be the one at fault; of ranks
// that are named together each must be.
func TestHangsWithKnownFault(t *testing.T) {
	jobs := 150
	if testing.Short() {
		jobs = 30
	}
	decided, hangs := 0, 0
	for seed := range jobs {
		rnd := rand.New(rand.NewPCG(uint64(seed), 20))
		j, programs, all := newFakeJob(rnd)
		faulty := []int{rnd.IntN(len(all))}
		if rnd.IntN(4) == 0 {
			faulty = append(faulty, rnd.IntN(len(all)))
		}
		healthy := rnd.IntN(8) == 0
		if healthy {
			faulty = nil
		}
		for _, r := range faulty {
			switch n := callsOf(programs[r]); {
			case n == 0:
			case rnd.IntN(2) == 0:
				j.never[r] = rnd.IntN(n)
			default:
				j.hung[r] = rnd.IntN(n)
			}
		}
		j.run(programs, all)
		ring := []int{5, 20, 2000}[rnd.IntN(3)]
		active, status, left := rnd.IntN(2) == 0, rnd.IntN(4) > 0, -1
		if rnd.IntN(4) == 0 {
			left = rnd.IntN(len(all))
		}
		hang := slices.ContainsFunc(all, func(r int) bool {
			return r != left && slices.ContainsFunc(j.queue[r], func(c *fakeCall) bool { return !c.done })
		})
		dir := t.TempDir()
		var dumps []string
		for _, r := range all {
			if r == left {
				continue
			}
			file := filepath.Join(dir, "_dump_"+strconv.Itoa(r)+".json")
			if err := os.WriteFile(file, []byte(j.dump(r, ring, active, status)), 0o644); err != nil {
				t.Fatal(err)
			}
			dumps = append(dumps, file)
		}
		if len(dumps) < 2 {
			continue
		}
		inc := diagnose(t, dumps...)
		got := named(inc)
		for _, r := range got {
			if !slices.Contains(faulty, r) {
				t.Errorf("seed %d: rank %d is named (%s), at fault are %v: %s", seed, r, inc.FirstFaultStanding, faulty, inc.FirstFaultBasis)
			}
		}
		if hang {
			hangs++
			if inc.FirstFault == nil {
				t.Errorf("seed %d: ranks %v are at fault, and the verdict is not even open", seed, faulty)
			}
			if len(got) > 0 && inc.FirstFaultStanding == incident.Supported || len(got) > 1 {
				decided++
			}
		} else if inc.FirstFault != nil && left < 0 {
			t.Errorf("seed %d: nothing hangs, and %s is claimed", seed, inc.FirstFaultBasis)
		}
	}
	t.Logf("%d of %d hangs decided", decided, hangs)
	if decided*2 < hangs {
		t.Errorf("%d of %d hangs are decided, want half at least", decided, hangs)
	}
}
