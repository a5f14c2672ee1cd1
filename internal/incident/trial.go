package incident

// TrialSchema is the name and version of the record of one trial: what run, boundary,
// verify or recheck started, and what came of it.
const TrialSchema = "inquest.trial/v1"

// What a trial was made by.
const (
	ByRun      = "run"
	ByBoundary = "boundary"
	ByVerify   = "verify"
	ByRecheck  = "recheck"
)

// Results of a trial. OutOfMemory is a failure of memory that this trial's diagnosis states;
// Failed is any other; Unclear is an end that nothing tells a failure from.
const (
	Passed           = "passed"
	OutOfMemory      = "out_of_memory"
	TrialFailed      = "failed"
	TimedOut         = "timed_out"
	TrialInterrupted = "interrupted"
	TrialUnclear     = "unclear"
	Unfinished       = "unfinished" // it runs still, or its end was never recorded
)

// A Trial is one run of the user's command that this program started. The store keeps it
// as the records of one append-only file; a Trial is all of them folded together. Text in
// it has its secrets masked.
type Trial struct {
	Schema string `json:"schema"`
	ID     string `json:"id"`
	By     string `json:"by"` // run, boundary, verify, recheck
	// Series is the id of the search or verification that it is one of; "" for run.
	Series string `json:"series"`
	// Incident is the incident that it was made for; "" where its failure decides.
	Incident string            `json:"incident"`
	Command  []string          `json:"command"`
	Template []string          `json:"template"` // Command with {NAME} in place of what was put there; empty for run
	Values   map[string]string `json:"values"`   // NAME -> what was put there
	Set      map[string]string `json:"set"`      // environment variables that this program set
	Dir      string            `json:"dir"`
	// Scenario is the same for the same program in the same project, whatever its options:
	// the project's name, a space, and the program that Command runs, relative to it.
	Scenario string  `json:"scenario"`
	Launch   *Launch `json:"launch"` // null where no launcher named itself
	PID      int     `json:"pid"`
	Begun    string  `json:"begun"` // RFC 3339 with nanoseconds, UTC, as is Ended
	Ended    *string `json:"ended"`
	Log      string  `json:"log"` // path of what the command printed, "" where it could not be kept
	LogBytes int64   `json:"log_bytes"`
	Out      string  `json:"out"` // scratch folder that stood for {OUT}; "" where none was made

	Environment *Environment  `json:"environment"`
	Exit        *Exit         `json:"exit"` // null while it runs, or where its end was never recorded
	Measures    []Measure     `json:"measures"`
	Samples     []Sample      `json:"samples"` // thinned to a bound; no peak is lost
	Verdict     *TrialVerdict `json:"verdict"`
	Problems    []string      `json:"problems"` // what could not be recorded, and why
}

// A Launch names the start of a job that several trials may be processes of, as its launcher
// numbers it.
type Launch struct {
	ID        string `json:"id"`       // equal for all processes of one launch
	Launcher  string `json:"launcher"` // slurm, torchelastic, openmpi, pmi, kubernetes, …
	Rank      *int   `json:"rank"`
	LocalRank *int   `json:"local_rank"`
	WorldSize *int   `json:"world_size"`
	Restart   int    `json:"restart"`
	// Weak says that a later launch in the same place may have the same ID, as where only the
	// address of rank 0 names it: trials belong together if they also ran at the same time.
	Weak      bool              `json:"weak"`
	Variables map[string]string `json:"variables"` // from which this is known
}

// An Environment is what a trial ran in, as far as it could be told without running
// anything of the user's.
type Environment struct {
	Host      string            `json:"host"`
	System    string            `json:"system"` // linux, darwin, windows
	Kernel    string            `json:"kernel"`
	CPUs      int               `json:"cpus"`
	Memory    int64             `json:"memory"`    // bytes of the host
	Limits    map[string]int64  `json:"limits"`    // address_space, cgroup_memory, shared_memory, open_files, …; bytes or counts
	Variables map[string]string `json:"variables"` // secrets masked
	Python    string            `json:"python"`    // its path and version
	Packages  map[string]string `json:"packages"`  // installed distributions -> version
	Git       *Git              `json:"git"`       // null where the folder is in none
	Devices   []TrialDevice     `json:"devices"`
	Driver    string            `json:"driver"`
	Allocator string            `json:"allocator"` // PYTORCH_ALLOC_CONF and its like, as set
}

// Git is the state of the working tree.
type Git struct {
	Root    string `json:"root"`
	Commit  string `json:"commit"`
	Branch  string `json:"branch"`
	Remote  string `json:"remote"`  // without log-in
	Changed bool   `json:"changed"` // the tree differs from Commit
	Digest  string `json:"digest"`  // of what differs; "" where nothing does
	Unknown bool   `json:"unknown"` // git could not be asked: Changed and Digest say nothing
}

// A TrialDevice is a GPU that a trial could see.
type TrialDevice struct {
	Index  int    `json:"index"`
	Name   string `json:"name"`
	UUID   string `json:"uuid"`
	BusID  string `json:"bus_id"`
	Memory int64  `json:"memory"` // bytes
}

// An Exit is how a trial's command ended.
type Exit struct {
	// Status is what a shell would report: the command's own status, 128 and the signal's
	// number, 126 or 127 where it did not start.
	Status int    `json:"status"`
	Signal string `json:"signal"` // SIGKILL, SIGSEGV, …; "" where it ended by itself
	Core   bool   `json:"core"`   // a core was dumped
	Error  string `json:"error"`  // why it did not start
	// Stopped says that this program ended it, and why: a time limit, a budget, an
	// interrupt; "" where it did not.
	Stopped string `json:"stopped"`
	// OOMKills is how many processes the kernel counted as killed for memory in the command's
	// memory cgroup while it ran (oom_kill of memory.events), AtLimit how often a request found
	// the cgroup at its limit with nothing to reclaim (oom). Null where nothing counts. Whoever
	// else runs in that cgroup is counted too.
	OOMKills *int64 `json:"oom_kills,omitempty"`
	AtLimit  *int64 `json:"at_limit,omitempty"`
}

// Why this program ended a command, as Exit.Stopped says it.
const (
	StoppedTime      = "time limit"
	StoppedInterrupt = "interrupt"
	StoppedDisk      = "disk budget"
)

// Names of measures.
const (
	Resident     = "resident"      // bytes in memory of the process tree
	AddressSpace = "address_space" // largest address space of one process
	CgroupMemory = "cgroup"        // bytes charged to the cgroup
	SharedMemory = "shared_memory" // bytes in use in /dev/shm, by whomever
	DeviceMemory = "device"        // bytes on one device
	Reserved     = "reserved"      // bytes that the framework's allocator reserved on one device, by its own words
	Allocated    = "allocated"     // bytes in tensors on one device, by its own words
)

// A Measure is the highest use of one kind of memory in a trial.
type Measure struct {
	Name    string `json:"name"`
	Device  *int   `json:"device"`
	Rank    *int   `json:"rank"`
	Peak    int64  `json:"peak"`     // bytes
	Limit   *int64 `json:"limit"`    // bytes, null where none is known
	LimitBy string `json:"limit_by"` // ulimit -v, cgroup, device, host
	Basis   string `json:"basis"`    // how Peak is known: the kernel's own mark, samples and how often, words of the log
	AtLeast bool   `json:"at_least"` // the true peak may be higher, as between two samples
}

// A Sample is the memory of the process tree at one moment.
type Sample struct {
	Seconds      float64        `json:"s"` // since Begun
	Processes    int            `json:"processes"`
	Resident     int64          `json:"resident"`
	AddressSpace int64          `json:"address_space"`
	Cgroup       *int64         `json:"cgroup"`
	Devices      []DeviceSample `json:"devices"`
	// Log is how many bytes the command had printed by then: the steps in them tell which step
	// it was at. 0 where that was not noted.
	Log int64 `json:"log,omitempty"`
}

// A DeviceSample is the memory of one device; Own is of the trial's own processes, null
// where the tool does not account for processes.
type DeviceSample struct {
	Index int    `json:"index"`
	Used  int64  `json:"used"`
	Own   *int64 `json:"own"`
}

// A TrialVerdict is what the diagnosis of a trial says of it, in short.
type TrialVerdict struct {
	Result string `json:"result"` // passed, out_of_memory, failed, …
	// Where is the memory that ran out: device_memory, host_memory, shared_memory.
	Where       string `json:"where"`
	Class       string `json:"class"` // of the first fault
	Kind        string `json:"kind"`
	Cause       string `json:"cause"` // leading entry
	Standing    string `json:"standing"`
	Fingerprint string `json:"fingerprint"`
	Text        string `json:"text"` // one sentence
	// Survived says that the command ended well though memory ran out or values became
	// non-finite on the way.
	Survived string `json:"survived"`
}

// Kinds of records of a trial's file.
const (
	RecordBegun       = "begun"
	RecordEnvironment = "environment"
	RecordSamples     = "samples"
	RecordEnded       = "ended"
	RecordDiagnosis   = "diagnosis"
	RecordVerdict     = "verdict"
	RecordAct         = "act"
)

// A Record is one line of a trial's file, or of the file of an act. What belongs to its kind
// is set; the rest is null.
type Record struct {
	Seq         int           `json:"seq"` // 0, 1, … within the file
	At          string        `json:"at"`
	Kind        string        `json:"kind"`
	Begun       *Trial        `json:"begun,omitempty"`
	Environment *Environment  `json:"environment,omitempty"`
	Samples     []Sample      `json:"samples,omitempty"`
	Ended       *Ended        `json:"ended,omitempty"`
	Diagnosis   *Incident     `json:"diagnosis,omitempty"`
	Verdict     *TrialVerdict `json:"verdict,omitempty"`
	Act         *Act          `json:"act,omitempty"`
	// Attached is set where the record is too large for a line: the file has it whole.
	Attached *Attached `json:"attached,omitempty"`
}

// Attached names the file, beside the file of records, in which a large record stands as
// compressed JSON.
type Attached struct {
	Name   string `json:"name"`
	Bytes  int64  `json:"bytes"`  // before compression
	Digest string `json:"digest"` // sha256: and the digest before compression
}

// Ended is what is known when the command has ended.
type Ended struct {
	At       string    `json:"at"`
	Exit     Exit      `json:"exit"`
	Measures []Measure `json:"measures"`
	LogBytes int64     `json:"log_bytes"`
	Problems []string  `json:"problems"`
}

// Kinds of acts.
const (
	ActNote      = "note"      // somebody wrote something down
	ActClose     = "close"     // nobody works on it any more; Text says why
	ActReopen    = "reopen"    //
	ActJoint     = "joint"     // all processes of a launch were diagnosed together
	ActVerified  = "verified"  // verify or recheck judged it; Trials has the result
	ActBoundary  = "boundary"  // a search for the boundary ended; Result has what it showed, without its trials
	ActReverted  = "reverted"  // a change that did not help was taken back
	ActConfirmed = "confirmed" // kept apart from verified: somebody names the cause that a verification supports
)

// An Act is something done with an incident after its trials. Each is a file of its own.
type Act struct {
	ID        string    `json:"id"`
	Incident  string    `json:"incident"`
	Launch    string    `json:"launch"` // for ActJoint
	At        string    `json:"at"`
	Kind      string    `json:"kind"`
	Text      string    `json:"text"`
	Trials    []string  `json:"trials"` // ids that it is about
	Result    *Trials   `json:"result,omitempty"`
	Diagnosis *Incident `json:"diagnosis,omitempty"`
}
