package detect

import (
	"strings"

	"github.com/inquest-dev/inquest/internal/evidence"
)

// outsideStops says whether training was seen to run, and names who told the job
// to stop, where a record says so. A bare
// signal does not: scheduler, launcher and people send the same ones. Of several
// records the scheduler's reason counts before a person's key press.
func outsideStops(in Input, f evidence.Known) {
	for _, name := range []string{"loss", "grad_norm", "lr"} {
		for _, s := range in.named(name, "train") {
			if _, ok := f["run.progressed"]; !ok && !beforeTraining(s) {
				f.Set("run.progressed", evidence.BoolOf(true), s.Span(s.Last))
			}
		}
	}
	for _, by := range []struct {
		kind   evidence.Kind
		sender string
	}{
		{evidence.Preempted, "preemption"},
		{evidence.TimeLimit, "time limit"},
		{evidence.Interrupted, "person"},
		{evidence.NodeFailure, "node failure"},
	} {
		if e := in.first(by.kind); e != nil {
			f.Set("stop.sender", evidence.TextOf(by.sender), e.Span)
			return
		}
	}
	in.each(evidence.Cancelled, func(e *evidence.Event) {
		if by := e.Attrs.Str("by"); by != "" {
			f.Set("stop.sender", evidence.TextOf("user "+by), e.Span)
		}
	})
}

// scheduler says under what the job ran, by who words its records: of the leading fault
// first. Where the records are of both, it is left open.
func scheduler(in Input, f evidence.Known) {
	if in.Lead != nil {
		if name := schedulerOf(in.Lead); name != "" {
			f.Set("run.scheduler", evidence.TextOf(name), in.Lead.Span)
			return
		}
	}
	by := map[string]evidence.Span{}
	for _, e := range in.Events {
		if name := schedulerOf(e); name != "" {
			if _, ok := by[name]; !ok {
				by[name] = e.Span
			}
		}
	}
	for _, x := range in.Stated {
		for prefix, name := range map[string]string{"setting.kube_": "kubernetes", "setting.sbatch_": "slurm"} {
			if _, ok := by[name]; !ok && strings.HasPrefix(x.Name, prefix) {
				by[name] = x.Span
			}
		}
	}
	if len(by) != 1 {
		return
	}
	for name, span := range by {
		f.Set("run.scheduler", evidence.TextOf(name), span)
	}
}

// schedulerOf is the scheduler that words e, "" for others. Slurm numbers its jobs.
func schedulerOf(e *evidence.Event) string {
	switch what := e.Attrs.Str("what"); {
	case e.Kind == evidence.Exited && what == "container":
		return ""
	case strings.HasPrefix(what, "kubernetes"), what == "kueue", what == "taint-eviction":
		return "kubernetes"
	case strings.HasPrefix(what, "slurm"), strings.HasPrefix(what, "srun"), what == "submitit":
		return "slurm"
	}
	if e.Kind != evidence.JobRecord {
		return ""
	}
	job := e.Attrs.Str("job")
	n := 0
	for n < len(job) && job[n] >= '0' && job[n] <= '9' {
		n++
	}
	state := e.Attrs.Str("state")
	switch {
	case n > 0 && (n == len(job) || job[n] == '.' || job[n] == '_' || job[n] == '+') && state == strings.ToUpper(state):
		return "slurm"
	case state == "terminated", state == "terminated before", state == "waiting", state == "running":
		return "kubernetes"
	}
	return ""
}
