package report

import (
	"bytes"
	"fmt"
	"html/template"
	"io"
	"strings"

	"github.com/inquest-dev/inquest/internal/incident"
)

// keptRows bounds the table of trials of one page.
const keptRows = 1000

// A keptPage is what the template sees of a kept incident.
type keptPage struct {
	*keptView
	Tone        string
	Verdict     []labelled
	When        string
	FollowUp    string
	Rows        [][]string
	RowsLeft    int64
	Acts        []labelled
	Environment []labelled
	Evidence    string
	Policy      template.HTML
	Style       template.CSS
}

// SolvedTitle heads what is said of the fix.
func (p *keptPage) SolvedTitle() string { return p.solvedTitle() }

// writeKeptHTML writes one page without a script.
func writeKeptHTML(w io.Writer, k *incident.Kept, o Options) error {
	v := newKeptView(k)
	p := &keptPage{keptView: v, Tone: "bad", Verdict: v.lines(), When: upper(v.whenWords()), FollowUp: commandLine(v.FollowUp), Environment: environmentLines(v.Kept.Environment)}
	v.Title = strings.TrimSuffix(v.Title, ".")
	if v.Status == incident.Confirmed {
		p.Tone = "good"
	}
	for i := range v.Table {
		if i == keptRows {
			p.RowsLeft = int64(len(v.Table) - i)
			break
		}
		p.Rows = append(p.Rows, v.row(&v.Table[i]))
	}
	for i := range v.Kept.Acts {
		kind, text := actWords(&v.Kept.Acts[i])
		p.Acts = append(p.Acts, labelled{stampWords(v.Kept.Acts[i].At) + ", " + kind, text})
	}
	if v.diagnosis != nil {
		var b bytes.Buffer
		if err := Write(&b, "text", v.diagnosis, Options{Width: 110, Full: true, ASCII: o.ASCII}); err != nil {
			return err
		}
		p.Evidence = b.String()
	}
	style := asset("page.css") + asset("tracker/page.css")
	p.Style, p.Policy = template.CSS(style), policyOf(style, "")
	t, err := template.New("kept").Funcs(template.FuncMap{
		"sentence": sentence, "upper": upper, "notHelped": notHelped, "count": thousands, "columns": func() []gridColumn { return keptColumns }, "columnTitle": func(c gridColumn) string { return upper(c.title) },
		"right": func(c gridColumn) bool { return c.right }, "numeric": func(cols []gridColumn, i int) bool { return cols[i].right },
	}).ParseFS(assets, "assets/shared/*.html", "assets/kept/*.html")
	if err != nil {
		return fmt.Errorf("write report: %w", err)
	}
	if err := t.ExecuteTemplate(w, "page.html", p); err != nil {
		return fmt.Errorf("write report: %w", err)
	}
	return nil
}
