package report

import (
	"bytes"
	"io"
	"reflect"
	"strings"

	"github.com/charmbracelet/lipgloss"

	"github.com/inquest-dev/inquest/internal/incident"
)

func writeKeptText(w io.Writer, k *incident.Kept, o Options) error {
	v := newKeptView(k)
	p := newPage(&incident.Incident{}, o)
	plain := lipgloss.NewStyle()
	status := p.bad
	if v.Status == incident.Confirmed {
		status = p.good
	}
	p.head("Failed", v.failedVariants(), p.strong)
	p.head("Status", v.statusVariants(), status)
	p.head("Cause", v.causeVariants(), plain)
	p.head("Fix", v.fixVariants(), plain)
	p.head("Check", v.checkVariants(), plain)
	p.section("Incident " + v.ID)
	p.at(1, func() { p.para(2, "", sentence(v.Says)) })
	p.at(2, func() { p.para(2, "", sentence(upper(v.whenWords()))) })
	if v.Symptom != "" {
		p.section("Symptom")
		p.at(1, func() { p.quote(2, v.Symptom) })
		for i := range v.Table {
			if s := peakWords(v.Table[i].Peak); v.Table[i].Trial == v.Original && s != "" {
				p.at(3, func() { p.para(2, "", "Its peak: "+sentence(s)) })
			}
		}
	}
	p.keptChange(v)
	p.keptTrials(v)
	p.keptActs(v)
	if lines := environmentLines(v.Environment); len(lines) > 0 {
		p.section("Environment of the failure")
		for i, l := range lines {
			p.at(6+i/4, func() { p.para(2, "", l.Label+": "+l.Text) })
		}
	}
	if len(v.Problems) > 0 {
		p.section("Not read, or not known")
		for i, s := range v.Problems {
			p.at(2+min(i, 4), func() { p.para(2, "! ", sentence(upper(s))) })
		}
	}
	if _, err := io.WriteString(w, p.text()); err != nil {
		return err
	}
	if !o.Full || v.diagnosis == nil {
		return nil
	}
	var b bytes.Buffer
	b.WriteString("\n" + p.strong.Render("Evidence: the diagnosis of the failure") + "\n\n")
	if err := Write(&b, "text", v.diagnosis, o); err != nil {
		return err
	}
	_, err := w.Write(b.Bytes())
	return err
}

// keptChange writes what was changed, what did not help, and how all is taken back.
func (p *page) keptChange(v *keptView) {
	if f := v.Fix; f != nil {
		p.section(v.solvedTitle())
		if !f.Single {
			p.at(1, func() { p.para(2, "", "Not proved: more than one thing had changed when it succeeded.") })
		}
		for i, c := range f.Changes {
			p.at(1+min(i, 4), func() { p.para(2, "- ", sentence(upper(c.Text))) })
		}
		for i, s := range f.Unknown {
			p.at(4+min(i, 3), func() { p.para(2, "? ", sentence(upper(s))) })
		}
		if v.Rollback != "" {
			p.at(2, func() { p.para(2, "", "To undo: "+sentence(v.Rollback)) })
		}
	}
	if len(v.NotHelped) > 0 {
		p.section("What did not help")
		for i, n := range v.NotHelped {
			p.at(1+min(i, 4), func() { p.para(2, "- ", notHelped(n)) })
		}
	}
}

func (p *page) keptTrials(v *keptView) {
	var rows [][]string
	most := len(v.Table)
	if !p.full {
		most = min(most, 12)
	}
	// The first and the newest tell the story.
	skip := len(v.Table) - most
	for i := range v.Table {
		if i > 0 && i <= skip {
			continue
		}
		rows = append(rows, v.row(&v.Table[i]))
	}
	if len(rows) == 0 {
		return
	}
	p.grid("Trials", keptColumns, rows, func(row int) int { return 1 + min(row/3, 3) })
	if skip > 0 {
		p.at(2, func() { p.para(2, "", thousands(int64(skip))+" more, between the first and the next") })
	}
}

func (p *page) keptActs(v *keptView) {
	if len(v.Acts) == 0 {
		return
	}
	p.section("What was done")
	for i := range v.Acts {
		a := &v.Acts[i]
		kind, text := actWords(a)
		if text != "" {
			kind += ": "
		}
		mark := strings.TrimSuffix(stampWords(a.At), " UTC")
		p.at(2+min(len(v.Acts)-1-i, 4), func() { p.para(2, mark+"  ", kind+text) })
	}
}

// incidentColumns head a list of incidents.
var incidentColumns = []gridColumn{{"id", false, 1}, {"status", false, 2}, {"last failed (UTC)", false, 3}, {"trials", true, 5}, {"scenario", false, 4}, {"what failed", false, 0}}

func incidentCells(l *incident.KeptLine) []string {
	at := strings.TrimSuffix(strings.TrimSuffix(stampWords(l.Last), " UTC"), " ")
	if len(at) == len("2006-01-02 15:04:05") {
		at = at[:len("2006-01-02 15:04")]
	}
	return []string{l.ID, statusOf(l.Status, l.Closed), at, thousands(int64(l.Trials)), l.Scenario, strings.TrimSuffix(l.Title, ".")}
}

// hiddenWords say what a list leaves out.
func hiddenWords(l *incident.Incidents) string {
	switch {
	case len(l.Incidents) == 0 && l.Hidden == 0 && l.Trials == 0:
		return "Nothing is kept in " + l.Store + " yet: inquest run COMMAND records a run."
	case len(l.Incidents) == 0 && l.Hidden == 0:
		return "No incident: none of " + several(l.Trials, "trial") + " in " + l.Store + " failed."
	case l.Hidden > 0 && len(l.Incidents) == 0:
		return several(l.Hidden, "incident") + " in " + l.Store + ", none as asked for; --all shows closed ones too."
	case l.Hidden > 0:
		return several(l.Hidden, "more incident") + " not shown; --all shows closed ones too."
	}
	return ""
}

func writeIncidentsText(w io.Writer, l *incident.Incidents, o Options) error {
	l = cleanedList(l)
	p := newPage(&incident.Incident{}, o)
	var rows [][]string
	for i := range l.Incidents {
		rows = append(rows, incidentCells(&l.Incidents[i]))
	}
	if len(rows) > 0 {
		p.grid("Incidents in "+l.Store, incidentColumns, rows, func(row int) int { return 1 + row })
	}
	if s := hiddenWords(l); s != "" {
		p.para(0, "", s)
	}
	for i, s := range l.Problems {
		p.at(1+min(i, 3), func() { p.para(0, "! ", sentence(upper(s))) })
	}
	_, err := io.WriteString(w, strings.TrimPrefix(p.text(), "\n"))
	return err
}

func cleanedList(l *incident.Incidents) *incident.Incidents {
	return copyClean(reflect.ValueOf(l)).Interface().(*incident.Incidents)
}
