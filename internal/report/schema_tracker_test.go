package report

import (
	"bytes"
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/inquest-dev/inquest/internal/evidence"
	"github.com/inquest-dev/inquest/internal/incident"
)

const (
	trackerSchemaFile   = "../../docs/tracker.schema.json"
	alignmentSchemaFile = "../../docs/alignment.schema.json"
	repairSchemaFile    = "../../docs/repair.schema.json"
	trackerSchemaDoc    = "../../docs/trackers.md"
)

// The objects of the results of inquest tracker in the order in which docs/trackers.md
// explains them.
var (
	runTypes = []reflect.Type{reflect.TypeFor[incident.TrackedRun](), reflect.TypeFor[incident.RunSetting](), reflect.TypeFor[incident.TrackedSeries](), reflect.TypeFor[incident.TrackedPoint](), reflect.TypeFor[incident.Doubt](),
		reflect.TypeFor[incident.Onset](), reflect.TypeFor[incident.Segment](), reflect.TypeFor[incident.Resume](), reflect.TypeFor[incident.RunDamage]()}
	orderTypes = []reflect.Type{reflect.TypeFor[incident.RunClock](), reflect.TypeFor[incident.RunOrder](), reflect.TypeFor[incident.AfterDeath](), reflect.TypeFor[incident.AlignedRow]()}
	copyTypes  = []reflect.Type{reflect.TypeFor[incident.RepairPolicy](), reflect.TypeFor[incident.RepairFile](), reflect.TypeFor[incident.RepairedRun](), reflect.TypeFor[incident.RepairedSeries](), reflect.TypeFor[incident.FailedSegment](), reflect.TypeFor[incident.RepairCheck]()}
	baseTypes  = []reflect.Type{reflect.TypeFor[incident.Statement](), reflect.TypeFor[evidence.Span](), reflect.TypeFor[incident.Time](), reflect.TypeFor[incident.Artifact](), reflect.TypeFor[incident.Owner](), reflect.TypeFor[incident.Tool]()}

	trackerTypes   = slices.Concat([]reflect.Type{reflect.TypeFor[incident.Tracker]()}, runTypes, baseTypes)
	alignmentTypes = slices.Concat([]reflect.Type{reflect.TypeFor[incident.Alignment]()}, orderTypes, runTypes, baseTypes)
	repairTypes    = slices.Concat([]reflect.Type{reflect.TypeFor[incident.Repair]()}, copyTypes, []reflect.Type{reflect.TypeFor[incident.RunDamage](), reflect.TypeFor[evidence.Span](), reflect.TypeFor[incident.Time](), reflect.TypeFor[incident.Tool]()})
)

// textsOf are the texts of the types' own fields.
func textsOf(types []reflect.Type) map[string]description {
	out := maps.Clone(trackerTexts)
	maps.DeleteFunc(out, func(key string, _ description) bool {
		name, _, _ := strings.Cut(key, ".")
		return !slices.ContainsFunc(types, func(t reflect.Type) bool { return t.Name() == name })
	})
	return out
}

func TestTrackerSchemasAreCurrent(t *testing.T) {
	schemaCurrent(t, trackerSchemaFile, trackerTypes, incident.TrackerSchema, textsOf(trackerTypes))
	schemaCurrent(t, alignmentSchemaFile, alignmentTypes, incident.AlignmentSchema, textsOf(alignmentTypes))
	schemaCurrent(t, repairSchemaFile, repairTypes, incident.RepairSchema, textsOf(repairTypes))
	all := slices.Concat(trackerTypes, alignmentTypes, repairTypes)
	if got := len(textsOf(all)); got != len(trackerTexts) {
		t.Errorf("%d of %d texts are of a type in a schema", got, len(trackerTexts))
	}
}

func TestTrackerDocIsCurrent(t *testing.T) {
	docCurrent(t, trackerSchemaDoc, slices.Concat([]reflect.Type{reflect.TypeFor[incident.Tracker]()}, runTypes, []reflect.Type{reflect.TypeFor[incident.Alignment]()}, orderTypes, []reflect.Type{reflect.TypeFor[incident.Repair]()}, copyTypes, baseTypes), "`tracker`")
}

// trackerResult is a result of any of the three kinds with what writes it.
type trackerResult struct {
	value  any
	schema string
	write  func(format string, o Options) (string, error)
}

// trackerResults are all generated results of the three kinds.
func trackerResults() map[string]trackerResult {
	out := map[string]trackerResult{}
	for name, v := range trackerShapes() {
		out["show "+name] = trackerResult{v, trackerSchemaFile, func(format string, o Options) (string, error) {
			var b bytes.Buffer
			err := WriteTracker(&b, format, v, o)
			return b.String(), err
		}}
	}
	for name, v := range alignments() {
		out["align "+name] = trackerResult{v, alignmentSchemaFile, func(format string, o Options) (string, error) {
			var b bytes.Buffer
			err := WriteAlignment(&b, format, v, o)
			return b.String(), err
		}}
	}
	for name, v := range repairs() {
		out["repair "+name] = trackerResult{v, repairSchemaFile, func(format string, o Options) (string, error) {
			var b bytes.Buffer
			err := WriteRepair(&b, format, v, o)
			return b.String(), err
		}}
	}
	return out
}

func (r trackerResult) render(t testing.TB, format string, o Options) string {
	t.Helper()
	s, err := r.write(format, o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestTrackerSamplesFitTheSchemas(t *testing.T) {
	schemas := map[string]*jsonschema.Schema{}
	for _, file := range []string{trackerSchemaFile, alignmentSchemaFile, repairSchemaFile} {
		schemas[file] = compileSchemaOf(t, file)
	}
	for name, r := range trackerResults() {
		if name == "show empty-texts" || name == "show wide" { // one from elsewhere, and one of many series alike
			continue
		}
		v, err := jsonschema.UnmarshalJSON(strings.NewReader(r.render(t, "json", Options{})))
		if err != nil {
			t.Fatal(err)
		}
		if err := schemas[r.schema].Validate(v); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		walkNil(t, name, reflect.ValueOf(r.value))
	}
}

// TestTrackerSchemaRefuses breaks a good result in ways that the schema must notice.
func TestTrackerSchemaRefuses(t *testing.T) {
	schema := compileSchemaOf(t, trackerSchemaFile)
	good := trackerResults()["show broken"].render(t, "json", Options{})
	run := func(m map[string]any) map[string]any { return m["runs"].([]any)[0].(map[string]any) }
	last := func(m map[string]any) map[string]any {
		return run(m)["series"].([]any)[0].(map[string]any)["last"].(map[string]any)
	}
	for _, c := range []struct {
		name string
		do   func(map[string]any)
		ok   bool
	}{
		{"unchanged", func(m map[string]any) {}, true},
		{"a field of a later version", func(m map[string]any) { m["new"] = 1 }, true},
		{"another schema", func(m map[string]any) { m["schema"] = incident.RepairSchema }, false},
		{"a null list", func(m map[string]any) { run(m)["damage"] = nil }, false},
		{"a status of no meaning", func(m map[string]any) { run(m)["status"] = "gone" }, false},
		{"an infinity", func(m map[string]any) { last(m)["value"] = "-Infinity" }, true},
		{"a finite value", func(m map[string]any) { last(m)["value"] = json.Number("2.5") }, true},
		{"a word for a value", func(m map[string]any) { last(m)["value"] = "inf" }, false},
		{"no value", func(m map[string]any) { last(m)["value"] = nil }, false},
	} {
		v, err := jsonschema.UnmarshalJSON(strings.NewReader(good))
		if err != nil {
			t.Fatal(err)
		}
		c.do(v.(map[string]any))
		if err := schema.Validate(v); (err == nil) != c.ok {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}
