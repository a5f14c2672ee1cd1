package web

import (
	"errors"
	"net/http"

	"github.com/inquest-dev/inquest/internal/desk"
	"github.com/inquest-dev/inquest/internal/report"
)

// showMemory shows what the memory snapshots of a case show.
func (s *site) showMemory(w http.ResponseWriter, r *http.Request) error {
	c, result, err := s.done(r)
	if err != nil {
		return err
	}
	m, err := s.Desk.Memory(r.Context(), c.ID)
	if errors.Is(err, desk.ErrNothing) {
		return &failure{http.StatusNotFound, "No memory snapshot is among the files of this case", "Record one with torch.cuda.memory._record_memory_history() and torch.cuda.memory._dump_snapshot(), and hand it over with the log.", nil}
	}
	if err != nil {
		return err
	}
	p := newCasePage(c, result, "memory")
	if p.Parts, err = report.MemoryPartsOf(m); err != nil {
		return err
	}
	return s.page(w, r, http.StatusOK, p.Parts.Title, "parts", p)
}
