package tracker

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/inquest-dev/inquest/internal/evidence"
	"github.com/inquest-dev/inquest/internal/incident"
	"github.com/inquest-dev/inquest/internal/reader"
)

// A book takes what a recording gives.
type book struct {
	*reader.Collector
	runs []*evidence.TrackedRun
}

func (b *book) Series(k evidence.SeriesKey) *evidence.Series { return evidence.NewDense(k, 4096) }
func (b *book) TrackedRun(r *evidence.TrackedRun)            { b.runs = append(b.runs, r) }

// record makes a run as a reader does.
func record(tracker, folder, file string, fn func(*reader.Recording)) *evidence.TrackedRun {
	b := &book{Collector: reader.NewCollector()}
	r := reader.NewRecording(b, tracker, folder+"/"+file)
	r.Run.Folder = folder
	fn(r)
	r.Close()
	return b.runs[0]
}

// began is when the tests' runs begin, 2026-08-01 10:00:00 UTC, in seconds since 1970.
const began = 1785578400.0

// log adds values of a series, one a second from the second of the first step on.
func log(r *reader.Recording, name string, first, stride int64, values ...float64) {
	t := r.Track(name, false, values[0])
	for i, v := range values {
		step := first + int64(i)*stride
		t.Add(step, began+float64(step), v, reader.Place{Line: int64(i + 1), Offset: int64(i) * 40, Length: 40})
	}
}

// falling are n values of a loss by step.
func falling(first, stride int64, n int) (out []float64) {
	for i := range n {
		out = append(out, 8/math.Sqrt(float64(first+int64(i)*stride+1)))
	}
	return out
}

var nan = math.NaN()

func onset(o *incident.Onset) string {
	if o == nil {
		return "none"
	}
	s := fmt.Sprintf("%s %v at %s", o.Series, float64(o.At.Value), step(o.At.Step))
	if o.Before != nil {
		s += fmt.Sprintf(" after %.4g at %s", float64(o.Before.Value), step(o.Before.Step))
	}
	return s + fmt.Sprintf(" every %d", o.Stride)
}

func step(n *int64) string {
	if n == nil {
		return "?"
	}
	return fmt.Sprint(*n)
}

func TestOneFile(t *testing.T) {
	r := record("tensorboard", "runs/a", "events.out.tfevents.1.h.7.0", func(r *reader.Recording) {
		log(r, "train/loss", 10, 10, append(falling(10, 10, 6), nan, nan, math.Inf(1))...)
		log(r, "train/grad_norm", 10, 10, 1, 2, 3, 4, 5, math.Inf(1), nan, nan, nan)
		log(r, "accuracy", 10, 10, .1, .2, .3)
		log(r, "train/learning_rate", 10, 10, 1e-3, 1e-3, nan)
	})
	got := Show(Merge([]*evidence.TrackedRun{r}), Options{Points: 100, Now: time.Unix(int64(began)+200, 0)})
	if len(got) != 1 {
		t.Fatalf("%d runs", len(got))
	}
	x := got[0]
	var names []string
	for _, s := range x.Series {
		names = append(names, s.Name+"/"+s.Meaning)
	}
	if s := strings.Join(names, " "); s != "train/loss/loss train/grad_norm/grad_norm accuracy/ train/learning_rate/lr" {
		t.Errorf("series %s", s)
	}
	if s := onset(x.First); s != "train/grad_norm +Inf at 60 after 5 at 50 every 10" {
		t.Errorf("first %s", s)
	}
	if s := onset(x.Series[0].Bad); s != "train/loss NaN at 70 after 1.024 at 60 every 10" {
		t.Errorf("loss %s", s)
	}
	if *x.Series[0].Bad.At.Time != "2026-08-01T10:01:10.000000Z" || *x.Series[0].Bad.Before.Time != "2026-08-01T10:01:00.000000Z" {
		t.Errorf("times %s, %s", *x.Series[0].Bad.At.Time, *x.Series[0].Bad.Before.Time)
	}
	if x.Series[0].Later != nil || x.Series[0].Recovers || x.Series[0].NaN != 2 || x.Series[0].PosInf != 1 || len(x.Series[0].Points) != 9 {
		t.Errorf("loss %+v", x.Series[0])
	}
	if x.Status != "unknown" || !strings.Contains(x.Basis, "1m50s old, within the 10m of --stale, so it may be alive") {
		t.Errorf("%s: %s", x.Status, x.Basis)
	}
	if len(x.Resumes) != 0 || *x.Newest != "2026-08-01T10:01:30.000000Z" {
		t.Errorf("resumes %v, newest %s", x.Resumes, *x.Newest)
	}
}

// TestResume has a run that turns NaN, is killed and resumed before that, in the same file.
func TestResume(t *testing.T) {
	r := record("csv", "out", "log.csv", func(r *reader.Recording) {
		x := r.Track("loss", false, 1)
		n := int64(0)
		add := func(step int64, v float64) {
			n++
			x.Add(step, 0, v, reader.Place{Line: n})
		}
		for s := int64(1); s <= 50; s++ {
			if s >= 40 {
				add(s, nan)
			} else {
				add(s, float64(s))
			}
		}
		for s := int64(31); s <= 60; s++ {
			if s >= 55 {
				add(s, nan)
			} else {
				add(s, float64(100+s))
			}
		}
	})
	x := Show(Merge([]*evidence.TrackedRun{r}), Options{Points: 1000})[0]
	s := x.Series[0]
	if got := onset(s.Bad) + "; " + onset(s.Later); got != "loss NaN at 40 after 39 at 39 every 1; loss NaN at 55 after 154 at 54 every 1" {
		t.Error(got)
	}
	if len(s.Segments) != 2 || step(s.Segments[0].Superseded) != "31" || s.Segments[1].Superseded != nil || !s.Recovers {
		t.Errorf("segments %+v, recovers %v", s.Segments, s.Recovers)
	}
	if len(x.Resumes) != 1 || step(x.Resumes[0].From) != "31" || step(x.Resumes[0].After) != "50" || x.Resumes[0].Basis != "steps go back within log.csv" || x.Resumes[0].Span.Record != 51 {
		t.Errorf("resumes %+v", x.Resumes)
	}

	// A failed stretch that was written again has no onset in the later view; before it stands
	// what was finite in an earlier one.
	r = record("csv", "out", "log.csv", func(r *reader.Recording) {
		log(r, "loss", 1, 1, 1, 2, 3, 4, nan, nan)
		log(r, "loss", 4, 1, nan, 5, 6, 7)
	})
	s = Show(Merge([]*evidence.TrackedRun{r}), Options{})[0].Series[0]
	if got := onset(s.Bad) + "; " + onset(s.Later); got != "loss NaN at 5 after 4 at 4 every 1; loss NaN at 4 after 3 at 3 every 1" {
		t.Error(got)
	}
	if len(s.Points) != 0 {
		t.Errorf("%d points, none were asked for", len(s.Points))
	}
	r = record("csv", "out", "log.csv", func(r *reader.Recording) {
		log(r, "loss", 1, 1, 1, 2, 3, 4, nan, nan)
		log(r, "loss", 4, 1, 4, 5, 6, 7)
	})
	s = Show(Merge([]*evidence.TrackedRun{r}), Options{})[0].Series[0]
	if got := onset(s.Bad) + "; " + onset(s.Later); got != "loss NaN at 5 after 4 at 4 every 1; none" {
		t.Error(got)
	}
}

// TestFiles merges files of one run: of one process, of a process that went on, of two at
// the same time.
func TestFiles(t *testing.T) {
	file := func(name, writer string, first int64, values ...float64) *evidence.TrackedRun {
		return record("tensorboard", "runs/a", name, func(r *reader.Recording) {
			r.Run.Writer = writer
			if len(values) > 0 {
				log(r, "loss", first, 1, values...)
			}
		})
	}
	sum := func(runs ...*evidence.TrackedRun) string {
		var out []string
		for _, x := range Show(Merge(runs), Options{Points: 100}) {
			s := fmt.Sprintf("[%s] %d files %d points", x.Writer, len(x.Files), x.Series[0].Count)
			for _, r := range x.Resumes {
				s += fmt.Sprintf(", from %s after %s: %s", step(r.From), step(r.After), r.Basis)
			}
			out = append(out, s)
		}
		return strings.Join(out, "; ")
	}
	for _, c := range []struct{ name, got, want string }{
		{"one process, two files", sum(file("e.1", "h.7", 1, 1, 2, 3), file("e.2", "h.7", 4, 4, 5)), "[] 2 files 5 points"},
		{"out of order", sum(file("e.2", "h.7", 4, 4, 5), file("e.1", "h.7", 1, 1, 2, 3)), "[] 2 files 5 points"},
		{"another process", sum(file("e.1", "h.7", 1, 1, 2, 3), file("e.2", "h.9", 4, 4, 5)), "[] 2 files 5 points, from 4 after 3: e.2 is written by another process, h.9"},
		{"at the same time", sum(file("e.1", "h.7", 1, 1, 2, 3), file("e.2", "g.9", 2, 4, 5)), "[g.9] 1 files 2 points; [h.7] 1 files 3 points"},
		{"one that logs nothing", sum(file("e.1", "h.7", 1, 1, 2, 3), file("e.2", "g.9", 1)), "[] 2 files 3 points"},
		{"back in a new file", sum(file("e.1", "h.7", 1, 1, 2, 3), file("e.2", "h.7", 2, 4, 5)), "[] 2 files 5 points, from 2 after 3: steps go back in a new file, e.2"},
	} {
		if c.got != c.want {
			t.Errorf("%s: got %s, want %s", c.name, c.got, c.want)
		}
	}
	// The later view goes across files: the file of the resumed process wrote the NaN again.
	x := Show(Merge([]*evidence.TrackedRun{file("e.1", "h.7", 1, 1, 2, nan, nan, nan), file("e.2", "h.9", 6, 8, nan)}), Options{})[0]
	if got := onset(x.Series[0].Bad); got != "loss NaN at 3 after 2 at 2 every 1" {
		t.Error(got)
	}
}

// TestFolders knows which folders are one run.
func TestFolders(t *testing.T) {
	at := func(tracker, folder, file string, first int64, n int, more ...func(*reader.Recording)) *evidence.TrackedRun {
		return record(tracker, folder, file, func(r *reader.Recording) {
			x := r.Track("loss", false, 1)
			for i, v := range falling(first, 1, n) {
				x.Add(first+int64(i), 0, v, reader.Place{Line: int64(i + 1)})
			}
			for _, fn := range more {
				fn(r)
			}
		})
	}
	id := func(id string) func(*reader.Recording) { return func(r *reader.Recording) { r.Run.ID = id } }
	sum := func(runs ...*evidence.TrackedRun) string {
		var out []string
		for _, x := range Show(Merge(runs), Options{Points: 100}) {
			s := fmt.Sprintf("%s: %d points of %d files", x.Folder, x.Series[0].Count, len(x.Files))
			for _, n := range x.Notes {
				s += "; " + n
			}
			out = append(out, s)
		}
		return strings.Join(out, "\n")
	}
	for _, c := range []struct{ name, got, want string }{
		{"checkpoints", sum(at("trainer_state", "out/checkpoint-20", "trainer_state.json", 1, 20), at("trainer_state", "out/checkpoint-100", "trainer_state.json", 1, 100), at("trainer_state", "out", "trainer_state.json", 1, 110)),
			"out: 110 points of 3 files; The history of 2 earlier files is part of that of out/trainer_state.json."},
		{"starts", sum(at("mmengine", "w/20260802_000000/vis_data", "scalars.json", 5, 9), at("mmengine", "w/20260801_000000/vis_data", "scalars.json", 1, 7)), "w: 16 points of 2 files"},
		{"two forms", sum(at("mmengine", "w/20260801_000000/vis_data", "20260801_000000.json", 1, 7), at("mmengine", "w/20260801_000000/vis_data", "scalars.json", 1, 7)),
			"w/20260801_000000/vis_data: 7 points of 2 files; w/20260801_000000/vis_data/20260801_000000.json holds what w/20260801_000000/vis_data/scalars.json holds; its points are not counted twice."},
		{"versions", sum(at("lightning", "l/version_2", "metrics.csv", 1, 50), at("lightning", "l/version_10", "metrics.csv", 51, 5)),
			"l/version_2: 50 points of 1 files\nl/version_10: 5 points of 1 files; l/version_2 lies before it; what a resumed run logged earlier stands there: it comes to step 50, and this one begins at step 51."},
		{"W&B resumed", sum(at("wandb", "wandb/run-20260801_000000-abc", "run-abc.wandb", 1, 5, id("abc")), at("wandb", "wandb/run-20260802_000000-abc", "run-abc.wandb", 6, 5, id("abc"))), "wandb/run-20260802_000000-abc: 10 points of 2 files"},
		{"two stores", sum(at("mlflow", "a", "mlflow.db", 1, 5, id("abc")), at("mlflow", "b", "mlflow.db", 1, 5, id("abc"))), "a: 5 points of 1 files\nb: 5 points of 1 files"},
		{"tables of a folder", sum(at("csv", "a", "x.csv", 1, 5), at("csv", "a", "y.csv", 1, 5)), "a: 5 points of 1 files\na: 5 points of 1 files"},
	} {
		if c.got != c.want {
			t.Errorf("%s: got\n%s\nwant\n%s", c.name, c.got, c.want)
		}
	}
	x := Show(Merge([]*evidence.TrackedRun{
		at("wandb", "wandb/run-20260801_000000-abc", "run-abc.wandb", 1, 5, id("abc"), func(r *reader.Recording) { r.Setting("batch_size", "8", evidence.Span{Artifact: "1"}) }),
		at("wandb", "wandb/run-20260802_000000-abc", "run-abc.wandb", 6, 5, id("abc"), func(r *reader.Recording) { r.Setting("batch_size", "4", evidence.Span{Artifact: "2"}) })}), Options{})[0]
	if len(x.Settings) != 1 || x.Settings[0].Value != "4" || len(x.Notes) != 1 || x.Notes[0] != "batch_size was 8, and is 4 in wandb/run-20260802_000000-abc/run-abc.wandb." {
		t.Errorf("settings %v, notes %v", x.Settings, x.Notes)
	}
	if len(x.Resumes) != 1 || x.Resumes[0].Basis != "another start goes on in wandb/run-20260802_000000-abc" {
		t.Errorf("resumes %+v", x.Resumes)
	}
}

func TestStatus(t *testing.T) {
	run := func(tracker string, s evidence.RunStatus, said string, fn func(*reader.Recording)) *Run {
		return Merge([]*evidence.TrackedRun{record(tracker, "f", "x", func(r *reader.Recording) {
			r.Run.Status, r.Run.StatusSaid = s, said
			if fn != nil {
				fn(r)
			}
		})})[0]
	}
	points := func(r *reader.Recording) { log(r, "loss", 0, 1, 1) }
	now := time.Unix(int64(began), 0).Add(3 * time.Hour)
	for _, c := range []struct {
		name string
		r    *Run
		o    Options
		dead bool
		want string
	}{
		{"exit code", run("wandb", evidence.RunFailed, "exit code 1", func(r *reader.Recording) { r.Run.HasExit, r.Run.Exit = true, 1 }), Options{}, true, "failed: Its files state the exit code 1; why it ended they do not say."},
		{"finished", run("mlflow", evidence.RunFinished, "FINISHED", nil), Options{}, true, "finished: MLflow states FINISHED, which a script that fails outside its run block gets at its exit as well; that the training was complete it does not prove."},
		{"old", run("mlflow", evidence.RunOpen, "RUNNING", points), Options{Now: now}, true, "running-or-dead: It is on record as running, and nothing in the files proves that a process is alive; its newest point is 3h old, more than the 10m of --stale, so it is taken for dead."},
		{"young", run("wandb", evidence.RunOpen, "", points), Options{Now: now, Stale: 4 * time.Hour}, false, "running-or-dead: No end is on record, and nothing in the files proves that a process is alive; its newest point is 3h old, within the 4h of --stale, so it may be alive."},
		{"by file", run("csv", evidence.RunUnknown, "", nil), Options{Now: now, Modified: map[string]time.Time{"f/x": now.Add(-90 * time.Hour)}}, true, "unknown: The format keeps no word of how a run ended; its newest file is 3 days old, more than the 10m of --stale, so it is taken for dead."},
		{"no time", run("csv", evidence.RunUnknown, "", nil), Options{Now: now}, false, "unknown: The format keeps no word of how a run ended; no point or file has a time, so whether it runs cannot be told."},
		{"no clock", run("wandb", evidence.RunOpen, "", points), Options{}, false, "running-or-dead: No end is on record, and nothing in the files proves that a process is alive; its newest point is of 2026-08-01 10:00:00Z."},
		{"ahead", run("wandb", evidence.RunOpen, "", points), Options{Now: now.Add(-4 * time.Hour)}, false, "running-or-dead: No end is on record, and nothing in the files proves that a process is alive; its newest point lies 1h ahead of this machine's clock, so its age cannot be told."},
	} {
		e := EndOf(c.r, c.o)
		if got := string(e.Status) + ": " + e.Basis; got != c.want || e.Dead != c.dead {
			t.Errorf("%s: got %s (dead %v)\nwant %s (dead %v)", c.name, got, e.Dead, c.want, c.dead)
		}
	}
}

func TestDisagreements(t *testing.T) {
	run := func(tracker string, keeps evidence.Keeps, values ...float64) *evidence.TrackedRun {
		return record(tracker, tracker, "x", func(r *reader.Recording) {
			r.Run.Keeps = keeps
			log(r, "loss", 10, 10, values...)
		})
	}
	base := falling(10, 10, 20)
	with := func(v ...float64) []float64 { return append(append([]float64{}, base...), v...) }
	float32s := func(v []float64) (out []float64) {
		for _, x := range v {
			out = append(out, float64(float32(x)))
		}
		return out
	}
	for _, c := range []struct {
		name string
		runs []*evidence.TrackedRun
		want string
	}{
		{"the same", []*evidence.TrackedRun{run("tensorboard", evidence.KeepsAll, float32s(with(nan))...), run("wandb", evidence.KeepsAll, with(nan)...)}, ""},
		{"filtered", []*evidence.TrackedRun{run("tensorboard", evidence.KeepsAll, with(nan, nan)...), run("trainer_state", evidence.Replaced, with(0, 0)...)},
			"tensorboard (tensorboard) has loss = NaN where trainer_state (trainer_state) has loss = 0, at 2 of 22 shared steps, first 210, last 220: the trainer may replace such a value before it logs to trainer_state."},
		{"filtered, and three that are not", []*evidence.TrackedRun{run("tensorboard", evidence.KeepsAll, with(nan, nan)...), run("trainer_state", evidence.Replaced, with(0, 0)...), run("jsonl", evidence.KeepsAll, with(nan, nan)...), run("wandb", evidence.KeepsAll, with(nan, nan)...)},
			"jsonl (jsonl) and 2 more (tensorboard (tensorboard), …) have loss = NaN where trainer_state (trainer_state) has loss = 0, at 2 of 22 shared steps, first 210, last 220: the trainer may replace such a value before it logs to trainer_state."},
		{"clamped", []*evidence.TrackedRun{run("wandb", evidence.KeepsAll, with(math.Inf(1))...), run("mlflow", evidence.Clamped, with(math.MaxFloat64)...)},
			"wandb (wandb) has loss = +Inf where mlflow (mlflow) has loss = 1.7976931348623157e+308, at step 210: mlflow stores the largest finite number for an infinity."},
		{"dropped", []*evidence.TrackedRun{run("wandb", evidence.KeepsAll, with(nan, nan, nan)...), run("neptune", evidence.Dropped, with()...)},
			"wandb (wandb) has loss = NaN at step 210, and neptune (neptune) has no value at 3 such steps: neptune never stores what is not finite.\nwandb (wandb) comes to step 230, and neptune (neptune) only to step 200; what a process has not yet written to disk is lost when it is killed."},
		{"unexplained", []*evidence.TrackedRun{run("wandb", evidence.KeepsAll, with(1)...), run("tensorboard", evidence.KeepsAll, with(2)...)},
			"tensorboard (tensorboard) has loss = 2 where wandb (wandb) has loss = 1, at step 210: what the two keep of a value does not explain it."},
		{"two runs", []*evidence.TrackedRun{run("wandb", evidence.KeepsAll, with(nan)...), run("tensorboard", evidence.KeepsAll, falling(500, 3, 21)...)}, ""},
	} {
		var got []string
		for _, s := range Disagreements(Merge(c.runs)) {
			got = append(got, s.Text)
		}
		if strings.Join(got, "\n") != c.want {
			t.Errorf("%s: got\n%s\nwant\n%s", c.name, strings.Join(got, "\n"), c.want)
		}
	}
}

func TestGlob(t *testing.T) {
	for _, c := range []struct {
		pattern, name string
		want          bool
	}{{"", "x", true}, {"*loss*", "train/loss", true}, {"loss", "train/loss", false}, {"gpu.?", "gpu.0", true}, {"gpu.?", "gpuX0", false}, {"a[b", "a[b", true}, {"*", "a\nb", true}} {
		if got := Glob(c.pattern)(c.name); got != c.want {
			t.Errorf("%q %q: got %v", c.pattern, c.name, got)
		}
	}
}

// TestRepaired: the file that marks a repaired copy is part of the run that it marks.
func TestRepaired(t *testing.T) {
	at := func(writer, name string) *evidence.TrackedRun {
		return record("tensorboard", "runs/a", "events.out.tfevents.1."+writer+".0", func(r *reader.Recording) {
			r.Run.Writer = writer
			log(r, name, 10, 10, falling(10, 10, 6)...)
		})
	}
	runs := Merge([]*evidence.TrackedRun{at("h.7", "loss"), at("inquest.0", "inquest/failed_segment")})
	if len(runs) != 1 || len(runs[0].Parts) != 2 || runs[0].Writer != "" || !strings.Contains(strings.Join(runs[0].notes, " "), "repaired copy") {
		t.Errorf("%d runs: %+v", len(runs), runs[0])
	}
	if runs = Merge([]*evidence.TrackedRun{at("inquest.0", "inquest/failed_segment")}); len(runs) != 1 {
		t.Errorf("%d runs", len(runs))
	}
}
