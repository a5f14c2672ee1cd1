// Package mcp offers inquest to agents over the Model Context Protocol: about ten tools, one file
// each. Text of logs is marked as data, answers have a budget, and no tool runs a command of the
// user's.
package mcp

import (
	"context"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/inquest-dev/inquest/internal/catalog"
	"github.com/inquest-dev/inquest/internal/desk"
	"github.com/inquest-dev/inquest/internal/incident"
	"github.com/inquest-dev/inquest/internal/store"
)

// Options are what the tools work with.
type Options struct {
	Desk    *desk.Desk
	Catalog *catalog.Catalog
	Store   *store.Store // nil where there is none
	GPUs    func(context.Context) (*incident.Holders, error)
	// Align sets runs of a tracker against logs: inquest tracker align.
	Align   func(ctx context.Context, run string, logs []string) (*incident.Alignment, error)
	Version string
}

// New makes a server with all tools. The same server serves standard streams and HTTP.
func New(o Options) *mcp.Server { panic("to be written") }
