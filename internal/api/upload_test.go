package api

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"mime/multipart"
	"net"
	"net/http"
	"net/http/httptest"
	"net/textproto"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/inquest-dev/inquest/internal/desk"
	"github.com/inquest-dev/inquest/internal/incident"
)

func TestPutNames(t *testing.T) {
	s := newSite(t, desk.Limits{}, nil)
	k := s.begin()
	for _, c := range []struct {
		path   string
		status int
		name   string
	}{
		{"rank_0.log", 201, "rank_0.log"},
		{"logs/host-a/rank_1.log", 201, "logs/host-a/rank_1.log"},
		{"logs%2Fhost-b%2Frank_2.log", 201, "logs/host-b/rank_2.log"},
		{"a%20b%25.log", 201, "a b%.log"},
		{"rank_0.log", 409, ""},
		{"%2e%2e%2fetc%2fpasswd", 422, ""},
		{"%2Fetc%2Fpasswd", 422, ""},
		{"a%00b", 422, ""},
		{"a%2F%2Fb", 422, ""},
		{strings.Repeat("x", 5000), 422, ""},
	} {
		var f incident.CaseFile
		r := s.do("PUT", "/v1/cases/"+k.ID+"/files/"+c.path, "text\n")
		if c.status != 201 {
			s.want(r, c.status, nil)
			continue
		}
		if s.want(r, c.status, &f); f != (incident.CaseFile{Name: c.name, Bytes: 5, Whole: true}) {
			t.Errorf("%s: %+v", c.path, f)
		}
	}
	s.want(s.do("PUT", "/v1/cases/none/files/a", ""), 404, nil)
	s.want(s.do("POST", "/v1/cases/"+k.ID+"/diagnose", ""), 202, nil)
	s.want(s.do("PUT", "/v1/cases/"+k.ID+"/files/late.log", "text"), 409, nil)
}

func TestPutTooLarge(t *testing.T) {
	s := newSite(t, desk.Limits{CaseBytes: 1 << 20}, nil)
	k := s.begin()
	// What says its length is refused before it is read, what does not where it is too large.
	s.want(s.do("PUT", "/v1/cases/"+k.ID+"/files/said", strings.Repeat("x", 1<<20+1)), 413, nil)
	r, err := http.NewRequest("PUT", s.URL+"/v1/cases/"+k.ID+"/files/unsaid", io.MultiReader(strings.NewReader(strings.Repeat("x", 1<<20+1))))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := s.Client().Do(r)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != 413 {
		t.Errorf("without a length: %s", resp.Status)
	}
	s.want(s.do("PUT", "/v1/cases/"+k.ID+"/files/fits", strings.Repeat("x", 1<<20)), 201, nil)
}

func TestTooMany(t *testing.T) {
	s := newSite(t, desk.Limits{Open: 1, Files: 1}, nil)
	k := s.begin()
	if r := s.want(s.do("POST", "/v1/cases", "{}", "Content-Type", "application/json"), 429, nil); r.Header.Get("Retry-After") == "" {
		t.Error("429 does not say when to try again")
	}
	s.want(s.do("PUT", "/v1/cases/"+k.ID+"/files/a", "text"), 201, nil)
	s.want(s.do("PUT", "/v1/cases/"+k.ID+"/files/b", "text"), 429, nil)
}

// TestSlow sends an upload in parts, each of which comes just before a client has idled too long:
// all of it takes as long as it will.
func TestSlow(t *testing.T) {
	const idle = time.Minute
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	w := &deadlines{ResponseRecorder: httptest.NewRecorder()}
	c := newCall(w, httptest.NewRequest("PUT", "/", iotest.OneByteReader(strings.NewReader("slow"))))
	b := c.body(&server{Options: Options{Idle: idle, Now: func() time.Time { return now }}})
	for {
		n, err := b.Read(make([]byte, 10))
		if err == io.EOF {
			break
		}
		if err != nil || n != 1 {
			t.Fatalf("%d bytes, %v", n, err)
		}
		if want := now.Add(idle); !w.read.Equal(want) {
			t.Errorf("byte %d may come until %v; want %v", b.n, w.read, want)
		}
		now = now.Add(idle - time.Second)
	}
	if b.n != 4 || !w.read.IsZero() {
		t.Errorf("behind the end of the body: %d bytes, deadline %v", b.n, w.read)
	}
}

// A deadlines is a writer that keeps the deadline of the connection.
type deadlines struct {
	*httptest.ResponseRecorder
	read time.Time
}

func (d *deadlines) SetReadDeadline(at time.Time) error { d.read = at; return nil }

// TestStalled sends a part and then nothing: it is answered, and the file is marked.
func TestStalled(t *testing.T) {
	// All other bytes of the test must come within it too, on a loaded machine as well.
	s := newSite(t, desk.Limits{}, func(o *Options) { o.Idle = 3 * time.Second })
	k := s.begin()
	paths := []string{"PUT /v1/cases/" + k.ID + "/files/cut.log", "POST /v1/diagnose"}
	var open []net.Conn
	for _, path := range paths { // both stall at the same time
		c := s.dial()
		fmt.Fprintf(c, "%s HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\nsome", path)
		open = append(open, c)
	}
	for i, path := range paths {
		resp, err := http.ReadResponse(bufio.NewReader(open[i]), nil)
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		b, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		if resp.StatusCode != http.StatusRequestTimeout || !strings.Contains(string(b), "after 4 bytes") {
			t.Errorf("%s: %s: %s", path, resp.Status, b)
		}
		if strings.HasPrefix(path, "PUT") {
			s.want(s.do("GET", "/v1/cases/"+k.ID, ""), 200, &k)
			if len(k.Files) != 1 || k.Files[0] != (incident.CaseFile{Name: "cut.log", Bytes: 4}) || len(k.Limits) != 1 {
				t.Errorf("%+v", k)
			}
		}
	}
	if all := s.desk.Cases(); len(all) != 1 { // the one of the cut diagnosis is gone
		t.Errorf("%d cases are left", len(all))
	}
}

// TestCut ends the client's half of the connection in the middle: it is answered, the file is
// marked, and what came is diagnosed.
func TestCut(t *testing.T) {
	s := newSite(t, desk.Limits{}, nil)
	k := s.begin()
	c := s.dial()
	fmt.Fprintf(c, "PUT /v1/cases/%s/files/cut.log HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s", k.ID, len(oom)+1000, oom)
	if err := c.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		t.Fatal(err)
	}
	b, _ := io.ReadAll(resp.Body)
	resp.Body.Close()
	if resp.StatusCode != 400 || !strings.Contains(string(b), fmt.Sprintf("after %d bytes", len(oom))) {
		t.Errorf("%s: %s", resp.Status, b)
	}
	s.want(s.do("POST", "/v1/cases/"+k.ID+"/diagnose", ""), 202, nil)
	r, err := s.desk.Result(t.Context(), k.ID)
	if err != nil || r.Incident.FirstFault == nil {
		t.Errorf("of what came: %+v, %v", r, err)
	}
}

// form is a form with files, whose names may have folders.
func form(t *testing.T, files ...string) (body, kind string) {
	t.Helper()
	var b bytes.Buffer
	w := multipart.NewWriter(&b)
	for i := 0; i+1 < len(files); i += 2 {
		p, err := w.CreatePart(textproto.MIMEHeader{"Content-Disposition": {fmt.Sprintf(`form-data; name="file"; filename="%s"`, files[i])}})
		if err != nil {
			t.Fatal(err)
		}
		io.WriteString(p, files[i+1])
	}
	if err := w.WriteField("note", "a field is no file"); err != nil {
		t.Fatal(err)
	}
	w.Close()
	return b.String(), w.FormDataContentType()
}

func TestDiagnose(t *testing.T) {
	s := newSite(t, desk.Limits{}, nil)
	var inc incident.Incident
	r := s.want(s.do("POST", "/v1/diagnose?name=rank_0.log", oom), 200, &inc)
	if inc.Schema != incident.Schema || inc.FirstFault == nil || inc.Artifacts[0].Path != "rank_0.log" {
		t.Errorf("%.600s", r.body)
	}
	at := r.Header.Get("Location")
	if got := s.want(s.do("GET", at+"/incident", ""), 200, nil); got.body != r.body {
		t.Errorf("the incident of the case that stays differs:\n%.600s\n%.600s", got.body, r.body)
	}
	body, kind := form(t, "job/rank_0.log", oom, `job\rank_1.log`, "step 1 loss 2.0\n")
	r = s.want(s.do("POST", "/v1/diagnose?discard=true", body, "Content-Type", kind), 200, &inc)
	if len(inc.Artifacts) != 2 || inc.Artifacts[0].Path != "job/rank_0.log" || r.Header.Get("Location") != "" {
		t.Errorf("of a form: %+v", inc.Artifacts)
	}
	body, kind = form(t)
	s.want(s.do("POST", "/v1/diagnose", body, "Content-Type", kind), 422, nil)
	s.want(s.do("POST", "/v1/diagnose", "no form", "Content-Type", kind), 422, nil)
	s.want(s.do("POST", "/v1/diagnose", body, "Content-Type", "multipart/form-data"), 422, nil)
	body, kind = form(t, "../../etc/passwd", "text")
	s.want(s.do("POST", "/v1/diagnose", body, "Content-Type", kind), 422, nil)
	if all := s.desk.Cases(); len(all) != 1 {
		t.Errorf("%d cases are left; want the one that stays", len(all))
	}
}

// TestModified hands files over with the times at which they were written, and without.
func TestModified(t *testing.T) {
	now := time.Now().Truncate(time.Second)
	s := newSite(t, desk.Limits{}, func(o *Options) { o.Now = func() time.Time { return now } })
	for _, c := range []struct {
		modified string
		status   int // of what is not taken; 0 is taken
		want     time.Time
	}{
		{"", 0, time.Time{}},
		{"?modified=2026-01-31T12:00:00.25Z", 0, time.Date(2026, 1, 31, 12, 0, 0, 250e6, time.UTC)},
		{"?modified=2026-01-31T12:00:00%2B02:00", 0, time.Date(2026, 1, 31, 10, 0, 0, 0, time.UTC)},
		{"?modified=1970-01-01T00:00:00Z", 0, time.Unix(0, 0)},
		{"?modified=" + now.Add(23*time.Hour).UTC().Format(time.RFC3339), 0, now.Add(23 * time.Hour)},
		{"?modified=" + now.Add(25*time.Hour).UTC().Format(time.RFC3339), 422, time.Time{}},
		{"?modified=1969-12-31T23:59:59Z", 422, time.Time{}},
		{"?modified=9999-12-31T23:59:59Z", 422, time.Time{}},
		{"?modified=yesterday", 422, time.Time{}},
		{"?modified=", 422, time.Time{}},
	} {
		k := s.begin()
		for method, path := range map[string]string{"PUT": "/v1/cases/" + k.ID + "/files/a.log" + c.modified, "POST": "/v1/diagnose" + c.modified} {
			began := time.Now().Add(-time.Minute)
			r := s.do(method, path, oom)
			if c.status != 0 {
				s.want(r, c.status, nil)
				continue
			}
			id, name := k.ID, "a.log"
			if method == "POST" {
				s.want(r, 200, nil)
				id, name = strings.TrimPrefix(r.Header.Get("Location"), "/v1/cases/"), "log"
			} else {
				s.want(r, 201, nil)
			}
			at, _ := filepath.Glob(filepath.Join(s.dir, "*", id, name))
			if len(at) != 1 {
				t.Fatalf("%s: files %q", path, at)
			}
			info, err := os.Stat(at[0])
			if err != nil {
				t.Fatal(err)
			}
			if got := info.ModTime(); c.want.IsZero() && got.Before(began) || !c.want.IsZero() && !got.Equal(c.want) {
				t.Errorf("%s: written %v, want %v", path, got, c.want)
			}
		}
	}
}

// TestCaseFiles pages through the files of a case; a list of cases counts them.
func TestCaseFiles(t *testing.T) {
	s := newSite(t, desk.Limits{}, nil)
	k := s.begin()
	for _, name := range []string{"c", "a", "b"} {
		s.want(s.do("PUT", "/v1/cases/"+k.ID+"/files/"+name, name), 201, nil)
	}
	var got []string
	for path := "/v1/cases/" + k.ID + "?limit=2"; path != ""; {
		var p struct {
			incident.Case
			Next string `json:"next"`
		}
		r := s.want(s.do("GET", path, ""), 200, &p)
		if p.FileCount != 3 {
			t.Errorf("%s: %d files", path, p.FileCount)
		}
		for _, f := range p.Files {
			got = append(got, f.Name)
		}
		link, _, _ := strings.Cut(strings.TrimPrefix(r.Header.Get("Link"), "<"), ">")
		if (link == "") != (p.Next == "") {
			t.Errorf("%s: next %q, Link %q", path, p.Next, link)
		}
		path = link
	}
	if strings.Join(got, "") != "abc" {
		t.Errorf("files %q", got)
	}
	var l caseList
	if s.want(s.do("GET", "/v1/cases", ""), 200, &l); len(l.Cases) != 1 || l.Cases[0].FileCount != 3 || len(l.Cases[0].Files) != 0 {
		t.Errorf("the list: %+v", l.Cases)
	}
	s.want(s.do("GET", "/v1/cases/"+k.ID+"?limit=0", ""), 422, nil)
	s.want(s.do("GET", "/v1/cases/"+k.ID+"?cursor=x", ""), 422, nil)
}
