package web

import "net/http"

// showTimeline shows what happened in a case, event by event. The script of the page asks for
// the same address and takes the parts that changed from the answer.
func (s *site) showTimeline(w http.ResponseWriter, r *http.Request) error {
	c, result, err := s.done(r)
	if err != nil {
		return err
	}
	q, problems := readTimelineQuery(r.URL.Query())
	p := newTimelinePage(c, result.Timeline, q, problems)
	p.casePage = newCasePage(c, result, "timeline")
	return s.page(w, r, http.StatusOK, "Timeline of "+c.Name, "timeline", p)
}
