package api

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"
	"github.com/danielgtaylor/huma/v2/negotiation"

	"github.com/inquest-dev/inquest/internal/report"
)

// A call is the HTTP side of one request.
type call struct {
	r  *http.Request
	w  http.ResponseWriter
	rc *http.ResponseController
}

func newCall(w http.ResponseWriter, r *http.Request) *call {
	return &call{r: r, w: w, rc: http.NewResponseController(w)}
}

type callKey struct{}

// withCall lets an operation that reads or writes by itself find its request.
func withCall(ctx huma.Context, next func(huma.Context)) {
	r, w := humago.Unwrap(ctx)
	next(huma.WithValue(ctx, callKey{}, newCall(w, r)))
}

// noEmpty refuses a query parameter without a value: it is not as if it were left out.
func (s *server) noEmpty(ctx huma.Context, next func(huma.Context)) {
	u := ctx.URL()
	for name, values := range u.Query() {
		if slices.Contains(values, "") {
			_ = huma.WriteErr(s.api, ctx, http.StatusUnprocessableEntity, "the query parameter "+quoted(name)+" has no value; leave it out, or give it one")
			return
		}
	}
	next(ctx)
}

func callOf(ctx context.Context) *call { return ctx.Value(callKey{}).(*call) }

// chunk is how much is read or written under one deadline.
const chunk = 256 << 10

// write writes a body; a client that takes nothing for s.Idle is given up.
func (c *call) write(s *server, body []byte) {
	defer func() { _ = c.rc.SetWriteDeadline(time.Time{}) }() // the connection may serve another request
	for len(body) > 0 {
		n := min(len(body), chunk)
		_ = c.rc.SetWriteDeadline(s.Now().Add(s.Idle)) // an error: the writer has no deadlines, as in a test
		if _, err := c.w.Write(body[:n]); err != nil {
			return
		}
		body = body[n:]
	}
	_ = c.rc.Flush()
}

// An answer is what an operation answers with, complete before its first byte goes out.
type answer struct {
	status int // 0 is 200
	kind   string
	header map[string]string
	body   []byte
}

// answered is the output of operations that answer with bytes of their own.
type answered = huma.StreamResponse

// send answers.
func (s *server) send(ctx context.Context, a answer) (*answered, error) {
	return &answered{Body: func(huma.Context) {
		c := callOf(ctx)
		h := c.w.Header()
		for k, v := range a.header {
			h.Set(k, v)
		}
		h.Set("Content-Type", a.kind)
		h.Set("Content-Length", strconv.Itoa(len(a.body)))
		h.Set("X-Content-Type-Options", "nosniff")
		if bare(a.kind) == "text/html" {
			// A page that is opened from here is a document, not a part of the site: it can reach
			// neither the site nor anything else.
			h.Set("Content-Security-Policy", "sandbox allow-scripts; default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:; font-src data:")
		}
		if a.status != 0 {
			c.w.WriteHeader(a.status)
		}
		c.write(s, a.body)
	}}, nil
}

// sendJSON answers with v as JSON.
func (s *server) sendJSON(ctx context.Context, status int, v any, header map[string]string) (*answered, error) {
	return s.sendAs(ctx, status, "json", func(w io.Writer) error { return report.JSON(w, v) }, header)
}

// sendAs answers with what write writes in the named format.
func (s *server) sendAs(ctx context.Context, status int, format string, write func(io.Writer) error, header map[string]string) (*answered, error) {
	var b bytes.Buffer
	if err := write(&b); err != nil {
		return nil, problem(err)
	}
	return s.send(ctx, answer{status: status, kind: report.MediaType(format), header: header, body: b.Bytes()})
}

func writeJSON(w io.Writer, v any) error { return report.JSON(w, v) }

// bare is a media type without parameters.
func bare(kind string) string {
	kind, _, _ = strings.Cut(kind, ";")
	return kind
}

// asked is the format that a request wants: the one of the query, else the best of Accept, else
// JSON.
func asked(ctx context.Context, query string, formats []string) string {
	if query != "" {
		return query
	}
	kinds := []string{report.MediaType("json")}
	by := map[string]string{kinds[0]: "json"}
	for _, f := range formats {
		if kind := bare(report.MediaType(f)); by[kind] == "" {
			kinds, by[kind] = append(kinds, kind), f
		}
	}
	if f := by[negotiation.SelectQValue(callOf(ctx).r.Header.Get("Accept"), kinds)]; f != "" {
		return f
	}
	return "json"
}
