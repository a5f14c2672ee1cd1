package web

import (
	"errors"
	"net/http"

	"github.com/inquest-dev/inquest/internal/desk"
	"github.com/inquest-dev/inquest/internal/report"
)

// showTracker shows what the experiment trackers of a case recorded.
func (s *site) showTracker(w http.ResponseWriter, r *http.Request) error {
	c, result, err := s.done(r)
	if err != nil {
		return err
	}
	t, err := s.Desk.Tracker(r.Context(), c.ID)
	if errors.Is(err, desk.ErrNothing) {
		return &failure{http.StatusNotFound, "No run of an experiment tracker is among the files of this case", "Hand over the folder that the tracker wrote, with the log: wandb, mlruns, the events files of TensorBoard, or what it exported.", nil}
	}
	if err != nil {
		return err
	}
	p := newCasePage(c, result, "tracker")
	if p.Parts, err = report.TrackerPartsOf(t); err != nil {
		return err
	}
	return s.page(w, r, http.StatusOK, p.Parts.Title, "parts", p)
}
