package report

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html/template"
	"io"
	"strings"

	"github.com/inquest-dev/inquest/internal/evidence"
	"github.com/inquest-dev/inquest/internal/incident"
)

//go:embed assets
var assets embed.FS

// A part is one section of the page; its template has the same name.
type part struct{ name, title string }

// htmlSections order the parts of a page for each reader. A part with nothing to
// say leaves no trace.
var htmlSections = map[string][]part{
	Engineer: {{"timeline", "Timeline"}, {"evidence", "Evidence"}, {"groups", "Process groups"}, {"causes", "Why"}, {"change", "Change"}, {"checklist", "To confirm"},
		{"plots", "Curves"}, {"followed", "What only followed"}, {"attempts", "Launches"}, {"baseline", "Against the run that worked"},
		{"hosts", "Hosts compared"}, {"ranks", "Ranks"}, {"facts", "Facts"}, {"files", "What was read"}},
	OnCall: {{"reading", "On call"}, {"hosts", "Hosts compared"}, {"timeline", "Timeline"}, {"followed", "What only followed"}, {"ranks", "Ranks"}, {"change", "Change"},
		{"evidence", "Evidence"}, {"groups", "Process groups"}, {"causes", "Why"}, {"checklist", "To confirm"}, {"attempts", "Launches"}, {"plots", "Curves"}, {"files", "What was read"}},
	Executive: {{"summary", "Summary"}, {"plots", "Curves"}, {"limits", "What is not known"}},
}

// writeHTML writes one page that needs nothing else: styles, scripts and the
// incident are in it. Its policy allows exactly these styles and scripts, by
// hash, and no request. Without scripts the page says the same; they add copy
// buttons and plots that can be read off.
func writeHTML(w io.Writer, inc *incident.Incident, o Options) error {
	raw, err := json.Marshal(inc) // escapes <, > and &
	if err != nil {
		return fmt.Errorf("write report: %w", err)
	}
	v, t, err := pageOf(inc, o, nil)
	if err != nil {
		return err
	}
	v.JSON = template.JS(visible(raw))
	style, script := asset("page.css"), scriptOf("page/copy.js", "page/plots.js")
	if v.drawn("plots") {
		style = asset("uplot/uPlot.min.css") + style
		script = asset("uplot/uPlot.iife.min.js") + script
	}
	v.Style, v.Script = template.CSS(style), template.JS(script)
	v.Policy = policyOf(style, script)
	if err := t.ExecuteTemplate(w, "page.html", v); err != nil {
		return fmt.Errorf("write report: %w", err)
	}
	return nil
}

// pageOf is what the page of an incident consists of, its sections rendered, and the templates
// that it is made with. Places lead to link's address for them, where it is given.
func pageOf(inc *incident.Incident, o Options, link func(*evidence.Span) string) (*view, *template.Template, error) {
	v := newView(cleaned(inc), o, asGiven(link, inc.Artifacts))
	t, err := template.New("page").Funcs(v.funcs()).ParseFS(assets, "assets/shared/*.html", "assets/*.html")
	if err != nil {
		return nil, nil, fmt.Errorf("write report: %w", err)
	}
	for _, p := range htmlSections[o.For] {
		body, err := rendered(t, p.name, v)
		if err != nil {
			return nil, nil, err
		}
		if body != "" {
			v.Sections = append(v.Sections, htmlSection{p.name, p.title, body})
		}
	}
	return v, t, nil
}

// rendered is what a template gives, without the blanks around it.
func rendered(t *template.Template, name string, data any) (template.HTML, error) {
	var b bytes.Buffer
	if err := t.ExecuteTemplate(&b, name, data); err != nil {
		return "", fmt.Errorf("write report: section %s: %w", name, err)
	}
	return template.HTML(strings.TrimSpace(b.String())), nil
}

// asset is an embedded file. A missing one is a broken build.
func asset(name string) string {
	b, err := assets.ReadFile("assets/" + name)
	if err != nil {
		panic(err)
	}
	return string(b)
}

// scriptOf is a script made of parts, whose names are its own.
func scriptOf(parts ...string) string {
	script := "\"use strict\";\n(() => {\n"
	for _, name := range parts {
		script += asset(name)
	}
	return script + "})();\n"
}

// policyOf allows exactly this style and this script, and no request.
func policyOf(style, script string) template.HTML {
	return template.HTML(fmt.Sprintf(`<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src '%s'; script-src '%s'; base-uri 'none'; form-action 'none'">`, hashOf(style), hashOf(script)))
}

// hashOf is the source expression that allows an inline element with this text.
func hashOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "sha256-" + base64.StdEncoding.EncodeToString(sum[:])
}

// A htmlSection is a rendered part of the page.
type htmlSection struct {
	ID, Title string
	Body      template.HTML
}

// A view is what the templates see of an incident.
type view struct {
	*incident.Incident
	For      string
	Title    string
	Tone     string // of the verdict: bad or good
	Verdict  []labelled
	Badges   []badge
	Summary  []string
	Proofs   []*proof
	Timeline *lanes
	Plots    []plot
	Sections []htmlSection
	Policy   template.HTML
	Style    template.CSS
	Script   template.JS
	JSON     template.JS

	w       *words
	proofAt map[string]string // where -> id of the proof
	link    func(*evidence.Span) string
}

// A badge states one standing; Tone is good, bad, open or plain.
type badge struct{ Label, Value, Tone string }

// A proof is an event or value with the lines around it.
type proof struct {
	ID, Title, Tone string
	Where           string
	Open            string // address of the place in its context
	Detail          string // bytes, time, attributes
	Lines           []proofLine
}

type proofLine struct {
	N    int64
	Text string
	Mark bool
}

// A cite points at the proof on the page where there is one, else it carries the
// quoted text itself.
type cite struct{ Text, Href, Quote, Detail string }

func (v *view) drawn(id string) bool {
	for _, s := range v.Sections {
		if s.ID == id {
			return true
		}
	}
	return false
}

func newView(inc *incident.Incident, o Options, link func(*evidence.Span) string) *view {
	w := newWords(inc)
	words := w.verdictFor(o.For)
	v := &view{Incident: inc, w: w, For: o.For, Title: w.title(), proofAt: map[string]string{}, link: link}
	v.Verdict = words.full()
	for _, s := range inc.NotFound {
		v.Verdict = append(v.Verdict, labelled{"Not read", s})
	}
	v.Tone = "bad"
	if inc.FirstFault == nil {
		v.Tone = "good"
		if Unanswered(inc) || len(damaged(inc)) > 0 {
			v.Tone = "plain"
		}
	}
	v.Summary = w.executive(words)
	v.Badges = badges(inc)
	if o.For != Executive { // whose page quotes no logs
		v.prove()
	}
	v.Timeline = timelineOf(v)
	v.Plots = plotsOf(inc)
	return v
}

// standingTones colour a standing; the word always stands beside it.
var standingTones = map[string]string{
	incident.Established: "good", incident.Supported: "open", incident.Possible: "open", incident.Undecidable: "bad", incident.RuledOut: "plain",
}

func badges(inc *incident.Incident) []badge {
	tone := map[string]string{incident.Failed: "bad", incident.FinishedRun: "good", incident.Interrupted: "open", incident.Unclear: "open"}[inc.Outcome]
	out := []badge{{"outcome", inc.Outcome, tone}}
	if inc.FirstFault != nil {
		out = append(out, badge{"first fault", inc.FirstFaultStanding, standingTones[inc.FirstFaultStanding]})
		if len(inc.Hypotheses) > 0 {
			s := inc.Hypotheses[0].Standing
			value := standingWords(s)
			if s == incident.Possible {
				value = "open"
			}
			out = append(out, badge{"cause", value, standingTones[s]})
		}
	}
	if inc.FirstFault != nil || inc.Status != "open" {
		out = append(out, badge{"incident", inc.Status, map[string]string{"confirmed": "good", "regressed": "bad", "unresolved": "bad"}[inc.Status]})
	}
	n := 0
	for _, a := range inc.Artifacts {
		if a.Fate != "read" {
			n++
		}
	}
	if n > 0 {
		out = append(out, badge{"not read in full", fmt.Sprintf("%d of %d", n, len(inc.Artifacts)), "open"})
	}
	for i := range out {
		if out[i].Tone == "" {
			out[i].Tone = "plain"
		}
	}
	return out
}

// prove collects the places that the page quotes: the first fault, its rivals,
// the memory and non-finite events, the last good value and what followed. Each
// place once; the first reason to quote it gives the title.
func (v *view) prove() {
	put := func(title, tone string, sp *evidence.Span, text, detail string) {
		if sp == nil {
			return
		}
		w := where(sp)
		if _, ok := v.proofAt[w]; ok {
			return
		}
		p := &proof{ID: fmt.Sprintf("ev-%d", len(v.Proofs)+1), Title: title, Tone: tone, Where: w, Open: v.open(sp), Detail: detail}
		if sp.Kind == "text" {
			p.Detail = strings.TrimPrefix(fmt.Sprintf("%s, bytes %d to %d", detail, sp.Offset, sp.Offset+sp.Length), ", ")
		}
		for _, q := range v.Context {
			if q.Artifact == sp.Artifact && q.Mark == sp.Line && sp.Line > 0 {
				for i, l := range q.Lines {
					n := q.Line + int64(i)
					p.Lines = append(p.Lines, proofLine{n, l, n == q.Mark})
				}
				break
			}
		}
		if p.Lines == nil {
			if text == "" {
				text = sp.Quote
			}
			p.Lines = []proofLine{{sp.Line, oneLine(text), true}}
		}
		v.proofAt[w] = p.ID
		v.Proofs = append(v.Proofs, p)
	}
	event := func(title, tone string, e *incident.Event) {
		if e != nil && e.Span != nil {
			put(title+": "+eventWords(e), tone, e.Span, e.Text, timeWords(e.Time))
		}
	}
	if f := v.FirstFault; f != nil && f.Span != nil {
		if v.undecided() {
			event("Candidate", "rival", f)
		} else {
			event("First fault", "first", f)
		}
	}
	for i := range v.FirstFaultRivals {
		event("Candidate", "rival", &v.FirstFaultRivals[i])
	}
	event("Memory failure", "rival", v.Order.MemoryEvent)
	event("Non-finite value", "rival", v.Order.NonfiniteEvent)
	if g := v.LastGood; g != nil {
		put("Last good: "+v.w.goodWords(g), "good", g.Span, "", timeWords(g.Time))
	}
	if f := v.FirstFault; f != nil {
		for _, e := range f.Eliminated {
			for i := range e.Spans {
				put("How it is known: "+ruledOut(e), "plain", &e.Spans[i], "", "")
			}
		}
	}
	for i := range v.Collateral {
		event("Followed", "plain", &v.Collateral[i].Event)
	}
}

// undecided reports whether the first fault is one of several equals.
func (v *view) undecided() bool { return v.FirstFaultStanding == incident.Undecidable }

func eventWords(e *incident.Event) string {
	s := kindWords(e.Kind)
	if w := who(e); w != "" {
		s += ", " + w
	}
	if e.Step != nil {
		s += fmt.Sprintf(", step %d", *e.Step)
	}
	return s
}

// timeWords is an instant as people read it, with the zone it was written in.
func timeWords(t *incident.Time) string {
	switch {
	case t == nil:
		return ""
	case t.UTC != nil:
		return *t.UTC + " (written " + t.Written + ")"
	case t.Clock == "wall" || t.Clock == "":
		return t.Written + ", zone not stated"
	}
	return t.Written + ", " + t.Clock + " clock"
}

// funcs are the words that the templates use.
func (v *view) funcs() template.FuncMap {
	return template.FuncMap{
		"cites": v.cites, "cause": causeWords, "kind": kindWords, "near": v.w.near, "onCall": onCall, "decisions": v.w.decisions,
		"ranks": ranksWords, "groups": func() []incident.Group { return groupsOf(v.Incident) }, "group": func(g incident.Group) string { _, text := groupWords(g); return text },
		"groupName": func(g incident.Group) string { name, _ := groupWords(g); return name }, "bytes": evidence.Bytes, "good": v.w.goodWords, "bracket": v.w.bracketWords, "time": timeWords, "upper": upper,
		"tool": toolWords, "sentence": sentence, "checks": func() checks { return checksOf(v.Checklist) },
		"tags": func(r *incident.Remedy) string { return strings.Join(remedyTags(r), ", ") }, "details": remedyDetails, "expected": expected, "place": editPlace,
		"attempt": v.w.attemptWords, "read": v.w.readWords, "names": func() []string { return factNames(v.Incident) }, "ruledOut": ruledOut,
		"tone": func(s string) string { return standingTones[s] }, "join": func(s []string) string { return listed(s, 4) },
		"deref": func(p any) string { return deref(p) }, "fates": fateWords, "href": func(sp *evidence.Span) string { return v.href(sp) }, "plural": plural,
	}
}

// deref prints what an optional value holds, or a dash.
func deref(p any) string {
	switch x := p.(type) {
	case *int:
		if x != nil {
			return fmt.Sprint(*x)
		}
	case *int64:
		if x != nil {
			return fmt.Sprint(*x)
		}
	case *float64:
		if x != nil {
			return number(*x)
		}
	case *string:
		if x != nil {
			return *x
		}
	}
	return "–"
}

// open is the address of a place in its context, "" where the page is a file of its own.
func (v *view) open(sp *evidence.Span) string {
	if sp == nil || v.link == nil {
		return ""
	}
	return v.link(sp)
}

// href is where a place can be looked at: in its context, else quoted on this page, else nowhere.
func (v *view) href(sp *evidence.Span) string {
	if sp == nil {
		return ""
	}
	if s := v.open(sp); s != "" {
		return s
	}
	if id := v.proofAt[where(sp)]; id != "" {
		return "#" + id
	}
	return ""
}

// maxCites bounds the places shown behind one statement.
const maxCites = 6

func (v *view) cites(spans []evidence.Span) []cite {
	var out []cite
	seen := map[string]bool{}
	for i := range spans {
		sp := &spans[i]
		w := where(sp)
		if w == "" || seen[w] {
			continue
		}
		seen[w] = true
		if len(out) == maxCites {
			out = append(out, cite{Text: "… more in the incident"})
			break
		}
		c := cite{Text: v.w.near(sp), Href: v.href(sp), Quote: oneLine(sp.Quote), Detail: w}
		if sp.Kind == "text" {
			c.Detail += fmt.Sprintf(", bytes %d to %d", sp.Offset, sp.Offset+sp.Length)
		}
		out = append(out, c)
	}
	return out
}
