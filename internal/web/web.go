// Package web serves the pages of inquest: rendered here, complete without scripts, with small
// scripts beside them, and nothing from elsewhere. It sees incidents, not the machinery: a desk
// diagnoses, the store has the incidents, the encyclopedia is a catalogue.
//
// A request passes the guard (guard.go) before anything answers it. Pages are rows of the tables
// that routes.go joins; each is rendered inside the frame (frame.go).
package web

import (
	"fmt"
	"net/http"
	"time"

	"github.com/inquest-dev/inquest/internal/catalog"
	"github.com/inquest-dev/inquest/internal/desk"
	"github.com/inquest-dev/inquest/internal/store"
)

// Options are what the pages work with.
type Options struct {
	Desk    *desk.Desk
	Catalog *catalog.Catalog
	Store   *store.Store // nil where there is none
	Samples []Sample     // to try the page with
	Version string
	API     http.Handler // answers below /v1/ and /openapi.json; nil where there is none
	// Hosts are the names and addresses, with ports, under which it is reached; any other Host or
	// Origin is refused. A loopback address or localhost among them is accepted with every port:
	// a forwarded one is another.
	Hosts []string
	// Token, where it is not "", must come with every request: a bearer token, or the cookie that
	// /enter?token=… sets.
	Token string
	Now   func() time.Time // for deadlines of slow connections
}

// A Sample is a run that comes with the program.
type Sample struct {
	Name, Title string
	Files       map[string]string // name of a file to its text
}

// A site is what all pages share. It does not change once it is made.
type site struct {
	Options
	frame  *frame
	static *static
	know   *knowledge
}

// Handler answers all requests, each behind the guard.
func Handler(o Options) (http.Handler, error) {
	files, err := newStatic()
	if err != nil {
		return nil, fmt.Errorf("prepare pages: %w", err)
	}
	s := &site{Options: o, static: files, know: newKnowledge(o.Catalog)}
	if s.frame, err = newFrame(files); err != nil {
		return nil, fmt.Errorf("prepare pages: %w", err)
	}
	g, err := newGuard(o.Hosts, o.Token)
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	for _, r := range allRoutes() {
		mux.HandleFunc(r.pattern, s.answer(r.serve))
	}
	for _, r := range uploadRoutes {
		mux.HandleFunc(r.pattern, s.streamed(r.serve))
	}
	mux.Handle("GET /static/", files)
	if o.API != nil {
		for _, p := range []string{"/v1/", "/openapi.json", "/openapi.yaml"} {
			mux.Handle(p, o.API)
		}
	}
	return s.guarded(g, mux), nil
}
