package api

import (
	"context"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/sse"

	"github.com/inquest-dev/inquest/internal/incident"
)

// A Progress is a case in short.
type Progress struct {
	ID       string `json:"id"`
	State    string `json:"state" enum:"receiving,waiting,reading,done,failed,cancelled"`
	Files    int    `json:"files" doc:"How many there are."`
	Bytes    int64  `json:"bytes" doc:"Received, of all files."`
	Done     int    `json:"done" doc:"Artifacts that are read, of total."`
	Total    int    `json:"total" doc:"0 until it is known."`
	Title    string `json:"title" doc:"Headline of the result, empty before."`
	Outcome  string `json:"outcome" doc:"How the run ended, empty before."`
	Incident string `json:"incident" doc:"Id of the incident, empty before."`
	Error    string `json:"error" doc:"Why nothing could be answered, empty otherwise."`
}

// An End is the last event: nothing more will happen to the case.
type End struct{ Progress }

// A Heartbeat says that the stream is there, and nothing new.
type Heartbeat struct {
	ID string `json:"id"`
}

func progress(k *incident.Case) Progress {
	return Progress{ID: k.ID, State: k.State, Files: k.FileCount, Bytes: k.Bytes, Done: k.Done, Total: k.Total, Title: k.Title, Outcome: k.Outcome, Incident: k.Incident, Error: k.Error}
}

func (s *server) registerEvents() {
	sse.Register(s.api, huma.Operation{
		OperationID: "watchCase", Method: http.MethodGet, Path: "/v1/cases/{id}/events", Tags: []string{"cases"},
		Summary: "Follow a case",
		Description: `Server-sent events: progress at once and whenever the case has changed, at most ten times a second; heartbeat when there was nothing to say for a while; end, with which the stream ends. A client that
connects again gets the state as it then is.`,
		Middlewares: huma.Middlewares{s.knownCase},
		Errors:      []int{http.StatusNotFound},
	}, map[string]any{"progress": Progress{}, "end": End{}, "heartbeat": Heartbeat{}}, s.watch)
	ok := s.operation(http.MethodGet, "/v1/cases/{id}/events").Responses["200"]
	ok.Description = "The events, until the end of the case."
	ok.Content["text/event-stream"].Schema = eventSchema()
}

// eventSchema describes one event of the stream; huma's own describes an array of them, which the
// stream is not, and takes the text behind data: for what is written in it.
func eventSchema() *huma.Schema {
	one := func(name, component string) any {
		return map[string]any{
			"type": "object", "title": name, "required": []string{"event", "data"},
			"properties": map[string]any{
				"event": map[string]any{"const": name},
				"data":  map[string]any{"type": "string", "contentMediaType": "application/json", "contentSchema": ref(component)},
			},
		}
	}
	return &huma.Schema{Description: "An event. The stream is events one after the other, each with an empty line behind it.", Extensions: map[string]any{
		"oneOf": []any{one("progress", "Progress"), one("heartbeat", "Heartbeat"), one("end", "End")},
	}}
}

// knownCase refuses a case that there is not while that can still be said.
func (s *server) knownCase(ctx huma.Context, next func(huma.Context)) {
	if _, err := s.Desk.Case(ctx.Param("id")); err != nil {
		_ = huma.WriteErr(s.api, ctx, http.StatusNotFound, problem(err).Error())
		return
	}
	ctx.SetHeader("Cache-Control", "no-store")
	ctx.SetHeader("X-Accel-Buffering", "no") // a proxy is not to hold events back
	next(ctx)
}

func (s *server) watch(ctx context.Context, in *CaseInput, send sse.Sender) {
	ctx, cancel := context.WithCancel(ctx)
	news, over := make(chan *incident.Case), make(chan struct{})
	go func() {
		defer close(over)
		_ = s.Desk.Watch(ctx, in.ID, func(k *incident.Case) error { // it ends with the case, or with ctx
			select {
			case news <- k:
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		})
	}()
	defer func() {
		cancel()
		<-over
		_ = callOf(ctx).rc.SetWriteDeadline(time.Time{}) // the connection may serve another request
	}()
	beat := time.NewTicker(s.Heartbeat)
	defer beat.Stop()
	beat.Stop() // until the case as it is now has been said, which comes first
	for {
		var err error
		select {
		case k := <-news:
			if k.Ended() {
				_ = send.Data(End{progress(k)})
				return
			}
			err = send.Data(progress(k))
			beat.Reset(s.Heartbeat)
		case <-beat.C:
			err = send.Data(Heartbeat{in.ID})
		case <-over:
			return
		}
		if err != nil {
			return
		}
	}
}
