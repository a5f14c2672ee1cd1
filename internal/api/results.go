package api

import (
	"context"
	"io"
	"net/http"
	"net/url"
	"strconv"

	"github.com/danielgtaylor/huma/v2"

	"github.com/inquest-dev/inquest/internal/incident"
	"github.com/inquest-dev/inquest/internal/report"
)

// Bounds of what is asked for; the document and GET /v1/limits state them.
const (
	timelineMax = 5000 // events of a page of a timeline
	linesMax    = 500  // lines on each side of the one that is asked for
)

type incidentInput struct {
	CaseInput
	Format incidentFormat `query:"format"`
	As
}

type memoryInput struct {
	CaseInput
	Format memoryFormat `query:"format"`
	As
}

type trackerInput struct {
	CaseInput
	Format trackerFormat `query:"format"`
	As
}

type timelineInput struct {
	CaseInput
	Rank    ranks    `query:"rank" doc:"Only events of these ranks."`
	Kind    words    `query:"kind" doc:"Only events of these kinds."`
	Class   words    `query:"class" doc:"Only events of these classes."`
	Role    []string `query:"role" doc:"Only events with these roles." minItems:"1" maxItems:"6" enum:"first,rival,followed,recovered,last_good,other"`
	Attempt words    `query:"attempt" doc:"Only events of these attempts."`
	Limit   int      `query:"limit" minimum:"1" maximum:"5000" default:"500" doc:"Events of a page."`
	Cursor  string   `query:"cursor" pattern:"^[0-9]{1,9}$" doc:"The next of the page before."`
}

type linesInput struct {
	CaseInput
	Artifact string `query:"artifact" required:"true" minLength:"1" maxLength:"2048" doc:"As the incident names it."`
	Line     int64  `query:"line" minimum:"1" default:"1" doc:"Number of a line, the first is 1."`
	Offset   int64  `query:"offset" minimum:"-1" default:"-1" doc:"Of a byte; says which line is meant where it is not -1. With line it is found faster in a large file."`
	Before   int    `query:"before" minimum:"0" maximum:"500" default:"20" doc:"Lines before it."`
	After    int    `query:"after" minimum:"0" maximum:"500" default:"20" doc:"Lines after it."`
}

// Ranks of processes and names of ours: what a filter lets through.
type (
	ranks []int
	words []string
)

func (ranks) Schema(huma.Registry) *huma.Schema {
	from, to := 0.0, 1e7
	return list(64, &huma.Schema{Type: huma.TypeInteger, Minimum: &from, Maximum: &to})
}

func (words) Schema(huma.Registry) *huma.Schema {
	return list(16, &huma.Schema{Type: huma.TypeString, Pattern: `^[A-Za-z0-9_.:#-]{1,64}$`})
}

// list is a list of one to most values.
func list(most int, of *huma.Schema) *huma.Schema {
	least := 1
	return precomputed(&huma.Schema{Type: huma.TypeArray, Items: of, MinItems: &least, MaxItems: &most})
}

func precomputed(s *huma.Schema) *huma.Schema {
	s.PrecomputeMessages()
	return s
}

// A TimelinePage is a timeline of which Events are those that were asked for.
type timelinePage struct {
	*incident.Timeline
	Matched int    `json:"matched"` // events that the filters let through
	Next    string `json:"next"`    // cursor of the next page, "" behind the last
}

func (s *server) registerResults() {
	tags := []string{"results"}
	errs := []int{http.StatusNotFound, http.StatusConflict, http.StatusServiceUnavailable}
	huma.Register(s.api, huma.Operation{
		OperationID: "getIncident", Method: http.MethodGet, Path: "/v1/cases/{id}/incident", Tags: tags,
		Summary:   "What failed first, why, and what to change",
		Responses: responses(http.StatusOK, in(answers("The incident.", ref("Incident")), report.Formats())),
		Errors:    errs,
	}, func(ctx context.Context, in *incidentInput) (*answered, error) {
		if err := s.ended(in.ID); err != nil {
			return nil, err
		}
		inc, err := s.incidentOf(ctx, in.ID)
		if err != nil {
			return nil, err
		}
		return s.sendIncident(ctx, inc, in.Format, &in.As, nil)
	})
	page := &huma.Schema{AllOf: []*huma.Schema{ref("Timeline"), {
		Type: huma.TypeObject, Required: []string{"matched", "next"},
		Properties: map[string]*huma.Schema{
			"matched": {Type: huma.TypeInteger, Description: "Events that the filters let through."},
			"next":    {Type: huma.TypeString, Description: "Cursor of the next page, empty behind the last."},
		},
	}}}
	huma.Register(s.api, huma.Operation{
		OperationID: "getTimeline", Method: http.MethodGet, Path: "/v1/cases/{id}/timeline", Tags: tags,
		Summary: "What happened, event by event, across ranks",
		Description: `All attempts in order, in each the order that is known. Filters of several names must all let an event through; values of one name are given with commas, any of them suffices. Pages do not change: the same
cursor gives the same page.`,
		Responses: responses(http.StatusOK, answers("A page of the timeline.", page)),
		Errors:    errs,
	}, s.timeline)
	huma.Register(s.api, huma.Operation{
		OperationID: "getLines", Method: http.MethodGet, Path: "/v1/cases/{id}/lines", Tags: tags,
		Summary: "A window into an artifact", Description: "Secrets are masked, control characters are taken out, long lines are cut.",
		Responses: responses(http.StatusOK, answers("The window.", ref("Lines"))),
		Errors:    errs,
	}, func(ctx context.Context, in *linesInput) (*answered, error) {
		if err := s.ended(in.ID); err != nil {
			return nil, err
		}
		l, err := s.Desk.Lines(ctx, in.ID, in.Artifact, in.Line, in.Offset, in.Before, in.After)
		if err != nil {
			return nil, problem(err)
		}
		return s.sendJSON(ctx, http.StatusOK, l, nil)
	})
	huma.Register(s.api, huma.Operation{
		OperationID: "getMemory", Method: http.MethodGet, Path: "/v1/cases/{id}/memory", Tags: tags,
		Summary: "What the memory snapshots of a case show", Description: "404 where there is none among its files.",
		Responses: responses(http.StatusOK, in(answers("Of each snapshot.", ref("Memory")), report.MemoryFormats())),
		Errors:    errs,
	}, func(ctx context.Context, in *memoryInput) (*answered, error) {
		if err := s.ended(in.ID); err != nil {
			return nil, err
		}
		m, err := s.Desk.Memory(ctx, in.ID)
		if err != nil {
			return nil, problem(err)
		}
		f := asked(ctx, string(in.Format), report.MemoryFormats())
		return s.sendAs(ctx, http.StatusOK, f, func(w io.Writer) error { return report.WriteMemory(w, f, m, in.options()) }, nil)
	})
	huma.Register(s.api, huma.Operation{
		OperationID: "getTracker", Method: http.MethodGet, Path: "/v1/cases/{id}/tracker", Tags: tags,
		Summary: "What experiment trackers recorded of a case", Description: "404 where there is none among its files.",
		Responses: responses(http.StatusOK, in(answers("Of each run.", ref("Tracker")), report.TrackerFormats())),
		Errors:    errs,
	}, func(ctx context.Context, in *trackerInput) (*answered, error) {
		if err := s.ended(in.ID); err != nil {
			return nil, err
		}
		t, err := s.Desk.Tracker(ctx, in.ID)
		if err != nil {
			return nil, problem(err)
		}
		f := asked(ctx, string(in.Format), report.TrackerFormats())
		return s.sendAs(ctx, http.StatusOK, f, func(w io.Writer) error { return report.WriteTracker(w, f, t, in.options()) }, nil)
	})
}

// ended refuses to wait for a case: its events say when it has ended.
func (s *server) ended(id string) error {
	k, err := s.Desk.Case(id)
	if err != nil {
		return problem(err)
	}
	switch {
	case k.State == incident.CaseReceiving:
		return huma.Error409Conflict("the case still receives files; POST /v1/cases/" + id + "/diagnose ends that")
	case !k.Ended():
		return huma.Error409Conflict("the case is " + k.State + "; GET /v1/cases/" + id + "/events says when it has ended")
	case k.State == incident.CaseCancelled:
		return huma.Error409Conflict("the case was cancelled: it has no result")
	}
	return nil
}

func (s *server) timeline(ctx context.Context, in *timelineInput) (*answered, error) {
	from, _ := strconv.Atoi(in.Cursor) // its pattern is checked; "" is the beginning
	if err := s.ended(in.ID); err != nil {
		return nil, err
	}
	if _, err := s.incidentOf(ctx, in.ID); err != nil {
		return nil, err
	}
	res, err := s.Desk.Result(ctx, in.ID)
	if err != nil {
		return nil, problem(err)
	}
	p := paged(res.Timeline, in, from)
	var header map[string]string
	if p.Next != "" {
		header = map[string]string{"Link": nextPage(ctx, "/v1/cases/"+url.PathEscape(in.ID)+"/timeline", p.Next)}
	}
	return s.sendJSON(ctx, http.StatusOK, p, header)
}

// paged is the page of a timeline that begins with event from.
func paged(whole *incident.Timeline, in *timelineInput, from int) timelinePage {
	t := *whole
	t.Events = []incident.TimelineEvent{}
	p, filter := timelinePage{Timeline: &t}, in.filter()
	for i := range whole.Events {
		e := &whole.Events[i]
		if !filter.Keeps(e) {
			continue
		}
		p.Matched++
		switch {
		case e.N < from:
		case len(t.Events) < in.Limit:
			t.Events = append(t.Events, *e)
		case p.Next == "":
			p.Next = strconv.Itoa(e.N)
		}
	}
	return p
}

func (in *timelineInput) filter() incident.EventFilter {
	f := incident.EventFilter{Kinds: in.Kind, Classes: in.Class, Roles: in.Role, Attempts: in.Attempt}
	for _, r := range in.Rank {
		f.Ranks = append(f.Ranks, incident.RankRange{Low: r, High: r})
	}
	return f
}
