package report

import (
	"bytes"
	"encoding/json"
	"reflect"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/inquest-dev/inquest/internal/evidence"
	"github.com/inquest-dev/inquest/internal/incident"
)

// caseSchemas are the results of which pages, the API and tools for agents are made.
var caseSchemas = []struct {
	file, id string
	typ      reflect.Type
	sample   any
}{
	{"../../docs/case.schema.json", incident.CaseSchema, reflect.TypeFor[incident.Case](),
		&incident.Case{Schema: incident.CaseSchema, ID: "k3v", Name: "night run", State: incident.CaseReading, Begun: "2026-01-01T00:00:00Z",
			Files: []incident.CaseFile{{Name: "rank_0.log", Bytes: 12, Whole: true}}, Bytes: 12, Total: 1, Limits: []string{}}},
	{"../../docs/lines.schema.json", incident.LinesSchema, reflect.TypeFor[incident.Lines](),
		&incident.Lines{Schema: incident.LinesSchema, Artifact: "rank_0.log", Kind: "ranklog", First: 7,
			Lines: []incident.Line{{N: 7, Offset: 90, Text: "step 7 loss 2.1", Marked: true}}, Before: true, Limits: []string{}}},
	{"../../docs/timeline.schema.json", incident.TimelineSchema, reflect.TypeFor[incident.Timeline](),
		&incident.Timeline{Schema: incident.TimelineSchema, Attempts: []incident.TimelineAttempt{{ID: "1", Outcome: incident.Failed, Ranks: []int{0}, Events: 2}},
			Events: []incident.TimelineEvent{{Event: incident.Event{ID: "e1", Kind: "device_oom", Class: "device_memory", Attempt: "1", Attrs: map[string]any{}, KnownBy: "words",
				Span: &evidence.Span{Artifact: "rank_0.log", Kind: "text", Line: 7, Offset: 90, Length: 15}}, Role: incident.RoleFirst, Why: "the only failure"}},
			Total: 2, Dropped: map[string]int{"device_oom": 1}}},
}

func TestCaseSchemasAreCurrent(t *testing.T) {
	for _, c := range caseSchemas {
		compare(t, c.file, commentedSchema(t, c.typ, c.id, c.file))
	}
}

func TestCaseSamplesFitTheSchemas(t *testing.T) {
	for _, c := range caseSchemas {
		b, err := json.Marshal(c.sample)
		if err != nil {
			t.Fatal(err)
		}
		v, err := jsonschema.UnmarshalJSON(bytes.NewReader(b))
		if err != nil {
			t.Fatal(err)
		}
		schema := compileSchemaOf(t, c.file)
		if err := schema.Validate(v); err != nil {
			t.Errorf("%s: %v", c.file, err)
		}
		v.(map[string]any)["schema"] = "another"
		if schema.Validate(v) == nil {
			t.Errorf("%s: another schema's name is taken", c.file)
		}
	}
}
