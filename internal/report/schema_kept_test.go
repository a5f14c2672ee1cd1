package report

import (
	"bytes"
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/inquest-dev/inquest/internal/incident"
)

const (
	keptSchemaFile      = "../../docs/kept.schema.json"
	incidentsSchemaFile = "../../docs/incidents.schema.json"
)

// elsewhere are objects that have schemas of their own.
var elsewhere = map[reflect.Type]string{
	reflect.TypeFor[incident.Incident](): "A diagnosis: inquest.incident/v1, docs/incident.schema.json.",
	reflect.TypeFor[incident.Trials]():   "What a search or a verification showed: " + incident.TrialsSchema + ".",
}

// commentsOf are the comments of the types and fields of package incident: Type and
// Type.json_name. Schemas of trials and of what is kept are described by them.
func commentsOf(t *testing.T) map[string]string {
	t.Helper()
	files, err := filepath.Glob("../incident/*.go")
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	put := func(key string, groups ...*ast.CommentGroup) {
		for _, g := range groups {
			if s := strings.Join(strings.Fields(g.Text()), " "); s != "" {
				out[key] = s
				return
			}
		}
	}
	for _, name := range files {
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range f.Decls {
			g, ok := d.(*ast.GenDecl)
			if !ok {
				continue
			}
			for _, s := range g.Specs {
				typ, ok := s.(*ast.TypeSpec)
				if !ok {
					continue
				}
				put(typ.Name.Name, typ.Doc, g.Doc)
				fields, ok := typ.Type.(*ast.StructType)
				if !ok {
					continue
				}
				for _, field := range fields.Fields.List {
					if field.Tag == nil {
						continue
					}
					tag := reflect.StructTag(strings.Trim(field.Tag.Value, "`")).Get("json")
					json, _, _ := strings.Cut(tag, ",")
					put(typ.Name.Name+"."+json, field.Doc, field.Comment)
				}
			}
		}
	}
	return out
}

// reachable are the objects that a value of a type holds, in the order in which they are met;
// those that are described elsewhere are not looked into.
func reachable(t reflect.Type, seen *[]reflect.Type) {
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Map:
		reachable(t.Elem(), seen)
	case reflect.Struct:
		for _, s := range *seen {
			if s == t {
				return
			}
		}
		*seen = append(*seen, t)
		if elsewhere[t] == "" || len(*seen) == 1 {
			for i := range t.NumField() {
				reachable(t.Field(i).Type, seen)
			}
		}
	}
}

// commentedSchema is the schema of a type, described by the comments of its source.
func commentedSchema(t *testing.T, typ reflect.Type, id, file string) []byte {
	t.Helper()
	var types []reflect.Type
	reachable(typ, &types)
	comments := commentsOf(t)
	defs := map[string]any{}
	var root map[string]any
	for i, typ := range types {
		if s := elsewhere[typ]; s != "" && i > 0 {
			defs[defName(typ)] = map[string]any{"type": "object", "description": s}
			continue
		}
		props, required := map[string]any{}, []string{}
		for _, f := range fieldsOf(typ, true) {
			s := typeSchema(f.typ)
			text := comments[typ.Name()+"."+f.name]
			if d := describe(typ, f.name); text == "" && d.text != "" {
				if text = d.text; len(d.enum) > 0 {
					s["enum"] = d.enum
				}
			}
			if text == "" {
				text = strings.ReplaceAll(f.name, "_", " ")
			}
			s["description"] = text
			props[f.name] = s
			if f.required {
				required = append(required, f.name)
			}
		}
		about := comments[typ.Name()]
		if about == "" {
			about = objectText(typ)
		}
		def := map[string]any{"type": "object", "description": about, "properties": props, "required": required}
		if root == nil {
			root = def
		} else {
			defs[defName(typ)] = def
		}
	}
	root["properties"].(map[string]any)["schema"].(map[string]any)["const"] = id
	root["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	root["$id"] = "https://github.com/inquest-dev/inquest/docs/" + filepath.Base(file)
	root["title"] = id
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

func TestKeptSchemasAreCurrent(t *testing.T) {
	compare(t, keptSchemaFile, commentedSchema(t, reflect.TypeFor[incident.Kept](), incident.KeptSchema, keptSchemaFile))
	compare(t, incidentsSchemaFile, commentedSchema(t, reflect.TypeFor[incident.Incidents](), incident.IncidentsSchema, incidentsSchemaFile))
}

func TestKeptSamplesFitTheSchemas(t *testing.T) {
	kept, list := compileSchemaOf(t, keptSchemaFile), compileSchemaOf(t, incidentsSchemaFile)
	check := func(name string, s *jsonschema.Schema, write func(*bytes.Buffer) error) {
		t.Helper()
		var b bytes.Buffer
		if err := write(&b); err != nil {
			t.Fatal(err)
		}
		v, err := jsonschema.UnmarshalJSON(&b)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Validate(v); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, k := range keptSamples() {
		check(name, kept, func(b *bytes.Buffer) error { return WriteKept(b, "json", k, Options{}) })
	}
	for name, l := range listSamples() {
		check(name, list, func(b *bytes.Buffer) error { return WriteIncidents(b, "json", l, Options{}) })
	}
}
