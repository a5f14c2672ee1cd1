package remedy

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/inquest-dev/inquest/internal/evidence"
)

// submits are commands that hand a job to a scheduler and return: what they end with says nothing
// of the job.
var submits = regexp.MustCompile(`^(?:\S*/)?(?:sbatch|qsub|bsub|msub|condor_submit|kubectl|flux\s+batch|ray\s+job\s+submit)(?:\s|$)`)

// one reports whether a command line is one program with its arguments, which another program can
// start: no assignment before it, and nothing that a shell would have to do.
func one(command string) bool {
	if command == "" || len(command) > 2000 || strings.ContainsAny(command, "|;&<>`$\n*?[]{}~#\\") {
		return false
	}
	first, _, _ := strings.Cut(command, " ")
	return !strings.Contains(first, "=") && first != "cd" && first != "export" && first != "source" && first != "." && !submits.MatchString(command)
}

// tried is the command that repeats the run with the change made, "" where it cannot be given: the
// run's own command is not known, or not all of the change is in it.
func tried(command string, complete bool) string {
	if !complete || !one(command) {
		return ""
	}
	return "inquest verify -- " + command
}

// edge is the command that finds the largest micro-batch with which the run passes, below the one
// with which it failed; where the command has both, accumulation keeps the effective batch.
func edge(command string, values map[string]evidence.Value) string {
	now, ok := values["run.batch"]
	if _, cut := values["fix.micro_batch"]; !ok || !cut || now.I < 3 || !one(command) {
		return ""
	}
	put := func(s string, f int, value int64, name string) (string, bool) {
		n := 0
		s = flags[f].option.ReplaceAllStringFunc(s, func(m string) string {
			g := flags[f].option.FindStringSubmatch(m)
			if v, err := strconv.ParseInt(g[2], 10, 64); err != nil || v != value {
				return m
			}
			n++
			return g[1] + name
		})
		return s, n == 1
	}
	template, ok := put(command, 0, now.I, "{BATCH}")
	if !ok {
		return ""
	}
	keep := ""
	accumulation := max(values["run.accumulation"].I, 1)
	if both, ok := put(template, 2, accumulation, "{ACCUM}"); ok {
		template, keep = both, fmt.Sprintf(" --keep-product 'BATCH*ACCUM=%d'", now.I*accumulation)
	}
	return fmt.Sprintf("inquest boundary --vary BATCH=1..%d%s -- %s", now.I, keep, template)
}
