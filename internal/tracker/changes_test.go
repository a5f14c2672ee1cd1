package tracker

import (
	"slices"
	"testing"

	"github.com/inquest-dev/inquest/internal/incident"
)

func TestChanged(t *testing.T) {
	at := "2026-08-01T10:00:00Z"
	run := func(tracker, name string, settings ...string) incident.TrackedRun {
		r := incident.TrackedRun{Tracker: tracker, Project: "p", Name: name, Newest: &at}
		for i := 0; i < len(settings); i += 2 {
			r.Settings = append(r.Settings, incident.RunSetting{Name: settings[i], Value: settings[i+1]})
		}
		return r
	}
	runs := []incident.TrackedRun{
		run("wandb", "c", "batch_size", "8", "lr", "0.1", "output_dir", "out/c", "new", "1"),
		run("mlflow", "x", "batch_size", "64"),
		run("wandb", "b"),
		run("wandb", "a", "batch_size", "4", "lr", "0.1", "output_dir", "out/a", "gone", "1"),
	}
	changed(runs)
	if want := []string{"Settings that differ from the run before it, a: batch_size was 4, is 8."}; !slices.Equal(runs[0].Notes, want) {
		t.Errorf("got %q, want %q", runs[0].Notes, want)
	}
	for _, r := range runs[1:] {
		if len(r.Notes) > 0 {
			t.Errorf("%s: %q", r.Name, r.Notes)
		}
	}
}
