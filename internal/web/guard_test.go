package web

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"
)

const host = "127.0.0.1:7311"

// guardedSite is a site behind which one page answers everything that is let pass.
func guardedSite(t *testing.T, token string, hosts ...string) http.Handler {
	t.Helper()
	h, err := Handler(Options{
		Hosts: append(hosts, host), Token: token, Version: "test", Now: time.Now,
		API: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, "answered") }),
	})
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// asked is a request with headers in pairs; Host is ours unless they say otherwise.
func asked(method, path string, headers ...string) *http.Request {
	r := httptest.NewRequest(method, path, nil)
	r.Host = host
	for i := 0; i < len(headers); i += 2 {
		if headers[i] == "Host" {
			r.Host = headers[i+1]
			continue
		}
		r.Header.Add(headers[i], headers[i+1])
	}
	return r
}

func answerOf(h http.Handler, r *http.Request) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

func TestGuard(t *testing.T) {
	open, locked := guardedSite(t, "", "gpu-4:7311"), guardedSite(t, "right", "gpu-4:7311")
	long := "/v1/x?" + strings.Repeat("a", maxURL)
	for _, c := range []struct {
		about  string
		site   http.Handler
		r      *http.Request
		status int
	}{
		{"a program", open, asked("GET", "/v1/x"), 200},
		{"a program that changes something", open, asked("POST", "/v1/x"), 200},
		{"our page", open, asked("GET", "/v1/x", "Sec-Fetch-Site", "same-origin", "Sec-Fetch-Mode", "cors"), 200},
		{"our page that changes something", open, asked("POST", "/v1/x", "Origin", "http://"+host, "Sec-Fetch-Site", "same-origin"), 200},
		{"typed into the address bar", open, asked("GET", "/v1/x", "Sec-Fetch-Site", "none", "Sec-Fetch-Mode", "navigate"), 200},
		{"a name that was allowed", open, asked("GET", "/v1/x", "Host", "GPU-4:7311"), 200},
		{"localhost", open, asked("GET", "/v1/x", "Host", "localhost:7311"), 200},
		{"a forwarded port", open, asked("POST", "/v1/x", "Host", "localhost:9000", "Origin", "http://localhost:9000"), 200},
		{"IPv6", open, asked("GET", "/v1/x", "Host", "[::1]:7311"), 200},

		{"DNS rebinding", open, asked("GET", "/v1/x", "Host", "rebound.example:7311"), 421},
		{"DNS rebinding, a name like ours", open, asked("GET", "/v1/x", "Host", "127.0.0.1.example:7311"), 421},
		{"DNS rebinding, localhost as a part", open, asked("GET", "/v1/x", "Host", "localhost.example"), 421},
		{"DNS rebinding, the page's own origin", open, asked("POST", "/v1/x", "Host", "rebound.example:7311", "Origin", "http://rebound.example:7311", "Sec-Fetch-Site", "same-origin"), 421},
		{"every address", open, asked("GET", "/v1/x", "Host", "0.0.0.0:7311"), 421},
		{"no host", open, asked("GET", "/v1/x", "Host", ""), 421},
		{"another port of an allowed name", open, asked("GET", "/v1/x", "Host", "gpu-4:80"), 421},
		{"DNS rebinding of static files", open, asked("GET", "/static/x.css", "Host", "rebound.example"), 421},

		{"cross-site POST", open, asked("POST", "/v1/x", "Origin", "https://evil.example", "Sec-Fetch-Site", "cross-site"), 403},
		{"cross-site POST of an old browser", open, asked("POST", "/v1/x", "Origin", "https://evil.example"), 403},
		{"POST from another port of this host", open, asked("POST", "/v1/x", "Origin", "http://127.0.0.1:3000", "Sec-Fetch-Site", "same-site"), 403},
		{"POST under another name of this host", open, asked("POST", "/v1/x", "Origin", "http://localhost:7311"), 403},
		{"POST by a link", open, asked("POST", "/v1/x", "Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "document"), 403},
		{"POST from a sandbox", open, asked("POST", "/v1/x", "Origin", "null"), 403},
		{"POST from a sandbox that says same-origin", open, asked("POST", "/v1/x", "Origin", "null", "Sec-Fetch-Site", "same-origin"), 403},
		{"two sites", open, asked("POST", "/v1/x", "Sec-Fetch-Site", "same-origin", "Sec-Fetch-Site", "cross-site"), 403},
		{"two origins", open, asked("POST", "/v1/x", "Origin", "http://"+host, "Origin", "https://evil.example"), 403},
		{"PUT from elsewhere", open, asked("PUT", "/v1/x", "Sec-Fetch-Site", "cross-site"), 403},
		{"DELETE from elsewhere", open, asked("DELETE", "/v1/x", "Origin", "https://evil.example"), 403},
		{"https instead of http", open, asked("POST", "/v1/x", "Origin", "https://"+host), 403},

		{"a link from elsewhere", open, asked("GET", "/v1/x", "Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "document"), 200},
		{"a frame elsewhere", open, asked("GET", "/v1/x", "Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "iframe"), 403},
		{"an image elsewhere", open, asked("GET", "/v1/x", "Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "no-cors", "Sec-Fetch-Dest", "image"), 403},
		{"a fetch from elsewhere", open, asked("GET", "/v1/x", "Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "cors"), 403},
		{"a fetch from another port", open, asked("GET", "/v1/x", "Sec-Fetch-Site", "same-site", "Sec-Fetch-Mode", "no-cors"), 403},
		{"a fetch of an old browser", open, asked("GET", "/v1/x", "Origin", "https://evil.example"), 403},

		{"OPTIONS", open, asked("OPTIONS", "/v1/x", "Origin", "https://evil.example", "Access-Control-Request-Method", "PUT"), 405},
		{"TRACE", open, asked("TRACE", "/v1/x"), 405},
		{"CONNECT", open, asked("CONNECT", "/v1/x"), 405},
		{"an invented method", open, asked("BREW", "/v1/x"), 405},
		{"a long address", open, asked("GET", long), 414},

		{"no token", locked, asked("GET", "/v1/x"), 401},
		{"a bearer token", locked, asked("GET", "/v1/x", "Authorization", "Bearer right"), 200},
		{"a wrong bearer token", locked, asked("GET", "/v1/x", "Authorization", "Bearer wrong"), 401},
		{"an empty bearer token", locked, asked("GET", "/v1/x", "Authorization", "Bearer "), 401},
		{"part of the token", locked, asked("GET", "/v1/x", "Authorization", "Bearer righ"), 401},
		{"more than the token", locked, asked("GET", "/v1/x", "Authorization", "Bearer rightt"), 401},
		{"a long token", locked, asked("GET", "/v1/x", "Authorization", "Bearer "+strings.Repeat("x", 1<<14)), 401},
		{"another scheme", locked, asked("GET", "/v1/x", "Authorization", "Basic right"), 401},
		{"the token in the address", locked, asked("GET", "/v1/x?token=right"), 401},
		{"the token as a cookie", locked, asked("GET", "/v1/x", "Cookie", "inquest=right"), 401},
		{"a page without a token", locked, asked("GET", "/"), 401},
		{"static files without a token", locked, asked("GET", "/static/x.css"), 404},
		{"DNS rebinding with the token", locked, asked("GET", "/v1/x", "Host", "rebound.example", "Authorization", "Bearer right"), 421},
		{"cross-site POST with the token", locked, asked("POST", "/v1/x", "Origin", "https://evil.example", "Authorization", "Bearer right"), 403},
	} {
		w := answerOf(c.site, c.r)
		if w.Code != c.status {
			t.Errorf("%s: status %d, want %d: %.200s", c.about, w.Code, c.status, w.Body)
		}
		if got := w.Body.String() == "answered"; got != (c.status == 200) {
			t.Errorf("%s: answered %t", c.about, got)
		}
		h := w.Header()
		if h.Get("Content-Security-Policy") != policy || h.Get("X-Content-Type-Options") != "nosniff" || h.Get("Cross-Origin-Resource-Policy") != "same-origin" {
			t.Errorf("%s: the headers lack a policy: %v", c.about, h)
		}
		for name := range h {
			if strings.HasPrefix(name, "Access-Control-") {
				t.Errorf("%s: %s is answered", c.about, name)
			}
		}
		if w.Body.Len() > 16<<10 {
			t.Errorf("%s: an answer of %d bytes", c.about, w.Body.Len())
		}
	}
}

// TestEnter follows a browser from the address with the token to a page.
func TestEnter(t *testing.T) {
	h := guardedSite(t, "right")
	w := answerOf(h, asked("GET", "/enter?token=right"))
	if w.Code != http.StatusSeeOther || w.Header().Get("Location") != "/" {
		t.Fatalf("status %d to %q, want a redirection to /", w.Code, w.Header().Get("Location"))
	}
	cookies := w.Result().Cookies()
	if len(cookies) != 1 {
		t.Fatalf("%d cookies, want one", len(cookies))
	}
	c := cookies[0]
	if !c.HttpOnly || c.SameSite != http.SameSiteStrictMode || c.Path != "/" || strings.Contains(c.Value+c.Name, "right") {
		t.Errorf("cookie %s", c)
	}
	if w := answerOf(h, asked("GET", "/v1/x", "Cookie", c.Name+"="+c.Value)); w.Code != 200 {
		t.Errorf("with the cookie: status %d", w.Code)
	}
	// What a page on another port of this host set does not hide it.
	if w := answerOf(h, asked("GET", "/v1/x", "Cookie", c.Name+"=other; "+c.Name+"="+c.Value)); w.Code != 200 {
		t.Errorf("with two cookies: status %d", w.Code)
	}
	if w := answerOf(h, asked("GET", "/v1/x", "Authorization", "Bearer "+c.Value)); w.Code != 401 {
		t.Errorf("the cookie as a bearer token: status %d", w.Code)
	}
	if w := answerOf(guardedSite(t, "new"), asked("GET", "/v1/x", "Cookie", c.Name+"="+c.Value)); w.Code != 401 {
		t.Errorf("the cookie at the next start: status %d", w.Code)
	}

	for _, path := range []string{"/enter", "/enter?token=", "/enter?token=wrong", "/enter?token=righ"} {
		w := answerOf(h, asked("GET", path, "Accept", "text/html"))
		if w.Code != http.StatusUnauthorized || w.Header().Get("Set-Cookie") != "" {
			t.Errorf("%s: status %d, Set-Cookie %q", path, w.Code, w.Header().Get("Set-Cookie"))
		}
	}
	form := func(body string) *http.Request {
		r := httptest.NewRequest("POST", "/enter", strings.NewReader(body))
		r.Host = host
		r.Header.Set("Origin", "http://"+host)
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		return r
	}
	for body, status := range map[string]int{"token=right": 303, "token=+right+": 303, "token=wrong": 401, "token=" + strings.Repeat("x", 1<<20): 401, "": 401} {
		if w := answerOf(h, form(body)); w.Code != status {
			t.Errorf("form %.20s: status %d, want %d", body, w.Code, status)
		}
	}
}

// A browser that comes by a link without its cookie is led to the same page, and nowhere else.
func TestAskToken(t *testing.T) {
	h := guardedSite(t, "right")
	for target, want := range map[string]string{
		"/cases/x?a=1": `href="/cases/x?a=1"`, "//evil.example/": "", `/\evil.example`: "", "/\"><script>x": `href="/%22%3E%3Cscript%3Ex"`,
	} {
		r := asked("GET", "/", "Accept", "text/html")
		r.RequestURI = target
		r.URL = &url.URL{Path: target}
		if p, q, ok := strings.Cut(target, "?"); ok {
			r.URL = &url.URL{Path: p, RawQuery: q}
		}
		w := answerOf(h, r)
		if w.Code != 401 {
			t.Errorf("%s: status %d", target, w.Code)
		}
		if page := w.Body.String(); strings.Contains(page, "evil.example") || strings.Contains(page, "<script>x") || want != "" && !strings.Contains(page, want) {
			t.Errorf("%s: %s", target, page)
		}
	}
}
