package report

import (
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"

	"github.com/charmbracelet/lipgloss"

	"github.com/inquest-dev/inquest/internal/incident"
	"github.com/inquest-dev/inquest/internal/lazyre"
)

// cleanedTracker is a copy of t in which no text can steer or reorder what surrounds it.
// Samples of points are shared: what they hold of text is cleaned where it is shown.
func cleanedTracker(t *incident.Tracker) *incident.Tracker {
	bare := *t
	bare.Runs = barePoints(t.Runs)
	out := copyClean(reflect.ValueOf(&bare)).Interface().(*incident.Tracker)
	putPoints(out.Runs, t.Runs)
	return out
}

// barePoints is a copy of runs without their samples.
func barePoints(runs []incident.TrackedRun) []incident.TrackedRun {
	out := append([]incident.TrackedRun(nil), runs...)
	for i := range out {
		out[i].Series = append([]incident.TrackedSeries(nil), out[i].Series...)
		for j := range out[i].Series {
			out[i].Series[j].Points = nil
		}
	}
	return out
}

// putPoints gives the samples back.
func putPoints(to, from []incident.TrackedRun) {
	for i := range to {
		for j := range to[i].Series {
			to[i].Series[j].Points = from[i].Series[j].Points
		}
	}
}

func writeTrackerText(w io.Writer, t *incident.Tracker, o Options) error {
	t = cleanedTracker(t)
	p := newPage(&incident.Incident{Artifacts: t.Artifacts}, o)
	v := leadingRun(t.Runs)
	if v == nil {
		p.para(0, "", "No run of an experiment tracker could be read.")
		p.unread(t.NotFound)
		p.trackerRead(t.Limits)
		_, err := io.WriteString(w, p.text())
		return err
	}
	p.runHead(v)
	p.unread(t.NotFound)
	p.disagree(t.Disagree)
	p.runPlots(v)
	p.otherRuns(t.Runs, v)
	p.runSeries(v)
	p.runRest(v)
	p.trackerRead(t.Limits)
	_, err := io.WriteString(w, p.text())
	return err
}

// runHead writes the five lines that say the essential of a run.
func (p *page) runHead(v *runView) {
	plain := lipgloss.NewStyle()
	broke := p.good
	if v.First != nil || suspects(v.TrackedRun) > 0 {
		broke = p.bad
	}
	damage := plain
	if len(v.Damage) > 0 {
		damage = p.bad
	}
	p.head("Run", v.runVariants(), p.strong)
	p.head("Broke", v.brokeVariants(), broke)
	p.head("Last", v.lastVariants(), plain)
	p.head("Status", v.statusVariants(), plain)
	p.head("Damage", v.damageVariants(), damage)
}

// unread names the paths that could not be opened.
func (p *page) unread(paths []string) {
	for i, s := range paths {
		if i == mostUnread && !p.full {
			p.para(0, "! ", fmt.Sprintf("%s more of the named paths could not be opened", thousands(int64(len(paths)-i))))
			break
		}
		p.para(0, "! ", "not read: "+s)
	}
}

// plotRows is the height of a curve in a terminal, plotsInFull how many a full report draws.
const (
	plotRows    = 10
	plotsInFull = 6
)

// curvesOf are the series of a run that are worth a drawing, the most telling first: losses,
// gradient norms, what broke first, the rest of the training, memory. A single finite point is
// none, and neither is a measurement of the machine that never changes: tables have them.
func curvesOf(r *incident.TrackedRun) []*incident.TrackedSeries {
	rank := func(s *incident.TrackedSeries) int {
		memory := strings.HasPrefix(s.Meaning, "memory") || s.Meaning == "host_memory"
		switch {
		case len(s.Points) == 0, s.Count == 1 && nonfinite(s) == 0:
			return -1 // nothing, or a single point
		case s.System && flat(s):
			return -1
		case s.Meaning == "loss":
			return 0
		case s.Meaning == "grad_norm":
			return 1
		case s.Meaning == "eval_loss":
			return 2
		case r.First != nil && r.First.Series == s.Name:
			return 3
		case nonfinite(s) > 0 && !s.System:
			return 4
		case memory:
			return 5
		case !s.System:
			return 6
		}
		return 7
	}
	var out []*incident.TrackedSeries
	for want := range 8 {
		for i := range r.Series {
			if rank(&r.Series[i]) == want {
				out = append(out, &r.Series[i])
			}
		}
	}
	return out
}

// flat reports whether all values of a series are the same finite one.
func flat(s *incident.TrackedSeries) bool {
	return nonfinite(s) == 0 && s.Min != nil && s.Max != nil && s.Min.Value == s.Max.Value
}

// runPlots draws the run's loss in a terminal, in full its other curves as well.
func (p *page) runPlots(v *runView) {
	n := 1
	if p.full {
		n = plotsInFull
	}
	all := curvesOf(v.TrackedRun)
	for _, s := range all[:min(n, len(all))] {
		c := curveOf(v.TrackedRun, s)
		m, past := boxMarks, "dotted"
		if p.ascii {
			m = asciiMarks
		}
		t := &textPlot{width: p.width - 2, rows: plotRows, ascii: p.ascii, bad: &p.bad, faint: &p.dim, line: &p.strong}
		lines := t.draw(c)
		if lines == nil {
			continue
		}
		for i := range lines {
			lines[i] = "  " + lines[i]
		}
		p.section(plotTitle(s))
		p.add(block{lines: lines, rank: 1})
		p.at(1, func() {
			p.para(2, "", c.caption(scaleOf([]*curve{c}, false), string(m.bad), string(m.doubt), past))
		})
	}
}

// plotTitle names a drawing by its series.
func plotTitle(s *incident.TrackedSeries) string {
	name := oneLine(s.Name)
	if name == "" {
		name = "a series without a name"
	}
	if s.Unit != "" && s.Unit != "bytes" {
		name += ", " + oneLine(s.Unit)
	}
	return name
}

// A gridColumn is one column of a table in a terminal. Where the width does not do, those
// with the highest drop go first; the one with drop 0, of which there is one, is cut.
type gridColumn struct {
	title string
	right bool
	drop  int
}

// grid writes a titled table; rank is that of each row.
func (p *page) grid(title string, cols []gridColumn, rows [][]string, rank func(row int) int) {
	const gap, least = 2, 12
	width := make([]int, len(cols))
	for i, c := range cols {
		width[i] = columns(c.title)
		for _, r := range rows {
			width[i] = max(width[i], columns(r[i]))
		}
	}
	gone := make([]bool, len(cols))
	flex := slices.IndexFunc(cols, func(c gridColumn) bool { return c.drop == 0 })
	room := 0
	for {
		room = p.width - 2
		worst := flex
		for i := range cols {
			if gone[i] || i == flex {
				continue
			}
			room -= gap + width[i]
			if cols[i].drop > cols[worst].drop {
				worst = i
			}
		}
		if room >= min(least, width[flex]) || worst == flex {
			break
		}
		gone[worst] = true
	}
	width[flex] = min(width[flex], max(room, least))
	line := func(cells []string) string {
		var b strings.Builder
		for i, s := range cells {
			if gone[i] {
				continue
			}
			s = cut(s, width[i])
			if cols[i].right {
				s = strings.Repeat(" ", width[i]-columns(s)) + s
			}
			b.WriteString(strings.Repeat(" ", gap) + pad(s, width[i]))
		}
		return strings.TrimRight(cut(b.String(), p.width), " ")
	}
	var head []string
	for _, c := range cols {
		head = append(head, c.title)
	}
	p.add(block{lines: []string{"", p.strong.Render(cut(title, p.width)), p.dim.Render(line(head))}, heading: true})
	for i, r := range rows {
		p.add(block{lines: []string{line(r)}, rank: rank(i)})
	}
}

// seriesColumns head the table of series, seriesCells fill it; in every report.
var seriesColumns = []gridColumn{{"series", false, 0}, {"not finite", false, 1}, {"values", true, 3}, {"last", true, 2}, {"least", true, 4}, {"segments", true, 5}}

func seriesCells(s *incident.TrackedSeries) []string {
	name := oneLine(s.Name)
	if name == "" {
		name = "(no name)"
	}
	cells := []string{name, badCell(s), thousands(s.Count), "–", "–", thousands(int64(len(s.Segments)) + s.More)}
	if s.Last != nil {
		cells[3] = unitWords(s, s.Last.Value)
	}
	if s.Min != nil {
		cells[4] = unitWords(s, s.Min.Value)
	}
	return cells
}

// badCell says from where on how many values of a series are not finite, or only look so.
func badCell(s *incident.TrackedSeries) string {
	text := ""
	if n := nonfinite(s); n > 0 {
		text = thousands(n)
		if s.Bad != nil && s.Bad.At.Step != nil {
			text += " from " + thousands(*s.Bad.At.Step)
		}
	}
	if s.Suspects > 0 {
		if text != "" {
			text += ", "
		}
		text += "? " + thousands(s.Suspects)
		if len(s.Doubtful) > 0 && s.Doubtful[0].First != nil {
			text += " from " + thousands(*s.Doubtful[0].First)
		}
	}
	if text == "" {
		return "–"
	}
	return text
}

func (p *page) runSeries(v *runView) {
	if len(v.Series) == 0 {
		return
	}
	most := 12
	if p.full {
		most = len(v.Series)
	}
	var rows [][]string
	for i := range v.Series {
		if i == most {
			break
		}
		rows = append(rows, seriesCells(&v.Series[i]))
	}
	p.grid("Series", seriesColumns, rows, func(i int) int {
		if nonfinite(&v.Series[i]) > 0 && i < 4 {
			return 1
		}
		return 2 + i/3
	})
	if rest := int64(len(v.Series)-len(rows)) + v.MoreSeries; rest > 0 {
		p.at(3, func() { p.para(2, "", thousands(rest)+" more") })
	}
	for i := range v.Series {
		s := &v.Series[i]
		for j := range s.Doubtful {
			if j == 2 && !p.full || i >= most {
				break
			}
			p.at(1+j, func() { p.para(2, "? ", sentence(doubtLine(s, &s.Doubtful[j]))) })
		}
	}
}

// runColumns head the table of runs.
var runColumns = []gridColumn{{"run", false, 0}, {"broke", false, 1}, {"status", false, 2}, {"steps", false, 3}, {"newest", false, 4}}

func runCells(r *incident.TrackedRun) []string {
	v := &runView{r, 1}
	broke := "–"
	switch o := r.First; {
	case o != nil:
		broke = fmt.Sprintf("%s, %s at %s", shortName(o.Series), valueWords(o.At.Value), pointPlace(&o.At, axisOf(r, o.Series)))
	case suspects(r) > 0:
		broke = "? " + several(int(suspects(r)), "value")
	}
	steps, _ := v.spanWords()
	return []string{runName(r), broke, statusWords(r.Status), strings.TrimPrefix(steps, "steps "), instant(r.Newest)}
}

// shortName keeps a series' name short enough for a cell.
func shortName(name string) string { return cut(name, 24) }

// otherRuns lists the runs beside the one that the first lines speak of.
func (p *page) otherRuns(runs []incident.TrackedRun, lead *runView) {
	if len(runs) < 2 {
		return
	}
	most := 6
	if p.full {
		most = len(runs)
	}
	var rows [][]string
	for i := range runs {
		if &runs[i] != lead.TrackedRun && len(rows) < most {
			rows = append(rows, runCells(&runs[i]))
		}
	}
	p.grid("Other runs", runColumns, rows, func(i int) int { return 1 + i/2 })
	if rest := len(runs) - 1 - len(rows); rest > 0 {
		p.at(2, func() { p.para(2, "", thousands(int64(rest))+" more") })
	}
}

// disagree lists where two trackers of one run say different things.
func (p *page) disagree(all []incident.Statement) {
	if len(all) == 0 {
		return
	}
	p.section("Disagreements")
	for i, s := range all {
		p.at(1+min(i, 3), func() { p.para(2, "! ", p.withCite(s)) })
	}
}

// runRest writes what else is to be known of a run.
func (p *page) runRest(v *runView) {
	if len(v.Cannot) > 0 {
		p.section("What these files cannot show")
		for i, s := range v.Cannot {
			p.at(2+min(i, 2), func() { p.para(2, "- ", sentence(s)) })
		}
	}
	if len(v.Resumes) > 0 {
		p.section("Resumed")
		for i := range v.Resumes {
			p.at(2+min(i, 3), func() { p.para(2, "- ", p.resumeLine(&v.Resumes[i])) })
		}
	}
	if len(v.Damage) > 0 {
		p.section("Damage")
		for i := range v.Damage {
			p.at(2+min(i, 3), func() { p.para(2, "! ", p.damageLine(&v.Damage[i])) })
		}
	}
	if len(v.Settings) > 0 {
		p.section("Settings")
		if p.full {
			for _, s := range v.Settings {
				p.para(2, s.Name+": ", s.Value)
			}
		} else {
			p.at(4, func() { p.para(2, "", listed(settingsOf(v.TrackedRun), 10)) })
		}
		if v.More > 0 {
			p.at(6, func() { p.para(2, "", thousands(v.More)+" more that were not kept") })
		}
	}
	if len(v.Notes) > 0 {
		p.section("Notes")
		for i, s := range v.Notes {
			p.at(4+min(i, 3), func() { p.para(2, "- ", sentence(s)) })
		}
	}
}

// telling are the settings that a failure is most often about.
var telling = lazyre.New(`(?i)batch|(^|[._/])lr$|learning_rate|precision|dtype|fp16|bf16|clip|accum|seq|world_size`)

// settingsOf are a run's settings as name=value, those that failures are about first.
func settingsOf(r *incident.TrackedRun) []string {
	var out, rest []string
	for _, s := range r.Settings {
		text := shortName(s.Name) + "=" + cut(s.Value, 40)
		if telling.MatchString(s.Name) {
			out = append(out, text)
		} else {
			rest = append(rest, text)
		}
	}
	return append(out, rest...)
}

// healed reports whether what was not finite in a series was written again later, and is
// finite there.
func healed(r *incident.TrackedRun, s *incident.TrackedSeries) bool {
	if s.Bad == nil || s.Later != nil || len(s.Segments) < 2 {
		return false
	}
	c := curveOf(r, s)
	return len(c.pieces) > 1 && c.firstBad() == nil
}

// trackerRead says what was read, and what was not.
func (p *page) trackerRead(limits []incident.Statement) {
	p.section("Read")
	p.at(3, func() { p.para(2, "", p.readWords()) })
	for i, l := range limits {
		p.at(1+min(i, 2), func() { p.para(2, "! ", p.withCite(l)) })
	}
}
