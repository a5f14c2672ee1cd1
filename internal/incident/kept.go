package incident

// KeptSchema is the name and version of a kept incident.
const KeptSchema = "inquest.kept/v1"

// States of an incident (Incident.Status has the same words).
const (
	Open       = "open"
	Confirmed  = "confirmed"  // a verification succeeded after one change
	Unresolved = "unresolved" // no verification succeeded, whatever a single retry did
	Regressed  = "regressed"  // it was confirmed, and failed again in the same way
)

// A Kept is an incident as the store has it: all trials and acts that belong to one failure
// of one scenario.
type Kept struct {
	Schema      string `json:"schema"`
	ID          string `json:"id"` // from scenario and fingerprint: the same failure has the same id in every store
	Fingerprint string `json:"fingerprint"`
	Scenario    string `json:"scenario"`
	Status      string `json:"status"`
	Closed      bool   `json:"closed"`
	Title       string `json:"title"`
	First       string `json:"first"` // begin of the first trial that failed so
	Last        string `json:"last"`  // begin of the last one
	// Original is the trial whose failure it is: the first that failed so, and of the
	// processes of one launch the one with the best words.
	Original string `json:"original"`
	// Says is in one sentence why Status is what it is.
	Says string `json:"says"`

	Symptom     string       `json:"symptom"` // the original first fault, in its own words
	Environment *Environment `json:"environment"`
	Cause       *KeptCause   `json:"cause"`
	Fix         *Fix         `json:"fix"`       // null until a verification succeeded
	FollowUp    []string     `json:"follow_up"` // the command that tests it again
	Rollback    string       `json:"rollback"`
	NotHelped   []NotHelped  `json:"not_helped"` // changes to be taken back

	Diagnosis *Incident `json:"diagnosis"` // of the failure, as first diagnosed; joint where a launch had several processes
	Also      []string  `json:"also"`      // other ids that its failure had, before all processes of its launch were diagnosed together
	Table     []KeptRow `json:"table"`     // its trials in short, oldest first; those of one launch are one row
	Trials    []Trial   `json:"trials"`    // oldest first, without samples
	Acts      []Act     `json:"acts"`      // oldest first
	Problems  []string  `json:"problems"`  // what of it could not be read
}

// IncidentsSchema is the name and version of a list of kept incidents.
const IncidentsSchema = "inquest.incidents/v1"

// Incidents is what a store has, in short.
type Incidents struct {
	Schema    string     `json:"schema"`
	Store     string     `json:"store"`
	Incidents []KeptLine `json:"incidents"` // newest first, by Last
	Hidden    int        `json:"hidden"`    // incidents that were not asked for
	Trials    int        `json:"trials"`    // all in the store, those of no incident among them
	Problems  []string   `json:"problems"`  // what of the store could not be read
}

// A KeptLine is a kept incident in short.
type KeptLine struct {
	ID          string `json:"id"`
	Fingerprint string `json:"fingerprint"`
	Scenario    string `json:"scenario"`
	Status      string `json:"status"`
	Closed      bool   `json:"closed"`
	Title       string `json:"title"`
	Says        string `json:"says"`
	First       string `json:"first"`
	Last        string `json:"last"`
	Original    string `json:"original"`
	Cause       string `json:"cause"` // leading entry of the diagnosis, "" where it has none
	Trials      int    `json:"trials"`
	Failed      int    `json:"failed"`
}

// A KeptRow is a trial of an incident, or all that one launch made, in short.
type KeptRow struct {
	Trial     string   `json:"trial"`  // the one whose result this is
	Launch    string   `json:"launch"` // "" for a single trial
	Processes int      `json:"processes"`
	Failed    int      `json:"failed"` // of them
	By        string   `json:"by"`
	Begun     string   `json:"begun"`
	Seconds   *float64 `json:"seconds"` // null where its end is not on record
	Result    string   `json:"result"`
	Text      string   `json:"text"` // what is said of the result
	Status    *int     `json:"status"`
	Signal    string   `json:"signal"`
	Peak      *Measure `json:"peak"` // of the memory that ran out, else of what came nearest to its limit
	// Changes are those from the original trial; Compared says that they are known, as they are
	// not for that one itself.
	Changes  []Change `json:"changes"`
	Compared bool     `json:"compared"`
	Unknown  int      `json:"unknown"` // things that could not be compared
	Verdict  string   `json:"verdict"` // of the verification that it belongs to, "" where it belongs to none
}

// A KeptCause is the cause as it stands now.
type KeptCause struct {
	Entry     string `json:"entry"`
	Title     string `json:"title"`
	Standing  string `json:"standing"`  // of the diagnosis
	Confirmed bool   `json:"confirmed"` // by a verification
}

// A Fix is what had changed when the scenario succeeded in a verification. It is confirmed
// only where Single.
type Fix struct {
	Changes []Change `json:"changes"`
	Trial   string   `json:"trial"`   // the first verified trial
	Act     string   `json:"act"`     // the verification
	Single  bool     `json:"single"`  // one thing changed
	Unknown []string `json:"unknown"` // what could not be compared: it may have changed as well
}

// A NotHelped is a change that was tried and did not help.
type NotHelped struct {
	Changes []Change `json:"changes"`
	Trial   string   `json:"trial"`
	Text    string   `json:"text"` // what to take back
}

// What a change is of.
const (
	ChangeCommand     = "command"
	ChangeEnvironment = "environment"
	ChangeSetting     = "setting"
	ChangeVersion     = "version"
	ChangeCode        = "code"
	ChangeData        = "data"
	ChangeMachine     = "machine"
)

// A Change is one thing that differs between two trials.
type Change struct {
	Of   string `json:"of"` // command, environment, setting, version, code, data, machine
	Name string `json:"name"`
	From string `json:"from"` // "" where it was not there
	To   string `json:"to"`
	Text string `json:"text"` // in words
	// Parts are the differences that belong together and count as this one change; empty
	// where it is one difference.
	Parts []ChangePart `json:"parts,omitempty"`
}

// A ChangePart is one of the differences that make up a change.
type ChangePart struct {
	Of   string `json:"of"`
	Name string `json:"name"`
	From string `json:"from"`
	To   string `json:"to"`
}

// ComparisonSchema is the name and version of a comparison.
const ComparisonSchema = "inquest.comparison/v1"

// Effects of what changed from trial A to trial B, by the results of both.
const (
	Helped         = "helped"          // A failed, B passed
	DidNotHelp     = "did_not_help"    // B failed as A did
	AnotherFailure = "another_failure" // B failed, but not as A did
	MadeWorse      = "made_worse"      // A passed, B failed
	BothPassed     = "both_passed"
	EffectUnknown  = "unknown" // one of the two has no result that says it
)

// A Comparison is what differs between two trials.
type Comparison struct {
	Schema  string   `json:"schema"`
	A       Trial    `json:"a"`
	B       Trial    `json:"b"`
	Changes []Change `json:"changes"`
	// Expected are differences that any two runs have (host name of another node of the
	// same kind, process numbers, scratch folders); they count as no change.
	Expected []Change `json:"expected"`
	Unknown  []string `json:"unknown"` // what could not be compared, because one of the two does not say
	// Effect is what the results of A and of B after it say: helped, did_not_help,
	// another_failure, made_worse, both_passed, unknown.
	Effect string `json:"effect"`
	Says   string `json:"says"` // whether one thing, several or nothing changed, and whether it helped
}
