package report

import (
	"bytes"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/inquest-dev/inquest/internal/evidence"
	"github.com/inquest-dev/inquest/internal/incident"
)

const (
	memorySchemaFile = "../../docs/memory.schema.json"
	memorySchemaDoc  = "../../docs/memory.md"
)

// memoryTypes are the objects of a result of inquest memory in the order in which
// docs/memory.md explains them.
var memoryTypes = []reflect.Type{
	reflect.TypeFor[incident.Memory](), reflect.TypeFor[incident.MemorySnapshot](), reflect.TypeFor[incident.MemorySettings](), reflect.TypeFor[incident.MemoryDevice](), reflect.TypeFor[incident.MemoryTotals](),
	reflect.TypeFor[incident.MemoryTrace](), reflect.TypeFor[incident.MemoryPeak](), reflect.TypeFor[incident.MemoryUse](), reflect.TypeFor[incident.MemoryStack](), reflect.TypeFor[incident.MemoryGrowth](),
	reflect.TypeFor[incident.MemoryGrown](), reflect.TypeFor[incident.MemoryFragmentation](), reflect.TypeFor[incident.MemoryPoolUse](), reflect.TypeFor[incident.MemoryPinned](), reflect.TypeFor[incident.MemoryFreeOfSizes](),
	reflect.TypeFor[incident.MemoryPressure](), reflect.TypeFor[incident.MemoryOOM](), reflect.TypeFor[incident.MemoryFlush](), reflect.TypeFor[incident.MemoryMoreFlushes](), reflect.TypeFor[incident.MemoryOutside](), reflect.TypeFor[incident.MemoryCause](),
	reflect.TypeFor[incident.MemoryReplay](), reflect.TypeFor[incident.MemoryFidelity](), reflect.TypeFor[incident.MemoryRoom](), reflect.TypeFor[incident.MemoryAnswer](), reflect.TypeFor[incident.MemoryLayout](), reflect.TypeFor[incident.MemoryReplayPeak](),
	reflect.TypeFor[incident.MemoryTimeline](), reflect.TypeFor[incident.MemoryBucket](), reflect.TypeFor[incident.MemoryLife](), reflect.TypeFor[incident.MemoryMark](), reflect.TypeFor[incident.MemorySegment](), reflect.TypeFor[incident.MemorySegmentPart](),
	reflect.TypeFor[incident.MemoryChange](), reflect.TypeFor[incident.MemoryRanks](), reflect.TypeFor[incident.MemoryRank](), reflect.TypeFor[incident.Statement](), reflect.TypeFor[evidence.Span](), reflect.TypeFor[incident.Time](),
	reflect.TypeFor[incident.Artifact](), reflect.TypeFor[incident.Owner](), reflect.TypeFor[incident.Tool](),
}

func TestMemorySchemaIsCurrent(t *testing.T) {
	schemaCurrent(t, memorySchemaFile, memoryTypes, incident.MemorySchema, memoryTexts)
}

func TestMemoryDocIsCurrent(t *testing.T) { docCurrent(t, memorySchemaDoc, memoryTypes, "The result") }

func TestMemorySamplesFitTheSchema(t *testing.T) {
	schema := compileSchemaOf(t, memorySchemaFile)
	for name, m := range memoryResults(t) {
		var b bytes.Buffer
		if err := WriteMemory(&b, "json", m, Options{}); err != nil {
			t.Fatal(err)
		}
		v, err := jsonschema.UnmarshalJSON(&b)
		if err != nil {
			t.Fatal(err)
		}
		if err := schema.Validate(v); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestMemorySchemaRefuses breaks a good result in ways that the schema must notice.
func TestMemorySchemaRefuses(t *testing.T) {
	schema := compileSchemaOf(t, memorySchemaFile)
	for _, c := range []struct {
		name string
		do   func(map[string]any)
		ok   bool
	}{
		{"unchanged", func(m map[string]any) {}, true},
		{"a field of a later version", func(m map[string]any) { m["new"] = 1 }, true},
		{"another schema", func(m map[string]any) { m["schema"] = "inquest.incident/v1" }, false},
		{"no snapshots", func(m map[string]any) { delete(m, "snapshots") }, false},
		{"a null list", func(m map[string]any) { m["limits"] = nil }, false},
		{"no change", func(m map[string]any) { m["change"] = nil }, true},
	} {
		b, err := os.ReadFile(filepath.Join("testdata", "memory", "result.json"))
		if err != nil {
			t.Fatal(err)
		}
		v, err := jsonschema.UnmarshalJSON(bytes.NewReader(b))
		if err != nil {
			t.Fatal(err)
		}
		c.do(v.(map[string]any))
		if err := schema.Validate(v); (err == nil) != c.ok {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}
