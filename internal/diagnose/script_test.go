package diagnose_test

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/inquest-dev/inquest/internal/diagnose"
	"github.com/inquest-dev/inquest/internal/engine"
	"github.com/inquest-dev/inquest/internal/evidence"
	"github.com/inquest-dev/inquest/internal/testkit"
	"github.com/inquest-dev/inquest/internal/timeline"
)

// TestScripts runs the scripts. All expectations are about the launch that the
// verdict is about, or about attempt=N (1-based). They may expect
//
//	lead KIND|none [rank=R host=H step=S file=F id=I]
//	rival KIND [as for lead], rivals N
//	standing established|supported|undecidable
//	basis SUBSTRING
//	class CLASS
//	collateral KIND [rank=R id=I count=N rule=NAME] [by KIND]
//	elimination rank=R
//	order RELATION [same=B linked=L basis=SUBSTRING mechanism=SUBSTRING]
//	bracket last=STEP|none first=STEP|none
//	good STEP|none
//	outcome OUTCOME
//	attempts N, main N
//	note SUBSTRING [proof=LINE,LINE…]
//	world N, ranks R,R…
//	fact NAME=VALUE…, unknown NAME…
func TestScripts(t *testing.T) {
	testkit.Run(t, os.DirFS("testdata/script"), func(t *testing.T, c *testkit.Case) {
		s := engine.Examine(&engine.Reading{Sources: c.Sources})
		for _, e := range c.Expect {
			if problem := check(c, s, e); (problem != "") != e.Not {
				t.Errorf("line %d: %s: %s", e.Line, e, problem)
			}
		}
	})
}

func check(c *testkit.Case, s *engine.Study, e testkit.Expectation) string {
	n := s.Main
	if a, ok := e.With["attempt"]; ok {
		i, err := strconv.Atoi(a)
		if err != nil || i < 1 || i > len(s.Cases) {
			return fmt.Sprintf("no attempt %s of %d", a, len(s.Cases))
		}
		n = i - 1
		delete(e.With, "attempt")
	}
	d := s.Cases[n]
	got, want := "", strings.Join(e.Args, " ")
	match := func(it *timeline.Item) string {
		if it != nil && it.Source < 0 { // found by elimination: no line is its own
			want := map[string]string{}
			for k, v := range e.With {
				if k == "rank" {
					want[k] = v
				}
			}
			return c.Match(s.Timeline, it, e.Arg(0), want)
		}
		return c.Match(s.Timeline, it, e.Arg(0), e.With)
	}
	switch e.What {
	case "lead":
		if want == "none" {
			if d.Lead == nil {
				return ""
			}
			return fmt.Sprintf("it is %s of rank %d (line %d)", d.Lead.Kind, d.Lead.Who.Rank, d.Lead.Span.Line)
		}
		return match(d.Lead)
	case "rival":
		problem := "there is no rival"
		for _, r := range d.Rivals {
			if problem = match(r); problem == "" {
				return ""
			}
		}
		return problem
	case "rivals":
		got = fmt.Sprint(len(d.Rivals))
	case "standing":
		got = d.Standing
	case "class":
		got = string(d.LeadClass)
	case "outcome":
		got = d.Outcome
	case "basis":
		if strings.Contains(d.Basis, want) {
			return ""
		}
		got = d.Basis
	case "collateral":
		return collateral(c, s, d, e)
	case "elimination":
		if d.Elimination == nil {
			return "there is none"
		}
		got, want = fmt.Sprint(d.Elimination.Rank), e.With["rank"]
	case "order":
		return order(s, n, e)
	case "bracket":
		o := orderOf(s, n)
		b := diagnose.BracketOf(o.NaNCase, o.NaN)
		if b == nil {
			return "there is none"
		}
		step := func(p *evidence.Point) string {
			if p == nil {
				return "none"
			}
			return fmt.Sprint(p.Step)
		}
		got = fmt.Sprintf("last=%s first=%s", step(b.Last), step(b.First))
		want = fmt.Sprintf("last=%s first=%s", e.With["last"], e.With["first"])
	case "good":
		got = "none"
		if _, p := diagnose.LastGood(d); p != nil {
			got = fmt.Sprint(p.Step)
		}
	case "attempts":
		got = fmt.Sprint(len(s.Cases))
	case "main":
		got = fmt.Sprint(s.Main + 1)
	case "note":
		for _, x := range d.Notes {
			var lines []string
			for _, sp := range x.Spans {
				lines = append(lines, fmt.Sprint(sp.Line))
			}
			got = x.Text + ", proven by lines " + strings.Join(lines, ",")
			if strings.Contains(x.Text, want) && (e.With["proof"] == "" || e.With["proof"] == strings.Join(lines, ",")) {
				return ""
			}
		}
	case "world":
		got = fmt.Sprint(d.World)
	case "ranks":
		got = strings.Trim(strings.ReplaceAll(fmt.Sprint(d.Ranks), " ", ","), "[]")
	case "fact", "unknown":
		return testkit.Fact(s.Known[n], e)
	default:
		return "no such expectation"
	}
	if got != want {
		return "it is " + strconv.Quote(got)
	}
	return ""
}

// collateral looks for a link of the form "KIND … by KIND".
func collateral(c *testkit.Case, s *engine.Study, d *diagnose.Case, e testkit.Expectation) string {
	with := map[string]string{}
	for k, v := range e.With {
		if k != "rule" && k != "count" && k != "rank" {
			with[k] = v
		}
	}
	problem := "nothing is explained"
	for _, l := range d.Links {
		p := c.Match(s.Timeline, l.Item, e.Arg(0), with)
		rank, _ := strconv.Atoi(e.With["rank"])
		switch {
		case p != "":
		case e.With["rank"] != "" && !slices.Contains(l.Ranks, rank):
			p = fmt.Sprintf("its ranks are %v", l.Ranks)
		case e.With["rule"] != "" && e.With["rule"] != l.Rule:
			p = fmt.Sprintf("the rule is %s", l.Rule)
		case e.With["count"] != "" && e.With["count"] != fmt.Sprint(l.Count):
			p = fmt.Sprintf("the count is %d", l.Count)
		case e.Arg(1) == "by" && e.Arg(2) != string(l.By.Kind):
			p = fmt.Sprintf("it is explained by %s", l.By.Kind)
		default:
			return ""
		}
		problem = p
	}
	return problem
}

func orderOf(s *engine.Study, n int) diagnose.Order {
	return diagnose.OrderOf(s.Cases, n, func(_ *diagnose.Case, it *timeline.Item) bool {
		return it.Kind != evidence.LibraryOOM || it.Attrs["certain"].True()
	})
}

func order(s *engine.Study, n int, e testkit.Expectation) string {
	o := orderOf(s, n)
	switch {
	case o.Relation != e.Arg(0):
		return "it is " + o.Relation + ": " + o.Basis
	case e.With["same"] != "" && e.With["same"] != fmt.Sprint(o.SameAttempt):
		return fmt.Sprintf("same attempt: %t", o.SameAttempt)
	case e.With["linked"] != "" && e.With["linked"] != o.Linked:
		return "linked: " + o.Linked
	case !strings.Contains(o.Basis, e.With["basis"]):
		return "the basis is " + o.Basis
	case !strings.Contains(o.Mechanism, e.With["mechanism"]):
		return "the mechanism is " + o.Mechanism
	}
	return ""
}
