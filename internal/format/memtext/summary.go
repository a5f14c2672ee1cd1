// Package memtext reads what PyTorch prints of its caching allocator's counters:
// the table of torch.cuda.memory_summary() and the dictionary of
// torch.cuda.memory_stats() (torch/cuda/memory.py of 1.13 and 2.9). It knows lines
// and figures and nothing of jobs.
package memtext

import (
	"math"
	"strconv"
	"strings"

	"github.com/inquest-dev/inquest/internal/lazyre"
)

// A Range is a count of bytes that was printed in whole units: every number from
// Lo to Hi prints so, because the rest is cut off.
type Range struct{ Lo, Hi int64 }

// Names of the figures, each as it is now and, with Peak before it, at its most.
const (
	Allocated = "allocated" // in live tensors
	Active    = "active"    // and freed blocks that another stream may still use
	Requested = "requested" // what was asked for, before rounding; 2.0 and newer
	Reserved  = "reserved"  // held from the driver
	Inactive  = "inactive"  // free, in segments that are partly in use
	Peak      = "peak_"
)

// Stats are the counters of one device in one process. What was not printed is
// not there; Retries and OOMs are -1 then, and so is Device.
type Stats struct {
	Device        int
	Retries, OOMs int64
	Bytes         map[string]Range
}

func newStats() Stats { return Stats{Device: -1, Retries: -1, OOMs: -1, Bytes: map[string]Range{}} }

// Any reports whether there is any figure at all.
func (s *Stats) Any() bool { return len(s.Bytes) > 0 || s.Retries >= 0 || s.OOMs >= 0 }

// rows are the names of the table's rows, without blanks, in the order in which
// they are printed. Rows without a figure of ours keep the order.
var rows = map[string]struct {
	place  int
	figure string
}{
	"Allocatedmemory": {1, Allocated}, "Activememory": {2, Active}, "Requestedmemory": {3, Requested}, "GPUreservedmemory": {4, Reserved}, "Non-releasablememory": {5, Inactive},
	"Allocations": {6, ""}, "Activeallocs": {7, ""}, "GPUreservedsegments": {8, ""}, "Non-releasableallocs": {9, ""}, "Oversizeallocations": {10, ""}, "OversizeGPUsegments": {11, ""},
}

var (
	titleLine    = lazyre.New(`^\|PyTorch[A-Z]{2,5}memorysummary,deviceID(\d{1,4})\|$`)
	countersLine = lazyre.New(`^\|[A-Z]{2,5}OOMs:(\d{1,18})\|[a-z]{2,5}Mallocretries:(\d{1,18})\|$`)
	headLine     = lazyre.New(`^\|Metric\|CurUsage\|PeakUsage\|`)
	rowLine      = lazyre.New(`^\|([A-Z][A-Za-z-]{6,24}|from(?:large|small)pool)\|(-?\d{1,19})([A-Za-z]{0,3})\|(-?\d{1,19})([A-Za-z]{0,3})\|-?\d{1,19}[A-Za-z]{0,3}\|-?\d{1,19}[A-Za-z]{0,3}\|$`)
	// What begins a table, also where a terminal cut the line.
	opening = lazyre.New(`^\|\s*(?:PyTorch [A-Z]{2,5} memory|[A-Z]{2,5} OOMs:)`)
)

// Opens reports whether a table may begin in text: with its title or, where that
// is lost, its counters.
func Opens(text string) bool { return opening.MatchString(strings.TrimSpace(text)) }

const (
	lineWidth = 77 // of a line of the table
	maxPieces = 8  // that one line may be cut into
)

// A Table is one memory_summary table being read, line by line.
type Table struct {
	Stats
	Mixed bool // lines of another table stand among its own: no figure can be trusted
	Ended bool // its last rule was seen

	titled, counted bool
	place           int    // of the last row
	held            string // pieces of a line that is cut, blanks taken out
	width, pieces   int    // of the pieces, as they stand
}

// NewTable returns a Table that has seen nothing.
func NewTable() *Table { return &Table{Stats: newStats()} }

// What a Table does with a line.
type Taken uint8

const (
	Passed Taken = iota // not part of the table
	Shape               // rule, heading or a piece of a line
	Figure              // figures were read
	Next                // the title of another table: this one is over
)

// Line gives t the next line that its writer printed, without what launchers and
// loggers put before it. A line that a terminal cut comes in pieces.
func (t *Table) Line(text string) Taken {
	text = strings.TrimSpace(text)
	if t.Ended || text == "" {
		return Passed
	}
	if strings.Trim(text, "|=-") == "" && (len(text) > 3 || t.held == "") {
		t.drop()
		if strings.Contains(text, "===") && t.place > 0 {
			t.Ended = true
		}
		return Shape
	}
	squeezed := strings.Join(strings.Fields(text), "")
	if t.held != "" && t.pieces < maxPieces && t.width+len(text) <= lineWidth {
		if got := t.read(t.held + squeezed); got != Passed {
			return got
		}
		t.held += squeezed
		t.width += len(text)
		t.pieces++
		return Shape
	}
	t.drop()
	if text[0] != '|' {
		return Passed
	}
	if got := t.read(squeezed); got != Passed {
		return got
	}
	if len(text) < lineWidth {
		t.held, t.width, t.pieces = squeezed, len(text), 1
		return Shape
	}
	return Passed
}

func (t *Table) drop() { t.held, t.width, t.pieces = "", 0, 0 }

// read takes one whole line without blanks; Passed if it is none.
func (t *Table) read(line string) Taken {
	if m := titleLine.FindStringSubmatch(line); m != nil {
		if t.titled || t.counted || t.place > 0 {
			return Next
		}
		t.drop()
		t.titled = true
		t.Device, _ = strconv.Atoi(m[1])
		return Shape
	}
	if m := countersLine.FindStringSubmatch(line); m != nil {
		t.drop()
		if t.counted || t.place > 0 {
			t.Mixed = true
		}
		t.counted = true
		t.OOMs, _ = strconv.ParseInt(m[1], 10, 64)
		t.Retries, _ = strconv.ParseInt(m[2], 10, 64)
		return Figure
	}
	if headLine.MatchString(line) && strings.Count(line, "|") == 6 {
		t.drop()
		return Shape
	}
	m := rowLine.FindStringSubmatch(line)
	if m == nil {
		return Passed
	}
	t.drop()
	row, ok := rows[m[1]]
	if !ok {
		return Shape // a pool's share
	}
	if row.place <= t.place {
		t.Mixed = true
	}
	t.place = row.place
	if row.figure == "" {
		return Shape
	}
	t.set(row.figure, m[2], m[3])
	t.set(Peak+row.figure, m[4], m[5])
	return Figure
}

// units are those of the cells. Both spellings divide by 1024.
var units = map[string]int64{"B": 1, "KB": 1 << 10, "KiB": 1 << 10, "MB": 1 << 20, "MiB": 1 << 20, "GB": 1 << 30, "GiB": 1 << 30, "TB": 1 << 40, "TiB": 1 << 40, "PB": 1 << 50, "PiB": 1 << 50}

// set takes a cell. A negative one, which counters that went wrong print, is none.
func (t *Table) set(name, number, unit string) {
	n, err := strconv.ParseInt(number, 10, 64)
	u := units[unit]
	if err != nil || u == 0 || n < 0 || n >= math.MaxInt64/u {
		return
	}
	t.Bytes[name] = Range{n * u, n*u + u - 1}
}

// Continues reports whether the table that begins after t, at its title, can be
// told apart from t: not if t showed none of its rows yet.
func (t *Table) Continues() bool { return t.place > 0 }
