package hosttext

import (
	"strconv"
	"strings"

	"github.com/inquest-dev/inquest/internal/evidence"
	"github.com/inquest-dev/inquest/internal/format/textline"
)

// size reads a measured size as textline.Size does.
func size(text string, unit int64) (evidence.Value, bool) {
	b, ok := textline.Size(text, unit)
	return evidence.SizeOf(b.Lo, b.Hi), ok
}

// exact reads a size that somebody set, which is what it says.
func exact(text string, unit int64) (evidence.Value, bool) {
	q, ok := textline.ParseQuantity(text, unit)
	if !ok {
		return evidence.Value{}, false
	}
	n := int64(q.Number * float64(q.Unit))
	return evidence.SizeOf(n, n), true
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

// stamp is a moment as evidence.
func stamp(m textline.Moment) evidence.Stamp {
	return evidence.Stamp{Time: m.Time, Written: m.Written, Zone: m.Zone, NoDate: m.NoDate, Error: m.Error, Clock: "wall", Host: m.Host}
}

const mib = 1 << 20
