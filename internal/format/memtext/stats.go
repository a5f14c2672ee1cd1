package memtext

import (
	"strconv"
	"strings"

	"github.com/inquest-dev/inquest/internal/lazyre"
)

// Keys are the literals that announce a figure of memory_stats in a line.
var Keys = []string{
	"allocated_bytes.all.current", "allocated_bytes.all.peak", "active_bytes.all.current", "active_bytes.all.peak", "requested_bytes.all.current", "requested_bytes.all.peak",
	"reserved_bytes.all.current", "reserved_bytes.all.peak", "inactive_split_bytes.all.current", "inactive_split_bytes.all.peak", "num_alloc_retries", "num_ooms",
	firstKey,
}

// firstKey is the first of the sorted keys. It has no figure of ours, but a dictionary
// that a terminal cuts begins there.
const firstKey = "active.all.allocated"

var figureOf = map[string]string{"allocated": Allocated, "active": Active, "requested": Requested, "reserved": Reserved, "inactive_split": Inactive}

// keyed matches a key and its value, as a dictionary, a list of pairs, JSON (also
// inside a string) or plain text have them.
var keyed = lazyre.New(`(\\?['"])?\b((allocated|active|requested|reserved|inactive_split)_bytes\.all\.(current|peak)|num_alloc_retries|num_ooms)\b(?:\\?['"]\]?)?[ \t]*[:=,|]?[ \t]*(-?\d{1,19})\b`)

// An Entry is one key with its value.
type Entry struct {
	Key   string
	Value int64
}

// A Scanner finds the entries of a dump in the lines of one writer. A dictionary
// that is printed on one line may be cut by a terminal, also inside a number.
type Scanner struct{ tail string }

// Open reports whether the next line may go on where the last one was cut.
func (s *Scanner) Open() bool { return s.tail != "" }

// Line returns the entries that end in text. wide says that text fills the terminal,
// so that the next line may continue it.
func (s *Scanner) Line(text string, wide bool) []Entry {
	before := len(s.tail)
	all := s.tail + text
	if before > 0 && text != "" && !strings.ContainsRune("0123456789,()[]{}'\"\\: _.abcdefghijklmnopqrstuvwxyz", rune(text[0])) {
		before, all = 0, text // something else
	}
	s.tail = ""
	var out []Entry
	dictionary := wide && strings.Contains(all, firstKey)
	for _, m := range keyed.FindAllStringSubmatchIndex(all, -1) {
		quoted := m[2] >= 0
		dictionary = dictionary || quoted
		end := m[1]
		if end < before {
			continue
		}
		if end == len(all) && quoted && wide {
			continue // the number may go on
		}
		n, err := strconv.ParseInt(all[m[10]:m[11]], 10, 64)
		if err != nil {
			continue
		}
		key := all[m[4]:m[5]]
		if m[6] >= 0 {
			key = figureOf[all[m[6]:m[7]]]
			if all[m[8]:m[9]] == "peak" {
				key = Peak + key
			}
		}
		out = append(out, Entry{key, n})
	}
	if wide && (dictionary || before > 0) && !strings.HasSuffix(all, "}") && !strings.HasSuffix(all, "])") {
		s.tail = all[max(0, len(all)-96):]
	}
	return out
}

// A Dump is one memory_stats dictionary being put together from its entries.
type Dump struct {
	Stats
	first string
	n     int
}

// NewDump returns an empty Dump.
func NewDump() *Dump { return &Dump{Stats: newStats()} }

// Len is how many entries there are.
func (d *Dump) Len() int { return d.n }

// What becomes of an entry.
type Added uint8

const (
	Own    Added = iota // it is of this dump
	Begins              // it is the first of the next dump
	Strays              // it is of another dump that stands among this one
)

// Add gives d an entry.
func (d *Dump) Add(e Entry) Added {
	has := false
	switch e.Key {
	case "num_alloc_retries":
		has = d.Retries >= 0
	case "num_ooms":
		has = d.OOMs >= 0
	default:
		_, has = d.Bytes[e.Key]
	}
	switch {
	case has && e.Key == d.first:
		return Begins
	case has:
		return Strays
	}
	if d.n == 0 {
		d.first = e.Key
	}
	d.n++
	if e.Value < 0 {
		return Own
	}
	switch e.Key {
	case "num_alloc_retries":
		d.Retries = e.Value
	case "num_ooms":
		d.OOMs = e.Value
	default:
		d.Bytes[e.Key] = Range{e.Value, e.Value}
	}
	return Own
}
