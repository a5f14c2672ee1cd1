package web

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// TestFrame renders the pages that need no desk, and follows every path that the frame names.
func TestFrame(t *testing.T) {
	h, err := Handler(Options{Hosts: []string{"127.0.0.1:8080"}, Version: "test", Token: "right", Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	get := func(path string) *httptest.ResponseRecorder {
		r := httptest.NewRequest(http.MethodGet, path, nil)
		r.Host = "127.0.0.1:8080"
		r.Header.Set("Authorization", "Bearer right")
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		return w
	}
	w := get("/no/such/page")
	if w.Code != http.StatusNotFound {
		t.Fatalf("status %d, want 404", w.Code)
	}
	page := w.Body.String()
	for _, want := range []string{`<a class="skip" href="#main">`, `<main id="main"`, `role="search"`, "There is no such page"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %s", want)
		}
	}
	for part := range strings.SplitSeq(page, `"/static/`) {
		path, _, ok := strings.Cut(part, `"`)
		if !ok || strings.HasPrefix(part, "<!DOCTYPE") {
			continue
		}
		w := get("/static/" + path)
		if w.Code != http.StatusOK || !strings.Contains(w.Header().Get("Cache-Control"), "immutable") {
			t.Errorf("/static/%s: status %d, Cache-Control %q", path, w.Code, w.Header().Get("Cache-Control"))
		}
	}
}
