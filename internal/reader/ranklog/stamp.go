package ranklog

import (
	"strings"
	"time"

	"github.com/inquest-dev/inquest/internal/evidence"
)

// parseStamp reads an instant at the start of s, in any of the forms
// that it knows, and returns how many bytes it took (0 if there is none).
// Boot seconds and glog dates need their surroundings and are read by
// bootStamp and glogStamp.
func parseStamp(s string) (evidence.Stamp, int) {
	c := cursor{s: s}
	switch {
	case len(s) < 8:
		return evidence.Stamp{}, 0
	case isDigit(s[0]):
		return c.numeric()
	case s[0] >= 'A' && s[0] <= 'Z':
		return c.named()
	}
	return evidence.Stamp{}, 0
}

// A cursor reads numbers of fixed width from the front of s.
type cursor struct {
	s string
	i int
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

// digits reads exactly n digits.
func (c *cursor) digits(n int) (int, bool) {
	if c.i+n > len(c.s) {
		return 0, false
	}
	v := 0
	for _, d := range []byte(c.s[c.i : c.i+n]) {
		if !isDigit(d) {
			return 0, false
		}
		v = v*10 + int(d-'0')
	}
	c.i += n
	return v, true
}

// any skips one byte of set.
func (c *cursor) any(set string) bool {
	if c.i < len(c.s) && strings.IndexByte(set, c.s[c.i]) >= 0 {
		c.i++
		return true
	}
	return false
}

// clock reads HH:MM:SS with an optional fraction and returns the error bound
// that its resolution implies.
func (c *cursor) clock() (d, err time.Duration, ok bool) {
	h, ok1 := c.digits(2)
	ok2 := c.any(":")
	m, ok3 := c.digits(2)
	if !(ok1 && ok2 && ok3) || h > 23 || m > 59 || !c.any(":") {
		return 0, 0, false
	}
	sec, ok4 := c.digits(2)
	if !ok4 || sec > 60 {
		return 0, 0, false
	}
	d = time.Duration(h)*time.Hour + time.Duration(m)*time.Minute + time.Duration(sec)*time.Second
	err = time.Second / 2
	if c.i+1 < len(c.s) && (c.s[c.i] == '.' || c.s[c.i] == ',') && isDigit(c.s[c.i+1]) {
		c.i++
		unit := time.Second
		for n := 0; c.i < len(c.s) && isDigit(c.s[c.i]); n++ {
			if n < 9 {
				unit /= 10
				d += time.Duration(c.s[c.i]-'0') * unit
			}
			c.i++
		}
		err = unit / 2
	}
	return d, err, true
}

// zone reads Z, ±HH:MM, ±HHMM, " UTC" or " +0000", and returns its offset.
func (c *cursor) zone() (name string, offset time.Duration) {
	r := c.s[c.i:]
	switch {
	case strings.HasPrefix(r, "Z"):
		c.i++
		return "Z", 0
	case strings.HasPrefix(r, " UTC"):
		c.i += 4
		return "UTC", 0
	}
	save := c.i
	c.any(" ")
	if c.i < len(c.s) && (c.s[c.i] == '+' || c.s[c.i] == '-') {
		start, neg := c.i, c.s[c.i] == '-'
		c.i++
		h, ok := c.digits(2)
		c.any(":")
		m, ok2 := c.digits(2)
		if ok && ok2 && h <= 14 && m < 60 && (c.i == len(c.s) || !isDigit(c.s[c.i])) {
			offset = time.Duration(h)*time.Hour + time.Duration(m)*time.Minute
			if neg {
				offset = -offset
			}
			return c.s[start:c.i], offset
		}
	}
	c.i = save
	return "", 0
}

// numeric reads the forms that begin with a digit.
func (c *cursor) numeric() (evidence.Stamp, int) {
	var year, month, day int
	st := evidence.Stamp{Clock: "wall"}
	s := c.s
	switch {
	case s[2] == ':': // 03:04:05.678
		st.NoDate = true
	case len(s) >= 19 && (s[4] == '-' || s[4] == '/') && s[7] == s[4]: // 2026-01-02T03:04:05, _ as torchrun, / as nvidia-smi
		var ok [3]bool
		year, ok[0] = c.digits(4)
		c.i++
		month, ok[1] = c.digits(2)
		c.i++
		day, ok[2] = c.digits(2)
		if !(ok[0] && ok[1] && ok[2]) || !c.any("T _") {
			return evidence.Stamp{}, 0
		}
	case len(s) >= 19 && s[2] == '/' && s[5] == '/': // 01/02/2026 03:04:05
		var ok [3]bool
		month, ok[0] = c.digits(2)
		c.i++
		day, ok[1] = c.digits(2)
		c.i++
		year, ok[2] = c.digits(4)
		if !(ok[0] && ok[1] && ok[2]) || !c.any(" T") {
			return evidence.Stamp{}, 0
		}
	case len(s) >= 14 && (s[2] == '/' || s[2] == '-') && s[5] == ' ': // 01/02 03:04:05, 01-02 03:04:05
		var ok [2]bool
		month, ok[0] = c.digits(2)
		c.i++
		day, ok[1] = c.digits(2)
		c.i++
		if !(ok[0] && ok[1]) {
			return evidence.Stamp{}, 0
		}
		st.NoYear = true
	default:
		return evidence.Stamp{}, 0
	}
	d, e, ok := c.clock()
	if !ok {
		return evidence.Stamp{}, 0
	}
	st.Error = e
	if !st.NoDate {
		z, off := c.zone()
		st.Zone = z
		d -= off
	}
	return finish(st, c.s[:c.i], year, month, day, d)
}

var months = [...]string{"Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"}
var weekdays = [...]string{"Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"}

func indexName(names []string, s string) int {
	for i, n := range names {
		if strings.HasPrefix(s, n) {
			return i
		}
	}
	return -1
}

// named reads "Jan  2 03:04:05" and "Fri Jan  2 03:04:05 [UTC ]2026".
func (c *cursor) named() (evidence.Stamp, int) {
	st := evidence.Stamp{Clock: "wall", NoYear: true}
	if indexName(weekdays[:], c.s) >= 0 {
		c.i = 3
		if !c.any(" ") {
			return evidence.Stamp{}, 0
		}
	}
	month := indexName(months[:], c.s[c.i:]) + 1
	if month == 0 {
		return evidence.Stamp{}, 0
	}
	c.i += 3
	if !c.any(" ") {
		return evidence.Stamp{}, 0
	}
	day, ok := 0, false
	if c.any(" ") {
		day, ok = c.digits(1)
	} else if day, ok = c.digits(2); !ok {
		day, ok = c.digits(1)
	}
	if !ok || !c.any(" ") {
		return evidence.Stamp{}, 0
	}
	d, e, ok := c.clock()
	if !ok {
		return evidence.Stamp{}, 0
	}
	st.Error = e
	year, end := 0, c.i
	var off time.Duration
	st.Zone, off = c.zone()
	if c.any(" ") {
		if y, ok := c.digits(4); ok && (c.i == len(c.s) || !isDigit(c.s[c.i]) && c.s[c.i] != ':') && y >= 1990 && y < 2200 {
			year, st.NoYear, end = y, false, c.i
		}
	}
	if st.NoYear && st.Zone == "" {
		c.i = end
	} else if st.NoYear {
		c.i = end + 1 + len(st.Zone)
		if c.i > len(c.s) || st.Zone == "Z" {
			c.i = end + len(st.Zone)
		}
	}
	return finish(st, c.s[:min(c.i, len(c.s))], year, month, day, d-off)
}

// finish checks the date and puts the parts together. n is the bytes taken.
func finish(st evidence.Stamp, written string, year, month, day int, d time.Duration) (evidence.Stamp, int) {
	if !st.NoDate && (month < 1 || month > 12 || day < 1 || day > 31) {
		return evidence.Stamp{}, 0
	}
	if st.NoDate {
		month, day = 1, 1
	}
	st.Time = time.Date(year, time.Month(month), day, 0, 0, 0, 0, time.UTC).Add(d)
	st.Written = written
	return st, len(written)
}

// bootStamp makes the stamp of seconds since boot ("[337533.314407]").
func bootStamp(written string) (evidence.Stamp, bool) {
	return secondsStamp(written, "boot")
}

// secondsStamp reads decimal seconds on a clock that starts at zero.
func secondsStamp(written, clock string) (evidence.Stamp, bool) {
	var sec, frac int64
	unit, dot := int64(1), false
	for _, ch := range []byte(written) {
		switch {
		case ch == '.' && !dot:
			dot = true
		case !isDigit(ch):
			return evidence.Stamp{}, false
		case dot && unit < 1e9:
			frac, unit = frac*10+int64(ch-'0'), unit*10
		case !dot:
			if sec = sec*10 + int64(ch-'0'); sec > 9e9 {
				return evidence.Stamp{}, false
			}
		}
	}
	if !dot || written == "." {
		return evidence.Stamp{}, false
	}
	ns := sec*1e9 + frac*(1e9/unit)
	return evidence.Stamp{
		Time:    time.Unix(0, 0).UTC().Add(time.Duration(ns)),
		Written: written, Clock: clock,
		Error: time.Duration(1e9 / unit / 2),
	}, true
}

// glogStamp reads the date and time of glog-like prefixes: "0102 03:04:05.678"
// as torch's Python and absl write it, and "102 03:04:05.678" as c10 does (the
// last two digits are the day, the rest is the month).
func glogStamp(s string) (evidence.Stamp, int) {
	n := 0
	for n < len(s) && n < 5 && isDigit(s[n]) {
		n++
	}
	if n != 3 && n != 4 {
		return evidence.Stamp{}, 0
	}
	md := 0
	for _, d := range []byte(s[:n]) {
		md = md*10 + int(d-'0')
	}
	c := cursor{s: s, i: n}
	if !c.any(" ") {
		return evidence.Stamp{}, 0
	}
	d, e, ok := c.clock()
	if !ok {
		return evidence.Stamp{}, 0
	}
	return finish(evidence.Stamp{Clock: "wall", NoYear: true, Error: e}, c.s[:c.i], 0, md/100, md%100, d)
}
