package incident

// Verdicts of a verification.
const (
	Verified     = "verified"
	NotVerified  = "not_verified"
	Inconclusive = "inconclusive"
)

// States of a check (CheckItem.State has the same words).
const (
	Yes     = "yes"
	No      = "no"
	Unknown = "unknown"
)

// Names of the checks of a verification, in the order in which they are made.
const (
	CheckEnded      = "ended"       // every run ended by itself with status 0
	CheckClean      = "clean"       // no fault, none survived in silence
	CheckPast       = "past"        // past the point at which it failed before
	CheckPeak       = "peak"        // the same peak of memory in every run
	CheckSlope      = "slope"       // memory does not grow over the steps
	CheckFinite     = "finite"      // loss and gradient norm are finite
	CheckReference  = "reference"   // the curve is that of the reference
	CheckMetric     = "metric"      // a metric is finite and inside its bound; one check each
	CheckCheckpoint = "checkpoint"  // what was saved is whole and finite; one check each
	CheckEvaluate   = "evaluate"    // the user's command could use it
	CheckThroughput = "throughput"  // what it costs in time
	CheckNearby     = "nearby"      // a function beside it works; one check each
	CheckEnough     = "enough_runs" // so many successes are no chance
)

// A Verification says whether the original scenario succeeds, again and again, or, without a
// command, whether a checkpoint can be used.
type Verification struct {
	Verdict string                `json:"verdict"`
	Says    string                `json:"says"` // the verdict in one sentence
	Runs    int                   `json:"runs"` // of the scenario itself, as far as they were made
	Passed  int                   `json:"passed"`
	Failed  int                   `json:"failed"`
	Same    int                   `json:"same_failure"` // of those that failed: in the way of the incident
	Request VerificationRequest   `json:"request"`
	Failure *FailurePoint         `json:"failure_point"` // null where no incident is known
	Checks  []VerificationCheck   `json:"checks"`
	Missing []VerificationMissing `json:"missing"` // what an unknown check lacks, and how to get it
	Memory  []MemoryTrend         `json:"memory"`
	Curves  []VerifiedCurve       `json:"curves"`
	// Checkpoints has what was inspected, in the order of the runs.
	Checkpoints []Checkpoint `json:"checkpoints"`
	// Original says what differs from the trial that failed; of a recheck, from what was verified
	// before. Null where that is not known.
	Original *Comparison `json:"original"`
}

// A VerificationRequest is what was asked for; recheck asks for the same again.
type VerificationRequest struct {
	Command     []string   `json:"command"` // with {OUT} where a scratch folder is put
	Dir         string     `json:"dir"`
	Runs        int        `json:"runs"`
	Timeout     float64    `json:"timeout"` // seconds for each run; 0 is none
	Budget      float64    `json:"budget"`  // seconds for all; 0 is none
	Metrics     []string   `json:"metrics"` // NAME, NAME<=V, NAME>=V
	Reference   string     `json:"reference"`
	Tolerance   float64    `json:"tolerance"` // relative
	Checkpoint  string     `json:"checkpoint"`
	Evaluate    []string   `json:"evaluate"`
	Nearby      [][]string `json:"nearby"`
	MaxSlowdown float64    `json:"max_slowdown"` // ratio of the time of a step; 0 refuses none
	MaxGrowth   float64    `json:"max_growth"`   // share of the memory in use, over one run
	MaxSpread   float64    `json:"max_spread"`   // share of the peak, between runs
	AllowWrites []string   `json:"allow_writes"`
	Online      bool       `json:"online"`
}

// A FailurePoint is how far the failing run came.
type FailurePoint struct {
	Step    *int64   `json:"step"`      // of the first fault
	Good    *int64   `json:"last_good"` // last step that is known to have ended well
	Seconds *float64 `json:"seconds"`   // how long it ran
	Class   string   `json:"class"`
	Says    string   `json:"says"`
}

// A VerificationCheck is one question and its answer.
type VerificationCheck struct {
	Name  string `json:"name"`
	Of    string `json:"of"`    // which metric, checkpoint or command; "" where there is one only
	State string `json:"state"` // yes, no, unknown
	// Deciding says that the verdict is open where the state is unknown. No refuses in any case.
	Deciding bool     `json:"deciding"`
	Says     string   `json:"says"`
	Figures  []Figure `json:"figures"`
	Trials   []string `json:"trials"` // those that decide it, where not all do
}

// A Figure is one number behind a check.
type Figure struct {
	Name  string   `json:"name"`
	Value *float64 `json:"value"` // null where it is not finite
	Unit  string   `json:"unit"`  // bytes, steps, seconds, bytes/step, ratio, ""
	Text  string   `json:"text"`
}

// A VerificationMissing is a fact that would decide a check.
type VerificationMissing struct {
	Check string `json:"check"`
	Fact  string `json:"fact"`
	How   string `json:"how"`
}

// Shapes of memory over one run.
const (
	ShapeFlat     = "flat"     // level, or given back again and again
	ShapeGrows    = "grows"    // steadily
	ShapeFlattens = "flattens" // rises, less and less
	ShapeJumps    = "jumps"    // rose once or twice and stayed there
	ShapeSawtooth = "sawtooth" // rises and is given back, too seldom to see whether all of it is
	ShapeStarts   = "starts"   // rises, and nothing tells the program's start from its steps
	ShapeShort    = "short"    // too few points
)

// A MemoryTrend is one kind of memory over one run, as the checks peak and slope see it.
type MemoryTrend struct {
	Trial  string   `json:"trial"`
	Name   string   `json:"name"` // resident, cgroup, device, or the name of the log's series
	Device *int     `json:"device"`
	Rank   *int     `json:"rank"`
	Per    string   `json:"per"` // step, second: of Slope, From, To, FitsTo
	Points int      `json:"points"`
	From   float64  `json:"from"` // what was judged, behind the warm-up
	To     float64  `json:"to"`
	Shape  string   `json:"shape"`
	Slope  float64  `json:"slope"`  // bytes for each Per
	Error  float64  `json:"error"`  // half width of Slope
	Growth int64    `json:"growth"` // bytes between From and To
	Level  int64    `json:"level"`  // bytes at To
	Peak   int64    `json:"peak"`
	Limit  *int64   `json:"limit"`
	FitsTo *float64 `json:"fits_to"` // Per at which Limit is reached at this rate; null where it is not
	Says   string   `json:"says"`
}

// A VerifiedCurve is a loss, gradient norm or metric of one run.
type VerifiedCurve struct {
	Trial     string   `json:"trial"`
	Name      string   `json:"name"`
	Rank      *int     `json:"rank"`
	Count     int64    `json:"count"`
	Nonfinite int64    `json:"nonfinite"`
	FirstStep *int64   `json:"first_step"`
	LastStep  *int64   `json:"last_step"`
	Last      *float64 `json:"last"` // null where it is not finite, or there is none
	Trust     string   `json:"trust"`
}

// What a checkpoint is, as far as its bytes tell.
const (
	FormatSafetensors = "safetensors"
	FormatTorchZip    = "torch-zip"
	FormatTorchOld    = "torch-legacy"
	FormatTorchTar    = "torch-tar"
	FormatPickle      = "pickle"
	FormatSharded     = "sharded"   // a folder with an index
	FormatDeepSpeed   = "deepspeed" // a folder
	FormatDCP         = "torch-dcp" // a folder of torch.distributed.checkpoint
	FormatFolder      = "folder"
	FormatOther       = "unknown"
)

// A Checkpoint is what was found in a file or folder that should be one. Nothing in it is
// executed.
type Checkpoint struct {
	Path    string           `json:"path"`
	Trial   string           `json:"trial"` // that wrote it; "" for one that was named
	Format  string           `json:"format"`
	Files   []CheckpointFile `json:"files"`
	Tensors int              `json:"tensors"`
	Bytes   int64            `json:"bytes"`
	Scanned int64            `json:"scanned"` // bytes of floating-point numbers that were looked at
	State   string           `json:"state"`   // yes: whole, and every weight finite; no; unknown
	Says    string           `json:"says"`
	// Nonfinite are tensors with values that are not finite, bounded.
	Nonfinite     []NonfiniteTensor `json:"nonfinite"`
	MoreNonfinite int               `json:"more_nonfinite"`
	Problems      []string          `json:"problems"`  // each makes it unusable
	Unchecked     []string          `json:"unchecked"` // what could not be looked at
	Notes         []string          `json:"notes"`
}

// A CheckpointFile is one file of it.
type CheckpointFile struct {
	Path    string `json:"path"` // below the checkpoint
	Format  string `json:"format"`
	Bytes   int64  `json:"bytes"`
	Tensors int    `json:"tensors"`
}

// What a tensor with non-finite values is, by its name and place.
const (
	RoleWeight    = "weight"
	RoleOptimizer = "optimizer"
	RoleMask      = "mask" // whose -inf are meant
)

// A NonfiniteTensor is a tensor with values that are not finite.
type NonfiniteTensor struct {
	File     string  `json:"file"`
	Name     string  `json:"name"`
	DType    string  `json:"dtype"`
	Shape    []int64 `json:"shape"`
	Elements int64   `json:"elements"`
	NaN      int64   `json:"nan"`
	PosInf   int64   `json:"pos_inf"`
	NegInf   int64   `json:"neg_inf"`
	Role     string  `json:"role"`
	Refuses  bool    `json:"refuses"` // false for masks, and where only -inf is found, which may be meant
}
