package repair

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/inquest-dev/inquest/internal/evidence"
	"github.com/inquest-dev/inquest/internal/incident"
	"github.com/inquest-dev/inquest/internal/reader"
)

var nan, inf = math.NaN(), math.Inf(1)

// A point of a test.
type point struct {
	step int64
	wall float64
	v    float64
}

// A file of a test: one run in one artifact.
type file struct {
	artifact string
	run      evidence.TrackedRun
	series   []series
}

type series struct {
	name    string
	points  []point
	suspect map[int]string // by index of the point
}

// sink is what the engine makes of a planner or a recount.
type sink struct {
	*reader.Collector
	reader.Tracked
	reader.EveryPoint
}

func (s sink) Series(k evidence.SeriesKey) *evidence.Series { return evidence.NewSeries(k) }

func (f *file) read(to interface {
	reader.Tracked
	reader.EveryPoint
}) {
	rec := reader.NewRecording(sink{reader.NewCollector(), to, to}, "test", f.artifact)
	rec.Run.ID, rec.Run.Name, rec.Run.Folder, rec.Run.Status, rec.Run.StatusSaid = f.run.ID, f.run.Name, f.run.Folder, f.run.Status, f.run.StatusSaid
	for _, s := range f.series {
		for i, p := range s.points {
			t := rec.Track(s.name, false, p.v)
			t.Add(p.step, p.wall, p.v, reader.Place{Line: int64(i + 1)})
			if why := s.suspect[i]; why != "" {
				t.Suspect(1, why)
			}
		}
	}
	rec.Close()
}

func planOf(t testing.TB, o PlanOptions, files ...*file) *Plan {
	t.Helper()
	p := NewPlanner(o)
	for _, f := range files {
		f.read(p)
	}
	if err := p.Again(nil); err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		f.read(p)
	}
	plan, err := p.Plan()
	if err != nil {
		t.Fatal(err)
	}
	return plan
}

// apply is a format that writes files of the test.
func apply(plan *Plan, files ...*file) []*file {
	var out []*file
	for _, f := range files {
		run := plan.Run(KeyOf(&f.run))
		c := &file{artifact: "copy/" + f.artifact, run: f.run}
		for _, s := range f.series {
			to := series{name: s.name}
			d := run.Series(f.artifact, s.name)
			for _, p := range s.points {
				if act, v := d.Next(p.step, p.wall, p.v); act != Drop {
					to.points = append(to.points, point{p.step, p.wall, v})
				}
			}
			c.series = append(c.series, to)
		}
		out = append(out, c)
	}
	for _, run := range plan.Runs() {
		if len(run.Marks()) == 0 {
			continue
		}
		m := &file{artifact: "copy/marks", run: *run.Read, series: []series{{name: plan.Marker}}}
		for _, k := range run.Marks() {
			m.series[0].points = append(m.series[0].points, point{k.Step, k.Wall, k.Value})
		}
		out = append(out, m)
	}
	return out
}

func line(v ...float64) (p []point) {
	for i, v := range v {
		p = append(p, point{int64(i+1) * 10, float64(i + 1000), v})
	}
	return p
}

func TestPlan(t *testing.T) {
	id := evidence.TrackedRun{ID: "r1"}
	for _, c := range []struct {
		name    string
		policy  incident.RepairPolicy
		files   []*file
		actions string // of all points: . kept, x dropped, = held
		marks   string
		clean   int64
	}{
		{name: "drop", files: []*file{{artifact: "a", run: id, series: []series{{name: "loss", points: line(2, 1, nan, inf, 1)}}}},
			actions: "..xx.", marks: "20:0 30:1 40:1 50:0", clean: 20},
		{name: "hold", policy: incident.RepairPolicy{Nonfinite: HoldValues}, files: []*file{{artifact: "a", run: id, series: []series{{name: "loss", points: line(nan, 1, nan, -inf, 1)}}}},
			actions: "x.==.", marks: "10:1 20:0 30:1 40:1 50:0", clean: evidence.None},
		{name: "all", files: []*file{{artifact: "a", run: id, series: []series{{name: "loss", points: line(nan, nan)}}}},
			actions: "xx", marks: "10:1 20:1", clean: evidence.None},
		{name: "nothing", files: []*file{{artifact: "a", run: id, series: []series{{name: "loss", points: line(1, 2)}}}}, actions: "..", clean: evidence.None},
		{name: "two series", files: []*file{{artifact: "a", run: id, series: []series{
			{name: "loss", points: line(1, 1, 1, nan, 1)}, {name: "grad_norm", points: line(1, 1, nan, nan, 1)}}}},
			actions: "...x...xx.", marks: "20:0 30:1 40:1 50:0", clean: 20},
		{name: "suspects stay", files: []*file{{artifact: "a", run: id, series: []series{{name: "loss", points: line(1, 0, 0, 1), suspect: map[int]string{1: "zero", 2: "zero"}}}}},
			actions: "....", clean: evidence.None},
		{name: "suspects go", policy: incident.RepairPolicy{Suspects: true}, files: []*file{{artifact: "a", run: id, series: []series{{name: "loss", points: line(1, 0, 0, 1), suspect: map[int]string{1: "zero", 2: "zero"}}}}},
			actions: ".xx.", marks: "10:0 20:1 30:1 40:0", clean: 10},
		{name: "resumed", policy: incident.RepairPolicy{Dedupe: true}, files: []*file{{artifact: "a", run: id, series: []series{{name: "loss",
			points: []point{{10, 1, 3}, {20, 2, 2}, {30, 3, nan}, {40, 4, 2}, {20, 5, 2}, {30, 6, 1}, {25, 7, 1}, {50, 8, nan}}}}}},
			actions: ".xxx.x.x", marks: "25:0 50:1", clean: 25},
		{name: "resumed in another file", policy: incident.RepairPolicy{Dedupe: true}, files: []*file{
			{artifact: "b", run: id, series: []series{{name: "loss", points: []point{{20, 11, 5}, {30, 12, 6}}}}},
			{artifact: "a", run: id, series: []series{{name: "loss", points: []point{{10, 1, 3}, {20, 2, nan}, {30, 3, 2}, {15, 4, 2}}}}}},
			actions: "...xx.", clean: evidence.None},
		{name: "other rank", policy: incident.RepairPolicy{Dedupe: true}, files: []*file{
			{artifact: "b", run: id, series: []series{{name: "loss", points: []point{{10, 1, 5}, {20, 12, 6}}}}},
			{artifact: "a", run: id, series: []series{{name: "loss", points: []point{{10, 1, 3}, {20, 13, 4}}}}}},
			actions: "....", clean: evidence.None},
		{name: "no steps", files: []*file{{artifact: "a", run: id, series: []series{{name: "loss", points: []point{{-1, 5, 1}, {-1, 6, nan}, {-1, 7, 1}}}}}},
			actions: ".x.", marks: "-1:0 -1:1 -1:0", clean: evidence.None},
	} {
		t.Run(c.name, func(t *testing.T) {
			plan := planOf(t, PlanOptions{Policy: c.policy}, c.files...)
			run := plan.Runs()[0]
			var marks []string
			for _, m := range run.Marks() {
				marks = append(marks, fmt.Sprintf("%d:%v", m.Step, m.Value))
				if v, ok := run.Mark(m.Step); m.Step != evidence.None && (!ok || v != m.Value) {
					t.Errorf("Mark(%d) = %v, %v", m.Step, v, ok)
				}
			}
			if got := strings.Join(marks, " "); got != c.marks {
				t.Errorf("marks %q, want %q", got, c.marks)
			}
			if run.Clean != c.clean {
				t.Errorf("last clean step %d, want %d", run.Clean, c.clean)
			}
			actions := ""
			for _, f := range c.files {
				for _, s := range f.series {
					for i, p := range s.points {
						act, _ := plan.Run(KeyOf(&f.run)).Series(f.artifact, s.name).Next(p.step, p.wall, p.v)
						actions += string(".x="[act])
						_ = i
					}
				}
			}
			if actions != c.actions {
				t.Errorf("actions %s, want %s", actions, c.actions)
			}
			if _, err := plan.Result(); err != nil {
				t.Error(err)
			}
		})
	}
}

// Random series with failures, resumes, repeated steps and suspects: the account balances,
// what is kept is what a plain search keeps, and the copy is found to be right.
func TestPlanRandom(t *testing.T) {
	for seed := range uint64(400) {
		r := rand.New(rand.NewPCG(seed, 1))
		policy := incident.RepairPolicy{Nonfinite: []string{DropValues, HoldValues}[r.IntN(2)], Suspects: r.IntN(2) == 0, Dedupe: r.IntN(2) == 0}
		var files []*file
		wall := 1000.0
		for n := range 1 + r.IntN(3) {
			f := &file{artifact: fmt.Sprint("f", n), run: evidence.TrackedRun{ID: fmt.Sprint("r", r.IntN(2))}}
			for s := range 1 + r.IntN(3) {
				one := series{name: fmt.Sprint("s", s), suspect: map[int]string{}}
				step := int64(r.IntN(20))
				for i := range r.IntN(60) {
					v := r.NormFloat64()
					switch r.IntN(12) {
					case 0:
						v = nan
					case 1:
						v = inf
					case 2:
						v = -inf
					case 3:
						v, one.suspect[i] = 0, "zero"
					}
					one.points = append(one.points, point{step, wall, v})
					wall++
					switch r.IntN(15) {
					case 0:
						step -= int64(r.IntN(10))
						step = max(step, 0)
					case 1:
					default:
						step += 1 + int64(r.IntN(3))
					}
				}
				f.series = append(f.series, one)
			}
			files = append(files, f)
		}
		plan := planOf(t, PlanOptions{Policy: policy}, files...)
		copied := apply(plan, files...)
		runs, err := plan.Result()
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		var total, kept int64
		for _, x := range runs {
			total += x.Total
			kept += x.Kept
			for _, s := range x.Series {
				if s.Count != s.Kept+s.Dropped+s.Held+s.Superseded || s.Dropped+s.Held != s.NaN+s.PosInf+s.NegInf+s.Suspect {
					t.Errorf("seed %d: %+v does not balance", seed, s)
				}
			}
		}
		var wantTotal, wantKept int64
		for _, f := range files {
			for _, s := range f.series {
				for i, p := range s.points {
					wantTotal++
					if p.v-p.v == 0 && !(policy.Suspects && s.suspect[i] != "") && !(policy.Dedupe && writtenAgain(files, f, s, i)) {
						wantKept++
					}
				}
			}
		}
		if total != wantTotal || kept != wantKept {
			t.Errorf("seed %d: %d of %d kept, want %d of %d", seed, kept, total, wantKept, wantTotal)
		}
		again := NewRecount(nil)
		for _, f := range copied {
			f.read(again)
		}
		for _, c := range plan.Checks(again) {
			if !c.Holds {
				t.Errorf("seed %d: %s: %s", seed, c.Name, c.Detail)
			}
		}
		if second := planOf(t, PlanOptions{Policy: policy}, files...); !reflect.DeepEqual(ids(plan), ids(second)) {
			t.Errorf("seed %d: two plans differ", seed)
		}
	}
}

func ids(p *Plan) (out []string) {
	for _, r := range p.Runs() {
		out = append(out, r.NewID, r.Note, r.Short, r.JSON, fmt.Sprint(r.Marks()))
	}
	return out
}

// writtenAgain is the definition: a later segment, of the file or of one begun after it,
// starts at the point's step or below.
func writtenAgain(files []*file, f *file, s series, i int) bool {
	at := s.points[i]
	for j := i + 1; j < len(s.points); j++ {
		if s.points[j].step <= s.points[j-1].step && s.points[j].step <= at.step {
			return true
		}
	}
	for _, g := range files {
		if g == f || g.run.ID != f.run.ID {
			continue
		}
		for _, o := range g.series {
			if o.name == s.name && len(o.points) > 0 && o.points[0].wall > s.points[len(s.points)-1].wall &&
				slices.MinFunc(o.points, func(a, b point) int { return int(a.step - b.step) }).step <= at.step {
				return true
			}
		}
	}
	return false
}

// A copy that is not what was planned is found out.
func TestChecks(t *testing.T) {
	src := &file{artifact: "a", run: evidence.TrackedRun{ID: "r"}, series: []series{{name: "loss", points: line(3, 2, nan, 1)}, {name: "lr", points: line(1, 1, 1, 1)}}}
	for name, spoil := range map[string]func(f *file){
		"value":   func(f *file) { f.series[0].points[1].v = 2.5 },
		"step":    func(f *file) { f.series[0].points[1].step = 21 },
		"lost":    func(f *file) { f.series[1].points = f.series[1].points[1:] },
		"more":    func(f *file) { f.series[1].points = append(f.series[1].points, point{99, 99, 1}) },
		"bad":     func(f *file) { f.series[0].points[1].v = nan },
		"renamed": func(f *file) { f.series[1].name = "rate" },
		"missing": func(f *file) { f.series = f.series[:1] },
	} {
		plan := planOf(t, PlanOptions{}, src)
		copied := apply(plan, src)
		spoil(copied[0])
		again := NewRecount(nil)
		for _, f := range copied {
			f.read(again)
		}
		if checks := plan.Checks(again); !slices.ContainsFunc(checks, func(c incident.RepairCheck) bool { return !c.Holds }) {
			t.Errorf("%s: all checks hold: %+v", name, checks)
		}
	}
	plan := planOf(t, PlanOptions{}, src)
	again := NewRecount(nil)
	for _, f := range apply(plan, src)[:1] { // without the marks
		f.read(again)
	}
	if checks := plan.Checks(again); checks[2].Holds {
		t.Errorf("a copy without marks: %+v", checks)
	}
}

// A format that asks for other points than the readers met is found out.
func TestAccountDiffers(t *testing.T) {
	src := &file{artifact: "a", run: evidence.TrackedRun{ID: "r"}, series: []series{{name: "loss", points: line(3, 2, nan, 1)}}}
	for name, ask := range map[string]func(s *Series){
		"none":  func(s *Series) {},
		"fewer": func(s *Series) { s.Next(10, 0, 3) },
		"other": func(s *Series) {
			for _, v := range []float64{3, 2, nan, 2} {
				s.Next(10, 0, v)
			}
		},
	} {
		plan := planOf(t, PlanOptions{}, src)
		ask(plan.Runs()[0].Series("a", "loss"))
		if _, err := plan.Result(); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	plan := planOf(t, PlanOptions{}, src)
	apply(plan, src)
	plan.Run(RunKey{ID: "stranger"}).Series("a", "x").Next(1, 1, 1)
	if _, err := plan.Result(); err == nil {
		t.Error("a stranger's points: no error")
	}
}

// A source that reads otherwise the second time is an error.
func TestReadingsDiffer(t *testing.T) {
	one := &file{artifact: "a", run: evidence.TrackedRun{ID: "r"}, series: []series{{name: "loss", points: line(3, 2)}}}
	for _, two := range []*file{
		{artifact: "a", run: one.run, series: []series{{name: "loss", points: line(3, 2, 1)}}},
		{artifact: "a", run: one.run, series: []series{{name: "loss", points: line(3, 2)}, {name: "more", points: line(1)}}},
		{artifact: "b", run: one.run, series: one.series},
	} {
		p := NewPlanner(PlanOptions{})
		one.read(p)
		if err := p.Again(nil); err != nil {
			t.Fatal(err)
		}
		two.read(p)
		if _, err := p.Plan(); err == nil {
			t.Errorf("%+v: no error", two)
		}
	}
}

func TestNotes(t *testing.T) {
	hostile := "lo`ss\n# x <script>" + strings.Repeat("€", 300)
	var many []series
	for i := range 300 {
		s := series{name: fmt.Sprintf("%s %d", strings.Repeat("<", 100), i)}
		for j := range 200 {
			v := 1.0
			if j%2 == 1 {
				v = nan
			}
			s.points = append(s.points, point{int64(j), 0, v})
		}
		many = append(many, s)
	}
	many = append(many, series{name: hostile, points: line(1, nan)})
	f := &file{artifact: "a", run: evidence.TrackedRun{ID: "a/b?c", Status: evidence.RunOpen, StatusSaid: "RUNNING"}, series: many}
	run := planOf(t, PlanOptions{Marker: strings.Repeat("<m>", 60)}, f).Runs()[0]
	if len(run.JSON) > 4000 || !json.Valid([]byte(run.JSON)) {
		t.Errorf("%d bytes of JSON: %s", len(run.JSON), run.JSON)
	}
	if strings.ContainsAny(run.Short, "\n\r") {
		t.Errorf("two lines: %q", run.Short)
	}
	if strings.Contains(run.Note, "\n# x") {
		t.Errorf("a name makes Markdown: %s", run.Note)
	}
	if !strings.HasPrefix(run.NewID, "a_b_c-fx") || run.Status != evidence.RunFailed {
		t.Errorf("id %q, status %q", run.NewID, run.Status)
	}
	if alive := planOf(t, PlanOptions{Alive: true}, f).Runs()[0]; alive.Status != "" {
		t.Errorf("a run that may be alive is said to be %s", alive.Status)
	}
	f = &file{artifact: "a", run: evidence.TrackedRun{ID: "r"}, series: []series{{name: "train/loss", points: line(3, 2, nan, inf, 1)}}}
	if got, want := planOf(t, PlanOptions{}, f).Runs()[0].Short, "inquest: repaired copy; train/loss failed at steps 30 to 40 (1 NaN, 1 +Inf); taken out; last clean step 20; finite again at the end"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// A series that alternates for ever costs what is bounded.
func TestPlanBounded(t *testing.T) {
	p := NewPlanner(PlanOptions{})
	run := &evidence.TrackedRun{ID: "r", Artifact: "a"}
	track := &evidence.Track{Name: "loss"}
	run.Tracks = []*evidence.Track{track}
	const n = 400_000
	pass := func(run *evidence.TrackedRun, track *evidence.Track) {
		for i := range int64(n) {
			v := 1.0
			if i%2 == 1 {
				v = nan
			}
			p.Point(run, track, &evidence.Point{Step: i, Value: v}, 0)
		}
		p.TrackedRun(run)
	}
	pass(run, track)
	if err := p.Again(nil); err != nil {
		t.Fatal(err)
	}
	second := *track
	pass(&evidence.TrackedRun{ID: "r", Artifact: "a", Tracks: []*evidence.Track{&second}}, &second)
	plan, err := p.Plan()
	if err != nil {
		t.Fatal(err)
	}
	s := plan.Runs()[0].Series("a", "loss")
	if len(s.failed) > maxStretches {
		t.Errorf("%d segments", len(s.failed))
	}
	var points int64
	for i := range s.failed {
		points += s.failed[i].points()
	}
	if points != n/2 {
		t.Errorf("%d points in the segments, want %d", points, n/2)
	}
}

// TestLasting: the first affected step, and the one from which on a run is affected to its end.
func TestLasting(t *testing.T) {
	id := evidence.TrackedRun{ID: "r1"}
	one := func(points ...point) []*file {
		return []*file{{artifact: "a", run: id, series: []series{{name: "loss", points: points}}}}
	}
	for _, c := range []struct {
		name                string
		files               []*file
		clean, first, since int64
		words               string
	}{
		{"nothing", one(line(1, 2)...), evidence.None, evidence.None, evidence.None, ""},
		{"once", one(line(1, nan, 2)...), 10, 20, evidence.None, "finite again at the end"},
		{"to the end", one(line(1, nan, nan)...), 10, 20, 20, ""},
		{"once, then to the end", one(line(1, nan, 2, nan, inf)...), 10, 20, 40, "first affected at step 20, to the end from step 40 on"},
		{"two series", []*file{{artifact: "a", run: id, series: []series{{name: "grad_norm", points: line(1, nan, 2, 2)}, {name: "loss", points: line(1, 2, 3, nan)}}}}, 10, 20, 40,
			"first affected at step 20, to the end from step 40 on"},
		{"resumed within a failure", one(point{10, 1, 1}, point{20, 2, nan}, point{30, 3, nan}, point{20, 4, nan}, point{30, 5, nan}), 10, 20, 20, ""},
		{"resumed earlier, still failing", one(point{10, 1, 1}, point{30, 2, nan}, point{20, 3, nan}), 10, 20, 20, ""},
		{"healed in another file", []*file{
			{artifact: "b", run: id, series: []series{{name: "loss", points: []point{{20, 2011, 5}, {30, 2012, 6}}}}},
			{artifact: "a", run: id, series: []series{{name: "loss", points: line(1, 2, nan, nan)}}}}, 20, 30, evidence.None, "finite again at the end"},
	} {
		t.Run(c.name, func(t *testing.T) {
			run := planOf(t, PlanOptions{}, c.files...).Runs()[0]
			if run.Clean != c.clean || run.First != c.first || run.Since != c.since || run.lasting() != c.words {
				t.Errorf("clean %d, first %d, since %d, %q; want %d, %d, %d, %q", run.Clean, run.First, run.Since, run.lasting(), c.clean, c.first, c.since, c.words)
			}
		})
	}
}
