package api

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/inquest-dev/inquest/internal/desk"
	"github.com/inquest-dev/inquest/internal/engine"
	"github.com/inquest-dev/inquest/internal/incident"
	"github.com/inquest-dev/inquest/internal/report"
)

// TestCaseStates goes through the states of a case, and asks in each for what it does not have.
func TestCaseStates(t *testing.T) {
	s := newSite(t, desk.Limits{}, nil)
	k := s.begin()
	if k.State != incident.CaseReceiving || k.Name != "a case" || k.Schema != incident.CaseSchema {
		t.Errorf("%+v", k)
	}
	at := "/v1/cases/" + k.ID
	s.want(s.do("POST", at+"/diagnose", ""), 409, nil) // it has no file
	for _, of := range []string{"incident", "timeline", "lines?artifact=a", "memory", "tracker"} {
		s.want(s.do("GET", at+"/"+of, ""), 409, nil)
		s.want(s.do("GET", "/v1/cases/none/"+of, ""), 404, nil)
	}
	s.want(s.do("POST", at+"/cancel", ""), 200, &k)
	if k.State != incident.CaseCancelled {
		t.Errorf("cancelled: %+v", k)
	}
	s.want(s.do("POST", at+"/cancel", ""), 409, nil)
	s.want(s.do("GET", at+"/incident", ""), 409, nil)

	done := s.diagnosed("rank_0.log", oom)
	var l caseList
	s.want(s.do("GET", "/v1/cases", ""), 200, &l)
	if len(l.Cases) != 2 || l.Cases[0].ID != done.ID {
		t.Errorf("the list: %+v", l)
	}
	s.want(s.do("GET", "/v1/cases/"+done.ID+"/memory", ""), 404, nil)
	s.want(s.do("GET", "/v1/cases/"+done.ID+"/tracker", ""), 404, nil)
	s.want(s.do("POST", "/v1/cases/"+done.ID+"/diagnose", ""), 409, nil)
	s.want(s.do("DELETE", "/v1/cases/"+done.ID, ""), 204, nil)
	s.want(s.do("GET", "/v1/cases/"+done.ID, ""), 404, nil)
	s.want(s.do("DELETE", "/v1/cases/"+done.ID, ""), 404, nil)
	s.want(s.do("POST", "/v1/cases", `{"name":"x","color":"red"}`, "Content-Type", "application/json"), 422, nil)
	s.want(s.do("POST", "/v1/cases", `{"name":"`+strings.Repeat("x", small)+`"}`, "Content-Type", "application/json"), 413, nil)
	s.want(s.do("POST", "/v1/cases", `{`, "Content-Type", "application/json"), 400, nil)
	s.want(s.do("POST", "/v1/cases", `name: x`, "Content-Type", "application/yaml"), 415, nil)
}

// TestBytes holds the answer to what the command line writes, in every format.
func TestBytes(t *testing.T) {
	s := newSite(t, desk.Limits{}, nil)
	k := s.diagnosed("rank_0.log", oom)
	r, err := s.desk.Result(t.Context(), k.ID)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range report.Formats() {
		var want bytes.Buffer
		if err := report.Write(&want, f, r.Incident, report.Options{}); err != nil {
			t.Fatal(err)
		}
		got := s.want(s.do("GET", "/v1/cases/"+k.ID+"/incident?format="+f, ""), 200, nil)
		if got.body != want.String() {
			t.Errorf("%s differs", f)
		}
		if kind := got.Header.Get("Content-Type"); kind != report.MediaType(f) {
			t.Errorf("%s is of type %s", f, kind)
		}
		if policy := got.Header.Get("Content-Security-Policy"); f == "html" && !strings.HasPrefix(policy, "sandbox") {
			t.Errorf("a page without a sandbox: %q", policy)
		}
	}
	for accept, kind := range map[string]string{
		"":                                      "application/json",
		"*/*":                                   "application/json",
		"text/plain":                            "text/plain; charset=utf-8",
		"text/markdown, application/json;q=0.5": "text/markdown; charset=utf-8",
		"text/html":                             "text/html; charset=utf-8",
		"image/png":                             "application/json",
	} {
		if got := s.want(s.do("GET", "/v1/cases/"+k.ID+"/incident", "", "Accept", accept), 200, nil).Header.Get("Content-Type"); got != kind {
			t.Errorf("Accept %q: %s, want %s", accept, got, kind)
		}
	}
	s.want(s.do("GET", "/v1/cases/"+k.ID+"/incident?format=pdf", ""), 422, nil)
	s.want(s.do("GET", "/v1/cases/"+k.ID+"/incident?format=", ""), 422, nil)
	s.want(s.do("GET", "/v1/cases/"+k.ID+"/incident?formt=json", ""), 422, nil)
}

// TestTimeline pages through a timeline, with filters and without.
func TestTimeline(t *testing.T) {
	s := newSite(t, desk.Limits{}, nil)
	var files []string
	for rank := range 4 {
		files = append(files, fmt.Sprintf("rank_%d.log", rank), strings.ReplaceAll(oom, "[rank0]", fmt.Sprintf("[rank%d]", rank)))
	}
	k := s.diagnosed(files...)
	at := "/v1/cases/" + k.ID + "/timeline"
	type page struct {
		incident.Timeline
		Matched int    `json:"matched"`
		Next    string `json:"next"`
	}
	var whole page
	s.want(s.do("GET", at, ""), 200, &whole)
	if whole.Schema != incident.TimelineSchema || len(whole.Events) < 4 || whole.Matched != len(whole.Events) || whole.Next != "" {
		t.Fatalf("%d events, %d matched, next %q", len(whole.Events), whole.Matched, whole.Next)
	}
	var paged []incident.TimelineEvent
	for next := at + "?limit=1"; next != ""; {
		var p page
		r := s.want(s.do("GET", next, ""), 200, &p)
		paged = append(paged, p.Events...)
		if len(p.Events) != 1 || p.Matched != whole.Matched {
			t.Fatalf("%s: %d events, %d matched", next, len(p.Events), p.Matched)
		}
		if next, _, _ = strings.Cut(strings.TrimPrefix(r.Header.Get("Link"), "<"), ">"); (next == "") != (p.Next == "") {
			t.Fatalf("next %q, link %q", p.Next, next)
		}
	}
	if indented(t, paged) != indented(t, whole.Events) {
		t.Error("the pages together differ from the whole")
	}
	for query, ok := range map[string]func(incident.TimelineEvent) bool{
		"rank=1,3":                     func(e incident.TimelineEvent) bool { return e.Rank != nil && (*e.Rank == 1 || *e.Rank == 3) },
		"role=first,rival":             func(e incident.TimelineEvent) bool { return e.Role == "first" || e.Role == "rival" },
		"kind=" + whole.Events[0].Kind: func(e incident.TimelineEvent) bool { return e.Kind == whole.Events[0].Kind },
		"class=memory&rank=0":          func(e incident.TimelineEvent) bool { return e.Class == "memory" && e.Rank != nil && *e.Rank == 0 },
		"attempt=none":                 func(incident.TimelineEvent) bool { return false },
	} {
		want := 0
		for _, e := range whole.Events {
			if ok(e) {
				want++
			}
		}
		var p page
		s.want(s.do("GET", at+"?"+query, ""), 200, &p)
		if len(p.Events) != want {
			t.Errorf("%s: %d events, want %d", query, len(p.Events), want)
		}
		for _, e := range p.Events {
			if !ok(e) {
				t.Errorf("%s: %+v", query, e)
			}
		}
	}
	for _, query := range []string{"cursor=x", "limit=0", "limit=5001", "rank=x", "role=hero"} {
		s.want(s.do("GET", at+"?"+query, ""), 422, nil)
	}
}

func TestLines(t *testing.T) {
	s := newSite(t, desk.Limits{}, nil)
	k := s.diagnosed("logs/rank_0.log", oom)
	var l incident.Lines
	s.want(s.do("GET", "/v1/cases/"+k.ID+"/lines?artifact=logs%2Frank_0.log&line=7&before=2&after=5", ""), 200, &l)
	if l.Schema != incident.LinesSchema || l.First != 5 || len(l.Lines) != 3 || !l.Lines[2].Marked || !strings.Contains(l.Lines[2].Text, "CUDA out of memory") || !l.Before || l.After {
		t.Errorf("%+v", l)
	}
	s.want(s.do("GET", "/v1/cases/"+k.ID+"/lines?artifact=none.log", ""), 404, nil)
	s.want(s.do("GET", "/v1/cases/"+k.ID+"/lines?artifact=..%2F..%2Fetc%2Fpasswd", ""), 404, nil)
	s.want(s.do("GET", "/v1/cases/"+k.ID+"/lines", ""), 422, nil)
	s.want(s.do("GET", "/v1/cases/"+k.ID+"/lines?artifact=a&before=501", ""), 422, nil)
}

func TestUnknown(t *testing.T) {
	s := newSite(t, desk.Limits{}, nil)
	s.want(s.do("GET", "/v1/nothing", ""), 404, nil)
	r := s.want(s.do("PATCH", "/v1/cases", ""), 405, nil)
	if allow := r.Header.Get("Allow"); allow != "GET, HEAD, POST" || !strings.Contains(r.body, allow) {
		t.Errorf("Allow %q: %s", allow, r.body)
	}
	if r := s.do("HEAD", "/v1/health", ""); r.StatusCode != http.StatusOK || r.body != "" {
		t.Errorf("HEAD: %s %q", r.Status, r.body)
	}
}

// TestHostile hands over a log that is no text for a terminal: every answer is.
func TestHostile(t *testing.T) {
	s := newSite(t, desk.Limits{}, nil)
	bad := strings.ReplaceAll(oom, "/work/train.py", "/work/\x1b[31m\u202e<script>alert(1)</script>\u009b.py")
	k := s.diagnosed("rank\u200b_0.log", bad)
	r, err := s.desk.Result(t.Context(), k.ID)
	if err != nil {
		t.Fatal(err)
	}
	name := url.QueryEscape(r.Incident.Artifacts[0].Path)
	for _, of := range []string{"", "/incident", "/incident?format=text", "/incident?format=html", "/timeline", "/lines?artifact=" + name + "&line=5"} {
		r := s.do("GET", "/v1/cases/"+k.ID+of, "")
		s.want(r, 200, nil)
		if strings.ContainsAny(r.body, "\x1b\u202e\u009b\u200b") {
			t.Errorf("%s has characters that a terminal acts on", of)
		}
		if strings.Contains(of, "html") && strings.Contains(r.body, "<script>alert") {
			t.Errorf("%s has a script of the log's", of)
		}
	}
}

// TestDirect compares the incident of a case with that of the same file read where it lies.
func TestDirect(t *testing.T) {
	s := newSite(t, desk.Limits{}, nil)
	got := s.want(s.do("POST", "/v1/diagnose?name=rank_0.log", oom), 200, nil)
	o := engineOptions(t)
	o.Paths, o.Stdin = []string{"-"}, strings.NewReader(oom)
	inc, err := engine.Diagnose(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	want := strings.ReplaceAll(indented(t, inc), `"artifact": "-"`, `"artifact": "rank_0.log"`)
	var a, b map[string]any
	if json.Unmarshal([]byte(got.body), &a) != nil || json.Unmarshal([]byte(want), &b) != nil {
		t.Fatal("no JSON")
	}
	for _, field := range []string{"outcome", "fingerprint", "hypotheses", "remedy", "facts"} {
		if fmt.Sprint(a[field]) != fmt.Sprint(b[field]) {
			t.Errorf("%s differs:\n%v\n%v", field, a[field], b[field])
		}
	}
}
