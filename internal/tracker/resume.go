package tracker

import (
	"cmp"
	"fmt"
	"path"

	"github.com/inquest-dev/inquest/internal/evidence"
	"github.com/inquest-dev/inquest/internal/incident"
)

// resumes are the places where the writing of a run began again: where another process
// or another start goes on in a file of its own, and where steps go back. A new file of
// the same process that only goes on is none.
func (r *Run) resumes() []incident.Resume {
	out := []incident.Resume{}
	l := r.clearest()
	if l == nil {
		return out
	}
	if s := &l.segments[0]; s.part > 0 && r.Parts[s.part-1].Folder != r.Parts[s.part].Folder {
		x := incident.Resume{From: stepOf(s.First.Step), Time: wallTime(s.FirstWall), Span: span(s.track, s.First, 0),
			Basis: fmt.Sprintf("another start goes on in %s, and no step of the one before reached the disk", r.Parts[s.part].Folder)}
		x.Span.Quote = ""
		out = append(out, x)
	}
	for i := 1; i < len(l.segments) && len(out) < maxResumes; i++ {
		a, b := &l.segments[i-1], &l.segments[i]
		x := incident.Resume{From: stepOf(b.First.Step), After: stepOf(a.Last.Step), Time: wallTime(b.FirstWall), Span: span(b.track, b.First, 0)}
		x.Span.Quote = ""
		back := b.First.Step != evidence.None && b.First.Step <= a.Last.Step
		if a.part == b.part && b.First.Step == a.Last.Step {
			continue // a step that is logged twice
		}
		p, q := r.Parts[a.part], r.Parts[b.part]
		file := path.Base(q.Artifact)
		switch {
		case a.part == b.part:
			x.Basis = fmt.Sprintf("steps go back within %s", file)
			if file == "meta.yaml" { // it stands for the files of the metrics beside it
				x.Basis = "steps go back within the files of the metrics"
			}
		case p.Writer != q.Writer && q.Writer != "":
			x.Basis = fmt.Sprintf("%s is written by another process, %s", file, q.Writer)
		case p.Folder != q.Folder:
			x.Basis = fmt.Sprintf("another start goes on in %s", cmp.Or(q.Folder, q.Artifact))
		case back:
			x.Basis = fmt.Sprintf("steps go back in a new file, %s", file)
		default:
			continue // one process goes on in a new file
		}
		out = append(out, x)
	}
	return out
}

// clearest is the series that shows best where writing began again: the loss that is
// logged most often, else another series, of those of which not every other point goes
// back.
func (r *Run) clearest() *line {
	var best *line
	for _, l := range r.lines {
		if l.class == machineClass || l.tracks[0].Axis != evidence.AxisStep || l.more > 0 || !l.tracks[0].Steps {
			continue
		}
		if back := int64(len(l.segments) - len(l.tracks)); back > 0 && back*4 > l.count() {
			continue // it logs a step more than once by its nature
		}
		if best == nil || best.class == l.class && l.count() > best.count() || l.count() > 16*best.count() {
			best = l
		}
	}
	return best
}

func (l *line) count() (n int64) {
	for _, t := range l.tracks {
		n += t.Series.Count
	}
	return n
}
