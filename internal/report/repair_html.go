package report

import (
	"html/template"
	"io"

	"github.com/inquest-dev/inquest/internal/incident"
)

// Bounds of one page of a repaired copy.
const (
	repairRows  = 400
	repairFiles = 1000
)

// A repairPage is what the template sees of a repaired copy.
type repairPage struct {
	Title      string
	Tone       string
	Verdict    []labelled
	Rows       [][]string
	Left       int64
	Segments   []string
	Suspicious []string
	How        []string
	LeftAsIs   []string
	Damaged    []string
	Checks     []incident.RepairCheck
	Files      []incident.RepairFile
	FilesLeft  int64
	Tool       incident.Tool
	Schema     string
	Policy     template.HTML
	Style      template.CSS
}

// writeRepairHTML writes one page without a script.
func writeRepairHTML(w io.Writer, r *incident.Repair, _ Options) error {
	r = cleanedRepair(r)
	v := &repairView{r}
	words := newWords(&incident.Incident{})
	p := &repairPage{Title: "A repaired copy of " + oneLine(r.Source), Tone: "good", Verdict: v.lines(), LeftAsIs: r.Left, Checks: r.Checks, Tool: r.Tool, Schema: r.Schema}
	if !v.intact() {
		p.Tone = "bad"
	}
	names, list := v.touched(true)
	for i, s := range list {
		if i == repairRows {
			p.Left = int64(len(list) - i)
			break
		}
		p.Rows = append(p.Rows, append([]string{names[i]}, accountCells(s)...))
		for n := range s.Segments {
			if len(p.Segments) < repairRows {
				p.Segments = append(p.Segments, names[i]+", "+segmentWords(&s.Segments[n]))
			}
		}
		for n := range s.Suspicious {
			if len(p.Suspicious) < repairRows {
				p.Suspicious = append(p.Suspicious, names[i]+", "+segmentWords(&s.Suspicious[n]))
			}
		}
	}
	p.How = v.how(pageRuns)
	for i := range r.Damage[:min(len(r.Damage), repairRows)] {
		p.Damaged = append(p.Damaged, upper(words.damageLine(&r.Damage[i])))
	}
	p.Files = r.Files[:min(len(r.Files), repairFiles)]
	p.FilesLeft = int64(len(r.Files) - len(p.Files))
	style := asset("page.css") + asset("tracker/page.css")
	p.Style, p.Policy = template.CSS(style), policyOf(style, "")
	return executeTracker(w, "repair.html", p)
}
