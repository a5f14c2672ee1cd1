package rows

import (
	"errors"
	"math"
	"strconv"
	"time"
)

// maxNumber bounds the text of a number.
const maxNumber = 64

// Number reads a number as any of the sources print it: bare or quoted, NaN and the
// infinities in any case, a number too large for a double as an infinity. ok is false for all else,
// among it the missing values "", null, None and NA.
func Number(text []byte) (v float64, ok bool) {
	if len(text) == 0 || len(text) > maxNumber {
		return 0, false
	}
	switch c := text[0]; {
	case c >= '0' && c <= '9', c == '-', c == '+', c == '.':
	case c == 'n' || c == 'N' || c == 'i' || c == 'I':
	default:
		return 0, false
	}
	for _, c := range text {
		if c == '_' || c == 'x' || c == 'X' || c == 'p' || c == 'P' {
			return 0, false // strconv takes them, and no source means a number by them
		}
	}
	v, err := strconv.ParseFloat(string(text), 64)
	if err != nil && !errors.Is(err, strconv.ErrRange) {
		return 0, false
	}
	return v, true
}

// Finite reports whether v is neither NaN nor an infinity.
func Finite(v float64) bool { return v-v == 0 }

// whole returns the whole number of a finite value from 0 to 2^53.
func whole(v float64) (int64, bool) {
	if !(v >= 0 && v <= 1<<53) || v != math.Trunc(v) {
		return 0, false
	}
	return int64(v), true
}

// A Time is a time as a cell states it. Its zone is "" where the cell has none: its clock
// is then unknown, and At reads it as if it were UTC.
type Time struct {
	At         time.Time // UTC
	Zone       string    // Z, +02:00, ""
	Resolution time.Duration
}

// Wall returns the time in seconds since 1970, 0 where the zone is unknown.
func (t Time) Wall() float64 {
	if t.Zone == "" || t.At.IsZero() {
		return 0
	}
	return float64(t.At.UnixMicro()) / 1e6
}

// timeOf reads a time: seconds, milliseconds, microseconds or nanoseconds since 1970, told
// apart by their size, or a date. Smaller numbers are durations and no time.
func timeOf(c *Cell) (Time, bool) {
	if !c.Number {
		return dateOf(c.Text)
	}
	s, res := c.Value, time.Second
	switch {
	case s >= 1e9 && s < 5e9:
		if s != math.Trunc(s) {
			res = time.Microsecond
		}
	case s >= 1e12 && s < 5e12:
		s, res = s/1e3, time.Millisecond
	case s >= 1e15 && s < 5e15:
		s, res = s/1e6, time.Microsecond
	case s >= 1e18 && s < 5e18:
		s, res = s/1e9, time.Microsecond
	default:
		return Time{}, false
	}
	w, frac := math.Modf(s)
	return Time{At: time.Unix(int64(w), int64(math.Round(frac*1e6))*1e3).UTC(), Zone: "Z", Resolution: res}, true
}

var dateLayouts = [...]struct {
	layout string
	zone   bool
}{{time.RFC3339Nano, true}, {"2006-01-02 15:04:05.999999999Z07:00", true}, {"2006-01-02T15:04:05.999999999", false}, {"2006-01-02 15:04:05.999999999", false}, {"2006-01-02_15-04-05", false}}

func dateOf(text []byte) (Time, bool) {
	if len(text) < 19 || len(text) > 40 || text[4] != '-' || text[7] != '-' {
		return Time{}, false
	}
	for _, l := range dateLayouts {
		at, err := time.Parse(l.layout, string(text))
		if err != nil {
			continue
		}
		t := Time{At: at.UTC(), Resolution: time.Second}
		if at.Nanosecond() != 0 {
			t.Resolution = time.Millisecond
		}
		if l.zone {
			if t.Zone = at.Format("-07:00"); t.Zone == "+00:00" {
				t.Zone = "Z"
			}
		}
		return t, true
	}
	return Time{}, false
}
