package desk_test

import (
	"os"
	"strings"
	"testing"

	"github.com/inquest-dev/inquest/encyclopedia"
	"github.com/inquest-dev/inquest/internal/catalog"
	"github.com/inquest-dev/inquest/internal/desk"
	"github.com/inquest-dev/inquest/internal/engine"
	"github.com/inquest-dev/inquest/internal/incident"
	"github.com/inquest-dev/inquest/internal/reader/all"
)

// options are what a test's desk works with.
func options(t testing.TB) desk.Options {
	t.Helper()
	c, err := catalog.Load(encyclopedia.FS)
	if err != nil {
		t.Fatal(err)
	}
	return desk.Options{Dir: t.TempDir(), Engine: engine.Options{Catalog: c, Readers: all.Readers(c.Plan()), Version: "test", Workers: 1}}
}

// open makes a desk that is closed with the test, when its folder must be gone.
func open(t testing.TB, o desk.Options) *desk.Desk {
	t.Helper()
	d, err := desk.New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
		if left, err := os.ReadDir(o.Dir); err != nil || len(left) > 0 {
			t.Errorf("the closed desk left %v (%v)", left, err)
		}
	})
	return d
}

// oom is the log of a run that ran out of memory.
const oom = `step 1 loss 2.5
step 2 loss 2.4
Traceback (most recent call last):
  File "/app/pretrain.py", line 61, in main
    loss = model(batch)
torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 3.00 GiB. GPU 0 has a total capacity of 47.50 GiB of which 1.25 GiB is free.
`

// begin opens a case with these files, pairs of name and text.
func begin(t testing.TB, d *desk.Desk, files ...string) string {
	t.Helper()
	c, err := d.Begin("")
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(files); i += 2 {
		if _, err := d.Put(t.Context(), c.ID, files[i], strings.NewReader(files[i+1])); err != nil {
			t.Fatal(err)
		}
	}
	return c.ID
}

func diagnose(t testing.TB, d *desk.Desk, id string, h desk.Handling) *desk.Result {
	t.Helper()
	if err := d.Diagnose(id, h); err != nil {
		t.Fatal(err)
	}
	r, err := d.Result(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestCase(t *testing.T) {
	d := open(t, options(t))
	id := begin(t, d, "logs/rank_0.log", oom, "logs/rank_1.log", "step 1 loss 2.5\n")
	r := diagnose(t, d, id, desk.Handling{})
	if r.Incident.FirstFault == nil || r.Incident.FirstFault.Span.Artifact != "logs/rank_0.log" {
		t.Errorf("first fault %+v", r.Incident.FirstFault)
	}
	c, err := d.Case(id)
	if err != nil {
		t.Fatal(err)
	}
	if c.State != incident.CaseDone || c.Title == "" || c.Outcome != incident.Failed || c.Incident != r.Incident.ID || c.Done != 2 || c.Total != 2 || len(c.Files) != 2 || !c.Files[0].Whole {
		t.Errorf("case %+v", c)
	}
}
