package incident

import "github.com/inquest-dev/inquest/internal/evidence"

// MemorySchema is the name and version of the result of inquest memory.
const MemorySchema = "inquest.memory/v1"

// A Memory says what memory snapshots show: of each one and each device what made the
// peak, what grew, how the reserve is cut up, and what another setting would have
// changed. Bytes are integers. Events are indices of the device's trace, 0 the oldest.
type Memory struct {
	Schema    string           `json:"schema"`
	Tool      Tool             `json:"tool"`
	Snapshots []MemorySnapshot `json:"snapshots"` // by path
	// Change is what grew from the first snapshot to the last, where several are of one
	// process; null otherwise.
	Change *MemoryChange `json:"change"`
	// Ranks sets the snapshots of several ranks side by side; null for one.
	Ranks     *MemoryRanks `json:"ranks"`
	Limits    []Statement  `json:"limits"`
	Artifacts []Artifact   `json:"artifacts"`
	NotFound  []string     `json:"not_found"`
}

// A MemorySnapshot is one file.
type MemorySnapshot struct {
	Artifact string         `json:"artifact"`
	Form     string         `json:"form"` // dict, segments, trace_plot, timeline
	Rank     *int           `json:"rank"`
	Host     *string        `json:"host"`
	Settings MemorySettings `json:"settings"`
	Lacks    []string       `json:"lacks"` // what this file does not hold, and what cannot be said for want of it
	Devices  []MemoryDevice `json:"devices"`
}

// A MemorySettings is what the allocator was set to when the snapshot was taken. Sizes are
// bytes.
type MemorySettings struct {
	Stated      bool    `json:"stated"`
	Conf        string  `json:"conf"`
	Expandable  bool    `json:"expandable_segments"`
	MaxSplit    *int64  `json:"max_split_size"` // null: unlimited
	GCThreshold float64 `json:"garbage_collection_threshold"`
	Roundup     string  `json:"roundup_power2_divisions"` // "" where off
}

// A MemoryDevice is what a snapshot shows of one device.
type MemoryDevice struct {
	Device        int                 `json:"device"`
	Totals        MemoryTotals        `json:"totals"` // at the end, when the snapshot was taken
	Trace         MemoryTrace         `json:"trace"`
	Peak          *MemoryPeak         `json:"peak"` // null without a trace
	Live          []MemoryUse         `json:"live"` // at the end, by stack, largest first
	Growth        *MemoryGrowth       `json:"growth"`
	Fragmentation MemoryFragmentation `json:"fragmentation"`
	Pressure      MemoryPressure      `json:"pressure"`
	Outside       *MemoryOutside      `json:"outside"`
	Causes        []MemoryCause       `json:"causes"` // what the snapshot shows of known causes
	Replay        *MemoryReplay       `json:"replay"` // null where it was not asked for or there is no trace
	Timeline      *MemoryTimeline     `json:"timeline"`
	Segments      []MemorySegment     `json:"segments"` // bounded, largest first
	More          int                 `json:"more_segments"`
	Stacks        []MemoryStack       `json:"stacks"` // those that the parts above name by index
}

// MemoryTotals equal what a sum over the file's segments, blocks and entries gives.
type MemoryTotals struct {
	Segments  int   `json:"segments"`
	Blocks    int   `json:"blocks"`
	Events    int   `json:"events"`
	Reserved  int64 `json:"reserved"`
	Allocated int64 `json:"allocated"`
	Active    int64 `json:"active"`
	Requested int64 `json:"requested"`
	Free      int64 `json:"free"` // reserved less active
	Private   int64 `json:"private_pools"`
}

// A MemoryTrace says what history of a device there is.
type MemoryTrace struct {
	Actions   map[string]int `json:"actions"`
	Start     *Time          `json:"start"`
	End       *Time          `json:"end"`
	Seconds   *float64       `json:"seconds"`
	Truncated string         `json:"truncated"`  // how it is known that older entries were lost; "" where it is not
	Cut       bool           `json:"cut"`        // the file is damaged: the end of the history is missing
	Steps     int            `json:"steps"`      // complete ones
	StepBasis string         `json:"step_basis"` // how it is known where they begin; "" where it is not
}

// A MemoryPeak is the moment at which most was active.
type MemoryPeak struct {
	Event     int             `json:"event"` // -1: before the first one
	Time      *Time           `json:"time"`
	Step      string          `json:"step"`   // the annotation around it
	Active    int64           `json:"active"` // as asked for, not rounded
	Reserved  int64           `json:"reserved"`
	Before    int64           `json:"before_trace"` // of it, alive since before the trace began
	Typical   *int64          `json:"typical"`      // the median of the peaks of the complete steps; null where they are fewer than three
	Stacks    []MemoryUse     `json:"stacks"`
	Frames    []MemoryUse     `json:"frames"`     // by the innermost frame of the user's own code
	Category  []MemoryUse     `json:"categories"` // parameter, gradient, ... where known
	StepsMade []MemoryUse     `json:"made_in"`    // by the step in which it was allocated
	Spans     []evidence.Span `json:"spans"`
}

// A MemoryUse is a share of memory.
type MemoryUse struct {
	Name   string         `json:"name"` // for people: function and place, category, step
	Stack  *int           `json:"stack"`
	Bytes  int64          `json:"bytes"`
	Blocks int            `json:"blocks"`
	Span   *evidence.Span `json:"span"`
}

// A MemoryStack is one stack that the result names.
type MemoryStack struct {
	Index  int      `json:"index"`
	Own    string   `json:"own"`    // innermost frame of the user's code, "" where there is none
	Frames []string `json:"frames"` // innermost first, without the interpreter's and allocator's own
}

// MemoryGrowth is what did not come back.
type MemoryGrowth struct {
	Basis    string        `json:"basis"` // between which moments
	From     int           `json:"from_event"`
	To       int           `json:"to_event"`
	Bytes    int64         `json:"bytes"`    // active at To less at From
	PerStep  *float64      `json:"per_step"` // null where the growth is not steady, or there are no steps
	Says     string        `json:"says"`
	Suspects []MemoryGrown `json:"suspects"`
	Frames   []MemoryUse   `json:"frames"` // the suspects by the innermost frame of the user's own code
	Common   string        `json:"common"` // innermost frame that all suspects have in common, "" where none is
	Others   []MemoryGrown `json:"others"` // what else was left behind, and why it is no suspect
}

// A MemoryGrown is a stack whose allocations pile up.
type MemoryGrown struct {
	MemoryUse
	First   int      `json:"first_event"` // oldest that is still alive
	Last    int      `json:"last_event"`
	Steps   int      `json:"steps"` // in how many steps it left something behind
	PerStep *float64 `json:"per_step"`
	Why     string   `json:"why"`
}

// A MemoryFragmentation says how what is reserved is cut up when the snapshot was taken, and
// whether that is why the last request was refused.
type MemoryFragmentation struct {
	Free          int64               `json:"free"`         // reserved, not active
	LargestFree   int64               `json:"largest_free"` // block
	LargestFreeAt *evidence.Span      `json:"largest_free_at"`
	Request       *int64              `json:"request"` // the failed one, rounded; null without
	Pools         []MemoryPoolUse     `json:"pools"`   // by pool, size class and stream
	Pinned        []MemoryPinned      `json:"pinned"`  // segments mostly free that a live block holds, most free first
	Says          string              `json:"says"`
	Standing      string              `json:"standing"`
	Layout        *bool               `json:"layout"` // whether the layout decided: false where the run would have failed with any; null where that is not known
	Missing       string              `json:"missing"`
	Histogram     []MemoryFreeOfSizes `json:"free_by_size"`
}

// A MemoryPoolUse sums up the segments of one pool, size class and stream, in bytes.
type MemoryPoolUse struct {
	Pool        string `json:"pool"` // default, or the id of a private one
	Class       string `json:"class"`
	Stream      uint64 `json:"stream"`
	Segments    int    `json:"segments"`
	Reserved    int64  `json:"reserved"`
	Active      int64  `json:"active"`
	Free        int64  `json:"free"`
	LargestFree int64  `json:"largest_free"`
}

// A MemoryPinned is a segment of which less than half is in use: what is in use keeps the
// rest from going back to the driver.
type MemoryPinned struct {
	Segment evidence.Span `json:"segment"`
	Total   int64         `json:"total"`
	Active  int64         `json:"active"`
	Stack   *int          `json:"stack"` // of its largest live block
	Name    string        `json:"name"`
	Block   int           `json:"block"` // that block, as an index of the file's blocks
}

// A MemoryFreeOfSizes counts the free blocks of more than half of UpTo bytes, and at most
// UpTo.
type MemoryFreeOfSizes struct {
	UpTo   int64 `json:"up_to"`
	Blocks int   `json:"blocks"`
	Bytes  int64 `json:"bytes"`
}

// MemoryMoreFlushes counts the flushes that are not listed.
type MemoryMoreFlushes struct {
	Flushes int   `json:"flushes"`
	Bytes   int64 `json:"bytes"`
	Segment int   `json:"segment"` // of them before a new segment
	OOM     int   `json:"oom"`     // before a failure
}

// A MemoryPressure says where memory ran short.
type MemoryPressure struct {
	OOMs []MemoryOOM `json:"ooms"`
	// Flushes are bursts of segments given back before a new one, or a failure: the
	// allocator's retry.
	Flushes []MemoryFlush `json:"flushes"`
	// What the lists leave out; of refused requests the first ones and the last are listed.
	MoreOOMs    int                `json:"more_ooms,omitempty"`
	MoreFlushes *MemoryMoreFlushes `json:"more_flushes,omitempty"`
	Near        *float64           `json:"near_limit"` // fraction of the trace with reserved within 5 % of the room; null where the room is not known
	NearBasis   string             `json:"near_basis"`
	Reserved    int64              `json:"peak_reserved"`
}

// A MemoryOOM is a request that was refused. Sizes are bytes at that event.
type MemoryOOM struct {
	Event       int             `json:"event"`
	Time        *Time           `json:"time"`
	Request     int64           `json:"request"`
	DeviceFree  int64           `json:"device_free"`
	Reserved    int64           `json:"reserved"`
	Active      int64           `json:"active"`
	LargestFree *int64          `json:"largest_free"`
	Stack       *int            `json:"stack"`
	Name        string          `json:"name"`
	Survived    bool            `json:"survived"` // allocations went on after it
	After       int             `json:"allocs_after"`
	AtEnd       bool            `json:"at_end"` // the segments of the file are those of this moment
	Spans       []evidence.Span `json:"spans"`
}

// A MemoryFlush is a run of segments given back one after the other.
type MemoryFlush struct {
	Event    int    `json:"event"` // of the first segment given back
	Segments int    `json:"segments"`
	Bytes    int64  `json:"bytes"`
	Before   string `json:"before"` // segment: the retry got one; oom: it did not; "": nothing of the sort followed, as after empty_cache
}

// MemoryOutside is device memory beyond the allocator's: capacity less free less reserved at
// an oom entry. It includes other processes.
type MemoryOutside struct {
	Bytes int64           `json:"bytes"`
	Basis string          `json:"basis"`
	Spans []evidence.Span `json:"spans"`
}

// A MemoryCause is what the snapshot says of one entry of the encyclopedia.
type MemoryCause struct {
	Fact  string          `json:"fact"` // declared fact
	Value bool            `json:"value"`
	Bytes *int64          `json:"bytes"` // that the statement is about, where it is about any
	Why   string          `json:"why"`
	Spans []evidence.Span `json:"spans"`
}

// A MemoryReplay is the recorded history run through the simulated allocator: first under
// the recorded settings, which shows how far it can be trusted, then under others.
type MemoryReplay struct {
	Version  string           `json:"version"` // of the allocator's rules
	Fidelity MemoryFidelity   `json:"fidelity"`
	Room     MemoryRoom       `json:"room"`
	Lacks    []string         `json:"lacks"`
	Answers  []MemoryAnswer   `json:"answers"` // empty where the fidelity is out of tolerance
	Best     *int             `json:"best"`    // index of the change to make, null where none is proved
	Recorded MemoryReplayPeak `json:"recorded"`
	Layout   *MemoryLayout    `json:"layout"` // of the last refused request; null where it is not known
}

// A MemoryLayout says whether a refused request would have fitted without waste: what
// was in use, each block as it was rounded, and the request together against the room.
// Where they do not fit, no setting of the allocator avoids the failure.
type MemoryLayout struct {
	Fits    bool  `json:"fits"`
	Event   int   `json:"event"`
	InUse   int64 `json:"in_use"`
	Request int64 `json:"request"`
	Free    int64 `json:"free"`         // reserved, not in use
	Largest int64 `json:"largest_free"` // block, in the replay
}

// A MemoryReplayPeak is the first event after which most was reserved.
type MemoryReplayPeak struct {
	Reserved int64 `json:"reserved"`
	Event    int   `json:"event"`
}

// A MemoryFidelity says how well the simulation under the recorded settings repeats the
// record.
type MemoryFidelity struct {
	OK          bool    `json:"ok"`
	Why         string  `json:"why"` // what is out of tolerance, or that nothing is
	Events      int     `json:"events"`
	Allocs      int     `json:"allocs"`
	SameAddress int     `json:"same_address"`    // allocs placed exactly where they were
	Segments    int     `json:"segment_events"`  // recorded
	Matched     int     `json:"segment_matched"` // of them reproduced: action, size and place in the order
	Extra       int     `json:"segment_extra"`   // reproduced but not recorded
	CurveWorst  int64   `json:"reserved_worst"`  // largest difference of reserved, bytes
	CurveMean   float64 `json:"reserved_mean"`   // mean difference
	FinalBytes  int64   `json:"final_bytes"`     // reserved at the end, simulated less recorded
	FinalSame   bool    `json:"final_same"`      // segments at the end are the same sizes
	OOMs        int     `json:"ooms"`            // recorded
	OOMsSame    int     `json:"ooms_same"`       // reproduced at the same event
	Tolerance   string  `json:"tolerance"`       // the stated tolerance, in words
	Forced      int     `json:"forced"`          // events where the simulation was set right by the record
}

// MemoryRoom is how much the allocator could have.
type MemoryRoom struct {
	Bytes *int64          `json:"bytes"` // null: not known
	Basis string          `json:"basis"`
	Spans []evidence.Span `json:"spans"`
}

// Answers of a replay.
const (
	Avoided    = "avoided"
	NotAvoided = "not_avoided"
	CannotTell = "cannot_tell"
)

// A MemoryAnswer says whether every recorded request, the refused ones included, is served
// within the room after one change. Sizes are bytes.
type MemoryAnswer struct {
	Setting      string `json:"setting"` // PYTORCH_CUDA_ALLOC_CONF, or what was changed otherwise
	Answer       string `json:"answer"`
	Why          string `json:"why"`
	PeakReserved int64  `json:"peak_reserved"`
	PeakEvent    int    `json:"peak_event"`
	Margin       *int64 `json:"margin"` // room less peak; negative: short by
	FailsAt      *int   `json:"fails_at"`
	Request      *int64 `json:"request"`
	Flushes      int    `json:"flushes"` // retries on the way: each is a stop of the device
	Searched     bool   `json:"searched"`
}

// A MemoryTimeline is the history, cut into buckets of equally many events, in their
// order. Each keeps its extremes, so that no peak is lost: the most and the least that
// stood after any of its events.
type MemoryTimeline struct {
	Events  int            `json:"events"`
	Buckets []MemoryBucket `json:"buckets"`
	Blocks  []MemoryLife   `json:"blocks"` // the largest allocations, each alone; the rest is in the curve
	Rest    int            `json:"rest"`   // allocations that are not listed
	Marks   []MemoryMark   `json:"marks"`
}

// A MemoryBucket is a stretch of the history with the extremes that stood after any of its
// events, in bytes.
type MemoryBucket struct {
	From        int   `json:"from"`
	To          int   `json:"to"` // exclusive
	Time        int64 `json:"time_us"`
	ActiveMin   int64 `json:"active_min"`
	ActiveMax   int64 `json:"active_max"`
	PeakAt      int   `json:"peak_at"` // event of the first ActiveMax
	ReservedMin int64 `json:"reserved_min"`
	ReservedMax int64 `json:"reserved_max"`
}

// A MemoryLife is one allocation: from its alloc to the end of its free.
type MemoryLife struct {
	From  int    `json:"from"` // -1: before the trace
	To    int    `json:"to"`   // -1: alive at the end
	Addr  uint64 `json:"addr"`
	Bytes int64  `json:"bytes"`
	Stack int    `json:"stack"` // index of Stacks, -1 where none
}

// A MemoryMark is an event that the timeline points out.
type MemoryMark struct {
	Event int    `json:"event"`
	Kind  string `json:"kind"` // oom, step, snapshot, annotation
	Text  string `json:"text"`
}

// A MemorySegment is a segment at the end, with its blocks.
type MemorySegment struct {
	Span       evidence.Span       `json:"span"`
	Addr       uint64              `json:"addr"`
	Total      int64               `json:"total"`
	Stream     uint64              `json:"stream"`
	Pool       string              `json:"pool"`
	Class      string              `json:"class"` // small, large
	Expandable bool                `json:"expandable"`
	Blocks     []MemorySegmentPart `json:"blocks"` // bounded
	More       int                 `json:"more_blocks"`
}

// A MemorySegmentPart is a block of a segment: bytes from the segment's address on, and its
// size.
type MemorySegmentPart struct {
	Offset int64  `json:"offset"`
	Size   int64  `json:"size"`
	State  string `json:"state"` // active, pending, free
	Stack  int    `json:"stack"`
}

// A MemoryChange is what grew and shrank between two snapshots of one process. Reserved
// and Active are bytes of To less those of From; the lists have positive bytes, by the
// names of stacks, the largest first.
type MemoryChange struct {
	From     string      `json:"from"`
	To       string      `json:"to"`
	Reserved int64       `json:"reserved"`
	Active   int64       `json:"active"`
	Grown    []MemoryUse `json:"grown"`
	Shrunk   []MemoryUse `json:"shrunk"`
}

// A MemoryRanks sets snapshots side by side, in the order of their paths.
type MemoryRanks struct {
	Rows    []MemoryRank `json:"rows"`
	Differs []Statement  `json:"differs"`
	Cause   *MemoryCause `json:"cause"` // whether the ranks are out of balance; null where that cannot be told
}

// A MemoryRank is one device of one snapshot beside the others. Sizes are bytes.
type MemoryRank struct {
	Artifact string  `json:"artifact"`
	Rank     *int    `json:"rank"`
	Device   int     `json:"device"`
	Peak     int64   `json:"peak"`
	Reserved int64   `json:"reserved"`
	Active   int64   `json:"active"`
	Host     *string `json:"host"`
	Largest  string  `json:"largest"` // stack with most bytes at the peak
	OOMs     int     `json:"ooms"`
}
