package web

import (
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/inquest-dev/inquest/internal/incident"
	"github.com/inquest-dev/inquest/internal/lazyre"
)

// An axis says where events stand: in seconds from an instant, by the clocks that can be compared
// with each other, or by their number in the order that is known.
type axis struct {
	byOrder bool
	base    clockBase
	zero    float64 // seconds of the base at which the axis has its 0
	first   bool    // 0 is the first fault
	low     float64 // ends of the whole axis
	high    float64
	without int // events that have no place on it
}

// A clockBase names what a written time counts from. Times of two bases cannot be compared.
type clockBase int

const (
	noClock   clockBase = iota
	utcClock            // date and zone are known
	wallClock           // a date without a zone: comparable if all machines have the same one
	dayClock            // a time of day only
)

var written = lazyre.New(`^(?:(\d{4}-\d{2}-\d{2})[ T])?(\d{2}:\d{2}:\d{2})(?:[.,](\d{1,9}))?$`)

// secondsOf is the time of an event in seconds of its base.
func secondsOf(t *incident.Time) (float64, clockBase) {
	if t == nil {
		return 0, noClock
	}
	if t.UTC != nil {
		at, err := time.Parse(time.RFC3339Nano, *t.UTC)
		if err != nil {
			return 0, noClock
		}
		return unixSeconds(at), utcClock
	}
	if t.Clock != "" && t.Clock != "wall" || len(t.Written) > 64 {
		return 0, noClock
	}
	m := written.FindStringSubmatch(t.Written)
	if m == nil {
		return 0, noClock
	}
	layout, text, base := time.TimeOnly, m[2], dayClock
	if m[1] != "" {
		layout, text, base = time.DateTime, m[1]+" "+m[2], wallClock
	}
	at, err := time.Parse(layout, text)
	if err != nil {
		return 0, noClock
	}
	s := unixSeconds(at)
	if m[3] != "" {
		f, _ := strconv.ParseFloat("0."+m[3], 64)
		s += f
	}
	return s, base
}

func unixSeconds(t time.Time) float64 { return float64(t.Unix()) + float64(t.Nanosecond())/1e9 }

// axisOf chooses the axis of a timeline. Without a wish it is time, where the first fault and
// most other events have times that can be compared, else order.
func axisOf(events []incident.TimelineEvent, view string) *axis {
	a := &axis{byOrder: view == "order"}
	if !a.byOrder {
		counts := map[clockBase]int{}
		base := noClock
		for i := range events {
			s, b := secondsOf(events[i].Time)
			counts[b]++
			if events[i].Role == incident.RoleFirst && b != noClock && !a.first {
				base, a.zero, a.first = b, s, true
			}
		}
		if !a.first {
			for _, b := range []clockBase{utcClock, wallClock, dayClock} {
				if counts[b] > counts[base] || base == noClock && counts[b] > 0 {
					base = b
				}
			}
		}
		a.base = base
		if base == noClock || view == "" && 2*counts[base] < len(events) {
			a.byOrder, a.first = true, false
		}
	}
	a.low, a.high = math.Inf(1), math.Inf(-1)
	for i := range events {
		s, ok := a.absolute(&events[i])
		if !ok {
			a.without++
			continue
		}
		a.low, a.high = min(a.low, s), max(a.high, s)
	}
	if math.IsInf(a.low, 1) {
		a.low, a.high = 0, 0
	}
	if !a.byOrder && !a.first {
		a.zero = a.low
	}
	if a.byOrder {
		a.zero = 0
	}
	a.low, a.high = a.low-a.zero, a.high-a.zero
	room := (a.high - a.low) * .02
	if a.byOrder {
		room = max(room, .5)
	}
	room = max(room, .05)
	a.low, a.high = a.low-room, a.high+room
	return a
}

func (a *axis) absolute(e *incident.TimelineEvent) (float64, bool) {
	if a.byOrder {
		return float64(e.N), true
	}
	s, base := secondsOf(e.Time)
	return s, base == a.base && base != noClock
}

// at is where an event stands on the axis; false where it has no place.
func (a *axis) at(e *incident.TimelineEvent) (float64, bool) {
	s, ok := a.absolute(e)
	return s - a.zero, ok
}

// window is the part of the axis that is asked for, in bounds: at least a ten-thousandth of a
// second or one event wide, and none of it far off the axis.
func (a *axis) window(q *timelineQuery) (from, to float64) {
	from, to = a.low, a.high
	if q.From != nil {
		from = min(max(*q.From, a.low), a.high)
	}
	if q.To != nil {
		to = max(min(*q.To, a.high), a.low)
	}
	least := 1e-4
	if a.byOrder {
		least = 1
	}
	if to-from < least {
		middle := (from + to) / 2
		from, to = middle-least/2, middle+least/2
	}
	return from, to
}

// Note says what the axis is.
func (a *axis) note() string {
	if a.byOrder {
		return "By order, not to scale: each event has one place. Where the order of two events is not known, they stand by artifact and place."
	}
	s := "By time, to scale"
	switch a.base {
	case wallClock:
		s += ", as it was written: no zone is stated, so all machines are taken to have the same one"
	case dayClock:
		s += " of day, as it was written: no date is stated"
	}
	if a.first {
		s += "; 0 is the first fault."
	} else {
		s += "; 0 is the first event."
	}
	return s
}

// ticks are at most n round places within a window, with their labels.
func (a *axis) ticks(from, to float64, n int) []axisTick {
	step := niceStep((to-from)/float64(n), a.byOrder)
	var out []axisTick
	for k := math.Ceil(from / step); k*step <= to && len(out) <= n; k++ {
		out = append(out, axisTick{k * step, a.label(k*step, step)})
	}
	return out
}

type axisTick struct {
	at    float64
	label string
}

// niceStep is a round number not below least: of seconds, minutes, hours and days, or of
// whole events.
func niceStep(least float64, whole bool) float64 {
	if !whole {
		for _, s := range []float64{15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 21600, 43200, 86400} {
			if least > 10 && s >= least {
				return s
			}
		}
	}
	p := math.Pow(10, math.Floor(math.Log10(least)))
	for _, m := range []float64{1, 2, 5, 10} {
		if s := m * p; s >= least*(1-1e-9) && (!whole || s >= 1) {
			return s
		}
	}
	return 10 * p
}

// label is a place on the axis in words, as exact as step needs.
func (a *axis) label(v, step float64) string {
	if a.byOrder {
		return strconv.FormatFloat(math.Round(v), 'f', 0, 64)
	}
	sign := "+"
	if v < 0 {
		sign, v = "−", -v
	}
	digits := 0
	if step < 1 {
		digits = int(math.Ceil(-math.Log10(step) - 1e-9))
	}
	v = math.Round(v*math.Pow(10, float64(digits))) / math.Pow(10, float64(digits))
	switch {
	case v == 0:
		return "0"
	case v < 60 || step < 1:
		return fmt.Sprintf("%s%.*f s", sign, digits, v)
	case v < 3600:
		m, s := math.Floor(v/60), math.Mod(v, 60)
		if s == 0 {
			return fmt.Sprintf("%s%.0f min", sign, m)
		}
		return fmt.Sprintf("%s%.0f:%02.0f min", sign, m, s)
	}
	h, m := math.Floor(v/3600), math.Floor(math.Mod(v, 3600)/60)
	if m == 0 {
		return fmt.Sprintf("%s%.0f h", sign, h)
	}
	return fmt.Sprintf("%s%.0f:%02.0f h", sign, h, m)
}
