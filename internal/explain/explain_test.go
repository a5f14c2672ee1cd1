package explain

import (
	"flag"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/inquest-dev/inquest/internal/catalog"
)

var update = flag.Bool("update", false, "write golden files")

func load(t testing.TB) *catalog.Catalog {
	t.Helper()
	c, err := catalog.Load(os.DirFS("../catalog/testdata/good"))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestRender(t *testing.T) {
	e, err := load(t).Entry("pool-held")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range []struct {
		format, file string
		width        int
	}{{"text", "pool-held.txt", 60}, {"markdown", "pool-held.md", 0}, {"html", "pool-held.html", 0}} {
		got := Render(e, f.format, f.width)
		name := filepath.Join("testdata", f.file)
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
			t.Errorf("%s differs from %s:\n%s", f.format, name, got)
		}
	}
	for l := range strings.Lines(Render(e, "text", 60)) {
		if n := len([]rune(strings.TrimRight(l, "\n"))); n > 60 {
			t.Errorf("line of %d columns: %s", n, l)
		}
	}
	if got := Render(e, "other", 80); got != Render(e, "text", 80) {
		t.Error("an unknown format is not text")
	}
}

// TestRenderHostile checks that an entry from a strange folder cannot reach the
// terminal or the page.
func TestRenderHostile(t *testing.T) {
	e := &catalog.Entry{ID: "x", Title: "a\x1b[2Jb<script>", Quick: "q\u202e`<b>` ``` end"}
	e.Fix = []catalog.Fix{{Stack: "any", Steps: []catalog.Step{{Do: "d", Code: "```\n</code>\x07", Lang: "shell"}}}}
	for _, f := range Formats() {
		got := Render(e, f, 80)
		if strings.ContainsAny(got, "\x1b\x07\u202e") {
			t.Errorf("%s holds control characters: %q", f, got)
		}
		if f == "html" && strings.Contains(got, "<script>") {
			t.Errorf("html is not escaped: %s", got)
		}
		if f == "markdown" && !strings.Contains(got, "````shell") {
			t.Errorf("fence is not longer than the code's: %s", got)
		}
	}
}

// TestFindFixture searches entries that no writer of knowledge changes.
func TestFindFixture(t *testing.T) {
	c := load(t)
	for _, f := range []struct{ query, first, why string }{
		{"pool-held", "pool-held", "its id"},
		{"idle pool", "pool-held", "search keys"},
		{"[rank7]: pool refused 2.00 GiB on card 4", "pool-held", "wording demo/refused (device_oom)"},
		{"who stoped the perosn's run", "stopped-by-hand", "title"},
		{"quantum flux", "", ""},
		{"", "", ""},
		{strings.Repeat("the pool ", 20000), "pool-held", "title"},
	} {
		got := Find(c, f.query)
		if f.first == "" {
			if len(got) > 0 {
				t.Errorf("%q found %v", f.query, got)
			}
			continue
		}
		if len(got) == 0 || got[0].ID != f.first || !strings.Contains(got[0].Why, f.why) {
			t.Errorf("%.60q found %+v, want %s because of %s", f.query, got, f.first, f.why)
		}
	}
}

// TestFind asks the encyclopedia what people ask. Where it fails because an
// entry was added or reworded, its search keys want the words of the query.
func TestFind(t *testing.T) {
	c, err := catalog.Load(os.DirFS("../../encyclopedia"))
	if err != nil {
		t.Fatal(err)
	}
	x, err := NewIndex(c)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range []struct {
		query string
		top   int    // among how many the entry must be
		want  string // ids, space separated: each must be there
	}{
		{"loss nan after oom", 1, "nan-after-oom-recovery"},
		{"gpu training oom loss became nan tracked run", 5, "nan-after-oom-recovery"},
		{"memory grows every step until cuda runs out", 3, "retained-graph"},
		{"retaned graph", 1, "retained-graph"},
		{"reserved but unallocated memory is large fragmentation", 1, "fragmentation"},
		{"oom in validation but training was fine", 3, "eval-without-no-grad"},
		{"nvidia-smi shows memory used but no process", 2, "dead-process-holds-memory"},
		{"bus error dataloader docker shm", 1, "shm-exhausted"},
		{"process killed -9 no message", 3, "killed-unknown"},
		{"fp16 loss scale overflow nan", 2, "nan-precision-overflow"},
		{"learning rate too high loss diverged", 2, "nan-lr-batch-mismatch"},
		{"NCCL watchdog timeout one rank slow preprocessing", 4, "rank0-long-preprocess"},
		{"all processes on gpu 0", 1, "all-ranks-on-gpu0"},
		{"oom at first optimizer step adam", 2, "optimizer-first-step"},
		{"oom when resuming from checkpoint", 2, "resume-spike"},
		{"CUDA error: device-side assert triggered", 3, "label-out-of-range"},
		{"slurm time limit", 1, "time-limit"},
		{"no space left on device while saving", 1, "disk-full"},
		{"NCCL watchdog timeout rank killed -9", 2, "killed-unknown"},
		{"exit code 137", 1, "killed-unknown"},
		{"torchrun exitcode -9", 3, "killed-unknown"},
		{"host-rm", 1, "host-ram"},
		{"checkpoint corrupt", 1, "checkpoint-corrupt"},
		{"cuda out of memory in evaluation", 2, "eval-without-no-grad"},
	} {
		got := x.Find(f.query)
		got = got[:min(f.top, len(got))]
		for _, id := range strings.Fields(f.want) {
			if _, err := c.Entry(id); err != nil {
				continue // the test of package catalog reports entries that are missing
			}
			if !slices.ContainsFunc(got, func(m Match) bool { return m.ID == id }) {
				t.Errorf("%q: %s is not among the first %d: %v", f.query, id, f.top, got)
			}
		}
	}
}

// TestFindShowsTypedWords checks that a match is explained by the words of the
// query and not by what they are filed under.
func TestFindShowsTypedWords(t *testing.T) {
	c, err := catalog.Load(os.DirFS("../../encyclopedia"))
	if err != nil {
		t.Fatal(err)
	}
	seen := false
	for _, m := range Find(c, "NCCL watchdog timeout rank killed -9") {
		for _, part := range strings.Split(m.Why, "; ") {
			word, _, _ := strings.Cut(part, " (")
			seen = seen || word == "timeout"
			if !slices.Contains([]string{"nccl", "watchdog", "timeout", "rank", "killed", "-9", "…"}, word) && !strings.HasPrefix(part, "wording ") {
				t.Errorf("%s is explained by %q", m.ID, part)
			}
		}
	}
	if !seen {
		t.Error("timeout explains no match")
	}
}

func TestNearest(t *testing.T) {
	for _, c := range []struct{ name, want string }{
		{"diagnos", "diagnose"}, {"explian", "explain"}, {"ned", "new"}, {"diagnose", ""}, {"oom", ""}, {"dianose", "diagnose"}, {"", ""}, {"versions", "version"}, {"vrsin", "version"}, {"vrsi", ""},
	} {
		if got := Nearest(c.name, []string{"diagnose", "explain", "new", "version"}); got != c.want {
			t.Errorf("Nearest(%q) is %q, want %q", c.name, got, c.want)
		}
	}
}

func TestListAndResults(t *testing.T) {
	c := load(t)
	var b strings.Builder
	if err := List(&b, c); err != nil {
		t.Fatal(err)
	}
	want := `device-memory
  pool-held        The invented pool keeps what it has

outside
  stopped-by-hand  A person stopped the run
`
	if b.String() != want {
		t.Errorf("list is\n%s", b.String())
	}
	b.Reset()
	if err := Results(&b, "idle\x1b pool", Find(c, "idle pool")[:1]); err != nil {
		t.Fatal(err)
	}
	want = `1 entry for "idle pool", best first

pool-held
  The invented pool keeps what it has
  `
	if got := b.String(); !strings.HasPrefix(got, want) || !strings.Contains(got, "inquest explain pool-held prints the whole entry") {
		t.Errorf("results are\n%s", got)
	}
}

func TestWords(t *testing.T) {
	for _, f := range []struct{ text, want string }{
		{"CUDA ran out of memory", "gpu oom"},
		{"loss is not a number", "loss nan"},
		{"Non-finite gradients", "nan gradient"},
		{"killed, SIGKILL, kill -9", "kill kill kill"},
		{"training hung / stuck", "train hang hang"},
		{"allocated allocating allocation", "allocat allocat allocat"},
		{"batches batch", "batch batch"},
		{"loss losses process", "loss loss process"},
		{"stopped stopping", "stop stop"},
		{"killed -9", "kill kill -9"},
		{"steps 2-9, 137", "step kill -9"},
	} {
		if got := strings.Join(terms(words(f.text)), " "); got != f.want {
			t.Errorf("terms of %q are %q, want %q", f.text, got, f.want)
		}
	}
	for _, f := range []struct {
		a, b string
		want bool
	}{{"memory", "memroy", true}, {"memory", "memor", true}, {"memory", "memories", false}, {"graph", "graphs", true}, {"graph", "grape", true}, {"graph", "grips", false}} {
		if near(f.a, f.b) != f.want || near(f.b, f.a) != f.want {
			t.Errorf("near(%s, %s) is not %v", f.a, f.b, f.want)
		}
	}
}

// TestStub checks that a stub parses, names all fields, and is refused until
// it is filled in.
func TestStub(t *testing.T) {
	text, err := Stub("my-new-entry")
	if err != nil {
		t.Fatal(err)
	}
	problems := catalog.Lint(fstest.MapFS{"entries/numerics/my-new-entry.yaml": {Data: []byte(text)}})
	var all []string
	for _, p := range problems {
		if p.Line == 0 || strings.Contains(p.Text, "unknown field") {
			t.Errorf("stub does not parse: %s", p)
		}
		all = append(all, p.Text)
	}
	for _, field := range []string{"title", "area", "about", "for[0].when", "quick", "search", "symptoms[0].what", "remedy.change", "rerun.unchanged", "readings.executive", "examples.match[0]"} {
		if !slices.ContainsFunc(all, func(s string) bool { return strings.HasPrefix(s, field) }) {
			t.Errorf("the lint accepts the stub's %s; it says\n%s", field, strings.Join(all, "\n"))
		}
	}
	for _, id := range []string{"", "Two Words", "../x", "a_b", strings.Repeat("a", 90)} {
		if _, err := Stub(id); err == nil {
			t.Errorf("no error for id %q", id)
		}
	}
}

func BenchmarkNewIndex(b *testing.B) {
	fsys := fs.FS(os.DirFS("../../encyclopedia"))
	for b.Loop() {
		c, err := catalog.Load(fsys)
		if err != nil {
			b.Fatal(err)
		}
		if _, err := NewIndex(c); err != nil {
			b.Fatal(err)
		}
	}
}
