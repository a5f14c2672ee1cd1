package request

import (
	"mime/multipart"
	"net/http/httptest"
	"net/textproto"
	"testing"
)

func TestLoopback(t *testing.T) {
	for host, want := range map[string]bool{
		"127.0.0.1": true, "127.0.0.1:80": true, "127.9.9.9:80": true, "[::1]:80": true, "::1": true, "[::1]": true, "[::ffff:127.0.0.1]:80": true, "localhost": true, "LOCALHOST:1": true,
		"": false, ":80": false, "0.0.0.0:80": false, "[::]:80": false, "10.0.0.1:80": false, "localhost.example:80": false, "127.0.0.1.example": false, "node1:80": false,
	} {
		if got := Loopback(host); got != want {
			t.Errorf("Loopback(%q) = %v", host, got)
		}
	}
}

func TestForeign(t *testing.T) {
	for _, c := range []struct {
		name   string
		header map[string][]string
		want   bool
	}{
		{"a program", nil, false},
		{"the page itself", map[string][]string{"Origin": {"http://Here:1"}, "Sec-Fetch-Site": {"same-origin"}}, false},
		{"a person", map[string][]string{"Sec-Fetch-Site": {"none"}}, false},
		{"another port", map[string][]string{"Origin": {"http://here:2"}}, true},
		{"another scheme", map[string][]string{"Origin": {"https://here:1"}}, true},
		{"no origin that can be named", map[string][]string{"Origin": {"null"}}, true},
		{"two origins", map[string][]string{"Origin": {"http://here:1", "http://there"}}, true},
		{"another site", map[string][]string{"Sec-Fetch-Site": {"cross-site"}}, true},
		{"two sites", map[string][]string{"Sec-Fetch-Site": {"same-origin", "cross-site"}}, true},
		{"a neighbour", map[string][]string{"Sec-Fetch-Site": {"same-site"}}, true},
	} {
		r := httptest.NewRequest("GET", "http://here:1/", nil)
		for k, v := range c.header {
			r.Header[k] = v
		}
		if got := Foreign(r); got != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
	}
}

func TestFileName(t *testing.T) {
	for disposition, want := range map[string]string{
		`form-data; name="files"; filename="job/rank_0.log"`: "job/rank_0.log",
		`form-data; name="files"; filename*=UTF-8''a%2Fb`:    "a/b",
		`form-data; name="text"`:                             "",
		`form-data; name="files"; filename=""`:               "",
		`form-data; name="files"; filename="../x"`:           "../x",
		`form-data; =`: "",
	} {
		p := &multipart.Part{Header: textproto.MIMEHeader{"Content-Disposition": {disposition}}}
		if got := FileName(p); got != want {
			t.Errorf("%s: %q, want %q", disposition, got, want)
		}
	}
}
