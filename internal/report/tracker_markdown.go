package report

import (
	"fmt"
	"io"
	"strings"

	"github.com/inquest-dev/inquest/internal/evidence"
	"github.com/inquest-dev/inquest/internal/incident"
)

// mdPlotWidth is how wide a curve in a code block is.
const mdPlotWidth = 88

// lines are the first lines of a report of a run, in full.
func (v *runView) lines() []labelled {
	return labelledLines([]string{"Run", "Broke", "Last", "Status", "Damage"}, v.runVariants, v.brokeVariants, v.lastVariants, v.statusVariants, v.damageVariants)
}

func labelledLines(labels []string, variants ...func() []string) []labelled {
	var out []labelled
	for i, fn := range variants {
		out = append(out, labelled{labels[i], sentence(fn()[0])})
	}
	return out
}

// runTitle is a run in one line.
func (v *runView) runTitle() string {
	if v.First != nil {
		return fmt.Sprintf("%s: %s", runName(v.TrackedRun), onsetWords(v.First, axisOf(v.TrackedRun, v.First.Series)))
	}
	return runName(v.TrackedRun)
}

func (d *document) labelled(list []labelled) {
	for _, l := range list {
		d.item("- ", "**"+l.Label+":** ", l.Text)
	}
}

// grid writes a table whose cells are prose.
func (d *document) grid(cols []gridColumn, rows [][]string) {
	var head []string
	for _, c := range cols {
		head = append(head, c.title)
	}
	out := make([][]string, len(rows))
	for i, r := range rows {
		for _, cell := range r {
			out[i] = append(out[i], mdText(cell))
		}
	}
	d.table(head, out)
}

func (d *document) statements(title string, list []incident.Statement) {
	if len(list) == 0 {
		return
	}
	d.heading(2, title)
	for _, s := range list {
		d.statement("- ", s)
	}
}

func (d *document) sentences(title string, list []string) {
	if len(list) == 0 {
		return
	}
	d.heading(2, title)
	for _, s := range list {
		d.item("- ", "", sentence(s))
	}
}

// foot closes a report.
func (d *document) foot(t incident.Tool, schema string) {
	if !strings.HasSuffix(d.String(), "\n\n") {
		d.WriteString("\n")
	}
	fmt.Fprintf(d, "---\n%s, %s\n", mdText(toolWords(t)), mdCode(schema))
}

func writeTrackerMarkdown(w io.Writer, t *incident.Tracker, o Options) error {
	t = cleanedTracker(t)
	d := &document{words: newWords(&incident.Incident{Artifacts: t.Artifacts}), full: o.Full}
	v := leadingRun(t.Runs)
	if v == nil {
		d.heading(1, "No run of an experiment tracker could be read")
		d.notRead(t.NotFound)
		d.readList(t.Limits)
		_, err := io.WriteString(w, d.String())
		return err
	}
	d.heading(1, v.runTitle())
	d.labelled(v.lines())
	d.notRead(t.NotFound)
	d.statements("Disagreements", t.Disagree)
	d.run(v, o.ASCII)
	if len(t.Runs) > 1 {
		d.heading(2, "Other runs")
		var rows [][]string
		for i := range t.Runs {
			if &t.Runs[i] != v.TrackedRun {
				rows = append(rows, runCells(&t.Runs[i]))
			}
		}
		d.grid(runColumns, rows)
		for i := range t.Runs {
			if &t.Runs[i] != v.TrackedRun && d.full {
				x := &runView{&t.Runs[i], len(t.Runs)}
				d.heading(2, runName(x.TrackedRun))
				d.labelled(x.lines())
				d.run(x, o.ASCII)
			}
		}
	}
	d.readList(t.Limits)
	d.foot(t.Tool, t.Schema)
	_, err := io.WriteString(w, d.String())
	return err
}

func (d *document) notRead(paths []string) {
	for _, s := range paths {
		d.item("- ", "**Not read:** ", s)
	}
}

// run writes all of a run but its first lines.
func (d *document) run(v *runView, ascii bool) {
	d.curves(v, ascii)
	if len(v.Series) > 0 {
		d.heading(2, "Series")
		var rows [][]string
		for i := range v.Series {
			rows = append(rows, seriesCells(&v.Series[i]))
		}
		d.grid(seriesColumns, rows)
		if v.MoreSeries > 0 {
			d.paragraph("\n" + thousands(v.MoreSeries) + " more were counted only.")
		}
		if suspects(v.TrackedRun) > 0 {
			d.WriteString("\n")
		}
		for i := range v.Series {
			for j := range v.Series[i].Doubtful {
				if j == 3 && !d.full {
					break
				}
				d.item("- ", "", sentence(doubtLine(&v.Series[i], &v.Series[i].Doubtful[j])))
			}
		}
	}
	d.sentences("What these files cannot show", v.Cannot)
	var lines []string
	for i := range v.Resumes {
		lines = append(lines, upper(d.resumeLine(&v.Resumes[i])))
	}
	d.sentences("Resumed", lines)
	lines = nil
	for i := range v.Damage {
		lines = append(lines, upper(d.damageLine(&v.Damage[i])))
	}
	d.sentences("Damage", lines)
	if len(v.Settings) > 0 {
		d.heading(2, "Settings")
		var rows [][]string
		for _, s := range v.Settings {
			rows = append(rows, []string{mdCode(s.Name), mdCode(s.Value)})
		}
		d.table([]string{"setting", "value"}, rows)
		if v.More > 0 {
			d.paragraph("\n" + thousands(v.More) + " more were not kept.")
		}
	}
	d.sentences("Notes", v.Notes)
}

// curves draws a run's loss in a code block, in full its other curves as well.
func (d *document) curves(v *runView, ascii bool) {
	n := 1
	if d.full {
		n = plotsInFull
	}
	m := boxMarks
	if ascii {
		m = asciiMarks
	}
	all := curvesOf(v.TrackedRun)
	for _, s := range all[:min(n, len(all))] {
		c := curveOf(v.TrackedRun, s)
		lines := (&textPlot{width: mdPlotWidth, rows: plotRows, ascii: ascii}).draw(c)
		if lines == nil {
			continue
		}
		d.heading(2, plotTitle(s))
		d.fence("text", lines)
		d.WriteString("\n")
		d.paragraph(c.caption(scaleOf([]*curve{c}, false), string(m.bad), string(m.doubt), "dotted"))
	}
}

// readList says what was read, and what was not.
func (d *document) readList(limits []incident.Statement) {
	d.heading(2, "Read")
	d.paragraph(upper(d.readWords()))
	for _, l := range limits {
		d.statement("- ", l)
	}
}

func writeAlignmentMarkdown(w io.Writer, a *incident.Alignment, o Options) error {
	a = cleanedAlignment(a)
	d := &document{words: newWords(&incident.Incident{Artifacts: a.Artifacts}), full: o.Full}
	v := &alignView{a, d.words}
	d.heading(1, upper(v.orderVariants()[0]))
	d.labelled(v.lines())
	d.notRead(a.NotFound)
	d.statements("Disagreements", a.Disagree)
	if len(a.Rows) > 0 {
		d.heading(2, "Timeline, by the tracker's clock")
		var rows [][]string
		for _, i := range v.shown(mdRows, d.full) {
			rows = append(rows, v.rowCells(&a.Rows[i]))
		}
		d.grid(alignColumns, rows)
		if n := len(a.Rows) - len(rows); n > 0 {
			d.paragraph("\n" + several(n, "line") + " that decide less are left out.")
		}
	}
	var lines []string
	for i := range a.Clocks {
		lines = append(lines, upper(v.clockLine(&a.Clocks[i])))
	}
	d.sentences("Clocks", lines)
	lines = nil
	for i := range a.After {
		lines = append(lines, v.afterLine(&a.After[i])+": "+a.After[i].Basis)
	}
	d.sentences("Recorded after the end", lines)
	if len(a.Runs) > 0 {
		d.heading(2, "Runs")
		var rows [][]string
		for i := range a.Runs {
			rows = append(rows, runCells(&a.Runs[i]))
		}
		d.grid(runColumns, rows)
	}
	for i := range a.Runs {
		if d.full || i == 0 {
			d.curves(&runView{&a.Runs[i], len(a.Runs)}, o.ASCII)
		}
	}
	d.readList(a.Limits)
	d.foot(a.Tool, a.Schema)
	_, err := io.WriteString(w, d.String())
	return err
}

func writeRepairMarkdown(w io.Writer, r *incident.Repair, o Options) error {
	r = cleanedRepair(r)
	d := &document{words: newWords(&incident.Incident{}), full: o.Full}
	v := &repairView{r}
	d.heading(1, "A repaired copy of "+r.Source)
	d.labelled(v.lines())
	names, list := v.touched(d.full)
	if len(list) > 0 {
		d.heading(2, "What became of the values")
		var rows [][]string
		for i, s := range list {
			rows = append(rows, append([]string{names[i]}, accountCells(s)...))
		}
		d.grid(accountColumns, rows)
		d.WriteString("\n")
		for i, s := range list {
			if i == mdRows && !d.full {
				break
			}
			for n := range s.Segments {
				d.item("- ", "", sentence(names[i]+", "+segmentWords(&s.Segments[n])))
			}
			for n := range s.Suspicious {
				d.item("- ", "**left in:** ", sentence(names[i]+", "+segmentWords(&s.Suspicious[n])))
			}
		}
	}
	runs := mdRows
	if d.full {
		runs = len(r.Runs)
	}
	d.sentences("How", v.how(runs))
	d.sentences("Left as it is", r.Left)
	var lines []string
	for i := range r.Damage {
		lines = append(lines, upper(d.damageLine(&r.Damage[i])))
	}
	d.sentences("Damage in the source", lines)
	if len(r.Checks) > 0 {
		d.heading(2, "Checked")
		for i := range r.Checks {
			mark, text := checkLine(&r.Checks[i])
			d.item("- "+mark, "", text)
		}
	}
	if len(r.Files) > 0 {
		d.heading(2, "Source")
		var rows [][]string
		for _, f := range r.Files {
			same := "yes"
			if !f.Same {
				same = "**no**"
			}
			rows = append(rows, []string{mdCode(f.Path), evidence.Bytes(f.Size), mdText(instant(&f.ModTime)), mdCode(f.SHA256), same})
		}
		d.table([]string{"file", "size", "changed", "SHA-256", "unchanged"}, rows)
	}
	d.foot(r.Tool, r.Schema)
	_, err := io.WriteString(w, d.String())
	return err
}
