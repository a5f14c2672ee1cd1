package desk_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/inquest-dev/inquest/internal/desk"
	"github.com/inquest-dev/inquest/internal/incident"
)

func TestCase(t *testing.T) {
	o := options(t)
	o.Now = func() time.Time { return time.Date(2026, 8, 1, 12, 0, 0, 0, time.FixedZone("", 7200)) }
	d := open(t, o)
	id := begin(t, d, "logs/rank_1.log", "step 1 loss 2.5\n", "logs/rank_0.log", oom)
	c, err := d.Case(id)
	if err != nil {
		t.Fatal(err)
	}
	if want := (incident.Case{Schema: incident.CaseSchema, ID: id, Name: "logs", State: incident.CaseReceiving, Begun: "2026-08-01T10:00:00Z", FileCount: 2, Bytes: int64(len(oom) + 16),
		Files: []incident.CaseFile{{Name: "logs/rank_0.log", Bytes: int64(len(oom)), Whole: true}, {Name: "logs/rank_1.log", Bytes: 16, Whole: true}}, Limits: []string{}}); text(t, c) != text(t, want) {
		t.Errorf("case %s, want %s", text(t, c), text(t, want))
	}
	r := diagnose(t, d, id, desk.Handling{})
	if r.Incident.FirstFault == nil || r.Incident.FirstFault.Span.Artifact != "logs/rank_0.log" {
		t.Fatalf("first fault %+v", r.Incident.FirstFault)
	}
	if r.Timeline == nil || len(r.Timeline.Events) == 0 {
		t.Error("no timeline")
	}
	c, err = d.Case(id)
	if err != nil {
		t.Fatal(err)
	}
	if c.State != incident.CaseDone || !strings.Contains(c.Title, "CUDA out of memory") || c.Outcome != incident.Failed || c.Incident != r.Incident.ID || c.Done != 2 || c.Total != 2 || c.Error != "" {
		t.Errorf("case %+v", c)
	}
	l, err := d.Lines(t.Context(), id, "logs/rank_0.log", 6, -1, 1, 1)
	if err != nil || len(l.Lines) != 2 || l.First != 5 {
		t.Errorf("lines %+v (%v)", l, err)
	}
	if _, err := d.Memory(t.Context(), id); !errors.Is(err, desk.ErrNothing) {
		t.Errorf("memory: %v", err)
	}
	if _, err := d.Tracker(t.Context(), id); !errors.Is(err, desk.ErrNothing) {
		t.Errorf("tracker: %v", err)
	}
	if err := d.Remove(id); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Case(id); !errors.Is(err, desk.ErrNoCase) {
		t.Errorf("a removed case: %v", err)
	}
}

// TestStates asks for everything in every state that does not allow it.
func TestStates(t *testing.T) {
	s := newSlow()
	d := open(t, s.with(options(t)))
	reading := begin(t, d, "a.log", slowly)
	if err := d.Diagnose(reading, desk.Handling{}); err != nil {
		t.Fatal(err)
	}
	<-s.began
	waiting := begin(t, d, "a.log", slowly)
	if err := d.Diagnose(waiting, desk.Handling{}); err != nil {
		t.Fatal(err)
	}
	cancelled := begin(t, d, "a.log", oom)
	if err := d.Cancel(cancelled); err != nil {
		t.Fatal(err)
	}
	receiving, empty := begin(t, d, "a.log", oom), begin(t, d)
	local, err := d.Local("", []string{t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	for id, want := range map[string]string{reading: incident.CaseReading, waiting: incident.CaseWaiting, cancelled: incident.CaseCancelled, receiving: incident.CaseReceiving} {
		if got := state(d, id); got != want {
			t.Errorf("state %s, want %s", got, want)
		}
	}
	ctx := t.Context()
	doPut := func(id string) error { _, err := d.Put(ctx, id, "b.log", strings.NewReader(oom)); return err }
	lines := func(id string) error { _, err := d.Lines(ctx, id, "a.log", 1, -1, 0, 0); return err }
	result := func(id string) error { _, err := d.Result(ctx, id); return err }
	begun := func(id string) error { return d.Diagnose(id, desk.Handling{}) }
	against := func(base string) func(string) error {
		return func(id string) error { return d.Diagnose(id, desk.Handling{Baseline: base}) }
	}
	for _, x := range []struct {
		what string
		do   func(string) error
		id   string
		want error
	}{
		{"put", doPut, reading, desk.ErrState}, {"put", doPut, waiting, desk.ErrState}, {"put", doPut, cancelled, desk.ErrState}, {"put", doPut, local.ID, desk.ErrState}, {"put", doPut, "x", desk.ErrNoCase},
		{"lines", lines, receiving, desk.ErrState}, {"lines", lines, cancelled, desk.ErrState}, {"lines", lines, "x", desk.ErrNoCase}, {"lines", lines, waiting, nil},
		{"result", result, receiving, desk.ErrState}, {"result", result, cancelled, desk.ErrState}, {"result", result, "x", desk.ErrNoCase},
		{"diagnose", begun, empty, desk.ErrState}, {"diagnose", begun, reading, desk.ErrState}, {"diagnose", begun, waiting, desk.ErrState}, {"diagnose", begun, cancelled, desk.ErrState}, {"diagnose", begun, "x", desk.ErrNoCase},
		{"against receiving", against(empty), receiving, desk.ErrState}, {"against cancelled", against(cancelled), receiving, desk.ErrState}, {"against none", against("x"), receiving, desk.ErrNoCase}, {"against itself", against(receiving), receiving, desk.ErrState},
		{"cancel", d.Cancel, cancelled, desk.ErrState}, {"cancel", d.Cancel, "x", desk.ErrNoCase}, {"remove", d.Remove, "x", desk.ErrNoCase},
	} {
		if err := x.do(x.id); !errors.Is(err, x.want) {
			t.Errorf("%s of a case %q: %v, want %v", x.what, state(d, x.id), err, x.want)
		}
	}
	if all := d.Cases(); len(all) != 6 || all[0].ID != local.ID || all[5].ID != reading {
		t.Errorf("cases %v", all)
	}
	close(s.may)
	for _, id := range []string{reading, waiting} {
		if _, err := d.Result(ctx, id); err != nil {
			t.Error(err)
		}
	}
	d.Close()
	for what, err := range map[string]error{"put": doPut(receiving), "lines": lines(reading), "result": result(reading), "diagnose": begun(receiving), "cancel": d.Cancel(receiving), "remove": d.Remove(reading)} {
		if !errors.Is(err, desk.ErrClosed) {
			t.Errorf("%s of a closed desk: %v", what, err)
		}
	}
	if _, err := d.Begin(""); !errors.Is(err, desk.ErrClosed) {
		t.Errorf("begin at a closed desk: %v", err)
	}
	if len(d.Cases()) != 0 {
		t.Error("a closed desk has cases")
	}
}

// TestStop has a diagnosis under way ended by each that can.
func TestStop(t *testing.T) {
	for what, stop := range map[string]func(*desk.Desk, string) error{
		"cancel": (*desk.Desk).Cancel, "remove": (*desk.Desk).Remove, "close": func(d *desk.Desk, _ string) error { return d.Close() },
	} {
		t.Run(what, func(t *testing.T) {
			s := newSlow()
			d := open(t, s.with(options(t)))
			id, next := begin(t, d, "a.log", slowly), begin(t, d, "b.log", oom)
			for _, id := range []string{id, next} {
				if err := d.Diagnose(id, desk.Handling{}); err != nil {
					t.Fatal(err)
				}
			}
			<-s.began
			var last *incident.Case
			ended := make(chan error)
			watching := make(chan struct{}, 10)
			go func() {
				ended <- d.Watch(t.Context(), id, func(c *incident.Case) error { last = c; watching <- struct{}{}; return nil })
			}()
			<-watching
			if err := stop(d, id); err != nil {
				t.Fatal(err)
			}
			if err := <-ended; err != nil || last.State != incident.CaseCancelled {
				t.Errorf("watched to %s (%v)", last.State, err)
			}
			if what == "close" {
				return
			}
			if _, err := d.Result(t.Context(), next); err != nil { // goes on with the next
				t.Error(err)
			}
		})
	}
}

// TestRemoveWhileRead removes a case whose lines are being read, for which nothing is left to
// be done but to give up.
func TestRemoveWhileRead(t *testing.T) {
	s := newSlow()
	o := s.with(options(t))
	d := open(t, o)
	id := begin(t, d, "a.log", slowly)
	if err := d.Diagnose(id, desk.Handling{}); err != nil {
		t.Fatal(err)
	}
	<-s.began
	base := id
	other := begin(t, d, "b.log", oom) // small, but waits: a small one is being read
	if err := d.Diagnose(other, desk.Handling{Baseline: base}); err != nil {
		t.Fatal(err)
	}
	s.may <- struct{}{}
	if _, err := d.Result(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	<-s.began // as the baseline
	if err := d.Remove(base); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(folderOf(t, o.Dir), base)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the removed case has its folder: %v", err)
	}
	if _, err := d.Result(t.Context(), other); !errors.Is(err, desk.ErrFailed) || !strings.Contains(err.Error(), "removed") {
		t.Errorf("compared with what was removed: %v", err)
	}
	if c, _ := d.Case(other); c.State != incident.CaseFailed || !strings.Contains(c.Error, base) {
		t.Errorf("case %+v", c)
	}
}

// folderOf is the folder of the one desk in dir.
func folderOf(t *testing.T, dir string) string {
	t.Helper()
	m, err := filepath.Glob(filepath.Join(dir, "inquest-desk-*"))
	if err != nil || len(m) != 1 {
		t.Fatalf("folders %v (%v)", m, err)
	}
	return m[0]
}

func TestBaseline(t *testing.T) {
	d := open(t, options(t))
	good := begin(t, d, "train.log", "torch version 2.8.0\nstep 1 loss 2.5\nstep 2 loss 2.4\n")
	diagnose(t, d, good, desk.Handling{})
	bad := begin(t, d, "train.log", "torch version 2.9.0\n"+oom)
	r := diagnose(t, d, bad, desk.Handling{Baseline: good})
	if b := r.Incident.Baseline; b == nil || !slices.Equal(b.Paths, []string{"train.log"}) {
		t.Errorf("baseline %+v", b)
	}
}

func TestFailed(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "a.log")
	if err := os.WriteFile(file, []byte(oom), 0o600); err != nil {
		t.Fatal(err)
	}
	d := open(t, options(t))
	c, err := d.Local("", []string{file})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	if err := d.Diagnose(c.ID, desk.Handling{}); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Result(t.Context(), c.ID); !errors.Is(err, desk.ErrFailed) || !strings.Contains(err.Error(), file) {
		t.Errorf("result: %v", err)
	}
}

func TestEviction(t *testing.T) {
	o := options(t)
	o.Limits = desk.Limits{Cases: 2, Open: 3}
	d := open(t, o)
	var ids []string
	for range 4 {
		ids = append(ids, begin(t, d, "a.log", oom))
		diagnose(t, d, ids[len(ids)-1], desk.Handling{})
	}
	for i, id := range ids {
		if _, err := d.Case(id); (err == nil) != (i >= 2) {
			t.Errorf("case %d of 4: %v", i, err)
		}
	}
	open := []string{begin(t, d), begin(t, d), begin(t, d)}
	if _, err := d.Begin("one more"); !errors.Is(err, desk.ErrTooMany) {
		t.Errorf("one case more than may be open: %v", err)
	}
	if err := d.Cancel(open[1]); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Begin("one more"); err != nil {
		t.Error(err)
	}
	if err := d.Remove(open[0]); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Begin("one more"); err != nil {
		t.Error(err)
	}
}

// TestAbandoned lets cases that nobody comes back to give way.
func TestAbandoned(t *testing.T) {
	o := options(t)
	o.Limits.Open = 1
	now := time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC)
	o.Now = func() time.Time { return now }
	d := open(t, o)
	old := begin(t, d, "a.log", oom)
	now = now.Add(59 * time.Minute)
	if _, err := d.Begin(""); !errors.Is(err, desk.ErrTooMany) {
		t.Errorf("begin: %v", err)
	}
	now = now.Add(time.Minute)
	if _, err := d.Begin(""); err != nil {
		t.Fatal(err)
	}
	if c, err := d.Case(old); err != nil || c.State != incident.CaseCancelled || len(c.Limits) != 1 {
		t.Errorf("abandoned: %+v (%v)", c, err)
	}
}

func TestIDs(t *testing.T) {
	d := open(t, options(t))
	seen := map[string]bool{}
	for range 100 {
		id := begin(t, d)
		if len(id) < 26 || strings.Trim(id, "abcdefghijklmnopqrstuvwxyz234567") != "" || seen[id] {
			t.Errorf("id %q", id)
		}
		seen[id] = true
	}
}

func TestLabel(t *testing.T) {
	d := open(t, options(t))
	for name, want := range map[string]string{
		"run 17": "run 17", "": "case", " a\tb\r\nc ": "a b c", "\x1b[31mred\u202e": "[31mred", strings.Repeat("ä", 150): strings.Repeat("ä", 100) + "…", "a\xff": "a\ufffd", " \x00 ": "case",
	} {
		c, err := d.Begin(name)
		if err != nil || c.Name != want {
			t.Errorf("%q is called %q, want %q (%v)", name, c.Name, want, err)
		}
	}
	for _, x := range []struct {
		files []string
		want  string
	}{
		{[]string{"a/train.log"}, "train.log"},
		{[]string{"run/b", "run/a"}, "run"},
		{[]string{"b", "a", "c"}, "a and 2 more"},
		{[]string{"run/b", "runs/a"}, "b and 1 more"},
	} {
		id := begin(t, d)
		for _, f := range x.files {
			put(t, d, id, f, "x")
		}
		if c, err := d.Case(id); err != nil || c.Name != x.want {
			t.Errorf("%v are called %q, want %q (%v)", x.files, c.Name, x.want, err)
		}
	}
}

// TestTogether does everything at once, for the race detector and for what is left over.
func TestTogether(t *testing.T) {
	o := options(t)
	o.Workers = 2
	o.Limits = desk.Limits{Cases: 3, Open: 12, AllBytes: 64 << 10}
	d := open(t, o)
	var wg sync.WaitGroup
	for n := range 8 {
		wg.Go(func() {
			rnd := rand.New(rand.NewPCG(7, uint64(n)))
			for range 25 {
				c, err := d.Begin(fmt.Sprint(n))
				if err != nil {
					t.Error(err)
					return
				}
				ctx, stop := context.WithCancel(t.Context())
				var watch sync.WaitGroup
				watch.Go(func() { d.Watch(ctx, c.ID, func(*incident.Case) error { return nil }) })
				for i := range 1 + rnd.IntN(3) {
					_, err := d.Put(ctx, c.ID, fmt.Sprintf("logs/rank_%d.log", i), strings.NewReader(oom))
					if err != nil {
						t.Errorf("put: %v", err)
					}
				}
				d.Cases()
				if err := d.Diagnose(c.ID, desk.Handling{}); err != nil {
					t.Errorf("diagnose: %v", err)
				}
				switch rnd.IntN(5) {
				case 0:
					d.Cancel(c.ID)
				case 1:
					d.Remove(c.ID)
				case 2:
					watch.Go(func() { d.Lines(ctx, c.ID, "logs/rank_0.log", 1, -1, 0, 9) })
					watch.Go(func() { d.Tracker(ctx, c.ID) })
					d.Remove(c.ID)
				default:
					if _, err := d.Result(ctx, c.ID); err != nil && !errors.Is(err, desk.ErrNoCase) {
						t.Errorf("result: %v", err)
					}
					d.Lines(ctx, c.ID, "logs/rank_0.log", 1, -1, 0, 9)
				}
				stop()
				watch.Wait()
			}
		})
	}
	wg.Wait()
	for _, c := range d.Cases() {
		if err := d.Remove(c.ID); err != nil && !errors.Is(err, desk.ErrNoCase) {
			t.Error(err)
		}
	}
	var left []os.DirEntry
	var err error
	for range 3000 { // files of a case that gave way go by themselves
		if left, err = os.ReadDir(folderOf(t, o.Dir)); err == nil && len(left) == 1 { // the lock
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Errorf("left %v (%v)", left, err)
}

// TestManyFiles asks for the files of a case page by page; lists and those who watch get their
// number alone.
func TestManyFiles(t *testing.T) {
	d := open(t, options(t))
	const n = desk.Listed + 3
	var files []string
	for i := range n {
		files = append(files, fmt.Sprintf("job/rank_%04d.log", n-1-i), "")
	}
	id := begin(t, d, files...)
	c, err := d.Case(id)
	if err != nil || c.Name != "job" || c.FileCount != n || len(c.Files) != desk.Listed || c.Files[0].Name != "job/rank_0000.log" {
		t.Fatalf("case %q of %d files, %d listed (%v)", c.Name, c.FileCount, len(c.Files), err)
	}
	c.Files[0].Name = "changed by who asked"
	for _, x := range []struct{ from, n, want int }{{0, 2, 2}, {n - 3, 10, 3}, {n, 10, 0}, {n + 5, 1, 0}, {-1, -1, 0}} {
		page, all, err := d.Files(id, x.from, x.n)
		if err != nil || all != n || len(page) != x.want || len(page) > 0 && page[0].Name != fmt.Sprintf("job/rank_%04d.log", x.from) {
			t.Errorf("%d files from %d: %d of %d, %+v (%v)", x.n, x.from, len(page), all, page[:min(1, len(page))], err)
		}
	}
	if all := d.Cases(); len(all) != 1 || len(all[0].Files) != 0 || all[0].FileCount != n {
		t.Errorf("in the list: %d files of %d", len(all[0].Files), all[0].FileCount)
	}
	seen := errors.New("seen")
	if err := d.Watch(t.Context(), id, func(c *incident.Case) error {
		if len(c.Files) != 0 || c.FileCount != n || c.Name != "job" {
			t.Errorf("watched: %q, %d files of %d", c.Name, len(c.Files), c.FileCount)
		}
		return seen
	}); err != seen {
		t.Error(err)
	}
	if _, _, err := d.Files("none", 0, 1); !errors.Is(err, desk.ErrNoCase) {
		t.Error(err)
	}
}
