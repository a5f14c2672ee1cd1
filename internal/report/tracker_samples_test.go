package report

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/inquest-dev/inquest/internal/evidence"
	"github.com/inquest-dev/inquest/internal/incident"
)

// A seriesOfSteps builds one series of a tracked run from values by step; what the fields
// of incident.TrackedSeries say is counted from them, the simplest way there is.
type seriesOfSteps struct {
	name, meaning, unit, axis string
	system                    bool
	began                     time.Time // of step 0; zero: the tracker keeps no times
	every                     time.Duration
	file                      string
	steps                     []int64
	values                    []float64
}

// run appends values of f at steps from to to.
func (b *seriesOfSteps) run(from, to, by int64, f func(step float64) float64) *seriesOfSteps {
	for step := from; step <= to; step += by {
		b.steps, b.values = append(b.steps, step), append(b.values, f(float64(step)))
	}
	return b
}

func (b *seriesOfSteps) point(i int) incident.TrackedPoint {
	p := incident.TrackedPoint{Step: ptr(b.steps[i]), Value: incident.Number(b.values[i])}
	if !b.began.IsZero() {
		p.Time = ptr(b.began.Add(time.Duration(i) * b.every).Format(time.RFC3339Nano))
	}
	return p
}

func (b *seriesOfSteps) spanned(i int) *incident.TrackedPoint {
	p := b.point(i)
	p.Span = &evidence.Span{Kind: "record", Artifact: b.file, Offset: int64(100 + 32*i), Record: int64(i + 1)}
	return &p
}

func (b *seriesOfSteps) build() incident.TrackedSeries {
	s := incident.TrackedSeries{Name: b.name, Meaning: b.meaning, Unit: b.unit, System: b.system, Axis: b.axis, Count: int64(len(b.steps)), Why: []string{}, Doubtful: []incident.Doubt{}, Segments: []incident.Segment{}, Points: []incident.TrackedPoint{}}
	if s.Axis == "" {
		s.Axis = "step"
	}
	least, most, good := -1, -1, -1
	for i, v := range b.values {
		s.Points = append(s.Points, b.point(i))
		if i == 0 || b.steps[i] <= b.steps[i-1] {
			s.Segments = append(s.Segments, incident.Segment{First: b.point(i), File: b.file})
		} else {
			s.Stride = max(s.Stride, b.steps[i]-b.steps[i-1])
		}
		at := &s.Segments[len(s.Segments)-1]
		at.Last = b.point(i)
		at.Count++
		switch {
		case math.IsNaN(v):
			s.NaN++
		case math.IsInf(v, 1):
			s.PosInf++
		case math.IsInf(v, -1):
			s.NegInf++
		default:
			if v == 0 {
				s.Zeros++
			}
			if least < 0 || v < b.values[least] {
				least = i
			}
			if most < 0 || v > b.values[most] {
				most = i
			}
			s.Recovers = s.Recovers || s.Bad != nil
			good = i
			continue
		}
		at.Nonfinite++
		if s.Bad == nil {
			s.Bad = &incident.Onset{Series: b.name, At: *b.spanned(i)}
			if good >= 0 {
				s.Bad.Before = b.spanned(good)
			}
		}
	}
	if s.Bad != nil {
		s.Bad.Stride = s.Stride
	}
	for i := range s.Segments {
		at := &s.Segments[i]
		at.First.Value, at.Last.Value = 0, 0
		for _, next := range s.Segments[i+1:] {
			if *next.First.Step <= *at.Last.Step && (at.Superseded == nil || *next.First.Step < *at.Superseded) {
				at.Superseded = ptr(max(*next.First.Step, *at.First.Step))
			}
		}
	}
	if n := len(b.steps); n > 0 {
		s.First, s.Last = b.spanned(0), b.spanned(n-1)
	}
	if least >= 0 {
		s.Min, s.Max = b.spanned(least), b.spanned(most)
	}
	return s
}

var trackedSince = time.Date(2026, 3, 2, 8, 30, 0, 0, time.UTC)

// A series of every kind: step s at 2 s each.
func tracked(name, meaning string) *seriesOfSteps {
	return &seriesOfSteps{name: name, meaning: meaning, began: trackedSince, every: 20 * time.Second, file: "run-k3v9/run-k3v9.wandb"}
}

// falling is a loss that goes down with some noise.
func falling(s float64) float64 { return 1.6 + 9*math.Exp(-s/90) + 0.08*math.Sin(s*1.7) }

// until is f, then NaN from a step on.
func until(step float64, f func(float64) float64) func(float64) float64 {
	return func(s float64) float64 {
		if s >= step {
			return math.NaN()
		}
		return f(s)
	}
}

func emptyRun(tracker, id string) incident.TrackedRun {
	return incident.TrackedRun{Tracker: tracker, ID: id, Folder: "runs/" + id, Status: "unknown", Keeps: "kept", Cannot: []string{}, Settings: []incident.RunSetting{}, Series: []incident.TrackedSeries{}, Resumes: []incident.Resume{},
		Damage: []incident.RunDamage{}, Notes: []string{}, Files: []string{}}
}

func trackerOf(runs ...incident.TrackedRun) *incident.Tracker {
	t := &incident.Tracker{Schema: incident.TrackerSchema, Tool: incident.Tool{Name: "inquest", Version: "source"}, Runs: []incident.TrackedRun{}, Disagree: []incident.Statement{}, Limits: []incident.Statement{}, Artifacts: []incident.Artifact{}, NotFound: []string{}}
	t.Runs = append(t.Runs, runs...)
	for i := range t.Runs {
		for _, f := range t.Runs[i].Files {
			t.Artifacts = append(t.Artifacts, incident.Artifact{Path: f, Kind: t.Runs[i].Tracker, Size: 1 << 16, Fate: "read"})
		}
	}
	return t
}

// brokenRun is a run of W&B whose loss became NaN, that was killed, and that went on
// recording.
func brokenRun() incident.TrackedRun {
	r := emptyRun("wandb", "k3v9")
	r.Name, r.Project, r.Status, r.Basis = "llm-7b-bf16", "pretrain", "running-or-dead", "the log has no exit record: the process was killed, or it still runs; the newest record is 3 h older than the file next to it"
	r.Started, r.Newest = ptr("2026-03-02T08:29:41Z"), ptr("2026-03-02T08:46:20Z")
	loss := tracked("train/loss", "loss").run(0, 500, 10, until(312, falling)).build()
	grad := tracked("train/grad_norm", "grad_norm").run(0, 500, 10, func(s float64) float64 {
		switch {
		case s >= 310:
			return math.NaN()
		case s == 300:
			return math.Inf(1)
		}
		return 0.8 + math.Exp((s-260)/14) + 0.1*math.Cos(s)
	}).build()
	lr := tracked("train/learning_rate", "learning_rate").run(0, 500, 10, func(s float64) float64 { return 3e-4 * math.Min(1, s/100) }).build()
	mem := tracked("gpu.0.memoryAllocatedBytes", "memory_used")
	mem.axis, mem.system, mem.unit = "own", true, "bytes"
	gpu := mem.run(0, 40, 1, func(s float64) float64 { return 60e9 + 5e8*s }).build()
	r.Series = []incident.TrackedSeries{loss, grad, lr, gpu}
	r.First = grad.Bad
	for i, s := range [][2]string{{"batch_size", "32"}, {"optimizer.lr", "0.0003"}, {"precision", "bf16"}} {
		r.Settings = append(r.Settings, incident.RunSetting{Name: s[0], Value: s[1], Span: evidence.Span{Kind: "text", Artifact: "run-k3v9/files/config.yaml", Line: int64(i + 1)}})
	}
	r.Damage = []incident.RunDamage{{Kind: "truncated-tail", Text: "the last record announces 512 bytes, 131 are there", Bytes: 131, Records: 1, Span: evidence.Span{Kind: "record", Artifact: "run-k3v9/run-k3v9.wandb", Offset: 70000, Record: 812}}}
	r.Notes = []string{"its TensorBoard folder runs/a is mirrored in it"}
	r.Lines = 4210
	r.Files = []string{"run-k3v9/run-k3v9.wandb", "run-k3v9/files/config.yaml", "run-k3v9/files/output.log"}
	return r
}

// filteredRun is one of the Trainer: its loss is 0 where it was not finite.
func filteredRun() incident.TrackedRun {
	r := emptyRun("trainer_state", "")
	r.Folder, r.Keeps, r.Basis = "out", "replaced", "the format has no status"
	loss := tracked("loss", "loss")
	loss.began, loss.file = time.Time{}, "out/trainer_state.json"
	l := loss.run(10, 400, 10, func(s float64) float64 {
		if s > 200 {
			return 0
		}
		return falling(s)
	}).build()
	l.Suspects, l.Why = 20, []string{"grad_norm is not finite in the same rows, and the loss is exactly 0: every step of the window was filtered"}
	l.Doubtful = []incident.Doubt{{First: ptr(int64(210)), Last: ptr(int64(400)), Count: 20, Reason: "loss is exactly 0 while grad_norm is not finite"}}
	r.Series = []incident.TrackedSeries{l}
	r.Cannot = []string{"A loss that was not finite: logging_nan_inf_filter puts the running average, or 0, in its place", "Times: the file states none"}
	r.Files = []string{"out/trainer_state.json"}
	return r
}

// resumedRun was written three times over: it fell back twice, and what it wrote before
// is superseded.
func resumedRun() incident.TrackedRun {
	r := emptyRun("tensorboard", "")
	r.Name, r.Folder, r.Basis = "exp/a", "exp/a", "TensorBoard keeps no status"
	b := tracked("loss", "loss")
	b.file = "exp/a/events.out.tfevents.1.h.1.0"
	loss := b.run(0, 300, 5, until(260, falling)).run(200, 420, 5, func(s float64) float64 { return falling(s) + 0.3 }).run(380, 700, 5, falling).build()
	r.Series = []incident.TrackedSeries{loss}
	r.First = loss.Bad
	r.Resumes = []incident.Resume{
		{From: ptr(int64(200)), After: ptr(int64(300)), Time: ptr("2026-03-02T08:51:00Z"), Basis: "a new file begins", Span: evidence.Span{Kind: "record", Artifact: "exp/a/events.out.tfevents.2.h.2.0", Offset: 30, Record: 2}},
		{From: ptr(int64(380)), After: ptr(int64(420)), Basis: "a SessionLog START", Span: evidence.Span{Kind: "record", Artifact: "exp/a/events.out.tfevents.3.h.3.0", Offset: 30, Record: 2}},
	}
	r.Files = []string{"exp/a/events.out.tfevents.1.h.1.0", "exp/a/events.out.tfevents.2.h.2.0", "exp/a/events.out.tfevents.3.h.3.0"}
	return r
}

// finishedRun is in order.
func finishedRun() incident.TrackedRun {
	r := emptyRun("mlflow", "0f3a")
	r.Name, r.Project, r.Status, r.Said, r.Basis, r.Keeps = "baseline", "7b", "finished", "FINISHED", "the program said so; a script that fails outside its run is marked so too", "clamped"
	r.Series = []incident.TrackedSeries{tracked("loss", "loss").run(0, 1000, 25, falling).build(), tracked("val_loss", "eval_loss").run(0, 1000, 250, falling).build()}
	r.Files = []string{"mlflow.db"}
	return r
}

// trackerShapes are results of many shapes.
func trackerShapes() map[string]*incident.Tracker {
	only := func(name string, steps []int64, values []float64) *incident.Tracker {
		r := emptyRun("jsonl", name)
		b := tracked("loss", "loss")
		b.steps, b.values = steps, values
		s := b.build()
		r.Series, r.First = []incident.TrackedSeries{s}, s.Bad
		return trackerOf(r)
	}
	nan, inf := math.NaN(), math.Inf(1)
	many := emptyRun("csv", "wide")
	for i := range 4096 {
		many.Series = append(many.Series, tracked(fmt.Sprintf("layer.%d.norm", i), "").run(0, 30, 10, func(s float64) float64 { return s + float64(i) }).build())
	}
	many.MoreSeries = 77
	long := brokenRun()
	long.Name, long.Folder = strings.Repeat("very-long-", 60), strings.Repeat("deep/", 200)+"run"
	long.Series[0].Name = strings.Repeat("metrics/train/", 40) + "loss"
	long.Files = []string{long.Folder + "/" + strings.Repeat("f", 250)}
	empty := emptyRun("", "")
	empty.Folder, empty.Status, empty.Keeps = "", "", ""
	nameless := tracked("", "").run(0, 3, 1, func(s float64) float64 { return s })
	nameless.file = ""
	empty.Series = []incident.TrackedSeries{nameless.build()}
	untold := brokenRun()
	for i := range untold.Series {
		for j := range untold.Series[i].Points {
			untold.Series[i].Points[j].Step, untold.Series[i].Points[j].Time = nil, nil
		}
	}
	gone := trackerOf()
	gone.NotFound = []string{"gone/run"}
	several := trackerOf(brokenRun(), resumedRun(), filteredRun(), finishedRun())
	several.Disagree = []incident.Statement{{Text: "W&B has NaN for loss at step 320, TensorBoard 1.71", Spans: []evidence.Span{{Kind: "record", Artifact: "run-k3v9/run-k3v9.wandb", Offset: 4000, Record: 60}}}}
	several.Limits = []incident.Statement{{Text: "2 of 9 paths were passed over", Spans: []evidence.Span{}}}
	return map[string]*incident.Tracker{
		"broken": trackerOf(brokenRun()), "filtered": trackerOf(filteredRun()), "resumed": trackerOf(resumedRun()), "finished": trackerOf(finishedRun()), "several": several,
		"nothing": trackerOf(), "gone": gone, "no-series": trackerOf(emptyRun("wandb", "x1")), "empty-texts": trackerOf(empty), "no-places": trackerOf(untold),
		"one-point": only("one", []int64{7}, []float64{2.5}), "one-nan": only("one", []int64{7}, []float64{nan}), "all-nan": only("nan", []int64{0, 1, 2, 3}, []float64{nan, inf, -inf, nan}),
		"huge": only("huge", []int64{0, 1, 2, 3, 4}, []float64{1e300, -1e300, math.MaxFloat64, -math.MaxFloat64, 1e-300}), "zeros": only("zero", []int64{0, 1, 2}, []float64{0, 0, 0}),
		"steep": only("steep", []int64{0, 1, 2, 3, 4}, []float64{2, 3, 1e3, 1e30, inf}), "far": only("far", []int64{math.MinInt64, 0, math.MaxInt64}, []float64{1, nan, 2}), "same-step": only("same", []int64{5, 5, 5, 5}, []float64{1, 2, nan, 3}),
		"wide": trackerOf(many), "long": trackerOf(long),
	}
}

// alignments are of many shapes.
func alignments() map[string]*incident.Alignment {
	base := func() *incident.Alignment {
		return &incident.Alignment{Schema: incident.AlignmentSchema, Tool: incident.Tool{Name: "inquest", Version: "source"}, Runs: []incident.TrackedRun{}, Logs: []string{}, Clocks: []incident.RunClock{}, Order: incident.RunOrder{Answer: "neither"},
			After: []incident.AfterDeath{}, Rows: []incident.AlignedRow{}, Disagree: []incident.Statement{}, Limits: []incident.Statement{}, Artifacts: []incident.Artifact{}, NotFound: []string{}}
	}
	line := func(n int64) evidence.Span {
		return evidence.Span{Kind: "text", Artifact: "job/slurm-812.out", Line: n, Offset: 60 * n, Length: 50}
	}
	at := func(s string) *string { return &s }
	step := func(n int64) *int64 { return &n }
	full := base()
	full.Runs = []incident.TrackedRun{brokenRun(), resumedRun()}
	full.Logs = []string{"job/slurm-812.out"}
	full.Clocks = []incident.RunClock{
		{Run: 0, Log: "job/slurm-812.out", Offset: 7200.4, Bound: 0.6, Pairs: 31, Shared: 33, Means: "time zone", Applied: true, Basis: "the median of 31 differences; within 1 s of two hours"},
		{Run: 1, Log: "job/slurm-812.out", Pairs: 0, Shared: 0, Means: "unknown", Basis: "the log prints no step that the run has"},
	}
	first := full.Runs[0].First
	full.Order = incident.RunOrder{Nonfinite: first, Run: ptr(0), Memory: &incident.Statement{Text: "CUDA out of memory at step 412", Spans: []evidence.Span{line(512)}}, Answer: "nonfinite first", Basis: "step: 300 is before 412, and both count the same steps (31 shared)"}
	full.After = []incident.AfterDeath{{Run: 0, Points: 8, First: incident.TrackedPoint{Step: step(420), Time: at("2026-03-02T08:44:00Z"), Value: incident.Number(math.NaN())}, Death: incident.Statement{Text: "The log's last word, a traceback of rank 3", Spans: []evidence.Span{line(540)}},
		Basis: "the run's times less the clock's offset", Status: "running"}}
	add := func(t, source, text, kind string, n int64, sp evidence.Span) {
		row := incident.AlignedRow{Source: source, Text: text, Kind: kind, Span: sp}
		if t != "" {
			row.Time = at(t)
		}
		if n >= 0 {
			row.Step = step(n)
		}
		full.Rows = append(full.Rows, row)
	}
	add("2026-03-02T08:29:41Z", "W&B llm-7b-bf16", "the run begins", "start", -1, line(1))
	add("2026-03-02T08:30:00Z", "log", "step 0, loss 10.6", "step", 0, line(44))
	add("2026-03-02T08:40:00Z", "W&B llm-7b-bf16", "train/grad_norm is +Inf", "nonfinite", 300, line(300))
	add("2026-03-02T08:40:40Z", "W&B llm-7b-bf16", "train/loss is NaN", "nonfinite", 320, line(320))
	add("2026-03-02T08:43:30Z", "log", "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB", "memory", 412, line(512))
	add("2026-03-02T08:43:31Z", "log", "rank 3 ended with exit code 1", "end", -1, line(540))
	add("2026-03-02T08:44:00Z", "W&B llm-7b-bf16", "8 points after the end, to step 500", "after-death", 420, line(541))
	full.Disagree = []incident.Statement{{Text: "W&B has NaN for loss at step 320, TensorBoard 1.71", Spans: []evidence.Span{line(7)}}}
	full.Artifacts = append(trackerOf(full.Runs...).Artifacts, incident.Artifact{Path: "job/slurm-812.out", Kind: "ranklog", Size: 4 << 20, Fate: "read"})
	open := base()
	open.Runs, open.Logs = []incident.TrackedRun{filteredRun()}, []string{"log.txt"}
	open.Order = incident.RunOrder{Memory: &incident.Statement{Text: "CUDA out of memory", Spans: []evidence.Span{line(9)}}, Answer: "unknown", Basis: "the Trainer hides losses that are not finite", Missing: "a run with --logging_nan_inf_filter false"}
	open.Rows = []incident.AlignedRow{{Source: "log", Text: "CUDA out of memory", Kind: "memory", Span: line(9)}}
	nothing := base()
	nothing.NotFound = []string{"gone"}
	return map[string]*incident.Alignment{"full": full, "open": open, "nothing": nothing}
}

// repairs are of many shapes.
func repairs() map[string]*incident.Repair {
	base := func() *incident.Repair {
		return &incident.Repair{Schema: incident.RepairSchema, Tool: incident.Tool{Name: "inquest", Version: "source"}, Format: "wandb", Source: "wandb/run-20260302_082941-k3v9", Output: "fixed", Policy: incident.RepairPolicy{Nonfinite: "drop"},
			Files: []incident.RepairFile{}, Runs: []incident.RepairedRun{}, Marker: "inquest/failed_segment", Damage: []incident.RunDamage{}, Changes: []string{}, Left: []string{}, Checks: []incident.RepairCheck{}, Undo: "Remove the folder fixed; nothing else was written."}
	}
	step := func(n int64) *int64 { return &n }
	sum := strings.Repeat("9f86d081", 8)
	full := base()
	full.Files = []incident.RepairFile{{Path: "run-k3v9.wandb", Size: 812 << 10, SHA256: sum, ModTime: "2026-03-02T08:47:01.5Z", Same: true}, {Path: "files/config.yaml", Size: 812, SHA256: sum, ModTime: "2026-03-02T08:29:42Z", Same: true}}
	full.Runs = []incident.RepairedRun{{ID: "k3v9", NewID: "k3v9-fix1", Name: "llm-7b-bf16", Status: "failed", Was: "running-or-dead", Kept: 154, Total: 194, Clean: step(290), First: step(300), Since: step(300), Series: []incident.RepairedSeries{
		{Name: "train/loss", Count: 51, Kept: 32, NaN: 19, Dropped: 19, Segments: []incident.FailedSegment{{FirstStep: step(320), LastStep: step(500), NaN: 19, Reason: "not finite"}}, Suspicious: []incident.FailedSegment{}},
		{Name: "train/grad_norm", Count: 51, Kept: 30, NaN: 20, PosInf: 1, Dropped: 21, Segments: []incident.FailedSegment{{FirstStep: step(300), LastStep: step(500), NaN: 20, PosInf: 1, Reason: "not finite"}}, Suspicious: []incident.FailedSegment{}},
		{Name: "train/aux_loss", Count: 51, Kept: 51, Segments: []incident.FailedSegment{}, Suspicious: []incident.FailedSegment{{FirstStep: step(320), LastStep: step(500), Suspect: 19, Reason: "exactly 0 while grad_norm is NaN"}}},
	}}}
	full.Changes = []string{"The run's tags have inquest:repaired", "An alert of level ERROR stands at step 300", "RunExit with exit code 1 was added"}
	full.Left = []string{"files/output.log is copied as it is", "Artifacts that the run logged are on the server, under the old id"}
	full.Checks = []incident.RepairCheck{{Name: "no value of the copy is not finite", Holds: true, Detail: "154 values read back"}, {Name: "every finite value of the source is in the copy", Holds: true, Detail: "154 of 154"}, {Name: "the accounts balance", Holds: true}}
	full.Damage = brokenRun().Damage
	failed := base()
	failed.Files = []incident.RepairFile{{Path: "mlflow.db", Size: 1 << 20, SHA256: sum, ModTime: "2026-03-02T08:47:01Z"}}
	failed.Checks = []incident.RepairCheck{{Name: "the source is unchanged", Detail: "mlflow.db is 4096 bytes longer"}}
	failed.Policy, failed.Format = incident.RepairPolicy{Nonfinite: "hold", Suspects: true, Dedupe: true, Tensors: true}, "mlflow-sqlite"
	failed.Runs = []incident.RepairedRun{{ID: "0f3a", Total: 10, Kept: 4, Series: []incident.RepairedSeries{{Name: "loss", Count: 10, Kept: 4, NaN: 3, Held: 3, Superseded: 3, Segments: []incident.FailedSegment{{NaN: 3}}, Suspicious: []incident.FailedSegment{}}}}, {ID: "77", Total: 3, Kept: 3, Series: []incident.RepairedSeries{}}}
	many := base()
	for i := range 300 {
		r := incident.RepairedRun{ID: fmt.Sprint("r", i), Total: 90, Kept: 60, Clean: step(int64(i)), First: step(int64(i + 1)), Since: step(int64(i + 1)), Series: []incident.RepairedSeries{}}
		for j := range 4 {
			r.Series = append(r.Series, incident.RepairedSeries{Name: fmt.Sprint("series ", j), Count: 20, Kept: 10, NaN: 10, Dropped: 10, Segments: []incident.FailedSegment{{FirstStep: step(int64(j)), LastStep: step(int64(j + 9)), NaN: 10}}, Suspicious: []incident.FailedSegment{}})
		}
		many.Runs = append(many.Runs, r)
	}
	return map[string]*incident.Repair{"full": full, "failed": failed, "many": many, "nothing": base()}
}
