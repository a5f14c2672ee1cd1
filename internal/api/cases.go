package api

import (
	"context"
	"net/http"
	"net/url"
	"strconv"

	"github.com/danielgtaylor/huma/v2"

	"github.com/inquest-dev/inquest/internal/desk"
	"github.com/inquest-dev/inquest/internal/incident"
)

// small bounds the JSON of a request, in bytes.
const small = 64 << 10

// CaseInput names a case.
type CaseInput struct {
	ID string `path:"id" doc:"Of the case." maxLength:"128"`
}

type getCaseInput struct {
	CaseInput
	Limit  int    `query:"limit" minimum:"1" maximum:"5000" default:"1000" doc:"Files of a page."`
	Cursor string `query:"cursor" pattern:"^[0-9]{1,9}$" doc:"The next of the page before."`
}

// A casePage is a case of which Files are a page.
type casePage struct {
	*incident.Case
	Next string `json:"next"` // cursor of the next page, "" behind the last
}

type beginInput struct {
	Body struct {
		_    struct{} `additionalProperties:"false"`
		Name string   `json:"name,omitempty" doc:"What people call it; empty is the name of its first file." maxLength:"200" nullable:"true" example:"job 4711"`
	}
}

// A Handling is what is asked of the diagnosis of a case.
type Handling struct {
	_           struct{} `additionalProperties:"false"`
	Baseline    string   `json:"baseline,omitempty" doc:"Id of another case, of a run that worked: the incident says what differs." maxLength:"128" nullable:"true"`
	CompareHost string   `json:"compare_host,omitempty" doc:"A host that is not suspected, to hold that of the first fault against." maxLength:"256" nullable:"true"`
	All         bool     `json:"all,omitempty" doc:"Read every text, also what does not look like a log." nullable:"true"`
}

func (h *Handling) asked() desk.Handling {
	if h == nil {
		return desk.Handling{}
	}
	return desk.Handling{Baseline: h.Baseline, CompareHost: h.CompareHost, All: h.All}
}

type diagnoseCaseInput struct {
	CaseInput
	Body *Handling
}

// A CaseList is all cases.
type caseList struct {
	Cases []incident.Case `json:"cases"`
}

func (s *server) registerCases() {
	tags := []string{"cases"}
	huma.Register(s.api, huma.Operation{
		OperationID: "beginCase", Method: http.MethodPost, Path: "/v1/cases", Tags: tags,
		Summary: "Open a case", Description: "The case is empty and receives files.",
		DefaultStatus: http.StatusCreated, MaxBodyBytes: small, BodyReadTimeout: s.Idle,
		Responses: responses(http.StatusCreated, located(answers("The case.", ref("Case")), "Where the case is.")),
		Errors:    []int{http.StatusBadRequest, http.StatusRequestTimeout, http.StatusRequestEntityTooLarge, http.StatusUnsupportedMediaType, http.StatusTooManyRequests, http.StatusServiceUnavailable},
	}, func(ctx context.Context, in *beginInput) (*answered, error) {
		k, err := s.Desk.Begin(in.Body.Name)
		if err != nil {
			return nil, problem(err)
		}
		return s.sendJSON(ctx, http.StatusCreated, k, map[string]string{"Location": "/v1/cases/" + k.ID})
	})
	huma.Register(s.api, huma.Operation{
		OperationID: "listCases", Method: http.MethodGet, Path: "/v1/cases", Tags: tags,
		Summary: "List the cases", Description: "The newest first. Those that have ended are kept up to a number, then the oldest goes. Files are counted here, and listed by GET /v1/cases/{id}.",
		Responses: responses(http.StatusOK, answers("All cases.", &huma.Schema{
			Type: huma.TypeObject, Required: []string{"cases"},
			Properties: map[string]*huma.Schema{"cases": {Type: huma.TypeArray, Items: ref("Case")}},
		})),
	}, func(ctx context.Context, _ *struct{}) (*answered, error) {
		l := caseList{Cases: s.Desk.Cases()}
		if l.Cases == nil {
			l.Cases = []incident.Case{}
		}
		return s.sendJSON(ctx, http.StatusOK, l, nil)
	})
	page := &huma.Schema{AllOf: []*huma.Schema{ref("Case"), {
		Type: huma.TypeObject, Required: []string{"next"},
		Properties: map[string]*huma.Schema{
			"next": {Type: huma.TypeString, Description: "Cursor of the next page of files, empty behind the last."},
		},
	}}}
	huma.Register(s.api, huma.Operation{
		OperationID: "getCase", Method: http.MethodGet, Path: "/v1/cases/{id}", Tags: tags,
		Summary: "How far a case is", Description: "With a page of its files, in the order of their names; file_count says how many there are. A place changes when files of smaller names come.",
		Responses: responses(http.StatusOK, answers("The case as it is now.", page)),
		Errors:    []int{http.StatusNotFound},
	}, s.getCase)
	huma.Register(s.api, huma.Operation{
		OperationID: "removeCase", Method: http.MethodDelete, Path: "/v1/cases/{id}", Tags: tags,
		Summary: "Remove a case", Description: "Its files and its results go; a diagnosis that is under way ends.",
		DefaultStatus: http.StatusNoContent,
		Errors:        []int{http.StatusNotFound, http.StatusConflict},
	}, func(_ context.Context, in *CaseInput) (*struct{}, error) { return nil, problem(s.Desk.Remove(in.ID)) })
	huma.Register(s.api, huma.Operation{
		OperationID: "diagnoseCase", Method: http.MethodPost, Path: "/v1/cases/{id}/diagnose", Tags: tags,
		Summary: "Let a case be diagnosed", Description: "Ends the receiving and puts the case in line. The body may be left out.",
		DefaultStatus: http.StatusAccepted, MaxBodyBytes: small, BodyReadTimeout: s.Idle,
		Responses: responses(http.StatusAccepted, located(answers("The case, in line.", ref("Case")), "Where its events are.")),
		Errors:    []int{http.StatusBadRequest, http.StatusNotFound, http.StatusRequestTimeout, http.StatusConflict, http.StatusRequestEntityTooLarge, http.StatusUnsupportedMediaType, http.StatusTooManyRequests, http.StatusServiceUnavailable},
	}, func(ctx context.Context, in *diagnoseCaseInput) (*answered, error) {
		if err := s.Desk.Diagnose(in.ID, in.Body.asked()); err != nil {
			return nil, problem(err)
		}
		k, err := s.Desk.Case(in.ID)
		if err != nil {
			return nil, problem(err)
		}
		return s.sendJSON(ctx, http.StatusAccepted, k, map[string]string{"Location": "/v1/cases/" + k.ID + "/events"})
	})
	huma.Register(s.api, huma.Operation{
		OperationID: "cancelCase", Method: http.MethodPost, Path: "/v1/cases/{id}/cancel", Tags: tags,
		Summary: "End a case before its end", Description: "Its files go. The case stays, as cancelled.",
		Responses: responses(http.StatusOK, answers("The case.", ref("Case"))),
		Errors:    []int{http.StatusNotFound, http.StatusConflict},
	}, func(ctx context.Context, in *CaseInput) (*answered, error) {
		if err := s.Desk.Cancel(in.ID); err != nil {
			return nil, problem(err)
		}
		return s.sendCase(ctx, http.StatusOK, in.ID)
	})
}

func (s *server) getCase(ctx context.Context, in *getCaseInput) (*answered, error) {
	from, _ := strconv.Atoi(in.Cursor) // its pattern is checked; "" is the beginning
	k, err := s.Desk.Case(in.ID)
	if err != nil {
		return nil, problem(err)
	}
	p := casePage{Case: k}
	if k.Files, k.FileCount, err = s.Desk.Files(in.ID, from, in.Limit); err != nil {
		return nil, problem(err)
	}
	var header map[string]string
	if next := from + len(k.Files); next < k.FileCount && len(k.Files) > 0 {
		p.Next = strconv.Itoa(next)
		header = map[string]string{"Link": nextPage(ctx, "/v1/cases/"+url.PathEscape(in.ID), p.Next)}
	}
	return s.sendJSON(ctx, http.StatusOK, p, header)
}

// nextPage is the header Link with which a page names the next.
func nextPage(ctx context.Context, path, cursor string) string {
	q := callOf(ctx).r.URL.Query()
	q.Set("cursor", cursor)
	return "<" + path + "?" + q.Encode() + `>; rel="next"`
}

func (s *server) sendCase(ctx context.Context, status int, id string) (*answered, error) {
	k, err := s.Desk.Case(id)
	if err != nil {
		return nil, problem(err)
	}
	return s.sendJSON(ctx, status, k, nil)
}
