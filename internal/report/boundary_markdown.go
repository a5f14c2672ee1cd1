package report

import (
	"io"

	"github.com/inquest-dev/inquest/internal/incident"
)

func writeBoundaryMarkdown(w io.Writer, t *incident.Trials, o Options) error {
	v := newBoundaryView(t)
	d := &document{words: newWords(&incident.Incident{}), full: o.Full}
	d.heading(1, upper(v.shortAnswer()))
	d.labelled(v.lines())
	if len(v.Edges) > 1 {
		d.heading(2, "Edges of "+v.Edges[0].Name)
		var rows [][]string
		for i := range v.Edges {
			var cells []string
			for _, c := range edgeCells(&v.Edges[i]) {
				cells = append(cells, mdText(c))
			}
			rows = append(rows, cells)
		}
		d.table(edgeColumns, rows)
	}
	if s := v.Smallest; s != nil {
		var lines []string
		for i := range s.Reduced {
			lines = append(lines, reducedWords(&s.Reduced[i]))
		}
		d.sentences("Made smaller", lines)
	}
	if rows := v.rows(); len(rows) > 0 {
		d.heading(2, "By value")
		var cells [][]string
		for i := range rows {
			cells = append(cells, []string{mdCode(assignments(rows[i].values)), mdText(rows[i].came()), mdText(rows[i].peakWords())})
		}
		d.table([]string{"value", "came of it", "peak"}, cells)
		d.WriteString("\n")
		for i := range v.Edges {
			if s := fitWords(&v.Edges[i]); s != "" {
				d.paragraph(sentence(upper(s)))
			}
		}
	}
	d.sentences("What to know", v.Limits)
	d.heading(2, "Command")
	d.fence("shell", []string{commandWords(v.Template)})
	d.WriteString("\n")
	d.foot(v.Tool, v.Schema)
	_, err := io.WriteString(w, d.String())
	return err
}
