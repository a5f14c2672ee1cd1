package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/inquest-dev/inquest/encyclopedia"
	"github.com/inquest-dev/inquest/internal/catalog"
	"github.com/inquest-dev/inquest/internal/desk"
	"github.com/inquest-dev/inquest/internal/engine"
	"github.com/inquest-dev/inquest/internal/incident"
	"github.com/inquest-dev/inquest/internal/reader/all"
	"github.com/inquest-dev/inquest/internal/store"
	"github.com/inquest-dev/inquest/internal/tracker"
)

var update = flag.Bool("update", false, "rewrite the transcripts and the table of tools in docs/mcp.md")

var knowledge = sync.OnceValues(func() (*catalog.Catalog, error) { return catalog.Load(encyclopedia.FS) })

func entries(t testing.TB) *catalog.Catalog {
	t.Helper()
	c, err := knowledge()
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// now is the time of the tests.
var now = time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC)

// options are those of the command, with a store of the test's own and devices that a file shows.
func options(t testing.TB) Options {
	t.Helper()
	c := entries(t)
	eo := engine.Options{Catalog: c, Readers: all.Readers(c.Plan()), Version: "test", Workers: 2}
	d, err := desk.New(desk.Options{Dir: t.TempDir(), Engine: eo, Now: func() time.Time { return now }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	return Options{
		Desk: d, Catalog: c, Store: store.Open(filepath.Join(t.TempDir(), "store")), Version: "test",
		GPUs: func(context.Context) (*incident.Holders, error) { return holders(), nil },
		Align: func(ctx context.Context, run string, logs []string) (*incident.Alignment, error) {
			o := eo
			o.Paths = append([]string{run}, logs...)
			to := engine.TrackerOptions{Points: 512}
			to.Stale, to.Now = tracker.DefaultStale, now
			return engine.Align(ctx, o, to)
		},
	}
}

// holders is a device that a training run and a kernel of a notebook hold.
func holders() *incident.Holders {
	n := func(v int64) *int64 { return &v }
	zero := 0
	return &incident.Holders{
		Status: incident.HoldersAnswered, Says: "7.2 GiB of 24.0 GiB are held, 5.0 GiB of them by a notebook of yours", Taken: "2026-12-01T12:00:00Z",
		Devices: []incident.HeldDevice{{
			Index: &zero, Name: "NVIDIA L4", Total: n(24 << 30), Used: n(7 << 30), Free: n(17 << 30),
			Unseen: &incident.HolderUnseen{HolderInterval: incident.HolderInterval{Lo: 1 << 28, Hi: 1 << 29}},
			Holders: []incident.Holder{
				{PID: 4711, Bytes: n(5 << 30), Kind: incident.HolderNotebook, State: incident.HolderRunning, Whose: incident.HolderYours, User: "mia", Command: "python -m ipykernel_launcher"},
				{PID: 4800, Bytes: n(2 << 30), Kind: incident.HolderTraining, State: incident.HolderRunning, Whose: incident.HolderOthers, User: "uid 1002"},
			},
		}},
		Acts: []incident.HolderAct{{Kind: incident.HolderActShut, PIDs: []int{4711}, Says: "shut down the kernel of the notebook", Check: []incident.HolderCommand{{Command: "ps -p 4711 -f"}}}},
	}
}

// A peer is a client of the SDK that speaks with a server.
type peer struct {
	*mcp.ClientSession
	progress chan *mcp.ProgressNotificationParams
}

// transports are the two over which the tools are offered.
var transports = map[string]func(testing.TB, *mcp.Server) mcp.Transport{
	"streams": func(t testing.TB, s *mcp.Server) mcp.Transport {
		here, there := mcp.NewInMemoryTransports()
		ss, err := s.Connect(context.Background(), there, nil)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { ss.Close() })
		return here
	},
	"http": func(t testing.TB, s *mcp.Server) mcp.Transport {
		server := httptest.NewServer(Handler(s, "test-token"))
		t.Cleanup(server.CloseClientConnections)
		t.Cleanup(server.Close)
		client := server.Client()
		client.Transport = bearer{"test-token"}
		return &mcp.StreamableClientTransport{Endpoint: server.URL + Path, HTTPClient: client}
	},
}

func connect(t testing.TB, tr mcp.Transport) *peer {
	t.Helper()
	p := &peer{progress: make(chan *mcp.ProgressNotificationParams, 1024)}
	c := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, &mcp.ClientOptions{
		ProgressNotificationHandler: func(_ context.Context, r *mcp.ProgressNotificationClientRequest) { p.progress <- r.Params },
	})
	s, err := c.Connect(context.Background(), tr, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	p.ClientSession = s
	return p
}

// call calls a tool and holds its answer to what every answer keeps.
func (p *peer) call(t testing.TB, tool string, args map[string]any) *mcp.CallToolResult {
	t.Helper()
	res, err := p.CallTool(context.Background(), &mcp.CallToolParams{Name: tool, Arguments: args})
	if err != nil {
		t.Fatalf("%s %v: %v", tool, args, err)
	}
	keeps(t, tool, res)
	return res
}

// answer is the structured content of a call that must not fail.
func (p *peer) answer(t testing.TB, tool string, args map[string]any) map[string]any {
	t.Helper()
	res := p.call(t, tool, args)
	if res.IsError {
		t.Fatalf("%s %v: %s", tool, args, textOf(res))
	}
	m, ok := res.StructuredContent.(map[string]any)
	if !ok {
		t.Fatalf("%s: structured content is a %T", tool, res.StructuredContent)
	}
	return m
}

func textOf(res *mcp.CallToolResult) string {
	var b strings.Builder
	for _, c := range res.Content {
		if t, ok := c.(*mcp.TextContent); ok {
			b.WriteString(t.Text)
		}
	}
	return b.String()
}

// at is the value at a dotted path, nil where there is none.
func at(v any, path string) any {
	for key := range strings.SplitSeq(path, ".") {
		m, ok := v.(map[string]any)
		if !ok {
			return nil
		}
		v = m[key]
	}
	return v
}

// keeps checks the budget and the marks of an answer.
func keeps(t testing.TB, tool string, res *mcp.CallToolResult) {
	t.Helper()
	data, err := json.Marshal(map[string]any{"content": res.Content, "structuredContent": res.StructuredContent})
	if err != nil {
		t.Fatal(err)
	}
	if len(data) > Budget {
		t.Errorf("%s: the answer has %d bytes, more than %d", tool, len(data), Budget)
	}
	texts := []string{textOf(res)}
	leaves(res.StructuredContent, "", func(_, s string) { texts = append(texts, s) })
	for _, s := range texts {
		if why := misMarked(s); why != "" {
			t.Errorf("%s: %s in %q", tool, why, s)
		}
		if i := strings.IndexFunc(s, func(r rune) bool {
			return r < ' ' && r != '\n' || r == 0x7f || r == 0x202e || r == 0x2066 || r == 0x200b
		}); i >= 0 {
			t.Errorf("%s: a character that does not print in %q", tool, s)
		}
	}
}

// leaves calls fn with every text of a value and the name of the field that holds it.
func leaves(v any, name string, fn func(name, s string)) {
	switch v := v.(type) {
	case string:
		fn(name, v)
	case []any:
		for _, x := range v {
			leaves(x, name, fn)
		}
	case map[string]any:
		for k, x := range v {
			leaves(x, k, fn)
		}
	}
}

// misMarked says what is wrong with the marks of a text: each is opened, closed and not nested.
func misMarked(s string) string {
	open := false
	for s != "" {
		i := strings.IndexAny(s, "⟦⟧")
		if i < 0 {
			break
		}
		s = s[i:]
		switch {
		case strings.HasPrefix(s, openMark) && !open:
			open, s = true, s[len(openMark):]
		case strings.HasPrefix(s, closeMark) && open:
			open, s = false, s[len(closeMark):]
		default:
			return "a bracket that is no mark in its place"
		}
	}
	if open {
		return "a mark that is not closed"
	}
	return ""
}

// spoken is what a text says outside of its marks.
func spoken(s string) string {
	var b strings.Builder
	for {
		i := strings.Index(s, openMark)
		if i < 0 {
			return b.String() + s
		}
		b.WriteString(s[:i])
		j := strings.Index(s, closeMark)
		if j < i {
			return b.String() + s[i:]
		}
		s = s[j+len(closeMark):]
	}
}

// bearer sends a token with each request.
type bearer struct{ token string }

func compare(t *testing.T, name, got string) {
	t.Helper()
	if *update {
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(want, []byte(got)) {
		g, w := strings.Split(got, "\n"), strings.Split(string(want), "\n")
		for i := range g {
			if i >= len(w) || g[i] != w[i] {
				t.Fatalf("%s: line %d is\n%s\nnow; go test ./internal/mcp -update rewrites it", name, i+1, g[i])
			}
		}
		t.Fatalf("%s has more lines than the answer", name)
	}
}
