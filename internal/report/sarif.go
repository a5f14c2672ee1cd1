package report

import (
	"fmt"
	"io"
	"strings"

	"github.com/inquest-dev/inquest/internal/evidence"
	"github.com/inquest-dev/inquest/internal/incident"
)

// Bounds of a SARIF log, far below what viewers take.
const (
	maxMessage       = 4 << 10 // bytes of one message
	maxSarifFiles    = 1000    // artifacts that are listed
	maxSarifResults  = 200
	maxSarifFlow     = 50 // places of one code flow
	maxSarifPlaces   = 50 // related places of one result
	maxNotifications = 100
)

// Rules beside the entries of the encyclopedia: parts that a failure has in a verdict.
const (
	ruleUnexplained = "inquest-unexplained"
	ruleRival       = "inquest-not-ordered"
	ruleFollowed    = "inquest-followed"
	ruleSeen        = "inquest-also-seen"
)

// partRules say what each is, and what that asks of its reader.
var partRules = map[string][2]string{
	ruleUnexplained: {"A failure that no known cause explains", "It came first, and no entry of the encyclopedia fits it. Read the line and the lines around it."},
	ruleRival:       {"A failure that the evidence cannot order against the first fault", "Either may have come first. What would decide it stands among what is missing, in the report as text."},
	ruleFollowed:    {"A failure that another one explains", "It goes when what explains it goes. Do not mend it by itself."},
	ruleSeen:        {"What made it worse, or contradicts what was said of it", "It does not explain the failure. Bear it in mind."},
}

// notices are the kinds of notifications of an invocation.
var notices = []sarifRule{
	ruleOf("inquest-read", "What was read", "Nothing failed in what was read, or nothing of a run was recognised.", ""),
	ruleOf("inquest-limit", "What was not read or cannot be decided", "What stands there could change the verdict.", ""),
}

// ruleOf is a rule or a kind of notification that is none of the encyclopedia's.
func ruleOf(id, short, help, level string) sarifRule {
	r := sarifRule{ID: id, ShortDescription: &sarifText{Text: short}, FullDescription: &sarifText{Text: short + "."}, Help: &sarifText{Text: help}}
	if level != "" {
		r.DefaultConfiguration = &sarifConfiguration{level}
	}
	return r
}

// A sarif is a log on its way.
type sarif struct {
	*words
	inc  *incident.Incident
	run  *sarifRun
	at   map[string]int // index of a rule by its id
	root string
}

// writeSARIF writes the diagnosis as a SARIF 2.1.0 log of one run. Its rules are the entries that
// the hypotheses name. The first fault is a result of level error, at the user's own source line
// where a traceback shows it, what cannot be ordered against it a warning, what only followed a
// note. Where nothing failed there is no result, and a notification says what was read.
func writeSARIF(w io.Writer, inc *incident.Incident, _ Options) error {
	inc = cleaned(inc)
	s := &sarif{words: newWords(inc), inc: inc, at: map[string]int{}, root: rootOf(inc)}
	s.run = &sarifRun{
		Tool: sarifTool{sarifDriver{Name: inc.Tool.Name, Version: limited(oneLine(inc.Tool.Version), maxSnippet),
			InformationURI: "https://github.com/inquest-dev/inquest", Rules: []sarifRule{}, Notifications: notices}},
		AutomationDetails: sarifAutomation{"inquest/diagnose/"},
		OriginalURIBaseIDs: map[string]sarifArtifact{sourceRoot: {Description: &sarifText{
			Text: "The folder to which relative paths refer: that of the checkout for source files, that in which inquest was asked for what was read."}}},
		Results:    []sarifResult{},
		ColumnKind: "unicodeCodePoints",
		Properties: map[string]any{"incident": oneLine(inc.ID), "outcome": inc.Outcome, "order": inc.Order.Relation},
	}
	if s.run.Tool.Driver.Name == "" {
		s.run.Tool.Driver.Name = "inquest"
	}
	for i := range inc.Hypotheses {
		s.entry(&inc.Hypotheses[i], i == 0)
	}
	s.files()
	s.results()
	s.run.Invocations = []sarifInvocation{s.invocation()}
	return writeJSON(w, &sarifLog{Schema: sarifSchema, Version: sarifVersion, Runs: []sarifRun{*s.run}}, Options{})
}

// entry adds the rule of a hypothesis: what its cause is, and for the leading one what to do.
func (s *sarif) entry(h *incident.Hypothesis, leading bool) {
	title := limited(oneLine(h.Title), maxSnippet)
	r := sarifRule{ID: oneLine(h.Entry), ShortDescription: &sarifText{Text: title}, DefaultConfiguration: &sarifConfiguration{"error"},
		Properties: map[string]any{"tags": []string{"gpu-training", "failure"}}}
	r.FullDescription = &sarifText{Text: sentence(title)}
	if h.Why != "" {
		r.FullDescription.Text = limited(sentence(upper(oneLine(h.Why))), maxSnippet)
	}
	var plain, md []string
	put := func(label, text string) {
		if text = strings.TrimSpace(oneLine(text)); text == "" {
			return
		}
		if label != "" {
			label += ": "
		}
		plain = append(plain, label+limited(text, maxSnippet))
		if label != "" {
			label = "**" + strings.TrimSuffix(label, " ") + "** "
		}
		md = append(md, label+mdText(limited(text, maxSnippet)))
	}
	put("", sentence(title))
	put("", h.Readings["engineer"])
	if m := s.inc.Remedy; m != nil && leading {
		put("Do", m.Change)
		put("Check", m.Verify)
	}
	put("All of it", "inquest explain "+h.Entry)
	r.Help = &sarifText{Text: strings.Join(plain, "\n"), Markdown: strings.Join(md, "\n\n")}
	s.rule(r)
}

// rule adds a rule once and returns its index.
func (s *sarif) rule(r sarifRule) int {
	if i, ok := s.at[r.ID]; ok {
		return i
	}
	i := len(s.run.Tool.Driver.Rules)
	s.at[r.ID] = i
	s.run.Tool.Driver.Rules = append(s.run.Tool.Driver.Rules, r)
	return i
}

// part returns the index of the rule of a part in the verdict.
func (s *sarif) part(id, level string) int {
	return s.rule(ruleOf(id, partRules[id][0], partRules[id][1], level))
}

// add adds a result under a rule, with what identifies it in other logs.
func (s *sarif) add(r sarifResult, id string, index int, key string) {
	if len(s.run.Results) == maxSarifResults {
		return
	}
	r.RuleID, r.RuleIndex, r.Kind = id, index, "fail"
	r.RelatedLocations = first50(r.RelatedLocations)
	for i := range r.RelatedLocations {
		r.RelatedLocations[i].ID = i + 1
	}
	if f := oneLine(s.inc.Fingerprint); f != "" {
		r.PartialFingerprints = map[string]string{"inquestFailure/v1": f + key}
	}
	s.run.Results = append(s.run.Results, r)
}

func first50(l []sarifLocation) []sarifLocation { return l[:min(len(l), maxSarifPlaces)] }

func (s *sarif) results() {
	f := s.inc.FirstFault
	if f == nil {
		return
	}
	s.first(f)
	for i := range s.inc.FirstFaultRivals {
		e := &s.inc.FirstFaultRivals[i]
		r := s.event(e, "warning", "Not ordered against the first fault, and may be it: "+rivalWords(e))
		s.add(r, ruleRival, s.part(ruleRival, "warning"), ":rival:"+e.Kind)
	}
	for i := range s.inc.Collateral {
		c := &s.inc.Collateral[i]
		r := s.event(&c.Event, "note", "Followed: "+s.collateralWords(*c))
		r.Properties["explainedBy"], r.Properties["rule"], r.Properties["count"] = c.ExplainedBy.Event, c.ExplainedBy.Rule, c.Count
		s.add(r, ruleFollowed, s.part(ruleFollowed, "note"), ":followed:"+c.Event.Kind+":"+c.ExplainedBy.Rule)
	}
	for i := range s.inc.Contributing {
		c := &s.inc.Contributing[i]
		r := sarifResult{Level: "note", Message: sarifMessage(c.Text)}
		r.Locations, r.RelatedLocations = proofs(c.Spans)
		s.add(r, ruleSeen, s.part(ruleSeen, "note"), fmt.Sprintf(":seen:%d", i))
	}
}

// proofs are the first of the spans as the place of a result, and the others beside it.
func proofs(spans []evidence.Span) (at, related []sarifLocation) {
	for i := range spans {
		if l := placeOf(&spans[i], ""); i == 0 {
			at = append(at, l)
		} else {
			l.Message = &sarifText{Text: "proof"}
			related = append(related, l)
		}
	}
	return at, related
}

// event is the result of one event: at the user's own line where a traceback shows it, with the
// line of the log beside it.
func (s *sarif) event(e *incident.Event, level, message string) sarifResult {
	r := sarifResult{Level: level, Message: sarifMessage(message), Properties: map[string]any{"kind": e.Kind, "class": e.Class, "knownBy": e.KnownBy, "event": e.ID}}
	if e.Rank != nil {
		r.Properties["rank"] = *e.Rank
	}
	if e.Host != nil {
		r.Properties["host"] = oneLine(*e.Host)
	}
	if e.Device != nil {
		r.Properties["device"] = *e.Device
	}
	if e.Step != nil {
		r.Properties["step"] = *e.Step
	}
	switch {
	case e.Frame != nil && e.Frame.File != "":
		r.Locations = []sarifLocation{s.frameOf(e.Frame)}
		if e.Span != nil {
			r.RelatedLocations = append(r.RelatedLocations, placeOf(e.Span, "where the log says it"))
		}
	case e.Span != nil:
		r.Locations = []sarifLocation{placeOf(e.Span, "")}
	}
	for i := range e.Eliminated {
		at, more := proofs(e.Eliminated[i].Spans)
		for _, l := range append(at, more...) {
			m := sarifMessage(e.Eliminated[i].Why)
			l.Message = &m
			if len(r.Locations) == 0 { // it left no words of its own
				r.Locations = append(r.Locations, l)
				continue
			}
			r.RelatedLocations = append(r.RelatedLocations, l)
		}
	}
	return r
}

// first adds the first fault.
func (s *sarif) first(f *incident.Event) {
	v := s.verdictOf()
	text := sentence(upper(v.First[0])) + " " + sentence(upper(v.Sure[0]))
	if s.inc.FirstFaultBasis != "" {
		label := " First because: "
		if s.inc.FirstFaultStanding == incident.Undecidable {
			label = " Not decided because: "
		}
		text += label + sentence(strings.TrimPrefix(s.inc.FirstFaultBasis, "not decided because "))
	}
	if s.inc.Remedy != nil {
		text += " Do: " + sentence(v.Do[0]) + " Check: " + sentence(v.Check[0])
	}
	r := s.event(f, "error", text)
	r.Properties["firstFault"], r.Properties["causes"] = s.inc.FirstFaultStanding, s.causeList()
	for i := range s.inc.FirstFaultRivals {
		e := &s.inc.FirstFaultRivals[i]
		if e.Span != nil {
			r.RelatedLocations = append(r.RelatedLocations, placeOf(e.Span, "not ordered against it: "+rivalWords(e)))
		}
	}
	for i, h := range s.inc.Hypotheses {
		for j := 0; i == 0 && j < len(h.For); j++ {
			for k := range h.For[j].Spans {
				if sp := &h.For[j].Spans[k]; f.Span == nil || sp.Artifact != f.Span.Artifact || sp.Line != f.Span.Line {
					r.RelatedLocations = append(r.RelatedLocations, placeOf(sp, h.For[j].Text))
				}
			}
		}
	}
	s.flow(&r, f)
	if len(s.inc.Hypotheses) > 0 {
		id := oneLine(s.inc.Hypotheses[0].Entry)
		s.add(r, id, s.at[id], "")
		return
	}
	s.add(r, ruleUnexplained, s.part(ruleUnexplained, "error"), "")
}

func (s *sarif) causeList() []map[string]string {
	out := []map[string]string{}
	for _, h := range s.inc.Hypotheses {
		out = append(out, map[string]string{"entry": oneLine(h.Entry), "standing": h.Standing})
	}
	return out
}

// flow adds the way from the last good value over the first fault to what followed, where what
// failed first is decided.
func (s *sarif) flow(r *sarifResult, f *incident.Event) {
	if s.inc.FirstFaultStanding == incident.Undecidable {
		return
	}
	var steps []sarifStep
	add := func(l sarifLocation, importance string, kinds ...string) {
		if (l.Physical != nil || l.Logical != nil) && len(steps) < maxSarifFlow {
			steps = append(steps, sarifStep{l, kinds, importance})
		}
	}
	if g := s.inc.LastGood; g != nil {
		add(placeOf(g.Span, "last good: "+s.goodWords(g)), "important")
	}
	if f.Frame != nil && f.Frame.File != "" {
		l := s.frameOf(f.Frame)
		l.Message = &sarifText{Text: "the user's own line"}
		add(l, "essential", "call")
	}
	add(placeOf(f.Span, "the first fault: "+faultWords(f)), "essential", "danger")
	for i := range s.inc.Collateral {
		c := &s.inc.Collateral[i]
		add(placeOf(c.Event.Span, "followed: "+s.collateralWords(*c)), "unimportant")
	}
	if len(steps) < 2 {
		return
	}
	r.CodeFlows = []sarifCodeFlow{{Message: &sarifText{Text: "From the last good value over the first fault to what only followed"},
		ThreadFlows: []sarifThreadFlow{{steps}}}}
}

// files lists what was read, and what was not.
func (s *sarif) files() {
	seen := map[string]bool{}
	for i := range s.inc.Artifacts {
		a := &s.inc.Artifacts[i]
		if len(seen) == maxSarifFiles {
			break
		}
		at := sarifPath(a.Path)
		if a.Path == "-" || seen[at.URI] {
			continue
		}
		seen[at.URI] = true
		f := sarifFile{Location: at, Roles: []string{"analysisTarget"}, Properties: map[string]any{"fate": a.Fate, "kind": a.Kind}}
		if a.Size >= 0 {
			n := a.Size
			f.Length = &n
		}
		if sum, ok := strings.CutPrefix(a.Digest, "sha256:"); ok {
			f.Hashes = map[string]string{"sha-256": sum}
		}
		s.run.Artifacts = append(s.run.Artifacts, f)
	}
}

// invocation says whether the question was answered, what was read and what was not.
func (s *sarif) invocation() sarifInvocation {
	v := sarifInvocation{ExecutionSuccessful: !Unanswered(s.inc)}
	note := func(index int, level, text string, spans []evidence.Span) {
		if len(v.Notifications) == maxNotifications {
			return
		}
		n := sarifNotification{Descriptor: sarifReference{notices[index].ID, index}, Level: level, Message: sarifMessage(text)}
		for i := range spans[:min(len(spans), 3)] {
			if l := placeOf(&spans[i], ""); l.Physical != nil {
				n.Locations = append(n.Locations, l)
			}
		}
		v.Notifications = append(v.Notifications, n)
	}
	if len(s.run.Results) == 0 {
		level := "note"
		if Unanswered(s.inc) {
			level = "error"
		}
		note(0, level, sentence(upper(s.verdictOf().First[0]))+" "+sentence(upper(s.readWords())), nil)
	}
	for _, l := range s.inc.Limits {
		note(1, "warning", l.Text, l.Spans)
	}
	return v
}
