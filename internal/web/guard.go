package web

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/http"
	"strings"

	"github.com/inquest-dev/inquest/internal/request"
)

// A guard decides whether a request is answered at all:
//
//  1. its method is one that is used, and its address no longer than maxURL;
//  2. its Host is one of ours, so that a name that someone else resolves to this address (DNS
//     rebinding) reaches nothing;
//  3. it does not come from another site: what changes something comes from a page of ours, and
//     what reads from a page of ours or as a link that a person followed;
//  4. it has the token, where there is one.
//
// Programs send neither Origin nor Sec-Fetch-Site and pass the third check.
type guard struct {
	hosts  map[string]bool // in lower case, with ports
	token  string
	cookie string // its name: that of another inquest on this host is another
}

// maxURL bounds the address of a request, in bytes; the server bounds all headers together.
const maxURL = 8 << 10

// policy is what a page may load: nothing that is not from here, and no script or style in the page.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'"

func newGuard(hosts []string, token string) (*guard, error) {
	g := &guard{hosts: map[string]bool{}, token: token}
	for _, h := range hosts {
		g.hosts[strings.ToLower(h)] = true
	}
	if len(hosts) == 0 {
		return nil, errors.New("prepare pages: no host is named under which they are reached")
	}
	sum := sha256.Sum256([]byte("name " + token))
	g.cookie = "inquest-" + base64.RawURLEncoding.EncodeToString(sum[:6])
	return g, nil
}

// A refusal is why a request is not answered.
type refusal struct {
	status int
	says   string
}

// check is nil where r may be answered.
func (g *guard) check(r *http.Request) *refusal {
	switch r.Method {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete:
	default:
		return &refusal{http.StatusMethodNotAllowed, "this method is not used here"}
	}
	switch {
	case len(r.RequestURI) > maxURL:
		return &refusal{http.StatusRequestURITooLong, "the address is longer than 8 KiB"}
	case !g.ours(r.Host):
		return &refusal{http.StatusMisdirectedRequest, "this is not reached under that name; use the address that inquest serve printed, or allow the name with --allow-host"}
	case foreign(r):
		return &refusal{http.StatusForbidden, "the request comes from another site; open the page itself"}
	case !g.admits(r):
		return &refusal{http.StatusUnauthorized, "the token is missing or wrong; use the address with the token that inquest serve printed at its start"}
	}
	return nil
}

// ours reports whether a Host is one under which the pages are reached. Loopback addresses and
// localhost are, with every port: nobody else can make a browser take them for their own.
func (g *guard) ours(hostport string) bool {
	return g.hosts[strings.ToLower(hostport)] || request.Loopback(hostport)
}

// foreign reports whether a page from elsewhere made the request. A link in a chat or in a page
// of documentation may lead here; frames, images and fetches may not.
func foreign(r *http.Request) bool {
	if !request.Foreign(r) {
		return false
	}
	h := r.Header
	return request.OtherOrigin(r) || r.Method != http.MethodGet || h.Get("Sec-Fetch-Mode") != "navigate" || h.Get("Sec-Fetch-Dest") != "document"
}

// admits reports whether r has the token, or needs none: what is the same for everybody, and the
// page that takes the token.
func (g *guard) admits(r *http.Request) bool {
	if g.token == "" || r.URL.Path == "/enter" || strings.HasPrefix(r.URL.Path, "/static/") {
		return true
	}
	if kind, t, ok := strings.Cut(r.Header.Get("Authorization"), " "); ok && strings.EqualFold(kind, "Bearer") {
		return same(strings.TrimSpace(t), g.token)
	}
	for _, c := range r.CookiesNamed(g.cookie) {
		if same(c.Value, g.pass()) {
			return true
		}
	}
	return false
}

// pass is the value of the cookie. It is not the token: a browser sends cookies to every port of
// a host, and what hears one there cannot use the API with it by a bearer token.
func (g *guard) pass() string {
	sum := sha256.Sum256([]byte("cookie " + g.token))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

// same compares in a time that does not tell how much of a was right.
func same(a, b string) bool {
	x, y := sha256.Sum256([]byte(a)), sha256.Sum256([]byte(b))
	return subtle.ConstantTimeCompare(x[:], y[:]) == 1
}

// guarded answers with next what g lets pass, at a bounded pace.
func (s *site) guarded(g *guard, next http.Handler) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("/", next)
	mux.HandleFunc("/enter", func(w http.ResponseWriter, r *http.Request) { s.enter(g, w, r) })
	return s.paced(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		harden(w.Header())
		if no := g.check(r); no != nil {
			s.refuse(w, r, no)
			return
		}
		mux.ServeHTTP(w, r)
	}))
}

// harden sets what every answer says to browsers.
func harden(h http.Header) {
	h.Set("Content-Security-Policy", policy)
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
	// Nothing to other sites. With no-referrer, a form of ours would come with Origin: null.
	h.Set("Referrer-Policy", "same-origin")
	h.Set("Permissions-Policy", "camera=(), microphone=(), geolocation=(), payment=(), usb=(), serial=(), hid=(), display-capture=(), clipboard-read=()")
	h.Set("Cache-Control", "no-store")
}

// allowed lists the methods of the address of a request whose own method is not used at all: below
// /v1/ those that the API has for it.
func (s *site) allowed(r *http.Request) string {
	if isAPI(r.URL.Path) && s.API != nil {
		h := headers{}
		s.API.ServeHTTP(h, r)
		if a := http.Header(h).Get("Allow"); a != "" {
			return a
		}
	}
	return "GET, HEAD, POST"
}

// Headers takes what is answered, and keeps its headers only.
type headers http.Header

func (h headers) Header() http.Header         { return http.Header(h) }
func (h headers) Write(b []byte) (int, error) { return len(b), nil }
func (h headers) WriteHeader(int)             {}

func isAPI(path string) bool {
	return strings.HasPrefix(path, "/v1/") || path == "/openapi.json" || path == "/openapi.yaml"
}

// refuse answers what the guard does not let pass: to a browser that lacks the token with the
// page that takes it, to programs as the API answers errors, else in a line.
func (s *site) refuse(w http.ResponseWriter, r *http.Request, no *refusal) {
	if no.status == http.StatusMethodNotAllowed && w.Header().Get("Allow") == "" {
		w.Header().Set("Allow", s.allowed(r))
	}
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Connection", "close") // what was to be uploaded is not waited for
	}
	if no.status == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", `Bearer realm="inquest"`)
	}
	switch {
	case isAPI(r.URL.Path):
		b, _ := json.Marshal(map[string]any{"status": no.status, "title": http.StatusText(no.status), "detail": no.says})
		s.send(w, r, no.status, "application/problem+json", append(b, '\n'))
	case no.status == http.StatusUnauthorized && strings.Contains(r.Header.Get("Accept"), "text/html"):
		s.askToken(w, r, "")
	default:
		s.send(w, r, no.status, "text/plain; charset=utf-8", []byte(no.says+"\n"))
	}
}

// enter takes the token, from the address that was printed or from the form that asks for it, and
// gives the browser a cookie for it: the token does not stay in the address bar.
func (s *site) enter(g *guard, w http.ResponseWriter, r *http.Request) {
	given := ""
	switch r.Method {
	case http.MethodGet:
		given = r.URL.Query().Get("token")
	case http.MethodPost:
		r.Body = http.MaxBytesReader(w, r.Body, 4<<10)
		given = strings.TrimSpace(r.PostFormValue("token"))
	default:
		s.refuse(w, r, &refusal{http.StatusMethodNotAllowed, "this method is not used here"})
		return
	}
	switch {
	case g.token == "":
	case given == "":
		s.askToken(w, r, "")
		return
	case !same(given, g.token):
		s.askToken(w, r, "That is not the token of this inquest. A new one is made at each start.")
		return
	default:
		http.SetCookie(w, &http.Cookie{Name: g.cookie, Value: g.pass(), Path: "/", HttpOnly: true, SameSite: http.SameSiteStrictMode})
	}
	see(w, r, "/")
}

// askToken is the page that takes the token. A browser does not send the cookie where a link
// from elsewhere led here: the page asks again for what was wanted, as a page of ours.
func (s *site) askToken(w http.ResponseWriter, r *http.Request, wrong string) {
	again := ""
	if r.URL.Path != "/enter" && r.Method == http.MethodGet && !strings.HasPrefix(r.URL.Path, "//") && !strings.Contains(r.URL.Path, `\`) {
		again = r.URL.RequestURI()
	}
	if err := s.page(w, r, http.StatusUnauthorized, "Token", "enter", struct{ Wrong, Again string }{wrong, again}); err != nil {
		http.Error(w, "the token is missing", http.StatusUnauthorized)
	}
}
