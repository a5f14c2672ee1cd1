package detect_test

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/inquest-dev/inquest/internal/detect"
	"github.com/inquest-dev/inquest/internal/evidence"
	"github.com/inquest-dev/inquest/internal/testkit"
	"github.com/inquest-dev/inquest/internal/timeline"
)

// TestScripts runs the scripts. "use" says what the stage before has found:
// lead=ID, memory=ID, nan=ID, recovered=ID,ID… and world=N; "use before=WORD"
// makes a launch before this one that ended by memory, nan or neither, or that
// logged its first step on line 1 of run.log (opening), with the facts before.NAME=VALUE (texts). They may expect
//
//	fact NAME=VALUE…
//	unknown NAME…
//	proof NAME LINE…        the lines of run.log whose spans prove a fact
func TestScripts(t *testing.T) {
	testkit.Run(t, os.DirFS("testdata/script"), func(t *testing.T, c *testkit.Case) {
		in, err := input(c)
		if err != nil {
			t.Fatal(err)
		}
		known := detect.Run(in)
		for name, x := range known {
			spec := evidence.FactOf(name)
			switch {
			case strings.HasPrefix(name, "seen."), strings.HasPrefix(name, "setting."):
			case spec == nil:
				t.Errorf("fact %s is not declared", name)
			case spec.Type != x.Value.T:
				t.Errorf("fact %s is a %s, declared as %s", name, x.Value.T, spec.Type)
			}
		}
		for _, e := range c.Expect {
			if problem := check(known, e); (problem != "") != e.Not {
				t.Errorf("line %d: %s: %s", e.Line, e, problem)
			}
		}
	})
}

func input(c *testkit.Case) (detect.Input, error) {
	tl := c.Timeline()
	in := detect.Input{}
	items := map[*evidence.Event]*timeline.Item{}
	for _, it := range tl.Items {
		in.Events = append(in.Events, &it.Event)
		items[&it.Event] = it
	}
	for _, s := range c.Sources {
		in.Series = append(in.Series, s.Series...)
		in.Stated = append(in.Stated, s.Facts...)
	}
	recovered := map[*evidence.Event]bool{}
	for name, v := range c.Use {
		var err error
		event := func(id string) *evidence.Event {
			it, e := c.Item(tl, id)
			if e != nil {
				err = e
				return nil
			}
			return &it.Event
		}
		switch {
		case name == "lead":
			in.Lead = event(v)
		case name == "memory":
			in.Memory = event(v)
		case name == "nan":
			in.NaN = event(v)
		case name == "recovered":
			for _, id := range strings.Split(v, ",") {
				recovered[event(id)] = true
			}
		case name == "world":
			in.World, err = strconv.Atoi(v)
		case name == "before" || strings.HasPrefix(name, "before."):
		default:
			err = fmt.Errorf("unknown setting %q", name)
		}
		if err != nil {
			return in, err
		}
	}
	if v, ok := c.Use["before"]; ok {
		in.Before = &detect.Previous{Facts: evidence.Known{}, Memory: v == "memory", Nonfinite: v == "nan"}
		if v == "opening" {
			in.Before.Opening = &evidence.Span{Artifact: "run.log", Kind: "text", Line: 1}
		}
		for name, v := range c.Use {
			if n, ok := strings.CutPrefix(name, "before."); ok {
				in.Before.Facts.Set(n, evidence.TextOf(v))
			}
		}
	}
	in.Recovered = func(e *evidence.Event) bool { return recovered[e] }
	in.After = func(a, b *evidence.Event) bool {
		r, _ := tl.Compare(items[a], items[b])
		return r == timeline.After
	}
	return in, nil
}

func check(known evidence.Known, e testkit.Expectation) string {
	switch e.What {
	case "fact", "unknown":
		return testkit.Fact(known, e)
	case "proof":
		var lines []string
		for _, sp := range known[e.Arg(0)].Spans {
			lines = append(lines, fmt.Sprint(sp.Line))
		}
		if !slices.Equal(lines, e.Args[1:]) {
			return "its lines are " + strings.Join(lines, " ")
		}
		return ""
	}
	return "no such expectation"
}
