package engine

import (
	"fmt"
	"time"

	"github.com/inquest-dev/inquest/internal/evidence"
	"github.com/inquest-dev/inquest/internal/incident"
	"github.com/inquest-dev/inquest/internal/timeline"
)

// hosts states how each host's clock stands against the reference: what to add to its
// times, and to what that is known.
func (s *Study) hosts(inc *incident.Incident) {
	for _, c := range s.Timeline.HostClocks() {
		h := incident.Host{Host: c.Host, Zone: c.Zone, Basis: "no shared event bounds this host's clock"}
		switch {
		case c.Known && c.Host == c.Reference:
			h.OffsetS, h.ErrorS, h.Basis = seconds(0), seconds(0), "the clock that the others are measured by"
		case c.Known:
			h.OffsetS, h.ErrorS = seconds(-c.Offset), seconds(c.Error)
			h.Basis = fmt.Sprintf("against %s, from %s", c.Reference, c.Words())
			if z := c.OtherZone(); z != 0 {
				h.Basis += fmt.Sprintf("; %s of it look like another time zone", hours(-z))
			}
		}
		inc.Hosts = append(inc.Hosts, h)
	}
}

// hours writes a difference of time zones: +5h30m.
func hours(d time.Duration) string {
	sign := "+"
	if d < 0 {
		sign, d = "-", -d
	}
	return fmt.Sprintf("%s%dh%02dm", sign, int(d.Hours()), int(d.Minutes())%60)
}

// seconds rounds to a millisecond, which no offset is known better than.
func seconds(d time.Duration) *float64 {
	v := float64(d.Round(time.Millisecond).Milliseconds()) / 1000
	return &v
}

// seat states where a rank works, from all that the artifacts say of it.
func seat(out *incident.Rank, at timeline.Seat) {
	number := func(to **int, n int) {
		if *to == nil && n != evidence.None {
			*to = &n
		}
	}
	text := func(to **string, v string) {
		if *to == nil && v != "" {
			*to = &v
		}
	}
	number(&out.LocalRank, at.LocalRank)
	number(&out.Device, at.Device)
	number(&out.PID, at.PID)
	text(&out.Host, at.Host)
	if at.BusID != "" {
		out.BusID = &at.BusID
	}
	text(&out.UUID, at.UUID)
}
