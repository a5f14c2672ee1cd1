// Package trial runs the user's command when asked, again and again: to find where it begins to
// fail, and to see whether it fails no longer. It decides what to try next and what the trials
// show; how one is run, recorded, diagnosed and saved is handed in.
package trial

import (
	"context"
	"time"

	"github.com/inquest-dev/inquest/internal/incident"
)

// A Job is one trial to be made.
type Job struct {
	By       string // boundary, verify, recheck
	Series   string
	Incident string
	Command  []string // as it is run: every {NAME} is replaced
	Template []string
	Values   map[string]string
	Dir      string   // "" is this process's
	Env      []string // set for it, NAME=value
	Out      string   // its scratch folder; "" has none
	Timeout  time.Duration
	Every    time.Duration // between two samples of memory; 0 is what suits the runner
}

// A Done is a trial that was made. Its Trial is complete, samples and verdict among it.
type Done struct {
	Trial     incident.Trial
	Diagnosis *incident.Incident // null where it could not be diagnosed
}

// Run makes one trial in a fresh process: it starts the command, records, diagnoses and saves
// it. An error means that nothing was started; that a command could not be started is a Done.
type Run func(ctx context.Context, j Job) (*Done, error)
