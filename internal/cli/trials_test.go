package cli

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/inquest-dev/inquest/internal/early"
	"github.com/inquest-dev/inquest/internal/incident"
	"github.com/inquest-dev/inquest/internal/store"
)

// The folder that is made before the program is initialised is the store's own for the trial.
func TestTrialDir(t *testing.T) {
	at := time.Date(2026, 1, 31, 23, 59, 59, 0, time.FixedZone("", -3600))
	id := early.NewID(at)
	got := filepath.FromSlash(early.TrialDir("/state", id, at))
	want := store.Open(filepath.FromSlash("/state")).TrialDir(incident.Trial{ID: id, Begun: at.UTC().Format(time.RFC3339Nano)})
	if got != want {
		t.Errorf("started in %q, kept in %q", got, want)
	}
}
