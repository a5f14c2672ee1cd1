package engine

import (
	"context"
	"crypto/sha256"
	"fmt"
	"math"
	"slices"
	"sort"
	"strconv"
	"strings"
	"time"

	"github.com/inquest-dev/inquest/internal/catalog"
	"github.com/inquest-dev/inquest/internal/diagnose"
	"github.com/inquest-dev/inquest/internal/evidence"
	"github.com/inquest-dev/inquest/internal/incident"
	"github.com/inquest-dev/inquest/internal/remedy"
	"github.com/inquest-dev/inquest/internal/timeline"
)

// Bounds of what an incident keeps, so that a job of a thousand ranks gives a
// report and not another log.
const (
	maxCollateral = 60
	maxHypotheses = 8
	maxRivals     = 8
	maxSeries     = 64
	maxPoints     = 240
	maxSettings   = 200
)

// incident puts the study down.
func (s *Study) incident(ctx context.Context, o Options) (*incident.Incident, error) {
	inc := &incident.Incident{
		Schema: incident.Schema, Tool: incident.Tool{Name: "inquest", Version: o.Version}, Status: "open",
		Contributing: []incident.Statement{}, Limits: []incident.Statement{}, Attempts: []incident.Attempt{},
		Ranks: []incident.Rank{}, Hosts: []incident.Host{}, Groups: []incident.Group{}, Facts: map[string]incident.Fact{}, Series: []incident.Series{},
		Artifacts: []incident.Artifact{}, PassedOver: []incident.PassedOver{}, NotFound: []string{}, Context: []incident.Quote{}, Checklist: []incident.CheckItem{},
	}
	for i := range s.Cases {
		inc.Attempts = append(inc.Attempts, s.attempt(i, o.Catalog))
	}
	inc.Findings = inc.Attempts[s.Main].Findings
	inc.Outcome = s.Cases[s.Ended].Outcome
	if s.Main != s.Ended && inc.Outcome == incident.Unclear {
		inc.Outcome = s.Cases[s.Main].Outcome
	}
	if h := s.Weighed[s.Main]; len(h) > 0 {
		inc.Checklist = diagnose.Checklist(o.Catalog, h[0].Entry, s.Known[s.Main])
		for i, n := 0, namesOf(s.Cases[s.Main]); i < len(inc.Checklist); i++ {
			inc.Checklist[i].How = n.in(inc.Checklist[i].How)
		}
	}
	s.ranks(inc)
	inc.OnCall = s.onCall(inc.Ranks)
	if o.CompareHost != "" {
		inc.HostComparison = s.compareHost(o.CompareHost)
	}
	s.contributing(inc)
	inc.Limits = append(inc.Limits, o.Limits...)
	s.limits(inc)
	s.facts(inc)
	s.series(inc)
	s.artifacts(inc)
	if err := s.quotes(ctx, inc); err != nil {
		return nil, err
	}
	mask(inc)
	s.identify(inc)
	return inc, nil
}

// attempt is everything that is said of one attempt.
func (s *Study) attempt(i int, cat *catalog.Catalog) incident.Attempt {
	c, t := s.Cases[i], s.Timeline.Attempts[i]
	out := incident.Attempt{ID: t.ID, Spans: []evidence.Span{}, Hosts: []string{}, Outcome: c.Outcome, Command: t.Command, Start: timeOf(t.Start), End: timeOf(t.End)}
	for n, p := range t.Parts {
		if n < maxCollateral {
			sp := p.Span
			if sp.Artifact == "" {
				sp.Artifact, sp.Kind = s.Reading.Sources[p.Source].Artifact.Path, "text"
			}
			out.Spans = append(out.Spans, sp)
		}
	}
	hosts := map[string]bool{}
	for _, it := range t.Items {
		if it.Attempt == i && it.Who.Host != "" {
			hosts[it.Who.Host] = true
		}
	}
	for h := range hosts {
		out.Hosts = append(out.Hosts, h)
	}
	sort.Strings(out.Hosts)
	f := &out.Findings
	f.FirstFaultRivals, f.Collateral, f.Hypotheses = []incident.Event{}, []incident.Collateral{}, []incident.Hypothesis{}
	if c.Lead != nil {
		e := s.event(c.Lead, c)
		f.FirstFault, f.FirstFaultBasis, f.FirstFaultStanding = &e, c.Basis, c.Standing
		for n, r := range c.Rivals {
			if n < maxRivals {
				f.FirstFaultRivals = append(f.FirstFaultRivals, s.event(r, c))
			}
		}
	}
	f.Order = s.order(i)
	if ser, p := diagnose.LastGood(c); p != nil {
		f.LastGood = good(ser, p)
	}
	for n, l := range c.Links {
		if n == maxCollateral {
			break
		}
		f.Collateral = append(f.Collateral, incident.Collateral{Event: s.event(l.Item, nil), Ranks: l.Ranks, Count: l.Count,
			ExplainedBy: incident.Explained{Event: l.By.ID, Rule: l.Rule, Text: l.Text}})
	}
	values := s.Known[i].Values()
	for n, h := range s.Weighed[i] {
		if n == maxHypotheses {
			break
		}
		f.Hypotheses = append(f.Hypotheses, h.Incident(values))
	}
	if h := s.Weighed[i]; len(h) > 0 {
		l := &remedy.Leading{Entry: h[0].Entry, Standing: h[0].Standing, Missing: h[0].Missing, Holds: func(when string) bool {
			return cat.Eval(when, values).Verdict == catalog.True
		}}
		if len(h) > 1 && h[1].Standing == h[0].Standing {
			l.Rival = h[1].Entry.Title
		}
		f.Remedy = remedy.Choose(l, s.Known[i], t.Command, s.keptLogging(c))
		namesOf(c).fillRemedy(f.Remedy)
	}
	if i > 0 {
		out.ChangedFrom = &incident.Changed{ID: s.Timeline.Attempts[i-1].ID, Diffs: diffs(s.Known[i-1], s.Known[i])}
	}
	return out
}

// keptLogging reports whether non-finite or replaced values went on being
// logged after the fault.
func (s *Study) keptLogging(c *diagnose.Case) bool {
	if c.NaN == nil {
		return false
	}
	if c.NaN.Attrs["hidden"].True() || c.NaN.Kind == evidence.LossOmitted {
		return true
	}
	for _, x := range c.Attempt.Series {
		if x.Bad > 1 && x.Key.Artifact == c.NaN.Span.Artifact {
			return true
		}
	}
	return false
}

// event states one event; c gives what is known by elimination.
func (s *Study) event(it *timeline.Item, c *diagnose.Case) incident.Event {
	e := incident.Event{ID: it.ID, Kind: string(it.Kind), Text: it.Text, Attrs: map[string]any{}, KnownBy: "words", Attempt: ""}
	if sp := evidence.SpecOf(it.Kind); sp != nil {
		e.Class = string(sp.Class)
	}
	if c != nil && c.LeadClass != "" && (it == c.Lead || c.Eliminations[it] != nil) {
		e.Class = string(c.LeadClass)
	}
	if it.Attempt >= 0 {
		e.Attempt = s.Timeline.Attempts[it.Attempt].ID
	}
	e.Rank, e.LocalRank, e.Device = opt(it.Who.Rank), opt(it.Who.LocalRank), opt(it.Who.Device)
	if it.Who.Host != "" {
		h := it.Who.Host
		e.Host = &h
	}
	if it.Step >= 0 {
		n := it.Step
		e.Step = &n
	}
	if it.Epoch > 0 {
		x := it.Epoch
		e.Epoch = &x
	}
	for n, v := range it.Attrs {
		e.Attrs[n] = plain(v)
	}
	e.Time = timeOf(it.Stamp)
	if it.Source >= 0 {
		sp := it.Span
		e.Span = &sp
	}
	for i := len(it.Stack) - 1; i >= 0; i-- {
		if fr := it.Stack[i]; !library(fr.File) {
			e.Frame = &incident.Frame{File: fr.File, Line: fr.Line, Function: fr.Function, Source: fr.Source}
			break
		}
	}
	if c == nil {
		return e
	}
	if out := c.Eliminations[it]; out != nil {
		e.KnownBy = "elimination"
		e.Eliminated = []incident.Elimination{{Ranks: out.Ranks, Why: out.Why, Spans: out.Spans}}
	}
	return e
}

// library reports whether a source file is not the user's own.
func library(file string) bool {
	for _, p := range []string{"site-packages", "dist-packages", "/lib/python", "<frozen", "<string>", "torch/", "\\lib\\"} {
		if strings.Contains(file, p) {
			return true
		}
	}
	return false
}

func opt(n int) *int {
	if n < 0 {
		return nil
	}
	return &n
}

func plain(v evidence.Value) any {
	switch v.T {
	case evidence.Int:
		return v.I
	case evidence.Float:
		if math.IsNaN(v.F) || math.IsInf(v.F, 0) {
			return v.String()
		}
		return v.F
	case evidence.Bool:
		return v.I != 0
	case evidence.Size:
		return map[string]int64{"lo": v.Lo, "hi": v.Hi}
	case evidence.Ints:
		return v.L
	}
	return v.S
}

func timeOf(st evidence.Stamp) *incident.Time {
	if !st.Known() {
		return nil
	}
	t := &incident.Time{Written: st.Written, Zone: st.Zone, ErrorS: st.Error.Seconds(), Clock: st.Clock}
	if st.Zone != "" && !st.NoDate && !st.NoYear && st.Clock == "wall" {
		u := st.Time.UTC().Format(time.RFC3339Nano)
		t.UTC = &u
	}
	return t
}

func good(s *evidence.Series, p *evidence.Point) *incident.LastGood {
	g := &incident.LastGood{Rank: opt(s.Key.Rank), Time: timeOf(p.When())}
	if p.Step != evidence.None {
		n := p.Step
		g.Step = &n
	}
	if !math.IsNaN(p.Value) && !math.IsInf(p.Value, 0) {
		if s.Key.Name == "loss" {
			v := p.Value
			g.Loss = &v
		} else {
			g.Value = s.Key.Name + " " + strconv.FormatFloat(p.Value, 'g', 5, 64)
		}
	} else {
		g.Value = fmt.Sprint(p.Value)
	}
	sp := s.Span(*p)
	g.Span = &sp
	return g
}

// relate relates memory and non-finite values for attempt i.
func (s *Study) relate(i int) diagnose.Order {
	return diagnose.OrderOf(s.Cases, i, func(c *diagnose.Case, it *timeline.Item) bool {
		if it.Kind != evidence.LibraryOOM || it.Attrs["certain"].True() {
			return true
		}
		k := s.Known[c.Index]
		return k.True("gpu.full_by_job") || k["memory.peak_fraction"].Value.F > .95 || k["seen.device_oom"].Value.I > 0
	})
}

// order puts down how memory and non-finite values stand to each other for attempt i.
func (s *Study) order(i int) incident.Order {
	o := s.relate(i)
	out := incident.Order{Relation: o.Relation, Basis: o.Basis, SameAttempt: o.SameAttempt, Linked: o.Linked, Mechanism: o.Mechanism}
	if o.Memory != nil {
		e := s.event(o.Memory, nil)
		out.MemoryEvent = &e
	}
	if o.NaN != nil {
		e := s.event(o.NaN, nil)
		e.Class = string(evidence.Nonfinite)
		out.NonfiniteEvent = &e
		if b := diagnose.BracketOf(o.NaNCase, o.NaN); b != nil {
			br := &incident.Bracket{Trust: string(b.Series.Key.Trust)}
			if b.Last != nil {
				br.LastFinite = good(b.Series, b.Last)
			}
			if b.First != nil {
				br.FirstSeen = good(b.Series, b.First)
			}
			if b.Last != nil && b.First != nil && b.Last.Step >= 0 && b.First.Step > b.Last.Step {
				n := b.First.Step - b.Last.Step
				br.Stride = &n
			}
			out.NonfiniteBracket = br
		}
	}
	return out
}

// diffs lists settings and versions that differ, by name.
func diffs(a, b evidence.Known) []incident.Diff {
	out := []incident.Diff{}
	for _, n := range b.Names() {
		if !strings.HasPrefix(n, "setting.") && !strings.HasPrefix(n, "run.") || n == "run.frameworks" || n == "run.stack" {
			continue
		}
		x, ok := a[n]
		y := b[n]
		if !ok || x.Value.String() == y.Value.String() || len(out) >= maxSettings {
			continue
		}
		if strings.HasPrefix(n, "setting.") && stated(out, x, y) {
			continue
		}
		out = append(out, incident.Diff{Name: strings.TrimPrefix(strings.TrimPrefix(n, "setting."), "run."), From: x.Value.String(), To: y.Value.String(), Spans: append(append([]evidence.Span{}, x.Spans...), y.Spans...)})
	}
	return out
}

// stated reports whether a difference in out is this very one: a configuration
// key that sets a declared fact differs beside the fact, on the same lines.
func stated(out []incident.Diff, x, y evidence.Found) bool {
	for _, d := range out {
		same := func(v string, f evidence.Found) bool {
			a, err1 := strconv.ParseFloat(v, 64)
			b, err2 := strconv.ParseFloat(f.Value.String(), 64)
			if v != f.Value.String() && (err1 != nil || err2 != nil || a != b) {
				return false
			}
			return slices.ContainsFunc(f.Spans, func(s evidence.Span) bool { return slices.Contains(d.Spans, s) })
		}
		if same(d.From, x) && same(d.To, y) {
			return true
		}
	}
	return false
}

// contributing states what made it worse and what contradicts the launcher.
func (s *Study) contributing(inc *incident.Incident) {
	c, k := s.Cases[s.Main], s.Known[s.Main]
	add := func(text string, spans ...evidence.Span) {
		if spans == nil {
			spans = []evidence.Span{}
		}
		inc.Contributing = append(inc.Contributing, incident.Statement{Text: text, Spans: spans})
	}
	for _, n := range c.Notes {
		add(n.Text, n.Spans...)
	}
	if n := k["memory.retries"].Value.I; n > 0 {
		add(fmt.Sprintf("The allocator reported pressure %s: it ran near its limit.", times(n)), k["memory.retries"].Spans...)
	}
	if n := k["oom.recovered_before"].Value.I; n > 0 && c.Lead != nil {
		add(fmt.Sprintf("Out of memory was caught and survived %s in this attempt.", times(n)), k["oom.recovered_before"].Spans...)
	}
	s.trackers(c, add)
	if k.True("nan.hidden") {
		add("The framework replaced or left out non-finite values in what it printed; the curve in a tracker cannot show where they began.", k["nan.hidden"].Spans...)
	}
	if s.Main != s.Ended {
		add(fmt.Sprintf("A later launch (attempt %s) is in the same input and shows no failure; the verdict is about attempt %s.", s.Timeline.Attempts[s.Ended].ID, s.Timeline.Attempts[s.Main].ID))
	}
}

func times(n int64) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}

// limits states what was not read, and what that means.
func (s *Study) limits(inc *incident.Incident) {
	add := func(text string, spans ...evidence.Span) {
		if spans == nil {
			spans = []evidence.Span{}
		}
		inc.Limits = append(inc.Limits, incident.Statement{Text: text, Spans: spans})
	}
	if len(s.Reading.Sources) == 0 {
		add("Nothing recognisable was found in what was named.")
	}
	seen := map[string]bool{}
	for _, p := range s.Reading.Problem {
		text := p.Err.Error()
		if p.Span.Artifact != "" {
			text = p.Span.Artifact + ": " + text
		}
		if seen[text] || len(seen) >= 50 {
			continue
		}
		seen[text] = true
		if p.Span.Length > 0 || p.Span.Line > 0 {
			add(text, p.Span)
		} else {
			add(text)
		}
	}
	for _, j := range s.Reading.Older {
		id := j.ID
		if id == "" {
			id = "without an id"
		}
		files := "1 file"
		if n := len(j.Files); n != 1 {
			files = fmt.Sprintf("%d files", n)
		}
		add(fmt.Sprintf("An older launch lies in the same place and was not read: %s, %s (%s).", id, files, j.Basis))
	}
	if n := s.Timeline.Unshared; n > 0 {
		add(fmt.Sprintf("No time says to which of %d launches %d records of the machine belong; not all of them were held against every launch.", len(s.Timeline.Attempts), n))
	}
	for _, x := range s.Timeline.Conflicts {
		add(x.Text, x.Spans...)
	}
	strays(s.Timeline, add)
	c := s.Cases[s.Main]
	apartSnapshots(c, add)
	for _, r := range c.Rivals {
		if r.Source >= 0 && s.Timeline.TwoRuns(c.Lead, r) {
			add(fmt.Sprintf("%s and %s each log a loss of their own over the same steps, as two runs do. If they are two runs, diagnose each by itself.", c.Lead.Span.Artifact, r.Span.Artifact), c.Lead.Span, r.Span)
			break
		}
	}
	if left := c.NoDump(); len(left) > 0 {
		list := diagnose.RankList(left)
		add(fmt.Sprintf("%s left no dump of the flight recorder, so what was called there is not known; collect it.", strings.ToUpper(list[:1])+list[1:]))
	}
	if c.World > 1 && len(c.Ranks) > 0 && len(c.Ranks) < c.World && c.Lead != nil {
		least := ""
		if !c.Stated {
			least = "at least "
		}
		add(fmt.Sprintf("The job has %s%d ranks; words of %d of them are in evidence. What the others printed could change the verdict.", least, c.World, len(c.Ranks)))
	} else if len(c.Waiting) > 0 && len(c.Waiting) == len(c.Ranks) && !c.Stated {
		add("How many ranks the job has is not stated, and every rank in evidence waited for another one. The logs of the other ranks are missing; collect them and diagnose all together.")
	}
}

// overtaken reports whether lines of x's file that name no rank go on to later
// steps: then x says where its rank once was, not where it stopped. Nor does a
// rate of step 0, which DeepSpeed states at its set-up.
func overtaken(x *evidence.Series, unranked []*evidence.Series) bool {
	if x.Last.Step == 0 && (x.Key.Name == "lr" || x.Key.Name == "skipped") {
		return true
	}
	for _, y := range unranked {
		if y.Key.Artifact == x.Key.Artifact && y.Key.Launch == x.Key.Launch && y.Key.Phase == "train" &&
			y.Last.Offset > x.Last.Offset && y.Last.Step > x.Last.Step {
			return true
		}
	}
	return false
}

// ranks tells each rank's fate.
func (s *Study) ranks(inc *incident.Incident) {
	c := s.Cases[s.Main]
	items, series := map[int][]*timeline.Item{}, map[int][]*evidence.Series{}
	for _, it := range c.Attempt.Items {
		items[it.Who.Rank] = append(items[it.Who.Rank], it)
	}
	for _, x := range c.Attempt.Series {
		series[x.Key.Rank] = append(series[x.Key.Rank], x)
	}
	for _, r := range c.Ranks {
		out := incident.Rank{Rank: r, Attempt: s.Timeline.Attempts[s.Main].ID, Fate: "unknown", Artifacts: []string{}}
		arts := map[string]bool{}
		set := func(w evidence.Who) {
			if w.LocalRank >= 0 && out.LocalRank == nil {
				out.LocalRank = opt(w.LocalRank)
			}
			if w.Device >= 0 && out.Device == nil {
				out.Device = opt(w.Device)
			}
			if w.PID >= 0 && out.PID == nil {
				out.PID = opt(w.PID)
			}
			if w.Host != "" && out.Host == nil {
				h := w.Host
				out.Host = &h
			}
			if w.BusID != "" && out.BusID == nil {
				b := w.BusID
				out.BusID = &b
			}
		}
		seat(&out, s.Timeline.Seat(r))
		for _, it := range items[r] {
			set(it.Who)
			arts[it.Span.Artifact] = true
			if it.Stamp.Known() {
				out.LastTime = timeOf(it.Stamp)
			}
			if c.Recovered(&it.Event) || it == c.Lead {
				continue
			}
			if spec := evidence.SpecOf(it.Kind); spec != nil && out.Fate == "unknown" {
				switch {
				case it.Kind == evidence.CollTimeout:
					out.Fate = "timed out waiting"
				case it.Kind == evidence.LauncherStop, it.Kind == evidence.PeerClosed, it.Kind == evidence.CollTeardown, it.Kind == evidence.StoreError:
					out.Fate = "stopped by another"
				case spec.Role == evidence.RoleFault, spec.Role == evidence.RoleExit:
					out.Fate = "failed"
				case it.Kind == evidence.Finished:
					out.Fate = "finished"
				}
			}
		}
		for _, x := range series[r] {
			arts[x.Key.Artifact] = true
			if x.Last.Step >= 0 && (out.LastStep == nil || x.Last.Step > *out.LastStep) && !overtaken(x, series[evidence.None]) {
				n := x.Last.Step
				out.LastStep = &n
			}
		}
		if c.Lead != nil && c.Lead.Who.Rank == r {
			out.Fate = "failed first"
			if c.Standing == incident.Undecidable {
				out.Fate = "failed"
			}
		} else if out.Fate == "unknown" && c.Complete() && c.Lead == nil {
			out.Fate = "finished"
		}
		for a := range arts {
			out.Artifacts = append(out.Artifacts, a)
		}
		sort.Strings(out.Artifacts)
		inc.Ranks = append(inc.Ranks, out)
	}
	s.hosts(inc)
	s.recorded(inc)
	s.printed(inc)
}

// maxGroups is how many process groups of dumps an incident names.
const maxGroups = 64

// recorded states the process groups of which the dumps of the flight recorder tell.
func (s *Study) recorded(inc *incident.Incident) {
	list := func(n []int) []int { return append([]int{}, n...) }
	for i, g := range s.Cases[s.Main].Groups() {
		if i == maxGroups {
			break
		}
		out := incident.Group{Name: g.Name, Description: g.Desc, Members: list(g.Members), Op: g.Op, Missing: list(g.Missing), Behind: list(g.Behind), Mismatched: list(g.Mismatched)}
		if g.Seq >= 0 {
			n := g.Seq
			out.Seq = &n
		}
		inc.Groups = append(inc.Groups, out)
	}
}

// printed states the process groups of which the messages of the watchdog tell.
func (s *Study) printed(inc *incident.Incident) {
	c := s.Cases[s.Main]
	if len(inc.Groups) > 0 { // the dumps know them better
		return
	}
	groups := map[string]*incident.Group{}
	var names []string
	type seat struct {
		group string
		rank  int
	}
	low := map[seat]int64{} // where a rank of a group is, by its own words
	lowest := func(it *timeline.Item, attr string) {
		at := seat{it.Attrs.Str("group"), it.Who.Rank}
		if q, ok := it.Attrs[attr]; ok && q.I >= 0 {
			if old, have := low[at]; !have || q.I < old {
				low[at] = q.I
			}
		}
	}
	for _, it := range c.Attempt.Items {
		if it.Kind == evidence.CollState {
			lowest(it, "last_enqueued")
		}
		if it.Kind != evidence.CollTimeout {
			continue
		}
		lowest(it, "seq")
		n := it.Attrs.Str("group")
		g := groups[n]
		if g == nil {
			g = &incident.Group{Name: n, Members: []int{}, Missing: []int{}, Behind: []int{}, Mismatched: []int{}, Op: it.Attrs.Str("op")}
			groups[n] = g
			names = append(names, n)
		}
		if it.Who.Rank >= 0 && !slices.Contains(g.Members, it.Who.Rank) {
			g.Members = append(g.Members, it.Who.Rank)
		}
		if q, ok := it.Attrs["seq"]; ok && (g.Seq == nil || q.I > *g.Seq) {
			v := q.I
			g.Seq = &v
		}
	}
	sort.Strings(names)
	for _, n := range names {
		g := groups[n]
		sort.Ints(g.Members)
		if len(names) == 1 { // which of several groups a silent rank is missing from is open
			for _, r := range s.Known[s.Main]["dist.missing_ranks"].Value.L {
				g.Missing = append(g.Missing, int(r))
			}
		}
		for _, r := range s.Known[s.Main]["dist.lagging_ranks"].Value.L {
			if q, ok := low[seat{n, int(r)}]; ok && g.Seq != nil && q < *g.Seq {
				g.Behind = append(g.Behind, int(r))
			}
		}
		inc.Groups = append(inc.Groups, *g)
	}
}

// facts publishes what is known of the main attempt. Counts of events are left
// out: the events themselves are there.
func (s *Study) facts(inc *incident.Incident) {
	k := s.Known[s.Main]
	n := 0
	for _, name := range k.Names() {
		if strings.HasPrefix(name, "seen.") || strings.HasPrefix(name, "trace.") || name == "fault.text" {
			continue
		}
		if strings.HasPrefix(name, "setting.") {
			if n++; n > maxSettings {
				continue
			}
		}
		f := k[name]
		unit := ""
		if f.Value.T == evidence.Size || strings.HasSuffix(name, "growth_per_step") || strings.HasSuffix(name, "growth_per_batch") {
			unit = "bytes"
		}
		spans := f.Spans
		if spans == nil {
			spans = []evidence.Span{}
		}
		if len(spans) > 3 {
			spans = spans[:3]
		}
		inc.Facts[name] = incident.Fact{Value: plain(f.Value), Unit: unit, Text: catalog.Show(name, f.Value), Spans: slices.Clone(spans)}
	}
}

// series publishes thinned series of all attempts, the ones that matter first.
func (s *Study) series(inc *incident.Incident) {
	order := map[string]int{"loss": 0, "grad_norm": 1, "memory_allocated": 2, "memory_reserved": 2, "memory_used": 2, "memory_fraction": 2, "eval_loss": 3, "loss_scale": 3, "lr": 4}
	type ref struct {
		s       *evidence.Series
		attempt int
	}
	var all []ref
	for i, a := range s.Timeline.Attempts {
		for _, x := range a.Series {
			if x.Count > 0 {
				all = append(all, ref{x, i})
			}
		}
	}
	sort.SliceStable(all, func(i, j int) bool {
		pri := func(r ref) int {
			p, ok := order[r.s.Key.Name]
			if !ok {
				p = 9
			}
			if r.attempt != s.Main {
				p += 10
			}
			return p
		}
		return pri(all[i]) < pri(all[j])
	})
	seen := map[*evidence.Series]bool{}
	for _, r := range all {
		if seen[r.s] || len(inc.Series) >= maxSeries {
			continue
		}
		seen[r.s] = true
		x := r.s
		out := incident.Series{Name: x.Key.Name, Rank: opt(x.Key.Rank), Attempt: s.Timeline.Attempts[r.attempt].ID, Source: x.Key.Source, Unit: x.Key.Unit,
			Trust: string(x.Key.Trust), Reduction: "none", Count: x.Count, Bad: x.Bad, Points: []incident.Point{}}
		pts := x.Points()
		k := (len(pts) + maxPoints - 1) / maxPoints
		if int64(len(pts)) < x.Count || k > 1 {
			out.Reduction = "max of each " + strconv.FormatInt((x.Count+int64(min(len(pts), maxPoints))-1)/int64(min(len(pts), maxPoints)), 10)
		}
		for i := 0; i < len(pts); i += max(k, 1) {
			p := pts[i]
			for _, q := range pts[i:min(i+max(k, 1), len(pts))] {
				if math.IsNaN(q.Value) || !math.IsNaN(p.Value) && q.Value > p.Value {
					p = q
				}
			}
			ip := incident.Point{Ordinal: p.Ordinal, Line: p.Line, Artifact: ""}
			if p.Step >= 0 {
				n := p.Step
				ip.Step = &n
			}
			if math.IsNaN(p.Value) || math.IsInf(p.Value, 0) {
				ip.Text = fmt.Sprint(p.Value)
			} else {
				v := p.Value
				ip.Value = &v
			}
			out.Points = append(out.Points, ip)
		}
		inc.Series = append(inc.Series, out)
	}
}

// artifacts lists every artifact with its fate, and what was passed over.
func (s *Study) artifacts(inc *incident.Incident) {
	for i := range s.Reading.Sources {
		src := &s.Reading.Sources[i]
		a := artifactOf(&src.Artifact)
		a.Recognised = int64(len(src.Events) + len(src.Series) + len(src.Facts))
		inc.Artifacts = append(inc.Artifacts, a)
	}
	for _, p := range s.Reading.Walk.Missing {
		inc.NotFound = append(inc.NotFound, p.Path+": "+p.Err.Error())
	}
	for _, p := range s.Reading.Walk.PassedOver {
		inc.PassedOver = append(inc.PassedOver, incident.PassedOver{What: p.What, Count: p.Count, Bytes: p.Bytes})
	}
}

// identify gives the incident its id (this evidence) and fingerprint (this kind
// of failure).
func (s *Study) identify(inc *incident.Incident) {
	h := sha256.New()
	for _, a := range inc.Artifacts {
		fmt.Fprintf(h, "%s\x00%d\x00%s\n", a.Path, a.Size, a.Digest)
	}
	class, kind, cause, text := "", "", "", ""
	if f := inc.FirstFault; f != nil {
		class, kind, text = f.Class, f.Kind, f.Text
		if f.Span != nil {
			fmt.Fprintf(h, "%s:%d\n", f.Span.Artifact, f.Span.Offset)
		}
	}
	if len(inc.Hypotheses) > 0 {
		cause = inc.Hypotheses[0].Cause
	}
	inc.ID = fmt.Sprintf("inq-%x", h.Sum(nil)[:6])
	sum := sha256.Sum256([]byte(strings.Join([]string{class, kind, cause, digits.ReplaceAllString(text, "#")}, "\x00")))
	inc.Fingerprint = fmt.Sprintf("%x", sum[:8])
}

// strays lists the records of the machine that were held to be of something else than the
// job, by reason.
func strays(tl *timeline.Timeline, add func(string, ...evidence.Span)) {
	var reasons []string
	spans := map[string][]evidence.Span{}
	for _, x := range tl.Strays {
		if spans[x.Why] == nil {
			reasons = append(reasons, x.Why)
		}
		spans[x.Why] = append(spans[x.Why], x.Item.Span)
	}
	for _, why := range reasons {
		n := len(spans[why])
		what := "A record of the machine was"
		if n > 1 {
			what = fmt.Sprintf("%d records of the machine were", n)
		}
		add(fmt.Sprintf("%s not held against the run: %s.", what, why), spans[why]...)
	}
	if more := tl.StrayCount - len(tl.Strays); more > 0 {
		add(fmt.Sprintf("%d further records of the machine are of other hosts, devices, processes or times than the run's.", more))
	}
}
