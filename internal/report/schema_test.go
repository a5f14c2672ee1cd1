package report

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"sort"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/inquest-dev/inquest/internal/evidence"
	"github.com/inquest-dev/inquest/internal/incident"
)

const (
	schemaFile = "../../docs/incident.schema.json"
	schemaDoc  = "../../docs/incident.md"
)

// schemaTypes are the objects of an incident in the order in which
// docs/incident.md explains them.
var schemaTypes = []reflect.Type{
	reflect.TypeFor[incident.Incident](), reflect.TypeFor[incident.Findings](), reflect.TypeFor[incident.Event](), reflect.TypeFor[evidence.Span](), reflect.TypeFor[incident.Time](),
	reflect.TypeFor[incident.Frame](), reflect.TypeFor[incident.Elimination](), reflect.TypeFor[incident.Order](), reflect.TypeFor[incident.Bracket](), reflect.TypeFor[incident.LastGood](),
	reflect.TypeFor[incident.Collateral](), reflect.TypeFor[incident.Explained](), reflect.TypeFor[incident.Hypothesis](), reflect.TypeFor[incident.Statement](), reflect.TypeFor[incident.Missing](),
	reflect.TypeFor[incident.Remedy](), reflect.TypeFor[incident.Edit](), reflect.TypeFor[incident.CheckItem](), reflect.TypeFor[incident.Attempt](), reflect.TypeFor[incident.Changed](), reflect.TypeFor[incident.Diff](),
	reflect.TypeFor[incident.OnCall](), reflect.TypeFor[incident.Restart](), reflect.TypeFor[incident.Cordon](), reflect.TypeFor[incident.Lost](), reflect.TypeFor[incident.Reproduce](),
	reflect.TypeFor[incident.Rank](), reflect.TypeFor[incident.Host](), reflect.TypeFor[incident.Group](), reflect.TypeFor[incident.Fact](), reflect.TypeFor[incident.Series](), reflect.TypeFor[incident.Point](),
	reflect.TypeFor[incident.Artifact](), reflect.TypeFor[incident.Owner](), reflect.TypeFor[incident.PassedOver](), reflect.TypeFor[incident.Quote](), reflect.TypeFor[incident.Baseline](), reflect.TypeFor[incident.HostComparison](), reflect.TypeFor[incident.HostRow](), reflect.TypeFor[incident.Tool](),
}

// A field is one property of an object.
type field struct {
	name     string
	typ      reflect.Type
	required bool
}

// fieldsOf lists the JSON properties of a struct; embedded ones only as a whole
// when flat is false.
func fieldsOf(t reflect.Type, flat bool) []field {
	var out []field
	for i := range t.NumField() {
		f := t.Field(i)
		if f.Anonymous {
			if flat {
				out = append(out, fieldsOf(f.Type, true)...)
			}
			continue
		}
		name, opt, _ := strings.Cut(f.Tag.Get("json"), ",")
		out = append(out, field{name, f.Type, !strings.Contains(opt, "omitempty")})
	}
	return out
}

// typeSchema is the schema of one type; structs are references.
func typeSchema(t reflect.Type) map[string]any {
	switch t.Kind() {
	case reflect.Pointer:
		s := typeSchema(t.Elem())
		if n, ok := s["type"].(string); ok {
			return map[string]any{"type": []any{n, "null"}}
		}
		return map[string]any{"anyOf": []any{s, map[string]any{"type": "null"}}}
	case reflect.Slice:
		return map[string]any{"type": "array", "items": typeSchema(t.Elem())}
	case reflect.Map:
		s := map[string]any{"type": "object"}
		if t.Elem().Kind() != reflect.Interface {
			s["additionalProperties"] = typeSchema(t.Elem())
		}
		return s
	case reflect.Struct:
		return map[string]any{"$ref": "#/$defs/" + defName(t)}
	case reflect.String:
		return map[string]any{"type": "string"}
	case reflect.Bool:
		return map[string]any{"type": "boolean"}
	case reflect.Int, reflect.Int64, reflect.Uint64:
		return map[string]any{"type": "integer"}
	case reflect.Float64:
		if t == reflect.TypeFor[incident.Number]() {
			return map[string]any{"anyOf": []any{map[string]any{"type": "number"}, map[string]any{"enum": []any{"NaN", "Infinity", "-Infinity"}}}}
		}
		return map[string]any{"type": "number"}
	case reflect.Interface:
		return map[string]any{}
	}
	panic("no schema for " + t.String())
}

func defName(t reflect.Type) string {
	if trackerObjects[t.Name()] != "" || holdersObjects[t.Name()] != "" {
		return strings.ToLower(humps.ReplaceAllString(t.Name(), "${1}_$2"))
	}
	if name, ok := strings.CutPrefix(t.Name(), "Memory"); ok && name != "" { // camel case
		return strings.ToLower(humps.ReplaceAllString(name, "${1}_$2"))
	}
	return strings.ToLower(strings.ReplaceAll(snake.Replace(t.Name()), "__", "_"))
}

var humps = regexp.MustCompile(`([a-z])([A-Z])`)

var snake = strings.NewReplacer("CheckItem", "check_item", "LastGood", "last_good", "PassedOver", "passed_over")

func buildSchema(t *testing.T, types []reflect.Type, name, file string) []byte {
	defs := map[string]any{}
	var root map[string]any
	for _, typ := range types {
		props := map[string]any{}
		required := []string{}
		for _, f := range fieldsOf(typ, true) {
			s := typeSchema(f.typ)
			d := describe(typ, f.name)
			if d.text == "" {
				t.Errorf("no description for %s.%s", typ.Name(), f.name)
			}
			s["description"] = d.text
			if len(d.enum) > 0 {
				s["enum"] = d.enum
			}
			props[f.name] = s
			if f.required {
				required = append(required, f.name)
			}
		}
		def := map[string]any{"type": "object", "description": objectText(typ), "properties": props, "required": required}
		if objectText(typ) == "" {
			t.Errorf("no description for %s", typ.Name())
		}
		switch typ {
		case types[0]:
			root = def
		case reflect.TypeFor[incident.Findings](): // stands inside the incident and the attempt
		default:
			defs[defName(typ)] = def
		}
	}
	root["properties"].(map[string]any)["schema"].(map[string]any)["const"] = name
	root["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	root["$id"] = "https://github.com/inquest-dev/inquest/docs/" + file
	root["title"] = name
	root["$defs"] = defs
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", " ")
	if err := enc.Encode(root); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// describe finds a field's description; what an embedding type does not say is
// said by Findings.
func describe(t reflect.Type, name string) description {
	for _, texts := range []map[string]description{fieldTexts, memoryTexts, trackerTexts, holdersTexts} {
		if d, ok := texts[t.Name()+"."+name]; ok {
			return d
		}
	}
	for i := range t.NumField() {
		if t.Field(i).Anonymous {
			return describe(t.Field(i).Type, name)
		}
	}
	return description{}
}

func objectText(t reflect.Type) string {
	for _, texts := range []map[string]string{memoryObjects, trackerObjects, holdersObjects} {
		if s := texts[t.Name()]; s != "" {
			return s
		}
	}
	return objectTexts[t.Name()]
}

func TestSchemaIsCurrent(t *testing.T) {
	schemaCurrent(t, schemaFile, schemaTypes, incident.Schema, fieldTexts)
}

// schemaCurrent compares a published schema with the types, and the descriptions with
// their fields.
func schemaCurrent(t *testing.T, file string, types []reflect.Type, id string, texts map[string]description) {
	t.Helper()
	compare(t, file, buildSchema(t, types, id, filepath.Base(file)))
	used := map[string]bool{}
	for _, typ := range types {
		for _, f := range fieldsOf(typ, false) {
			used[typ.Name()+"."+f.name] = true
		}
	}
	for n := range texts {
		if !used[n] {
			t.Errorf("%s is described and does not exist", n)
		}
	}
}

// TestDocIsCurrent compares the tables of docs/incident.md with the types.
func TestDocIsCurrent(t *testing.T) { docCurrent(t, schemaDoc, schemaTypes, "The incident") }

// docCurrent compares the tables of a page with the types.
func docCurrent(t *testing.T, page string, types []reflect.Type, first string) {
	const begin, end = "<!-- fields: written by go test ./internal/report -update -->\n", "<!-- end of fields -->\n"
	old, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	i, j := bytes.Index(old, []byte(begin)), bytes.Index(old, []byte(end))
	if i < 0 || j < i {
		t.Fatalf("%s has no place for the fields", page)
	}
	var b bytes.Buffer
	b.Write(old[:i+len(begin)])
	for n, typ := range types {
		title := "`" + defName(typ) + "`"
		if n == 0 {
			title = first
		}
		fmt.Fprintf(&b, "\n### %s\n\n%s\n\n| field | type | meaning |\n| --- | --- | --- |\n", title, objectText(typ))
		for i := range typ.NumField() {
			if typ.Field(i).Anonymous {
				name := defName(typ.Field(i).Type)
				fmt.Fprintf(&b, "| *all fields of* [`%s`](#%s) | | |\n", name, name)
			}
		}
		for _, f := range fieldsOf(typ, false) {
			d := describe(typ, f.name)
			s := d.text
			if len(d.enum) > 0 {
				var e []string
				for _, v := range d.enum {
					if v == "" {
						e = append(e, "empty")
						continue
					}
					e = append(e, fmt.Sprintf("`%v`", v))
				}
				s += " One of: " + strings.Join(e, ", ") + "."
			}
			if !f.required {
				s += " Left out where empty."
			}
			fmt.Fprintf(&b, "| `%s` | %s | %s |\n", f.name, typeWords(f.typ), strings.ReplaceAll(s, "|", `\|`))
		}
	}
	b.WriteString("\n")
	b.Write(old[j:])
	compare(t, page, b.Bytes())
}

func typeWords(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Pointer:
		return typeWords(t.Elem()) + " or null"
	case reflect.Slice:
		return "list of " + typeWords(t.Elem())
	case reflect.Map:
		if t.Elem().Kind() == reflect.Interface {
			return "object"
		}
		return "object of " + typeWords(t.Elem())
	case reflect.Struct:
		return fmt.Sprintf("[`%s`](#%s)", defName(t), defName(t))
	case reflect.Interface:
		return "any"
	case reflect.Int, reflect.Int64, reflect.Uint64:
		return "integer"
	case reflect.Float64:
		if t == reflect.TypeFor[incident.Number]() {
			return "number or `NaN`, `Infinity`, `-Infinity`"
		}
		return "number"
	case reflect.Bool:
		return "boolean"
	}
	return t.Kind().String()
}

func compileSchema(t *testing.T) *jsonschema.Schema { return compileSchemaOf(t, schemaFile) }

func compileSchemaOf(t *testing.T, file string) *jsonschema.Schema {
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	if err := c.AddResource("result.schema.json", doc); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile("result.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestSamplesFitTheSchema(t *testing.T) {
	schema := compileSchema(t)
	for _, s := range samples {
		stored, err := os.ReadFile(filepath.Join("testdata", s.name+".json"))
		if err != nil {
			t.Fatal(err)
		}
		for from, b := range map[string][]byte{"stored": stored, "rendered": []byte(render(t, "json", load(t, s.name), Options{}))} {
			v, err := jsonschema.UnmarshalJSON(bytes.NewReader(b))
			if err != nil {
				t.Fatal(err)
			}
			if err := schema.Validate(v); err != nil {
				t.Errorf("%s, %s: %v", s.name, from, err)
			}
		}
	}
}

// TestSchemaRefuses breaks a good incident in ways the schema must notice, and
// in one it must allow.
func TestSchemaRefuses(t *testing.T) {
	schema := compileSchema(t)
	for _, c := range []struct {
		name string
		do   func(map[string]any)
		ok   bool
	}{
		{"unchanged", func(m map[string]any) {}, true},
		{"a field of a later version", func(m map[string]any) { m["new"] = 1 }, true},
		{"another schema", func(m map[string]any) { m["schema"] = "inquest.memory/v1" }, false},
		{"no id", func(m map[string]any) { delete(m, "id") }, false},
		{"a null list", func(m map[string]any) { m["collateral"] = nil }, false},
		{"an unknown outcome", func(m map[string]any) { m["outcome"] = "exploded" }, false},
		{"a span without artifact", func(m map[string]any) {
			delete(m["first_fault"].(map[string]any)["span"].(map[string]any), "artifact")
		}, false},
		{"no first fault", func(m map[string]any) { m["first_fault"] = nil }, true},
	} {
		b, err := os.ReadFile(filepath.Join("testdata", "oom.json"))
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

// TestNoListIsNull looks for nulls where a list or an object of names belongs.
func TestNoListIsNull(t *testing.T) {
	for _, s := range samples {
		walkNil(t, s.name, reflect.ValueOf(load(t, s.name)))
	}
}

func walkNil(t *testing.T, at string, v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			walkNil(t, at, v.Elem())
		}
	case reflect.Struct:
		for i := range v.NumField() {
			f := v.Type().Field(i)
			if strings.Contains(f.Tag.Get("json"), "omitempty") && v.Field(i).IsZero() {
				continue
			}
			walkNil(t, at+"."+f.Name, v.Field(i))
		}
	case reflect.Slice:
		if v.IsNil() {
			t.Errorf("%s is null", at)
		}
		for i := range v.Len() {
			walkNil(t, fmt.Sprintf("%s[%d]", at, i), v.Index(i))
		}
	case reflect.Map:
		if v.IsNil() {
			t.Errorf("%s is null", at)
		}
		keys := v.MapKeys()
		sort.Slice(keys, func(i, j int) bool { return keys[i].String() < keys[j].String() })
		for _, k := range keys {
			walkNil(t, at+"."+k.String(), v.MapIndex(k))
		}
	}
}
