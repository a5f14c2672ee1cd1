package remedy

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/inquest-dev/inquest/internal/catalog"
	"github.com/inquest-dev/inquest/internal/evidence"
	"github.com/inquest-dev/inquest/internal/incident"
	"github.com/inquest-dev/inquest/internal/lazyre"
)

// A Run is what the decisions of the person on call rest on, beside the causes.
type Run struct {
	Fault     *incident.Event // what failed first; nil where nothing did
	Undecided bool            // what failed first cannot be decided
	Command   string          // what started the run, "" where no log shows it
	World     int             // ranks, 0 where not stated
	Hosts     int             // hosts heard of
	Began     int64           // step at which the attempt began or resumed, None where not known
	Reached   int64           // last step known to have been computed, None where not known
	Good      int64           // last step whose values were finite, None where not known
	Saved     []Saved         // checkpoints of the attempt before the fault, in order
	Scheduler string          // slurm, kubernetes or ""
}

// A Saved is one checkpoint that the logs name.
type Saved struct {
	Step    int64 // None where neither the line nor the path says
	Path    string
	Seconds *float64 // from its writing to the fault; nil where their times cannot be compared
	Span    evidence.Span
}

// A Cause is one of the causes that stand equally high.
type Cause struct {
	Entry    *catalog.Entry
	Standing string
}

// OnCall says whether to restart, what to take out of service, what was lost and
// what shows the failure again. Causes are those of the highest standing, best
// first; it is nil without one.
func OnCall(causes []Cause, missing []incident.Missing, known evidence.Known, r Run) *incident.OnCall {
	if len(causes) == 0 || r.Fault == nil {
		return nil
	}
	if r.Began == evidence.None {
		r.Began = resumedAt(r.Command)
	}
	out := &incident.OnCall{Restart: restart(causes, missing, r), Cordon: []incident.Cordon{}}
	if !r.Undecided {
		out.Cordon = cordon(causes[0], r)
	}
	out.Lost = lost(out.Restart.From, r)
	out.Reproduce = reproduce(causes, out.Lost, known, r)
	return out
}

// restart says what a restart without a change does. Where the causes are only
// possible it takes all of them to agree.
func restart(causes []Cause, missing []incident.Missing, r Run) incident.Restart {
	top := causes[0]
	rr := top.Entry.Rerun
	out := incident.Restart{Unchanged: rr.Unchanged, Standing: top.Standing, From: rr.From, Spans: []evidence.Span{}}
	if r.Fault.Span != nil {
		out.Spans = append(out.Spans, *r.Fault.Span)
	}
	if top.Standing == incident.Possible || r.Undecided {
		out.Standing = incident.Possible
		for _, c := range causes[1:] {
			if c.Entry.Rerun.Unchanged != out.Unchanged {
				out.Unchanged = catalog.RerunUnknown
			}
			if c.Entry.Rerun.From != out.From && out.From != catalog.FromStart {
				out.From = catalog.FromBefore // older serves every cause
			}
		}
		if r.Undecided {
			out.Unchanged = catalog.RerunUnknown
		}
	}
	host := "that host"
	if r.Fault.Host != nil {
		host = *r.Fault.Host
	}
	switch out.Unchanged {
	case catalog.RerunRepeats:
		out.Why = "the same run fails again at the same point, on any host"
	case catalog.RerunElsewhere:
		out.Why = "on " + host + " it can fail again; the unchanged run is expected to pass on another host"
	case catalog.RerunMayPass:
		out.Why = "the same run may get past this point, and can fail again later"
	case catalog.RerunSafe:
		out.Why = "nothing in the run caused its end"
	default:
		out.Why = "the evidence does not decide whether it fails again"
		if len(missing) > 0 {
			out.Why += "; find out " + lowerFirst(strings.TrimSuffix(missing[0].Fact, "."))
		}
	}
	return out
}

// cordon names the host that the cause itself puts under suspicion. A host whose
// rank only waited is never named, because the first fault is not on it.
func cordon(c Cause, r Run) []incident.Cordon {
	if c.Entry.Rerun.Suspect == "" || r.Fault.Host == nil || *r.Fault.Host == "" || c.Standing == incident.Possible {
		return []incident.Cordon{}
	}
	host := *r.Fault.Host
	out := incident.Cordon{Host: host, Device: r.Fault.Device, Standing: c.Standing, Spans: []evidence.Span{},
		Why:     "the first fault is on it, and its cause (" + c.Entry.ID + ") is " + c.Standing,
		Compare: "on " + catalog.ShellWord(host) + " and on a host that is not suspected: mkdir -p $(hostname) && nvidia-smi -q > $(hostname)/nvidia-smi.txt && dmesg -T > $(hostname)/dmesg.txt; then: inquest diagnose --compare-host OTHER LOGS " + catalog.ShellWord(host) + "/ OTHER/",
	}
	if id, ok := r.Fault.Attrs["bus_id"].(string); ok {
		out.BusID = id
	}
	if r.Fault.Span != nil {
		out.Spans = append(out.Spans, *r.Fault.Span)
	}
	return []incident.Cordon{out}
}

// stepOf finds the step in the name of a checkpoint.
var stepOf = lazyre.New(`(?i)(?:checkpoint|ckpt|iter|iteration|global_?step|step|model)[-_=]?0*(\d{1,15})(?:\D|$)`)

// StepOfPath is the step that a checkpoint's path names, None if it names none.
func StepOfPath(path string) int64 {
	all := stepOf.FindAllStringSubmatch(path, -1)
	if len(all) == 0 {
		return evidence.None
	}
	n, err := strconv.ParseInt(all[len(all)-1][1], 10, 64)
	if err != nil {
		return evidence.None
	}
	return n
}

// resumes is the option by which training scripts take the checkpoint to resume from.
var resumes = lazyre.New(`(?:^|\s)-{1,2}(?:resume|resume[-_]from(?:[-_]checkpoint)?|load|load[-_]checkpoint|checkpoint[-_]path|ckpt[-_]path|init[-_]from)[= ](\S+)`)

// resumedAt is the step of the checkpoint that a command names, None if it names none.
func resumedAt(command string) int64 {
	m := resumes.FindStringSubmatch(command)
	if m == nil {
		return evidence.None
	}
	return StepOfPath(m[1])
}

// lost is what was computed since the checkpoint from which to go on.
func lost(from string, r Run) *incident.Lost {
	out := &incident.Lost{Spans: []evidence.Span{}}
	if r.Reached != evidence.None {
		n := r.Reached
		out.ToStep = &n
	}
	began := func(why string) *incident.Lost {
		out.Why = why
		if r.Began != evidence.None && out.ToStep != nil && *out.ToStep >= r.Began {
			b, n := r.Began, *out.ToStep-r.Began
			out.FromStep, out.Steps = &b, &n
		}
		return out
	}
	switch {
	case from == catalog.FromStart:
		return began("because none of this run's checkpoints is to be used")
	case len(r.Saved) == 0:
		return began("since the launch began: the logs name no checkpoint of it")
	}
	for i := len(r.Saved) - 1; i >= 0; i-- {
		s := r.Saved[i]
		if from == catalog.FromBefore && (s.Step == evidence.None || r.Good == evidence.None || s.Step > r.Good) {
			continue
		}
		out.Checkpoint, out.Seconds = s.Path, s.Seconds
		out.Spans = append(out.Spans, s.Span)
		if s.Step != evidence.None {
			n := s.Step
			out.FromStep = &n
			if out.ToStep != nil && *out.ToStep >= n {
				d := *out.ToStep - n
				out.Steps = &d
			}
		}
		out.Why = "since the last checkpoint that the logs name"
		if from == catalog.FromBefore {
			out.Why = "since the last checkpoint older than the damage"
		}
		return out
	}
	return began("since the launch began: none of its checkpoints is known to be older than the damage")
}

// reproduce is the smallest part of the job in which the causes would show again.
func reproduce(causes []Cause, l *incident.Lost, known evidence.Known, r Run) *incident.Reproduce {
	order := []string{catalog.NeedsNothing, catalog.NeedsOneRank, catalog.NeedsDevice, catalog.NeedsTwoRanks, catalog.NeedsOneHost, catalog.NeedsTwoHosts, catalog.NeedsJob}
	rank := func(s string) int {
		for i, o := range order {
			if o == s {
				return i
			}
		}
		return len(order)
	}
	needs := causes[0].Entry.Rerun.Needs
	if causes[0].Standing == incident.Possible || r.Undecided {
		for _, c := range causes[1:] { // enough for every one of them
			if rank(c.Entry.Rerun.Needs) > rank(needs) {
				needs = c.Entry.Rerun.Needs
			}
		}
	}
	if needs == catalog.NeedsNothing {
		return nil
	}
	out := &incident.Reproduce{Needs: needs}
	sharded := known.True("run.sharded") || known["run.zero_stage"].Value.I >= 2
	if (needs == catalog.NeedsOneRank || needs == catalog.NeedsTwoRanks) && sharded && causes[0].Entry.Area == "device-memory" {
		out.Needs = catalog.NeedsJob
		out.Why = "states are sharded over all ranks, so that fewer ranks need more memory each"
	}
	single := r.World == 1
	set := func(ranks, hosts int) { out.Ranks, out.Hosts = &ranks, &hosts }
	why := ""
	switch out.Needs {
	case catalog.NeedsOneRank:
		set(1, 1)
		why = "one rank meets it alone"
		if r.World > 1 && r.Fault.Rank != nil {
			why = fmt.Sprintf("one rank meets it alone, with the data that rank %d had", *r.Fault.Rank)
		}
	case catalog.NeedsDevice:
		set(1, 1)
		why = "one rank meets it, on the same device"
		if r.Fault.Host != nil {
			why += " of " + *r.Fault.Host
		}
	case catalog.NeedsTwoRanks:
		set(2, 1)
		why = "two ranks are enough to disagree"
	case catalog.NeedsOneHost:
		why = "the ranks of one host share what ran out"
		if r.Hosts > 0 && r.World > 0 && r.World%r.Hosts == 0 {
			set(r.World/r.Hosts, 1)
		}
	case catalog.NeedsTwoHosts:
		set(2, 2)
		why = "one rank on each of two hosts uses the link"
	case catalog.NeedsJob:
		why = "it takes all ranks"
		if single {
			why = "the job has one rank"
		}
		if r.World > 0 {
			n := r.World
			out.Ranks = &n
			if r.Hosts > 0 {
				h := r.Hosts
				out.Hosts = &h
			}
		}
	}
	if out.Why == "" {
		out.Why = why
	}
	switch {
	case l != nil && l.FromStep != nil:
		out.FromStep = l.FromStep
	case r.Began != evidence.None:
		n := r.Began
		out.FromStep = &n
	}
	if r.Fault.Step != nil {
		out.ToStep = r.Fault.Step
	} else if l != nil {
		out.ToStep = l.ToStep
	}
	if r.Command != "" {
		command := withoutOutput(r.Command)
		launched := slices.ContainsFunc(sizes, func(s size) bool { return s.launcher.MatchString(command) })
		switch {
		case single || out.Needs == catalog.NeedsJob || r.World == 0 && !launched:
			out.Command = command
		case out.Ranks != nil && out.Hosts != nil:
			out.Command, _ = withSize(command, *out.Ranks, *out.Hosts)
		}
	}
	return out
}

// A size is how one launcher takes the number of processes and hosts.
type size struct {
	launcher *lazyre.Regexp
	perHost  *lazyre.Regexp // processes on each host
	total    *lazyre.Regexp // processes in all
	hosts    *lazyre.Regexp
}

// meeting are the options by which torchrun's processes of several hosts find each
// other; on one host --standalone takes their place.
var meeting = lazyre.New(`\s--(?:node[-_]rank|rdzv[-_](?:backend|endpoint|id|conf)|master[-_](?:addr|port))[= ]\S+|\s--standalone\b`)

// sizes are the options by which launchers take the number of processes and hosts
// (torchrun, accelerate, deepspeed, srun, mpirun).
var sizes = []size{
	{lazyre.New(`\b(?:torchrun|torch\.distributed\.(?:run|launch))\b`), lazyre.New(`(--nproc[-_]per[-_]node[= ])(\S+)`), nil, lazyre.New(`(--nnodes[= ])(\S+)`)},
	{lazyre.New(`\baccelerate launch\b`), nil, lazyre.New(`(--num_processes[= ])(\S+)`), lazyre.New(`(--num_machines[= ])(\S+)`)},
	{lazyre.New(`\bdeepspeed\s`), lazyre.New(`(--num_gpus[= ])(\S+)`), nil, lazyre.New(`(--num_nodes[= ])(\S+)`)},
	{lazyre.New(`\bsrun\s`), lazyre.New(`(--ntasks-per-node[= ])(\S+)`), lazyre.New(`((?:-n |--ntasks[= ]))(\S+)`), lazyre.New(`((?:-N |--nodes[= ]))(\S+)`)},
	{lazyre.New(`\bmpi(?:run|exec)\s`), nil, lazyre.New(`(-n?p? )(\d+)`), nil},
}

// withSize is the command for that many ranks on that many hosts. It reports
// false, with an empty command, where the launcher's options do not say how many
// there are now.
func withSize(command string, ranks, hosts int) (string, bool) {
	if hosts < 1 || ranks%hosts != 0 {
		return "", false
	}
	for _, s := range sizes {
		if !s.launcher.MatchString(command) {
			continue
		}
		found := false
		put := func(re *lazyre.Regexp, n int) {
			if re == nil || !re.MatchString(command) {
				return
			}
			command = re.ReplaceAllString(command, "${1}"+strconv.Itoa(n))
			found = found || re != s.hosts
		}
		put(s.perHost, ranks/hosts)
		put(s.total, ranks)
		put(s.hosts, hosts)
		if !found {
			return "", false
		}
		if hosts == 1 && meeting.MatchString(command) && strings.Contains(command, "torchrun") {
			command = strings.Replace(meeting.ReplaceAllString(command, ""), "torchrun", "torchrun --standalone", 1)
		}
		return command, true
	}
	return "", false
}
