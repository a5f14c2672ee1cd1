package readertest

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"io/fs"
	"testing"

	"github.com/inquest-dev/inquest/internal/evidence"
	"github.com/inquest-dev/inquest/internal/reader"
)

// A Tracked is a sink that keeps the runs that a reader of a tracker hands over, and every
// point as "series[step] = value at seconds".
type Tracked struct {
	*reader.Collector
	Runs   []*evidence.TrackedRun
	Points []string
}

// TrackedRun implements reader.Tracked.
func (s *Tracked) TrackedRun(r *evidence.TrackedRun) { s.Runs = append(s.Runs, r) }

// Point implements reader.EveryPoint.
func (s *Tracked) Point(_ *evidence.TrackedRun, t *evidence.Track, p *evidence.Point, wall float64) {
	s.Points = append(s.Points, fmt.Sprintf("%s[%d] = %v at %.3f", t.Name, p.Step, p.Value, wall))
}

// Track returns the first track of a name, nil if there is none.
func (s *Tracked) Track(name string) *evidence.Track {
	for _, r := range s.Runs {
		for _, t := range r.Tracks {
			if t.Name == name {
				return t
			}
		}
	}
	return nil
}

// EventsOf returns the events of a kind.
func (s *Tracked) EventsOf(kind evidence.Kind) (out []evidence.Event) {
	for _, e := range s.Events {
		if e.Kind == kind {
			out = append(out, e)
		}
	}
	return out
}

// ReadTracked reads data as the artifact name with r, dir holding what lies beside it; nil
// where nothing does.
func ReadTracked(t testing.TB, r reader.Reader, name string, data []byte, dir fs.FS) *Tracked {
	t.Helper()
	s := &Tracked{Collector: reader.NewCollector()}
	err := r.Read(context.Background(), reader.Input{Artifact: evidence.Artifact{Path: name}, Dir: dir, Size: int64(len(data)),
		Open: func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(data)), nil }}, s)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return s
}
