package web

import (
	"fmt"
	"math"
	"net/url"
	"reflect"
	"strings"
	"testing"

	"github.com/inquest-dev/inquest/internal/evidence"
	"github.com/inquest-dev/inquest/internal/incident"
)

// wallTime is a time as a log states it, without a zone.
func wallTime(s string) *incident.Time { return &incident.Time{Written: s, Clock: "wall"} }

// aJob is a timeline of ranks that all wait for one that broke: each begins, and times out.
func aJob(ranks, broken int) *incident.Timeline {
	t := &incident.Timeline{Attempts: []incident.TimelineAttempt{{ID: "1", Outcome: "failed"}}, Dropped: map[string]int{}}
	put := func(rank int, kind, class, role, at string, line int64) {
		e := incident.TimelineEvent{N: len(t.Events), Role: role}
		e.Kind, e.Class, e.Rank, e.Attempt = kind, class, &rank, "1"
		if at != "" {
			e.Time = wallTime(at)
		}
		e.Span = &evidence.Span{Artifact: fmt.Sprintf("job/rank_%d.log", rank), Kind: "text", Line: line, Offset: 100 * line}
		t.Events = append(t.Events, e)
	}
	for r := range ranks {
		put(r, "rank_info", "", incident.RoleOther, "2026-02-11 03:00:00", 1)
		put(r, "comm_created", "", incident.RoleOther, "", 2)
	}
	put(broken, "ecc_error", "device_fault", incident.RoleFirst, "2026-02-11 03:41:08,600", 9)
	for r := range ranks {
		if r != broken {
			put(r, "collective_timeout", "collective", incident.RoleFollowed, fmt.Sprintf("211 03:51:11.%06d", r), 9)
		}
	}
	t.Total = len(t.Events)
	return t
}

func pageOf(t *incident.Timeline, query string) *timelinePage {
	v, err := url.ParseQuery(query)
	if err != nil {
		panic(err)
	}
	q, problems := readTimelineQuery(v)
	return newTimelinePage(&incident.Case{ID: "c"}, t, q, problems)
}

func labels(p *timelinePage) []string {
	var out []string
	for _, l := range p.Drawing.Lanes {
		out = append(out, l.Label)
	}
	return out
}

func TestTimelineFolds(t *testing.T) {
	p := pageOf(aJob(1024, 700), "")
	if p.ByOrder {
		t.Fatal("it is drawn by order, though all have times")
	}
	if got, want := labels(p), []string{"1023 ranks", "rank 700"}; !reflect.DeepEqual(got, want) {
		t.Fatalf("lanes %q, want %q", got, want)
	}
	if full := p.Drawing.Lanes[0].Full; full != "ranks 0-699, 701-1023" {
		t.Errorf("the folded lane is of %s", full)
	}
	first := p.Drawing.Lanes[1].Marks[len(p.Drawing.Lanes[1].Marks)-1]
	if first.Role != incident.RoleFirst || first.Href != "/cases/c/lines?artifact=job%2Frank_700.log&line=9&offset=900#marked" {
		t.Errorf("the first fault is %+v", first)
	}
	if p.Of != 3072 || len(p.Rows) != timelineRows || p.Later == "" || p.Earlier != "" {
		t.Errorf("%d rows of %d, earlier %q, later %q", len(p.Rows), p.Of, p.Earlier, p.Later)
	}
}

// TestTimelineBounds checks that a drawing of any events stays small, and no lane of the first
// fault is lost.
func TestTimelineBounds(t *testing.T) {
	job := aJob(1024, 700)
	for i := range job.Events { // no two ranks alike
		if e := &job.Events[i]; e.Role == incident.RoleOther {
			e.Time = wallTime(fmt.Sprintf("2026-02-11 03:%02d:%02d", *e.Rank%60, *e.Rank/60))
		}
	}
	for _, query := range []string{"", "view=order", "from=-3600&to=0", "role=other"} {
		p := pageOf(job, query)
		marks := 0
		for _, l := range p.Drawing.Lanes {
			marks += len(l.Marks)
		}
		if len(p.Drawing.Lanes) > timelineLanes || marks > timelineMarks+timelineColumns[0] {
			t.Errorf("%q: %d lanes, %d marks", query, len(p.Drawing.Lanes), marks)
		}
		if query != "role=other" && !strings.Contains(strings.Join(labels(p), " "), "rank 700") {
			t.Errorf("%q: the lane of the first fault is lost", query)
		}
		if p.Drawing.Rest == 0 {
			t.Errorf("%q: no lane of the rest", query)
		}
	}
}

func TestTimelineFilters(t *testing.T) {
	job := aJob(8, 5)
	for _, c := range []struct {
		query string
		of    int
	}{
		{"", 24}, {"ranks=5", 3}, {"ranks=0-1,+7", 9}, {"role=first", 1}, {"kind=collective_timeout", 7}, {"class=device_fault", 1}, {"attempt=2", 0},
		{"from=-1&to=1", 1}, {"from=500&to=700", 7}, {"from=700&to=500", 24}, {"ranks=x", 24}, {"view=order&from=0&to=3", 4},
	} {
		if p := pageOf(job, c.query); p.Of != c.of {
			t.Errorf("%q: %d events, want %d", c.query, p.Of, c.of)
		}
	}
	if p := pageOf(job, "page=99"); p.Last != 24 || len(p.Rows) != 24 {
		t.Errorf("a page beyond the last shows %d to %d", p.First, p.Last)
	}
	if p := pageOf(&incident.Timeline{}, "view=time"); len(p.Drawing.Lanes) != 0 || len(p.Problems) == 0 {
		t.Error("an empty timeline is drawn, or not told to have no times")
	}
}

// TestTimelineMoves follows the links that zoom and go along, in each direction.
func TestTimelineMoves(t *testing.T) {
	job := aJob(8, 5)
	at := pageOf(job, "")
	window := func(p *timelinePage) (from, to float64) {
		fmt.Sscan(p.Window[0], &from)
		fmt.Sscan(p.Window[1], &to)
		return from, to
	}
	follow := func(p *timelinePage, key string) *timelinePage {
		for _, m := range p.Moves {
			if m.Key == key {
				_, query, _ := strings.Cut(m.Href, "?")
				return pageOf(job, query)
			}
		}
		t.Fatalf("no move %s", key)
		return nil
	}
	from, to := window(at)
	in := follow(at, "in")
	a, b := window(in)
	if math.Abs((b-a)*2-(to-from)) > 1e-3 || a >= 0 || b <= 0 {
		t.Errorf("zoomed in from %v to %v is %v to %v", from, to, a, b)
	}
	if c, d := window(follow(in, "out")); c != from || d != to {
		t.Errorf("in and out is %v to %v, not %v to %v", c, d, from, to)
	}
	if c, _ := window(follow(in, "earlier")); c >= a {
		t.Error("earlier is not earlier")
	}
	if c, d := window(follow(at, "minute")); c != -30 || d != 30 {
		t.Errorf("a minute is %v to %v", c, d)
	}
	for range 40 { // never out of bounds, never empty
		in = follow(in, "in")
	}
	if a, b := window(in); a >= b || a < from || b > to {
		t.Errorf("far zoomed in is %v to %v", a, b)
	}
}

func TestSecondsOf(t *testing.T) {
	at := func(s string) float64 {
		v, base := secondsOf(wallTime(s), 2026)
		if base != wallClock {
			t.Errorf("%s is of clock %d", s, base)
		}
		return v
	}
	day := at("2026-02-11 03:41:08")
	for _, s := range []string{"2026-02-11T03:41:08", "2026-02-11 03:41:08,000", "0211 03:41:08.000000", "211 03:41:08", "Feb 11 03:41:08"} {
		if got := at(s); got != day {
			t.Errorf("%s is %v s off", s, got-day)
		}
	}
	utc := "2026-02-11T03:41:08.5Z"
	if v, base := secondsOf(&incident.Time{UTC: &utc, Written: "x"}, 0); base != utcClock || v != day+.5 {
		t.Errorf("UTC: %v of clock %d", v, base)
	}
	if _, base := secondsOf(wallTime("03:41:08"), 2026); base != dayClock {
		t.Errorf("a time of day is of clock %d", base)
	}
	for _, s := range []string{"", "12.5", "2026-02-31 03:41:08", "99:99:99", "1399 01:01:01", strings.Repeat("1", 100)} {
		if _, base := secondsOf(wallTime(s), 2026); base != noClock {
			t.Errorf("%q is of clock %d", s, base)
		}
	}
	if _, base := secondsOf(&incident.Time{Written: "03:41:08", Clock: "elapsed"}, 2026); base != noClock {
		t.Error("an elapsed time is taken for one of day")
	}
}

func TestTicks(t *testing.T) {
	for _, c := range []struct {
		a        axis
		from, to float64
		want     string
	}{
		{axis{}, -10, 20, "−10 s −5 s 0 +5 s +10 s +15 s +20 s"},
		{axis{}, -.002, .003, "−0.002 s −0.001 s 0 +0.001 s +0.002 s +0.003 s"},
		{axis{}, -9000, 300, "−2:30 h −2 h −1:30 h −1 h −30 min 0"},
		{axis{}, 0, 200, "0 +1 min +2 min +3 min"},
		{axis{byOrder: true}, -.5, 3.5, "0 1 2 3"},
		{axis{byOrder: true}, -2, 1000, "0 200 400 600 800 1000"},
	} {
		var got []string
		for _, k := range c.a.ticks(c.from, c.to, timelineTicks) {
			got = append(got, k.label)
		}
		if s := strings.Join(got, " "); s != c.want {
			t.Errorf("%v to %v: %s, want %s", c.from, c.to, s, c.want)
		}
	}
}

// FuzzTimeline asks for anything of a small timeline: the page is made, bounded, and its own
// links ask for what it shows.
func FuzzTimeline(f *testing.F) {
	for _, s := range []string{"", "view=time&from=-1&to=1", "ranks=0-3,5&role=first&page=2", "from=1e308&to=-1e308", "ranks=" + strings.Repeat("1,", 300)} {
		f.Add(s)
	}
	job := aJob(12, 3)
	f.Fuzz(func(t *testing.T, query string) {
		v, err := url.ParseQuery(query)
		if err != nil {
			return
		}
		q, problems := readTimelineQuery(v)
		p := newTimelinePage(&incident.Case{ID: "c"}, job, q, problems)
		if len(p.Rows) > timelineRows || p.Of > len(job.Events) || p.Drawing.Height > 4000 {
			t.Fatalf("%d rows of %d, %d pixels", len(p.Rows), p.Of, p.Drawing.Height)
		}
		again, _ := readTimelineQuery(q.values())
		if len(problems) == 0 && !reflect.DeepEqual(again.values(), q.values()) {
			t.Fatalf("%v becomes %v", q.values(), again.values())
		}
		for _, m := range p.Moves {
			if strings.Contains(m.Href, "NaN") || strings.Contains(m.Href, "Inf") {
				t.Fatalf("a move leads to %s", m.Href)
			}
		}
	})
}

func BenchmarkTimelinePage(b *testing.B) {
	job := aJob(1024, 700)
	q, _ := readTimelineQuery(url.Values{})
	for b.Loop() {
		newTimelinePage(&incident.Case{ID: "c"}, job, q, nil)
	}
}
