package report

import (
	"fmt"
	"io"
	"reflect"

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

// orderAnswers are the answers of an order in words.
var orderAnswers = map[string]string{
	"nonfinite first": "the non-finite value came first", "memory first": "the memory failure came first", "only nonfinite": "only a non-finite value: no memory failure is on record",
	"only memory": "only a memory failure: no non-finite value is on record", "neither": "neither a non-finite value nor a memory failure is on record", "unknown": "which came first is not known",
}

// orderVariants say which came first.
func (v *alignView) orderVariants() []string {
	o := &v.Order
	s := orderAnswers[o.Answer]
	if s == "" {
		s = oneLine(o.Answer)
	}
	long := s
	if n := o.Nonfinite; n != nil {
		axis := ""
		if o.Run != nil && *o.Run >= 0 && *o.Run < len(v.Runs) {
			axis = axisOf(&v.Runs[*o.Run], n.Series)
		}
		long += ": " + onsetWords(n, axis)
	}
	if o.Memory != nil {
		if o.Nonfinite == nil {
			long += ": " + oneLine(o.Memory.Text)
		} else {
			long += "; " + oneLine(o.Memory.Text)
		}
	}
	return []string{long, s}
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
	if c.Means != "" {
		s += ": " + oneLine(c.Means)
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
	if n := len(v.Clocks) - 1; n > 0 {
		return []string{line + fmt.Sprintf("; %d more below", n), line}
	}
	return []string{line}
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

func writeAlignmentText(w io.Writer, a *incident.Alignment, o Options) error {
	a = cleanedAlignment(a)
	p := newPage(&incident.Incident{Artifacts: a.Artifacts}, o)
	v := &alignView{a, p.words}
	plain := lipgloss.NewStyle()
	style := p.bad
	if a.Order.Answer == "neither" {
		style = p.good
	}
	p.head("Order", v.orderVariants(), style)
	p.head("Basis", v.basisVariants(), plain)
	p.head("Clock", v.clockVariants(), plain)
	p.head("After", v.afterVariants(), plain)
	p.head("Of", v.againstVariants(), plain)
	p.unread(a.NotFound)
	if len(a.Rows) > 0 {
		p.section("Timeline")
		for i, r := range a.Rows {
			p.at(2+i/6, func() { p.para(2, "", v.rowLine(&r)) })
		}
	}
	p.disagree(a.Disagree)
	p.trackerRead(a.Limits)
	_, err := io.WriteString(w, p.text())
	return err
}

func (v *alignView) rowLine(r *incident.AlignedRow) string {
	s := oneLine(r.Source) + ": " + oneLine(r.Text)
	if r.Step != nil {
		s = "step " + thousands(*r.Step) + ", " + s
	}
	if r.Time != nil {
		s = instant(r.Time) + ", " + s
	}
	return s
}
