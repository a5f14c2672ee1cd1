package ledger

import (
	"slices"
	"strconv"
	"strings"

	"github.com/inquest-dev/inquest/internal/incident"
	"github.com/inquest-dev/inquest/internal/lazyre"
)

// Families of options and variables, by the last part of their names.
var (
	microBatch   = lazyre.New(`(?:^|[._])(?:per_(?:device|gpu)_train_batch_size|train_(?:micro_)?batch_size(?:_per_gpu)?|(?:micro|device|local)_batch_size|batch_size(?:_per_(?:gpu|device))?|micro_batch|batch|bs|b|mbs)$`)
	evalBatch    = lazyre.New(`(?:eval|val|valid|validation|test|infer|global|total|effective)`)
	accumulation = lazyre.New(`(?:^|[._])(?:gradient_accumulation(?:_steps)?|grad_accum(?:ulation)?(?:_steps)?|accum(?:ulate)?(?:_steps|_grad_batches|_iter|_freq)?|accumulation(?:_steps)?|update_freq|ga|gas|acc)$`)
	globalBatch  = lazyre.New(`(?:^|[._])(?:global|total|effective)_(?:train_)?batch_size$|(?:^|[._])gbs$`)
	processes    = lazyre.New(`(?:^|[._])(?:nproc_per_node|nproc|num_processes|num_gpus|n_?gpus?|gpus|world_size|local_world_size|ntasks|ntasks_per_node|tasks_per_node|np|nnodes|num_nodes|num_machines|nodes|gpus_per_node)$|^(?:slurm_(?:ntasks|nprocs|npernode|ntasks_per_node|tasks_per_node|step_num_tasks|step_tasks_per_node|nnodes|job_num_nodes|step_num_nodes)|ompi_comm_world_(?:size|local_size)|pmi_size|pmix_size|mpi_localnranks)$`)
	derived      = lazyre.New(`^(?:world_size|local_world_size|group_world_size|role_world_size|slurm_.*|ompi_.*|pmi_.*|pmix_.*|mpi_.*)$`)
)

// link makes one change of those that are parts of one.
func (c *comparer) link() {
	c.linkProcesses()
	c.linkBatch()
}

// keyOf is the name of a change as families know it.
func keyOf(ch incident.Change) string { return optionKey(ch.Name) }

func linkable(ch incident.Change) bool {
	return ch.Of == incident.ChangeCommand || ch.Of == incident.ChangeEnvironment
}

// linkProcesses folds the variables that a launcher derives into the option that it was given.
func (c *comparer) linkProcesses() {
	lead := slices.IndexFunc(c.changes, func(ch incident.Change) bool {
		return linkable(ch) && processes.MatchString(keyOf(ch)) && !derived.MatchString(keyOf(ch))
	})
	if lead < 0 {
		lead = slices.IndexFunc(c.changes, func(ch incident.Change) bool { return linkable(ch) && keyOf(ch) == "world_size" })
	}
	if lead < 0 {
		return
	}
	var kept []incident.Change
	var parts []incident.ChangePart
	head := 0
	for i, ch := range c.changes {
		if i != lead && ch.Of == incident.ChangeEnvironment && (derived.MatchString(keyOf(ch)) && processes.MatchString(keyOf(ch)) || keyOf(ch) == "world_size" || keyOf(ch) == "local_world_size") {
			parts = append(parts, part(ch))
			continue
		}
		if i == lead {
			head = len(kept)
		}
		kept = append(kept, ch)
	}
	if len(parts) == 0 {
		return
	}
	kept[head].Parts = append([]incident.ChangePart{part(kept[head])}, parts...)
	kept[head].Text += ", and what the launcher derives from it"
	c.changes = kept
}

func part(ch incident.Change) incident.ChangePart {
	return incident.ChangePart{Of: ch.Of, Name: ch.Name, From: ch.From, To: ch.To}
}

// linkBatch finds a micro-batch whose change is made up for by accumulation, so that as many
// samples make one step as before. Without an option accumulation is 1.
func (c *comparer) linkBatch() {
	micro, acc := -1, -1
	for i, ch := range c.changes {
		k := keyOf(ch)
		switch {
		case !linkable(ch):
		case accumulation.MatchString(k):
			if acc >= 0 {
				return // two of them: what they come to is not known
			}
			acc = i
		case microBatch.MatchString(k) && !evalBatch.MatchString(k):
			if micro >= 0 {
				return
			}
			micro = i
		case globalBatch.MatchString(k):
			return // the effective batch was changed by its own name
		}
	}
	if micro < 0 {
		return
	}
	m := c.changes[micro]
	if acc < 0 {
		if name, n := c.statedGlobal(); name != "" && wholeOf(m.From) > 0 && wholeOf(m.To) > 0 {
			c.changes[micro].Text += ", effective batch kept: " + name + " " + n + " in both"
		}
		return
	}
	g := c.changes[acc]
	one := func(s string) int64 {
		if s == "" {
			return 1
		}
		return wholeOf(s)
	}
	from, to := wholeOf(m.From)*one(g.From), wholeOf(m.To)*one(g.To)
	if from == 0 || from != to {
		return
	}
	before, after := strconv.FormatInt(one(g.From), 10), strconv.FormatInt(one(g.To), 10)
	c.changes[micro] = incident.Change{Of: m.Of, Name: "micro-batch", From: m.From, To: m.To,
		Text:  "micro-batch " + m.From + " → " + m.To + ", effective batch kept (accumulation " + before + " → " + after + ")",
		Parts: []incident.ChangePart{part(m), part(g)}}
	c.changes = slices.Delete(c.changes, acc, acc+1)
}

// wholeOf is a whole number of at most a million, 0 for anything else.
func wholeOf(s string) int64 {
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || n < 1 || n > 1_000_000 {
		return 0
	}
	return n
}

// statedGlobal is the option by which both commands state the same effective batch.
func (c *comparer) statedGlobal() (name, value string) {
	find := func(words []string) (string, string) {
		for _, a := range takeApart(words).arguments {
			if globalBatch.MatchString(strings.TrimPrefix(a.key, "launcher\x00")) {
				return a.name, a.value
			}
		}
		return "", ""
	}
	n, v := find(c.a.Command)
	m, w := find(c.b.Command)
	if n == "" || m == "" || v != w || wholeOf(v) == 0 {
		return "", ""
	}
	return n, v
}
