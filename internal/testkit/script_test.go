package testkit_test

import (
	"strings"
	"testing"

	"github.com/inquest-dev/inquest/internal/evidence"
	"github.com/inquest-dev/inquest/internal/testkit"
)

func TestParse(t *testing.T) {
	cases, err := testkit.Parse(`
# a comment
case one  situation
file b.log rank=3 host=h kind=hosttext
event b.log 10:00:01 id=x step=7 stack="f.py:main|run()>g.py:sub" text="two words" device_oom requested=1GiB..2GiB gpu=0 retried=true
series b.log rank=3 loss 1:2.5 -:nan
skip b.log lines=2 bytes=50
fact b.log launch=1 run.batch=4
use lead=x
expect not lead device_oom rank=3

case two
`)
	if err != nil {
		t.Fatal(err)
	}
	if len(cases) != 2 || cases[0].Name != "one situation" || cases[1].Name != "two" || len(cases[1].Sources) != 0 {
		t.Fatalf("cases are %+v", cases)
	}
	c := cases[0]
	s := c.Sources[0]
	if a := s.Artifact; a.Path != "b.log" || a.Owner.Rank != 3 || a.Owner.Host != "h" || a.Kind != "hosttext" || a.Fate != "read" {
		t.Errorf("artifact is %+v", a)
	}
	e := s.Events[0]
	if e.Kind != "device_oom" || e.Step != 7 || e.Who.Rank != evidence.None || e.Text != "two words" || !e.Stamp.NoDate || e.Span.Line != 1 {
		t.Errorf("event is %+v", e)
	}
	if v := e.Attrs["requested"]; v.Lo != 1<<30 || v.Hi != 2<<30 || !e.Attrs["retried"].True() || !e.Attrs["gpu"].Valid() {
		t.Errorf("attributes are %+v", e.Attrs)
	}
	if f := e.Stack; len(f) != 2 || f[0].File != "f.py" || f[0].Function != "main" || f[0].Source != "run()" || f[1].Function != "sub" {
		t.Errorf("stack is %+v", e.Stack)
	}
	if x := s.Series[0]; x.Count != 2 || x.Bad != 1 || x.First.Line != 2 || x.Last.Step != evidence.None || x.Key.Rank != 3 {
		t.Errorf("series is %+v", x)
	}
	if f := s.Facts[0]; f.Name != "run.batch" || f.Value.I != 4 || f.Who.Launch != 1 || f.Span.Line != 6 || f.Span.Offset != 550 {
		t.Errorf("fact is %+v", f)
	}
	if x := c.Expect[0]; x.String() != "expect not lead device_oom rank=3" || c.Use["lead"] != "x" {
		t.Errorf("expectation is %s, use %v", x, c.Use)
	}
	tl := c.Timeline()
	it, err := c.Item(tl, "x")
	if err != nil || c.ID(tl, it) != "x" || c.Match(tl, it, "device_oom", map[string]string{"rank": "3", "id": "x", "step": "7"}) != "" {
		t.Errorf("item is %+v, %v", it, err)
	}
	if c.Match(tl, it, "exception", nil) == "" || c.Match(tl, it, "", map[string]string{"rank": "4"}) == "" || c.Match(tl, nil, "", nil) == "" {
		t.Error("a difference is not told")
	}
}

func TestParseErrors(t *testing.T) {
	for script, want := range map[string]string{
		"event exception":                            "before the first case",
		"case a\nevnt exception":                     `2: unknown word "evnt"`,
		"case a\nevent":                              "no kind",
		"case a\nevent nothing":                      `no kind "nothing"`,
		"case a\nevent exception colour=red":         `no attribute "colour"`,
		"case a\nevent rank=x exception":             "invalid syntax",
		"case a\nevent coat=red exception":           `unknown word "coat"`,
		"case a\nevent device_oom requested=much":    "requested",
		"case a\nseries temperature 1:2":             "no series",
		"case a\nseries loss 1":                      "STEP:VALUE",
		"case a\nfact run.colour=red":                `no fact "run.colour"`,
		"case a\nexpect":                             "nothing expected",
		"case a\nuse lead":                           "name=value",
		"case a\nevent text=\"unclosed exception":    "quoted",
		"case a\nfile":                               "no file",
		"case a\nskip pages=3":                       "pages",
		"case a\nfile a.log colour=red":              "colour",
		"case a\nevent exception type=a\nfact x.y=1": "3: fact",
	} {
		if _, err := testkit.Parse(script); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error is %v, want %q", script, err, want)
		}
	}
}

func TestFact(t *testing.T) {
	known := evidence.Known{}
	known.Set("a", evidence.SizeOf(1, 2))
	known.Set("b", evidence.FloatOf(1.00001))
	known.Set("c", evidence.IntsOf([]int64{1, 2}))
	for _, tt := range []struct {
		with map[string]string
		same bool
	}{
		{map[string]string{"a": "1..2", "b": "1", "c": "1,2"}, true},
		{map[string]string{"a": "1..3"}, false}, {map[string]string{"b": "1.1"}, false}, {map[string]string{"c": "1"}, false}, {map[string]string{"d": "1"}, false},
	} {
		if got := testkit.Fact(known, testkit.Expectation{What: "fact", With: tt.with}); (got == "") != tt.same {
			t.Errorf("%v: %q", tt.with, got)
		}
	}
	if testkit.Fact(known, testkit.Expectation{What: "unknown", Args: []string{"d"}}) != "" || testkit.Fact(known, testkit.Expectation{What: "unknown", Args: []string{"a"}}) == "" {
		t.Error("unknown facts")
	}
}
