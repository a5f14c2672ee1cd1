package report

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/charmbracelet/lipgloss"
	"github.com/muesli/termenv"

	"github.com/inquest-dev/inquest/internal/evidence"
	"github.com/inquest-dev/inquest/internal/incident"
)

// Bounds of a short text report.
const (
	shortLines = 40
	shortPara  = 5 // lines of one paragraph
)

// A block is lines of text that stand or fall together. When a short report is
// too long, the blocks with the highest rank go first, the last of them before
// the others; rank 0 always stays.
type block struct {
	lines   []string
	rank    int
	heading bool
}

// A page collects blocks of text, wrapped to a width.
type page struct {
	*words
	width  int
	full   bool
	ascii  bool
	rank   int // of the blocks that follow
	lost   int // lines cut from long paragraphs
	blocks []block
	label,
	strong,
	good,
	bad,
	dim lipgloss.Style
}

func newPage(inc *incident.Incident, o Options) *page {
	r := lipgloss.NewRenderer(io.Discard)
	r.SetColorProfile(termenv.Ascii)
	if o.Color {
		r.SetColorProfile(termenv.ANSI)
	}
	p := &page{words: newWords(inc), width: o.Width, full: o.Full, ascii: o.ASCII}
	p.label = r.NewStyle().Bold(true).Foreground(lipgloss.Color("6"))
	p.strong = r.NewStyle().Bold(true)
	p.good = r.NewStyle().Foreground(lipgloss.Color("2"))
	p.bad = r.NewStyle().Bold(true).Foreground(lipgloss.Color("1"))
	p.dim = r.NewStyle().Faint(true)
	return p
}

func (p *page) add(b block) { p.blocks = append(p.blocks, b) }

// head writes one labelled line that fits the width: the five of them are the
// verdict, and what is cut stands in full below.
func (p *page) head(label string, variants []string, style lipgloss.Style) {
	const col = 7
	var flat []string
	for _, v := range variants {
		flat = append(flat, strings.Join(strings.Fields(v), " "))
	}
	p.add(block{lines: []string{p.label.Render(pad(label, col)) + style.Render(fitted(p.width-col, flat...))}})
}

func (p *page) section(title string) {
	p.add(block{lines: []string{"", p.strong.Render(cut(title, p.width))}, heading: true})
}

// para writes text wrapped behind an indent; the first line carries mark.
func (p *page) para(indent int, mark, text string) {
	in := strings.Repeat(" ", indent)
	mark = oneLine(mark)
	hang := in + strings.Repeat(" ", columns(mark))
	if columns(mark) > p.width/4 { // too wide to hang the text behind it
		mark, text, hang = "", mark+text, in+"  "
	}
	lines := wrap(text, p.width-columns(hang))
	if !p.full && len(lines) > shortPara {
		p.lost += len(lines) - shortPara
		lines = lines[:shortPara]
		lines[shortPara-1] = cut(lines[shortPara-1]+" …", p.width-columns(hang))
	}
	for i, l := range lines {
		if i == 0 {
			lines[i] = strings.TrimRight(in+mark+l, " ")
		} else {
			lines[i] = hang + l
		}
	}
	p.add(block{lines: lines, rank: p.rank})
}

// quote writes a line of a log, cut, as it stands.
func (p *page) quote(indent int, text string) {
	p.add(block{lines: []string{strings.Repeat(" ", indent) + p.dim.Render(cut(text, p.width-indent))}, rank: p.rank})
}

// at runs fn with the given rank for what it writes.
func (p *page) at(rank int, fn func()) {
	old := p.rank
	p.rank = rank
	fn()
	p.rank = old
}

// text joins the blocks; a short report loses the least important ones until it
// fits.
func (p *page) text() string {
	total := 0
	for _, b := range p.blocks {
		total += len(b.lines)
	}
	dropped := p.lost
	limit := shortLines
	if dropped > 0 {
		limit--
	}
	for !p.full && total > limit {
		limit = shortLines - 1
		worst := -1
		for i, b := range p.blocks {
			if !b.heading && b.rank > 0 && (worst < 0 || b.rank >= p.blocks[worst].rank) {
				worst = i
			}
		}
		if worst < 0 {
			break
		}
		n := len(p.blocks[worst].lines)
		dropped, total = dropped+n, total-n
		p.blocks = append(p.blocks[:worst], p.blocks[worst+1:]...)
		total -= p.dropEmpty()
	}
	var lines []string
	for _, b := range p.blocks {
		lines = append(lines, b.lines...)
	}
	if !p.full && len(lines) > limit {
		dropped += len(lines) - limit
		lines = lines[:limit]
	}
	if dropped > 0 {
		more := "… " + plural(dropped, "line") + " more: --full"
		lines = append(lines, p.dim.Render(fit(p.width, more+", or --format html", more)))
	}
	return strings.Join(lines, "\n") + "\n"
}

// dropEmpty removes headings with nothing under them and returns how many lines
// went.
func (p *page) dropEmpty() int {
	n := 0
	kept := p.blocks[:0]
	for i, b := range p.blocks {
		if b.heading && (i+1 == len(p.blocks) || p.blocks[i+1].heading) {
			n += len(b.lines)
			continue
		}
		kept = append(kept, b)
	}
	p.blocks = kept
	return n
}

// textSections order the parts of a text report for each reader.
var textSections = map[string][]func(*page, *incident.Incident){
	Engineer:  {(*page).proof, (*page).groups, (*page).change, (*page).causes, (*page).followed, (*page).attempts, (*page).checklist, (*page).baseline, (*page).hosts, (*page).ranks, (*page).read},
	OnCall:    {(*page).reading, (*page).hosts, (*page).proof, (*page).groups, (*page).followed, (*page).ranks, (*page).change, (*page).causes, (*page).attempts, (*page).checklist, (*page).read},
	Executive: {(*page).summary},
}

func writeText(w io.Writer, inc *incident.Incident, o Options) error {
	inc = cleaned(inc)
	p := newPage(inc, o)
	v := p.verdictFor(o.For)
	if v.Sure == nil {
		p.para(0, "", sentence(p.unansweredWords()))
		p.notFound(inc)
		if len(inc.Artifacts) > 1 || len(inc.PassedOver) > 0 {
			p.read(inc)
		}
		_, err := io.WriteString(w, p.text())
		return err
	}
	style := p.bad
	if inc.FirstFault == nil {
		style = p.good
	}
	p.head("First", v.First, style)
	p.head("Sure", v.Sure, p.strong)
	p.head("Do", v.Do, p.strong)
	p.head("Check", v.Check, lipgloss.NewStyle())
	p.head("Order", v.Order, lipgloss.NewStyle())
	p.notFound(inc)
	for _, section := range textSections[o.For] {
		section(p, inc)
	}
	_, err := io.WriteString(w, p.text())
	return err
}

// notFound names at once what of the named paths is missing in the verdict.
func (p *page) notFound(inc *incident.Incident) {
	const most = 5
	for i, s := range inc.NotFound {
		if i == most && !p.full {
			p.para(0, "! ", fmt.Sprintf("%d more of the named paths could not be opened", len(inc.NotFound)-i))
			break
		}
		p.para(0, "! ", "not read: "+s)
	}
}

// summary is the reading of those who answer for the run.
func (p *page) summary(inc *incident.Incident) {
	p.section("Summary")
	for _, s := range p.executive(p.verdictOf()) {
		p.para(2, "", s)
	}
	p.limits(inc)
}

// reading puts first what decides the next minutes.
func (p *page) reading(inc *incident.Incident) {
	if len(inc.Hypotheses) == 0 {
		return
	}
	if r := onCall(inc.Hypotheses[0]); r != "" {
		p.section("On call")
		p.para(2, "", r)
	}
	for _, d := range p.decisions() {
		if d.Text == "" {
			p.at(2, func() { p.para(2, d.Label+": ", d.Code) })
			continue
		}
		p.para(2, d.Label+": ", p.withCite(incident.Statement{Text: d.Text, Spans: d.Spans}))
		if d.Code != "" {
			p.at(1, func() { p.para(4, "run: ", d.Code) })
		}
	}
}

// proof quotes the first fault and says why it is first.
func (p *page) proof(inc *incident.Incident) {
	f := inc.FirstFault
	if f == nil {
		return
	}
	if f.KnownBy == "elimination" {
		p.section("How it is known")
		if inc.FirstFaultBasis != "" {
			p.para(2, "", sentence(upper(inc.FirstFaultBasis)))
		}
		for i, e := range f.Eliminated {
			p.at(min(i, 3), func() { p.para(2, "- ", p.withCite(incident.Statement{Text: sentence(ruledOut(e)), Spans: e.Spans})) })
		}
	} else {
		p.section("Proof")
		if w := where(f.Span) + "  "; columns(w) <= p.width/4 {
			p.para(2, w, f.Text)
		} else {
			p.para(2, "", w)
			p.para(4, "", f.Text)
		}
		if s := f.Frame; s != nil {
			p.at(2, func() {
				p.para(2, "your line: ", strings.TrimSuffix(fmt.Sprintf("%s:%d in %s: %s", s.File, s.Line, s.Function, s.Source), ": "))
			})
		}
		label := "first because: "
		if inc.FirstFaultStanding == incident.Undecidable {
			label = "not decided because: "
			if strings.HasPrefix(inc.FirstFaultBasis, "not decided ") {
				label = ""
			}
		}
		p.at(1, func() { p.para(2, label, inc.FirstFaultBasis) })
	}
	rank := 3
	if inc.FirstFaultStanding == incident.Undecidable {
		rank = 1
	}
	for i, r := range inc.FirstFaultRivals {
		p.at(rank+min(i, 2), func() {
			p.para(2, "not ordered against it: ", rivalWords(&r))
		})
	}
	if s := p.bracketWords(inc.Order); s != "" {
		p.at(2, func() { p.para(2, "non-finite: ", s) })
	}
	if g := inc.LastGood; g != nil {
		p.at(2, func() { p.para(2, "last good: ", p.goodWords(g)) })
	}
	if p.full {
		p.context(inc)
	}
}

// context quotes the lines around each place that matters.
func (p *page) context(inc *incident.Incident) {
	for _, q := range inc.Context {
		p.add(block{lines: []string{"", "  " + cut(q.Artifact, p.width-2)}})
		digits := len(fmt.Sprint(q.Line + int64(len(q.Lines))))
		for i, l := range q.Lines {
			n := q.Line + int64(i)
			mark := " "
			if n == q.Mark {
				mark = ">"
			}
			p.quote(2, fmt.Sprintf("%s %*d  %s", mark, digits, n, l))
		}
	}
}

func (p *page) causes(inc *incident.Incident) {
	if len(inc.Hypotheses) == 0 {
		return
	}
	p.section("Why")
	for i, h := range inc.Hypotheses {
		lead := 0 // rank of the lines of the leading cause
		if i > 0 {
			lead = 2 + min(i, 3)
		}
		if h.Standing == incident.RuledOut && i > 0 {
			lead = 6
		}
		p.at(lead, func() {
			p.para(2, fmt.Sprintf("%d. ", i+1), fmt.Sprintf("%s: %s (%s)", causeWords(h.Standing), h.Title, h.Entry))
		})
		for j, s := range h.For {
			p.at(lead+1+min(j, 3), func() { p.para(5, "+ ", p.withCite(s)) })
		}
		for j, s := range h.Against {
			p.at(lead+1+min(j, 3), func() { p.para(5, "- ", p.withCite(s)) })
		}
		for j, m := range h.Missing {
			rank := lead + 1 + 2*min(j, 2)
			if h.Standing == incident.Established || h.Standing == incident.RuledOut {
				rank = lead + 5
			}
			p.at(rank, func() { p.para(5, "? ", missingWords(m)) })
		}
	}
}

func (p *page) followed(inc *incident.Incident) {
	if len(inc.Collateral) > 0 {
		p.section("What only followed")
		for i, c := range inc.Collateral {
			p.at(min(i, 5), func() { p.para(2, "- ", p.collateralWords(c)) })
		}
	}
	if len(inc.Contributing) > 0 {
		p.section("Also seen")
		for i, s := range inc.Contributing {
			p.at(3+min(i, 2), func() { p.para(2, "! ", p.withCite(s)) })
		}
	}
}

func (p *page) change(inc *incident.Incident) {
	r := inc.Remedy
	if r == nil {
		return
	}
	p.section("Change (" + strings.Join(remedyTags(r), ", ") + ")")
	p.para(2, "", r.Change)
	for i, e := range r.Edits {
		p.at(1+2*min(i, 2), func() { p.para(2, editPlace(e)+": ", editWords(e)) })
	}
	p.at(1, func() {
		if r.Command != "" {
			label := "run: "
			if r.Scope == "measure" {
				label = "how: "
			}
			p.para(2, label, r.Command)
		}
	})
	then := ""
	if r.Scope == "measure" && len(r.Alternatives) > 0 {
		then = r.Alternatives[0]
		p.at(2, func() { p.para(2, "then: ", then) })
	}
	p.at(2, func() {
		if r.Verify != "" {
			p.para(2, "check: ", r.Verify)
		}
		if r.Test != "" {
			p.para(2, "test: ", r.Test)
		}
		if s := expected(r); s != "" {
			p.para(2, "expect: ", s)
		}
	})
	p.at(6, func() {
		for _, x := range remedyDetails(r) {
			if x.Text != then {
				p.para(2, x.Label+": ", x.Text)
			}
		}
	})
}

func (p *page) attempts(inc *incident.Incident) {
	if len(inc.Attempts) < 2 {
		return
	}
	p.section("Launches in this input")
	for i, a := range inc.Attempts {
		rank := 1
		if len(inc.Attempts) > 3 {
			rank = 3
		}
		if i > 2 && i < len(inc.Attempts)-2 {
			rank = 5
		}
		p.at(rank, func() { p.para(2, a.ID+": ", p.attemptWords(a)) })
	}
}

func (p *page) checklist(inc *incident.Incident) {
	if len(inc.Checklist) == 0 {
		return
	}
	c := checksOf(inc.Checklist)
	p.section("To confirm: " + c.Progress())
	p.at(7, func() {
		for _, x := range c.Left {
			t := x.Item
			if x.How != "" {
				t += ": " + x.How
			}
			p.para(2, checkMark(x.State)+" ", t)
		}
		for _, x := range c.Answered {
			p.para(2, checkMark(x.State)+" ", p.withCite(incident.Statement{Text: x.Item, Spans: x.Spans}))
		}
	})
}

func (p *page) baseline(inc *incident.Incident) {
	b := inc.Baseline
	if b == nil {
		return
	}
	p.section("Different from the run that worked (" + listed(b.Paths, 3) + ")")
	if len(b.Diffs) == 0 {
		p.at(1, func() { p.para(2, "", "nothing that both runs state differs") })
	}
	for i, d := range b.Diffs {
		p.at(2+min(i/2, 3), func() { p.para(2, d.Name+": ", d.From+" -> "+d.To) })
	}
}

// hosts sets the host of the first fault beside one that is not suspected.
func (p *page) hosts(inc *incident.Incident) {
	c := inc.HostComparison
	if c == nil {
		return
	}
	p.section(hostsTitle(c))
	p.para(2, "", c.Says)
	for i, r := range c.Rows {
		if !r.Differs && !p.full {
			continue
		}
		mark := "  "
		if r.Differs {
			mark = "! "
		}
		p.at(1+min(i/2, 3), func() { p.para(2, mark+r.Name+": ", r.Suspect+" | "+r.Fresh) })
	}
}

// ranks tells each rank's fate, equal ones together.
func (p *page) ranks(inc *incident.Incident) {
	if len(inc.Ranks) < 2 {
		return
	}
	p.section("Ranks")
	for i, s := range fateWords(inc.Ranks) {
		p.at(5+min(i, 2), func() { p.para(2, "", s) })
	}
}

// read says what was read, what was not, and what that limits.
func (p *page) read(inc *incident.Incident) {
	p.section("Read")
	p.para(2, "", p.readWords())
	p.limits(inc)
	if p.full {
		for _, a := range inc.Artifacts {
			p.para(2, "- ", artifactWords(a))
		}
	}
}

// limits are the statements of what could not be read or decided.
func (p *page) limits(inc *incident.Incident) {
	for i, l := range inc.Limits {
		if l.Text == nothingFound || slices.Contains(inc.NotFound, l.Text) {
			continue
		}
		p.at(min(i, 1)*(2+min(i, 2)), func() { p.para(2, "! ", p.withCite(l)) })
	}
}

func (w *words) withCite(s incident.Statement) string {
	if c := w.cites(s.Spans, 3); c != "" {
		return s.Text + " [" + c + "]"
	}
	return s.Text
}

func rivalWords(e *incident.Event) string {
	if e.KnownBy == "elimination" && len(e.Eliminated) > 0 {
		return e.Eliminated[0].Why
	}
	s := faultWords(e)
	if x := who(e); x != "" {
		s = x + ": " + s
	}
	if x := where(e.Span); x != "" {
		s += " (" + x + ")"
	}
	return s
}

func ruledOut(e incident.Elimination) string {
	if len(e.Ranks) == 0 || strings.HasPrefix(e.Why, ranksWords(e.Ranks)) {
		return e.Why
	}
	return ranksWords(e.Ranks) + ": " + e.Why
}

func missingWords(m incident.Missing) string {
	s := "missing: " + strings.TrimSuffix(m.Fact, ".")
	if m.How == "" {
		return s
	}
	if m.Cost != "" {
		return s + ". To get it (" + m.Cost + "): " + m.How
	}
	return s + ". To get it: " + m.How
}

func kindWords(k string) string { return strings.ReplaceAll(k, "_", " ") }

func (w *words) collateralWords(c incident.Collateral) string {
	s := kindWords(c.Event.Kind)
	if c.Count > 1 {
		s += fmt.Sprintf(", %d times", c.Count)
	}
	if r := ranksWords(c.Ranks); r != "" {
		s += " on " + r
	}
	if x := w.near(c.Event.Span); x != "" {
		s += " (" + x + ")"
	}
	if c.ExplainedBy.Text != "" {
		s += ": " + c.ExplainedBy.Text
	}
	return s
}

func remedyTags(r *incident.Remedy) []string {
	var out []string
	if r.Scope == "measure" {
		out = append(out, "a measurement first")
	} else if r.Scope != "" {
		out = append(out, r.Scope)
	}
	switch r.Effect {
	case "reads":
		out = append(out, "only reads")
	case "reversible":
		out = append(out, "reversible")
	case "changes":
		out = append(out, "changes results or data")
	}
	if len(out) == 0 {
		return []string{"proposed"}
	}
	return out
}

func editPlace(e incident.Edit) string {
	if e.Stack == "" || e.Stack == "any" {
		return e.Where
	}
	return e.Stack + ", " + e.Where
}

func editWords(e incident.Edit) string {
	if e.From == "" {
		return "add " + e.To
	}
	return e.From + "  ->  " + e.To
}

func expected(r *incident.Remedy) string {
	s, _ := r.Expected["shows"].(string)
	return s
}

// A labelled text.
type labelled struct{ Label, Text string }

// remedyDetails are the parts of a remedy beyond what to change and how to check.
func remedyDetails(r *incident.Remedy) []labelled {
	var out []labelled
	put := func(label, text string) {
		if text != "" {
			out = append(out, labelled{label, text})
		}
	}
	put("why", r.Why)
	put("costs", r.Cost)
	put("undo", r.Rollback)
	for _, x := range r.Risks {
		put("risk", x)
	}
	put("may fail next", r.NextFailure)
	for _, x := range r.Alternatives {
		put("instead", x)
	}
	if l := r.Logging; l != nil {
		put("logging", editPlace(*l)+": "+editWords(*l))
	}
	return out
}

func (w *words) attemptWords(a incident.Attempt) string {
	s := a.Outcome
	if a.FirstFault == nil && s == incident.Unclear {
		s = "no failure and no end of it shown"
	}
	if g := a.LastGood; g != nil && g.Step != nil && a.FirstFault == nil {
		s += fmt.Sprintf(", last step %d", *g.Step)
	}
	if f := a.FirstFault; f != nil {
		s += ": " + faultWords(f)
		if x := w.near(f.Span); x != "" {
			s += " (" + x + ")"
		}
	}
	if c := a.ChangedFrom; c != nil && len(c.Diffs) > 0 {
		var d []string
		for _, x := range c.Diffs {
			d = append(d, x.Name+" "+x.From+" -> "+x.To)
		}
		s += "; changed: " + listed(d, 4)
	}
	return s
}

func checkMark(state string) string {
	switch state {
	case "yes":
		return "[x]"
	case "no":
		return "[-]"
	}
	return "[ ]"
}

func artifactWords(a incident.Artifact) string {
	s := a.Path + ": " + a.Fate
	if a.Kind != "" {
		s += ", " + a.Kind
	}
	if a.Size >= 0 {
		s += ", " + evidence.Bytes(a.Size)
	}
	if a.Note != "" {
		s += " (" + a.Note + ")"
	}
	return s
}

// fateWords tells the fates of ranks, equal ones together, in the order of the
// first rank of each group.
func fateWords(ranks []incident.Rank) []string {
	var order []string
	of := map[string][]int{}
	for _, r := range ranks {
		s := r.Fate
		if r.LastStep != nil {
			s += fmt.Sprintf(", last step %d", *r.LastStep)
		}
		if of[s] == nil {
			order = append(order, s)
		}
		of[s] = append(of[s], r.Rank)
	}
	for i, s := range order {
		order[i] = ranksWords(of[s]) + ": " + s
	}
	return order
}
