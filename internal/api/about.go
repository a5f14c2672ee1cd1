package api

import (
	"context"
	"net/http"
	"reflect"

	"github.com/danielgtaylor/huma/v2"

	"github.com/inquest-dev/inquest/internal/incident"
	"github.com/inquest-dev/inquest/internal/ledger"
)

// Limits are what the server takes and gives.
type Limits struct {
	CaseBytes    int64   `json:"case_bytes" doc:"Of all files of one case."`
	AllBytes     int64   `json:"all_bytes" doc:"Of the files of all cases together."`
	Files        int     `json:"files" doc:"Of one case."`
	Cases        int     `json:"cases" doc:"That have ended and are kept; the oldest goes."`
	Open         int     `json:"open" doc:"Cases that have not ended."`
	IdleSeconds  float64 `json:"idle_seconds" doc:"For which a client may neither send nor take a byte."`
	JSONBytes    int64   `json:"json_bytes" doc:"Of the JSON in a request that is no note."`
	NoteBytes    int     `json:"note_bytes" doc:"Of the text of a note."`
	TimelinePage int     `json:"timeline_page" doc:"Events of a page of a timeline, at most."`
	Lines        int     `json:"lines" doc:"On each side of the line that is asked for, at most."`
}

// A Version says what answers.
type Version struct {
	Name    string `json:"name" enum:"inquest"`
	Version string `json:"version"`
	Schema  string `json:"schema" doc:"Name and version of the incident."`
	API     string `json:"api" enum:"v1"`
}

// A Health says that the server answers.
type Health struct {
	Status string `json:"status" enum:"ok"`
}

func (s *server) registerAbout() {
	about := func(id, path, summary string, v any) {
		schema := s.api.OpenAPI().Components.Schemas.Schema(reflect.TypeOf(v), true, "")
		huma.Register(s.api, huma.Operation{
			OperationID: id, Method: http.MethodGet, Path: path, Tags: []string{"about"}, Summary: summary,
			Responses: responses(http.StatusOK, answers("The answer.", schema)),
		}, func(ctx context.Context, _ *struct{}) (*answered, error) {
			return s.sendJSON(ctx, http.StatusOK, v, nil)
		})
	}
	l := s.Desk.Limits()
	about("getLimits", "/v1/limits", "What the server takes and gives", Limits{
		CaseBytes: l.CaseBytes, AllBytes: l.AllBytes, Files: l.Files, Cases: l.Cases, Open: l.Open,
		IdleSeconds: s.Idle.Seconds(), JSONBytes: small, NoteBytes: ledger.MaxNote, TimelinePage: timelineMax, Lines: linesMax,
	})
	about("getVersion", "/v1/version", "What answers", Version{Name: "inquest", Version: s.Version, Schema: incident.Schema, API: "v1"})
	about("getHealth", "/v1/health", "Whether the server answers", Health{Status: "ok"})
}
