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
	"io"
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

// cases is what the tools ask of a desk.
type cases interface {
	Begin(name string) (*incident.Case, error)
	Local(name string, paths []string) (*incident.Case, error)
	Put(ctx context.Context, id, name string, r io.Reader) (int64, error)
	Diagnose(id string, h desk.Handling) error
	Cancel(id string) error
	Remove(id string) error
	Case(id string) (*incident.Case, error)
	Watch(ctx context.Context, id string, fn func(*incident.Case) error) error
	Result(ctx context.Context, id string) (*desk.Result, error)
	Lines(ctx context.Context, id, artifact string, n, offset int64, before, after int) (*incident.Lines, error)
	Memory(ctx context.Context, id string) (*incident.Memory, error)
}

// incidents is what the tools ask of a store.
type incidents interface {
	List(ctx context.Context) (*incident.Incidents, error)
	Find(ctx context.Context, name string, acts ...incident.Act) (*incident.Kept, error)
}

// A server is what the tools share.
type server struct {
	Options
	desk  cases
	store incidents // nil where there is none
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
	s := &server{Options: o, desk: o.Desk}
	if o.Store != nil {
		s.store = o.Store
	}
	return s.offer()
}

// offer makes the server of the protocol.
func (s *server) offer() *mcp.Server {
	s.mcp = mcp.NewServer(
		&mcp.Implementation{Name: "inquest", Title: "inquest: why a GPU training run failed", Version: s.Version},
		&mcp.ServerOptions{
			Instructions: instructions,
			// Nothing is logged, and the list of tools never changes.
			Capabilities: &mcp.ServerCapabilities{Tools: &mcp.ToolCapabilities{}},
		})
	s.index = sync.OnceValues(func() (*explain.Index, error) { return explain.NewIndex(s.Catalog) })
	for _, add := range tools {
		add(s)
	}
	s.mcp.AddReceivingMiddleware(bound)
	return s.mcp
}
