package report

import (
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"

	"github.com/charmbracelet/lipgloss"

	"github.com/inquest-dev/inquest/internal/incident"
)

// cleanedAlignment is a copy of a in which no text can steer or reorder what surrounds it.
func cleanedAlignment(a *incident.Alignment) *incident.Alignment {
	bare := *a
	bare.Runs = barePoints(a.Runs)
	out := copyClean(reflect.ValueOf(&bare)).Interface().(*incident.Alignment)
	putPoints(out.Runs, a.Runs)
	return out
}

// An alignView is an alignment as reports speak of it.
type alignView struct {
	*incident.Alignment
	*words
}

func (v *alignView) run(i int) string {
	if i < 0 || i >= len(v.Runs) {
		return "a run"
	}
	return runName(&v.Runs[i])
}

// orderVariants say which came first.
func (v *alignView) orderVariants() []string {
	o := &v.Order
	bad, memory := "a value that is not finite", "a memory failure"
	if n := o.Nonfinite; n != nil {
		axis := ""
		if o.Run != nil && *o.Run >= 0 && *o.Run < len(v.Runs) {
			axis = axisOf(&v.Runs[*o.Run], n.Series)
		}
		bad = onsetWords(n, axis)
	}
	if o.Memory != nil {
		memory = strings.TrimSuffix(oneLine(o.Memory.Text), ".")
	}
	switch o.Answer {
	case "nonfinite first":
		return []string{"the non-finite value: " + bad + ", before " + memory, "non-finite first: " + bad + "; then " + memory, "non-finite first: " + bad, "the non-finite value first"}
	case "memory first":
		return []string{"the memory failure: " + memory + ", before " + bad, "memory first: " + memory + "; then " + bad, "memory first: " + memory, "the memory failure first"}
	case "only nonfinite":
		return []string{"only a non-finite value: " + bad + "; no memory failure is on record", "only a non-finite value: " + bad}
	case "only memory":
		return []string{"only a memory failure: " + memory + "; no non-finite value is on record", "only a memory failure: " + memory}
	case "neither":
		return []string{"neither a non-finite value nor a memory failure is on record", "neither is on record"}
	}
	switch {
	case o.Nonfinite != nil && o.Memory != nil:
		return []string{"not known which came first: " + bad + "; " + memory, "not known: " + bad + "; " + memory}
	case o.Nonfinite != nil:
		return []string{"not known: " + bad}
	case o.Memory != nil:
		return []string{"not known: " + memory}
	}
	return []string{"not known"}
}

// basisVariants say why that is known, or why not.
func (v *alignView) basisVariants() []string {
	b, m := oneLine(v.Order.Basis), oneLine(v.Order.Missing)
	switch {
	case b == "" && m == "":
		return []string{"nothing to be ordered"}
	case m == "":
		return []string{b}
	case b == "":
		return []string{"missing: " + m}
	}
	return []string{b + "; missing: " + m, b}
}

// clockLine says how a log's clock stands to a tracker's.
func (v *alignView) clockLine(c *incident.RunClock) string {
	if c.Pairs == 0 {
		s := "no step with a time in both " + v.name(c.Log) + " and " + v.run(c.Run)
		if c.Basis != "" {
			s += ": " + oneLine(c.Basis)
		}
		return s
	}
	s := fmt.Sprintf("%s %s %s, ± %s, from %s", v.name(c.Log), offsetWords(c.Offset), v.run(c.Run), secondsWords(c.Bound), several(c.Pairs, "shared step"))
	if c.Means != "" && c.Means != "unknown" {
		s = oneLine(c.Means) + ": " + s
	}
	if c.Applied {
		return s + "; taken into account"
	}
	return s + "; times are not compared"
}

func (v *alignView) name(artifact string) string {
	if s, ok := v.short[artifact]; ok {
		return oneLine(s)
	}
	return oneLine(artifact)
}

// offsetWords say how far a log's clock is from a tracker's.
func offsetWords(s float64) string {
	switch {
	case s == 0:
		return "agrees with"
	case s < 0:
		return "is " + secondsWords(-s) + " behind"
	}
	return "is " + secondsWords(s) + " ahead of"
}

// secondsWords print a time span.
func secondsWords(s float64) string {
	switch {
	case s >= 86400:
		return fmt.Sprintf("%.4g days", s/86400)
	case s >= 3600:
		return fmt.Sprintf("%.4g h", s/3600)
	case s >= 120:
		return fmt.Sprintf("%.3g min", s/60)
	}
	return fmt.Sprintf("%.3g s", s)
}

// clockVariants say it of the clock that decides most.
func (v *alignView) clockVariants() []string {
	if len(v.Clocks) == 0 {
		return []string{"no run and log share a step: clocks are not compared", "clocks are not compared"}
	}
	best := 0
	for i := range v.Clocks {
		if v.Clocks[i].Pairs > v.Clocks[best].Pairs {
			best = i
		}
	}
	line := v.clockLine(&v.Clocks[best])
	c := &v.Clocks[best]
	if c.Pairs == 0 {
		return []string{line, "no step with a time in both"}
	}
	short := fmt.Sprintf("%s: %s, ± %s, %s", oneLine(c.Means), strings.TrimSuffix(strings.TrimPrefix(offsetWords(c.Offset), "is "), " of"), secondsWords(c.Bound), several(c.Pairs, "step"))
	return []string{line, short}
}

// afterLine says what a tracker went on recording after the log's last word.
func (v *alignView) afterLine(a *incident.AfterDeath) string {
	s := fmt.Sprintf("%s recorded %s after %s, from %s on", v.run(a.Run), several(int(a.Points), "point"), lower(oneLine(a.Death.Text)), pointPlace(&a.First, ""))
	if a.Status != "" {
		s += fmt.Sprintf("; it still says %q", oneLine(a.Status))
	}
	return s
}

func (v *alignView) afterVariants() []string {
	if len(v.After) == 0 {
		return []string{"no tracker recorded anything after the end that the logs show", "nothing was recorded after the end"}
	}
	return []string{v.afterLine(&v.After[0]), fmt.Sprintf("%s recorded after the end", several(int(v.After[0].Points), "point"))}
}

// againstVariants say what was set against what.
func (v *alignView) againstVariants() []string {
	if len(v.Runs) == 0 {
		return []string{"no run of a tracker could be read"}
	}
	var runs []string
	for i := range v.Runs {
		runs = append(runs, runName(&v.Runs[i]))
	}
	var logs []string
	for _, l := range v.Logs {
		logs = append(logs, v.name(l))
	}
	if len(logs) == 0 {
		return []string{listed(runs, 3) + " against no log", fmt.Sprintf("%s against no log", several(len(runs), "run"))}
	}
	return []string{listed(runs, 3) + " against " + listed(logs, 3), listed(runs, 1) + " against " + listed(logs, 1), fmt.Sprintf("%s, %s", several(len(runs), "run"), several(len(logs), "log"))}
}

// lines are the first lines of a report, in full.
func (v *alignView) lines() []labelled {
	return labelledLines([]string{"Order", "Basis", "Clock", "After", "Of"}, v.orderVariants, v.basisVariants, v.clockVariants, v.afterVariants, v.againstVariants)
}

func writeAlignmentText(w io.Writer, a *incident.Alignment, o Options) error {
	a = cleanedAlignment(a)
	p := newPage(&incident.Incident{Artifacts: a.Artifacts}, o)
	v := &alignView{a, p.words}
	plain := lipgloss.NewStyle()
	style := p.bad
	if a.Order.Answer == "neither" {
		style = p.good
	}
	after := plain
	if len(a.After) > 0 {
		after = p.bad
	}
	p.head("Order", v.orderVariants(), style)
	p.head("Basis", v.basisVariants(), plain)
	p.head("Clock", v.clockVariants(), plain)
	p.head("After", v.afterVariants(), after)
	p.head("Of", v.againstVariants(), plain)
	p.unread(a.NotFound)
	p.disagree(a.Disagree)
	p.alignRows(v)
	p.alignClocks(v)
	if len(a.After) > 0 {
		p.section("Recorded after the end")
		for i := range a.After {
			p.at(2+min(i, 3), func() { p.para(2, "! ", sentence(v.afterLine(&a.After[i])+": "+a.After[i].Basis)) })
		}
	}
	if len(a.Runs) > 0 {
		var rows [][]string
		for i := range a.Runs {
			rows = append(rows, runCells(&a.Runs[i]))
		}
		p.grid("Runs", runColumns, rows, func(i int) int { return 3 + i/3 })
	}
	if p.full {
		for i := range a.Runs {
			p.runPlots(&runView{&a.Runs[i], len(a.Runs)})
		}
	}
	p.trackerRead(a.Limits)
	_, err := io.WriteString(w, p.text())
	return err
}

// alignColumns head the common timeline.
var alignColumns = []gridColumn{{"time", false, 3}, {"step", true, 1}, {"of", false, 4}, {"what", false, 0}}

func (v *alignView) rowCells(r *incident.AlignedRow) []string {
	cells := []string{"", "", cut(r.Source, 28), oneLine(r.Text)}
	if r.Time != nil {
		cells[0] = instant(r.Time)
	}
	if r.Step != nil {
		cells[1] = thousands(*r.Step)
	}
	return cells
}

// decisive are the kinds of rows that a short timeline keeps longest.
var decisive = map[string]int{"nonfinite": 1, "memory": 1, "after-death": 1, "fault": 2, "end": 2, "resume": 2, "start": 3}

func rowRank(r *incident.AlignedRow) int {
	if n := decisive[r.Kind]; n > 0 {
		return n
	}
	return 5
}

// shown are the indexes of at most n rows, those that decide most, in their order.
func (v *alignView) shown(n int, all bool) []int {
	var out []int
	for rank := 1; rank <= 5; rank++ {
		for i := range v.Rows {
			if rowRank(&v.Rows[i]) == rank && (all || len(out) < n) {
				out = append(out, i)
			}
		}
	}
	slices.Sort(out)
	return out
}

func (p *page) alignRows(v *alignView) {
	if len(v.Rows) == 0 {
		return
	}
	var rows [][]string
	for i := range v.Rows {
		rows = append(rows, v.rowCells(&v.Rows[i]))
	}
	p.grid("Timeline, by the tracker's clock", alignColumns, rows, func(i int) int { return rowRank(&v.Rows[i]) })
}

func (p *page) alignClocks(v *alignView) {
	if len(v.Clocks) == 0 {
		return
	}
	p.section("Clocks")
	for i := range v.Clocks {
		c := &v.Clocks[i]
		text := v.clockLine(c)
		if c.Pairs > 0 && c.Basis != "" {
			text += " (" + strings.TrimSuffix(c.Basis, ".") + ")"
		}
		p.at(3+min(i, 3), func() { p.para(2, "- ", sentence(text)) })
	}
}
