package reader

import (
	"fmt"
	"time"

	"github.com/inquest-dev/inquest/internal/evidence"
	"github.com/inquest-dev/inquest/internal/format/rows"
)

// maxRowRuns bounds the runs that one file of rows may name.
const maxRowRuns = 256

// Rows records a file of rows of metrics: one Recording for each run that its rows name,
// commonly one. It is used by one goroutine.
type Rows struct {
	Layout *rows.Layout
	// Opened is called for each recording once it is made, to state what the format
	// keeps and cannot show. May be nil.
	Opened func(*Recording)

	s        Sink
	artifact string
	runs     map[string]*Recording
	order    []*Recording
	damage   []evidence.RunDamage // from before the first run
	total    int64
	more     int64      // rows of runs beyond the bound
	cell     *rows.Cell // that is being added
	span     func() evidence.Span
}

// NewRows returns an empty recording of the rows of an artifact.
func NewRows(s Sink, artifact string, l *rows.Layout) *Rows {
	return &Rows{Layout: l, s: s, artifact: artifact, runs: map[string]*Recording{}}
}

// Add takes the next row. place says where the points of a cell stand, span gives the
// place and text of the cell for an event.
func (r *Rows) Add(cells []rows.Cell, place func(*rows.Cell) Place, span func(*rows.Cell) evidence.Span) {
	g := r.Layout.Row(cells)
	wall, stamp := g.Time.Wall(), stampOf(g)
	r.span = func() evidence.Span { return span(r.cell) }
	var rec *Recording
	name := ""
	for i := range g.Points {
		p := &g.Points[i]
		if rec == nil || p.Run != name {
			if rec != nil {
				rec.EndRow()
			}
			name = p.Run
			if rec = r.Run(name); rec == nil {
				r.more++
				continue
			}
			rec.BeginRow(stamp)
		}
		c := &cells[p.Cell]
		r.cell = c
		t := rec.Track(p.Name, false, c.Value)
		if t == nil {
			continue
		}
		if g.Epochs {
			t.Axis = evidence.AxisEpoch
		}
		t.Add(p.Step, wall, c.Value, place(c))
	}
	if rec != nil {
		rec.EndRow()
	}
	if g.Total > 0 && g.Total != r.total {
		r.Total(g.Total, span(&cells[g.TotalCell]))
	}
	if g.Closing >= 0 {
		r.closing(g, stamp, span(&cells[g.Closing]))
	}
}

// Total states how many steps the run is to have.
func (r *Rows) Total(n int64, at evidence.Span) {
	r.total = n
	r.s.Fact(evidence.Fact{Name: "setting.total_steps", Value: evidence.IntOf(n), Who: evidence.Nobody(), Span: at})
}

// closing takes the row that transformers' Trainer writes when training has returned.
func (r *Rows) closing(g *rows.Reading, stamp evidence.Stamp, sp evidence.Span) {
	e := evidence.Event{Kind: evidence.Finished, Who: evidence.Nobody(), Stamp: stamp, Step: evidence.None, Text: printable(sp.Quote), Span: sp, Attrs: evidence.Attrs{"what": evidence.TextOf("train_runtime")}}
	if !g.Epochs {
		e.Step = g.Step
	}
	r.s.Event(e)
	if rec := r.Run(""); rec != nil {
		rec.Run.Status, rec.Run.StatusSaid, rec.Run.StatusSpan = evidence.RunFinished, "a closing row with train_runtime", sp
	}
}

// stampOf is the time of a row as it is written there.
func stampOf(g *rows.Reading) evidence.Stamp {
	if g.Time.At.IsZero() {
		return evidence.Stamp{}
	}
	return evidence.Stamp{Time: g.Time.At, Written: printable(string(g.TimeText)), Zone: g.Time.Zone, Error: max(g.Time.Resolution/2, time.Microsecond), Clock: "wall"}
}

// Run returns the recording of a run, "" for that of a file with one; nil when there are
// too many.
func (r *Rows) Run(name string) *Recording {
	if rec := r.runs[name]; rec != nil {
		return rec
	}
	if len(r.order) >= maxRowRuns {
		return nil
	}
	rec := NewRecording(r.s, r.Layout.Tracker, r.artifact)
	id := r.Layout.Identity(name)
	rec.Run.ID, rec.Run.Name, rec.Run.Folder = id.ID, id.Name, id.Folder
	if id.ID != "" && len(r.order) > 0 {
		rec.Source = r.Layout.Tracker + " " + id.ID
	}
	if r.Layout.Filtered {
		rec.Run.Keeps = evidence.Replaced
	}
	rec.Quote = func() evidence.Span { return r.span() }
	r.runs[name] = rec
	r.order = append(r.order, rec)
	if r.Opened != nil {
		r.Opened(rec)
	}
	for _, d := range r.damage {
		rec.Damage(d)
	}
	r.damage = nil
	return rec
}

// Damage notes a damaged part, for the first run of the file.
func (r *Rows) Damage(d evidence.RunDamage) {
	if len(r.order) > 0 {
		r.order[0].Damage(d)
		return
	}
	r.damage = append(r.damage, d)
}

// Each calls fn for each recording so far.
func (r *Rows) Each(fn func(*Recording)) {
	for _, rec := range r.order {
		fn(rec)
	}
}

// Close hands the runs over. A file without a row is one run without series.
func (r *Rows) Close() {
	if len(r.order) == 0 {
		r.Run("")
	}
	if r.more > 0 {
		r.Damage(evidence.RunDamage{Kind: evidence.OverBound, Span: evidence.Span{Artifact: r.artifact, Kind: "record"}, Text: fmt.Sprintf("over limit: the file names more than %d runs; %d rows of later ones are not kept", maxRowRuns, r.more)})
	}
	r.Each((*Recording).Close)
}
