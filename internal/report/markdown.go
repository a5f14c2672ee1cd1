package report

import (
	"fmt"
	"io"
	"sort"
	"strings"

	"github.com/inquest-dev/inquest/internal/evidence"
	"github.com/inquest-dev/inquest/internal/incident"
	"github.com/inquest-dev/inquest/internal/lazyre"
)

// Bounds of a markdown report that is not asked for in full: it goes into an
// issue or a chat, where the rest would be in the way.
const (
	mdRows    = 20 // of a table
	mdContext = 3  // quoted places
)

// A document collects markdown.
type document struct {
	*words
	strings.Builder
	full bool
}

// mdSections order the parts of a markdown report for each reader.
var mdSections = map[string][]func(*document, *incident.Incident){
	Engineer:  {(*document).evidence, (*document).groups, (*document).change, (*document).causes, (*document).followed, (*document).attempts, (*document).checklist, (*document).baseline, (*document).hosts, (*document).ranks, (*document).facts, (*document).read},
	OnCall:    {(*document).reading, (*document).hosts, (*document).followed, (*document).ranks, (*document).evidence, (*document).groups, (*document).change, (*document).causes, (*document).checklist, (*document).attempts, (*document).read},
	Executive: {(*document).summary},
}

func writeMarkdown(w io.Writer, inc *incident.Incident, o Options) error {
	inc = cleaned(inc)
	d := &document{words: newWords(inc), full: o.Full}
	v := d.verdictFor(o.For)
	d.heading(1, d.title())
	for _, l := range v.full() {
		if r := inc.Remedy; r != nil && l.Label == "Check" && l.Text == "Run: "+r.Command {
			fmt.Fprintf(d, "- **%s:** %s\n", l.Label, mdCode(r.Command))
			continue
		}
		d.item("- ", "**"+l.Label+":** ", l.Text)
	}
	for _, s := range inc.NotFound {
		d.item("- ", "**Not read:** ", s)
	}
	for _, section := range mdSections[o.For] {
		section(d, inc)
	}
	if !strings.HasSuffix(d.String(), "\n\n") {
		d.WriteString("\n")
	}
	fmt.Fprintf(d, "---\n%s, incident %s, %s\n", mdText(toolWords(inc.Tool)), mdCode(inc.ID), mdCode(inc.Schema))
	_, err := io.WriteString(w, d.String())
	return err
}

// Title names an incident in a few words, as the head of its reports does.
func Title(inc *incident.Incident) string { return newWords(cleaned(inc)).title() }

// title names the incident in a few words.
func (w *words) title() string {
	if f := w.inc.FirstFault; f != nil {
		if w.inc.FirstFaultStanding == incident.Undecidable {
			return upper(w.classes()) + ": which came first is undecided"
		}
		s := upper(faultWords(f))
		if f.Rank != nil {
			s += fmt.Sprintf(" on rank %d", *f.Rank)
		}
		return s
	}
	if Unanswered(w.inc) {
		return "Nothing of a training run was recognised"
	}
	n := w.nothingWords()
	return upper(n[len(n)-1])
}

// special are the characters that markdown, or the hosts that render it, may act
// on: markup, HTML, links, mentions, references, mathematics, emoji.
const special = "`*_{}[]<>#|~&@$\\^"

var (
	hexWord   = lazyre.New(`^[0-9a-f]{7,64}$`)            // hosts link what looks like a commit
	reference = lazyre.New(`^[A-Za-z]+-[0-9]+$`)          // GH-12, JIRA-12
	emoji     = lazyre.New(`:[A-Za-z0-9+-]+:`)            // :tada:
	autolink  = lazyre.New(`(?i)://|www\.|mailto:|xmpp:`) // what is linked without markup
	listStart = lazyre.New(`^([-+=]+|[0-9]+[.)])$`)       // would begin a list or underline a heading
)

// mdText writes prose that may hold words from a log. A word that markdown could
// act on is put in a code span, where nothing is; the rest stands as it is, so
// that the source reads well too. A call with blanks among its arguments and a
// command with its arguments are one span.
func mdText(s string) string { return mdWords(s, nil) }

// mdWords is mdText in which further words stand in code spans: those of which more holds.
func mdWords(s string, more func(word string) bool) string {
	words := strings.Fields(oneLine(s))
	var out []string
	for i := 0; i < len(words); {
		if n := codeRun(words[i:]); n > 1 {
			head, core, tail := trimCommand(strings.Join(words[i:i+n], " "))
			out = append(out, head+mdCode(core)+tail)
			i += n
			continue
		}
		w := words[i]
		head, core, tail := trimPunctuation(w)
		if strings.ContainsAny(core, special) || hexWord.MatchString(core) || reference.MatchString(core) || emoji.MatchString(w) ||
			autolink.MatchString(core) || more != nil && more(core) || i == 0 && listStart.MatchString(w) {
			if i == 0 && listStart.MatchString(w) {
				head, core, tail = "", w, ""
			}
			w = head + mdCode(core) + tail
		}
		out = append(out, w)
		i++
	}
	return strings.Join(out, " ")
}

// trimCommand takes the punctuation around a command off, but no quote or
// parenthesis that closes what the command opened.
func trimCommand(s string) (head, core, tail string) {
	if core = s; !method.MatchString(s) {
		core = strings.TrimPrefix(s, "(")
	}
	head = s[:len(s)-len(core)]
	rest := strings.TrimRight(core, ".,;:")
	for strings.HasSuffix(rest, ")") && strings.Count(rest, ")") > strings.Count(rest, "(") {
		rest = strings.TrimRight(strings.TrimSuffix(rest, ")"), ".,;:")
	}
	return head, rest, core[len(rest):]
}

// maxCodeRun bounds the words of one code span in prose.
const maxCodeRun = 24

var (
	method    = lazyre.New(`^\([^()]*\)\.[a-z_]+\(`) // of what stands in parentheses
	callStart = lazyre.New(`[A-Za-z0-9_\])]\(`)
	program   = lazyre.New(`^\(?(?:cat|dcgmi|df|dmesg|docker|du|echo|findmnt|free|fuser|grep|journalctl|kubectl|ls|lsof|namei|nc|nvidia-smi|ps|py-spy|python3?|quota|sacct|scontrol|squeue|ssh|torchrun|uname)$`)
	argument  = lazyre.New(`^(?:--?[A-Za-z0-9]|[|'"/$~]|[A-Z]+[.,;:)]*$|\S*=)`)
	bareFlag  = lazyre.New(`^--?[A-Za-z][\w-]*$`)
	subject   = lazyre.New(`^[A-Za-z0-9][\w.,/:-]*$`)
	prose     = lazyre.New(`^(?:a|after|an|and|as|at|before|beside|by|during|each|every|for|from|in|inside|is|lists|of|on|or|per|shows|the|then|to|until|while|with)$`)
)

// leads reports whether an argument follows within two words of a command.
func leads(words []string) bool {
	for _, w := range words[:min(len(words), 2)] {
		if argument.MatchString(w) {
			return true
		}
		if prose.MatchString(w) || !subject.MatchString(w) {
			return false
		}
	}
	return false
}

// codeRun is how many of the words from the first on are one call or one command:
// a call up to its closing parenthesis, a program up to its last argument. 0 is
// neither.
func codeRun(words []string) int {
	words = words[:min(len(words), maxCodeRun)]
	at := callStart.FindStringIndex(words[0])
	if words[0][0] == '(' && at == nil {
		for i := 1; i < len(words); i++ {
			if run := strings.Join(words[:i+1], " "); method.MatchString(run) && strings.Count(run, "(") <= strings.Count(run, ")") {
				return i + 1
			}
			if strings.ContainsAny(words[i][len(words[i])-1:], ",;.:)") {
				break
			}
		}
	}
	if at != nil {
		depth := 0
		for i, w := range words {
			if i == 0 {
				w = w[at[0]:]
			}
			depth += strings.Count(w, "(") - strings.Count(w, ")")
			if depth <= 0 {
				return i + 1
			}
		}
		return 0
	}
	if !program.MatchString(words[0]) {
		return 0
	}
	n, quotes := 1, 0
	for ; n < len(words); n++ {
		w, last := words[n], words[n-1]
		if quotes%2 == 0 {
			if n > 1 && strings.ContainsAny(last[len(last)-1:], ",;.:)") {
				break
			}
			word := strings.TrimRight(w, ",;.:)")
			plain := subject.MatchString(word) && !prose.MatchString(word)
			switch {
			case argument.MatchString(w), last == "|":
			case bareFlag.MatchString(last) && plain:
			case n < 4 && plain && word == w && leads(words[n+1:]): // kubectl get events --field-selector
			default:
				return n
			}
		}
		quotes += strings.Count(w, "'") + strings.Count(w, `"`)
	}
	return n
}

// trimPunctuation takes the punctuation around a word off, so that it stays out
// of the code span.
func trimPunctuation(w string) (head, core, tail string) {
	core = strings.TrimLeft(w, `("'`)
	head = w[:len(w)-len(core)]
	rest := strings.TrimRight(core, `.,;:)"'?`)
	if strings.Count(rest, "(") > strings.Count(rest, ")") { // keep f(x) whole
		rest = strings.TrimRight(core, `.,;:"'?`)
	}
	for _, q := range []string{`"`, "'"} { // keep x='y' whole
		if strings.Count(rest, q)%2 == 1 && strings.HasPrefix(core[len(rest):], q) {
			rest = core[:len(rest)+1]
		}
	}
	return head, rest, core[len(rest):]
}

// mdCode is s as a code span: the fence is longer than any run of backticks in it.
func mdCode(s string) string {
	s = oneLine(s)
	if strings.TrimSpace(s) == "" {
		return ""
	}
	fence := strings.Repeat("`", longestRun(s, '`')+1)
	if strings.HasPrefix(s, "`") || strings.HasSuffix(s, "`") || strings.HasPrefix(s, " ") && strings.HasSuffix(s, " ") {
		s = " " + s + " "
	}
	return fence + s + fence
}

func longestRun(s string, c rune) int {
	longest, n := 0, 0
	for _, r := range s {
		if r != c {
			n = 0
			continue
		}
		n++
		longest = max(longest, n)
	}
	return longest
}

// fence writes lines as a fenced block that they cannot close.
func (d *document) fence(language string, lines []string) {
	n := 3
	for _, l := range lines {
		n = max(n, longestRun(l, '`')+1)
	}
	f := strings.Repeat("`", n)
	fmt.Fprintf(d, "%s%s\n", f, language)
	for _, l := range lines {
		fmt.Fprintf(d, "%s\n", strings.TrimRight(oneLine(l), " "))
	}
	fmt.Fprintf(d, "%s\n", f)
}

func (d *document) heading(level int, text string) {
	if d.Len() > 0 && !strings.HasSuffix(d.String(), "\n\n") {
		d.WriteString("\n")
	}
	fmt.Fprintf(d, "%s %s\n\n", strings.Repeat("#", level), mdText(text))
}

// item writes one list item; label is markdown of ours, text is prose.
func (d *document) item(mark, label, text string) {
	fmt.Fprintf(d, "%s%s%s\n", mark, label, mdText(text))
}

func (d *document) paragraph(text string) {
	if s := mdText(text); s != "" {
		fmt.Fprintf(d, "%s\n\n", s)
	}
}

// table writes rows of code and prose; a bar inside a cell is escaped.
func (d *document) table(header []string, rows [][]string) {
	bar := func(cells []string) {
		for _, c := range cells {
			d.WriteString("| " + strings.ReplaceAll(c, "|", `\|`) + " ")
		}
		d.WriteString("|\n")
	}
	bar(header)
	bar(strings.Split(strings.Repeat("--- ", len(header)), " ")[:len(header)])
	rest := 0
	if !d.full && len(rows) > mdRows {
		rest, rows = len(rows)-mdRows, rows[:mdRows]
	}
	for _, r := range rows {
		bar(r)
	}
	if rest > 0 {
		fmt.Fprintf(d, "\n… %d more\n", rest)
	}
}

func (d *document) statement(mark string, s incident.Statement) {
	fmt.Fprintf(d, "%s%s%s\n", mark, mdText(s.Text), d.mdCites(s.Spans))
}

// mdCites are the places that prove a statement, in code spans.
func (w *words) mdCites(spans []evidence.Span) string {
	places, more := w.citeList(spans, 3)
	for i, p := range places {
		places[i] = mdCode(p)
	}
	if more {
		places = append(places, "…")
	}
	if len(places) == 0 {
		return ""
	}
	return " (" + strings.Join(places, ", ") + ")"
}

func (d *document) summary(inc *incident.Incident) {
	d.heading(2, "Summary")
	for _, s := range d.executive(d.verdictOf()) {
		d.paragraph(s)
	}
	for _, l := range inc.Limits {
		d.statement("- Not known: ", l)
	}
}

func (d *document) reading(inc *incident.Incident) {
	if len(inc.Hypotheses) == 0 {
		return
	}
	if r := onCall(inc.Hypotheses[0]); r != "" {
		d.heading(2, "On call")
		d.paragraph(r)
	}
	all := d.decisions()
	for _, x := range all {
		if x.Text == "" {
			fmt.Fprintf(d, "- %s: %s\n", upper(x.Label), mdCode(x.Code))
			continue
		}
		d.statement("- "+upper(x.Label)+": ", incident.Statement{Text: x.Text, Spans: x.Spans})
		if x.Code != "" {
			fmt.Fprintf(d, "  - Run: %s\n", mdCode(x.Code))
		}
	}
	if len(all) > 0 {
		fmt.Fprintln(d)
	}
}

func (d *document) evidence(inc *incident.Incident) {
	f := inc.FirstFault
	if f == nil {
		return
	}
	d.heading(2, "Proof")
	if f.KnownBy == "elimination" {
		d.paragraph(sentence(upper(inc.FirstFaultBasis)))
		for _, e := range f.Eliminated {
			d.statement("- ", incident.Statement{Text: sentence(ruledOut(e)), Spans: e.Spans})
		}
	} else {
		d.lines(f.Span, f.Text)
		if strings.HasPrefix(inc.FirstFaultBasis, "not decided ") {
			d.item("- ", "", sentence(upper(inc.FirstFaultBasis)))
		} else if inc.FirstFaultStanding == incident.Undecidable {
			d.item("- ", "Not decided because: ", sentence(inc.FirstFaultBasis))
		} else {
			d.item("- ", "First because: ", sentence(inc.FirstFaultBasis))
		}
		if s := f.Frame; s != nil {
			fmt.Fprintf(d, "- Your line: %s in %s: %s\n", mdCode(fmt.Sprintf("%s:%d", s.File, s.Line)), mdCode(s.Function), mdCode(s.Source))
		}
	}
	for i := range inc.FirstFaultRivals {
		d.item("- ", "Not ordered against it: ", rivalWords(&inc.FirstFaultRivals[i]))
	}
	if s := d.bracketWords(inc.Order); s != "" {
		d.item("- ", "Non-finite values: ", s)
	}
	if g := inc.LastGood; g != nil {
		d.item("- ", "Last good: ", d.goodWords(g))
	}
	shown := 0
	for i := range inc.Context {
		q := &inc.Context[i]
		if f.Span != nil && q.Artifact == f.Span.Artifact && q.Mark == f.Span.Line {
			continue
		}
		if shown++; shown > mdContext && !d.full {
			break
		}
		fmt.Fprintf(d, "\n%s\n\n", mdCode(q.Artifact))
		d.quote(q)
	}
}

// lines quotes what a span names, with the lines around it where the incident
// has them.
func (d *document) lines(sp *evidence.Span, text string) {
	fmt.Fprintf(d, "%s\n\n", mdCode(where(sp)))
	for i := range d.inc.Context {
		if q := &d.inc.Context[i]; sp != nil && q.Artifact == sp.Artifact && q.Mark == sp.Line && sp.Line > 0 {
			d.quote(q)
			d.WriteString("\n")
			return
		}
	}
	d.fence("text", []string{text})
	d.WriteString("\n")
}

// quote writes lines with their numbers; the one that matters has a mark.
func (d *document) quote(q *incident.Quote) {
	var lines []string
	digits := len(fmt.Sprint(q.Line + int64(len(q.Lines))))
	for i, l := range q.Lines {
		mark, n := " ", q.Line+int64(i)
		if n == q.Mark {
			mark = ">"
		}
		lines = append(lines, fmt.Sprintf("%s %*d  %s", mark, digits, n, l))
	}
	d.fence("text", lines)
}

func (d *document) change(inc *incident.Incident) {
	r := inc.Remedy
	if r == nil {
		return
	}
	d.heading(2, "Change ("+strings.Join(remedyTags(r), ", ")+")")
	d.paragraph(r.Change)
	if len(r.Edits) > 0 {
		var rows [][]string
		for _, e := range r.Edits {
			rows = append(rows, []string{mdText(editPlace(e)), mdCode(e.From), mdCode(e.To)})
		}
		d.table([]string{"Where", "From", "To"}, rows)
		d.WriteString("\n")
	}
	if r.Command != "" {
		label := "Run"
		if r.Scope == "measure" {
			label = "How"
		}
		d.WriteString(label + ":\n\n")
		d.fence("sh", strings.Split(r.Command, "\n"))
		d.WriteString("\n")
	}
	put := func(l labelled) { d.item("- ", "**"+mdText(upper(l.Label))+":** ", l.Text) }
	if r.Verify != "" {
		put(labelled{"check", r.Verify})
	}
	if r.Test != "" {
		d.WriteString("Test it:\n\n")
		d.fence("sh", strings.Split(r.Test, "\n"))
		d.WriteString("\n")
	}
	if s := expected(r); s != "" {
		put(labelled{"expect", s})
	}
	for _, l := range remedyDetails(r) {
		put(l)
	}
}

func (d *document) causes(inc *incident.Incident) {
	if len(inc.Hypotheses) == 0 {
		return
	}
	d.heading(2, "Why")
	for i, h := range inc.Hypotheses {
		if i == 3 && !d.full {
			fmt.Fprintf(d, "\n… %d more\n", len(inc.Hypotheses)-i)
			break
		}
		fmt.Fprintf(d, "%d. **%s**: %s (%s)\n", i+1, mdText(causeWords(h.Standing)), mdText(h.Title), mdCode(h.Entry))
		for _, s := range h.For {
			d.statement("   - for: ", s)
		}
		for _, s := range h.Against {
			d.statement("   - against: ", s)
		}
		for _, m := range h.Missing {
			d.item("   - ", "", missingWords(m))
		}
	}
}

func (d *document) followed(inc *incident.Incident) {
	if len(inc.Collateral) > 0 {
		d.heading(2, "What only followed")
		for _, c := range inc.Collateral {
			d.item("- ", "", d.collateralWords(c))
		}
	}
	if len(inc.Contributing) > 0 {
		d.heading(2, "Also seen")
		for _, s := range inc.Contributing {
			d.statement("- ", s)
		}
	}
}

func (d *document) attempts(inc *incident.Incident) {
	if len(inc.Attempts) < 2 {
		return
	}
	d.heading(2, "Launches in this input")
	for _, a := range inc.Attempts {
		d.item("- ", mdCode(a.ID)+": ", d.attemptWords(a))
	}
}

func (d *document) checklist(inc *incident.Incident) {
	if len(inc.Checklist) == 0 {
		return
	}
	c := checksOf(inc.Checklist)
	d.heading(2, "To confirm")
	d.paragraph(c.Progress() + ": " + c.Detail() + ".")
	for _, x := range c.Left {
		if x.How != "" {
			x.Item += ": " + x.How
		}
		d.item("- [ ] ", "", x.Item)
	}
	for _, x := range c.Answered {
		mark := "- [x] "
		if x.State == "no" {
			mark = "- [ ] **does not hold:** "
		}
		d.statement(mark, incident.Statement{Text: x.Item, Spans: x.Spans})
	}
}

func (d *document) baseline(inc *incident.Incident) {
	b := inc.Baseline
	if b == nil {
		return
	}
	d.heading(2, "Different from the run that worked")
	if len(b.Diffs) == 0 {
		d.paragraph("Nothing that both runs state differs.")
		return
	}
	var rows [][]string
	for _, x := range b.Diffs {
		rows = append(rows, []string{mdCode(x.Name), mdCode(x.From), mdCode(x.To)})
	}
	d.table([]string{"Setting", "Worked", "This run"}, rows)
}

func (d *document) hosts(inc *incident.Incident) {
	c := inc.HostComparison
	if c == nil {
		return
	}
	d.heading(2, hostsTitle(c))
	d.paragraph(c.Says)
	if len(c.Rows) == 0 {
		return
	}
	var rows [][]string
	for _, r := range c.Rows {
		differs := ""
		if r.Differs {
			differs = "differs"
		}
		rows = append(rows, []string{mdCode(r.Name), mdCode(r.Suspect), mdCode(r.Fresh), differs})
	}
	d.table([]string{"What", "Suspect", "Other", ""}, rows)
}

func (d *document) ranks(inc *incident.Incident) {
	if len(inc.Ranks) < 2 {
		return
	}
	d.heading(2, "Ranks")
	for _, s := range fateWords(inc.Ranks) {
		d.item("- ", "", upper(s))
	}
}

func (d *document) facts(inc *incident.Incident) {
	if len(inc.Facts) == 0 || !d.full {
		return
	}
	d.heading(2, "Facts")
	var rows [][]string
	for _, n := range factNames(inc) {
		f := inc.Facts[n]
		rows = append(rows, []string{mdCode(n), mdText(f.Text), strings.TrimSpace(d.mdCites(f.Spans))})
	}
	d.table([]string{"Fact", "Value", "Where"}, rows)
}

// factNames are the names of the facts in order.
func factNames(inc *incident.Incident) []string {
	var out []string
	for n := range inc.Facts {
		out = append(out, n)
	}
	sort.Strings(out)
	return out
}

func (d *document) read(inc *incident.Incident) {
	d.heading(2, "Read")
	d.paragraph(upper(d.readWords()))
	for _, l := range inc.Limits {
		d.statement("- ", l)
	}
	var rows [][]string
	for _, a := range inc.Artifacts {
		if d.full || a.Fate != "read" {
			size := ""
			if a.Size >= 0 {
				size = evidence.Bytes(a.Size)
			}
			rows = append(rows, []string{mdCode(a.Path), mdText(a.Kind), size, mdText(a.Fate), mdText(a.Note)})
		}
	}
	if len(rows) > 0 {
		if len(inc.Limits) > 0 {
			d.WriteString("\n")
		}
		d.table([]string{"Artifact", "Kind", "Size", "Fate", "Note"}, rows)
	}
}
