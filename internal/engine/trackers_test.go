package engine

import (
	"strings"
	"testing"
	"time"

	"github.com/inquest-dev/inquest/internal/diagnose"
	"github.com/inquest-dev/inquest/internal/evidence"
	"github.com/inquest-dev/inquest/internal/incident"
	"github.com/inquest-dev/inquest/internal/timeline"
)

// What trackers record is held against the failure that the logs show.
func TestTrackersSaid(t *testing.T) {
	died := time.Date(2026, 8, 1, 10, 0, 0, 0, time.UTC)
	stamp := func(at time.Time) evidence.Stamp {
		return evidence.Stamp{Time: at, Written: at.Format(time.RFC3339), Zone: "Z", Error: time.Second, Clock: "wall"}
	}
	oom := &timeline.Item{Event: evidence.Event{Kind: evidence.DeviceOOM, Who: evidence.Nobody(), Step: evidence.None, Stamp: stamp(died), Span: evidence.Span{Artifact: "job.log", Kind: "text", Line: 9}}}
	nan := &timeline.Item{Event: evidence.Event{Kind: evidence.NonfiniteValue, Who: evidence.Nobody(), Step: 30, Span: evidence.Span{Artifact: "job.log", Kind: "text", Line: 9}}}
	run := func(artifact string, newest time.Time, attrs ...string) *timeline.Item {
		e := evidence.Event{Kind: evidence.TrackerRun, Who: evidence.Nobody(), Stamp: stamp(newest), Span: evidence.Span{Artifact: artifact, Kind: "record"}, Attrs: evidence.Attrs{"last_step": evidence.IntOf(39)}}
		for i := 0; i < len(attrs); i += 2 {
			e.Attrs[attrs[i]] = evidence.TextOf(attrs[i+1])
		}
		return &timeline.Item{Event: e}
	}
	wandb := []string{"tracker", "wandb", "id", "k3", "status", "running-or-dead"}
	for _, c := range []struct {
		name    string
		lead    *timeline.Item
		outcome string
		runs    []*timeline.Item
		want    []string // beginnings of what is said
	}{
		{"an end that no tracker knows", oom, incident.Failed, []*timeline.Item{run("w", died, wandb...)}, []string{"Weights & Biases run k3 has no end of the run on record; "}},
		{"finished by its own word", oom, incident.Failed, []*timeline.Item{run("m", died, "tracker", "mlflow", "status", "finished", "said", "FINISHED")}, []string{"MLflow says that the run finished (FINISHED), "}},
		{"points long after the end", oom, incident.Failed, []*timeline.Item{run("t", died.Add(12*time.Minute), "tracker", "tensorboard", "status", "unknown")}, []string{"TensorBoard holds points up to 12m after the failure, "}},
		{"points a while after the end", oom, incident.Failed, []*timeline.Item{run("t", died.Add(12*time.Minute+10*time.Second), "tracker", "tensorboard", "status", "unknown")}, []string{"TensorBoard holds points up to 12m10s after the failure, "}},
		{"what was flushed at the end", oom, incident.Failed, []*timeline.Item{run("t", died.Add(20*time.Second), "tracker", "tensorboard", "status", "unknown")}, nil},
		{"went on with NaN, in two files of one run", nan, incident.FinishedRun, []*timeline.Item{run("t1", died, "tracker", "tensorboard", "folder", "runs/a"), run("t2", died, "tracker", "tensorboard", "folder", "runs/a")}, []string{"What was recorded from step 30 to step 39 is of a run whose values were no longer finite (TensorBoard); "}},
		{"a tracker that writes zeros", nan, incident.FinishedRun, []*timeline.Item{run("metrics.jsonl", died, "tracker", "clearml", "keeps", "zeroed")}, []string{"What was recorded", "ClearML writes 0.0 "}},
		{"no failure", nil, incident.FinishedRun, []*timeline.Item{run("w", died, wandb...)}, nil},
	} {
		k := &diagnose.Case{Lead: c.lead, Outcome: c.outcome, Attempt: &timeline.Attempt{Items: c.runs}}
		if c.lead == nan {
			k.NaN = nan
		}
		s := &Study{Cases: []*diagnose.Case{k}}
		var got []string
		s.trackers(k, func(text string, _ ...evidence.Span) { got = append(got, text) })
		if len(got) != len(c.want) {
			t.Errorf("%s: got %q", c.name, got)
			continue
		}
		for i := range got {
			if !strings.HasPrefix(got[i], c.want[i]) {
				t.Errorf("%s: got %q, want %q", c.name, got[i], c.want[i])
			}
		}
	}
}
