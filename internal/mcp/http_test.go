package mcp

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+b.token)
	return http.DefaultTransport.RoundTrip(r)
}

// TestHandlerRefuses sends what must not reach the tools: other names (DNS rebinding), pages of
// other origins, no token or a wrong one, other places, too much.
func TestHandlerRefuses(t *testing.T) {
	h := Handler(New(options(t)), "the-right-token")
	hello := `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}`
	for _, c := range []struct {
		name, host, path, token, body string
		headers                       map[string]string
		status                        int
	}{
		{"all in order", "127.0.0.1:7420", Path, "the-right-token", hello, nil, 200},
		{"by name", "localhost:7420", Path, "the-right-token", hello, nil, 200},
		{"by IPv6", "[::1]:7420", Path, "the-right-token", hello, nil, 200},
		{"own origin", "127.0.0.1:7420", Path, "the-right-token", hello, map[string]string{"Origin": "http://127.0.0.1:7420"}, 200},
		{"a name that resolves here", "rebound.example:7420", Path, "the-right-token", hello, nil, 421},
		{"a name that begins as ours", "127.0.0.1.example", Path, "the-right-token", hello, nil, 421},
		{"the address of a network", "10.0.0.5:7420", Path, "the-right-token", hello, nil, 421},
		{"no host", "", Path, "the-right-token", hello, nil, 421},
		{"another origin", "127.0.0.1:7420", Path, "the-right-token", hello, map[string]string{"Origin": "https://evil.example"}, 403},
		{"another port of this machine", "127.0.0.1:7420", Path, "the-right-token", hello, map[string]string{"Origin": "http://127.0.0.1:8888"}, 403},
		{"no origin that can be named", "127.0.0.1:7420", Path, "the-right-token", hello, map[string]string{"Origin": "null"}, 403},
		{"cross-site", "127.0.0.1:7420", Path, "the-right-token", hello, map[string]string{"Sec-Fetch-Site": "cross-site"}, 403},
		{"another port, without its origin", "127.0.0.1:7420", Path, "the-right-token", hello, map[string]string{"Sec-Fetch-Site": "same-site"}, 403},
		{"no token", "127.0.0.1:7420", Path, "", hello, nil, 401},
		{"a wrong token", "127.0.0.1:7420", Path, "the-wrong-token", hello, nil, 401},
		{"the beginning of the token", "127.0.0.1:7420", Path, "the-right", hello, nil, 401},
		{"another place", "127.0.0.1:7420", "/", "the-right-token", hello, nil, 404},
		{"too much", "127.0.0.1:7420", Path, "the-right-token", strings.Repeat(" ", maxBody) + hello, nil, 413},
	} {
		r := httptest.NewRequest(http.MethodPost, c.path, strings.NewReader(c.body))
		r.Host = c.host
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Accept", "application/json, text/event-stream")
		if c.token != "" {
			r.Header.Set("Authorization", "Bearer "+c.token)
		}
		for k, v := range c.headers {
			r.Header.Set(k, v)
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Code != c.status {
			t.Errorf("%s: status %d, want %d: %s", c.name, w.Code, c.status, w.Body)
		}
		if strings.Contains(w.Body.String(), "the-right-token") {
			t.Errorf("%s: the token is in the answer", c.name)
		}
	}
}

// TestHandlerWithoutToken lets nobody in: an empty token is no token.
func TestHandlerWithoutToken(t *testing.T) {
	r := httptest.NewRequest(http.MethodPost, Path, strings.NewReader("{}"))
	r.Host = "localhost"
	r.Header.Set("Authorization", "Bearer ")
	w := httptest.NewRecorder()
	Handler(New(options(t)), "").ServeHTTP(w, r)
	if w.Code != http.StatusUnauthorized {
		t.Errorf("status %d", w.Code)
	}
}
