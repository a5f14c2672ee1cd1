package api

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/inquest-dev/inquest/internal/incident"
	"github.com/inquest-dev/inquest/internal/ledger"
	"github.com/inquest-dev/inquest/internal/report"
)

// KeptInput names an incident that is kept.
type KeptInput struct {
	ID string `path:"id" doc:"Of the incident or its beginning, of one of its trials, of a launch, or last for the one that failed last." maxLength:"256"`
}

type listKeptInput struct {
	Status   []string        `query:"status" minItems:"1" maxItems:"5" enum:"open,unresolved,confirmed,regressed,closed" doc:"Only those that stand so."`
	Scenario string          `query:"scenario" minLength:"1" maxLength:"512" doc:"Only those whose scenario has this in it."`
	Since    time.Time       `query:"since" doc:"Only those that failed then or later."`
	All      bool            `query:"all" doc:"Closed ones too."`
	Format   incidentsFormat `query:"format"`
	As
}

type showKeptInput struct {
	KeptInput
	Format keptFormat `query:"format"`
	As
}

type compareInput struct {
	KeptInput
	With   string           `query:"with" minLength:"1" maxLength:"128" doc:"Id of a trial or its beginning; without it the newest that a verification made, else the newest of the incident, else the newest of the same program."`
	Format comparisonFormat `query:"format"`
	As
}

type noteInput struct {
	KeptInput
	Body struct {
		_    struct{} `additionalProperties:"false"`
		Text string   `json:"text" minLength:"1" maxLength:"65536" doc:"What somebody saw, asked or decided. Secrets in it are masked. At most 65536 bytes." example:"the node was drained by the operators at 14:10"`
	}
}

// noteBytes bounds the JSON of a note: a character may need six bytes.
const noteBytes = 6*ledger.MaxNote + 1024

func (s *server) registerKept() {
	tags := []string{"incidents"}
	errs := []int{http.StatusNotFound, http.StatusServiceUnavailable}
	huma.Register(s.api, huma.Operation{
		OperationID: "listIncidents", Method: http.MethodGet, Path: "/v1/incidents", Tags: tags,
		Summary: "List the incidents that are kept", Description: "Those that failed last first.",
		Responses: responses(http.StatusOK, in(answers("The list.", ref("Incidents")), report.IncidentsFormats())),
		Errors:    errs,
	}, s.listKept)
	huma.Register(s.api, huma.Operation{
		OperationID: "showIncident", Method: http.MethodGet, Path: "/v1/incidents/{id}", Tags: tags,
		Summary: "The whole story of an incident", Description: "What failed, what was tried since and what changed in each trial, what solved it, what did not help, what people noted.",
		Responses: responses(http.StatusOK, in(answers("The incident as it is kept.", ref("Kept")), report.KeptFormats())),
		Errors:    errs,
	}, s.showKept)
	huma.Register(s.api, huma.Operation{
		OperationID: "compareTrials", Method: http.MethodGet, Path: "/v1/incidents/{id}/compare", Tags: tags,
		Summary: "What changed between two trials, and whether it helped", Description: "The trial that failed, and one that was made since.",
		Responses: responses(http.StatusOK, in(answers("The comparison.", ref("Comparison")), report.ComparisonFormats())),
		Errors:    append([]int{http.StatusConflict}, errs...),
	}, s.compare)
	huma.Register(s.api, huma.Operation{
		OperationID: "noteIncident", Method: http.MethodPost, Path: "/v1/incidents/{id}/notes", Tags: tags,
		Summary: "Write something down with an incident", DefaultStatus: http.StatusCreated, MaxBodyBytes: noteBytes, BodyReadTimeout: s.Idle,
		Responses: responses(http.StatusCreated, answers("The note as it is kept.", ref("Kept.act"))),
		Errors:    append([]int{http.StatusBadRequest, http.StatusRequestTimeout, http.StatusRequestEntityTooLarge, http.StatusUnsupportedMediaType}, errs...),
	}, s.note)
}

// stored refuses where there is no store.
func (s *server) stored() error {
	if s.Store == nil {
		return huma.Error404NotFound("this server has no store of incidents; inquest serve --store DIR names one")
	}
	return nil
}

func (s *server) listKept(ctx context.Context, in *listKeptInput) (*answered, error) {
	if err := s.stored(); err != nil {
		return nil, err
	}
	l, err := s.Store.List(ctx)
	if err != nil {
		return nil, problem(err)
	}
	f := ledger.Filter{States: in.Status, Scenario: in.Scenario, All: in.All}
	if !in.Since.IsZero() {
		f.Since = in.Since.UTC().Format(time.RFC3339Nano)
	}
	f.Apply(l)
	form := asked(ctx, string(in.Format), report.IncidentsFormats())
	return s.sendAs(ctx, http.StatusOK, form, func(w io.Writer) error { return report.WriteIncidents(w, form, l, in.options()) }, nil)
}

func (s *server) kept(ctx context.Context, id string) (*incident.Kept, error) {
	if err := s.stored(); err != nil {
		return nil, err
	}
	k, err := s.Store.Find(ctx, id)
	return k, problem(err)
}

func (s *server) showKept(ctx context.Context, in *showKeptInput) (*answered, error) {
	k, err := s.kept(ctx, in.ID)
	if err != nil {
		return nil, err
	}
	f := asked(ctx, string(in.Format), report.KeptFormats())
	return s.sendAs(ctx, http.StatusOK, f, func(w io.Writer) error { return report.WriteKept(w, f, k, in.options()) }, nil)
}

func (s *server) compare(ctx context.Context, in *compareInput) (*answered, error) {
	k, err := s.kept(ctx, in.ID)
	if err != nil {
		return nil, err
	}
	x, y, err := s.pair(ctx, k, in.With)
	var named *ledger.NameError
	switch {
	case errors.As(err, &named) && len(named.IDs) == 0:
		return nil, huma.Error404NotFound(fmt.Sprintf("no trial %s is kept; GET /v1/incidents/%s lists those of the incident", quoted(named.Name), k.ID))
	case errors.As(err, &named), errors.Is(err, ledger.ErrOneTrial), errors.Is(err, ledger.ErrNoOriginal):
		return nil, huma.Error409Conflict(err.Error())
	case err != nil:
		return nil, problem(err)
	}
	c := ledger.Compare(*x, *y)
	f := asked(ctx, string(in.Format), report.ComparisonFormats())
	return s.sendAs(ctx, http.StatusOK, f, func(w io.Writer) error { return report.WriteComparison(w, f, &c, in.options()) }, nil)
}

// pair are the trial that failed and the one that with names, else the one that tells most.
func (s *server) pair(ctx context.Context, k *incident.Kept, with string) (x, y *incident.Trial, err error) {
	if with == "" {
		return s.Store.PairOf(ctx, k)
	}
	return s.Store.Pair(ctx, k.Original, with)
}

func (s *server) note(ctx context.Context, in *noteInput) (*answered, error) {
	text, err := ledger.NoteText(in.Body.Text)
	if err != nil {
		return nil, huma.Error422UnprocessableEntity(err.Error())
	}
	k, err := s.kept(ctx, in.ID)
	if err != nil {
		return nil, err
	}
	act, err := s.Store.Act(incident.Act{Incident: k.ID, Kind: incident.ActNote, Text: text})
	if err != nil {
		return nil, problem(err)
	}
	return s.sendJSON(ctx, http.StatusCreated, act, nil)
}
