package incident

// What a search looks for.
const (
	LargestPassing  = "largest-passing"
	SmallestFailing = "smallest-failing"
)

// Answers of a search, and of each of its edges.
const (
	Found        = "found"         // what was looked for, each as often as was asked
	AllPass      = "all_pass"      // every value of the range passes, by its largest
	NonePasses   = "none_passes"   // no value of the range passes, by its smallest
	Flaky        = "flaky"         // at the edge values pass at one time and fail at another
	OtherFailure = "other_failure" // a trial failed, and not for memory
	NotDecided   = "not_decided"   // a trial decided nothing, or the search ended before its end
)

// A Boundary is where a command begins to fail. Values are in the order of memory: it is assumed,
// and said where it was seen not to hold, that what fails with one value fails with each larger.
type Boundary struct {
	Find   string `json:"find"`
	Answer string `json:"answer"`
	Says   string `json:"says"` // in one sentence
	// Vary are the names that were varied; a search of two of them without a kept product has
	// one edge of the first for each value of the second.
	Vary       []Varied     `json:"vary"`
	Keep       *KeptProduct `json:"keep_product"` // null where none was asked for
	Also       []Also       `json:"also"`
	Repeats    int          `json:"repeats"` // how often a value of the answer had to pass or fail
	AnyFailure bool         `json:"any_failure"`
	Edges      []Edge       `json:"edges"`
	// Smallest is the answer to smallest-failing; null for another question.
	Smallest *Smallest       `json:"smallest"`
	Points   []BoundaryPoint `json:"points"`  // each trial, in the order in which they were made
	Skipped  []SkippedValue  `json:"skipped"` // values that were not tried, and why
	// NotMonotone are pairs of values of which the smaller failed and the larger passed.
	NotMonotone []string `json:"not_monotone"`
	// Trials were made before the repeats, no more than Bound.
	Trials int             `json:"trials"`
	Bound  int             `json:"bound"`
	Phases []BoundaryPhase `json:"phases"`
}

// A Varied is one name and its values: Lo, Lo+Step, … up to Hi, or with Pow2 the powers of two
// from Lo to Hi.
type Varied struct {
	Name string `json:"name"`
	Lo   int64  `json:"lo"`
	Hi   int64  `json:"hi"`
	Step int64  `json:"step"`
	Pow2 bool   `json:"pow2"`
}

// A KeptProduct is a product of two names that stays the same: Other is what makes Name times
// Other equal to Product.
type KeptProduct struct {
	Name    string `json:"name"`
	Other   string `json:"other"`
	Product int64  `json:"product"`
}

// An Also is a name of which each value of the search is tried with all of Values.
type Also struct {
	Name   string   `json:"name"`
	Values []string `json:"values"` // in the order in which they are tried
}

// A SkippedValue was not tried.
type SkippedValue struct {
	Name  string `json:"name"`
	Value int64  `json:"value"`
	Why   string `json:"why"`
}

// An Edge is where values of Name begin to fail, the other names being Fixed.
type Edge struct {
	Name   string           `json:"name"`
	Fixed  map[string]int64 `json:"fixed"`
	Answer string           `json:"answer"`
	// Largest passed each time, Smallest failed each time; where Answer is not decided, or a
	// repeat is missing, their counts say how often they were seen to. Null where there is none.
	Largest  *EdgeValue  `json:"largest"`
	Smallest *EdgeValue  `json:"smallest"`
	Flaky    []EdgeValue `json:"flaky"` // that passed and failed
	Margin   *Margin     `json:"margin"`
	Fit      *Fit        `json:"fit"`
	Trials   int         `json:"trials"` // before the repeats
	Bound    int         `json:"bound"`
}

// An EdgeValue is a value and how often it passed and failed, of how many times it was tried.
type EdgeValue struct {
	Value  int64             `json:"value"`
	Values map[string]string `json:"values"` // with what stood for the other names
	Passed int               `json:"passed"`
	Failed int               `json:"failed"`
	Of     int               `json:"of"`
	Trials []string          `json:"trials"`
}

// A Margin is what is left of the memory that binds, at the largest value that passes.
type Margin struct {
	Bytes   *int64 `json:"bytes"`   // limit less peak; null where one of the two is not known
	Measure string `json:"measure"` // name of the measure that binds; "" where none was taken
	Peak    *int64 `json:"peak"`
	Limit   *int64 `json:"limit"`
	LimitBy string `json:"limit_by"`
	Basis   string `json:"basis"`
	// AtMost says that the true margin may be smaller, because a peak between two samples is
	// not seen.
	AtMost bool   `json:"at_most"`
	Why    string `json:"why"` // why Bytes is null
}

// A Fit is peak = A + B·value by least squares over the trials that passed.
type Fit struct {
	Measure  string  `json:"measure"`
	A        float64 `json:"a"` // bytes
	B        float64 `json:"b"` // bytes for each unit of value
	Points   int     `json:"points"`
	Residual int64   `json:"residual"` // bytes; the largest distance of a peak from the line, but of those below it that may be too low
	// AtLeast says that some of the peaks are the highest of samples and may be too low.
	AtLeast bool `json:"at_least"`
	// Edge is the largest value that the line puts within the limit, EdgeLow and EdgeHigh with
	// Residual added and taken away; null without a limit or where peaks do not grow.
	Edge     *int64 `json:"edge"`
	EdgeLow  *int64 `json:"edge_low"`
	EdgeHigh *int64 `json:"edge_high"`
}

// A BoundaryPoint is one trial of a search.
type BoundaryPoint struct {
	Trial    string            `json:"trial"`
	Values   map[string]string `json:"values"`
	Repeat   bool              `json:"repeat"` // made to see whether a result holds
	Reused   bool              `json:"reused"` // made before the search was resumed
	Result   string            `json:"result"` // as TrialVerdict.Result
	Where    string            `json:"where"`
	Measure  string            `json:"measure"` // of Peak
	Peak     *int64            `json:"peak"`
	Limit    *int64            `json:"limit"`
	LimitBy  string            `json:"limit_by"`
	AtLeast  bool              `json:"at_least"`
	Basis    string            `json:"basis"`
	Ranks    []int             `json:"ranks"` // that ran out of memory, where they are named
	Seconds  *float64          `json:"seconds"`
	Text     string            `json:"text"`
	Survived string            `json:"survived"`
}

// A BoundaryPhase is a part of the run in which memory is often highest.
type BoundaryPhase struct {
	Name    string `json:"name"`    // evaluation, checkpoint
	Wanted  string `json:"wanted"`  // why it belongs to the run
	Reached bool   `json:"reached"` // by the largest value that passed
	How     string `json:"how"`     // how that is known
}

// A Smallest is the smallest configuration that still fails in the same way.
type Smallest struct {
	Values map[string]string `json:"values"`
	// From is the configuration with which it began; null Reduced where it does not fail.
	From    map[string]string `json:"from"`
	Reduced []ReducedValue    `json:"reduced"`
	Class   string            `json:"class"` // of the failure
	Kind    string            `json:"kind"`
	Failed  int               `json:"failed"` // in this way
	Of      int               `json:"of"`
	Trials  []string          `json:"trials"`
}

// A ReducedValue is what became of one name.
type ReducedValue struct {
	Name string `json:"name"`
	From int64  `json:"from"`
	To   int64  `json:"to"`
	// Below is the next smaller value, which does not fail so; null where To is the smallest
	// of its range.
	Below *int64 `json:"below"`
	Says  string `json:"says"` // what happened with Below
}
