package evidence

// A RunStatus is how a tracked run ended, as far as its files prove it.
type RunStatus string

const (
	RunFinished RunStatus = "finished"
	RunFailed   RunStatus = "failed"
	RunKilled   RunStatus = "killed"
	RunCrashed  RunStatus = "crashed"
	// RunOpen: the tracker says running, or has no word for an end, and nothing in the
	// files proves that a process is alive.
	RunOpen    RunStatus = "running-or-dead"
	RunUnknown RunStatus = "unknown" // the format has no status
)

// Keeps says what a tracker makes of a value that is not finite.
type Keeps string

const (
	KeepsAll Keeps = "kept"     // NaN, +Inf and -Inf are read back as they were logged
	Clamped  Keeps = "clamped"  // infinities become the largest finite number
	Zeroed   Keeps = "zeroed"   // become 0.0
	Dropped  Keeps = "dropped"  // are never stored
	Replaced Keeps = "replaced" // the trainer may replace them before it logs
)

// A TrackedRun is one run as one artifact of an experiment tracker records it. A
// tracker whose run is a folder of files gives one for each file; those of one
// Tracker, Folder, ID and Writer belong together.
type TrackedRun struct {
	Tracker  string // a key of TrackerNames, or a word of the reader's own
	ID       string // the tracker's own id, "" where it has none
	Name     string // as it shows the run, "" where it has none
	Project  string // project or experiment
	Folder   string // slash path of the folder that is the run, or of the store
	Writer   string // who of several wrote this artifact: host.pid, label, node; "" for one
	Artifact string

	Status         RunStatus
	StatusSaid     string // the tracker's own word: "RUNNING", "exit code 1", ""
	StatusSpan     Span   // where it says so
	HasExit        bool
	Exit           int64 // valid if HasExit
	Started, Ended Stamp // as the tracker states them
	Newest         Stamp // of the newest point or record

	Settings     []RunSetting // configuration, in the order of the file, bounded
	MoreSettings int64
	Tracks       []*Track // in the order of their first point
	MoreTracks   int64    // series beyond the bound, counted only

	Keeps  Keeps
	Cannot []string // one sentence each: what these files therefore cannot show
	Damage []RunDamage
	Notes  []string // what else is to be known of the run: tags, mirrored folders, resumed from
	Lines  int64    // of console output that was read with it
}

// A TrackerName is how people write a tracker.
type TrackerName struct {
	Short string // in a row
	Full  string // in a sentence; "" for files that go by their own name
}

// TrackerNames are the trackers by TrackedRun.Tracker.
var TrackerNames = map[string]TrackerName{
	"aim":           {"Aim", "Aim"},
	"clearml":       {"ClearML", "ClearML"},
	"comet":         {"Comet", "Comet"},
	"csv":           {"CSV", ""},
	"dvclive":       {"DVCLive", "DVCLive"},
	"jsonl":         {"JSONL", ""},
	"keras":         {"Keras", ""},
	"lightning":     {"Lightning", ""},
	"mlflow":        {"MLflow", "MLflow"},
	"mmcv":          {"mmcv", ""},
	"mmengine":      {"MMEngine", ""},
	"neptune":       {"Neptune", "Neptune"},
	"parquet":       {"Parquet", ""},
	"ray":           {"Ray", "Ray"},
	"swanlab":       {"SwanLab", "SwanLab"},
	"tensorboard":   {"TensorBoard", "TensorBoard"},
	"trackio":       {"Trackio", "Trackio"},
	"trainer_state": {"Hugging Face Trainer", "trainer_state.json"},
	"wandb":         {"W&B", "Weights & Biases"},
}

// A RunSetting is one key of a run's configuration, as written, bounded.
type RunSetting struct {
	Name, Value string
	Span        Span
}

// DamageKind is what is wrong with a part of a tracker's file.
type DamageKind string

const (
	TruncatedTail DamageKind = "truncated-tail"
	BadChecksum   DamageKind = "bad-crc"
	BadLine       DamageKind = "bad-line"   // of a text format
	BadRecord     DamageKind = "bad-record" // intact by its checksum, and not to be decoded
	ZeroFill      DamageKind = "zero-fill"
	MissingLog    DamageKind = "missing-wal"
	BadTable      DamageKind = "bad-table" // of a database
	ClockJump     DamageKind = "clock-jump"
	OverBound     DamageKind = "over-limit" // a bound of ours
)

// A RunDamage is one damaged part: what was lost there, as far as it is known.
type RunDamage struct {
	Kind    DamageKind
	Span    Span
	Text    string
	Bytes   int64 // lost, 0 if unknown
	Records int64 // lost, 0 if unknown
}

// An Axis says what the step of a series counts.
type Axis string

const (
	AxisStep    Axis = ""        // optimiser steps, or what the run logs as its step
	AxisSamples Axis = "samples" // consumed samples: another axis, not comparable by step
	AxisOwn     Axis = "own"     // a counter of its own (system metrics); comparable by time alone
	AxisEpoch   Axis = "epoch"
)

// A Track is one series of a tracked run.
type Track struct {
	Name   string  // as the tracker names it
	Series *Series // its points; Key.Name is the canonical name where one is known
	System bool    // a measurement of the machine, not of the training
	Axis   Axis
	Unit   string // as the tracker states it, or "bytes" where the name implies it

	NaN, PosInf, NegInf int64
	// Steps is false where no point states a step.
	Steps bool
	// First, Last: times of the first and last point, seconds since 1970; 0 unknown.
	FirstWall, LastWall float64
	// Segments are the stretches of rising steps, in the order of writing: a resumed run
	// goes back. The first is always there once there is a point.
	Segments     []Segment
	MoreSegments int64
	// Suspects are finite values that may stand for ones that were not; bounded.
	Suspects     []Suspect
	MoreSuspects int64 // points
}

// A Segment is an unbroken stretch of one track. Superseded are those of its points
// whose step is at or beyond the first step of a later segment.
type Segment struct {
	First, Last Mark
	N           int64
	Bad         int64 // non-finite points
	FirstBad    Mark  // valid if Bad > 0
	BadWall     float64
	BadValue    float64
	LastFinite  Mark // last finite point before FirstBad; valid if HasFinite
	FiniteWall  float64
	FiniteValue float64
	HasFinite   bool // some point before FirstBad was finite
	FirstWall   float64
	LastWall    float64
	Artifact    string // file it stands in
}

// A Suspect is a run of points whose finite value only looks like one.
type Suspect struct {
	Run
	Reason string // one clause: what speaks for it
}

// MaxSegments bounds the segments and MaxSuspects the suspects of a track.
const (
	MaxSegments = 256
	MaxSuspects = 4096
)
