package report

import (
	"bytes"
	"reflect"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/inquest-dev/inquest/internal/incident"
)

const holdersSchemaFile = "../../docs/holders.schema.json"

// holdersTypes are the objects of a result of inquest gpus.
var holdersTypes = []reflect.Type{
	reflect.TypeFor[incident.Holders](), reflect.TypeFor[incident.HolderPlace](), reflect.TypeFor[incident.HolderTool](), reflect.TypeFor[incident.HeldDevice](), reflect.TypeFor[incident.HeldSlice](),
	reflect.TypeFor[incident.HolderInterval](), reflect.TypeFor[incident.HolderUnseen](), reflect.TypeFor[incident.HolderCommand](), reflect.TypeFor[incident.Holder](), reflect.TypeFor[incident.HolderContainer](),
	reflect.TypeFor[incident.HolderJob](), reflect.TypeFor[incident.HolderStrays](), reflect.TypeFor[incident.HolderAct](), reflect.TypeFor[incident.Tool](),
}

func TestHoldersSchemaIsCurrent(t *testing.T) {
	schemaCurrent(t, holdersSchemaFile, holdersTypes, incident.HoldersSchema, holdersTexts)
}

func TestHoldersSamplesFitTheSchema(t *testing.T) {
	schema := compileSchemaOf(t, holdersSchemaFile)
	for name, h := range holdersShapes() {
		var b bytes.Buffer
		if err := WriteHolders(&b, "json", h, Options{}); err != nil {
			t.Fatal(err)
		}
		v, err := jsonschema.UnmarshalJSON(&b)
		if err != nil {
			t.Fatal(err)
		}
		if err := schema.Validate(v); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		walkNil(t, name, reflect.ValueOf(h))
	}
}

// TestHoldersSchemaRefuses breaks a good result in ways that the schema must notice.
func TestHoldersSchemaRefuses(t *testing.T) {
	schema := compileSchemaOf(t, holdersSchemaFile)
	device := func(m map[string]any) map[string]any { return m["devices"].([]any)[0].(map[string]any) }
	holder := func(m map[string]any) map[string]any { return device(m)["holders"].([]any)[0].(map[string]any) }
	for _, c := range []struct {
		name string
		do   func(map[string]any)
		ok   bool
	}{
		{"unchanged", func(m map[string]any) {}, true},
		{"a field of a later version", func(m map[string]any) { m["new"] = 1 }, true},
		{"another schema", func(m map[string]any) { m["schema"] = incident.TrialSchema }, false},
		{"a null list", func(m map[string]any) { m["acts"] = nil }, false},
		{"a status of no meaning", func(m map[string]any) { m["status"] = "fine" }, false},
		{"no size", func(m map[string]any) { holder(m)["bytes"] = nil }, true},
		{"a size in words", func(m map[string]any) { holder(m)["bytes"] = "1 GiB" }, false},
		{"a state of no meaning", func(m map[string]any) { holder(m)["state"] = "asleep" }, false},
		{"nothing unseen is told", func(m map[string]any) { device(m)["unseen"] = nil }, true},
	} {
		var b bytes.Buffer
		if err := WriteHolders(&b, "json", holdersShapes()["all"], Options{}); err != nil {
			t.Fatal(err)
		}
		v, err := jsonschema.UnmarshalJSON(&b)
		if err != nil {
			t.Fatal(err)
		}
		c.do(v.(map[string]any))
		if err := schema.Validate(v); (err == nil) != c.ok {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}
