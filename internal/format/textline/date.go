package textline

import (
	"strings"
	"time"
)

// A Moment is a date that a tool printed. Time is UTC if Zone is known, else the
// written wall time put down as UTC.
type Moment struct {
	Time    time.Time
	Written string
	Zone    string        // "Z", "+02:00", or "" where the text names none
	Error   time.Duration // half the resolution of what was written
	NoDate  bool          // only a time of day was written
	Host    string        // whose clock, "" if not stated
}

// layouts are the forms of a line that only holds a date. Abbreviated zones other
// than UTC say nothing reliable and are left out.
var layouts = [...]string{
	"Mon Jan _2 15:04:05 2006", "Mon Jan _2 15:04:05 MST 2006", "Mon Jan _2 03:04:05 PM MST 2006", "Mon _2 Jan 15:04:05 MST 2006", "Mon _2 Jan 2006 03:04:05 PM MST",
	"Mon Jan 02 15:04:05 MST 2006", "Mon Jan 02 15:04:05 2006", "2006-01-02 15:04:05", "2006-01-02T15:04:05", "2006-01-02T15:04:05Z07:00", "2006-01-02 15:04:05-07:00", "2006/01/02 15:04:05.000", "2006/01/02 15:04:05",
}

// Date reads a text that is one date and nothing else.
func Date(text string) (Moment, bool) {
	text = strings.TrimSpace(text)
	if len(text) < 19 || len(text) > 40 || strings.Count(text, ":") < 2 {
		return Moment{}, false
	}
	for _, layout := range layouts {
		if digit(layout[0]) != digit(text[0]) || digit(text[0]) && layout[4] != text[4] {
			continue // cannot fit
		}
		t, err := time.Parse(layout, text)
		if err != nil {
			continue
		}
		m := Moment{Written: text, Error: time.Second / 2}
		if t.Nanosecond() != 0 {
			m.Error = time.Millisecond / 2
		}
		if strings.Contains(layout, "07:00") {
			m.Zone, m.Time = t.Format("Z07:00"), t.UTC()
			return m, true
		}
		if strings.Contains(layout, "MST") && (strings.Contains(text, " UTC") || strings.Contains(text, " GMT")) {
			m.Zone = "Z"
		}
		m.Time = time.Date(t.Year(), t.Month(), t.Day(), t.Hour(), t.Minute(), t.Second(), t.Nanosecond(), time.UTC)
		return m, true
	}
	return Moment{}, false
}

func digit(c byte) bool { return c >= '0' && c <= '9' }

// Header recognises a line that only holds a date, and the header of watch:
// "Every 1.0s: nvidia-smi      node7: Fri Jan  2 03:04:05 2026", whose command it
// returns too.
func Header(text string) (m Moment, command string, ok bool) {
	if m, ok := Date(text); ok {
		return m, "", true
	}
	const width = len("Fri Jan  2 03:04:05 2026")
	if !strings.HasPrefix(text, "Every ") || len(text) < 40 {
		return Moment{}, "", false
	}
	before := strings.TrimSpace(text[:len(text)-width])
	if m, ok = Date(text[len(text)-width:]); !ok {
		return Moment{}, "", false
	}
	if _, cmd, found := strings.Cut(before, ": "); found {
		command = strings.TrimSpace(cmd)
	}
	if i := strings.LastIndexByte(before, ' '); i >= 0 && strings.HasSuffix(before, ":") {
		m.Host = strings.TrimSuffix(before[i+1:], ":")
		command = strings.TrimSpace(strings.TrimSuffix(command, before[i+1:]))
	}
	return m, command, true
}

// TimeOfDay finds a date or a time of day in a comment ("# frame 08:09:10").
func TimeOfDay(text string) (Moment, bool) {
	for i := 0; i+8 <= len(text); i++ {
		if text[i+2] != ':' || text[i+5] != ':' || i > 0 && text[i-1] >= '0' && text[i-1] <= '9' {
			continue
		}
		if t, err := time.Parse("15:04:05", text[i:i+8]); err == nil {
			if m, ok := Date(strings.TrimSpace(strings.TrimLeft(text, "# "))); ok {
				return m, true
			}
			return Moment{Time: t, Written: text[i : i+8], NoDate: true, Error: time.Second / 2}, true
		}
	}
	return Moment{}, false
}
