// Package api is the HTTP API, version 1, and its OpenAPI document, which is made from the code.
// It is mounted behind the guard of the web package, which checks Host, Origin and token.
//
// What it answers are the published results, byte for byte as the command line writes them. Bodies
// of uploads go to the desk while they come and are never held in memory. An upload may take as
// long as it needs as long as bytes come; see Options.Idle.
package api

import (
	"net/http"
	"sync"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"github.com/inquest-dev/inquest/internal/catalog"
	"github.com/inquest-dev/inquest/internal/desk"
	"github.com/inquest-dev/inquest/internal/explain"
	"github.com/inquest-dev/inquest/internal/store"
)

// Options are what the API works with.
type Options struct {
	Desk    *desk.Desk
	Catalog *catalog.Catalog
	Store   *store.Store // nil where there is none
	Version string

	// Idle is how long a client may neither send nor take a byte before its request is ended; 0
	// is a minute. Heartbeat is how often a stream of events that has nothing to say says so; 0
	// is 15 seconds.
	Idle, Heartbeat time.Duration
	Now             func() time.Time // nil is the clock
}

// A server answers the operations.
type server struct {
	Options
	api   huma.API
	index func() (*explain.Index, error) // made at the first search
}

// Handler answers below /v1/, and /openapi.json and /openapi.yaml. The http.Server that it is
// served by has no ReadTimeout and no WriteTimeout: each request sets its own, byte for byte.
func Handler(o Options) (http.Handler, error) {
	s, mux, err := newServer(o)
	if err != nil {
		return nil, err
	}
	return s.refusing(mux), nil
}

func newServer(o Options) (*server, *http.ServeMux, error) {
	if o.Idle == 0 {
		o.Idle = time.Minute
	}
	if o.Heartbeat == 0 {
		o.Heartbeat = 15 * time.Second
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	s := &server{Options: o}
	s.index = sync.OnceValues(func() (*explain.Index, error) { return explain.NewIndex(o.Catalog) })
	mux := http.NewServeMux()
	s.api = humago.New(mux, config(o.Version))
	s.api.UseMiddleware(s.noEmpty, withCall)
	if err := s.publish(); err != nil {
		return nil, nil, err
	}
	for _, register := range groups {
		register(s)
	}
	s.finish()
	s.serveDocument(mux)
	return s, mux, nil
}

// groups lists the operations, in the order in which the document has them. Adding some is a row
// here and a file beside this one.
var groups = []func(*server){
	(*server).registerCases,
	(*server).registerUpload,
	(*server).registerDiagnose,
	(*server).registerEvents,
	(*server).registerResults,
	(*server).registerKept,
	(*server).registerKnowledge,
	(*server).registerAbout,
}
