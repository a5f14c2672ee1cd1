// Package api is the HTTP API, version 1, and its OpenAPI document, which is made from the code.
// It is mounted behind the guard of the web package.
package api

import (
	"net/http"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"github.com/inquest-dev/inquest/internal/catalog"
	"github.com/inquest-dev/inquest/internal/desk"
	"github.com/inquest-dev/inquest/internal/store"
)

// Options are what the API works with.
type Options struct {
	Desk    *desk.Desk
	Catalog *catalog.Catalog
	Store   *store.Store // nil where there is none
	Version string
}

// Handler answers below /v1/, and /openapi.json and /openapi.yaml.
func Handler(o Options) (http.Handler, error) {
	mux := http.NewServeMux()
	humago.New(mux, huma.DefaultConfig("inquest", o.Version))
	return mux, nil
}
