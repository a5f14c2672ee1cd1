// Package web serves the pages of inquest: rendered here, complete without scripts, with small
// scripts beside them, and nothing from elsewhere. It sees incidents, not the machinery: a desk
// diagnoses, the store has the incidents, the encyclopedia is a catalogue.
package web

import (
	"net/http"

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
	API     http.Handler // answers below /v1/ and /openapi.json
	// Hosts are the names and addresses, with ports, under which it is reached; any other Host or
	// Origin is refused. Token, where it is not "", must come with every request: a bearer token,
	// or the cookie that /enter?token=… sets.
	Hosts []string
	Token string
}

// A Sample is a run that comes with the program.
type Sample struct {
	Name, Title string
	Files       map[string]string // name of a file to its text
}

// Handler answers all requests, each behind the guard.
func Handler(o Options) (http.Handler, error) { panic("to be written") }
