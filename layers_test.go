package inquest

import (
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"
)

const module = "github.com/inquest-dev/inquest/"

// layers says who may import whom among our packages. The first line whose
// pattern matches a package decides; a package that no line matches fails.
// Test files are exempt.
var layers = []struct{ pkg, may string }{
	{"encyclopedia", ""},
	// The runs to try inquest on come with the program: its page offers them.
	{"examples", ""},
	{"docs", ""}, // the published schemas, embedded
	{"internal/evidence", ""},
	{"internal/incident", "internal/evidence"},
	{"internal/redact", ""},
	{"internal/scan", ""},
	{everywhere, ""},
	// A decoder stands alone, but for wire types and lines of text. Parquet gives the rows
	// that CSV gives, and a store in SQLite is read from its bytes where that is possible.
	{"internal/format/parquet", "internal/format/rows"},
	{"internal/format/sqlitestore", "internal/format/sqlitefile"},
	{"internal/format/trackiorow", "internal/format/jsontree internal/format/textline"},
	// A checkpoint of torch.save is a pickle and the bytes that it names.
	{"internal/format/torchzip", "internal/format/pickle"},
	{"internal/format/*", "internal/format/protowire internal/format/textline"},
	{"internal/artifact", "internal/evidence"},
	{"internal/evidencefile", "internal/evidence"},
	// Rows of metrics are recorded in one place, whatever the file that they stand in.
	{"internal/reader", "internal/evidence internal/artifact internal/scan internal/format/rows internal/format/textline"},
	{"internal/reader/all", "internal/evidence internal/reader internal/reader/*"},
	{"internal/reader/*", "internal/evidence internal/reader internal/scan internal/format/*"},
	{"internal/allocator", "internal/evidence"},
	{"internal/memory", "internal/evidence internal/incident internal/allocator"},
	{"internal/tracker", "internal/evidence internal/incident"},
	{"internal/repair", "internal/evidence internal/incident internal/format/textline"},
	{"internal/repair/all", "internal/repair internal/repair/*"},
	// The suite goes the whole way: the engine makes the copy and reads it again.
	{"internal/repair/repairtest", "internal/incident internal/engine internal/reader internal/repair internal/report"},
	{"internal/repair/*", "internal/evidence internal/incident internal/repair internal/format/*"},
	{"internal/detect", "internal/evidence"},
	{"internal/timeline", "internal/evidence"},
	{"internal/catalog", "internal/evidence internal/scan"},
	{"internal/diagnose", "internal/evidence internal/incident internal/timeline internal/catalog"},
	{"internal/remedy", "internal/evidence internal/incident internal/catalog"},
	{"internal/explain", "internal/evidence internal/catalog"},
	{"internal/engine", "internal/evidence internal/incident internal/redact internal/artifact internal/evidencefile internal/reader internal/detect internal/timeline internal/catalog internal/diagnose internal/remedy internal/memory internal/tracker internal/repair"},
	// What is recorded and tried is stored: these three speak in stored results, and gpu in the
	// holders of memory.
	{"internal/gpu", "internal/incident internal/redact internal/format/nvsmi internal/format/amdsmi internal/format/textline"},
	// A command is started by what stands alone, before the rest of the program is initialised.
	{"internal/process", ""},
	{"internal/early", ""},
	{"internal/record", "internal/incident internal/redact internal/gpu internal/process"},
	{"internal/trial", "internal/evidence internal/incident internal/redact internal/format/pickle internal/format/safetensors internal/format/torchzip"},
	// Which trials are one incident, and what changed between two, is worked out apart from how
	// they are kept.
	{"internal/ledger", "internal/incident"},
	{"internal/store", "internal/incident internal/redact internal/ledger"},
	// A bundle to escalate with holds reports; what it is made of comes from the store.
	{"internal/bundle", "internal/incident internal/redact internal/report"},
	{"internal/report", "internal/evidence internal/incident"},
	// What people and programs hand over is kept and diagnosed in one place; a page, an API and
	// tools for agents stand on it. They see incidents, not the machinery.
	{"internal/desk", "internal/evidence internal/incident internal/engine"},
	// Names, origins and files of forms are judged in one place for all three.
	{"internal/request", ""},
	{"internal/api", "docs internal/request internal/evidence internal/incident internal/catalog internal/explain internal/desk internal/ledger internal/store internal/report"},
	{"internal/web", "internal/request internal/evidence internal/incident internal/catalog internal/explain internal/desk internal/ledger internal/store internal/report"},
	{"internal/mcp", "internal/request internal/evidence internal/incident internal/catalog internal/explain internal/desk internal/ledger internal/store internal/report"},
	{"internal/cli", "encyclopedia examples internal/* internal/reader/* internal/repair/all"},
	{"internal/testkit/genjob", ""},
	{"internal/testkit/heard", ""},
	{"internal/testkit/allocmodel", "internal/evidence"},
	{"internal/testkit", "internal/evidence internal/incident internal/timeline"},
	{"cmd/*", "internal/cli"},
}

// everywhere is the one package that any may import: it stands in for regexp.
const everywhere = "internal/lazyre"

// sensitive says which packages may use what is heavy or touches the world
// outside. A trailing / matches everything below.
var sensitive = []struct{ imports, may, why string }{
	{"os/exec", "internal/gpu internal/process internal/record internal/repair/repairtest", "the vendors' tools, the user's command when asked, git, and a test suite that kills a process; nothing else starts one"},
	{"net/http", "internal/reader/mlflow internal/request internal/api internal/web internal/mcp internal/cli", "nothing leaves the machine but a request to the address that the user names; pages and tools are served on it"},
	{"github.com/danielgtaylor/huma/v2/", "internal/api", "the HTTP API and its document"},
	{"github.com/modelcontextprotocol/go-sdk/", "internal/mcp internal/cli", "the tools for agents, and the streams or the address on which they are offered"},
	{"zombiezen.com/go/sqlite", "internal/store internal/format/sqlitestore internal/repair/mlflow internal/repair/trackio", "stores of trackers, and the index of the trials"},
	{"zombiezen.com/go/sqlite/", "internal/store internal/format/sqlitestore internal/repair/mlflow internal/repair/trackio", "stores of trackers, and the index of the trials"},
	{"github.com/parquet-go/parquet-go", "internal/format/parquet", "exports of trackers"},
	{"cel.dev/cel-go/", "internal/catalog internal/diagnose", "conditions are compiled and evaluated in one place"},
	{"github.com/goccy/go-yaml", "internal/catalog internal/reader/kube", "knowledge and configuration files"},
	{"os", "internal/testkit/heard internal/artifact internal/engine internal/cli internal/gpu internal/process internal/early internal/record internal/trial internal/store internal/bundle internal/desk internal/repair internal/repair/repairtest internal/format/sqlitestore cmd/*", "the pure core opens no file; a database and its log are copied aside before they are opened"},
	{"unsafe", "internal/scan", "the scanner's kernels only"},
}

// clock lists who may read the time of day.
const clock = "internal/gpu internal/process internal/early internal/record internal/trial internal/store internal/cli cmd/*"

func matches(patterns, pkg string) bool {
	for _, p := range strings.Fields(patterns) {
		if ok, _ := path.Match(p, pkg); ok || p == pkg {
			return true
		}
	}
	return false
}

func TestLayers(t *testing.T) {
	fset := token.NewFileSet()
	err := filepath.WalkDir(".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if n := d.Name(); name != "." && (strings.HasPrefix(n, ".") || strings.HasPrefix(n, "_") || n == "testdata" || n == "node_modules" || n == "browsertests") {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			return nil
		}
		pkg := filepath.ToSlash(filepath.Dir(name))
		may, found := "", false
		for _, l := range layers {
			if matches(l.pkg, pkg) {
				may, found = l.may, true
				break
			}
		}
		if !found {
			t.Errorf("%s: package %s has no line in layers: decide where it belongs", name, pkg)
			return nil
		}
		src, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		f, err := parser.ParseFile(fset, name, src, 0)
		if err != nil {
			return err
		}
		for _, im := range f.Imports {
			imported := strings.Trim(im.Path.Value, `"`)
			if in, ok := strings.CutPrefix(imported, module); ok {
				if in == everywhere {
					continue
				}
				if !matches(may, in) || strings.HasPrefix(in, "internal/testkit") {
					t.Errorf("%s: %s may not import %s", name, pkg, in)
				}
				continue
			}
			for _, s := range sensitive {
				if imported != s.imports && !(strings.HasSuffix(s.imports, "/") && strings.HasPrefix(imported, s.imports)) {
					continue
				}
				if !matches(s.may, pkg) {
					t.Errorf("%s: %s may not import %s (%s)", name, pkg, imported, s.why)
				}
			}
		}
		if strings.Contains(string(src), "time.Now(") && !matches(clock, pkg) {
			t.Errorf("%s: %s reads the clock; time is passed in", name, pkg)
		}
		// What a package must do before all others are initialised, only its init can.
		if strings.Contains(string(src), "func init()") && pkg != "internal/early" {
			t.Errorf("%s: no init functions; use explicit lists", name)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
