package explain

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/inquest-dev/inquest/internal/catalog"
	"github.com/inquest-dev/inquest/internal/evidence"
)

// TestDecisionsDoc compares docs/decisions.md with the entries, and with -update
// writes it.
func TestDecisionsDoc(t *testing.T) {
	const name = "../../docs/decisions.md"
	text := DecisionPage(Decisions(full(t))).Write("markdown", 0)
	head, body, _ := strings.Cut(text, "\n")
	got := head + "\n\nGenerated from the entries; `go test ./internal/explain -run TestDecisionsDoc -update` writes it. `inquest explain decide` prints the same.\n" + body
	if *update {
		if err := os.WriteFile(name, []byte(got), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s is not current: go test ./internal/explain -run TestDecisionsDoc -update", name)
	}
}

// TestDecisions: every kind that can lead a failure has a table, and every cause in it
// evidence to look for and an action that is no riskier than its change.
func TestDecisions(t *testing.T) {
	c := full(t)
	risk := map[string]int{"reads": 0, "reversible": 1, "changes": 2}
	listed := map[string]bool{}
	tables := Decisions(c)
	for _, d := range tables {
		if d.Means == "" || len(d.Causes) == 0 {
			t.Errorf("%s: %+v", d.Kind, d)
		}
		for _, ch := range d.Causes {
			listed[ch.Entry] = true
			e, err := c.Entry(ch.Entry)
			if err != nil {
				t.Fatal(err)
			}
			if len(ch.Look) == 0 || ch.Next.Do == "" || ch.Change == "" || ch.Restart == "" {
				t.Errorf("%s, %s: %+v", d.Kind, ch.Entry, ch)
			}
			if n, ok := risk[ch.Next.Effect]; !ok || n > risk[e.Remedy.Effect] {
				t.Errorf("%s, %s: the next action %s, the change %s", d.Kind, ch.Entry, ch.Next.Effect, e.Remedy.Effect)
			}
		}
	}
	for _, h := range c.Entries() {
		if !listed[h.ID] {
			t.Errorf("%s stands in no table", h.ID)
		}
	}
	for i := range evidence.Specs {
		s := &evidence.Specs[i]
		if _, ok := Decide(c, string(s.Kind)); !ok && (s.Role == evidence.RoleFault || s.Role == evidence.RoleStop) {
			t.Errorf("%s, a %s, has no table", s.Kind, s.Role)
		}
	}
	for _, f := range Formats() {
		if text := DecisionPage(tables).Write(f, 80); !strings.Contains(text, "collective_timeout") || strings.Contains(text, "{{") {
			t.Errorf("%s: %.300s", f, text)
		}
	}
}

func TestKindsOf(t *testing.T) {
	c := full(t)
	for _, f := range []struct{ text, want string }{
		{"device_oom", "device_oom"}, {"device-oom", "device_oom"}, {"Device OOM", "device_oom"},
		{"disk-full", "disk_full"},
		{"torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB (GPU 0; 10.92 GiB total capacity; 2.31 GiB already allocated; 1.20 GiB free; 2.40 GiB reserved in total by PyTorch)", "device_oom"},
		{"NVRM: Xid (PCI:0000:5d:00): 79, pid=71402, name=python3, GPU has fallen off the bus.", "xid"},
		{"qqqq", ""}, {"", ""}, {strings.Repeat("x", 1<<20), ""},
	} {
		if got := KindsOf(c, f.text); f.want == "" && len(got) > 0 || f.want != "" && !slices.Contains(got, f.want) {
			t.Errorf("%.60q means %v, want %s", f.text, got, f.want)
		}
	}
	if got := KindsOf(c, "collective"); len(got) < 3 {
		t.Errorf("the class collective has %v", got)
	}
	if _, ok := Decide(c, "nothing"); ok {
		t.Error("a table for no kind")
	}
}

// TestCompare: entries that look alike can be told apart in every format.
func TestCompare(t *testing.T) {
	c := full(t)
	for _, h := range c.Entries() {
		a, err := c.Entry(h.ID)
		if err != nil {
			t.Fatal(err)
		}
		for _, l := range a.LookAlikes {
			b, err := c.Entry(l.Entry)
			if err != nil {
				t.Fatal(err)
			}
			x, y := Compare(a, b), Compare(b, a)
			if len(x.Tell) == 0 || len(x.Rows) < 9 || len(x.Tell) != len(y.Tell) || len(x.Facts) != len(y.Facts) || !sameSet(x.Shared, y.Shared) {
				t.Errorf("%s and %s: %d tells, %d rows, %d facts; the other way round %d tells, %d facts", a.ID, b.ID, len(x.Tell), len(x.Rows), len(x.Facts), len(y.Tell), len(y.Facts))
			}
			for _, r := range x.Rows {
				if len(r.A) == 0 && len(r.B) == 0 {
					t.Errorf("%s and %s: nothing in %s", a.ID, b.ID, r.Aspect)
				}
			}
		}
	}
	a, _ := c.Entry("retained-graph")
	b, _ := c.Entry("fragmentation")
	for _, f := range append(Formats(), "json") {
		var out strings.Builder
		if err := WriteComparison(&out, Compare(a, b), f, 80); err != nil {
			t.Fatal(err)
		}
		for _, has := range []string{"retained-graph", "fragmentation", "oom.reserved_unallocated", "Safer next action"} {
			if !strings.Contains(out.String(), has) {
				t.Errorf("%s lacks %s", f, has)
			}
		}
		if f == "json" && !json.Valid([]byte(out.String())) {
			t.Error("not JSON")
		}
	}
}

func sameSet(a, b []string) bool {
	a, b = slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b))
	return slices.Equal(a, b)
}

// TestPagesHostile: what an entry from a strange folder says stays text in tables.
func TestPagesHostile(t *testing.T) {
	e := &catalog.Entry{ID: "x", Title: "a|b<script>\x1b[2J", Quick: "q\u202e|`<b>`", About: []string{"device_oom"}}
	e.For = []catalog.Condition{{When: "oom.first_step", Weight: "strong", Says: "s|<img src=x>\x07"}}
	for _, f := range Formats() {
		got := Compare(e, &catalog.Entry{ID: "y"}).Page().Write(f, 80)
		if strings.ContainsAny(got, "\x1b\x07\u202e") {
			t.Errorf("%s holds control characters: %q", f, got)
		}
		if f == "html" && (strings.Contains(got, "<script>") || strings.Contains(got, "<img")) {
			t.Errorf("html is not escaped: %s", got)
		}
		if f == "markdown" && strings.Contains(got, "s|") {
			t.Errorf("a cell of markdown ends early: %s", got)
		}
	}
}
