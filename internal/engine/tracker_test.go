package engine_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/inquest-dev/inquest/internal/engine"
	"github.com/inquest-dev/inquest/internal/evidence"
	"github.com/inquest-dev/inquest/internal/incident"
	"github.com/inquest-dev/inquest/internal/reader"
)

// A row is what a tracker and a log have of one step.
type metricRow struct {
	step       int
	loss, grad float64
	at         time.Time // by the tracker's clock
}

var runBegan = time.Date(2026, 8, 1, 10, 0, 0, 0, time.UTC)

// rowsOf makes rows of steps, of which those from bad on are not finite.
func rowsOf(first, last, stride, bad int) (out []metricRow) {
	for s := first; s <= last; s += stride {
		r := metricRow{s, 8 / math.Sqrt(float64(s)), 1 + float64(s)/1000, runBegan.Add(time.Duration(s) * 2 * time.Second)}
		if bad > 0 && s >= bad {
			r.loss, r.grad = math.NaN(), math.NaN()
		}
		out = append(out, r)
	}
	return out
}

// jsonl writes rows as a tracker does.
func jsonl(rows []metricRow) string {
	var b strings.Builder
	for _, r := range rows {
		fmt.Fprintf(&b, "{\"step\": %d, \"loss\": %v, \"grad_norm\": %v, \"timestamp\": %.1f}\n", r.step, r.loss, r.grad, float64(r.at.UnixMilli())/1e3)
	}
	return b.String()
}

// joblog writes rows as a job's log does, on a clock that is off.
func joblog(rows []metricRow, off time.Duration) string {
	var b strings.Builder
	for _, r := range rows {
		fmt.Fprintf(&b, "%s INFO step %d loss %.4f grad_norm %.3f\n", r.at.Add(off).Format("2006-01-02 15:04:05"), r.step, r.loss, r.grad)
	}
	return b.String()
}

// oomAt is the line of a memory failure.
func oomAt(at time.Time) string {
	return at.Format("2006-01-02 15:04:05") + " ERROR torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 79.15 GiB of which 1.00 GiB is free. Including non-PyTorch memory, this process has 78.00 GiB memory in use. Of the allocated memory 70.00 GiB is allocated by PyTorch, and 5.00 GiB is reserved by PyTorch but unallocated.\n"
}

func TestTracker(t *testing.T) {
	dir := job(t, map[string]string{"a/metrics.jsonl": jsonl(rowsOf(10, 400, 10, 340)), "b/metrics.jsonl": jsonl(rowsOf(10, 200, 10, 0)), "b/job.log": joblog(rowsOf(10, 50, 10, 0), 0), "c/metrics.jsonl": ""})
	ctx := context.Background()
	got, err := engine.Tracker(ctx, options(t, dir), engine.TrackerOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if len(got.Runs) != 2 || got.Runs[0].First == nil || *got.Runs[0].First.At.Step != 340 || *got.Runs[0].First.Before.Step != 330 || got.Runs[0].First.Stride != 10 || got.Runs[1].First != nil {
		t.Errorf("%+v", got.Runs)
	}
	if len(got.Artifacts) < 2 || got.Artifacts[0].Fate != "read" || got.Artifacts[0].Recognised != 80 || got.Artifacts[0].Digest == "" {
		t.Errorf("%+v", got.Artifacts)
	}
	// One run by a pattern of its folder or name; every point, in the order of the file.
	n, bad := 0, 0
	read, err := engine.TrackerPoints(ctx, options(t, dir), engine.TrackerOptions{Run: "*a/metrics.jsonl"}, func(r *evidence.TrackedRun, x *evidence.Track, p *evidence.Point, wall float64) error {
		if wall != float64(runBegan.Unix()+2*p.Step) {
			t.Errorf("step %d at %v", p.Step, wall)
		}
		if n++; math.IsNaN(p.Value) {
			bad++
		}
		return nil
	})
	if err != nil || n != 80 || bad != 14 || len(read.Runs) != 1 {
		t.Errorf("%d points, %d not finite, %d runs, %v", n, bad, len(read.Runs), err)
	}
	stop := errors.New("no more")
	if _, err := engine.TrackerPoints(ctx, options(t, dir), engine.TrackerOptions{}, func(*evidence.TrackedRun, *evidence.Track, *evidence.Point, float64) error { return stop }); !errors.Is(err, stop) {
		t.Errorf("an error of the points' taker: %v", err)
	}
	one, err := engine.Tracker(ctx, options(t, filepath.Join(dir, "b/job.log")), engine.TrackerOptions{})
	if err != nil || len(one.Runs) != 0 || len(one.Limits) == 0 || !strings.Contains(one.Limits[0].Text, "is of no experiment tracker") {
		t.Errorf("a log: %+v, %v", one, err)
	}
	if _, err := engine.Tracker(ctx, options(t, filepath.Join(dir, "gone")), engine.TrackerOptions{}); err == nil {
		t.Error("a path that does not exist is no error")
	}
	over, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := engine.Tracker(over, options(t, dir), engine.TrackerOptions{}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	if _, err := engine.Align(over, options(t, dir), engine.TrackerOptions{}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

// TestServer reads runs from a server, alone and beside files.
func TestServer(t *testing.T) {
	server := engine.Server{Name: "http://host:5000", Kind: "mlflow", Fetch: func(ctx context.Context, s reader.Sink) error {
		r := reader.NewRecording(s, "mlflow", "http://host:5000")
		r.Run.ID, r.Run.Folder = "abc", "http://host:5000"
		r.Setting("api_key", "sk-0123456789", evidence.Span{Artifact: "http://host:5000", Quote: "sk-0123456789"})
		x := r.Track("loss", false, 1)
		for _, m := range rowsOf(10, 400, 10, 340) {
			x.Add(int64(m.step), float64(m.at.Unix()), m.loss, reader.Place{Line: int64(m.step)})
		}
		r.Close()
		return errors.New("the server went away")
	}}
	to := engine.TrackerOptions{Servers: []engine.Server{server}}
	got, err := engine.Tracker(context.Background(), options(t), to)
	if err != nil || len(got.Runs) != 1 || *got.Runs[0].First.At.Step != 340 || got.Artifacts[0].Path != "http://host:5000" || got.Artifacts[0].Fate != "partly read" || len(got.Limits) != 1 {
		t.Errorf("%+v, %v", got, err)
	}
	if s := got.Runs[0].Settings; len(s) != 1 || s[0].Value != "[masked]" || s[0].Span.Quote != "" {
		t.Errorf("settings %+v", s)
	}
	at := runBegan.Add(802 * time.Second)
	a, err := engine.Align(context.Background(), options(t, job(t, map[string]string{"job.log": joblog(rowsOf(10, 400, 10, 340), 0) + oomAt(at)})), to)
	if err != nil || len(a.Clocks) != 1 || !a.Clocks[0].Applied || a.Order.Answer != "nonfinite first" {
		t.Errorf("%+v, %v", a, err)
	}
	if _, err := engine.Align(context.Background(), options(t), to); !errors.Is(err, engine.ErrNoLog) {
		t.Errorf("no log: %v", err)
	}
}

func TestAlign(t *testing.T) {
	align := func(files map[string]string) *incident.Alignment {
		t.Helper()
		a, err := engine.Align(context.Background(), options(t, job(t, files)), engine.TrackerOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	at := func(step int, off time.Duration) time.Time {
		return runBegan.Add(time.Duration(step)*2*time.Second + off)
	}
	zone := 2 * time.Hour
	rows := rowsOf(10, 400, 10, 340)

	// NaN before memory ran out, by step; the log's clock is in another zone; the tracker goes
	// on for ten steps after the end.
	a := align(map[string]string{"metrics.jsonl": jsonl(rowsOf(10, 500, 10, 340)), "job.log": joblog(rows, zone) + oomAt(at(405, zone))})
	c := a.Clocks[0]
	if len(a.Clocks) != 1 || c.Means != "time zone" || !c.Applied || c.Offset != 7200 || c.Pairs < 60 || c.Bound > 1 {
		t.Errorf("clocks %+v", a.Clocks)
	}
	if o := a.Order; o.Answer != "nonfinite first" || !strings.HasPrefix(o.Basis, "by step: ") || *o.Nonfinite.At.Step != 340 || *o.Run != 0 || o.Memory == nil {
		t.Errorf("order %+v", o)
	}
	if len(a.After) != 1 || a.After[0].Points != 20 || *a.After[0].First.Step != 410 {
		t.Errorf("after %+v", a.After)
	}
	var kinds []string
	for _, r := range a.Rows {
		kinds = append(kinds, r.Kind)
	}
	if s := strings.Join(kinds, " "); s != "start finite finite nonfinite nonfinite nonfinite memory after-death end" && s != "start finite nonfinite finite nonfinite nonfinite memory after-death end" {
		t.Errorf("rows %s", s)
	}
	if len(a.Disagree) != 0 || len(a.Artifacts) != 2 || len(a.Logs) != 1 {
		t.Errorf("%v, %d artifacts, %v", a.Disagree, len(a.Artifacts), a.Logs)
	}

	// Memory ran out and the run went on; the value ceased to be finite later.
	a = align(map[string]string{"metrics.jsonl": jsonl(rows), "job.log": joblog(rowsOf(10, 100, 10, 0), 0) + oomAt(at(105, 0)) + joblog(rowsOf(110, 400, 10, 340), 0)})
	if o := a.Order; o.Answer != "memory first" || !strings.HasPrefix(o.Basis, "by step: memory ran out before step 110 was logged") || a.Clocks[0].Means != "same clock" || len(a.After) != 0 {
		t.Errorf("order %+v, clocks %+v, after %+v", o, a.Clocks, a.After)
	}

	// The log stops before: by time.
	a = align(map[string]string{"metrics.jsonl": jsonl(rows), "job.log": joblog(rowsOf(10, 300, 10, 0), 0) + oomAt(at(401, 0))})
	if o := a.Order; o.Answer != "nonfinite first" || !strings.HasPrefix(o.Basis, "by time: it was recorded 2m2s before") {
		t.Errorf("order %+v", o)
	}

	// Clocks that no zone explains are not compared; what is missing is said.
	a = align(map[string]string{"metrics.jsonl": jsonl(rows), "job.log": joblog(rowsOf(10, 300, 10, 0), 7*time.Minute) + oomAt(at(401, 7*time.Minute))})
	if o := a.Order; a.Clocks[0].Means != "skew" || a.Clocks[0].Applied || o.Answer != "unknown" || !strings.Contains(o.Missing, "the last step logged before memory ran out is 300") || !strings.Contains(o.Missing, "nothing ties the clock") {
		t.Errorf("order %+v, clocks %+v", o, a.Clocks)
	}

	// A log of another run shares steps and no values.
	other := rowsOf(10, 300, 10, 0)
	for i := range other {
		other[i].loss, other[i].grad = other[i].loss*1.1, other[i].grad*1.2
	}
	a = align(map[string]string{"metrics.jsonl": jsonl(rows), "job.log": joblog(other, 0) + oomAt(at(401, 0))})
	if a.Clocks[0].Means != "unknown" || !strings.Contains(a.Clocks[0].Basis, "not known to be one run") {
		t.Errorf("clocks %+v", a.Clocks)
	}

	// A resumed run: the value stands in the second start, memory ran out in the first.
	first, second := rowsOf(10, 300, 10, 0), rowsOf(210, 400, 10, 250)
	for i := range second {
		second[i].at = second[i].at.Add(time.Hour)
		if !math.IsNaN(second[i].loss) {
			second[i].loss += .01
		}
	}
	a = align(map[string]string{"metrics.jsonl": jsonl(append(first, second...)), "attempt_0/0/stdout.log": joblog(first, 0) + oomAt(at(301, 0)), "attempt_1/0/stdout.log": joblog(second, 0)})
	if o := a.Order; o.Answer != "memory first" || !strings.HasPrefix(o.Basis, "by start: ") || len(a.Runs[0].Resumes) != 1 {
		t.Errorf("order %+v, clocks %+v, resumes %+v", o, a.Clocks, a.Runs[0].Resumes)
	}

	// What the log shows not to be finite and the tracker as 0.
	zero := rowsOf(10, 400, 10, 340)
	for i := range zero {
		if math.IsNaN(zero[i].loss) {
			zero[i].loss, zero[i].grad = 0, 0
		}
	}
	a = align(map[string]string{"metrics.jsonl": jsonl(zero), "job.log": joblog(rows, 0)})
	if o := a.Order; o.Answer != "only nonfinite" || o.Run != nil || *o.Nonfinite.At.Step != 340 || len(a.Disagree) != 2 || !strings.Contains(a.Disagree[0].Text, "loss = 0 at step 340") {
		t.Errorf("order %+v, disagreements %+v", o, a.Disagree)
	}

	if _, err := engine.Align(context.Background(), options(t, job(t, map[string]string{"metrics.jsonl": jsonl(rows)})), engine.TrackerOptions{}); !errors.Is(err, engine.ErrNoLog) {
		t.Errorf("no log: %v", err)
	}
}
