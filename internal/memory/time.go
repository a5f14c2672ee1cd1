package memory

import (
	"time"

	"github.com/inquest-dev/inquest/internal/incident"
)

// time is an entry's time; nil where none is stated. It was converted from a
// counter of the processor, so that entries can tie or step back a little.
func (w *walk) time(us int64) *incident.Time {
	if us <= 0 || us > 1<<53 {
		return nil
	}
	s := time.UnixMicro(us).UTC().Format("2006-01-02T15:04:05.000000Z")
	return &incident.Time{UTC: &s, Written: s, Zone: "Z", ErrorS: 1, Clock: "wall"}
}
