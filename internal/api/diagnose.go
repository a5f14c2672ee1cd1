package api

import (
	"context"
	"io"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/inquest-dev/inquest/internal/incident"
	"github.com/inquest-dev/inquest/internal/report"
)

// As says in which form a result is wanted.
type As struct {
	For   string `query:"for" enum:"engineer,on-call,executive" default:"engineer" doc:"Who reads it; JSON has everything for everyone."`
	Full  bool   `query:"full" doc:"All of it; a text has at most 40 lines otherwise."`
	Width int    `query:"width" minimum:"40" maximum:"200" default:"100" doc:"Columns of a text."`
}

func (a *As) options() report.Options {
	return report.Options{For: a.For, Full: a.Full, Width: a.Width}
}

// Formats of results, by their own lists: the document names what there is.
type (
	incidentFormat   string
	memoryFormat     string
	trackerFormat    string
	keptFormat       string
	incidentsFormat  string
	comparisonFormat string
)

func formatSchema(formats []string) *huma.Schema {
	s := &huma.Schema{Type: huma.TypeString, Description: "In which form; it goes before the header Accept. JSON where neither says."}
	for _, f := range formats {
		s.Enum = append(s.Enum, f)
	}
	return precomputed(s)
}

func (incidentFormat) Schema(huma.Registry) *huma.Schema { return formatSchema(report.Formats()) }
func (memoryFormat) Schema(huma.Registry) *huma.Schema   { return formatSchema(report.MemoryFormats()) }
func (trackerFormat) Schema(huma.Registry) *huma.Schema  { return formatSchema(report.TrackerFormats()) }
func (keptFormat) Schema(huma.Registry) *huma.Schema     { return formatSchema(report.KeptFormats()) }
func (incidentsFormat) Schema(huma.Registry) *huma.Schema {
	return formatSchema(report.IncidentsFormats())
}
func (comparisonFormat) Schema(huma.Registry) *huma.Schema {
	return formatSchema(report.ComparisonFormats())
}

type diagnoseInput struct {
	Name fileName `query:"name" doc:"Of the file that the body is; of no meaning for a form." example:"rank_0.log"`
	Modified
	Baseline    string         `query:"baseline" doc:"Id of another case, of a run that worked: the incident says what differs." minLength:"1" maxLength:"128"`
	CompareHost string         `query:"compare_host" doc:"A host that is not suspected, to hold that of the first fault against." minLength:"1" maxLength:"256"`
	All         bool           `query:"all" doc:"Read every text, also what does not look like a log."`
	Discard     bool           `query:"discard" doc:"Remove the case when the answer is made; it stays otherwise, and Location names it."`
	Format      incidentFormat `query:"format"`
	As
}

func (s *server) registerDiagnose() {
	const at = "/v1/diagnose"
	huma.Register(s.api, huma.Operation{
		OperationID: "diagnose", Method: http.MethodPost, Path: at, Tags: []string{"cases"},
		Summary: "Hand files over and wait for the diagnosis",
		Description: `A case in one request: the body is one file (a log, an archive), or a form with files, whose names may have folders. It is written while it comes. The answer comes when the diagnosis is made; a client that goes
before ends it. With status 200 the case stays, and Location names it: its timeline and lines can be asked for.`,
		Responses: responses(http.StatusOK, located(in(answers("The incident.", ref("Incident")), report.Formats()), "Where the case is.")),
		Errors:    []int{http.StatusBadRequest, http.StatusNotFound, http.StatusRequestTimeout, http.StatusConflict, http.StatusRequestEntityTooLarge, http.StatusTooManyRequests, http.StatusServiceUnavailable, http.StatusInsufficientStorage},
	}, s.diagnose)
	s.takes(http.MethodPost, at, "One file, or a form with files.", map[string]*huma.MediaType{
		"application/octet-stream": {Schema: binary},
		"multipart/form-data": {Schema: &huma.Schema{
			Type: huma.TypeObject, Required: []string{"file"},
			Properties: map[string]*huma.Schema{"file": {Type: huma.TypeArray, Items: binary, Description: "Files; every part that has a filename is one, whatever its name."}},
		}},
	})
}

func (s *server) diagnose(ctx context.Context, in *diagnoseInput) (*answered, error) {
	written, err := in.written(s.Now())
	if err != nil {
		return nil, err
	}
	k, err := s.Desk.Begin("")
	if err != nil {
		return nil, problem(err)
	}
	stays := false
	defer func() {
		if !stays {
			_ = s.Desk.Remove(k.ID) // it may be gone already
		}
	}()
	n, err := s.receive(ctx, callOf(ctx), k.ID, string(in.Name), written)
	if err != nil {
		return nil, problem(err)
	}
	if n == 0 {
		return nil, huma.Error422UnprocessableEntity("the form has no file: curl -F file=@rank_0.log sends one")
	}
	h := Handling{Baseline: in.Baseline, CompareHost: in.CompareHost, All: in.All}
	if err := s.Desk.Diagnose(k.ID, h.asked()); err != nil {
		return nil, problem(err)
	}
	inc, err := s.incidentOf(ctx, k.ID)
	if err != nil {
		return nil, err
	}
	stays = !in.Discard
	header := map[string]string{}
	if stays {
		header["Location"] = "/v1/cases/" + k.ID
	}
	return s.sendIncident(ctx, inc, in.Format, &in.As, header)
}

// incidentOf waits for the incident of a case. The error is an answer.
func (s *server) incidentOf(ctx context.Context, id string) (*incident.Incident, error) {
	res, err := s.Desk.Result(ctx, id)
	if err != nil {
		return nil, problem(err)
	}
	return res.Incident, nil
}

func (s *server) sendIncident(ctx context.Context, inc *incident.Incident, format incidentFormat, a *As, header map[string]string) (*answered, error) {
	f := asked(ctx, string(format), report.Formats())
	return s.sendAs(ctx, http.StatusOK, f, func(w io.Writer) error { return report.Write(w, f, inc, a.options()) }, header)
}
