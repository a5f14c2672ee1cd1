// Package mcp offers inquest to agents over the Model Context Protocol: about ten tools, one file
// each. Text of logs is marked as data, answers have a budget, and no tool runs a command of the
// user's.
//
// An answer has its facts twice: as structured content, for programs, and as a short text, for a
// model that sees nothing else. Both together stay below Budget. What a tool says in its own
// words and what it has from logs are kept apart: see data.go.
package mcp

import (
	"context"
	_ "embed"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/inquest-dev/inquest/internal/catalog"
	"github.com/inquest-dev/inquest/internal/desk"
	"github.com/inquest-dev/inquest/internal/explain"
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
	// Done, where it is not nil, ends the calls in progress when it is closed.
	Done <-chan struct{}
}

// instructions are what every client is told about all tools at once.
//
//go:embed instructions.md
var instructions string

// A server is what the tools share.
type server struct {
	Options
	mcp   *mcp.Server
	index func() (*explain.Index, error) // of the encyclopedia, made at the first search
}

// tools lists what is offered. Adding one is a row here and a file beside this one.
var tools = []func(*server){
	addDiagnose,
	addGetTimeline,
	addReadEvidence,
	addSuggestMeasurement,
	addGetChecklist,
	addExplainFailure,
	addListIncidents,
	addShowIncident,
	addListGPUHolders,
	addSummarizeMemory,
	addAlignTracker,
}

// New makes a server with all tools. The same server serves standard streams and HTTP.
func New(o Options) *mcp.Server {
	s := &server{Options: o, mcp: mcp.NewServer(
		&mcp.Implementation{Name: "inquest", Title: "inquest: why a GPU training run failed", Version: o.Version},
		&mcp.ServerOptions{
			Instructions: instructions,
			// Nothing is logged, and the list of tools never changes.
			Capabilities: &mcp.ServerCapabilities{Tools: &mcp.ToolCapabilities{}},
		})}
	s.index = sync.OnceValues(func() (*explain.Index, error) { return explain.NewIndex(o.Catalog) })
	for _, add := range tools {
		add(s)
	}
	s.mcp.AddReceivingMiddleware(bound)
	return s.mcp
}
