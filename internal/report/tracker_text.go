package report

import (
	"fmt"
	"io"
	"reflect"

	"github.com/charmbracelet/lipgloss"

	"github.com/inquest-dev/inquest/internal/incident"
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
	p.runSeries(v)
	p.otherRuns(t.Runs, v)
	p.disagree(t.Disagree)
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

func (p *page) runSeries(v *runView) {
	p.section("Series")
	for i := range v.Series {
		s := &v.Series[i]
		if i == 12 && !p.full {
			p.at(3, func() { p.para(2, "", fmt.Sprintf("%s more", thousands(int64(len(v.Series)-i)+v.MoreSeries))) })
			break
		}
		text := fmt.Sprintf("%s: %s", s.Name, several(int(s.Count), "value"))
		if s.Last != nil {
			text += ", last " + unitWords(s, s.Last.Value)
		}
		if s.Bad != nil {
			text += ", first non-finite at " + pointPlace(&s.Bad.At, s.Axis)
		}
		p.at(2+i/4, func() { p.para(2, "", text) })
	}
}

// otherRuns lists the runs that the first lines do not speak of.
func (p *page) otherRuns(runs []incident.TrackedRun, lead *runView) {
	if len(runs) < 2 {
		return
	}
	p.section("Other runs")
	n := 0
	for i := range runs {
		if &runs[i] == lead.TrackedRun {
			continue
		}
		if n == 6 && !p.full {
			p.at(3, func() { p.para(2, "", fmt.Sprintf("%s more", thousands(int64(len(runs)-1-n)))) })
			break
		}
		v := &runView{&runs[i], 1}
		p.at(2+n/2, func() { p.para(2, "", v.runVariants()[1]+"; broke: "+v.brokeVariants()[0]+"; "+statusWords(v.Status)) })
		n++
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
		for i, s := range v.Settings {
			p.at(5+min(i/4, 3), func() { p.para(2, s.Name+": ", s.Value) })
		}
	}
	if len(v.Notes) > 0 {
		p.section("Notes")
		for i, s := range v.Notes {
			p.at(4+min(i, 3), func() { p.para(2, "- ", sentence(s)) })
		}
	}
}

// trackerRead says what was read, and what was not.
func (p *page) trackerRead(limits []incident.Statement) {
	p.section("Read")
	p.at(3, func() { p.para(2, "", p.readWords()) })
	for i, l := range limits {
		p.at(1+min(i, 2), func() { p.para(2, "! ", p.withCite(l)) })
	}
}
