package api

import (
	"bufio"
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/inquest-dev/inquest/internal/desk"
)

// An event is one of a stream.
type event struct {
	name string
	Progress
}

// watch opens the events of a case; next returns one, and false behind the last.
func (s *site) watch(ctx context.Context, id string) (next func() (event, bool)) {
	s.t.Helper()
	r, err := http.NewRequestWithContext(ctx, "GET", s.URL+"/v1/cases/"+id+"/events", nil)
	if err != nil {
		s.t.Fatal(err)
	}
	resp, err := s.Client().Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { resp.Body.Close() })
	if kind := resp.Header.Get("Content-Type"); resp.StatusCode != 200 || kind != "text/event-stream" {
		s.t.Fatalf("%s, %s", resp.Status, kind)
	}
	lines := bufio.NewScanner(resp.Body)
	return func() (e event, ok bool) {
		for lines.Scan() {
			switch name, value, _ := strings.Cut(lines.Text(), ": "); name {
			case "event":
				e.name = value
			case "data":
				if err := json.Unmarshal([]byte(value), &e.Progress); err != nil {
					s.t.Errorf("%s: %v", value, err)
				}
			case "":
				return e, true
			}
		}
		return e, false
	}
}

// TestEvents follows a case from its opening to its end, and another request goes over the same
// connection afterwards.
func TestEvents(t *testing.T) {
	s := newSite(t, desk.Limits{}, nil)
	k := s.begin()
	next := s.watch(t.Context(), k.ID)
	if e, ok := next(); !ok || e.name != "progress" || e.State != "receiving" || e.ID != k.ID {
		t.Fatalf("the first: %+v, %t", e, ok)
	}
	s.want(s.do("PUT", "/v1/cases/"+k.ID+"/files/rank_0.log", oom), 201, nil)
	s.want(s.do("POST", "/v1/cases/"+k.ID+"/diagnose", ""), 202, nil)
	var last event
	for e, ok := next(); ok; e, ok = next() {
		if last.name == "end" {
			t.Errorf("%+v behind the end", e)
		}
		last = e
	}
	if last.name != "end" || last.State != "done" || last.Files != 1 || last.Bytes != int64(len(oom)) || last.Outcome != "failed" || last.Title == "" {
		t.Errorf("the last: %+v", last)
	}
	if e, ok := s.watch(t.Context(), k.ID)(); !ok || e.name != "end" {
		t.Errorf("of a case that has ended: %+v", e)
	}
	s.want(s.do("GET", "/v1/cases/"+k.ID, ""), 200, nil)
	s.want(s.do("GET", "/v1/cases/none/events", ""), 404, nil)
}

// TestHeartbeat waits on a case for which nothing happens, and goes.
func TestHeartbeat(t *testing.T) {
	s := newSite(t, desk.Limits{}, func(o *Options) { o.Heartbeat = time.Millisecond })
	ctx, cancel := context.WithCancel(t.Context())
	next := s.watch(ctx, s.begin().ID)
	for _, want := range []string{"progress", "heartbeat", "heartbeat"} {
		if e, ok := next(); !ok || e.name != want {
			t.Fatalf("%+v, want %s", e, want)
		}
	}
	cancel()
	for _, ok := next(); ok; _, ok = next() {
	}
	// Close waits for requests that are answered: the stream has ended.
	s.Server.Close()
}
