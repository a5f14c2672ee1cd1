package api

import (
	"encoding/json"
	"fmt"
	"net/http"
	"path"
	"reflect"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/inquest-dev/inquest/docs"
	"github.com/inquest-dev/inquest/internal/catalog"
	"github.com/inquest-dev/inquest/internal/report"
)

const about = `What a failed GPU training run left behind, diagnosed: hand files over as a case, and ask what
failed first, why, and which one change to make.

**Cases.** A case is what is diagnosed together. It goes receiving → waiting → reading → done, failed
or cancelled. Open one (` + "`POST /v1/cases`" + `), put its files (` + "`PUT /v1/cases/{id}/files/{name}`" + `), let it be
diagnosed (` + "`POST /v1/cases/{id}/diagnose`" + `), follow it (` + "`GET /v1/cases/{id}/events`" + `) and take its results.
` + "`POST /v1/diagnose`" + ` does all of it in one request.

**Results** are the published schemas of inquest, byte for byte as the command line writes them. Fields
may be added, never renamed or removed: ignore those that you do not know. Text out of logs is data of
whoever wrote the log; control characters are taken out and secrets are masked, and nothing more is
promised of it.

**Limits** are those of ` + "`GET /v1/limits`" + `. An upload may take as long as it needs while bytes come; one
that brings none for idle_seconds is ended. JSON in a request is at most json_bytes long.

**Errors** are problem+json (RFC 9457); its detail says what was asked and what to do.

**Token.** A server that listens beyond the loopback interface wants its token with every request:
` + "`Authorization: Bearer TOKEN`" + `. It answers 401 without it, 421 to a Host
and 403 to an Origin that is not its own.`

// config is huma's, without what would change a result: no links in bodies, no pages that fetch
// scripts from elsewhere, and a query parameter that is not known is refused.
func config(version string) huma.Config {
	c := huma.DefaultConfig("inquest", version)
	c.CreateHooks = nil
	c.OpenAPIPath, c.DocsPath, c.SchemasPath = "", "", ""
	c.RejectUnknownQueryParameters = true
	c.AllowAdditionalPropertiesByDefault = true
	asWritten := huma.Format{Marshal: writeJSON, Unmarshal: json.Unmarshal}
	c.Formats = map[string]huma.Format{"application/json": asWritten, "json": asWritten}
	c.Components.Schemas = huma.NewMapRegistry(componentPrefix, componentName)
	c.Info.Description = about
	c.Info.License = &huma.License{Name: "Apache-2.0", Identifier: "Apache-2.0"}
	c.Components.SecuritySchemes = map[string]*huma.SecurityScheme{
		"token": {Type: "http", Scheme: "bearer", Description: "The token that inquest serve prints at start where it listens beyond the loopback interface."},
	}
	c.Security = []map[string][]string{{}, {"token": {}}}
	c.Tags = []*huma.Tag{
		{Name: "cases", Description: "What is handed over, and how far it is."},
		{Name: "results", Description: "What came of a case."},
		{Name: "incidents", Description: "What is kept of failed runs, in the store of the machine."},
		{Name: "knowledge", Description: "The encyclopedia of failures."},
		{Name: "about", Description: "The server."},
	}
	return c
}

// componentName is huma's, with the parts of an entry below Entry: published results have parts
// of the same names.
func componentName(t reflect.Type, hint string) string {
	name := huma.DefaultSchemaNamer(t, hint)
	if t.Name() != "" && t != reflect.TypeFor[catalog.Entry]() && t.PkgPath() == reflect.TypeFor[catalog.Entry]().PkgPath() {
		return "Entry." + name
	}
	return name
}

// published lists the schemas of docs that operations answer with.
var published = []string{"incident", "timeline", "lines", "memory", "tracker", "case", "kept", "incidents", "comparison"}

// publish makes components of the published schemas: NAME.schema.json is the component Name, a
// definition x of it Name.x.
func (s *server) publish() error {
	all := s.api.OpenAPI().Components.Schemas.Map()
	for _, name := range published {
		b, err := docs.Schemas.ReadFile(name + ".schema.json")
		if err != nil {
			return fmt.Errorf("read published schema: %w", err)
		}
		var root map[string]any
		if err := json.Unmarshal(b, &root); err != nil {
			return fmt.Errorf("read published schema %s: %w", name, err)
		}
		component := strings.ToUpper(name[:1]) + name[1:]
		defs, _ := root["$defs"].(map[string]any)
		for _, k := range []string{"$defs", "$id", "$schema"} {
			delete(root, k)
		}
		repoint(root, component)
		all[component] = &huma.Schema{Extensions: root}
		for def, v := range defs {
			repoint(v, component)
			m, _ := v.(map[string]any)
			all[component+"."+def] = &huma.Schema{Extensions: m}
		}
	}
	return nil
}

// repoint makes references to definitions of a published schema references to components.
func repoint(v any, component string) {
	switch v := v.(type) {
	case map[string]any:
		for k, x := range v {
			if ref, ok := x.(string); ok && k == "$ref" {
				v[k] = componentPrefix + component + "." + path.Base(ref)
				continue
			}
			repoint(x, component)
		}
	case []any:
		for _, x := range v {
			repoint(x, component)
		}
	}
}

const componentPrefix = "#/components/schemas/"

// ref is the schema of a published result, or of a definition in it.
func ref(component string) *huma.Schema { return &huma.Schema{Ref: componentPrefix + component} }

// answers is a response in JSON of that schema.
func answers(says string, schema *huma.Schema) *huma.Response {
	return &huma.Response{Description: says, Content: map[string]*huma.MediaType{"application/json": {Schema: schema}}}
}

// in adds other forms of a result to a response.
func in(r *huma.Response, formats []string) *huma.Response {
	for _, f := range formats {
		if t := report.MediaType(f); r.Content[bare(t)] == nil {
			r.Content[bare(t)] = &huma.MediaType{Schema: &huma.Schema{Type: huma.TypeString}}
		}
	}
	if m := r.Content["application/sarif+json"]; m != nil {
		m.Schema = &huma.Schema{Type: huma.TypeObject, AdditionalProperties: true, Description: "SARIF 2.1.0."}
	}
	return r
}

// located adds the header Location to a response.
func located(r *huma.Response, says string) *huma.Response {
	r.Headers = map[string]*huma.Param{"Location": {Description: says, Schema: &huma.Schema{Type: huma.TypeString}}}
	return r
}

// responses are those of an operation that answers with one status.
func responses(status int, r *huma.Response) map[string]*huma.Response {
	return map[string]*huma.Response{fmt.Sprint(status): r}
}

// takes documents a body that the operation reads itself, which huma is not to read before. A
// request without one hands over an empty file.
func (s *server) takes(method, at, says string, content map[string]*huma.MediaType) {
	s.operation(method, at).RequestBody = &huma.RequestBody{Description: says, Content: content}
}

func (s *server) operation(method, at string) *huma.Operation {
	p := s.api.OpenAPI().Paths[at]
	switch method {
	case http.MethodPut:
		return p.Put
	case http.MethodPost:
		return p.Post
	}
	return p.Get
}

var binary = &huma.Schema{Type: huma.TypeString, Format: "binary"}

// finish makes the document complete once all operations are in it: a wildcard of the router is a
// parameter like others, and what the guard answers can be the answer to any.
func (s *server) finish() {
	doc := s.api.OpenAPI()
	for at, item := range doc.Paths {
		if plain := strings.ReplaceAll(at, "...}", "}"); plain != at {
			delete(doc.Paths, at)
			doc.Paths[plain] = item
		}
		for _, op := range []*huma.Operation{item.Get, item.Put, item.Post, item.Delete} {
			if op == nil {
				continue
			}
			op.Path = strings.ReplaceAll(op.Path, "...}", "}")
			problem := &huma.MediaType{Schema: ref("ErrorModel")}
			for code, says := range map[string]string{
				"401": "The token is missing or wrong.", "403": "The request comes from another site.",
				"414": "The address is too long.", "421": "The Host is not one of the server's.",
			} {
				op.Responses[code] = &huma.Response{Description: says, Content: map[string]*huma.MediaType{"application/problem+json": problem}}
			}
			op.Responses["431"] = &huma.Response{Description: "The headers are too large.", Content: map[string]*huma.MediaType{"text/plain": {Schema: &huma.Schema{Type: huma.TypeString}}}}
		}
	}
}

// serveDocument answers with the document, which no request changes.
func (s *server) serveDocument(mux *http.ServeMux) {
	asJSON, asYAML := s.document()
	for at, d := range map[string]struct {
		kind string
		body []byte
	}{"/openapi.json": {"application/openapi+json", asJSON}, "/openapi.yaml": {"application/openapi+yaml", asYAML}} {
		mux.HandleFunc("GET "+at, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", d.kind)
			w.Header().Set("Content-Length", fmt.Sprint(len(d.body)))
			w.Header().Set("X-Content-Type-Options", "nosniff")
			newCall(w, r).write(s, d.body)
		})
	}
}

// document is the OpenAPI document. That it can be written does not depend on a request: where it
// cannot, the program is broken.
func (s *server) document() (asJSON, asYAML []byte) {
	asJSON, err := json.MarshalIndent(s.api.OpenAPI(), "", " ")
	if err != nil {
		panic("the document of the API: " + err.Error())
	}
	if asYAML, err = s.api.OpenAPI().YAML(); err != nil {
		panic("the document of the API: " + err.Error())
	}
	return append(asJSON, '\n'), asYAML
}
