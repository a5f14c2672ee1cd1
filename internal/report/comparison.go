package report

import (
	"cmp"
	"fmt"
	"html/template"
	"io"
	"reflect"
	"strconv"
	"strings"

	"github.com/charmbracelet/lipgloss"

	"github.com/inquest-dev/inquest/internal/evidence"
	"github.com/inquest-dev/inquest/internal/incident"
)

// comparisonFormats lists every format of a comparison of two trials. Adding one is a row here.
var comparisonFormats = []format[*incident.Comparison]{
	{"text", writeComparisonText},
	{"json", writeJSON[*incident.Comparison]},
	{"markdown", writeComparisonMarkdown},
	{"html", writeComparisonHTML},
}

// ComparisonFormats returns the names of the formats of WriteComparison, the default first.
func ComparisonFormats() []string { return formatNames(comparisonFormats) }

// WriteComparison renders what differs between two trials in the named format.
func WriteComparison(w io.Writer, format string, c *incident.Comparison, o Options) error {
	return writeIn(comparisonFormats, w, format, c, o)
}

// A comparisonView is a comparison as reports speak of it.
type comparisonView struct{ *incident.Comparison }

// newComparisonView is c with no text in it that can steer or reorder what surrounds it.
func newComparisonView(c *incident.Comparison) *comparisonView {
	bare := *c
	for _, t := range []*incident.Trial{&bare.A, &bare.B} {
		t.Environment, t.Samples = nil, nil // compared already; a table of packages is long
	}
	return &comparisonView{copyClean(reflect.ValueOf(&bare)).Interface().(*incident.Comparison)}
}

func (v *comparisonView) title() string { return "What changed between " + v.A.ID + " and " + v.B.ID }

// changedVariants say how many things changed, and which.
func (v *comparisonView) changedVariants() []string {
	switch n := len(v.Changes); {
	case n == 0 && len(v.Unknown) > 0:
		return []string{"nothing that both trials record", "nothing on record"}
	case n == 0:
		return []string{"nothing that is recorded", "nothing on record"}
	case n == 1:
		return []string{"one thing: " + v.Changes[0].Text, "one thing"}
	default:
		count := strconv.Itoa(n) + " things: "
		return []string{count + changesWords(v.Changes, 6), count + changesWords(v.Changes, 3), strconv.Itoa(n) + " things"}
	}
}

// effectVariants say what came of it. The sentences are the ledger's, but for what the line above
// has said already.
func (v *comparisonView) effectVariants() []string {
	long := v.Says
	if len(v.Changes) > 0 {
		if _, after, ok := strings.Cut(long, v.Changes[len(v.Changes)-1].Text); ok && len(v.Changes) <= 4 {
			long = strings.TrimLeft(after, ".; ")
		} else if _, after, ok := strings.Cut(long, " more; "); ok {
			long = after
		}
	}
	long = cmp.Or(long, v.Says)
	short := map[string]string{incident.Helped: "it helped: failed before, passed after", incident.DidNotHelp: "it did not help: failed before and after, in the same way", incident.AnotherFailure: "failed before and after, not in the same way", incident.MadeWorse: "it made it worse: passed before, failed after", incident.BothPassed: "both passed"}[v.Effect]
	return []string{long, cmp.Or(short, "not known")}
}

func (v *comparisonView) trialVariants(t *incident.Trial) func() []string {
	return func() []string {
		s := t.ID + ", " + t.By + ", " + v.result(t)
		if t.Verdict != nil && t.Verdict.Text != "" {
			return []string{s + ": " + strings.TrimSuffix(t.Verdict.Text, "."), s}
		}
		return []string{s}
	}
}

func (v *comparisonView) result(t *incident.Trial) string {
	if t.Verdict == nil || t.Verdict.Result == "" {
		return "no result"
	}
	return strings.ReplaceAll(t.Verdict.Result, "_", " ")
}

// nextVariants say what to do now.
func (v *comparisonView) nextVariants() []string {
	switch {
	case v.Effect == incident.Helped && len(v.Changes) == 1:
		return []string{"inquest verify shows whether it lasts", "inquest verify"}
	case v.Effect == incident.Helped && len(v.Changes) > 1:
		return []string{"take the changes back one by one until it fails again, then verify the one that is left", "try the changes one by one"}
	case v.Effect == incident.Helped:
		return []string{"repeat it unchanged (inquest verify): what passes by chance fails again", "inquest verify"}
	case v.Effect == incident.DidNotHelp && len(v.Changes) > 0:
		return []string{"take back what changed, then try the next hypothesis", "take it back"}
	case v.Effect == incident.MadeWorse && len(v.Changes) > 0:
		return []string{"take back what changed", "take it back"}
	}
	return []string{"inquest incident show tells the incident's whole story", "inquest incident show"}
}

var comparisonLabels = []string{"Change", "Effect", "Before", "After", "Next"}

func (v *comparisonView) variants() []func() []string {
	return []func() []string{v.changedVariants, v.effectVariants, v.trialVariants(&v.A), v.trialVariants(&v.B), v.nextVariants}
}

func (v *comparisonView) lines() []labelled { return labelledLines(comparisonLabels, v.variants()...) }

// comparisonColumns head the table that sets both trials side by side.
var comparisonColumns = []gridColumn{{"", false, 0}, {"before", true, 1}, {"after", true, 2}, {"difference", true, 3}}

// rows are the figures of both trials, a line for each.
func (v *comparisonView) rows() [][]string {
	a, b := &v.A, &v.B
	var out [][]string
	put := func(name, x, y, diff string) {
		if x != "" || y != "" {
			out = append(out, []string{name, cmp.Or(x, "–"), cmp.Or(y, "–"), diff})
		}
	}
	put("result", v.result(a), v.result(b), "")
	put("ended", endOf(a), endOf(b), "")
	x, y := took(a), took(b)
	diff := ""
	if x != nil && y != nil {
		diff = difference(*y-*x, func(s float64) string { return tookCell(&s) })
	}
	put("took", tookCell(x), tookCell(y), diff)
	type key struct {
		name         string
		device, rank int
	}
	keyOf := func(m *incident.Measure) key {
		k := key{m.Name, -1, -1}
		if m.Device != nil {
			k.device = *m.Device
		}
		if m.Rank != nil {
			k.rank = *m.Rank
		}
		return k
	}
	var order []key
	have := map[key][2]*incident.Measure{}
	for side, t := range []*incident.Trial{a, b} {
		for i := range t.Measures {
			k := keyOf(&t.Measures[i])
			pair, ok := have[k]
			if !ok {
				order = append(order, k)
			}
			pair[side] = &t.Measures[i]
			have[k] = pair
		}
	}
	for _, k := range order {
		name := "peak " + measureWords(k.name)
		if k.device >= 0 {
			name += fmt.Sprintf(" %d", k.device)
		}
		if k.rank >= 0 {
			name += fmt.Sprintf(", rank %d", k.rank)
		}
		pair := have[k]
		diff := ""
		if pair[0] != nil && pair[1] != nil && !pair[0].AtLeast && !pair[1].AtLeast {
			diff = difference(float64(pair[1].Peak)-float64(pair[0].Peak), func(f float64) string { return evidence.Bytes(int64(f)) })
		}
		put(name, peakCell(pair[0]), peakCell(pair[1]), diff)
	}
	cause := func(t *incident.Trial) string {
		if t.Verdict == nil {
			return ""
		}
		return t.Verdict.Cause
	}
	put("leading cause", cause(a), cause(b), "")
	return out
}

// difference is a difference with its sign, "none" for none.
func difference(d float64, words func(float64) string) string {
	switch {
	case words(max(d, -d)) == words(0):
		return "none"
	case d > 0:
		return "+" + words(d)
	}
	return "−" + words(-d)
}

// took is how long a trial took, nil where that is not on record.
func took(t *incident.Trial) *float64 {
	if t.Ended == nil {
		return nil
	}
	s := trialSeconds(t.Begun, *t.Ended)
	if s < 0 {
		return nil
	}
	return &s
}

// endOf is how the command ended.
func endOf(t *incident.Trial) string {
	switch e := t.Exit; {
	case e == nil:
		return ""
	case e.Error != "":
		return "not started"
	case e.Signal != "":
		return e.Signal
	default:
		return fmt.Sprintf("status %d", e.Status)
	}
}

// changeLine is a change in words, with its parts.
func changeLine(c *incident.Change) string {
	s := c.Text
	if len(c.Parts) > 0 {
		var parts []string
		for _, p := range c.Parts {
			parts = append(parts, p.Name+" "+cmp.Or(p.From, "none")+" → "+cmp.Or(p.To, "none"))
		}
		s += ": " + strings.Join(parts, " with ")
	}
	return c.Of + ": " + s
}

func changeLines(list []incident.Change) []string {
	var out []string
	for i := range list {
		out = append(out, changeLine(&list[i]))
	}
	return out
}

func writeComparisonText(w io.Writer, c *incident.Comparison, o Options) error {
	v := newComparisonView(c)
	p := newPage(&incident.Incident{}, o)
	plain := lipgloss.NewStyle()
	tone := plain
	switch v.Effect {
	case incident.Helped:
		tone = p.good
	case incident.DidNotHelp, incident.MadeWorse:
		tone = p.bad
	}
	styles := []lipgloss.Style{p.strong, tone, plain, plain, plain}
	for i, fn := range v.variants() {
		p.head(comparisonLabels[i], fn(), styles[i])
	}
	list := func(title, mark string, lines []string, from, to int) {
		if len(lines) == 0 {
			return
		}
		p.section(title)
		for i, s := range lines {
			p.at(from+min(i/3, to-from), func() { p.para(2, mark, sentence(upper(s))) })
		}
	}
	list("What changed", "- ", changeLines(v.Changes), 1, 3)
	p.grid("Side by side", comparisonColumns, v.rows(), func(row int) int { return 1 + min(row/4, 3) })
	list("Not compared", "? ", v.Unknown, 2, 4)
	list("As any two runs differ, and no change", "  ", changeLines(v.Expected), 4, 6)
	_, err := io.WriteString(w, p.text())
	return err
}

func writeComparisonMarkdown(w io.Writer, c *incident.Comparison, o Options) error {
	v := newComparisonView(c)
	d := &document{words: newWords(&incident.Incident{}), full: o.Full}
	d.heading(1, v.title())
	d.labelled(v.lines())
	d.sentences("What changed", changeLines(v.Changes))
	d.heading(2, "Side by side")
	d.grid(comparisonColumns, v.rows())
	d.WriteString("\n")
	d.sentences("Not compared", v.Unknown)
	d.sentences("As any two runs differ, and no change", changeLines(v.Expected))
	if !strings.HasSuffix(d.String(), "\n\n") {
		d.WriteString("\n")
	}
	fmt.Fprintf(d, "---\n%s\n", mdCode(v.Schema))
	_, err := io.WriteString(w, d.String())
	return err
}

// A comparisonPage is what the template sees of a comparison.
type comparisonPage struct {
	Title, Tone, Schema        string
	Verdict                    []labelled
	Changed                    string // heads the changes
	Changes, Unknown, Expected []string
	Titles                     []string
	Rows                       [][]string
	Sections                   []Section
	Policy                     template.HTML
	Style                      template.CSS
}

// comparisonSections are the parts of the page in order, each a template of that name.
var comparisonSections = []part{{"changes", "What changed"}, {"figures", "Side by side"}, {"unknown", "Not compared"}, {"expected", "As any two runs differ, and no change"}}

// comparisonPageOf is c as its page shows it. Before and after name its sides, as they are to
// stand there, and changed heads what differs.
func comparisonPageOf(c *incident.Comparison, changed, before, after string) (*comparisonPage, *template.Template, error) {
	v := newComparisonView(c)
	p := &comparisonPage{Title: v.title(), Tone: "plain", Schema: v.Schema, Verdict: v.lines(), Changed: changed, Changes: changeLines(v.Changes), Unknown: v.Unknown, Expected: changeLines(v.Expected), Rows: v.rows()}
	switch v.Effect {
	case incident.Helped:
		p.Tone = "good"
	case incident.DidNotHelp, incident.MadeWorse:
		p.Tone = "bad"
	}
	for _, c := range comparisonColumns {
		p.Titles = append(p.Titles, upper(c.title))
	}
	p.Titles[1], p.Titles[2] = before, after
	t, err := template.New("comparison").Funcs(template.FuncMap{"sentence": sentence, "upper": upper}).ParseFS(assets, "assets/shared/*.html", "assets/comparison/*.html")
	if err != nil {
		return nil, nil, fmt.Errorf("write report: %w", err)
	}
	p.Sections, err = sectionsOf(t, comparisonSections, p)
	return p, t, err
}

// writeComparisonHTML writes one page without a script.
func writeComparisonHTML(w io.Writer, c *incident.Comparison, _ Options) error {
	p, t, err := comparisonPageOf(c, comparisonSections[0].title, upper(comparisonColumns[1].title), upper(comparisonColumns[2].title))
	if err != nil {
		return err
	}
	style := asset("page.css") + asset("tracker/page.css")
	p.Style, p.Policy = template.CSS(style), policyOf(style, "")
	if err := t.ExecuteTemplate(w, "page.html", p); err != nil {
		return fmt.Errorf("write report: %w", err)
	}
	return nil
}

// ComparisonPartsOf is what the HTML report of a comparison consists of.
func ComparisonPartsOf(c *incident.Comparison) (*Parts, error) {
	p, _, err := comparisonPageOf(c, comparisonSections[0].title, upper(comparisonColumns[1].title), upper(comparisonColumns[2].title))
	if err != nil {
		return nil, err
	}
	return &Parts{Title: p.Title, Tone: p.Tone, Verdict: pairsOf(p.Verdict), Sections: p.Sections}, nil
}

// DifferencePartsOf is what differs between the two sides of a comparison, named first and
// second, of which neither was made to mend the other: without a verdict.
func DifferencePartsOf(c *incident.Comparison, first, second string) (*Parts, error) {
	p, _, err := comparisonPageOf(c, "What differs", oneLine(first), oneLine(second))
	if err != nil {
		return nil, err
	}
	return &Parts{Title: "What differs between " + p.Titles[1] + " and " + p.Titles[2], Tone: "plain", Sections: p.Sections}, nil
}
