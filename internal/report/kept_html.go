package report

import (
	"bytes"
	"fmt"
	"html/template"
	"io"
	"reflect"
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
	Sections    []Section
	Policy      template.HTML
	Style       template.CSS
}

// SolvedTitle heads what is said of the fix.
func (p *keptPage) SolvedTitle() string { return p.solvedTitle() }

// keptSections are the parts of the page in order, each a template of that name.
var keptSections = []part{{"symptom", "Symptom"}, {"fix", "What solved it"}, {"not-helped", "What did not help"}, {"follow-up", "Follow-up"}, {"trials", "Trials"},
	{"acts", "What was done"}, {"environment", "Environment of the failure"}, {"problems", "Not read, or not known"}}

// keptPageOf is k as its page shows it, without its diagnosis.
func keptPageOf(k *incident.Kept) (*keptPage, *template.Template, error) {
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
	t, err := template.New("kept").Funcs(template.FuncMap{
		"sentence": sentence, "upper": upper, "notHelped": notHelped, "count": thousands, "columns": func() []gridColumn { return keptColumns }, "columnTitle": func(c gridColumn) string { return upper(c.title) },
		"right": func(c gridColumn) bool { return c.right }, "numeric": func(cols []gridColumn, i int) bool { return cols[i].right },
	}).ParseFS(assets, "assets/shared/*.html", "assets/kept/*.html")
	if err != nil {
		return nil, nil, fmt.Errorf("write report: %w", err)
	}
	p.Sections, err = sectionsOf(t, keptSections, p)
	return p, t, err
}

// sectionsOf renders the parts that have something to say.
func sectionsOf(t *template.Template, parts []part, data any) ([]Section, error) {
	var out []Section
	for _, x := range parts {
		html, err := rendered(t, x.name, data)
		if err != nil {
			return nil, err
		}
		if html != "" {
			out = append(out, Section{x.name, x.title, html})
		}
	}
	return out, nil
}

// writeKeptHTML writes one page without a script.
func writeKeptHTML(w io.Writer, k *incident.Kept, o Options) error {
	p, t, err := keptPageOf(k)
	if err != nil {
		return err
	}
	if p.diagnosis != nil {
		var b bytes.Buffer
		if err := Write(&b, "text", p.diagnosis, Options{Width: 110, Full: true, ASCII: o.ASCII}); err != nil {
			return err
		}
		p.Evidence = b.String()
		more, err := sectionsOf(t, []part{{"evidence", "Evidence: the diagnosis of the failure"}}, p)
		if err != nil {
			return err
		}
		p.Sections = append(p.Sections, more...)
	}
	style := asset("page.css") + asset("tracker/page.css")
	p.Style, p.Policy = template.CSS(style), policyOf(style, "")
	if err := t.ExecuteTemplate(w, "page.html", p); err != nil {
		return fmt.Errorf("write report: %w", err)
	}
	return nil
}

// KeptPartsOf is what the HTML report of a kept incident consists of, but for the diagnosis of
// its failure: PartsOf has that.
func KeptPartsOf(k *incident.Kept) (*Parts, error) {
	p, _, err := keptPageOf(k)
	if err != nil {
		return nil, err
	}
	out := &Parts{Title: p.Title, Tone: p.Tone, Verdict: pairsOf(p.Verdict), Sections: p.Sections}
	out.Verdict = append(out.Verdict, Pair{"When", sentence(p.When)})
	return out, nil
}

// EnvironmentPairs say what a trial ran in, as the report of an incident does; none for null.
func EnvironmentPairs(e *incident.Environment) []Pair {
	if e == nil {
		return nil
	}
	return pairsOf(environmentLines(copyClean(reflect.ValueOf(e)).Interface().(*incident.Environment)))
}

// CommandLine is a command as a shell takes it, on one line and printable.
func CommandLine(args []string) string { return oneLine(commandLine(args)) }

// TrialWords are a trial in one line: when it began, what made it, its result, its id.
func TrialWords(t *incident.Trial) string {
	v := comparisonView{}
	return oneLine(stampWords(t.Begun) + ", " + t.By + ", " + v.result(t) + ", " + t.ID)
}

// Stamp is a time in RFC 3339 as reports print it.
func Stamp(at string) string { return oneLine(stampWords(at)) }
