package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/inquest-dev/inquest/internal/desk"
	"github.com/inquest-dev/inquest/internal/incident"
	"github.com/inquest-dev/inquest/internal/testkit/genjob"
)

// A gate is a desk whose cases end only when the test says so.
type gate struct {
	*stage
	watched   chan struct{} // a value each time that somebody begins to watch
	cancelled chan string
	done      chan struct{} // closed: cases have ended
}

func newGate() *gate {
	st := &stage{storm: &storm{}}
	st.result = desk.Result{Incident: &incident.Incident{Outcome: incident.FinishedRun}, Timeline: new(incident.Timeline)}
	return &gate{stage: st, watched: make(chan struct{}, 100), cancelled: make(chan string, 100), done: make(chan struct{})}
}

func (g *gate) Case(id string) (*incident.Case, error) {
	c := &incident.Case{ID: id, State: incident.CaseReading, Done: 1, Total: 3}
	select {
	case <-g.done:
		c.State, c.Done = incident.CaseDone, 3
	default:
	}
	return c, nil
}

func (g *gate) Begin(string) (*incident.Case, error) { return &incident.Case{ID: "c1"}, nil }

func (g *gate) Cancel(id string) error {
	g.cancelled <- id
	return nil
}

func (g *gate) Watch(ctx context.Context, id string, fn func(*incident.Case) error) error {
	for done := range 3 {
		if err := fn(&incident.Case{ID: id, State: incident.CaseReading, Done: done, Total: 3}); err != nil {
			return err
		}
	}
	g.watched <- struct{}{}
	select {
	case <-g.done:
		c, _ := g.Case(id)
		return fn(c)
	case <-ctx.Done():
		return ctx.Err()
	}
}

func gated(t testing.TB, transport func(testing.TB, *mcp.Server) mcp.Transport, done <-chan struct{}) (*gate, *peer) {
	g := newGate()
	s := &server{Options: Options{Catalog: entries(t), Done: done}, desk: g}
	return g, connect(t, transport(t, s.offer()))
}

// TestProgress asks for notices of progress and gets them, rising, over both transports.
func TestProgress(t *testing.T) {
	for name, transport := range transports {
		t.Run(name, func(t *testing.T) {
			g, p := gated(t, transport, nil)
			params := &mcp.CallToolParams{Name: "diagnose", Arguments: map[string]any{"text": "x"}}
			params.SetProgressToken("p1")
			ended := make(chan error, 1)
			go func() {
				_, err := p.CallTool(t.Context(), params)
				ended <- err
			}()
			for want := range 3 {
				n := <-p.progress
				if n.ProgressToken != "p1" || n.Progress != float64(want) || n.Total != 3 {
					t.Errorf("notice %d: %+v", want, n)
				}
			}
			close(g.done)
			if err := <-ended; err != nil {
				t.Error(err)
			}
		})
	}
}

// TestCancel cancels a call: the case that it began is cancelled with it, over both transports.
func TestCancel(t *testing.T) {
	for name, transport := range transports {
		t.Run(name, func(t *testing.T) {
			g, p := gated(t, transport, nil)
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan error, 1)
			go func() {
				_, err := p.CallTool(ctx, &mcp.CallToolParams{Name: "diagnose", Arguments: map[string]any{"text": "x"}})
				ended <- err
			}()
			<-g.watched
			cancel()
			if id := <-g.cancelled; id != "c1" {
				t.Errorf("cancelled %q", id)
			}
			if err := <-ended; err == nil {
				t.Error("the call ended without an error")
			}
		})
	}
}

// TestCancelAnothers waits for a case that another call began: it goes on when the wait is
// cancelled.
func TestCancelAnothers(t *testing.T) {
	g, p := gated(t, transports["streams"], nil)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		_, err := p.CallTool(ctx, &mcp.CallToolParams{Name: "diagnose", Arguments: map[string]any{"case": "c7"}})
		ended <- err
	}()
	<-g.watched
	cancel()
	<-ended
	close(g.done)
	if m := p.answer(t, "diagnose", map[string]any{"case": "c7"}); m["state"] != incident.CaseDone {
		t.Errorf("%v", m)
	}
	select {
	case id := <-g.cancelled:
		t.Errorf("case %s was cancelled", id)
	default:
	}
}

// TestDone ends calls in progress with the server, and says so.
func TestDone(t *testing.T) {
	done := make(chan struct{})
	g, p := gated(t, transports["streams"], done)
	ended := make(chan *mcp.CallToolResult, 1)
	go func() {
		res, err := p.CallTool(t.Context(), &mcp.CallToolParams{Name: "diagnose", Arguments: map[string]any{"text": "x"}})
		if err != nil {
			t.Error(err)
		}
		ended <- res
	}()
	<-g.watched
	close(done)
	if res := <-ended; res == nil || !res.IsError || !strings.Contains(textOf(res), "cancelled") {
		t.Errorf("%+v", res)
	}
}

// TestWait answers in time about a case that takes longer, and a later call has the verdict.
func TestWait(t *testing.T) {
	g, p := gated(t, transports["streams"], nil)
	m := p.answer(t, "diagnose", map[string]any{"text": "x", "wait_seconds": 0})
	if m["state"] != incident.CaseReading || m["verdict"] != nil || m["case"] != "c1" {
		t.Errorf("%v", m)
	}
	res := p.call(t, "get_timeline", map[string]any{"case": "c1"})
	if !res.IsError || !strings.Contains(textOf(res), "diagnose with case set to c1") {
		t.Errorf("%s", textOf(res))
	}
	close(g.done)
	if m := p.answer(t, "diagnose", map[string]any{"case": "c1"}); m["state"] != incident.CaseDone || at(m, "verdict.outcome") != incident.FinishedRun {
		t.Errorf("%v", m)
	}
}

// TestConcurrent calls tools of several clients at once.
func TestConcurrent(t *testing.T) {
	for name, transport := range transports {
		t.Run(name, func(t *testing.T) {
			s, dir := New(options(t)), examples(t)
			var all sync.WaitGroup
			for range 4 {
				p := connect(t, transport(t, s))
				for _, example := range []string{"oom-then-nan", "single-gpu-oom", "eight-ranks"} {
					all.Go(func() {
						m := p.answer(t, "diagnose", map[string]any{"paths": []string{filepath.Join(dir, example)}, "wait_seconds": waitMost})
						if at(m, "verdict.outcome") != incident.Failed {
							t.Errorf("%s: %v", example, m)
						}
						p.answer(t, "get_timeline", map[string]any{"case": m["case"]})
						p.answer(t, "explain_failure", map[string]any{"query": "cuda out of memory"})
					})
				}
			}
			all.Wait()
		})
	}
}

// TestManyRanks calls the tools about a job of 1024 ranks: answers keep the budget, and page after
// page the timeline is told as a whole.
func TestManyRanks(t *testing.T) {
	if testing.Short() {
		t.Skip("1024 ranks take a while")
	}
	dir := t.TempDir()
	for name, data := range genjob.New("agents", 1024).Files {
		name = filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(data), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	p := connect(t, transports["streams"](t, New(options(t))))
	m := p.answer(t, "diagnose", map[string]any{"paths": []string{dir}, "wait_seconds": waitMost})
	if m["state"] != incident.CaseDone || at(m, "verdict.first_fault") == nil {
		t.Fatalf("%v", m)
	}
	events, from, ref := 0, 0.0, ""
	for {
		page := p.answer(t, "get_timeline", map[string]any{"case": m["case"], "from": from})
		list := page["events"].([]any)
		events += len(list)
		if ref == "" && len(list) > 0 {
			ref, _ = at(list[0], "ref").(string)
		}
		next, more := page["next"].(float64)
		if !more {
			if events != int(page["matched"].(float64)) {
				t.Errorf("%d events on all pages, %v matched", events, page["matched"])
			}
			break
		}
		from = next
	}
	p.answer(t, "read_evidence", map[string]any{"case": m["case"], "ref": ref, "before": 200, "after": 200})
	p.answer(t, "suggest_measurement", map[string]any{"case": m["case"]})
	p.answer(t, "get_checklist", map[string]any{"case": m["case"]})
}

// TestListSize bounds what all tools together cost a model that reads them at the start.
func TestListSize(t *testing.T) {
	p := connect(t, transports["streams"](t, New(options(t))))
	list, err := p.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	said := 0
	for _, tool := range list.Tools {
		in, _ := json.Marshal(tool.InputSchema)
		said += len(tool.Name) + len(tool.Description) + len(in)
	}
	if said > 18_000 {
		t.Errorf("names, descriptions and arguments have %d bytes", said)
	}
	t.Log(fmt.Sprint(said, " bytes"))
}
