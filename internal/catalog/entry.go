package catalog

// An Entry is one described failure: how it is recognised, what it means, what
// to do. One YAML file in encyclopedia/entries/<area>/<id>.yaml; the field
// names are the YAML keys. docs/entry-format.md says how to write one.
//
// Texts may hold {fact.name}: the fact's value in this run is put there. In the
// texts of evidence (says) every named fact is known whenever the condition was
// decided; elsewhere a sentence whose fact is unknown is left out, unless it has
// a fallback: {run.batch|the micro-batch}.
type Entry struct {
	ID    string   `yaml:"id" json:"id"`
	Title string   `yaml:"title" json:"title"`
	Area  string   `yaml:"area" json:"area"`   // folder: device-memory, host-memory, numerics, distributed, device, outside
	About []string `yaml:"about" json:"about"` // event kinds whose occurrence as leading fault makes this a candidate
	Since string   `yaml:"since" json:"since"` // version of inquest that first had it

	// Recognition. All conditions are CEL over declared facts.
	Needs   string      `yaml:"needs,omitempty" json:"needs,omitempty"` // not a candidate when this is known to be false
	Prior   int         `yaml:"prior" json:"prior"`                     // 0..9: how common it is among runs that show such a fault; breaks ties only
	For     []Condition `yaml:"for" json:"for"`
	Against []Condition `yaml:"against,omitempty" json:"against,omitempty"`
	Decides []Decider   `yaml:"decides" json:"decides"` // facts that would decide, cheapest first

	// Explanation.
	Quick      string      `yaml:"quick" json:"quick"` // the quick answer: two or three sentences
	SearchKeys []string    `yaml:"search" json:"search"`
	Symptoms   []Symptom   `yaml:"symptoms" json:"symptoms"`
	Mechanism  string      `yaml:"mechanism" json:"mechanism"`
	Systems    string      `yaml:"systems" json:"systems"`
	LookAlikes []LookAlike `yaml:"look_alikes" json:"look_alikes"`
	Checklist  []Check     `yaml:"checklist" json:"checklist"`
	Fix        []Fix       `yaml:"fix" json:"fix"`
	Remedy     Remedy      `yaml:"remedy" json:"remedy"`
	Cases      []Case      `yaml:"remedy_when,omitempty" json:"remedy_when,omitempty"`
	Verify     string      `yaml:"verify" json:"verify"`
	Risks      []string    `yaml:"risks" json:"risks"`
	Rollback   string      `yaml:"rollback" json:"rollback"`
	Escalate   string      `yaml:"escalate,omitempty" json:"escalate,omitempty"` // when to ask the administrator or vendor
	Prevention []string    `yaml:"prevention" json:"prevention"`
	Related    []string    `yaml:"related" json:"related"`
	Sources    []string    `yaml:"sources" json:"sources"`
	Rerun      Rerun       `yaml:"rerun" json:"rerun"`
	Readings   Readings    `yaml:"readings" json:"readings"`
	Examples   Examples    `yaml:"examples" json:"examples"`
}

// A Condition is one piece of evidence for or against an entry.
//
// Weights: decisive — where it holds and nothing speaks against the entry, the
// evidence decides the cause (standing established); strong — supports it
// (standing supported); weak — makes it a little likelier (stays possible).
// Against: rules_out closes the entry; strong and weak lower it, and any
// known objection prevents "established".
type Condition struct {
	When     string `yaml:"when" json:"when"`
	Weight   string `yaml:"weight,omitempty" json:"weight,omitempty"` // weak, strong, decisive
	RulesOut bool   `yaml:"rules_out,omitempty" json:"rules_out,omitempty"`
	Says     string `yaml:"says" json:"says"` // one sentence for the report, with {fact} values
	// Proof names the facts (or seen.<kind>) whose spans prove it, when that is
	// not simply every fact in When.
	Proof []string `yaml:"proof,omitempty" json:"proof,omitempty"`
}

// A Decider is a fact that would decide between this entry and its rivals. How,
// Cost and Effect override those of the fact's declaration where this entry has
// a better command for the person.
type Decider struct {
	Fact   string `yaml:"fact" json:"fact"`
	Asks   string `yaml:"asks" json:"asks"` // the missing fact in words: "how long the failing batch's longest sample was"
	How    string `yaml:"how,omitempty" json:"how,omitempty"`
	Cost   string `yaml:"cost,omitempty" json:"cost,omitempty"`
	Effect string `yaml:"effect,omitempty" json:"effect,omitempty"`
}

type Symptom struct {
	What string `yaml:"what" json:"what"`
	Why  string `yaml:"why" json:"why"`
}

type LookAlike struct {
	Entry string `yaml:"entry" json:"entry"`
	Tell  string `yaml:"tell" json:"tell"` // how to tell them apart
}

// A Check is one item of the confirm list. When is CEL: true ticks it yes,
// false no, unknown leaves it open, and How says how to find out.
type Check struct {
	Item string `yaml:"item" json:"item"`
	When string `yaml:"when" json:"when"`
	How  string `yaml:"how" json:"how"`
}

// A Fix is the remedy written out for one stack, as one or more steps, read-only
// and reversible ones first.
type Fix struct {
	Stack string `yaml:"stack" json:"stack"` // any, pytorch, hf, lightning, deepspeed, fsdp, megatron, torchtitan, jax, tensorflow, vllm, slurm, kubernetes, docker
	Why   string `yaml:"why" json:"why"`
	Steps []Step `yaml:"steps" json:"steps"`
}

// A Step is one action. Python that can show itself on any machine says Runs: cpu;
// Given declares what it needs, and Then what must hold afterwards. Tests run the three
// one after the other; readers see Code alone.
type Step struct {
	Do     string `yaml:"do" json:"do"`
	Code   string `yaml:"code,omitempty" json:"code,omitempty"`
	Lang   string `yaml:"lang,omitempty" json:"lang,omitempty"` // python, shell, yaml, json, text
	Effect string `yaml:"effect" json:"effect"`                 // reads, reversible, changes
	Level  string `yaml:"level" json:"level"`                   // beginner, advanced
	Runs   string `yaml:"runs,omitempty" json:"-"`              // "" or cpu
	Given  string `yaml:"given,omitempty" json:"-"`
	Then   string `yaml:"then,omitempty" json:"-"`
}

// A Remedy is the one scoped change, with values of this run.
type Remedy struct {
	Scope string `yaml:"scope" json:"scope"` // code, config, environment, launcher, host, device, data, vendor, measure
	// Change is one sentence. Compute names a calculation of package remedy that
	// fills {fix.*} values: micro_batch, eval_batch, seq_cap, alloc_conf, gpu_fraction, mem_limit, shm_size, lr_cut, bf16, workers, none.
	Change      string   `yaml:"change" json:"change"`
	Compute     string   `yaml:"compute,omitempty" json:"compute,omitempty"`
	Why         string   `yaml:"why" json:"why"`
	Edits       []Edit   `yaml:"edits" json:"edits"`
	Command     string   `yaml:"command,omitempty" json:"command,omitempty"` // what to run now, {run.command} is the run's own
	Verify      string   `yaml:"verify" json:"verify"`
	Expected    string   `yaml:"expected" json:"expected"` // what the verification must show
	Cost        string   `yaml:"cost" json:"cost"`         // what the change costs (speed, quality, money)
	Effect      string   `yaml:"effect" json:"effect"`     // reads, reversible, changes
	NextFailure string   `yaml:"next_failure" json:"next_failure"`
	Options     []string `yaml:"alternatives" json:"alternatives"`
}

// A Case is the remedy in a situation that the entry's own does not fit, such as
// a failure in evaluation: the first whose When holds takes its place.
type Case struct {
	When     string   `yaml:"when" json:"when"` // CEL
	In       string   `yaml:"in" json:"in"`     // the situation in words: "in evaluation"
	Remedy   Remedy   `yaml:"remedy" json:"remedy"`
	Risks    []string `yaml:"risks" json:"risks"`
	Rollback string   `yaml:"rollback" json:"rollback"`
}

// An Edit is the change at one place, for one stack ("any" for all).
type Edit struct {
	Stack string `yaml:"stack" json:"stack"`
	Where string `yaml:"where" json:"where"`
	From  string `yaml:"from" json:"from"`
	To    string `yaml:"to" json:"to"`
}

// A Rerun is what the person on call has to know of this cause: what a restart
// without any change does, from which checkpoint, and how much of the job is
// needed to see the failure again.
type Rerun struct {
	// Unchanged: repeats (it fails again, wherever it runs), elsewhere (it fails
	// again on that host, another is expected to pass), may_pass (it may get past
	// this point and fail again later), safe (nothing in the run caused it) or
	// unknown (that has to be found out first).
	Unchanged string `yaml:"unchanged" json:"unchanged"`
	// From: latest (the newest checkpoint), before (one older than the damage) or
	// start (none of this run).
	From string `yaml:"from" json:"from"`
	// Needs: none (nothing to reproduce), one_rank, device (one rank on that very
	// device), one_host, two_ranks, two_hosts or job.
	Needs string `yaml:"needs" json:"needs"`
	// Suspect: host where this cause puts the host itself under suspicion, else "".
	Suspect string `yaml:"suspect,omitempty" json:"suspect,omitempty"`
}

// The values of a Rerun.
const (
	RerunRepeats   = "repeats"
	RerunElsewhere = "elsewhere"
	RerunMayPass   = "may_pass"
	RerunSafe      = "safe"
	RerunUnknown   = "unknown"

	FromLatest = "latest"
	FromBefore = "before"
	FromStart  = "start"

	NeedsNothing  = "none"
	NeedsOneRank  = "one_rank"
	NeedsDevice   = "device"
	NeedsOneHost  = "one_host"
	NeedsTwoRanks = "two_ranks"
	NeedsTwoHosts = "two_hosts"
	NeedsJob      = "job"
)

// Readings are the same finding for three readers, two to four sentences each.
type Readings struct {
	Executive string `yaml:"executive" json:"executive"`
	Engineer  string `yaml:"engineer" json:"engineer"`
	OnCall    string `yaml:"on_call" json:"on_call"`
}

// Examples are logs (ours) that must make this entry a hypothesis of the given
// standing or better, and logs that must not name it above "possible". The lint
// diagnoses each one.
type Examples struct {
	Match   []Example `yaml:"match" json:"match"`
	NoMatch []Example `yaml:"no_match" json:"no_match"`
}

// An Example is a small job log or, with Files, a folder of them.
type Example struct {
	Log      string            `yaml:"log,omitempty" json:"log,omitempty"`
	Files    map[string]string `yaml:"files,omitempty" json:"files,omitempty"`
	Standing string            `yaml:"standing,omitempty" json:"standing,omitempty"` // for match: the least standing expected; default possible
}
