package report

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"unicode"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/inquest-dev/inquest/internal/incident"
)

// boundarySample is a search of n values of which those up to largest pass.
func boundarySample(n, largest int) *incident.Trials {
	limit := int64(1 << 30)
	t := &incident.Trials{Schema: incident.TrialsSchema, Tool: incident.Tool{Name: "inquest", Version: "1"}, ID: "s1", By: incident.ByBoundary, Template: []string{"python", "train.py", "--batch", "{N}"}, Trials: []incident.Trial{}, Limits: []string{}}
	b := &incident.Boundary{Find: incident.LargestPassing, Answer: incident.Found, Vary: []incident.Varied{{Name: "N", Lo: 1, Hi: int64(n), Step: 1}}, Also: []incident.Also{}, Repeats: 3, Points: []incident.BoundaryPoint{}, Skipped: []incident.SkippedValue{}, NotMonotone: []string{}, Phases: []incident.BoundaryPhase{}, Trials: 7, Bound: 7}
	t.Boundary = b
	for i := 1; i <= n; i++ {
		peak, seconds, result := int64(i)<<20, 1.25, incident.Passed
		if i > largest {
			result = incident.OutOfMemory
		}
		b.Points = append(b.Points, incident.BoundaryPoint{Trial: fmt.Sprintf("t%d", i), Values: map[string]string{"N": fmt.Sprint(i)}, Result: result, Measure: incident.AddressSpace, Peak: &peak, Limit: &limit, LimitBy: "ulimit -v", Basis: "samples", Ranks: []int{}, Seconds: &seconds, Text: "It ended."})
	}
	value := func(x, passed, failed int) *incident.EdgeValue {
		return &incident.EdgeValue{Value: int64(x), Values: map[string]string{"N": fmt.Sprint(x)}, Passed: passed, Failed: failed, Of: 3, Trials: []string{"t1"}}
	}
	left, peak, edge := int64(10<<20), limit-10<<20, int64(largest)
	b.Edges = []incident.Edge{{Name: "N", Fixed: map[string]int64{}, Answer: incident.Found, Largest: value(largest, 3, 0), Smallest: value(largest+1, 0, 3), Flaky: []incident.EdgeValue{},
		Margin: &incident.Margin{Bytes: &left, Measure: incident.AddressSpace, Peak: &peak, Limit: &limit, LimitBy: "ulimit -v"},
		Fit:    &incident.Fit{Measure: incident.AddressSpace, A: 1 << 20, B: 1 << 20, Points: 3, Residual: 100, Edge: &edge, EdgeLow: &edge, EdgeHigh: &edge}, Trials: 7, Bound: 7}}
	b.Says = fmt.Sprintf("N=%d is the largest that passes (3 of 3); N=%d ran out of host memory (3 of 3).", largest, largest+1)
	return t
}

func boundarySamples() map[string]*incident.Trials {
	out := map[string]*incident.Trials{"found": boundarySample(20, 12), "many": boundarySample(200, 120)}
	empty := boundarySample(0, 0)
	empty.Boundary.Edges, empty.Boundary.Answer, empty.Boundary.Says, empty.Stopped = []incident.Edge{}, incident.NotDecided, "Nothing was found: no trial decided anything.", "interrupt"
	out["empty"] = empty
	out["without an answer"] = &incident.Trials{Schema: incident.TrialsSchema, Template: []string{}, Trials: []incident.Trial{}, Limits: []string{}}
	two := boundarySample(10, 5)
	for i := range 20 {
		e := two.Boundary.Edges[0]
		e.Fixed = map[string]int64{"S": int64(i)}
		if i%3 == 1 {
			e.Largest, e.Margin, e.Fit, e.Answer = nil, nil, nil, incident.NonePasses
		}
		if i == 0 {
			two.Boundary.Edges = nil
		}
		two.Boundary.Edges = append(two.Boundary.Edges, e)
	}
	two.Boundary.Vary = append(two.Boundary.Vary, incident.Varied{Name: "S", Hi: 19, Step: 1})
	out["two names"] = two
	smallest := boundarySample(10, 5)
	below := int64(1)
	smallest.Boundary.Edges = []incident.Edge{}
	smallest.Boundary.Find = incident.SmallestFailing
	smallest.Boundary.Smallest = &incident.Smallest{Values: map[string]string{"N": "2"}, From: map[string]string{"N": "8"}, Reduced: []incident.ReducedValue{{Name: "N", From: 8, To: 2, Below: &below, Says: "with 1 it passes (3 of 3)"}}, Class: "collective", Kind: "collective_timeout", Failed: 3, Of: 3, Trials: []string{}}
	out["smallest"] = smallest
	evil := "\x1b[31m\u202e<script>alert(1)</script>|`*_[x](http://e)\x00\n# head"
	hostile := boundarySample(6, 3)
	b := hostile.Boundary
	b.Says, hostile.Limits, hostile.Template, hostile.Stopped, hostile.ID = evil, []string{evil}, []string{evil, "a'b"}, evil, evil
	for i := range b.Points {
		b.Points[i].Text, b.Points[i].Values, b.Points[i].Result, b.Points[i].Trial, b.Points[i].LimitBy = evil, map[string]string{evil: evil}, evil, evil, evil
	}
	b.Edges[0].Name, b.Edges[0].Margin.LimitBy, b.Edges[0].Margin.Measure = evil, evil, evil
	out["hostile"] = hostile
	return out
}

func TestBoundaryReports(t *testing.T) {
	schema := compileSchemaOf(t, trialsSchemaFile)
	for name, s := range boundarySamples() {
		for _, format := range TrialsFormats() {
			for _, o := range []Options{{}, {Full: true}, {Width: 40}, {Width: 40, Full: true, ASCII: true}, {Width: 200}} {
				var b, again bytes.Buffer
				if err := WriteTrials(&b, format, s, o); err != nil {
					t.Fatalf("%s, %s: %v", name, format, err)
				}
				if err := WriteTrials(&again, format, s, o); err != nil || again.String() != b.String() {
					t.Errorf("%s, %s: two writings differ (%v)", name, format, err)
				}
				text := b.String()
				for _, r := range text {
					if unicode.IsControl(r) && r != '\n' || r == '\u202e' {
						t.Fatalf("%s, %s: %q in it", name, format, r)
					}
				}
				switch format {
				case "text":
					lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
					if !o.Full && len(lines) > shortLines {
						t.Errorf("%s, width %d: %d lines", name, o.Width, len(lines))
					}
					most := o.Width
					if most == 0 {
						most = 100
					}
					for _, l := range lines {
						if columns(l) > most {
							t.Errorf("%s, width %d: %q has %d columns", name, o.Width, l, columns(l))
						}
					}
				case "html":
					if strings.Contains(text, "<script") {
						t.Errorf("%s: a script in the page", name)
					}
				case "json":
					v, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
					if err != nil {
						t.Fatal(err)
					}
					if err := schema.Validate(v); err != nil {
						t.Errorf("%s: %v", name, err)
					}
				}
			}
		}
	}
}
