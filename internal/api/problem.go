package api

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/inquest-dev/inquest/internal/desk"
	"github.com/inquest-dev/inquest/internal/store"
)

// problem is the answer to an error of the desk, the store or a body.
func problem(err error) error {
	var body *bodyError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &body):
		status, detail := http.StatusBadRequest, "the body ended early, after %d bytes; send the file again"
		if stalled := net.Error(nil); errors.As(err, &stalled) && stalled.Timeout() {
			status, detail = http.StatusRequestTimeout, "nothing came for too long after %d bytes; send the file again"
		}
		// The server answers at once then, instead of waiting for the rest.
		return huma.ErrorWithHeaders(huma.NewError(status, fmt.Sprintf(detail, body.after)), http.Header{"Connection": {"close"}})
	case errors.Is(err, desk.ErrNoCase):
		return huma.Error404NotFound("there is no such case: it was never opened, or it was removed; GET /v1/cases lists those that there are")
	case errors.Is(err, desk.ErrName):
		return huma.Error422UnprocessableEntity(err.Error() + "; a name is relative, with slashes, without . and .. elements")
	case errors.Is(err, desk.ErrTwice), errors.Is(err, desk.ErrState):
		return huma.Error409Conflict(err.Error())
	case errors.Is(err, desk.ErrTooLarge):
		return huma.NewError(http.StatusRequestEntityTooLarge, err.Error()+"; GET /v1/limits says how much is taken")
	case errors.Is(err, desk.ErrTooMany):
		return huma.ErrorWithHeaders(huma.Error429TooManyRequests(err.Error()+"; GET /v1/limits says how many are taken"), http.Header{"Retry-After": {"10"}})
	case errors.Is(err, desk.ErrSpace):
		return huma.NewError(http.StatusInsufficientStorage, err.Error())
	case errors.Is(err, desk.ErrNothing):
		return huma.Error404NotFound(err.Error())
	case errors.Is(err, desk.ErrFailed):
		return huma.Error422UnprocessableEntity(err.Error())
	// The client went, or the server ends. Who went does not read it.
	case errors.Is(err, desk.ErrClosed), errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return huma.Error503ServiceUnavailable("the server is ending")
	case errors.Is(err, store.ErrNotFound):
		return huma.Error404NotFound(err.Error())
	}
	var status huma.StatusError
	if errors.As(err, &status) {
		return err
	}
	return huma.Error500InternalServerError(err.Error())
}

// refusing answers what no operation is for (404, 405) as all errors are answered. A body that
// nobody asks for is waited for as long as one that is read.
func (s *server) refusing(mux *http.ServeMux) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ContentLength != 0 {
			_ = http.NewResponseController(w).SetReadDeadline(s.Now().Add(s.Idle))
		}
		h, pattern := mux.Handler(r)
		if pattern != "" {
			mux.ServeHTTP(w, r)
			return
		}
		was := &refusal{header: w.Header(), status: http.StatusNotFound}
		h.ServeHTTP(was, r)
		detail := fmt.Sprintf("there is no %s; GET /openapi.json describes what there is", quoted(r.URL.Path))
		if was.status == http.StatusMethodNotAllowed {
			detail = fmt.Sprintf("%s is not for %s; it takes %s", quoted(r.Method), quoted(r.URL.Path), w.Header().Get("Allow"))
		}
		w.Header().Set("Content-Type", "application/problem+json")
		w.WriteHeader(was.status)
		_ = writeJSON(w, huma.NewError(was.status, detail))
	})
}

// quoted is text of a request, bounded, as a word of a sentence.
func quoted(text string) string {
	if len(text) > 200 {
		text = text[:200] + "…"
	}
	return fmt.Sprintf("%q", text)
}

// A refusal takes what the router says of a request that it knows no handler for.
type refusal struct {
	header http.Header
	status int
}

func (f *refusal) Header() http.Header         { return f.header }
func (f *refusal) WriteHeader(status int)      { f.status = status }
func (f *refusal) Write(b []byte) (int, error) { return len(b), nil }
