package engine

import (
	"context"

	"github.com/inquest-dev/inquest/internal/incident"
)

// DiagnoseTimeline is Diagnose, and what the verdict was read from: the events of all attempts,
// at most max of them. What the bound takes out is what says least: repeats, then events that no
// verdict names, from the middle of each rank's.
func DiagnoseTimeline(ctx context.Context, o Options, max int) (*incident.Incident, *incident.Timeline, error) {
	panic("to be written")
}

// A Place is a window that is asked for: lines Line-Before to Line+After of an artifact, named as
// the incident names it. Where Offset is not negative it says which line Line is.
type Place struct {
	Artifact      string
	Line, Offset  int64
	Before, After int
}

// Lines opens the artifact of a place among o's paths again and shows its lines: at most 1000,
// none longer than 4 KiB, 256 KiB in all, secrets masked, control characters taken out. It reads no
// more of a large plain file than it must.
func Lines(ctx context.Context, o Options, p Place) (*incident.Lines, error) { panic("to be written") }
