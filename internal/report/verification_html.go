package report

import (
	"fmt"
	"html/template"
	"io"

	"github.com/inquest-dev/inquest/internal/incident"
)

// verifyRows bounds the rows of each part of a page.
const verifyRows = 400

// A verifyPage is what the template sees of a verification.
type verifyPage struct {
	Title, Tone, Kicker string
	Verdict             []labelled
	Checks              []verifyRow
	Missing             []incident.VerificationMissing
	Changed             []string
	ChangedTitle        string
	Checkpoints         [][]string
	Titles              []string
	Rows                [][]string
	Memory              []string
	Limits              []string
	Tool                incident.Tool
	Schema              string
	Policy              template.HTML
	Style               template.CSS
}

// A verifyRow is one check on a page.
type verifyRow struct {
	State, Box, Name, Says string
	Figures                []incident.Figure
}

// writeVerificationHTML writes one page without a script.
func writeVerificationHTML(w io.Writer, t *incident.Trials, _ Options) error {
	v := verifyViewOf(t)
	p := &verifyPage{Title: v.title(), Tone: verdictTone(v.v.Verdict), Kicker: "verification", Verdict: v.lines(), Missing: v.v.Missing, Changed: v.changedLines(), ChangedTitle: v.changedTitle(), Limits: v.Limits, Tool: v.Tool, Schema: v.Schema}
	if v.By == incident.ByRecheck {
		p.Kicker = "recheck"
	}
	for i := range v.v.Checks {
		c := &v.v.Checks[i]
		name, says := verifyCheckWords(c)
		p.Checks = append(p.Checks, verifyRow{c.State, map[string]string{incident.Yes: "✓", incident.No: "✗"}[c.State], name, says, c.Figures})
	}
	for i := range v.v.Checkpoints {
		p.Checkpoints = append(p.Checkpoints, checkpointLines(&v.v.Checkpoints[i]))
	}
	for i := range v.Trials.Trials[:min(len(v.Trials.Trials), verifyRows)] {
		p.Rows = append(p.Rows, verifiedCells(&v.Trials.Trials[i]))
	}
	for _, m := range v.v.Memory[:min(len(v.v.Memory), verifyRows)] {
		p.Memory = append(p.Memory, m.Trial+", "+m.Says)
	}
	for _, c := range verifiedColumns {
		p.Titles = append(p.Titles, c.title)
	}
	style := asset("page.css") + asset("tracker/page.css")
	p.Style, p.Policy = template.CSS(style), policyOf(style, "")
	tmpl, err := template.New("verification").Funcs(template.FuncMap{"tool": toolWords, "sentence": sentence, "upper": upper, "right": func(i int) bool { return verifiedColumns[i].right }}).ParseFS(assets, "assets/shared/*.html", "assets/verification/*.html")
	if err != nil {
		return fmt.Errorf("write report: %w", err)
	}
	if err := tmpl.ExecuteTemplate(w, "verification.html", p); err != nil {
		return fmt.Errorf("write report: %w", err)
	}
	return nil
}
