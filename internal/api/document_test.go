package api

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/inquest-dev/inquest/internal/desk"
	"github.com/inquest-dev/inquest/internal/incident"
)

var update = flag.Bool("update", false, "write docs/openapi.json")

const documentFile = "../../docs/openapi.json"

// TestDocument compares the published document with the one that is served, which has the
// version of the program in place of "source".
func TestDocument(t *testing.T) {
	s := newSite(t, desk.Limits{}, func(o *Options) { o.Version = "source" })
	r := s.want(s.do("GET", "/openapi.json", ""), 200, nil)
	if got := r.Header.Get("Content-Type"); got != "application/openapi+json" {
		t.Errorf("of type %s", got)
	}
	if *update {
		if err := os.WriteFile(documentFile, []byte(r.body), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(documentFile)
	if err != nil {
		t.Fatal(err)
	}
	if string(want) != r.body {
		t.Error("docs/openapi.json is not the document that is served; go test ./internal/api -run TestDocument -update writes it")
	}
	if y := s.want(s.do("GET", "/openapi.yaml", ""), 200, nil); !strings.Contains(y.body, "openapi: 3.1.0") {
		t.Errorf("%.200s", y.body)
	}
}

// A described operation is one of the document, with the parts that the tests look at.
type described struct {
	ID         string `json:"operationId"`
	Summary    string `json:"summary"`
	Parameters []struct {
		Name, In, Description string
		Schema                json.RawMessage
	} `json:"parameters"`
	Responses map[string]struct {
		Content map[string]struct {
			Schema json.RawMessage `json:"schema"`
		} `json:"content"`
	} `json:"responses"`
}

type document struct {
	Paths      map[string]map[string]described `json:"paths"`
	Components struct {
		Schemas map[string]json.RawMessage `json:"schemas"`
	} `json:"components"`
	raw []byte
}

func readDocument(t testing.TB) *document {
	t.Helper()
	b, err := os.ReadFile(documentFile)
	if err != nil {
		t.Fatal(err)
	}
	d := &document{raw: b}
	if err := json.Unmarshal(b, d); err != nil {
		t.Fatal(err)
	}
	return d
}

// TestDocumentIsWhole looks for references that lead nowhere and for what is not described.
func TestDocumentIsWhole(t *testing.T) {
	d := readDocument(t)
	var walk func(at string, v any)
	walk = func(at string, v any) {
		switch v := v.(type) {
		case map[string]any:
			for k, x := range v {
				if to, ok := x.(string); ok && k == "$ref" {
					if d.Components.Schemas[strings.TrimPrefix(to, componentPrefix)] == nil {
						t.Errorf("%s: %s leads nowhere", at, to)
					}
				}
				walk(at+"/"+k, x)
			}
		case []any:
			for _, x := range v {
				walk(at, x)
			}
		}
	}
	var all any
	if err := json.Unmarshal(d.raw, &all); err != nil {
		t.Fatal(err)
	}
	walk("", all)
	for path, operations := range d.Paths {
		for method, op := range operations {
			if op.ID == "" || op.Summary == "" {
				t.Errorf("%s %s has no name or no summary", method, path)
			}
			for _, p := range op.Parameters {
				if p.Description == "" && !strings.Contains(string(p.Schema), "description") {
					t.Errorf("%s %s: %s %s is not described", method, path, p.In, p.Name)
				}
			}
		}
	}
}

// conforms holds a response to what the document says of it.
func (d *document) conforms(t *testing.T, path string, r reply) {
	t.Helper()
	method := strings.ToLower(r.Request.Method)
	op, ok := d.Paths[path][method]
	if !ok {
		t.Fatalf("%s %s is not in the document", method, path)
	}
	code := fmt.Sprint(r.StatusCode)
	of, ok := op.Responses[code]
	kind := bare(r.Header.Get("Content-Type"))
	_, typed := of.Content[kind]
	switch {
	case !ok:
		t.Errorf("%s %s: status %s is not in the document", method, path, r.Status)
		return
	case r.StatusCode == http.StatusNoContent:
		return
	case !typed:
		t.Errorf("%s %s: type %q is not in the document", method, path, kind)
		return
	case !strings.HasSuffix(kind, "json"):
		return
	}
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	whole, err := jsonschema.UnmarshalJSON(bytes.NewReader(d.raw))
	if err != nil {
		t.Fatal(err)
	}
	if err := c.AddResource("openapi.json", whole); err != nil {
		t.Fatal(err)
	}
	at := strings.NewReplacer("~", "~0", "/", "~1", "{", "%7B", "}", "%7D")
	schema, err := c.Compile("openapi.json#/paths/" + at.Replace(path) + "/" + method + "/responses/" + code + "/content/" + at.Replace(kind) + "/schema")
	if err != nil {
		t.Fatal(err)
	}
	v, err := jsonschema.UnmarshalJSON(strings.NewReader(r.body))
	if err != nil {
		t.Fatalf("%s %s: %v", method, path, err)
	}
	if err := schema.Validate(v); err != nil {
		t.Errorf("%s %s: %v\n%.300s", method, path, err, r.body)
	}
}

// TestConforms asks every operation for what it has and for what it has not.
func TestConforms(t *testing.T) {
	d := readDocument(t)
	s := newSite(t, desk.Limits{}, nil)
	snapshot, err := os.ReadFile("../../examples/fragmentation/snapshot.pickle")
	if err != nil {
		t.Fatal(err)
	}
	k := s.diagnosed("rank_0.log", oom, "snapshot.pickle", string(snapshot), "run/metrics.csv", "step,loss\n1,2.5\n2,2.4\n3,2.3\n")
	s.keep()
	id := k.ID
	form, formKind := form(t, "rank_0.log", oom)
	open := s.begin()
	seen := map[string]bool{}
	for _, c := range []struct {
		method, path, query, body string
		values                    string // of the path's parameters, in order
		kind                      string
		status                    int
	}{
		{"POST", "/v1/cases", "", `{"name":"x"}`, "", "application/json", 201},
		{"POST", "/v1/cases", "", `{"name":5}`, "", "application/json", 422},
		{"GET", "/v1/cases", "", "", "", "", 200},
		{"GET", "/v1/cases/{id}", "", "", id, "", 200},
		{"GET", "/v1/cases/{id}", "", "", "none", "", 404},
		{"PUT", "/v1/cases/{id}/files/{name}", "", oom, open.ID + " a.log", "", 201},
		{"PUT", "/v1/cases/{id}/files/{name}", "", oom, open.ID + " a.log", "", 409},
		{"POST", "/v1/cases/{id}/diagnose", "", `{"all":true}`, open.ID, "application/json", 202},
		{"POST", "/v1/cases/{id}/diagnose", "", "", open.ID, "", 409},
		{"POST", "/v1/diagnose", "", oom, "", "", 200},
		{"POST", "/v1/diagnose", "?format=text&discard=true", form, "", formKind, 200},
		{"POST", "/v1/cases/{id}/cancel", "", "", s.begin().ID, "", 200},
		{"POST", "/v1/cases/{id}/cancel", "", "", id, "", 409},
		{"DELETE", "/v1/cases/{id}", "", "", s.begin().ID, "", 204},
		{"GET", "/v1/cases/{id}/events", "", "", id, "", 200},
		{"GET", "/v1/cases/{id}/events", "", "", "none", "", 404},
		{"GET", "/v1/cases/{id}/incident", "", "", id, "", 200},
		{"GET", "/v1/cases/{id}/incident", "?format=html", "", id, "", 200},
		{"GET", "/v1/cases/{id}/incident", "?format=sarif", "", id, "", 200},
		{"GET", "/v1/cases/{id}/timeline", "", "", id, "", 200},
		{"GET", "/v1/cases/{id}/lines", "?artifact=rank_0.log&line=5", "", id, "", 200},
		{"GET", "/v1/cases/{id}/lines", "?artifact=none", "", id, "", 404},
		{"GET", "/v1/cases/{id}/memory", "", "", id, "", 200},
		{"GET", "/v1/cases/{id}/memory", "?format=markdown", "", id, "", 200},
		{"GET", "/v1/cases/{id}/tracker", "", "", id, "", 200},
		{"GET", "/v1/incidents", "", "", "", "", 200},
		{"GET", "/v1/incidents", "?status=confirmed&since=2026-01-01T00:00:00Z", "", "", "", 200},
		{"GET", "/v1/incidents", "?since=yesterday", "", "", "", 422},
		{"GET", "/v1/incidents/{id}", "", "", "last", "", 200},
		{"GET", "/v1/incidents/{id}", "", "", "none", "", 404},
		{"GET", "/v1/incidents/{id}/compare", "", "", "last", "", 200},
		{"GET", "/v1/incidents/{id}/compare", "?with=none", "", "last", "", 404},
		{"POST", "/v1/incidents/{id}/notes", "", `{"text":"password=hunter2hunter2 was in it"}`, "last", "application/json", 201},
		{"POST", "/v1/incidents/{id}/notes", "", `{"text":" "}`, "last", "application/json", 422},
		{"POST", "/v1/incidents/{id}/notes", "", `{"text":"x"}`, "none", "application/json", 404},
		{"GET", "/v1/entries", "", "", "", "", 200},
		{"GET", "/v1/entries/{id}", "", "", "sequence-spike", "", 200},
		{"GET", "/v1/entries/{id}", "?format=html", "", "sequence-spike", "", 200},
		{"GET", "/v1/entries/{id}", "", "", "sequence-spik", "", 404},
		{"GET", "/v1/search", "?q=loss+nan+after+oom", "", "", "", 200},
		{"GET", "/v1/search", "?q=xid+79", "", "", "", 200},
		{"GET", "/v1/search", "", "", "", "", 422},
		{"POST", "/v1/search", "", `{"q":"CUDA out of memory"}`, "", "application/json", 200},
		{"GET", "/v1/limits", "", "", "", "", 200},
		{"GET", "/v1/version", "", "", "", "", 200},
		{"GET", "/v1/health", "", "", "", "", 200},
	} {
		at := c.path
		for v := range strings.FieldsSeq(c.values) {
			i, j := strings.Index(at, "{"), strings.Index(at, "}")
			at = at[:i] + v + at[j+1:]
		}
		r := s.do(c.method, at+c.query, c.body, "Content-Type", c.kind)
		s.want(r, c.status, nil)
		d.conforms(t, c.path, r)
		seen[strings.ToLower(c.method)+" "+c.path] = true
		if strings.Contains(r.body, "hunter2hunter2") && c.status == 201 {
			t.Error("a secret stands in a note")
		}
	}
	for path, operations := range d.Paths {
		for method := range operations {
			if !seen[method+" "+path] {
				t.Errorf("%s %s is not asked", method, path)
			}
		}
	}
}

// keep stores two trials that failed in the same way and are one incident.
func (s *site) keep() {
	s.t.Helper()
	for n := range 2 {
		begun := fmt.Sprintf("2026-01-0%dT00:00:00Z", n+1)
		w, err := s.store.Begin(incident.Trial{Schema: incident.TrialSchema, ID: fmt.Sprintf("t2026010%d-000000-0000000001", n+1), By: incident.ByRun,
			Command: []string{"python", "train.py", "--batch-size", fmt.Sprint(64 - 16*n)}, Dir: "/w", Scenario: "demo train.py", Begun: begun})
		if err != nil {
			s.t.Fatal(err)
		}
		for _, r := range []incident.Record{
			{At: begun, Kind: incident.RecordEnded, Ended: &incident.Ended{At: begun, Exit: incident.Exit{Status: 1}, LogBytes: 10}},
			{At: begun, Kind: incident.RecordVerdict, Verdict: &incident.TrialVerdict{Result: incident.OutOfMemory, Class: "device_memory", Kind: "device_out_of_memory",
				Cause: "batch-or-activation-too-large", Standing: incident.Supported, Fingerprint: "f1", Text: "Memory of the device ran out."}},
		} {
			if err := w.Put(r); err != nil {
				s.t.Fatal(err)
			}
		}
		if err := w.Close(); err != nil {
			s.t.Fatal(err)
		}
	}
}
