package hosttext

import (
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/inquest-dev/inquest/internal/evidence"
)

// size reads a measured size as these tools print it: 1.8T, 64M, 204910208K,
// 46068 MiB, 12.5GiB, 0. unit is what a bare number counts. Units are binary.
// The result is the interval of sizes that print so. Whole numbers of a bare
// unit, K or MiB stand for [n, n+1); human units are rounded up by df, to the
// nearest by others, so one unit of the last digit is allowed for either way.
func size(text string, unit int64) (evidence.Value, bool) {
	v, mult, frac, rounded, ok := quantity(text, unit)
	if !ok {
		return evidence.Value{}, false
	}
	bytes := v * float64(mult)
	if !rounded {
		lo := int64(bytes)
		return evidence.SizeOf(lo, lo+mult-1), true
	}
	ulp := float64(mult) / math.Pow(10, float64(frac))
	if v == 0 {
		return evidence.SizeOf(0, int64(ulp)), true
	}
	return evidence.SizeOf(int64(math.Max(0, math.Floor(bytes-ulp))), int64(math.Ceil(bytes+ulp))), true
}

// quantity reads a number with its unit. frac is the number of digits behind
// the point; rounded says that the tool chose the unit, and rounded to it.
func quantity(text string, unit int64) (v float64, mult int64, frac int, rounded, ok bool) {
	text = strings.TrimSpace(text)
	i := 0
	for i < len(text) && (text[i] >= '0' && text[i] <= '9' || text[i] == '.') {
		i++
	}
	if i == 0 || i > 20 {
		return 0, 0, 0, false, false
	}
	v, err := strconv.ParseFloat(text[:i], 64)
	if err != nil {
		return 0, 0, 0, false, false
	}
	mult = unit
	switch strings.ToLower(strings.TrimSpace(text[i:])) {
	case "":
	case "b", "bytes":
		mult = 1
	case "k", "kb", "ki", "kib", "kn", "kc":
		mult = 1 << 10
	case "mib":
		mult = 1 << 20
	case "m", "mb", "mi", "mn", "mc":
		mult, rounded = 1<<20, true
	case "g", "gb", "gi", "gib", "gn", "gc":
		mult, rounded = 1<<30, true
	case "t", "tb", "ti", "tib", "tn", "tc":
		mult, rounded = 1<<40, true
	case "p", "pb", "pi", "pib":
		mult, rounded = 1<<50, true
	default:
		return 0, 0, 0, false, false
	}
	if mult <= 0 || v*float64(mult) > math.MaxInt64/4 {
		return 0, 0, 0, false, false
	}
	if dot := strings.IndexByte(text[:i], '.'); dot >= 0 {
		frac, rounded = i-dot-1, true
	}
	return v, mult, frac, rounded, true
}

// exact reads a size that somebody set, which is what it says.
func exact(text string, unit int64) (evidence.Value, bool) {
	v, mult, _, _, ok := quantity(text, unit)
	if !ok {
		return evidence.Value{}, false
	}
	n := int64(v * float64(mult))
	return evidence.SizeOf(n, n), true
}

func setExact(attrs evidence.Attrs, name, text string, unit int64) {
	if v, ok := exact(text, unit); ok {
		attrs[name] = v
	}
}

// set puts a size into attrs if text holds one.
func set(attrs evidence.Attrs, name, text string, unit int64) {
	if v, ok := size(text, unit); ok {
		attrs[name] = v
	}
}

func setInt(attrs evidence.Attrs, name, text string) {
	if n, err := strconv.ParseInt(strings.TrimSpace(text), 10, 64); err == nil {
		attrs[name] = evidence.IntOf(n)
	}
}

// columns splits a line at runs of blanks.
func columns(text string) []string { return strings.Fields(text) }

// dateLayouts are the forms of a line that only holds a date. Abbreviated zones
// other than UTC say nothing reliable and are left out of the stamp.
var dateLayouts = [...]string{
	"Mon Jan _2 15:04:05 2006", "Mon Jan _2 15:04:05 MST 2006", "Mon Jan _2 03:04:05 PM MST 2006", "Mon _2 Jan 15:04:05 MST 2006", "Mon _2 Jan 2006 03:04:05 PM MST",
	"Mon Jan 02 15:04:05 MST 2006", "Mon Jan 02 15:04:05 2006", "2006-01-02 15:04:05", "2006-01-02T15:04:05", "2006-01-02T15:04:05Z07:00", "2006-01-02 15:04:05-07:00", "2006/01/02 15:04:05.000", "2006/01/02 15:04:05",
}

// date reads one of dateLayouts.
func date(text string) (evidence.Stamp, bool) {
	text = strings.TrimSpace(text)
	if len(text) < 19 || len(text) > 40 || strings.Count(text, ":") < 2 {
		return evidence.Stamp{}, false
	}
	for _, layout := range dateLayouts {
		t, err := time.Parse(layout, text)
		if err != nil {
			continue
		}
		st := evidence.Stamp{Written: text, Error: time.Second / 2, Clock: "wall"}
		if t.Nanosecond() != 0 {
			st.Error = time.Millisecond / 2
		}
		switch {
		case strings.Contains(layout, "07:00"):
			st.Zone = t.Format("Z07:00")
			st.Time = t.UTC()
		default:
			if strings.Contains(layout, "MST") && (strings.Contains(text, " UTC") || strings.Contains(text, " GMT")) {
				st.Zone = "Z"
			}
			st.Time = time.Date(t.Year(), t.Month(), t.Day(), t.Hour(), t.Minute(), t.Second(), t.Nanosecond(), time.UTC)
		}
		return st, true
	}
	return evidence.Stamp{}, false
}

// dateLine recognises a line that only holds a date, and the header of watch:
// "Every 1.0s: nvidia-smi      node7: Fri Jan  2 03:04:05 2026".
func dateLine(text string) (st evidence.Stamp, host string, ok bool) {
	if st, ok := date(text); ok {
		return st, "", true
	}
	if !strings.HasPrefix(text, "Every ") || len(text) < 40 {
		return evidence.Stamp{}, "", false
	}
	const width = len("Fri Jan  2 03:04:05 2026")
	st, ok = date(text[len(text)-width:])
	if !ok {
		return evidence.Stamp{}, "", false
	}
	before := strings.Fields(text[:len(text)-width])
	if n := len(before); n > 0 && strings.HasSuffix(before[n-1], ":") {
		host = strings.TrimSuffix(before[n-1], ":")
	}
	st.Host = host
	return st, host, true
}

// timeOfDay finds a time of day in a comment.
func timeOfDay(text string) (evidence.Stamp, bool) {
	for i := 0; i+8 <= len(text); i++ {
		if text[i+2] != ':' || text[i+5] != ':' || i > 0 && text[i-1] >= '0' && text[i-1] <= '9' {
			continue
		}
		if t, err := time.Parse("15:04:05", text[i:i+8]); err == nil {
			if st, ok := date(strings.TrimSpace(strings.TrimLeft(text, "# "))); ok {
				return st, true
			}
			return evidence.Stamp{Time: t, Written: text[i : i+8], NoDate: true, Error: time.Second / 2, Clock: "wall"}, true
		}
	}
	return evidence.Stamp{}, false
}
