package web

import (
	"errors"
	"net/http"
	"slices"
)

// A route is a page, or what a form or a script of a page asks for. The handler writes its answer
// with site.page, redirects, or returns an error, of which the frame makes a page (failure.go). Its
// body is bounded by maxBody.
type route struct {
	pattern string // as http.ServeMux takes it
	serve   func(*site, http.ResponseWriter, *http.Request) error
}

// allRoutes joins the tables that stand beside the handlers. A page is a row there; a table is
// a line here.
func allRoutes() []route {
	return slices.Concat(
		homeRoutes,
		caseRoutes,
		encyclopediaRoutes,
		searchRoutes,
		incidentRoutes,
		compareRoutes,
		verdictRoutes,
		[]route{{"/", (*site).nowhere}},
	)
}

// maxBody bounds what a form may send, in bytes; uploads alone are larger.
const maxBody = 1 << 20

// answer makes a handler of h, for requests with no more than a form in them.
func (s *site) answer(h func(*site, http.ResponseWriter, *http.Request) error) http.HandlerFunc {
	streamed := s.streamed(h)
	return func(w http.ResponseWriter, r *http.Request) {
		r.Body = http.MaxBytesReader(w, r.Body, maxBody)
		streamed(w, r)
	}
}

// streamed makes a handler of h, which reads a body of any length as it comes.
func (s *site) streamed(h func(*site, http.ResponseWriter, *http.Request) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if err := h(s, w, r); err != nil {
			s.fail(w, r, err)
		}
	}
}

var errNowhere = errors.New("no page here")

// nowhere answers what no other route does.
func (s *site) nowhere(w http.ResponseWriter, r *http.Request) error { return errNowhere }
