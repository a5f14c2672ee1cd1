package web

import (
	"cmp"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/inquest-dev/inquest/internal/incident"
	"github.com/inquest-dev/inquest/internal/lazyre"
)

// An axis says where events stand: in seconds from an instant, by the clocks that can be compared
// with each other, or by their number in the order that is known.
type axis struct {
	byOrder bool
	base    clockBase
	year    int     // of days that are written without one
	zero    float64 // seconds of the base at which the axis has its 0
	first   bool    // 0 is the first fault
	low     float64 // ends of the whole axis
	high    float64
	// places are where events stand, in seconds of the base; carried of them have no time of their
	// own: they stand at that of the event before them in their artifact, or of the one behind them
	// where there is none.
	places  map[*incident.TimelineEvent]float64
	carried int
}

// A clockBase names what a written time counts from. Times of two bases cannot be compared.
type clockBase int

const (
	noClock   clockBase = iota
	utcClock            // date and zone are known
	wallClock           // a date without a zone: comparable if all machines have the same one
	dayClock            // a time of day only
)

// written are the ways in which times stand in artifacts, the zone apart: a date, the day of a
// year that is not stated (0211, Feb 11), or none.
var written = lazyre.New(`^(?:(\d{4}-\d{2}-\d{2})[ T]|(\d{1,2})(\d{2}) |([A-Z][a-z]{2}) +(\d{1,2}) )?(\d{2}:\d{2}:\d{2})(?:[.,](\d{1,9}))?$`)

// secondsOf is the time of an event in seconds of its base; days without a year are of year.
func secondsOf(t *incident.Time, year int) (float64, clockBase) {
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
	layout, text, base := "2006-01-02 15:04:05", m[1]+" "+m[6], wallClock
	switch {
	case m[2] != "":
		layout, text = "2006 1 02 15:04:05", fmt.Sprintf("%04d %s %s %s", year, strings.TrimPrefix(m[2], "0"), m[3], m[6])
	case m[4] != "":
		layout, text = "2006 Jan 2 15:04:05", fmt.Sprintf("%04d %s %s %s", year, m[4], m[5], m[6])
	case m[1] == "":
		layout, text, base = "15:04:05", m[6], dayClock
	}
	at, err := time.Parse(layout, text)
	if err != nil {
		return 0, noClock
	}
	s := unixSeconds(at)
	if m[7] != "" {
		f, _ := strconv.ParseFloat("0."+m[7], 64)
		s += f
	}
	return s, base
}

// yearOf is the year of the first date that is written with one, else a leap year.
func yearOf(events []incident.TimelineEvent) int {
	for i := range events {
		if t := events[i].Time; t != nil && len(t.Written) > 10 && t.Written[4] == '-' {
			if at, err := time.Parse(time.DateOnly, t.Written[:10]); err == nil {
				return at.Year()
			}
		}
	}
	return 2000
}

func unixSeconds(t time.Time) float64 { return float64(t.Unix()) + float64(t.Nanosecond())/1e9 }

// axisOf chooses the axis of a timeline. Without a wish it is time, where that of the first fault
// can be compared with those of others and most events have a place then, else order.
func axisOf(events []incident.TimelineEvent, view string) *axis {
	a := &axis{byOrder: view == "order", year: yearOf(events)}
	if !a.byOrder {
		a.byTime(events)
		if a.base == noClock || view == "" && 2*len(a.places) < len(events) {
			*a = axis{byOrder: true}
		}
	}
	a.low, a.high = math.Inf(1), math.Inf(-1)
	for i := range events {
		if s, ok := a.absolute(&events[i]); ok {
			a.low, a.high = min(a.low, s), max(a.high, s)
		}
	}
	if math.IsInf(a.low, 1) {
		a.low, a.high = 0, 0
	}
	if !a.byOrder && !a.first {
		a.zero = a.low
	}
	a.low, a.high = a.low-a.zero, a.high-a.zero
	room := max((a.high-a.low)*.02, .05)
	if a.byOrder {
		room = max(room, .5)
	}
	a.low, a.high = a.low-room, a.high+room
	return a
}

// byTime finds the clock whose times most events share, the first fault's before all, and
// carries them over to events that have none.
func (a *axis) byTime(events []incident.TimelineEvent) {
	var counts [dayClock + 1]int
	times := make([]float64, len(events))
	clocks := make([]clockBase, len(events))
	for i := range events {
		s, b := secondsOf(events[i].Time, a.year)
		times[i], clocks[i] = s, b
		counts[b]++
		if events[i].Role == incident.RoleFirst && b != noClock && !a.first {
			a.base, a.zero, a.first = b, s, true
		}
	}
	counts[noClock] = 0
	for b := utcClock; !a.first && b <= dayClock; b++ {
		if counts[b] > counts[a.base] {
			a.base = b
		}
	}
	if a.base == noClock {
		return
	}
	a.places = make(map[*incident.TimelineEvent]float64, len(events))
	last := map[string]float64{}
	ahead := map[string][]*incident.TimelineEvent{} // that wait for the first time of their artifact
	for i := range events {
		e, s, name := &events[i], times[i], ""
		if e.Span != nil {
			name = e.Span.Artifact
		}
		switch {
		case clocks[i] == a.base:
			a.places[e], last[name] = s, s
			for _, w := range ahead[name] {
				a.places[w] = s
			}
			a.carried += len(ahead[name])
			delete(ahead, name)
		case e.Time != nil || name == "": // by a clock that cannot be compared, or of no artifact
		default:
			if s, ok := last[name]; ok {
				a.places[e] = s
				a.carried++
			} else {
				ahead[name] = append(ahead[name], e)
			}
		}
	}
	for i := range events {
		if e := &events[i]; e.Role == incident.RoleFirst && !a.first {
			a.zero, a.first = a.places[e], a.places[e] != 0
		}
	}
}

func (a *axis) absolute(e *incident.TimelineEvent) (float64, bool) {
	if a.byOrder {
		return float64(e.N), true
	}
	s, ok := a.places[e]
	return s, ok
}

// at is where an event stands on the axis; false where it has no place.
func (a *axis) at(e *incident.TimelineEvent) (float64, bool) {
	s, ok := a.absolute(e)
	return s - a.zero, ok
}

// compare orders events along the axis; those without a place come last.
func (a *axis) compare(x, y *incident.TimelineEvent) int {
	at, ok := a.at(x)
	bt, bok := a.at(y)
	switch {
	case ok && bok:
		return cmp.Compare(at, bt)
	case ok:
		return -1
	case bok:
		return 1
	}
	return 0
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

// note says what the axis is.
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
	if a.carried > 0 {
		s += " An event without a time stands at that of the one before it in its artifact."
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
		return strconv.FormatFloat(math.Round(v)+0, 'f', 0, 64)
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
