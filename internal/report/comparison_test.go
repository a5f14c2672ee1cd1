package report

import (
	"bytes"
	"reflect"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/inquest-dev/inquest/internal/incident"
)

const (
	comparisonSchemaFile = "../../docs/comparison.schema.json"
	bundleSchemaFile     = "../../docs/bundle.schema.json"
)

func TestComparisonSchemasAreCurrent(t *testing.T) {
	compare(t, comparisonSchemaFile, commentedSchema(t, reflect.TypeFor[incident.Comparison](), incident.ComparisonSchema, comparisonSchemaFile))
	compare(t, bundleSchemaFile, commentedSchema(t, reflect.TypeFor[incident.Bundle](), incident.BundleSchema, bundleSchemaFile))
}

// hostile is text that would steer a terminal, a page or a table.
const hostile = "\x1b]0;x\x07\x1b[31m<script>alert(1)</script> | `x` \u202e ${x}\r"

func trialSample(id, result, text string) incident.Trial {
	ended := "2026-01-02T03:05:05Z"
	one, limit := 0, int64(80<<30)
	return incident.Trial{Schema: incident.TrialSchema, ID: id, By: incident.ByRun, Command: []string{"python", text}, Template: []string{}, Values: map[string]string{}, Set: map[string]string{},
		Begun: "2026-01-02T03:04:05Z", Ended: &ended, Exit: &incident.Exit{Status: 1}, Samples: []incident.Sample{}, Problems: []string{},
		Measures: []incident.Measure{{Name: incident.Resident, Peak: 1 << 30}, {Name: incident.DeviceMemory, Device: &one, Peak: 70 << 30, Limit: &limit, AtLeast: true}},
		Verdict:  &incident.TrialVerdict{Result: result, Text: text, Cause: "fragmentation"}}
}

// comparisons are comparisons of every effect, plain and hostile, empty and long.
func comparisons() map[string]*incident.Comparison {
	out := map[string]*incident.Comparison{}
	for _, effect := range []string{"helped", "did_not_help", "another_failure", "made_worse", "both_passed", "unknown"} {
		for name, text := range map[string]string{"plain": "--lr 1 → 2", "hostile": hostile} {
			for _, n := range []int{0, 1, 3, 60} {
				c := &incident.Comparison{Schema: incident.ComparisonSchema, A: trialSample("t1", incident.OutOfMemory, text), B: trialSample("t2", incident.Passed, text), Changes: []incident.Change{}, Expected: []incident.Change{}, Unknown: []string{}, Effect: effect, Says: "says " + text + "."}
				for range n {
					c.Changes = append(c.Changes, incident.Change{Of: incident.ChangeCommand, Name: text, From: "1", To: "2", Text: text, Parts: []incident.ChangePart{{Of: incident.ChangeCommand, Name: text, To: "2"}}})
					c.Expected = append(c.Expected, incident.Change{Of: incident.ChangeMachine, Name: "host", From: text, To: "b", Text: text})
					c.Unknown = append(c.Unknown, text)
				}
				out[effect+" "+name+" "+strings.Repeat("x", n)] = c
			}
		}
	}
	return out
}

func bundles() map[string]*incident.Bundle {
	out := map[string]*incident.Bundle{}
	for name, text := range map[string]string{"plain": "logs/rank0.log", "hostile": hostile} {
		for _, n := range []int{0, 1, 50} {
			b := &incident.Bundle{Schema: incident.BundleSchema, Tool: incident.Tool{Name: "inquest"}, Incident: "inq-1", To: []incident.BundleReceiver{{Who: incident.ToOwner, Why: text}}, Message: text + "\n" + text, Contents: []incident.BundleFile{}, Removed: []incident.BundleRemoved{}, LeftOut: []incident.BundleLeftOut{}, Limits: []string{}, Check: incident.BundleCheck{Unchanged: n == 0, Differs: []string{}}}
			for range n {
				b.Contents = append(b.Contents, incident.BundleFile{Path: text, What: text, Size: 1 << 20})
				b.Removed = append(b.Removed, incident.BundleRemoved{Kind: text, Count: 2, Names: 2, Token: text}, incident.BundleRemoved{Kind: "secret", Count: 1, Token: "[masked]"})
				b.LeftOut = append(b.LeftOut, incident.BundleLeftOut{Path: text, Size: 1, Why: text})
				b.Check.Differs = append(b.Check.Differs, text)
			}
			out[name+strings.Repeat("x", n)] = b
		}
	}
	return out
}

// TestComparisonsInEveryFormat renders both results in all formats and widths: they fit, name what
// changed, hold nothing that acts, and are the same twice.
func TestComparisonsInEveryFormat(t *testing.T) {
	schemas := map[string]*jsonschema.Schema{"comparison": compileSchemaOf(t, comparisonSchemaFile), "bundle": compileSchemaOf(t, bundleSchemaFile)}
	check := func(name, kind, format string, o Options, write func(*bytes.Buffer) error) {
		t.Helper()
		var b, again bytes.Buffer
		if err := write(&b); err != nil {
			t.Fatalf("%s %s: %v", name, format, err)
		}
		if err := write(&again); err != nil || b.String() != again.String() {
			t.Fatalf("%s %s: not the same twice", name, format)
		}
		s := b.String()
		if format == "json" {
			v, err := jsonschema.UnmarshalJSON(&b)
			if err != nil {
				t.Fatal(err)
			}
			if err := schemas[kind].Validate(v); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			return
		}
		if strings.ContainsAny(s, "\x1b\x07\r\u202e") || format == "html" && strings.Contains(s, "<script>alert") {
			t.Errorf("%s %s: something in it acts", name, format)
		}
		if format == "text" {
			lines := strings.Split(strings.TrimSuffix(s, "\n"), "\n")
			if !o.Full && len(lines) > 40 {
				t.Errorf("%s: %d lines", name, len(lines))
			}
			for _, l := range lines {
				if columns(l) > o.Width {
					t.Errorf("%s, width %d: %q", name, o.Width, l)
				}
			}
		}
	}
	for _, o := range []Options{{Width: 40}, {Width: 100}, {Width: 200, Full: true}} {
		for name, c := range comparisons() {
			for _, format := range ComparisonFormats() {
				check(name, "comparison", format, o, func(b *bytes.Buffer) error { return WriteComparison(b, format, c, o) })
			}
		}
		for name, m := range bundles() {
			for _, format := range BundleFormats() {
				check(name, "bundle", format, o, func(b *bytes.Buffer) error { return WriteBundle(b, format, m, o) })
			}
		}
	}
}
