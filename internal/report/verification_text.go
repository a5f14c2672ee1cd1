package report

import (
	"io"
	"time"

	"github.com/charmbracelet/lipgloss"

	"github.com/inquest-dev/inquest/internal/incident"
)

// trialSeconds is the time between two instants, negative where it is not known.
func trialSeconds(begun, ended string) float64 {
	a, err1 := time.Parse(time.RFC3339Nano, begun)
	b, err2 := time.Parse(time.RFC3339Nano, ended)
	if err1 != nil || err2 != nil {
		return -1
	}
	return b.Sub(a).Seconds()
}

func writeVerificationText(w io.Writer, t *incident.Trials, o Options) error {
	v := verifyViewOf(t)
	p := newPage(&incident.Incident{}, o)
	plain := lipgloss.NewStyle()
	verdict := map[string]lipgloss.Style{"good": p.good, "bad": p.bad, "plain": p.strong}[verdictTone(v.v.Verdict)]
	for i, l := range v.headed() {
		style := plain
		if i == 0 {
			style = verdict
		}
		p.head(l.label, l.variants, style)
	}
	if len(v.v.Checks) > 0 {
		p.section("Checked")
		for i := range v.v.Checks {
			c := &v.v.Checks[i]
			name, says := verifyCheckWords(c)
			rank := 3 + min(i/4, 2)
			if c.State == incident.No || c.State == incident.Unknown && c.Deciding {
				rank = 1
			}
			p.at(rank, func() { p.para(2, checkMark(c.State)+" ", name+": "+says) })
		}
	}
	if len(v.v.Missing) > 0 {
		p.section("What would decide more")
		for i, m := range v.v.Missing {
			p.at(2+min(i, 3), func() { p.para(2, "? ", sentence(m.Fact+": "+m.How)) })
		}
	}
	if changed := v.changedLines(); len(changed) > 0 {
		p.section(v.changedTitle())
		for i, s := range changed {
			p.at(2+min(i, 3), func() { p.para(2, "- ", sentence(s)) })
		}
	}
	for i := range v.v.Checkpoints {
		if i == 0 {
			p.section("Checkpoints")
		}
		for n, s := range checkpointLines(&v.v.Checkpoints[i]) {
			p.at(2+min(i+n, 5), func() { p.para(2+2*min(n, 1), "", sentence(s)) })
		}
	}
	if len(v.Trials.Trials) > 0 {
		var rows [][]string
		for i := range v.Trials.Trials {
			rows = append(rows, verifiedCells(&v.Trials.Trials[i]))
		}
		p.grid("Trials", verifiedColumns, rows, func(row int) int { return 4 + row/4 })
	}
	if len(v.v.Memory) > 0 {
		p.section("Memory over each run")
		for i, m := range v.v.Memory {
			p.at(6+min(i/3, 3), func() { p.para(2, "- ", sentence(m.Trial+", "+m.Says)) })
		}
	}
	if len(v.Limits) > 0 {
		p.section("Limits")
		for i, s := range v.Limits {
			p.at(4+min(i, 3), func() { p.para(2, "! ", sentence(s)) })
		}
	}
	_, err := io.WriteString(w, p.text())
	return err
}
