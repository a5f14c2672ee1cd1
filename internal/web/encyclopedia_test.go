package web

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/net/html"

	"github.com/inquest-dev/inquest/internal/catalog"
	"github.com/inquest-dev/inquest/internal/store"
)

// theCatalog is the embedded encyclopedia.
var theCatalog = sync.OnceValues(func() (*catalog.Catalog, error) { return catalog.Load(os.DirFS("../../encyclopedia")) })

// A visitor asks a site for pages, as a browser on this machine does.
type visitor struct {
	t testing.TB
	h http.Handler
}

// visit makes a site with the encyclopedia and a store, which may be null.
func visit(t testing.TB, st *store.Store) *visitor {
	t.Helper()
	c, err := theCatalog()
	if err != nil {
		t.Fatal(err)
	}
	h, err := Handler(Options{Catalog: c, Store: st, Hosts: []string{"127.0.0.1:8080"}, Version: "test", Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	return &visitor{t, h}
}

func (v *visitor) send(r *http.Request) *httptest.ResponseRecorder {
	r.Host = "127.0.0.1:8080"
	w := httptest.NewRecorder()
	v.h.ServeHTTP(w, r)
	return w
}

// get is the page at path, which has that status.
func (v *visitor) get(status int, path string) string {
	v.t.Helper()
	return v.checked(status, path, v.send(httptest.NewRequest(http.MethodGet, path, nil)))
}

// post sends a form as the page itself does.
func (v *visitor) post(path string, form url.Values) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodPost, path, strings.NewReader(form.Encode()))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Origin", "http://127.0.0.1:8080")
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	return v.send(r)
}

// checked is the body of an answer that has that status; what must hold of all pages is checked.
func (v *visitor) checked(status int, path string, w *httptest.ResponseRecorder) string {
	v.t.Helper()
	body := w.Body.String()
	if w.Code != status {
		v.t.Fatalf("%s: status %d, want %d:\n%.2000s", path, w.Code, status, body)
	}
	if !strings.HasPrefix(w.Header().Get("Content-Type"), "text/html") || len(body) == 0 {
		return body
	}
	doc, err := html.Parse(strings.NewReader(body))
	if err != nil {
		v.t.Fatal(err)
	}
	ids, fors := map[string]int{}, []string{}
	h1, last := 0, 0
	for n := range doc.Descendants() {
		if n.Type != html.ElementNode {
			continue
		}
		if n.Data == "script" && n.FirstChild != nil {
			v.t.Errorf("%s: a script in the page: %q", path, n.FirstChild.Data)
		}
		if len(n.Data) == 2 && n.Data[0] == 'h' && n.Data[1] >= '1' && n.Data[1] <= '6' {
			level := int(n.Data[1] - '0')
			if level == 1 {
				h1++
			}
			if level > last+1 {
				v.t.Errorf("%s: a heading of level %d behind one of level %d", path, level, last)
			}
			last = level
		}
		for _, a := range n.Attr {
			switch {
			case a.Key == "id":
				ids[a.Val]++
			case a.Key == "for", a.Key == "aria-labelledby", a.Key == "aria-describedby", a.Key == "data-copy":
				fors = append(fors, a.Val)
			case a.Key == "style" || strings.HasPrefix(a.Key, "on"):
				v.t.Errorf("%s: attribute %s=%q", path, a.Key, a.Val)
			case a.Key == "href" && strings.HasPrefix(a.Val, "#"):
				fors = append(fors, a.Val[1:])
			case a.Key == "href" || a.Key == "src" || a.Key == "action":
				away := strings.HasPrefix(a.Val, "https://github.com/") && n.Data == "a"
				if !away && (!strings.HasPrefix(a.Val, "/") || strings.HasPrefix(a.Val, "//")) {
					v.t.Errorf("%s: <%s %s=%q> leads elsewhere", path, n.Data, a.Key, a.Val)
				}
			}
		}
	}
	for id, n := range ids {
		if n > 1 {
			v.t.Errorf("%s: id %q %d times", path, id, n)
		}
	}
	for _, f := range fors {
		if ids[f] == 0 {
			v.t.Errorf("%s: nothing has the id %q", path, f)
		}
	}
	if h1 != 1 {
		v.t.Errorf("%s: %d main headings", path, h1)
	}
	return body
}

// wants checks that a page says all of what it should.
func wants(t testing.TB, page string, want ...string) {
	t.Helper()
	for _, s := range want {
		if !strings.Contains(page, s) {
			t.Errorf("the page lacks %s:\n%.3000s", s, page)
		}
	}
}

// TestEncyclopedia opens every entry, table and decision of the encyclopedia, and follows the
// links from its pages to others of it; of comparisons, the first.
func TestEncyclopedia(t *testing.T) {
	v := visit(t, nil)
	list := v.get(200, "/encyclopedia")
	c, _ := theCatalog()
	for _, h := range c.Entries() {
		if !strings.Contains(list, `href="/encyclopedia/`+h.ID+`"`) {
			t.Errorf("the list lacks %s", h.ID)
		}
	}
	seen, comparisons := map[string]bool{}, 0
	todo := []string{"/encyclopedia"}
	for len(todo) > 0 {
		path := todo[0]
		todo = todo[1:]
		doc, err := html.Parse(strings.NewReader(v.get(200, path)))
		if err != nil {
			t.Fatal(err)
		}
		for n := range doc.Descendants() {
			if n.Data != "a" {
				continue
			}
			for _, a := range n.Attr {
				to, _, _ := strings.Cut(a.Val, "#")
				if a.Key != "href" || !strings.HasPrefix(to, "/encyclopedia") || seen[to] {
					continue
				}
				if strings.Contains(to, "/compare?") {
					if comparisons++; comparisons > 40 {
						continue
					}
				}
				seen[to] = true
				todo = append(todo, to)
			}
		}
	}
	if len(seen) < len(c.Entries()) {
		t.Errorf("%d pages were reached", len(seen))
	}
}

func TestEntry(t *testing.T) {
	v := visit(t, nil)
	page := v.get(200, "/encyclopedia/fragmentation")
	wants(t, page, "Quick answer", "Symptoms", "What looks alike", "To confirm", "The one change", "The fix, by stack", `data-tabs=`, `class="copy"`, ">reads<", "For executives", "For engineers", "For the person on call", "Sources", "/encyclopedia/compare?a=fragmentation&amp;b=", "/encyclopedia/decide?q=fragmentation", `type="checkbox"`)
	if q, s := strings.Index(page, "Quick answer"), strings.Index(page, "Symptoms"); q > s {
		t.Error("the quick answer is not first")
	}
	wants(t, v.get(404, "/encyclopedia/fragmentatoin"), "There is no entry of that name", `href="/encyclopedia/fragmentation"`)
	wants(t, v.get(404, "/encyclopedia/%3Cscript%3Ealert(1)%3C%2Fscript%3E"), "There is no entry of that name")
	v.get(404, "/encyclopedia/fragmentation/more")
}

func TestTables(t *testing.T) {
	v := visit(t, nil)
	wants(t, v.get(200, "/encyclopedia/xid"), `href="/encyclopedia/xid?q=79"`, "Sources")
	wants(t, v.get(200, "/encyclopedia/xid?q=79"), "FALLEN_OFF_THE_BUS", "What to do", `href="/encyclopedia/`)
	wants(t, v.get(200, "/encyclopedia/xid?q=79,99999"), "There is no row for 99999")
	wants(t, v.get(404, "/encyclopedia/xid?q=nonesuch"), "No row holds all of that")
	wants(t, v.get(200, "/encyclopedia/cuda-errors"), `/encyclopedia/cuda-errors?q=`)
	wants(t, v.get(200, "/encyclopedia/cuda-errors?q=700"), "Does not prove")
	v.get(200, "/encyclopedia/sxid")
}

func TestFilter(t *testing.T) {
	v := visit(t, nil)
	page := v.get(200, "/encyclopedia?area=numerics")
	wants(t, page, `<option value="numerics" selected>`, "Show all", `id="numerics"`)
	if strings.Contains(page, `id="device-memory"`) {
		t.Error("another area is shown")
	}
	wants(t, v.get(200, "/encyclopedia?kind=device_oom"), `href="/encyclopedia/fragmentation"`)
	wants(t, v.get(200, "/encyclopedia?area=numerics&kind=device_oom"), "No entry of that area")
	wants(t, v.get(200, "/encyclopedia?area=%22%3E%3Cscript%3E"), "No entry of that area")
}

func TestDecide(t *testing.T) {
	v := visit(t, nil)
	wants(t, v.get(200, "/encyclopedia/decide"), `href="/encyclopedia/decide?q=device_oom"`)
	wants(t, v.get(200, "/encyclopedia/decide?q=device_oom"), "Evidence to look for", "Safer next action", `href="/encyclopedia/fragmentation"`)
	wants(t, v.get(200, "/encyclopedia/decide?q="+url.QueryEscape("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB")), "device oom")
	wants(t, v.get(200, "/encyclopedia/decide?q=zebra"), "No kind of event is meant", "/search?q=zebra")
}

func TestCompareEntries(t *testing.T) {
	v := visit(t, nil)
	v.get(200, "/encyclopedia/compare")
	wants(t, v.get(200, "/encyclopedia/compare?a=fragmentation"), "Choose two entries")
	wants(t, v.get(200, "/encyclopedia/compare?a=fragmentation&b=fragmentation"), "one entry twice")
	wants(t, v.get(404, "/encyclopedia/compare?a=fragmentation&b=%3Cx%3E"), "no entry of that name")
	wants(t, v.get(200, "/encyclopedia/compare?a=fragmentation&b=host-ram"), "How to tell them apart", "The one change", `<option value="host-ram" selected>`)
}
