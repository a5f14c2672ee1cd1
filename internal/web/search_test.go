package web

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
)

func TestSearch(t *testing.T) {
	v := visit(t, nil)
	v.get(200, "/search")
	page := v.get(200, "/search?q="+url.QueryEscape("loss nan after oom"))
	wants(t, page, "Entries, best first", "Why: ", `value="loss nan after oom"`)
	wants(t, v.get(200, "/search?q=Xid+79"), "Codes and errors", `href="/encyclopedia/xid?q=79"`)
	wants(t, v.get(200, "/search?q=fragmentation"), `href="/encyclopedia/fragmentation"`)
	wants(t, v.get(200, "/search?q=qqqqzzzz"), "Nothing in the encyclopedia fits that")
	wants(t, v.get(200, "/search?q="+url.QueryEscape(hostile)), "&lt;script&gt;")
}

// TestSearchText pastes texts too long for an address, and such that are not.
func TestSearchText(t *testing.T) {
	v := visit(t, nil)
	w := v.post("/search", url.Values{"q": {"CUDA out of memory"}})
	if to := w.Header().Get("Location"); w.Code != http.StatusSeeOther || to != "/search?q=CUDA+out+of+memory" {
		t.Errorf("a short text: status %d to %q", w.Code, to)
	}
	line := "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 79.10 GiB\n"
	page := v.checked(200, "/search", v.post("/search", url.Values{"q": {strings.Repeat(line, 40)}}))
	wants(t, page, "Entries, best first", "Tried to allocate")
	page = v.checked(200, "/search", v.post("/search", url.Values{"q": {strings.Repeat(line, 200)}}))
	wants(t, page, "its first 16.0 KiB were looked at", "Entries, best first")
	wants(t, v.checked(413, "/search", v.post("/search", url.Values{"q": {strings.Repeat("é", 4*maxQuery)}})), "too long to be searched for")
}

// FuzzSearch looks for queries that break the page or reach it as markup.
func FuzzSearch(f *testing.F) {
	for _, q := range []string{"loss nan after oom", "Xid 79", "xid", "xid 79 hardware", "cuda-errors", "fragmentatoin", "", "\x00", "%s", hostile, "'\"><svg/onload=alert(1)>", strings.Repeat("CUDA out of memory ", 100), "\xff\xfe", "损失 nan", "{{.}}", "`"} {
		f.Add(q)
	}
	v := visit(f, nil)
	f.Fuzz(func(t *testing.T, q string) {
		v := &visitor{t, v.h}
		r := httptest.NewRequest(http.MethodGet, "/search?q="+url.QueryEscape(q), nil)
		if len(r.RequestURI) > maxURL {
			v.checked(http.StatusRequestURITooLong, "/search", v.send(r))
			return
		}
		page := v.checked(200, "/search", v.send(r))
		if strings.ContainsAny(page, "\x00\x1b\u202e") {
			t.Errorf("%q steers the page", q)
		}
	})
}
