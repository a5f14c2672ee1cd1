package mcp

import (
	"context"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/inquest-dev/inquest/internal/incident"
)

type measurementIn struct {
	Case  string `json:"case" jsonschema:"id that diagnose returned"`
	Cause string `json:"cause,omitempty" jsonschema:"only what decides about this entry"`
	From  int    `json:"from,omitempty" jsonschema:"next of the answer before"`
}

type measurementOut struct {
	Case         string        `json:"case"`
	Decided      bool          `json:"decided" jsonschema:"the evidence decides the leading cause already; what is left is to verify the change"`
	Measurements []measurement `json:"measurements" jsonschema:"cheapest first; the first one is the suggestion"`
	Total        int           `json:"total"`
	Next         *int          `json:"next" jsonschema:"from of the next page; null on the last"`
	Verify       string        `json:"quoted_verify,omitempty" jsonschema:"the command that shows whether the proposed change worked"`
}

type measurement struct {
	Fact    string   `json:"fact" jsonschema:"its declared name"`
	Asks    string   `json:"quoted_asks" jsonschema:"what is missing, in words"`
	How     string   `json:"quoted_how" jsonschema:"command or look that obtains it; shown, never run"`
	Cost    string   `json:"cost" jsonschema:"seconds, minutes, one short run, one full run"`
	Effect  string   `json:"effect" jsonschema:"reads, reversible or changes"`
	Decides []string `json:"decides" jsonschema:"entries that hang on it"`
}

func addSuggestMeasurement(s *server) {
	add(s, describe("suggest_measurement", "Cheapest next measurement that decides",
		"Name the missing facts that would decide between the causes of a case, the cheapest first, each with the command that obtains it. Use it whenever the leading cause is not established, before proposing a change as certain.",
		"none; the command is shown and never run.",
		"about 10 measurements an answer; next continues.",
		"measurements with what is missing, how to obtain it, cost, effect (reads, reversible, changes) and the entries that it decides; decided is true where nothing is missing."),
		s.suggestMeasurement)
}

// costs and effects are the words of facts, cheapest and least intrusive first.
var (
	costs   = []string{"seconds", "minutes", "one short run", "one full run"}
	effects = []string{"reads", "reversible", "changes"}
)

func (s *server) suggestMeasurement(ctx context.Context, _ *mcp.CallToolRequest, in measurementIn) (*measurementOut, string, error) {
	r, err := s.result(ctx, &in.Case)
	if err != nil {
		return nil, "", err
	}
	inc := r.Incident
	if in.Cause != "" && !slices.ContainsFunc(inc.Hypotheses, func(h incident.Hypothesis) bool { return h.Entry == in.Cause }) {
		return nil, "", failed(nil, "That entry is no cause of this case. diagnose with case lists its causes.")
	}
	all := measurements(inc, in.Cause)
	out := &measurementOut{Case: in.Case, Total: len(all),
		Decided: inc.FirstFault != nil && inc.FirstFaultStanding != incident.Undecidable && len(inc.Hypotheses) > 0 && inc.Hypotheses[0].Standing == incident.Established}
	if inc.Remedy != nil {
		out.Verify = quoteLines(inc.Remedy.Verify, 500)
	}
	var text []string
	next := 0
	out.Measurements, text, next = fill(max(in.From, 0), len(all), 0, pageRoom-1000, func(i int) (measurement, string) {
		m := all[i]
		return m, strings.Join([]string{m.Fact + " (" + m.Cost + ", " + m.Effect + "; decides " + strings.Join(m.Decides, ", ") + "): " + m.Asks, "  how: " + m.How}, "\n")
	})
	if next < len(all) {
		out.Next = &next
	}
	var l lines
	switch {
	case out.Decided && len(all) == 0:
		l.add("Case %s: the evidence decides the cause. What is left is to make the one change and to verify the original action.", in.Case)
	case out.Decided:
		l.add("Case %s: the evidence decides the leading cause. These would tell more:", in.Case)
	case len(all) == 0:
		l.add("Case %s: nothing that could be measured is known to decide. Look for artifacts that were not named: logs of other ranks, launcher, scheduler, kernel.", in.Case)
	default:
		l.add("Case %s: the evidence does not decide yet. Cheapest first:", in.Case)
	}
	for _, x := range text {
		l.add("%s", x)
	}
	l.with("Verify a change with: %s", out.Verify)
	if out.Next != nil {
		l.add("More: from %d.", next)
	}
	return out, l.String(), nil
}

// measurements are what is missing of the causes that are not ruled out, each fact once: by cost,
// then by effect, then as the causes are ranked.
func measurements(inc *incident.Incident, cause string) []measurement {
	var all []measurement
	for _, h := range inc.Hypotheses {
		if h.Standing == incident.RuledOut && cause == "" || cause != "" && h.Entry != cause {
			continue
		}
		for _, m := range h.Missing {
			name := word(m.Name)
			if i := slices.IndexFunc(all, func(x measurement) bool { return x.Fact == name }); i >= 0 {
				if d := &all[i].Decides; len(*d) < 12 && !slices.Contains(*d, h.Entry) {
					*d = append(*d, word(h.Entry))
				}
				continue
			}
			all = append(all, measurement{name, quote(m.Fact, 400), quoteLines(m.How, 700), phrase(m.Cost), word(m.Effect), []string{word(h.Entry)}})
		}
	}
	slices.SortStableFunc(all, func(a, b measurement) int {
		if d := rank(costs, a.Cost) - rank(costs, b.Cost); d != 0 {
			return d
		}
		return rank(effects, a.Effect) - rank(effects, b.Effect)
	})
	return all
}

// rank is the place of a word among those that are known; what is not known comes last.
func rank(of []string, w string) int {
	if i := slices.Index(of, w); i >= 0 {
		return i
	}
	return len(of)
}
