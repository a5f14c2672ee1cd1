package report

import (
	"bytes"
	"fmt"
	"io"
	"strings"

	"github.com/inquest-dev/inquest/internal/incident"
)

func writeKeptMarkdown(w io.Writer, k *incident.Kept, o Options) error {
	v := newKeptView(k)
	d := &document{words: newWords(&incident.Incident{}), full: o.Full}
	d.heading(1, strings.TrimSuffix(v.Title, "."))
	lines := v.lines()
	d.labelled(lines[:4])
	fmt.Fprintf(d, "- **Check:** %s\n", mdCode(v.checkVariants()[len(v.checkVariants())-1]))
	d.heading(2, "Incident "+v.ID)
	d.paragraph(sentence(v.Says))
	d.paragraph(sentence(upper(v.whenWords())))
	if v.Symptom != "" {
		d.heading(2, "Symptom")
		d.fence("text", strings.Split(v.Symptom, "\n"))
	}
	if f := v.Fix; f != nil {
		d.heading(2, v.solvedTitle())
		if !f.Single {
			d.paragraph("Not proved: more than one thing had changed when it succeeded.")
		}
		for _, c := range f.Changes {
			d.item("- ", "", sentence(upper(c.Text)))
		}
		for _, s := range f.Unknown {
			d.item("- ", "**not known:** ", sentence(upper(s)))
		}
		if v.Rollback != "" {
			d.item("- ", "**to undo:** ", sentence(v.Rollback))
		}
	}
	if len(v.NotHelped) > 0 {
		d.heading(2, "What did not help")
		for _, n := range v.NotHelped {
			d.item("- ", "", notHelped(n))
		}
	}
	if len(v.FollowUp) > 0 {
		d.heading(2, "Follow-up")
		d.fence("sh", []string{commandLine(v.FollowUp)})
	}
	if len(v.Table) > 0 {
		d.heading(2, "Trials")
		var rows [][]string
		for i := range v.Table {
			rows = append(rows, v.row(&v.Table[i]))
		}
		d.grid(keptColumns, rows)
		d.WriteString("\n")
	}
	if len(v.Acts) > 0 {
		d.heading(2, "What was done")
		for i := range v.Acts {
			kind, text := actWords(&v.Acts[i])
			d.item("- ", "**"+stampWords(v.Acts[i].At)+", "+mdText(kind)+"** ", text)
		}
	}
	if lines := environmentLines(v.Environment); len(lines) > 0 {
		d.heading(2, "Environment of the failure")
		d.labelled(lines)
	}
	d.sentences("Not read, or not known", v.Problems)
	if o.Full && v.diagnosis != nil {
		var b bytes.Buffer
		if err := Write(&b, "text", v.diagnosis, Options{Width: 100, Full: true, ASCII: o.ASCII}); err != nil {
			return err
		}
		d.heading(2, "Evidence: the diagnosis of the failure")
		d.raw(strings.Split(strings.TrimRight(b.String(), "\n"), "\n"))
	}
	if !strings.HasSuffix(d.String(), "\n\n") {
		d.WriteString("\n")
	}
	fmt.Fprintf(d, "---\nincident %s, %s\n", mdCode(v.ID), mdCode(v.Schema))
	_, err := io.WriteString(w, d.String())
	return err
}

// raw writes lines that a report of ours has laid out, as they stand.
func (d *document) raw(lines []string) {
	n := 3
	for _, l := range lines {
		n = max(n, longestRun(l, '`')+1)
	}
	f := strings.Repeat("`", n)
	fmt.Fprintf(d, "%stext\n%s\n%s\n", f, strings.Join(lines, "\n"), f)
}

func writeIncidentsMarkdown(w io.Writer, l *incident.Incidents, o Options) error {
	l = cleanedList(l)
	d := &document{words: newWords(&incident.Incident{}), full: o.Full}
	d.heading(1, "Incidents")
	if len(l.Incidents) > 0 {
		var rows [][]string
		for i := range l.Incidents {
			rows = append(rows, incidentCells(&l.Incidents[i]))
		}
		d.grid(incidentColumns, rows)
		d.WriteString("\n")
	}
	d.paragraph(hiddenWords(l))
	d.sentences("Not read", l.Problems)
	_, err := io.WriteString(w, d.String())
	return err
}
