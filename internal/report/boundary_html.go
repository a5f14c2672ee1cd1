package report

import (
	"fmt"
	"html/template"
	"io"
	"strconv"

	"github.com/inquest-dev/inquest/internal/evidence"
	"github.com/inquest-dev/inquest/internal/incident"
)

// Bounds of one page of a boundary.
const (
	boundaryPlots  = 8
	boundaryRows   = 2000
	boundaryTrials = 2000
)

// A boundaryPage is what the template sees of a search.
type boundaryPage struct {
	Title       string
	Tone        string
	Verdict     []labelled
	Plots       []peakPlot
	EdgeColumns []string
	Edges       [][]string
	Reduced     []string
	Rows        [][]string
	Limits      []string
	Trials      []trialLine
	Left        int64
	Command     string
	Tool        incident.Tool
	Schema      string
	Series      string
	Policy      template.HTML
	Style       template.CSS
}

type trialLine struct{ Head, Text string }

// A peakPlot is peak memory against the value of one edge, in a box of 1000 by 320 of which the
// floor is at 300.
type peakPlot struct {
	ID, Title, Caption string
	XLow, XHigh        string
	Limit              string // y, "" for none
	Fit                string // points of a line
	Dots               []peakDot
}

type peakDot struct{ X, Y, Class, Text string }

// writeBoundaryHTML writes one page without a script.
func writeBoundaryHTML(w io.Writer, t *incident.Trials, _ Options) error {
	v := newBoundaryView(t)
	p := &boundaryPage{Title: upper(v.shortAnswer()), Tone: v.tone(), Verdict: v.lines(), EdgeColumns: edgeColumns, Limits: v.Limits,
		Command: commandWords(v.Template), Tool: v.Tool, Schema: v.Schema, Series: v.ID}
	for i := range v.Edges {
		if pl := v.plot(&v.Edges[i], i); pl != nil && len(p.Plots) < boundaryPlots {
			p.Plots = append(p.Plots, *pl)
		}
		if len(v.Edges) > 1 {
			p.Edges = append(p.Edges, edgeCells(&v.Edges[i]))
		}
	}
	if v.Smallest != nil {
		for i := range v.Smallest.Reduced {
			p.Reduced = append(p.Reduced, reducedWords(&v.Smallest.Reduced[i]))
		}
	}
	for i, r := range v.rows() {
		if i == boundaryRows {
			break
		}
		p.Rows = append(p.Rows, []string{assignments(r.values), r.came(), r.peakWords()})
	}
	for i := range v.Points[:min(len(v.Points), boundaryTrials)] {
		p.Trials = append(p.Trials, trialLine{pointWords(&v.Points[i]), v.Points[i].Text})
	}
	p.Left = int64(len(v.Points) - len(p.Trials))
	style := asset("page.css") + asset("trials/page.css")
	p.Style, p.Policy = template.CSS(style), policyOf(style, "")
	return executeTracker(w, "boundary.html", p)
}

// plot draws the peaks of one edge, nil where fewer than two values have one.
func (v *boundaryView) plot(e *incident.Edge, n int) *peakPlot {
	type at struct {
		x     int64
		point *incident.BoundaryPoint
	}
	var all []at
	low, high, top := int64(0), int64(0), int64(0)
	limit, measure := (*int64)(nil), ""
points:
	for i := range v.Points {
		p := &v.Points[i]
		x, err := strconv.ParseInt(p.Values[e.Name], 10, 64)
		if err != nil || p.Peak == nil {
			continue
		}
		for name, value := range e.Fixed {
			if p.Values[name] != strconv.FormatInt(value, 10) {
				continue points
			}
		}
		if len(all) == 0 {
			low, high = x, x
		}
		low, high, top = min(low, x), max(high, x), max(top, *p.Peak)
		if p.Limit != nil {
			limit, top = p.Limit, max(top, *p.Limit)
		}
		measure = p.Measure
		all = append(all, at{x, p})
	}
	if low == high || top <= 0 {
		return nil
	}
	px := func(x float64) string {
		return strconv.FormatFloat(20+960*(x-float64(low))/float64(high-low), 'f', 1, 64)
	}
	py := func(y float64) string {
		return strconv.FormatFloat(300-280*min(max(y/float64(top), 0), 1), 'f', 1, 64)
	}
	pl := &peakPlot{ID: fmt.Sprintf("plot-%d", n+1), Title: "Peak " + measureWords(measure), XLow: fmt.Sprintf("%s=%d", e.Name, low), XHigh: fmt.Sprintf("%s=%d", e.Name, high)}
	if len(e.Fixed) > 0 {
		pl.Title += " with " + numbersOf(e.Fixed)
	}
	pl.Caption = "A dot is a trial that passed, a cross one that ran out of memory, a square any other; the floor is 0"
	if limit != nil {
		pl.Limit = py(float64(*limit))
		pl.Caption += ", the dashed line the limit, " + evidence.Bytes(*limit)
	}
	if f := e.Fit; f != nil && f.Measure == measure {
		pl.Fit = px(float64(low)) + "," + py(f.A+f.B*float64(low)) + " " + px(float64(high)) + "," + py(f.A+f.B*float64(high))
		pl.Caption += "; the plain line is the fit"
	}
	pl.Caption += "."
	for _, a := range all[:min(len(all), boundaryTrials)] {
		class := "odd"
		switch a.point.Result {
		case incident.Passed:
			class = "passed"
		case incident.OutOfMemory:
			class = "failed"
		}
		pl.Dots = append(pl.Dots, peakDot{px(float64(a.x)), py(float64(*a.point.Peak)), class, fmt.Sprintf("%s: %s, %s", assignments(a.point.Values), kindWords(a.point.Result), evidence.Bytes(*a.point.Peak))})
	}
	return pl
}
