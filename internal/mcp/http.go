package mcp

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"net/http"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/inquest-dev/inquest/internal/request"
)

// Path is where the tools are offered over HTTP.
const Path = "/mcp"

const (
	maxBody     = 4 << 20       // bytes of a request
	idleSession = 8 * time.Hour // after which a session that says nothing is forgotten
	// newProtocol is the first version of the protocol that has no sessions: what a request
	// says is all that there is, and its end is the end of the call.
	newProtocol = "2026-07-28"
)

// Handler offers s at Path over streamable HTTP to programs of this machine. A request must
// name a loopback address as its host, so that a name that somebody resolves to this machine
// reaches nothing; must not come from a page of another origin; and must have the token, because
// everybody on this machine reaches the address, and the tools read what its user may read.
func Handler(s *mcp.Server, token string) http.Handler {
	get := func(*http.Request) *mcp.Server { return s }
	sessions := mcp.NewStreamableHTTPHandler(get, &mcp.StreamableHTTPOptions{SessionTimeout: idleSession, MaxRequestBodyBytes: maxBody})
	single := mcp.NewStreamableHTTPHandler(get, &mcp.StreamableHTTPOptions{Stateless: true, PropagateRequestCancellation: true, MaxRequestBodyBytes: maxBody})
	both := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Mcp-Protocol-Version") >= newProtocol {
			single.ServeHTTP(w, r)
			return
		}
		sessions.ServeHTTP(w, r)
	})
	want := sha256.Sum256([]byte(token))
	verify := func(_ context.Context, given string, _ *http.Request) (*auth.TokenInfo, error) {
		got := sha256.Sum256([]byte(given))
		if token == "" || subtle.ConstantTimeCompare(got[:], want[:]) != 1 {
			return nil, auth.ErrInvalidToken
		}
		return &auth.TokenInfo{UserID: "user"}, nil
	}
	bearer := auth.RequireBearerToken(verify, &auth.RequireBearerTokenOptions{AllowMissingExpiration: true})(both)
	mux := http.NewServeMux()
	mux.Handle(Path, bearer)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Cache-Control", "no-store")
		switch {
		case !request.Loopback(r.Host):
			http.Error(w, "these tools are reached under a loopback address only", http.StatusMisdirectedRequest)
		case request.Foreign(r):
			http.Error(w, "the request comes from a page of another origin", http.StatusForbidden)
		default:
			mux.ServeHTTP(w, r)
		}
	})
}
