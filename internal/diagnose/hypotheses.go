package diagnose

import (
	"cmp"
	"slices"
	"sort"
	"strings"

	"github.com/inquest-dev/inquest/internal/catalog"
	"github.com/inquest-dev/inquest/internal/evidence"
	"github.com/inquest-dev/inquest/internal/incident"
)

// Weights of evidence. Only their order matters: one strong piece outweighs all
// weak ones, and priors only break ties.
const (
	scoreDecisive = 1000
	scoreStrong   = 100
	scoreWeak     = 10
)

// A Hypothesis is an entry weighed against what is known.
type Hypothesis struct {
	Entry    *catalog.Entry
	Standing string
	Score    int
	For      []incident.Statement
	Against  []incident.Statement
	Missing  []incident.Missing
	decisive int
}

// Caps say why nothing may be called established.
type Caps struct {
	Undecided bool   // which fault came first is open between different kinds
	Weak      bool   // the lead is known only by a wording from memory
	Damaged   string // what of the lead's artifact was not read, "" if all was
	First     bool   // no attempt comes before: what was changed since cannot be asked
}

// Weigh ranks the entries about the lead, best first.
//
//  1. Candidates are the entries about the lead's kind whose need is not known
//     to be false.
//  2. Every condition is evaluated over the known facts; the true ones become
//     evidence, the undecided ones name missing facts. One that cannot be
//     evaluated (a division by zero) is undecided.
//  3. Standing: ruled out by a rules_out objection; established by a decisive
//     piece without any objection; supported by a strong one; else possible.
//  4. Two established entries contradict each other unless they are related:
//     then the better one stays and the others become supported.
func Weigh(cat *catalog.Catalog, kinds []string, known evidence.Known, caps Caps) []Hypothesis {
	values := known.Values()
	var out []Hypothesis
	for _, e := range cat.Candidates(kinds...) {
		h := Hypothesis{Entry: e, Standing: incident.Possible, Score: e.Prior}
		if e.Needs != "" {
			if cat.Eval(e.Needs, values).Verdict == catalog.False {
				continue
			}
		}
		unknown := map[string]bool{}
		eval := func(c catalog.Condition) (o catalog.Outcome, holds bool) {
			o = cat.Eval(c.When, values)
			if o.Verdict == catalog.Unknown {
				for _, n := range o.Unknown {
					unknown[n] = true
				}
			}
			return o, o.Verdict == catalog.True
		}
		strong, objections, out1 := 0, 0, false
		for _, c := range e.For {
			o, holds := eval(c)
			if !holds {
				continue
			}
			h.For = append(h.For, statement(c, o, known, values))
			switch c.Weight {
			case "decisive":
				h.decisive++
				h.Score += scoreDecisive
			case "strong":
				strong++
				h.Score += scoreStrong
			default:
				h.Score += scoreWeak
			}
		}
		for _, c := range e.Against {
			o, holds := eval(c)
			if !holds {
				continue
			}
			h.Against = append(h.Against, statement(c, o, known, values))
			objections++
			switch {
			case c.RulesOut:
				out1 = true
			case c.Weight == "strong":
				h.Score -= scoreStrong
			default:
				h.Score -= scoreWeak
			}
		}
		switch {
		case out1:
			h.Standing = incident.RuledOut
		case h.decisive > 0 && objections == 0:
			h.Standing = incident.Established
		case h.decisive > 0 || strong > 0:
			h.Standing = incident.Supported
		}
		h.Missing = missing(e, known, values, unknown, caps.First)
		out = append(out, h)
	}
	rank(out)
	if len(out) > 0 && out[0].Standing == incident.Established {
		related := map[string]bool{}
		for _, id := range out[0].Entry.Related {
			related[id] = true
		}
		contradicted := false
		for i := 1; i < len(out) && out[i].Standing == incident.Established; i++ {
			if !related[out[i].Entry.ID] {
				contradicted = true
			}
			out[i].Standing = incident.Supported
		}
		if contradicted {
			out[0].Standing = incident.Supported
		}
	}
	if caps.Undecided || caps.Weak || caps.Damaged != "" {
		for i := range out {
			if out[i].Standing == incident.Established {
				out[i].Standing = incident.Supported
			}
			if caps.Undecided && out[i].Standing == incident.Supported {
				out[i].Standing = incident.Possible
			}
		}
	}
	rank(out)
	for i := range out {
		if out[i].Standing == incident.Established { // what an undecided condition hangs on no longer matters
			out[i].Missing = missing(out[i].Entry, known, values, nil, caps.First)
		}
	}
	return out
}

var standingOrder = map[string]int{incident.Established: 0, incident.Supported: 1, incident.Possible: 2, incident.RuledOut: 3}

func rank(h []Hypothesis) {
	sort.SliceStable(h, func(i, j int) bool {
		a, b := h[i], h[j]
		if x, y := standingOrder[a.Standing], standingOrder[b.Standing]; x != y {
			return x < y
		}
		if a.Score != b.Score {
			return a.Score > b.Score
		}
		return a.Entry.ID < b.Entry.ID
	})
}

// statement turns a condition that holds into a sentence with its proof: the
// spans of the facts it used, or of those it names as proof.
func statement(c catalog.Condition, o catalog.Outcome, known evidence.Known, values map[string]evidence.Value) incident.Statement {
	text, _ := catalog.Expand(c.Says, values)
	names := c.Proof
	if len(names) == 0 {
		names = o.Used
	}
	s := incident.Statement{Text: text, Spans: []evidence.Span{}}
	seen := map[evidence.Span]bool{}
	for _, n := range names {
		for _, sp := range known[n].Spans {
			if !seen[sp] && len(s.Spans) < 6 {
				seen[sp] = true
				s.Spans = append(s.Spans, sp)
			}
		}
	}
	return s
}

// missing lists the facts that would decide: the entry's deciders that are
// unknown, in its order, then what undecided conditions hang on. Of the first
// attempt, what differs from the one before it is no such fact. Where a machine failed, how
// its processes ended decides nothing; what its driver recorded does.
func missing(e *catalog.Entry, known evidence.Known, values map[string]evidence.Value, unknown map[string]bool, first bool) []incident.Missing {
	out := []incident.Missing{}
	done := map[string]bool{}
	machine := known["fault.kind"].Value.S == string(evidence.NodeFailure)
	add := func(name, asks, how, cost, effect string) {
		if machine && name == "exit.signal" {
			return
		}
		if done[name] || len(out) >= 4 || first && strings.HasPrefix(name, "changed.") {
			return
		}
		if _, ok := known[name]; ok {
			return
		}
		spec := evidence.FactOf(name)
		if spec == nil {
			return
		}
		if how == "" {
			how = spec.How
		}
		if how == "" {
			return
		}
		if asks == "" {
			asks = spec.Doc
			if spec.Type == evidence.Bool {
				asks = "whether this holds: " + spec.Doc
			}
		}
		if cost == "" {
			cost = spec.Cost
		}
		if effect == "" {
			effect = spec.Effect
		}
		done[name] = true
		out = append(out, incident.Missing{Fact: catalog.ExpandSentences(asks, values), Name: name, How: fill(how, values), Cost: cost, Effect: effect})
	}
	for _, d := range e.Decides {
		add(d.Fact, d.Asks, d.How, d.Cost, d.Effect)
	}
	names := make([]string, 0, len(unknown))
	for n := range unknown {
		names = append(names, n)
	}
	sort.Strings(names)
	for _, n := range names {
		add(n, "", "", "", "")
	}
	if len(out) == 0 && machine {
		add("xid.severity", "", "", "", "")
	}
	if len(out) == 0 { // nothing the log could have shown is open; only a rerun is
		if how := catalog.ExpandSentences(e.Remedy.Verify, values); how != "" {
			out = append(out, incident.Missing{Fact: "whether the run passes the point of failure with this one change made", Name: "verification", How: how, Cost: "one short run", Effect: "reversible"})
		}
	}
	return out
}

// generic stands in for identities that a command names and the log does not.
var generic = map[string]string{"fault.host": "the failing host", "fault.rank": "the failing one", "nan.step": "the failing one"}

// fill expands a command; identities that are unknown get the text's own
// fallback, else generic words.
func fill(text string, values map[string]evidence.Value) string {
	if _, known := values["fault.rank"]; !known {
		text = strings.ReplaceAll(text, "rank {fault.rank}", "{fault.rank}")
	}
	s, unknown := catalog.ExpandCommand(text, values)
	if len(unknown) == 0 {
		return s
	}
	rest := make(map[string]evidence.Value, len(generic))
	for n, v := range generic {
		rest[n] = evidence.TextOf(v)
	}
	s, _ = catalog.Expand(s, rest)
	return s
}

// Checklist ticks an entry's confirm list from what is known.
func Checklist(cat *catalog.Catalog, e *catalog.Entry, known evidence.Known) []incident.CheckItem {
	values := known.Values()
	out := []incident.CheckItem{}
	for _, c := range e.Checklist {
		item := incident.CheckItem{Item: catalog.ExpandSentences(c.Item, values), State: "unknown", Spans: []evidence.Span{}, How: fill(c.How, values)}
		if c.When != "" {
			o := cat.Eval(c.When, values)
			if o.Verdict != catalog.Unknown {
				item.State = map[catalog.Verdict]string{catalog.True: "yes", catalog.False: "no"}[o.Verdict]
				for _, n := range o.Used {
					for _, sp := range known[n].Spans {
						if len(item.Spans) < 3 {
							item.Spans = append(item.Spans, sp)
						}
					}
				}
			}
		}
		out = append(out, item)
	}
	return out
}

// Incident renders h as the incident states it.
func (h Hypothesis) Incident(values map[string]evidence.Value) incident.Hypothesis {
	e := h.Entry
	out := incident.Hypothesis{Cause: e.ID, Entry: e.ID, Standing: h.Standing, Title: e.Title, Why: catalog.ExpandSentences(e.Quick, values),
		For: h.For, Against: h.Against, Missing: h.Missing,
		Readings: map[string]string{
			"executive": catalog.ExpandSentences(e.Readings.Executive, values),
			"engineer":  catalog.ExpandSentences(e.Readings.Engineer, values),
			"on_call":   catalog.ExpandSentences(e.Readings.OnCall, values),
		}}
	if out.For == nil {
		out.For = []incident.Statement{}
	}
	if out.Against == nil {
		out.Against = []incident.Statement{}
	}
	return out
}

// Open is the hypothesis that the evidence does not decide what failed first. Its
// missing fact is what would order the rivals.
func Open(e *catalog.Entry, c *Case, known evidence.Known) Hypothesis {
	values := known.Values()
	h := Hypothesis{Entry: e, Standing: incident.Possible}
	spans := []evidence.Span{}
	if c.Lead != nil && c.Lead.Source >= 0 {
		spans = append(spans, c.Lead.Span)
	}
	for _, r := range c.Rivals {
		spans = append(spans, r.Span)
	}
	h.For = []incident.Statement{{Text: "The first failure is " + c.Basis + ".", Spans: clipSpans(spans)}}
	spec := evidence.FactOf("order.certain")
	h.Missing = []incident.Missing{{Fact: "which of these came first (" + c.Basis + ")", Name: spec.Name, How: fill(spec.How, values), Cost: spec.Cost, Effect: spec.Effect}}
	h.Missing = append(h.Missing, missing(e, known, values, nil, c.Index == 0)...)
	return h
}

// Absent adds to the open verdict that ranks are not in evidence, where those
// that are only waited: the logs of the others come before any rerun.
func Absent(h Hypothesis, c *Case, known evidence.Known) Hypothesis {
	if c.AllCame() {
		return allCame(h, c, known)
	}
	if !c.OnlyEffects || c.Lead.Kind != evidence.CollTimeout || c.Stated && len(c.Ranks) == c.World {
		return h
	}
	const logs = "dist.other_fault"
	spec := evidence.FactOf(logs)
	m := incident.Missing{Fact: spec.Doc, Name: logs, How: spec.How, Cost: spec.Cost, Effect: spec.Effect}
	for _, d := range h.Entry.Decides {
		if d.Fact == logs {
			m.Fact, m.How, m.Cost, m.Effect = cmp.Or(d.Asks, m.Fact), cmp.Or(d.How, m.How), cmp.Or(d.Cost, m.Cost), cmp.Or(d.Effect, m.Effect)
		}
	}
	m.Fact, m.How = catalog.ExpandSentences(m.Fact, known.Values()), fill(m.How, known.Values())
	h.Missing = append([]incident.Missing{m}, slices.DeleteFunc(slices.Clone(h.Missing), func(x incident.Missing) bool { return x.Name == logs })...)
	return h
}

// allCame replaces what the open verdict asks where every rank of the job waits in the same
// collective: none is missing and none came first, so neither a rank's place nor the
// order is open, but why the operation did not complete, which is what it says then.
func allCame(h Hypothesis, c *Case, known evidence.Known) Hypothesis {
	spans := []evidence.Span{c.Lead.Span}
	for _, r := range c.Rivals {
		spans = append(spans, r.Span)
	}
	h.For = []incident.Statement{{Text: strings.ToUpper(c.Basis[:1]) + c.Basis[1:] + ".", Spans: clipSpans(spans)}}
	var out []incident.Missing
	for _, ask := range []struct{ name, fact, how string }{
		{"dist.network_named", "why the collective did not complete although all ranks had called it", "on each host for that time: dmesg -T | grep -i -E 'xid|mlx5|link|bnxt|ena'; ibstat; nvidia-smi nvlink -s; the switch's port counters"},
		{"dist.comms", "which ranks' transfers made no progress", "rerun with NCCL_DEBUG=INFO TORCH_NCCL_TRACE_BUFFER_SIZE=2000 TORCH_NCCL_DUMP_ON_TIMEOUT=1 (torchfrtrace reads the dumps), and py-spy dump --native --pid PID of each rank while it hangs"},
	} {
		spec := evidence.FactOf(ask.name)
		if _, ok := known[ask.name]; ok {
			continue
		}
		out = append(out, incident.Missing{Fact: ask.fact, Name: ask.name, How: ask.how, Cost: spec.Cost, Effect: spec.Effect})
	}
	for _, m := range h.Missing {
		switch m.Name {
		case "order.certain", "dist.stack_of_missing", "dist.other_fault", "dist.network_named", "dist.comms":
		default:
			out = append(out, m)
		}
	}
	if len(out) > 0 {
		h.Missing = out
	}
	return h
}
