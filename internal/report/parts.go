package report

import (
	"encoding/json"
	"fmt"
	"html/template"
	"slices"

	"github.com/inquest-dev/inquest/internal/evidence"
	"github.com/inquest-dev/inquest/internal/incident"
)

// Parts are what an HTML report consists of, for another page to frame: the same templates have
// made them that make the report's own file. Nothing in them needs an inline style or script.
type Parts struct {
	Title    string // in one line
	Tone     string // of the verdict: bad, good, plain
	Badges   []Badge
	Verdict  []Pair
	First    string    // address of the first fault's place, "" where there is none or Link gave none
	Sections []Section // in order, each an element with Section.ID
	Data     []Data    // what the scripts draw from
	// Styles and Scripts name, in order, the files of PartFiles that the sections need, beside
	// page.css, which all need. A page that frames them has an element with the id said, in which
	// scripts say what they did.
	Styles, Scripts []string
}

// A Badge states one standing; its tone is good, bad, open or plain.
type Badge struct{ Label, Value, Tone string }

// A Pair is one line of a verdict.
type Pair struct{ Label, Text string }

// A Section is one part of a report, heading included.
type Section struct {
	ID, Title string
	HTML      template.HTML
}

// Data is JSON for an element script with type application/json and this id.
type Data struct {
	ID   string
	JSON template.JS // <, > and & are escaped in it
}

// Framing fits the parts of a report to the page that frames them.
type Framing struct {
	For string // as Options.For
	// Link is the address at which a place can be looked at in its context, "" for one that
	// cannot. It gets spans as the incident has them. Nil links none.
	Link func(*evidence.Span) string
}

// Names of the files that PartFiles has.
const (
	pageStyle     = "page.css"
	pageScript    = "page/plots.js"
	memoryStyle   = "memory/page.css"
	memoryScript  = "memory/page.js"
	trackerStyle  = "tracker/page.css"
	trackerScript = "tracker/page.js"
	plotStyle     = "uplot/uPlot.min.css"
	plotScript    = "uplot/uPlot.iife.min.js"
)

// PartFiles are the styles and scripts that framed parts need, by name. A page that frames them
// wires the copy buttons itself: they are hidden buttons of class copy, whose data-copy is the id
// of the element to copy the text of.
func PartFiles() map[string]string {
	files := map[string]string{pageScript: scriptOf("page/plots.js"), memoryScript: scriptOf(memoryScripts...), trackerScript: scriptOf(trackerScripts...)}
	for _, name := range []string{pageStyle, memoryStyle, trackerStyle, plotStyle, plotScript} {
		files[name] = asset(name)
	}
	return files
}

// PartsOf is what the HTML report of inc consists of.
func PartsOf(inc *incident.Incident, f Framing) (*Parts, error) {
	o := Options{For: f.For}
	if o.For != OnCall && o.For != Executive {
		o.For = Engineer
	}
	v, t, err := pageOf(inc, o, f.Link)
	if err != nil {
		return nil, err
	}
	p := &Parts{Title: v.Title, Tone: v.Tone, Badges: badgesOf(v.Badges), Verdict: pairsOf(v.Verdict)}
	if v.FirstFault != nil {
		p.First = v.open(v.FirstFault.Span)
	}
	for _, s := range v.Sections {
		html, err := rendered(t, "section", s)
		if err != nil {
			return nil, err
		}
		p.Sections = append(p.Sections, Section{s.ID, s.Title, html})
	}
	if v.drawn("plots") {
		raw, err := json.Marshal(map[string]any{"series": inc.Series}) // escapes <, > and &
		if err != nil {
			return nil, fmt.Errorf("write report: %w", err)
		}
		p.Data = []Data{{"incident", template.JS(visible(raw))}}
		p.Styles, p.Scripts = []string{plotStyle}, []string{plotScript, pageScript}
	}
	return p, nil
}

// MemoryPartsOf is what the HTML report of inquest memory consists of.
func MemoryPartsOf(m *incident.Memory) (*Parts, error) {
	p, t, err := memoryPageOf(m)
	if err != nil {
		return nil, err
	}
	out := &Parts{Title: p.Title, Tone: p.Tone, Verdict: pairsOf(p.Verdict), Styles: []string{memoryStyle}, Scripts: []string{memoryScript}}
	if err := out.put(t, "ranks", "Side by side", "ranks", p); err != nil {
		return nil, err
	}
	if err := out.put(t, "change", "From one snapshot to the next", "changed", p); err != nil {
		return nil, err
	}
	for _, d := range p.Devices {
		if err := out.put(t, d.ID, d.Title, "device", d); err != nil {
			return nil, err
		}
		out.Data = append(out.Data, Data{fmt.Sprintf("data-%d", d.N), d.Data})
	}
	return out, out.put(t, "files", "What was read", "files", p)
}

// TrackerPartsOf is what the HTML report of inquest tracker show consists of.
func TrackerPartsOf(tr *incident.Tracker) (*Parts, error) {
	p := newTrackPage(tr)
	t, err := trackerTemplates()
	if err != nil {
		return nil, err
	}
	out := &Parts{Title: p.Title, Tone: p.Tone, Badges: badgesOf(p.Badges), Verdict: pairsOf(p.Verdict), Styles: []string{trackerStyle}}
	for _, s := range p.NotFound {
		out.Verdict = append(out.Verdict, Pair{"Not read", s})
	}
	if p.live() {
		if err := p.packed(); err != nil {
			return nil, err
		}
		out.Data = []Data{{"data", p.Data}}
		out.Styles, out.Scripts = slices.Insert(out.Styles, 0, plotStyle), []string{plotScript, trackerScript}
	}
	if len(p.Disagree) > 0 {
		body, err := rendered(t, "statements", p.Disagree)
		if err != nil {
			return nil, err
		}
		if err := out.put(t, "disagree", "Disagreements", "section", htmlSection{"disagree", "Disagreements", body}); err != nil {
			return nil, err
		}
	}
	if err := out.put(t, "curves", "Curves", "curves", p); err != nil {
		return nil, err
	}
	for _, r := range p.Runs {
		if err := out.put(t, r.ID, r.Title, "run", r); err != nil {
			return nil, err
		}
	}
	return out, out.put(t, "files", "What was read", "files", p)
}

// put adds what a template gives, where it gives something.
func (p *Parts) put(t *template.Template, id, title, name string, data any) error {
	html, err := rendered(t, name, data)
	if err == nil && html != "" {
		p.Sections = append(p.Sections, Section{id, title, html})
	}
	return err
}

func badgesOf(all []badge) []Badge {
	var out []Badge
	for _, b := range all {
		out = append(out, Badge(b))
	}
	return out
}

func pairsOf(all []labelled) []Pair {
	var out []Pair
	for _, l := range all {
		out = append(out, Pair(l))
	}
	return out
}

// asGiven is link for spans of a cleaned incident: it is asked for artifacts by the names that
// the incident has, in which characters may stand that no page shows.
func asGiven(link func(*evidence.Span) string, artifacts []incident.Artifact) func(*evidence.Span) string {
	if link == nil {
		return nil
	}
	names := map[string]string{}
	for _, a := range artifacts {
		if s := clean(a.Path); s != a.Path {
			names[s] = a.Path
		}
	}
	return func(sp *evidence.Span) string {
		if name, ok := names[sp.Artifact]; ok {
			as := *sp
			as.Artifact = name
			return link(&as)
		}
		return link(sp)
	}
}
