package tracker

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/inquest-dev/inquest/internal/evidence"
	"github.com/inquest-dev/inquest/internal/incident"
	"github.com/inquest-dev/inquest/internal/reader"
)

func TestClock(t *testing.T) {
	around := func(offset, spread float64, n int) (out []pair) {
		for i := range n {
			out = append(out, pair{offset: offset + spread*(float64(i)-float64(n-1)/2)/float64(max(n-1, 1)), err: .5, timed: true})
		}
		return out
	}
	for _, c := range []struct {
		name    string
		pairs   []pair
		means   string
		applied bool
		offset  float64
	}{
		{"the same", around(.4, .2, 5), "same clock", true, .4},
		{"late", around(45, 4, 9), "flush delay", true, 45},
		{"early", around(-100, 4, 9), "flush delay", true, -100},
		{"two hours", around(7200.3, 1, 3), "time zone", true, 7200.3},
		{"India, and late", around(19800+50, 1, 3), "time zone", true, 19850},
		{"west", around(-8*3600-3, 1, 3), "time zone", true, -28803},
		{"seven minutes", around(420, 1, 9), "skew", false, 420},
		{"a day", around(86400, 1, 9), "skew", false, 86400},
		{"two pairs", around(0, 1, 2), "unknown", false, 0},
		{"all over", around(0, 4000, 9), "unknown", false, 0},
		{"no times", make([]pair, 9), "unknown", false, 0},
	} {
		x := &tie{}
		x.Means = "unknown"
		x.settle(c.pairs)
		if x.Means != c.means || x.Applied != c.applied || math.Abs(x.Offset-c.offset) > 1e-6 || x.Basis == "" {
			t.Errorf("%s: %s, applied %v, %v: %s", c.name, x.Means, x.Applied, x.Offset, x.Basis)
		}
	}
}

func TestPrecision(t *testing.T) {
	of := func(values ...float64) *evidence.Series {
		s := evidence.NewSeries(evidence.SeriesKey{Name: "loss"})
		for i, v := range values {
			s.Add(evidence.Point{Step: int64(i), Value: v})
		}
		return s
	}
	for _, c := range []struct {
		name          string
		s             *evidence.Series
		value, stored float64
		same          bool
	}{
		{"four places", of(2.3456, 2.3, 10.1234), 2.3, 2.30004, true},
		{"four places, another", of(2.3456, 2.3, 10.1234), 2.3, 2.3002, false},
		{"four places of a small one", of(2.3456, 0.0012), 0.0012, 0.001234, true},
		{"seven digits", of(1.234567, 1.5e-05), 1.234567, 1.2345672, true},
		{"seven digits, another", of(1.234567, 1.5e-05), 1.234567, 1.2346, false},
		{"all digits of a float32", of(0.10000000149011612), 0.10000000149011612, float64(float32(0.1)), true},
		{"whole numbers", of(3, 4, 5), 3, 3.4, true},
		{"nothing finite", of(math.NaN()), 0, 0.2, true},
	} {
		if same := math.Abs(c.value-c.stored) <= precision(c.s)(c.value); same != c.same {
			t.Errorf("%s: %v", c.name, same)
		}
	}
}

func TestWall(t *testing.T) {
	near := time.Date(2026, 1, 1, 3, 0, 0, 0, time.UTC)
	day := func(y int, m time.Month, d, h int) time.Time { return time.Date(y, m, d, h, 0, 0, 0, time.UTC) }
	for _, c := range []struct {
		name  string
		s     evidence.Stamp
		want  time.Time
		daily bool
	}{
		{"whole", evidence.Stamp{Time: day(2025, 5, 6, 7), Written: "x", Clock: "wall"}, day(2025, 5, 6, 7), false},
		{"without a year", evidence.Stamp{Time: day(0, 12, 31, 23), Written: "x", Clock: "wall", NoYear: true}, day(2025, 12, 31, 23), false},
		{"without a date", evidence.Stamp{Time: day(0, 1, 1, 23), Written: "x", Clock: "wall", NoDate: true}, day(2026, 1, 1, 23), true},
		{"since boot", evidence.Stamp{Time: day(1970, 1, 1, 1), Written: "x", Clock: "boot"}, time.Time{}, false},
		{"none", evidence.Stamp{}, time.Time{}, false},
	} {
		wall, _, daily := wallOf(c.s, near)
		if c.want.IsZero() != (wall == 0) || wall != 0 && (wall != unix(c.want) || daily != c.daily) {
			t.Errorf("%s: %v, daily %v", c.name, wall, daily)
		}
	}
}

// TestOrder sets a value that is not finite against a failure of memory that the logs tell
// of in all sorts of ways.
func TestOrder(t *testing.T) {
	run := func(walls bool) []*Run {
		return Merge([]*evidence.TrackedRun{record("csv", "out", "log.csv", func(r *reader.Recording) {
			x := r.Track("loss", false, 1)
			for s := int64(10); s <= 100; s += 10 {
				v, wall := float64(s), 0.0
				if s >= 60 {
					v = nan
				}
				if walls {
					wall = began + float64(s)
				}
				x.Add(s, wall, v, reader.Place{Line: s})
			}
		})})
	}
	oom := func(step, next int64, at float64) *Happening {
		h := &Happening{Kind: "memory", Text: "out of memory", Step: step, Next: next, Span: evidence.Span{Artifact: "job.log", Line: 7}}
		if at > 0 {
			h.Stamp = evidence.Stamp{Time: time.UnixMicro(int64(at * 1e6)).UTC(), Written: "x", Zone: "Z", Clock: "wall", Error: time.Second}
		}
		return h
	}
	none := int64(evidence.None)
	value := &Happening{Kind: "nonfinite", Text: "loss nan", Step: 60, Next: none, Span: evidence.Span{Artifact: "job.log", Line: 6}}
	for _, c := range []struct {
		name          string
		walls         bool
		s             Story
		answer, basis string // the beginning of it
		missing       string // part of it
	}{
		{"nothing but the value", true, Story{}, "only nonfinite", "no log shows", ""},
		{"by step", false, Story{Memory: oom(70, none, 0)}, "nonfinite first", "by step: loss is not finite at step 60, and memory ran out after step 70", ""},
		{"by step, survived", false, Story{Memory: oom(30, 40, 0)}, "memory first", "by step: memory ran out before step 40", ""},
		{"by time", true, Story{Memory: oom(none, none, began+60+1300)}, "nonfinite first", "by time: it was recorded 21m40s before", ""},
		{"too near", true, Story{Memory: oom(none, none, began+60+1000)}, "unknown", "neither", "less than the clocks are known to"},
		{"by time, after", true, Story{Memory: oom(none, none, began-1300)}, "memory first", "by time: what it stands in was begun", ""},
		{"by place", false, Story{Memory: oom(none, none, 0), NaN: value, Relation: incident.OOMFirst, Basis: "position in the same log"}, "memory first", "the logs show both: position", ""},
		{"unknown", false, Story{Memory: oom(50, none, 0)}, "unknown", "neither", "the value stands at step 60, and the last step logged before memory ran out is 50; the tracker has no time"},
	} {
		a := Align(run(c.walls), nil, &c.s, Options{})
		o := a.Result().Order
		if o.Answer != c.answer || !strings.HasPrefix(o.Basis, c.basis) || !strings.Contains(o.Missing, c.missing) {
			t.Errorf("%s: %s: %q, missing %q", c.name, o.Answer, o.Basis, o.Missing)
		}
	}
	empty := Align(nil, nil, &Story{}, Options{}).Result()
	if empty.Order.Answer != "neither" || empty.Rows == nil || empty.Clocks == nil || empty.After == nil {
		t.Errorf("%+v", empty)
	}
}
