package web

import (
	"net/http"
	"slices"
	"strings"

	"github.com/inquest-dev/inquest/internal/incident"
)

var homeRoutes = []route{
	{"GET /{$}", (*site).home},
	{"POST /samples/{name}", (*site).trySample},
}

// recent is how many cases the first page lists.
const recent = 8

type homePage struct {
	Samples []Sample
	Cases   []incident.Case
	More    int // cases beyond those
}

func (s *site) home(w http.ResponseWriter, r *http.Request) error {
	p := homePage{Samples: s.Samples, Cases: s.Desk.Cases()}
	if n := len(p.Cases); n > recent {
		p.Cases, p.More = p.Cases[:recent], n-recent
	}
	return s.page(w, r, http.StatusOK, "What failed first", "home", p)
}

// trySample makes a case of a sample.
func (s *site) trySample(w http.ResponseWriter, r *http.Request) error {
	i := slices.IndexFunc(s.Samples, func(x Sample) bool { return x.Name == r.PathValue("name") })
	if i < 0 {
		return errNowhere
	}
	return s.newCase(w, r, func(begin func(name string) error, put putter) error {
		if err := begin("sample: " + s.Samples[i].Title); err != nil {
			return err
		}
		names := make([]string, 0, len(s.Samples[i].Files))
		for name := range s.Samples[i].Files {
			names = append(names, name)
		}
		slices.Sort(names)
		for _, name := range names {
			if err := put(name, strings.NewReader(s.Samples[i].Files[name])); err != nil {
				return err
			}
		}
		return nil
	})
}
