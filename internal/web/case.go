package web

import (
	"net/http"

	"github.com/inquest-dev/inquest/internal/incident"
)

var caseRoutes = []route{
	{"GET /cases", (*site).listCases},
	{"GET /cases/{id}", (*site).showCase},
	{"POST /cases/{id}/cancel", (*site).cancelCase},
	{"POST /cases/{id}/remove", (*site).removeCase},
}

func (s *site) listCases(w http.ResponseWriter, r *http.Request) error {
	return s.page(w, r, http.StatusOK, "Cases", "cases", s.Desk.Cases())
}

// showCase is the progress of a case, and its verdict when there is one.
func (s *site) showCase(w http.ResponseWriter, r *http.Request) error {
	c, err := s.Desk.Case(r.PathValue("id"))
	if err != nil {
		return err
	}
	if c.State == incident.CaseDone {
		return s.ended(w, r, c)
	}
	return s.page(w, r, http.StatusOK, c.Name, "case", c)
}

// ended shows the result of a case that is done.
func (s *site) ended(w http.ResponseWriter, r *http.Request, c *incident.Case) error {
	return s.page(w, r, http.StatusOK, c.Title, "case", c)
}

func (s *site) cancelCase(w http.ResponseWriter, r *http.Request) error {
	if err := s.Desk.Cancel(r.PathValue("id")); err != nil {
		return err
	}
	return see(w, r, "/cases/"+r.PathValue("id"))
}

func (s *site) removeCase(w http.ResponseWriter, r *http.Request) error {
	if err := s.Desk.Remove(r.PathValue("id")); err != nil {
		return err
	}
	return see(w, r, "/cases")
}
