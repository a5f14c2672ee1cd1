package web

import (
	"errors"
	"fmt"
	"mime"
	"net/http"

	"github.com/inquest-dev/inquest/internal/incident"
	"github.com/inquest-dev/inquest/internal/ledger"
	"github.com/inquest-dev/inquest/internal/report"
)

// maxForm bounds the body of a note's form: every byte of a text may come as three, and the name
// of its field comes too.
const maxForm = 3*ledger.MaxNote + 64

// note keeps a text with an incident. Nothing else of the store can be changed by a page: what
// confirms, closes or runs something is a command.
func (s *site) note(w http.ResponseWriter, r *http.Request) error {
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/x-www-form-urlencoded" {
		return &failure{status: http.StatusUnsupportedMediaType, title: "That is no note", todo: "Notes come from the form on an incident's page."}
	}
	r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	if err := r.ParseForm(); err != nil {
		var large *http.MaxBytesError
		if errors.As(err, &large) {
			return &failure{status: http.StatusRequestEntityTooLarge, title: "The note is too long", todo: fmt.Sprintf("A note has at most %d KiB. inquest incident export keeps whole files.", ledger.MaxNote>>10)}
		}
		return &failure{status: http.StatusBadRequest, title: "The note did not come whole", todo: "Go back and send it again.", err: err}
	}
	k, err := s.kept(r, r.PathValue("id"))
	if err != nil {
		return err
	}
	given := r.PostForm.Get("text")
	text, err := ledger.NoteText(given)
	if err != nil {
		return s.showIncident(w, r, http.StatusUnprocessableEntity, k, given, report.OneLine(err.Error())+".")
	}
	if _, err := s.Store.Act(incident.Act{Incident: k.ID, Kind: incident.ActNote, Text: text}); err != nil {
		return s.showIncident(w, r, http.StatusInternalServerError, k, given,
			"The note was not kept: the store could not be written ("+report.OneLine(err.Error())+"). Your text is still in the field.")
	}
	return see(w, r, incidentPath(k.ID)+"#acts")
}
