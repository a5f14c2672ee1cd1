package incident

import (
	"encoding/json"
	"math"
	"strconv"

	"github.com/inquest-dev/inquest/internal/evidence"
)

// Names and versions of the results of inquest tracker show, align and repair.
const (
	TrackerSchema   = "inquest.tracker/v1"
	AlignmentSchema = "inquest.alignment/v1"
	RepairSchema    = "inquest.repair/v1"
)

// A Number is a float that JSON can hold: what is not finite is one of the strings "NaN",
// "Infinity", "-Infinity".
type Number float64

// MarshalJSON implements json.Marshaler.
func (n Number) MarshalJSON() ([]byte, error) {
	switch v := float64(n); {
	case math.IsNaN(v):
		return []byte(`"NaN"`), nil
	case math.IsInf(v, 1):
		return []byte(`"Infinity"`), nil
	case math.IsInf(v, -1):
		return []byte(`"-Infinity"`), nil
	default:
		return json.Marshal(v)
	}
}

// UnmarshalJSON implements json.Unmarshaler.
func (n *Number) UnmarshalJSON(b []byte) error {
	if len(b) > 1 && b[0] == '"' {
		b = b[1 : len(b)-1]
	}
	v, err := strconv.ParseFloat(string(b), 64)
	*n = Number(v)
	return err
}

// A Tracker says what experiment trackers recorded: runs, series, ends, damage. Steps are
// the tracker's, null where none is stated; times are RFC 3339 in UTC, null where
// unknown.
type Tracker struct {
	Schema    string       `json:"schema"`
	Tool      Tool         `json:"tool"`
	Runs      []TrackedRun `json:"runs"` // newest first, then by tracker and name
	Disagree  []Statement  `json:"disagreements"`
	Limits    []Statement  `json:"limits"`
	Artifacts []Artifact   `json:"artifacts"`
	NotFound  []string     `json:"not_found"`
}

// A TrackedRun is one run as one tracker recorded it, all its files together.
type TrackedRun struct {
	Tracker string  `json:"tracker"`
	ID      string  `json:"id"` // the tracker's own, "" where it has none
	Name    string  `json:"name"`
	Project string  `json:"project"`
	Folder  string  `json:"folder"` // that is the run, or the store it lies in
	Writer  string  `json:"writer"` // who of several wrote it, "" for one
	Status  string  `json:"status"` // finished, failed, killed, crashed, running-or-dead, unknown
	Said    string  `json:"status_said"`
	Basis   string  `json:"status_basis"` // one sentence: what proves the status, and what it does not prove
	Exit    *int64  `json:"exit_code"`
	Started *string `json:"started"`
	Ended   *string `json:"ended"`
	Newest  *string `json:"newest"` // time of the newest point

	Keeps      string          `json:"keeps"` // kept, clamped, zeroed, dropped, replaced
	Cannot     []string        `json:"cannot_show"`
	Settings   []RunSetting    `json:"settings"`
	More       int64           `json:"more_settings"`
	Series     []TrackedSeries `json:"series"` // losses, gradient norms, the rest, the machine; each by name
	MoreSeries int64           `json:"more_series"`
	// First is the earliest non-finite value of the run: of a loss or gradient norm where one
	// has any, else of a series of which such a value is no healthy one; null if there is none.
	First   *Onset      `json:"first_nonfinite"`
	Resumes []Resume    `json:"resumes"` // where writing began again
	Damage  []RunDamage `json:"damage"`
	Notes   []string    `json:"notes"`
	Lines   int64       `json:"console_lines"`
	Files   []string    `json:"files"`
}

// A RunSetting is one key of a run's configuration.
type RunSetting struct {
	Name  string        `json:"name"`
	Value string        `json:"value"`
	Span  evidence.Span `json:"span"`
}

// A TrackedSeries is one series of a run.
type TrackedSeries struct {
	Name     string   `json:"name"`
	Meaning  string   `json:"meaning"` // canonical name, "" where none is known
	System   bool     `json:"system"`
	Axis     string   `json:"axis"` // step, samples, epoch, own
	Unit     string   `json:"unit"`
	Count    int64    `json:"count"`
	NaN      int64    `json:"nan"`
	PosInf   int64    `json:"pos_inf"`
	NegInf   int64    `json:"neg_inf"`
	Zeros    int64    `json:"zeros"`
	Suspects int64    `json:"suspects"` // points whose finite value may stand for one that was not
	Why      []string `json:"suspect_reasons"`
	// Doubtful are the stretches that Suspects counts, in the order of writing, bounded.
	Doubtful []Doubt       `json:"suspect_segments"`
	First    *TrackedPoint `json:"first"`
	Last     *TrackedPoint `json:"last"`
	Min      *TrackedPoint `json:"min"` // over finite values
	Max      *TrackedPoint `json:"max"`
	Stride   int64         `json:"stride"` // largest step distance between neighbours, 0 unknown
	// Bad is the first non-finite value in the order of writing; Later the first one where
	// only the latest writing of each step counts, null where it is the same or there is none.
	Bad      *Onset    `json:"first_nonfinite"`
	Later    *Onset    `json:"first_nonfinite_later_wins"`
	Recovers bool      `json:"finite_again"` // a finite value follows a non-finite one
	Segments []Segment `json:"segments"`
	More     int64     `json:"more_segments"`
	// Points is a thinned sample in the order of writing: of buckets of equal length the
	// first point and the peak, non-finite ones before finite ones.
	Points []TrackedPoint `json:"points"`
}

// A TrackedPoint is one value.
type TrackedPoint struct {
	Step  *int64         `json:"step"`
	Time  *string        `json:"time"`
	Value Number         `json:"value"`
	Span  *evidence.Span `json:"span,omitempty"` // where it stands; omitted in samples
}

// A Doubt is an unbroken stretch of points whose finite value may stand for one that was
// not.
type Doubt struct {
	First  *int64 `json:"first_step"`
	Last   *int64 `json:"last_step"`
	Count  int64  `json:"count"`
	Reason string `json:"reason"`
}

// An Onset says between which two logged points a series ceased to be finite: the true
// first non-finite step is after Before's and not after At's.
type Onset struct {
	Series string        `json:"series"`
	At     TrackedPoint  `json:"at"`
	Before *TrackedPoint `json:"last_finite_before"` // null: none was logged before
	Stride int64         `json:"stride"`             // logged every so many steps, 0 unknown
}

// A Segment is an unbroken stretch of rising steps of one series.
type Segment struct {
	First      TrackedPoint `json:"first"` // value omitted as 0
	Last       TrackedPoint `json:"last"`
	Count      int64        `json:"count"`
	Nonfinite  int64        `json:"nonfinite"`
	Superseded *int64       `json:"superseded_from"` // points from this step on were written again later; null: none
	File       string       `json:"file"`
}

// A Resume is a place where a run's writing began again.
type Resume struct {
	From  *int64        `json:"from_step"`
	After *int64        `json:"after_step"` // last step written before
	Time  *string       `json:"time"`
	Basis string        `json:"basis"`
	Span  evidence.Span `json:"span"`
}

// A RunDamage is a damaged part of a tracker's file.
type RunDamage struct {
	Kind    string        `json:"kind"`
	Text    string        `json:"text"`
	Bytes   int64         `json:"bytes_lost"`
	Records int64         `json:"records_lost"`
	Span    evidence.Span `json:"span"`
}

// An Alignment sets tracked runs against job logs.
type Alignment struct {
	Schema    string       `json:"schema"`
	Tool      Tool         `json:"tool"`
	Runs      []TrackedRun `json:"runs"` // with the samples of losses, gradient norms and memory only
	Logs      []string     `json:"logs"`
	Clocks    []RunClock   `json:"clocks"` // one for each run and log that share steps
	Order     RunOrder     `json:"order"`
	After     []AfterDeath `json:"after_death"`
	Rows      []AlignedRow `json:"timeline"`
	Disagree  []Statement  `json:"disagreements"`
	Limits    []Statement  `json:"limits"`
	Artifacts []Artifact   `json:"artifacts"`
	NotFound  []string     `json:"not_found"`
}

// A RunClock is how a log's clock stands to a tracker's, by the steps that both have.
type RunClock struct {
	Run     int     `json:"run"` // index into Runs
	Log     string  `json:"log"`
	Offset  float64 `json:"offset_s"` // log less tracker, seconds
	Bound   float64 `json:"bound_s"`  // half the spread of the middle of the pairs
	Pairs   int     `json:"pairs"`    // steps that both have with a time
	Shared  int     `json:"shared_steps"`
	Means   string  `json:"means"`   // same clock, flush delay, time zone, skew, unknown
	Applied bool    `json:"applied"` // times of the two are compared with it
	Basis   string  `json:"basis"`
}

// A RunOrder is which came first: a value that is not finite, or a memory failure.
type RunOrder struct {
	Nonfinite *Onset     `json:"nonfinite"`
	Run       *int       `json:"run"` // whose
	Memory    *Statement `json:"memory"`
	Answer    string     `json:"answer"` // nonfinite first, memory first, unknown, only nonfinite, only memory, neither
	Basis     string     `json:"basis"`  // step, clock, position in one console, ...; why it is unknown
	Missing   string     `json:"missing"`
}

// An AfterDeath is what a tracker went on recording after the log's last word.
type AfterDeath struct {
	Run    int          `json:"run"`
	Points int64        `json:"points"`
	First  TrackedPoint `json:"first"`
	Death  Statement    `json:"death"`
	Basis  string       `json:"basis"`
	Status string       `json:"status_said"` // what the tracker still says of the run
}

// An AlignedRow is one line of the common timeline.
type AlignedRow struct {
	Time   *string       `json:"time"` // by the tracker's clock
	Step   *int64        `json:"step"`
	Source string        `json:"source"` // log, or the tracker and run
	Text   string        `json:"text"`
	Kind   string        `json:"kind"` // start, step, nonfinite, memory, fault, resume, end, after-death, ...
	Span   evidence.Span `json:"span"`
}

// A Repair is what was written as a repaired copy: the manifest that lies beside it.
type Repair struct {
	Schema  string        `json:"schema"`
	Tool    Tool          `json:"tool"`
	Format  string        `json:"format"` // tensorboard, wandb, mlflow-sqlite, mlflow-files, trackio, trainer_state, csv, jsonl, swanlab, ...
	Source  string        `json:"source"`
	Output  string        `json:"output"`
	Policy  RepairPolicy  `json:"policy"`
	Files   []RepairFile  `json:"source_files"` // every file that was read, by path
	Runs    []RepairedRun `json:"runs"`
	Marker  string        `json:"marker_series"`
	Damage  []RunDamage   `json:"damage"`
	Changes []string      `json:"changes"`    // what else was changed in the copy, one sentence each
	Left    []string      `json:"left_as_is"` // what still points at the source or could not be carried over
	Checks  []RepairCheck `json:"checks"`
	Undo    string        `json:"undo"`
}

// A RepairPolicy is what was asked for.
type RepairPolicy struct {
	Nonfinite string `json:"nonfinite"` // drop, hold
	Suspects  bool   `json:"drop_suspect"`
	Dedupe    bool   `json:"dedupe"`
	Tensors   bool   `json:"include_tensors"`
}

// A RepairFile is a file of the source before and after.
type RepairFile struct {
	Path    string `json:"path"` // below the source
	Size    int64  `json:"size"`
	SHA256  string `json:"sha256"`
	ModTime string `json:"mtime"`
	Same    bool   `json:"unchanged"` // hash, size and time are the same afterwards
}

// A RepairedRun is what became of one run.
type RepairedRun struct {
	ID     string           `json:"id"`
	NewID  string           `json:"new_id"` // "" where it keeps its own
	Name   string           `json:"name"`
	Status string           `json:"status"`      // as the copy states it
	Was    string           `json:"status_was"`  // as the source stated it
	Series []RepairedSeries `json:"series"`      // those that something was done to, and the sums of the others in Kept
	Kept   int64            `json:"kept_points"` // of all series
	Total  int64            `json:"points"`
	// Clean is the last step before the first affected one, at which the curve is real; null
	// where nothing finite was logged before.
	Clean *int64 `json:"last_clean_step"`
	First *int64 `json:"first_affected_step"` // null where no affected value states a step
	// Since is the step from which on some series is affected up to its last value; null where
	// each has finite values again.
	Since *int64 `json:"affected_to_end_from"`
}

// A RepairedSeries accounts for one series: Count = Kept + Dropped + Held + Superseded.
type RepairedSeries struct {
	Name       string          `json:"name"`
	Count      int64           `json:"count"`
	Kept       int64           `json:"kept"`
	NaN        int64           `json:"count_nan"`
	PosInf     int64           `json:"count_posinf"`
	NegInf     int64           `json:"count_neginf"`
	Suspect    int64           `json:"count_suspect"` // dropped as suspect
	Dropped    int64           `json:"dropped"`       // taken out: non-finite and suspect
	Held       int64           `json:"held"`          // replaced by the last finite value
	Superseded int64           `json:"superseded"`    // taken out because written again later
	Segments   []FailedSegment `json:"segments"`
	// Suspicious are finite values that may not be real and were left in.
	Suspicious []FailedSegment `json:"suspicious"`
}

// A FailedSegment is an unbroken run of affected points of one series.
type FailedSegment struct {
	FirstStep *int64   `json:"first_step"`
	LastStep  *int64   `json:"last_step"`
	FirstWall *float64 `json:"first_wall"`
	LastWall  *float64 `json:"last_wall"`
	NaN       int64    `json:"count_nan"`
	PosInf    int64    `json:"count_posinf"`
	NegInf    int64    `json:"count_neginf"`
	Suspect   int64    `json:"count_suspect"`
	Reason    string   `json:"reason"`
}

// A RepairCheck is one check of the finished copy.
type RepairCheck struct {
	Name   string `json:"name"`
	Holds  bool   `json:"holds"`
	Detail string `json:"detail"`
}
