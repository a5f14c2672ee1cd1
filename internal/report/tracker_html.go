package report

import (
	"cmp"
	"encoding/json"
	"fmt"
	"html/template"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/inquest-dev/inquest/internal/evidence"
	"github.com/inquest-dev/inquest/internal/incident"
)

// Bounds of one page. What is beyond them is counted on the page, and is in the JSON
// report.
const (
	pageRuns     = 32      // shown in full
	pageSeries   = 200     // rows of one run's table
	pageCurves   = 400     // that can be drawn
	pagePoints   = 120_000 // of all curves together, about 20 bytes each
	pageEvents   = 400     // of a timeline
	pageFigures  = 8
	figureLines  = 8
	figureMarks  = 400 // of one kind in a drawing
	figureHeight = 132 // of the drawing in a figure, in pixels
	figureTop    = 16  // above it
)

// A trackPage is what the templates see of a result of inquest tracker show or align.
type trackPage struct {
	Kind     string // tracker, alignment
	Title    string
	Tone     string
	Badges   []badge
	Verdict  []labelled
	Figures  []*figure
	Choose   bool // some curve is in no figure
	Left     int  // curves that are not on the page
	Runs     []*trackRun
	Beyond   int // runs not shown in full
	Rows     []alignedRow
	RowsLeft int
	Clocks   []string
	After    []string
	Disagree []incident.Statement
	Limits   []incident.Statement
	NotFound []string

	Artifacts []incident.Artifact
	Tool      incident.Tool
	Schema    string
	Command   string
	Policy    template.HTML
	Style     template.CSS
	Script    template.JS
	Data      template.JS

	words   *words
	numbers map[int]int // of the rows that drawings point to, by their place
	lines   []*drawnLine
	data    packedCurves
}

// A trackRun is one run on the page.
type trackRun struct {
	*incident.TrackedRun
	N        int
	ID       string
	Title    string
	Tone     string
	Verdict  []labelled
	Rows     []trackRow
	RowsLeft int64
	Doubts   []string
	Resumes  []string
	Damage   []string
}

type trackRow struct {
	Cells []string
	Bad   bool
	Doubt bool
	Place string // of the first value that is not finite
}

// An alignedRow is a row of the common timeline; N is the number by which drawings point
// to it, 0 for none.
type alignedRow struct {
	N                        int
	Time, Step, Source, Text string
	Place, Tone              string
}

// A drawnLine is one series in drawings.
type drawnLine struct {
	curve *curve
	run   int
	index int // in the data of the page
}

// A figure is one quantity of the runs: the drawing that needs no script, in a box of 1000
// by 100, and what the script redraws it from.
type figure struct {
	ID, Title, Caption string
	Indexes            string // of the lines in the data of the page
	By                 string
	Log, Bytes         bool
	Lines              []figureLine
	Left               int
	Ticks              []figureTick
	XLow, XHigh        string
	Bands, Doubts      []figureSpan
	Bad                []string
	Resumes            []string
	Events             []figureEvent

	lines []*drawnLine
	scale scale
}

type figureLine struct {
	Class             string
	Parts, Past       []string // polylines
	Dots              [][2]string
	Name, Run, Points string
	Bad               string
}

type figureTick struct{ Y, Line, Label string }

type figureSpan struct{ X, W string }

type figureEvent struct {
	X    string
	N    int
	Text string
}

var trackerScripts = []string{"tracker/data.js", "tracker/chart.js", "tracker/page.js"}

func writeTrackerHTML(w io.Writer, t *incident.Tracker, _ Options) error {
	return newTrackPage(t).write(w)
}

// newTrackPage is what the page of t consists of.
func newTrackPage(t *incident.Tracker) *trackPage {
	t = cleanedTracker(t)
	p := &trackPage{Kind: "tracker", Title: "Experiment tracker", Tone: "plain", Disagree: t.Disagree, Limits: t.Limits, NotFound: t.NotFound, Artifacts: t.Artifacts, Tool: t.Tool, Schema: t.Schema, Command: "inquest tracker show"}
	p.words = newWords(&incident.Incident{Artifacts: t.Artifacts})
	if v := leadingRun(t.Runs); v != nil {
		p.Title, p.Verdict, p.Badges = v.runTitle(), v.lines(), v.badges()
		p.Tone = "good"
		if v.First != nil || suspects(v.TrackedRun) > 0 {
			p.Tone = "bad"
		}
	} else {
		p.Verdict = []labelled{{"Run", "No run of an experiment tracker could be read."}}
	}
	p.runs(t.Runs)
	p.figures(t.Runs, nil)
	return p
}

func writeAlignmentHTML(w io.Writer, a *incident.Alignment, _ Options) error {
	a = cleanedAlignment(a)
	p := &trackPage{Kind: "alignment", Tone: "bad", Disagree: a.Disagree, Limits: a.Limits, NotFound: a.NotFound, Artifacts: a.Artifacts, Tool: a.Tool, Schema: a.Schema, Command: "inquest tracker align"}
	p.words = newWords(&incident.Incident{Artifacts: a.Artifacts})
	v := &alignView{a, p.words}
	p.Title, p.Verdict = upper(v.orderVariants()[0]), v.lines()
	if a.Order.Answer == "neither" {
		p.Tone = "good"
	}
	p.Badges = append(p.Badges, badge{"order", orderBadge(a.Order.Answer), map[bool]string{true: "open", false: "plain"}[a.Order.Answer == "unknown" || a.Order.Answer == ""]})
	if len(a.After) > 0 {
		p.Badges = append(p.Badges, badge{"after the end", "recorded on", "bad"})
	}
	for i := range a.Clocks {
		p.Clocks = append(p.Clocks, upper(v.clockLine(&a.Clocks[i])))
	}
	for i := range a.After {
		p.After = append(p.After, upper(v.afterLine(&a.After[i])+": "+a.After[i].Basis))
	}
	p.rows(v)
	p.runs(a.Runs)
	p.figures(a.Runs, a.Rows)
	return p.write(w)
}

// orderBadge is an answer in a word or two.
func orderBadge(answer string) string {
	if answer == "" {
		return "unknown"
	}
	return oneLine(answer)
}

func (p *trackPage) write(w io.Writer) error {
	if err := p.packed(); err != nil {
		return err
	}
	style, script := asset("page.css")+asset("tracker/page.css"), ""
	if p.live() {
		style = asset("uplot/uPlot.min.css") + style
		script = asset("uplot/uPlot.iife.min.js") + "\n" + scriptOf(trackerScripts...)
	}
	p.Style, p.Script, p.Policy = template.CSS(style), template.JS(script), policyOf(style, script)
	return executeTracker(w, "page.html", p)
}

// live reports whether there is something to draw.
func (p *trackPage) live() bool { return len(p.Figures) > 0 || p.Choose }

// packed puts the data of the drawings into the page.
func (p *trackPage) packed() error {
	raw, err := json.Marshal(p.data) // escapes <, > and &
	if err != nil {
		return fmt.Errorf("write report: %w", err)
	}
	p.Data = template.JS(visible(raw))
	return nil
}

// executeTracker renders a template of the pages of inquest tracker.
func executeTracker(w io.Writer, name string, data any) error {
	t, err := trackerTemplates()
	if err != nil {
		return err
	}
	if err := t.ExecuteTemplate(w, name, data); err != nil {
		return fmt.Errorf("write report: %w", err)
	}
	return nil
}

func trackerTemplates() (*template.Template, error) {
	t, err := template.New("tracker").Funcs(template.FuncMap{
		"tool": toolWords, "bytes": evidence.Bytes, "count": func(n int64) string { return thousands(n) }, "sentence": sentence, "upper": upper, "plural": several, "instant": instant, "place": func(sp evidence.Span) string { return where(&sp) },
		"headings": func() []gridColumn { return seriesColumns }, "accounts": func() []gridColumn { return accountColumns }, "columnTitle": func(c gridColumn) string { return upper(c.title) }, "right": func(c gridColumn) bool { return c.right },
		"numeric": func(cols []gridColumn, i int) bool { return cols[i].right },
	}).ParseFS(assets, "assets/shared/*.html", "assets/tracker/*.html", "assets/trials/*.html")
	if err != nil {
		return nil, fmt.Errorf("write report: %w", err)
	}
	return t, nil
}

// badges state what is known of a run in a word each.
func (v *runView) badges() []badge {
	tone := map[string]string{string(evidence.RunFinished): "good", string(evidence.RunFailed): "bad", string(evidence.RunCrashed): "bad", string(evidence.RunKilled): "bad", string(evidence.RunOpen): "open"}[v.Status]
	out := []badge{{"status", statusWords(v.Status), cmp.Or(tone, "plain")}}
	switch {
	case v.First != nil:
		out = append(out, badge{"not finite from", pointPlace(&v.First.At, axisOf(v.TrackedRun, v.First.Series)), "bad"})
	case suspects(v.TrackedRun) > 0:
		out = append(out, badge{"only look finite", several(int(suspects(v.TrackedRun)), "value"), "open"})
	}
	if n := len(v.Damage); n > 0 {
		out = append(out, badge{"damaged", several(n, "place"), "open"})
	}
	if v.all > 1 {
		out = append(out, badge{"runs", thousands(int64(v.all)), "plain"})
	}
	return out
}

// runs prepares the part of each run.
func (p *trackPage) runs(runs []incident.TrackedRun) {
	for i := range runs {
		if i == pageRuns {
			p.Beyond = len(runs) - i
			return
		}
		r := &runs[i]
		v := &runView{r, 1}
		t := &trackRun{TrackedRun: r, N: i, ID: fmt.Sprintf("run-%d", i+1), Title: upper(runName(r)), Tone: "plain", Verdict: v.lines()}
		if r.First != nil || suspects(r) > 0 {
			t.Tone = "bad"
		}
		for j := range r.Series {
			s := &r.Series[j]
			if j == pageSeries {
				break
			}
			row := trackRow{Cells: seriesCells(s), Bad: nonfinite(s) > 0 && !s.System, Doubt: s.Suspects > 0}
			if s.Bad != nil && s.Bad.At.Span != nil {
				row.Place = p.words.near(s.Bad.At.Span)
			}
			t.Rows = append(t.Rows, row)
			for k := range s.Doubtful {
				if len(t.Doubts) < tableRows {
					t.Doubts = append(t.Doubts, upperPlain(doubtLine(s, &s.Doubtful[k])))
				}
			}
		}
		t.RowsLeft = int64(len(r.Series)-len(t.Rows)) + r.MoreSeries
		for j := range r.Resumes[:min(len(r.Resumes), pageSeries)] {
			t.Resumes = append(t.Resumes, upper(p.words.resumeLine(&r.Resumes[j])))
		}
		for j := range r.Damage[:min(len(r.Damage), pageSeries)] {
			t.Damage = append(t.Damage, upper(p.words.damageLine(&r.Damage[j])))
		}
		p.Runs = append(p.Runs, t)
	}
}

// upperPlain is upper for what begins with a word of ours, not with a name.
func upperPlain(s string) string {
	if plainWord.MatchString(s) {
		return upper(s)
	}
	return s
}

// rows prepares the common timeline: of a long one what decides most.
func (p *trackPage) rows(v *alignView) {
	p.numbers = map[int]int{}
	for _, i := range v.shown(pageEvents, false) {
		r := &v.Rows[i]
		cells := v.rowCells(r)
		row := alignedRow{Time: cells[0], Step: cells[1], Source: oneLine(r.Source), Text: cells[3], Place: v.near(&r.Span), Tone: rowTone(r.Kind)}
		if isMark(r) {
			row.N = len(p.numbers) + 1
			p.numbers[i] = row.N
		}
		p.Rows = append(p.Rows, row)
	}
	p.RowsLeft = len(v.Rows) - len(p.Rows)
}

func rowTone(kind string) string {
	if decisive[kind] == 1 {
		return "bad"
	}
	return ""
}

// isMark reports whether a row is drawn on curves: not the steps themselves, nor what the
// curve shows.
func isMark(r *incident.AlignedRow) bool {
	return r.Kind != "step" && r.Kind != "nonfinite" && (r.Step != nil || r.Time != nil)
}

// figureGroup says in which figure a series is drawn, "" for none that is drawn at once.
func figureGroup(s *incident.TrackedSeries) (key, title string) {
	for _, d := range drawn {
		if s.Meaning == d.name {
			return d.group, d.title
		}
	}
	if s.Meaning == "learning_rate" {
		return s.Meaning, "Learning rate"
	}
	return "", ""
}

// figures groups the curves of all runs, the most telling first; rows are what logs tell.
func (p *trackPage) figures(runs []incident.TrackedRun, rows []incident.AlignedRow) {
	at := map[string]*figure{}
	used := map[int]bool{}
	for pass := range 2 {
		for i := range runs {
			for _, s := range curvesOf(&runs[i]) {
				key, title := figureGroup(s)
				telling := key != "" || nonfinite(s) > 0 && !s.System || s.Suspects > 0
				if telling != (pass == 0) {
					continue
				}
				if len(p.lines) == pageCurves {
					p.Left++
					continue
				}
				l := &drawnLine{curve: curveOf(&runs[i], s), run: i, index: len(p.lines)}
				if len(l.curve.pieces) == 0 {
					continue
				}
				p.lines = append(p.lines, l)
				if key == "" {
					key, title = "named "+s.Name, plotTitle(s)
				}
				key = strings.Join([]string{key, l.curve.by, s.Axis, strconv.FormatBool(s.Unit == "bytes")}, "\x00")
				f := at[key]
				if f == nil {
					if len(p.Figures) == pageFigures || pass == 1 && len(p.Figures) > 3 {
						continue
					}
					f = &figure{ID: fmt.Sprintf("figure-%d", len(p.Figures)+1), Title: title, By: l.curve.by, Bytes: s.Unit == "bytes"}
					at[key] = f
					p.Figures = append(p.Figures, f)
				}
				if len(f.lines) == figureLines {
					f.Left++
					continue
				}
				f.lines = append(f.lines, l)
				used[l.index] = true
			}
		}
	}
	order := []string{"Loss", "Gradient norm", "Device memory", "Share of device memory"}
	rank := func(f *figure) int {
		if i := slices.Index(order, f.Title); i >= 0 {
			return i
		}
		return len(order)
	}
	slices.SortStableFunc(p.Figures, func(a, b *figure) int { return cmp.Compare(rank(a), rank(b)) })
	for i, f := range p.Figures {
		f.ID = fmt.Sprintf("figure-%d", i+1)
	}
	p.Choose = len(used) < len(p.lines)
	p.pack(runs, rows)
	for _, f := range p.Figures {
		f.draw(len(runs) > 1)
		f.events(p.data.Events)
	}
}

// draw lays out the drawing that needs no script.
func (f *figure) draw(several bool) {
	var curves []*curve
	var ids []string
	for _, l := range f.lines {
		curves = append(curves, l.curve)
		ids = append(ids, strconv.Itoa(l.index))
	}
	f.Indexes = strings.Join(ids, " ")
	f.scale = scaleOf(curves, f.Bytes)
	f.Log = f.scale.log
	lead := curves[0]
	low, high, _ := rangeOf(curves)
	f.XLow, f.XHigh = lead.place(low), lead.place(high)
	ticks := f.scale.ticks(3)
	for i, label := range tickWords(lead.series, ticks) {
		y := 100 * (1 - f.scale.at(ticks[i]))
		f.Ticks = append(f.Ticks, figureTick{unit(figureTop + figureHeight*y/100 - 3), unit(y), label})
	}
	marks := &figureMarkers{f: f, low: low, high: high}
	for n, l := range f.lines {
		f.Lines = append(f.Lines, f.line(n, l, marks, several))
		now, _ := l.curve.bad()
		f.Bands = append(f.Bands, marks.spans(now)...)
		f.Doubts = append(f.Doubts, marks.spans(l.curve.doubtful())...)
		for _, x := range l.curve.resumes() {
			if len(f.Resumes) < figureMarks && x >= low && x <= high && !slices.Contains(f.Resumes, unit(marks.x(x))) {
				f.Resumes = append(f.Resumes, unit(marks.x(x)))
			}
		}
	}
	f.Caption = f.words()
}

// figureMarkers place what a drawing marks on its axis.
type figureMarkers struct {
	f         *figure
	low, high float64
	seen      map[string]bool
}

func (m *figureMarkers) x(v float64) float64 {
	if m.high == m.low {
		return plotWidth / 2
	}
	return plotWidth * (v - m.low) / (m.high - m.low)
}

// spans are stretches in drawing units; one that is too thin to see is widened.
func (m *figureMarkers) spans(all []stretch) []figureSpan {
	var out []figureSpan
	end := -1.0
	for _, s := range all {
		if s.to < m.low || s.from > m.high || len(out) == figureMarks {
			continue
		}
		from, to := m.x(max(s.from, m.low)), m.x(min(s.to, m.high))
		if to-from < 3 {
			from, to = max(0, from-1.5), min(plotWidth, from+1.5)
		}
		if from < end { // the one before was widened over it
			from = min(end, to)
		}
		if to > from {
			out = append(out, figureSpan{unit(from), unit(to - from)})
			end = to
		}
	}
	return out
}

// bad marks a value that is not finite along the axis, each place once.
func (m *figureMarkers) bad(x float64) {
	at := unit(math.Round(m.x(x)))
	if m.seen == nil {
		m.seen = map[string]bool{}
	}
	if !m.seen[at] && len(m.f.Bad) < figureMarks {
		m.seen[at] = true
		m.f.Bad = append(m.f.Bad, at)
	}
}

// svgDots is how many dots of one piece a drawing without script has.
const svgDots = 400

// line draws one series: what counts and, apart, what was written again later.
func (f *figure) line(n int, l *drawnLine, m *figureMarkers, several bool) figureLine {
	c := l.curve
	out := figureLine{Class: fmt.Sprintf("l%d", n%figureLines), Name: plotTitle(c.series), Points: thousands(c.series.Count), Bad: badCell(c.series)}
	if several {
		out.Run = runName(c.run)
	}
	for i := range c.pieces {
		p := &c.pieces[i]
		var part []string
		past := false
		flush := func() {
			switch {
			case len(part) > 1 && past:
				out.Past = append(out.Past, strings.Join(part, " "))
			case len(part) > 1:
				out.Parts = append(out.Parts, strings.Join(part, " "))
			case len(part) == 1:
				x, y, _ := strings.Cut(part[0], ",")
				out.Dots = append(out.Dots, [2]string{x, y})
			}
			part = nil
		}
		for _, d := range thin(p.dots, svgDots) {
			if !d.finite() {
				flush()
				m.bad(d.x)
				continue
			}
			at := unit(m.x(d.x)) + "," + unit(100*(1-f.scale.at(d.y)))
			if gone := d.x >= p.past; gone != past {
				if len(part) > 0 { // the two meet
					part = append(part, at)
				}
				flush()
				past = gone
			}
			part = append(part, at)
		}
		flush()
	}
	return out
}

// events puts what logs tell on the drawing.
func (f *figure) events(all []packedEvent) {
	var curves []*curve
	for _, l := range f.lines {
		curves = append(curves, l.curve)
	}
	low, high, _ := rangeOf(curves)
	m := &figureMarkers{f: f, low: low, high: high}
	for _, e := range all {
		x := e.Step
		if f.By == byTime && e.Time != nil {
			s := *e.Time / 1000
			x = &s
		} else if f.By != byStep {
			continue
		}
		if x == nil || *x < low || *x > high || e.N == 0 {
			continue
		}
		f.Events = append(f.Events, figureEvent{unit(m.x(*x)), e.N, e.Text})
	}
}

// words say what a figure shows.
func (f *figure) words() string {
	c := f.lines[0].curve
	s := fmt.Sprintf("%s %s to %s", c.along(), f.XLow, f.XHigh)
	if f.Log {
		s += ", logarithmic"
		if f.scale.floor > 0 {
			s += fmt.Sprintf(" (%s of 0 at the lower edge)", several(f.scale.floor, "value"))
		}
	}
	s += "."
	if len(f.Bad) > 0 {
		s += " Triangles along the axis: values that are not finite; their part is shaded."
	}
	if len(f.Doubts) > 0 {
		s += " Hatched, or dotted around: values that only look finite."
	}
	if len(f.Resumes) > 0 {
		s += " Dashed lines: writing began again; what was written again later is pale."
	}
	if f.Left > 0 {
		s += fmt.Sprintf(" %s more not drawn.", several(f.Left, "line"))
	}
	return s
}
