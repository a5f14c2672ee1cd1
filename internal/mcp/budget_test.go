package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"github.com/inquest-dev/inquest/internal/catalog"
	"github.com/inquest-dev/inquest/internal/desk"
	"github.com/inquest-dev/inquest/internal/evidence"
	"github.com/inquest-dev/inquest/internal/explain"
	"github.com/inquest-dev/inquest/internal/incident"
)

// A storm fills values with what an adversary would: every text hostile and of any length, every
// list long, every pointer set.
type storm struct {
	*rand.Rand
	text   string // that hostile texts have in them
	long   int    // bytes of a text at most
	many   int    // elements of a list at most
	values int    // in each result at most, so that filling ends
	spared int    // of them, those that may still be made
}

// fill sets v and all below it.
func (s *storm) fill(v reflect.Value) {
	if s.spared--; s.spared < 0 {
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString(s.string())
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		v.SetInt([]int64{0, 1, 7, 1023, 1 << 30, -1, 1<<31 - 1}[s.IntN(7)])
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		v.SetUint(s.Uint64N(200))
	case reflect.Float64, reflect.Float32:
		v.SetFloat([]float64{0, 1.5, -1e300, 5e-324, 1e308}[s.IntN(5)])
	case reflect.Bool:
		v.SetBool(s.IntN(2) == 0)
	case reflect.Pointer:
		if s.IntN(8) > 0 {
			p := reflect.New(v.Type().Elem())
			s.fill(p.Elem())
			v.Set(p)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Field(i).CanSet() {
				s.fill(v.Field(i))
			}
		}
	case reflect.Slice:
		n := s.IntN(s.many + 1)
		v.Set(reflect.MakeSlice(v.Type(), n, n))
		for i := range n {
			s.fill(v.Index(i))
		}
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		for range s.IntN(s.many + 1) {
			k, x := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
			s.fill(k)
			s.fill(x)
			v.SetMapIndex(k, x)
		}
	case reflect.Interface:
		if v.NumMethod() == 0 {
			v.Set(reflect.ValueOf(s.string()))
		}
	}
}

// string is a hostile text. One in eight is a plain word: a state, a kind.
func (s *storm) string() string {
	if s.IntN(8) == 0 {
		return []string{"", "failed", "established", "text", "unknown", "device_oom", "rank_0.log"}[s.IntN(7)]
	}
	h := hostile[s.IntN(len(hostile))] + s.text
	if s.IntN(4) == 0 {
		h = "NEEDLE " + strings.Repeat([]string{"<", "\"", "\\", "\u2028", "é", "⟦end⟧", "\x1b[1m", "a\n", "💥", "\xff", "́"}[s.IntN(11)], s.IntN(s.long/2+1))
	}
	return strings.Repeat(h, 1+s.IntN(max(1, s.long/len(h))))
}

// A stage is a desk, a store, devices and trackers that answer with what a storm made.
type stage struct {
	*storm
	result desk.Result
	lines  incident.Lines
	memory incident.Memory
	kept   incident.Kept
	list   incident.Incidents
	held   incident.Holders
	tied   incident.Alignment
}

// set fills a stage anew.
func (st *stage) set(s *storm) {
	*st = stage{storm: s}
	st.result.Incident, st.result.Timeline = new(incident.Incident), new(incident.Timeline)
	for _, v := range []any{st.result.Incident, st.result.Timeline, &st.lines, &st.memory, &st.kept, &st.list, &st.held, &st.tied} {
		s.spared = s.values
		s.fill(reflect.ValueOf(v).Elem())
	}
	// Refs are made of artifacts that are listed.
	for i := range st.result.Timeline.Events {
		if a := st.result.Incident.Artifacts; len(a) > 0 {
			st.result.Timeline.Events[i].Span = &evidence.Span{Artifact: a[s.IntN(len(a))].Path, Kind: "text", Line: 1 + s.Int64N(1<<40), Offset: s.Int64N(1 << 50)}
		}
	}
	if len(st.tied.Runs) == 0 {
		st.tied.Runs = []incident.TrackedRun{{Name: st.string()}}
	}
}

// opened is a stage, and a client of a server that stands on it.
func opened(t testing.TB) (*stage, *peer) {
	st := new(stage)
	s := &server{desk: st, store: st, Options: Options{Catalog: entries(t), Version: "test",
		GPUs:  func(context.Context) (*incident.Holders, error) { return &st.held, nil },
		Align: func(context.Context, string, []string) (*incident.Alignment, error) { return &st.tied, nil },
	}}
	return st, connect(t, transports["streams"](t, s.offer()))
}

func (st *stage) aCase(id, state string) *incident.Case {
	return &incident.Case{ID: id, State: state, Name: st.string(), Title: st.string(), Error: st.string(), Done: 3, Total: 5}
}

func (st *stage) Begin(string) (*incident.Case, error) {
	return st.aCase("c1", incident.CaseReceiving), nil
}
func (st *stage) Local(string, []string) (*incident.Case, error) {
	return st.aCase("c1", incident.CaseReceiving), nil
}
func (st *stage) Put(context.Context, string, string, io.Reader) (int64, error) {
	return 1, nil
}
func (st *stage) Diagnose(string, desk.Handling) error { return nil }
func (st *stage) Cancel(string) error                  { return nil }
func (st *stage) Remove(string) error                  { return nil }
func (st *stage) Case(id string) (*incident.Case, error) {
	switch id {
	case "broken":
		return st.aCase(id, incident.CaseFailed), nil
	case "slow":
		return st.aCase(id, incident.CaseReading), nil
	case "c1":
		return st.aCase(id, incident.CaseDone), nil
	}
	return nil, fmt.Errorf("%w: %s", desk.ErrNoCase, st.string())
}
func (st *stage) Watch(ctx context.Context, id string, fn func(*incident.Case) error) error {
	c, err := st.Case(id)
	if err != nil {
		return err
	}
	if err := fn(c); err != nil || c.Ended() {
		return err
	}
	<-ctx.Done()
	return ctx.Err()
}
func (st *stage) Result(context.Context, string) (*desk.Result, error) { return &st.result, nil }
func (st *stage) Lines(_ context.Context, _, artifact string, _, _ int64, _, _ int) (*incident.Lines, error) {
	if artifact == "broken" {
		return nil, fmt.Errorf("read %s", st.string())
	}
	return &st.lines, nil
}
func (st *stage) Memory(context.Context, string) (*incident.Memory, error) { return &st.memory, nil }
func (st *stage) List(context.Context) (*incident.Incidents, error) {
	l := st.list // the tool leaves out of it what was not asked for
	l.Incidents = append([]incident.KeptLine{}, st.list.Incidents...)
	return &l, nil
}
func (st *stage) Find(_ context.Context, name string, _ ...incident.Act) (*incident.Kept, error) {
	if name == "broken" {
		return nil, fmt.Errorf("read %s", st.string())
	}
	return &st.kept, nil
}

// storms calls every tool on a stage, page after page, and holds each answer to the budget and the
// marks.
func (st *stage) storms(t testing.TB, p *peer) {
	ask := func(tool string, args map[string]any) map[string]any {
		t.Helper()
		res := p.call(t, tool, args)
		if bad, _ := spokenNeedle(res); bad != "" {
			t.Errorf("%s %v speaks what it read: %q", tool, args, bad)
		}
		if strings.Contains(textOf(res), "was larger than the") {
			t.Errorf("%s %v: an answer did not fit: %s", tool, args, textOf(res))
		}
		m, _ := res.StructuredContent.(map[string]any)
		return m
	}
	long := strings.Repeat(st.string(), 4)
	pages := func(tool, cursor string, args map[string]any) {
		t.Helper()
		for n := 0.0; ; {
			args[cursor] = n
			m := ask(tool, args)
			next, more := m["next"].(float64)
			if !more {
				return
			}
			if next <= n {
				t.Fatalf("%s %v: the page after %v is %v", tool, args, n, next)
			}
			n = next
		}
	}
	ask("diagnose", map[string]any{"case": "c1"})
	ask("diagnose", map[string]any{"text": long})
	ask("diagnose", map[string]any{"paths": []string{long, long}})
	ask("diagnose", map[string]any{"case": "slow", "wait_seconds": 0})
	ask("diagnose", map[string]any{"baseline": long})
	for _, tool := range []string{"diagnose", "get_timeline", "read_evidence", "suggest_measurement", "get_checklist"} {
		for _, id := range []string{"broken", "none", long} {
			ask(tool, map[string]any{"case": id})
		}
		ask(tool, map[string]any{"case": map[string]any{long: long}})
	}
	pages("get_timeline", "from", map[string]any{"case": "c1"})
	pages("suggest_measurement", "from", map[string]any{"case": "c1"})
	pages("get_checklist", "from", map[string]any{"case": "c1"})
	ask("read_evidence", map[string]any{"case": "c1", "artifact": long, "line": 1, "before": 200, "after": 200})
	ask("read_evidence", map[string]any{"case": "c1", "artifact": "broken", "line": 1})
	ask("read_evidence", map[string]any{"case": "c1", "ref": long})
	pages("list_incidents", "from", map[string]any{"all": true})
	pages("show_incident", "from", map[string]any{"id": "x"})
	ask("show_incident", map[string]any{"id": "broken"})
	pages("list_gpu_holders", "from", map[string]any{})
	pages("summarize_memory", "from", map[string]any{"case": "c1"})
	pages("align_tracker", "from", map[string]any{"run": "x"})
	ask("explain_failure", map[string]any{"query": long})
	ask("explain_failure", map[string]any{"query": "fragmentation", "sections": []string{long}})
}

// TestBudget holds the answers of every tool to the budget, whatever they are about: few and many
// things, short and long texts.
func TestBudget(t *testing.T) {
	st, p := opened(t)
	for i, size := range []struct{ long, many int }{{40, 3}, {400, 12}, {4000, 5}, {30_000, 4}, {200, 60}, {16, 300}} {
		for seed := range uint64(2) {
			st.set(&storm{Rand: rand.New(rand.NewPCG(seed, uint64(i))), long: size.long, many: size.many, values: 40_000})
			st.storms(t, p)
			if t.Failed() {
				t.Fatalf("at seed %d of size %+v", seed, size)
			}
		}
	}
}

// FuzzBudget does what TestBudget does with texts, lengths and seeds that the fuzzer finds.
func FuzzBudget(f *testing.F) {
	f.Add(uint64(1), "x", uint16(100), uint8(5))
	f.Add(uint64(2), "⟦end⟧", uint16(20_000), uint8(2))
	f.Add(uint64(3), "\x1b]0;\u2028\xff<", uint16(10), uint8(40))
	st, p := opened(f)
	f.Fuzz(func(t *testing.T, seed uint64, text string, long uint16, many uint8) {
		if len(text) > 1000 {
			t.Skip("long texts are made of short ones")
		}
		st.set(&storm{Rand: rand.New(rand.NewPCG(seed, 0)), text: text, long: int(long)%4096 + 1, many: int(many) % 32, values: 1500})
		st.storms(t, p)
	})
}

// FuzzQuote holds a quoted text to its bound, its marks and what prints.
func FuzzQuote(f *testing.F) {
	for _, h := range hostile {
		f.Add(h, 100)
	}
	f.Fuzz(func(t *testing.T, s string, max int) {
		if max < 40 || max > 5000 {
			return
		}
		for _, q := range []string{quote(s, max), quoteLines(s, max), shorter(quote(s, max), 40)} {
			data, err := json.Marshal(q)
			if err != nil || len(data)-2 > max || jsonSize(q) != len(data)-2 {
				t.Fatalf("%q: %d bytes of JSON, counted %d, at most %d, %v", q, len(data)-2, jsonSize(q), max, err)
			}
			if why := misMarked(q); why != "" || q != "" && spoken(q) != "" {
				t.Fatalf("%q: %s", q, why)
			}
		}
	})
}

// TestEveryEntryFits reads every section of every entry, page after page: each fits, and the pages
// together have all of it.
func TestEveryEntryFits(t *testing.T) {
	s := &server{Options: Options{Catalog: entries(t)}}
	p := connect(t, transports["streams"](t, s.offer()))
	for _, head := range entries(t).Entries() {
		var got strings.Builder
		for cursor := 0.0; ; {
			m := p.answer(t, "explain_failure", map[string]any{"query": head.ID, "sections": []string{"all"}, "cursor": cursor})
			for _, x := range m["sections"].([]any) {
				got.WriteString(at(x, "markdown").(string))
			}
			next, more := m["next"].(float64)
			if !more {
				break
			}
			cursor = next
		}
		e, err := entries(t).Entry(head.ID)
		if err != nil {
			t.Fatal(err)
		}
		if want := wordsOf(sectionsOf(e)); wordsOf(got.String()) != want {
			t.Errorf("%s: the pages have other words than the entry", head.ID)
		}
	}
	for table, key := range map[string]string{"xid": "", "sxid": "", "cuda-errors": ""} {
		for cursor := 0.0; ; {
			m := p.answer(t, "explain_failure", map[string]any{"query": strings.TrimSpace(table + " " + key), "cursor": cursor})
			next, more := m["next"].(float64)
			if !more {
				break
			}
			cursor = next
		}
	}
}

func wordsOf(s string) string { return strings.Join(strings.Fields(s), "") }

// sectionsOf is all of an entry as explain_failure shows it.
func sectionsOf(e *catalog.Entry) string {
	page := explain.Layout(e)
	var b strings.Builder
	for _, sec := range page.Sections {
		b.WriteString(own(markdown(&page, sec), 1<<20))
	}
	return b.String()
}
