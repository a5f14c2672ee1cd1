package testkit

import "github.com/inquest-dev/inquest/internal/evidence"

// Series returns a series of one artifact whose points stand on lines of their
// own, at steps 1, 2, ….
func Series(name string, values ...float64) *evidence.Series {
	s := evidence.NewSeries(evidence.SeriesKey{Name: name, Source: "generic", Artifact: defaultFile, Rank: evidence.None, Trust: evidence.Raw})
	for i, v := range values {
		s.Add(evidence.Point{Step: int64(i + 1), Value: v, Line: int64(i + 1), Offset: int64(i * lineBytes), Length: lineBytes - 1})
	}
	return s
}
