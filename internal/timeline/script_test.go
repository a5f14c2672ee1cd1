package timeline_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/inquest-dev/inquest/internal/evidence"
	"github.com/inquest-dev/inquest/internal/testkit"
	"github.com/inquest-dev/inquest/internal/timeline"
)

// TestScripts runs the scripts. They may expect
//
//	order A before|after|unknown B [by=SUBSTRING]   Compare, and its mirror image
//	attempts N [commands=A,B…]                      how many launches
//	attempt ID N                                    the launch (1-based) of an event; 0 is none of them
//	shown ID N…                                     the launches whose items hold an event
//	parts N FILE…                                   the logs that launch N is made of
//	who ID rank=R host=H local=L                    identity
//	series N NAME…                                  names of the series of launch N
//	facts N NAME=VALUE…                             facts of launch N
//	gap A B SECONDS|none
//	conflict SUBSTRING                          a contradiction about who runs where
func TestScripts(t *testing.T) {
	testkit.Run(t, os.DirFS("testdata/script"), func(t *testing.T, c *testkit.Case) {
		tl := c.Timeline()
		for _, e := range c.Expect {
			if problem := check(c, tl, e); (problem != "") != e.Not {
				t.Errorf("line %d: %s: %s", e.Line, e, problem)
			}
		}
	})
}

func check(c *testkit.Case, tl *timeline.Timeline, e testkit.Expectation) string {
	var bad error
	item := func(id string) *timeline.Item {
		it, err := c.Item(tl, id)
		if err != nil {
			bad = err
			return &timeline.Item{}
		}
		return it
	}
	number := func(s string) (n int) {
		if _, err := fmt.Sscan(s, &n); err != nil {
			bad = err
		}
		return n
	}
	got, want := "", ""
	switch e.What {
	case "order":
		a, b := item(e.Arg(0)), item(e.Arg(2))
		r, basis := tl.Compare(a, b)
		back, _ := tl.Compare(b, a)
		got, want = r.String(), e.Arg(1)
		mirror := map[timeline.Relation]timeline.Relation{timeline.Before: timeline.After, timeline.After: timeline.Before}
		switch {
		case mirror[r] != back:
			got = fmt.Sprintf("%s, but %s the other way round", r, back)
		case got == want && !strings.Contains(basis, e.With["by"]):
			got, want = basis, e.With["by"]
		}
	case "attempts":
		got, want = fmt.Sprint(len(tl.Attempts)), e.Arg(0)
		for i, cmd := range strings.Split(e.With["commands"], ",") {
			if got == want && cmd != "" && tl.Attempts[i].Command != cmd {
				got, want = tl.Attempts[i].Command, cmd
			}
		}
	case "attempt":
		got, want = fmt.Sprint(item(e.Arg(0)).Attempt+1), e.Arg(1)
	case "shown":
		it := item(e.Arg(0))
		var in []string
		for i, a := range tl.Attempts {
			if slices.Contains(a.Items, it) {
				in = append(in, fmt.Sprint(i+1))
			}
		}
		got, want = strings.Join(in, " "), strings.Join(e.Args[1:], " ")
	case "parts", "series", "facts":
		n := number(e.Arg(0)) - 1
		if n < 0 || n >= len(tl.Attempts) {
			return fmt.Sprintf("there are %d launches", len(tl.Attempts))
		}
		var have []string
		switch e.What {
		case "parts":
			for _, p := range tl.Attempts[n].Parts {
				have = append(have, tl.Sources[p.Source].Artifact.Path)
			}
		case "series":
			for _, s := range tl.Attempts[n].Series {
				have = append(have, s.Key.Name)
			}
		default:
			known := evidence.Known{}
			for _, f := range tl.Attempts[n].Facts {
				known.Set(f.Name, f.Value)
			}
			return testkit.Fact(known, e)
		}
		got, want = strings.Join(have, " "), strings.Join(e.Args[1:], " ")
	case "who":
		return c.Match(tl, item(e.Arg(0)), "", e.With)
	case "conflict":
		if !slices.ContainsFunc(tl.Conflicts, func(c timeline.Conflict) bool { return strings.Contains(c.Text, e.Arg(0)) }) {
			return fmt.Sprintf("the conflicts are %v", tl.Conflicts)
		}
		return ""
	case "stray":
		it := item(e.Arg(0))
		for _, x := range tl.Strays {
			if x.Item == it {
				got = x.Why
			}
		}
		if want = e.With["why"]; want != "" && strings.Contains(got, want) {
			got = want
		}
	case "gap":
		got, want = "none", e.Arg(2)
		if d, _, ok := tl.Gap(item(e.Arg(0)), item(e.Arg(1))); ok {
			got = fmt.Sprint(d.Seconds())
		}
	default:
		return "no such expectation"
	}
	if bad != nil {
		return bad.Error()
	}
	if got != want {
		return "it is " + got
	}
	return ""
}
