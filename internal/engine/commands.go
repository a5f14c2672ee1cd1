package engine

import (
	"strings"

	"github.com/inquest-dev/inquest/internal/diagnose"
	"github.com/inquest-dev/inquest/internal/evidence"
	"github.com/inquest-dev/inquest/internal/incident"
	"github.com/inquest-dev/inquest/internal/lazyre"
)

// names are what the evidence calls the job, for the words that commands have in
// their place.
type names struct {
	job, pod   string // "" where not known, or where records name several
	kubernetes bool   // the orchestrator's records are in evidence, and none of Slurm's
}

// jobNumber is a job of Slurm, less its step.
var jobNumber = lazyre.New(`^(\d{1,12})(?:[_+]\d+)?(?:\.[\w+]+)?$`)

// namesOf collects the names of a case.
func namesOf(c *diagnose.Case) names {
	n := names{}
	several, slurm, kube := false, false, false
	job := func(text string) bool {
		m := jobNumber.FindStringSubmatch(text)
		if m == nil {
			return false
		}
		several = several || n.job != "" && n.job != m[1]
		n.job = m[1]
		return true
	}
	for _, it := range c.Attempt.Items {
		switch kind := c.Timeline.Sources[it.Source].Artifact.Kind; {
		case kind == "kube":
			kube = true
		case kind == "slurm":
			slurm = true
			if it.Kind == evidence.JobRecord {
				job(it.Attrs.Str("job"))
			}
		case it.Attrs.Str("what") == "srun" || strings.HasPrefix(it.Attrs.Str("what"), "slurm"):
			slurm = true
		}
	}
	for _, p := range c.Attempt.Parts {
		if o := c.Timeline.Sources[p.Source].Artifact.Owner.Job; slurm && o != "" {
			job(o)
		}
	}
	if several || !slurm {
		n.job = ""
	}
	n.kubernetes = kube && !slurm
	if l := c.Lead; l != nil && n.kubernetes {
		if node, _ := c.Timeline.NodeOf(l.Who.Host); node != "" {
			n.pod = l.Who.Host
		}
	}
	return n
}

var (
	jobWord = lazyre.New(`\bJOB\b`)
	podWord = lazyre.New(`\bPOD\b`)
	ofSlurm = lazyre.New(`^(?:sacct|scontrol|scancel|squeue|sinfo)\b`)
)

// in puts the names into a text that tells how to find something out. Of several ways
// those of a scheduler that the job does not run under are left out, where another way is left.
func (n names) in(text string) string {
	if n.kubernetes {
		text = without(without(text, "; "), ", or ")
	}
	if n.job != "" {
		text = jobWord.ReplaceAllLiteralString(text, n.job)
	}
	if n.pod != "" {
		text = podWord.ReplaceAllLiteralString(text, n.pod)
	}
	return text
}

// without drops the ways, sep apart, that begin with a command of Slurm, if others are left.
func without(text, sep string) string {
	var kept []string
	for _, way := range strings.Split(text, sep) {
		if !ofSlurm.MatchString(strings.TrimSpace(way)) {
			kept = append(kept, way)
		}
	}
	if len(kept) == 0 {
		return text
	}
	return strings.Join(kept, sep)
}

// fillMissing puts the names into what is asked for.
func (n names) fillMissing(list []incident.Missing) {
	for i := range list {
		list[i].How = n.in(list[i].How)
	}
}

// fillRemedy puts the job's number into what a remedy has the person run.
func (n names) fillRemedy(r *incident.Remedy) {
	if r == nil || n.job == "" {
		return
	}
	for _, text := range []*string{&r.Command, &r.Verify, &r.Change, &r.NextFailure} {
		*text = jobWord.ReplaceAllLiteralString(*text, n.job)
	}
	for i := range r.Alternatives {
		r.Alternatives[i] = jobWord.ReplaceAllLiteralString(r.Alternatives[i], n.job)
	}
}
