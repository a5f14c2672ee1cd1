package textline

import (
	"math"
	"strconv"
	"strings"
)

// Bytes is the interval of sizes that a printed one stands for, both ends
// included. Hi is negative where no size was stated.
type Bytes struct{ Lo, Hi int64 }

// NoBytes is a size that is not stated.
var NoBytes = Bytes{0, -1}

// Known reports whether b states a size.
func (b Bytes) Known() bool { return b.Hi >= 0 }

// Size reads a measured size as tools print it: 1.8T, 64M, 204910208K, 46068 MiB,
// 12.5GiB, 0. unit is what a bare number counts. Units are binary. Whole numbers
// of a bare unit, K or MiB stand for [n, n+1); human units are rounded up by df,
// to the nearest by others, so one unit of the last digit is allowed for either
// way.
func Size(text string, unit int64) (Bytes, bool) {
	q, ok := ParseQuantity(text, unit)
	if !ok {
		return NoBytes, false
	}
	bytes := q.Number * float64(q.Unit)
	if !q.Rounded {
		lo := int64(bytes)
		return Bytes{lo, lo + q.Unit - 1}, true
	}
	ulp := float64(q.Unit) / math.Pow(10, float64(q.Digits))
	if q.Number == 0 {
		return Bytes{0, int64(ulp)}, true
	}
	return Bytes{int64(math.Max(0, math.Floor(bytes-ulp))), int64(math.Ceil(bytes + ulp))}, true
}

// A Quantity is a number with its unit in bytes. Digits stand behind the point;
// Rounded says that the tool chose the unit, and rounded to it.
type Quantity struct {
	Number  float64
	Unit    int64
	Digits  int
	Rounded bool
}

// ParseQuantity reads a number with an optional unit; unit is that of a bare one.
func ParseQuantity(text string, unit int64) (Quantity, bool) {
	text = strings.TrimSpace(text)
	i := 0
	for i < len(text) && (text[i] >= '0' && text[i] <= '9' || text[i] == '.') {
		i++
	}
	if i == 0 || i > 20 {
		return Quantity{}, false
	}
	v, err := strconv.ParseFloat(text[:i], 64)
	if err != nil {
		return Quantity{}, false
	}
	q := Quantity{Number: v, Unit: unit}
	switch strings.ToLower(strings.TrimSpace(text[i:])) {
	case "":
	case "b", "bytes":
		q.Unit = 1
	case "k", "kb", "ki", "kib", "kn", "kc":
		q.Unit = 1 << 10
	case "mib":
		q.Unit = 1 << 20
	case "m", "mb", "mi", "mn", "mc":
		q.Unit, q.Rounded = 1<<20, true
	case "g", "gb", "gi", "gib", "gn", "gc":
		q.Unit, q.Rounded = 1<<30, true
	case "t", "tb", "ti", "tib", "tn", "tc":
		q.Unit, q.Rounded = 1<<40, true
	case "p", "pb", "pi", "pib":
		q.Unit, q.Rounded = 1<<50, true
	default:
		return Quantity{}, false
	}
	if q.Unit <= 0 || v*float64(q.Unit) > math.MaxInt64/4 {
		return Quantity{}, false
	}
	if dot := strings.IndexByte(text[:i], '.'); dot >= 0 {
		q.Digits, q.Rounded = i-dot-1, true
	}
	return q, true
}

// Count reads a whole number, -1 if v is none.
func Count(v string) int64 {
	n, err := strconv.ParseInt(strings.TrimSpace(v), 10, 64)
	if err != nil || n < 0 {
		return -1
	}
	return n
}

// Small reads an index or the number of a process, -1 if v is none.
func Small(v string) int {
	n, err := strconv.ParseInt(strings.TrimSpace(v), 10, 32)
	if err != nil || n < 0 {
		return -1
	}
	return int(n)
}
