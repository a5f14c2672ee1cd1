package report

import (
	"bytes"
	"encoding/json"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/inquest-dev/inquest/internal/evidence"
	"github.com/inquest-dev/inquest/internal/incident"
)

// sarifModule has the schema of SARIF 2.1.0 as the standard publishes it, in a constant of one
// file.
const sarifModule, sarifModuleFile = "github.com/owenrumney/go-sarif/v3@v3.3.1", "pkg/report/v210/sarif/schema.go"

// standardSchema is the standard's own schema; the error says why it is not at hand.
var standardSchema = sync.OnceValues(func() (*jsonschema.Schema, error) {
	out, err := exec.Command("go", "mod", "download", "-json", sarifModule).Output()
	if err != nil {
		return nil, err
	}
	var module struct{ Dir string }
	if err := json.Unmarshal(out, &module); err != nil {
		return nil, err
	}
	src, err := os.ReadFile(filepath.Join(module.Dir, filepath.FromSlash(sarifModuleFile)))
	if err != nil {
		return nil, err
	}
	_, text, _ := bytes.Cut(src, []byte("`"))
	text, _, _ = bytes.Cut(text, []byte("`"))
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft4)
	c.AssertFormat()
	if err := c.AddResource("sarif.json", doc); err != nil {
		return nil, err
	}
	return c.Compile("sarif.json")
})

// sarifOf renders an incident and reads it back.
func sarifOf(t testing.TB, inc *incident.Incident) (string, *sarifLog) {
	t.Helper()
	text := render(t, "sarif", inc, Options{})
	var log sarifLog
	unmarshal(t, []byte(text), &log)
	return text, &log
}

func TestSARIFFitsTheStandard(t *testing.T) {
	schema, err := standardSchema()
	if err != nil {
		t.Skipf("the schema of SARIF 2.1.0 is not at hand: %v", err)
	}
	check := func(name, text string) error {
		v, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		return schema.Validate(v)
	}
	all := map[string]*incident.Incident{"nothing": {}, "hostile as built": hostileSample(), "broken": brokenSample()}
	for _, s := range samples {
		all[s.name] = load(t, s.name)
	}
	for name, inc := range all {
		text, _ := sarifOf(t, inc)
		if err := check(name, text); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	text, _ := sarifOf(t, load(t, "oom"))
	for _, x := range [][2]string{{`"level": "error"`, `"level": "bad"`}, {`"startLine": 118`, `"startLine": -1`}, {`"version": "2.1.0"`, `"version": "2"`}, {`"results": [`, `"outcomes": [`}} {
		if broken := strings.Replace(text, x[0], x[1], 1); broken == text || check("broken", broken) == nil {
			t.Errorf("a log with %s for %s is taken", x[1], x[0])
		}
	}
}

// brokenSample is an incident as nobody writes it.
func brokenSample() *incident.Incident {
	long := strings.Repeat("x\x1b[31m[a](http://b.example){0} \u202e", 100<<10/30)
	span := func(name string) *evidence.Span {
		return &evidence.Span{Artifact: name, Line: 1 << 40, Quote: long, Offset: -1}
	}
	inc := &incident.Incident{ID: long, Fingerprint: long, Findings: incident.Findings{
		FirstFault: &incident.Event{Text: long, Span: span("C:\\logs\\a b.log"), Frame: &incident.Frame{File: long, Line: -3, Source: long, Function: long}},
		Hypotheses: []incident.Hypothesis{{Entry: "", Title: long, Readings: map[string]string{"engineer": long}}, {Entry: ""}},
		LastGood:   &incident.LastGood{Span: span(`"a\nb.log"`)},
	}}
	for range 500 {
		inc.Collateral = append(inc.Collateral, incident.Collateral{Event: incident.Event{Span: span("-")}})
		inc.Limits = append(inc.Limits, incident.Statement{Text: long, Spans: []evidence.Span{*span("x.tar!y.log")}})
		inc.Artifacts = append(inc.Artifacts, incident.Artifact{Path: "a%b?c#d.log", Size: -1}, incident.Artifact{Size: 1})
	}
	return inc
}

func TestSARIFIsBounded(t *testing.T) {
	text, log := sarifOf(t, brokenSample())
	if len(text) > 4<<20 || !utf8.ValidString(text) {
		t.Errorf("%d bytes", len(text))
	}
	if n := len(log.Runs[0].Results); n > maxSarifResults {
		t.Errorf("%d results", n)
	}
}

func TestSARIFPlaces(t *testing.T) {
	for name, want := range map[string]string{
		"logs/rank 1.log":       "logs/rank%201.log",
		"./train.py":            "train.py",
		"/home/lena/ü.py":       "file:///home/lena/%C3%BC.py",
		`C:\work\train.py`:      "file:///C:/work/train.py",
		"c:/work/a%20b.py":      "file:///c:/work/a%2520b.py",
		"//host/share/x.log":    "file:///host/share/x.log",
		"a:b.log":               "a%3Ab.log",
		"job.tar!in/x.log":      "job.tar!in/x.log",
		`"a\nb?.log"`:           "a%0Ab%3F.log",
		"javascript:alert(1)":   "javascript%3Aalert%281%29",
		"x#y\u202e.log":         "x%23y%E2%80%AE.log",
		"../logs/\x00nul\xff.x": "../logs/%00nul%FF.x",
	} {
		a := sarifPath(name)
		if a.URI != want {
			t.Errorf("%q is at %s, want %s", name, a.URI, want)
		}
		u, err := url.Parse(a.URI)
		if err != nil {
			t.Errorf("%q: %v", name, err)
		} else if (a.URIBaseID == "") != u.IsAbs() || u.Host != "" {
			t.Errorf("%q: %s with base %q", name, a.URI, a.URIBaseID)
		}
	}
}

func TestSARIFSaysWhatTheReportSays(t *testing.T) {
	_, log := sarifOf(t, load(t, "oom"))
	run := log.Runs[0]
	if len(run.Results) == 0 {
		t.Fatal("no result")
	}
	r := run.Results[0]
	if r.Level != "error" || r.RuleID != "batch-or-activation-too-large" || run.Tool.Driver.Rules[r.RuleIndex].ID != r.RuleID {
		t.Errorf("the first fault is %s of rule %s", r.Level, r.RuleID)
	}
	if p := r.Locations[0].Physical; !strings.HasSuffix(p.Artifact.URI, "finetune.py") || p.Region.StartLine != 204 || p.Region.Snippet.Text != "loss = model(images, tokens).loss" {
		t.Errorf("it is at %+v", p)
	}
	if p := r.RelatedLocations[0].Physical; p.Artifact.URI != "finetune.log" || p.Artifact.URIBaseID != sourceRoot || p.Region.StartLine != 118 {
		t.Errorf("the log is at %+v", p)
	}
	if f := r.PartialFingerprints["inquestFailure/v1"]; f != load(t, "oom").Fingerprint {
		t.Errorf("fingerprint %q", f)
	}
	if len(r.CodeFlows) != 1 || len(r.CodeFlows[0].ThreadFlows[0].Locations) < 3 {
		t.Errorf("flow %+v", r.CodeFlows)
	}

	_, log = sarifOf(t, load(t, "undecidable"))
	r = log.Runs[0].Results[0]
	if !strings.Contains(r.Message.Text, "cannot be decided") || len(r.CodeFlows) != 0 || log.Runs[0].Results[1].RuleID != ruleRival {
		t.Errorf("an undecidable first fault is told as %q, then %s", r.Message.Text, log.Runs[0].Results[1].RuleID)
	}

	_, log = sarifOf(t, load(t, "finished"))
	if v := log.Runs[0].Invocations[0]; len(log.Runs[0].Results) != 0 || !v.ExecutionSuccessful || len(v.Notifications) == 0 || v.Notifications[0].Descriptor.ID != "inquest-read" {
		t.Errorf("a run without a failure is told as %+v", v)
	}
	if _, log = sarifOf(t, &incident.Incident{Outcome: incident.Unclear}); log.Runs[0].Invocations[0].ExecutionSuccessful {
		t.Error("a question without an answer counts as answered")
	}
}

func TestSARIFKnowsTheFolderOfTheRun(t *testing.T) {
	inc := load(t, "oom")
	inc.Attempts[0].Command = "torchrun --nproc-per-node 8 ./caption/finetune.py --config x.yaml"
	inc.FirstFault.Frame.File = "/home/lena/caption/model/vit.py"
	inc.Attempts[0].FirstFault = &incident.Event{Frame: &incident.Frame{File: "/home/lena/caption/finetune.py", Line: 1}}
	_, log := sarifOf(t, inc)
	if a := log.Runs[0].Results[0].Locations[0].Physical.Artifact; a.URI != "caption/model/vit.py" || a.URIBaseID != sourceRoot {
		t.Errorf("the user's line is at %+v", a)
	}
}

// TestSARIFLiteral holds that no viewer makes a link or a place of an argument of a log's words.
func TestSARIFLiteral(t *testing.T) {
	for in, want := range map[string]string{
		"[x](http://evil.example)":   `\[x\](http://evil.example)`,
		`\[x](http://evil.example)`:  `\\\[x\](http://evil.example)`,
		"{0} of {1}":                 "{{0}} of {{1}}",
		`C:\logs\x.log says [rank3]`: `C:\logs\x.log says \[rank3\]`,
	} {
		if got := sarifMessage(in).Text; got != want {
			t.Errorf("%q became %q, want %q", in, got, want)
		}
	}
}

// FuzzSARIF puts a log's words wherever they can stand: the log is JSON that fits the standard, and
// its addresses are those of files.
func FuzzSARIF(f *testing.F) {
	schema, err := standardSchema()
	if err != nil {
		f.Logf("the schema of SARIF 2.1.0 is not at hand: %v", err)
	}
	f.Add("CUDA out of memory", "logs/rank 0.log", int64(7))
	f.Add("[x](http://a.example) {0} \x1b[31m\u202e\xff", `C:\a b\c.py`, int64(-1))
	f.Add("", `"a\nb.log"`, int64(1<<62))
	f.Add("\x00", "//host/../x!y!z", int64(0))
	f.Add("x", "-", int64(3))
	f.Fuzz(func(t *testing.T, text, name string, n int64) {
		sp := evidence.Span{Artifact: name, Line: n, Offset: n, Quote: text}
		e := incident.Event{Text: text, Kind: text, Class: name, Span: &sp, Host: &text, Frame: &incident.Frame{File: name, Line: int(n), Function: text, Source: text}}
		out, log := sarifOf(t, &incident.Incident{ID: text, Fingerprint: name, Outcome: text, Tool: incident.Tool{Name: name, Version: text}, Findings: incident.Findings{
			FirstFault: &e, FirstFaultBasis: text, FirstFaultStanding: incident.Supported, FirstFaultRivals: []incident.Event{e, {}},
			LastGood: &incident.LastGood{Span: &sp, Value: text}, Collateral: []incident.Collateral{{Event: e, ExplainedBy: incident.Explained{Text: text, Rule: name}}},
			Hypotheses: []incident.Hypothesis{{Entry: name, Title: text, For: []incident.Statement{{Text: text, Spans: []evidence.Span{sp, sp}}}}, {Entry: name}, {Entry: text}},
			Remedy:     &incident.Remedy{Change: text, Verify: name}},
			Artifacts: []incident.Artifact{{Path: name, Size: n, Digest: "sha256:" + text}, {Path: name}}, Limits: []incident.Statement{{Text: text, Spans: []evidence.Span{sp}}}})
		for _, r := range log.Runs[0].Results {
			for _, l := range append(r.Locations, r.RelatedLocations...) {
				if l.Physical == nil {
					continue
				}
				if u, err := url.Parse(l.Physical.Artifact.URI); err != nil || u.Host != "" || u.Scheme != "" && u.Scheme != "file" {
					t.Errorf("%q is at %q: %v", name, l.Physical.Artifact.URI, err)
				}
			}
		}
		if schema == nil {
			return
		}
		v, err := jsonschema.UnmarshalJSON(strings.NewReader(out))
		if err != nil {
			t.Fatal(err)
		}
		if err := schema.Validate(v); err != nil {
			t.Error(err)
		}
	})
}
