package mcp

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/inquest-dev/inquest/internal/incident"
)

// TestStreamsGoOn sends what is no message between requests: each is answered with its error, by
// its id where there is one, and the session goes on.
func TestStreamsGoOn(t *testing.T) {
	in, client := io.Pipe()
	answers, out := io.Pipe()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	s := &server{Options: Options{Catalog: entries(t)}, desk: newGate()}
	go func() { ended <- s.offer().Run(ctx, Streams(in, out)) }()
	t.Cleanup(func() {
		client.Close()
		cancel()
		answers.Close()
		<-ended
	})
	lines := bufio.NewReader(answers)
	ask := func(line string) (id string, code int) {
		t.Helper()
		go io.WriteString(client, line+"\n")
		got, err := lines.ReadBytes('\n')
		if err != nil {
			t.Fatalf("%.60q: %v", line, err)
		}
		var m struct {
			ID    json.RawMessage
			Error struct{ Code int }
		}
		if err := json.Unmarshal(got, &m); err != nil {
			t.Fatalf("%.60q: answered %q: %v", line, got, err)
		}
		return string(m.ID), m.Error.Code
	}
	ask(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}`)
	io.WriteString(client, `{"jsonrpc":"2.0","method":"notifications/initialized"}`+"\n")
	for line, want := range map[string]struct {
		id   string
		code int
	}{
		"{":                      {"null", -32700},
		"Content-Length: 5":      {"null", -32700},
		"\xff\xfe\x00":           {"null", -32700},
		"\n\r\n[":                {"null", -32700}, // what is blank has no answer
		"null":                   {"null", -32600},
		`"ping"`:                 {"null", -32600},
		"[]":                     {"null", -32600},
		strings.Repeat("[", 1e5): {"null", -32700},
		`[{"jsonrpc":"2.0","id":1,"method":"ping"}]`:                                                             {"null", -32600},
		`{"jsonrpc":"1.0","id":5,"method":"ping"}`:                                                               {"5", -32600},
		`{"jsonrpc":"2.0","id":{},"method":"ping"}`:                                                              {"null", -32600},
		`{"jsonrpc":"2.0","id":"a","method":"ping","params":"` + strings.Repeat("x", maxMessage) + `"}`:          {`"a"`, -32600},
		`{"params":{"id":3,"text":"` + strings.Repeat("x", maxMessage) + `"},"jsonrpc":"2.0","id":4}`:            {"null", -32600},
		`{"jsonrpc":"2.0","id":6,"method":"ping","params":{"_meta":{"a":"` + strings.Repeat("x", 1<<20) + `"}}}`: {"6", 0},
	} {
		if id, code := ask(line); id != want.id || code != want.code {
			t.Errorf("%.60q: answered to %s with %d, want %s with %d", line, id, code, want.id, want.code)
		}
		if id, code := ask(`{"jsonrpc":"2.0","id":9,"method":"ping"}`); id != "9" || code != 0 {
			t.Fatalf("after %.60q: a ping is answered to %s with %d", line, id, code)
		}
	}
}

// Batches are for clients of the version that has them.
func TestStreamsBatches(t *testing.T) {
	const hello = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"VERSION"}}` + "\n"
	const batch = `[{"jsonrpc":"2.0","id":2,"method":"ping"},{"jsonrpc":"2.0","id":3,"method":"ping"}]` + "\n"
	for version, passed := range map[string]bool{batched: true, "2025-06-18": false} {
		var refused strings.Builder
		begin := strings.Replace(hello, "VERSION", version, 1)
		got, err := io.ReadAll(&messages{in: bufio.NewReader(strings.NewReader(begin + batch)), refused: &refused})
		if err != nil || strings.HasSuffix(string(got), batch) != passed || (refused.Len() == 0) != passed || !strings.HasPrefix(string(got), begin) {
			t.Errorf("%s: let %q through, %v, and answered %q", version, got, err, refused.String())
		}
	}
}

// A broken desk fails over whatever is asked.
type broken struct{ *gate }

func (broken) Case(string) (*incident.Case, error) { panic("index out of range\x1b[31m") }

// TestToolThatPanics asks a tool that fails by itself: the call ends, the server does not.
func TestToolThatPanics(t *testing.T) {
	for name, transport := range transports {
		t.Run(name, func(t *testing.T) {
			s := &server{Options: Options{Catalog: entries(t)}, desk: broken{newGate()}}
			p := connect(t, transport(t, s.offer()))
			for range 2 {
				got, err := p.CallTool(t.Context(), &mcp.CallToolParams{Name: "get_timeline", Arguments: map[string]any{"case": "c1"}})
				if err != nil || !got.IsError {
					t.Fatalf("answered %+v, %v", got, err)
				}
				text := got.Content[0].(*mcp.TextContent).Text
				if !strings.Contains(text, "inquest itself failed in get_timeline") || !strings.Contains(text, "index out of range") || strings.Contains(text, "\x1b") {
					t.Errorf("says %q", text)
				}
			}
		})
	}
}
