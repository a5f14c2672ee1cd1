package web

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html"

	"github.com/inquest-dev/inquest/encyclopedia"
	"github.com/inquest-dev/inquest/internal/catalog"
	"github.com/inquest-dev/inquest/internal/desk"
	"github.com/inquest-dev/inquest/internal/engine"
	"github.com/inquest-dev/inquest/internal/incident"
	"github.com/inquest-dev/inquest/internal/reader/all"
	"github.com/inquest-dev/inquest/internal/report"
)

const testHost = "127.0.0.1:8080"

// A caseTest is a site with a desk, and what a browser without scripts does with it.
type caseTest struct {
	*testing.T
	desk *desk.Desk
	site http.Handler
}

func newCaseTest(t *testing.T) *caseTest {
	t.Helper()
	c, err := catalog.Load(encyclopedia.FS)
	if err != nil {
		t.Fatal(err)
	}
	d, err := desk.New(desk.Options{Dir: t.TempDir(), Engine: engine.Options{Catalog: c, Readers: all.Readers(c.Plan()), Version: "test", Workers: 2}, Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	h, err := Handler(Options{Desk: d, Catalog: c, Hosts: []string{testHost}, Version: "test", Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	return &caseTest{t, d, h}
}

// diagnosed hands files over and waits for the end.
func (t *caseTest) diagnosed(name string, files map[string]string) *incident.Case {
	t.Helper()
	c, err := t.desk.Begin(name)
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range files {
		if _, err := t.desk.Put(context.Background(), c.ID, name, strings.NewReader(text)); err != nil {
			t.Fatal(err)
		}
	}
	return t.end(c.ID)
}

func (t *caseTest) end(id string) *incident.Case {
	t.Helper()
	if err := t.desk.Diagnose(id, desk.Handling{}); err != nil {
		t.Fatal(err)
	}
	if _, err := t.desk.Result(context.Background(), id); err != nil {
		t.Logf("no result: %v", err)
	}
	c, err := t.desk.Case(id)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// folder hands over what lies in a folder of the repository.
func (t *caseTest) folder(dir string) *incident.Case {
	t.Helper()
	c, err := t.desk.Local(filepath.Base(dir), []string{dir})
	if err != nil {
		t.Fatal(err)
	}
	return t.end(c.ID)
}

func (t *caseTest) get(path string) *httptest.ResponseRecorder {
	path, _, _ = strings.Cut(path, "#")
	r := httptest.NewRequest(http.MethodGet, path, nil)
	r.Host = testHost
	w := httptest.NewRecorder()
	t.site.ServeHTTP(w, r)
	return w
}

// page gets a page that is there, and checks what must hold of every page.
func (t *caseTest) page(path string) string {
	t.Helper()
	w := t.get(path)
	if w.Code != http.StatusOK {
		t.Fatalf("%s: status %d\n%s", path, w.Code, w.Body)
	}
	t.wellFormed(path, w.Body.String())
	return w.Body.String()
}

// wellFormed checks that a page is the program's words and elements alone: no inline script,
// style or handler, nothing from elsewhere, no text that hides or reorders, unique ids, links
// within the page that lead somewhere, labelled fields, headings in order.
func (t *caseTest) wellFormed(path, page string) {
	t.Helper()
	if strings.Contains(page, "ZgotmplZ") || strings.Contains(page, "%!") || strings.Contains(page, "&lt;no value&gt;") {
		t.Errorf("%s: a template could not show a value", path)
	}
	for _, r := range page {
		if r < ' ' && r != '\n' && r != '\t' || r == 0x7f || r >= 0x80 && r < 0xa0 || r == 0x202e || r == 0x2066 || r == 0x200b {
			t.Fatalf("%s: the page has the character %U", path, r)
		}
	}
	doc, err := html.Parse(strings.NewReader(page))
	if err != nil {
		t.Fatal(err)
	}
	ids, inputs, labels := map[string]bool{}, map[string]bool{}, map[string]bool{}
	var within []string
	level := 0
	for n := range doc.Descendants() {
		if n.Type != html.ElementNode {
			continue
		}
		value := map[string]string{}
		for _, a := range n.Attr {
			value[a.Key] = a.Val
			if a.Key == "style" || strings.HasPrefix(a.Key, "on") {
				t.Errorf("%s: <%s %s>", path, n.Data, a.Key)
			}
			if a.Key == "src" || a.Key == "href" || a.Key == "action" {
				if !strings.HasPrefix(a.Val, "/") && !strings.HasPrefix(a.Val, "#") || strings.HasPrefix(a.Val, "//") {
					t.Errorf("%s: <%s %s=%q> leads elsewhere", path, n.Data, a.Key, a.Val)
				}
			}
		}
		if id := value["id"]; id != "" {
			if ids[id] {
				t.Errorf("%s: id %q occurs twice", path, id)
			}
			ids[id] = true
		}
		switch n.Data {
		case "script":
			if n.FirstChild != nil && value["type"] != "application/json" {
				t.Errorf("%s: an inline script", path)
			}
			if value["type"] == "application/json" && !json.Valid([]byte(n.FirstChild.Data)) {
				t.Errorf("%s: the data %s are not JSON", path, value["id"])
			}
		case "style", "iframe", "object", "embed", "base":
			t.Errorf("%s: an element %s", path, n.Data)
		case "label":
			labels[value["for"]] = true
		case "select", "input", "textarea":
			if value["type"] != "hidden" && n.Parent.Data != "label" {
				inputs[value["id"]] = true
			}
		case "a":
			if s, ok := strings.CutPrefix(value["href"], "#"); ok {
				within = append(within, s)
			}
		case "h1", "h2", "h3", "h4":
			now := int(n.Data[1] - '0')
			if now > level+1 {
				t.Errorf("%s: a heading of level %d behind one of level %d", path, now, level)
			}
			level = now
		}
	}
	for _, id := range within {
		if !ids[id] {
			t.Errorf("%s: a link to #%s, which is not there", path, id)
		}
	}
	for id := range inputs {
		if !labels[id] {
			t.Errorf("%s: the field %q has no label", path, id)
		}
	}
}

// links are the addresses of a page's links that begin with prefix, each once.
func links(page, prefix string) []string {
	doc, _ := html.Parse(strings.NewReader(page))
	var out []string
	seen := map[string]bool{}
	for n := range doc.Descendants() {
		if n.Type != html.ElementNode || n.Data != "a" {
			continue
		}
		for _, a := range n.Attr {
			if a.Key == "href" && strings.HasPrefix(a.Val, prefix) && !seen[a.Val] {
				seen[a.Val] = true
				out = append(out, a.Val)
			}
		}
	}
	return out
}

// TestExamples opens every page of every example, follows every link to a line, and every
// reader's verdict.
func TestExamples(t *testing.T) {
	dirs, err := filepath.Glob("../../examples/*/README.md")
	if err != nil || len(dirs) == 0 {
		t.Fatalf("examples: %v", err)
	}
	ct := newCaseTest(t)
	for _, readme := range dirs {
		dir := filepath.Dir(readme)
		t.Run(filepath.Base(dir), func(t *testing.T) { (&caseTest{t, ct.desk, ct.site}).allPages(dir, 40) })
	}
}

// TestSharedCases does the same with failures of other people, where they lie beside the
// repository.
func TestSharedCases(t *testing.T) {
	dirs, _ := filepath.Glob("../../../shared/cases/failed/*/input")
	if len(dirs) == 0 {
		t.Skip("no cases beside the repository")
	}
	if testing.Short() {
		dirs = dirs[:min(len(dirs), 5)]
	}
	ct := newCaseTest(t)
	for _, dir := range dirs {
		t.Run(filepath.Base(filepath.Dir(dir)), func(t *testing.T) { (&caseTest{t, ct.desk, ct.site}).allPages(dir, 5) })
	}
}

func (t *caseTest) allPages(dir string, most int) {
	c := t.folder(dir)
	if c.State != incident.CaseDone {
		t.Fatalf("%s: %s", c.State, c.Error)
	}
	result, err := t.desk.Result(context.Background(), c.ID)
	if err != nil {
		t.Fatal(err)
	}
	base := "/cases/" + c.ID
	lines := map[string]bool{}
	for _, who := range []string{"", "?for=on-call", "?for=executive", "?for=nobody"} {
		page := t.page(base + who)
		for _, l := range links(page, base+"/lines?") {
			lines[l] = true
		}
		if f := result.Incident.FirstFault; f != nil && f.Span != nil && f.Span.Kind == "text" {
			if want := spanPath(c.ID, f.Span); !strings.Contains(page, `class="button primary" href="`+html.EscapeString(want)+`"`) {
				t.Errorf("%s does not lead to the first fault at %s", base+who, want)
			}
		}
	}
	for _, path := range []string{"/timeline", "/timeline?view=order", "/timeline?view=time", "/timeline?role=first", "/timeline?ranks=0-3&from=-1&to=1"} {
		for _, l := range links(t.page(base+path), base+"/lines?") {
			lines[l] = true
		}
	}
	for _, tab := range links(t.page(base), base+"/") {
		if strings.HasSuffix(tab, "/memory") || strings.HasSuffix(tab, "/tracker") {
			t.page(tab)
		}
	}
	n := 0
	for l := range lines {
		if n++; n > most {
			break
		}
		u, err := url.Parse(l)
		if err != nil {
			t.Fatal(err)
		}
		page := t.page(l)
		if want := `id="marked"><th scope="row"><a href="`; !strings.Contains(page, want) {
			t.Errorf("%s marks no line", l)
		}
		if w := t.get(l[:strings.Index(l, "#")] + "&as=text"); w.Code != http.StatusOK || !strings.HasPrefix(w.Header().Get("Content-Type"), "text/plain") {
			t.Errorf("%s as text: status %d, %s", u, w.Code, w.Header().Get("Content-Type"))
		}
	}
	for _, ending := range []string{"html", "md", "txt", "json"} {
		w := t.get(base + "/report." + ending)
		if w.Code != http.StatusOK || w.Body.Len() == 0 || !strings.HasPrefix(w.Header().Get("Content-Disposition"), "attachment") {
			t.Errorf("report.%s: status %d, %d bytes, %q", ending, w.Code, w.Body.Len(), w.Header().Get("Content-Disposition"))
		}
		if ending == "html" {
			var b bytes.Buffer
			if err := report.Write(&b, "html", result.Incident, report.Options{Full: true}); err != nil || !bytes.Equal(b.Bytes(), w.Body.Bytes()) {
				t.Error("the file is not the one that --format html writes")
			}
		}
	}
}

// TestFirstFaultLine checks that the link of the verdict shows the line that the incident quotes.
func TestFirstFaultLine(t *testing.T) {
	ct := newCaseTest(t)
	c := ct.folder("../../examples/eight-ranks")
	result, err := ct.desk.Result(context.Background(), c.ID)
	if err != nil {
		t.Fatal(err)
	}
	f := result.Incident.FirstFault
	page := ct.page(links(ct.page("/cases/"+c.ID), "/cases/"+c.ID+"/lines?")[0])
	_, marked, _ := strings.Cut(page, `<tr class="marked" id="marked">`)
	marked, _, _ = strings.Cut(marked, "</tr>")
	if want := html.EscapeString(f.Span.Quote[:40]); !strings.Contains(marked, want) || !strings.Contains(marked, ">first fault: ") {
		t.Errorf("marked is %s\nwant %s, as the first fault", marked, want)
	}
}

const hostileLog = "\x1b]0;owned\x07\x1b[31mred\x1b[0m <script>alert(1)</script> \u202eevil\u202c <img src=x onerror=alert(2)>\n" +
	"step 1 loss: 0.5\nstep 2 loss: 0.4\n" +
	"Traceback (most recent call last):\n  File \"/w/<b>train</b>.py\", line 3, in <module>\n    x = \"'><svg onload=alert(3)>\"\n" +
	"torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 79.15 GiB of which 1.00 GiB is free. </script><script>alert(4)</script> \u202e\x1b[2J\n"

// TestHostileCase checks that nothing in logs and names of files becomes anything but text.
func TestHostileCase(t *testing.T) {
	ct := newCaseTest(t)
	const odd = `a "b" & c='d' <i>.log`
	long := strings.Repeat("x", 8<<20)
	c := ct.diagnosed("<script>alert(5)</script>\u202e&\"", map[string]string{odd: hostileLog + long + "\nthe end\n", "deep/" + `"><script>.log`: hostileLog})
	if c.State != incident.CaseDone {
		t.Fatalf("%s: %s", c.State, c.Error)
	}
	base := "/cases/" + c.ID
	found := 0
	for _, path := range []string{"", "?for=on-call", "?for=executive", "/timeline", "/timeline?kind=%3Cscript%3E&ranks=%22%3E%3Cscript%3E&class=%27&role=%00&view=%3Cb%3E&from=NaN&to=1e999&page=-3"} {
		page := ct.page(base + path)
		noMarkup(t, path, page)
		for _, l := range links(page, base+"/lines?") {
			found++
			lines := ct.page(l)
			noMarkup(t, l, lines)
			if len(lines) > 1<<20 {
				t.Errorf("%s has %d bytes", l, len(lines))
			}
		}
	}
	if found == 0 {
		t.Error("no link to a line")
	}
	result, _ := ct.desk.Result(context.Background(), c.ID)
	for _, a := range result.Incident.Artifacts {
		page := ct.page(base + "/lines?" + url.Values{"artifact": {a.Path}, "line": {"1"}}.Encode())
		noMarkup(t, a.Path, page)
		if !strings.Contains(page, "&lt;script&gt;alert(1)") {
			t.Errorf("%s: the first line is not shown as text", a.Path)
		}
	}
}

// noMarkup checks that a page has no element or handler that a log or a name brought in.
func noMarkup(t *testing.T, path, page string) {
	t.Helper()
	doc, err := html.Parse(strings.NewReader(page))
	if err != nil {
		t.Fatal(err)
	}
	for n := range doc.Descendants() {
		if n.Type == html.ElementNode && (n.Data == "i" || n.Data == "img" && !strings.Contains(fmt.Sprint(n.Attr), "/static/") || n.Data == "script" && n.FirstChild != nil && strings.Contains(n.FirstChild.Data, "alert") && !strings.Contains(fmt.Sprint(n.Attr), "application/json")) {
			t.Errorf("%s: <%s %v>", path, n.Data, n.Attr)
		}
	}
}

// TestRefusedPages asks for what is not there.
func TestRefusedPages(t *testing.T) {
	ct := newCaseTest(t)
	secret := filepath.Join(t.TempDir(), "secret.log")
	if err := os.WriteFile(secret, []byte("of nobody else\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	c := ct.diagnosed("small", map[string]string{"train.log": "step 1 loss: 0.5\n"})
	base := "/cases/" + c.ID
	at := func(artifact string) string {
		return base + "/lines?" + url.Values{"artifact": {artifact}, "line": {"1"}}.Encode()
	}
	for _, q := range []struct {
		path   string
		status int
	}{
		{"/cases/none", 404}, {"/cases/none/timeline", 404}, {"/cases/none/lines?artifact=a", 404}, {"/cases/none/memory", 404}, {"/cases/none/tracker", 404}, {"/cases/none/report.html", 404},
		{base + "/report.pdf", 404}, {base + "/none", 404}, {base + "/memory", 404}, {base + "/tracker", 404},
		{base + "/lines", 400}, {base + "/lines?artifact=train.log&line=0", 400}, {base + "/lines?artifact=train.log&line=-1", 400}, {base + "/lines?artifact=train.log&line=x", 400}, {base + "/lines?artifact=train.log&offset=-1", 400},
		{at("none.log"), 404}, {at(secret), 404}, {at("../train.log"), 404}, {at("/etc/passwd"), 404}, {at("../../../../../../etc/passwd"), 404}, {at("train.log/../../x"), 404}, {at("train.log\x00"), 404},
		{base + "/lines?artifact=train.log&line=9223372036854775807", 200}, {base + "/lines?artifact=train.log&offset=9223372036854775807", 200}, {base + "/lines?artifact=train.log&line=1&before=99999999&after=99999999", 200},
	} {
		w := ct.get(q.path)
		if w.Code != q.status {
			t.Errorf("%s: status %d, want %d", q.path, w.Code, q.status)
		}
		if strings.Contains(w.Body.String(), "of nobody else") || strings.Contains(w.Body.String(), "root:") {
			t.Errorf("%s shows a file that is not of the case", q.path)
		}
		ct.wellFormed(q.path, w.Body.String())
	}
}

// TestEndedWithout shows the pages of cases without a verdict.
func TestEndedWithout(t *testing.T) {
	ct := newCaseTest(t)
	c, err := ct.desk.Begin("never told")
	if err != nil {
		t.Fatal(err)
	}
	if err := ct.desk.Cancel(c.ID); err != nil {
		t.Fatal(err)
	}
	page := ct.page("/cases/" + c.ID)
	for _, want := range []string{"Cancelled before there was a verdict", "What to do"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page of a cancelled case lacks %q", want)
		}
	}
	for _, part := range []string{"timeline", "lines?artifact=a", "report.json"} {
		if w := ct.get("/cases/" + c.ID + "/" + part); w.Code < 400 || w.Code >= 500 {
			t.Errorf("%s of a cancelled case: status %d", part, w.Code)
		}
	}
}

// TestUndone checks that a case that still receives has no page but its progress.
func TestUndone(t *testing.T) {
	ct := newCaseTest(t)
	c, err := ct.desk.Begin("waits")
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{"timeline", "lines?artifact=a", "memory", "tracker", "report.json"} {
		if w := ct.get("/cases/" + c.ID + "/" + part); w.Code != http.StatusConflict {
			t.Errorf("%s: status %d, want 409", part, w.Code)
		}
	}
}

// TestServeExamples serves all examples at the address in INQUEST_TEST_ADDR until the test's
// time is over; for looking at pages.
func TestServeExamples(t *testing.T) {
	addr := os.Getenv("INQUEST_TEST_ADDR")
	if addr == "" {
		t.Skip("INQUEST_TEST_ADDR is not set")
	}
	ct := newCaseTest(t)
	err := fs.WalkDir(os.DirFS("../../examples"), ".", func(name string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && name != "." && !strings.Contains(name, "/") {
			fmt.Println(name, ct.folder("../../examples/"+name).ID)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range filepath.SplitList(os.Getenv("INQUEST_TEST_FOLDERS")) {
		fmt.Println(dir, ct.folder(dir).ID)
	}
	t.Fatal(http.ListenAndServe(addr, ct.site))
}
