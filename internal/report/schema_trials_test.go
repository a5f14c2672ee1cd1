package report

import (
	"reflect"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/inquest-dev/inquest/internal/incident"
)

const trialsSchemaFile = "../../docs/trials.schema.json"

// TestTrialsSchemaIsCurrent compares the published schema of what boundary, verify and recheck
// show with the types.
func TestTrialsSchemaIsCurrent(t *testing.T) {
	typ := reflect.TypeFor[incident.Trials]()
	compare(t, trialsSchemaFile, commentedSchema(t, typ, incident.TrialsSchema, trialsSchemaFile))
}

func TestVerificationSamplesFitTheSchema(t *testing.T) {
	schema := compileSchemaOf(t, trialsSchemaFile)
	for name, s := range verificationSamples() {
		v, err := jsonschema.UnmarshalJSON(verificationReport(t, s, "json", Options{}))
		if err != nil {
			t.Fatal(err)
		}
		if err := schema.Validate(v); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
