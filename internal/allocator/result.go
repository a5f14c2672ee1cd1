package allocator

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/inquest-dev/inquest/internal/evidence"
)

// Options say what Examine is to find out.
type Options struct {
	// Capacity is what the allocator may have in all, in bytes; 0: what the trace
	// itself shows.
	Capacity int64
	// Auto searches the changes that matter for the trace.
	Auto bool
	Try  []Change
}

// A Change is one thing that is different. Several fields may be set.
type Change struct {
	Conf     string // settings laid over the recorded ones, as in PYTORCH_CUDA_ALLOC_CONF
	Capacity int64  // bytes the allocator may have in all, as on another card; 0: as it was
	// EmptyCache calls torch.cuda.empty_cache() before event Event.
	EmptyCache bool
	Event      int
}

func (c Change) String() string {
	var out []string
	if c.Conf != "" {
		out = append(out, c.Conf)
	}
	if c.Capacity > 0 {
		out = append(out, "capacity:"+strconv.FormatInt(c.Capacity, 10))
	}
	if c.EmptyCache {
		out = append(out, "empty_cache@"+strconv.Itoa(c.Event))
	}
	return strings.Join(out, " ")
}

// ParseChange reads what String writes: settings, capacity:SIZE as evidence.ParseBytes
// reads it, empty_cache@EVENT; several with blanks between them.
func ParseChange(text string) (Change, error) {
	var c Change
	for _, w := range strings.Fields(text) {
		switch {
		case strings.HasPrefix(w, "capacity:"):
			n, err := evidence.ParseBytes(strings.TrimPrefix(w, "capacity:"))
			if err != nil {
				return c, err
			}
			c.Capacity = n
		case strings.HasPrefix(w, "empty_cache@"):
			n, err := strconv.Atoi(strings.TrimPrefix(w, "empty_cache@"))
			if err != nil || n < 0 {
				return c, fmt.Errorf("empty_cache@ wants the number of an event, not %q", w)
			}
			c.EmptyCache, c.Event = true, n
		default:
			if c.Conf != "" && !strings.HasSuffix(c.Conf, ",") {
				c.Conf += ","
			}
			c.Conf += w
		}
	}
	if c == (Change{}) {
		return c, fmt.Errorf("a change is empty")
	}
	if _, err := ParseSettings(c.Conf); err != nil {
		return c, err
	}
	return c, nil
}

// A Replay is what the simulated allocator makes of one device's recorded history.
type Replay struct {
	Device   int
	Version  Version
	Settings Settings // recorded, or the defaults
	Stated   bool     // the snapshot states them
	Initial  Initial
	Fidelity Fidelity
	Room     Room
	// Lacks says what the snapshot does not hold, or contradicts, one sentence each.
	Lacks    []string
	Recorded Peak // of reserved, as recorded
	OOMs     []OOM
	Answers  []Answer // empty where the fidelity is not OK
	Best     int      // index of the change to make, -1 where none is proved or nothing failed
	Fragment Fragmentation
}

// Initial is what was there before the first event.
type Initial struct {
	Segments, Blocks int
	Reserved, Active int64
	// Guessed are blocks that were freed in the trace and whose size follows only from
	// what was asked for: they may have been larger.
	Guessed int
}

// A Peak is the first event at which reserved was largest.
type Peak struct {
	Reserved int64
	Event    int
}

// An OOM is one recorded failure.
type OOM struct {
	Event      int
	Request    int64 // rounded
	DeviceFree int64
	Reserved   int64 // at that event, after what could be released was
	Allocated  int64 // in use then, rounded
	Active     int64 // and waiting for other streams
	Least      int64 // in use then, each block rounded to 512 bytes and no more
	Largest    int64 // free block for the request then, in the simulation
	Reproduced bool

	room    int64 // that the allocator had then
	most    int64 // where limited: that it had at most
	limited bool  // more was free than was asked for
}

// Fidelity says how well the simulation under the recorded settings repeats the
// record.
type Fidelity struct {
	OK          bool
	Why         string // what is out of tolerance, or that nothing is
	Events      int    // of the trace
	Allocs      int
	SameAddress int // allocs placed where they were
	Segments    int // recorded segment events
	Matched     int // of them repeated: action, size and order
	Extra       int // in the simulation only
	CurveWorst  int64
	CurveMean   float64 // mean absolute difference of reserved over all events, bytes
	FinalBytes  int64   // reserved at the end, simulated less recorded
	FinalSame   bool    // the segments at the end have the same sizes
	FinalPlaced int     // of them at the same address
	Final       int     // recorded segments at the end
	OOMs        int
	OOMsSame    int
	OOMsExtra   int    // the simulation failed where the record did not
	Contradict  int    // events that cannot follow from those before them
	Refused     int    // times that the driver refused, which only the record shows
	Forced      int    // times that the simulation was set right by the record
	Tolerance   string // in words
}

// Room is what the allocator may have in all.
type Room struct {
	Known bool
	Bytes int64 // proved
	// Most is the least size that is proved too little, less a byte: where an oom entry
	// shows as much free as was asked for, the truth lies between Bytes and Most.
	Most int64
	// Limited says that a limit refused, not the device: it counts whole segments also
	// where only pages are mapped.
	Limited bool
	Event   int // the oom entry, -1 where it comes from elsewhere
	Basis   string
}

// Verdicts of an Answer.
type Verdict uint8

const (
	CannotTell Verdict = iota
	NotAvoided
	Avoided
)

func (v Verdict) String() string { return [...]string{"cannot_tell", "not_avoided", "avoided"}[v] }

// An Answer says whether every recorded request, the failed ones included, is served
// within the room after one change.
type Answer struct {
	Change   Change
	Settings Settings // recorded, with the change
	Verdict  Verdict
	Why      string
	Peak     Peak
	// Margin is the room less the peak; where a request fails, less what was held and
	// asked for then. Set where HasMargin.
	Margin    int64
	HasMargin bool
	FailsAt   int   // event, -1 where none fails
	Request   int64 // that failed there, rounded
	Flushes   int   // times that the cache was flushed for a request
	Searched  bool  // by Auto
}

// Fragmentation says whether the failed request would have fitted without waste.
type Fragmentation struct {
	Known bool
	// Fits says that the blocks in use and the failed request, each rounded to 512
	// bytes, are within the room: then it was a matter of layout. Where they do not
	// fit, no setting of the allocator avoids the failure.
	Fits    bool
	Event   int
	InUse   int64
	Request int64
	Free    int64 // reserved but not active then
	Largest int64 // free block for it then, in the simulation
}
