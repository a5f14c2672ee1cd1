// Package incident is the output vocabulary: the result of one diagnosis as it
// is stored, sent and rendered (schema inquest.incident/v1, published as
// docs/incident.schema.json). It computes nothing. Fields may be added, never
// renamed. Slices are never null in JSON; a pointer is null where the incident
// says nothing.
package incident

import "github.com/inquest-dev/inquest/internal/evidence"

// Schema is the name and version of the incident format.
const Schema = "inquest.incident/v1"

// Standings of a hypothesis or a statement.
const (
	Established = "established"
	Supported   = "supported"
	Possible    = "possible"
	RuledOut    = "ruled_out"
	Undecidable = "undecidable" // first_fault_standing only
)

// Outcomes of a job.
const (
	Failed      = "failed"
	FinishedRun = "finished"
	Running     = "running"
	Interrupted = "interrupted"
	Unclear     = "unclear"
)

// Relations of a memory failure and non-finite values.
const (
	OOMFirst    = "oom_first"
	NaNFirst    = "nan_first"
	OOMOnly     = "oom_only"
	NaNOnly     = "nan_only"
	Neither     = "neither"
	NoRelation  = "undecidable"
	LinkYes     = "yes"
	LinkNo      = "no"
	LinkUnknown = "unknown"
)

// An Incident is the one result of a diagnosis.
type Incident struct {
	Schema      string `json:"schema"`
	Tool        Tool   `json:"tool"`
	ID          string `json:"id"`
	Fingerprint string `json:"fingerprint"` // same kind of failure, same fingerprint: class, kind, top cause, normalised text
	Status      string `json:"status"`      // open, confirmed, unresolved, regressed

	Outcome string `json:"outcome"`
	// Verdict of the attempt that ended the job.
	Findings

	OnCall         *OnCall         `json:"on_call"`
	Checklist      []CheckItem     `json:"checklist"`
	Contributing   []Statement     `json:"contributing"`
	Limits         []Statement     `json:"limits"`
	Attempts       []Attempt       `json:"attempts"`
	Ranks          []Rank          `json:"ranks"`
	Hosts          []Host          `json:"hosts"`
	Groups         []Group         `json:"groups"`
	Facts          map[string]Fact `json:"facts"`
	Series         []Series        `json:"series"`
	Artifacts      []Artifact      `json:"artifacts"`
	PassedOver     []PassedOver    `json:"passed_over"`
	NotFound       []string        `json:"not_found"` // named paths with the reason; limits has them too
	Context        []Quote         `json:"context"`
	Baseline       *Baseline       `json:"baseline"`
	HostComparison *HostComparison `json:"host_comparison"`
}

type Tool struct {
	Name    string `json:"name"`
	Version string `json:"version"`
}

// Findings are what is said of one attempt.
type Findings struct {
	FirstFault         *Event       `json:"first_fault"`
	FirstFaultBasis    string       `json:"first_fault_basis"`
	FirstFaultStanding string       `json:"first_fault_standing"`
	FirstFaultRivals   []Event      `json:"first_fault_rivals"`
	Order              Order        `json:"order"`
	LastGood           *LastGood    `json:"last_good"`
	Collateral         []Collateral `json:"collateral"`
	Hypotheses         []Hypothesis `json:"hypotheses"`
	Remedy             *Remedy      `json:"remedy"`
}

// An Event is one event as the incident states it.
type Event struct {
	ID         string         `json:"id"`
	Kind       string         `json:"kind"`
	Class      string         `json:"class"`
	Rank       *int           `json:"rank"`
	LocalRank  *int           `json:"local_rank"`
	Host       *string        `json:"host"`
	Device     *int           `json:"device"`
	Step       *int64         `json:"step"`
	Epoch      *float64       `json:"epoch"`
	Attempt    string         `json:"attempt"`
	Text       string         `json:"text"`
	Attrs      map[string]any `json:"attrs"` // sizes as {"lo":…,"hi":…}
	Span       *evidence.Span `json:"span"`
	Time       *Time          `json:"time"`
	KnownBy    string         `json:"known_by"` // words, elimination
	Eliminated []Elimination  `json:"eliminated,omitempty"`
	// Frame is the user's own source line where a traceback led here.
	Frame *Frame `json:"frame,omitempty"`
}

type Frame struct {
	File     string `json:"file"`
	Line     int    `json:"line"`
	Function string `json:"function"`
	Source   string `json:"source"`
}

type Elimination struct {
	Ranks []int           `json:"ranks"`
	Why   string          `json:"why"`
	Spans []evidence.Span `json:"spans"`
}

type Time struct {
	UTC     *string `json:"utc"` // RFC 3339, null where date or zone is unknown
	Written string  `json:"written"`
	Zone    string  `json:"zone"`
	ErrorS  float64 `json:"error_s"`
	Clock   string  `json:"clock"`
}

type Order struct {
	Relation         string   `json:"relation"`
	Basis            string   `json:"basis"`
	SameAttempt      bool     `json:"same_attempt"`
	Linked           string   `json:"linked"`
	Mechanism        string   `json:"mechanism"` // "" unless linked is yes
	MemoryEvent      *Event   `json:"memory_event"`
	NonfiniteEvent   *Event   `json:"nonfinite_event"`
	NonfiniteBracket *Bracket `json:"nonfinite_bracket"`
}

// A Bracket says between which two logged values a series became non-finite.
type Bracket struct {
	LastFinite *LastGood `json:"last_finite"`
	FirstSeen  *LastGood `json:"first_seen"`
	Stride     *int64    `json:"stride"` // steps between logged values
	Trust      string    `json:"trust"`
}

type LastGood struct {
	Rank  *int           `json:"rank"`
	Step  *int64         `json:"step"`
	Loss  *float64       `json:"loss"`
	Value string         `json:"value,omitempty"` // as printed where it is not a finite number
	Time  *Time          `json:"time"`
	Span  *evidence.Span `json:"span"`
}

type Collateral struct {
	Event       Event     `json:"event"`
	Ranks       []int     `json:"ranks"`
	Count       int       `json:"count"`
	ExplainedBy Explained `json:"explained_by"`
}

type Explained struct {
	Event string `json:"event"` // id of the explaining event
	Rule  string `json:"rule"`
	Text  string `json:"text"`
}

type Hypothesis struct {
	Cause    string      `json:"cause"`
	Entry    string      `json:"entry"`
	Standing string      `json:"standing"`
	Title    string      `json:"title"`
	Why      string      `json:"why"`
	For      []Statement `json:"for"`
	Against  []Statement `json:"against"`
	Missing  []Missing   `json:"missing"`
	// Readings of the entry for executive, engineer and on-call.
	Readings map[string]string `json:"readings"`
}

// A Statement is a sentence and the spans that prove it.
type Statement struct {
	Text  string          `json:"text"`
	Spans []evidence.Span `json:"spans"`
}

type Missing struct {
	Fact   string `json:"fact"` // in words
	Name   string `json:"name"` // the declared fact
	How    string `json:"how"`
	Cost   string `json:"cost"`
	Effect string `json:"effect"`
}

type Remedy struct {
	Entry        string         `json:"entry"`
	Scope        string         `json:"scope"`
	Change       string         `json:"change"`
	Why          string         `json:"why"`
	Edits        []Edit         `json:"edits"`
	Command      string         `json:"command"`
	Verify       string         `json:"verify"`
	Test         string         `json:"test"` // command that repeats the run with the change made; "" where it cannot be given
	Rollback     string         `json:"rollback"`
	Risks        []string       `json:"risks"`
	Cost         string         `json:"cost"`
	Expected     map[string]any `json:"expected"`
	Effect       string         `json:"effect"`
	NextFailure  string         `json:"next_failure"`
	Alternatives []string       `json:"alternatives"`
	Logging      *Edit          `json:"logging"` // change to the tracker logging, where it went on after death
}

// An OnCall is what the person on call decides on in the next minutes.
type OnCall struct {
	Restart   Restart    `json:"restart"`
	Cordon    []Cordon   `json:"cordon"`
	Lost      *Lost      `json:"lost"`
	Reproduce *Reproduce `json:"reproduce"`
}

type Restart struct {
	Unchanged string          `json:"unchanged"` // repeats, elsewhere, may_pass, safe, unknown
	Standing  string          `json:"standing"`  // of the cause on which that rests
	From      string          `json:"from"`      // latest, before, start
	Why       string          `json:"why"`
	Spans     []evidence.Span `json:"spans"`
}

type Cordon struct {
	Host     string          `json:"host"`
	Device   *int            `json:"device"`
	BusID    string          `json:"bus_id"`
	Standing string          `json:"standing"`
	Why      string          `json:"why"`
	Compare  string          `json:"compare"` // how to hold it against a host that is not suspected
	Spans    []evidence.Span `json:"spans"`
}

type Lost struct {
	Checkpoint string          `json:"checkpoint"` // its path, "" where no checkpoint is named
	FromStep   *int64          `json:"from_step"`
	ToStep     *int64          `json:"to_step"`
	Steps      *int64          `json:"steps"`
	Seconds    *float64        `json:"seconds"`
	Why        string          `json:"why"`
	Spans      []evidence.Span `json:"spans"`
}

type Reproduce struct {
	Needs    string `json:"needs"` // one_rank, device, one_host, two_ranks, two_hosts, job
	Ranks    *int   `json:"ranks"`
	Hosts    *int   `json:"hosts"`
	FromStep *int64 `json:"from_step"`
	ToStep   *int64 `json:"to_step"`
	Why      string `json:"why"`
	Command  string `json:"command"`
}

type Edit struct {
	Stack string `json:"stack"`
	Where string `json:"where"`
	From  string `json:"from"`
	To    string `json:"to"`
}

type CheckItem struct {
	Item  string          `json:"item"`
	State string          `json:"state"` // yes, no, unknown
	Spans []evidence.Span `json:"spans"`
	How   string          `json:"how"`
}

type Attempt struct {
	ID      string          `json:"id"`
	Spans   []evidence.Span `json:"spans"` // where each part of it begins
	Hosts   []string        `json:"hosts"`
	Start   *Time           `json:"start"`
	End     *Time           `json:"end"`
	Outcome string          `json:"outcome"`
	Command string          `json:"command"`
	Findings
	ChangedFrom *Changed `json:"changed_from"`
}

type Changed struct {
	ID    string `json:"id"`
	Diffs []Diff `json:"diffs"`
}

type Diff struct {
	Name  string          `json:"name"`
	From  string          `json:"from"`
	To    string          `json:"to"`
	Spans []evidence.Span `json:"spans"`
}

type Rank struct {
	Rank      int      `json:"rank"`
	LocalRank *int     `json:"local_rank"`
	Host      *string  `json:"host"`
	Device    *int     `json:"device"`
	BusID     *string  `json:"bus_id"`
	UUID      *string  `json:"uuid"`
	PID       *int     `json:"pid"`
	Attempt   string   `json:"attempt"`
	LastStep  *int64   `json:"last_step"`
	LastTime  *Time    `json:"last_time"`
	Fate      string   `json:"fate"` // failed first, failed, stopped by another, timed out waiting, finished, unknown
	Artifacts []string `json:"artifacts"`
}

type Host struct {
	Host    string   `json:"host"`
	OffsetS *float64 `json:"offset_s"`
	ErrorS  *float64 `json:"error_s"`
	Zone    string   `json:"zone"`
	Basis   string   `json:"basis"`
}

type Group struct {
	Name        string `json:"name"`
	Description string `json:"description"` // what the program calls it
	Members     []int  `json:"members"`
	Seq         *int64 `json:"seq"`
	Op          string `json:"op"`
	Missing     []int  `json:"missing"`
	Behind      []int  `json:"behind"`
	Mismatched  []int  `json:"mismatched"`
}

type Fact struct {
	Value any             `json:"value"`
	Unit  string          `json:"unit"`
	Text  string          `json:"text"` // the value for people
	Spans []evidence.Span `json:"spans"`
}

type Series struct {
	Name      string  `json:"name"`
	Rank      *int    `json:"rank"`
	Attempt   string  `json:"attempt"`
	Source    string  `json:"source"`
	Unit      string  `json:"unit"`
	Trust     string  `json:"trust"`
	Reduction string  `json:"reduction"` // how points were thinned: "none" or "max of each k"
	Count     int64   `json:"count"`
	Bad       int64   `json:"nonfinite"`
	Points    []Point `json:"points"`
}

// A Point's value is null where it is not finite; Text then has it as printed.
type Point struct {
	Step     *int64   `json:"step"`
	Ordinal  int64    `json:"ordinal"`
	Value    *float64 `json:"value"`
	Text     string   `json:"text,omitempty"`
	Artifact string   `json:"artifact,omitempty"`
	Line     int64    `json:"line"`
}

type Artifact struct {
	Path   string `json:"path"`
	Kind   string `json:"kind"`
	Size   int64  `json:"size"`
	Digest string `json:"digest"`
	Owner  Owner  `json:"owner"`
	Fate   string `json:"fate"`
	Note   string `json:"note"`
	// Recognised counts the events, series and facts that were taken from it.
	Recognised int64 `json:"recognised"`
}

type Owner struct {
	Job     string `json:"job"`
	Attempt string `json:"attempt"`
	Host    string `json:"host"`
	Rank    *int   `json:"rank"`
	Basis   string `json:"basis"`
}

// PassedOver counts files that were not read because they are no recognised
// kind.
type PassedOver struct {
	What  string `json:"what"` // extension or reason
	Count int64  `json:"count"`
	Bytes int64  `json:"bytes"`
}

// A Quote is a run of lines around a span.
type Quote struct {
	Artifact string   `json:"artifact"`
	Line     int64    `json:"line"` // of the first line
	Mark     int64    `json:"mark"` // the line that matters
	Lines    []string `json:"lines"`
}

// Baseline lists what differs from a run that worked.
type Baseline struct {
	Paths []string `json:"paths"`
	Diffs []Diff   `json:"diffs"`
}

// A HostComparison sets the host of the first fault beside one that is not
// suspected.
type HostComparison struct {
	Suspect string    `json:"suspect"`
	Fresh   string    `json:"fresh"`
	Says    string    `json:"says"`
	Rows    []HostRow `json:"rows"`
}

type HostRow struct {
	Name    string          `json:"name"`
	Suspect string          `json:"suspect"`
	Fresh   string          `json:"fresh"`
	Differs bool            `json:"differs"`
	Spans   []evidence.Span `json:"spans"`
}
