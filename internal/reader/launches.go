package reader

import (
	"slices"

	"github.com/inquest-dev/inquest/internal/evidence"
)

// Bounds on what is taken for a resumed run: a stretch of fewer points that goes back is two
// writers of one series, or a step that was logged late.
const (
	maxLaunches = 16
	leastLaunch = 3
)

// Launches are the places where a run was taken up again, seconds since 1970: each lies
// between the last point of some track before it and the first one after.
type launches []struct{ from, to float64 }

// at is the launch of a point at a time: how many resumes lie before it.
func (l launches) at(wall float64) int {
	n := 0
	for _, r := range l {
		if wall > 0 && r.to <= wall {
			n++
		}
	}
	return n
}

// resumed notes that a track went back between two times, and returns which launch began there:
// the one that another track has shown already, or a new one. before is that of the track.
func (l *launches) resumed(from, to float64, before int) int {
	if from <= 0 || to <= 0 || to < from {
		return before + 1
	}
	for i := range *l {
		if r := &(*l)[i]; r.from <= to && from <= r.to {
			return i + 1
		}
	}
	if len(*l) >= maxLaunches {
		return before
	}
	i := 0
	for i < len(*l) && (*l)[i].to < from {
		i++
	}
	*l = slices.Insert(*l, i, struct{ from, to float64 }{from, to})
	return i + 1
}

// resume gives the track a series of its own for what follows where the next point belongs to a
// later launch than the one before. The diagnosis sets each beside the launch of the log; a
// Tracked sink, which has the segments, keeps the track in one piece.
func (t *Track) resume(step int64, wall float64) {
	if len(t.Segments) == 0 {
		if n := t.rec.launches.at(wall); n > 0 && t.known {
			t.begin(n)
		}
		return
	}
	if t.System || t.Axis != evidence.AxisStep || t.Segments[len(t.Segments)-1].N < leastLaunch || !t.known {
		return
	}
	if back := step != evidence.None && t.Steps && step < t.step; !back && t.era == t.rec.era {
		return
	}
	n := t.rec.launches.resumed(t.LastWall, wall, t.launch)
	if n == t.launch || n >= maxLaunches {
		return
	}
	t.begin(n)
}

// begin gives the track the series of a launch.
func (t *Track) begin(n int) {
	t.launch, t.events, t.finite = n, 0, 0
	key := t.Series.Key
	key.Launch = n
	t.Series = t.rec.s.Series(key)
}

// runEvent states a tracked run for the diagnosis.
func (rec *Recording) runEvent() evidence.Event {
	r := &rec.Run
	points, last, end := int64(0), int64(evidence.None), int64(0)
	for _, t := range r.Tracks {
		end = max(end, t.Series.Last.Offset)
		if t.System {
			continue
		}
		for _, s := range t.Segments {
			points += s.N
		}
		if t.Axis != evidence.AxisStep {
			continue
		}
		for _, s := range t.Segments {
			last = max(last, s.Last.Step)
		}
	}
	a := evidence.Attrs{"tracker": evidence.TextOf(r.Tracker), "status": evidence.TextOf(string(r.Status)), "keeps": evidence.TextOf(string(r.Keeps)),
		"series": evidence.IntOf(int64(len(r.Tracks))), "points": evidence.IntOf(points), "damaged": evidence.IntOf(int64(len(r.Damage)))}
	for name, text := range map[string]string{"id": r.ID, "folder": r.Folder, "writer": r.Writer, "said": r.StatusSaid} {
		if text != "" {
			a[name] = evidence.TextOf(text)
		}
	}
	if r.HasExit {
		a["code"] = evidence.IntOf(r.Exit)
	}
	if last != evidence.None {
		a["last_step"] = evidence.IntOf(last)
	}
	sp := r.StatusSpan
	if sp.Artifact == "" {
		sp = evidence.Span{Artifact: r.Artifact, Kind: "record", Offset: end}
	}
	who := evidence.Nobody()
	who.Launch = len(rec.launches)
	return evidence.Event{Kind: evidence.TrackerRun, Who: who, Stamp: r.Newest, Step: last, Text: sp.Quote, Span: sp, Attrs: a}
}
