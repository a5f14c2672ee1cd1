package web

import (
	"encoding/json"
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

// stateWords say the states of a case to a person.
var stateWords = map[string]string{
	incident.CaseReceiving: "Files are coming",
	incident.CaseWaiting:   "Waiting for its turn",
	incident.CaseReading:   "Reading",
	incident.CaseDone:      "Done",
	incident.CaseFailed:    "Nothing could be answered",
	incident.CaseCancelled: "Cancelled",
}

// A progressPage is what the template case is given.
type progressPage struct {
	Case      *incident.Case
	Word      string // its state
	Words     string // all of them, as JSON, for the script
	MoreFiles int    // beyond those that are listed
}

// showCase is the progress of a case, and its verdict when there is one.
func (s *site) showCase(w http.ResponseWriter, r *http.Request) error {
	c, err := s.Desk.Case(r.PathValue("id"))
	if err != nil {
		return err
	}
	if c.Ended() {
		return s.ended(w, r, c)
	}
	return s.progress(w, r, c)
}

// progress shows how far a case is that has not ended. A script follows it;
// without, the page loads itself again.
func (s *site) progress(w http.ResponseWriter, r *http.Request, c *incident.Case) error {
	words, err := json.Marshal(stateWords)
	if err != nil {
		return err
	}
	p := progressPage{Case: c, Word: stateWords[c.State], Words: string(words), MoreFiles: c.FileCount - len(c.Files)}
	return s.page(w, r, http.StatusOK, stateWords[c.State]+": "+c.Name, "case", p)
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
