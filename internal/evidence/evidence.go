// Package evidence is the vocabulary of what was read: events, series, facts
// and the spans that prove them. Readers produce it, every later stage consumes
// it, and it computes nothing about their meaning.
package evidence

import (
	"slices"
	"time"
)

// None is the value of an integer identity (rank, device, pid, step) that is
// not stated.
const None = -1

// Who says which process, host or device something is about. Unknown parts are
// None or "".
type Who struct {
	Attempt   string // from the path (attempt_1), Earlier, or "" ; the timeline adds the launches inside a file
	Launch    int    // 0-based ordinal of the launch inside its artifact
	Host      string
	Rank      int // global rank
	LocalRank int
	Device    int // index as the process sees it
	BusID     string
	PID       int
}

// Nobody is a Who with nothing known.
func Nobody() Who { return Who{Rank: None, LocalRank: None, Device: None, PID: None} }

// Earlier is the Attempt of a record that a scheduler keeps of a start before the
// newest one: it tells nothing of the attempt that ended the job.
const Earlier = "earlier"

// A Stamp is an instant with what is known of the clock that gave it. The zero
// Stamp means that no time was written.
type Stamp struct {
	Time    time.Time     // UTC if Zone is known, else the written wall time put down as UTC
	Written string        // as it stands in the artifact
	Zone    string        // "Z", "+02:00", or "" when the text names none
	NoDate  bool          // only a time of day was written
	NoYear  bool          // month and day but no year: Time has year 0
	Error   time.Duration // half the resolution of what was written
	Clock   string        // wall, boot (seconds since boot), elapsed (seconds since some start)
	Host    string        // whose clock, "" if not stated
}

// Known reports whether s holds a time at all.
func (s Stamp) Known() bool { return s.Written != "" }

// A Span says where in an artifact a statement is proved. For text, Line is
// 1-based over lines split on \n, Column is 1-based bytes, Offset and Length
// are bytes after decompression. Index, where it is not 0, orders the spans of an
// artifact whose parts stand out of order (a crash dump, newest part first).
// Unused parts are zero.
type Span struct {
	Artifact string `json:"artifact"`
	Kind     string `json:"kind"` // text, row, record, pointer, event, block
	Line     int64  `json:"line,omitempty"`
	Column   int    `json:"column,omitempty"`
	Offset   int64  `json:"offset"`
	Length   int64  `json:"length"`
	Table    string `json:"table,omitempty"`
	Row      int64  `json:"row,omitempty"`
	Record   int64  `json:"record,omitempty"`
	Pointer  string `json:"pointer,omitempty"`
	Device   int    `json:"device,omitempty"`
	Index    int64  `json:"index,omitempty"`
	Stack    string `json:"stack,omitempty"`
	Quote    string `json:"quote"`
}

// An Event is one fact about one rank, host or device, at one place in an
// artifact. Kind is declared in Specs; Attrs holds only attributes that the
// kind declares.
type Event struct {
	Kind  Kind
	Who   Who
	Stamp Stamp
	Step  int64 // optimiser or logged step at that point, None if unknown
	Epoch float64
	Text  string // the raw line (bounded), escapes removed
	Attrs Attrs
	Span  Span
	Line  string // id of the line pattern that recognised it ("" for built-in readers)

	// Stack holds the functions of the innermost Python traceback that led
	// here, outermost first, as "file:line function | source", own code and
	// library code alike; empty when there was none.
	Stack []Frame
	// Chain is how this exception relates to another printed one: "" single,
	// "cause" (direct cause of a later one), "context" (a later one arose while
	// it was handled), "final" (the last of a chain).
	Chain string
	// Quoted marks text that a launcher or wrapper printed again.
	Quoted bool
}

// A Frame is one line of a Python stack.
type Frame struct {
	File     string
	Line     int
	Function string
	Source   string
}

// Attrs are an event's declared attributes.
type Attrs map[string]Value

// A Fact is a setting, version or measured quantity stated once: "batch_size
// is 4". Name is declared in FactSpecs (or begins with "setting." for a
// configuration key kept verbatim for comparison).
type Fact struct {
	Name  string
	Value Value
	Who   Who
	Span  Span
}

// An Artifact is one file or stream the job left.
type Artifact struct {
	Path   string // as the report names it; archive members are outer!inner
	Kind   string // ranklog, kernlog, smi, sacct, ... "" when not recognised
	Size   int64  // bytes after decompression when known, else -1
	Digest string // sha256:… of the bytes read, "" if not computed
	Owner  Owner
	Fate   string // read, partly read, unreadable, not recognised, over limit
	Note   string // why, when the fate is not "read"
}

// An Owner says to whom an artifact belongs and how that is known.
type Owner struct {
	Job, Attempt, Host string
	Rank, LocalRank    int
	Basis              string // "file name", "folder", "content", ... one short phrase
}

// beside are the kinds of artifacts that record something beside the run's own
// output: the machine, the scheduler, a dump of one library's state. They begin no
// launch; the timeline lists their events with the attempts that they can concern.
var beside = []string{"hosttext", "kernlog", "smi", "kube", "slurm", "elastic", "flightrec", "memsnap", "stacks"}

// Beside reports whether the artifacts of a kind stand beside the run's output.
func Beside(kind string) bool { return slices.Contains(beside, kind) }
