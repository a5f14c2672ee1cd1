package scan_test

import (
	"bytes"
	"flag"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/inquest-dev/inquest/encyclopedia"
	"github.com/inquest-dev/inquest/internal/catalog"
	"github.com/inquest-dev/inquest/internal/reader/ranklog"
	"github.com/inquest-dev/inquest/internal/scan"
)

var update = flag.Bool("update", false, "train the plan again and write plan.txt")

func TestMain(m *testing.M) {
	scan.ProgramAtoms = func() []scan.Atom {
		c, err := catalog.Load(encyclopedia.FS)
		if err != nil {
			panic(err)
		}
		return ranklog.Atoms(c.Plan())
	}
	os.Exit(m.Run())
}

// TestPlanCurrent checks that plan.txt knows exactly the atoms of the program and
// is in its canonical form. With -update it trains the plan: on a synthetic log
// and on the sources of the modules that go.mod pins, so that every machine finds
// the same. That takes about a minute.
func TestPlanCurrent(t *testing.T) {
	atoms := scan.ProgramAtoms()
	if *update {
		plan := scan.Train(atoms, trainingTexts(t)...)
		if err := os.WriteFile("plan.txt", []byte(plan.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile("plan.txt")
	if err != nil {
		t.Fatal(err)
	}
	if got := scan.ParsePlan(string(text)).String(); got != string(text) {
		t.Error("plan.txt is not what a plan prints")
	}
	var want []string
	for _, a := range atoms {
		fold := ""
		if a.Fold {
			fold = "fold "
		}
		want = append(want, fmt.Sprintf("%s%q", fold, a.Text))
	}
	var have []string
	for line := range strings.Lines(string(text)) {
		fields := strings.SplitN(strings.TrimSuffix(line, "\n"), " ", 6)
		have = append(have, fields[len(fields)-1])
	}
	slices.Sort(want)
	slices.Sort(have)
	want = slices.Compact(want)
	if !slices.Equal(have, want) {
		t.Errorf("plan.txt has %d atoms, the program %d, or others: run this test with -update", len(have), len(want))
	}
}

// TestTrainLiterals trains the plan of the literals in the file that
// INQUEST_BENCH_LITERALS names, a line each, and writes it to the one that
// INQUEST_BENCH_PLAN names; without these it is skipped.
func TestTrainLiterals(t *testing.T) {
	in, out := os.Getenv("INQUEST_BENCH_LITERALS"), os.Getenv("INQUEST_BENCH_PLAN")
	if in == "" || out == "" {
		t.Skip("INQUEST_BENCH_LITERALS and INQUEST_BENCH_PLAN are not set")
	}
	text, err := os.ReadFile(in)
	if err != nil {
		t.Fatal(err)
	}
	var atoms []scan.Atom
	for line := range strings.Lines(string(text)) {
		atoms = append(atoms, scan.Atom{Text: strings.TrimSuffix(line, "\n")})
	}
	plan := scan.Train(atoms, trainingTexts(t)...)
	if err := os.WriteFile(out, []byte(plan.String()), 0o644); err != nil {
		t.Fatal(err)
	}
}

// trainingTexts returns a log and word-rich text.
func trainingTexts(t *testing.T) [][]byte {
	return [][]byte{trainingLog(4 << 20), moduleText(t, 16<<20)}
}

// trainingModules are direct dependencies with much to read in their sources.
var trainingModules = []string{"cel.dev/cel-go", "github.com/goccy/go-yaml", "github.com/klauspost/compress", "github.com/rogpeppe/go-internal",
	"github.com/santhosh-tekuri/jsonschema/v6", "github.com/spf13/cobra", "github.com/spf13/pflag", "github.com/yuin/goldmark", "golang.org/x/net"}

// moduleText returns up to n bytes of the sources and documents of the training
// modules, in pieces in an order of their own.
func moduleText(t *testing.T, n int) []byte {
	t.Helper()
	cmd := exec.Command("go", append([]string{"list", "-m", "-f", "{{.Dir}}"}, trainingModules...)...)
	cmd.Stderr = os.Stderr
	dirs, err := cmd.Output()
	if err != nil {
		t.Fatal("go list: ", err)
	}
	var pieces [][]byte
	for _, dir := range strings.Fields(string(dirs)) {
		err := filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !slices.Contains([]string{".go", ".md", ""}, filepath.Ext(name)) {
				return err
			}
			text, err := os.ReadFile(name)
			if err != nil || bytes.IndexByte(text, 0) >= 0 || strings.Contains(name, "testdata") {
				return err
			}
			for piece := range slices.Chunk(text, 16<<10) {
				pieces = append(pieces, piece)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	r := rand.New(rand.NewPCG(11, 12))
	r.Shuffle(len(pieces), func(i, j int) { pieces[i], pieces[j] = pieces[j], pieces[i] })
	out := bytes.Join(pieces, nil)
	if len(out) < 4<<20 {
		t.Fatalf("only %d bytes of module sources: is GOMODCACHE complete?", len(out))
	}
	return out[:min(n, len(out))]
}
