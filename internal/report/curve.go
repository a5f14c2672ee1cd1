package report

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/inquest-dev/inquest/internal/evidence"
	"github.com/inquest-dev/inquest/internal/incident"
)

// What a curve is drawn against.
const (
	byStep  = "step"
	byTime  = "time"
	byOrder = "order" // of writing, where points state neither
)

// A curve is the sample of one series laid out for drawing, by any report.
type curve struct {
	run    *incident.TrackedRun
	series *incident.TrackedSeries
	by     string
	pieces []piece
	left   int // points that state no place on the axis
}

// A piece is an unbroken stretch of rising x, in the order of writing.
type piece struct {
	dots []dot
	past float64 // dots from this x on were written again later; +Inf: none
}

// A dot is one point of a sample; y may be NaN or an infinity.
type dot struct {
	x, y float64
	at   *incident.TrackedPoint
}

func (d dot) finite() bool { return finite(d.y) }

// curveOf lays out the sample of a series.
func curveOf(r *incident.TrackedRun, s *incident.TrackedSeries) *curve {
	c := &curve{run: r, series: s, by: axisFor(s)}
	last := math.Inf(1)
	for i := range s.Points {
		at := &s.Points[i]
		d := dot{y: float64(at.Value), at: at}
		switch c.by {
		case byStep:
			if at.Step == nil {
				c.left++
				continue
			}
			d.x = float64(*at.Step)
		case byTime:
			t, ok := unixOf(at.Time)
			if !ok {
				c.left++
				continue
			}
			d.x = t
		default:
			d.x = float64(i)
		}
		// Many values may be logged at one step; only what goes back begins anew. Times of
		// one writer may stand still too.
		if d.x < last && !math.IsInf(last, 1) || len(c.pieces) == 0 {
			c.pieces = append(c.pieces, piece{past: math.Inf(1)})
		}
		p := &c.pieces[len(c.pieces)-1]
		p.dots = append(p.dots, d)
		last = d.x
	}
	again := math.Inf(1) // lowest x of all later pieces
	for i := len(c.pieces) - 1; i >= 0; i-- {
		c.pieces[i].past = again
		again = min(again, c.pieces[i].dots[0].x)
	}
	return c
}

// axisFor says what the points of a series can be drawn against.
func axisFor(s *incident.TrackedSeries) string {
	steps, times := 0, 0
	for i := range s.Points {
		if s.Points[i].Step != nil {
			steps++
		}
		if _, ok := unixOf(s.Points[i].Time); ok {
			times++
		}
	}
	switch {
	case s.Axis == string(evidence.AxisOwn) && 2*times > len(s.Points): // a counter that says nothing
		return byTime
	case 2*steps > len(s.Points):
		return byStep
	case 2*times > len(s.Points):
		return byTime
	}
	return byOrder
}

// unixOf is a time of a result in seconds since 1970.
func unixOf(t *string) (float64, bool) {
	if t == nil {
		return 0, false
	}
	at, err := time.Parse(time.RFC3339Nano, *t)
	if err != nil {
		return 0, false
	}
	return float64(at.UnixNano()) / 1e9, at.Year() > 1900 && at.Year() < 2200
}

// each calls fn with every dot and whether it was superseded.
func (c *curve) each(fn func(d dot, past bool)) {
	for i := range c.pieces {
		p := &c.pieces[i]
		for _, d := range p.dots {
			fn(d, d.x >= p.past)
		}
	}
}

// A scale maps values to 0 at the lower edge of a drawing and 1 at the upper.
type scale struct {
	low, high float64
	log       bool
	floor     int // values at or below 0 that a logarithmic scale puts at its lower edge
}

// decades is the span of values, as a power of ten, from which a scale is logarithmic.
const decades = 2

// scaleOf is the scale of the finite values of curves: logarithmic where they span
// decades and none is negative, from 0 where zero is told.
func scaleOf(curves []*curve, zero bool) scale {
	low, high, least := math.Inf(1), math.Inf(-1), math.Inf(1)
	none := 0
	for _, c := range curves {
		c.each(func(d dot, _ bool) {
			if !d.finite() {
				return
			}
			low, high = min(low, d.y), max(high, d.y)
			if d.y > 0 {
				least = min(least, d.y)
			} else {
				none++
			}
		})
	}
	switch {
	case math.IsInf(low, 1):
		return scale{low: 0, high: 1}
	case low >= 0 && !math.IsInf(least, 1) && !zero && math.Log10(high)-math.Log10(least) > decades:
		return scale{least, high, true, none}
	case zero && low >= 0:
		low = 0
	}
	if low == high {
		d := max(math.Abs(low)/10, 1e-9)
		low, high = max(low-d, -math.MaxFloat64), min(high+d, math.MaxFloat64)
	}
	return scale{low: low, high: high}
}

// at is where v stands. The halves keep the difference of extreme values finite.
func (s scale) at(v float64) float64 {
	if s.log {
		if v <= s.low {
			return 0
		}
		return min(1, (math.Log10(v)-math.Log10(s.low))/(math.Log10(s.high)-math.Log10(s.low)))
	}
	return min(1, max(0, (v/2-s.low/2)/(s.high/2-s.low/2)))
}

// ticks are round values within the scale for some n labels; of a logarithmic one powers
// of ten.
func (s scale) ticks(n int) []float64 {
	var out []float64
	if s.log {
		from, to := math.Ceil(math.Log10(s.low)-1e-9), math.Floor(math.Log10(s.high)+1e-9)
		by := max(1, math.Ceil((to-from)/float64(n)))
		for e := from; e <= to; e += by {
			out = append(out, math.Pow(10, e))
		}
		return out
	}
	span := (s.high/2 - s.low/2) / float64(n) * 2
	by := math.Pow(10, math.Floor(math.Log10(span)))
	for _, k := range []float64{5, 2, 1} { // the coarsest that is not coarser than asked for
		if by*k <= span {
			by *= k
			break
		}
	}
	for k := math.Ceil(s.low / by); k*by <= s.high && len(out) <= 4*n; k++ {
		out = append(out, k*by+0) // no negative zero
	}
	return out
}

// tickWords are labels of ticks with as few digits as tell them apart.
func tickWords(s *incident.TrackedSeries, ticks []float64) []string {
	out := make([]string, len(ticks))
	for digits := 3; digits <= 15; digits++ {
		seen := map[string]bool{}
		for i, v := range ticks {
			out[i] = strconv.FormatFloat(v, 'g', digits, 64)
			if s.Unit == "bytes" && math.Abs(v) < 1<<62 {
				out[i] = evidence.Bytes(int64(v))
			}
			seen[out[i]] = true
		}
		if len(seen) == len(ticks) {
			break
		}
	}
	return out
}

// rangeOf is the least and the greatest x of curves; ok is false where there is no dot.
func rangeOf(curves []*curve) (low, high float64, ok bool) {
	low, high = math.Inf(1), math.Inf(-1)
	for _, c := range curves {
		c.each(func(d dot, _ bool) { low, high = min(low, d.x), max(high, d.x) })
	}
	return low, high, !math.IsInf(low, 1)
}

// A stretch is a part of the x axis.
type stretch struct{ from, to float64 }

// bad are the stretches of values that are not finite: from the first such point to the
// last before a finite one, of points that count and, apart, of superseded ones.
func (c *curve) bad() (now, past []stretch) {
	for i := range c.pieces {
		p := &c.pieces[i]
		open, old := false, false
		for _, d := range p.dots {
			if d.finite() {
				open = false
				continue
			}
			gone := d.x >= p.past
			list := &now
			if gone {
				list = &past
			}
			if open && gone == old {
				(*list)[len(*list)-1].to = d.x
			} else {
				*list = append(*list, stretch{d.x, d.x})
			}
			open, old = true, gone
		}
	}
	return now, past
}

// doubtful are the stretches of values that only look finite, where they have steps.
func (c *curve) doubtful() []stretch {
	if c.by != byStep {
		return nil
	}
	var out []stretch
	for _, d := range c.series.Doubtful {
		if d.First != nil && d.Last != nil {
			out = append(out, stretch{float64(*d.First), float64(*d.Last)})
		}
	}
	return out
}

// resumes are the x at which writing began again.
func (c *curve) resumes() []float64 {
	var out []float64
	for i := 1; i < len(c.pieces); i++ {
		out = append(out, c.pieces[i].dots[0].x)
	}
	if c.by != byStep {
		return out
	}
	for _, r := range c.run.Resumes {
		if r.From != nil && c.series.Axis == "" || r.From != nil && c.series.Axis == byStep {
			out = append(out, float64(*r.From))
		}
	}
	return out
}

// place prints an x of the curve.
func (c *curve) place(x float64) string {
	switch c.by {
	case byStep:
		if x >= math.MaxInt64 { // a float64 rounds it up
			return thousands(math.MaxInt64)
		}
		return thousands(int64(x))
	case byTime:
		return time.Unix(0, int64(x*1e9)).UTC().Format("2006-01-02T15:04:05Z")
	}
	return "value " + thousands(int64(x)+1)
}

// along names the axis of the curve.
func (c *curve) along() string {
	switch c.by {
	case byStep:
		return upper(axisWord(c.series.Axis)) + "s"
	case byTime:
		return "Time"
	}
	return "Order of writing"
}

// caption says in words what a drawing of the curve shows. The marks are those of the
// drawing, for values that are not finite and for those that only look finite.
func (c *curve) caption(s scale, badMark, doubtMark, pastLook string) string {
	low, high, ok := rangeOf([]*curve{c})
	if !ok {
		return "No point to draw."
	}
	text := fmt.Sprintf("%s %s to %s", c.along(), c.place(low), c.place(high))
	if low == high {
		text = fmt.Sprintf("%s %s only", strings.TrimSuffix(c.along(), "s"), c.place(low))
	}
	if int64(len(c.series.Points)) < c.series.Count {
		text += fmt.Sprintf(", %s of %s points", thousands(int64(len(c.series.Points))), thousands(c.series.Count))
	}
	if x := c.series.Min; x != nil && c.series.Max != nil {
		text += fmt.Sprintf("; values %s to %s", unitWords(c.series, x.Value), unitWords(c.series, c.series.Max.Value))
	}
	if s.log {
		text += ", logarithmic"
		if s.floor > 0 {
			text += fmt.Sprintf(" (%s at the lower edge)", several(s.floor, "value")+" of 0")
		}
	}
	parts := []string{text}
	if n := countWords(c.series.NaN, c.series.PosInf, c.series.NegInf); n != "" {
		parts = append(parts, badMark+" not finite: "+n)
	}
	if len(c.doubtful()) > 0 {
		parts = append(parts, fmt.Sprintf("%s only looks finite: %s", doubtMark, several(int(c.series.Suspects), "value")))
	}
	if n := len(c.series.Segments) + int(c.series.More); n > 1 && len(c.pieces) > 1 {
		parts = append(parts, fmt.Sprintf("%d segments; what was written again later is %s", n, pastLook))
	}
	if c.left > 0 {
		parts = append(parts, several(c.left, "point")+" without a step not drawn")
	}
	return strings.Join(parts, "; ") + "."
}
