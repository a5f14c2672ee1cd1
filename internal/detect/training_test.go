package detect

import (
	"testing"
	"time"

	"github.com/inquest-dev/inquest/internal/evidence"
)

// TestStepsBefore: points count that the event's own rank logged before it, or any
// rank if its own logs none; in another file, all that are not known to be later.
func TestStepsBefore(t *testing.T) {
	at := func(minute int) evidence.Stamp {
		return evidence.Stamp{Time: time.Date(2026, 3, 1, 10, minute, 0, 0, time.UTC), Written: "x", Clock: "wall"}
	}
	series := func(artifact string, rank int, offsets ...int64) *evidence.Series {
		s := evidence.NewSeries(evidence.SeriesKey{Name: "loss", Artifact: artifact, Rank: rank})
		for i, o := range offsets {
			stamp := at(int(o))
			s.Add(evidence.Point{Step: int64(i), Value: 1, Offset: o, Stamp: &stamp})
		}
		return s
	}
	in := Input{Series: []*evidence.Series{series("a", 0, 10, 20, 30), series("a", 1, 25), series("b", 2, 10, 40)}}
	for _, c := range []struct {
		artifact     string
		rank, offset int
		want         int64
	}{
		{"a", 0, 22, 2},
		{"a", 1, 22, 0}, // rank 0 had trained, rank 1 had not
		{"a", 1, 26, 1},
		{"a", 7, 5, 0}, // logs none itself; all others begin later
		{"a", 7, 22, 2},
		{"a", evidence.None, 35, 3},
		{"c", 2, 20, 1}, // its points stand in another file, one of them later
		{"c", 2, 50, 2},
	} {
		e := &evidence.Event{Step: evidence.None, Stamp: at(c.offset), Span: evidence.Span{Artifact: c.artifact, Offset: int64(c.offset)}, Who: evidence.Who{Rank: c.rank}}
		tr := trainingOf(in)
		n, _, known := tr.stepsBefore(e)
		yes, also := tr.begun(e)
		if n != c.want || !known || yes != (n > 0) || !also {
			t.Errorf("%+v: %d points, known %v; begun %v, known %v", c, n, known, yes, also)
		}
	}
}
