package report

import (
	"io"

	"github.com/inquest-dev/inquest/internal/incident"
)

func writeVerificationMarkdown(w io.Writer, t *incident.Trials, o Options) error {
	v := verifyViewOf(t)
	d := &document{words: newWords(&incident.Incident{}), full: o.Full}
	d.heading(1, v.title())
	d.labelled(v.lines())
	if len(v.v.Checks) > 0 {
		d.heading(2, "Checked")
		for i := range v.v.Checks {
			c := &v.v.Checks[i]
			name, says := verifyCheckWords(c)
			mark := map[string]string{incident.Yes: "[x] ", incident.No: "[ ] **no:** "}[c.State]
			if mark == "" {
				mark = "[ ] **not known:** "
			}
			d.item("- "+mark, "", name+": "+says)
		}
	}
	var lacks []string
	for _, m := range v.v.Missing {
		lacks = append(lacks, m.Fact+": "+m.How)
	}
	d.sentences("What would decide more", lacks)
	d.sentences(v.changedTitle(), v.changedLines())
	var found []string
	for i := range v.v.Checkpoints {
		found = append(found, checkpointLines(&v.v.Checkpoints[i])...)
	}
	d.sentences("Checkpoints", found)
	if len(v.Trials.Trials) > 0 {
		d.heading(2, "Trials")
		var rows [][]string
		for i := range v.Trials.Trials {
			rows = append(rows, verifiedCells(&v.Trials.Trials[i]))
		}
		d.grid(verifiedColumns, rows)
		d.WriteString("\n")
	}
	var memory []string
	for _, m := range v.v.Memory {
		if len(memory) == mdRows && !d.full {
			break
		}
		memory = append(memory, m.Trial+", "+m.Says)
	}
	d.sentences("Memory over each run", memory)
	d.sentences("Limits", v.Limits)
	d.foot(v.Tool, v.Schema)
	_, err := io.WriteString(w, d.String())
	return err
}
